"""A folder is replaced in one step: whatever is killed when, the earlier or the new one is there, whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

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

AT_ONCE = """
import os, sys
from pathlib import Path
from tracemark.acts import folder_swap

target, text = Path(sys.argv[1]), sys.argv[2]
os.sync = lambda: None

def fill(folder):
    for name in ("own-1", "own/own-2", "own-3"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

strange = lambda folder: (path.name for path in folder.rglob("*") if not path.name.startswith("own"))
real = folder_swap._exchanged
for number in range(120):
    folder_swap._exchanged = real if number % 2 else lambda one, other: False
    kept = folder_swap.replace(target, fill, lambda: None, strange)
    assert kept == (), kept
"""
"""Replaces a folder several hundred times; as often as it is started at once, by so many processes."""


def strange(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.rglob("*") if not path.name.startswith("own"))


def fill_with(text: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        for name in ("own-1", "own/own-2", "own-3"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    return fill


def held(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def whole(text: str) -> dict[str, str]:
    return dict.fromkeys(("own-1", "own/own-2", "own-3"), text)


def replace(target: Path, text: str) -> tuple[Path, ...]:
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
        notes = base / ".log.mymymine.tmp" / "notes"
        notes.parent.mkdir()
        notes.write_text("nobody's business")
        assert replace(target, "last") == ()
        assert held(target) == whole("last")
        assert sorted(path.name for path in base.iterdir()) == [notes.parent.name, "log"]
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
    (kept,) = replace(target, "new")
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
    (kept,) = replace(target, "new")
    assert held(kept)["new/own/notes"] == "mine"
    assert held(target) == whole("new")


def test_what_a_living_process_is_at_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "log"
    work = tmp_path / ".log.another1.tmp"
    (work / "new").mkdir(parents=True)
    (work / "new" / "own-1").write_text("half")
    with lock(work / "lock"):
        assert replace(target, "new") == ()
        assert (work / "new" / "own-1").read_text() == "half"
    assert replace(target, "newer") == ()
    assert not work.exists()


def test_one_that_was_quicker_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "log"
    real, once = Path.rename, iter([True])

    def late(path: Path, other: Path) -> Path:
        if path.name == "new" and next(once, False):
            fill_with("theirs")(_made(target))
        return real(path, other)

    monkeypatch.setattr(Path, "rename", late)
    assert replace(target, "mine") == ()
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


def test_what_a_kill_left_is_kept_and_told_by_the_next_one(tmp_path: Path) -> None:
    target = tmp_path / "log"
    replace(target, "old")
    work = tmp_path / ".log.somebody.tmp"
    fill_with("older")(_made(_made(work) / "new"))
    (work / "new" / "notes").write_text("mine")
    (work / "lock").touch()

    def check() -> None:
        raise PermissionError(1, "no")

    with pytest.raises(PermissionError):
        folder_swap.replace(target, fill_with("new"), check, strange)
    assert (work / "new" / "notes").exists()
    assert replace(target, "new") == (tmp_path / "log.kept-somebody",)
    assert held(tmp_path / "log.kept-somebody")["new/notes"] == "mine"
    assert held(target) == whole("new")
    assert replace(target, "newer") == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.kept-somebody"]


def test_what_another_folder_of_a_longer_name_left_is_not_ours(tmp_path: Path) -> None:
    work = tmp_path / ".log.old.somebody.tmp"
    fill_with("the old log")(_made(_made(work) / "earlier-0"))
    (work / "lock").touch()
    replace(tmp_path / "log", "new")
    assert held(tmp_path / "log") == whole("new")
    assert held(work / "earlier-0") == whole("the old log")
    replace(tmp_path / "log.old", "new")
    assert not work.exists()


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    far = _made(tmp_path / "far")
    fill_with("mine")(_made(far / "new"))
    (far / "lock").touch()
    (tmp_path / ".log.somebody.tmp").symlink_to(far)
    assert replace(tmp_path / "log", "new") == ()
    assert held(far / "new") == whole("mine")
    assert (tmp_path / ".log.somebody.tmp").is_symlink()


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_one_that_is_taken_for_dead_before_it_is_locked_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    target, real, once = tmp_path / "log", folder_swap.lock, iter([True])

    def late(path: Path, **options: bool) -> AbstractContextManager[None]:
        if next(once, False):
            if moment == "behind":
                path.touch()
            folder_swap._tidy(target, strange)
            assert not path.parent.exists()
        return real(path, **options)

    monkeypatch.setattr(folder_swap, "lock", late)
    assert replace(target, "new") == ()
    assert held(target) == whole("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_one_whose_lock_another_holds_for_a_moment_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, real, begun = tmp_path / "log", folder_swap.lock, []

    @contextmanager
    def late(path: Path, **options: bool) -> Iterator[None]:
        begun.append(path)
        with real(path) if len(begun) == 1 else nullcontext(), real(path, **options):
            yield

    monkeypatch.setattr(folder_swap, "lock", late)
    assert replace(target, "new") == ()
    assert held(target) == whole("new")
    assert len({path.parent for path in begun}) == 2


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_what_its_owner_removes_meanwhile_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real, work = folder_swap.lock, _made(tmp_path / ".log.another1.tmp")
    (work / "lock").touch()

    @contextmanager
    def late(path: Path, **options: bool) -> Iterator[None]:
        if path.parent == work and moment == "before":
            path.unlink()
        with real(path, **options):
            if path.parent == work and moment == "behind":
                path.unlink()
            yield

    monkeypatch.setattr(folder_swap, "lock", late)
    assert replace(tmp_path / "log", "new") == ()
    assert list(work.iterdir()) == []


def test_a_name_that_another_takes_first_is_not_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, real = tmp_path / "log", Path.rename
    work = _made(tmp_path / ".log.somebody.tmp")
    fill_with("old")(_made(work / "earlier-0"))
    (work / "lock").touch()

    def late(path: Path, other: Path) -> Path:
        if path.name == "earlier-0":
            fill_with("theirs")(_made(target))
        return real(path, other)

    monkeypatch.setattr(Path, "rename", late)
    assert replace(target, "mine") == ()
    assert held(target) == whole("mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_two_that_replace_one_folder_at_once_are_not_in_each_others_way(tmp_path: Path) -> None:
    target = tmp_path / "log"
    ran = [subprocess.Popen([sys.executable, "-c", AT_ONCE, str(target), text]) for text in ("one", "two")]
    assert [process.wait() for process in ran] == [0, 0]
    assert held(target) in (whole("one"), whole("two"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_all_is_on_disk_before_it_has_its_name_and_the_name_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, calls = tmp_path / "log", []

    def told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*asked: Any) -> Any:
            calls.append((name, target.exists()))
            return function(*asked)

        return call

    monkeypatch.setattr("os.sync", told("sync", lambda: None))
    monkeypatch.setattr(folder_swap, "sync_folder", told("sync_folder", folder_swap.sync_folder))
    folder_swap.replace(target, told("fill", fill_with("new")), lambda: None, strange)
    assert calls == [("fill", False), ("sync", False), ("sync_folder", True)]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
