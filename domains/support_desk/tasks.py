"""The desk's tasks: eighty-two of eight kinds, computed from slots over the seed rows.

No two tasks of a kind share an order, card or booking. A task holds what the customer writes, the changing calls that
solve it (they run without a refusal on a fresh desk), and what the answer must mention. The last four of each kind only
measure; no training set may hold a run of one of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from support_desk import seed
from support_desk.dice import Dice
from support_desk.environment import Environment
from tracemark.clock import FixedClock

START = f"{seed.TODAY}T09:00:00Z"
"""The moment at which a desk opens for its first task."""

_DICE = Dice("support desk tasks")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a reference solution."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One request to the desk.

    Attributes:
        task_id: kind and number, such as `refund-03`.
        kind: what the request is about.
        request: the customer's words.
        reference: the state-changing calls that solve it; empty when nothing may change.
        answer: what the last message must mention, each as it stands.
    """

    task_id: str
    kind: str
    request: str
    reference: tuple[Call, ...]
    answer: tuple[str, ...]

    @property
    def split(self) -> str:
        """`evaluation` or `train`."""
        return "evaluation" if self.task_id in EVALUATION else "train"


Built = tuple[str, tuple[Call, ...], tuple[str, ...]]
"""Request, reference and answer of a task."""


def all_tasks() -> list[Task]:
    """Return all tasks in the order of their kinds and numbers."""
    environment = Environment(FixedClock(START))
    try:
        return [task for kind, count in COUNTS.items() for task in _of_kind(environment.connection, kind, count)]
    finally:
        environment.close()


def _of_kind(connection: sqlite3.Connection, kind: str, count: int) -> Iterator[Task]:
    slots = _SLOTS[kind]
    rows = connection.execute(slots.rows).fetchall()
    for number, row in enumerate(rows[:count], start=1):
        task_id = f"{kind}-{number:02d}"
        request, reference, answer = slots.build(task_id, number, row)
        yield Task(task_id, kind, request, reference, answer)


@dataclass(frozen=True, slots=True)
class _Slots:
    """Where a kind's slots are filled from and how they make a task."""

    rows: str
    build: Callable[[str, int, tuple[Any, ...]], Built]


def _sender(task_id: str, number: int) -> str:
    """Return how the customer introduces themselves; in four of ten tasks an outdated address comes first."""
    if _DICE.chance(f"{task_id} former address", 0.4):
        return (
            f"This is {seed.former_email(number)}, the address of my first order."
            f" By now my account is under {seed.email(number)}."
        )
    return f"My account is under {seed.email(number)}."


def _number(customer: str) -> int:
    return int(customer.removeprefix("customer-"))


