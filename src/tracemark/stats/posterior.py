"""What c successes of n attempts say of a task's true rate: the Jeffreys posterior, Beta(c + ½, n − c + ½).

The prior is Beta(½, ½) (Jeffreys, "An Invariant Form for the Prior Probability in Estimation Problems", 1946).

The one place that asks scipy, so that everything else works without it. Its two functions are accurate to about
14 digits.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracemark.errors import not_installed
from tracemark.stats.counts import PRIOR, Counts, require_measured


def cumulative(counts: Counts, rate: float) -> float:
    """Return the probability that the true rate is at most `rate`.

    Args:
        counts: of one task; at least one attempt.
        rate: 0 to 1.

    Returns:
        A probability, 0 to 1.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or scipy is not installed.
    """
    require_measured(counts)
    return float(_special().betainc(*_parameters(counts), rate))


def quantile(counts: Counts, probability: float) -> float:
    """Return the rate below which the true rate lies with a probability.

    Args:
        counts: of one task; at least one attempt.
        probability: 0 to 1.

    Returns:
        A rate, 0 to 1.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or scipy is not installed.
    """
    require_measured(counts)
    return float(_special().betaincinv(*_parameters(counts), probability))


def _parameters(counts: Counts) -> tuple[float, float]:
    return counts.successes + PRIOR, counts.attempts - counts.successes + PRIOR


def _special() -> Any:
    try:
        return import_module("scipy.special")
    except ModuleNotFoundError as error:
        raise not_installed("Jeffreys intervals and difficulty bands", "scipy") from error
