"""A list of tasks as people and tools write it: JSON Lines, or one id a line.

A line that begins with `{` is a JSON object with `task`, and `domain` and `class` where known; what else it holds means
nothing here, so a plan can be read back, and so can most task files of benchmarks. Every other line is the id of a
task, `TASK` or `DOMAIN/TASK`; blank lines and lines that begin with `#` are nothing.

Invariant:
- a line that is no task is an error: a task that is silently left out would never be run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.errors import UsageError
from tracemark.gates.plan import REASONS

_HINT = 'write one id a line, or JSON Lines: {"task": ID, "domain": DOMAIN, "class": CLASS}'


class Listed(NamedTuple):
    """One task of a list."""

    task: str
    """The task, as the list has it."""
    domain: str | None = None
    """Its domain; None where the list does not say."""
    group: str | None = None
    """Its class; None where the list does not say."""
    line: bool = False
    """Whether the id is a line of its own, which may tell the domain as well."""


def parse(data: bytes, name: str) -> list[Listed]:
    """Return the tasks of a list, in its order.

    Args:
        data: its bytes.
        name: how messages name it.

    Raises:
        UsageError: when a line is no task; `where` is the list and the line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"not UTF-8 at byte {error.start}", where=name, hint="save it as UTF-8") from None
    # not splitlines: a name may hold what only Python takes for the end of a line
    lines = text.replace("\r\n", "\n").split("\n")
    return [
        _listed(line.strip(), f"{name}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def is_plan(data: bytes) -> bool:
    """Return whether a file holds nothing but lines that a plan has, be it none."""
    return all(map(_is_planned, data.removesuffix(b"\n").split(b"\n"))) if data else True


def known(listed: Iterable[Listed], stored: Iterable[tuple[str, str | None]]) -> dict[tuple[str, str | None], str]:
    """Return the tasks of a list and of the store together, each once, by task and domain, with its class.

    An entry without a domain means every task of that name, as `TASK` or as `DOMAIN/TASK`, that is stored or that the
    list has with its domain. Only where there is none, it is a task of its own: of a line that holds a `/`, the one
    after it in the domain before it, else one without a domain. The class of a task of which nobody states one is its
    domain, or empty.

    Raises:
        UsageError: when a list gives one task two classes.
    """
    entries = list(listed)
    found: dict[tuple[str, str | None], str] = {one: one[1] or "" for one in stored}
    found |= {(one.task, one.domain): one.domain for one in entries if one.domain}
    named: dict[str, list[tuple[str, str | None]]] = {}
    _name(named, found)
    # those that tell a domain come first, since an id without one means theirs wherever it stands
    for one in sorted(entries, key=lambda one: _apart(one).domain is None):
        if one.task not in named and not one.domain:
            _name(named, [(_apart(one).task, _apart(one).domain)])
    stated: dict[tuple[str, str | None], str] = {}
    for one in entries:
        meant = [(one.task, one.domain)] if one.domain else named[one.task]
        for key in meant:
            found.setdefault(key, key[1] or "")
            if one.group is None:
                continue
            if stated.setdefault(key, one.group) != one.group:
                message = f"the task {one.task!r} is given two classes, {stated[key]!r} and {one.group!r}"
                raise UsageError(message, hint="leave one of them")
            found[key] = one.group
    return found


def _name(named: dict[str, list[tuple[str, str | None]]], tasks: Iterable[tuple[str, str | None]]) -> None:
    """Add tasks to those of each name, which are `TASK` and `DOMAIN/TASK`."""
    for task, domain in tasks:
        for name in {task, f"{domain}/{task}" if domain else task}:
            named.setdefault(name, []).append((task, domain))


def _apart(one: Listed) -> Listed:
    """Return an entry with the domain that its line tells, if it does."""
    domain, _, task = one.task.partition("/")
    return one._replace(task=task, domain=domain) if one.line and domain and task else one


def _listed(line: str, where: str) -> Listed:
    if not line.startswith("{"):
        if line.startswith(("[", '"')):
            raise UsageError("expected the id of a task, or a JSON object", where=where, hint=_HINT)
        return Listed(_text(line, "the id", where), line=True)
    try:
        members: Any = digest.loads(line.encode()).value
    except digest.NotJSONError as error:
        raise UsageError(f"not a JSON value: {error}", where=where, hint=_HINT) from None
    task = _text(members.get("task"), "`task`", where)
    domain, group = (
        None if members.get(member) is None else _text(members[member], f"`{member}`", where)
        for member in ("domain", "class")
    )
    return Listed(task, domain, group)


def _is_planned(line: bytes) -> bool:
    try:
        members = digest.loads(line).value
    except digest.NotJSONError:
        return False
    # as `Planned.as_json` gives them, whatever the order
    needed, allowed = {"task", "attempts", "reason"}, {"task", "domain", "class", "attempts", "reason"}
    return isinstance(members, dict) and needed <= members.keys() <= allowed and members["reason"] in REASONS


def _text(value: Any, what: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or any(_is_control(character) for character in value):
        raise UsageError(f"{what} must be a text without control characters", where=where, hint=_HINT)
    return value


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"
