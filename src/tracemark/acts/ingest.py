"""`ingest`: foreign bytes to stored traces.

The source is cut into jobs that depend on nothing but the source, workers read, stamp and pack them, and this process,
the only one that sees the store, sorts out what is known and commits the rest, one segment after the other. A run that
dies has stored whole segments; running it again stores what is missing and counts the rest as duplicates.

Invariants:
- a harness is stored whole before the first trace that names it;
- a record that cannot be read is kept with the reason, and the rest of the batch is stored;
- a name is resolved to a fingerprint once, before anything is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tracemark import engine
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest_job import SHOWN, IngestJob, JobResult, refusals, work
from tracemark.acts.known import Known, Settled
from tracemark.acts.pinned import require_pulled
from tracemark.durable import make_folder
from tracemark.errors import NothingReadableError, TracemarkError
from tracemark.findings import Finding, Report, any_error
from tracemark.harness import snapshot
from tracemark.harness.harness import Harness
from tracemark.importers.base import Limits
from tracemark.importers.source import Plan, plan
from tracemark.store.annotations import OUTCOMES, STAMPS
from tracemark.store.layout import Layout
from tracemark.store.store import Store

SNAPSHOT_SUFFIX = ".harness.json"
"""How the name of a snapshot beside journals ends."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How to ingest."""

    format: str | None = None
    """Name of the importer; None tells the format by content."""
    harness: str | None = None
    """The harness that made the runs, as the caller claims; None leaves it to `batch.yaml` and to the records."""
    dry_run: bool = False
    """Report what would be done and store nothing."""


@dataclass(frozen=True)
class IngestReport(Report):
    """What became of a batch. The exit code is 1 when a record was refused or contradicts the harness stated for it."""

    ingested: int
    """Traces stored for the first time."""
    duplicates: int
    """Traces that were known and about which nothing new was said."""
    strengthened: int
    """Known traces about which something more is known now."""
    contested: int
    """Traces about which two statements disagree."""
    reimported: int
    """Traces that replace what an older importer version made of the same record."""
    refused: int
    """Records that could not be read; they are kept with the reason."""
    contradicted: int
    """Traces whose content disagrees with the harness stated for them; stored under no fingerprint."""
    harnesses: dict[str, int]
    """Traces stored now, by the label of the harness stated for them; `-` where none is."""
    evidence: dict[str, int]
    """Traces stored now, by the evidence of their weakest component."""
    dry_run: bool
    """Whether nothing was stored."""

    @property
    def exit_code(self) -> int:
        """Return 1 when a record was refused or a trace contradicted."""
        return int(self.refused > 0 or self.contradicted > 0 or any_error(self.findings))


@dataclass(slots=True)
class _Tally:
    """What has been counted so far; bounded, whatever the size of the batch."""

    count: Counter[str] = field(default_factory=Counter)
    harnesses: Counter[str] = field(default_factory=Counter)
    evidence: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    def note(self, findings: Sequence[Finding]) -> None:
        for found in findings:
            self.codes[found.code] += 1
            if self.codes[found.code] <= SHOWN:
                self.findings.append(found)


def ingest(root: Path, sources: Sequence[Path], options: IngestOptions) -> IngestReport:
    """Read traces into the store of the corpus at `root`.

    Args:
        root: the corpus; a store is made there when there is none.
        sources: files and folders.
        options: how.

    Raises:
        NotPulledError: when segments that dvc.lock pins are not on disk.
        NothingReadableError: when nothing in the sources could be read.
        UnknownNameError: when the format or a harness is not known.
    """
    corpus = Corpus(root)
    if corpus.params.ingest.inbox != "complete":
        require_pulled(root)
    limits = Limits(
        corpus.params.ingest.max_record, corpus.params.ingest.max_expanded, corpus.params.ingest.success_reward
    )
    claim = corpus.resolve(options.harness) if options.harness is not None else None
    planned = plan(sources, format=options.format, limits=limits)
    known = {**_beside(sources), **corpus.by_fingerprint}
    tally = _Tally()
    tally.note(planned.findings)
    with ExitStack() as stack:
        if options.dry_run:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tracemark-")))
            store = stack.enter_context(open_store(root)) if Layout(root).store_file.exists() else None
        else:
            store = stack.enter_context(open_store(root, create=True))
            _make_folders(store.layout)
            folder = stack.enter_context(store.workspace())
        run = _Run(store, Known(store, folder), known, tally, dry_run=options.dry_run)
        run.take(refusals(planned.refused))
        for result in engine.run(work, _jobs(corpus, planned, folder, known, claim)):
            run.take(result)
        tally.note(store.findings if store is not None else [])
    return _report(tally, sources, options)


