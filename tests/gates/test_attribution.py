"""Which half brought what, in tasks, with an interval over tasks."""

from __future__ import annotations

from statistics import stdev
from typing import Any

import pytest

from tests.gates.evaluations import BASE, NEW, OLD, TUNED, attempts, cell, changed, of
from tracemark.errors import UsageError
from tracemark.gates.attribution import Attribution, Effects, Four, attribute, student_quantile, summed
from tracemark.gates.refusal import Reason, Rerun
from tracemark.gates.terms import Half, Terms

TERMS = Terms(Half.MODEL, attempts=4)
ONCE = Terms(Half.MODEL, attempts=1)
TWICE = Terms(Half.MODEL, attempts=2)


def four(old: dict[str, int], harness: dict[str, int], model: dict[str, int], both: dict[str, int], n: int = 1) -> Four:
    return Four(
        cell(old, n), cell(harness, n, NEW), cell(model, n, OLD, TUNED), cell(both, n, NEW, TUNED)
    )  # fmt: skip


def effects(found: Attribution) -> Effects:
    assert found.effects is not None
    return found.effects


def solved(number: int, of_all: int = 102) -> dict[str, int]:
    return {f"desk/{at:03}": int(at < number) for at in range(of_all)}


def test_the_published_example() -> None:
    found = attribute(four(solved(78), solved(82), solved(82), solved(86)), ONCE)
    assert found.scores == (78, 82, 82, 86)
    assert [effect.value for effect in effects(found)] == [4, 4, 4, 4, 0]
    assert (found.tasks, found.attempts) == (102, 1)


def test_an_interval_is_students_over_the_tasks() -> None:
    before = {"a": 0, "b": 2, "c": 4, "d": 2, "e": 2, "f": 2}
    after = {**before, "a": 3, "c": 3}
    found = effects(attribute(four(before, after, before, before, 4), TERMS))
    differences = [0.75, 0.0, -0.25, 0.0, 0.0, 0.0]
    half = 2.570581835636314 * stdev(differences) * 6**0.5
    assert found.harness.value == pytest.approx(0.5)
    assert found.harness.interval == pytest.approx((0.5 - half, 0.5 + half))
    # an interval of one number would claim to be certain
    assert found.model_under_old.interval is None
    assert found.model_under_old.withheld == "no task's score differs"


def test_an_interval_holds_no_effect_that_so_many_tasks_cannot_have() -> None:
    before = dict.fromkeys("abcdefg", 0)
    found = effects(attribute(four(before, {**before, "a": 2, "b": 2}, before, dict.fromkeys(before, 2), 2), TWICE))
    # of seven tasks all but two go up under the new model, five tasks ± 2.447 · 0.488 · √7 = 3.16
    assert found.model_under_new.value == 5
    assert found.model_under_new.interval == pytest.approx((1.842, 7.0), abs=0.001)
    # the interaction of a task can be two
    assert found.interaction.interval == pytest.approx((1.842, 8.158), abs=0.001)
    assert summed([-1.0, -1.0, 0.0], 0.99).interval == pytest.approx((-3.0, 3.0))
    assert summed([-2.0, -2.0, 0.0], 0.99, 2.0).interval == pytest.approx((-6.0, 6.0))


def test_an_interaction_is_what_the_model_can_only_under_one_harness() -> None:
    old, better = {"a": 0, "b": 0}, {"a": 4, "b": 4}
    found = effects(attribute(four(old, old, old, better, 4), TERMS))
    assert (found.harness.value, found.model_under_old.value, found.model_under_new.value) == (0, 0, 2)
    assert (found.interaction.value, found.harness_under_new.value) == (2, 2)


def test_one_task_gives_effects_and_no_interval() -> None:
    found = effects(attribute(four({"a": 1}, {"a": 3}, {"a": 2}, {"a": 4}, 4), TERMS))
    assert found.harness.value == 0.5
    assert found.harness.interval is None
    assert found.harness.withheld


@pytest.mark.parametrize("which", range(4))
def test_each_cell_must_be_whole(which: int) -> None:
    each = {"a": 1, "b": 2}
    cells = list(four(each, each, each, each, 4))
    one = cells[which]
    cells[which] = of(one.attempts[:-1], *one.pair)
    found = attribute(Four(*cells), TERMS)
    assert found.effects is None
    assert {refusal.reason for refusal in found.refusals} == {Reason.ATTEMPTS_MISSING}


def test_no_attempt_may_wait_for_a_rerun_whatever_the_limit() -> None:
    each: dict[str, Any] = {"a": 1, "b": 2}
    cells = four(each, each, each, each, 4)
    broken = cells._replace(both=of(changed(attempts(each, 4, NEW, TUNED), "a", 3, status="error"), NEW, TUNED))
    found = attribute(broken, Terms(Half.HARNESS, 4, infrastructure_limit=1.0))
    assert [refusal.reason for refusal in found.refusals] == [Reason.INFRASTRUCTURE_ERRORS]


def test_cells_that_are_not_the_four_are_confounded() -> None:
    each = {"a": 1, "b": 2}
    cells = four(each, each, each, each, 4)
    other = BASE._replace(sampling="{}")
    found = attribute(cells._replace(harness=cell(each, 4, NEW, other)), TERMS)
    assert Reason.CONFOUNDED in {refusal.reason for refusal in found.refusals}


@pytest.mark.parametrize(
    ("freedom", "value"),
    [
        (1, 12.7062047362),
        (2, 4.3026527297),
        (3, 3.1824463053),
        (29, 2.0452296421),
        (101, 1.983731003),
    ],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, value: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(value, abs=1e-9)


def test_what_a_pair_lacks_is_listed_once_however_many_comparisons_it_is_in() -> None:
    each = {"desk/a": 1, "desk/b": 2}
    cells = four(each, each, each, each, 2)
    made = [one for one in cells.model.attempts if (one.task, one.attempt) != ("desk/a", 1)]
    waits = changed(made, "desk/b", 0, status="unknown")
    (trace,) = (one.trace for one in waits if one.status == "unknown")
    found = attribute(cells._replace(model=of(waits, OLD, TUNED)), TWICE)
    (refusal,) = found.refusals
    assert refusal.rerun == (Rerun("new model", "desk/a", 1, None),)
    assert refusal.traces == (trace,)
    assert refusal.message.startswith("the new model lacks 1 attempt at 1 task ('desk/a')")


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError):
        summed([1.0, 2.0], 1.0)


def test_tasks_that_differ_by_the_same_but_for_the_last_digit_show_no_spread() -> None:
    effect = summed([one / 10 - (one - 1) / 10 for one in range(1, 6)], 0.95)
    assert effect.interval is None
    assert effect.withheld == "all tasks differ by the same"
    assert summed([0.1 + 0.2 - 0.3, 0.0], 0.95).withheld == "no task's score differs"
