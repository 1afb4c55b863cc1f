"""One export job: traces of one segment, judged and rendered; runs in a worker process.

Only what the catalogue alone cannot decide comes here, and what it says of a trace is held against the trace's line
before anything is believed. The rows of all traces that pass are written to a spool file,
and the caller, who sees all segments, picks from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.agreement import RECORDED
from tracemark.acts.fitting import Fitting
from tracemark.acts.provenance import content_in
from tracemark.exporters import sft
from tracemark.exporters.agreement import Shown, shown_in
from tracemark.exporters.head import Head, require_same, require_same_conduct
from tracemark.exporters.select import ContentNeededError, Facts, Judged, Terms, Verdict, judge
from tracemark.harness.match import Matcher
from tracemark.harness.version import Harness
from tracemark.store.row import head_of, trajectory_of
from tracemark.store.segment import Location, read_lines


@dataclass(frozen=True, slots=True)
class ExportJob:
    """What a worker needs."""

    segment: Path
    """The file to read."""
    traces: tuple[tuple[Location, Facts, Head], ...]
    """The traces to judge, in the order of their places, and what their lines must say (see `exporters.head`)."""
    terms: Terms
    """The terms of the export."""
    harnesses: tuple[Harness, ...]
    """Every known harness, for the question which of them fit."""
    bound: Mapping[str, Sequence[dict[str, Any]] | None]
    """The tool definitions of each harness of the terms, by fingerprint. A row is rendered with those of the very
    harness that made its trace, be it the accepted one or one declared equivalent to it."""
    spool: Path
    """The file to write rows to."""


@dataclass(frozen=True, slots=True)
class Row:
    """A rendered row on its way."""

    spool: Path
    """The file it is in."""
    offset: int
    """Byte offset in it."""
    length: int
    """Its bytes, line feed included."""
    shown: tuple[Shown, ...] = ()
    """What its trace shows of handlers and runtime, where nobody recorded them; empty when nothing."""
    undescribed: bool = False
    """Whether it holds tool calls, and its harness binds no tool that a definition describes."""
    fingerprint: str | None = None
    """The harness under which its trace counts."""
    evidence: str = "unrecorded"
    """How well that is known."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a worker hands back."""

    judged: Judged
    """What was said of the traces."""
    rows: dict[str, Row]
    """The rows of the traces that passed, by trace id."""


def work(job: ExportJob) -> JobResult:
    """Judge and render the traces of one job.

    Raises:
        IntegrityError: when a stored trace is not what its id, or the catalogue, says.
    """
    fitting = Fitting([Matcher(harness) for harness in job.harnesses])
    judged = Judged()
    rows: dict[str, Row] = {}
    lines = read_lines(job.segment, (location for location, _, _ in job.traces))
    with job.spool.open("wb") as spool:
        for (_, known, head), line in zip(job.traces, lines, strict=True):
            require_same(line, known.id, head)
            verdict, row = _judge(line, known, job, fitting)
            judged.note(known, verdict)
            if row is not None:
                shown = () if known.evidence == RECORDED else shown_in(line)
                undescribed = bool(known.tool_calls) and not job.bound.get(known.fingerprint or "")
                place = job.spool, spool.tell(), len(row)
                rows[known.id] = Row(*place, shown, undescribed, known.fingerprint, known.evidence)
                spool.write(row)
    return JobResult(judged, rows)


def _judge(line: bytes, known: Facts, job: ExportJob, fitting: Fitting) -> tuple[Verdict, bytes | None]:
    likely = fitting.at_most(line)
    if likely is not None and job.terms.accepted.issuperset(likely):
        try:
            # of a trace that is left out for what the catalogue knows, only the first reason is asked
            return judge(known, job.terms, lambda: likely), None
        except ContentNeededError:
            pass
    trajectory = digest.load_canonical(trajectory_of(line, known.id))
    require_same_conduct(trajectory, known)
    rendered: list[sft.Rendered] = []

    def untrainable() -> str | None:
        rendered.append(sft.render(trajectory, known, job.bound.get(known.fingerprint or "")))
        return rendered[0].untrainable

    def fits() -> list[str]:
        return fitting.of(line, content_in({**head_of(line), "trajectory": trajectory}))

    verdict = judge(known, job.terms, fits, untrainable)
    return verdict, rendered[0].line if rendered and verdict.reason is None else None
