"""The file `params.yaml`, read strictly and written with care.

Reading: an unknown key, a key given twice, or a value of another type is an error that names the line: a misspelt limit
that silently keeps its default is worse than none. A file or a section that is absent has its defaults.

Writing touches the characters of one value and no others, so comments, order, quotes and line ends survive. The ledger
is written before this file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node

from tracemark.durable import CrashPoint, crash_point, is_there, own_file, read_regular, why_unread, write_atomic
from tracemark.errors import IrregularFileError, ParamsError
from tracemark.ledger import params_values as values
from tracemark.ledger.params import (
    Accepted,
    CandidateParams,
    Caps,
    ExportParams,
    FailureParams,
    GateParams,
    IngestParams,
    Params,
    PlanParams,
)


def read_params(path: Path) -> Params:
    """Read `params.yaml`; a file that does not exist has the defaults.

    Raises:
        ParamsError: when it is no YAML, has an unknown or repeated key or a value of another type, or names a file of
            evaluation tasks that cannot be read; `where` is the file and the line.
    """
    loaded = _read(path)
    given = _checked(loaded, _SCHEMA, path.name, "")
    export = dict(given.get("export", {}))
    caps = Caps(**export.pop("sft", {}))
    gates = dict(given.get("gates", {}))
    candidates = CandidateParams(**gates.pop("candidates", {}))
    evaluation = given.get("evaluation", {})
    tasks = evaluation.get("tasks", ())
    return Params(
        accepted=Accepted(**given.get("accepted", {})),
        ingest=IngestParams(**given.get("ingest", {})),
        evaluation=_evaluation(tasks, path, _line_of(loaded.get("evaluation"), "tasks", path.name)),
        evaluation_file=str(tasks) if isinstance(tasks, PurePosixPath) else None,
        evaluation_attempts=evaluation.get("attempts", Params().evaluation_attempts),
        export=ExportParams(**export, sft=caps),
        gates=GateParams(**gates, candidates=candidates),
        failures=FailureParams(**given.get("failures", {})),
        plan=PlanParams(**given.get("plan", {})),
    )


def sections(path: Path) -> frozenset[str]:
    """Return the names of the sections that stand in `params.yaml`, whatever they hold.

    Raises:
        ParamsError: when it cannot be read, or is no YAML.
    """
    return frozenset(_read(path))


def set_accepted(path: Path, value: str | None, half: str = "harness") -> None:
    """Write one half of `accepted`; see `set_pair`.

    Args:
        path: the file; created when missing.
        value: the accepted harness's fingerprint, or the accepted model, `NAME` or `NAME@REVISION`; None writes `null`.
        half: `harness` or `model`.
    """
    set_pair(path, {half: value})


def set_pair(path: Path, halves: Mapping[str, str | None]) -> None:
    """Write halves of `accepted` at once, atomically, and leave every other character of the file as it is.

    Args:
        path: the file; created when missing.
        halves: by `harness` and `model` the values, see `set_accepted`; a half that is absent stays.

    Raises:
        ParamsError: when the file is not usable, or a value cannot be changed alone (it is an alias, for instance).
        IrregularFileError: when it is a link that leads out of the corpus.
    """
    path = own_file(path)
    before, after = _changed(path, halves)
    if after != before:
        write_atomic(path, after.encode("utf-8"))
    crash_point(CrashPoint.PARAMS_WRITTEN)


def require_settable(path: Path, halves: Mapping[str, str | None]) -> None:
    """Make sure that `set_pair` can write these halves; nothing is written.

    Raises:
        ParamsError: as `set_pair` does.
        IrregularFileError: likewise.
    """
    _changed(own_file(path), halves)


def _changed(path: Path, halves: Mapping[str, str | None]) -> tuple[str, str]:
    """Return the text of the file, and what it is with halves set."""
    after = before = read_regular(path).decode("utf-8") if is_there(path) else ""
    for half, value in halves.items():
        after = _set(after, half, value, path.name)
    return before, after


def _set(text: str, half: str, value: str | None, name: str) -> str:
    """Return `text` with one half set; see `set_pair`."""
    expected, written = _load(text, name), _scalar(value)
    expected["accepted"] = {**(expected.get("accepted") or {}), half: value}
    after = _spliced(text, half, written)
    if not _holds(after, expected):
        raise ParamsError(
            f"accepted.{half} cannot be changed without changing something else",
            where=name,
            hint=f"set it by hand: accepted.{half}: {written}",
        )
    return after


# --- writing ---------------------------------------------------------------------------------------------------------


def _scalar(value: str | None) -> str:
    """Return a value as YAML writes it: in quotes where it would be read as something else, or holds what ends it."""
    if value is None:
        return "null"
    # also where it would stand between braces
    if _PLAIN.fullmatch(value) and YAML(pure=True).load(value) == value:
        return value
    # JSON escapes a character beyond the first plane as two halves, which YAML does not join
    escaped = (json.dumps(letter)[1:-1] if letter <= "\uffff" else f"\\U{ord(letter):08X}" for letter in value)
    return f'"{"".join(escaped)}"'


def _spliced(text: str, half: str, value: str) -> str:
    """Return `text` with one half of `accepted` set to `value` and nothing else changed."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = YAML(pure=True).compose(text)
    found = _member(root, "accepted")
    if found is None:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}accepted:{newline}  {half}: {value}{newline}"
    accepted = found[1]
    member = _member(accepted, half)
    if member is not None:
        return _replaced(text, member, value)
    if not isinstance(accepted, MappingNode):
        return _replaced(text, found, f"{{{half}: {value}}}")
    start: int = accepted.start_mark.index
    if accepted.flow_style:
        rest = ", " if accepted.value else ""
        return f"{text[: start + 1]}{half}: {value}{rest}{text[start + 1 :]}"
    indent = " " * accepted.start_mark.column
    return f"{text[:start]}{half}: {value}{newline}{indent}{text[start:]}"


