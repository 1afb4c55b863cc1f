"""Where a trace goes: the first condition that holds, and the earliest failure that was not recovered.

A failure is recovered when a later call of the same command family succeeds (see `family`, also for the one failure
that asks for another object). The code that the published
router came with counts any later clean observation, and so calls a broken build recovered because `ls` worked.

A trace that no condition holds for goes into quarantine under the condition `unmatched`: a run whose verdict nobody
recorded, or a success in which some failure was never seen to be recovered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tracemark.errors import ParamsError
from tracemark.failures.budget import words_apart
from tracemark.failures.conditions import (
    NOBODYS,
    QUARANTINE_BELOW,
    UNMATCHED,
    Condition,
    Conditions,
    Destination,
    Question,
    Side,
)
from tracemark.failures.events import Event, Story, read
from tracemark.failures.mask import mask
from tracemark.failures.patience import SECONDS, ImpatienceError, search
from tracemark.failures.text_form import LONGEST_SHOWN, cut, line_of
from tracemark.failures.wordings import EMPTY

_LONGEST_WORDS = 2_000
# this machine, and whatever looks like the address of one
_LOCAL = re.compile(
    r"(?<![\w.-])(?:localhost(?![\w-])|127(?:\.\d{1,3}){3}|0\.0\.0\.0)|(?<![\w:])::1(?![\w:])", re.IGNORECASE
)
_ADDRESS = re.compile(r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,9}\.(?:[a-z]{2,20}|\d{1,3})\b", re.IGNORECASE)
_GRADERS_OWN = (
    "grader_error",
    "verifier_error",
    # SWE-bench's report, ThinkingBox's test
    "error_eval",
    "test_timeout",
    "is_system_error",
)
_ANYBODYS = ("error", "exception", "traceback", "exception_info")
_NOTHING = re.compile(EMPTY)
# what a test asserts is its verdict
_BROKE = re.compile(
    r"(?<!assertion)(?<!assertion )(?:error|exception|timeout)\b|\btimed out\b|\b(?:crashed|raised)\b", re.IGNORECASE
)


class Span(NamedTuple):
    """Where in a trace something was said."""

    step: int
    """`step_id` of the step."""
    call: str | None
    """`tool_call_id`; None when the result belongs to no call."""
    tool: str | None
    """The tool's name; None when nobody recorded one."""
    text: str
    """The line that says the error, as it was written; of a long one the beginning and the end."""


class Routing(NamedTuple):
    """What is made of one trace."""

    condition: str
    """Name of the first condition that holds, or `unmatched`."""
    side: str
    """Whose fault it is."""
    confidence: float
    """The condition's confidence."""
    destination: str
    """Where the trace goes; `quarantine` wherever the confidence is below 0.6."""
    failure: Span | None
    """The earliest failure that was not recovered; None when there is none."""
    recovered: tuple[Span, ...]
    """Failures that a later call of their family made good, in order."""
    symptoms: int
    """Failed calls behind the earliest unrecovered failure, recovered or not: what may only follow from it."""
    masked: str | None
    """The line of that failure, masked before it is cut; None when there is none."""


class _Facts(NamedTuple):
    status: str
    terminations: tuple[str, ...]
    """How the run stopped: as it was written, and with its words apart; empty when nobody says."""
    checks: Any
    story: Story
    failed: int | None
    """Index of the event that is the earliest unrecovered failure."""
    recovered: tuple[int, ...]


def route(line: Mapping[str, Any], conditions: Conditions) -> Routing:
    """Return where a trace goes.

    Args:
        line: a stored trace, parsed.
        conditions: in the order in which they are tried, see `conditions.conditions`.

    Raises:
        ParamsError: when an expression of the user's own comes to no end.
    """
    story, outcome = read(line), line["outcome"]
    failed, recovered = failures_of(story.events)
    said = _terminations(outcome.get("termination") or "")
    facts = _Facts(outcome["status"], said, outcome.get("checks"), story, failed, recovered)
    events = story.events
    failure = None if failed is None else _span(events[failed])
    masked = None if failed is None else mask(events[failed].error or "")
    symptoms = 0 if failed is None else sum(event.error is not None for event in events[failed + 1 :])
    spans = tuple(_span(events[index]) for index in recovered)
    for condition in conditions.ordered:
        if facts.status in condition.statuses and _TESTS[condition.test](condition, facts):
            known = condition.confidence >= QUARANTINE_BELOW
            destination = condition.destination if known else Destination.QUARANTINE
            return Routing(
                condition.name,
                condition.side.value,
                condition.confidence,
                destination.value,
                failure,
                spans,
                symptoms,
                masked,
            )
    return Routing(UNMATCHED, Side.AMBIGUOUS.value, 0.0, Destination.QUARANTINE.value, failure, spans, symptoms, masked)


def failures_of(events: Sequence[Event]) -> tuple[int | None, tuple[int, ...]]:
    """Return the index of the earliest unrecovered failure, and the indices of the recovered ones."""
    last_clean: dict[str | None, int] = {}
    for index, event in enumerate(events):
        if event.error is None:
            last_clean[event.family] = last_clean[event.operation] = index
    # what nobody knows is no family
    last_clean.pop(None, None)
    failed, recovered = None, []
    for index, event in enumerate(events):
        if event.error is None:
            continue
        family = event.operation if event.misnamed else event.family
        if last_clean.get(family, -1) > index:
            recovered.append(index)
        elif failed is None:
            failed = index
    return failed, tuple(recovered)


