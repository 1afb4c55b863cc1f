"""One model call of a trace: what was sent, what came back, which tools were offered, what it cost.

A span holds its messages in one of five forms, or in several at once: the attributes of the present conventions, those
of OpenInference, numbered attributes, one attribute with all of them, and events. The first of them that is there
counts; another one that says the same is let go of, and one that says something else is kept as it stands.

OpenInference also keeps request and reply as the API had them (`input.value`, `output.value`). They are read in place
of the numbered messages where they hold as many of the same roles, for these leave out sounds, and what was null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tracemark import digest
from tracemark.importers.finish import UnfitError
from tracemark.importers.otel_parts import Message, messages
from tracemark.importers.otel_spans import Span, nested
from tracemark.importers.otel_tools import DEFINITIONS, are_whole, tools_of
from tracemark.importers.otel_values import Lists, elements, is_null, parsed, plain

T = TypeVar("T")

DETAILS = "gen_ai.client.inference.operation.details"
"""Name of the event that holds messages in place of the span."""

REQUEST = "gen_ai.request."
"""Begins the names of the parameters of a request."""

_INVOCATION = "llm.invocation_parameters"
ASKED = ("gen_ai.request.model", "llm.request.model")
"""Attributes that name the model that was asked for."""

_CALLS = ("chat", "text_completion", "generate_content", "completion", "message")
_KINDS = {"LLM": "call", "AGENT": "agent", "TOOL": "tool", "agent": "agent", "tool": "tool"}
_OPERATIONS = {"invoke_agent": "agent", "execute_tool": "tool"} | dict.fromkeys(_CALLS, "call")
_HOLDS = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.completion", "llm.input_messages")
_SENT_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_OF_MESSAGES = frozenset(("role", "content", "parts", "tool_calls", "messages", "text"))
_OF_EVENTS = ("gen_ai.system", "gen_ai.provider.name", "event.name")
_INSTRUCTIONS = "gen_ai.system_instructions"


def kind_of(span: Span) -> str:
    """Return what a span is: `call` of a model, `agent`, `tool`, or `other`."""
    operation = span.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return _OPERATIONS.get(operation, "other")
    said = span.get("openinference.span.kind", "traceloop.span.kind")
    if isinstance(said, str):
        return _KINDS.get(said, "other")
    if span.get("llm.request.type") in _CALLS or any(name.startswith(_HOLDS) for name in span.raw):
        return "call"
    names = {event.name for event in span.events}
    return "call" if names & {*_SENT_EVENTS, _CHOICE, DETAILS, "gen_ai.content.prompt"} else "other"


@dataclass(slots=True)
class Call:
    """One call of a model."""

    span: Span
    system: list[Message] | None
    """Instructions that are recorded apart from the messages; None when none are."""
    sent: list[Message]
    """The messages of the request."""
    replies: list[Message]
    """What came back, one for each choice."""
    tools: list[Any] | None
    """The tools that were offered, as they are recorded; None when nobody says."""
    is_whole: bool
    """Whether the tools are recorded with all that a model was told of them."""
    request: dict[str, Any] = field(default_factory=dict)
    """What else the API's request held."""
    response: dict[str, Any] = field(default_factory=dict)
    """What else the API's reply held."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The parameters of the request, without the model."""
    asked_model: Any = None
    """The model that was asked for; None when none is named."""


