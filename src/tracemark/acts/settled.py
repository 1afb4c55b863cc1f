"""What an ingest run has to say of known traces, and how one more statement is judged beside those in force.

Invariants:
- a statement that adds nothing is not written;
- what is claimed and refuted is worth nothing beside another harness, see `worth`;
- a statement that is inherited from another reading of the run says of which trace it was said, and from which record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracemark import __version__, digest
from tracemark.acts.provenance import declared_name
from tracemark.acts.worth import replaced
from tracemark.findings import Finding
from tracemark.model.annotation import build
from tracemark.model.stamp import evidence_of, fingerprint_of
from tracemark.store.annotations import INGESTED, OUTCOMES, SOURCES, STAMPS
from tracemark.store.draft import SegmentDraft
from tracemark.store.row import TraceRow, head_of
from tracemark.store.state import Statement, is_refuted, join, names_another, relation
from tracemark.store.statements import statement_in
from tracemark.store.store import Store

TOOL = {"name": "ingest", "version": __version__}
"""Who makes the annotations of this module."""


@dataclass(slots=True)
class Settled:
    """What became of the records of one job."""

    drafts: list[SegmentDraft] = field(default_factory=list)
    """What is left to commit; empty when everything was known."""
    annotations: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {kind: [] for kind in INGESTED})
    """New statements, by kind."""
    count: Counter[str] = field(default_factory=Counter)
    """Records: `ingested`, `reimported`, `duplicates`, `strengthened`, `disputing`, of which each is one; and
    `rederived`: those whose status is left out because the known one was made of the same reward under another
    `ingest.success_reward`."""
    outdated: dict[str, None] = field(default_factory=dict)
    """Traces, in order, of which a claim is left out because its name meant the harness that they have when they were
    stored."""
    disputed: dict[str, list[Statement]] = field(default_factory=dict)
    """What is said of each trace that statements disagree about since now, or of which one is taken back."""
    strengthened: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Records that say more of a known trace, by the label of its harness since (`-` for none) and its evidence."""
    reimported: dict[str, set[str]] = field(default_factory=dict)
    """Traces that supersede others since now, in order, and these."""
    standing: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Label (`-` for none) and evidence of those new traces that inherit statements; a draft does not tell."""
    inherited: Counter[str] = field(default_factory=Counter)
    """Statements that new traces inherit, by kind."""
    heirs: set[str] = field(default_factory=set)
    """The traces that inherit them."""
    refuted: list[tuple[str, Finding]] = field(default_factory=list)
    """(trace id, finding) where the content of a new trace disagrees with a harness that it inherits."""


def statement_of(line: bytes, row: TraceRow) -> Statement:
    """Return what a record says, given its line and its row."""
    head = head_of(line)
    return Statement(row.head_digest, head["harness"], head["run"], head["outcome"], row.label, row.raw_digest or None)


def standing_in(said: Sequence[Statement]) -> tuple[str, str]:
    """Return the label of the harness under which a trace counts (`-` for none) and its evidence."""
    stamp = join(said).harness
    fingerprint = fingerprint_of(stamp)
    return (declared_name(stamp) or fingerprint) if fingerprint is not None else "-", evidence_of(stamp)


def with_tried(said: list[Statement], store: Store, trace_id: str) -> list[Statement]:
    """Return statements about a trace of another store, with those about it that `store` holds."""
    for kind in (STAMPS, OUTCOMES):
        for note in store.annotations(kind, trace_id):
            said = [*_left(said, kind, note.value.get("supersedes", ())), statement_in(note.digest, note.value)]
    return said


def remember(line: bytes, row: TraceRow, records: set[str], settled: Settled) -> None:
    """State that a record holds a known trace, unless that is known."""
    if row.raw and row.raw_digest not in records:
        records.add(row.raw_digest)
        value = {"source": head_of(line)["source"]}
        settled.annotations[SOURCES].append(build(SOURCES, value, TOOL, row.trace_id))


def add_statement(
    said: list[Statement], half: Statement, trace_id: str, settled: Settled, gone: Collection[str] = ()
) -> str:
    """Add to `settled` and to `said` what a statement, either about the harness or about the run, has to say.

    Args:
        said: the statements in force about the trace.
        half: the statement.
        trace_id: the trace.
        settled: takes the statement, where it says something.
        gone: digests of those of `said` that it replaces, beside the refuted claims that it does.

    Returns:
        `nothing`, `strengthens` or `contests`.
    """
    kind = OUTCOMES if half.harness is None else STAMPS
    if is_refuted(half) and any(names_another(other, half) for other in said):
        return "nothing"
    gone = sorted({*gone, *(() if half.harness is None else replaced(said, half))})
    left = _left(said, kind, gone)
    effect = relation(left, half)
    if gone and effect == "nothing" and join([*left, half]) != join(said):
        # it says nothing new and takes something back
        effect = "strengthens"
    if effect == "nothing" and join(left).conflicts and all(relation([other], half) != "nothing" for other in left):
        # where statements disagree, joining them keeps the first value: a third one would be lost
        effect = "contests"
    if effect != "nothing":
        value = {k: v for k, v in (("harness", half.harness), ("run", half.run), ("outcome", half.outcome)) if v}
        noted = {"source": half.source}
        if half.inherited is not None:
            # of its own record a trace knows which it is
            noted |= {"raw": half.raw, "inherited": half.inherited}
        parameters = {name: text for name, text in noted.items() if text is not None}
        tool = {**TOOL, "parameters": parameters} if parameters else TOOL
        annotation = build(kind, value, tool, trace_id)
        if gone:
            annotation["supersedes"] = gone
        settled.annotations[kind].append(annotation)
        said[:] = [*left, half._replace(digest=digest.of(annotation))]
    if effect == "contests" or gone:
        settled.disputed[trace_id] = said
    return effect


def _left(said: Sequence[Statement], kind: str, gone: Collection[str]) -> list[Statement]:
    """Return what is left of statements, the first of the trace in front, when some are replaced by one of `kind`."""
    left = []
    for number, one in enumerate(said):
        if one.digest in gone and kind == STAMPS:
            one = one._replace(harness=None)
        elif one.digest in gone:
            one = one._replace(outcome=None, run=None if number else one.run)
        left.append(one)
    return left
