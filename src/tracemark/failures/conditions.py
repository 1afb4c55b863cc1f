"""The router's conditions as data: the twelve shipped ones, and a user's own beside them.

A condition says whose fault a run's end is and where its trace goes. It is data because judgement changes and code
should not: what the conditions say is named by `Conditions.digest`. That is one half of what a routing rests on. The
other is how texts are read (what is an error, which line says it, what a family and a mask is), which is code and is
named by the version of tracemark; the manifest of a failure log holds both.

Invariants:
- reading is strict: an unknown member, a wrong type or a pattern that does not compile is refused with the file, the
  line and the key, and never guessed at;
- conditions by which environment or grader is at fault are tried first, so no condition of another side can send such
  a run to where harness or model are changed, and they themselves cannot either;
- each of the two groups is tried by `order`, those of one order shipped ones first, then as they stand in their file;
- only a success is trained on, so a run that failed always has a file in the failure log;
- a confidence below `QUARANTINE_BELOW` means quarantine, whatever destination stands beside it.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

from tracemark import digest
from tracemark.errors import ParamsError
from tracemark.model.trace import STATUSES

QUARANTINE_BELOW = 0.6
"""Least confidence with which a trace goes anywhere else than into quarantine."""

FORMAT = 1
"""The `version` of the form in which conditions are written."""

SHIPPED = "conditions.toml"
"""The name of the shipped file, beside this module."""


class Side(StrEnum):
    """Whose fault it is."""

    ENVIRONMENT = "environment"
    GRADER = "grader"
    TOOL = "tool"
    MODEL = "model"
    AMBIGUOUS = "ambiguous"


NOBODYS = (Side.ENVIRONMENT, Side.GRADER)
"""Sides that are neither the harness's nor the model's."""


class Destination(StrEnum):
    """Where a trace goes."""

    ENVIRONMENT_REPAIR = "environment-repair"
    BENCHMARK_REPAIR = "benchmark-repair"
    QUARANTINE = "quarantine"
    TRAINING = "training"
    RECOVERY_TRAINING = "recovery-training"
    MODEL_TRAINING = "model-training"
    HARNESS = "harness"


class Question(StrEnum):
    """What a condition can ask."""

    NO_INPUT = "no-input"
    """Tokens were counted, none were sent, and no model spoke."""
    GRADER_EXCEPTION = "grader-exception"
    """The grader's results hold an error of its own, or how the run stopped matches one of `patterns`. Where there is a
    verdict of failure, a text called `error` or the like may be the verdict's words: it has to match one as well, and
    to name an exception or a timeout."""
    NO_SESSION = "no-session"
    """No step of the agent was recorded."""
    FAILURES = "failures"
    """`failures`: `none`; `recovered`, at least one and all recovered; or `unrecovered`, at least one is not."""
    STOPPED = "stopped"
    """No unrecovered failure, and how the run stopped matches one of `patterns`; any way when there are none."""
    FAILURE_MATCHES = "failure-matches"
    """The error line of the earliest unrecovered failure matches one of `patterns`; or one of `remote`, and what did
    not answer is not this machine. Where environment or grader is the side, or the run ended in an error, how it
    stopped may match one of them, or of `terminations`, instead."""
    FAILURE_HIDDEN = "failure-hidden"
    """The agent saw nothing of the earliest unrecovered failure."""
    FAILURE_REPEATED = "failure-repeated"
    """The agent saw it, and from then on made one identical call of its family at least `repeats` times, each with the
    same masked error line."""
    FAILURE_VISIBLE = "failure-visible"
    """The agent saw it."""


class Condition(NamedTuple):
    """One condition."""

    name: str
    """Unique over all files."""
    order: float
    """Smaller ones are tried first."""
    says: str
    """What it means, in words."""
    side: Side
    """Whose fault it is."""
    confidence: float
    """From 0 to 1."""
    destination: Destination
    """Where a trace goes that is known well enough."""
    test: Question
    """What is asked."""
    statuses: frozenset[str]
    """How the run must have ended."""
    patterns: tuple[re.Pattern[str], ...] = ()
    """Regular expressions, upper and lower case the same."""
    repeats: int = 2
    """For `failure-repeated`."""
    failures: str = "none"
    """For `failures`."""
    terminations: tuple[re.Pattern[str], ...] = ()
    """Further expressions for how the run stopped, for `failure-matches`."""
    remote: tuple[re.Pattern[str], ...] = ()
    """Further expressions for the error line, for `failure-matches`: they count for nothing where it names this machine
    itself, as `localhost` does, or names no address and the command names this machine."""
    own: str | None = None
    """How messages name the user's file that states it; None for a shipped one."""


