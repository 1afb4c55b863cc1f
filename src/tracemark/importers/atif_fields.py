"""What each object of ATIF v1.8 may hold, by member: the shapes by which near misses are sorted.

These are tests of kind, looser than the models: what they pass may still be refused, what they fail moves to `extra`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tracemark.model.atif import is_timestamp

Check = Callable[[Any], bool]
"""Whether a value is of the kind that a member wants; never asked about null."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether `value` is a number that a double can hold, and no truth value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and is_timestamp(value)


def _is_any(_: Any) -> bool:
    return True


ROOT: dict[str, Check] = {
    **dict.fromkeys(("schema_version", "session_id", "trajectory_id", "notes", "continued_trajectory_ref"), _is_text),
    **dict.fromkeys(("agent", "final_metrics", "extra"), _is_object),
    "steps": _is_any,
    "subagent_trajectories": _is_list_of(_is_object),
}
"""The document."""
AGENT: dict[str, Check] = {
    **dict.fromkeys(("name", "version", "model_name"), _is_text),
    "tool_definitions": _is_list_of(_is_object),
    "extra": _is_object,
}
"""`agent`."""
STEP: dict[str, Check] = {
    "step_id": _is_any,
    "timestamp": _is_time,
    "source": _is_any,
    "message": _is_any,
    "model_name": _is_text,
    "reasoning_effort": lambda value: isinstance(value, str) or is_number(value),
    "reasoning_content": _is_text,
    "tool_calls": _is_list_of(_is_object),
    "observation": _is_object,
    "metrics": _is_object,
    "is_copied_context": lambda value: isinstance(value, bool),
    "llm_call_count": _is_count,
    "extra": _is_object,
}
"""One of `steps`."""
CALL: dict[str, Check] = {
    **dict.fromkeys(("tool_call_id", "function_name"), _is_text),
    "arguments": _is_object,
    "extra": _is_object,
}
"""One of `tool_calls`."""
RESULT: dict[str, Check] = {
    "source_call_id": _is_text,
    "content": _is_any,
    "subagent_trajectory_ref": _is_list_of(_is_object),
    "extra": _is_object,
}
"""One of `observation.results`."""
REF: dict[str, Check] = {
    **dict.fromkeys(("trajectory_id", "session_id", "trajectory_path"), _is_text),
    "extra": _is_object,
}
"""One of `subagent_trajectory_ref`."""
METRICS: dict[str, Check] = {
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens"), _is_integer),
    **dict.fromkeys(("prompt_token_ids", "completion_token_ids"), _is_list_of(_is_integer)),
    "cost_usd": is_number,
    "logprobs": _is_list_of(is_number),
    "extra": _is_object,
}
"""`metrics` of a step."""
FINAL: dict[str, Check] = {
    **dict.fromkeys(("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"), _is_integer),
    "total_cost_usd": is_number,
    "total_steps": _is_count,
    "extra": _is_object,
}
"""`final_metrics`."""
