"""Text of the assistant that no model wrote in a run: given with the task, or written by the program around the model.

It stands where it stood, for the model saw it, and it trains nobody: no export takes a trace with such a step.
"""

from __future__ import annotations

from typing import Any

_NOTE = "messages of the assistant that no model wrote in this run: marked as copied context"


def mark(step: dict[str, Any], repairs: list[str]) -> None:
    """Mark a step of the agent as supplied; one without reasoning and metrics also counts no model call.

    Args:
        step: the step, altered in place.
        repairs: gets a note.
    """
    step["is_copied_context"] = True
    if "reasoning_content" not in step and "metrics" not in step:
        step["llm_call_count"] = 0
    repairs.append(_NOTE)
