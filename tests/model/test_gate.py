"""A gate's report as it is stored: whole, without contradiction, and nothing in it that nobody can compute again."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tracemark.model.attribution import ATTRIBUTION_FORMAT, AttributionReport
from tracemark.model.gate import FORMAT, GateReport

DIGEST = "1" * 64
MODEL = dict.fromkeys(("name", "revision", "chat_template", "tokenizer", "server", "sampling"))
FIGURE = {"value": None, "withheld": "no attempt succeeded"}
FIGURES = {
    "attempts": 2,
    "successes": 0,
    "score": 0.0,
    "reliability": [{"k": 1, "combinations": 0.0, "power": 0.0}],
    "reliable": 0,
    "cost": FIGURE,
    "cost_per_success": FIGURE,
    "cost_per_reliable_task": FIGURE,
    "open_errors": 0,
    "rerun_errors": 0,
}
MEASURED: dict[str, Any] = {
    "n": 2,
    "attempts": 1,
    "w": 1,
    "l": 0,
    "ties": 1,
    "p": 0.5,
    "noise": {"tasks": None, "promoted": None, "point": 0.95, "method": "m", "withheld": "one attempt a task"},
    "inside_noise": None,
    "clean": True,
    "ups": [{"task": "a", "before": 0, "after": 1}],
    "downs": [],
    "incumbent": FIGURES,
    "candidate": FIGURES,
    "cost_scope": "s",
    "policies": {"significant": {"accepts": False, "reason": "r"}, "cotrace": {"accepts": True, "reason": "r"}},
    "conditions": [],
}
REFUSAL = {"reason": "confounded", "message": "m", "hint": "h", "tasks": [], "rerun": [], "traces": []}


def evaluated(letter: str) -> dict[str, Any]:
    return {
        "harness": "tm1:" + letter * 64,
        "model": MODEL,
        "components": {},
        "traces": [DIGEST],
        "digest": DIGEST,
        "statuses": {"failure": 1},
        "evidence": {"recorded": 1},
        "graders": [],
    }


def report(**changes: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "half": "harness",
        "policy": "significant",
        "verdict": "reject",
        "changed": ["prompt_templates"],
        "candidates": 1,
        "reused": [],
        "terms": {
            "attempts": None,
            "level": 0.05,
            "infrastructure_limit": 0.0,
            "evaluation_tasks": 0,
            "evaluation_digest": None,
            "frozen_digest": None,
        },
        "incumbent": evaluated("a"),
        "candidate": evaluated("b"),
        "refusals": [],
        "measured": MEASURED,
        **changes,
    }


def test_a_report_is_written_as_it_was_read() -> None:
    assert GateReport.model_validate(report()).model_dump(mode="json") == report()
    other = {"traces": 1, "steps": 1, "of": 2, "names": ["another"]}
    told = report(candidate={**evaluated("b"), "other_models": other})
    assert GateReport.model_validate(told).model_dump(mode="json") == told
    gone = {"traces": [DIGEST], "statuses": {"failure": 1}, "replaced": 1}
    told = report(candidate={**evaluated("b"), "reused": [DIGEST], "retracted": gone})
    assert GateReport.model_validate(told).model_dump(mode="json") == told
    refused = report(verdict="refused", refusals=[REFUSAL])
    del refused["measured"]
    assert GateReport.model_validate(refused).model_dump(mode="json") == refused


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "refused"},
        {"refusals": [REFUSAL]},
        {"verdict": "refused", "refusals": [REFUSAL]},
        {"measured": None},
        {"measured": {**MEASURED, "w": 2}},
        {"measured": {**MEASURED, "ties": 2}},
        {"format": "tracemark/gate/2"},
        {"verdict": "maybe"},
        {"policy": "none"},
        {"reused": ["short"]},
        {"candidates": -1},
        {"candidate": {**evaluated("b"), "other_models": None}},
        {"candidate": {**evaluated("b"), "other_models": {"traces": 0, "steps": 0, "of": 0, "names": []}}},
        {"candidate": {**evaluated("b"), "reused": []}},
        {"candidate": {**evaluated("b"), "retracted": {"traces": [], "statuses": {}, "replaced": 0}}},
        {"time": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_report_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GateReport.model_validate(report(**changes))


EFFECT = {"value": 1.0, "low": None, "high": None, "withheld": "one task"}
ATTRIBUTION: dict[str, Any] = {
    "format": ATTRIBUTION_FORMAT,
    "cells": [evaluated(letter) for letter in "abab"],
    "tasks": 1,
    "attempts": 1,
    "scores": [1.0, 1.0, 1.0, 1.0],
    "level": 0.95,
    "method": "m",
    "refusals": [],
    "effects": dict.fromkeys(
        ("harness", "harness_under_new", "model_under_old", "model_under_new", "interaction"), EFFECT
    ),
}


def test_an_attribution_is_written_as_it_was_read() -> None:
    assert AttributionReport.model_validate(ATTRIBUTION).model_dump(mode="json") == ATTRIBUTION


@pytest.mark.parametrize("changes", [{"cells": []}, {"effects": None}, {"refusals": [REFUSAL]}, {"level": "0.95"}])
def test_an_attribution_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AttributionReport.model_validate({**ATTRIBUTION, **changes})
