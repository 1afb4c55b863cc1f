"""A folder is replaced in one step: whatever is killed when, the earlier or the new one is there, whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemark.acts import folder_swap
from tracemark.durable import lock

KILLED = """
import os, signal, sys
from pathlib import Path
from tracemark.acts import folder_swap

base, is_there, exchanges = Path(sys.argv[1]), "there" in sys.argv, "exchanges" in sys.argv
STEPS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "ctypes.dlsym"}

def replace(target, text):
    def fill(folder):
        for name in ("own-1", "own/own-2", "own-3"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    strange = lambda folder: (path.name for path in folder.rglob("*") if not path.name.startswith("own"))
    folder_swap.replace(target, fill, lambda: None, strange)

def die_before(left):
    def hook(event, arguments):
        nonlocal left
        left -= event in STEPS
        if left < 0 and event in STEPS:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

for step in range(1000):
    target = base / f"{step:03}" / "log"
    target.parent.mkdir()
    if is_there:
        replace(target, "old")
    child = os.fork()
    if not child:
        if not exchanges:
            folder_swap._exchanged = lambda one, other: False
        die_before(step)
        replace(target, "new")
        os._exit(0)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        break
"""
"""Replaces a folder again and again, each time killed one step later, until nothing is left to be killed at."""


def strange(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.rglob("*") if not path.name.startswith("own"))


def fill_with(text: str) -> folder_swap.Callable[[Path], None]:
    def fill(folder: Path) -> None:
        for name in ("own-1", "own/own-2", "own-3"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    return fill


def held(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def whole(text: str) -> dict[str, str]:
    return dict.fromkeys(("own-1", "own/own-2", "own-3"), text)


def replace(target: Path, text: str) -> Path | None:
    return folder_swap.replace(target, fill_with(text), lambda: None, strange)


@pytest.mark.parametrize("exchanges", ["exchanges", "-"])
@pytest.mark.parametrize("earlier", ["there", "-"])
def test_a_kill_before_any_step_leaves_the_earlier_folder_or_the_new_one(
    tmp_path: Path, exchanges: str, earlier: str
) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), exchanges, earlier], check=True)
    old = whole("old") if earlier == "there" else None
    found = []
    for base in sorted(tmp_path.iterdir()):
        target = base / "log"
        left = held(target) if target.exists() else None
        if list(base.glob(".log.*/earlier-0")) and left is None:
            # without an exchange there is a moment in which neither has the name, and the next one gives it back
            assert exchanges == "-"
            folder_swap._tidy(target, strange)
            left = held(target)
        assert left in (old, whole("new"))
        found.append(left)
        notes = base / ".log.mine.tmp" / "notes"
        notes.parent.mkdir()
        notes.write_text("nobody's business")
        assert replace(target, "last") is None
        assert held(target) == whole("last")
        # what has a lock and no folder may be another one that has just begun
        assert {name for path in base.glob(".log.[!m]*.tmp") for name in held(path)} <= {"lock"}
        assert notes.exists()
    assert (found[0], found[-1]) == (old, whole("new"))
    assert len(found) > 10


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_comes_in_at_the_last_moment_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchanges: bool
) -> None:
    target = tmp_path / "log"
    replace(target, "old")
    real = folder_swap._exchanged

    def late(one: Path, other: Path) -> bool:
        (target / "notes").write_text("mine")
        return exchanges and real(one, other)

    monkeypatch.setattr(folder_swap, "_exchanged", late)
    kept = replace(target, "new")
    assert kept is not None
    assert kept.name.startswith("log.kept-")
    assert held(target) == whole("new")
    (earlier,) = [path for path in kept.iterdir() if path.is_dir()]
    assert held(earlier) == whole("old") | {"notes": "mine"}


def test_what_comes_in_while_the_earlier_folder_is_removed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "log"
    replace(target, "old")
    real = Path.unlink

    def late(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "own-2":
            (path.parent / "notes").write_text("mine")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", late)
    kept = replace(target, "new")
    assert kept is not None
    assert held(kept)["new/own/notes"] == "mine"
    assert held(target) == whole("new")


def test_what_a_living_process_is_at_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "log"
    work = tmp_path / ".log.other.tmp"
    (work / "new").mkdir(parents=True)
    (work / "new" / "own-1").write_text("half")
    with lock(work / "lock"):
        assert replace(target, "new") is None
        assert (work / "new" / "own-1").read_text() == "half"
    assert replace(target, "newer") is None
    assert not work.exists()


def test_one_that_was_quicker_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "log"
    real, once = Path.rename, iter([True])

    def late(path: Path, other: Path) -> Path:
        if path.name == "new" and next(once, False):
            fill_with("theirs")(_made(target))
        return real(path, other)

    monkeypatch.setattr(Path, "rename", late)
    assert replace(target, "mine") is None
    assert held(target) == whole("mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_what_must_stay_stays_and_nothing_is_left_behind(tmp_path: Path) -> None:
    target = tmp_path / "log"
    replace(target, "old")
    target.chmod(0o750)

    def check() -> None:
        raise PermissionError(1, "no")

    with pytest.raises(PermissionError):
        folder_swap.replace(target, fill_with("new"), check, strange)
    assert held(target) == whole("old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]
    replace(target, "new")
    assert target.stat().st_mode & 0o777 == 0o750


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
