from __future__ import annotations

import io
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from tracemark.acts.audit_export import ExportAudit
from tracemark.acts.audit_harness import HarnessAudit
from tracemark.acts.audit_trace import TraceAudit
from tracemark.cli.audit_view import by_cause, write_audit
from tracemark.findings import Finding, Report, finding

ID = "a" * 64


def trace(**known: Any) -> TraceAudit:
    members: dict[str, Any] = dict.fromkeys(field.name for field in fields(TraceAudit))
    empty: dict[str, Any] = {"components": {}, "outcome": {}, "run": {}, "source": {}, "labels": {}, "agent": {}}
    lists: dict[str, Any] = {
        name: [] for name in ("stated", "contradictions", "fits", "exports", "conflicts", "superseded_by", "decisions")
    }
    return TraceAudit(**members | {"findings": (), "accepted": False} | empty | lists | known)


def written(report: Report) -> str:
    stream = io.StringIO()
    write_audit(report, stream)
    return stream.getvalue()


def heads(text: str) -> list[str]:
    """Return the names of the lines above the sections, and of the sections, in order."""
    above, _, below = text.partition("\n\n")
    lines = [re.split("  +", line)[0] for line in above.splitlines()]
    return [*lines, *(line for line in below.splitlines() if line.endswith(":"))]


def test_every_part_has_a_line_with_its_evidence() -> None:
    components = {
        "prompt_templates": {
            "digest": "d0",
            "evidence": "corroborated",
            "parts": {"system": {"digest": "d1", "evidence": "corroborated"}},
            "observed": [{"part": "system", "form": "prefix", "digest": "d2"}],
        },
        "runtime": {"digest": None, "evidence": "unrecorded", "parts": {}, "observed": []},
    }
    assert (
        "\ncomponents:\n"
        "component         part    evidence          digest\n"
        "prompt_templates  system  corroborated      d1\n"
        "prompt_templates  system  observed, prefix  d2\n"
        "runtime                   unrecorded\n"
    ) in written(trace(components=components))


FULL = {
    "contradictions": [{"harness": "shop", "component": "runtime", "part": "limits", "text": "t"}],
    "fits": ["tm1:a"],
    "labels": {"tm1:a": "shop"},
    "exports": [{"manifest": ID, "fingerprint": "tm1:a", "policy": "unique", "rows": 1}],
    "outcome": {"status": "success"},
    "run": {"task": "t-1"},
    "source": {"format": "atif"},
    "components": {"runtime": {"digest": None, "evidence": "unrecorded", "parts": {}}},
    "accepted_harness": "tm1:a",
    "differs_in": ["prompt_templates/system", "tool_bindings/look", "observation_handlers/observe", "runtime/limits"],
    "stated": ["a-long-label-of-a-harness", "another-long-label-of-a-harness", "a-third-label"],
    "conflicts": [{"member": "outcome.status", "value": "failure", "source": "runs.jsonl"}],
    "export": "no: outcome",
    "decisions": [{"kind": "stamp", "time": "2026-01-31T12:00:00Z", "reason": "r", "entry": ID}],
    "superseded_by": [ID],
}


@pytest.mark.parametrize("left_out", [*sorted(FULL.keys() - {"labels"}), None])
def test_an_audit_of_a_trace_has_one_layout_whatever_is_empty(left_out: str | None) -> None:
    known = {name: value for name, value in FULL.items() if name != left_out}
    assert heads(written(trace(**known))) == heads(written(trace()))


def test_an_empty_section_says_so() -> None:
    assert "\nfits:\n  none\n" in written(trace())
    assert "\nexports:\n  none\n" in written(trace())


def test_audits_of_exports_and_harnesses_have_one_layout_too() -> None:
    export = ExportAudit((), "sft", None, None, 0, {}, 0, ())
    found = replace(export, outcomes={"recorded success": 2}, proved=("short",))
    assert heads(written(export)) == heads(written(found))
    harness = HarnessAudit((), "shop", "tm1:a", False, 0, 0, {}, {}, [], [])
    made = replace(harness, statuses={"success": 1}, evidence={"claimed": 1}, exports=[{"manifest": ID}])
    assert heads(written(harness)) == heads(written(made))


def test_rows_in_which_the_same_is_wrong_are_one_finding_with_their_number() -> None:
    def row(number: int, made_by: str, code: str = "export-other-harness", file: str = "sft.jsonl") -> Finding:
        return finding(code, f"{file}:{number}", f"{number:064x} is of {made_by}", f"tracemark audit {number:012x}")

    one, other = "tm1:" + "1" * 64, "tm1:" + "2" * 64
    whole = finding("export-other-harness", "manifest.json", "the export is of another")
    lone = row(5, one, "export-row-excluded")
    findings = (whole, row(1, one), row(2, one), row(3, other), row(4, one), row(6, other), lone, whole)
    grouped = by_cause(findings)
    assert [found.where for found in grouped] == [
        "manifest.json",
        "sft.jsonl:1",
        "sft.jsonl:3",
        "sft.jsonl:5",
        "manifest.json",
    ]
    assert grouped[1].message == f"{1:064x} is of {one} (and so 2 more rows; --output json lists them)"
    assert grouped[2].message.endswith("(and so 1 more row; --output json lists them)")
    assert grouped[3] == lone


@pytest.mark.parametrize(
    ("accepted", "differs_in", "shown"),
    [
        (None, None, ("-", "no harness is accepted")),
        ("tm1:a", None, ("tm1:a", "nobody knows the texts of the accepted harness")),
        ("tm1:a", [], ("tm1:a", "nothing that shows")),
        ("tm1:a", ["runtime/limits"], ("tm1:a", "runtime/limits")),
    ],
)
def test_what_there_is_to_differ_from_is_said(
    accepted: str | None, differs_in: list[str] | None, shown: tuple[str, str]
) -> None:
    text = written(trace(accepted_harness=accepted, differs_in=differs_in))
    rows = dict(re.split("  +", line, maxsplit=1) for line in text.partition("\n\n")[0].splitlines())
    assert (rows["accepted harness"], rows["differs in"]) == shown


def test_what_fits_has_its_name_beside_the_fingerprint() -> None:
    report = trace(fits=["tm1:a", "tm1:b"], labels={"tm1:a": "shop", "tm1:b": "old"})
    assert "\nfits:\nname  fingerprint\nshop  tm1:a\nold   tm1:b\n" in written(report)
    assert report.as_json()["fits"] == ["tm1:a", "tm1:b"]


def test_an_agent_is_shown_by_the_labels_that_its_document_gives() -> None:
    assert re.search(
        "^agent +terminus-2 2.0.0$", written(trace(agent={"name": "terminus-2", "version": "2.0.0"})), re.MULTILINE
    )
