"""What real files of OpenHands show of their harness: its sessions, and the requests that its SDK logged."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tracemark.harness.declared import Comparison
from tracemark.harness.observed import compare
from tracemark.importers.base import Imported

from .conftest import Inbox

pytestmark = pytest.mark.shared_data

CLAUDE = "OpenHands__llm-logs__litellm_proxy__anthropic__claude-sonnet-4-20250514-"
DEEPSEEK = "OpenHands__nonfncall-llm-logs__litellm_proxy__deepseek__deepseek-chat-"
FIRST, LATER = f"{CLAUDE}1757015025.972.json", f"{CLAUDE}1757015036.544.json"
IN_TEXT = f"{DEEPSEEK}1757015054.055.json"
TRANSCRIPT = "OpenHands__llm_data__nonfncall-llm-message.json"
ROWS, SESSION = "OpenHands__examples__output.jsonl", "sachiny0106__0001-trajectory-format__openhands_trajectory.json"

SAME, DIFFERENT, UNKNOWN = Comparison.SAME, Comparison.DIFFERENT, Comparison.UNKNOWN


def runs(folder: Path, name: str) -> list[Imported]:
    found = Inbox(folder).read(name)
    assert found.refused == []
    return found.traces


def compared(one: Imported, other: Imported) -> tuple[Comparison, ...]:
    found = compare(one.observed, other.observed, ())
    return tuple(found[name] for name in ("prompt_templates", "tool_bindings", "runtime"))


@pytest.fixture(scope="module")
def logged(shared_traces: Path) -> dict[str, Imported]:
    return {
        name: item for name in (FIRST, LATER, IN_TEXT, TRANSCRIPT) for item in runs(shared_traces / "openai_chat", name)
    }


def test_two_requests_of_one_conversation_have_one_prompt_and_one_set_of_tools(logged: dict[str, Imported]) -> None:
    # of a runtime a request shows too little to say that two are one
    assert compared(logged[FIRST], logged[LATER]) == (SAME, SAME, UNKNOWN)


def test_a_model_that_writes_its_calls_has_another_prompt_and_runtime_around_the_same_tools(
    logged: dict[str, Imported],
) -> None:
    # a prompt that was rendered for one run alone proves no difference, and is not taken for the same
    assert compared(logged[FIRST], logged[IN_TEXT]) == (UNKNOWN, SAME, DIFFERENT)
    prompts = [logged[name].observed["prompt_templates"][0]["digest"] for name in (FIRST, IN_TEXT)]
    assert prompts[0] != prompts[1]


def test_a_list_of_messages_is_taken_for_none_of_them(logged: dict[str, Imported]) -> None:
    assert "tool_bindings" not in logged[TRANSCRIPT].observed
    for name in (FIRST, LATER, IN_TEXT):
        assert compared(logged[TRANSCRIPT], logged[name]) == (UNKNOWN, UNKNOWN, UNKNOWN)
    # its system message is that of the first request, to the letter
    digests = {logged[name].observed["prompt_templates"][0]["digest"] for name in (FIRST, TRANSCRIPT)}
    assert len(digests) == 1


def test_runs_of_one_evaluation_differ_in_nothing(shared_traces: Path) -> None:
    found = runs(shared_traces / "openhands", ROWS)
    for one, other in itertools.combinations(found, 2):
        # their calls were taken out of texts, so the prompt that was sent is in none of them
        assert compared(one, other) == (UNKNOWN, SAME, UNKNOWN)
        assert one.observed["runtime"] == other.observed["runtime"]
        assert one.run["rendered"]


def test_a_session_of_a_later_version_has_other_tools(shared_traces: Path) -> None:
    [session] = runs(shared_traces / "openhands", SESSION)
    [row, *_] = runs(shared_traces / "openhands", ROWS)
    assert compared(session, row) == (UNKNOWN, DIFFERENT, UNKNOWN)
    assert [entry["form"] for entry in session.observed["prompt_templates"]] == ["rendered"]


def test_events_without_their_beginning_show_no_harness(shared_traces: Path) -> None:
    for name in ("openhands_events", "letta_openhands"):
        for item in Inbox(shared_traces / name).read().traces:
            assert item.observed == {}
