"""Rollouts of NeMo Gym: what an agent was given and gave back, as items of the Responses API."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import Context, Imported, Limits, Refused
from tracemark.importers.nemo_gym import IMPORTER

from .conftest import Inbox, record_of, require_valid, steps_of
from .make_golden import SAMPLES

POLICY = "Lend one book to a reader at a time, never more."
SYSTEM = {"role": "system", "type": "message", "content": f"You lend books.\n<policy>{POLICY}</policy>"}
USER = {"role": "user", "type": "message", "content": "May I have b1?"}
TOOL = {"type": "function", "name": "lend", "parameters": {"type": "object"}, "strict": True}
CALL = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "lend", "arguments": '{"book": "b1"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "lent"}
USAGE = {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 9, "total_tokens": 49}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def rollout(
    *output: Any, request: dict[str, Any] | None = None, response: dict[str, Any] | None = None, **members: Any
) -> dict[str, Any]:
    asked = {"input": [SYSTEM, USER], "tools": [TOOL], "parallel_tool_calls": False, "temperature": None}
    given = {"model": "small-1", "output": list(output) or [said("Take it.")], "created_at": 1768002749}
    return {
        "responses_create_params": {**asked, **(request or {})},
        "response": {**given, **(response or {})},
        "reward": 1.0,
        **members,
    }


def read(value: Any, **limits: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.jsonl:1", context=Context(limits=Limits(**limits))))
    return item


def trace(value: Any, **limits: Any) -> Imported:
    return require_valid(read(value, **limits))


def test_input_and_output_are_one_conversation() -> None:
    item = trace(rollout(CALL, OUTPUT, said("Take it."), USER, said("Gladly.")))
    assert [step["source"] for step in steps_of(item)] == ["system", "user", "agent", "agent", "user", "agent"]
    assert steps_of(item)[2]["tool_calls"][0]["arguments"] == {"book": "b1"}
    assert steps_of(item)[2]["observation"]["results"][0]["content"] == "lent"
    assert item.trajectory["agent"] == {
        "name": "unknown",
        "version": "unknown",
        "model_name": "small-1",
        "tool_definitions": [TOOL],
    }


def test_replies_in_the_input_train_nobody() -> None:
    item = trace(rollout(request={"input": [USER, said("Which one?"), USER]}))
    assert [step.get("is_copied_context") for step in steps_of(item)] == [None, True, None, None]


def test_instructions_are_the_first_system_message() -> None:
    item = trace(rollout(request={"instructions": "Be brief.", "input": "May I?"}))
    assert [(step["source"], step["message"]) for step in steps_of(item)][:2] == [
        ("system", "Be brief."),
        ("user", "May I?"),
    ]
    assert item.source["repairs"] == ["instructions of the request: read as its first system message"]


def test_a_wrapped_agent_is_given_nothing_and_still_speaks() -> None:
    item = trace(rollout(CALL, OUTPUT, request={"input": [], "tools": []}))
    assert [step["source"] for step in steps_of(item)] == ["agent"]
    assert item.observed == {}


@pytest.mark.parametrize("output", [(said("Take it."),), (CALL, OUTPUT)])
def test_an_empty_list_of_tools_does_not_say_that_none_were_offered(output: tuple[Any, ...]) -> None:
    item = trace(rollout(*output, request={"tools": []}))
    assert "tool_bindings" not in item.observed
    assert "runtime" not in item.observed


def test_a_policy_that_the_row_holds_is_taken_out_of_the_prompt() -> None:
    other = "Lend as many books to a reader as there are."
    message = {**SYSTEM, "content": SYSTEM["content"].replace(POLICY, other)}
    one = trace(rollout(policy=POLICY)).observed["prompt_templates"]
    two = trace(rollout(request={"input": [message, USER]}, policy=other)).observed["prompt_templates"]
    assert one == two
    assert one[0]["form"] == "substituted"


@pytest.mark.parametrize("policy", [None, "", "never", "A policy that stands nowhere in the message.", 3])
def test_a_policy_that_proves_nothing_leaves_the_prompt_as_it_was_sent(policy: Any) -> None:
    [shown] = trace(rollout(policy=policy)).observed["prompt_templates"]
    assert (shown["part"], shown["form"]) == ("system", "rendered")


def test_tools_are_those_of_the_request_and_equal_copies_are_dropped() -> None:
    item = trace(rollout(response={"tools": [{**TOOL, "defer_loading": None}]}, tools=[TOOL]))
    assert "tools" not in item.trajectory["extra"].get("response", {})
    assert "record" not in item.trajectory["extra"]
    odd = trace(rollout(response={"tools": [{**TOOL, "strict": False}]}))
    assert odd.trajectory["extra"]["response"]["tools"] == [{**TOOL, "strict": False}]
    assert odd.observed["tool_bindings"] == item.observed["tool_bindings"]


def test_a_copy_of_the_tools_that_says_more_is_kept() -> None:
    described = [{**TOOL, "returns": {"type": "string"}}]
    item = trace(rollout(tools=described))
    assert item.trajectory["extra"]["record"] == {"tools": described}
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]


@pytest.mark.parametrize(
    ("item", "request_", "is_rendered"),
    [
        ({}, {}, False),
        ({"encrypted_content": "gAAA"}, {}, True),
        ({"encrypted_content": None}, {"reasoning": {"effort": "low", "summary": None}}, False),
        ({}, {"reasoning": {"summary": "auto"}}, True),
        ({"content": [{"type": "reasoning_text", "text": "Long."}]}, {"reasoning": {"summary": "auto"}}, False),
    ],
)
def test_a_summary_that_was_asked_for_is_no_reasoning_of_the_model(
    item: dict[str, Any], request_: dict[str, Any], is_rendered: bool
) -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Short."}], **item}
    found = trace(rollout(thought, said("Take it."), request=request_))
    assert found.run.get("rendered", False) is is_rendered
    assert steps_of(found)[2]["reasoning_content"] == ("Long." if "content" in item else "Short.")


def test_calls_at_once_are_a_setting_of_the_runtime() -> None:
    values = [trace(rollout(request={"parallel_tool_calls": value})).observed["runtime"] for value in (True, False)]
    assert [entry["part"] for [entry] in values] == ["parallel_tool_calls"] * 2
    assert values[0] != values[1]


def test_the_usage_of_one_reply_is_its_own_and_that_of_several_is_of_nobody() -> None:
    one = trace(rollout(response={"usage": USAGE}))
    assert steps_of(one)[-1]["metrics"]["prompt_tokens"] == 40
    assert steps_of(one)[-1]["timestamp"] == "2026-01-09T23:52:29+00:00"
    several = trace(rollout(CALL, OUTPUT, said("Take it."), response={"usage": USAGE}))
    assert not any("metrics" in step for step in steps_of(several))
    assert several.trajectory["extra"]["response"]["usage"] == USAGE


def test_task_and_rollout_are_the_key_of_a_run() -> None:
    item = trace(rollout(_ng_task_index=4, _ng_rollout_index=2, metadata={"dataset_name": "lending"}))
    assert item.run == {
        "task": "4",
        "attempt": 2,
        "domain": "lending",
        "model": {"name": "small-1"},
        "sampling": {"parallel_tool_calls": False},
    }
    assert item.trajectory["session_id"] == "task-4-rollout-2"
    assert trace(rollout(id="lend-1", _ng_task_index=4)).run["task"] == "lend-1"
    named = trace(rollout(request={"metadata": {"instance_id": "b-2", "split": "test"}}, uuid="x"))
    assert (named.run["task"], named.run["split"]) == ("b-2", "test")


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"reward": 0}, {"status": "failure", "reward": 0, "rule": "reward"}),
        ({"reward": 2.5}, {"status": "unknown", "reward": 2.5}),
        ({"reward": None}, {"status": "unknown"}),
        ({"mask_sample": True}, {"status": "error", "reward": 1.0, "rule": "mask_sample"}),
        (
            {"instance_config": {"mask_sample": True}, "reward": 0},
            {"status": "error", "reward": 0, "rule": "mask_sample"},
        ),
        (
            {"_ng_failure_class": "judge_failed", "reward": 0.0, "terminal_state": "complete"},
            {"status": "error", "reward": 0.0, "rule": "_ng_failure_class", "termination": "judge_failed"},
        ),
        (
            {"error_kind": "sandbox"},
            {"status": "error", "reward": 1.0, "rule": "error_kind", "termination": "sandbox"},
        ),
        (
            {"terminal_state": "complete"},
            {"status": "success", "reward": 1.0, "rule": "reward", "termination": "complete"},
        ),
        ({"response": {"error": {"code": 500}}}, {"status": "error", "reward": 1.0, "rule": "response.error"}),
        (
            {"response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            {"status": "success", "reward": 1.0, "rule": "reward", "termination": "max_output_tokens"},
        ),
    ],
)
def test_the_reward_counts_unless_the_rollout_failed(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    item = trace(rollout(**members))
    assert item.outcome == outcome
    assert [finding.code for finding in item.findings] == (["verdict-unread"] if members.get("reward") == 2.5 else [])


def test_what_has_no_place_is_kept() -> None:
    item = trace(
        rollout(expected_action={"type": "message"}, reward="x", more=None, request={"store": False, "user": None})
    )
    assert item.trajectory["extra"] == {
        "request": {"store": False},
        "response": {"created_at": 1768002749},
        "record": {"expected_action": {"type": "message"}, "reward": "x", "more": None},
    }


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ({"responses_create_params": {}}, "record-unfit", "a task, and no rollout"),
        ({"responses_create_params": [], "response": {}}, "record-unfit", "this is none"),
        (rollout({"type": "computer_call"}), "record-unfit", "response/output/0"),
        (rollout(request={"input": {"a": 1}}), "record-unfit", "input is no list"),
        (rollout({"type": "message", "role": "critic"}), "unknown-role", "critic"),
    ],
)
def test_a_row_of_another_shape_is_refused(value: Any, code: str, words: str) -> None:
    refused = read(value)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert words in refused.message


def test_a_rollout_without_items_is_stored() -> None:
    [step] = steps_of(trace(rollout(request={"input": []}, response={"output": []})))
    assert step["extra"] == {"event_type": "no-messages"}


ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "x", 0, -1, 1.5, 2**70, True, [], {}, [7], [{}], {"role": 1}])


@given(st.data())
def test_any_damage_gives_a_valid_trace_or_a_refusal(data: st.DataObject) -> None:
    lines = (SAMPLES / "nemo-gym" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
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


@pytest.mark.shared_data
def test_the_shared_files(shared_traces: Path) -> None:
    found = Inbox(shared_traces / "nemo_gym").read()
    assert found.refused == []
    assert len(found.traces) == 20
    assert {item.source["importer"] for item in found.traces} == {"nemo-gym"}
    assert Counter(item.outcome["status"] for item in found.traces) == {"success": 8, "failure": 10, "error": 2}


def test_where_one_row_goes_beyond_full_reward_no_row_of_the_file_is_a_success_by_it(inbox: Inbox) -> None:
    rows = [json.dumps(rollout(reward=reward)) for reward in (1.0, 0.5, 4.0)]
    inbox.write("a.jsonl", "\n".join(rows))
    inbox.write("b.jsonl", "\n".join(rows[:2]))
    found = inbox.read()
    assert [item.outcome["status"] for item in found.traces] == ["unknown", "failure", "unknown", "success", "failure"]
    assert [item.outcome["reward"] for item in found.traces] == [1.0, 0.5, 4.0, 1.0, 0.5]
    assert [one.code for one in found.traces[0].findings] == ["verdict-unread"]


@pytest.mark.parametrize("empty", [None, "", False, [], {}])
def test_an_empty_error_is_none(empty: Any) -> None:
    item = trace(rollout(response={"error": empty}, error_kind=empty))
    assert item.outcome["status"] == "success"
