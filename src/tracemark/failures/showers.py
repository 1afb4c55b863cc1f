"""Which calls show what somebody else wrote, so that the words of a failure in their text are no failure of theirs.

Invariant: a command line is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tracemark.failures.command_line import pipelines
from tracemark.failures.program import program_of, programs_of

_FILTERS = frozenset(
    [
        *("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "strings"),
        *("sed", "awk", "gawk", "jq", "yq", "cut", "sort", "uniq"),
    ]
)
"""Programs that show some of what they read, also where that comes out of a pipe."""
_SHOWERS = _FILTERS.union(
    ["cat", "tac", "head", "tail", "less", "more", "nl", "bat", "zcat", "xzcat", "bzcat", "find"],
    ["journalctl", "dmesg", "view", "open", "goto", "scroll_down", "scroll_up"],
)
_SHOWING = {
    "git": frozenset(["show", "diff", "log", "blame", "grep", "cat-file", "reflog", "stash show"]),
    "docker": frozenset(["logs", "compose logs", "container logs", "service logs"]),
    "docker-compose": frozenset(["logs"]),
    "podman": frozenset(["logs", "container logs"]),
    "kubectl": frozenset(["logs"]),
    "tmux": frozenset(["capture-pane"]),
    "gh": frozenset(["run view", "pr diff", "pr view", "issue view", "gist view", "release view"]),
}
"""Subcommands that show something."""
_EDITS = {
    "sed": re.compile(r"-[nErsuz]*i|--in-place(=|\Z)"),
    "yq": re.compile(r"-[nErsyPCMNj]*i|--in-?place\Z"),
    **dict.fromkeys(["awk", "gawk"], re.compile(r"(-i|--include=)?inplace\Z")),
}
"""Options by which a program changes files in place and shows none of them; the `-i` of others means something else."""
_SPEAKERS = frozenset(["bash", "sh", "zsh", "dash"])
_WRITES = re.compile(r"[1&]?>")
_READERS = ("read", "view", "search", "grep", "fetch", "open_")


def shows(script: str | None, tool: str | None) -> bool:
    """Return whether a call shows what is in files, so that its text is theirs.

    Args:
        script: the command line, when the call was one.
        tool: the tool's name; None when not known.
    """
    if script is None:
        return tool is not None and _reads(tool)
    name = programs_of(script)[0]
    return name in _SHOWERS or (name in _SHOWING and _shows_by(program_of(script)))


def shows_in_part(script: str) -> bool:
    """Return whether any program of a command line shows what is in files, or only some of what another printed."""
    for pipeline in pipelines(script):
        for place, words in enumerate(pipeline.commands):
            said = program_of(" ".join(words)) if words else ""
            name = said.partition(" ")[0].rpartition("/")[2]
            shown = name in _SHOWERS if place == 0 else name in _FILTERS
            if (shown or _shows_by(said)) and not any(map(_WRITES.match, words)) and not _edits(name, words):
                return True
    return False


def speaks_itself(line: str, script: str) -> bool:
    """Return whether a complaint is that of a program of the command line or of its shell, not one that is shown."""
    program = line.partition(":")[0].partition(" ")[0].rpartition("/")[2]
    return program in _SPEAKERS or any(
        program == word.rpartition("/")[2]
        for pipeline in pipelines(script)
        for words in pipeline.commands
        for word in words
    )


def _edits(name: str, words: Sequence[str]) -> bool:
    """Return whether a program, or the one that `find` starts, changes files in place."""
    if name == "find":
        name = next((word for word in words if word in _EDITS), name)
    return name in _EDITS and any(map(_EDITS[name].match, words))


def _shows_by(program: str) -> bool:
    name, _, behind = program.partition(" ")
    return any(f"{behind} ".startswith(f"{shown} ") for shown in _SHOWING.get(name, ()))


@lru_cache(maxsize=1024)
def _reads(tool: str) -> bool:
    lowered = tool.lower()
    return any(word in lowered for word in _READERS)
