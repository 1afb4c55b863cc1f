r"""JSON read and written by the standard library: exactly, where `digest` finds that the fast way would lose something.

Integers of any size and lone surrogates are kept; a repeated key, a number that is not finite and an encoded surrogate
are named. Writing needs no recursion, so depth is no limit.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from json.encoder import encode_basestring as _escape
from typing import Any, NamedTuple

import orjson

JSON = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys. Alias of Any because the type recurses."""

_Arrange = Callable[[dict[str, JSON]], list[str]]

_SURROGATE = re.compile("[\ud800-\udfff]")
TOO_DEEP = "nested too deeply to be read"
"""What is wrong with a text that is."""
_ENCODED = "surrogates encoded as bytes: read as escapes"
_MAX_NOTES = 20

MAX_DEPTH = 500
"""How many lists and objects may stand in each other in what `loads` reads.

Python 3.11 reads about 990, less what its callers take; later versions read thousands. Without a limit one of them
would store what another cannot read back. Half leaves room for what a stored value is wrapped in, and for callers.
"""


class NotJSONError(ValueError):
    """Bytes that are no JSON text.

    Args:
        message: what is wrong.
        position: byte (or, after decoding, character) offset of the fault; None when unknown.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class Decoded(NamedTuple):
    """What `loads` read."""

    value: JSON
    repairs: tuple[str, ...]
    """What could not be kept as it stood, one short text each; empty when nothing was lost."""


def write(value: JSON, *, sort: bool) -> bytes:
    """Return the JSON of `value`, byte for byte as orjson writes what it can write.

    Args:
        value: a JSON value; may hold `orjson.Fragment`.
        sort: whether members are sorted by name, or stand as they are given.

    Raises:
        TypeError: for a type that JSON has not.
        ValueError: for NaN or an infinity, which JSON has not either.
    """
    arrange: _Arrange = sorted if sort else list
    return "".join(_pieces(value, arrange)).encode("utf-8")


class _Notes:
    """The hooks of the exact reader, and what they had to note."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def members(self, members: list[tuple[str, JSON]]) -> dict[str, JSON]:
        value = dict(members)
        if len(value) != len(members):
            for key, count in Counter(key for key, _ in members).items():
                if count > 1:
                    self.count[f"duplicate key {key[:40]!a}: the last value was kept"] += count - 1
        return value

    def number(self, text: str) -> float | str:
        value = float(text)
        if math.isfinite(value):
            return value
        self.count[f"{text[:24]} is beyond a double: kept as text"] += 1
        return text

    def constant(self, text: str) -> str:
        self.count[f"{text} is not JSON: kept as text"] += 1
        return text

    def repairs(self) -> tuple[str, ...]:
        notes = [note if count == 1 else f"{note} (×{count})" for note, count in self.count.items()]
        if len(notes) > _MAX_NOTES:
            notes = [*notes[:_MAX_NOTES], f"and {len(notes) - _MAX_NOTES} more"]
        return tuple(notes)


def _decode(raw: bytes, notes: _Notes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise NotJSONError(f"not UTF-8: {error.reason}", error.start) from None
        notes.count[_ENCODED] += 1
        return text


def read(raw: bytes) -> Decoded:
    """Read a JSON text, and say what of it could not be kept.

    Raises:
        NotJSONError: when it is not JSON, not UTF-8, or nested too deeply for the interpreter.
    """
    notes = _Notes()
    text = _decode(raw, notes)
    value = _parsed(text, notes)
    if _ENCODED in notes.count:
        # halves of a character that stand side by side are one, and so are two names that differ in nothing else
        value = _parsed(write(value, sort=False).decode("utf-8"), notes)
    return Decoded(value, notes.repairs())


def _parsed(text: str, notes: _Notes) -> JSON:
    try:
        return json.loads(
            text,
            object_pairs_hook=notes.members,
            parse_float=notes.number,
            parse_constant=notes.constant,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise NotJSONError(error.msg, error.pos) from None
    except RecursionError:
        raise NotJSONError(TOO_DEEP) from None


def is_too_deep(value: JSON) -> bool:
    """Return whether more than `MAX_DEPTH` lists and objects stand in each other in `value`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[JSON] = []
        for item in level:
            if isinstance(item, (dict, list)):
                inner.extend(item.values() if isinstance(item, dict) else item)
        level = inner
    return any(isinstance(item, (dict, list)) for item in level)


def _integer(text: str) -> int:
    if len(text) > 4000:
        raise NotJSONError(f"a number of {len(text)} digits")
    return int(text)


def _string(text: str) -> str:
    if _SURROGATE.search(text):
        # two halves that stand side by side are one character in JSON, so they are joined before they are written
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", _escape(text))
    return _escape(text)


def _scalar(value: JSON) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} is not a JSON number")
        return orjson.dumps(value).decode()
    if isinstance(value, orjson.Fragment):
        return orjson.dumps(value).decode()
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def _pieces(value: JSON, arrange: _Arrange) -> Iterator[str]:
    """Yield the text of `value` in pieces, keys as `arrange` lists them; without recursion, so depth is no limit."""
    stack: list[Iterator[tuple[str, JSON]]] = [iter([("", value)])]
    closing: list[str] = []
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            if closing:
                yield closing.pop()
            continue
        prefix, item = entry
        yield prefix
        if isinstance(item, dict):
            yield "{"
            closing.append("}")
            stack.append(_members(item, arrange))
        elif isinstance(item, (list, tuple)):
            yield "["
            closing.append("]")
            stack.append(("," if index else "", member) for index, member in enumerate(item))
        else:
            yield _scalar(item)


def _members(item: dict[str, JSON], arrange: _Arrange) -> Iterator[tuple[str, JSON]]:
    for key in item:
        if not isinstance(key, str):
            raise TypeError("a JSON key is a string")
    for index, key in enumerate(arrange(item)):
        yield ("," if index else "") + _string(key) + ":", item[key]
