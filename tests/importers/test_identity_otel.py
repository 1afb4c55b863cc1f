"""Real spans: how many, what they show of a harness, and that schemas of the conventions are no traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracemark.importers.base import Imported

from .conftest import Inbox, Read

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def spans(shared_traces: Path) -> Read:
    return Inbox(shared_traces / "otel").read()


@pytest.fixture(scope="module")
def by_name(spans: Read) -> dict[str, Imported]:
    return {item.where.rpartition("__")[2].removesuffix(".json"): item for item in spans.traces}


def test_every_span_is_one_run_of_unknown_ending(spans: Read) -> None:
    assert spans.refused == []
    assert [item.outcome for item in spans.traces] == [{"status": "unknown"}] * 10
    assert {item.source["format"] for item in spans.traces} == {"otel-genai"}
    assert all(item.mixed == () for item in spans.traces)


def test_only_what_was_recorded_of_a_harness_is_shown(by_name: dict[str, Imported]) -> None:
    shown = {name: sorted(item.observed) for name, item in by_name.items() if item.observed}
    assert shown == {
        "chat-multiturn": ["prompt_templates"],
        "chat-openai-agents-python": ["prompt_templates"],
        "chat-text-to-image-tool": ["prompt_templates", "tool_bindings"],
        "chat-tools": ["tool_bindings"],
    }
    forms = {entry["form"] for item in by_name.values() for part in item.observed.values() for entry in part}
    assert forms == {"rendered", "schema"}


def test_three_forms_of_one_call_give_the_same_conversation(by_name: dict[str, Imported]) -> None:
    three = [item for name, item in by_name.items() if name.endswith("client_span_tool_calls")]
    said = [
        [(step["source"], step.get("tool_calls"), step.get("observation")) for step in item.trajectory["steps"]]
        for item in three
    ]
    assert len(said) == 3
    assert said[0] == said[1] == said[2]


def test_a_sound_that_the_numbered_messages_leave_out_is_read(by_name: dict[str, Imported]) -> None:
    [text, sound] = by_name["chat-audio-to-text"].trajectory["steps"][0]["message"]
    assert (text["type"], sound["type"]) == ("text", "audio")


def test_tokens_reply_and_calls_are_read(by_name: dict[str, Imported]) -> None:
    [user, reply] = by_name["chat-tools"].trajectory["steps"]
    assert user["message"] == "What is the weather like in Boston today?"
    assert reply["tool_calls"][0]["arguments"] == {"location": "Boston, MA", "unit": "fahrenheit"}
    assert (reply["metrics"]["prompt_tokens"], reply["metrics"]["completion_tokens"]) == (162, 287)
    assert reply["extra"]["original_content"] is None


def test_a_reply_in_the_history_is_no_reply_of_the_recorded_call(by_name: dict[str, Imported]) -> None:
    steps = by_name["chat-multiturn"].trajectory["steps"]
    assert [step.get("is_copied_context", False) for step in steps if step["source"] == "agent"] == [True, False]


def test_schemas_and_pages_of_the_conventions_are_refused(shared_traces: Path) -> None:
    read = Inbox(shared_traces / "otel_schema").read()
    assert (read.codes, read.traces) == (["format-unknown"] * 5, [])
    assert all("no known format: it begins with" in item.message for item in read.refused)
