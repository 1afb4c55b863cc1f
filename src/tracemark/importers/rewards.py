"""A reward as the only verdict, of producers whose rewards may be of any scale.

A reward of full success says so, and a smaller one is partial. One beyond it shows that the scale is another one, on
which nobody here knows how much success is: neither for that run nor for the others of its file.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tracemark.importers.base import Context, outcome_of_reward

_REWARD = re.compile(rb'"reward"\s*:\s*(-?[0-9][0-9.eE+-]*)')


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


def rewarded_in(context: Context, reward: Any) -> Rewarded:
    """Return the outcome of a reward that stands as `reward` in a file of several runs.

    The whole file is looked at, so that no run is judged by where it stands. Of one in an archive nobody knows.

    Args:
        context: of the record.
        reward: as of `rewarded`.
    """
    success_reward = context.limits.success_reward
    found = rewarded(reward, success_reward)
    if found.outcome["status"] != "success" or not _goes_beyond(context):
        return found
    told = f"other runs of the file have a reward beyond ingest.success_reward ({success_reward:g})"
    said = {name: value for name, value in found.outcome.items() if name == "reward"}
    return Rewarded({"status": "unknown", **said}, f"{told}: not read as a verdict")


def _goes_beyond(context: Context) -> bool:
    def look() -> bool:
        found = context.occurrences(context.name, _REWARD)
        return any(_number(text) > context.limits.success_reward for text in found)

    return context.once(("scale-of-rewards", context.folder, context.name), look)


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
