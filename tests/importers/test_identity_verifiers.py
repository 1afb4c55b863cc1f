"""Real evaluations of verifiers: which of them are of one harness, as far as their rows show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracemark import digest
from tracemark.harness.tools import reduce_tool
from tracemark.importers.base import Imported

from .conftest import Inbox

pytestmark = pytest.mark.shared_data

MATH = "PrimeIntellect-ai__math-python--"


@pytest.fixture(scope="module")
def runs(shared_traces: Path) -> dict[str, list[Imported]]:
    """Every run, by the name of its file."""
    found: dict[str, list[Imported]] = {}
    for item in Inbox(shared_traces / "verifiers").read().traces:
        found.setdefault(item.source["label"], []).append(item)
    return found


def shown(items: list[Imported], component: str) -> set[tuple[str, ...]]:
    """Return the different readings of a component over some runs."""
    return {tuple(entry["digest"] for entry in item.observed.get(component, [])) for item in items}


def test_runs_of_one_evaluation_show_one_harness(runs: dict[str, list[Imported]]) -> None:
    for name, items in runs.items():
        assert len(shown(items, "tool_bindings")) == 1, name
        assert len(shown(items, "prompt_templates")) == 1, name


def test_another_model_is_no_other_harness(runs: dict[str, list[Imported]]) -> None:
    one, other = (runs[f"{MATH}{name}.results.jsonl"] for name in ("gpt-4.1-mini__578769a7", "gpt-5-nano__cb7a1799"))
    for component in ("prompt_templates", "tool_bindings"):
        assert shown(one, component) == shown(other, component)


def test_two_versions_of_one_environment_are_told_apart(runs: dict[str, list[Imported]]) -> None:
    old, new = (runs[f"{MATH}gpt-4.1-mini__{name}.results.jsonl"] for name in ("97cb0229", "578769a7"))
    assert shown(old, "tool_bindings").isdisjoint(shown(new, "tool_bindings"))


def test_padding_of_tables_is_no_part_of_a_tool(runs: dict[str, list[Imported]]) -> None:
    items = runs["PrimeIntellect-ai__mcp-env--gpt-4.1-mini__fdac998f.results.jsonl"]
    definitions = items[0].trajectory["agent"]["tool_definitions"]
    assert any(value is None for value in definitions[0]["function"]["parameters"]["properties"].values())
    bare = _without_null(definitions)
    assert [entry["digest"] for entry in items[0].observed["tool_bindings"]] == _digests(bare)


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_null(member) for name, member in value.items() if member is not None}
    return [_without_null(one) for one in value] if isinstance(value, list) else value


def _digests(tools: object) -> list[str]:
    assert isinstance(tools, list)
    reduced = sorted((reduce_tool(tool) for tool in tools), key=lambda tool: tool["name"])
    assert all("null" not in digest.canonical(tool).decode() for tool in reduced)
    return [digest.of(tool) for tool in reduced]
