"""The file `params.yaml`, read strictly and written with care.

Reading: an unknown key, a key given twice, or a value of another type is an error that names the line: a misspelt limit
that silently keeps its default is worse than none. A file or a section that is absent has its defaults.

Writing touches the characters of one value and no others, so comments, order, quotes and line ends survive. The ledger
is written before this file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node

from tracemark.digest import is_fingerprint
from tracemark.durable import CrashPoint, crash_point, is_there, own_file, read_regular, why_unread, write_atomic
from tracemark.errors import IrregularFileError, ParamsError
from tracemark.ledger.params import Accepted, Caps, ExportParams, IngestParams, Params, Policy


def read_params(path: Path) -> Params:
    """Read `params.yaml`; a file that does not exist has the defaults.

    Raises:
        ParamsError: when it is no YAML, has an unknown or repeated key or a value of another type, or names a file of
            evaluation tasks that cannot be read; `where` is the file and the line.
    """
    if not is_there(path):
        return Params()
    try:
        text = read_regular(path).decode("utf-8")
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error)
        raise ParamsError(f"it cannot be read: {reason}", where=path.name, hint=hint) from None
    except UnicodeDecodeError as error:
        raise ParamsError(f"not UTF-8 at byte {error.start}", where=path.name, hint="save it as UTF-8") from None
    loaded = _load(text, path.name)
    given = _checked(loaded, _SCHEMA, path.name, "")
    export = dict(given.get("export", {}))
    caps = Caps(**export.pop("sft", {}))
    tasks = given.get("evaluation", {}).get("tasks", ())
    return Params(
        accepted=Accepted(**given.get("accepted", {})),
        ingest=IngestParams(**given.get("ingest", {})),
        evaluation=_evaluation(tasks, path, _line_of(loaded.get("evaluation"), "tasks", path.name)),
        evaluation_file=str(tasks) if isinstance(tasks, PurePosixPath) else None,
        export=ExportParams(**export, sft=caps),
    )


def set_accepted(path: Path, fingerprint: str | None) -> None:
    """Write `accepted.harness`, atomically, and leave every other character of the file as it is.

    Args:
        path: the file; created when missing.
        fingerprint: the accepted harness; None writes `null`.

    Raises:
        ParamsError: when the file is not usable, or the value cannot be changed alone (it is an alias, for instance).
        IrregularFileError: when it is a link that leads out of the corpus.
    """
    path = own_file(path)
    value = fingerprint or "null"
    before = read_regular(path).decode("utf-8") if is_there(path) else ""
    expected = _load(before, path.name)
    expected["accepted"] = {**(expected.get("accepted") or {}), "harness": fingerprint}
    after = _spliced(before, value)
    if not _holds(after, expected):
        raise ParamsError(
            "accepted.harness cannot be changed without changing something else",
            where=path.name,
            hint=f"set it by hand: accepted.harness: {value}",
        )
    if after != before:
        write_atomic(path, after.encode("utf-8"))
    crash_point(CrashPoint.PARAMS_WRITTEN)


# --- writing ---------------------------------------------------------------------------------------------------------


def _spliced(text: str, value: str) -> str:
    """Return `text` with `accepted.harness` set to `value` and nothing else changed."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = YAML(pure=True).compose(text)
    found = _member(root, "accepted")
    if found is None:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}accepted:{newline}  harness: {value}{newline}"
    accepted = found[1]
    harness = _member(accepted, "harness")
    if harness is not None:
        return _replaced(text, harness, value)
    if not isinstance(accepted, MappingNode):
        return _replaced(text, found, f"{{harness: {value}}}")
    start: int = accepted.start_mark.index
    if accepted.flow_style:
        rest = ", " if accepted.value else ""
        return f"{text[: start + 1]}harness: {value}{rest}{text[start + 1 :]}"
    indent = " " * accepted.start_mark.column
    return f"{text[:start]}harness: {value}{newline}{indent}{text[start:]}"


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


_Check = Callable[[Any], Any]
"""Turns a value into what `Params` holds, or raises `_UnusableError` with what was expected."""


