"""Which calls are attempts at the same thing: the command family.

A failure is recovered when a later call *of its family* succeeds. The looser rule, any later clean observation, calls a
broken build recovered because `ls` worked afterwards; this module is what keeps the two apart.

- A tool: its name, the operation that it was asked for (`command`, `action`, … when that is one word), and the
  arguments that name the object acted on. Those are the ones whose stem stands in the tool's name (`reservation_id` of
  `update_reservation_flights`), else every argument that names something (`…_id`, `path`, `url`, `email`, …). What an
  agent may well change on a second try, such as an amount or a text, does not belong to it.
- A shell: the program. Of a chain it is that of the last command that does more than to set the scene; of a pipeline
  that of the first, which does the work that the others only cut. A program with subcommands counts with its subcommand
  (`git push`), an interpreter with what it runs (`python test.py`, `python -m pytest`, `python -c`); see `program`.

So `pip install x` is not recovered by `ls`, nor by `pip list`, nor `python a.py` by `python b.py`, nor an edit of one
file by an edit of another. One failure asks for more: where the error says that what an argument names is not there, a
second try of the same thing has to name something else. Such a failure (`misnamed`) is recovered by a success of the
tool and its operation, whatever object that names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.failures.program import program_of

_LONGEST_VALUE = 200
_LONGEST_NAMES = 1_000
_SHELLS = frozenset(
    [
        *("bash", "shell", "sh", "zsh", "terminal", "console", "powershell", "pwsh", "tmux", "unix"),
        *("exec", "execute", "cmd", "command", "commands"),
    ]
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SCRIPTS = (
    "command", "cmd", "script", "keystrokes", "commands", "input", "bash_command", "shell_command", "command_line"
)  # fmt: skip
_COMMAND_LINES = ("command", "cmd", "bash_command", "shell_command", "command_line", "script")
_SEVERAL_WORDS = re.compile(r"\s*\S+\s+\S")
_OPERATIONS = ("command", "action", "operation", "method", "op")
_WORD = re.compile(r"[\w-]{1,40}\Z")
_NAMES = re.compile(
    r"(?:(.+)_)?(?:ids?|path|file|filename|filepath|folder|directory|dir|url|uri|email|key|name|table)\Z"
    r"|(.+)_(?:code|number)\Z"
)
_NOT_THERE = re.compile(
    r"\b(?:unknown|not found|no such|does not exist|doesn't exist|not exist|invalid|not valid|unrecogni[sz]ed|"
    r"cannot find|could not find|not registered|there is no|no [\w -]{1,40} (?:uses|with|named|called|has|found|for))\b"
    r"|unknown_|_not_found",
    re.IGNORECASE,
)
_NEAR = 60
"""Characters between a name and the words that it is not there."""
_APART = re.compile(r"[.!?;]\s|\n")
_LEADS = re.compile(
    r"[\s\[({<*\"'`-]{0,4}(?:(?:error|the|a|an|there|is|sorry|failed)[ ,:]{1,2}){0,3}(?:[A-Za-z]{1,20} ){0,4}[\"'`(]?",
    re.IGNORECASE,
)
"""What may stand before them in a text that begins with them."""
_JOINED_BEFORE = re.compile(r"(?:\w|\w[.-])\Z")
_JOINED_BEHIND = re.compile(r"[.-]?\w")


def script_of(tool: str | None, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line that a call gives to a shell; None when the tool is no shell.

    A shell is a tool with a word of one in its name (`bash`, `executeCommand`), or any that is given a command line of
    several words as its command: many are called after where they run it (`sandbox`, `process`).
    """
    if not tool:
        return None
    names = _SCRIPTS if _is_shell(tool) else _COMMAND_LINES
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and (names is _SCRIPTS or _SEVERAL_WORDS.match(value) is not None):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            # ["bash", "-lc", "…"] is a shell told what to do, any other list a program with its arguments
            return str(value[2]) if len(value) == 3 and value[1] in ("-c", "-lc") else shlex.join(value)
    return None


