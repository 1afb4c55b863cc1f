"""A command line, taken apart: pipelines, what joins them, and whose exit code the whole has.

A pipeline is what stands between `;`, `&&`, `||`, `&` and line ends. The shell's own words (`for`, `then`, `{`, `!`)
are told apart from the program behind them, `$(…)` is one word, and what a line only defines or gives to a program as
text (functions, here-documents) is passed over.

Invariant: linear time; of a very long line the first `LONGEST` characters count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LONGEST = 20_000
"""Characters of a command line that are read."""

_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_TOKEN = re.compile(
    r"\d*[<>]&[\d-]|&>>?|(?<![^\s;&|])#[^\n]*|&&|\|\|?|[;\n&()]"
    r"|(?:[^\s'\"\\;|&()`]+|'[^']*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\\.)+|['\"\\`]",
    re.DOTALL,
)
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>?[|&]?|<{1,3}-?|<>|<&)(.*)\Z", re.DOTALL)
_EDITS = ("end_of_edit", "end_of_insert")
_PIPE = "|"
_ENDS = frozenset(["&&", "||", ";", "\n", "&", "(", ")"])
_SIGNS = _ENDS | {_PIPE}
_OPENING = frozenset(["then", "do", "else", "{", "coproc"])
_CONDITIONS = frozenset(["if", "elif", "while", "until", "!"])
_OF_NO_PROGRAM = frozenset(["for", "select", "case", "done", "fi", "esac", "}", "in"])
_ENDINGS = frozenset(["done", "fi", "esac", "}"])
_EXITS = frozenset(["exit", "return"])
_VARIABLE = re.compile(r"(\$\?|\$\{\?\}|\$\{PIPESTATUS\[0\]\}|\$\{?\w+\}?|\$\([^()]*\))")
_CODES = ("$?", "${?}", "${PIPESTATUS[0]}")
_ECHOES, _LONGEST_LINE, _OPEN_PARTS = 8, 500, 2
_EXITS_ON_ERROR = re.compile(r"-[a-z]*e")


class Pipeline(NamedTuple):
    """Commands joined by `|`."""

    commands: tuple[tuple[str, ...], ...]
    """Each as its words; those of the shell itself are taken off, and a command of these alone has none."""
    before: str
    """What joins it to the one before: `;`, `&&`, `||`, `&`, a line end or a parenthesis; empty for the first."""
    after: str
    """What ends it; empty for the last."""
    asked: bool
    """Whether it is a condition or is negated, so that the line goes on whatever its exit code is."""
    ending: bool
    """Whether it only closes what another opened, such as `done`, and so leaves the exit code as it was."""


@lru_cache(maxsize=8)
def pipelines(script: str) -> tuple[Pipeline, ...]:
    """Return the pipelines of a command line, in order; those that have no words are left out."""
    # a result is asked several times about one line
    found: list[Pipeline] = []
    defined: set[str] = set()
    for words, before, after in _chains(_without_documents(script[:LONGEST])):
        if after == "()":
            defined.add(words[-1])
            continue
        if words[0] == "function":
            defined.update(words[1:2])
        parts = [_own(part) for part in _split(words)]
        commands = tuple(tuple(own) if own and own[0] not in defined else () for own, _ in parts)
        asked = any(word in _CONDITIONS for word in parts[0][1])
        found.append(Pipeline(commands, before, after, asked, words[0] in _ENDINGS))
    return tuple(found)


@lru_cache(maxsize=64)
def without_redirections(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the words of a command without its redirections, and whether one gives it its input."""
    kept: list[str] = []
    given = target = False
    for word in words:
        match = _REDIRECTION.match(word)
        if target:
            target = False
        elif match is None:
            kept.append(word)
        else:
            target = not match[1] and word[-1] not in "&-"
            given = given or word.lstrip("0123456789").startswith("<")
    return tuple(kept), given


def code_counts(script: str, place: int) -> bool:
    """Return whether exit code 0 of a command line says that its pipeline at a place went well.

    It does not where something else gave the code: the last program of a pipe, `|| true`, a later `echo`, or the shell,
    which waits neither for what runs in the background nor minds the code of a condition.
    """
    lines = pipelines(script)
    own, later = lines[place], lines[place + 1 :]
    strict = _options(lines[:place])
    if own.asked or own.after == "&":
        return False
    if len(own.commands) > 1 and own.commands[0][:1] != own.commands[-1][:1] and "pipefail" not in strict:
        return False
    refusing = max((number for number, one in enumerate(later) if _refuses(one)), default=-1)
    told, parted = True, False
    for number, pipeline in enumerate(later):
        words = pipeline.commands[-1]
        if pipeline.ending or pipeline.before == "&&":
            continue
        parted = parted or pipeline.before == "||"
        if parted and number <= refusing:
            # `X || { echo no; exit 1; }`
            continue
        if words[:1] and words[0] in _EXITS:
            told = told if words[1:] in ((), ("$?",), ('"$?"',)) else words[1].strip('"').startswith("$")
        elif pipeline.before == "||" or "errexit" not in strict:
            told = False
    return told


