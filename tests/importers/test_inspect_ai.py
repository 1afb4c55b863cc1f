"""Samples of Inspect AI logs: what of them becomes a trace, in the forms that logs have had."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.head import Head
from tracemark.importers.inspect_ai import IMPORTER, SUCCESS
from tracemark.model.trace import STATUSES

from .conftest import Inbox, record_of, repairs_of, require_valid
from .test_compression import zstd_archive

QUESTION = "Which of the parcels is still on its way?"
RULES = "You look up parcels. Answer in one sentence, and guess nothing."
TOOL = {"name": "look_up", "description": "Find.", "parameters": {"type": "object", "properties": {}, "required": []}}
SYSTEM = {"id": "m1", "role": "system", "content": RULES}
USER = {"id": "m2", "role": "user", "content": QUESTION, "source": "input"}
CALL = {"id": "c1", "function": "look_up", "arguments": {"order": 1}, "type": "function"}
ASKS = {"id": "m3", "role": "assistant", "content": "", "source": "generate", "model": "m", "tool_calls": [CALL]}
ANSWER = {"id": "m4", "role": "tool", "content": "on its way", "tool_call_id": "c1", "function": "look_up"}
SAYS = {"id": "m5", "role": "assistant", "content": "The first one.", "source": "generate", "model": "m"}
USAGE = {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24}
SPEC = {
    "run_id": "r1",
    "task_id": "t1",
    "created": "2026-01-31T12:00:00+00:00",
    "task": "parcels",
    "task_version": 0,
    "model": "lab/m",
    "config": {"message_limit": 30},
    "dataset": {"name": "parcels", "sample_ids": [1, 2]},
    "revision": {"type": "git", "origin": "here", "commit": "abc"},
    "packages": {"inspect_ai": "0.3.200"},
}
PLAN = {"steps": [{"solver": "system_message", "params": {"template": RULES}}, {"solver": "generate", "params": {}}]}
HEADER = {"version": 2, "status": "success", "eval": SPEC, "plan": PLAN}

Value = dict[str, Any]


def output(message: Value, **members: Any) -> Value:
    return {"model": "m-2026", "choices": [{"message": message, "stop_reason": "stop"}], "usage": USAGE, **members}


def model(message: Value, *sent: Value, tools: Any = (TOOL,), **members: Any) -> Value:
    return {
        "event": "model",
        "timestamp": "2026-01-31T12:00:01+00:00",
        "model": "lab/m",
        "input": list(sent),
        "tools": list(tools),
        "tool_choice": "auto",
        "config": {"temperature": 0.0},
        "output": output(message),
        **members,
    }


def sample(*messages: Value, **members: Any) -> Value:
    """Return a sample with its events; of two replies with a call between them unless `messages` are given."""
    said = list(messages) or [SYSTEM, USER, ASKS, ANSWER, SAYS]
    asked = [model(one, *said[:at]) for at, one in enumerate(said) if one.get("source") == "generate"]
    made = {
        "id": 1,
        "epoch": 2,
        "input": QUESTION,
        "target": "first",
        "messages": said,
        "output": {},
        "scores": {"match": {"value": "C", "answer": "first"}},
        "events": asked,
        "uuid": "u1",
        **members,
    }
    # tests alter what they are given
    return copy.deepcopy(made)


def without(value: Value, *names: str) -> Value:
    return {name: member for name, member in value.items() if name not in names}


def read(value: Any, header: Value = HEADER) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "log.json#0", around=header))
    return item


def trace(value: Any, header: Value = HEADER) -> Imported:
    return require_valid(read(value, header))


def steps(value: Value) -> list[Value]:
    found: list[Value] = trace(value).trajectory["steps"]
    return found


def parts(item: Imported, component: str) -> list[tuple[str, str]]:
    return [(entry["part"], entry["form"]) for entry in item.observed.get(component, [])]


# the conversation


def test_messages_become_steps_and_the_answer_of_a_tool_an_observation() -> None:
    made = steps(sample())
    assert [(step["source"], step["message"]) for step in made] == [
        ("system", RULES),
        ("user", QUESTION),
        ("agent", ""),
        ("agent", "The first one."),
    ]
    [call] = made[2]["tool_calls"]
    assert call == {"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": 1}}
    [result] = made[2]["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("c1", "on its way")


def test_a_reply_has_time_model_tokens_and_what_else_its_call_says() -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"][0] |= {"cache": "read", "retries": 1}
    reply = steps(value)[2]
    assert (reply["timestamp"], reply["model_name"]) == ("2026-01-31T12:00:01+00:00", "m")
    assert reply["metrics"] == {"prompt_tokens": 20, "completion_tokens": 4, "extra": {"total_tokens": 24}}
    assert reply["extra"]["model_event"] == {"cache": "read", "retries": 1, "stop_reason": "stop"}


@pytest.mark.parametrize(
    ("usage", "sent"),
    [
        ({"input_tokens": 20, "output_tokens": 4, "total_tokens": 24, "input_tokens_cache_read": 10}, 20),
        ({"input_tokens": 20, "output_tokens": 4, "total_tokens": 34, "input_tokens_cache_read": 10}, 30),
    ],
)
def test_tokens_of_a_cache_count_as_sent_whichever_way_the_log_counts_them(usage: Value, sent: int) -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"][0]["output"]["usage"] = usage
    metrics = steps(value)[2]["metrics"]
    assert (metrics["prompt_tokens"], metrics["cached_tokens"]) == (sent, 10)


def test_a_call_that_could_not_be_parsed_and_a_tool_that_failed_say_so() -> None:
    broken = {**CALL, "arguments": {}, "parse_error": "no JSON: {"}
    failed = {**ANSWER, "content": "", "error": {"type": "parsing", "message": "no JSON"}}
    item = trace(sample(SYSTEM, USER, {**ASKS, "tool_calls": [broken]}, failed))
    step = item.trajectory["steps"][2]
    assert step["tool_calls"][0]["extra"] == {"parse_error": "no JSON: {"}
    assert step["observation"]["results"][0]["extra"]["error"] == {"type": "parsing", "message": "no JSON"}
    assert list(item.content.calls) == [("look_up", 3, "error")]


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ({"type": "text", "text": "a"}, {"type": "text", "text": "a"}),
        (
            {"type": "image", "image": "data:image/png;base64,AA==", "detail": "auto"},
            {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AA=="}},
        ),
        (
            {"type": "image", "image": "../pictures/a.JPG"},
            {"type": "image", "source": {"media_type": "image/jpeg", "path": "../pictures/a.JPG"}},
        ),
        (
            {"type": "audio", "audio": "a.mp3", "format": "mp3"},
            {"type": "audio", "source": {"media_type": "audio/mpeg", "path": "a.mp3"}},
        ),
    ],
)
def test_texts_images_and_sounds_are_parts(part: Value, made: Value) -> None:
    step = steps(sample({**USER, "content": [part]}, SAYS))[0]
    assert step["message"] == [made]
    assert step["extra"] == {"id": "m2", "source": "input"}


def test_what_a_part_holds_beside_is_kept_without_its_data() -> None:
    part = {"type": "image", "image": "data:image/png;base64,AA==", "detail": "high"}
    step = steps(sample({**USER, "content": [part]}, SAYS))[0]
    assert step["extra"]["part_members"] == {"0": {"detail": "high"}}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "document": "a.pdf"},
        {"type": "data", "data": {"a": 1}},
        {"type": "image", "image": "<base64-data-removed>"},
        {"type": "odd"},
        "text",
        None,
    ],
)
def test_other_parts_are_kept_by_their_place_and_named(part: Any) -> None:
    item = trace(sample({**USER, "content": [{"type": "text", "text": "a"}, part]}, SAYS))
    step = item.trajectory["steps"][0]
    assert step["message"] == [{"type": "text", "text": "a"}]
    assert step["extra"]["other_parts"] == {"1": part}
    assert "parts of messages that ATIF has not" in repairs_of(item)


def test_reasoning_is_a_place_of_its_own() -> None:
    said = {**SAYS, "content": [{"type": "reasoning", "reasoning": "why"}, {"type": "text", "text": "so"}]}
    step = steps(sample(SYSTEM, USER, said))[2]
    assert (step["reasoning_content"], step["message"]) == ("why", [{"type": "text", "text": "so"}])
    assert "reasoning_parts" not in step["extra"]


def test_signed_and_redacted_reasoning_stays_opaque() -> None:
    opaque = {"type": "reasoning", "reasoning": "c2Vj", "redacted": True, "signature": "s"}
    step = steps(sample(SYSTEM, USER, {**SAYS, "content": [opaque, {"type": "text", "text": "so"}]}))[2]
    assert "reasoning_content" not in step
    assert step["extra"]["reasoning_parts"] == [opaque]


@pytest.mark.parametrize("role", ["exit", "narrator", None, 7])
def test_an_unknown_role_is_refused(role: Any) -> None:
    item = read(sample(SYSTEM, {**USER, "role": role}))
    assert isinstance(item, Refused)
    assert (item.code, "messages/1" in item.message) == ("unknown-role", True)


def test_answers_to_no_call_stay_where_they_stood_unlinked() -> None:
    item = trace(sample(ANSWER, {**ANSWER, "tool_call_id": "c9"}, events=[]))
    [step] = item.trajectory["steps"]
    assert [result["extra"]["original_call_id"] for result in step["observation"]["results"]] == ["c1", "c9"]
    assert "left unlinked" in repairs_of(item)


def test_an_id_used_again_is_made_unique() -> None:
    again: list[Value] = [{**ASKS, "id": "m6"}, {**ANSWER, "content": "second"}]
    made = steps(sample(SYSTEM, USER, ASKS, ANSWER, *again))
    links = [(r["source_call_id"], r["content"]) for step in made[2:] for r in step["observation"]["results"]]
    assert links == [("c1", "on its way"), ("c1#2", "second")]


@pytest.mark.parametrize(
    ("calls", "arguments"),
    [([json.dumps(CALL)], {"order": 1}), ([{**CALL, "arguments": "bun test"}], {"_raw": "bun test"})],
)
def test_calls_and_arguments_written_as_text_are_read_and_not_lost(calls: Any, arguments: Any) -> None:
    item = trace(sample(SYSTEM, USER, {**ASKS, "tool_calls": calls}, events=[]))
    [made] = item.trajectory["steps"][2]["tool_calls"]
    assert (made["function_name"], made["arguments"]) == ("look_up", arguments)


# what is stored elsewhere in the sample


HASH = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("protocol", ["attachment://", "tc://"])
def test_texts_that_were_moved_out_of_the_way_are_put_back(protocol: str) -> None:
    name = protocol + HASH
    value = sample({**SYSTEM, "content": name}, USER, SAYS, attachments={HASH: RULES, "f" * 32: "unused"})
    value["events"][0]["tools"] = [{**TOOL, "description": name}]
    item = trace(value)
    assert item.trajectory["steps"][0]["message"] == RULES
    assert item.trajectory["agent"]["tool_definitions"] == [{**TOOL, "description": RULES}]
    assert b"attachment" not in item.trajectory_bytes


def test_a_text_that_is_missing_is_left_as_it_is_named() -> None:
    item = trace(sample({**SYSTEM, "content": f"attachment://{HASH}"}, USER, SAYS))
    assert item.trajectory["steps"][0]["message"] == f"attachment://{HASH}"
    assert "left as they are named" in repairs_of(item)


@pytest.mark.parametrize("pools", ["events_data", "message_pool"])
def test_requests_are_read_out_of_the_pool_of_messages(pools: str) -> None:
    value = sample()
    pool = [{**SYSTEM, "content": "Another text than the one in the messages."}, *value["messages"][1:]]
    value[pools] = {"messages": pool, "calls": []} if pools == "events_data" else pool
    for event, end in zip(value["events"], (2, 4), strict=True):
        event |= {"input": [], "input_refs": [[0, 1], [1, end]]}
    assert trace(value).mixed == ("step 3: the model was sent other messages than stand in front of it",)
    pool[0] = SYSTEM
    assert trace(value).mixed == ()


@pytest.mark.parametrize("references", [[[0, 9]], [[5, 2]], [[-1, 2]], [["a", 1]], [[1]], 7, None])
def test_references_to_nothing_name_nothing(references: Any) -> None:
    value = sample(SYSTEM, USER, SAYS, events_data={"messages": [], "calls": []})
    value["events"][0] |= {"input": [], "input_refs": references}
    assert trace(value).mixed == ()


def test_an_older_log_holds_events_and_texts_in_its_transcript() -> None:
    value = sample(SYSTEM, without(USER, "id"), without(SAYS, "id"))
    events = [{"event": "step", "action": "begin", "type": "solver", "name": "generate"}, *value.pop("events")]
    value["transcript"] = {"events": events, "content": {HASH: QUESTION}}
    value["messages"][1]["content"] = f"tc://{HASH}"
    item = trace(value)
    assert [step["message"] for step in item.trajectory["steps"]] == [RULES, QUESTION, "The first one."]
    assert "metrics" in item.trajectory["steps"][2]


# which calls are the agent's


GRADER = {"id": "g1", "role": "assistant", "content": "GRADE: C", "source": "generate"}


def graded(inside: Value | None = None, after: Value | None = None) -> Value:
    """Return a sample with a grader's call, between events that say where it happens."""
    value = sample(SYSTEM, USER, SAYS)
    call = model(GRADER, {"role": "user", "content": "Is it right?"}, tools=[])
    if inside is None:
        value["events"].append(call)
        return value
    value["events"] += [inside, {**call, "span_id": "s2"}, *([after] if after else [])]
    return value


