"""Refusals of what was attempted: the tasks of the frozen evaluation set, and the same ones in each cell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from tracemark.exporters.evaluation import meanings
from tracemark.gates.refusal import Cells, Reason, Refusal, named, placed_in, tasks_in
from tracemark.gates.terms import Terms
from tracemark.words import numbered

_SHOWN = 5
_DIGITS = 12


class NotOneToOne(NamedTuple):
    """What of the ids of a set and the tasks that they mean is not one to one.

    Tasks that one id means could be added after the set was frozen; and a task that several ids mean stands for all of
    them, so that the set is smaller than it was frozen.
    """

    wide: dict[str, tuple[str, ...]]
    """Ids that mean several tasks, sorted, with these."""
    doubled: dict[str, tuple[str, ...]]
    """Tasks that several ids mean, sorted, with these."""


def not_one_to_one(meant: Mapping[str, tuple[str, ...]]) -> NotOneToOne:
    """Return which ids mean several tasks, and which tasks several ids mean.

    Args:
        meant: the tasks that each id means; see `meanings`.
    """
    ids: dict[str, list[str]] = {}
    for listed, tasks in sorted(meant.items()):
        for task in tasks:
            ids.setdefault(task, []).append(listed)
    return NotOneToOne(
        {listed: tasks for listed, tasks in sorted(meant.items()) if len(tasks) > 1},
        {task: tuple(listed) for task, listed in sorted(ids.items()) if len(listed) > 1},
    )


def set_refusals(cells: Cells, terms: Terms) -> Iterator[Refusal]:
    """Yield what stands against comparing cells, by the tasks that they are of.

    Args:
        cells: the cells, by what each is called.
        terms: what they are compared under.
    """
    yield from _differing(cells)
    if terms.evaluation:
        meant = meanings(terms.evaluation, placed_in(cells.values()))
        yield from _strange(cells, meant)
        yield from _ambiguous(meant)
    yield from _evaluation(terms)


def _differing(cells: Cells) -> Iterator[Refusal]:
    every = tasks_in(cells)
    lacking = {
        side: lacks for side, cell in cells.items() if cell.attempts and (lacks := every.difference(cell.by_task))
    }
    if lacking:
        parts = [
            f"not in the {side}'s {numbered(len(lacks), 'task')}: {named(lacks)}" for side, lacks in lacking.items()
        ]
        message = f"the {_number(len(cells))} cells are not of the same tasks; {'; '.join(parts)}"
        hint = "evaluate all on the same tasks; a task is named with its domain"
        yield Refusal(Reason.TASKS_DIFFER, message, hint, tuple(sorted(frozenset().union(*lacking.values()))))


def _number(number: int) -> str:
    return {2: "two", 4: "four"}.get(number, str(number))


def _strange(cells: Cells, meant: Mapping[str, tuple[str, ...]]) -> Iterator[Refusal]:
    strange = tasks_in(cells).difference(*meant.values())
    if strange:
        message = f"the evaluation set does not hold {numbered(len(strange), 'task')}: {named(strange)}"
        hint = "leave these traces out, or correct the ids in params.yaml: evaluation"
        yield Refusal(Reason.TASKS_DIFFER, message, hint, tuple(sorted(strange)))


def _ambiguous(meant: Mapping[str, tuple[str, ...]]) -> Iterator[Refusal]:
    """Yield the refusal of ids and tasks that are not one to one."""
    wide, doubled = not_one_to_one(meant)
    if not wide and not doubled:
        return
    said = [f"the id {listed!r} means {named(tasks)}" for listed, tasks in islice(wide.items(), _SHOWN)]
    said += [f"the task {task!r} is meant by {named(listed)}" for task, listed in islice(doubled.items(), _SHOWN)]
    counts = [numbered(len(wide), "id") + " of several tasks"] if wide else []
    counts += [numbered(len(doubled), "task") + " of several ids"] if doubled else []
    message = f"the evaluation set's ids and the tasks are not one to one, {' and '.join(counts)}: {'; '.join(said)}"
    hint = (
        "list each task once, as DOMAIN/TASK, and freeze anew; retract runs without a domain, or state their run.domain"
    )
    concerned = doubled.keys() | {task for found in wide.values() for task in found}
    yield Refusal(Reason.EVALUATION_CHANGED, message, hint, tuple(sorted(concerned)))


def _evaluation(terms: Terms) -> Iterator[Refusal]:
    now, then = terms.evaluation_digest, terms.frozen_digest
    if then is not None and now != then:
        found = f"has digest {now[:_DIGITS]}" if now else "is empty"
        message = terms.changed or f"the evaluation set {found}, and was frozen as {then[:_DIGITS]}"
        # an empty set cannot be frozen
        anew = "freeze the set anew" if now else "list another set and freeze that"
        hint = f"undo the change, or {anew}: earlier decisions then rest on another set"
        yield Refusal(Reason.EVALUATION_CHANGED, message, hint)
    for export, tasks in sorted(terms.leaked.items()):
        yield Refusal(Reason.EVALUATION_LEAKED, *leaked(export, tasks), tuple(sorted(tasks)))


def leaked(export: str, tasks: Collection[str]) -> tuple[str, str]:
    """Return what is said of a training export that holds tasks of the evaluation set, and what helps."""
    message = f"the training export {export!r} holds {numbered(len(tasks), 'task')} of the evaluation set: "
    hint = "take them out of the set and freeze it anew; a model trained on the export is no longer judged by them"
    return message + named(tasks), hint
