"""Refusals of how often the tasks were attempted: every task as often as every other, in every cell.

Invariants:
- an attempt without a verdict is one that was made. It is never made again, and nothing is compared before it has its
  verdict: whoever passed it over would let a candidate try until verdicts are good;
- what the re-run lists of one comparison name, none of them names twice. Whoever has judged what waits for it and runs
  what all of them name has as many attempts at each task as were wanted, or, where some tasks have more, as many as
  those;
- an evaluation that installed its pair is taken as it is or not at all: it was chosen for being good, and what is added
  to it, or made again of it, would be a choice too. Where it is not whole any more, all of the set is to be run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import chain

from tracemark.exporters.evaluation import meanings
from tracemark.gates.cell import SCORED, Attempt, Cell, TaskTally
from tracemark.gates.refusal import Cells, Reason, Refusal, Rerun, digits, named, placed_in, tasks_in, tasks_of
from tracemark.gates.terms import Terms
from tracemark.words import numbered

_NOTHING = TaskTally(0, 0, (), 0, ())


def coverage_refusals(cells: Cells, terms: Terms) -> Iterator[Refusal]:
    """Yield what stands against comparing cells, by how often each task was attempted.

    Args:
        cells: the cells, by what each is called.
        terms: what they are compared under.
    """
    sheet = _Sheet(cells, terms)
    for side, cell in sheet.cells.items():
        if side in sheet.spent:
            yield _anew(sheet, side)
        elif cell.attempts:
            yield from _missing(sheet, side)
    yield from _unequal(sheet)
    for side in cells:
        yield from _duplicates(sheet, side)
    yield from _shared(cells)
    for side in cells:
        yield from _infrastructure(sheet, side)


class _Sheet:
    """What the tasks of some cells have, and what they must have."""

    def __init__(self, cells: Cells, terms: Terms) -> None:
        self.given, self.terms = cells, terms
        self.number = terms.attempts
        """How many attempts each task must have."""
        self.used = {side for side, cell in cells.items() if any(one.trace in terms.used for one in cell.attempts)}
        """Cells that are the evaluation which installed their pair."""
        found = {side: _faults(self, cells[side]) for side in cells if side in self.used}
        self.spent = {side: faults for side, faults in found.items() if faults}
        """Those of them that are not whole as the set is asked for now, with what is wrong."""
        self.cells = {side: replace(cell, attempts=()) if side in self.spent else cell for side, cell in cells.items()}
        """The cells, those that count no more without their attempts."""
        self.tallies = {side: cell.tally(self.number) for side, cell in self.cells.items()}
        """What the attempts at each task come to, by cell."""

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that each cell must have, sorted.

        They are what any cell attempted of the set, and each id of the set that means nothing of that.
        """
        listed = self.terms.evaluation
        if not listed:
            return tuple(sorted(tasks_in(self.given)))
        meant = meanings(listed, placed_in(self.given.values()))
        return tuple(sorted({task for one, tasks in meant.items() for task in tasks or (one,)}))

    @cached_property
    def beyond(self) -> dict[str, tuple[str, ...]]:
        """The tasks that have more than they must have, copies of one attempt apart, by cell; sorted."""
        return {
            side: tuple(task for task, tally in tallies.items() if _different(self.cells[side], task) > self.number)
            for side, tallies in self.tallies.items()
        }

    @cached_property
    def most(self) -> int:
        """How many attempts a task must have for none to have more, copies of one attempt apart."""
        found = (_different(self.cells[side], task) for side, tasks in self.beyond.items() for task in tasks)
        return max(found, default=self.number)

    @cached_property
    def copies(self) -> dict[str, list[Attempt]]:
        """Attempts at one task under one number, and traces that are there twice, by cell."""
        return {side: _copies(cell) for side, cell in self.cells.items()}

    @cached_property
    def numbers(self) -> dict[str, list[int]]:
        """The whole numbers that attempts at any task have, by cell; sorted."""
        return {
            side: sorted({one.attempt for one in cell.attempts if isinstance(one.attempt, int)})
            for side, cell in self.cells.items()
        }

    def lacks(self, side: str, task: str) -> int:
        """Return how many attempts at a task nobody has made, or has made and the infrastructure ended too many of."""
        return max(0, self.number - self.tallies[side].get(task, _NOTHING).runs)

    def needed(self, side: str, task: str, number: int) -> list[Rerun]:
        """Return what is to be run so that a task has a number of attempts; for more of them only more at the end."""
        if side in self.used:
            whole = side not in self.spent and number <= self.number
            return [] if whole else list(self.anew(side, task, number))
        tally = self.cells[side].tally_of(task, number)
        again = [Rerun(side, task, one.attempt, one.trace) for one in tally.open]
        return again + list(self.absent(side, task, number - tally.runs))

    def absent(self, side: str, task: str, lacks: int) -> Iterator[Rerun]:
        """Yield the attempts that a task lacks, by the numbers that the cell's other tasks have."""
        there = {one.number for one in self.cells[side].by_task.get(task, ())}
        numbers = [one for one in self.numbers[side] if str(one) not in there]
        for position in range(lacks):
            yield Rerun(side, task, numbers[position] if position < len(numbers) else None, None)

    def anew(self, side: str, task: str, number: int) -> Iterator[Rerun]:
        """Yield a number of attempts beside those that are there, by the whole numbers after all that these have."""
        numbers = [one.attempt for one in self.given[side].attempts if isinstance(one.attempt, int)]
        for position in range(number):
            yield Rerun(side, task, max(numbers) + 1 + position if numbers else None, None)


