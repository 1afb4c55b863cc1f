"""Questions to the catalogue.

Invariants:
- nothing here changes the database, so a catalogue opened read-only answers everything but `find`;
- answers are ordered by the traces' places in the files, so that readers open each file and frame once.
"""

# Only constants of this package are written into statements; every value is bound.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.store.annotations import OUTCOMES, STAMPS, SourceRow
from tracemark.store.catalogue.contents import (
    LOCATION,
    PATH,
    STORED,
    STORED_JOINED,
    Contents,
    Stored,
    key_of,
    stored_of,
)
from tracemark.store.segment import Location

_BATCH = 500
_LISTED = "(SELECT value FROM json_each(?))"


class Restated(NamedTuple):
    """How the present state of a trace differs from its first statement."""

    fields: dict[str, JSON]
    """Fields of the row that differ, with their present values."""
    conflicts: tuple[str, ...]
    """What its statements disagree about."""
    choices: dict[str, JSON]
    """For each fingerprint that a statement declares, the fields of that statement."""
    shown: str | None
    """What they show together of a harness that nobody names, as canonical JSON; empty where they name one, or several.
    None where the first one shows the same, or names one itself."""


_STANDING = (
    f"SELECT {STORED_JOINED}, fields, conflicts, choices, shown,"
    " (SELECT group_concat(hex(new)) FROM (SELECT DISTINCT new FROM replaced WHERE old = traces.id ORDER BY new))"
    " FROM traces JOIN (SELECT number AS n, path FROM files) ON n = file"
    " LEFT JOIN (SELECT id AS again, fields, conflicts, choices, shown FROM restated) ON again = id"
)
"""Traces with their present state and what replaces them; a state is never held for more than one row."""


# a cross join keeps the order: from a trace, the whole of its file would be searched for what it shows
_SHOWN = (
    "shown AS first CROSS JOIN traces ON traces.id = first.trace AND traces.file = first.file"
    " LEFT JOIN restated ON restated.id = traces.id"
)
_TASK = "coalesce(fields ->> 'task', task)"
_NAMELESS = (
    "fingerprint IS NULL AND restated.shown IS NOT '' AND NOT coalesce(fields ->> 'mixed', mixed)"
    " AND role IS NOT 'subagent'"
    " AND traces.id NOT IN (SELECT old FROM replaced) AND hex(traces.id) NOT IN " + _LISTED
)
"""What holds for traces of the agent itself, made by one harness, that no statement names."""


_FOREIGN = (
    f"SELECT traces.id AS id, format, {_TASK} AS task, restated.shown AS since, group_concat(half) AS halves"
    f" FROM {_SHOWN} WHERE {_NAMELESS} GROUP BY first.trace, first.file"
)
"""Each of them with the numbers of the components that it showed first, and what it shows since."""


class Foreign(NamedTuple):
    """Traces without a harness that show the same of one."""

    half: str
    """What they show: the observed half of their stamps as canonical JSON, `{}` for nothing."""
    format: str | None
    """Format of their sources."""
    traces: int
    """How many there are."""
    tasks: int
    """How many tasks they are of; those without one are not counted."""
    first: bytes
    """The lowest id among them."""


class Apart:
    """Which traces must be looked at one by one; of all others it is enough to count them.

    Args:
        fingerprints: those of which a trace may be wanted.
        ids: traces about which somebody decided.
        records: digests of raw records about which somebody decided.
    """

    def __init__(self, fingerprints: Iterable[str], ids: Iterable[bytes], records: Iterable[bytes]) -> None:
        self.others = (
            f"coalesce(fingerprint, '') NOT IN {_LISTED} AND id NOT IN (SELECT id FROM restated)"
            f" AND key NOT IN {_LISTED} AND raw_key NOT IN {_LISTED}"
        )
        """The condition that holds for the others."""
        self.parameters = (_bound(fingerprints), *(_bound(map(key_of, digests)) for digests in (ids, records)))
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