def _refund(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    order, customer, _total = row
    request = _DICE.pick(
        task_id,
        (
            f"{_sender(task_id, _number(customer))} {order} is not what I hoped for. Please pay it back.",
            f"Please refund {order}, I sent it back yesterday. {_sender(task_id, _number(customer))}",
        ),
    )
    call = Call("refund_order", {"customer_id": customer, "order_id": order, "reason": "returned"})
    return request, (call,), (order, "refunded")


def _late_refund(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    order, customer, total = row
    request = (
        f"{_sender(task_id, _number(customer))} I would like my money back for {order}."
        " If it is too late for that, a gift card will do."
    )
    amount = total // 2
    call = Call("issue_gift_card", {"customer_id": customer, "amount_cents": amount, "reason": "late return"})
    return request, (call,), (order, str(amount))


def _cancel(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    order, customer, _total = row
    request = f"{_sender(task_id, _number(customer))} I no longer need {order}, please cancel it if that still works."
    call = Call("cancel_order", {"customer_id": customer, "order_id": order, "reason": "no longer needed"})
    return request, (call,), (order, "cancelled")


def _late_cancel(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    order, customer, _total = row
    request = f"{_sender(task_id, _number(customer))} I no longer need {order}, please cancel it if that still works."
    return request, (), (order, "shipped")


def _address(task_id: str, number: int, row: tuple[Any, ...]) -> Built:
    order, customer, _total = row
    place = seed.address("Harbour", 100 + number)
    request = f"{_sender(task_id, _number(customer))} Please send {order} to this address instead: {place}."
    call = Call("change_address", {"customer_id": customer, "order_id": order, "address": place})
    return request, (call,), (order, place)


def _gift(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    order, customer, first, first_cents, second, second_cents, due = row
    request = (
        f"{_sender(task_id, _number(customer))} Please pay what is due on {order} with {first}."
        f" If nothing is left on that one, take {second}. Tell me what stays due."
    )
    code, balance = (first, first_cents) if first_cents else (second, second_cents)
    call = Call("redeem_gift_card", {"customer_id": customer, "code": code, "order_id": order})
    return request, (call,), (order, f"{due - min(due, balance)} cents")


def _booking(task_id: str, number: int, row: tuple[Any, ...]) -> Built:
    booking, customer = row
    names = seed.slot_names()
    full, free, also_free = (names[(3 * number + step) % len(names)] for step in range(3))
    wished, other = (full, free) if number % 2 else (free, also_free)
    request = (
        f"{_sender(task_id, _number(customer))} Please move {booking} to {wished}."
        f" If that is taken, {other} is fine too."
    )
    call = Call("reschedule_booking", {"customer_id": customer, "booking_id": booking, "slot": free})
    return request, (call,), (booking, free)


def _lookup(task_id: str, _: int, row: tuple[Any, ...]) -> Built:
    customer, order, total = row
    request = f"{_sender(task_id, _number(customer))} What did my latest order come to, and what is its number?"
    return request, (), (order, f"{total} cents")


_ORDERS = "select order_id, customer_id, total_cents from orders where {} order by order_id"

_SLOTS = {
    "refund": _Slots(_ORDERS.format(f"state = 'delivered' and returnable_until >= '{seed.TODAY}'"), _refund),
    "late-refund": _Slots(_ORDERS.format(f"state = 'delivered' and returnable_until < '{seed.TODAY}'"), _late_refund),
    "cancel": _Slots(_ORDERS.format("state = 'packed' and cast(substr(order_id, 7) as integer) % 2 = 1"), _cancel),
    "late-cancel": _Slots(_ORDERS.format("state = 'shipped'"), _late_cancel),
    "address": _Slots(_ORDERS.format("state = 'packed' and cast(substr(order_id, 7) as integer) % 2 = 0"), _address),
    "gift": _Slots(
        "select order_id, customer_id, a.code, a.balance_cents, b.code, b.balance_cents, due_cents from orders"
        " join gift_cards a using (customer_id) join gift_cards b using (customer_id)"
        " where due_cents > 0 and a.code < b.code order by order_id",
        _gift,
    ),
    "booking": _Slots("select booking_id, customer_id from bookings order by booking_id desc", _booking),
    "lookup": _Slots(
        "select customer_id, order_id, total_cents from orders o where placed_on ="
        " (select max(placed_on) from orders where customer_id = o.customer_id) and (select count(*) from orders"
        " where customer_id = o.customer_id and placed_on = o.placed_on) = 1 order by customer_id desc",
        _lookup,
    ),
}

COUNTS = {
    "refund": 10,
    "late-refund": 11,
    "cancel": 11,
    "late-cancel": 9,
    "address": 11,
    "gift": 10,
    "booking": 11,
    "lookup": 9,
}
"""How many tasks of each kind there are."""

EVALUATION_PER_KIND = 4
EVALUATION = tuple(
    f"{kind}-{number:02d}"
    for kind, count in COUNTS.items()
    for number in range(count - EVALUATION_PER_KIND + 1, count + 1)
)
"""Tasks that only measure; `params.yaml: evaluation` lists them too."""
