"""Runs of mini-swe-agent in both versions, as a bare list, and with turns of the Responses API."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.detect import detect
from tracemark.importers.head import Head
from tracemark.importers.mini_swe_agent import IMPORTER

from .conftest import record_of, require_valid
from .make_golden import SAMPLES

HERE = SAMPLES / "mini-swe-agent"


def sample(name: str) -> Any:
    return json.loads((HERE / f"{name}.traj.json").read_text(encoding="utf-8"))


def read(value: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.traj.json"))
    return item


def trace(value: Any) -> Imported:
    return require_valid(read(value))


def steps(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace(value).trajectory["steps"]
    return found


def changed(name: str, change: Callable[[Any], object]) -> Any:
    value = sample(name)
    change(value)
    return value


def forms(item: Imported) -> dict[str, dict[str, str]]:
    return {name: {entry["part"]: entry["form"] for entry in entries} for name, entries in item.observed.items()}


def digests(item: Imported, component: str) -> dict[str, str]:
    return {entry["part"]: entry["digest"] for entry in item.observed.get(component, [])}


# conversation


def test_a_run_of_version_2_is_its_messages_with_every_answer_linked() -> None:
    made = steps(sample("calls"))
    assert [step["source"] for step in made] == ["system", "user", "agent", "agent", "agent"]
    assert [step["tool_calls"][0]["arguments"] for step in made[2:]] == [
        {"command": "cat p.py"},
        {"command": "sleep 99"},
        {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
    ]
    assert [step["observation"]["results"][0]["source_call_id"] for step in made[2:4]] == ["call_1", "call_2"]
    assert "observation" not in made[4]


def test_what_a_command_gave_stands_under_the_names_of_the_template() -> None:
    [result] = steps(sample("calls"))[3]["observation"]["results"]
    assert result["extra"] == {
        "raw_output": {"output": {"output": "", "returncode": -1, "exception_info": "timed out after 30 seconds"}},
        "timestamp": 1760000032.0,
    }


def test_what_a_call_cost_and_who_replied_is_said_of_the_step() -> None:
    step = steps(sample("calls"))[2]
    assert step["model_name"] == "model-1-0601"
    assert step["metrics"] == {
        "prompt_tokens": 201,
        "completion_tokens": 9,
        "cached_tokens": 128,
        "cost_usd": 0.001,
        "extra": {"usage": {"total_tokens": 210, "prompt_tokens_details": {"cached_tokens": 128}}},
    }
    assert step["timestamp"] == "2025-10-09T08:53:20.500000+00:00"
    assert step["extra"]["timestamp"] == 1760000000.5


def test_of_a_response_is_kept_what_the_step_does_not_say() -> None:
    step = steps(sample("calls"))[2]
    assert step["extra"]["response"] == {
        "id": "r1",
        "created": 1760000000,
        "object": "chat.completion",
        "choices": [{"finish_reason": "tool_calls", "index": 0}],
    }
    assert "actions" not in step["extra"]

    def other(value: Any) -> None:
        extra = value["messages"][2]["extra"]
        extra["response"]["choices"][0]["message"]["content"] = "said otherwise"
        extra["actions"][0]["command"] = "read otherwise"
        extra["cost"] = "much"

    step = steps(changed("calls", other))[2]
    assert step["extra"]["response"]["choices"][0]["message"] == {"content": "said otherwise"}
    assert step["extra"]["actions"] == [{"command": "read otherwise", "tool_call_id": "call_1"}]
    assert step["extra"]["cost"] == "much"


def test_in_a_text_conversation_the_user_gives_the_observations() -> None:
    for name, count in (("text", 4), ("list", 3)):
        made = steps(sample(name))
        assert len(made) == count
        [result] = made[2]["observation"]["results"]
        assert result["content"].startswith("<returncode>0</returncode>")
        assert result["extra"]["original_role"] == "user"
        assert "tool_calls" not in made[2]
        assert "source_call_id" not in result


def test_a_user_who_speaks_among_calls_gives_no_observation() -> None:
    made = steps(sample("responses"))
    assert [step["source"] for step in made] == ["system", "user", "agent", "user"]
    assert made[3]["extra"]["interrupt_type"] == "FormatError"


def test_a_reply_without_a_response_where_others_have_one_is_no_models() -> None:
    def typed(value: Any) -> None:
        value["messages"][2]["extra"] = {"response": {"model": "small-1"}}
        value["messages"] += [
            {"role": "assistant", "content": "\n```bash\nls\n```"},
            {"role": "user", "content": "<returncode>0</returncode>"},
        ]

    item = trace(changed("text", typed))
    replies = [step for step in item.trajectory["steps"] if step["source"] == "agent"]
    assert "is_copied_context" not in replies[0]
    assert (replies[-1]["is_copied_context"], replies[-1]["llm_call_count"]) == (True, 0)
    assert any("no model wrote" in repair for repair in item.source["repairs"])

    def bare(value: Any) -> None:
        for message in value["messages"]:
            message.pop("extra", None)

    assert not any("is_copied_context" in step for step in steps(changed("text", bare)))


def test_a_turn_of_the_responses_api_is_one_step() -> None:
    step = steps(sample("responses"))[2]
    assert (step["message"], step["reasoning_content"]) == ("I look.", "I should look first.")
    [call] = step["tool_calls"]
    assert (call["tool_call_id"], call["function_name"], call["arguments"]) == ("call_1", "bash", {"command": "ls"})
    [result] = step["observation"]["results"]
    assert result["source_call_id"] == "call_1"
    assert result["extra"]["raw_output"]["output"]["output"] == "p.py\n"
    assert step["extra"]["output"][0]["encrypted_content"] == "AAAA"
    assert step["extra"]["response"] == {
        "id": "resp_1",
        "object": "response",
        "created_at": 1760000000,
        "status": "completed",
    }


def test_a_summary_in_place_of_the_reasoning_makes_the_run_rendered() -> None:
    assert trace(sample("responses")).run["rendered"] is True

    def thinks(value: Any) -> None:
        [turn] = [message for message in value["messages"] if message.get("object") == "response"][:1]
        turn["output"][0]["content"] = [{"type": "reasoning_text", "text": "Where is it?"}]

    item = trace(changed("responses", thinks))
    assert "rendered" not in item.run
    assert item.trajectory["steps"][2]["reasoning_content"] == "Where is it?"


def test_an_exit_message_is_kept_where_it_says_more_than_info() -> None:
    assert "exit" not in trace(sample("calls")).trajectory["extra"]
    [ending] = trace(sample("responses")).trajectory["extra"]["exit"]
    assert ending["content"] == "the server is gone"
    assert ending["extra"] == {
        "exception_str": "the server is gone",
        "traceback": "Traceback (most recent call last): …",
    }
    assert ending["behind_steps"] == 4


def test_nothing_that_is_beside_the_messages_is_lost() -> None:
    value = changed("calls", lambda value: value.update(reviewer={"notes": [1]}))
    extra = trace(value).trajectory["extra"]
    assert extra["info"] == value["info"]
    assert extra["reviewer"] == {"notes": [1]}
    assert extra["trajectory_format"] == "mini-swe-agent-1.1"


# run and outcome


def test_run_facts_and_labels_are_read() -> None:
    item = trace(sample("calls"))
    assert item.run == {
        "task": "example__parser-1",
        "model": {"name": "example/model-1"},
        "sampling": {"temperature": 0.0, "parallel_tool_calls": True},
        "environment": {
            "agent_type": "example.agents.Default",
            "model_type": "example.models.Model",
            "environment_type": "example.environments.Docker",
            "image": "example:latest",
        },
    }
    assert item.trajectory["agent"] == {
        "name": "mini-swe-agent",
        "version": "2.2.7",
        "model_name": "example/model-1",
    }
    assert item.trajectory["final_metrics"] == {"total_cost_usd": 0.003, "extra": {"api_calls": 3}}
    assert "session_id" not in item.trajectory


@pytest.mark.parametrize(
    ("info", "outcome"),
    [
        ({"exit_status": "Submitted"}, {"status": "unknown", "termination": "Submitted"}),
        ({"exit_status": "LimitsExceeded"}, {"status": "unknown", "termination": "LimitsExceeded"}),
        ({"exit_status": "APIError", "traceback": "…"}, {"status": "error", "termination": "APIError"}),
        ({"exit_status": None, "traceback": ""}, {"status": "unknown"}),
        ({}, {"status": "unknown"}),
    ],
)
def test_nobody_graded_so_only_an_exception_says_how_it_ended(info: Any, outcome: Any) -> None:
    assert trace({"info": {"mini_version": "1.0", **info}, "messages": sample("text")["messages"]}).outcome == outcome


def test_the_exit_message_says_how_a_run_stopped_where_info_does_not() -> None:
    def untold(value: Any) -> None:
        del value["info"]["exit_status"]
        value["messages"].append({"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded"}})

    assert trace(changed("calls", untold)).outcome == {"status": "unknown", "termination": "LimitsExceeded"}


def test_an_exception_in_the_exit_message_counts_too() -> None:
    assert trace(sample("responses")).outcome == {"status": "error", "termination": "RuntimeError"}


# harness evidence


def test_a_confirmed_configuration_gives_prompt_handlers_and_runtime() -> None:
    shown = forms(trace(sample("calls")))
    assert shown == {
        "prompt_templates": {"system": "template", "instance": "template"},
        "observation_handlers": {"format_error_template": "constant", "observation_template": "constant"},
        "runtime": dict.fromkeys(
            ("command_timeout", "cost_limit", "environment", "multimodal_regex", "parallel_tool_calls", "step_limit"),
            "constant",
        ),
    }


def test_a_contradicted_configuration_is_a_finding_and_nothing_of_it_is_used() -> None:
    def grafted(value: Any) -> None:
        value["info"]["config"]["agent"]["system_template"] = "You are another agent, with another prompt."

    item = trace(changed("calls", grafted))
    assert forms(item) == {"prompt_templates": {"system": "rendered", "instance": "rendered"}}
    assert [found.code for found in item.findings] == ["config-contradicted"]
    assert "at character 5" in item.findings[0].message
    assert item.run == {"task": "example__parser-1"}
    assert item.trajectory["extra"]["info"]["config"]["model"]["model_name"] == "example/model-1"


def test_a_configuration_that_nothing_confirms_gives_labels_and_no_component() -> None:
    def vague(value: Any) -> None:
        value["info"]["config"]["agent"].update(system_template="{{role}}", instance_template="{{task}}")

    item = trace(changed("calls", vague))
    assert forms(item) == {"prompt_templates": {"system": "rendered", "instance": "rendered"}}
    assert item.findings == ()
    assert item.run["model"] == {"name": "example/model-1"}


def test_a_bare_list_shows_its_prompt_alone() -> None:
    assert forms(trace(sample("list"))) == {"prompt_templates": {"system": "rendered", "instance": "rendered"}}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("model", "model_name"), "example/model-9"),
        (("model", "model_kwargs", "temperature"), 1.0),
        (("environment", "image"), "other:latest"),
        (("environment", "pull_timeout"), 7200),
        (("environment", "cwd"), "/elsewhere"),
        (("agent", "output_path"), "/elsewhere/x.json"),
        (("agent_type",), "example.agents.moved.Default"),
        (("agent", "cost_limit"), 2),
    ],
)
def test_labels_and_ways_of_writing_are_no_identity(place: tuple[str, ...], value: Any) -> None:
    assert _with(place, value).observed == trace(sample("calls")).observed


@pytest.mark.parametrize(
    ("place", "value", "component"),
    [
        (("model", "model_kwargs", "parallel_tool_calls"), False, "runtime"),
        (("agent", "step_limit"), 51, "runtime"),
        (("environment", "timeout"), 31, "runtime"),
        (("model", "action_regex"), "x", "runtime"),
        (("model", "observation_template"), "{{output}}", "observation_handlers"),
        (("model", "format_error_template"), "{{error}}", "observation_handlers"),
    ],
)
def test_what_is_identity_changes_its_component_alone(place: tuple[str, ...], value: Any, component: str) -> None:
    plain, other = trace(sample("calls")), _with(place, value)
    assert {name for name in plain.observed if plain.observed[name] != other.observed[name]} == {component}


def test_a_stage_that_repairs_is_runtime_whatever_it_did() -> None:
    for result in ({"rounds_used": 1}, {"rounds_used": 2}, None):
        value = sample("calls")
        value["info"]["patch_repair"] = result
        item = trace(value)
        assert digests(item, "runtime")["patch_repair"] == digest.of(True)


def _with(place: tuple[str, ...], value: Any) -> Imported:
    def change(document: Any) -> None:
        at = document["info"]["config"]
        for name in place[:-1]:
            at = at[name]
        at[place[-1]] = value

    return trace(changed("calls", change))


# recognition and refusals


@pytest.mark.parametrize("path", sorted(HERE.iterdir()), ids=lambda path: path.name)
def test_samples_are_recognised_and_valid_for_a_peer(path: Path) -> None:
    raw = path.read_bytes()
    assert detect(Head(raw, complete=True)).importer is IMPORTER
    Peer.model_validate(trace(raw).trajectory)


def test_a_long_document_is_recognised_by_its_beginning() -> None:
    value = sample("calls")
    value["messages"][3]["content"] = "x" * 100_000
    raw = json.dumps(value, indent=2).encode()[:65_536]
    assert detect(Head(raw, complete=False)).importer is IMPORTER
    raw = json.dumps([*sample("list"), {"role": "user", "content": "x" * 100_000}], indent=2).encode()[:65_536]
    assert detect(Head(raw, complete=False)).importer is IMPORTER


def test_messages_of_others_are_left_to_others() -> None:
    assert IMPORTER.recognise(Head(b'[{"role": "user", "content": "hello"}]', complete=True)) == 0
    row = b'{"messages": [{"role": "user", "content": "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}]}'
    assert IMPORTER.recognise(Head(row, complete=True)) == 0
    settings = b'{"info": {"mini_version": "2.0.0"}, "trajectory_format": "other"}'
    assert IMPORTER.recognise(Head(settings, complete=True)) == 0


def test_a_message_without_a_role_is_of_nobody() -> None:
    for message in ({"content": "Who speaks?"}, {"type": "reasoning", "content": []}, {"object": "response.part"}):
        value = sample("responses")
        value["messages"].append(message)
        item = read(value)
        assert isinstance(item, Refused)
        assert item.code == "unknown-role"


def test_runs_in_lines_and_in_an_array_are_read_one_by_one() -> None:
    both = json.dumps([sample("calls"), sample("text")]).encode()
    assert len(list(IMPORTER.read(Record(both, "a", "a")))) == 2
    lines = b"\n".join(json.dumps(sample(name)).encode() for name in ("calls", "text"))
    assert IMPORTER.unit(Head(lines, complete=True)) == "line"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda value: value["messages"].append({"role": "critic", "content": "x"}), "unknown-role", "messages/8"),
        (lambda value: value["messages"].append("x"), "record-unfit", "messages/8 is no message"),
        (lambda value: value.update(messages=[]), "record-unfit", "messages is empty"),
        (lambda value: value.update(messages={}), "record-unfit", "no list of messages"),
        (lambda value: value.update(messages=[{"role": "exit"}]), "record-unfit", "no message of a conversation"),
        (lambda value: value.update(trajectory_format="mini-swe-agent-2"), "newer-format", "mini-swe-agent-2"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(change: Any, code: str, words: str) -> None:
    item = read(changed("calls", change))
    assert isinstance(item, Refused)
    assert item.code == code
    assert words in item.message


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"info": {}, "messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "too-deep"),
        (json.dumps({"info": {}, "messages": [{"role": "user", "content": "x"}]}).encode()[:-3], "record-not-json"),
    ],
)
def test_what_is_no_json_or_too_deep_is_refused(raw: bytes, code: str) -> None:
    item = read(raw)
    assert isinstance(item, Refused)
    assert item.code in (code, "record-not-json")


def test_unusual_values_survive() -> None:
    def unusual(value: Any) -> None:
        first, answer = value["messages"][2], value["messages"][3]
        first["content"] = "\ud83d\x00\x1b[31m"
        first["extra"]["response"]["usage"]["prompt_tokens"] = 2**70
        answer["extra"]["returncode"] = 2**65
        first["tool_calls"][0]["function"]["arguments"] = "no json"

    made = steps(changed("calls", unusual))
    assert made[2]["message"] == "\ud83d\x00\x1b[31m"
    assert made[2]["metrics"]["prompt_tokens"] == 2**70
    assert made[2]["tool_calls"][0]["arguments"] == {"_raw": "no json"}
    assert made[2]["observation"]["results"][0]["extra"]["raw_output"]["output"]["returncode"] == 2**65


def test_a_setting_that_is_no_number_is_a_setting_of_its_own() -> None:
    raw = json.dumps(sample("calls")).replace('"cost_limit": 2.0', '"cost_limit": NaN').encode()
    assert digests(trace(raw), "runtime")["cost_limit"] != digests(trace(sample("calls")), "runtime")["cost_limit"]


def test_duplicate_keys_and_nan_are_named() -> None:
    raw = json.dumps(sample("calls")).replace('"instance_cost": 0.003', '"instance_cost": NaN, "x": 1, "x": 2').encode()
    item = trace(raw)
    assert len(item.source["repairs"]) == 2


def test_orphans_early_answers_and_ids_used_again_are_kept() -> None:
    def disorder(value: Any) -> None:
        messages = value["messages"]
        messages.insert(2, {"role": "tool", "tool_call_id": "call_1", "content": "early"})
        messages.insert(5, {"role": "tool", "tool_call_id": "nobody", "content": "orphan"})
        messages[6]["tool_calls"][0]["id"] = "call_1"

    item = trace(changed("calls", disorder))
    said = json.dumps(item.source["repairs"])
    for words in ("in front of which no agent spoke", "answers to no open call", "used more than once"):
        assert words in said
    assert b'"early"' in item.trajectory_bytes
    assert b'"orphan"' in item.trajectory_bytes


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(0.5), st.text(max_size=3), st.just([]), st.just({}), st.just([{}])
)


@given(st.sampled_from(["calls", "text", "list", "responses"]), st.data())
def test_a_wrong_value_anywhere_gives_a_valid_trace_or_a_refusal(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(sample(name))
    at: Any = value
    seen: list[tuple[Any, Any]] = []
    while isinstance(at, (dict, list)) and at and (not seen or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        seen.append((at, key))
        at = at[key]
    holder, key = seen[-1]
    holder[key] = data.draw(VALUES)
    item = read(value)
    if isinstance(item, Imported):
        assert trace(value) == item
    else:
        assert item.code in ("record-unfit", "unknown-role", "newer-format")
