"""Codex rollouts: which items are one reply, what was taken back or copied, and what of a harness a file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.codex import IMPORTER
from tracemark.importers.detect import detect
from tracemark.importers.head import Head

from .conftest import Inbox, require_valid
from .make_golden import SAMPLES

HERE = SAMPLES / "codex"
META = {"id": "c", "timestamp": "2026-08-01T10:00:00.000Z", "cli_version": "1", "cwd": "/p"}
TURN = {"approval_policy": "never", "sandbox_policy": {"type": "read-only"}, "model": "m", "effort": "low"}


def line(kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-08-01T10:00:01.000Z", "type": kind, "payload": payload}


def meta(**members: Any) -> dict[str, Any]:
    return line("session_meta", **{**META, **members})


def turn(**members: Any) -> dict[str, Any]:
    return line("turn_context", **{**TURN, **members})


def item(kind: str, /, **members: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **members)


def event(kind: str, /, **members: Any) -> dict[str, Any]:
    return line("event_msg", type=kind, **members)


def user(words: str) -> dict[str, Any]:
    return item("message", role="user", content=[{"type": "input_text", "text": words}])


def said(words: str, **members: Any) -> dict[str, Any]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": words}], **members)


def call(name: str = "c1", arguments: Any = '{"command":["ls"]}') -> dict[str, Any]:
    return item("function_call", name="shell", arguments=arguments, call_id=name)


def output(name: str = "c1", text: Any = "a.py") -> dict[str, Any]:
    return item("function_call_output", call_id=name, output=text)


def read(*lines: Any) -> list[Imported | Refused]:
    """Read lines: bytes as they are, anything else as JSON."""
    raw = b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines)
    return list(IMPORTER.read(Record(raw, "r.jsonl", "r.jsonl", last=True)))


def trace(*lines: Any) -> Imported:
    [made] = read(*lines)
    return require_valid(made)


def steps(*lines: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = trace(*lines).trajectory["steps"]
    return made


def sample(name: str) -> Imported:
    return trace(*(HERE / name).read_bytes().splitlines())


def shown(made: Imported) -> dict[str, str]:
    return {f"{one['part']}: {one['form']}": one["digest"] for entries in made.observed.values() for one in entries}


# conversation


def test_what_the_model_gave_at_once_is_one_step() -> None:
    made = sample("rollout.jsonl").trajectory["steps"]
    assert [step["source"] for step in made] == ["system", "system", "user", "user", "agent", "agent"]
    step = made[4]
    assert [one["function_name"] for one in step["tool_calls"]] == ["shell", "apply_patch"]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["call_1", "call_2"]
    assert (step["model_name"], step["reasoning_effort"]) == ("model-1-0601", "medium")


def test_a_second_text_is_another_step() -> None:
    made = steps(meta(), user("Go."), said("I look.", phase="commentary"), call(), output(), said("a."), said("b."))
    assert [step["message"] for step in made] == ["Go.", "I look.", "a.", "b."]
    assert made[1]["observation"]["results"][0]["content"] == "a.py"


def test_arguments_stay_as_the_model_wrote_them_and_free_text_is_no_object() -> None:
    [first, second, third] = steps(
        meta(),
        call("c1", '{"a": 1}'),
        call("c2", "bun test"),
        item("custom_tool_call", name="apply_patch", input='{"a":1}', call_id="c3"),
    )[0]["tool_calls"]
    assert (first["arguments"], first["extra"]) == ({"a": 1}, {"arguments": '{"a": 1}'})
    assert (second["arguments"], second["extra"]) == ({"_raw": "bun test"}, {"arguments": "bun test"})
    assert third["arguments"] == {"_raw": '{"a":1}'}


@pytest.mark.parametrize("detail", [None, "high"])
def test_how_closely_an_image_was_looked_at_is_kept(detail: str | None) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": detail}
    parts = [{"type": "input_text", "text": "See."}, image]
    [said, answer] = steps(
        meta(),
        item("message", role="user", content=parts),
        item("function_call", call_id="c1", name="view", arguments="{}"),
        item("function_call_output", call_id="c1", output=parts),
    )
    [result] = answer["observation"]["results"]
    assert (
        [part["type"] for part in said["message"]] == [part["type"] for part in result["content"]] == ["text", "image"]
    )
    kept = [held.get("extra", {}).get("image_detail") for held in (said, result)]
    assert kept == ([None, None] if detail is None else [["high"], ["high"]])


def test_of_an_output_with_flags_the_text_was_seen_and_the_flags_are_kept() -> None:
    [step] = steps(
        meta(),
        item("function_call", call_id="c1", name="exec", arguments="{}"),
        item("function_call_output", call_id="c1", output={"content": "done", "success": True}),
    )
    [result] = step["observation"]["results"]
    assert (result["content"], result["extra"]["output_facts"]) == ("done", {"success": True})


def test_calls_of_every_kind_are_calls() -> None:
    made = steps(
        meta(),
        item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}, status="completed"),
        item("tool_search_call", call_id="c2", arguments={"query": "mail"}, execution="client"),
        item("web_search_call", action={"type": "search", "query": "x"}, status="completed"),
        item("tool_search_output", call_id="c2", tools=[{"name": "send"}]),
    )
    assert [(one["function_name"], one["arguments"]) for one in made[0]["tool_calls"]] == [
        ("local_shell", {"type": "exec", "command": ["ls"]}),
        ("tool_search", {"query": "mail"}),
        ("web_search", {"type": "search", "query": "x"}),
    ]
    assert made[0]["observation"]["results"][0]["source_call_id"] == "c2"
    assert made[0]["extra"]["results_missing"] is True


def test_what_the_models_server_found_is_held_nowhere_and_that_is_marked() -> None:
    local = item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}, status="completed")
    search = item("web_search_call", action={"type": "search", "query": "x"}, status="completed")
    [step] = steps(meta(), search, said("Found."))
    assert step["extra"]["results_missing"] is True
    [step] = steps(meta(), local, said("Done."))
    assert "results_missing" not in step["extra"]


def test_encrypted_reasoning_stays_opaque_and_a_summary_is_no_reasoning_that_a_model_wrote() -> None:
    opaque = trace(meta(), item("reasoning", summary=[], encrypted_content="gAAAA"), said("a"))
    assert "reasoning_content" not in opaque.trajectory["steps"][0]
    assert opaque.trajectory["steps"][0]["extra"]["output"][0]["encrypted_content"] == "gAAAA"
    assert "rendered" not in opaque.run
    summary = [{"type": "summary_text", "text": "Short."}]
    assert trace(meta(), item("reasoning", summary=summary), said("a")).run["rendered"] is True
    open_ = trace(
        meta(), item("reasoning", summary=summary, content=[{"type": "reasoning_text", "text": "Long."}]), said("a")
    )
    assert "rendered" not in open_.run
    assert open_.trajectory["steps"][0]["reasoning_content"] == "Long."
    assert open_.trajectory["steps"][0]["extra"]["output"][0]["summary"] == summary


def test_what_the_program_noted_of_a_call_is_its_raw_output() -> None:
    results = sample("rollout.jsonl").trajectory["steps"][4]["observation"]["results"]
    assert results[0]["extra"]["raw_output"]["exit_code"] == 0
    assert "raw_output" not in results[1]["extra"]


def test_tokens_are_those_of_the_reply_and_a_repeated_report_says_nothing() -> None:
    made = sample("rollout.jsonl").trajectory
    assert [step["metrics"]["prompt_tokens"] for step in made["steps"] if "metrics" in step] == [80, 120]
    assert made["steps"][4]["metrics"]["cached_tokens"] == 40
    assert made["final_metrics"]["total_prompt_tokens"] == 240
    assert "token_count" not in str(made["extra"]["records"])


def test_events_that_repeat_a_text_are_dropped_and_others_are_kept() -> None:
    made = trace(
        meta(), user("Go."), event("user_message", message="Go."), event("agent_message", message="else"), said("a")
    )
    kept = [one["record"]["payload"] for one in made.trajectory["extra"]["records"]]
    assert kept == [{"type": "agent_message", "message": "else"}]


def test_an_orphan_and_an_early_output_stay_unlinked_where_they_stood() -> None:
    made = steps(meta(), output("c1", "early"), call("c1"), output("c9", "stray"), output("c1", "late"))
    assert made[0]["observation"]["results"][0]["extra"]["original_call_id"] == "c1"
    assert [one.get("source_call_id") for one in made[1]["observation"]["results"]] == [None, "c1"]


def test_a_call_id_that_is_used_again_is_made_unique() -> None:
    made = steps(meta(), call(), output(), call(), output(text="b.py"))
    assert [step["tool_calls"][0]["tool_call_id"] for step in made] == ["c1", "c1#2"]
    assert made[1]["observation"]["results"][0]["content"] == "b.py"


def test_an_item_of_an_unknown_kind_is_an_event_and_one_that_nobody_sees_is_aside() -> None:
    made = trace(meta(), user("Go."), item("novelty", x=1), item("ghost_snapshot", ghost_commit={"id": "a"}), said("a"))
    assert made.trajectory["steps"][1]["extra"]["event_type"] == "novelty"
    assert made.trajectory["extra"]["records"][0]["record"]["payload"]["type"] == "ghost_snapshot"


# what was taken back, made shorter, copied


def test_turns_that_were_rolled_back_are_no_part_of_the_run() -> None:
    made = trace(
        meta(),
        user("1"),
        said("a"),
        user("2"),
        said("b"),
        event("thread_rolled_back", num_turns=1),
        user("3"),
        said("c"),
    )
    assert [step["message"] for step in made.trajectory["steps"]] == ["1", "a", "3", "c"]
    [gone] = made.trajectory["extra"]["rolled_back"]
    assert (gone["after"], [step["message"] for step in gone["steps"]]) == (2, ["2", "b"])
    assert "turns that were rolled back: put aside" in made.source["repairs"]


def test_what_the_program_injected_is_no_turn_to_roll_back() -> None:
    injected = user("<environment_context>x</environment_context>")
    made = steps(meta(), injected, user("1"), said("a"), event("thread_rolled_back", num_turns=9), user("2"))
    assert [step["message"] for step in made] == ["<environment_context>x</environment_context>", "2"]


def test_an_output_of_a_call_that_was_rolled_back_is_aside() -> None:
    made = trace(
        meta(), user("0"), said("z"), user("1"), call(), event("thread_rolled_back", num_turns=1), output(), user("2")
    )
    assert [step["message"] for step in made.trajectory["steps"]] == ["0", "z", "2"]
    assert not any("observation" in step for step in made.trajectory["steps"])


def test_a_compaction_is_a_step_with_what_stands_for_the_context() -> None:
    made = steps(
        meta(), user("1"), said("a"), line("compacted", message="It was 1.", replacement_history=[1]), said("b")
    )
    assert made[2]["message"] == "It was 1."
    assert made[2]["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert made[2]["extra"]["item"] == {"replacement_history": [1]}


def test_history_of_the_session_that_a_fork_goes_on_from_is_copied() -> None:
    made = sample("forked.jsonl")
    assert [step.get("is_copied_context") for step in made.trajectory["steps"]] == [True, True, None, None]
    assert made.trajectory["session_id"] == "c-4"


def test_a_fork_whose_history_cannot_be_told_is_a_continuation() -> None:
    made = trace(meta(forked_from_id="b"), meta(id="b"), user("1"), said("a"))
    assert made.run["role"] == "continuation"


def test_a_session_that_begins_behind_another_one_is_a_trace_of_its_own() -> None:
    first, second = read(meta(), user("1"), said("a"), meta(id="d", timestamp="2026-08-01T11:00:00.000Z"), user("2"))
    assert isinstance(first, Imported)
    assert isinstance(second, Imported)
    assert (first.trajectory["session_id"], second.trajectory["session_id"]) == ("c", "d")
    assert (first.where, first.mixed, second.mixed) == ("r.jsonl#0", (), ())
    assert first.source["raw"] != second.source["raw"]


def test_sessions_in_one_array_are_records_of_their_own() -> None:
    lines = [meta(), user("1"), said("a"), meta(id="d", timestamp="2026-08-01T11:00:00.000Z"), user("2")]
    raw = json.dumps(lines, indent=1).encode()
    _, second = IMPORTER.read(Record(raw, "r.json", "r.json"))
    assert isinstance(second, Imported)
    assert second.source["raw"] == digest.of(lines[3:])
    assert [step["message"] for step in second.trajectory["steps"]] == ["2"]


def test_a_repeated_session_meta_says_nothing() -> None:
    made = trace(meta(), user("1"), meta(), said("a"))
    assert (made.mixed, "records" in made.trajectory["extra"]) == ((), False)


def test_a_sub_agent_is_a_part_of_another_run_and_shows_no_prompt() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "c-0"}}}
    made = trace(meta(source=source, base_instructions={"text": "Be a helper."}), turn(), user("1"), said("a"))
    assert (made.run["role"], made.trajectory["trajectory_id"]) == ("subagent", "c")
    assert set(made.observed) == {"runtime"}


# harness


def test_the_system_prompt_is_held_whole_and_the_workspaces_text_is_not_the_harness() -> None:
    with_rules = trace(meta(base_instructions={"text": "Be exact."}, instructions="# Rules"), user("1"), said("a"))
    without = trace(meta(base_instructions="Be exact."), user("1"), said("a"))
    assert shown(with_rules) == shown(without) == {"base_instructions: constant": digest.of("Be exact.")}
    assert trace(meta(instructions="# Rules"), user("1"), said("a")).observed == {}
    assert with_rules.trajectory["steps"][0]["message"] == "Be exact."


def test_policies_are_runtime_without_the_folders_in_them() -> None:
    policies = [{"type": "workspace-write", "writable_roots": [root]} for root in ("/a", "/b")]
    one, other = (trace(meta(), turn(sandbox_policy=policy), user("1"), said("a")) for policy in policies)
    assert one.observed == other.observed
    assert set(shown(one)) == {"approval_policy: constant", "sandbox_policy: constant"}
    strict = trace(meta(), turn(approval_policy="untrusted"), user("1"), said("a"))
    assert shown(strict)["approval_policy: constant"] != shown(one)["approval_policy: constant"]


def test_labels_are_no_identity() -> None:
    git = {"commit_hash": "abc", "branch": "main"}
    one = trace(meta(), turn(), user("1"), said("a"))
    other = trace(meta(cli_version="2", cwd="/q", git=git, originator="x"), turn(model="n"), user("1"), said("a"))
    assert one.observed == other.observed
    assert other.run["environment"]["git"] == git


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ([meta(cli_version="2")], "step 3: version 2, before it 1"),
        ([turn(approval_policy="untrusted")], "step 3: another approval_policy than before"),
        ([meta(base_instructions={"text": "Be brief."})], "step 3: another system prompt than before"),
        ([turn(model="n", effort="high")], None),
    ],
)
def test_what_changes_within_a_session_makes_it_mixed(later: list[Any], words: str | None) -> None:
    start = meta(base_instructions={"text": "Be exact."}) if words and "prompt" in words else meta()
    made = trace(
        start, turn(), *([] if words and "prompt" in words else [user("0")]), said("a"), *later, user("2"), said("b")
    )
    assert made.mixed == (() if words is None else (words,))


def test_a_policy_that_changed_is_none() -> None:
    made = sample("changed.jsonl")
    assert set(shown(made)) == {"sandbox_policy: constant"}
    assert made.mixed == ("step 4: version 1.3.0, before it 1.2.0", "step 4: another approval_policy than before")


# outcome


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ([], {"status": "unknown"}),
        ([event("turn_aborted", reason="interrupted")], {"status": "unknown", "termination": "aborted: interrupted"}),
        ([event("turn_aborted", reason="interrupted"), user("Go on.")], {"status": "unknown"}),
        ([event("error", message="gone"), event("task_complete")], {"status": "error", "termination": "error"}),
        ([event("stream_error", message="retrying")], {"status": "unknown"}),
    ],
)
def test_a_session_says_how_it_stopped_and_never_whether_it_solved_its_task(
    last: list[Any], outcome: dict[str, Any]
) -> None:
    assert trace(meta(), user("1"), said("a"), *last).outcome == outcome


# other files, bad input


def test_bare_items_are_a_rollout() -> None:
    made = sample("bare.jsonl")
    assert [step["source"] for step in made.trajectory["steps"]] == ["user", "agent", "agent"]
    assert made.trajectory["steps"][1]["tool_calls"][0]["arguments"] == {"_raw": "ls -l"}
    assert (made.trajectory["session_id"], made.observed) == ("c-6", {})


def test_a_log_of_the_terminal_program_is_told_and_refused(inbox: Inbox) -> None:
    entry = {"ts": "2025-08-09T15:51:04Z", "dir": "to_tui", "kind": "app_event"}
    inbox.write("session.jsonl", "\n".join(json.dumps(entry) for _ in range(3)))
    [refused] = inbox.read().refused
    assert (refused.code, "is no rollout" in refused.message) == ("record-unfit", True)
    assert refused.hint is not None
    assert "rollout-*.jsonl" in refused.hint


def test_each_line_is_judged_by_itself() -> None:
    whole = json.dumps(said("a")).encode()
    made = trace(meta(), user("1"), whole[:30], b"42", whole[:44] + whole, {"odd": 1}, whole[:20])
    assert [step["message"] for step in made.trajectory["steps"]] == ["1", "a"]
    [found] = made.findings
    assert found.code == "line-unread"
    assert found.message.startswith(
        "5 of its lines are no record: 3 (30 bytes that are no JSON), 4 (no object), 5 (44 "
    )


def test_an_unknown_role_refuses_the_session() -> None:
    [refused] = read(meta(), item("message", role="critic", content=[]))
    assert isinstance(refused, Refused)
    assert refused.code == "unknown-role"


def test_a_file_without_an_item_is_refused() -> None:
    for lines in ([meta(), turn()], [meta(), item("ghost_snapshot")]):
        [refused] = read(*lines)
        assert isinstance(refused, Refused)
        assert refused.code == "record-unfit"


def test_unusual_texts_and_numbers_survive() -> None:
    raw = json.dumps(call("c1", "HERE")).encode().replace(b'"HERE"', b'"{\\"n\\": 1180591620717411303424}"')
    made = trace(meta(), raw, json.dumps(output(text="\x00\x1b[31m")).encode(), json.dumps(said("\ud800")).encode())
    first, second = made.trajectory["steps"]
    assert first["tool_calls"][0]["arguments"] == {"n": 1180591620717411303424}
    assert first["observation"]["results"][0]["content"] == "\x00\x1b[31m"
    assert second["message"] == "\ud800"


def test_a_line_that_is_nested_too_deeply_costs_itself() -> None:
    deep = b'{"type": "response_item", "payload": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert "2 (nested too deeply)" in trace(meta(), deep, said("a")).findings[0].message


def test_a_line_of_millions_of_characters_is_read() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 4_800_000}
    [step] = steps(meta(), item("message", role="user", content=[image]))
    assert step["message"][0]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    "line",
    [
        b'{"role": "user", "content": "hello"}',
        b'{"id": "s", "timestamp": "t", "instructions": null, "type": "other"}',
        b'{"type": "event", "payload": 7, "timestamp": "t"}',
        b'{"type": "message", "role": "user", "content": [{"type": "text", "text": "hello"}]}',
    ],
)
def test_lines_of_others_are_left_to_others(line: bytes) -> None:
    assert IMPORTER.recognise(Head(line, complete=True)) == 0


@pytest.mark.parametrize("name", ["rollout.jsonl", "changed.jsonl", "forked.jsonl", "spawned.jsonl", "bare.jsonl"])
def test_a_rollout_is_recognised_by_its_lines(name: str) -> None:
    found = detect(Head((HERE / name).read_bytes(), complete=True)).importer
    assert found is not None
    assert found.name == "codex"


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["call_1", "user", "message", "c-1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "id", "text", "content", "role", "info", "num_turns"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)
MEMBERS = (
    "type",
    "role",
    "content",
    "call_id",
    "arguments",
    "output",
    "info",
    "id",
    "num_turns",
    "model",
    "summary",
    "input",
)


@given(
    st.sampled_from(["rollout.jsonl", "changed.jsonl", "forked.jsonl"]),
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(MEMBERS), ANY, st.booleans())),
)
def test_no_change_of_a_rollout_makes_the_reading_fail(name: str, changes: list[tuple[int, str, Any, bool]]) -> None:
    lines = [json.loads(one) for one in (HERE / name).read_bytes().splitlines()]
    for number, member, value, outer in changes:
        one = lines[number % len(lines)]
        (one if outer or not isinstance(one["payload"], dict) else one["payload"])[member] = value
    for made in read(*lines):
        if isinstance(made, Imported):
            require_valid(made)
        else:
            assert made.code in ("unknown-role", "record-unfit"), made


# real files


@pytest.mark.shared_data
def test_every_shared_rollout_is_read_and_every_log_of_the_terminal_program_refused(shared_traces: Path) -> None:
    found = Inbox(shared_traces / "codex").read()
    assert [(one.where[:13], one.code) for one in found.refused] == [("OpenAgentsInc", "record-unfit")] * 2
    assert len(found.traces) == 7
    by_end = {item.source["label"][-10:-6]: item for item in found.traces}
    for made in found.traces:
        require_valid(made)
        Peer.model_validate(made.trajectory)
        assert (made.mixed, made.outcome["status"]) == ((), "unknown")
        # the text in `instructions` of one of them is the workspace's own
        assert set(made.observed) == {"runtime"}
    assert len(by_end["0006"].trajectory["extra"]["rolled_back"]) == 1
    assert [step.get("is_copied_context") for step in by_end["0007"].trajectory["steps"]] == [True, True, None, None]
    assert by_end["0104"].run["role"] == "subagent"
    assert by_end["0005"].outcome["termination"] == "aborted: interrupted"
