"""Which traces are routed and under which harness their failures count; the others are counted by their first reason.

Invariants:
- a task of the evaluation set is never routed, and neither is a trace whose task nobody knows while there is such a
  set: what the log tells, the harness is changed by, and is no measure of the change any more;
- failures of harnesses that were declared equivalent to the accepted one count as its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import Corpus
from tracemark.acts.failure_job import Asked, FailureJob
from tracemark.durable import read_regular, why_unread
from tracemark.errors import IrregularFileError, ParamsError
from tracemark.exporters.evaluation import for_evaluation
from tracemark.exporters.head import head_in
from tracemark.failures.conditions import Conditions, conditions
from tracemark.ledger.pair import rejections
from tracemark.ledger.params import NAME
from tracemark.store.selection import Batch, State
from tracemark.store.state import join
from tracemark.store.store import Store

ALL = ""
"""The log to which every trace belongs where they are not told apart by harness."""


class Left(StrEnum):
    """Why a trace is not routed, in the order in which the reasons are looked for."""

    RETRACTED = "retracted"
    """The ledger bars the trace or its raw record."""
    CONTESTED = "contested"
    """Two statements about it disagree and nobody has settled them."""
    MIXED = "mixed"
    """More than one harness was at work."""
    NO_FINGERPRINT = "no-fingerprint"
    """No harness is known to have made it."""
    OTHER_HARNESS = "other-harness"
    """Its harness is not one of those whose failures are asked for."""
    EVALUATION_TASK = "evaluation-task"
    """Its task is one of the evaluation set, or is unknown while there is such a set."""


def conditions_of(corpus: Corpus) -> Conditions:
    """Return the conditions by which the traces of a corpus are routed: the shipped ones, and its own beside them.

    Raises:
        ParamsError: when the file that params.yaml names cannot be read or used.
    """
    own = corpus.params.failures.conditions
    if own is None:
        return conditions()
    try:
        text = read_regular(corpus.root / own).decode("utf-8")
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error, missing="write it, name another file of the corpus, or put null there")
        where = f"{NAME}: failures.conditions"
        raise ParamsError(f"{own} cannot be read: {reason}", where=where, hint=hint) from None
    except UnicodeDecodeError as error:
        raise ParamsError(f"not UTF-8 at byte {error.start}", where=str(own), hint="save it as UTF-8") from None
    return conditions(text, str(own))


def rejected(corpus: Corpus) -> list[str]:
    """Return the fingerprints of the harness candidates that gates rejected and nobody accepted since, sorted."""
    subjects = (entry.decision.subject for entry in rejections(corpus.chain))
    return sorted({str(subject["candidate"]) for subject in subjects if subject["half"] == "harness"})


def logs_of(corpus: Corpus) -> dict[str, str]:
    """Return for each fingerprint whose failures are exported the harness in whose log they are.

    They are the accepted harness and its equivalents, and the rejected candidates, each with its own equivalents; what
    counts as the accepted harness is in its log alone, and what counts as one candidate with another in that of the
    first.
    """
    accepted = corpus.accepted or ""
    logs = dict.fromkeys(sorted(corpus.equivalents()), accepted)
    for candidate in rejected(corpus):
        for fingerprint in sorted(corpus.decisions.equivalent_to(candidate)):
            logs.setdefault(fingerprint, candidate)
    return logs


class Asking:
    """Traces on their way to the workers, and counts of those that are left out.

    Args:
        corpus: the corpus.
        store: its store.
        logs: the log of each fingerprint whose traces are wanted; None wants every trace, in one log.
    """

    def __init__(self, corpus: Corpus, store: Store, logs: Mapping[str, str] | None = None) -> None:
        self.left: Counter[Left] = Counter()
        """Traces that are not routed, by their first reason."""
        self.superseded = 0
        """Traces for which others stand."""
        self.restated: set[str] = set()
        """Ids of those of the others of which more is said than their line says."""
        self.conditions = conditions_of(corpus)
        """By which they are routed."""
        self.logs = logs
        """The log of each fingerprint whose traces are wanted; None when every trace is."""
        self._store = store
        self._evaluation = corpus.params.evaluation
        # a cluster has the same id wherever it is told of
        self._same = logs_of(corpus) if logs is None else logs

    def counted(self, fingerprint: str | None) -> str | None:
        """Return the harness under which failures of a harness are counted."""
        return self._same.get(fingerprint or "", fingerprint)

    def reason(self, state: State) -> Left | None:
        """Return the first reason not to route a trace; None when there is none."""
        row = state.row
        if state.retracted or state.contested or row.mixed:
            return Left.RETRACTED if state.retracted else Left.CONTESTED if state.contested else Left.MIXED
        if (by_harness := self.unwanted(row.fingerprint)) is not None:
            return by_harness
        # a task without a name is one that nobody knows
        held_out = for_evaluation(row.task, row.domain, self._evaluation)
        return Left.EVALUATION_TASK if held_out else None

    def unwanted(self, fingerprint: str | None) -> Left | None:
        """Return the reason not to route traces of a harness; None when they are wanted."""
        if self.logs is None or fingerprint in self.logs:
            return None
        return Left.NO_FINGERPRINT if fingerprint is None else Left.OTHER_HARNESS

    def jobs(self, batches: Iterable[Batch], spools: Path | None = None) -> Iterator[FailureJob]:
        """Yield a job for each segment that holds a trace to be routed; what is left out is counted.

        Args:
            batches: traces as they stand.
            spools: the folder in which workers write rows; None when they are to write none.
        """
        for number, batch in enumerate(batches):
            states = [state for state in batch.states if self._routes(state)]
            if states:
                spool = None if spools is None else spools / f"rows-{number:06d}"
                yield FailureJob(batch.path, tuple(self.asked(states)), self.conditions, spool)

    def asked(self, states: Iterable[State]) -> Iterator[Asked]:
        """Yield what a worker must know of traces, whatever would leave them out."""
        states = list(states)
        restated = {state.trace_id for state in states if state.restated}
        changed = restated | self._store.annotated([state.trace_id for state in states])
        self.restated |= restated
        said = self._store.statements(changed) if changed else {}
        for state in states:
            trace, fingerprint = state.trace_id, state.row.fingerprint
            now: dict[str, Any] | None = None
            if trace in said:
                joined = join(said[trace])
                now = {"run": joined.run, "outcome": joined.outcome}
            counted = self.counted(fingerprint)
            log = ALL if self.logs is None else counted or ALL
            evidence = state.row.evidence
            yield Asked(trace, state.location, log, counted, fingerprint, evidence, head_in(state), now)

    def _routes(self, state: State) -> bool:
        if state.superseded_by:
            self.superseded += 1
            return False
        reason = self.reason(state)
        if reason is not None:
            self.left[reason] += 1
        return reason is None
