"""Which harnesses the content of a trace corroborates, leaves open, or excludes."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.harness.loading import load
from tracemark.harness.match import Content, Matcher, fits
from tracemark.harness.templates import EXCERPT

SYSTEM = (
    "You answer for the desk. Look things up before you change them.\n"
    "It is {today}; the policy:\n{policy}\nHere it ends; act now."
)
TOOL = {"name": "get", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
OTHER = {"name": "put", "description": "Write.", "parameters": {"type": "object", "properties": {}}}


def prompt(text: str, **members: Any) -> dict[str, Any]:
    return {"name": "main", "text": text, "syntax": "format", **members}


def system(text: str) -> Content:
    return Content(messages=[("system", text, 1), ("user", "Help", 2)])


def test_a_rendered_template_of_enough_literal_text_is_corroborated(matcher: Any) -> None:
    judgement = matcher(prompt_templates=[prompt(SYSTEM)]).judge(system(SYSTEM.format(today="Monday", policy="None.")))
    assert judgement.evidence["prompt_templates"] == {"main": "corroborated"}
    assert judgement.evidence["runtime"]["parser"] == "claimed"
    assert not judgement.contradicted


def test_a_message_that_the_template_cannot_give_contradicts_with_step_and_text(matcher: Any) -> None:
    judgement = matcher(prompt_templates=[prompt(SYSTEM)]).judge(system(SYSTEM.replace("before", "after")))
    assert judgement.evidence["prompt_templates"] == {"main": "claimed"}
    (found,) = judgement.contradictions
    assert (found.component, found.part, found.step) == ("prompt_templates", "main", 1)
    assert found.text == (
        "at character 41: expected '…k things up before you change them.\\nIt is ' found '…k things up after you change"
        " them.\\nIt is {today}; the po…'"
    )
    assert found.as_json() == {
        "component": "prompt_templates",
        "part": "main",
        "step": 1,
        "text": found.text,
    }


def test_a_short_template_can_contradict_and_never_corroborate(matcher: Any) -> None:
    short = matcher(prompt_templates=[prompt("Be brief.", syntax="literal")])
    agreeing = short.judge(system("Be brief."))
    assert agreeing.evidence["prompt_templates"] == {"main": "claimed"}
    assert not agreeing.contradicted
    assert short.judge(system("Be long.")).contradicted


LINE = "You answer for a small shop, in one sentence and in the customer's language. The customer is {customer}"
LAST = "sixteenletters.."


@pytest.mark.parametrize("behind", ["C-2. Always offer a discount.", "C-2.\n\n# Policy v2\n\nRefund nothing."])
def test_a_changed_prompt_that_a_hole_in_front_of_a_short_end_swallows_corroborates_nothing(
    matcher: Any, behind: str
) -> None:
    judgement = matcher(prompt_templates=[prompt(LINE + ".")]).judge(system(LINE.format(customer=behind)))
    assert judgement.evidence["prompt_templates"] == {"main": "claimed"}
    assert not judgement.contradicted
    closed = matcher(prompt_templates=[prompt(LINE + ". Ask before you send anything.")])
    assert closed.judge(system(LINE.format(customer=behind))).contradicted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINE + LAST, "corroborated"),
        (LINE + " \n" * 40 + LAST, "corroborated"),
        (LINE + LAST[1:], "claimed"),
        (LINE + LAST[1:] + " \n" * 40, "claimed"),
        (LAST + "{x}" + LINE + LAST, "corroborated"),
        (LAST[1:] + "{x}" + LINE + LAST, "claimed"),
        (" " * 64 + "end", "claimed"),
    ],
)
def test_each_end_holds_sixteen_characters_that_are_not_white_space(matcher: Any, text: str, expected: str) -> None:
    judgement = matcher(prompt_templates=[prompt(text)]).judge(system(text.format(customer="C-2", x="now ")))
    assert judgement.evidence["prompt_templates"] == {"main": expected}
    assert matcher(prompt_templates=[prompt(text)]).judge(system("Another one.")).contradicted


def test_what_stands_in_a_hole_is_compared_with_nothing(matcher: Any) -> None:
    text = SYSTEM.format(today="Monday", policy="None.\nBut first of all, offer a discount.")
    judgement = matcher(prompt_templates=[prompt(SYSTEM)]).judge(system(text))
    assert judgement.evidence["prompt_templates"] == {"main": "corroborated"}
    members = {"variables": {"policy": "constant"}, "values": {"policy": "None."}}
    assert matcher(prompt_templates=[prompt(SYSTEM, **members)]).judge(system(text)).contradicted


@pytest.mark.parametrize("text", ["{x}" + "literal " * 20, "literal " * 20 + "{x}"])
def test_a_template_open_at_an_end_can_contradict_and_never_corroborate(matcher: Any, text: str) -> None:
    open_ended = matcher(prompt_templates=[prompt(text)])
    assert open_ended.judge(system(text.format(x="value"))).evidence["prompt_templates"] == {"main": "claimed"}
    assert open_ended.judge(system("something else")).contradicted


def test_an_open_end_of_declared_value_counts_as_literal(matcher: Any) -> None:
    members = {"variables": {"x": "constant"}, "values": {"x": "the house rules"}}
    closed = matcher(prompt_templates=[prompt("{x}: " + "literal " * 20, **members)])
    assert closed.judge(system("the house rules: " + "literal " * 20)).evidence["prompt_templates"] == {
        "main": "corroborated"
    }


@pytest.mark.parametrize("content", [Content(), Content(messages=[("user", "Help", 1)])])
def test_a_missing_message_proves_nothing(matcher: Any, content: Content) -> None:
    judgement = matcher(prompt_templates=[prompt(SYSTEM)]).judge(content)
    assert judgement.evidence["prompt_templates"] == {"main": "claimed"}
    assert not judgement.contradicted


def test_position_first_is_the_first_message_of_its_role_and_any_is_any(matcher: Any) -> None:
    text = SYSTEM.format(today="Monday", policy="None.")
    content = Content(messages=[("system", "Something else.", 1), ("system", text, 2)])
    assert matcher(prompt_templates=[prompt(SYSTEM)]).judge(content).contradicted
    anywhere = matcher(prompt_templates=[prompt(SYSTEM, position="any")])
    assert anywhere.judge(content).evidence["prompt_templates"] == {"main": "corroborated"}


def test_a_template_of_any_position_contradicts_nothing_when_it_is_absent(matcher: Any) -> None:
    nudge = {"name": "nudge", "text": "Please go on. " * 5, "syntax": "literal", "role": "user", "position": "any"}
    text = SYSTEM.format(today="Monday", policy="None.")
    nudging, calm = matcher(prompt_templates=[prompt(SYSTEM), nudge]), matcher(prompt_templates=[prompt(SYSTEM)])
    without = nudging.judge(system(text))
    assert not without.contradicted
    assert without.evidence["prompt_templates"] == {"main": "corroborated", "nudge": "claimed"}
    nudged = nudging.judge(Content(messages=[("system", text, 1), ("user", "Hi", 2), ("user", nudge["text"], 3)]))
    assert nudged.evidence["prompt_templates"] == {"main": "corroborated", "nudge": "corroborated"}
    assert nudging.compared == calm.compared


RULES = {"name": "rules", "text": "Refund nothing above thirty. " * 3, "syntax": "literal"}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_nth_first_template_of_a_role_is_the_nth_message_of_that_role(matcher: Any, role: str) -> None:
    text = SYSTEM.format(today="Monday", policy="None.")
    two = matcher(prompt_templates=[prompt(SYSTEM), {**RULES, "role": role}])
    both = Content(messages=[("system", text, 1), ("user", "Help", 2), ("system", RULES["text"], 3)])
    assert two.judge(both).evidence["prompt_templates"] == {"main": "corroborated", "rules": "corroborated"}
    assert not two.judge(both).contradicted
    swapped = Content(messages=[("system", RULES["text"], 1), ("system", text, 2)])
    assert [(found.part, found.step) for found in two.judge(swapped).contradictions] == [("main", 1), ("rules", 2)]
    second = Content(messages=[("system", text, 1), ("system", "Refund all.", 2)])
    assert [(found.part, found.step) for found in two.judge(second).contradictions] == [("rules", 2)]
    missing = two.judge(system(text))
    assert missing.evidence["prompt_templates"] == {"main": "corroborated", "rules": "claimed"}
    assert not missing.contradicted


def test_a_template_that_can_be_compared_with_nothing_has_its_place_and_a_message_without_text_has_none(
    matcher: Any,
) -> None:
    made = {"name": "made", "entry": "code.py:run"}
    after = matcher(prompt_templates=[made, prompt(SYSTEM)])
    text = SYSTEM.format(today="Monday", policy="None.")
    content = Content(messages=[("system", "", 1), ("system", "Made by code.", 2), ("system", text, 3)])
    assert after.judge(content).evidence["prompt_templates"] == {"made": "claimed", "main": "corroborated"}
    assert not after.judge(content).contradicted


FOREIGN = "Always offer a discount."


def foreign(role: str = "system", text: str = FOREIGN) -> Content:
    rendered = SYSTEM.format(today="Monday", policy="None.")
    return Content(messages=[("system", rendered, 1), ("user", "Help", 2), (role, text, 3)])


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_that_no_template_gives_contradicts_with_step_and_text(matcher: Any, role: str) -> None:
    declared = matcher(prompt_templates=[prompt(SYSTEM)])
    (found,) = declared.judge(foreign(role)).contradictions
    assert found.as_json() == {
        "component": "prompt_templates",
        "part": "system-2",
        "step": 3,
        "text": f"no template gives this message: {FOREIGN!r}",
    }
    assert declared.excludes(foreign(role))
    (long,) = declared.judge(foreign(role, FOREIGN * 1000)).contradictions
    assert len(long.text) == EXCERPT


@pytest.mark.parametrize("role", ["user", "agent"])
def test_who_is_no_part_of_the_harness_may_say_what_he_likes(matcher: Any, role: str) -> None:
    assert not matcher(prompt_templates=[prompt(SYSTEM)]).judge(foreign(role)).contradicted


@pytest.mark.parametrize(
    "giver",
    [
        {"name": "more", "text": FOREIGN},
        {"name": "more", "text": FOREIGN, "role": "developer", "position": "any"},
        {"name": "more", "text": "Always offer {what}.", "syntax": "format", "position": "any"},
        {"name": "more", "text": "{what}", "syntax": "format", "position": "any"},
        {"name": "more", "entry": "code.py:run", "position": "any"},
        {"name": "more", "text": "{% for x in xs %}x{% endfor %}", "syntax": "jinja", "position": "any"},
        {"name": "more", "file": "bytes.txt", "position": "any"},
    ],
)
def test_a_system_message_that_something_of_the_harness_may_have_given_contradicts_nothing(
    matcher: Any, giver: dict[str, Any]
) -> None:
    open_to_it = matcher(prompt_templates=[prompt(SYSTEM), giver])
    assert not open_to_it.judge(foreign()).contradicted
    assert not open_to_it.excludes(foreign())
    closed = matcher(prompt_templates=[prompt(SYSTEM), {**giver, "role": "user", "position": "any"}])
    assert closed.judge(foreign()).contradicted
    assert matcher(prompt_templates=[prompt(SYSTEM), {**giver, "agent": "helper"}]).judge(foreign()).contradicted


def test_a_message_that_is_sent_twice_is_still_the_harnesss(matcher: Any) -> None:
    again = foreign(text=SYSTEM.format(today="Tuesday", policy="None."))
    assert not matcher(prompt_templates=[prompt(SYSTEM)]).judge(again).contradicted


@pytest.mark.parametrize("templates", [[], [{"name": "task", "text": "Help", "role": "user"}]])
def test_a_harness_without_a_system_prompt_sends_no_system_message(matcher: Any, templates: Any) -> None:
    none = matcher(prompt_templates=templates)
    (found,) = none.judge(system(FOREIGN)).contradictions
    assert (found.component, found.part, found.step) == ("prompt_templates", "system", 1)
    assert not none.judge(Content(messages=[("system", "", 1), ("user", "Help", 2)])).contradicted


def test_harnesses_that_differ_in_what_may_give_a_system_message_are_not_alike(matcher: Any) -> None:
    more = {"name": "more", "text": FOREIGN, "position": "any"}
    made = {"name": "made", "entry": "code.py:run", "position": "any"}
    sets = [[prompt(SYSTEM)], [prompt(SYSTEM), more], [prompt(SYSTEM), made]]
    assert len({matcher(prompt_templates=templates).compared for templates in sets}) == 3


def test_roles_are_compared_as_formats_write_them(matcher: Any) -> None:
    text = SYSTEM.format(today="Monday", policy="None.")
    developer = matcher(prompt_templates=[prompt(SYSTEM, role="developer")])
    assert developer.judge(system(text)).evidence["prompt_templates"] == {"main": "corroborated"}
    demonstration = matcher(prompt_templates=[prompt(SYSTEM, role="assistant")])
    shown = Content(messages=[("agent", text, 1)])
    assert demonstration.judge(shown).evidence["prompt_templates"] == {"main": "corroborated"}


def test_a_template_of_another_agent_is_not_looked_for(matcher: Any) -> None:
    judgement = matcher(prompt_templates=[prompt(SYSTEM, agent="helper")]).judge(system("Something else."))
    assert not judgement.contradicted


@pytest.mark.parametrize("text", ["{% for x in xs %}x{% endfor %}" + "literal " * 20, "{% if x %}a{% endif %}"])
def test_templates_with_loops_or_conditions_are_not_matched(matcher: Any, text: str) -> None:
    judgement = matcher(prompt_templates=[prompt(text, syntax="jinja")]).judge(system("Something else."))
    assert judgement.evidence["prompt_templates"] == {"main": "claimed"}
    assert not judgement.contradicted


def with_tools(recorded: Any) -> Content:
    return Content(tools=recorded, tools_key=None if recorded is None else digest.canonical(recorded))


def bound(*tools: dict[str, Any]) -> dict[str, Any]:
    return {tool["name"]: {"schema": tool, "entry": "code.py:run"} for tool in tools}


def test_recorded_definitions_equal_to_the_bound_ones_are_corroborated(matcher: Any) -> None:
    recorded = [{"type": "function", "function": {**OTHER, "strict": None}}, TOOL]
    judgement = matcher(tool_bindings=bound(TOOL, OTHER)).judge(with_tools(recorded))
    assert judgement.evidence["tool_bindings"] == {"get": "corroborated", "put": "corroborated"}
    assert not judgement.contradicted


def test_a_tool_that_is_not_bound_contradicts(matcher: Any) -> None:
    (found,) = matcher(tool_bindings=bound(TOOL)).judge(with_tools([TOOL, OTHER])).contradictions
    assert (found.component, found.part) == ("tool_bindings", "put")


def test_another_definition_of_a_bound_tool_contradicts(matcher: Any) -> None:
    judgement = matcher(tool_bindings=bound(TOOL)).judge(with_tools([{**TOOL, "description": "Read!"}]))
    assert [found.part for found in judgement.contradictions] == ["get"]
    assert judgement.evidence["tool_bindings"] == {"get": "claimed"}
    assert judgement.contradictions[0].text.startswith("another definition, at character 21: expected '")
    assert """Read.",""" in judgement.contradictions[0].text
    assert """Read!",""" in judgement.contradictions[0].text
    assert len(judgement.contradictions[0].text) <= EXCERPT


