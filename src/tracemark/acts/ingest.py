"""`ingest`: foreign bytes to stored traces.

The source is cut into jobs that depend on nothing but the source, workers read, stamp and pack them, and this process,
the only one that sees the store, sorts out what is known and commits the rest, one segment after the other. A run that
dies has stored whole segments; running it again stores what is missing and counts the rest as duplicates.

Invariants:
- a harness is stored whole before the first trace that names it, also where the content says that it was another one:
  what was refuted can be shown for ever;
- what disputes a trace is stored before the trace, so no crash leaves a contested trace that counts under a harness. A
  statement whose trace never came says nothing, and comes into force with its trace;
- a record that cannot be read is kept with the reason, and the rest of the batch is stored;
- a name is resolved to a fingerprint once, before anything is read;
- in a corpus that is not pulled nothing is stored unless that makes again all that dvc.lock pins, which a run on a
  scratch store tells first;
- a dry run does everything that a run does, on a scratch store behind which the real one is only read, so what it
  reports is what the run will report.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from tracemark import engine
from tracemark.acts.claims import Claims, recorded_beside
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest_job import IngestJob, JobResult, refuse, refused_in, work
from tracemark.acts.ingest_notes import Seen, rederived, unseen
from tracemark.acts.ingest_tally import Tally
from tracemark.acts.known import Known
from tracemark.acts.observed import showing_nothing
from tracemark.acts.pinned import COMPLETE, SEGMENTS, not_pinned
from tracemark.acts.settled import Settled
from tracemark.durable import make_folder
from tracemark.errors import LedgerChainError, NothingReadableError, UsageError
from tracemark.findings import Finding, Report, finding
from tracemark.harness import snapshot
from tracemark.harness.version import Harness
from tracemark.importers.base import Limits
from tracemark.importers.source import Job, plan
from tracemark.store.annotations import INGESTED, STAMPS
from tracemark.store.draft import SegmentDraft
from tracemark.store.layout import Layout
from tracemark.store.state import harness_named
from tracemark.store.store import Store

INBOX = "inbox"
"""The folder of a corpus in which runs wait to be ingested."""

_READ = ("ingested", "duplicates", "strengthened", "disputing", "reimported")


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
    """What became of a batch. The exit code is 1 when records were refused or contradict what is stated for them.

    A record is what a source holds of one run: a document, a line, a journal. Each is counted in exactly one of
    `ingested`, `duplicates`, `strengthened`, `disputing`, `reimported`, `refused` and `skipped`, which add up to the
    records that were read; one that is embedded in another record is a part of that, and is counted only where its
    trace was stored by itself. The numbers do not depend on how the records are cut into files, batches and jobs.
    """

    ingested: int
    """Records that stored a trace for the first time; this and the six members that follow add up to all records."""
    duplicates: int
    """Records of known traces that say nothing new of them, or only name a harness that the content refutes."""
    strengthened: int
    """Records of known traces that say more of them."""
    disputing: int
    """Records of known traces that disagree with what is known of them."""
    reimported: int
    """Records whose trace replaces what an older importer version made of the same record."""
    refused: int
    """Records, and files, that could not be read; they are kept with the reason."""
    skipped: int
    """Recorded runs of which there is no trace: journals that are still being written, and such that ended before the
    first step, which are kept like refused ones and change no exit code."""
    contested: int
    """Traces, each once, about which statements disagree since now, be it that the record that stored one and its batch
    do."""
    contradicted: int
    """Traces, each once, that count under no harness at the end of the run, because their content disagrees with the
    one stated for them in it."""
    claims_dropped: int
    """Traces, each once, that keep their harness: another one stated now is left out, because the content disagrees
    with it, or because its name meant the harness that they have when they were stored."""
    harnesses: dict[str, int]
    """The records counted in `ingested`, `strengthened` and `reimported`, by the label of the harness under which their
    trace counted then; `-` where it is none."""
    evidence: dict[str, int]
    """The same records, by the evidence of the weakest component of their trace."""
    finding_counts: dict[str, int]
    """How many findings there were of each code; `findings` lists at most 100 of a code, and what is said of one file
    again only once."""
    dry_run: bool
    """Whether nothing was stored."""


def ingest(root: Path, sources: Sequence[Path], options: IngestOptions) -> IngestReport:
    """Read traces into the store of the corpus at `root`.

    Args:
        root: the corpus; a store is made there when there is none.
        sources: files and folders.
        options: how.

    Raises:
        NotPulledError: when files that dvc.lock pins are not on disk, and this would not make all of them again, or the
            inbox is not complete.
        NothingReadableError: when nothing in the sources could be read.
        UnknownNameError: when the format, or the harness that the caller names, is not known.
        UsageError: when a source does not exist.
    """
    corpus = Corpus(root)
    if corpus.params.ingest.inbox != COMPLETE:
        corpus.pins.require_all()
    if corpus.pins.missing_of_ingest:
        with TemporaryDirectory(prefix="tracemark-") as made:
            with suppress(NothingReadableError):
                _ingest(corpus, sources, options, Path(made))
            corpus.pins.require_made(Path(made))
    if options.dry_run:
        with TemporaryDirectory(prefix="tracemark-") as made:
            return _ingest(corpus, sources, options, Path(made))
    return _ingest(corpus, sources, options, root)


def _ingest(corpus: Corpus, sources: Sequence[Path], options: IngestOptions, target: Path) -> IngestReport:
    """Read traces into the store at `target`; where that is not the corpus's own, this one is only read."""
    tried = target != corpus.root
    limits = Limits(
        corpus.params.ingest.max_record, corpus.params.ingest.max_expanded, corpus.params.ingest.success_reward
    )
    claims = Claims(corpus, options.harness)
    planned = plan(sources, format=options.format, limits=limits)
    known = {**recorded_beside(sources, limits.max_record), **corpus.by_fingerprint}
    claims.read(planned.jobs, known)
    tally = Tally()
    with ExitStack() as stack:
        begun = Layout(corpus.root).store_file.exists()
        behind = stack.enter_context(open_store(corpus.root)) if tried and begun else None
        store = stack.enter_context(open_store(target, create=True))
        _make_folders(store.layout)
        folder = stack.enter_context(store.workspace())
        seen = Known(store, folder, known, behind)
        run = _Run(corpus, store, seen, known, tally)
        run.take(refuse(planned.refused, folder, "files"))

        def job_of(number: int, job: Job) -> IngestJob:
            return IngestJob(job, folder, f"{number:06d}", known, *claims.of(job))

        for result in engine.run(work, itertools.starmap(job_of, enumerate(planned.jobs))):
            run.take(result)
        tally.close(seen, run.decided())
        tally.note(showing_nothing(piece.format for job in planned.jobs for piece in job.pieces))
        tally.note([*planned.findings, *(behind.findings if behind is not None else ()), *store.findings])
    # what was missing and is there again is pinned
    beside = max(run.segments - corpus.pins.missing.get(SEGMENTS, 0), 0)
    tally.note(not_pinned(corpus.root, beside, tried=tried))
    return _report(corpus, tally, sources, options, known, claims)


