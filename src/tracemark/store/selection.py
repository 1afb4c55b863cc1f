"""Which traces, in what state, in which order: the unit that exports, audits and lists share.

A `Selection` is a value that says what is wanted; `State` is what is true of one trace now, the ledger's decisions
included, which are passed in because the store does not read the ledger. Rows come in the order of their files and
frames, and `batches` cuts them by file, so that work can be spread over processes and no other file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from tracemark.store.catalogue import Restated, Stored
from tracemark.store.row import TraceRow
from tracemark.store.segment import Location

Excludes: TypeAlias = Callable[[str, bytes], bool]
"""Tells of a fingerprint and a stored line whether the content excludes the harness, as far as anybody knows it."""

Spared: TypeAlias = Callable[[str, Collection[str]], Iterable[str]]
"""Tells of the id of a retracted trace, and records that hold it, which of these are not retracted with it."""

DIVIDED = "harness.declared.fingerprint"
"""What is disputed of a trace for which decisions speak that differ."""

_UNDECLARED: Mapping[str, Any] = {"fingerprint": None, "harness": None, "evidence": "unrecorded", "corroborated": 0}


@dataclass(frozen=True, slots=True)
class Decisions:
    """What people decided about traces, as the ledger says now."""

    retracted: frozenset[str] = frozenset()
    """Ids of retracted traces."""
    retracted_records: frozenset[str] = frozenset()
    """Digests of raw records whose traces are retracted with them."""
    spared: Spared | None = field(default=None, compare=False)
    """Tells what is not retracted with a trace; None when all is."""
    stamps: Mapping[str, str | None] = field(default_factory=dict)
    """Trace id to the fingerprint that settles its harness; None for a trace that is to have none."""
    void: Mapping[str, str] = field(default_factory=dict)
    """Those of them that cannot hold, because the content refutes that harness; the store fills it in and takes them
    out of `stamps`."""
    divided: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    """Id of a trace about which decisions differ, so that none of them holds, to the fingerprints that they name; such
    a trace is not in `stamps`. The store adds those that inherit such decisions, puts what the others inherit into
    `stamps`, and takes out what the content refutes: where that leaves one, it moves to `stamps`."""
    excludes: Excludes | None = field(default=None, compare=False)
    """Holds what is settled against the stored content; None leaves it to what statements say."""


@dataclass(frozen=True, slots=True)
class State:
    """One trace as it stands now."""

    row: TraceRow
    """First statement and later ones joined, settled by decisions; `head` is that of the first statement."""
    file: str
    """Name of its segment, relative to `traces/`."""
    location: Location
    """Where its line is."""
    conflicts: tuple[str, ...] = ()
    """Members about which statements, or the decisions about superseded traces, disagree and nobody has decided since;
    empty unless contested."""
    superseded_by: tuple[str, ...] = ()
    """Ids of traces that a newer importer version made of the same record; empty when it is the newest."""
    retracted: bool = False
    """Whether the trace or its record is retracted."""
    restated: bool = False
    """Whether later statements or decisions changed anything."""
    settled: bool = False
    """Whether a decision that holds says under which harness it counts."""

    @property
    def trace_id(self) -> str:
        """The trace's id, 64 hexadecimal digits."""
        return self.row.id.hex()

    @property
    def contested(self) -> bool:
        """Whether statements about the trace disagree and nobody has decided."""
        return bool(self.conflicts)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted. None in a member means that it does not matter."""

    fingerprints: frozenset[str | None] | None = None
    """Present fingerprints; None among them stands for traces without one."""
    statuses: frozenset[str] | None = None
    """Present statuses."""
    tasks: frozenset[str] | None = None
    """Tasks."""
    named: frozenset[tuple[str | None, str | None]] | None = None
    """Tasks, each with its domain, or None where it has none."""
    formats: frozenset[str] | None = None
    """Source formats."""
    traces: frozenset[str] | None = None
    """Trace ids."""
    superseded: bool = False
    """Whether superseded traces are wanted too."""
    retracted: bool = True
    """Whether retracted traces are wanted too."""

    def matches(self, state: State) -> bool:
        """Return whether a trace in `state` is wanted."""
        row = state.row
        return (
            (self.fingerprints is None or row.fingerprint in self.fingerprints)
            and (self.statuses is None or row.status in self.statuses)
            and (self.tasks is None or row.task in self.tasks)
            and (self.named is None or (row.task, row.domain) in self.named)
            and (self.formats is None or row.format in self.formats)
            and (self.traces is None or state.trace_id in self.traces)
            and (self.superseded or not state.superseded_by)
            and (self.retracted or not state.retracted)
        )

    def may_match(self, state: State, decided: str | None) -> bool:
        """Return whether a trace can be wanted, whatever comes of the decision that settles its harness.

        Args:
            state: the trace as it stands without that decision.
            decided: the fingerprint under which it is settled; None settles that it counts under none.
        """
        possible = {decided, state.row.fingerprint}
        if decided == state.row.fingerprint:
            # what excludes the harness takes it from the statements too
            possible.add(None)
        if self.fingerprints is not None and self.fingerprints.isdisjoint(possible):
            return False
        return replace(self, fingerprints=None).matches(state)


@dataclass(frozen=True, slots=True)
class Batch:
    """Selected traces of one segment, a job for one worker."""

    path: Path
    """The segment's file."""
    states: tuple[State, ...]
    """The traces in the order of their places."""


