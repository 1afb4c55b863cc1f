"""What one command of a shell is: its program, with the subcommand or with what it interprets.

What is known of programs is data (`programs.toml`): which have subcommands, which options take a value, which only
start another program. Two different things must not be called one, so what is not known is read narrowly: of a program
that stands nowhere there, its options and its first word that may be a subcommand count with it, and so does a word
that may be the value of an option which nobody listed.

Invariant: linear time in the words of a command, and a command inside a command is entered a few levels deep at most.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.failures.command_line import Pipeline, pipelines, without_redirections

DATA = "programs.toml"
"""The name of the data file, beside this module."""

_DEEPEST = 4
_LONGEST_WORD = 200
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SUBCOMMAND = re.compile(r"[A-Za-z][\w:./@-]*\Z")
_MAY_BE_ONE = re.compile(r"[A-Za-z][\w:-]{0,39}\Z")
_VERSIONED = re.compile(r"(\D*?)-?\d[\d.]*\Z")
_ASKS = frozenset(["--help", "--version"])
_ASKS_ALONE = frozenset(["-h", "-V", "-version", "-help", "help", "version"])


class Known(NamedTuple):
    """What is known of one program."""

    values: frozenset[str] = frozenset()
    """Options with a value."""
    flags: frozenset[str] = frozenset()
    """Options without one."""
    words: int = 1
    """Subcommands that count."""
    groups: Mapping[str, int] = {}
    """Subcommands with subcommands of their own: how many."""
    runs: frozenset[str] = frozenset()
    """Subcommands that start another program."""
    run_values: frozenset[str] = frozenset()
    """Options with a value behind those."""
    skip: int = 0
    """Words before the other program."""
    code: frozenset[str] = frozenset()
    """Options that give code in place."""
    module: frozenset[str] = frozenset()
    """Options that name a module."""
    anywhere: bool = False
    """Whether `code` may stand behind words."""


class Programs(NamedTuple):
    """What is known of programs, by kind and by name."""

    plain: frozenset[str]
    scenery: frozenset[str]
    flags: frozenset[str]
    wrapper: Mapping[str, Known]
    program: Mapping[str, Known]
    interpreter: Mapping[str, Known]
    shell: Mapping[str, Known]


@cache
def known() -> Programs:
    """Return what the shipped data says."""
    text = resources.files("tracemark.failures").joinpath(DATA).read_text(encoding="utf-8")
    data = tomllib.loads(text)
    plain, scenery, flags = (frozenset(data.pop(name).split()) for name in ("plain", "scenery", "flags"))
    kinds = {kind: {name: _known(facts, flags) for name, facts in named.items()} for kind, named in data.items()}
    return Programs(plain, scenery, flags, **kinds)


def _known(facts: Mapping[str, str | int], flags: frozenset[str]) -> Known:
    made: dict[str, Any] = {name: frozenset(fact.split()) for name, fact in facts.items() if isinstance(fact, str)}
    pairs = [group.partition("=") for group in made.pop("groups", ())]
    numbers = {name: fact for name, fact in facts.items() if not isinstance(fact, str)}
    groups = {group: int(number or 1) for group, _, number in pairs}
    return Known(**{**made, **numbers, "groups": groups, "flags": made.get("flags", frozenset()) | flags})


@lru_cache(maxsize=8)
def program_of(script: str) -> str:
    """Return the program that a command line is about, with its subcommand or what it interprets; linear time."""
    return _about(script, _DEEPEST) or script.strip()[:_LONGEST_WORD] or "(nothing)"


@lru_cache(maxsize=8)
def counting(script: str) -> int | None:
    """Return which pipeline of a command line its program is in: the last that does more than to set the scene."""
    lines = pipelines(script)
    return next((place for place in reversed(range(len(lines))) if _does_something(lines[place])), None)


@lru_cache(maxsize=8)
def programs_of(script: str) -> tuple[str, str]:
    """Return the names of the first and the last program of the pipeline that a command line is about."""
    place, lines = counting(script), pipelines(script)
    if place is None:
        place = len(lines) - 1
    if place < 0:
        return "", ""
    commands = lines[place].commands
    return _name(commands[0]), _name(commands[-1])


def _about(script: str, depth: int) -> str:
    place, lines = counting(script), pipelines(script)
    if place is not None:
        return _program(lines[place].commands[0], depth)
    return next((scene for one in reversed(lines) if (scene := _name(one.commands[0]))), "")


def _does_something(pipeline: Pipeline) -> bool:
    name = _name(pipeline.commands[0])
    return bool(name) and name not in known().scenery


@lru_cache(maxsize=64)
def _name(command: tuple[str, ...]) -> str:
    """Return the name of the program that a command is about; empty for one that is about none."""
    return _bare(_past_wrappers(without_redirections(command)[0]))


def _past_wrappers(words: Sequence[str]) -> Sequence[str]:
    """Return a command from its program on: without assignments and programs that only start another."""
    place, wrappers = 0, known().wrapper
    while place < len(words):
        word = words[place]
        wrapper = wrappers.get(word.rpartition("/")[2])
        if wrapper is not None and place + 1 < len(words):
            place = _behind_options(words, place + 1, wrapper) + wrapper.skip
        elif _ASSIGNMENT.match(word):
            place += 1
        else:
            break
    return words[place:]


def _behind_options(words: Sequence[str], place: int, of: Known) -> int:
    """Return where the options that begin at a place end; assignments before a program are none of it either."""
    while place < len(words):
        word = words[place]
        if word == "--":
            return place + 1
        if word in of.values or word in of.run_values:
            place += 2
        elif word[0] == "-" or _ASSIGNMENT.match(word):
            place += 1
        else:
            break
    return place


def _bare(words: Sequence[str]) -> str:
    """Return the name of a command's program; one that is called by a place of its own keeps it."""
    if not words:
        return ""
    word = words[0].strip("'\"")
    if word[:1] in ("$", "`"):
        return word
    folder, _, name = word.rpartition("/")
    return name if folder.endswith("bin") else word


