"""What follows from a gate: an accepted candidate is installed, and of a rejected one the rejection is kept.

Invariants:
- the ledger is written first, and `params.yaml: accepted` after it. When a crash comes between the two, `check` names
  the command that finishes it, and that adds no second entry. Whatever else can fail is done before;
- of two that decide at once the second waits for the first, and judges what stands then;
- the report of a decision is kept beside it, and written before it;
- a rejected candidate changes nothing else than that and the ledger, a refused comparison not even these;
- nothing is decided twice: a rejection that stands for the same report gets no second entry. One whose candidate was
  accepted since stands no more.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracemark.acts.consequences import as_if, consequences
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.decisions import turn
from tracemark.acts.evaluation import accepted_model, as_half
from tracemark.acts.gating import (
    GateAnswer,
    Judged,
    answer_members,
    judge_harness,
    judge_model,
    judging,
    write_report,
)
from tracemark.acts.harnesses import placed
from tracemark.acts.kept_reports import place_for
from tracemark.clock import Clock
from tracemark.errors import NegativeAnswerError, TracemarkError, UsageError
from tracemark.findings import Severity
from tracemark.gates.report import digest_of
from tracemark.harness.check import check
from tracemark.ledger import chain, params
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import HALVES, label, rejections
from tracemark.ledger.params_file import require_settable, set_accepted
from tracemark.ledger.state import evaluation_digest
from tracemark.model.decision import GateEvidence, Kind
from tracemark.model.gate import GateReport
from tracemark.store.store import Store


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """How a gate's verdict becomes a decision."""

    reason: str
    """Why; not empty, but for a dry run."""
    dry_run: bool = False
    """Whether to say only what would be decided."""
    out: Path | None = None
    """The file that takes the report; None writes none."""


@dataclass(frozen=True)
class InstallAnswer(GateAnswer):
    """What a gate says, and what was decided on it; the exit code is that of the gate."""

    decision: str | None
    """`install` or `reject`; None when the comparison is refused, and nothing decided."""
    dry_run: bool
    """Whether nothing was written but the report."""
    entry: str | None
    """Digest of the ledger entry; None when there is none."""
    new_entry: bool
    """Whether it was written now; false when the same rejection stood already."""
    consequences: dict[str, Any] | None
    """What the candidate does, or would do, to the training set as the accepted half; None unless it is accepted."""
    consequences_said: tuple[str, ...]
    """The same in words, and what is to be done then."""


def install_harness(
    root: Path, candidate: str, model: str | None, options: InstallOptions, clock: Clock
) -> InstallAnswer:
    """Judge a harness as `gate_harness` does, and decide accordingly.

    Args:
        root: the corpus.
        candidate: a harness by name or fingerprint.
        model: the model that played, which must be the accepted one if there is one; None for the accepted one.
        options: why and how.
        clock: gives the entry its time.

    Raises:
        NegativeAnswerError: when the candidate has problems that must be mended first.
        UsageError: when the reason is empty, or it was judged with another model than the accepted one.
        ExportRefusedError: as `gate_harness` does; so do the others that it names.
        LedgerChainError: when the ledger does not verify.
    """
    return _decide(root, lambda corpus, store: judge_harness(corpus, store, candidate, model), options, clock)


def install_model(root: Path, candidate: str, options: InstallOptions, clock: Clock) -> InstallAnswer:
    """Judge a model as `gate_model` does, and decide accordingly; see `install_harness`."""
    return _decide(root, lambda corpus, store: judge_model(corpus, store, candidate), options, clock)


def _decide(
    root: Path, judge: Callable[[Corpus, Store], Judged], options: InstallOptions, clock: Clock
) -> InstallAnswer:
    if not options.dry_run:
        chain.require_reason(options.reason)
    with _deciding(root, dry_run=options.dry_run) as corpus:
        with judging(corpus, options.out) as store:
            judged = judge(corpus, store)
        kind = {"accept": Kind.INSTALL, "reject": Kind.REJECT}.get(judged.report.verdict)
        half, value = judged.report.half, _half_of(judged, "candidate")
        written = value if half == "harness" else label(value)
        would = None
        if kind is not None:
            _require_accepted_model(corpus, judged)
        if kind is Kind.INSTALL:
            _require_installable(corpus, judged)
            require_settable(corpus.root / params.NAME, {half: written})
            would = consequences(corpus, {half: value})
        write_report(judged.report, options.out)
        answer = InstallAnswer(
            **answer_members(corpus, judged, options.out),
            decision=kind.value if kind is not None else None,
            dry_run=options.dry_run,
            entry=None,
            new_entry=False,
            consequences=would.as_json() if would is not None else None,
            consequences_said=(*would.words(), *_left_to_do(corpus, judged)) if would is not None else (),
        )
        if kind is None or options.dry_run:
            return answer
        _keep(corpus.root, judged.report)
        entry, new = _entered(corpus, kind, judged, options.reason, clock)
        if kind is Kind.INSTALL:
            set_accepted(corpus.root / params.NAME, written, half)
    return replace(answer, entry=entry.digest, new_entry=new)


