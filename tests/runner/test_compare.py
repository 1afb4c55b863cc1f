"""Where a run disagrees with its harness while it is recorded."""

from importlib.metadata import version
from typing import Any

import pytest

from tracemark.harness.loading import load
from tracemark.model.harness import PromptTemplate, Runtime
from tracemark.runner import compare

SENT = "Hurry. Help"


def rendered(**members: Any) -> list[tuple[PromptTemplate, str]]:
    stated = {"name": "task", "text": "{all}", "syntax": "format", "role": "user", **members}
    return [(PromptTemplate.model_validate(stated), SENT)]


def disagreeing(make_harness: Any, texts: list[tuple[PromptTemplate, str]], *messages: Any) -> list[str]:
    templates = [template.model_dump(exclude_unset=True) for template, _ in texts]
    harness = load(make_harness(prompt_templates=templates))
    return [each.part for each in compare.request(harness, texts, messages, None)[0]]


def test_a_request_that_holds_the_rendering_agrees(make_harness: Any) -> None:
    assert disagreeing(make_harness, rendered(), {"role": "user", "content": SENT}) == []


def test_content_in_parts_is_compared_by_its_text(make_harness: Any) -> None:
    parts = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": SENT}]
    assert disagreeing(make_harness, rendered(), {"role": "user", "content": parts}) == []


@pytest.mark.parametrize("sent", ["system", "developer"])
@pytest.mark.parametrize("declared", ["system", "developer"])
def test_the_two_words_for_the_system_role_are_one(make_harness: Any, declared: str, sent: str) -> None:
    template = {"name": "main", "text": SENT, "role": declared}
    harness = load(make_harness(prompt_templates=[template]))
    texts = [(harness.manifest.prompt_templates[0], SENT)]
    assert compare.request(harness, texts, [{"role": sent, "content": SENT}], None)[0] == []
    (found,), _ = compare.request(harness, texts, [{"role": sent, "content": "Help"}], None)
    assert (found.part, found.text) == ("main", "at character 2: expected 'Hurry. Help' found 'Help'")


@pytest.mark.parametrize("content", ["Help", None, 7, [], [{"type": "text", "text": 7}]])
def test_another_message_in_its_place_disagrees(make_harness: Any, content: Any) -> None:
    assert disagreeing(make_harness, rendered(), {"role": "user", "content": content}) == ["task"]


def test_a_message_that_is_missing_disagrees_with_what_was_rendered(make_harness: Any) -> None:
    assert disagreeing(make_harness, rendered()) == ["task"]


def test_a_template_of_any_position_may_stand_in_a_later_message(make_harness: Any) -> None:
    messages = ({"role": "user", "content": "Before"}, {"role": "user", "content": SENT})
    assert disagreeing(make_harness, rendered(), *messages) == ["task"]
    assert disagreeing(make_harness, rendered(position="any"), *messages) == []
    assert disagreeing(make_harness, rendered(position="any")) == []


def test_the_second_first_template_of_a_role_is_its_second_message(make_harness: Any) -> None:
    templates = [{"name": name, "text": f"The {name} one."} for name in ("one", "two")]
    harness = load(make_harness(prompt_templates=templates))
    texts = [(template, template.text or "") for template in harness.manifest.prompt_templates]
    messages = [{"role": "system", "content": text} for _, text in texts]
    assert compare.request(harness, texts, messages, None)[0] == []
    swapped, _ = compare.request(harness, texts, messages[::-1], None)
    assert [found.part for found in swapped] == ["one", "two"]


def test_a_template_that_gives_no_text_takes_no_place(make_harness: Any) -> None:
    templates = [{"name": name, "text": "{all}", "syntax": "format"} for name in ("note", "main")]
    harness = load(make_harness(prompt_templates=templates))
    texts = list(zip(harness.manifest.prompt_templates, ["", SENT], strict=True))
    for messages in ([SENT], ["", SENT]):
        sent = [{"role": "system", "content": text} for text in messages]
        assert compare.request(harness, texts, sent, None)[0] == []


ONCE = {"note": ["", "Note: n"], "task": ["Task: q"], "more": ["", "More: m"]}


