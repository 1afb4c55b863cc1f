"""Which half brought what: the four cells of two harnesses and two models.

With J the sum of the tasks' scores (how many tasks an average run solves):
- the harness under the old model: J(old model, new harness) - J(old model, old harness);
- the model under each harness: J(new model, harness) - J(old model, harness);
- the interaction: the model's effect under the new harness less that under the old one. It is not 0 where a model
  learned what only one of the harnesses lets it do.

Intervals are Student's t over tasks: each effect is a difference of scores of each task, tasks are taken as a sample of
those that could have been asked, and the interval of their sum is n times (mean ± t · s / √n) with n - 1 degrees of
freedom. What one task's attempts scatter is part of s. With one task there is no s and no interval; and none either
where all tasks differ by the same: an interval of one number would claim to be certain. An interval ends where an
effect would be more than all tasks can have: of n tasks n, and twice that of the interaction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from statistics import fmean, stdev
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.gates.against import refusals_of
from tracemark.gates.cell import Cell
from tracemark.gates.compare import counts
from tracemark.gates.refusal import Refusal
from tracemark.gates.terms import Half, Terms
from tracemark.stats.intervals import Interval

METHOD = "Student's t over the tasks' paired differences of scores, as far as tasks can differ"
"""How the intervals are computed."""


class Four(NamedTuple):
    """The cells of two models under two harnesses."""

    old: Cell
    """Old model, old harness."""
    harness: Cell
    """Old model, new harness."""
    model: Cell
    """New model, old harness."""
    both: Cell
    """New model, new harness."""


CALLED = ("incumbent", "new harness", "new model", "new pair")
"""What the four cells are called in messages and re-run lists, in their order."""

_JUDGED = (
    (Half.HARNESS, "incumbent", "new harness"),
    (Half.MODEL, "incumbent", "new model"),
    (Half.MODEL, "new harness", "new pair"),
    (Half.HARNESS, "new model", "new pair"),
)


class Effect(NamedTuple):
    """One effect, in tasks."""

    value: float
    """How many more tasks an average run solves."""
    interval: Interval | None
    """Where the effect lies at the level asked for; None when it is withheld."""
    withheld: str | None
    """Why there is no interval; None when there is one."""


class Effects(NamedTuple):
    """Every effect of the four cells."""

    harness: Effect
    """The new harness under the old model."""
    harness_under_new: Effect
    """The new harness under the new model."""
    model_under_old: Effect
    """The new model under the old harness."""
    model_under_new: Effect
    """The new model under the new harness."""
    interaction: Effect
    """The model's effect under the new harness less that under the old one."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What four cells say, or what stands against it."""

    cells: Four
    """The cells."""
    tasks: int
    """How many tasks there are; 0 when it is refused."""
    attempts: int
    """How many attempts each has in each cell; 0 when it is refused."""
    level: float
    """The level of the intervals."""
    scores: tuple[float, ...]
    """J of each cell, in the order of the cells; empty when it is refused."""
    effects: Effects | None
    """The effects; None when it is refused."""
    refusals: tuple[Refusal, ...]
    """Everything that stands against it, each once."""
    wanted: int
    """How many attempts each must have."""
    used: frozenset[str] = frozenset()
    """Ids of the traces on which decisions rest that installed a pair."""


def attribute(cells: Four, terms: Terms, level: float = 0.95) -> Attribution:
    """Return what each half brought.

    Every two cells that differ in one half must be comparable as a gate would compare them, and all four alike.
    No attempt may wait for a re-run, since among four cells nobody can say against whom it counts.

    Args:
        cells: the four cells.
        terms: what the cells are compared under; half, policy and limit of infrastructure errors do not matter.
        level: the level of the intervals, between 0 and 1.
    """
    strict = with_changes(terms, infrastructure_limit=0.0)
    against = refusals_of(dict(zip(CALLED, cells, strict=True)), strict, _JUDGED)
    number = terms.attempts
    if against:
        return Attribution(cells, 0, 0, level, (), None, against, number, terms.used)
    scores = [_scores(cell, number) for cell in cells]
    return Attribution(
        cells=cells,
        tasks=len(scores[0]),
        attempts=number,
        level=level,
        scores=tuple(math.fsum(score.values()) for score in scores),
        effects=_effects(scores, level),
        refusals=(),
        wanted=number,
        used=terms.used,
    )


def _scores(cell: Cell, number: int) -> dict[str, float]:
    return {task: one.successes / one.attempts for task, one in counts(cell, number, open_succeeds=False).items()}


def _effects(scores: list[dict[str, float]], level: float) -> Effects:
    old, harness, model, both = scores

    def effect(after: Mapping[str, float], before: Mapping[str, float]) -> Effect:
        return summed([after[task] - before[task] for task in old], level)

    interaction = [both[task] - harness[task] - model[task] + old[task] for task in old]
    return Effects(
        harness=effect(harness, old),
        harness_under_new=effect(both, model),
        model_under_old=effect(model, old),
        model_under_new=effect(both, harness),
        # the difference of two differences
        interaction=summed(interaction, level, 2.0),
    )


def summed(differences: list[float], level: float, most: float = 1.0) -> Effect:
    """Return the sum of the tasks' differences, with its interval.

    Args:
        differences: of each task, one at least.
        level: the level of the interval, between 0 and 1.
        most: how far from 0 one task's difference can be; the interval holds no sum that is farther.

    Raises:
        UsageError: when `level` is not between 0 and 1.
    """
    number, total = len(differences), math.fsum(differences)
    if number < 2:
        return Effect(total, None, "one task shows nothing of how tasks differ")
    # scores are fractions of attempts, and what is equal may differ in the last digit
    if math.isclose(min(differences), max(differences), rel_tol=1e-9, abs_tol=1e-12):
        none = math.isclose(max(differences), 0, abs_tol=1e-12)
        return Effect(total, None, "no task's score differs" if none else "all tasks differ by the same")
    half = student_quantile((1 + level) / 2, number - 1) * stdev(differences) * math.sqrt(number)
    middle = number * fmean(differences)
    end = number * most
    return Effect(total, Interval(max(middle - half, -end), min(middle + half, end)), None)


def student_quantile(probability: float, freedom: int) -> float:
    """Return the value below which Student's t lies with a probability, accurate to about 12 digits.

    Args:
        probability: above one half and below 1.
        freedom: the degrees of freedom, 1 or more.

    Raises:
        UsageError: when `probability` is not between one half and 1.
    """
    if not 0.5 < probability < 1:
        raise UsageError(f"{probability} is no probability between 0.5 and 1", hint="the level 95 % is 0.95")
    # between the angles 0 and a right one lies every t, as freedom^½ times the angle's tangent
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if (1 + _inside(middle, freedom)) / 2 < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _inside(angle: float, freedom: int) -> float:
    """Return P(|t| <= freedom^½ tan angle), a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = total = (cosine if odd else 1.0) if freedom > 1 else 0.0
    for step in range(2 + odd, freedom - 1, 2):
        term *= (step - 1) / step * cosine * cosine
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
