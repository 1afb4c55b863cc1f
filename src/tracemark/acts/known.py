"""What ingest does with a trace that the store knows already.

Invariants:
- nothing is stored twice: a draft that holds known traces is packed again without them;
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
- a record that a newer importer version has read is not read back into what an older one would make of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tracemark import __version__, digest
from tracemark.acts.ingest_job import line_of
from tracemark.acts.provenance import declared_name
from tracemark.acts.readings import Readings, readings_of
from tracemark.acts.worth import replaced, without_rederived_status
from tracemark.model.annotation import build
from tracemark.model.stamp import evidence_of, fingerprint_of
from tracemark.store.annotations import INGESTED, OUTCOMES, SOURCES, STAMPS
from tracemark.store.catalogue import Stored
from tracemark.store.deciding import refuted_by
from tracemark.store.draft import DraftWriter, SegmentDraft
from tracemark.store.row import Projection, TraceRow, head_of, project_line, trajectory_slice
from tracemark.store.segment import Location, iterate
from tracemark.store.state import Statement, is_claim, is_refuted, join, names_another, relation
from tracemark.store.store import Store

TOOL = {"name": "ingest", "version": __version__}
"""Who makes the annotations of this module."""

_BATCH = 256
_NOWHERE = Location(0, 0, 0, 0)

_Entry = tuple[bytes, Projection]


@dataclass(slots=True)
class Settled:
    """What became of one draft."""

    drafts: list[SegmentDraft] = field(default_factory=list)
    """What is left to commit; empty when everything was known."""
    annotations: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {kind: [] for kind in INGESTED})
    """New statements, by kind."""
    count: Counter[str] = field(default_factory=Counter)
    """`ingested`, `duplicates`, `strengthened`, `contested`, `reimported`; `outdated`: claims that are left out
    because their name meant the harness that the trace has when it was stored; and `rederived`: statuses that are left
    out because the known one was made of the same reward under another `ingest.success_reward`."""
    outdated: str | None = None
    """The first trace of an `outdated` claim."""
    disputed: dict[str, list[Statement]] = field(default_factory=dict)
    """What is said of each trace that statements disagree about since now."""
    strengthened: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Known traces of which more is known now, by the label of their harness (`-` for none) and their evidence."""


@dataclass(slots=True)
class JobContext:
    """What is known of one job beside its drafts, which are settled one after the other before any is committed."""

    name: str | None = None
    """The name by which the harness was claimed; None when nobody claimed one, or by its fingerprint."""
    second: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    """Trace id to the claimed stamps, where the trace itself says something else of its harness."""
    repeated: Collection[str] = frozenset()
    """Ids of traces that are in more than one draft of the job."""
    embedded: Collection[str] = frozenset()
    """Ids of traces that are embedded in others: of known ones they say that they are parts, others are dropped."""
    judged: set[str] = field(default_factory=set)
    """Those of `second` that have been settled."""
    fresh: dict[str, Stored] = field(default_factory=dict)
    """Those of `repeated` that an earlier draft will store."""
    said: dict[str, list[Statement]] = field(default_factory=dict)
    """What has been said of those of `repeated` that an earlier draft states again or anew."""
    records: dict[str, set[str]] = field(default_factory=dict)
    """Which raw records are known to hold those of `repeated` that an earlier draft holds."""

    def name_of(self, trace_id: str, statement: Statement) -> str | None:
        """Return the name by which the stamp of a copy was claimed; None when the copy says it of itself."""
        if trace_id not in self.second:
            return self.name
        declared = (statement.harness or {}).get("declared")
        return self.name if declared in [stamp.get("declared") for stamp in self.second[trace_id]] else None


