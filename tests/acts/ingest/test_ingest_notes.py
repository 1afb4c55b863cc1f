"""What an ingest run says at its end, and what it counts as skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracemark
from tracemark.acts import ingest_notes
from tracemark.clock import FixedClock
from tracemark.store.state import Statement

CLOCK = FixedClock("2026-01-31T12:00:00Z", 1)


def record(desk, task: str, *, said: bool) -> Path:
    """Record a run that ends before its first step, or after it."""
    inbox = Path(desk.inbox / "recorded")
    folder = desk.root / "harness_versions" / "desk_a"
    with tracemark.record(folder, inbox, {"task": task, "attempt": 0}, clock=CLOCK) as recorder:
        if said:
            recorder.system(recorder.prompt("system").render())
            recorder.user("Please see to it.")
            recorder.agent("Done.")
            recorder.outcome("success")
    return inbox


def test_a_run_that_ended_before_its_first_step_is_skipped_and_no_failure(desk) -> None:
    record(desk, "t-1", said=False)
    inbox = record(desk, "t-2", said=True)
    report = desk.ingest(inbox)
    assert (report.ingested, report.skipped, report.refused, report.exit_code) == (1, 1, 0, 0)
    assert [found.code for found in report.findings] == ["journal-empty"]
    assert [kept["code"] for kept in desk.refused()] == ["journal-empty"]


def test_an_inbox_of_nothing_but_such_runs_is_no_failure_either(desk) -> None:
    report = desk.ingest(record(desk, "t-1", said=False))
    assert (report.ingested, report.skipped, report.refused, report.exit_code) == (0, 1, 0, 0)


def test_what_cannot_be_read_is_refused_beside_it(desk) -> None:
    inbox = record(desk, "t-1", said=False)
    record(desk, "t-2", said=True)
    (inbox / "notes.txt").write_text("hello\n")
    report = desk.ingest(inbox)
    assert (report.skipped, report.refused, report.exit_code) == (1, 1, 1)


@pytest.mark.parametrize("value", ["x" * 50, {"deep": "y" * 50}])
def test_a_value_in_dispute_is_cut_short(value: object) -> None:
    said = [Statement("a", run={"domain": value}), Statement("b", run={"domain": "shop"})]
    (found,) = ingest_notes.contested("f" * 64, said, settled=False)
    assert "… or shop)" in found.message
    assert len(found.message) < 150
