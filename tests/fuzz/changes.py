"""Changes of inputs: of bytes, of lines, of the JSON values in them, of a member of an archive.

Values are found by where they stand and replaced as text, so that also repeated keys, numbers that JSON has not, and
text that is no JSON come out.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tracemark import digest

LARGEST_INPUT = 60_000
"""Bytes of the largest input that is changed further."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_DEEP = b"[" * 10_000 + b"]" * 10_000
_ODD: tuple[bytes, ...] = (
    *(b"null", b"true", b"false", b"[]", b"{}", b'""', b"[[]]", b"[null]", b'{"":null}'),
    *(b"0", b"-1", b"1.0", b"1e400", b"NaN", b"-Infinity", b"9007199254740993", b"18446744073709551616", b"-0.0"),
    *(b'"\\ud800"', b'"\\u0000\\u001b[31m"', b'"\\u202e"', b'"../../etc/passwd"', b'"\\udead\\ud83d\\ude00"'),
    *(b'"{\\"a\\": 1}"', b'"[1]"', b'"null"', b'"[\\"{}\\"]"', b'"{\\"a\\": NaN, \\"a\\": 1}"', b'"{"'),
    *(b'{"role": "nobody"}', b'{"role": "tool", "content": null}', b'{"type": "text", "text": "a"}'),
    *(b'[{"type": "odd"}]', b'{"a": {"b": [{"c": null}]}}', b'{"tracemark": {"run": {}}}', b'"2026-02-30T25:61:00"'),
    *(b'"\xed\xa0\xbd\xed\xb8\x80"', b'"\xed\xa0\xbd\\ude00"'),
    *(b'"1760000000"', b"1760000000.5", b"-1e18", b'"0x1"', b'"data:image/png;base64,AA=="', b'"' + b"a" * 500 + b'"'),
)


@dataclass(frozen=True)
class Spans:
    """Where things stand in JSON text: values of any depth, and members and elements with the comma behind them."""

    values: list[tuple[int, int]]
    entries: list[tuple[int, int]]
    keys: list[tuple[int, int]]


def spans(data: bytes) -> Spans:
    """Return where values, entries and keys stand in what may be JSON text."""
    found = Spans([], [], [])
    opened: list[int] = []
    begun: list[int | None] = [None]
    last: tuple[int, int] | None = None
    for match in _TOKEN.finditer(data):
        mark = match[0]
        if begun[-1] is None and mark not in (b"}", b"]"):
            begun[-1] = match.start()
        if mark in (b"{", b"["):
            opened.append(match.start())
            begun.append(None)
        elif mark in (b"}", b"]"):
            if opened:
                _close(found, begun, match.start())
                begun.pop()
                last = (opened.pop(), match.end())
                found.values.append(last)
        elif mark == b",":
            _close(found, begun, match.end())
        elif mark == b":":
            if last in found.values[-1:]:
                found.keys.append(found.values.pop())
        else:
            last = match.span()
            found.values.append(last)
    return found


def _close(found: Spans, begun: list[int | None], end: int) -> None:
    start, begun[-1] = begun[-1], None
    if start is not None:
        found.entries.append((start, end))


