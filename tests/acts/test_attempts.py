"""What a run cost, and which model made it."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.acts.attempts import cost_of, model_of, shown_otherwise
from tracemark.gates.cell import Model


def step(cost: float | None, source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"source": source, **({} if cost is None else {"metrics": {"cost_usd": cost}}), **more}


@pytest.mark.parametrize(
    ("trajectory", "cost"),
    [
        ({"steps": []}, None),
        ({"steps": [step(0.5), step(0.25)]}, 0.75),
        ({"steps": [step(0.5), step(None, "user"), step(None, llm_call_count=0)]}, 0.5),
        ({"steps": [step(0.5), step(None)]}, None),
        ({"steps": [step(0.5)], "final_metrics": {"total_cost_usd": 2}}, 2.0),
        ({"steps": [step(0.5)], "final_metrics": {"total_cost_usd": 0}}, 0.0),
        ({"steps": [step(0.5)], "final_metrics": {}}, 0.5),
        ({"steps": [step(0.5)], "subagent_trajectories": [{"steps": [step(0.25)]}]}, 0.75),
        ({"steps": [step(0.5)], "subagent_trajectories": [{"steps": [step(None)]}]}, None),
        ({"steps": [step(0.0)]}, 0.0),
        ({"steps": [], "final_metrics": {"total_cost_usd": 10**400}}, None),
        ({"steps": [], "final_metrics": {"total_cost_usd": True}}, None),
    ],
)
def test_a_cost_is_the_runs_own_total_else_the_sum_of_its_steps_and_never_a_guess(
    trajectory: dict[str, Any], cost: float | None
) -> None:
    assert cost_of(trajectory) == cost


def test_the_model_half_is_all_that_a_run_says_of_its_model() -> None:
    run = {
        "model": {"name": "m", "revision": "1", "chat_template": "t", "tokenizer": "o", "server": "s"},
        "sampling": {"top_p": 1, "temperature": 0.5, "seed": 7},
    }
    assert model_of(run) == Model("m", "1", "t", "o", "s", '{"temperature":0.5,"top_p":1}')
    assert model_of({}) == model_of({"sampling": {}}) == model_of({"sampling": {"seed": 7}}) == Model()


@pytest.mark.parametrize(
    ("recorded", "shown", "is_same"),
    [
        ("gpt-4", "openai/gpt-4", True),
        ("gpt-4", "gpt-4-2026-01-31", True),
        ("gpt-4", "GPT-4@20260131", True),
        ("gpt-4", "gpt-4o-mini", False),
        ("theta1", "theta10", False),
        ("m", "mistral-large", False),
        ("m/", "other", False),
    ],
)
def test_a_provider_and_a_date_make_no_other_model_and_a_longer_name_does(
    recorded: str, shown: str, is_same: bool
) -> None:
    run = {"steps": [{"source": "agent", "model_name": shown}]}
    assert shown_otherwise(run, recorded) == (None if is_same else shown)
