"""Whether a request of an Inspect AI log holds what stands in front of its reply.

A sample keeps all of its messages, whatever of them was sent: tools may show an older answer otherwise in later
requests, and agents may send a message that they keep nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracemark.importers.inspect_prompts import texts_of

_KEPT = ("assistant", "tool")


def is_kept(message: Any) -> bool:
    """Return whether a message is a reply or an answer, which no provider joins with others."""
    return isinstance(message, dict) and message.get("role") in _KEPT


def id_of(message: Any) -> str | None:
    """Return the id of a message; None when it has none."""
    name = message.get("id") if isinstance(message, dict) else None
    return name if isinstance(name, str) else None


def merged(messages: Sequence[Any]) -> list[list[str]]:
    """Return who says what in a request, but for line ends and for where a message ends and the next of a role begins.

    Providers join neighbouring messages of one role before they are sent, with line ends between them.
    """
    found: list[list[str]] = []
    for message in messages:
        role = str(message.get("role")) if isinstance(message, dict) else ""
        text = "".join(texts_of(message)).replace("\n", "")
        if found and found[-1][0] == role:
            found[-1][1] += text
        else:
            found.append([role, text])
    return found


def holds(sent: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return whether a message of a request is that of the sample by the same id: its texts and its calls.

    Reasoning is not compared: whether it is sent again is up to the provider. System messages are compared elsewhere,
    and one of the user may have been joined with its neighbours.
    """
    if is_kept(message):
        return _said(sent) == _said(message)
    return asked([message]) in asked([sent])


def behind_replies(messages: Sequence[Any]) -> Sequence[Any]:
    """Return the messages behind the last reply."""
    last = next((at for at in reversed(range(len(messages))) if _is_reply(messages[at])), -1)
    return messages[last + 1 :]


def asked(messages: Sequence[Any]) -> str:
    """Return what the user says in messages, but for line ends and for where one of them ends."""
    return "".join(text for role, text in merged(messages) if role == "user")


def _is_reply(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def _said(message: Mapping[str, Any]) -> tuple[str, list[Any]]:
    calls = message.get("tool_calls")
    made = [
        [call.get("function"), call.get("arguments")] if isinstance(call, dict) else call
        for call in (calls if isinstance(calls, list) else ())
    ]
    return "".join(texts_of(message)), made
