"""The desk's tools execute SQL, and each of their refusals is real, named, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support_desk import seed, tools
from support_desk.environment import Environment

from tracemark.clock import FixedClock

HARNESSES = Path(__file__).resolve().parents[2] / "harness_versions"
READS = {"find_customer", "list_orders", "get_order", "get_booking"}


@pytest.fixture
def desk() -> Iterator[Environment]:
    environment = Environment(FixedClock(f"{seed.TODAY}T09:00:00Z"))
    yield environment
    environment.close()


def first(desk: Environment, sql: str) -> Any:
    return desk.connection.execute(sql).fetchone()


def order_in(desk: Environment, state: str) -> tuple[str, str]:
    customer, order = first(desk, f"select customer_id, order_id from orders where state = '{state}' order by order_id")
    return customer, order


def test_a_desk_starts_with_the_rows_of_the_seed(desk: Environment) -> None:
    counts = {table: len(rows) for table, rows in desk.state().items()}
    assert (counts["customers"], counts["orders"], counts["gift_cards"], counts["bookings"]) == (40, 120, 80, 32)


def test_every_order_total_is_the_sum_of_its_lines(desk: Environment) -> None:
    sql = (
        "select count(*) from orders join (select order_id, sum(quantity * unit_cents) as lines from order_items"
        " group by order_id) using (order_id) where lines <> total_cents"
    )
    assert first(desk, sql) == (0,)


def test_no_slot_starts_with_more_bookings_than_places(desk: Environment) -> None:
    sql = "select slot from slots join bookings using (slot) group by slot, places having count(*) > places"
    assert first(desk, sql) is None


def test_two_desks_share_nothing(desk: Environment) -> None:
    other = Environment(FixedClock())
    customer, order = order_in(desk, "packed")
    assert tools.cancel_order(desk, customer, order, "test")["ok"]
    assert tools.get_order(other, order)["record"]["state"] == "packed"


def test_a_refund_closes_the_order_on_the_day_of_the_clock(desk: Environment) -> None:
    sql = f"select customer_id, order_id from orders where returnable_until >= '{seed.TODAY}'"
    customer, order = first(desk, sql)
    assert tools.refund_order(desk, customer, order, "returned")["ok"]
    record = tools.get_order(desk, order)["record"]
    assert (record["state"], record["closed_on"], record["closed_reason"]) == ("refunded", seed.TODAY, "returned")


def test_the_last_day_of_the_return_period_still_counts_and_the_next_does_not() -> None:
    sql = "select customer_id, order_id, returnable_until from orders where state = 'delivered' order by order_id"
    for later, refunded in ((0, True), (1, False)):
        probe = Environment(FixedClock())
        customer, order, until = first(probe, sql)
        clock = FixedClock(f"{until}T23:59:59Z", step_seconds=1)
        for _ in range(later):
            clock.now()
        desk = Environment(clock)
        assert tools.refund_order(desk, customer, order, "returned")["ok"] is refunded


def test_an_address_change_reaches_the_record(desk: Environment) -> None:
    customer, order = order_in(desk, "placed")
    assert tools.change_address(desk, customer, order, " 7 Quay Way, Unit 1 ")["ok"]
    assert tools.get_order(desk, order)["record"]["address"] == "7 Quay Way, Unit 1"


def test_each_issued_card_is_a_new_one(desk: Environment) -> None:
    codes = [tools.issue_gift_card(desk, "customer-001", 500, "test")["record"]["code"] for _ in range(2)]
    assert codes == ["gift-0081", "gift-0082"]
    cards = tools.find_customer(desk, seed.email(1))["record"]["gift_cards"]
    assert [card["balance_cents"] for card in cards if card["code"] in codes] == [500, 500]


def test_a_card_pays_no_more_than_it_holds_and_no_more_than_is_due(desk: Environment) -> None:
    sql = "select customer_id, order_id, due_cents from orders where due_cents > 1000 order by order_id"
    customer, order, due = first(desk, sql)
    small = tools.issue_gift_card(desk, customer, 1000, "test")["record"]["code"]
    large = tools.issue_gift_card(desk, customer, 15000, "test")["record"]["code"]
    assert tools.redeem_gift_card(desk, customer, small, order)["record"]["due_cents"] == due - 1000
    assert tools.redeem_gift_card(desk, customer, large, order)["record"]["due_cents"] == 0
    balance = first(desk, f"select balance_cents from gift_cards where code = '{large}'")
    assert balance == (15000 - (due - 1000),)


def test_a_booking_that_moves_frees_its_place(desk: Environment) -> None:
    booking, customer, slot = first(desk, "select booking_id, customer_id, slot from bookings order by booking_id")
    free = tools.get_booking(desk, booking)["record"]["free_slots"]
    assert slot not in free
    assert tools.reschedule_booking(desk, customer, booking, free[0])["ok"]
    assert slot in tools.get_booking(desk, booking)["record"]["free_slots"]


REFUSALS = [
    ("find_customer", {"email": "c017@old.example"}, "unknown_email"),
    ("list_orders", {"customer_id": "customer-999"}, "unknown_customer"),
    ("get_order", {"order_id": "order-9999"}, "unknown_order"),
    ("get_booking", {"booking_id": "booking-999"}, "unknown_booking"),
    ("refund_order", {"customer_id": "{other}", "order_id": "{delivered}", "reason": "r"}, "other_customer"),
    ("refund_order", {"customer_id": "{owner}", "order_id": "{packed}", "reason": "r"}, "not_delivered"),
    ("refund_order", {"customer_id": "{owner}", "order_id": "{late}", "reason": "r"}, "return_period_over"),
    ("cancel_order", {"customer_id": "{owner}", "order_id": "{shipped}", "reason": "r"}, "already_shipped"),
    ("cancel_order", {"customer_id": "{owner}", "order_id": "order-9999", "reason": "r"}, "unknown_order"),
    ("change_address", {"customer_id": "{owner}", "order_id": "{shipped}", "address": "a"}, "already_shipped"),
    ("change_address", {"customer_id": "{owner}", "order_id": "{packed}", "address": " "}, "empty_address"),
    ("issue_gift_card", {"customer_id": "customer-999", "amount_cents": 5, "reason": "r"}, "unknown_customer"),
    ("issue_gift_card", {"customer_id": "customer-001", "amount_cents": 0, "reason": "r"}, "amount_not_allowed"),
    ("issue_gift_card", {"customer_id": "customer-001", "amount_cents": 15001, "reason": "r"}, "amount_not_allowed"),
    ("issue_gift_card", {"customer_id": "customer-001", "amount_cents": "5", "reason": "r"}, "amount_not_allowed"),
    ("redeem_gift_card", {"customer_id": "{owner}", "code": "gift-9999", "order_id": "{unpaid}"}, "unknown_card"),
    ("redeem_gift_card", {"customer_id": "{owner}", "code": "{empty}", "order_id": "{unpaid}"}, "card_empty"),
    ("redeem_gift_card", {"customer_id": "{owner}", "code": "{card}", "order_id": "{packed}"}, "nothing_due"),
    ("reschedule_booking", {"customer_id": "customer-001", "booking_id": "booking-001", "slot": "{full}"}, "slot_full"),
    ("reschedule_booking", {"customer_id": "customer-001", "booking_id": "booking-001", "slot": "?"}, "unknown_slot"),
    (
        "reschedule_booking",
        {"customer_id": "customer-002", "booking_id": "booking-001", "slot": "?"},
        "unknown_booking",
    ),
]

_ORDER_BY_SLOT = {
    "packed": "state = 'packed'",
    "shipped": "state = 'shipped'",
    "delivered": "state = 'delivered'",
    "late": f"state = 'delivered' and returnable_until < '{seed.TODAY}'",
    "unpaid": "due_cents > 0",
}


def filled(desk: Environment, arguments: dict[str, Any]) -> dict[str, Any]:
    """Put real rows in the places in braces."""
    slots = {"full": seed.slot_names()[0]}
    for slot, where in _ORDER_BY_SLOT.items():
        if f"{{{slot}}}" in arguments.values():
            order, owner = first(desk, f"select order_id, customer_id from orders where {where} order by order_id")
            other = first(desk, f"select customer_id from customers where customer_id <> '{owner}'")[0]
            slots |= {slot: order, "owner": owner, "other": other}
    slots.setdefault("owner", "customer-001")
    sql = f"select code from gift_cards where customer_id = '{slots['owner']}' order by balance_cents"
    slots["card"] = first(desk, f"{sql} desc")[0]
    desk.connection.execute("update gift_cards set balance_cents = 0 where code = ?", first(desk, sql))
    slots["empty"] = first(desk, sql)[0]
    return {name: value.format(**slots) if isinstance(value, str) else value for name, value in arguments.items()}


@pytest.mark.parametrize(("tool", "arguments", "code"), REFUSALS, ids=[f"{each[0]}-{each[2]}" for each in REFUSALS])
def test_a_refusal_names_its_code_and_changes_nothing(
    desk: Environment, tool: str, arguments: dict[str, Any], code: str
) -> None:
    real = filled(desk, arguments)
    before = desk.state()
    result = getattr(tools, tool)(desk, **real)
    assert (result["ok"], result["code"]) == (False, code)
    assert desk.state() == before


def test_cancelling_twice_is_refused_the_second_time(desk: Environment) -> None:
    customer, order = order_in(desk, "packed")
    assert tools.cancel_order(desk, customer, order, "first")["ok"]
    second = tools.cancel_order(desk, customer, order, "second")
    assert second["code"] == "already_cancelled"
    assert tools.get_order(desk, order)["record"]["closed_reason"] == "first"


def test_a_full_slot_names_the_next_free_one(desk: Environment) -> None:
    booking, customer = first(desk, "select booking_id, customer_id from bookings order by booking_id desc")
    names = seed.slot_names()
    refusal = tools.reschedule_booking(desk, customer, booking, names[3])
    assert refusal["details"] == {"slot": names[3], "next_free": names[4]}


def test_a_refused_late_refund_says_what_a_card_may_hold(desk: Environment) -> None:
    customer, order, total = first(
        desk, f"select customer_id, order_id, total_cents from orders where returnable_until < '{seed.TODAY}'"
    )
    assert tools.refund_order(desk, customer, order, "late")["details"]["goodwill_cents"] == total // 2


def test_the_text_of_a_call_is_data_and_never_sql(desk: Environment) -> None:
    before = desk.state()
    assert tools.find_customer(desk, "x' or '1' = '1")["code"] == "unknown_email"
    assert tools.get_order(desk, "order-0001'; drop table orders; --")["code"] == "unknown_order"
    assert desk.state() == before


@pytest.mark.parametrize("name", sorted(path.stem for path in (HARNESSES / "desk-plain" / "tools").glob("*.json")))
def test_a_schema_names_the_arguments_of_its_tool(name: str) -> None:
    schema = json.loads((HARNESSES / "desk-plain" / "tools" / f"{name}.json").read_text(encoding="utf-8"))
    function = getattr(tools, name)
    arguments = list(function.__annotations__)[1:-1]
    assert schema["name"] == name
    assert list(schema["parameters"]["properties"]) == schema["parameters"]["required"] == arguments
    jsonschema_rs.validator_for(schema["parameters"])


def test_ten_tools_are_bound_and_six_of_them_change_the_desk() -> None:
    bound = {path.stem for path in (HARNESSES / "desk-plain" / "tools").glob("*.json")}
    assert len(bound) == 10
    assert len(bound - READS) == 6
    assert bound > READS
