"""What two cells of one evaluation set say: which tasks changed, how likely that is by chance, and what follows.

Invariants:
- a task's score is successes over attempts, and only whether it went up or down counts, never by how much;
- both policies are always told; the one that decides is named by the terms;
- nothing is measured where anything stands against the comparison;
- a figure that is not defined is withheld with its reason, and a condition on it is not met.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tracemark.exporters.evaluation import meanings
from tracemark.gates.against import refusals
from tracemark.gates.cell import SCORED, Cell
from tracemark.gates.halves import changed
from tracemark.gates.refusal import Refusal, named, placed_in
from tracemark.gates.terms import Policy, Terms
from tracemark.stats.compare import paired, sign_test
from tracemark.stats.cost import cost_per_reliable_task, cost_per_success, total_cost
from tracemark.stats.counts import Counts
from tracemark.stats.noise import NoiseFloor, Repeated, noise_floor, repeated
from tracemark.stats.passing import Figure, Measure, aggregate


class Change(NamedTuple):
    """One task whose score changed."""

    task: str
    """The task."""
    before: Counts
    """Attempts and successes of the incumbent."""
    after: Counts
    """Attempts and successes of the candidate."""


class Reliability(NamedTuple):
    """pass^k for one k, the mean over tasks."""

    k: int
    """How many attempts must all succeed."""
    combinations: float
    """C(c, k) / C(n, k)."""
    power: float
    """(c / n)^k."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one cell. Attempts that the infrastructure ended count as the module `cell` says."""

    attempts: int
    """Attempts counted."""
    successes: int
    """Those of them that succeeded."""
    score: float
    """The sum of the tasks' scores: how many tasks an average run solves."""
    reliability: tuple[Reliability, ...]
    """pass^k for each k from 1 to the attempts of a task."""
    reliable: int
    """Tasks that succeeded in every attempt."""
    cost: Figure
    """What the agent cost in all counted attempts, failed ones included, in US dollars."""
    cost_per_success: Figure
    """That over the successes; withheld without one."""
    cost_per_reliable_task: Figure
    """That over the reliable tasks; withheld without one."""
    open_errors: int
    """Attempts that the infrastructure ended and nobody re-ran; each is counted against the candidate."""
    rerun_errors: int
    """Attempts that the infrastructure ended and that were re-run; they are not counted."""


class Decision(NamedTuple):
    """What a policy says of the numbers alone."""

    accepted: bool
    """Whether the candidate would take the incumbent's place."""
    reason: str
    """Why, in words."""


class Met(NamedTuple):
    """What became of one further condition."""

    name: str
    """`no-regression`, `reliability`, `cost` or `fresh`."""
    met: bool
    """Whether it is met."""
    reason: str
    """Why, in words."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that two comparable cells say."""

    tasks: int
    """How many tasks there are."""
    attempts: int
    """How many attempts each has in each cell."""
    ups: tuple[Change, ...]
    """Tasks whose score went up, sorted; their number is w."""
    downs: tuple[Change, ...]
    """Tasks whose score went down, sorted; their number is l."""
    p: float
    """One-sided exact sign test: how likely at least w of w + l ups are where ups and downs are equally likely."""
    noise: NoiseFloor
    """The 95 % point of |w - l| between two draws from the incumbent's own rates."""
    repeated: Repeated | None
    """How the evaluation that installed the incumbent and the one compared differ; None where they cannot be held
    against each other."""
    clean: bool
    """Whether no result of the candidate is missing and none waits for a re-run."""
    incumbent: Figures
    """Figures of the incumbent."""
    candidate: Figures
    """Figures of the candidate."""
    decisions: Mapping[Policy, Decision]
    """What each policy says."""
    conditions: tuple[Met, ...]
    """What became of the conditions that the terms state."""

    @property
    def difference(self) -> int:
        """How many more went up than down, w - l."""
        return len(self.ups) - len(self.downs)

    @property
    def inside_noise(self) -> bool | None:
        """Whether |w - l| is at most the noise floor; None when there is no noise floor."""
        return None if self.noise.tasks is None else abs(self.difference) <= self.noise.tasks


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cells, and what comparing them says."""

    terms: Terms
    """What it was made under."""
    incumbent: Cell
    """The evaluation of the accepted pair."""
    candidate: Cell
    """The evaluation of the candidate."""
    changed: tuple[str, ...]
    """What differs between the pairs: components of the harness, members of the model."""
    reused: tuple[str, ...]
    """Ids of the incumbent's traces on which an earlier decision rests, sorted."""
    refusals: tuple[Refusal, ...]
    """Everything that stands against the comparison."""
    measured: Measured | None
    """What it says; None when it is refused."""

    @property
    def accepted(self) -> bool | None:
        """Whether the policy accepts and every condition is met; None when the comparison is refused."""
        if self.measured is None:
            return None
        decided = self.measured.decisions[self.terms.policy].accepted
        return decided and all(condition.met for condition in self.measured.conditions)


