"""Paths become jobs, and jobs become records: reading that every format shares.

`plan` looks at the beginning of each file and cuts the work into jobs; `read` carries one job out, in any process.

Invariants:
- the same files give the same jobs in the same order, whatever the order in which a disk lists them: a JSONL file is
  cut at fixed byte ranges moved to the next line's end, small files of one batch share a job;
- no file is held whole: memory is bounded by the largest record (`Limits.max_record`);
- nothing outside a given folder is read: a symbolic link that leads out of it, or an archive member that would, is
  refused by name;
- whatever is not read is refused with its place, the reason, its digest and its first bytes. Files that are known to
  stand beside traces (`batch.yaml`, hidden files, `*.dvc`, the rest of a Harbor trial) hold none and are not refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracemark.durable import is_locked
from tracemark.errors import UsageError
from tracemark.findings import Finding, finding
from tracemark.importers import batch, detect
from tracemark.importers.base import SPACE, Context, Imported, Limits, Refused
from tracemark.importers.compression import BrokenError, TooMuchError, expanded, members, packing
from tracemark.importers.head import read_head
from tracemark.importers.records import Piece, records, refuse_piece
from tracemark.importers.tree import Found, Links, files, is_aside

RANGE = 33_554_432
"""Size of one job in bytes, before it is moved to a line's end."""

_LFS = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class Job:
    """Work for one process, done in order; small enough to be sent to it."""

    pieces: tuple[Piece, ...]
    size: int
    """Bytes on disk."""


class Refusals:
    """Refused files, each looked at when its turn comes: what thousands of them begin with is never held at once.

    Args:
        makers: one for each file, in order.
    """

    def __init__(self, makers: Sequence[Callable[[], Refused]]) -> None:
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    def __iter__(self) -> Iterator[Refused]:
        return (make() for make in self._makers)


class Plan(NamedTuple):
    """What is to be read."""

    jobs: list[Job]
    refused: Refusals
    """Files that no job reads, in order."""
    findings: list[Finding]
    """What is wrong beside the files, such as a broken `batch.yaml`."""


def plan(paths: Sequence[Path], *, format: str | None = None, limits: Limits | None = None) -> Plan:  # noqa: A002
    """Return the jobs that read `paths`.

    Args:
        paths: files and folders, in the order to be read; a file that is reached twice is read once.
        format: name of the importer to use for all of them; None to recognise each file by its content.
        limits: how much is read; None for the defaults.

    Raises:
        UsageError: when a path does not exist.
        UnknownNameError: when there is no importer `format`.
    """
    if format is not None:
        detect.importer(format)
    planner = _Planner(format, limits or Limits())
    seen: set[str] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"no such file or folder: {path}", hint="check the path")
        for found in files(path):
            if isinstance(found, Refused):
                planner.refused.append(partial(_same, found))
            elif (real := os.path.realpath(found.path)) not in seen:
                seen.add(real)
                planner.add(found)
    return planner.result()


def read(job: Job) -> Iterator[Imported | Refused]:
    """Yield every trace of a job, and everything in it that could not be read. Never raises for content."""
    for piece in job.pieces:
        reader = detect.importer(piece.format)
        for record in records(piece):
            if isinstance(record, Refused):
                yield record
            else:
                yield from reader.read(record)


