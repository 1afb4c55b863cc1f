"""Difficulty bands and the goldilocks zone: published values; masses add up; ties go to the harder band."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats.bands import (
    EDGES,
    RETAINED,
    Band,
    Banded,
    band,
    heaviest,
    in_goldilocks_zone,
    masses,
    zone_probability,
)
from tracemark.stats.counts import Counts

COUNTS = st.integers(3, 100).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))).map(lambda pair: Counts(*pair))
PUBLISHED = [
    (8, 3, "hard", 0.5396),
    (4, 1, "hard", 0.6080),
    (4, 2, "medium", 0.3328),
    (8, 4, "medium", 0.4446),
    (8, 5, "easy", 0.5322),
    (8, 7, "easy", 0.6042),
    (8, 8, "too_easy", 0.8128),
    (8, 0, "too_hard", 0.7593),
    (3, 0, "too_hard", 0.5392),
    (3, 1, "hard", 0.5018),
    (3, 2, "easy", 0.4753),
    (3, 3, "too_easy", 0.5929),
    (20, 20, "too_easy", 0.9612),
    (20, 0, "too_hard", 0.9339),
]


@pytest.mark.parametrize(("n", "c", "name", "mass"), PUBLISHED)
def test_a_band_and_its_mass_are_the_published_ones(n, c, name, mass):
    found = band(Counts(n, c))
    assert found.band == name
    assert found.mass == pytest.approx(mass, abs=5e-5)
    assert found.withheld is None


def test_two_of_four_lies_nearly_as_likely_in_three_bands():
    found = masses(Counts(4, 2))
    assert found[Band.HARD] == pytest.approx(0.3246, abs=5e-5)
    assert found[Band.EASY] == pytest.approx(0.3182, abs=5e-5)


def test_the_interval_is_the_published_one():
    assert band(Counts(8, 3)).interval == pytest.approx((0.1190, 0.7052), abs=5e-5)


@pytest.mark.parametrize(
    ("n", "c", "probability", "inside"),
    [(8, 3, 0.9968, True), (4, 2, 0.9901, True), (3, 1, 0.9480, False), (4, 1, 0.9227, False), (8, 7, 0.8014, False)],
)
def test_the_goldilocks_zone_is_the_published_one(n, c, probability, inside):
    assert zone_probability(Counts(n, c)) == pytest.approx(probability, abs=5e-5)
    assert in_goldilocks_zone(Counts(n, c)) is inside


@given(COUNTS)
def test_masses_are_probabilities_that_sum_to_one(counts):
    found = masses(counts)
    assert list(found) == list(Band)
    assert sum(found.values()) == pytest.approx(1, abs=1e-14)
    assert all(0 <= mass <= 1 for mass in found.values())


@given(COUNTS)
def test_the_band_has_the_largest_mass(counts):
    found = band(counts)
    assert found.mass == max(masses(counts).values())


@given(COUNTS)
def test_one_more_success_never_makes_a_task_harder(counts):
    more = Counts(counts.attempts, min(counts.successes + 1, counts.attempts))
    order = list(Band)
    assert order.index(band(counts).band) <= order.index(band(more).band)


def test_of_equal_masses_the_harder_band_is_taken():
    assert heaviest(dict.fromkeys(Band, 0.2)) is Band.TOO_HARD
    assert heaviest({**dict.fromkeys(Band, 0.1), Band.EASY: 0.35, Band.MEDIUM: 0.35}) is Band.MEDIUM


def test_the_bands_cover_all_rates_and_the_outer_ones_are_not_retained():
    assert tuple(sorted(EDGES)) == EDGES
    assert (EDGES[0], EDGES[-1]) == (0, 1)
    assert set(Band) - RETAINED == {Band.TOO_HARD, Band.TOO_EASY}


@pytest.mark.parametrize("minimum", [3, 0, -1])
def test_a_band_is_withheld_where_nothing_was_measured(minimum):
    found = band(Counts(0, 0), minimum)
    assert found[:3] == (None, None, None)
    assert "0 attempts say too little" in found.withheld


def test_a_band_is_withheld_below_the_minimum_of_attempts():
    reason = "3 attempts say too little of a rate: a band needs 4"
    assert band(Counts(3, 3), minimum=4) == Banded(None, None, None, reason)
    assert band(Counts(2, 1)).band is None
    assert band(Counts(2, 1), minimum=2).band is not None


def test_counts_that_cannot_be_are_refused():
    for ask in (band, masses, in_goldilocks_zone):
        with pytest.raises(UsageError, match="cannot be"):
            ask(Counts(3, 4))
