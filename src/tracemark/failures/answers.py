"""What a command line asks for: an answer in its exit code, or silence.

Exit code 1 of `grep`, `diff --quiet` or `command -v` says `no` and is no failure: but only where the program that gave
the code is one of these, and not because one of them stands in the line. A line's code is that of its last command; of
commands joined by `&&` it may be that of an earlier one, when nothing was printed.

Silence is asked for by a redirection (`make > log 2>&1`) or an option (`--quiet`): what was not shown then, the harness
did not hide.

Invariant: linear time in the command line; a line inside a line is entered once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from tracemark.failures.command_line import LONGEST, Pipeline, pipelines, without_redirections
from tracemark.failures.evidence import SAYS
from tracemark.failures.program import program_of
from tracemark.failures.text_form import last_lines

_LAST = 3
_GREPS = frozenset(["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"])
_NO = frozenset([1])
_CODES = {
    **dict.fromkeys([*_GREPS, "find"], frozenset([1, 123])),
    **dict.fromkeys(["pgrep", "test", "[", "[[", "which", "type", "hash", "command"], _NO),
    **dict.fromkeys(["lsof", "pidof", "fuser", "mountpoint", "expr", "diff", "cmp", "comm", "kill", "git grep"], _NO),
    **dict.fromkeys(["git diff", "git merge-base", "git config", "git check-ignore", "git show-ref"], _NO),
    "git rev-parse": _NO,
    "getent": frozenset([2]),
    "systemctl is-active": frozenset([1, 3, 4]),
    "systemctl is-enabled": frozenset([1, 3, 4]),
}
"""The exit codes with which programs answer `no`."""
_ASKED_BY = {
    "git diff": frozenset(["--quiet", "--exit-code", "--no-index"]),
    "git merge-base": frozenset(["--is-ancestor"]),
    "git rev-parse": frozenset(["-q", "--quiet"]),
    "kill": frozenset(["-0"]),
}
"""What makes an answer of it, where the program alone does not."""
_COMPARERS = frozenset(["diff", "cmp", "comm", "git diff"])
"""What they show is what they compare, be it words of errors."""
_LAUNCHERS = frozenset(["docker", "podman", "kubectl", "ssh"])
_CUTTERS = frozenset(["head", "tail", "sort", "uniq", "wc", "cat", "cut", "tr", "tee", "sed", "awk", "nl", "less"])
"""What only cuts its input, so that a code that is not 0 is another's, under `pipefail`."""
_SAYING = frozenset(["echo", "printf", "true", ":", "exit", "return"])
_EXECUTES = frozenset(["-exec", "-execdir", "-ok"])
_SHELLS = frozenset(["bash", "sh", "zsh", "dash"])
_CODE = re.compile(r"-[a-z]{0,4}c\Z")

_REDIRECTS = re.compile(r"[^'\"\\>]{0,200}>(?!&[\d-]?\Z)")
_GROUP_REDIRECTS = re.compile(r"(?:[)}]|\bdone|\bfi)[ \t]{0,20}(?:\d|&)?>(?!&[\d-])")
_QUIET = frozenset(["-q", "-qq", "-qqq", "--quiet", "--silent"])
_QUIET_CURL = re.compile(r"-(?=[A-Za-z]*s)[A-RT-Za-z]+\Z")


def is_answer(script: str, code: int, printed: str) -> bool:
    """Return whether an exit code is what a program answers with, and no failure.

    Args:
        script: the command line.
        code: its exit code.
        printed: what it printed.
    """
    answers = [_answer(pipeline, code) for pipeline in _giving(script)]
    if not answers:
        return False
    # what printed something was not the first of a chain to say no
    name = answers[0] if printed.strip() else next(filter(None, answers), None)
    if name is None:
        return False
    return name in _COMPARERS or not any(SAYS.search(line) for line in last_lines(printed)[:_LAST])


def is_silenced(script: str) -> bool:
    """Return whether a command line asks that what it prints be shown to nobody, or that little be printed."""
    if _GROUP_REDIRECTS.search(script[:LONGEST]) is not None:
        return True
    given = [command for pipeline in _giving(script) for command in pipeline.commands]
    inner = [_giving(code) for command in given if (code := _code_of(command)) is not None]
    given += [command for found in inner for pipeline in found for command in pipeline.commands]
    return any(_is_quiet(command) for command in given)


def _giving(script: str) -> list[Pipeline]:
    """Return the pipelines that may have given a command line its exit code, the likeliest first."""
    found: list[Pipeline] = []
    for pipeline in reversed(pipelines(script)):
        if pipeline.ending or (pipeline.commands[-1][:1] and pipeline.commands[-1][0] in _SAYING):
            # what says so of an exit code, or passes it on
            continue
        found.append(pipeline)
        if pipeline.before != "&&":
            break
    return found


def _answer(pipeline: Pipeline, code: int) -> str | None:
    """Return the name of the program of a pipeline that answers with a code; None when none does."""
    for place, words in enumerate(reversed(pipeline.commands)):
        name = _name(without_redirections(words)[0])
        asked = _ASKED_BY.get(name)
        if code in _CODES.get(name, ()) and (asked is None or not asked.isdisjoint(words)):
            return name
        if name not in _CUTTERS or place + 1 == len(pipeline.commands):
            return None
    return None


def _name(words: Sequence[str]) -> str:
    """Return the program of a command as the tables name it: one that another starts counts as itself."""
    for word, following in pairwise(words):
        if word == "command" and following in ("-v", "-V"):
            return word
        if word in _EXECUTES:
            return following
    said = program_of(" ".join(words)).split(" ")
    if said[0] == "find":
        return ""
    if said[0] in _LAUNCHERS:
        return said[-1] if said[-1] in _GREPS else said[0]
    joined = " ".join(said[:2])
    return joined if joined in _CODES else said[0]


def _code_of(words: Sequence[str]) -> str | None:
    """Return the command line that a shell is given as a text; None when it is given none."""
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    given = (behind for word, behind in pairwise(words) if _CODE.match(word))
    return next((text.strip("'\"") for text in given), None)


def _is_quiet(words: Sequence[str]) -> bool:
    curls = "curl" in words
    return any(
        word in _QUIET or (curls and _QUIET_CURL.match(word) is not None) or _REDIRECTS.match(word) is not None
        for word in words
    )
