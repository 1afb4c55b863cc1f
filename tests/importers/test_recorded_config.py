"""A recorded configuration is believed as far as the messages that were sent confirm it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import verbatim_digest
from tracemark.importers.recorded_config import Prompt, judge

LONG = "You work in a shell, one command at a time. "


def forms(*prompts: Prompt, syntaxes: tuple[str, ...] = ("jinja",)) -> dict[str, str]:
    return {entry["part"]: entry["form"] for entry in judge(prompts, syntaxes).entries}


def test_a_template_that_makes_up_its_message_confirms() -> None:
    found = judge([Prompt("system", LONG + "{{task}}!", LONG + "Fix it!")])
    assert found.confirmed
    assert found.contradiction is None
    assert found.entries == [
        {"part": "system", "form": "template", "digest": verbatim_digest(LONG + "{{task}}!")},
    ]


def test_a_template_that_cannot_give_its_message_takes_all_the_others_with_it() -> None:
    found = judge(
        [Prompt("system", LONG, LONG.rstrip() + "  "), Prompt("instance", LONG + "{{task}}", LONG + "Fix it!")]
    )
    assert not found.confirmed
    assert found.contradiction is not None
    assert "template of system" in found.contradiction
    assert [entry["form"] for entry in found.entries] == ["rendered", "rendered"]


def test_of_several_templates_that_contradict_the_first_is_told() -> None:
    found = judge([Prompt("system", LONG, "Other."), Prompt("instance", LONG, "Another.")])
    assert found.contradiction is not None
    assert "template of system" in found.contradiction


@pytest.mark.parametrize(
    "template", ["{{task}}", "Do: {{task}}", LONG + "{% if task %}{{task}}{% endif %}", LONG + "{% for", None, 7, ["x"]]
)
def test_a_template_that_tells_too_little_neither_confirms_nor_contradicts(template: object) -> None:
    found = judge([Prompt("system", template, "Do: it")])
    assert (found.confirmed, found.contradiction) == (False, None)
    assert [entry["form"] for entry in found.entries] == ["rendered"]


@pytest.mark.parametrize("sent", [None, ""])
def test_a_message_that_was_not_seen_proves_nothing(sent: str | None) -> None:
    found = judge([Prompt("system", LONG, sent)])
    assert found == ([], False, None)


def test_either_syntax_of_a_format_may_fit() -> None:
    old, new = Prompt("system", LONG + "{task}!", LONG + "x!"), Prompt("instance", LONG + "{{task}}!", LONG + "x!")
    assert forms(old, new, syntaxes=("jinja", "format")) == {"system": "template", "instance": "template"}
    assert judge([old]).contradiction is not None


def test_what_the_configuration_says_of_a_variable_must_stand_in_the_message() -> None:
    prompt = Prompt("system", LONG + "{{docs}}, {{size}} lines: {{task}}", LONG + "ls, 100 lines: Fix it!")
    for values, confirmed in (
        ({"docs": "ls", "size": "100"}, True),
        ({"docs": "cat"}, False),
        ({"no name": "x"}, True),
    ):
        found = judge([prompt], values=values)
        assert (found.confirmed, found.contradiction is None) == (confirmed, confirmed)


def test_a_template_is_not_run() -> None:
    template = LONG + "{{ cycler.__init__.__globals__.os.system('exit 7') }}"
    assert judge([Prompt("system", template, LONG + "7")]).confirmed


@given(st.text(alphabet="ab {}%\n", max_size=12), st.text(alphabet="ab \n", max_size=6))
def test_a_rendering_never_contradicts_its_template(tail: str, task: str) -> None:
    literal = LONG + "".join(mark for mark in tail if mark not in "{}%")
    found = judge([Prompt("system", literal + "{{task}}.", literal + task + ".")], ("jinja", "format"))
    assert found.contradiction is None
    assert found.confirmed
