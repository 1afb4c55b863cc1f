"""Runs of SWE-agent in all generations: text and calls, state before and behind, recorded prompts, attempts."""

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
from tracemark.importers.base import Imported, Refused
from tracemark.importers.detect import detect
from tracemark.importers.head import Head
from tracemark.importers.swe_agent import IMPORTER

from .conftest import Inbox, record_of, repairs_of, require_valid
from .make_golden import SAMPLES

HERE = SAMPLES / "swe-agent"
NAMES = ("attempts", "calls", "grafted", "history-only", "text")


def sample(name: str) -> Any:
    return json.loads((HERE / f"{name}.traj").read_text(encoding="utf-8"))


def read_all(value: Any) -> list[Imported | Refused]:
    return list(IMPORTER.read(record_of(value, "a.traj")))


def trace(value: Any) -> Imported:
    [item] = read_all(value)
    return require_valid(item)


def steps(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace(value).trajectory["steps"]
    return found


def changed(name: str, change: Callable[[Any], object]) -> Any:
    value = sample(name)
    change(value)
    return value


def config(change: Callable[[Any], object]) -> Any:
    """Return the sample with calls, its configuration changed."""
    value = sample("calls")
    held = json.loads(value["replay_config"])
    change(held)
    value["replay_config"] = json.dumps(held)
    return value


def forms(item: Imported) -> dict[str, set[str]]:
    return {name: {entry["form"] for entry in entries} for name, entries in item.observed.items()}


# conversation


def test_the_history_is_the_conversation_with_every_answer_linked() -> None:
    made = steps(sample("calls"))
    assert [step["source"] for step in made] == ["system", "user", "user", "agent", "agent", "agent"]
    assert [step["observation"]["results"][0]["source_call_id"] for step in made[3:]] == ["c1", "c2", "c1#2"]
    assert [step["message"] for step in made[3:]] == ["I open the parser.", "I edit it.", "I submit."]


def test_a_demonstration_is_copied_context() -> None:
    made = steps(sample("calls"))
    assert [step["step_id"] for step in made if step.get("is_copied_context")] == [2]


def test_a_demonstration_of_several_messages_counts_no_model_call() -> None:
    def shown(value: Any) -> None:
        value["history"][1:2] = [
            {"role": "user", "content": "an issue", "is_demo": True},
            {"role": "assistant", "content": "I look.", "is_demo": True, "action": "ls"},
        ]

    item = trace(changed("calls", shown))
    assert [step.get("is_copied_context") for step in item.trajectory["steps"]] == [
        None,
        True,
        True,
        None,
        None,
        None,
        None,
    ]
    assert item.trajectory["steps"][2]["llm_call_count"] == 0
    # the prompt goes on behind it, up to the agent's own first reply
    assert [entry["part"] for entry in item.observed["prompt_templates"]] == ["system", "instance", "demonstration"]
    assert item.trajectory["steps"][4]["extra"]["execution_time"] == 0.5


def test_in_a_text_conversation_the_user_gives_the_observations_and_no_call_is_made_up() -> None:
    made = steps(sample("text"))
    assert [step["source"] for step in made] == ["system", "user", "agent", "agent"]
    [result] = made[2]["observation"]["results"]
    assert result["content"].startswith("[File: p.py]")
    assert result["extra"]["original_role"] == "user"
    assert not any("tool_calls" in step for step in made)
    assert made[2]["extra"]["action"] == "open p.py\n"
    assert made[2]["extra"]["thought"] == "I open the parser.\n"


def test_thinking_is_reasoning_and_its_signatures_stay() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}]
    step = steps(changed("calls", lambda value: value["history"][3].update(thinking_blocks=blocks)))[3]
    assert step["reasoning_content"] == "Hm."
    assert step["extra"]["thinking_blocks"] == blocks


# what the trajectory says beside the history


def test_a_newer_item_holds_the_state_from_which_its_observation_was_made() -> None:
    [result] = steps(sample("calls"))[4]["observation"]["results"]
    assert result["extra"]["raw_output"] == {"observation": "", "open_file": "/repo/p.py", "working_dir": "/repo"}
    assert "state" not in steps(sample("calls"))[4]["extra"]


def test_an_older_item_holds_the_state_in_front_so_the_next_one_has_it() -> None:
    step = steps(sample("text"))[2]
    [result] = step["observation"]["results"]
    assert result["extra"]["raw_output"] == {
        "observation": "[File: p.py]",
        "open_file": "/repo/p.py",
        "working_dir": "/repo",
    }
    assert json.loads(step["extra"]["state"])["open_file"] == "n/a"