@pytest.mark.parametrize(
    ("texts", "sent", "different", "missing"),
    [
        # what was sent is what one of the renderings gave
        (ONCE, ["Note: n", "Task: q", "More: m"], [], []),
        (ONCE, ["Note: n", "Task: q"], [], []),
        (ONCE, ["Task: q", "More: m"], [], []),
        (ONCE, ["Task: q"], [], []),
        (ONCE | {"note": ["Note: n", ""]}, ["Task: q"], [], []),
        (ONCE | {"note": ["", "Task: q"]}, ["Task: q"], [], []),
        (ONCE | {"note": [""], "more": [""]}, ["Task: q", "Go on."], [], []),
        ({"note": ["", "Note: n"]}, [], [], []),
        # something was changed by hand
        ({"note": ["", "Note: n"]}, ["Note: other"], ["note"], []),
        ({"note": ["Note: n", ""]}, ["Note: other"], ["note"], []),
        (ONCE, ["Note: other", "Task: q"], ["note"], []),
        (ONCE, ["Note: n", "Task: other"], ["task"], []),
        (ONCE, ["Task: other"], ["task"], []),
        (ONCE, ["Note: other", "Task: other"], ["note", "task"], []),
        (ONCE, ["Task: q", "More: other"], ["more"], []),
        (ONCE, ["Note: n"], [], ["task"]),
    ],
)
def test_a_text_that_was_rendered_beside_no_text_is_compared_where_it_can_stand(
    make_harness: Any, texts: dict[str, list[str]], sent: list[str], different: list[str], missing: list[str]
) -> None:
    members = {"text": "{all}", "syntax": "format", "role": "user"}
    harness = load(make_harness(prompt_templates=[{"name": name, **members} for name in texts]))
    rendered = [(each, text) for each in harness.manifest.prompt_templates for text in texts[each.name]]
    found = compare.renderings(harness, rendered, [("user", text, step) for step, text in enumerate(sent, 1)])
    assert [each.part for each in found.differing] == different
    assert found.missing == missing
    assert sorted(found.agreeing + different + missing) == sorted(texts)


def test_many_templates_that_were_rendered_beside_no_text_are_compared_at_once(make_harness: Any) -> None:
    members = {"text": "{all}", "syntax": "format", "role": "user"}
    harness = load(make_harness(prompt_templates=[{"name": f"note-{number}", **members} for number in range(40)]))
    rendered = [(each, text) for each in harness.manifest.prompt_templates for text in ("", each.name)]
    sent = [("user", each.name, None) for each in harness.manifest.prompt_templates[::2]]
    assert compare.renderings(harness, rendered, sent).differing == []


def test_of_several_renderings_of_one_template_any_will_do(make_harness: Any) -> None:
    texts = [*rendered(), (rendered()[0][0], "Calm down.")]
    for sent in (SENT, "Calm down."):
        assert disagreeing(make_harness, texts[:1], {"role": "user", "content": sent}) == ["task"] * (sent != SENT)
        harness = load(make_harness(prompt_templates=[texts[0][0].model_dump(exclude_unset=True)]))
        assert compare.request(harness, texts, [{"role": "user", "content": sent}], None)[0] == []


def test_a_template_of_another_agent_is_not_looked_for(make_harness: Any) -> None:
    assert disagreeing(make_harness, rendered(agent="helper")) == []


def test_the_process_is_compared_with_the_declared_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_MODE", "strict")
    monkeypatch.delenv("DESK_LEVEL", raising=False)
    assert compare.surroundings(Runtime(environment={"DESK_MODE": "strict"})) == ([], [])
    for declared in ({"DESK_MODE": "lax"}, {"DESK_LEVEL": "1"}):
        found, _ = compare.surroundings(Runtime(environment=declared))
        assert [(each.component, each.part) for each in found] == [("runtime", "environment")]


def test_installed_packages_are_compared_where_their_version_is_known() -> None:
    assert compare.surroundings(Runtime(packages={"pytest": version("pytest")})) == ([], [])
    found, _ = compare.surroundings(Runtime(packages={"pytest": "0.1"}))
    assert [each.part for each in found] == ["packages"]
    assert compare.surroundings(Runtime(packages={"no_such_package": "1"})) == ([], ["packages"])
