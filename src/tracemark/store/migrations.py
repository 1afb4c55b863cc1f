"""The catalogue's schema, as append-only steps.

Imported only when a catalogue is new or old: sqlite-utils is slow to import, and most openings find everything as
it should be. A step that was released is never edited; a new one is added and `SCHEMA` in `catalogue` counts them.
"""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

STEPS = Migrations("tracemark.catalogue")
"""All steps in order."""

_PLACE = """
    file INTEGER NOT NULL, frame_offset INTEGER NOT NULL, frame_length INTEGER NOT NULL,
    "offset" INTEGER NOT NULL, length INTEGER NOT NULL
"""
_TRACE = f"""
    key INTEGER NOT NULL, raw_key INTEGER NOT NULL,
    id BLOB NOT NULL, raw BLOB NOT NULL, head BLOB NOT NULL,
    fingerprint TEXT, harness TEXT, evidence TEXT NOT NULL, corroborated INTEGER NOT NULL,
    contradicted INTEGER NOT NULL, mixed INTEGER NOT NULL,
    task TEXT, domain TEXT, split TEXT, attempt, model TEXT, revision TEXT, role TEXT,
    rendered INTEGER NOT NULL, demonstration INTEGER NOT NULL,
    status TEXT NOT NULL, reward REAL, grader TEXT,
    copied INTEGER NOT NULL, uncalled INTEGER NOT NULL, tool_calls INTEGER NOT NULL, steps INTEGER NOT NULL,
    format TEXT, label TEXT, importer TEXT, importer_version TEXT, {_PLACE}
"""
_FIRST = f"""
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE files (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, lines INTEGER NOT NULL);

    CREATE TABLE traces (number INTEGER PRIMARY KEY, {_TRACE}, UNIQUE (id));
    CREATE INDEX traces_key ON traces (key);
    CREATE INDEX traces_raw ON traces (raw_key);
    CREATE INDEX traces_file ON traces (file);
    CREATE INDEX traces_fingerprint ON traces (fingerprint);
    CREATE TABLE copies ({_TRACE}, UNIQUE (id, file, frame_offset, "offset"));
    CREATE INDEX copies_file ON copies (file);

    CREATE TABLE replaced (old BLOB NOT NULL, new BLOB NOT NULL, file INTEGER NOT NULL);
    CREATE INDEX replaced_old ON replaced (old);
    CREATE INDEX replaced_file ON replaced (file);

    CREATE TABLE annotations (digest BLOB NOT NULL, kind TEXT NOT NULL, trace BLOB, {_PLACE}, UNIQUE (digest, file));
    CREATE INDEX annotations_trace ON annotations (trace);
    CREATE INDEX annotations_file ON annotations (file);
    CREATE TABLE superseded (old BLOB NOT NULL, kind TEXT NOT NULL, trace BLOB, file INTEGER NOT NULL);
    CREATE INDEX superseded_old ON superseded (old);
    CREATE INDEX superseded_trace ON superseded (trace);
    CREATE INDEX superseded_file ON superseded (file);
    CREATE TABLE exported (trace BLOB NOT NULL, annotation BLOB NOT NULL, file INTEGER NOT NULL);
    CREATE INDEX exported_trace ON exported (trace);
    CREATE INDEX exported_file ON exported (file);

    CREATE TABLE refused (digest BLOB NOT NULL, raw BLOB NOT NULL, code TEXT NOT NULL, {_PLACE}, UNIQUE (digest, file));
    CREATE INDEX refused_file ON refused (file);

    CREATE TABLE restated (
        id BLOB PRIMARY KEY, fields TEXT NOT NULL, conflicts TEXT NOT NULL, choices TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE stale (id BLOB PRIMARY KEY) WITHOUT ROWID;

    CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE VIRTUAL TABLE search USING fts5 (text, content='texts', content_rowid='number');
"""


@STEPS()
def first_schema(db: Database) -> None:
    """Files, traces and their copies, later statements, refused records, search text."""
    for statement in _FIRST.split(";"):
        if statement.strip():
            db.execute(statement)


_SECOND = """
    CREATE TABLE sources (
        raw BLOB NOT NULL, trace BLOB NOT NULL, format TEXT, label TEXT, importer TEXT, importer_version TEXT,
        file INTEGER NOT NULL
    );
    CREATE INDEX sources_raw ON sources (raw);
    CREATE INDEX sources_trace ON sources (trace);
    CREATE INDEX sources_file ON sources (file);
"""
_ENTERED = ("files", "traces", "copies", "replaced", "annotations", "superseded", "exported", "refused")
_DERIVED = ("restated", "stale", "texts")


@STEPS()
def further_sources(db: Database) -> None:
    """Further records of known traces; all files are entered again, since the evidence of partial stamps changed."""
    for statement in _SECOND.split(";"):
        if statement.strip():
            db.execute(statement)
    _forget(db)


_STATED_AGAIN = """
    INSERT OR IGNORE INTO stale
    SELECT id FROM restated
    UNION SELECT id FROM copies
    UNION SELECT trace FROM annotations WHERE kind IN ('stamps', 'outcomes') AND trace IS NOT NULL
"""


@STEPS()
def joined_anew(db: Database) -> None:
    """What is stated of a trace more than once is joined again: a refuted claim in a copy no longer disputes it."""
    db.execute(_STATED_AGAIN)


_SHOWN = """
    CREATE TABLE halves (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE shown (trace BLOB NOT NULL, half INTEGER NOT NULL, file INTEGER NOT NULL);
    CREATE INDEX shown_file ON shown (file);
"""


@STEPS()
def observed_halves(db: Database) -> None:
    """What traces without a harness show of one; all files are entered again."""
    for statement in _SHOWN.split(";"):
        if statement.strip():
            db.execute(statement)
    _forget(db, "sources")


@STEPS()
def shown_apart(db: Database) -> None:
    """What is shown of a harness is kept by component, and what is shown since counts; all files are entered again."""
    db.execute("ALTER TABLE restated ADD COLUMN shown TEXT")
    _forget(db, "sources", "shown", "halves")


def _forget(db: Database, *tables: str) -> None:
    """Take out what was entered of files, and what was made of it, so that all files are entered again.

    Args:
        db: the catalogue.
        tables: those with rows of files that the first schema had not.
    """
    for table in (*_ENTERED, *tables, *_DERIVED):
        db.table(table).delete_where()
    db.execute("INSERT INTO search (search) VALUES ('delete-all')")
    db.execute("DELETE FROM meta WHERE key = 'watermark'")


def apply(connection: sqlite3.Connection, version: int) -> None:
    """Bring the catalogue behind `connection` to the newest schema, and mark it with `version`."""
    STEPS.apply(Database(connection))
    connection.execute(f"PRAGMA user_version = {version}")