class Conditions(NamedTuple):
    """All conditions, in the order in which they are tried."""

    ordered: tuple[Condition, ...]
    digest: str
    """SHA-256 of what they say, comments apart."""


_Name = TypeVar("_Name", bound=StrEnum)
_COMMON = ("name", "order", "says", "side", "confidence", "destination", "test")
_PARAMETERS: dict[Question, tuple[str, ...]] = {
    Question.GRADER_EXCEPTION: ("patterns",),
    Question.FAILURES: ("failures",),
    Question.STOPPED: ("patterns",),
    Question.FAILURE_MATCHES: ("patterns", "terminations", "remote"),
    Question.FAILURE_REPEATED: ("repeats",),
}
_REQUIRED: dict[Question, str] = {Question.FAILURES: "failures", Question.FAILURE_MATCHES: "patterns"}
_TRAINING = (Destination.TRAINING, Destination.RECOVERY_TRAINING)
# what these ask is whether environment or grader broke, whatever side stands beside them
_OF_NOBODY = (Question.NO_INPUT, Question.GRADER_EXCEPTION)
_REPAIRS = (Destination.ENVIRONMENT_REPAIR, Destination.BENCHMARK_REPAIR, Destination.QUARANTINE)
_FAILURES = ("none", "recovered", "unrecovered")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
_HEADER = re.compile(r"\s*\[\[\s*condition\s*\]\]")
UNMATCHED = "unmatched"
"""The condition of a trace that none holds for; no condition may have this name."""


@cache
def shipped() -> Conditions:
    """Return the twelve shipped conditions."""
    return conditions()


def conditions(own: str | None = None, where: str = "conditions") -> Conditions:
    """Return the shipped conditions and a user's own, in the order in which they are tried.

    Args:
        own: the text of the user's TOML file; None when there is none.
        where: how messages name that file.

    Raises:
        ParamsError: the text is no TOML, or says something that conditions do not have.
    """
    text = resources.files("tracemark.failures").joinpath(SHIPPED).read_text(encoding="utf-8")
    tables = _tables(text, SHIPPED)
    found = [_condition(table, _Place(text, SHIPPED, number), None) for number, table in enumerate(tables)]
    if own is not None:
        names = {condition.name: SHIPPED for condition in found}
        for number, table in enumerate(mine := _tables(own, where)):
            place = _Place(own, where, number)
            condition = _condition(table, place, where)
            if condition.name in names:
                place.refuse(
                    "name", f"{condition.name!r} is the name of a condition of {names[condition.name]} already"
                )
            names[condition.name] = where
            found.append(condition)
        tables = [*tables, *mine]
    found.sort(key=lambda condition: (condition.side not in NOBODYS, condition.order))
    return Conditions(tuple(found), digest.of(tables))


class _Place:
    """One condition in its file, for messages."""

    def __init__(self, text: str, where: str, number: int) -> None:
        self._lines, self._where, self._number = text.split("\n"), where, number

    def refuse(self, key: str, problem: str) -> None:
        """Stop with the file, the line and the key."""
        line = self._line_of(key)
        raise ParamsError(
            f"condition {self._number + 1}, {key}: {problem}",
            where=f"{self._where}:{line}",
            hint="the shipped conditions.toml shows every member",
        )

    def _line_of(self, key: str) -> int:
        headers = [index for index, line in enumerate(self._lines, 1) if _HEADER.match(line)]
        if self._number >= len(headers):
            return 1
        begin = headers[self._number]
        end = headers[self._number + 1] if self._number + 1 < len(headers) else len(self._lines) + 1
        stated = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        return next((line for line in range(begin, end) if stated.match(self._lines[line - 1])), begin)


