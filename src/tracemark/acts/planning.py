"""`plan`: what to run next under the accepted pair, so that the training set is filled.

The store says how often each task was run and how often it succeeded, the records of exports say which successes became
training rows, and params.yaml says what is wanted. What follows from the counts is `tracemark.gates.plan`'s business.

Invariants:
- which attempts and successes count is said in `tracemark.acts.task_counts`; a success that counts for nothing is told
  with its reason where a task has no other;
- a task of the evaluation set is never listed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import require_unchanged
from tracemark.acts.export import require_accepted
from tracemark.acts.export_place import require_elsewhere, require_replaceable
from tracemark.acts.pulled import require_pulled
from tracemark.acts.task_counts import Task, TaskCounts, counted
from tracemark.durable import read_regular, why_unread, write_atomic
from tracemark.errors import ExportRefusedError, IrregularFileError, UsageError
from tracemark.exporters.evaluation import for_evaluation, unmatched
from tracemark.exporters.select import Reason
from tracemark.findings import CODES, Finding, Report, finding
from tracemark.gates import plan as plans
from tracemark.gates import task_list
from tracemark.gates.plan import Plan, TaskState, Wanted
from tracemark.ledger.params import Params
from tracemark.words import numbered

_EXAMPLE = "reports/plan.jsonl"
"""Where a plan may be written, for hints."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan, beside what params.yaml says."""

    out: Path | None = None
    """The file that takes the task list; an earlier list in it is replaced. None writes none."""
    runs: int | None = None
    """Most runs in the list; None for `plan.runs` of params.yaml."""
    tasks: Path | None = None
    """A list of tasks, so that those which were never run are planned as well; None for the stored ones alone."""


@dataclass(frozen=True)
class PlanReport(Report):
    """What to run next. Every known task is in one of the lists or counts."""

    tasks: tuple[dict[str, Any], ...]
    """The task list, in order: `task`, `domain` and `class` where known, `attempts` (how many runs to make), `reason`
    (`never run`, `not solved yet`, `no success that an export takes` or `more successes wanted`)."""
    fingerprint: str
    """The accepted harness, under which the runs are to be made."""
    harness: str | None
    """Its label; None when no known harness version has the fingerprint."""
    model: str | None
    """The accepted model, `NAME` or `NAME@REVISION`; None when none is accepted; then attempts of every model count
    whose traces an export takes."""
    runs: int
    """Runs in the list: the attempts of its tasks together."""
    rows: int
    """Rows that an SFT export made now would have, the total aside."""
    wanted: int | None
    """Rows wanted, `export.sft.total`; None when there is no such limit."""
    lacking: int | None
    """Rows wanted that are not there, where a class that has more than its share fills no other; None likewise."""
    expected: float
    """Rows to be expected of the list: each attempt at (c + ½) / (n + 1), for c successes of n attempts so far, and of
    a task no more than it may still give."""
    unfilled: int
    """Rows wanted that no plan can be expected to bring, however many runs it lists: the known tasks do not give
    more."""
    short: dict[str, int]
    """The same by class, for each class with a quota that cannot be filled."""
    retired: tuple[str, ...]
    """Tasks that are solved and harvested."""
    waiting: tuple[str, ...]
    """Tasks that are solved, and of which no export took a row yet."""
    given_up: tuple[str, ...]
    """Tasks that had `plan.attempts` attempts without a success that an export would take."""
    not_needed: tuple[str, ...]
    """Tasks that would be run if more rows or runs were wanted."""
    untaken: dict[str, int]
    """Successes of tasks that have none which an export would take, by the first reason why it would not; tasks of the
    evaluation set aside."""
    evaluation: int
    """Tasks of the evaluation set, which are never listed."""
    unnamed: int
    """Runs whose task nobody knows, so that none can be planned for it."""


def plan(root: Path, options: PlanOptions) -> PlanReport:
    """Return what to run next, and write it as JSON Lines where a file is named.

    Raises:
        ExportRefusedError: when no harness is accepted, when it is open which harness or model is, when the evaluation
            set is not the one that was frozen, or when it rests on a harness that cannot be compared whether a success
            counts.
        UsageError: when the list of tasks is none, when quotas are wanted of a training set without a total, or when
            the file to write lies where the corpus keeps what it reads, is the list of tasks, or holds no plan.
        NoStoreError: when there is no store.
        NotPulledError: when data that dvc.lock pins is not on disk: what was run would be planned again.
        IntegrityError: when a trace that must be read is damaged, or a file of the store cannot be read at all.
    """
    if options.out is not None:
        _require_free(root, options.out, options.tasks)
    return planned(Corpus(root), options)


def _require_free(root: Path, out: Path, tasks: Path | None) -> None:
    """Make sure that the plan replaces nothing but an earlier one, of which it is not made."""
    require_elsewhere(root, out, _EXAMPLE)
    if tasks is not None and os.path.realpath(tasks) == os.path.realpath(out):
        message = "this is the list of which the plan is made, and not all of it may be planned"
        raise UsageError(message, where=str(out), hint=f"name a new file, such as {_EXAMPLE}")
    require_replaceable(out, task_list.is_plan, "plan", _EXAMPLE)


