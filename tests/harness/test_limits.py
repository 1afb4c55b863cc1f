"""What the number of replies says of a declared limit: more contradict, and nothing corroborates."""

from typing import Any

import pytest

from tracemark.harness.match import Content, Contradiction


def limited(matcher: Any, steps: int | None, *templates: dict[str, Any]) -> Any:
    return matcher(prompt_templates=list(templates), runtime={"limits": {"steps": steps}})


def shown(*replies: int) -> Content:
    return Content(replies=replies)


def test_one_reply_more_than_declared_contradicts_at_its_step(matcher: Any) -> None:
    judge = limited(matcher, 2)
    text = "this is step 3 of the agent, declared are 2 at most"
    assert judge.judge(shown(2, 4, 7, 9)).contradictions == [Contradiction("runtime", "limits", 7, text)]
    assert judge.excludes(shown(2, 4, 7))


@pytest.mark.parametrize("replies", [(), (2,), (2, 4)])
def test_a_limit_that_is_kept_proves_nothing(matcher: Any, replies: tuple[int, ...]) -> None:
    judge = limited(matcher, 2)
    judgement = judge.judge(shown(*replies))
    assert judgement.evidence["runtime"]["limits"] == "claimed"
    assert not judgement.contradicted
    assert not judge.excludes(shown(*replies))


def test_without_a_limit_any_number_of_replies_will_do(matcher: Any) -> None:
    assert not limited(matcher, None).judge(shown(*range(1_000))).contradicted


def test_a_message_that_the_harness_puts_in_the_assistants_mouth_is_no_reply(matcher: Any) -> None:
    greeting = {"name": "greeting", "text": "Hello!", "role": "assistant"}
    greeted = limited(matcher, 1, greeting)
    assert not greeted.judge(shown(1, 3)).contradicted
    assert [place.step for place in greeted.judge(shown(1, 3, 5)).contradictions] == [5]


@pytest.mark.parametrize(
    "template",
    [
        {"name": "filler", "text": "Go on.", "role": "assistant", "position": "any"},
        {"name": "made", "entry": "code.py:run", "role": "assistant"},
        {"name": "loop", "text": "{% for x in y %}{{ x }}{% endfor %}", "syntax": "jinja", "role": "assistant"},
    ],
)
def test_where_the_harness_may_speak_as_the_assistant_any_number_of_times_nothing_is_said(
    matcher: Any, template: dict[str, Any]
) -> None:
    assert not limited(matcher, 1, template).judge(shown(1, 3, 5)).contradicted


def test_harnesses_of_different_limits_are_told_apart_by_some_trace(matcher: Any) -> None:
    assert limited(matcher, 1).compared != limited(matcher, 2).compared
    assert limited(matcher, None).compared == limited(matcher, None).compared
