"""Files that are there whole or not at all, and the named places where a crash may strike.

Invariants:
- a file appears under its final name only by a rename, after its bytes were synced; it is durable once its folder is
  synced as well, and nothing is acknowledged before that;
- a sync that failed is never tried again, because the kernel may have dropped the pages: the error goes up;
- temporaries live in a folder of their own on the same filesystem, locked while their owner lives, so that a later run
  can tell a leftover from work in progress;
- nothing is removed but what this program made, and no link is followed on the way to it.

`crash_point` does nothing in production. Where the variable `TRACEMARK_CRASH_AT` names a point, the process kills
itself there without any clean-up, which is how the tests prove the crash table of `docs/format/store.md`.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from tracemark.clock import pause
from tracemark.errors import IrregularFileError, LockedError

LOCK_WAIT = "TRACEMARK_LOCK_WAIT"
"""Environment variable: how many seconds a command waits for a lock that another process holds. Where it is not set, or
no number: 60, or without end for a lock that is held while somebody reads a whole corpus."""

IN_THE_WAY = "move what is in the way, then restore the {}"
"""What helps where something else stands in place of a file or a folder."""

PRIVATE = ".tracemark"
"""The folder of a corpus that git does not keep: locks, temporaries, the catalogue."""

_TEMPORARY = "tracemark-"
"""How the names of private folders begin, by which a later run knows them."""

_LONGEST_WAIT = 60.0
_SILENT = 1.0
_PAUSES = 0.001, 0.05
_NO_LOCK = (errno.EISDIR, errno.ELOOP, errno.ENXIO)
_NO_FILE = (*_NO_LOCK, errno.ENOENT, errno.ENOTDIR)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# reading the mask means setting it for a moment, which another thread could see: once, before there is one
_UMASK = _umask()


class CrashPoint(StrEnum):
    """Where a crash between two steps of a commit is told apart; the crash table has a row for each."""

    TEMPORARY_WRITTEN = "temporary-written"
    TEMPORARY_SYNCED = "temporary-synced"
    RENAMED = "renamed"
    FOLDER_SYNCED = "folder-synced"
    PROJECTED = "projected"
    LEDGER_WRITTEN = "ledger-written"
    PARAMS_WRITTEN = "params-written"


def crash_point(point: CrashPoint) -> None:
    """Die here, as by a power cut, when the environment variable `TRACEMARK_CRASH_AT` names this point."""
    if os.environ.get("TRACEMARK_CRASH_AT") == point.value:
        os.kill(os.getpid(), signal.SIGKILL)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable.

    Raises:
        OSError: when the system could not; the caller must not acknowledge anything then.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create `path` and its missing parents, each durable in its own parent."""
    missing = []
    current = path
    while not current.is_dir():
        missing.append(current)
        current = current.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: when it is missing or cannot be read.
        IrregularFileError: when it is no regular file; then it was not opened, since a pipe may never answer.
    """
    require_regular(path)
    return path.read_bytes()


def require_regular(path: Path) -> None:
    """Make sure that a path leads to a regular file; nothing is opened.

    Raises:
        OSError: when there is nothing, or nobody can tell.
        IrregularFileError: when it is something else.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise IrregularFileError(f"it is {what}, no file", where=path.name, hint=IN_THE_WAY.format("file"))


def own_file(path: Path) -> Path:
    """Return the file that is written where `path` is: itself, or what it is a link to.

    Raises:
        IrregularFileError: when that lies outside the folder of `path`, where it may be another corpus's as well.
    """
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(os.path.realpath(path.parent)):
        raise IrregularFileError(
            "it is a link that leads out of the corpus, which is not written through",
            where=path.name,
            hint=f"put a file {path.name} in place of the link",
        )
    return target


def is_there(path: Path) -> bool:
    """Return whether anything is at a path, a link that leads nowhere as well; True where nobody can tell."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # whoever reads it learns why
        return True
    return True


def why_unread(error: OSError | IrregularFileError, what: str = "file", missing: str | None = None) -> tuple[str, str]:
    """Return in words why something could not be read, without its path, and what helps.

    Args:
        error: what reading it raised.
        what: `file` or `folder`, that which should be there.
        missing: what helps where nothing is there; None for what is known to be there, if only as a link.
    """
    if missing is not None and isinstance(error, FileNotFoundError):
        return f"there is no such {what}", missing
    if isinstance(error, IrregularFileError):
        return error.message, error.hint or IN_THE_WAY.format(what)
    # what leads nowhere, or to something else, is not mended by permissions
    hint = IN_THE_WAY.format(what) if error.errno in _NO_FILE else "check its permissions"
    return error.strerror or str(error), hint


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, or a crash, sees the old file or the new one and nothing between."""
    make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_UMASK)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def publish(temporary: Path, target: Path, *, synced: bool = False) -> bool:
    """Give a finished temporary its final, content-derived name: the one commit point of the store.

    Args:
        temporary: a complete file on the same filesystem as `target`.
        target: the final path. As the name is derived from the content, a file that is already there is taken for the
            same file; a caller who must not trust that looks first, and uses `set_aside`.
        synced: whether the writer has synced the temporary's bytes already.

    Returns:
        True when the file is new, False when it existed; the temporary is gone either way, and the name is durable.

    Raises:
        OSError: when a sync or the rename failed; then nothing may be acknowledged.
    """
    crash_point(CrashPoint.TEMPORARY_WRITTEN)
    if not synced:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    crash_point(CrashPoint.TEMPORARY_SYNCED)
    make_folder(target.parent)
    if target.exists():
        temporary.unlink()
        sync_folder(target.parent)
        return False
    temporary.rename(target)
    crash_point(CrashPoint.RENAMED)
    sync_folder(target.parent)
    crash_point(CrashPoint.FOLDER_SYNCED)
    return True