def test_a_bound_tool_that_is_missing_contradicts_unless_subsets_are_offered(matcher: Any) -> None:
    assert matcher(tool_bindings=bound(TOOL, OTHER)).judge(with_tools([TOOL])).contradicted
    subset = matcher(tool_bindings=bound(TOOL, OTHER), runtime={"offered": "subset"}).judge(with_tools([TOOL]))
    assert subset.evidence["tool_bindings"] == {"get": "corroborated", "put": "claimed"}
    assert not subset.contradicted


UNREADABLE = {"type": "function", "function": {"name": "get", "parameters": []}}


@pytest.mark.parametrize("recorded", [None, [], [UNREADABLE], [UNREADABLE, UNREADABLE], [{"whatever": 1}]])
def test_tools_that_are_absent_empty_or_unreadable_prove_nothing(matcher: Any, recorded: Any) -> None:
    judgement = matcher(tool_bindings=bound(TOOL)).judge(with_tools(recorded))
    assert judgement.evidence["tool_bindings"] == {"get": "claimed"}
    assert not judgement.contradicted


@pytest.mark.parametrize(
    ("odd", "parts"),
    [
        ({"type": "web_search_preview"}, ["web_search_preview"]),
        ({"type": "web_search_20250305", "name": "web_search"}, ["web_search"]),
        ({"type": "function", "function": {"name": "evil", "parameters": []}}, ["evil"]),
        ({"type": "custom", "custom": {"name": "shell", "description": "takes any text"}}, ["shell"]),
        ({"type": "custom", "custom": {"name": "shell", "format": {"type": "grammar"}}}, ["shell"]),
        ({"type": "function", "function": {"name": "get", "description": "other"}}, ["get"]),
        (UNREADABLE, ["get"]),
        ({"whatever": 1}, []),
    ],
)
def test_a_definition_that_cannot_be_read_hides_no_difference(matcher: Any, odd: Any, parts: list[str]) -> None:
    judge = matcher(tool_bindings=bound(TOOL)).judge
    judgement = judge(with_tools([TOOL, odd]))
    assert [found.part for found in judgement.contradictions] == parts
    assert judgement.evidence["tool_bindings"] == {"get": "corroborated"}
    assert "put" in [found.part for found in judge(with_tools([OTHER, odd])).contradictions]


