"""Prompt templates by the role of their messages."""

from typing import Any

import pytest

from tracemark.harness.roles import MINIMUM_LITERAL, Role, Template, by_role, messages_of, role_of
from tracemark.harness.templates import pattern
from tracemark.model.harness import PromptTemplate


@pytest.mark.parametrize(
    ("name", "role"), [("developer", "system"), ("agent", "assistant"), ("user", "user"), ("tool", "tool")]
)
def test_formats_have_two_words_for_some_roles(name: str, role: str) -> None:
    assert role_of(name) == role


def test_the_messages_of_a_role_hold_text() -> None:
    messages = [("developer", "One.", 1), ("user", "Two.", 2), ("system", "", 3), ("system", "Four.", None)]
    assert messages_of("system", messages) == [("developer", "One.", 1), ("system", "Four.", None)]


def test_templates_stand_in_their_order_without_those_that_are_empty_or_another_agents(desk: Any) -> None:
    desk.write(
        "harness.yaml",
        "format: tracemark/harness/1\nprompt_templates:\n"
        "  - {name: main, text: Help.}\n"
        "  - {name: none, text: ''}\n"
        "  - {name: more, text: 'Day: {day}', syntax: format, role: developer}\n"
        "  - {name: helper, text: Help too., agent: helper}\n"
        "  - {name: reminder, text: Go on., role: user, position: any}\n",
    )
    found = by_role(desk.load())
    assert {role: [[each.name for each in place] for place in templates] for role, templates in found.items()} == {
        "system": [["main", "more"], []],
        "user": [[], ["reminder"]],
    }
    assert found["user"] == Role(anywhere=found["user"].anywhere)


def test_what_any_message_may_be_of_is_what_cannot_be_told_or_is_nothing_but_a_hole(desk: Any) -> None:
    desk.write(
        "harness.yaml",
        "format: tracemark/harness/1\nprompt_templates:\n"
        "  - {name: text, text: Help.}\n"
        "  - {name: hole, text: '{all}', syntax: format}\n"
        "  - {name: condition, text: '{% if day %}Day.{% endif %}', syntax: jinja}\n"
        "  - {name: code, entry: 'logic/reply.py:parse'}\n",
    )
    first = by_role(desk.load())["system"].first
    assert [each.name for each in first if each.untold] == ["hole", "condition", "code"]
    assert [each.fits("Help.", None) for each in first] == [False, False, False, False]
    assert [each.fits("Help", None) for each in first] == [None, False, False, False]
    assert [bool(each.difference("Help", None)) for each in first] == [True, False, False, False]


CUT = "Task:"
"""What a format fixes behind the template."""

LONG = "You are the desk of a small shop, and you always answer politely, to the point."


def made(text: str) -> Template:
    stated = PromptTemplate.model_validate({"name": "main", "text": text, "syntax": "format"})
    return Template("main", pattern(stated, text))


@pytest.mark.parametrize(("size", "proves"), [(MINIMUM_LITERAL, True), (MINIMUM_LITERAL - 1, False)])
def test_from_so_many_characters_on_a_template_that_fits_is_proved(size: int, proves: bool) -> None:
    assert made(LONG[:size]).fits(LONG[:size], None) is proves


def test_what_proves_a_template_may_stand_behind_the_separator() -> None:
    text = f"Hi. {CUT} {LONG}"
    assert made(text).fits(text, CUT) is True
    assert made(text).fits(f"Hi. {CUT} Another end altogether.", CUT) is None


def test_a_whole_message_may_hold_the_separator_in_a_hole() -> None:
    shop = made(f"{LONG}\n{{policy}}\n{LONG}")
    assert shop.fits(f"{LONG}\n{CUT} none.\n{LONG}", CUT) is True
    assert shop.fits(f"{LONG}\n{CUT} none.\nAnother end.", CUT) is None
