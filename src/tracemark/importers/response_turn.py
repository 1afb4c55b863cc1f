"""A turn of the Responses API becomes a chat message: its output items are text, reasoning and calls of one reply.

What the message has no place for (ids, states, signatures, items of other kinds) stays in the message's `output`, each
item without the text that was taken out of it. An item of reasoning may hold what the model thought (`content`), a
summary that another model made of it, or both: the summary stands in for thoughts only where there are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TEXTS = ("text", "refusal")
_TEXT_PARTS = ("input_text", "output_text")


def message_of(response: dict[str, Any]) -> dict[str, Any]:
    """Return the reply that a response holds, as an assistant's chat message.

    Args:
        response: with `output`, the list of its items; what else it holds is left to the caller.
    """
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    left: list[Any] = []
    items = response.get("output")
    for item in items if isinstance(items, list) else []:
        rest = dict(item) if isinstance(item, dict) else item
        if isinstance(rest, dict):
            kind = rest.get("type")
            if kind == "message":
                texts += _taken(rest, "content")
            elif kind == "reasoning":
                reasoning += _taken(rest, "content") or _taken(rest, "summary")
            elif kind == "function_call":
                calls.append(_call(rest))
        left.append(rest)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    if calls:
        message["tool_calls"] = calls
    message["output"] = left if isinstance(items, list) else items
    return message


def is_summary(item: Any) -> bool:
    """Return whether an item of reasoning shows a summary in place of what the model thought."""
    if not isinstance(item, dict) or item.get("type") != "reasoning":
        return False
    return bool(_taken(dict(item), "summary")) and not _taken(dict(item), "content")


def answer_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call as a tool's chat message.

    Args:
        item: of the type `function_call_output`.
    """
    rest = {name: value for name, value in item.items() if name not in ("type", "call_id", "output")}
    return {**rest, "role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}


def chat_parts(parts: list[Any]) -> list[Any]:
    """Return parts of an item as parts of a chat message; one that is neither text nor an image stays as it is."""
    return [_chat_part(part) for part in parts]


def looked_at(parts: Iterable[Any]) -> dict[str, Any]:
    """Return how closely each image among the parts of an item was looked at, as a member of its message.

    Empty where that is said of none.
    """
    details = [part.get("detail") for part in parts if is_image(part)]
    return {"image_detail": details} if any(detail is not None for detail in details) else {}


def is_image(part: Any) -> bool:
    """Return whether a part of an item is an image, and nothing but that."""
    if not isinstance(part, dict) or part.get("type") != "input_image":
        return False
    return isinstance(part.get("image_url"), str) and part.keys() <= {"type", "image_url", "detail"}


def _chat_part(part: Any) -> Any:
    if is_image(part):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    is_text = isinstance(part, dict) and part.get("type") in _TEXT_PARTS and part.keys() == {"type", "text"}
    return {"type": "text", "text": part["text"]} if is_text else part


def _taken(item: dict[str, Any], name: str) -> list[str]:
    """Return the texts of an item's parts, which it loses."""
    parts = item.get(name)
    if not isinstance(parts, list):
        return []
    texts, left = [], []
    for part in parts:
        held = dict(part) if isinstance(part, dict) else part
        if isinstance(held, dict):
            texts += [held.pop(member) for member in _TEXTS if isinstance(held.get(member), str)]
        left.append(held)
    item[name] = left
    return texts


def _call(item: dict[str, Any]) -> dict[str, Any]:
    name, arguments = item.pop("name", None), item.pop("arguments", None)
    said = item.pop("call_id", None)
    return {
        "id": said if said is not None else item.get("id"),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
