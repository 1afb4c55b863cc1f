"""What two cells say: tasks up and down, p, noise floor, both policies, and the conditions beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gates.evaluations import NEW, OLD, attempts, cell, changed, of
from tracemark.gates.cell import Attempt
from tracemark.gates.compare import Comparison, Measured, Met, compare, decide
from tracemark.gates.terms import Conditions, Half, Policy, Terms
from tracemark.stats.compare import sign_test
from tracemark.stats.counts import Counts
from tracemark.stats.noise import noise_floor


def judged(before: dict[str, int], after: dict[str, int], number: int = 4, **terms: Any) -> Comparison:
    told = Terms(**{"half": Half.HARNESS, "attempts": number, **terms})
    return compare(cell(before, number), cell(after, number, NEW), told)


def measured(before: dict[str, int], after: dict[str, int], number: int = 4, **terms: Any) -> Measured:
    found = judged(before, after, number, **terms).measured
    assert found is not None
    return found


def tasks(ups: int, downs: int, ties: int = 0) -> tuple[dict[str, int], dict[str, int]]:
    """Return successes before and after of so many tasks that went up, down and nowhere."""
    names = [f"desk/{at:03}" for at in range(ups + downs + ties)]
    before = dict.fromkeys(names, 2)
    after = {
        name: 3 if at < ups else 1 if at < ups + downs else 2 for at, name in enumerate(names)
    }  # fmt: skip
    return before, after


def accepts(found: Comparison) -> tuple[bool, bool]:
    assert found.measured is not None
    return tuple(found.measured.decisions[policy].accepted for policy in (Policy.SIGNIFICANT, Policy.COTRACE))


@pytest.mark.parametrize(
    ("ups", "downs", "p", "significant", "cotrace"),
    [
        (1, 0, 0.5, False, True),
        (4, 0, 0.0625, False, True),
        (5, 0, 0.0312, True, True),
        (5, 1, 0.1094, False, True),
        (8, 0, 0.0039, True, True),
        (9, 3, 0.0730, False, True),
        (10, 4, 0.0898, False, True),
        (13, 5, 0.0481, True, True),
        (5, 5, 0.6230, False, True),
        (3, 4, 0.7734, False, False),
        (0, 1, 1.0, False, False),
    ],
)
def test_both_policies_on_published_numbers(ups: int, downs: int, p: float, significant: bool, cotrace: bool) -> None:
    found = judged(*tasks(ups, downs, 3))
    assert found.measured is not None
    assert found.measured.p == pytest.approx(p, abs=6e-5)
    assert accepts(found) == (significant, cotrace)
    assert found.accepted is significant
    assert judged(*tasks(ups, downs, 3), policy=Policy.COTRACE).accepted is cotrace


def test_the_tasks_that_changed_are_named_with_their_counts() -> None:
    found = measured({"desk/a": 1, "shop/a": 4, "b": 2}, {"desk/a": 4, "shop/a": 3, "b": 2})
    assert [(one.task, one.before, one.after) for one in found.ups] == [("desk/a", Counts(4, 1), Counts(4, 4))]
    assert [(one.task, one.before, one.after) for one in found.downs] == [("shop/a", Counts(4, 4), Counts(4, 3))]
    assert (found.tasks, found.attempts, found.difference) == (3, 4, 0)


def test_by_how_much_a_score_went_up_does_not_count() -> None:
    assert measured({"a": 0, "b": 4}, {"a": 4, "b": 3}).difference == 0


def test_a_score_out_of_more_attempts_is_not_rounded() -> None:
    found = measured({"a": 13}, {"a": 14}, 20)
    assert found.difference == 1


def test_nothing_is_measured_where_something_stands_against_it() -> None:
    found = judged({"a": 1}, {"b": 1})
    assert found.measured is None
    assert found.accepted is None
    assert found.refusals


def test_all_ties_are_no_reason_to_change_but_for_cotrace() -> None:
    found = judged(*tasks(0, 0, 30))
    assert accepts(found) == (False, True)
    assert found.measured is not None
    assert found.measured.p == 1.0
    assert found.measured.decisions[Policy.SIGNIFICANT].reason == "0 up is not more than 0 down"


def test_a_set_of_one_task_can_never_be_significant() -> None:
    found = judged({"a": 0}, {"a": 4})
    assert found.measured is not None
    assert (found.measured.p, accepts(found)) == (0.5, (False, True))


def test_a_tie_passes_only_when_it_is_clean() -> None:
    before, after = tasks(1, 1, 8)
    made = changed(attempts(after, 4, NEW), "desk/005", 3, status="error")
    found = compare(cell(before, 4), of(made, NEW), Terms(Half.HARNESS, 4, Policy.COTRACE, infrastructure_limit=0.1))
    assert found.measured is not None
    assert found.measured.clean is False
    assert found.accepted is False
    # the score did not go down for that: the task failed there before
    assert found.measured.difference == 0
    assert "infrastructure" in found.measured.decisions[Policy.COTRACE].reason
    again = [*made, made[-1]._replace(task="desk/005", attempt=3, status="failure", trace="e" * 64)]
    assert compare(cell(before, 4), of(again, NEW), Terms(Half.HARNESS, 4, Policy.COTRACE)).accepted is True


def test_what_waits_for_a_rerun_counts_against_the_candidate_on_both_sides() -> None:
    each = {"a": 2, "b": 2, "c": 2}
    terms = Terms(Half.HARNESS, 4, infrastructure_limit=0.2)
    incumbent = of(changed(attempts(each, 4), "a", 3, status="error"))
    candidate = of(changed(attempts(each, 4, NEW), "b", 0, status="error"), NEW)
    found = compare(incumbent, candidate, terms).measured
    assert found is not None
    assert [one.task for one in found.downs] == ["a", "b"]
    assert (found.incumbent.successes, found.candidate.successes) == (7, 5)
    assert (found.incumbent.open_errors, found.candidate.open_errors) == (1, 1)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12),
    st.sampled_from(Policy),
    st.sets(st.integers(0, 47), max_size=5),
)
def test_a_rerun_never_takes_back_what_a_policy_accepted(
    scores: list[tuple[int, int]], policy: Policy, broken: set[int]
) -> None:
    made = [
        one
        for side, harness in enumerate((OLD, NEW))
        for one in attempts({f"t{at:02}": score[side] for at, score in enumerate(scores)}, 2, harness)
    ]
    terms = Terms(Half.HARNESS, 4, policy, infrastructure_limit=1.0, level=0.3)

    def accepted(every: list[Attempt]) -> bool | None:
        sides = (of([one for one in every if one.fingerprint == harness], harness) for harness in (OLD, NEW))
        return compare(*sides, terms).accepted

    if accepted([one._replace(status="error") if at in broken else one for at, one in enumerate(made)]):
        assert accepted(made)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_turning_the_cells_around_turns_ups_and_downs_around(scores: list[tuple[int, int]]) -> None:
    before, after = ({f"t{at}": one[side] for at, one in enumerate(scores)} for side in (0, 1))
    there, back = measured(before, after, 5), measured(after, before, 5)
    assert [one.task for one in there.ups] == [one.task for one in back.downs]
    assert there.p == sign_test(len(there.ups), len(there.downs))
    assert there.tasks == len(scores)


def test_the_noise_floor_is_that_of_the_incumbents_rates() -> None:
    before, after = tasks(9, 1, 20)
    found = measured(before, after)
    assert found.noise == noise_floor(dict.fromkeys(before, Counts(4, 2)), 4)
    assert found.noise.tasks == 9
    assert found.inside_noise is True
    assert measured(*tasks(9, 0, 21)).inside_noise is True
    assert measured(*tasks(10, 0, 20)).inside_noise is False


def test_one_attempt_a_task_gives_no_noise_floor() -> None:
    found = measured({"a": 0, "b": 1}, {"a": 1, "b": 1}, 1)
    assert (found.noise.tasks, found.inside_noise) == (None, None)


def test_pass_k_is_told_under_both_estimators() -> None:
    found = measured({"a": 3, "b": 4}, {"a": 2, "b": 4}).incumbent.reliability
    assert [(one.k, one.combinations, one.power) for one in found] == [
        (1, 0.875, 0.875),
        (2, 0.75, (0.5625 + 1) / 2),
        (3, 0.625, (27 / 64 + 1) / 2),
        (4, 0.5, (81 / 256 + 1) / 2),
    ]


def test_costs_cover_failed_attempts() -> None:
    found = measured({"a": 1, "b": 4}, {"a": 0, "b": 0})
    assert found.incumbent.cost.value == 4.0
    assert found.incumbent.cost_per_success.value == 4.0 / 5
    assert found.incumbent.cost_per_reliable_task.value == 4.0
    assert found.incumbent.reliable == 1


def test_without_a_success_the_cost_is_not_defined_and_neither_lower_nor_higher() -> None:
    none, some = {"a": 0, "b": 0}, {"a": 4, "b": 4}
    asked = Conditions(cost=True)
    for before, after, side in ((some, none, "candidate"), (none, some, "incumbent"), (none, none, "incumbent")):
        found = measured(before, after, conditions=asked)
        (condition,) = found.conditions
        assert condition.met is False
        assert condition.reason.startswith(f"the {side}'s cost per success is not defined: no attempt succeeded")
    assert measured(none, none).incumbent.cost_per_success.value is None


def test_a_cost_that_is_not_known_is_no_cost_of_zero() -> None:
    made = changed(attempts({"a": 2}, 4, NEW), "a", 0, cost=None)
    found = compare(cell({"a": 2}, 4), of(made, NEW), Terms(Half.HARNESS, 4, conditions=Conditions(cost=True))).measured
    assert found is not None
    assert found.candidate.cost.value is None
    assert found.conditions[0].met is False


def conditions(before: dict[str, int], after: dict[str, int], **asked: Any) -> tuple[Met, ...]:
    return measured(before, after, conditions=Conditions(**asked)).conditions


def test_the_cost_must_not_be_above() -> None:
    assert conditions({"a": 2}, {"a": 2}, cost=True)[0].met
    assert conditions({"a": 2}, {"a": 3}, cost=True)[0].met
    assert not conditions({"a": 2}, {"a": 1}, cost=True)[0].met


def test_named_tasks_must_not_go_down() -> None:
    before, after = {"desk/a": 2, "shop/a": 2, "desk/b": 1}, {"desk/a": 3, "shop/a": 1, "desk/b": 4}
    (found,) = conditions(before, after, no_regression=("desk/a", "desk/b"))
    assert (found.met, found.reason) == (True, "no score of 2 named tasks went down")
    (found,) = conditions(before, after, no_regression=("b",))
    assert (found.met, found.reason) == (True, "the score of the one named task did not go down")
    (found,) = conditions(before, after, no_regression=("a",))
    assert (found.met, found.reason) == (False, "the score went down at 'shop/a'")
    (found,) = conditions(before, after, no_regression=("desk/a", "desk/z"))
    assert (found.met, found.reason) == (False, "the evaluation has no task 'desk/z'")


def test_pass_k_must_not_be_lower() -> None:
    assert conditions({"a": 4, "b": 2}, {"a": 2, "b": 4}, reliability=4)[0].met
    (found,) = conditions({"a": 4, "b": 0}, {"a": 3, "b": 3}, reliability=4)
    assert (found.met, found.reason) == (False, "pass^4 (combinations) went from 0.5000 to 0.0000")
    (found,) = conditions({"a": 4}, {"a": 4}, reliability=5)
    assert (found.met, found.reason) == (False, "pass^5 needs 5 attempts of each task, and there are 4")


def test_equal_pass_k_is_not_lower_however_it_is_made_up() -> None:
    # thirds, whose rounded sums are not equal
    before, after = {"a": 1, "b": 1, "c": 1}, {"a": 3, "b": 0, "c": 0}
    found = measured(before, after, 3, conditions=Conditions(reliability=1)).conditions
    assert found[0].met


def test_a_condition_that_is_not_met_overrules_the_policy() -> None:
    before, after = tasks(9, 1)
    assert judged(before, after).accepted is True
    named = judged(before, after, conditions=Conditions(no_regression=("desk/009",)))
    assert named.accepted is False
    assert accepts(named)[0] is True


def test_traces_that_installed_the_incumbent_are_flagged() -> None:
    before, after = tasks(9, 0)
    used = frozenset(one.trace for one in cell(before, 4).attempts[:5])
    found = judged(before, after, used=used | {"f" * 64})
    assert found.reused == tuple(sorted(used))
    assert found.accepted is True
    strict = judged(before, after, used=used, conditions=Conditions(fresh=True))
    assert strict.accepted is False
    assert judged(before, after, conditions=Conditions(fresh=True)).accepted is True


def test_what_differs_between_the_pairs_is_named() -> None:
    assert judged({"a": 1}, {"a": 2}).changed == ("prompt_templates",)


def test_a_comparison_of_102_tasks_and_20_attempts_is_made() -> None:
    before = {f"desk/{at:03}": at % 21 for at in range(102)}
    after = {task: min(20, count + 1) for task, count in before.items()}
    found = measured(before, after, 20)
    assert (len(found.ups), len(found.downs), len(found.incumbent.reliability)) == (98, 0, 20)


def test_a_p_at_the_very_level_is_accepted() -> None:
    assert [decide(5, 0, 1 / 32, level, clean=True)[Policy.SIGNIFICANT].accepted for level in (1 / 32, 1 / 33)] == [
        True,
        False,
    ]
