"""The strict filter: which traces a training set may hold, and for each other one the first reason why not.

Invariants:
- every trace counts exactly once, as one that passed or under its first reason in the order of `Reason`; with the
  superseded traces, for which others stand, they are all that is stored;
- of a trace that is left out, nothing is kept but the count; of a recorded success of the accepted harness also why;
- whether a trace passes up to `tool-calls` depends on that trace alone, not on others nor on its place in the store;
- what costs work (whether other known harnesses fit, whether the content makes a row) is asked for at most once, and
  only of a trace that no earlier reason has excluded.

Two unknown tasks are not the same task, so a trace without one is limited by no other; and as nobody can tell whether
it is an evaluation task, it is left out (`evaluation-task`) as soon as there is an evaluation set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import compress
from typing import Any, NamedTuple

from tracemark.exporters.evaluation import for_evaluation, qualified
from tracemark.ledger.params import Caps, Policy
from tracemark.store.row import TraceRow
from tracemark.store.selection import State
from tracemark.store.state import of_harness


class Reason(StrEnum):
    """Why a trace is left out, in the order in which the reasons are looked for."""

    RETRACTED = "retracted"
    """The ledger bars the trace or its raw record."""
    CONTESTED = "contested"
    """Two statements about it disagree and nobody has settled them."""
    MIXED = "mixed"
    """More than one harness was at work."""
    NO_FINGERPRINT = "no-fingerprint"
    """No harness is known to have made it."""
    OTHER_HARNESS = "other-harness"
    """Another harness than the accepted one, or one declared equivalent, made it."""
    OTHER_MODEL = "other-model"
    """`export.models` names models, and its model is not among them."""
    EVIDENCE = "evidence"
    """Its harness is not known as well as the policy wants."""
    OUTCOME = "outcome"
    """It is no recorded success."""
    EVALUATION_TASK = "evaluation-task"
    """Its task is one of the evaluation set, or is unknown while there is such a set."""
    NOT_TRAINABLE = "not-trainable"
    """It makes no row that a model could learn from; the detail says why."""
    TOOL_CALLS = "tool-calls"
    """It has fewer or more tool calls than the limits allow."""
    PER_TASK = "per-task"
    """Other traces of its task were taken."""
    TOTAL = "total"
    """Enough others were taken."""


_MISSED = frozenset({Reason.CONTESTED, Reason.OTHER_MODEL, Reason.EVIDENCE, Reason.NOT_TRAINABLE, Reason.TOOL_CALLS})
"""Why a success may be missing in the training set."""


class Facts(NamedTuple):
    """What the filter and a row's columns must know of one trace, as it stands now. None means that nobody says."""

    id: str
    """The trace's id, 64 hexadecimal digits."""
    fingerprint: str | None
    """Its harness."""
    status: str
    """`success`, `failure`, `error` or `unknown`."""
    tool_calls: int
    """How many tool calls the agent made."""
    evidence: str = "unrecorded"
    """Evidence of the weakest component."""
    corroborated: int = 0
    """How many parts are corroborated or better."""
    task: str | None = None
    """Its task."""
    domain: str | None = None
    """The domain of its task."""
    model: str | None = None
    """Its model, `NAME` or `NAME@REVISION`."""
    grader: str | None = None
    """Who judged the outcome."""
    retracted: bool = False
    """Whether the ledger bars it."""
    contested: bool = False
    """Whether statements about it disagree."""
    mixed: bool = False
    """Whether more than one harness was at work."""
    disputed: tuple[str, ...] = ()
    """What they disagree about, as far as nobody has decided."""
    untrainable: str | None = None
    """Why it can be no row, as far as the catalogue knows; None when only the content can say."""


def facts(state: State) -> Facts:
    """Return what the filter must know of a trace in `state`."""
    row = state.row
    return Facts(
        id=row.trace_id,
        fingerprint=row.fingerprint,
        status=row.status,
        tool_calls=row.tool_calls,
        evidence=row.evidence,
        corroborated=row.corroborated,
        task=row.task,
        domain=row.domain,
        model=row.model_label,
        grader=row.grader,
        retracted=state.retracted,
        contested=state.contested,
        disputed=state.conflicts,
        mixed=row.mixed,
        untrainable=_untrainable(row),
    )


