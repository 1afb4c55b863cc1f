"""How much two evaluations of one and the same configuration differ: expected from its rates, and seen in its runs.

A difference between two configurations that is no larger is no evidence of anything. Bare `w > ℓ` finds an identical
candidate better in nearly half of all comparisons, at any number of attempts.

Invariants:
- the distribution is computed, not drawn: per task three outcomes (up, down, same), convolved over tasks. There is no
  seed, and the same counts give the same floor on every machine;
- up and down are equally likely for identical configurations, so that the distribution is symmetric about 0;
- a task that always or never succeeded adds nothing; where that is all a single attempt can show, the floor is
  withheld, since 0 would claim that nothing is noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.stats.compare import paired
from tracemark.stats.counts import Counts, attempts_of_each, require_draws, require_measured, withheld

_NEGLIGIBLE = 1e-30
"""Outcomes less likely than this are dropped from the far end; all together stay far below a float's last place."""


class NoiseFloor(NamedTuple):
    """How far |w − ℓ| of two evaluations of one configuration reaches by chance."""

    tasks: int | None
    """The smallest number of tasks that |w − ℓ| does not exceed with probability `point`: a difference of up to this
    many lies inside the noise. None when it is withheld."""
    promoted: float | None
    """How often an identical candidate has w > ℓ, 0 to ½: what the bare rule promotes by chance. None when withheld."""
    attempts: int
    """How many attempts a task each of the two evaluations makes."""
    point: float
    """The point of the distribution, between 0 and 1."""
    withheld: str | None
    """Why the floor is withheld; None when it is not."""


def noise_floor(per_task: Mapping[str, Counts], attempts: int, point: float = 0.95) -> NoiseFloor:
    """Return the noise floor of an evaluation: a point of |w − ℓ| between two draws from the incumbent's own rates.

    Each draw makes `attempts` independent attempts at each task with its rate c / n; w and ℓ count the tasks with more
    and with fewer successes in the second draw. Exact, by convolution over tasks.

    The rates are taken as true. From few attempts this is too sure: 4 of 4 is read as a task that never fails, and on
    average only (n − 1) / n of a task's variance is seen, so that the floor is on average too low.

    Args:
        per_task: counts of each task under the incumbent, by the task's name.
        attempts: how many attempts a task the two compared evaluations make, 1 or more; mostly those measured.
        point: the point of the distribution, between 0 and 1.

    Returns:
        The floor in tasks; withheld where run counts differ between tasks, where nothing was measured, and where each
        task had one attempt.

    Raises:
        UsageError: when a task's counts cannot be, `attempts` is below 1 or `point` is not between 0 and 1.
    """
    if not 0 < point < 1:
        raise UsageError(f"a point of {point} is no probability between 0 and 1", hint="the 95 % point is 0.95")
    require_draws(attempts)
    reason = _withheld(per_task)
    if reason is not None:
        return NoiseFloor(None, None, attempts, point, reason)
    chances = distribution(per_task, attempts)
    reached, tasks = chances[0], 0
    while reached < point and tasks + 1 < len(chances):
        tasks += 1
        reached += chances[tasks]
    return NoiseFloor(tasks, (1 - chances[0]) / 2, attempts, point, None)


def distribution(per_task: Mapping[str, Counts], attempts: int) -> list[float]:
    """Return how likely each |w − ℓ| is between two draws from the same rates.

    Args:
        per_task: counts of each task, by its name; at least one attempt each.
        attempts: how many attempts a task each draw makes, 1 or more.

    Returns:
        The probability of |w − ℓ| = 0, 1, 2 …; they sum to 1 within rounding (about 1e-14). Differences beyond the end
        are less likely than 1e-25.

    Raises:
        UsageError: when a task's counts cannot be, a task has no attempt, or `attempts` is below 1.
    """
    require_draws(attempts)
    moves = []
    for task, counts in per_task.items():
        require_measured(counts, task)
        moves.append(_moves(counts, attempts))
    # of a symmetric distribution one half says all: half[d] is the probability of w − ℓ = d, and of −d
    half = [1.0]
    for up in sorted(moves):
        half = _with_one_more(half, up)
    return [half[0], *(2 * chance for chance in half[1:])]


