"""The messages of a τ² simulation: what the agent saw and said, and beside it what passed without it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tracemark.importers.conversation import NotMessagesError, UnknownRoleError
from tracemark.importers.finish import UnfitError
from tracemark.importers.tau2_messages import Spoken, spoken

VOICE = {"is_audio": False, "is_final_chunk": True, "contains_speech": True, "audio_path": None}
GREETING = {"role": "assistant", "content": "Hi!", "tool_calls": None, "cost": 0.0, "usage": None, "raw_data": None}


def user(content: str | None = "May I?", *calls: Any, **members: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "tool_calls": list(calls) or None, **members}


def call(id: str, name: str = "find", requestor: str = "assistant", **arguments: Any) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "name": name, "arguments": arguments, "requestor": requestor}


def tool(id: str, content: str = "free", requestor: str = "assistant", **members: Any) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "role": "tool", "content": content, "requestor": requestor, "error": False, **members}


def agent(content: str | None = "Take it.", *calls: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a message of the agent with the response that it was made of, changed by `said`."""
    asked = [
        {"id": one["id"], "function": {"name": one["name"], "arguments": json.dumps(one["arguments"])}} for one in calls
    ]
    said = {"role": "assistant", "content": content, "tool_calls": asked or None, **members.pop("said", {})}
    usage = {"prompt_tokens": 300, "completion_tokens": 9}
    response = {
        "id": "r1",
        "model": "small-1",
        "choices": [{"finish_reason": "stop", "index": 0, "message": said}],
        "usage": {**usage, "total_tokens": 309, "prompt_tokens_details": {"cached_tokens": 128}},
    }
    base = {"role": "assistant", "content": content, "tool_calls": list(calls) or None}
    return {**base, "cost": 0.5, "usage": usage, "raw_data": response, **members}


def read(*messages: Any, history: Any = ()) -> tuple[Spoken, list[str]]:
    notes: list[str] = []
    kept = copy.deepcopy(messages)
    found = spoken(messages, history, notes)
    assert messages == kept, "the messages were changed"
    return found, notes


def steps(*messages: Any, history: Any = ()) -> list[dict[str, Any]]:
    return read(*messages, history=history)[0].steps


# the agent's side


def test_the_response_is_the_witness_of_a_reply() -> None:
    [step] = steps(agent("Take it.", turn_idx=4, **VOICE))
    assert step["message"] == "Take it."
    assert step["model_name"] == "small-1"
    assert step["metrics"] == {
        "prompt_tokens": 300,
        "completion_tokens": 9,
        "cached_tokens": 128,
        "cost_usd": 0.5,
        "extra": {"usage": {"total_tokens": 309, "prompt_tokens_details": {"cached_tokens": 128}}},
    }
    assert step["extra"] == {
        "turn_idx": 4,
        "raw_data": {"id": "r1", "choices": [{"finish_reason": "stop", "index": 0}]},
    }
    assert "llm_call_count" not in step


def test_the_greeting_was_written_by_the_program() -> None:
    greeting, said = steps(GREETING, agent())
    assert (greeting["llm_call_count"], greeting["extra"]) == (0, {"cost": 0.0})
    assert "metrics" not in greeting
    assert said["metrics"]["prompt_tokens"] == 300


def test_a_first_message_that_a_model_wrote_is_no_greeting() -> None:
    assert "llm_call_count" not in steps(agent(None, call("c1")), tool("c1"))[0]


def test_without_any_witness_only_the_greeting_is_known_to_be_no_model() -> None:
    made = steps(GREETING, user(), {"role": "assistant", "content": "Take it."})
    assert [step.get("llm_call_count") for step in made] == [0, None, None]


def test_a_message_without_a_witness_beside_others_with_one_is_no_model() -> None:
    made = steps(agent(), user(), {"role": "assistant", "content": "Bye.", "reasoning_content": "why"})
    assert [step.get("llm_call_count") for step in made] == [None, None, 0]
    assert made[2]["extra"] == {"reasoning_content": "why"}


