"""The strict filter: which traces a training set may hold, and for each other one the first reason why not.

Invariants:
- every trace counts exactly once, as a row or under its first reason in the order of `Reason`; the counts add up;
- whether a trace passes up to `tool-calls` depends on that trace alone; `per-task` and `total` compare those that
  passed, and the smallest id wins; so neither the order of traces nor their place in the store changes anything;
- what costs work (whether other known harnesses fit, whether the content makes a row) is asked for at most once, and
  only of a trace that no earlier reason has excluded.

Two unknown tasks are not the same task, so a trace without one is limited by no other; and as nobody can tell whether
it is an evaluation task, it is left out (`evaluation-task`) as soon as there is an evaluation set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from tracemark.errors import ExportRefusedError
from tracemark.ledger.params import Caps, Policy
from tracemark.store.selection import State

UNKNOWN = "unknown"
"""How counts name a model or a grader that nobody names."""


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


@dataclass(frozen=True, slots=True)
class Facts:
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
    untrainable: str | None = None
    """Why it can be no row, as far as the catalogue knows; None when only the content can say."""


def facts(state: State) -> Facts:
    """Return what the filter must know of a trace in `state`."""
    row = state.row
    model = f"{row.model}@{row.revision}" if row.model and row.revision else row.model
    details = {
        row.role or "": row.role is not None,
        "demonstration": row.demonstration,
        "rendered": row.rendered,
        "copied-context": row.copied,
        "without-model-call": row.uncalled,
    }
    return Facts(
        id=row.trace_id,
        fingerprint=row.fingerprint,
        status=row.status,
        tool_calls=row.tool_calls,
        evidence=row.evidence,
        corroborated=row.corroborated,
        task=row.task,
        domain=row.domain,
        model=model,
        grader=row.grader,
        retracted=state.retracted,
        contested=state.contested,
        mixed=row.mixed,
        untrainable=next((detail for detail, holds in details.items() if holds), None),
    )


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter says of one trace by itself."""

    id: str
    """The trace's id."""
    reason: Reason | None
    """The first reason to leave it out; None when it passed all reasons up to `tool-calls`."""
    detail: str | None
    """What is not trainable about it; None for every other reason."""
    task: str | None
    """Its task, as `DOMAIN/TASK` where the domain is known."""
    model: str | None
    """Its model."""
    grader: str | None
    """Who judged it."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What an export takes, and why not the rest."""

    ids: tuple[str, ...]
    """Ids of the traces taken, sorted; the order of the rows."""
    traces: int
    """How many traces were looked at; rows and excluded together."""
    excluded: Mapping[Reason, int]
    """How many were left out for each first reason; every reason is there, with 0 where it left out none."""
    not_trainable: Mapping[str, int]
    """The detail of `not-trainable`, counted; sorted by name."""
    models: Mapping[str, int]
    """Rows of each model; sorted by name."""
    graders: Mapping[str, int]
    """Rows by who judged them; sorted by name."""


def judge(
    known: Facts, terms: Terms, fits: Callable[[], Collection[str]], untrainable: Callable[[], str | None]
) -> Verdict:
    """Return what the filter says of one trace by itself.

    Args:
        known: the trace.
        terms: the terms of the export.
        fits: gives the known fingerprints that the content does not exclude; asked under policy `unique` only.
        untrainable: gives the reason why the content makes no row, None when it makes one.
    """
    reason = _by_facts(known, terms, fits)
    detail = None
    if reason is None:
        detail = known.untrainable or untrainable()
        if detail is not None:
            reason = Reason.NOT_TRAINABLE
        elif not _within(known.tool_calls, terms.caps.tool_calls):
            reason = Reason.TOOL_CALLS
    return Verdict(known.id, reason, detail, _qualified(known), known.model, known.grader)


def choose(verdicts: Iterable[Verdict], caps: Caps) -> Selected:
    """Return what an export takes of the traces that `verdicts` are about, each trace once, in any order."""
    excluded = dict.fromkeys(Reason, 0)
    details: Counter[str] = Counter()
    passed = []
    count = 0
    for verdict in verdicts:
        count += 1
        if verdict.reason is None:
            passed.append(verdict)
            continue
        excluded[verdict.reason] += 1
        if verdict.detail is not None:
            details[verdict.detail] += 1
    passed.sort(key=lambda verdict: verdict.id)
    first = _first_of_each_task(passed, caps.per_task)
    taken = first if caps.total is None else first[: caps.total]
    excluded[Reason.PER_TASK] = len(passed) - len(first)
    excluded[Reason.TOTAL] = len(first) - len(taken)
    return Selected(
        ids=tuple(verdict.id for verdict in taken),
        traces=count,
        excluded=excluded,
        not_trainable=dict(sorted(details.items())),
        models=_counted(verdict.model for verdict in taken),
        graders=_counted(verdict.grader for verdict in taken),
    )


