"""What a run hears of its own contradictions, before its trace is read."""

import json
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark.harness.match import Contradiction
from tracemark.importers.base import Context, Imported, Record
from tracemark.importers.journal import IMPORTER
from tracemark.runner.record import Recorder

SHOW = {"name": "show", "entry": "handler.py:show", "parameters": {"mark": "> "}, "max_characters": 5}
CALL = {"tool_call_id": "c", "function_name": "get", "arguments": {"key": "a"}}


@pytest.fixture
def rec(make_harness: Any, tmp_path: Path) -> Recorder:
    return tracemark.record(make_harness(observation_handlers=[SHOW]), tmp_path / "inbox")


def places(rec: Recorder) -> list[tuple[str, str, int | None]]:
    return [found[:3] for found in rec.contradictions]


def written(rec: Recorder) -> list[dict[str, Any]]:
    context = Context(name=rec.path.name, folder=str(rec.path.parent))
    (result,) = IMPORTER.read(Record(rec.path.read_bytes().strip(), rec.path.name, rec.path.name, context))
    assert isinstance(result, Imported)
    found: list[dict[str, Any]] = result.stamp.get("contradictions", [])
    return found


def test_a_run_as_its_harness_gives_it_hears_of_none(rec: Recorder) -> None:
    assert rec.contradictions == ()
    with rec:
        rec.system(rec.prompt("system").render(today="Monday"))
        rec.user(rec.prompt("task").render(request="Read a.", urgent=False))
        rec.agent("", [CALL])
        rec.observation([{"source_call_id": "c", "content": "> alp"}])
        assert rec.contradictions == ()
    assert rec.contradictions == ()


def test_a_reminder_in_front_and_a_prompt_that_was_not_needed_leave_the_others_recorded(
    make_harness: Any, tmp_path: Path
) -> None:
    user: dict[str, Any] = {"role": "user", "syntax": "format"}
    harness = make_harness(
        prompt_templates=[
            {**user, "name": "reminder", "text": "It is {day}.", "position": "any"},
            {**user, "name": "hints", "text": "{% if hints %}Hints: {{ hints }}{% endif %}", "syntax": "jinja"},
            {**user, "name": "task", "text": "Task: {task}"},
        ]
    )
    with tracemark.record(harness, tmp_path / "inbox") as rec:
        sent = [rec.prompt("reminder").render(day="Monday"), rec.prompt("task").render(task="Read a.")]
        rec.request([{"role": "user", "content": text} for text in sent])
        for text in sent:
            rec.user(text)
        rec.agent("Done.")
    assert rec.contradictions == ()
    assert written(rec) == []
    lines = [json.loads(line) for line in rec.path.read_text().splitlines()]
    evidence = {line["part"]: line["evidence"] for line in lines if line.get("component") == "prompt_templates"}
    assert evidence == {"reminder": "recorded", "task": "recorded"}


def test_an_edited_prompt_is_heard_of_at_the_end_of_the_run(rec: Recorder) -> None:
    with rec:
        rec.system(rec.prompt("system").render(today="Monday") + " Be brief.")
        rec.agent("Done.")
        inside = rec.contradictions
        assert places(rec) == [("prompt_templates", "system", 1)]
    assert rec.contradictions == inside
    assert written(rec) == [found.as_json() for found in inside]


def test_an_observation_that_is_too_long_is_heard_of_once_for_its_handler(rec: Recorder) -> None:
    with rec:
        rec.agent("", [CALL])
        rec.observation([{"source_call_id": "c", "content": "> alphabet"}, {"content": "> alphabets"}])
        assert places(rec) == [("observation_handlers", "show", 1)]
        assert "at most 5 characters found 10" in rec.contradictions[0].text
    assert places(rec) == [("observation_handlers", "show", 1)]


def test_a_request_and_its_process_are_heard_of_at_once(make_harness: Any, tmp_path: Path) -> None:
    harness = make_harness("declared", runtime={"environment": {"NO_SUCH_VARIABLE": "1"}})
    with tracemark.record(harness, tmp_path / "inbox") as rec:
        assert [found.part for found in rec.contradictions] == ["environment"]
        rec.request([{"role": "system", "content": "Other."}], [])
        assert [found.part for found in rec.contradictions] == ["environment", "system"]
        rec.agent("", [{**CALL, "function_name": "put"}])
        rec.observation([{"content": "stored"}])
    assert [found.part for found in rec.contradictions] == ["environment", "system", "put"]
    assert all(isinstance(found, Contradiction) for found in rec.contradictions)


