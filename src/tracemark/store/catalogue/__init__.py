"""The catalogue: a SQLite projection of the data files, which can always be made again.

Beside `migrations` the only place that knows SQL. Rows come from `row` and `annotations`; nothing here reads a data
file. `contents` and `reader` answer questions and can open a catalogue read-only; `writer` enters and removes data
files.
"""

from tracemark.store.catalogue.contents import SCHEMA, CatalogueError, Stored, UnusableError, is_damage
from tracemark.store.catalogue.reader import Apart, Foreign, Plain, Reader, Restated
from tracemark.store.catalogue.writer import Catalogue

__all__ = [
    "SCHEMA",
    "Apart",
    "Catalogue",
    "CatalogueError",
    "Foreign",
    "Plain",
    "Reader",
    "Restated",
    "Stored",
    "UnusableError",
    "is_damage",
]
