"""The evidence of gates' decisions, held against what can be looked at now: reports, the store and the ledger itself.

Invariants:
- what cannot be looked at (a report that is not at hand, traces that are not stored) is said to be so, and is neither
  taken for proved nor for broken;
- it is read as `check` reads, without opening the store: nothing is changed;
- broken is what contradicts itself, its report, or the pair and the evaluation set that were in force where it was
  made; the ledger's own chain is verified before any of it;
- evidence that cannot be read is named, and so is what this version does not know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracemark.acts.corpus import Corpus
from tracemark.acts.kept_reports import at_hand, unnamed
from tracemark.errors import ParamsError
from tracemark.findings import Finding, finding
from tracemark.gates.grounds import Read, astray, in_force, misplaced, read, unfounded, unlike_told
from tracemark.ledger import params
from tracemark.ledger.entry import Entry
from tracemark.model.decision import GateEvidence, Kind
from tracemark.model.gate import GateReport
from tracemark.store.disputes import stored_records
from tracemark.store.layout import Layout
from tracemark.words import first_few

JUDGED = (Kind.INSTALL, Kind.REJECT)
"""Kinds of decisions that a gate made."""

_SHOWN = 3
_LOG = "tracemark gate log shows the decisions; tracemark gate rollback --to ENTRY --reason TEXT decides anew"
_UNREAD: Read[GateReport] = Read(None, None)


@dataclass(frozen=True)
class Held:
    """What of the evidence of decisions could be derived again."""

    read: dict[str, GateEvidence]
    """By entry, what could be read."""
    of: dict[str, dict[str, str]]
    """By entry: `report`, `traces` and `params`, each in words."""
    findings: tuple[Finding, ...]
    """What is broken, or no longer what a decision rested on."""
    proved: tuple[str, ...]
    """What was derived again, one sentence each."""


def evidence_held(corpus: Corpus) -> Held:
    """Hold the evidence of every gate's decision against the reports at hand, the store and the entries before it."""
    judged = [entry for entry in corpus.chain.entries if entry.decision.kind in JUDGED]
    kept, back = at_hand(corpus.root), _back(corpus)
    stray = unnamed(kept, {str((entry.decision.evidence or {}).get("report")) for entry in judged})
    findings: list[Finding] = [*kept.findings, *stray, *back.findings]
    if not judged:
        return Held({}, {}, tuple(findings), back.proved)
    known: dict[str, GateEvidence] = {}
    for entry in judged:
        evidence = read(GateEvidence, entry.decision.evidence)
        findings += _unread(entry, evidence.value is not None, evidence.problem)
        if evidence.value is not None:
            known[entry.digest] = evidence.value
    held = {entry.digest: dict.fromkeys(("report", "traces", "params"), "none") for entry in judged}
    then = in_force(corpus.chain, (entry for entry in judged if entry.digest in known))
    traces = {entry: _traces(one, kept.reports.get(one.report, _UNREAD).value) for entry, one in known.items()}
    stored = _stored(corpus, {trace for named in traces.values() for trace in named})
    now = _params_now(corpus)
    whole = placed = 0
    for entry in judged:
        one = known.get(entry.digest)
        if one is None:
            continue
        report = kept.reports.get(one.report)
        found = report.value if report is not None else None
        elsewhere = misplaced(entry, one, found, then[entry.digest])
        same = now is not None and one.params == params.digest_of(now)
        wrong = dict.fromkeys(
            [*unfounded(entry, one, found), *elsewhere, *(unlike_told(one, now, found) if now and same else ())]
        )
        findings += [finding("evidence-broken", entry.place, f"{_called(entry)}: {said}") for said in wrong]
        if report is not None:
            findings += _unread(entry, found is not None, report.problem, "its report")
        findings += _lost(entry, traces[entry.digest], stored)
        whole += found is not None
        placed += found is not None and not elsewhere
        held[entry.digest] = {
            "report": _of_report(report),
            "traces": _of_traces(traces[entry.digest], stored),
            "params": "those of now" if same else "changed since",
        }
    proved = (
        f"gates' decisions whose report is at hand and has the digest that the ledger names: {whole} of {len(judged)}",
        f"of these, against the pair and on the evaluation set in force where they were made: {placed} of {whole}",
    )
    return Held(known, held, tuple(findings), (*proved, *back.proved))


