"""The calls of one agent become the steps of one conversation.

Every request holds the whole history again. Of each, what is new is added, then the reply; the history is known again
by who spoke, the text, and the calls (`otel_parts.Message.key`).

Invariants:
- a reply counts as the model's own only where the span of a call returned it: what stands in a history alone is marked
  `is_copied_context` and counts no call;
- where a request does not go on from the one before, that is said in `mixed`: what stands in front of such a reply is
  not what the model was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from tracemark import digest
from tracemark.importers import recovery
from tracemark.importers.conversation import Conversation, UnknownRoleError
from tracemark.importers.otel_calls import Call
from tracemark.importers.otel_facts import decorate
from tracemark.importers.otel_parts import Message, is_reply, is_system
from tracemark.importers.otel_spans import Span
from tracemark.importers.otel_values import plain, time_of

_RESULT = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_NAME = ("gen_ai.tool.name", "tool.name", "tool_call.function.name", "traceloop.entity.name")


class Steps:
    """One conversation as it grows call by call.

    Args:
        repairs: gets a note of each thing that was read in a special way.
        instructions: what the agent's span says for calls that record no instructions; empty for nothing.
    """

    def __init__(self, repairs: list[str], instructions: Sequence[Message] = ()) -> None:
        self.conversation = Conversation(repairs)
        self.mixed: list[str] = []
        """Where another prompt, other tools or another history were at work, in words."""
        self.calls: list[Call] = []
        """The calls, in order."""
        self.silent: list[Call] = []
        """Those of them that returned nothing that is recorded."""
        self.tools: list[Any] | None = None
        """The first tools that a call records."""
        self.is_whole = False
        """Whether they are recorded with all that a model was told of them."""
        self._offered: bytes | None = None
        self._system: list[Message] = list(instructions)
        self.keys: list[tuple[Any, ...]] = []
        """By what the messages are known that a next request is expected to begin with."""
        self.seen: set[tuple[Any, ...]] = set()
        """By what every message is known that was sent or came back."""
        self.replied: dict[int, dict[str, Any]] = {}
        """The step that a call returned, by the identity of the call's span."""

    def add(self, call: Call) -> None:
        """Add what is new in a request, and the reply to it."""
        full, place = self._full(call), f"the span {call.span.span_id or call.span.name}"
        first, number = not self.calls, len(self.conversation.steps) + 1
        self._system = call.system if call.system is not None else self._system
        same = self._same(full)
        if not call.sent and not first:
            new, full = [], []
        elif same < len(self.keys) and not first:
            new = [one for one in full[same:] if one.key not in self.seen]
            self._say_rewritten(full, number)
        else:
            new = full[same:]
        for one in new:
            self._copy(one.add_to(self.conversation, place), one)
        if full:
            self.keys = [one.key for one in full]
        self.seen.update(self.keys)
        self.calls.append(call)
        self.conversation.repairs += call.span.notes
        step = self._reply(call, place, is_known=bool(call.sent))
        self._compare_tools(call, step, number)

    def _full(self, call: Call) -> list[Message]:
        if call.system is not None:
            return [*call.system, *call.sent]
        return [*self._system, *call.sent] if call.sent and not is_system(call.sent[0].chat) else call.sent

    def _same(self, full: Sequence[Message]) -> int:
        same = 0
        for one, key in zip(full, self.keys, strict=False):
            if one.key != key:
                break
            same += 1
        return same

    def _say_rewritten(self, full: Sequence[Message], number: int) -> None:
        before = [key for key in self.keys if key[0] == "system"]
        if [one.key for one in full if is_system(one.chat)] != before:
            self.mixed.append(f"step {number}: another system prompt than in the call before")
        else:
            self.mixed.append(f"step {number}: the model was sent other messages than stand in front of it")

    def _copy(self, step: dict[str, Any], message: Message) -> None:
        """Mark what stands in a history as a reply, and came from no call that is recorded."""
        if step["source"] != "agent" or not is_reply(message.chat):
            return
        step["is_copied_context"] = True
        step["llm_call_count"] = 0
        for name in ("reasoning_content", "metrics"):
            if name in step:
                step.setdefault("extra", {})[name] = step.pop(name)

    def _reply(self, call: Call, place: str, *, is_known: bool) -> dict[str, Any] | None:
        if not call.replies:
            self.silent.append(call)
            return None
        reply, *others = call.replies
        if not is_reply(reply.chat):
            role = reply.chat.get("role") if isinstance(reply.chat, dict) else None
            raise UnknownRoleError(f"{place} returned a message of the role {str(role)[:40]!r}")
        step = reply.add_to(self.conversation, place)
        self.keys = [*self.keys, reply.key]
        self.seen.add(reply.key)
        if not is_known:
            step["is_copied_context"] = True
            self.conversation.repairs.append("replies to requests that are not recorded: marked as copied context")
        self.replied[id(call.span)] = step
        decorate(step, call, self.calls[0], [one.chat for one in others])
        return step

    def _compare_tools(self, call: Call, step: dict[str, Any] | None, number: int) -> None:
        if call.tools is None:
            return
        offered = recovery.tools_key(call.tools)
        if self.tools is None:
            self.tools, self.is_whole, self._offered = call.tools, call.is_whole, offered
        elif offered != self._offered:
            place = number if step is None else step["step_id"]
            self.mixed.append(f"step {place}: other tools than in the call before")
            self._offered = offered
            if step is not None:
                step.setdefault("extra", {})["tools_offered"] = call.tools


