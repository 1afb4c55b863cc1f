"""Cost per success and per reliable task: failed attempts count, and what is unknown or undefined is withheld."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats.cost import cost_per_reliable_task, cost_per_success, total_cost
from tracemark.stats.counts import NOTHING, Counts
from tracemark.stats.passing import Figure

TASKS = {"a": Counts(2, 2), "b": Counts(2, 1)}


def per_success(costs):
    return cost_per_success(costs, 1)


def per_reliable_task(costs):
    return cost_per_reliable_task(costs, {"a": Counts(len(costs), len(costs))})


def test_failed_attempts_are_paid_for():
    assert total_cost([0.5, 0.25, 0.25, 1.0]) == Figure(2.0, None)
    assert cost_per_success([0.5, 0.25, 0.25, 1.0], 2) == Figure(1.0, None)
    assert cost_per_reliable_task([0.5, 0.25, 0.25, 1.0], TASKS) == Figure(2.0, None)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.data())
def test_no_order_of_attempts_changes_the_cost(costs, data):
    successes = data.draw(st.integers(1, len(costs)))
    shuffled = data.draw(st.permutations(costs))
    assert cost_per_success(shuffled, successes) == cost_per_success(costs, successes)


def test_where_all_tasks_are_reliable_it_is_the_mean_cost_of_a_task():
    assert cost_per_reliable_task([1.0] * 6, {"a": Counts(3, 3), "b": Counts(3, 3)}).value == 3


def test_zero_successes_are_undefined_and_neither_zero_nor_infinite():
    assert cost_per_success([1.0, 2.0], 0) == Figure(None, "no attempt succeeded: the cost per success is undefined")
    value, reason = cost_per_reliable_task([1.0, 2.0], {"a": Counts(2, 1)})
    assert value is None
    assert reason == "no task succeeded in all attempts: the cost per reliable task is undefined"


def test_free_attempts_cost_nothing():
    assert cost_per_success([0.0, 0.0], 1) == Figure(0.0, None)


@pytest.mark.parametrize("figure", [total_cost, per_success, per_reliable_task])
class TestEither:
    def test_one_unknown_cost_withholds_it(self, figure):
        assert figure([1.0, None, 2.0]) == Figure(None, "the cost of 1 of 3 attempts is unknown")

    @pytest.mark.parametrize("cost", [-0.01, float("nan"), float("inf")])
    def test_a_cost_that_is_none_withholds_it(self, figure, cost):
        assert figure([1.0, cost]) == Figure(None, "the cost of 1 of 2 attempts is no number of 0 or more")

    def test_costs_beyond_a_float_withhold_it(self, figure):
        assert figure([1.7e308, 1.7e308]).withheld == "the costs add up to more than a number can hold"


def test_it_is_withheld_where_nothing_was_measured():
    assert total_cost([]) == Figure(None, NOTHING)
    assert cost_per_success([], 0) == Figure(None, NOTHING)
    assert cost_per_reliable_task([], {}) == Figure(None, NOTHING)


def test_reliable_tasks_are_not_counted_where_run_counts_differ():
    value, reason = cost_per_reliable_task([1.0] * 5, {"a": Counts(2, 2), "b": Counts(3, 3)})
    assert value is None
    assert reason.startswith("run counts differ between tasks")


def test_more_successes_than_attempts_and_other_numbers_of_costs_are_refused():
    for successes in (3, -1):
        with pytest.raises(UsageError, match=f"{successes} successes of 2 attempts"):
            cost_per_success([1.0, 2.0], successes)
    with pytest.raises(UsageError, match="3 costs of 4 attempts"):
        cost_per_reliable_task([1.0] * 3, TASKS)
