"""Real τ² files: how many runs, how they ended, and whose calls they hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tracemark.importers.base import Imported

from .conftest import Inbox, Read

pytestmark = pytest.mark.shared_data

CHANGED = "20260531-222346-104165"


@pytest.fixture(scope="module")
def read(shared_traces: Path) -> Read:
    return Inbox(shared_traces / "tau2").read()


@pytest.fixture(scope="module")
def runs(read: Read) -> dict[str, list[Imported]]:
    """Every run, by the name of its file without owner and ending."""
    found: dict[str, list[Imported]] = {}
    for item in read.traces:
        found.setdefault(item.source["label"].partition("__")[2].removesuffix(".results.json"), []).append(item)
    return found


def test_every_file_is_read_and_the_notes_stand_beside(read: Read, runs: dict[str, list[Imported]]) -> None:
    assert read.refused == []
    beside = sorted(found.where.partition("__")[2] for found in read.plan.findings)
    assert beside == [f"{CHANGED}.prompt_variant.json", f"{CHANGED}.prompt_variant.txt"]
    assert {len(items) for items in runs.values()} == {1, 10}
    assert len(runs) == 8
    statuses = Counter((item.outcome["status"], item.outcome["termination"]) for item in read.traces)
    assert statuses == {("success", "user_stop"): 11, ("failure", "user_stop"): 5, ("failure", "max_steps"): 1}


def test_no_run_is_altered_mixed_or_doubted(read: Read) -> None:
    for item in read.traces:
        assert (item.source.get("repairs"), item.mixed, item.findings) == (None, (), ())
        assert "rendered" not in item.run


def test_every_model_call_of_the_agent_and_no_other_is_counted(read: Read) -> None:
    for item in read.traces:
        agent = [step for step in item.trajectory["steps"] if step["source"] == "agent"]
        assert all(("metrics" in step) != (step.get("llm_call_count") == 0) for step in agent)
        assert agent[0]["llm_call_count"] == 0
    copied = [item.run["task"] for item in read.traces if item.trajectory["steps"][0].get("is_copied_context")]
    assert copied == ["update_task_with_message_history", "update_task_with_history_and_env_assertions"]


def test_what_the_user_called_is_no_call_of_the_agent(read: Read) -> None:
    [item] = [item for item in read.traces if item.run["task"] == "update_task_with_user_tools"]
    [step] = [step for step in item.trajectory["steps"] if "user_tool_calls" in step.get("extra", {})]
    assert step["source"] == "user"
    assert step["message"].startswith("I have received a notification")
    assert "check_notifications" not in {name for name, _, _ in item.content.calls}