def set_aside(path: Path, folder: Path) -> str:
    """Take a damaged file out of the way and keep it.

    Args:
        path: the file.
        folder: where it goes, created when missing; on the same filesystem.

    Returns:
        Its new name, `<folder>/<name>.damaged`, with a number where there is one of that name; relative to the folder's
        parent's parent, as people know a corpus' folders.
    """
    make_folder(folder)
    target, number = folder / f"{path.name}.damaged", 1
    while target.exists():
        number += 1
        target = folder / f"{path.name}.damaged-{number}"
    # another process may have been quicker
    with suppress(FileNotFoundError):
        path.rename(target)
    sync_folder(folder)
    return target.relative_to(folder.parent.parent).as_posix()


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Give a private folder below `parent` for the time of a `with` block, and remove leftovers of dead owners first.

    Args:
        parent: the folder for temporaries, created when missing; on the filesystem of the final files.

    Raises:
        IrregularFileError: when `parent` is a link: where it leads, nothing is ours to write or to remove.
    """
    if parent.is_symlink():
        hint = f"remove the link {parent.name}; the folder is made again"
        raise IrregularFileError("it is a link, which is not followed", where=_named(parent), hint=hint)
    make_folder(parent)
    with ExitStack() as stack:
        # under one lock, lest another process take a folder that is not locked yet for a dead owner's
        with lock(parent.with_name(f"{parent.name}.lock"), blocking=True):
            remove_leftovers(parent)
            folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=parent))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(lock(folder / "lock"))
        yield folder


def remove_leftovers(parent: Path) -> list[str]:
    """Remove the temporary folders below `parent` whose owner is dead; return their names.

    Those are the ones that `temporary_folder` made: of its names, and with its lock file or still empty. Whatever else
    lies there is somebody's own and stays. The caller holds the lock beside `parent`, so no folder is being made
    meanwhile.
    """
    removed = []
    for folder in sorted(parent.glob(f"{_TEMPORARY}*")):
        if folder.is_symlink() or not folder.is_dir():
            continue
        held = folder / "lock"
        if held.is_symlink() or not held.is_file():
            # its owner died before it could lock it; one that holds anything is not ours
            with suppress(OSError):
                folder.rmdir()
                removed.append(folder.name)
        elif not is_locked(held):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name)
    return removed


@contextmanager
def lock(path: Path, *, blocking: bool = False, longest: float = _LONGEST_WAIT, create: bool = True) -> Iterator[None]:
    """Hold an exclusive lock on the file `path` for the time of a `with` block.

    Args:
        path: the lock file; its content is nothing.
        blocking: wait for the present holder, as long as `longest_wait` says, instead of raising at once. After a
            second the logger `tracemark` says so, once: on standard error, unless somebody set logging up.
        longest: how many seconds to wait where nobody said; `math.inf` for a lock that its holder may need for long.
        create: make the file when it is missing.

    Raises:
        FileNotFoundError: when the file is missing and not to be made, or its folder is.
        LockedError: when another process (or another `with` block) holds it, and still does when we have waited.
        IrregularFileError: when something stands there that cannot be locked.
    """
    try:
        made = os.O_CREAT if create else 0
        descriptor = os.open(path, os.O_RDWR | made | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno not in _NO_LOCK:
            raise
        message = f"the lock file cannot be opened: {error.strerror}"
        raise IrregularFileError(
            message, where=_named(path), hint="move what is in the way; it is made again"
        ) from None
    owner = os.getpid()
    try:
        _acquire(descriptor, path, longest_wait(longest) if blocking else 0)
        yield
    finally:
        if os.getpid() == owner:
            # closing alone would leave it held by a fork that has not closed its copy yet
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def longest_wait(unsaid: float = _LONGEST_WAIT) -> float:
    """Return how many seconds to wait for what another process holds: `TRACEMARK_LOCK_WAIT`, else `unsaid`."""
    try:
        wanted = float(os.environ.get(LOCK_WAIT, ""))
    except ValueError:
        return unsaid
    return wanted if 0 <= wanted < math.inf else unsaid


def _acquire(descriptor: int, path: Path, longest: float) -> None:
    waited, told = 0.0, False
    next_pause, longest_pause = _PAUSES
    while not _is_taken(descriptor):
        if waited >= longest:
            raise LockedError(
                f"another process holds the lock{f', after {longest:g} s still' if longest else ''}",
                where=_named(path),
                hint="wait until it has ended, then run the command again; lsof tells who has the file open",
            )
        if waited >= _SILENT and not told:
            told = True
            end = f" (for {longest:g} s at most)" if longest < math.inf else ""
            _warn(f"waiting for {_named(path)}, which another process holds{end}")
        # asked again and again: waiting in the system would have no end, and a timer is the caller's
        pause(min(next_pause, longest - waited))
        waited += next_pause
        next_pause = min(2 * next_pause, longest_pause)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _named(path: Path) -> str:
    """Return a place as people know it: from the root of the corpus, or with the folder that it lies in."""
    _, private, inside = path.as_posix().rpartition(f"{PRIVATE}/")
    return f"{private}{inside}" if private else f"{path.parent.name}/{path.name}"


def _warn(message: str) -> None:
    import logging  # noqa: PLC0415  seldom needed

    logging.getLogger("tracemark").warning(message)


def is_locked(path: Path) -> bool:
    """Return whether somebody holds a lock on `path`; False when there is no such file."""
    try:
        # a pipe would wait for somebody at its other end
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        # what is no file holds no lock
        if error.errno not in _NO_FILE:
            raise
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
