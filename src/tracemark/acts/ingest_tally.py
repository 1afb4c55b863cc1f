"""What an ingest run has counted so far.

Records are counted as they come. Traces are counted once each over the whole run, whatever the jobs and the batches in
which their records lie; so those that are disputed or refuted, which are few, are remembered by id, some hundred bytes
each. All else is bounded, whatever the size of the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from tracemark.acts.ingest_job import SHOWN
from tracemark.acts.ingest_notes import OVERRULED, Overruled, Seen, contested, dropped, inherited, overruled, refuted
from tracemark.acts.known import Known
from tracemark.acts.settled import Settled
from tracemark.acts.stamping import CONTRADICTED, TRACE_DIGITS
from tracemark.findings import Finding
from tracemark.store.state import join


@dataclass(slots=True)
class Refuted:
    """The traces of which the content refutes a harness that was stated; which of them have another is seen at the end.

    A trace that got its harness in the same run is none that was stored under none, whichever came first.
    """

    findings: dict[str, int] = field(default_factory=dict)
    """How many findings say so of each trace."""
    doubtful: set[str] = field(default_factory=set)
    """Those of which more is said, and which may count under a harness for that."""
    shown: list[tuple[str, Finding]] = field(default_factory=list)
    """The first of the findings, as far as they may be told."""

    def add(self, found: Sequence[tuple[str, Finding]], known: Collection[str]) -> None:
        """Take in what a job found, and which of its traces were stored before."""
        for trace_id, _ in found:
            self.findings[trace_id] = self.findings.get(trace_id, 0) + 1
        self.doubtful.update(known)
        self.shown += found

    def doubt(self, ids: Collection[str]) -> None:
        """Take in that something else is said of traces, refuted ones or not."""
        self.doubtful |= self.findings.keys() & set(ids)

    def bound(self, known: Known, decided: Mapping[str, str | None]) -> None:
        """Keep as many findings as are shown, of traces that count under no harness as yet."""
        if len(self.shown) > SHOWN:
            kept = known.standing({trace_id for trace_id, _ in self.shown} & self.doubtful, decided)
            self.shown = [(trace_id, found) for trace_id, found in self.shown if trace_id not in kept][:SHOWN]


@dataclass(slots=True)
class Tally:
    """What has been counted so far."""

    count: Counter[str] = field(default_factory=Counter)
    """Records by what became of them, see `Settled.count`; also `refused` and `skipped`."""
    harnesses: Counter[str] = field(default_factory=Counter)
    """Records that stored a trace or said more of it, by the label of its harness since then."""
    evidence: Counter[str] = field(default_factory=Counter)
    """The same records by the trace's evidence."""
    findings: list[Finding] = field(default_factory=list)
    """At most `SHOWN` of each code."""
    shown: Counter[str] = field(default_factory=Counter)
    """How many of each code are, or would be, among them."""
    codes: Counter[str] = field(default_factory=Counter)
    """How many there were of each code."""
    refuted: Refuted = field(default_factory=Refuted)
    contested: dict[str, bool] = field(default_factory=dict)
    """The traces about which statements disagree since now, in order; whether that is open, as no decision settles it.
    """
    disputes: dict[str, Finding] = field(default_factory=dict)
    """What is disputed of the first of them."""
    outdated: dict[str, None] = field(default_factory=dict)
    """The traces of which a claim was left out because its name meant another harness before, in order."""
    inherited: Counter[str] = field(default_factory=Counter)
    """What new traces inherit of those that they supersede: statements by kind, and `decisions`."""
    heir: str | None = None
    """The first trace that inherits anything; None as long as none does."""
    seen: dict[str, Seen] = field(default_factory=dict)
    """What the traces show for which a harness was claimed, by its fingerprint."""
    overruled: dict[tuple[str, str], Overruled] = field(default_factory=dict)
    """What batches state and records say otherwise, by member and value."""

    def note(self, findings: Sequence[Finding], counts: Mapping[str, int] | None = None) -> None:
        """Take findings in; `counts` says how many there were of each code where not all of them are given."""
        self.codes.update(Counter(found.code for found in findings) if counts is None else counts)
        for found in findings:
            self.shown[found.code] += 1
            if self.shown[found.code] <= SHOWN:
                self.findings.append(found)

    def overrule(self, found: Mapping[tuple[str, str], Overruled]) -> None:
        """Take in what the batch of a job states and its records say otherwise."""
        for key, one in found.items():
            self.overruled.setdefault(key, Overruled(one.where, one.said)).records += one.records

    def add(self, settled: Settled, decided: Mapping[str, str | None]) -> None:
        """Take in what became of the records of a job.

        Args:
            settled: what became of them.
            decided: what the ledger settles of traces; asked only where some are disputed, or supersede others.
        """
        self.count.update(settled.count)
        self.outdated |= settled.outdated
        for (label, evidence), records in settled.strengthened.items():
            self.harnesses[label] += records
            self.evidence[evidence] += records
        heirs = [trace_id for trace_id in settled.reimported if trace_id in settled.heirs or trace_id in decided]
        self.heir = next(iter(heirs), None) if self.heir is None else self.heir
        self.inherited += settled.inherited + Counter(decisions=sum(one in decided for one in heirs))
        for trace_id, said in settled.disputed.items():
            if not join(said).conflicts:
                self.contested.pop(trace_id, None)
                self.disputes.pop(trace_id, None)
                continue
            # as they are read from a store: the first, and the others by digest
            said = [said[0], *sorted(said[1:], key=attrgetter("digest"))]
            found = next(contested(trace_id, said, trace_id in decided), None)
            self.contested[trace_id] = self.contested.get(trace_id, False) or found is not None
            if found is not None and (trace_id in self.disputes or len(self.disputes) < SHOWN):
                self.disputes[trace_id] = found

    def close(self, known: Known, decided: Mapping[str, str | None]) -> None:
        """Note what can be said of single traces only when all records have been seen.

        Args:
            known: the stored traces.
            decided: what the ledger settles of them.
        """
        self.note(list(self.disputes.values()), +Counter(contested=sum(self.contested.values())))
        refuted_ids = self.refuted.findings
        kept = known.standing([one for one in refuted_ids if one in self.refuted.doubtful or one in decided], decided)
        left = [trace_id for trace_id in refuted_ids if trace_id not in kept]
        shown = [found for trace_id, found in self.refuted.shown if trace_id not in kept]
        if left and not shown:
            shown = [refuted(left[0], known.said_of(left[0]))]
        self.count["contradicted"] = len(left)
        self.note(shown, +Counter({CONTRADICTED: sum(refuted_ids[trace_id] for trace_id in left)}))
        places = [found.where for trace_id, found in self.refuted.shown if trace_id in kept]
        places += [f"trace {trace_id[:TRACE_DIGITS]}" for trace_id in sorted(kept)[:1]]
        reasons = {
            "refuted": (len(kept), next(iter(places), None)),
            "outdated": (len(self.outdated), next(iter(self.outdated), None)),
        }
        self.note([*dropped(reasons), *inherited(self.inherited, self.heir)])
        records = sum(one.records for one in self.overruled.values())
        self.note(list(overruled(self.overruled)), +Counter({OVERRULED: records}))
        self.count["claims_dropped"] = len(kept | self.outdated.keys())
