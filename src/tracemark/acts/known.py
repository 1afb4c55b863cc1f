"""What ingest does with a trace that the store knows already.

Invariants:
- records are settled in the order in which they were read, each beside all that were in front of it, so what becomes of
  one does not depend on how a source is cut into jobs;
- nothing is stored twice: a draft that holds known traces is packed again without them. Only a trace that supersedes
  more than is known of it is stored once more, as that of the record by which it does;
- nothing that is known is changed: what a copy adds becomes an annotation, and what it disputes makes the trace
  contested until somebody decides;
- a claim that the content refutes says nothing about a trace that has another harness stated for it; and where it was
  there first, a claim that the content does not refute takes its place. So a wrong `--harness` is corrected by the
  right one, in either order. What a recorder stated is no claim: it is never replaced;
- a name means what it meant when a trace was stored: the same name, given again after its folder was edited, states
  nothing new about that trace. It is the name that was given that counts: labels are no identity, so a version whose
  manifest merely bears the label of another one is another harness;
- every record that holds a trace is remembered, also where it says nothing else: a retraction bars them all, and a
  newer importer version that reads any of them replaces the trace;
- what was stated of a trace holds for the one that replaces it, see `inherited`;
- a record that a newer importer version has read is not read back into what an older one would make of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracemark.acts.ingest_job import JobResult
from tracemark.acts.inherited import inherit, inheritance, restate, superseding, unsaid
from tracemark.acts.job_records import Entry, batches, in_several, records_of
from tracemark.acts.provenance import declared_name
from tracemark.acts.readings import readings_of
from tracemark.acts.settled import Settled, add_statement, remember, standing_in, statement_of, with_tried
from tracemark.acts.stamping import Stamper
from tracemark.acts.worth import without_rederived_status
from tracemark.harness.version import Harness
from tracemark.model.stamp import fingerprint_of
from tracemark.store.catalogue import Stored
from tracemark.store.deciding import refuted_by
from tracemark.store.draft import DraftWriter, SegmentDraft
from tracemark.store.inheriting import inheriting
from tracemark.store.row import TraceRow
from tracemark.store.selection import Decisions
from tracemark.store.state import Statement, is_claim, is_refuted, join, names_another
from tracemark.store.store import Store


class Known:
    """Tells known traces from new ones over one ingest run.

    Args:
        store: the store that the run writes to.
        folder: for drafts that must be packed again.
        harnesses: the known harnesses by fingerprint.
        behind: a store that counts as known and is only read, for a run that only tries; None for any other.
    """

    def __init__(
        self, store: Store, folder: Path, harnesses: Mapping[str, Harness], behind: Store | None = None
    ) -> None:
        self._stores = [store] if behind is None else [behind, store]
        self._folder = folder
        self._present = {one.fingerprint for one in harnesses.values() if one.folder is not None}
        self._stamper = Stamper(harnesses)

    def settle(self, result: JobResult) -> Settled:
        """Return what the records of a job are, each beside what is stored and beside those in front of it.

        Raises:
            IntegrityError: when a stored statement that must be compared is damaged.
        """
        job = _Job(Settled(), result.name)
        shared = {trace_id for trace_id, _ in result.second.values()} | in_several([*result.drafts, *result.parts])
        mixed = [draft for draft in result.drafts if not self._is_plain(draft, shared, job)]
        mixed += [draft for draft in result.parts if self._is_known(draft, shared, job)]
        if mixed:
            self._settle_each(
                records_of(result, mixed), DraftWriter(self._folder, f"{mixed[0].temporary.name}.new"), job
            )
        for draft in (*mixed, *result.parts):
            draft.discard()
        return job.settled

    def among(self, ids: Iterable[str]) -> set[str]:
        """Return those of `ids` that are stored."""
        return set(self._lookup(list(ids)))

    def standing(self, ids: Iterable[str], stamps: Mapping[str, str | None]) -> set[str]:
        """Return those of `ids` that count under a harness, whatever else was stated for them and refuted.

        Args:
            ids: traces.
            stamps: what the ledger settles of traces; what the content refutes settles nothing.

        Raises:
            IntegrityError: when a stored statement that must be compared is damaged.
        """
        return {
            trace_id
            for some in batches(ids)
            for trace_id, said in self.statements(some).items()
            if (trace_id in stamps and stamps[trace_id] not in refuted_by(said)) or fingerprint_of(join(said).harness)
        }

    def decided(self, decisions: Decisions) -> Mapping[str, str | None]:
        """Return what the ledger settles of traces, with what they inherit from those that they supersede.

        Args:
            decisions: the ledger's.
        """
        return inheriting([store.catalogue for store in self._stores], decisions).stamps

    def said_of(self, trace_id: str) -> list[Statement]:
        """Return the statements in force about a stored trace."""
        return self.statements([trace_id])[trace_id]

    def _is_plain(self, draft: SegmentDraft, shared: set[str], job: _Job) -> bool:
        """Settle a draft of which all traces are new, or all known by the same records, and return whether it is one.

        Args:
            draft: what one job made for one partition.
            shared: traces of which more than that draft says something.
            job: takes what became of it, or what is known of its traces.
        """
        rows = [projection.row for projection in draft.projections]
        known = self._lookup([row.trace_id for row in rows])
        asked = (row for row in rows if row.trace_id not in known or known[row.trace_id].row.raw != row.raw)
        readings = readings_of(self._stores, draft, asked)
        if shared.isdisjoint(row.trace_id for row in rows):
            if not known and not any(readings) and len({row.id for row in rows}) == len(rows):
                job.settled.drafts.append(draft)
                job.settled.count["ingested"] += len(rows)
                return True
            if len(known) == len(rows) and all(_same(known[row.trace_id].row, row) for row in rows):
                draft.discard()
                job.settled.count["duplicates"] += len(rows)
                return True
        job.take(rows, known)
        job.older |= readings.older
        job.newer |= readings.newer
        return False

    def _is_known(self, part: SegmentDraft, shared: set[str], job: _Job) -> bool:
        """Return whether any trace of a draft of embedded documents may be a trace of its own."""
        rows = [projection.row for projection in part.projections]
        known = self._lookup([row.trace_id for row in rows])
        job.take(rows, known)
        return bool(known) or not shared.isdisjoint(row.trace_id for row in rows)

    def _settle_each(self, entries: Iterable[Entry], writer: DraftWriter, job: _Job) -> None:
        for batch in batches(entries):
            job.forget()
            job.said |= self.statements({*_restated(batch, job), *self._annotated(batch, job)})
            job.records |= self._records(batch, job)
            job.behind = self.statements({old for entry in batch for old in job.superseded(entry)})
            for entry in batch:
                self._settle_one(entry, writer, job)
        job.settled.drafts += writer.close()

    def _settle_one(self, entry: Entry, writer: DraftWriter, job: _Job) -> None:
        row, settled = entry.projection.row, job.settled
        trace_id = row.trace_id
        stored, said = job.known.get(trace_id), job.said.get(trace_id)
        if entry.embedded and stored is None and said is None:
            return
        older = job.superseded(entry)
        repeated = stored is not None and stored.row.head == row.head
        if older:
            became = "reimported"
            self._replace(entry, older, writer, job)
        elif repeated and not (said and unsaid(said, statement_of(entry.line, row))):
            became = "duplicates"
        elif said is not None:
            became = self._repeat(entry, said, job)
        elif trace_id in job.newer:
            settled.count["duplicates"] += 1
            return
        else:
            became = "ingested"
            writer.add(entry.line, entry.projection)
            if entry.claim is not None or job.times[trace_id] > 1:
                job.said[trace_id] = [statement_of(entry.line, row)]
        if self._disputes(entry, job) and became in ("duplicates", "strengthened"):
            became = "disputing"
        settled.count[became] += 1
        if became == "strengthened":
            settled.strengthened[standing_in(job.said[trace_id])] += 1
        elif became == "reimported":
            settled.standing[trace_id] = standing_in(job.said[trace_id])
        remember(entry.line, row, job.records.setdefault(trace_id, {row.raw_digest}), settled)

    def _replace(self, entry: Entry, older: Sequence[str], writer: DraftWriter, job: _Job) -> None:
        """Store a trace that supersedes others, and state of it what was stated of those by others than its record.

        One that is known, as that of another record, is stored once more, since a line says what it supersedes.
        """
        trace_id, settled = entry.projection.row.trace_id, job.settled
        inherited = list(inheritance(self._stores, job.behind, older, entry, self._stamper))
        said = job.said.setdefault(trace_id, [])
        statement = self._fresh(entry, said, [*said, *(one.statement for one in inherited)], job)
        line, projection = superseding(entry, older, statement)
        writer.add(line, projection)
        settled.reimported.setdefault(trace_id, set()).update(older)
        restate(said, statement_of(line, projection.row), trace_id, settled)
        inherit(said, inherited, entry, settled)
        job.records.setdefault(trace_id, set()).add(projection.row.raw_digest)

    def _fresh(self, entry: Entry, said: Sequence[Statement], named: Sequence[Statement], job: _Job) -> Statement:
        """Return what a record says, without what a changed parameter, or the new meaning of a name, made of it.

        Args:
            entry: the record.
            said: the statements in force about its trace.
            named: those that may have been made by the name that is given now.
            job: takes what is left out.
        """
        statement = statement_of(entry.line, entry.projection.row)
        silent = without_rederived_status(statement, said)
        if silent is not None:
            job.settled.count["rederived"] += 1
            statement = silent
        # what a copy says of itself was stated by no name
        if self._is_outdated(statement, named, job.name if entry.claim is None else None):
            job.settled.outdated[entry.projection.row.trace_id] = None
            statement = statement._replace(harness=None)
        return statement

    def _disputes(self, entry: Entry, job: _Job) -> bool:
        """Judge what is claimed for a trace that says something else of itself; return whether it disputes that."""
        if entry.claim is None:
            return False
        trace_id = entry.projection.row.trace_id
        claim, said = Statement("", harness=entry.claim), job.said[trace_id]
        if self._is_outdated(claim, said, job.name):
            job.settled.outdated[trace_id] = None
            return False
        return add_statement(said, claim, trace_id, job.settled) == "contests"

    def _repeat(self, entry: Entry, said: list[Statement], job: _Job) -> str:
        """Judge one more copy of a trace by what was said of it, and remember what the copy says.

        Returns:
            What the record is: `duplicates`, `strengthened` or `disputing`.
        """
        row, settled = entry.projection.row, job.settled
        statement = self._fresh(entry, said, said, job)
        silent = statement.harness is None or entry.decided
        halves = [] if silent else [statement._replace(run=None, outcome=None)]
        halves.append(statement._replace(harness=None))
        effects = set()
        for half in halves:
            effect = add_statement(said, half, row.trace_id, settled, unsaid(said, half))
            # what the content refutes makes nothing better known: it is stated, and counted as contradicted
            effects.add("nothing" if effect == "strengthens" and is_refuted(half) else effect)
        named = {"contests": "disputing", "strengthens": "strengthened", "nothing": "duplicates"}
        return next(word for effect, word in named.items() if effect in effects)

    def _is_outdated(self, claim: Statement, said: Sequence[Statement], name: str | None) -> bool:
        """Return whether a claim that was made by `name` disagrees only because that means another harness by now.

        So it is where the name was given before, for a harness that no folder holds any more. A claim that the content
        refutes is judged as such.
        """
        if name is None or (claim.harness or {}).get("contradictions") or not is_claim(claim):
            return False
        return any(
            declared_name(other.harness) == name
            and (fingerprint := fingerprint_of(other.harness or {})) is not None
            and fingerprint not in self._present
            and names_another(other, claim)
            for other in said
        )

    def _records(self, entries: Iterable[Entry], job: _Job) -> dict[str, set[str]]:
        """Return which raw records are known to hold those known traces of which an entry may be another record."""
        rows = [entry.projection.row for entry in entries]
        ids = {row.trace_id for row in rows if row.trace_id in job.known and row.trace_id not in job.records}
        found = {trace_id: {job.known[trace_id].row.raw_digest} for trace_id in ids}
        others = {row.trace_id for row in rows if row.trace_id in ids and row.raw_digest not in found[row.trace_id]}
        for store in self._stores:
            for trace_id, raws in store.records(others).items():
                found[trace_id] |= raws
        return found

    def _annotated(self, entries: Iterable[Entry], job: _Job) -> set[str]:
        """Return the known traces that are stated again and of which an entry is another record than the first."""
        rows = [entry.projection.row for entry in entries]
        others = {
            row.trace_id
            for row in rows
            if row.trace_id in job.known and row.trace_id not in job.said and job.known[row.trace_id].row.raw != row.raw
        }
        return {trace_id for store in self._stores for trace_id in store.annotated(others)}

    def _lookup(self, ids: list[str]) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for store in self._stores:
            found |= store.lookup(ids)
        return found

    def statements(self, ids: Collection[str]) -> dict[str, list[Statement]]:
        """Return the statements in force about those of `ids` that are stored, the first statement first."""
        found: dict[str, list[Statement]] = {}
        for store in self._stores:
            # a run that only tries says in its own store what it says of the traces of the other
            found = {trace_id: with_tried(said, store, trace_id) for trace_id, said in found.items()}
            found |= store.statements(ids)
        return found


@dataclass(slots=True)
class _Job:
    """One job while it is settled."""

    settled: Settled
    name: str | None
    """The name by which the harness was claimed; None when nobody claimed one, or by its fingerprint."""
    known: dict[str, Stored] = field(default_factory=dict)
    """The traces that were stored before the job."""
    older: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    newer: set[str] = field(default_factory=set)
    """What other versions of an importer made of its records, see `Readings`."""
    times: Counter[str] = field(default_factory=Counter)
    """How many records hold each trace."""
    said: dict[str, list[Statement]] = field(default_factory=dict)
    """What has been said of the traces that must be compared."""
    records: dict[str, set[str]] = field(default_factory=dict)
    """Which raw records are known to hold them."""
    behind: Mapping[str, list[Statement]] = field(default_factory=dict)
    """What is said of the traces that those of the present records supersede."""

    def take(self, rows: Iterable[TraceRow], known: Mapping[str, Stored]) -> None:
        """Take in the rows of a draft that is settled record by record, and which of its traces are known."""
        self.times.update(row.trace_id for row in rows)
        self.known.update(known)

    def superseded(self, entry: Entry) -> list[str]:
        """Return the traces that a record's trace supersedes as the reading of it, and does not yet."""
        row = entry.projection.row
        if entry.embedded or row.trace_id in self.newer:
            return []
        by_others = self.settled.reimported.get(row.trace_id, set())
        return [old for old in self.older.get((row.trace_id, row.raw_digest), ()) if old not in by_others]

    def forget(self) -> None:
        """Forget what was said of traces of which no further record comes."""
        self.said = {trace_id: said for trace_id, said in self.said.items() if self.times[trace_id] > 1}
        self.records = {trace_id: held for trace_id, held in self.records.items() if self.times[trace_id] > 1}


def _restated(entries: Iterable[Entry], job: _Job) -> Iterator[str]:
    """Yield the ids of known traces of which a copy says something else than the first, or of which a claim does."""
    for entry in entries:
        row = entry.projection.row
        stored = job.known.get(row.trace_id)
        if stored is None or row.trace_id in job.said:
            continue
        if stored.row.head != row.head or entry.claim or (row.trace_id, row.raw_digest) in job.older:
            yield row.trace_id


def _same(stored: TraceRow, row: TraceRow) -> bool:
    """Return whether a copy is the same record and says the same."""
    return stored.head == row.head and stored.raw == row.raw
