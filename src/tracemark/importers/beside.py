"""Files that lie around a record: read by name, never followed anywhere else, and searched without holding them."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tracemark.importers.compression import BrokenError, TooMuchError, expanded, packing

_PIECE = 1_048_576
_OVERLAP = 4096
_MAGIC = 16


def plain(name: str) -> bool:
    """Return whether a name is that of a file in the same folder, and leads nowhere else."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\\" not in name and "\0" not in name


def read(path: Path, limit: int) -> bytes | str | None:
    """Return the bytes of a file; why it is not read, in words; None when there is none."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return "it is a symbolic link, which is not followed"
        if not stat.S_ISREG(found.st_mode):
            return "it is no regular file"
        if found.st_size > limit:
            return f"it has {found.st_size} bytes, more than the {limit} that are read"
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"


def occurrences(path: Path, pattern: re.Pattern[bytes], limit: int) -> Iterator[bytes]:
    """Yield what the first group of a pattern finds in a regular file, in order; nothing where there is none to read.

    A file that is packed is searched as it was before, an archive is not. Where the packing breaks, the search ends.

    Args:
        path: the file, of any size; a piece of it is held.
        pattern: what it finds may have 4,096 bytes at most.
        limit: how many bytes may come out of a packed file.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return
        packed = _packing(path)
        if packed == "zip":
            return
        with expanded(str(path), packed, "", limit) as file:
            held, more = b"", b"-"
            while more:
                more = file.read(_PIECE)
                data = held + more
                # what begins near the end may go on in the next piece
                sure, last = len(data) - _OVERLAP if more else len(data), 0
                for match in pattern.finditer(data):
                    if match.start() >= sure:
                        break
                    yield match[1]
                    last = match.end()
                held = data[max(sure, last, 0) :]
    except (OSError, BrokenError, TooMuchError):
        return


def _packing(path: Path) -> str:
    with path.open("rb") as file:
        return packing(file.read(_MAGIC))