@pytest.mark.parametrize("name", ["m3", None])
def test_replies_that_are_equal_are_those_of_their_calls_in_order(name: str | None) -> None:
    twice = {"id": name, "role": "assistant", "content": "Wait.", "source": "generate"}
    value = sample(USER, twice, {**USER, "id": "m4", "content": "And now?"}, twice)
    value["events"][1]["output"]["usage"] = {"output_tokens": 7}
    made = steps(value)
    assert [made[at]["metrics"]["completion_tokens"] for at in (1, 3)] == [4, 7]


@pytest.mark.parametrize("source", ["input", "operator", None])
def test_an_example_that_says_what_the_model_says_is_none_of_its_replies(source: str | None) -> None:
    example = {"role": "assistant", "content": "Yes.", "source": source}
    reply = {"role": "assistant", "content": "Yes.", "source": "generate"}
    made = steps(sample(USER, example, {**USER, "id": "m4", "content": "And now?"}, reply))
    assert (made[1]["is_copied_context"], made[1]["llm_call_count"]) == (True, 0)
    assert made[3]["metrics"]["completion_tokens"] == 4


def test_a_log_that_names_no_sources_is_read_by_content() -> None:
    value = sample(USER, {"role": "assistant", "content": "Yes.", "source": "generate"})
    del value["messages"][1]["source"]
    assert "is_copied_context" not in steps(value)[1]


