"""Writing known and captured harnesses out as versions."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemark.acts import harnesses
from tracemark.acts.corpus import Corpus
from tracemark.acts.harness_freeze import freeze
from tracemark.errors import ManifestError, UnknownNameError, UsageError

from .conftest import Shop

MODULE = """
import tracemark
from agent_of_the_user.tools import look

FOUND = tracemark.capture(tool_bindings=[look], prompt_templates={"system": "You serve."})
HARNESS = FOUND.require()
BROKEN = tracemark.capture(tool_bindings={"look": lambda order: order})
NUMBER = 3


def made():
    return tracemark.capture(prompt_templates={"system": "You serve."})


def fails():
    raise ValueError("no harness today")


def leaves():
    raise SystemExit(3)


class Inside:
    found = FOUND
"""


@pytest.fixture
def agent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of the user's in the working folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = shop.root / "agent_of_the_user"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "tools.py").write_text("def look(order: str):\n    return order\n")
    (folder / "harness.py").write_text(MODULE)
    yield folder
    for name in [name for name in sys.modules if name.startswith("agent_of_the_user")]:
        del sys.modules[name]


def test_a_snapshot_is_written_out_by_name_or_fingerprint(shop: Shop) -> None:
    fingerprint = shop.fingerprint("desk_b")
    shutil.rmtree(shop.root / "harness_versions" / "desk_b")
    for number, name in enumerate(("desk_b", fingerprint, fingerprint[4:14])):
        frozen = freeze(shop.root, name, f"again-{number}")
        source = "snapshot" if number == 0 else "harness_versions/again-0"
        assert (frozen.fingerprint, frozen.name, frozen.source) == (fingerprint, f"again-{number}", source)
        assert Corpus(shop.root).resolve(f"again-{number}").fingerprint == fingerprint
    assert frozen.files == ("harness.yaml", "look.json", "observe.py", "system.txt", "tools.py")
    assert [found.code for found in frozen.findings] == ["harness-twice"]


def test_a_frozen_snapshot_is_the_version_of_its_traces(shop: Shop) -> None:
    shutil.rmtree(shop.root / "harness_versions" / "desk_b")
    freeze(shop.root, "desk_b", "desk_b")
    rows = {row["name"]: row for row in harnesses.list_(shop.root).harnesses}
    assert (rows["desk_b"]["source"], rows["desk_b"]["traces"]) == ("harness_versions/desk_b", 2)


def test_a_copy_of_a_version_is_told_to_be_one(shop: Shop) -> None:
    frozen = freeze(shop.root, "desk_a", "copy")
    assert [(found.code, found.where) for found in frozen.findings] == [
        ("harness-twice", "harness_versions/copy, harness_versions/desk_a")
    ]
    assert frozen.exit_code == 0


@pytest.mark.parametrize("attribute", ["FOUND", "HARNESS", "made", "Inside.found"])
def test_what_a_module_of_the_users_captured_is_written_out(shop: Shop, agent: Path, attribute: str) -> None:
    before = list(sys.path)
    name = f"agent_of_the_user.harness:{attribute}"
    frozen = freeze(shop.root, name, "mine")
    assert (frozen.source, frozen.folder) == (name, "harness_versions/mine")
    assert Corpus(shop.root).resolve("mine").fingerprint == frozen.fingerprint
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("agent_of_the_user.harness:NUMBER", "object of 'int', and no harness"),
        ("agent_of_the_user.harness:Inside", "object of 'Inside', and no harness"),
        ("agent_of_the_user.harness:absent", "has no attribute 'absent'"),
        ("agent_of_the_user.harness:fails", "ValueError: no harness today"),
        ("agent_of_the_user.harness:leaves", "it ends the program with 3"),
        ("agent_of_the_user.absent:FOUND", "it cannot be loaded: No module named 'agent_of_the_user.absent'"),
    ],
)
def test_what_is_no_harness_there_is_said(shop: Shop, agent: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        freeze(shop.root, name, "mine")
    assert said in raised.value.message
    assert raised.value.where == name
    assert not (shop.root / "harness_versions" / "mine").exists()


def test_of_a_module_that_is_not_found_the_places_are_told(shop: Shop, agent: Path) -> None:
    with pytest.raises(UsageError) as raised:
        freeze(shop.root, "nowhere_at_all:FOUND", "mine")
    assert raised.value.hint is not None
    assert "current folder" in raised.value.hint
    assert "PYTHONPATH" in raised.value.hint


def test_a_captured_harness_with_an_unrecorded_part_is_not_written(shop: Shop, agent: Path) -> None:
    with pytest.raises(ManifestError, match="tool_bindings 'look': a lambda"):
        freeze(shop.root, "agent_of_the_user.harness:BROKEN", "mine")


@pytest.mark.parametrize("label", ["../out", "a/b", "a\\b", "none", ".hidden", "desk_a"])
def test_a_version_is_a_new_folder_in_its_place(shop: Shop, label: str) -> None:
    before = sorted(os.listdir(shop.root / "harness_versions"))
    with pytest.raises(UsageError):
        freeze(shop.root, "desk_b", label)
    assert sorted(os.listdir(shop.root / "harness_versions")) == before


def test_what_nothing_answers_to_is_named(shop: Shop) -> None:
    for name in ("desk_z", "tm1:abcdef"):
        with pytest.raises(UnknownNameError):
            freeze(shop.root, name, "mine")


def test_the_label_of_a_snapshot_imports_nothing(shop: Shop, agent: Path) -> None:
    (agent / "harness.py").write_text("raise SystemExit\n")
    manifest = shop.root / "harness_versions" / "desk_b" / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("name: desk_b", "name: 'agent_of_the_user.harness:FOUND'"))
    assert freeze(shop.root, shop.fingerprint("desk_b"), "mine").name == "mine"
    assert "agent_of_the_user.harness" not in sys.modules
