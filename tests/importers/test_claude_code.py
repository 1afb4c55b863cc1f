"""Claude Code sessions: which records are one reply, one conversation, one run."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.claude_code import IMPORTER
from tracemark.importers.detect import detect
from tracemark.importers.head import Head

from .conftest import Inbox, require_valid
from .make_golden import SAMPLES

HERE = SAMPLES / "claude-code"
Item = Imported | Refused


def rec(name: str, parent: str | None, said: Any, **members: Any) -> dict[str, Any]:
    """A record of the user (a text or blocks), or of the model (a dictionary: its reply)."""
    is_reply = isinstance(said, dict)
    message = said if is_reply else {"role": "user", "content": said}
    return {
        "type": "assistant" if is_reply else "user",
        "uuid": name,
        "parentUuid": parent,
        "sessionId": "s",
        "version": "2.0.1",
        "timestamp": "2026-01-31T10:00:00.000Z",
        "message": message,
        **members,
    }


def reply(name: str, *blocks: Any, **members: Any) -> dict[str, Any]:
    return {
        "id": name,
        "role": "assistant",
        "model": "m",
        "content": [text(b) if isinstance(b, str) else b for b in blocks],
    } | members


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}


def result(name: str, content: Any = "done", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **members}


def read(*lines: Any) -> list[Item]:
    """Read lines: bytes as they are, anything else as JSON."""
    raw = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return list(IMPORTER.read(Record(raw, "s.jsonl", "s.jsonl", last=True)))


def traces(*lines: Any) -> list[Imported]:
    return [require_valid(item) for item in read(*lines)]


def trace(*lines: Any) -> Imported:
    [found] = traces(*lines)
    return found


def steps(*lines: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = trace(*lines).trajectory["steps"]
    return made


def sample(name: str) -> Imported:
    return trace(*(HERE / name).read_bytes().splitlines())


# replies and answers


def test_records_of_one_reply_are_one_step_with_the_usage_that_was_said_last() -> None:
    step = sample("session.jsonl").trajectory["steps"][1]
    assert step["reasoning_content"] == "Two places."
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["t1", "t2"]
    assert step["metrics"]["completion_tokens"] == 30
    assert (step["metrics"]["prompt_tokens"], step["metrics"]["cached_tokens"]) == (114, 100)
    assert step["extra"]["thinking_blocks"] == [{"type": "thinking", "signature": "c2ln"}]


def test_answers_go_to_their_calls_with_what_the_tool_gave() -> None:
    results = sample("session.jsonl").trajectory["steps"][1]["observation"]["results"]
    assert [(one["source_call_id"], one["content"]) for one in results] == [("t1", "1\tx = 1"), ("t2", "a.py")]
    assert results[1]["extra"]["raw_output"] == {"stdout": "a.py", "stderr": "", "interrupted": False}


def test_blocks_that_were_logged_again_count_once_and_the_last_one() -> None:
    made = trace(
        rec("u1", None, "Go."),
        rec("a1", "u1", reply("m1", "I look.")),
        rec("a2", "a1", reply("m1", use("t1", command="l"))),
        rec("a3", "a2", reply("m1", "I look.")),
        rec("a4", "a3", reply("m1", use("t1", command="ls"))),
    )
    step = made.trajectory["steps"][1]
    assert step["message"] == "I look."
    assert [call["arguments"] for call in step["tool_calls"]] == [{"command": "ls"}]
    assert "blocks that records of one reply hold twice: the last one counts" in made.source["repairs"]


def test_a_record_that_stands_twice_counts_once() -> None:
    made = trace(rec("u1", None, "Go."), rec("u1", None, "Go on."), rec("a1", "u1", reply("m1", "Yes.")))
    assert [step["message"] for step in made.trajectory["steps"]] == ["Go on.", "Yes."]
    assert "records that stand in the file twice: the last one counts" in made.source["repairs"]


def test_an_answer_before_its_call_or_to_no_call_stays_where_it_stood_unlinked() -> None:
    made = steps(
        rec("u1", None, [result("t1", "early")]),
        rec("a1", "u1", reply("m1", use("t1"))),
        rec("u2", "a1", [result("t9", "stray"), result("t1", "late")]),
    )
    assert made[0]["observation"]["results"][0]["extra"]["original_call_id"] == "t1"
    linked = {one.get("source_call_id"): one["content"] for one in made[1]["observation"]["results"]}
    assert linked == {"t1": "late", None: "stray"}


def test_a_call_id_that_is_used_again_is_made_unique_and_answered_in_order() -> None:
    made = steps(
        rec("a1", None, reply("m1", use("t1"))),
        rec("u1", "a1", [result("t1", "one")]),
        rec("a2", "u1", reply("m2", use("t1"))),
        rec("u2", "a2", [result("t1", "two")]),
    )
    assert [step["tool_calls"][0]["tool_call_id"] for step in made] == ["t1", "t1#2"]
    assert [step["observation"]["results"][0]["content"] for step in made] == ["one", "two"]


def test_of_two_open_calls_with_one_id_the_first_is_answered_first() -> None:
    calls = [rec("a1", None, reply("m1", use("t1"))), rec("a2", "a1", reply("m2", use("t1")))]
    made = steps(*calls, rec("u1", "a2", [result("t1", "one"), result("t1", "two")]))
    assert [step["observation"]["results"][0]["content"] for step in made] == ["one", "two"]


def test_arguments_that_are_no_object_are_kept_as_they_are() -> None:
    call = {**use("t1"), "input": "not json"}
    [entry] = steps(rec("a1", None, reply("m1", call)))[0]["tool_calls"]
    assert entry["arguments"] == {"_raw": "not json"}


def test_an_image_is_a_part_of_the_message_and_is_never_opened() -> None:
    data = base64.b64encode(bytes(range(256)) * 20_000).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    odd = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "not base64 !"}}
    message = steps(rec("u1", None, [text("See."), image, odd]))[0]["message"]
    assert message[1]["source"] == {"media_type": "image/png", "path": f"data:image/png;base64,{data}"}
    assert message[2]["source"]["path"].endswith("not base64 !")


def test_a_block_without_a_place_keeps_the_reply_from_training() -> None:
    block = {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}
    step = steps(rec("a1", None, reply("m1", "I search.", block)))[0]
    assert step["message"] == "I search."
    assert step["extra"]["original_content"] == [text("I search."), block]


def test_null_absent_and_empty_content_stay_apart() -> None:
    null, absent, empty = (
        steps(rec("u1", None, "x", message={"role": "user", **content}))[0]
        for content in ({"content": None}, {}, {"content": ""})
    )
    assert null["extra"]["original_content"] is None
    assert absent["extra"]["content_missing"] is True
    assert not {"original_content", "content_missing"} & empty["extra"].keys()


# contexts


def test_what_a_tool_gave_in_a_branch_that_was_left_goes_with_it() -> None:
    [made] = traces(
        rec("u1", None, "Go."),
        rec("a1", "u1", reply("m1", use("c1"))),
        rec("u2", "a1", [result("c1")]),
        rec("a2", "u2", reply("m2", "Gone wrong.")),
        rec("u3", "u1", "Another way."),
        rec("a3", "u3", reply("m3", "Right.")),
    )
    assert [step["message"] for step in made.trajectory["steps"]] == ["Go.", "Another way.", "Right."]
    assert [record["uuid"] for record in made.trajectory["extra"]["abandoned"]] == ["a1", "u2", "a2"]


def test_what_follows_clear_is_a_trace_of_its_own_where_no_session_is_named_too() -> None:
    lines = [json.loads(line) for line in (HERE / "cleared.jsonl").read_bytes().splitlines()]
    named = traces(*(json.dumps(line).encode() for line in lines))
    for line in lines:
        line.pop("sessionId", None)
    nameless = traces(*(json.dumps(line).encode() for line in lines))
    said = [[[step["message"] for step in item.trajectory["steps"]] for item in found] for found in (named, nameless)]
    assert said[0] == said[1]


def test_what_follows_clear_is_a_trace_of_its_own() -> None:
    first, second = traces(*(HERE / "cleared.jsonl").read_bytes().splitlines())
    assert [step["message"] for step in second.trajectory["steps"]] == ["Two.", "2"]
    assert (first.where, second.where) == ("s.jsonl#0", "s.jsonl#1")
    assert first.source["raw"] != second.source["raw"]
    lines = (HERE / "cleared.jsonl").read_bytes().splitlines()
    assert second.source["raw"] == digest.sha256(b"\n".join(lines[3:]))


def test_several_tasks_of_the_user_are_one_run() -> None:
    turns = []
    for number in range(3):
        turns += [
            rec(f"u{number}", f"a{number - 1}", "Do."),
            rec(f"a{number}", f"u{number}", reply(f"m{number}", "Ok.")),
        ]
    assert len(steps(*turns)) == 6


def test_another_session_in_the_file_is_a_trace_of_its_own() -> None:
    first, second = traces(rec("u1", None, "One."), rec("v1", "gone", "Two.", sessionId="t"))
    assert (first.trajectory["session_id"], second.trajectory["session_id"]) == ("s", "t")


def test_history_of_another_session_that_this_one_goes_on_from_is_copied() -> None:
    made = trace(
        rec("u1", None, "One.", sessionId="old"),
        rec("a1", "u1", reply("m1", "1"), sessionId="old"),
        rec("u2", "a1", "Two."),
        rec("a2", "u2", reply("m2", "2")),
    )
    assert [step.get("is_copied_context") for step in made.trajectory["steps"]] == [True, True, None, None]


def test_records_that_name_the_session_they_were_forked_from_are_copied() -> None:
    made = steps(rec("u1", None, "One.", forkedFrom={"sessionId": "old"}), rec("a1", "u1", reply("m1", "1")))
    assert [step.get("is_copied_context") for step in made] == [True, None]


def test_another_version_in_one_conversation_makes_the_trace_mixed() -> None:
    made = sample("upgraded.jsonl")
    assert made.mixed == ("step 3: version 2.0.1, before it 2.0.0",)
    assert made.trajectory["steps"][2]["extra"]["version"] == "2.0.1"


def test_another_version_at_a_fresh_root_is_a_clean_split() -> None:
    first, second = traces(
        rec("u1", None, "One.", version="1"),
        rec("a1", "u1", reply("m1", "1"), version="1"),
        rec("u2", None, "Two."),
        rec("a2", "u2", reply("m2", "2")),
    )
    assert (first.mixed, second.mixed) == ((), ())
    assert (first.trajectory["agent"]["version"], second.trajectory["agent"]["version"]) == ("1", "2.0.1")


def test_a_version_behind_a_compaction_is_no_clean_split() -> None:
    summary = rec("u2", "b1", "It was: One.", isCompactSummary=True)
    boundary = {**rec("b1", None, ""), "type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u1"}
    del boundary["message"]
    made = trace(rec("u1", None, "One.", version="1"), boundary, summary, rec("a2", "u2", reply("m2", "2")))
    assert made.mixed == ("step 2: version 2.0.1, before it 1",)
    assert made.trajectory["steps"][1]["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}


def test_other_tools_on_offer_make_the_trace_mixed() -> None:
    lines = (HERE / "stream.jsonl").read_bytes().splitlines()
    other = lines[0].replace(b'"Read"', b'"Write"').replace(b"i1", b"i2")
    assert trace(*lines[:4], lines[0], *lines[4:]).mixed == ()
    assert trace(*lines[:4], other, *lines[4:]).mixed == ("step 2: other tools are on offer than before",)


def test_the_branch_of_the_last_message_is_the_run_and_the_others_are_put_aside() -> None:
    made = sample("session.jsonl")
    said = [step["message"] for step in made.trajectory["steps"] if isinstance(step["message"], str)]
    assert "Then that." not in said
    assert [record["uuid"] for record in made.trajectory["extra"]["abandoned"]] == ["u5", "a6"]


def test_answers_that_hang_on_the_blocks_of_one_reply_are_no_branches() -> None:
    made = trace(
        rec("a1", None, reply("m1", use("t1"))),
        rec("a2", "a1", reply("m1", use("t2"))),
        rec("u1", "a1", [result("t1", "one")]),
        rec("u2", "a2", [result("t2", "two")]),
        rec("a3", "u1", reply("m2", "Both.")),
    )
    assert "abandoned" not in made.trajectory.get("extra", {})
    assert [one["content"] for one in made.trajectory["steps"][0]["observation"]["results"]] == ["one", "two"]


def test_sub_agents_are_embedded_and_their_calls_answer_refers_to_them() -> None:
    for name, key in (("session.jsonl", "k1"), ("stream.jsonl", "t1")):
        made = sample(name).trajectory
        [child] = made["subagent_trajectories"]
        refs = [
            one["subagent_trajectory_ref"]
            for step in made["steps"]
            for one in step.get("observation", {}).get("results", ())
            if "subagent_trajectory_ref" in one
        ]
        assert (child["trajectory_id"], refs) == (key, [[{"trajectory_id": key}]])


def test_a_file_of_a_sub_agent_is_a_part_of_another_run() -> None:
    made = sample("agent-7.jsonl")
    assert (made.run["role"], made.trajectory["trajectory_id"]) == ("subagent", "7")


# outcome and evidence


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({"subtype": "success", "is_error": False}, {"status": "unknown", "termination": "success"}),
        ({"subtype": "error_max_turns", "is_error": False}, {"status": "unknown", "termination": "error_max_turns"}),
        ({"subtype": "error_during_execution"}, {"status": "error", "termination": "error_during_execution"}),
        ({"subtype": "success", "is_error": True}, {"status": "error", "termination": "success"}),
    ],
)
def test_a_result_says_how_the_run_stopped_and_never_whether_it_solved_its_task(
    members: dict[str, Any], outcome: dict[str, Any]
) -> None:
    assert trace(rec("u1", None, "Go."), {"type": "result", "session_id": "s", **members}).outcome == outcome


def test_an_error_of_the_api_is_no_reply_and_ends_the_run_as_an_error() -> None:
    failed = rec("a1", "u1", reply("m1", "API Error: 529", model="<synthetic>"), isApiErrorMessage=True)
    made = trace(rec("u1", None, "Go."), failed)
    assert made.trajectory["steps"][1]["llm_call_count"] == 0
    assert made.outcome == {"status": "error", "termination": "api-error"}
    assert trace(rec("u1", None, "Go."), failed, rec("u2", "a1", "Again.")).outcome == {"status": "unknown"}


def test_a_user_who_interrupts_is_no_failure_of_the_infrastructure() -> None:
    assert (
        trace(rec("u1", None, "Go."), rec("u2", "u1", "[Request interrupted by user]")).outcome["status"] == "unknown"
    )


def test_names_of_tools_prove_nothing() -> None:
    made = sample("stream.jsonl")
    assert (IMPORTER.shows, made.observed, made.content.tools) == ((), {}, None)
    assert made.trajectory["extra"]["records"][0]["record"]["tools"] == ["Bash", "Read"]


def test_of_several_models_none_is_the_runs() -> None:
    made = trace(rec("a1", None, reply("m1", "1")), rec("a2", "a1", reply("m2", "2", model="n")))
    assert "model" not in made.run
    assert [step["model_name"] for step in made.trajectory["steps"]] == ["m", "n"]


# bad input

GOOD = rec("u1", None, "Go.")


def test_each_line_is_judged_by_itself() -> None:
    whole = rec("a1", "u1", reply("m1", "Yes."))
    half = json.dumps(whole).encode()[:40]
    made = trace(b"", GOOD, b'"error"', b"42", b"[1]", {"silly": "this"}, half, whole, json.dumps(whole).encode()[:60])
    assert [step["message"] for step in made.trajectory["steps"]] == ["Go.", "Yes."]
    [found] = made.findings
    assert (found.code, found.severity) == ("line-unread", "warning")
    assert "6 of its lines are no record: 3 (no object), 4 (no object)" in found.message
    assert any("and 1 more" in note for note in made.source["repairs"])


def test_a_whole_line_glued_to_a_half_written_one_is_read() -> None:
    whole = json.dumps(rec("a1", "u1", reply("m1", "Yes."))).encode()
    after = json.dumps(rec("a2", "a1", reply("m2", "Yes."))).encode()
    made = trace(GOOD, whole[:57] + whole, after + after)
    assert [step["message"] for step in made.trajectory["steps"]] == ["Go.", "Yes.", "Yes."]
    assert "lines that are no record, left out: 2 (57 bytes that are no JSON)" in made.source["repairs"]


def test_an_unknown_role_refuses_the_session() -> None:
    [item] = read(GOOD, rec("u2", "u1", "", message={"role": "critic", "content": "No."}))
    assert isinstance(item, Refused)
    assert (item.code, item.message) == ("unknown-role", "line 2 has the role 'critic'")


def test_a_file_without_a_message_is_refused() -> None:
    [item] = read({"type": "summary", "summary": "x", "leafUuid": "y"})
    assert isinstance(item, Refused)
    assert item.code == "record-unfit"


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b'"\\ud800 half"', "\ud800 half"),
        (b'"\\u0000\\u001b[31m"', "\x00\x1b[31m"),
        (b'[{"type": "odd", "n": 1180591620717411303424}]', '[{"n":1180591620717411303424,"type":"odd"}]'),
    ],
)
def test_unusual_texts_and_numbers_survive(content: bytes, kept: str) -> None:
    line = json.dumps(rec("u1", None, "HERE")).encode().replace(b'"HERE"', content)
    assert steps(line)[0]["message"] == kept


def test_what_json_cannot_say_is_named() -> None:
    line = json.dumps(GOOD).encode().replace(b'"Go."', b'"Go.", "a": NaN, "a": NaN')
    notes = trace(line).source["repairs"]
    assert any(note.startswith("NaN is not JSON") for note in notes)
    assert any(note.startswith("duplicate key") for note in notes)


def test_a_line_that_is_nested_too_deeply_costs_itself() -> None:
    deep = b'{"type": "user", "sessionId": "s", "message": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    made = trace(GOOD, deep)
    assert "2 (nested too deeply)" in made.findings[0].message


def test_thousands_of_records_of_one_reply_are_one_step() -> None:
    crowd = [rec(f"a{n}", f"a{n - 1}", reply("m1", f"{n}")) for n in range(5_000)]
    _, step = steps(GOOD, *crowd)
    assert len(step["message"]) == 5_000


def test_a_session_is_recognised_behind_lines_that_say_nothing() -> None:
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
    for lines in ([GOOD], [snapshot, GOOD], ["broken", GOOD], [{"type": "summary", "summary": "", "leafUuid": "x"}]):
        data = "\n".join(json.dumps(line) for line in lines).encode()
        found = detect(Head(data, complete=True)).importer
        assert found is not None
        assert found.name == "claude-code"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["u1", "a1", "t1", "user", "s"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "id", "text", "input", "content", "role", "source"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)
MEMBERS = (
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "version",
    "message",
    "isSidechain",
    "subtype",
    "toolUseResult",
    "agentId",
)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from(MEMBERS), ANY, st.sampled_from(["content", "role", "id", ""]))
    )
)
def test_no_change_of_a_session_makes_the_reading_fail(changes: list[tuple[int, str, Any, str]]) -> None:
    lines = [json.loads(line) for line in (HERE / "session.jsonl").read_bytes().splitlines()]
    for number, name, value, inner in changes:
        line = lines[number]
        if inner and isinstance(line.get("message"), dict):
            line["message"][inner] = value
        else:
            line[name] = value
    for item in read(*lines):
        if isinstance(item, Imported):
            require_valid(item)
        else:
            assert item.code in ("unknown-role", "record-unfit"), item


# real files


@pytest.mark.shared_data
def test_every_shared_session_is_read(shared_traces: Path) -> None:
    found = Inbox(shared_traces / "claude_code").read()
    assert (found.refused, len(found.traces)) == ([], 14)
    for item in found.traces:
        require_valid(item)
        Peer.model_validate(item.trajectory)
        assert (item.observed, item.outcome) == ({}, {"status": "unknown"})
    assert [item.source["label"] for item in found.traces if item.mixed] == [
        "ryoppippi__project-alpha__session-alpha__chat.jsonl"
    ]
    [part] = Inbox(shared_traces / "letta_claude-code").read().traces
    assert part.run["role"] == "subagent"
