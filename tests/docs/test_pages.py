"""Pages can be reached, and decisions have the same shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXECUTED = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
FILE = re.compile(r"^```[a-z]+ file=(\S+)$", re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def linked(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    assert [target for target in linked(page) if not target.exists()] == []


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_a_file_to_write_is_named_where_its_reader_sees_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in FILE.findall(text) if f"\n`{name}`\n```" not in text] == []


def test_pages_followed_one_after_the_other_work_in_folders_of_their_own_outside_the_clone() -> None:
    first = [CONSOLE.findall(page.read_text(encoding="utf-8"))[0].splitlines()[:2] for page in EXECUTED]
    assert first == [
        ["$ mkdir -p ~/try/lamps && cd ~/try/lamps"],
        ["$ mkdir -p ~/try && cd ~/try", "$ tracemark init shop"],
    ]


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached = {index, *linked(index), *linked(ROOT / "docs" / "decisions" / "README.md")}
    assert [page for page in PAGES if page not in reached and page != ROOT / "README.md"] == []


@pytest.mark.parametrize(("number", "page"), list(enumerate(DECISIONS, 1)), ids=[page.stem for page in DECISIONS])
def test_a_decision_is_numbered_and_has_context_options_and_outcome(number: int, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.name.startswith(f"{number:04d}-")
    assert text.startswith(f"# {number}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Options", "Outcome"]
