"""Labels of the agent: what a source says of it, and what it leaves open."""

from __future__ import annotations

import pytest

from tracemark.importers.agent import named_agent


def test_what_the_source_says_is_the_agent() -> None:
    tools = [{"name": "look_up"}]
    assert named_agent("desk", "2", {"model": {"name": "small"}}, tools) == {
        "name": "desk",
        "version": "2",
        "model_name": "small",
        "tool_definitions": tools,
    }


@pytest.mark.parametrize("label", [None, 7, ["desk"]])
def test_what_is_no_text_is_no_label(label: object) -> None:
    assert named_agent(label, label, {}) == {"name": "unknown", "version": "unknown"}


def test_no_tools_are_not_the_same_as_nobody_says() -> None:
    assert named_agent("desk", "2", {}, [])["tool_definitions"] == []
    assert "tool_definitions" not in named_agent("desk", "2", {}, None)