def _untrainable(row: TraceRow) -> str | None:
    """Return why the catalogue knows that a trace makes no row; None when it does not."""
    if row.role is not None:
        return row.role
    details = ("demonstration", "rendered", "copied-context", "without-model-call")
    holds = (row.demonstration, row.rendered, row.copied, row.uncalled)
    return next(compress(details, holds), None)


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms traces are taken."""

    accepted: frozenset[str]
    """The accepted fingerprint and its declared equivalents; empty takes nothing."""
    policy: Policy = Policy.UNIQUE
    """How well a trace's harness must be known."""
    incomplete: frozenset[str] = frozenset()
    """Fingerprints with a `closure-incomplete` finding; under `recorded` their traces count as claimed."""
    models: frozenset[str] = frozenset()
    """Models whose traces count, `NAME` or `NAME@REVISION`; empty means every model, the unknown one too."""
    evaluation: frozenset[str] = frozenset()
    """Tasks of the evaluation set, `TASK` or `DOMAIN/TASK`."""
    caps: Caps = field(default_factory=Caps)
    """Limits of number and length."""


class Verdict(NamedTuple):
    """What the filter says of one trace by itself."""

    reason: Reason | None
    """The first reason to leave it out; None when it passed all reasons up to `tool-calls`."""
    detail: str | None = None
    """What is not trainable about it; None for every other reason."""
    alone: bool = False
    """Whether it would be a row but for the reason, as far as the catalogue knows."""
    fitting: frozenset[str] = frozenset()
    """For `evidence`: known harnesses, of which none is accepted or declared equivalent, that fit its content."""


class Missed(NamedTuple):
    """A success that one of the reasons after `other-harness`, or that it is contested, leaves out."""

    id: str
    """The trace's id."""
    task: str | None
    """Its task, as `DOMAIN/TASK` where the domain is known."""
    reason: Reason
    """The first reason to leave it out."""
    alone: bool
    """Whether it would be a row but for that, limits of number aside; see `Verdict`."""
    fitting: frozenset[str]
    """Which other harnesses fit it; see `Verdict`."""


class Passed(NamedTuple):
    """A trace that no reason up to `tool-calls` leaves out."""

    id: str
    """The trace's id."""
    task: str | None
    """Its task, as `DOMAIN/TASK` where the domain is known."""
    model: str | None
    """Its model."""
    grader: str | None
    """Who judged it."""


@dataclass(slots=True)
class Judged:
    """Traces that were judged: those that passed, and counts of the others."""

    passed: list[Passed] = field(default_factory=list)
    """In any order."""
    excluded: Counter[Reason] = field(default_factory=Counter)
    """The others by their first reason."""
    details: Counter[str] = field(default_factory=Counter)
    """The detail of `not-trainable`, counted."""
    missed: list[Missed] = field(default_factory=list)
    """Successes among the excluded that nothing before `other-model` leaves out, or that are contested. Those of
    evaluation tasks are there as well where another reason comes first."""
    settleable: int = 0
    """Those of the excluded of which nothing but the harness is contested."""
    superseded: int = 0
    """Traces that were not looked at, since others stand for them."""

    def note(self, known: Facts, verdict: Verdict, count: int = 1) -> None:
        """Take in what was said of a trace, or of `count` traces of which none passed."""
        if verdict.reason is None:
            self.passed.append(Passed(known.id, qualified(known.task, known.domain), known.model, known.grader))
            return
        self.excluded[verdict.reason] += count
        if known.status == "success" and verdict.reason in _MISSED:
            task = qualified(known.task, known.domain)
            self.missed.append(Missed(known.id, task, verdict.reason, verdict.alone, verdict.fitting))
        if verdict.reason is Reason.CONTESTED and all(map(of_harness, known.disputed)):
            self.settleable += count
        if verdict.detail is not None:
            self.details[verdict.detail] += count

    def add(self, other: Judged) -> None:
        """Take in what was said of other traces."""
        self.passed += other.passed
        self.excluded.update(other.excluded)
        self.details.update(other.details)
        self.missed += other.missed
        self.settleable += other.settleable
        self.superseded += other.superseded


class ContentNeededError(Exception):
    """What the catalogue knows of a trace does not decide."""


def unread() -> Any:
    """Stand in for what only the content of a trace can say, where it has not been read."""
    raise ContentNeededError


