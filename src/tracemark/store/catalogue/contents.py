"""What the catalogue holds of each data file: by this, `check` compares it with the files.

Invariants:
- nothing here changes the database, so a catalogue opened read-only answers everything;
- the name of a file comes by the statement that gives the row, so it is of the same moment: the number that stands for
  it in the database may have gone by the next statement, or stand for another file.
"""

# Only constants of this package are written into statements; every value is bound.
# ruff: noqa: S608

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

from tracemark.store.annotations import OUTCOMES, STAMPS, SourceRow
from tracemark.store.row import TraceRow
from tracemark.store.segment import Location

SCHEMA = 5
"""How many steps `migrations` has; `user_version` of a catalogue that is up to date."""

CatalogueError = sqlite3.Error
"""Whatever a catalogue could not do; under this name, because nothing outside this package knows SQLite."""

UnusableError = sqlite3.OperationalError
"""The kind of `CatalogueError` that is not the catalogue's fault: locked, unwritable, no room."""


def is_damage(error: BaseException | None) -> bool:
    """Return whether an error says that the database itself is damaged, and not that it was used in a wrong way."""
    return type(error) is sqlite3.DatabaseError


LINKS = {
    "replaced": ("old", "new"),
    "superseded": ("old", "kind", "trace"),
    "exported": ("trace", "annotation"),
    "sources": SourceRow._fields,
    "shown": ("trace", "(SELECT text FROM halves WHERE number = half)"),
}
"""Tables of what the lines of a file say of other lines, and their columns beside that of the file."""

_FIELDS = len(TraceRow._fields)
LOCATION = 'frame_offset, frame_length, "offset", length'
COLUMNS = ", ".join((*TraceRow._fields, "file", LOCATION))
PATH = "(SELECT path FROM files WHERE files.number = file)"
STORED = ", ".join((*TraceRow._fields, PATH, LOCATION))
STORED_JOINED = ", ".join((*TraceRow._fields, "path", LOCATION))
_FLAGS = tuple(
    TraceRow._fields.index(name)
    for name in ("contradicted", "mixed", "rendered", "demonstration", "copied", "uncalled")
)


class Stored(NamedTuple):
    """A trace and where its line is."""

    row: TraceRow
    """What the first statement says."""
    file: str
    """Name of the segment, relative to `traces/`."""
    location: Location
    """Where the line is in it."""


class Contents:
    """An open catalogue that is asked what it holds of files.

    Args:
        connection: a connection in autocommit mode.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the database file `path` read-only.

        Raises:
            CatalogueError: when it is missing or no database.
        """
        return cls(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def version(self) -> int:
        """Return the version of the catalogue's schema; 0 for a new file."""
        version: int = self._one("PRAGMA user_version")
        return version

    def damage(self) -> str | None:
        """Return what is wrong with the pages of the database, every one of which is read; None when nothing is."""
        found: str = self._one("PRAGMA quick_check(1)")
        return None if found == "ok" else " ".join(found.split())

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """Give a `with` block in which every answer is of one moment, whatever other processes enter meanwhile."""
        self._db.execute("BEGIN")
        try:
            # the moment is that of the first question, which must be one that a catalogue of any schema answers
            self.version()
            yield
        finally:
            # some errors end the transaction by themselves
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def files(self) -> dict[str, int]:
        """Return the names of the data files entered, with their number of lines."""
        return dict(self._db.execute("SELECT path, lines FROM files"))

    def traces_in(self, path: str) -> set[tuple[TraceRow, Location]]:
        """Return the rows, and the places, of the lines of one segment."""
        query = f"SELECT {STORED}, key, raw_key FROM %s WHERE file = (SELECT number FROM files WHERE path = ?)"
        rows = chain.from_iterable(self._db.execute(query % table, (path,)) for table in ("traces", "copies"))
        # a row under another key is never found
        found = [stored_of(row[:-2]) for row in rows if row[-2:] == (key_of(row[0]), key_of(row[1]))]
        return {(stored.row, stored.location) for stored in found}

    def statements_in(self, table: str, path: str) -> set[tuple[Any, ...]]:
        """Return what is entered of each line of one file in `table` (`annotations` or `refused`), and its place."""
        members = {"annotations": "digest, kind, trace", "refused": "digest, raw, code"}[table]
        query = f"SELECT {members}, {LOCATION} FROM {table} WHERE file = (SELECT number FROM files WHERE path = ?)"
        return {(*row[:3], Location(*row[3:])) for row in self._db.execute(query, (path,))}

    def links_in(self, path: str) -> set[tuple[Any, ...]]:
        """Return what the lines of one file say of other lines, each with the name of its table first."""
        found: set[tuple[Any, ...]] = set()
        for table, columns in LINKS.items():
            query = f"SELECT {', '.join(columns)} FROM {table} WHERE file = (SELECT number FROM files WHERE path = ?)"
            found |= {(table, *row) for row in self._db.execute(query, (path,))}
        return found

    def restatable(self) -> list[bytes]:
        """Return, sorted, the ids of which the restated row must be what the statements give.

        They are those that are stated more than once, or have such a row, and are not stale.
        """
        query = (
            f"SELECT trace FROM annotations WHERE kind IN ('{STAMPS}', '{OUTCOMES}') AND trace IS NOT NULL"
            " UNION SELECT id FROM copies UNION SELECT id FROM restated EXCEPT SELECT id FROM stale"
        )
        return sorted(row[0] for row in self._db.execute(query))

    def misplaced(self) -> list[bytes]:
        """Return the ids of traces of which a copy stands before the one that is taken for the trace, sorted."""
        query = (
            "SELECT DISTINCT copies.id FROM copies JOIN files AS f ON f.number = copies.file"
            " JOIN traces ON traces.id = copies.id JOIN files AS g ON g.number = traces.file WHERE"
            ' (f.path, copies.frame_offset, copies."offset") < (g.path, traces.frame_offset, traces."offset")'
        )
        return sorted(row[0] for row in self._db.execute(query))

    def _one(self, query: str, *parameters: Any) -> Any:
        with closing(self._db.execute(query, parameters)) as cursor:
            row = cursor.fetchone()
        return row[0] if row else None


def stored_of(values: Sequence[Any]) -> Stored:
    """Return the trace of which a query gave the columns `STORED`, or `STORED_JOINED` where `files` was joined."""
    fields = list(values[:_FIELDS])
    for index in _FLAGS:
        fields[index] = bool(fields[index])
    return Stored(TraceRow(*fields), values[_FIELDS], Location(*values[_FIELDS + 1 :]))


def key_of(identity: bytes) -> int:
    """Return the index key of a digest: its first eight bytes as a signed integer."""
    return int.from_bytes(identity[:8], "big", signed=True)
