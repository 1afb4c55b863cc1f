"""`check` and `reindex`: is the corpus what it says it is, and making its catalogue again.

`check` changes nothing. What it proves is in its report, so that silence is not mistaken for proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.equivalence import derived_again
from tracemark.acts.evaluation_set import attempts_changed, broken_evidence, changed
from tracemark.acts.failure_terms import conditions_of
from tracemark.acts.gate_evidence import evidence_held
from tracemark.acts.harnesses import accepted_apart, declared, twice
from tracemark.acts.leaks import leaks_shown
from tracemark.acts.pinned import unpinned
from tracemark.acts.pulled import not_pulled
from tracemark.acts.witnesses import witness_of
from tracemark.digest import JSON
from tracemark.errors import NotPulledError, ParamsError
from tracemark.exporters.evaluation import unmatched
from tracemark.findings import Finding, Report, finding
from tracemark.harness import check as checks
from tracemark.harness import snapshot
from tracemark.ledger import chain, params
from tracemark.ledger.pair import HALVES
from tracemark.store.catalogue import CatalogueError, is_damage
from tracemark.store.check import check as check_store
from tracemark.store.disputes import check_decisions, check_disputes, stored_tasks
from tracemark.store.layout import Layout
from tracemark.store.searched import chosen, searches_everything
from tracemark.store.store import Store


@dataclass(frozen=True)
class CheckReport(Report):
    """What was checked, and what is wrong."""

    traces: int
    """Stored traces read, each once however many copies of it are stored."""
    annotations: int
    """Annotations read."""
    harnesses: int
    """Snapshots read."""
    decisions: int
    """Ledger entries read; 0 when the ledger does not verify."""
    proved: tuple[str, ...]
    """What was derived again, one sentence each: of how many, and for how many it holds."""


@dataclass(frozen=True)
class ReindexReport(Report):
    """What the new catalogue holds."""

    traces: int
    """Traces."""
    segments: int
    """Segments."""
    everything: bool
    """Whether `traces find` searches whole traces now."""


def check(root: Path) -> CheckReport:
    """Derive again whatever can be derived: store, snapshots, ledger, params.yaml, harness versions, dvc.lock.

    Raises:
        NoStoreError: when there is no store.
        NewerFormatError: when a newer tracemark wrote the store.
    """
    # what is known of harnesses before traces are read; all else is judged by what is known after
    witness = witness_of(Corpus(root).harnesses)
    stored = check_store(Layout(root), _fingerprint_of, witness)
    problems = chain.verify(root / chain.NAME)
    proved = [*stored.proved]
    findings: list[Finding] = [*stored.findings, *problems]
    corpus = Corpus(root)
    decisions = 0
    if not problems:
        decisions = len(corpus.chain.entries)
        proved.append(
            f"ledger entries that are what was written, and whose parents are there: {decisions} of {decisions}"
        )
        findings += corpus.decisions.conflicts
        equivalences = derived_again(corpus)
        findings += equivalences.findings
        proved += equivalences.proved
        held = evidence_held(corpus)
        findings += held.findings
        proved += held.proved
        lists, kept = broken_evidence(corpus)
        findings += lists
        proved += kept
        findings += _further(findings, check_decisions(Layout(root), corpus.store_decisions))
        findings += _further(findings, check_disputes(Layout(root), corpus.store_decisions))
    findings += _params(corpus, decided=not problems)
    findings += _further(findings, _evaluation(corpus, decided=not problems))
    findings += _further(findings, corpus.harness_findings)
    findings += [*twice(corpus), *checks.together(corpus.harnesses, declared(corpus))]
    findings += witness.findings({harness.fingerprint: harness.name for harness in corpus.harnesses})
    findings += _apart(corpus)
    findings += _pins(corpus)
    counts = stored.counts
    return CheckReport(
        tuple(findings), counts["traces"], counts["annotations"], counts["harnesses"], decisions, tuple(proved)
    )


def reindex(root: Path, text: bool | None = None) -> ReindexReport:
    """Make the catalogue again from the stored files.

    Args:
        root: the corpus.
        text: whether `traces find` shall search whole traces from now on; None for what it does now.

    Raises:
        NoStoreError: when there is no store.
        LockedError: when another process is making the catalogue equal to the folder.
    """
    with open_store(root) as store:
        everything = _everything(store) if text is None else text
        store.reindex(everything=everything)
        counts = store.counts()
        findings = (*not_pulled(Corpus(root)), *store.findings)
        return ReindexReport(findings, counts["traces"], counts["segments"], everything)


def _everything(store: Store) -> bool:
    try:
        return searches_everything(store.catalogue)
    except CatalogueError as error:
        if not is_damage(error):
            raise
        # the catalogue must be made again all the same
        return chosen(store.layout)


def _further(known: Sequence[Finding], found: Sequence[Finding]) -> list[Finding]:
    """Return those of `found` that say something that `known` does not: each opens the catalogue for itself."""
    said = {(one.code, one.where) for one in known}
    return [one for one in found if (one.code, one.where) not in said]


def _fingerprint_of(value: JSON) -> str:
    return snapshot.read(value).fingerprint


def _params(corpus: Corpus, *, decided: bool) -> list[Finding]:
    """Return what is wrong with params.yaml; what the ledger says is held against it only when that is `decided`."""
    try:
        found: list[Finding] = []
        if decided:
            for half in HALVES:
                found += params.accepted_findings(corpus.params, corpus.decisions, half)
        accepted = corpus.accepted
    except ParamsError as error:
        return [finding("params-unusable", error.where or params.NAME, error.message, error.hint)]
    if accepted is not None and accepted not in corpus.by_fingerprint:
        message = f"no harness version and no snapshot has the accepted fingerprint {accepted}"
        found.append(finding("accepted-unknown", f"{params.NAME}: accepted.harness", message))
    try:
        conditions_of(corpus)
    except ParamsError as error:
        found.append(finding("params-unusable", error.where or params.NAME, error.message, error.hint))
    return found


def _evaluation(corpus: Corpus, *, decided: bool) -> list[Finding]:
    """Return what is wrong with the evaluation set; it is held against the frozen one when the ledger is `decided`."""
    try:
        read = corpus.params
    except ParamsError:
        # what is wrong with params.yaml is a finding already
        return []
    tasks, findings = stored_tasks(Layout(corpus.root))
    apart = [*changed(corpus), *attempts_changed(corpus)] if decided else []
    apart += leaks_shown(corpus)
    return [*findings, *apart, *unmatched(read.evaluation, tasks, read.evaluation_file)]


def _apart(corpus: Corpus) -> list[Finding]:
    try:
        return accepted_apart(corpus)
    except ParamsError:
        # what is wrong with params.yaml is a finding already
        return []


def _pins(corpus: Corpus) -> list[Finding]:
    try:
        unknown = corpus.pins.unpinned_segments
    except NotPulledError:
        unknown = None
    return [*not_pulled(corpus), *([unpinned(unknown)] if unknown else [])]
