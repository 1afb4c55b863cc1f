"""Where a run disagrees with its harness while it is recorded."""

import json
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.loading import load
from tracemark.harness.match import Content, Matcher
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


REMINDER = {"name": "reminder", "text": "Go on with {all}.", "syntax": "format", "role": "user", "position": "any"}
HINTS = {"name": "hints", "text": "{% if all %}Hints: {{ all }}{% endif %}", "syntax": "jinja", "role": "user"}
MORE = {"name": "more", "entry": "reply.py:parse", "role": "user"}


def compared(make_harness: Any, members: list[dict[str, Any]], texts: dict[str, str], *sent: str) -> Any:
    """Return the parts that a request contradicts, what the finished trace contradicts, and the parts that agree."""
    declared = [{"text": "{all}", "syntax": "format", "role": "user", **one} for one in members]
    for one in declared:
        if "entry" in one:
            del one["text"], one["syntax"]
    harness = load(make_harness(prompt_templates=declared))
    given = {each.name: each for each in harness.manifest.prompt_templates}
    messages = [{"role": "user", "content": text} for text in sent]
    found, agreeing = compare.request(harness, [(given[name], text) for name, text in texts.items()], messages, None)
    judged = Matcher(harness).judge(Content(messages=compare.texts_of(messages)))
    return [each.part for each in found], [each.part for each in judged.contradictions], agreeing


TASKS = [{"name": "rules", "text": "Rules: {all}"}, {"name": "task", "text": "Task: {all}"}]
SENT_TASKS = {"rules": "Rules: r", "task": "Task: q"}


@pytest.mark.parametrize("known", [{}, {"reminder": "Go on with it."}])
@pytest.mark.parametrize(
    "sent",
    [
        ["Go on with it.", "Rules: r", "Task: q"],
        ["Rules: r", "Go on with it.", "Go on with it.", "Task: q"],
        ["Rules: r", "Task: q", "Go on with it."],
    ],
)
def test_a_reminder_takes_the_place_of_no_other_template(make_harness: Any, known: Any, sent: list[str]) -> None:
    members = [*TASKS, REMINDER]
    assert compared(make_harness, members, SENT_TASKS | known, *sent) == ([], [], ["rules", "task"])
    # and what was changed is told of the template that was changed
    changed = [text.replace("Task: q", "Task, q") for text in sent]
    assert compared(make_harness, members, SENT_TASKS | known, *changed) == (["task"], ["task"], ["rules"])


def test_a_reminder_in_place_of_a_prompt_leaves_it_without_a_message(make_harness: Any) -> None:
    assert compared(make_harness, [TASKS[0], REMINDER], {"rules": "Rules: r"}, "Go on with it.") == (["rules"], [], [])
    harness = load(make_harness(prompt_templates=[{**TASKS[0], "syntax": "format", "role": "user"}, REMINDER]))
    rendered = [(harness.manifest.prompt_templates[0], "Rules: r")]
    found = compare.renderings(harness, rendered, [("user", "Go on with it.", 1)])
    assert found == ([], [], ["rules"])


@pytest.mark.parametrize("sent", [["Stop.", "Rules: r", "Task: q"], ["Rules: r", "Stop.", "Task: q", "Stop."]])
@pytest.mark.parametrize("known", [{}, {"more": "Stop."}])
def test_nor_does_one_that_code_makes(make_harness: Any, known: Any, sent: list[str]) -> None:
    members = [{**MORE, "position": "any"}, *TASKS]
    assert compared(make_harness, members, SENT_TASKS | known, *sent) == ([], [], ["rules", "task"])


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("optional", [HINTS, MORE, {"name": "hole"}])
def test_a_template_that_need_not_give_a_message_takes_a_place_when_it_gave_one(
    make_harness: Any, optional: Any, place: int
) -> None:
    members, name = [*TASKS], optional["name"]
    members.insert(place, optional)
    assert compared(make_harness, members, SENT_TASKS, "Rules: r", "Task: q") == ([], [], ["rules", "task"])
    sent = ["Rules: r", "Task: q"]
    sent.insert(place, "Be kind.")
    # the run may have gone around the recorder for it
    assert compared(make_harness, members, SENT_TASKS, *sent) == ([], [], ["rules", "task"])
    found = compared(make_harness, members, SENT_TASKS | {name: "Be kind."}, *sent)
    assert (found[0], found[1], sorted(found[2])) == ([], [], sorted([name, "rules", "task"]))
    assert name in compared(make_harness, members, SENT_TASKS | {name: "Be kind."}, "Rules: r", "Task: q")[0]


