"""Which events make up a session: they come as a list, in an envelope, as lines, or as files of their own.

A row of an evaluation is an envelope too: its `history` holds the events. In old rows each element of it is a pair, of
an action and its observation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.importers.base import Document, Record, Refused, refuse
from tracemark.importers.documents import SEVERAL, documents
from tracemark.importers.head import Head
from tracemark.importers.openhands_sdk import KINDS

HISTORY = "history"
"""The member of a row that holds its events."""

ENVELOPES = ("items", "events", "trajectory")
"""Members that hold the events of a session, in objects that are no rows."""

_SOURCES = ("agent", "user", "environment")
_NUMBERED = re.compile(r"(?P<session>.*?)(?P<number>\d+)\.json")
_OF_SDK = re.compile(r"event-\d+-.+\.json")
_OF_ROW = ("instance_id", "test_result", "git_patch", "instruction")
_BROKEN = "lines that are no JSON: left out"


class Session(NamedTuple):
    """The events of one session."""

    events: list[Any]
    rest: dict[str, Any]
    """What else its envelope holds."""
    is_row: bool
    """Whether it is a row of an evaluation."""
    of_sdk: bool
    """Whether the events are those of the SDK."""


def is_event(value: Any) -> bool:
    """Return whether a value is an event, of either generation."""
    return is_sdk_event(value) or _is_old_event(value)


def is_sdk_event(value: Any) -> bool:
    """Return whether a value is an event of the SDK, of a kind that is known."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return False
    return value["kind"] in KINDS and ("id" in value or "timestamp" in value)


def is_row(value: Any) -> bool:
    """Return whether a value is a row of an evaluation."""
    if not isinstance(value, dict) or not isinstance(value.get(HISTORY), list):
        return False
    return any(name in value for name in _OF_ROW) and _holds_events(value[HISTORY])


def is_state(head: Head) -> bool:
    """Return whether a file is the state of a conversation, which stands beside its events."""
    members = head.members
    return members.get("agent") == "{" and "execution_status" in members and members.get("workspace") == "{"


def session_of(value: Any) -> Session | None:
    """Return the session that a value holds; None when it holds no event."""
    rest: dict[str, Any] = {}
    row = is_row(value)
    events = value
    if isinstance(value, dict) and not is_event(value):
        member = HISTORY if row else next((name for name in ENVELOPES if isinstance(value.get(name), list)), "")
        rest, events = dict(value), value.get(member)
        rest.pop(member, None)
    elif isinstance(value, dict):
        events = [value]
    if not isinstance(events, list) or not (row or _holds_events(events)):
        return None
    flat = [one for event in events for one in (event if isinstance(event, list) else (event,))]
    first = next(filter(is_event, flat), None)
    return Session(flat, rest, row, is_sdk_event(first))


def sure(head: Head) -> bool:
    """Return whether a file holds a session, or events of one, by its beginning."""
    value = head.value
    if value is not None:
        rows = isinstance(value, list) and bool(value) and is_row(value[0])
        return rows or is_row(value) or session_of(value) is not None
    members = head.members
    if members.get(HISTORY) == "[":
        return any(name in members for name in _OF_ROW) and "metadata" in members
    is_old = members.get("source") == '"' and ("action" in members or "observation" in members)
    is_new = members.get("kind") == '"' and "timestamp" in members and members.get("source") == '"'
    return "id" in members and (is_old or is_new)


def gathered(name: str, head: Head) -> str | None:
    """Return the session that a file of one event is part of, as its name tells; None for any other file."""
    if head.lines or not is_event(head.value):
        return None
    if is_sdk_event(head.value):
        return "sdk" if _OF_SDK.fullmatch(name) else None
    numbered = _NUMBERED.fullmatch(name)
    return None if numbered is None else f"events {numbered['session']}"


def read(record: Record) -> Iterator[Document | Refused]:
    """Yield the documents of a record: one event behind the other are one document, a list of them.

    Lines that are no JSON are refused, and the document says that they are missing.
    """
    lines = record.raw.split(b"\n")
    events: list[Any] = []
    broken: list[Refused] = []
    repairs: list[str] = []
    for number, line in enumerate(lines if len(lines) > 1 else (), 1):
        if not line.strip():
            continue
        try:
            decoded = digest.loads(line.strip())
        except digest.NotJSONError as error:
            if not events:
                break
            code = "record-truncated" if number == len(lines) and record.last else "record-not-json"
            where = Document(None, line, f"{record.where}:{number}", ())
            broken.append(refuse(code, where, f"an event that is no JSON: {error} ({len(line)} bytes)"))
            continue
        events.append(decoded.value)
        repairs += decoded.repairs
    if len(events) > 1 and _holds_events(events):
        yield from broken
        notes = (*record.repairs, *repairs, *([_BROKEN] if broken else []))
        yield Document(events, record.raw, record.where, tuple(dict.fromkeys(notes)))
        return
    found = list(documents(record))
    values = [one.value for one in found if isinstance(one, Document)]
    if len(values) < 2 or not all(map(is_event, values)):
        yield from found
        return
    yield from (one for one in found if isinstance(one, Refused))
    said = dict.fromkeys(note for one in found if isinstance(one, Document) for note in one.repairs)
    # files of single events are several values, and nothing is repaired by reading them so
    yield Document(values, record.raw, record.where, tuple(note for note in said if note != SEVERAL))


def _is_old_event(value: Any) -> bool:
    if not isinstance(value, dict) or not (isinstance(value.get("action"), str) or _is_observation(value)):
        return False
    told = value.get("source") in _SOURCES or (value.get("source") is None and "message" in value)
    return told and ("id" in value or "timestamp" in value or "args" in value or "extras" in value)


def _is_observation(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("observation"), str) and "content" in value


def _holds_events(values: list[Any]) -> bool:
    """Return whether a list holds events, or pairs of them; what else stands in it is looked at when it is read."""
    firsts = (value[0] if isinstance(value, list) and value else value for value in values[:50])
    return any(map(is_event, firsts))
