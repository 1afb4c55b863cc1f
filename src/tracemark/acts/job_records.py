"""The records of an ingest job in the order in which they were read, whatever the drafts in which they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, NamedTuple, TypeVar

from tracemark.acts.ingest_job import PART, JobResult
from tracemark.store.draft import SegmentDraft
from tracemark.store.row import Projection
from tracemark.store.segment import iterate

_BATCH = 256

T = TypeVar("T")


class Entry(NamedTuple):
    """One record of a job."""

    line: bytes
    """The stored line."""
    projection: Projection
    """What the catalogue will hold of it."""
    claim: dict[str, Any] | None
    """The stamp that is claimed for it, where it says something else of its harness itself; None otherwise."""
    embedded: bool
    """Whether it is embedded in another: of a known trace it says that it is a part, and is nothing by itself."""
    decided: bool = False
    """Whether its stamp is what people decided elsewhere: of a known trace that says nothing."""


def in_several(drafts: Sequence[SegmentDraft]) -> set[str]:
    """Return the ids of traces that are in more than one of some drafts."""
    if len(drafts) < 2:
        return set()
    times = Counter(i for draft in drafts for i in {projection.row.id for projection in draft.projections})
    return {identity.hex() for identity, count in times.items() if count > 1}


def records_of(result: JobResult, mixed: Sequence[SegmentDraft]) -> Iterator[Entry]:
    """Yield those records of a job that are in `mixed` drafts, in the order in which they were read."""
    chosen = {draft.temporary for draft in mixed}
    waiting: dict[str, Iterator[tuple[bytes, Projection] | None]] = {}
    for drafts, prefix in ((result.drafts, ""), (result.parts, PART)):
        for draft in drafts:
            key = prefix + draft.partition
            waiting[key] = chain(waiting.get(key, ()), _lines(draft, draft.temporary in chosen))
    for number, key in enumerate(result.order):
        found = next(waiting[key])
        if found is not None:
            _, claim = result.second.get(number, (None, None))
            yield Entry(*found, claim, key.startswith(PART), number in result.decided)


def _lines(draft: SegmentDraft, wanted: bool) -> Iterator[tuple[bytes, Projection] | None]:
    """Yield the lines of a draft; None for each where they are not wanted, or the draft is on its way already."""
    if not wanted:
        yield from repeat(None, len(draft.projections))
        return
    lines = (line for _, line in iterate(draft.temporary))
    yield from zip(lines, draft.projections, strict=True)


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items in lists, so that the statements of many traces are read at once, and of not too many."""
    source = iter(items)
    while batch := list(islice(source, _BATCH)):
        yield batch
