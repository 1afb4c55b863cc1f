"""The events of OpenHands before its SDK: actions, and the observations that they cause.

An action that a reply of the model called for carries the whole response, and so does its observation, and so do all
actions of one response: the reply is taken from it, once. Sessions of older versions carry none, and then the call is
known only as the action that was made of it.

Between the action `delegate` and its observation another agent acts in the same stream: its events are its own story.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.importers.completion import reply_in
from tracemark.importers.conversation import UnknownRoleError
from tracemark.importers.members import fill, mapping, without_null
from tracemark.importers.openhands_story import CONDENSED, UNSEEN, Entry, Story, place_of
from tracemark.importers.usage import metrics_of

DELEGATED = "delegated_to"
"""Mark in the `extra` of an answer: the id of the trajectory of the agent that gave it."""

CONVERTED = re.compile(r"toolu_\d{2,}")
"""Id that OpenHands gives to a call which it took out of a reply's text, for a model without calls of its own."""

_NOTES = frozenset(
    {"agent_state_changed", "change_agent_state", "condensation_request", "loop_recovery", "null", "recall", "stats"}
)
_OF_PROGRAM = frozenset(
    {
        "blocking",
        "confirmation_state",
        "hidden",
        "include_extra",
        "is_confirmed",
        "is_static",
        "keep_prompt",
        "kernel_init_code",
        "security_risk",
        "thought",
    }
)
_AS_SEEN = frozenset({"read", "task_tracking", "think"})
_IDENTITY = ("content", "tools", "openhands_version", "agent_class")
_DEEPEST = 20
_MADE = "calls known only as the actions that were made of them"


@dataclass(slots=True)
class Facts:
    """What the events of one agent say beside its conversation."""

    system: dict[str, Any] | None = None
    """Prompt, tools, version and class of the agent, of its first event `system`; None when there is none."""
    models: list[str] = field(default_factory=list)
    """The models that replied, each once."""
    converted: bool = False
    """Whether a call was taken out of the model's text."""
    native: bool = False
    """Whether a call has an id that is not OpenHands' own."""
    made: bool = False
    """Whether a call is known only as the action that was made of it."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """The last running total of usage and cost."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """`extras` of the last change of the agent's state."""
    children: list[Events] = field(default_factory=list)
    """The agents that it delegated to."""


