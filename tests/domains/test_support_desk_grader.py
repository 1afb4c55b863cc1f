"""The grader tells a right final state from a wrong one, also from one that is nearly right."""

from __future__ import annotations

from typing import Any

import pytest
from support_desk import grader, tasks, tools
from support_desk.environment import Environment
from support_desk.grader import Verdict
from support_desk.tasks import Task

from tracemark.clock import FixedClock

BY_ID = {task.task_id: task for task in tasks.all_tasks()}


def judge(task: Task, calls: list[tuple[str, dict[str, Any]]], answer: str | None = None) -> Verdict:
    """Execute calls on a fresh desk and grade what they leave; the answer is a right one unless given."""
    desk = Environment(FixedClock(tasks.START))
    for tool, arguments in calls:
        getattr(tools, tool)(desk, **arguments)
    return grader.grade(task, desk, " ".join(task.answer) if answer is None else answer)


def reference(task: Task) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool, call.arguments) for call in task.reference]


@pytest.mark.parametrize("task", BY_ID.values(), ids=lambda task: task.task_id)
def test_the_reference_with_a_right_answer_succeeds(task: Task) -> None:
    assert judge(task, reference(task)) == Verdict(True, True, ())


@pytest.mark.parametrize("task", [task for task in BY_ID.values() if task.reference], ids=lambda task: task.task_id)
def test_doing_nothing_fails_where_something_was_asked(task: Task) -> None:
    assert not judge(task, []).state


def test_another_wording_of_a_reason_is_as_good() -> None:
    task = BY_ID["refund-01"]
    ((tool, arguments),) = reference(task)
    assert judge(task, [(tool, arguments | {"reason": "It broke."})]).success


def test_a_card_over_one_cent_too_much_is_wrong() -> None:
    task = BY_ID["late-refund-01"]
    ((tool, arguments),) = reference(task)
    verdict = judge(task, [(tool, arguments | {"amount_cents": arguments["amount_cents"] + 1})])
    assert verdict == Verdict(False, True, ("gift_cards",))


def test_the_right_card_for_another_customer_is_wrong() -> None:
    task = BY_ID["late-refund-01"]
    ((tool, arguments),) = reference(task)
    assert not judge(task, [(tool, arguments | {"customer_id": "customer-001"})]).state


def test_a_second_card_is_wrong_although_the_first_was_right() -> None:
    task = BY_ID["late-refund-01"]
    assert judge(task, reference(task) * 2).differences == ("gift_cards",)


def test_an_address_without_its_unit_is_wrong() -> None:
    task = BY_ID["address-01"]
    ((tool, arguments),) = reference(task)
    assert judge(task, [(tool, arguments | {"address": task.answer[1].partition(",")[0]})]).differences == ("orders",)


def test_a_change_beside_the_right_one_is_wrong() -> None:
    task, other = BY_ID["cancel-01"], BY_ID["cancel-02"]
    assert not judge(task, reference(task) + reference(other)).state


def test_cancelling_in_place_of_a_refusal_is_told_apart_by_the_answer() -> None:
    task = BY_ID["late-cancel-01"]
    assert judge(task, [], f"{task.answer[0]} is cancelled.") == Verdict(True, False, ())


def test_a_run_without_an_answer_fails() -> None:
    task = BY_ID["lookup-01"]
    assert not judge(task, [], "").success


def test_a_reference_that_is_refused_is_an_error_of_the_task() -> None:
    task = BY_ID["cancel-01"]
    broken = Task(task.task_id, task.kind, task.request, (*task.reference, *task.reference), task.answer)
    with pytest.raises(ValueError, match="cancel-01 is refused by cancel_order: already_cancelled"):
        judge(broken, [])
