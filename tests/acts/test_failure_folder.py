"""The folder of a failure log: what is somebody else's stays, and an earlier log is there until the new one is."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import failure_export, failure_folder, folder_swap
from tracemark.errors import UsageError
from tracemark.model.failure_log import FailureLog

from .conftest import Shop
from .failed_runs import clusters, content, export, failed, manifest, reject, rows


def test_an_earlier_log_is_replaced(failures: Shop) -> None:
    reject(failures, "desk_b")
    export(failures)
    failures.enter("accept", {"harness": failures.fingerprint("desk_b"), "label": "desk_b"})
    failures.accept("desk_b")
    export(failures)
    folder = failures.root / "failures"
    assert not (folder / "candidates").exists()
    assert [one["traces"] for one in clusters(folder)] == [2]


@pytest.mark.parametrize("name", ["notes.txt", "clusters/notes.txt", "clusters/deep/er", "candidates/x/failures.jsonl"])
def test_what_is_somebody_elses_is_never_replaced(failures: Shop, name: str) -> None:
    export(failures)
    strange = failures.root / "failures" / name
    strange.parent.mkdir(parents=True, exist_ok=True)
    strange.write_text("mine")
    before = content(failures.root / "failures")
    with pytest.raises(UsageError, match="no part of a failure log"):
        export(failures)
    assert content(failures.root / "failures") == before


def test_a_folder_that_is_no_log_is_refused(failures: Shop) -> None:
    other = failures.root / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"format": "something/1"}')
    (other / "failures.jsonl").write_text("mine\n")
    with pytest.raises(UsageError, match=r"failures\.jsonl, manifest\.json"):
        export(failures, "other")
    file = failures.root / "file"
    file.write_text("mine")
    with pytest.raises(UsageError, match="not a folder"):
        export(failures, "file")
    with pytest.raises(UsageError, match="cannot lie in"):
        export(failures, "traces/failures")
    link = failures.root / "log"
    export(failures, "log")
    (link / "clusters").rename(failures.root / "away")
    (link / "clusters").symlink_to(failures.root / "away")
    with pytest.raises(UsageError, match="clusters"):
        export(failures, "log")


def test_a_log_for_which_there_is_no_room_leaves_the_earlier_one_as_it_was(
    failures: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    failures.ingest([failed("f-9", "Error: order o-9 is locked")], name="one-more")
    whole = shutil.copyfile

    def full(source: str, target: str, **options: Any) -> Any:
        if Path(target).name == "quarantine.jsonl":
            raise OSError(28, "No space left on device")
        return whole(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(OSError, match="No space"):
            export(failures)
        assert content(folder) == before
        with pytest.raises(OSError, match="No space"):
            export(failures, "another")
    assert not (failures.root / "another").exists()
    assert not list(failures.root.glob(".*.tmp"))
    export(failures)
    assert len(rows(folder)) == 6
    export(failures, "another")
    assert content(failures.root / "another") == content(folder)


def test_a_log_is_replaced_as_a_whole(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    failures.ingest([failed("f-9", "Error: order o-9 is locked")], name="one-more")
    real, seen = folder_swap._exchanged, []

    def looked_at(new: Path, place: Path) -> bool:
        seen.extend([content(place), content(new)])
        return real(new, place)

    with monkeypatch.context() as patch:
        patch.setattr(folder_swap, "_exchanged", looked_at)
        export(failures)
    assert seen == [before, content(folder)]
    assert len(rows(folder)) == 6


def test_a_log_is_written_where_a_link_leads(failures: Shop) -> None:
    (failures.root / "far").mkdir()
    (failures.root / "log").symlink_to("far/log")
    for _ in range(2):
        export(failures, "log")
        assert (failures.root / "log").is_symlink()
        assert manifest(failures.root / "far" / "log")["logs"]
    assert sorted(path.name for path in (failures.root / "far").iterdir()) == ["log"]


def test_a_folder_that_cannot_be_replaced_is_refused(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    before = content(failures.root / "failures")
    with monkeypatch.context() as patch:
        patch.chdir(failures.root / "failures" / "clusters")
        with pytest.raises(UsageError, match="runs in that folder"):
            export(failures)
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "ismount", lambda path: Path(path).name == "failures")
        with pytest.raises(UsageError, match="mounted"):
            export(failures)
    with monkeypatch.context() as patch:

        def fixed(one: Path, other: Path) -> bool:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        patch.setattr(folder_swap, "_exchanged", fixed)
        with pytest.raises(UsageError, match="cannot be replaced: Invalid cross-device link"):
            export(failures)
    assert content(failures.root / "failures") == before
    assert not list(failures.root.glob(".failures*"))


def test_what_came_into_the_folder_meanwhile_is_never_replaced(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    ours = failure_export._require_no_leak

    def meanwhile(*asked: Any) -> None:
        (folder / "clusters" / "notes.md").write_text("mine")
        ours(*asked)

    monkeypatch.setattr(failure_export, "_require_no_leak", meanwhile)
    with pytest.raises(UsageError, match=r"clusters/notes\.md"):
        export(failures)
    assert (folder / "clusters" / "notes.md").read_text() == "mine"


def test_what_comes_in_while_the_log_is_put_in_its_place_is_kept(
    failures: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    real = folder_swap._exchanged

    def meanwhile(new: Path, place: Path) -> bool:
        (folder / "clusters" / "notes.md").write_text("mine")
        return real(new, place)

    monkeypatch.setattr(folder_swap, "_exchanged", meanwhile)
    with pytest.raises(UsageError, match=r"in its place, but .* clusters/notes\.md") as refused:
        export(failures)
    (kept,) = failures.root.glob("failures.kept-*")
    assert kept.name in str(refused.value.hint)
    assert content(kept / "new") == before | {"clusters/notes.md": b"mine"}
    assert content(folder) == before


def test_what_a_killed_export_kept_is_told_by_the_next_one(failures: Shop) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    work = failures.root / ".failures.somebody.tmp"
    shutil.copytree(folder, work / "new")
    (work / "new" / "clusters" / "notes.md").write_text("mine")
    (work / "lock").touch()
    with pytest.raises(UsageError, match=r"in its place, but .*: clusters/notes\.md") as refused:
        export(failures)
    assert "failures.kept-somebody" in str(refused.value.hint)
    assert content(failures.root / "failures.kept-somebody" / "new") == before | {"clusters/notes.md": b"mine"}
    assert content(folder) == before
    export(failures)


def test_what_an_export_that_is_killed_has_half_written_is_its_own(failures: Shop) -> None:
    export(failures)
    folder = failures.root / "failures"
    child = os.fork()
    if not child:

        def die(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "os.rename" and "manifest.json" in str(arguments[0]):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        with suppress(BaseException):
            failure_folder.put(folder, folder, FailureLog.model_construct())
        os._exit(0)
    os.waitpid(child, 0)
    export(failures)
    assert sorted(path.name for path in failures.root.glob("*failures*")) == ["failures"]
