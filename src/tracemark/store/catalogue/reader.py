"""Questions to the catalogue.

Invariants:
- nothing here changes the database, so a catalogue opened read-only answers everything but `find`;
- answers are ordered by the traces' places in the files, so that readers open each file and frame once.
"""

# Only constants of this package are written into statements; every value is bound.
# ruff: noqa: S608

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

from tracemark import digest
from tracemark.digest import JSON
from tracemark.store.annotations import OUTCOMES, STAMPS, SourceRow
from tracemark.store.row import TraceRow
from tracemark.store.segment import Location

SCHEMA = 2
"""How many steps `migrations` has; `user_version` of a catalogue that is up to date."""

CatalogueError = sqlite3.Error
"""Whatever a catalogue could not do; under this name, because nothing outside this package knows SQLite."""

UnusableError = sqlite3.OperationalError
"""The kind of `CatalogueError` that is not the catalogue's fault: locked, unwritable, no room."""

LINKS = {
    "replaced": ("old", "new"),
    "superseded": ("old", "kind", "trace"),
    "exported": ("trace", "annotation"),
    "sources": SourceRow._fields,
}
"""Tables of what the lines of a file say of other lines, and their columns beside that of the file."""

_BATCH = 500
_FIELDS = len(TraceRow._fields)
_LOCATION = 'frame_offset, frame_length, "offset", length'
COLUMNS = ", ".join((*TraceRow._fields, "file", _LOCATION))
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


class Restated(NamedTuple):
    """How the present state of a trace differs from its first statement."""

    fields: dict[str, JSON]
    """Fields of the row that differ, with their present values."""
    conflicts: tuple[str, ...]
    """What its statements disagree about."""
    choices: dict[str, JSON]
    """For each fingerprint that a statement declares, the fields of that statement."""


class Apart:
    """Which traces must be looked at one by one; of all others it is enough to count them.

    Args:
        fingerprints: those of which a trace may be wanted.
        ids: traces about which somebody decided.
        records: digests of raw records about which somebody decided.
    """

    def __init__(self, fingerprints: Iterable[str], ids: Iterable[bytes], records: Iterable[bytes]) -> None:
        names = sorted(fingerprints)
        keys = [digest.canonical(sorted(map(key_of, digests))).decode() for digests in (ids, records)]
        self.others = (
            f"coalesce(fingerprint, '') NOT IN ({_marks(names)}) AND id NOT IN (SELECT id FROM restated)"
            " AND key NOT IN (SELECT value FROM json_each(?)) AND raw_key NOT IN (SELECT value FROM json_each(?))"
        )
        """The condition that holds for the others."""
        self.parameters = (*names, *keys)
        """What is bound in it."""


class Plain(NamedTuple):
    """Traces about which nothing was stated or decided after they were stored, counted."""

    fingerprint: str | None
    """Their fingerprint."""
    mixed: bool
    """Whether more than one harness was at work."""
    superseded: bool
    """Whether another trace replaces each of them."""
    traces: int
    """How many there are."""


