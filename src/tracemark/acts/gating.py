"""`gate harness`, `gate model` and `gate attribute`: what evaluation traces in the store say of a candidate.

The comparison itself is the business of `tracemark.gates`; here its cells are read from the store, and its terms from
params.yaml and the ledger.

Invariants:
- a candidate is compared with the accepted half under the accepted other half, or with a model that is named;
- nothing is judged on a set that was not frozen, or was changed since;
- judging writes nothing but the report that was asked for: what follows from it is decided in `acts.installing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation import AskedModel, Evaluations, accepted_model
from tracemark.acts.evaluation_set import CHANGED, changed, frozen_attempts
from tracemark.acts.export import require_whole
from tracemark.acts.export_place import require_elsewhere, require_replaceable
from tracemark.acts.leaks import leaks
from tracemark.acts.pulled import require_pulled
from tracemark.durable import make_folder, write_atomic
from tracemark.errors import ExportRefusedError, UsageError
from tracemark.exporters.evaluation import unmatched
from tracemark.findings import Finding, Report
from tracemark.gates.attribution import Four, attribute
from tracemark.gates.compare import Comparison, compare
from tracemark.gates.refusal import Reason, Refusal, Sides
from tracemark.gates.report import attributed, attribution_words, digest_of, stored, words
from tracemark.gates.terms import Conditions, Half, Policy, Terms
from tracemark.ledger.state import evaluation_digest
from tracemark.model.attribution import ATTRIBUTION_FORMAT, AttributionReport
from tracemark.model.gate import FORMAT, GateReport
from tracemark.store.store import Store
from tracemark.words import numbered

EXAMPLE = "reports/gates/NAME.json"
"""Where a report may be written, for hints."""

FREEZE = "tracemark gate freeze --reason TEXT"
"""The command that freezes the evaluation set."""

_SHOWN = 5
_CODES = {"accept": 0, "reject": 1, "refused": ExportRefusedError.exit_code}


@dataclass(frozen=True)
class GateAnswer(Report):
    """What a gate says of a candidate; the exit code is 0 when it accepts, 1 when it rejects, 40 when it refuses."""

    verdict: str
    """`accept` or `reject`, by the policy in force and all conditions; `refused` when nothing can be compared."""
    half: str
    """The half that was judged: `harness` or `model`."""
    said: tuple[str, ...]
    """The report in words, the most important first."""
    digest: str
    """SHA-256 of the report's canonical JSON; the ledger names the report by it."""
    report: dict[str, Any]
    """The report (`tracemark/gate/1`)."""
    out: str | None
    """The file that holds the report; None when none was asked for."""

    @property
    def exit_code(self) -> int:
        """Return 0 when the candidate is accepted, 1 when it is rejected, 40 when the comparison is refused."""
        return _CODES[self.verdict]


@dataclass(frozen=True)
class AttributeAnswer(Report):
    """Which half brought what; the exit code is 40 when the four evaluations cannot be compared."""

    said: tuple[str, ...]
    """The report in words."""
    digest: str
    """SHA-256 of the report's canonical JSON."""
    report: dict[str, Any]
    """The report (`tracemark/attribution/1`)."""
    out: str | None
    """The file that holds the report; None when none was asked for."""

    @property
    def exit_code(self) -> int:
        """Return 0 when the effects are told, 40 when the comparison is refused."""
        return ExportRefusedError.exit_code if self.report["refusals"] else 0


class Judged(NamedTuple):
    """A comparison with everything around it."""

    comparison: Comparison
    """The comparison."""
    report: GateReport
    """Its stored form."""
    model: AskedModel | None
    """The other half, where a harness was judged; None where a model was."""
    findings: tuple[Finding, ...]
    """What was left out, and what a reader should know."""


