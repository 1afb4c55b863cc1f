"""Paths become jobs, and jobs become records: reading that every format shares.

`plan` looks at the beginning of each file and cuts the work into jobs; `read` carries one job out, in any process.

Invariants:
- the same files give the same jobs in the same order, whatever the order in which a disk lists them: a JSONL file is
  cut at fixed byte ranges moved to the next line's end, small files of one batch share a job;
- no file is held whole: memory is bounded by the largest record (`Limits.max_record`);
- nothing outside a given folder (and DVC's cache) is read: a symbolic link that leads out of it, or an archive member
  that would, is refused by name;
- an importer that fails costs the record that it failed on, and nothing else of the source; of a record that holds
  several documents, it costs the one where the importer reads them by `documents.each` or guards them itself;
- whatever is not read is refused with its place, the reason, its digest and its first bytes. Files that are known to
  stand beside traces (`batch.yaml`, hidden files, `*.dvc`, the rest of a Harbor trial) hold none and are not refused. A
  link to a folder is a finding: what it leads to is read where it lies, if it lies where files are read.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tracemark.durable import is_locked
from tracemark.findings import Finding, finding
from tracemark.importers import batch, detect
from tracemark.importers.base import Context, Imported, Importer, Limits, Record, Refused
from tracemark.importers.compression import BrokenError, TooMuchError, expanded, members, packing
from tracemark.importers.guard import FAILED, caught, refuse_failed, worded
from tracemark.importers.head import SIZE, SPACE, Head, read_head
from tracemark.importers.links import Links, may_name
from tracemark.importers.records import Piece, lies_apart, records, refuse_piece
from tracemark.importers.tree import JOURNAL_SUFFIX, Found, files, is_aside

RANGE = 33_554_432
"""Size of one job in bytes, before it is moved to a line's end."""

_LINKING = "atif"
_WIDE = re.compile(
    rb"(?P<text>\xff\xfe\x00\x00|\x00\x00\xfe\xff|(?:[^\x00]\x00{3}){2}|(?:\x00{3}[^\x00]){2})|\x00{4}", re.DOTALL
)
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


def plan(paths: Sequence[Path], *, format: str | None = None, limits: Limits | None = None) -> Plan:  # noqa: A002 - the option's name
    """Return the jobs that read `paths`.

    Args:
        paths: files and folders, in the order to be read; a file that is reached twice is read once.
        format: name of the importer to use for all of them; None to recognise each file by its content.
        limits: how much is read; None for the defaults.

    Raises:
        UsageError: when a path does not exist.
        UnknownNameError: when there is no importer `format`; `UsageError` when one of a third party cannot be loaded.
    """
    for name in detect.IMPORTERS.names() if format is None else (format,):
        detect.importer(name)
    planner = _Planner(format, _countable(limits or Limits()))
    for found in files(paths):
        if isinstance(found, Refused):
            planner.refused.append(partial(_same, found))
        elif isinstance(found, Finding):
            planner.findings.append(found)
        else:
            planner.add(found)
    return planner.result()


def read(job: Job) -> Iterator[Imported | Refused]:
    """Yield every trace of a job, and everything in it that could not be read. Never raises for content."""
    memory: dict[Any, Any] = {}
    for piece in job.pieces:
        piece = piece._replace(context=piece.context._replace(memory=memory))
        is_empty = True
        for one in _read_piece(detect.importer(piece.format), piece):
            is_empty = False
            yield one
        if is_empty and piece.start == 0 and piece.end is None and not lies_apart(piece):
            yield refuse_piece("runs-missing", piece, "it holds no run: its list of them is empty")


def _read_piece(reader: Importer, piece: Piece) -> Iterator[Imported | Refused]:
    if piece.unit == "lines":
        yield from _read_together(reader, piece)
        return
    for record in records(piece):
        if isinstance(record, Refused):
            yield record
        else:
            yield from _read(reader, record)


def _read(reader: Importer, record: Record) -> Iterator[Imported | Refused]:
    """Yield what an importer makes of a record; where it fails, the rest of the record is refused."""
    faults: list[Exception] = []
    with caught(faults):
        yield from reader.read(record)
    for fault in faults:
        yield refuse_failed(reader.name, record, fault)


def _read_together(reader: Importer, piece: Piece) -> Iterator[Imported | Refused]:
    """Yield what an importer makes of lines that belong together; where it fails, the file is refused."""
    faults: list[Exception] = []
    with caught(faults):
        yield from reader.read_lines(partial(records, piece))
    for fault in faults:
        yield refuse_piece(FAILED, piece, f"the importer {reader.name} failed: {worded(fault)}")