class Events:
    """Reads the events of one agent.

    Args:
        repairs: gets what is altered on the way.
        returning: ids of the actions `delegate` that have an observation.
        name: id of the agent's trajectory, and its class; None for the agent of the session.
    """

    def __init__(self, repairs: list[str], returning: frozenset[str], name: tuple[str, str] | None = None) -> None:
        self.story = Story(repairs)
        self.facts = Facts()
        self.name = name
        self._returning = returning
        self._child: tuple[Events, str] | None = None
        self._closed: Events | None = None
        self._depth = 0
        self._replies: dict[str, tuple[Entry, Any]] = {}

    def add(self, event: Any) -> None:
        """Add one event.

        Raises:
            UnknownRoleError: when it is not known whose action it is.
        """
        if self._child is not None:
            child, key = self._child
            if not (isinstance(event, dict) and event.get("observation") == "delegate" and _cause(event) == key):
                child.add(event)
                return
            self._child, self._closed = None, child
        if not isinstance(event, dict):
            self.story.note(event)
        elif isinstance(event.get("action"), str):
            self._action(event)
        elif isinstance(event.get("observation"), str):
            self._observation(event)
        else:
            self.story.note(event)

    def _action(self, event: dict[str, Any]) -> None:
        kind, source, args = event["action"], event.get("source"), mapping(event.get("args"))
        if isinstance(event.get("llm_metrics"), dict):
            self.facts.metrics = event["llm_metrics"]
        if kind in _NOTES:
            self.story.note(_bare(event))
        elif kind == "condensation":
            self._condensation(event, args)
        elif kind == "system":
            self._system(event, args)
        elif kind == "message" and source in ("user", "agent"):
            self._message(event, args)
        elif source == "agent":
            self._call(event, args)
        elif source in ("user", "environment"):
            self._others(event, args)
        else:
            raise UnknownRoleError(f"an action {kind[:40]!r} has the source {str(source)[:40]!r}")

    def _system(self, event: dict[str, Any], args: Mapping[str, Any]) -> None:
        known = {name: args.get(name) for name in _IDENTITY}
        first = self.facts.system
        if first is not None and digest.equal(first, known):
            self.story.note({"id": event.get("id"), "action": "system", "says": "the same again"})
            return
        rest = {**place_of(event), "args": without_null(args, *_IDENTITY) or None}
        change = None
        if first is None:
            self.facts.system = known
        else:
            other = [name for name in _IDENTITY if not digest.equal(first[name], known[name])]
            change = f"another event `system`, with other {', '.join(other)}"
            rest.update({name: known[name] for name in other if name != "content"})
        self.story.add(Entry("message", {"role": "system", **_content(args), **rest}, change=change))

    def _message(self, event: dict[str, Any], args: Mapping[str, Any]) -> None:
        body = {**_content(args), **place_of(event), "args": without_null(args, "content") or None}
        if event["source"] == "user":
            images = args.get("image_urls")
            if images:
                body[UNSEEN] = True
            self.story.add(Entry("message", {"role": "user", **body}))
            return
        response = _response(event)
        if response is None:
            self.story.add(Entry("reply", {"role": "assistant", **body}))
        else:
            self._reply(event, response)

    def _condensation(self, event: dict[str, Any], args: Mapping[str, Any]) -> None:
        summary = args.get("summary")
        body = {"role": "system", "content": summary if isinstance(summary, str) else "", **place_of(event)}
        body |= {"event_type": "condensation", "context_management": CONDENSED, "args": without_null(args, "summary")}
        self.story.add(Entry("event", body))

    def _others(self, event: dict[str, Any], args: Mapping[str, Any]) -> None:
        """Add what a user or the environment did: the model saw a text about it that no event holds."""
        kind = event["action"]
        if event["source"] == "user":
            call = {"function_name": kind, "arguments": dict(args)}
            body = {"role": "user", "content": "", UNSEEN: True, "user_tool_calls": [call], **place_of(event)}
        else:
            body = {"role": "system", "content": "", "event_type": kind, "args": without_null(args), **place_of(event)}
        self.story.name_call(self.story.add(Entry("event", body)), None, *_keys(event.get("id"), None, None))

    def _call(self, event: dict[str, Any], args: Mapping[str, Any]) -> None:
        response, metadata = _response(event), mapping(event.get("tool_call_metadata"))
        said = metadata.get("tool_call_id")
        if response is None:
            said = said or self.story.made_id(event)
            entry = self._made(event, args, metadata, said)
        else:
            entry = self._reply(event, response, acts=said)
        position = _position(entry.body.get("tool_calls"), said)
        if position is None:
            # a response that does not hold the call that was made
            fill(entry.body, {"action": _bare(event)})
        else:
            known = {"action": event["action"], "event_id": event.get("id"), "action_args": args}
            known["event"] = without_null(event, *_COMMON, "timestamp", "id") or None
            entry.calls.setdefault(position, {}).update(known)
        self.story.name_call(entry, said, *_keys(event.get("id"), metadata.get("tool_call_id"), response))
        if event["action"] == "delegate" and _key(event.get("id")) in self._returning and self._depth < _DEEPEST:
            number = len(self.facts.children) + 1
            child = Events(self.story.repairs, self._returning, (f"delegate-{number}", str(args.get("agent"))))
            child._depth = self._depth + 1
            self.facts.children.append(child)
            self._child = child, _key(event["id"])

    def _made(self, event: dict[str, Any], args: Mapping[str, Any], metadata: Mapping[str, Any], said: Any) -> Entry:
        """Return the reply of which only the action is known that was made of it."""
        self.story.repairs.append(_MADE)
        self.facts.made = True
        name = metadata.get("function_name")
        arguments = {name: value for name, value in args.items() if name not in _OF_PROGRAM}
        call = {
            "id": said,
            "function": {"name": name if isinstance(name, str) else event["action"], "arguments": arguments},
        }
        body = {"role": "assistant", "content": args.get("thought"), "tool_calls": [call], **place_of(event)}
        return self.story.add(Entry("reply", body))

    def _reply(self, event: dict[str, Any], response: dict[str, Any], acts: Any = None) -> Entry:
        """Return the reply that a response is, which is added unless an event before it was of the same response.

        Args:
            event: carries the response.
            response: what the model replied.
            acts: id of the call that the event acts on; None where it does not act.
        """
        named = response.get("id")
        key = named if isinstance(named, str) and named else digest.of(response["choices"])
        known = self._replies.get(key)
        if known is not None and known[1] == response["choices"]:
            # what has no id, and says the same again, is another one once the call was acted on
            is_again = key != named and _position(known[0].body.get("tool_calls"), acts) in known[0].calls
            if not is_again:
                return known[0]
        message = response["choices"][0]["message"]
        body = {**message, "role": "assistant", **without_null({"timestamp": event.get("timestamp")})}
        body["response"] = _left(response) or None
        model = response.get("model")
        if isinstance(model, str):
            body["model"] = model
            self.facts.models += [model] if model not in self.facts.models else []
        entry = Entry("reply", body, metrics=metrics_of(response.get("usage")))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            own = mapping(call).get("id")
            self.facts.converted |= is_converted(own)
            self.facts.native |= isinstance(own, str) and not is_converted(own)
        self._replies[key] = entry, response["choices"]
        return self.story.add(entry)

    def _observation(self, event: dict[str, Any]) -> None:
        kind, metadata = event["observation"], mapping(event.get("tool_call_metadata"))
        extras = mapping(event.get("extras"))
        if kind == "agent_state_changed":
            self.facts.state = extras
        if kind in _NOTES - {"recall"}:
            self.story.note(_bare(event))
            return
        body = {**_content(event), "observation": kind, "extras": without_null(extras), **place_of(event)}
        body["event"] = without_null(event, *_COMMON, *_OF_RESULT) or None
        cause = _cause(event)
        response = _response(event)
        if kind in ("recall", "condense") or (cause is None and not metadata):
            body["event_type"] = kind
            if kind == "condense":
                body["context_management"] = CONDENSED
            self.story.add(Entry("event", {**body, "role": "system"}))
            return
        if kind not in _AS_SEEN:
            body[UNSEEN] = True
        said = metadata.get("tool_call_id")
        if response is not None and isinstance(said, str):
            # where the action is not there, what it answers is known all the same
            self.story.name_call(self._reply(event, response), said, f"{response.get('id')}/{said}")
        if cause is None and "cause" in event and event["cause"] is not None:
            body["cause"] = event["cause"]
        given = self.story.answer({"tool_call_id": said, **body}, *_keys(cause, said, response))
        closed, self._closed = self._closed, None
        if given is not None and closed is not None and closed.name is not None:
            given.answers[-1][DELEGATED] = closed.name[0]