def test_a_graders_call_is_no_call_of_the_agent() -> None:
    item = trace(graded())
    assert item.mixed == ()
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]
    assert b"GRADE" not in item.trajectory_bytes


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ({"event": "step", "action": "begin", "type": "scorer"}, {"event": "step", "action": "end", "type": "scorer"}),
        ({"event": "span_begin", "id": "s2", "type": "scorer"}, None),
        ({"event": "span_begin", "id": "s2", "name": "scorers"}, None),
    ],
)
def test_a_grader_that_says_what_the_agent_said_is_told_by_where_it_happens(begin: Value, end: Value | None) -> None:
    value = graded(begin, end)
    for message in (value["messages"][2], value["events"][0]["output"]["choices"][0]["message"]):
        message["content"] = "GRADE: C"
        message.pop("id", None)
    value["events"][2]["output"]["choices"][0]["message"] = {"role": "assistant", "content": "GRADE: C"}
    value["events"] = [*value["events"][1:], value["events"][0]]
    item = trace(value)
    assert (item.mixed, item.trajectory["agent"]["tool_definitions"]) == ((), [TOOL])


def test_an_agent_in_a_span_beside_the_scorers_is_the_agent() -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"] = [
        {"event": "span_begin", "id": "s1", "name": "solvers"},
        {"event": "span_begin", "id": "s2", "parent_id": "s1", "type": "agent", "name": "react"},
        {**value["events"][0], "span_id": "s2"},
        {"event": "span_begin", "id": "s3", "name": "scorers"},
    ]
    assert trace(value).trajectory["agent"]["tool_definitions"] == [TOOL]


def test_another_system_prompt_or_other_tools_make_the_run_mixed() -> None:
    value = sample()
    value["events"][1]["input"] = [{**SYSTEM, "content": "Be quick."}, *value["events"][1]["input"][1:]]
    assert trace(value).mixed == ("step 4: another system prompt than in the call before",)
    value = sample()
    value["events"][1]["tools"] = []
    item = trace(value)
    assert item.mixed == ("step 4: other tools than in the call before",)
    assert item.trajectory["steps"][3]["extra"]["tools_offered"] == []
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]


def test_a_request_that_left_out_what_stands_in_front_is_marked() -> None:
    value = sample()
    assert not any("context_management" in step.get("extra", {}) for step in steps(value))
    value["events"][-1]["input"] = [one for one in value["events"][-1]["input"] if one["role"] != "tool"]
    made = steps(value)
    assert made[-1]["extra"]["context_management"] == {"type": "pruning", "boundary": "replace"}
    assert "context_management" not in made[2].get("extra", {})
    # without ids nobody can tell, for providers join messages
    for event in value["events"]:
        for one in event["input"]:
            one.pop("id", None)
    assert not any("context_management" in step.get("extra", {}) for step in steps(value))


@pytest.mark.parametrize(
    ("role", "change"),
    [
        ("user", {"content": "Something else."}),
        ("tool", {"content": "(Tool result removed)"}),
        ("assistant", {"content": "I look elsewhere."}),
        ("assistant", {"tool_calls": [{"id": "c1", "function": "look_up", "arguments": {"order": 77}}]}),
    ],
)
def test_a_request_that_changed_what_stands_in_front_is_marked(role: str, change: dict[str, Any]) -> None:
    value = sample()
    sent = value["events"][-1]["input"]
    value["events"][-1]["input"] = [{**one, **change} if one["role"] == role else one for one in sent]
    made = steps(value)
    assert made[-1]["extra"]["context_management"] == {"type": "rewriting", "boundary": "replace"}
    assert "context_management" not in made[2].get("extra", {})


def test_a_message_that_was_sent_and_is_kept_nowhere_is_marked() -> None:
    value = sample()
    value["events"][-1]["input"].append({"role": "user", "content": "Go on."})
    assert steps(value)[-1]["extra"]["context_management"] == {"type": "rewriting", "boundary": "replace"}


def test_messages_of_the_user_that_a_provider_joined_are_the_same() -> None:
    value = sample()
    joined = {**USER, "content": f"{USER['content']}\nGo on."}
    value["messages"].insert(2, {"role": "user", "content": "Go on.", "id": "m2b"})
    for event in value["events"]:
        event["input"] = [joined if one["role"] == "user" else one for one in event["input"]]
    item = trace(value)
    assert not item.mixed
    assert not any("context_management" in step.get("extra", {}) for step in item.trajectory["steps"])


def test_reasoning_that_is_not_sent_again_changes_nothing() -> None:
    value = sample()
    thought = {"type": "reasoning", "reasoning": "Perhaps."}
    for holder in (value["messages"][2], value["events"][0]["output"]["choices"][0]["message"]):
        holder["content"] = [thought, {"type": "text", "text": holder["content"]}]
    assert not any("context_management" in step.get("extra", {}) for step in steps(value))


