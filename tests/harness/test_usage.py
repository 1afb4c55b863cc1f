"""Token counts of first calls: they tell apart what messages and tools do not, and prove nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemark.harness.usage import FirstCall, Usage, first_call

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def trajectory(tokens: int | None = 100, *, agent: dict[str, Any] | None = None, **reply: Any) -> dict[str, Any]:
    return {
        "agent": {"name": "a", "version": "1", "model_name": "m-1", **(agent or {})},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be exact."},
            {"step_id": 2, "source": "user", "message": "Hello."},
            {"step_id": 3, "source": "agent", "message": "Hi.", "metrics": {"prompt_tokens": tokens}, **reply},
            {"step_id": 4, "source": "agent", "message": "Bye.", "metrics": {"prompt_tokens": 900}},
        ],
    }


def call(document: dict[str, Any], **run: Any) -> FirstCall:
    found = first_call(document, run)
    assert found is not None
    return found


def test_the_first_call_has_the_tokens_and_the_model_of_its_step() -> None:
    assert call(trajectory())[1:] == ("m-1", 100)
    assert call(trajectory(model_name="m-2"))[1:] == ("m-2", 100)


def test_equal_beginnings_have_one_key_whatever_comes_behind_and_whoever_says_it() -> None:
    other = trajectory(200, agent={"version": "2"}, timestamp="2026-01-01T00:00:00Z")
    other["steps"][2]["message"] = "Another reply."
    assert call(other).key == call(trajectory()).key
    assert call(other, task="t").key == call(trajectory(), task="u").key


@pytest.mark.parametrize(
    "other",
    [
        trajectory(model_name="m-2"),
        trajectory(agent={"tool_definitions": [TOOL]}),
        trajectory(reasoning_effort="high"),
        {**trajectory(), "steps": [{"source": "user", "message": "Be exact."}, *trajectory()["steps"][1:]]},
        {**trajectory(), "steps": trajectory()["steps"][1:]},
    ],
    ids=["model", "tools", "effort", "role", "a message less"],
)
def test_another_model_other_tools_and_other_messages_are_not_compared(other: dict[str, Any]) -> None:
    assert call(other).key != call(trajectory()).key
    assert call(trajectory(), model={"server": "s"}).key != call(trajectory()).key


@pytest.mark.parametrize("name", ["response_format", "tool_choice", "parallel_tool_calls"])
def test_a_parameter_that_becomes_text_of_the_prompt_is_shown_and_others_are_not(name: str) -> None:
    plain = call(trajectory(), sampling={"temperature": 0, "seed": 1})
    assert plain.key == call(trajectory()).key
    assert call(trajectory(), sampling={name: "auto"}).key != plain.key


def without_steps(*numbers: int, **change: Any) -> dict[str, Any]:
    document = trajectory()
    document["steps"] = [step for step in document["steps"] if step["step_id"] not in numbers]
    document["steps"][0] |= change
    return document


@pytest.mark.parametrize(
    ("document", "run"),
    [
        (without_steps(3, 4), {}),
        (trajectory(agent={"model_name": None}), {}),
        (trajectory(llm_call_count=2), {}),
        (trajectory(is_copied_context=True), {}),
        (trajectory(metrics={"prompt_tokens": 5, "cached_tokens": 900}), {}),
        (without_steps(message=[{"type": "text", "text": "a"}, {"type": "image", "source": {}}]), {}),
        (without_steps(1, observation={"results": []}, source="system") | {}, {"continues": "part-1"}),
        (trajectory(), {"continues": "part-1"}),
        (trajectory(), {"role": "subagent"}),
        (without_steps(1, 2, metrics=None, tool_calls=[{"function_name": "look"}]), {}),
        (without_steps(1, 2, metrics=None, reasoning_content="I think."), {}),
    ],
    ids=[
        "no call", "no model", "several calls", "copied", "cached apart", "picture", "operation", "goes on", "subagent",
        "behind a call", "behind reasoning",
    ],
)  # fmt: skip
def test_a_count_that_may_be_of_something_else_is_left_out(document: dict[str, Any], run: dict[str, Any]) -> None:
    assert first_call(document, run) is None


def test_a_greeting_without_a_count_is_a_message_like_others() -> None:
    greeted = trajectory()
    greeted["steps"][0] = {"source": "agent", "message": "How can I help you?"}
    assert call(greeted).tokens == 100


def usage(*counts: tuple[bytes, int], beginnings: int = 9) -> Usage:
    found = Usage(beginnings)
    for number, (key, tokens) in enumerate(counts):
        found.add(FirstCall(key, "m-1", tokens), f"t{number}")
    found.add(None, "none")
    return found


def differing(found: Usage) -> list[list[tuple[int, str]]]:
    return [[(count.tokens, count.trace) for count in counts] for _, counts in found.differing()]


def test_different_counts_of_one_beginning_are_told_with_the_first_trace_of_each() -> None:
    assert differing(usage((b"k", 5), (b"k", 5), (b"l", 6))) == []
    assert differing(usage((b"k", 5), (b"l", 6), (b"k", 7), (b"k", 7))) == [[(5, "t0"), (7, "t2")]]


def test_what_two_processes_saw_is_put_together() -> None:
    one = usage((b"k", 5))
    one.merge(usage((b"l", 5), (b"k", 6)))
    assert differing(one) == [[(5, "t0"), (6, "t1")]]


def test_what_is_kept_grows_with_the_beginnings_and_not_with_the_traces() -> None:
    many = usage(*((b"k", number) for number in range(1_000)))
    assert [len(counts) for counts in differing(many)] == [3]


def test_beginnings_beyond_those_that_are_kept_are_compared_with_nothing() -> None:
    found = usage((b"k", 5), (b"l", 5), (b"l", 6), (b"k", 6), beginnings=1)
    found.merge(usage((b"l", 7), (b"l", 8)))
    assert differing(found) == [[(5, "t0"), (6, "t3")]]


def read(path: Path) -> dict[str, Any]:
    """The first run of a τ² file, as far as its first call is concerned."""
    document = json.loads(path.read_bytes())
    steps = []
    for message in document["simulations"][0]["messages"]:
        source = {"assistant": "agent"}.get(message["role"], message["role"])
        step = {"source": source, "message": message["content"] or ""}
        if source == "agent" and message["usage"]:
            step |= {"metrics": message["usage"], "model_name": message["raw_data"]["model"]}
        steps.append(step)
    return {"agent": {"name": "tau2", "version": ""}, "steps": steps}


@pytest.mark.shared_data
def test_the_prompt_that_a_tau2_file_hides_shows_in_its_first_call(shared_traces: Path) -> None:
    names = ["20260531-204930-608103", "20260531-222346-104165", "20260601-023242-818996", "20260601-033142-413096"]
    found = Usage()
    for name in names:
        found.add(call(read(shared_traces / "tau2" / f"yoheinakajima__{name}.results.json")), name)
    assert differing(found) == [[(3319, names[0]), (3374, names[1])]]
