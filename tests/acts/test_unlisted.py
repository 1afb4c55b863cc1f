"""What the system does not let us read: `check` names it, with what helps, and goes on; no answer passes it over."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import decisions, export, health, ingest, traces
from tracemark.acts.corpus import open_store
from tracemark.errors import UsageError

from .conftest import CLOCK, Shop, document

NOBODY = 65534

CHILD = f"""
import codecs, importlib, os, pkgutil, sys
import tracemark
# what is imported later may lie where nobody else may read
for module in pkgutil.walk_packages(tracemark.__path__, "tracemark."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
codecs.lookup("utf-8-sig")
importlib.import_module("importlib.readers")
from tracemark.cli.main import run
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
sys.exit(run(sys.argv[1:]))
"""

FOLDERS = [
    "traces/segments",
    "traces/segments/fingerprint=none",
    "traces/harnesses",
    "traces/annotations",
    "traces/annotations/stamps",
    "traces/annotations/outcomes",
    "traces/refused",
]


def fill(shop: Shop) -> None:
    """Store something in every folder."""
    shop.ingest([document("t-0", reward=0.0), document("v-0")], None, "unnamed")
    shop.ingest([document("v-0")], "desk_a", "unnamed")
    (shop.root / "inbox" / "unnamed.jsonl").write_text("not JSON\n" + json.dumps(document("w-0")) + "\n")
    ingest.ingest(shop.root, [shop.root / "inbox" / "unnamed.jsonl"], ingest.IngestOptions())
    shop.accept()


@pytest.fixture
def shared(shop: Shop) -> Iterator[Path]:
    """The filled corpus, in a folder that every user may read, owned by one who is not root."""
    fill(shop)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "corpus"
        Path(name).chmod(0o755)
        shutil.copytree(shop.root, root)
        if os.geteuid() == 0:
            for path in (root, *root.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        yield root


def run(root: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command as a user to whom modes mean something; return its exit code, its data and its words."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        cwd=root,
        env={**os.environ, "TRACEMARK_WORKERS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def shut(path: Path) -> Iterator[None]:
    """Take every permission away for the time of a `with` block."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(mode)


def found_by_check(root: Path) -> tuple[int, dict[str, Any], str]:
    code, data, words = run(root, "check", "--output", "json")
    assert str(root) not in data + words
    assert "findings" in data, data + words
    return code, json.loads(data), words


@pytest.mark.parametrize("name", FOLDERS)
def test_check_names_a_folder_that_nobody_may_list_and_goes_on(shared: Path, name: str) -> None:
    whole = found_by_check(shared)[1]
    with shut(shared / name):
        code, report, _ = found_by_check(shared)
    found = [one for one in report["findings"] if one["code"] == "folder-unreadable"]
    assert [(one["where"], one["message"], one["hint"]) for one in found] == [
        (f"{name}/", "it cannot be listed: Permission denied", "check its permissions")
    ]
    assert code == 1
    assert {one["code"] for one in report["findings"]} <= {"folder-unreadable", "contested"}
    kept = {"traces/harnesses": "traces", "traces/segments": "harnesses"}.get(name, "harnesses")
    assert report[kept] == whole[kept] > 0


def test_check_names_a_store_file_that_nobody_may_read_and_goes_on(shared: Path) -> None:
    whole = found_by_check(shared)[1]
    with shut(shared / "traces" / "STORE"):
        code, report, _ = found_by_check(shared)
    found = report["findings"][0]
    assert code == 1
    assert (found["code"], found["where"]) == ("store-unreadable", "traces/STORE")
    assert (found["message"], found["hint"]) == ("it cannot be read: Permission denied", "check its permissions")
    assert {**report, "findings": report["findings"][1:]} == whole


@pytest.mark.parametrize("name", ["traces", ".tracemark", "harness_versions"])
def test_check_goes_on_where_a_whole_folder_is_shut(shared: Path, name: str) -> None:
    with shut(shared / name):
        code, report, _ = found_by_check(shared)
    said = [(one["code"], one["where"]) for one in report["findings"]]
    assert code == (0 if name == ".tracemark" else 1)
    assert {
        "traces": ("store-unreadable", "traces/STORE"),
        ".tracemark": ("catalogue-differs", "catalogue.db"),
        "harness_versions": ("folder-unreadable", "harness_versions/"),
    }[name] in said


@pytest.mark.parametrize("name", ["params.yaml", "ledger.jsonl", "harness_versions/desk_a/system.txt"])
def test_check_names_a_file_that_nobody_may_read(shared: Path, name: str) -> None:
    with shut(shared / name):
        code, report, _ = found_by_check(shared)
    assert code == 1
    assert any(one["where"].endswith(Path(name).name) for one in report["findings"])


@pytest.mark.parametrize("command", [["traces", "list"], ["export", "sft", "--out", "out"], ["reindex"]])
@pytest.mark.parametrize("name", ["traces/segments", "traces/annotations/stamps", "traces/STORE"])
def test_no_other_verb_answers_from_a_part_of_the_store(shared: Path, name: str, command: list[str]) -> None:
    with shut(shared / name):
        code, data, words = run(shared, *command)
    assert (code, data) == (2, "")
    assert "Permission denied" in words
    assert f"at: {name}" in words
    assert str(shared) not in words


@pytest.mark.parametrize("inside", ["segments/fingerprint=none", "annotations/stamps", "annotations/outcomes"])
@pytest.mark.parametrize("new", [False, True], ids=["indexed", "not indexed"])
def test_a_list_goes_on_where_nobody_may_read_one_file(shared: Path, inside: str, new: bool) -> None:
    folder = shared / "traces" / inside
    file = min(folder.iterdir())
    if new:
        (shared / ".tracemark" / "catalogue.db").unlink()
    with shut(file):
        code, data, words = run(shared, "traces", "list", "--output", "json")
    assert str(shared) not in data + words
    report = json.loads(data)
    assert len(report["traces"]) >= 5
    found = [one["where"] for one in report["findings"] if one["code"] == "file-damaged"]
    assert (code, found) in ((1, [f"traces/{inside}/{file.name}"]), (0, []))
    assert found or not new


@pytest.mark.parametrize("command", [["traces", "show"], ["audit"]])
def test_a_trace_whose_file_nobody_may_read_is_an_error_that_names_the_file(shared: Path, command: list[str]) -> None:
    trace = Shop(shared).ids()["w-0"]
    with open_store(shared) as store:
        name = store.state(trace).file
    for path in (shared / ".tracemark").rglob("*"):
        path.chmod(0o777)
    with shut(shared / "traces" / name):
        code, _, words = run(shared, *command, trace)
    assert code == 30
    assert f"at: traces/{name}" in words
    assert str(shared) not in words


@pytest.fixture
def settled(shared: Path) -> tuple[Path, str, str]:
    """A corpus in which a decision settles a trace whose segment nobody may read; the trace, and the segment."""
    shop = Shop(shared)
    trace = shop.ids()["w-0"]
    decisions.stamp(shared, [trace], "desk_a", "as the log of the desk says", CLOCK)
    with open_store(shared) as store:
        name = store.state(trace).file
    if os.geteuid() == 0:
        for path in (shared, *shared.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return shared, trace, name


@pytest.mark.parametrize(
    ("command", "rows"),
    [(["traces", "list"], "traces"), (["harness", "list"], "harnesses"), (["audit", "desk_a"], "exports")],
)
def test_lists_go_on_where_nobody_may_read_what_a_decision_is_held_to(
    settled: tuple[Path, str, str], command: list[str], rows: str
) -> None:
    root, trace, name = settled
    whole = json.loads(run(root, *command, "--output", "json")[1])
    with shut(root / "traces" / name):
        code, data, words = run(root, *command, "--output", "json")
    assert str(root) not in data + words
    report = json.loads(data)
    assert code == 1
    (found,) = report["findings"]
    assert (found["code"], found["where"]) == ("file-damaged", f"traces/{name}")
    assert found["message"].startswith("a stored file cannot be read: Permission denied: what settles the harness")
    assert trace[:12] in found["message"]
    assert len(report[rows]) == len(whole[rows])


@pytest.mark.parametrize("command", [["traces", "show"], ["audit"], ["export", "sft", "--out", "out"]])
def test_whoever_needs_the_trace_that_is_settled_learns_which_file_cannot_be_read(
    settled: tuple[Path, str, str], command: list[str]
) -> None:
    root, trace, name = settled
    with shut(root / "traces" / name):
        code, data, words = run(root, *command, *([] if command[0] == "export" else [trace]))
    assert (code, data) == (30, "")
    assert f"error: a stored file cannot be read: Permission denied\n  at: traces/{name}" in words
    assert str(root) not in words
    assert not (root / "out").exists()


def test_an_export_is_refused_where_nobody_may_read_a_segment_of_which_it_takes_rows(shared: Path) -> None:
    with open_store(shared) as store:
        name = store.state(Shop(shared).ids()["t-1"]).file
    with shut(shared / "traces" / name):
        code, data, words = run(shared, "export", "sft", "--out", "out")
    assert (code, data) == (30, "")
    assert f"at: traces/{name}" in words
    assert str(shared) not in words


def put(kind: str, path: Path) -> None:
    """Put something else in place of a folder."""
    shutil.rmtree(path)
    if kind == "file":
        path.touch()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
            bound.bind("s")
        path.with_name("s").rename(path)
    else:
        path.symlink_to({"link to nowhere": "nowhere", "link to itself": path.name}[kind])


@pytest.mark.parametrize("kind", ["file", "pipe", "socket", "link to nowhere", "link to itself"])
@pytest.mark.parametrize("name", FOLDERS)
def test_what_stands_in_place_of_a_folder_never_passes_for_an_empty_one(shop: Shop, name: str, kind: str) -> None:
    fill(shop)
    put(kind, shop.root / name)
    report = health.check(shop.root)
    found = [one for one in report.findings if one.code == "folder-unreadable"]
    assert [(one.where, one.hint) for one in found] == [
        (f"{name}/", "move what is in the way, then restore the folder")
    ]
    assert report.exit_code == 1
    assert "stranger-file" not in {one.code for one in report.findings}
    if name != "traces/harnesses":
        with pytest.raises(UsageError, match="it cannot be listed") as caught:
            traces.list_(shop.root, traces.TraceFilter())
        assert caught.value.where == f"{name}/"
        with pytest.raises(UsageError):
            export.sft(shop.root, shop.root / "exports" / "sft")


def test_a_link_in_place_of_a_partition_is_named_and_not_followed(shop: Shop) -> None:
    partition = min((shop.root / "traces" / "segments").glob("fingerprint=*"))
    aside = shop.root / "aside"
    partition.rename(aside)
    partition.symlink_to(aside)
    (found,) = [one for one in health.check(shop.root).findings if one.code == "folder-unreadable"]
    assert found.message == "it cannot be listed: it is a link, which is not followed"


def test_a_folder_that_is_missing_is_an_empty_one(shop: Shop) -> None:
    shutil.rmtree(shop.root / "traces" / "refused", ignore_errors=True)
    assert health.check(shop.root).findings == ()
