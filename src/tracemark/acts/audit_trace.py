"""The audit of a trace: which harness made it, by what evidence for each part, and what became of it.

It also tells which known harnesses fit its content, what differs from the accepted one, where its bytes came from, and
which exports used it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus
from tracemark.acts.eligible import eligible
from tracemark.acts.gate_evidence import rested_on
from tracemark.acts.history import decided, exported
from tracemark.acts.provenance import (
    components,
    content_in,
    contradictions,
    declared_name,
    disputed,
    labels_of,
    standing,
)
from tracemark.acts.pulled import not_pulled
from tracemark.acts.uncompared import left_out
from tracemark.findings import Finding, Report
from tracemark.harness.declared import Comparison, compare
from tracemark.harness.match import Content, fits
from tracemark.ledger.entry import Entry
from tracemark.ledger.state import records_named
from tracemark.store.disputes import decision_refuted
from tracemark.store.selection import Decisions
from tracemark.store.state import Joined, Statement, harness_named
from tracemark.store.store import Store


@dataclass(frozen=True)
class TraceAudit(Report):
    """Where one trace comes from."""

    trace_id: str
    """SHA-256 of the trajectory's canonical bytes."""
    fingerprint: str | None
    """The harness under which it counts now; None when it counts under none."""
    harness: str | None
    """Its label; None when it counts under none."""
    stated: list[str]
    """Labels of the harnesses that anybody stated for it, sorted; empty when nobody did."""
    evidence: str
    """That of the weakest component; `unrecorded` when nobody names a harness."""
    components: dict[str, dict[str, Any]]
    """Component to `digest`, `evidence`, `parts` (part to `digest` and `evidence`) and `observed` (digests of what the
    content itself shows, each with `part` and `form`). The evidence of a declared component that has no parts is
    `vacuous`: there was nothing to record; or `undeclared`, where the trace itself shows parts of it. Where nobody
    declared a component, the observed digests stand in place of its parts, each with its `form`; `digest` is null where
    the content shows nothing either."""
    contradictions: list[dict[str, Any]]
    """Where the content disagrees with a harness that was stated: `harness` (its label), `component`, `part`, `step`
    (absent when the place is no step), `text`. They stay when the trace is settled under another harness."""
    mixed: list[str] | None
    """Where more than one harness was at work, in words; empty when nobody says where, None for a run of one harness.
    No export takes a mixed trace."""
    fits: list[str]
    """Fingerprints of the known harnesses that the content does not exclude."""
    labels: dict[str, str]
    """The label of each fingerprint in `fits`."""
    accepted: bool
    """Whether it counts under the accepted harness or a declared equivalent; false while it is open which one is."""
    accepted_harness: str | None
    """Fingerprint of the accepted harness; None when none is accepted."""
    differs_in: list[str] | None
    """`component/part` in which it differs from the accepted harness, as far as can be told; None when there is nothing
    to compare with: no harness is accepted, or nobody knows the texts of the accepted one."""
    status: str
    """`success`, `failure`, `error` or `unknown`."""
    outcome: dict[str, Any]
    """Status, reward, grader and what else is known of how it ended."""
    run: dict[str, Any]
    """Task, model and other facts of the run."""
    agent: dict[str, Any]
    """`name` and `version` that the document gives for its agent: labels, which no harness is known by."""
    source: dict[str, Any]
    """Format, file, digest of the raw record, importer, repairs."""
    export: str
    """Whether an SFT export made now would take it, limits of number aside: `yes`, or `no: ` and the first reason why
    not, with its detail where there is one (`no: not-trainable (demonstration)`)."""
    exports: list[dict[str, Any]]
    """Exports that took it: `manifest` (digest), `fingerprint`, `policy`, `rows` (their number)."""
    conflicts: list[dict[str, Any]]
    """What statements about it dispute and nobody has decided, a row for each value and source: `member` (`harness`, or
    such as `outcome.reward`), `value`, `source` (label of the source that says so, null when unknown)."""
    retracted: bool
    """Whether the ledger bars it."""
    superseded_by: list[str]
    """Ids of traces that a newer importer made of the same record."""
    inherited: list[dict[str, Any]]
    """What was stated of traces that it supersedes, and holds for it: `of` (`harness`, or `outcome` for outcome and
    run), `trace` (id of the one of which it was stated), `source` (label of what said so, null when unknown)."""
    decisions: list[dict[str, Any]]
    """Ledger entries about it, a trace that it supersedes or a record that holds its run, and a gate's decisions that
    rest on it or a trace that it supersedes, as far as the ledger or a report at hand names their traces: `kind`
    (`stamp`, `retract`, `reinstate`; `install`, `reject`), `time`, `reason`, `entry` (digest), and `trace`, the id of
    another trace that the entry is about, absent when it is about this one."""