def test_of_several_templates_that_need_not_give_a_message_those_that_gave_one_have_it(make_harness: Any) -> None:
    members = [HINTS, MORE, TASKS[0], {"name": "hole"}, TASKS[1]]
    for known, sent in [
        ({}, ["Rules: r", "Task: q"]),
        ({"more": "Be kind."}, ["Be kind.", "Rules: r", "Task: q"]),
        ({"hole": "Be kind."}, ["Rules: r", "Be kind.", "Task: q"]),
        ({"hints": "Hints: h", "hole": "Be kind."}, ["Hints: h", "Rules: r", "Be kind.", "Task: q"]),
        ({"hints": "", "more": "Be kind.", "hole": ""}, ["Be kind.", "Rules: r", "Task: q"]),
    ]:
        contradicted, judged, agreeing = compared(make_harness, members, SENT_TASKS | known, *sent)
        assert (contradicted, judged, set(agreeing)) == ([], [], {*SENT_TASKS, *known})


def test_a_message_that_no_template_gives_disagrees_whatever_may_stand_beside_it(make_harness: Any) -> None:
    members = [HINTS, *TASKS, REMINDER]
    assert compared(make_harness, members, SENT_TASKS, "Rules: r", "Other.") == (["task"], ["task"], ["rules"])
    assert compared(make_harness, members, SENT_TASKS, "Go on with it.", "Other.", "Task: q")[0] == ["rules"]
    changed = ("Hints: other", "Rules: r", "Task: q")
    assert compared(make_harness, members, SENT_TASKS | {"hints": "Hints: h"}, *changed)[0] == ["hints"]


def test_messages_in_another_order_disagree(make_harness: Any) -> None:
    for sent in (["Task: q", "Rules: r"], ["Go on with it.", "Task: q", "Go on with it.", "Rules: r"]):
        found = compared(make_harness, [*TASKS, REMINDER], SENT_TASKS, *sent)
        assert found == (["rules", "task"], ["rules", "task"], [])
    # without the renderings the first message may be the hints, and the task not recorded; with them it is missing
    found = compared(make_harness, [HINTS, *TASKS], SENT_TASKS, "Task: q", "Rules: r")
    assert found == (["task"], [], ["rules"])


TEXTS = st.sampled_from(["", "A", "B", "A: A", "B: A", "A: B", "A: ", "A: A: B"])
TEMPLATES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "user"]), "position": st.sampled_from(["first", "any"])}
).flatmap(
    lambda place: st.sampled_from(
        [
            *({"text": text} for text in ("", "A", "B", "A: B")),
            *({"text": text, "syntax": "format"} for text in ("{all}", "A: {all}", "B: {all}", "{all}B")),
            {"text": "{% if all %}{{ all }}{% endif %}", "syntax": "jinja"},
            {"text": "A: {{ all }}", "syntax": "jinja"},
            {"entry": "reply.py:parse"},
        ]
    ).map(lambda members: members | place)
)


@st.composite
def runs(draw: st.DrawFn) -> Any:
    """The templates of a harness; of each what the recorder rendered, and how often it was sent otherwise; messages."""
    declared = [{"name": f"t{number}", **one} for number, one in enumerate(draw(st.lists(TEMPLATES, max_size=6)))]
    rendered: list[tuple[str, str]] = []
    sent: list[tuple[str, str]] = []
    anywhere: list[tuple[str, str]] = []
    for one in declared:
        text = one.get("text")
        open_ended = text is None or "{" in text
        if not open_ended:
            texts = st.just(text)
        else:
            texts = TEXTS.map(lambda value, text=text: value if text is None or "{%" in text else fill(text, value))
        optional = text is None or "{%" in text or text == "{all}"
        made = draw(st.lists(texts, min_size=0 if optional or one["position"] == "any" else 1, max_size=3))
        # a run may go around the recorder
        if draw(st.integers(0, 4)):
            rendered += [(one["name"], each) for each in made]
        if one["position"] == "any":
            anywhere += [(one["role"], each) for each in made]
        elif made:
            sent.append((one["role"], draw(st.sampled_from(made))))
    for message in draw(st.lists(st.sampled_from(anywhere), max_size=4)) if anywhere else []:
        sent.insert(draw(st.integers(0, len(sent))), message)
    return declared, rendered, [{"role": role, "content": text} for role, text in sent]


def fill(text: str, value: str) -> str:
    return text.replace("{{ all }}", value).replace("{all}", value)


@given(runs())
def test_a_request_that_is_exactly_what_was_rendered_is_never_contradicted(
    tmp_path_factory: pytest.TempPathFactory, run: Any
) -> None:
    declared, rendered, messages = run
    folder = tmp_path_factory.mktemp("harness")
    (folder / "reply.py").write_text("def parse(text):\n    return text.strip()\n")
    (folder / "harness.yaml").write_text(json.dumps({"format": "tracemark/harness/1", "prompt_templates": declared}))
    harness = load(folder)
    templates = {each.name: each for each in harness.manifest.prompt_templates}
    texts = [(templates[name], text) for name, text in rendered]
    found = compare.renderings(harness, texts, compare.texts_of(messages))
    assert (found.differing, found.missing) == ([], [])
    assert Matcher(harness).judge(Content(messages=compare.texts_of(messages))).contradictions == []
    assert compare.request(harness, texts, messages, None)[0] == []


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
