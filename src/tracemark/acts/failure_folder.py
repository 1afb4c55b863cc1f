"""The folder of a failure log: what in it is a log's own, and how a new log takes the place of an earlier one.

Invariants:
- a log is put in its place as a whole (`folder_swap`), so what lies there is of one log, whoever writes there and
  whatever kills it; a folder without a manifest is no log's;
- what no log writes is never replaced or removed, what came into the folder while the log was made neither; whoever
  finds it kept, because they put a log there or because an earlier command was killed at that, is told.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tracemark import digest
from tracemark.acts.failure_job import FAILURES, FILES
from tracemark.acts.folder_swap import LOCK, replace
from tracemark.durable import make_folder
from tracemark.errors import UsageError
from tracemark.exporters.manifest import states_format
from tracemark.model.failure_log import FORMAT, FailureLog
from tracemark.words import first_few

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

_OF_A_LOG = "|".join([*map(re.escape, (OVERVIEW, *ROWS)), rf"{CLUSTERS}/[0-9a-f]{{64}}\.json"])
_OWN = re.compile(rf"{re.escape(NAME)}|(?:{CANDIDATES}/[0-9a-f]{{16}}/)?(?:{_OF_A_LOG})")
_FOLDER = re.compile(rf"(?:{CANDIDATES}(?:/[0-9a-f]{{16}}(?:/{CLUSTERS})?)?|{CLUSTERS})")
_FIXED = (errno.EBUSY, errno.EXDEV)


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
    if os.path.ismount(out):
        message = "another file system is mounted there, so the folder cannot be replaced"
        raise UsageError(message, where=str(out), hint="name a folder in it")
    if _works_in(out):
        message = "the command runs in that folder, which is replaced as a whole"
        raise UsageError(message, where=str(out), hint="run it elsewhere: its place would be gone")
    others = strangers(out)
    if others:
        message = f"the folder holds what is no part of a failure log: {first_few(others)}"
        raise UsageError(message, where=str(out), hint="name a new folder")


def strangers(folder: Path) -> list[str]:
    """Return what lies in a folder and is no part of a failure log, sorted.

    Args:
        folder: a folder that is there.

    Raises:
        OSError: when it cannot be listed.
    """
    if not states_format(folder / NAME, FORMAT):
        return sorted(path.name for path in folder.iterdir())
    return sorted(_strange(folder))


def put(staged: Path, out: Path, manifest: FailureLog) -> None:
    """Put a log that is written in its place, and an earlier one out of it.

    Args:
        staged: a folder with the files of the log, its manifest apart; on whatever filesystem.
        out: the folder of the log.
        manifest: of the log.

    Raises:
        UsageError: when the folder cannot be replaced, or something came into it meanwhile that is no part of a log.
        OSError: when something cannot be written.
    """

    def fill(new: Path) -> None:
        shutil.copytree(staged, new, copy_function=shutil.copyfile, dirs_exist_ok=True)
        # the folder has its name only when all of it is on disk
        (new / NAME).write_bytes(encode(manifest))

    # a link stays one: what it leads to is replaced
    place = Path(os.path.realpath(out))
    try:
        kept = replace(place, fill, lambda: require_own(out), _strange)
    except OSError as error:
        if error.errno not in _FIXED:
            raise
        message = f"the folder cannot be replaced: {error.strerror}"
        raise UsageError(message, where=str(out), hint="name a folder in it, or a new one") from None
    if kept:
        found = sorted({name for folder in kept for name in _kept(folder)})
        names = ", ".join(sorted(folder.name for folder in kept))
        message = "the log is in its place, but something else came into the folder while one was put there"
        raise UsageError(
            f"{message}: {first_few(found)}",
            where=str(out),
            hint=f"nothing of it was removed: it is in {names}, beside the log, with the earlier one",
        )


def make(staged: Path, folder: str) -> Path:
    """Make the folder of one harness's log among the files of the whole; return it."""
    path = staged / folder
    make_folder(path / CLUSTERS)
    return path


def _strange(folder: Path) -> Iterator[str]:
    for path, inner, names in os.walk(folder):
        place = Path(path).relative_to(folder)
        for name in [*inner, *names]:
            whole = (place / name).as_posix()
            link = (folder / whole).is_symlink()
            if link or not (_FOLDER if name in inner else _OWN).fullmatch(whole):
                yield whole
        inner[:] = [name for name in inner if _FOLDER.fullmatch((place / name).as_posix())]


def _kept(folder: Path) -> Iterator[str]:
    """Give what is somebody else's in a folder that was kept."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _strange(path)
        elif path.name != LOCK:
            yield path.name


def _works_in(folder: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(os.path.realpath(folder))
    except FileNotFoundError:
        return False