def test_arguments_are_the_text_that_the_model_wrote() -> None:
    [step] = steps(agent(None, call("c1", book="b1")), tool("c1", turn_idx=3))
    assert step["tool_calls"] == [
        {
            "tool_call_id": "c1",
            "function_name": "find",
            "arguments": {"book": "b1"},
            "extra": {"arguments": '{"book": "b1"}'},
        }
    ]
    assert step["observation"]["results"] == [
        {"source_call_id": "c1", "content": "free", "extra": {"error": False, "turn_idx": 3}}
    ]


def test_reasoning_is_taken_from_the_response_and_signed_blocks_stay_in_it() -> None:
    blocks = [{"type": "thinking", "signature": "s"}]
    [step] = steps(agent(said={"reasoning_content": "why", "thinking_blocks": blocks}))
    assert step["reasoning_content"] == "why"
    assert step["extra"]["raw_data"]["choices"][0]["message"] == {"thinking_blocks": blocks}


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"content": "Something else."}, "content"),
        ({"tool_calls": []}, None),
        ({"tool_calls": [{"id": "c9", "function": {"name": "find", "arguments": "{}"}}]}, "tool_calls"),
    ],
)
def test_a_message_that_is_not_what_the_response_says_is_no_text_of_the_model(said: Any, kept: str | None) -> None:
    found, notes = read(agent("", call("c1"), said=said), tool("c1"))
    assert found.rendered
    assert "not what the provider's response says" in notes[0]
    choice = found.steps[0]["extra"]["raw_data"]["choices"][0]
    assert kept is None or choice["message"][kept] == said[kept]


@pytest.mark.parametrize("other", [{}, {"content": "Something else."}])
def test_other_arguments_than_the_response_has_are_the_message_s(other: dict[str, Any]) -> None:
    asked = [{"id": "c1", "function": {"name": "find", "arguments": '{"book":"b2"}'}}]
    found, _ = read(agent(None, call("c1", book="b1"), said={"tool_calls": asked, **other}))
    assert found.rendered
    [made] = found.steps[0]["tool_calls"]
    assert (made["arguments"], made["extra"]) == ({"book": "b1"}, {"response_arguments": '{"book":"b2"}'})
    assert found.rendered


@pytest.mark.parametrize("raw", [{}, {"choices": []}, {"choices": [7]}, {"choices": [{"message": "x"}]}, [], "x"])
def test_a_response_of_another_shape_proves_nothing(raw: Any) -> None:
    found, _ = read(agent(raw_data=raw))
    assert not found.rendered
    assert found.steps[0]["metrics"]["prompt_tokens"] == 300
    assert raw in ({}, found.steps[0].get("extra", {}).get("raw_data", {}))


def test_a_usage_that_differs_from_the_response_s_counts_and_both_are_kept() -> None:
    [step] = steps(agent(usage={"prompt_tokens": 7, "completion_tokens": 9}))
    assert step["metrics"]["prompt_tokens"] == 7
    assert step["extra"]["raw_data"]["usage"]["prompt_tokens"] == 300


def test_calls_with_more_than_calls_have_stay_in_the_response() -> None:
    more = {"id": "c1", "function": {"name": "find", "arguments": "{}"}, "provider_specific_fields": {"sign": "s"}}
    found, _ = read(agent(None, call("c1"), said={"tool_calls": [more]}))
    assert not found.rendered
    assert found.steps[0]["extra"]["raw_data"]["choices"][0]["message"]["tool_calls"] == [more]


@pytest.mark.parametrize("odd", [0, False, "", {}])
def test_calls_of_a_response_that_are_no_list_stay_in_it(odd: Any) -> None:
    message = agent()
    message["raw_data"]["choices"][0]["message"]["tool_calls"] = odd
    found, _ = read(message)
    assert found.steps[0]["extra"]["raw_data"]["choices"][0]["message"] == {"tool_calls": odd}