def gate_harness(root: Path, candidate: str, model: str | None = None, out: Path | None = None) -> GateAnswer:
    """Judge a harness against the accepted one, both with one model.

    Args:
        root: the corpus.
        candidate: a harness by name or fingerprint.
        model: the model that played, `NAME` or `NAME@REVISION`; None for the accepted one.
        out: the file that takes the report; None writes none.

    Raises:
        ExportRefusedError: when no harness is accepted, or it is open which half is.
        UsageError: when no model is accepted and none is named, or `out` lies where the corpus keeps what it reads.
        UnknownNameError: when nothing answers to `candidate`.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged.
    """
    corpus = Corpus(root)
    with judging(corpus, out) as store:
        judged = judge_harness(corpus, store, candidate, model)
    write_report(judged.report, out)
    return GateAnswer(**answer_members(corpus, judged, out))


def gate_model(root: Path, candidate: str, out: Path | None = None) -> GateAnswer:
    """Judge a model against the accepted one, both under the accepted harness.

    Args:
        root: the corpus.
        candidate: the model, `NAME` or `NAME@REVISION`.
        out: the file that takes the report; None writes none.

    Raises:
        ExportRefusedError: when no harness or no model is accepted, or it is open which one is.
        UsageError: when `out` lies where the corpus keeps what it reads.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged.
    """
    corpus = Corpus(root)
    with judging(corpus, out) as store:
        judged = judge_model(corpus, store, candidate)
    write_report(judged.report, out)
    return GateAnswer(**answer_members(corpus, judged, out))


def gate_attribute(root: Path, harness: str, model: str, out: Path | None = None) -> AttributeAnswer:
    """Tell what a new harness and a new model each bring, from the evaluations of all four pairs.

    Args:
        root: the corpus.
        harness: the new harness, by name or fingerprint; the old one is the accepted one.
        model: the new model, `NAME` or `NAME@REVISION`; the old one is the accepted one.
        out: the file that takes the report; None writes none.

    Raises:
        ExportRefusedError: when no harness or no model is accepted, or it is open which one is.
        UnknownNameError: when nothing answers to `harness`.
        UsageError: when `out` lies where the corpus keeps what it reads.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged.
    """
    corpus = Corpus(root)
    with judging(corpus, out) as store:
        old, incumbent = require_pair(corpus)
        new, found = corpus.resolve(harness), Evaluations(corpus, store)
        harnesses = old, _counts_as(corpus, new.fingerprint, old)
        asked = found.meant(AskedModel(model), harnesses, incumbent.label)
        incumbent = found.meant(incumbent, harnesses, model)
        cells = Four(
            found.cell(old, incumbent),
            found.cell(harnesses[1], incumbent),
            found.cell(old, asked),
            found.cell(harnesses[1], asked),
        )
        terms, notes = _terms(corpus, store, Half.MODEL, found, 1)
        told = attribute(cells, terms)
        if extra := [*_unfrozen(corpus), *_collided(found)]:
            told = replace(told, refusals=_once((*extra, *told.refusals)), effects=None, tasks=0, attempts=0, scores=())
        report = attributed(told)
        findings = (*corpus.namesakes(harness, new), *found.findings, *notes, *store.findings)
    write_report(report, out)
    stored_form = report.model_dump(mode="json")
    return AttributeAnswer(findings, tuple(attribution_words(report)), digest_of(report), stored_form, _named(out))


@contextmanager
def judging(corpus: Corpus, out: Path | None) -> Iterator[Store]:
    """Give the store of a corpus, all of it on disk, as it stands at one moment, for the time of a `with` block.

    Args:
        corpus: the corpus.
        out: the file that takes the report, which must not lie where the corpus keeps what it reads; None for none.
    """
    if out is not None:
        require_elsewhere(corpus.root, out, EXAMPLE)
        require_replaceable(out, _is_report, "report of a gate", EXAMPLE)
    require_pulled(corpus)
    with open_store(corpus.root) as store:
        require_whole(store)
        with store.unchanging():
            yield store


