"""Stored traces as a table that fits: a line per trace, its status in sight.

Invariants:
- no line is wider than the terminal, or elsewhere than 120 columns;
- id and status come first and are always there;
- ids, digests, numbers and flags are whole; names and texts that are too long are cut, an ellipsis at their end (of a
  source, at its beginning), but only so far that they still say something;
- where that is not enough, columns are left out, the least telling first. JSON has every member whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tracemark.acts.traces import TraceFound
from tracemark.cli.layout import brief, cell, label, write_padded
from tracemark.cli.text import cut, width

Row = Mapping[str, Any]

COLUMNS = 120
"""The greatest width of a table that is not shown on a terminal."""

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
_LEAST = {"task": 24, "model": 16, "source": 16, "harness": 16}
"""Columns whose texts may be cut, to what width at most; the first of them gets what room there is."""

_LEFT_OUT = (
    *("steps", "format", "tool_calls", "source", "model", "runtime_seen", "handlers_seen", "reward"),
    *("fingerprint", "tools_seen", "prompts_seen", "task", "evidence", "harness", "flags"),
)
"""Columns that may be left out, the first one first."""

_GAP = 2

_SEARCHED = "the task, the first user message, the last message and the names of the tools"
"""What of a trace the index holds that is not one of everything."""


def write_traces(rows: Sequence[Row], stream: TextIO) -> None:
    """Write rows (members as `traces list` documents them) as a table to `stream`; unused columns are left out."""
    columns = _columns(rows)
    room = shutil.get_terminal_size().columns if stream.isatty() else COLUMNS
    widths = _widths({name: max(map(width, texts)) for name, texts in columns.items()}, room)
    shown = [[cut(text, size, end=name == "source") for text in columns[name]] for name, size in widths.items()]
    write_padded(list(zip(*shown, strict=True)), stream)


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


def _widths(natural: Mapping[str, int], room: int) -> dict[str, int]:
    """Return the width of each column that is shown, given how wide its texts are."""
    least = {name: min(size, _LEAST.get(name, size)) for name, size in natural.items()}
    for name in _LEFT_OUT:
        if _total(least) <= room:
            break
        least.pop(name, None)
    left = max(0, room - _total(least))
    for name in filter(least.__contains__, _LEAST):
        more = min(left, natural[name] - least[name])
        least[name] += more
        left -= more
    return least


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)
