"""An audit as a reader sees it: the evidence of every part on a line of its own.

Invariants:
- every audit of a trace has the same lines and sections in the same order, and so have those of an export and of a
  harness: what is empty says so in its place;
- rows of an export in which the same is wrong are one finding with their number; JSON has each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from tracemark.acts.audit_export import ExportAudit
from tracemark.acts.audit_harness import HarnessAudit
from tracemark.acts.audit_trace import TraceAudit
from tracemark.cli.layout import agent_in_words, write_report
from tracemark.findings import Finding, Report

_SECTIONS: Mapping[type[Report], Collection[str]] = {
    TraceAudit: (
        "components",
        "contradictions",
        "conflicts",
        "fits",
        "outcome",
        "run",
        "source",
        "exports",
        "inherited",
        "decisions",
    ),
    ExportAudit: ("outcomes", "proved"),
    HarnessAudit: ("statuses", "evidence", "exports", "decisions"),
}
_ROW = re.compile(r"(.+):\d+")
_ID = re.compile(r"(?<!tm1:)\b[0-9a-f]{12}(?:[0-9a-f]{52})?\b")
"""A trace's id, whole or short; a fingerprint has a prefix."""


def write_audit(report: Report, stream: TextIO) -> None:
    """Write an audit of a trace, an export or a harness to `stream`."""
    members = {name: value for name, value in report.as_json().items() if name != "findings"}
    components = members.get("components")
    if isinstance(components, Mapping):
        members["components"] = [row for name, value in components.items() for row in _parts(name, value)]
    if isinstance(report, TraceAudit):
        del members["labels"]
        members["mixed"] = report.mixed or ("no" if report.mixed is None else "yes; nobody says where")
        members["agent"] = agent_in_words(report.agent)
        members["fits"] = [{"name": report.labels[one], "fingerprint": one} for one in report.fits]
        if report.accepted_harness is None:
            members["differs_in"] = "no harness is accepted"
        elif report.differs_in is None:
            members["differs_in"] = "nobody knows the texts of the accepted harness"
        elif not report.differs_in:
            members["differs_in"] = "nothing that shows" if not report.accepted else "nothing"
    write_report(members, stream, _SECTIONS[type(report)])


def by_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings with those about rows of one file that differ in row and trace only made one, at the first."""
    groups: dict[tuple[str, ...] | int, list[Finding]] = {}
    for number, found in enumerate(findings):
        row = _ROW.fullmatch(found.where)
        cause = (
            (found.code, row[1], *(_ID.sub("", text) for text in (found.message, found.hint or ""))) if row else number
        )
        groups.setdefault(cause, []).append(found)
    return tuple(_counted(same) for same in groups.values())


def _counted(same: Sequence[Finding]) -> Finding:
    first, more = same[0], len(same) - 1
    if not more:
        return first
    rows = "1 more row" if more == 1 else f"{more} more rows"
    return replace(first, message=f"{first.message} (and so {rows}; --output json lists them)")


def _parts(component: str, value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row per part: what is stated of it and how well it is known, then what the content itself shows."""
    for part, stated in value.get("parts", {}).items():
        evidence = f"observed, {stated['form']}" if "form" in stated else stated["evidence"]
        yield {"component": component, "part": part, "evidence": evidence, "digest": stated["digest"]}
    if not value.get("parts"):
        yield {"component": component, "part": None, "evidence": value["evidence"], "digest": value["digest"]}
    for seen in value.get("observed", ()):
        evidence = f"observed, {seen['form']}"
        yield {"component": component, "part": seen["part"], "evidence": evidence, "digest": seen["digest"]}
