"""Catalogues that were made by earlier versions are brought up to date when they are opened."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlite_utils import Database

from tracemark.store import state
from tracemark.store.catalogue import SCHEMA, Catalogue, writer
from tracemark.store.check import check
from tracemark.store.layout import Layout
from tracemark.store.migrations import STEPS
from tracemark.store.selection import Selection
from tracemark.store.store import Store


def test_the_schema_version_counts_the_steps() -> None:
    connection = sqlite3.connect(":memory:")
    assert len(STEPS.pending(Database(connection))) == SCHEMA
    connection.close()


def test_a_new_catalogue_has_every_step_and_its_version(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    assert catalogue.version() == SCHEMA
    assert STEPS.pending(Database(catalogue._db)) == []
    catalogue.close()


def test_an_up_to_date_catalogue_is_opened_without_the_migration_library(tmp_path: Path) -> None:
    Catalogue(tmp_path / "c.db", tmp_path / "lock").close()
    program = (
        "import sys; from pathlib import Path; from tracemark.store.catalogue import Catalogue;"
        "Catalogue(Path(sys.argv[1]), Path(sys.argv[2])).close(); sys.exit('sqlite_utils' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "c.db"), str(tmp_path / "lock")]
    assert subprocess.run(command, check=False).returncode == 0


def test_many_processes_may_make_one_catalogue_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tracemark.store.catalogue import Catalogue;"
        "Catalogue(Path(sys.argv[1]), Path(sys.argv[2])).close()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "c.db"), str(tmp_path / "lock")]
    openers = [subprocess.Popen(command) for _ in range(5)]
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 5


def test_a_catalogue_of_the_first_schema_is_entered_anew(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1), make.trace(2))
        assert len(store.find("order 1")) == 1
        database = store.catalogue._db
        for table in ("sources", "shown", "halves"):
            database.execute(f"DROP TABLE {table}")
        database.execute("ALTER TABLE restated DROP COLUMN shown")
        database.execute("UPDATE traces SET evidence = 'recorded'")
        database.execute("DELETE FROM _sqlite_migrations WHERE name <> 'first_schema'")
        database.execute("PRAGMA user_version = 1")
    with Store.open(root) as store:
        assert store.findings == []
        assert store.catalogue.version() == SCHEMA
        assert {state.row.evidence for state in store.select(Selection())} == {"unrecorded"}
        assert len(store.find("order 1")) == 1
    assert check(Layout(root)).findings == ()


def made_by_the_second_schema(make, root: Path, monkeypatch: pytest.MonkeyPatch, *traces: bytes) -> None:
    """Fill a catalogue as the version did to which a refuted claim in a copy was a second opinion."""
    layout = Layout(root)
    layout.create()
    layout.private.mkdir()
    connection = sqlite3.connect(layout.catalogue, isolation_level=None)
    STEPS.apply(Database(connection), stop_before="joined_anew")
    connection.execute("PRAGMA user_version = 2")
    # the program of today writes a column that was not there then
    connection.execute("ALTER TABLE restated ADD COLUMN shown TEXT")
    connection.close()
    with monkeypatch.context() as then:
        then.setattr(writer, "SCHEMA", 2)
        then.setattr(writer.Catalogue, "_add_shown", lambda *_: None)
        then.setattr(state, "_without_refuted", lambda said: said)
        with Store.open(root) as store:
            for trace in traces:
                make.commit(store, trace)
            assert [bool(found.conflicts) for found in store.select(Selection())] == [True]
            assert store.catalogue.version() == 2
            store.catalogue._db.execute("ALTER TABLE restated DROP COLUMN shown")


def test_a_dispute_that_an_earlier_version_saw_is_gone_when_its_catalogue_is_opened(
    make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuted = make.stamp("a", "claimed")
    del refuted["declared"]["fingerprint"]
    refuted["contradictions"] = [{"component": "runtime", "part": "only", "text": "x"}]
    made_by_the_second_schema(make, root, monkeypatch, make.trace(1, refuted), make.trace(1, make.stamp("b")))
    assert "catalogue-differs" in {found.code for found in check(Layout(root)).findings}
    with Store.open(root) as store:
        assert store.findings == []
        [found] = store.select(Selection())
        assert (found.conflicts, found.row.fingerprint) == ((), make.fingerprint("b"))
    assert "catalogue-differs" not in {found.code for found in check(Layout(root)).findings}
