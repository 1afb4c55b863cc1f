"""What a model call cost, as APIs report it, in the names of ATIF.

What has no place of its own stays verbatim in `extra.usage`, and members that are null say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
}
COST = "total_cost_usd"
"""The final metric that is no count."""

_DETAILS = ("prompt_tokens_details", "input_tokens_details")


def metrics_of(usage: Any, cost: Any = None) -> dict[str, Any]:
    """Return the metrics of one step; empty when nothing is known.

    Args:
        usage: the report of the Chat Completions or the Responses API; anything else gives nothing.
        cost: US dollars; anything but a number gives nothing.
    """
    metrics: dict[str, Any] = {}
    if isinstance(usage, dict):
        left = dict(usage)
        for name, places in _COUNTS.items():
            place = next((one for one in places if type(left.get(one)) is int), None)
            if place is not None:
                metrics[name] = left.pop(place)
        for name in _DETAILS:
            details = left.get(name)
            if isinstance(details, dict) and type(details.get("cached_tokens")) is int:
                metrics["cached_tokens"] = details["cached_tokens"]
        left = {name: value for name, value in left.items() if value is not None}
        if left:
            metrics["extra"] = {"usage": left}
    if is_number(cost):
        metrics["cost_usd"] = cost
    return metrics


def totals_of(said: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """Return the final metrics of a run; empty when nothing is said. What gets no place stays in `extra`.

    Args:
        said: the totals that the program kept, by its own names.
        places: which of them is which final metric: a cost is a number, anything else is counted.
    """
    left = dict(said)
    metrics: dict[str, Any] = {}
    for name, place in places.items():
        value = left.get(name)
        if is_number(value) if place == COST else type(value) is int:
            metrics[place] = left.pop(name)
    if left:
        metrics["extra"] = left
    return metrics


def is_number(value: Any) -> bool:
    """Return whether a value is a number as JSON has them; true and false are none."""
    return type(value) in (int, float)
