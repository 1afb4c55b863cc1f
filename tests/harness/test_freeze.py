"""A harness is written out as a version with the same fingerprint, whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import DictLoader, Environment

import tracemark
from tracemark.errors import UsageError
from tracemark.harness.capture import capture
from tracemark.harness.fingerprint import identify
from tracemark.harness.freeze import files, freeze
from tracemark.harness.loading import load
from tracemark.harness.snapshot import from_bytes, to_bytes
from tracemark.harness.version import Harness


def forged(harness: Harness, **changes: object) -> Harness:
    """A harness as a snapshot may hold it: digests that fit, whatever is in it."""
    changed = replace(harness, **changes)
    return replace(changed, identity=identify(changed.manifest, changed.sources))


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def captured(lab):
    lab.write("desk/__init__.py", "")
    lab.write("desk/base.py", "class Base:\n    mark = '…'\n")
    desk = lab.load(
        "desk/tools.py",
        "from desk.base import Base\n\n\ndef look(order: str):\n    return order\n\n\n"
        "class Cut(Base):\n    def run(self, text):\n        return text\n",
    )
    rules = Environment(loader=DictLoader({"system": "{% include 'rules/a.txt' %}{{ x }}", "rules/a.txt": "Exact."}))
    return capture(
        prompt_templates={"system": rules.get_template("system"), "Style guide!": "Be brief.\r\n", "style guide?": ""},
        tool_bindings={"look": desk.look, "wait": {"name": "wait", "description": "Wäit."}},
        observation_handlers={"cut": {"entry": desk.Cut, "parameters": {"n": 3}, "prefix": "a\u2028: 'b'"}},
        runtime={"limits": {"steps": 3}, "packages": {"numpy": "2.1"}},
    ).require()


def test_a_captured_harness_is_a_version_that_stands_by_itself(lab, captured):
    folder = lab.path / "harness_versions" / "desk-1"
    frozen = freeze(captured, folder)
    assert (frozen.identity, frozen.name, frozen.folder) == (captured.identity, "desk-1", folder)
    assert set(tree(folder)) == {
        *("harness.yaml", "desk/__init__.py", "desk/base.py", "desk/tools.py", "rules/a.txt", "prompts/system.jinja"),
        *("prompts/Style-guide.txt", "prompts/style-guide-2.txt", "tools/look.json", "tools/wait.json"),
    }
    assert tree(folder)["desk/base.py"] == (lab.src / "desk" / "base.py").read_bytes()
    assert "Wäit." in (folder / "tools" / "wait.json").read_text()
    assert frozen.findings == ()


def test_it_needs_nothing_of_the_place_where_it_was_captured(lab, captured):
    folder = tracemark.freeze(captured, lab.path / "harness_versions" / "desk-1").folder
    for path in sorted(lab.src.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert load(folder).fingerprint == captured.fingerprint


def test_a_snapshot_with_roots_and_patterns_is_a_version_without_them(lab):
    lab.write("shared/tests/util.py", "x = 1\n")
    lab.write("shared/__init__.py", "")
    old = lab.declare(
        observation_handlers=[{"name": "cut", "entry": "own/cut.py:run"}],
        prompt_templates=[{"name": "p", "file": "p.txt"}],
        ignore=["tests/", "notes.md"],
        files={
            "own/cut.py": "from shared.tests import util\n\n\ndef run(raw):\n    return raw\n",
            "p.txt": "\ufeffx\r\n",
            "notes.md": "",
            "left.bin": "over",
        },
    )
    (old.folder / "left.bin").write_bytes(b"\xff")
    snapshot = from_bytes(to_bytes(load(old.folder)))
    frozen = freeze(snapshot, lab.path / "harness_versions" / "again")
    assert frozen.identity == snapshot.identity
    assert (frozen.manifest.roots, frozen.manifest.ignore) == ((), ())
    assert tree(frozen.folder)["left.bin"] == b"\xff"
    assert "notes.md" not in tree(frozen.folder)


def test_freezing_what_was_frozen_gives_the_same_files(lab, captured):
    first = freeze(captured, lab.path / "v" / "one")
    second = freeze(first, lab.path / "w" / "one")
    assert tree(first.folder) == tree(second.folder)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
PART = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.dictionaries(PART, TEXT, max_size=4), st.dictionaries(PART, TEXT, max_size=3), TEXT)
def test_whatever_is_captured_freezes_to_its_own_fingerprint(tmp_path_factory, prompts, tools, text):
    given = {name: {"name": name, "description": said} for name, said in tools.items()}
    harness = capture(
        prompt_templates=prompts, tool_bindings=given, runtime={"environment": {"A": text}, "limits": {"steps": 1}}
    ).require()
    folder = tmp_path_factory.mktemp("frozen")
    assert freeze(harness, folder / "a").identity == harness.identity


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_already_stays(lab, captured, kind):
    target = lab.path / "there"
    {"folder": target.mkdir, "file": target.touch, "link": lambda: target.symlink_to("nowhere")}[kind]()
    with pytest.raises(UsageError, match="already"):
        freeze(captured, target)
    assert os.path.lexists(target)
    assert sorted(os.listdir(lab.path)) == ["src", "there"]


@pytest.mark.parametrize("name", ["none", "-x", "tm1:x", ".hidden", "a\nb"])
def test_a_version_cannot_have_every_name(lab, captured, name):
    with pytest.raises(UsageError, match="cannot be called"):
        freeze(captured, lab.path / name)


@pytest.mark.parametrize(
    "key",
    [
        "../out.txt",
        "root:../out.txt",
        "package:a/../../out.txt",
        "/tmp/out.txt",
        "root:/tmp/out.txt",
        "~/out.txt",
        "a\\..\\out.txt",
        "a//out.txt",
        "./out.txt",
        "",
        "root:",
        "a\x00b",
        "a\nb",
        "x" * 300,
        "root:harness.yaml",
        "root:root:out.txt",
        "__pycache__/out.txt",
        ".git",
    ],
)
def test_no_file_of_a_forged_snapshot_leaves_the_folder(lab, captured, key):
    evil = forged(captured, files={**captured.files, key: b"x"}, unassigned=(key,))
    snapshot = from_bytes(to_bytes(evil))
    # above the folder only its own siblings are looked at: what other tests left there is much
    before = {*lab.path.rglob("*"), *lab.path.parent.iterdir()}
    with pytest.raises(UsageError):
        freeze(snapshot, lab.path / "versions" / "evil")
    assert {*lab.path.rglob("*"), *lab.path.parent.iterdir()} - before <= {lab.path / "versions"}
    assert not Path("/tmp/out.txt").exists()


def test_a_file_that_is_a_folder_of_another_is_refused(lab, captured):
    evil = forged(captured, files={**captured.files, "desk": b"x"}, unassigned=("desk",))
    with pytest.raises(UsageError, match="cannot be written"):
        freeze(evil, lab.path / "versions" / "evil")
    assert not (lab.path / "versions").exists()


def test_two_files_of_one_path_are_refused_unless_they_are_one(lab, captured):
    keys = {"desk/base.py": captured.files["root:desk/base.py"]}
    same = forged(captured, files={**captured.files, **keys})
    assert files(same, "x")["desk/base.py"] == keys["desk/base.py"]
    with pytest.raises(UsageError, match=r"two files of the harness have the path 'desk/base\.py'"):
        files(forged(captured, files={**captured.files, "desk/base.py": b"other"}), "x")


def test_a_harness_that_would_read_back_as_another_is_not_written(lab, captured):
    # a file that nothing names is none of the harness, and would count as unassigned
    odd = replace(captured, files={**captured.files, "stray.txt": b"x"})
    with pytest.raises(UsageError, match="it would be another harness"):
        freeze(odd, lab.path / "versions" / "odd")
    assert os.listdir(lab.path / "versions") == []


def test_a_text_that_no_file_can_hold_is_refused(lab):
    harness = capture(runtime={"environment": {"A": "x"}}).require()
    runtime = harness.manifest.runtime.model_copy(update={"environment": {"A": "\ud800"}})
    odd = forged(harness, manifest=harness.manifest.model_copy(update={"runtime": runtime}))
    with pytest.raises(UsageError, match="surrogate"):
        freeze(odd, lab.path / "v")


def test_a_prompt_stays_in_the_manifest_where_a_file_has_the_folders_name(lab, captured):
    taken = forged(captured, files={**captured.files, "Prompts": b"x"}, unassigned=("Prompts",))
    manifest = files(taken, "x")["harness.yaml"].decode()
    assert '"Be brief.\\r\\n"' in manifest
    assert freeze(taken, lab.path / "v").fingerprint == taken.fingerprint


def test_the_order_of_a_schema_is_kept(lab):
    schema = {"name": "t", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}, "required": ["z"]}}
    frozen = freeze(capture(tool_bindings={"t": schema}).require(), lab.path / "v")
    assert list(json.loads((frozen.folder / "tools" / "t.json").read_text())["parameters"]["properties"]) == ["z", "a"]
