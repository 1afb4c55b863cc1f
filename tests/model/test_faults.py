"""What a model finds wrong is told in our own words, at a place that stands in the value."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.model import carried, trajectory
from tracemark.model.atif import VERSION

THEIRS = ("Input should", "Extra inputs", "Field required", "Value error", "String should", "valid ")


def document(step: dict[str, Any], **members: Any) -> dict[str, Any]:
    agent = {"name": "a", "version": "1"}
    whole = {"step_id": 1, "source": "user", "message": "Go.", **step}
    return {"schema_version": VERSION, "agent": agent, "steps": [whole], **members}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (document({}, other=1), [("other", "unknown member")]),
        (document({"message": 1}), [("steps/0/message", "must be a text or a list")]),
        (document({"source": "robot"}), [("steps/0/source", "must be one of 'system', 'user', 'agent'")]),
        (
            document({"source": "agent", "metrics": {"prompt_tokens": "2"}}),
            [("steps/0/metrics/prompt_tokens", "must be a whole number")],
        ),
        (
            document({"source": "agent", "tool_calls": [{"tool_call_id": "c"}]}),
            [
                ("steps/0/tool_calls/0/function_name", "missing"),
                ("steps/0/tool_calls/0/arguments", "missing"),
            ],
        ),
        (document({"timestamp": "noon"}), [("steps/0/timestamp", "not an ISO 8601 time")]),
        (document({}, steps=[]), [("steps", "must hold at least 1")]),
        (document({}, agent="a"), [("agent", "must be an object")]),
        ([], [("document", "must be an object")]),
    ],
)
def test_a_fault_names_its_place_and_what_must_stand_there(value: Any, found: list[tuple[str, str]]) -> None:
    assert trajectory.problems(value) == found


def test_a_branch_of_another_kind_says_nothing_beside_what_is_wrong_inside() -> None:
    part = {"type": "image", "source": {"path": "a.png"}}
    assert trajectory.problems(document({"message": [part]})) == [("steps/0/message/0/source/media_type", "missing")]


@pytest.mark.parametrize(
    "facts",
    [
        1,
        {"a": 1},
        {"run": 1},
        {"run": {"attempt": 1.5}},
        {"run": {"role": "me", "model": None, "sampling": [], "rendered": 1}},
        {"outcome": {}},
        {"outcome": {"status": "fine", "reward": "1", "grader": {}}},
        {"trajectory": "A", "empty_extra": False},
        {"harness": {"declared": {"fingerprint": "x", "components": {"runtime": {"digest": 1}}}}},
    ],
)
def test_the_words_of_the_validation_library_are_not_shown(facts: Any) -> None:
    found = carried.problems(facts)
    assert found
    assert [reason for _, reason in found if any(words in reason for words in THEIRS)] == []