@lru_cache(maxsize=1024)
def _is_shell(tool: str) -> bool:
    return any(word.lower() in _SHELLS for word in _WORDS.findall(tool[:_LONGEST_NAMES]))


class Attempt(NamedTuple):
    """What a call is an attempt at."""

    family: str | None
    """A text that only its equals share; None when neither a tool nor a command is known, which no later call can
    recover."""
    operation: str | None
    """The same without what names the object acted on; for a command line the family itself."""


_UNKNOWN = Attempt(None, None)


def attempt_of(tool: str | None, arguments: Mapping[str, Any], script: str | None) -> Attempt:
    """Return what a call is an attempt at.

    Args:
        tool: the tool's name; None or empty when nobody recorded it.
        arguments: the arguments by name.
        script: the command line, where the call is one; see `script_of`.
    """
    if script is not None:
        family = f"{tool or 'shell'}: {program_of(script)}"
        return Attempt(family, family)
    if not tool:
        return _UNKNOWN
    asked = [f"{name}={arguments[name]}" for name in _OPERATIONS if name in arguments and _is_word(arguments[name])]
    operation = " ".join([tool, *asked])
    of = [f"{name}={_value(arguments[name])}" for name in _identifying(tool, arguments)]
    return Attempt(" ".join([operation, *of]), operation)


def is_misnamed(
    error: str, tool: str | None, arguments: Mapping[str, Any], script: str | None, *, first: bool = False
) -> bool:
    """Return whether an error says that what an argument of its call names is not there: it quotes it, and says so.

    Args:
        error: the error line, or a text that may be one.
        tool: the tool's name; None when not known.
        arguments: what the tool was called with.
        script: the command line, when the call was one; the words of a program are not read for names.
        first: whether the text has to begin with it, because nothing else says that there is an error.
    """
    if script is not None or not tool or (match := _NOT_THERE.search(error)) is None:
        return False
    values = [value for name in _identifying(tool, arguments) if isinstance(value := arguments[name], str)]
    while match is not None:
        for value in values:
            for begin, end in _quoted(error, value.strip(), match):
                between = error[min(end, match.end()) : max(begin, match.start())]
                if len(between) <= _NEAR and _APART.search(between) is None:
                    before = error[: min(begin, match.start())]
                    if not first or _LEADS.fullmatch(before) is not None:
                        return True
        match = None if first else _NOT_THERE.search(error, match.end())
    return False


def _quoted(error: str, value: str, near: re.Match[str]) -> Iterable[tuple[int, int]]:
    """Give the places near others at which a text has a value as a whole word: `4` is in neither `404` nor `4.txt`."""
    first, last = max(0, near.start() - _NEAR - len(value)), near.end() + _NEAR + len(value)
    begin = error.find(value, first, last) if value else -1
    while begin >= 0:
        end = begin + len(value)
        if not _JOINED_BEFORE.search(error, max(0, begin - 2), begin) and not _JOINED_BEHIND.match(error, end):
            yield begin, end
        begin = error.find(value, begin + 1, last)


def _identifying(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arguments that name the object acted on, in order."""
    names = tuple(arguments)
    # a run calls few tools, and each with few choices of arguments
    known = len(tool) + sum(map(len, names)) <= _LONGEST_NAMES
    return (_chosen if known else _chosen.__wrapped__)(tool, names)


@lru_cache(maxsize=1024)
def _chosen(tool: str, names: tuple[str, ...]) -> tuple[str, ...]:
    named = [(name, match[1] or match[2]) for name in names if (match := _NAMES.match(name)) is not None]
    lowered = tool.lower()
    own = [name for name, stem in named if (stem or name) in lowered]
    return tuple(sorted(own or (name for name, _ in named)))


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and _WORD.match(value) is not None


def _value(value: Any) -> str:
    """Return an argument's value on one line, long ones by their digest."""
    text = value if isinstance(value, str) else digest.canonical(value).decode()
    return text if len(text) <= _LONGEST_VALUE else digest.of(text)