def replies(rec: Recorder, count: int, calls: int = 1, **result: Any) -> None:
    """Record replies that call the tool `get`, and the handler's text for each call."""
    for _ in range(count):
        ids = [f"c{number}" for number in range(calls)]
        rec.agent("", [{**CALL, "tool_call_id": call} for call in ids])
        shown = [rec.handler("show")(rec.tool("get")("desk", key="a")) for _ in ids]
        rec.observation(
            [{"source_call_id": call, "content": text, **result} for call, text in zip(ids, shown, strict=True)]
        )


def limited(make_harness: Any, tmp_path: Path, **members: Any) -> Recorder:
    return tracemark.record(make_harness("limited", **members), tmp_path / "inbox")


def test_a_reply_beyond_the_declared_steps_contradicts_once(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, runtime={"limits": {"steps": 2}}) as rec:
        rec.user("Read a.")
        replies(rec, 2)
        rec.user("Go on.")
        assert rec.contradictions == ()
        replies(rec, 2)
        assert places(rec) == [("runtime", "limits", 5)]
    (found,) = rec.contradictions
    assert found.text == "this is step 3 of the agent, declared are 2 at most"
    assert written(rec) == [found.as_json()]


def test_more_calls_made_for_one_reply_than_declared_contradict(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, runtime={"limits": {"parallel_calls": 2}}) as rec:
        replies(rec, 5, calls=2)
        assert rec.contradictions == ()
        replies(rec, 1, calls=3)
        assert places(rec) == [("runtime", "limits", 6)]
    assert rec.contradictions[0].text == "3 calls of one reply were made, declared are 2 at most"
    assert written(rec) == [rec.contradictions[0].as_json()]


def test_calls_that_the_harness_refused_to_make_count_for_no_limit(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, runtime={"limits": {"parallel_calls": 1}}) as rec:
        rec.agent("", [{**CALL, "tool_call_id": call} for call in ("c0", "c1")])
        rec.observation([{"source_call_id": "c0", "content": rec.handler("show")(rec.tool("get")("desk", key="a"))}])
        rec.observation([{"source_call_id": "c1", "content": "One call at a time, please."}])
    assert rec.contradictions == ()


NO_CODE = {"get": {"schema": {"name": "get", "parameters": {"type": "object"}}}}


def without_code(make_harness: Any, tmp_path: Path, allowed: int, **members: Any) -> Recorder:
    """A recorder of a harness that allows `allowed` calls for one reply, and whose tools have no code."""
    stated = {"tool_bindings": NO_CODE, "observation_handlers": [], **members}
    return limited(make_harness, tmp_path, runtime={"limits": {"parallel_calls": allowed}}, **stated)


def of_limits(rec: Recorder) -> list[str]:
    """What the journal says of the declared limits, one evidence after the other."""
    lines = map(json.loads, rec.path.read_bytes().splitlines())
    said = [event for event in lines if event["event"] == "evidence"]
    return [event["evidence"] for event in said if (event["component"], event["part"]) == ("runtime", "limits")]


@pytest.mark.parametrize(
    "second",
    [
        {"content": "sent"},
        {"content": "Skipped: only one call per turn is allowed."},
        {"content": "Error: one call at a time"},
        {"content": "One at a time.", "is_error": True},
    ],
)
def test_whether_a_call_of_a_tool_without_code_was_made_nobody_sees_whatever_its_answer_says(
    make_harness: Any, tmp_path: Path, second: dict[str, Any]
) -> None:
    with without_code(make_harness, tmp_path, 1) as rec:
        rec.agent("", [{**CALL, "tool_call_id": call} for call in ("c0", "c1")])
        rec.observation([{"source_call_id": "c0", "content": "sent"}])
        assert of_limits(rec) == ["recorded"]
        rec.observation([{"source_call_id": "c1", **second}])
    assert (places(rec), of_limits(rec)) == ([], ["recorded", "claimed"])


def test_calls_of_tools_without_code_that_keep_the_limit_leave_it_recorded(make_harness: Any, tmp_path: Path) -> None:
    with without_code(make_harness, tmp_path, 2) as rec:
        rec.agent("", [{**CALL, "tool_call_id": call} for call in ("c0", "c1", "c2")])
        rec.observation([{"source_call_id": "c0", "content": "a"}, {"source_call_id": "c1", "content": "b"}])
    assert (places(rec), of_limits(rec)) == ([], ["recorded"])


def test_a_harness_without_tools_has_its_limit_claimed_where_more_calls_were_answered(
    make_harness: Any, tmp_path: Path
) -> None:
    with without_code(make_harness, tmp_path, 1, tool_bindings={}) as rec:
        rec.agent("", [{**CALL, "tool_call_id": call} for call in ("c0", "c1")])
        rec.observation([{"source_call_id": call, "content": "sent"} for call in ("c0", "c1")])
    assert (places(rec), of_limits(rec)) == ([], ["recorded", "claimed"])


