from __future__ import annotations

import io
import re
from dataclasses import dataclass, fields
from typing import Any

import pytest

from tracemark.acts.audit import TraceAudit
from tracemark.cli.audit_view import write_audit
from tracemark.findings import Report


@dataclass(frozen=True)
class Audit(Report):
    trace_id: str
    components: dict[str, Any]


def test_every_part_has_a_line_with_its_evidence() -> None:
    stream = io.StringIO()
    components = {
        "prompt_templates": {
            "digest": "d0",
            "evidence": "corroborated",
            "parts": {"system": {"digest": "d1", "evidence": "corroborated"}},
            "observed": [{"part": "system", "form": "prefix", "digest": "d2"}],
        },
        "runtime": {"digest": None, "evidence": "unrecorded", "parts": {}, "observed": []},
    }
    write_audit(Audit((), "a" * 64, components), stream)
    assert stream.getvalue() == (
        f"trace id  {'a' * 64}\n"
        "\n"
        "components:\n"
        "component         part    evidence          digest\n"
        "prompt_templates  system  corroborated      d1\n"
        "prompt_templates  system  observed, prefix  d2\n"
        "runtime                   unrecorded\n"
    )


def test_an_audit_without_components_shows_its_members() -> None:
    @dataclass(frozen=True)
    class Export(Report):
        export: str

    stream = io.StringIO()
    write_audit(Export((), "sft"), stream)
    assert stream.getvalue() == "export  sft\n"


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
    members: dict[str, Any] = dict.fromkeys(field.name for field in fields(TraceAudit))
    members |= {"findings": (), "components": {}, "accepted": False, "fits": [], "labels": {}}
    stream = io.StringIO()
    write_audit(TraceAudit(**members | {"accepted_harness": accepted, "differs_in": differs_in}), stream)
    rows = dict(re.split("  +", line, maxsplit=1) for line in stream.getvalue().splitlines())
    assert (rows["accepted harness"], rows["differs in"]) == shown


def test_what_fits_has_its_name_beside_the_fingerprint() -> None:
    members: dict[str, Any] = dict.fromkeys(field.name for field in fields(TraceAudit))
    members |= {
        "findings": (),
        "components": {},
        "fits": ["tm1:a", "tm1:b"],
        "labels": {"tm1:a": "shop", "tm1:b": "old"},
    }
    stream = io.StringIO()
    report = TraceAudit(**members)
    write_audit(report, stream)
    assert "\nfits:\nname  fingerprint\nshop  tm1:a\nold   tm1:b\n" in stream.getvalue()
    assert report.as_json()["fits"] == ["tm1:a", "tm1:b"]
