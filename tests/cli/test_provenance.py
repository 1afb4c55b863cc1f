from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from tracemark.cli.provenance import write_audit
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
