"""`init` makes a corpus in any folder, with git and DVC or without, and keeps what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracemark.acts import health, scaffold
from tracemark.cli.main import run
from tracemark.clock import FixedClock
from tracemark.errors import LedgerChainError, NewerFormatError, ParamsError, UsageError
from tracemark.harness.folder import IGNORED
from tracemark.importers.base import outcome_of_reward
from tracemark.ledger import chain
from tracemark.ledger.params import Params
from tracemark.ledger.params_file import read_params
from tracemark.pipeline import dvcfile

ROOT = Path(__file__).resolve().parents[2]
MADE = {
    "harness_versions/",
    "inbox/",
    "domains/",
    "params.yaml",
    "ledger.jsonl",
    ".gitignore",
    ".dvcignore",
    ".gitattributes",
    "traces/STORE",
}


def only(monkeypatch: pytest.MonkeyPatch, folder: Path, *programs: str) -> None:
    """Leave nothing on the search path but `programs`."""
    folder.mkdir()
    for program in programs:
        found = Path(sys.executable).parent / program
        if not found.exists():
            found = next(Path(p) / program for p in os.environ["PATH"].split(":") if (Path(p) / program).exists())
        (folder / program).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.executable", str(folder / "python"))


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither git nor DVC is installed."""
    only(monkeypatch, tmp_path / "bin")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("prepare", ["new", "deep", "empty", "used"])
def test_a_corpus_is_made_in(tmp_path: Path, prepare: str) -> None:
    folder = tmp_path / "a" / "b" if prepare == "deep" else tmp_path / "corpus"
    if prepare in ("empty", "used"):
        folder.mkdir()
    if prepare == "used":
        (folder / "notes.txt").write_text("mine")
    report = scaffold.init(folder)
    assert set(report.created) == MADE
    assert (report.git, report.dvc) == (False, False)
    assert not (folder / ".git").exists()
    found = health.check(folder)
    assert (found.exit_code, found.traces) == (0, 0)
    if prepare == "used":
        assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.usefixtures("bare")
def test_a_second_time_makes_and_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    scaffold.init(folder)
    before = {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".tracemark" not in path.parts
    }
    again = scaffold.init(folder)
    assert (again.created, again.extended) == ((), ())
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.usefixtures("bare")
def test_what_is_there_is_kept_and_lists_of_patterns_get_what_they_lack(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / ".gitignore").write_text("*.log\n/.tracemark/")
    (folder / "params.yaml").write_text("export: {evidence: recorded}\n")
    (folder / "inbox").mkdir()
    report = scaffold.init(folder, {"dvc.yaml": lambda: "stages: {}\n"})
    assert (folder / ".gitignore").read_text() == "*.log\n/.tracemark/\n__pycache__/\n"
    assert (folder / "params.yaml").read_text() == "export: {evidence: recorded}\n"
    assert set(report.created) == MADE - {".gitignore", "params.yaml", "inbox/"} | {"dvc.yaml"}
    assert report.extended == (".gitignore",)


@pytest.mark.usefixtures("bare")
def test_the_parameters_that_it_writes_are_the_defaults(tmp_path: Path) -> None:
    scaffold.init(tmp_path / "corpus")
    assert read_params(tmp_path / "corpus" / "params.yaml") == Params()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("path", [ROOT / "params.yaml", None])
def test_a_reward_above_that_of_success_is_not_said_to_be_one(tmp_path: Path, path: Path | None) -> None:
    if path is None:
        scaffold.init(tmp_path / "corpus")
        path = tmp_path / "corpus" / "params.yaml"
    assert [outcome_of_reward(reward, 1.0)["status"] for reward in (1.0, 2.0)] == ["success", "failure"]
    assert "success_reward: 1.0      # reward at which " in path.read_text()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("params.yaml", "learning_rate: 0.1\n", ParamsError),
        ("ledger.jsonl", "accounts receivable\n", LedgerChainError),
        ("traces/STORE", '{"format": "tracemark/store/9"}\n', NewerFormatError),
    ],
)
def test_nothing_is_made_where_a_file_of_that_name_is_something_else(
    tmp_path: Path, name: str, text: str, error: type[Exception]
) -> None:
    path = tmp_path / "corpus" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(error):
        scaffold.init(tmp_path / "corpus")
    assert [found for found in (tmp_path / "corpus").rglob("*") if found.is_file()] == [path]


def test_dvc_ignores_what_the_fingerprint_ignores_and_nothing_else() -> None:
    ignored = scaffold.PATTERNS[".dvcignore"].splitlines()
    assert ignored == [*IGNORED, ".tracemark/"]
    assert (Path(__file__).resolve().parents[2] / ".dvcignore").read_text() == scaffold.PATTERNS[".dvcignore"]


