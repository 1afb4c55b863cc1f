"""What `dvc.lock` pins of the store, and what of it is not on disk.

A fresh clone has the pins and not the data. Ingesting there would quietly begin another corpus, and half a corpus
answers like a whole one. So `ingest` asks here first, and reading verbs say what is missing.

The rule (`docs/decisions/0017-not-pulled.md`): a pinned file that is not on disk is missing, and files that are not
pinned are no matter. Where DVC's cache holds the list of a pinned folder, names are compared; where it does not, their
number is. Only where the inbox is complete may the store have been made again with other files; it has been when DVC's
cache holds the pinned names and the segments on disk have others. Then nothing is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracemark.acts import lockfile
from tracemark.durable import read_regular
from tracemark.errors import IrregularFileError, NotPulledError
from tracemark.findings import Finding, finding
from tracemark.store.layout import Layout

SEGMENTS = "traces/segments"
"""The folder of segments, as dvc.lock names it."""

COMPLETE = "complete"
"""Value of `ingest.inbox` in params.yaml: the store can be made again from the inbox."""

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
        complete: tells whether the inbox is complete; asked only where something is missing.
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
        lacking = {pin.path: count for pin in self.folders if (count := self._lacking(pin)) > 0}
        return {} if lacking and self._made_again() else lacking

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

    def _made_again(self) -> bool:
        return bool(self.unpinned_segments) and self._complete()


def not_pinned(root: Path, stored: int, *, tried: bool) -> list[Finding]:
    """Return the hint that an ingest outside the pipeline ends with when it stored segments beside those pinned.

    Within a stage, DVC itself pins what was stored as soon as the stage has ended.

    Args:
        root: the corpus.
        stored: how many segments were stored now.
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


def require_pulled(root: Path) -> None:
    """Make sure that all that dvc.lock pins is on disk, before an ingest into a corpus whose inbox is not complete.

    Raises:
        NotPulledError: when it is not, or when dvc.lock cannot be read.
    """
    lacking = Pins(root).missing
    if lacking:
        raise lacks(lacking, "dvc pull", "; ingesting now would begin another corpus")


def lacks(lacking: dict[str, int], hint: str, more: str = "") -> NotPulledError:
    """Return the error that pinned files are missing: how many, by folder."""
    words = ", ".join(f"{count} of {path}" for path, count in lacking.items())
    return NotPulledError(f"files that dvc.lock pins are not on disk: {words}{more}", where=lockfile.NAME, hint=hint)


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
