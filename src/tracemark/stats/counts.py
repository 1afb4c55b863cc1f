"""How often a task was attempted and how often it was solved; every figure of `stats` starts here.

Which attempts count (a run that an environment fault ended is no attempt at the task) is decided before: these are
whole numbers and know no traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.words import first_few

NOTHING = "nothing was measured"
"""Why a figure about no task, or about a task without an attempt, is withheld."""
PRIOR = 0.5
"""Both parameters of Jeffreys' prior of a rate, Beta(½, ½)."""

_NAMED = 3
"""How many tasks a reason names of each kind: enough to look one up, and one line for any number of tasks."""


class Counts(NamedTuple):
    """The attempts at one task under one configuration."""

    attempts: int
    """How many counted attempts there were (n), 0 or more."""
    successes: int
    """How many of them solved the task (c), 0 to `attempts`."""


def require_possible(counts: Counts, task: str | None = None) -> None:
    """Stop at counts that no measurement gives.

    Args:
        counts: of one task.
        task: its name, for the message; None when the caller has none.

    Raises:
        UsageError: when there are fewer than 0 attempts, fewer than 0 successes or more successes than attempts.
    """
    if not 0 <= counts.successes <= counts.attempts:
        raise UsageError(
            f"{counts.successes} successes of {counts.attempts} attempts cannot be",
            where=_place(task),
            hint="count an attempt once, whether it solved the task or not",
        )


def require_measured(counts: Counts, task: str | None = None) -> None:
    """Stop at counts that no measurement gives, and at those of no attempt, which have no rate.

    Args:
        counts: of one task.
        task: its name, for the message; None when the caller has none.

    Raises:
        UsageError: as `require_possible`, and when there was no attempt.
    """
    require_possible(counts, task)
    if counts.attempts == 0:
        raise UsageError(
            f"{NOTHING}: a task without an attempt has no rate",
            where=_place(task),
            hint="leave the task out or run it",
        )


def require_equal(counts: Mapping[str, Counts]) -> str | None:
    """Return why figures over these tasks are withheld: their run counts differ.

    A mean over tasks of which some had more attempts compares different things (pass@4 of a task that ran five times is
    an estimate, of one that ran four times an observation), and cutting all to the fewest would throw away chosen runs.
    So does ThinkingBox (`agg_main.py`), which withholds its metrics.

    Args:
        counts: of each task, by its name.

    Returns:
        The reason, with the first few tasks of each run count in the order of their names; None when all tasks have the
        same number of attempts, and when there is no task.

    Raises:
        UsageError: when a task's counts cannot be; `where` names the task.
    """
    tasks: dict[int, list[str]] = {}
    for task in sorted(counts):
        require_possible(counts[task], task)
        tasks.setdefault(counts[task].attempts, []).append(task)
    if len(tasks) < 2:
        return None
    groups = (f"{attempts} at {first_few(map(repr, tasks[attempts]), _NAMED)}" for attempts in sorted(tasks))
    return "run counts differ between tasks: " + "; ".join(groups)


def withheld(counts: Mapping[str, Counts], k: int | None = None) -> str | None:
    """Return why a figure over these tasks is withheld, or None when the counts support it.

    Args:
        counts: of each task, by its name.
        k: how many attempts the figure speaks of; None when it speaks of those there are.

    Returns:
        That nothing was measured, that run counts differ, or that `k` exceeds the attempts; None otherwise.

    Raises:
        UsageError: when a task's counts cannot be, or `k` is below 1.
    """
    if k is not None:
        require_draws(k)
    reason = require_equal(counts)
    if reason is not None:
        return reason
    attempts = attempts_of_each(counts)
    if attempts == 0:
        return NOTHING
    if k is not None and k > attempts:
        return f"k = {k} exceeds the {attempts} attempts of each task"
    return None


def attempts_of_each(counts: Mapping[str, Counts]) -> int:
    """Return how many attempts each task has, where all have as many (see `require_equal`); 0 when there is no task.

    Args:
        counts: of each task, by its name; the first stands for all.
    """
    return next(iter(counts.values())).attempts if counts else 0


def require_draws(k: int) -> None:
    """Stop at a number of attempts below 1.

    Args:
        k: how many attempts a figure speaks of.

    Raises:
        UsageError: when `k` is below 1.
    """
    if k < 1:
        raise UsageError(f"k = {k}: a figure speaks of at least one attempt", hint="take a k of 1 or more")


def _place(task: str | None) -> str | None:
    return None if task is None else f"task {task!r}"