def audit_trace(corpus: Corpus, store: Store, trace_id: str) -> TraceAudit:
    """Audit one trace of an open store.

    Raises:
        UnknownNameError: when there is no such trace.
        IntegrityError: when the stored bytes are not those of the id.
    """
    decisions = store.applied(corpus.store_decisions, [trace_id])
    state = store.state(trace_id, decisions)
    line = digest.load_canonical(store.get(trace_id))
    fingerprint = state.row.fingerprint
    said = store.statements([trace_id])[trace_id]
    joined = standing(said, state, decisions, corpus.by_fingerprint.get(fingerprint or ""))
    content = content_in(line)
    fitting = fits(corpus.matchers.values(), content)
    uncompared = left_out(corpus, store)
    taken = [exported(note.value["value"]) for note in store.exports_of(trace_id, store.findings)]
    return TraceAudit(
        findings=(
            *not_pulled(corpus),
            *corpus.acceptance_findings(),
            *store.findings,
            *_refuted(trace_id, decisions),
            *uncompared,
        ),
        trace_id=trace_id,
        fingerprint=fingerprint,
        harness=(corpus.name_of(fingerprint) or state.row.harness) if fingerprint else None,
        stated=sorted({name for one in said if (name := declared_name(one.harness)) is not None}),
        evidence=state.row.evidence,
        components=components(joined.harness),
        contradictions=contradictions(said),
        mixed=joined.harness.get("changes", []) if state.row.mixed else None,
        fits=fitting,
        labels={one: corpus.by_fingerprint[one].name for one in fitting},
        accepted=fingerprint is not None and fingerprint in corpus.equivalents(),
        accepted_harness=corpus.accepted,
        differs_in=_differences(corpus, joined, said, content),
        status=state.row.status,
        outcome=joined.outcome,
        run=joined.run,
        agent=labels_of(line["trajectory"]),
        source=line["source"],
        export=eligible(corpus, state, line, fitting, uncompared),
        exports=taken,
        conflicts=disputed(said, state.conflicts),
        retracted=state.retracted,
        superseded_by=list(state.superseded_by),
        inherited=_inherited(said),
        decisions=_decisions_about(corpus, store, trace_id),
    )


def _refuted(trace_id: str, decisions: Decisions) -> list[Finding]:
    """Return the finding that a decision puts a trace under a harness which its content excludes."""
    refuted = decisions.void.get(trace_id)
    return [] if refuted is None else [decision_refuted(trace_id, refuted)]


def _differences(corpus: Corpus, joined: Joined, said: Sequence[Statement], content: Content) -> list[str] | None:
    """Return in which parts the trace differs from the accepted harness: by its stamp and by its content.

    What statements list against the harness counts too: an importer sees more of its source than a trajectory keeps.
    """
    accepted = corpus.by_fingerprint.get(corpus.accepted or "")
    if accepted is None:
        return None
    declared = (joined.harness.get("declared") or {}).get("components") or {}
    judged = corpus.matchers[accepted.fingerprint].judge(content).contradictions
    places = {(place.component, place.part) for place in judged}
    for statement in said:
        stamp = statement.harness or {}
        if harness_named(stamp) == accepted.fingerprint:
            places |= {(place["component"], place["part"]) for place in stamp.get("contradictions") or ()}
    found = []
    for component, parts in compare(declared, accepted).items():
        stated = [part or "order" for part, said in parts.items() if said is Comparison.DIFFERENT]
        shown = sorted(part for name, part in places if name == component)
        found += [f"{component}/{part}" for part in dict.fromkeys([*stated, *shown])]
    return found


def _inherited(said: Sequence[Statement]) -> list[dict[str, Any]]:
    """Return what of some statements was stated of superseded traces."""
    return [
        {"of": "outcome" if one.harness is None else "harness", "trace": one.inherited, "source": one.source}
        for one in said
        if one.inherited is not None and (one.harness or one.outcome or one.run)
    ]


def _decisions_about(corpus: Corpus, store: Store, trace_id: str) -> list[dict[str, Any]]:
    records = cache(lambda: store.records_of_run(trace_id))
    settled = corpus.decisions.stamps.keys() | corpus.decisions.divided.keys()
    inherited = cache(lambda: store.inherited_from(settled, trace_id))
    rested = rested_on(corpus)
    evidence = {trace for traces in rested.values() for trace in traces}
    read_before = store.inherited_from(evidence, trace_id) | {trace_id} if evidence else {trace_id}

    def concerns(entry: Entry) -> bool:
        about = entry.decision.subject.get("trace")
        if about == trace_id or (about in settled and about in inherited()):
            return True
        if not read_before.isdisjoint(rested.get(entry.digest, ())):
            return True
        named = records_named(entry.decision.subject)
        return bool(named) and not records().isdisjoint(named)

    return decided(corpus, concerns, trace_id)
