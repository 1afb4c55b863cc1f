"""Entering data files in the catalogue, and taking them out again.

Invariants:
- one data file is one transaction: its lines are all here or none is;
- entering a file twice, or two copies of a trace in any order, gives the same rows: the copy in the file whose path
  sorts first is *the* trace, the others wait in `copies` and take over when it goes;
- what a change may have made untrue of a trace (`stale`) is marked in the transaction of that change;
- several processes may have it open: writers wait for each other.
"""

# Only constants of this package are written into statements; every value is bound.
# ruff: noqa: S608

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.durable import lock, longest_wait, make_folder
from tracemark.errors import LockedError, NewerFormatError
from tracemark.store.annotations import OUTCOMES, STAMPS, AnnotationRow, RefusedRow
from tracemark.store.catalogue.contents import COLUMNS, PATH, SCHEMA, key_of
from tracemark.store.catalogue.reader import Reader, Restated
from tracemark.store.row import Projection, TraceRow
from tracemark.store.segment import Location

_CHECKPOINT_PAGES = 8000
_ALL = f"key, raw_key, {COLUMNS}"
_MARKS = ", ".join("?" * (len(TraceRow._fields) + 7))


class Catalogue(Reader):
    """An open catalogue.

    Args:
        path: the database file; made when missing, brought up to date when old.
        guard: the lock file that keeps two processes from bringing it up to date at once.

    Raises:
        NewerFormatError: when a newer tracemark made it.
        CatalogueError: when it is no database, or cannot be used.
    """

    def __init__(self, path: Path, guard: Path) -> None:
        make_folder(path.parent)
        super().__init__(sqlite3.connect(path, timeout=longest_wait(), isolation_level=None))
        try:
            # a projection may lose its last transactions in a power cut: the next opening enters the files again
            self._db.execute("PRAGMA synchronous = NORMAL")
            # random keys touch most index pages, so fewer checkpoints write each page less often
            self._db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            self._upgrade(path, guard)
        except BaseException:
            self.close()
            raise

    def _upgrade(self, path: Path, guard: Path) -> None:
        version = self.version()
        if version > SCHEMA:
            raise NewerFormatError(
                f"the catalogue has schema {version}, this program knows {SCHEMA}",
                where=path.name,
                hint="install a newer tracemark, or tracemark reindex",
            )
        if version == SCHEMA:
            return
        # sqlite-utils is slow to import
        from tracemark.store import migrations  # noqa: PLC0415

        with lock(guard, blocking=True):
            if self.version() < SCHEMA:
                self._db.execute("PRAGMA journal_mode = WAL")
                migrations.apply(self._db, SCHEMA)

    def add_traces(self, path: str, projections: Sequence[Projection], locations: Sequence[Location]) -> None:
        """Enter a segment; nothing when it is entered already.

        Args:
            path: its name relative to `traces/`.
            projections: of each of its lines.
            locations: of each of its lines.
        """
        with self._entering(path, len(projections)) as file:
            if file is None:
                return
            values = [_values(p.row, file, at) for p, at in zip(projections, locations, strict=True)]
            first = self._one("SELECT coalesce(max(number), 0) + 1 FROM traces")
            numbers = range(first, first + len(values))
            new = self._db.executemany(
                f"INSERT OR IGNORE INTO traces (number, {_ALL}) VALUES (?, {_MARKS})",
                ((number, *value) for number, value in zip(numbers, values, strict=True)),
            ).rowcount
            self._db.executemany(
                "INSERT INTO texts VALUES (?, ?)", zip(numbers, (p.text for p in projections), strict=True)
            )
            if new < len(values):
                self._keep_copies(path, file, values)
                self._db.execute(
                    "DELETE FROM texts WHERE number >= ? AND number NOT IN (SELECT number FROM traces)", (first,)
                )
            replaced = [(bytes.fromhex(old), p.row.id, file) for p in projections for old in p.supersedes]
            self._db.executemany("INSERT INTO replaced VALUES (?, ?, ?)", replaced)
            self._add_shown(projections, file)
            self._mark_stale(
                "SELECT trace FROM annotations WHERE kind IN (?, ?)"
                " AND trace IN (SELECT id FROM traces WHERE file = ?)",
                (STAMPS, OUTCOMES, file),
            )

    def add_annotations(self, path: str, rows: Sequence[AnnotationRow], locations: Sequence[Location]) -> None:
        """Enter a file of annotations; nothing when it is entered already."""
        with self._entering(path, len(rows)) as file:
            if file is None:
                return
            self._db.executemany(
                "INSERT OR IGNORE INTO annotations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                ((r.digest, r.kind, r.trace, file, *at) for r, at in zip(rows, locations, strict=True)),
            )
            self._db.executemany(
                "INSERT INTO superseded VALUES (?, ?, ?, ?)",
                ((old, r.kind, r.trace, file) for r in rows for old in r.supersedes),
            )
            self._db.executemany(
                "INSERT INTO exported VALUES (?, ?, ?)", ((i, r.digest, file) for r in rows for i in r.traces)
            )
            self._db.executemany(
                "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((*r.source, file) for r in rows if r.source is not None),
            )
            self._annotated_are_stale(file)

    def add_refused(self, path: str, rows: Sequence[RefusedRow], locations: Sequence[Location]) -> None:
        """Enter a file of refused records; nothing when it is entered already."""
        with self._entering(path, len(rows)) as file:
            if file is not None:
                self._db.executemany(
                    "INSERT OR IGNORE INTO refused VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    ((*r, file, *at) for r, at in zip(rows, locations, strict=True)),
                )

    def remove(self, path: str) -> None:
        """Take out everything that came from one data file; other copies of its traces take their place."""
        with self.transaction():
            file = self._one("SELECT number FROM files WHERE path = ?", path)
            if file is None:
                return
            self._annotated_are_stale(file)
            self._mark_stale("SELECT id FROM traces WHERE file = ?", (file,))
            self._mark_stale("SELECT id FROM copies WHERE file = ?", (file,))
            self._db.execute("DELETE FROM copies WHERE file = ?", (file,))
            for number, identity in self._db.execute(
                "SELECT number, id FROM traces WHERE file = ? AND id IN (SELECT id FROM copies)", (file,)
            ).fetchall():
                self._promote(number, identity)
            gone = "SELECT number FROM traces WHERE file = ?"
            self._db.execute(
                "INSERT INTO search (search, rowid, text) SELECT 'delete', number, text FROM texts"
                f" WHERE number <= ? AND number IN ({gone})",
                (self._watermark(), file),
            )
            self._db.execute(f"DELETE FROM texts WHERE number IN ({gone})", (file,))
            for table in ("traces", "replaced", "annotations", "superseded", "exported", "sources", "refused", "shown"):
                self._db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))
            self._db.execute("DELETE FROM files WHERE number = ?", (file,))
            last = self._one("SELECT coalesce(max(number), 0) FROM traces")
            self.set_meta("watermark", str(min(self._watermark(), last)))

    def _add_shown(self, projections: Sequence[Projection], file: int) -> None:
        """Enter what the traces of a file show of a harness that nobody names; equal texts are kept once.

        Of a trace that has several lines the first one is taken, as `traces` takes it.
        """
        first = {p.row.id: p.shown for p in reversed(projections)}
        shown = [(identity, text) for identity, texts in first.items() for text in texts]
        self._db.executemany("INSERT OR IGNORE INTO halves (text) VALUES (?)", {(text,) for _, text in shown})
        self._db.executemany(
            "INSERT INTO shown SELECT ?, number, ? FROM halves WHERE text = ?",
            ((identity, file, text) for identity, text in shown),
        )

    def _keep_copies(self, path: str, file: int, values: list[tuple[Any, ...]]) -> None:
        """Put the lines that found their trace present into `copies`, or in its place where `path` sorts first."""
        owners = {
            row[0]: row[1:]
            for row in self._where_ids(
                f'SELECT id, file, frame_offset, "offset", number, {PATH} FROM traces WHERE id IN',
                (value[2] for value in values),
            )
        }
        for value in values:
            owner, frame, offset, number, place = owners[value[2]]
            if (owner, frame, offset) == (file, value[-4], value[-2]):
                continue
            self._db.execute(f"INSERT OR IGNORE INTO copies ({_ALL}) VALUES ({_MARKS})", value)
            if path < place:
                self._db.execute(f"INSERT INTO copies ({_ALL}) SELECT {_ALL} FROM traces WHERE number = ?", (number,))
                self._promote(number, value[2])
                owners[value[2]] = (file, value[-4], value[-2], number, path)
            self._db.execute("INSERT OR IGNORE INTO stale VALUES (?)", (value[2],))

    def _promote(self, number: int, identity: bytes) -> None:
        """Make the copy whose path sorts first the trace itself."""
        best = self._db.execute(
            f"SELECT copies.rowid, {_ALL} FROM copies JOIN files ON files.number = copies.file WHERE id = ?"
            ' ORDER BY path, frame_offset, "offset" LIMIT 1',
            (identity,),
        ).fetchone()
        self._db.execute(f"UPDATE traces SET ({_ALL}) = ({_MARKS}) WHERE number = ?", (*best[1:], number))
        self._db.execute("DELETE FROM copies WHERE rowid = ?", (best[0],))

    def _annotated_are_stale(self, file: int) -> None:
        self._mark_stale(
            "SELECT trace FROM annotations WHERE file = ? AND kind IN (?, ?) AND trace IS NOT NULL",
            (file, STAMPS, OUTCOMES),
        )

    def _mark_stale(self, query: str, parameters: tuple[Any, ...]) -> None:
        self._db.execute(f"INSERT OR IGNORE INTO stale {query}", parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the database's write lock; everything done inside is kept whole, or not at all after an exception.

        Raises:
            LockedError: when other processes hold it for longer than we wait.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise LockedError(f"the catalogue cannot be written: {error}", hint="try again later") from None
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _entering(self, path: str, lines: int) -> Iterator[int | None]:
        """Give the number under which `path` is entered, in a transaction; None when it is entered already."""
        with self.transaction():
            if self._one("SELECT number FROM files WHERE path = ?", path) is not None:
                yield None
            else:
                yield self._db.execute("INSERT INTO files (path, lines) VALUES (?, ?)", (path, lines)).lastrowid

    def restate(self, found: Iterable[tuple[bytes, Restated | None]]) -> None:
        """Set the present state of traces; None where it is just the first statement, or the trace is gone.

        To be called in the transaction in which the statements were read.
        """
        for identity, restated in found:
            self._db.execute("DELETE FROM stale WHERE id = ?", (identity,))
            self._db.execute("DELETE FROM restated WHERE id = ?", (identity,))
            if restated is not None:
                texts = [digest.canonical(member).decode() for member in restated[:3]]
                self._db.execute("INSERT INTO restated VALUES (?, ?, ?, ?, ?)", (identity, *texts, restated.shown))

    def set_meta(self, key: str, value: str) -> None:
        """Set a setting of the catalogue."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def find(self, words: str, limit: int) -> list[bytes]:
        """Return the ids of traces whose search text holds all `words`, best first; brings the index up to date."""
        last = self._one("SELECT coalesce(max(number), 0) FROM texts")
        if last > self._watermark():
            with self.transaction():
                self._db.execute(
                    "INSERT INTO search (rowid, text) SELECT number, text FROM texts WHERE number > ?",
                    (self._watermark(),),
                )
                self.set_meta("watermark", str(self._one("SELECT coalesce(max(number), 0) FROM texts")))
        phrase = " ".join('"' + word.replace('"', '""') + '"' for word in words.split())
        query = (
            "SELECT id FROM search JOIN traces ON traces.number = search.rowid WHERE search MATCH ?"
            " ORDER BY rank, id LIMIT ?"
        )
        return [row[0] for row in self._db.execute(query, (phrase, limit))] if phrase else []

    def _watermark(self) -> int:
        return int(self.meta("watermark") or 0)


def _values(row: TraceRow, file: int, location: Location) -> tuple[Any, ...]:
    return (key_of(row.id), key_of(row.raw), *row, file, *location)