def compare(incumbent: Cell, candidate: Cell, terms: Terms) -> Comparison:
    """Return what comparing two cells says, or everything that stands against it.

    Args:
        incumbent: the evaluation of the accepted pair.
        candidate: the evaluation of the pair with one half replaced.
        terms: what the comparison is made under.
    """
    against = refusals(incumbent, candidate, terms)
    reused = tuple(sorted({one.trace for one in incumbent.attempts if one.trace in terms.used}))
    return Comparison(
        terms=terms,
        incumbent=incumbent,
        candidate=candidate,
        changed=changed(incumbent, candidate),
        reused=reused,
        refusals=against,
        measured=None if against else _measured(incumbent, candidate, terms, len(reused)),
    )


def counts(cell: Cell, attempts: int, *, open_succeeds: bool) -> dict[str, Counts]:
    """Return attempts and successes of each task of a cell.

    Args:
        cell: the cell.
        attempts: how many scored attempts a task is to have.
        open_succeeds: what an attempt counts as that the infrastructure ended and nobody re-ran.
    """
    return {
        task: Counts(tally.scored + len(tally.open), tally.successes + open_succeeds * len(tally.open))
        for task, tally in cell.tally(attempts).items()
    }


def decide(ups: int, downs: int, p: float, level: float, *, clean: bool) -> dict[Policy, Decision]:
    """Return what each policy says of the numbers alone.

    Args:
        ups: tasks whose score went up.
        downs: tasks whose score went down.
        p: one-sided exact sign test of these.
        level: the largest p at which `significant` accepts.
        clean: whether no result of the candidate is missing and none waits for a re-run.
    """
    return {
        Policy.SIGNIFICANT: _significant(ups, downs, p, level),
        Policy.COTRACE: _cotrace(ups, downs, clean=clean),
    }


def _measured(incumbent: Cell, candidate: Cell, terms: Terms, reused: int) -> Measured:
    number = terms.attempts
    before = counts(incumbent, number, open_succeeds=True)
    after = counts(candidate, number, open_succeeds=False)
    moved = paired(before, after)
    figures = _figures(incumbent, before, number), _figures(candidate, after, number)
    ups, downs = len(moved.ups), len(moved.downs)
    p, clean = sign_test(ups, downs), figures[1].open_errors == 0
    return Measured(
        tasks=len(before),
        attempts=number,
        ups=tuple(Change(task, before[task], after[task]) for task in moved.ups),
        downs=tuple(Change(task, before[task], after[task]) for task in moved.downs),
        p=p,
        noise=noise_floor(before, number),
        repeated=_repeated(incumbent, number),
        clean=clean,
        incumbent=figures[0],
        candidate=figures[1],
        decisions=decide(ups, downs, p, terms.level, clean=clean),
        conditions=_conditions(terms, (incumbent, candidate), before, after, figures, reused),
    )


def _repeated(cell: Cell, number: int) -> Repeated | None:
    """Return how two evaluations of a pair differ; None unless both are whole, of one model, and judged alike."""
    before = replace(cell, attempts=cell.installed)
    made, now = (
        {(one.task, one.grader, one.model, one.fingerprint) for one in side.attempts if one.status in SCORED}
        for side in (before, cell)
    )
    tallies = before.tally(number), cell.tally(number)
    if made != now or any(tally.open or tally.unjudged for side in tallies for tally in side.values()):
        return None
    evaluations = [{task: Counts(one.scored, one.successes) for task, one in side.items()} for side in tallies]
    found = repeated(evaluations)
    return found if found.withheld is None else None