def _fact(kind: Mapping[str, Known], name: str) -> Known | None:
    """Return what is known of a program of a kind, whatever its place and version (`./gradlew`, `python3.12`)."""
    last = name.rpartition("/")[2]
    found = kind.get(last)
    if found is None and (versioned := _VERSIONED.match(last)) is not None:
        found = kind.get(versioned[1])
    return found


def _program(command: Sequence[str], depth: int) -> str:
    """Return what one command runs; empty for one that only starts nothing."""
    words, given = without_redirections(tuple(_past_wrappers(command)))
    words = tuple(_past_wrappers(words))
    name = _bare(words)
    if not name or depth == 0:
        return _short(name)
    rest, data = words[1:], known()
    asked = next((word for word in rest if word in _ASKS), None)
    if asked is None and len(rest) == 1 and rest[0] in _ASKS_ALONE:
        asked = rest[0]
    if name == "eval":
        return _about(_text(rest), depth - 1) or name
    if (shell := _fact(data.shell, name)) is not None:
        code = _code(rest, shell)
        if code is not None:
            return _about(code, depth - 1) or name
        said = [name, *_interpreted(rest, shell, given)]
    elif (interpreter := _fact(data.interpreter, name)) is not None:
        said = [name, *_interpreted(rest, interpreter, given)]
    else:
        said = [name, *_worded(name, rest, depth)]
    if asked is not None and asked not in said:
        said.append(asked)
    return " ".join(_short(word) for word in said if word)


def _text(words: Sequence[str]) -> str:
    """Return the command line that words are when a shell reads them again."""
    return " ".join(_unquoted(word) for word in words)


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1].replace('\\"', '"') if word[0] == '"' else word[1:-1]
    return word


def _code(rest: Sequence[str], shell: Known) -> str | None:
    """Return the command line that a shell is told to carry out; None when it is told none."""
    place = 0
    while place < len(rest):
        word = rest[place]
        if _gives(word, shell.code):
            return _unquoted(rest[place + 1]) if place + 1 < len(rest) else ""
        if word in shell.values:
            place += 1
        elif word[0] not in "-+" and not shell.anywhere:
            return None
        place += 1
    return None


