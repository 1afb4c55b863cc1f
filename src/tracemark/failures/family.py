"""Which calls are attempts at the same thing: the command family.

A failure is recovered when a later call *of its family* succeeds. The looser rule, any later clean observation, calls a
broken build recovered because `ls` worked afterwards; this module is what keeps the two apart.

- A tool: its name, the operation that it was asked for (`command`, `action`, … when that is one word), and the
  arguments that name the object acted on. Those are the ones whose stem stands in the tool's name (`reservation_id` of
  `update_reservation_flights`), else every argument that names something (`…_id`, `path`, `url`, `email`, …). What an
  agent may well change on a second try, such as an amount or a text, does not belong to it.
- A shell: the program. Of a chain it is that of the last command, whose exit code the chain has; of a pipeline that of
  the first, which does the work that the others only cut. What sets the scene (`cd`, assignments, `sudo`, `timeout 5`)
  is passed over. A program with subcommands counts with its subcommand (`git push`), an interpreter with what it runs
  (`python test.py`, `python -m pytest`, `python -c`).

So `pip install x` is not recovered by `ls`, nor by `pip list`, nor `python a.py` by `python b.py`, nor an edit of one
file by an edit of another. One failure asks for more: where the error says that what an argument names is not there, a
second try of the same thing has to name something else. Such a failure (`misnamed`) is recovered by a success of the
tool and its operation, whatever object that names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from tracemark import digest

_LONGEST = 20_000
_LONGEST_VALUE = 200
_LONGEST_NAMES = 1_000
_SHELL = re.compile(
    r"(?:.*[_.-])?(?:bash|shell|sh|zsh|terminal|console|powershell|exec|execute|cmd|command|unix)(?:[_.-].*)?\Z",
    re.IGNORECASE,
)
_SCRIPTS = ("command", "cmd", "script", "keystrokes", "commands", "input")
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
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_TOKEN = re.compile(
    r"\d*[<>]&[\d-]|&>>?|(?<![^\s;&|])#[^\n]*|&&|\|\|?|[;\n&()]"
    r"|(?:[^\s'\"\\;|&()]+|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.)+|['\"\\]",
    re.DOTALL,
)
_PIPE = "|"
_EDITS = ("end_of_edit", "end_of_insert")
_ENDS = frozenset(["&&", "||", ";", "\n", "&", "(", ")"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SCENERY = frozenset(
    ["cd", "pushd", "popd", "export", "set", "source", ".", "true", "echo", "printf", "sleep", "unset", "wait", "exit"]
)
_WRAPPERS = frozenset(
    ["sudo", "env", "time", "nohup", "nice", "timeout", "exec", "command", "then", "do", "else", "if"]
)
_WITH_SUBCOMMAND = frozenset(
    [
        "git",
        "pip",
        "pip3",
        "npm",
        "yarn",
        "pnpm",
        "bun",
        "docker",
        "apt",
        "apt-get",
        "conda",
        "cargo",
        "go",
        "make",
        "kubectl",
        "uv",
        "poetry",
        "systemctl",
        "gh",
        "dvc",
        "brew",
    ]
)
_SUBCOMMAND = re.compile(r"[A-Za-z][\w:./@-]*\Z")
_INTERPRETERS = re.compile(r"(?:python|pypy|node|ruby|perl|php|bash|sh|zsh|Rscript)[\d.]*\Z")
_GIVEN_IN_PLACE = frozenset(["-c", "-e", "-m", "-lc"])


def script_of(tool: str | None, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line that a call gives to a shell; None when the tool is no shell."""
    if not tool or _SHELL.match(tool) is None:
        return None
    for name in _SCRIPTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            # ["bash", "-lc", "…"] is a shell told what to do, any other list a program with its arguments
            return str(value[2]) if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
    return None


def family_of(tool: str | None, arguments: Mapping[str, Any], script: str | None) -> str | None:
    """Return the family of a call.

    Args:
        tool: the tool's name; None or empty when nobody recorded it.
        arguments: the arguments by name.
        script: the command line, where the call is one; see `script_of`.

    Returns:
        The family as a text that only its equals share; None when neither a tool nor a command is known, which no later
        call can recover.
    """
    if script is not None:
        return f"{tool or 'shell'}: {program_of(script)}"
    operated = operation_of(tool, arguments, None)
    if operated is None or tool is None:
        return None
    return " ".join([operated, *(f"{name}={_value(arguments[name])}" for name in _identifying(tool, arguments))])