def rested_on(corpus: Corpus) -> dict[str, list[str]]:
    """Return by entry the ids of the traces on which a gate's decision rests, as far as anything at hand names them."""
    judged = [entry for entry in corpus.chain.entries if entry.decision.kind in JUDGED]
    reports = at_hand(corpus.root).reports if judged else {}
    known = ((entry.digest, read(GateEvidence, entry.decision.evidence).value) for entry in judged)
    return {entry: _traces(one, reports.get(one.report, _UNREAD).value) for entry, one in known if one is not None}


def _back(corpus: Corpus) -> Held:
    """Hold every roll-back against the pair after the entry to which it went back."""
    made = [entry for entry in corpus.chain.entries if entry.decision.kind == Kind.ROLL_BACK]
    wrong = astray(corpus.chain, made)
    findings = [
        finding("evidence-broken", entry.place, f"{_called(entry)}: {wrong[entry.digest]}", _LOG)
        for entry in made
        if entry.digest in wrong
    ]
    right = len(made) - len(wrong)
    proved = f"roll-backs to the pair that was accepted after the entry that they name: {right} of {len(made)}"
    return Held({}, {}, tuple(findings), (proved,) if made else ())


def _called(entry: Entry) -> str:
    return f"the {entry.decision.kind} of {entry.decision.time}"


def _unread(entry: Entry, known: bool, problem: str | None, what: str = "its evidence") -> list[Finding]:
    """Return the finding that evidence, or a report, is not what this version reads; nothing where all of it is."""
    if problem is None:
        return []
    if known:
        message = f"{_called(entry)}: of {what} this version does not know {problem.partition(':')[0]}"
        return [finding("evidence-unknown", entry.place, message)]
    if what == "its evidence":
        message = f"{_called(entry)} names no evidence that a gate gives: {problem}"
        return [finding("evidence-broken", entry.place, message)]
    return [finding("evidence-unknown", entry.place, f"{_called(entry)}: {what} cannot be read: {problem}")]


def _of_report(report: Read[GateReport] | None) -> str:
    if report is None:
        return "not at hand"
    return "at hand, and its digest is the one named" + ("" if report.value is not None else "; it cannot be read")


def _lost(entry: Entry, traces: Iterable[str], stored: Mapping[str, bool] | None) -> list[Finding]:
    """Return the finding that a decision rests on traces that were retracted since, or are not stored any more."""
    if stored is None:
        return []
    gone = sorted(trace for trace in traces if trace not in stored)
    barred = sorted(trace for trace in traces if stored.get(trace))
    found = []
    for names, what in ((gone, "are not stored"), (barred, "were retracted since")):
        if names:
            said = f"rests on traces that {what}: {len(names)} ({first_few((name[:12] for name in names), _SHOWN)})"
            message = f"{_called(entry)} {said}"
            found.append(finding("evidence-gone", entry.place, message))
    return found


def _traces(one: GateEvidence, report: GateReport | None) -> list[str]:
    """Return the ids of the traces of a decision, as far as anything at hand names them."""
    if report is not None:
        return [*report.incumbent.traces, *report.candidate.traces]
    return list(one.accepted_traces or ())


def _of_traces(traces: list[str], stored: Mapping[str, bool] | None) -> str:
    if not traces:
        return "not named by anything at hand"
    if stored is None:
        return "whether they are stored is not known"
    there = sum(trace in stored for trace in traces)
    return f"{there} of {len(traces)} stored"


def _stored(corpus: Corpus, traces: set[str]) -> dict[str, bool] | None:
    """Return for those of some traces that are stored whether they are retracted; None when nobody can tell."""
    if not Layout(corpus.root).traces.is_dir():
        return None
    records, unknown = stored_records(Layout(corpus.root), traces)
    if unknown:
        return None
    decided = corpus.decisions
    return {trace: trace in decided.retracted or raw in decided.retracted_raw for trace, raw in records.items()}


def _params_now(corpus: Corpus) -> params.Params | None:
    try:
        return corpus.params
    except ParamsError:
        # that is a finding of its own
        return None