class Changes:
    """Changes of inputs, drawn at random.

    Args:
        chance: draws.
        pool: other inputs, of which pieces are taken.
    """

    def __init__(self, chance: random.Random, pool: Sequence[bytes]) -> None:
        self._chance = chance
        self._pool = [data[:LARGEST_INPUT] for data in pool]
        self._of_text: list[Callable[[bytes], bytes]] = [self._bits, self._cut, self._lines, self._splice]
        self._of_json: list[Callable[[bytes, Spans], bytes]] = [
            *[self._replace] * 4,
            *[self._exchange] * 3,
            *(self._remove, self._repeat, self._write_as_text, self._wrap, self._rename, self._insert),
        ]

    @cached_property
    def _pieces(self) -> list[tuple[bytes, Spans]]:
        return [(data, spans(data)) for data in self._pool]

    def change(self, data: bytes) -> bytes:
        """Return data with one to four changes."""
        if data.startswith(b"PK\x03\x04") and self._chance.random() < 0.9:
            return self._archive(data)
        for _ in range(self._chance.choice((1, 1, 1, 2, 2, 3, 4))):
            found = spans(data)
            if found.values and self._chance.random() < 0.85:
                data = self._chance.choice(self._of_json)(data, found)
            elif data:
                data = self._chance.choice(self._of_text)(data)
        return data

    def _archive(self, data: bytes) -> bytes:
        """Change a member of a zip archive, or which members there are."""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [(name, archive.read(name)) for name in archive.namelist()]
        except Exception:  # noqa: BLE001 - it was damaged before, and says so in many ways
            return self._bits(data)
        if not members:
            return data
        at = self._chance.randrange(len(members))
        name, content = members[at]
        if self._chance.random() < 0.1:
            del members[at]
        else:
            members[at] = name, self.change(content)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return made.getvalue()

    def _bits(self, data: bytes) -> bytes:
        at = self._chance.randrange(len(data))
        return data[:at] + bytes([data[at] ^ (1 << self._chance.randrange(8))]) + data[at + 1 :]

    def _cut(self, data: bytes) -> bytes:
        first, last = sorted(self._chance.randrange(len(data) + 1) for _ in range(2))
        return self._chance.choice((data[:first], data[last:], data[:first] + data[last:]))

    def _lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        if len(lines) < 2:
            return data + b"\n" + data
        one, other = self._chance.randrange(len(lines)), self._chance.randrange(len(lines))
        kind = self._chance.randrange(4)
        if kind == 0:
            del lines[one]
        elif kind == 1:
            lines.insert(one, lines[other])
        elif kind == 2:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines[one] = self._chance.choice((b"", b"\x00", b"42", b"\xff", b"null", lines[one] + lines[other]))
        return b"\n".join(lines)

    def _splice(self, data: bytes) -> bytes:
        other = self._chance.choice(self._pool)
        start = self._chance.randrange(len(other)) if other else 0
        at = self._chance.randrange(len(data))
        return data[:at] + other[start : start + self._chance.randrange(200)] + data[at:]

    def _replace(self, data: bytes, found: Spans) -> bytes:
        start, end = self._chance.choice(found.values)
        odd = _DEEP if self._chance.random() < 0.01 else self._chance.choice(_ODD)
        return data[:start] + odd + data[end:]

    def _exchange(self, data: bytes, found: Spans) -> bytes:
        other, pieces = (data, found) if self._chance.random() < 0.5 else self._chance.choice(self._pieces)
        values = pieces.values
        first, last = self._chance.choice(values or [(0, 0)])
        start, end = self._chance.choice(found.values)
        return data[:start] + other[first:last] + data[end:]

    def _remove(self, data: bytes, found: Spans) -> bytes:
        start, end = self._chance.choice(found.entries or found.values)
        return data[:start].rstrip(b", ") + data[end:] if data[end - 1 : end] != b"," else data[:start] + data[end:]

    def _repeat(self, data: bytes, found: Spans) -> bytes:
        start, end = self._chance.choice(found.entries or found.values)
        entry = data[start:end].removesuffix(b",")
        times = self._chance.choice((1, 1, 2, 30))
        return data[:start] + (entry + b",") * times + data[start:]

    def _insert(self, data: bytes, found: Spans) -> bytes:
        """Put a member of any input in front of an entry."""
        other, pieces = self._chance.choice(self._pieces)
        first, last = self._chance.choice(pieces.entries or [(0, 0)])
        start, _ = self._chance.choice(found.entries or found.values)
        return data[:start] + other[first:last].removesuffix(b",") + b"," + data[start:]

    def _write_as_text(self, data: bytes, found: Spans) -> bytes:
        start, end = self._chance.choice(found.values)
        text = data[start:end].decode("utf-8", "replace")
        return data[:start] + digest.canonical(text) + data[end:]

    def _wrap(self, data: bytes, found: Spans) -> bytes:
        start, end = self._chance.choice(found.values)
        before, after = self._chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"text":', b',"type":"text"}]')))
        return data[:start] + before + data[start:end] + after + data[end:]

    def _rename(self, data: bytes, found: Spans) -> bytes:
        if not found.keys:
            return self._replace(data, found)
        other, pieces = self._chance.choice(self._pieces)
        first, last = self._chance.choice(pieces.keys or [(0, 0)])
        start, end = self._chance.choice(found.keys)
        return data[:start] + (other[first:last] or b'"\\ud800"') + data[end:]