def _make_folders(layout: Layout) -> None:
    """Make every folder that ingest may write to: a pipeline expects its outputs also where nothing was written."""
    for folder in (layout.segments, layout.harnesses, layout.refused):
        make_folder(folder)
    for kind in (STAMPS, OUTCOMES):
        make_folder(layout.annotations / kind)


def _beside(sources: Sequence[Path]) -> dict[str, Harness]:
    """Return the harnesses whose snapshots the recorder left beside its journals, by fingerprint."""
    found = {}
    for source in sources:
        names = source.rglob(f"*{SNAPSHOT_SUFFIX}") if source.is_dir() else source.parent.glob(f"*{SNAPSHOT_SUFFIX}")
        for path in sorted(names):
            try:
                harness = snapshot.from_bytes(path.read_bytes())
            except (OSError, TracemarkError):
                # the journals that name it then say what is wrong, each with its place
                continue
            found[harness.identity.fingerprint] = harness
    return found


def _jobs(
    corpus: Corpus, planned: Plan, folder: Path, known: dict[str, Harness], claim: Harness | None
) -> Iterator[IngestJob]:
    """Yield the jobs; the harness that a batch names is resolved once for the batch."""
    named: dict[str, str] = {}
    for number, source in enumerate(planned.jobs):
        fingerprint = claim.identity.fingerprint if claim is not None else None
        batch = source.pieces[0].context.batch.get("harness")
        if claim is None and batch is not None:
            if batch not in named:
                named[batch] = corpus.resolve(batch).identity.fingerprint
            fingerprint = named[batch]
        yield IngestJob(source, folder, f"{number:06d}", known, fingerprint)


class _Run:
    """Takes the results of the jobs, in order, and commits them."""

    def __init__(
        self, store: Store | None, known: Known, harnesses: dict[str, Harness], tally: _Tally, *, dry_run: bool
    ) -> None:
        self._store = None if dry_run else store
        self._known = known
        self._harnesses = harnesses
        self._tally = tally
        self._snapshots: set[str] = set()

    def take(self, result: JobResult) -> None:
        """Commit what is new of one job, then what it says about known traces, then what it refused."""
        tally = self._tally
        tally.count["refused"] += len(result.refused)
        tally.count["contradicted"] += result.count["stamp-contradicted"]
        tally.note(result.findings)
        for code, number in result.count.items():
            tally.codes[code] += max(0, number - SHOWN)
        for draft in result.drafts:
            settled = self._known.settle(draft)
            self._commit(settled)
        if result.second and self._store is not None:
            settled = Settled()
            for trace_id, stamp in result.second:
                self._known.contest(trace_id, stamp, settled)
            self._commit(settled)
        if result.refused and self._store is not None:
            self._store.commit_refused(result.refused)

    def _commit(self, settled: Settled) -> None:
        self._tally.count.update(settled.count)
        for draft in settled.drafts:
            for projection in draft.projections:
                self._tally.harnesses[projection.row.harness or "-"] += 1
                self._tally.evidence[projection.row.evidence] += 1
            if self._store is not None:
                for fingerprint in {projection.row.fingerprint for projection in draft.projections}:
                    self._snapshot(fingerprint)
                self._store.commit_segment(draft)
            else:
                draft.temporary.unlink(missing_ok=True)
        for kind, said in settled.annotations.items():
            if said and self._store is not None:
                for annotation in said:
                    self._snapshot(_named(annotation))
                self._store.commit_annotations(kind, said)

    def _snapshot(self, fingerprint: str | None) -> None:
        if fingerprint is None or self._store is None or fingerprint in self._snapshots:
            return
        self._store.commit_harness(fingerprint, snapshot.write(self._harnesses[fingerprint]))
        self._snapshots.add(fingerprint)


def _named(annotation: dict[str, Any]) -> str | None:
    declared = (annotation["value"].get("harness") or {}).get("declared") or {}
    fingerprint = declared.get("fingerprint")
    return str(fingerprint) if fingerprint is not None else None


def _report(tally: _Tally, sources: Sequence[Path], options: IngestOptions) -> IngestReport:
    count = tally.count
    members = ("ingested", "duplicates", "strengthened", "contested", "reimported")
    if not any(count[name] for name in members) and not tally.codes["journal-open"]:
        reason = f"{count['refused']} records were refused" if count["refused"] else "there is nothing in them"
        first = tally.findings[0] if tally.findings else None
        raise NothingReadableError(
            f"nothing in {', '.join(source.name or str(source) for source in sources)} could be read: {reason}"
            + (f"; the first: {first.where}: {first.message}" if first else ""),
            hint=first.hint if first and first.hint else "name a file or folder that holds traces",
        )
    return IngestReport(
        findings=tuple(tally.findings),
        **{name: count[name] for name in (*members, "refused", "contradicted")},
        harnesses=dict(sorted(tally.harnesses.items())),
        evidence=dict(sorted(tally.evidence.items())),
        dry_run=options.dry_run,
    )