def _replaced(text: str, member: tuple[Node, Node], value: str) -> str:
    key, old = member
    start, end = old.start_mark.index, old.end_mark.index
    if start == end:
        # a value that is absent is marked where the next token stands, which may be lines below
        start = end = text.index(":", key.end_mark.index) + 1
        value = f" {value}"
    return f"{text[:start]}{value}{text[end:]}"


def _member(node: Node | None, key: str) -> tuple[Node, Node] | None:
    """Return the nodes of a member's name and value; None when `node` is no mapping or has no such member."""
    members = node.value if isinstance(node, MappingNode) else []
    return next((member for member in members if member[0].value == key), None)


def _holds(text: str, expected: Any) -> bool:
    try:
        return bool(_load(text, "") == expected)
    except ParamsError:
        return False


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(path: Path) -> Any:
    """Return the mapping in the file; an empty one where there is no file."""
    if not is_there(path):
        return {}
    try:
        text = read_regular(path).decode("utf-8")
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error)
        raise ParamsError(f"it cannot be read: {reason}", where=path.name, hint=hint) from None
    except UnicodeDecodeError as error:
        raise ParamsError(f"not UTF-8 at byte {error.start}", where=path.name, hint="save it as UTF-8") from None
    return _load(text, path.name)


def _load(text: str, name: str) -> Any:
    try:
        value = YAML(pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ParamsError(f"not usable as YAML: {error.problem}", where=f"{name}:{line}", hint=_COMPARE) from None
    except (YAMLError, ValueError) as error:
        # ValueError: what looks like a date or a number and is none, and numbers of thousands of digits
        raise ParamsError(f"not usable as YAML: {str(error).splitlines()[0]}", where=name, hint=_COMPARE) from None
    except RecursionError:
        raise ParamsError("not usable as YAML: nested too deeply", where=name, hint=_COMPARE) from None
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise ParamsError("the file must hold a mapping", where=f"{name}:1", hint=_COMPARE)
    return value


_NO_LINE_OF_IDS = re.compile(r"""[\[\]{}"]|- """)
"""How lines of JSON, and of a list in YAML, begin."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./+@-]*(?::[A-Za-z0-9_./+@-]+)*")
"""Texts that need no quotes, if YAML reads them as texts."""

_COMPARE = "correct it; `tracemark init DIR` writes one with every default, to compare with"
_LIST_HERE = "put the file there, one id a line, or list the ids in params.yaml: tasks: [ID, …]"


def _checked(mapping: Any, schema: Mapping[str, Any], name: str, prefix: str) -> dict[str, Any]:
    """Return the members of `mapping` as `schema` wants them; members that are absent stay absent."""
    found: dict[str, Any] = {}
    for key, value in mapping.items():
        where = _line_of(mapping, key, name)
        if key not in schema:
            known = ", ".join(prefix + known for known in schema)
            raise ParamsError(f"unknown key {prefix}{key}", where=where, hint=f"known here: {known}")
        check = schema[key]
        if callable(check):
            try:
                found[key] = check(value)
            except values.UnusableError as error:
                message = f"{prefix}{key}: {error}, not {values.shown(value)}"
                raise ParamsError(message, where=where, hint=_hint(prefix, key)) from None
        elif value is not None:
            if not isinstance(value, dict):
                hint = f"below {prefix}{key} stand: {', '.join(check)}"
                raise ParamsError(
                    f"{prefix}{key}: expected a mapping, not {values.shown(value)}", where=where, hint=hint
                )
            found[key] = _checked(value, check, name, f"{prefix}{key}.")
    return found


def _line_of(mapping: Any, key: Any, name: str) -> str:
    """Return where a member stands in the file; without a line where it stands in none."""
    # what a merge key (`<<`) brought stands in no line of this mapping
    place = (mapping.lc.data or {}).get(key) if isinstance(mapping, CommentedMap) else None
    return f"{name}:{place[0] + 1}" if place else name


def _hint(prefix: str, key: str) -> str:
    """Return what helps where the value of a member is not usable."""
    if prefix + key == "accepted.harness":
        return "tracemark harness accept NAME --reason TEXT writes it"
    if prefix + key == "accepted.model":
        return "tracemark model accept NAME[@REVISION] --reason TEXT writes it"
    defaults = {"evaluation.tasks": (), "evaluation.attempts": Params().evaluation_attempts}
    value = defaults[prefix + key] if prefix == "evaluation." else attrgetter(prefix + key)(Params())
    shown = list(value) if isinstance(value, tuple) else json.dumps(value) if not isinstance(value, str) else value
    return f"correct it, or take it out: the default is {shown}"


_SCHEMA: dict[str, Any] = {
    "accepted": {"harness": values.fingerprint, "model": values.optional_text},
    "ingest": {
        "success_reward": values.number,
        "max_record": values.size,
        "max_expanded": values.size,
        "inbox": values.one_of("partial", "complete"),
    },
    "evaluation": {"tasks": values.task_ids, "attempts": values.size},
    "export": {
        "evidence": values.policy,
        "models": values.texts,
        "sft": {
            "per_task": values.limit,
            "total": values.limit,
            "minimum": values.count,
            "tool_calls": values.fewest_and_most,
        },
    },
    "gates": {
        "policy": values.one_of("significant", "cotrace"),
        "infrastructure_errors": values.share,
        "keep": values.task_list,
        "pass_all_not_lower": values.yes_or_no,
        "cost_not_above": values.yes_or_no,
        "fresh": values.yes_or_no,
        "candidates": {"harness": values.texts, "model": values.texts},
    },
    "failures": {"conditions": values.optional_path},
    "plan": {"attempts": values.size, "quotas": values.shares, "runs": values.limit},
}


def _evaluation(tasks: tuple[str, ...] | PurePosixPath, path: Path, where: str) -> frozenset[str]:
    """Return the task ids; a file holds one a line, blank lines and lines that begin with `#` count for nothing."""
    if not isinstance(tasks, PurePosixPath):
        return frozenset(tasks)
    file = path.parent / tasks
    try:
        if not file.resolve().is_relative_to(path.parent.resolve()):
            raise ParamsError(
                f"evaluation.tasks: {tasks}: it lies outside the corpus",
                where=where,
                hint="put a file in place of the link, or list the ids in params.yaml: tasks: [ID, …]",
            )
        text = read_regular(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ParamsError(f"evaluation.tasks: {tasks}: not UTF-8", where=where, hint="save it as UTF-8") from None
    except IrregularFileError as error:
        raise ParamsError(f"evaluation.tasks: {tasks}: {error.message}", where=where, hint=error.hint) from None
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: no name of a file; RuntimeError: a symbolic link to itself
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ParamsError(f"evaluation.tasks: {tasks}: {reason}", where=where, hint=_LIST_HERE) from None
    return frozenset(_listed(text, tasks.as_posix()))


def _listed(text: str, name: str) -> Iterator[str]:
    """Yield the ids in a file; a line that is meant otherwise would be an id that no task has, so that its task leaks.

    Raises:
        ParamsError: at such a line.
    """
    for number, line in enumerate(re.split("\r\n|\r|\n", text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        hint = "write one id a line and nothing else; a list in params.yaml takes any id"
        if _NO_LINE_OF_IDS.match(line.lstrip()):
            raise ParamsError(
                f"evaluation.tasks: expected the id of a task, not {values.shown(line)}",
                where=f"{name}:{number}",
                hint=hint,
            )
        try:
            yield values.task_id(line)
        except values.UnusableError as error:
            raise ParamsError(
                f"evaluation.tasks: {error}, not {values.shown(line)}", where=f"{name}:{number}", hint=hint
            ) from None
