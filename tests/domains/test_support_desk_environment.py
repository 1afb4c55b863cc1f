"""Each desk has a database of its own, and throws it away."""

from __future__ import annotations

import gc
import sqlite3

from support_desk import environment as desks
from support_desk.environment import Environment

from tracemark.clock import FixedClock


def open_databases() -> list[sqlite3.Connection]:
    """Return the database connections of this process that can still be asked."""
    found = []
    for thing in gc.get_objects():
        if isinstance(thing, sqlite3.Connection):
            try:
                thing.execute("select 1")
            except sqlite3.ProgrammingError:
                continue
            found.append(thing)
    return found


def test_a_desk_that_is_closed_leaves_no_database_open() -> None:
    # the rows from which desks are copied are built with the first one
    desks._original.cache_clear()
    gc.collect()
    before = {id(connection) for connection in open_databases()}
    for _ in range(2):
        desk = Environment(FixedClock())
        assert len(desk.state()["orders"]) == 120
        desk.close()
    assert {id(connection) for connection in open_databases()} <= before


def test_a_desk_keeps_what_its_schema_demands() -> None:
    desk = Environment(FixedClock())
    assert desk.connection.execute("pragma foreign_keys").fetchone() == (1,)
    assert desk.connection.execute("pragma integrity_check").fetchone() == ("ok",)
    desk.close()
