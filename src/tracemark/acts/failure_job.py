"""One job of the failure log: traces of one segment are routed, counted and clustered; runs in a worker process.

A trace's bytes are proved to give its id, and what the catalogue says of it is held against its line, before anything
is believed. What is true of it now comes with the job where that is more than its own line says.

Invariant:
- a trace that succeeded is in no file, whatever a condition says of it: so what training takes, which are successes
  and nothing else, and what the log tells have no trace in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.exporters.head import Head, require_same
from tracemark.failures.cluster import Clusters, cluster_id, incident
from tracemark.failures.conditions import Conditions, Destination
from tracemark.failures.log import example, row, to_json
from tracemark.failures.route import Routing, route
from tracemark.model.trace import model_label
from tracemark.store.row import head_of, trajectory_of
from tracemark.store.segment import Location, read_lines

FAILURES = "failures.jsonl"
"""The rows of the log itself: what the harness or the model did wrong."""

FILES: Mapping[str, str] = {
    Destination.HARNESS: FAILURES,
    Destination.MODEL_TRAINING: FAILURES,
    Destination.ENVIRONMENT_REPAIR: "environment.jsonl",
    Destination.BENCHMARK_REPAIR: "grader.jsonl",
    Destination.QUARANTINE: "quarantine.jsonl",
}
"""The file of each destination. What goes into training is in none."""


class Asked(NamedTuple):
    """One trace that is to be routed."""

    trace: str
    """Its id."""
    location: Location
    """Where its line is in the segment."""
    log: str
    """Whose log it belongs to."""
    counted: str | None
    """The harness under which its failures are counted: of harnesses that were declared equivalent, one."""
    fingerprint: str | None
    """The harness under which it counts now."""
    evidence: str
    """How well that is known."""
    head: Head
    """What its line must say (see `exporters.head`)."""
    said: Mapping[str, Any] | None = None
    """`run` and `outcome` as they stand now; None when its line says all."""


@dataclass(frozen=True, slots=True)
class FailureJob:
    """What a worker needs."""

    segment: Path
    """The file to read."""
    traces: tuple[Asked, ...]
    """The traces, in the order of their places."""
    conditions: Conditions
    """By which they are routed."""
    spool: Path | None
    """Where the names of the files begin to which rows are written; None to write none."""


class Kind(NamedTuple):
    """What traces have in common that are counted together."""

    log: str
    condition: str
    side: str
    destination: str
    file: str | None
    """The file with a row for each; None when there is none."""


@dataclass(slots=True)
class FailureResult:
    """What a worker hands back, and what such results are together."""

    routed: Counter[Kind] = field(default_factory=Counter)
    """How many traces of each kind."""
    clusters: dict[str, Clusters] = field(default_factory=dict)
    """By log: every trace that was routed as a run, and those with a row in `failures.jsonl` as failures."""
    evidence: dict[str, Counter[str]] = field(default_factory=dict)
    """By log: rows by how well it is known that its harness made their traces."""
    spools: dict[tuple[str, str], list[Path]] = field(default_factory=dict)
    """By log and file: files with rows, those of each sorted by the traces' ids."""

    def add(self, other: FailureResult) -> None:
        """Take in what was counted of other traces."""
        self.routed.update(other.routed)
        for log, clusters in other.clusters.items():
            self.clusters.setdefault(log, Clusters()).take(clusters)
        for log, evidence in other.evidence.items():
            self.evidence.setdefault(log, Counter()).update(evidence)
        for place, paths in other.spools.items():
            self.spools.setdefault(place, []).extend(paths)


@dataclass(frozen=True, slots=True)
class Spooled:
    """An example on its way."""

    spool: Path
    """The file it is in."""
    offset: int
    """Byte offset in it."""
    length: int
    """Its bytes, line feed included."""


def work(job: FailureJob) -> FailureResult:
    """Route the traces of one job.

    Raises:
        IntegrityError: when a stored trace is damaged, or is not what its id, or the catalogue, says.
        OSError: when rows cannot be written.
    """
    result = FailureResult()
    rows: dict[tuple[str, str], list[bytes]] = {}
    for asked, line in lines_of(job):
        routing = route(line, job.conditions)
        file = None if line["outcome"]["status"] == "success" else FILES[routing.destination]
        result.routed[Kind(asked.log, routing.condition, routing.side, routing.destination, file)] += 1
        clusters = result.clusters.setdefault(asked.log, Clusters())
        clusters.ran(asked.counted)
        if file is None:
            continue
        result.evidence.setdefault(asked.log, Counter())[asked.evidence] += 1
        name = None
        if file == FAILURES:
            seen = incident(asked.trace, asked.counted, line, routing)
            name = cluster_id(seen.fingerprint, seen.tool, seen.masked)
            clusters.add(seen)
        if job.spool is not None:
            value = row(asked.trace, line, asked.fingerprint, routing, name)
            written = to_json({**value, "model": _model(line["run"]), "evidence": asked.evidence})
            rows.setdefault((asked.log, file), []).append(written)
    for number, (place, lines) in enumerate(rows.items()):
        assert job.spool is not None
        target = job.spool.with_name(f"{job.spool.name}-{number}")
        # every row begins with its format and its trace, so the bytes sort by id
        target.write_bytes(b"".join(sorted(lines)))
        result.spools[place] = [target]
    return result


def examples(job: FailureJob) -> dict[str, Spooled]:
    """Write the traces of one job as examples of their clusters; return where each is, by trace id.

    Raises:
        IntegrityError: when a stored trace is damaged, or is not what its id, or the catalogue, says.
        OSError: when they cannot be written.
    """
    assert job.spool is not None
    found = {}
    with job.spool.open("wb") as spool:
        for asked, line in lines_of(job):
            data = to_json(example(asked.trace, line, route(line, job.conditions)))
            found[asked.trace] = Spooled(job.spool, spool.tell(), len(data))
            spool.write(data)
    return found


def routed(job: FailureJob) -> list[tuple[Asked, dict[str, Any], Routing]]:
    """Return the traces of a small job, each with its line as it stands now, and where it goes."""
    return [(asked, line, route(line, job.conditions)) for asked, line in lines_of(job)]


def _model(run: Mapping[str, Any]) -> str | None:
    """Return the model of a run, `NAME` or `NAME@REVISION`; None when nobody names one."""
    model = run.get("model") or {}
    return model_label(model.get("name"), model.get("revision"))


def lines_of(job: FailureJob) -> Iterator[tuple[Asked, dict[str, Any]]]:
    """Yield the traces of a job with their lines, parsed, run and outcome as they stand now."""
    lines = read_lines(job.segment, (asked.location for asked in job.traces))
    for asked, line in zip(job.traces, lines, strict=True):
        require_same(line, asked.trace, asked.head)
        trajectory = digest.load_canonical(trajectory_of(line, asked.trace))
        yield asked, {**head_of(line), **(asked.said or {}), "trajectory": trajectory}
