"""Whether one configuration is better than another: paired on the same tasks, or by rates alone.

On the same tasks the paired tests are the stronger ones: what makes a task hard for both falls out.

Invariants:
- tasks are paired by name and scores compared as whole numbers (c₁n₂ against c₂n₁), never as rounded rates;
- a task whose score did not change says nothing: the tests count those that moved;
- no test draws random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.stats.counts import PRIOR, Counts, require_measured, require_possible

_A_SUCCEEDS, _B_FAILS = 0, 3
"""Places, in the order success and failure of a, success and failure of b, at which one more makes P(A > B) greater."""


class Paired(NamedTuple):
    """The tasks whose score, successes over attempts, is not the same before and after."""

    ups: tuple[str, ...]
    """Tasks whose score went up, sorted; w of them."""
    downs: tuple[str, ...]
    """Tasks whose score went down, sorted; ℓ of them."""


def paired(before: Mapping[str, Counts], after: Mapping[str, Counts]) -> Paired:
    """Return which tasks went up and which down.

    Args:
        before: counts of each task under the one configuration, by the task's name; at least one attempt each.
        after: counts of the same tasks under the other.

    Raises:
        UsageError: when the tasks are not the same, when a task's counts cannot be or it was not attempted.
    """
    apart = before.keys() ^ after.keys()
    if apart:
        raise UsageError(
            f"scores are compared on the same tasks, and {len(apart)} are on one side alone",
            where=f"task {min(apart)!r}",
            hint="run every task under both configurations",
        )
    ups: list[str] = []
    downs: list[str] = []
    for task in sorted(before):
        first, second = before[task], after[task]
        require_measured(first, task)
        require_measured(second, task)
        change = second.successes * first.attempts - first.successes * second.attempts
        if change:
            (ups if change > 0 else downs).append(task)
    return Paired(tuple(ups), tuple(downs))


def sign_test(ups: int, downs: int) -> float:
    """Return the one-sided exact sign test: how often a fair coin gives at least as many ups.

    P(X ≥ ups) for X ~ Bin(ups + downs, ½) (Dixon and Mood, "The Statistical Sign Test", 1946).

    Args:
        ups: tasks whose score went up (w).
        downs: tasks whose score went down (ℓ).

    Returns:
        A probability, above 0 up to 1; 1.0 when nothing moved. The float nearest to the true value (0.0 below the
        smallest float).

    Raises:
        UsageError: when a count is below 0.
    """
    tail, of = _tail(ups, downs)
    return tail / of


def mcnemar(ups: int, downs: int) -> float:
    """Return the two-sided exact McNemar test: how often a fair coin is at least as uneven.

    Twice the smaller tail of Bin(ups + downs, ½), at most 1 (McNemar, "Note on the sampling error of the difference
    between correlated proportions", 1947, in its exact binomial form).

    Args:
        ups: tasks that only the second configuration solved, or whose score went up.
        downs: tasks that only the first solved, or whose score went down.

    Returns:
        A probability, above 0 up to 1; 1.0 when nothing moved or both are equal. The float nearest to the true value.

    Raises:
        UsageError: when a count is below 0.
    """
    tail, of = _tail(max(ups, downs), min(ups, downs))
    return min(2 * tail, of) / of


def probability_greater(a: Counts, b: Counts) -> float:
    """Return the probability that the rate behind `a` is greater than the one behind `b`, P(A > B).

    Both rates have their Jeffreys posterior, Beta(c + ½, n − c + ½), and are independent: an unpaired comparison. The
    integral ∫ f_A(x) F_B(x) dx is not approximated: a step of one success or failure changes it by a known term
    (Cook, "Exact Calculation of Beta Inequalities", 2005), and without any attempt it is ½.

    Args:
        a: counts of the one; no attempt leaves its prior.
        b: counts of the other.

    Returns:
        A probability, 0 to 1, off by less than 1e-12 for 10,000 attempts each; time grows with the attempts.

    Raises:
        UsageError: when counts cannot be.
    """
    require_possible(a)
    require_possible(b)
    goals = (a.successes, a.attempts - a.successes, b.successes, b.attempts - b.successes)
    # all four grow in proportion: the other way round a term could vanish on the way and be missed later
    order = sorted(((done + 0.5) / goal, which) for which, goal in enumerate(goals) for done in range(goal))
    reached = [PRIOR] * len(goals)
    probability, term = 0.5, 1 / math.pi**2
    for _, which in order:
        own = reached[which]
        sign = 1 if which in {_A_SUCCEEDS, _B_FAILS} else -1
        probability += sign * term / own
        same_rate, same_outcome = reached[which ^ 1], reached[which ^ 2]
        term *= (own + same_outcome) / sum(reached) * (own + same_rate) / own
        reached[which] = own + 1
    return min(max(probability, 0.0), 1.0)


def _tail(least: int, others: int) -> tuple[int, int]:
    """Return P(X ≥ least) for X ~ Bin(least + others, ½) as a numerator and a denominator."""
    if least < 0 or others < 0:
        raise UsageError(f"{least} and {others} cannot be numbers of tasks", hint="count tasks from 0 up")
    tosses = least + others
    term = tail = 1
    # from the last term, C(n, n) = 1, down to C(n, least): only what is summed is computed
    for failed in range(others):
        term = term * (tosses - failed) // (failed + 1)
        tail += term
    return tail, 2**tosses
