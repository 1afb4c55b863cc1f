"""Failures as a reader sees them: clusters as a table that fits, one cluster or one trace with its examples whole.

Invariants:
- the id of a cluster comes first and its line last, cut where there is no room; JSON has it whole;
- text of a trace is shown with its hidden characters as escapes, over as many lines as it has.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tracemark.acts.failure_log import ClusterShown, FailureList, TraceRouted
from tracemark.cli.fitted import COLUMNS
from tracemark.cli.layout import brief, cell, label, write_padded, write_report
from tracemark.cli.text import cut, width
from tracemark.findings import Report
from tracemark.hidden import visible_block
from tracemark.words import numbered

_GAP = 2
_LEAST = 24
_LONGEST = {"tool": 24, "harness": 24}
_COLUMNS = ("cluster", "traces", "share", "tasks", "similarity", "harness", "tool", "line")
_MARGIN = "  "
_TEXTS = ("message", "command", "observation", "raw_output")


def write_clusters(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    """Write rows (members as `FailureList` documents them) as a table to `stream`; unused columns are left out."""
    columns = {}
    for name in _COLUMNS:
        texts = [cut(_shown(row, name), _LONGEST.get(name, 10_000)) for row in rows]
        if any(texts):
            columns[name] = [label(name), *texts]
    room = shutil.get_terminal_size().columns if stream.isatty() else COLUMNS
    taken = sum(max(map(width, texts)) + _GAP for name, texts in columns.items() if name != "line")
    columns["line"] = [cut(text, max(_LEAST, room - taken)) for text in columns["line"]]
    write_padded(list(zip(*columns.values(), strict=True)), stream)


def about_clusters(found: FailureList) -> str | None:
    """Return what must be known of the list as a whole: what it is a part of."""
    if found.lacks_data:
        return None
    runs = sum(found.routed.values())
    words = [f"{numbered(runs, 'run')} routed"]
    words += [f"{sum(found.elsewhere.values())} failed elsewhere ({cell(found.elsewhere)})"] if found.elsewhere else []
    words += [f"{sum(found.left_out.values())} left out ({cell(found.left_out)})"] if found.left_out else []
    words += [f"{found.more} more to show (--limit N)"] if found.more else []
    beyond = numbered(found.unclustered, "run")
    words += [f"{beyond} in clusters that are not remembered"] if found.unclustered else []
    shown = numbered(len(found.clusters), "cluster") if found.clusters else "no clusters"
    return "; ".join([shown, *words])


def write_failure(report: Report, stream: TextIO) -> None:
    """Write a cluster or a routed trace to `stream`, its examples last."""
    members = {name: value for name, value in report.as_json().items() if name not in ("findings", "examples")}
    examples: Sequence[Mapping[str, Any]] = getattr(report, "examples", ())
    if isinstance(report, ClusterShown):
        members["share"] = _percent(report.share)
    elif isinstance(report, TraceRouted):
        del members["example"]
        examples = [report.example]
    write_report(members, stream)
    for example in examples:
        _write_example(example, stream)


def _write_example(example: Mapping[str, Any], stream: TextIO) -> None:
    stream.write("\n")
    write_report({name: value for name, value in example.items() if name not in _TEXTS}, stream)
    for name in _TEXTS:
        text = example.get(name)
        if text:
            stream.write(f"{label(name)}:\n")
            lines = visible_block(str(text)).rstrip("\n").split("\n")
            stream.writelines(f"{_MARGIN}{line}".rstrip() + "\n" for line in lines)


def _shown(row: Mapping[str, Any], name: str) -> str:
    if name == "share":
        return _percent(row["share"]) or ""
    if name == "tasks":
        return ("about " if row["tasks_estimated"] else "") + str(row["tasks"])
    if name == "harness":
        return cell(row["harness"]) or brief(cell(row["fingerprint"]))
    return brief(cell(row.get(name)))


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