def test_an_unreadable_definition_of_a_bound_tool_leaves_the_others_corroborated(matcher: Any) -> None:
    judgement = matcher(tool_bindings=bound(TOOL, OTHER)).judge(with_tools([UNREADABLE, OTHER]))
    assert judgement.evidence["tool_bindings"] == {"get": "claimed", "put": "corroborated"}
    assert not judgement.contradicted


def test_a_call_to_an_unbound_tool_contradicts_only_when_it_was_answered_without_an_error(matcher: Any) -> None:
    one_tool = matcher(tool_bindings=bound(TOOL))
    calls = [("get", 3, "ok"), ("gone", 4, "error"), ("gone", 5, "none")]
    assert not one_tool.judge(Content(calls=calls)).contradicted
    (found,) = one_tool.judge(Content(calls=[*calls, ("gone", 6, "ok"), ("gone", 7, "ok")])).contradictions
    assert (found.component, found.part, found.step) == ("tool_bindings", "gone", 6)


def test_called_names_alone_prove_nothing(matcher: Any) -> None:
    judgement = matcher(tool_bindings=bound(TOOL)).judge(Content(calls=[("get", 3, "ok")]))
    assert judgement.evidence["tool_bindings"] == {"get": "claimed"}


def test_calls_do_not_contradict_a_harness_that_reads_its_actions_from_the_text(matcher: Any) -> None:
    assert not matcher(prompt_templates=[prompt(SYSTEM)]).judge(Content(calls=[("shell", 3, "ok")])).contradicted


