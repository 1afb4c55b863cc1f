"""What is kept of an importer's failure says what failed, and no place on the machine on which it did."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tracemark.importers.atif import AtifImporter
from tracemark.importers.guard import caught, worded

from .conftest import Document, Inbox
from .test_source_faults import failing


def said(fail: Callable[[], object]) -> str:
    faults: list[Exception] = []
    with caught(faults):
        fail()
    return worded(faults[0])


def raising(error: Exception) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def test_a_file_that_is_missing_is_not_named(tmp_path: Path) -> None:
    text = said((tmp_path / "away.json").read_text)
    assert text.startswith("FileNotFoundError: No such file or directory (")
    assert "away" not in text


def test_a_program_that_fails_is_not_named_by_its_path(tmp_path: Path) -> None:
    program = tmp_path / "a program"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    text = said(lambda: subprocess.run([str(program)], check=True))
    assert text.startswith("CalledProcessError: Command '['… (subprocess.py, line ")


@pytest.mark.parametrize(
    "message",
    [
        "cannot import name 'x' from 'y' ({})",
        "no table in {}",
        "{}: not a table",
        "PosixPath('{}') is no table",
        "file://{} is no table",
        "path={},line=3",
        "x" * 150 + " {}",
        "x" * 197 + " {}",
    ],
)
def test_a_message_ends_where_it_quotes_a_path_of_this_machine(tmp_path: Path, message: str) -> None:
    place = tmp_path / "Some Body" / "runs.json"
    for error in (ValueError, ImportError, OSError):
        text = said(raising(error(message.format(place))))
        assert text.startswith(f"{error.__name__}: {message.partition('{}')[0]}… (test_guard.py, line ")
    # the second argument of an error of the operating system is anybody's text as well
    assert "Body" not in said(raising(OSError(5, message.format(place))))


@pytest.mark.parametrize(
    "message",
    [
        "unhashable type: 'list'",
        "/steps/3/message is no text",
        "1/0",
        "and/or, inbox/tmp/runs.json, ~/tmp, ../tmp",
        "https://example.org/tmp/x",
        "a / b",
    ],
)
def test_a_message_without_one_is_kept_whole(message: str) -> None:
    assert said(raising(ValueError(message))).startswith(f"ValueError: {message} (test_guard.py, line ")


def test_of_a_long_message_the_beginning_is_kept() -> None:
    assert said(raising(ValueError("x" * 5_000))).startswith(f"ValueError: {'x' * 200} (test_guard.py, line ")


def test_what_is_refused_for_a_failure_holds_no_path(
    inbox: Inbox, document: Callable[..., Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = FileNotFoundError(2, "No such file or directory", str(tmp_path / "table.json"))
    monkeypatch.setattr(AtifImporter, "_trace", failing(missing))
    inbox.write("a.json", document(2))
    (refused,) = inbox.read().refused
    assert refused.code == "importer-failed"
    assert refused.message.startswith("the importer atif failed: FileNotFoundError: No such file or directory (")
    assert str(tmp_path) not in refused.message
