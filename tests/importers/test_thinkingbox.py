"""Attempts of ThinkingBox: messages of several kinds, and the test of the final state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.exporters import rewritten
from tracemark.importers.base import Context, Imported, Limits, Refused
from tracemark.importers.head import Head
from tracemark.importers.thinkingbox import IMPORTER

from .conftest import Inbox, record_of, require_valid, steps_of
from .make_golden import SAMPLES

TOOL = {"name": "find", "description": "Find.", "input_schema": {"type": "object"}, "is_end_turn": False}
SESSION = "5f0c0000-0000-4000-8000-000000000001"


def text(role: str, content: str, **metadata: Any) -> dict[str, Any]:
    return {"T": "Text", "role": role, "content": content, "metadata": metadata}


def call(name: str = "k1", **members: Any) -> dict[str, Any]:
    return {"T": "ToolCall", "name": "find", "arguments": {"id": "o1"}, "id": name, "metadata": {}, **members}


def at_once(*calls: Any) -> dict[str, Any]:
    return {"T": "ParallelToolCall", "tool_calls": list(calls), "metadata": {}}


def response(name: str = "k1", content: str = "here", **members: Any) -> dict[str, Any]:
    return {"T": "ToolResponse", "name": "find", "content": content, "id": name, "metadata": {}, **members}


USER = text("user", "Where is o1?")


def attempt(*messages: Any, **members: Any) -> dict[str, Any]:
    return {
        "uid": "orders-1",
        "messages": list(messages) or [USER, text("assistant", "Here.")],
        "test_result": {"result": True, "reward": 1.0, "is_system_error": False},
        "metadata": {"repetition": 2},
        "is_system_error": False,
        "finish_reason": "done",
        **members,
    }


def read(value: Any, **limits: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.jsonl:1", context=Context(limits=Limits(**limits))))
    return item


def trace(value: Any, **limits: Any) -> Imported:
    return require_valid(read(value, **limits))


# messages


def test_reasoning_text_and_calls_of_one_reply_are_one_step() -> None:
    thought, said = text("assistant", "Both.", tag="think"), text("assistant", "One moment.", tag="text")
    item = trace(attempt(USER, thought, said, at_once(call("k1"), call("k2")), response("k1"), response("k2")))
    [_, step] = steps_of(item)
    assert (step["reasoning_content"], step["message"]) == ("Both.", "One moment.")
    assert [one["tool_call_id"] for one in step["tool_calls"]] == ["k1", "k2"]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["k1", "k2"]
    assert "extra" not in step


def test_what_stands_behind_a_response_is_another_reply() -> None:
    item = trace(attempt(USER, call("k1"), response("k1"), call("k2"), response("k2"), text("assistant", "Here.")))
    assert [step["source"] for step in steps_of(item)] == ["user", "agent", "agent", "agent"]


def test_two_texts_are_two_replies() -> None:
    item = trace(attempt(USER, text("assistant", "One."), text("assistant", "Two.")))
    assert [step["message"] for step in steps_of(item)] == ["Where is o1?", "One.", "Two."]


def test_reasoning_behind_a_text_belongs_to_what_follows() -> None:
    item = trace(attempt(USER, text("assistant", "One."), text("assistant", "Hm.", tag="think"), call(), response()))
    assert [step.get("reasoning_content") for step in steps_of(item)] == [None, None, "Hm."]


def test_reasoning_alone_is_a_reply_without_a_text() -> None:
    item = trace(attempt(USER, text("assistant", "Hm.", tag="think"), text("assistant", "", is_dummy=True)))
    [_, step] = steps_of(item)
    assert (step["reasoning_content"], step["message"]) == ("Hm.", "")
    assert step["extra"] == {"metadata": {"is_dummy": True}}
    assert steps_of(trace(attempt(USER, text("assistant", "Hm.", tag="think"))))[1]["message"] == ""


def test_no_member_of_a_message_is_lost() -> None:
    think = {**text("assistant", "Hm.", tag="think"), "mood": "calm"}
    said = {**text("assistant", "Here."), "reasoning_content": "Aha."}
    calls = {"T": "ParallelToolCall", "tool_calls": [call()], "metadata": {"ms": 3}, "mode": "fast"}
    step = steps_of(trace(attempt(USER, think, said, calls)))[1]
    assert step["reasoning_content"] == "Hm."
    assert step["extra"]["reasoning_metadata"] == [{"mood": "calm"}]
    assert step["extra"]["original_reasoning_content"] == "Aha."
    assert step["extra"]["calls_metadata"] == [{"mode": "fast", "ms": 3}]


def test_an_answer_that_the_program_made_trains_nobody() -> None:
    item = trace(attempt(USER, call(), response(), text("assistant", "Your order is here.", tag="direct")))
    made = steps_of(item)[2]
    assert (made["is_copied_context"], made["llm_call_count"]) == (True, 0)
    assert made["extra"] == {"metadata": {"tag": "direct"}}


def test_a_call_that_was_not_understood_is_marked() -> None:
    item = trace(attempt(USER, call(arguments={}, metadata={"error": "no JSON"}), response()))
    [made] = steps_of(item)[1]["tool_calls"]
    assert made["extra"] == {"metadata": {"error": "no JSON"}, "original_call": "no JSON"}
    assert rewritten.in_call(made)


def test_messages_are_told_apart_without_their_kind() -> None:
    bare = [{name: value for name, value in one.items() if name != "T"} for one in (USER, at_once(call()), response())]
    item = trace(attempt(*bare, {"name": "find", "arguments": {}, "id": "k9"}))
    assert [step["source"] for step in steps_of(item)] == ["user", "agent", "agent"]


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (3, "record-unfit", "messages/1 is no message"),
        ({"T": "Image", "data": ""}, "record-unfit", "the kind 'Image'"),
        ({}, "record-unfit", "the kind 'None'"),
        (at_once(3), "record-unfit", "no list of calls"),
        (text("critic", "No."), "unknown-role", "critic"),
    ],
)
def test_a_message_that_is_not_known_is_refused(message: Any, code: str, words: str) -> None:
    refused = read(attempt(USER, message))
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert words in refused.message


# attempts


def test_test_case_and_repetition_are_the_key_of_an_attempt() -> None:
    item = trace(attempt(test_tags={"domain": "orders"}, tools=[TOOL]))
    assert item.run == {"task": "orders-1", "attempt": 2, "domain": "orders"}
    assert item.trajectory["session_id"] == "orders-1-repetition-2"
    assert item.trajectory["agent"] == {"name": "thinkingbox", "version": "unknown", "tool_definitions": [TOOL]}
    [tool] = item.observed["tool_bindings"]
    assert (tool["part"], tool["form"]) == ("find", "schema")
    assert trace(attempt(test_context={"session_id": SESSION})).trajectory["session_id"] == SESSION


@pytest.mark.parametrize("tools", [None, [], "find"])
def test_tools_that_are_not_stored_are_unknown(tools: Any) -> None:
    assert "tool_bindings" not in trace(attempt(tools=tools)).observed


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, {"status": "success", "rule": "test_result.result", "reward": 1.0}),
        (
            {"test_result": {"result": False, "reward": 0.0}},
            {"status": "failure", "rule": "test_result.result", "reward": 0.0},
        ),
        ({"test_result": {"reward": 1.0}}, {"status": "success", "rule": "reward", "reward": 1.0}),
        ({"test_result": {"result": "yes", "reward": None}}, {"status": "unknown"}),
        ({"test_result": None}, {"status": "unknown"}),
        ({"is_system_error": True}, {"status": "error", "rule": "is_system_error", "reward": 1.0}),
        (
            {"test_result": {"result": False, "is_system_error": True}},
            {"status": "error", "rule": "test_result.is_system_error"},
        ),
    ],
)
def test_the_test_decides_unless_the_system_failed(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    item = trace(attempt(**members))
    checks = members.get("test_result", attempt()["test_result"])
    expected = {**outcome, "termination": "done", **({} if checks is None else {"checks": checks})}
    assert item.outcome == expected
    assert item.findings == ()


def test_a_result_that_its_reward_contradicts_counts_and_is_named() -> None:
    item = trace(attempt(test_result={"result": True, "reward": 0.5}))
    assert item.outcome["status"] == "success"
    assert [finding.code for finding in item.findings] == ["verdict-conflict"]


def test_each_reply_gets_what_its_call_cost() -> None:
    usage = [{"input_tokens": 30, "output_tokens": 9}, {"input_tokens": 60, "output_tokens": 2}]
    item = trace(attempt(USER, call(), response(), text("assistant", "Here."), usage=usage))
    assert [step["metrics"]["prompt_tokens"] for step in steps_of(item)[1:]] == [30, 60]
    assert "record" in item.trajectory["extra"]
    assert "usage" not in item.trajectory["extra"]["record"]


def test_more_replies_than_calls_show_that_some_were_given() -> None:
    item = trace(attempt(USER, text("assistant", "One."), USER, text("assistant", "Two."), usage=[{"input_tokens": 3}]))
    assert item.run["rendered"] is True
    assert any("fewer calls" in note for note in item.source["repairs"])
    assert "rendered" not in trace(attempt(usage=[{}, {}])).run
    assert "rendered" not in trace(attempt(usage=[])).run


def test_effects_are_kept_and_repeated_messages_are_not() -> None:
    messages = [USER, text("assistant", "Here.")]
    context = {"effects": {"orders": {"o1": "seen"}}, "messages": messages}
    item = trace(attempt(*messages, test_context=context))
    assert item.trajectory["extra"]["record"]["test_context"] == {"effects": {"orders": {"o1": "seen"}}}
    other = trace(attempt(*messages, test_context={**context, "messages": [USER]}))
    assert other.trajectory["extra"]["record"]["test_context"]["messages"] == [USER]
    # a number is not the truth value that it equals
    ones, trues = ([USER, call(arguments={"n": value})] for value in (1, True))
    near = trace(attempt(*ones, test_context={"messages": trues}))
    assert near.trajectory["extra"]["record"]["test_context"]["messages"] == trues


def test_an_attempt_that_was_skipped_is_stored() -> None:
    [step] = steps_of(trace({**attempt(), "messages": [], "finish_reason": "skipped"}))
    assert step["extra"] == {"event_type": "no-messages"}


ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "x", 0, -1, 1.5, 2**70, True, [], {}, [7], [{}], {"role": 1}])


@given(st.data())
def test_any_damage_gives_a_valid_trace_or_a_refusal(data: st.DataObject) -> None:
    lines = (SAMPLES / "thinkingbox" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    value = json.loads(data.draw(st.sampled_from(lines)))
    owner: Any = value
    key = data.draw(st.sampled_from(sorted(owner)))
    while isinstance(owner[key], (dict, list)) and owner[key] and data.draw(st.integers(0, 3)):
        owner = owner[key]
        key = data.draw(st.sampled_from(sorted(owner) if isinstance(owner, dict) else range(len(owner))))
    owner[key] = data.draw(ODD)
    item = read(value)
    if isinstance(item, Imported):
        require_valid(item)
    else:
        assert item.code != "importer-failed", item.message


def test_where_one_attempt_goes_beyond_full_reward_none_of_the_file_is_a_success_by_it(inbox: Inbox) -> None:
    results: list[dict[str, Any]] = [{"reward": 1.0}, {"result": True, "reward": 1.0}, {"reward": 4.0}]
    inbox.write("a.jsonl", "\n".join(json.dumps(attempt(test_result=result)) for result in results))
    found = inbox.read()
    assert [item.outcome["status"] for item in found.traces] == ["unknown", "success", "unknown"]
    assert [one.code for one in found.traces[0].findings] == ["verdict-unread"]


@pytest.mark.parametrize("none", ["", "00000000-0000-0000-0000-000000000000", 7])
def test_what_stands_for_no_session_is_none(none: Any) -> None:
    item = trace(attempt(test_context={"session_id": none}))
    assert item.trajectory["session_id"] == "orders-1-repetition-2"


@pytest.mark.parametrize(
    ("left_out", "sure"), [((), 95), (("test_result",), 95), (("finish_reason",), 95), (("uid",), 0)]
)
def test_a_row_is_known_by_its_members(left_out: tuple[str, ...], sure: int) -> None:
    row = {name: value for name, value in attempt(note={"uid": "a"}).items() if name not in left_out}
    assert IMPORTER.recognise(Head(json.dumps(row).encode(), complete=True)) == sure


def test_a_row_that_says_neither_how_it_ended_nor_what_came_of_it_is_none_of_ours() -> None:
    row = {name: value for name, value in attempt().items() if name not in ("test_result", "finish_reason")}
    assert IMPORTER.recognise(Head(json.dumps(row).encode(), complete=True)) == 0


def test_usage_that_is_no_list_of_reports_stays_in_the_row() -> None:
    item = trace(attempt(usage=[3]))
    assert item.trajectory["extra"]["record"]["usage"] == [3]
    assert "rendered" not in item.run