class Tools:
    """The calls of tools in some conversations, found by the spans that ran them.

    Args:
        steps: the steps of all conversations of a run.
    """

    def __init__(self, steps: Iterable[dict[str, Any]]) -> None:
        self._by_id: dict[str, deque[tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._by_name: dict[str, deque[tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._used: set[int] = set()
        for step in steps:
            if step.get("is_copied_context"):
                continue
            for call in step.get("tool_calls", ()):
                name = call.get("extra", {}).get("original_id", call["tool_call_id"])
                if isinstance(name, str):
                    self._by_id.setdefault(name, deque()).append((step, call))
                self._by_name.setdefault(call["function_name"], deque()).append((step, call))

    def add(self, span: Span) -> dict[str, Any] | None:
        """Add what a tool's span holds to its call and to the answer; return the answer, None for an unknown call."""
        name, said = span.get(*_NAME), span.get(*_CALL_ID)
        found = self._take(self._by_id, said) if said is not None else self._take(self._by_name, name)
        if found is None:
            return None
        step, call = found
        result = next(
            (
                one
                for one in step.get("observation", {"results": ()})["results"]
                if one.get("source_call_id") == call["tool_call_id"]
            ),
            None,
        )
        raw = span.take(*_RESULT)
        if result is None:
            result = {"source_call_id": call["tool_call_id"]}
            if raw is not None:
                result["content"] = raw if isinstance(raw, str) else digest.canonical(raw).decode("utf-8")
                result["extra"] = {"from": "the tool's span"}
            step.setdefault("observation", {"results": []})["results"].append(result)
        elif raw is not None:
            result.setdefault("extra", {})["raw_output"] = raw
        if span.failed:
            result.setdefault("extra", {})["is_error"] = True
        call.setdefault("extra", {})["span"] = described(span)
        return result

    def _take(self, queues: dict[str, deque[tuple[dict[str, Any], dict[str, Any]]]], key: Any) -> Any:
        queue = queues.get(key) if isinstance(key, str) else None
        while queue:
            found = queue.popleft()
            if id(found[1]) not in self._used:
                self._used.add(id(found[1]))
                return found
        return None


def described(span: Span) -> dict[str, Any]:
    """Return what is left of a span, with the time at which it began in words."""
    found = span.rest()
    start = time_of(span.start)
    return found if start is None else {"start": start, **found}


def text_of_attribute(span: Span, *names: str) -> str | None:
    """Take the first of the attributes that is a text and not empty; None for none."""
    for name in names:
        value = plain(span.raw.get(name))
        if isinstance(value, str) and value:
            del span.raw[name]
            return value
    return None