class Known:
    """Tells known traces from new ones over one ingest run.

    Args:
        store: the store that the run writes to.
        folder: for drafts that must be packed again.
        present: fingerprints of the harness versions that have a folder now.
        behind: a store that counts as known and is only read, for a run that only tries; None for any other.
    """

    def __init__(self, store: Store, folder: Path, present: Collection[str] = (), behind: Store | None = None) -> None:
        self._stores = [store] if behind is None else [behind, store]
        self._folder = folder
        self._present = present

    def settle(self, draft: SegmentDraft, context: JobContext) -> Settled:
        """Return what of a draft is new, and what its traces, new or known, say more than once.

        Args:
            draft: what one job made for one partition.
            context: that of its job.

        Raises:
            IntegrityError: when a stored statement that must be compared is damaged.
        """
        rows = [projection.row for projection in draft.projections]
        known = self._lookup([row.trace_id for row in rows])
        known |= {row.trace_id: context.fresh[row.trace_id] for row in rows if row.trace_id in context.fresh}
        if all(row.trace_id in context.embedded and row.trace_id not in known for row in rows):
            draft.discard()
            return Settled()
        readings = readings_of(self._stores, draft, (row for row in rows if row.trace_id not in known))
        if not any(row.trace_id in context.second or row.trace_id in context.repeated for row in rows):
            if not known and not any(readings) and len({row.id for row in rows}) == len(rows):
                return Settled([draft], count=Counter(ingested=len(rows)))
            if len(known) == len(rows) and all(_same(known[row.trace_id].row, row) for row in rows):
                draft.discard()
                return Settled(count=Counter(duplicates=len(rows)))
        return self._pack_again(draft, known, readings, context)

    def among(self, ids: Iterable[str]) -> set[str]:
        """Return those of `ids` that are stored."""
        return set(self._lookup(list(ids)))

    def standing(self, ids: Collection[str], stamps: Mapping[str, str | None]) -> set[str]:
        """Return those of `ids` that count under a harness, whatever else was stated for them and refuted.

        Args:
            ids: traces.
            stamps: what the ledger settles of traces; what the content refutes settles nothing.

        Raises:
            IntegrityError: when a stored statement that must be compared is damaged.
        """
        return {
            trace_id
            for trace_id, said in self._statements(ids).items()
            if (trace_id in stamps and stamps[trace_id] not in refuted_by(said)) or fingerprint_of(join(said).harness)
        }

    def _pack_again(
        self, draft: SegmentDraft, known: Mapping[str, Stored], readings: Readings, context: JobContext
    ) -> Settled:
        settled = Settled()
        writer = DraftWriter(self._folder, draft.temporary.name + ".new")
        times = Counter(projection.row.trace_id for projection in draft.projections)
        said: dict[str, list[Statement]] = {}
        records: dict[str, set[str]] = {}
        lines = (line for _, line in iterate(draft.temporary))
        for entries in _batches(zip(lines, draft.projections, strict=True)):
            said = {trace_id: said[trace_id] for trace_id in said if times[trace_id] > 1}
            again = {trace_id for trace_id in _restated(entries, known, context) if trace_id not in said}
            said |= self._statements(again - context.said.keys())
            said |= {trace_id: context.said[trace_id] for trace_id in again & context.said.keys()}
            records = {trace_id: records[trace_id] for trace_id in records if times[trace_id] > 1}
            records |= self._records(entries, known, context, records)
            for line, projection in entries:
                row, trace_id = projection.row, projection.row.trace_id
                stored = known.get(trace_id)
                if stored is None and trace_id in context.embedded:
                    continue
                if stored is not None and stored.row.head == row.head:
                    settled.count["duplicates"] += 1
                elif trace_id in said:
                    self._repeat(_statement(line, row), said[trace_id], trace_id, context, settled)
                elif trace_id in readings.newer:
                    settled.count["duplicates"] += 1
                    continue
                else:
                    line, projection = _new((line, projection), readings.older.get(trace_id), settled)
                    writer.add(line, projection)
                    if times[trace_id] > 1 or trace_id in context.second or trace_id in context.repeated:
                        said[trace_id] = [_statement(line, row)]
                    if trace_id in context.repeated:
                        context.fresh[trace_id] = Stored(projection.row, draft.name, _NOWHERE)
                if trace_id in context.second:
                    self._contest(trace_id, said.setdefault(trace_id, []), context, settled)
                _remember(line, row, records.setdefault(trace_id, {row.raw_digest}), settled)
                if trace_id in context.repeated:
                    context.records[trace_id] = records[trace_id]
                    context.said |= {trace_id: said[trace_id]} if trace_id in said else {}
        draft.discard()
        settled.drafts = writer.close()
        return settled

    def _contest(self, trace_id: str, said: list[Statement], context: JobContext, settled: Settled) -> None:
        """Judge, once, what is claimed for a trace that says something else of itself."""
        if trace_id in context.judged:
            return
        context.judged.add(trace_id)
        for stamp in context.second[trace_id]:
            second = Statement("", harness=stamp)
            if self._is_outdated(second, said, context.name):
                _leave_out(trace_id, settled)
            else:
                settled.count["contested"] += _add(said, second, trace_id, settled) == "contests"

    def _repeat(
        self, statement: Statement, said: list[Statement], trace_id: str, context: JobContext, settled: Settled
    ) -> None:
        """Judge one more copy of a trace by what was said of it, and remember what the copy says."""
        silent = without_rederived_status(statement, said)
        if silent is not None:
            settled.count["rederived"] += 1
            statement = silent
        if self._is_outdated(statement, said, context.name_of(trace_id, statement)):
            _leave_out(trace_id, settled)
            statement = statement._replace(harness=None)
        halves = [statement._replace(run=None, outcome=None)] if statement.harness is not None else []
        effects = {_add(said, half, trace_id, settled) for half in (*halves, statement._replace(harness=None))}
        named = {"contests": "contested", "strengthens": "strengthened", "nothing": "duplicates"}
        became = next(word for effect, word in named.items() if effect in effects)
        settled.count[became] += 1
        if became == "strengthened":
            stamp = join(said).harness
            fingerprint = fingerprint_of(stamp)
            label = (declared_name(stamp) or fingerprint) if fingerprint is not None else "-"
            settled.strengthened[label, evidence_of(stamp)] += 1

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

    def _records(
        self,
        entries: Iterable[_Entry],
        known: Mapping[str, Stored],
        context: JobContext,
        present: Collection[str],
    ) -> dict[str, set[str]]:
        """Return which raw records are known to hold those known traces of which the entry may be another record."""
        rows = [projection.row for _, projection in entries]
        ids = {row.trace_id for row in rows if row.trace_id in known and row.trace_id not in present}
        found = {trace_id: context.records.get(trace_id, {known[trace_id].row.raw_digest}) for trace_id in ids}
        others = {row.trace_id for row in rows if row.trace_id in ids and row.raw_digest not in found[row.trace_id]}
        for store in self._stores:
            for trace_id, raws in store.records(others).items():
                found[trace_id] |= raws
        return found

    def _lookup(self, ids: list[str]) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for store in self._stores:
            found |= store.lookup(ids)
        return found

    def _statements(self, ids: Collection[str]) -> dict[str, list[Statement]]:
        found: dict[str, list[Statement]] = {}
        for store in self._stores:
            found |= store.statements(ids)
        return found


