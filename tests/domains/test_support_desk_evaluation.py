"""What the measuring tasks say of each candidate: the better one wins, the others do not; numbers follow the seed."""

from __future__ import annotations

import pytest
from support_desk import tasks

from tests.domains import desk_runs
from tests.domains.desk_runs import ACCEPTED, CANDIDATES, Compared

SEED = 7
"""With which `play.py` plays unless told otherwise."""


def judged(candidate: str, seed: int) -> Compared:
    return desk_runs.compared(desk_runs.successes(ACCEPTED, "base", seed), desk_runs.successes(candidate, "base", seed))


def rate(harness: str, strength: str, seeds: tuple[int, ...]) -> float:
    """Return the share of attempts that succeed, over several seeds."""
    found = [sum(desk_runs.successes(harness, strength, seed).values()) for seed in seeds]
    return sum(found) / (len(seeds) * 4 * len(tasks.EVALUATION))


def test_with_the_default_seed_the_better_candidate_wins_and_the_others_do_not() -> None:
    decisions = {candidate: judged(candidate, SEED).accepted for candidate in CANDIDATES}
    assert decisions == {"desk-advised": True, "desk-plain": False, "desk-commented": False}


@pytest.mark.slow
def test_another_seed_gives_other_numbers_for_every_candidate() -> None:
    for candidate in CANDIDATES:
        assert len({judged(candidate, seed) for seed in (SEED, 8, 9)}) == 3


@pytest.mark.slow
def test_over_several_seeds_the_harnesses_stand_in_one_order_and_a_comment_weighs_nothing() -> None:
    seeds = (SEED, 8, 9, 10)
    rates = {harness: rate(harness, "base", seeds) for harness in desk_runs.HARNESSES}
    # 512 attempts of each: two draws of one rate lie 0.03 apart in one standard deviation
    assert rates["desk-plain"] + 0.06 < rates[ACCEPTED] < rates["desk-advised"] - 0.15
    assert abs(rates["desk-commented"] - rates[ACCEPTED]) < 0.09


@pytest.mark.slow
def test_the_tuned_agent_is_better_and_a_better_harness_leaves_it_less_to_gain() -> None:
    seeds = (SEED, 8, 9, 10)
    gains = [rate(harness, "tuned", seeds) - rate(harness, "base", seeds) for harness in (ACCEPTED, "desk-advised")]
    assert 0 < gains[1] < gains[0]


def test_tasks_that_got_better_and_worse_are_counted_and_weighed_by_the_sign_test() -> None:
    before = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 0, "f": 0}
    assert desk_runs.compared(before, before) == Compared(0, 0, 1.0)
    assert desk_runs.compared(before, {"a": 2, "b": 3, "c": 4, "d": 4, "e": 1, "f": 1}) == Compared(5, 0, 1 / 32)
    assert desk_runs.compared(before, {"a": 2, "b": 1, "c": 4, "d": 4, "e": 0, "f": 1}) == Compared(3, 1, 5 / 16)


@pytest.mark.parametrize(("found", "accepted"), [(Compared(5, 0, 1 / 32), True), (Compared(4, 0, 1 / 16), False)])
def test_a_candidate_is_accepted_where_it_gains_and_chance_is_unlikely_to(found: Compared, accepted: bool) -> None:
    assert found.accepted is accepted