def _span(event: Event) -> Span:
    return Span(event.step, event.call, event.tool, cut(event.error or "", LONGEST_SHOWN))


def _terminations(text: str) -> tuple[str, ...]:
    """Return how a run stopped as it was written, and, where that differs, with the words of its names apart."""
    written = text[:_LONGEST_WORDS]
    apart = words_apart(written)
    return () if not written else (written,) if apart == written else (written, apart)


def _matches(condition: Condition, patterns: Sequence[re.Pattern[str]], *texts: str) -> bool:
    """Return whether one of the patterns of a condition is found in one of the texts.

    Raises:
        ParamsError: when one of the user's own comes to no end.
    """
    if condition.own is None:
        return any(pattern.search(text) is not None for pattern in patterns for text in texts)
    for pattern in patterns:
        try:
            if any(search(pattern, text) for text in texts):
                return True
        except ImpatienceError:
            raise ParamsError(
                f"condition {condition.name!r}: {pattern.pattern!r} was given up after {SECONDS:g} s on one text",
                where=condition.own,
                hint="write it without a repetition inside a repetition, such as (a+)+",
            ) from None
    return False


def _no_input(_: Condition, facts: _Facts) -> bool:
    return facts.story.prompt_tokens == 0 and not facts.story.spoke


def _grader_exception(condition: Condition, facts: _Facts) -> bool:
    if _matches(condition, condition.patterns, *facts.terminations):
        return True
    checks = facts.checks
    if not isinstance(checks, dict):
        return False
    own = [checks.get(name) for name in _GRADERS_OWN]
    said = [checks.get(name) for name in _ANYBODYS]
    if facts.status != "failure":
        # nobody could judge, and this is what is said of it
        own += said
    if any(value is True or _texts(value) for value in own):
        return True
    return any(_names_a_grader(condition, text) for value in said for text in _texts(value))


def _texts(value: Any) -> list[str]:
    """Return what a member of a grader's results says, a text or the values of an object; no words for nothing."""
    values = value.values() if isinstance(value, dict) else [value] if isinstance(value, str) else []
    texts = [("…" if each else "") if isinstance(each, (dict, list)) else str(each) for each in values]
    return [text for text in texts if text.strip() and _NOTHING.fullmatch(text) is None]


def _names_a_grader(condition: Condition, text: str) -> bool:
    """Return whether a text, which may be the words of a verdict, says that a grader broke.

    Raises:
        ParamsError: when an expression of the user's own comes to no end.
    """
    lines = {text, line_of(text) or ""}
    return any(
        _BROKE.search(words) is not None and _matches(condition, condition.patterns, words)
        for line in lines
        for words in _terminations(line)
    )


def _no_session(_: Condition, facts: _Facts) -> bool:
    return facts.story.agent_steps == 0


def _failures(condition: Condition, facts: _Facts) -> bool:
    if condition.failures == "unrecovered":
        return facts.failed is not None
    return facts.failed is None and bool(facts.recovered) == (condition.failures == "recovered")


def _stopped(condition: Condition, facts: _Facts) -> bool:
    if facts.failed is not None or not condition.patterns:
        return facts.failed is None
    # a run of which nobody says how it stopped is one that stopped in no words
    return _matches(condition, condition.patterns, *(facts.terminations or ("",)))


def _failure_matches(condition: Condition, facts: _Facts) -> bool:
    if facts.failed is not None:
        error = cut(facts.story.events[facts.failed].error or "", LONGEST_SHOWN)
        if _matches(condition, condition.patterns, error):
            return True
        if _matches(condition, condition.remote, error) and not _is_local(error, facts.story.events[facts.failed]):
            return True
    # what cut a run off is also why nothing was made good; a wrapper's words there are another thing than a rejection
    if condition.side not in NOBODYS and facts.status != "error":
        return False
    return _matches(condition, (*condition.patterns, *condition.remote, *condition.terminations), *facts.terminations)


def _is_local(error: str, event: Event) -> bool:
    """Return whether what an error line speaks of is a server on this machine, which the run may have had to start."""
    if _LOCAL.search(error) is not None:
        return True
    return _ADDRESS.search(error) is None and _LOCAL.search(event.command) is not None


def _failure_hidden(_: Condition, facts: _Facts) -> bool:
    return facts.failed is not None and facts.story.events[facts.failed].empty


def _failure_visible(_: Condition, facts: _Facts) -> bool:
    return facts.failed is not None and not facts.story.events[facts.failed].empty


def _failure_repeated(condition: Condition, facts: _Facts) -> bool:
    if facts.failed is None or not _failure_visible(condition, facts):
        return False
    events = facts.story.events
    family = events[facts.failed].family
    tries = Counter(
        (event.tool, event.command, mask(event.error))
        for event in events[facts.failed :]
        if event.error is not None and event.family == family and event.command
    )
    return max(tries.values(), default=0) >= condition.repeats


_TESTS: dict[Question, Callable[[Condition, _Facts], bool]] = {
    Question.NO_INPUT: _no_input,
    Question.GRADER_EXCEPTION: _grader_exception,
    Question.NO_SESSION: _no_session,
    Question.FAILURES: _failures,
    Question.STOPPED: _stopped,
    Question.FAILURE_MATCHES: _failure_matches,
    Question.FAILURE_HIDDEN: _failure_hidden,
    Question.FAILURE_REPEATED: _failure_repeated,
    Question.FAILURE_VISIBLE: _failure_visible,
}
