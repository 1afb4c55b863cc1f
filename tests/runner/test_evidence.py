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
