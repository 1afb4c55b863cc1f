"""Whatever a corpus has become, no command ends with a code that its help page does not list."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tracemark import durable
from tracemark.cli.command_table import COMMANDS, exits
from tracemark.cli.main import run

from .test_exit_codes import first_trace, pattern, pin_more_than_there_is, segment

__all__ = ["pattern"]

ARGUMENTS: dict[str, list[str]] = {
    "init": ["init", "."],
    "harness list": ["harness", "list"],
    "harness show": ["harness", "show", "desk_a"],
    "harness diff": ["harness", "diff", "desk_a", "desk_a"],
    "harness match": ["harness", "match", "TRACE"],
    "harness check": ["harness", "check"],
    "harness freeze": ["harness", "freeze", "desk_a", "--as", "desk_c"],
    "harness accept": ["harness", "accept", "desk_a", "--reason", "again"],
    "harness impact": ["harness", "impact", "desk_a", "desk_b"],
    "harness equivalent": ["harness", "equivalent", "desk_a", "desk_b", "--reason", "alike", "--force"],
    "ingest": ["ingest", "inbox/first", "--harness", "desk_a"],
    "traces list": ["traces", "list"],
    "traces show": ["traces", "show", "TRACE"],
    "traces find": ["traces", "find", "please"],
    "audit": ["audit", "TRACE"],
    "export atif": ["export", "atif", "--out", "exports/atif"],
    "export sft": ["export", "sft", "--out", "exports/sft"],
    "plan": ["plan"],
    "failures list": ["failures", "list"],
    "failures show": ["failures", "show", "TRACE"],
    "failures export": ["failures", "export", "--out", "failures"],
    "gate harness": ["gate", "harness", "--candidate", "desk_b", "--model", "m", "--install", "--dry-run"],
    "gate model": ["gate", "model", "--candidate", "m"],
    "gate attribute": ["gate", "attribute", "--harness", "desk_b", "--model", "m"],
    "gate freeze": ["gate", "freeze", "--reason", "the set"],
    "gate log": ["gate", "log"],
    "gate rollback": ["gate", "rollback", "--to", "previous", "--reason", "worse in use"],
    "model accept": ["model", "accept", "m", "--reason", "the first"],
    "check": ["check"],
    "reindex": ["reindex"],
    "retract": ["retract", "TRACE", "--reason", "mistake"],
    "reinstate": ["reinstate", "TRACE", "--reason", "mistake"],
    "stamp": ["stamp", "TRACE", "--harness", "desk_a", "--reason", "known"],
    "pipeline dvcfile": ["pipeline", "dvcfile"],
    "pipeline plots": ["pipeline", "plots", "reports/gates/harness-x.json", "--out", "reports/gates/plots"],
}
"""For each command one call of it that does its work in a sound corpus."""


def sound(root: Path) -> None:
    pass


def ledger_that_is_no_ledger(root: Path) -> None:
    (root / "ledger.jsonl").write_text("garbage\n")


def ledger_of_a_newer_program(root: Path) -> None:
    text = (root / "ledger.jsonl").read_text()
    (root / "ledger.jsonl").write_text(text.replace("tracemark/ledger/1", "tracemark/ledger/9"))


def ledger_that_is_a_folder(root: Path) -> None:
    (root / "ledger.jsonl").unlink()
    (root / "ledger.jsonl").mkdir()


def ledger_that_was_cut(root: Path) -> None:
    (root / "ledger.jsonl").write_bytes((root / "ledger.jsonl").read_bytes()[:-9])


def parameters_that_are_none(root: Path) -> None:
    (root / "params.yaml").write_text("[")


def store_of_a_newer_program(root: Path) -> None:
    (root / "traces" / "STORE").write_text('{"format": "tracemark/store/9"}\n')


def store_that_names_no_format(root: Path) -> None:
    (root / "traces" / "STORE").write_text("{}")


def no_store(root: Path) -> None:
    shutil.rmtree(root / "traces")


def segment_that_was_changed(root: Path) -> None:
    data = segment(root).read_bytes()
    segment(root).write_bytes(data[:16] + bytes(byte ^ 0xFF for byte in data[16:]))


def segment_that_is_a_pipe(root: Path) -> None:
    path = segment(root)
    path.unlink()
    os.mkfifo(path)


def snapshot_that_was_cut(root: Path) -> None:
    for path in (root / "traces" / "harnesses").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    shutil.rmtree(root / "harness_versions" / "desk_a")


def snapshot_of_a_newer_program(root: Path) -> None:
    for path in (root / "traces" / "harnesses").iterdir():
        path.write_text('{"format": "tracemark/harness-snapshot/9"}\n')
    shutil.rmtree(root / "harness_versions" / "desk_a")


def no_snapshot(root: Path) -> None:
    shutil.rmtree(root / "traces" / "harnesses")
    shutil.rmtree(root / "harness_versions" / "desk_a")


def version_that_is_broken(root: Path) -> None:
    (root / "harness_versions" / "desk_a" / "harness.yaml").write_text("nothing: 1\n")


def catalogue_that_is_damaged(root: Path) -> None:
    (root / ".tracemark" / "catalogue.db").write_bytes(b"SQLite format 3\0" + b"x" * 9000)


def data_that_is_not_pulled(root: Path) -> None:
    pin_more_than_there_is(root)


def pins_that_cannot_be_read(root: Path) -> None:
    (root / "dvc.lock").write_text("[")


def temporaries_that_are_a_link(root: Path) -> None:
    shutil.rmtree(root / ".tracemark" / "tmp", ignore_errors=True)
    (root / ".tracemark" / "tmp").symlink_to(root)


STATES: list[Callable[[Path], None]] = [
    sound,
    ledger_that_is_no_ledger,
    ledger_of_a_newer_program,
    ledger_that_is_a_folder,
    ledger_that_was_cut,
    parameters_that_are_none,
    store_of_a_newer_program,
    store_that_names_no_format,
    no_store,
    segment_that_was_changed,
    segment_that_is_a_pipe,
    snapshot_that_was_cut,
    snapshot_of_a_newer_program,
    no_snapshot,
    version_that_is_broken,
    catalogue_that_is_damaged,
    data_that_is_not_pulled,
    pins_that_cannot_be_read,
    temporaries_that_are_a_link,
]
LOCKS = ["ledger.lock", "decisions.lock", "tmp.lock", "locks/catch-up", "locks/catalogue"]


def test_every_command_is_called() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)


@pytest.fixture(scope="module")
def decided(pattern: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A corpus with an accepted harness and another one, and the id of one of the first one's traces."""
    root = tmp_path_factory.mktemp("decided") / "corpus"
    shutil.copytree(pattern, root)
    other = root / "harness_versions" / "desk_b"
    shutil.copytree(root / "harness_versions" / "desk_a", other)
    (other / "harness.yaml").write_text((other / "harness.yaml").read_text().replace("desk_a", "desk_b"))
    (other / "system.txt").write_text((other / "system.txt").read_text() + "Be brief.\n")
    before = Path.cwd()
    os.chdir(root)
    try:
        assert run(["harness", "accept", "desk_a", "--reason", "first"]) == 0
        return root, first_trace()
    finally:
        os.chdir(before)


def unlisted(decided: tuple[Path, str], folder: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> dict[str, int]:
    """Return the commands that end with a code that they do not list in a corpus of that state, with the code."""
    found = {}
    for name, arguments in ARGUMENTS.items():
        root = folder / name.replace(" ", "-")
        shutil.copytree(decided[0], root)
        monkeypatch.chdir(root)
        call = [decided[1] if one == "TRACE" else one for one in arguments]
        if state in LOCKS:
            (root / ".tracemark" / "locks").mkdir(parents=True, exist_ok=True)
            if "catalogue" in state or "catch-up" in state:
                for path in (root / ".tracemark").glob("catalogue.db*"):
                    path.unlink()
            with durable.lock(root / ".tracemark" / state):
                code = run(call)
        else:
            next(one for one in STATES if one.__name__ == state)(root)
            code = run(call)
        if code not in exits(name) or code == 70:
            found[name] = code
    return found


@pytest.mark.parametrize("state", [*(one.__name__ for one in STATES), *LOCKS])
def test_no_command_ends_with_a_code_that_it_does_not_list(
    decided: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv(durable.LOCK_WAIT, "0")
    assert unlisted(decided, tmp_path, monkeypatch, state) == {}