def test_what_follows_a_compaction_is_marked() -> None:
    value = sample()
    value["events"].insert(1, {"event": "compaction", "type": "summary"})
    assert steps(value)[-1]["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    value = sample()
    value["events"].append({"event": "compaction", "type": "summary"})
    assert not any("context_management" in step.get("extra", {}) for step in steps(value))


def test_the_same_tools_in_another_order_or_padded_are_the_same() -> None:
    other = {**TOOL, "name": "send"}
    value = sample()
    value["events"][0]["tools"] = [TOOL, other]
    value["events"][1]["tools"] = [other, {**TOOL, "options": None}]
    assert trace(value).mixed == ()


def test_neighbouring_messages_that_a_provider_joins_are_what_was_sent() -> None:
    more = {"id": "m9", "role": "user", "content": "Be quick."}
    value = sample(SYSTEM, USER, more, SAYS)
    value["events"][0]["input"] = [SYSTEM, {**USER, "content": f"{QUESTION}\nBe quick."}]
    assert trace(value).mixed == ()


def test_a_system_message_that_only_the_request_holds_is_a_step() -> None:
    value = sample(USER, SAYS)
    value["events"][0]["input"] = [SYSTEM, USER]
    item = trace(value)
    assert [step["source"] for step in item.trajectory["steps"]] == ["system", "user", "agent"]
    assert item.mixed == ()
    assert "put in front" in repairs_of(item)


# sub-agents


def delegating() -> Value:
    """Return a sample whose tool asked another agent, which called a tool of its own."""
    value = sample()
    task = {"id": "x1", "role": "user", "content": "Look for parcel 1."}
    search = {
        "id": "x2",
        "role": "assistant",
        "content": "",
        "source": "generate",
        "tool_calls": [{**CALL, "id": "d1"}],
    }
    hit = {"id": "x3", "role": "tool", "content": "found", "tool_call_id": "d1"}
    done = {"id": "x4", "role": "assistant", "content": "It is there.", "source": "generate"}
    first, second = value["events"]
    value["events"] = [
        {"event": "span_begin", "id": "s1", "type": "agent", "name": "react"},
        {**first, "span_id": "s1"},
        {"event": "span_begin", "id": "s2", "parent_id": "s1", "type": "tool", "name": "look_up"},
        {"event": "span_begin", "id": "s3", "parent_id": "s2", "type": "agent", "name": "searcher"},
        {**model(search, task, tools=[{**TOOL, "name": "search"}]), "span_id": "s3"},
        {**model(done, task, search, hit, tools=[{**TOOL, "name": "search"}]), "span_id": "s3"},
        {"event": "tool", "id": "c1", "function": "look_up", "span_id": "s2", "agent_span_id": "s3"},
        {**second, "span_id": "s1"},
    ]
    return value


def test_a_sub_agent_that_ran_as_a_tool_is_embedded_where_the_tool_answered() -> None:
    item = trace(delegating())
    [inner] = item.trajectory["subagent_trajectories"]
    assert [(step["source"], step["message"]) for step in inner["steps"]] == [
        ("user", "Look for parcel 1."),
        ("agent", ""),
        ("agent", "It is there."),
    ]
    assert inner["steps"][1]["observation"]["results"][0]["content"] == "found"
    assert all(step["metrics"]["prompt_tokens"] == 20 for step in inner["steps"][1:])
    assert (inner["agent"]["name"], inner["agent"]["extra"]) == ("searcher", {"model_calls": 2})
    [result] = item.trajectory["steps"][2]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": inner["trajectory_id"]}]


def test_a_sub_agents_prompt_and_tools_are_not_the_agents() -> None:
    item = trace(delegating())
    assert item.mixed == ()
    assert parts(item, "tool_bindings") == [("look_up", "schema")]
    assert item.observed == trace(sample()).observed


def test_a_sub_agent_that_cannot_be_read_is_left_out_and_named() -> None:
    value = delegating()
    value["events"][5]["input"][0]["role"] = "narrator"
    item = trace(value)
    assert "subagent_trajectories" not in item.trajectory
    assert "a sub-agent whose messages cannot be read" in repairs_of(item)


def test_what_a_tool_asked_a_model_is_no_call_of_a_sub_agent() -> None:
    value = delegating()
    inside = {"event": "span_begin", "id": "s4", "parent_id": "s3", "type": "tool", "name": "search"}
    asked = model({"id": "y1", "role": "assistant", "content": "a summary"}, {"role": "user", "content": "Sum up."})
    value["events"][6:6] = [inside, {**asked, "span_id": "s4"}]
    [inner] = trace(value).trajectory["subagent_trajectories"]
    assert inner["agent"]["extra"] == {"model_calls": 2}
    assert inner["steps"][-1]["message"] == "It is there."


def test_an_agent_that_took_over_is_no_sub_agent() -> None:
    value = delegating()
    value["events"][7]["span_id"] = "s3"
    [inner] = trace(value).trajectory["subagent_trajectories"]
    assert inner["agent"]["extra"] == {"model_calls": 2}
    del value["events"][4:6]
    assert "subagent_trajectories" not in trace(value).trajectory


def test_spans_that_lie_in_a_circle_hold_no_sub_agent() -> None:
    value = delegating()
    value["events"][2]["parent_id"] = "s3"
    value["events"][2]["type"] = "agent"
    assert "subagent_trajectories" not in trace(value).trajectory


# text that no model wrote


@pytest.mark.parametrize("source", ["input", "operator", None])
def test_a_reply_that_no_model_wrote_trains_nobody(source: str | None) -> None:
    shown = {"id": "d1", "role": "assistant", "content": [{"type": "reasoning", "reasoning": "r"}], "source": source}
    made = steps(sample(SYSTEM, USER, shown, {**USER, "id": "m8", "content": "And now?"}, SAYS))
    assert (made[2]["is_copied_context"], made[2]["llm_call_count"]) == (True, 0)
    assert made[2]["extra"]["reasoning_content"] == "r"
    assert "is_copied_context" not in made[4]


@pytest.mark.parametrize("source", [None, "operator"])
def test_an_output_does_not_make_an_answer_a_models(source: str | None) -> None:
    answer = {**SAYS, "source": source}
    item = trace(sample(SYSTEM, USER, answer, output=output(answer)))
    assert item.trajectory["steps"][2]["is_copied_context"] is True
    assert item.trajectory["extra"]["sample"]["output"] == output(answer)


def test_a_reply_that_a_call_gave_is_the_models_whatever_its_message_says() -> None:
    value = sample(SYSTEM, USER, SAYS)
    del value["messages"][2]["source"]
    assert "is_copied_context" not in steps(value)[2]


def test_a_reply_that_was_altered_when_all_was_done_is_as_the_model_wrote_it() -> None:
    value = sample(SYSTEM, USER, {**SAYS, "content": "The first one.\n\nfirst"})
    wrote = {**SAYS, "tool_calls": [{**CALL, "function": "submit", "arguments": {"answer": "first"}}]}
    value["events"][0]["output"]["choices"][0]["message"] = wrote
    item = trace(value)
    step = item.trajectory["steps"][2]
    assert (step["message"], step["tool_calls"][0]["function_name"]) == ("The first one.", "submit")
    assert step["extra"]["altered"] == {"content": "The first one.\n\nfirst"}
    assert "is_copied_context" not in step
    assert "as it wrote them" in repairs_of(item)


def test_a_call_with_other_arguments_is_another_reply() -> None:
    wrote = {**SAYS, "tool_calls": [{**CALL, "arguments": {"answer": "first"}}]}
    value = sample(SYSTEM, USER, {**SAYS, "tool_calls": [{**CALL, "arguments": {"answer": "second"}}]})
    value["events"][0]["output"]["choices"][0]["message"] = wrote
    item = trace(value)
    assert item.trajectory["steps"][2]["tool_calls"][0]["arguments"] == {"answer": "first"}
    assert "as it wrote them" in repairs_of(item)


def test_a_reply_that_a_later_request_held_altered_trains_nobody_and_both_are_kept() -> None:
    value = sample(SYSTEM, USER, {**SAYS, "content": "ANSWER: A"}, {**USER, "id": "m6"}, {**SAYS, "id": "m7"})
    value["events"][0]["output"]["choices"][0]["message"] = SAYS
    item = trace(value)
    step = item.trajectory["steps"][2]
    assert (step["message"], step["is_copied_context"]) == ("ANSWER: A", True)
    assert step["extra"]["generated"] == {"content": "The first one."}
    assert "marked, both kept" in repairs_of(item)
    value["events"][1]["input"][2] = SAYS
    step = trace(value).trajectory["steps"][2]
    assert (step["message"], "is_copied_context" in step) == ("The first one.", False)


def test_a_reply_of_a_log_without_events_is_believed_by_its_source() -> None:
    value = sample(SYSTEM, USER, SAYS, events=[], output=output(SAYS))
    item = trace(value)
    step = item.trajectory["steps"][2]
    assert "is_copied_context" not in step
    assert step["metrics"]["prompt_tokens"] == 20
    assert "tool_definitions" not in item.trajectory["agent"]


# the harness


def test_the_prompt_is_the_plans_template_and_the_message_without_the_input() -> None:
    value = sample(SYSTEM, {**USER, "content": f"Read this.\n{QUESTION}\nAnswer."}, SAYS)
    first = trace(value)
    assert parts(first, "prompt_templates") == [("system", "template"), ("first-user", "substituted")]
    other = "Where did the other parcel end up, and why?"
    value = sample(SYSTEM, {**USER, "content": f"Read this.\n{other}\nAnswer."}, SAYS, input=other)
    assert trace(value).observed == first.observed
    value = sample(SYSTEM, {**USER, "content": f"Read that.\n{other}\nAnswer."}, SAYS, input=other)
    assert trace(value).observed != first.observed


@pytest.mark.parametrize(
    ("given", "text"),
    [("too short", "Read: too short"), (QUESTION, f"{QUESTION} {QUESTION}"), (QUESTION, "Another text altogether.")],
)
def test_an_input_that_is_short_or_stands_there_twice_or_not_at_all_leaves_the_text_as_it_was(
    given: str, text: str
) -> None:
    item = trace(sample(SYSTEM, {**USER, "content": text}, SAYS, input=given))
    assert parts(item, "prompt_templates")[1] == ("first-user", "rendered")


def test_the_texts_of_an_input_of_messages_are_taken_out_each() -> None:
    given: list[Value] = [{"role": "system", "content": "Facts that the dataset brings along."}, USER]
    item = trace(sample(given[0], given[1], SAYS, input=given), {**HEADER, "plan": {"steps": []}})
    assert parts(item, "prompt_templates") == [("system", "substituted"), ("first-user", "substituted")]
    assert "input" not in item.trajectory["extra"]["sample"]


def test_a_text_of_the_input_that_is_a_piece_of_another_is_taken_out_with_it() -> None:
    given = [USER, {"role": "user", "content": f"Once more: {QUESTION}"}]
    item = trace(sample({**USER, "content": f"Read this.\nOnce more: {QUESTION}"}, SAYS, input=given))
    assert parts(item, "prompt_templates") == [("first-user", "substituted")]


def plan(template: str) -> Value:
    return {**HEADER, "plan": {"steps": [{"solver": "inspect_ai/system_message", "params": {"template": template}}]}}


@pytest.mark.parametrize(
    ("template", "form", "codes"),
    [
        (RULES, "template", []),
        ("You look up parcels. {how} guess nothing.", "template", []),
        ("You look up parcels. {", "rendered", ["config-contradicted"]),
        ("{rules}", "rendered", []),
        ("prompts/rules_of_the_agent.txt", "rendered", []),
        ("You look up letters. Answer in one sentence.", "rendered", ["config-contradicted"]),
    ],
)
def test_a_template_of_the_plan_counts_where_the_message_is_a_rendering_of_it(
    template: str, form: str, codes: list[str]
) -> None:
    item = trace(sample(), plan(template))
    assert parts(item, "prompt_templates")[0] == ("system", form)
    assert [found.code for found in item.findings] == codes
    # what such a header says is not believed in anything else either
    assert parts(item, "runtime") == ([] if codes else [("message_limit", "constant")])


def test_tools_are_those_of_the_request() -> None:
    item = trace(sample())
    assert parts(item, "tool_bindings") == [("look_up", "schema")]
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]


