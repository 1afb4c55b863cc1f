"""The page on identity says what is asserted of the real trace files now, nothing of it is false, and it would show."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracemark.harness import observed

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "identity.py"
PAGE = ROOT / "docs" / "reference" / "identity.md"

pytestmark = pytest.mark.shared_data

Half = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def identity() -> Iterator[ModuleType]:
    """The script as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield importlib.import_module("identity")


@pytest.fixture(scope="module")
def collection(identity: ModuleType) -> Any:
    return identity.collect()


@pytest.fixture(scope="module")
def found(identity: ModuleType, collection: Any) -> Any:
    return identity.label(collection, identity.rules())


def figures(text: str) -> dict[str, list[int]]:
    """Return the first table of a page: by component same, different, not asserted, right, two kinds of false, open."""
    table = text.partition("## What is asserted")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)
    return {name: [int(cell) for cell in cells.split(" | ")] for name, cells in rows}


def test_the_page_is_current_and_nothing_asserted_is_false() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = figures(PAGE.read_text(encoding="utf-8"))
    assert len(rows) == 4
    for same, different, unknown, right, merges, splits, unlabelled in rows.values():
        assert (merges, splits) == (0, 0)
        assert same + different == right + unlabelled
        # most of what is asserted is known to be true, not only not known to be false
        assert right >= 0.9 * (same + different) > 0
        assert unknown > 0


def formless(half: Half) -> Half:
    return {name: [{**entry, "form": "template"} for entry in entries] for name, entries in half.items()}


def without_forms(one: Half, other: Half, confirmed: Any) -> Any:
    return observed.compare(formless(one), formless(other), confirmed)


def on_shared_parts(one: Half, other: Half, confirmed: Any) -> Any:
    def cut(half: Half, by: Half) -> Half:
        return {
            name: [entry for entry in entries if entry["part"] in {kept["part"] for kept in by.get(name, ())}]
            for name, entries in half.items()
        }

    return observed.compare(cut(one, other), cut(other, one), confirmed)


@pytest.mark.parametrize(
    ("careless", "asserted"),
    [(without_forms, {"same", "different"}), (on_shared_parts, {"same"})],
    ids=["without forms", "agreement on shared parts decides"],
)
def test_a_careless_comparison_is_found_out(
    identity: ModuleType,
    found: Any,
    monkeypatch: pytest.MonkeyPatch,
    careless: Callable[..., Any],
    asserted: set[str],
) -> None:
    monkeypatch.setattr(identity, "compare", careless)
    _, false = identity.page(found, identity.rules())
    assert {row.split(" | ")[1] for row in false} == asserted


def test_rendered_texts_that_decide_would_split_harnesses(
    identity: ModuleType, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "DECISIVE", (*observed.DECISIVE, "rendered"))
    _, false = identity.page(found, identity.rules())
    assert {row.split(" | ")[1] for row in false} == {"different"}


def test_labels_and_versions_alone_would_merge_and_split(identity: ModuleType, found: Any) -> None:
    text, _ = identity.page(found, identity.rules())
    [row] = re.findall(r"^\| label and version \| `prompt_templates` \| (.+) \|$", text, re.MULTILINE)
    merges, splits = (int(cell) for cell in row.split(" | ")[4:6])
    assert merges > 1000
    assert splits > 1000


def test_a_rule_that_speaks_of_no_trace_or_of_a_text_that_is_not_there_ends_the_script(
    identity: ModuleType, collection: Any
) -> None:
    rule = identity.rules()[0]
    with pytest.raises(SystemExit, match="no trace for"):
        identity.label(collection, [rule._replace(files=("atif/nobody__*",))])
    with pytest.raises(SystemExit, match="does not hold"):
        identity.label(collection, [rule._replace(holds=("You must end every command with a newline",))])
    with pytest.raises(SystemExit, match="two labels"):
        identity.label(collection, [rule, rule._replace(labels={"prompt_templates": "another"})])
