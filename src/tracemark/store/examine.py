"""Reading one stored file whole: what it says, and whether it is what its name and its folder say.

A function of the file's name and its bytes alone, so that files are examined by several processes at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from tracemark import digest
from tracemark.durable import require_regular
from tracemark.errors import IntegrityError, IrregularFileError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import INGESTED, project_annotation, project_refused
from tracemark.store.layout import SUFFIX, located, partition_of
from tracemark.store.row import TraceRow, project_line
from tracemark.store.segment import Location, iterate


class Witness(Protocol):
    """Looks at every trace that is read, for what several of them show together; travels between processes."""

    def fresh(self) -> Self:
        """Return one that has seen nothing."""
        ...

    def see(self, trace_id: str, line: dict[str, Any]) -> None:
        """Look at a stored trace."""
        ...

    def merge(self, other: Self) -> None:
        """Take in what another one saw."""
        ...


@dataclass(frozen=True, slots=True)
class FileJob:
    """One data file."""

    path: Path
    """Where it lies."""
    name: str
    """Relative to `traces/`."""
    witness: Any = None
    """A `Witness` of which a fresh one looks at the traces of the file; None when nobody does."""


@dataclass(slots=True)
class Examined:
    """What one file says, as small values that travel between processes."""

    job: FileJob
    size: int = 0
    findings: list[Finding] = field(default_factory=list)
    traces: list[tuple[TraceRow, Location]] = field(default_factory=list)
    statements: list[tuple[Any, ...]] = field(default_factory=list)
    """What the catalogue holds of annotations or refused records, and their places."""
    whole: bool = False
    """Whether every line was read; what is told of the others says nothing of the file as a whole."""
    links: set[tuple[Any, ...]] = field(default_factory=set)
    """What the catalogue holds of what lines say of other lines, the name of the table first."""
    seen: set[bytes] = field(default_factory=set)
    """Ids of the traces: of one with several lines the first counts for what it shows of a harness."""
    about: set[bytes] = field(default_factory=set)
    """Traces that annotations are about, but those that are stored before their traces."""
    witness: Any = None
    """What looked at the traces; None when nothing did."""


def examine(job: FileJob) -> Examined:
    """Read one file whole; a function of its bytes and its name alone."""
    examined = Examined(job, witness=job.witness and job.witness.fresh())
    where = located(job.name)
    try:
        require_regular(job.path)
        examined.size = job.path.stat().st_size
        found = digest.sha256_file(job.path)
        if found != job.path.name.removesuffix(SUFFIX):
            examined.findings.append(finding("file-damaged", where, f"its bytes have the SHA-256 {found}"))
        for location, line in iterate(job.path):
            _examine_line(examined, location, line)
        examined.whole = True
    except IrregularFileError as error:
        examined.findings.append(finding("file-damaged", where, f"{error.message}: not opened", error.hint))
    except (IntegrityError, OSError) as error:
        examined.findings.append(finding("file-damaged", where, reason_of(error)))
    return examined


def _examine_line(examined: Examined, location: Location, line: bytes) -> None:
    folder, inside, _ = examined.job.name.split("/") if examined.job.name.count("/") == 2 else ("refused", "", "")
    place = f"{located(examined.job.name)} at {location.frame_offset}+{location.offset}"
    try:
        value = digest.load_canonical(line)
    except digest.NotJSONError as error:
        raise IntegrityError(f"a line is not JSON: {error}", where=place) from None
    if digest.canonical(value) != line:
        examined.findings.append(finding("line-not-canonical", place, "the line is not in canonical form"))
    if folder == "segments":
        projection = project_line(line, value=value)
        row = projection.row
        examined.links.update(("replaced", bytes.fromhex(old), row.id) for old in projection.supersedes)
        if row.id not in examined.seen:
            examined.links.update(("shown", row.id, text) for text in projection.shown)
        examined.seen.add(row.id)
        examined.traces.append((row, location))
        if examined.witness is not None:
            examined.witness.see(row.trace_id, value)
        right = f"fingerprint={partition_of(row.fingerprint)}"
        if right != inside:
            examined.findings.append(
                finding("wrong-partition", located(examined.job.name), f"trace {row.trace_id} belongs to {right}")
            )
    elif folder == "annotations":
        note = project_annotation(line, value)
        examined.statements.append((note.digest, note.kind, note.trace, location))
        examined.links.update(("superseded", old, note.kind, note.trace) for old in note.supersedes)
        examined.links.update(("exported", trace, note.digest) for trace in note.traces)
        examined.links.update(("sources", *source) for source in (note.source,) if source is not None)
        if note.trace is not None and note.kind not in INGESTED:
            examined.about.add(note.trace)
        if note.kind != inside:
            examined.findings.append(
                finding(
                    "wrong-partition",
                    located(examined.job.name),
                    f"an annotation of kind {note.kind!r} is not of this folder",
                )
            )
    else:
        examined.statements.append((*project_refused(line, value), location))


def reason_of(error: Exception) -> str:
    """Return what an error says, without the path that the system puts beside it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
