"""Which calls of a model in an Inspect AI log are the agent's own, and what was sent with each.

A sample's events hold every call that was made while it ran: the agent's, and those of graders, critics, tools and
sub-agents. A call is the agent's own when its reply stands in the sample's messages: under the same message id or, in
logs without ids, with the same content, in order, where the message's source does not deny it. What happens within a
scorer's span (or step, in older logs) never is. So neither the order of events nor a model's name decides.

Invariants:
- texts that were moved out of the way are put back: `attachment://…` (`tc://…` in older logs) from the sample's
  attachments, `input_refs` from its pool of messages;
- a reply counts for one message only, and one that the model did not write is linked to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.importers.completion import reply_in

GENERATED = "generate"
"""The `source` of a message that a model wrote."""

_REFERENCES = ("attachment://", "tc://")
_SCORERS = ("scorer", "scorers")
_MARKS = (b"attachment://", b"tc://")


class Attachments:
    """Texts that a sample holds once, and names elsewhere.

    Args:
        sample: the sample; altered, its attachments are taken out.
        raw: the bytes that it was read from, by which most samples are known to name none.
    """

    def __init__(self, sample: dict[str, Any], raw: bytes) -> None:
        held = sample.pop("attachments", None)
        self._held: Mapping[str, Any] = held if isinstance(held, dict) else {}
        self._is_named = bool(self._held) or any(mark in raw for mark in _MARKS)
        self.missing: set[str] = set()
        """Names under which the sample holds nothing."""

    def put_back(self, value: Any) -> Any:
        """Return a value with the texts in place of their names, at every depth; the argument is not altered."""
        if not self._is_named or not value:
            return value
        if value.__class__ is dict or value.__class__ is list:
            # writing a value and looking for the marks in its bytes is many times faster than walking it
            data = digest.ordered(value, finite=True)
            return self._put_back(value) if _MARKS[0] in data or _MARKS[1] in data else value
        return self._put_back(value)

    def _put_back(self, value: Any) -> Any:
        if value.__class__ is str:
            return self._text(value) if value.startswith(_REFERENCES) else value
        if value.__class__ is list:
            return [self._put_back(element) for element in value]
        if value.__class__ is dict:
            return {name: self._put_back(member) for name, member in value.items()}
        return value

    def _text(self, value: str) -> str:
        name = value.partition("://")[2]
        held = self._held.get(name)
        if isinstance(held, str):
            return held
        if (len(name) == 32 and name.isalnum()) or name.isdecimal():
            self.missing.add(value)
        return value


class Call(NamedTuple):
    """One call of a model that is the agent's own."""

    event: dict[str, Any]
    """The event as the log holds it."""
    message: dict[str, Any]
    """The reply in it, with its texts put back."""


class Calls:
    """The model calls of one sample.

    Args:
        sample: the sample; altered, its events and its pools are taken out.
        attachments: its attachments.
    """

    def __init__(self, sample: dict[str, Any], attachments: Attachments) -> None:
        self._attachments = attachments
        self._pool = _pool(sample)
        events = sample.pop("events", None)
        self.events: list[dict[str, Any]] = (
            [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
        )
        """The events in order; what is no object is left out."""
        self._written: list[str | bytes] = []
        self.spans: dict[str, dict[str, Any]] = {}
        """The events that begin a span, by its id."""
        self._calls = [(event, reply) for event in self._outside_scorers() if (reply := reply_in(event.get("output")))]

    def _outside_scorers(self) -> Iterator[dict[str, Any]]:
        """Yield the model calls outside of every scorer, and note the spans."""
        scoring: set[str] = set()
        steps: list[bool] = []
        for event in self.events:
            kind = event.get("event")
            if kind == "model":
                span = event.get("span_id")
                if not any(steps) and not (isinstance(span, str) and span in scoring):
                    yield event
            elif kind == "span_begin" and isinstance(name := event.get("id"), str):
                self.spans[name] = event
                above = event.get("parent_id")
                is_within = isinstance(above, str) and above in scoring
                if is_within or event.get("type") in _SCORERS or event.get("name") == "scorers":
                    scoring.add(name)
            elif kind == "step":
                if event.get("action") == "begin":
                    steps.append(event.get("type") in _SCORERS)
                elif steps:
                    steps.pop()

    def replies(self) -> Iterator[Call]:
        """Yield every model call outside of scorers, in order."""
        return (Call(event, self._attachments.put_back(reply)) for event, reply in self._calls)

    def of(self, messages: Sequence[Any]) -> list[Call | None]:
        """Return the call that gave each of the messages; None for a message that no call gave."""
        by_id: dict[str, list[int]] = {}
        for index, (_, reply) in enumerate(self._calls):
            if isinstance(reply.get("id"), str):
                by_id.setdefault(reply["id"], []).append(index)
        used: set[int] = set()
        told = any(isinstance(message, dict) and message.get("source") == GENERATED for message in messages)
        return [self._call(message, by_id, used, told) for message in messages]

    def _call(self, message: Any, by_id: Mapping[str, list[int]], used: set[int], told: bool) -> Call | None:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return None
        name, source = message.get("id"), message.get("source")
        if not isinstance(name, str) and source != GENERATED and (told or source is not None):
            # an example may say what the model then says too, and only the source tells which is which
            return None
        found = by_id.get(name, ()) if isinstance(name, str) else self._same(message, max(used, default=-1) + 1)
        for index in found:
            if index not in used:
                used.add(index)
                event, reply = self._calls[index]
                return Call(event, self._attachments.put_back(reply))
        return None

    def _same(self, message: dict[str, Any], start: int) -> Iterator[int]:
        """Yield the calls from `start` on that gave what stands in a message without an id."""
        if not self._written:
            self._written = [written(self._attachments.put_back(reply)) for _, reply in self._calls]
        said = written(message)
        return (index for index in range(start, len(self._calls)) if self._written[index] == said)

    def input_of(self, call: Call) -> list[Any]:
        """Return the messages that were sent with a call, as the log holds them."""
        sent, references = call.event.get("input"), call.event.get("input_refs")
        if sent or not isinstance(references, list):
            return sent if isinstance(sent, list) else []
        found: list[Any] = []
        for pair in references:
            if isinstance(pair, list) and len(pair) == 2 and all(end.__class__ is int and end >= 0 for end in pair):
                found += self._pool[pair[0] : pair[1]]
        return found


def written(message: Mapping[str, Any]) -> str | bytes:
    """Return what a model wrote in a message, as something that is equal for equal replies."""
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        part = content[0]
        content = part["text"] if part.get("type") == "text" and isinstance(part.get("text"), str) else content
    if not calls and isinstance(content, str):
        return content
    made = [
        [call.get("function"), call.get("arguments")] if isinstance(call, dict) else call
        for call in (calls if isinstance(calls, list) else ())
    ]
    return digest.canonical([content, made], finite=True)


def _pool(sample: dict[str, Any]) -> Sequence[Any]:
    """Take out the pools of a sample and return that of messages."""
    data = sample.pop("events_data", None)
    pool = sample.pop("message_pool", None)
    sample.pop("call_pool", None)
    if isinstance(data, dict):
        pool = data.get("messages", pool)
    return pool if isinstance(pool, list) else ()