def _left_to_do(corpus: Corpus, judged: Judged) -> list[str]:
    """Return what is left to do for the candidates that the pipeline judges, in words: a gate that refuses stops it.

    A gate that refuses already is none of what follows from the install.
    """
    half = judged.report.half
    gone = _no_candidates(corpus, judged)
    said = [
        f"{name!r} is no candidate then: take it out of params.yaml: gates.candidates.{half}, and run "
        "tracemark pipeline dvcfile > dvc.yaml"
        for name in gone
    ]
    then = as_if(corpus, {half: _half_of(judged, "candidate")})
    with open_store(corpus.root) as store, store.unchanging():
        for other in HALVES:
            for name in getattr(corpus.params.gates.candidates, other):
                refused = None if other == half and name in gone else _refused(then, store, other, name)
                if refused is not None and _refused(corpus, store, other, name) is None:
                    said.append(
                        f"the gate of {name!r} refuses then, and dvc repro stops there: {refused}; "
                        f"tracemark gate {other} --candidate {shlex.quote(name)} lists what to do"
                    )
    return said


def _refused(corpus: Corpus, store: Store, half: str, candidate: str) -> str | None:
    """Return why the gate of a candidate refuses in a corpus; None where it does not."""
    try:
        judged = (
            judge_model(corpus, store, candidate) if half == "model" else judge_harness(corpus, store, candidate, None)
        )
    except TracemarkError as error:
        return error.message
    return next((one.message for one in judged.report.refusals), None)


def _no_candidates(corpus: Corpus, judged: Judged) -> list[str]:
    """Return the candidates of the pipeline that mean the one that was judged: it is compared with itself then."""
    half, side = judged.report.half, judged.report.candidate
    listed: list[str] = getattr(corpus.params.gates.candidates, half)
    names: set[str | None]
    if half == "harness":
        names = {name for name in listed if _fingerprint_of(corpus, name) == side.harness}
    else:
        names = {label(_half_of(judged, "candidate")), side.model.name}
    return [name for name in listed if name in names]


def _keep(root: Path, report: GateReport) -> None:
    """Keep the report of a decision under its digest: the pipeline writes its own anew as soon as one is made."""
    write_report(report, place_for(root, digest_of(report)))


def _fingerprint_of(corpus: Corpus, name: str) -> str | None:
    """Return the harness that a name means; None for one that means none, or several."""
    try:
        return corpus.resolve(name).fingerprint
    except TracemarkError:
        return None


@contextmanager
def _deciding(root: Path, *, dry_run: bool) -> Iterator[Corpus]:
    if dry_run:
        yield Corpus(root)
    else:
        with turn(root) as corpus:
            yield corpus


def _require_accepted_model(corpus: Corpus, judged: Judged) -> None:
    """Make sure that a harness was judged with the accepted model, whatever the verdict: no other is in use."""
    if judged.report.half == "model":
        return
    accepted = accepted_model(corpus)
    if accepted is not None and judged.model is not None and judged.model.label != accepted.label:
        raise UsageError(
            f"the harness was judged with {judged.model.label}, and the accepted model is {accepted.label}",
            where="--model",
            hint=f"judge it with --model {accepted.label}, or leave --install out",
        )


def _require_installable(corpus: Corpus, judged: Judged) -> None:
    """Make sure that an accepted candidate may take the incumbent's place."""
    if judged.report.half == "model":
        return
    harness = corpus.by_fingerprint.get(judged.report.candidate.harness)
    for found in check(harness) if harness is not None else ():
        if found.severity is Severity.ERROR and harness is not None:
            told = placed(found, harness)
            raise NegativeAnswerError(
                f"{harness.name} has problems that must be mended first: {told.message}",
                where=told.where,
                hint=f"tracemark harness check {harness.name}",
            )


def _half_of(judged: Judged, side: str) -> Any:
    """Return the half that was judged, of one side, as decisions hold it."""
    cell = getattr(judged.comparison, side)
    return cell.pair.harness if judged.report.half == "harness" else as_half(cell.model)


def _entered(corpus: Corpus, kind: Kind, judged: Judged, reason: str, clock: Clock) -> tuple[Entry, bool]:
    evidence = _evidence(corpus, kind, judged)
    report, half = judged.report, judged.report.half
    if kind is Kind.INSTALL:
        subject = {
            "half": half,
            "harness": report.candidate.harness,
            "model": as_half(judged.comparison.candidate.model),
        }
    else:
        subject = {
            "half": half,
            "candidate": _half_of(judged, "candidate"),
            "incumbent": _half_of(judged, "incumbent"),
        }
        for entry in rejections(corpus.chain):
            known = entry.decision
            if known.subject == subject and (known.evidence or {}).get("report") == evidence["report"]:
                return entry, False
    draft = chain.Draft(kind, subject, reason, evidence)
    return chain.append(corpus.root / chain.NAME, corpus.chain, draft, clock), True


def _evidence(corpus: Corpus, kind: Kind, judged: Judged) -> dict[str, Any]:
    report = judged.report
    members: dict[str, Any] = {
        "report": digest_of(report),
        "traces": {"incumbent": report.incumbent.digest, "candidate": report.candidate.digest},
        "params": params.digest_of(corpus.params),
        "evaluation": evaluation_digest(corpus.params.evaluation),
        "policy": report.policy,
        "candidates": report.candidates,
        "reused": len(report.reused),
        "measured": report.measured.model_dump(mode="json") if report.measured is not None else None,
    }
    if kind is Kind.INSTALL:
        members["accepted_traces"] = list(report.candidate.traces)
    GateEvidence.model_validate(members)
    return members
