"""What stands against a comparison, as data.

A comparison is refused rather than repaired: whoever leaves out the tasks that one cell lacks, or the attempts that
one has more of, decides what is compared. Scores of unequal numbers of attempts are not compared either: at a task
that succeeds nine times in ten, one attempt mostly scores above twenty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from tracemark.gates.cell import Attempt, Cell
from tracemark.words import first_few

_DIGITS = 12

Cells = Mapping[str, Cell]
"""The cells that are compared, by what each is called."""


class Reason(StrEnum):
    """What stands against a comparison, in the order in which refusals are listed."""

    NOTHING_TO_COMPARE = "nothing-to-compare"
    """A cell has no attempt, or both are of the same half that is to be judged."""
    NOT_THE_PAIR = "not-the-pair"
    """An attempt was not made by the pair that its cell is of."""
    CONFOUNDED = "confounded"
    """The other half differs as well, so nothing tells which of them made the difference."""
    TASKS_DIFFER = "tasks-differ"
    """A task was not attempted in every cell, or is not in the evaluation set."""
    ATTEMPTS_MISSING = "attempts-missing"
    """A task has fewer attempts than it must have, or some of them wait for a verdict."""
    ATTEMPTS_UNEQUAL = "attempts-unequal"
    """Tasks have more attempts than asked for, those without a verdict included."""
    ATTEMPTS_DUPLICATE = "attempts-duplicate"
    """One attempt at a task is there twice."""
    INFRASTRUCTURE_ERRORS = "infrastructure-errors"
    """The infrastructure ended more attempts than the limit allows, and nobody has re-run them."""
    GRADERS_DIFFER = "graders-differ"
    """A task was judged by different graders, or by different versions of one; or another threshold made verdicts of
    rewards in some attempts than in others."""
    EVALUATION_CHANGED = "evaluation-changed"
    """The evaluation set is not the one that was frozen, or its ids and the tasks are not one to one."""
    EVALUATION_LEAKED = "evaluation-leaked"
    """A task of the evaluation set is in a training export."""


class Rerun(NamedTuple):
    """One attempt that is still to be made."""

    side: str
    """The cell, by what it is called."""
    task: str
    """The task."""
    attempt: int | str | None
    """Its number; None when numbers do not say it."""
    trace: str | None
    """The trace that the infrastructure ended; None when there is no trace."""


class Refusal(NamedTuple):
    """One reason not to compare."""

    reason: Reason
    """Its name."""
    message: str
    """What is wrong and where, in one sentence."""
    hint: str
    """What to do next."""
    tasks: tuple[str, ...] = ()
    """The tasks concerned, sorted; empty when it is not about tasks."""
    rerun: tuple[Rerun, ...] = ()
    """The attempts to make; empty when that would not help."""
    traces: tuple[str, ...] = ()
    """Ids of the traces of which something is to be done, sorted; empty when it is not about single traces."""


class Sides(NamedTuple):
    """The two cells of a gate; what they are called in messages and re-run lists is the name of the member."""

    incumbent: Cell
    """The evaluation of the accepted pair."""
    candidate: Cell
    """The evaluation of the pair with one half replaced."""


def named(tasks: Collection[str]) -> str:
    """Return the first few of some tasks, and how many more there are."""
    return first_few(map(repr, sorted(tasks)))


def digits(traces: Collection[str]) -> str:
    """Return the first few of some traces by the beginning of their ids, and how many more there are."""
    return first_few(trace[:_DIGITS] for trace in sorted(traces))


def tasks_of(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the tasks of some attempts, sorted."""
    return tuple(sorted({one.task for one in attempts}))


def traces_of(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the ids of the traces of some attempts, sorted."""
    return tuple(sorted({one.trace for one in attempts}))


def placed_in(cells: Iterable[Cell]) -> frozenset[tuple[str, str | None]]:
    """Return the tasks that some cells attempted, each with its domain; None where nobody says."""
    return frozenset((one.task, one.domain) for cell in cells for one in cell.attempts)


def tasks_in(cells: Cells) -> frozenset[str]:
    """Return the tasks that any cell attempted."""
    return frozenset().union(*(cell.by_task for cell in cells.values()))
