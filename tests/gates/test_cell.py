"""How attempts count: scored, waiting for a re-run, re-run, without a verdict; and which evaluation is fresh."""

from __future__ import annotations

import random

from tests.gates.evaluations import BASE, OLD, TUNED, attempts, cell, changed, of
from tracemark.gates.cell import (
    Attempt,
    Cell,
    Model,
    Pair,
    TaskTally,
    differing,
    draws,
    freshest,
)


def tally(*made: Attempt, wanted: int = 3) -> TaskTally:
    return of(made).tally(wanted)["desk/t"]


THREE = attempts({"desk/t": 2}, 3)


def test_successes_and_failures_are_scored() -> None:
    assert tally(*THREE) == TaskTally(3, 2, (), 0, ())


def test_an_error_waits_until_the_same_attempt_has_a_score() -> None:
    broken = THREE[2]._replace(status="error")
    assert tally(THREE[0], THREE[1], broken) == TaskTally(2, 2, (broken,), 0, ())
    assert tally(*THREE, broken._replace(trace="f" * 64)) == TaskTally(3, 2, (), 1, ())


def test_an_error_that_was_made_again_stands_for_no_other_attempt() -> None:
    again = THREE[2]._replace(status="error", trace="f" * 64)
    assert tally(THREE[1], THREE[2], again) == TaskTally(2, 1, (), 1, ())


def test_an_error_that_was_made_again_under_another_number_waits_no_more() -> None:
    broken = THREE[2]._replace(status="error")
    again = THREE[2]._replace(attempt=3, trace="f" * 64)
    assert tally(THREE[0], THREE[1], broken, again).open == ()


def test_an_attempt_that_broke_twice_is_one_to_make_again() -> None:
    broken = THREE[2]._replace(status="error")
    found = tally(THREE[0], broken, broken._replace(trace="f" * 64))
    assert (len(found.open), found.rerun) == (1, 1)


def test_errors_without_a_number_are_each_one_to_make_again() -> None:
    broken = [THREE[at]._replace(status="error", attempt=None) for at in (1, 2)]
    assert tally(THREE[0], *broken).open == tuple(sorted(broken, key=lambda one: one.trace))


def test_an_attempt_without_a_verdict_has_no_score() -> None:
    waits = THREE[2]._replace(status="unknown")
    assert tally(THREE[0], THREE[1], waits) == TaskTally(2, 2, (), 0, (waits,))


def test_an_error_that_was_made_again_is_not_open_while_the_verdict_is_to_come() -> None:
    broken, waits = THREE[2]._replace(status="error"), THREE[2]._replace(status="unknown", trace="f" * 64)
    assert tally(THREE[0], THREE[1], broken, waits) == TaskTally(2, 2, (), 1, (waits,))
    # under another number as well, where the task has all that it must have
    other = waits._replace(attempt=3)
    assert tally(THREE[0], THREE[1], broken, other) == TaskTally(2, 2, (), 1, (other,))
    assert tally(THREE[0], THREE[1], broken, other, wanted=4).open == (broken,)


def test_the_order_of_attempts_means_nothing() -> None:
    made = attempts({"desk/t": 2, "shop/t": 1}, 3)
    mixed = list(made)
    random.Random(4).shuffle(mixed)
    assert of(made) == of(mixed)


def test_tasks_of_one_name_in_two_domains_are_two_tasks() -> None:
    assert list(cell({"shop/t": 1, "desk/t": 2}, 3).by_task) == ["desk/t", "shop/t"]


def test_a_model_that_states_what_the_other_leaves_open_differs_in_it() -> None:
    assert differing(BASE, TUNED._replace(server=None)) == ("revision", "server")
    assert differing(BASE, BASE) == ()


def test_the_model_of_a_cell_is_the_one_that_attempts_name() -> None:
    made = changed(attempts({"desk/t": 2}, 3), "desk/t", 1, model=TUNED)
    assert Cell.of(Pair(OLD, Model("desk-agent")), made).model == BASE


def test_fresh_attempts_alone_count_as_soon_as_there_is_one() -> None:
    first = attempts({"desk/t": 3, "desk/u": 3}, 3)
    second = [one._replace(trace=one.trace[::-1]) for one in attempts({"desk/t": 1, "desk/u": 1}, 3)]
    used = {one.trace for one in first}
    assert freshest([*first, *second], used) == tuple(second)
    # never filled up from the other one, however little of it was made
    for status in ("success", "failure", "error", "unknown"):
        begun = second[0]._replace(status=status)
        assert freshest([*first, begun], used) == (begun,)
    assert freshest(first, used) == tuple(first)
    assert freshest(first, ()) == tuple(first)
    assert freshest((), used) == ()


def test_a_pair_was_drawn_as_often_as_the_task_with_the_most_attempts_says() -> None:
    assert [draws({"a": number, "b": 1}, 4) for number in (0, 1, 4, 5, 8, 9)] == [1, 1, 1, 2, 2, 3]
    assert draws({}, 4) == 1


def test_a_retracted_attempt_with_a_score_is_replaced_by_one_of_its_number_or_a_whole_task() -> None:
    made = attempts({"desk/t": 2}, 3)
    gone = [one._replace(trace="f" * 64) for one in made[2:]]
    assert of(made).replaced(3) == ()

    def replaced(standing: list[Attempt], *gone: Attempt, wanted: int = 3) -> int:
        return len(Cell.of(Pair(OLD, BASE), standing, retracted=gone).replaced(wanted))

    assert replaced(made[:2], *gone) == 0
    assert replaced(made, *gone) == replaced(made, *gone, wanted=4) == 1
    # under another number, once the task has what it must have
    other = [*made[:2], made[2]._replace(attempt=7)]
    assert [replaced(other, *gone, wanted=wanted) for wanted in (3, 4)] == [1, 0]
    # what broke had no score, and what broke again stands in no place
    assert replaced(made, gone[0]._replace(status="error")) == 0
    assert replaced([*made[:2], made[2]._replace(status="error")], *gone) == 0