def judge_harness(corpus: Corpus, store: Store, candidate: str, model: str | None) -> Judged:
    """Compare a harness with the accepted one; see `gate_harness`."""
    accepted = _require_harness(corpus)
    harness = corpus.resolve(candidate)
    found = Evaluations(corpus, store)
    asked = found.meant(_model_asked(corpus, model), (accepted, harness.fingerprint))
    incumbent = found.cell(accepted, asked)
    cell = found.cell(_counts_as(corpus, harness.fingerprint, accepted), asked)
    number = max(1, found.candidates(accepted, asked))
    terms, notes = _terms(corpus, store, Half.HARNESS, found, number)
    comparison = _compared(corpus, found, Sides(incumbent, cell), terms)
    findings = (*corpus.namesakes(candidate, harness), *found.findings, *notes, *store.findings)
    return Judged(comparison, stored(comparison), asked, findings)


def judge_model(corpus: Corpus, store: Store, candidate: str) -> Judged:
    """Compare a model with the accepted one; see `gate_model`."""
    accepted, asked = require_pair(corpus)
    found = Evaluations(corpus, store)
    other = found.meant(AskedModel(candidate), (accepted,), asked.label)
    asked = found.meant(asked, (accepted,), candidate)
    incumbent = found.cell(accepted, asked)
    cell = found.cell(accepted, other)
    number = max(1, found.candidates(accepted, asked))
    terms, notes = _terms(corpus, store, Half.MODEL, found, number)
    comparison = _compared(corpus, found, Sides(incumbent, cell), terms)
    return Judged(comparison, stored(comparison), None, (*found.findings, *notes, *store.findings))


def answer_members(corpus: Corpus, judged: Judged, out: Path | None) -> dict[str, Any]:
    """Return the members of a `GateAnswer`; `out` is the file that holds the report, None when there is none."""
    report = judged.report
    sides = judged.comparison.incumbent, judged.comparison.candidate
    # as it was asked for: an accepted model without a revision may mean attempts of several
    models = {side: str(cell.pair.model) for side, cell in zip(("incumbent", "candidate"), sides, strict=True)}
    return {
        "findings": judged.findings,
        "verdict": report.verdict,
        "half": report.half,
        "said": tuple(words(report, {one.fingerprint: one.name for one in corpus.harnesses}, models)),
        "digest": digest_of(report),
        "report": report.model_dump(mode="json"),
        "out": _named(out),
    }


def require_pair(corpus: Corpus) -> tuple[str, AskedModel]:
    """Return the accepted pair.

    Raises:
        ExportRefusedError: when a half is not accepted, or it is open which one is.
    """
    accepted, model = _require_harness(corpus), accepted_model(corpus)
    if model is None:
        raise ExportRefusedError(
            "no model is accepted yet, so there is nothing to compare with",
            where="params.yaml: accepted.model",
            hint="tracemark model accept NAME[@REVISION] --reason TEXT",
        )
    return accepted, model


def _require_harness(corpus: Corpus) -> str:
    for problem in (*corpus.acceptance_findings(), *corpus.model_findings()):
        raise ExportRefusedError(problem.message, where=problem.where, hint=problem.hint)
    if corpus.accepted is None:
        raise ExportRefusedError(
            "no harness is accepted yet, so there is nothing to compare with",
            where="params.yaml: accepted.harness",
            hint="tracemark harness accept NAME --reason TEXT",
        )
    return corpus.accepted


def _counts_as(corpus: Corpus, harness: str, accepted: str) -> str:
    """Return a harness, or the accepted one for its declared equivalent, beside which there is nothing to compare."""
    return accepted if harness in corpus.decisions.equivalent_to(accepted) else harness


def _model_asked(corpus: Corpus, model: str | None) -> AskedModel:
    accepted = accepted_model(corpus)
    if model is not None and (accepted is None or model != accepted.label):
        return AskedModel(model)
    if accepted is None:
        raise UsageError(
            "no model is accepted, so it is not known whose evaluations are compared",
            where="--model",
            hint="--model NAME[@REVISION], or tracemark model accept NAME[@REVISION] --reason TEXT",
        )
    return accepted


