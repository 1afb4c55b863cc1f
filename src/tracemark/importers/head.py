"""The beginning of a file, read once, from which format and shape are recognised.

A file is a series of lines when a line of it is a JSON value of its own and more follows; otherwise it is one document.
A document may be longer than its head: then the names of its members are found by scanning, without parsing.
"""

from __future__ import annotations

import re
from typing import BinaryIO

import orjson

from tracemark.digest import JSON
from tracemark.importers.base import SPACE, Head

SIZE = 65_536
"""How much is read, unless the first line is longer."""

BOM = b"\xef\xbb\xbf"

_PARSED = 8_388_608
_SCANNED = 1_048_576
_LINES = 50
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


def read_head(stream: BinaryIO, limit: int) -> Head:
    """Return the beginning of a stream.

    Args:
        stream: at its start; is read up to 64 KiB beyond the end of its first line.
        limit: how long the first line may be, in bytes.
    """
    data = stream.read(SIZE)
    while len(data) <= limit and len(data) >= SIZE and b"\n" not in data.lstrip(SPACE):
        more = stream.read(len(data))
        if not more:
            break
        data += more
    data += (rest := stream.read(SIZE))
    complete = len(rest) < SIZE
    return make_head(data.removeprefix(BOM), complete)


def make_head(data: bytes, complete: bool) -> Head:
    """Return the head that `data` is; `complete` says whether it is the whole file."""
    first, newline, rest = data.lstrip(SPACE).partition(b"\n")
    value = _parse(first)
    if value is not None and newline and rest.strip(SPACE):
        return Head(data, complete, True, value, _members(value, first))
    if complete:
        whole = value if value is not None else _parse(data)
        if whole is not None:
            return Head(data, complete, False, whole, _members(whole, data))
    if value is None and first.strip(SPACE) not in (b"{", b"["):
        for line in rest.split(b"\n")[:_LINES]:
            other = _parse(line) if line[:1] == b"{" else None
            if isinstance(other, dict) and other:
                return Head(data, complete, True, other, _members(other, line))
    return Head(data, complete, False, value, _members(value, data))


def _parse(data: bytes) -> JSON:
    if len(data) > _PARSED:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _members(value: JSON, data: bytes) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: _first(member) for name, member in value.items()}
    return {} if value is not None else _scan(data[:_SCANNED])


def _first(value: JSON) -> str:
    kinds = {dict: "{", list: "[", str: '"', bool: "t", type(None): "n"}
    return kinds.get(type(value), "0")


def _scan(data: bytes) -> dict[str, str]:
    """Return the members of the object that `data` begins with, as far as it goes."""
    found: dict[str, str] = {}
    depth, name, named = 0, b"", False
    for match in _TOKEN.finditer(data):
        token = match[0]
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
