"""Write the pages of `docs/reference/` that are made from the source, or check that they are current.

    python docs/generate.py            write them
    python docs/generate.py --check    end with 1 and name the pages that differ

What the pages say is taken from where the program takes it: help pages from the commands, exit codes from the error
classes, findings from their table, importers, the recorder and statistics from their modules, JSON members, stored
values and the members of params.yaml from the texts below the fields of the report classes, the models and the
parameters.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from declared import cell, fields_of, paragraph, texts_below

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
_SOURCE = ROOT / "src" / "tracemark"
_WIDTH = 100
_MADE = "<!-- made by docs/generate.py; edit the source instead -->\n\n"

# the version of Python must not decide how a help page is wrapped
os.environ["COLUMNS"] = str(_WIDTH)

import stats_page  # noqa: E402

from tracemark import errors  # noqa: E402
from tracemark.cli.app import PROGRAM, build, load  # noqa: E402
from tracemark.cli.command_table import COMMANDS, GROUPS, exits  # noqa: E402
from tracemark.cli.main import INTERRUPTED, READER_GONE  # noqa: E402
from tracemark.findings import CODES, Severity  # noqa: E402
from tracemark.importers import batch, conversation  # noqa: E402
from tracemark.importers.detect import IMPORTERS  # noqa: E402
from tracemark.ledger import params as params_module  # noqa: E402
from tracemark.runner import record as record_module  # noqa: E402


def help_page(path: str) -> str:
    """Return the help page of a command, a group, or (empty path) the program, at a fixed width."""
    tree = build()
    settings = {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = tree.context_class(tree, info_name=PROGRAM, **settings)
    parts = path.split()
    for depth, name in enumerate(parts, start=1):
        place = " ".join(parts[:depth])
        command = load(place) if place in COMMANDS else tree.commands[name]
        context = command.context_class(command, info_name=name, parent=context, **settings)
    text: str = context.command.get_help(context)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def places() -> list[str]:
    """Return the paths of everything that has a help page, groups before their commands."""
    found = [""]
    for path in COMMANDS:
        group = path.rpartition(" ")[0]
        found += [place for place in (group, path) if place and place not in found]
    assert set(found) >= set(GROUPS)
    return found


def commands() -> str:
    """Return the page of commands: the help page of each."""
    lines = ["# Commands\n\n", _MADE, "Each page is what `--help` prints.\n"]
    for place in places():
        title = f"{PROGRAM} {place}".strip()
        lines.append(f"\n## {title}\n\n```text\n{help_page(place)}```\n")
    return "".join(lines)


def exit_codes() -> str:
    """Return the page of exit codes, made from the error classes."""
    lines = ["# Exit codes\n\n", _MADE, "| code | meaning | errors (`error` in JSON) | commands |\n|--:|---|---|---|\n"]
    known = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.TracemarkError)]
    for code, meaning in exits("").items():
        names = ", ".join(f"`{error.__name__}`" for error in known if error.exit_code == code and code)
        able = [path for path in COMMANDS if code in exits(path)]
        who = "all" if len(able) == len(COMMANDS) else ", ".join(f"`{path}`" for path in able)
        lines.append(f"| {code} | {meaning} | {names} | {who} |\n")
    lines.append(
        f"\nBesides these, {INTERRUPTED} after an interrupt from the keyboard and {READER_GONE} when the reader of the"
        " output has gone away, as with every program.\n\nAn error is worded on standard error (`error:` what happened,"
        " `at:` where, `hint:` the next command). With `--output json` or `jsonl` it is also a JSON object on standard"
        " output, with the members `error`, `exit_code`, `message`, and `where` and `hint` where known.\n\n## Errors\n"
    )
    lines += [f"\n- `{error.__name__}` ({error.exit_code}): {_first_line(error)}" for error in known]
    return "".join([*lines, "\n"])


def findings() -> str:
    """Return the page of findings, made from their table."""
    lines = [
        "# Findings\n\n",
        _MADE,
        (
            "A finding is one problem as data: `code`, `severity`, `where`, `message`, and `hint` where there is one."
            " Only findings of severity `error` change an exit code (to 1).\n"
        ),
    ]
    for severity in Severity:
        rows = [(code, entry) for code, entry in CODES.items() if entry.severity is severity]
        lines.append(f"\n## {severity.value}\n\n| code | meaning | what to do |\n|---|---|---|\n")
        lines += [f"| `{code}` | {cell(entry.meaning)} | {cell(entry.hint)} |\n" for code, entry in rows]
    return "".join(lines)


def json_members() -> str:
    """Return the page of JSON members, made from the report classes of the acts."""
    lines = [
        "# JSON members\n\n",
        _MADE,
        (
            "With `--output json` a command writes one object with the members below, and always `findings`, a list of"
            " objects with `code`, `severity`, `where`, `message` and, where there is one, `hint`. With"
            " `--output jsonl` a command that lists something writes one line per row, any other command its whole"
            " object on one line.\n"
        ),
    ]
    asked = questions()
    for name, text, fields in reports():
        who = ", ".join(f"`{PROGRAM} {path}`" for path in asked.get(name, []))
        lines.append(f"\n## {name}\n\n{text}\n" + (f"\nAnswer of {who}.\n" if who else ""))
        if fields:
            lines.append("\n| member | type | meaning |\n|---|---|---|\n")
            lines += [f"| `{member}` | `{cell(kind)}` | {cell(meaning)} |\n" for member, kind, meaning in fields]
    return "".join(lines)


def reports() -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Yield each report class of the acts: its name, its first paragraph, and its fields as (name, type, text)."""
    known = {"Report"}
    for path in sorted((_SOURCE / "acts").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and known & {ast.unparse(base) for base in node.bases}:
                known.add(node.name)
                yield node.name, paragraph(ast.get_docstring(node) or ""), fields_of(node)


def stored() -> str:
    """Return the page of stored values, made from the models."""
    lines = [
        "# Stored values\n\n",
        _MADE,
        (
            "What the corpus holds as JSON: `traces/segments` a *Trace* per line, `traces/annotations` an *Annotation*"
            " per line, `ledger.jsonl` a *Decision* per line, an export's `manifest.json` a *Manifest*, the"
            " `tracemark-manifest.json` of `export atif` an *Interchange*, the `manifest.json` of a failure log a"
            " *FailureLog*; what a trajectory carries in"
            " `extra.tracemark` is *CarriedFacts*. Members are typed strictly, unknown ones"
            " are refused. `Maybe[…]` marks a member that may be absent; null is never written for it.\n"
        ),
    ]
    for module in ("trace", "stamp", "annotation", "decision", "export", "interchange", "failure_log", "carried"):
        tree = ast.parse((_SOURCE / "model" / f"{module}.py").read_text(encoding="utf-8"))
        choices = {
            ast.unparse(node.targets[0]): ast.unparse(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal[")
        }
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and (fields := fields_of(node)):
                lines.append(f"\n## {node.name}\n\n{paragraph(ast.get_docstring(node) or '')}\n\n")
                lines.append("| member | type | meaning |\n|---|---|---|\n")
                lines += [
                    f"| `{name}` | `{cell(choices.get(kind, kind))}` | {cell(text)} |\n" for name, kind, text in fields
                ]
    return "".join(lines)


_SECTIONS = (
    ("accepted", "Accepted"),
    ("ingest", "IngestParams"),
    ("evaluation", "Params"),
    ("export", "ExportParams"),
    ("export.sft", "Caps"),
    ("gates", "GateParams"),
    ("gates.candidates", "CandidateParams"),
    ("failures", "FailureParams"),
    ("plan", "PlanParams"),
)
"""The sections of params.yaml, each with the class whose fields are its members."""
_OF_EVALUATION = {"evaluation": "tasks", "evaluation_attempts": "attempts"}
"""The members of `evaluation`, by the fields of `Params` that hold them."""
_IN_YAML = {
    "str": "text",
    "str | None": "text, or `null`",
    "int": "whole number",
    "int | None": "whole number, or `null`",
    "float": "number",
    "bool": "`true` or `false`",
    "Mapping[str, float]": "mapping of texts to numbers",
    "Policy": "text",
    "tuple[str, ...]": "list of texts",
    "tuple[int, int] | None": "`[FEWEST, MOST]`, or `null`",
    "frozenset[str]": "list of texts, or `{file: PATH}`",
}
"""What a member of each type is in YAML."""


def parameters() -> str:
    """Return the page of params.yaml, made from the parameters' classes."""
    tree = ast.parse((_SOURCE / "ledger" / "params.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    lines = [
        "# params.yaml\n\n",
        _MADE,
        (
            "What the commands and the pipeline are told; it lies in the root of a corpus, and `tracemark init` writes"
            " one with every default. What the file does not state has its default, and so has a corpus without the"
            " file. A member that is not listed here, one given twice, or a value of another kind is an error that"
            " names the line (exit code 2): a limit that is misspelt must not keep its default in silence.\n\n"
            "| member | value | default | meaning |\n|---|---|---|---|\n"
        ),
    ]
    for section, owner in _SECTIONS:
        for name, kind, text in fields_of(classes[owner]):
            # of `Params` itself two fields are members, and the others are sections
            members = _OF_EVALUATION if owner == "Params" else {name: name}
            if name in members and kind in _IN_YAML:
                member = f"{section}.{members[name]}"
                default = _yaml(getattr(getattr(params_module, owner)(), name))
                meaning = re.sub(r"\bNone\b", "`null`", cell(text))
                lines.append(f"| `{member}` | {_IN_YAML[kind]} | `{default}` | {meaning} |\n")
    lines.append(
        "\n## Policies\n\nFrom the strictest to the widest; what evidence is, and when a harness *fits* a trace, is"
        " told [elsewhere](../concepts/evidence.md).\n\n| `export.evidence` | takes a trace when |\n|---|---|\n"
    )
    texts = texts_below(classes["Policy"])
    lines += [f"| `{policy.value}` | {cell(texts[policy.name])} |\n" for policy in params_module.Policy]
    return "".join(lines)


def _yaml(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value or "null")
    return json.dumps(list(value) if isinstance(value, (tuple, frozenset)) else value)


def importers() -> str:
    """Return the page of importers, made from their modules."""
    lines = [
        "# Importers\n\n",
        _MADE,
        (
            "What of a source reaches a trace, what does not, and what a trace says that its source did not. The format"
            " of a file is told by its content (`--format` decides a tie). Whatever is altered on the way is named in"
            " the trace's `source.repairs`; a record that cannot be read is kept as refused. Run and outcome are those"
            " of [stored values](stored.md).\n"
        ),
    ]
    for name in IMPORTERS.names():
        module = sys.modules[type(IMPORTERS.load(name)).__module__]
        if not module.__name__.startswith("tracemark."):
            continue
        lines.append(f"\n## {name}\n\n{_prose(module)}\n")
        shown = ", ".join(f"`{component}`" for component in IMPORTERS.load(name).shows)
        lines.append(f"\n**May show of a harness:** {shown or 'nothing'}.\n")
        if name == "openai-chat":
            lines.append(f"\n### How messages become steps\n\n{_prose(conversation)}\n")
        if hasattr(module, "MEMBERS"):
            lines.append("\n### What is read for run and outcome\n\n| in the source | becomes |\n|---|---|\n")
            lines += [f"| {cell(member)} | {cell(place)} |\n" for member, place in module.MEMBERS]
        lines.append(
            "\n### Success\n\nIn the order in which it is looked for.\n\n| in the source | status |\n|---|---|\n"
        )
        lines += [f"| {cell(words)} | {cell(status)} |\n" for words, status in module.SUCCESS]
    lines.append(f"\n## batch.yaml\n\n{_prose(batch)}\n")
    return "".join(lines)


def recorder() -> str:
    """Return the page of the recorder's Python API: `tracemark.record`, and what the recorder in its block can do."""
    lines = ["# Recorder\n\n", _MADE, _prose(record_module), "\n"]
    public = {name: value for name, value in vars(record_module.Recorder).items() if not name.startswith("_")}
    methods: list[Any] = [value for value in public.values() if inspect.isfunction(value)]
    told = {name: value for name, value in public.items() if isinstance(value, property)}
    for function in (record_module.record, *methods):
        receiver = "tracemark" if function is record_module.record else "recorder"
        given = [one for name, one in inspect.signature(function).parameters.items() if name != "self"]
        arguments = ", ".join(str(one.replace(annotation=one.empty)) for one in given)
        lines.append(f"\n## {receiver}.{function.__name__}({arguments})\n")
        lines.append(f"\n```text\n{inspect.getdoc(function)}\n```\n")
    lines += [f"\n## recorder.{name}\n\n```text\n{inspect.getdoc(value)}\n```\n" for name, value in told.items()]
    return "".join(lines)


_LISTS = re.compile(r"^(Keeps|Drops|Invents|Success|Known limits?|Holds no harness evidence): ", re.MULTILINE)


def _prose(module: ModuleType) -> str:
    """Return a module's docstring as Markdown: each of its lists (*keeps*, *drops*, …) is a paragraph."""
    text = inspect.cleandoc(module.__doc__ or "")
    return _LISTS.sub(r"\n**\1:** ", text).replace("\n\n\n", "\n\n")


def questions() -> dict[str, list[str]]:
    """Return for each report class the commands that it answers, read from the commands' calls of acts."""
    answers: dict[str, list[str]] = {}
    for path in COMMANDS:
        module = _SOURCE / "cli" / "commands" / f"{path.replace(' ', '_')}.py"
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for name in _returns(ast.unparse(node.func.value), node.func.attr):
                    answers.setdefault(name, []).append(path)
    return answers


def _returns(module: str, function: str) -> list[str]:
    path = _SOURCE / "acts" / f"{module}.py"
    if not path.is_file():
        return []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function and node.returns is not None:
            return [part.id for part in ast.walk(node.returns) if isinstance(part, ast.Name)]
    return []


def _first_line(error: type) -> str:
    return (inspect.getdoc(error) or "").splitlines()[0]


WRITERS = {
    "commands.md": commands,
    "exit-codes.md": exit_codes,
    "findings.md": findings,
    "importers.md": importers,
    "json.md": json_members,
    "params.md": parameters,
    "recorder.md": recorder,
    "statistics.md": stats_page.page,
    "stored.md": stored,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` name those that differ; return 1 when there is one."""
    stale = []
    for name, write in WRITERS.items():
        text, path = write(), PAGES / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            PAGES.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    verb = "not current" if "--check" in arguments else "written"
    for name in stale:
        print(f"docs/reference/{name}: {verb}")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
