"""Results of τ-bench: runs as traces, runs that failed, and texts that were shown to the agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import Context, Imported, Limits, Refused
from tracemark.importers.tau_bench import IMPORTER

from .conftest import Inbox, record_of, repairs_of, require_valid
from .make_golden import SAMPLES

SYSTEM = {"role": "system", "content": "# Library desk policy"}
USER = {"role": "user", "content": "May I borrow b1?"}
ENDED = {"reward": 1.0, "info": {"r_actions": 1.0}, "actions": []}


def call(id: str = "c1", name: str = "find", arguments: Any = '{"book": "b1"}') -> dict[str, Any]:  # noqa: A002
    asked = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [asked]}


def answer(content: Any = "free", id: str = "c1") -> dict[str, Any]:  # noqa: A002
    return {"role": "tool", "tool_call_id": id, "name": "find", "content": content}


def run(*traj: Any, **members: Any) -> dict[str, Any]:
    return {
        "task_id": 3,
        "reward": 1.0,
        "info": {"source": "user"},
        "traj": list(traj) or [USER],
        "trial": 2,
        **members,
    }


def read(value: Any, **limits: Any) -> Imported | Refused:
    [item] = IMPORTER.read(record_of(value, "a.json#0", context=Context(limits=Limits(**limits))))
    return item


def trace(value: Any, **limits: Any) -> Imported:
    return require_valid(read(value, **limits))


# runs


def test_messages_become_steps_and_the_system_message_is_shown_as_it_was_sent() -> None:
    item = trace(run(SYSTEM, USER, call(), answer(), {"role": "assistant", "content": "Take it."}))
    steps = item.trajectory["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent"]
    assert steps[2]["tool_calls"][0]["extra"] == {"arguments": '{"book": "b1"}'}
    assert steps[2]["observation"]["results"] == [
        {"source_call_id": "c1", "content": "free", "extra": {"name": "find"}}
    ]
    [shown] = item.observed["prompt_templates"]
    assert (shown["part"], shown["form"]) == ("system", "rendered")


def test_task_and_trial_are_the_key_of_a_run() -> None:
    item = trace(run())
    assert item.run == {"task": "3", "attempt": 2}
    assert item.trajectory["session_id"] == "task-3-trial-2"
    assert trace(run(trial=1)).trajectory_bytes != item.trajectory_bytes


def test_without_a_trial_there_is_no_session() -> None:
    value = run()
    del value["trial"]
    assert "session_id" not in trace(value).trajectory


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"reward": 0}, {"status": "failure", "reward": 0, "rule": "reward"}),
        ({"reward": 0.5}, {"status": "failure", "reward": 0.5, "rule": "reward"}),
        ({"reward": None}, {"status": "unknown"}),
        ({"reward": "1.0"}, {"status": "unknown"}),
        (
            {"info": {"error": "rate limit"}},
            {"status": "error", "reward": 1.0, "rule": "info.error", "termination": "rate limit"},
        ),
        ({"info": {"error": ""}}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"info": {"error": False}}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"info": {"error": []}}, {"status": "success", "reward": 1.0, "rule": "reward"}),
        ({"info": {"error": True}}, {"status": "error", "reward": 1.0, "rule": "info.error"}),
        ({"info": {"reward_info": ENDED}}, {"status": "success", "reward": 1.0, "rule": "reward", "checks": ENDED}),
    ],
)
def test_the_reward_counts_unless_the_run_failed(members: dict[str, Any], outcome: dict[str, Any]) -> None:
    assert trace(run(**members)).outcome == outcome


def test_the_reward_of_a_success_is_a_setting() -> None:
    assert trace(run(reward=0.5), success_reward=0.5).outcome["status"] == "success"


def test_a_run_that_failed_before_its_first_message_is_stored() -> None:
    item = trace(run(traj=[], reward=0.0, info={"error": "rate limit", "traceback": "Traceback"}))
    [step] = item.trajectory["steps"]
    assert (step["source"], step["message"], step["extra"]) == ("system", "", {"event_type": "no-messages"})
    assert item.outcome == {"status": "error", "reward": 0.0, "rule": "info.error", "termination": "rate limit"}
    assert item.trajectory["extra"] == {"info": {"error": "rate limit", "traceback": "Traceback"}}
    assert (item.observed, list(item.content.messages)) == ({}, [])
    assert "without messages" in repairs_of(item)


def test_what_has_no_place_is_kept() -> None:
    item = trace(run(info={"task": {"user_id": "r"}, "reward_info": None}, reward="x", more=[1], trial=None))
    assert item.trajectory["extra"] == {
        "info": {"task": {"user_id": "r"}, "reward_info": None},
        "record": {"more": [1], "reward": "x", "trial": None},
    }


def test_an_id_used_twice_is_made_unique_and_each_answer_finds_its_call() -> None:
    item = trace(run(call(), answer("first"), call(), answer("second")))
    links = [step["observation"]["results"][0] for step in item.trajectory["steps"]]
    assert [(link["source_call_id"], link["content"]) for link in links] == [("c1", "first"), ("c1#2", "second")]
    assert "made unique" in repairs_of(item)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (run({"role": "referee", "content": "x"}), "unknown-role"),
        (run(traj="none"), "record-unfit"),
        (run(traj=None), "record-unfit"),
        (run(traj=[7]), "record-unfit"),
        (7, "record-unfit"),
        (b'{"task_id": 3, "traj": [{"role": "us', "record-not-json"),
        (b'{"task_id": 3, "traj": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "record-not-json"),
    ],
)
def test_what_is_no_run_is_refused(value: Any, code: str) -> None:
    item = read(value)
    assert isinstance(item, Refused)
    assert item.code == code


def test_odd_values_survive() -> None:
    text = "\x1b[31m\x00\ufffd\ud83d"
    item = trace(run(USER | {"content": text}, call(arguments="no json"), answer("early", "c9"), info={"big": 2**70}))
    assert item.trajectory["steps"][0]["message"] == text
    assert item.trajectory["steps"][1]["tool_calls"][0]["arguments"] == {"_raw": "no json"}
    assert item.trajectory["steps"][1]["observation"]["results"][0]["extra"]["original_call_id"] == "c9"
    assert b"1180591620717411303424" in item.trajectory_bytes
    doubled = trace(b'{"task_id": 1, "task_id": 2, "reward": NaN, "traj": [{"role": "user", "content": "a"}]}')
    assert "duplicate" in repairs_of(doubled)


# demonstrations


def test_a_text_that_was_shown_to_the_agent_is_a_demonstration_and_no_prompt() -> None:
    text = "user: May I?\nassistant: None\ntool: free"
    item = trace({"messages_display": text})
    [step] = item.trajectory["steps"]
    assert (step["source"], step["message"]) == ("system", text)
    assert item.run == {"demonstration": True}
    assert item.outcome == {"status": "unknown"}
    assert (item.observed, list(item.content.messages)) == ({}, [])


# files


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_is_cut_into_its_runs(inbox: Inbox, indent: int | None) -> None:
    made = [run(trial=number) for number in range(3)]
    inbox.write("a.json", json.dumps([*made, 7], indent=indent))
    found = inbox.read()
    assert [(item.where, item.run["attempt"]) for item in found.traces] == [(f"a.json#{n}", n) for n in range(3)]
    assert [(item.code, item.where) for item in found.refused] == [("record-unfit", "a.json#3")]


def test_a_file_that_ends_in_its_middle_gives_the_runs_in_front(inbox: Inbox) -> None:
    inbox.write("a.json", json.dumps([run(), run(trial=1)])[:-20])
    found = inbox.read()
    assert [item.run["attempt"] for item in found.traces] == [2]
    assert set(found.codes) == {"record-truncated"}


def test_lines_and_a_single_run_are_read_too(inbox: Inbox) -> None:
    inbox.write("a.jsonl", "".join(json.dumps(run(trial=number)) + "\n" for number in range(2)))
    inbox.write("b.json", json.dumps(run(trial=7), indent=2))
    assert [item.run["attempt"] for item in inbox.read().traces] == [0, 1, 7]


def test_the_batch_names_domain_and_model(inbox: Inbox) -> None:
    inbox.write("batch.yaml", "domain: library\nmodel: small\n")
    inbox.write("a.json", [run()])
    assert inbox.read().only.run == {"task": "3", "attempt": 2, "domain": "library", "model": {"name": "small"}}


ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "x", 0, -1, 1.5, 2**70, True, [], {}, [7], [{}], {"role": 1}])


@given(st.data())
def test_any_damage_gives_a_valid_trace_or_a_refusal(data: st.DataObject) -> None:
    runs = json.loads((SAMPLES / "tau-bench" / "results.json").read_text(encoding="utf-8"))
    value = data.draw(st.sampled_from(runs))
    owner: Any = value
    key = data.draw(st.sampled_from(sorted(owner)))
    while isinstance(owner[key], (dict, list)) and owner[key] and data.draw(st.booleans()):
        owner = owner[key]
        key = data.draw(st.sampled_from(sorted(owner) if isinstance(owner, dict) else range(len(owner))))
    owner[key] = data.draw(ODD)
    item = read(value)
    if isinstance(item, Imported):
        require_valid(item)


@pytest.mark.shared_data
def test_the_shared_files(shared_traces: Path) -> None:
    found = Inbox(shared_traces / "tau1").read()
    assert found.refused == []
    runs = [item for item in found.traces if not item.run.get("demonstration")]
    assert len(runs) == 40
    assert len(found.traces) == 40 + 19
    assert sorted(item.outcome["status"] for item in runs) == ["failure"] * 35 + ["success"] * 5
    assert {item.observed["prompt_templates"][0]["digest"] for item in runs} == {
        runs[0].observed["prompt_templates"][0]["digest"]
    }
    assert len({item.trajectory["session_id"] for item in runs}) == 40
