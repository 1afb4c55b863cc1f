"""A document that holds an array of records, cut into them while it is read.

Benchmarks write all runs of a file into one array, and such files grow to gigabytes. Here the array's elements are
found by their brackets alone, and each is handed on as the bytes that stand in the file; everything beside the array
is parsed once and shared.

Invariants:
- what is held is one element, the other members of the document, and a piece of the file;
- an element's bytes are those of the file, so its digest can be checked by hand;
- an element above the limit, or one that is no JSON, costs itself: where the next one begins is known by the brackets;
- an element is given only with all of `Elements.needs` known: where one of them stands behind the array, the file is
  read a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.importers.base import EXCERPT, Elements
from tracemark.importers.head import BOM, BOM_REMOVED

_STEP = 1_048_576
# runs of plain bytes without an alternation between them: the engine is half as fast again
_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_MARK = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]+")
_SEAM = re.compile(rb'[ \t\r\n]*,[ \t\r\n]*\{[ \t\r\n]*"[^"\\]*"[ \t\r\n]*:')
_SOLID = re.compile(rb"[^ \t\r\n]")
_OPENING = b"{["
_CLOSING = {b"{": b"}", b"[": b"]"}
_DEEPEST = 64


class Element(NamedTuple):
    """One element of the array."""

    number: int
    """Its index, from 0."""
    raw: bytes
    """Its bytes, or the first `EXCERPT` of them when it is too large."""
    whole: bool
    """False when the file ends within it."""
    too_large: str | None
    """Digest of all of its bytes when they are above the limit; None when they are not."""
    around: dict[str, Any]
    """The other members of the document that were read so far; the same object for every element."""
    repairs: tuple[str, ...]
    """What of the document around it could not be kept, such as a repeated key, as far as it was read."""


class Reader:
    """One reading of a document: iterate over it once.

    In place of an element in front of which something of `needs` was missing, None is given: then the document is to be
    read again, with what this reading found around the array.

    Args:
        stream: the document, at its start.
        elements: which array is cut.
        limit: how large an element may be, in bytes, and each member beside the array.
        earlier: the first reading; None for this one to be it.
    """

    def __init__(self, stream: BinaryIO, elements: Elements, limit: int, earlier: Reader | None = None) -> None:
        self._stream = stream
        self._wanted = elements
        self._limit = limit
        self._data = b""
        self._at = 0
        self._kept = 0
        self._may_guess = True
        self._seam = b""
        self._closed = False
        self._number = 0
        self._is_again = earlier is not None
        self.around: dict[str, Any] = {} if earlier is None else earlier.around
        """The members beside the array, parsed; one that is no JSON is None."""
        self.repairs: list[str] = [] if earlier is None else earlier.repairs
        """What of the document around the elements could not be kept, one short text each."""
        self.found = False
        """Whether the array was met."""
        self.complete = False
        """Whether the document came to its end."""
        self.followed = False
        """Whether more than white space stands behind that."""

    def __iter__(self) -> Iterator[Element | None]:
        self._fill()
        if self._data.startswith(BOM):
            self._data = self._data.removeprefix(BOM)
            self._note(BOM_REMOVED)
        first = self._peek()
        self._at += 1
        if first == b"[" and not self._wanted.member:
            self.found = True
            yield from self._elements()
            self.complete = self._closed
        elif first == b"{" and self._wanted.member:
            yield from self._members()
        self.followed = self.complete and bool(self._peek())

    def _members(self) -> Iterator[Element | None]:
        """Read the members of the root object; yield the elements when the array comes."""
        while (mark := self._peek()) != b"}":
            if mark == b",":
                self._at += 1
                continue
            name = self._value() if mark == b'"' else None
            if name is None or self._peek() != b":":
                return
            self._at += 1
            key, mark = _parsed(name), self._peek()
            if key == self._wanted.member and mark == b"[":
                self._at += 1
                if self.found:
                    self._note(f"duplicate key {key[:40]!a}: the elements of each array were read")
                self.found = True
                yield from self._elements()
                if not self._closed:
                    return
                continue
            value = self._value()
            if value is None:
                return
            if isinstance(key, str) and not self._is_again:
                self._keep(key, value)
        self._at += 1
        self.complete = True

    def _keep(self, key: str, value: bytes) -> None:
        """Add a member that stands beside the array; of one that is repeated the last one counts, as in any JSON."""
        if key in self.around:
            self._note(f"duplicate key {key[:40]!a}: the last value was kept")
        try:
            decoded = digest.loads(value)
        except NotJSONError:
            self.around[key] = None
            return
        self.around[key] = decoded.value
        for repair in decoded.repairs:
            self._note(f"in {key[:40]!a}: {repair}")

    def _note(self, repair: str) -> None:
        if repair not in self.repairs:
            self.repairs.append(repair)

    def _elements(self) -> Iterator[Element | None]:
        """Yield the elements of the array that begins here; `_closed` says afterwards whether it ends."""
        self._closed, self._seam, self._may_guess = False, b"", True
        while mark := self._peek():
            if mark == b",":
                self._at += 1
                continue
            if mark == b"]":
                self._at += 1
                self._closed = True
                return
            skipped = self._skip()
            if not self._seam:
                self._seam = self._seam_here()
                self._may_guess = self._may_guess or bool(self._seam)
            if not self._is_again and any(name not in self.around for name in self._wanted.needs):
                yield None
            else:
                yield Element(self._number, *skipped, self.around, tuple(self.repairs))
            if not skipped.whole:
                return
            self._number += 1

    def _value(self) -> bytes | None:
        """Return the bytes of the value that begins here and move behind it; None when it is cut or too large."""
        skipped = self._skip()
        return skipped.raw if skipped.whole and skipped.too_large is None else None

    def _skip(self) -> _Skipped:
        """Move behind the value that begins here."""
        self._kept = self._at
        first = self._data[self._at : self._at + 1]
        if first in (b"{", b"["):
            return self._skip_nested()
        pattern = _STRING if first == b'"' else _SCALAR
        while True:
            match = pattern.match(self._data, self._kept)
            if match is not None and (first == b'"' or match.end() < len(self._data)):
                self._at = match.end()
                return self._whole()
            if len(self._data) - self._kept > self._limit or not self._fill():
                self._at = len(self._data)
                return _Skipped(self._data[self._kept :][:EXCERPT], False, None)

    def _skip_nested(self) -> _Skipped:
        guessed = self._skip_guessed() if self._may_guess else None
        if guessed is not None:
            return guessed
        # this loop is a quarter of what reading an array costs: it looks nothing up that it can hold
        depth, find, data, at = 0, _BRACKET.match, self._data, self._at
        while True:
            match = find(data, at)
            if match is not None:
                at = match.end()
                depth += 1 if data[at - 1] in _OPENING else -1
                if depth:
                    continue
            self._at = at
            if match is not None:
                return self._whole()
            if len(data) - self._kept > self._limit:
                return self._skip_large(depth)
            if not self._fill():
                self._at = len(self._data)
                return _Skipped(self._data[self._kept :], False, None)
            data, at = self._data, self._at

    def _whole(self) -> _Skipped:
        raw = self._data[self._kept : self._at]
        return _Skipped(raw, True, None if len(raw) <= self._limit else digest.sha256(raw))

    def _skip_guessed(self) -> _Skipped | None:
        """Move behind a value of which the end is guessed by how the document is written, and proved by parsing it.

        That takes a third of the time of looking at each bracket. Where the guess fails, None is returned, and the next
        values are not tried so before more is read: a document that is written in another way is searched once for each
        piece of it.
        """
        start = self._kept
        end = self._printed_end(start)
        if end < 0 and self._seam:
            end = self._data.find(self._seam, start) + 1 or -1
        raw = self._data[start : max(start, end)]
        if not raw or len(raw) > self._limit or not _is_json(raw):
            self._may_guess = False
            return None
        self._at = end
        return _Skipped(raw, True, None)

    def _printed_end(self, start: int) -> int:
        """Return where a value ends that is printed over lines: where one as far indented as its own closes it.

        -1 where it does not begin such a line, or none closes it in what is read.
        """
        line = self._data.rfind(b"\n", max(0, start - _DEEPEST), start)
        indent = self._data[line:start]
        if line < 0 or not indent.isspace():
            return -1
        closing = indent + _CLOSING[self._data[start : start + 1]]
        end = self._data.find(closing, start)
        return end if end < 0 else end + len(closing)

    def _seam_here(self) -> bytes:
        """Return what stands between the element that ends here and the next one: its end, and how the next begins.

        A program writes all elements of an array alike, so where the same stands again, an element may end. Empty where
        the next element does not begin with a member, or is not read yet.
        """
        match = _SEAM.match(self._data, self._at)
        return b"}" + match[0] if match is not None and self._data[self._at - 1 : self._at] == b"}" else b""

    def _skip_large(self, depth: int) -> _Skipped:
        """Move behind a value that is too large, of which `depth` brackets are open, and keep only its beginning."""
        hasher, begun, is_text = digest.Hasher(), self._data[self._kept :][:EXCERPT], False
        hasher.update(self._data[self._kept : self._at])
        data = self._data[self._at :]
        while data:
            # what may be the first half of an escape waits for the other half
            open_escape = (len(data) - len(data.rstrip(b"\\"))) % 2
            whole = data[: len(data) - open_escape]
            for match in _MARK.finditer(whole):
                mark = match[0]
                if mark == b'"':
                    is_text = not is_text
                elif not is_text and len(mark) == 1:
                    depth += 1 if mark in _OPENING else -1
                    if depth == 0:
                        hasher.update(data[: match.end()])
                        self._data, self._at = data, match.end()
                        self._kept = self._at
                        return _Skipped(begun, True, hasher.hexdigest())
            hasher.update(whole)
            more = self._stream.read(_STEP)
            data = data[len(whole) :] + more if more else b""
        self._data, self._at, self._kept = b"", 0, 0
        return _Skipped(begun, False, hasher.hexdigest())

    def _peek(self) -> bytes:
        """Return the next byte that is no white space, without moving behind it; empty at the end."""
        while True:
            match = _SOLID.search(self._data, self._at)
            if match is not None:
                self._at = match.start()
                return match[0]
            self._at = self._kept = len(self._data)
            if not self._fill():
                return b""

    def _fill(self) -> bool:
        """Read on; what stands in front of `_kept` is let go of."""
        self._data, self._at, self._kept = self._data[self._kept :], self._at - self._kept, 0
        self._may_guess = True
        more = self._stream.read(max(_STEP, len(self._data)))
        self._data += more
        return bool(more)


class _Skipped(NamedTuple):
    raw: bytes
    whole: bool
    too_large: str | None


def _is_json(raw: bytes) -> bool:
    """Return whether it is one JSON value, and an ordinary one."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def _parsed(raw: bytes) -> Any:
    """Return the JSON value; None when it is none."""
    try:
        return digest.loads(raw).value
    except NotJSONError:
        return None