def planned(corpus: Corpus, options: PlanOptions) -> PlanReport:
    """Return what to run next in a corpus, which may be one as it would be after a decision; see `plan`."""
    require_pulled(corpus)
    require_accepted(corpus)
    require_unchanged(corpus)
    for problem in corpus.model_findings():
        raise ExportRefusedError(problem.message, where=problem.where, hint=problem.hint)
    wanted = _wanted(corpus.params, options.runs)
    listed = [] if options.tasks is None else _listed(options.tasks)
    with open_store(corpus.root) as store:
        counts = counted(corpus, store)
        # an empty name is none
        stored = {(task, domain or None) for task, domain in store.tasks() if task}
        beside = tuple(store.findings)
    nameless = (one._replace(group=plans.class_of(one.domain or "", wanted.quotas)) for one in counts.unnamed)
    states = [*_states(counts, task_list.known(listed, stored), wanted.quotas), *nameless]
    evaluation = corpus.params.evaluation
    held_out = partial(for_evaluation, evaluation=evaluation)
    made = plans.plan(states, wanted, held_out)
    if options.out is not None:
        write_atomic(options.out, b"".join(digest.canonical(task.as_json()) + b"\n" for task in made.tasks))
    # what no number of runs would fill is another matter than what was not asked for
    fullest = made if wanted.runs is None else plans.plan(states, replace(wanted, runs=None), held_out)
    known = (*stored, *((one.task, one.domain) for one in listed))
    untaken = {place: why for place, why in counts.without_row().items() if not held_out(*place)}
    notes = [
        *unmatched(evaluation, known, corpus.params.evaluation_file),
        # what is not lacking need not be found
        *(_not_taken(untaken, counts.remedies) if made.lacking != 0 else ()),
        *_unfilled(fullest, wanted, untaken=bool(untaken)),
    ]
    report = _report(corpus, made, fullest, wanted, (*notes, *beside))
    return replace(report, untaken=_by_reason(untaken))


def _by_reason(untaken: Mapping[Task, Counter[Reason]]) -> dict[str, int]:
    """Return successes by the reason why no export takes them, in the order in which reasons are looked for."""
    found = sum(untaken.values(), Counter[Reason]())
    return {reason.value: found[reason] for reason in Reason if found[reason]}


def _not_taken(untaken: Mapping[Task, Counter[Reason]], told: Mapping[Reason, str]) -> list[Finding]:
    """Return the finding that tasks have no success but some that no export takes."""
    reasons = _by_reason(untaken)
    if not reasons:
        return []
    many = f"{numbered(sum(reasons.values()), 'success')} of {numbered(len(untaken), 'task')}"
    listed = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
    hint = "; or ".join(told[Reason(one)] for one in reasons if one in told)
    return [finding("plan-untaken", "plan", f"no export takes {many}, which have no other: {listed}", hint)]


def _states(counts: TaskCounts, known: Mapping[Task, str], quotas: Iterable[str]) -> Iterator[TaskState]:
    named = frozenset(quotas)
    for task, group in known.items():
        yield counts.state(task, plans.class_of(group, named))


def _wanted(params: Params, runs: int | None) -> Wanted:
    caps, told = params.export.sft, params.plan
    if told.quotas and caps.total is None:
        raise UsageError(
            "quotas are shares of the training set, and no total is set",
            where="params.yaml: plan.quotas",
            hint="set export.sft.total, or take the quotas out",
        )
    return Wanted(
        total=caps.total,
        per_task=caps.per_task,
        quotas=plans.quotas(told.quotas, caps.total or 0),
        most_attempts=told.attempts,
        runs=told.runs if runs is None else runs,
    )


def _listed(path: Path) -> list[task_list.Listed]:
    try:
        data = read_regular(path)
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error, missing="name a file that is there")
        raise UsageError(f"the list of tasks cannot be read: {reason}", where=str(path), hint=hint) from None
    return task_list.parse(data, str(path))


def _unfilled(fullest: Plan, wanted: Wanted, *, untaken: bool) -> list[Finding]:
    """Return the finding that the known tasks cannot be expected to fill the training set."""
    missing = [f"{rows} of the class {name!r}" for name, rows in fullest.short.items()]
    if fullest.rest:
        # where classes have quotas, theirs may have tasks left, which are not to fill what others lack
        of = "classes without a quota" if wanted.quotas else f"the {wanted.total} that are wanted"
        missing.append(f"{fullest.rest} of {of}")
    if not missing:
        return []
    message = f"rows that no known task can be expected to give: {', '.join(missing)}"
    first = "see to plan-untaken first; then " if untaken else ""
    return [finding("plan-unfilled", "plan", message, f"{first}{CODES['plan-unfilled'].hint}")]


def _report(corpus: Corpus, made: Plan, fullest: Plan, wanted: Wanted, findings: tuple[Finding, ...]) -> PlanReport:
    return PlanReport(
        findings,
        tasks=tuple(task.as_json() for task in made.tasks),
        fingerprint=corpus.accepted or "",
        harness=corpus.name_of(corpus.accepted),
        model=corpus.params.accepted.model,
        runs=made.runs,
        rows=made.rows,
        wanted=wanted.total,
        lacking=made.lacking,
        expected=round(made.expected, 3),
        unfilled=fullest.unfilled,
        short=dict(fullest.short),
        retired=made.retired,
        waiting=made.waiting,
        given_up=made.exhausted,
        not_needed=made.not_needed,
        untaken={},
        evaluation=made.evaluation,
        unnamed=made.unnamed,
    )