def test_no_tools_are_known_to_be_none_where_a_request_offered_none_and_nothing_is_called() -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"][0]["tools"] = []
    assert parts(trace(value), "tool_bindings") == [("tools", "known-empty")]
    provider = {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "s", "arguments": "{}", "result": ""}
    searched = {**SAYS, "content": [provider, {"type": "text", "text": "So."}]}
    value = sample(SYSTEM, USER, searched)
    value["events"][0]["tools"] = []
    assert parts(trace(value), "tool_bindings") == []
    value = sample(SYSTEM, USER, ASKS, ANSWER)
    value["events"][0]["tools"] = []
    assert parts(trace(value), "tool_bindings") == []
    assert parts(trace(sample(SYSTEM, USER, SAYS, events=[])), "tool_bindings") == []


def test_limits_and_settings_are_the_runtime() -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"][0]["config"] = {"parallel_tool_calls": False, "temperature": 1.0, "max_tokens": None}
    item = trace(value)
    assert parts(item, "runtime") == [("message_limit", "constant"), ("parallel_tool_calls", "constant")]
    assert item.run["sampling"] == {"parallel_tool_calls": False, "temperature": 1.0, "tool_choice": "auto"}


def test_settings_of_a_later_request_are_kept_and_one_that_changes_is_no_part() -> None:
    value = sample()
    for event, parallel, name in zip(value["events"], (True, False), ("lab/m", "lab/n"), strict=True):
        event |= {"config": {"parallel_tool_calls": parallel, "stop_seqs": ["END"]}, "model": name}
    item = trace(value)
    assert parts(item, "runtime") == [("message_limit", "constant"), ("stop_seqs", "constant")]
    config = {"parallel_tool_calls": False, "stop_seqs": ["END"]}
    assert item.trajectory["steps"][3]["extra"]["request"] == {"config": config, "model": "lab/n"}
    assert "request" not in item.trajectory["steps"][2]["extra"]


