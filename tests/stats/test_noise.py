"""The noise floor against counting every outcome and against drawing; what repeated evaluations show."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats.counts import NOTHING, Counts
from tracemark.stats.noise import NoiseFloor, Repeated, distribution, noise_floor, repeated


def named(successes, attempts):
    return {f"t{number}": Counts(attempts, count) for number, count in enumerate(successes)}


TASKS = st.integers(2, 8).flatmap(
    lambda n: st.lists(st.integers(0, n), min_size=1, max_size=20).map(lambda counts: named(counts, n))
)
DRAWS = st.integers(1, 12)


def every_outcome(rates, attempts):
    """The probability of each |w − ℓ|, exactly, by listing what every task can do."""
    chances = {}
    for moves in product((-1, 0, 1), repeat=len(rates)):
        chance = math.prod(outcome(rate, attempts)[move] for rate, move in zip(rates, moves, strict=True))
        chances[abs(sum(moves))] = chances.get(abs(sum(moves)), 0) + chance
    return [float(chances.get(size, 0)) for size in range(len(rates) + 1)]


def outcome(rate, attempts):
    draw = [math.comb(attempts, i) * rate**i * (1 - rate) ** (attempts - i) for i in range(attempts + 1)]
    chances = {-1: Fraction(0), 0: Fraction(0), 1: Fraction(0)}
    for first, second in product(range(attempts + 1), repeat=2):
        chances[(second > first) - (second < first)] += draw[first] * draw[second]
    return chances


class TestDistribution:
    @pytest.mark.parametrize("attempts", [1, 2, 5])
    @pytest.mark.parametrize("successes", [[1], [2, 2], [0, 1, 3, 4, 2], [4, 0, 4], [1, 1, 1, 1, 3, 2]])
    def test_it_is_that_of_listing_every_outcome(self, successes, attempts):
        expected = every_outcome([Fraction(count, 4) for count in successes], attempts)
        found = distribution(named(successes, 4), attempts)
        padded = found + [0.0] * (len(expected) - len(found))
        assert padded == pytest.approx(expected, abs=1e-14)

    def test_it_is_that_of_drawing(self):
        draw, successes, times = random.Random(7), [1, 5, 10, 13, 19, 20, 0, 8], 20_000
        seen = [0] * (len(successes) + 1)
        for _ in range(times):
            moves = 0
            for count in successes:
                first, second = (sum(draw.random() < count / 20 for _ in range(4)) for _ in range(2))
                moves += (second > first) - (second < first)
            seen[abs(moves)] += 1
        found = distribution(named(successes, 20), 4)
        for size, chance in enumerate(found):
            assert seen[size] / times == pytest.approx(chance, abs=5 * math.sqrt(chance / times) + 1e-4)

    @given(TASKS, DRAWS)
    def test_the_probabilities_sum_to_one(self, tasks, attempts):
        found = distribution(tasks, attempts)
        assert math.fsum(found) == pytest.approx(1, abs=1e-13)
        assert min(found) >= 0

    def test_dropping_what_is_negligible_is_not_seen(self):
        found = distribution(named([10] * 1500, 20), 20)
        assert len(found) < 1500
        assert math.fsum(found) == pytest.approx(1, abs=1e-13)

    def test_a_task_without_an_attempt_is_refused_by_name(self):
        with pytest.raises(UsageError, match=NOTHING) as refused:
            distribution({"a": Counts(0, 0)}, 1)
        assert refused.value.where == "task 'a'"


class TestNoiseFloor:
    @given(TASKS, DRAWS)
    def test_failures_in_place_of_successes_give_the_same_floor(self, tasks, attempts):
        mirrored = {task: Counts(n, n - c) for task, (n, c) in tasks.items()}
        assert noise_floor(mirrored, attempts) == noise_floor(tasks, attempts)

    @given(TASKS, DRAWS)
    def test_no_order_of_tasks_changes_it(self, tasks, attempts):
        assert noise_floor(dict(reversed(tasks.items())), attempts) == noise_floor(tasks, attempts)

    @given(TASKS, DRAWS)
    def test_a_higher_point_is_no_lower_floor(self, tasks, attempts):
        floors = [noise_floor(tasks, attempts, point).tasks for point in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999999)]
        assert floors == sorted(floors)
        assert floors[-1] <= len(tasks)

    @settings(max_examples=50)
    @given(st.lists(st.integers(0, 8), min_size=2, max_size=25))
    def test_with_one_attempt_more_tasks_are_no_lower_floor(self, successes):
        fewer, more = noise_floor(named(successes[1:], 8), 1), noise_floor(named(successes, 8), 1)
        assert fewer.tasks <= more.tasks

    @given(st.integers(2, 20), st.lists(st.booleans(), min_size=1, max_size=120), DRAWS)
    def test_rates_of_zero_and_one_have_no_noise(self, n, always, attempts):
        found = noise_floor(named([n if each else 0 for each in always], n), attempts)
        assert (found.tasks, found.promoted, found.withheld) == (0, 0.0, None)

    @given(TASKS, DRAWS)
    def test_sure_tasks_add_nothing(self, tasks, attempts):
        n = next(iter(tasks.values())).attempts
        assert noise_floor({**tasks, "sure": Counts(n, n), "never": Counts(n, 0)}, attempts) == noise_floor(
            tasks, attempts
        )

    @pytest.mark.parametrize("attempts", [1, 4, 20])
    def test_more_than_four_in_ten_identical_candidates_win_more_tasks_than_they_lose(self, attempts):
        draw = random.Random(1)
        tasks = named([draw.randint(1, 19) for _ in range(102)], 20)
        assert 0.43 <= noise_floor(tasks, attempts).promoted <= 0.48

    def test_the_floor_is_where_the_point_is_reached(self):
        tasks = named([10] * 102, 20)
        found, chances = noise_floor(tasks, 20), distribution(tasks, 20)
        assert math.fsum(chances[: found.tasks + 1]) >= 0.95 > math.fsum(chances[: found.tasks])

    def test_102_tasks_of_20_attempts(self):
        found = noise_floor(named([number % 21 for number in range(102)], 20), 20)
        assert found.withheld is None
        # per task the variance of one step is below 1: 1.96 times the root of 102 bounds the floor
        assert 10 <= found.tasks <= 20

    def test_one_attempt_a_task_says_nothing_of_noise(self):
        found = noise_floor(named([1, 0, 1], 1), 1)
        assert found == NoiseFloor(None, None, 1, 0.95, found.withheld)
        assert "one attempt a task shows no rate" in found.withheld

    @pytest.mark.parametrize(
        ("tasks", "reason"),
        [
            ({}, NOTHING),
            ({"a": Counts(0, 0)}, NOTHING),
            ({"a": Counts(3, 0), "b": Counts(4, 0)}, "run counts differ between tasks: 3 at 'a'; 4 at 'b'"),
        ],
    )
    def test_it_is_withheld_with_the_reason(self, tasks, reason):
        assert noise_floor(tasks, 4) == NoiseFloor(None, None, 4, 0.95, reason)

    def test_an_evaluation_of_one_task(self):
        assert noise_floor(named([2], 4), 4).tasks == 1

    @pytest.mark.parametrize("point", [0, 1, 95, float("nan")])
    def test_a_point_that_is_no_probability_is_refused(self, point):
        with pytest.raises(UsageError, match="point"):
            noise_floor(named([2], 4), 4, point)

    @pytest.mark.parametrize("attempts", [0, -1])
    def test_draws_of_no_attempt_are_refused(self, attempts):
        for ask in (noise_floor, distribution):
            with pytest.raises(UsageError, match="at least one attempt"):
                ask(named([2], 4), attempts)


class TestRepeated:
    def test_one_checkpoint_that_scored_84_and_later_88_of_102(self):
        first = named([1] * 84 + [0] * 18, 1)
        second = named([0] * 10 + [1] * 88 + [0] * 4, 1)
        found = repeated([first, second])
        assert found.totals == (84, 88)
        assert (found.spread, found.differences, found.moved) == (4, (4,), (24,))
        assert found.deviation == pytest.approx(math.sqrt(8))

    def test_totals_are_in_tasks_whatever_the_attempts(self):
        found = repeated([named([4, 2, 0], 4), named([4, 3, 0], 4), named([3, 3, 0], 4)])
        assert found.totals == (1.5, 1.75, 1.5)
        assert found.differences == (1, 0, 1)
        assert found.moved == (1, 2, 1)

    @given(TASKS)
    def test_equal_evaluations_show_no_noise(self, tasks):
        found = repeated([tasks, tasks, tasks])
        assert (found.spread, found.deviation, found.differences, found.moved) == (0, 0, (0,) * 3, (0,) * 3)

    @pytest.mark.parametrize(
        ("evaluations", "reason"),
        [
            ([], "two or more"),
            ([named([1], 2)], "two or more"),
            ([{}, {}], f"evaluation 1: {NOTHING}"),
            ([named([1, 1], 2), named([1], 2)], "evaluations 1 and 2 do not hold the same tasks: 't1' is in one alone"),
            (
                [named([1], 2), named([1], 3)],
                "run counts differ between evaluations: 2 in evaluation 1, 3 in evaluation 2",
            ),
            ([named([1], 2), {"t0": Counts(2, 1), "u": Counts(3, 1)}], "evaluation 2: run counts differ between tasks"),
        ],
    )
    def test_it_is_withheld_with_the_reason(self, evaluations, reason):
        found = repeated(evaluations)
        assert found == Repeated(None, None, None, None, None, found.withheld)
        assert reason in found.withheld
