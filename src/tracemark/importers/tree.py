"""Which files of a path are read, in which order, and which belong together.

Files come in the order of their names. Links are followed only within the folder that was given, and into the cache of
DVC, which may keep its data behind links; one to a folder is named and not followed. In a Harbor trial folder only the
trajectories are traces; what lies around them is read with them.

What is the same for all files of a folder is worked out once, and what the listing of a folder says of a file is not
asked again: a corpus may be ten thousands of small files.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tracemark import digest
from tracemark.durable import require_regular
from tracemark.errors import IrregularFileError, UsageError
from tracemark.findings import Finding, finding
from tracemark.importers.base import EXCERPT, Refused

SNAPSHOT_SUFFIX = ".harness.json"
"""How the name of a harness snapshot beside a journal ends; before it stand the 64 digits of its fingerprint."""

JOURNAL_SUFFIX = ".journal.jsonl"
"""How the name of a journal of our own recorder ends, also before anything is written in it."""

INTERCHANGE = "tracemark-manifest.json"
"""Name of the manifest of an interchange export, which lies beside its documents."""

MAX_DEPTH = 100
"""How many folders below the given one are looked into; what is deeper was made by a mistake."""

_ASIDE = ("batch.yaml", INTERCHANGE, "__pycache__", "Thumbs.db", "desktop.ini")
_ASIDE_ENDS = (".dvc", SNAPSHOT_SUFFIX, "~", ".swp", ".lock")
_JOB_FILES = ("result.json", "config.json", "job.log", "lock.json")
_TRAJECTORY = re.compile(r"trajectory.*\.json")


class Folder(NamedTuple):
    """What is the same for all files of one folder."""

    path: str
    """Absolute path."""
    label: str
    """Path relative to the given one, with `/`; empty for the given one itself."""
    root: str
    """Absolute path of the folder that was given, or of the folder of the file that was."""
    trial: str | None
    """Absolute path of the Harbor trial around it; None outside a trial."""


class Found(NamedTuple):
    """One file that may hold traces."""

    path: str
    """Absolute path."""
    name: str
    label: str
    """Path relative to the given one, with `/`."""
    real: str
    """Absolute path without links: the same for every way to one file."""
    folder: Folder


def files(paths: Iterable[Path]) -> Iterator[Found | Refused | Finding]:
    """Yield the files of given paths, each once: themselves, or all below them, and what is not read in between.

    Raises:
        UsageError: when a path does not exist.
    """
    seen: set[str] = set()
    folders: dict[Path, tuple[Folder, str]] = {}
    for path in paths:
        for found in _below(path, folders):
            if not isinstance(found, Found):
                yield found
            elif found.real not in seen:
                seen.add(found.real)
                yield found


def _below(path: Path, folders: dict[Path, tuple[Folder, str]]) -> Iterator[Found | Refused | Finding]:
    """Yield the files of one given path; `folders` is that of `_given`."""
    given = Path(os.path.normpath(Path.cwd() / path))
    try:
        if not given.exists():
            raise UsageError(f"no such file or folder: {path}", hint="check the path")
        is_folder = given.is_dir()
    except OSError as error:
        yield _unreadable(str(given), given.name, f"cannot be read: {error.strerror or error}")
        return
    if is_folder:
        real = os.path.realpath(given)
        yield from _walk(Folder(str(given), "", str(given), None), real, real, _is_trial(given))
    else:
        yield _given(given, folders)


def snapshots_beside(path: Path) -> list[Path]:
    """Return the harness snapshots that lie beside journals: in or below a folder, or beside a file; sorted."""
    if not path.is_dir():
        return sorted(path.parent.glob(f"*{SNAPSHOT_SUFFIX}"))
    found = []
    for folder, inner, names in os.walk(path):
        if folder.count("/") - str(path).count("/") >= MAX_DEPTH:
            inner.clear()
        found += [Path(folder, name) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    return sorted(found)


def is_aside(name: str) -> bool:
    """Return whether a file of this name stands beside traces and holds none."""
    return name.startswith(".") or name in _ASIDE or name.endswith(_ASIDE_ENDS)


def is_within(real: str, real_root: str) -> bool:
    """Return whether a link may be followed: into the folder that was given, or into a cache of DVC.

    Args:
        real: absolute path without links of what the link leads to.
        real_root: that of the folder that was given.
    """
    return os.path.commonpath([real, real_root]) == real_root or "/.dvc/cache/" in real


def refuse_file(
    code: str, path: str, label: str, message: str, hint: str | None = None, *, read: bool = True
) -> Refused:
    """Return the refusal of a whole file, with its digest and its first bytes unless it is not to be read."""
    raw_digest, excerpt = label_digest(label), b""
    if read:
        try:
            require_regular(Path(path))
            with Path(path).open("rb") as file:
                excerpt = file.read(EXCERPT)
            raw_digest = digest.sha256_file(Path(path))
        except (OSError, IrregularFileError):
            pass
    return Refused(code, label, message, hint, raw_digest, excerpt)


def label_digest(label: str) -> str:
    """Return the digest that stands for a file that was not read: that of its label."""
    return digest.sha256(label.encode("utf-8", "surrogateescape"))


def _given(path: Path, folders: dict[Path, tuple[Folder, str]]) -> Found | Refused:
    """Return a file that was given by its own path; `folders` keeps what is known of the folders of such files."""
    above, name = path.parent, path.name
    if not path.is_file():
        return _no_file(str(path), name)
    if above not in folders:
        trial = str(above.parent) if above.name == "agent" and _is_trial(above.parent) else None
        folders[above] = Folder(str(above), "", str(above), trial), os.path.realpath(above)
    folder, real = folders[above]
    return Found(str(path), name, name, os.path.realpath(path) if path.is_symlink() else _joined(real, name), folder)


def _unreadable(path: str, label: str, message: str) -> Refused:
    return refuse_file("unreadable", path, label, message, read=False)


def _no_file(path: str, label: str) -> Refused:
    # permissions, at which the code's own hint looks, are not what is wrong
    hint = "put the file itself there, or take away what is in its place"
    return refuse_file("unreadable", path, label, why_no_file(Path(path)), hint, read=False)


def why_no_file(path: Path) -> str:
    """Return in words what stands at a path that leads to no file."""
    try:
        require_regular(path)
    except IrregularFileError as error:
        return error.message
    except OSError as error:
        nowhere = error.errno == errno.ENOENT
        return "a symbolic link that leads to nothing" if nowhere else f"cannot be read: {error.strerror or error}"
    return "it was no file a moment ago"


def _is_trial(folder: Path) -> bool:
    agent = folder / "agent"
    try:
        return (
            agent.is_dir()
            and not agent.is_symlink()
            and (folder / "config.json").is_file()
            and os.path.lexists(folder / "result.json")
        )
    except OSError:
        # a folder that cannot be looked into: whoever lists it, or opens its files, says so
        return False


def _listed(path: str, label: str) -> list[os.DirEntry[str]] | Refused:
    """Return what is in a folder in the order of the names, or why it cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        return _unreadable(path, label, f"cannot be listed: {error.strerror or error}")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder and no link to one; what nobody can tell is treated as a file."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _walk(folder: Folder, real: str, real_root: str, is_trial: bool) -> Iterator[Found | Refused | Finding]:
    """Yield the files below `folder`, whose path without links is `real`."""
    if is_trial:
        yield from _trial(folder, real, real_root)
        return
    if folder.label.count("/") >= MAX_DEPTH:
        yield _too_deep(folder)
        return
    listed = _listed(folder.path, folder.label or ".")
    if isinstance(listed, Refused):
        yield listed
        return
    entries = [entry for entry in listed if not is_aside(entry.name)]
    below = {entry.name: _is_trial(Path(entry.path)) for entry in entries if _is_folder(entry)}
    is_job = any(below.values())
    for entry in entries:
        name = entry.name
        if name in below:
            inner = Folder(entry.path, _joined(folder.label, name), folder.root, None)
            yield from _walk(inner, _joined(real, name), real_root, below[name])
        elif not (is_job and name in _JOB_FILES):
            yield from _file(entry, folder, real, real_root)


