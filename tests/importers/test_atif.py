"""ATIF of every version, near misses, Harbor trials, documents that belong together, and what documents carry."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers import source
from tracemark.importers.atif import IMPORTER, TERMINUS_CUT, content_of
from tracemark.importers.base import Imported, Record, Refused, verbatim_digest
from tracemark.model.trace import Outcome, Run, Source
from tracemark.model.trajectory import problems

from .conftest import Inbox, Read

Make = Callable[..., dict[str, Any]]

OLD_PREFIX, NEW_PREFIX = "1d7a49f7cb", "c115067a87"


def read(document: Any) -> Imported | Refused:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    [item] = IMPORTER.read(Record(raw, "a.json", "a.json"))
    return item


def trace(document: Any) -> Imported:
    item = read(document)
    assert isinstance(item, Imported), item
    assert problems(item.trajectory) == []
    assert item.trajectory_bytes == digest.canonical(item.trajectory)
    Run.model_validate(item.run)
    Outcome.model_validate(item.outcome)
    Source.model_validate(item.source)
    return item


def repairs(item: Imported) -> str:
    return "; ".join(item.source.get("repairs", []))


# the ordinary document


def test_an_ordinary_document_is_stored_as_it_is(document: Make) -> None:
    item = trace(document())
    assert item.trajectory == document()
    assert "repairs" not in item.source
    assert (item.run, item.outcome) == ({"model": {"name": "m"}}, {"status": "unknown"})
    assert item.stamp is None


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_documents_is_read_as_its_documents(inbox: Inbox, document: Make, indent: int | None) -> None:
    alone = [json.dumps(document(n), indent=indent) for n in (1, 2)]
    text = f"[{alone[0]}, 7,\n{alone[1]}]\n"
    inbox.write("a.json", text)
    read = inbox.read()
    assert [item.where for item in read.traces] == ["a.json#0", "a.json#2"]
    assert [item.source["raw"] for item in read.traces] == [digest.sha256(part.encode()) for part in alone]
    assert [item.trajectory for item in read.traces] == [document(1), document(2)]
    assert [(item.code, item.where) for item in read.refused] == [("record-not-object", "a.json#1")]


@pytest.mark.parametrize("minor", range(8))
def test_every_older_version_is_raised_and_named(document: Make, minor: int) -> None:
    item = trace(document(schema_version=f"ATIF-v1.{minor}"))
    assert item.trajectory["schema_version"] == "ATIF-v1.8"
    assert item.source["repairs"] == [f"schema_version ATIF-v1.{minor} raised to ATIF-v1.8"]


@pytest.mark.parametrize("version", ["ATIF-v1.9", "ATIF-v2.0", "2", 1.8, {}])
def test_an_unknown_version_is_refused(document: Make, version: Any) -> None:
    item = read(document(schema_version=version))
    assert isinstance(item, Refused)
    assert item.code == "newer-format"


def test_null_absent_and_empty_stay_apart(document: Make) -> None:
    made = document(notes=None, session_id="")
    made["steps"][2]["observation"]["results"][0]["content"] = None
    item = trace(made)
    assert item.trajectory["notes"] is None
    assert item.trajectory["session_id"] == ""
    assert "trajectory_id" not in item.trajectory
    assert item.content.observations == []


def test_the_writing_of_the_source_does_not_change_the_trace(document: Make) -> None:
    made = document(notes="Grüße 🙂")
    compact, spaced = json.dumps(made, separators=(",", ":")), json.dumps(made, indent=2, sort_keys=True)
    utf8 = json.dumps(made, ensure_ascii=False)
    assert len({trace(text.encode()).trajectory_bytes for text in (compact, spaced, utf8)}) == 1


def test_content_is_what_the_agent_saw_and_did(document: Make) -> None:
    content = trace(document()).content
    assert list(content.messages) == [("system", "Be exact.", 1), ("user", "Where is it?", 2)]
    assert list(content.calls) == [("look_up", 3, "ok")]
    assert list(content.observations) == [(3, "on its way")]
    assert (content.tools, content.tools_key, content.prompt_cut) == (None, None, None)


@pytest.mark.parametrize("event", ["Retrieving content for: Where is it?", "Added workspace context"])
def test_a_system_step_that_tells_what_the_producer_did_is_no_message(document: Make, event: str) -> None:
    made = document()
    made["agent"]["name"] = "openhands"
    noted = [{"source": "system", "message": event}, {"source": "system", "message": "Be quick."}]
    made["steps"][2:2] = noted
    for number, step in enumerate(made["steps"], 1):
        step["step_id"] = number
    content = trace(made).content
    assert [text for role, text, _ in content.messages if role == "system"] == ["Be exact.", "Be quick."]
    made["agent"]["name"] = "desk"
    assert event in [text for _, text, _ in trace(made).content.messages]
    made["steps"][2]["observation"] = {"results": [{"content": "Loaded."}]}
    assert event not in [text for _, text, _ in trace(made).content.messages]


def test_a_system_step_that_names_an_event_is_no_message_wherever_it_stands(document: Make) -> None:
    made = document()
    event = {"source": "system", "message": "Starting.", "extra": {"event_type": "start"}}
    made["steps"] = [event, *made["steps"], event]
    for number, step in enumerate(made["steps"], 1):
        step["step_id"] = number
    content = trace(json.loads(json.dumps(made))).content
    assert list(content.messages) == [("system", "Be exact.", 2), ("user", "Where is it?", 3)]
    assert list(content.later_system) == []
    made["steps"][0] = made["steps"][-1] = {**event, "extra": {"event_type": None, "note": "no event"}}
    made["steps"][0] = {**made["steps"][0], "step_id": 1}
    content = trace(made).content
    assert [step for _, _, step in content.messages] == [1, 2, 3]
    assert list(content.later_system) == [("system", "Starting.", 5)]


@pytest.mark.parametrize("greeting", ["Hello! How can I help?", ""])
def test_system_messages_behind_the_first_reply_are_kept_apart_from_the_prompt(document: Make, greeting: str) -> None:
    made = document()
    rest = made["steps"]
    made["steps"] = [{"source": "agent", "message": greeting}, *rest, {"source": "system", "message": "Be quick."}]
    for number, step in enumerate(made["steps"], 1):
        step["step_id"] = number
    item = trace(made)
    assert list(item.content.messages) == []
    assert list(item.content.later_system) == [("system", "Be exact.", 2), ("system", "Be quick.", 5)]
    assert content_of(item.trajectory) == item.content
    assert "prompt_templates" not in item.observed


def test_what_the_agents_program_said_without_a_call_of_the_model_is_no_reply(document: Make) -> None:
    made = document()
    made["steps"].insert(0, {"source": "agent", "message": "Hello! How can I help?", "llm_call_count": 0})
    for number, step in enumerate(made["steps"], 1):
        step["step_id"] = number
    item = trace(made)
    assert [text for role, text, _ in item.content.messages if role == "system"] == ["Be exact."]
    assert list(item.content.later_system) == []
    assert item.observed["prompt_templates"][0]["digest"] == verbatim_digest("Be exact.")


def test_parts_of_a_text_are_compared_as_they_are_exported_with_nothing_between_them(document: Make) -> None:
    made = document()
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "exact.\n"}]
    made["steps"][0]["message"] = parts
    made["steps"][2]["observation"]["results"][0]["content"] = parts
    content = trace(made).content
    assert content.messages[0] == ("system", "Be exact.\n", 1)
    assert list(content.observations) == [(3, "Be exact.\n")]


@pytest.mark.parametrize(
    ("answer", "extra", "expected"),
    [
        ("done", {}, "ok"),
        ("Error: no such order", {}, "error"),
        ("KeyError: 'x'", {}, "error"),
        ("The tool `look_up` was not found", {}, "error"),
        ("done", {"is_error": True}, "error"),
        ("no errors were found", {}, "ok"),
    ],
)
def test_an_answer_is_read_as_ok_or_error(document: Make, answer: str, extra: dict[str, Any], expected: str) -> None:
    made = document()
    made["steps"][2]["observation"]["results"] = [{"source_call_id": "c1", "content": answer, "extra": extra}]
    assert trace(made).content.calls[0][2] == expected


def test_unlinked_results_answer_calls_in_order_and_a_call_may_have_none(document: Make) -> None:
    made = document()
    step = made["steps"][2]
    step["tool_calls"] = [{**step["tool_calls"][0], "function_name": name} for name in ("one", "two", "three")]
    step["observation"]["results"] = [{"content": "Error"}, {"content": "fine"}]
    assert list(trace(made).content.calls) == [("one", 3, "error"), ("two", 3, "ok"), ("three", 3, "none")]


@pytest.mark.parametrize("name", ["terminus-2", "other"])
def test_the_content_of_a_stored_trajectory_is_what_its_import_saw(document: Make, name: str) -> None:
    made = document()
    step = made["steps"][2]
    made["steps"] += [{"step_id": 4, "source": "user", "message": "And now?"}, {**step, "step_id": 5}]
    made["steps"].append({**step, "step_id": 6, "llm_call_count": 0, "observation": {"results": [{"content": "x"}]}})
    made["agent"] = {**made["agent"], "name": name, "tool_definitions": [{"name": "look_up"}]}
    item = trace(made)
    assert content_of(item.trajectory) == item.content


def test_a_good_answer_of_a_tool_counts_wherever_it_comes(document: Make) -> None:
    made = document()
    step = made["steps"][2]
    again = {**step, "step_id": 4, "observation": {"results": [{"source_call_id": "c1", "content": "fine"}]}}
    step["observation"]["results"] = [{"source_call_id": "c1", "content": "Error"}]
    made["steps"].append(again)
    made["steps"].append({**again, "step_id": 5})
    assert list(trace(made).content.calls) == [("look_up", 4, "ok")]


def test_an_unknown_link_is_found_among_calls_of_one_id(document: Make) -> None:
    made = document()
    step = made["steps"][2]
    step["tool_calls"] *= 2
    step["observation"]["results"] = [
        {"source_call_id": "c1", "content": "a"},
        {"source_call_id": "c9", "content": "b"},
    ]
    item = trace(made)
    assert item.trajectory["steps"][2]["observation"]["results"][1]["extra"] == {"original_call_id": "c9"}


def test_recorded_tools_are_observed_by_their_reduced_schema(document: Make) -> None:
    tool = {"name": "look_up", "description": "Find.", "parameters": {"type": "object", "properties": {}}}
    wrapped = {"type": "function", "function": {**tool, "strict": None}}
    bare, other = document(), document()
    bare["agent"]["tool_definitions"], other["agent"]["tool_definitions"] = [tool], [wrapped]
    first, second = trace(bare), trace(other)
    assert first.observed["tool_bindings"] == second.observed["tool_bindings"]
    assert first.observed["tool_bindings"][0]["form"] == "schema"
    assert first.content.tools_key == digest.canonical([tool])
    assert first.trajectory_bytes != second.trajectory_bytes


def test_an_empty_list_of_tools_proves_nothing(document: Make) -> None:
    made = document()
    made["agent"]["tool_definitions"] = []
    item = trace(made)
    assert item.content.tools is None
    assert "tool_bindings" not in item.observed
    assert item.trajectory["agent"]["tool_definitions"] == []


def test_system_texts_are_observed_as_rendered(document: Make) -> None:
    assert trace(document()).observed == {
        "prompt_templates": [{"part": "system", "form": "rendered", "digest": verbatim_digest("Be exact.")}]
    }


# near misses


def change(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with the member at `path` set; the value `...` removes it."""
    made = copy.deepcopy(document)
    *folders, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place: Any = made
    for part in folders:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


