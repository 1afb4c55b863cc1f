"""Simulations of τ²-bench: from a file with all of them, from a folder with one file each."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import Context, Imported, Limits, Refused
from tracemark.importers.detect import detect
from tracemark.importers.head import Head
from tracemark.importers.tau2 import IMPORTER

from .conftest import Inbox, record_of, require_valid
from .make_golden import SAMPLES

RESULTS: dict[str, Any] = json.loads((SAMPLES / "tau2" / "results.json").read_text(encoding="utf-8"))
POLICY = RESULTS["info"]["environment_info"]["policy"]


def simulation(number: int = 0, **members: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RESULTS["simulations"][number]), **members}


def around(**info: Any) -> dict[str, Any]:
    return copy.deepcopy({"info": {**RESULTS["info"], **info}, "tasks": RESULTS["tasks"]})


def read(value: Any, members: Any = None, **limits: Any) -> Imported | Refused:
    context = Context(limits=Limits(**limits))
    known = around() if members is None else members
    [item] = IMPORTER.read(record_of(value, "a.json#0", context=context, around=known))
    return item


def trace(value: Any, members: Any = None, **limits: Any) -> Imported:
    return require_valid(read(value, members, **limits))


# facts


def test_the_run_s_facts_are_those_of_the_simulation_and_its_file() -> None:
    item = trace(simulation())
    assert item.run == {
        "task": "lend_1",
        "domain": "library",
        "attempt": 0,
        "seed": 626729,
        "mode": "half_duplex",
        "start": "2026-01-02T10:00:00.000001",
        "end": "2026-01-02T10:00:58.000001",
        "model": {"name": "desk/small-model"},
        "sampling": {"temperature": 0.0},
        "environment": {
            "git_commit": "0" * 40,
            "max_steps": 30,
            "max_errors": 10,
            "user_implementation": "user_simulator",
            "user_llm": "desk/user-model",
        },
    }
    assert item.trajectory["session_id"] == simulation()["id"]
    assert item.trajectory["agent"] == {"name": "llm_agent", "version": "unknown", "model_name": "desk/small-model"}
    assert item.trajectory["final_metrics"] == {"total_cost_usd": 0.002}


def test_all_else_is_kept_once() -> None:
    extra = trace(simulation(more={"x": None}, effect_timeline=None)).trajectory["extra"]
    assert extra["info"] == RESULTS["info"]
    assert extra["task"] == RESULTS["tasks"][0]
    assert extra["simulation"] == {
        "timestamp": "2026-01-02T10:00:59.000001",
        "duration": 58.0,
        "user_cost": 0.001,
        "hallucination_retries_used": 0,
        "more": {"x": None},
    }


def test_nothing_is_evidence_of_the_harness() -> None:
    item = trace(simulation(messages=[{"role": "system", "content": POLICY}, *simulation()["messages"]]))
    assert (item.observed, item.content.tools) == ({}, None)


@pytest.mark.parametrize("value", [None, 7, "x", True, [], {}])
@pytest.mark.parametrize("name", sorted(simulation()))
def test_a_member_of_another_kind_is_kept_or_refused(name: str, value: Any) -> None:
    item = read(simulation(**{name: value}))
    if isinstance(item, Imported):
        require_valid(item)
    else:
        assert (name, item.code) in (("messages", "record-unfit"), ("ticks", "record-unfit"))


# outcome


@pytest.mark.parametrize(
    ("ended", "reward", "status", "rule"),
    [
        ("user_stop", 1.0, "success", "reward"),
        ("agent_stop", 0.0, "failure", "reward"),
        ("user_stop", 0.5, "failure", "reward"),
        ("max_steps", 0.0, "failure", "reward"),
        ("too_many_errors", 0.0, "failure", "reward"),
        ("agent_error", 0.0, "failure", "reward"),
        ("user_error", 0.0, "failure", "reward"),
        ("infrastructure_error", 0.0, "error", "termination_reason"),
        ("unexpected_error", 1.0, "error", "termination_reason"),
        ("infrastructure_error", None, "error", "termination_reason"),
        ("agent_error", None, "error", "termination_reason"),
        ("user_error", None, "error", "termination_reason"),
        ("too_many_errors", None, "error", "termination_reason"),
        ("user_stop", None, "unknown", None),
        ("timeout", None, "unknown", None),
        ("a new word", 1.0, "success", "reward"),
    ],
)
def test_the_reward_counts_unless_the_program_failed(
    ended: str, reward: float | None, status: str, rule: str | None
) -> None:
    info = None if reward is None else {"reward": reward, "db_check": {"db_match": True}}
    item = trace(simulation(termination_reason=ended, reward_info=info))
    assert (item.outcome["status"], item.outcome.get("rule"), item.outcome["termination"]) == (status, rule, ended)
    assert item.outcome.get("reward") == reward
    assert item.outcome.get("checks") == (None if info is None else {"db_check": {"db_match": True}})
    assert item.findings == ()


def test_an_end_that_nobody_knows_is_a_finding_where_no_reward_says_more() -> None:
    item = trace(simulation(termination_reason="\x1b[31mgone", reward_info=None))
    [found] = item.findings
    assert (item.outcome["status"], found.code) == ("unknown", "verdict-unread")
    assert "\x1b" not in found.message


def test_a_reward_that_is_no_number_is_no_verdict_and_is_kept() -> None:
    outcome = trace(simulation(reward_info={"reward": True})).outcome
    assert outcome == {"status": "unknown", "termination": "user_stop", "checks": {"reward": True}}


def test_a_later_review_belongs_to_the_outcome_and_leaves_the_trace_the_same() -> None:
    first, again = trace(simulation()), trace(simulation(review={"has_errors": True}))
    assert again.outcome["checks"]["review"] == {"has_errors": True}
    assert first.trajectory_bytes == again.trajectory_bytes


def test_a_run_without_messages_is_stored_with_its_end() -> None:
    item = trace(simulation(3))
    assert item.outcome == {
        **item.outcome,
        "status": "error",
        "reward": 0.0,
        "termination": "infrastructure_error",
    }
    assert [step["extra"] for step in item.trajectory["steps"]] == [{"event_type": "no-messages"}]
    assert item.trajectory["extra"]["simulation"]["info"] == {"error": "connection lost"}


def test_text_that_no_model_wrote_makes_the_run_rendered() -> None:
    value = simulation()
    value["messages"][4]["content"] = "Another text."
    assert trace(value).run["rendered"] is True
    assert "rendered" not in trace(simulation()).run


# files that were resumed


def test_a_run_under_another_policy_than_its_file_states_is_mixed() -> None:
    item = trace(simulation(policy="Another policy."))
    [told] = item.mixed
    assert told.startswith("step 1: the run had another policy than its file states")
    assert item.trajectory["extra"]["simulation"]["policy"] == "Another policy."


def test_a_run_that_took_more_turns_than_its_file_allows_is_mixed() -> None:
    # the sample takes ten turns without the greeting's
    assert trace(simulation(), around(max_steps=8)).mixed == ()
    [told] = trace(simulation(), around(max_steps=7)).mixed
    assert told.startswith("step 8: the run took 10 turns, and its file allows 7")


@pytest.mark.parametrize(
    "info",
    [{}, {"retrieval_config": "bm25"}, {"environment_info": None}, {"max_steps": None}, {"max_steps": True}],
)
def test_what_proves_nothing_mixes_nothing(info: dict[str, Any]) -> None:
    policy = POLICY if "retrieval_config" not in info else "made for this run"
    assert trace(simulation(policy=policy), around(**info)).mixed == ()


def test_other_commits_and_versions_are_labels() -> None:
    one, other = (trace(simulation(), around(git_commit=commit)) for commit in ("a" * 40, "b" * 40))
    assert (one.mixed, one.observed) == (other.mixed, other.observed) == ((), {})


# what is refused


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (simulation(messages=None, ticks=[{"tick_id": 0}]), "record-unfit", "a voice run"),
        (simulation(mode="full_duplex"), "record-unfit", "a voice run"),
        (simulation(messages={}), "record-unfit", "no list"),
        ({"id": "x"}, "record-unfit", "no simulation"),
        (7, "record-unfit", "no simulation"),
        (simulation(messages=[{"role": "referee"}]), "unknown-role", "referee"),
        (simulation(messages=[7]), "record-unfit", "messages/0"),
        (b'{"task_id": "x", "messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "record-not-json", ""),
        (b'{"task_id": "x", "messages": [{"role', "record-not-json", ""),
    ],
)
def test_what_is_no_run_of_texts_is_refused(value: Any, code: str, words: str) -> None:
    item = read(value)
    assert isinstance(item, Refused)
    assert (item.code, words in item.message) == (code, True)


def test_odd_values_survive() -> None:
    value = simulation(seed=2**70, note="\ud800\x00")
    value["messages"][1]["content"] = "\x1b[31m\ud83d"
    item = trace(value)
    assert item.run["seed"] == 2**70
    assert item.trajectory["extra"]["simulation"]["note"] == "\ud800\x00"
    assert item.trajectory["steps"][1]["message"] == "\x1b[31m\ud83d"
    doubled = trace(b'{"task_id": 1, "task_id": 2, "duration": NaN, "messages": [{"role": "user", "content": "a"}]}')
    assert "duplicate" in "; ".join(doubled.source["repairs"])


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", 0, -1, 1.5, 2**70, True, [], {}, [7], [{}], {"role": 1}, {"usage": 1}]
)


@given(st.data())
def test_any_damage_gives_a_valid_trace_or_a_refusal(data: st.DataObject) -> None:
    value = {"simulation": simulation(data.draw(st.integers(0, 4))), **around()}
    for _ in range(data.draw(st.integers(1, 3))):
        owner: Any = value
        key: Any = data.draw(st.sampled_from(["simulation", "simulation", "info", "tasks"]))
        while isinstance(owner[key], (dict, list)) and owner[key] and (owner is value or data.draw(st.integers(0, 3))):
            owner = owner[key]
            key = data.draw(st.sampled_from(sorted(owner) if isinstance(owner, dict) else range(len(owner))))
        owner[key] = copy.deepcopy(data.draw(ODD))
    damaged = value.pop("simulation")
    item = read(damaged, value)
    if isinstance(item, Imported):
        require_valid(item)


# files and folders


@pytest.mark.parametrize("order", [("info", "tasks", "simulations"), ("simulations", "tasks", "info")])
def test_a_file_gives_the_same_traces_wherever_its_settings_stand(inbox: Inbox, order: tuple[str, ...]) -> None:
    inbox.write("a.json", {name: RESULTS[name] for name in order})
    found = inbox.read()
    assert found.refused == []
    assert [item.run["domain"] for item in found.traces] == ["library"] * 5
    assert [item.where for item in found.traces] == [f"a.json#{number}" for number in range(5)]


def test_two_files_of_one_name_have_each_its_own_settings(inbox: Inbox) -> None:
    for name in ("one", "other"):
        info = {**RESULTS["info"], "environment_info": {"domain_name": name}}
        inbox.write(f"{name}/results.json", {"info": info, "tasks": [], "simulations": [simulation()]})
    found = inbox.read("one/results.json", "other/results.json")
    assert [item.run["domain"] for item in found.traces] == ["one", "other"]


def test_a_folder_of_simulations_is_read_with_the_file_above_it(inbox: Inbox) -> None:
    inbox.write("run/results.json", {**around(), "simulation_index": []})
    for number in (0, 1):
        inbox.write(f"run/simulations/{number}.json", json.dumps(simulation(number), indent=2))
    found = inbox.read()
    assert found.refused == []
    assert [item.trajectory for item in found.traces] == [trace(simulation(number)).trajectory for number in (0, 1)]
    assert [(item.code, item.where) for item in found.plan.findings] == [("file-beside", "run/results.json")]


def test_a_file_that_is_cut_in_front_of_its_simulations_is_refused(inbox: Inbox) -> None:
    whole = json.dumps({**around(), "simulations": [simulation()]}).encode()
    inbox.write("results.json", whole[: whole.index(b'"simulations"')])
    found = inbox.read(format="tau2")
    assert [one.where for one in found.refused] == ["results.json"]
    assert found.plan.findings == []


def test_a_long_file_above_a_folder_is_beside_it_too(inbox: Inbox) -> None:
    tasks = [*RESULTS["tasks"], {"id": "long", "ticket": "x" * 300_000}]
    inbox.write("run/results.json", json.dumps({**around(), "tasks": tasks}, indent=2))
    inbox.write("run/simulations/0.json", simulation())
    assert inbox.read().only.run["domain"] == "library"


def test_a_long_file_without_simulations_and_no_folder_is_refused(inbox: Inbox) -> None:
    tasks = [{"id": "long", "ticket": "x" * 300_000}]
    inbox.write("run/results.json", json.dumps({**around(), "tasks": tasks}, indent=2))
    assert inbox.read().codes == ["record-unfit"]


@pytest.mark.parametrize("above", [None, b"{", b"[]", b"{}"])
def test_a_simulation_without_the_file_above_it_says_what_is_missing(inbox: Inbox, above: bytes | None) -> None:
    if above is not None:
        inbox.write("run/results.json", above)
    inbox.write("run/simulations/0.json", simulation(policy=None))
    inbox.write("run/simulations/1.json", simulation(1))
    found = inbox.read().traces
    assert [[one.code for one in item.findings] for item in found] == [["header-missing"]] * 2
    assert "domain" not in found[0].run
    assert found[0].trajectory["agent"] == {"name": "unknown", "version": "unknown"}
    assert found[1].trajectory["extra"]["simulation"]["policy"] == POLICY


def test_simulations_alone_never_read_above_what_was_given(inbox: Inbox) -> None:
    inbox.write("run/results.json", around())
    inbox.write("run/simulations/0.json", simulation())
    assert [one.code for one in inbox.read("run/simulations").only.findings] == ["header-missing"]


def test_notes_on_a_changed_prompt_are_no_traces_and_no_templates(inbox: Inbox) -> None:
    inbox.write("a.results.json", {**around(), "simulations": [simulation()]})
    inbox.write("a.prompt_variant.json", {"prompt_variant": "Be brief.", "prompt_variant_target": "system_prompt"})
    inbox.write("a.prompt_variant.txt", "Be brief.\n")
    inbox.write("b.txt", "Something else.\n")
    found = inbox.read()
    assert [item.where for item in found.plan.findings] == ["a.prompt_variant.json", "a.prompt_variant.txt"]
    assert all(item.code == "file-beside" and "no template" in item.message for item in found.plan.findings)
    assert [item.observed for item in found.traces] == [{}]
    assert [(item.code, item.where) for item in found.refused] == [("format-unknown", "b.txt")]


def test_a_file_that_ends_in_its_middle_gives_the_runs_in_front(inbox: Inbox) -> None:
    inbox.write("a.json", json.dumps(RESULTS)[:-2000])
    found = inbox.read()
    assert 0 < len(found.traces) < 5
    assert set(found.codes) == {"record-truncated"}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [5_000, None])
def test_results_and_simulations_are_told_by_their_beginning(indent: int | None, size: int | None) -> None:
    for value in (RESULTS, simulation()):
        data = json.dumps(value, indent=indent).encode()[:size]
        found = detect(Head(data, complete=size is None)).importer
        assert found is not None
        assert found.name == "tau2"
