"""What an agent can do at the desk: four tools read, six change the database.

Every tool takes the run's desk first, executes SQL against it, and returns one shape of raw result:
`{"ok": true, "message", "record"}` or `{"ok": false, "code", "message", "details"}`. How much of that an agent gets to
see is the business of a harness's observation handler. A refusal is a result, not an exception, and changes nothing:
each write happens in one transaction after all its conditions hold. The module imports nothing of the domain, so that
the digest of a bound tool depends on this file alone.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

Raw = dict[str, Any]

GOODWILL_DIVISOR = 2
"""A gift card instead of a late refund is worth the order's total divided by this, rounded down to a cent."""

CARD_LIMIT_CENTS = 15000
ADDRESS_CHANGES_IN = ("placed", "packed")
CANCELS_IN = ("placed", "packed")


class Desk(Protocol):
    """What a tool needs of the run."""

    connection: sqlite3.Connection

    def today(self) -> str:
        """Return the present day as YYYY-MM-DD."""


def find_customer(desk: Desk, email: str) -> Raw:
    """Return the customer with this mail address, with the gift cards and booking; an unknown address is refused."""
    row = _row(desk, "select customer_id, email, address from customers where email = ?", email.strip().lower())
    if row is None:
        return _refused("unknown_email", f"No customer uses {email}.", email=email)
    customer = row["customer_id"]
    cards = _rows(desk, "select code, balance_cents from gift_cards where customer_id = ? order by code", customer)
    bookings = _rows(desk, "select booking_id from bookings where customer_id = ? order by booking_id", customer)
    return _done(
        f"{customer} uses {row['email']}.",
        row | {"gift_cards": cards, "bookings": [each["booking_id"] for each in bookings]},
    )


def list_orders(desk: Desk, customer_id: str) -> Raw:
    """Return the customer's orders, in the order of their numbers."""
    if _row(desk, "select 1 from customers where customer_id = ?", customer_id) is None:
        return _refused("unknown_customer", f"There is no {customer_id}.", customer_id=customer_id)
    sql = "select order_id, placed_on, state from orders where customer_id = ? order by order_id"
    orders = _rows(desk, sql, customer_id)
    return _done(f"{customer_id} has {len(orders)} orders.", {"customer_id": customer_id, "orders": orders})


def get_order(desk: Desk, order_id: str) -> Raw:
    """Return one order with its lines."""
    row = _row(desk, "select * from orders where order_id = ?", order_id)
    if row is None:
        return _refused("unknown_order", f"There is no {order_id}.", order_id=order_id)
    sql = "select product, quantity, unit_cents from order_items where order_id = ? order by line"
    return _done(f"{order_id} is {row['state']}.", row | {"items": _rows(desk, sql, order_id)})


def get_booking(desk: Desk, booking_id: str) -> Raw:
    """Return one booking and the slots that still have a place."""
    row = _row(desk, "select * from bookings where booking_id = ?", booking_id)
    if row is None:
        return _refused("unknown_booking", f"There is no {booking_id}.", booking_id=booking_id)
    return _done(f"{booking_id} is at {row['slot']}.", row | {"free_slots": _free_slots(desk)})


def refund_order(desk: Desk, customer_id: str, order_id: str, reason: str) -> Raw:
    """Pay a delivered order back while its return period lasts."""
    order = _own_order(desk, customer_id, order_id)
    if not order["ok"]:
        return order
    row = order["record"]
    if row["state"] != "delivered":
        return _refused("not_delivered", f"{order_id} is {row['state']}.", state=row["state"])
    if desk.today() > row["returnable_until"]:
        return _refused(
            "return_period_over",
            f"The return period of {order_id} ran until {row['returnable_until']}.",
            returnable_until=row["returnable_until"],
            goodwill_cents=row["total_cents"] // GOODWILL_DIVISOR,
        )
    return _close(desk, order_id, "refunded", reason)


def cancel_order(desk: Desk, customer_id: str, order_id: str, reason: str) -> Raw:
    """Cancel an order that has not left the house."""
    order = _own_order(desk, customer_id, order_id)
    if not order["ok"]:
        return order
    state = order["record"]["state"]
    if state == "cancelled":
        return _refused("already_cancelled", f"{order_id} is cancelled.", state=state)
    if state not in CANCELS_IN:
        return _refused("already_shipped", f"{order_id} is {state}.", state=state)
    return _close(desk, order_id, "cancelled", reason)


def change_address(desk: Desk, customer_id: str, order_id: str, address: str) -> Raw:
    """Send an order that has not left the house to another address."""
    order = _own_order(desk, customer_id, order_id)
    if not order["ok"]:
        return order
    if not address.strip():
        return _refused("empty_address", "The address is empty.")
    state = order["record"]["state"]
    if state not in ADDRESS_CHANGES_IN:
        return _refused("already_shipped", f"{order_id} is {state}.", state=state)
    _write(desk, "update orders set address = ? where order_id = ?", address.strip(), order_id)
    return _done(f"{order_id} is {state}.", {"order_id": order_id, "address": address.strip(), "state": state})


