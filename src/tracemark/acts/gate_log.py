"""`gate log`: every decision about the accepted pair, with its evidence held against what can be looked at now.

Invariants:
- what cannot be looked at (a report that is not at hand, traces that are not stored) is said to be so, and is neither
  taken for proved nor for broken;
- it is read as `check` reads, without opening the store: nothing is changed;
- broken is what contradicts itself: a list of traces, or a report at hand, that has not the digest which the entry
  names; the ledger's own chain is verified before any of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tracemark import digest
from tracemark.acts.corpus import Corpus
from tracemark.durable import read_regular
from tracemark.errors import IrregularFileError, ParamsError
from tracemark.findings import Finding, Report, finding
from tracemark.gates.compare import decide
from tracemark.gates.report import digest_of
from tracemark.gates.terms import LEVEL
from tracemark.ledger import params
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import label
from tracemark.model.decision import GateEvidence, Kind
from tracemark.model.gate import GateReport
from tracemark.stats.compare import sign_test
from tracemark.store.disputes import stored_records
from tracemark.store.layout import Layout

REPORTS = "reports"
"""The folder of a corpus below which reports of gates are looked for."""

DECIDED = f"{REPORTS}/decisions"
"""The folder in it where reports on which a decision rests are kept, each under its digest."""

_KINDS = (Kind.ACCEPT, Kind.FREEZE, Kind.INSTALL, Kind.REJECT, Kind.ROLL_BACK)
_JUDGED = (Kind.INSTALL, Kind.REJECT)
_LARGEST = 64 * 1024 * 1024
_SHOWN = 3


@dataclass(frozen=True)
class GateLog(Report):
    """Every decision about the accepted pair and the evaluation set."""

    decisions: tuple[dict[str, Any], ...]
    """In the order of the chain, parents before children: `entry` (digest), `time`, `kind`, `reason`, `parents`, `half`
    and `what` (in words), `in_force` (whether it makes a half of the present pair, or is the freeze that holds), and of
    a gate's decision `measured` (`w`, `l`, `n`, `p`, `policy`, `candidates`) and `evidence`: by `report`, `traces` and
    `params` what of it could be derived again."""
    heads: tuple[str, ...]
    """Digests of the entries that the next one will name as parents."""


def gate_log(root: Path) -> GateLog:
    """Return every decision about the accepted pair, with what of its evidence holds.

    Raises:
        LedgerChainError: when the ledger does not verify.
    """
    corpus = Corpus(root)
    entries = corpus.chain.entries
    held = evidence_held(corpus)
    state = corpus.decisions
    standing = {one.digest for one in (state.accepted_by, state.model_by, state.frozen) if one is not None}
    rows = [
        _row(corpus, entry, held.of.get(entry.digest), in_force=entry.digest in standing)
        for entry in entries
        if entry.decision.kind in _KINDS
    ]
    return GateLog((*corpus.decisions.conflicts, *held.findings), tuple(rows), corpus.chain.heads)


@dataclass(frozen=True)
class Held:
    """What of the evidence of decisions could be derived again."""

    of: dict[str, dict[str, str]]
    """By entry: `report`, `traces` and `params`, each in words."""
    findings: tuple[Finding, ...]
    """What is broken, or no longer what a decision rested on."""
    proved: tuple[str, ...]
    """What was derived again, one sentence each."""


def evidence_held(corpus: Corpus) -> Held:
    """Hold the evidence of every gate's decision against the reports at hand and the store."""
    judged = [entry for entry in corpus.chain.entries if entry.decision.kind in _JUDGED]
    if not judged:
        return Held({}, (), ())
    reports = _reports(corpus.root)
    read: dict[str, GateEvidence] = {}
    findings: list[Finding] = []
    held: dict[str, dict[str, str]] = {}
    for entry in judged:
        try:
            read[entry.digest] = GateEvidence.model_validate(entry.decision.evidence)
        except ValidationError:
            message = f"the {entry.decision.kind} of {entry.decision.time} names no evidence that a gate gives"
            findings.append(finding("evidence-broken", entry.place, message))
            held[entry.digest] = dict.fromkeys(("report", "traces", "params"), "none")
    named = {trace for one in read.values() for trace in _traces(one, reports.get(one.report))}
    stored = _stored(corpus, named)
    now = _params_now(corpus)
    for entry in judged:
        if entry.digest in read:
            one = read[entry.digest]
            report = reports.get(one.report)
            findings += _broken(entry, one, report)
            held[entry.digest] = {
                "report": "at hand, and its digest is the one named" if report is not None else "not at hand",
                "traces": _of_traces(_traces(one, report), stored),
                "params": "those of now" if one.params == now else "changed since",
            }
            findings += _lost(entry, _traces(one, report), stored)
    whole = sum("report" in one and one["report"].startswith("at hand") for one in held.values())
    proved = (
        f"gates' decisions whose report is at hand and has the digest that the ledger names: {whole} of {len(judged)}"
    )
    return Held(held, tuple(findings), (proved,))


def _broken(entry: Entry, one: GateEvidence, report: GateReport | None) -> list[Finding]:
    """Return findings that the evidence of a decision contradicts itself, or its report."""
    wrong = []
    if one.accepted_traces is not None and digest.of(sorted(one.accepted_traces)) != one.traces.candidate:
        wrong.append("its list of traces has not the digest that it names")
    if one.accepted_traces is None and entry.decision.kind == Kind.INSTALL:
        wrong.append("it does not name the traces that it rests on")
    wrong += _unfounded(entry, one)
    if report is not None:
        wrong += _of_something_else(entry, one, report)
        if (report.incumbent.digest, report.candidate.digest) != (one.traces.incumbent, one.traces.candidate):
            wrong.append("its report compares other traces than it names")
        if report.measured != one.measured:
            wrong.append("its report measured something else")
        if any(digest.of(side.traces) != side.digest for side in (report.incumbent, report.candidate)):
            wrong.append("a list of traces in its report has not the digest that stands beside it")
        if {"install": "accept", "reject": "reject"}[entry.decision.kind] != report.verdict:
            wrong.append(f"its report says {report.verdict}")
    return [
        finding("evidence-broken", entry.place, f"the {entry.decision.kind} of {entry.decision.time}: {one}")
        for one in dict.fromkeys(wrong)
    ]