NEAR: list[tuple[str, Any, str]] = [
    ("schema_version", ..., "schema_version missing"),
    ("schema_version", "1.4", "raised to ATIF-v1.8"),
    ("schema_version", "v1.6", "raised to ATIF-v1.8"),
    ("agent/version", 2, "version was a number"),
    ("agent/version", ..., "version missing"),
    ("agent", {"name": "a", "version": "1", "model": "gpt"}, "model read as model_name"),
    ("agent/provider", "x", "unknown member 'provider'"),
    ("agent/tool_definitions", {"a": 1}, "tool_definitions of the wrong kind"),
    ("steps/0/step_id", "1", "step_id counted anew"),
    ("steps/0/step_id", 1.0, "step_id counted anew"),
    ("steps/0/step_id", True, "step_id counted anew"),
    ("steps/0/step_id", 7, "step_id counted anew"),
    ("steps/0/step_id", ..., "step_id counted anew"),
    ("steps/1/tool_calls", [], "tool_calls on a step that is not the agent's removed"),
    ("steps/1/tool_calls", [{"name": "x"}], "tool_calls on a step that is not the agent's moved"),
    ("steps/1/metrics", {"prompt_tokens": 1}, "metrics on a step that is not the agent's"),
    ("steps/2/source", "assistant", "source 'assistant' read as 'agent'"),
    ("steps/1/message", None, "message null"),
    ("steps/1/message", ..., "message null or missing"),
    ("steps/1/message", {"text": "x"}, "written as JSON text"),
    ("steps/1/message", [{"type": "image_url", "image_url": "x"}], "written as JSON text"),
    (
        "steps/1/message",
        [{"type": "image", "source": {"media_type": "image/jpg", "path": "a"}}],
        "image/jpg written as image/jpeg",
    ),
    (
        "steps/1/message",
        [{"type": "audio", "source": {"media_type": "audio/mp3", "path": "a"}}],
        "audio/mp3 written as audio/mpeg",
    ),
    ("steps/1/timestamp", "yesterday", "timestamp of the wrong kind"),
    ("steps/1/timestamp", 1700000000.5, "timestamp of the wrong kind"),
    ("steps/1/timestamp", "2026-01-31T24:00:00Z", "timestamp of the wrong kind"),
    ("steps/2/usage", {"total": 3}, "unknown member 'usage'"),
    ("steps/2/is_copied_context", "yes", "is_copied_context of the wrong kind"),
    ("steps/2/llm_call_count", -1, "llm_call_count of the wrong kind"),
    ("steps/2/llm_call_count", 0, "metrics of a step without a model call"),
    ("steps/2/metrics/prompt_tokens", "12", "written as a whole number"),
    ("steps/2/metrics/prompt_tokens", 12.0, "written as a whole number"),
    ("steps/2/metrics/prompt_tokens", 12.5, "prompt_tokens of the wrong kind"),
    ("steps/2/metrics/cost_usd", "free", "cost_usd of the wrong kind"),
    ("steps/2/metrics/cost_usd", 10**400, "cost_usd of the wrong kind"),
    ("steps/2/reasoning_effort", -(10**309), "reasoning_effort of the wrong kind"),
    ("final_metrics", {"total_cost_usd": 10**309}, "total_cost_usd of the wrong kind"),
    ("steps/2/metrics", "oops", "metrics of the wrong kind"),
    ("steps/2/tool_calls/0/arguments", '{"order": 1}', "arguments that are no object"),
    ("steps/2/tool_calls/0/arguments", "order 1", "arguments that are no object"),
    ("steps/2/tool_calls/0/arguments", [1], "arguments that are no object"),
    ("steps/2/tool_calls/0/arguments", None, "arguments that are no object"),
    ("steps/2/tool_calls/0/tool_call_id", 5, "tool_call_id missing or no text"),
    ("steps/2/tool_calls/0/tool_call_id", ..., "tool_call_id missing or no text"),
    ("steps/2/tool_calls/0/function_name", ..., "function_name missing"),
    ("steps/2/observation", "text", "observation of the wrong kind"),
    ("steps/2/observation/results", {"a": 1}, "observation without a list of results"),
    ("steps/2/observation/note", "x", "unknown member 'note' of the observation"),
    ("steps/2/observation/results/0/content", {"a": 1}, "written as JSON text"),
    ("steps/2/observation/results/0/source_call_id", "c9", "link moved to extra"),
    (
        "steps/2/observation/results/0/subagent_trajectory_ref",
        [{"session_id": "s"}],
        "sub-agent reference of ATIF v1.6",
    ),
    ("steps/2/observation/results/0/subagent_trajectory_ref", {"trajectory_id": "t"}, "read as a list of one"),
    ("final_metrics", {"total_steps": 3.0, "total_cost_usd": "NaN"}, "total_steps"),
    ("created_at", "now", "unknown member 'created_at'"),
    ("extra", [1], "extra of the wrong kind"),
    ("session_id", 17, "session_id of the wrong kind"),
    ("subagent_trajectories", [{"agent": {"name": "a", "version": "1"}, "steps": [{"source": "user"}]}], "made one"),
]


