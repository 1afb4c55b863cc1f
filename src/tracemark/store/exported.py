"""What exports took, asked of a catalogue without opening the store; see `tracemark.store.asked`.

What cannot be read is left out: checking the store names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.store.asked import Asked
from tracemark.store.catalogue import Reader
from tracemark.store.inheriting import superseding
from tracemark.store.layout import Layout
from tracemark.store.segment import Location, read_line
from tracemark.store.selection import Decisions, state_of


def recorded(layout: Layout, kinds: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield what annotations of some kinds record, each with its kind."""
    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        nothing: list[tuple[bytes, str, Location]] = []
        for kind in kinds:
            for name, file, location in catalogue.ask(partial(Reader.annotations, kind=kind, trace=None), nothing):
                try:
                    line = read_line(layout.path(file), location)
                except IntegrityError:
                    continue
                if digest.sha256(line) == name.hex():
                    yield kind, digest.load_canonical(line)["value"]


def tasks_of_runs(layout: Layout, traces: Collection[str]) -> dict[str, set[tuple[str, str | None]]]:
    """Return task and domain of those of some traces, and of newer readings of their records, that have a task."""

    def asked(reader: Reader) -> dict[str, set[tuple[str, str | None]]]:
        newer = superseding([reader], traces)
        wanted = {bytes.fromhex(one) for one in {*traces}.union(*newer.values())}
        states = (state_of(*found, Decisions()) for found in reader.select(None, wanted))
        of = {state.trace_id: (state.row.task, state.row.domain) for state in states if state.row.task}
        return {trace: {of[one] for one in (trace, *newer.get(trace, ())) if one in of} for trace in traces}

    with ExitStack() as opened:
        return Asked.open(layout, opened).ask(asked, {})