def _unfounded(entry: Entry, one: GateEvidence) -> list[str]:
    """Return in what the measured numbers of a decision contradict themselves or it; no report is needed for that."""
    wrong, told = [], one.measured
    if not math.isclose(told.p, sign_test(told.w, told.l), rel_tol=1e-9):
        wrong.append("its p does not follow from w and l")
    follows = decide(told.w, told.l, told.p, LEVEL, clean=told.clean)
    if any(told.policies[name].accepts is not made.accepted for name, made in follows.items() if name in told.policies):
        wrong.append("what a policy says does not follow from w, l and p")
    says = told.policies.get(one.policy)
    accepts = says is not None and says.accepts and all(condition.met for condition in told.conditions)
    if accepts is not (entry.decision.kind == Kind.INSTALL):
        wrong.append(f"what it measured is {'an accept' if accepts else 'a reject'} by {one.policy}")
    return wrong


def _of_something_else(entry: Entry, one: GateEvidence, report: GateReport) -> list[str]:
    """Return in what a report is not the one of a decision."""
    subject, half = entry.decision.subject, report.half
    candidate, incumbent = (
        {"harness": side.harness, "model": side.model.model_dump(mode="json")}
        for side in (report.candidate, report.incumbent)
    )
    judged = {"half": half, **candidate}
    if entry.decision.kind == Kind.REJECT:
        judged = {"half": half, "candidate": candidate[half], "incumbent": incumbent[half]}
    wrong = []
    if judged != subject:
        wrong.append("its report judges another candidate, or against another incumbent")
    if report.policy != one.policy:
        wrong.append("its report was made by another policy")
    if report.terms.evaluation_digest != one.evaluation:
        wrong.append("its report is of another evaluation set")
    if (report.candidates, len(report.reused)) != (one.candidates, one.reused):
        wrong.append("its report counts other candidates or reused traces")
    return wrong


def _lost(entry: Entry, traces: Iterable[str], stored: Mapping[str, bool] | None) -> list[Finding]:
    """Return the finding that a decision rests on traces that were retracted since, or are not stored any more."""
    if stored is None:
        return []
    gone = sorted(trace for trace in traces if trace not in stored)
    barred = sorted(trace for trace in traces if stored.get(trace))
    found = []
    for names, what in ((gone, "are not stored"), (barred, "were retracted since")):
        if names:
            shown = ", ".join(name[:12] for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            said = f"rests on traces that {what}: {len(names)} ({shown})"
            message = f"the {entry.decision.kind} of {entry.decision.time} {said}"
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


def _reports(root: Path) -> dict[str, GateReport]:
    """Return the reports of gates that lie below `reports/`, by digest; what is none is passed over."""
    found = {}
    for path in sorted((root / REPORTS).glob("**/*.json")):
        try:
            if path.stat().st_size > _LARGEST:
                continue
            value = digest.loads(read_regular(path)).value
            report = GateReport.model_validate(value)
        except (OSError, IrregularFileError, ValueError):
            continue
        found[digest_of(report)] = report
    return found


def _params_now(corpus: Corpus) -> str | None:
    try:
        return params.digest_of(corpus.params)
    except ParamsError:
        # that is a finding of its own
        return None


def _row(corpus: Corpus, entry: Entry, held: Mapping[str, str] | None, *, in_force: bool) -> dict[str, Any]:
    one = entry.decision
    row: dict[str, Any] = {
        "entry": entry.digest,
        "time": one.time,
        "kind": one.kind,
        "reason": one.reason,
        "parents": list(one.parents),
        "half": _half(entry),
        "what": _what(corpus, entry),
        "in_force": in_force,
    }
    if held is not None:
        evidence = one.evidence or {}
        measured = evidence.get("measured") or {}
        row["measured"] = {
            **{name: measured.get(name) for name in ("w", "l", "n", "p")},
            **{name: evidence.get(name) for name in ("policy", "candidates")},
        }
        row["evidence"] = dict(held)
    return row


def _half(entry: Entry) -> str | None:
    subject = entry.decision.subject
    if entry.decision.kind in _JUDGED:
        return str(subject["half"])
    if entry.decision.kind == Kind.ACCEPT:
        return " and ".join(half for half in ("harness", "model") if subject.get(half) is not None)
    return "harness and model" if entry.decision.kind == Kind.ROLL_BACK else None


def _what(corpus: Corpus, entry: Entry) -> str:
    """Return in words what a decision is about."""
    subject, kind = entry.decision.subject, entry.decision.kind
    if kind == Kind.FREEZE:
        return f"{subject['count']} tasks, {subject['attempts']} attempts each"
    if kind == Kind.REJECT:
        return f"{_worded(corpus, subject['candidate'])}; {_worded(corpus, subject['incumbent'])} stays"
    if kind == Kind.INSTALL:
        return _worded(corpus, subject[subject["half"]])
    said = [_worded(corpus, subject[half]) for half in ("harness", "model") if half in subject]
    return " with ".join(said)


def _worded(corpus: Corpus, half: Any) -> str:
    if half is None:
        return "none"
    if isinstance(half, str):
        name = corpus.name_of(half)
        return f"{name} ({half[:16]})" if name else half[:16]
    return str(label(half))
