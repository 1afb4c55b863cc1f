"""A desk for one run: its own copy of the database, and the day from an injected clock.

The rows are built once per process and copied for each run, so no run sees what another one did.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from support_desk import seed
from tracemark.clock import Clock

SCHEMA = Path(__file__).with_name("schema.sql")
TABLES = ("customers", "orders", "order_items", "gift_cards", "slots", "bookings")

State = dict[str, list[tuple[str | int | None, ...]]]
"""All rows of all tables, each table in the order of its key."""


class Environment:
    """A fresh desk in memory.

    Args:
        clock: tells the day on which the desk believes to be.

    Attributes:
        connection: the database that the tools read and write.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_original())
        self.connection.execute("pragma foreign_keys = on")

    def today(self) -> str:
        """Return the present day as YYYY-MM-DD."""
        return self._clock.now()[:10]

    def state(self) -> State:
        """Return every row of the desk, in an order that depends on the rows alone."""
        # The names are the constants above, not anybody's input.
        select = "select * from {} order by 1, 2"
        return {table: self.connection.execute(select.format(table)).fetchall() for table in TABLES}

    def close(self) -> None:
        """Throw the copy away."""
        self.connection.close()

    def __del__(self) -> None:
        """Throw the copy away with the environment, where nobody did before."""
        self.close()


@cache
def _original() -> bytes:
    """Build the database from which all runs are copied, as the bytes of a database file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        seed.fill(connection)
        return connection.serialize()