@pytest.mark.parametrize(("path", "value", "words"), NEAR)
def test_a_near_miss_is_repaired_and_named(document: Make, path: str, value: Any, words: str) -> None:
    item = trace(change(document(), path, value))
    assert words in repairs(item)
    Peer.model_validate(item.trajectory)


@pytest.mark.parametrize(("path", "value", "words"), NEAR)
def test_a_repaired_document_needs_no_second_repair(document: Make, path: str, value: Any, words: str) -> None:
    first = trace(change(document(), path, value))
    again = trace(first.trajectory_bytes)
    assert again.trajectory_bytes == first.trajectory_bytes
    assert "repairs" not in again.source


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("steps", [], "steps"),
        ("steps", ..., "steps"),
        ("steps", {"1": {}}, "steps"),
        ("steps/1", "text", "steps/1"),
        ("steps/1/source", "narrator", "steps/1/source"),
        ("steps/1/source", ..., "steps/1/source"),
    ],
)
def test_what_would_need_a_guess_is_refused_with_its_place(document: Make, path: str, value: Any, place: str) -> None:
    item = read(change(document(), path, value))
    assert isinstance(item, Refused)
    assert item.code == "not-atif"
    assert item.message.startswith(place)


def test_what_is_moved_is_kept(document: Make) -> None:
    made = change(document(), "steps/2/usage", {"total": 3})
    made = change(made, "steps/2/tool_calls/0/arguments", '{"order":  1}')
    made = change(made, "steps/1/message", None)
    steps = trace(made).trajectory["steps"]
    assert steps[2]["extra"] == {"usage": {"total": 3}}
    assert steps[2]["tool_calls"][0] == {
        "tool_call_id": "c1",
        "function_name": "look_up",
        "arguments": {"order": 1},
        "extra": {"original_arguments": '{"order":  1}'},
    }
    assert steps[1]["extra"] == {"original_message": None}


def test_an_observation_that_is_a_text_becomes_a_result(document: Make) -> None:
    step = trace(change(document(), "steps/2/observation", "the text")).trajectory["steps"][2]
    assert step["observation"] == {"results": [{"content": "the text"}]}


def test_equal_repairs_are_counted_under_their_first_place(document: Make) -> None:
    made = document()
    for step in made["steps"]:
        step["step_id"] = str(step["step_id"])
    assert trace(made).source["repairs"] == ["steps/1: step_id counted anew (×3)"]


SMALL = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
PATHS = sorted(
    {path for path, _, _ in NEAR} | {"agent", "steps/0", "steps/2/tool_calls", "steps/2/tool_calls/0", "extra"}
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(PATHS), SMALL), min_size=1, max_size=3))
def test_no_content_raises_and_what_is_taken_is_valid(document: Make, changes: list[tuple[str, Any]]) -> None:
    made = document()
    for path, value in changes:
        try:
            made = change(made, path, value)
        except (KeyError, IndexError, TypeError):
            continue
    item = read(made)
    if isinstance(item, Imported):
        assert problems(item.trajectory) == []
        again = read(item.trajectory_bytes)
        assert isinstance(again, Imported)
        assert again.trajectory_bytes == item.trajectory_bytes


def family(make: Make) -> dict[str, dict[str, Any]]:
    """Return three documents: one that embeds a child and names two others, and one of those that names the third."""
    child = {
        "trajectory_id": "kid",
        "agent": {"name": "k", "version": "1"},
        "steps": [{"source": "user", "message": "x"}],
    }
    main = make(1, trajectory_id="main", subagent_trajectories=[child], continued_trajectory_ref="next.json")
    refs = [
        {"trajectory_id": "kid"},
        {"trajectory_path": "sub.json", "trajectory_id": "sub", "session_id": "s-2"},
        {"trajectory_path": "deep.json"},
    ]
    main["steps"][2]["observation"]["results"].append({"content": "z", "subagent_trajectory_ref": refs})
    sub = make(2, trajectory_id="sub")
    sub["steps"][2]["observation"]["results"].append({"subagent_trajectory_ref": [{"trajectory_path": "deep.json"}]})
    return {"main": main, "sub": sub, "deep": make(3), "next": make(4)}