class Reader:
    """An open catalogue that is only asked.

    Args:
        connection: a connection in autocommit mode.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._paths: dict[int, str] = {}

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

    def files(self) -> dict[str, int]:
        """Return the names of the data files entered, with their number of lines."""
        return dict(self._db.execute("SELECT path, lines FROM files"))

    def traces_in(self, path: str) -> set[tuple[TraceRow, Location]]:
        """Return the rows, and the places, of the lines of one segment."""
        query = f"SELECT {COLUMNS}, key, raw_key FROM %s WHERE file = (SELECT number FROM files WHERE path = ?)"
        rows = chain.from_iterable(self._db.execute(query % table, (path,)) for table in ("traces", "copies"))
        # a row under another key is never found
        found = [self._stored(row[:-2]) for row in rows if row[-2:] == (key_of(row[0]), key_of(row[1]))]
        return {(stored.row, stored.location) for stored in found}

    def statements_in(self, table: str, path: str) -> set[tuple[Any, ...]]:
        """Return what is entered of each line of one file in `table` (`annotations` or `refused`), and its place."""
        members = {"annotations": "digest, kind, trace", "refused": "digest, raw, code"}[table]
        query = f"SELECT {members}, {_LOCATION} FROM {table} WHERE file = (SELECT number FROM files WHERE path = ?)"
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

    def restated(self, ids: Collection[bytes] | None = None) -> dict[bytes, Restated]:
        """Return the present state of those of `ids` that have one beside their first statement; of all for None."""
        rows = self._of_traces("SELECT id, fields, conflicts, choices FROM restated", "id", ids)
        return {row[0]: _restated(row[1:]) for row in rows}

    def contested(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Yield each trace about which statements disagree, by id, with the members that they dispute."""
        for identity, conflicts in self._db.execute(
            "SELECT id, conflicts FROM restated WHERE conflicts != '[]' ORDER BY id"
        ):
            yield identity, tuple(digest.load_canonical(conflicts.encode()))

    def lookup(self, ids: Iterable[bytes]) -> Iterator[Stored]:
        """Yield the traces among `ids` that are present; batched by the first eight bytes, sorted."""
        wanted = set(ids)
        for batch in _batches(sorted({key_of(identity) for identity in wanted})):
            query = f"SELECT {COLUMNS} FROM traces WHERE key IN ({_marks(batch)})"
            yield from (s for s in map(self._stored, self._db.execute(query, batch)) if s.row.id in wanted)

    def lookup_raw(self, digests: Iterable[bytes]) -> Iterator[Stored]:
        """Yield the traces that were made of the raw records `digests`.

        A trace that several records hold comes for each; its row says whence it came in that one, and who read it.
        """
        wanted = set(digests)
        for batch in _batches(sorted({key_of(raw) for raw in wanted})):
            for table in ("traces", "copies"):
                query = f"SELECT {COLUMNS} FROM {table} WHERE raw_key IN ({_marks(batch)})"
                yield from (s for s in map(self._stored, self._db.execute(query, batch)) if s.row.raw in wanted)
        further = f"SELECT {', '.join(SourceRow._fields)} FROM sources WHERE raw IN"
        sources = [SourceRow(*row) for row in self._where_ids(further, wanted)]
        stored = {found.row.id: found for found in self.lookup(source.trace for source in sources)}
        for source in sources:
            if source.trace in stored:
                found = stored[source.trace]
                told = {name: value for name, value in source._asdict().items() if name != "trace"}
                yield found._replace(row=found.row._replace(**told))

    def records(self, ids: Collection[bytes]) -> dict[bytes, set[bytes]]:
        """Return the digests of all raw records that hold each of the traces `ids`, as far as anybody said."""
        found: dict[bytes, set[bytes]] = {}
        for query in (
            "SELECT id, raw FROM traces WHERE id IN",
            "SELECT id, raw FROM copies WHERE id IN",
            "SELECT trace, raw FROM sources WHERE trace IN",
        ):
            for identity, raw in self._where_ids(query, ids):
                if raw:
                    found.setdefault(identity, set()).add(raw)
        return found

    def between(self, low: bytes, high: bytes, limit: int) -> list[bytes]:
        """Return at most `limit` ids from `low` to `high`, both included, sorted."""
        query = "SELECT id FROM traces WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
        return [row[0] for row in self._db.execute(query, (low, high, limit))]

    def select(
        self, fingerprints: Collection[str | None] | None, ids: Collection[bytes] | None
    ) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        """Yield traces in the order of their files and places: first statement, present state, what replaces them.

        Args:
            fingerprints: only traces first stated or restated under one of these; None among them stands for no
                fingerprint; None instead of them for all.
            ids: only these traces; None for all.
        """
        if ids is not None:
            return self._standing(iter(sorted(self.lookup(ids), key=lambda stored: stored[1:])), ids)
        if fingerprints is None:
            return self._standing(self._where("", ()), None)
        names = sorted(name for name in fingerprints if name is not None)
        missing = " OR fingerprint IS NULL" if None in fingerprints else ""
        where = f"WHERE fingerprint IN ({_marks(names)}){missing} OR id IN (SELECT id FROM restated)"
        return self._standing(self._where(where, names), None)

    def select_apart(self, apart: Apart) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        """Yield the traces that must be looked at one by one, see `select`."""
        return self._standing(self._where(f"WHERE NOT ({apart.others})", apart.parameters), None)

    def count_but(self, apart: Apart) -> list[Plain]:
        """Return counts of all traces but those that `select_apart` gives."""
        query = (
            "SELECT fingerprint, mixed, id IN (SELECT old FROM replaced) AS superseded, count(*) FROM traces"
            f" WHERE {apart.others} GROUP BY fingerprint, mixed, superseded"
        )
        return [Plain(r[0], bool(r[1]), bool(r[2]), r[3]) for r in self._db.execute(query, apart.parameters)]

    def _standing(
        self, rows: Iterator[Stored], ids: Collection[bytes] | None
    ) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        restated = {
            row[0]: row[1:] for row in self._of_traces("SELECT id, fields, conflicts, choices FROM restated", "id", ids)
        }
        replaced: dict[bytes, tuple[bytes, ...]] = {}
        for old, new in sorted(self._of_traces("SELECT old, new FROM replaced", "old", ids)):
            replaced[old] = (*replaced.get(old, ()), new)
        for stored in rows:
            identity = stored.row.id
            text = restated.get(identity)
            yield stored, _restated(text) if text else None, replaced.get(identity, ())

    def _where(self, where: str, parameters: Sequence[str]) -> Iterator[Stored]:
        query = (
            f"SELECT {COLUMNS} FROM traces JOIN (SELECT number AS n, path FROM files) ON n = file {where}"
            ' ORDER BY path, frame_offset, "offset"'
        )
        return map(self._stored, self._db.execute(query, parameters))

    def annotations(self, kind: str | None, trace: bytes | None) -> list[tuple[bytes, str, Location]]:
        """Return the annotations in force (digest, file, location), by file and place; None means any kind or trace."""
        query = (
            f"SELECT digest, file, {_LOCATION} FROM annotations AS a WHERE (?1 IS NULL OR kind = ?1)"
            " AND (?2 IS NULL OR trace = ?2)"
            " AND NOT EXISTS (SELECT 1 FROM superseded WHERE old = a.digest AND superseded.kind = a.kind)"
        )
        return self._places(self._db.execute(query, (kind, trace)))

    def known(self, table: str, digests: Collection[bytes]) -> set[bytes]:
        """Return which of `digests` are in `table` (`annotations` or `refused`) already."""
        return {row[0] for row in self._where_ids(f"SELECT digest FROM {table} WHERE digest IN", digests)}

    def exports_of(self, trace: bytes) -> list[tuple[bytes, str, Location]]:
        """Return the annotations (digest, file, location) of the exports that took a trace, by file and place."""
        query = (
            f"SELECT a.digest, a.file, {_LOCATION} FROM exported JOIN annotations AS a"
            " ON a.digest = exported.annotation WHERE exported.trace = ?"
        )
        return self._places(self._db.execute(query, (trace,)))

    def counts(self) -> dict[str, int]:
        """Return how many traces, copies, annotations and refused records there are."""
        counted = {"traces": "id", "copies": "rowid", "annotations": "digest", "refused": "digest"}
        return {t: self._one(f"SELECT count(DISTINCT {column}) FROM {t}") for t, column in counted.items()}

    def meta(self, key: str) -> str | None:
        """Return a setting of the catalogue; None when it was never set."""
        value: str | None = self._one("SELECT value FROM meta WHERE key = ?", key)
        return value

    def _path(self, file: int) -> str:
        if file not in self._paths:
            self._paths.update(self._db.execute("SELECT number, path FROM files"))
        return self._paths[file]

    def _places(self, rows: Iterable[Sequence[Any]]) -> list[tuple[bytes, str, Location]]:
        """Return one place for each digest, ordered by file and place."""
        found = sorted(((r[0], self._path(r[1]), Location(*r[2:])) for r in rows), key=lambda place: place[1:])
        return list({place[0]: place for place in reversed(found)}.values())[::-1]

    def _stored(self, values: Sequence[Any]) -> Stored:
        fields = list(values[:_FIELDS])
        for index in _FLAGS:
            fields[index] = bool(fields[index])
        return Stored(TraceRow(*fields), self._path(values[_FIELDS]), Location(*values[_FIELDS + 1 :]))

    def _one(self, query: str, *parameters: Any) -> Any:
        with closing(self._db.execute(query, parameters)) as cursor:
            row = cursor.fetchone()
        return row[0] if row else None

    def _of_traces(self, query: str, column: str, ids: Collection[bytes] | None) -> Iterator[tuple[Any, ...]]:
        """Return the rows of which `column` is one of `ids`; all rows for None."""
        return self._db.execute(query) if ids is None else self._where_ids(f"{query} WHERE {column} IN", ids)

    def _where_ids(self, query: str, ids: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        batches = _batches(sorted(set(ids)))
        return chain.from_iterable(self._db.execute(f"{query} ({_marks(b)})", b) for b in batches)

    def stale(self, limit: int) -> list[bytes]:
        """Return at most `limit` ids of traces whose restated row must be made again, sorted."""
        return [row[0] for row in self._db.execute("SELECT id FROM stale ORDER BY id LIMIT ?", (limit,))]

    def statement_places(self, ids: Collection[bytes]) -> list[tuple[bytes, str, bytes, str, Location]]:
        """Return where the statements about traces are: (trace, kind, digest, file, location), by file and place.

        The kind is `trace` for the first statement, `copy` for another copy's, else that of the annotation.
        """
        rows = [
            *self._where_ids(f"SELECT id, 'trace', head, file, {_LOCATION} FROM traces WHERE id IN", ids),
            *self._where_ids(f"SELECT id, 'copy', head, file, {_LOCATION} FROM copies WHERE id IN", ids),
            *self._where_ids(
                f"SELECT trace, kind, digest, file, {_LOCATION} FROM annotations"
                f" WHERE kind IN ('{STAMPS}', '{OUTCOMES}') AND trace IN",
                ids,
            ),
        ]
        places = [(r[0], r[1], r[2], self._path(r[3]), Location(*r[4:])) for r in rows]
        return sorted(places, key=lambda place: place[3:])

    def superseded(self, ids: Collection[bytes]) -> Iterator[tuple[bytes, bytes, str]]:
        """Yield what annotations about the traces `ids` replace: (trace, digest of the replaced, kind)."""
        yield from self._where_ids("SELECT trace, old, kind FROM superseded WHERE trace IN", ids)


def _restated(texts: Sequence[str]) -> Restated:
    fields, conflicts, choices = (digest.load_canonical(text.encode()) for text in texts)
    return Restated(fields, tuple(conflicts), choices)


def key_of(identity: bytes) -> int:
    """Return the index key of a digest: its first eight bytes as a signed integer."""
    return int.from_bytes(identity[:8], "big", signed=True)


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _marks(items: Sequence[Any]) -> str:
    return ", ".join("?" * len(items))