def _make_folders(layout: Layout) -> None:
    """Make every folder that ingest may write to: a pipeline expects its outputs also where nothing was written."""
    for folder in (layout.segments, layout.harnesses, layout.refused):
        make_folder(folder)
    for kind in INGESTED:
        make_folder(layout.annotations / kind)


class _Run:
    """Takes the results of the jobs, in order, and commits them."""

    def __init__(self, corpus: Corpus, store: Store, known: Known, harnesses: dict[str, Harness], tally: Tally) -> None:
        self._corpus = corpus
        self._store = store
        self._known = known
        self._harnesses = harnesses
        self._tally = tally
        self._snapshots = set(store.layout.snapshots())
        self.segments = 0
        """How many segments have been stored that were not there."""

    def take(self, result: JobResult) -> None:
        """Commit what one job says of known traces and a second time of new ones, then these, then what it refused."""
        tally = self._tally
        # a run that never began is nothing that could not be read
        skipped = result.count["journal-empty"]
        tally.count["skipped"] += skipped
        tally.count["refused"] += result.refused - skipped
        if result.claim is not None:
            tally.seen.setdefault(result.claim, Seen()).add(result.seen.traces, result.seen.roles)
        tally.note(result.findings, result.count)
        tally.overrule(result.overruled)
        tally.refuted.add(result.contradicted, self._known.among(trace_id for trace_id, _ in result.contradicted))
        settled = self._known.settle(result)
        tally.refuted.add(settled.refuted, ())
        self._commit(settled, result.refuted)
        # what a trace inherits is known once it is stored
        tally.add(settled, self.decided() if settled.disputed or settled.reimported else {})
        tally.refuted.bound(self._known, self.decided() if tally.refuted.shown else {})
        if result.refusals is not None:
            for chunk in refused_in(result.refusals):
                self._store.commit_refused(chunk)

    def decided(self) -> Mapping[str, str | None]:
        """Return what the ledger settles of traces."""
        try:
            decisions = self._corpus.store_decisions
        except (LedgerChainError, UsageError):
            # a ledger that cannot be read, or does not verify, settles nothing; `check` says so, and runs are stored
            return {}
        return self._known.decided(decisions)

    def _commit(self, settled: Settled, refuted: Mapping[str, set[str]]) -> None:
        """Commit what became of the records of one job: what is said a second time before what is said first.

        Args:
            settled: what became of them.
            refuted: the harnesses that first statements name and the content refutes, by trace.
        """
        for kind, said in settled.annotations.items():
            for annotation in said:
                self._snapshot(harness_named(annotation["value"].get("harness") or {}))
            if said:
                self._store.commit_annotations(kind, said)
            if kind == STAMPS:
                self._tally.refuted.doubt({annotation["trace"] for annotation in said})
        for draft in settled.drafts:
            self._count(draft, settled)
            rows = [projection.row for projection in draft.projections]
            refuting = [refuted.get(row.trace_id, set()) for row in rows if row.contradicted]
            for fingerprint in {row.fingerprint for row in rows}.union(*refuting):
                self._snapshot(fingerprint)
            if self._tally.refuted.findings:
                self._tally.refuted.doubt({row.trace_id for row in rows if row.fingerprint is not None})
            self.segments += self._store.commit_segment(draft)

    def _count(self, draft: SegmentDraft, settled: Settled) -> None:
        for projection in draft.projections:
            row = projection.row
            stated = (row.harness or row.fingerprint) if row.fingerprint else "-", row.evidence
            label, evidence = settled.standing.get(row.trace_id, stated)
            self._tally.harnesses[label] += 1
            self._tally.evidence[evidence] += 1

    def _snapshot(self, fingerprint: str | None) -> None:
        # one that is stored stays as it is, whatever its label is now; and a trace may name one that nobody knows here
        if fingerprint in self._harnesses and fingerprint not in self._snapshots:
            self._store.commit_harness(fingerprint, snapshot.write(self._harnesses[fingerprint]))
            self._snapshots.add(fingerprint)