_COMMON = ("source", "message", "action", "args", "tool_call_metadata", "llm_metrics")
_OF_RESULT = ("id", "timestamp", "content", "extras", "cause", "observation")


def is_converted(said: Any) -> bool:
    """Return whether the id of a call is one that OpenHands gave it when it took the call out of a text."""
    return isinstance(said, str) and CONVERTED.fullmatch(said) is not None


def delegations(events: Iterable[Any]) -> frozenset[str]:
    """Return the ids of the actions `delegate` that have an observation."""
    found = (event for event in events if isinstance(event, dict) and event.get("observation") == "delegate")
    return frozenset(cause for event in found if (cause := _cause(event)) is not None)


def _key(value: Any) -> str:
    return str(value)


def _cause(event: Mapping[str, Any]) -> str | None:
    """Return the id of the event that caused an observation; None when it names none."""
    cause = event.get("cause")
    return _key(cause) if isinstance(cause, (int, str)) and not isinstance(cause, bool) and cause != -1 else None


def _keys(event: Any, said: Any, response: Mapping[str, Any] | None) -> list[str]:
    """Return the names by which an action and its observation find one another, the surest first.

    Args:
        event: id of the action.
        said: id of the call that it was made of.
        response: the response that holds the call.
    """
    keys = [] if event is None else [f"event {_key(event)}"]
    if isinstance(said, str):
        keys += [f"call {said}"] if response is None else [f"{response.get('id')}/{said}", f"call {said}"]
    return keys


def _response(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the response of the model that an event carries, when there is a reply in it."""
    response = mapping(event.get("tool_call_metadata")).get("model_response")
    return response if isinstance(response, dict) and reply_in(response) is not None else None


def _left(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a response says beside the reply, its model and its usage."""
    left = without_null(response, "choices", "model", "usage")
    first, *others = response["choices"]
    bare = without_null(first, "message")
    left["choices"] = [bare, *others] if bare or others else None
    return without_null(left)


def _content(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of something as a message's, which may be null or absent."""
    return {"content": holder["content"]} if "content" in holder else {}


def _bare(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event without the text for the screen, the response and the running totals."""
    return without_null(event, "message", "tool_call_metadata", "llm_metrics")


def _position(calls: Any, said: Any) -> int | None:
    if isinstance(calls, list) and said is not None:
        for position, call in enumerate(calls):
            if isinstance(call, dict) and call.get("id") == said:
                return position
    return None
