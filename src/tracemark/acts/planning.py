"""`plan`: what to run next under the accepted pair, so that the training set is filled.

The store says how often each task was run and how often it succeeded, the records of exports say which successes became
training rows, and params.yaml says what is wanted. What follows from the counts is `tracemark.gates.plan`'s business.

Invariants:
- a success counts only where an SFT export that is made now would take it, by the very filter of the export;
- it is *harvested* when a recorded SFT export took that very trace, or an older reading of its record, not when
  another of its task was taken;
- an attempt counts against a task only where the accepted model made it (where none is accepted, a model whose traces
  an export takes): what one model cannot do another may. An accepted name without a revision means any, and where runs
  name none it means these alone, as it does for a gate;
- a task of the evaluation set is never listed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import require_unchanged
from tracemark.acts.export import KIND, look, require_accepted, require_whole, terms_of
from tracemark.acts.export_place import require_elsewhere, require_replaceable
from tracemark.acts.pulled import require_pulled
from tracemark.acts.uncompared import require_compared
from tracemark.durable import read_regular, why_unread, write_atomic
from tracemark.errors import ExportRefusedError, IrregularFileError, UsageError
from tracemark.exporters.evaluation import for_evaluation, unmatched
from tracemark.exporters.select import of_models
from tracemark.findings import Finding, Report, finding
from tracemark.gates import plan as plans
from tracemark.gates import task_list
from tracemark.gates.plan import Plan, TaskState, Wanted
from tracemark.ledger.params import Params
from tracemark.store.selection import Selection, State
from tracemark.store.store import Store

_Task: TypeAlias = tuple[str, str | None]
"""A task's name and domain."""

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
    (`never run`, `not solved yet` or `more successes wanted`)."""
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
    """Rows to be expected of the list: each attempt at (c + ½) / (n + 1), for c successes of n attempts so far."""
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
        counts = _counted(corpus, store)
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
    notes = [*unmatched(evaluation, known, corpus.params.evaluation_file), *_unfilled(fullest, wanted)]
    return _report(corpus, made, fullest, wanted, (*notes, *beside))


@dataclass(slots=True)
class _Counts:
    """How often each task was run, how often with a success that counts, and how many of those became rows."""

    attempts: Counter[_Task]
    solved: Counter[_Task]
    harvested: Counter[_Task]
    unnamed: list[TaskState]
    revised: Counter[_Task]
    """Attempts by revisions of the accepted model, where that is a name alone; the others are in `attempts`."""
    plain: bool = False
    """Whether a run is of the accepted model in so many words."""


def _counted(corpus: Corpus, store: Store) -> _Counts:
    """Count the runs under the accepted harness and its declared equivalents."""
    terms = terms_of(corpus)
    require_whole(store)
    with store.workspace() as folder, store.unchanging():
        seen = look(store, corpus, terms, folder)
        taken = {trace for note in store.annotations(KIND) for trace in note.value["value"]["traces"]}
        taken.update(*store.newer_readings(taken).values())
        passed = {trace.id for trace in seen.judged.passed}
        store.require_true(seen.restated & passed)
        # what is retracted or superseded was no attempt at the task that others should pay for
        runs = Selection(fingerprints=frozenset(terms.accepted), retracted=False)
        counts = _Counts(Counter(), Counter(), Counter(), [], Counter())
        by = partial(_by, corpus.params.accepted.model, terms.models)
        for state in store.select(runs, corpus.store_decisions):
            _count(counts, state, passed, taken, by)
        if not counts.plain:
            counts.attempts.update(counts.revised)
    if seen.compared & passed:
        require_compared(corpus, store)
    return counts


def _count(
    counts: _Counts, state: State, passed: set[str], taken: set[str], by: Callable[[str | None], tuple[bool, bool]]
) -> None:
    row, trace = state.row, state.trace_id
    if row.role is not None or row.demonstration or row.mixed:
        return
    if not row.task:
        counts.unnamed.append(TaskState("", row.domain, "", 1, int(trace in passed), 0))
        return
    task = row.task, row.domain or None
    ours, revised = by(row.model_label)
    counts.plain = counts.plain or (ours and not revised)
    # a success counts whoever made it, as it does in an export; so it is an attempt as well
    if trace in passed or (row.status != "error" and ours):
        (counts.revised if revised and trace not in passed else counts.attempts)[task] += 1
    counts.solved[task] += trace in passed
    counts.harvested[task] += trace in passed and trace in taken


def _by(accepted: str | None, exported: frozenset[str], model: str | None) -> tuple[bool, bool]:
    """Return whether attempts of a model may count, and whether it is a revision of an accepted name without one.

    They are those of the accepted model; where none is accepted, of a model whose traces an export takes.
    """
    ours = of_models(model, frozenset({accepted}) if accepted else exported)
    return ours, ours and accepted is not None and model != accepted


def _states(counts: _Counts, known: Mapping[_Task, str], quotas: Iterable[str]) -> Iterator[TaskState]:
    named = frozenset(quotas)
    for (task, domain), group in known.items():
        key = task, domain
        numbers = counts.attempts[key], counts.solved[key], counts.harvested[key]
        yield TaskState(task, domain, plans.class_of(group, named), *numbers)


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


def _unfilled(fullest: Plan, wanted: Wanted) -> list[Finding]:
    """Return the finding that the known tasks cannot be expected to fill the training set."""
    missing = [f"{rows} of the class {name!r}" for name, rows in fullest.short.items()]
    if fullest.rest:
        # where classes have quotas, theirs may have tasks left, which are not to fill what others lack
        of = "classes without a quota" if wanted.quotas else f"the {wanted.total} that are wanted"
        missing.append(f"{fullest.rest} of {of}")
    if not missing:
        return []
    return [finding("plan-unfilled", "plan", f"rows that no known task can be expected to give: {', '.join(missing)}")]


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
        evaluation=made.evaluation,
        unnamed=made.unnamed,
    )