def test_several_answers_in_one_message_are_answers() -> None:
    both = {"role": "tool", "tool_messages": [tool("c1", "one"), tool("c2", "two", error=True)], "turn_idx": 3}
    found, notes = read(agent(None, call("c1"), call("c2")), both)
    [step] = found.steps
    results = [(result["source_call_id"], result["content"]) for result in step["observation"]["results"]]
    assert results == [("c1", "one"), ("c2", "two")]
    assert step["observation"]["results"][1]["extra"]["error"] is True
    assert step["extra"]["tool_messages"] == {"turn_idx": 3}
    assert notes == []


# the user's side


def test_what_the_user_called_stands_beside_the_text_that_the_agent_saw() -> None:
    asked = user(None, call("u1", "look", "user"), turn_idx=1, **VOICE)
    seen = tool("u1", "b1", "user")
    found, notes = read(GREETING, asked, seen, user("It is there."), agent())
    assert [(step["source"], step["message"]) for step in found.steps] == [
        ("agent", "Hi!"),
        ("user", "It is there."),
        ("agent", "Take it."),
    ]
    assert found.steps[1]["extra"] == {
        "user_tool_calls": [call("u1", "look", "user")],
        "user_messages": [{"content": None, "turn_idx": 1}],
        "user_tool_results": [{"id": "u1", "content": "b1", "requestor": "user", "error": False}],
    }
    assert all("tool_calls" not in step for step in found.steps)
    assert notes == []


def test_calls_of_the_user_that_no_text_followed_are_kept_and_named() -> None:
    found, notes = read(agent(), user(None, call("u1", "look", "user")), tool("u1", "b1", "user"))
    last = found.steps[-1]
    assert (last["source"], last["message"]) == ("user", "")
    assert set(last["extra"]) == {"user_tool_calls", "user_messages", "user_tool_results"}
    assert "tool calls of the user's side without a message" in notes[0]


def test_the_response_behind_a_user_s_text_is_the_simulator_s_and_costs_the_agent_nothing() -> None:
    made = agent("May I?")
    [step] = steps({**made, "role": "user"})
    assert "metrics" not in step
    assert (step["extra"]["cost"], step["extra"]["raw_data"]["model"]) == (0.5, "small-1")


# what a task begins with

HISTORY = [user("Note b2."), {"role": "assistant", "content": "Noted.", "timestamp": "2026-01-01T00:00:00"}]


def test_the_conversation_that_a_task_begins_with_is_copied_and_no_model_spoke_in_it() -> None:
    later = [{**message, "timestamp": "2026-02-02T00:00:00", "turn_idx": 9} for message in HISTORY]
    made = steps(*later, user("And b1?"), agent(), history=HISTORY)
    assert [step.get("is_copied_context") for step in made] == [True, True, None, None]
    assert [step.get("llm_call_count") for step in made] == [None, 0, None, None]


def test_another_beginning_is_not_copied() -> None:
    made = steps(user("Something else."), agent(), history=HISTORY)
    assert all("is_copied_context" not in step for step in made)


def test_turns_are_replies_and_rounds_of_answers_of_this_run() -> None:
    called = agent(None, call("c1"), call("c2"))
    found, _ = read(*HISTORY, user(), called, tool("c1"), tool("c2"), agent(), history=HISTORY)
    assert found.turns == 4


# what is refused


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (7, NotMessagesError),
        ({"role": "tool", "tool_messages": [7]}, NotMessagesError),
        ({"role": "referee", "content": "x"}, UnknownRoleError),
        ({"content": "x"}, UnknownRoleError),
        ({"role": "user", "content": "UklGRg==", "is_audio": True}, UnfitError),
    ],
)
def test_what_is_no_message_of_text_is_refused(message: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="messages/1"):
        read(user(), message)


def test_answers_without_calls_are_kept_unlinked() -> None:
    found, notes = read(tool("c9"), agent(), tool("c8"))
    results = [step["observation"]["results"][0]["extra"]["original_call_id"] for step in found.steps]
    assert results == ["c9", "c8"]
    assert any("left unlinked" in note for note in notes)
