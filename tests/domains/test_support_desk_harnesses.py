"""The harness versions of the support desk differ in one handler and a few lines of a prompt, and in nothing else."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest

from tracemark.harness.loading import load
from tracemark.harness.version import Harness

FOLDER = Path(__file__).resolve().parents[2] / "harness_versions"
HARNESSES = ("desk-plain", "desk-labelled")
ALL = (*HARNESSES, "desk-advised", "desk-commented")


def harness(name: str) -> Harness:
    return load(FOLDER / name)


def differing(one: str, other: str) -> set[tuple[str, str]]:
    """Return the parts, with their components, in which two harnesses differ."""
    first, second = (harness(name).identity.parts for name in (one, other))
    return {
        (component, part)
        for component in first
        for part in first[component] | second[component]
        if first[component].get(part) != second[component].get(part)
    }


@pytest.mark.parametrize("other", ["desk-plain", "desk-advised"])
def test_they_differ_in_exactly_one_prompt_and_one_handler(other: str) -> None:
    assert differing("desk-labelled", other) == {("prompt_templates", "system"), ("observation_handlers", "observe")}


def test_each_has_a_fingerprint_of_its_own() -> None:
    assert len({harness(name).identity.fingerprint for name in ALL}) == len(ALL)


def test_one_differs_from_the_accepted_one_in_a_comment_alone() -> None:
    assert differing("desk-labelled", "desk-commented") == {("observation_handlers", "observe")}
    accepted, commented = (
        (FOLDER / name / "handlers" / "observe.py").read_text(encoding="utf-8")
        for name in ("desk-labelled", "desk-commented")
    )
    changed = [line for line in difflib.ndiff(accepted.splitlines(), commented.splitlines()) if line[0] in "+-?"]
    assert [line[:2] + line[2:].strip()[:1] for line in changed] == ["+ #"]
    assert ast.dump(ast.parse(accepted)) == ast.dump(ast.parse(commented))


def test_the_prompts_differ_in_exactly_one_line() -> None:
    plain, labelled = (
        (FOLDER / name / "prompts" / "system.jinja").read_text(encoding="utf-8").splitlines() for name in HARNESSES
    )
    changed = [line for line in difflib.ndiff(plain, labelled) if line[0] in "+-"]
    assert [line[0] for line in changed] == ["-", "+"]
    assert "status" in changed[0]
    assert "status" in changed[1]


@pytest.mark.parametrize(("one", "other"), [HARNESSES, ("desk-advised", "desk-labelled")])
def test_their_files_differ_in_the_handler_the_prompt_and_the_manifest_alone(one: str, other: str) -> None:
    files = [
        {
            path.relative_to(FOLDER / name).as_posix(): path.read_bytes()
            for path in (FOLDER / name).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        for name in (one, other)
    ]
    assert files[0].keys() == files[1].keys()
    changed = {name for name in files[0] if files[0][name] != files[1][name]}
    assert changed == {"handlers/observe.py", "harness.yaml", "prompts/system.jinja"}


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wrong_with_a_harness(name: str) -> None:
    assert harness(name).findings == ()


@pytest.mark.parametrize("name", ALL)
def test_no_part_is_unassigned(name: str) -> None:
    assert "unassigned" not in harness(name).identity.parts["runtime"]


@pytest.mark.parametrize("name", ALL)
def test_the_system_prompt_can_be_compared_with_a_message(name: str) -> None:
    text = (FOLDER / name / "prompts" / "system.jinja").read_text(encoding="utf-8")
    pieces = text.replace("{{ policy }}", "\0").replace("{{ today }}", "\0").split("\0")
    assert sum(map(len, pieces)) >= 64
    assert pieces[0].strip()
    assert pieces[-1].strip()


def test_the_declared_mutations_are_the_six_tools_that_write() -> None:
    bindings = harness("desk-plain").manifest.tool_bindings
    assert len(bindings) == 10
    assert {name for name, binding in bindings.items() if binding.mutates} == {
        "refund_order",
        "cancel_order",
        "change_address",
        "issue_gift_card",
        "redeem_gift_card",
        "reschedule_booking",
    }
