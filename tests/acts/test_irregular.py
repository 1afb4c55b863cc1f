"""A pipe in place of any file of a corpus or an export: named, never opened, and nothing waits for its other end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tracemark.cli.command_table import COMMANDS, exits
from tracemark.errors import TracemarkError
from tracemark.pipeline import dvcfile

from .conftest import Shop, document

TIMEOUT = 20

CHILD = """
import json, sys
from tracemark.cli.main import run
for command in json.loads(sys.argv[1]):
    print(json.dumps(command), file=sys.stderr, flush=True)
    print(json.dumps([command, run(command)]), file=open(sys.argv[2], "a"), flush=True)
"""

READING = (
    ["check"],
    ["traces", "list"],
    ["traces", "show", "TRACE"],
    ["traces", "find", "order"],
    ["audit", "TRACE"],
    ["audit", "exports/sft"],
    ["audit", "desk_a"],
    ["harness", "list"],
    ["harness", "show", "desk_a"],
    ["harness", "diff", "desk_a", "desk_b"],
    ["harness", "check"],
    ["pipeline", "dvcfile", "--check"],
)
WRITING = (
    ["ingest", "inbox", "--dry-run"],
    ["ingest", "inbox"],
    ["export", "sft", "--out", "exports/again"],
    ["export", "sft", "--out", "exports/sft"],
    ["retract", "TRACE", "--reason", "wrong"],
    ["reinstate", "TRACE", "--reason", "right"],
    ["stamp", "TRACE", "--harness", "desk_a", "--reason", "seen"],
    ["harness", "accept", "desk_b", "--reason", "better"],
    ["init"],
    ["reindex"],
)

SILENT = {
    "dvc.yaml": "`pipeline dvcfile --check` says that it is not what would be written",
    "domains/desk/play.py": "nothing reads it",
    ".dvc/cache/files/md5/*/*.dir": "the cache is DVC's; without the list, numbers are compared",
    "inbox/recorded/*.harness.json": "needed only where nobody knows the harness; then the journal is refused",
    ".tracemark/ledger.lock": "a lock holds nothing",
    ".tracemark/decisions.lock": "a lock holds nothing",
    ".tracemark/tmp.lock": "a lock holds nothing",
    ".tracemark/locks/*": "a lock holds nothing",
}
FILES = (
    "params.yaml",
    "evaluation.txt",
    "ledger.jsonl",
    "dvc.yaml",
    "dvc.lock",
    ".dvc/cache/files/md5/*/*.dir",
    ".gitignore",
    ".dvcignore",
    ".gitattributes",
    "domains/desk/play.py",
    "harness_versions/desk_a/harness.yaml",
    "harness_versions/desk_a/system.txt",
    "harness_versions/desk_a/look.json",
    "harness_versions/desk_a/tools.py",
    "harness_versions/desk_a/observe.py",
    "traces/STORE",
    "traces/harnesses/*.json",
    "traces/segments/fingerprint=none/*.zst",
    "traces/segments/fingerprint=[0-9a-f]*/*.zst",
    "traces/annotations/stamps/*.zst",
    "traces/annotations/outcomes/*.zst",
    "traces/annotations/sources/*.zst",
    "traces/annotations/exports.sft/*.zst",
    "traces/refused/*.zst",
    "exports/sft/manifest.json",
    "exports/sft/sft.jsonl",
    "exports/sft/README.md",
    "inbox/*.jsonl",
    "inbox/named/batch.yaml",
    "inbox/named/*.json",
    "inbox/trial/config.json",
    "inbox/trial/result.json",
    "inbox/trial/agent/trajectory.json",
    "inbox/recorded/*.journal.jsonl",
    "inbox/recorded/*.harness.json",
    ".tracemark/catalogue.db",
    ".tracemark/ledger.lock",
    ".tracemark/decisions.lock",
    ".tracemark/tmp.lock",
    ".tracemark/locks/*",
)


@pytest.fixture(scope="module")
def full(_pattern: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that has every kind of file."""
    root = tmp_path_factory.mktemp("full") / "corpus"
    shutil.copytree(_pattern, root)
    shop = Shop(root)
    (root / "evaluation.txt").write_text("held-out\n")
    shop.set(("tasks: []", "tasks: {file: evaluation.txt}"))
    inbox = root / "inbox"
    for folder in ("named", "trial/agent"):
        (inbox / folder).mkdir(parents=True)
    (inbox / "named" / "batch.yaml").write_text("harness: desk_a\nnote: by hand\n")
    (inbox / "named" / "run.json").write_text(json.dumps(document("named")))
    (inbox / "trial" / "agent" / "trajectory.json").write_text(json.dumps(document("trial")))
    for name in ("config", "result"):
        (inbox / "trial" / f"{name}.json").write_text(json.dumps({"trial_name": "trial"}))
    shop.record("recorded")
    shop.ingest([document("t-0", reward=0.0), document("v-0")], None, "unnamed")
    shop.ingest([document("v-0")], "desk_a", "unnamed")
    (inbox / "broken.jsonl").write_text(json.dumps(document("w-0")) + "\nnot JSON\n")
    shop.accept()
    ended, _ = run(root, [["ingest", "inbox"], ["export", "sft", "--out", "exports/sft"]])
    assert [code for _, code in ended][1:] == [0]
    (root / "domains" / "desk").mkdir(parents=True)
    (root / "domains" / "desk" / "play.py").touch()
    (root / "dvc.yaml").write_text(dvcfile.render(root))
    names = sorted(path.name for path in (root / "traces" / "refused").glob("*.zst"))
    listing = root / ".dvc" / "cache" / "files" / "md5" / "00" / f"{'0' * 30}.dir"
    listing.parent.mkdir(parents=True)
    listing.write_text(json.dumps([{"md5": "0" * 32, "relpath": name} for name in names]))
    pinned = f"    - path: traces/refused\n      hash: md5\n      md5: {'0' * 32}.dir\n      nfiles: {len(names)}\n"
    (root / "dvc.lock").write_text(f"schema: '2.0'\nstages:\n  ingest:\n    cmd: true\n    outs:\n{pinned}")
    return root


