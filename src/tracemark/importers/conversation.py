"""Chat messages become the steps of a trajectory.

A message is a step; a tool's answer is an observation of the agent step in front of it. Whatever a step has no place
for is kept in its `extra`, and what had to be read in a special way is named in `repairs`:
- content: text stays text and text parts stay parts; null becomes "" with `extra.original_content` null, an absent one
  "" with `extra.content_missing`; an object or other parts become JSON text, with the original in `extra`;
- arguments: a text is parsed; it is kept verbatim in the call's `extra.arguments` unless the object's canonical JSON is
  that very text. A text that holds no object becomes `{"_raw": text}`;
- call ids: made unique over the conversation, with the original in the call's `extra.original_id`; each answer goes to
  the first call of that id that has none yet;
- a member of a call that its `function` has too, with another value, is kept in `extra.beside_function`;
- an answer to no call of the step in front of it keeps its id in `extra.original_call_id` and stands unlinked where it
  stood.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any

from tracemark import digest
from tracemark.importers.media import IMAGES
from tracemark.importers.members import fill
from tracemark.model.atif import is_timestamp

SPEAKERS = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "model": "agent",
}
"""Role of a message to source of a step."""

ANSWERS = ("tool", "function", "tool_result", "toolResult")
"""Roles of messages that answer a call."""

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Members of a reply that hold the model's reasoning; the first that is a text is it."""

CALLS_AS_TEXTS = "tool calls written as JSON text: read"
"""The note on calls that are each, or all together, a text that holds JSON."""

_PLAIN = ("system", "user", "assistant")
_DEPTH = 3


class UnknownRoleError(ValueError):
    """A role that nobody knows; who spoke is not guessed."""


class NotMessagesError(ValueError):
    """Something that is no list of messages; the message says where."""


def decoded(value: Any, note: str, repairs: list[str]) -> Any:
    """Return a value that may be written as JSON text, up to three times over; `note` is added when it was."""
    if value.__class__ is not str or value[:1] not in ("{", "[", '"'):
        return value
    found: Any = value
    notes = [note]
    for _ in range(_DEPTH):
        if not isinstance(found, str) or found[:1] not in ("{", "[", '"'):
            break
        try:
            read = digest.loads(found.encode("utf-8", "surrogatepass"))
        except digest.NotJSONError:
            return value
        found = read.value
        notes += read.repairs
    if isinstance(found, str):
        return value
    repairs += notes
    return found


