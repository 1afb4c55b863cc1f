"""One ingest job: a byte range of a source, read, stamped and packed; runs in a worker process.

A job touches nothing shared: it reads its own bytes, writes temporaries into a folder that its caller owns, and hands
back drafts, refused records and findings. What is already known is the caller's business, because only the caller sees
the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.ingest_notes import Overruled, Seen
from tracemark.acts.stamping import CONTRADICTED, Stamper
from tracemark.findings import CODES, Finding, finding
from tracemark.harness.roles import role_of
from tracemark.harness.version import Harness
from tracemark.importers.base import Imported, Refused
from tracemark.importers.source import Job, read
from tracemark.importers.stated import overruled
from tracemark.model.trace import FORMAT
from tracemark.store.annotations import refused
from tracemark.store.draft import DraftWriter, SegmentDraft
from tracemark.store.layout import partition_of
from tracemark.store.row import project
from tracemark.store.segment import Packer, iterate
from tracemark.store.state import harness_named

PART = "part:"
"""Begins the place of an embedded record in `JobResult.order`."""

SHOWN = 100
"""How many findings of one code a job hands back; the rest is counted."""

_CHUNK_RECORDS = 4096
_CHUNK_BYTES = 16_777_216
_BEGIN = b'{"format":"' + FORMAT.encode() + b'",'


@dataclass(frozen=True, slots=True)
class IngestJob:
    """What a worker needs."""

    source: Job
    """Which bytes to read, and how."""
    folder: Path
    """Where temporaries go."""
    stem: str
    """Begins the name of each temporary of this job."""
    known: Mapping[str, Harness]
    """Every known harness by fingerprint."""
    claim: str | None
    """Fingerprint of the harness that the caller or the batch names; None when nobody does."""
    name: str | None = None
    """The name by which it was named, which may mean another harness now than it did; None when by its fingerprint."""


@dataclass(slots=True)
class JobResult:
    """What a worker hands back."""

    drafts: list[SegmentDraft] = field(default_factory=list)
    """Those of each partition, not yet named."""
    parts: list[SegmentDraft] = field(default_factory=list)
    """The same for traces that are embedded in others: they only say of a known trace that it is a part."""
    order: list[str] = field(default_factory=list)
    """For each trace, in the order in which they were read, the partition of its draft, behind `PART` in `parts`."""
    refused: int = 0
    """How many records could not be read."""
    refusals: Path | None = None
    """A temporary that holds them in stored form; None when there are none."""
    name: str | None = None
    """The name by which the claim of the job was made; None when there is none, or it names a fingerprint."""
    contradicted: list[tuple[str, Finding]] = field(default_factory=list)
    """(trace id, finding) where the content of a trace disagrees with a harness that is stated for it; not among
    `findings`, since only the caller sees whether the trace has its harness already."""
    refuted: dict[str, set[str]] = field(default_factory=dict)
    """Trace id to the fingerprints of those harnesses; a row of the trace names none."""
    second: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """Number in `order` to (trace id, stamp) where a trace says one thing of its harness and its batch claims another.
    """
    decided: set[int] = field(default_factory=set)
    """Numbers in `order` of those whose stamp is what people decided elsewhere."""
    findings: list[Finding] = field(default_factory=list)
    """At most `SHOWN` of each code."""
    count: Counter[str] = field(default_factory=Counter)
    """How many findings there were of each code."""
    claim: str | None = None
    """Fingerprint of the harness that was claimed for all of the job; None when none was."""
    seen: Seen = field(default_factory=Seen)
    """What the traces show where one was claimed."""
    overruled: dict[tuple[str, str], Overruled] = field(default_factory=dict)
    """What the batch states and records say otherwise, by member and value."""
    _said: set[tuple[str, str, str]] = field(default_factory=set)

    def note(self, found: Finding) -> None:
        """Count a finding, and keep it while there are few of its code."""
        self.count[found.code] += 1
        if self.count[found.code] <= SHOWN:
            self.findings.append(found)

    def note_alike(self, found: Finding, label: str) -> None:
        """Count a finding, and keep it only where its file has none that says the same: a log repeats itself.

        Args:
            found: the finding.
            label: the file that it is about.
        """
        self.count[found.code] += 1
        said = found.code, label, found.message
        if said not in self._said and len(self._said) < SHOWN:
            self._said.add(said)
            self.findings.append(found)


def work(job: IngestJob) -> JobResult:
    """Read, stamp and pack the records of one job."""
    result = JobResult(name=job.name, claim=job.claim)
    first = job.source.pieces[0]
    writer, parts = DraftWriter(job.folder, job.stem), DraftWriter(job.folder, f"{job.stem}.parts")
    stamper = Stamper(job.known)
    claim = job.known.get(job.claim) if job.claim is not None else None
    refusals = _Refusals(job.folder, job.stem, result)
    for item in read(job.source):
        if isinstance(item, Refused):
            refusals.add(item)
        else:
            _note_overruled(item, first.label, first.context.batch, result)
            for one in (item, *_further(item)):
                _add(one, stamper, claim, parts if item.embedded else writer, result)
    result.drafts, result.parts = writer.close(), parts.close()
    refusals.close()
    return result


def refuse(items: Iterable[Refused], folder: Path, stem: str) -> JobResult:
    """Return as a result the refusal of files that no job reads.

    Args:
        items: the files.
        folder: where temporaries go.
        stem: begins the name of each temporary.
    """
    result = JobResult()
    refusals = _Refusals(folder, stem, result)
    for item in items:
        refusals.add(item)
    refusals.close()
    return result


def refused_in(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the refused records of a temporary in lists of bounded size, and remove it."""
    chunk: list[dict[str, Any]] = []
    size = 0
    for _, line in iterate(path):
        chunk.append(digest.load_canonical(line))
        size += len(line)
        if len(chunk) == _CHUNK_RECORDS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
    path.unlink()