def _tables(text: str, where: str) -> list[dict[str, Any]]:
    """Return the tables of a file, its own members checked."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParamsError(f"not TOML: {error}", where=where) from error
    except RecursionError as error:
        raise ParamsError("not usable TOML: nested too deep", where=where) from error
    version = document.get("version")
    if version.__class__ is not int or version != FORMAT:
        raise ParamsError(f"version: expected {FORMAT}, the form of conditions that this program reads", where=where)
    for key in document:
        if key not in ("version", "condition"):
            raise ParamsError(f"{key!r} is not known here; a file has `version` and `[[condition]]`", where=where)
    tables = document.get("condition", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ParamsError("condition: write each as a table of its own, [[condition]]", where=where)
    return tables


def _condition(table: Mapping[str, Any], place: _Place, own: str | None) -> Condition:
    """Return one condition, or refuse it."""
    for key in _COMMON:
        if key not in table:
            place.refuse(key, "is missing")
    test = _one_of(Question, table, "test", place)
    allowed = (*_COMMON, "statuses", *_PARAMETERS.get(test, ()))
    for key in table:
        if key not in allowed:
            place.refuse(key, f"is not known for the test {test}; known are {', '.join(allowed)}")
    required = _REQUIRED.get(test)
    if required is not None and not any(table.get(key) for key in (required, "terminations", "remote")):
        place.refuse(required, f"the test {test} needs it")
    name = _text(table, "name", place)
    if _PLAIN.match(name) is None or name == UNMATCHED:
        place.refuse("name", f"expected lower-case letters, digits and hyphens, and not {UNMATCHED!r}")
    confidence = _number(table, "confidence", place)
    if not 0 <= confidence <= 1:
        place.refuse("confidence", "expected a number from 0 to 1")
    failures = table.get("failures", "none")
    if failures not in _FAILURES:
        place.refuse("failures", f"expected one of {', '.join(_FAILURES)}")
    repeats = table.get("repeats", 2)
    if repeats.__class__ is not int or repeats < 2:
        place.refuse("repeats", "expected a whole number from 2 on: the first try and its repetitions")
    side, statuses = _one_of(Side, table, "side", place), _statuses(table, place)
    return Condition(
        name,
        _number(table, "order", place),
        _text(table, "says", place),
        side,
        confidence,
        _destination(table, place, side, test, statuses),
        test,
        statuses,
        _patterns(table, "patterns", place),
        repeats,
        failures,
        _patterns(table, "terminations", place),
        _patterns(table, "remote", place),
        own,
    )


def _destination(
    table: Mapping[str, Any], place: _Place, side: Side, test: Question, statuses: frozenset[str]
) -> Destination:
    """Return where a condition sends runs, or refuse it where such runs must not go there."""
    destination = _one_of(Destination, table, "destination", place)
    repairs = f"goes to {', '.join(_REPAIRS)}, never into the log"
    if side in NOBODYS and destination not in _REPAIRS:
        place.refuse("destination", f"a fault of the {side} {repairs}")
    if test in _OF_NOBODY and destination not in _REPAIRS:
        place.refuse("destination", f"what the test {test} asks is no fault of harness or model: it {repairs}")
    if destination in _TRAINING and statuses != {"success"}:
        place.refuse("destination", 'only a success is trained on: write statuses = ["success"], or another place')
    return destination


def _one_of(names: type[_Name], table: Mapping[str, Any], key: str, place: _Place) -> _Name:
    value = table[key]
    if value.__class__ is not str or value not in list(names):
        place.refuse(key, f"expected one of {', '.join(names)}")
    return names(value)


def _text(table: Mapping[str, Any], key: str, place: _Place) -> str:
    value = table[key]
    if value.__class__ is not str or not value.strip():
        place.refuse(key, "expected a text")
    return str(value)


def _number(table: Mapping[str, Any], key: str, place: _Place) -> float:
    value = table[key]
    if value.__class__ not in (int, float) or not abs(value) < 1e9:
        place.refuse(key, "expected a number")
    return float(value)


def _statuses(table: Mapping[str, Any], place: _Place) -> frozenset[str]:
    value = table.get("statuses", list(STATUSES))
    if not isinstance(value, list) or not value or not all(each in STATUSES for each in value if each.__class__ is str):
        place.refuse("statuses", f"expected a list of {', '.join(STATUSES)}")
    if not all(each.__class__ is str for each in value):
        place.refuse("statuses", f"expected a list of {', '.join(STATUSES)}")
    return frozenset(value)


def _patterns(table: Mapping[str, Any], key: str, place: _Place) -> tuple[re.Pattern[str], ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(each.__class__ is str and each for each in value):
        place.refuse(key, "expected a list of regular expressions")
    compiled = []
    for each in value:
        try:
            with warnings.catch_warnings():
                # what another version reads otherwise is a question to its author, once and here
                warnings.simplefilter("error")
                compiled.append(re.compile(each, re.IGNORECASE))
        except (re.error, RecursionError, OverflowError, Warning) as error:
            place.refuse(key, f"{each!r} is no regular expression: {error}")
    return tuple(compiled)
