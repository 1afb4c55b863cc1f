"""Messages of the Messages API, as Claude Code logs them, become chat messages: blocks are text, calls and answers.

What has no place in a chat message stays in it under its own name, or under one with `_` behind it where chat messages
give that name a meaning.
"""

from __future__ import annotations

from typing import Any

from tracemark.importers.media import IMAGES
from tracemark.importers.usage import is_number

OF_CONVERSATION = frozenset(
    {
        "role",
        "content",
        "timestamp",
        "tool_calls",
        "function_call",
        "tool_call_id",
        "reasoning_content",
        "reasoning",
        "thinking",
        "model",
        "name",
        "event_type",
        "context_management",
        "raw_output",
    }
)
"""Names that a chat message gives a meaning of its own: a record's member of such a name gets another one."""


def metrics_of(usage: Any, cost: Any) -> dict[str, Any]:
    """Return the metrics of one reply; the prompt's tokens are those read from a cache, put into it, and the others.

    Args:
        usage: as the Messages API reports it; kept whole in `extra.usage`.
        cost: US dollars; anything but a number gives nothing.
    """
    metrics: dict[str, Any] = {}
    if isinstance(usage, dict) and usage:
        parts = [usage.get(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
        if type(parts[0]) is int:
            metrics["prompt_tokens"] = sum(part for part in parts if type(part) is int)
        if type(usage.get("output_tokens")) is int:
            metrics["completion_tokens"] = usage["output_tokens"]
        if type(parts[2]) is int:
            metrics["cached_tokens"] = parts[2]
        metrics["extra"] = {"usage": usage}
    if is_number(cost):
        metrics["cost_usd"] = cost
    return metrics


def blocks_of(content: Any) -> list[Any]:
    """Return the blocks of a reply, whose content may be a text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else [content]


def spoken(message: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
    """Return a reply as a chat message: its texts, its reasoning, its calls."""
    if message.get("content") is None:
        return message
    texts: list[Any] = []
    reasoning: list[str] = []
    thinking: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    others = False
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block)
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            reasoning += [block["thinking"]] if block["thinking"] else []
            thinking.append({name: value for name, value in block.items() if name != "thinking"})
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind == "redacted_thinking":
            thinking.append(block)
        else:
            others = True
    plain = len(texts) == 1 and len(texts[0]) == 2
    made = {**message, "content": texts[0]["text"] if plain else texts or ""}
    if reasoning:
        made["reasoning_content"] = "\n".join(reasoning)
    if any(len(block) > 1 for block in thinking):
        made["thinking_blocks"] = thinking
    if calls:
        made["tool_calls"] = calls
    if others:
        # what has no place in a step was said all the same: nobody is to learn the rest as if it were the whole reply
        made["content"] = "".join(block["text"] for block in texts)
        made["original_content"] = blocks
    return made


def _call(block: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in block.items() if name not in ("type", "name", "input", "function")}
    return {**rest, "function": {"name": block.get("name"), "arguments": block.get("input")}}


def answered(result: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """Return a block that answers a call as a tool's chat message.

    Args:
        result: the block.
        rest: what its record says beside it.
    """
    content = result.get("content")
    own = {name: value for name, value in result.items() if name not in ("type", "tool_use_id", "content")}
    answer = joined(members_of(own), rest)
    answer |= {"role": "tool", "tool_call_id": result.get("tool_use_id")}
    if "content" in result:
        answer["content"] = content_of(content)
    return answer


def members_of(said: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a message without its role; one that a conversation reads as its own gets another name."""
    return {
        f"{name}_" if name in OF_CONVERSATION and name not in ("content", "model") else name: member
        for name, member in said.items()
        if name != "role" and not (name == "type" and member == "message")
    }


def joined(own: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """Return members of a message and of its record; of two with one name that of the record gets another one."""
    return {**own, **{f"{name}_" if name in own else name: member for name, member in rest.items()}}


def is_result(block: Any) -> bool:
    """Return whether a block answers a call."""
    return isinstance(block, dict) and block.get("type") == "tool_result"


def content_of(content: Any) -> Any:
    """Return the content of a message: a text where it is one, else its blocks as parts of a chat message."""
    if not isinstance(content, list):
        return content
    only = content[0] if len(content) == 1 and isinstance(content[0], dict) else {}
    if only.keys() == {"type", "text"} and only["type"] == "text" and isinstance(only["text"], str):
        return only["text"]
    return [_part(one) for one in content]


def _part(block: Any) -> Any:
    """Return a block as a part of a chat message; one that is neither text nor an image stays as it is."""
    source = block.get("source") if isinstance(block, dict) and block.get("type") == "image" else None
    if not isinstance(source, dict) or set(block) != {"type", "source"}:
        return block
    if set(source) == {"type", "media_type", "data"} and source["type"] == "base64" and source["media_type"] in IMAGES:
        data = source["data"]
        if isinstance(data, str):
            return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{data}"}}
    return block
