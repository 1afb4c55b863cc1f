"""Numbers that do not go together are named, whichever of them was edited, and honest ones never are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gates.evaluations import NEW, OLD, attempts, changed, of
from tracemark import digest
from tracemark.gates.cell import Attempt
from tracemark.gates.compare import compare
from tracemark.gates.reckoning import miscounted, misreported
from tracemark.gates.report import stored
from tracemark.gates.terms import Conditions, Half, Terms
from tracemark.model.gate import GateReport

TASKS = tuple(f"shop/e-{at}" for at in range(6))
BEFORE = dict(zip(TASKS, (0, 1, 3, 3, 2, 0), strict=True))
AFTER = dict(zip(TASKS, (2, 3, 3, 2, 2, 0), strict=True))
ASKED = Conditions(no_regression=TASKS[:1], reliability=3, cost=True, fresh=True)


def judged(before: list[Attempt], after: list[Attempt], **terms: Any) -> GateReport:
    """Return the report of two sides."""
    told = {"half": Half.HARNESS, "conditions": ASKED, "evaluation": frozenset(TASKS), "attempts": 3, **terms}
    made = stored(compare(of(before, OLD), of(after, NEW), Terms(**told)))
    assert made.measured is not None, made.refusals
    return made


def honest() -> GateReport:
    """Return a report in which an attempt of either side is open, and one was made again."""
    sides = []
    for each, harness in ((BEFORE, OLD), (AFTER, NEW)):
        made = changed(attempts(each, 3, harness), TASKS[5], 2, status="error")
        again = made[0]._replace(trace=digest.of([harness, "again"]), status="error")
        sides.append([*made, again])
    return judged(*sides, infrastructure_limit=0.1)


def wrong(value: Mapping[str, Any]) -> list[str]:
    report = GateReport.model_validate(value)
    assert report.measured is not None
    return [*miscounted(report.measured), *misreported(report)]


def edited(*path: str | int, to: Any) -> dict[str, Any]:
    """Return the honest report with one member that is another."""
    value = honest().model_dump(mode="json")
    *way, last = path
    place: Any = value
    for name in way:
        place = place[name]
    assert not isinstance(place, dict) or place.get(last) != to
    place[last] = to
    return value


def test_an_honest_report_says_nothing_against_itself() -> None:
    report = honest()
    assert report.measured is not None
    assert (report.measured.incumbent.open_errors, report.measured.candidate.rerun_errors) == (1, 1)
    assert wrong(report.model_dump(mode="json")) == []


COUNTS = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@given(before=COUNTS, after=COUNTS, ended=st.sets(st.integers(0, 35)), again=st.sets(st.integers(0, 35)), cost=COUNTS)
def test_no_honest_report_says_anything_against_itself(
    before: list[int], after: list[int], ended: set[int], again: set[int], cost: list[int]
) -> None:
    made = []
    for harness, counts, first in ((OLD, before, 0), (NEW, after, 18)):
        every = attempts(dict(zip(TASKS, counts, strict=True)), 3, harness)
        every = [one._replace(cost=0.1 * (at + cost[at % 6]) or None) for at, one in enumerate(every)]
        every = [one._replace(status="error") if at + first in ended else one for at, one in enumerate(every)]
        more = [one for at, one in enumerate(every) if at + first in again - ended]
        every += [one._replace(trace=digest.of([one.trace]), status="error") for one in more]
        made.append(every)
    assert wrong(judged(*made, infrastructure_limit=1.0).model_dump(mode="json")) == []


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("candidate", "statuses"), {"failure": 19}, "its report counts 12 successes of the candidate, and 0 of its"),
        (("candidate", "statuses"), {"success": 12, "failure": 4}, "has 19 traces of the candidate, and tells of 16"),
        (("candidate", "statuses", "success"), -12, "tells of -5"),
        (("candidate", "statuses", "unknown"), 1, "tells of 20"),
        (("incumbent", "evidence"), {"recorded": 1}, "has 19 traces of the incumbent, and tells of 1"),
        (
            ("measured", "candidate", "successes"),
            0,
            "the candidate has +2 successes, and by those of the two sides -10",
        ),
        (("measured", "incumbent", "successes"), 9, "and 10 of its traces are"),
        (
            ("measured", "incumbent", "attempts"),
            6,
            "it counts 6 attempts of the incumbent, and 6 tasks at 3 each are 18",
        ),
        (("measured", "candidate", "score"), 6.0, "the score of the candidate does not follow"),
        (("measured", "candidate", "reliable"), 7, "it counts more, or less, of the candidate"),
        (("measured", "candidate", "reliable"), 3, "how reliable the candidate is does not follow"),
        (("measured", "candidate", "open_errors"), -1, "it counts more, or less, of the candidate"),
        (("measured", "candidate", "rerun_errors"), 0, "1 attempts of the candidate that were ended, and 2 traces"),
        (("measured", "candidate", "reliability"), [], "how reliable the candidate is does not follow"),
        (("measured", "incumbent", "reliability", 2, "combinations"), 0.0, "how reliable the incumbent is"),
        (("measured", "candidate", "cost_per_success", "value"), 0.0, "what a success of the candidate costs"),
        (("measured", "candidate", "cost", "value"), -9.0, "what a success of the candidate costs"),
        (("measured", "inside_noise"), None, "inside the noise does not follow"),
        (("measured", "noise", "tasks"), None, "inside the noise does not follow"),
        (("measured", "clean"), True, "whether the candidate is clean"),
        (("measured", "attempts"), 4, "it counts 18 attempts of the incumbent, and 6 tasks at 4 each are 24"),
        (("measured", "conditions", 2, "met"), False, "condition on the cost is met does not follow"),
        (("measured", "conditions", 1, "met"), False, "condition on reliability is met does not follow"),
        (("measured", "conditions", 0, "name"), "cost", "it tells a condition twice"),
        (("terms", "level"), 0.5, "made at the level 0.5, and gates judge at 0.05"),
        (("terms", "attempts"), 4, "asks for 4 attempts at each task, and rests on 3"),
        (("terms", "evaluation_tasks"), 8, "is of a set of 8 tasks, and compares 6"),
        (("terms", "infrastructure_limit"), 0.05, "lets 5.0% of the attempts be ended by the infrastructure, and 1 of"),
    ],
)
def test_an_edited_number_is_named_with_what_it_does_not_go_with(
    path: tuple[str | int, ...], to: Any, said: str
) -> None:
    found = wrong(edited(*path, to=to))
    assert any(said in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("difference", "moved", "right"),
    [(0, 0, True), (2, 4, True), (6, 6, True), (4, 2, False), (1, 4, False), (7, 7, False)],
)
def test_what_two_evaluations_differ_by_goes_with_how_many_tasks_moved(
    difference: int, moved: int, right: bool
) -> None:
    seen = {"digest": "d" * 64, "difference": difference, "moved": moved}
    found = wrong(edited("measured", "noise", "repeated", to=seen))
    said = f"two evaluations cannot differ by {difference} where {moved} of 6 tasks moved"
    assert found == ([] if right else [said])


def test_a_trace_on_both_sides_is_named() -> None:
    value = honest().model_dump(mode="json")
    value["candidate"]["traces"][0] = value["incumbent"]["traces"][0]
    assert wrong(value) == ["in its report 1 trace is on both sides"]


def test_a_success_that_no_task_can_have_is_named() -> None:
    value = honest().model_dump(mode="json")
    for side in ("incumbent", "candidate"):
        value["measured"][side]["successes"] -= 9
    assert any(" of the incumbent, and its tasks have" in said for said in wrong(value))
