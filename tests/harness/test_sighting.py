"""What a reading saw of the disk holds exactly as long as another reading would see the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tracemark.errors import TracemarkError
from tracemark.harness.loading import load
from tracemark.runner import folder as module
from tracemark.runner.folder import differs

MANIFEST = {
    "format": "tracemark/harness/1",
    "name": "small",
    "roots": ["../../lib"],
    "packages": ["../../packages/first"],
    "ignore": ["*.log"],
    "prompt_templates": [
        {"name": "system", "syntax": "jinja", "file": "system.jinja"},
        {"name": "task", "syntax": "format", "text": "{request}", "variables": {"request": "task"}},
    ],
    "observation_handlers": [{"name": "observe", "entry": "handlers/observe.py:observe"}],
}

FILES = {
    "versions/small/harness.yaml": json.dumps(MANIFEST),
    "versions/small/system.jinja": "Be brief.{% include 'tail.jinja' %}",
    "versions/small/tail.jinja": "Be kind.",
    "versions/small/handlers/observe.py": (
        "import shown\nimport first.words\n\n\ndef observe(result):\n    return str(result)\n"
    ),
    "versions/small/notes/why.md": "Because.",
    "versions/small/last.log": "not counted",
    "lib/shown.py": "WIDTH = 80\n",
    "packages/first/__init__.py": "",
    "packages/first/words.py": "WORDS = ()\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a harness that has files in itself, through a root and in a package."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def write(path: str, text: str) -> Callable[[Path], None]:
    return lambda home: (home / path).write_text(text) and None


def same_size_and_times(home: Path) -> None:
    path = home / "lib/shown.py"
    before = path.stat()
    path.write_text("WIDTH = 81\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def link(path: str, target: str) -> Callable[[Path], None]:
    def edit(home: Path) -> None:
        (home / path).unlink(missing_ok=True)
        (home / path).symlink_to(home / target)

    return edit


def pipe(home: Path) -> None:
    (home / "lib/shown.py").unlink()
    os.mkfifo(home / "lib/shown.py")


def another_root(home: Path) -> None:
    (home / "lib").rename(home / "old")
    (home / "other").mkdir()
    (home / "other/shown.py").write_text("WIDTH = 1\n")
    (home / "lib").symlink_to("other")


def folder_linked(home: Path) -> None:
    (home / "versions/small/notes").rename(home / "notes")
    (home / "versions/small/notes").symlink_to(home / "notes")


EDITS = {
    "a text, of the same size and with the same times": same_size_and_times,
    "the manifest": write("versions/small/harness.yaml", json.dumps({**MANIFEST, "runtime": {"limits": {"steps": 2}}})),
    "what is ignored": write("versions/small/harness.yaml", json.dumps({**MANIFEST, "ignore": []})),
    "a template": write("versions/small/system.jinja", "Be brief."),
    "a template that is brought in": write("versions/small/tail.jinja", "Be nice."),
    "a file of no part": write("versions/small/notes/why.md", "No reason."),
    "a new file": write("versions/small/notes/more.md", "More."),
    "a file less": lambda home: (home / "versions/small/notes/why.md").unlink(),
    "a comment in a root": write("lib/shown.py", "WIDTH = 80  # wide\n"),
    "a module in front of a root's": write("versions/small/shown.py", "WIDTH = 8\n"),
    "a module of the package": write("packages/first/words.py", "WORDS = ('a',)\n"),
    "a module less": lambda home: (home / "packages/first/words.py").unlink(),
    "a file that a link leads out of the folder": link("versions/small/tail.jinja", "lib/shown.py"),
    "a pipe in place of a file": pipe,
    "another root by the same name": another_root,
    "a linked folder": folder_linked,
    "no manifest": lambda home: (home / "versions/small/harness.yaml").unlink(),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_whatever_makes_another_harness_or_none_is_seen(home: Path, edit: Callable[[Path], None]) -> None:
    folder = home / "versions/small"
    harness = load(folder)
    assert not differs(harness, folder)
    edit(home)
    try:
        same = load(folder).fingerprint == harness.fingerprint
    except TracemarkError:
        same = False
    assert not same
    assert differs(harness, folder)


def test_nothing_is_parsed_again_where_all_is_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / "versions/small"
    harness = load(folder)
    read: list[Path] = []
    monkeypatch.setattr(module, "load", lambda path: (read.append(path), load(path))[1])
    assert not differs(harness, folder)
    assert read == []
    (folder / "last.log").write_text("not counted either")
    assert not differs(harness, folder)
    assert read == []
    # what may mean nothing is read again to know
    (folder / "new.log").write_text("not counted")
    assert not differs(harness, folder)
    assert read == [folder]


def test_a_copy_elsewhere_is_read_for_itself(home: Path, tmp_path: Path) -> None:
    harness = load(home / "versions/small")
    (home / "versions/other").mkdir()
    for path in ("harness.yaml", "system.jinja", "tail.jinja"):
        (home / "versions/other" / path).write_bytes((home / "versions/small" / path).read_bytes())
    assert differs(harness, home / "versions/other")


def test_a_template_that_may_be_missing_is_asked_for_again(home: Path) -> None:
    folder = home / "versions/small"
    (folder / "system.jinja").write_text("Be brief.{% include 'more.jinja' ignore missing %}")
    harness = load(folder)
    assert not differs(harness, folder)
    (folder / "more.jinja").write_text("Be exact.")
    assert differs(harness, folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_was_closed_is_seen(home: Path) -> None:
    folder = home / "versions/small"
    (folder / "empty").mkdir()
    harness = load(folder)
    (folder / "empty").chmod(0)
    try:
        assert differs(harness, folder)
    finally:
        (folder / "empty").chmod(0o755)
