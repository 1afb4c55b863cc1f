"""Which harness is claimed for the runs of a batch: the one that the caller names, else the one in its `batch.yaml`.

A name means what it means now: it leads to one fingerprint, before anything is read, and where other harnesses answer
to it as well, that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tracemark.acts.corpus import Corpus
from tracemark.errors import NotPulledError, TracemarkError, UsageError
from tracemark.findings import Finding, finding
from tracemark.harness import snapshot
from tracemark.harness.names import begins
from tracemark.harness.version import Harness
from tracemark.importers.source import Job
from tracemark.importers.tree import snapshots_beside


class Claim(NamedTuple):
    """What is claimed for the runs of one job."""

    fingerprint: str | None = None
    """Fingerprint of the harness; None when none is claimed, or nobody knows the one that is."""
    name: str | None = None
    """The name that led to it, which may mean another harness another day; None when it was named by fingerprint."""


class Claims:
    """The claims of one ingest.

    Args:
        corpus: where names are looked up.
        stated: the harness that the caller names for everything; None leaves it to each batch.

    Raises:
        UnknownNameError: when nothing answers to `stated`.
        UsageError: when several harnesses do, or the one that does cannot be read.
    """

    def __init__(self, corpus: Corpus, stated: str | None) -> None:
        self._corpus = corpus
        self.findings: list[Finding] = []
        """Names to which nothing answers, or more than one harness."""
        self._stated = None if stated is None else self._claim(stated)
        self._of_batches: dict[str, Claim] = {}

    def read(self, jobs: Iterable[Job], known: Mapping[str, Harness]) -> None:
        """Look up the harness that the batch of each job names; a name that nothing answers to is a finding.

        Args:
            jobs: all jobs that `of` will be asked about.
            known: harnesses by fingerprint, also such as the corpus does not have.
        """
        if self._stated is not None:
            return
        for job in jobs:
            name = _named_for(job)
            if name is None or name in self._of_batches:
                continue
            self._of_batches[name] = Claim()
            try:
                self._of_batches[name] = Claim(name) if name in known else self._claim(name)
            except (UsageError, NotPulledError) as error:
                place = f"{job.pieces[0].label} (batch.yaml)"
                self.findings.append(finding("batch-harness-unknown", place, error.message, error.hint))

    def of(self, job: Job) -> Claim:
        """Return what is claimed for the runs of a job."""
        if self._stated is not None:
            return self._stated
        return self._of_batches.get(_named_for(job) or "", Claim())

    def _claim(self, name: str) -> Claim:
        harness = self._corpus.resolve(name)
        self.findings += self._corpus.namesakes(name, harness)
        return Claim(harness.fingerprint, None if begins(harness.fingerprint, name) else name)


def recorded_beside(sources: Iterable[Path], limit: int) -> dict[str, Harness]:
    """Return the harnesses whose snapshots the recorder left beside its journals, by fingerprint.

    Args:
        sources: files and folders that are ingested.
        limit: how large a snapshot may be, in bytes.
    """
    found = {}
    for source in sources:
        for path in snapshots_beside(source):
            try:
                if path.is_symlink() or not path.is_file() or path.stat().st_size > limit:
                    continue
                harness = snapshot.from_bytes(path.read_bytes())
            except (OSError, TracemarkError):
                # the journals that name it then say what is wrong, each with its place
                continue
            found[harness.fingerprint] = harness
    return found


def _named_for(job: Job) -> str | None:
    """Return the harness that the batch of a job names; all pieces of a job are of one batch."""
    named: str | None = job.pieces[0].context.batch.get("harness")
    return named
