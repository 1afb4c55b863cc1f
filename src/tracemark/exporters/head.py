"""What the filter judges by, held against the stored line itself.

The strict filter reads the catalogue, a projection that may be damaged or of another program. The line is read for its
row anyway, and its head is small: so what the catalogue says of a trace is compared with what the line says, and no row
is written on the word of the catalogue alone. Of a trace that was stated again (by annotations or decisions) the
catalogue says more than the line, and nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tracemark.errors import IntegrityError
from tracemark.model.trace import statement
from tracemark.store.row import HEAD_FIELDS, head_of, head_values
from tracemark.store.selection import State

Head: TypeAlias = Mapping[str, str | int | bytes | None]
"""What the head of a line says, by the names of `TraceRow`."""

_JUDGED = (
    "raw",
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


def head_in(state: State) -> Head | None:
    """Return what the catalogue says that the head of a trace's line says; None for a trace that was stated again."""
    return None if state.restated else {name: getattr(state.row, name) for name in _JUDGED}


def require_same(line: bytes, trace_id: str, head: Head | None) -> None:
    """Make sure that the catalogue says what the stored line says.

    Args:
        line: the stored line.
        trace_id: the trace's id.
        head: what `head_in` returned; None compares nothing.

    Raises:
        IntegrityError: when they differ, or the line has no such head.
    """
    if head is None:
        return
    try:
        said = head_of(line)
        values: dict[str, object] = dict(zip(HEAD_FIELDS, head_values(**statement(said)), strict=True))
        values["raw"] = bytes.fromhex(said["source"].get("raw", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(f"a line is not a trace: {error}", where=trace_id, hint="tracemark check") from None
    wrong = [name for name in _JUDGED if values[name] != head[name]]
    if wrong:
        raise IntegrityError(
            "the catalogue does not say what the stored trace says of its " + ", ".join(wrong),
            where=trace_id,
            hint="tracemark reindex, then again",
        )
