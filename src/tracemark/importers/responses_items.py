"""Items of the Responses API become steps: a list of them is a conversation, as chat messages are.

What the model gave between two things that it was told (a message of someone else, the output of a call) is one reply,
in whatever order its items stand; a second text begins another reply, so that texts are not joined which were apart.
Of each item what its step has no place for stays in the step's `extra` (see `response_turn`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracemark.importers.conversation import Conversation, NotMessagesError
from tracemark.importers.response_turn import answer_of, chat_parts, is_image, looked_at, message_of

_OF_REPLY = ("message", "reasoning", "function_call")


def add_items(conversation: Conversation, items: Any, place: str) -> list[dict[str, Any]]:
    """Add the items of a request's `input`, or of a response's `output`; return the agent's steps among them.

    Args:
        conversation: grows.
        items: a list of items, or one text, which is a message of the user.
        place: where they stand in the record, for messages of errors.

    Raises:
        NotMessagesError: for something that is no item, and for an item of a type that is not known.
        UnknownRoleError: for a role that is not known.
    """
    replies = []
    for message, where in _messages(items, place):
        step = conversation.add(message, where)
        if message.get("role") == "assistant":
            replies.append(step)
    return replies


def _messages(items: Any, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(items, str):
        yield {"role": "user", "content": items}, place
        return
    if not isinstance(items, list):
        raise NotMessagesError(f"{place} is no list of items")
    turn: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        where = f"{place}/{index}"
        kind = _kind(item, where)
        is_reply = kind in _OF_REPLY and (kind != "message" or item.get("role") == "assistant")
        if turn and (not is_reply or (kind == "message" and any(_kind(one, where) == "message" for one in turn))):
            yield message_of({"output": turn}), where
            turn = []
        if is_reply:
            turn.append({**item, "type": kind, "content": _parts(item)} if kind == "message" else item)
        elif kind == "message":
            yield _with_images({name: value for name, value in item.items() if name != "type"}), where
        else:
            yield _with_images(answer_of(item)), where
    if turn:
        yield message_of({"output": turn}), place


def _kind(item: Any, where: str) -> str:
    kind = item.get("type", "message" if "role" in item else None) if isinstance(item, dict) else None
    if kind not in (*_OF_REPLY, "function_call_output"):
        raise NotMessagesError(f"{where} is an item of the type {str(kind)[:40]!r}, which is not read")
    return str(kind)


def _parts(item: Mapping[str, Any]) -> Any:
    """Return the content of a reply as parts: requests may hold it as a text."""
    content = item.get("content")
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else content


def _with_images(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its images as chat messages hold them."""
    content = message.get("content")
    if isinstance(content, list) and any(map(is_image, content)):
        return {**message, "content": chat_parts(content), **looked_at(content)}
    return message
