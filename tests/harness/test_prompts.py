"""Which messages in front of the first reply, and system messages behind it, the templates of a harness can give."""

import re
import sys
from itertools import product
from typing import Any

import pytest

from tracemark.harness.match import Content, Contradiction, Matcher

A = "You are the desk of a small shop, and you always answer politely and to the point."
B = "Rules of the house: never reveal what a customer bought, and never promise what you cannot hold."
REMINDER = "Reminder: look things up in the list of the stock before you promise anything to a customer."
X = "Something else."

OPTIONAL = [
    {"text": "{% if hints %}Hints: {{ hints }}{% endif %}", "syntax": "jinja"},
    {"text": "{% for hint in hints %}{{ hint }}{% endfor %}", "syntax": "jinja"},
    {"text": "{preamble}", "syntax": "format"},
    {"text": "{{ preamble }}{{ hints }}", "syntax": "jinja"},
    {"entry": "code.py:run"},
    {"file": "bytes.txt"},
]


def templates(*members: dict[str, Any] | str, role: str = "system", **others: Any) -> list[dict[str, Any]]:
    whole = [{"text": member} if isinstance(member, str) else member for member in members]
    return [{"name": f"t{number}", "role": role, **others, **member} for number, member in enumerate(whole)]


def messages(*texts: str, role: str = "system") -> Content:
    return Content(messages=[(role, text, number) for number, text in enumerate(texts, 1)])


def behind_a_reply(*texts: str) -> Content:
    later = [("system", text, number) for number, text in enumerate(texts, 4)]
    return Content(messages=[("system", A, 1), ("user", "Help", 2)], later_system=later)


def differing(matcher: Matcher, content: Content) -> list[tuple[str, int | None]]:
    judgement = matcher.judge(content)
    assert matcher.excludes(content) is judgement.contradicted
    assert all(isinstance(each, Contradiction) for each in judgement.contradictions)
    return [(each.part, each.step) for each in judgement.contradictions]


def corroborated(matcher: Matcher, content: Content) -> set[str]:
    evidence = matcher.judge(content).evidence["prompt_templates"]
    return {name for name, value in evidence.items() if value == "corroborated"}


@pytest.mark.parametrize("optional", OPTIONAL)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_template_that_may_have_given_nothing_takes_no_place(matcher: Any, optional: Any, place: int) -> None:
    members: list[Any] = [A, B]
    members.insert(place, optional)
    declared = matcher(prompt_templates=templates(*members))
    assert differing(declared, messages(A, B)) == []
    given = [A, B]
    given.insert(place, "Hints: be kind.")
    assert differing(declared, messages(*given)) == []
    assert corroborated(declared, messages(*given)) == {f"t{number}" for number in range(3) if number != place}


@pytest.mark.parametrize("optional", OPTIONAL)
def test_a_template_that_may_have_given_nothing_hides_no_difference(matcher: Any, optional: Any) -> None:
    declared = matcher(prompt_templates=templates(optional, A, B))
    assert differing(declared, messages(A, X, B)) == [("t1", 2)]
    # of two ways with one difference each, the one that leaves fewer templates without a message
    assert differing(declared, messages(B, B)) == [("t1", 1)]
    assert differing(declared, messages(X, X)) != []
    assert differing(declared, messages(X, X, A, B)) != []
    assert differing(declared, messages(X, A, B)) == []


def test_a_template_corroborates_only_when_no_other_way_leaves_it_without_the_message(matcher: Any) -> None:
    declared = matcher(prompt_templates=templates(OPTIONAL[0], A, B))
    # the message may be the optional template's, and those of the others may not have been recorded
    assert corroborated(declared, messages(A)) == set()
    assert corroborated(declared, messages(A, B)) == {"t1", "t2"}
    assert corroborated(declared, messages(X, A, B)) == {"t1", "t2"}
    plain = matcher(prompt_templates=templates(A, B))
    assert corroborated(plain, messages(A)) == {"t0"}
    assert corroborated(plain, messages(A, X)) == {"t0"}


def test_an_empty_template_gives_no_message(matcher: Any) -> None:
    declared = matcher(prompt_templates=templates("", A))
    assert differing(declared, messages(A)) == []
    assert corroborated(declared, messages(A)) == {"t1"}
    assert differing(declared, messages(X)) == [("t1", 1)]


