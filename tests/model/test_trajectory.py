"""The models of ATIF v1.8, and the fast schema that stands in for them."""

from __future__ import annotations

import ast
import copy
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark.importers.content import walk
from tracemark.importers.strict import fast
from tracemark.model.atif import are_timestamps, is_timestamp
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


def test_the_shipped_schemas_are_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "docs/make_schemas.py"))
    shipped = {path.name: path.read_text(encoding="utf-8") for path in script["FOLDER"].glob("*.schema.json")}
    assert shipped == {name: script["text"](name) for name in script["SCHEMAS"]}


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


TIMES = (
    "2026-01-31T12:00:00Z",
    "2026-01-31 12:00",
    "20260131",
    "2026-01-31T24:00:00Z",
    "2026-01-31 24:00",
    "2026-01-31Z10:00:00",
    "2026-01-31\n10:00:00",
    "2026-01-31T12:00:00Z\n",
    "yesterday",
    "",
    "Z",
)


@given(st.lists(st.sampled_from(TIMES), max_size=4))
def test_many_times_are_judged_like_each_of_them(texts: list[str]) -> None:
    assert are_timestamps(texts) == all(map(is_timestamp, texts))


# The properties bend a valid document in up to two places: a member is replaced, removed or added.
FREE = {"k": 1}
WHOLE: dict[str, Any] = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "trajectory_id": None,
    "agent": {"name": "a", "version": "", "model_name": "m", "tool_definitions": [{}], "extra": FREE},
    "notes": "",
    "final_metrics": {
        "total_prompt_tokens": 7,
        "total_completion_tokens": 0,
        "total_cached_tokens": None,
        "total_cost_usd": 0.5,
        "total_steps": 3,
        "extra": FREE,
    },
    "extra": FREE,
    "steps": [
        {
            "step_id": 1,
            "source": "system",
            "message": "x",
            "observation": {"results": [{"content": "y"}]},
            "extra": FREE,
        },
        {"step_id": 2, "source": "user", "message": "", "timestamp": "2026-01-31T12:00:00Z", "is_copied_context": True},
        {
            "step_id": 3,
            "source": "agent",
            "message": "\ud800",
            "model_name": "m",
            "reasoning_effort": 0.5,
            "reasoning_content": "",
            "tool_calls": [CALL, {**CALL, "tool_call_id": "c2", "extra": FREE}],
            "observation": {"results": [{"source_call_id": "c2", "content": None, "extra": FREE}, {"content": "z"}]},
            "metrics": {"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": 0, "cost_usd": 1, "extra": FREE},
            "llm_call_count": 1,
        },
        {"step_id": 4, "source": "agent", "message": "a greeting", "llm_call_count": 0},
    ],
}
NAMES = [
    *("llm_call_count", "metrics", "tool_calls", "observation", "timestamp", "source_call_id", "extra", "logprobs"),
    *("subagent_trajectories", "unknown", "model_name", "reasoning_content", "prompt_token_ids"),
]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "",
        "1",
        "c1",
        "agent",
        "2026-01-31",
        1,
        2,
        0,
        -1,
        1.0,
        1.5,
        2**70,
        10**400,
        -(10**400),
        True,
        [],
        {},
        [{}],
        [1],
        ["a"],
        FREE,
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inner for found in places(child, (*path, key)))]


@st.composite
def bent(draw: st.DrawFn) -> Any:
    """Return the whole document, changed in up to two places."""
    document = json.loads(json.dumps(WHOLE))
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(places(document)[1:]))
        owner: Any = document
        for key in path[:-1]:
            owner = owner[key]
        kind = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if kind == "replace":
            owner[path[-1]] = copy.deepcopy(draw(ODD))
        elif kind == "remove" or not isinstance(owner, dict):
            del owner[path[-1]]
        else:
            owner[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(ODD))
    return document


def test_the_fast_path_accepts_the_whole_document() -> None:
    assert fast(WHOLE)
    assert walk(WHOLE).sound


@pytest.mark.parametrize("members", [{"metrics": {}}, {"reasoning_content": ""}])
def test_the_fast_path_leaves_a_step_without_a_call_that_cost_something_to_the_models(members: dict[str, Any]) -> None:
    assert not walk(trajectory(agent(llm_call_count=0, **members))).sound


@settings(max_examples=400)
@given(bent())
def test_what_the_fast_path_accepts_the_models_accept(document: Any) -> None:
    if fast(document) and walk(document).sound:
        assert reason(document) == ""


@settings(max_examples=200)
@given(bent())
def test_what_the_models_accept_another_implementation_accepts(document: Any) -> None:
    if not problems(document):
        readable = json.loads(json.dumps(document).replace("\\ud800", "?"))
        assert Peer.model_validate(readable) is not None