def require_enough(selected: Selected, caps: Caps, harness: str) -> None:
    """Stop an export that would be empty or below its minimum.

    Args:
        selected: what it would take.
        caps: its limits.
        harness: the accepted harness, in the words for a reader.

    Raises:
        ExportRefusedError: saying how many more runs are needed, what left out the others, and which limits did.
    """
    rows, needed = len(selected.ids), max(caps.minimum, 1)
    if rows >= needed:
        return
    left_out = ", ".join(f"{reason} {count}" for reason, count in selected.excluded.items() if count)
    hints = []
    if caps.total is None or caps.total >= needed:
        tasks = "" if caps.per_task is None else f" (at most {caps.per_task} of a task counts)"
        missing = needed - rows
        runs = "1 more successful run" if missing == 1 else f"{missing} more successful runs"
        hints.append(f"record at least {runs} under {harness}{tasks}, then ingest")
    hints += [f"change params.yaml: {limit}" for limit in _limits(selected, caps, needed)]
    raise ExportRefusedError(
        f"{rows} of {selected.traces} traces fit, at least {needed} {'is' if needed == 1 else 'are'} needed"
        + (f"; left out: {left_out}" if left_out else ""),
        where=harness,
        hint="; or ".join(hints),
    )


def _limits(selected: Selected, caps: Caps, needed: int) -> list[str]:
    """Return the limits of number and length that stand in the way, in words."""
    found = []
    left_out = selected.excluded[Reason.TOOL_CALLS]
    if left_out and caps.tool_calls is not None:
        found.append(f"export.sft.tool_calls {list(caps.tool_calls)} leaves out {left_out}")
    left_out = selected.excluded[Reason.PER_TASK]
    if left_out:
        found.append(f"export.sft.per_task {caps.per_task} leaves out {left_out}")
    if caps.total is not None and caps.total < needed:
        found.append(f"export.sft.total {caps.total} is less than the {needed} that are needed")
    return found


def _by_facts(known: Facts, terms: Terms, fits: Callable[[], Collection[str]]) -> Reason | None:
    """Return the first of the reasons before `not-trainable`; None when there is none."""
    checks: tuple[tuple[Reason, Callable[[], bool]], ...] = (
        (Reason.RETRACTED, lambda: known.retracted),
        (Reason.CONTESTED, lambda: known.contested),
        (Reason.MIXED, lambda: known.mixed),
        (Reason.NO_FINGERPRINT, lambda: known.fingerprint is None),
        (Reason.OTHER_HARNESS, lambda: known.fingerprint not in terms.accepted),
        (Reason.OTHER_MODEL, lambda: not _of_models(known.model, terms.models)),
        (Reason.EVIDENCE, lambda: not _well_known(known, terms, fits)),
        (Reason.OUTCOME, lambda: known.status != "success"),
        (Reason.EVALUATION_TASK, lambda: _for_evaluation(known, terms.evaluation)),
    )
    return next((reason for reason, holds in checks if holds()), None)


def _well_known(known: Facts, terms: Terms, fits: Callable[[], Collection[str]]) -> bool:
    if terms.policy is Policy.CLAIMED:
        return True
    if terms.policy is Policy.RECORDED:
        return known.evidence == "recorded" and known.fingerprint not in terms.incomplete
    if known.evidence == "recorded":
        return True
    return known.corroborated > 0 and terms.accepted.issuperset(found := fits()) and known.fingerprint in found


def _of_models(model: str | None, wanted: frozenset[str]) -> bool:
    return not wanted or (model is not None and (model in wanted or model.rpartition("@")[0] in wanted))


def _qualified(known: Facts) -> str | None:
    """Return the task with its domain, since domains number their tasks each for themselves."""
    return known.task if known.task is None or known.domain is None else f"{known.domain}/{known.task}"


def _for_evaluation(known: Facts, evaluation: frozenset[str]) -> bool:
    """Return whether the task is, or may be, in the evaluation set.

    A name without a domain, on either side, means the task of that name in any domain.
    """
    if not evaluation:
        return False
    task = _qualified(known)
    if task is None or known.task in evaluation:
        return True
    return not _endings(task).isdisjoint(evaluation) or (known.domain is None and task in _all_endings(evaluation))


def _endings(name: str) -> set[str]:
    pieces = name.split("/")
    return {"/".join(pieces[start:]) for start in range(len(pieces))}


@lru_cache(maxsize=8)
def _all_endings(names: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*map(_endings, names))


def _within(count: int, limits: tuple[int, int] | None) -> bool:
    return limits is None or limits[0] <= count <= limits[1]


def _first_of_each_task(passed: list[Verdict], per_task: int | None) -> list[Verdict]:
    if per_task is None:
        return passed
    seen: Counter[str] = Counter()
    first = []
    for verdict in passed:
        if verdict.task is None:
            first.append(verdict)
            continue
        seen[verdict.task] += 1
        if seen[verdict.task] <= per_task:
            first.append(verdict)
    return first


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name or UNKNOWN for name in names).items()))
