"""The agent reads both forms of an observation, and from the plain one no status and no code."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support_desk import reading, seed, tasks, tools
from support_desk.environment import Environment

from tracemark.clock import FixedClock

HARNESSES = Path(__file__).resolve().parents[2] / "harness_versions"
Observe = Callable[[dict[str, Any]], str]


def handler(name: str) -> Observe:
    observe: Observe = runpy.run_path(str(HARNESSES / name / "handlers" / "observe.py"))["observe"]
    return observe


PLAIN, LABELLED, ADVISED = handler("desk-plain"), handler("desk-labelled"), handler("desk-advised")


@pytest.fixture
def desk() -> Environment:
    return Environment(FixedClock(tasks.START))


def test_a_record_reads_alike_in_both_forms(desk: Environment) -> None:
    raw = tools.get_order(desk, "order-0001")
    plain, labelled = reading.read(PLAIN(raw)), reading.read(LABELLED(raw))
    for name in ("order_id", "state", "total_cents", "returnable_until"):
        assert plain.fields[name] == labelled.fields[name] == str(raw["record"][name])


def test_free_slots_read_alike_in_both_forms(desk: Environment) -> None:
    raw = tools.get_booking(desk, "booking-001")
    plain, labelled = reading.read(PLAIN(raw)), reading.read(LABELLED(raw))
    assert plain.fields["free_slots"] == labelled.fields["free_slots"] == ", ".join(raw["record"]["free_slots"])


def test_only_the_labelled_form_shows_status_code_and_details(desk: Environment) -> None:
    raw = tools.find_customer(desk, seed.former_email(17))
    labelled, plain = reading.read(LABELLED(raw)), reading.read(PLAIN(raw))
    assert (labelled.status, labelled.code) == ("error", "unknown_email")
    assert labelled.fields == {"email": seed.former_email(17)}
    assert (plain.status, plain.code, plain.fields) == (None, None, {})


def test_a_labelled_observation_opens_with_the_declared_prefix(desk: Environment) -> None:
    results = [tools.get_order(desk, order) for order in ("order-0001", "order-9999")]
    assert [LABELLED(raw)[:15] for raw in results] == ['{"status": "ok"', '{"status": "err']


def test_the_latest_order_is_found_by_day_and_not_by_place(desk: Environment) -> None:
    task = next(task for task in tasks.all_tasks() if task.task_id == "lookup-01")
    customer = tools.get_order(desk, task.answer[0])["record"]["customer_id"]
    for observe in (PLAIN, LABELLED):
        seen = reading.read(observe(tools.list_orders(desk, customer)))
        assert reading.latest_order(seen) == task.answer[0]
        assert reading.last_listed_order(seen) != task.answer[0]


def test_only_the_advising_form_says_what_to_do_next_and_only_of_a_refusal(desk: Environment) -> None:
    refused, found = tools.find_customer(desk, seed.former_email(17)), tools.find_customer(desk, seed.email(17))
    assert reading.read(ADVISED(refused)).advice == "find_customer with the other address that the customer names"
    assert [reading.read(observe(refused)).advice for observe in (PLAIN, LABELLED)] == [None, None]
    assert reading.read(ADVISED(found)) == reading.read(LABELLED(found))


def test_a_refusal_of_which_nothing_special_is_known_has_advice_too(desk: Environment) -> None:
    refused = tools.get_order(desk, "order-9999")
    assert reading.read(ADVISED(refused)).advice == "change nothing, and tell the customer why"


def test_in_the_advising_form_the_latest_order_stands_last(desk: Environment) -> None:
    for task in (task for task in tasks.all_tasks() if task.kind == "lookup"):
        customer = tools.get_order(desk, task.answer[0])["record"]["customer_id"]
        assert reading.last_listed_order(reading.read(ADVISED(tools.list_orders(desk, customer)))) == task.answer[0]


def test_a_list_without_orders_has_no_latest_one() -> None:
    assert reading.latest_order(reading.read("nothing here")) is None
    assert reading.last_listed_order(reading.read("nothing here")) is None