def test_the_model_is_the_one_that_was_asked() -> None:
    value = sample(SYSTEM, USER, SAYS)
    value["events"][0]["model"] = "lab/other"
    assert trace(value).run["model"] == {"name": "lab/other"}
    assert trace(sample(SYSTEM, USER, SAYS, events=[])).run["model"] == {"name": "lab/m"}


def test_a_mock_model_is_none() -> None:
    value = sample()
    assert "demonstration" not in trace(value).run
    for event in value["events"]:
        event["model"] = "mockllm/model"
    item = trace(value)
    assert item.run["demonstration"] is True
    assert "made by no model" in repairs_of(item)


def test_without_a_reply_nothing_is_said_of_the_prompt() -> None:
    assert parts(trace(sample(SYSTEM, USER, events=[])), "prompt_templates") == []


def test_labels_of_the_log_are_no_identity() -> None:
    spec = {**SPEC, "revision": {"commit": "def"}, "packages": {"inspect_ai": "0.3.9"}, "run_id": "r2", "model": "x"}
    assert trace(sample(), {**HEADER, "eval": spec}).observed == trace(sample()).observed


# run and outcome


def test_run_and_labels_come_from_the_sample_and_the_header() -> None:
    item = trace(sample(started_at="2026-01-31T12:00:00+00:00", sandbox={"type": "docker"}))
    assert item.run == {
        "task": "1",
        "attempt": 2,
        "start": "2026-01-31T12:00:00+00:00",
        "domain": "parcels",
        "model": {"name": "lab/m"},
        "sampling": {"temperature": 0.0, "tool_choice": "auto"},
        "environment": {
            "created": "2026-01-31T12:00:00+00:00",
            "packages": {"inspect_ai": "0.3.200"},
            "revision": {"type": "git", "origin": "here", "commit": "abc"},
            "run_id": "r1",
            "sandbox": {"type": "docker"},
            "task_id": "t1",
            "task_version": 0,
        },
    }
    agent = item.trajectory["agent"]
    assert (agent["name"], agent["version"]) == ("system_message, generate", "0.3.200")
    assert item.trajectory["extra"]["eval"]["dataset"] == {"name": "parcels"}


@pytest.mark.parametrize(
    ("members", "spec", "session"),
    [
        ({"uuid": "u7"}, {}, "u7"),
        ({"uuid": None}, {}, "r1/t1/1/2"),
        ({"uuid": None, "id": "a b"}, {"eval_id": "e1"}, "e1/a b/2"),
        ({"uuid": ""}, {"run_id": None}, None),
    ],
)
def test_the_runs_own_key_is_the_session(members: Value, spec: Value, session: str | None) -> None:
    item = trace(sample(**members), {**HEADER, "eval": {**SPEC, **spec}})
    assert item.trajectory.get("session_id") == session


@pytest.mark.parametrize(("given", "kept"), [(1, 1), ("1", None), (2**70, 2**70)])
def test_ids_are_numbers_or_texts_and_stay_apart(given: Any, kept: Any) -> None:
    item = trace(sample(id=given))
    assert item.run["task"] == str(given)
    assert item.trajectory["extra"]["sample"].get("id") == kept


@pytest.mark.parametrize(
    ("scores", "outcome", "codes"),
    [
        ({"match": {"value": "C"}}, {"status": "success", "grader": {"name": "match"}, "rule": "value"}, []),
        ({"match": {"value": "I"}}, {"status": "failure", "grader": {"name": "match"}, "rule": "value"}, []),
        ({"match": {"value": "P"}}, {"status": "failure", "grader": {"name": "match"}, "rule": "value"}, []),
        ({"match": {"value": "N"}}, {"status": "failure", "grader": {"name": "match"}, "rule": "value"}, []),
        ({"m": {"value": "Correct"}}, {"status": "success", "grader": {"name": "m"}, "rule": "value"}, []),
        ({"m": {"value": True}}, {"status": "success", "grader": {"name": "m"}, "rule": "value"}, []),
        ({"m": {"value": 1.0}}, {"status": "success", "reward": 1.0, "grader": {"name": "m"}, "rule": "score"}, []),
        ({"m": {"value": 0.5}}, {"status": "failure", "reward": 0.5, "grader": {"name": "m"}, "rule": "score"}, []),
        ({"a": {"value": "C"}, "b": {"value": 1}}, {"status": "success", "rule": "scores"}, []),
        ({"m": {"value": 7}}, {"status": "unknown"}, ["verdict-unread"]),
        ({"a": {"value": "I"}, "b": {"value": 7}}, {"status": "unknown"}, ["verdict-unread"]),
        ({"a": {"value": "C"}, "b": {"value": "I"}}, {"status": "unknown"}, ["verdict-conflict"]),
        ({"a": {"value": "C"}, "b": {"value": {"x": 1}}}, {"status": "unknown"}, ["verdict-unread"]),
        ({"m": {"value": "c"}}, {"status": "unknown"}, ["verdict-unread"]),
        ({"m": {"value": [1]}}, {"status": "unknown"}, ["verdict-unread"]),
        ({"m": None}, {"status": "unknown"}, ["verdict-unread"]),
        ([1], {"status": "unknown"}, ["verdict-unread"]),
        ({}, {"status": "unknown"}, []),
        (None, {"status": "unknown"}, []),
    ],
)
def test_every_score_must_say_the_same(scores: Any, outcome: Value, codes: list[str]) -> None:
    item = trace(sample(scores=scores))
    assert without(item.outcome, "checks") == outcome
    assert item.outcome.get("checks") == scores
    assert [found.code for found in item.findings] == codes


def test_a_score_that_is_no_number_is_none_and_survives_by_name() -> None:
    raw = json.dumps(sample(scores={"m": {"value": float("nan")}})).encode()
    assert b"NaN" in raw
    item = trace(raw)
    assert item.outcome == {"status": "unknown", "checks": {"m": {"value": "NaN"}}}
    assert "NaN is not JSON: kept as text" in repairs_of(item)
    assert [found.code for found in item.findings] == ["verdict-unread"]


def test_the_reward_that_counts_as_success_is_the_corpus_own() -> None:
    record = Record(json.dumps(sample(scores={"m": {"value": 5}})).encode(), "l", "l#0", around=HEADER)
    limits = record.context.limits._replace(success_reward=5.0)
    [item] = IMPORTER.read(record._replace(context=record.context._replace(limits=limits)))
    assert isinstance(item, Imported)
    assert item.outcome["status"] == "success"


def test_the_single_score_of_an_old_log_counts() -> None:
    value = without(sample(score={"value": "I"}), "scores")
    assert trace(value).outcome["status"] == "failure"


def test_an_error_ends_the_run_whatever_its_scores_say() -> None:
    error = {"message": "the sandbox is gone", "traceback": "…", "traceback_ansi": "\x1b[31m…"}
    item = trace(sample(error=error))
    assert (item.outcome["status"], item.outcome["termination"]) == ("error", "error")
    assert item.trajectory["extra"]["sample"]["error"] == without(error, "traceback_ansi")


