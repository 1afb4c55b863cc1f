"""The lines of a session that is one record: each is read by itself, and what cannot be read is counted.

Programs append to a session's file while they run. So a line may be half-written, with the whole line behind it, on a
line of its own or glued to it; several may stand on one line; and some hold nothing. None of that costs more than
itself. A session that was written as one JSON array has its elements for lines.

Invariant:
- every line is given, or stands in `Lines.unread` with its number and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.exact_json import TOO_DEEP
from tracemark.findings import Finding, finding
from tracemark.importers.base import Document, Record
from tracemark.importers.documents import documents
from tracemark.importers.head import SPACE, Head
from tracemark.words import first_few

UNREAD = "line-unread"
"""Code of the finding of a session some of whose lines could not be read."""

_HEADS = 20
_SHOWN = 5
_TRIED = 32
_INNER = re.compile(rb'\{\s*"')


class Line(NamedTuple):
    """One record of a session."""

    number: int
    """Its place in the file, from 1."""
    value: dict[str, Any]
    """The object that it holds."""
    raw: bytes
    """Its bytes; those of the whole session where that is one array."""


class Unread(NamedTuple):
    """A line that gives no record."""

    number: int
    reason: str
    """Why, in a few words, such as `half-written`."""


@dataclass(slots=True)
class Lines:
    """The lines of one session."""

    lines: list[Line] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    """Lines that hold no object, and those that a reader of `lines` found to be no record of its format."""
    repairs: list[str] = field(default_factory=list)
    """What the reading of their JSON altered."""
    is_array: bool = False
    """Whether the session is written as one array."""

    def told(self, where: str) -> tuple[list[str], list[Finding]]:
        """Return notes and findings about what was not read; both are empty when everything was.

        Args:
            where: the place of the session.
        """
        if not self.unread:
            return [], []
        unread = sorted(self.unread)
        shown = first_few((f"{one.number} ({one.reason})" for one in unread), _SHOWN)
        return (
            [f"lines that are no record, left out: {shown}"],
            [finding(UNREAD, where, f"{len(unread)} of its lines are no record: {shown}")],
        )


def read(record: Record) -> Lines:
    """Return the lines of a session."""
    if record.raw[:1] == b"[":
        found = _array(record)
        if found is not None:
            return found
    found = Lines()
    for number, raw in enumerate(record.raw.split(b"\n"), 1):
        raw = raw.strip(SPACE)
        if not raw:
            continue
        try:
            decoded = digest.loads(raw)
        except NotJSONError as error:
            found.lines += _salvaged(record, number, raw, error, found)
            continue
        found.repairs += decoded.repairs
        if isinstance(decoded.value, dict):
            found.lines.append(Line(number, decoded.value, raw))
        else:
            found.unread.append(Unread(number, "no object"))
    return found


def heads(head: Head) -> Iterator[dict[str, Any]]:
    """Yield the objects in the first lines of a file, or the first elements of its array."""
    if head.data.lstrip(SPACE)[:1] == b"[" and isinstance(head.value, list):
        values: Iterable[Any] = head.value[:_HEADS]
    else:
        values = _parsed(head.data.split(b"\n", _HEADS)[:_HEADS])
    return (value for value in values if isinstance(value, dict))


def _parsed(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        try:
            yield digest.loads(line)[0]
        except NotJSONError:
            continue


def _array(record: Record) -> Lines | None:
    try:
        decoded = digest.loads(record.raw)
    except NotJSONError:
        return None
    if not isinstance(decoded.value, list) or not any(isinstance(value, dict) for value in decoded.value):
        return None
    found = Lines(repairs=list(decoded.repairs), is_array=True)
    for number, value in enumerate(decoded.value, 1):
        if isinstance(value, dict):
            found.lines.append(Line(number, value, record.raw))
        else:
            found.unread.append(Unread(number, "no object"))
    return found


def _salvaged(record: Record, number: int, raw: bytes, error: NotJSONError, found: Lines) -> Iterator[Line]:
    """Yield what a line that is not one JSON value holds all the same; note what of it is lost."""
    at = 0
    for one in documents(Record(raw, record.label, record.where)):
        if isinstance(one, Document):
            at = raw.find(one.raw, at) + len(one.raw)
            found.repairs += one.repairs
            if isinstance(one.value, dict):
                yield Line(number, one.value, one.raw)
            else:
                found.unread.append(Unread(number, "no object"))
        elif one.code == "invalid-utf8":
            found.unread.append(Unread(number, "not UTF-8"))
            return
    rest = raw[at:].strip(SPACE)
    if not rest:
        return
    whole = _glued(rest)
    lost = len(rest) - (0 if whole is None else len(whole.raw))
    reason = "nested too deeply" if str(error) == TOO_DEEP else f"{lost} bytes that are no JSON"
    found.unread.append(Unread(number, reason))
    if whole is not None:
        yield whole._replace(number=number)


def _glued(rest: bytes) -> Line | None:
    """Return the whole object that stands behind a half-written one; None when there is none."""
    for match in islice(_INNER.finditer(rest, 1), _TRIED):
        raw = rest[match.start() :]
        try:
            # what begins with this bracket is an object
            return Line(0, digest.loads(raw).value, raw)
        except NotJSONError:
            continue
    return None
