"""Chat messages in every form in which they occur."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Context as Around
from tracemark.importers.base import Imported, Limits, Record, Refused
from tracemark.importers.openai_chat import IMPORTER, SUCCESS
from tracemark.model.trace import Outcome, Run
from tracemark.model.trajectory import problems

from .conftest import Inbox, record_of, repairs_of, require_valid

SYSTEM = {"role": "system", "content": "Be exact."}
USER = {"role": "user", "content": "Where is it?"}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Find.", "parameters": {"type": "object"}}}


def call(name: str = "look_up", arguments: Any = '{"order":1}', **members: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **members}


def asks(*calls: Any, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **members}


def answer(content: Any = "on its way", **members: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "content": content, **members}


def read(value: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.jsonl:1"))
    return item


def trace(value: Any) -> Imported:
    return require_valid(read(value))


def steps(*messages: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace(list(messages)).trajectory["steps"]
    return found


# messages


def test_messages_become_steps_and_answers_become_observations() -> None:
    made = steps(SYSTEM, USER, asks(call()), answer(), {"role": "assistant", "content": "It is on its way."})
    assert [(step["source"], step["message"]) for step in made] == [
        ("system", "Be exact."),
        ("user", "Where is it?"),
        ("agent", ""),
        ("agent", "It is on its way."),
    ]
    assert made[2]["tool_calls"] == [{"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": 1}}]
    assert made[2]["observation"] == {"results": [{"source_call_id": "c1", "content": "on its way"}]}


@pytest.mark.parametrize(
    ("role", "source"),
    [("developer", "system"), ("human", "user"), ("ai", "agent"), ("model", "agent")],
)
def test_other_names_of_a_role_are_known_and_kept(role: str, source: str) -> None:
    [step] = steps({"role": role, "content": "x"})
    assert (step["source"], step["extra"]) == (source, {"role": role})


@pytest.mark.parametrize("role", ["exit", "narrator", None, 7, "", ["user"]])
def test_an_unknown_role_is_refused(role: Any) -> None:
    item = read([USER, {"role": role, "content": "x"}])
    assert isinstance(item, Refused)
    assert item.code == "unknown-role"
    assert "messages/1" in item.message


@pytest.mark.parametrize(
    ("members", "message", "extra"),
    [
        ({"content": "text"}, "text", None),
        ({"content": ""}, "", None),
        ({"content": None}, "", {"original_content": None}),
        ({}, "", {"content_missing": True}),
        ({"content": [{"type": "text", "text": "a"}]}, [{"type": "text", "text": "a"}], None),
        ({"content": []}, [], None),
        ({"content": {"a": 1}}, '{"a":1}', {"original_content": {"a": 1}}),
        (
            {"content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
            [{"type": "text", "text": "a"}],
            {"original_content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        ),
        (
            {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            [{"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AA=="}}],
            None,
        ),
    ],
)
def test_kinds_of_content_are_told_apart(members: dict[str, Any], message: Any, extra: Any) -> None:
    [step] = steps({"role": "user", **members})
    assert (step["message"], step.get("extra")) == (message, extra)


def test_an_image_elsewhere_is_kept_as_json_text() -> None:
    content = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    item = trace([{"role": "user", "content": content}])
    [step] = item.trajectory["steps"]
    assert json.loads(step["message"]) == step["extra"]["original_content"] == content
    assert "written as JSON text" in repairs_of(item)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_found_where_it_is_written(name: str) -> None:
    [step] = steps({"role": "assistant", "content": "<think>x</think>y", name: "why"})
    assert (step["reasoning_content"], step["message"]) == ("why", "<think>x</think>y")


def test_signed_reasoning_stays_opaque() -> None:
    blocks = [{"type": "thinking", "thinking": "x", "signature": "s"}]
    [step] = steps({"role": "assistant", "content": "y", "thinking_blocks": blocks, "refusal": None, "name": "bot"})
    assert step["extra"] == {"thinking_blocks": blocks, "name": "bot"}


def test_terminal_noise_and_lone_surrogates_are_kept_verbatim() -> None:
    noise = "\x1b[31mred\x1b[0m\r\n50%\r100%\x00\ufffd\ud83d"
    item = trace([{"role": "user", "content": noise}])
    assert item.trajectory["steps"][0]["message"] == noise
    assert b"\\ud83d" in item.trajectory_bytes


@pytest.mark.parametrize(
    ("value", "time", "extra"),
    [
        ("2026-01-31T12:00:00", "2026-01-31T12:00:00", None),
        (1700000000, "2023-11-14T22:13:20+00:00", {"timestamp": 1700000000}),
        ("yesterday", None, {"timestamp": "yesterday"}),
        (1e300, None, {"timestamp": 1e300}),
    ],
)
def test_times_are_kept_as_written(value: Any, time: str | None, extra: Any) -> None:
    [step] = steps({"role": "user", "content": "x", "timestamp": value})
    assert (step.get("timestamp"), step.get("extra")) == (time, extra)


# calls and answers


@pytest.mark.parametrize(
    ("arguments", "parsed", "extra"),
    [
        ({"order": 1}, {"order": 1}, None),
        ('{"order":1}', {"order": 1}, None),
        ('{"order": 1}', {"order": 1}, {"arguments": '{"order": 1}'}),
        ('{"order": ', {"_raw": '{"order": '}, {"arguments": '{"order": '}),
        ("bun test", {"_raw": "bun test"}, {"arguments": "bun test"}),
        ("[1]", {"_raw": "[1]"}, {"arguments": "[1]"}),
        ("", {"_raw": ""}, {"arguments": ""}),
        (None, {}, None),
        ([1], {"_raw": [1]}, None),
    ],
)
def test_arguments_are_read_and_their_text_is_not_lost(arguments: Any, parsed: Any, extra: Any) -> None:
    [made] = steps(asks(call(arguments=arguments)))[0]["tool_calls"]
    assert (made["arguments"], made.get("extra")) == (parsed, extra)


@given(
    st.dictionaries(st.text(max_size=4), st.one_of(st.integers(), st.text(max_size=4)), max_size=3), st.integers(0, 2)
)
def test_the_text_of_arguments_can_always_be_given_back(value: dict[str, Any], style: int) -> None:
    text = json.dumps(value, indent=[None, 0, 2][style], ensure_ascii=style == 1)
    [made] = steps(asks(call(arguments=text)))[0]["tool_calls"]
    assert made["arguments"] == value
    assert made.get("extra", {}).get("arguments", digest.canonical(value).decode()) == text


@pytest.mark.parametrize(
    "calls",
    [
        [json.dumps(call())],
        json.dumps([call()]),
        [json.dumps(json.dumps(call()))],
        [{"id": "c1", "name": "look_up", "arguments": {"order": 1}}],
        [{"id": "c1", "type": "function", "function": json.dumps({"name": "look_up", "arguments": {"order": 1}})}],
    ],
)
def test_calls_written_as_json_text_are_read(calls: Any) -> None:
    [made] = steps({"role": "assistant", "content": "", "tool_calls": calls})[0]["tool_calls"]
    assert made == {"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": 1}}


def test_the_old_function_call_is_a_call_and_its_answer_is_linked_by_name() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "look_up", "arguments": "{}"}}
    item = trace([USER, old, {"role": "function", "name": "look_up", "content": "fine"}])
    step = item.trajectory["steps"][1]
    assert step["tool_calls"][0]["tool_call_id"] == "call_2_1"
    [result] = step["observation"]["results"]
    assert result["source_call_id"] == "call_2_1"
    assert result["extra"] == {"role": "function", "link": "positional", "name": "look_up"}
    assert "without an id: numbered" in repairs_of(item)


def test_an_id_used_again_is_made_unique_and_each_answer_finds_its_call() -> None:
    item = trace([asks(call()), answer("first"), asks(call(), call()), answer("second"), answer("third")])
    made = item.trajectory["steps"]
    ids = [entry["tool_call_id"] for step in made for entry in step["tool_calls"]]
    assert ids == ["c1", "c1#2", "c1#3"]
    assert made[1]["tool_calls"][0]["extra"] == {"original_id": "c1"}
    links = [(r["source_call_id"], r["content"]) for step in made for r in step["observation"]["results"]]
    assert links == [("c1", "first"), ("c1#2", "second"), ("c1#3", "third")]
    assert "made unique" in repairs_of(item)


def test_answers_without_an_id_are_linked_in_order() -> None:
    bare = {"role": "tool", "content": "x", "tool_calls": None}
    item = trace([asks(call(id="a"), call(id="b")), bare, bare])
    results = item.trajectory["steps"][0]["observation"]["results"]
    assert [result["source_call_id"] for result in results] == ["a", "b"]
    assert all(result["extra"] == {"link": "positional"} for result in results)


def test_a_call_without_an_answer_is_a_call() -> None:
    item = trace([asks(call("submit"))])
    assert list(item.content.calls) == [("submit", 1, "none")]


def test_an_answer_to_an_earlier_step_stays_where_it_stood_unlinked() -> None:
    item = trace([asks(call()), {"role": "assistant", "content": "wait"}, answer("late")])
    [result] = item.trajectory["steps"][1]["observation"]["results"]
    assert result == {"content": "late", "extra": {"original_call_id": "c1"}}
    assert "left unlinked" in repairs_of(item)


def test_an_answer_before_its_call_is_held_by_an_empty_system_step() -> None:
    item = trace([USER, answer("early"), asks(call())])
    held = item.trajectory["steps"][1]
    assert (held["source"], held["message"]) == ("system", "")
    assert held["observation"]["results"][0]["extra"] == {"original_call_id": "c1"}
    assert list(item.content.calls) == [("look_up", 3, "none")]


@pytest.mark.parametrize("content", [None, {"a": 1}, [{"type": "text", "text": "a"}]])
def test_answers_of_any_kind_are_kept(content: Any) -> None:
    [result] = steps(asks(call()), answer(content, name="look_up"))[0]["observation"]["results"]
    kept = result["content"] if isinstance(content, list) else result["extra"]["original_content"]
    assert kept == content
    assert result["extra"]["name"] == "look_up"


# records


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_records_is_read_as_its_records(inbox: Inbox, indent: int | None) -> None:
    made = [{"id": n, "messages": [USER, {"role": "assistant", "content": "é"}]} for n in (1, 2)]
    inbox.write("a.json", json.dumps([*made, {"messages": []}], indent=indent))
    found = inbox.read()
    assert [item.trajectory["session_id"] for item in found.traces] == ["1", "2"]
    assert [item.trajectory for item in found.traces] == [trace(value).trajectory for value in made]
    assert [(item.code, item.where) for item in found.refused] == [("not-chat", "a.json#2")]


def test_an_error_counts_before_a_verdict_and_a_verdict_before_a_reward() -> None:
    said = {"messages": [USER, {"role": "assistant", "content": ""}], "error": "no", "success": True, "reward": 0}
    assert trace(said).outcome["status"] == "error"
    del said["error"]
    assert trace(said).outcome["status"] == "success"
    del said["success"]
    said["status"] = "success"
    assert trace(said).outcome == {"status": "success", "reward": 0, "rule": "status"}
    assert [row[0].split(":")[0].split(",")[0] for row in SUCCESS] == [
        "error",
        "success",
        "success",
        "status or outcome",
        "status or outcome",
        "status or outcome",
        "status or outcome",
        "reward or score",
        "reward or score",
        "none of these",
    ]


DONE = [USER, {"role": "assistant", "content": "Done."}]


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({"reward": "1"}, {"status": "success", "reward": 1, "rule": "reward"}),
        ({"score": "0.50"}, {"status": "failure", "reward": 0.5, "rule": "score"}),
        ({"reward": "-1e-3", "score": 0}, {"status": "failure", "reward": -0.001, "rule": "reward"}),
    ],
)
def test_a_number_written_as_text_is_read_as_one_and_named(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    item = trace({"messages": DONE, **members})
    assert item.outcome == outcome
    assert f"{outcome['rule']} written as text: read as a number" in repairs_of(item)
    assert item.findings == ()


@pytest.mark.parametrize("name", ["status", "outcome"])
@pytest.mark.parametrize("word", ["success", "failure", "error"])
def test_a_text_that_is_exactly_a_status_is_one(name: str, word: str) -> None:
    item = trace({"messages": DONE, name: word})
    assert item.outcome == {"status": word, "rule": name}
    assert "extra" not in item.trajectory
    assert (item.findings, repairs_of(item)) == ((), "")


@pytest.mark.parametrize(
    ("members", "outcome", "note"),
    [
        ({"success": "False"}, {"status": "failure", "rule": "success"}, 'success "False": read as failure'),
        ({"resolved": "true"}, {"status": "success", "rule": "resolved"}, 'resolved "true": read as success'),
        ({"status": "Failed"}, {"status": "failure", "rule": "status"}, 'status "Failed": read as failure'),
        ({"outcome": "passed"}, {"status": "success", "rule": "outcome"}, 'outcome "passed": read as success'),
        (
            {"status": "timeout"},
            {"status": "error", "rule": "status", "termination": "timeout"},
            'status "timeout": read as error',
        ),
    ],
)
def test_the_words_that_the_table_lists_are_read_in_any_case_and_named(
    members: dict[str, Any], outcome: dict[str, Any], note: str
) -> None:
    item = trace({"messages": DONE, **members})
    assert (item.outcome, repairs_of(item), item.findings) == (outcome, note, ())
    assert "extra" not in item.trajectory


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"success": True, "resolved": False}, "success says success, resolved says failure"),
        ({"success": True, "status": "failure", "reward": 1}, "success says success, status says failure"),
        ({"passed": False, "outcome": "success"}, "passed says failure, outcome says success"),
        ({"passed": "true", "status": "timeout"}, "status says error, passed says success"),
        ({"reward": 1, "info": {"resolved": False}}, "reward says success, info.resolved says failure"),
        ({"success": False, "info": {"passed": "True"}}, "success says failure, info.passed says success"),
        ({"reward": 1, "result": {"status": "failed"}}, "reward says success, result.status says failure"),
        ({"success": True, "info": {"outcome": "failure"}}, "success says success, info.outcome says failure"),
        ({"success": True, "info": {"status": "timeout"}}, "success says success, info.status says error"),
        ({"reward": 0, "result": {"status": "Success"}}, "reward says failure, result.status says success"),
    ],
)
def test_verdicts_that_disagree_give_none_and_both_are_named(members: dict[str, Any], said: str) -> None:
    neither_is_read(members, said)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"reward": 1, "score": 0}, "reward says success, score says failure"),
        ({"reward": 0, "score": "1.0"}, "reward says failure, score says success"),
        ({"reward": 1, "score": 0.5}, "reward says success, score says failure"),
        ({"reward": 0, "score": 87}, "reward says failure, score says success"),
        ({"reward": True, "score": 0}, "reward says success, score says failure"),
        ({"reward": 1, "metrics": {"reward": 0}}, "reward says success, metrics.reward says failure"),
        ({"score": 1, "status": "completed", "info": {"score": False}}, "score says success, info.score says failure"),
    ],
)
def test_rewards_on_different_sides_of_success_give_none_and_both_are_named(members: dict[str, Any], said: str) -> None:
    neither_is_read(members, said)


def neither_is_read(members: dict[str, Any], said: str) -> None:
    item = trace({"messages": DONE, **members})
    assert item.outcome == {"status": "unknown"}
    assert item.trajectory["extra"]["record"] == members
    (found,) = item.findings
    assert (found.code, found.severity, found.where) == ("verdict-conflict", "warning", item.where)
    assert found.message == repairs_of(item) == f"{said}: neither is read"


@pytest.mark.parametrize(
    ("members", "status", "said"),
    [
        ({"success": True, "reward": 0}, "success", "success says success, reward says failure: success counts"),
        ({"success": True, "reward": False}, "success", "success says success, reward says failure: success counts"),
        ({"success": False, "score": 1}, "failure", "success says failure, score says success: success counts"),
        ({"success": "false", "reward": 1}, "failure", "success says failure, reward says success: success counts"),
        ({"status": "failed", "reward": 1}, "failure", "status says failure, reward says success: status counts"),
        ({"status": "timeout", "reward": 1}, "error", "status says error, reward says success: status counts"),
        ({"error": "gone", "reward": 1}, "error", "error says error, reward says success: error counts"),
        ({"error": "gone", "passed": True}, "error", "error says error, passed says success: error counts"),
        (
            {"success": True, "reward": 1, "score": 0},
            "success",
            "success says success, score says failure: success counts",
        ),
        (
            {"passed": False, "metrics": {"reward": 1}},
            "failure",
            "passed says failure, metrics.reward says success: passed counts",
        ),
    ],
)
def test_a_verdict_counts_against_its_reward_and_that_they_disagree_is_said(
    members: dict[str, Any], status: str, said: str
) -> None:
    item = trace({"messages": DONE, **members})
    assert item.outcome["status"] == status
    assert [(found.code, found.message) for found in item.findings] == [("verdict-conflict", said)]
    assert said in repairs_of(item)


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"success": True, "resolved": True, "reward": 1, "info": {"passed": True, "score": 0.2}}, "success"),
        ({"success": True, "reward": 0.4}, "success"),
        ({"success": True, "status": "completed"}, "success"),
        ({"status": "Done", "reward": 0}, "failure"),
        ({"success": False, "status": "error", "reward": 0}, "error"),
        ({"error": "gone", "success": False}, "error"),
        ({"reward": 1, "score": 87, "status": 200}, "success"),
        ({"reward": 0.2, "score": 0}, "failure"),
        ({"reward": 2, "score": 0}, "failure"),
        (
            {"reward": 1, "score": True, "metrics": {"reward": "1.0", "status": "completed", "outcome": "passed"}},
            "success",
        ),
        ({"success": True, "score": 0.4, "metrics": {"reward": 1}}, "success"),
        ({"reward": 1, "response": {"success": False}}, "success"),
    ],
)
def test_what_agrees_or_is_no_verdict_is_not_reported(members: dict[str, Any], status: str) -> None:
    item = trace({"messages": DONE, **members})
    assert (item.outcome["status"], item.findings) == (status, ())


def test_a_truth_value_as_reward_is_a_verdict() -> None:
    assert trace({"messages": DONE, "reward": True}).outcome == {"status": "success", "rule": "reward"}


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"reward": "1/1"}, 'reward "1/1"'),
        ({"reward": " 1"}, 'reward " 1"'),
        ({"reward": "NaN"}, 'reward "NaN"'),
        ({"reward": {"total": 1}}, "reward (an object)"),
        ({"status": "Successful"}, 'status "Successful"'),
        ({"status": "completed"}, 'status "completed"'),
        ({"status": False}, "status (a truth value)"),
        ({"status": "aborted", "reward": 1}, 'status "aborted"'),
        ({"success": 0, "reward": 1}, "success (a number)"),
        ({"resolved": "no", "score": 1.0}, 'resolved "no"'),
        ({"success": True, "outcome": "partly"}, 'outcome "partly"'),
        ({"outcome": 0, "reward": 1}, "outcome (a number)"),
        ({"reward": {"total": 0}, "score": 1}, "reward (an object)"),
        ({"outcome": {"success": True}}, "outcome (an object)"),
        ({"resolved": 1}, "resolved (a number)"),
        ({"metadata": {"reward": 1}}, "metadata.reward (a number)"),
        ({"metadata": {"passed": True}}, "metadata.passed (a truth value)"),
        ({"outcome": "x" * 99}, 'outcome "' + "x" * 39 + "…"),
    ],
)
def test_what_may_be_a_verdict_and_is_not_read_stays_and_is_named(members: dict[str, Any], words: str) -> None:
    item = trace({"messages": DONE, **members})
    assert item.outcome == {"status": "unknown"}
    assert item.trajectory["extra"]["record"] == members
    said = [found.message for found in item.findings]
    assert f"{words}: not read as a verdict" in said
    assert repairs_of(item).split("; ") == said
    assert {(found.code, found.severity, found.where) for found in item.findings} == {
        ("verdict-unread", "warning", item.where)
    }


@pytest.mark.parametrize(
    "members",
    [
        {"status": 200},
        {"status": "unknown", "reward": None, "success": None},
        {"status": "completed", "reward": 1},
        {"metadata": {"status": "completed"}, "response": {"status": "completed", "score": 1}},
    ],
)
def test_what_is_no_verdict_or_stands_beside_one_is_not_reported(members: dict[str, Any]) -> None:
    assert trace({"messages": DONE, **members}).findings == ()


def test_tools_are_found_under_any_name_and_in_any_wrapper() -> None:
    bare = TOOL["function"]
    forms = [
        {"tools": [TOOL]},
        {"tool_defs": [bare]},
        {"functions": [bare]},
        {"tools": json.dumps([TOOL])},
        {"tools": [json.dumps(TOOL)]},
    ]
    found = [trace({"messages": [SYSTEM, USER], **form}).observed["tool_bindings"] for form in forms]
    assert all(entry == found[0] for entry in found)
    assert found[0][0]["part"] == "look_up"


def test_messages_written_as_text_are_read() -> None:
    for messages in (json.dumps([SYSTEM, USER]), [json.dumps(SYSTEM), json.dumps(USER)]):
        item = trace({"messages": messages})
        assert [step["message"] for step in item.trajectory["steps"]] == ["Be exact.", "Where is it?"]
        assert "messages written as JSON text" in repairs_of(item)


def test_no_tools_are_known_empty_only_in_a_request_that_calls_none() -> None:
    empty = {"messages": [USER, {"role": "assistant", "content": "x"}], "tools": []}
    assert trace({**empty, "model": "m"}).observed["tool_bindings"][0]["form"] == "known-empty"
    assert trace({**empty, "model": "m"}).content.tools == []
    assert "tool_bindings" not in trace(empty).observed
    called = trace({"messages": [USER, asks(call())], "tools": [], "model": "m"})
    assert called.content.tools is None
    assert "tool_bindings" not in called.observed


def test_a_request_with_tools_shows_whether_calls_are_the_providers() -> None:
    log = {"tools": [TOOL], "response": {"choices": [{"message": {"role": "assistant", "content": "It is."}}]}}
    native = trace({"messages": [SYSTEM, USER], **log}).observed["runtime"]
    written = trace({"messages": [SYSTEM, USER], "raw_messages": [SYSTEM, USER], **log}).observed["runtime"]
    assert [entry["part"] for entry in native] == [entry["part"] for entry in written] == ["function_calling"]
    assert native != written
    assert "runtime" not in trace({"messages": [SYSTEM, USER], "response": log["response"]}).observed
    assert "runtime" not in trace({"messages": [SYSTEM, USER], "tools": [TOOL], "model": "m"}).observed


def test_a_system_message_without_its_request_is_that_of_a_transcript() -> None:
    forms = {
        "bare": [SYSTEM, USER],
        "record": {"messages": [SYSTEM, USER], "task_id": "t"},
        "with tools": {"messages": [SYSTEM, USER], "tools": [TOOL]},
        "with model": {"messages": [SYSTEM, USER], "model": "m"},
    }
    shown = {name: trace(value).observed["prompt_templates"] for name, value in forms.items()}
    assert {name: entry["form"] for name, [entry] in shown.items()} == {
        "bare": "transcript",
        "record": "transcript",
        "with tools": "rendered",
        "with model": "rendered",
    }
    assert len({entry["digest"] for [entry] in shown.values()}) == 1


def test_only_a_record_with_a_response_is_one_request_of_a_conversation() -> None:
    assert trace(request()).run["mode"] == "request"
    assert "mode" not in trace({"messages": [USER, {"role": "assistant", "content": "x"}], "model": "m"}).run
    assert trace({"messages": [USER], "raw_messages": [USER]}).run["mode"] == "tools-in-prompt"


def test_a_transcript_says_nothing_of_tools() -> None:
    item = trace([SYSTEM, USER])
    assert (item.content.tools, item.run) == (None, {})


def test_a_run_key_becomes_the_session_so_that_equal_runs_stay_distinct() -> None:
    first, second = (trace({"messages": [USER], "id": key}) for key in ("r1", "r2"))
    assert (first.trajectory["session_id"], second.trajectory["session_id"]) == ("r1", "r2")
    assert first.trajectory_bytes != second.trajectory_bytes


def test_sampling_model_and_task_go_to_the_run_and_the_rest_is_kept() -> None:
    item = trace({"messages": [USER], "model": "m", "temperature": 0, "task_id": 7, "split": "train", "note": [1]})
    assert item.run == {"task": "7", "split": "train", "model": {"name": "m"}, "sampling": {"temperature": 0}}
    assert item.trajectory["agent"] == {"name": "unknown", "version": "unknown", "model_name": "m"}
    assert item.trajectory["extra"] == {"record": {"note": [1]}}


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"reward": 1.0}, "success"),
        ({"score": 0.5}, "failure"),
        ({"reward": 0.2, "success": True}, "success"),
        ({"resolved": False}, "failure"),
        ({"passed": True, "error": "timeout"}, "error"),
        ({"error": None}, "unknown"),
        ({"reward": "high"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_verdict_of_the_record_gives_the_status(members: dict[str, Any], status: str) -> None:
    assert trace({"messages": [USER], **members}).outcome["status"] == status


def test_the_success_reward_is_a_parameter() -> None:
    raw = json.dumps({"messages": [USER], "reward": 10}).encode()
    around = Around(limits=Limits(success_reward=10))
    [item] = IMPORTER.read(Record(raw, "a", "a", around))
    assert isinstance(item, Imported)
    assert item.outcome["status"] == "success"


def request(**members: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    choice = {"finish_reason": "tool_calls", "message": asks(call(), content="I look.", function_call=None)}
    return {
        "messages": [SYSTEM, USER],
        "tools": [TOOL],
        "kwargs": {"tools": [TOOL], "temperature": 0.0, "extra_body": {"tags": ["x"]}},
        "response": {"id": "r", "model": "m", "choices": [choice], "usage": usage},
        "cost": 0.25,
        "timestamp": 1700000000.5,
        **members,
    }


def test_usage_in_the_names_of_the_other_api_is_read_too() -> None:
    value = request()
    value["response"]["usage"] = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "audio": None}
    value["cost"] = "free"
    item = trace(value)
    assert item.trajectory["steps"][-1]["metrics"] == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "extra": {"usage": {"total_tokens": 12}},
    }
    assert item.trajectory["extra"]["record"]["cost"] == "free"


@pytest.mark.parametrize(("attempt", "cost"), [(2, 0.25), ("second", 0), (None, None), (True, "free")])
def test_a_record_says_which_attempt_it_is_and_what_it_cost(attempt: Any, cost: Any) -> None:
    item = trace({"messages": [USER, asks(content="Done.")], "attempt": attempt, "cost": cost})
    is_read = attempt in (2, "second") and attempt is not True
    assert item.run.get("attempt") == (attempt if is_read else None)
    assert item.trajectory.get("final_metrics") == ({"total_cost_usd": cost} if is_read else None)
    kept = item.trajectory.get("extra", {}).get("record", {})
    assert kept == ({} if is_read else {"attempt": attempt, "cost": cost})


def test_the_response_of_a_request_is_its_last_step() -> None:
    item = trace(request())
    last = item.trajectory["steps"][-1]
    assert (last["message"], last["model_name"]) == ("I look.", "m")
    assert last["metrics"] == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "cached_tokens": 4,
        "cost_usd": 0.25,
        "extra": {"usage": {"prompt_tokens_details": {"cached_tokens": 4}}},
    }
    assert last["timestamp"] == "2023-11-14T22:13:20.500000+00:00"
    assert item.run == {"mode": "request", "model": {"name": "m"}, "sampling": {"temperature": 0.0}}
    record = item.trajectory["extra"]["record"]
    assert record["response"] == {"id": "r", "choices": [{"finish_reason": "tool_calls"}]}
    assert record["kwargs"] == {"extra_body": {"tags": ["x"]}}
    assert list(item.content.messages) == [("system", "Be exact.", 1), ("user", "Where is it?", 2)]


def test_where_calls_are_written_into_the_text_the_last_step_is_what_the_model_wrote() -> None:
    written = {
        "choices": [{"message": {"role": "assistant", "content": "I look.\n<function=look_up>", "tool_calls": None}}]
    }
    item = trace(request(raw_messages=[SYSTEM, USER], raw_response=written))
    last = item.trajectory["steps"][-1]
    assert last["message"] == "I look.\n<function=look_up>"
    assert "tool_calls" not in last
    assert item.run["mode"] == "request, tools-in-prompt"
    assert "rendered" not in item.run
    assert item.trajectory["extra"]["record"]["response"]["choices"][0]["message"]["content"] == "I look."


def test_without_the_models_own_text_such_a_log_counts_as_rendered() -> None:
    assert trace(request(raw_messages=[SYSTEM, USER])).run["rendered"] is True


@pytest.mark.parametrize(
    "value", [{"messages": []}, {"messages": "text"}, {"messages": [7]}, {"a": 1}, 7, "x", [], None]
)
def test_what_is_no_conversation_is_refused(value: Any) -> None:
    item = read(value)
    assert isinstance(item, Refused)
    assert item.code == "not-chat"


def test_lines_are_records_and_a_bad_one_does_not_stop_the_rest(inbox: Inbox) -> None:
    good = json.dumps({"messages": [USER, {"role": "assistant", "content": "x"}]})
    inbox.write("a.jsonl", f"{good}\n{{}}\n{good[:20]}\n\n{good}\n{good[:30]}")
    read = inbox.read()
    assert len(read.traces) == 2
    assert [(refused.code, refused.where) for refused in read.refused] == [
        ("not-chat", "a.jsonl:2"),
        ("record-not-json", "a.jsonl:3"),
        ("record-truncated", "a.jsonl:6"),
    ]


VALUE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.sampled_from(["c1", "{}", "[1]", '{"a":1}'])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["id", "name", "arguments"]), inner)
    ),
    max_leaves=4,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "assistant", "tool", "function"])},
    optional={
        "content": VALUE,
        "tool_calls": st.one_of(VALUE, st.lists(st.fixed_dictionaries({"id": VALUE, "function": VALUE}), max_size=2)),
        "function_call": VALUE,
        "tool_call_id": VALUE,
        "name": VALUE,
        "timestamp": VALUE,
        "reasoning": VALUE,
        "odd": VALUE,
    },
)


@given(
    st.fixed_dictionaries(
        {"messages": st.lists(MESSAGE, max_size=4)},
        optional=dict.fromkeys(("tools", "response", "kwargs", "reward", "error", "model", "id", "cost"), VALUE),
    )
)
def test_no_record_raises_and_what_is_taken_is_valid(value: dict[str, Any]) -> None:
    item = read(value)
    if isinstance(item, Imported):
        assert problems(item.trajectory) == []
        Run.model_validate(item.run)
        Outcome.model_validate(item.outcome)


# real files


@pytest.fixture
def real(shared_traces: Path) -> dict[str, Imported]:
    read = Inbox(shared_traces / "openai_chat").read()
    assert read.refused == []
    return {item.source["label"].rpartition("__")[2].removesuffix(".json"): item for item in read.traces}


@pytest.mark.shared_data
def test_every_shared_file_is_a_valid_trace(real: dict[str, Imported]) -> None:
    assert len(real) == 9
    for item in real.values():
        assert item.source["format"] == "openai-chat"
        assert problems(item.trajectory) == []
        Peer.model_validate(item.trajectory)
        Run.model_validate(item.run)


@pytest.mark.shared_data
def test_real_logs_end_with_what_the_model_wrote(real: dict[str, Imported]) -> None:
    called = real["claude-sonnet-4-20250514-1757015025.972"].trajectory["steps"][-1]
    assert called["tool_calls"][0]["function_name"] == "str_replace_editor"
    written = real["deepseek-chat-1757015062.589"].trajectory["steps"][-1]
    assert "<function=str_replace_editor>" in written["message"]
    assert real["deepseek-chat-1757015062.589"].run["mode"] == "request, tools-in-prompt"


@pytest.mark.parametrize("wrapped", [lambda row: row, lambda row: [row]])
def test_a_row_of_our_own_export_is_no_run(wrapped: Any) -> None:
    row = {"messages": [USER, {"role": "assistant", "content": "There."}], "tracemark_trace_id": "ab" * 32}
    item = read(wrapped(row))
    assert isinstance(item, Refused)
    assert (item.code, "abababababab" in item.message) == ("own-export", True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("max_steps", "max_steps"),
        (
            {"message": "Later.", "type": "requests", "code": "rate_limit_exceeded"},
            "requests: rate_limit_exceeded: Later.",
        ),
        ([{"type": "A", "message": "b"}, {"type": "C"}], "A: b"),
        ("x" * 3_000, "x" * 2_000),
        ({"code": 429}, None),
        (True, None),
    ],
)
def test_how_a_run_stopped_is_told_in_the_words_of_its_error(error: object, words: str | None) -> None:
    item = trace({"messages": [USER, {"role": "assistant", "content": "Hm."}], "error": error})
    assert (item.outcome["status"], item.outcome.get("termination")) == ("error", words)
    assert item.trajectory["extra"]["record"]["error"] == error