def test_an_observation_that_the_model_never_saw_is_none_of_the_conversation() -> None:
    step = steps(sample("text"))[3]
    assert "observation" not in step
    assert step["extra"]["unseen_observation"] == "diff --git a/p.py b/p.py\n"


def test_a_reply_that_was_asked_for_again_is_kept_beside_the_conversation() -> None:
    [item] = trace(sample("text")).trajectory["extra"]["trajectory"]
    assert (item["index"], item["action"]) == (1, "open q.py\n")
    # the reply behind it was made with more in its prompt than the history holds
    management = [step.get("extra", {}).get("context_management") for step in steps(sample("text"))]
    assert management == [None, None, None, {"type": "requery", "boundary": "replace"}]


def test_a_reply_that_ended_the_run_is_its_last_step() -> None:
    def cut(value: Any) -> None:
        del value["history"][-1]

    item = trace(changed("text", cut))
    last = item.trajectory["steps"][-1]
    assert (last["source"], last["message"]) == ("agent", "I submit.\n```\nsubmit\n```")
    assert "taken from the trajectory" in repairs_of(item)
    assert "original_tool_calls" not in last["extra"]


def test_of_a_last_reply_among_calls_the_call_is_missing_and_says_so() -> None:
    def cut(value: Any) -> None:
        del value["history"][-2:]

    last = steps(changed("calls", cut))[-1]
    assert last["message"] == "I submit."
    assert last["extra"]["original_tool_calls"] == {"action": "submit"}


def test_an_item_without_an_action_is_no_reply() -> None:
    def gave_up(value: Any) -> None:
        value["trajectory"].append(
            {"action": "", "observation": "", "response": "Exit due to cost limit", "thought": ""}
        )

    item = trace(changed("text", gave_up))
    assert len(item.trajectory["steps"]) == 4
    assert [left["index"] for left in item.trajectory["extra"]["trajectory"]] == [1, 3]


def test_a_recorded_prompt_is_kept_where_it_is_not_the_history() -> None:
    made = steps(sample("calls"))
    assert not any("prompt" in step["extra"] for step in made[:5])
    extra = made[5]["extra"]
    assert extra["prompt"]["messages"] == 7
    assert {index: message["content"] for index, message in extra["prompt"]["changed"].items()} == {
        "4": "Old environment output: (2 lines omitted)"
    }
    assert extra["context_management"]["boundary"] == "replace"


def test_older_records_of_messages_are_the_prompt_of_the_next_step() -> None:
    def older(value: Any) -> None:
        queries = [item.pop("query") for item in value["trajectory"]]
        for item, query in zip(value["trajectory"], [*queries[1:], []], strict=True):
            item["messages"] = query

    assert steps(changed("calls", older))[5]["extra"]["prompt"] == steps(sample("calls"))[5]["extra"]["prompt"]


def test_a_change_that_was_said_before_is_not_said_again() -> None:
    def again(value: Any) -> None:
        value["trajectory"][1]["query"][2]["content"] = value["trajectory"][2]["query"][2]["content"] = "shorter"

    made = steps(changed("calls", again))
    assert set(made[4]["extra"]["prompt"]["changed"]) == {"2"}
    assert set(made[5]["extra"]["prompt"]["changed"]) == {"4"}


def test_cache_marks_are_no_change_of_a_prompt() -> None:
    def marked(value: Any) -> None:
        content = value["trajectory"][0]["query"][0]["content"]
        value["trajectory"][0]["query"][0]["content"] = [
            {"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}
        ]

    assert "prompt" not in steps(changed("calls", marked))[3]["extra"]


def test_a_history_that_the_configuration_shortens_is_marked_where_it_was() -> None:
    def shortened(held: Any) -> None:
        held["agent"]["history_processors"] = [{"type": "last_n_observations", "n": 1}]

    value = config(shortened)
    for item in value["trajectory"]:
        del item["query"]
    made = steps(value)
    assert ["context_management" in step.get("extra", {}) for step in made[3:]] == [False, False, True]


# run and outcome


def test_run_facts_come_from_a_confirmed_configuration() -> None:
    item = trace(sample("calls"))
    assert item.run == {
        "task": "example__parser-1",
        "model": {"name": "example/model-1"},
        "sampling": {"temperature": 0.2, "top_p": 0.95},
        "environment": {
            "swe_agent_hash": "abc1234",
            "swe_agent_version": "1.1.0",
            "swe_rex_version": "1.2.0",
            "image": "example:latest",
            "environment": "main",
        },
    }
    assert item.trajectory["agent"] == {"name": "swe-agent", "version": "1.1.0", "model_name": "example/model-1"}
    assert item.trajectory["final_metrics"] == {
        "total_cost_usd": 0.02,
        "total_prompt_tokens": 900,
        "total_completion_tokens": 60,
        "extra": {"api_calls": 3},
    }
    assert item.trajectory["extra"]["info"] == sample("calls")["info"]
    assert item.trajectory["extra"]["replay_config"] == json.loads(sample("calls")["replay_config"])
    assert "JSON text" in repairs_of(item)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("submitted", "unknown"),
        ("exit_cost", "unknown"),
        ("submitted (exit_context)", "unknown"),
        ("exit_environment_error", "error"),
        ("submitted (exit_api)", "error"),
        ("exit_error", "error"),
    ],
)
def test_nobody_graded_so_only_a_failure_of_the_surroundings_says_how_it_ended(word: str, status: str) -> None:
    item = trace(changed("calls", lambda value: value["info"].update(exit_status=word)))
    assert item.outcome == {"status": status, "termination": word}


