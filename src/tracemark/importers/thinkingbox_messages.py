"""Messages of ThinkingBox become steps: what one call of the model gave stands in several messages in a row.

A text with the tag `think` is reasoning, and belongs to the text or the calls behind it; calls behind a text belong to
it. Another text, a response or a message of the user ends a reply. A text with the tag `direct` was made by the program
out of a tool's response: a step that counts no call of the model.
"""

from __future__ import annotations

from typing import Any

from tracemark.importers import supplied
from tracemark.importers.conversation import Conversation, NotMessagesError, UnknownRoleError

_ROLES = ("system", "user", "assistant")
_CALLS = {"ToolCall", "ParallelToolCall"}


def steps(messages: list[Any], repairs: list[str]) -> list[dict[str, Any]]:
    """Return the steps of an attempt; empty for one without messages.

    Args:
        messages: those of the row.
        repairs: gets what is altered on the way.

    Raises:
        UnknownRoleError: for a role that is not known.
        NotMessagesError: for a message of a kind that is not known.
    """
    replies = _Replies(Conversation(repairs))
    for index, message in enumerate(messages):
        place = f"messages/{index}"
        if not isinstance(message, dict):
            raise NotMessagesError(f"{place} is no message")
        replies.add({name: value for name, value in message.items() if name != "T"}, _kind(message, place), place)
    replies.end()
    return replies.conversation.steps


class _Replies:
    """Replies as they are put together of messages."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._open: dict[str, Any] = {}
        """The reply so far, as a chat message; empty for none."""
        self._place = ""

    def add(self, message: dict[str, Any], kind: str, place: str) -> None:
        """Add one message, without the member that tells its kind."""
        if kind in _CALLS:
            self._call(message, kind, place)
        elif kind == "ToolResponse":
            self.end()
            answer = {name: value for name, value in message.items() if name != "id"}
            self.conversation.add({"role": "tool", "tool_call_id": message.get("id"), **_bare(answer)}, place)
        elif message["role"] != "assistant":
            self.end()
            self.conversation.add(_bare(message), place)
        else:
            self._say(message, place)

    def end(self) -> None:
        """End the reply, if there is one."""
        if self._open:
            self.conversation.add({"content": "", **self._open, "role": "assistant"}, self._place)
            self._open = {}

    def _say(self, message: dict[str, Any], place: str) -> None:
        metadata = message.get("metadata")
        tag = metadata.get("tag", "text") if isinstance(metadata, dict) else "text"
        if tag == "direct":
            self.end()
            supplied.mark(self.conversation.add(_bare(message), place), self.conversation.repairs)
            return
        if tag == "think" and isinstance(message.get("content"), str):
            if "content" in self._open or "tool_calls" in self._open:
                self.end()
            said = [self._open["reasoning_content"]] if "reasoning_content" in self._open else []
            self._open["reasoning_content"] = "\n".join([*said, message["content"]])
            self._keep("reasoning_metadata", _beside(message, "role", "content"))
        else:
            if "content" in self._open or "tool_calls" in self._open:
                self.end()
            left = {name: value for name, value in _bare(message).items() if name != "role"}
            if "reasoning_content" in left:
                # thoughts are messages of their own, and these may be others
                left["original_reasoning_content"] = left.pop("reasoning_content")
            self._open.update(left)
        self._place = place

    def _call(self, message: dict[str, Any], kind: str, place: str) -> None:
        calls = message.pop("tool_calls", None) if kind == "ParallelToolCall" else [message]
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise NotMessagesError(f"{place} is no list of calls")
        self._open.setdefault("tool_calls", []).extend(_call(call) for call in calls)
        if kind == "ParallelToolCall":
            self._keep("calls_metadata", _beside(message))
        self._place = place

    def _keep(self, name: str, value: Any) -> None:
        if value:
            self._open.setdefault(name, []).append(value)


def _kind(message: dict[str, Any], place: str) -> str:
    """Return what a message is: it says so, and else its members do."""
    kind = message.get("T")
    if kind is None:
        shapes = (
            ("tool_calls", "ParallelToolCall"),
            ("arguments", "ToolCall"),
            ("role", "Text"),
            ("name", "ToolResponse"),
        )
        kind = next((shape for member, shape in shapes if member in message), None)
    if kind == "Text":
        if message.get("role") not in _ROLES:
            raise UnknownRoleError(f"{place} has the role {str(message.get('role'))[:40]!r}")
    elif kind not in (*_CALLS, "ToolResponse"):
        raise NotMessagesError(f"{place} is a message of the kind {str(kind)[:40]!r}, which is not read")
    return str(kind)


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without metadata that say nothing."""
    return {name: value for name, value in message.items() if name != "metadata" or value not in ({}, {"tag": "text"})}


def _beside(message: dict[str, Any], *placed: str) -> dict[str, Any]:
    """Return what a message says beside its tag and the members that have a place, its metadata among it."""
    rest = {name: value for name, value in message.items() if name not in placed}
    metadata = rest.pop("metadata", None)
    if not isinstance(metadata, dict):
        return rest if metadata is None else {**rest, "metadata": metadata}
    return {**rest, **{name: value for name, value in metadata.items() if name != "tag"}}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call as chat messages have it; one that was not understood is marked as none that was made."""
    rest = {name: value for name, value in _bare(call).items() if name not in ("T", "name", "arguments")}
    metadata = call.get("metadata")
    if isinstance(metadata, dict) and metadata.get("error"):
        rest["original_call"] = metadata["error"]
    return {**rest, "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
