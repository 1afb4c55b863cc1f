"""Why two cells cannot be compared. A refusal is data, and every one that applies is listed, not only the first.

A comparison is refused rather than repaired: whoever leaves out the tasks that one cell lacks, or the attempts that
one has more of, decides what is compared. Scores of unequal numbers of attempts are not compared either: at a task
that succeeds nine times in ten, one attempt mostly scores above twenty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from tracemark.gates.cell import SCORED, WORDS, Attempt, Cell, TaskTally, differing, never_judged
from tracemark.gates.terms import Half, Terms, covers

_SHOWN = 5
_DIGITS, _SHORT = 12, len("tm1:") + 12


class Reason(StrEnum):
    """What stands against a comparison, in the order in which refusals are listed."""

    NOTHING_TO_COMPARE = "nothing-to-compare"
    """A cell has no attempt, or both are of the same half that is to be judged."""
    NOT_THE_PAIR = "not-the-pair"
    """An attempt was not made by the pair that its cell is of."""
    CONFOUNDED = "confounded"
    """The other half differs as well, so nothing tells which of them made the difference."""
    TASKS_DIFFER = "tasks-differ"
    """A task was attempted in one cell only, or is not in the evaluation set."""
    ATTEMPTS_MISSING = "attempts-missing"
    """A task has fewer attempts than it must have."""
    ATTEMPTS_UNEQUAL = "attempts-unequal"
    """Tasks have unequal numbers of attempts, or more than asked for, those without a verdict included."""
    ATTEMPTS_DUPLICATE = "attempts-duplicate"
    """One attempt at a task is there twice."""
    INFRASTRUCTURE_ERRORS = "infrastructure-errors"
    """The infrastructure ended more attempts than the limit allows, and nobody has re-run them."""
    GRADERS_DIFFER = "graders-differ"
    """A task was judged by different graders, or by different versions of one."""
    EVALUATION_CHANGED = "evaluation-changed"
    """The evaluation set is not the one that was frozen, or one of its ids means several tasks."""
    EVALUATION_LEAKED = "evaluation-leaked"
    """A task of the evaluation set is in a training export."""


class Rerun(NamedTuple):
    """One attempt that is still to be made."""

    side: str
    """`incumbent` or `candidate`."""
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


class Sides(NamedTuple):
    """Both cells."""

    incumbent: Cell
    candidate: Cell

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that either cell attempted."""
        return frozenset(self.incumbent.by_task).union(self.candidate.by_task)


def refusals(incumbent: Cell, candidate: Cell, terms: Terms) -> tuple[Refusal, ...]:
    """Return everything that stands against comparing two cells, in the order of `Reason`; nothing when nothing does.

    Args:
        incumbent: the evaluation of the accepted pair.
        candidate: the evaluation of the pair with one half replaced.
        terms: what the comparison is made under.
    """
    sides = Sides(incumbent, candidate)
    return (
        *_nothing(sides, terms),
        *_not_the_pair(sides),
        *_confounded(sides, terms),
        *_tasks(sides, terms),
        *_missing(sides, terms),
        *_unequal(sides, terms),
        *_never_judged(sides, terms),
        *_duplicates(sides),
        *_infrastructure(sides, terms),
        *_graders(sides),
        *_ambiguous(sides, terms),
        *_evaluation(terms),
    )


def wanted(incumbent: Cell, candidate: Cell, terms: Terms) -> int:
    """Return how many scored attempts a task must have: as told, else as most tasks were given; the larger of two.

    Attempts that the infrastructure ended count as given, so that a set of which it ended one attempt at every task is
    not taken for a set of fewer attempts.
    """
    if terms.attempts is not None:
        return terms.attempts
    counted = Counter(chain(incumbent.made.values(), candidate.made.values()))
    return max(1, max(counted, key=lambda number: (counted[number], number), default=1))


def named(tasks: Collection[str]) -> str:
    """Return the first few of some tasks, and how many more there are."""
    shown = ", ".join(repr(task) for task in sorted(tasks)[:_SHOWN])
    return shown + (f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else "")