class Reader(Contents):
    """An open catalogue that is only asked.

    Args:
        connection: a connection in autocommit mode.
    """

    def restated(self, ids: Collection[bytes] | None = None) -> dict[bytes, Restated]:
        """Return the present state of those of `ids` that have one beside their first statement; of all for None."""
        rows = self._of_traces("SELECT id, fields, conflicts, choices, shown FROM restated", "id", ids)
        return {row[0]: _restated(row[1:]) for row in rows}

    def contested(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Yield each trace about which statements disagree, by id, with the members that they dispute."""
        query = "SELECT id, conflicts FROM restated WHERE conflicts != '[]' ORDER BY id"
        for identity, conflicts in self._db.execute(query):
            yield identity, tuple(digest.load_canonical(conflicts.encode()))

    def lookup(self, ids: Iterable[bytes]) -> Iterator[Stored]:
        """Yield the traces among `ids` that are present; batched by the first eight bytes, sorted."""
        wanted = set(ids)
        for batch in _batches(sorted({key_of(identity) for identity in wanted})):
            query = f"SELECT {STORED} FROM traces WHERE key IN ({_marks(batch)})"
            yield from (s for s in map(stored_of, self._db.execute(query, batch)) if s.row.id in wanted)

    def lookup_raw(self, digests: Iterable[bytes]) -> Iterator[Stored]:
        """Yield the traces that were made of the raw records `digests`.

        A trace that several records hold comes for each; its row says whence it came in that one, and who read it.
        """
        wanted = set(digests)
        for batch in _batches(sorted({key_of(raw) for raw in wanted})):
            for table in ("traces", "copies"):
                query = f"SELECT {STORED} FROM {table} WHERE raw_key IN ({_marks(batch)})"
                yield from (s for s in map(stored_of, self._db.execute(query, batch)) if s.row.raw in wanted)
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

    def replacing(self, ids: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield each of `ids` that is superseded with each trace that supersedes it."""
        yield from self._where_ids("SELECT DISTINCT old, new FROM replaced WHERE old IN", ids)

    def between(self, low: bytes, high: bytes) -> list[bytes]:
        """Return the ids from `low` to `high`, both included, sorted."""
        query = "SELECT id FROM traces WHERE id BETWEEN ? AND ? ORDER BY id"
        return [row[0] for row in self._db.execute(query, (low, high))]

    def select(
        self,
        fingerprints: Collection[str | None] | None,
        ids: Collection[bytes] | None,
        tasks: Collection[str] | None = None,
    ) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        """Yield traces in the order of their files and places: first statement, present state, what replaces them.

        Args:
            fingerprints: only traces first stated or restated under one of these; None among them stands for no
                fingerprint; None instead of them for all.
            ids: only these traces, whatever else is wanted; None for all.
            tasks: only traces first stated with one of these, or restated; all for None, and where one holds a NUL.
        """
        if ids is not None:
            return self._among(ids)
        clauses, parameters = [], []
        if fingerprints is not None:
            missing = " OR fingerprint IS NULL" if None in fingerprints else ""
            clauses.append(f"(fingerprint IN {_LISTED}{missing})")
            parameters.append(_bound(name for name in fingerprints if name is not None))
        if tasks is not None and "\x00" not in "".join(tasks):  # at which json_each ends a text
            clauses.append(f"task IN {_LISTED}")
            parameters.append(_bound(tasks))
        where = f"WHERE {' AND '.join(clauses)} OR id IN (SELECT id FROM restated)" if clauses else ""
        return self._standing(where, parameters)

    def select_apart(self, apart: Apart) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        """Yield the traces that must be looked at one by one, see `select`."""
        return self._standing(f"WHERE NOT ({apart.others})", apart.parameters)

    def count_but(self, apart: Apart) -> list[Plain]:
        """Return counts of all traces but those that `select_apart` gives."""
        query = (
            "SELECT fingerprint, mixed, id IN (SELECT old FROM replaced) AS superseded, count(*) FROM traces"
            f" WHERE {apart.others} GROUP BY fingerprint, mixed, superseded"
        )
        return [Plain(r[0], bool(r[1]), bool(r[2]), r[3]) for r in self._db.execute(query, apart.parameters)]

    def _standing(
        self, where: str, parameters: Sequence[str | int]
    ) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        query = f'{_STANDING} {where} ORDER BY path, frame_offset, "offset"'
        return map(_stood, self._db.execute(query, parameters))

    def _among(self, ids: Collection[bytes]) -> Iterator[tuple[Stored, Restated | None, tuple[bytes, ...]]]:
        wanted = set(ids)
        batches = _batches(sorted({key_of(identity) for identity in wanted}))
        found = [one for b in batches for one in self._standing(f"WHERE key IN ({_marks(b)})", b)]
        return iter(sorted((one for one in found if one[0].row.id in wanted), key=lambda one: one[0][1:]))

    def annotations(self, kind: str | None, trace: bytes | None) -> list[tuple[bytes, str, Location]]:
        """Return the annotations in force (digest, file, location), by file and place; None means any kind or trace."""
        query = (
            f"SELECT digest, {PATH}, {LOCATION} FROM annotations AS a WHERE (:kind IS NULL OR kind = :kind)"
            " AND (:trace IS NULL OR trace = :trace)"
            " AND NOT EXISTS (SELECT 1 FROM superseded WHERE old = a.digest AND superseded.kind = a.kind)"
        )
        return _places(self._db.execute(query, {"kind": kind, "trace": trace}))

    def known(self, table: str, digests: Collection[bytes]) -> set[bytes]:
        """Return which of `digests` are in `table` (`annotations` or `refused`) already."""
        return {row[0] for row in self._where_ids(f"SELECT digest FROM {table} WHERE digest IN", digests)}

    def exports_of(self, trace: bytes) -> list[tuple[bytes, str, Location]]:
        """Return the annotations (digest, file, location) of the exports that took a trace, by file and place."""
        query = (
            f"SELECT digest, {PATH}, {LOCATION} FROM annotations"
            " WHERE digest IN (SELECT annotation FROM exported WHERE exported.trace = ?)"
        )
        return _places(self._db.execute(query, (trace,)))

    def tasks(self) -> set[tuple[str, str | None]]:
        """Return task and domain of every trace that has a task, as stated first or since."""
        found = set(self._db.execute("SELECT DISTINCT task, domain FROM traces"))
        for task, domain, text in self._db.execute("SELECT task, domain, fields FROM traces JOIN restated USING (id)"):
            now = digest.load_canonical(text.encode()) if '"task"' in text or '"domain"' in text else {}
            found.add((now.get("task", task), now.get("domain", domain)))
        return {pair for pair in found if pair[0] is not None}

    def fingerprints(self) -> set[str]:
        """Return every fingerprint under which a trace was stated first, or stands since."""
        found = {row[0] for row in self._db.execute("SELECT DISTINCT fingerprint FROM traces")}
        for (text,) in self._db.execute("SELECT fields FROM restated WHERE fields LIKE '%\"fingerprint\"%'"):
            found.add(digest.load_canonical(text.encode())["fingerprint"])
        return found - {None}

    def foreign(self, but: Iterable[bytes]) -> Iterator[Foreign]:
        """Yield what the newest traces that no statement gives a harness show of one, equal ones together.

        Args:
            but: ids of traces that are left out, since somebody decided about them.
        """
        query = (
            "SELECT since, halves, format, count(*), count(DISTINCT task), min(id)"
            f" FROM ({_FOREIGN}) GROUP BY since, halves, format ORDER BY min(id)"
        )
        for since, halves, *counted in self._db.execute(query, (_bound(one.hex().upper() for one in but),)):
            yield Foreign(since or self._half(halves), *counted)

    def confirmed(self, but: Iterable[bytes]) -> set[tuple[str, str, str]]:
        """Return component, part and digest of what traces of more than one task show alike, as `foreign` counts them.

        Only texts are looked at that may hold something of a task; other digests need no second one.
        """
        entries = "c.key AS component, e.value ->> 'part' AS part, e.value ->> 'digest' AS digest"
        each = "json_each(text) AS c, json_each(c.value) AS e"
        of_a_task = "e.value ->> 'form' IN ('rendered', 'substituted', 'transcript')"
        # each text is taken apart once, however many traces show it
        query = (
            f"WITH texts AS MATERIALIZED (SELECT number, {entries} FROM halves, {each} WHERE {of_a_task})"
            " SELECT component, part, digest FROM ("
            f"SELECT component, part, digest, {_TASK} AS task FROM {_SHOWN} JOIN texts ON texts.number = half"
            f" WHERE {_NAMELESS} AND restated.shown IS NULL"
            f" UNION ALL SELECT {entries}, task FROM (SELECT since AS text, task FROM ({_FOREIGN})), {each}"
            f" WHERE text IS NOT NULL AND {of_a_task}"
            ") GROUP BY component, part, digest HAVING count(DISTINCT task) > 1"
        )
        return set(self._db.execute(query, (_bound(one.hex().upper() for one in but),) * 2))

    def each_foreign(self, but: Iterable[bytes]) -> Iterator[tuple[bytes, str, str | None]]:
        """Yield each trace that `foreign` counts, by id, with what it shows and the format of its source."""
        query = f"SELECT id, since, halves, format FROM ({_FOREIGN})"
        for identity, since, halves, name in self._db.execute(query, (_bound(one.hex().upper() for one in but),)):
            yield identity, since or self._half(halves), name

    def _half(self, numbers: str) -> str:
        """Return what components show together, given their numbers in `halves`."""
        wanted = numbers.split(",")
        texts = [
            row[0] for row in self._db.execute(f"SELECT text FROM halves WHERE number IN ({_marks(wanted)})", wanted)
        ]
        # each text is an object with one member, or none, so they are put together unread
        members = sorted((text[1:-1] for text in texts if text != "{}"), key=lambda member: member.partition('":')[0])
        return f"{{{','.join(members)}}}"

    def counts(self) -> dict[str, int]:
        """Return how many traces, copies, annotations and refused records there are."""
        counted = {"traces": "id", "copies": "rowid", "annotations": "digest", "refused": "digest"}
        return {t: self._one(f"SELECT count(DISTINCT {column}) FROM {t}") for t, column in counted.items()}

    def meta(self, key: str) -> str | None:
        """Return a setting of the catalogue; None when it was never set."""
        value: str | None = self._one("SELECT value FROM meta WHERE key = ?", key)
        return value

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
            *self._where_ids(f"SELECT id, 'trace', head, {PATH}, {LOCATION} FROM traces WHERE id IN", ids),
            *self._where_ids(f"SELECT id, 'copy', head, {PATH}, {LOCATION} FROM copies WHERE id IN", ids),
            *self._where_ids(
                f"SELECT trace, kind, digest, {PATH}, {LOCATION} FROM annotations"
                f" WHERE kind IN ('{STAMPS}', '{OUTCOMES}') AND trace IN",
                ids,
            ),
        ]
        places = [(*row[:4], Location(*row[4:])) for row in rows]
        return sorted(places, key=lambda place: place[3:])

    def superseded(self, ids: Collection[bytes]) -> Iterator[tuple[bytes, bytes, str]]:
        """Yield what annotations about the traces `ids` replace: (trace, digest of the replaced, kind)."""
        yield from self._where_ids("SELECT trace, old, kind FROM superseded WHERE trace IN", ids)


def _stood(values: Sequence[Any]) -> tuple[Stored, Restated | None, tuple[bytes, ...]]:
    *stored, fields, conflicts, choices, shown, newer = values
    restated = None if fields is None else _restated((fields, conflicts, choices, shown))
    return stored_of(stored), restated, tuple(map(bytes.fromhex, newer.split(","))) if newer else ()


def _places(rows: Iterable[Sequence[Any]]) -> list[tuple[bytes, str, Location]]:
    """Return one place for each digest, ordered by file and place."""
    found = sorted(((*row[:2], Location(*row[2:])) for row in rows), key=lambda place: place[1:])
    return list({place[0]: place for place in reversed(found)}.values())[::-1]


def _restated(texts: Sequence[Any]) -> Restated:
    fields, conflicts, choices = (digest.load_canonical(text.encode()) for text in texts[:3])
    return Restated(fields, tuple(conflicts), choices, texts[3])


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _marks(items: Sequence[Any]) -> str:
    return ", ".join("?" * len(items))


def _bound(items: Iterable[int | str]) -> str:
    """Return what is bound for `_LISTED`, of any length."""
    return digest.canonical(sorted(items)).decode()