def state_of(stored: Stored, restated: Restated | None, replaced_by: tuple[bytes, ...], decisions: Decisions) -> State:
    """Return the present state of a trace.

    Args:
        stored: its first statement.
        restated: how later statements changed it; None when there are none.
        replaced_by: ids of traces that name it as superseded.
        decisions: the ledger's.
    """
    row, changed = stored.row, False
    conflicts: tuple[str, ...] = ()
    if restated is not None:
        row, conflicts, changed = row._replace(**restated.fields), restated.conflicts, True
    trace_id = row.id.hex()
    settled = trace_id in decisions.stamps
    if settled:
        row = row._replace(**_settled(row, restated, decisions.stamps[trace_id]))
        conflicts = tuple(path for path in conflicts if not path.startswith("harness."))
        changed = True
    elif trace_id in decisions.divided:
        row = row._replace(**_UNDECLARED)
        conflicts = tuple(sorted({*conflicts, DIVIDED}))
        changed = True
    elif row.fingerprint is not None and decisions.void.get(trace_id) == row.fingerprint:
        # a statement names the very harness that comparing has excluded; disagreement beats it
        row = row._replace(**_UNDECLARED, contradicted=True)
        changed = True
    retracted = trace_id in decisions.retracted or row.raw.hex() in decisions.retracted_records
    newer = tuple(identity.hex() for identity in replaced_by)
    return State(row, stored.file, stored.location, conflicts, newer, retracted, changed, settled)


def decided_of(trace_id: str, decisions: Decisions) -> frozenset[str | None]:
    """Return the fingerprints under which decisions settle a trace: several where they differ."""
    if trace_id in decisions.stamps:
        return frozenset({decisions.stamps[trace_id]})
    return decisions.divided.get(trace_id, frozenset())


def batches(root: Path, states: Iterable[State]) -> Iterator[Batch]:
    """Cut states, ordered as `Store.select` gives them, into one batch for each segment.

    Args:
        root: the folder `traces/`.
        states: consumed one segment at a time.
    """
    for file, group in groupby(states, key=lambda state: state.file):
        yield Batch(root / file, tuple(group))


def _settled(row: TraceRow, restated: Restated | None, fingerprint: str | None) -> Mapping[str, Any]:
    """Return the fields of `row` that change when people decide for `fingerprint`."""
    if fingerprint is None:
        return _UNDECLARED
    if fingerprint == row.fingerprint:
        return {}
    if restated is not None and fingerprint in restated.choices:
        # that the content refutes some statement stays true whatever is decided
        return {**restated.choices[fingerprint], "contradicted": row.contradicted}
    return {"fingerprint": fingerprint, "harness": None, "evidence": "claimed", "corroborated": 0}
