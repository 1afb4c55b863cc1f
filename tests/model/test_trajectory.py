"""The models of ATIF v1.8, and the fast schema that stands in for them."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.content import walk
from tracemark.importers.strict import fast
from tracemark.model.timestamp import is_timestamp
from tracemark.model.trajectory import problems

ROOT = Path(__file__).parents[2]
CALL = {"tool_call_id": "c1", "function_name": "f", "arguments": {"a": [1, None]}}


def trajectory(*steps: dict[str, Any], **members: Any) -> dict[str, Any]:
    counted = [{"step_id": index, "message": "", **step} for index, step in enumerate(steps, 1)]
    return {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "a", "version": "1"},
        "steps": counted or [{"step_id": 1, "source": "user", "message": "hello"}],
        **members,
    }


def agent(**members: Any) -> dict[str, Any]:
    return {"source": "agent", **members}


def reason(document: Any) -> str:
    return "; ".join(f"{place}: {words}" for place, words in problems(document))


def test_the_shipped_schema_is_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "scripts/write_trajectory_schema.py"))
    assert script["TARGET"].read_text(encoding="utf-8") == script["text"]()


def test_every_field_has_a_sentence() -> None:
    tree = ast.parse((ROOT / "src/tracemark/model/trajectory.py").read_text(encoding="utf-8"))
    silent = [
        f"{model.name}.{ast.unparse(field.target)}"
        for model in tree.body
        if isinstance(model, ast.ClassDef)
        for field, after in zip(model.body, [*model.body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]
    assert silent == []


@pytest.mark.parametrize(
    "document",
    [
        trajectory(),
        trajectory(agent(tool_calls=[CALL], observation={"results": [{"source_call_id": "c1"}]})),
        trajectory(agent(tool_calls=[CALL], observation={"results": [{"content": "unlinked"}]})),
        trajectory(agent(tool_calls=[CALL, CALL], observation={"results": []})),
        trajectory({"source": "system", "observation": {"results": [{"content": None}]}}),
        trajectory({"source": "user", "observation": {"results": []}}),
        trajectory(agent(llm_call_count=0)),
        trajectory(agent(metrics={"prompt_tokens": -5, "completion_tokens": 2**70, "cost_usd": 1})),
        trajectory(agent(message=[])),
        trajectory(agent(message=[{"type": "text", "text": "a"}])),
        trajectory(agent(message=[{"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}])),
        trajectory(agent(timestamp="2026-05-13T15:18:27.890779796+00:00")),
        trajectory(agent(timestamp="2026-05-13")),
        trajectory({"source": "user", "message": "\ud800"}, extra={"deep": {"\udfff": 1}}),
        trajectory(notes=None, extra=None, session_id=None),
        trajectory(subagent_trajectories=[trajectory(trajectory_id="x"), trajectory(trajectory_id="y")]),
    ],
)
def test_what_the_format_allows_is_valid(document: dict[str, Any]) -> None:
    assert reason(document) == ""


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (trajectory(schema_version="ATIF-v1.7"), "schema_version"),
        ({**trajectory(), "steps": []}, "steps"),
        ({**trajectory(), "unknown": 1}, "unknown"),
        ({key: value for key, value in trajectory().items() if key != "agent"}, "agent"),
        (trajectory({"source": "user", "step_id": 2}), "step_id 2"),
        (trajectory({"source": "user", "step_id": "1"}), "step_id"),
        (trajectory({"source": "user", "step_id": 1.0}), "step_id"),
        (trajectory({"source": "user", "step_id": True}), "step_id"),
        (trajectory({"source": "assistant"}), "source"),
        (trajectory({"source": "user", "message": None}), "message"),
        (trajectory({"source": "user", "tool_calls": []}), "tool_calls belongs to agent steps"),
        (trajectory({"source": "system", "metrics": {}}), "metrics belongs to agent steps"),
        (trajectory(agent(observation={"results": [{"source_call_id": "c1"}]})), "no call of this step"),
        (trajectory(agent(llm_call_count=0, metrics={})), "llm_call_count is 0"),
        (trajectory(agent(metrics={"prompt_tokens": 1.0})), "prompt_tokens"),
        (trajectory(agent(metrics={"cost_usd": "NaN"})), "cost_usd"),
        (trajectory(agent(tool_calls=[{**CALL, "arguments": "{}"}])), "arguments"),
        (trajectory(agent(timestamp="2026-05-13T24:00:00Z")), "ISO 8601"),
        (trajectory(agent(timestamp="2026-05-13T23:59:60Z")), "ISO 8601"),
        (trajectory(agent(timestamp=1.5)), "timestamp"),
        (trajectory(agent(message=[{"type": "text"}])), "own text or source"),
        (trajectory(agent(message=[{"type": "image", "text": "a"}])), "own text or source"),
        (trajectory({"source": "system", "observation": {"results": [{"subagent_trajectory_ref": [{}]}]}}), "needs"),
        (trajectory(subagent_trajectories=[trajectory()]), "needs a trajectory_id"),
        (trajectory(subagent_trajectories=[trajectory(trajectory_id="x")] * 2), "same trajectory_id"),
    ],
)
def test_what_the_format_forbids_is_named(document: dict[str, Any], words: str) -> None:
    assert words in reason(document)


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31 12:00", "20260131", "2026-W05-4"])
def test_a_time_needs_no_zone(text: str) -> None:
    assert is_timestamp(text)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-31T24:00:00Z", "2026-01-31Z10:00:00", "2026-01-31T12:00:00z"]
)
def test_what_strict_readers_refuse_is_no_time(text: str) -> None:
    assert not is_timestamp(text)


# The property draws documents that are nearly right: each member is right, absent, null, or of a neighbouring kind.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "1", 1, 1.0, 0, -1, True, [], {}, [{}], 2**70, "2026-01-31", "c1", [1.5]]
)


def nearly(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    def bent(strategy: Any) -> st.SearchStrategy[Any]:
        return st.one_of(strategy, strategy, strategy, strategy, strategy, strategy, ODD)

    return st.fixed_dictionaries(
        {name: bent(value) for name, value in required.items()},
        optional={name: bent(value) for name, value in optional.items()},
    )


TEXT = st.sampled_from(["", "a", "c1", "\ud800"])
COUNT = st.sampled_from([0, 1, 7])
PRICE = st.sampled_from([0.0, 0.5, 1])
FREE = st.just({"k": 1})
METRICS = nearly(
    {},
    {"prompt_tokens": COUNT, "completion_tokens": COUNT, "cached_tokens": COUNT, "cost_usd": PRICE, "extra": FREE},
)
CALLS = st.lists(
    nearly({"tool_call_id": TEXT, "function_name": TEXT, "arguments": FREE}, {"extra": FREE}), min_size=1, max_size=2
)
RESULTS = st.lists(nearly({}, {"source_call_id": TEXT, "content": TEXT, "extra": FREE}), max_size=2)
STEP = nearly(
    {"source": st.sampled_from(["system", "user", "agent", "agent", "agent"]), "message": TEXT},
    {
        "timestamp": st.just("2026-01-31T12:00:00Z"),
        "model_name": TEXT,
        "reasoning_effort": st.one_of(TEXT, PRICE),
        "reasoning_content": TEXT,
        "tool_calls": CALLS,
        "observation": nearly({"results": RESULTS}, {}),
        "metrics": METRICS,
        "is_copied_context": st.booleans(),
        "llm_call_count": COUNT,
        "extra": FREE,
    },
)
FINAL = nearly(
    {},
    {
        "total_prompt_tokens": COUNT,
        "total_completion_tokens": COUNT,
        "total_cached_tokens": COUNT,
        "total_cost_usd": PRICE,
        "total_steps": COUNT,
        "extra": FREE,
    },
)
DOCUMENT = nearly(
    {
        "schema_version": st.just("ATIF-v1.8"),
        "agent": nearly(
            {"name": TEXT, "version": TEXT}, {"model_name": TEXT, "tool_definitions": st.just([{}]), "extra": FREE}
        ),
        "steps": st.lists(STEP, min_size=1, max_size=3),
    },
    {"session_id": TEXT, "trajectory_id": TEXT, "notes": TEXT, "final_metrics": FINAL, "extra": FREE},
)


def number(document: dict[str, Any], drift: int) -> None:
    steps = document.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else (), 1):
        if isinstance(step, dict):
            step["step_id"] = [index, index, index, index + 1, float(index), str(index)][drift % 6]


@given(DOCUMENT, st.integers(0, 5))
def test_what_the_fast_path_accepts_the_models_accept(document: dict[str, Any], drift: int) -> None:
    number(document, drift)
    if fast(document) and walk(document).sound:
        assert reason(document) == ""


@given(DOCUMENT)
def test_what_the_models_accept_another_implementation_accepts(document: dict[str, Any]) -> None:
    number(document, 0)
    if not problems(document) and "\ud800" not in json.dumps(document, ensure_ascii=False):
        assert Peer.model_validate(document) is not None
