"""What `dvc.lock` pins of the store, and what of it is not on disk.

A fresh clone has the pins and not the data. Ingesting there would quietly begin another corpus, and half a corpus
answers like a whole one. So `ingest` asks here first, and reading verbs say what is missing.

The rule (`docs/decisions/0017-not-pulled.md`): a pinned file that is not on disk is missing, and files that are not
pinned are no matter. Where DVC's cache holds the list of a pinned folder, names are compared; where it does not, their
number is. Only where the inbox is complete may an ingest make missing files again, and only if it makes all of them:
what it would store is compared with the pins before anything is stored.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts import lockfile
from tracemark.durable import read_regular
from tracemark.errors import IrregularFileError, NotPulledError
from tracemark.findings import Finding, finding
from tracemark.store.layout import Layout

SEGMENTS = "traces/segments"
"""The folder of segments, as dvc.lock names it."""

SNAPSHOTS = "traces/harnesses"
"""The folder of snapshots, likewise."""

COMPLETE = "complete"
"""Value of `ingest.inbox` in params.yaml: the store can be made again from the inbox."""

_EXPORTS = "traces/annotations/exports."
_CHOICES = 1000
_ANOTHER = (
    "dvc pull; or, if something was edited before the first dvc repro: git stash, dvc repro, git stash pop;"
    " or, if another corpus is meant: rm dvc.lock, dvc repro"
)
_STAGE = "DVC_STAGE"
"""The environment variable by which a command of a DVC stage knows that it is one."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One folder below `traces/` that dvc.lock pins."""

    path: str
    """Relative to the corpus, with `/`."""
    md5: str
    """DVC's digest of the folder's list, without `.dir`."""
    count: int
    """How many files it holds."""
    names: frozenset[str] | None
    """Their names relative to the folder; None when DVC's cache does not hold the list."""


class Pins:
    """What dvc.lock pins of one corpus, and what is on disk of it, each read once.

    Args:
        root: the corpus.
        complete: tells whether the inbox is complete, so that an ingest may make again what is missing; asked only
            where something is.
    """

    def __init__(self, root: Path, complete: Callable[[], bool] = lambda: False) -> None:
        self._root = root
        self._complete = complete

    @cached_property
    def folders(self) -> list[Pinned]:
        """The folders below `traces/` that dvc.lock pins, by path; empty without a dvc.lock.

        Raises:
            NotPulledError: when dvc.lock cannot be read, so that nobody can tell what it pins.
        """
        try:
            found = lockfile.outs(self._root)
            mine = {path: out for path, out in found.items() if path.startswith("traces/")}
            folders = [path for path in sorted(mine) if str(mine[path].get("md5", "")).endswith(".dir")]
            return [_pin(self._root, path, mine[path]) for path in folders]
        except (ValueError, TypeError) as error:
            raise lockfile.unreadable(error) from None

    @cached_property
    def missing(self) -> dict[str, int]:
        """How many pinned files are not on disk, by folder; folders that lack none are left out.

        Raises:
            NotPulledError: when dvc.lock cannot be read.
        """
        return {pin.path: count for pin in self.folders if (count := self._lacking(pin)) > 0}

    @property
    def missing_of_ingest(self) -> dict[str, int]:
        """The same without the records of exports, which are outputs of other stages.

        Raises:
            NotPulledError: when dvc.lock cannot be read.
        """
        return {path: count for path, count in self.missing.items() if not path.startswith(_EXPORTS)}

    def lacks(self, lacking: Mapping[str, int], more: str = "") -> NotPulledError:
        """Return the error that pinned files are missing.

        Args:
            lacking: how many, by folder.
            more: what else is to be said of it.
        """
        words = f"files that dvc.lock pins are not on disk: {_counted(lacking)}{more}"
        return NotPulledError(words, where=lockfile.NAME, hint=self.hint())

    def hint(self) -> str:
        """Return what helps where pinned files are missing."""
        return (
            "dvc pull, or dvc repro, which makes again what the inbox still gives" if self._complete() else "dvc pull"
        )

    def require_all(self) -> None:
        """Make sure that all that is pinned is on disk, before an ingest into a corpus whose inbox is not complete.

        Raises:
            NotPulledError: when it is not, or when dvc.lock cannot be read.
        """
        if self.missing:
            raise self.lacks(self.missing, "; ingesting now would begin another corpus")

    def require_made(self, made: Path) -> None:
        """Make sure that what an ingest would store, and what is on disk, hold all that is pinned between them.

        Where DVC's cache does not hold the list of a folder, its digest tells whether they do; where it is that of no
        choice of files that are there, something is missing, and nobody knows how much. Where there are more choices
        than are tried, and none of those that were is the right one, nobody can tell whether anything is missing.

        Args:
            made: the root of a corpus that holds what would be stored.

        Raises:
            NotPulledError: when something would be missing all the same, or nobody can tell.
        """
        wanted = self.missing_of_ingest
        counts = {pin.path: self._left(pin, made) for pin in self.folders if pin.path in wanted}
        if left := {path: count for path, count in counts.items() if count}:
            least = "" if all(pin.names is not None for pin in self.folders if pin.path in left) else "at least "
            raise NotPulledError(
                f"files that dvc.lock pins are not on disk: {_counted(wanted)}; ingesting now would begin another"
                f" corpus, which lacks {least}{_counted(left)}",
                where=lockfile.NAME,
                hint=_ANOTHER,
            )
        if unknown := [path for path, count in counts.items() if count is None]:
            raise NotPulledError(
                f"files that dvc.lock pins are not on disk: {_counted(wanted)}; nobody can tell whether this ingest"
                f" makes them again, among more files than are pinned, in {', '.join(unknown)}",
                where=lockfile.NAME,
                hint="dvc pull",
            )

    @cached_property
    def unpinned_segments(self) -> int | None:
        """How many segments dvc.lock does not know; None when it pins none or its lists are not in DVC's cache.

        Raises:
            NotPulledError: when dvc.lock cannot be read.
        """
        for pin in self.folders:
            if pin.path == SEGMENTS and pin.names is not None:
                return len(self._stored(SEGMENTS) - pin.names)
        return None

    @cached_property
    def _names(self) -> list[str]:
        layout, unlisted = Layout(self._root), list[Finding]()
        snapshots = [f"harnesses/{layout.snapshot(one).name}" for one in layout.snapshots(unlisted)]
        # what lies in a folder that cannot be listed is missing, and whoever reads the store says why
        return [*layout.data_files(unlisted), *snapshots]

    def _stored(self, path: str) -> frozenset[str]:
        """Return the names of the store's files below `path`, relative to it."""
        inside = path.removeprefix("traces/") + "/"
        return frozenset(name.removeprefix(inside) for name in self._names if name.startswith(inside))

    def _lacking(self, pin: Pinned) -> int:
        folder = os.path.join(self._root, pin.path)  # noqa: PTH118  asked of each file of the corpus
        names = self._stored(pin.path) if pin.names is None else pin.names
        # a link into a cache that is gone is no file
        there = sum(map(os.path.isfile, (f"{folder}/{name}" for name in names)))
        if pin.names is not None:
            return len(names) - there
        if there < pin.count:
            # somebody may have had files pinned that are no part of a store
            there = sum(path.is_file() and path.name != ".gitignore" for path in Path(folder).rglob("*"))
        return pin.count - there

    def _left(self, pin: Pinned, made: Path) -> int | None:
        """Return how many files of a pinned folder are neither there nor in its like below `made`; at least so many.

        None where nobody can tell whether any is.
        """
        there = _files(made / pin.path) | _files(self._root / pin.path)
        if pin.names is not None:
            return len(pin.names - there.keys())
        if pin.count > len(there):
            return pin.count - len(there)
        if _holds(there, pin):
            return 0
        return 1 if math.comb(len(there), pin.count) <= _CHOICES else None


