"""How reliably tasks are solved: pass@k, pass^k, at least once, mean.

Invariants:
- pass^k has two estimators in use, which differ widely where k is near n (19 of 20, k = 20: 0 and 0.358), so that each
  is named and none is the default;
- combinations ≤ power ≤ mean ≤ pass@k for every n, c and k, and the floats keep that order: each is the float nearest
  to a quotient of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.stats.counts import Counts, require_draws, require_measured, withheld


class Estimator(StrEnum):
    """How pass^k, the probability that k attempts all succeed, is estimated from c successes of n attempts."""

    COMBINATIONS = "combinations"
    """C(c, k) / C(n, k): k of the n attempts, drawn without putting one back. Unbiased; what τ²-bench reports."""
    POWER = "power"
    """(c / n)^k: k new attempts at the rate seen. Biased upwards; what ThinkingBox's `tb agg` reports."""


class Measure(StrEnum):
    """What `aggregate` takes the mean of; the value is the name to report it under."""

    ANY_OF_K = "pass@k"
    """The probability that at least one of k attempts succeeds (`pass_at`)."""
    ALL_OF_K_COMBINATIONS = "pass^k, combinations"
    """The probability that all of k attempts succeed, by `Estimator.COMBINATIONS`."""
    ALL_OF_K_POWER = "pass^k, power"
    """The probability that all of k attempts succeed, by `Estimator.POWER`."""
    AT_LEAST_ONCE = "at least once"
    """The share of tasks that were solved at least once; speaks of all attempts and takes no k."""
    MEAN = "mean"
    """The share of attempts that succeeded; takes no k."""


class Figure(NamedTuple):
    """A number, or why there is none."""

    value: float | None
    """The number; None when it is withheld, which is neither zero nor infinite."""
    withheld: str | None
    """Why it is withheld; None when it is not."""


def pass_at(counts: Counts, k: int) -> float:
    """Return pass@k, the probability that at least one of k attempts drawn from those made succeeds.

    1 − C(n−c, k) / C(n, k), unbiased (Chen et al., "Evaluating Large Language Models Trained on Code", 2021).

    Args:
        counts: of one task.
        k: how many attempts are drawn, 1 to `counts.attempts`.

    Returns:
        A probability, 0 to 1; the float nearest to the true value.

    Raises:
        UsageError: when the counts cannot be, or `k` is not between 1 and the attempts.
    """
    _require_supported(counts, k)
    draws = math.comb(counts.attempts, k)
    return (draws - math.comb(counts.attempts - counts.successes, k)) / draws


def pass_all(counts: Counts, k: int, estimator: Estimator) -> float:
    """Return pass^k, the probability that all of k attempts succeed.

    The measure is of Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains", 2024, which estimates it by combinations.

    Args:
        counts: of one task.
        k: how many attempts, 1 to `counts.attempts`, under either estimator: what no k attempts have shown is not
            stretched from fewer.
        estimator: which one; report its name with the number.

    Returns:
        A probability, 0 to 1; the float nearest to what the estimator says.

    Raises:
        UsageError: when the counts cannot be, or `k` is not between 1 and the attempts.
    """
    _require_supported(counts, k)
    attempts, successes = counts
    if estimator is Estimator.COMBINATIONS:
        return math.comb(successes, k) / math.comb(attempts, k)
    # whole numbers: a rounded c / n would be off k times over, and could come out below the other estimator
    every, possible = int(successes**k), int(attempts**k)
    return every / possible


def at_least_once(counts: Counts) -> float:
    """Return 1.0 when the task was solved in any of its attempts, else 0.0 (pass@k for k = all attempts).

    Args:
        counts: of one task.

    Raises:
        UsageError: when the counts cannot be or there was no attempt.
    """
    require_measured(counts)
    return 1.0 if counts.successes else 0.0


def mean_rate(counts: Counts) -> float:
    """Return the share of attempts that succeeded, c / n (pass@1, and pass^1 under either estimator).

    Args:
        counts: of one task.

    Raises:
        UsageError: when the counts cannot be or there was no attempt.
    """
    require_measured(counts)
    return counts.successes / counts.attempts


def aggregate(per_task: Mapping[str, Counts], k: int | None, what: Measure) -> Figure:
    """Return the mean of a measure over tasks, each task weighing the same.

    Args:
        per_task: counts of each task, by its name.
        k: how many attempts the measure speaks of; None for `AT_LEAST_ONCE` and `MEAN`, which take none.
        what: the measure.

    Returns:
        A probability, 0 to 1, accurate to a few units of the last place of a float; withheld where run counts differ
        between tasks, where `k` exceeds the attempts, and where nothing was measured.

    Raises:
        UsageError: when a task's counts cannot be, when `k` is below 1, or when a measure that needs `k` has none or
            one that takes none is given one.
    """
    takes_k = what not in {Measure.AT_LEAST_ONCE, Measure.MEAN}
    if takes_k is (k is None):
        raise UsageError(
            f"the measure {what.value!r} {'needs' if takes_k else 'takes no'} k",
            hint="give k to pass@k and pass^k, and to them alone",
        )
    reason = withheld(per_task, k)
    if reason is not None:
        return Figure(None, reason)
    return Figure(math.fsum(_measure(counts, k, what) for counts in per_task.values()) / len(per_task), None)


def _measure(counts: Counts, k: int | None, what: Measure) -> float:
    if k is None:
        return mean_rate(counts) if what is Measure.MEAN else at_least_once(counts)
    if what is Measure.ANY_OF_K:
        return pass_at(counts, k)
    combined = what is Measure.ALL_OF_K_COMBINATIONS
    return pass_all(counts, k, Estimator.COMBINATIONS if combined else Estimator.POWER)


def _require_supported(counts: Counts, k: int) -> None:
    require_draws(k)
    require_measured(counts)
    if k > counts.attempts:
        raise UsageError(
            f"k = {k} exceeds the attempts, {counts.attempts}",
            hint=f"take a k up to {counts.attempts} or run the task more often",
        )