def _batches(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    """Yield entries in lists, so that the statements of many traces are read at once, and of not too many."""
    source = iter(entries)
    while batch := list(islice(source, _BATCH)):
        yield batch


def _restated(entries: Iterable[_Entry], known: Mapping[str, Stored], context: JobContext) -> Iterator[str]:
    """Yield the ids of known traces of which a copy says something else than the first, or of which a claim does."""
    for _, projection in entries:
        row = projection.row
        stored = known.get(row.trace_id)
        if stored is not None and (stored.row.head != row.head or row.trace_id in context.second):
            yield row.trace_id


def _same(stored: TraceRow, row: TraceRow) -> bool:
    """Return whether a copy is the same record and says the same."""
    return stored.head == row.head and stored.raw == row.raw


def _remember(line: bytes, row: TraceRow, records: set[str], settled: Settled) -> None:
    """State that a record holds a known trace, unless that is known."""
    if row.raw and row.raw_digest not in records:
        records.add(row.raw_digest)
        value = {"source": head_of(line)["source"]}
        settled.annotations[SOURCES].append(build(SOURCES, value, TOOL, row.trace_id))


def _new(entry: _Entry, older: list[str] | None, settled: Settled) -> _Entry:
    if older is None:
        settled.count["ingested"] += 1
        return entry
    settled.count["reimported"] += 1
    line = _superseding(entry[0], older)
    return line, project_line(line)


def _add(said: list[Statement], half: Statement, trace_id: str, settled: Settled) -> str:
    """Add to `settled` and to `said` what a statement, either about the harness or about the run, has to say.

    Returns:
        `nothing`, `strengthens` or `contests`.
    """
    kind = OUTCOMES if half.harness is None else STAMPS
    if is_refuted(half) and any(names_another(other, half) for other in said):
        return "nothing"
    gone = [] if half.harness is None else replaced(said, half)
    left = [other._replace(harness=None) if other.digest in gone else other for other in said]
    effect = relation(left, half)
    if effect == "nothing" and join(left).conflicts and all(relation([other], half) != "nothing" for other in left):
        # where statements disagree, joining them keeps the first value: a third one would be lost
        effect = "contests"
    if effect != "nothing":
        value = {k: v for k, v in (("harness", half.harness), ("run", half.run), ("outcome", half.outcome)) if v}
        tool = TOOL if half.source is None else {**TOOL, "parameters": {"source": half.source}}
        annotation = build(kind, value, tool, trace_id)
        if gone:
            annotation["supersedes"] = gone
        settled.annotations[kind].append(annotation)
        said[:] = [*left, half._replace(digest=digest.of(annotation))]
    if effect == "contests":
        settled.disputed[trace_id] = said
    return effect


def _leave_out(trace_id: str, settled: Settled) -> None:
    settled.count["outdated"] += 1
    settled.outdated = settled.outdated or trace_id


def _statement(line: bytes, row: TraceRow) -> Statement:
    head = head_of(line)
    return Statement(row.head_digest, head["harness"], head["run"], head["outcome"], row.label)


def _superseding(line: bytes, ids: list[str]) -> bytes:
    """Return the line, its source naming the traces that it replaces."""
    head = head_of(line)
    source = {**head["source"], "supersedes": ids}
    statement = {name: head[name] for name in ("harness", "outcome", "run")}
    return line_of(digest.canonical(statement), source, trajectory_slice(line))