def _gives(word: str, options: frozenset[str]) -> bool:
    """Return whether a word is one of the options, or ends a cluster of short ones such as `-lc`."""
    if word in options:
        return True
    return 2 < len(word) <= 6 and word[0] == "-" and word[1:].isalpha() and f"-{word[-1]}" in options


def _interpreted(rest: Sequence[str], of: Known, given: bool) -> list[str]:
    """Return what an interpreter was given: a file or a module with its subcommand, or that the code stood in place."""
    place, unsure = 0, False
    while place < len(rest):
        word = rest[place]
        if _gives(word, of.module):
            named = rest[place + 1 : place + 2]
            return ["-m", *named, *(_worded(named[0], rest[place + 2 :], 1) if named else ())]
        if word == "-" or _gives(word, of.code):
            return ["-c"]
        if word in of.values:
            place += 2
            continue
        if word[0] != "-":
            # a script has subcommands of its own, and an option that nobody listed may have had this word as its value
            behind = rest[place + 1 :]
            return [_unquoted(word), *(behind[:1] if unsure else ()), *_narrowly(behind[1:] if unsure else behind)]
        unsure = word.startswith("--") and "=" not in word and word not in of.flags
        place += 1
    return ["-c"] if given else []


def _worded(name: str, rest: Sequence[str], depth: int) -> list[str]:
    """Return the words of a command that count with its program's name."""
    data = known()
    program = _fact(data.program, name)
    if program is not None:
        return _subcommand(rest, program, depth)
    if name.rpartition("/")[2] in data.plain or name in data.scenery:
        return []
    if name[:1] in ("$", "`"):
        # nobody knows which program this is, so what it is given counts
        return [_unquoted(word) for word in rest[:1]] + _narrowly(rest[1:])
    return _narrowly(rest)


def _narrowly(rest: Sequence[str]) -> list[str]:
    """Return what counts of the words of a program of which nothing is known."""
    flags = known().flags
    said = [word.partition("=")[0] if word[0] == "-" else _unquoted(word) for word in rest if word not in flags]
    words = [place for place, word in enumerate(said) if _MAY_BE_ONE.match(word)]
    # right behind an option it may be that one's value
    first = next((place for place in words if place == 0 or said[place - 1][:1] != "-"), None)
    if first is None:
        first = next(iter(words), None)
    if first is not None:
        return said[: first + 1]
    return said[: next((place for place, word in enumerate(said) if word[:1] != "-"), len(said))]


def _subcommand(rest: Sequence[str], of: Known, depth: int) -> list[str]:
    """Return the subcommands of a program, and what those run that start another."""
    said: list[str] = []
    place, wanted, unsure = 0, of.words, False
    if wanted == 0:
        return _started(rest, of, depth)
    while place < len(rest) and wanted > 0:
        word = rest[place]
        place += 1
        if word in of.values:
            place += 1
        elif word[0] in "-+":
            attached = "=" in word or word[:2] in of.values
            unsure = not attached and word[0] == "-" and word not in of.flags and word != "--"
        elif not _SUBCOMMAND.match(word):
            unsure = False
        else:
            said.append(word)
            if unsure:
                # it may be the option's value
                unsure = False
                continue
            wanted += of.groups.get(word, 0) - 1
            if word in of.runs:
                return [*said, *_started(rest[place:], of, depth)]
    return said


def _started(rest: Sequence[str], of: Known, depth: int) -> list[str]:
    """Return what a program starts, with the words between the two, such as a container's name."""
    begin = _behind_options(rest, 0, of)
    end = begin + of.skip
    between, command = rest[begin:end], rest[end:]
    if command[:1] == ("--",):
        command = command[1:]
    if len(command) == 1 and " " in command[0]:
        # `ssh host 'make test'`
        return [*between, _about(_unquoted(command[0]), depth - 1)]
    return [*between, _program(tuple(command), depth - 1)]


def _short(word: str) -> str:
    """Return a word, a long one by its digest."""
    return word if len(word) <= _LONGEST_WORD else digest.of(word)
