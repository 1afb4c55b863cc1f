"""Rows of one training set must not prove to be of two harnesses, whatever anybody claims of them.

A claim and the content that a harness is compared with may agree for two runs that their own files tell apart: one with
parallel tool calls, one without, under a manifest that says nothing of it. What the files hold whole of handlers and
runtime (form `constant`) is compared here among the rows that are taken. Prompts and tools are not: these are compared
with the harness itself, which may let them vary.

Invariants:
- only what proves a difference is compared: a part that one of two rows does not show decides nothing;
- rows of harnesses that differ in a component, and were declared equivalent all the same, may differ in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracemark.store.row import head_of

_COMPARED = ("observation_handlers", "runtime")
_FORM = "constant"
_MARK = b'"form":"constant"'


class Shown(NamedTuple):
    """What a stored trace shows of one part, held whole by its source."""

    component: str
    """One of the components that are compared."""
    part: str
    """The part's name."""
    digest: str
    """64 hexadecimal digits."""


class Difference(NamedTuple):
    """A part of which rows of one set show more than one."""

    component: str
    """Its component."""
    part: str
    """Its name."""
    rows: tuple[tuple[int, str], ...]
    """For each thing that is shown: how many rows show it, and the id of the first; most rows first."""


def shown_in(line: bytes) -> tuple[Shown, ...]:
    """Return what a stored trace shows of handlers and runtime, held whole; empty when nothing.

    Args:
        line: the stored line.
    """
    if _MARK not in line:
        return ()
    return shown_by(head_of(line)["harness"])


def shown_by(stamp: Mapping[str, Any]) -> tuple[Shown, ...]:
    """Return what a stamp holds of handlers and runtime, held whole; empty when nothing."""
    observed: Mapping[str, Any] = stamp.get("observed") or {}
    return tuple(
        Shown(component, entry["part"], entry["digest"])
        for component in _COMPARED
        for entry in observed.get(component, ())
        if entry["form"] == _FORM
    )


class Row(NamedTuple):
    """One row of a set."""

    trace: str
    """The id of its trace."""
    shown: Iterable[Shown]
    """What the trace shows."""
    declared: Mapping[str, str]
    """For each component what the row's harness declares of it; rows are compared where it is the same."""


def differences(rows: Iterable[Row]) -> list[Difference]:
    """Return the parts of which rows of one declared component show more than one, in order of component and name."""
    found: dict[tuple[str, str, str], dict[str, tuple[int, str]]] = {}
    for trace, shown, declared in rows:
        for component, part, value in shown:
            seen = found.setdefault((component, part, declared.get(component, "")), {})
            count, first = seen.get(value, (0, trace))
            seen[value] = (count + 1, first)
    return [
        Difference(component, part, tuple(sorted(seen.values(), key=lambda one: (-one[0], one[1]))))
        for (component, part, _), seen in sorted(found.items())
        if len(seen) > 1
    ]


def worded(found: list[Difference]) -> str:
    """Return in one sentence that rows are of more than one harness, and by what they show it."""
    first = found[0]
    counts = ", ".join(f"{count} like {trace[:12]}" for count, trace in first.rows[:4])
    more = f", and {len(found) - 1} more parts" if len(found) > 1 else ""
    return f"their files show more than one {first.component}/{first.part} ({counts}){more}"
