"""The folder of a failure log: what in it is a log's own, and how a new log takes the place of an earlier one.

Invariants:
- the manifest is there before anything else is, so a folder without one is no log's; while files are put in their place
  it says that they are not complete, and it is written again last;
- what no log writes is never replaced or removed, what came into the folder while the log was made neither;
- one process at a time puts a log of a corpus in its place, so what lies there is of one log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tracemark import digest
from tracemark.acts.failing_job import FAILURES, FILES
from tracemark.durable import lock, make_folder, read_regular, sync_folder, write_atomic
from tracemark.errors import IrregularFileError, UsageError
from tracemark.model.failure_log import FORMAT, FailureLog

NAME = "manifest.json"
"""The manifest's file name."""

OVERVIEW = "overview.md"
"""A first look at the log of one harness."""

CLUSTERS = "clusters"
"""The folder of the clusters of one harness, a file each."""

CANDIDATES = "candidates"
"""The folder of the logs of rejected candidates, a folder each."""

ROWS = (FAILURES, *sorted(set(FILES.values()) - {FAILURES}))
"""The files with a row for each trace."""

_FORMATS = FORMAT.rpartition("/")[0] + "/"
_TOP = (OVERVIEW, *ROWS, CLUSTERS, CANDIDATES)
_OF_A_LOG = "|".join([*map(re.escape, (OVERVIEW, *ROWS)), rf"{CLUSTERS}/[0-9a-f]{{64}}\.json"])
_OWN = re.compile(rf"{re.escape(NAME)}|(?:{CANDIDATES}/[0-9a-f]{{16}}/)?(?:{_OF_A_LOG})")
_FOLDER = re.compile(rf"(?:{CANDIDATES}(?:/[0-9a-f]{{16}}(?:/{CLUSTERS})?)?|{CLUSTERS})")
_SHOWN = 5


def candidate_folder(fingerprint: str) -> str:
    """Return the folder of the log of a rejected candidate."""
    return f"{CANDIDATES}/{fingerprint.removeprefix(digest.FINGERPRINT_PREFIX)[:16]}"


def encode(manifest: FailureLog) -> bytes:
    """Return the bytes of the manifest."""
    members = manifest.model_dump()
    return json.dumps({**members, "digest": digest.of(members)}, indent=2).encode("ascii") + b"\n"


def require_own(out: Path) -> None:
    """Make sure that writing a log to `out` overwrites nothing else.

    Raises:
        UsageError: when it would.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError("not a folder", where=str(out), hint="name a new folder")
    others = strangers(out)
    if others:
        shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
        message = f"the folder holds what is no part of a failure log: {shown}"
        raise UsageError(message, where=str(out), hint="name a new folder")


def strangers(folder: Path) -> list[str]:
    """Return what lies in a folder and is no part of a failure log, sorted.

    Args:
        folder: a folder that is there.

    Raises:
        OSError: when it cannot be listed.
    """
    if not _is_manifest(folder / NAME):
        return sorted(path.name for path in folder.iterdir())
    return sorted(_strange(folder))


def put(staged: Path, out: Path, manifest: FailureLog, held: Path) -> None:
    """Put a log that is written in its place, and an earlier one out of it.

    Where there is no room for it, an earlier one stays as it was.

    Args:
        staged: a folder with the files of the log, its manifest apart.
        out: the folder of the log.
        manifest: of the log, `complete`.
        held: the lock file of the corpus, which two that write a log must not hold at once.

    Raises:
        UsageError: when something came into the folder meanwhile that is no part of a log.
        LockedError: when another process does not give the lock back.
        OSError: when something cannot be written.
    """
    unfinished = encode(manifest.model_copy(update={"complete": False, "files": {}}))
    with lock(held, blocking=True):
        require_own(out)
        if not (out / NAME).exists():
            write_atomic(out / NAME, unfinished)
        for leftover in [*map(out.joinpath, map(_unfinished, _TOP)), *filter(_is_cut_short, out.iterdir())]:
            _remove(leftover)
        there = [name for name in _TOP if (staged / name).exists()]
        try:
            for name in there:
                copy = shutil.copytree if (staged / name).is_dir() else shutil.copyfile
                copy(staged / name, out / _unfinished(name))
            # syncing each of ten thousand files would take most of the time
            os.sync()
            write_atomic(out / NAME, unfinished)
        except BaseException:
            for name in there:
                _remove(out / _unfinished(name))
            raise
        for name in _TOP:
            _remove(out / name)
        for name in there:
            (out / _unfinished(name)).rename(out / name)
        sync_folder(out)
        write_atomic(out / NAME, encode(manifest))


def make(staged: Path, folder: str) -> Path:
    """Make the folder of one harness's log among the files of the whole; return it."""
    path = staged / folder
    make_folder(path / CLUSTERS)
    return path


def _unfinished(name: str) -> str:
    return f".{name}.tmp"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _strange(folder: Path) -> Iterator[str]:
    unfinished = frozenset(map(_unfinished, _TOP))
    for path, inner, names in os.walk(folder):
        place = Path(path).relative_to(folder)
        if place == Path():
            inner[:] = [name for name in inner if name not in unfinished]
            names = [name for name in names if name not in unfinished and not _is_cut_short(folder / name)]
        for name in [*inner, *names]:
            whole = (place / name).as_posix()
            link = (folder / whole).is_symlink()
            if link or not (_FOLDER if name in inner else _OWN).fullmatch(whole):
                yield whole
        inner[:] = [name for name in inner if _FOLDER.fullmatch((place / name).as_posix())]


def _is_cut_short(path: Path) -> bool:
    """Return whether a file is what writing the manifest left behind when it was cut short."""
    return path.name.startswith(f".{NAME}.") and path.suffix == ".tmp" and not path.is_dir()


def _is_manifest(path: Path) -> bool:
    try:
        value = digest.loads(read_regular(path)).value
    except (OSError, IrregularFileError, digest.NotJSONError):
        return False
    return isinstance(value, dict) and str(value.get("format")).startswith(_FORMATS)
