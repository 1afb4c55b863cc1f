"""pass@k, pass^k under both estimators, at least once, mean: published values, and what must hold for all counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats.counts import NOTHING, Counts
from tracemark.stats.passing import Estimator, Figure, Measure, aggregate, at_least_once, mean_rate, pass_all, pass_at

PUBLISHED = [
    (4, 3, 2, 0.5, 0.5625),
    (4, 2, 2, 0.166667, 0.25),
    (5, 4, 3, 0.4, 0.512),
    (8, 6, 4, 0.214286, 0.316406),
    (20, 13, 5, 0.083011, 0.116029),
    (20, 19, 20, 0.0, 0.358486),
]
COUNTS = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))).map(lambda pair: Counts(*pair))
COUNTS_AND_K = COUNTS.flatmap(lambda counts: st.tuples(st.just(counts), st.integers(1, counts.attempts)))
SMALL = st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@pytest.mark.parametrize(("n", "c", "k", "combined", "power"), PUBLISHED)
def test_both_estimators_of_pass_all_give_the_published_values(n, c, k, combined, power):
    assert pass_all(Counts(n, c), k, Estimator.COMBINATIONS) == pytest.approx(combined, abs=5e-7)
    assert pass_all(Counts(n, c), k, Estimator.POWER) == pytest.approx(power, abs=5e-7)


@pytest.mark.parametrize(("n", "c", "k", "value"), [(4, 2, 2, 0.833333), (20, 13, 5, 0.998646)])
def test_pass_at_gives_the_published_values(n, c, k, value):
    assert pass_at(Counts(n, c), k) == pytest.approx(value, abs=5e-7)


@given(SMALL)
def test_combinations_are_the_share_of_draws_that_all_succeed_and_pass_at_of_those_with_a_success(drawn):
    n, c, k = drawn
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_all(Counts(n, c), k, Estimator.COMBINATIONS) == float(Fraction(sum(map(all, draws)), len(draws)))
    assert pass_at(Counts(n, c), k) == float(Fraction(sum(map(any, draws)), len(draws)))


@given(COUNTS_AND_K)
@example((Counts(3, 1), 3))
@example((Counts(20, 13), 20))
def test_power_is_the_float_nearest_to_the_rates_power(drawn):
    counts, k = drawn
    exact = Fraction(counts.successes, counts.attempts) ** k
    assert pass_all(counts, k, Estimator.POWER) == float(exact)


@given(COUNTS_AND_K)
def test_combinations_at_most_power_at_most_mean_at_most_pass_at(drawn):
    counts, k = drawn
    combined = pass_all(counts, k, Estimator.COMBINATIONS)
    power = pass_all(counts, k, Estimator.POWER)
    assert 0 <= combined <= power <= mean_rate(counts) <= pass_at(counts, k) <= at_least_once(counts) <= 1


@given(COUNTS)
def test_one_attempt_is_the_mean_and_all_attempts_at_least_once(counts):
    one = {pass_at(counts, 1), *(pass_all(counts, 1, estimator) for estimator in Estimator)}
    assert one == {mean_rate(counts)}
    assert pass_at(counts, counts.attempts) == at_least_once(counts)


@given(COUNTS)
def test_more_attempts_raise_pass_at_and_lower_pass_all(counts):
    ks = range(1, counts.attempts + 1)
    at = [pass_at(counts, k) for k in ks]
    assert at == sorted(at)
    for estimator in Estimator:
        every = [pass_all(counts, k, estimator) for k in ks]
        assert every == sorted(every, reverse=True)


def test_thousands_of_attempts_do_not_overflow():
    assert pass_all(Counts(4000, 3999), 4000, Estimator.COMBINATIONS) == 0
    assert pass_all(Counts(4000, 3999), 4000, Estimator.POWER) == pytest.approx(0.367833, abs=1e-6)
    assert pass_at(Counts(4000, 1), 2000) == 0.5


@pytest.mark.parametrize("k", [0, -1, 5])
def test_a_k_outside_the_attempts_is_refused(k):
    for asked in (lambda: pass_at(Counts(4, 2), k), lambda: pass_all(Counts(4, 2), k, Estimator.POWER)):
        with pytest.raises(UsageError, match=f"k = {k}"):
            asked()


@pytest.mark.parametrize("figure", [mean_rate, at_least_once, lambda counts: pass_at(counts, 1)])
def test_no_attempt_and_counts_that_cannot_be_are_refused(figure):
    for counts in (Counts(0, 0), Counts(2, 3)):
        with pytest.raises(UsageError):
            figure(counts)


TASKS = {"a": Counts(4, 4), "b": Counts(4, 2), "c": Counts(4, 0)}


class TestAggregate:
    @pytest.mark.parametrize(
        ("k", "what", "value"),
        [
            (2, Measure.ANY_OF_K, (1 + 5 / 6) / 3),
            (2, Measure.ALL_OF_K_COMBINATIONS, (1 + 1 / 6) / 3),
            (2, Measure.ALL_OF_K_POWER, (1 + 1 / 4) / 3),
            (None, Measure.AT_LEAST_ONCE, 2 / 3),
            (None, Measure.MEAN, 1 / 2),
        ],
    )
    def test_each_task_weighs_the_same(self, k, what, value):
        assert aggregate(TASKS, k, what) == Figure(pytest.approx(value, abs=1e-15), None)

    def test_every_name_of_pass_all_names_its_estimator(self):
        names = [measure.value for measure in Measure if measure.value.startswith("pass^k")]
        assert [name.removeprefix("pass^k, ") for name in names] == [estimator.value for estimator in Estimator]

    @pytest.mark.parametrize(
        ("k", "what"), [(2, Measure.ANY_OF_K), (None, Measure.MEAN), (None, Measure.AT_LEAST_ONCE)]
    )
    def test_it_is_withheld_where_run_counts_differ(self, k, what):
        value, reason = aggregate({**TASKS, "d": Counts(5, 5)}, k, what)
        assert value is None
        assert reason == "run counts differ between tasks: 4 at 'a', 'b', 'c'; 5 at 'd'"

    def test_it_is_withheld_where_k_exceeds_the_attempts(self):
        for what in (Measure.ANY_OF_K, Measure.ALL_OF_K_COMBINATIONS, Measure.ALL_OF_K_POWER):
            assert aggregate(TASKS, 5, what) == Figure(None, "k = 5 exceeds the 4 attempts of each task")

    def test_it_is_withheld_where_nothing_was_measured(self):
        assert aggregate({}, None, Measure.MEAN) == Figure(None, NOTHING)
        assert aggregate({"a": Counts(0, 0)}, 1, Measure.ANY_OF_K) == Figure(None, NOTHING)

    @pytest.mark.parametrize(("k", "what"), [(None, Measure.ANY_OF_K), (1, Measure.MEAN), (1, Measure.AT_LEAST_ONCE)])
    def test_a_k_too_much_or_missing_is_refused(self, k, what):
        with pytest.raises(UsageError, match=r"takes no k|needs k"):
            aggregate(TASKS, k, what)

    def test_one_task_is_its_own_mean(self):
        assert aggregate({"a": Counts(20, 13)}, 5, Measure.ANY_OF_K).value == pass_at(Counts(20, 13), 5)
