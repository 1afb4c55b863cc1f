"""Counts that cannot be are refused, and tasks that ran unequally often are named."""

from __future__ import annotations

import pytest

from tracemark.errors import UsageError
from tracemark.stats.counts import (
    NOTHING,
    Counts,
    attempts_of_each,
    require_equal,
    require_measured,
    require_possible,
    withheld,
)


@pytest.mark.parametrize("counts", [Counts(-1, 0), Counts(3, -1), Counts(3, 4), Counts(0, 1), Counts(-2, -3)])
def test_counts_that_no_measurement_gives_are_refused_with_their_task(counts):
    with pytest.raises(UsageError, match="cannot be") as refused:
        require_possible(counts, "desk/refund")
    assert refused.value.where == "task 'desk/refund'"
    assert refused.value.hint


def test_a_task_without_an_attempt_has_no_rate():
    require_possible(Counts(0, 0))
    with pytest.raises(UsageError, match=NOTHING):
        require_measured(Counts(0, 0))


def test_equal_run_counts_and_no_task_give_no_reason():
    assert require_equal({"a": Counts(4, 0), "b": Counts(4, 4)}) is None
    assert require_equal({}) is None


def test_the_reason_names_the_first_few_tasks_of_each_run_count_in_order():
    counts = {f"t{number}": Counts(4, 1) for number in (5, 3, 1, 4, 2)} | {"late": Counts(3, 3)}
    reason = require_equal(counts)
    assert reason == "run counts differ between tasks: 3 at 'late'; 4 at 't1', 't2', 't3' and 2 more"
    assert require_equal(dict(reversed(counts.items()))) == reason


def test_the_reason_shows_a_tasks_control_characters():
    assert "'a\\x1b[31m'" in require_equal({"a\x1b[31m": Counts(1, 0), "b": Counts(2, 0)})


def test_figures_are_withheld_where_nothing_was_measured():
    assert withheld({}) == withheld({"a": Counts(0, 0)}) == NOTHING


def test_figures_are_withheld_where_k_exceeds_the_attempts():
    assert withheld({"a": Counts(4, 1)}, 4) is None
    assert withheld({"a": Counts(4, 1)}, 5) == "k = 5 exceeds the 4 attempts of each task"


def test_a_k_below_one_is_refused():
    with pytest.raises(UsageError, match="at least one attempt"):
        withheld({"a": Counts(4, 1)}, 0)


def test_the_attempts_of_each_task_are_those_of_any():
    assert attempts_of_each({"a": Counts(4, 1), "b": Counts(4, 2)}) == 4
    assert attempts_of_each({}) == 0
