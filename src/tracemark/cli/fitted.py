"""A table that fits: a line per row, in the width of the terminal, or elsewhere in 120 columns.

Invariants:
- texts that may be cut are cut first, an ellipsis in place of the rest, but only so far that they still say something;
- where that is not enough, columns are left out, the least telling first.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from tracemark.cli.layout import write_padded
from tracemark.cli.text import cut, width

COLUMNS = 120
"""The greatest width of a table that is not shown on a terminal."""

_GAP = 2


@dataclass(frozen=True, slots=True)
class Fit:
    """How the columns of a table give way."""

    least: Mapping[str, int]
    """Columns whose texts may be cut, to what width at most; the first of them gets what room there is."""
    left_out: Sequence[str]
    """Columns that may be left out, the first one first."""
    ends: frozenset[str] = frozenset()
    """Columns of whose texts the end is kept, and not the beginning."""


def write_fitted(columns: Mapping[str, Sequence[str]], fit: Fit, stream: TextIO) -> None:
    """Write columns of texts (already visible), the head of each first, as a table to `stream`."""
    room = shutil.get_terminal_size().columns if stream.isatty() else COLUMNS
    widths = _widths({name: max(map(width, texts)) for name, texts in columns.items()}, room, fit)
    shown = [[cut(text, size, end=name in fit.ends) for text in columns[name]] for name, size in widths.items()]
    write_padded(list(zip(*shown, strict=True)), stream)


def _widths(natural: Mapping[str, int], room: int, fit: Fit) -> dict[str, int]:
    """Return the width of each column that is shown, given how wide its texts are."""
    least = {name: min(size, fit.least.get(name, size)) for name, size in natural.items()}
    for name in fit.left_out:
        if _total(least) <= room:
            break
        least.pop(name, None)
    left = max(0, room - _total(least))
    for name in filter(least.__contains__, fit.least):
        more = min(left, natural[name] - least[name])
        least[name] += more
        left -= more
    return least


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)
