"""The reading half of the store's facade.

Rows and states come from the catalogue, lines from segments; a line that is handed out by id has had its id recomputed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError, UnknownNameError, UsageError
from tracemark.findings import Finding, finding
from tracemark.store import deciding
from tracemark.store import selection as choose
from tracemark.store.catalogue import Apart, Catalogue, Plain, Restated, Stored
from tracemark.store.inheriting import decided_for, inherited_from, inheriting, superseding
from tracemark.store.layout import Layout, located
from tracemark.store.row import trajectory_of, trajectory_slice
from tracemark.store.segment import Location, read_line, read_lines
from tracemark.store.selection import Batch, Decisions, Selection, State
from tracemark.store.state import Statement
from tracemark.store.statements import left_aside, refresh, statements, untrue
from tracemark.words import first_few

SHORTEST_PREFIX = 6
"""How many hexadecimal digits of an id must be given at least."""

_NOTHING = Decisions()


class Note(NamedTuple):
    """One annotation as it is stored."""

    digest: str
    """Its digest, 64 hexadecimal digits."""
    value: dict[str, JSON]
    """The whole annotation, as in `model.annotation`."""


class Reading:
    """What can be asked of an open store."""

    def __init__(self, layout: Layout, catalogue: Catalogue) -> None:
        self.layout = layout
        self.catalogue = catalogue
        self.findings: list[Finding] = []
        """What went wrong beside the work itself: files that are stored and could not be indexed, or that say something
        of traces nobody asked about and cannot be read."""

    def lookup(self, ids: Iterable[str]) -> dict[str, Stored]:
        """Return the rows, as first stated, of those of `ids` (64 hexadecimal digits each) that are stored."""
        return {stored.row.trace_id: stored for stored in self.catalogue.lookup(map(bytes.fromhex, ids))}

    def lookup_raw(self, digests: Iterable[str]) -> dict[str, list[Stored]]:
        """Return, for those raw records of `digests` that are known, the traces that were made of each.

        The row of a trace says whence it came in that record, and who read it.
        """
        found: dict[str, list[Stored]] = {}
        for stored in self.catalogue.lookup_raw(map(bytes.fromhex, digests)):
            found.setdefault(stored.row.raw_digest, []).append(stored)
        return found

    def records(self, ids: Collection[str]) -> dict[str, set[str]]:
        """Return the digests of all raw records that hold each of the traces `ids`; traces without one are left out."""
        found = self.catalogue.records([bytes.fromhex(trace) for trace in ids])
        return {identity.hex(): {raw.hex() for raw in raws} for identity, raws in found.items()}

    def records_of_run(self, trace_id: str) -> set[str]:
        """Return the digests of all records that are known to hold the run of a trace.

        They are those that hold it, and those that hold a trace that an importer version made of one of them.
        """
        return {raw.hex() for raw in deciding.records_of_run(self.catalogue, bytes.fromhex(trace_id))}

    def trajectories(self, stored: Iterable[Stored]) -> Iterator[tuple[Stored, bytes]]:
        """Yield each of `stored` with the canonical bytes of its trajectory, in the order of their files and places.

        Raises:
            IntegrityError: when a segment is missing or damaged, or cannot be read.
        """
        ordered = sorted(stored, key=lambda one: one[1:])
        for file, group in groupby(ordered, key=lambda one: one.file):
            places = list(group)
            lines = read_lines(self.layout.path(file), [one.location for one in places])
            yield from ((one, trajectory_slice(line)) for one, line in zip(places, lines, strict=True))

    def resolve(self, prefix: str) -> str:
        """Return the one trace id that begins with `prefix`.

        Raises:
            UsageError: when it is no hexadecimal text of 6 to 64 digits, or more than one id begins so.
            UnknownNameError: when none does.
        """
        if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}", prefix):
            raise UsageError(
                f"{prefix!r} is no trace id: {SHORTEST_PREFIX} to 64 hexadecimal digits are needed, in lower case",
                hint="tracemark traces list",
            )
        low, high = (bytes.fromhex(prefix.ljust(64, end)) for end in "0f")
        found = [identity.hex() for identity in self.catalogue.between(low, high)]
        if not found:
            raise UnknownNameError(f"no trace has an id that begins with {prefix}", hint="tracemark traces list")
        if len(found) > 1:
            raise UsageError(
                f"more than one trace id begins with {prefix}: {first_few(found)}", hint="give more digits"
            )
        return found[0]

    def get(self, trace_id: str) -> bytes:
        """Return the stored line of a trace, without its line feed, its id recomputed.

        Raises:
            UnknownNameError: when there is no such trace.
            IntegrityError: when the bytes are not those of the id, or cannot be read.
        """
        stored = self.lookup([trace_id]).get(trace_id)
        if stored is None:
            raise UnknownNameError(f"there is no trace {trace_id}", hint="tracemark traces list")
        line = read_line(self.layout.path(stored.file), stored.location)
        trajectory_of(line, trace_id)
        return line

    def raw(self, trace_id: str) -> bytes:
        """Return the canonical bytes of a trace's trajectory, whose SHA-256 is its id.

        Raises:
            UnknownNameError: when there is no such trace.
            IntegrityError: when the bytes are not those of the id, or cannot be read.
        """
        return trajectory_slice(self.get(trace_id))

    def select(
        self, selection: Selection, decisions: Decisions = _NOTHING, damaged: list[Finding] | None = None
    ) -> Iterator[State]:
        """Yield the present state of the traces that are wanted, in the order of their files and places.

        Args:
            selection: what is wanted.
            decisions: the ledger's decisions; those about traces that cannot be wanted are not held to the content.
            damaged: takes a finding for what is not applied, statements and decisions, because it, or what a decision
                must be held to, cannot be read; None makes that an error where it is about a trace that is asked for.

        Raises:
            IntegrityError: when a file that holds a statement, or a line, which must be read is damaged.
        """
        self._refresh(selection.traces, damaged)
        decisions = inheriting([self.catalogue], deciding.barring(self.catalogue, decisions))
        # a decision may give any trace any fingerprint, or take it away, so the catalogue cannot tell then
        fingerprints = None if decisions.stamps or decisions.void or decisions.divided else selection.fingerprints
        ids = None if selection.traces is None else [bytes.fromhex(trace) for trace in selection.traces]
        undecided = replace(decisions, stamps={})
        for found in self.catalogue.select(fingerprints, ids, selection.tasks):
            trace = found[0].row.trace_id
            holding = decisions
            if trace in decisions.stamps or trace in decisions.divided:
                without = choose.state_of(*found, undecided)
                if not any(selection.may_match(without, one) for one in choose.decided_of(trace, decisions) or (None,)):
                    continue
                holding = self._judged(found[:2], decisions, undecided, damaged)
            state = choose.state_of(*found, holding)
            if selection.matches(state):
                yield state

    def applied(self, decisions: Decisions, about: Collection[str] | None = None) -> Decisions:
        """Return the ledger's decisions as far as they hold, given what is stored.

        Args:
            decisions: the ledger's.
            about: ids of the only traces about which anybody will ask; None for all.

        Raises:
            IntegrityError: when a file that holds a statement, or a line, which must be read is damaged.
        """
        self._refresh(about)
        return deciding.applied(self.catalogue, self.layout, decisions, about)

    def inherited_from(self, decided: Collection[str], trace_id: str) -> set[str]:
        """Return those of the traces `decided` that a trace supersedes, directly or through others."""
        return inherited_from(self.catalogue, decided, trace_id)

    def decided_for(self, decided: Collection[str], trace_id: str) -> set[str]:
        """Return the readings that stand for a trace, where a decision about it reaches none as they were decided."""
        return decided_for(self.catalogue, decided, trace_id)

    def newer_readings(self, ids: Iterable[str]) -> dict[str, set[str]]:
        """Return for each of `ids` that is superseded what supersedes it, directly or not: the same run, read anew."""
        return superseding([self.catalogue], ids)

    def state(self, trace_id: str, decisions: Decisions = _NOTHING) -> State:
        """Return the present state of one trace.

        Raises:
            UnknownNameError: when there is no such trace.
        """
        wanted = Selection(traces=frozenset({trace_id}), superseded=True)
        for state in self.select(wanted, decisions):
            return state
        raise UnknownNameError(f"there is no trace {trace_id}", hint="tracemark traces list")

    def split(
        self, fingerprints: Collection[str], decisions: Decisions = _NOTHING
    ) -> tuple[Iterator[Batch], list[Plain]]:
        """Return the traces that may count under one of `fingerprints`, and counts of all the others.

        The others were first stated under another fingerprint or none, and nothing that was stated or decided later is
        about them. Superseded traces are on either side.

        Args:
            fingerprints: present fingerprints.
            decisions: the ledger's decisions.

        Raises:
            IntegrityError: when a file that holds a statement which must be read is damaged.
        """
        decisions = self.applied(decisions)
        decided = [*decisions.retracted, *decisions.stamps, *decisions.void, *decisions.divided]
        apart = Apart(fingerprints, map(bytes.fromhex, decided), map(bytes.fromhex, decisions.retracted_records))
        states = (choose.state_of(*found, decisions) for found in self.catalogue.select_apart(apart))
        return choose.batches(self.layout.traces, states), self.catalogue.count_but(apart)

    def batches(self, selection: Selection, decisions: Decisions = _NOTHING) -> Iterator[Batch]:
        """Yield the traces that are wanted, one picklable batch a segment; see `select`."""
        return choose.batches(self.layout.traces, self.select(selection, decisions))

    def lines(self, states: Iterable[State]) -> Iterator[tuple[State, bytes]]:
        """Yield each state, in the order of `select`, with the stored line of its trace.

        Raises:
            IntegrityError: when a segment is missing or damaged, or cannot be read.
        """
        for batch in choose.batches(self.layout.traces, states):
            yield from zip(batch.states, read_lines(batch.path, [s.location for s in batch.states]), strict=True)

    def statements(self, ids: Collection[str]) -> dict[str, list[Statement]]:
        """Return the statements in force about those of `ids` that are stored, the first statement first.

        Raises:
            IntegrityError: when a file that holds one is damaged.
        """
        found = statements(self.catalogue, self.layout, [bytes.fromhex(trace) for trace in ids])
        return {identity.hex(): said for identity, said in found.items()}

    def annotated(self, ids: Collection[str]) -> set[str]:
        """Return those of `ids` of which anything was stated beside their first statement."""
        places = self.catalogue.statement_places([bytes.fromhex(trace) for trace in ids])
        return {place[0].hex() for place in places if place[1] != "trace"}

    def require_true(self, ids: Collection[str]) -> None:
        """Make sure that the catalogue keeps the present state of traces that their statements give.

        Raises:
            IntegrityError: when it does not, or a file that holds a statement is damaged.
        """
        wrong = untrue(self.catalogue, self.layout, [bytes.fromhex(trace) for trace in ids])
        if wrong:
            raise IntegrityError(
                "the catalogue does not say what the statements about the trace say",
                where=wrong[0].hex(),
                hint="tracemark reindex, then again",
            )

    def annotations(
        self, kind: str | None = None, trace_id: str | None = None, damaged: list[Finding] | None = None
    ) -> Iterator[Note]:
        """Yield the annotations in force.

        Args:
            kind: only of this kind; None for all.
            trace_id: only about this trace; None for all.
            damaged: takes a finding for each file that cannot be read, and its annotations are left out; None makes
                that an error.

        Raises:
            IntegrityError: when a file of annotations is damaged.
        """
        trace = None if trace_id is None else bytes.fromhex(trace_id)
        return self._notes(self.catalogue.annotations(kind, trace), damaged)

    def exports_of(self, trace_id: str, damaged: list[Finding] | None = None) -> Iterator[Note]:
        """Yield the annotations of the exports that took a trace; see `annotations`.

        Raises:
            IntegrityError: when a file of annotations is damaged.
        """
        return self._notes(self.catalogue.exports_of(bytes.fromhex(trace_id)), damaged)

    def find(self, words: str, limit: int = 50) -> list[str]:
        """Return the ids of traces in whose search text all `words` occur, best first, at most `limit`."""
        return [identity.hex() for identity in self.catalogue.find(words, limit)]

    def tasks(self) -> set[tuple[str, str | None]]:
        """Return task and domain of every trace that has a task, as stated first or since."""
        return self.catalogue.tasks()

    def fingerprints(self) -> set[str]:
        """Return every fingerprint under which a trace was stated first, or stands since."""
        return self.catalogue.fingerprints()

    def counts(self) -> dict[str, int]:
        """Return how many traces, copies, annotations, refused records, segments and harnesses are stored."""
        names = self.layout.data_files()
        return {
            **self.catalogue.counts(),
            "segments": sum(name.startswith("segments/") for name in names),
            "harnesses": len(self.layout.snapshots()),
        }

    def corpus_digest(self) -> str:
        """Return the digest that identifies the corpus as the catalogue knows it, 64 hexadecimal digits.

        It is the SHA-256 of the sorted names of segments and annotation files, relative to `traces/`, a line feed after
        each; annotations of exports are left out, since an export does not change the corpus.
        """
        names = sorted(n for n in self.catalogue.files() if not n.startswith(("refused/", "annotations/exports.")))
        return digest.sha256("".join(f"{name}\n" for name in names).encode())

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """Give a `with` block in which the store answers as it stood at one moment, whatever is stored meanwhile.

        Nothing can be stored through this object within the block.

        Raises:
            IntegrityError: when a file that holds a statement which must be read is damaged.
        """
        while True:
            self._refresh(None)
            with self.catalogue.unchanging():
                # another process may have stored a statement since
                if not self.catalogue.stale(1):
                    yield
                    return

    def _refresh(self, about: Collection[str] | None, damaged: list[Finding] | None = None) -> None:
        """Bring the present states up to date, as far as the statements can be read.

        Args:
            about: ids of the only traces that are asked for; None for all.
            damaged: takes a finding for each file that cannot be read; None makes that an error where it says something
                of a trace that is asked for.
        """
        unread = refresh(self.catalogue, self.layout)
        asked = [error for identity, error in unread.items() if about is None or identity.hex() in about]
        if asked and damaged is None:
            raise asked[0]
        taking = self.findings if damaged is None else damaged
        taking += [problem for problem in left_aside(unread) if problem not in taking]

    def _judged(
        self,
        found: tuple[Stored, Restated | None],
        decisions: Decisions,
        undecided: Decisions,
        damaged: list[Finding] | None,
    ) -> Decisions:
        """Return the decisions as they are about one trace: as they are, void, left aside, or the one that is left."""
        stored = found[0]
        trace = stored.row.trace_id
        decided = choose.decided_of(trace, decisions)
        try:
            left = [
                one for one in decided if deciding.holds(self.catalogue, self.layout, found, one, decisions.excludes)
            ]
        except IntegrityError as error:
            if damaged is None:
                raise
            # what cannot be read may be the trace's own line, or a later statement in another file
            where = located(stored.file) if error.where in (None, trace) else error.where
            message = f"{error.message}: what settles the harness of trace {trace[:12]} is not applied"
            damaged.append(finding("file-damaged", where, message))
            return undecided
        if trace in decisions.divided:
            return replace(undecided, stamps=dict.fromkeys([trace], left[0])) if len(left) == 1 else decisions
        return decisions if left else replace(undecided, void={**undecided.void, trace: decisions.stamps[trace] or ""})

    def _notes(self, places: Iterable[tuple[bytes, str, Location]], damaged: list[Finding] | None) -> Iterator[Note]:
        for name, file, location in places:
            try:
                note = self._note(name, file, location)
            except IntegrityError as error:
                if damaged is None:
                    raise
                where = located(file)
                if all(one.where != where for one in damaged):
                    damaged.append(finding("file-damaged", where, f"{error.message}: what it records is left out"))
            else:
                yield note

    def _note(self, name: bytes, file: str, location: Location) -> Note:
        line = read_line(self.layout.path(file), location)
        if digest.sha256(line) != name.hex():
            raise IntegrityError("a stored annotation is not what its digest says", where=located(file))
        return Note(name.hex(), digest.load_canonical(line))
