"""Stored traces as a table that fits: a line per trace, its status in sight.

Invariants:
- no line is wider than the terminal, or elsewhere than 120 columns;
- id and status come first and are always there;
- ids, digests, numbers and flags are whole; names and texts that are too long are cut, an ellipsis at their end (of a
  source, at its beginning), but only so far that they still say something;
- where that is not enough, columns are left out, the least telling first. JSON has every member whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tracemark.acts.traces import TraceFound
from tracemark.cli.fitted import Fit, write_fitted
from tracemark.cli.layout import brief, cell, label

Row = Mapping[str, Any]

_SEEN = {
    "prompt_templates": "prompts_seen",
    "tool_bindings": "tools_seen",
    "observation_handlers": "handlers_seen",
    "runtime": "runtime_seen",
}
"""Component to the column of what the content shows of it, where nobody says what made the trace."""

_ORDER = (
    *("trace_id", "status", "harness", "fingerprint", "evidence", "flags", "task", "reward", "model"),
    *("tool_calls", "steps", *_SEEN.values(), "format", "source"),
)
_FIT = Fit(
    least={"task": 24, "model": 16, "source": 16, "harness": 16},
    left_out=(
        *("steps", "format", "tool_calls", "source", "model", "runtime_seen", "handlers_seen", "reward"),
        *("fingerprint", "tools_seen", "prompts_seen", "task", "evidence", "harness", "flags"),
    ),
    ends=frozenset({"source"}),
)

_SEARCHED = "the task, the first user message, the last message and the names of the tools"
"""What of a trace the index holds that is not one of everything."""


def write_traces(rows: Sequence[Row], stream: TextIO) -> None:
    """Write rows (members as `traces list` documents them) as a table to `stream`; unused columns are left out."""
    write_fitted(_columns(rows), _FIT, stream)


def about_search(found: TraceFound) -> str | None:
    """Return what must be known of a search as a whole: that its answer is cut short, or in what nothing was found."""
    if found.more:
        return f"{len(found.traces)} shown, and there are more; --limit N shows so many"
    if found.traces or found.lacks_data:
        return None
    if found.everything:
        return "no traces: the whole text of every trace was searched"
    return f"no traces: searched were {_SEARCHED}; after `tracemark reindex --text` everything is searched"


def _columns(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the texts of each column that is used, its head first."""
    found = {}
    seen = {column: component for component, column in _SEEN.items()}
    for name in _ORDER:
        values = [row["observed"].get(seen[name]) if name in seen else row.get(name) for row in rows]
        texts = [brief(cell(value)) for value in values]
        if any(texts):
            found[name] = [label(name), *texts]
    return found
