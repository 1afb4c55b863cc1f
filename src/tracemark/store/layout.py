"""Where everything of a corpus lies, and whether a store is there.

Invariants:
- every path of the store is made here, from names that were checked, never from text of a trace;
- data files have content names: 64 hexadecimal digits, the SHA-256 of the file's bytes;
- a store whose format is newer than this program is not touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tracemark import digest
from tracemark.durable import read_regular, write_atomic
from tracemark.errors import IntegrityError, IrregularFileError, NewerFormatError, NoStoreError, UsageError

STORE_FORMAT = "tracemark/store/1"
"""What the file `traces/STORE` says of a store that this program writes."""

CATALOGUE = "TRACEMARK_CATALOGUE"
"""Environment variable: the file in which the catalogue is kept, for a corpus that cannot be written or whose disk
SQLite cannot use. One file serves one corpus."""

NO_FINGERPRINT = "none"
"""Name of the partition of traces whose first statement declares no fingerprint."""

SUFFIX = ".jsonl.zst"
"""How the name of a data file ends."""

_DEEPEST = 8
"""How many folders below `traces/` are looked into; the files of a store lie two deep."""

_DATA_NAME = re.compile(r"[0-9a-f]{64}\.jsonl\.zst")
_SNAPSHOT_NAME = re.compile(r"[0-9a-f]{64}\.json")
_PARTITION = re.compile(r"fingerprint=(?:[0-9a-f]{16}|none)")
_KIND = re.compile(r"[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*")


def partition_of(fingerprint: str | None) -> str:
    """Return the partition of a first statement: 16 hexadecimal digits of its fingerprint, or `none` for None."""
    if fingerprint is None:
        return NO_FINGERPRINT
    return fingerprint.removeprefix(digest.FINGERPRINT_PREFIX)[:16]


def content_of(name: str) -> str:
    """Return the SHA-256 that the bytes of the data file `name` must have, 64 hexadecimal digits."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


def is_kind(text: str) -> bool:
    """Return whether `text` may name a kind of annotation (`stamps`, `exports.sft`)."""
    return _KIND.fullmatch(text) is not None