def paths_in(value: Any, path: str = "") -> list[str]:
    """Return the path of every member and element within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, item in inner for found in (f"{path}/{name}", *paths_in(item, f"{path}/{name}"))]


ODD = st.sampled_from([..., ["kid"], {"a": "kid"}, [["x"]], "kid", "sub", "sub.json", "main.json"]) | SMALL


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["files", "lines", "array"]))
def test_no_documents_that_belong_together_raise_and_what_is_taken_is_valid(
    inbox: Inbox, document: Make, data: st.DataObject, form: str
) -> None:
    made: dict[str, Any] = family(document)
    where = [path for path in paths_in(made) if path.count("/") > 1]
    naming = [path for path in where if path.endswith(("trajectory_id", "trajectory_path"))]
    for _ in range(data.draw(st.integers(1, 3))):
        path, value = data.draw(st.sampled_from(naming) | st.sampled_from(where)), data.draw(ODD)
        try:
            made = change(made, path[1:], value)
        except (KeyError, IndexError, TypeError):
            continue
    for left in inbox.path.iterdir():
        left.unlink()
    if form == "files":
        for name, value in made.items():
            inbox.write(f"{name}.json", value)
    elif form == "lines":
        inbox.write("all.jsonl", "".join(json.dumps(value) + "\n" for value in made.values()))
    else:
        inbox.write("all.json", list(made.values()))
    for item in inbox.read().items:
        if isinstance(item, Imported):
            assert problems(item.trajectory) == []
            Run.model_validate(item.run)
            again = read(item.trajectory_bytes)
            assert isinstance(again, Imported)
            assert again.trajectory_bytes == item.trajectory_bytes


@pytest.mark.parametrize("name", [["kid"], {"a": 1}])
@pytest.mark.parametrize("end", ["reference", "child"])
def test_an_id_that_is_no_text_names_nothing(inbox: Inbox, document: Make, name: Any, end: str) -> None:
    made = family(document)
    place = (
        "steps/2/observation/results/1/subagent_trajectory_ref/1" if end == "reference" else "subagent_trajectories/0"
    )
    inbox.write("main.json", change(made["main"], f"{place}/trajectory_id", name))
    inbox.write("sub.json", made["deep"])
    found = inbox.read()
    assert found.refused == []
    assert len(found.traces) == 1
    assert problems(found.traces[0].trajectory) == []


# what a document carries

PART = {"digest": "a" * 64, "evidence": "recorded"}
STAMP = {
    "declared": {
        "name": "desk_a",
        "fingerprint": "tm1:" + "b" * 64,
        "components": {"runtime": {"digest": "c" * 64, "evidence": "recorded", "parts": {"limits": PART}}},
    }
}
CALL = {"tool_call_id": "call_0_1", "function_name": "bash_command", "arguments": {"keystrokes": "ls\n"}}
RAW = '{"analysis": "Nothing yet.", "plan": "Look.", "commands": [{"keystrokes": "ls\\n"}]}'
RENDERED = {"message": "Analysis: Nothing yet.\nPlan: Look.", "tool_calls": [CALL]}
RUN = {"task": "t-1", "attempt": 0, "model": {"name": "qwen", "revision": "r"}}
OUTCOME = {"status": "success", "reward": 1.0}


def test_carried_facts_leave_the_trajectory(document: Make) -> None:
    item = trace(document(extra={"tracemark": {"run": RUN, "outcome": OUTCOME}}))
    assert item.trajectory == document()
    assert (item.run, item.outcome, item.stamp) == (RUN, OUTCOME, None)
    assert "repairs" not in item.source


def test_carried_run_facts_keep_out_what_lies_around_the_document(inbox: Inbox, document: Make) -> None:
    trial(inbox, document(extra={"tracemark": {"run": {"attempt": 1}}}), result={"task_name": "other"})
    assert inbox.read().only.run == {"attempt": 1, "model": {"name": "m"}}


def terminus(*replies: dict[str, Any], **carried: Any) -> dict[str, Any]:
    """Return a document of Terminus-2 with these replies; `carried` are the members of `extra.tracemark`."""
    steps = [{"step_id": 1, "source": "user", "message": "Task Description:\nList the files."}]
    steps += [{"step_id": number, "source": "agent", **reply} for number, reply in enumerate(replies, 2)]
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "m"}
    made = {"schema_version": "ATIF-v1.8", "agent": agent, "steps": steps}
    return {**made, "extra": {"tracemark": carried}} if carried else made


def test_carried_run_facts_hide_nothing_that_the_document_shows() -> None:
    parent = {"parent_session_id": "s-1"}
    made = terminus(RENDERED, run={"task": "t-1"}) | {"continued_trajectory_ref": "next.json"}
    made["agent"]["extra"] = parent
    assert trace(made).run == {
        "task": "t-1",
        "rendered": True,
        "model": {"name": "m"},
        "role": "subagent",
        "continued_by": "next.json",
    }
    stated = {"model": {"name": "n", "revision": "r"}, "rendered": True}
    assert trace(terminus({"message": RAW}, run=stated)).run == stated
    assert trace(terminus({"message": RAW}, run={"model": {"revision": "r"}})).run == {
        "model": {"name": "m", "revision": "r"},
        "rendered": False,
    }


def test_a_carried_fact_that_the_calls_refute_does_not_win() -> None:
    item = trace(terminus(RENDERED, run={"rendered": False}))
    assert item.run["rendered"] is True
    assert "counted as rendered" in repairs(item)
    trace_id = digest.sha256(item.trajectory_bytes)
    assert trace(terminus(RENDERED, run={"rendered": False}, trajectory=trace_id)).run["rendered"] is True
    plain = trace(terminus({"message": "Analysis: None."}, run={"rendered": False}))
    assert plain.run["rendered"] is False


RUNS = st.fixed_dictionaries(
    {},
    optional={
        "task": st.just("t"),
        "model": st.sampled_from([{}, {"name": "n"}, {"revision": "r"}]),
        "rendered": st.booleans(),
        "role": st.sampled_from(["subagent", "continuation"]),
        "continues": st.just("a.json"),
    },
)


@given(st.one_of(st.none(), RUNS), st.lists(st.sampled_from(["raw", "rendered", "plain"]), max_size=2), st.booleans())
def test_an_export_that_is_ingested_again_is_the_same_trace(
    run: dict[str, Any] | None, replies: list[str], named: bool
) -> None:
    known = {"raw": {"message": RAW}, "rendered": RENDERED, "plain": {"message": "Analysis: None."}}
    first = trace(terminus(*(known[reply] for reply in replies), **({} if run is None else {"run": run})))
    carried: dict[str, Any] = {"run": first.run, "outcome": first.outcome}
    if named:
        carried["trajectory"] = digest.sha256(first.trajectory_bytes)
    again = trace({**first.trajectory, "extra": {"tracemark": carried}})
    assert (again.trajectory, again.run, again.outcome) == (first.trajectory, first.run, first.outcome)


def test_what_an_export_says_of_this_very_trajectory_is_whole() -> None:
    trace_id = digest.sha256(trace(terminus(RENDERED)).trajectory_bytes)
    run = {"task": "recorded by another importer"}
    assert trace(terminus(RENDERED, run=run, trajectory=trace_id)).run == run


def test_other_free_data_stays(document: Make) -> None:
    assert trace(document(extra={"a": 1, "tracemark": {"run": RUN}})).trajectory["extra"] == {"a": 1}


def test_an_extra_that_was_empty_before_the_export_stays(document: Make) -> None:
    assert trace(document(extra={"tracemark": {"empty_extra": True}})).trajectory["extra"] == {}


def test_a_stamp_made_for_this_trajectory_holds(document: Make) -> None:
    trace_id = digest.sha256(trace(document()).trajectory_bytes)
    item = trace(document(extra={"tracemark": {"harness": STAMP, "trajectory": trace_id}}))
    assert item.stamp == STAMP
    assert "repairs" not in item.source


@pytest.mark.parametrize("names", [{}, {"trajectory": "d" * 64}])
def test_a_stamp_made_for_another_trajectory_is_only_claimed(document: Make, names: dict[str, str]) -> None:
    item = trace(document(extra={"tracemark": {"harness": STAMP, **names}}))
    assert item.stamp is not None
    [component] = item.stamp["declared"]["components"].values()
    assert component["evidence"] == component["parts"]["limits"]["evidence"] == "claimed"
    assert item.stamp["declared"]["fingerprint"] == STAMP["declared"]["fingerprint"]
    assert "claimed" in repairs(item)


def test_a_component_without_parts_is_lowered_nowhere(document: Make) -> None:
    vacuous = {"digest": "f" * 64, "evidence": "recorded", "parts": {}}
    declared = {**STAMP["declared"], "components": {**STAMP["declared"]["components"], "tool_bindings": vacuous}}
    item = trace(document(extra={"tracemark": {"harness": {**STAMP, "declared": declared}}}))
    assert item.stamp is not None
    assert item.stamp["declared"]["components"]["tool_bindings"] == vacuous


SEEN = {"observed": {"prompt_templates": [{"part": "system", "form": "rendered", "digest": "e" * 64}]}}


@pytest.mark.parametrize("stamp", [SEEN, {**STAMP, **SEEN}])
def test_what_was_seen_of_another_trajectory_is_not_seen_of_this_one(document: Make, stamp: dict[str, Any]) -> None:
    item = trace(document(extra={"tracemark": {"harness": stamp, "trajectory": "d" * 64}}))
    assert "observed" not in (item.stamp or {})
    trace_id = digest.sha256(trace(document()).trajectory_bytes)
    assert trace(document(extra={"tracemark": {"harness": stamp, "trajectory": trace_id}})).stamp == stamp


@pytest.mark.parametrize(
    "carried",
    [
        "text",
        {"outcome": {"status": "won"}},
        {"outcome": {}},
        {"run": {"task": 7}},
        {"run": {"host": "x"}},
        {"harness": {"declared": {"components": {"runtime": {}}}}},
        {"\ud800": 1},
    ],
)
def test_what_is_no_export_stays_in_place_and_is_not_used(document: Make, carried: Any) -> None:
    item = trace(document(extra={"tracemark": carried}))
    assert item.trajectory["extra"] == {"tracemark": carried}
    assert (item.run, item.outcome, item.stamp) == ({"model": {"name": "m"}}, {"status": "unknown"}, None)
    assert "not used" in repairs(item)
    [found] = item.findings
    assert (found.code, found.severity, found.where) == ("carried-invalid", "warning", item.where)


@pytest.mark.parametrize(
    ("carried", "words"),
    [
        ({"outcome": {"status": "succes"}}, "outcome/status: must be one of 'success', 'failure', "),
        ({"run": "t-1"}, "run: "),
        ({"reward": 1}, "reward: unknown member"),
        ({"run": {"task": "t", "model": "m"}}, "run/model: "),
    ],
)
def test_wrong_members_of_carried_facts_are_named_with_their_place(
    document: Make, carried: dict[str, Any], words: str
) -> None:
    [found] = trace(document(extra={"tracemark": carried})).findings
    assert found.message.startswith(f"extra.tracemark is not used: {words}")
    assert trace(document(extra={"tracemark": {"run": {"task": "t"}}})).findings == ()


# Harbor trials


def trial(inbox: Inbox, document: Any, **files: Any) -> None:
    inbox.write("job/t__1/agent/trajectory.json", document)
    inbox.write("job/t__1/config.json", files.get("config", {}))
    inbox.write("job/t__1/result.json", files.get("result", {"task_name": "t"}))
    if "exception" in files:
        inbox.write("job/t__1/exception.txt", files["exception"])
    inbox.write("job/t__1/agent/episode-0/prompt.txt", "not a trace")
    inbox.write("job/result.json", {"n_trials": 1})
    inbox.write("job/job.log", "not a trace")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"verifier_result": {"rewards": {"reward": 1.0}}}, {"status": "success", "reward": 1.0}),
        ({"verifier_result": {"reward": 0.5}}, {"status": "failure", "reward": 0.5}),
        ({"verifier_result": {"rewards": {"accuracy": 1}}}, {"status": "success", "reward": 1}),
        ({"verifier_result": {"rewards": {"a": 1, "b": 0}}}, {"status": "unknown"}),
        ({"verifier_result": None}, {"status": "unknown"}),
        (
            {"exception_info": {"exception_type": "CancelledError"}},
            {"status": "error", "termination": "CancelledError"},
        ),
        (
            {"exception_info": {"exception_type": "AgentTimeoutError"}, "verifier_result": {"reward": 1.0}},
            {"status": "success", "reward": 1.0, "termination": "AgentTimeoutError"},
        ),
        (
            {"exception_info": {"exception_type": "DockerError"}, "verifier_result": {"reward": 1.0}},
            {"status": "error", "reward": 1.0, "termination": "DockerError"},
        ),
        ({"exception_info": {"exception_type": "AgentTimeoutError"}}, {"status": "error"}),
    ],
)
def test_a_trial_gives_the_outcome(inbox: Inbox, document: Make, result: Any, outcome: dict[str, Any]) -> None:
    trial(inbox, document(), result=result)
    found = inbox.read().only.outcome
    assert {name: found.get(name) for name in outcome} == outcome


def test_a_trial_gives_task_model_and_times_and_no_path(inbox: Inbox, document: Make) -> None:
    result = {"task_name": "t", "source": "bench", "started_at": "2026-01-31T12:00:00", "trial_uri": "file:///srv/x"}
    config = {
        "agent": {"model_name": "p/m", "kwargs": {"temperature": 0.7}},
        "task": {"path": "/srv/x"},
        "environment": {"type": "docker"},
    }
    trial(inbox, document(), result=result, config=config)
    item = inbox.read().only
    assert item.run == {
        "task": "t",
        "domain": "bench",
        "start": "2026-01-31T12:00:00",
        "model": {"name": "p/m"},
        "sampling": {"temperature": 0.7},
        "environment": {"type": "docker"},
    }
    assert item.source["label"] == "job/t__1/agent/trajectory.json"


def test_a_trial_gives_the_session_where_there_is_none(inbox: Inbox, document: Make) -> None:
    trial(inbox, change(document(), "session_id", ...), result={"id": "trial-7"})
    item = inbox.read().only
    assert item.trajectory["session_id"] == "trial-7"
    assert "session_id missing" in repairs(item)


def link_out(path: Path) -> None:
    outside = path.parent.parent.parent.parent / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)


def nested(path: Path) -> None:
    path.write_text("[" * 600 + "]" * 600)


OTHER_TRIAL = '{"task_name": "o", "id": "9", "trial_name": "other__9", "verifier_result": {"reward": 1}}'
UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "broken": (lambda path: path.write_text("{broken"), "it is no JSON that can be read: "),
    "a list": (lambda path: path.write_text("[1]"), "it holds no JSON object"),
    "nested": (nested, "it is no JSON that can be read: "),
    "larger than a record may be": (
        lambda path: path.write_text('{"task_name": "' + "x" * 5000 + '"}'),
        "it has 5017 bytes, more than the 4096 that are read",
    ),
    "a link out of the folder": (link_out, "it is a symbolic link, which is not followed"),
    "a link to nothing": (lambda path: path.rename(path.with_name("x")) and path.symlink_to("gone"), "it is a symboli"),
    "a folder": (lambda path: path.unlink() or path.mkdir(), "it is no regular file"),
    "of a trial that lies beside": (
        lambda path: (path.parent.parent / "other__9").mkdir() or path.write_text(OTHER_TRIAL),
        'it is of the trial "other__9", whose folder lies beside this one',
    ),
    "of another trial than the config": (
        lambda path: (
            path.with_name("config.json").write_text('{"trial_name": "t__1"}') and path.write_text(OTHER_TRIAL)
        ),
        'it is of the trial "other__9", and config.json of another one',
    ),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_result_that_cannot_be_used_is_named_beside_the_trace(inbox: Inbox, document: Make, case: str) -> None:
    make, words = UNUSABLE[case]
    trial(inbox, document(), result={"task_name": "t", "verifier_result": {"reward": 1}})
    make(inbox.path / "job/t__1/result.json")
    item = inbox.read(max_record=4096).only
    assert (item.outcome, item.run) == ({"status": "unknown"}, {"model": {"name": "m"}})
    (found,) = item.findings
    assert (found.code, found.severity, found.where) == ("trial-unread", "warning", item.where)
    assert found.message.startswith(f"result.json of the trial is not used: {words}")
    assert found.message in repairs(item)
    assert found.hint


def test_a_config_that_cannot_be_used_is_named_and_the_result_still_holds(inbox: Inbox, document: Make) -> None:
    trial(inbox, document(), result={"task_name": "t", "config": {"attempt": 2}})
    (inbox.path / "job/t__1/config.json").write_text("null")
    item = inbox.read().only
    assert item.run == {"task": "t", "attempt": 2, "model": {"name": "m"}}
    assert [found.message for found in item.findings] == [
        "config.json of the trial is not used: it holds no JSON object"
    ]


@pytest.mark.parametrize("name", ["t__1", "1", "", None, 7])
def test_a_result_is_of_the_trial_whose_name_the_folder_bears_also_behind_another_one(
    inbox: Inbox, document: Make, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial(inbox, document(), result={"task_name": "t", "trial_name": name})
    assert (inbox.read().only.run["task"], inbox.read().only.findings) == ("t", ())
    (inbox.path / "linked").symlink_to("job/t__1")
    assert inbox.read("linked/agent/trajectory.json").only.run["task"] == "t"
    monkeypatch.chdir(inbox.path / "job/t__1")
    assert Read(source.plan([Path()])).only.run["task"] == "t"


def judged(name: str) -> dict[str, Any]:
    """A result of the trial `name`, which succeeded."""
    return {"task_name": "t", "trial_name": name, "verifier_result": {"reward": 1}}


CONFIG = {"agent": {"model_name": "configured"}}


@pytest.mark.parametrize("folder", ["run-1", "foo__abe (1)", "foo__abe.bak", "1foo__abe"])
def test_a_folder_that_was_renamed_keeps_what_its_files_say_with_a_warning(
    inbox: Inbox, document: Make, folder: str
) -> None:
    trial(inbox, document(), result=judged("foo__abe"), config={"trial_name": "foo__abe", **CONFIG})
    (inbox.path / "job/t__1").rename(inbox.path / "job" / folder)
    item = inbox.read().only
    assert (item.outcome["status"], item.run["task"], item.run["model"]) == ("success", "t", {"name": "configured"})
    (found,) = item.findings
    assert (found.code, found.severity, found.where) == ("trial-renamed", "warning", item.where)
    words = 'of the trial "foo__abe", and the folder has another name: used all the same'
    assert found.message == f"result.json and config.json are {words}"
    assert found.message in repairs(item)
    inbox.write(f"job/{folder}/config.json", CONFIG)
    assert [found.message for found in inbox.read().only.findings] == [f"result.json is {words}"]


def test_a_copy_beside_the_trial_that_its_files_are_of_uses_none_of_them(inbox: Inbox, document: Make) -> None:
    trial(inbox, document(), result=judged("t__1"), config={"trial_name": "t__1", **CONFIG})
    shutil.copytree(inbox.path / "job/t__1", inbox.path / "job/t__1 (1)")
    own, copy = (inbox.read(f"job/{folder}").only for folder in ("t__1", "t__1 (1)"))
    assert (own.outcome["status"], own.findings) == ("success", ())
    assert (copy.outcome, copy.run) == ({"status": "unknown"}, {"model": {"name": "m"}})
    assert [found.message for found in copy.findings] == [
        f'{file} of the trial is not used: it is of the trial "t__1", whose folder lies beside this one'
        for file in ("result.json", "config.json")
    ]


def test_a_link_beside_a_renamed_trial_that_leads_to_it_is_no_other_trial(inbox: Inbox, document: Make) -> None:
    trial(inbox, document(), result=judged("foo__abe"))
    (inbox.path / "job/foo__abe").symlink_to("t__1")
    assert [found.code for found in inbox.read("job/t__1").only.findings] == ["trial-renamed"]


@pytest.mark.parametrize(
    ("result", "config", "unused", "said"),
    [
        ("t__1", "a__1", ["config.json"], ("success", "t", "m")),
        ("a__1", "t__1", ["result.json"], ("unknown", None, "configured")),
        ("a__1", "b__1", ["result.json", "config.json"], ("unknown", None, "m")),
    ],
)
def test_where_the_files_name_different_trials_only_that_of_the_folder_is_used(
    inbox: Inbox, document: Make, result: str, config: str, unused: list[str], said: tuple[str, str | None, str]
) -> None:
    trial(inbox, document(), result=judged(result), config={"trial_name": config, **CONFIG})
    item = inbox.read().only
    assert (item.outcome["status"], item.run.get("task"), item.run["model"]["name"]) == said
    assert [(found.code, found.message.split()[0]) for found in item.findings] == [
        ("trial-unread", file) for file in unused
    ]


@pytest.mark.parametrize("name", ["..", "../job", ".", "/", "a\0b", "\ud800", "x" * 5000])
def test_a_trial_of_a_name_that_no_folder_has_lies_nowhere(inbox: Inbox, document: Make, name: str) -> None:
    trial(inbox, document(), result=judged(name))
    item = inbox.read().only
    assert (item.outcome["status"], [found.code for found in item.findings]) == ("success", ["trial-renamed"])


@pytest.mark.parametrize(
    ("verifier", "named"),
    [
        ({"rewards": {"a": 1, "b": 0}}, True),
        ({"rewards": {"reward": "1"}}, True),
        ([1], True),
        ({"rewards": {"reward": 0}}, False),
        ({"rewards": None}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_verifiers_result_that_is_no_verdict_is_named(
    inbox: Inbox, document: Make, verifier: Any, named: bool
) -> None:
    trial(inbox, document(), result={"verifier_result": verifier})
    found = [(one.code, one.message) for one in inbox.read().only.findings]
    words = "verifier_result in result.json of the trial: not read as a verdict"
    assert found == ([("verdict-unread", words)] if named else [])


@pytest.mark.parametrize(
    ("carried", "words"),
    [
        ({"status": "success"}, 'extra.tracemark says status "success", the files of the trial "failure"'),
        ({"status": "failure", "reward": 0.5}, "extra.tracemark says reward 0.5, the files of the trial 0"),
        ({"status": "failure", "reward": 0}, None),
        ({"status": "unknown"}, None),
    ],
)
def test_an_outcome_that_the_document_carries_counts_and_that_its_trial_disagrees_is_said(
    inbox: Inbox, document: Make, carried: dict[str, Any], words: str | None
) -> None:
    made = document(extra={"tracemark": {"outcome": carried}})
    trial(inbox, made, result={"verifier_result": {"reward": 0}})
    item = inbox.read().only
    assert item.outcome == carried
    found = [(one.code, one.severity, one.message) for one in item.findings]
    assert found == ([] if words is None else [("verdict-conflict", "warning", f"{words}: extra.tracemark counts")])


@pytest.mark.parametrize("large", [False, True])
def test_an_exception_file_that_is_not_read_still_says_that_there_was_one(
    inbox: Inbox, document: Make, large: bool
) -> None:
    trial(inbox, document(), result={"verifier_result": {"reward": 1}}, exception="x" * 5000 if large else "x")
    assert inbox.read(max_record=4096).only.outcome["status"] == "error"


def test_an_exception_file_alone_is_an_error(inbox: Inbox, document: Make) -> None:
    trial(inbox, document(), exception="Traceback")
    assert inbox.read().only.outcome == {"status": "error", "rule": "exception", "termination": "exception"}


def test_a_trajectory_given_alone_still_knows_its_trial(inbox: Inbox, document: Make) -> None:
    trial(inbox, document())
    assert inbox.read("job/t__1/agent/trajectory.json").only.run["task"] == "t"


def test_a_trial_without_a_trajectory_is_named(inbox: Inbox, document: Make) -> None:
    trial(inbox, document())
    (inbox.path / "job/t__1/agent/trajectory.json").unlink()
    read = inbox.read()
    assert (read.codes, read.refused[0].where) == (["trial-without-trajectory"], "job/t__1/result.json")


@pytest.mark.parametrize(
    ("replies", "rendered"),
    [
        ([{"message": RAW}], False),
        ([{"message": "<response><commands></commands></response>"}], False),
        ([{"message": "Analysis: Nothing yet.\nPlan: Look.", "tool_calls": [CALL]}], True),
        ([{"message": RAW}, {"message": "Analysis: Done.\nPlan: None."}], True),
        ([], None),
    ],
)
def test_a_terminus_2_document_alone_shows_by_its_replies_whether_they_are_a_rendering(
    replies: list[dict[str, Any]], rendered: bool | None
) -> None:
    assert trace(terminus(*replies)).run.get("rendered") is rendered


@pytest.mark.parametrize(
    ("kwargs", "rendered"), [({}, True), ({"raw_content": False}, True), ({"raw_content": True}, False)]
)
def test_the_config_of_a_trial_tells_whether_terminus_text_is_raw(inbox: Inbox, kwargs: Any, rendered: bool) -> None:
    made = terminus({"message": "Nothing that tells."})
    assert trace(made).run["rendered"] is True
    trial(inbox, made, config={"agent": {"kwargs": {"trajectory_config": kwargs}}})
    assert inbox.read().only.run["rendered"] is rendered


def test_a_config_that_the_calls_refute_does_not_win(inbox: Inbox) -> None:
    trial(inbox, terminus(RENDERED), config={"agent": {"kwargs": {"trajectory_config": {"raw_content": True}}}})
    item = inbox.read().only
    assert item.run["rendered"] is True
    assert "counted as rendered" in repairs(item)


# documents that belong together


def sub(document: Make, name: str, **members: Any) -> dict[str, Any]:
    return document(2, agent={"name": name, "version": "1"}, **members)


def main(document: Make, *names: str, **members: Any) -> dict[str, Any]:
    made = document(**members)
    refs = [{"trajectory_path": name, "session_id": "s"} for name in names]
    made["steps"].append(
        {
            "step_id": 4,
            "source": "system",
            "message": "",
            "observation": {"results": [{"subagent_trajectory_ref": refs}]},
        }
    )
    return made


def test_a_sub_agents_document_is_embedded_and_is_no_trace_of_its_own(inbox: Inbox, document: Make) -> None:
    inbox.write("trajectory.json", main(document, "helper.json"))
    inbox.write("helper.json", sub(document, "helper"))
    item = inbox.read().only
    [child] = item.trajectory["subagent_trajectories"]
    assert (child["agent"]["name"], child["trajectory_id"]) == ("helper", "helper.json")
    ref = item.trajectory["steps"][3]["observation"]["results"][0]["subagent_trajectory_ref"][0]
    assert ref == {"trajectory_path": "helper.json", "session_id": "s", "trajectory_id": "helper.json"}
    assert "sub-agent document helper.json embedded" in repairs(item)
    assert "no trajectory_id" in repairs(item)


def test_a_path_outside_a_reference_makes_no_document_a_part(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", document(extra={"trajectory_path": "b.json"}))
    inbox.write("b.json", document(2))
    assert [item.run.get("role") for item in inbox.read().traces] == [None, None]


def test_a_long_document_names_its_parts_anywhere(inbox: Inbox, document: Make) -> None:
    long = {"schema_version": "ATIF-v1.8", "notes": "x" * 300_000}
    inbox.write("a.json", json.dumps(long | main(document, "b.json"), indent=2))
    inbox.write("b.json", sub(document, "helper"))
    assert inbox.read().only.trajectory["subagent_trajectories"][0]["trajectory_id"] == "b.json"


def test_sub_agents_of_sub_agents_are_embedded_in_turn(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", main(document, "b.json"))
    inbox.write("b.json", main(document, "c.json", agent={"name": "b", "version": "1"}))
    inbox.write("c.json", sub(document, "c"))
    [child] = inbox.read().only.trajectory["subagent_trajectories"]
    assert child["subagent_trajectories"][0]["agent"]["name"] == "c"


def test_a_document_named_twice_is_embedded_once_and_both_references_reach_it(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", main(document, "b.json", "b.json", "c.json"))
    inbox.write("b.json", main(document, "c.json", agent={"name": "b", "version": "1"}))
    inbox.write("c.json", sub(document, "c"))
    item = inbox.read().only
    [child] = item.trajectory["subagent_trajectories"]
    assert [grandchild["agent"]["name"] for grandchild in child["subagent_trajectories"]] == ["c"]
    refs = item.trajectory["steps"][3]["observation"]["results"][0]["subagent_trajectory_ref"]
    assert [ref.get("trajectory_id") for ref in refs] == ["b.json", "b.json", None]


def test_documents_that_all_name_one_another_are_read_in_a_moment(inbox: Inbox, document: Make) -> None:
    names = [f"{n:02d}.json" for n in range(14)]
    for name in names:
        inbox.write(name, main(document, *names, agent={"name": name, "version": "1"}))
    inbox.write("top.json", main(document, *names))
    [item] = inbox.read().traces
    assert item.source["label"] == "top.json"
    assert sum("embedded" in text for text in item.source["repairs"]) == len(names)


def test_a_sub_agents_document_found_alone_says_so(inbox: Inbox, document: Make) -> None:
    made = document(agent={"name": "helper", "version": "1", "extra": {"parent_session_id": "s"}})
    inbox.write("a.json", made)
    item = inbox.read().only
    assert item.run["role"] == "subagent"
    assert item.observed == {}


def test_a_sub_agents_document_whose_owner_is_refused_is_kept_as_a_trace(inbox: Inbox, document: Make) -> None:
    broken = main(document, "helper.json")
    broken["steps"][0]["source"] = "narrator"
    inbox.write("trajectory.json", broken)
    inbox.write("helper.json", sub(document, "helper"))
    read = inbox.read()
    assert (read.codes, [item.run["role"] for item in read.traces]) == (["not-atif"], ["subagent"])


def test_whether_a_document_is_embedded_is_asked_anew_in_every_job(inbox: Inbox, document: Make) -> None:
    inbox.write("trajectory.json", main(document, "helper.json"))
    inbox.write("helper.json", {**sub(document, "helper"), "steps": []})
    assert [item.source["label"] for item in inbox.read().traces] == ["trajectory.json"]
    inbox.write("helper.json", sub(document, "helper"))
    item = inbox.read().only
    assert item.source["label"] == "trajectory.json"
    assert "subagent_trajectories" in item.trajectory


def test_documents_that_name_one_another_in_a_circle_are_all_kept(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", main(document, "b.json"))
    inbox.write("b.json", main(document, "a.json", agent={"name": "b", "version": "1"}))
    assert {item.source["label"] for item in inbox.read().traces} == {"a.json", "b.json"}


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "sub/x.json", "missing.json", "trajectory.json"])
def test_a_path_in_a_document_is_not_followed_out_of_its_folder(inbox: Inbox, document: Make, name: str) -> None:
    (inbox.path.parent / "secret.json").write_text(json.dumps(document()))
    inbox.write("trajectory.json", main(document, name))
    item = inbox.read().only
    assert "subagent_trajectories" not in item.trajectory
    assert "repairs" not in item.source


def test_a_continuation_is_a_trace_of_its_own_linked_by_name(inbox: Inbox, document: Make) -> None:
    inbox.write("trajectory.json", document(continued_trajectory_ref="trajectory.cont-1.json"))
    made = document(2, agent={"name": "a", "version": "1", "extra": {"continuation_index": 1}})
    inbox.write("trajectory.cont-1.json", made)
    later, first = inbox.read().traces
    assert first.run == {"model": {"name": "m"}, "continued_by": "trajectory.cont-1.json"}
    assert later.run == {"role": "continuation", "continues": "trajectory.json"}


def test_an_event_stream_is_one_document(inbox: Inbox, document: Make) -> None:
    made = document(schema_version="ATIF-v1.4")
    header = {"__header__": True, **{name: value for name, value in made.items() if name != "steps"}}
    lines = [header, *made["steps"]]
    inbox.write("a.atif.jsonl", "".join(json.dumps(line) + "\n\n" for line in lines))
    item = inbox.read().only
    assert item.trajectory == document()
    assert "event stream" in repairs(item)


@pytest.mark.parametrize(
    "written",
    [
        json.dumps,
        lambda header: json.dumps(header, separators=(",", ":")),
        lambda header: json.dumps({name: header[name] for name in reversed(header)}),
        lambda header: " " + json.dumps(header).replace("{", "{ ", 1),
        lambda header: json.dumps(header).replace("__header__", "\\u005f_header__"),
    ],
)
def test_an_event_stream_is_known_by_its_header_however_that_is_written(
    inbox: Inbox, document: Make, written: Callable[[dict[str, Any]], str]
) -> None:
    made = document(schema_version="1.4")
    header = {"__header__": True, **{name: value for name, value in made.items() if name != "steps"}}
    inbox.write("a.jsonl", "\n".join([written(header), *map(json.dumps, made["steps"])]) + "\n")
    item = inbox.read().only
    assert item.trajectory == document()
    assert "event stream" in repairs(item)


def test_what_a_line_of_an_event_stream_lost_is_named(inbox: Inbox, document: Make) -> None:
    made = document(schema_version="1.4")
    header = {"__header__": 7, **{name: value for name, value in made.items() if name != "steps"}}
    steps = [json.dumps(step) for step in made["steps"]]
    steps[1] = steps[1].replace('"source"', '"source": "system", "source"')
    inbox.write("a.jsonl", "\n".join([json.dumps(header), *steps]))
    item = inbox.read().only
    assert "duplicate key 'source': the last value was kept" in repairs(item)
    assert "__header__ 7 left out" in repairs(item)


def test_a_document_that_has_its_steps_is_no_header(inbox: Inbox, document: Make) -> None:
    made = {"__header__": True, **document()}
    inbox.write("a.json", made)
    inbox.write("b.jsonl", f"{json.dumps(made)}\n{json.dumps(document(2))}\n")
    found = inbox.read()
    assert found.refused == []
    assert [item.trajectory.get("extra") for item in found.traces] == [{"__header__": True}] * 2 + [None]


# real files


@pytest.mark.shared_data
def test_real_documents_are_joined_under_their_original_names(shared_traces: Path, tmp_path: Path) -> None:
    inbox, folder = Inbox(tmp_path / "real"), shared_traces / "atif"
    stem = "sachiny0106__terminus_2__hello-world-context-summarization"
    shutil.copy(folder / f"{stem}-linear-history.trajectory.json", inbox.path / "trajectory.json")
    shutil.copy(folder / f"{stem}-linear-history.trajectory.cont-1.json", inbox.path / "trajectory.cont-1.json")
    for part in ("questions", "answers"):
        name = f"trajectory.summarization-1-{part}.json"
        shutil.copy(folder / f"{stem}.{name}", inbox.path / name)
    later, first = inbox.read().traces
    assert later.run["continues"] == "trajectory.json"
    assert first.run["continued_by"] == "trajectory.cont-1.json"
    children = [child["trajectory_id"] for child in first.trajectory["subagent_trajectories"]]
    assert children == ["trajectory.summarization-1-questions.json", "trajectory.summarization-1-answers.json"]
    assert [digest_of(item) for item in (later, first)] == [NEW_PREFIX] * 2
    alone = inbox.read("trajectory.summarization-1-questions.json").only
    assert (alone.run["role"], alone.observed) == ("subagent", {})


def digest_of(item: Imported) -> str | None:
    prompts = item.observed.get("prompt_templates", [])
    return prompts[0]["digest"][:10] if prompts and prompts[0]["form"] == "prefix" else None


REPAIRED = {
    "letta-ai__cleanup__input.json": "arguments that are no object",
    "OpenAgentsInc__trajectories__20251205__session-2025-12-05T07-45-57-649Z-x8251x.atif.json": "written as JSON text",
    "OpenAgentsInc__trajectories__20251205__session-2025-12-05T08-00-23-404Z-ew8gut.atif.json": "written as JSON text",
    "OpenAgentsInc__trajectories__20251205__session-2025-12-05T08-07-41-875Z-ebphxk.atif.jsonl": "event stream",
}
"""Every shared ATIF file that needs more than a newer version number; all others are ordinary, and none is refused."""


@pytest.mark.shared_data
def test_every_shared_file_is_a_valid_trace(shared_traces: Path) -> None:
    traces = [
        item for name in ("atif", "atif_nonconforming", "harbor_trial_dir") for item in ingest(shared_traces / name)
    ]
    assert len(traces) == 25 + 3 + 4
    repaired = set()
    for item in traces:
        assert item.trajectory["schema_version"] == "ATIF-v1.8"
        assert problems(item.trajectory) == []
        Peer.model_validate(item.trajectory)
        Run.model_validate(item.run)
        Outcome.model_validate(item.outcome)
        name = item.source["label"].rpartition("/")[2]
        others = [text for text in item.source["repairs"] if "raised to ATIF-v1.8" not in text]
        if others:
            assert REPAIRED[name] in "; ".join(others)
            repaired.add(name)
    assert repaired == set(REPAIRED)


def ingest(folder: Path) -> list[Imported]:
    read = Inbox(folder).read()
    assert read.refused == []
    return read.traces


@pytest.mark.shared_data
def test_without_any_declared_harness_terminus_falls_into_exactly_two_groups(shared_traces: Path) -> None:
    groups: dict[str | None, set[str]] = {}
    for item in ingest(shared_traces / "atif"):
        name = item.source["label"]
        if item.trajectory["agent"]["name"].startswith("terminus-2"):
            groups.setdefault(digest_of(item), set()).add(name)
    assert set(groups) == {OLD_PREFIX, NEW_PREFIX, None}
    assert all(name.startswith("open-thoughts__") for name in groups[OLD_PREFIX])
    assert not any(name.startswith("open-thoughts__") for name in groups[NEW_PREFIX])
    assert (len(groups[OLD_PREFIX]), len(groups[NEW_PREFIX])) == (7, 6)
    assert all("sub" in name or "summarization-1" in name for name in groups[None])


@pytest.mark.shared_data
def test_real_trials_know_task_error_and_raw_text(shared_traces: Path) -> None:
    for item in ingest(shared_traces / "harbor_trial_dir"):
        assert item.run["task"] == item.source["label"].split("__")[1]
        assert item.run["rendered"] is False
        assert item.outcome == {"status": "error", "rule": "exception", "termination": "CancelledError"}
        assert digest_of(item) == OLD_PREFIX
        assert item.content.prompt_cut == TERMINUS_CUT