def echoed(script: str, place: int, printed: str) -> tuple[str, int | None]:
    """Return what was printed without what the `echo`s behind a pipeline added, and the exit code that they tell.

    Args:
        script: the command line.
        place: which of its pipelines.
        printed: what all of it printed.

    Returns:
        The text, and the pipeline's own code where an `echo` right behind it said `$?`.
    """
    lines = pipelines(script)
    own, later = lines[place], lines[place + 1 :]
    code, end = None, len(printed)
    for number in range(len(later) - 1, max(-1, len(later) - 1 - _ECHOES), -1):
        words = without_redirections(later[number].commands[-1])[0]
        if words[:1] != ("echo",):
            continue
        stop = len(printed[max(0, end - _LONGEST_LINE) : end].rstrip()) + max(0, end - _LONGEST_LINE)
        begin = printed.rfind("\n", max(0, stop - _LONGEST_LINE), stop) + 1
        form = _printed_by(words[1:])
        match = None if form is None else form.fullmatch(printed, begin, stop)
        if match is None:
            break
        end = begin
        of = match.lastgroup
        if of is not None and number == 0 and not own.asked and (of == "first" or len(own.commands) == 1):
            code = int(match[of])
    return printed[:end], code


def _printed_by(words: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return an expression for what `echo` prints, its group a code of the first or the last program of a pipe."""
    text = " ".join(word.strip("'\"") for word in words if word not in ("-e", "-n"))
    form, coded, open_parts = [], False, 0
    for part in _VARIABLE.split(text[:_LONGEST_LINE].replace("\\n", "")):
        if part in _CODES and not coded:
            form.append(rf"(?P<{'last' if '?' in part else 'first'}>\d{{1,3}})")
            coded = True
        elif part[:1] == "$":
            form.append(r"[^\n]{0,200}")
            open_parts += 1
        else:
            form.append(re.escape(part))
    # each more is one more way to divide a line, and a line that says so little is not looked for
    return None if open_parts > _OPEN_PARTS else re.compile("".join([r"\s*", *form, r"\s*"]))


def _options(earlier: tuple[Pipeline, ...]) -> set[str]:
    """Return which options `set` gave the shell that make it mind exit codes."""
    given = set()
    for pipeline in earlier:
        for words in pipeline.commands:
            if words[:1] == ("set",):
                given |= {"errexit"} if any(map(_EXITS_ON_ERROR.match, words[1:])) else set()
                given |= {word for word in words[1:] if word in ("errexit", "pipefail")}
    return given


def _refuses(pipeline: Pipeline) -> bool:
    """Return whether a pipeline ends a line with a code that is not 0."""
    words = pipeline.commands[-1]
    if words[:1] == ("false",):
        return True
    return len(words) > 1 and words[0] in _EXITS and words[1] != "0"


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


class _Reader:
    """Tokens become words, words become chains; a function that is defined ends with `()`."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.before = ""
        self.depth = 0
        self.tested = False
        """Whether `[[` is open, in which `&&` joins no commands."""

    def ends(self, sign: str) -> tuple[list[str], str, str] | None:
        """Return the chain that a sign ends; None when it ends none."""
        if self.words and self.words[-1] == _PIPE and sign == "\n":
            return None
        words, before = self.words, self.before
        pattern = sign == ")" and self.depth == 0
        self.depth = max(0, self.depth + (sign == "(") - (sign == ")"))
        if words or not (sign in ("\n", "(") and before in ("&&", "||")):
            # a line may be broken behind `&&`
            self.before = sign
        self.words, self.tested = [], False
        # what an unopened parenthesis closes is a pattern of `case`
        return (words, before, sign) if words and not pattern else None


def _chains(script: str) -> Iterator[tuple[list[str], str, str]]:
    """Give the words between two ends with what stands before and behind them; `()` stands behind a function's name."""
    read, nested, begin, place = _Reader(), 0, 0, -1
    tokens = list(_TOKEN.finditer(script))
    for number, match in enumerate(tokens):
        sign, touches = match[0], match.start() == place and bool(read.words)
        place = match.end()
        if nested:
            nested += (sign == "(") - (sign == ")")
            if not nested:
                read.words[-1] += script[begin:place]
        elif sign == "(" and touches and read.words[-1][-1] in "$<>":
            nested, begin = 1, match.start()
        elif touches and script[match.start() - 1] == ")" and sign not in _SIGNS:
            read.words[-1] += sign
        elif sign == "(" and read.words and number + 1 < len(tokens) and tokens[number + 1][0] == ")":
            yield read.words, read.before, "()"
            read.words, read.before, read.depth = [], ";", read.depth + 1
        elif sign in _ENDS and not (read.tested and sign != "\n"):
            if (ended := read.ends(sign)) is not None:
                yield ended
        elif sign[0] != "#":
            read.words.append(sign)
            read.tested = sign == "[[" or (read.tested and sign != "]]")
    if read.words:
        yield read.words, read.before, ""


def _split(words: list[str]) -> list[list[str]]:
    """Return the commands of one pipeline."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == _PIPE:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _own(words: list[str]) -> tuple[list[str], list[str]]:
    """Return a command without the shell's own words before it, and these."""
    place = 0
    while place < len(words) and (words[place] in _OPENING or words[place] in _CONDITIONS):
        place += 1
    if words[place : place + 1] == ["function"]:
        place += 3 if words[place + 2 : place + 3] == ["{"] else 2
    if place < len(words) and words[place] in _OF_NO_PROGRAM:
        return [], words[:place]
    return words[place:], words[:place]
