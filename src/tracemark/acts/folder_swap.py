"""A folder takes the place of an earlier one in a single step, and what somebody else put there is never removed.

Invariants:
- whoever looks finds the earlier folder or the new one, whole, and so does whoever comes after a kill at any moment.
  Where a system cannot exchange two names at once, there is a moment in which neither has the name; the next
  replacement gives it back to the earlier one;
- the earlier folder is removed file by file, and only the files that its owner calls its own. What came into it
  meanwhile stays, beside the new folder, and the caller is told; after a kill the caller of the next replacement is;
- no lock is needed for this: of two that replace one folder at once the later one stays, whole, whatever corpora they
  come from. A lock only tells the work of a living process from what a dead one left. As a folder has its name before
  it can be locked, who makes one sees whether somebody took it for a dead one's meanwhile, and makes another.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tracemark.durable import is_there, lock, make_folder, sync_folder
from tracemark.errors import LockedError

LOCK = "lock"
"""What lies in a folder that is kept beside what was in place."""

_NEW = "new"
_EARLIER = "earlier"
_SUFFIX = ".tmp"
# what tempfile puts between prefix and suffix
_LETTERS = "[a-z0-9_]{8}"
_AT_WORKING_FOLDER = -100
_EXCHANGE = 2
_CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)

Strange = Callable[[Path], Iterator[str]]
"""Gives what lies in a folder and is not its owner's, by its name."""


def replace(
    target: Path, fill: Callable[[Path], None], check: Callable[[], None], strange: Strange
) -> tuple[Path, ...]:
    """Put a new folder in the place of another one, or where there is none yet.

    Args:
        target: the folder; no link.
        fill: writes the new folder, which is empty. Where it raises, the earlier folder stays as it was.
        check: raises when what is at `target` must stay; asked at the last moment.
        strange: what in the earlier folder is somebody else's.

    Returns:
        Folders in which an earlier one is kept, because something came into it after `check`: this time, or when a
        replacement was killed. None when all that was in place is gone.

    Raises:
        OSError: when something cannot be written or renamed.
    """
    make_folder(target.parent)
    left = _tidy(target, strange)
    with _working(target) as work:
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
        kept = [] if _clear(work, strange) else [_keep(work, target)]
    for work in left:
        with _taken_over(work) as is_dead:
            if is_dead:
                kept.append(_keep(work, target))
    if kept:
        sync_folder(target.parent)
    return tuple(kept)


@contextmanager
def _working(target: Path) -> Iterator[Path]:
    """Give a folder beside `target` for the time of a `with` block, locked."""
    with ExitStack() as stack:
        while True:
            work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent))
            # until it is locked, one that tidies up takes it for a dead one's
            with suppress(FileNotFoundError, LockedError):
                stack.enter_context(lock(work / LOCK))
                if is_there(work / LOCK):
                    break
        yield work


@contextmanager
def _taken_over(work: Path) -> Iterator[bool]:
    """Lock the folder of a replacement for the time of a `with` block; give whether it is there and a dead one's."""
    with ExitStack() as stack:
        is_dead = False
        with suppress(FileNotFoundError, LockedError):
            stack.enter_context(lock(work / LOCK, create=False))
            # who held it may have removed it
            is_dead = is_there(work / LOCK)
        yield is_dead


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


def _tidy(target: Path, strange: Strange) -> list[Path]:
    """Remove what replacements that were killed left beside `target`, and give an earlier folder its name back.

    Returns:
        What cannot be removed, as something in it is somebody else's.
    """
    # the name of another folder may begin like ours
    ours = re.compile(rf"\.{re.escape(target.name)}\.{_LETTERS}{re.escape(_SUFFIX)}")
    left = []
    for work in sorted(path for path in target.parent.iterdir() if ours.fullmatch(path.name)):
        held = work / LOCK
        if work.is_symlink() or held.is_symlink():
            continue
        if not is_there(held):
            # its owner died before it could lock it, or is about to; what is not empty is somebody else's
            _remove_empty(work)
        elif held.is_file():
            with _taken_over(work) as is_dead:
                if is_dead:
                    _give_back(work, target)
                    if not _clear(work, strange):
                        left.append(work)
    return left


def _keep(work: Path, target: Path) -> Path:
    """Give the folder of a replacement a name that people see; return it."""
    kept = work.with_name(f"{target.name}.kept-{work.name.removesuffix(_SUFFIX).rpartition('.')[2]}")
    work.rename(kept)
    return kept


def _give_back(work: Path, target: Path) -> None:
    """Give a folder that was in place its name again, where nothing else has it."""
    for earlier in sorted(work.glob(f"{_EARLIER}-*")):
        if not is_there(target):
            try:
                earlier.rename(target)
            except OSError as error:
                # another process was quicker
                if error.errno not in _TAKEN:
                    raise


def _clear(work: Path, strange: Strange) -> bool:
    """Remove the folders of a replacement; return whether nothing is left, as nothing was somebody else's."""
    for folder in [path for path in work.iterdir() if path.name != LOCK]:
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
    (work / LOCK).unlink()
    _remove_empty(work)
    return not work.exists()


def _remove_empty(folder: Path) -> None:
    # what came into it at the last moment stays, and so does the folder
    with suppress(OSError):
        folder.rmdir()
