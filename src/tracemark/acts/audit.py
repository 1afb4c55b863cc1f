"""`audit`: where does this come from, and is it still what it says?

Of a trace: which harness made it, by what evidence for each part, which known harnesses fit its content, what differs
from the accepted one, where its bytes came from, which exports used it. Of an export: every row made again from the
store. Of a harness: its traces, successes, exports and decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, is_short, open_store
from tracemark.acts.eligible import eligible
from tracemark.acts.export import KIND, terms_of
from tracemark.acts.provenance import components, content_in, contradictions, declared_name, disputed, standing
from tracemark.acts.pulled import not_pulled, resolve
from tracemark.errors import IntegrityError, UnknownNameError
from tracemark.exporters import audit as exports
from tracemark.exporters import manifest as manifests
from tracemark.exporters.head import head_in, require_same
from tracemark.exporters.select import facts
from tracemark.findings import Finding, Report
from tracemark.harness.declared import Comparison, compare
from tracemark.harness.match import Content, fits
from tracemark.harness.version import Harness
from tracemark.importers.atif import content_of
from tracemark.ledger.state import records_named
from tracemark.store.check import decision_refuted
from tracemark.store.reading import SHORTEST_PREFIX
from tracemark.store.selection import Decisions, Selection
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
    `vacuous`: there was nothing to record. Where nobody declared a component, the observed digests stand in place of
    its parts, each with its `form`; `digest` is null where the content shows nothing either."""
    contradictions: list[dict[str, Any]]
    """Where the content disagrees with a harness that was stated: `harness` (its label), `component`, `part`, `step`
    (absent when the place is no step), `text`. They stay when the trace is settled under another harness."""
    fits: list[str]
    """Fingerprints of the known harnesses that the content does not exclude."""
    labels: dict[str, str]
    """The label of each fingerprint in `fits`."""
    accepted: bool
    """Whether it counts under the accepted harness or a declared equivalent."""
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
    decisions: list[dict[str, Any]]
    """Ledger entries about it or a record that holds its run: `kind` (`stamp`, `retract`, `reinstate`), `time`,
    `reason`, `entry` (digest)."""


@dataclass(frozen=True)
class ExportAudit(Report):
    """Whether an export is what the store would give now."""

    export: str
    """The folder, as it was named."""
    fingerprint: str | None
    """The harness that its manifest names; None when there is no readable manifest."""
    policy: str | None
    """The policy that its manifest states."""
    rows: int
    """Rows that its manifest counts; 0 without one."""
    outcomes: dict[str, int]
    """What its manifest says of the rows' success."""
    differences: int
    """How many differences from what the store would give now were found; each is a finding."""
    proved: tuple[str, ...]
    """What was derived again and found to be so, one sentence each."""


@dataclass(frozen=True)
class HarnessAudit(Report):
    """What the corpus holds of one harness."""

    name: str
    """Its label."""
    fingerprint: str
    """Its fingerprint."""
    accepted: bool
    """Whether it is the accepted one or declared equivalent to it."""
    traces: int
    """Traces that count under it."""
    successes: int
    """Recorded successes among them."""
    statuses: dict[str, int]
    """Traces by status."""
    evidence: dict[str, int]
    """Traces by the evidence of their weakest component."""
    exports: list[dict[str, Any]]
    """Exports of it: `manifest` (digest), `policy`, `rows` (their number)."""
    decisions: list[dict[str, Any]]
    """Ledger entries that name it: `kind`, `time`, `reason`, `entry` (digest)."""


def audit(root: Path, target: str) -> TraceAudit | ExportAudit | HarnessAudit:
    """Audit what `target` names: the folder of an export, a harness, or a trace.

    A folder without a manifest is taken for an export only when nothing else answers to its name.

    Raises:
        UnknownNameError: when nothing answers to `target`.
        NoStoreError: when there is no store.
    """
    folder = Path(target)
    if (folder / manifests.NAME).is_file():
        return audit_export(root, folder)
    corpus = Corpus(root)
    try:
        return audit_harness(corpus, corpus.resolve(target))
    except UnknownNameError as unknown:
        if _may_be_trace(target):
            with open_store(root) as store:
                return audit_trace(corpus, store, resolve(corpus, store, target))
        if folder.is_dir():
            return audit_export(root, folder)
        short = f" (of an id at least {SHORTEST_PREFIX} digits are needed)" if is_short(target) else ""
        raise UnknownNameError(
            f"{target!r} is no export folder, no harness and no trace id{short}",
            hint=f"{unknown.hint}; tracemark traces list",
        ) from None


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
    return TraceAudit(
        findings=(*not_pulled(corpus), *store.findings, *_refuted(trace_id, decisions), *corpus.left_out()),
        trace_id=trace_id,
        fingerprint=fingerprint,
        harness=(corpus.name_of(fingerprint) or state.row.harness) if fingerprint else None,
        stated=sorted({name for one in said if (name := declared_name(one.harness)) is not None}),
        evidence=state.row.evidence,
        components=components(joined.harness),
        contradictions=contradictions(said),
        fits=fitting,
        labels={one: corpus.by_fingerprint[one].name for one in fitting},
        accepted=fingerprint is not None and fingerprint in corpus.equivalents(),
        accepted_harness=corpus.accepted,
        differs_in=_differences(corpus, joined, said, content),
        status=state.row.status,
        outcome=joined.outcome,
        run=joined.run,
        source=line["source"],
        export=eligible(corpus, state, line, fitting),
        exports=[_export(note.value["value"]) for note in store.exports_of(trace_id)],
        conflicts=disputed(said, state.conflicts),
        retracted=state.retracted,
        superseded_by=list(state.superseded_by),
        decisions=_decisions_about(corpus, store, trace_id),
    )


