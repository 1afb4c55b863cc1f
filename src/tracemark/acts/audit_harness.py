"""The audit of a harness: its traces, successes, exports and decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.export import KIND
from tracemark.acts.harnesses import placed
from tracemark.acts.history import decided, exported
from tracemark.acts.pulled import not_pulled
from tracemark.findings import Report
from tracemark.harness.version import Harness
from tracemark.store.selection import Selection


@dataclass(frozen=True)
class HarnessAudit(Report):
    """What the corpus holds of one harness."""

    name: str
    """Its label."""
    fingerprint: str
    """Its fingerprint."""
    accepted: bool
    """Whether it is the accepted one or declared equivalent to it; false while it is open which one is accepted."""
    traces: int
    """Traces that count under it."""
    successes: int
    """Recorded successes among them."""
    statuses: dict[str, int]
    """Traces by status."""
    evidence: dict[str, int]
    """Traces by the evidence of their weakest component."""
    exports: list[dict[str, Any]]
    """Exports of it: `manifest` (digest), `policy`, `rows` (their number)."""
    decisions: list[dict[str, Any]]
    """Ledger entries that name it: `kind`, `time`, `reason`, `entry` (digest)."""


def audit_harness(corpus: Corpus, harness: Harness, name: str) -> HarnessAudit:
    """Audit one harness: what the store and the ledger hold of it.

    Args:
        corpus: the corpus.
        harness: the harness.
        name: what it was called by, to which others may answer too.

    Raises:
        NoStoreError: when there is no store.
    """
    fingerprint = harness.fingerprint
    statuses: Counter[str] = Counter()
    evidence: Counter[str] = Counter()
    with open_store(corpus.root) as store:
        wanted = Selection(fingerprints=frozenset({fingerprint}))
        for state in store.select(wanted, corpus.store_decisions, store.findings):
            statuses[state.row.status] += 1
            evidence[state.row.evidence] += 1
        taken = [
            exported(note.value["value"])
            for note in store.annotations(KIND, damaged=store.findings)
            if note.value["value"]["fingerprint"] == fingerprint
        ]
        findings = tuple(store.findings)
    return HarnessAudit(
        findings=(
            *(placed(found, harness) for found in harness.findings),
            *corpus.namesakes(name, harness),
            *corpus.acceptance_findings(),
            *not_pulled(corpus),
            *findings,
            *corpus.left_out(),
        ),
        name=harness.name,
        fingerprint=fingerprint,
        accepted=fingerprint in corpus.equivalents(),
        traces=statuses.total(),
        successes=statuses["success"],
        statuses=dict(sorted(statuses.items())),
        evidence=dict(sorted(evidence.items())),
        exports=taken,
        decisions=decided(corpus, lambda entry: fingerprint in _harnesses_named(entry.decision.subject)),
    )


def _harnesses_named(subject: Mapping[str, Any]) -> set[str | None]:
    judged = (one for one in (subject.get("candidate"), subject.get("incumbent")) if isinstance(one, str))
    return {subject.get("harness"), subject.get("fingerprint"), *(subject.get("fingerprints") or ()), *judged}
