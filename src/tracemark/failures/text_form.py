"""The form of texts: whether one reads like an error, and which of its lines says it.

A form proves little, so it has to be a whole one: the text opens with an error's name and a colon, ends in a traceback
or in a shell's complaint, or is one short refusal. The word `error` in the middle of a text proves nothing: that is how
files, listings and logs look.

Invariant: linear time. The patterns look at a line or at a bounded beginning or end, and no text is walked twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracemark.failures.ending import ended_well, failed_at_end, may_tell
from tracemark.failures.evidence import telling_line, went_well, with_heading
from tracemark.failures.showers import shows_in_part, speaks_itself
from tracemark.failures.wordings import HARNESS, OPENS, complains, refuses

LONGEST_LINE = 16_384
"""Characters kept of an error line while it is judged: what differs from run to run is masked before it is cut."""

LONGEST_SHOWN = 1_000
"""Characters of it that are shown and that conditions look at."""

ONE_ANSWER = 400
"""Characters of a text that may be one short answer."""

TRACEBACK = "Traceback (most recent call last)"
"""What a traceback opens with."""

TAIL = 2_000
"""Characters at the end of a text in which its end is looked for."""

WINDOW = 16_384
"""Characters of the beginning, and of the end, in which the line of an error is looked for."""

_HEAD = 400
_ENDING = 3
_ENDS_WITH = 300
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_NOISE = re.compile(
    r"\[(?:The command|Current working dir|Python interp|Command finished|Below is)"
    r"|\((?:Open file|Current directory|Interactive session)"
    r"|bash-\$|</?[\w-]+>\s*\Z|<returncode>-?\d+</returncode>|\S{0,80}[#$]\s*\Z|={3,}\s*\Z|-{3,}\s*\Z|\^+\s*\Z"
)
_FOUND = re.compile(r"[\s-]*(?:[A-Z]\d{2,4} |ERROR: )\S")
_TESTS_FAILED = re.compile(
    r"(?:=+ )?(?:[^=\n]{1,200}, )?[1-9]\d* (?:failed|errors?)\b[^=\n]{0,200} in [\d.]+s\b[^=\n]{0,40}(?: =+)?\Z"
    r"|FAILED \((?:failures|errors)=\d|test result: FAILED\b|Tests: +[1-9]\d* failed\b"
)
_CRASHED = re.compile(
    r"(?:[^\n]{1,80}: )?(?:line \d+: +\d+ )?(?:Segmentation fault|Aborted|Bus error)(?: \(core dumped\))?\Z"
)
_RAISED = re.compile(r"[| ]{0,8}[A-Za-z_][\w.]{0,200}(?::|\s*\Z)")


def by_form(text: str, shows: bool, script: str | None = None) -> str | None:
    """Return the error line of a text about which nothing else is known, by its form; None when it has no such form.

    Args:
        text: the text.
        shows: whether it may be what stands in files.
        script: the command line that printed it; None when none did.
    """
    head = text[:_HEAD].lstrip()
    if not head:
        return None
    head = uncoloured(head)
    if HARNESS.match(head):
        return _opening(text)
    alone = len(text) <= ONE_ANSWER and text.strip().count("\n") < 3
    first = head.partition("\n")[0]
    if shows and script is not None:
        return _of_shower(text, first, script) if alone else None
    opens = OPENS.match(head) is not None
    if (opens or complains(first)) and (alone or not shows):
        if script is None or not ended_well(_from_behind(text)):
            return _opening(text) if opens else cut(first)
    elif alone and refuses(first):
        return cut(first)
    return None if shows else _by_end(text, script)


def _by_end(text: str, script: str | None) -> str | None:
    """Return the error line of a text that ends in a failure, be it in that of the command line that printed it."""
    if TRACEBACK in text and (line := ending_traceback(text)) is not None:
        return line
    last = next(_from_behind(text), "")
    if _TESTS_FAILED.match(last):
        return line_of(text)
    if complains(last) or _CRASHED.match(last):
        # `make: *** [all] Error 1` only follows from what stands before it
        return cut(last) if script is None else line_of(text)
    if script is None or not may_tell(text[-TAIL:]) or not failed_at_end(_from_behind(text), script):
        return None
    return None if shows_in_part(script) else line_of(text)


def _of_shower(text: str, first: str, script: str) -> str | None:
    """Return the error line of a short text of a program that shows files: its own, and none of theirs."""
    if complains(first):
        return cut(first) if speaks_itself(first, script) else None
    own = "\n" not in text.strip() or (first.startswith("fatal: ") and "git" in script)
    return cut(first) if own and (OPENS.match(first) is not None or refuses(first)) else None


def _opening(text: str) -> str:
    """Return the first line, with the one behind it where the first is a mere heading."""
    lines = [line for line in _plain(text[:WINDOW]).split("\n") if line.strip()]
    first = lines[0].strip() if lines else ""
    if HARNESS.match(first) and not first.endswith(":"):
        # the wrapper's words are the same for every mistake: what it found stands behind them
        found = next((line.strip(" -") for line in lines[1:] if _FOUND.match(line)), None)
        first = first if found is None else f"{first.partition('.')[0]}: {found}"
    return cut(with_heading(first, lines[1:2]))


def line_of(text: str) -> str | None:
    """Return the line that best says the error of a text that is known to tell one; None when it is empty."""
    if TRACEBACK in text and (found := _traceback(text)) is not None:
        return found[0]
    whole = len(text) <= 2 * WINDOW
    searched = _plain(text) if whole else f"{_plain(text[:WINDOW])}\n{_plain(text[-WINDOW:])}"
    if (head := searched.lstrip()) and OPENS.match(head):
        return _opening(head)
    if (line := telling_line(searched)) is not None:
        return cut(line)
    last = last_lines(text)
    return next((cut(line) for line in last if not went_well(line)), cut(last[0]) if last else None)


def _traceback(text: str) -> tuple[str, int] | None:
    """Return the last line of the last traceback and where it ends; None when the words are no traceback of a run."""
    place = text.rfind(TRACEBACK)
    before = text[text.rfind("\n", 0, place) + 1 : place]
    if before and (before.strip(" |+-") or before.isspace()):
        # indented it is an example or a log; only a group of exceptions draws a line beside its own
        return None
    begin = text.find("\n", place)
    if begin < 0 or text[begin + 1 : begin + 400].lstrip(" \t|")[:4] != "File":
        return None
    while begin >= 0:
        end = text.find("\n", begin + 1)
        line = text[begin + 1 : end if end >= 0 else None]
        if _RAISED.match(line):
            return cut(line.strip()), end if end >= 0 else len(text)
        if not line.strip() or (line[0] not in " \t|+" and line.strip("-.[] \r")):
            # frames are indented, and `grep` draws a line where it left some out: what two streams mixed ends nowhere
            return None
        begin = end
    return None


def ending_traceback(text: str) -> str | None:
    """Return the last line of a traceback that ends the text; None when more than a few lines follow it."""
    found = _traceback(text)
    if found is None:
        return None
    rest = text[found[1] : found[1] + TAIL]
    if len(text) - found[1] > TAIL or len(last_lines(rest)) >= _ENDING:
        return None
    return found[0]


def last_lines(text: str) -> list[str]:
    """Return the last lines that say something, the last first: no prompts, no frames of the recording."""
    return list(_from_behind(text))


def _from_behind(text: str) -> Iterator[str]:
    # most often the last line is all that is asked for
    tail = _plain(text[-TAIL:])
    end = len(tail)
    while end >= 0:
        begin = tail.rfind("\n", 0, end) + 1
        stripped = tail[begin:end].strip()
        if stripped and not _NOISE.match(stripped):
            yield stripped
        end = begin - 1


def cut(line: str, longest: int = LONGEST_LINE) -> str:
    """Return a line in at most so many characters; what a long one comes to stands at its end."""
    return line if len(line) <= longest else f"{line[: longest - _ENDS_WITH - 3]} … {line[-_ENDS_WITH:]}"


def uncoloured(text: str) -> str:
    """Return a text without the escapes that colour it or move the cursor."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _plain(text: str) -> str:
    return uncoloured(text).replace("\r", "\n") if "\x1b" in text or "\r" in text else text
