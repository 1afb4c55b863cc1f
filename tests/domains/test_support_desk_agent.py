"""The scripted agent knows only what it is shown, repeats itself exactly, and errs as models do."""

from __future__ import annotations

import ast
import runpy
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from support_desk import agent, habits, reading, tasks

from tests.domains import desk_runs
from tests.domains.desk_runs import Run, run

ROOT = Path(__file__).resolve().parents[2]
HARNESSES = ("desk-plain", "desk-labelled")
WRITES = {"refund_order", "cancel_order", "change_address", "redeem_gift_card", "issue_gift_card", "reschedule_booking"}


@cache
def runs(harness: str, strength: str = "base") -> list[Run]:
    """Play every task twice."""
    return [
        run(harness, task, f"7/{task.task_id}/{attempt}", strength)
        for task in tasks.all_tasks()
        for attempt in range(2)
    ]


def rate(harness: str, strength: str = "base") -> float:
    """Return the share of runs that succeed."""
    played = runs(harness, strength)
    return sum(each.verdict.success for each in played) / len(played)


def test_the_agent_can_reach_neither_the_desk_nor_its_tools() -> None:
    imported: set[str] = set()
    for module in (agent, habits, reading):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    own = {name for name in imported if name.startswith("support_desk")}
    assert own == {
        "support_desk.reading",
        "support_desk.dice.Dice",
        "support_desk.habits.BASE",
        "support_desk.habits.Strength",
        "support_desk.reading.Seen",
    }
    assert "sqlite3" not in imported


@pytest.mark.parametrize("harness", desk_runs.HARNESSES)
def test_nothing_that_the_agent_sees_or_is_made_of_names_a_harness(harness: str) -> None:
    system, observe, fingerprint = desk_runs.parts(harness)
    made_of = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (agent, habits, reading)]
    seen = [system, *(observe(result) for each in runs(harness) for result in each.results)]
    for text in (*made_of, *seen):
        assert not any(name in text for name in (*desk_runs.HARNESSES, fingerprint))


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_same_seed_gives_the_same_replies(harness: str) -> None:
    task = tasks.all_tasks()[9]
    assert run(harness, task, "s") == run(harness, task, "s")


@pytest.mark.parametrize("harness", HARNESSES)
def test_another_seed_gives_other_mistakes(harness: str) -> None:
    task = tasks.all_tasks()[9]
    assert len({str(run(harness, task, f"{number}").replies) for number in range(12)}) > 3


def test_a_run_succeeds_more_often_the_more_its_harness_shows() -> None:
    assert 0.4 <= rate("desk-plain") < rate("desk-labelled") < rate("desk-advised") <= 0.98
    assert 0.55 <= rate("desk-labelled") <= 0.75


def test_a_comment_in_a_handler_makes_no_difference_to_any_run() -> None:
    assert runs("desk-commented") == runs("desk-labelled")


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_tuned_agent_succeeds_more_often_than_the_base_one(harness: str) -> None:
    assert rate(harness, "tuned") > rate(harness)


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


@pytest.mark.parametrize("harness", desk_runs.HARNESSES)
def test_the_harness_parser_reads_every_reply_back(harness: str) -> None:
    parse = runpy.run_path(str(ROOT / "harness_versions" / harness / "runtime" / "reply.py"))["parse"]
    for reply in (reply for each in runs(harness) for reply in each.replies):
        calls = [(reply.tool, reply.arguments)] if reply.tool else []
        assert parse(reply.text) == (reply.message, calls)


def believed(harness: str) -> int:
    """Return how many runs report the cancellation of an order that was shipped."""
    late = [each for each in runs(harness) if each.task.kind == "late-cancel"]
    return sum("is cancelled" in each.replies[-1].message for each in late)


def test_a_refusal_that_says_what_to_do_next_is_hardly_ever_overlooked() -> None:
    assert believed("desk-advised") < believed("desk-labelled")
    assert believed("desk-labelled") > 1


def test_an_unknown_address_with_advice_is_followed_by_the_other_address() -> None:
    given_up = {
        harness: sum("cannot find an account" in each.replies[-1].message for each in runs(harness))
        for harness in ("desk-labelled", "desk-advised")
    }
    assert given_up["desk-advised"] * 3 < given_up["desk-labelled"]


def test_orders_by_day_leave_no_wrong_one_to_take() -> None:
    wrong = {
        harness: sum(
            each.task.answer[0] not in str(each.replies[-2].arguments)
            for each in runs(harness)
            if each.task.kind == "lookup" and each.tools[-1] == "get_order"
        )
        for harness in ("desk-labelled", "desk-advised")
    }
    assert wrong["desk-labelled"] > 0
    assert wrong["desk-advised"] == 0


def test_a_prompt_that_asks_for_a_check_leaves_few_slips() -> None:
    brief = {
        harness: sum(each.replies[-1].message == "All done, thank you." for each in runs(harness))
        for harness in ("desk-labelled", "desk-advised")
    }
    assert 0 < brief["desk-advised"] * 2 < brief["desk-labelled"]


def test_only_the_prompt_that_asks_for_a_check_brings_one_about() -> None:
    rules = {harness: agent.CHECK_RULE in desk_runs.parts(harness)[0] for harness in desk_runs.HARNESSES}
    assert [harness for harness, asked in rules.items() if asked] == ["desk-advised"]
