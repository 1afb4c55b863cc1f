"""What was stated of superseded traces, and holds for the one that stands for them.

A newer importer version that reads a record again makes another trace of the same run. What the record itself said
under the older version is replaced by what it says now. All else that was stated of the run is stated of the new trace
when this is stored: by an annotation that names the superseded trace, and the record that said so where that is known.

Invariants:
- what another record said of the run holds until a newer version reads that record too, and says something else of it;
- a claim is of the run and of no reading: it holds, compared with the new content like any claim. One that the older
  content refuted says nothing; to be compared with the new one it must be made again;
- a statement that took the place of what the record said of its outcome does so again where the record says the same;
- what was inherited is inherited on, from the nearest reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from tracemark import digest
from tracemark.acts.ingest_job import line_of
from tracemark.acts.job_records import Entry
from tracemark.acts.provenance import content_in
from tracemark.acts.settled import Settled, add_statement
from tracemark.acts.stamping import Stamper, contradicted
from tracemark.acts.worth import without_rederived_status
from tracemark.harness.match import Content
from tracemark.store.annotations import OUTCOMES, SOURCES, STAMPS
from tracemark.store.row import Projection, head_of, project_line, trajectory_slice
from tracemark.store.state import Statement, is_claim, relation
from tracemark.store.store import Store


class Inherited(NamedTuple):
    """One statement that a new trace inherits."""

    statement: Statement
    """What is said, either of the harness or of run and outcome."""
    settles: bool = False
    """Whether it takes the place of the outcome that the record itself gives."""


def inheritance(
    stores: Sequence[Store],
    said: Mapping[str, Sequence[Statement]],
    older: Collection[str],
    entry: Entry,
    stamper: Stamper,
) -> Iterator[Inherited]:
    """Yield what a new trace inherits of the traces that it supersedes.

    Args:
        stores: where these are stored.
        said: the statements in force about each of them.
        older: their ids.
        entry: the record of which the new trace is made.
        stamper: compares a harness that was stated with the new content.

    Raises:
        IntegrityError: when something stored that must be read is damaged.
    """

    @cache
    def content() -> Content:
        return content_in(digest.load_canonical(entry.line))

    raw, outcome = entry.projection.row.raw_digest, head_of(entry.line)["outcome"]
    for old in _nearest(stores, older):
        records = _Records(stores, old)
        for one in said[old]:
            by = one.raw or records.of(one.source)
            noted = one._replace(digest="", raw=by, inherited=one.inherited or old)
            own = one.inherited is None and one is said[old][0] and not by
            if _declares(one) and (is_claim(one) or not (own or by == raw)):
                stamp = stamper.inherited(one.harness or {}, content())
                yield Inherited(noted._replace(harness=stamp, run=None, outcome=None))
            if not (own or by == raw) and _states_facts(one):
                settles = one.digest in records.settling and outcome == records.outcome
                yield Inherited(noted._replace(harness=None), settles)


def inherit(said: list[Statement], inherited: Sequence[Inherited], entry: Entry, settled: Settled) -> None:
    """State of a new trace what it inherits.

    Args:
        said: what was said of it so far, its own record first; takes the statements.
        inherited: what it inherits.
        entry: its record.
        settled: takes the statements too.
    """
    row = entry.projection.row
    for one in inherited:
        statement = without_rederived_status(one.statement, said) or one.statement
        gone = [said[0].digest] if one.settles else []
        effect = add_statement(said, statement, row.trace_id, settled, gone)
        if effect == "nothing":
            continue
        settled.heirs.add(row.trace_id)
        settled.inherited[OUTCOMES if statement.harness is None else STAMPS] += 1
        if (statement.harness or {}).get("contradictions"):
            found = contradicted(row.label or "", row.trace_id, statement.harness or {})
            settled.refuted.append((row.trace_id, found))


def restate(said: list[Statement], statement: Statement, trace_id: str, settled: Settled) -> None:
    """Take in what the record says of which a line of a trace is stored, perhaps another than the first.

    Args:
        said: what was said of it so far; takes the statement.
        statement: what it says.
        trace_id: the trace.
        settled: takes what follows for statements that the record made of an older reading.
    """
    if not said:
        said.append(statement)
        return
    if relation(said, statement) == "contests":
        settled.disputed[trace_id] = said
    halves = statement._replace(run=None, outcome=None), statement._replace(harness=None)
    gone = [unsaid(said, half) for half in halves]
    said.append(statement)
    for half, digests in zip(halves, gone, strict=True):
        if digests:
            add_statement(said, half, trace_id, settled, digests)


def unsaid(said: Sequence[Statement], now: Statement) -> list[str]:
    """Return the digests of inherited statements that a record made of an older reading, and no more of this one.

    Args:
        said: the statements in force about the trace.
        now: what the record says now, perhaps only of the harness, or of run and outcome.
    """
    made = [one for one in said if one.inherited is not None and one.raw == now.raw]
    return [
        one.digest
        for one in made
        if (now.harness is not None and one.harness and not is_claim(one) and one.harness != now.harness)
        or (now.outcome is not None and _states_facts(one) and (one.run, one.outcome) != (now.run, now.outcome))
    ]


def superseding(entry: Entry, ids: Sequence[str], statement: Statement) -> tuple[bytes, Projection]:
    """Return line and projection of a record, its source naming the traces that it supersedes.

    Args:
        entry: the record.
        ids: those traces.
        statement: what the line says; where that is nothing of the harness, it keeps what its content shows.
    """
    head = head_of(entry.line)
    source = {**head["source"], "supersedes": list(ids)}
    shown = {name: value for name, value in head["harness"].items() if name == "observed"}
    harness = shown if statement.harness is None else statement.harness
    said = {"harness": harness, "outcome": statement.outcome, "run": statement.run}
    line = line_of(digest.canonical(said), source, trajectory_slice(entry.line))
    return line, project_line(line)


class _Records:
    """What is stored of the records of one superseded trace."""

    def __init__(self, stores: Sequence[Store], trace_id: str) -> None:
        self._trace_id = trace_id
        self._store: Store | None = None
        self.settling: set[str] = set()
        """Digests of the statements that took the place of that outcome."""
        self._labels: dict[str, set[str]] = {}
        for store in stores:
            stored = store.lookup([trace_id]).get(trace_id)
            if stored is not None:
                self._store = store
                self._add(stored.row.label, stored.row.raw_digest)
            for note in store.annotations(SOURCES, trace_id):
                source = note.value["value"]["source"]
                self._add(source.get("label"), source.get("raw"))
            for note in store.annotations(OUTCOMES, trace_id) if stored is not None else ():
                if stored is not None and stored.row.head_digest in note.value.get("supersedes", ()):
                    self.settling.add(note.digest)

    @cached_property
    def outcome(self) -> object:
        """The outcome that its first statement gives; None where no store has it."""
        return None if self._store is None else head_of(self._store.get(self._trace_id))["outcome"]

    def of(self, label: str | None) -> str | None:
        """Return the digest of the one record that has a label; None where nobody can tell."""
        found = self._labels.get(label or "", set())
        return next(iter(found)) if len(found) == 1 else None

    def _add(self, label: str | None, raw: str | None) -> None:
        if label and raw:
            self._labels.setdefault(label, set()).add(raw)


def _nearest(stores: Sequence[Store], ids: Collection[str]) -> list[str]:
    """Return those of some superseded traces that no other of them supersedes, sorted."""
    wanted = [bytes.fromhex(trace_id) for trace_id in ids]
    pairs = {pair for store in stores for pair in store.catalogue.replacing(wanted)}
    behind = {old.hex() for old, new in pairs if new.hex() in ids and old != new}
    return sorted(set(ids) - behind)


def _declares(statement: Statement) -> bool:
    stamp = statement.harness or {}
    return bool((stamp.get("declared") or {}).get("components")) and not stamp.get("contradictions")


def _states_facts(statement: Statement) -> bool:
    known = {name: value for name, value in (statement.outcome or {}).items() if (name, value) != ("status", "unknown")}
    return bool(known or statement.run)
