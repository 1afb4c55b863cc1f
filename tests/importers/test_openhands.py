"""Sessions of OpenHands: events of both generations, in every container that they come in."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers import source
from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.detect import detect
from tracemark.importers.head import Head
from tracemark.importers.openhands import IMPORTER

from .conftest import record_of, require_valid
from .make_golden import SAMPLES

HERE = SAMPLES / "openhands"
SHARED = ("openhands", "openhands_events", "openhands_sdk", "letta_openhands")


def sample(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def rows() -> list[Any]:
    return [json.loads(line) for line in (HERE / "output.jsonl").read_text(encoding="utf-8").splitlines()]


def sdk() -> list[Any]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "sdk/events").iterdir())]


def read(value: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.json", last=True))
    return item


def trace(value: Any) -> Imported:
    return require_valid(read(value))


def steps(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace(value).trajectory["steps"]
    return found


def changed(value: Any, change: Callable[[Any], object]) -> Any:
    change(value)
    return value


def of_folder(folder: Path) -> list[Imported | Refused]:
    planned = source.plan([folder])
    return [*planned.refused, *(item for job in planned.jobs for item in source.read(job))]


def forms(item: Imported) -> dict[str, dict[str, str]]:
    return {name: {entry["part"]: entry["form"] for entry in entries} for name, entries in item.observed.items()}


def setting(item: Imported, part: str) -> str | None:
    return next((entry["digest"] for entry in item.observed.get("runtime", []) if entry["part"] == part), None)


# events of the first generation


def test_a_session_is_its_prompt_messages_replies_and_what_the_agent_recalled() -> None:
    made = steps(sample("session.json"))
    assert [(step["source"], step["message"]) for step in made] == [
        ("system", "You are an agent that works in a shell, and nothing else is asked of you today."),
        ("user", "What is here?"),
        ("system", "Added workspace context"),
        ("agent", "I look twice."),
        ("user", "Please continue."),
        ("system", "It listed the folder."),
        ("agent", ""),
    ]


def test_one_response_is_one_step_however_many_events_repeat_it() -> None:
    step = steps(sample("session.json"))[3]
    assert [call["arguments"] for call in step["tool_calls"]] == [{"command": "ls"}, {"command": "pwd"}]
    assert [(one["source_call_id"], one["content"]) for one in step["observation"]["results"]] == [
        ("c-1", "a.txt"),
        ("c-2", "/w"),
    ]
    assert (step["metrics"]["prompt_tokens"], step["metrics"]["cached_tokens"]) == (300, 200)
    assert step["model_name"] == "model-1-0601"
    assert step["extra"]["response"]["id"] == "r-1"
    assert "message" not in step["extra"]["response"]["choices"][0]


def test_the_text_of_a_reply_is_the_models_and_not_the_one_for_the_screen() -> None:
    assert "Running it" not in trace(sample("session.json")).trajectory_bytes.decode()


def test_of_an_action_is_kept_what_the_call_does_not_say() -> None:
    first, second = steps(sample("session.json"))[3]["tool_calls"]
    assert first["extra"]["action_args"] == {"is_input": False, "confirmation_state": "confirmed"}
    assert first["extra"]["event"] == {"timeout": 120.0}
    assert (second["extra"]["action"], second["extra"]["event_id"]) == ("run", 6)


def test_an_answer_in_front_of_its_action_and_one_behind_a_users_message_go_to_their_call() -> None:
    value = sample("session.json")
    value[4], value[5] = value[5], value[4]
    item = trace(value)
    step = item.trajectory["steps"][3]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["c-1", "c-2"]
    assert any(note.startswith("answers that stood in front") for note in item.source["repairs"])


def test_a_reply_is_known_from_the_answer_where_its_action_is_missing() -> None:
    value = changed(sample("session.json"), lambda value: value.__delitem__(4))
    step = steps(value)[3]
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["c-1", "c-2"]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["c-1", "c-2"]


def test_an_answer_without_any_call_stands_by_itself() -> None:
    def alone(value: Any) -> None:
        value[8]["cause"] = 99
        del value[8]["tool_call_metadata"]

    item = trace(changed(sample("session.json"), alone))
    step = item.trajectory["steps"][5]
    assert (step["source"], step["message"]) == ("system", "")
    assert step["observation"]["results"][0]["content"] == "/w"
    assert "source_call_id" not in step["observation"]["results"][0]
    value = [{**sample("session.json")[8], "tool_call_metadata": {"tool_call_id": "c-9"}, "cause": 99}]
    [step] = steps(value)
    assert step["observation"]["results"][0]["extra"]["original_call_id"] == "c-9"
    assert any("not there" in note for note in item.source["repairs"])


def test_what_the_agent_saw_in_a_form_that_no_event_holds_is_marked() -> None:
    made = steps(sample("session.json"))
    assert made[2]["extra"]["event_type"] == "recall"
    assert all(one["extra"]["content_missing"] for one in made[3]["observation"]["results"])

    def looked(value: Any) -> None:
        value[5]["observation"], value[8]["observation"] = "read", "think"

    for one in steps(changed(sample("session.json"), looked))[3]["observation"]["results"]:
        assert "content_missing" not in one["extra"]


def test_events_that_no_model_saw_are_no_steps() -> None:
    notes = trace(sample("session.json")).trajectory["extra"]["events"]
    assert [(note.get("action") or note.get("observation"), note["behind_steps"]) for note in notes] == [
        ("recall", 2),
        ("agent_state_changed", 7),
    ]


def test_condensed_history_is_a_change_of_the_context() -> None:
    step = steps(sample("session.json"))[5]
    assert step["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert step["extra"]["args"] == {"forgotten_events_start_id": 4, "forgotten_events_end_id": 6, "summary_offset": 2}


def test_a_summary_that_is_an_observation_is_one_too() -> None:
    told = {"id": 12, "source": "agent", "observation": "condense", "content": "It looked.", "extras": {}}
    step = steps([*sample("session.json"), told])[7]
    assert (step["source"], step["message"]) == ("system", "It looked.")
    assert step["extra"]["context_management"]["boundary"] == "replace"


def test_a_session_without_calls_does_not_show_which_prompt_was_sent() -> None:
    assert forms(trace(sample("session.json")[:2])) == {"tool_bindings": {"execute_bash": "schema", "finish": "schema"}}


def test_the_system_event_names_tools_version_and_class() -> None:
    item = trace(sample("session.json"))
    agent = item.trajectory["agent"]
    assert (agent["name"], agent["version"], agent["model_name"]) == ("openhands", "0.50.0", "model-1-0601")
    assert [tool["function"]["name"] for tool in agent["tool_definitions"]] == ["execute_bash", "finish"]
    assert item.run["environment"] == {"agent_class": "CodeActAgent"}
    assert (item.run["start"], item.run["end"]) == ("2025-07-01T10:00:00.500000", "2025-07-01T10:11:00.500000")
    assert forms(item) == {
        "prompt_templates": {"system": "rendered"},
        "tool_bindings": {"execute_bash": "schema", "finish": "schema"},
    }


def test_the_last_running_total_is_that_of_the_run() -> None:
    assert trace(sample("session.json")).trajectory["final_metrics"] == {
        "total_prompt_tokens": 1000,
        "total_completion_tokens": 100,
        "total_cached_tokens": 50,
        "total_cost_usd": 0.01,
    }


def test_what_a_user_ran_is_the_users() -> None:
    step = steps(sample("delegate.json"))[3]
    assert step["source"] == "user"
    assert step["extra"]["user_tool_calls"] == [
        {"function_name": "run", "arguments": {"command": "date", "blocking": True}}
    ]
    assert step["extra"]["user_tool_results"][0]["content"] == "Tue"
    assert step["extra"]["content_missing"] is True


def test_what_the_environment_ran_is_an_operation_of_the_system() -> None:
    value = changed(sample("delegate.json"), lambda value: value["trajectory"][9].update(source="environment"))
    step = steps(value)[3]
    assert (step["source"], step["extra"]["event_type"]) == ("system", "run")
    assert step["observation"]["results"][0]["content"] == "Tue"


def test_an_agent_that_was_delegated_to_is_embedded_where_it_answered() -> None:
    item = trace(sample("delegate.json"))
    made = item.trajectory
    assert [step["message"] for step in made["steps"] if step["source"] == "agent"] == [
        "A helper shall browse.",
        "It is so.",
    ]
    [result] = made["steps"][2]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": "delegate-1"}]
    [child] = made["subagent_trajectories"]
    assert [step["source"] for step in child["steps"]] == ["system", "user", "agent", "agent"]
    assert child["agent"]["extra"] == {"agent_class": "BrowsingAgent"}
    assert item.mixed == ()
    assert "execute_bash" not in json.dumps(child["agent"])


def test_a_delegation_that_never_returned_is_a_call_like_any_other() -> None:
    value = changed(sample("delegate.json"), lambda value: value["trajectory"].__delitem__(8))
    made = trace(value).trajectory
    assert "subagent_trajectories" not in made


def test_actions_without_a_response_are_calls_that_no_model_wrote() -> None:
    item = trace(sample("old_pairs.json"))
    step = item.trajectory["steps"][1]
    assert step["message"] == "I say it."
    assert step["tool_calls"][0]["function_name"] == "run"
    assert step["tool_calls"][0]["arguments"] == {"command": "echo hi"}
    assert step["observation"]["results"][0]["content"] == "hi"
    assert item.run["rendered"] is True
    assert item.source["repairs"] == [
        "tool calls without an id: named after their event",
        "calls known only as the actions that were made of them",
    ]


@pytest.mark.parametrize("name", ["content", "openhands_version", "agent_class"])
def test_another_system_event_makes_the_run_mixed(name: str) -> None:
    value = sample("session.json")
    again = copy.deepcopy(value[0])
    again["id"] = 12
    assert trace([*value, again]).mixed == ()
    again["args"][name] = "another"
    assert trace([*value, again]).mixed == (f"step 8: another event `system`, with other {name}",)


# rows


def test_a_row_names_task_model_settings_and_commit() -> None:
    item = trace(rows()[0])
    assert (item.run["task"], item.run["domain"], item.run["split"]) == ("one__one-1", "bench/one", "test")
    assert item.run["model"] == {"name": "openai/model-1"}
    assert item.run["sampling"] == {"temperature": 0.0, "top_p": 1.0}
    assert item.run["environment"] == {"agent_class": "CodeActAgent", "git_commit": "0123456789abcdef"}
    assert item.trajectory["extra"]["record"]["metadata"] == rows()[0]["metadata"]
    assert "history" not in item.trajectory["extra"]["record"]


def test_rows_are_read_line_by_line() -> None:
    items = of_folder(HERE / "output.jsonl")
    assert [(require_valid(item).source["label"], require_valid(item).where) for item in items] == [
        ("output.jsonl", f"output.jsonl:{number}") for number in (1, 2, 3)
    ]


VERDICTS: list[tuple[dict[str, Any], str]] = [
    ({"report": {"resolved": True}}, "success"),
    ({"report": {"resolved": False}}, "failure"),
    ({"test_result": {"report": {"resolved": True}}}, "success"),
    ({"test_result": {"result": True}}, "success"),
    ({"test_result": {"score": 0.5}}, "failure"),
    ({"test_result": {"score": 1}}, "success"),
    ({"test_result": {"score": True}}, "success"),
    ({"test_result": {"score": 87}}, "unknown"),
    ({"test_result": {"score": 87}, "error": "RuntimeError: the container went away"}, "error"),
    ({"test_result": {"git_patch": "diff"}}, "unknown"),
    ({"success": False}, "failure"),
    ({"success": "yes"}, "unknown"),
    ({"error": "RuntimeError: the container went away"}, "error"),
    ({"error": "RuntimeError: Agent reached maximum iteration"}, "unknown"),
    ({"error": "AgentStuckInLoopError: Agent got stuck in a loop"}, "unknown"),
    ({"error": "RuntimeError: the container went away", "report": {"resolved": True}}, "success"),
    ({"error": "RuntimeError: the container went away", "report": {"resolved": False}}, "error"),
    ({"error": ""}, "unknown"),
]


@pytest.mark.parametrize(("said", "status"), VERDICTS)
def test_the_status_is_the_rows_own_verdict(said: dict[str, Any], status: str) -> None:
    row = {**rows()[0], "report": None, **said}
    assert trace(row).outcome["status"] == status


def test_a_reward_of_another_scale_gives_no_status_and_that_is_said() -> None:
    item = trace({**rows()[0], "report": None, "test_result": {"score": 87}})
    assert (item.outcome["status"], item.outcome["reward"], "rule" in item.outcome) == ("unknown", 87, False)
    assert [found.code for found in item.findings] == ["verdict-unread"]
    assert trace({**rows()[0], "report": None, "test_result": {"score": 1}}).findings == ()


def test_the_ending_is_told_in_the_sources_words() -> None:
    assert trace(rows()[2]).outcome == {
        "status": "error",
        "rule": "test_result.resolved",
        "checks": {"resolved": False},
        "termination": "AgentRuntimeDisconnectedError: the container went away",
    }
    assert trace(sample("session.json")).outcome == {"status": "unknown", "termination": "finished"}

    def failed(value: Any) -> None:
        value[-1]["extras"] = {"agent_state": "error", "reason": "the model did not answer"}

    outcome = trace(changed(sample("session.json"), failed)).outcome
    assert outcome == {"status": "error", "termination": "error: the model did not answer"}


def test_calls_taken_out_of_a_text_show_that_the_model_called_nothing_by_itself() -> None:
    item = trace(rows()[0])
    assert item.run["rendered"] is True
    assert setting(item, "function_calling") == digest.of(False)
    # the prompt that was sent had the tools in it, and the event is another
    assert "prompt_templates" not in item.observed
    assert item.trajectory["steps"][0]["extra"]["event_type"] == "system"
    assert [text for _, text, _ in item.content.messages] == ["Mend it."]
    assert forms(item)["tool_bindings"] == {"execute_bash": "schema", "finish": "schema"}


def test_ids_of_a_provider_do_not_show_how_the_model_was_asked() -> None:
    row = {**rows()[0], "history": sample("session.json")}
    assert setting(trace(row), "function_calling") is None
    row["metadata"] = {**row["metadata"], "llm_config": {"model": "m", "native_tool_calling": True}}
    assert setting(trace(row), "function_calling") == digest.of(True)


def test_what_names_no_harness_is_no_part_of_it() -> None:
    def elsewhere(row: Any) -> None:
        row["metadata"].update(git_commit="other", start_time="2026-01-01 00:00:00", dataset="bench/two")
        row["metadata"]["llm_config"].update(model="model-2", temperature=1.0, base_url="http://elsewhere")
        row["history"][0]["args"]["openhands_version"] = "0.51.0"

    one, other = trace(rows()[0]), trace(changed(rows()[0], elsewhere))
    assert one.observed == other.observed


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("max_iterations", {"max_iterations": 51}),
        ("condenser", {"condenser_config": {"type": "llm", "max_size": 9, "llm_config": {"model": "m"}}}),
        ("max_message_chars", {"llm_config": {"max_message_chars": 9}}),
    ],
)
def test_a_setting_of_the_runtime_is_a_part(part: str, change: dict[str, Any]) -> None:
    one = trace(rows()[0])
    other = trace(changed(rows()[0], lambda row: row["metadata"].update(change)))
    assert setting(one, part) != setting(other, part)
    assert {name for name in forms(one)["runtime"] if setting(one, name) != setting(other, name)} == {part}


def test_the_model_of_a_condenser_is_no_setting() -> None:
    def condense(model: str) -> Any:
        config = {"type": "llm", "llm_config": {"model": model}}
        return trace(changed(rows()[0], lambda row: row["metadata"].update(condenser_config=config)))

    assert setting(condense("m"), "condenser") == setting(condense("n"), "condenser")


def test_a_configuration_that_its_session_contradicts_is_not_used() -> None:
    def native(row: Any) -> None:
        row["metadata"]["llm_config"]["native_tool_calling"] = True

    def another(row: Any) -> None:
        row["metadata"]["agent_class"] = "BrowsingAgent"

    for change in (native, another):
        item = trace(changed(rows()[0], change))
        assert [found.code for found in item.findings] == ["config-contradicted"]
        assert forms(item)["runtime"] == {"function_calling": "constant"}
        assert item.run["model"] == {"name": "model-1-0601"}
        assert "git_commit" not in item.run["environment"]


# the SDK


def test_a_conversation_of_the_sdk_is_read_with_its_state() -> None:
    [item] = map(require_valid, of_folder(HERE / "sdk"))
    made = item.trajectory
    assert [step["source"] for step in made["steps"]] == [
        "system",
        "user",
        "agent",
        "system",
        "agent",
        "agent",
        "agent",
    ]
    assert made["session_id"] == "0000-1111"
    assert item.run["model"] == {"name": "provider/model-1"}
    assert item.outcome == {"status": "unknown", "termination": "finished"}
    assert made["final_metrics"]["total_cost_usd"] == 0.5
    assert made["steps"][2]["metrics"] | {"extra": None} == {
        "prompt_tokens": 30,
        "completion_tokens": 3,
        "cached_tokens": 1,
        "extra": None,
    }
    assert "secret_registry" not in made["extra"]["state"]
    assert sorted(forms(item)["runtime"]) == [
        *("condenser", "confirmation_policy", "function_calling", "max_iterations"),
        *("max_message_chars", "stuck_detection"),
    ]


def test_calls_of_one_response_are_one_step_and_answers_find_them() -> None:
    step = steps(sdk())[2]
    assert step["message"] == "I look twice."
    assert [call["function_name"] for call in step["tool_calls"]] == ["terminal", "file_editor"]
    assert {one["source_call_id"]: one["content"] for one in step["observation"]["results"]} == {
        "k-1": "a",
        "k-2": "1 a",
    }
    marks = {one["source_call_id"]: one["extra"].get("content_missing") for one in step["observation"]["results"]}
    assert marks == {"k-1": True, "k-2": None}

    def failed(value: Any) -> None:
        value[4]["observation"]["is_error"] = True
        value[3]["thought"] = [{"type": "text", "text": "And again."}]

    step = steps(changed(sdk(), failed))[2]
    assert all(one["extra"]["content_missing"] for one in step["observation"]["results"])
    assert (step["message"], step["extra"]["thought"]) == ("I look twice.", "And again.")


def test_the_context_of_a_conversation_is_no_part_of_the_prompt() -> None:
    def other(value: Any) -> None:
        value[0]["dynamic_context"]["text"] = "Today is Monday."

    one, two = trace(sdk()), trace(changed(sdk(), other))
    assert one.observed == two.observed
    assert one.trajectory["steps"][0]["message"] == two.trajectory["steps"][0]["message"]
    step = two.trajectory["steps"][0]
    assert step["extra"]["system_event"]["dynamic_context"]["text"] == "Today is Monday."
    # what the model was sent was more than the message
    assert step["extra"]["content_missing"] is True


def test_tools_without_schemas_are_kept_and_show_nothing() -> None:
    item = trace(sdk())
    assert "tool_definitions" not in item.trajectory["agent"]
    assert item.trajectory["steps"][0]["extra"]["tools"][0]["kind"] == "TerminalTool"
    assert "tool_bindings" not in item.observed
    [lines] = map(require_valid, of_folder(HERE / "lines"))
    assert forms(lines)["tool_bindings"] == {"execute_bash": "schema", "finish": "schema"}


def test_what_the_harness_adds_to_a_message_is_part_of_it() -> None:
    step = steps(sdk())[1]
    assert step["message"] == [{"type": "text", "text": "What is here?"}, {"type": "text", "text": "Look with ls."}]
    assert step["extra"]["extended_parts"] == 1


def test_rejections_and_errors_answer_their_calls() -> None:
    made = steps(sdk())
    rejected, failed = made[4]["observation"]["results"][0], made[5]["observation"]["results"][0]
    assert (rejected["source_call_id"], rejected["content"]) == ("k-3", "No.")
    assert rejected["extra"]["content_missing"] is True
    assert (failed["source_call_id"], failed["content"]) == ("k-4", "There is no tool nothing.")
    assert "content_missing" not in failed["extra"]


def test_reasoning_is_that_of_the_reply() -> None:
    assert steps(sdk())[6]["reasoning_content"] == "I saw it."


def test_an_error_ends_a_conversation_unless_it_is_a_limit() -> None:
    [item] = map(require_valid, of_folder(HERE / "lines"))
    assert item.outcome == {"status": "error", "termination": "error: LLMTimeoutError the model did not answer"}
    value = [json.loads(line) for line in (HERE / "lines/events.jsonl").read_text(encoding="utf-8").splitlines()]
    value[-1].update(code="MaxIterationsReached", detail="")
    assert trace(value).outcome["status"] == "unknown"


def test_a_state_that_an_event_tells_is_used_where_no_file_does() -> None:
    state = {**sample("sdk/base_state.json"), "max_iterations": 7}
    update = {"kind": "ConversationStateUpdateEvent", "id": "u", "source": "environment", "key": "full_state"}
    item = trace([*sdk(), {**update, "value": state}])
    assert item.trajectory["session_id"] == "0000-1111"
    assert setting(item, "max_iterations") == digest.of(7)
    secrets = trace([*sdk(), {**update, "key": "secret_registry", "value": state["secret_registry"]}])
    for one in (item, secrets):
        assert "secret" not in one.trajectory_bytes.decode()


def test_a_state_of_another_conversation_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for path in (HERE / "sdk/events").iterdir():
        (tmp_path / "events" / path.name).write_bytes(path.read_bytes())
    state = sample("sdk/base_state.json")
    state["last_user_message_id"] = "e-99"
    (tmp_path / "base_state.json").write_text(json.dumps(state), encoding="utf-8")
    [item] = map(require_valid, of_folder(tmp_path))
    assert [found.code for found in item.findings] == ["config-contradicted"]
    assert "session_id" not in item.trajectory
    assert "runtime" not in item.observed


def test_another_system_prompt_in_a_conversation_makes_it_mixed() -> None:
    value = sdk()
    again = copy.deepcopy(value[0])
    again["id"] = "e-30"
    assert trace([*value, again]).mixed == ()
    again["tools"].pop()
    assert trace([*value, again]).mixed == ("step 8: another SystemPromptEvent, with another tools",)


def test_events_of_a_kind_that_nobody_knows_may_have_been_seen() -> None:
    step = steps(sample("items.json"))[3]
    assert (step["source"], step["extra"]["event_type"]) == ("system", "HookEvent")


def test_roles_and_ids_that_nobody_names_are_said_to_be_made() -> None:
    item = trace(sample("items.json"))
    assert [step["source"] for step in item.trajectory["steps"][:2]] == ["user", "agent"]
    assert item.trajectory["steps"][1]["tool_calls"][0]["tool_call_id"] == "event_a-1"
    assert item.source["repairs"][:2] == [
        "messages without a role: that of their source",
        "tool calls without an id: named after their event",
    ]


@pytest.mark.parametrize(("source", "is_supplied"), [("agent", False), ("user", True), ("environment", True)])
def test_a_reply_of_someone_else_than_the_agent_trains_nobody(source: str, is_supplied: bool) -> None:
    asked = {"kind": "MessageEvent", "id": "a", "source": "user", "llm_message": {"role": "user", "content": "Go."}}
    said = {"kind": "MessageEvent", "id": "b", "source": source, "llm_message": {"role": "assistant", "content": "On."}}
    step = trace([asked, said]).trajectory["steps"][1]
    assert (step.get("is_copied_context", False), step.get("llm_call_count") == 0) == (is_supplied, is_supplied)


def test_events_without_ids_are_read_too() -> None:
    value = sample("old_pairs.json")
    for pair in value["history"]:
        for event in pair:
            event.pop("id", None)
    made = steps(value)
    assert [call["tool_call_id"] for step in made for call in step.get("tool_calls", [])] == ["call_2_1", "call_4_1"]


def test_what_is_no_event_is_kept_beside_the_conversation() -> None:
    notes = trace(sample("items.json")).trajectory["extra"]["events"]
    assert notes == [
        {"original_event": None, "behind_steps": 0},
        {"kind": "StateEvent", "id": "s-1", "timestamp": "2026-02-01T10:00:02.000000", "behind_steps": 1},
    ]


# containers


def test_files_of_single_events_are_one_record_and_pages_of_a_cache_none() -> None:
    [item] = map(require_valid, of_folder(HERE / "ab12"))
    assert item.source["label"] == "events/0.json"
    assert [step["source"] for step in item.trajectory["steps"]] == ["system", "user", "agent", "agent"]
    assert "repairs" not in item.source
    planned = source.plan([HERE / "ab12"])
    assert [(found.code, found.where) for found in planned.findings] == [("file-beside", "event_cache/0-25.json")]


def test_ten_comes_behind_nine(tmp_path: Path) -> None:
    for number in (10, 9, 0):
        event = {"id": number, "source": "user", "action": "message", "args": {"content": str(number)}}
        (tmp_path / f"s_events_{number}.json").write_text(json.dumps(event), encoding="utf-8")
    [item] = map(require_valid, of_folder(tmp_path))
    assert [step["message"] for step in item.trajectory["steps"]] == ["0", "9", "10"]


def test_files_of_single_events_in_an_archive_are_no_sessions(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "session.zip", "w") as archive:
        for number in (0, 1):
            archive.write(HERE / f"ab12/events/{number}.json", f"events/{number}.json")
        archive.write(HERE / "session.json", "session.json")
    refused, also, item = of_folder(tmp_path)
    for one in (refused, also):
        assert isinstance(one, Refused)
        assert (one.code, "unpack" in one.message) == ("record-unfit", True)
    assert len(require_valid(item).trajectory["steps"]) == 7


def test_two_sessions_of_one_folder_are_two_records(tmp_path: Path) -> None:
    for session in ("a", "b"):
        for number in (0, 1):
            event = {"id": number, "source": "user", "action": "message", "args": {"content": session}}
            (tmp_path / f"{session}_events_{number}.json").write_text(json.dumps(event), encoding="utf-8")
    assert len(of_folder(tmp_path)) == 2


@pytest.mark.parametrize("member", ["items", "events", "trajectory"])
def test_envelopes_say_nothing_of_the_session(member: str) -> None:
    bare, held = trace(sample("session.json")), trace({member: sample("session.json")})
    assert bare.trajectory == held.trajectory


def test_an_array_of_rows_is_its_rows() -> None:
    raw = json.dumps(rows()).encode()
    items = [require_valid(item) for item in IMPORTER.read(Record(raw, "a.json", "a.json"))]
    assert [item.run["task"] for item in items] == ["one__one-1", "one__one-2", "one__one-3"]


def test_a_broken_line_is_refused_and_missed() -> None:
    lines = [json.dumps(event) for event in sample("session.json")]
    raw = "\n".join([*lines[:5], "{half", *lines[5:], lines[-1][:30]]).encode()
    first, second, item = IMPORTER.read(Record(raw, "a.jsonl", "a.jsonl", last=True))
    assert isinstance(first, Refused)
    assert isinstance(second, Refused)
    assert (first.code, first.where, second.code) == ("record-not-json", "a.jsonl:6", "record-truncated")
    assert require_valid(item).source["repairs"][0] == "lines that are no JSON: left out"


# bad input


def test_who_acted_is_not_guessed() -> None:
    value = changed(sample("session.json"), lambda value: value[1].update(source="nobody"))
    item = read(value)
    assert isinstance(item, Refused)
    assert item.code == "unknown-role"
    message = {"kind": "MessageEvent", "id": "a", "llm_message": {"role": "nobody", "content": "a"}}
    item = read([*sdk(), message])
    assert isinstance(item, Refused)
    assert item.code == "unknown-role"


@pytest.mark.parametrize("value", [{}, [], {"history": []}, {"items": [1]}, [[]], {"kind": "Other", "id": "a"}])
def test_what_holds_no_event_is_refused(value: Any) -> None:
    item = read(value)
    assert isinstance(item, Refused)
    assert item.code == "record-unfit"


def test_a_session_in_which_nobody_spoke_is_refused() -> None:
    item = read(sample("session.json")[-1:])
    assert isinstance(item, Refused)
    assert (item.code, item.message) == ("record-unfit", "it holds no message of a conversation")


def test_ids_that_come_again_and_arguments_that_are_no_json_are_kept() -> None:
    def odd(value: Any) -> None:
        for event in (value[4], value[5], value[6], value[8]):
            calls = event["tool_call_metadata"]["model_response"]["choices"][0]["message"]["tool_calls"]
            calls[1]["id"] = "c-1"
            calls[0]["function"]["arguments"] = "ls -l"
            event["tool_call_metadata"]["tool_call_id"] = "c-1"

    step = steps(changed(sample("session.json"), odd))[3]
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["c-1", "c-1#2"]
    assert step["tool_calls"][0]["arguments"] == {"_raw": "ls -l"}
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["c-1", "c-1#2"]


def test_one_response_id_for_two_responses_is_two_steps() -> None:
    def same(value: Any) -> None:
        value[10]["tool_call_metadata"]["model_response"]["id"] = "r-1"

    made = steps(changed(sample("session.json"), same))
    assert [step["message"] for step in made if step["source"] == "agent"] == ["I look twice.", ""]


def test_odd_numbers_and_characters_survive() -> None:
    raw = json.dumps(sample("session.json")).replace('"a.txt"', '"\\ud800\\u0000\\u001b[31m"')
    raw = raw.replace('"is_input": false', '"is_input": 1180591620717411303424, "nan": NaN')
    step = steps(raw.encode())[3]
    assert step["observation"]["results"][0]["content"] == "\ud800\x00\x1b[31m"
    assert step["tool_calls"][0]["extra"]["action_args"]["is_input"] == 1180591620717411303424


def test_duplicate_members_are_named_in_the_repairs() -> None:
    raw = json.dumps(sample("session.json")).replace('"id": 1,', '"id": 1, "id": 1,', 1).encode()
    assert any("duplicate" in note for note in trace(raw).source["repairs"])


def test_a_session_that_is_nested_too_deeply_is_refused() -> None:
    deep = "[" * 10_000 + "]" * 10_000
    raw = json.dumps(sample("session.json")).replace('"is_input": false', f'"is_input": {deep}').encode()
    item = read(raw)
    assert isinstance(item, Refused)
    assert item.code in ("too-deep", "record-not-json")


def test_delegations_nested_without_end_are_read() -> None:
    head = [sample("session.json")[1]]
    opened = [
        {"id": 10 + number, "source": "agent", "action": "delegate", "args": {"agent": "A"}} for number in range(3000)
    ]
    closed = [
        {"id": 9000 + number, "source": "agent", "cause": 3009 - number, "observation": "delegate", "content": "a"}
        for number in range(3000)
    ]
    assert trace([*head, *opened, *closed]).trajectory["subagent_trajectories"]


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 2**70, "", "\ud800", "../../etc", [], {}, [None, 1, "a"], {"a": {"b": []}}, {"role": "x"}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        found += places(member, (*path, name))
    return found


VALID: dict[str, Any] = {
    "session": sample("session.json"),
    "delegate": sample("delegate.json"),
    "row": rows()[0],
    "pairs": sample("old_pairs.json"),
    "sdk": sdk(),
    "items": sample("items.json"),
}


@given(st.sampled_from(sorted(VALID)), st.data())
def test_a_wrong_type_anywhere_gives_a_trace_or_a_refusal(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(VALID[name])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(value)))
        holder = value
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = copy.deepcopy(data.draw(ODD))
        if not places(value):
            break
    for item in IMPORTER.read(Record(json.dumps(value).encode(), "a.json", "a.json")):
        assert isinstance(item, Refused) or require_valid(item)
        assert not isinstance(item, Refused) or item.code != "importer-failed", item.message


@given(st.sampled_from(sorted(VALID)), st.integers(1, 4000))
def test_a_file_that_ends_early_gives_traces_or_refusals(name: str, size: int) -> None:
    raw = json.dumps(VALID[name]).encode()[:size]
    for item in IMPORTER.read(Record(raw, "a.json", "a.json", last=True)):
        assert isinstance(item, Refused) or require_valid(item)


# recognition


def test_files_are_told_by_their_content() -> None:
    for path in sorted(HERE.rglob("*.json*")):
        head = Head(path.read_bytes(), complete=True)
        found = detect(head)
        assert found.importer is IMPORTER, path.name


@pytest.mark.parametrize("name", ["session.json", "output.jsonl", "lines/events.jsonl"])
def test_a_long_file_is_told_by_its_beginning(name: str) -> None:
    data = (HERE / name).read_bytes()
    assert IMPORTER.recognise(Head(data[: len(data) * 3 // 4], complete=False)) == 95


@pytest.mark.parametrize(
    "value",
    [
        {"action": "run", "observation": "a"},
        [{"role": "user", "content": "a"}],
        {"history": [{"role": "system", "content": "a"}], "trajectory": [], "info": {}},
        {"kind": "MessageEvent"},
        {"kind": "span", "id": "a", "timestamp": "b"},
        {"type": "user", "source": "agent", "id": 1},
    ],
)
def test_what_only_looks_like_it_is_not_claimed(value: Any) -> None:
    assert IMPORTER.recognise(Head(json.dumps(value).encode(), complete=True)) == 0


# real files


@pytest.mark.shared_data
def test_every_real_session_is_read(shared_traces: Path) -> None:
    counts = {}
    for name in SHARED:
        items = [require_valid(item) for item in of_folder(shared_traces / name)]
        counts[name] = [(len(item.trajectory["steps"]), item.outcome["status"]) for item in items]
        for item in items:
            Peer.model_validate(json.loads(item.trajectory_bytes))
            assert item.mixed == ()
    assert counts == {
        # three runs that nobody graded, one of which reached the limit of its steps; and one export of a session
        "openhands": [(26, "unknown"), (37, "unknown"), (53, "unknown"), (5, "unknown")],
        # files of one session, of which some are missing
        "openhands_events": [(4, "unknown")],
        # lines of one conversation; a state of another one lies beside them
        "openhands_sdk": [(3, "unknown")],
        "letta_openhands": [(5, "unknown"), (4, "unknown")],
    }


@pytest.mark.shared_data
def test_no_other_real_file_is_claimed(shared_traces: Path) -> None:
    for path in sorted(shared_traces.rglob("*")):
        if path.is_file() and path.parent.name not in SHARED:
            data = path.read_bytes()[:200_000]
            assert IMPORTER.recognise(Head(data, complete=path.stat().st_size <= 200_000)) == 0, path.name
