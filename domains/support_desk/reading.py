"""What an agent makes of an observation: the only way in which the scripted agent learns anything.

Two forms are understood, the labelled one (a JSON object that opens with `status`) and the plain one (a sentence, then
`name: value` lines). The plain form has no status and no code, so nothing that depends on them can be read from it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation as understood.

    Attributes:
        text: the observation itself.
        status: `ok` or `error`; None when the observation does not say.
        code: the code of a refusal; None when the observation holds none.
        advice: what the observation says to do next; None when it says nothing of that.
        fields: single values of the record or of a refusal's details, as text; empty when none is shown.
    """

    text: str
    status: str | None = None
    code: str | None = None
    advice: str | None = None
    fields: dict[str, str] = field(default_factory=dict)


def read(text: str) -> Seen:
    """Return what the observation shows."""
    if text.startswith("{"):
        value = json.loads(text)
        shown = value.get("record") or value.get("details") or {}
        fields = {name: _plain(each) for name, each in shown.items()}
        return Seen(text, value["status"], value.get("code"), value.get("next"), fields)
    return Seen(text, fields=dict(re.findall(r"^(\w+): (.*)$", text, flags=re.MULTILINE)))


def latest_order(seen: Seen) -> str | None:
    """Return the order with the latest day in a list of orders; None when the observation lists none."""
    orders = _listed(seen)
    return max(orders, key=lambda each: each[1])[0] if orders else None


def last_listed_order(seen: Seen) -> str | None:
    """Return the order that stands last in a list of orders; None when the observation lists none."""
    orders = _listed(seen)
    return orders[-1][0] if orders else None


def _listed(seen: Seen) -> list[tuple[str, str]]:
    return re.findall(r"(order-\d{4})\W+placed_on\W+(\d{4}-\d{2}-\d{2})", seen.text)


def _plain(value: object) -> str:
    """Return a value of the labelled form as the plain form would show it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
