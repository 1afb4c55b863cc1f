"""What to run next under the accepted harness, so that the training set is filled.

Invariants:
- a task of the evaluation set is never planned, and neither is one of which nobody knows the name;
- a task *retires* when it is solved and harvested: it has a success under the accepted harness, and a training export
  took one. A task that was given all attempts that it may have without a success is *exhausted*;
- a task whose successes wait for an export, as many as one may take, is not run again: it is *waiting*;
- the order depends on the counts and the names alone, and a plan changes only when something was run or exported.

What is wanted is so many rows of each class that has a quota, and of the others together what the quotas leave of the
total. A row beyond that takes no other's place: a class that gives more than its share fills no other.

How many rows a planned task will bring is not known; a plan ends when the rows to be *expected* fill what is wanted: of
each task the mean of min(k, X), for the k rows that it may still give and X successes of its attempts, each at the rate
(c + ½) / (n + 1), the mean of what c successes of n attempts say of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_INEXACT = 1e-9
"""What a sum of expected rows may be off by."""


REASONS = ("never run", "not solved yet", "more successes wanted", "no success that an export takes")
"""Why a task is planned."""


class TaskState(NamedTuple):
    """What is known of one task under the accepted harness."""

    task: str
    """The task's name without its domain; empty when nobody says."""
    domain: str | None
    """Its domain; None when it has none."""
    group: str
    """The class that quotas are stated for, such as a situation class; empty when it has none."""
    attempts: int
    """How many attempts were made that count: those that the infrastructure ended are none, and neither are those of
    another model than the accepted one."""
    solved: int
    """How many of them are successes that a training export may take."""
    harvested: int
    """How many of those a training export took."""
    untaken: int = 0
    """How many of the attempts are recorded successes that no training export may take."""

    @property
    def name(self) -> str:
        """The task with its domain."""
        return f"{self.domain}/{self.task}" if self.domain else self.task


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the training set is to hold, and how much may be spent on a task. None means that a limit is off."""

    total: int | None
    """Rows in all; None: as many as the tasks give."""
    per_task: int | None = 1
    """Most rows of one task. None: every success."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Rows of each class, together at most `total`. Classes that are not named share what it leaves; without a total
    they get none."""
    attempts: int = 2
    """Attempts at a task in one plan."""
    most_attempts: int | None = 8
    """Attempts after which a task without a success is given up. None: never."""
    runs: int | None = None
    """Most runs in one plan; the last task may get fewer attempts for it. None: no limit."""


class Planned(NamedTuple):
    """One task to run."""

    task: str
    """The task."""
    domain: str | None
    """Its domain; None when it has none."""
    group: str
    """Its class; empty when it has none."""
    attempts: int
    """How many attempts to make."""
    reason: str
    """Why it is planned: one of `REASONS`."""

    def as_json(self) -> dict[str, Any]:
        """Return the line of the task list: `task, domain, class, attempts, reason`; domain and class where known."""
        line = {"task": self.task, "domain": self.domain, "class": self.group or None}
        known: dict[str, Any] = {name: value for name, value in line.items() if value is not None}
        return {**known, "attempts": self.attempts, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run next, and what became of the other tasks: `tasks`, and all the lists and counts, are every task."""

    tasks: tuple[Planned, ...]
    """The tasks to run, in order: the class that lacks most first, the least attempted task of it first."""
    retired: tuple[str, ...]
    """Tasks that are solved and harvested, sorted."""
    waiting: tuple[str, ...]
    """Tasks whose successes wait for an export, sorted."""
    exhausted: tuple[str, ...]
    """Tasks that had all their attempts without a success, sorted."""
    not_needed: tuple[str, ...]
    """Tasks that would be run if more were wanted, sorted."""
    evaluation: int
    """Tasks of the evaluation set, which are never planned."""
    unnamed: int
    """Entries of which nobody knows the task."""
    rows: int
    """Rows that the solved tasks, and successes of unknown task, give an export now."""
    lacking: int | None
    """Rows that the training set lacks now, those aside that a class has above its share; None when no number of rows
    is wanted."""
    runs: int
    """Runs of this plan: the attempts of its tasks together."""
    expected: float
    """Rows to be expected of this plan."""
    short: Mapping[str, int]
    """By class, rows of its quota that this plan is not expected to fill, rounded up; full classes are left out."""
    rest: int
    """The same of all classes without a quota together; 0 when no number of rows is wanted."""
    unfilled: int
    """The same of all classes, before anything is rounded; 0 when no number of rows is wanted."""


