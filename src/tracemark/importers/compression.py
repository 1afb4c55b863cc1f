"""Files as streams of expanded bytes, however they are packed; nothing is expanded beyond a limit.

The packing is recognised by the first bytes. A stream is read in pieces and never held whole; reading past the limit
raises `TooMuchError`, broken packing raises `BrokenError`, and no other error comes out of a stream.

Members of a zip archive may be packed with zstd (method 93), as Inspect AI writes them, in one frame or several; the
standard library reads those since Python 3.14 only, so they are read here, with the same check of their CRC.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Self

import zstandard

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_STARTS = tuple(magic for magic, _ in _MAGIC)
_FAULTS = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zstandard.ZstdError,
)
_WINDOW = 134_217_728
_ZSTD_METHOD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_STEP = 2048
"""How many packed bytes are expanded at once: 2 KiB can become 64 MiB."""


class TooMuchError(Exception):
    """The file expands to more than the limit."""


class BrokenError(Exception):
    """The packing cannot be read; the message says why."""


def packing(first: bytes) -> str:
    """Return `gzip`, `zstd`, `bzip2`, `xz` or `zip` for what `first` begins with; empty for a plain file."""
    if not first.startswith(_STARTS):
        return ""
    return next(name for magic, name in _MAGIC if first.startswith(magic))


def members(path: str, limit: int) -> list[tuple[str, int]]:
    """Return the name and the packed size of each file in a zip archive, in order of name.

    A name that stands in it several times is given once: the last file of that name took the place of the others.

    Raises:
        TooMuchError: when they expand to more than `limit` bytes together.
        BrokenError: when the archive cannot be read.
    """
    try:
        files = [info for info in _archive(path).infolist() if not info.is_dir()]
    except _FAULTS as error:
        raise BrokenError(f"zip: {error}") from None
    if sum(info.file_size for info in files) > limit:
        raise TooMuchError
    return sorted({info.filename: info.compress_size for info in files}.items())


@contextmanager
def expanded(path: str, packed: str, member: str, limit: int) -> Iterator[BinaryIO]:
    """Give the bytes of a file as a stream, expanded when it is packed.

    Args:
        path: the file.
        packed: what `packing` said of it.
        member: name of the file within a zip archive; empty otherwise.
        limit: how many bytes may come out of a packed file.

    Raises:
        BrokenError: when it cannot be opened as what it is said to be.
        OSError: when a plain file cannot be opened.
    """
    if not packed:
        with open(path, "rb", buffering=1 << 18) as file:  # noqa: PTH123 - once for each of very many files
            yield file
        return
    try:
        opened = _open(path, packed, member)
    except _FAULTS as error:
        raise BrokenError(f"{packed}: {error}") from None
    with opened[0], io.BufferedReader(_Limited(opened[0], packed, limit), 1 << 20) as stream:
        try:
            yield stream
        finally:
            for other in opened[1:]:
                other.close()


def _open(path: str, packed: str, member: str) -> tuple[Any, ...]:
    """Return the expanding stream, and what else is to be closed."""
    if packed == "zip":
        archive = _archive(path)
        info = archive.getinfo(member)
        return _open_zstd(path, info) if info.compress_type == _ZSTD_METHOD else (archive.open(info),)
    if packed == "zstd":
        plain = Path(path)
        file = plain.open("rb")
        return _Frames(file), file
    opener: Any = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}[packed]
    return (opener(path, "rb"),)


def _archive(path: str) -> zipfile.ZipFile:
    facts = os.stat(path)  # noqa: PTH116 - once for each of very many members
    return _opened(path, facts.st_mtime_ns, facts.st_size, os.getpid())


@lru_cache(maxsize=1)
def _opened(path: str, *_: int) -> zipfile.ZipFile:
    """Return an open archive; the last one is kept, since its table of contents would be read again for every member.

    It belongs to one process: two that shared it would share its position.
    """
    return zipfile.ZipFile(path)


def _open_zstd(path: str, info: zipfile.ZipInfo) -> tuple[Any, ...]:
    """Return what `_open` does for a member that is packed with zstd."""
    if info.flag_bits & 1:
        raise RuntimeError("the member is encrypted")
    archive = Path(path)
    with ExitStack() as opened:
        file = opened.enter_context(archive.open("rb"))
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile("a member does not begin where the archive says")
        _, name, extra = _LOCAL_HEADER.unpack(header)
        file.seek(name + extra, os.SEEK_CUR)
        # from here on it is the caller's to close
        opened.pop_all()
    return _Checked(_Frames(_Slice(file, info.compress_size)), info.CRC), file


class _Slice:
    """The next bytes of a file, and no more of it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        if not data and self._left:
            raise EOFError("the archive ends within a member")
        return data


class _Checked:
    """A stream whose bytes must have the CRC that the archive states."""

    def __init__(self, stream: _Frames, stated: int) -> None:
        self._stream = stream
        self._stated = stated
        self._found = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.__exit__()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        data = self._stream.read(size)
        self._found = zlib.crc32(data, self._found)
        if not data and self._found != self._stated:
            raise zipfile.BadZipFile("a member's CRC is not the stated one")
        return data


class _Frames:
    """The zstd frames of a file; unlike zstandard's own reader it tells a file that is cut from one that ends."""

    def __init__(self, file: BinaryIO | _Slice) -> None:
        self._file = file
        self._frame: Any = None
        self._packed = b""
        self._ready = memoryview(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ready = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        while not self._ready:
            packed = self._packed or self._file.read(_STEP)
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                return b""
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
            self._ready = memoryview(self._frame.decompress(packed))
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        data, self._ready = self._ready[:size], self._ready[size:]
        return bytes(data)


class _Limited(io.RawIOBase):
    """A stream that gives no more than `limit` bytes."""

    def __init__(self, stream: Any, packed: str, limit: int) -> None:
        self._stream = stream
        self._packed = packed
        self._left = limit
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._over:
            raise TooMuchError
        try:
            data = self._stream.read(len(buffer))
        except _FAULTS as error:
            raise BrokenError(f"{self._packed}: {str(error) or type(error).__name__}") from None
        self._over = len(data) > self._left
        data = data[: self._left]
        self._left -= len(data)
        if self._over and not data:
            raise TooMuchError
        buffer[: len(data)] = data
        return len(data)