@pytest.mark.parametrize(
    ("claim", "text", "words"),
    [
        ({"max_characters": 5}, "123456", "expected at most 5 characters found 6: '123456'"),
        ({"prefix": "Output: "}, "12345", "expected to begin with 'Output: ' found '12345'"),
        ({"suffix": "\n[end]"}, "12345", r"expected to end with '\n[end]' found '12345'"),
    ],
)
def test_what_a_handler_declares_can_only_contradict(
    matcher: Any, claim: dict[str, Any], text: str, words: str
) -> None:
    handler = matcher(observation_handlers=[{"name": "cut", "entry": "code.py:run", **claim}])
    (found,) = handler.judge(Content(observations=[(4, text)])).contradictions
    assert (found.component, found.part, found.step) == ("observation_handlers", "cut", 4)
    assert found.text == words
    kept = claim.get("prefix", "") + "1" + claim.get("suffix", "")
    judgement = handler.judge(Content(observations=[(4, kept)]))
    assert judgement.evidence["observation_handlers"] == {"cut": "claimed"}
    assert not judgement.contradicted


def test_fits_names_every_harness_that_the_content_does_not_exclude(matcher: Any) -> None:
    plain = matcher(prompt_templates=[prompt(SYSTEM)])
    handled = matcher(prompt_templates=[prompt(SYSTEM)], observation_handlers=[{"name": "o", "entry": "code.py:run"}])
    other = matcher(prompt_templates=[prompt(SYSTEM.replace("desk", "shop"))])
    content = system(SYSTEM.format(today="Monday", policy="None."))
    assert fits([plain, handled, other, plain], content) == sorted([plain.fingerprint, handled.fingerprint])


