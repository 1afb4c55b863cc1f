"""How the run of a chat record ended, as far as the record says it in words that are known.

What is read leaves the record. What looks like a verdict and is not read stays where it is, and is named: a success
that nobody noticed is a trace that no export takes.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.importers.base import REWARD_RULES, outcome_of_reward

VERDICTS = ("success", "resolved", "passed", "is_correct")
"""Members that are true or false."""

WORDS = ("status", "outcome")
"""Members that hold one of `STATUSES` as a text."""

STATUSES = ("success", "failure", "error")
"""Words that count as a verdict; they are those of the trace's own `outcome.status`."""

REWARDS = REWARD_RULES
"""Members that hold a number, each the rule by which it gives the status."""

SUCCESS = (
    ("error: anything but null, false or empty", "error"),
    (f"{', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}: true or false", "success or failure"),
    (f"{' or '.join(WORDS)}: exactly {', '.join(STATUSES[:-1])} or {STATUSES[-1]}", "as it says"),
    (
        f"{' or '.join(REWARDS)}: a number, a text that is one, true or false",
        "by reward: success at ingest.success_reward, else failure",
    ),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?:[eE][+-]?\d{1,2})?")
_SILENT = ("response", "raw_response", "kwargs")
_SHOWN = 40


class Ending(NamedTuple):
    """What a record says of its end."""

    outcome: dict[str, Any]
    """The outcome, at least its `status`."""
    unread: tuple[str, ...]
    """Each member that may hold a verdict and was not read, in words; empty when a verdict was read."""


def take(record: dict[str, Any], success_reward: float, repairs: list[str]) -> Ending:
    """Remove the verdict from a record and return it.

    Args:
        record: altered in place.
        success_reward: the reward that counts as success.
        repairs: gets a note for what had to be read in a special way.
    """
    outcome: dict[str, Any] = {"status": "unknown"}
    decides = None
    for name in REWARDS:
        reward = _number(record.get(name))
        if reward is not None:
            outcome = {**outcome_of_reward(reward, success_reward), "rule": name}
            if isinstance(reward, bool):
                # the status is all that becomes of it, so it stays in the record where another one gives the status
                decides = name
            elif reward.__class__ is not record.pop(name).__class__:
                repairs.append(f"{name} written as text: read as a number")
            break
    if record.get("error"):
        return Ending({**outcome, "status": "error", "rule": "error"}, ())
    for name in VERDICTS:
        if isinstance(record.get(name), bool):
            return Ending({**outcome, "status": "success" if record.pop(name) else "failure", "rule": name}, ())
    for name in WORDS:
        if isinstance(record.get(name), str) and record[name] in STATUSES:
            return Ending({**outcome, "status": record.pop(name), "rule": name}, ())
    if decides is not None:
        del record[decides]
    return Ending(outcome, tuple(_unread(record)) if outcome["status"] == "unknown" else ())


def _number(value: Any) -> int | float | bool | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = digest.loads(value.encode()).value
    return value if isinstance(value, (int, float)) else None


def _unread(record: dict[str, Any]) -> list[str]:
    """Return what may be a verdict and is none of the known ones: at the top, and one object deep."""
    found = [f"{name} {_shown(record[name])}" for name in (*VERDICTS, *WORDS, *REWARDS) if _says(record, name)]
    for member, inner in record.items():
        if isinstance(inner, dict) and member not in _SILENT:
            found += [f"{member}.{name} {_shown(inner[name])}" for name in (*VERDICTS, *REWARDS) if _says(inner, name)]
    return found


def _says(record: dict[str, Any], name: str) -> bool:
    value = record.get(name)
    # a number in `status` is the protocol's, and "unknown" says that nobody knows
    return value not in (None, "", "unknown") and not (name in WORDS and isinstance(value, (int, float)))


def _shown(value: Any) -> str:
    """Return a text in JSON, cut; of anything else its kind, so that the records of a log say the same."""
    if not isinstance(value, str):
        kinds = {bool: "(a truth value)", dict: "(an object)", list: "(a list)"}
        return kinds.get(type(value), "(a number)")
    text = digest.canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