@pytest.fixture
def corpus(full: Path, tmp_path: Path) -> Path:
    """A copy of the corpus that a test may change."""
    return Path(shutil.copytree(full, tmp_path / "corpus"))


def run(root: Path, commands: list[list[str]]) -> tuple[list[tuple[list[str], int]], str]:
    """Run commands in the corpus, by one process; return those that ended with their exit codes, and all that was said.

    Raises:
        TimeoutExpired: when they do not end.
    """
    said = root.parent / "ended.jsonl"
    said.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(commands), str(said)],
        cwd=root,
        env={**os.environ, "TRACEMARK_WORKERS": "2", "PATH": str(root)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    ended = [tuple(json.loads(line)) for line in said.read_text().splitlines()] if said.exists() else []
    return ended, done.stdout + done.stderr


def put(kind: str, path: Path) -> None:
    """Put something else in place of a file."""
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        # the name of a socket is short, that of a file need not be
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
            bound.bind("s")
        path.with_name("s").rename(path)
    else:
        path.symlink_to({"device": "/dev/zero", "link to nowhere": "nowhere", "link to itself": path.name}[kind])


def require_ended(root: Path, commands: list[list[str]]) -> str:
    """Make sure that commands end, each with an exit code of its help page and without a traceback."""
    ended, said = run(root, commands)
    assert [command for command, _ in ended] == commands, said
    for command, code in ended:
        name = next(name for name in (" ".join(command[:2]), command[0]) if name in COMMANDS)
        assert code in exits(name), (command, code, said)
        assert code != TracemarkError.exit_code, (command, said)
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("pattern", FILES)
def test_a_pipe_in_place_of_a_file_is_named_and_nothing_waits_for_it(corpus: Path, pattern: str) -> None:
    trace = Shop(corpus).ids()["t-1"]
    path = min(corpus.glob(pattern))
    put("pipe", path)
    said = require_ended(corpus, [[trace if word == "TRACE" else word for word in c] for c in (*READING, *WRITING)])
    assert path.name in said or pattern in SILENT, said


def test_every_file_of_a_corpus_is_among_those_that_are_tried(full: Path) -> None:
    tried = {path for pattern in FILES for path in full.glob(pattern)}
    others = {path.relative_to(full).as_posix() for path in full.rglob("*") if path.is_file() and path not in tried}
    alike = ("harness_versions/desk_b/", "traces/", ".tracemark/")
    assert {name for name in others if not name.startswith(alike) and not name.endswith(".gitkeep")} == set()


@pytest.mark.parametrize("kind", ["folder", "socket", "device", "link to nowhere", "link to itself"])
@pytest.mark.parametrize("name", ["params.yaml", "ledger.jsonl", "dvc.lock", "traces/STORE", "exports/sft/sft.jsonl"])
def test_whatever_stands_in_place_of_a_file_is_named(corpus: Path, name: str, kind: str) -> None:
    put(kind, corpus / name)
    said = require_ended(corpus, [["check"], ["traces", "list"], ["audit", "exports/sft"], ["harness", "list"]])
    assert Path(name).name in said


@pytest.mark.parametrize("kind", ["folder", "socket", "link to itself"])
@pytest.mark.parametrize(
    "name",
    [f".tracemark/{name}" for name in ("ledger.lock", "decisions.lock", "tmp.lock", "locks/catalogue")],
)
def test_what_stands_in_place_of_a_lock_is_no_bug(corpus: Path, name: str, kind: str) -> None:
    (corpus / name).touch()
    put(kind, corpus / name)
    words = [["harness", "accept", "desk_b", "--reason", "better"], ["failures", "export", "--out", "failures"]]
    require_ended(corpus, [*words, ["ingest", "inbox"], ["reindex"]])


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_pipe_beside_the_catalogue_is_named_and_nothing_waits_for_it(corpus: Path, end: str) -> None:
    path = corpus / ".tracemark" / f"catalogue.db{end}"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    said = require_ended(corpus, [["check"], ["traces", "list"], ["reindex"]])
    assert f"at: {path.name}" in said
    assert "warning catalogue-differs catalogue.db: the catalogue cannot be read: it is a pipe" in said


def test_what_stands_in_place_of_the_folder_of_locks_is_named_without_a_path_of_the_machine(corpus: Path) -> None:
    shutil.rmtree(corpus / ".tracemark" / "locks")
    (corpus / ".tracemark" / "locks").touch()
    said = require_ended(corpus, [["traces", "list"]])
    assert "the catalogue cannot be used: File exists" in said
    assert str(corpus) not in said