class _Refusals:
    """Puts refused records aside on disk: a file of nothing but broken lines must not fill the memory."""

    def __init__(self, folder: Path, stem: str, result: JobResult) -> None:
        self._path = folder / f"{stem}.refused"
        self._packer: Packer | None = None
        self._result = result

    def add(self, item: Refused) -> None:
        self._result.refused += 1
        self._result.note(finding(item.code, item.where, item.message, item.hint or CODES[item.code].hint))
        if self._packer is None:
            self._packer = Packer(self._path)
        kept = refused(item.code, item.where, item.message, item.raw_digest, item.excerpt)
        self._packer.add(digest.canonical(kept))

    def close(self) -> None:
        if self._packer is not None:
            self._packer.close()
            self._result.refusals = self._path


def line_of(head: bytes, source: Mapping[str, Any], trajectory: bytes) -> bytes:
    """Return the stored line, its parts as they are.

    Args:
        head: canonical JSON of `{harness, outcome, run}`.
        source: where it came from.
        trajectory: canonical bytes.
    """
    return b"".join((_BEGIN, head[1:-1], b',"source":', digest.canonical(source), b',"trajectory":', trajectory, b"}"))


def _further(item: Imported) -> Iterator[Imported]:
    """Yield a copy of a record for each further statement that it carries about its trace."""
    for said in item.further:
        outcome = said.get("outcome", {"status": "unknown"})
        copy = item._replace(run=said.get("run", {}), outcome=outcome, stamp=said.get("harness"))
        yield copy._replace(observed={}, findings=(), further=(), decided=False)


def _note_overruled(item: Imported, label: str, batch: Mapping[str, Any], result: JobResult) -> None:
    """Note what the batch of the job states and a record says otherwise; a sub-agent may have a model of its own."""
    if not batch or item.embedded or item.run.get("role") == "subagent":
        return
    for member, stated, said in overruled(item.run, batch):
        one = result.overruled.setdefault((member, str(stated)), Overruled(label, str(said)))
        one.records += 1


def _add(item: Imported, stamper: Stamper, claim: Harness | None, writer: DraftWriter, result: JobResult) -> None:
    trace_id = digest.sha256(item.trajectory_bytes)
    stamped = stamper.stamp(item, trace_id, claim)
    if claim is not None and item.run.get("role") != "subagent":
        result.seen.add(1, {role_of(role) for role, _, _ in item.content.messages})
    statement = {"harness": stamped.stamp, "outcome": item.outcome, "run": item.run}
    for found in item.findings:
        result.note_alike(found, item.source["label"])
    head = digest.canonical(statement, finite=True)
    line = line_of(head, item.source, item.trajectory_bytes)
    stored = {**statement, "source": item.source, "trajectory": item.trajectory}
    projection = project(stored, trace_id, head)
    writer.add(line, projection)
    partition = partition_of(projection.row.fingerprint)
    result.order.append(PART + partition if item.embedded else partition)
    if item.embedded:
        return
    if stamped.stamp.get("contradictions") and (named := harness_named(stamped.stamp)) is not None:
        result.refuted.setdefault(trace_id, set()).add(named)
    if item.decided and claim is None:
        result.decided.add(len(result.order) - 1)
    if stamped.second is not None:
        result.second[len(result.order) - 1] = (trace_id, stamped.second)
    for found in stamped.findings:
        if found.code == CONTRADICTED:
            result.contradicted.append((trace_id, found))
        else:
            result.note(found)
