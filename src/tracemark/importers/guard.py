"""The boundary to importers, which may be anybody's: what one raises is refused, and the rest is read.

Importers raise for no content, so whatever they raise is a bug of theirs, and no reason to leave the rest of a source
unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracemark.importers.base import Document, Imported, Record, Refused, refuse

FAILED = "importer-failed"
"""Code of the refusal of what an importer failed on."""

_SHOWN = 200


def guarded(importer: str, document: Record | Document, read: Callable[[], Imported | Refused]) -> Imported | Refused:
    """Return what an importer makes of one document; where it fails, the refusal of that document.

    Args:
        importer: the importer's name.
        document: what is read.
        read: reads it.
    """
    made: list[Imported | Refused] = []
    faults: list[Exception] = []
    with caught(faults):
        made.append(read())
    return made[0] if made else refuse_failed(importer, document, faults[0])


@contextmanager
def caught(faults: list[Exception]) -> Iterator[None]:
    """Catch what an importer raises in the `with` block, and add it to `faults`; memory that ran out is no fault."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to importers, which may be anybody's
        faults.append(error)


def refuse_failed(importer: str, document: Record | Document, fault: Exception) -> Refused:
    """Return the refusal of what an importer failed on."""
    if isinstance(fault, RecursionError):
        return refuse("too-deep", document, "nested too deeply to be judged")
    return refuse(FAILED, document, f"the importer {importer} failed: {worded(fault)}")


def worded(fault: Exception) -> str:
    """Return an exception in words, with the place in the program that raised it."""
    at = fault.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = "" if at is None else f" ({Path(at.tb_frame.f_code.co_filename).name}, line {at.tb_lineno})"
    return f"{type(fault).__name__}: {str(fault)[:_SHOWN]}{place}"
