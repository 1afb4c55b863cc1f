"""What a reward says where it is the only verdict."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.rewards import rewarded


@pytest.mark.parametrize(
    ("reward", "outcome", "doubtful"),
    [
        (1.0, {"status": "success", "reward": 1.0, "rule": "reward"}, False),
        (1, {"status": "success", "reward": 1, "rule": "reward"}, False),
        (0.9, {"status": "failure", "reward": 0.9, "rule": "reward"}, False),
        (-1, {"status": "failure", "reward": -1, "rule": "reward"}, False),
        (True, {"status": "success", "rule": "reward"}, False),
        (1.37, {"status": "unknown", "reward": 1.37}, True),
        (10**400, {"status": "unknown", "reward": 10**400}, True),
        ("1.0", {"status": "unknown"}, True),
        (None, {"status": "unknown"}, False),
    ],
)
def test_a_reward_beyond_full_success_is_of_another_scale(reward: Any, outcome: Any, doubtful: bool) -> None:
    found = rewarded(reward, 1.0)
    assert found.outcome == outcome
    assert (found.doubt is not None) is doubtful


def test_the_reward_of_a_success_is_a_setting() -> None:
    assert rewarded(8.5, 8.5).outcome["status"] == "success"
    # true and false are on no scale
    assert rewarded(True, 0.5).outcome == {"status": "success", "rule": "reward"}
