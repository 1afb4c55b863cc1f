"""Which message is which template's, with what the templates were rendered to and without."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.pairing import pair
from tracemark.harness.roles import Role, Template
from tracemark.harness.templates import pattern
from tracemark.model.harness import PromptTemplate

CONDITION = {"text": "{% if hints %}Hints: {{ hints }}{% endif %}", "syntax": "jinja"}
HOLE = {"text": "{preamble}", "syntax": "format"}
CODE = {"entry": "code.py:run"}
UNTOLD = [CONDITION, HOLE, CODE]


def template(name: str, stated: dict[str, Any] | str) -> Template:
    members = {"text": stated} if isinstance(stated, str) else stated
    made = PromptTemplate.model_validate({"name": name, **members})
    return Template(name, pattern(made, made.text or ""))


def role(*first: tuple[str, dict[str, Any] | str], anywhere: Sequence[tuple[str, dict[str, Any] | str]] = ()) -> Role:
    return Role(tuple(template(*one) for one in first), tuple(template(*one) for one in anywhere))


def told(templates: Role, texts: list[str], renderings: dict[str, list[str]] | None = None) -> dict[str, int | str]:
    """Return for each template that takes a message its number, or the text that is not its own."""
    pairs = pair(templates, texts, renderings=renderings).pairs
    return {name: texts[it.message] if it.fits is None else it.message for name, it in pairs.items()}


RULES, TASK, REMINDER = ("rules", "Rules."), ("task", "Task."), ("reminder", "Go on.")
SENT = {"rules": ["Rules."], "task": ["Task."]}


@pytest.mark.parametrize("renderings", [None, SENT, SENT | {"reminder": ["Go on."]}])
def test_a_reminder_takes_nothing_from_the_templates_behind_it(renderings: Any) -> None:
    templates = role(RULES, TASK, anywhere=[REMINDER])
    assert told(templates, ["Go on.", "Rules.", "Task."], renderings) == {"rules": 1, "task": 2}
    assert told(templates, ["Rules.", "Go on.", "Go on.", "Task.", "Go on."], renderings) == {"rules": 0, "task": 3}
    assert told(templates, ["Go on.", "Rules?", "Task."], renderings) == {"rules": "Rules?", "task": 2}
    assert told(templates, ["Go on."], renderings) == {}


@pytest.mark.parametrize("renderings", [None, SENT, SENT | {"reminder": ["Stop."]}])
def test_a_reminder_that_cannot_be_told_takes_nothing_from_a_message_that_follows(renderings: Any) -> None:
    templates = role(RULES, TASK, anywhere=[("reminder", CODE)])
    assert told(templates, ["Stop.", "Rules.", "Stop.", "Task."], renderings) == {"rules": 1, "task": 3}
    assert told(templates, ["Stop.", "Rules.", "Task?"], renderings) == {"rules": 1, "task": "Task?"}


def test_a_reminder_that_cannot_be_told_has_what_it_was_rendered_to() -> None:
    templates = role(RULES, anywhere=[("reminder", CODE)])
    assert told(templates, ["Stop."], SENT) == {"rules": "Stop."}
    assert told(templates, ["Stop."], SENT | {"reminder": ["Stop."]}) == {}


@pytest.mark.parametrize("untold", UNTOLD)
@pytest.mark.parametrize("renderings", [None, SENT])
def test_a_template_that_may_have_given_no_message_takes_none_of_another(untold: Any, renderings: Any) -> None:
    for place in range(3):
        first: list[Any] = [RULES, TASK]
        first.insert(place, ("hints", untold))
        assert told(role(*first), ["Rules.", "Task."], renderings) == {"rules": 0, "task": 1}
        sent = ["Rules.", "Task."]
        sent.insert(place, "Be kind.")
        expected = {"rules": int(place == 0), "task": 1 + (place < 2), "hints": place}
        assert told(role(*first), sent, renderings) == expected
    both = role(("hints", untold), RULES, ("more", untold), TASK)
    assert told(both, ["Rules."], renderings) == {"rules": 0}
    assert told(both, ["Rules.", "More.", "Task."], renderings) == {"rules": 0, "more": 1, "task": 2}


def test_what_was_rendered_tells_what_a_pattern_cannot() -> None:
    templates = role(("hints", CONDITION), ("more", CODE), TASK)
    sent = ["Be kind.", "Task."]
    assert told(templates, sent) == {"hints": 0, "task": 1}
    assert told(templates, sent, {"more": ["Be kind."], "task": ["Task."]}) == {"more": 0, "task": 1}
    assert told(templates, sent, {"hints": [""], "task": ["Task."]}) == {"more": 0, "task": 1}
    # of what was rendered nothing was sent
    assert told(templates, sent, {"hints": ["Hints: x"], "more": [""], "task": ["Task."]}) == {
        "hints": "Be kind.",
        "task": 1,
    }


def test_a_message_that_no_template_gives_is_the_one_of_the_template_in_turn() -> None:
    assert told(role(RULES, TASK), ["Rules.", "Other."]) == {"rules": 0, "task": "Other."}
    assert told(role(RULES, TASK), ["Task.", "Rules."]) == {"rules": "Task.", "task": "Rules."}
    assert told(role(RULES, TASK), ["Rules.", "Task.", "Thanks."]) == {"rules": 0, "task": 1}


def test_where_renderings_are_known_a_changed_text_is_not_taken_for_no_text() -> None:
    templates = role(("note", CONDITION), TASK)
    known = {"note": ["", "Note."], "task": ["Task."]}
    assert told(templates, ["Note!", "Task."], known) == {"note": "Note!", "task": 1}
    assert told(templates, ["Task."], known) == {"task": 0}
    assert told(role(TASK, ("note", CONDITION)), ["Task.", "Note!"], known) == {"task": 0, "note": "Note!"}
    # something that cannot be told may have given it
    assert told(role(TASK, ("note", CONDITION), anywhere=[("x", CODE)]), ["Task.", "Note!"], known) == {"task": 0}


def test_a_template_of_which_all_renderings_are_no_text_takes_no_turn() -> None:
    templates = role(("note", CONDITION), TASK)
    assert told(templates, ["Note!", "Task."], {"note": [""], "task": ["Task."]}) == {"task": "Note!"}


def test_a_template_that_was_rendered_to_some_text_each_time_is_not_passed_over() -> None:
    templates = role(("hints", CODE), TASK)
    assert told(templates, ["Task."], {"hints": ["Be kind."], "task": ["Task."]}) == {"hints": "Task."}
    assert told(templates, ["Task."], {"hints": ["", "Be kind."], "task": ["Task."]}) == {"task": 0}


@pytest.mark.parametrize("anywhere", [[], [("reminder", CODE)]])
def test_a_message_that_two_may_have_given_is_that_of_the_one_which_gives_a_message_in_any_case(anywhere: Any) -> None:
    templates = role(("hints", CODE), TASK, anywhere=anywhere)
    assert told(templates, ["Task."], {"hints": ["", "Task."], "task": ["Task."]}) == {"task": 0}


def test_what_is_passed_over_is_no_better_known_than_what_a_template_takes_that_cannot_be_told() -> None:
    templates = role(("hints", CODE), TASK, anywhere=[("reminder", CODE)])
    assert told(templates, ["Stop.", "Task."]) == {"hints": 0, "task": 1}


def test_of_equal_ways_the_earliest_template_takes_the_earliest_message() -> None:
    assert told(role(("hints", CODE), ("more", CODE)), ["Be kind."]) == {"hints": 0}


def test_a_template_without_a_message_at_the_end_is_proved_by_nothing() -> None:
    long = "You are the desk of a small shop, and you always answer politely and to the point."
    templates = role(("hints", CODE), ("main", long), anywhere=[("again", long)])
    assert pair(templates, [long]).proved == ["again"]
    assert pair(templates, ["Be kind.", long]).proved == ["main", "again"]
    assert pair(templates, []).proved == []


def test_a_template_that_may_have_given_any_message_leaves_none_in_front_of_its_own_to_another() -> None:
    long = "You are the desk of a small shop, and you always answer politely and to the point."
    templates = role(("hints", CODE), ("main", long), anywhere=[("reminder", CODE)])
    assert pair(templates, ["Be kind.", long]).proved == ["main"]


def test_a_text_that_was_rendered_proves_its_template_however_short_and_a_short_pattern_proves_none() -> None:
    templates = role(RULES, anywhere=[REMINDER])
    assert pair(templates, ["Rules.", "Go on."], renderings={"rules": ["Rules."]}).proved == ["rules"]
    assert pair(templates, ["Rules.", "Go on."]).proved == []


def test_many_templates_and_messages_take_no_more_time_than_their_product() -> None:
    first = [(f"t{number}", [CONDITION, "Rules.", "Task."][number % 3]) for number in range(90)]
    templates = role(*first, anywhere=[REMINDER, ("code", CODE)])
    known = {name: ["", f"Hints: {name}"] for name, _ in first[::3]}
    for renderings in (None, known):
        pairs = pair(templates, ["Rules.", "Go on.", "Task.", "Go on."] * 30, renderings=renderings).pairs
        assert [found.message for name, found in pairs.items() if name not in known] == [*range(0, 120, 2)]
    assert told(role(TASK, anywhere=[REMINDER]), ["Go on."] * 20_000 + ["Task."]) == {"task": 20_000}


KINDS: dict[str, Any] = {
    "text": lambda name: {"text": f"The text of {name}."},
    "variable": lambda name: {"text": f"{name} on {{day}}.", "syntax": "format"},
    "condition": lambda _: CONDITION,
    "code": lambda _: CODE,
}


@st.composite
def sent(draw: st.DrawFn) -> tuple[Role, list[str], dict[str, list[str]], dict[str, int]]:
    """Templates, what a run sent of them, what they were rendered to, and the message of each."""
    role_of: dict[bool, list[Template]] = {True: [], False: []}
    texts: list[str] = []
    renderings: dict[str, list[str]] = {}
    messages: dict[str, int] = {}
    kinds = draw(st.lists(st.tuples(st.booleans(), st.sampled_from(sorted(KINDS))), max_size=7))
    reminders: list[str] = []
    for number, (first, kind) in enumerate(kinds):
        name = f"t{number}"
        role_of[first].append(template(name, KINDS[kind](name)))
        given = {
            "text": st.just(f"The text of {name}."),
            "variable": st.sampled_from([f"{name} on Monday.", f"{name} on Friday."]),
        }.get(kind, st.sampled_from(["", f"Hints: {name}", f"More hints: {name}"]))
        made = draw(st.lists(given, min_size=kind in ("text", "variable"), max_size=3))
        if made:
            renderings[name] = made
        if not first:
            reminders += [text for text in made if text]
        elif made and (text := draw(st.sampled_from(made))):
            messages[name] = len(texts)
            texts.append(text)
    for text in draw(st.lists(st.sampled_from(reminders), max_size=4)) if reminders else []:
        place = draw(st.integers(0, len(texts)))
        texts.insert(place, text)
        messages = {name: index + (index >= place) for name, index in messages.items()}
    return Role(tuple(role_of[True]), tuple(role_of[False])), texts, renderings, messages


@given(sent())
def test_what_was_sent_is_paired_alike_with_renderings_and_without(run: Any) -> None:
    templates, texts, renderings, messages = run
    assert told(templates, texts, renderings) == messages
    plain = [one.name for one in templates.first if not one.untold]
    without = told(templates, texts)
    assert {name: without[name] for name in plain} == {name: messages[name] for name in plain}
    assert all(isinstance(message, int) for message in without.values())
