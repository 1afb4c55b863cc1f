"""A command that a hint, a message or a page names exists, with the options that stand behind it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemark.cli.app import load
from tracemark.cli.command_table import COMMANDS, GROUPS
from tracemark.findings import CODES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tracemark"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
MENTION = re.compile(r"(?<![\w.])tracemark (?:--root \S+ )?(?P<words>[a-z]+(?: [a-z]+)?)(?P<rest>[^`;\n]*)")
IN_CODE = re.compile(r"`([^`\n]+)`|^\$ (.+)$", re.MULTILINE)


def docstrings(tree: ast.AST) -> set[ast.AST]:
    """Return the constants that stand alone: docstrings of modules, classes, functions and members."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def texts(source: str) -> Iterator[str]:
    """Yield every text of a module that is no docstring; of an f-string its literal pieces."""
    tree = ast.parse(source)
    left_out = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


def unknown(text: str) -> list[str]:
    """Return the commands and options that a text names and that do not exist."""
    found = []
    for mention in MENTION.finditer(text):
        words = mention["words"].split()
        path = next((name for name in (" ".join(words), words[0]) if name in COMMANDS), None)
        if path is None:
            if not (words[0] in GROUPS and len(words) == 1):
                found.append(f"tracemark {mention['words']}")
            continue
        known = {option for parameter in load(path).params for option in parameter.opts}
        found += [f"{path} {option}" for option in re.findall(r"--[a-z-]+", mention["rest"]) if option not in known]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tracemark audit TRACE", []),
        ("`tracemark --root DIR check` or tracemark traces show X --raw", []),
        ("an update of tracemark, or extra.tracemark as it is", []),
        ("tracemark repair sets it aside", ["tracemark repair sets"]),
        ("tracemark harness thaw", ["tracemark harness thaw"]),
        ("tracemark stamp T --fingerprint F", ["stamp --fingerprint"]),
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str, expected: list[str]) -> None:
    assert unknown(text) == expected


def test_every_command_that_a_finding_names_exists() -> None:
    assert {code: bad for code, entry in CODES.items() if (bad := unknown(entry.hint or ""))} == {}


def test_every_command_that_an_error_or_a_file_names_exists() -> None:
    found = {
        str(path.relative_to(ROOT)): bad
        for path in PACKAGE.rglob("*.py")
        if (bad := [name for text in texts(path.read_text(encoding="utf-8")) for name in unknown(text)])
    }
    assert found == {}


def test_no_hint_names_a_file_that_only_the_repository_of_tracemark_has() -> None:
    said = [text for path in PACKAGE.rglob("*.py") for text in texts(path.read_text(encoding="utf-8"))]
    said += [entry.hint or "" for entry in CODES.values()]
    assert [text for text in said if re.search(r"docs/[a-z]+/[a-z-]+\.md", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_on_a_page_exists(page: Path) -> None:
    code = [first or second for first, second in IN_CODE.findall(page.read_text(encoding="utf-8"))]
    assert [name for text in code for name in unknown(text)] == []