class Reader:
    """Reads the calls of one trace: of a history that is sent again and again, each message is read once."""

    def __init__(self) -> None:
        self._raw: list[Any] = []
        self._read: list[list[Message]] = []
        self._lists = Lists()
        self._kept: dict[str, tuple[Any, Any]] = {}

    def call(self, span: Span) -> Call:
        """Read a call; what is read is taken out of the span.

        Raises:
            UnfitError: when messages are recorded in a way that cannot be read.
        """
        details = next((event for event in span.events if event.name == DETAILS), None)
        if details is not None:
            span.events.remove(details)
            for name, value in details.attributes.items():
                span.raw.setdefault(name, value)
        said = _invocation(span)
        tools, is_whole = self._again(DEFINITIONS, span, tools_of)
        if tools is None and isinstance(said.get("tools"), list):
            tools = said.pop("tools")
            is_whole = are_whole(tools)
        request, response = _of_api(span, "input.value", "messages"), _of_api(span, "output.value", "choices")
        sent = self._chosen(span, _sent(span, self._lists), request)
        replies = _replies(span, response)
        call = Call(span, self._again(_INSTRUCTIONS, span, system_of), sent, replies, tools, is_whole)
        model = said.pop("model", None)
        call.asked_model = span.get(*ASKED) or model
        call.asked = _parameters(span, said)
        if request is not None:
            call.request = _left_of_request(request, {"model": call.asked_model, **call.asked}, tools)
        if response is not None:
            call.response = response
        return call

    def _again(self, name: str, span: Span, read: Callable[[Span], T]) -> T:
        """Return what `read` takes of an attribute; what it took before, where the call before said the same."""
        value = span.raw.get(name)
        known = self._kept.get(name)
        if value is not None and known is not None and known[0] == value:
            del span.raw[name]
            kept: T = known[1]
            return kept
        found = read(span)
        if value is not None and name not in span.raw:
            self._kept[name] = value, found
        return found

    def _chosen(
        self, span: Span, forms: Iterator[tuple[str, list[Any]]], request: dict[str, Any] | None
    ) -> list[Message]:
        found: list[Message] | None = None
        for name, raw in forms:
            if found is None:
                raw = _verbatim(name, raw, request)
                found = self._messages(raw)
            elif [one.key for one in messages(plain_all(raw))] != [one.key for one in found]:
                span.raw[f"{name} (other messages)"] = plain_all(raw)
        if found is None and request is not None:
            found = self._messages(request.pop("messages"))
        return found or []

    def _messages(self, raw: list[Any]) -> list[Message]:
        """Return the messages of a request, of which most are those of the one before."""
        same = 0
        for one, known in zip(raw, self._raw, strict=False):
            if one is not known and one != known:
                break
            same += 1
        new = [messages([plain(one)]) for one in raw[same:]]
        self._raw, self._read = raw, self._read[:same] + new
        return [message for read in self._read for message in read]


def plain_all(raw: Sequence[Any]) -> list[Any]:
    """Return the elements of a list without their types."""
    return [plain(one) for one in raw]


def system_of(span: Span) -> list[Message] | None:
    """Take the instructions that a span records apart from its messages; None when it records none."""
    name = _INSTRUCTIONS
    if is_null(span.raw.get(name)):
        return None
    parts = elements(span.raw[name], span.notes)
    text = plain(span.raw[name]) if parts is None else None
    del span.raw[name]
    if parts is not None:
        return messages([{"role": "system", "parts": plain_all(parts)}])
    return messages([{"role": "system", "content": _uncut(text, name, span)}])


def _sent(span: Span, lists: Lists) -> Iterator[tuple[str, list[Any]]]:
    """Yield each form in which the messages of the request are there."""
    yield from _listed(span, "gen_ai.input.messages", "user", lists)
    yield from _numbered(span, "llm.input_messages")
    yield from _numbered(span, "gen_ai.prompt")
    yield from _listed(span, "gen_ai.prompt", "user", lists)
    found = []
    for event in list(span.events):
        if event.name in _SENT_EVENTS:
            found.append(_of_event(event.attributes, _SENT_EVENTS[event.name], span.notes))
        elif event.name == "gen_ai.content.prompt" and "gen_ai.prompt" in event.attributes:
            found += _as_messages(event.attributes["gen_ai.prompt"], "gen_ai.prompt", "user", span)
        else:
            continue
        span.events.remove(event)
    if found:
        yield "events", found


def _returned(span: Span) -> Iterator[tuple[str, list[Any]]]:
    """Yield each form in which the reply is there."""
    yield from _listed(span, "gen_ai.output.messages", "assistant")
    yield from _numbered(span, "llm.output_messages")
    yield from _numbered(span, "gen_ai.completion")
    yield from _listed(span, "gen_ai.completion", "assistant")
    found = []
    for event in list(span.events):
        if event.name == _CHOICE:
            held = parsed(event.attributes.get("message"), span.notes)
            rest = {name: value for name, value in event.attributes.items() if name != "message"}
            body = {**rest, **held} if isinstance(held, dict) else event.attributes
            found.append(_of_event(body, "assistant", span.notes))
        elif event.name == "gen_ai.content.completion" and "gen_ai.completion" in event.attributes:
            found += _as_messages(event.attributes["gen_ai.completion"], "gen_ai.completion", "assistant", span)
        else:
            continue
        span.events.remove(event)
    if found:
        yield "events", found


def _replies(span: Span, response: dict[str, Any] | None) -> list[Message]:
    found: list[Message] | None = None
    for name, raw in _returned(span):
        read = messages(_as_reply(one) for one in plain_all(raw))
        if found is None:
            found = read
        elif [one.key for one in read] != [one.key for one in found]:
            span.raw[f"{name} (other messages)"] = plain_all(raw)
    if response is None:
        return found or []
    first, *others = response["choices"]
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict) or (found is not None and len(found) != len(response["choices"])):
        return found or []
    response["choices"] = [{name: value for name, value in first.items() if name != "message"}, *others]
    response.pop("usage", None)
    return messages([{"role": "assistant", **message}])


