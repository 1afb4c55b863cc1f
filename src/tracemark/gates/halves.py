"""Refusals of what the cells are of: each one pair, two of them alike in the half that is not judged, one grader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from tracemark.gates.cell import SCORED, WORDS, Attempt, Cell, differing
from tracemark.gates.refusal import Cells, Reason, Refusal, digits, named, tasks_of, traces_of
from tracemark.gates.terms import Half, Terms
from tracemark.words import numbered

_SHOWN = 5
_CLAIMED = ("name", "revision")
_SHORT = len("tm1:") + 12


def pair_refusals(cells: Cells, terms: Terms) -> Iterator[Refusal]:
    """Yield what stands against each cell as the evaluation of its pair, and against all for who judged them.

    Args:
        cells: the cells, by what each is called.
        terms: what they are compared under.
    """
    # without a set, and without attempts that stand for one, there is nothing to run
    run = bool(terms.evaluation) or any(cell.attempts for cell in cells.values())
    for side, cell in cells.items():
        if not cell.attempts:
            message = f"there is no evaluation trace of the {side}, {cell.pair.harness[:_SHORT]} with {cell.pair.model}"
            hint = "run the evaluation set under it and ingest the traces" if run else "list an evaluation set first"
            yield Refusal(Reason.NOTHING_TO_COMPARE, message, hint)
        yield from _not_the_pair(side, cell)
    judged = {side: own(cell) for side, cell in cells.items()}
    yield from _graders(judged)
    yield from _thresholds(judged)


def own(cell: Cell) -> Cell:
    """Return a cell without the attempts that were not made by its pair: of these nothing but that is told."""
    others = {id(one) for one in (*_of_other_harnesses(cell), *chain.from_iterable(_of_other_models(cell).values()))}
    if not others:
        return cell
    return replace(cell, attempts=tuple(one for one in cell.attempts if id(one) not in others))


def half_refusals(cells: Cells, half: Half) -> Iterator[Refusal]:
    """Yield what stands against judging one half by two cells of which it differs: the other half does as well.

    Args:
        cells: the two cells, by what each is called; the one to judge is the second.
        half: the half that is judged.
    """
    yield from _confounded(cells, half)


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
    members = differing(incumbent.model, candidate.model)
    if not incumbent.attempts or not candidate.attempts:
        # what was never run shows no more of its model than what is claimed of it
        members = tuple(name for name in members if name in _CLAIMED)
    return (*components, *(WORDS[member] for member in members))


def alike(cells: Cells, half: Half) -> Iterator[Refusal]:
    """Yield the refusal that the half to judge is the same in two cells; see `half_refusals`."""
    (before, old), (after, new) = cells.items()
    if half is Half.HARNESS and old.pair.harness == new.pair.harness:
        message = f"{after} and {before} are one harness, {new.pair.harness[:_SHORT]}"
    elif half is Half.MODEL and old.model == new.model:
        message = f"{after} and {before} are one model, {new.model}"
    else:
        return
    hint = f"name another {half.value}"
    if after == "candidate":
        hint += " as the candidate, or none: in params.yaml: gates.candidates as well"
    yield Refusal(Reason.NOTHING_TO_COMPARE, message, hint)


def _confounded(cells: Cells, half: Half) -> Iterator[Refusal]:
    old, new = cells.values()
    if not old.attempts or not new.attempts:
        return
    if half is Half.HARNESS and (members := differing(old.model, new.model)):
        said = "; ".join(
            f"{WORDS[member]} {_value(getattr(old.model, member))} against {_value(getattr(new.model, member))}"
            for member in members
        )
        message = f"the harness is judged, and the models of the two cells differ: {said}"
        yield Refusal(Reason.CONFOUNDED, message, "evaluate both harnesses with the very same model")
    if half is Half.MODEL and old.pair.harness != new.pair.harness:
        components = [name for name in changed(old, new) if name not in WORDS.values()]
        said = ", ".join(components) if components != ["harness"] else "which components is not known"
        message = f"the model is judged, and the harnesses of the two cells differ: {said}"
        yield Refusal(Reason.CONFOUNDED, message, "evaluate both models under the accepted harness")


def _value(member: str | None) -> str:
    return "unrecorded" if member is None else repr(member)


def _not_the_pair(side: str, cell: Cell) -> Iterator[Refusal]:
    if others := _of_other_harnesses(cell):
        counted = Counter(one.fingerprint or "no harness" for one in others)
        found = ", ".join(f"{number} under {name}" for name, number in counted.most_common(_SHOWN))
        message = f"not stamped {cell.pair.harness}: {numbered(len(others), 'attempt')} of the {side}, {found}"
        traces = traces_of(others)
        # whoever runs first what is missing without them has too many once they are stamped
        hint = (
            f"stamp what is known of these traces ({digits(traces)}) and compare again before anything is run, or "
            "leave them out; tracemark audit TRACE shows why"
        )
        yield Refusal(Reason.NOT_THE_PAIR, message, hint, tasks_of(others), (), traces)
    if wrong := _of_other_models(cell):
        message = f"of the {side}'s attempts some were made by another model than {cell.pair.model}: " + "; ".join(
            f"{WORDS[member]} differs in {len(attempts)}" for member, attempts in wrong.items()
        )
        strangers = list(chain.from_iterable(wrong.values()))
        traces = traces_of(strangers)
        hint = f"leave these traces out ({digits(traces)}), or evaluate the set anew with one model"
        if "revision" in wrong and cell.pair.model.revision is None:
            hint = f"name the revision that is meant, {cell.pair.model.name}@REVISION; or {hint}"
        yield Refusal(Reason.NOT_THE_PAIR, message, hint, tasks_of(strangers), (), traces)


def _of_other_harnesses(cell: Cell) -> list[Attempt]:
    return [one for one in cell.attempts if one.fingerprint != cell.pair.harness]


def _of_other_models(cell: Cell) -> dict[str, list[Attempt]]:
    """Return for each member of the model in which attempts differ from the pair's those attempts."""
    return {
        member: strangers
        for position, member in enumerate(WORDS)
        if (strangers := _strangers(cell, position, cell.pair.model[position]))
    }


