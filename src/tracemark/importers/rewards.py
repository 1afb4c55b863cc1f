"""A reward as the only verdict, of producers whose rewards may be of any scale.

A reward of full success says so, and a smaller one is partial. One beyond it shows that the scale is another one, on
which nobody here knows how much success is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tracemark.importers.base import outcome_of_reward


class Rewarded(NamedTuple):
    """What a reward says of a run."""

    outcome: dict[str, Any]
    """Its status, and the reward where it is a number."""
    doubt: str | None
    """Why it gives no status, in words; None when it gives one, and when there is no reward."""


def rewarded(reward: Any, success_reward: float) -> Rewarded:
    """Return the outcome of a reward.

    Args:
        reward: as the source holds it; None for none.
        success_reward: the reward that counts as success (`ingest.success_reward`).
    """
    outcome = outcome_of_reward(reward, success_reward)
    if outcome["status"] == "unknown":
        return Rewarded(outcome, None if reward is None else "a reward that is no number: not read as a verdict")
    if "reward" in outcome and not reward <= success_reward:
        told = f"a reward beyond ingest.success_reward ({success_reward:g}): not read as a verdict"
        return Rewarded({"status": "unknown", "reward": reward}, told)
    return Rewarded({**outcome, "rule": "reward"}, None)
