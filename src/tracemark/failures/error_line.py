"""The line in which an observation says that a call failed.

The tool's own word decides first: a flag (`is_error`, `error`, `ok`), an exit code, the status of a JSON answer, in
what the tool gave (`raw_output`), in what the recording says of the result, or in the observation itself, of which
`unwrap` takes off what a harness wrote around it; a recorded exit code counts before one in a text. A tool that
says it succeeded is believed, whatever words stand in its text; but exit code 0 that another program gave, the last of
a pipe or the `true` of `|| true`, says nothing of the one that a command line is about, and a script may end well after
the traceback that ends its output.

Where nothing says how the call went, the text must have the form of an error, see `text_form`, the output of a command
line may end like one that failed, see `ending`, or the text is one short answer that what the call named is not there.
What a program that shows files prints is believed even less, see `showers`.

Every exit code but 0 is a failure, that of a signal (-9, 137) as well; -1 is none, see `unwrap`.

Exit code 1 of `grep`, `diff` or `test` is their answer, no failure, and silence that a command line asks for is hidden
by nobody, see `answers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tracemark.failures.answers import is_answer, is_silenced
from tracemark.failures.command_line import code_counts, echoed
from tracemark.failures.evidence import SAYS
from tracemark.failures.family import is_misnamed
from tracemark.failures.program import counting
from tracemark.failures.showers import shows
from tracemark.failures.text_form import (
    ONE_ANSWER,
    TAIL,
    TRACEBACK,
    by_form,
    cut,
    ending_traceback,
    line_of,
)
from tracemark.failures.unwrap import UNKNOWN, is_int, is_marked, json_object, unwrap

_NO_ERROR = re.compile(r"\s*(?:none|null|nil|false|no errors?|n/?a|ok|0|-)[.!]?\s*\Z", re.IGNORECASE)
_SIGNS = ('rror"', "false", '"fail', 'code"', 'exitCode"')
"""One of these stands in every JSON answer that says how the call went otherwise than well."""
_ANSWERS = ("message", "error", "detail", "details", "reason", "exception_info", "msg", "stderr")


class Said(NamedTuple):
    """What an observation says of its call."""

    error: str | None
    """The line that says the error; None when the call went well, or nothing says that it did not."""
    hidden: bool
    """Whether the call failed and nothing that the agent saw tells so."""


class _Word(NamedTuple):
    """What one place says of a call."""

    failed: bool | None
    """None when it says nothing."""
    line: str | None = None
    code: int | None = None
    marked: bool = False
    """Whether a harness itself tells the agent that the call failed."""


_NOTHING = _Word(None)
_CLEAN = Said(None, hidden=False)


def error_in(
    text: str,
    extra: Mapping[str, Any] | None,
    script: str | None,
    tool: str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Said:
    """Return what an observation says of its call.

    Args:
        text: what the agent saw.
        extra: the `extra` of the result; None when it has none.
        script: the command line, when the call was one.
        tool: the tool's name; None when not known.
        arguments: what the tool was called with; None when not known.
    """
    told = _of_extra(extra) if extra else _NOTHING
    printed, seen = _of_text(text, told, script, tool)
    if not told.failed and not seen.failed:
        printed, told, seen = _own(printed, told, seen, script)
    if not told.failed and not seen.failed:
        if told.failed is None and seen.failed is None:
            line = by_form(printed, shows(script, tool), script)
            if line is None and arguments and len(printed) <= ONE_ANSWER:
                line = _not_there(printed, tool, arguments, script)
            return Said(line, hidden=False)
        ended = script is not None and TRACEBACK in printed and not shows(script, tool)
        return Said(ending_traceback(printed), hidden=False) if ended else _CLEAN
    if told.failed is False and seen.code is None and seen.line is None and not seen.marked:
        return _CLEAN
    code = told.code if told.code is not None else seen.code
    if code and script is not None and is_answer(script, code, printed):
        return _CLEAN
    line = told.line or seen.line or line_of(printed) or line_of(text)
    line = line or (f"exit code {code}" if code else "the tool reported a failure")
    if told.line is not None and not seen.failed:
        hidden = not _surfaced(printed, told.line)
    else:
        hidden = not text.strip() and not (script is not None and is_silenced(script))
    return Said(cut(line), hidden)


def _not_there(printed: str, tool: str | None, arguments: Mapping[str, Any], script: str | None) -> str | None:
    """Return the one line of an answer that begins with saying that what the call named is not there."""
    line = printed.strip().partition("\n")[0]
    return cut(line) if is_misnamed(line, tool, arguments, script, first=True) else None


def _own(printed: str, told: _Word, seen: _Word, script: str | None) -> tuple[str, _Word, _Word]:
    """Return what a command line printed, and what was said of it, as far as it is its program's own.

    An `echo` behind the program may tell its code; and where the code is another's, as behind `|| true`, code 0 says
    nothing.
    """
    place = None if script is None else counting(script)
    if script is None or place is None:
        return printed, told, seen
    printed, code = echoed(script, place, printed)
    if code is not None:
        return printed, _NOTHING, _Word(code > 0, code=code)
    if 0 in (told.code, seen.code) and not code_counts(script, place):
        return printed, _NOTHING, _NOTHING
    return printed, told, seen


def _of_extra(extra: Mapping[str, Any]) -> _Word:
    """Return what the recording says: its own flags, then what the tool gave."""
    word = _of_object(extra, own=True)
    if extra.get("observation_kind") in ("AgentErrorEvent", "UserRejectObservation"):
        word = _Word(True, word.line, word.code)
    for name in ("raw_output", "observation", "event", "extras", "original_content"):
        value = extra.get(name)
        if isinstance(value, dict):
            found = _of_object(value)
            for inner in ("output", "result", "metadata"):
                within = value.get(inner)
                if isinstance(within, dict):
                    found = _joined(found, _of_object(within))
            word = _joined(word, found)
    return word


def _joined(one: _Word, other: _Word) -> _Word:
    """Return what two places say together: a failure outweighs the rest, and each may know what the other does not."""
    said = [word.failed for word in (one, other) if word.failed is not None]
    return _Word(any(said) if said else None, one.line or other.line, one.code if one.code is not None else other.code)


def _of_object(value: Mapping[str, Any], *, own: bool = False) -> _Word:
    """Return what a JSON object says of the call that it answers.

    Args:
        value: the object.
        own: whether it is the recording's own, whose members are not the tool's.
    """
    get = value.get
    code = next((found for name in ("returncode", "exit_code", "exitCode") if is_int(found := get(name))), None)
    error, status, exception = get("error"), get("status"), get("exception_info")
    flags = [get(name) for name in ("ok", "success", "passed")]
    flagged = (
        get("is_error") is True or get("isError") is True or error is True or get("timeout") is True or bool(exception)
    )
    named = _names_one(error) and not any(flag is True for flag in flags)
    state = status.lower() if isinstance(status, str) else ""
    stated = state == "error" or (state in ("failed", "failure") and any(get(name) for name in _ANSWERS))
    if flagged or named or stated or any(flag is False for flag in flags) or code not in (None, 0, UNKNOWN):
        return _Word(True, _message({"error": error} if own else value), code)
    if code == 0 or any(flag is True for flag in flags) or get("is_error") is False or get("isError") is False:
        return _Word(False, None, code)
    if own:
        return _Word(False) if error is False else _NOTHING
    return _Word(False) if state in ("success", "ok") else _NOTHING


def _names_one(error: Any) -> bool:
    """Return whether a member `error` names one: `none`, `0` and an object without a word in it do not."""
    if isinstance(error, dict):
        return any(isinstance(found, (str, dict, list)) and bool(found) for found in error.values()) or any(
            is_int(found) and found != 0 for found in error.values()
        )
    return isinstance(error, str) and bool(error.strip()) and _NO_ERROR.match(error) is None


def _message(value: Mapping[str, Any]) -> str | None:
    """Return how an object words its error: code and message; None when it has no words."""
    code = value.get("code") or value.get("type")
    for name in _ANSWERS:
        found = value.get(name)
        if isinstance(found, dict):
            code = code or found.get("code") or found.get("type")
            found = found.get("message")
        if isinstance(found, str) and found.strip():
            line = line_of(found) or found.strip()
            return f"{code}: {line}" if isinstance(code, str) and code not in line else line
    output = value.get("output")
    if isinstance(output, str) and output.strip():
        return line_of(output)
    return code if isinstance(code, str) and code else None


def _of_text(text: str, told: _Word, script: str | None, tool: str | None) -> tuple[str, _Word]:
    """Return what was printed, and what the observation itself states: an exit code or the members of a JSON answer."""
    if script is None and shows(None, tool) and not is_marked(text):
        # what a tool reads is a file's, wrappers and all; a JSON object is still how such a tool answers
        return text, _of_json(text)
    found = unwrap(text)
    if found.failed:
        return found.text, _Word(True, found.line, found.code, marked=True)
    if text[:64].lstrip().startswith("{"):
        return found.text, _of_json(text)
    if found.code is not None:
        # a harness that records the code writes that one: another is what a program printed
        quoted = told.code is not None and told.code != found.code
        return (text, _NOTHING) if quoted else (found.text, _Word(found.code != 0, code=found.code))
    return found.text, _of_json(found.text)


def _of_json(text: str) -> _Word:
    if not text[:64].lstrip().startswith("{") or not any(sign in text for sign in _SIGNS):
        return _NOTHING
    if (value := json_object(text)) is None:
        return _NOTHING
    word = _of_object(value)
    metadata = value.get("metadata")
    if word.failed is None and isinstance(metadata, dict):
        word = _of_object(metadata)
        if word.failed:
            word = word._replace(line=_message(value))
    return word


def _surfaced(text: str, line: str) -> bool:
    """Return whether a text tells of the error that the tool itself worded as `line`."""
    code, _, message = line.partition(": ")
    if code in text or line[:80] in text or (message and message[:80] in text):
        return True
    return by_form(text, shows=False) is not None or SAYS.search(text[:TAIL]) is not None