def _strangers(cell: Cell, position: int, claimed: str | None) -> list[Attempt]:
    """Return the attempts whose member of the model is not the claimed one; that of most where none is claimed."""
    if not cell.attempts:
        return []
    member = cell.model[position] if claimed is None else claimed
    return [one for one in cell.attempts if one.model[position] != member]


def _graders(cells: Cells) -> Iterator[Refusal]:
    found: dict[str, list[Attempt]] = {}
    for one in chain.from_iterable(cell.attempts for cell in cells.values()):
        # nobody has to judge what used up its budget
        if one.status in SCORED and not (one.exhausted and one.grader is None):
            found.setdefault(one.task, []).append(one)
    several = {task: made for task, made in found.items() if len({one.grader for one in made}) > 1}
    if several:
        concerned = list(chain.from_iterable(several.values()))
        counted = Counter(one.grader for one in concerned)
        said = ", ".join(sorted(map(_grader, counted)))
        message = f"different graders ({said}) judged attempts at {numbered(len(several), 'task')}: {named(several)}"
        hint = "a stored verdict keeps its grader: retract these attempts, and make them again for one grader to judge"
        (most, first), (_, second) = counted.most_common(2)
        if first > second:
            concerned = [one for one in concerned if one.grader != most]
            hint += (
                f", or retract those alone that {_grader(most)} did not judge, and have them made again for that one"
            )
        traces = traces_of(concerned)
        hint += f" ({digits(traces)})"
        if any(one.grader is None or one.grader[1] is None for one in concerned):
            hint += (
                "; what is not recorded of a grader can be stated: tracemark export atif TRACE --out DIR, put it into "
                "`outcome.grader` of extra.tracemark, and ingest that"
            )
        yield Refusal(Reason.GRADERS_DIFFER, message, hint, tuple(sorted(several)), (), traces)


def _thresholds(cells: Cells) -> Iterator[Refusal]:
    """Yield the refusal of statuses that no one threshold makes of their rewards: it was changed between the runs."""
    by_reward = [one for cell in cells.values() for one in cell.attempts if one.reward is not None]
    solved, failed = (
        {one.reward or 0.0 for one in by_reward if one.status == status} for status in ("success", "failure")
    )
    if not solved or not failed or min(solved) > max(failed):
        return
    concerned = [one for one in by_reward if one.status in SCORED and min(solved) <= (one.reward or 0.0) <= max(failed)]
    message = (
        f"a reward of {min(solved):g} was taken for a success and one of {max(failed):g} for a failure, where "
        f"ingest.success_reward makes verdicts of them: {numbered(len(concerned), 'attempt')} between the two, at "
        f"{numbered(len(tasks_of(concerned)), 'task')} ({named(tasks_of(concerned))})"
    )
    traces = traces_of(concerned)
    hint = (
        f"a stored verdict stands: retract these and make them again ({digits(traces)}), or ingest all runs of the set "
        "into a new corpus"
    )
    yield Refusal(Reason.GRADERS_DIFFER, message, hint, tasks_of(concerned), (), traces)


def _grader(grader: tuple[str, str | None] | None) -> str:
    if grader is None:
        return "unrecorded"
    return f"{grader[0]!r} {'of unrecorded version' if grader[1] is None else grader[1]}"