def operation_of(tool: str | None, arguments: Mapping[str, Any], script: str | None) -> str | None:
    """Return the family of a call without what names the object acted on; for a command line the family itself."""
    if script is not None:
        return family_of(tool, arguments, script)
    if not tool:
        return None
    return " ".join([tool, *(f"{name}={arguments[name]}" for name in _OPERATIONS if _is_word(arguments.get(name)))])


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


def program_of(script: str) -> str:
    """Return the program that a command line is about, with its subcommand or what it interprets; linear time."""
    chosen = scene = ""
    for words in _commands(_without_documents(script[:_LONGEST])):
        chosen = _program(words) or chosen
        scene = _bare(_past_scenery(words)) or scene
    return chosen or scene or "(nothing)"


def programs_of(script: str) -> tuple[str, str]:
    """Return the names of the first and the last program of the last pipeline of a command line."""
    first = last = ""
    for words in _commands(_without_documents(script[:_LONGEST]), whole=True):
        names = [_bare(_past_scenery(part)) for part in _split(words)]
        if names and (names[0] or names[-1]):
            first, last = names[0], names[-1]
    return first, last


def _without_documents(script: str) -> str:
    """Return a command line without what it gives to a program as text: here-documents, and the text of an edit."""
    if script.rstrip().endswith(_EDITS):
        return script.partition("\n")[0]
    if "<<" not in script:
        return script
    kept, place = [], 0
    while (match := _HEREDOC.search(script, place)) is not None:
        line = script.find("\n", match.end())
        if line < 0:
            break
        kept.append(script[place : line + 1])
        end = script.find("\n" + match[2], line)
        if end < 0:
            return "".join(kept)
        place = end + 1 + len(match[2])
    return "".join([*kept, script[place:]])


def _commands(script: str, *, whole: bool = False) -> Iterable[list[str]]:
    """Give the commands of a chain as words: of each pipeline the first, or all of it with its `|` when `whole`."""
    words: list[str] = []
    piped = False
    for token in _TOKEN.findall(script):
        if token in _ENDS:
            if words:
                yield words
            words, piped = [], False
        elif token == _PIPE and not whole:
            piped = True
        elif not piped and token[0] != "#":
            words.append(token)
    if words:
        yield words


def _split(words: list[str]) -> list[list[str]]:
    """Return the commands of one pipeline."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == _PIPE:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _past_scenery(words: list[str]) -> list[str]:
    """Return a command from its program on: without assignments and programs that only start another."""
    place, wrapped = 0, False
    while place < len(words):
        word = words[place]
        if word in _WRAPPERS:
            wrapped = True
        elif not (_ASSIGNMENT.match(word) or (wrapped and (word[0] in "-0123456789"))):
            break
        place += 1
    return words[place:]


def _bare(words: list[str]) -> str:
    """Return the name of a command's program; one that is called by a place of its own keeps it."""
    if not words:
        return ""
    word = words[0].strip("'\"")
    folder, _, name = word.rpartition("/")
    return name if folder.endswith("bin") else word


def _program(words: list[str]) -> str:
    """Return what one command runs; empty for one that only sets the scene."""
    words = _past_scenery(words)
    name = _bare(words)
    if not name or name in _SCENERY:
        return ""
    rest = words[1:]
    if name in _WITH_SUBCOMMAND:
        named = [word for word in rest if _SUBCOMMAND.match(word)]
        # `npm run build` and `npm run test` have one subcommand and are two programs
        return " ".join([name, *named[: 2 if named[:1] == ["run"] else 1]])
    if _INTERPRETERS.match(name):
        return f"{name} {_interpreted(rest)}".rstrip()
    return name


def _interpreted(rest: list[str]) -> str:
    """Return what an interpreter was given: a file, a module, or that the program stood in place."""
    for place, word in enumerate(rest):
        if word == "-m":
            return f"-m {rest[place + 1]}" if place + 1 < len(rest) else word
        if word in _GIVEN_IN_PLACE or word == "-" or word.startswith("<"):
            return "-c"
        if not word.startswith("-") and ">" not in word:
            return word.strip("'\"")
    return ""


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and _WORD.match(value) is not None


def _value(value: Any) -> str:
    """Return an argument's value on one line, long ones by their digest."""
    text = value if isinstance(value, str) else digest.canonical(value).decode()
    return text if len(text) <= _LONGEST_VALUE else digest.of(text)
