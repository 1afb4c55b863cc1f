"""How a sample of an Inspect AI log ended.

A sample has a score of each scorer, and nothing says which of them is the verdict. So every score has to give a status,
and all the same one; else the status is `unknown`, and a finding says why. All scores stay in `outcome.checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracemark.importers.base import REWARD_RULES
from tracemark.importers.completion import first_choice
from tracemark.importers.rewards import rewarded

_WORDS = {
    "C": "success",
    "I": "failure",
    "P": "failure",
    "N": "failure",
    "correct": "success",
    "incorrect": "failure",
    "partial": "failure",
    "noanswer": "failure",
    "yes": "success",
    "true": "success",
    "no": "failure",
    "false": "failure",
}
"""Values that Inspect's metrics count as 1 (success), or as less (failure); words also in other cases."""

SUCCESS = (
    ("`error` of the sample: anything but null", "error, termination `error`"),
    ("`invalidation` of the sample: anything but null", "unknown: somebody withdrew the result"),
    ("a score: `C`, correct, yes, true", "success"),
    ("a score: `I`, incorrect, no, false; `P`, partial (part of the credit); `N`, noanswer", "failure"),
    ("a score: a number up to ingest.success_reward", "by reward: success at ingest.success_reward, else failure"),
    ("a score: a number beyond it, which is of another scale", "unknown, with a finding"),
    ("a score: NaN (the scorer gave none), any other word, a list, an object", "unknown, with a finding"),
    ("scores of several scorers: one without a status, or two with different ones", "unknown, with a finding"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""


class Ending(NamedTuple):
    """What a sample says of its end."""

    outcome: dict[str, Any]
    """The outcome, at least its `status`."""
    doubts: tuple[tuple[str, str], ...] = ()
    """Findings, as pairs of code and words."""


def take(sample: dict[str, Any], success_reward: float) -> Ending:
    """Remove scores, invalidation and limit from a sample and return how it ended; its error stays where it is.

    Args:
        sample: altered in place.
        success_reward: the reward that counts as success.
    """
    scores = _scores(sample)
    invalidation, limit = sample.pop("invalidation", None), sample.get("limit")
    outcome, doubts = _judged(scores, success_reward)
    if sample.get("error") is not None:
        outcome, doubts = {"status": "error", "rule": "error"}, ()
    elif invalidation is not None:
        outcome, doubts = {"status": "unknown", "rule": "invalidation"}, ()
    if invalidation is not None:
        outcome["checks"] = {"scores": scores, "invalidation": invalidation}
    elif scores is not None:
        outcome["checks"] = scores
    termination = _termination(sample, limit)
    if termination is not None:
        outcome["termination"] = termination
    return Ending(outcome, doubts)


def _scores(sample: dict[str, Any]) -> Any:
    """Take out the scores; None when there are none. Old logs have one, without a name."""
    scores, single = sample.pop("scores", None), sample.pop("score", None)
    return scores if scores is not None else None if single is None else {"score": single}


def _judged(scores: Any, success_reward: float) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    if not scores:
        return {"status": "unknown"}, ()
    if not isinstance(scores, Mapping):
        return {"status": "unknown"}, (("verdict-unread", "scores are no object: not read as a verdict"),)
    given = {name: _given(score, success_reward) for name, score in scores.items()}
    silent = [name for name, each in given.items() if each["status"] == "unknown"]
    if silent:
        said = f"the score of {silent[0]!r} is no verdict" + (f" (and {len(silent) - 1} more)" if silent[1:] else "")
        return {"status": "unknown"}, (("verdict-unread", said),)
    if len({each["status"] for each in given.values()}) > 1:
        words = ", ".join(f"{name} says {each['status']}" for name, each in list(given.items())[:4])
        return {"status": "unknown"}, (("verdict-conflict", f"{words}: none is read"),)
    if len(given) > 1:
        return {"status": next(iter(given.values()))["status"], "rule": "scores"}, ()
    [(name, outcome)] = given.items()
    return {**outcome, "grader": {"name": name}, "rule": REWARD_RULES[1] if "reward" in outcome else "value"}, ()


def _given(score: Any, success_reward: float) -> dict[str, Any]:
    """Return the status that one score gives, and the reward where its value is a number."""
    value = score.get("value") if isinstance(score, Mapping) else None
    if isinstance(value, str):
        return {"status": _WORDS.get(value) or _WORDS.get(value.lower() if len(value) > 1 else "") or "unknown"}
    return rewarded(value, success_reward).outcome


def _termination(sample: Mapping[str, Any], limit: Any) -> str | None:
    """Return why the run stopped, in the log's word; None when it does not say."""
    if sample.get("error") is not None:
        return "error"
    reached = limit.get("type") if isinstance(limit, Mapping) else None
    if isinstance(reached, str):
        return reached
    reason = first_choice(sample.get("output")).get("stop_reason")
    return reason if isinstance(reason, str) else None