def _figures(cell: Cell, per_task: Mapping[str, Counts], number: int) -> Figures:
    tallies = cell.tally(number).values()
    costs = [one.cost for one in cell.attempts if one.status in SCORED]
    costs += [one.cost for tally in tallies for one in tally.open]
    successes = sum(count.successes for count in per_task.values())
    return Figures(
        attempts=sum(count.attempts for count in per_task.values()),
        successes=successes,
        score=successes / number,
        reliability=tuple(_reliability(per_task, k) for k in range(1, number + 1)),
        reliable=sum(count.successes == count.attempts for count in per_task.values()),
        cost=total_cost(costs),
        cost_per_success=cost_per_success(costs, successes),
        cost_per_reliable_task=cost_per_reliable_task(costs, per_task),
        open_errors=sum(len(tally.open) for tally in tallies),
        rerun_errors=sum(tally.rerun for tally in tallies),
    )


def _reliability(per_task: Mapping[str, Counts], k: int) -> Reliability:
    combinations = aggregate(per_task, k, Measure.ALL_OF_K_COMBINATIONS).value
    power = aggregate(per_task, k, Measure.ALL_OF_K_POWER).value
    assert combinations is not None
    assert power is not None
    return Reliability(k, combinations, power)


def _significant(ups: int, downs: int, p: float, level: float) -> Decision:
    if ups <= downs:
        return Decision(False, f"{ups} up is not more than {downs} down")
    relation = "at most" if p <= level else "above"
    return Decision(p <= level, f"{ups} up, {downs} down: p = {p:.4g} is {relation} {level:g}")


def _cotrace(ups: int, downs: int, *, clean: bool) -> Decision:
    if ups != downs:
        return Decision(ups > downs, f"{ups} up is {'more' if ups > downs else 'less'} than {downs} down")
    if clean:
        return Decision(True, f"a tie, {ups} up and {downs} down, and no attempt of the candidate is missing or broken")
    return Decision(False, f"a tie, {ups} up and {downs} down, with attempts that the infrastructure ended")


def _conditions(
    terms: Terms,
    cells: tuple[Cell, Cell],
    before: Mapping[str, Counts],
    after: Mapping[str, Counts],
    figures: tuple[Figures, Figures],
    reused: int,
) -> tuple[Met, ...]:
    asked, met = terms.conditions, []
    if asked.no_regression:
        tasks = meanings(asked.no_regression, placed_in(cells))
        met.append(_no_regression(tasks, before, after))
    if asked.reliability is not None:
        met.append(_reliable(asked.reliability, before, after))
    if asked.cost:
        met.append(_cost(*(one.cost_per_success for one in figures)))
    if asked.fresh:
        reason = f"{reused} of the incumbent's traces are those that installed it" if reused else "none is reused"
        met.append(Met("fresh", reused == 0, reason))
    return tuple(met)


def _no_regression(
    tasks: Mapping[str, tuple[str, ...]], before: Mapping[str, Counts], after: Mapping[str, Counts]
) -> Met:
    unknown = [name for name, found in tasks.items() if not found]
    worse = {task for found in tasks.values() for task in found if after[task].successes < before[task].successes}
    reasons = [f"the score went down at {named(worse)}"] if worse else []
    if unknown:
        reasons.append(f"the evaluation has no task {named(unknown)}")
    watched = len({task for found in tasks.values() for task in found})
    kept = f"no score of {watched} named tasks went down"
    if watched == 1:
        kept = "the score of the one named task did not go down"
    return Met("no-regression", not reasons, "; ".join(reasons) or kept)


def _reliable(k: int, before: Mapping[str, Counts], after: Mapping[str, Counts]) -> Met:
    attempts = min(count.attempts for count in before.values())
    if not 1 <= k <= attempts:
        return Met("reliability", False, f"pass^{k} needs {k} attempts of each task, and there are {attempts}")
    # whole numbers over one divisor, so that equal means are equal
    ways = [sum(math.comb(count.successes, k) for count in side.values()) for side in (before, after)]
    of = math.comb(attempts, k) * len(before)
    said = f"pass^{k} (combinations) went from {ways[0] / of:.4f} to {ways[1] / of:.4f}"
    return Met("reliability", ways[1] >= ways[0], said)


def _cost(before: Figure, after: Figure) -> Met:
    for side, figure in (("incumbent", before), ("candidate", after)):
        if figure.value is None:
            return Met("cost", False, f"the {side}'s cost per success is not defined: {figure.withheld}")
    assert before.value is not None
    assert after.value is not None
    said = f"cost per success went from {before.value:.6g} to {after.value:.6g}"
    return Met("cost", after.value <= before.value, said)


def evidence(cell: Cell) -> dict[str, int]:
    """Return how many attempts of a cell are known how well, by evidence, sorted."""
    return dict(sorted(Counter(one.evidence for one in cell.attempts).items()))
