"""Eighty-two tasks that can be solved, that change what they say, and that never move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from support_desk import tasks, tools
from support_desk.environment import Environment
from support_desk.tasks import Task

from tracemark.clock import FixedClock

ALL = tasks.all_tasks()
PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"


def test_there_are_eighty_two_tasks_of_eight_kinds() -> None:
    assert Counter(task.kind for task in ALL) == tasks.COUNTS
    assert len({task.task_id for task in ALL}) == len(ALL) == 82
    assert sum(task.split == "train" for task in ALL) == 50


def test_the_tasks_are_the_same_each_time() -> None:
    assert tasks.all_tasks() == ALL


def test_four_tasks_of_each_kind_only_measure() -> None:
    measured = [task for task in ALL if task.split == "evaluation"]
    assert sorted(task.task_id for task in measured) == sorted(tasks.EVALUATION)
    assert Counter(task.kind for task in measured) == dict.fromkeys(tasks.COUNTS, 4)


def test_params_yaml_keeps_the_measuring_tasks_out_of_every_training_set() -> None:
    params = YAML(typ="safe").load(PARAMS)
    assert sorted(params["evaluation"]["tasks"]) == sorted(tasks.EVALUATION)


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.task_id)
def test_a_reference_runs_without_a_refusal_and_changes_the_desk(task: Task) -> None:
    desk = Environment(FixedClock(tasks.START))
    before = desk.state()
    results = [getattr(tools, call.tool)(desk, **call.arguments) for call in task.reference]
    assert all(result["ok"] for result in results)
    assert (desk.state() != before) is bool(task.reference)


def test_no_two_tasks_of_a_kind_share_what_they_change() -> None:
    touched = Counter(
        (task.kind, task.reference[0].arguments.get("order_id") or task.reference[0].arguments.get("booking_id"))
        for task in ALL
        if task.reference and task.kind != "late-refund"
    )
    assert set(touched.values()) == {1}


def test_some_customers_write_from_an_address_that_the_desk_no_longer_knows() -> None:
    stale = [task for task in ALL if "@old.example" in task.request]
    assert 25 <= len(stale) <= 45
    assert all("@mail.example" in task.request for task in ALL)


def test_every_second_wished_slot_is_full() -> None:
    desk = Environment(FixedClock(tasks.START))
    for number, task in enumerate((task for task in ALL if task.kind == "booking"), start=1):
        wished = task.request.split(" to ")[1][:16]
        free = tools.get_booking(desk, task.answer[0])["record"]["free_slots"]
        assert (wished in free) is (number % 2 == 0)
