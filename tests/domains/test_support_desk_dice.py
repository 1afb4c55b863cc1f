"""The dice give the same throws everywhere, and fair ones."""

from __future__ import annotations

import pytest
from support_desk.dice import Dice


def test_throws_are_pinned_so_that_another_machine_or_python_cannot_change_a_run_unseen() -> None:
    dice = Dice("pinned")
    assert [dice.between(f"throw {number}", 1, 1000) for number in range(6)] == [832, 73, 932, 516, 290, 202]
    assert dice.pick("é", ("a", "b", "c", "d")) == "a"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_chance_comes_true_in_about_its_share_of_seeds(share: float) -> None:
    hits = sum(Dice(f"seed {number}").chance("it rains", share) for number in range(4000))
    assert abs(hits / 4000 - share) < 0.03


def test_a_throw_does_not_depend_on_the_throws_before_it() -> None:
    fresh, used = Dice("s"), Dice("s")
    used.between("another", 1, 6)
    assert [fresh.between(f"{n}", 1, 6) for n in range(20)] == [used.between(f"{n}", 1, 6) for n in range(20)]


def test_both_ends_of_a_range_come_up() -> None:
    assert {Dice("ends").between(f"{number}", 3, 5) for number in range(100)} == {3, 4, 5}
