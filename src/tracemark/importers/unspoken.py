"""A run in which nobody spoke: it ended before its first message, and is stored all the same, for its end counts.

A trajectory has at least one step, so one stands there that is no message: a system step that names an event.
"""

from __future__ import annotations

from typing import Any

EVENT = "no-messages"
"""`extra.event_type` of the step that stands for the missing ones."""


def steps(repairs: list[str]) -> list[dict[str, Any]]:
    """Return the steps of a run without messages; a note is added to `repairs`."""
    repairs.append("a run without messages: an empty system step stands for it")
    return [{"step_id": 1, "source": "system", "message": "", "extra": {"event_type": EVENT}}]
