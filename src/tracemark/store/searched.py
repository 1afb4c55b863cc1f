"""How much of a trace `traces find` searches: what `reindex --text` chose.

The choice decides which texts the catalogue holds, so the catalogue knows it. It is kept in a file beside the catalogue
as well, because a catalogue may be lost at any time, and one that is made again should hold the same texts.
"""

from __future__ import annotations

from pathlib import Path

from tracemark import digest
from tracemark.durable import read_regular, write_atomic
from tracemark.errors import TracemarkError
from tracemark.store.catalogue import Catalogue
from tracemark.store.layout import Layout

_TEXT = "text"
_EVERYTHING = "everything"


def searches_everything(catalogue: Catalogue) -> bool:
    """Return whether the search text is that of whole traces."""
    return catalogue.meta(_TEXT) == _EVERYTHING


def chosen(layout: Layout) -> bool:
    """Return whether whole traces shall be searched, as it was chosen last; false where nobody knows."""
    try:
        value = digest.loads(read_regular(_place(layout))).value
    except (OSError, TracemarkError, digest.NotJSONError):
        return False
    return isinstance(value, dict) and value.get(_TEXT) == _EVERYTHING


def choose(layout: Layout, *, everything: bool) -> None:
    """Keep what a catalogue that is made from now on shall hold.

    Raises:
        OSError: when it cannot be written.
    """
    place = _place(layout)
    if everything:
        write_atomic(place, digest.canonical({_TEXT: _EVERYTHING}) + b"\n")
    elif place.exists():
        place.unlink(missing_ok=True)


def begin(catalogue: Catalogue, layout: Layout) -> None:
    """Let a catalogue in which nothing is entered yet hold what was chosen."""
    if chosen(layout) and not searches_everything(catalogue):
        catalogue.set_meta(_TEXT, _EVERYTHING)


def _place(layout: Layout) -> Path:
    return layout.catalogue.with_name(f"{layout.catalogue.name}.settings")
