"""Real rollouts of NeMo Gym: which of them are of one harness, as far as their rows show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.harness.tools import read_tools
from tracemark.importers.base import Imported

from .conftest import Inbox

pytestmark = pytest.mark.shared_data

SIMULATED = "NVIDIA-NeMo__conversational_tool_use_simulation__data__example_rollouts.jsonl"
WRAPPED = "NVIDIA-NeMo__anyswe_agent__data__example_rollouts_claude_code.jsonl"


@pytest.fixture(scope="module")
def folder(shared_traces: Path) -> Path:
    return shared_traces / "nemo_gym"


def runs(folder: Path, name: str) -> list[Imported]:
    found = Inbox(folder).read(name)
    assert found.refused == []
    return found.traces


def shown(item: Imported, component: str) -> list[dict[str, str]]:
    return item.observed.get(component, [])


def test_the_tools_of_the_request_are_those_of_the_response(folder: Path) -> None:
    def reduced(tools: Any) -> str:
        return digest.of(read_tools(tools).readable)

    rows = [json.loads(line) for line in (folder / SIMULATED).read_text(encoding="utf-8").splitlines()]
    for row, item in zip(rows, runs(folder, SIMULATED), strict=True):
        request, response = row["responses_create_params"]["tools"], row["response"]["tools"]
        assert request != response
        assert reduced(request) == reduced(response)
        assert [entry["digest"] for entry in shown(item, "tool_bindings")] == [
            digest.of(tool) for tool in read_tools(request).readable
        ]


def test_two_domains_in_one_file_have_two_sets_of_tools(folder: Path) -> None:
    tools = [shown(item, "tool_bindings") for item in runs(folder, SIMULATED)]
    assert tools[0] == tools[1] == tools[3] == tools[4] != tools[2]


def test_without_their_policies_the_prompts_of_a_file_are_one(folder: Path) -> None:
    prompts = [shown(item, "prompt_templates") for item in runs(folder, SIMULATED)]
    assert prompts == [prompts[0]] * 5
    assert [entry["form"] for entry in prompts[0]] == ["substituted"]


def test_an_agent_that_calls_tools_of_its_own_was_not_without_tools(folder: Path) -> None:
    for item in runs(folder, WRAPPED):
        assert any("tool_calls" in step for step in item.trajectory["steps"])
        assert item.observed == {}