def test_a_tool_that_the_harness_does_not_bind_counts_for_no_limit(make_harness: Any, tmp_path: Path) -> None:
    with without_code(make_harness, tmp_path, 1) as rec:
        rec.agent("", [{**CALL, "tool_call_id": "c0"}, {**CALL, "tool_call_id": "c1", "function_name": "put"}])
        rec.observation(
            [{"source_call_id": "c0", "content": "a"}, {"source_call_id": "c1", "content": "Error: no put"}]
        )
    assert (places(rec), of_limits(rec)) == ([], ["recorded"])


def test_calls_of_code_beyond_the_limit_contradict_and_claim_nothing(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, runtime={"limits": {"parallel_calls": 1}}) as rec:
        replies(rec, 1, calls=2)
    assert (places(rec), of_limits(rec)) == ([("runtime", "limits", 1)], ["recorded"])


def test_turns_and_stop_strings_are_compared_with_nothing(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, runtime={"limits": {"turns": 1, "stop_strings": ["STOP"]}}) as rec:
        for _ in range(3):
            rec.user("Go on.")
            rec.agent("STOP and more")
    assert rec.contradictions == ()


def test_a_variable_that_changes_while_the_run_goes_on_contradicts_at_its_end(
    make_harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_MODE", "plain")
    monkeypatch.setenv("DESK_OTHER", "0")
    declared = {"DESK_MODE": "plain", "DESK_OTHER": "1"}
    with limited(make_harness, tmp_path, runtime={"environment": declared}) as rec:
        monkeypatch.setenv("DESK_MODE", "fancy")
        rec.agent("Done.")
        assert len(rec.contradictions) == 1
    assert [found.text for found in rec.contradictions] == [
        "DESK_OTHER is '0', declared '1'",
        "DESK_MODE is 'fancy', declared 'plain'",
    ]
    assert written(rec) == [found.as_json() for found in rec.contradictions]


OTHER = "You are run by another harness now. Behave otherwise, entirely."


def test_a_system_message_that_no_template_gives_contradicts_behind_the_first_reply_too(rec: Recorder) -> None:
    with rec:
        rec.system(rec.prompt("system").render(today="Monday"))
        replies(rec, 1)
        rec.system(rec.prompt("system").render(today="Tuesday"))
        assert rec.contradictions == ()
        rec.system(OTHER)
        assert places(rec) == [("prompt_templates", "system-3", 4)]
        rec.user(OTHER)
        rec.agent("Done.")
    assert places(rec) == [("prompt_templates", "system-3", 4)]
    assert written(rec) == [found.as_json() for found in rec.contradictions]


def test_nothing_was_rendered_and_patterns_tell_the_same(rec: Recorder) -> None:
    with rec:
        replies(rec, 1)
        rec.system(OTHER)
        rec.agent("Done.")
    assert places(rec) == [("prompt_templates", "system", 2)]


CODE = {"name": "system", "text": "{% if fast %}Hurry.{% endif %} Help.", "syntax": "jinja"}


@pytest.mark.parametrize("position", ["first", "any"])
def test_a_template_that_was_rendered_is_known_by_what_it_gave(
    make_harness: Any, tmp_path: Path, position: str
) -> None:
    with limited(
        make_harness, tmp_path, prompt_templates=[CODE, {**CODE, "name": "more", "position": position}]
    ) as rec:
        rec.system(rec.prompt("system").render(fast=True))
        rec.system(rec.prompt("more").render(fast=False))
        replies(rec, 1)
        rec.system(rec.prompt("system").render(fast=False))
        assert rec.contradictions == ()
        rec.system(OTHER)
        rec.agent("Done.")
    # a template of position `any` that cannot be compared may have given any message
    assert places(rec) == ([("prompt_templates", "system-4", 5)] if position == "first" else [])


def test_a_template_that_the_run_went_around_may_have_given_what_it_can_give(make_harness: Any, tmp_path: Path) -> None:
    around = [{"name": "greeting", "text": "Welcome to the desk."}, CODE]
    with limited(make_harness, tmp_path, prompt_templates=around) as rec:
        rec.system(rec.prompt("greeting").render())
        replies(rec, 1)
        rec.system(OTHER)
    assert rec.contradictions == ()


def test_system_messages_of_another_agent_are_not_compared(make_harness: Any, tmp_path: Path) -> None:
    with limited(make_harness, tmp_path, prompt_templates=[{**CODE, "agent": "helper"}]) as rec:
        rec.prompt("system").render(fast=True)
        replies(rec, 1)
        rec.system(OTHER)
    assert rec.contradictions == ()