class _Planner:
    """Collects the jobs of one plan."""

    def __init__(self, format: str | None, limits: Limits) -> None:  # noqa: A002 - the option's name
        self._format = format
        self._limits = limits
        self._batches = batch.Batches()
        self._pieces: list[tuple[Piece, int]] = []
        self._gathered: dict[tuple[str, str, str], int] = {}
        self._links = Links()
        self.refused: list[Callable[[], Refused]] = []
        self.findings: list[Finding] = []

    def add(self, found: Found) -> None:
        """Look at one file and plan how to read it, or refuse it."""
        folder = found.folder
        batch_facts = self._batches.of(folder)
        context = Context(found.name, folder.path, folder.trial, batch_facts, limits=self._limits, root=folder.root)
        piece = Piece(found.path, found.label, "", "document", context=context, root=folder.root)
        # making a Path of every name costs as much as reading the file
        with self._refusing(piece), open(found.path, "rb", buffering=SIZE) as file:  # noqa: PTH123 - as above
            size, first = os.fstat(file.fileno()).st_size, file.read(SIZE)
            packed = packing(first)
            if first.startswith(_LFS):
                self._refuse("git-lfs-pointer", piece, "a Git-LFS pointer stands in place of the file")
            elif packed == "zip":
                self._add_members(piece._replace(packed=packed))
            elif packed:
                self._add_packed(piece._replace(packed=packed), size)
            else:
                self._add_recognised(piece, size, read_head(file, self._limits.max_record, first))

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
        names = members(piece.path, self._limits.max_expanded)
        if not names:
            self._refuse("empty-file", piece, "an archive without files")
        whole = self._archive_format([name for name, _ in names])
        for name, packed_size in names:
            folder, _, own = name.rpartition("/")
            context = piece.context._replace(name=own, folder=None, root=None, archive=piece.path)
            inside = piece._replace(label=f"{piece.label}/{name}", member=name, context=context)
            if name.startswith("/") or "\\" in name or ".." in folder.split("/"):
                self._refuse("path-outside", inside, "the name leads out of the archive")
            elif whole is not None:
                if name in whole[1]:
                    self._pieces.append((inside._replace(format=whole[0]), packed_size))
            elif not is_aside(own):
                with self._refusing(inside):
                    self._add_packed(inside, packed_size)
        if whole is not None and not whole[1]:
            self._refuse("record-unfit", piece, f"an archive of {whole[0]} that holds no finished run")

    def _archive_format(self, names: Sequence[str]) -> tuple[str, frozenset[str]] | None:
        """Return the format of an archive as a whole, and which of its members are records; None when it has none."""
        for name in detect.IMPORTERS.names() if self._format is None else (self._format,):
            chosen = detect.importer(name).members(names)
            if chosen is not None:
                return name, frozenset(chosen)
        return None

    def _add_packed(self, piece: Piece, size: int) -> None:
        with expanded(piece.path, piece.packed, piece.member, self._limits.max_expanded) as stream:
            head = read_head(stream, self._limits.max_record)
        self._add_recognised(piece, size, head)

    def _add_recognised(self, piece: Piece, size: int, head: Head) -> None:
        """Plan to read a piece by what it begins with, or refuse it."""
        if piece.context.name.endswith(JOURNAL_SUFFIX) and not piece.packed and self._is_begun(piece, head):
            return
        fault = _fault_of(head.data, head.complete)
        if fault:
            self._refuse(fault[0], piece, fault[1])
            return
        faults: list[Exception] = []
        found, unit = detect.Detection(None), piece.unit
        beside = key = None
        with caught(faults):
            found = detect.detect(head, self._format)
            if found.importer is not None:
                unit = found.importer.unit(head)
                beside = found.importer.beside(piece.context.name, head)
                key = None if piece.packed else found.importer.gathers(piece.context.name, head)
            elif not found.tie:
                beside = self._beside_by_name(piece.context.name)
        if faults:
            self._refuse("importer-failed", piece, f"an importer failed to recognise the file: {worded(faults[0])}")
        elif found.tie:
            hint = " or ".join(f"--format {name}" for name in found.tie)
            self._refuse("format-tie", piece, f"the content fits {' and '.join(found.tie)} equally well", hint)
        elif beside is not None:
            self.findings.append(finding("file-beside", piece.label, beside))
        elif found.importer is None:
            hint = f"known formats: {', '.join(detect.IMPORTERS.names())}; leave the file out, or state one by --format"
            self._refuse("format-unknown", piece, f"no known format{_shown(head.data)}", hint)
        elif found.importer.name == "journal" and is_locked(Path(piece.path)):
            self._skip_open(piece)
        elif key is not None:
            self._gather(piece._replace(format=found.importer.name), size, key)
        else:
            planned = piece._replace(format=found.importer.name, unit=unit)
            self._pieces.append((planned, size))
            if found.importer.name == _LINKING and (not head.complete or may_name(head.data)):
                self._links.note(planned, head.complete)

    def _beside_by_name(self, name: str) -> str | None:
        """Return why a file of no known format stands beside traces; None when it does not."""
        known = detect.IMPORTERS.names() if self._format is None else (self._format,)
        answers = (detect.importer(one).beside_by_name(name) for one in known)
        return next((answer for answer in answers if answer is not None), None)

    def _gather(self, piece: Piece, size: int, key: str) -> None:
        """Add a file to those of its folder that are one record with it."""
        place = self._gathered.setdefault((piece.format, piece.context.folder or "", key), len(self._pieces))
        if place == len(self._pieces):
            self._pieces.append((piece, size))
            return
        first, total = self._pieces[place]
        self._pieces[place] = first._replace(others=(*first.others, piece.path)), total + size

    def _is_begun(self, piece: Piece, head: Head) -> bool:
        """Skip a journal that is being written, and refuse one that ended before its first line; return whether it was.

        By its name alone: what tells a journal by its content stands in the first line.
        """
        if is_locked(Path(piece.path)):
            self._skip_open(piece)
            return True
        begun = head.data.lstrip(SPACE)
        if head.complete and (not begun or (begun[:1] == b"{" and b"\n" not in begun and head.value is None)):
            self._refuse("journal-empty", piece, "the run ended before the first line of its journal was written")
            return True
        return False

    def _skip_open(self, piece: Piece) -> None:
        self.findings.append(finding("journal-open", piece.label, "still being written: skipped"))

    def _refuse(self, code: str, piece: Piece, message: str, hint: str | None = None) -> None:
        self.refused.append(partial(refuse_piece, code, piece, message, hint))

    def result(self) -> Plan:
        """Return the plan: linked files know of each other, small files are put together, large ones cut."""
        self._links.settle(piece for piece, _ in self._pieces)
        jobs: list[Job] = []
        group: list[Piece] = []
        total = 0

        def close() -> None:
            if group:
                jobs.append(Job(tuple(group), total))
                group.clear()

        for piece, size in self._pieces:
            piece = self._links.linked(_in_order(piece) if piece.others else piece)
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