class Conversation:
    """Steps as they grow message by message."""

    def __init__(self, repairs: list[str]) -> None:
        self.steps: list[dict[str, Any]] = []
        self.repairs = repairs
        self._ids: set[str] = set()
        self._again: dict[str, int] = {}
        self._open = _NONE_OPEN

    def add(self, message: Any, place: str) -> dict[str, Any]:
        """Add one message; return the step that it became or went to.

        Raises:
            UnknownRoleError: for a role that is not known.
            NotMessagesError: when `message` is no message.
        """
        if message.__class__ is not dict:
            message = decoded(message, "messages written as JSON text: read", self.repairs)
            if not isinstance(message, dict):
                raise NotMessagesError(f"{place} is no message")
        role = message.get("role")
        if len(message) == 2 and role.__class__ is str and role in _PLAIN and message.get("content").__class__ is str:
            # most messages say nothing else
            self._open = _NONE_OPEN
            step: dict[str, Any] = {"step_id": len(self.steps) + 1, "source": SPEAKERS[role]}
            step["message"] = message["content"]
            self.steps.append(step)
            return step
        rest = dict(message)
        rest.pop("role", None)
        if isinstance(role, str) and role in ANSWERS:
            return self._answer(rest, role)
        if not isinstance(role, str) or role not in SPEAKERS:
            raise UnknownRoleError(f"{place} has the role {str(role)[:40]!r}")
        step = {"step_id": len(self.steps) + 1, "source": SPEAKERS[role]}
        extra: dict[str, Any] = {} if role in _PLAIN else {"role": role}
        step["message"] = _content(rest, extra, "content" in message, self.repairs)
        if "timestamp" in rest:
            _timestamp(rest, step, extra)
        if step["source"] == "agent":
            self._agent(rest, step)
        if rest:
            fill(extra, rest)
        if extra:
            step["extra"] = extra
        self.steps.append(step)
        return step

    def _agent(self, rest: dict[str, Any], step: dict[str, Any]) -> None:
        for name in REASONING:
            if name in rest and isinstance(rest[name], str) and "reasoning_content" not in step:
                step["reasoning_content"] = rest.pop(name)
        if isinstance(rest.get("model"), str):
            step["model_name"] = rest.pop("model")
        calls = decoded(rest.pop("tool_calls", None), CALLS_AS_TEXTS, self.repairs)
        calls = list(calls) if isinstance(calls, list) else [] if calls is None else [calls]
        old = rest.pop("function_call", None)
        if old is not None:
            calls.append({"function": old})
        self._open = _Open() if calls else _NONE_OPEN
        if calls:
            step["tool_calls"] = [self._call(call, step["step_id"], number) for number, call in enumerate(calls, 1)]

    def _call(self, call: Any, step_id: int, number: int) -> dict[str, Any]:
        call = decoded(call, CALLS_AS_TEXTS, self.repairs)
        rest = dict(call) if isinstance(call, dict) else {"original_call": call}
        function = decoded(rest.pop("function", None), CALLS_AS_TEXTS, self.repairs)
        extra: dict[str, Any] = {}
        if isinstance(function, dict):
            beside = {name: rest[name] for name in function if rest.get(name) not in (None, "function", function[name])}
            if beside:
                extra["beside_function"] = beside
            rest = {**rest, **function}
        elif function is not None:
            rest["original_function"] = function
        name, said = rest.pop("name", None), rest.pop("id", None)
        arguments = _arguments(rest.pop("arguments", None), extra)
        unique = self._unique(said, f"call_{step_id}_{number}", extra)
        if rest.get("type") == "function":
            del rest["type"]
        if not isinstance(name, str):
            self.repairs.append("a tool call without a name: left empty")
            fill(extra, {"original_name": name})
        fill(extra, rest)
        entry = {"tool_call_id": unique, "function_name": name if isinstance(name, str) else "", "arguments": arguments}
        if extra:
            entry["extra"] = extra
        self._open.add(said if isinstance(said, str) else unique, entry)
        return entry

    def _unique(self, said: Any, fallback: str, extra: dict[str, Any]) -> str:
        name = said if isinstance(said, str) and said else fallback
        if said is not None and name != said:
            extra["original_id"] = said
        if name == fallback:
            self.repairs.append("tool calls without an id: numbered")
        if name in self._ids:
            extra.setdefault("original_id", name)
            self.repairs.append("tool call ids used more than once: made unique")
            number = self._again.get(name, 1) + 1
            while f"{name}#{number}" in self._ids:
                number += 1
            self._again[name] = number
            name = f"{name}#{number}"
        self._ids.add(name)
        return name

    def _answer(self, rest: dict[str, Any], role: str) -> dict[str, Any]:
        """Add an answer to the observation of the agent step in front of it."""
        said, name = rest.pop("tool_call_id", None), rest.get("name")
        extra: dict[str, Any] = {} if role == "tool" else {"role": role}
        result: dict[str, Any] = {}
        call = self._take(said, name, extra)
        if call is not None:
            result["source_call_id"] = call["tool_call_id"]
        elif said is not None:
            extra["original_call_id"] = said
            self.repairs.append("answers to no open call of the step in front of them: left unlinked")
        result["content"] = _content(rest, extra, "content" in rest, self.repairs)
        fill(extra, rest)
        if extra:
            result["extra"] = extra
        if not self.steps or (self.steps[-1]["source"] != "agent" and "observation" not in self.steps[-1]):
            self.repairs.append("answers in front of which no agent spoke: put under an empty system step")
            self.steps.append({"step_id": len(self.steps) + 1, "source": "system", "message": ""})
        self.steps[-1].setdefault("observation", {"results": []})["results"].append(result)
        return self.steps[-1]

    def _take(self, said: Any, name: Any, extra: dict[str, Any]) -> dict[str, Any] | None:
        """Return the call that an answer belongs to, which is then closed; None when there is none."""
        if not self.steps or self.steps[-1]["source"] != "agent":
            return None
        if said is not None:
            return self._open.take("id", said)
        call = self._open.take("name", name) if isinstance(name, str) else self._open.take("any", "")
        if call is not None:
            extra["link"] = "positional"
            self.repairs.append("answers without an id: linked in order")
        return call