class _Planner:
    """Collects the jobs of one plan."""

    def __init__(self, format: str | None, limits: Limits) -> None:  # noqa: A002
        self._format = format
        self._limits = limits
        self._batches = batch.Batches()
        self._pieces: list[tuple[Piece, int]] = []
        self._links = Links()
        self.refused: list[Callable[[], Refused]] = []
        self.findings: list[Finding] = []

    def add(self, found: Found) -> None:
        """Look at one file and plan how to read it, or refuse it."""
        context = Context(
            name=found.path.name,
            folder=str(found.path.parent),
            trial=None if found.trial is None else str(found.trial),
            batch=self._batches.of(found),
            limits=self._limits,
        )
        piece = Piece(str(found.path), found.label, "", "document", context=context)
        with self._refusing(piece):
            with found.path.open("rb") as file:
                size, first = os.fstat(file.fileno()).st_size, file.read(200)
            if first.startswith(_LFS):
                self._refuse("git-lfs-pointer", piece, "a Git-LFS pointer stands in place of the file")
            elif packing(first) == "zip":
                self._add_members(replace(piece, packed="zip"))
            else:
                self._add_stream(replace(piece, packed=packing(first)), size)

    @contextmanager
    def _refusing(self, piece: Piece) -> Iterator[None]:
        """Refuse a piece that cannot be opened, or not be expanded."""
        try:
            yield
        except TooMuchError:
            self._refuse("expanded-too-large", piece, f"expands to more than {self._limits.max_expanded} bytes")
        except BrokenError as error:
            self._refuse("compressed-broken", piece, f"cannot be expanded: {error}")
        except OSError as error:
            self._refuse("unreadable", piece, f"cannot be read: {error.strerror or error}")

    def _add_members(self, piece: Piece) -> None:
        names = members(Path(piece.path), self._limits.max_expanded)
        if not names:
            self._refuse("empty-file", piece, "an archive without files")
        for name, packed_size in names:
            folder, _, own = name.rpartition("/")
            context = replace(piece.context, name=own, folder=None)
            inside = replace(piece, label=f"{piece.label}/{name}", member=name, context=context)
            if name.startswith("/") or "\\" in name or ".." in folder.split("/"):
                self._refuse("path-outside", inside, "the name leads out of the archive")
            elif not is_aside(own):
                with self._refusing(inside):
                    self._add_stream(inside, packed_size)

    def _add_stream(self, piece: Piece, size: int) -> None:
        with expanded(Path(piece.path), piece.packed, piece.member, self._limits.max_expanded) as stream:
            head = read_head(stream, self._limits.max_record)
        fault = _fault_of(head.data, head.complete)
        if fault:
            self._refuse(fault[0], piece, fault[1])
            return
        found = detect.detect(head, self._format)
        if found.tie:
            hint = " or ".join(f"--format {name}" for name in found.tie)
            self._refuse("format-tie", piece, f"the content fits {' and '.join(found.tie)} equally well", hint)
        elif found.importer is None:
            self._refuse("format-unknown", piece, f"no known format{_shown(head.data)}")
        elif found.importer.name == "journal" and is_locked(Path(piece.path)):
            self.findings.append(finding("journal-open", piece.label, "still being written: skipped"))
        else:
            unit = found.importer.unit(head)
            if not head.lines and not piece.packed and size <= self._limits.max_record:
                self._links.note(Path(piece.path))
            self._pieces.append((replace(piece, format=found.importer.name, unit=unit), size))

    def _refuse(self, code: str, piece: Piece, message: str, hint: str | None = None) -> None:
        self.refused.append(partial(refuse_piece, code, piece, message, hint))

    def result(self) -> Plan:
        """Return the plan: linked files know of each other, small files are put together, large ones cut."""
        jobs: list[Job] = []
        group: list[Piece] = []
        total = 0

        def close() -> None:
            if group:
                jobs.append(Job(tuple(group), total))
                group.clear()

        for piece, size in self._pieces:
            piece = self._linked(piece)
            if size > RANGE and piece.unit == "line" and not piece.packed:
                close()
                jobs += [Job((part,), end - part.start) for part in _cut(piece, size) if (end := part.end) is not None]
                continue
            if group and (total + size > RANGE or piece.context.batch != group[0].context.batch):
                close()
            total = total + size if group else size
            group.append(piece)
        close()
        return Plan(jobs, Refusals(self.refused), [*self._batches.findings, *self.findings])

    def _linked(self, piece: Piece) -> Piece:
        linked = self._links.linked(piece.path)
        if linked is None:
            return piece
        return replace(piece, context=replace(piece.context, continues=linked[0], part_of=linked[1]))


def _same(refused: Refused) -> Refused:
    return refused


def _cut(piece: Piece, size: int) -> Iterator[Piece]:
    """Yield a large JSONL file as ranges that begin and end at line ends."""
    start = 0
    with Path(piece.path).open("rb") as file:
        for mark in range(RANGE, size, RANGE):
            if mark <= start:
                continue
            file.seek(mark - 1)
            end = mark - 1
            while line := file.readline(1 << 20):
                end += len(line)
                if line.endswith(b"\n"):
                    break
            if start < end < size:
                yield replace(piece, start=start, end=end)
                start = end
    yield replace(piece, start=start, end=size)


def _fault_of(data: bytes, complete: bool) -> tuple[str, str] | None:
    """Return code and message for content that no importer is asked about; None for any other."""
    if complete and not data.strip(SPACE):
        return "empty-file", "nothing in it"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 8 and (not any(data[1:8:2]) or not any(data[0:7:2]))):
        return "utf-16", "the text is UTF-16, not UTF-8"
    return None


def _shown(data: bytes) -> str:
    start = data.strip(SPACE)[:40].decode("utf-8", "replace")
    return f": it begins with {start!r}"
