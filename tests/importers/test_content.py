"""What of a stored trajectory harnesses are compared with: raw outputs and replies."""

from typing import Any

import pytest

from tracemark.importers.content import content_of
from tracemark.importers.content import observed as shown_of


def trajectory(*steps: dict[str, Any]) -> dict[str, Any]:
    numbered = [{"step_id": number, "message": "m", **step} for number, step in enumerate(steps, 1)]
    return {"agent": {"name": "a", "version": "1"}, "steps": numbered}


def observed(*results: dict[str, Any], calls: int = 0) -> dict[str, Any]:
    made = [{"tool_call_id": str(number), "function_name": "run", "arguments": {}} for number in range(calls)]
    return {"source": "agent", "tool_calls": made, "observation": {"results": list(results)}}


@pytest.mark.parametrize(
    ("raw", "variables"),
    [
        ("text", {"output": "text"}),
        ("", {"output": ""}),
        (0, {"output": 0}),
        (["a"], {"output": ["a"]}),
        ({"stdout": "a", "code": 0}, {"stdout": "a", "code": 0}),
        ({"output": {"output": "a"}}, {"output": {"output": "a"}}),
    ],
)
@pytest.mark.parametrize("calls", [0, 1])
def test_a_raw_output_is_read_from_the_extra_of_its_result(raw: Any, variables: dict[str, Any], calls: int) -> None:
    answers = {"source_call_id": "0"} if calls else {}
    content = content_of(
        trajectory(observed({"content": "seen", "extra": {"raw_output": raw}, **answers}, calls=calls))
    )
    assert list(content.raw_outputs) == [(1, variables, "seen")]
    assert list(content.observations) == [(1, "seen")]


@pytest.mark.parametrize(
    "result",
    [
        {"content": "seen"},
        {"content": "seen", "extra": None},
        {"content": "seen", "extra": {"other": 1}},
        {"content": "seen", "extra": {"raw_output": None}},
        {"content": None, "extra": {"raw_output": "text"}},
        {"content": [{"type": "text", "text": "seen"}], "extra": {"raw_output": "text"}},
    ],
)
def test_without_a_raw_output_and_a_text_there_is_nothing_to_render_again(result: dict[str, Any]) -> None:
    assert list(content_of(trajectory(observed(result))).raw_outputs) == []


def test_several_results_of_one_step_keep_their_order() -> None:
    results = [{"content": text, "extra": {"raw_output": text.upper()}} for text in "ab"]
    content = content_of(trajectory({"source": "user"}, observed(*results)))
    assert list(content.raw_outputs) == [(2, {"output": "A"}, "a"), (2, {"output": "B"}, "b")]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"source": "agent"}, [1]),
        ({"source": "agent", "llm_call_count": 2}, [1]),
        ({"source": "agent", "message": "", "tool_calls": [{"tool_call_id": "0", "function_name": "f"}]}, [1]),
        ({"source": "agent", "message": ""}, []),
        ({"source": "agent", "llm_call_count": 0}, []),
        ({"source": "agent", "is_copied_context": True}, []),
        ({"source": "user"}, []),
        ({"source": "system"}, []),
    ],
)
def test_a_reply_is_a_step_of_the_agents_in_which_a_model_spoke(step: dict[str, Any], expected: list[int]) -> None:
    assert list(content_of(trajectory(step)).replies) == expected


def tool(name: str, description: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": None}}


def test_a_list_with_two_definitions_of_one_tool_shows_nothing_and_the_same_one_twice_is_one() -> None:
    def shown(*tools: dict[str, Any]) -> Any:
        made = trajectory({"source": "user"})
        made["agent"]["tool_definitions"] = list(tools)
        return shown_of(content_of(made)).get("tool_bindings")

    one, other = tool("run", "Run."), tool("run", "Run a command.")
    assert shown(one, other) is shown(other, one) is None
    assert shown(one, one) == shown(one) != shown(other)
