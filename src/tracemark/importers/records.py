"""A file, or a byte range of one, read record by record.

No record is longer than the limit, and nothing longer is ever held: what is above it is read past, and refused with its
digest and its first bytes. Lines are named by their number, or in a range that does not begin the file by their bytes,
since nobody counted the lines in front of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tracemark import digest
from tracemark.importers.base import EXCERPT, Context, Elements, Record, Refused, Unit
from tracemark.importers.compression import BrokenError, TooMuchError, expanded
from tracemark.importers.cutting import Element, Reader
from tracemark.importers.head import BOM, BOM_REMOVED, SPACE
from tracemark.importers.tree import label_digest, refuse_file

_FIRST = 262_144
_STEP = 8_388_608


class Piece(NamedTuple):
    """A file, or a byte range of one, and how to read it."""

    path: str
    """Absolute path."""
    label: str
    """Path relative to the given one, with `/`."""
    format: str
    """Name of the importer."""
    unit: Unit
    start: int = 0
    """First byte."""
    end: int | None = None
    """Byte behind the last one; None for the file's end."""
    packed: str = ""
    """Packing of the file; empty when it is plain."""
    member: str = ""
    """Name within a zip archive; empty otherwise."""
    context: Context = Context()
    root: str = ""
    """Absolute path of the folder that was given; empty for that of the file."""
    others: tuple[str, ...] = ()
    """Absolute paths of further files that are one record with this one, behind it in this order."""


def records(piece: Piece) -> Iterator[Record | Refused]:
    """Yield the records of a piece in order."""
    limits = piece.context.limits
    try:
        with expanded(piece.path, piece.packed, piece.member, limits.max_expanded) as stream:
            if piece.unit == "line" or piece.unit == "lines":  # noqa: PLR1714 - the type is narrowed by it
                yield from _lines(stream, piece)
            elif piece.unit == "document":
                yield from _document(stream, piece)
            else:
                yield from _elements(stream, piece, piece.unit)
    except TooMuchError:
        yield refuse_piece("expanded-too-large", piece, f"expands to more than {limits.max_expanded} bytes")
    except BrokenError as error:
        yield refuse_piece("compressed-broken", piece, f"cannot be expanded: {error}")
    except OSError as error:
        yield refuse_piece("unreadable", piece, f"cannot be read: {error.strerror or error}")


def _elements(stream: BinaryIO, piece: Piece, elements: Elements) -> Iterator[Record | Refused]:
    """Yield the elements of an array in a document, or the refusal of one without it."""
    limits = piece.context.limits
    reader = Reader(stream, elements, limits.max_record)
    missed = is_told = False
    for element in reader:
        missed = missed or element is None
        if element is not None:
            # the element in which the document ends is refused, and no second refusal says so
            is_told = not element.whole
            yield _element(element, piece)
    if missed:
        with expanded(piece.path, piece.packed, piece.member, limits.max_expanded) as again:
            for element in Reader(again, elements, limits.max_record, reader):
                # a document that another program changed in between may have more of them
                if element is not None:
                    is_told = not element.whole
                    yield _element(element, piece)
    if not reader.found and reader.complete and lies_apart(piece):
        return
    if not reader.found:
        yield refuse_piece("record-unfit", piece, f"it has no array {elements.member or 'of records'}")
    elif not reader.complete and not is_told:
        yield refuse_piece("record-truncated", piece, "the document ends in its middle: what stands in front was read")
    elif reader.followed:
        yield refuse_piece("record-unfit", piece, "more than one document stands in it: only the first one was read")


def lies_apart(piece: Piece) -> bool:
    """Return whether the records of a document that may hold them are files in a folder beside it."""
    folder = "" if isinstance(piece.unit, str) else piece.unit.folder
    return bool(folder) and piece.context.folder is not None and (Path(piece.context.folder) / folder).is_dir()


def _element(element: Element, piece: Piece) -> Record | Refused:
    where = f"{piece.label}#{element.number}"
    if element.too_large is not None:
        message = f"a record of more than {piece.context.limits.max_record} bytes"
        return Refused("record-too-large", where, message, None, element.too_large, element.raw[:EXCERPT])
    last = not element.whole
    return Record(element.raw, piece.label, where, piece.context, element.repairs, last=last, around=element.around)


def _gathered(stream: BinaryIO, piece: Piece) -> Iterator[bytes]:
    """Yield the bytes of each file of a record that is several files."""
    left = piece.context.limits.max_record + 1
    data = stream.read(left)
    yield data
    for path in piece.others:
        left -= len(data) + 1
        with Path(path).open("rb") as file:
            data = file.read(max(left, 0))
        yield data


