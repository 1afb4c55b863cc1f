"""Which files of a path are read, in which order, and which belong together.

Files come in the order of their names. Links are followed only within the folder that was given. In a Harbor trial
folder only the trajectories are traces; what lies around them is read with them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tracemark import digest
from tracemark.importers.base import EXCERPT, Refused

_ASIDE = ("batch.yaml", "__pycache__", "Thumbs.db", "desktop.ini")
_ASIDE_ENDS = (".dvc", ".harness.json", "~", ".swp", ".lock")
_JOB_FILES = ("result.json", "config.json", "job.log", "lock.json")
_TRAJECTORY = re.compile(r"trajectory.*\.json")
_LINK = re.compile(rb'"(trajectory_path|continued_trajectory_ref)"\s*:\s*"([^"\\/]+)"')


class Found(NamedTuple):
    """One file that may hold traces."""

    path: Path
    """Absolute path."""
    label: str
    """Path relative to the given one, with `/`."""
    root: Path
    """The folder that was given, or the folder of the file that was."""
    trial: Path | None
    """The Harbor trial folder around it; None outside a trial."""


def files(path: Path) -> Iterator[Found | Refused]:
    """Yield the files of a given path: itself, or everything below it, with refusals in between."""
    given = Path(os.path.normpath(Path.cwd() / path))
    if not given.is_dir():
        trial = given.parent.parent if given.parent.name == "agent" and _is_trial(given.parent.parent) else None
        if given.is_file():
            yield Found(given, given.name, given.parent, trial)
        else:
            yield refuse_file("unreadable", given, given.name, "neither a file nor a folder", read=False)
        return
    yield from _walk(given, given, os.path.realpath(given))


def is_aside(name: str) -> bool:
    """Return whether a file of this name stands beside traces and holds none."""
    return name.startswith(".") or name in _ASIDE or name.endswith(_ASIDE_ENDS)


def refuse_file(
    code: str, path: Path, label: str, message: str, hint: str | None = None, *, read: bool = True
) -> Refused:
    """Return the refusal of a whole file, with its digest and its first bytes unless it is not to be read."""
    raw_digest, excerpt = label_digest(label), b""
    if read:
        try:
            with path.open("rb") as file:
                excerpt = file.read(EXCERPT)
            raw_digest = digest.sha256_file(path)
        except OSError:
            pass
    return Refused(code, label, message, hint, raw_digest, excerpt)


def label_digest(label: str) -> str:
    """Return the digest that stands for a file that was not read: that of its label."""
    return digest.sha256(label.encode("utf-8", "surrogateescape"))


def _is_trial(folder: Path) -> bool:
    return (folder / "agent").is_dir() and (folder / "config.json").is_file() and (folder / "result.json").is_file()


def _walk(folder: Path, root: Path, real_root: str) -> Iterator[Found | Refused]:
    if _is_trial(folder):
        yield from _trial(folder, root, real_root)
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        label = folder.relative_to(root).as_posix()
        yield refuse_file("unreadable", folder, label, f"cannot be listed: {error.strerror}", read=False)
        return
    entries = [entry for entry in entries if not is_aside(entry.name)]
    is_job = any(entry.is_dir(follow_symlinks=False) and _is_trial(Path(entry.path)) for entry in entries)
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, root, real_root)
        elif not (is_job and entry.name in _JOB_FILES):
            yield from _file(path, root, real_root, None)


def _trial(folder: Path, root: Path, real_root: str) -> Iterator[Found | Refused]:
    agent = folder / "agent"
    names = sorted(path.name for path in agent.iterdir() if _TRAJECTORY.fullmatch(path.name))
    for name in names:
        yield from _file(agent / name, root, real_root, folder)
    if not names:
        label = (folder / "result.json").relative_to(root).as_posix()
        message = "a Harbor trial without a trajectory: the agent wrote none"
        yield refuse_file("trial-without-trajectory", folder / "result.json", label, message)


def _file(path: Path, root: Path, real_root: str, trial: Path | None) -> Iterator[Found | Refused]:
    label = path.relative_to(root).as_posix()
    if path.is_symlink():
        real = os.path.realpath(path)
        if os.path.commonpath([real, real_root]) != real_root:
            yield refuse_file("symlink-outside", path, label, "a symbolic link out of the given folder", read=False)
            return
        if Path(real).is_dir():
            return
    if not path.is_file():
        yield refuse_file("unreadable", path, label, "no regular file", read=False)
        return
    yield Found(path, label, root, trial)


class Links:
    """Which documents of a folder name one another: continuations and sub-agents' trajectories."""

    def __init__(self) -> None:
        self._owners: dict[str, list[str]] = {}
        self._before: dict[str, str] = {}

    def note(self, path: Path) -> None:
        """Look into a document for the names of others in its folder."""
        try:
            data = path.read_bytes()
        except OSError:
            return
        if b'"trajectory_path"' not in data and b'"continued_trajectory_ref"' not in data:
            return
        for member, name in _LINK.findall(data):
            target = str(path.parent / name.decode("utf-8", "replace"))
            if target == str(path):
                continue
            if member == b"trajectory_path":
                owners = self._owners.setdefault(target, [])
                if str(path) not in owners:
                    owners.append(str(path))
            else:
                self._before.setdefault(target, path.name)

    def linked(self, path: str) -> tuple[str | None, tuple[str, ...]] | None:
        """Return what names `path`: the document that it continues, and those that it is a part of; None for nothing.

        Documents that are parts of one another in a circle are parts of nothing.
        """
        owners = tuple(Path(owner).name for owner in self._owners.get(path, ()) if self._has_top(owner, {path}))
        before = self._before.get(path)
        return (before, owners) if before or owners else None

    def _has_top(self, path: str, below: set[str]) -> bool:
        while (owners := self._owners.get(path)) is not None:
            below.add(path)
            above = [owner for owner in owners if owner not in below]
            if not above:
                return False
            path = above[0]
        return True
