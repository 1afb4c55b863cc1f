"""Every row of the crash table: a process is killed there, the store opened again, checked, and the work repeated."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracemark import digest
from tracemark.durable import CrashPoint
from tracemark.store.check import check
from tracemark.store.layout import Layout
from tracemark.store.selection import Selection
from tracemark.store.store import Store

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format" / "store.md"
OF_THE_LEDGER = {CrashPoint.LEDGER_WRITTEN, CrashPoint.PARAMS_WRITTEN}
OF_A_COMMIT = [point for point in CrashPoint if point not in OF_THE_LEDGER]
UNCOMMITTED = {CrashPoint.TEMPORARY_WRITTEN, CrashPoint.TEMPORARY_SYNCED}

COMMIT_TRACES = """
import sys
from pathlib import Path
from tracemark.store.draft import DraftWriter
from tracemark.store.row import project_line
from tracemark.store.store import Store

with Store.open(Path(sys.argv[1]), create=True) as store, store.workspace() as folder:
    writer = DraftWriter(folder, "0")
    for line in Path(sys.argv[2]).read_bytes().splitlines():
        writer.add(line, project_line(line))
    for draft in writer.close():
        store.commit_segment(draft)
"""
COMMIT_ANNOTATIONS = """
import sys
from pathlib import Path
from tracemark import digest
from tracemark.store.store import Store

lines = Path(sys.argv[2]).read_bytes().splitlines()
with Store.open(Path(sys.argv[1]), create=True) as store:
    store.commit_annotations("labels", [digest.load_canonical(line) for line in lines])
"""

COMMIT_SNAPSHOT = """
import sys
from pathlib import Path
from tracemark import digest
from tracemark.store.store import Store

with Store.open(Path(sys.argv[1]), create=True) as store:
    store.commit_harness("tm1:" + "a" * 64, digest.load_canonical(Path(sys.argv[2]).read_bytes()))