_GREATEST = 2**63 - 1
"""The greatest number: sizes and counts beyond it are none that any system has."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]")
"""What nobody sees in an id and no id means: control characters, line ends, a byte order mark within a text."""

_NO_LINE_OF_IDS = re.compile(r"""[\[\]{}"]|- """)
"""How lines of JSON, and of a list in YAML, begin."""


_COMPARE = "correct it; `tracemark init DIR` writes one with every default, to compare with"
_LIST_HERE = "put the file there, one id a line, or list the ids in params.yaml: tasks: [ID, …]"


class _UnusableError(Exception):
    """A value is not what was expected."""


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
            except _UnusableError as error:
                message = f"{prefix}{key}: {error}, not {_shown(value)}"
                raise ParamsError(message, where=where, hint=_hint(prefix, key)) from None
        elif value is not None:
            if not isinstance(value, dict):
                hint = f"below {prefix}{key} stand: {', '.join(check)}"
                raise ParamsError(f"{prefix}{key}: expected a mapping, not {_shown(value)}", where=where, hint=hint)
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
    value = () if prefix == "evaluation." else attrgetter(prefix + key)(Params())
    shown = list(value) if isinstance(value, tuple) else "null" if value is None else value
    return f"correct it, or take it out: the default is {shown}"


def _shown(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > _GREATEST.bit_length():
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def _fingerprint(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and is_fingerprint(value)):
        raise _UnusableError("expected a fingerprint (tm1: and 64 hexadecimal digits) or null")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _UnusableError("expected a text (in quotes, where it looks like a number)")
    return str(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _UnusableError("expected a list of texts")
    return tuple(_text(item) for item in value)


def _task(text: str) -> str:
    """Return a task id as traces name tasks: with white space around it or what no one sees in it, it is none's."""
    task = text.strip()
    if not task or _UNSEEN.search(task):
        raise _UnusableError("expected the id of a task, without control characters")
    return task


def _tasks(value: Any) -> tuple[str, ...] | PurePosixPath:
    if isinstance(value, list):
        return tuple(map(_task, _texts(value)))
    if not isinstance(value, dict) or list(value) != ["file"]:
        raise _UnusableError("expected a list of task ids, or {file: PATH}")
    file = PurePosixPath(_text(value["file"]))
    if file.is_absolute() or ".." in file.parts:
        raise _UnusableError("expected a path inside the corpus")
    return file


def _whole(value: Any, least: int, otherwise: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _UnusableError(f"expected a whole number from {least}{otherwise}")
    if value > _GREATEST:
        raise _UnusableError(f"expected a whole number from {least} to {_GREATEST}{otherwise}")
    return int(value)


def _count(value: Any) -> int:
    return _whole(value, 0)


def _size(value: Any) -> int:
    return _whole(value, 1)


def _limit(value: Any) -> int | None:
    return None if value is None else _whole(value, 1, ", or null for no limit")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _UnusableError("expected a number")
    # the order spares the conversion of a whole number that no float can hold
    if abs(value) > _GREATEST or not math.isfinite(value):
        raise _UnusableError(f"expected a number from -{_GREATEST} to {_GREATEST}")
    return float(value)


def _range(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or _count(value[0]) > _count(value[1]):
        raise _UnusableError("expected [FEWEST, MOST], or null for no limit")
    return int(value[0]), int(value[1])


def _one_of(*choices: str) -> _Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise _UnusableError(f"expected one of {', '.join(choices)}")
        return str(value)

    return check


def _policy(value: Any) -> Policy:
    return Policy(_one_of(*Policy)(value))


_SCHEMA: dict[str, Any] = {
    "accepted": {"harness": _fingerprint, "model": _optional_text},
    "ingest": {
        "success_reward": _number,
        "max_record": _size,
        "max_expanded": _size,
        "inbox": _one_of("partial", "complete"),
    },
    "evaluation": {"tasks": _tasks},
    "export": {
        "evidence": _policy,
        "models": _texts,
        "sft": {"per_task": _limit, "total": _limit, "minimum": _count, "tool_calls": _range},
    },
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
                f"evaluation.tasks: expected the id of a task, not {_shown(line)}", where=f"{name}:{number}", hint=hint
            )
        try:
            yield _task(line)
        except _UnusableError as error:
            raise ParamsError(
                f"evaluation.tasks: {error}, not {_shown(line)}", where=f"{name}:{number}", hint=hint
            ) from None
