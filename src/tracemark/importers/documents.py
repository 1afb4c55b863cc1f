"""The JSON values of a record, and of an array of records, each with its own bytes.

A record usually holds one value. Several that stand one behind the other are read one by one, and so are the elements
of an array that exporters wrote in place of lines; each has the digest that it would have alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tracemark import digest
from tracemark.digest import JSON, NotJSONError
from tracemark.importers.base import Document, Imported, Record, Refused, refuse
from tracemark.importers.guard import guarded

SEVERAL = "several JSON values in one record: read one by one"
"""What is noted of each value of a record that holds several."""

_SPACE = " \t\r\n"
_MAX_VALUES = 10_000
_BLANK = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def documents(record: Record) -> Iterator[Document | Refused]:
    """Yield the JSON values of a record: one, or several that were written one behind the other.

    Bytes that are no JSON are yielded as `Refused` with the reason: half-written, not UTF-8, or a fault with its place.
    Values in front of the fault are yielded first.
    """
    try:
        decoded = digest.loads(record.raw)
    except NotJSONError as error:
        yield from _salvage(record, error)
        return
    yield Document(decoded.value, record.raw, record.where, record.repairs + decoded.repairs)


def elements(record: Record, document: Document) -> Iterator[Document | Refused]:
    """Yield the elements of an array, each as a document of its own.

    Where an element ends is known without reading it a second time if writing it gives the bytes that stand there, as
    in an array that a program wrote without spaces; then nothing of it was lost either.

    Args:
        record: what `document` was read from.
        document: its value is an array.
    """
    text = document.raw.decode("utf-8", "surrogatepass")
    decoder, position = json.JSONDecoder(), text.index("[") + 1
    is_compact = True
    for number, value in enumerate(document.value):
        where = f"{document.where}#{number}"
        start = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]  # the pattern matches everywhere
        written = _compact(value) if is_compact else ""
        if written and text.startswith(written, start):
            position = start + len(written)
            yield Document(value, written.encode("utf-8"), where, record.repairs)
            continue
        # an array is written in one way; other values than objects say nothing about it
        is_compact = is_compact and not written
        try:
            position = decoder.raw_decode(text, start)[1]
        except RecursionError:
            yield refuse("too-deep", Record(document.raw, record.label, where), "nested too deeply to be read")
            return
        raw = text[start:position].encode("utf-8", "surrogatepass")
        if document.repairs == record.repairs:
            yield Document(value, raw, where, record.repairs)
        else:
            decoded = digest.loads(raw)
            yield Document(decoded.value, raw, where, record.repairs + decoded.repairs)


def each(
    importer: str,
    record: Record,
    read: Callable[[Document], Imported | Refused],
    is_array: Callable[[JSON], bool] = lambda value: isinstance(value, list),
) -> Iterator[Imported | Refused]:
    """Yield what an importer makes of every document in a record; one that it fails on costs that document alone.

    This is how an importer reads records that may hold more than one.

    Args:
        importer: the importer's name.
        record: what is read.
        read: reads one document.
        is_array: whether a value is an array of documents, and not one of them.
    """
    for document in documents(record):
        parts: Iterable[Document | Refused] = (document,)
        if isinstance(document, Document) and is_array(document.value):
            parts = elements(record, document)
        for part in parts:
            yield part if isinstance(part, Refused) else guarded(importer, part, partial(read, part))


def _compact(value: JSON) -> str:
    """Return an object as it is written without spaces; empty for any other value, which may end elsewhere."""
    try:
        return digest.ordered(value, finite=True).decode("utf-8") if isinstance(value, dict) else ""
    except (TypeError, ValueError):
        return ""


def _salvage(record: Record, error: NotJSONError) -> Iterator[Document | Refused]:
    raw = record.raw
    try:
        text = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as fault:
        yield refuse("invalid-utf8", record, f"byte {fault.start} is not UTF-8 ({fault.reason})")
        return
    note = (*record.repairs, SEVERAL)
    position = count = 0
    for end in _ends(text):
        piece = text[position:end].strip(_SPACE).encode("utf-8", "surrogatepass")
        decoded = _loads(piece)
        if decoded is None:
            break
        yield Document(decoded.value, piece, f"{record.where}#{count}", note + decoded.repairs)
        position, count = end, count + 1
    rest = text[position:].strip(_SPACE).encode("utf-8", "surrogatepass")
    if rest:
        place = f"{record.where}#{count}" if count else record.where
        code = "record-truncated" if record.last and _is_open(rest) else "record-not-json"
        yield refuse(code, Record(rest, record.label, place), f"not a JSON value: {error} ({len(rest)} bytes)")


def _ends(text: str) -> Iterator[int]:
    """Yield where each of the JSON values that stand one behind the other ends, until one does not parse."""
    decoder, position = json.JSONDecoder(), 0
    for _ in range(_MAX_VALUES):
        start = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # the pattern matches everywhere
        if start == len(text):
            return
        try:
            position = decoder.raw_decode(text, start)[1]
        except (json.JSONDecodeError, RecursionError, ValueError):
            return
        yield position


def _loads(raw: bytes) -> digest.Decoded | None:
    try:
        return digest.loads(raw)
    except NotJSONError:
        return None


def _is_open(raw: bytes) -> bool:
    """Return whether the text ends inside a string or before its brackets are closed."""
    if raw[:1] not in (b"{", b"["):
        return False
    bare = _STRING.sub(b"", raw)
    opened = bare.count(b"{") + bare.count(b"[")
    return b'"' in bare or opened > bare.count(b"}") + bare.count(b"]")
