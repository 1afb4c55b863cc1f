"""A segment on its way: written and synced by a worker, committed by the process that started it.

A worker cannot name what it writes before it ends, because the name is the content's. It packs each partition's lines
to a temporary in a folder of its caller, and hands back drafts: small, picklable, and worthless until
`Store.commit_segment` gives them their names.

Invariants:
- a draft travels between processes as names alone: the rows of its lines wait on disk beside it, so neither a worker
  nor its caller holds more than the rows of one segment for each partition;
- a segment is closed after `LINES` lines, however small they are.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemark.store.layout import partition_of
from tracemark.store.row import Projection, TraceRow
from tracemark.store.segment import Location, Packed, Packer

LINES = 16_384
"""How many lines one segment holds at most; of ordinary traces a job gives fewer."""


@dataclass(slots=True)
class SegmentDraft:
    """One finished temporary of trace lines."""

    temporary: Path
    """The complete, synced file, in a folder that `Store.workspace` gave."""
    name: str
    """SHA-256 of its bytes, 64 hexadecimal digits."""
    partition: str
    """The partition of all its lines: 16 hexadecimal digits or `none`."""
    size: int
    """Its size in bytes."""
    _rows: tuple[tuple[Projection, ...], tuple[Location, ...]] | None = field(default=None, repr=False, compare=False)

    @property
    def projections(self) -> Sequence[Projection]:
        """What the catalogue will hold of each line; read from disk when first asked for."""
        return self._read()[0]

    @property
    def locations(self) -> Sequence[Location]:
        """Where each line stands; as many as projections."""
        return self._read()[1]

    def discard(self) -> None:
        """Drop the temporary and what waits beside it."""
        self.temporary.unlink(missing_ok=True)
        _rows_of(self.temporary).unlink(missing_ok=True)

    def _read(self) -> tuple[tuple[Projection, ...], tuple[Location, ...]]:
        if self._rows is None:
            # a file of our own, in a private folder, written a moment ago
            projections, locations = pickle.loads(_rows_of(self.temporary).read_bytes())  # noqa: S301
            self._rows = (
                tuple([Projection(TraceRow._make(row), *others) for row, *others in projections]),
                tuple([Location._make(location) for location in locations]),
            )
        return self._rows

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without the rows."""
        return SegmentDraft, (self.temporary, self.name, self.partition, self.size)


class DraftWriter:
    """Packs trace lines, partition by partition.

    Args:
        folder: where temporaries are written; from `Store.workspace`.
        stem: begins the name of each temporary; unique among the writers of one folder.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._open: dict[str, tuple[Packer, list[Projection]]] = {}
        self._drafts: list[SegmentDraft] = []

    def add(self, line: bytes, projection: Projection) -> None:
        """Append a canonical trace line, given without its line feed, to the segment of its partition.

        Raises:
            OSError: when the temporary cannot be written.
        """
        partition = partition_of(projection.row.fingerprint)
        if partition not in self._open:
            temporary = self._folder / f"{self._stem}.{partition}.{len(self._drafts)}"
            self._open[partition] = (Packer(temporary), [])
        packer, projections = self._open[partition]
        packer.add(line)
        projections.append(projection)
        if len(projections) == LINES:
            self._finish(partition)

    def close(self) -> list[SegmentDraft]:
        """Finish all segments; first those that were full, in the order in which they filled, then by partition.

        Raises:
            OSError: when a temporary cannot be written or synced.
        """
        for partition in sorted(self._open):
            self._finish(partition)
        drafts, self._drafts = self._drafts, []
        return drafts

    def _finish(self, partition: str) -> None:
        packer, projections = self._open.pop(partition)
        packed = packer.close()
        if packed is not None:
            self._drafts.append(_draft(packed, partition, projections))


def _draft(packed: Packed, partition: str, projections: list[Projection]) -> SegmentDraft:
    # plain tuples are written in a third of the time that named ones take
    rows = [(tuple(p.row), *p[1:]) for p in projections], [tuple(place) for place in packed.locations]
    _rows_of(packed.temporary).write_bytes(pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL))
    return SegmentDraft(packed.temporary, packed.name, partition, packed.size)


def _rows_of(temporary: Path) -> Path:
    return temporary.with_name(temporary.name + ".rows")
