"""A segment: lines of canonical JSON in zstd frames, written once, named by its own bytes.

A frame holds up to 64 lines (fewer when they are large), has a checksum and its content size, and no dictionary, so
`zstd -dc FILE` reads a segment and a (frame, byte offset) reaches one line with one read.

Invariants:
- the same lines make the same file, whoever writes them: framing depends on the lines alone;
- memory is bounded by one frame, whatever the segment's size;
- a segment is never opened for writing again once it has its name;
- what keeps a segment from being read, damage or the system, is one kind of error, in words, which names the file by
  its place in the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import zstandard

from tracemark.digest import Hasher
from tracemark.durable import require_regular, why_unread
from tracemark.errors import IntegrityError, IrregularFileError

FRAME_LINES = 64
"""How many lines a frame holds at most."""

FRAME_BYTES = 8 * 2**20
"""A frame is closed by the line that brings it to this many uncompressed bytes."""

_LEVEL = 3
# What repeats in traces is long (prompts, tools, texts of files), and the table of long matches finds it. That of short
# ones stays in the processor's cache at this size, which is faster and costs no bytes (docs/decisions/0030).
_CHAIN_LOG = 13
_CHUNK = 2**18


class Location(NamedTuple):
    """Where a line stands in its file."""

    frame_offset: int
    """Byte offset of the frame in the file."""
    frame_length: int
    """Compressed bytes of the frame."""
    offset: int
    """Byte offset of the line in the uncompressed frame."""
    length: int
    """Bytes of the line, without its line feed."""


class Packed(NamedTuple):
    """A finished file that has no final name yet."""

    temporary: Path
    """The complete, synced file."""
    name: str
    """SHA-256 of its bytes, 64 hexadecimal digits."""
    size: int
    """Its size in bytes."""
    locations: tuple[Location, ...]
    """Where each line stands, in the order in which they were added."""


class Packer:
    """Writes lines to a new file, frame by frame.

    Args:
        temporary: the file to write; it must not exist.

    Raises:
        OSError: when the file cannot be created.
    """

    def __init__(self, temporary: Path) -> None:
        self._path = temporary
        self._file = temporary.open("xb", buffering=0)
        self._hasher = Hasher()
        self._compressor = zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                compression_level=_LEVEL, chain_log=_CHAIN_LOG, write_checksum=True, write_content_size=True
            )
        )
        self._lines: list[bytes] = []
        self._pending = 0
        self._written = 0
        self._locations: list[Location] = []

    def add(self, line: bytes) -> None:
        """Append one line, given without its line feed.

        Raises:
            OSError: when the file cannot be written.
        """
        self._lines.append(line)
        self._pending += len(line) + 1
        if len(self._lines) == FRAME_LINES or self._pending >= FRAME_BYTES:
            self._flush()

    def close(self) -> Packed | None:
        """Finish the file and make its bytes durable.

        Returns:
            What was written; None (and no file) when no line was added.

        Raises:
            OSError: when the file cannot be written or synced.
        """
        with self._file:
            self._flush()
            if self._locations:
                os.fsync(self._file.fileno())
        if not self._locations:
            self.abandon()
            return None
        return Packed(self._path, self._hasher.hexdigest(), self._written, tuple(self._locations))

    def abandon(self) -> None:
        """Drop the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._lines:
            return
        frame = self._compressor.compress(b"\n".join(self._lines) + b"\n")
        view = memoryview(frame)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            # half a frame is the end of it: nothing may follow, and nobody will finish the file
            self._file.close()
            raise
        self._hasher.update(frame)
        offset = 0
        for line in self._lines:
            self._locations.append(Location(self._written, len(frame), offset, len(line)))
            offset += len(line) + 1
        self._written += len(frame)
        self._lines = []
        self._pending = 0


def read_line(path: Path, location: Location) -> bytes:
    """Return one line, without its line feed, by one read of its frame.

    The frame is decompressed up to the line's end only, so its checksum is not checked: compare the line's digest.

    Raises:
        IntegrityError: when the file is missing, cut short or damaged, or cannot be read.
    """
    return next(read_lines(path, [location]))


def read_lines(path: Path, locations: Iterable[Location]) -> Iterator[bytes]:
    """Yield the lines at `locations` of one file, in that order; neighbours in one frame decompress it once.

    Raises:
        IntegrityError: when the file is missing, cut short or damaged, or cannot be read; what stands before that was
            yielded.
    """
    decompressor = zstandard.ZstdDecompressor()
    with _reading(path), path.open("rb", buffering=0) as file:
        for (start, length), group in groupby(locations, key=lambda location: location[:2]):
            wanted = list(group)
            end = max(location.offset + location.length for location in wanted) + 1
            with decompressor.stream_reader(os.pread(file.fileno(), length, start)) as reader:
                data = reader.read(end)
            for _, _, offset, size in wanted:
                line = data[offset : offset + size]
                if data[offset + size : offset + size + 1] != b"\n":
                    raise _damaged(path, "a line is not where the catalogue says")
                yield line


def iterate(path: Path, hasher: Hasher | None = None) -> Iterator[tuple[Location, bytes]]:
    """Yield every line of a file with its location, verifying each frame's checksum.

    Args:
        path: the file.
        hasher: fed with all bytes of the file; None when nobody asks for their digest.

    Raises:
        IntegrityError: when the file is missing, cut short or damaged, or cannot be read; lines of whole frames before
            that were yielded.
    """
    for frame_offset, frame_length, data in _frames(path, hasher):
        lines = data.split(b"\n")
        if lines.pop() != b"":
            raise _damaged(path, "a frame does not end with a line feed")
        offset = 0
        for line in lines:
            yield Location(frame_offset, frame_length, offset, len(line)), line
            offset += len(line) + 1


def _frames(path: Path, hasher: Hasher | None) -> Iterator[tuple[int, int, bytes]]:
    decompressor = zstandard.ZstdDecompressor()
    offset, pending = 0, b""

    def read() -> bytes:
        data = file.read(_CHUNK)
        if hasher is not None:
            hasher.update(data)
        return data

    with _reading(path), path.open("rb") as file:
        while pending or (pending := read()):
            frame = decompressor.decompressobj()
            pieces, fed = [], 0
            while not frame.eof:
                if not (pending or (pending := read())):
                    raise _damaged(path, "the file is cut short")
                fed += len(pending)
                pieces.append(frame.decompress(pending))
                pending = b""
            pending = frame.unused_data
            length = fed - len(pending)
            yield offset, length, b"".join(pieces)
            offset += length


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Give a `with` block in which a file is read; whatever keeps it from being read is an `IntegrityError`."""
    try:
        require_regular(path)
        yield
    except zstandard.ZstdError as error:
        raise _damaged(path, str(error)) from None
    except FileNotFoundError:
        raise _damaged(path, "the file is missing") from None
    except IrregularFileError as error:
        raise _damaged(path, error.message) from None
    except OSError as error:
        raise _unusable(path, f"a stored file cannot be read: {why_unread(error)[0]}") from None


def _damaged(path: Path, message: str) -> IntegrityError:
    return _unusable(path, f"a stored file is damaged: {message}")


def _unusable(path: Path, message: str) -> IntegrityError:
    # the last three parts are the place of a stored file below `traces/`, by which a reader finds it in the corpus
    where = "traces/" + "/".join(path.parts[-3:]).removeprefix("traces/")
    return IntegrityError(message, where=where, hint="tracemark check")
