"""What a run cost, which model made it, and which one its steps name."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.acts.attempts import cost_of, model_of, shown_otherwise
from tracemark.gates.cell import Model, Shown
from tracemark.stats.cost import total_cost


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
        ({"steps": [step(None)], "final_metrics": {"total_cost_usd": 0}}, 0.0),
        ({"steps": [step(0.5)], "final_metrics": {"total_cost_usd": -2}}, -2.0),
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


@pytest.mark.parametrize(
    ("total", "costs", "cost"),
    [
        (0, [0.5], None),
        (1.0, [0.5, 0.75], None),
        (1.25, [0.5, 0.75], 1.25),
        # a total that is rounded to cents is no other one
        (0.01, [0.0049, 0.0095], 0.01),
        (123.0, [61.6, 61.6], 123.0),
        (1.0, [10.0**308, 10.0**308], None),
        # what costs something is not free, however little that is
        (0, [0.003], None),
        (0.0, [1e-9, 1e-9], None),
        (0, [0.0, 0.0], 0.0),
        # what was cut at the last decimal that is written is no other total, and one cent is much beside a tenth of one
        (0.001, [0.0014], 0.001),
        (0.001, [0.0016], None),
        (0.001, [0.009], None),
        (1e-05, [1.4e-05], 1e-05),
        # a number in JSON does not keep the zeros of 0.10: nobody rounds to ten cents
        (0.1, [0.104], 0.1),
        (0.1, [0.14], None),
        (1, [1.4], None),
        # what is below 0 takes nothing away from what the others cost
        (0, [5.0, -5.0], None),
    ],
)
def test_a_total_that_is_less_than_its_steps_cost_is_not_known(
    total: float, costs: list[float], cost: float | None
) -> None:
    assert cost_of({"steps": list(map(step, costs)), "final_metrics": {"total_cost_usd": total}}) == cost


def test_what_was_copied_from_an_earlier_document_contradicts_no_total() -> None:
    steps = [step(5.0, is_copied_context=True), step(0.25)]
    assert cost_of({"steps": steps, "final_metrics": {"total_cost_usd": 0.25}}) == 0.25


def test_a_total_of_0_is_not_known_where_an_embedded_agent_cost_something() -> None:
    free = {"total_cost_usd": 0}
    for embedded in (
        {"steps": [step(0.003)]},
        {"steps": [step(0.003)], "final_metrics": free},
        {"steps": [step(None)], "final_metrics": {"total_cost_usd": 0.003}},
        {"steps": [], "final_metrics": free, "subagent_trajectories": [{"steps": [step(0.003), step(None)]}]},
    ):
        assert cost_of({"steps": [], "final_metrics": free, "subagent_trajectories": [embedded]}) is None
    idle = {"steps": [step(0.0)], "final_metrics": free}
    assert cost_of({"steps": [], "final_metrics": free, "subagent_trajectories": [idle]}) == 0


def test_a_negative_part_is_not_made_up_for_by_the_others() -> None:
    below = cost_of({"steps": [step(5.0), step(-4.99)]})
    assert below == -4.99
    embedded = {"steps": [step(-1.0)]}
    assert cost_of({"steps": [step(5.0)], "subagent_trajectories": [embedded]}) == -1.0
    assert total_cost([1.0, below]).withheld == "the cost of 1 of 2 attempts is no number of 0 or more"


def test_the_model_half_is_all_that_a_run_says_of_its_model() -> None:
    run = {
        "model": {"name": "m", "revision": "1", "chat_template": "t", "tokenizer": "o", "server": "s"},
        "sampling": {"top_p": 1, "temperature": 0.5, "seed": 7},
    }
    assert model_of(run) == Model("m", "1", "t", "o", "s", '{"temperature":0.5,"top_p":1}')
    empty = dict.fromkeys(run["model"], "")
    assert (
        model_of({"model": empty})
        == model_of({})
        == model_of({"sampling": {}})
        == model_of({"sampling": {"seed": 7}})
        == Model()
    )


def shown(recorded: Model, *names: str | None, **more: Any) -> Shown | None:
    """Return what is told of a run with one step of the agent for each name; None is a step that names no model."""
    steps = [{"source": "agent", **({} if name is None else {"model_name": name})} for name in names]
    return shown_otherwise({"steps": steps, **more}, recorded)


@pytest.mark.parametrize(
    ("recorded", "name", "is_same"),
    [
        (Model("gpt-4"), "openai/gpt-4", True),
        (Model("gpt-4"), "gpt-4-2026-01-31", True),
        (Model("gpt-4"), "GPT-4@20260131", True),
        (Model("gpt-4", "2026-01-31"), "gpt-4-20260131", True),
        (Model("openai/gpt-4"), "proxy/openai/gpt-4", True),
        (Model("theta", "1"), "theta@1", True),
        (Model("theta", "1"), "lab/theta@1", True),
        (Model("gpt-4", "2026-01-31"), "gpt-4-2025-05-13", False),
        (Model("gpt-4"), "gpt-4o-mini", False),
        (Model("lab/llama"), "other/llama", False),
        (Model("theta", "1"), "theta@2", False),
        (Model("theta1"), "theta10", False),
        (Model("m"), "mistral-large", False),
        (Model("m/"), "other", False),
        (Model("m"), "/", False),
    ],
)
def test_a_provider_and_a_date_make_no_other_model_and_a_longer_name_does(
    recorded: Model, name: str, is_same: bool
) -> None:
    assert shown(recorded, name) == (None if is_same else Shown(1, 1, (name,)))


def test_every_step_of_another_model_counts_whatever_the_others_name() -> None:
    assert shown(Model("m"), "m", "x", "m", "y", "x") == Shown(3, 5, ("x", "y"))
    assert shown(Model("m"), "m", "m") is None


def test_a_step_that_names_no_model_is_of_the_agents() -> None:
    agent = {"model_name": "x"}
    assert shown(Model("m"), "m", None, "", agent=agent) == Shown(2, 3, ("x",))
    assert shown(Model("m"), "m", "m", agent=agent) is None
    assert shown(Model("m"), "m", None) is None
    assert shown(Model("m"), None, agent={"model_name": None}) is None


def test_steps_of_no_model_count_for_none() -> None:
    steps = [
        {"source": "user", "model_name": "x"},
        {"source": "agent", "model_name": "x", "llm_call_count": 0},
        {"source": "agent", "model_name": "m"},
    ]
    assert shown_otherwise({"steps": steps}, Model("m")) is None
    assert shown_otherwise({"steps": []}, Model("m")) is None
    assert shown_otherwise({"steps": [{"source": "agent", "model_name": "x"}]}, Model()) is None


def test_steps_of_embedded_agents_count_as_well() -> None:
    deepest = {"agent": {"model_name": "x"}, "steps": [{"source": "agent"}, {"source": "agent"}]}
    middle = {"steps": [{"source": "agent", "model_name": "m"}], "subagent_trajectories": [deepest]}
    assert shown(Model("m"), "m", subagent_trajectories=[middle]) == Shown(2, 4, ("x",))


def test_a_name_that_is_no_text_for_a_file_is_told_as_the_catalogue_holds_it() -> None:
    assert shown(Model("m\\ud800"), "m\ud800") is None
    assert shown(Model("m"), "x\ud800") == Shown(1, 1, ("x\\ud800",))
