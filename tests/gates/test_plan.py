"""What to run next: tasks that the training set lacks, never one of the evaluation set, and none that is done."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.gates.plan import Plan, Planned, TaskState, Wanted, class_of, plan, quotas


def state(task: str, attempts: int = 0, solved: int = 0, harvested: int = 0, group: str = "") -> TaskState:
    return TaskState(task, "desk", group, attempts, solved, harvested)


def planned(*states: TaskState, evaluation: frozenset[str] = frozenset(), **wanted: Any) -> Plan:
    return plan(states, Wanted(**{"total": 100, **wanted}), lambda task, domain: f"{domain}/{task}" in evaluation)


def names(found: Plan) -> list[str]:
    return [one.task for one in found.tasks]


def test_a_task_that_was_never_run_comes_first() -> None:
    found = planned(state("a", 3), state("b", 1), state("c"))
    assert found.tasks == (
        Planned("c", "desk", "", 2, "never run"),
        Planned("b", "desk", "", 2, "not solved yet"),
        Planned("a", "desk", "", 2, "not solved yet"),
    )
    assert found.tasks[0].as_json() == {"task": "c", "domain": "desk", "attempts": 2, "reason": "never run"}


def test_a_task_that_is_solved_and_harvested_retires() -> None:
    found = planned(state("a", 2, 1, 1), state("b", 2, 1, 1), per_task=3)
    assert (names(found), found.retired) == ([], ("desk/a", "desk/b"))


def test_what_was_harvested_under_an_earlier_harness_is_not_solved_under_this_one() -> None:
    assert names(planned(state("a", 0, 0, 1))) == ["a"]


def test_a_task_of_which_no_export_takes_the_successes_is_not_said_to_be_unsolved() -> None:
    found = planned(state("a", 2)._replace(untaken=2), state("b", 2, 1)._replace(untaken=1), per_task=2)
    reasons = {one.task: one.reason for one in found.tasks}
    assert reasons == {"a": "no success that an export takes", "b": "more successes wanted"}
    assert planned(state("a", 8)._replace(untaken=8)).exhausted == ("desk/a",)


def test_a_solved_task_waits_for_an_export() -> None:
    found = planned(state("a", 2, 1))
    assert (names(found), found.waiting, found.rows, found.lacking) == ([], ("desk/a",), 1, 99)


def test_a_solved_task_is_run_again_while_more_of_it_may_be_taken() -> None:
    found = planned(state("a", 2, 1), per_task=2)
    assert found.tasks[0].reason == "more successes wanted"
    assert names(planned(state("a", 2, 1), per_task=None)) == ["a"]


def test_an_evaluation_task_is_never_planned_whatever_it_lacks() -> None:
    found = planned(state("a"), state("b"), evaluation=frozenset({"desk/a"}))
    assert (names(found), found.evaluation) == (["b"], 1)


def test_tasks_of_one_name_in_two_domains_are_two_tasks() -> None:
    found = planned(state("a"), state("a")._replace(domain="shop"), evaluation=frozenset({"desk/a"}))
    assert [(one.domain, one.task) for one in found.tasks] == [("shop", "a")]
    both = planned(state("a"), state("a")._replace(domain="shop"))
    assert [(one.domain, one.task) for one in both.tasks] == [("desk", "a"), ("shop", "a")]


def test_a_task_that_nobody_names_is_not_planned() -> None:
    found = planned(state(""))
    assert (names(found), found.unnamed) == ([], 1)


def test_a_success_of_unknown_task_is_a_row_all_the_same() -> None:
    found = planned(state("", 1, 1), state("", 1, 1)._replace(domain=None), state("a"), total=3)
    assert (found.unnamed, found.rows, found.lacking, names(found)) == (2, 2, 1, ["a"])


def test_a_task_is_given_up_after_its_attempts_and_never_gets_more() -> None:
    found = planned(state("a", 8), state("b", 7), most_attempts=8)
    assert (found.tasks, found.exhausted) == ((Planned("b", "desk", "", 1, "not solved yet"),), ("desk/a",))
    assert names(planned(state("a", 800), most_attempts=None)) == ["a"]


def test_a_plan_ends_when_what_it_lets_expect_fills_the_set() -> None:
    # never run: 2 attempts at a rate of one half are one row each
    found = planned(*(state(f"t{at}") for at in range(9)), total=3, per_task=2)
    assert (names(found), found.expected) == (["t0", "t1", "t2"], 3.0)
    assert found.not_needed == tuple(f"desk/t{at}" for at in range(3, 9))
    assert names(planned(state("a", 4, 1), state("b"), total=1)) == []


def test_without_a_total_every_task_that_may_give_a_row_is_run() -> None:
    found = planned(*(state(f"t{at}") for at in range(9)), total=None)
    assert (len(found.tasks), found.lacking) == (9, None)


def test_a_plan_has_at_most_so_many_runs_and_cuts_the_last_task_for_it() -> None:
    found = planned(*(state(f"t{at}") for at in range(9)), runs=3)
    assert [(one.task, one.attempts) for one in found.tasks] == [("t0", 2), ("t1", 1)]
    assert (found.runs, found.unfilled) == (3, 99)


def test_what_nothing_is_expected_to_fill_is_told() -> None:
    # never run: two attempts at a rate of one half are one row
    assert planned(state("a"), state("b"), total=5, per_task=2).unfilled == 3
    assert planned(state("a"), state("b"), total=2, per_task=2).unfilled == 0
    assert planned(state("a"), total=None).unfilled == 0
    # six times a third is a little less than two
    assert planned(*(state(f"t{at}", 2) for at in range(6)), total=2, per_task=2).unfilled == 0


@pytest.mark.parametrize(("attempts", "per_task"), [(2, 1), (2, 2), (4, 1), (4, 3), (5, 4), (3, None)])
@pytest.mark.parametrize(("tried", "solved"), [(0, 0), (3, 0), (9, 4)])
def test_of_a_task_no_more_rows_are_expected_than_it_may_give(
    attempts: int, per_task: int | None, tried: int, solved: int
) -> None:
    given_rows = solved if per_task is None else min(solved, per_task - 1)
    found = planned(state("a", tried, given_rows), attempts=attempts, per_task=per_task, most_attempts=None)
    rate, room = (given_rows + 0.5) / (tried + 1), (per_task or 99) - given_rows
    # every run of attempts by itself, with its chance
    outcomes = list(itertools.product((0, 1), repeat=attempts))
    mean = sum(min(room, sum(one)) * math.prod(rate if won else 1 - rate for won in one) for one in outcomes)
    assert found.expected == pytest.approx(mean)


def test_two_attempts_at_a_half_give_three_quarters_of_a_row_where_one_is_taken() -> None:
    assert planned(*(state(f"t{at}") for at in range(30))).expected == 22.5


@pytest.mark.parametrize(
    ("shares", "total", "rows"),
    [
        ({}, 10, {}),
        ({"a": 0.4, "b": 0.6}, 10, {"a": 4, "b": 6}),
        ({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, 10, {"a": 4, "b": 3, "c": 3}),
        ({"a": 0.25, "b": 0.35}, 10, {"a": 3, "b": 3}),
        ({"a": 0.3}, 1, {"a": 0}),
        ({"a": 0.1, "b": 0.2, "c": 0.7}, 100, {"a": 10, "b": 20, "c": 70}),
        ({"a": 0.0, "b": 1.0}, 7, {"a": 0, "b": 7}),
    ],
)
def test_shares_become_rows_that_add_up(shares: dict[str, float], total: int, rows: dict[str, int]) -> None:
    assert quotas(shares, total) == rows


@pytest.mark.parametrize(
    ("group", "named", "counted"),
    [
        ("desk/refund", ["desk", "desk/refund"], "desk/refund"),
        ("desk/refund", ["desk"], "desk"),
        ("desk/refund/late", ["desk", "shop"], "desk"),
        ("desktop", ["desk"], "desktop"),
        ("", ["desk"], ""),
    ],
)
def test_a_task_counts_to_the_nearest_class_that_has_a_quota(group: str, named: list[str], counted: str) -> None:
    assert class_of(group, named) == counted


def test_the_class_that_lacks_most_comes_first_and_none_gets_more_than_its_quota() -> None:
    states = [state(f"{group}{at}", group=group) for group in "ab" for at in range(4)] + [state("c0", group="c")]
    found = planned(*states, quotas={"a": 1, "b": 3}, total=None, per_task=2)
    assert names(found) == ["b0", "b1", "a0", "b2"]
    assert found.short == {}
    assert "desk/c0" in found.not_needed


def test_a_quota_counts_the_rows_that_are_there() -> None:
    states = [state("a0", 2, 1, 1, group="a"), state("a1", 2, 1, group="a"), state("a2", group="a")]
    assert names(planned(*states, quotas={"a": 2})) == []
    assert names(planned(*states, quotas={"a": 3})) == ["a2"]


def test_classes_without_a_quota_share_what_the_total_leaves() -> None:
    states = [state("a0", group="a"), state("b0", group="b"), state("b1", group="b")]
    assert names(planned(*states, quotas={"a": 1}, total=2, per_task=2)) == ["a0", "b0"]


def test_a_quota_that_no_task_is_left_for_is_told() -> None:
    found = planned(state("a0", group="a"), quotas={"a": 4, "z": 2}, per_task=2)
    assert found.short == {"a": 3, "z": 2}
    # with what the classes without a quota lack
    assert (found.rest, found.unfilled) == (94, 99)


def test_a_quota_is_run_although_other_classes_fill_the_total() -> None:
    full = [state(f"b{at}", 1, 1, group="b") for at in range(10)]
    found = planned(*full, *(state(f"a{at}", group="a") for at in range(10)), quotas={"a": 5}, total=10, per_task=2)
    assert names(found) == ["a0", "a1", "a2", "a3", "a4"]
    # all ten are rows, and five of them take the place of nothing that is wanted
    assert (found.rows, found.lacking, found.unfilled, found.short) == (10, 5, 0, {})


def test_a_class_above_its_quota_fills_no_other() -> None:
    full = [state(f"b{at}", 1, 1, group="b") for at in range(10)]
    found = planned(*full, state("a0", group="a"), state("c0"), quotas={"a": 1, "b": 6}, total=10, per_task=2)
    assert names(found) == ["a0", "c0"]
    assert (found.lacking, found.unfilled, found.short, found.rest) == (4, 2, {}, 2)


def test_a_task_of_which_more_is_expected_than_its_class_lacks_fills_no_other() -> None:
    found = planned(state("a0", 1, 1, group="a"), state("c0"), quotas={"a": 2}, total=4, per_task=9, attempts=4)
    # four attempts at three quarters are three rows, and one is lacking; at one half they are two
    assert [(one.task, one.attempts) for one in found.tasks] == [("a0", 4), ("c0", 4)]
    assert (found.expected, found.unfilled) == (5.0, 0)
    less = planned(state("a0", 1, 1, group="a"), quotas={"a": 2}, total=4, per_task=9, attempts=4)
    assert (less.expected, less.unfilled, less.short, less.rest) == (3.0, 2, {}, 2)


def test_without_states_there_is_nothing_to_run() -> None:
    found = planned()
    assert (found.tasks, found.lacking) == ((), 100)


STATES = st.lists(
    st.builds(
        TaskState,
        task=st.sampled_from(["", *"abcdef"]),
        domain=st.sampled_from([None, "desk", "shop"]),
        group=st.sampled_from(["", "x", "y"]),
        attempts=st.integers(0, 9),
        solved=st.integers(0, 3),
        harvested=st.integers(0, 2),
    ),
    unique_by=lambda one: (one.task, one.domain),
)
WANTED = st.builds(
    Wanted,
    total=st.none() | st.integers(0, 12),
    per_task=st.none() | st.integers(1, 3),
    quotas=st.dictionaries(st.sampled_from(["x", "y", "z"]), st.integers(0, 6)),
    attempts=st.integers(1, 4),
    most_attempts=st.none() | st.integers(1, 9),
    runs=st.none() | st.integers(0, 5),
)


@given(STATES, WANTED, st.integers(0, 99))
def test_every_task_is_somewhere_and_the_order_of_states_means_nothing(
    states: list[TaskState], wanted: Wanted, seed: int
) -> None:
    def held_out(task: str, domain: str | None) -> bool:
        return task == "a"

    found = plan(states, wanted, held_out)
    lists = (found.tasks, found.retired, found.waiting, found.exhausted, found.not_needed)
    assert sum(map(len, lists)) + found.evaluation + found.unnamed == len(states)
    assert all(one.task not in {"", "a"} and one.attempts >= 1 for one in found.tasks)
    assert found.runs == sum(one.attempts for one in found.tasks)
    assert wanted.runs is None or found.runs <= wanted.runs
    before = {(one.task, one.domain): one for one in states}
    for one in found.tasks:
        known = before[one.task, one.domain]
        assert not (known.solved and known.harvested)
        assert known.solved or wanted.most_attempts is None or known.attempts + one.attempts <= wanted.most_attempts
    if wanted.runs is None:
        # what is said to be lacking is so: no class of it has a task left that would be run
        groups = {(one.task, one.domain): one.group for one in states}
        left = {groups[name.rpartition("/")[2], name.rpartition("/")[0] or None] for name in found.not_needed}
        assert left.isdisjoint(found.short)
        assert not found.rest or left <= wanted.quotas.keys()
    mixed = list(states)
    random.Random(seed).shuffle(mixed)
    assert plan(mixed, wanted, held_out) == found
