"""A folder takes the place of an earlier one in a single step, and what somebody else put there is never removed.

Invariants:
- whoever looks finds the earlier folder or the new one, whole, and so does whoever comes after a kill at any moment.
  Where a system cannot exchange two names at once, there is a moment in which neither has the name; the next
  replacement gives it back to the earlier one;
- the earlier folder is removed file by file, and only the files that its owner calls its own. What came into it
  meanwhile stays, beside the new folder, and the caller is told;
- no lock is needed for this: of two that replace one folder at once the later one stays, whole, whatever corpora they
  come from. A lock only tells the work of a living process from what a dead one left.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tracemark.durable import is_there, lock, make_folder, sync_folder
from tracemark.errors import LockedError

_LOCK = "lock"
_NEW = "new"
_EARLIER = "earlier"
_AT_WORKING_FOLDER = -100
_EXCHANGE = 2
_CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)

Strange = Callable[[Path], Iterator[str]]
"""Gives what lies in a folder and is not its owner's, by its name."""


def replace(target: Path, fill: Callable[[Path], None], check: Callable[[], None], strange: Strange) -> Path | None:
    """Put a new folder in the place of another one, or where there is none yet.

    Args:
        target: the folder; no link.
        fill: writes the new folder, which is empty. Where it raises, the earlier folder stays as it was.
        check: raises when what is at `target` must stay; asked at the last moment.
        strange: what in the earlier folder is somebody else's.

    Returns:
        The folder in which the earlier one is kept, because something came into it after `check`; None when it is gone.

    Raises:
        OSError: when something cannot be written or renamed.
    """
    make_folder(target.parent)
    _tidy(target, strange)
    work = Path(tempfile.mkdtemp(prefix=_prefix(target), suffix=".tmp", dir=target.parent))
    with lock(work / _LOCK):
        new = work / _NEW
        new.mkdir()
        made = new.stat().st_ino
        try:
            fill(new)
            # syncing each of ten thousand files would take most of the time
            os.sync()
            _swap(new, target, check)
            sync_folder(target.parent)
        except BaseException:
            # what lies here is what was made here, or was in place a moment ago
            if new.exists() and new.stat().st_ino == made:
                shutil.rmtree(new)
            _give_back(work, target)
            _clear(work, strange)
            raise
        if _clear(work, strange):
            return None
        kept = work.with_name(f"{target.name}.kept-{work.name.removeprefix(_prefix(target)).removesuffix('.tmp')}")
        work.rename(kept)
        sync_folder(target.parent)
        return kept


def _swap(new: Path, target: Path, check: Callable[[], None]) -> None:
    """Give `new` the name of `target`; what had the name lies beside `new`, or in its place, afterwards."""
    while True:
        check()
        if not is_there(target):
            try:
                new.rename(target)
            except OSError as error:
                # another process was quicker
                if error.errno not in _TAKEN:
                    raise
                continue
            return
        new.chmod(0o777)
        # what had the name may be gone, or its name be free, from one line to the next: then again
        with suppress(FileNotFoundError):
            new.chmod(stat.S_IMODE(target.stat().st_mode))
            if _exchanged(new, target):
                return
            number = sum(path.name.startswith(_EARLIER) for path in new.parent.iterdir())
            target.rename(new.with_name(f"{_EARLIER}-{number}"))


def _exchanged(one: Path, other: Path) -> bool:
    """Give each of two folders the other's name in one step; return False where the system cannot.

    Raises:
        OSError: when it could and did not.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_WORKING_FOLDER, os.fsencode(one), _AT_WORKING_FOLDER, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _tidy(target: Path, strange: Strange) -> None:
    """Remove what replacements that were killed left beside `target`, and give an earlier folder its name back."""
    for work in sorted(target.parent.iterdir()):
        held = work / _LOCK
        is_ours = work.name.startswith(_prefix(target)) and work.suffix == ".tmp" and not work.is_symlink()
        if not is_ours or held.is_symlink() or not held.is_file():
            continue
        # one that is at work holds it; one that has just begun has no folder yet
        with suppress(LockedError), lock(held):
            _give_back(work, target)
            if any(path.is_dir() for path in work.iterdir()):
                _clear(work, strange)


def _give_back(work: Path, target: Path) -> None:
    """Give a folder that was in place its name again, where nothing else has it."""
    for earlier in sorted(work.glob(f"{_EARLIER}-*")):
        if not is_there(target):
            earlier.rename(target)


def _clear(work: Path, strange: Strange) -> bool:
    """Remove the folders of a replacement; return whether nothing is left, as nothing was somebody else's."""
    for folder in [path for path in work.iterdir() if path.name != _LOCK]:
        if folder.is_symlink() or not folder.is_dir() or next(strange(folder), None) is not None:
            return False
        for path, inner, names in os.walk(folder, topdown=False):
            for name in names:
                Path(path, name).unlink()
            for name in inner:
                _remove_empty(Path(path, name))
        _remove_empty(folder)
        if folder.exists():
            return False
    (work / _LOCK).unlink()
    _remove_empty(work)
    return not work.exists()


def _remove_empty(folder: Path) -> None:
    # what came into it at the last moment stays, and so does the folder
    with suppress(OSError):
        folder.rmdir()


def _prefix(target: Path) -> str:
    return f".{target.name}."
