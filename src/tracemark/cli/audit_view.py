"""An audit as a reader sees it: the evidence of every part on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from tracemark.acts.audit import TraceAudit
from tracemark.cli.layout import write_report
from tracemark.findings import Report


def write_audit(report: Report, stream: TextIO) -> None:
    """Write an audit of a trace, an export or a harness to `stream`."""
    members = {name: value for name, value in report.as_json().items() if name != "findings"}
    components = members.get("components")
    if isinstance(components, Mapping):
        members["components"] = [row for name, value in components.items() for row in _parts(name, value)]
    if isinstance(report, TraceAudit):
        del members["labels"]
        members["fits"] = [{"name": report.labels[one], "fingerprint": one} for one in report.fits]
        if report.accepted_harness is None:
            members["differs_in"] = "no harness is accepted"
        elif report.differs_in is None:
            members["differs_in"] = "nobody knows the texts of the accepted harness"
        elif not report.differs_in:
            members["differs_in"] = "nothing that shows" if not report.accepted else "nothing"
    write_report(members, stream)


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
