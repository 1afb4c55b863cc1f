"""A catalogue that is asked while nobody knows whether it is whole.

Checking opens no store, which would make the catalogue again: it asks what is there, by a connection that cannot write.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tracemark.durable import require_regular, why_unread
from tracemark.errors import IrregularFileError
from tracemark.findings import Finding, finding
from tracemark.store.catalogue import SCHEMA, CatalogueError, Reader
from tracemark.store.layout import Layout

MAKE_ROOM = "move what is in the way, or check its permissions, then tracemark reindex"
"""What helps where something else stands in place of the catalogue."""

_BESIDE = ("", "-wal", "-shm", "-journal")
"""How the names of the files end that SQLite opens, after that of the database."""

_Answer = TypeVar("_Answer")


def require_files(catalogue: Path) -> None:
    """Make sure that nothing stands in place of the files of a catalogue: SQLite would wait for a pipe.

    Raises:
        OSError: when nobody can tell.
        IrregularFileError: when one is no file; it was not opened.
    """
    for end in _BESIDE:
        with suppress(FileNotFoundError, NotADirectoryError):
            require_regular(Path(f"{catalogue}{end}"))


@dataclass(slots=True)
class Asked:
    """A catalogue that is only asked, and no more once it could not answer: any of its pages may be damaged.

    All its answers are of the moment in which it was opened, whatever other processes enter meanwhile.
    """

    name: str
    reader: Reader | None = None
    """What answers; None where nothing does."""
    findings: list[Finding] = field(default_factory=list)
    """Why nothing does."""

    @classmethod
    def open(cls, layout: Layout, opened: ExitStack) -> Asked:
        """Open the catalogue of a corpus, for as long as `opened` is."""
        asked = cls(layout.catalogue.name)
        try:
            require_files(layout.catalogue)
            layout.catalogue.stat()
        except (FileNotFoundError, NotADirectoryError):
            asked._give_up("there is no catalogue; any command that opens the store makes it")
            return asked
        except (OSError, IrregularFileError) as error:
            asked._give_up(f"the catalogue cannot be read: {why_unread(error)[0]}", MAKE_ROOM)
            return asked
        try:
            reader = opened.enter_context(closing(Reader.open(layout.catalogue)))
            # a file that is no database is opened all the same, and found out by the first question
            opened.enter_context(reader.unchanging())
            asked.reader = reader
        except CatalogueError as error:
            asked._give_up(f"the catalogue cannot be read: {error}")
        if asked.ask(Reader.version, SCHEMA) != SCHEMA:
            asked._give_up("the catalogue has another version's schema")
        return asked

    def ask(self, question: Callable[[Reader], _Answer], otherwise: _Answer) -> _Answer:
        """Return the answer to a question; `otherwise` where none can be had, with one finding for all of them."""
        if self.reader is None:
            return otherwise
        try:
            return question(self.reader)
        except CatalogueError as error:
            self._give_up(f"the catalogue cannot be read: {error}")
            return otherwise

    def examine(self) -> None:
        """Read every page of the catalogue, also those that no question leads to; ask no more where one is damaged."""
        damage = self.ask(Reader.damage, None)
        if damage is not None:
            self._give_up(f"the catalogue is damaged: {damage}")

    def _give_up(self, why: str, hint: str | None = None) -> None:
        self.reader = None
        self.findings.append(finding("catalogue-differs", self.name, why, hint))
