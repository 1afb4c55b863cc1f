"""Show a tool's result as one JSON object that opens with its status; a refusal says what to do next.

Orders are listed by day, so that the latest one stands last.
"""

from __future__ import annotations

import json
from typing import Any

_NEXT = {
    "unknown_email": "find_customer with the other address that the customer names",
    "return_period_over": "issue_gift_card over goodwill_cents, if the customer takes a card instead",
    "already_shipped": "change nothing, and tell the customer that the order is shipped",
    "card_empty": "redeem_gift_card with the other card that the customer names",
    "slot_full": "reschedule_booking to the other slot that the customer names",
}
_OTHERWISE = "change nothing, and tell the customer why"


def observe(raw: dict[str, Any]) -> str:
    """Return `{"status": "ok", …}` with the record, or `{"status": "error", "code": …, "next": …}` and details."""
    if raw["ok"]:
        shown = {"status": "ok", "record": _by_day(raw["record"])}
    else:
        shown = {
            "status": "error",
            "code": raw["code"],
            "next": _NEXT.get(raw["code"], _OTHERWISE),
            "message": raw["message"],
            "details": raw["details"],
        }
    return json.dumps(shown, ensure_ascii=False)


def _by_day(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its orders, where it lists any, sorted by the day on which they were placed."""
    if "orders" not in record:
        return record
    return record | {"orders": sorted(record["orders"], key=lambda order: str(order["placed_on"]))}
