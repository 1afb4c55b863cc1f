"""How a trace of verifiers v1 ended: by its weighted rewards, which are added up, unless errors ended it.

Weights are written as decimal fractions that should add up to one, so the sum is the exact one, rounded once: a run
that got all of them has full reward in whatever order they stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tracemark.importers.members import error_words
from tracemark.importers.rewards import rewarded
from tracemark.importers.usage import is_number


def take(rest: dict[str, Any], episode: Mapping[str, Any], success_reward: float) -> tuple[dict[str, Any], str | None]:
    """Return the outcome, and why its reward says nothing; remove from the trace what became a part of it.

    Args:
        rest: the members of the trace, altered in place; empty for an episode that has none.
        episode: what stands beside the traces.
        success_reward: the reward that counts as success.
    """
    outcome, doubt = rewarded(_total(rest.get("rewards")), success_reward)
    of_trace = rest.get("errors") and rest.get("ok") is not True
    if of_trace or (not rest and episode.get("errors")):
        outcome |= {"status": "error", "rule": "errors"}
    elif rest.get("ok") is False:
        outcome |= {"status": "error", "rule": "ok"}
    ended = stopped(rest, rest.get("errors") or episode.get("errors") if outcome.get("rule") == "errors" else None)
    if ended is not None:
        outcome["termination"] = ended
    checks = {name: rest.pop(name) for name in ("rewards", "metrics") if rest.get(name)}
    if checks:
        outcome["checks"] = checks
    return outcome, doubt


def stopped(rest: dict[str, Any], error: Any) -> str | None:
    """Return why a run stopped: its `stop_condition`, which is taken out, or without one what the error says.

    Args:
        rest: the members of the record, altered in place.
        error: what the record says of errors that ended the run.
    """
    if isinstance(rest.get("stop_condition"), str):
        return str(rest.pop("stop_condition"))
    return error_words(error)


def _total(rewards: Any) -> float | None:
    """Return the sum of weighted rewards; None when there are none, or one of them is no number."""
    values = [_value(one) for one in rewards.values() if one is not None] if isinstance(rewards, dict) else []
    try:
        total = math.fsum(values) if values else math.nan
    except (OverflowError, ValueError):
        return None
    return total if math.isfinite(total) else None


def _value(reward: Any) -> float:
    """Return what a reward adds; no number (NaN) when it is none."""
    score: Any = reward.get("score") if isinstance(reward, dict) else reward
    weight: Any = reward.get("weight", 1.0) if isinstance(reward, dict) else 1.0
    try:
        return float(score * weight) if is_number(score) and is_number(weight) else math.nan
    except OverflowError:
        return math.nan
