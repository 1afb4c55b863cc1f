"""The facade of the store: everything that reads or writes `traces/` goes through here.

Writing follows the commit protocol of `docs/format/store.md`: temporary, sync, rename to the content's name, sync of
the folder, projection. The rename is the one commit point; what a method returned from is durable, and a projection
that failed is a finding, because the next opening makes up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tracemark import digest
from tracemark.digest import JSON
from tracemark.durable import (
    CrashPoint,
    crash_point,
    make_folder,
    publish,
    set_aside,
    temporary_folder,
    write_atomic,
)
from tracemark.errors import IntegrityError, IrregularFileError, LockedError, TracemarkError, UsageError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import project_annotation, project_refused
from tracemark.store.asked import MAKE_ROOM, require_files
from tracemark.store.catalogue import Catalogue, CatalogueError, UnusableError, is_damage
from tracemark.store.catchup import TOLERATED, attempt, catch_up, enter, turn
from tracemark.store.draft import SegmentDraft
from tracemark.store.layout import CATALOGUE, Layout, content_of, located
from tracemark.store.reading import Reading
from tracemark.store.searched import choose, searches_everything
from tracemark.store.segment import Location, Packer


class Store(Reading):
    """An open store. Use `Store.open`; usable as a context manager."""

    @classmethod
    def open(cls, root: Path, *, create: bool = False, catalogue: Path | None = None) -> Self:
        """Open the store of the corpus at `root` and make its catalogue equal to the folder.

        Args:
            root: the corpus' folder.
            create: make an empty store where there is none.
            catalogue: where the catalogue is kept; None for what `Layout` says.

        Raises:
            NoStoreError: when there is none and `create` is false.
            NewerFormatError: when a newer tracemark wrote the store or the catalogue.
            LockedError: when another process holds the catalogue for too long.
            UsageError: when the catalogue cannot be written where it is kept.
        """
        layout = Layout(root, catalogue)
        if create:
            layout.create()
        layout.require()
        with _usable(layout):
            try:
                make_folder(layout.locks)
            except OSError as error:
                raise _unusable(layout, error) from None
            try:
                store = cls(layout, _open_catalogue(layout))
                store.findings += _caught_up(store)
            except UnusableError:
                raise
            except CatalogueError:
                # it is a projection: a damaged one is made again
                store = cls(layout, _new_catalogue(layout))
                store.findings.append(finding("catalogue-rebuilt", layout.catalogue.name, "the catalogue was damaged"))
                store.findings += _caught_up(store)
        return store

    def close(self) -> None:
        """Close the catalogue; every commit that was acknowledged is durable already."""
        self.catalogue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if isinstance(error, UnusableError):
            raise _unusable(self.layout, error) from None
        if is_damage(error):
            message = f"the catalogue is damaged: {error}"
            raise IntegrityError(message, where=self.layout.catalogue.name, hint="tracemark reindex") from None

    # --- writing

    def workspace(self) -> AbstractContextManager[Path]:
        """Give a private folder for drafts; at the end of the `with` block it is gone, with all that is uncommitted."""
        return temporary_folder(self.layout.temporaries)

    def commit_segment(self, draft: SegmentDraft) -> bool:
        """Give a draft its final name; when this returns, its traces are durable.

        Returns:
            Whether it is new; false when a segment with the same bytes was there. One of the same name whose bytes are
            not those of the name is set aside first, with a finding.

        Raises:
            OSError: when it could not be made durable; nothing may be taken as stored then.
        """
        target = self.layout.segment(draft.partition, draft.name)
        name = target.relative_to(self.layout.traces).as_posix()
        new = self._publish(draft.temporary, target)

        def project() -> None:
            if searches_everything(self.catalogue):
                enter(self.catalogue, self.layout, name)
            else:
                self.catalogue.add_traces(name, draft.projections, draft.locations)

        self._project(name, project)
        draft.discard()
        return new

    def commit_annotations(self, kind: str, annotations: Iterable[Mapping[str, JSON]]) -> int:
        """Store annotations of one kind; those that are stored already are left out.

        Args:
            kind: their kind, also the name of their folder.
            annotations: in stored form, see `model.annotation`.

        Returns:
            How many were new.

        Raises:
            UsageError: when one is of another kind, or `kind` cannot name a folder.
            IntegrityError: when one has not the form of an annotation.
            OSError: when they could not be made durable.
        """
        self.layout.annotation(kind, "")
        rows = {
            row.digest: (row, line) for line, value in _lines(annotations) for row in [project_annotation(line, value)]
        }
        for row, _ in rows.values():
            if row.kind != kind:
                raise UsageError(f"an annotation of kind {row.kind!r} was given as one of {kind!r}")
        for known in self.catalogue.known("annotations", rows.keys()):
            del rows[known]
        new = sorted(rows.values(), key=lambda pair: pair[1])

        def project(name: str, locations: tuple[Location, ...]) -> None:
            self.catalogue.add_annotations(name, [row for row, _ in new], locations)

        self._commit_lines([line for _, line in new], lambda name: self.layout.annotation(kind, name), project)
        return len(new)

    def commit_refused(self, records: Iterable[Mapping[str, JSON]]) -> int:
        """Store records that could not be read; those that are stored already are left out.

        Args:
            records: in the form that `annotations.refused` gives.

        Returns:
            How many were new.

        Raises:
            IntegrityError: when one has another form.
            OSError: when they could not be made durable.
        """
        rows = {row.digest: (row, line) for line, value in _lines(records) for row in [project_refused(line, value)]}
        for known in self.catalogue.known("refused", rows.keys()):
            del rows[known]
        new = sorted(rows.values(), key=lambda pair: pair[1])

        def project(name: str, locations: tuple[Location, ...]) -> None:
            self.catalogue.add_refused(name, [row for row, _ in new], locations)

        self._commit_lines([line for _, line in new], self.layout.refused_file, project)
        return len(new)

    def commit_harness(self, fingerprint: str, snapshot: JSON) -> bool:
        """Store the snapshot of a harness; to be called before the first trace that names it is committed.

        Where one is stored already it stays: what may differ between two snapshots of one fingerprint (the label, the
        layout of a schema file) is no identity, and whether a snapshot gives its fingerprint is what `check` proves.

        Args:
            fingerprint: the harness' fingerprint, which the caller has recomputed from the snapshot.
            snapshot: what `harness.snapshot.write` gave.

        Returns:
            Whether it is new.

        Raises:
            OSError: when it could not be made durable.
        """
        path = self.layout.snapshot(fingerprint)
        if path.exists():
            return False
        with self.workspace() as folder:
            temporary = folder / "snapshot"
            write_atomic(temporary, digest.canonical(snapshot) + b"\n")
            return publish(temporary, path, synced=True)

    def reindex(self, *, everything: bool = False) -> None:
        """Make the catalogue again from the folder.

        Args:
            everything: whether `find` shall search whole traces, here, in what is stored later, and in a catalogue that
                must be made again.

        Raises:
            LockedError: when another process holds the catalogue for too long.
            UsageError: when the catalogue cannot be written, for lack of room for instance.
        """
        self.close()
        with _usable(self.layout):
            try:
                choose(self.layout, everything=everything)
            except OSError as error:
                raise _unusable(self.layout, error) from None
            self.catalogue = _new_catalogue(self.layout)
            # what was found before speaks of the catalogue that is gone
            self.findings = _caught_up(self, tolerated=(IntegrityError,))

    def _commit_lines(
        self, lines: list[bytes], target: Callable[[str], Path], project: Callable[[str, tuple[Location, ...]], None]
    ) -> None:
        with self.workspace() as folder:
            packer = Packer(folder / "lines")
            for line in lines:
                packer.add(line)
            packed = packer.close()
            if packed is None:
                return
            path = target(packed.name)
            self._publish(packed.temporary, path)
            name = path.relative_to(self.layout.traces).as_posix()
            self._project(name, lambda: project(name, packed.locations))

    def _publish(self, temporary: Path, path: Path) -> bool:
        """Publish a synced data file; what has its name and other bytes must not pass for it and is set aside."""
        if path.exists() and not (path.is_file() and digest.sha256_file(path) == content_of(path.name)):
            kept = set_aside(path, self.layout.set_aside)
            where = located(path.relative_to(self.layout.traces).as_posix())
            message = f"its bytes were not those of its name; it is written again, and the old file is {kept}"
            self.findings.append(finding("file-replaced", where, message))
        return publish(temporary, path, synced=True)

    def _project(self, name: str, project: Callable[[], None]) -> None:
        self.findings += attempt(name, project)
        crash_point(CrashPoint.PROJECTED)


def _caught_up(store: Store, tolerated: tuple[type[Exception], ...] = TOLERATED) -> list[Finding]:
    try:
        return catch_up(store.catalogue, store.layout, tolerated)
    except BaseException:
        store.close()
        raise


def _lines(values: Iterable[Mapping[str, JSON]]) -> Iterator[tuple[bytes, Mapping[str, JSON]]]:
    return ((digest.canonical(value), value) for value in values)


def _open_catalogue(layout: Layout) -> Catalogue:
    try:
        require_files(layout.catalogue)
    except IrregularFileError as error:
        message = f"the catalogue cannot be used: {error.message}"
        raise IrregularFileError(message, where=error.where, hint=MAKE_ROOM) from None
    except OSError:
        # SQLite says what is wrong
        pass
    return Catalogue(layout.catalogue, layout.locks / "catalogue")


def _new_catalogue(layout: Layout) -> Catalogue:
    """Open an empty catalogue in the place of the present one, which other processes may go on using unharmed."""
    with turn(layout):
        # the database first: without its log it may be half of what it was and look whole, while SQLite drops a log
        # that it finds beside an empty database
        for suffix in ("", "-wal", "-shm"):
            Path(f"{layout.catalogue}{suffix}").unlink(missing_ok=True)
        return _open_catalogue(layout)


@contextmanager
def _usable(layout: Layout) -> Iterator[None]:
    try:
        yield
    except UnusableError as error:
        raise _unusable(layout, error) from None


def _unusable(layout: Layout, error: Exception) -> TracemarkError:
    if "locked" in str(error) or "busy" in str(error):
        return LockedError("another process holds the catalogue", where=layout.catalogue.name, hint="try again later")
    reason = error.strerror if isinstance(error, OSError) else error
    return UsageError(
        f"the catalogue cannot be used: {reason}",
        where=layout.catalogue.name,
        hint=f"make room, or name a file on a local disk that can be written: {CATALOGUE}=FILE",
    )
