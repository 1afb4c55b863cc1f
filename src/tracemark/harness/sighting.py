"""What one reading of a harness folder found on disk, so that a later look need not read the harness again.

A reading is a function of what it asks the disk: which names a folder holds, what is a folder, which bytes a file has.
Where every question has the answer that it had, another reading gives the same harness; so `holds` asks them again and
compares, whole bytes and no times or sizes, and parses nothing. It never says that a folder changed *in* anything: what
an answer that differs means, only another reading can tell.

Invariants:
- a question that failed leaves the sighting incomplete, and an incomplete one never holds;
- what the disk is not asked for, such as the patterns of files that do not count, stands in the manifest, which is
  among the bytes.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Listed(NamedTuple):
    """What listing a folder gave."""

    names: frozenset[str]
    """The names in it."""
    is_open: bool
    """Whether it can be listed and passed, which tells one that is closed from one that is empty."""


@dataclass
class Sighting:
    """The answers of the disk to one reading. Written by `HarnessFolder` while it reads, and by nobody afterwards."""

    home: Path
    """The folder that was read, links followed."""
    places: dict[Path, Path] = field(default_factory=dict)
    """Where each further place of modules leads, links followed, by the path that was looked up."""
    names: dict[Path, Listed] = field(default_factory=dict)
    """What listing each folder gave."""
    kinds: dict[Path, str] = field(default_factory=dict)
    """What each path is that was asked for, see `kind`."""
    contents: dict[Path, tuple[Path, bytes]] = field(default_factory=dict)
    """The file that each path leads to, links followed, and its bytes."""
    complete: bool = True
    """Whether every question got an answer that can be compared."""

    def read(self, path: Path, real: Path, data: bytes) -> None:
        """Note what reading a file gave; one that gives something else the second time leaves no sighting."""
        if self.contents.setdefault(path, (real, data)) != (real, data):
            self.complete = False

    def holds(self, folder: Path) -> bool:
        """Return whether a reading would be answered the same again.

        Args:
            folder: the path by which the folder is looked up now.

        Returns:
            False also when there is doubt, as where a path cannot be looked at.
        """
        try:
            return (
                self.complete
                and folder.resolve() == self.home
                and all(path.resolve() == leads and leads.is_dir() for path, leads in self.places.items())
                and all(listed(path) == names for path, names in self.names.items())
                and all(kind(path) == known for path, known in self.kinds.items())
                and self._same_contents()
            )
        except (OSError, RuntimeError):
            # Python 3.11 and 3.12 report a loop of links as RuntimeError
            return False

    def _same_contents(self) -> bool:
        # files share their folders, and following each path from the root takes longer than reading the file
        folders = {folder: folder.resolve() for folder in {path.parent for path in self.contents}}
        for path, (real, data) in self.contents.items():
            leads = path.resolve() if path.is_symlink() else folders[path.parent] / path.name
            if leads != real or not _still(real, data):
                return False
        return True


def listed(folder: Path) -> Listed:
    """Return the names in a folder; empty when there is no such folder, or it is closed."""
    try:
        names = frozenset(path.name for path in folder.iterdir())
    except OSError:
        names = frozenset()
    return Listed(names, os.access(folder, os.R_OK | os.X_OK))


def kind(path: Path) -> str:
    """Return `folder`, `link` (one that leads to a folder), or nothing when it is neither.

    Raises:
        OSError: when the path cannot be looked at.
    """
    if not path.is_dir():
        return ""
    return "link" if path.is_symlink() else "folder"


def _still(real: Path, data: bytes) -> bool:
    found = real.stat()
    # anything but a file, such as a pipe, would be waited for
    return stat.S_ISREG(found.st_mode) and found.st_size == len(data) and real.read_bytes() == data
