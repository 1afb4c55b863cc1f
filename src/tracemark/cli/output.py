"""Showing what a command has to say: data on standard output, words on standard error.

With `--output table` a report is text for people and its findings are words; with `jsonl` each row is a line of JSON
and the findings are words; with `json` everything is one JSON value. An error is words, and with json or jsonl also a
JSON value on standard output, so that a script need not read words.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from tracemark.cli.arguments import Output
from tracemark.cli.layout import label, write_report, write_rows
from tracemark.cli.text import to_json
from tracemark.errors import LISTED, TracemarkError
from tracemark.findings import Finding, Report, Severity
from tracemark.hidden import visible

_SHOWN = 20
"""How many findings of one code are worded; the rest is counted, and JSON has them all."""

_COLOURS = {"error": "31", "warning": "33", "hint": "36"}


def view_members(report: Report, stream: TextIO) -> None:
    """Write the members of a report, its findings left out, to `stream`."""
    write_report({name: value for name, value in report.as_json().items() if name != "findings"}, stream)


View = Callable[[Report, TextIO], None]
"""Writes a report to a stream as text for people, without its findings."""


Table = Callable[[Sequence[Any], TextIO], None]
"""Writes the rows of a list to a stream as a table for people."""


def show(
    report: Report,
    output: Output,
    *,
    rows: str | None = None,
    view: View = view_members,
    table: Table = write_rows,
    note: str | None = None,
) -> int:
    """Show a report and return its exit code.

    Args:
        report: what an act answered.
        output: how.
        rows: the member that holds the rows, for a report that is a list: jsonl writes one line for each, a table shows
            nothing else. None for other reports: jsonl writes one line for the whole.
        view: writes a report that is no list as text for people.
        table: writes the rows of a report that is a list as text for people.
        note: words about the rows as a whole, for people; None for what is said of an empty list by itself.
    """
    data = report.as_json()
    if output is Output.JSON:
        write_data(to_json(data, indent=2) + b"\n")
        return report.exit_code
    listed: Sequence[Any] | None = None if rows is None else getattr(report, rows)
    if output is Output.JSONL:
        write_lines([data] if listed is None else listed)
    elif listed is None:
        view(report, sys.stdout)
    elif listed:
        table(listed, sys.stdout)
    elif note is None:
        note = f"no {label(str(rows))}" + (" on disk" if report.lacks_data else "")
    if note is not None:
        sys.stdout.flush()
        sys.stderr.write(f"{note}\n")
    if output is Output.TABLE or rows is not None:
        sys.stdout.flush()
        write_findings(report.findings, sys.stderr, getattr(report, "finding_counts", None))
    return report.exit_code


def write_data(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_lines(rows: Iterable[Any]) -> None:
    """Write each row to standard output as a line of JSON, as the rows come."""
    sys.stdout.flush()
    for row in rows:
        sys.stdout.buffer.write(to_json(row) + b"\n")
    sys.stdout.buffer.flush()


def write_error(error: TracemarkError, output: Output) -> int:
    """Show an error in words, and as data where data was asked for; return its exit code."""
    stream = sys.stderr
    # a message that lists several faults has each on a line of its own, indented so that none can pass for a hint
    message = LISTED.join(visible(line) for line in error.message.split(LISTED))
    stream.write(f"{paint('error', stream)}: {message}\n")
    if error.where is not None:
        stream.write(f"  at: {visible(error.where)}\n")
    if error.hint is not None:
        stream.write(f"{paint('hint', stream)}: {visible(error.hint)}\n")
    if output is not Output.TABLE:
        write_data(to_json(error.as_json(), indent=2 if output is Output.JSON else None) + b"\n")
    return error.exit_code


def write_findings(findings: Sequence[Finding], stream: TextIO, counts: Mapping[str, int] | None = None) -> None:
    """Write findings as words: errors first, those of one code together, at most twenty of each.

    Args:
        findings: what to write.
        stream: where to.
        counts: how many there are of each code where `findings` does not hold all; None where it does.
    """
    codes = list(dict.fromkeys(finding.code for finding in findings))
    ranks = list(Severity)
    ordered = sorted(findings, key=lambda finding: (ranks.index(finding.severity), codes.index(finding.code)))
    for code, group in groupby(ordered, lambda finding: finding.code):
        same = list(group)
        for finding, following in zip(same[:_SHOWN], [*same[1:_SHOWN], None], strict=False):
            severity = paint(finding.severity.value, stream)
            stream.write(f"{severity} {code} {visible(finding.where)}: {visible(finding.message)}\n")
            if finding.hint and (following is None or following.hint != finding.hint):
                stream.write(f"  hint: {visible(finding.hint)}\n")
        total = max(len(same), (counts or {}).get(code, 0))
        shown = min(len(same), _SHOWN)
        if total > shown:
            stream.write(f"  … and {total - shown} more of {code}; {_rest(total, len(same), shown)}\n")


def _rest(total: int, listed: int, shown: int) -> str:
    """Return where the findings stand that are not worded."""
    if listed == shown:
        return "what is said of a file again is only counted"
    return f"--output json lists {'all' if total == listed else f'the first {listed}'}"


def paint(word: str, stream: TextIO) -> str:
    """Return `word` coloured where the stream is a terminal that wants it; the word itself carries the meaning."""
    colour = _COLOURS.get(word)
    if colour is None or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return word
    return f"\x1b[{colour}m{word}\x1b[0m"