def _refuted(trace_id: str, decisions: Decisions) -> list[Finding]:
    """Return the finding that a decision puts a trace under a harness which its content excludes."""
    refuted = decisions.void.get(trace_id)
    return [] if refuted is None else [decision_refuted(trace_id, refuted)]


def audit_export(root: Path, folder: Path) -> ExportAudit:
    """Audit an export: every row is made again from the store, and every difference named.

    Raises:
        IntegrityError: when a stored trace is damaged, or is not what the catalogue says of it.
        NoStoreError: when there is no store.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        recorded = frozenset(str(note.value["value"]["manifest"]) for note in store.annotations(KIND))
        present = exports.Present(
            terms=terms_of(corpus),
            fetch=_Fetch(store, corpus.store_decisions, _named_rows(folder)),
            tools=cache(corpus.offered),
            fits=lambda trajectory: fits(corpus.matchers.values(), content_of(trajectory)),
            recorded=recorded,
        )
        audited = exports.audit(folder, present)
        findings = [
            *not_pulled(corpus),
            *store.findings,
            *corpus.acceptance_findings(),
            *audited.differences,
            *audited.notes,
            *corpus.left_out(),
        ]
    manifest = audited.manifest
    return ExportAudit(
        findings=tuple(findings),
        export=str(folder),
        fingerprint=manifest.harness.fingerprint if manifest else None,
        policy=manifest.policy if manifest else None,
        rows=manifest.counts.rows if manifest else 0,
        outcomes=manifest.outcomes if manifest else {},
        differences=len(audited.differences),
        proved=audited.proved(),
    )


def audit_harness(corpus: Corpus, harness: Harness) -> HarnessAudit:
    """Audit one harness: what the store and the ledger hold of it.

    Raises:
        NoStoreError: when there is no store.
    """
    fingerprint = harness.fingerprint
    statuses: Counter[str] = Counter()
    evidence: Counter[str] = Counter()
    with open_store(corpus.root) as store:
        wanted = Selection(fingerprints=frozenset({fingerprint}))
        for state in store.select(wanted, corpus.store_decisions):
            statuses[state.row.status] += 1
            evidence[state.row.evidence] += 1
        taken = [
            _export(note.value["value"])
            for note in store.annotations(KIND)
            if note.value["value"]["fingerprint"] == fingerprint
        ]
        findings = tuple(store.findings)
    return HarnessAudit(
        findings=(*harness.findings, *not_pulled(corpus), *findings, *corpus.left_out()),
        name=harness.name,
        fingerprint=fingerprint,
        accepted=fingerprint in corpus.equivalents(),
        traces=statuses.total(),
        successes=statuses["success"],
        statuses=dict(sorted(statuses.items())),
        evidence=dict(sorted(evidence.items())),
        exports=taken,
        decisions=_decisions(corpus, lambda subject: fingerprint in _harnesses_named(subject)),
    )


class _Fetch:
    """Gives a stored trace as it stands now.

    Args:
        store: the store.
        decisions: the ledger's.
        expected: ids that will be asked for; what they stand for is read at once.
    """

    def __init__(self, store: Store, decisions: Decisions, expected: Collection[str]) -> None:
        self._store = store
        self._decisions = decisions
        wanted = Selection(traces=frozenset(filter(_is_id, expected)), superseded=True)
        self._states = {state.trace_id: state for state in store.select(wanted, decisions)}
        store.require_true([trace for trace, state in self._states.items() if state.restated])

    def __call__(self, trace_id: str) -> exports.Found | None:
        if not _is_id(trace_id):
            # an export may be edited, and then says anything
            return None
        try:
            state = self._states.get(trace_id)
            if state is None:
                state = self._store.state(trace_id, self._decisions)
                self._store.require_true([trace_id] if state.restated else [])
            line = self._store.get(trace_id)
            require_same(line, trace_id, head_in(state))
            return exports.Found(line, facts(state))
        except UnknownNameError:
            return None


def _named_rows(folder: Path) -> list[str]:
    """Return the ids that the manifest of an export names; none where the audit will say that it cannot be read."""
    try:
        return manifests.decode((folder / manifests.NAME).read_bytes())[0].rows
    except (OSError, IntegrityError):
        return []


def _is_id(text: str) -> bool:
    return len(text) == 64 and _may_be_trace(text)


def _may_be_trace(target: str) -> bool:
    return SHORTEST_PREFIX <= len(target) <= 64 and all(digit in "0123456789abcdef" for digit in target)


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


def _export(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "manifest": value["manifest"],
        "fingerprint": value["fingerprint"],
        "policy": value["policy"],
        "rows": len(value["traces"]),
    }


def _decisions_about(corpus: Corpus, store: Store, trace_id: str) -> list[dict[str, Any]]:
    records = cache(lambda: store.records_of_run(trace_id))

    def concerns(subject: Mapping[str, Any]) -> bool:
        if subject.get("trace") == trace_id:
            return True
        named = records_named(subject)
        return bool(named) and not records().isdisjoint(named)

    return _decisions(corpus, concerns)


def _decisions(corpus: Corpus, concerns: Callable[[Mapping[str, Any]], bool]) -> list[dict[str, Any]]:
    made = [(entry.decision, entry.digest) for entry in corpus.chain.entries if concerns(entry.decision.subject)]
    return [{"kind": one.kind, "time": one.time, "reason": one.reason, "entry": name} for one, name in made]


def _harnesses_named(subject: Mapping[str, Any]) -> set[str | None]:
    return {subject.get("harness"), subject.get("fingerprint"), *(subject.get("fingerprints") or ())}