def _document(stream: BinaryIO, piece: Piece) -> Iterator[Record | Refused]:
    limit = piece.context.limits.max_record
    if piece.others:
        data = b"\n".join(one.removeprefix(BOM).strip(SPACE) for one in _gathered(stream, piece))
        if len(data) > limit:
            message = f"{len(piece.others) + 1} files that are one record of more than {limit} bytes"
            yield refuse_piece("record-too-large", piece, message)
        else:
            yield Record(data, piece.label, piece.label, piece.context, last=True)
        return
    # asking for the limit at once would make room for it, for every small file
    data = stream.read(min(_FIRST, limit + 1))
    if len(data) == _FIRST:
        pieces, size = [data], len(data)
        while size <= limit and (more := stream.read(min(_STEP, limit + 1 - size))):
            pieces.append(more)
            size += len(more)
        data = b"".join(pieces)
    if len(data) > limit:
        hasher = digest.Hasher()
        hasher.update(data)
        while more := stream.read(1 << 20):
            hasher.update(more)
        message = f"a record of more than {limit} bytes"
        yield Refused("record-too-large", piece.label, message, None, hasher.hexdigest(), data[:EXCERPT])
        return
    notes = (BOM_REMOVED,) if data.startswith(BOM) else ()
    raw = data.removeprefix(BOM).strip(SPACE)
    if raw:
        yield Record(raw, piece.label, piece.label, piece.context, notes, last=True)


def refuse_piece(code: str, piece: Piece, message: str, hint: str | None = None) -> Refused:
    """Return the refusal of a whole piece, with the digest and the first bytes of its file or its archive member."""
    if not piece.member:
        return refuse_file(code, piece.path, piece.label, message, hint)
    hasher, excerpt = digest.Hasher(), b""
    try:
        with expanded(piece.path, piece.packed, piece.member, piece.context.limits.max_expanded) as stream:
            excerpt = stream.read(EXCERPT)
            hasher.update(excerpt)
            while more := stream.read(1 << 20):
                hasher.update(more)
    except (TooMuchError, BrokenError, OSError):
        return Refused(code, piece.label, message, hint, label_digest(piece.label), excerpt)
    return Refused(code, piece.label, message, hint, hasher.hexdigest(), excerpt)


def _lines(stream: BinaryIO, piece: Piece) -> Iterator[Record | Refused]:
    """Yield a record for every line of a piece that is not blank, and the refusal of each line above the limit.

    Lines are named by their number, or in a range that does not begin the file by their bytes, since nobody counted the
    lines in front of it.

    Args:
        stream: the file, at its start.
        piece: what of it is to be read.
    """
    limit = piece.context.limits.max_record
    position, number = piece.start, 0
    if piece.start:
        stream.seek(piece.start)
    held: Record | None = None
    while piece.end is None or position < piece.end:
        try:
            line = stream.readline(limit + 1)
        except (TooMuchError, BrokenError):
            if held is not None:
                yield held
            raise
        if not line:
            break
        number += 1
        start, position = position, position + len(line)
        if len(line) > limit and not line.endswith(b"\n"):
            if held is not None:
                yield held
                held = None
            refused, position = _skip(stream, line, piece, (number, start))
            yield refused
            continue
        notes: tuple[str, ...] = ()
        if start == 0 and line.startswith(BOM):
            line, notes = line[len(BOM) :], (BOM_REMOVED,)
        raw = line.strip(SPACE)
        if raw:
            if held is not None:
                yield held
            where = f"{piece.label}[{start}-{position}]" if piece.start else f"{piece.label}:{number}"
            held = Record(raw, piece.label, where, piece.context, notes)
    if held is not None:
        # a line that others may follow in the next range is not the last one
        yield held._replace(last=piece.end is None or not stream.readline(1))


def _skip(stream: BinaryIO, begun: bytes, piece: Piece, at: tuple[int, int]) -> tuple[Refused, int]:
    """Read a line that is too long to its end without keeping it; return its refusal and where the next one begins."""
    number, start = at
    hasher = digest.Hasher()
    hasher.update(begun)
    position = start + len(begun)
    while more := stream.readline(1 << 20):
        position += len(more)
        if more.endswith(b"\n"):
            hasher.update(more.rstrip(b"\r\n"))
            break
        hasher.update(more)
    where = f"{piece.label}[{start}-{position}]" if piece.start else f"{piece.label}:{number}"
    message = f"a record of {position - start} bytes is above the limit of {piece.context.limits.max_record}"
    return Refused("record-too-large", where, message, None, hasher.hexdigest(), begun[:EXCERPT]), position
