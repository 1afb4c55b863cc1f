"""Jeffreys and Wilson intervals hold what was seen, narrow with attempts and mirror with failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats import posterior
from tracemark.stats.counts import Counts
from tracemark.stats.intervals import jeffreys, wilson

COUNTS = st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))).map(lambda pair: Counts(*pair))


@pytest.mark.parametrize(("n", "c", "low", "high"), [(8, 3, 0.1190, 0.7052), (20, 20, 0.8834, 1.0)])
def test_jeffreys_gives_the_published_intervals(n, c, low, high):
    assert jeffreys(Counts(n, c)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("n", "c", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3
    [(263, 81, 0.2553, 0.3662), (148, 15, 0.0624, 0.1605), (20, 0, 0.0, 0.1611), (29, 1, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(n, c, low, high):
    assert wilson(Counts(n, c)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("interval", [jeffreys, wilson])
class TestEither:
    @given(counts=COUNTS)
    def test_the_ends_are_rates_in_order_and_mirror_with_the_failures(self, interval, counts):
        low, high = interval(counts)
        mirrored = interval(Counts(counts.attempts, counts.attempts - counts.successes))
        assert 0 <= low < high <= 1
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)

    @given(counts=COUNTS)
    def test_a_lower_level_lies_inside_a_higher(self, interval, counts):
        wide, narrow = interval(counts, 0.99), interval(counts, 0.5)
        assert wide.low <= narrow.low
        assert narrow.high <= wide.high

    @given(counts=COUNTS)
    def test_one_more_success_moves_neither_end_down(self, interval, counts):
        more = Counts(counts.attempts, min(counts.successes + 1, counts.attempts))
        assert interval(counts).low <= interval(more).low
        assert interval(counts).high <= interval(more).high

    def test_ten_times_the_attempts_narrow_it(self, interval):
        few, many = interval(Counts(10, 5)), interval(Counts(100, 50))
        assert many.high - many.low < (few.high - few.low) / 2

    @pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan")])
    def test_a_level_that_is_no_probability_is_refused(self, interval, level):
        with pytest.raises(UsageError, match="level"):
            interval(Counts(4, 2), level)

    @pytest.mark.parametrize("counts", [Counts(0, 0), Counts(2, 3)])
    def test_no_attempt_and_counts_that_cannot_be_are_refused(self, interval, counts):
        with pytest.raises(UsageError):
            interval(counts)


@given(COUNTS)
def test_wilson_holds_what_was_seen_and_ends_exactly_at_the_ends(counts):
    low, high = wilson(counts)
    assert low <= counts.successes / counts.attempts <= high
    assert (low == 0) == (counts.successes == 0)
    assert (high == 1) == (counts.successes == counts.attempts)


@given(COUNTS, st.floats(0.01, 0.99))
def test_a_quantile_is_where_its_probability_lies_below(counts, probability):
    assert posterior.cumulative(counts, posterior.quantile(counts, probability)) == pytest.approx(probability, abs=1e-9)
