"""One job of an interchange export: traces of one segment become documents; runs in a worker process.

A trace's bytes are proved to give its id before they are copied. What is true of it now comes with the job where that
is more than its own line says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark.exporters.interchange import document, stated
from tracemark.exporters.interchange_folder import document_name
from tracemark.model.stamp import fingerprint_of
from tracemark.store.row import trajectory_of
from tracemark.store.segment import Location, read_lines


@dataclass(frozen=True, slots=True)
class Wanted:
    """One trace that is to become a document."""

    trace_id: str
    """Its id."""
    location: Location
    """Where its line is in the segment."""
    said: tuple[Mapping[str, Any], ...] | None = None
    """What is true of it now, see `exporters.interchange.document`; None when its line says all."""


@dataclass(frozen=True, slots=True)
class InterchangeJob:
    """What a worker needs."""

    segment: Path
    """The file to read."""
    traces: tuple[Wanted, ...]
    """The traces, in the order of their places."""
    target: Path
    """The file to write documents to, one a line; the folder of all files where each is to be a file."""
    apart: bool
    """Whether each document is to be a file."""


@dataclass(frozen=True, slots=True)
class InterchangeResult:
    """What a worker hands back."""

    target: Path
    """That of the job."""
    documents: int
    """How many documents were written."""
    fingerprints: frozenset[str]
    """Those under which the traces count."""


def work(job: InterchangeJob) -> InterchangeResult:
    """Write the documents of one job.

    Raises:
        IntegrityError: when a stored trace is damaged, or is not what its id says.
        OSError: when something cannot be written.
    """
    fingerprints: set[str] = set()
    lines = read_lines(job.segment, (one.location for one in job.traces))
    made = (_document(one, line, fingerprints) for one, line in zip(job.traces, lines, strict=True))
    if job.apart:
        for one, data in zip(job.traces, made, strict=True):
            path = job.target / document_name(one.trace_id)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
    else:
        with job.target.open("wb") as file:
            file.writelines(made)
    return InterchangeResult(job.target, len(job.traces), frozenset(fingerprints))


def _document(one: Wanted, line: bytes, fingerprints: set[str]) -> bytes:
    trajectory = trajectory_of(line, one.trace_id)
    said = stated(line) if one.said is None else one.said
    fingerprints |= {name for statement in said if (name := fingerprint_of(statement.get("harness") or {})) is not None}
    return document(trajectory, said, one.trace_id) + b"\n"