def not_pinned(root: Path, stored: int, *, tried: bool) -> list[Finding]:
    """Return the hint that an ingest outside the pipeline ends with when it stored segments beside those pinned.

    Within a stage, DVC itself pins what was stored as soon as the stage has ended.

    Args:
        root: the corpus.
        stored: how many segments were stored now, without those that are pinned and were missing.
        tried: whether they were not stored, only would have been.
    """
    pins = Pins(root)
    if not stored or os.environ.get(_STAGE) or not any(pin.path == SEGMENTS for pin in pins.folders):
        return []
    known = pins.unpinned_segments
    # without DVC's list nobody knows which of the others are pinned
    return [unpinned(stored if known is None else known + stored * tried)]


def unpinned(count: int) -> Finding:
    """Return the finding that `count` segments are stored and not pinned."""
    return finding("not-pinned", f"{lockfile.NAME}: {SEGMENTS}", f"segments that are not pinned yet: {count}")


def _counted(lacking: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {path}" for path, count in lacking.items())


def _files(folder: Path) -> dict[str, Path]:
    """Return the files below a folder by their names relative to it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".gitignore")
    return {path.relative_to(folder).as_posix(): path for path in found}


def _holds(files: Mapping[str, Path], pin: Pinned) -> bool:
    """Return whether the pinned files are among `files`, by DVC's digest of their list; tries `_CHOICES` choices."""
    entries = [{"md5": digest.md5_file(files[name]), "relpath": name} for name in sorted(files)]
    choices = itertools.islice(itertools.combinations(entries, pin.count), _CHOICES)
    return any(digest.md5(json.dumps(chosen, sort_keys=True).encode()) == pin.md5 for chosen in choices)


def _pin(root: Path, path: str, out: dict[str, Any]) -> Pinned:
    md5 = str(out["md5"]).removesuffix(".dir")
    count = out.get("nfiles", 0)
    if not isinstance(count, int):
        raise TypeError(f"nfiles of {path} is no whole number")
    listing = root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / f"{md5[2:]}.dir"
    try:
        names = frozenset(str(entry["relpath"]) for entry in json.loads(read_regular(listing)))
    except (OSError, IrregularFileError, ValueError, TypeError, KeyError):
        # the cache is DVC's business; without the list, numbers are compared
        names = None
    return Pinned(path, md5, count, names)