def _too_deep(folder: Folder) -> Refused:
    """Return the refusal of what lies too deep, in the name of the outermost folder in which it does."""
    top = folder.label.partition("/")[0]
    message = f"folders lie more than {MAX_DEPTH} deep in it; what is deeper was not looked at"
    hint = "give the path of an inner folder, if it is to be read"
    return refuse_file("unreadable", folder.path, top, message, hint, read=False)


def _trial(trial: Folder, real: str, real_root: str) -> Iterator[Found | Refused | Finding]:
    path = _joined(trial.path, "agent")
    agent = Folder(path, _joined(trial.label, "agent"), trial.root, trial.path)
    listed = _listed(path, agent.label)
    if isinstance(listed, Refused):
        yield listed
        return
    entries = [entry for entry in listed if _TRAJECTORY.fullmatch(entry.name)]
    for entry in entries:
        yield from _file(entry, agent, _joined(real, "agent"), real_root)
    if not entries:
        label = _joined(trial.label, "result.json")
        message = "a Harbor trial without a trajectory: the agent wrote none"
        yield refuse_file("trial-without-trajectory", _joined(trial.path, "result.json"), label, message)


def _file(
    entry: os.DirEntry[str], folder: Folder, real_folder: str, real_root: str
) -> Iterator[Found | Refused | Finding]:
    label = _joined(folder.label, entry.name)
    real = _joined(real_folder, entry.name)
    if entry.is_symlink():
        real = os.path.realpath(entry.path)
        if not is_within(real, real_root):
            message = "a symbolic link out of the given folder"
            yield refuse_file("symlink-outside", entry.path, label, message, read=False)
            return
    try:
        is_folder, is_file = entry.is_dir(), entry.is_file()
    except OSError as error:
        # a link that leads to itself
        yield _unreadable(entry.path, label, f"cannot be read: {error.strerror or error}")
        return
    if is_folder and entry.is_symlink():
        yield finding("symlink-folder", label, f"a symbolic link to a folder, {_within(real, real_root)}: not followed")
        return
    if not is_file:
        yield _no_file(entry.path, label)
        return
    yield Found(entry.path, entry.name, label, real, folder)


def _within(real: str, real_root: str) -> str:
    """Return the name of a folder for a message: within the given one, or in a cache of DVC."""
    return repr(os.path.relpath(real, real_root)) if "/.dvc/cache/" not in real else "in DVC's cache"


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