class Layout:
    """The paths of one corpus.

    Args:
        root: the corpus' folder; need not exist.
        catalogue: where the catalogue is kept; None for what the environment variable `TRACEMARK_CATALOGUE` says, and
            where that is not set or empty, for `.tracemark/catalogue.db`.
    """

    def __init__(self, root: Path, catalogue: Path | None = None) -> None:
        self.root = root
        self.traces = root / "traces"
        self.store_file = self.traces / "STORE"
        self.segments = self.traces / "segments"
        self.harnesses = self.traces / "harnesses"
        self.annotations = self.traces / "annotations"
        self.refused = self.traces / "refused"
        self.private = root / ".tracemark"
        self.temporaries = self.private / "tmp"
        self.set_aside = self.private / "set-aside"
        elsewhere = catalogue or (Path(os.environ[CATALOGUE]) if os.environ.get(CATALOGUE) else None)
        self.catalogue = elsewhere or self.private / "catalogue.db"
        # they guard the catalogue, and a corpus whose catalogue lies elsewhere may be one that cannot be written
        self.locks = elsewhere.with_name(f"{elsewhere.name}.locks") if elsewhere else self.private / "locks"

    def require(self) -> None:
        """Make sure that a store is here and that this program knows its format.

        Raises:
            NoStoreError: when there is none.
            NewerFormatError: when a newer program wrote it.
            IntegrityError: when the file `STORE` is not readable.
        """
        try:
            raw = read_regular(self.store_file)
        except IrregularFileError as error:
            raise IrregularFileError(error.message, where="traces/STORE", hint=error.hint) from None
        except (FileNotFoundError, NotADirectoryError):
            raise NoStoreError("there is no trace store here", where="traces/STORE", hint="tracemark init") from None
        try:
            value = digest.loads(raw).value
        except digest.NotJSONError as error:
            raise IntegrityError(f"the store file is not JSON: {error}", where="traces/STORE") from None
        found = value.get("format") if isinstance(value, dict) else None
        if found == STORE_FORMAT:
            return
        if isinstance(found, str) and found.startswith("tracemark/store/"):
            raise NewerFormatError(
                f"the store has format {found}, this program knows {STORE_FORMAT}",
                where="traces/STORE",
                hint="install a newer tracemark",
            )
        raise IntegrityError("the store file names no format", where="traces/STORE", hint="restore it from git")

    def create(self) -> None:
        """Make an empty store here; does nothing where there is one already.

        Raises:
            OSError: when the folder cannot be written.
        """
        if not self.store_file.exists():
            write_atomic(self.store_file, digest.canonical({"format": STORE_FORMAT}) + b"\n")

    def segment(self, partition: str, name: str) -> Path:
        """Return the path of the segment `name` (64 hexadecimal digits) in `partition`."""
        return self.segments / f"fingerprint={partition}" / (name + SUFFIX)

    def snapshot(self, fingerprint: str) -> Path:
        """Return the path of the snapshot of the harness `fingerprint`."""
        return self.harnesses / (fingerprint.removeprefix(digest.FINGERPRINT_PREFIX) + ".json")

    def annotation(self, kind: str, name: str) -> Path:
        """Return the path of the annotation file `name` of `kind`.

        Raises:
            UsageError: when `kind` may not name a folder.
        """
        if not is_kind(kind):
            raise UsageError(f"{kind!r} cannot name a kind of annotation", hint="use lower-case words joined by dots")
        return self.annotations / kind / (name + SUFFIX)

    def refused_file(self, name: str) -> Path:
        """Return the path of the file `name` of refused records."""
        return self.refused / (name + SUFFIX)

    def path(self, name: str) -> Path:
        """Return the path of the data file `name`, a name that `data_files` gave."""
        return self.traces / name

    def data_files(self) -> list[str]:
        """Return the names, relative to `traces/`, of all segments, annotation files and refused files, sorted."""
        names = [*_files(self.refused, "refused/", _DATA_NAME)]
        for folder, inside in ((self.segments, _PARTITION), (self.annotations, _KIND)):
            for entry in _folders(folder, inside):
                names += _files(folder / entry, f"{folder.name}/{entry}/", _DATA_NAME)
        return sorted(names)

    def snapshots(self) -> list[str]:
        """Return the fingerprints of which a snapshot is stored, sorted."""
        return [digest.FINGERPRINT_PREFIX + name[:64] for name in sorted(_files(self.harnesses, "", _SNAPSHOT_NAME))]

    def strangers(self) -> list[str]:
        """Return the files below `traces/` that are no part of a store, relative to it, sorted.

        What git and DVC keep beside data (`.gitignore`, `*.dvc`) is none of them.
        """
        known = {"STORE", *self.data_files(), *_files(self.harnesses, "harnesses/", _SNAPSHOT_NAME)}
        found = []
        for folder, inner, files in os.walk(self.traces):
            depth = Path(folder).relative_to(self.traces).parts
            if len(depth) >= _DEEPEST and inner:
                # whatever lies there is no part of a store, and nobody wants a name of a thousand folders
                found.append(f"{depth[0]}/")
                inner.clear()
            for file in files:
                name = (Path(folder) / file).relative_to(self.traces).as_posix()
                if name not in known and file != ".gitignore" and not file.endswith(".dvc"):
                    found.append(name)
        return sorted(set(found))


def _folders(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from [e.name for e in entries if pattern.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return


def _files(folder: Path, prefix: str, pattern: re.Pattern[str]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            # a link counts as a file: DVC may check data out as links into its cache
            yield from [prefix + e.name for e in entries if pattern.fullmatch(e.name)]
    except (FileNotFoundError, NotADirectoryError):
        return
