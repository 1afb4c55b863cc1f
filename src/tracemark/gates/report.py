"""The stored report of a comparison, and its words.

Words are made of the stored report alone, so a report that was read back says what it said at first. The first line
says what the candidate would do to the accepted pair, and whether the difference lies inside the noise floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.gates.attribution import METHOD, Attribution, Effect
from tracemark.gates.cell import SCORED, WORDS, Cell, Model, shown_in
from tracemark.gates.compare import Change, Comparison, Figures, Measured, evidence
from tracemark.gates.doubts import NO_VERSION, UNRECORDED, broken, judges, otherwise
from tracemark.gates.earlier import earlier_words, flagged, repeated_of, repeated_words, retracted_of
from tracemark.gates.refusal import Refusal
from tracemark.model.attribution import ATTRIBUTION_FORMAT, AttributionReport, EffectOf, EffectsOf
from tracemark.model.gate import (
    FORMAT,
    ChangeOf,
    ConditionOf,
    Evaluated,
    FigureOf,
    FiguresOf,
    GateReport,
    MeasuredOf,
    ModelOf,
    NoiseOf,
    OtherModels,
    PolicySays,
    RefusalOf,
    ReliabilityOf,
    RepeatedOf,
    RerunOf,
    Stated,
    Verdict,
)
from tracemark.stats.cost import SCOPE
from tracemark.stats.passing import Figure
from tracemark.words import first_few, numbered

NOISE_METHOD = "exact, by convolution over tasks of two draws from the incumbent's own rates"
"""How the noise floor of a report was computed."""

_SHORT = len(digest.FINGERPRINT_PREFIX) + 12
_SHOWN = 10


def stored(comparison: Comparison) -> GateReport:
    """Return the report of a comparison, as it is stored."""
    accepted, terms = comparison.accepted, comparison.terms
    # absent, and not null, where nothing was measured
    found = comparison.measured
    measured: dict[str, Any] = {} if found is None else {"measured": _measured(found, repeated_of(comparison))}
    verdict: Verdict = "refused" if accepted is None else "accept" if accepted else "reject"
    return GateReport(
        format=FORMAT,
        half=terms.half.value,
        policy=terms.policy.value,
        verdict=verdict,
        changed=list(comparison.changed),
        candidates=terms.candidates,
        reused=list(comparison.reused),
        terms=Stated(
            attempts=terms.attempts,
            level=terms.level,
            infrastructure_limit=terms.infrastructure_limit,
            evaluation_tasks=len(terms.evaluation),
            evaluation_digest=terms.evaluation_digest,
            frozen_digest=terms.frozen_digest,
        ),
        incumbent=evaluated(comparison.incumbent, terms.attempts),
        candidate=evaluated(comparison.candidate, terms.attempts, terms.used),
        refusals=[_refusal(refusal) for refusal in comparison.refusals],
        **measured,
    )


def attributed(attribution: Attribution) -> AttributionReport:
    """Return the report of an attribution, as it is stored."""
    effects = attribution.effects
    # absent, and not null, where nothing is told
    told: dict[str, Any] = {}
    if effects is not None:
        told["effects"] = EffectsOf(**{name: _effect(effect) for name, effect in effects._asdict().items()})
    return AttributionReport(
        format=ATTRIBUTION_FORMAT,
        cells=[evaluated(cell, attribution.wanted, attribution.used) for cell in attribution.cells],
        tasks=attribution.tasks,
        attempts=attribution.attempts,
        scores=list(attribution.scores),
        level=attribution.level,
        method=METHOD,
        refusals=[_refusal(refusal) for refusal in attribution.refusals],
        **told,
    )


def _effect(effect: Effect) -> EffectOf:
    low, high = effect.interval or (None, None)
    return EffectOf(value=effect.value, low=low, high=high, withheld=effect.withheld)


def digest_of(report: GateReport | AttributionReport) -> str:
    """Return the digest by which a decision names its report: SHA-256 of its canonical JSON."""
    return digest.of(report.model_dump(mode="json"))


def evaluated(cell: Cell, wanted: int, used: Collection[str] = ()) -> Evaluated:
    """Return the stored form of one cell.

    Args:
        cell: the cell.
        wanted: how many attempts a task is to have.
        used: ids of the traces that installed a pair, where the cell itself is to name its own.
    """
    traces = sorted({one.trace for one in cell.attempts})
    graders = {
        f"{name} {version or NO_VERSION}" for name, version in filter(None, (one.grader for one in cell.attempts))
    }
    if any(one.grader is None and one.status in SCORED and not one.exhausted for one in cell.attempts):
        graders.add(UNRECORDED)
    # absent, and not null, where there is nothing to tell
    shown = shown_in(cell.attempts)
    told: dict[str, Any] = {}
    if shown is not None:
        told["other_models"] = OtherModels(**{**shown._asdict(), "names": list(shown.names)})
    if reused := [trace for trace in traces if trace in used]:
        told["reused"] = reused
    if (retracted := retracted_of(cell, wanted)) is not None:
        told["retracted"] = retracted
    return Evaluated(
        harness=cell.pair.harness,
        model=ModelOf(**cell.model._asdict()),
        components=dict(cell.components),
        traces=traces,
        digest=digest.of(traces),
        statuses=dict(sorted(Counter(one.status for one in cell.attempts).items())),
        evidence=evidence(cell),
        graders=sorted(graders),
        **told,
    )


def _refusal(refusal: Refusal) -> RefusalOf:
    return RefusalOf(
        reason=refusal.reason.value,
        message=refusal.message,
        hint=refusal.hint,
        tasks=list(refusal.tasks),
        rerun=[RerunOf.model_validate(one._asdict()) for one in refusal.rerun],
        traces=list(refusal.traces),
    )


def _measured(measured: Measured, seen: Mapping[str, RepeatedOf]) -> MeasuredOf:
    noise = measured.noise
    return MeasuredOf(
        n=measured.tasks,
        attempts=measured.attempts,
        w=len(measured.ups),
        l=len(measured.downs),
        ties=measured.tasks - len(measured.ups) - len(measured.downs),
        p=measured.p,
        noise=NoiseOf(
            tasks=noise.tasks,
            promoted=noise.promoted,
            point=noise.point,
            method=NOISE_METHOD,
            withheld=noise.withheld,
            **seen,
        ),
        inside_noise=measured.inside_noise,
        clean=measured.clean,
        ups=_changes(measured.ups),
        downs=_changes(measured.downs),
        incumbent=_figures(measured.incumbent),
        candidate=_figures(measured.candidate),
        cost_scope=SCOPE,
        policies={
            policy.value: PolicySays(accepts=decision.accepted, reason=decision.reason)
            for policy, decision in measured.decisions.items()
        },
        conditions=[ConditionOf(name=one.name, met=one.met, reason=one.reason) for one in measured.conditions],
    )


def _changes(changes: Sequence[Change]) -> list[ChangeOf]:
    return [ChangeOf(task=one.task, before=one.before.successes, after=one.after.successes) for one in changes]


def _figures(figures: Figures) -> FiguresOf:
    return FiguresOf(
        attempts=figures.attempts,
        successes=figures.successes,
        score=figures.score,
        reliability=[
            ReliabilityOf(k=one.k, combinations=one.combinations, power=one.power) for one in figures.reliability
        ],
        reliable=figures.reliable,
        cost=_figure(figures.cost),
        cost_per_success=_figure(figures.cost_per_success),
        cost_per_reliable_task=_figure(figures.cost_per_reliable_task),
        open_errors=figures.open_errors,
        rerun_errors=figures.rerun_errors,
    )


def _figure(figure: Figure) -> FigureOf:
    return FigureOf(value=figure.value, withheld=figure.withheld)


def words(
    report: GateReport, names: Mapping[str, str] | None = None, models: Mapping[str, str] | None = None
) -> list[str]:
    """Return what a report says, a sentence a line; the first one says what matters most.

    Args:
        report: the report.
        names: what harnesses are called, by fingerprint; None, and what is not in it, is called by its fingerprint.
        models: what the models of `incumbent` and `candidate` were called by whoever asked; None, and what is not in
            it, is called as its attempts name it.
    """
    judged = _judged(report, names or {}, models or {})
    if report.measured is None:
        reasons = ", ".join(dict.fromkeys(refusal.reason for refusal in report.refusals))
        lines = [f"no decision on {judged}: {reasons}"]
        lines += [f"{refusal.reason}: {refusal.message}; {refusal.hint}" for refusal in report.refusals]
        return lines + list(_notes(report))
    return [f"{report.verdict} {judged}: {_first(report.measured)}{flagged(report)}", *_rest(report)]


def attribution_words(report: AttributionReport) -> list[str]:
    """Return what an attribution says, a sentence a line."""
    whose = ("of the incumbent", "with the new harness", "with the new model", "with both")
    cells = dict(zip(whose, report.cells, strict=True))
    others = [
        line
        for name, cell in cells.items()
        for line in (*earlier_words(name, cell, cell.reused), *otherwise(name, cell))
    ]
    others += judges(cells)
    if report.effects is None:
        reasons = ", ".join(dict.fromkeys(refusal.reason for refusal in report.refusals))
        lines = [f"nothing can be attributed: {reasons}"]
        lines += [f"{refusal.reason}: {refusal.message}; {refusal.hint}" for refusal in report.refusals]
        return [*lines, *others]
    old, harness, model, both = map(_tasks, report.scores)
    effects = report.effects
    lines = [
        (
            f"of {numbered(report.tasks, 'task')} an average run solves {old}; with the new harness {harness}, "
            f"with the new model {model}, with both {both}"
        ),
        (
            f"the new harness brings {_interval(effects.harness)} with the old model, "
            f"{_interval(effects.harness_under_new)} with the new one"
        ),
        (
            f"the new model brings {_interval(effects.model_under_old)} under the old harness, "
            f"{_interval(effects.model_under_new)} under the new one"
        ),
        f"the interaction is {_interval(effects.interaction)}",
    ]
    if any(effect.low is not None for _, effect in effects):
        lines.append(f"intervals at {report.level:.0%}: {report.method}")
    return [*lines, *others]


def _interval(effect: EffectOf) -> str:
    if effect.low is None or effect.high is None:
        return f"{_tasks(effect.value, '+')} (no interval: {effect.withheld})"
    return f"{_tasks(effect.value, '+')} ({effect.low:+.2f} to {effect.high:+.2f})"


def _tasks(number: float, sign: str = "-") -> str:
    """Return a number of tasks in an average run, with at most two decimals; a zero has no minus."""
    return f"{round(number, 2) + 0:{sign}.2f}".rstrip("0").rstrip(".")


def _judged(report: GateReport, names: Mapping[str, str], called: Mapping[str, str]) -> str:
    """Return what is judged against what, and under which other half where that is one."""
    new, old = report.candidate, report.incumbent
    harnesses = [names.get(cell.harness, cell.harness[:_SHORT]) for cell in (new, old)]
    sides = {"candidate": new, "incumbent": old}
    models = [called.get(side, str(Model(**cell.model.model_dump()))) for side, cell in sides.items()]
    if report.half == "harness" and new.model == old.model:
        return f"harness {harnesses[0]} against {harnesses[1]} with {models[0]}"
    if report.half == "model" and new.harness == old.harness:
        return f"model {models[0]} against {models[1]} under {harnesses[0]}"
    return f"{report.half} {harnesses[0]} with {models[0]} against {harnesses[1]} with {models[1]}"


def _first(measured: MeasuredOf) -> str:
    return (
        f"{measured.w} up, {measured.l} down of {numbered(measured.n, 'task')} at "
        f"{numbered(measured.attempts, 'attempt')} each, p = {measured.p:.4g}; {against_noise(measured)}"
    )


def against_noise(measured: MeasuredOf) -> str:
    """Return how the difference lies to the noise. A floor of 0 is one that nobody saw, and nothing is beyond that."""
    noise, difference = measured.noise, abs(measured.w - measured.l)
    if measured.inside_noise is None:
        return f"there is no noise floor: {noise.withheld}"
    if noise.promoted == 0:
        if difference == 0:
            return "there is no difference, and no noise was seen"
        return f"whether the difference of {difference} is beyond the noise is not known, since no noise was seen"
    if difference == noise.tasks:
        return f"the difference of {difference} lies inside the noise floor of {noise.tasks}, just at its edge"
    where = "lies inside" if measured.inside_noise else "is beyond"
    return f"the difference of {difference} {where} the noise floor of {noise.tasks}"


def _rest(report: GateReport) -> Iterator[str]:
    measured = report.measured
    assert measured is not None
    # the one that decides first, then by name: members of stored JSON have no order
    for policy, says in sorted(measured.policies.items(), key=lambda item: (item[0] != report.policy, item[0])):
        decides = "" if policy == report.policy else " (does not decide)"
        yield f"{policy}{decides}: {'accept' if says.accepts else 'reject'}, {says.reason}"
    for condition in measured.conditions:
        yield f"condition {condition.name}: {'met' if condition.met else 'not met'}, {condition.reason}"
    if measured.noise.promoted == 0:
        yield (
            "no task succeeded in some of the incumbent's attempts and failed in others: the noise floor of 0 says "
            "that too little was seen of the noise, not that there is none"
        )
    elif measured.noise.promoted is not None:
        yield f"w > l alone promotes an identical candidate in {measured.noise.promoted:.0%} of cases here"
    yield from repeated_words(measured.noise)
    before, after = measured.incumbent, measured.candidate
    yield f"tasks solved by an average run: {_tasks(before.score)} before, {_tasks(after.score)} after"
    old, new = before.reliability[-1], after.reliability[-1]
    yield (
        f"pass^{old.k} before and after: {old.combinations:.3f} and {new.combinations:.3f} (combinations), "
        f"{old.power:.3f} and {new.power:.3f} (power)"
    )
    yield f"cost per success before and after: {_shown(before.cost_per_success)} and {_shown(after.cost_per_success)}"
    for title, changes in (("up", measured.ups), ("down", measured.downs)):
        if changes:
            listed = first_few((f"{one.task!r} {one.before} to {one.after}" for one in changes), _SHOWN)
            yield f"{title}, in successes of {measured.attempts}: {listed}"
    yield from _notes(report)


def _shown(figure: FigureOf) -> str:
    return f"not defined ({figure.withheld})" if figure.value is None else f"{figure.value:.6g}"


def _notes(report: GateReport) -> Iterator[str]:
    """Yield what a reader should know before believing the rest."""
    if report.changed:
        unknown = " (its components are not at hand)" if report.changed[0] == "harness" else ""
        yield f"what differs between the pairs: {', '.join(report.changed)}{unknown}"
    measured = report.measured
    if report.candidates > 1:
        said = f"{report.candidates} candidates were evaluated on this set so far, each counted as often as it was"
        single = _by_chance(report)
        if single is not None:
            chance = 1 - (1 - single) ** report.candidates
            said += f"; were each no better, one or more would pass in up to {chance:.0%} of such series"
        yield said
    yield from earlier_words("of the incumbent", report.incumbent, report.reused)
    yield from earlier_words("of the candidate", report.candidate, report.candidate.reused)
    before, after = report.incumbent.model, report.candidate.model
    unrecorded = [WORDS[name] for name in WORDS if getattr(before, name) is None and getattr(after, name) is None]
    if unrecorded and report.half == "harness":
        yield f"recorded of neither model, so that whether they differ is not known: {', '.join(unrecorded)}"
    for side, cell in (("incumbent", report.incumbent), ("candidate", report.candidate)):
        if weak := sum(cell.evidence.get(name, 0) for name in ("claimed", "unrecorded")):
            traces = f"{weak} of {numbered(len(cell.traces), 'trace')} of the {side} {'is' if weak == 1 else 'are'}"
            yield f"{traces} of its harness because somebody says so"
        yield from otherwise(f"of the {side}", cell)
    yield from judges({"of the incumbent": report.incumbent, "of the candidate": report.candidate})
    if measured is not None:
        yield from broken("incumbent", measured.incumbent)
        yield from broken("candidate", measured.candidate)


def _by_chance(report: GateReport) -> float | None:
    """Return how often, at most, the policy that decides accepts a candidate that is no better; None if not known."""
    if report.policy == "significant":
        return report.terms.level
    promoted = report.measured.noise.promoted if report.measured is not None else None
    # what is neither up nor down is a tie, and a clean tie passes; of noise that nobody saw nothing is known
    return 1 - promoted if promoted else None