def _as_reply(one: Any) -> Any:
    """Return an output with the role that it has by being one."""
    if not isinstance(one, dict):
        return one
    inner = one.get("message")
    if isinstance(inner, dict) and "role" not in one:
        return {"message": {"role": "assistant", **inner}}
    return one if "role" in one else {"role": "assistant", **one}


def _listed(span: Span, name: str, role: str, lists: Lists | None = None) -> Iterator[tuple[str, list[Any]]]:
    """Yield the messages that one attribute holds, and take it out."""
    value = span.raw.get(name)
    if is_null(value):
        return
    found = (lists or Lists()).elements(name, value, span.notes)
    if found is None:
        found = _as_messages(plain(value), name, role, span)
    del span.raw[name]
    yield name, found


def _numbered(span: Span, prefix: str) -> Iterator[tuple[str, list[Any]]]:
    found = nested(span, prefix)
    if found:
        yield prefix, found


def _as_messages(value: Any, name: str, role: str, span: Span) -> list[Any]:
    """Return what stands where messages do: a text, a message, or a completion with its `text`."""
    text, value = value, parsed(value, span.notes)
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [{"role": role, "content": _uncut(value, name, span)}]
    if isinstance(text, str) and isinstance(value, dict) and _OF_MESSAGES.isdisjoint(value):
        # a prompt that is JSON, and no message
        return [{"role": role, "content": text}]
    if isinstance(value, dict):
        if isinstance(value.get("messages"), list):
            return list(value["messages"])
        if isinstance(value.get("text"), str) and "role" not in value:
            rest = {key: one for key, one in value.items() if key != "text"}
            return [{"role": role, "content": value["text"], **rest}]
        return [{"role": role, **value}]
    raise UnfitError(f"{name} of the span {span.span_id or span.name} holds no messages")


def _uncut(text: Any, name: str, span: Span) -> Any:
    """Return a text, unless it begins as JSON does and is none."""
    if isinstance(text, str) and text.startswith(("[{", '{"')):
        raise UnfitError(
            f"{name} of the span {span.span_id or span.name} begins as JSON and is none:"
            " it was cut, perhaps by the exporter's limit of an attribute's length"
        )
    return text


def _of_event(attributes: dict[str, Any], role: str, notes: list[str]) -> dict[str, Any]:
    held = parsed(attributes.get("gen_ai.event.content"), notes)
    body = held if isinstance(held, dict) else attributes
    message = {name: value for name, value in body.items() if name not in _OF_EVENTS}
    message = {"role": role, **message}
    if "tool_calls" in message:
        message["tool_calls"] = parsed(message["tool_calls"], notes)
    if role == "tool" and "id" in message:
        message["tool_call_id"] = message.pop("id")
    return message


def _of_api(span: Span, name: str, needed: str) -> dict[str, Any] | None:
    """Return a request or a reply as the API had it, and take it out of the span; None when it is none of that."""
    text = plain(span.raw.get(name))
    value = parsed(text, span.notes) if isinstance(text, str) and f'"{needed}"' in text else None
    if not isinstance(value, dict) or not isinstance(value.get(needed), list) or not value[needed]:
        return None
    del span.raw[name]
    return dict(value)


def _verbatim(name: str, raw: list[Any], request: dict[str, Any] | None) -> list[Any]:
    """Return the messages of the API's request, where they are those that the span numbers."""
    held = request["messages"] if request is not None and name == "llm.input_messages" else None
    if request is None or held is None or [_role(one) for one in held] != [_role(one) for one in raw]:
        return raw
    del request["messages"]
    return list(held)


def _role(one: Any) -> Any:
    held = one.get("message", one) if isinstance(one, dict) else None
    return held.get("role") if isinstance(held, dict) else None


def _left_of_request(request: dict[str, Any], known: Mapping[str, Any], tools: list[Any] | None) -> dict[str, Any]:
    """Return the members of the API's request that are said nowhere else."""
    if tools is not None and "tools" in request and digest.equal(request["tools"], tools):
        del request["tools"]
    return {name: value for name, value in request.items() if not (name in known and digest.equal(value, known[name]))}


def _invocation(span: Span) -> dict[str, Any]:
    """Take OpenInference's parameters of a request; empty for none."""
    if _INVOCATION not in span.raw:
        return {}
    said = parsed(plain(span.raw[_INVOCATION]), span.notes)
    if not isinstance(said, dict):
        return {}
    del span.raw[_INVOCATION]
    return dict(said)


def _parameters(span: Span, said: Mapping[str, Any]) -> dict[str, Any]:
    found = {name.removeprefix(REQUEST): plain(span.raw[name]) for name in span.under(REQUEST) if name not in ASKED}
    return {name: value for name, value in {**found, **said}.items() if value is not None}
