"""How far a rate may lie from what was seen: Jeffreys intervals (Bayesian) and Wilson intervals (frequentist).

Use `jeffreys` beside bands, which come from the same posterior, and `wilson` where scipy is not at hand. The plain
normal interval is left out: at 0 and at n successes it has no width.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.stats import posterior
from tracemark.stats.counts import Counts, require_measured


class Interval(NamedTuple):
    """A range of rates."""

    low: float
    """The lower end, a rate from 0 to 1."""
    high: float
    """The upper end, a rate from 0 to 1; not below `low`."""


def jeffreys(counts: Counts, level: float = 0.95) -> Interval:
    """Return the equal-tailed credible interval of the Jeffreys posterior Beta(c + ½, n − c + ½).

    The ends are the quantiles at 0 and n successes too (Brown, Cai and DasGupta, "Interval Estimation for a Binomial
    Proportion", 2001, set them to 0 and 1 there); ThinkingBox, `eval_utils.py: cred_int`, does the same.

    Args:
        counts: of one task, or of many attempts that share one rate; at least one attempt.
        level: the probability inside, between 0 and 1.

    Returns:
        The interval; each end accurate to about 14 digits.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, `level` is not between 0 and 1, or scipy is not
            installed.
    """
    tail = _tail(level)
    return Interval(posterior.quantile(counts, tail), posterior.quantile(counts, 1 - tail))


def wilson(counts: Counts, level: float = 0.95) -> Interval:
    """Return the Wilson score interval, without continuity correction.

    (c + z²/2 ± z √(c(n−c)/n + z²/4)) / (n + z²) with z the normal quantile of `level` (Wilson, "Probable Inference,
    the Law of Succession, and Statistical Inference", 1927).

    Args:
        counts: of one task, or of many attempts that share one rate; at least one attempt.
        level: the coverage aimed at, between 0 and 1.

    Returns:
        The interval; each end accurate to about 14 digits, with the end 0 exact at no success and the end 1 at no
        failure.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or `level` is not between 0 and 1.
    """
    tail = _tail(level)
    require_measured(counts)
    attempts, successes = counts
    squared = NormalDist().inv_cdf(1 - tail) ** 2
    middle = successes + squared / 2
    half = math.sqrt(squared * (successes * (attempts - successes) / attempts + squared / 4))
    # at the ends both terms are equal by algebra, and only rounding would leave a rest
    low = (middle - half) / (attempts + squared) if successes else 0.0
    high = (middle + half) / (attempts + squared) if successes < attempts else 1.0
    return Interval(low, high)


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise UsageError(f"a level of {level} is no probability between 0 and 1", hint="95 % is 0.95")
    return (1 - level) / 2
