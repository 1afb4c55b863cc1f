"""Reading the files of a harness once, and nothing outside it."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness import folder as module
from tracemark.harness.folder import PACKAGE, ROOT, HarnessFolder, RefusedFileError, matches, outside


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("notes.md", "notes.md", True),
        ("notes.md", "a/b/notes.md", True),
        ("notes.md", "notes.md/inside.txt", True),
        ("notes.md", "my-notes.md", False),
        ("notes/", "notes/a/b.md", True),
        ("notes/", "a/notes/b.md", True),
        ("notes/", "notes", False),
        ("notes/", "notes/", True),
        ("*.log", "a/b.log", True),
        ("a/*.log", "a/b.log", True),
        ("a/*.log", "a/b/c.log", True),
        ("a/*.log", "b/a/c.log", False),
        ("/notes.md", "notes.md", True),
        ("a/b/", "a/b/c", True),
        ("a/b/", "a/b", False),
        ("A.md", "a.md", False),
        ("*", "anything/at/all", True),
        ("[#]*[#]", "a/#b#", True),
    ],
)
def test_a_pattern_takes_a_path_or_a_folder_above_it(pattern, path, taken):
    assert matches(pattern, path) is taken


pieces = st.lists(st.sampled_from(["a", "b", "c.md", "d-e"]), min_size=1, max_size=4)


@given(pieces, pieces)
def test_what_is_below_an_ignored_folder_is_ignored(above, below):
    path = "/".join(above)
    assert matches("/".join(above) + "/", f"{path}/{'/'.join(below)}")
    assert matches(above[-1], f"{path}/{'/'.join(below)}")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "a/..", "/x", "~/x", "a\\b", ".."])
def test_a_path_that_leaves_the_folder_is_refused(path):
    assert outside(path) is not None


@pytest.mark.parametrize("path", ["x", "a/b", "./a", "a//b", "..a", "a..b/c...", "x~"])
def test_a_path_within_the_folder_is_not(path):
    assert outside(path) is None


def test_a_file_is_read_once(tmp_path):
    (tmp_path / "a.md").write_bytes(b"first")
    folder = HarnessFolder(tmp_path)
    assert folder.member("a.md") == folder.member("./a.md") == "a.md"
    (tmp_path / "a.md").write_bytes(b"second")
    assert folder.read(folder.bases[0], "a.md") == b"first"
    assert folder.files == {"a.md": b"first"}


def test_keys_say_through_what_a_file_was_found(tmp_path):
    for name in ("h/in/x.py", "lib/x.py", "src/desk/x.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    folder = HarnessFolder(tmp_path / "h")
    for text, prefix in (("in", ROOT), ("../lib", ROOT), ("../src/desk", PACKAGE)):
        assert folder.add_base(text, prefix) is None
    keys = [folder.key(base, f"{base.only}/x.py" if base.only else "x.py") for base in folder.bases]
    assert keys == ["x.py", "in/x.py", "root:x.py", "package:desk/x.py"]


def test_a_file_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILE", 3)
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"abcd")
    folder = HarnessFolder(tmp_path)
    assert folder.member("a") == "a"
    with pytest.raises(RefusedFileError, match="4 bytes"):
        folder.member("b")


def test_a_walk_lists_what_counts(tmp_path):
    for name in ("harness.yaml", "a/harness.yaml", "a/b.md", "__pycache__/x.pyc", "skip/x", "c.md~", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    folder = HarnessFolder(tmp_path)
    folder.ignore = ("skip/",)
    assert folder.walk().files == (".hidden", "a/b.md", "a/harness.yaml")
    assert folder.walk().problems == ()


def test_a_name_that_is_no_unicode_is_a_name(tmp_path):
    name = os.fsdecode(b"\xff.md")
    (tmp_path / name).touch()
    folder = HarnessFolder(tmp_path)
    assert folder.walk().files == (name,)
    assert folder.member(name) == name
