"""What a session says of its run beside the conversation: model, limits, ending, verdict, and settings of the harness.

A configuration that its own session contradicts is not used: another class of agent than the one that introduced
itself, calls of the model's own where it says that there were none, a state that names events which are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from tracemark.importers import recovery
from tracemark.importers.members import mapping, without_null
from tracemark.importers.recovery import Entry
from tracemark.importers.rewards import rewarded
from tracemark.importers.usage import is_number

VERDICTS = ("resolved", "success", "passed", "result")
"""Members that hold a verdict: true or false."""

REWARDS = ("reward", "score")
"""Members that hold a reward."""

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "max_output_tokens",
    "reasoning_effort",
    "extended_thinking_budget",
)
"""Members of a model's configuration that say how it was asked."""

LIMITS = re.compile(r"max(?:imum)?[ _]?(?:iteration|budget)|stuck", re.IGNORECASE)
"""What an error says when the harness ended the run by a limit of its own."""

_TOTALS = {
    "prompt_tokens": "total_prompt_tokens",
    "completion_tokens": "total_completion_tokens",
    "cache_read_tokens": "total_cached_tokens",
}


class Ending(NamedTuple):
    """How a run ended."""

    termination: str | None
    """In the source's words."""
    is_error: bool
    """Whether the source says that an error ended it."""


def ending(error: Any, states: Iterable[tuple[Any, Any]]) -> Ending:
    """Return how a run ended.

    Args:
        error: what the row says of an error; null and "" say nothing.
        states: last states of the agent or the conversation, each with its reason, in the order in which they count.
    """
    if isinstance(error, str) and error:
        return Ending(error, LIMITS.search(error) is None)
    for state, reason in states:
        if isinstance(state, str) and state:
            said = reason if isinstance(reason, str) and reason else None
            is_error = state == "error" and not (said is not None and LIMITS.search(said))
            return Ending(f"{state}: {said}" if said else state, is_error)
    return Ending(None, False)


def outcome(rest: Mapping[str, Any], end: Ending, success_reward: float) -> dict[str, Any]:
    """Return the outcome: a success by verdict, else an error, else the verdict or the reward, else unknown."""
    found: dict[str, Any] = {"status": "unknown"}
    result = rest.get("test_result")
    for place, holder in (
        ("report", rest.get("report")),
        ("test_result.report", mapping(result).get("report")),
        ("test_result", result),
        ("", rest),
    ):
        judged = _judged(mapping(holder), place, success_reward)
        if judged is not None:
            found = judged
            break
    if end.is_error and found["status"] != "success":
        found["status"] = "error"
    if end.termination is not None:
        found["termination"] = end.termination
    return found


def _judged(holder: Mapping[str, Any], place: str, success_reward: float) -> dict[str, Any] | None:
    # a row's own `result` is a program's word for anything
    for name in VERDICTS if place else ("resolved", "success"):
        if isinstance(holder.get(name), bool):
            rule = f"{place}.{name}" if place else name
            made = {"status": "success" if holder[name] else "failure", "rule": rule}
            checks = without_null(holder, "git_patch")
            return {**made, "checks": checks} if place else made
    for name in REWARDS:
        if is_number(holder.get(name)) or isinstance(holder.get(name), bool):
            made = rewarded(holder[name], success_reward).outcome
            return made if made["status"] == "unknown" else {**made, "rule": name}
    return None


def doubt(outcome: Mapping[str, Any], success_reward: float) -> str | None:
    """Return why a reward gave no status, in words; None when there is none, or it gave one."""
    is_unread = outcome["status"] == "unknown" and "reward" in outcome
    return rewarded(outcome["reward"], success_reward).doubt if is_unread else None


def sampling(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a model was asked."""
    return {name: config[name] for name in SAMPLING if config.get(name) is not None}


def totals(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of usage and cost as final metrics."""
    found: dict[str, Any] = {}
    usage = mapping(metrics.get("accumulated_token_usage"))
    for name, place in _TOTALS.items():
        if type(usage.get(name)) is int:
            found[place] = usage[name]
    if is_number(metrics.get("accumulated_cost")):
        found["total_cost_usd"] = metrics["accumulated_cost"]
    return found


def of_row(metadata: Mapping[str, Any], converted: bool) -> list[Entry]:
    """Return the settings of the runtime that a row of an evaluation records."""
    model = mapping(metadata.get("llm_config"))
    return recovery.settings(
        {
            "condenser": _condenser(metadata.get("condenser_config")),
            "function_calling": _natively(model, converted),
            "max_iterations": metadata.get("max_iterations"),
            "max_message_chars": model.get("max_message_chars"),
        }
    )


def of_state(state: Mapping[str, Any], converted: bool) -> list[Entry]:
    """Return the settings of the runtime that the state of a conversation records."""
    agent = mapping(state.get("agent"))
    model = mapping(agent.get("llm"))
    return recovery.settings(
        {
            "condenser": _condenser(agent.get("condenser")),
            "confirmation_policy": state.get("confirmation_policy"),
            "function_calling": _natively(model, converted),
            "max_iterations": state.get("max_iterations"),
            "max_message_chars": model.get("max_message_chars"),
            "stuck_detection": state.get("stuck_detection"),
            "tool_concurrency_limit": agent.get("tool_concurrency_limit"),
        }
    )


def contradiction(config: Mapping[str, Any], converted: bool) -> str | None:
    """Return what of a model's configuration the calls contradict, in words; None when nothing is."""
    if converted and config.get("native_tool_calling") is True:
        return "native_tool_calling is true, and calls were taken out of the model's text"
    return None


class Calls(Protocol):
    """What the calls of a session show."""

    converted: bool
    """Whether one was taken out of the model's text."""
    native: bool
    """Whether one has an id that is not OpenHands' own."""


def asked_for_calls(config: Mapping[str, Any], calls: Calls) -> bool | None:
    """Return whether the model was sent the prompt for one that calls tools itself; None when that is not known."""
    asked = _natively(config, calls.converted)
    return True if asked is None and calls.native else asked


def _natively(config: Mapping[str, Any], converted: bool) -> bool | None:
    """Return whether the model was asked to call tools itself; None when that is not known.

    Calls with ids of the provider prove nothing: a model may call by itself though it was asked for text.
    """
    said = config.get("native_tool_calling")
    return False if converted else said if isinstance(said, bool) else None


def _condenser(config: Any, depth: int = 3) -> Any:
    """Return the settings of a condenser, or of several, without their model, which is no part of the harness."""
    if isinstance(config, list) and depth:
        return [_condenser(one, depth - 1) for one in config]
    if not isinstance(config, dict) or not depth:
        return config
    own = {name: value for name, value in config.items() if name not in ("llm", "llm_config")}
    return {name: _condenser(value, depth - 1) for name, value in own.items()}
