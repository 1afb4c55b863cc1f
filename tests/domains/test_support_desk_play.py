"""Playing records every run under the harness that made it, and gives the same bytes each time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support_desk import play, tasks
from support_desk.play import Options

from tests.domains import desk_runs
from tracemark.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

HARNESSES = ("desk-plain", "desk-labelled")
PARTS = 2 + 10 + 1 + 2
"""Prompts, tools, handler, and of the runtime its parser and its limits."""
RUNS = 50 * 2 + 32 * 2
"""Each training task twice, each measuring task once by each strength."""


@pytest.fixture(scope="module", params=HARNESSES)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Options:
    options = Options(
        ROOT / "harness_versions" / request.param, tmp_path_factory.mktemp("inbox") / request.param, attempts=1
    )
    play.play(options)
    return options


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def events(inbox: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind of all journals."""
    lines = (line for path in sorted(inbox.glob("*.journal.jsonl")) for line in path.read_bytes().splitlines())
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_base_plays_the_training_tasks_twice_and_both_strengths_play_the_measuring_ones(played: Options) -> None:
    told = Counter(
        (run["split"], run["task"], run["model"]["name"], run["model"]["revision"], run["attempt"])
        for run in (event["run"] for event in events(played.inbox, "start"))
    )
    expected = [
        (task.split, task.task_id, "desk-agent", revision, attempt)
        for task in tasks.all_tasks()
        for revision in (("base",) if task.split == "train" else ("base", "tuned"))
        for attempt in range(2 if task.split == "train" else 1)
    ]
    assert told == Counter(expected)
    assert len(expected) == RUNS


def test_every_measuring_task_gets_four_attempts_unless_told_otherwise() -> None:
    attempts = Counter(turn.task.task_id for turn in play.turns(Options(Path("h"), Path("i")).attempts))
    assert {attempts[task] for task in tasks.EVALUATION} == {8}


def test_its_verdicts_are_those_of_the_runs_without_a_recorder(tmp_path: Path) -> None:
    options = Options(ROOT / "harness_versions" / "desk-advised", tmp_path / "inbox", attempts=1, seed=3)
    assert play.play(options) == desk_runs.verdicts("desk-advised", seed=3, attempts=1)


def test_two_harnesses_that_say_the_same_have_luck_of_their_own(played: Options, tmp_path: Path) -> None:
    others = [name for name in HARNESSES if name != played.harness.name]
    turn = next(play.turns(1))
    fingerprints = [desk_runs.parts(name)[2] for name in (played.harness.name, *others)]
    assert len({turn.luck(7, fingerprint) for fingerprint in fingerprints}) == 2


def test_every_reply_is_billed_for_all_that_was_said_before(played: Options) -> None:
    for path in played.inbox.glob("*.journal.jsonl"):
        steps = [event["step"] for event in map(json.loads, path.read_bytes().splitlines()) if event["event"] == "step"]
        billed = [step["metrics"] for step in steps if step["source"] == "agent"]
        assert billed == [each for each in billed if each["cost_usd"] > 0 and each["completion_tokens"] > 0]
        grown = [each["prompt_tokens"] for each in billed]
        assert grown == sorted(set(grown))


def test_a_second_play_from_a_moved_checkout_and_another_process_gives_the_same_bytes(
    played: Options, tmp_path: Path
) -> None:
    for folder in ("domains", "harness_versions"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    script, harness = "domains/support_desk/play.py", f"harness_versions/{played.harness.name}"
    command = [sys.executable, script, "--harness", harness, "--inbox", "inbox", "--attempts", "1"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert finished.stderr.startswith(f"{RUNS} runs under {played.harness.name}: ")
    assert contents(tmp_path / "inbox") == contents(played.inbox)


def test_another_seed_gives_other_runs(tmp_path: Path) -> None:
    inboxes = []
    for seed in (7, 8):
        options = Options(ROOT / "harness_versions" / "desk-plain", tmp_path / str(seed), attempts=1, seed=seed)
        inboxes.append([verdict.success for verdict in play.play(options).values()])
    assert inboxes[0] != inboxes[1]


def test_every_part_of_the_harness_is_recorded_and_nothing_contradicts_it(played: Options) -> None:
    stated = dict.fromkeys(("recorded", "claimed", "contradiction", "mixed"), 0)
    for path in played.inbox.glob("*.journal.jsonl"):
        for event in map(json.loads, path.read_bytes().splitlines()):
            stated["mixed"] += "mixed" in event
            if event["event"] in ("evidence", "contradiction"):
                stated[event.get("evidence", "contradiction")] += 1
    assert stated == {"recorded": RUNS * PARTS, "claimed": 0, "contradiction": 0, "mixed": 0}


def test_a_run_ends_with_the_verdict_of_the_grader(played: Options) -> None:
    outcomes = [event["outcome"] for event in events(played.inbox, "outcome")]
    assert len(outcomes) == RUNS
    assert {(each["status"], each["reward"]) for each in outcomes} == {("success", 1.0), ("failure", 0.0)}
    assert all(each["grader"] == {"name": "support-desk-state", "version": "1"} for each in outcomes)


def test_a_run_that_reaches_the_limit_ends_there(tmp_path: Path) -> None:
    for folder in ("domains", "harness_versions"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    harness = tmp_path / "harness_versions" / "desk-plain"
    manifest = (harness / "harness.yaml").read_text(encoding="utf-8")
    (harness / "harness.yaml").write_text(manifest.replace("steps: 10", "steps: 1"), encoding="utf-8")
    verdicts = play.play(Options(harness, tmp_path / "inbox", attempts=1))
    assert not any(verdict.answer for verdict in verdicts.values())
    journal = (tmp_path / "inbox" / "refund-01-base-0.journal.jsonl").read_text(encoding="utf-8")
    assert journal.count('"source":"agent"') == 1
    assert '"termination":"max_steps"' in journal


def test_no_journal_names_a_place_on_this_machine(played: Options) -> None:
    for data in contents(played.inbox).values():
        assert str(ROOT).encode() not in data
        assert str(played.inbox).encode() not in data


def test_an_inbox_that_holds_journals_is_left_alone(played: Options) -> None:
    before = contents(played.inbox)
    with pytest.raises(UsageError, match="holds journals already"):
        play.play(played)
    assert contents(played.inbox) == before


def test_a_folder_that_is_no_harness_is_an_error_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play.main(["--harness", str(tmp_path), "--inbox", str(tmp_path / "inbox")]) == 2
    assert capsys.readouterr().err.startswith("play: ")
