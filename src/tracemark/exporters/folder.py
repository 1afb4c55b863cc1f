"""The folder of an export: what in it is an export's own, and what is somebody else's and never replaced.

An export that was cut short is one as well, so any of its files may stand alone. A name says nothing: many programs
write a `README.md` and a `manifest.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tracemark.durable import require_regular
from tracemark.errors import IrregularFileError
from tracemark.exporters import manifest, sft
from tracemark.model.export import FORMAT

FILES = (sft.FILE, manifest.CARD, manifest.NAME)
"""What an export holds, in the order in which it is written."""

_CARD = manifest.card("").partition(b"\ndataset_info:")[0]
_ROW = json.dumps(min(name for name in sft.COLUMNS if name.startswith("tracemark_"))).encode()


def strangers(folder: Path) -> list[str]:
    """Return the names of what lies in a folder and is no part of an export, sorted.

    A folder that holds the rows, the card or the manifest of an export is an export's, and its other files of such
    names are its own, whatever became of them. Of an empty file of rows nothing is lost.

    Args:
        folder: a folder that is there.

    Raises:
        OSError: when it cannot be listed.
    """
    names = sorted(path.name for path in folder.iterdir())
    others = [name for name in names if name not in FILES and not is_temporary(name)]
    rows = _read(folder / sft.FILE, lambda file: file.readline())
    card = _read(folder / manifest.CARD, lambda file: file.read(len(_CARD)))
    if card == _CARD or _ROW in (rows or b"") or manifest.states_format(folder / manifest.NAME, FORMAT):
        return others
    alone = [name for name in names if name in FILES and not (name == sft.FILE and rows == b"")]
    return sorted([*others, *alone])


def is_temporary(name: str) -> bool:
    """Return whether a file is what an export that was cut short left behind."""
    return name.endswith(".tmp") and any(name.startswith(f".{file}.") for file in FILES)


def _read(path: Path, ask: Callable[[BinaryIO], bytes]) -> bytes | None:
    """Return what `ask` reads of a file; None where it is none, or cannot be read."""
    try:
        require_regular(path)
        with path.open("rb") as file:
            return ask(file)
    except (OSError, IrregularFileError):
        return None
