"""The two strengths differ in how often they err, and in nothing else."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from support_desk import habits


@pytest.mark.parametrize("shown", ["with_status", "without_status"])
def test_the_tuned_agent_errs_on_no_occasion_more_often_than_the_base_one(shown: str) -> None:
    base, tuned = (asdict(getattr(strength, shown)) for strength in (habits.BASE, habits.TUNED))
    assert all(tuned[habit] <= base[habit] for habit in base)
    assert sum(tuned.values()) < sum(base.values())


@pytest.mark.parametrize("strength", habits.STRENGTHS.values(), ids=habits.STRENGTHS)
def test_every_habit_is_a_share(strength: habits.Strength) -> None:
    for table in (strength.with_status, strength.without_status):
        assert all(0.0 <= share <= 1.0 for share in asdict(table).values())
