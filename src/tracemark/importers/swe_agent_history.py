"""The two records of a SWE-agent run become one conversation.

`history` holds the messages, as the model saw and wrote them. `trajectory` holds one item for each action: what the
command really gave, the state of the shell, and in newer versions the prompt that was sent. An item belongs to the
reply that it repeats. Replies that the history lacks are of two kinds: the agent asked again and forgot the first
reply, or the run ended with the reply and it was never added. A reply that was asked for again had more in its prompt
than the history in front of it.

Invariants:
- what a template was given is known exactly: an item of the older kind, whose state is JSON text, holds the state in
  front of its action, so the one behind it stands in the next item; a newer one, whose state is an object, holds it;
- a prompt is compared with the history in front of it, and only where it differs is anything of it kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.importers.content import text_of
from tracemark.importers.conversation import Conversation, NotMessagesError
from tracemark.importers.members import keep

_REPEATED = {"response": "content", "thought": "thought", "action": "action"}
_USED = frozenset((*_REPEATED, "observation", "state", "query", "messages"))


class History:
    """The steps of one run.

    Args:
        history: the messages.
        trajectory: the items; empty when there are none.
        repairs: gets what is altered on the way.

    Raises:
        UnknownRoleError: for a role that is not known.
        NotMessagesError: for what is no message, or no item.
    """

    def __init__(self, history: Sequence[Any], trajectory: Sequence[Any], repairs: list[str]) -> None:
        for name, entries in (("history", history), ("trajectory", trajectory)):
            for index, entry in enumerate(entries):
                if not isinstance(entry, dict):
                    raise NotMessagesError(f"{name}/{index} is no object")
        self._history = history
        self._items = trajectory
        self._repairs = repairs
        self._conversation = Conversation(repairs)
        self._known_changes: dict[str, Any] = {}
        self._items_of = _aligned(history, trajectory)
        self._known = set(self._items_of.values())
        self._last: int | None = None
        self.steps = self._conversation.steps
        """The steps so far."""
        self.agent = next((message.get("agent") for message in history if not message.get("is_demo")), None)
        """The name of the agent that speaks first; None when the messages name none."""
        self.others: list[str] = []
        """In words where another agent speaks."""
        for index, message in enumerate(history):
            self._add(index, message)
        self.left = self._rest()
        """Items that belong to no reply, each with its index."""

    def _add(self, index: int, message: Mapping[str, Any]) -> None:
        rest = dict(message)
        agent = rest.pop("agent", None)
        is_demo = bool(rest.get("is_demo"))
        if agent != self.agent:
            rest["agent"] = agent
            if not is_demo and agent is not None and self.agent is not None and len(self.others) < 1:
                self.others.append(
                    f"history/{index}: the agent {str(agent)[:40]!r} speaks, not {str(self.agent)[:40]!r}"
                )
        place, role = f"history/{index}", rest.get("role")
        if role == "tool" or (role == "user" and not is_demo and self._is_observation(rest)):
            step = self._observation(rest, place)
        elif role == "assistant":
            step = self._reply(rest, place, self._items_of.get(index))
        else:
            step = self._conversation.add(rest, place)
        if is_demo:
            step["is_copied_context"] = True
            if step["source"] == "agent" and "reasoning_content" not in step:
                step["llm_call_count"] = 0

    def _is_observation(self, message: Mapping[str, Any]) -> bool:
        if not self.steps or message.get("message_type", "observation") != "observation":
            return False
        last = self.steps[-1]
        return last["source"] == "agent" and "observation" not in last and not last.get("is_copied_context")

    def _reply(self, message: dict[str, Any], place: str, index: int | None) -> dict[str, Any]:
        """Add a reply, with what its item says beside it."""
        blocks = message.get("thinking_blocks")
        if blocks == []:
            del message["thinking_blocks"]
        elif isinstance(blocks, list):
            texts = [
                block["thinking"] for block in blocks if isinstance(block, dict) and _is_text(block.get("thinking"))
            ]
            if texts:
                message.setdefault("reasoning_content", "\n".join(texts))
        if _is_text(message.get("thought")) and message["thought"] == message.get("content"):
            del message["thought"]
        said = {**message, "thought": message.get("thought", message.get("content"))}
        step = self._conversation.add(message, place)
        self._last = index
        if index is not None:
            keep(step, self._beside(index, said, place))
        return step

    def _beside(self, index: int, said: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return what an item says and its reply does not."""
        item = self._items[index]
        found = {name: item[name] for name, own in _REPEATED.items() if name in item and item[name] != said.get(own)}
        found |= {name: value for name, value in item.items() if name not in _USED and value not in (None, {})}
        is_answered = self._is_answered(place)
        is_given = is_answered and isinstance(item.get("state"), dict) and _is_text(item.get("observation"))
        if item.get("state") is not None and not is_given:
            found["state"] = item["state"]
        sent = item.get("query")
        if sent is None and index > 0:
            # the older record is of the messages behind a step: the prompt of the next one
            sent = self._items[index - 1].get("messages")
        if isinstance(sent, list):
            changes = self._changes(sent)
            if changes is not None:
                found["prompt"] = changes
                found["context_management"] = {"type": "history_processor", "boundary": "replace"}
                self._repairs.append("prompts that are not the history in front of them: their differences are kept")
        elif sent is not None:
            found["query"] = sent
        if index > 0 and index - 1 not in self._known:
            # the agent was asked again: what it said first, and why that would not do, stood in its prompt
            found.setdefault("context_management", {"type": "requery", "boundary": "replace"})
        if item.get("observation") not in (None, "") and not is_answered:
            found["unseen_observation"] = item["observation"]
        return found

    def _is_answered(self, place: str) -> bool:
        """Return whether the message behind a reply is its observation."""
        index = int(place.partition("/")[2]) + 1 if place.startswith("history/") else len(self._history)
        follows = self._history[index] if index < len(self._history) else {}
        kind = follows.get("message_type", "observation")
        return follows.get("role") == "tool" or (follows.get("role") == "user" and kind == "observation")

    def _changes(self, sent: Sequence[Any]) -> dict[str, Any] | None:
        """Return how a prompt differs from the history; None when it does not. What was known already is left out."""
        changed = {
            str(index): message
            for index, message in enumerate(sent)
            if index >= len(self._history) or not _is_same(message, self._history[index])
        }
        if not changed:
            return None
        new = {index: message for index, message in changed.items() if self._known_changes.get(index) != message}
        self._known_changes.update(new)
        return {"messages": len(sent), "changed": new} if new else {"messages": len(sent)}

    def _observation(self, message: dict[str, Any], place: str) -> dict[str, Any]:
        role = message.pop("role")
        ids = message.pop("tool_call_ids", None)
        if isinstance(ids, list) and ids:
            message.setdefault("tool_call_id", ids[0])
        if ids is not None and not (isinstance(ids, list) and len(ids) == 1):
            message["tool_call_ids"] = ids
        if role != "tool":
            message["original_role"] = role
        step = self._conversation.add({"role": "tool", **message}, place)
        given, self._last = self._given(self._last), None
        if given is not None:
            step["observation"]["results"][-1].setdefault("extra", {})["raw_output"] = given
        return step

    def _given(self, index: int | None) -> dict[str, Any] | None:
        """Return what the observation of an item was made from, by the names by which a template asks for it."""
        if index is None or not _is_text(self._items[index].get("observation")):
            return None
        state = self._items[index].get("state")
        if isinstance(state, str):
            state = _state(self._items[index + 1].get("state")) if index + 1 < len(self._items) else None
        variables = state if isinstance(state, dict) else {}
        return {**variables, "observation": self._items[index]["observation"]}

    def _rest(self) -> list[dict[str, Any]]:
        """Add replies that ended the run as steps; return the other items that belong to none."""
        end = max(self._known, default=-1)
        has_calls = any("tool_calls" in step for step in self.steps)
        left = []
        for index, item in enumerate(self._items):
            if index in self._known:
                continue
            if index < end or not (_is_text(item.get("response")) and _is_text(item.get("action")) and item["action"]):
                left.append({"index": index, **self._without_prompt(item)})
                continue
            message = {"role": "assistant", "content": item["response"], "action": item["action"]}
            if has_calls:
                # the text is all that is known of the reply, and it is not all that was written
                message["original_tool_calls"] = {"action": item["action"]}
            self._reply(message, f"trajectory/{index}", index)
            self._repairs.append("replies that the history lacks at its end: taken from the trajectory")
        return left

    def _without_prompt(self, item: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in item.items() if name not in ("query", "messages")}
        for name in ("query", "messages"):
            changes = self._changes(item[name]) if isinstance(item.get(name), list) else None
            if changes is not None:
                found["prompt"] = changes
        return found


def _aligned(history: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return which item belongs to which reply: index in the history to index in the trajectory, both ascending.

    An item belongs to the next reply that it repeats, in its text or in its action.
    """
    replies = [
        index
        for index, message in enumerate(history)
        if message.get("role") == "assistant" and not message.get("is_demo")
    ]
    found: dict[int, int] = {}
    position = 0
    for index, item in enumerate(items):
        if position == len(replies):
            break
        message = history[replies[position]]
        action = item.get("action")
        if item.get("response") == message.get("content") or (action and action == message.get("action")):
            found[replies[position]] = index
            position += 1
    return found


def _is_same(one: Any, other: Mapping[str, Any]) -> bool:
    return isinstance(one, dict) and one.get("role") == other.get("role") and _text(one) == _text(other)


def _text(message: Mapping[str, Any]) -> str:
    return text_of(message.get("content"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _state(text: Any) -> Any:
    """Return the state that an item of the older kind holds; None when it holds none."""
    try:
        return digest.loads(text.encode("utf-8", "surrogatepass")).value if isinstance(text, str) else None
    except digest.NotJSONError:
        return None
