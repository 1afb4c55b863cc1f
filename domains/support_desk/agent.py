"""A scripted policy that stands in for a model.

It follows the procedure that its prompt names, sees nothing but prompt, request and observations, and makes the
mistakes that models make: it takes an address that is out of date, repeats a call that was refused, writes without
reading first, believes a write that did not happen, or does it twice to be sure. How often depends on its strength
(`habits`) and on what the harness shows: where each observation opens with a status, few refusals are overlooked and
the codes spare it reading; a refusal that says what to do next is hardly ever overlooked; where there is no status, it
has to look again after a write, and sometimes does not; and a prompt that asks it to check its answer lets it catch its
own slips. It never knows which harness it works under, only what that shows. Which mistake happens in which run is
decided by seeded dice, so a run can be repeated exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from support_desk import reading
from support_desk.dice import Dice
from support_desk.habits import BASE, Strength
from support_desk.reading import Seen

NAME = "desk-agent"
VERSION = "2"
STATUS_RULE = "opens with a status"
"""Words of a prompt by which the agent knows that observations can be told apart by their status."""

CHECK_RULE = "check it against the request"
"""Words of a prompt by which the agent looks over what it wrote, and so catches most of its slips."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the agent says, and the call it wants; a reply without a tool ends the run."""

    message: str
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The reply as a model would write it: the message, then the call on a line of its own."""
        if self.tool is None:
            return self.message
        return f"{self.message}\ncall {self.tool} {json.dumps(self.arguments)}"


Turn = Generator[Reply, Seen, Seen]


class Agent:
    """One run's policy.

    Args:
        system: the system prompt as the harness renders it.
        request: the task as the harness words it.
        seed: decides which of the possible mistakes happen.
        strength: how often each of them does.
    """

    def __init__(self, system: str, request: str, seed: str, strength: Strength = BASE) -> None:
        self._request = request
        self._dice = Dice(seed)
        self._reads_status = STATUS_RULE in system
        self._checks = CHECK_RULE in system
        self._habits = strength.with_status if self._reads_status else strength.without_status
        day = re.search(r"\d{4}-\d{2}-\d{2}", system)
        self._today = day.group() if day else ""
        order = re.search(r"order-\d{4}", request)
        self._order = order.group() if order else ""

    def work(self) -> Generator[Reply, Seen, None]:
        """Yield reply after reply, each answered by what the harness shows; the last one calls nothing."""
        customer = yield from self._identify()
        if "customer_id" not in customer.fields:
            yield Reply("I am sorry, I cannot find an account under your address.")
            return
        procedures = {
            "refund": self._refund,
            "pay it back": self._refund,
            "money back": self._refund,
            "cancel it": self._cancel,
            "to this address": self._readdress,
            "what is due": self._redeem,
            "Please move": self._move,
        }
        procedure = next((each for words, each in procedures.items() if words in self._request), self._look_up)
        answer = yield from procedure(customer.fields["customer_id"])
        yield Reply("All done, thank you." if self._slips("answers_briefly") else answer)

    def _errs(self, habit: str, occasion: str = "") -> bool:
        return self._dice.chance(f"{habit} {occasion}", getattr(self._habits, habit))

    def _slips(self, habit: str) -> bool:
        """Return whether a slip of the pen stays: one that the agent makes, and does not find where it checks."""
        return self._errs(habit) and not (self._checks and not self._errs("skips_check", habit))

    def _heeds(self, refusal: Seen, tool: str) -> bool:
        """Return whether a refusal says what to do next and the agent takes note of it."""
        return refusal.advice is not None and not self._errs("overlooks_advice", tool)

    def _call(self, message: str, tool: str, **arguments: Any) -> Turn:
        return (yield Reply(message, tool, arguments))

    def _identify(self) -> Turn:
        """Look the customer up, at first perhaps under the address that comes first in the request."""
        addresses = re.findall(r"[\w.]+@[\w.]+\w", self._request)
        if not self._errs("takes_first_address"):
            addresses.reverse()
        seen = Seen("")
        for number, email in enumerate(addresses):
            seen = yield from self._call(f"I look for the account of {email}.", "find_customer", email=email)
            if "customer_id" in seen.fields:
                break
            if self._heeds(seen, "find_customer"):
                continue
            if self._errs("repeats_refused_call", email):
                seen = yield from self._call(f"I try {email} once more.", "find_customer", email=email)
            if number == 0 and self._errs("gives_up_on_customer"):
                break
        return seen

    def _read_order(self, message: str) -> Turn:
        return self._call(message, "get_order", order_id=self._order)

    def _write(
        self, message: str, shows: str, tool: str, **arguments: Any
    ) -> Generator[Reply, Seen, tuple[bool, Seen]]:
        """Make a change and return whether the agent believes in it, and the last thing it saw.

        Args:
            message: what the agent says with the call.
            shows: text that a second look shows when the change took place.
            tool: the tool's name.
            arguments: the tool's arguments.
        """
        seen = yield from self._call(message, tool, **arguments)
        if self._reads_status:
            if seen.status == "ok":
                return True, seen
            if self._heeds(seen, tool):
                return False, seen
            if self._errs("overlooks_refusal", tool):
                return True, seen
            if self._errs("repeats_refused_call", tool):
                seen = yield from self._call(f"The status is {seen.status}; I try again.", tool, **arguments)
            return False, seen
        if self._errs("skips_second_look", tool):
            if self._errs("writes_again", tool):
                seen = yield from self._call("To be sure I send it again.", tool, **arguments)
            return True, seen
        again = yield from self._second_look(tool, arguments)
        return shows in again.text, again

    def _second_look(self, tool: str, arguments: dict[str, Any]) -> Turn:
        """Read the record that the change was meant for."""
        message = "The observation has no status, so I read the record again."
        if tool == "reschedule_booking":
            return self._call(message, "get_booking", booking_id=arguments["booking_id"])
        if tool == "issue_gift_card":
            return self._call(message, "find_customer", email=re.findall(r"[\w.]+@[\w.]+\w", self._request)[-1])
        return self._read_order(message)

    def _refund(self, customer: str) -> Generator[Reply, Seen, str]:
        order = Seen("")
        if not self._errs("writes_unread"):
            order = yield from self._read_order(f"Before I pay {self._order} back I read it.")
        over = order.fields.get("returnable_until", self._today) < self._today
        if not over:
            done, seen = yield from self._write(
                f"I pay {self._order} back.",
                "refunded",
                "refund_order",
                customer_id=customer,
                order_id=self._order,
                reason="The customer returned it.",
            )
            if done:
                return f"{self._order} is refunded."
            if seen.code not in (None, "return_period_over"):
                return f"{self._order} cannot be refunded."
            order = seen
        if "gift card will do" not in self._request:
            return f"The return period of {self._order} is over."
        return (yield from self._offer_card(customer, order))

    def _offer_card(self, customer: str, order: Seen) -> Generator[Reply, Seen, str]:
        """Issue the card that stands in for a late refund: its value from the refusal, or half of the total."""
        if "goodwill_cents" in order.fields:
            amount = int(order.fields["goodwill_cents"])
            message = f"The status is error and its code {order.code}; goodwill_cents says what a card may hold."
        else:
            total = int(order.fields["total_cents"])
            amount = total if self._errs("wrong_amount") else total // 2
            message = "The record says that the return period is over, so I make a card over half of its total."
        done, _ = yield from self._write(
            message,
            str(amount),
            "issue_gift_card",
            customer_id=customer,
            amount_cents=amount,
            reason=f"{self._order} came back late.",
        )
        return f"Instead of a refund for {self._order} there is a gift card over {amount} cents." if done else "Sorry."

    def _cancel(self, customer: str) -> Generator[Reply, Seen, str]:
        if not self._errs("writes_unread"):
            order = yield from self._read_order(f"I read {self._order} to see whether it can be cancelled.")
            if order.fields.get("state") == "shipped":
                return f"{self._order} is shipped already and stays as it is."
        done, seen = yield from self._write(
            f"I cancel {self._order}.",
            "cancelled",
            "cancel_order",
            customer_id=customer,
            order_id=self._order,
            reason="The customer no longer needs it.",
        )
        if done:
            return f"{self._order} is cancelled."
        return f"{self._order} cannot be cancelled, it is {seen.fields.get('state', 'on its way')}."

    def _readdress(self, customer: str) -> Generator[Reply, Seen, str]:
        place = re.findall(r"\d+ \w+ Way, Unit \d+", self._request)[0]
        written = place.partition(",")[0] if self._slips("drops_unit") else place
        if not self._errs("writes_unread"):
            yield from self._read_order(f"I read {self._order} before I change it.")
        done, _ = yield from self._write(
            f"I send {self._order} to the new address.",
            written,
            "change_address",
            customer_id=customer,
            order_id=self._order,
            address=written,
        )
        return f"{self._order} goes to {place}." if done else f"{self._order} cannot be sent elsewhere any more."

    def _redeem(self, customer: str) -> Generator[Reply, Seen, str]:
        cards = re.findall(r"gift-\d{4}", self._request)
        before = Seen("")
        if not self._errs("writes_unread"):
            before = yield from self._read_order(f"I read what is due on {self._order}.")
        due = before.fields.get("due_cents", "0")
        for card in cards:
            done, seen = yield from self._pay(customer, card, due)
            if done:
                return f"{card} is redeemed; {seen.fields.get('due_cents', '0')} cents stay due on {self._order}."
        return f"Nothing is left on {' and '.join(cards)}."

    def _pay(self, customer: str, card: str, due: str) -> Generator[Reply, Seen, tuple[bool, Seen]]:
        """Redeem one card; without a status, an amount that is still due as before means that nothing was paid."""
        done, seen = yield from self._write(
            f"I pay {self._order} from {card}.",
            "due_cents",
            "redeem_gift_card",
            customer_id=customer,
            code=card,
            order_id=self._order,
        )
        return done and seen.fields.get("due_cents") != due, seen

    def _move(self, customer: str) -> Generator[Reply, Seen, str]:
        booking = re.findall(r"booking-\d{3}", self._request)[0]
        slots = re.findall(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}", self._request)
        if not self._errs("writes_unread"):
            record = yield from self._call(f"I read {booking} and the free slots.", "get_booking", booking_id=booking)
            slots = [slot for slot in slots if slot in record.fields.get("free_slots", "")]
        for slot in slots:
            done, _ = yield from self._write(
                f"I move {booking} to {slot}.",
                f"slot: {slot}",
                "reschedule_booking",
                customer_id=customer,
                booking_id=booking,
                slot=slot,
            )
            if done:
                return f"{booking} is now at {slot}."
        return f"{booking} stays where it is."

    def _look_up(self, customer: str) -> Generator[Reply, Seen, str]:
        orders = yield from self._call("I list the orders to find the latest one.", "list_orders", customer_id=customer)
        chosen = reading.last_listed_order if self._errs("takes_last_listed") else reading.latest_order
        self._order = chosen(orders) or ""
        order = yield from self._read_order(f"I read {self._order}.")
        return f"Your latest order is {self._order}; it came to {order.fields.get('total_cents', '?')} cents."
