"""The files a harness is made of, each read at most once.

A harness lives in its folder and may reach further: into `roots`, where imports are looked up, and into first-party
`packages`. `HarnessFolder` is the only way to those files. What it has read stays in memory under a *key*, so that the
bytes that are hashed are the bytes that a recorder executes, whatever happens on disk in between.

A key is the path relative to the harness folder; for a file found through a root outside, `root:` and the path relative
to it; through a package outside, `package:` and the path from the package's name on. A file inside the folder has the
plain key however it was found.

Invariants:
- nothing is read that is not a regular file, or that a symbolic link takes out of its base;
- a path from a manifest is text with forward slashes; an absolute one or one with `..` is refused before it is opened;
- the algorithm's own ignore list, `IGNORED`, can never be part of a fingerprint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tracemark.durable import require_regular
from tracemark.errors import IrregularFileError
from tracemark.findings import Finding, finding
from tracemark.harness.sighting import Sighting, kind, listed
from tracemark.model.harness import MANIFEST_NAME

IGNORED = (
    "__pycache__/",
    ".git",
    ".DS_Store",
    "*~",
    ".*.sw?",
    "[#]*[#]",
    ".[#]*",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
)
"""What the algorithm `tracemark-harness/1` never sees, as patterns that git and DVC read the same way."""

ROOT, PACKAGE = "root:", "package:"
"""Prefixes of the keys of files outside the harness folder."""

MAX_FILE = 64 * 1024 * 1024
"""The largest file that is read, in bytes."""

MAX_DEPTH = 100
"""How many folders deep a file may lie; what is deeper was made by a mistake, and the system cannot name it at last."""


class Base(NamedTuple):
    """A place where modules are looked up."""

    prefix: str
    """What keys of its files begin with: nothing, `root:` or `package:`."""
    folder: Path
    """Its resolved path; for a package the folder that holds the package."""
    only: str | None
    """The one top-level name looked up here (a package); None for any."""


class RefusedFileError(Exception):
    """A file that cannot be part of a harness.

    Args:
        problem: the finding that says why.
    """

    def __init__(self, problem: Finding) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True)
class Listing:
    """The files of a harness folder as a walk found them, without what the algorithm ignores."""

    files: tuple[str, ...]
    """Paths relative to the folder, sorted, ignored ones left out."""
    problems: tuple[Finding, ...]
    """Links that leave the folder, linked folders, things that are no files."""


class HarnessFolder:
    """The bytes of a harness, read on demand and kept.

    Args:
        path: the harness folder; a link to it is followed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bases = [Base("", path.resolve(), None)]
        self.ignore: tuple[str, ...] = ()
        self.files: dict[str, bytes] = {}
        self.seen = Sighting(self.bases[0].folder)

    def add_base(self, text: str, prefix: str) -> Finding | None:
        """Add a root or a package of the manifest to the places where modules are looked up.

        Args:
            text: its path relative to the harness folder; it may lead outside, but must not be absolute.
            prefix: `ROOT` or `PACKAGE`.

        Returns:
            What is wrong with it, or None.
        """
        if PurePosixPath(text).is_absolute() or "\\" in text:
            return finding("manifest-path-outside", MANIFEST_NAME, f"{text!r} must be relative to the harness folder")
        folder = (self.bases[0].folder / text).resolve()
        self.seen.places[self.bases[0].folder / text] = folder
        if not folder.is_dir():
            return finding("manifest-file-missing", MANIFEST_NAME, f"there is no folder {text!r}")
        if prefix == PACKAGE:
            self.bases.append(Base(prefix, folder.parent, folder.name))
        else:
            self.bases.append(Base(prefix, folder, None))
        return None

    def names(self, base: Base, folder: str) -> frozenset[str]:
        """Return the names in a folder of `base` (`""` is the base itself); empty when there is no such folder."""
        if folder.rpartition("/")[2] in ("__pycache__", ".git"):
            return frozenset()
        path = base.folder / folder
        if path not in self.seen.names:
            self.seen.names[path] = listed(path)
        return self.seen.names[path].names

    def is_file(self, base: Base, path: str) -> bool:
        """Return whether `path` in `base` exists and is no folder."""
        folder, _, name = path.rpartition("/")
        return name in self.names(base, folder) and not self._kind(base.folder / path)

    def is_folder(self, base: Base, path: str) -> bool:
        """Return whether `path` in `base` is a folder."""
        folder, _, name = path.rpartition("/")
        return name in self.names(base, folder) and bool(self._kind(base.folder / path))

    def key(self, base: Base, path: str) -> str:
        """Return the key of the file `path` in `base`."""
        if not base.prefix:
            return path
        full, home = base.folder / path, self.bases[0].folder
        return full.relative_to(home).as_posix() if full.is_relative_to(home) else base.prefix + path

    def shown(self, base: Base, path: str) -> str:
        """Return the path of a file as it leads from the harness folder, for messages and to tell files apart."""
        return os.path.relpath(base.folder / path, self.bases[0].folder)

    def read(self, base: Base, path: str) -> bytes:
        """Return the bytes of the file `path` in `base`, from memory when they were read before.

        Raises:
            RefusedFileError: when it is missing, too large, no regular file, leaves its base, or is under `ignore`.
        """
        key = self.key(base, path)
        if key in self.files:
            return self.files[key]
        if not key.startswith((ROOT, PACKAGE)) and (pattern := self.ignored_by(key)) is not None:
            message = f"{key!r} is part of the harness, but the pattern {pattern!r} ignores it"
            raise RefusedFileError(finding("ignored-file-used", key, message))
        try:
            real, data = _read(base, path, key)
        except RefusedFileError:
            self.seen.complete = False
            raise
        self.seen.read(base.folder / path, real, data)
        self.files[key] = data
        return data

    def member(self, text: str) -> str:
        """Read the file that the manifest or a template calls `text`, and return its key.

        Raises:
            RefusedFileError: when the path leaves the folder, or the file cannot be read.
        """
        if refused := outside(text):
            raise RefusedFileError(finding("manifest-path-outside", MANIFEST_NAME, refused))
        key = str(PurePosixPath(text))
        self.read(self.bases[0], key)
        return key

    def ignored_by(self, path: str) -> str | None:
        """Return the pattern under which the folder's file `path` does not count, or None when it counts."""
        return next((p for p in (*IGNORED, *self.ignore) if matches(p, path)), None)

    def walk(self) -> Listing:
        """List every file of the folder that counts."""
        files: list[str] = []
        problems: list[Finding] = []
        for found in self._walk():
            if isinstance(found, Finding):
                problems.append(found)
            else:
                files.append(found)
        return Listing(tuple(sorted(files)), tuple(problems))

    def holds_anything(self) -> bool:
        """Return whether there is a manifest or a file that counts, or something is wrong; one will do."""
        closed = not os.access(self.path, os.R_OK | os.X_OK)
        return closed or (self.path / MANIFEST_NAME).exists() or next(self._walk(), None) is not None

    def _kind(self, path: Path) -> str:
        if path not in self.seen.kinds:
            self.seen.kinds[path] = kind(path)
        return self.seen.kinds[path]

    def _walk(self) -> Iterator[str | Finding]:
        """Yield the files of the folder that count, and what is wrong."""
        pending = [""]
        while pending:
            folder = pending.pop()
            for name in sorted(self.names(self.bases[0], folder)):
                path = f"{folder}/{name}" if folder else name
                full = self.bases[0].folder / path
                if path == MANIFEST_NAME:
                    continue
                found = self._kind(full)
                if found == "folder":
                    # a pattern for folders has to be asked here, a pattern for files where the file is met
                    if self.ignored_by(path + "/") is not None:
                        continue
                    if path.count("/") >= MAX_DEPTH:
                        message = f"folders lie more than {MAX_DEPTH} deep in {path.partition('/')[0]!r}"
                        yield finding("folder-too-deep", path.partition("/")[0], message)
                        continue
                    if not os.access(full, os.R_OK | os.X_OK):
                        yield finding("folder-unreadable", path, f"{path!r} cannot be listed")
                        continue
                    pending.append(path)
                elif self.ignored_by(path) is not None:
                    continue
                elif found:
                    message = f"{path!r} is a link to a folder, which is not followed"
                    yield finding("folder-linked", path, message)
                else:
                    if path.startswith((ROOT, PACKAGE)):
                        message = f"{path!r}: a name must not begin with `{ROOT}` or `{PACKAGE}`"
                        yield finding("name-reserved", path, message)
                    yield path


