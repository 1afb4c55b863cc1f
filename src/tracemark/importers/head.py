"""The beginning of a file, read once, from which format and shape are recognised.

A file is a series of lines when a line of it is a JSON value of its own and more follows; otherwise it is one document.
A document may be longer than its head: then the names of its members are found by scanning, without parsing. What is
held is bounded, also of a file that is one line.

Parsing is most of what it costs to recognise a file, and few files need it: nothing here is worked out before an
importer asks for it, and `may_hold` often answers in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import BinaryIO

import orjson

from tracemark import digest
from tracemark.digest import JSON, NotJSONError

SIZE = 65_536
"""How much is read, unless the first line is longer."""

SPACE = b" \t\r\n"
"""The white space that JSON allows around a value, and that no raw digest counts."""

BOM = b"\xef\xbb\xbf"
BOM_REMOVED = "byte order mark removed"
"""What `repairs` say of a file that began with one."""

_PARSED = 8_388_608
_SCANNED = 1_048_576
_LINES = 50
_BRACKETS = (b"{", b"[")
_ESCAPED = re.compile(rb"\\u00(?:22|[4-7])")
_OPENED = re.compile(rb"\s*\[(?=\s*\{)")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)


class Head:
    """The beginning of a file, after decompression.

    Args:
        data: up to 128 KiB, or more when the first line is longer; without a byte order mark. Of a line that is too
            long to be parsed only the first bytes are there, and behind them the lines that follow it.
        complete: whether `data` is the whole file.
    """

    def __init__(self, data: bytes, complete: bool) -> None:
        self.data = data
        self.complete = complete

    @cached_property
    def first_line(self) -> bytes:
        """The first line that is not blank, without its line end; it may be cut when `data` is."""
        return self.data.lstrip(SPACE).partition(b"\n")[0]

    @cached_property
    def lines(self) -> bool:
        """Whether the file is a series of lines with one JSON value each."""
        return not (self._opens_with_bracket or self._is_one_line) and self._parsed[0]

    @property
    def value(self) -> JSON:
        """The first JSON value; None when it does not end within `data`."""
        return self._parsed[1]

    @cached_property
    def members(self) -> Mapping[str, str]:
        """The own members of the first value, or of an array's first element, as far as `data` goes.

        Names, each with the first character of its value; empty when that is no object.
        """
        value = self.value
        if value is None:
            return _scan(self.data[:_SCANNED])
        first = value[0] if isinstance(value, list) and value else value
        return {name: _first(member) for name, member in first.items()} if isinstance(first, dict) else {}

    def may_hold(self, text: bytes) -> bool:
        """Return False only where no JSON string in `data` is written as `text`, with escapes or without.

        Args:
            text: bytes to look for: ASCII letters, underscores and quotation marks.
        """
        return text in self.data or self._has_escaped_letters

    @cached_property
    def _has_escaped_letters(self) -> bool:
        return b"\\u00" in self.data and _ESCAPED.search(self.data) is not None

    @cached_property
    def _opens_with_bracket(self) -> bool:
        return self.first_line.strip(SPACE) in _BRACKETS

    @cached_property
    def _is_one_line(self) -> bool:
        end = self.data.find(b"\n", self.data.find(self.first_line[:1]))
        return end < 0 or not self.data[end:].strip(SPACE)

    @cached_property
    def _parsed(self) -> tuple[bool, JSON]:
        """Whether the file is lines, and its first value."""
        # a bracket alone is no value
        value = None if self._opens_with_bracket else _parse(self.first_line)
        if value is not None:
            return not self._is_one_line, value
        whole = _parse(self.data) if self.complete and not self._is_one_line else None
        if whole is not None or self._opens_with_bracket:
            return False, whole
        for line in self.data.lstrip(SPACE).split(b"\n", _LINES + 1)[1 : _LINES + 1]:
            other = _parse(line) if line[:1] == b"{" else None
            if isinstance(other, dict) and other:
                return True, other
        return False, None


def read_head(stream: BinaryIO, limit: int, begun: bytes | None = None) -> Head:
    """Return the beginning of a stream.

    Args:
        stream: at its start; is read up to 64 KiB beyond the end of its first line, of which 16 MiB are held at most.
        limit: how long the first line may be, in bytes.
        begun: what was read of the stream already, in one reading of `SIZE` bytes; None for nothing.
    """
    data = stream.read(SIZE) if begun is None else begun
    while SIZE <= len(data) <= min(limit, _PARSED) and b"\n" not in data.lstrip(SPACE):
        more = stream.read(len(data))
        if not more:
            break
        data += more
    if _PARSED < len(data) <= limit and b"\n" not in data.lstrip(SPACE):
        # it is not parsed, so only its beginning is held; what follows it tells whether the file is a series of lines
        rest = _behind_line(stream, limit - len(data))
        return Head(data[:_PARSED].removeprefix(BOM) + (b"\n" + rest if rest else b""), complete=False)
    rest = stream.read(SIZE) if len(data) >= SIZE else b""
    return Head((data + rest).removeprefix(BOM), len(rest) < SIZE)


def _behind_line(stream: BinaryIO, limit: int) -> bytes:
    """Read past the line that a stream is in; return up to `SIZE` bytes of what follows it within `limit` bytes."""
    while limit > 0 and (data := stream.readline(min(limit, _SCANNED))):
        limit -= len(data)
        if data.endswith(b"\n"):
            return stream.read(SIZE)
    return b""


def _parse(data: bytes) -> JSON:
    """Return the JSON value that `data` is, read as records are; None when it is none, or is too long to be parsed."""
    if len(data) > _PARSED:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # records are read exactly: also lone surrogates, and numbers that JSON has not. What is cut ends in no bracket
        return _parse_exactly(data) if _is_closed(data.strip(SPACE)) else None


def _parse_exactly(data: bytes) -> JSON:
    try:
        return digest.loads(data).value
    except NotJSONError:
        return None


def _is_closed(data: bytes) -> bool:
    return (data[:1], data[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def _first(value: JSON) -> str:
    kinds = {dict: "{", list: "[", str: '"', bool: "t", type(None): "n"}
    return kinds.get(type(value), "0")


def _scan(data: bytes) -> dict[str, str]:
    """Return the members of the object, or of the array's first object, that `data` begins with, as far as it goes."""
    found: dict[str, str] = {}
    depth, name, named = 0, b"", False
    opened = _OPENED.match(data)
    position = opened.end() if opened else 0
    while True:
        if depth > 1:
            # of what is nested only the brackets count, and most of a head is that
            inner = _BRACKET.match(data, position)
            if inner is None:
                break
            depth += 1 if inner[1] in _BRACKETS else -1
            position = inner.end()
            continue
        match = _TOKEN.search(data, position)
        if match is None:
            break
        token, position = match[0], match.end()
        mark = token[:1]
        if depth == 1 and named and mark != b":":
            found.setdefault(name[1:-1].decode("utf-8", "replace"), mark.decode("latin-1"))
            named = False
        elif depth == 1 and mark == b'"' and not named:
            name, named = token, True
        if mark in b"{[":
            if depth == 0 and mark == b"[":
                return {}
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                break
        elif depth == 0:
            break
    return found