class Repeated(NamedTuple):
    """How several evaluations of one configuration differed."""

    totals: tuple[float, ...] | None
    """The total score of each evaluation in tasks (the sum of successes over attempts), in their order. None when
    withheld, like the others."""
    spread: float | None
    """The largest total less the smallest, in tasks."""
    deviation: float | None
    """The sample standard deviation of the totals, in tasks."""
    differences: tuple[int, ...] | None
    """|w − ℓ| of every two evaluations, in tasks: first with second, first with third and so on."""
    moved: tuple[int, ...] | None
    """w + ℓ of every two evaluations, in the same order: how many tasks had another score."""
    withheld: str | None
    """Why the others are None; None when they are not."""


def repeated(evaluations: Sequence[Mapping[str, Counts]]) -> Repeated:
    """Return the noise seen between evaluations of one configuration, which assumes nothing of rates or independence.

    Two evaluations show one difference, ten show 45 that are not independent: no point of a distribution is claimed.

    Args:
        evaluations: of one pair of harness and model, each with the counts of every task by its name.

    Returns:
        The totals, their spread, and |w − ℓ| of every two; withheld when there are fewer than two evaluations, when
        they do not hold the same tasks, when run counts differ between tasks or evaluations, and when nothing was
        measured.

    Raises:
        UsageError: when a task's counts cannot be.
    """
    reason = _incomparable(evaluations)
    if reason is not None:
        return Repeated(None, None, None, None, None, reason)
    attempts = attempts_of_each(evaluations[0])
    totals = tuple(sum(counts.successes for counts in each.values()) / attempts for each in evaluations)
    pairs = [paired(before, after) for before, after in combinations(evaluations, 2)]
    return Repeated(
        totals=totals,
        spread=max(totals) - min(totals),
        deviation=statistics.stdev(totals),
        differences=tuple(abs(len(pair.ups) - len(pair.downs)) for pair in pairs),
        moved=tuple(len(pair.ups) + len(pair.downs) for pair in pairs),
        withheld=None,
    )


def _withheld(per_task: Mapping[str, Counts]) -> str | None:
    reason = withheld(per_task)
    if reason is None and attempts_of_each(per_task) == 1:
        return "one attempt a task shows no rate between 0 and 1, and so nothing of the noise"
    return reason


def _incomparable(evaluations: Sequence[Mapping[str, Counts]]) -> str | None:
    if len(evaluations) < 2:
        return "noise shows between evaluations: two or more of one configuration are needed"
    first = evaluations[0]
    for place, each in enumerate(evaluations, start=1):
        reason = withheld(each)
        if reason is not None:
            return f"evaluation {place}: {reason}"
        apart = first.keys() ^ each.keys()
        if apart:
            return f"evaluations 1 and {place} do not hold the same tasks: {min(apart)!r} is in one alone"
        if attempts_of_each(each) != attempts_of_each(first):
            return (
                f"run counts differ between evaluations: {attempts_of_each(first)} in evaluation 1, "
                f"{attempts_of_each(each)} in evaluation {place}"
            )
    return None


@lru_cache(maxsize=1024)
def _moves(counts: Counts, attempts: int) -> float:
    """Return the probability that the second of two draws has more successes than the first: (1 − P(equal)) / 2."""
    shared = math.gcd(counts.successes, counts.attempts - counts.successes)
    succeeds, fails = counts.successes // shared, (counts.attempts - counts.successes) // shared
    if not succeeds or not fails:
        return 0.0
    # whole numbers: the outcomes of one draw, weighed as C(k, i) · succeeds^i · fails^(k−i)
    term = int(fails**attempts)
    equal = term * term
    for done in range(attempts):
        term = term * succeeds * (attempts - done) // (fails * (done + 1))
        equal += term * term
    outcomes = int((succeeds + fails) ** (2 * attempts))
    return (outcomes - equal) / (2 * outcomes)


def _with_one_more(half: list[float], up: float) -> list[float]:
    """Return the half distribution of w − ℓ after one more task, which goes up, and down, with probability `up`."""
    if up == 0:
        return half
    same = 1 - 2 * up
    padded = [*half, 0.0, 0.0]
    more = [same * half[0] + 2 * up * padded[1]]
    more += [same * padded[d] + up * (padded[d - 1] + padded[d + 1]) for d in range(1, len(half) + 1)]
    while more[-1] < _NEGLIGIBLE:
        more.pop()
    return more
