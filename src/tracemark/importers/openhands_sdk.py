"""The events of the OpenHands SDK: messages, calls and answers, each of a kind that it names.

A call holds what the model wrote (`tool_call`), and beside it the action that was made of it; calls of one response
name it by `llm_response_id`. What the agent was given besides is its first event (`SystemPromptEvent`): prompt, tools,
and a context of the conversation, which is no part of the harness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.importers.conversation import SPEAKERS, UnknownRoleError
from tracemark.importers.members import fill, mapping, without_null
from tracemark.importers.openhands_story import CONDENSED, UNSEEN, Entry, Story, place_of, texts
from tracemark.importers.openhands_v0 import is_converted

KINDS = frozenset(
    {
        "ActionEvent",
        "AgentErrorEvent",
        "Condensation",
        "ConversationStateUpdateEvent",
        "MessageEvent",
        "ObservationEvent",
        "SystemPromptEvent",
        "UserRejectObservation",
    }
)
"""Kinds of events by which a file is told."""

_NOTES = frozenset(
    {
        "CondensationRequest",
        "ConversationErrorEvent",
        "ConversationIterationLimitEvent",
        "ConversationStateUpdateEvent",
        "HookExecutionEvent",
        "InterruptEvent",
        "LLMCompletionLogEvent",
        "PauseEvent",
        "StateEvent",
        "StreamingDeltaEvent",
        "TokenEvent",
        "WarningEvent",
    }
)
_ANSWERS = {"ObservationEvent": "observation", "AgentErrorEvent": "error", "UserRejectObservation": "rejection_reason"}
_AS_SEEN = frozenset({"FileEditorObservation", "FinishObservation", "StrReplaceEditorObservation", "ThinkObservation"})
_SOURCES = {"user": "user", "agent": "assistant", "environment": "user", "hook": "user"}
_TOTALS = ("full_state", "secret_registry", "stats")
_MADE = "calls known only as the actions that were made of them"
_ROLE = "messages without a role: that of their source"
_NOT_FOUND = object()


@dataclass(slots=True)
class Facts:
    """What the events say beside the conversation."""

    system: dict[str, Any] | None = None
    """Prompt and tools of the first `SystemPromptEvent`; None when there is none."""
    schemas: list[dict[str, Any]] | None = None
    """Its tools, where each is held with its schema; else None."""
    converted: bool = False
    """Whether a call was taken out of the model's text."""
    native: bool = False
    """Whether a call has an id that is not OpenHands' own."""
    made: bool = False
    """Whether a call is known only as the action that was made of it."""
    totals: dict[str, Any] = field(default_factory=dict)
    """The last update of the state by its key, of those that repeat the whole, and of secrets, which are not kept."""
    status: Any = None
    """The last status of the conversation; None when no event says it."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """The error that ended the conversation; empty when there is none."""
    ids: set[str] = field(default_factory=set)
    """Ids of all events."""
    responses: dict[str, Entry] = field(default_factory=dict)
    """The replies by the id of their response."""


class Events:
    """Reads the events of one conversation.

    Args:
        repairs: gets what is altered on the way.
    """

    def __init__(self, repairs: list[str]) -> None:
        self.story = Story(repairs)
        self.facts = Facts()

    def add(self, event: Any) -> None:
        """Add one event.

        Raises:
            UnknownRoleError: when it is not known who spoke.
        """
        if not isinstance(event, dict):
            self.story.note(event)
            return
        kind = event.get("kind")
        if isinstance(event.get("id"), str):
            self.facts.ids.add(event["id"])
        if kind == "SystemPromptEvent":
            self._system(event)
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ActionEvent":
            self._call(event)
        elif isinstance(kind, str) and kind in _ANSWERS:
            self._answer(event, kind)
        elif isinstance(kind, str) and kind in _NOTES:
            self._note(event, kind)
        else:
            self._event(event)

    def _note(self, event: dict[str, Any], kind: str) -> None:
        if kind == "ConversationErrorEvent":
            self.facts.error = event
        key = event.get("key") if kind == "ConversationStateUpdateEvent" else None
        if isinstance(key, str) and key in _TOTALS:
            self.facts.totals[key] = event.get("value")
            return
        if key == "execution_status":
            self.facts.status = event.get("value")
        self.story.note(event)

    def _event(self, event: dict[str, Any]) -> None:
        """Add an event that the model may have seen, in a form that is not known."""
        kind = event.get("kind")
        rest = without_null(event, "kind", "timestamp", "id", "summary")
        summary = event.get("summary")
        body = {"role": "system", "content": summary if isinstance(summary, str) else "", **place_of(event)}
        body |= {"event_type": kind if isinstance(kind, str) else "unknown", "event": rest or None}
        if isinstance(kind, str) and kind.startswith("Condensation"):
            body["context_management"] = CONDENSED
        self.story.add(Entry("event", body))

    def _system(self, event: dict[str, Any]) -> None:
        known = {"system_prompt": event.get("system_prompt"), "tools": event.get("tools")}
        first, change = self.facts.system, None
        if first is not None:
            other = [name for name in known if not digest.equal(first[name], known[name])]
            if not other:
                self.story.note({"id": event.get("id"), "kind": "SystemPromptEvent", "says": "the same again"})
                return
            change = f"another SystemPromptEvent, with another {' and other '.join(other)}"
        else:
            self.facts.system, self.facts.schemas = known, _schemas(known["tools"])
        rest = without_null(event, "kind", "source", "id", "timestamp", "system_prompt", "tools")
        content, left = _content([event.get("system_prompt")])
        body = {"role": "system", "content": content, **left, **place_of(event), "system_event": rest or None}
        if rest.get("dynamic_context") is not None:
            # the model was sent it behind the prompt, as a part of one message
            body[UNSEEN] = True
        if change is not None or self.facts.schemas is None:
            body["tools"] = known["tools"]
        self.story.add(Entry("message", body, change=change))

    def _message(self, event: dict[str, Any]) -> None:
        message, source = mapping(event.get("llm_message")), event.get("source")
        said = message.get("role")
        role = said if isinstance(said, str) and said in SPEAKERS else None
        if said is None and isinstance(source, str):
            role = _SOURCES.get(source)
            self.story.repairs.append(_ROLE)
        if role is None:
            raise UnknownRoleError(f"a MessageEvent of {str(source)[:40]!r} has the role {str(said)[:40]!r}")
        added = event.get("extended_content")
        content, left = _content(message.get("content"), added)
        body = {**without_null(message, "content", "role"), **left, **place_of(event)}
        if isinstance(added, list) and added:
            body["extended_parts"] = len(added)
        if event.get("llm_response_id") is not None:
            body["llm_response_id"] = event["llm_response_id"]
        rest = without_null(event, "kind", "id", "timestamp", "llm_message", "extended_content", "llm_response_id")
        if rest.get("source") in ("user", "agent"):
            del rest["source"]
        body["event"] = {name: value for name, value in rest.items() if value != []} or None
        if SPEAKERS[role] != "agent":
            self.story.add(Entry("message", {**body, "role": role, "content": content}))
            return
        entry = Entry("reply", {**body, "role": role, "content": content}, is_supplied=source not in (None, "agent"))
        self._respond(event, self.story.add(entry))

    def _respond(self, event: Mapping[str, Any], entry: Entry) -> None:
        response = event.get("llm_response_id")
        if isinstance(response, str) and response:
            self.facts.responses[response] = entry

    def _call(self, event: dict[str, Any]) -> None:
        entry = self._reply(event)
        call, action = mapping(event.get("tool_call")), event.get("action")
        said = next((one for one in (event.get("tool_call_id"), call.get("id")) if isinstance(one, str)), None)
        self.facts.converted |= is_converted(said)
        self.facts.native |= said is not None and not is_converted(said)
        said = said or self.story.made_id(event)
        named = (call.get("name"), event.get("tool_name"))
        name = next((one for one in named if isinstance(one, str)), None)
        arguments = call.get("arguments", _NOT_FOUND)
        if arguments is _NOT_FOUND:
            self.story.repairs.append(_MADE)
            self.facts.made = True
            arguments = without_null(mapping(action), "kind")
        left = without_null(call, "id", "name", "arguments")
        calls: list[Any] = entry.body.setdefault("tool_calls", [])
        calls.append({"id": said, "function": {"name": name, "arguments": arguments}, **left})
        known: dict[str, Any] = {"event_id": event.get("id")}
        known |= {"action_args": action} if isinstance(action, dict) else {"action": action}
        known["event"] = without_null(event, *_OF_CALL) or None
        entry.calls[len(calls) - 1] = known
        keys = [f"event {event['id']}"] if isinstance(event.get("id"), str) else []
        self.story.name_call(entry, said, *keys, *([] if said is None else [f"call {said}"]))

    def _reply(self, event: dict[str, Any]) -> Entry:
        """Return the reply that a call is part of: the latest one, if it is of the same response, else a new one."""
        last, response = self.story.last_reply, event.get("llm_response_id")
        content, left = _content(event.get("thought"))
        reply = {name: event[name] for name in _OF_REPLY if event.get(name) not in (None, [])}
        if last is not None and isinstance(response, str) and self.facts.responses.get(response) is last:
            # the first call of a response tells what was thought; what another one tells is kept beside it
            if content not in ("", last.body["content"]):
                reply["thought"] = content
            fill(last.body, {name: value for name, value in reply.items() if last.body.get(name) != value})
            return last
        body = {"role": "assistant", "content": content, **left, **reply, "timestamp": event.get("timestamp")}
        if isinstance(response, str):
            body["llm_response_id"] = response
        entry = self.story.add(Entry("reply", body))
        self._respond(event, entry)
        return entry

    def _answer(self, event: dict[str, Any], kind: str) -> None:
        held = event.get(_ANSWERS[kind])
        body: dict[str, Any] = {"observation_kind": kind, **place_of(event)}
        if kind == "ObservationEvent":
            observation = mapping(held)
            content, left = _content(observation.get("content"), event.get("extended_content"))
            body |= {"content": content, **left, "observation": without_null(observation, "content") or None}
            own = observation.get("kind")
            if not isinstance(own, str) or own not in _AS_SEEN or observation.get("is_error"):
                body[UNSEEN] = True
        else:
            body["content"] = held
            if kind == "UserRejectObservation":
                body[UNSEEN] = True
        rest = without_null(event, *_OF_ANSWER, _ANSWERS[kind])
        body["event"] = {name: value for name, value in rest.items() if value != []} or None
        said, action = event.get("tool_call_id"), event.get("action_id")
        keys = [f"event {action}"] if isinstance(action, str) else []
        if isinstance(said, str):
            body["tool_call_id"] = said
            keys.append(f"call {said}")
        self.story.answer(body, *keys)


_OF_REPLY = ("reasoning_content", "thinking_blocks", "responses_reasoning_item", "reasoning_details")
_OF_CALL = (
    *("kind", "id", "timestamp", "source", "thought", "action", "tool_name", "tool_call_id", "tool_call"),
    *("llm_response_id", *_OF_REPLY),
)
_OF_ANSWER = ("kind", "id", "timestamp", "source", "tool_call_id", "action_id", "extended_content")


def _content(parts: Any, added: Any = None) -> tuple[Any, dict[str, Any]]:
    """Return the content of a message, and what else has to be said of it.

    One text is that text, several are parts; parts of another kind stay beside the texts.
    """
    if not isinstance(parts, list):
        return ("", {"content_missing": True}) if parts is None else (parts, {})
    every = [*parts, *(added if isinstance(added, list) else ())]
    found = texts(every)
    if found is None:
        plain = [part for part in every if texts([part]) is not None]
        return [{"type": "text", "text": part["text"]} for part in plain], {UNSEEN: True, "original_parts": every}
    if len(found) == 1:
        return found[0], {}
    return [{"type": "text", "text": text} for text in found] if found else "", {}


def _schemas(tools: Any) -> list[dict[str, Any]] | None:
    """Return tool definitions that each hold a schema; None when one does not, or when there are none."""
    if not isinstance(tools, list) or not tools:
        return None
    found = []
    for tool in tools:
        held = mapping(mapping(tool).get("function")) or mapping(tool)
        if not (isinstance(held.get("name"), str) and isinstance(held.get("parameters"), dict)):
            return None
        found.append(tool)
    return found