def _faults(sheet: _Sheet, cell: Cell) -> list[str]:
    """Return in what an evaluation that installed its pair is not whole as the set is asked for now."""
    number, tallies = sheet.number, {task: cell.tally_of(task, sheet.number) for task in sheet.tasks}
    less = [task for task, tally in tallies.items() if tally.scored + len(tally.open) + len(tally.unjudged) < number]
    more = [task for task in tallies if len(_standing(cell, task)) > number]
    unjudged = [task for task, tally in tallies.items() if tally.unjudged]
    opened = [task for task, tally in tallies.items() if tally.open]
    faults = []
    if less:
        faults.append(f"has less than {numbered(number, 'attempt')} at {_at(less)}")
    if more:
        faults.append(f"has more than {numbered(number, 'attempt')} at {_at(more)}")
    elif copies := tasks_of(_copies(cell)):
        faults.append(f"has one attempt more than once at {_at(copies)}")
    if unjudged:
        faults.append(f"has no verdict on attempts at {_at(unjudged)}")
    if _above(sheet, sum(len(tally.open) for tally in tallies.values())):
        faults.append(f"has more attempts than may be so that the infrastructure ended, at {_at(opened)}")
    return faults


def _above(sheet: _Sheet, count: int) -> bool:
    """Return whether so many attempts of a cell are more than the infrastructure may have ended."""
    # as it is written: 0.29 of 100 are 29, and less than that as floats
    limit = Decimal(str(sheet.terms.infrastructure_limit))
    return count > limit * sheet.number * len(tasks_in(sheet.given))


def _copies(cell: Cell) -> list[Attempt]:
    traces = Counter(one.trace for one in cell.attempts)
    numbers = Counter((one.task, one.number) for one in cell.attempts if one.status != "error")
    return [
        one
        for one in cell.attempts
        if traces[one.trace] > 1
        or (one.number is not None and one.status != "error" and numbers[one.task, one.number] > 1)
    ]


def _different(cell: Cell, task: str) -> int:
    """Return how many attempts at a task have a score or wait for one, copies of one attempt counted once."""
    return len({one.trace if one.number is None else (one.number,) for one in _standing(cell, task)})


def _standing(cell: Cell, task: str) -> list[Attempt]:
    """Return the attempts at a task that have a score or wait for one."""
    return [one for one in cell.by_task.get(task, ()) if one.status != "error"]


def _missing(sheet: _Sheet, side: str) -> Iterator[Refusal]:
    number = sheet.number
    lacking = {task: lacks for task in sheet.tasks if (lacks := sheet.lacks(side, task))}
    # of the others the refusals that are about them say what to do
    elsewhere = {one.trace for one in sheet.copies[side]}
    waiting = [
        one
        for task, tally in sheet.tallies[side].items()
        if task not in sheet.beyond[side]
        for one in tally.unjudged
        if one.trace not in elsewhere
    ]
    said, hints = [], []
    if lacking:
        said.append(f"lacks {numbered(sum(lacking.values()), 'attempt')} at {_at(lacking)}")
    if waiting:
        traces = {one.trace for one in waiting}
        said.append(f"has no verdict on {numbered(len(waiting), 'attempt')} at {_at(tasks_of(waiting))}")
        hints.append(f"have judged what has no verdict ({digits(traces)})")
    if lacking:
        hints.append("run what the re-run list names")
    if said:
        message = f"the {side} {', and '.join(said)}, where each task must have {number}"
        rerun = tuple(one for task, lacks in lacking.items() for one in sheet.absent(side, task, lacks))
        tasks = tuple(sorted({*lacking, *tasks_of(waiting)}))
        traces_of = tuple(sorted({one.trace for one in waiting}))
        yield Refusal(Reason.ATTEMPTS_MISSING, message, ", and ".join(hints), tasks, rerun, traces_of)


