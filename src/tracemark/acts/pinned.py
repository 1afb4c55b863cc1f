"""What `dvc.lock` pins of the store, read as plain YAML: DVC itself is neither imported nor called here.

A fresh clone has the pins and not the data. Ingesting there would quietly begin another corpus, so `ingest` asks here
first. Where DVC's cache holds the list of a pinned folder, names are compared; where it does not, their number is.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark.errors import NotPulledError
from tracemark.findings import Finding, finding

SEGMENTS = "traces/segments"
"""The folder of segments, as dvc.lock names it."""

_STAGE = "DVC_STAGE"
"""The environment variable by which a command of a DVC stage knows that it is one."""

LOCK = "dvc.lock"
"""The file in which DVC keeps what it pins, in the root of a corpus."""


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


def pinned(root: Path) -> list[Pinned]:
    """Return the folders below `traces/` that dvc.lock pins; empty without a dvc.lock.

    Raises:
        NotPulledError: when dvc.lock cannot be read, so that nobody can tell what it pins.
    """
    lock = root / LOCK
    if not lock.is_file():
        return []
    from ruamel.yaml import YAML  # noqa: PLC0415  slow, and only a pipeline's corpus has pins
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        read = YAML(typ="safe").load(lock)
        outs = [out for stage in read.get("stages", {}).values() for out in stage.get("outs", [])]
        paths = {str(out["path"]): out for out in outs}
        mine = {path: out for path, out in paths.items() if path.startswith("traces/")}
        folders = [path for path in sorted(mine) if str(mine[path].get("md5", "")).endswith(".dir")]
        return [_pin(root, path, mine[path]) for path in folders]
    except (YAMLError, ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise NotPulledError(
            f"what is pinned cannot be read: {str(error).splitlines()[0]}",
            where=LOCK,
            hint=f"git checkout {LOCK} (after a merge: keep one side), then dvc pull",
        ) from None


def missing(root: Path) -> dict[str, int]:
    """Return how many pinned files are not on disk, by folder; folders that lack none are left out."""
    lacking = {}
    for pin in pinned(root):
        found = present(root / pin.path)
        count = len(pin.names - found) if pin.names is not None else pin.count - len(found)
        if count > 0:
            lacking[pin.path] = count
    return lacking


def unpinned_segments(root: Path) -> int | None:
    """Return how many segments dvc.lock does not know; None when it pins none or its lists are not in DVC's cache."""
    for pin in pinned(root):
        if pin.path == SEGMENTS and pin.names is not None:
            return len(present(root / pin.path) - pin.names)
    return None


def present(folder: Path) -> frozenset[str]:
    """Return the names of the files below a folder, relative to it; empty when it is missing."""
    return frozenset(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".gitignore"
    )


def not_pinned(root: Path, stored: int, *, tried: bool) -> list[Finding]:
    """Return the hint that an ingest outside the pipeline ends with when it stored segments beside those pinned.

    Within a stage, DVC itself pins what was stored as soon as the stage has ended.

    Args:
        root: the corpus.
        stored: how many segments were stored now.
        tried: whether they were not stored, only would have been.
    """
    if not stored or os.environ.get(_STAGE) or not any(pin.path == SEGMENTS for pin in pinned(root)):
        return []
    known = unpinned_segments(root)
    # without DVC's list nobody knows which of the others are pinned
    return [unpinned(stored if known is None else known + stored * tried)]


def unpinned(count: int) -> Finding:
    """Return the finding that `count` segments are stored and not pinned."""
    return finding("not-pinned", f"{LOCK}: {SEGMENTS}", f"segments that are not pinned yet: {count}")


def require_pulled(root: Path) -> None:
    """Make sure that what dvc.lock pins is on disk.

    Raises:
        NotPulledError: when it is not, or when dvc.lock cannot be read.
    """
    lacking = missing(root)
    if lacking:
        words = ", ".join(f"{count} of {path}" for path, count in lacking.items())
        raise NotPulledError(
            f"files that dvc.lock pins are not on disk: {words}; ingesting now would begin another corpus",
            where=LOCK,
            hint="dvc pull",
        )


def _pin(root: Path, path: str, out: dict[str, Any]) -> Pinned:
    md5 = str(out["md5"]).removesuffix(".dir")
    count = out.get("nfiles", 0)
    if not isinstance(count, int):
        raise TypeError(f"nfiles of {path} is no whole number")
    listing = root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / f"{md5[2:]}.dir"
    try:
        names = frozenset(str(entry["relpath"]) for entry in json.loads(listing.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError):
        # the cache is DVC's business; without the list, numbers are compared
        names = None
    return Pinned(path, md5, count, names)
