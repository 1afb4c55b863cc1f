"""Real Inspect AI logs: how many runs, how they ended, and what of their harnesses is the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.importers.base import Imported

from .conftest import Inbox

pytestmark = pytest.mark.shared_data

POPULARITY = (
    "UKGovernmentBEIS__logs__2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval",
    "UKGovernmentBEIS__logs__2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval",
    "UKGovernmentBEIS__test_eval_log__log_read_sample.json",
    "UKGovernmentBEIS__test_logs__2025-05-12T20-28-13-04-00_popularity.json",
    "meridianlabs-ai__recorder__logs__2025-09-23T08-09-58-04-00_popularity_DN2wbX2ZvACsBpjwptzBRo.eval",
)
GUIDE = "UKGovernmentBEIS__scanner__logs__2025-09-23T08-09-58-04-00_security-guide_LuxZJVwvymC3S3SyoJczxB.eval"
MIND = "UKGovernmentBEIS__scanner__logs__2025-09-23T08-09-58-04-00_theory-of-mind_bbB4eRCx2rFJLyPH42Cj9r.eval"
COUNTS = {
    POPULARITY[0]: {"unknown": 10},
    POPULARITY[1]: {"success": 8, "failure": 2},
    POPULARITY[2]: {"success": 1},
    POPULARITY[3]: {"success": 2, "failure": 1},
    POPULARITY[4]: {"success": 63, "failure": 37},
    GUIDE: {"success": 11, "failure": 5},
    MIND: {"success": 83, "failure": 17},
    "UKGovernmentBEIS__test_eval_log__log_formats.json": {"failure": 1},
    "UKGovernmentBEIS__test_eval_log__log_images.json": {"failure": 1},
    "UKGovernmentBEIS__test_eval_log__log_images_tc.json": {"failure": 1},
    "UKGovernmentBEIS__test_eval_log__log_read_sample.eval": {"success": 1},
    "UKGovernmentBEIS__test_eval_log__log_tool_call_error.json": {"unknown": 1},
    "UKGovernmentBEIS__test_list_logs__2024-11-05T13-31-45-05-00_input-task_8zXjbRzCWrL9GXiXo2vus9.json": {
        "success": 1
    },
    "UKGovernmentBEIS__test_logs_choices__mmlu-no-summary-choices.eval": {"failure": 1},
    "UKGovernmentBEIS__test_logs_choices__mmlu-summary-choices.eval": {"failure": 1},
}
"""Every file, with the statuses of its runs. The first log was never scored; the tool errors are a made-up sample
without a score."""


@pytest.fixture(scope="module")
def runs(shared_traces: Path) -> dict[str, list[Imported]]:
    """Every run of every log, by the log's name; nothing is refused."""
    read = Inbox(shared_traces / "inspect").read()
    assert not read.refused
    found: dict[str, list[Imported]] = {}
    for item in read.traces:
        assert item.source["importer"] == "inspect"
        found.setdefault(item.source["label"].partition("/")[0], []).append(item)
    return found


def of(item: Imported, component: str) -> list[dict[str, str]]:
    return item.observed.get(component, [])


def digests(items: list[Imported], component: str) -> set[str]:
    return {digest.of(of(item, component)) for item in items}


def test_every_log_is_read_whole(runs: dict[str, list[Imported]]) -> None:
    statuses = {name: dict(Counter(item.outcome["status"] for item in items)) for name, items in runs.items()}
    assert statuses == COUNTS


def test_no_run_is_mixed_and_none_is_doubted(runs: dict[str, list[Imported]]) -> None:
    items = [item for of_log in runs.values() for item in of_log]
    assert not [item.where for item in items if item.mixed or item.findings]
    assert len({item.trajectory_bytes for item in items}) == len(items)


def test_s7_one_prompt_and_no_tools_over_two_models_three_versions_and_four_commits(
    runs: dict[str, list[Imported]],
) -> None:
    items = [item for name in POPULARITY for item in runs[name]]
    for component in ("prompt_templates", "tool_bindings"):
        assert len(digests(items, component)) == 1
    assert [entry["form"] for entry in of(items[0], "prompt_templates")] == ["template", "substituted"]
    assert [entry["form"] for entry in of(items[0], "tool_bindings")] == ["known-empty"]
    assert len({item.run["model"]["name"] for item in items}) == 2
    labels: list[dict[str, Any]] = [item.run["environment"] for item in items]
    assert len({one["packages"]["inspect_ai"] for one in labels}) >= 3
    assert len({one["revision"]["commit"] for one in labels}) >= 4


def test_s7_the_second_call_of_the_guide_is_its_graders(runs: dict[str, list[Imported]]) -> None:
    items = runs[GUIDE]
    assert len(digests(items, "prompt_templates")) == 1
    assert digests(items, "prompt_templates").isdisjoint(digests(runs[POPULARITY[4]], "prompt_templates"))
    for item in items:
        assert b"comparing a submitted answer" not in item.trajectory_bytes
        assert b"comparing a submitted answer" in digest.canonical(item.outcome)


def test_a_template_around_the_input_is_one_over_a_hundred_tasks(runs: dict[str, list[Imported]]) -> None:
    assert len({item.trajectory["steps"][0]["message"] for item in runs[MIND]}) == 100
    assert len(digests(runs[MIND], "prompt_templates")) == 1
    assert [entry["form"] for entry in of(runs[MIND][0], "prompt_templates")] == ["substituted"]


def test_an_image_is_a_part_and_tool_errors_stay_with_their_answers(runs: dict[str, list[Imported]]) -> None:
    [item] = runs["UKGovernmentBEIS__test_eval_log__log_images.json"]
    assert item.trajectory["steps"][1]["message"][1]["source"]["media_type"] == "image/png"
    [item] = runs["UKGovernmentBEIS__test_eval_log__log_tool_call_error.json"]
    [step] = item.trajectory["steps"]
    kinds = [result["extra"]["error"]["type"] for result in step["observation"]["results"]]
    assert (len(kinds), kinds[0], kinds[-1]) == (11, "parsing", "output_limit")