def issue_gift_card(desk: Desk, customer_id: str, amount_cents: int, reason: str) -> Raw:
    """Give a customer a new gift card; each call makes another one."""
    if _row(desk, "select 1 from customers where customer_id = ?", customer_id) is None:
        return _refused("unknown_customer", f"There is no {customer_id}.", customer_id=customer_id)
    if type(amount_cents) is not int or not 0 < amount_cents <= CARD_LIMIT_CENTS:
        return _refused(
            "amount_not_allowed", f"A card holds 1 to {CARD_LIMIT_CENTS} cents.", limit_cents=CARD_LIMIT_CENTS
        )
    last = _row(desk, "select max(code) as code from gift_cards")
    code = f"gift-{int(last['code'][5:]) + 1 if last and last['code'] else 1:04d}"
    sql = "insert into gift_cards values (?, ?, ?, ?, ?)"
    _write(desk, sql, code, customer_id, amount_cents, desk.today(), reason)
    return _done(f"{code} is at {amount_cents} cents.", {"code": code, "balance_cents": amount_cents})


def redeem_gift_card(desk: Desk, customer_id: str, code: str, order_id: str) -> Raw:
    """Pay what is due on an order from a gift card, as far as its balance reaches."""
    order = _own_order(desk, customer_id, order_id)
    if not order["ok"]:
        return order
    card = _row(desk, "select * from gift_cards where code = ? and customer_id = ?", code, customer_id)
    if card is None:
        return _refused("unknown_card", f"{customer_id} has no {code}.", code=code)
    if card["balance_cents"] == 0:
        return _refused("card_empty", f"{code} is at 0 cents.", code=code)
    due = order["record"]["due_cents"]
    if due == 0:
        return _refused("nothing_due", f"{order_id} is at 0 cents due.", order_id=order_id)
    paid = min(due, card["balance_cents"])
    with _transaction(desk):
        desk.connection.execute("update gift_cards set balance_cents = balance_cents - ? where code = ?", (paid, code))
        desk.connection.execute("update orders set due_cents = due_cents - ? where order_id = ?", (paid, order_id))
    left = card["balance_cents"] - paid
    return _done(f"{code} is at {left} cents.", {"code": code, "balance_cents": left, "due_cents": due - paid})


def reschedule_booking(desk: Desk, customer_id: str, booking_id: str, slot: str) -> Raw:
    """Move a booking to another slot that has a place."""
    row = _row(desk, "select * from bookings where booking_id = ? and customer_id = ?", booking_id, customer_id)
    if row is None:
        return _refused("unknown_booking", f"{customer_id} has no {booking_id}.", booking_id=booking_id)
    free = _free_slots(desk)
    if slot not in free:
        known = _row(desk, "select 1 from slots where slot = ?", slot) is not None
        nearest = next((each for each in free if each > slot), None)
        code = "slot_full" if known else "unknown_slot"
        return _refused(code, f"{booking_id} is at {row['slot']}.", slot=slot, next_free=nearest)
    _write(desk, "update bookings set slot = ? where booking_id = ?", slot, booking_id)
    return _done(f"{booking_id} is at {slot}.", {"booking_id": booking_id, "slot": slot})


def _done(message: str, record: dict[str, Any]) -> Raw:
    return {"ok": True, "message": message, "record": record}


def _refused(code: str, message: str, /, **details: str | int | None) -> Raw:
    return {"ok": False, "code": code, "message": message, "details": details}


def _rows(desk: Desk, sql: str, *values: str) -> list[dict[str, Any]]:
    cursor = desk.connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _row(desk: Desk, sql: str, *values: str) -> dict[str, Any] | None:
    return next(iter(_rows(desk, sql, *values)), None)


def _transaction(desk: Desk) -> sqlite3.Connection:
    """Begin a transaction that the `with` block of the connection commits, or rolls back on an error."""
    desk.connection.execute("begin immediate")
    return desk.connection


def _write(desk: Desk, sql: str, *values: str | int) -> None:
    with _transaction(desk):
        desk.connection.execute(sql, values)


def _own_order(desk: Desk, customer_id: str, order_id: str) -> Raw:
    """Return the order as a result, or the refusal that it is unknown or somebody else's."""
    row = _row(desk, "select * from orders where order_id = ?", order_id)
    if row is None:
        return _refused("unknown_order", f"There is no {order_id}.", order_id=order_id)
    if row["customer_id"] != customer_id:
        return _refused("other_customer", f"{order_id} is not of {customer_id}.", order_id=order_id)
    return _done("", row)


def _close(desk: Desk, order_id: str, state: str, reason: str) -> Raw:
    sql = "update orders set state = ?, due_cents = 0, closed_on = ?, closed_reason = ? where order_id = ?"
    _write(desk, sql, state, desk.today(), reason, order_id)
    return _done(f"{order_id} is {state}.", {"order_id": order_id, "state": state, "closed_on": desk.today()})


def _free_slots(desk: Desk) -> list[str]:
    sql = (
        "select slot from slots left join bookings using (slot) group by slot, places"
        " having count(booking_id) < places order by slot"
    )
    return [row["slot"] for row in _rows(desk, sql)]