def numbered(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _nothing(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    for side, cell in zip(Sides._fields, sides, strict=True):
        if not cell.attempts:
            message = f"there is no evaluation trace of the {side}, {cell.pair.harness[:_SHORT]} with {cell.pair.model}"
            yield Refusal(Reason.NOTHING_TO_COMPARE, message, "run the evaluation set under it and ingest the traces")
    old, new = sides
    if terms.half is Half.HARNESS and old.pair.harness == new.pair.harness:
        message = f"candidate and incumbent are one harness, {new.pair.harness[:_SHORT]}"
    elif terms.half is Half.MODEL and old.model == new.model:
        message = f"candidate and incumbent are one model, {new.model}"
    else:
        return
    hint = f"name another {terms.half.value} as the candidate, or none: in params.yaml: gates.candidates as well"
    yield Refusal(Reason.NOTHING_TO_COMPARE, message, hint)


def _not_the_pair(sides: Sides) -> Iterator[Refusal]:
    for side, cell in zip(Sides._fields, sides, strict=True):
        others = [one for one in cell.attempts if one.fingerprint != cell.pair.harness]
        if others:
            counted = Counter(one.fingerprint or "no harness" for one in others)
            found = ", ".join(f"{number} under {name}" for name, number in counted.most_common(_SHOWN))
            message = f"not stamped {cell.pair.harness}: {numbered(len(others), 'attempt')} of the {side}, {found}"
            hint = "stamp what is known, or leave these traces out; tracemark audit TRACE shows why"
            yield Refusal(Reason.NOT_THE_PAIR, message, hint, _tasks_of(others))
        wrong = {
            member: strangers
            for position, member in enumerate(WORDS)
            if (strangers := _strangers(cell, position, cell.pair.model[position]))
        }
        if wrong:
            message = f"of the {side}'s attempts some were made by another model than {cell.pair.model}: " + "; ".join(
                f"{WORDS[member]} differs in {len(attempts)}" for member, attempts in wrong.items()
            )
            hint = "leave these traces out, or evaluate the set anew with one model"
            if "revision" in wrong and cell.pair.model.revision is None:
                hint = f"name the revision that is meant, {cell.pair.model.name}@REVISION; or {hint}"
            yield Refusal(Reason.NOT_THE_PAIR, message, hint, _tasks_of(chain.from_iterable(wrong.values())))


def _strangers(cell: Cell, position: int, claimed: str | None) -> list[Attempt]:
    """Return the attempts whose member of the model is not the claimed one; that of most where none is claimed."""
    if not cell.attempts:
        return []
    member = cell.model[position] if claimed is None else claimed
    return [one for one in cell.attempts if one.model[position] != member]


def _tasks_of(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    return tuple(sorted({one.task for one in attempts}))


def changed(incumbent: Cell, candidate: Cell) -> tuple[str, ...]:
    """Return what differs between the pairs of two cells: components of the harness, then members of the model.

    It is `harness` where the components of one of two harnesses are not at hand.
    """
    before, after = incumbent.components, candidate.components
    components = ["harness"]
    if incumbent.pair.harness == candidate.pair.harness:
        components = []
    elif before and after:
        components = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    return (*components, *(WORDS[member] for member in differing(incumbent.model, candidate.model)))


def _confounded(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    old, new = sides
    if not old.attempts or not new.attempts:
        return
    if terms.half is Half.HARNESS and (members := differing(old.model, new.model)):
        said = "; ".join(
            f"{WORDS[member]} {_value(getattr(old.model, member))} against {_value(getattr(new.model, member))}"
            for member in members
        )
        message = f"the harness is judged, and the models of the two cells differ: {said}"
        yield Refusal(Reason.CONFOUNDED, message, "evaluate both harnesses with the very same model")
    if terms.half is Half.MODEL and old.pair.harness != new.pair.harness:
        components = [name for name in changed(old, new) if name not in WORDS.values()]
        said = ", ".join(components) if components != ["harness"] else "which components is not known"
        message = f"the model is judged, and the harnesses of the two cells differ: {said}"
        yield Refusal(Reason.CONFOUNDED, message, "evaluate both models under the accepted harness")


def _value(member: str | None) -> str:
    return "unrecorded" if member is None else repr(member)


def _tasks(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    old, new = (frozenset(cell.by_task) for cell in sides)
    if old and new and old != new:
        parts = [
            f"{numbered(len(only), 'task')} only in the {side}'s: {named(only)}"
            for side, only in zip(Sides._fields, (old - new, new - old), strict=True)
            if only
        ]
        message = f"the two cells are not of the same tasks; {'; '.join(parts)}"
        hint = "evaluate both on the same tasks; a task is named with its domain"
        yield Refusal(Reason.TASKS_DIFFER, message, hint, tuple(sorted(old ^ new)))
    if terms.evaluation:
        strange = {task for task in sides.tasks if not any(covers(listed, task) for listed in terms.evaluation)}
        if strange:
            message = f"the evaluation set does not hold {numbered(len(strange), 'task')}: {named(strange)}"
            hint = "leave these traces out, or correct the ids in params.yaml: evaluation"
            yield Refusal(Reason.TASKS_DIFFER, message, hint, tuple(sorted(strange)))


def _missing(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    number, expected = wanted(*sides, terms), _expected(sides, terms)
    for side, cell in zip(Sides._fields, sides, strict=True):
        if not cell.attempts:
            continue
        tallies = cell.tally(number)
        lacking = {task: number - _filled(tallies.get(task)) for task in expected}
        lacking = {task: lacks for task, lacks in lacking.items() if lacks > 0}
        if not lacking:
            continue
        unjudged = sum(tallies[task].unjudged for task in lacking if task in tallies)
        message = (
            f"the {side} lacks {numbered(sum(lacking.values()), 'attempt')} at {numbered(len(lacking), 'task')}, where "
            f"each must have {number}: {named(lacking)}"
        )
        hint = "run what the re-run list names"
        if unjudged:
            message += f"; what has no verdict counts as missing, {numbered(unjudged, 'attempt')}"
            hint = f"have judged or retract what has no verdict, then {hint}"
        rerun = tuple(one for task, lacks in sorted(lacking.items()) for one in _absent(side, cell, task, lacks))
        yield Refusal(Reason.ATTEMPTS_MISSING, message, hint, tuple(sorted(lacking)), rerun)


def _filled(tally: TaskTally | None) -> int:
    return 0 if tally is None else tally.scored + len(tally.open)


def _expected(sides: Sides, terms: Terms) -> frozenset[str]:
    """Return the tasks that a cell must have: those of either cell, and each id of the set that means none of them."""
    unmet = {listed for listed in terms.evaluation if not any(covers(listed, task) for task in sides.tasks)}
    return sides.tasks | unmet


def _absent(side: str, cell: Cell, task: str, lacks: int) -> Iterator[Rerun]:
    """Yield the attempts that a task lacks, by the numbers that the cell's other tasks have."""
    there = {one.number for one in cell.by_task.get(task, ()) if one.status != "unknown"}
    numbers = sorted({one.attempt for one in cell.attempts if isinstance(one.attempt, int) and one.number not in there})
    for position in range(lacks):
        yield Rerun(side, task, numbers[position] if position < len(numbers) else None, None)


def _unequal(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    number = wanted(*sides, terms)
    many: dict[str, set[int]] = {}
    for cell in sides:
        for task, tally in cell.tally(number).items():
            many.setdefault(task, set()).add(_filled(tally))
    if terms.attempts is not None:
        more = {task for task, found in many.items() if max(found) > number}
        if more:
            message = (
                f"there are more than the {number} attempts asked for at {numbered(len(more), 'task')}: {named(more)}"
            )
            hint = "set the number of attempts to what was run, or leave whole evaluations out; never single attempts"
            yield Refusal(Reason.ATTEMPTS_UNEQUAL, message, hint, tuple(sorted(more)))
    elif odd := {task for task, found in many.items() if found != {number}}:
        counted = Counter(count for found in many.values() for count in found)
        said = ", ".join(f"{count} at {numbered(counted[count], 'task')}" for count in sorted(counted))
        message = f"tasks have unequal numbers of attempts ({said}): {named(odd)}"
        hint = "run what is missing, or state how many attempts count as an evaluation"
        yield Refusal(Reason.ATTEMPTS_UNEQUAL, message, hint, tuple(sorted(odd)))


def _never_judged(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    """Yield the refusal of attempts without a verdict beside a whole evaluation: to leave them out is to choose."""
    number = wanted(*sides, terms)
    for side, cell in zip(Sides._fields, sides, strict=True):
        whole = (task for task, tally in cell.tally(number).items() if _filled(tally) >= number)
        beside = {task: found for task in whole if (found := never_judged(cell.by_task[task]))}
        if beside:
            traces = sorted(one.trace[:_DIGITS] for one in chain.from_iterable(beside.values()))
            message = (
                f"the {side} has {numbered(len(traces), 'attempt')} without a verdict beside the {number} asked for, "
                f"at {numbered(len(beside), 'task')}: {named(beside)}"
            )
            hint = "have them judged, or tracemark retract TRACE --reason TEXT for what was no attempt: "
            yield Refusal(Reason.ATTEMPTS_UNEQUAL, message, hint + ", ".join(traces[:_SHOWN]), tuple(sorted(beside)))


def _duplicates(sides: Sides) -> Iterator[Refusal]:
    for side, cell in zip(Sides._fields, sides, strict=True):
        seen = Counter(
            (one.task, one.number) for one in cell.attempts if one.number is not None and one.status in SCORED
        )
        traces = Counter(one.trace for one in cell.attempts)
        twice = {task for (task, _), count in seen.items() if count > 1}
        twice |= {one.task for one in cell.attempts if traces[one.trace] > 1}
        if twice:
            message = f"the {side} has one attempt more than once at {numbered(len(twice), 'task')}: {named(twice)}"
            hint = "retract the copies, or give each run its own attempt number"
            yield Refusal(Reason.ATTEMPTS_DUPLICATE, message, hint, tuple(sorted(twice)))
    old, new = ({one.trace: one.task for one in cell.attempts} for cell in sides)
    if both := old.keys() & new.keys():
        tasks = tuple(sorted({old[trace] for trace in both}))
        message = f"both cells hold {numbered(len(both), 'trace')} in common, at {numbered(len(tasks), 'task')}: "
        yield Refusal(Reason.ATTEMPTS_DUPLICATE, message + named(tasks), "a trace is of one pair only", tasks)


def _infrastructure(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    number = wanted(*sides, terms)
    for side, cell in zip(Sides._fields, sides, strict=True):
        opened = {task: tally.open for task, tally in cell.tally(number).items() if tally.open}
        count = sum(map(len, opened.values()))
        attempts = number * len(sides.tasks)
        if count and count > terms.infrastructure_limit * attempts:
            message = (
                f"the infrastructure ended {numbered(count, 'attempt')} of {attempts} of the {side}, not re-run, "
                f"where {terms.infrastructure_limit:.1%} may be so: {named(opened)}"
            )
            rerun = tuple(Rerun(side, task, one.attempt, one.trace) for task, open_ in opened.items() for one in open_)
            hint = "run what the re-run list names and ingest it; an attempt with a score replaces the one that failed"
            yield Refusal(Reason.INFRASTRUCTURE_ERRORS, message, hint, tuple(sorted(opened)), rerun)


def _graders(sides: Sides) -> Iterator[Refusal]:
    found: dict[str, set[tuple[str, str | None] | None]] = {}
    for one in chain(sides.incumbent.attempts, sides.candidate.attempts):
        if one.status in SCORED:
            found.setdefault(one.task, set()).add(one.grader)
    several: Mapping[str, set[tuple[str, str | None] | None]] = {
        task: graders for task, graders in found.items() if len(graders) > 1
    }
    if several:
        said = sorted({_grader(grader) for grader in chain.from_iterable(several.values())})
        message = f"different graders ({', '.join(said)}) judged attempts at {numbered(len(several), 'task')}: "
        hint = "have all attempts judged again by one version of the grader"
        yield Refusal(Reason.GRADERS_DIFFER, message + named(several), hint, tuple(sorted(several)))


def _grader(grader: tuple[str, str | None] | None) -> str:
    if grader is None:
        return "unrecorded"
    return f"{grader[0]!r} {'of unrecorded version' if grader[1] is None else grader[1]}"


def _ambiguous(sides: Sides, terms: Terms) -> Iterator[Refusal]:
    """Yield the refusal of ids that mean tasks of several domains: those could be added after the set was frozen."""
    meant = {listed: [task for task in sides.tasks if covers(listed, task)] for listed in terms.evaluation}
    several = {listed: tasks for listed, tasks in meant.items() if len(tasks) > 1}
    if several and terms.frozen_digest is not None:
        said = "; ".join(f"{listed!r} means {named(several[listed])}" for listed in sorted(several)[:_SHOWN])
        message = f"{numbered(len(several), 'id')} of the evaluation set cannot tell tasks of several domains: {said}"
        hint = "list each as DOMAIN/TASK and freeze anew; retract runs without a domain, or state their run.domain"
        yield Refusal(Reason.EVALUATION_CHANGED, message, hint, tuple(sorted(set(chain(*several.values())))))


def _evaluation(terms: Terms) -> Iterator[Refusal]:
    now, then = terms.evaluation_digest or "", terms.frozen_digest
    if then is not None and now != then:
        message = f"the evaluation set has digest {now[:_DIGITS]}, and was frozen as {then[:_DIGITS]}"
        hint = "undo the change, or freeze the set anew: earlier decisions then rest on another set"
        yield Refusal(Reason.EVALUATION_CHANGED, message, hint)
    for export, tasks in sorted(terms.leaked.items()):
        message = f"the training export {export!r} holds {numbered(len(tasks), 'task')} of the evaluation set: "
        hint = "take them out of the set and freeze it anew; a model trained on the export is no longer judged by them"
        yield Refusal(Reason.EVALUATION_LEAKED, message + named(tasks), hint, tuple(sorted(tasks)))
