"""Pages can be reached, and decisions have the same shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def linked(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    assert [target for target in linked(page) if not target.exists()] == []


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
