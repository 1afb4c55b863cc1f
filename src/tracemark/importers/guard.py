"""The boundary to importers, which may be anybody's: what one raises is refused, and the rest is read.

Importers raise for no content, so whatever they raise is a bug of theirs, and no reason to leave the rest of a source
unread.

Invariant:
- what is kept of an error names no place on this machine: a corpus is given away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tracemark.importers.base import Document, Imported, Record, Refused, refuse

FAILED = "importer-failed"
"""Code of the refusal of what an importer failed on."""

_SHOWN = 200
_ABSOLUTE = re.compile(r"""(?<![\w.~-])/[^/\s'"`,;:()\[\]{}<>]+""")


def guarded(importer: str, document: Record | Document, read: Callable[[], Imported | Refused]) -> Imported | Refused:
    """Return what an importer makes of one document; where it fails, the refusal of that document.

    Args:
        importer: the importer's name.
        document: what is read.
        read: reads it.
    """
    try:
        return read()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to importers, which may be anybody's
        return refuse_failed(importer, document, error)


class caught:  # noqa: N801 - used as a function, like `contextlib.suppress`
    """Catch what an importer raises in the `with` block, and add it to `faults`; memory that ran out is no fault."""

    def __init__(self, faults: list[Exception]) -> None:
        self._faults = faults

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            self._faults.append(error)
            return True
        return False


def refuse_failed(importer: str, document: Record | Document, fault: Exception) -> Refused:
    """Return the refusal of what an importer failed on."""
    if isinstance(fault, RecursionError):
        return refuse("too-deep", document, "nested too deeply to be judged")
    return refuse(FAILED, document, f"the importer {importer} failed: {worded(fault)}")


def worded(fault: Exception) -> str:
    """Return an exception in words, with the place in the program that raised it.

    Of an error of the operating system the file's name is left out, and any other message ends where it quotes a path.
    """
    at = fault.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = "" if at is None else f" ({Path(at.tb_frame.f_code.co_filename).name}, line {at.tb_lineno})"
    said = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return f"{type(fault).__name__}: {_without_path(said)[:_SHOWN]}{place}"


def _without_path(text: str) -> str:
    """Return a text up to the first absolute path of this machine; where that ends, spaces in it leave open."""
    for found in _ABSOLUTE.finditer(text):
        if os.path.lexists(found[0]):
            return f"{text[: found.start()]}…"
    return text
