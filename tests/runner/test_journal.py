"""The file that a run writes while it happens."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tracemark.durable import is_locked
from tracemark.errors import IrregularFileError, TracemarkError, UsageError
from tracemark.runner.journal import Journal, claim, free_path


def test_each_event_is_a_canonical_line_as_soon_as_it_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "batch" / "x.journal.jsonl")
    journal.write({"event": "b", "a": 1})
    assert journal.path.read_bytes() == b'{"a":1,"event":"b"}\n'
    journal.write({"event": "end"})
    assert journal.path.read_bytes().endswith(b'\n{"event":"end"}\n')
    journal.close()


def test_it_is_locked_from_its_creation_until_it_is_closed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.journal.jsonl")
    assert is_locked(journal.path)
    journal.close()
    journal.close()
    assert not is_locked(journal.path)


def test_a_pipe_of_its_name_is_never_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.journal.jsonl")
    with pytest.raises(IrregularFileError, match="it is a pipe"):
        Journal(tmp_path / "x.journal.jsonl")


@pytest.mark.parametrize("closed", [True, False])
def test_another_journal_is_never_replaced(tmp_path: Path, closed: bool) -> None:
    first = Journal(tmp_path / "x.journal.jsonl")
    first.write({"event": "start"})
    if closed:
        first.close()
    with pytest.raises(UsageError, match="exists"):
        Journal(first.path)
    assert first.path.read_bytes() == b'{"event":"start"}\n'
    first.close()


def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "x.journal.jsonl")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, data[:4])
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space"):
            journal.write({"event": "step"})
    with pytest.raises(TracemarkError, match="broken"):
        journal.write({"event": "step"})
    assert journal.path.read_bytes() == b'{"ev'
    journal.close()


def test_a_write_that_the_system_takes_half_of_is_an_error_and_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "x.journal.jsonl")
    journal.write({"event": "start"})
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[: len(data) // 2]))
        with pytest.raises(TracemarkError, match="whole") as caught:
            journal.write({"event": "step"})
        assert caught.value.hint
    with pytest.raises(TracemarkError, match="broken"):
        journal.write({"event": "step"})
    journal.close()
    assert journal.path.read_bytes() == b'{"event":"start"}\n{"event"'


def test_it_is_durable_once_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "batch" / "x.journal.jsonl")
    journal.write({"event": "start"})
    real, synced = os.fsync, []

    def sync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    journal.close()
    assert synced == [journal.path.resolve(), journal.path.parent.resolve()]


def test_threads_take_turns(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.journal.jsonl")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.write({"event": "step", "number": number}), range(400)))
    journal.close()
    numbers = [json.loads(line)["number"] for line in journal.path.read_bytes().splitlines()]
    assert sorted(numbers) == list(range(400))


def test_what_is_no_json_is_refused_and_breaks_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.journal.jsonl")
    with pytest.raises(UsageError, match="no JSON"):
        journal.write({"event": {1, 2}})
    journal.write({"event": "step"})
    journal.close()
    assert journal.path.read_bytes() == b'{"event":"step"}\n'


def test_names_come_from_task_and_attempt(tmp_path: Path) -> None:
    assert free_path(tmp_path, None, {"task": "t", "attempt": 3}).name == "t-3.journal.jsonl"
    assert free_path(tmp_path, None, {}).name == "run-0.journal.jsonl"
    assert free_path(tmp_path, None, {"task": "…"}).name == "run-0.journal.jsonl"
    assert len(free_path(tmp_path, None, {"task": "x" * 500}).name) < 200


def test_many_that_claim_at_once_get_a_journal_each(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        journals = list(pool.map(lambda _: claim(tmp_path, {"task": "t"}), range(24)))
    numbers = ["t-0", *(f"t-0-{number}" for number in range(2, 25))]
    assert {journal.path.name.removesuffix(".journal.jsonl") for journal in journals} == set(numbers)
    for journal in journals:
        journal.close()


def test_a_journal_that_is_there_is_not_touched_by_whoever_looks_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "t-0.journal.jsonl").touch()
    with closing(claim(tmp_path, {"task": "t"})) as journal:
        assert journal.path.name == "t-0-2.journal.jsonl"
