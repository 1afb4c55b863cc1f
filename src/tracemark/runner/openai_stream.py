"""A reply of OpenAI's chat API that arrived in pieces, put together as if it had come at once.

Invariants:
- texts are put together as they came, character for character, and calls by their index;
- what is returned has the form of a reply that was not streamed, and a member of a piece that nobody knows is kept;
- a reply is whole when its end was marked, or each of its choices has a reason to have ended; one that was broken off
  is what had arrived until then.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import NotJSONError

_END = "[DONE]"
_ONCE = frozenset({"id", "type", "role", "index"})
"""Members of a piece that are no text that grows, though servers may say them again."""


class Reply(NamedTuple):
    """What one call of the model gave."""

    completion: dict[str, Any] | None
    """The reply as an object of OpenAI's `chat.completion`; None when nothing of one arrived."""
    is_whole: bool
    """Whether its end arrived."""
    error: dict[str, Any] | None = None
    """What the server said in place of the rest; None when it said nothing of that kind."""


def read(raw: bytes) -> Reply:
    """Return the reply that a stream of server-sent events held, up to where `raw` ends."""
    completion: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    ended = False
    for data in _events(raw):
        if data.startswith(_END):
            ended = True
            break
        try:
            chunk = digest.loads(data.encode("utf-8", "surrogatepass")).value
        except NotJSONError:
            # cut in the middle, or nothing that the SDK could read either
            break
        if not isinstance(chunk, dict):
            continue
        if chunk.get("error"):
            error = chunk["error"]
            return Reply(_made(completion, choices), False, error if isinstance(error, dict) else {"message": error})
        _take(chunk, completion, choices)
    finished = bool(choices) and all(choice.get("finish_reason") for choice in choices.values())
    return Reply(_made(completion, choices), ended or finished)


def _events(raw: bytes) -> Iterator[str]:
    """Yield the data of each event that is there whole."""
    # a character that was cut in half at the end is none
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(raw)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    data: list[str] = []
    for line in lines[:-1]:
        if not line:
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    if data and lines[-1] == "":
        # the last event need not be followed by an empty line
        yield "\n".join(data)


def _take(chunk: dict[str, Any], completion: dict[str, Any], choices: dict[Any, dict[str, Any]]) -> None:
    for name, value in chunk.items():
        if name == "object":
            completion["object"] = "chat.completion"
        elif name != "choices" and (value is not None or name not in completion):
            completion[name] = value
    listed = chunk.get("choices")
    for piece in listed if isinstance(listed, list) else ():
        if not isinstance(piece, dict):
            continue
        choice = choices.setdefault(piece.get("index", 0), {"index": piece.get("index", 0), "message": {}})
        for name, value in piece.items():
            if name == "delta" and isinstance(value, dict):
                _grow(choice["message"], value)
            elif name == "logprobs" and isinstance(value, dict):
                choice["logprobs"] = choice.get("logprobs") or {}
                _grow(choice["logprobs"], value)
            elif name != "delta" and (value is not None or name not in choice):
                choice[name] = value


def _grow(owner: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece to what it is a piece of."""
    for name, value in delta.items():
        there = owner.get(name)
        if name == "tool_calls" and isinstance(value, list):
            owner[name] = there or []
            for call in value:
                _call(owner[name], call)
        elif there is None:
            owner[name] = value
        elif value is None or (name in _ONCE and value in (there, "")):
            continue
        elif isinstance(there, str) and isinstance(value, str):
            # a server may say a name again with each piece
            owner[name] = there if name in _ONCE or (name == "name" and value == there) else there + value
        elif isinstance(there, list) and isinstance(value, list):
            owner[name] = [*there, *value]
        elif isinstance(there, dict) and isinstance(value, dict):
            _grow(there, value)
        else:
            owner[name] = value


def _call(calls: list[dict[str, Any]], piece: Any) -> None:
    """Add a piece of a call to the call of its index; without one, an id that is new begins a call.

    Some servers give every call the index 0, and others every piece an id of its own: one with another id *and* a name
    begins a call too.
    """
    if not isinstance(piece, dict):
        return
    index = piece.get("index")
    if index is None:
        begins = not calls or (piece.get("id") and piece["id"] != calls[-1].get("id"))
        index = len(calls) if begins else calls[-1]["index"]
    call = next((each for each in reversed(calls) if each["index"] == index), None)
    function = piece.get("function")
    named = isinstance(function, dict) and function.get("name")
    if call is None or (named and piece.get("id") and call.get("id") and piece["id"] != call["id"]):
        call = {"index": index}
        calls.append(call)
    _grow(call, {name: value for name, value in piece.items() if name != "index"})


def _made(completion: dict[str, Any], choices: dict[Any, dict[str, Any]]) -> dict[str, Any] | None:
    if not choices:
        return None
    for choice in choices.values():
        calls = choice["message"].get("tool_calls")
        if isinstance(calls, list):
            ordered = sorted(calls, key=lambda call: call["index"] if isinstance(call["index"], int) else len(calls))
            choice["message"]["tool_calls"] = [
                {name: value for name, value in call.items() if name != "index"} for call in ordered
            ]
    return {**completion, "choices": list(choices.values())}