@pytest.mark.parametrize("word", [None, 7])
def test_without_a_word_nothing_is_known_of_the_end(word: Any) -> None:
    assert trace(changed("calls", lambda value: value["info"].update(exit_status=word))).outcome == {
        "status": "unknown"
    }


def test_a_run_without_tokens_was_made_by_no_model() -> None:
    item = trace(changed("text", lambda value: value["info"]["model_stats"].update(tokens_sent=0, tokens_received=0)))
    assert item.run["demonstration"] is True
    assert "by no model" in repairs_of(item)
    assert "demonstration" not in trace(sample("text")).run
    assert "demonstration" not in trace(sample("history-only")).run


def test_a_replaying_model_is_none() -> None:
    assert trace(config(lambda held: held["agent"]["model"].update(name="replay"))).run["demonstration"] is True


def test_several_agents_in_one_history_are_mixed() -> None:
    def other(value: Any) -> None:
        value["history"][3]["agent"] = value["history"][4]["agent"] = "reviewer"

    item = trace(changed("calls", other))
    assert item.mixed == ("history/3: the agent 'reviewer' speaks, not 'main'",)
    assert trace(sample("calls")).mixed == ()


# attempts


def test_each_attempt_is_a_trace_with_a_digest_of_its_own() -> None:
    first, second = map(require_valid, read_all(sample("attempts")))
    assert (first.run["attempt"], second.run["attempt"]) == (0, 1)
    assert first.where.endswith("#0")
    assert first.source["raw"] != second.source["raw"]
    assert [item.outcome["termination"] for item in (first, second)] == ["exit_cost", "submitted"]
    assert first.trajectory["extra"]["retry"] == {"attempts": 2}
    assert second.trajectory["extra"]["retry"]["info"]["best_attempt_idx"] == 1


def test_an_attempt_has_the_digest_that_it_has_alone() -> None:
    value = sample("attempts")
    alone = json.dumps(value["attempts"][0]).encode()
    first = read_all(json.dumps(value).encode())[0]
    assert isinstance(first, Imported)
    assert first.source["raw"] == digest.sha256(alone)


def test_a_last_reply_in_which_the_agent_gave_up_is_no_call_of_the_model() -> None:
    first, second = map(require_valid, read_all(sample("attempts")))
    assert first.trajectory["steps"][-1]["llm_call_count"] == 0
    assert "llm_call_count" not in second.trajectory["steps"][-1]


@pytest.mark.parametrize("in_history", [True, False])
@pytest.mark.parametrize(
    ("action", "is_own"), [("exit_cost", True), ("exit_context", True), ("exit_format", False), ("exit_forfeit", False)]
)
def test_version_0_7_gave_up_with_an_action_of_its_own(action: str, is_own: bool, in_history: bool) -> None:
    def gave_up(value: Any) -> None:
        said = "Exit due to cost limit"
        value["info"]["exit_status"] = action
        value["trajectory"].append({"action": action, "observation": "", "response": said, "thought": said})
        if in_history:
            agent = value["history"][-1].get("agent")
            value["history"].append(
                {"role": "assistant", "content": said, "thought": said, "action": action, "agent": agent}
            )

    last = steps(changed("text", gave_up))[-1]
    assert last["message"] == "Exit due to cost limit"
    assert ("llm_call_count" in last) is is_own


