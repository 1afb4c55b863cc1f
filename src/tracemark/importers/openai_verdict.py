"""How the run of a chat record ended, as far as the record says it in words that are known.

Invariants:
- a verdict that is present and not understood is never passed over for another one or for a reward: the status is
  `unknown` then, as it is where two verdicts disagree, or two rewards without one, and what it is about is named;
- what is read leaves the record; where the status is `unknown` nothing was read, and all of it stays where it is;
- a success that nobody noticed is a trace that no export takes, so what looks like a verdict and is not read is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.importers.base import REWARD_RULES, outcome_of_reward
from tracemark.importers.members import error_words

VERDICTS = ("success", "resolved", "passed", "is_correct")
"""Members that are true or false, or one of the two as a text."""

WORDS = ("status", "outcome")
"""Members that hold one of `STATUSES` as a text."""

STATUSES = {
    "success": "success",
    "succeeded": "success",
    "passed": "success",
    "failure": "failure",
    "failed": "failure",
    "error": "error",
    "timeout": "error",
}
"""Words that count as a verdict, and the status that each gives."""

ENDED = ("completed", "complete", "done", "finished", "ok")
"""Words that say that a run came to its end, and not how: they stand beside any verdict, and are none."""

REWARDS = REWARD_RULES
"""Members that hold a number, each the rule by which it gives the status."""

_TRUTH = {"true": "success", "false": "failure"}
_WORDS_OF = {
    status: ", ".join(word for word, given in STATUSES.items() if given == status)
    for status in ("success", "failure", "error")
}

SUCCESS = (
    ("error: anything but null, false or empty", "error"),
    (
        f"{', '.join((*VERDICTS, *WORDS))}: what is not listed below; two of these that disagree, also one object deep",
        "unknown, with a finding; nothing else is read",
    ),
    (f"{', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}: true or false, also as a text", "success or failure"),
    *((f"{' or '.join(WORDS)}: {words}", status) for status, words in _WORDS_OF.items()),
    (f"{' or '.join(WORDS)}: {', '.join(ENDED)} or unknown; a number in {WORDS[0]}", "none: what stands below counts"),
    (
        f"{' or '.join(REWARDS)}: two on different sides of ingest.success_reward, also one object deep",
        "unknown, with a finding",
    ),
    (
        f"{' or '.join(REWARDS)}: a number, a text that is one, true or false",
        "by reward: success at ingest.success_reward, else failure",
    ),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for. Words count in any case."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?:[eE][+-]?\d{1,2})?")
_SILENT = ("response", "raw_response", "kwargs")
_SHOWN = 40
_UNKNOWN = {"status": "unknown"}


class Ending(NamedTuple):
    """What a record says of its end."""

    outcome: dict[str, Any]
    """The outcome, at least its `status`."""
    unread: tuple[str, ...] = ()
    """Each member that may hold a verdict and was not read, in words; empty when a verdict was read."""
    conflict: str | None = None
    """Two members that disagree, and what counts; None when all agree."""


class _Reward(NamedTuple):
    name: str
    value: int | float | bool
    outcome: dict[str, Any]
    reaches: bool
    """Whether it is true, or as large as the reward of success or larger."""


def take(record: dict[str, Any], success_reward: float, repairs: list[str]) -> Ending:
    """Remove the verdict from a record and return it.

    Args:
        record: altered in place.
        success_reward: the reward that counts as success.
        repairs: gets a note for what had to be read in a special way.
    """
    rewards = list(_rewards(record, success_reward))
    reward = rewards[0] if rewards else None
    graded = [*rewards, *(each for member, inner in _inner(record) for each in _rewards(inner, success_reward, member))]
    said = {name: status for name in (*VERDICTS, *WORDS) if (status := _status(record, name)) is not None}
    if record.get("error"):
        return Ending(_ended(record, "error", "error", reward, repairs), (), _against("error", "error", said, graded))
    if any(name not in said and _says(record, name, beside=True) for name in (*VERDICTS, *WORDS)):
        return Ending({**_UNKNOWN}, tuple(_unread(record, said)))
    if said:
        # that a run broke off says more than that it did not succeed
        rule = min(said, key=lambda name: said[name] != "error")
        status, conflict = said[rule], _against(rule, said[rule], {}, graded)
        other = _disagreeing(record, status, said)
    elif reward is not None and not any(_says(record, name) and _number(record[name]) is None for name in REWARDS):
        rule, status, conflict = reward.name, reward.outcome["status"], None
        other = _disagreeing(record, status, said) or _beyond(reward, graded)
    else:
        return Ending({**_UNKNOWN}, tuple(_unread(record, said)))
    if other is not None:
        return Ending({**_UNKNOWN}, (), f"{rule} says {status}, {other}: neither is read")
    return Ending(_ended(record, rule, status, reward, repairs), (), conflict)


def _rewards(record: Mapping[str, Any], success_reward: float, within: str | None = None) -> Iterator[_Reward]:
    for name in REWARDS:
        value = _number(record.get(name))
        if value is not None:
            reaches = value if isinstance(value, bool) else value >= success_reward
            shown = name if within is None else f"{within}.{name}"
            yield _Reward(shown, value, outcome_of_reward(value, success_reward), reaches)


def _number(value: Any) -> int | float | bool | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = digest.loads(value.encode()).value
    return value if isinstance(value, (int, float)) else None


def _status(record: Mapping[str, Any], name: str) -> str | None:
    """Return the status that a member gives; None when it gives none that is known."""
    value = record.get(name)
    if isinstance(value, str):
        return (_TRUTH if name in VERDICTS else STATUSES).get(value.lower())
    return _TRUTH[str(value).lower()] if isinstance(value, bool) and name in VERDICTS else None


def _ended(
    record: dict[str, Any], rule: str, status: str, reward: _Reward | None, repairs: list[str]
) -> dict[str, Any]:
    """Return the outcome by a rule, and remove from the record what became a part of it."""
    outcome: dict[str, Any] = {**(reward.outcome if reward else {}), "status": status, "rule": rule}
    if reward is not None and (not isinstance(reward.value, bool) or rule == reward.name):
        # of a truth value the status is all that remains, so it stays where another one gives the status
        written = record.pop(reward.name)
        if reward.value.__class__ is not written.__class__:
            repairs.append(f"{reward.name} written as text: read as a number")
    if rule == "error" and (words := error_words(record["error"])) is not None:
        outcome["termination"] = words
    if rule in (*VERDICTS, *WORDS):
        word = record.pop(rule)
        if isinstance(word, str) and word != status:
            repairs.append(f"{rule} {_shown(word)}: read as {status}")
            if word.lower() == "timeout":
                outcome["termination"] = "timeout"
    return outcome


def _disagreeing(record: Mapping[str, Any], status: str, said: Mapping[str, str]) -> str | None:
    """Return the member that calls the run a success where `status` does not, or the other way round; None for none.

    What stands one object deep gives no status, but it can say that another one is wrong.
    """
    inner = {
        f"{member}.{name}": given
        for member, value in _inner(record)
        for name in (*VERDICTS, *WORDS)
        if (given := _status(value, name)) is not None
    }
    for name, given in (*said.items(), *inner.items()):
        if (given == "success") != (status == "success"):
            return f"{name} says {given}"
    return None


def _beyond(reward: _Reward, graded: Iterable[_Reward]) -> str | None:
    """Return the first reward on the other side of success than `reward`; None for none.

    Not every scale ends at success: of two that reach it, one may be larger. By the larger one alone the run is no
    success, which no smaller one gainsays.
    """
    succeeded = reward.outcome["status"] == "success"
    for other in graded:
        if other.reaches not in (reward.reaches, succeeded):
            return f"{other.name} says {'success' if other.reaches else 'failure'}"
    return None


def _against(rule: str, status: str, said: Mapping[str, str], graded: Iterable[_Reward]) -> str | None:
    """Return in words what speaks against a verdict that counts all the same; None for nothing.

    A reward between nothing and success leaves it to the verdict where success begins.
    """
    succeeded = status == "success"
    found = [f"{name} says {given}" for name, given in said.items() if given == "success" and not succeeded]
    for reward in graded:
        given = reward.outcome["status"]
        if (given == "success") != succeeded and (not succeeded or reward.value <= 0):
            found.append(f"{reward.name} says {given}")
    return f"{rule} says {status}, {', '.join(found)}: {rule} counts" if found else None


def _unread(record: Mapping[str, Any], said: Mapping[str, str]) -> Iterator[str]:
    """Yield what may be a verdict and is none of the known ones, at the top and one object deep."""
    for name in (*VERDICTS, *WORDS, *REWARDS):
        if name not in said and _says(record, name) and not (name in REWARDS and _number(record[name]) is not None):
            yield f"{name} {_shown(record[name])}"
    for member, inner in _inner(record):
        for name in (*VERDICTS, *REWARDS):
            if _says(inner, name):
                yield f"{member}.{name} {_shown(inner[name])}"


def _inner(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for member, value in record.items():
        if isinstance(value, dict) and member not in _SILENT:
            yield member, value


def _says(record: Mapping[str, Any], name: str, *, beside: bool = False) -> bool:
    """Return whether a member may say how the run ended; `beside` anything else, where words for its end are none."""
    value = record.get(name)
    if value is None or value == "":
        return False
    if name == WORDS[0] and isinstance(value, (int, float)) and not isinstance(value, bool):
        # the protocol's
        return False
    word = value.lower() if isinstance(value, str) else None
    return word != "unknown" and not (beside and name in WORDS and word in ENDED)


def _shown(value: Any) -> str:
    """Return a text in JSON, cut; of anything else its kind, so that the records of a log say the same."""
    if not isinstance(value, str):
        kinds = {bool: "(a truth value)", dict: "(an object)", list: "(a list)"}
        return kinds.get(type(value), "(a number)")
    text = digest.canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
