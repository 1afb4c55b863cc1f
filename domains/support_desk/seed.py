"""The rows with which every run starts.

They are computed, not stored: the same rows on every machine. Nobody in them is a person; customers are numbers, and
their mail addresses lie under the reserved name `example`. What an order's turn in its group of six says decides its
state, so that every kind of task finds as many orders as any other.
"""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta

from support_desk.dice import Dice

TODAY = "2026-03-02"
"""The day on which the tasks are meant to be played; the states of the seed rows are relative to it."""

CUSTOMERS = 40
ORDERS = 120
RETURN_DAYS = 30
"""Days after delivery during which an order can be refunded."""

PRODUCTS = (
    ("kettle", 3450),
    ("desk lamp", 2790),
    ("bread tin", 1280),
    ("wool blanket", 5900),
    ("garden shears", 2240),
    ("tea towel", 650),
    ("wall clock", 4100),
    ("bicycle pump", 1990),
)
SERVICES = ("knife sharpening", "clock repair", "bicycle check")
SLOT_HOURS = ("09:00", "11:00", "14:00", "16:00")
SLOT_DAYS = 6
_DICE = Dice("support desk rows")


def customer_id(number: int) -> str:
    """Return the identifier of the customer with this number, which counts from 1."""
    return f"customer-{number:03d}"


def email(number: int) -> str:
    """Return the present mail address of the customer with this number."""
    return f"c{number:03d}@mail.example"


def former_email(number: int) -> str:
    """Return the address that the customer no longer uses; the desk does not know it any more."""
    return f"c{number:03d}@old.example"


def address(place: str, number: int) -> str:
    """Return an address line that belongs to nobody."""
    return f"{number} {place} Way, Unit {number % 9 + 1}"


def day(offset: int) -> str:
    """Return the day `offset` days after `TODAY`, as YYYY-MM-DD."""
    return (date.fromisoformat(TODAY) + timedelta(days=offset)).isoformat()


def slot_names() -> list[str]:
    """Return all bookable slots in order of time, from tomorrow on."""
    return [f"{day(1 + number)}T{hour}" for number in range(SLOT_DAYS) for hour in SLOT_HOURS]


def fill(connection: sqlite3.Connection) -> None:
    """Insert all rows into an empty database that has the desk's schema."""
    connection.executemany("insert into customers values (?, ?, ?)", _customers())
    for number in range(1, ORDERS + 1):
        _insert_order(connection, number)
    connection.executemany("insert into gift_cards values (?, ?, ?, ?, ?)", _gift_cards())
    connection.executemany("insert into slots values (?, ?)", [(name, 2) for name in slot_names()])
    connection.executemany("insert into bookings values (?, ?, ?, ?)", _bookings())
    connection.commit()


def _customers() -> list[tuple[str, str, str]]:
    return [(customer_id(n), email(n), address("Mill", n)) for n in range(1, CUSTOMERS + 1)]


def _insert_order(connection: sqlite3.Connection, number: int) -> None:
    """Insert one order and its lines; its number modulo six decides its state."""
    order = f"order-{number:04d}"
    owner = (number * 7) % CUSTOMERS + 1
    lines = [
        (order, line, *_line(f"{order} line {line}")) for line in range(1, _DICE.between(f"{order} lines", 1, 3) + 1)
    ]
    total = sum(quantity * unit for _, _, _, quantity, unit in lines)
    age = _DICE.between(f"{order} age", 1, 9)
    placed, state, due, until = {
        1: (day(-12 - age), "delivered", 0, day(RETURN_DAYS - 4 - age)),
        2: (day(-60 - age), "delivered", 0, day(RETURN_DAYS - 50 - age)),
        3: (day(-1 - age // 4), "packed", 0, None),
        4: (day(-3 - age // 2), "shipped", 0, None),
        5: (day(-age // 3), "placed", total, None),
        0: (day(-2 - age // 4), "packed", 0, None),
    }[number % 6]
    connection.execute(
        "insert into orders values (?, ?, ?, ?, ?, ?, ?, ?, null, null)",
        (order, customer_id(owner), placed, state, address("Mill", owner), total, due, until),
    )
    connection.executemany("insert into order_items values (?, ?, ?, ?, ?)", lines)


def _line(label: str) -> tuple[str, int, int]:
    product, cents = _DICE.pick(label, PRODUCTS)
    return product, _DICE.between(f"{label} quantity", 1, 2), cents


def _gift_cards() -> list[tuple[str, str, int, str, str]]:
    """Two cards for each customer: the first is used up for every second one of them."""
    cards = []
    for number in range(1, CUSTOMERS + 1):
        first = 0 if number % 2 else 500 * _DICE.between(f"first card {number}", 1, 4)
        second = 500 * _DICE.between(f"second card {number}", 2, 8)
        cards.append((f"gift-{2 * number - 1:04d}", customer_id(number), first, day(-200), "bought"))
        cards.append((f"gift-{2 * number:04d}", customer_id(number), second, day(-90), "bought"))
    return cards


def _bookings() -> list[tuple[str, str, str, str]]:
    """One booking for each of 32 customers; every third slot has both of its places taken, most others one."""
    names = slot_names()
    full = [name for number, name in enumerate(names) if number % 3 == 0]
    rest = [name for number, name in enumerate(names) if number % 3]
    taken = full + full + rest
    return [
        (f"booking-{number:03d}", customer_id(number), SERVICES[number % len(SERVICES)], slot)
        for number, slot in enumerate(taken[: CUSTOMERS - 8], start=1)
    ]
