"""The numbers of a decision, held against each other and against those of its report.

Whoever edits one number of what was measured, and seals it anew, has to edit all that follow from it: tasks and
attempts give how often each side tried, what went up and down gives how far the sides are apart, and how the traces of
a report ended gives what succeeded.

Invariants:
- what is not told (a cost, a noise floor) is not held, and neither is what only the traces could show;
- a sentence says which two numbers do not go together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal

from tracemark.gates.terms import LEVEL
from tracemark.model.gate import Evaluated, FigureOf, FiguresOf, GateReport, MeasuredOf
from tracemark.words import first_few, numbered

_CLOSE = 1e-9
"""Relative difference up to which two figures are one: sums are rounded once, and means of them again."""


def miscounted(told: MeasuredOf) -> list[str]:
    """Return in what the numbers that a decision measured contradict each other."""
    # where a task is counted wrong, what is summed over tasks says nothing more
    return list(_of_tasks(told)) or [*_of_sums(told), *_of_side("incumbent", told), *_of_side("candidate", told)]


def misreported(report: GateReport) -> Iterator[str]:
    """Yield in what a report's numbers contradict its terms, and how its traces ended."""
    told, terms = report.measured, report.terms
    if terms.level != LEVEL:
        yield f"its report was made at the level {terms.level:g}, and gates judge at {LEVEL:g}"
    if told is None:
        return
    if terms.attempts is not None and terms.attempts != told.attempts:
        yield f"its report asks for {numbered(terms.attempts, 'attempt')} at each task, and rests on {told.attempts}"
    if terms.evaluation_tasks and terms.evaluation_tasks != told.n:
        yield f"its report is of a set of {numbered(terms.evaluation_tasks, 'task')}, and compares {told.n}"
    sides = (("incumbent", report.incumbent, told.incumbent), ("candidate", report.candidate, told.candidate))
    for name, side, figures in sides:
        yield from _of_statuses(name, side, figures)
        allowed, every = Decimal(str(terms.infrastructure_limit)) * figures.attempts, figures.attempts
        if figures.open_errors > allowed:
            said = f"its report lets {terms.infrastructure_limit:.1%} of the attempts be ended by the infrastructure"
            yield f"{said}, and {figures.open_errors} of {every} of the {name} were"
    if shared := set(report.incumbent.traces) & set(report.candidate.traces):
        yield f"in its report {numbered(len(shared), 'trace')} {'is' if len(shared) == 1 else 'are'} on both sides"


def _of_tasks(told: MeasuredOf) -> Iterator[str]:
    for changes, word, sign in ((told.ups, "up", 1), (told.downs, "down", -1)):
        wrong = [
            one
            for one in changes
            if not (min(one.before, one.after) >= 0 and max(one.before, one.after) <= told.attempts)
            or (one.after - one.before) * sign <= 0
        ]
        if wrong:
            of = f"of {numbered(told.attempts, 'success')}"
            each = (f"{one.task!r}, from {one.before} to {one.after} {of}" for one in wrong)
            yield f"it counts as {word} what did not go {word}: {first_few(each, 1)}"
    names = [change.task for change in (*told.ups, *told.downs)]
    if len(names) != len(set(names)):
        yield "it counts a task twice"
    if told.clean is not (told.candidate.open_errors == 0):
        yield "whether the candidate is clean does not follow from its attempts"
    if told.n < 1 or told.attempts < 1 or told.ties < 0:
        tasks, attempts = numbered(told.n, "task"), numbered(told.attempts, "attempt")
        yield f"it compares {tasks} at {attempts} each, of which {told.ties} stayed as they were"


def _of_sums(told: MeasuredOf) -> Iterator[str]:
    """Yield where what moved, and how often each side succeeded, do not go together."""
    moved = sum(one.after - one.before for one in (*told.ups, *told.downs))
    apart = told.candidate.successes - told.incumbent.successes
    if moved != apart:
        yield f"by its tasks the candidate has {moved:+} successes, and by those of the two sides {apart:+}"
    floor = told.noise.tasks
    inside = None if floor is None else abs(told.w - told.l) <= floor
    if told.inside_noise is not inside:
        yield "whether its difference lies inside the noise does not follow from its noise floor"
    if (seen := told.noise.repeated) is not None and (
        not seen.difference <= seen.moved <= told.n or (seen.moved - seen.difference) % 2
    ):
        moved_of = f"{seen.moved} of {numbered(told.n, 'task')}"
        yield f"two evaluations cannot differ by {seen.difference} where {moved_of} moved"
    names = [one.name for one in told.conditions]
    if len(names) != len(set(names)):
        yield "it tells a condition twice"
    yield from _of_conditions(told, {one.name: one.met for one in told.conditions})


