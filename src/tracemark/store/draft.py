"""A segment on its way: written and synced by a worker, committed by the process that started it.

A worker cannot name what it writes before it ends, because the name is the content's. It packs each partition's lines
to a temporary in a folder of its caller, and hands back drafts: small, picklable, and worthless until
`Store.commit_segment` gives them their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracemark.store.layout import partition_of
from tracemark.store.row import Projection
from tracemark.store.segment import Location, Packer


@dataclass(frozen=True, slots=True)
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
    projections: tuple[Projection, ...]
    """What the catalogue will hold of each line."""
    locations: tuple[Location, ...]
    """Where each line stands; as many as projections."""


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

    def add(self, line: bytes, projection: Projection) -> None:
        """Append a canonical trace line, given without its line feed, to the segment of its partition.

        Raises:
            OSError: when the temporary cannot be written.
        """
        partition = partition_of(projection.row.fingerprint)
        if partition not in self._open:
            temporary = self._folder / f"{self._stem}.{partition}"
            self._open[partition] = (Packer(temporary), [])
        packer, projections = self._open[partition]
        packer.add(line)
        projections.append(projection)

    def close(self) -> list[SegmentDraft]:
        """Finish all segments, by partition in sorted order; none for a partition without lines.

        Raises:
            OSError: when a temporary cannot be written or synced.
        """
        drafts = []
        for partition, (packer, projections) in sorted(self._open.items()):
            packed = packer.close()
            if packed is not None:
                drafts.append(
                    SegmentDraft(
                        packed.temporary, packed.name, partition, packed.size, tuple(projections), packed.locations
                    )
                )
        self._open = {}
        return drafts