def test_an_invalidated_result_is_unknown_and_says_who_withdrew_it() -> None:
    said = {"author": "somebody", "reason": "the wrong image"}
    item = trace(sample(invalidation=said))
    assert item.outcome["status"] == "unknown"
    assert item.outcome["checks"] == {"scores": sample()["scores"], "invalidation": said}
    assert item.trajectory_bytes == trace(sample()).trajectory_bytes


def test_a_limit_is_the_termination_and_the_score_still_counts() -> None:
    item = trace(sample(limit={"type": "message", "limit": 30}))
    assert (item.outcome["status"], item.outcome["termination"]) == ("success", "message")
    assert trace(sample(output=output(SAYS))).outcome["termination"] == "stop"


def test_a_new_score_leaves_the_trace_what_it_is() -> None:
    graded_again = sample(scores={"match": {"value": "I"}})
    spec = {**SPEC, "scorers": [{"name": "match"}], "metrics": [], "task_args_passed": {}}
    assert trace(graded_again, {**HEADER, "eval": spec}).trajectory_bytes == trace(sample()).trajectory_bytes


def test_the_log_of_a_run_that_broke_off_gives_the_same_trace() -> None:
    begun = without(HEADER, "status")
    assert trace(sample(), begun).trajectory_bytes == trace(sample()).trajectory_bytes
    assert trace(sample(), begun).run == trace(sample()).run


# what else a sample holds


def test_everything_else_is_kept_and_repeated_texts_are_not() -> None:
    said = output(SAYS, completion="The first one.")
    events = [*sample()["events"], {"event": "info", "data": "a note"}, {"event": "state", "changes": []}]
    events[1]["output"] = output(SAYS)
    item = trace(sample(output=said, store={"a": 1}, metadata={}, choices=None, events=events))
    extra = item.trajectory["extra"]
    assert extra["sample"] == {"id": 1, "target": "first", "store": {"a": 1}, "metadata": {}}
    assert extra["events"] == [{"event": "info", "data": "a note"}]


def test_an_output_that_is_no_reply_in_the_messages_is_kept() -> None:
    other = output({"role": "assistant", "content": "never said"})
    assert trace(sample(output=other)).trajectory["extra"]["sample"]["output"] == other


def test_a_sample_without_messages_begins_with_its_input() -> None:
    item = trace(sample(messages=[], events=[], error={"message": "gone"}))
    assert [(step["source"], step["message"]) for step in item.trajectory["steps"]] == [("user", QUESTION)]
    assert "its input stands in their place" in repairs_of(item)


# files


def test_a_document_is_a_log_by_its_content() -> None:
    log = {**HEADER, "samples": [sample()]}
    raw = json.dumps(log, indent=1).encode()
    assert IMPORTER.recognise(Head(raw, complete=True)) == 90
    assert IMPORTER.recognise(Head(raw[:200], complete=False)) == 90
    assert IMPORTER.recognise(Head(b'{"version": 2, "eval": "x", "plan": {}}', complete=True)) == 0
    assert IMPORTER.recognise(Head(b'{"status": "ok", "eval": {}, "plan": {}}', complete=True)) == 0
    assert IMPORTER.recognise(Head(json.dumps([log]).encode(), complete=True)) == 0
    assert IMPORTER.recognise(Head(b'{"messages": [], "version": 1}', complete=True)) == 0


@pytest.mark.parametrize("late", [False, True])
def test_samples_of_a_document_are_read_one_by_one_whatever_stands_where(tmp_path: Path, late: bool) -> None:
    header = dict(HEADER) if not late else {"version": 2, "status": "success", "plan": {}}
    behind = {"eval": SPEC, "plan": PLAN} if late else {}
    log = {**header, **({"eval": {}} if late else {}), "samples": [sample(), sample(id=2, uuid="u2")], **behind}
    found = Inbox(tmp_path).write("log.json", json.dumps({**log, "reductions": []}))
    read = Inbox(tmp_path).read(found.name)
    assert [item.run["task"] for item in read.traces] == ["1", "2"]
    assert not read.refused
    assert [item.where for item in read.traces] == ["log.json#0", "log.json#1"]


def test_a_log_that_ends_in_its_middle_gives_what_stands_in_front(tmp_path: Path) -> None:
    raw = json.dumps({**HEADER, "samples": [sample(), sample(id=2)]})
    inbox = Inbox(tmp_path)
    inbox.write("log.json", raw[:-200])
    read = inbox.read()
    assert [item.run["task"] for item in read.traces] == ["1"]
    assert set(read.codes) <= {"record-truncated", "record-not-json"}
    assert "record-truncated" in read.codes


MEMBERS: dict[str, bytes] = {
    "_journal/start.json": json.dumps(without(HEADER, "status")).encode(),
    "samples/1_epoch_2.json": json.dumps(sample()).encode(),
    "samples/a/b_epoch_1.json": json.dumps(sample(id="a/b", epoch=1, uuid="u2")).encode(),
    "summaries.json": b"[]",
    "header.json": json.dumps(HEADER).encode(),
}


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, data in members.items():
            written.writestr(name, data)
    return path