@pytest.mark.parametrize("role", ["system", "user"])
def test_a_message_of_a_template_of_any_position_takes_no_place(matcher: Any, role: str) -> None:
    reminder = {"text": REMINDER, "position": "any"}
    declared = matcher(prompt_templates=templates(A, reminder, B, role=role))
    for texts in ([REMINDER, A, B], [A, REMINDER, REMINDER, B], [REMINDER], [A, REMINDER]):
        assert differing(declared, messages(*texts, role=role)) == []
    assert corroborated(declared, messages(REMINDER, A, B, role=role)) == {"t0", "t1", "t2"}
    assert differing(declared, messages(REMINDER, X, role=role)) == [("t0", 2)]
    assert differing(declared, messages(REMINDER, B, A, role=role)) == [("t0", 2), ("t2", 3)]


def test_a_message_that_a_template_in_turn_gives_is_its_own(matcher: Any) -> None:
    again = matcher(prompt_templates=templates(A, {"text": A, "position": "any"}, B))
    assert corroborated(again, messages(A, B)) == {"t0", "t1", "t2"}
    assert differing(again, messages(A, A, B)) == []
    # what a hole gives is as well what another template gives
    noted = matcher(
        prompt_templates=templates(
            {"text": "Note: {a} of the shop", "syntax": "format"},
            {"text": "Note: {b}", "syntax": "format", "position": "any"},
            B,
        )
    )
    assert differing(noted, messages("Note: opening hours of the shop", "Note: rules of the shop", B)) == []


@pytest.mark.parametrize("unknown", [OPTIONAL[0], OPTIONAL[4], OPTIONAL[5]])
def test_what_cannot_be_told_may_stand_in_front_of_a_message_but_not_in_its_place(matcher: Any, unknown: Any) -> None:
    declared = matcher(prompt_templates=templates({**unknown, "position": "any"}, A, role="user"))
    assert differing(declared, messages(X, X, A, role="user")) == []
    assert corroborated(declared, messages(X, A, role="user")) == {"t1"}
    assert differing(declared, messages(X, X, role="user")) == [("t1", 1)]


KINDS = {"a": A, "b": B, "r": REMINDER, "x": X}


@pytest.mark.parametrize(("count", "reminded"), [(1, False), (2, False), (3, False), (1, True), (2, True)])
def test_messages_contradict_exactly_when_no_way_is_left_to_give_them(matcher: Any, count: int, reminded: bool) -> None:
    between, letters = ("r*", "abrx") if reminded else ("", "abx")
    for number, order in enumerate(product("abo", repeat=count)):
        optional = OPTIONAL[number % len(OPTIONAL)]
        members = [optional if kind == "o" else KINDS[kind] for kind in order]
        declared = templates(*members, role="user")
        if reminded:
            declared.append({"name": "reminder", "text": REMINDER, "role": "user", "position": "any"})
        one = matcher(prompt_templates=declared)
        begun = [
            between + "".join(f"{kind if kind != 'o' else '.?'}{between}" for kind in order[:end])
            for end in range(count + 1)
        ]
        possible = re.compile("|".join([*begun[:-1], begun[-1] + ".*"]))
        for word in ("".join(each) for length in range(5) for each in product(letters, repeat=length)):
            content = messages(*(KINDS[letter] for letter in word), role="user")
            assert bool(differing(one, content)) is (possible.fullmatch(word) is None), (order, word)


def test_many_templates_and_messages_take_no_more_time_than_their_product(matcher: Any) -> None:
    some = [member for _ in range(20) for member in (OPTIONAL[0], A, {"text": REMINDER, "position": "any"}, B)]
    declared = matcher(prompt_templates=templates(*some, role="user"))
    assert differing(declared, messages(*[A, REMINDER, B] * 20, role="user")) == []
    assert differing(declared, messages(*[REMINDER, B] * 60, role="user")) != []


@pytest.mark.parametrize("other", [{"role": "user"}, {"role": "user", "position": "any"}, {"role": "assistant"}])
def test_system_templates_of_named_agents_alone_leave_open_who_gives_a_system_message(
    matcher: Any, other: dict[str, Any]
) -> None:
    main, help_ = templates({"text": A, "agent": "main"}, {"text": B, **other})
    declared = matcher(prompt_templates=[main, help_])
    assert differing(declared, messages(A)) == []
    both = matcher(prompt_templates=[main, help_, {"name": "own", "text": B}])
    assert differing(both, messages(A)) != []