def _closing(tally: Tally, known: Mapping[str, Harness]) -> list[Finding]:
    """Return what can be said only when all traces have been seen."""
    found = rederived(tally.count["rederived"])
    return [*found, *(one for fingerprint, seen in tally.seen.items() for one in unseen(known[fingerprint], seen))]


def _report(
    corpus: Corpus,
    tally: Tally,
    sources: Sequence[Path],
    options: IngestOptions,
    known: Mapping[str, Harness],
    claims: Claims,
) -> IngestReport:
    count = tally.count
    count["skipped"] += tally.codes["journal-open"]
    tally.note(_closing(tally, known))
    if not any(count[name] for name in _READ) and not count["skipped"]:
        if tally.findings or any(source.resolve() != (corpus.root / INBOX).resolve() for source in sources):
            _refuse_all(tally, sources)
        # the pipeline of a new corpus begins with an empty inbox, and that is no failure
        tally.note([finding("inbox-empty", INBOX, "there is no run in it yet")])
    tally.note([*claims.findings, *corpus.left_out()])
    return IngestReport(
        findings=tuple(tally.findings),
        **{name: count[name] for name in (*_READ, "refused", "skipped", "contradicted", "claims_dropped")},
        contested=len(tally.contested),
        harnesses=dict(sorted(tally.harnesses.items())),
        evidence=dict(sorted(tally.evidence.items())),
        finding_counts=dict(sorted(tally.codes.items())),
        dry_run=options.dry_run,
    )


def _refuse_all(tally: Tally, sources: Sequence[Path]) -> NoReturn:
    named = ", ".join(source.name or str(source) for source in sources)
    refused = tally.count["refused"]
    if not tally.findings:
        raise NothingReadableError(
            f"nothing in {named} could be read: there is nothing in it", hint="name a file or folder that holds traces"
        )
    first = tally.findings[0]
    others = f" ({refused} records were refused; this is the first)" if refused > 1 else ""
    raise NothingReadableError(
        f"nothing in {named} could be read: {first.message}{others}", where=first.where, hint=first.hint
    )