def plan(states: Iterable[TaskState], wanted: Wanted, for_evaluation: Callable[[str, str | None], bool]) -> Plan:
    """Return what to run next.

    Args:
        states: what is known of each task; each task once, with its domain.
        wanted: what the training set is to hold.
        for_evaluation: whether a task, given by name and domain, is in the evaluation set.
    """
    every = sorted(states, key=lambda state: (state.name, state.domain or "", state.group))
    sorted_out: dict[str, list[TaskState]] = {}
    for state in every:
        sorted_out.setdefault(_kind(state, wanted, for_evaluation), []).append(state)
    # a success of which nobody knows the task is a row as well: an export takes it for a task of its own
    giving = ("retired", "waiting", "open", "exhausted", "unnamed")
    usable = [state for kind in giving for state in sorted_out.get(kind, ())]
    held = Counter[str]()
    for state in usable:
        held[state.group] += _rows(state, wanted)
    choice = _Choice(wanted, held)
    lacking = choice.lacking()
    choice.take(sorted_out.get("open", ()))
    planned = {(one.domain, one.task) for one in choice.planned}
    return Plan(
        tasks=tuple(choice.planned),
        retired=_names(sorted_out.get("retired", ())),
        waiting=_names(sorted_out.get("waiting", ())),
        exhausted=_names(sorted_out.get("exhausted", ())),
        not_needed=_names(one for one in sorted_out.get("open", ()) if (one.domain, one.task) not in planned),
        runs=choice.runs,
        evaluation=len(sorted_out.get("evaluation", ())),
        unnamed=len(sorted_out.get("unnamed", ())),
        rows=held.total(),
        lacking=None if wanted.total is None else _whole(lacking),
        expected=choice.expected,
        short=choice.short(),
        rest=_whole(choice.rest),
        unfilled=0 if wanted.total is None else _whole(choice.lacking()),
    )