"""


def run(program: str, root: Path, lines: Path, crash_at: CrashPoint | None = None) -> int:
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    if crash_at is not None:
        environment["TRACEMARK_CRASH_AT"] = crash_at.value
    command = [sys.executable, "-c", program, str(root), str(lines)]
    return subprocess.run(command, env=environment, check=False, timeout=60).returncode


def answers(root: Path) -> tuple[object, ...]:
    with Store.open(root) as store:
        assert store.findings == []
        rows = [state.row for state in store.select(Selection())]
        return rows, store.corpus_digest(), [note.digest for note in store.annotations()], store.layout.data_files()


def test_the_crash_table_of_the_page_has_a_row_for_each_crash_point_in_order() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("### What a crash leaves")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == [point.value for point in CrashPoint]


@pytest.mark.parametrize("point", OF_A_COMMIT)
def test_a_commit_of_traces_killed_anywhere_is_whole_or_absent_and_can_be_repeated(
    make, tmp_path: Path, point: CrashPoint
) -> None:
    line = make.trace(1, make.stamp("a"))
    (tmp_path / "lines").write_bytes(line + b"\n")
    assert run(COMMIT_TRACES, tmp_path / "whole", tmp_path / "lines") == 0
    root = tmp_path / "corpus"

    assert run(COMMIT_TRACES, root, tmp_path / "lines", point) == -signal.SIGKILL

    # the traces name a harness that this test stores no snapshot of
    assert {f.code for f in check(Layout(root)).findings} <= {"snapshot-missing", "stored-not-indexed"}
    with Store.open(root) as store:
        assert store.findings == []
        there = make.id_of(line) in store.lookup([make.id_of(line)])
    assert there == (point not in UNCOMMITTED)
    assert [f.code for f in check(Layout(root)).findings if f.code != "snapshot-missing"] == []

    assert run(COMMIT_TRACES, root, tmp_path / "lines") == 0
    assert answers(root) == answers(tmp_path / "whole")
    assert list(Layout(root).temporaries.iterdir()) == []


@pytest.mark.parametrize("point", OF_A_COMMIT)
def test_a_commit_of_annotations_killed_anywhere_is_whole_or_absent_and_can_be_repeated(
    make, tmp_path: Path, point: CrashPoint
) -> None:
    (tmp_path / "lines").write_bytes(digest.canonical(make.annotation("labels", None, {"x": 1})) + b"\n")
    assert run(COMMIT_ANNOTATIONS, tmp_path / "whole", tmp_path / "lines") == 0
    root = tmp_path / "corpus"

    assert run(COMMIT_ANNOTATIONS, root, tmp_path / "lines", point) == -signal.SIGKILL

    with Store.open(root) as store:
        assert len(list(store.annotations("labels"))) == (point not in UNCOMMITTED)
    assert check(Layout(root)).findings == ()
    assert run(COMMIT_ANNOTATIONS, root, tmp_path / "lines") == 0
    assert answers(root) == answers(tmp_path / "whole")


@pytest.mark.parametrize("point", [point for point in OF_A_COMMIT if point is not CrashPoint.PROJECTED])
def test_a_commit_of_a_snapshot_killed_anywhere_is_whole_or_absent_and_leaves_no_stranger_behind(
    tmp_path: Path, point: CrashPoint
) -> None:
    (tmp_path / "snapshot").write_bytes(b'{"texts":{"a":"b"}}')
    root = tmp_path / "corpus"
    layout = Layout(root)

    assert run(COMMIT_SNAPSHOT, root, tmp_path / "snapshot", point) == -signal.SIGKILL

    there = [path.read_bytes() for path in layout.harnesses.glob("*")] if layout.harnesses.exists() else []
    assert there == ([] if point in UNCOMMITTED else [b'{"texts":{"a":"b"}}\n'])
    Store.open(root).close()
    assert check(layout).findings == ()
    assert run(COMMIT_SNAPSHOT, root, tmp_path / "snapshot") == 0
    assert layout.snapshots() == ["tm1:" + "a" * 64]
    # the leftover of the dead writer goes when the next one needs a place
    with Store.open(root) as store, store.workspace() as folder:
        assert list(layout.temporaries.iterdir()) == [folder]


def test_two_writers_of_one_batch_at_once_store_it_once(make, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    (tmp_path / "lines").write_bytes(b"".join(make.trace(n) + b"\n" for n in range(300)))
    command = [sys.executable, "-c", COMMIT_TRACES, str(root), str(tmp_path / "lines")]
    writers = [subprocess.Popen(command) for _ in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert check(Layout(root)).findings == ()
    with Store.open(root) as store:
        assert store.counts() == {
            "traces": 300, "copies": 0, "annotations": 0, "refused": 0, "segments": 1, "harnesses": 0,
        }  # fmt: skip


def test_writers_of_overlapping_batches_at_once_lose_nothing_and_double_no_trace(make, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    writers = []
    for start in range(4):
        lines = tmp_path / f"lines{start}"
        lines.write_bytes(b"".join(make.trace(n) + b"\n" for n in range(start * 50, start * 50 + 100)))
        writers.append(subprocess.Popen([sys.executable, "-c", COMMIT_TRACES, str(root), str(lines)]))
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    assert check(Layout(root)).findings == ()
    with Store.open(root) as store:
        assert (store.counts()["traces"], store.counts()["copies"], store.counts()["segments"]) == (250, 150, 4)
        before = list(store.select(Selection()))
        store.reindex()
        assert list(store.select(Selection())) == before


@pytest.mark.parametrize("after", [1, 2])
def test_a_catalogue_that_is_being_replaced_never_loses_its_log_first(
    make, root: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A database without the log that completes it may be torn, and would pass for a current one."""
    with Store.open(root, create=True) as store, Store.open(root) as other:
        make.commit(store, make.trace(1), make.trace(2))
        catalogue = store.layout.catalogue
        assert Path(f"{catalogue}-wal").stat().st_size
        unlink, gone = Path.unlink, []

        def dying(path: Path, missing_ok: bool = False) -> None:
            if len(gone) == after:
                raise KeyboardInterrupt
            gone.append(path)
            unlink(path, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", dying)
        with pytest.raises(KeyboardInterrupt):
            store.reindex()
        monkeypatch.setattr(Path, "unlink", unlink)
        assert not catalogue.exists()
        assert other.counts()["traces"] == 2, "who has the old one open goes on with it"
    with Store.open(root) as store:
        assert store.counts()["traces"] == 2
        assert store.findings == []
    assert check(Layout(root)).findings == ()