@pytest.mark.parametrize("trailing", OPTIONAL)
def test_what_may_give_anything_or_nothing_behind_the_last_template_makes_no_harness_another(
    matcher: Any, trailing: dict[str, Any]
) -> None:
    system = templates(A)
    task = {"name": "task", "text": B, "role": "user"}
    more = {"name": "more", **trailing, "role": "user"}
    assert matcher(prompt_templates=[*system, more]).compared == matcher(prompt_templates=system).compared
    one, two = ([*system, task, more], [*system, task])
    assert matcher(prompt_templates=one).compared == matcher(prompt_templates=two).compared
    in_front = matcher(prompt_templates=[*system, more, task])
    assert in_front.compared != matcher(prompt_templates=two).compared


def test_what_may_stand_between_messages_tells_harnesses_apart(matcher: Any) -> None:
    reminder = {"name": "reminder", "text": REMINDER, "role": "user", "position": "any"}
    first = templates(A, role="user")
    one, two = matcher(prompt_templates=first), matcher(prompt_templates=[*first, reminder])
    assert one.excludes(messages(REMINDER, A, role="user"))
    assert not two.excludes(messages(REMINDER, A, role="user"))
    assert one.compared != two.compared


@pytest.mark.parametrize(
    ("texts", "kept"), [(["x"], True), (["x" * 70_000], False), (["x"] * 500, True), (["x"] * 1000, False)]
)
def test_long_beginnings_are_judged_like_others_and_not_remembered(matcher: Any, texts: list[str], kept: bool) -> None:
    declared = matcher(prompt_templates=templates(A))
    content = messages(*texts)
    before = sys.getrefcount(content.messages[0])
    places = [declared.judge(content).contradictions[0][:3] for _ in range(2)]
    after = sys.getrefcount(content.messages[0])
    assert (after > before, places) == (kept, [("prompt_templates", "t0", 1)] * 2)


def test_a_system_message_that_no_template_gives_contradicts_behind_the_first_reply_too(matcher: Any) -> None:
    declared = matcher(prompt_templates=templates(A, B))
    (found,) = declared.judge(behind_a_reply(X)).contradictions
    assert found == Contradiction("prompt_templates", "system-2", 4, f"no template gives this message: {X!r}")
    # what it gives may come again, in any order, and what holds no text is nobody's
    assert differing(declared, behind_a_reply(B, "", A, A)) == []
    # the first is told, numbered on from those in front of the reply
    assert differing(declared, behind_a_reply(A, "", X, "Y", B)) == [("system-3", 6)]
    greeted = Content(messages=[], later_system=[("system", X, 2)])
    assert differing(declared, greeted) == [("system", 2)]
    assert differing(matcher(prompt_templates=templates(A, role="user")), greeted) == [("system", 2)]


@pytest.mark.parametrize("giver", [{"text": "Something {what}."}, {"text": X, "role": "developer"}, *OPTIONAL])
@pytest.mark.parametrize("position", ["first", "any"])
def test_what_a_template_may_have_given_contradicts_nothing_behind_the_first_reply(
    matcher: Any, giver: dict[str, Any], position: str
) -> None:
    more = {"syntax": "format", **giver, "position": position}
    if "entry" in more:
        del more["syntax"]
    assert differing(matcher(prompt_templates=templates(A, more)), behind_a_reply(X, X)) == []
    closed = matcher(prompt_templates=templates(A, {**more, "role": "user"}))
    assert ("system-2", 4) in differing(closed, behind_a_reply(X, X))


def test_what_stands_behind_the_first_reply_corroborates_nothing_and_is_judged_for_each_trace(matcher: Any) -> None:
    declared = matcher(prompt_templates=templates(A))
    assert corroborated(declared, Content(later_system=[("system", A, 2)])) == set()
    for _ in range(2):
        assert differing(declared, behind_a_reply(X)) == [("system-2", 4)]
        assert differing(declared, behind_a_reply()) == []
        assert corroborated(declared, behind_a_reply(A)) == {"t0"}
