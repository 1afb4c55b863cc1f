"""A response of the Chat Completions API, as records hold it: where the reply stands in it, and what is left of it.

The reply is the message of the first choice. Other choices are answers to the same request, and no part of the
conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemark.importers.members import mapping


def first_choice(response: Any) -> Mapping[str, Any]:
    """Return the first choice of a response; empty where it has none."""
    choices = mapping(response).get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def reply_in(response: Any) -> dict[str, Any] | None:
    """Return the message that a response holds; None where it holds none."""
    message = first_choice(response).get("message")
    return message if isinstance(message, dict) else None


def without_reply(response: Mapping[str, Any], left: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a response without the message in its first choice.

    Args:
        response: one in which `reply_in` finds a message.
        left: what is to stand in the message's place; None, or an empty one, for nothing.
    """
    first, *others = response["choices"]
    bare = {name: value for name, value in first.items() if name != "message"}
    return {**response, "choices": [{**bare, "message": left} if left else bare, *others]}