def test_a_broken_attempt_costs_itself() -> None:
    items = read_all(changed("attempts", lambda value: value["attempts"].insert(0, 7)))
    assert [type(item) for item in items] == [Refused, Imported, Imported]


# harness evidence


def test_a_confirmed_configuration_shows_all_four_components() -> None:
    shown = forms(trace(sample("calls")))
    assert shown == {
        "prompt_templates": {"template"},
        "tool_bindings": {"constant"},
        "observation_handlers": {"constant"},
        "runtime": {"constant"},
    }


def test_a_grafted_configuration_is_a_finding_and_nothing_of_it_is_used() -> None:
    item = trace(sample("grafted"))
    assert forms(item) == {"prompt_templates": {"rendered"}}
    assert [found.code for found in item.findings] == ["config-contradicted"]
    assert set(item.run) == {"environment"}
    assert item.trajectory["extra"]["replay_config"]["agent"]["tools"]
    plain = trace(sample("text"))
    assert item.observed == plain.observed
    assert plain.findings == ()


@pytest.mark.parametrize("name", ["command_docs", "env_variables"])
def test_a_shared_template_with_the_values_of_another_harness_is_grafted_too(name: str) -> None:
    other = {"command_docs": "edit:\n  signature: edit\n", "env_variables": {"WINDOW": 200}}[name]
    item = trace(config(lambda held: held["agent"]["tools"].update({name: other})))
    assert [found.code for found in item.findings] == ["config-contradicted"]
    assert set(item.observed) == {"prompt_templates"}


def test_templates_of_version_0_7_are_read_too() -> None:
    def older(held: Any) -> None:
        for name, text in held["agent"]["templates"].items():
            if isinstance(text, str):
                held["agent"]["templates"][name] = text.replace("{{", "{").replace("}}", "}")

    assert forms(trace(config(older)))["prompt_templates"] == {"template"}


@pytest.mark.parametrize(
    "change",
    [
        lambda held: held["agent"]["model"].update(name="other/model", temperature=1.0, api_base="http://example"),
        lambda held: held["env"]["deployment"].update(image="other"),
        lambda held: held.update(output_dir="elsewhere"),
        lambda held: held["agent"]["tools"].update(install_timeout=1),
        lambda held: held["agent"]["tools"]["bundles"].reverse(),
        lambda held: [one.update(path="/elsewhere/" + one["path"]) for one in held["agent"]["tools"]["bundles"]],
    ],
)
def test_labels_places_and_the_order_of_bundles_are_no_identity(change: Callable[[Any], object]) -> None:
    assert trace(config(change)).observed == trace(sample("calls")).observed


@pytest.mark.parametrize(
    ("change", "component"),
    [
        (lambda held: held["agent"]["tools"]["bundles"].pop(), "tool_bindings"),
        (lambda held: held["agent"]["tools"]["bundles"][0].update(hidden_tools=["x"]), "tool_bindings"),
        (lambda held: held["agent"]["tools"].update(enable_bash_tool=False), "tool_bindings"),
        (lambda held: held["agent"]["tools"]["env_variables"].update(OVERLAP=3), "tool_bindings"),
        (lambda held: held["agent"]["templates"].update(next_step_template="{{observation}}"), "observation_handlers"),
        (lambda held: held["agent"]["tools"]["filter"].update(blocklist=[]), "runtime"),
        (lambda held: held["agent"]["tools"]["parse_function"].update(type="thought_action"), "runtime"),
        (lambda held: held["agent"].update(history_processors=[]), "runtime"),
        (lambda held: held["agent"].update(max_requeries=4), "runtime"),
    ],
)
def test_what_is_identity_changes_its_component_alone(change: Callable[[Any], object], component: str) -> None:
    plain, other = trace(sample("calls")), trace(config(change))
    assert {name for name in plain.observed if plain.observed[name] != other.observed[name]} == {component}


# recognition and refusals


@pytest.mark.parametrize("path", sorted(HERE.iterdir()), ids=lambda path: path.name)
def test_samples_are_recognised_and_valid_for_a_peer(path: Path) -> None:
    raw = path.read_bytes()
    assert detect(Head(raw, complete=True)).importer is IMPORTER
    for item in read_all(raw):
        Peer.model_validate(require_valid(item).trajectory)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_document_is_recognised_by_its_beginning(name: str) -> None:
    value = sample(name)
    for run in value.get("attempts", [value]):
        run["history"] += [{"role": "user", "content": "x" * 100_000, "agent": "main"}]
    raw = json.dumps(value, indent=2).encode()[:65_536]
    assert detect(Head(raw, complete=False)).importer is IMPORTER