def _of_conditions(told: MeasuredOf, met: Mapping[str, bool]) -> Iterator[str]:
    """Yield where a condition is met, or not, against the figures that it is about."""
    before, after = told.incumbent, told.candidate
    costs = before.cost_per_success.value, after.cost_per_success.value
    cheap = costs[0] is not None and costs[1] is not None and costs[1] <= costs[0]
    if "cost" in met and met["cost"] is not cheap:
        yield "whether its condition on the cost is met does not follow from the costs"
    # a gate asks for pass^k of all attempts at a task
    if "reliability" in met and met["reliability"] is not (after.reliable >= before.reliable):
        yield "whether its condition on reliability is met does not follow from the reliable tasks"


def _of_side(name: str, told: MeasuredOf) -> Iterator[str]:
    """Yield where the figures of one side do not go together."""
    side: FiguresOf = getattr(told, name)
    every = told.n * told.attempts
    if side.attempts != every:
        counted = f"it counts {numbered(side.attempts, 'attempt')} of the {name}"
        yield f"{counted}, and {numbered(told.n, 'task')} at {told.attempts} each are {every}"
        return
    changes = [one.before if name == "incumbent" else one.after for one in (*told.ups, *told.downs)]
    least, most = sum(changes), sum(changes) + told.ties * told.attempts
    if not least <= side.successes <= most:
        yield f"it counts {numbered(side.successes, 'success')} of the {name}, and its tasks have {least} to {most}"
    if not 0 <= side.open_errors <= every or side.rerun_errors < 0 or not 0 <= side.reliable <= told.n:
        most_of = f"{numbered(told.n, 'task')} and {numbered(every, 'attempt')}"
        yield f"it counts more, or less, of the {name} than {most_of} can have"
    if not math.isclose(side.score, side.successes / told.attempts, rel_tol=_CLOSE):
        yield f"the score of the {name} does not follow from its successes"
    if not _reliable(side, told):
        yield f"how reliable the {name} is does not follow from its successes"
    for cost, over in ((side.cost_per_success, side.successes), (side.cost_per_reliable_task, side.reliable)):
        if not _costs(side.cost, cost, over):
            yield f"what a success of the {name} costs does not follow from what all attempts cost"
            return


def _reliable(side: FiguresOf, told: MeasuredOf) -> bool:
    """Return whether pass^k is told for each k, and is what follows for the first and the last of them."""
    if [one.k for one in side.reliability] != list(range(1, told.attempts + 1)):
        return False
    first, last = side.reliability[0], side.reliability[-1]
    share = side.successes / side.attempts
    return (
        math.isclose(first.combinations, share, rel_tol=_CLOSE)
        and math.isclose(first.power, share, rel_tol=_CLOSE)
        and math.isclose(last.combinations, side.reliable / told.n, rel_tol=_CLOSE)
    )


def _costs(whole: FigureOf, part: FigureOf, over: int) -> bool:
    """Return whether a cost over some number follows from the cost of everything; what is not told does."""
    if whole.value is None or over == 0:
        return part.value is None
    return whole.value >= 0 and (part.value is None or math.isclose(part.value, whole.value / over, rel_tol=_CLOSE))


def _of_statuses(name: str, side: Evaluated, figures: FiguresOf) -> Iterator[str]:
    """Yield where how the traces of a side ended does not give its figures."""
    traces = len(set(side.traces))
    for told in (side.statuses, side.evidence):
        if sum(told.values()) != traces or any(number < 0 for number in told.values()):
            yield f"its report has {numbered(traces, 'trace')} of the {name}, and tells of {sum(told.values())}"
            return
    ended = {status: side.statuses.get(status, 0) for status in ("success", "failure", "error")}
    # an attempt that is still open counts against the candidate: on the other side it is a success
    successes = ended["success"] + (figures.open_errors if name == "incumbent" else 0)
    if successes != figures.successes:
        counted = numbered(figures.successes, "success")
        yield f"its report counts {counted} of the {name}, and {successes} of its traces are"
    scored = ended["success"] + ended["failure"] + figures.open_errors
    if scored != figures.attempts:
        yield f"its report counts {numbered(figures.attempts, 'attempt')} of the {name}, and {scored} of its traces are"
    broken = figures.open_errors + figures.rerun_errors
    if ended["error"] != broken:
        yield f"its report counts {broken} attempts of the {name} that were ended, and {ended['error']} traces were"
