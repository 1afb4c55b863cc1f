"""`plan` on the command line: data on standard output or in a file, words on standard error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracemark.acts import planning
from tracemark.acts.planning import PlanOptions, PlanReport
from tracemark.cli.main import run
from tracemark.cli.plan_view import about
from tracemark.findings import finding

ROW = {"task": "a\x1b[2J", "domain": "desk", "class": "desk", "attempts": 2, "reason": "never run"}
REPORT = PlanReport(
    (finding("plan-unfilled", "plan", "rows that no known task can be expected to give: 7 of the 10 that are wanted"),),
    tasks=(ROW,),
    fingerprint="tm1:" + "a" * 64,
    harness="desk",
    model="m@1",
    runs=2,
    rows=2,
    wanted=10,
    lacking=8,
    expected=1.0,
    unfilled=7,
    short={},
    retired=("r", "s"),
    waiting=(),
    given_up=("g",),
    not_needed=(),
    untaken={},
    evaluation=32,
    unnamed=1,
)
WORDS = """\
1 task, 2 runs under desk with m@1: 1 more row to be expected
2 rows there now, 10 are wanted
tasks not listed: 2 solved and harvested, 1 given up, 32 of the evaluation set
1 run whose task nobody knows
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[PlanOptions]:
    """Answer with `REPORT`; the options of each question are kept."""
    options: list[PlanOptions] = []

    def answer(_root: Path, given: PlanOptions) -> PlanReport:
        options.append(given)
        return REPORT

    monkeypatch.setattr(planning, "plan", answer)
    return options


def plan(*words: str) -> int:
    return run(["--root", ".", "plan", *words])


def test_the_list_is_data_and_the_rest_is_words(asked: list[PlanOptions], capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--runs", "3", "--tasks", "more.txt") == 0
    assert asked == [PlanOptions(None, 3, Path("more.txt"))]
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [ROW]
    assert said.err.startswith(WORDS)
    assert "warning plan-unfilled plan: rows that no known task" in said.err
    assert "\x1b" not in said.out + said.err


def test_with_a_file_nothing_but_words_is_shown(asked: list[PlanOptions], capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--out", "plan.jsonl") == 0
    assert asked == [PlanOptions(Path("plan.jsonl"))]
    said = capsys.readouterr()
    assert (said.out, said.err[: len(WORDS)]) == ("", WORDS)


@pytest.mark.parametrize("more", [(), ("--out", "plan.jsonl")])
def test_json_is_the_whole_answer(
    more: tuple[str, ...], asked: list[PlanOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan("--output", "json", *more) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["tasks"], answer["given_up"], answer["findings"][0]["code"]) == ([ROW], ["g"], "plan-unfilled")


def test_a_table_shows_the_tasks(asked: list[PlanOptions], capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--output", "table") == 0
    assert "a\\x1b[2J" in capsys.readouterr().out


def test_no_number_of_runs_is_no_limit(asked: list[PlanOptions]) -> None:
    assert plan("--runs", "0") == 2
    assert asked == []


def test_words_of_a_plan_that_lists_nothing() -> None:
    nothing = PlanReport(
        (),
        tasks=(),
        fingerprint="tm1:" + "b" * 64,
        harness=None,
        model=None,
        runs=0,
        rows=100,
        wanted=None,
        lacking=None,
        expected=0.0,
        unfilled=0,
        short={},
        retired=(),
        waiting=(),
        given_up=(),
        not_needed=(),
        untaken={},
        evaluation=0,
        unnamed=0,
    )
    assert about(nothing) == (
        f"0 tasks, 0 runs under tm1:{'b' * 64}: 0 more rows to be expected\n100 rows there now, no total is set"
    )


def test_rows_that_a_class_has_above_its_share_are_told_by_what_lacks_all_the_same() -> None:
    above = replace(REPORT, rows=9, lacking=4)
    assert "\n9 rows there now, 10 are wanted, 4 of their classes lack\n" in about(above)


def test_tasks_that_the_limit_of_runs_cut_off_are_not_said_to_be_unneeded() -> None:
    left = replace(REPORT, not_needed=("t-8", "t-9"), unfilled=0, rows=2, wanted=10, lacking=8)
    assert "2 not needed now" in about(replace(left, expected=8.0))
    assert "2 not needed now" in about(replace(left, expected=7.0, unfilled=1))
    assert "2 beyond --runs" in about(replace(left, expected=4.5))
    assert "2 beyond --runs" in about(replace(left, wanted=None, lacking=None))
