"""Where everything of a corpus lies, and whether a store is there.

Invariants:
- every path of the store is made here, from names that were checked, never from text of a trace;
- data files have content names: 64 hexadecimal digits, the SHA-256 of the file's bytes;
- a folder that is there and cannot be listed never passes for an empty one;
- a store whose format is newer than this program is not touched.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from tracemark import digest
from tracemark.durable import IN_THE_WAY, PRIVATE, is_there, read_regular, why_unread, write_atomic
from tracemark.errors import IntegrityError, IrregularFileError, NewerFormatError, NoStoreError, UsageError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import INGESTED

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


WHEN_WHOLE = "dvc checkout, or fetch the file from a backup; the catalogue takes it in by itself then"
"""What helps where a damaged file could not be entered in the catalogue."""


def located(name: str) -> str:
    """Return where the stored file `name`, relative to `traces/`, lies in the corpus, as findings and errors say it."""
    return f"traces/{name}"


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
        self.private = root / PRIVATE
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
            UsageError: when the file `STORE` is there and cannot be read.
            IntegrityError: when it does not say what it should.
        """
        try:
            raw = read_regular(self.store_file)
        except IrregularFileError as error:
            raise IrregularFileError(error.message, where="traces/STORE", hint=error.hint) from None
        except OSError as error:
            if not is_there(self.store_file):
                message = "there is no trace store here"
                # init makes a corpus of the folder that it is given, and of the current one when it is given none
                elsewhere = "" if self.root.resolve() == Path.cwd() else f" {shlex.quote(str(self.root))}"
                raise NoStoreError(message, where="traces/STORE", hint=f"tracemark init{elsewhere}") from None
            reason, hint = why_unread(error)
            raise UsageError(f"it cannot be read: {reason}", where="traces/STORE", hint=hint) from None
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

    def is_begun(self) -> bool:
        """Return whether a store is here, or something stands in its place: whether `require` says more than *none*."""
        return is_there(self.store_file)

    def create(self) -> None:
        """Make an empty store here; does nothing where there is one already.

        Raises:
            OSError: when the folder cannot be written.
        """
        if not self.is_begun():
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

    def data_files(self, unlisted: list[Finding] | None = None) -> list[str]:
        """Return the names, relative to `traces/`, of all segments, annotation files and refused files, sorted.

        Args:
            unlisted: takes a finding for each folder that is there and cannot be listed; None makes that an error.

        Raises:
            UsageError: when a folder cannot be listed.
        """
        names = [*self._files(self.refused, "refused/", _DATA_NAME, unlisted)]
        for folder, inside in ((self.segments, _PARTITION), (self.annotations, _KIND)):
            for entry in self._entries(folder, unlisted):
                if not inside.fullmatch(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    prefix = f"{folder.name}/{entry.name}/"
                    names += self._files(folder / entry.name, prefix, _DATA_NAME, unlisted)
                elif inside is _PARTITION or entry.name in INGESTED:
                    # another kind may be the name of a file that somebody keeps there
                    reason = "it is a link, which is not followed" if entry.is_symlink() else "it is no folder"
                    self._unlisted(folder / entry.name, (reason, IN_THE_WAY.format("folder")), unlisted)
        return sorted(names)

    def snapshots(self, unlisted: list[Finding] | None = None) -> list[str]:
        """Return the fingerprints of which a snapshot is stored, sorted; see `data_files`."""
        names = self._files(self.harnesses, "", _SNAPSHOT_NAME, unlisted)
        return [digest.FINGERPRINT_PREFIX + name[:64] for name in sorted(names)]

    def strangers(self, unlisted: list[Finding] | None = None) -> list[str]:
        """Return what lies below `traces/` and is no part of a store, relative to it, sorted; see `data_files`.

        What git and DVC keep beside data (`.gitignore`, `*.dvc`) is none of that. A link in place of a folder is named
        with a slash at its end: nothing looks behind it.
        """
        problems: list[Finding] = [] if unlisted is None else unlisted

        def passed(error: OSError) -> None:
            place = Path(error.filename or self.traces)
            if is_there(place):
                self._unlisted(place, why_unread(error, "folder"), unlisted)

        found = []
        for folder, inner, files in os.walk(self.traces, onerror=passed):
            depth = Path(folder).relative_to(self.traces).parts
            inside = "".join(f"{part}/" for part in depth)
            found += [f"{inside}{name}/" for name in inner if depth and (Path(folder) / name).is_symlink()]
            if len(depth) >= _DEEPEST and inner:
                # whatever lies there is no part of a store, and nobody wants a name of a thousand folders
                found.append(f"{depth[0]}/")
                inner.clear()
            found += [inside + name for name in files if name != ".gitignore" and not name.endswith(".dvc")]
        # listed last, and what has gone since is left out: what another process stores or removes is no stranger
        names = self._files(self.harnesses, "harnesses/", _SNAPSHOT_NAME, unlisted)
        known = {"STORE", *self.data_files(unlisted), *names}
        # what stands in place of a folder of the store is named as one that cannot be listed
        in_place = {problem.where.removeprefix("traces/").removesuffix("/") for problem in problems}
        strangers = {name for name in found if name not in known and name.removesuffix("/") not in in_place}
        return sorted(name for name in strangers if is_there(self.traces / name))

    def _files(self, folder: Path, prefix: str, pattern: re.Pattern[str], unlisted: list[Finding] | None) -> list[str]:
        # a link counts as a file: DVC may check data out as links into its cache
        return [prefix + e.name for e in self._entries(folder, unlisted) if pattern.fullmatch(e.name)]

    def _entries(self, folder: Path, unlisted: list[Finding] | None) -> list[os.DirEntry[str]]:
        """Return what a folder of the store holds; nothing where it is missing."""
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except OSError as error:
            if is_there(folder):
                self._unlisted(folder, why_unread(error, "folder"), unlisted)
            return []

    def _unlisted(self, folder: Path, why: tuple[str, str], unlisted: list[Finding] | None) -> None:
        """Take the finding that a folder cannot be listed, once; raise it where nobody takes it."""
        where = f"{folder.relative_to(self.root).as_posix()}/"
        reason, hint = why
        if unlisted is None:
            raise UsageError(f"it cannot be listed: {reason}", where=where, hint=hint) from None
        if all(one.where != where for one in unlisted):
            unlisted.append(finding("folder-unreadable", where, f"it cannot be listed: {reason}", hint))
