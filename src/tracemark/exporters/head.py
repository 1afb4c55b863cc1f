"""What the filter judges by, held against the stored line itself.

The strict filter reads the catalogue, a projection that may be damaged or of another program. The line is read for its
row anyway, and its head is small: so what the catalogue says of a trace is compared with what the line says. Of a trace
that was stated again (by annotations or decisions) the head is one of several statements; what the catalogue says of
all of them is compared with the statements themselves (`Reading.require_true`), and with the line only what no other
statement can change. So what a row rests on was read from the stored files; which files there are, and which of their
lines are about a trace, is what the catalogue is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tracemark.digest import JSON
from tracemark.errors import IntegrityError
from tracemark.exporters.select import Facts
from tracemark.model.trace import statement
from tracemark.store.row import HEAD_FIELDS, conduct, head_of, head_values
from tracemark.store.selection import State

Head: TypeAlias = Mapping[str, str | int | bytes | None]
"""What the head of a line says, by the names of `TraceRow`."""

_OF_THE_LINE = ("raw",)
_JUDGED = (
    *_OF_THE_LINE,
    "fingerprint",
    "evidence",
    "corroborated",
    "mixed",
    "task",
    "domain",
    "model",
    "revision",
    "role",
    "rendered",
    "demonstration",
    "status",
    "grader",
)


def head_in(state: State) -> Head:
    """Return what the catalogue says that the line of a trace says before its trajectory."""
    return {name: getattr(state.row, name) for name in (_OF_THE_LINE if state.restated else _JUDGED)}


def require_same(line: bytes, trace_id: str, head: Head) -> None:
    """Make sure that the catalogue says what the stored line says.

    Args:
        line: the stored line.
        trace_id: the trace's id.
        head: what `head_in` returned.

    Raises:
        IntegrityError: when they differ, or the line has no such head.
    """
    try:
        said = head_of(line)
        values: dict[str, object] = dict(zip(HEAD_FIELDS, head_values(**statement(said)), strict=True))
        values["raw"] = bytes.fromhex(said["source"].get("raw", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(f"a line is not a trace: {error}", where=trace_id, hint="tracemark check") from None
    _require_none(trace_id, [name for name in head if values[name] != head[name]])


def require_same_conduct(trajectory: Mapping[str, JSON], known: Facts) -> None:
    """Make sure that the catalogue says what a trajectory says of its steps, as far as the filter reads it.

    Raises:
        IntegrityError: when they differ.
    """
    shown = conduct(trajectory)
    wrong = ["tool_calls"] if shown["tool_calls"] != known.tool_calls else []
    if known.untrainable is None:
        wrong += [name for name in ("copied", "uncalled") if shown[name]]
    _require_none(known.id, wrong)


def _require_none(trace_id: str, wrong: list[str]) -> None:
    if wrong:
        raise IntegrityError(
            "the catalogue does not say what the stored trace says of its " + ", ".join(wrong),
            where=trace_id,
            hint="tracemark reindex, then again",
        )