class _Open:
    """The calls of one step that have no answer yet, found by id, by name or in order, each at once."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], deque[dict[str, Any]]] = {}
        self._closed: set[int] = set()

    def add(self, said: str, call: dict[str, Any]) -> None:
        """Add a call that its producer named `said`."""
        for key in (("id", said), ("name", call["function_name"]), ("any", "")):
            self._queues.setdefault(key, deque()).append(call)

    def take(self, kind: str, value: Any) -> dict[str, Any] | None:
        """Remove and return the first open call whose id or name is `value`; None when there is none."""
        queue = self._queues.get((kind, value)) if isinstance(value, str) else None
        while queue:
            call = queue.popleft()
            if id(call) not in self._closed:
                self._closed.add(id(call))
                return call
        return None


_NONE_OPEN = _Open()
"""What stands for the calls of a step without any; nothing is ever added to it."""


def _content(rest: dict[str, Any], extra: dict[str, Any], present: bool, repairs: list[str]) -> Any:
    content = rest.pop("content", None)
    if isinstance(content, str):
        return content
    if content is None:
        extra["original_content" if present else "content_missing"] = None if present else True
        return ""
    if isinstance(content, list):
        parts = [_part(part) for part in content]
        if all(part is not None for part in parts):
            if not all(map(_is_plain, content)):
                extra["original_content"] = content
            return parts
    extra["original_content"] = content
    repairs.append("content that is neither text nor text parts: written as JSON text")
    return digest.canonical(content).decode("utf-8")


def _part(part: Any) -> dict[str, Any] | None:
    """Return a part as ATIF has it: text, or an image that stands in the record; None for any other."""
    if not isinstance(part, dict):
        return None
    if part.get("type") in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    image = part.get("image_url") if part.get("type") == "image_url" else None
    url = image.get("url") if isinstance(image, dict) else image
    if isinstance(url, str) and url.startswith("data:image/"):
        kind = url[5:].partition(";")[0]
        if kind in IMAGES:
            return {"type": "image", "source": {"media_type": kind, "path": url}}
    return None


def _is_plain(part: dict[str, Any]) -> bool:
    """Return whether nothing of a part is lost in the form that ATIF gives it."""
    if part["type"] != "image_url":
        return part["type"] == "text" and len(part) == 2
    image = part.get("image_url")
    return len(part) == 2 and isinstance(image, dict) and len(image) == 1


def _arguments(value: Any, extra: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        try:
            parsed = digest.loads(raw)
        except digest.NotJSONError:
            parsed = None
        if parsed is not None and isinstance(parsed.value, dict):
            if digest.canonical(parsed.value) != raw:
                extra["arguments"] = value
            return parsed.value
        extra["arguments"] = value
    return {"_raw": value}


def _timestamp(rest: dict[str, Any], step: dict[str, Any], extra: dict[str, Any]) -> None:
    value = rest.pop("timestamp", None)
    text = time_text(value)
    if text is not None:
        step["timestamp"] = text
    if value is not None and text != value:
        extra["timestamp"] = value


def time_text(value: Any) -> str | None:
    """Return a time as ISO 8601: a text as it stands, a number as seconds since 1970 in UTC; None for neither."""
    if isinstance(value, str):
        return value if is_timestamp(value) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 253_402_300_800:
        return datetime.fromtimestamp(value, UTC).isoformat()
    return None