def _terms(
    corpus: Corpus, store: Store, half: Half, found: Evaluations, candidates: int
) -> tuple[Terms, list[Finding]]:
    params, frozen = corpus.params, corpus.decisions.frozen
    told, leaked = params.gates, leaks(corpus, store)
    terms = Terms(
        half=half,
        policy=Policy(told.policy),
        attempts=params.evaluation_attempts,
        infrastructure_limit=told.infrastructure_errors,
        conditions=Conditions(
            no_regression=told.keep,
            reliability=params.evaluation_attempts if told.pass_all_not_lower else None,
            cost=told.cost_not_above,
            fresh=told.fresh,
        ),
        evaluation=params.evaluation,
        evaluation_digest=evaluation_digest(params.evaluation) if params.evaluation else None,
        frozen_digest=frozen.decision.subject["tasks"] if frozen is not None else None,
        changed=next((one.message for one in changed(corpus) if one.code == CHANGED), ""),
        leaked=leaked.tasks,
        used=found.used,
        candidates=candidates,
    )
    return terms, [*leaked.findings, *unmatched(params.evaluation, store.tasks(), params.evaluation_file)]


def _compared(corpus: Corpus, found: Evaluations, sides: Sides, terms: Terms) -> Comparison:
    comparison = compare(*sides, terms)
    if extra := [*_unfrozen(corpus), *_collided(found)]:
        return replace(comparison, refusals=_once((*comparison.refusals, *extra)), measured=None)
    return comparison


def _collided(found: Evaluations) -> Iterator[Refusal]:
    """Yield the refusal of tasks of several domains that have one id: a gate would take their runs for one task's."""
    if collided := found.collided:
        said = "; ".join(
            f"{task!r} in the domains {' and '.join(map(repr, domains))}"
            for task, domains in islice(collided.items(), _SHOWN)
        )
        message = f"{numbered(len(collided), 'id')} of the evaluation set cannot tell tasks of several domains: {said}"
        hint = "name domain and task so that DOMAIN/TASK tells them apart, and retract the runs under the other names"
        yield Refusal(Reason.EVALUATION_CHANGED, message, hint, tuple(collided))


def _once(refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    ranks = list(Reason)
    return tuple(sorted(dict.fromkeys(refusals), key=lambda one: ranks.index(one.reason)))


def _unfrozen(corpus: Corpus) -> list[Refusal]:
    """Return the refusals that the evaluation set is none, was not frozen, or is to be attempted otherwise."""
    params, frozen = corpus.params, corpus.decisions.frozen
    if not params.evaluation:
        message = "params.yaml lists no evaluation task"
        return [Refusal(Reason.NOTHING_TO_COMPARE, message, "list them under evaluation.tasks, then " + FREEZE)]
    if frozen is None:
        problems = [one for one in corpus.decisions.conflicts if one.code == "ledger-freeze-conflict"]
        message = problems[0].message if problems else "the evaluation set was never frozen"
        return [Refusal(Reason.EVALUATION_CHANGED, message, FREEZE)]
    if (attempts := frozen_attempts(corpus)) is not None:
        message = f"evaluation.attempts is {params.evaluation_attempts}, and the set was frozen with {attempts}"
        return [Refusal(Reason.EVALUATION_CHANGED, message, f"undo the change, or {FREEZE}")]
    return []


def _is_report(data: bytes) -> bool:
    try:
        value = digest.loads(data).value if data.strip() else {"format": FORMAT}
    except digest.NotJSONError:
        return False
    return isinstance(value, dict) and value.get("format") in (FORMAT, ATTRIBUTION_FORMAT)


def write_report(report: GateReport | AttributionReport, out: Path | None) -> None:
    """Write a report as canonical JSON to `out`; None writes none."""
    if out is not None:
        make_folder(out.parent)
        write_atomic(out, digest.canonical(report.model_dump(mode="json")) + b"\n")


def _named(out: Path | None) -> str | None:
    return None if out is None else str(out)
