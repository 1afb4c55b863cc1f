"""A file is there whole or not at all, and a lock says who is at work."""

from __future__ import annotations

import fcntl
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracemark import durable
from tracemark.durable import CrashPoint
from tracemark.errors import IrregularFileError, LockedError

CHILD = """
import sys
from pathlib import Path
from tracemark import durable
Path(sys.argv[1]).write_bytes(b"content")
durable.publish(Path(sys.argv[1]), Path(sys.argv[2]))
"""

HOLDER = """
import sys
from pathlib import Path
from tracemark import durable
with durable.lock(Path(sys.argv[1])):
    print(1, flush=True)
    input()
"""

HOLDS_FOR = """
import sys, time
from pathlib import Path
from tracemark import durable
with durable.lock(Path(sys.argv[1])):
    print(1, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_writing_leaves_the_mask_of_the_process_alone_and_obeys_it(tmp_path, monkeypatch):
    mask = os.umask(0o022)
    os.umask(mask)
    monkeypatch.setattr(os, "umask", None)
    durable.write_atomic(tmp_path / "a.json", b"one")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_write_atomic_replaces_the_old_content_and_keeps_the_mode(tmp_path):
    path = tmp_path / "deep" / "params.yaml"
    durable.write_atomic(path, b"one")
    path.chmod(0o640)
    durable.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == ["params.yaml"]


def test_a_write_that_fails_leaves_the_old_file_and_no_temporary(tmp_path, monkeypatch):
    path = tmp_path / "params.yaml"
    durable.write_atomic(path, b"one")
    monkeypatch.setattr(durable.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        durable.write_atomic(path, b"two")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["params.yaml"]


def test_publish_names_a_new_file_and_drops_a_known_one(tmp_path):
    target = tmp_path / "segments" / "fingerprint=none" / "abc"
    for expected in (True, False):
        temporary = tmp_path / "temporary"
        temporary.write_bytes(b"content")
        assert durable.publish(temporary, target) is expected
        assert not temporary.exists()
        assert target.read_bytes() == b"content"


@pytest.mark.parametrize(
    ("point", "published"),
    [
        (CrashPoint.TEMPORARY_WRITTEN, False),
        (CrashPoint.TEMPORARY_SYNCED, False),
        (CrashPoint.RENAMED, True),
        (CrashPoint.FOLDER_SYNCED, True),
    ],
)
def test_a_kill_leaves_the_file_under_its_name_only_after_the_rename(tmp_path, point, published):
    temporary, target = tmp_path / "temporary", tmp_path / "segments" / "abc"
    environment = {**os.environ, "TRACEMARK_CRASH_AT": point.value}
    child = subprocess.run([sys.executable, "-c", CHILD, temporary, target], env=environment, check=False)
    assert child.returncode == -signal.SIGKILL
    assert target.exists() is published
    assert temporary.exists() is not published


def test_a_second_holder_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv(durable.LOCK_WAIT, "0.2")
    path = tmp_path / "lock"
    assert not durable.is_locked(path)
    with durable.lock(path):
        assert durable.is_locked(path)
        with pytest.raises(LockedError, match="another process holds the lock\n"), durable.lock(path):
            pytest.fail("the lock was given twice")
    assert not durable.is_locked(path)


def test_who_only_asks_whether_there_is_a_lock_holds_none(tmp_path):
    with (tmp_path / "lock").open("w") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not durable.is_locked(tmp_path / "lock")


def test_where_nobody_can_tell_the_error_of_the_system_goes_up(tmp_path):
    with pytest.raises(FileNotFoundError), durable.lock(tmp_path / "none" / "lock"):
        pass
    with pytest.raises(OSError, match="too long"):
        durable.is_locked(tmp_path / ("x" * 300))


def test_a_lock_dies_with_its_process(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDER,
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert durable.is_locked(path)
        child.kill()
    assert not durable.is_locked(path)


@contextmanager
def held(path: Path, seconds: float = 3600) -> Iterator[None]:
    """Have another process hold a lock for some seconds, or for the time of a `with` block."""
    command = [sys.executable, "-c", HOLDS_FOR, path, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield
        child.kill()


def test_who_waits_for_a_lock_gets_it_when_the_holder_has_ended_and_says_after_a_second_that_it_waits(tmp_path, caplog):
    with held(tmp_path / "ledger.lock", 0.3), durable.lock(tmp_path / "ledger.lock", blocking=True):
        pass
    assert caplog.messages == []
    with held(tmp_path / "ledger.lock", 1.5), durable.lock(tmp_path / "ledger.lock", blocking=True):
        assert caplog.messages == [
            f"waiting for {tmp_path.name}/ledger.lock, which another process holds (for 60 s at most)"
        ]


def test_waiting_for_a_lock_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setenv(durable.LOCK_WAIT, "0.2")
    with (
        held(tmp_path / "ledger.lock"),
        pytest.raises(LockedError, match=r"after 0\.2 s still") as refused,
        durable.lock(tmp_path / "ledger.lock", blocking=True),
    ):
        pytest.fail("the lock was given twice")
    assert refused.value.where == f"{tmp_path.name}/ledger.lock"
    assert str(refused.value.hint).startswith("wait until it has ended, then run the command again")


@pytest.mark.parametrize(
    ("said", "meant"), [("5", 5), ("0", 0), ("", 60), ("-1", 60), ("inf", 60), ("nan", 60), ("long", 60)]
)
def test_how_long_to_wait_is_a_minute_unless_a_number_says_otherwise(monkeypatch, said, meant):
    monkeypatch.setenv(durable.LOCK_WAIT, said)
    assert durable.longest_wait() == meant
    assert durable.longest_wait(math.inf) == (math.inf if meant == 60 else meant)


def test_a_lock_that_is_held_for_long_by_right_is_waited_for_without_end_and_not_without_a_word(tmp_path, caplog):
    path = tmp_path / ".tracemark" / "locks" / "catch-up"
    path.parent.mkdir(parents=True)
    with held(path, 1.5), durable.lock(path, blocking=True, longest=math.inf):
        assert caplog.messages == ["waiting for .tracemark/locks/catch-up, which another process holds"]


def test_who_makes_temporaries_waits_for_nobody_who_uses_some(tmp_path, monkeypatch):
    monkeypatch.setenv(durable.LOCK_WAIT, "0")
    with durable.temporary_folder(tmp_path / "tmp"), durable.temporary_folder(tmp_path / "tmp"):
        assert not durable.is_locked(tmp_path / "tmp.lock")


def test_temporaries_of_the_dead_are_removed_and_those_of_the_living_kept(tmp_path):
    parent = tmp_path / "tmp"
    with durable.temporary_folder(parent) as alive:
        dead = left_behind(parent, "dead")
        killed_before_it_locked = parent / "tracemark-empty"
        killed_before_it_locked.mkdir()
        with durable.temporary_folder(parent) as second:
            assert not dead.exists()
            assert not killed_before_it_locked.exists()
            assert alive.is_dir()
            assert second.is_dir()
    assert list(parent.iterdir()) == []


def left_behind(parent: Path, name: str) -> Path:
    """Make what a writer that was killed leaves below `parent`."""
    folder = parent / f"tracemark-{name}"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    (folder / "half").write_bytes(b"x")
    return folder


def test_what_others_keep_among_the_temporaries_stays(tmp_path):
    parent, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    foreign = [parent / "documents" / "thesis", parent / "documents" / "lock", parent / "tracemark-mine" / "thesis"]
    behind = left_behind(elsewhere, "a") / "half"
    for file in foreign:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    (parent / "tracemark-linked").symlink_to(behind.parent)
    (parent / "tracemark-lock").mkdir()
    (parent / "tracemark-lock" / "lock").symlink_to(behind)
    with durable.temporary_folder(parent):
        pass
    assert durable.remove_leftovers(parent) == []
    assert all(file.exists() for file in [*foreign, behind, parent / "tracemark-lock" / "lock"])


def test_a_link_in_place_of_the_folder_for_temporaries_is_not_followed(tmp_path):
    behind = left_behind(tmp_path / "elsewhere", "a") / "half"
    (tmp_path / "tmp").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(IrregularFileError, match="it is a link, which is not followed"),
        durable.temporary_folder(tmp_path / "tmp"),
    ):
        pass
    assert behind.exists()


def test_temporaries_may_lie_on_a_disk_to_which_their_parent_is_a_link(tmp_path):
    behind = left_behind(tmp_path / "scratch" / "tmp", "a")
    foreign = tmp_path / "scratch" / "tmp" / "documents"
    foreign.mkdir()
    (tmp_path / ".tracemark").symlink_to(tmp_path / "scratch")
    with durable.temporary_folder(tmp_path / ".tracemark" / "tmp") as folder:
        assert folder.resolve().parent == tmp_path / "scratch" / "tmp"
        assert not behind.exists()
    assert foreign.is_dir()


def make_and_use(parent) -> bool:
    for _ in range(50):
        with durable.temporary_folder(parent) as folder:
            (folder / "file").write_bytes(b"x")
            if not (folder / "file").exists():
                return False
    return True


def test_processes_that_make_temporaries_at_once_leave_each_other_alone(tmp_path):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(make_and_use, [tmp_path / "tmp"] * 4) == [True] * 4


def test_make_folder_may_be_called_by_two_at_once(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(durable.make_folder, [tmp_path / "a" / "b" / "c"] * 4)
    assert (tmp_path / "a" / "b" / "c").is_dir()


# --- the order of syncs and names


def test_the_bytes_are_synced_before_the_file_gets_its_name_and_the_folder_after(tmp_path, disk):
    temporary, folder = tmp_path / "temporary", tmp_path / "segments"
    for new in (True, False):
        disk.calls.clear()
        temporary.write_bytes(b"content")
        assert durable.publish(temporary, folder / "abc") is new
        made = [("make", str(folder)), ("sync", str(tmp_path))] if new else []
        moved = ("rename", str(temporary), str(folder / "abc")) if new else ("remove", str(temporary))
        assert disk.calls == [("sync", str(temporary)), *made, moved, ("sync", str(folder))]
    temporary.write_bytes(b"other")
    disk.calls.clear()
    durable.publish(temporary, folder / "def", synced=True)
    assert disk.calls == [("rename", str(temporary), str(folder / "def")), ("sync", str(folder))]


def test_a_written_file_is_synced_whole_before_it_replaces_the_old_one(tmp_path, disk):
    for data in (b"one", b"other"):
        disk.calls.clear()
        durable.write_atomic(tmp_path / "params.yaml", data)
        (first, temporary), *rest = disk.calls
        assert first == "sync"
        assert disk.synced[temporary] == len(data)
        assert rest == [("rename", temporary, str(tmp_path / "params.yaml")), ("sync", str(tmp_path))]


def test_each_new_folder_is_made_durable_in_its_parent(tmp_path, disk):
    durable.make_folder(tmp_path / "a" / "b")
    one, two = str(tmp_path / "a"), str(tmp_path / "a" / "b")
    assert disk.calls == [("make", one), ("sync", str(tmp_path)), ("make", two), ("sync", one)]
    durable.make_folder(tmp_path / "a" / "b")
    assert len(disk.calls) == 4


def test_a_file_that_is_set_aside_keeps_its_name_there(tmp_path, disk):
    path = tmp_path / "segments" / "abc"
    path.parent.mkdir()
    path.write_bytes(b"damaged")
    disk.calls.clear()
    durable.set_aside(path, tmp_path / "private" / "aside")
    aside = tmp_path / "private" / "aside"
    assert disk.calls[-2:] == [("rename", str(path), str(aside / "abc.damaged")), ("sync", str(aside))]


def test_every_file_of_one_name_that_is_set_aside_is_kept_and_one_that_is_gone_already_is_no_error(tmp_path):
    aside, names = tmp_path / "private" / "aside", []
    for data in (b"one", b"two", b"three"):
        (tmp_path / "abc").write_bytes(data)
        names.append(durable.set_aside(tmp_path / "abc", aside))
    assert names == [f"private/aside/abc.damaged{end}" for end in ("", "-2", "-3")]
    assert [(tmp_path / name).read_bytes() for name in names] == [b"one", b"two", b"three"]
    durable.set_aside(tmp_path / "abc", aside)
    assert len(list(aside.iterdir())) == 3


def publish(folder):
    durable.publish(folder / "temporary", folder / "segments" / "abc")


def publish_known(folder):
    (folder / "segments" / "abc").write_bytes(b"content")
    publish(folder)


def write_atomic(folder):
    durable.write_atomic(folder / "segments" / "abc", b"other")


@pytest.mark.parametrize(
    ("act", "failing", "named"),
    [
        (publish, "temporary", False),
        (publish, "segments", True),
        (publish_known, "temporary", True),
        (publish_known, "segments", True),
        (write_atomic, ".abc.", False),
        (write_atomic, "segments", True),
        (lambda folder: durable.make_folder(folder / "segments" / "more"), "segments", False),
        (lambda folder: durable.sync_folder(folder / "segments"), "segments", False),
    ],
)
def test_a_sync_that_failed_goes_up_and_is_not_tried_again(tmp_path, disk, act, failing, named):
    (tmp_path / "segments").mkdir()
    (tmp_path / "temporary").write_bytes(b"content")
    disk.failing[failing] = 1
    with pytest.raises(OSError, match="the sync failed"):
        act(tmp_path)
    assert [count for path, count in disk.asked.items() if os.path.basename(path).startswith(failing)] == [1]
    assert (tmp_path / "segments" / "abc").exists() is named


def test_nothing_waits_for_the_other_end_of_a_pipe_in_place_of_a_lock(tmp_path):
    os.mkfifo(tmp_path / "lock")
    assert not durable.is_locked(tmp_path / "lock")
    with durable.lock(tmp_path / "lock"):
        assert durable.is_locked(tmp_path / "lock")


def test_what_cannot_be_a_lock_file_is_named_and_holds_no_lock(tmp_path):
    (tmp_path / "lock").symlink_to("lock")
    assert not durable.is_locked(tmp_path / "lock")
    with pytest.raises(IrregularFileError) as caught, durable.lock(tmp_path / "lock"):
        pass
    assert (caught.value.where, str(tmp_path) in str(caught.value)) == (f"{tmp_path.name}/lock", False)


def test_a_link_that_leads_nowhere_is_something_and_a_name_below_a_file_is_nothing(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "file").touch()
    assert [durable.is_there(tmp_path / name) for name in ("link", "file", "file/below", "none")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "reason", "hint"),
    [
        ("folder", "it is a folder, no file", "move what is in the way, then restore the file"),
        ("link", "No such file or directory", "move what is in the way, then restore the file"),
        ("loop", "Too many levels of symbolic links", "move what is in the way, then restore the file"),
    ],
)
def test_why_a_file_could_not_be_read_is_said_without_its_path(tmp_path, name, reason, hint):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises((OSError, IrregularFileError)) as caught:
        durable.read_regular(tmp_path / name)
    assert durable.why_unread(caught.value) == (reason, hint)


def test_a_fork_that_has_a_copy_of_a_lock_neither_keeps_nor_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    seen, told = os.pipe()
    with durable.lock(path):
        child = os.fork()
        if child == 0:
            # the copy stays open until the parent has looked
            os.read(seen, 1)
            os._exit(0)
        assert durable.is_locked(path)
    held = durable.is_locked(path)
    os.write(told, b".")
    os.waitpid(child, 0)
    assert not held


def test_a_fork_that_leaves_a_lock_leaves_it_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holding = durable.lock(path)
    holding.__enter__()
    child = os.fork()
    if child == 0:
        holding.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    assert durable.is_locked(path)
    holding.__exit__(None, None, None)
    assert not durable.is_locked(path)
