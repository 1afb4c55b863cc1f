from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand

from tracemark import __version__, errors
from tracemark.cli import app, main
from tracemark.cli.main import run
from tracemark.errors import TracemarkError

PROGRAM = Path(sys.executable).parent / "tracemark"
ERRORS = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, TracemarkError)]


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make `tracemark check` end with an exception."""

    def arrange(error: BaseException) -> None:
        def command(output: str = typer.Option("table")) -> int:
            raise error

        def load(path: str) -> TyperCommand:
            program = typer.Typer(rich_markup_mode=None, add_completion=False)
            program.command("check")(command)
            loaded = typer.main.get_command(program)
            assert isinstance(loaded, TyperCommand)
            return loaded

        monkeypatch.setattr(app, "load", load)

    return arrange


@pytest.mark.parametrize("error", [e for e in ERRORS if e.exit_code != 70], ids=lambda e: e.__name__)
def test_each_error_ends_with_its_code_in_words_and_as_data(
    error: type[TracemarkError], ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(error("what happened", where="there", hint="do this"))
    assert run(["check", "--output", "json"]) == error.exit_code
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "error": error.__name__,
        "exit_code": error.exit_code,
        "message": "what happened",
        "where": "there",
        "hint": "do this",
    }
    assert err == "error: what happened\n  at: there\nhint: do this\n"


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), TracemarkError("odd"), OSError(errno.EBADF, "odd")])
def test_what_nobody_expected_is_a_bug_with_a_traceback(
    error: Exception, ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(error)
    assert run(["check", "--output=jsonl"]) == 70
    out, err = capsys.readouterr()
    assert json.loads(out)["exit_code"] == 70
    assert "a bug in tracemark" in err
    assert "Traceback" in err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.ENOENT])
def test_what_the_system_refuses_is_no_bug(
    number: int, ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(OSError(number, os.strerror(number), "traces/segments"))
    assert run(["check"]) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"error: the system refused: {os.strerror(number)}\n  at: traces/segments\nhint: ")


@pytest.mark.parametrize(
    "case",
    [
        ([], "corpus/traces/segments/a", "traces/segments/a"),
        ([], "corpus/inbox/b", "inbox/b"),
        (["--root", "../../other"], "corpus/inbox/b", "b"),
        (["--root", "../../other"], "other/params.yaml", "params.yaml"),
        (["--root", "{}/other"], "other/params.yaml", "params.yaml"),
        (["--root={}/other"], "other/params.yaml", "params.yaml"),
        ([], "other/params.yaml", "{}/other/params.yaml"),
    ],
)
def test_what_the_system_refuses_is_named_from_the_corpus_or_the_current_folder(
    case: tuple[list[str], str, str],
    tmp_path: Path,
    ends_with: Callable[[BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root, place, shown = case
    (tmp_path / "other").mkdir()
    (tmp_path / "corpus" / "inbox").mkdir(parents=True)
    (tmp_path / "corpus" / "params.yaml").touch()
    monkeypatch.chdir(tmp_path / "corpus" / "inbox")
    ends_with(OSError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / place)))
    assert run([*[word.format(tmp_path) for word in root], "check", "--output", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["where"] == shown.format(tmp_path)


def test_a_path_is_named_whole_where_the_current_folder_is_gone(
    tmp_path: Path,
    ends_with: Callable[[BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ends_with(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(gone / "a")))
    assert run(["check"]) == 2
    assert f"at: {gone}/a" in capsys.readouterr().err


def test_a_rename_between_filesystems_names_both_ends(
    ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(OSError(errno.EXDEV, os.strerror(errno.EXDEV), ".tracemark/tmp/a", None, "traces/segments/a"))
    assert run(["check", "--output", "json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["where"] == ".tracemark/tmp/a → traces/segments/a"
    assert "one filesystem" in answer["hint"]


def test_an_interrupt_ends_with_130(
    ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(KeyboardInterrupt())
    assert run(["check"]) == main.INTERRUPTED
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["--bogus"],
        ["traces", "bogus"],
        ["audit"],
        ["retract", "abc"],
        ["traces", "list", "--limit", "none"],
        ["--root", "no such folder", "check"],
        ["check", "--output", "xml"],
        ["check", "superfluous"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "--help" in err


@pytest.mark.parametrize(
    "arguments",
    [["ingest", ""], ["audit", ""], ["--root", "", "check"], ["--root=", "check"], ["traces", "find", ""]],
)
def test_an_empty_argument_is_refused_and_is_no_current_folder(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert "an argument is empty" in capsys.readouterr().err


def test_an_empty_reason_is_refused_in_words_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for reason in (["--reason", ""], ["--reason="], ["--reason", " "]):
        assert run(["--root", str(tmp_path), "retract", "abcdef", *reason]) == 2
        assert "a decision needs a reason" in capsys.readouterr().err


def test_a_usage_error_is_data_where_data_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["traces", "list", "--bogus", "--output", "json"]) == 2
    out, _ = capsys.readouterr()
    assert json.loads(out) == {
        "error": "UsageError",
        "exit_code": 2,
        "message": "No such option: --bogus",
        "where": "tracemark traces list",
        "hint": "tracemark traces list --help",
    }


@pytest.mark.parametrize("before", [[], ["--root", "."]])
def test_too_few_values_are_an_error_of_their_command(before: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*before, "harness", "equivalent", "one", "--reason", "same"]) == 2
    assert "hint: tracemark harness equivalent --help" in capsys.readouterr().err


def test_control_characters_in_arguments_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["\x1b[31mbogus"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_typing_mistake_is_answered_with_the_command_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ingset"]) == 2
    assert "'ingest'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["harness"]], ids=["program", "group"])
def test_without_a_command_the_help_page_is_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Commands:" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"tracemark {__version__}\n"


def test_the_installed_program_answers_with_codes_data_and_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "traces", "list", "--output", "json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 10
    assert json.loads(done.stdout)["error"] == "NoStoreError"
    assert "Traceback" not in done.stderr


def test_the_package_runs_as_a_module_under_the_same_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tracemark", "traces", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lstrip().startswith("Usage: tracemark traces ")


def test_a_reader_that_goes_away_ends_the_program_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.run(
        [PROGRAM, "--version"], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False
    )
    os.close(writer)
    assert (child.returncode, child.stderr) == (main.READER_GONE, "")


@pytest.mark.parametrize("arguments", ["check", "traces list --output json", "traces list --output json --status x"])
@pytest.mark.parametrize("stdout", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_an_error_in_words(tmp_path: Path, arguments: str, stdout: str) -> None:
    assert run(["init", str(tmp_path)]) == 0
    shell = f"{PROGRAM} {arguments} {stdout}"
    done = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "error: " in done.stderr


def test_closed_words_leave_the_answer(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path)]) == 0
    for stderr in ("2>&-", "2>/dev/full"):
        done = subprocess.run(
            f"{PROGRAM} check --output json {stderr}", shell=True, cwd=tmp_path, capture_output=True, check=False
        )
        assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


def test_output_survives_an_environment_that_knows_only_ascii(tmp_path: Path) -> None:
    child = subprocess.run(
        [PROGRAM, "traces", "list"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        check=False,
    )
    assert child.returncode == 10
    assert child.stderr.isascii()


def test_an_interrupt_while_the_program_is_loaded_ends_with_130_too() -> None:
    script = """
import runpy, sys
class Interrupt:
    def find_spec(self, name, *rest):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
runpy.run_module("tracemark", run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (main.INTERRUPTED, "", "interrupted\n")
