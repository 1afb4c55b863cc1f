"""Which line of an output says what went wrong, where it is known that something did.

The word `error` stands in the names of tests that pass, in options, paths and headings, and a runner of tests or a
build prints far more lines of what went well. So lines are told apart by what prints them. In this order counts

1. what pytest found (`E   …`), the first; of a mere `assert` the line of the summary that has it with its test;
2. an exception by its name at the beginning of a line, the last;
3. a line that opens like an error or is a program's complaint, the first: what comes behind follows from it;
4. a test that failed, one with its reason before the others, the first;
5. a line with a word that errors have, the last;
6. what only says that something before it failed (`make: *** [all] Error 1`), the first.

A line that says that something went well is none of these, nor is a word inside an identifier, a path or an option.

Invariant: linear time. The forms of a line are tried at its beginning and within its bounded end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tracemark.failures.wordings import EMPTY, OPENS, complains

_WORDS = r"fatal|failed|panic|err!|not found|no such|denied|cannot|could not|refused|timed out|can't"
SAYS = re.compile(rf"(?:error|exception|\b(?:{_WORDS}))(?![a-z])", re.IGNORECASE)
"""Words that a line which says an error has, be it in a name; they prove one only where a failure is known already."""
_WORD = re.compile(
    rf"(?:(?<![\w/\\.-])(?i:error|exception|{_WORDS})|(?<![\w/\\-])(?!Test)[A-Z]\w{{0,60}}?(?:Error|Exception))"
    r"(?![\w/\\]|[.-]\w)"
)
"""The same as words of their own, or as the name of an exception."""
_NONE_BEFORE = re.compile(r"(?:\b0|\bno) \Z", re.IGNORECASE)
_NONE_BEHIND = re.compile(rf":{EMPTY}")
_SIGNS = (
    "error", "exception", "fatal", "fail", "panic", "err!", "not found", "no such", "denied", "cannot", "could not",
    "refused", "timed out", "can't", "***", "conflict (", "not ok ", "✕", "✗", "✘", "×", "●", "❌",
    "a directory", "file exists", "not known", "no route", "resolve host", "git command", "no space", "read-only",
    "no module", "unmatched", "option", "operand", "undefined",
)  # fmt: skip
"""One of these stands, in small letters, in every line that counts; to look for one is quicker than to try a form."""

_FOUND_BY_PYTEST = re.compile(r"^E {3,20}(\S.*)$", re.MULTILINE)
_ASSERTED = re.compile(r"^FAILED \S[^\n]{0,400}? - assert [^\n]*$", re.MULTILINE)
_NAMED = re.compile(r"^[A-Za-z_][\w.]{0,100}(?:Error|Exception)(?:: .*)?$", re.MULTILINE)
_INDENT = 2
"""Blanks before a line that opens like an error; more of them stand before what a test printed, passed or not."""
_HEADING = 120
_ENDING = 120

_WELL_BEGINS = re.compile(
    r"=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:PASS|SKIP)\b|ok\s{1,20}\S|PASS(?:ED)?\b|[✓✔√☑○]"
    r"|\[ {0,12}(?:OK|RUN|PASSED) {0,12}\]"
    r"|\[gw\d+\] \[ *\d+%\] (?:PASSED|SKIPPED|XFAIL)\b|checking (?!.{0,200} error: )|\[?(?:INFO|DEBUG|TRACE)\b|\+{1,4} "
)
_WELL_ENDS = re.compile(
    r"\.{3} ?(?:ok|yes|no|done|skipped\b[^\n]{0,80}|ignored\b[^\n]{0,80}|found|passed)\.?\Z"
    r"|\bPassed +[\d.]{1,12} ?s(?:ec)?\Z|\bOK +[\d.]{1,12} ?s\Z| - Success\Z"
    r"|(?-i:\b(?:PASSED|SKIPPED|XFAIL|XPASS)(?: +\[ *\d+%\])?(?: \([^()\n]{0,80}\))?\Z)",
    re.IGNORECASE,
)
_BANNER = re.compile(r"(?:={2,200}|_{1,200}|!{3,200}|-{3,200}|#{3,200}|~{3,200}) \S")
_BY_THE_WAY = re.compile(r"-- |# |\d{1,6} \||WARNING\b|\[WARN(?:ING)?\]")
_FOLLOWS = re.compile(
    r"g?make(?:\[\d+\])?: \*\*\* \[|collect2: error: ld returned |ninja: build stopped|-- Configuring incomplete"
    r"|error: (?:could not compile|aborting due to|test failed, to rerun|Recipe )|error Command failed"
    r"|Error: Process completed with exit code |BEGIN failed--compilation aborted |Execution of \S{1,200} aborted due "
    r"|[WE]: Some index files failed |E: Unable to fetch some archives"
    r"|npm (?:ERR!|error) (?:code|errno|syscall|path|command|cwd|Test failed|Exit status|A complete log)\b"
)
_UNLINKED = re.compile(r"undefined (?:reference to|symbol)\b|cannot find -l")
_FAILED_WHY = re.compile(r"(?:FAILED|ERROR) [^\s(][^\n]{0,400}? - \S")
_FAILED_BEGINS = re.compile(
    r"FAILED [^\s(]|ERROR [\w-]{0,100}[./]\S|FAIL:? \S|--- FAIL: |not ok \d|[✕✗✘×❌]|● (?!Console\b)|\[  FAILED  \]"
)
_FAILED_ENDS = re.compile(
    r"\.{3} ?(?:FAILED|FAIL|ERROR)\Z|\*\*\*(?:Failed|Exception|Timeout)\b[^\n]{0,40}\Z"
    r"|\b(?:FAILED|ERROR)(?: +\[ *\d+%\])?\Z"
)


def telling_line(text: str) -> str | None:
    """Return the line of a text that says what went wrong; None when no line has the form of one.

    Args:
        text: an output without colours, or what is read of it.
    """
    if "E   " in text and (found := _FOUND_BY_PYTEST.search(text)) is not None:
        # `assert 1 == 2` reads the same in every test
        named = _ASSERTED.search(text) if found[1].startswith("assert ") else None
        return (found[1] if named is None else named[0]).strip()
    if raised := _NAMED.findall(text):
        return str(raised[-1]).strip()
    lines = text.split("\n")
    failed = why = said = follows = None
    for place in _candidates(text, len(lines)):
        line = lines[place].strip()
        if went_well(line) or _is_banner(line):
            continue
        if _FOLLOWS.match(line) is not None:
            follows = follows or line
        elif _FAILED_WHY.match(line) is not None:
            why = why or line
        elif _FAILED_BEGINS.match(line) is not None or _FAILED_ENDS.search(line[-_ENDING:]) is not None:
            failed = failed or line
        elif _BY_THE_WAY.match(line) is not None:
            continue
        elif _is_error(lines[place]):
            return with_heading(line, lines[place + 1 : place + 2])
        elif _says(line):
            said = line
    return why or failed or said or follows


def went_well(line: str) -> bool:
    """Return whether a line says that something went well, or only what is done: a test that passed, a step begun."""
    return _WELL_BEGINS.match(line) is not None or _WELL_ENDS.search(line[-_ENDING:]) is not None


def with_heading(first: str, following: Sequence[str]) -> str:
    """Return a line, with the one behind it where the first is a mere heading such as `ERROR:`."""
    if (
        first.endswith((":", ": |", ": |-"))
        and len(first) <= _HEADING
        and following
        and (behind := following[0].strip())
    ):
        return f"{first} {behind}"
    return first


def _candidates(text: str, count: int) -> Iterator[int]:
    """Give the places of the lines that have one of the signs."""
    lowered = text.lower()
    signs = [sign for sign in _SIGNS if sign in lowered]
    if signs:
        # to lower a letter may make two of it, but never a line
        for place, line in zip(range(count), lowered.split("\n"), strict=True):
            if any(sign in line for sign in signs):
                yield place


def _is_error(line: str) -> bool:
    indented = len(line) - len(line.lstrip())
    if indented > _INDENT:
        return False
    return OPENS.match(line, indented) is not None or complains(line.strip()) or _UNLINKED.search(line) is not None


def _is_banner(line: str) -> bool:
    return _BANNER.match(line) is not None and line[-1] == line[0]


def _says(line: str) -> bool:
    """Return whether a line has a word that errors have, and not to say that there is none."""
    return any(
        _NONE_BEFORE.search(line, max(0, word.start() - 6), word.start()) is None
        and _NONE_BEHIND.match(line, word.end()) is None
        for word in _WORD.finditer(line)
    )
