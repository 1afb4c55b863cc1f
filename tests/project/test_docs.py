"""The documentation is complete and current, and what is tracked is fit to be seen."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tracemark.acts import scaffold
from tracemark.cli.command_table import COMMANDS, GROUPS
from tracemark.findings import CODES, Severity

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tracemark"
REFERENCE = ROOT / "docs" / "reference"

# each pattern is written so that it does not find itself
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~/-])/(?:work|root|home|Users|mnt)/\w"),
    "an option that names a package index": re.compile(r"-[-](?:index-url|extra-index-url|find-links|trusted-host)\b"),
    "an unfinished place": re.compile(r"(?:#|//|<!--) *(?:TO[D]O|FIX[M]E|XX[X])\b"),
    "a marker of a merge": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}
# which options take a value, of every program that agents call, is what that file is for
ALLOWED = {("an option that names a package index", ROOT / "src/tracemark/failures/programs.toml")}


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def codes_used() -> set[str]:
    """Return every finding code that the package makes findings of."""
    used = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and path.name != "findings.py":
                used.add(node.value)
    return used & set(CODES)


def codes_made() -> set[str]:
    """Return every literal code that `finding(…)` is called with."""
    made = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"finding", "findings.finding"} and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    made.add(first.value)
    return made


def test_the_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_and_group_has_its_page() -> None:
    page = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    missing = [path for path in [*GROUPS, *COMMANDS] if f"\n## tracemark {path}\n" not in page]
    assert missing == []


def test_the_page_of_parameters_has_each_with_the_default_that_a_new_corpus_states() -> None:
    page = (REFERENCE / "params.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| `([^`]*)` \|", page, re.MULTILINE))
    stated = dict(leaves(YAML(typ="safe", pure=True).load(scaffold.PARAMS)))
    assert {name: YAML(typ="safe", pure=True).load(value) for name, value in shown.items()} == stated


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, member in value.items():
        # an empty mapping is a value, whose members nobody names before
        if isinstance(member, dict) and member:
            yield from leaves(member, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", member


def test_every_finding_code_made_is_in_the_table() -> None:
    assert codes_made() - set(CODES) == set()


def test_every_finding_code_of_the_table_is_used() -> None:
    assert set(CODES) - codes_used() == set()


def test_every_finding_says_what_it_means_and_what_to_do() -> None:
    assert [code for code, entry in CODES.items() if not entry.meaning.endswith(".")] == []
    assert [code for code, entry in CODES.items() if not entry.hint and entry.severity is Severity.ERROR] == []


def test_every_json_member_is_explained() -> None:
    page = (REFERENCE / "json.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| `[^\n]*` \|\s*\|$", page, re.MULTILINE) == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str) -> None:
    found = []
    for path in tracked():
        if (what, path) in ALLOWED:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()!r}" for match in FORBIDDEN[what].finditer(text)]
    assert found == []
