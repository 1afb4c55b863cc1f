"""Playing records every run under the harness that made it, and gives the same bytes each time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support_desk import play, tasks
from support_desk.play import Options

from tracemark.errors import UsageError
from tracemark.harness.harness import load

ROOT = Path(__file__).resolve().parents[2]
HARNESSES = ("desk-plain", "desk-labelled")


@pytest.fixture(scope="module", params=HARNESSES)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Options:
    options = Options(ROOT / "harness_versions" / request.param, tmp_path_factory.mktemp("inbox") / request.param)
    play.play(options)
    return options


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_there_is_one_journal_per_task_and_attempt(played: Options) -> None:
    assert len(list(played.inbox.glob("*.journal.jsonl"))) == 2 * len(tasks.all_tasks())


def test_two_plays_in_two_folders_give_the_same_bytes(played: Options, tmp_path: Path) -> None:
    again = Options(played.harness, tmp_path / "elsewhere")
    play.play(again)
    assert contents(again.inbox) == contents(played.inbox)


def test_a_moved_checkout_gives_the_same_bytes_from_the_command_line(played: Options, tmp_path: Path) -> None:
    for folder in ("domains", "harness_versions"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    script, harness = "domains/support_desk/play.py", f"harness_versions/{played.harness.name}"
    command = [sys.executable, script, "--harness", harness, "--inbox", "inbox"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert finished.stderr.startswith(f"120 runs under {played.harness.name}: ")
    assert contents(tmp_path / "inbox") == contents(played.inbox)


def test_another_seed_gives_other_runs(played: Options, tmp_path: Path) -> None:
    other = Options(played.harness, tmp_path / "inbox", attempts=1, seed=8)
    play.play(other)
    assert contents(other.inbox).items() - contents(played.inbox).items()


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


def test_the_two_harnesses_make_different_fingerprints_from_the_same_tools() -> None:
    plain, labelled = (load(ROOT / "harness_versions" / name) for name in HARNESSES)
    assert plain.identity.fingerprint != labelled.identity.fingerprint
    assert plain.identity.components["tool_bindings"] == labelled.identity.components["tool_bindings"]
    assert plain.identity.components["runtime"] == labelled.identity.components["runtime"]
