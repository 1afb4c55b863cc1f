"""How hard a task is for a configuration, with how sure that is: five bands of the true rate, and the goldilocks zone.

Source: microsoft/thinkingbox, `eval_utils.py`, and its training repository, `data/helpers/utils.py`.

Invariants:
- the masses of the five bands are all of the posterior (they sum to 1);
- the band is the one with the largest mass; of equal ones the harder, so that a task is not called easy on a draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from tracemark.stats import posterior
from tracemark.stats.counts import Counts, require_possible
from tracemark.stats.intervals import Interval, jeffreys


class Band(StrEnum):
    """A range of the true rate, from the hardest to the easiest; the lower end belongs to it, the upper does not."""

    TOO_HARD = "too_hard"
    """Below 0.08: attempts teach nothing, since hardly any succeeds."""
    HARD = "hard"
    """0.08 to 0.40."""
    MEDIUM = "medium"
    """0.40 to 0.60."""
    EASY = "easy"
    """0.60 to 0.90."""
    TOO_EASY = "too_easy"
    """0.90 and above, 1 included: attempts teach nothing, since hardly any fails."""


EDGES = (0.0, 0.08, 0.40, 0.60, 0.90, 1.0)
"""Where one band ends and the next begins, in the order of `Band`."""
RETAINED = frozenset({Band.HARD, Band.MEDIUM, Band.EASY})
"""The bands from which training learns something."""
MINIMUM_ATTEMPTS = 3
"""Below this a band is withheld; the default of the source's code (its documentation says 4)."""
ZONE = (0.0625, 0.9375)
"""The goldilocks zone, both ends excluded: neither hopeless nor settled."""


class Banded(NamedTuple):
    """The band of one task."""

    band: Band | None
    """The band; None when it is withheld."""
    mass: float | None
    """The probability that the true rate lies in that band, 0 to 1; None when the band is withheld."""
    interval: Interval | None
    """The 95 % Jeffreys interval of the true rate; None when the band is withheld."""
    withheld: str | None
    """Why the band is withheld; None when it is not."""


def masses(counts: Counts) -> dict[Band, float]:
    """Return the probability of each band, the hardest first.

    Args:
        counts: of one task; at least one attempt.

    Returns:
        Probabilities that sum to 1, each accurate to about 14 digits.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or scipy is not installed.
    """
    below = [posterior.cumulative(counts, edge) for edge in EDGES]
    return {band: high - low for band, (low, high) in zip(Band, pairwise(below), strict=True)}


def heaviest(masses_of_bands: Mapping[Band, float]) -> Band:
    """Return the band of the largest mass; of equal ones the harder.

    Args:
        masses_of_bands: the mass of every band.
    """
    return max(Band, key=lambda band: masses_of_bands[band])


def band(counts: Counts, minimum: int = MINIMUM_ATTEMPTS) -> Banded:
    """Return the band of a task, how sure that is, and the interval of its rate.

    Args:
        counts: of one task; attempts that a fault of the environment ended are none.
        minimum: the number of attempts below which the band is withheld.

    Returns:
        The band; withheld when there are fewer attempts than `minimum`, and always without an attempt.

    Raises:
        UsageError: when the counts cannot be, or scipy is not installed.
    """
    require_possible(counts)
    needed = max(minimum, 1)
    if counts.attempts < needed:
        return Banded(None, None, None, f"{counts.attempts} attempts say too little of a rate: a band needs {needed}")
    of_bands = masses(counts)
    chosen = heaviest(of_bands)
    return Banded(chosen, of_bands[chosen], jeffreys(counts), None)


def zone_probability(counts: Counts) -> float:
    """Return the probability that the true rate lies in the goldilocks zone, between 0.0625 and 0.9375.

    Args:
        counts: of one task; at least one attempt.

    Returns:
        A probability, 0 to 1, accurate to about 14 digits.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or scipy is not installed.
    """
    low, high = ZONE
    return posterior.cumulative(counts, high) - posterior.cumulative(counts, low)


def in_goldilocks_zone(counts: Counts, certainty: float = 0.95) -> bool:
    """Say whether a task's rate surely lies in the goldilocks zone.

    Args:
        counts: of one task; at least one attempt.
        certainty: the probability that is asked for, 0 to 1.

    Raises:
        UsageError: when the counts cannot be, there was no attempt, or scipy is not installed.
    """
    return zone_probability(counts) >= certainty