def outside(text: str) -> str | None:
    """Return why the path `text` cannot name a file of the folder, or None when it can."""
    if "\\" in text:
        return f"the path {text!r} holds a backslash; write forward slashes"
    if PurePosixPath(text).is_absolute() or text.startswith("~"):
        return f"the path {text!r} is not relative to the harness folder"
    if ".." in text.split("/"):
        return f"the path {text!r} leaves the harness folder"
    return None


def matches(pattern: str, path: str) -> bool:
    """Return whether an ignore pattern takes the file `path`, or a folder above it.

    A pattern without a slash (one at its end apart) is compared with every name on the way; a pattern with a slash with
    the path from the harness folder. A slash at the end means folders only. `*` also stands for slashes.

    Args:
        pattern: shell-style pattern, case counts.
        path: path relative to the harness folder; a slash at its end marks a folder.
    """
    bare = pattern.rstrip("/").removeprefix("/")
    anchored = "/" in pattern.rstrip("/")
    parts = path.rstrip("/").split("/")
    for depth in range(1, len(parts) + 1):
        is_folder = depth < len(parts) or path.endswith("/")
        if pattern.endswith("/") and not is_folder:
            continue
        subject = "/".join(parts[:depth]) if anchored else parts[depth - 1]
        if fnmatchcase(subject, bare):
            return True
    return False


def _read(base: Base, path: str, key: str) -> tuple[Path, bytes]:
    """Return where the file `path` in `base` lies, links followed, and its bytes."""
    # a package may be a single module; what it is called with its suffix is then all of it
    limit = base.folder / path.partition("/")[0] if base.only else base.folder
    try:
        real = (base.folder / path).resolve()
        if not real.is_relative_to(limit):
            raise RefusedFileError(finding("manifest-path-outside", key, f"{key!r} is a link that leaves its folder"))
        require_regular(real)
        status = real.stat()
        if status.st_size > MAX_FILE:
            message = f"{key!r} has {status.st_size} bytes; more than {MAX_FILE} are not read"
            raise RefusedFileError(finding("manifest-file-missing", key, message))
        return real, real.read_bytes()
    except IrregularFileError as error:
        raise RefusedFileError(finding("manifest-file-missing", key, f"{key!r}: {error.message}", error.hint)) from None
    except (OSError, RuntimeError) as error:
        # Python 3.11 and 3.12 report a loop of links as RuntimeError
        reason = getattr(error, "strerror", None) or "a loop of links"
        raise RefusedFileError(finding("manifest-file-missing", key, f"{key!r} cannot be read: {reason}")) from None
