"""Corroboration as a user meets it: the audit shows what contradicts, component by component, and what agrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracemark.acts import audit
from tracemark.acts.corpus import Corpus

from .conftest import Shop, document, write_version

BREAKS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], tuple[str, int | None]]] = {
    "prompt_templates": (
        "",
        lambda made: made["steps"][0].update(message="You are somebody else."),
        ("system", 1),
    ),
    "tool_bindings": (
        "",
        lambda made: made["steps"][2]["tool_calls"][0].update(function_name="refund"),
        ("refund", 3),
    ),
    "observation_handlers": (
        ", template: '<seen>{{ output }}</seen>'",
        lambda made: made["steps"][3]["observation"]["results"][0].update(content="seen", extra={"raw_output": "raw"}),
        ("observe", 4),
    ),
    "runtime": ("", lambda made: made, ("limits", 5)),
}


@pytest.mark.parametrize("component", BREAKS)
def test_the_audit_of_a_trace_shows_the_contradiction_of_each_component_with_step_and_text(
    shop: Shop, component: str
) -> None:
    handler, change, (part, step) = BREAKS[component]
    manifest = write_version(shop.root, "strict") / "harness.yaml"
    manifest.write_text(
        manifest.read_text().replace("observe.py:observe'", f"observe.py:observe'{handler}")
        + f"runtime: {{limits: {{steps: {2 if component == 'runtime' else 3}}}}}\n"
    )
    made = document("broken")
    change(made)
    report = shop.ingest([made], "strict", "broken")
    assert (report.contradicted, report.exit_code) == (1, 1)
    shown = audit.audit(shop.root, shop.ids()["broken"])
    assert isinstance(shown, audit.TraceAudit)
    (place,) = shown.contradictions
    assert (place["harness"], place["component"], place["part"], place["step"]) == ("strict", component, part, step)
    assert place["text"]
    assert shown.fingerprint is None
    assert Corpus(shop.root).resolve("strict").fingerprint not in shown.fits


def test_a_handler_that_gives_every_observation_again_is_corroborated_in_stamp_and_audit(shop: Shop) -> None:
    manifest = write_version(shop.root, "framed") / "harness.yaml"
    framed = "observe.py:observe', template: '<seen>{{ output }}</seen>'"
    manifest.write_text(manifest.read_text().replace("observe.py:observe'", framed))
    made = document("framed")
    for step in made["steps"][2:4]:
        step["observation"]["results"][0].update(content="<seen>raw</seen>", extra={"raw_output": "raw"})
    shop.ingest([made], "framed", "framed")
    shown = audit.audit(shop.root, shop.ids()["framed"])
    assert isinstance(shown, audit.TraceAudit)
    evidence = {name: component["evidence"] for name, component in shown.components.items()}
    assert evidence["observation_handlers"] == "corroborated"
    assert {Corpus(shop.root).by_fingerprint[one].name for one in shown.fits} == {"desk_a", "framed"}
