"""What a harness writes around the output of a command: the exit code that it states, and what was printed.

Read are the forms of mini-swe-agent, Codex (JSON of old, text now), OpenHands, SWE-agent, Claude Code, Terminus and of
results of `exec` such as those of Inspect. A form counts at its place only, at the very beginning or the very end of a
text: what a program prints may quote any of them.

A code below 0 is the signal that ended a program, as Python tells it. Only -1 is none: mini-swe-agent, OpenHands and
Codex write it where they know no code.

Invariant: linear time. Beginnings are matched at one place, and an end is walked line by line from behind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

_LARGEST_JSON = 2_000_000
"""Characters of a text that is read as JSON, at most."""

UNKNOWN = -1
"""What stands in the place of an exit code that nobody knows."""

_FRAMES = 12
"""Lines that a harness writes behind an output, at most."""
_LONGEST_FRAME = 1_000
_LAST = frozenset("])$.0123456789 \n\r\t")
"""What such a line, or the white space behind it, ends with."""


class Unwrapped(NamedTuple):
    """What stands in a wrapper."""

    text: str
    """What was printed, without what a harness wrote around it."""
    code: int | None = None
    """The exit code that is stated; None when none is, or when it says that none is known."""
    failed: bool = False
    """Whether the wrapper itself says that the call failed, whatever its code."""
    wrapped: bool = False
    """Whether there was a wrapper at all."""
    line: str | None = None
    """The words in which it says so; None when what was printed has to tell."""


_BEFORE = re.compile(
    r"\s{0,200}(?:(?:OBSERVATION|Observation):\n|EXECUTION RESULT of \[[\w-]{1,80}\]:\n"
    r"|\[Below is the output of the previous command\.\]\n"
    r"|(?:New Terminal Output|Current Terminal Screen|Current terminal state):\n)"
)
_INITIALS = frozenset("[CENOPRW")
"""What the lines begin with that a harness writes before an output."""
_ERRED = re.compile(r"\s{0,200}\[An error occurred during execution\.\]\s{0,80}")
_TAG = re.compile(
    r"\s{0,200}<(tool_use_error|tool_error|exception|error)>(?!\s{0,80}(?:(?i:none|null|no errors?|0)\s{0,80})?</\1>)"
)
_RETURNCODE = re.compile(r"\s{0,200}<returncode>(-?\d{1,9})</returncode>\s{0,80}(?:<output>\n?|<warning>|\Z)")
_CODEX = re.compile(
    r"\s{0,200}(?:Chunk ID: [\w-]{1,40}\n)?(?:Exit code: (-?\d{1,9})\n)?Wall time: [\d.]{1,20} seconds\n"
    r"(?:Process exited with code (-?\d{1,9})\n)?(?:Process running with session ID \d{1,20}\n)?"
    r"(?:Original token count: \d{1,20}\n)?(?:Total output lines: \d{1,20}\n)?(?:Output:(?:\n|\Z))"
)
_HEAD = re.compile(
    r"\s{0,200}(?:(?:Exit|Return) code:? |(?:Process exited|Command (?:exited|failed)) with (?:exit )?code )(-?\d{1,9})"
    r"[.:]?[ \t]*(?:\n|\Z)"
)
_RESULT = re.compile(r"\s{0,200}ExecResult\(success=(?:True|False), returncode=(-?\d{1,9}), stdout=")
_CODED = re.compile(
    r"\[(?:The command completed|Command(?: -?\d{1,9})? finished) with exit code (-?\d{1,9})\.?[^\]\n]{0,200}\]\Z"
    r"|(?:Process exited with|Exit) code:? (-?\d{1,9})\Z"
)
_FRAME = re.compile(
    r"\[(?:The command |Current working directory: |Python [Ii]nterpreter: |Command |Your command )[^\n]*\]\Z"
    r"|\((?:Open file|Current directory|Interactive session): [^\n]*\)\Z|bash-\$\Z|PLEASE REFINE YOUR RUNNING COMMAND "
)
_KILLED = re.compile(r"EXECUTION TIMED OUT\b")
_TAGGED_PARTS = re.compile(r"</?(?:output_head|output_tail)>\n?|<elided_chars>[^<]{0,200}</elided_chars>")


def unwrap(text: str) -> Unwrapped:
    """Return what was printed and what a wrapper says of it; the text as it is when there is no wrapper.

    A text that one wrapper opens and another ends is printed by a program in part, and nothing tells in which: where
    they say two codes, neither is believed.
    """
    opening = text[:200].lstrip()[:1]
    if opening == "{":
        return _json(text) or Unwrapped(text)
    if opening == "<" and (tagged := _tagged(text)) is not None:
        # its tags close behind all that was printed
        return tagged
    headed = _headed(text) if opening in _INITIALS else None
    ended = _ended(headed.text if headed is not None else text)
    if headed is None or ended is None:
        return headed or ended or Unwrapped(text)
    if headed.code is None or ended.code is None or headed.code == ended.code:
        code = ended.code if headed.code is None else headed.code
        return Unwrapped(ended.text, code, headed.failed or ended.failed, wrapped=True, line=ended.line)
    return Unwrapped(text, wrapped=True)


@lru_cache(maxsize=1)
def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None when it is none, or too long. Nobody may change it.

    The last one is kept: a text is asked for a wrapper, and then for what it says itself.
    """
    if len(text) > _LARGEST_JSON or not text[:64].lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


