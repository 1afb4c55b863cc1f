"""Messages of an Inspect AI log as messages of a chat, and the replies in them as steps with their costs.

A message has a text or parts. Texts, images and sounds are parts that ATIF has; reasoning goes to the step's own place;
any other part (what a provider's own tool did, data, a document, a video) is kept in `extra.other_parts` by its place
in the message, and `source.repairs` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from tracemark.importers.completion import without_reply
from tracemark.importers.conversation import ANSWERS, CALLS_AS_TEXTS, Conversation, decoded
from tracemark.importers.media import SOUNDS, image_type

_PLACED = ("type", "text", "image", "audio", "format")
_DEFAULTS: Mapping[str, Any] = {"detail": "auto", "internal": None, "refusal": None, "citations": None}
_REASONING = frozenset(("type", "reasoning", "redacted"))
_OUTPUT = ("model", "choices", "usage", "completion")
_EVENT = (
    "call",
    "config",
    "event",
    "input",
    "input_refs",
    "model",
    "output",
    "pending",
    "span_id",
    "timestamp",
    "tool_choice",
    "tools",
    "traceback_ansi",
    "uuid",
    "working_start",
)
"""Members of a model event that have a place of their own, or say nothing of the reply."""


def event_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model event as `add` takes it: without what was sent, and without the reply's text."""
    found = {name: value for name, value in event.items() if name not in _EVENT}
    return {**found, "timestamp": event.get("timestamp"), "output": without_reply(event["output"])}


def add(conversation: Conversation, message: Any, place: str, event: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Add one message; return the step that it became or went to.

    Args:
        conversation: the steps so far.
        message: the message, with its texts put back.
        place: where it stands, for refusals.
        event: the model call that gave it; None for a message that no call is known to have given.

    Raises:
        UnknownRoleError, NotMessagesError: as `Conversation.add`.
    """
    if not isinstance(message, dict):
        return conversation.add(message, place)
    chat = dict(message)
    if isinstance(chat.get("tool_calls"), list):
        chat["tool_calls"] = [_call(call, conversation.repairs) for call in chat["tool_calls"]]
    if event is not None and event.get("timestamp") is not None:
        chat.setdefault("timestamp", event["timestamp"])
    parts = chat.get("content")
    if not isinstance(parts, list):
        step = conversation.add(chat, place)
    else:
        chat["content"] = []
        extra = _Extra(is_agent=chat.get("role") == "assistant")
        found = [made for number, part in enumerate(parts) if (made := extra.take(part, number)) is not None]
        beside = extra.members()
        step = conversation.add({**beside, **chat}, place)
        holder = step["observation"]["results"][-1] if chat.get("role") in ANSWERS else step
        holder["content" if holder is not step else "message"] = found
        if "other_parts" in beside:
            conversation.repairs.append("parts of messages that ATIF has not: kept in extra.other_parts")
    if event is not None and step["source"] == "agent":
        _add_costs(step, event)
    return step


def _call(call: Any, repairs: list[str]) -> Any:
    """Return a tool call as a chat has it: in Inspect, `function` is the tool's name."""
    call = decoded(call, CALLS_AS_TEXTS, repairs)
    if not isinstance(call, dict) or not isinstance(call.get("function"), str):
        return call
    rest = dict(call)
    return {"name": rest.pop("function"), **rest}


class _Extra:
    """What of the parts of one message stands beside its text."""

    def __init__(self, *, is_agent: bool) -> None:
        self._is_agent = is_agent
        self._reasoning: list[dict[str, Any]] = []
        self._members: dict[str, Any] = {}

    def take(self, part: Any, number: int) -> dict[str, Any] | None:
        """Return a part as ATIF has it; None for one that is kept beside the message."""
        made = _made(part) if isinstance(part, dict) else None
        if made is not None:
            left = {
                name: value
                for name, value in part.items()
                if name not in _PLACED and not (name in _DEFAULTS and value == _DEFAULTS[name])
            }
            if left:
                self._keep("part_members", number, left)
        elif self._is_agent and isinstance(part, dict) and _is_reasoning(part):
            self._reasoning.append(part)
        else:
            self._keep("other_parts", number, part)
        return made

    def members(self) -> dict[str, Any]:
        """Return the members of the message that hold what was taken.

        Reasoning that is redacted, signed or summarised, or in several parts, is kept as it stands too.
        """
        found = dict(self._members)
        said = [part["reasoning"] for part in self._reasoning if not part.get("redacted")]
        if said:
            found["reasoning"] = "\n".join(said)
        if len(self._reasoning) > 1 or not all(map(_is_plain, self._reasoning)):
            found["reasoning_parts"] = self._reasoning
        return found

    def _keep(self, name: str, number: int, value: Any) -> None:
        self._members.setdefault(name, {})[str(number)] = value


def _is_reasoning(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "reasoning" and isinstance(part.get("reasoning"), str)


def _is_plain(part: Mapping[str, Any]) -> bool:
    """Return whether a part of reasoning holds nothing but its text."""
    return not part.get("redacted") and _REASONING.issuperset(name for name, value in part.items() if value is not None)


def _made(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    value = part.get(kind) if kind in ("text", "image", "audio") else None
    if not isinstance(value, str):
        return None
    if kind == "text":
        return {"type": "text", "text": value}
    media = image_type(value) if kind == "image" else SOUNDS.get(str(part.get("format")))
    return None if media is None else {"type": kind, "source": {"media_type": media, "path": value}}


def _add_costs(step: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Add to a reply what its model call says of it."""
    output = event.get("output")
    output = output if isinstance(output, dict) else {}
    metrics = usage_metrics(output.get("usage"))
    if metrics:
        step["metrics"] = metrics
    if isinstance(output.get("model"), str) and "model_name" not in step:
        step["model_name"] = output["model"]
    first, *others = output["choices"]
    left = {name: value for name, value in event.items() if name not in ("output", "timestamp") and value is not None}
    left |= {name: value for name, value in output.items() if name not in _OUTPUT and value is not None}
    left |= {name: value for name, value in first.items() if value is not None}
    if others:
        left["choices"] = others
    if left:
        extra = step.setdefault("extra", {})
        extra["model_event" if "model_event" not in extra else "model_event_"] = left


def usage_metrics(usage: Any) -> dict[str, Any]:
    """Return the tokens of one call; empty where nothing is said.

    Whether `input_tokens` counts what came from a cache differs between providers and versions; the total tells.
    Whatever is not read is kept in `extra`.
    """
    if not isinstance(usage, dict):
        return {}
    rest = {name: value for name, value in usage.items() if value is not None}
    sent, made, total = rest.get("input_tokens"), rest.get("output_tokens"), rest.get("total_tokens")
    cached, kept = rest.get("input_tokens_cache_read"), rest.get("input_tokens_cache_write")
    metrics: dict[str, Any] = {}
    if _is_count(made):
        metrics["completion_tokens"] = rest.pop("output_tokens")
    if _is_count(cached):
        metrics["cached_tokens"] = rest.pop("input_tokens_cache_read")
    if _is_count(sent):
        beside = sum(count for count in (cached, kept) if _is_count(count))
        if beside and _is_count(total) and _is_count(made) and total == sent + made + beside:
            metrics["prompt_tokens"] = sent + beside
        else:
            metrics["prompt_tokens"] = rest.pop("input_tokens")
    cost = rest.get("total_cost")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool):
        metrics["cost_usd"] = rest.pop("total_cost")
    if rest:
        metrics["extra"] = rest
    return metrics


def _is_count(value: Any) -> TypeGuard[int]:
    return value.__class__ is int