def quotas(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Return the rows of each class, of `total` rows in all, by largest remainder; equal remainders go by name.

    Args:
        shares: the share of each class, from 0 to 1, together at most 1.
        total: rows in all.
    """
    exact = {name: share * total for name, share in sorted(shares.items())}
    rows = {name: math.floor(part + _INEXACT) for name, part in exact.items()}
    left = round(sum(exact.values())) - sum(rows.values())
    for name in sorted(exact, key=lambda one: rows[one] - exact[one])[: max(0, left)]:
        rows[name] += 1
    return rows


def class_of(group: str, named: Collection[str]) -> str:
    """Return the class that quotas count a task to: its own, or the nearest one above it that is named.

    Args:
        group: the task's class, such as `desk/refund`.
        named: the classes that have a quota, such as `desk`.
    """
    pieces = group.split("/")
    above = ("/".join(pieces[:length]) for length in range(len(pieces), 0, -1))
    return next((name for name in above if name in named), group)


def _kind(state: TaskState, wanted: Wanted, for_evaluation: Callable[[str, str | None], bool]) -> str:
    if not state.task:
        return "unnamed"
    if for_evaluation(state.task, state.domain):
        return "evaluation"
    if state.solved and state.harvested:
        return "retired"
    if state.solved and wanted.per_task is not None and state.solved >= wanted.per_task:
        return "waiting"
    if not state.solved and wanted.most_attempts is not None and state.attempts >= wanted.most_attempts:
        return "exhausted"
    return "open"


def _rows(state: TaskState, wanted: Wanted) -> int:
    return state.solved if wanted.per_task is None else min(state.solved, wanted.per_task)


def _names(states: Iterable[TaskState]) -> tuple[str, ...]:
    return tuple(sorted(state.name for state in states))


def _whole(rows: float) -> int:
    return math.ceil(rows - _INEXACT)


def _expected(attempts: int, rate: float, most: int | None) -> float:
    """Return the mean of the successes of so many attempts, where no more than `most` count."""
    if most is None or attempts <= most:
        return attempts * rate
    chances = (math.comb(attempts, count) * rate**count * (1 - rate) ** (attempts - count) for count in range(most))
    return most - sum((most - count) * chance for count, chance in enumerate(chances))


def _reason(state: TaskState) -> str:
    never_run, unsolved, more, untaken = REASONS
    if state.solved:
        return more
    if state.untaken:
        return untaken
    return unsolved if state.attempts else never_run


class _Choice:
    """Tasks taken one after the other, until what is to be expected of them fills what is lacking."""

    def __init__(self, wanted: Wanted, held: Mapping[str, int]) -> None:
        self._wanted = wanted
        self._quota = {group: float(max(0, rows - held[group])) for group, rows in wanted.quotas.items()}
        others = sum(rows for group, rows in held.items() if group not in wanted.quotas)
        left = 0 if wanted.total is None else wanted.total - sum(wanted.quotas.values()) - others
        self.rest = float(max(0, left))
        self.planned: list[Planned] = []
        self.runs = 0
        self.expected = 0.0

    def lacking(self) -> float:
        """Return the rows that are wanted and neither there nor to be expected of what is planned."""
        return self.rest + sum(self._quota.values())

    def take(self, states: Iterable[TaskState]) -> None:
        """Plan tasks until nothing is lacking, or none is left, or the plan is full."""
        groups: dict[str, list[TaskState]] = {}
        # the last one of each list is the next to be taken
        for state in sorted(states, key=lambda one: (one.attempts, one.solved, one.name), reverse=True):
            groups.setdefault(state.group, []).append(state)
        while not self._full() and (needed := [name for name in sorted(groups) if self._needed(name)]):
            # the class that lacks most; of those without a quota, the one with most tasks left
            group = max(needed, key=lambda name: (self._quota.get(name, 0.0), len(groups[name])))
            self._plan(groups[group].pop())
            if not groups[group]:
                del groups[group]

    def short(self) -> dict[str, int]:
        """Return the rows of each quota that nothing planned is expected to fill."""
        return {group: rows for group, lacks in sorted(self._quota.items()) if (rows := _whole(lacks))}

    def _needed(self, group: str) -> bool:
        """Return whether a class is to be run: its quota lacks rows, or it has none and more than quotas is wanted."""
        if group in self._quota:
            return self._quota[group] > _INEXACT
        return self.rest > _INEXACT or (self._wanted.total is None and not self._quota)

    def _full(self) -> bool:
        limit = self._wanted.runs
        return limit is not None and self.runs >= limit

    def _plan(self, state: TaskState) -> None:
        most = self._wanted.most_attempts
        attempts = self._wanted.attempts
        if most is not None and not state.solved:
            attempts = min(attempts, most - state.attempts)
        if self._wanted.runs is not None:
            attempts = min(attempts, self._wanted.runs - self.runs)
        self.runs += attempts
        may_give = None if self._wanted.per_task is None else self._wanted.per_task - state.solved
        rate = min(1.0, (state.solved + 0.5) / (state.attempts + 1))
        expected = _expected(attempts, rate, may_give)
        self.expected += expected
        if state.group in self._quota:
            self._quota[state.group] = max(0.0, self._quota[state.group] - expected)
        else:
            self.rest = max(0.0, self.rest - expected)
        self.planned.append(Planned(state.task, state.domain, state.group, attempts, _reason(state)))
