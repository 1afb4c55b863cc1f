"""The scripted agent knows only what it is shown, repeats itself exactly, and errs as models do."""

from __future__ import annotations

import ast
import runpy
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support_desk import agent, grader, reading, tasks, tools
from support_desk.agent import Agent, Reply
from support_desk.environment import Environment
from support_desk.grader import Verdict
from support_desk.tasks import Task

from tracemark.clock import FixedClock

ROOT = Path(__file__).resolve().parents[2]
HARNESSES = ("desk-plain", "desk-labelled")
WRITES = {"refund_order", "cancel_order", "change_address", "redeem_gift_card", "issue_gift_card", "reschedule_booking"}


@dataclass(frozen=True)
class Run:
    task: Task
    replies: tuple[Reply, ...]
    results: tuple[dict[str, Any], ...]
    verdict: Verdict

    @property
    def tools(self) -> list[str]:
        return [reply.tool for reply in self.replies if reply.tool]


def run(harness: str, task: Task, seed: str) -> Run:
    """Play one task without a recorder."""
    folder = ROOT / "harness_versions" / harness
    observe = runpy.run_path(str(folder / "handlers" / "observe.py"))["observe"]
    system = (folder / "prompts" / "system.jinja").read_text(encoding="utf-8").replace("{{ today }}", "2026-03-02")
    desk = Environment(FixedClock(tasks.START))
    work = Agent(system, task.request, seed).work()
    replies, results = [next(work)], []
    while (tool := replies[-1].tool) is not None:
        results.append(getattr(tools, tool)(desk, **replies[-1].arguments))
        replies.append(work.send(reading.read(observe(results[-1]))))
    return Run(task, tuple(replies), tuple(results), grader.grade(task, desk, replies[-1].message))


@cache
def runs(harness: str) -> list[Run]:
    """Play every task twice."""
    return [run(harness, task, f"7/{task.task_id}/{attempt}") for task in tasks.all_tasks() for attempt in range(2)]


def test_the_agent_can_reach_neither_the_desk_nor_its_tools() -> None:
    imported: set[str] = set()
    for module in (agent, reading):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    own = {name for name in imported if name.startswith("support_desk")}
    assert own == {"support_desk.reading", "support_desk.dice.Dice", "support_desk.reading.Seen"}
    assert "sqlite3" not in imported


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_same_seed_gives_the_same_replies(harness: str) -> None:
    task = tasks.all_tasks()[9]
    assert run(harness, task, "s") == run(harness, task, "s")


@pytest.mark.parametrize("harness", HARNESSES)
def test_another_seed_gives_other_mistakes(harness: str) -> None:
    task = tasks.all_tasks()[9]
    assert len({str(run(harness, task, f"{number}").replies) for number in range(12)}) > 3


@pytest.mark.parametrize("harness", HARNESSES)
def test_half_to_seven_tenths_of_the_runs_succeed(harness: str) -> None:
    succeeded = sum(each.verdict.success for each in runs(harness))
    assert 0.5 <= succeeded / len(runs(harness)) <= 0.7


@pytest.mark.parametrize("harness", HARNESSES)
def test_at_least_thirty_training_tasks_are_solved_with_two_calls_or_more(harness: str) -> None:
    solved = {
        each.task.task_id
        for each in runs(harness)
        if each.verdict.success and each.task.split == "train" and len(each.tools) >= 2
    }
    assert len(solved) >= 30


@pytest.mark.parametrize("harness", HARNESSES)
def test_every_kind_of_task_both_succeeds_and_fails(harness: str) -> None:
    outcomes = Counter((each.task.kind, each.verdict.success) for each in runs(harness))
    assert set(outcomes) == {(kind, success) for kind in tasks.COUNTS for success in (True, False)}


@pytest.mark.parametrize("harness", HARNESSES)
def test_it_takes_an_address_that_is_out_of_date(harness: str) -> None:
    assert any(each.replies[0].arguments.get("email", "").endswith("@old.example") for each in runs(harness))


@pytest.mark.parametrize("harness", HARNESSES)
def test_it_repeats_a_call_that_was_refused(harness: str) -> None:
    assert any(
        not result["ok"] and (before.tool, before.arguments) == (after.tool, after.arguments)
        for each in runs(harness)
        for before, result, after in zip(each.replies, each.results, each.replies[1:], strict=False)
    )


@pytest.mark.parametrize("harness", HARNESSES)
def test_it_writes_without_reading_the_record_first(harness: str) -> None:
    assert any(len(each.tools) > 1 and each.tools[1] in WRITES for each in runs(harness))


@pytest.mark.parametrize("harness", HARNESSES)
def test_it_reports_a_change_that_was_refused(harness: str) -> None:
    assert any(
        each.replies[-1].message.endswith("is cancelled.") and not any(result["ok"] for result in each.results[1:])
        for each in runs(harness)
        if each.task.kind == "late-cancel"
    )


def test_without_a_status_it_issues_a_card_twice_and_with_one_it_does_not() -> None:
    twice = {harness: any(each.tools.count("issue_gift_card") > 1 for each in runs(harness)) for harness in HARNESSES}
    assert twice == {"desk-plain": True, "desk-labelled": False}


def test_each_harness_leads_to_a_procedure_that_the_other_cannot_carry() -> None:
    said = {
        harness: " ".join(reply.message for each in runs(harness) for reply in each.replies) for harness in HARNESSES
    }
    assert "goodwill_cents" in said["desk-labelled"]
    assert "goodwill_cents" not in said["desk-plain"]
    assert "read the record again" in said["desk-plain"]
    assert "read the record again" not in said["desk-labelled"]


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_harness_parser_reads_every_reply_back(harness: str) -> None:
    parse = runpy.run_path(str(ROOT / "harness_versions" / harness / "runtime" / "reply.py"))["parse"]
    for reply in (reply for each in runs(harness) for reply in each.replies):
        calls = [(reply.tool, reply.arguments)] if reply.tool else []
        assert parse(reply.text) == (reply.message, calls)