def is_marked(text: str) -> bool:
    """Return whether a text stands in the mark by which a harness tells the agent that its call failed."""
    return text[:200].lstrip().startswith(("<tool_use_error>", "<tool_error>"))


def _tagged(text: str) -> Unwrapped | None:
    """Return what stands in the tags of mini-swe-agent, or in one that marks an error."""
    match = _RETURNCODE.match(text)
    if match is None:
        tag = _TAG.match(text)
        return None if tag is None else Unwrapped(text, None, failed=True, wrapped=True)
    printed = text[match.end() :].rstrip()
    if printed and not printed.endswith(("</output>", "</output_tail>")):
        return None
    printed = printed.removesuffix("</output>")
    if match[0].endswith("<warning>"):
        # of a long output its beginning and its end are shown, and between them how much is not
        printed = _TAGGED_PARTS.sub("", printed[max(0, printed.find("<output_head>")) :])
    return _coded(printed, match[1])


def _json(text: str) -> Unwrapped | None:
    """Return what stands in an object whose members are an output and its exit code."""
    if not any(name in text for name in ('code"', 'exitCode"')) or (value := json_object(text)) is None:
        return None
    printed = _streams(value)
    metadata = value.get("metadata")
    for facts in (value, metadata if isinstance(metadata, dict) else {}):
        code = next((facts[name] for name in ("exit_code", "returncode", "exitCode") if is_int(facts.get(name))), None)
        if printed is not None and code is not None:
            return Unwrapped(printed, None if code == UNKNOWN else code, wrapped=True)
    return None


def _streams(value: dict[str, Any]) -> str | None:
    """Return the output of a command as its result has it: one text, or two streams of which errors count first."""
    streams = [found for name in ("stderr", "stdout", "output") if isinstance(found := value.get(name), str)]
    return next((stream for stream in streams if stream.strip()), "") if streams else None


def _headed(text: str) -> Unwrapped | None:
    """Return what stands behind lines that a harness writes before an output."""
    wrapped = False
    if (before := _BEFORE.match(text)) is not None:
        text, wrapped = text[before.end() :], True
    if (erred := _ERRED.match(text)) is not None:
        return Unwrapped(text[erred.end() :], None, failed=True, wrapped=True)
    for form in (_CODEX, _HEAD):
        if (match := form.match(text)) is not None:
            code = next((group for group in match.groups() if group is not None), None)
            return _coded(text[match.end() :], code, known=form is _HEAD)
    if (match := _RESULT.match(text)) is not None:
        return _coded(text[match.end() :].strip("'\")"), match[1], known=True)
    return Unwrapped(text, wrapped=True) if wrapped else None


def _ended(text: str) -> Unwrapped | None:
    """Return what stands before the lines that a harness writes behind an output: those at the very end alone."""
    end, code, killed = len(text), None, None
    if text[-1:] not in _LAST:
        return None
    for _ in range(_FRAMES):
        stop = len(text[:end].rstrip())
        begin = text.rfind("\n", max(0, stop - _LONGEST_FRAME), stop) + 1
        if begin == 0 and stop > _LONGEST_FRAME:
            break
        line = text[begin:stop]
        coded = _CODED.match(line)
        if coded is not None:
            # the outermost counts: one before it is printed, or says the same
            code = code or next(group for group in coded.groups() if group is not None)
        elif _KILLED.match(line):
            killed = line
        elif not _FRAME.match(line):
            break
        end = begin
    if end == len(text):
        return None
    return _coded(text[:end].rstrip("\n"), code)._replace(failed=killed is not None, line=killed)


def _coded(printed: str, code: str | None, *, known: bool = False) -> Unwrapped:
    """Return what stands in a wrapper with a code; `known` of one that states none where it knows none."""
    number = int(code) if code is not None else UNKNOWN
    stated = code is not None and (known or number != UNKNOWN)
    return Unwrapped(printed, number if stated else None, wrapped=True)


def is_int(value: Any) -> bool:
    """Return whether a member is a whole number; `true` is none."""
    return value.__class__ is int
