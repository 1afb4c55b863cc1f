"""The two harness versions of the support desk differ in one handler and one line of a prompt, and in nothing else."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tracemark.harness.loading import load
from tracemark.harness.version import Harness

FOLDER = Path(__file__).resolve().parents[2] / "harness_versions"
HARNESSES = ("desk-plain", "desk-labelled")


def harness(name: str) -> Harness:
    return load(FOLDER / name)


def test_they_differ_in_exactly_one_prompt_and_one_handler() -> None:
    plain, labelled = (harness(name).identity.parts for name in HARNESSES)
    differing = {
        (component, part)
        for component in plain
        for part in plain[component] | labelled[component]
        if plain[component].get(part) != labelled[component].get(part)
    }
    assert differing == {("prompt_templates", "system"), ("observation_handlers", "observe")}
    assert harness("desk-plain").identity.fingerprint != harness("desk-labelled").identity.fingerprint


def test_the_prompts_differ_in_exactly_one_line() -> None:
    plain, labelled = (
        (FOLDER / name / "prompts" / "system.jinja").read_text(encoding="utf-8").splitlines() for name in HARNESSES
    )
    changed = [line for line in difflib.ndiff(plain, labelled) if line[0] in "+-"]
    assert [line[0] for line in changed] == ["-", "+"]
    assert "status" in changed[0]
    assert "status" in changed[1]


def test_their_files_differ_in_the_handler_the_prompt_and_the_manifest_alone() -> None:
    files = [
        {
            path.relative_to(FOLDER / name).as_posix(): path.read_bytes()
            for path in (FOLDER / name).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        for name in HARNESSES
    ]
    assert files[0].keys() == files[1].keys()
    differing = {name for name in files[0] if files[0][name] != files[1][name]}
    assert differing == {"handlers/observe.py", "harness.yaml", "prompts/system.jinja"}


@pytest.mark.parametrize("name", HARNESSES)
def test_nothing_is_wrong_with_a_harness(name: str) -> None:
    assert harness(name).findings == ()


@pytest.mark.parametrize("name", HARNESSES)
def test_no_part_is_unassigned(name: str) -> None:
    assert "unassigned" not in harness(name).identity.parts["runtime"]


@pytest.mark.parametrize("name", HARNESSES)
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