def test_a_file_is_no_place_for_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError) as stopped:
        scaffold.init(tmp_path / "file")
    # the very folders that the help page names
    assert str(stopped.value.hint) == "name a folder: a new, an empty or an existing one"


def test_with_git_alone_a_repository_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, tmp_path / "bin", "git")
    report = scaffold.init(tmp_path / "corpus")
    assert (report.git, report.dvc) == (True, False)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=tmp_path / "corpus",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "traces/STORE" in listed
    assert not [name for name in listed if name.startswith(".tracemark")]


def test_in_a_folder_of_a_repository_no_second_one_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    only(monkeypatch, tmp_path / "bin", "git")
    assert scaffold.init(tmp_path / "project" / "corpus").git
    assert not (tmp_path / "project" / "corpus" / ".git").exists()


def test_variables_that_a_hook_of_git_sets_lead_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "other")], check=True)
    only(monkeypatch, tmp_path / "bin", "git")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert scaffold.init(tmp_path / "corpus").git
    assert (tmp_path / "corpus" / ".git").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["top", "below", "plain"])
def test_with_dvc_the_new_corpus_has_a_pipeline_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    folder = tmp_path / "project" / "corpus" if place == "below" else tmp_path / "corpus"
    if place == "below":
        subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    programs = ["dvc", "tracemark", "python", "sh", "mkdir", *(["git"] if place != "plain" else [])]
    only(monkeypatch, tmp_path / "bin", *programs)
    assert run(["init", "--output", "json", str(folder)]) == 0
    # DVC makes a .dvcignore of its own, which is as new as all the rest
    made = json.loads(capfd.readouterr().out)
    assert (set(made["created"]), made["extended"]) == (MADE | {"dvc.yaml"}, [])
    assert scaffold.init(folder).dvc
    assert (folder / ".dvc" / "config").read_text().startswith("[core]\n    analytics = false\n")
    assert (folder / "dvc.yaml").read_text() == dvcfile.render(folder)
    for expected in ("Running stage 'ingest'", "Data and pipelines are up to date."):
        done = subprocess.run(["dvc", "repro"], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout
    assert health.check(folder).exit_code == 0


@pytest.mark.slow
def test_a_corpus_that_was_ingested_and_committed_by_hand_goes_through_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, tmp_path / "bin", "dvc", "tracemark", "python", "sh", "mkdir", "git")
    folder = tmp_path / "corpus"
    run(["init", str(folder)])
    (folder / "inbox" / "logs").mkdir()
    for place, text in (("logs/a.jsonl", "When?"), ("b.jsonl", "Where?")):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Here, now."}]
        (folder / "inbox" / place).write_text(json.dumps({"messages": messages}) + "\n")

    def ran(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran("dvc", "add", "--quiet", "inbox/logs")
    assert run(["--root", str(folder), "ingest", str(folder / "inbox")]) == 0
    ran("git", "add", "-A")
    ran("git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "commit", "--quiet", "-m", "first")
    tracked = ran("git", "ls-files").split()
    assert {"inbox/logs.dvc", "inbox/b.jsonl", "traces/STORE", "dvc.yaml"} <= set(tracked)
    assert not [name for name in tracked if name.endswith(".zst") or name == "inbox/logs/a.jsonl"]
    assert "Running stage 'ingest'" in ran("dvc", "repro")
    assert ran("git", "status", "--porcelain").split() == ["??", "dvc.lock"]
    found = health.check(folder)
    assert (found.findings, found.traces) == ((), 2)


def test_what_stages_write_is_left_to_git_where_there_is_no_dvc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, tmp_path / "bin", "git")
    scaffold.init(tmp_path / "corpus")
    assert "/traces/" not in (tmp_path / "corpus" / ".gitignore").read_text()


@pytest.mark.usefixtures("bare")
def test_a_decision_that_is_made_while_a_corpus_is_begun_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, exists = tmp_path / chain.NAME, Path.exists

    def overtaken(path: Path, **options: bool) -> bool:
        found = exists(path, **options)
        if path == ledger:
            monkeypatch.setattr(Path, "exists", exists)
            draft = chain.Draft("accept", {"harness": f"tm1:{'a' * 64}"}, "quicker")
            chain.append(ledger, chain.Chain(), draft, FixedClock())
        return found

    monkeypatch.setattr(Path, "exists", overtaken)
    scaffold.init(tmp_path)
    assert [entry.decision.reason for entry in chain.read(ledger).entries] == ["quicker"]
