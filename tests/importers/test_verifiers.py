"""Rollouts of verifiers: rows of the first generation, and graphs of the second."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers import verifiers_graph
from tracemark.importers.base import Context as Around
from tracemark.importers.base import Imported, Limits, Refused
from tracemark.importers.verifiers import IMPORTER

from .conftest import Inbox, record_of, require_valid, steps_of
from .make_golden import SAMPLES

SYSTEM = {"role": "system", "content": "Answer questions about a library."}
USER = {"role": "user", "content": "How many books are on A?"}
SAID = {"role": "assistant", "content": "Twelve."}
PARAMETERS = {"type": "object", "properties": {"shelf": {"type": "string"}}, "required": ["shelf"]}
TOOL = {"name": "count", "description": "Count books.", "parameters": PARAMETERS}
METADATA = {"env_id": "library", "model": "small-1", "num_examples": 1, "rollouts_per_example": 1}


def row(*completion: Any, **members: Any) -> dict[str, Any]:
    return {
        "example_id": 3,
        "prompt": [SYSTEM, USER],
        "completion": list(completion) or [SAID],
        "task": "default",
        "info": {},
        "reward": 1.0,
        **members,
    }


def node(parent: int | None, message: Any, sampled: bool = False, **members: Any) -> dict[str, Any]:
    return {"parent": parent, "message": message, "sampled": sampled, **members}


NODES = [node(None, SYSTEM), node(0, USER), node(1, SAID, sampled=True)]


def graph(*nodes: Any, **members: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "id": "t1",
        "verifiers": {"version": "1.0.0", "commit": "abc"},
        "task": {"type": "Library", "key": "shelf-a", "data": {"idx": 0}},
        "agent": {"config": {"harness": {"id": "desk"}, "model": "small-1"}},
        "nodes": list(nodes) or NODES,
        "calls": [],
        "rewards": {"right": {"score": 1.0, "weight": 1.0}},
        "ok": True,
        **members,
    }


def episode(*traces: Any, **members: Any) -> dict[str, Any]:
    return {"id": "e1", "env": {"id": "library"}, "ok": True, "traces": list(traces), **members}


def read(value: Any, **limits: Any) -> list[Imported | Refused]:
    return list(IMPORTER.read(record_of(value, "a.jsonl:1", context=Around(limits=Limits(**limits)))))


def traces(value: Any, **limits: Any) -> list[Imported]:
    return [require_valid(item) for item in read(value, **limits)]


def trace(value: Any, **limits: Any) -> Imported:
    [item] = traces(value, **limits)
    return item


def refusal(value: Any) -> Refused:
    [item] = read(value)
    assert isinstance(item, Refused)
    return item


def codes(item: Imported) -> list[str]:
    return [finding.code for finding in item.findings]


def schemas(item: Imported) -> list[str]:
    return [entry["digest"] for entry in item.observed.get("tool_bindings", [])]


# rows


def test_prompt_and_completion_are_one_conversation() -> None:
    item = trace(row())
    assert [step["source"] for step in steps_of(item)] == ["system", "user", "agent"]
    assert item.run["task"] == "3"
    [shown] = item.observed["prompt_templates"]
    assert (shown["part"], shown["form"]) == ("system", "rendered")


def test_what_a_simulated_user_says_stands_between_the_replies() -> None:
    item = trace(row(SAID, {"role": "user", "content": "Too high."}, SAID))
    assert [step["source"] for step in steps_of(item)] == ["system", "user", "agent", "user", "agent"]
    assert not any("is_copied_context" in step for step in steps_of(item))


def test_calls_written_as_texts_are_read_and_answers_without_an_id_are_linked_in_order() -> None:
    calls = [
        json.dumps({"id": f"c{n}", "type": "function", "function": {"name": "count", "arguments": '{"shelf": "A"}'}})
        for n in (1, 2)
    ]
    answers = [{"role": "tool", "content": text, "tool_calls": None} for text in ("12", "7")]
    item = trace(row({"role": "assistant", "content": "", "tool_calls": calls}, *answers, SAID))
    step = steps_of(item)[2]
    assert [call["arguments"] for call in step["tool_calls"]] == [{"shelf": "A"}] * 2
    linked = [(result["source_call_id"], result["content"]) for result in step["observation"]["results"]]
    assert linked == [("c1", "12"), ("c2", "7")]
    assert all(result["extra"]["link"] == "positional" for result in step["observation"]["results"])
    assert set(item.source["repairs"]) == {
        "tool calls written as JSON text: read",
        "answers without an id: linked in order",
    }


def test_what_the_assistant_said_in_the_prompt_trains_nobody() -> None:
    item = trace(row(prompt=[SYSTEM, USER, SAID, USER]))
    supplied, own = (step for step in steps_of(item) if step["source"] == "agent")
    assert (supplied["is_copied_context"], supplied["llm_call_count"]) == (True, 0)
    assert "is_copied_context" not in own
    assert len(item.content.messages) == 4


def test_a_padded_schema_is_the_same_as_the_clean_one() -> None:
    padded = {
        "type": "function",
        "function": {
            **TOOL,
            "parameters": {
                **PARAMETERS,
                "title": None,
                "properties": {"shelf": {"type": "string", "enum": None}, "author": None},
            },
        },
    }
    in_info, in_row, as_text = (
        trace(row(info={"oai_tools": [padded], "more": 1})),
        trace(row(tool_defs=[TOOL])),
        trace(row(info=json.dumps({"oai_tools": json.dumps([TOOL])}))),
    )
    assert len(schemas(in_info)) == 1
    assert schemas(in_info) == schemas(in_row) == schemas(as_text)
    assert in_info.trajectory["agent"]["tool_definitions"] == [padded]
    assert in_info.trajectory["extra"]["record"]["info"] == {"more": 1}


@pytest.mark.parametrize("info", [{}, {"oai_tools": []}, {"oai_tools": None}, None, {"oai_tools": [1]}, "words"])
def test_no_tools_in_a_row_do_not_say_that_none_were_offered(info: Any) -> None:
    item = trace(row(info=info))
    assert "tool_bindings" not in item.observed
    assert item.trajectory["extra"]["record"]["info"] == info


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"reward": 0.9}, {"status": "failure", "reward": 0.9, "rule": "reward"}),
        ({"reward": None}, {"status": "unknown"}),
        (
            {"reward": 0.0, "error": {"error": "ModelError"}},
            {"status": "error", "reward": 0.0, "rule": "error", "termination": "ModelError"},
        ),
        ({"error": ""}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"error": {}}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        (
            {"stop_condition": "max_turns", "turns": 2, "metrics": {"right": 1.0}, "total_ms": 3.5},
            {
                "status": "success",
                "reward": 1.0,
                "rule": "reward",
                "termination": "max_turns",
                "checks": {"turns": 2, "metrics": {"right": 1.0}},
            },
        ),
    ],
)
def test_the_reward_counts_unless_the_run_failed(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    assert trace(row(**members)).outcome == outcome


def test_a_reward_of_another_scale_gives_no_status() -> None:
    item = trace(row(reward=1.37))
    assert item.outcome == {"status": "unknown", "reward": 1.37}
    assert "verdict-unread" in codes(item)
    assert trace(row(reward=1.37), success_reward=1.37).outcome["status"] == "success"


def test_a_rollout_without_a_reply_is_stored_and_has_nothing_to_train_on() -> None:
    item = trace(row(completion=[]))
    assert item.outcome["status"] == "success"
    assert [step["source"] for step in steps_of(item)] == ["system", "user"]


@pytest.mark.parametrize("prompt", [None, []])
def test_a_rollout_without_messages_is_stored(prompt: Any) -> None:
    [step] = steps_of(trace(row(prompt=prompt, completion=None)))
    assert step["extra"] == {"event_type": "no-messages"}


def test_a_users_message_whose_image_was_lost_is_marked() -> None:
    item = trace(row(prompt=[{"role": "user", "content": ""}]))
    assert steps_of(item)[0]["extra"] == {"message_missing": True}
    assert "nothing in it" in item.source["repairs"][0]


def test_what_has_no_place_is_kept() -> None:
    item = trace(row(answer="12", is_truncated=True, total_ms=2.5, note=None, timing={"start_time": 1768002749.5}))
    assert item.run["start"] == "2026-01-09T23:52:29.500000+00:00"
    assert item.trajectory["extra"]["record"] == {
        "task": "default",
        "info": {},
        "answer": "12",
        "is_truncated": True,
        "total_ms": 2.5,
        "note": None,
        "timing": {"start_time": 1768002749.5},
    }


def test_tokens_are_counted_where_they_are_whole() -> None:
    usage = {"input_tokens": 40.0, "output_tokens": 9.5}
    item = trace(row(token_usage=usage))
    assert item.trajectory["final_metrics"] == {"total_prompt_tokens": 40}
    assert item.trajectory["extra"]["record"]["token_usage"] == usage


@pytest.mark.parametrize("name", ["", "library."])
def test_metadata_beside_the_results_names_environment_and_model(name: str, inbox: Inbox) -> None:
    versions = {"vf_version": "0.1", "env_version": "0.2"}
    more = {"sampling_args": {"max_tokens": None}, "version_info": versions, "env_args": {}, "date": "2026-01-31"}
    inbox.write(f"{name}results.jsonl", json.dumps(row()) + "\n" + json.dumps(row()) + "\n")
    inbox.write(f"{name}metadata.json", {**METADATA, **more, "avg_reward": 1.0})
    found = inbox.read()
    assert (len(found.traces), found.codes) == (2, [])
    assert [(finding.code, finding.where) for finding in found.plan.findings] == [
        ("file-beside", f"{name}metadata.json")
    ]
    item = found.traces[0]
    assert item.run == {
        "task": "3",
        "domain": "library",
        "model": {"name": "small-1"},
        "sampling": {"max_tokens": None},
        "environment": {"version_info": versions, "date": "2026-01-31"},
    }
    assert item.trajectory["agent"] == {"name": "library", "version": "0.2", "model_name": "small-1"}
    assert codes(item) == []


def test_older_metadata_has_other_names(inbox: Inbox) -> None:
    inbox.write("results.jsonl", json.dumps(row()) + "\n" + json.dumps(row()) + "\n")
    metadata = {"env": "library", "max_tokens": 9, "temperature": None, **METADATA}
    del metadata["env_id"]
    inbox.write("metadata.json", metadata)
    run = inbox.read().traces[0].run
    assert (run["domain"], run["sampling"]) == ("library", {"max_tokens": 9})


@pytest.mark.parametrize("metadata", [None, b"{", b"[]"])
def test_results_without_metadata_are_read_and_that_is_said(metadata: bytes | None, inbox: Inbox) -> None:
    inbox.write("results.jsonl", json.dumps(row()) + "\n" + json.dumps(row()) + "\n")
    if metadata is not None:
        inbox.write("metadata.json", metadata)
    items = inbox.read().traces
    assert [codes(item) for item in items] == [["header-missing"]] * 2
    assert items[0].trajectory["agent"] == {"name": "unknown", "version": "unknown"}


@pytest.mark.parametrize(
    ("batch", "unknown"),
    [
        ("domain: library\nmodel: m\n", "sampling settings"),
        ("model: m\n", "environment, sampling settings"),
        ("domain: library\nmodel: {name: m}\n", "sampling settings"),
        ("domain: library\nmodel: {revision: r}\n", "model, sampling settings"),
        ("note: n\n", "environment, model, sampling settings"),
    ],
)
def test_what_the_batch_says_of_results_without_metadata_is_not_missed(inbox: Inbox, batch: str, unknown: str) -> None:
    inbox.write("results.jsonl", json.dumps(row()) + "\n" + json.dumps(row()) + "\n")
    inbox.write("batch.yaml", batch)
    said = [found.message for item in inbox.read().traces for found in item.findings if found.code == "header-missing"]
    assert [message.rpartition("unknown: ")[2] for message in said] == [unknown] * 2


@pytest.mark.parametrize(
    ("members", "code", "words"),
    [
        ({"prompt": "Once upon"}, "record-unfit", "text completion"),
        ({"completion": {}}, "record-unfit", "no list"),
        ({"completion": [3]}, "record-unfit", "completion/0 is no message"),
        ({"completion": [{"role": "critic", "content": "a"}]}, "unknown-role", "critic"),
    ],
)
def test_a_row_of_another_shape_is_refused(members: dict[str, Any], code: str, words: str) -> None:
    refused = refusal(row(**members))
    assert refused.code == code
    assert words in refused.message


def test_messages_may_be_one_json_text() -> None:
    item = trace(row(prompt=json.dumps([USER]), completion=json.dumps([SAID])))
    assert [step["source"] for step in steps_of(item)] == ["user", "agent"]


def test_an_array_of_rows_is_read_row_by_row() -> None:
    assert [item.run["task"] for item in traces([row(), row(example_id="b")])] == ["3", "b"]


# graphs


def test_a_path_of_nodes_is_a_conversation() -> None:
    item = trace(episode(graph()))
    assert [step["source"] for step in steps_of(item)] == ["system", "user", "agent"]
    assert item.trajectory["session_id"] == "t1"
    assert "trajectory_id" not in item.trajectory
    assert item.trajectory["agent"] == {"name": "desk", "version": "1.0.0", "model_name": "small-1"}
    assert item.run == {
        "task": "shelf-a",
        "domain": "library",
        "model": {"name": "small-1"},
        "environment": {"verifiers_version": "1.0.0", "verifiers_commit": "abc"},
    }
    assert item.trajectory["extra"]["episode"] == {"id": "e1", "env": {"id": "library"}, "ok": True}


def test_a_line_may_be_one_trace() -> None:
    assert trace(graph()).trajectory["steps"] == trace(episode(graph())).trajectory["steps"]


def test_text_that_no_call_gave_trains_nobody_whatever_its_role() -> None:
    thought = {**SAID, "reasoning_content": "Hm."}
    item = trace(graph(node(None, USER), node(0, SAID), node(1, thought), node(2, USER), node(3, SAID, sampled=True)))
    said = [
        (step.get("is_copied_context"), step.get("llm_call_count"))
        for step in steps_of(item)
        if step["source"] == "agent"
    ]
    assert said == [(True, 0), (True, None), (None, None)]


def test_sampled_must_be_true_to_count() -> None:
    for odd in (None, 1, "true"):
        item = trace(graph(node(None, USER), {**node(0, SAID), "sampled": odd}))
        assert steps_of(item)[1]["is_copied_context"] is True


def test_replies_that_a_handler_rewrote_train_nobody() -> None:
    item = trace(graph(response_rewrites=[{"handler": "polite"}]))
    assert item.run["rendered"] is True
    assert item.trajectory["extra"]["trace"]["response_rewrites"] == [{"handler": "polite"}]
    assert any("rewrote" in repair for repair in item.source["repairs"])
    for other in ({"request_rewrites": [{"handler": "brief"}]}, {"response_rewrites": []}):
        assert "rendered" not in trace(graph(**other)).run


def test_a_judges_trace_is_no_run_of_the_agent() -> None:
    agent, judge = {"name": "solver", "trainable": True}, {"name": "judge", "trainable": False}
    solved, judged = traces(episode(graph(agent=agent), graph(agent=judge, id="t2")))
    assert ("role" in solved.run, judged.run["role"]) == (False, "subagent")
    assert trace(graph(agent=judge)).run["role"] == "subagent"
    assert "prompt_templates" not in judged.observed
    # a model that is only evaluated trains in no trace, and its run is one all the same
    assert "role" not in trace(episode(graph(agent=judge))).run


def test_each_leaf_is_a_run_of_its_own() -> None:
    other = {"role": "system", "content": "Summarise."}
    nodes = [*NODES, node(1, {**SAID, "content": "Ten."}, sampled=True), node(None, other), node(4, SAID, sampled=True)]
    found = traces(episode(graph(*nodes, tools=[TOOL])))
    assert [[step["message"] for step in steps_of(item)][-1] for item in found] == ["Twelve.", "Ten.", "Twelve."]
    assert [item.trajectory["trajectory_id"] for item in found] == ["t1#0", "t1#1", "t1#2"]
    assert {item.trajectory["session_id"] for item in found} == {"t1"}
    assert len({item.source["raw"] for item in found}) == 3
    first, second, third = (item.observed["prompt_templates"] for item in found)
    assert first == second != third


def test_of_several_replies_to_one_request_nobody_says_which_was_graded() -> None:
    again = node(1, {**SAID, "content": "Ten."}, sampled=True)
    goes_on = [node(3, USER), node(4, SAID, sampled=True)]
    for nodes, statuses in (
        ([*NODES, again], ["unknown", "unknown"]),
        # the first of two was let go of, and the run went on from the other
        ([*NODES, again, *goes_on], ["unknown", "success"]),
        # a history that was shortened is a branch too, and its reply the only one
        ([*NODES, node(0, USER), node(3, SAID, sampled=True)], ["success", "success"]),
    ):
        found = traces(graph(*nodes))
        assert [item.outcome["status"] for item in found] == statuses
        told = [[one.code for one in item.findings] for item in found]
        assert told == [["verdict-unread"] if status == "unknown" else [] for status in statuses]
        assert all(("rule" in item.outcome) == (item.outcome["status"] == "success") for item in found)
    failed = traces(graph(*NODES, again, ok=False))
    assert [item.outcome["status"] for item in failed] == ["error", "error"]


def test_of_several_branches_nobody_says_which_was_offered_the_tools() -> None:
    alone = trace(graph(tools=[TOOL]))
    assert len(schemas(alone)) == 1
    nodes = [*NODES, node(None, SYSTEM, tools=[{**TOOL, "name": "other"}]), node(3, SAID, sampled=True)]
    first, second = traces(graph(*nodes, tools=[TOOL]))
    assert "tool_bindings" not in first.observed
    assert first.trajectory["extra"]["trace"]["tools"] == [TOOL]
    assert [entry["part"] for entry in second.observed["tool_bindings"]] == ["other"]


def test_a_call_gives_its_reply_model_tokens_and_cost() -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 2, "cached_input_tokens": 4, "cost": 0.5, "reasoning_tokens": 1}
    call = {
        "node": 2,
        "model": "small-1-2026",
        "sampling": {"temperature": 0.7},
        "usage": usage,
        "finish_reason": "stop",
    }
    failed = {"error": {"type": "Timeout"}}
    reply = node(1, SAID, sampled=True, token_ids=[1, 2, 3], mask=[False, True, True], logprobs=[-0.5, -1.0])
    item = trace(graph(*NODES[:2], reply, calls=[failed, call]))
    step = steps_of(item)[2]
    assert step["model_name"] == "small-1-2026"
    assert step["metrics"] == {
        "prompt_tokens": 20,
        "completion_tokens": 2,
        "cached_tokens": 4,
        "cost_usd": 0.5,
        "extra": {"usage": {"reasoning_tokens": 1}},
        "completion_token_ids": [2, 3],
        "logprobs": [-0.5, -1.0],
    }
    assert step["extra"]["node"] == {"token_ids": [1, 2, 3], "mask": [False, True, True]}
    assert step["extra"]["call"] == {"sampling": {"temperature": 0.7}, "finish_reason": "stop"}
    assert item.run["model"] == {"name": "small-1-2026"}
    assert item.run["sampling"] == {"temperature": 0.7}
    assert item.trajectory["extra"]["calls"] == [failed]


def test_probabilities_of_another_number_than_tokens_are_kept_as_they_are() -> None:
    reply = node(1, SAID, sampled=True, token_ids=[1, 2], mask=[True, True], logprobs=[-0.5])
    step = steps_of(trace(graph(*NODES[:2], reply)))[2]
    assert step["metrics"] == {"completion_token_ids": [1, 2]}
    assert step["extra"]["node"] == {"logprobs": [-0.5]}


def test_tokens_that_are_none_are_kept_as_they_are() -> None:
    for odd in ({"logprobs": [-0.5, "x"]}, {"logprobs": [-0.5, None]}):
        step = steps_of(
            trace(graph(*NODES[:2], node(1, SAID, sampled=True, token_ids=[1, 2], mask=[True, True], **odd)))
        )[2]
        assert (step["metrics"], step["extra"]["node"]) == ({"completion_token_ids": [1, 2]}, odd)
    for odd in (
        {"token_ids": [1, 2], "mask": [True]},
        {"token_ids": [1, "2"], "mask": [True, True]},
        {"token_ids": [1], "mask": [1]},
    ):
        step = steps_of(trace(graph(*NODES[:2], node(1, SAID, sampled=True, **odd))))[2]
        assert ("metrics" in step, step["extra"]["node"]) == (False, odd)


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        (
            {"rewards": {"a": {"score": 1.0, "weight": 0.5}, "b": {"score": 1.0, "weight": 0.25}, "c": None}},
            {"status": "failure", "reward": 0.75, "rule": "reward"},
        ),
        (
            {"rewards": {name: {"score": score} for name, score in (("a", 0.7), ("b", 0.2), ("c", 0.1))}},
            {"status": "success", "reward": 1.0, "rule": "reward"},
        ),
        ({"rewards": {}}, {"status": "unknown"}),
        ({"rewards": {"a": None}}, {"status": "unknown"}),
        ({"rewards": {"a": {"score": "1"}}}, {"status": "unknown"}),
        ({"rewards": {"a": {"score": 1e308}, "b": {"score": 1e308}}}, {"status": "unknown"}),
        ({"rewards": {"a": {"score": 1e308, "weight": 10}}}, {"status": "unknown"}),
        ({"rewards": {"a": {"score": 1.0, "weight": None}}}, {"status": "unknown"}),
        ({"rewards": {"a": {"score": 1.0, "weight": "1"}}}, {"status": "unknown"}),
        (
            {"ok": False, "errors": [{"type": "E"}]},
            {"status": "error", "reward": 1.0, "rule": "errors", "termination": "E"},
        ),
        ({"ok": True, "errors": [{"type": "E"}]}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"ok": False}, {"status": "error", "reward": 1.0, "rule": "ok"}),
        ({"ok": None}, {"status": "success", "reward": 1.0, "rule": "reward"}),
    ],
)
def test_rewards_are_added_up_unless_the_run_failed(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    found = trace(graph(**members)).outcome
    found.pop("checks", None)
    assert found == outcome


def test_an_episode_that_failed_before_its_first_trace_is_stored() -> None:
    item = trace(episode(ok=False, errors=[{"type": "BootError"}], task={"key": "shelf-b"}))
    assert item.outcome == {"status": "error", "rule": "errors", "termination": "BootError"}
    assert item.run == {"task": "shelf-b", "domain": "library"}


def test_errors_of_an_episode_say_nothing_of_a_trace_that_it_holds() -> None:
    item = trace(episode(graph(), errors=[{"type": "SaveError"}]))
    assert item.outcome["status"] == "success"
    assert item.trajectory["extra"]["episode"]["errors"] == [{"type": "SaveError"}]


def test_what_stopped_a_trace_is_its_termination() -> None:
    item = trace(graph(stop_condition="max_turns"))
    assert item.outcome["termination"] == "max_turns"
    assert "stop_condition" not in item.trajectory.get("extra", {}).get("trace", {})


def test_limits_of_the_agent_are_shown_unless_the_run_went_beyond_them() -> None:
    def limited(turns: int) -> Imported:
        return trace(graph(agent={"config": {"max_turns": turns, "max_output_tokens": 9, "model": "small-1"}}))

    [tokens, turns] = limited(1).observed["runtime"]
    assert (tokens["part"], turns["part"]) == ("max_output_tokens", "max_turns")
    assert "runtime" not in limited(0).observed
    assert codes(limited(0)) == ["config-contradicted"]


def test_a_task_without_a_name_is_known_by_its_place() -> None:
    task = {"type": "Library", "key": "", "data": {"name": "", "idx": 4}}
    assert trace(graph(task=task)).run["task"] == "4"


def test_settings_beside_the_traces_are_read_with_them(inbox: Inbox) -> None:
    bare = graph(agent={})
    inbox.write("traces.jsonl", json.dumps(bare) + "\n" + json.dumps({**bare, "id": "t2"}) + "\n")
    inbox.write("config.toml", 'model = "small-2"\n[env]\nid = "library"\n[sampling]\ntop_p = 0.5\nwhen = 2026-01-31\n')
    found = inbox.read()
    assert found.codes == []
    run = found.traces[0].run
    assert (run["domain"], run["model"], run["sampling"]) == ("library", {"name": "small-2"}, {"top_p": 0.5})


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([3], "nodes/0 holds no message"),
        ([{"message": None}], "nodes/0 holds no message"),
        ([node(0, USER)], "the parent '0'"),
        ([node(None, USER), node(2, USER), node(1, USER)], "nodes/1 has the parent '2'"),
        ([node(None, USER), node(True, USER)], "the parent 'True'"),
        ({}, "no list of nodes"),
    ],
)
def test_what_is_no_graph_is_refused(nodes: Any, words: str) -> None:
    refused = refusal({**graph(), "nodes": nodes})
    assert refused.code == "record-unfit"
    assert words in refused.message


def test_a_newer_version_is_refused() -> None:
    refused = refusal(episode(graph(), graph(version=2)))
    assert refused.code == "newer-format"
    assert "version 2" in refused.message


def test_a_star_of_long_branches_is_refused_before_it_is_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifiers_graph, "MESSAGES", 100)
    path = [node(None, USER), *(node(index, USER) for index in range(20))]
    assert len(traces(graph(*path, node(20, SAID, sampled=True)))) == 1
    refused = refusal(graph(*path, *(node(20, SAID) for _ in range(10))))
    assert "220 messages together" in refused.message


def test_a_long_path_is_read() -> None:
    nodes = [node(index - 1 if index else None, USER) for index in range(5_000)]
    assert len(steps_of(trace(graph(*nodes)))) == 5_000


# recognition


def test_other_rows_with_a_prompt_are_none_of_ours(inbox: Inbox) -> None:
    inbox.write(
        "a.jsonl", json.dumps({"prompt": [USER], "completion": [SAID]}) + "\n" + json.dumps({"prompt": []}) + "\n"
    )
    assert inbox.read().codes == ["format-unknown"]


def test_resolved_settings_hold_no_trace(inbox: Inbox) -> None:
    inbox.write("eval.json", {"env": {"id": "library"}, "model": "small-1", "sampling": {}, "num_rollouts": 3})
    found = inbox.read()
    assert [finding.code for finding in found.plan.findings] == ["file-beside"]
    assert found.refused == []


ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "x", 0, -1, 1.5, 2**70, True, [], {}, [7], [{}], {"role": 1}])


@given(st.data())
def test_any_damage_gives_valid_traces_or_refusals(data: st.DataObject) -> None:
    files = [SAMPLES / "verifiers" / name for name in ("rows/library.results.jsonl", "graph/traces.jsonl")]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    value = json.loads(data.draw(st.sampled_from(lines)))
    owner: Any = value
    key = data.draw(st.sampled_from(sorted(owner)))
    while isinstance(owner[key], (dict, list)) and owner[key] and data.draw(st.integers(0, 3)):
        owner = owner[key]
        key = data.draw(st.sampled_from(sorted(owner) if isinstance(owner, dict) else range(len(owner))))
    owner[key] = data.draw(ODD)
    for item in read(value):
        if isinstance(item, Imported):
            require_valid(item)
        else:
            assert item.code != "importer-failed", item.message


@pytest.mark.shared_data
def test_the_shared_files(shared_traces: Path) -> None:
    found = Inbox(shared_traces / "verifiers").read()
    assert found.refused == []
    assert len(found.traces) == 96
    assert {item.source["importer"] for item in found.traces} == {"verifiers"}
    assert Counter(item.outcome["status"] for item in found.traces) == {
        "success": 46,
        "failure": 14,
        "unknown": 36,
    }
    beside = [finding for finding in found.plan.findings if finding.code == "file-beside"]
    assert len(beside) == 13
    assert sum("model" in item.run for item in found.traces) == 63


def test_where_one_row_goes_beyond_full_reward_no_row_of_the_file_is_a_success_by_it(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    rows = [json.dumps(row(reward=reward)) for reward in (1.0, 0.5, 1.3)]
    inbox.write("a/results.jsonl", "\n".join(rows))
    inbox.write("b/results.jsonl", "\n".join(rows[:2]))
    found = inbox.read()
    assert [item.outcome["status"] for item in found.traces] == ["unknown", "failure", "unknown", "success", "failure"]
    assert [item.outcome.get("reward") for item in found.traces] == [1.0, 0.5, 1.3, 1.0, 0.5]
    assert "verdict-unread" in [one.code for one in found.traces[0].findings]


def test_rows_of_a_packed_file_are_judged_like_those_of_a_plain_one(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    rows = "\n".join(json.dumps(row(reward=reward)) for reward in (1.0, True, 1.3))
    inbox.write("a/results.jsonl", rows)
    inbox.write("b/results.jsonl.gz", gzip.compress(rows.encode()))
    found = inbox.read()
    assert found.refused == []
    assert [item.outcome["status"] for item in found.traces] == ["unknown"] * 6
    assert [item.outcome.get("reward") for item in found.traces] == [1.0, None, 1.3] * 2


def test_a_reward_that_is_no_number_is_kept_where_it_stood() -> None:
    item = trace(row(reward="0.5"))
    assert item.outcome["status"] == "unknown"
    assert item.trajectory["extra"]["record"]["reward"] == "0.5"
    assert "verdict-unread" in [found.code for found in item.findings]
