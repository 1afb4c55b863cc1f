"""The folder of a failure log: what is somebody else's stays, and an earlier log is there until the new one is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import failing_export
from tracemark.durable import lock
from tracemark.errors import LockedError, UsageError

from .conftest import Shop
from .failed_runs import clusters, content, export, failed, manifest, reject, rows, shop_of_failures


@pytest.fixture
def failures(shop: Shop) -> Shop:
    return shop_of_failures(shop)


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

    def full(source: Path, target: Path, **options: Any) -> Any:
        if target.name == ".quarantine.jsonl.tmp":
            raise OSError(28, "No space left on device")
        return whole(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(OSError, match="No space"):
            export(failures)
        assert content(folder) == before
        with pytest.raises(OSError, match="No space"):
            export(failures, "another")
    # a folder without a manifest would be somebody else's
    assert manifest(failures.root / "another")["complete"] is False
    export(failures)
    assert len(rows(folder)) == 6
    export(failures, "another")
    assert content(failures.root / "another") == content(folder)


def test_a_log_that_was_cut_short_says_so_and_is_replaced(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    whole = Path.rename

    def dies(path: Path, target: Path) -> Path:
        if path.name == ".failures.jsonl.tmp":
            raise KeyboardInterrupt
        return whole(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            export(failures)
    assert manifest(folder)["complete"] is False
    (folder / ".manifest.json.abc.tmp").write_bytes(b"{")
    kept = failures.root / "kept"
    kept.mkdir()
    (kept / "notes.md").write_text("mine")
    (folder / ".candidates.tmp").symlink_to(kept)
    export(failures)
    assert content(folder) == before
    assert (kept / "notes.md").read_text() == "mine"


def test_two_logs_are_never_put_in_their_place_at_once(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    before = content(failures.root / "failures")
    failures.ingest([failed("f-9", "Error: order o-9 is locked")], name="one-more")
    monkeypatch.setenv("TRACEMARK_LOCK_WAIT", "0")
    with lock(failures.root / ".tracemark" / "failures.lock"), pytest.raises(LockedError):
        export(failures)
    assert content(failures.root / "failures") == before
    export(failures)
    assert len(rows(failures.root / "failures")) == 6


def test_what_came_into_the_folder_meanwhile_is_never_replaced(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    ours = failing_export._require_no_leak

    def meanwhile(*asked: Any) -> None:
        (folder / "clusters" / "notes.md").write_text("mine")
        ours(*asked)

    monkeypatch.setattr(failing_export, "_require_no_leak", meanwhile)
    with pytest.raises(UsageError, match=r"clusters/notes\.md"):
        export(failures)
    assert (folder / "clusters" / "notes.md").read_text() == "mine"
    assert manifest(folder)["complete"] is True