def judge(
    known: Facts,
    terms: Terms,
    fits: Callable[[], Collection[str]] = unread,
    untrainable: Callable[[], str | None] = unread,
) -> Verdict:
    """Return what the filter says of one trace by itself.

    Args:
        known: the trace.
        terms: the terms of the export.
        fits: gives the known fingerprints that the content does not exclude; asked under policy `unique` only.
        untrainable: gives the reason why the content makes no row, None when it makes one.

    Raises:
        ContentNeededError: when the content must be asked, and `unread` stands in for it.
    """
    reason, fitting = _by_identity(known, terms), frozenset[str]()
    if reason is None and terms.policy is not Policy.CLAIMED:
        reason, fitting = _by_evidence(known, terms, fits)
    if reason is None:
        reason = _by_outcome(known, terms)
    if reason is not None:
        return Verdict(reason, alone=_alone(known, terms, reason), fitting=fitting)
    detail = known.untrainable or untrainable()
    within = _within(known.tool_calls, terms.caps.tool_calls)
    if detail is not None:
        return Verdict(Reason.NOT_TRAINABLE, detail, alone=within)
    return Verdict(None) if within else Verdict(Reason.TOOL_CALLS, alone=True)


def rests_on_fits(known: Facts, terms: Terms) -> bool:
    """Return whether a trace that passes does so because no other known harness fits its content."""
    return terms.policy is Policy.UNIQUE and known.evidence != "recorded"


def _by_identity(known: Facts, terms: Terms) -> Reason | None:
    """Return the first of the reasons before `evidence`; None when there is none."""
    reasons = (Reason.RETRACTED, Reason.CONTESTED, Reason.MIXED, Reason.NO_FINGERPRINT, Reason.OTHER_HARNESS)
    holds = (
        known.retracted,
        known.contested,
        known.mixed,
        known.fingerprint is None,
        known.fingerprint not in terms.accepted,
    )
    if any(holds):
        return next(compress(reasons, holds))
    return None if of_models(known.model, terms.models) else Reason.OTHER_MODEL


def _by_outcome(known: Facts, terms: Terms) -> Reason | None:
    """Return the first of the reasons between `evidence` and `not-trainable`; None when there is none."""
    if known.status != "success":
        return Reason.OUTCOME
    held_out = for_evaluation(known.task, known.domain, terms.evaluation)
    return Reason.EVALUATION_TASK if held_out else None


def _by_evidence(
    known: Facts, terms: Terms, fits: Callable[[], Collection[str]]
) -> tuple[Reason | None, frozenset[str]]:
    """Return `evidence` where a trace's harness is not known as the policy wants, and which others fit the trace."""
    if terms.policy is Policy.RECORDED:
        whole = known.evidence == "recorded" and known.fingerprint not in terms.incomplete
        return None if whole else Reason.EVIDENCE, frozenset()
    if not rests_on_fits(known, terms):
        return None, frozenset()
    if not known.corroborated:
        return Reason.EVIDENCE, frozenset()
    found = fits()
    others = frozenset(found) - terms.accepted
    return None if not others and known.fingerprint in found else Reason.EVIDENCE, others


def _alone(known: Facts, terms: Terms, reason: Reason) -> bool:
    """Return whether nothing but a reason up to `evidence` is known to leave a trace out."""
    if reason is Reason.CONTESTED:
        # a stamp settles whose it is, and nothing settles what else is contested
        left_out = not all(map(of_harness, known.disputed)) or known.mixed
    else:
        left_out = reason not in (Reason.OTHER_MODEL, Reason.EVIDENCE)
    if left_out or (reason is not Reason.OTHER_MODEL and not of_models(known.model, terms.models)):
        return False
    return (
        _by_outcome(known, terms) is None and not known.untrainable and _within(known.tool_calls, terms.caps.tool_calls)
    )


def of_models(model: str | None, wanted: frozenset[str]) -> bool:
    """Return whether a model, `NAME` or `NAME@REVISION`, is one of those wanted; of none wanted, every one is.

    A name without a revision means every revision.
    """
    return not wanted or (model is not None and (model in wanted or model.rpartition("@")[0] in wanted))


def _within(count: int, limits: tuple[int, int] | None) -> bool:
    return limits is None or limits[0] <= count <= limits[1]