@pytest.mark.parametrize("how", ["deflate", "zstd", "frames"])
def test_each_sample_of_an_archive_is_a_run(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log.eval"
    if how == "deflate":
        archive(path, MEMBERS)
    else:
        zstd_archive(path, MEMBERS, count=1 if how == "zstd" else 3)
    read = Inbox(tmp_path).read()
    assert not read.refused
    assert [item.run["task"] for item in read.traces] == ["1", "a/b"]
    assert read.traces[0].trajectory_bytes == trace(sample()).trajectory_bytes
    assert read.traces[0].where == "log.eval/samples/1_epoch_2.json"


def pieces(**members: Any) -> dict[str, bytes]:
    """Return the members of an archive that holds `sample()` in pieces of two elements."""
    value = sample()
    pool = [{**SYSTEM, "content": "attachment://1"}, USER, ASKS, ANSWER, SAYS]
    for event, end in zip(value["events"], (2, 4), strict=True):
        event |= {"input": [], "input_refs": [[0, end]]}
    shell = {**without(value, "messages", "events"), "message_refs": [[0, 3], [3, 5]], **members}
    found: Value = {
        "sample.json": shell,
        "metadata.json": {"level": 1},
        "events/0.json": value["events"],
        "events/uuids.json": ["e1", "e2"],
        "attachments/0.json": ["unused", RULES],
        **{f"messages/{at}.json": pool[at : at + 2] for at in (0, 2, 4)},
    }
    inside = {f"samples/1_epoch_2/{name}": json.dumps(each).encode() for name, each in found.items()}
    return {"header.json": MEMBERS["header.json"], **inside}


def test_a_sample_in_pieces_is_put_together(tmp_path: Path) -> None:
    archive(tmp_path / "log.eval", pieces())
    item = Inbox(tmp_path).read().only
    assert item.trajectory_bytes == trace(sample(metadata={"level": 1})).trajectory_bytes
    assert item.mixed == ()
    archive(tmp_path / "log.eval", without(pieces(), "samples/1_epoch_2/metadata.json"))
    assert Inbox(tmp_path).read().only.trajectory_bytes == trace(sample(metadata={})).trajectory_bytes


@pytest.mark.parametrize("name", ["messages/2.json", "messages/4.json", "events/0.json"])
def test_a_sample_of_which_a_piece_is_missing_or_broken_is_refused(tmp_path: Path, name: str) -> None:
    members = pieces()
    del members[f"samples/1_epoch_2/{name}"]
    archive(tmp_path / "log.eval", members)
    read = Inbox(tmp_path).read()
    assert (read.codes, "missing" in read.refused[0].message) == (["record-unfit"], True)
    archive(tmp_path / "log.eval", {**members, f"samples/1_epoch_2/{name}": b"["})
    read = Inbox(tmp_path).read()
    assert (read.codes, "no JSON" in read.refused[0].message) == (["record-unfit"], True)


@pytest.mark.parametrize("references", [7, [[0, 99]], [["a", 1]], [[3, 1]]])
def test_a_sample_in_pieces_whose_references_lead_nowhere_is_refused(tmp_path: Path, references: Any) -> None:
    archive(tmp_path / "log.eval", pieces(message_refs=references))
    assert Inbox(tmp_path).read().codes == ["record-unfit"]


def test_pieces_that_are_more_than_a_record_may_be_are_refused(tmp_path: Path) -> None:
    members = pieces()
    archive(tmp_path / "log.eval", members)
    read = Inbox(tmp_path).read(max_record=max(map(len, members.values())))
    assert (read.codes, "more than" in read.refused[0].message) == (["record-unfit"], True)


def test_a_run_that_broke_off_is_read_by_what_was_written_at_its_start(tmp_path: Path) -> None:
    archive(tmp_path / "log.eval", without(MEMBERS, "header.json", "summaries.json"))
    read = Inbox(tmp_path).read()
    assert (len(read.traces), read.refused) == (2, [])
    assert read.traces[0].trajectory_bytes == trace(sample()).trajectory_bytes


def test_an_archive_without_a_finished_sample_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "log.eval", {"_journal/start.json": MEMBERS["_journal/start.json"]})
    assert Inbox(tmp_path).read().codes == ["record-unfit"]


def test_an_archive_whose_header_cannot_be_read_is_refused_sample_by_sample(tmp_path: Path) -> None:
    archive(tmp_path / "log.eval", {"header.json": b"{", "samples/1_epoch_1.json": MEMBERS["samples/1_epoch_2.json"]})
    read = Inbox(tmp_path).read()
    assert read.codes == ["record-unfit"]
    assert "header" in read.refused[0].message


def test_a_pointer_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.write("log.eval", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 131\n")
    assert inbox.read().codes == ["git-lfs-pointer"]


# bad input


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[" * 10_000 + b"]" * 10_000, "record-not-json"),
        (b'{"id": 1, "epoch": 1, "input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "record-not-json"),
        (b"[]", "record-unfit"),
        (b"7", "record-unfit"),
        (b'{"id": 1}', "record-unfit"),
        (b'{"id": 1, "epoch": 1}', "record-unfit"),
        (b'{"id": 1, "epoch": 1, "messages": {}}', "record-unfit"),
        (b'{"id": 1, "epoch": 1, "messages": [7]}', "record-unfit"),
        (b'{"id": 1, "epo', "record-not-json"),
    ],
)
def test_a_record_of_another_shape_is_refused(raw: bytes, code: str) -> None:
    item = read(raw)
    assert isinstance(item, Refused)
    assert item.code == code


def test_a_sample_without_a_header_is_refused() -> None:
    item = read(sample(), {"version": 2})
    assert isinstance(item, Refused)
    assert (item.code, "header" in item.message) == ("record-unfit", True)


def test_noise_surrogates_and_large_numbers_are_kept() -> None:
    noise = "\x1b[31mred\x1b[0m\x00\ufffd\ud83d"
    value = sample(SYSTEM, {**USER, "content": noise}, SAYS, input=noise, store={"n": 2**70})
    item = trace(value)
    assert item.trajectory["steps"][1]["message"] == noise
    assert item.trajectory["extra"]["sample"]["store"] == {"n": 2**70}
    assert b"\\ud83d" in item.trajectory_bytes


def test_a_key_that_stands_twice_is_named() -> None:
    raw = json.dumps(sample()).encode().replace(b'"epoch": 2', b'"epoch": 2, "epoch": 2')
    assert "duplicate key 'epoch'" in repairs_of(trace(raw))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "text", "attachment://" + HASH, [], {}, [None, 1, "a"], {"a": {"b": [{}]}}]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where every value in a document stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for name, member in inner for place in places(member, (*at, name)))]


FULL: Value = {
    "sample": {
        **delegating(),
        "events": [
            *delegating()["events"],
            *graded({"event": "span_begin", "id": "s9", "type": "scorer", "parent_id": "s1"})["events"],
            {"event": "step", "action": "begin", "type": "solver"},
        ],
        "messages": [
            SYSTEM,
            {**USER, "content": [{"type": "text", "text": QUESTION}, {"type": "image", "image": "a.png"}]},
            {**SAYS, "content": [{"type": "reasoning", "reasoning": "r", "signature": "s"}], "tool_calls": [CALL]},
            {**ANSWER, "error": {"type": "timeout", "message": "late"}},
        ],
        "events_data": {"messages": [SYSTEM, USER], "calls": []},
        "attachments": {HASH: "text"},
        "output": output(SAYS),
        "limit": {"type": "token", "limit": 1},
        "error_retries": [{"message": "again", "events": []}],
        "invalidation": None,
    },
    "header": HEADER,
}
PLACES = places(FULL)


@given(st.sampled_from(PLACES), ODD, st.booleans())
def test_a_wrong_value_anywhere_is_read_or_refused(place: tuple[Any, ...], odd: Any, gone: bool) -> None:
    document: Any = {"root": copy.deepcopy(FULL)}
    holder = document
    *path, last = ("root", *place)
    for name in path:
        holder = holder[name]
    if gone:
        del holder[last]
    else:
        holder[last] = odd
    root = document.get("root")
    value = root if isinstance(root, dict) else {}
    header = value.get("header")
    item = read(value.get("sample"), header if isinstance(header, dict) else {})
    if isinstance(item, Imported):
        require_valid(item)
    else:
        assert item.code in ("record-unfit", "unknown-role"), item


def test_the_table_of_verdicts_names_known_statuses() -> None:
    for _, status in SUCCESS:
        assert status.partition(",")[0].partition(":")[0] in (*STATUSES, "by reward")