def _anew(sheet: _Sheet, side: str) -> Refusal:
    said = ", ".join(sheet.spent[side])
    message = f"the evaluation of the {side} is the one that installed it, and as the set is now it {said}"
    hint = "evaluate it anew: run what the re-run list names, which is all of the set"
    rerun = tuple(one for task in sheet.tasks for one in sheet.needed(side, task, sheet.number))
    return Refusal(Reason.ATTEMPTS_MISSING, message, hint, sheet.tasks, rerun)


def _at(tasks: Iterable[str]) -> str:
    found = list(tasks)
    return f"{numbered(len(found), 'task')} ({named(found)})"


def _unequal(sheet: _Sheet) -> Iterator[Refusal]:
    beyond = [(side, task) for side, tasks in sheet.beyond.items() for task in tasks]
    if not beyond:
        return
    tasks = tuple(sorted({task for _, task in beyond}))
    said = f"there are more than the {numbered(sheet.number, 'attempt')} asked for at {_at(tasks)}"
    unjudged = {one.trace for side, task in beyond for one in sheet.tallies[side][task].unjudged}
    if unjudged:
        said += f", {numbered(len(unjudged), 'attempt')} without a verdict among them"
    rerun, traces = tuple(_further(sheet)), tuple(sorted(unjudged))
    yield Refusal(Reason.ATTEMPTS_UNEQUAL, said, _evened(sheet, unjudged), tasks, rerun, traces)


def _evened(sheet: _Sheet, unjudged: set[str]) -> str:
    """Return how tasks come to equal numbers of attempts."""
    hint = (
        f"set evaluation.attempts to {sheet.most}, freeze the set anew and run what the re-run lists name; or leave "
        "whole evaluations out; never leave out single attempts"
    )
    if not unjudged:
        return hint
    retract = f"tracemark retract TRACES --reason TEXT for what was no attempt ({digits(unjudged)})"
    return f"{retract}, and compare again; or have them judged, {hint}"


def _further(sheet: _Sheet) -> Iterator[Rerun]:
    """Yield what is to be run so that every task has what the one with most has, beside what other refusals list."""
    for side, cell in sheet.given.items():
        if cell.attempts:
            for task in sheet.tasks:
                yield from sheet.needed(side, task, sheet.most)[len(sheet.needed(side, task, sheet.number)) :]


def _duplicates(sheet: _Sheet, side: str) -> Iterator[Refusal]:
    copies = sheet.copies[side]
    if not copies:
        return
    twice = tasks_of(copies)
    message = f"the {side} has one attempt more than once at {_at(twice)}"
    if unjudged := sum(one.status not in SCORED for one in copies):
        message += f", {numbered(unjudged, 'attempt')} without a verdict among them"
    ids = {one.trace for one in copies}
    hint = (
        f"retract all but one of each ({digits(ids)}), and compare again; runs of their own that bear one number are "
        "made again under one each, since what is stored keeps its number"
    )
    yield Refusal(Reason.ATTEMPTS_DUPLICATE, message, hint, twice, (), tuple(sorted(ids)))


def _shared(cells: Cells) -> Iterator[Refusal]:
    """Yield the refusal of traces that are in several cells."""
    held = Counter(chain.from_iterable({one.trace for one in cell.attempts} for cell in cells.values()))
    both = {one.trace: one.task for cell in cells.values() for one in cell.attempts if held[one.trace] > 1}
    if both:
        tasks = tuple(sorted(set(both.values())))
        message = f"several cells hold {numbered(len(both), 'trace')} in common, at {_at(tasks)}"
        yield Refusal(Reason.ATTEMPTS_DUPLICATE, message, "a trace is of one pair only", tasks, (), tuple(sorted(both)))


def _infrastructure(sheet: _Sheet, side: str) -> Iterator[Refusal]:
    limit = sheet.terms.infrastructure_limit
    opened = {task: tally.open for task, tally in sheet.tallies[side].items() if tally.open}
    count = sum(map(len, opened.values()))
    attempts = sheet.number * len(tasks_in(sheet.given))
    if _above(sheet, count):
        message = (
            f"the infrastructure ended {numbered(count, 'attempt')} of {attempts} of the {side}, not re-run, "
            f"where {limit:.1%} may be so: {named(opened)}"
        )
        rerun = tuple(Rerun(side, task, one.attempt, one.trace) for task, open_ in opened.items() for one in open_)
        hint = "run what the re-run list names and ingest it; an attempt with a score replaces the one that failed"
        yield Refusal(Reason.INFRASTRUCTURE_ERRORS, message, hint, tuple(sorted(opened)), rerun)
