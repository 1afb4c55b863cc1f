"""What all tests share: hypothesis profiles, the collection of real trace files, and its marker."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SHARED_TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"

TOLD = "told.txt"
MADE = ("inbox/desk-plain", "traces/segments", "exports/sft")
"""Some of what the pipeline makes and git ignores."""

settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")

if "PYTHONPATH" in os.environ:
    # children work in other folders, and are to import what the tests import
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need the shared files where these are absent, and say how many."""
    if SHARED_TRACES.is_dir():
        return
    kept = [item for item in items if "shared_data" not in item.keywords]
    gone = [item for item in items if "shared_data" in item.keywords]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = kept


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of real trace files."""
    return SHARED_TRACES


@pytest.fixture(scope="session")
def played_clone(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A fresh clone of this repository in which the demo ran once, made once for all workers; only to be copied.

    What the demo said lies beside it, see `told_by_demo`.
    """
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent
    root = shared / "played" / "tracemark"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
    }
    with (shared / "played.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            making = root.with_name("making")
            subprocess.run(["git", "clone", "--quiet", str(Path(__file__).parents[1]), str(making)], check=True)
            # what the pipeline makes is in no commit, so all of it is run
            assert not any((making / place).exists() for place in MADE)
            demo = [sys.executable, "docs/demo.py"]
            done = subprocess.run(demo, cwd=making, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert all((making / place).exists() for place in MADE)
            (shared / "played" / TOLD).write_text(done.stdout)
            making.rename(root)
    return root


@pytest.fixture(scope="session")
def told_by_demo(played_clone: Path) -> str:
    """What the demo said in the clone in which it ran."""
    return (played_clone.parent / TOLD).read_text()


class Disk:
    """What a process asked of the disk, in order: syncs, names given and taken, folders made.

    Args:
        monkeypatch: undoes the spying at the end of the test.
        private: no entry is kept of what lies below a folder of this name; sizes and failures are.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, private: str = ".tracemark") -> None:
        self.calls: list[tuple[str, ...]] = []
        self.synced: dict[str, int] = {}
        """How many bytes a file had when it was synced last."""
        self.failing: Counter[str] = Counter()
        """How often the sync of a file or folder whose name begins so is yet to fail."""
        self.asked: Counter[str] = Counter()
        """How often each file or folder was to be synced, by its path."""
        self._real = {name: getattr(os, name) for name in ("fsync", "rename", "replace", "unlink", "mkdir")}
        monkeypatch.setattr(os, "fsync", self._fsync)
        for name, word in (("rename", "rename"), ("replace", "rename"), ("unlink", "remove"), ("mkdir", "make")):
            monkeypatch.setattr(os, name, self._spy(name, word))
        self._private = private

    def _fsync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self.asked[path] += 1
        for beginning in self.failing:
            if Path(path).name.startswith(beginning) and self.failing[beginning] > 0:
                self.failing[beginning] -= 1
                raise OSError(errno.EIO, "the sync failed", path)
        self._real["fsync"](descriptor)
        self.synced[path] = os.fstat(descriptor).st_size
        self.calls.append(("sync", path))

    def _spy(self, name: str, word: str) -> Any:
        def called(*arguments: Any, **options: Any) -> Any:
            result = self._real[name](*arguments, **options)
            self.calls.append((word, *(os.fspath(path) for path in arguments if not isinstance(path, int))))
            return result

        return called

    def require_durable(self, below: Path) -> None:
        """Make sure that every name below a folder which was given, taken or made is durable, and what it names too.

        A file is synced before it gets its name, and every folder after the last change of its names.
        """
        synced: set[str] = set()
        open_folders: dict[str, str] = {}
        for word, *paths in self.calls:
            target = paths[-1]
            if word == "sync":
                synced.add(target)
                open_folders.pop(target, None)
                continue
            if word == "rename" and paths[0] in synced:
                synced = synced - {paths[0]} | {target}
            if Path(target).is_relative_to(below) and self._private not in Path(target).parts:
                assert word != "rename" or target in synced, f"{target} got its name before its bytes were synced"
                open_folders[str(Path(target).parent)] = target
        assert not open_folders, f"folders that were not synced after the last name in them changed: {open_folders}"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Spies on syncs and on changes of names in this process."""
    return Disk(monkeypatch)