SETTINGS = "actions:\n  open_pr: false\nagent:\n  config:\n    _commands:\n    - name: open\n  config_file: x.yaml\n"


@pytest.mark.parametrize("content", ["[]", "null", '[{"history": []}]', "Traceback (most recent call last):"])
def test_what_is_no_run_is_refused_and_not_called_settings(content: str, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.write("broken.traj", content)
    found = inbox.read(format="swe-agent")
    assert (found.traces, found.plan.findings) == ([], [])
    assert [one.where.partition("#")[0].partition(":")[0] for one in found.refused] == ["broken.traj"]


def test_settings_beside_old_runs_are_no_trace_and_not_refused(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.write("args.yaml", SETTINGS)
    inbox.write("a.traj", sample("text"))
    found = inbox.read()
    assert found.only.source["importer"] == "swe-agent"
    [beside] = found.plan.findings
    assert (beside.code, beside.where) == ("file-beside", "args.yaml")


def test_other_settings_are_left_to_others() -> None:
    assert IMPORTER.recognise(Head(b"agent:\n  name: x\nactions: []\n", complete=True)) == 0


@pytest.mark.parametrize(
    "value",
    [
        {"history": []},
        {"history": [{"message": "x", "source": "user"}]},
        {"trajectory": [{"id": 1}]},
        {"trajectory": 3},
        [1],
    ],
)
def test_members_of_the_same_names_do_not_make_a_run(value: Any) -> None:
    assert IMPORTER.recognise(Head(json.dumps(value).encode(), complete=True)) == 0


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda value: value["history"].append({"role": "critic", "content": "x"}), "unknown-role", "history/5"),
        (lambda value: value["history"].append(7), "record-unfit", "history/5 is no object"),
        (lambda value: value["trajectory"].append(7), "record-unfit", "trajectory/3 is no object"),
        (lambda value: value.update(history=[]), "record-unfit", "history is empty"),
        (lambda value: value.pop("history"), "record-unfit", "history is no list of messages"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(change: Any, code: str, words: str) -> None:
    [item] = read_all(changed("text", change))
    assert isinstance(item, Refused)
    assert item.code == code
    assert words in item.message


def test_nesting_and_broken_text_are_refused() -> None:
    deep = b'{"trajectory": [], "history": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    for raw in (deep, json.dumps(sample("text")).encode()[:-3]):
        [item] = read_all(raw)
        assert isinstance(item, Refused)
        assert item.code == "record-not-json"


def test_unusual_values_survive() -> None:
    def unusual(value: Any) -> None:
        value["history"][2]["content"] = "\ud83d\x00\x1b[31m"
        value["trajectory"][0]["execution_time"] = 2**70
        value["trajectory"][0]["state"] = "no json"
        value["trajectory"][1]["state"] = "[1]"

    made = steps(changed("text", unusual))
    assert made[2]["message"] == "\ud83d\x00\x1b[31m"
    assert made[2]["extra"]["execution_time"] == 2**70
    assert made[2]["extra"]["response"].startswith("I open")
    assert made[2]["observation"]["results"][0]["extra"]["raw_output"] == {"observation": "[File: p.py]"}


def test_orphans_and_calls_as_text_are_kept() -> None:
    def disorder(value: Any) -> None:
        value["history"][4]["tool_call_ids"] = ["nobody", "c1"]
        value["history"][5]["tool_calls"] = json.dumps(value["history"][5]["tool_calls"])
        value["history"].insert(3, {"role": "tool", "content": "early", "tool_call_ids": ["c1"]})

    item = trace(changed("calls", disorder))
    assert "in front of which no agent spoke" in repairs_of(item)
    assert "answers to no open call" in repairs_of(item)
    assert "tool calls written as JSON text" in repairs_of(item)
    assert b'"tool_call_ids":["nobody","c1"]' in item.trajectory_bytes


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(0.5), st.text(max_size=3), st.just([]), st.just({}), st.just([{}])
)


@given(st.sampled_from(NAMES), st.data())
def test_a_wrong_value_anywhere_gives_valid_traces_or_refusals(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(sample(name))
    at: Any = value
    seen: list[tuple[Any, Any]] = []
    while isinstance(at, (dict, list)) and at and (not seen or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        seen.append((at, key))
        at = at[key]
    holder, key = seen[-1]
    holder[key] = data.draw(VALUES)
    for item in read_all(value):
        if isinstance(item, Imported):
            require_valid(item)
        else:
            assert item.code in ("record-unfit", "unknown-role")