def _in_order(piece: Piece) -> Piece:
    """Return a piece of several files with them in the natural order of their names, in which 9 comes before 10."""
    first, *others = sorted((piece.path, *piece.others), key=_natural)
    label = piece.label[: len(piece.label) - len(piece.context.name)] + Path(first).name
    context = piece.context._replace(name=Path(first).name)
    return piece._replace(path=first, others=tuple(others), label=label, context=context)


def _natural(path: str) -> list[tuple[bool, int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", Path(path).name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _countable(limits: Limits) -> Limits:
    """Return the limits in numbers that a stream can be asked for."""
    most = sys.maxsize // 2
    return limits._replace(
        max_record=min(limits.max_record, most),
        max_expanded=min(limits.max_expanded, most),
    )


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
                yield piece._replace(start=start, end=end)
                start = end
    yield piece._replace(start=start, end=size)


def _fault_of(data: bytes, complete: bool) -> tuple[str, str] | None:
    """Return code and message for content that no importer is asked about; None for any other."""
    if complete and not data.lstrip(SPACE):
        return "empty-file", "nothing in it"
    wide = _WIDE.match(data)
    if wide:
        message = "the text is UTF-32, not UTF-8" if wide["text"] else "it holds NUL bytes: that is no text"
        return "format-unknown", message
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 8 and (not any(data[1:8:2]) or not any(data[0:7:2]))):
        return "utf-16", "the text is UTF-16, not UTF-8"
    return None


def _shown(data: bytes) -> str:
    start = data.strip(SPACE)[:40].decode("utf-8", "replace")
    return f": it begins with {start!r}"
