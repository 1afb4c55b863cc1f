"""What other versions of an importer made of the records that are read now.

Invariants:
- a newer reading replaces an older one of the same record *and* the same run. Equal bytes may be two runs (two trials
  that wrote the same transcript); where both readings name their run and the names differ, neither concerns the other;
- every record that holds a trace counts, not only the one it was first read from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tracemark import digest
from tracemark.store.catalogue import Stored
from tracemark.store.draft import SegmentDraft
from tracemark.store.inheriting import superseding
from tracemark.store.row import TraceRow, trajectory_slice
from tracemark.store.segment import read_lines
from tracemark.store.store import Store


class Readings(NamedTuple):
    """What other versions of the same importer made of the records of a draft."""

    older: dict[tuple[str, str], list[str]]
    """Id of a trace and digest of a record that is read now, to the ids that older versions gave of that record.
    They are sorted; those that the trace supersedes already are left out, and those that supersede it."""
    newer: set[str]
    """Ids of traces of which a newer version has read the record."""


def readings_of(stores: Sequence[Store], draft: SegmentDraft, new: Iterable[TraceRow]) -> Readings:
    """Return what is stored of the records of those traces of a draft that are new, or of which a record is.

    Args:
        stores: the stores that are asked.
        draft: the draft.
        new: their rows.

    Raises:
        IntegrityError: when a stored trace that must be compared is damaged.
    """
    by_record: dict[str, list[TraceRow]] = {}
    for row in new:
        if row.raw:
            by_record.setdefault(row.raw_digest, []).append(row)
    found: dict[str, list[tuple[Stored, str | None]]] = {}
    for store in stores:
        others = [one for several in store.lookup_raw(by_record).values() for one in several]
        concerned = [one for one in others if any(_concerns(one.row, row) for row in by_record[one.row.raw_digest])]
        for stored, trajectory in store.trajectories(concerned):
            found.setdefault(stored.row.raw_digest, []).append((stored, _run_key(trajectory)))
    if not found:
        return Readings({}, set())
    readings = _compared(found, _run_keys(draft, {row.id for raw in found for row in by_record[raw]}), by_record)
    return Readings(_not_replaced(stores, readings.older), readings.newer)


def _compared(
    found: dict[str, list[tuple[Stored, str | None]]],
    run_keys: dict[str, str | None],
    by_record: dict[str, list[TraceRow]],
) -> Readings:
    readings = Readings({}, set())
    for raw, others in found.items():
        for row in by_record[raw]:
            same = [one.row for one, key in others if _concerns(one.row, row) and _may_be(key, run_keys[row.trace_id])]
            older = {other.trace_id for other in same if _version(other) < _version(row)} - {row.trace_id}
            if older:
                readings.older[row.trace_id, raw] = sorted(older)
            if any(_version(other) > _version(row) for other in same):
                readings.newer.add(row.trace_id)
    return readings


def _not_replaced(stores: Sequence[Store], older: dict[tuple[str, str], list[str]]) -> dict[tuple[str, str], list[str]]:
    """Return what is left of `Readings.older` without what a trace supersedes already, or is superseded by."""
    ids = {trace_id for trace_id, _ in older}.union(*older.values())
    newer = superseding([store.catalogue for store in stores], ids)
    left = {
        key: [old for old in olds if key[0] not in newer.get(old, ()) and old not in newer.get(key[0], ())]
        for key, olds in older.items()
    }
    return {key: olds for key, olds in left.items() if olds}


def _concerns(stored: TraceRow, new: TraceRow) -> bool:
    return stored.importer == new.importer and _version(stored) != _version(new)


def _may_be(one: str | None, other: str | None) -> bool:
    """Return whether two run keys may be of one run; a reading that names none may be of any."""
    return one is None or other is None or one == other


def _run_keys(draft: SegmentDraft, ids: set[bytes]) -> dict[str, str | None]:
    pairs = zip(draft.projections, draft.locations, strict=True)
    places = {projection.row.trace_id: at for projection, at in pairs if projection.row.id in ids}
    lines = read_lines(draft.temporary, places.values())
    return {trace_id: _run_key(trajectory_slice(line)) for trace_id, line in zip(places, lines, strict=True)}


def _run_key(trajectory: bytes) -> str | None:
    """Return the session that a trajectory names, where importers put a source's own key of a run."""
    key = digest.load_canonical(trajectory).get("session_id")
    return None if key is None else str(key)


def _version(row: TraceRow) -> list[tuple[bool, int, str]]:
    """Return what puts importer versions in order: `10` comes after `9`, and `1.2` after `1.1`."""
    parts = re.findall(r"[0-9]+|[^0-9.]+", row.importer_version or "")
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