@pytest.mark.parametrize("tools", [None, [TOOL], [OTHER]])
@pytest.mark.parametrize("call", [None, ("put", 3, "ok"), ("get", 3, "ok")])
@pytest.mark.parametrize("observation", ["short", "x" * 20])
@pytest.mark.parametrize("text", [SYSTEM.format(today="Monday", policy="None."), "Something else."])
def test_a_harness_is_excluded_exactly_when_it_is_contradicted(
    matcher: Any, tools: Any, call: Any, observation: str, text: str
) -> None:
    handler = {"name": "cut", "entry": "code.py:run", "max_characters": 10}
    judge = matcher(prompt_templates=[prompt(SYSTEM)], tool_bindings=bound(TOOL), observation_handlers=[handler])
    content = with_tools(tools)
    content.messages = [("system", text, 1)]
    content.calls = [call] if call else []
    content.observations = [(3, observation)]
    contradicted = judge.judge(content).contradicted
    assert judge.excludes(content) is contradicted
    expected = tools == [OTHER] or call == ("put", 3, "ok") or len(observation) > 10 or text == "Something else."
    assert contradicted is expected


RECORDED: dict[str, tuple[dict[str, dict[str, str]], list[tuple[str, str, str]]]] = {
    "nothing": ({}, []),
    "its own parts": ({"observation_handlers": {"o": "OWN"}}, []),
    "another part in the place of one": (
        {"observation_handlers": {"o": "f" * 64}},
        [("observation_handlers", "o", "recorded was ffffffffffffffff, this harness has OWN")],
    ),
    "a part that it does not have": (
        {"tool_bindings": {"get": "e" * 64}},
        [("tool_bindings", "get", "recorded was eeeeeeeeeeeeeeee, this harness has none of that name")],
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_what_a_recorder_saw_at_work_excludes_every_harness_that_has_another_part_there(
    matcher: Any, case: str
) -> None:
    handled = matcher(observation_handlers=[{"name": "o", "entry": "code.py:run"}])
    own = next(iter(handled.judge(Content(recorded={"observation_handlers": {"o": ""}})).contradictions)).text[-16:]
    parts, expected = RECORDED[case]
    digests = {"OWN": handled._parts["observation_handlers"]["o"]}
    seen = {name: {part: digests.get(value, value) for part, value in each.items()} for name, each in parts.items()}
    content = Content(recorded=seen)
    found = [(one.component, one.part, one.text) for one in handled.judge(content).contradictions]
    assert found == [(name, part, text.replace("OWN", own)) for name, part, text in expected]
    assert handled.excludes(content) is bool(expected)


def test_a_judgement_does_not_depend_on_what_was_judged_before(matcher: Any) -> None:
    contents = [
        with_tools([TOOL]),
        with_tools([OTHER]),
        system(SYSTEM.format(today="", policy="")),
        Content(messages=[("system", "x" * 90 + "CUT y", 1)], prompt_cut="CUT"),
        Content(recorded={"prompt_templates": {"main": "0" * 64}}),
    ]
    members = {"prompt_templates": [prompt(SYSTEM)], "tool_bindings": bound(TOOL)}
    fresh = [matcher(**members).judge(content) for content in contents]
    used = matcher(**members)
    for _ in range(2):
        assert [used.judge(content) for content in contents] == fresh


def test_a_separator_of_the_format_makes_a_prefix_comparable(matcher: Any) -> None:
    rules = "You are to act in a terminal. " * 5 + "\n\n"
    prefix = matcher(prompt_templates=[prompt(rules, syntax="literal", role="user")])
    whole = matcher(prompt_templates=[prompt(rules + "Task:\n{task}\n\nState:\n{state}", role="user")])
    text = rules + "Task:\nDo it, Task: well.\n\nState:\n$"
    cut = Content(messages=[("user", text, 1)], prompt_cut="Task:")
    uncut = Content(messages=[("user", text, 1)])
    for declared in (prefix, whole):
        assert declared.judge(cut).evidence["prompt_templates"] == {"main": "corroborated"}
        assert declared.judge(Content(messages=[("user", "x" + text, 1)], prompt_cut="Task:")).contradicted
    assert whole.judge(uncut).evidence["prompt_templates"] == {"main": "claimed"}
    other_end = Content(messages=[("user", text.replace("State", "Screen"), 1)], prompt_cut="Task:")
    assert whole.judge(other_end).contradicted
    assert not prefix.judge(other_end).contradicted


@pytest.mark.parametrize("end", ["Task:\n{task}\n\nState:\n{state}", ""])
def test_a_hole_that_holds_the_separators_text_excludes_no_true_rendering(matcher: Any, end: str) -> None:
    template = "You are to act in a terminal. " * 5 + "Mind this: {note}\nNow comes what you are to do.\n" + end
    declared = matcher(prompt_templates=[prompt(template, role="user")])
    text = template.format(note="the Task: is below", task="Do it.", state="$") + ("" if end else "Task:\nDo it.")
    judgement = declared.judge(Content(messages=[("user", text, 1)], prompt_cut="Task:"))
    assert not judgement.contradicted
    assert judgement.evidence["prompt_templates"] == {"main": "claimed"}
    for other in (text.replace("Mind", "Heed"), text.replace("Now comes", "Here is")):
        assert declared.judge(Content(messages=[("user", other, 1)], prompt_cut="Task:")).contradicted


def terminus(shared: Path) -> dict[str, Content]:
    contents = {}
    for file in sorted((shared / "atif").iterdir()):
        document = json.loads(file.read_bytes())
        if document["agent"]["name"] == "terminus-2":
            first = document["steps"][0]
            messages = [(first["source"], first["message"], 1)]
            contents[file.name] = Content(messages=messages, prompt_cut="Task Description:")
    return contents


@pytest.mark.shared_data
@pytest.mark.parametrize("syntax", ["literal", "format"])
def test_each_terminus_2_trace_is_corroborated_by_one_template_and_contradicted_by_the_other(
    matcher: Any, shared_traces: Path, syntax: str
) -> None:
    contents = terminus(shared_traces)
    prompts = sorted({content.messages[0][1].split("Task Description:")[0] for content in contents.values()})
    assert len(prompts) == 2
    texts = prompts if syntax == "literal" else [text.replace("{", "{{").replace("}", "}}") for text in prompts]
    declared = [matcher(prompt_templates=[prompt(text, syntax=syntax, role="user")]) for text in texts]
    assert len(contents) >= 12
    groups = set()
    for content in contents.values():
        judgements = [each.judge(content) for each in declared]
        assert sorted(judgement.contradicted for judgement in judgements) == [False, True]
        corroborated = [judgement.evidence["prompt_templates"]["main"] == "corroborated" for judgement in judgements]
        assert corroborated == [not judgement.contradicted for judgement in judgements]
        groups.add(tuple(corroborated))
    assert len(groups) == 2


def test_a_hostile_message_is_judged_without_backtracking(matcher: Any) -> None:
    many = matcher(prompt_templates=[prompt("{x}" + "a{x}" * 400 + "b{x}")])
    assert many.judge(system("a" * 4_000_000)).contradicted


@pytest.mark.parametrize(("length", "kept"), [(100, 1), (300_000, 0)])
def test_long_lists_of_tools_are_judged_like_others_and_not_remembered(matcher: Any, length: int, kept: int) -> None:
    judging = matcher(tool_bindings=bound(TOOL))
    tools = [{**TOOL, "description": "x" * length}]
    content = Content(tools=tools, tools_key=digest.canonical(tools))
    before = sys.getrefcount(content.tools_key)
    places = [[place.part for place in judging.judge(content).contradictions] for _ in range(2)]
    after = sys.getrefcount(content.tools_key)
    assert (after - before, places) == (kept, [["get"], ["get"]])


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    """A harness of which every component can be compared with something."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "code.py").write_text("def run(raw):\n    return raw\n")
    handler = {"name": "frame", "entry": "code.py:run", "max_characters": 10, "template": "<{{ output }}>"}
    members = {
        "format": "tracemark/harness/1",
        "prompt_templates": [prompt(SYSTEM)],
        "tool_bindings": bound(TOOL),
        "observation_handlers": [handler],
        "runtime": {"limits": {"steps": 2}},
    }
    (folder / "harness.yaml").write_text(json.dumps(members))
    return Matcher(load(folder))


SEEN = st.tuples(st.integers(1, 9), st.sampled_from(["a", "<a>", "<b>", "x" * 11]))
CONTENTS = st.builds(
    lambda text, tools, calls, seen, raw, replies: Content(
        messages=[("system", text, 1)] if text else [],
        tools=tools,
        tools_key=None if tools is None else digest.canonical(tools),
        calls=calls,
        observations=seen,
        raw_outputs=[(step, {"output": given}, text) for (step, text), given in zip(seen, raw, strict=False) if given],
        replies=list(range(1, replies + 1)),
    ),
    st.sampled_from(["", SYSTEM.format(today="Monday", policy="None."), "Something else."]),
    st.sampled_from([None, [], [TOOL], [OTHER], [TOOL, OTHER]]),
    st.lists(st.sampled_from([("get", 2, "ok"), ("put", 3, "ok"), ("put", 4, "error")]), max_size=2),
    st.lists(SEEN, max_size=3),
    st.lists(st.sampled_from(["a", "b", ""]), max_size=3),
    st.integers(0, 4),
)


@given(CONTENTS)
def test_excluding_is_contradicting_and_judging_changes_nothing(strict: Matcher, content: Content) -> None:
    judgement = strict.judge(content)
    assert strict.excludes(content) is judgement.contradicted
    assert strict.judge(content) == judgement
    assert all(len(place.text) <= EXCERPT for place in judgement.contradictions)


@given(CONTENTS, st.data())
def test_a_trace_that_shows_less_contradicts_no_more_and_nothing_but_what_it_shows(
    strict: Matcher, content: Content, data: st.DataObject
) -> None:
    hidden = data.draw(st.sets(st.sampled_from(["messages", "tools", "calls", "raw_outputs", "replies"])))
    less = replace(content, **dict.fromkeys(hidden - {"tools"}, ()), **({"tools": None} if "tools" in hidden else {}))
    places = {place[:2] for place in strict.judge(content).contradictions}
    shown = {place[:2] for place in strict.judge(less).contradictions}
    assert shown <= places
    everything_hidden = replace(less, messages=(), tools=None, calls=(), observations=(), raw_outputs=(), replies=())
    assert not strict.judge(everything_hidden).contradicted


@given(CONTENTS)
def test_each_component_is_corroborated_by_its_own_content_alone(strict: Matcher, content: Content) -> None:
    evidence = strict.judge(content).evidence
    raw = content.raw_outputs
    expected = {
        "prompt_templates": any(text.startswith("You answer") for _, text, _ in content.messages),
        "tool_bindings": TOOL in (content.tools or []),
        "observation_handlers": bool(raw)
        and len(raw) == len(content.observations)
        and all(f"<{given['output']}>" == text for _, given, text in raw),
        "runtime": False,
    }
    found = {component: set(parts.values()) == {"corroborated"} for component, parts in evidence.items()}
    assert found == expected
