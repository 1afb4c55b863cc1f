"""What two foreign traces prove about each other, part by part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.declared import Comparison
from tracemark.harness.observed import PREFIX, compare, differing, name_of, shared
from tracemark.model.harness import COMPONENTS

SAME, DIFFERENT, UNKNOWN = Comparison.SAME, Comparison.DIFFERENT, Comparison.UNKNOWN
DECISIVE = ("template", "prefix", "schema", "constant", "known-empty")
ENTRY = st.fixed_dictionaries(
    {
        "part": st.sampled_from("ab"),
        "form": st.sampled_from([*DECISIVE, "rendered", "substituted", "transcript"]),
        "digest": st.sampled_from("12"),
    }
)
HALF = st.dictionaries(
    st.sampled_from(COMPONENTS), st.lists(ENTRY, min_size=1, max_size=2, unique_by=lambda entry: entry["part"])
)
CONFIRMED = st.sets(st.tuples(st.sampled_from(COMPONENTS), st.sampled_from("ab"), st.sampled_from("12")))


def half(component: str, **parts: tuple[str, str]) -> dict[str, Any]:
    return {component: [{"part": part, "form": form, "digest": value} for part, (form, value) in parts.items()]}


def prompts(**parts: tuple[str, str]) -> dict[str, Any]:
    return half("prompt_templates", **parts)


def tools(**parts: tuple[str, str]) -> dict[str, Any]:
    return half("tool_bindings", **parts)


@pytest.mark.parametrize("form", DECISIVE)
def test_a_part_held_whole_proves_both_sameness_and_difference(form: str) -> None:
    one, other = prompts(system=(form, "1")), prompts(system=(form, "2"))
    assert compare(one, one, ())["prompt_templates"] is SAME
    assert compare(one, other, ())["prompt_templates"] is DIFFERENT
    assert differing(one, other, ()) == [("prompt_templates", "system")]


def test_a_rendered_text_proves_sameness_and_never_difference() -> None:
    one, other = prompts(system=("rendered", "1")), prompts(system=("rendered", "2"))
    both = {("prompt_templates", "system", value) for value in "12"}
    assert compare(one, one, ())["prompt_templates"] is SAME
    assert compare(one, other, both)["prompt_templates"] is UNKNOWN
    assert differing(one, other, both) == []


def test_a_text_of_a_transcript_proves_nothing() -> None:
    one, other = prompts(system=("transcript", "1")), prompts(system=("transcript", "2"))
    for half_ in (one, other, prompts(system=("rendered", "1"))):
        assert compare(one, half_, {("prompt_templates", "system", "1")})["prompt_templates"] is UNKNOWN


def test_a_text_without_its_values_proves_difference_once_both_are_confirmed() -> None:
    one, other = prompts(first=("substituted", "1")), prompts(first=("substituted", "2"))
    confirmed = {("prompt_templates", "first", "1")}
    assert compare(one, other, ())["prompt_templates"] is UNKNOWN
    assert compare(one, other, confirmed)["prompt_templates"] is UNKNOWN
    confirmed.add(("prompt_templates", "first", "2"))
    assert compare(one, other, confirmed)["prompt_templates"] is DIFFERENT


def test_two_forms_of_one_part_say_nothing_about_each_other() -> None:
    assert compare(prompts(a=("template", "1")), prompts(a=("prefix", "2")), ())["prompt_templates"] is UNKNOWN
    assert compare(prompts(a=("template", "1")), prompts(a=("rendered", "1")), ())["prompt_templates"] is UNKNOWN


def test_a_difference_on_a_shared_part_decides_and_agreement_on_some_parts_does_not() -> None:
    one, other = prompts(a=("template", "1"), b=("template", "1")), prompts(a=("template", "1"))
    assert compare(one, other, ())["prompt_templates"] is UNKNOWN
    assert compare(one, prompts(a=("template", "2")), ())["prompt_templates"] is DIFFERENT


def test_a_list_of_tools_is_shown_whole_so_a_tool_that_is_missing_is_a_difference() -> None:
    one, other = tools(look=("schema", "1"), buy=("schema", "1")), tools(look=("schema", "1"))
    assert compare(one, other, ())["tool_bindings"] is DIFFERENT
    assert differing(one, other, ()) == [("tool_bindings", "buy")]
    empty = tools(tools=("known-empty", "0"))
    assert compare(one, empty, ())["tool_bindings"] is DIFFERENT
    assert compare(empty, empty, ())["tool_bindings"] is SAME
    assert compare(one, {}, ())["tool_bindings"] is UNKNOWN


def test_settings_of_tools_are_no_list_and_say_nothing_about_one() -> None:
    listed, told = tools(look=("schema", "1")), tools(bundles=("constant", "1"), submit=("constant", "1"))
    assert compare(listed, told, ())["tool_bindings"] is UNKNOWN
    assert compare(told, tools(bundles=("constant", "1")), ())["tool_bindings"] is UNKNOWN
    assert compare(told, tools(bundles=("constant", "2")), ())["tool_bindings"] is DIFFERENT
    assert compare(told, told, ())["tool_bindings"] is SAME


def test_a_setting_beside_a_list_of_tools_is_none_of_them() -> None:
    bare, told = tools(look=("schema", "1")), tools(look=("schema", "1"), retries=("constant", "1"))
    assert compare(bare, told, ())["tool_bindings"] is UNKNOWN
    assert differing(bare, told, ()) == []


def test_settings_prove_that_two_runtimes_differ_and_never_that_they_are_one() -> None:
    one, other = (half("runtime", parallel_tool_calls=("constant", value)) for value in "12")
    assert compare(one, one, ())["runtime"] is UNKNOWN
    assert compare(one, other, ())["runtime"] is DIFFERENT


def test_what_neither_shows_is_unknown() -> None:
    assert set(compare({}, {}, ()).values()) == {UNKNOWN}


@given(HALF, HALF, CONFIRMED)
def test_comparison_is_symmetric_and_names_a_part_exactly_where_it_finds_a_difference(
    one: dict[str, Any], other: dict[str, Any], confirmed: set[Any]
) -> None:
    found = compare(one, other, confirmed)
    assert found == compare(other, one, confirmed)
    parts = differing(one, other, confirmed)
    assert {component for component, _ in parts} == {name for name, said in found.items() if said is DIFFERENT}


@given(HALF, HALF, HALF, CONFIRMED)
def test_what_is_the_same_as_one_is_not_different_from_another_that_is(
    one: dict[str, Any], other: dict[str, Any], third: dict[str, Any], confirmed: set[Any]
) -> None:
    for name in COMPONENTS:
        said = [compare(a, b, confirmed)[name] for a, b in ((one, other), (other, third), (one, third))]
        if said[:2] == [SAME, SAME]:
            assert said[2] is SAME


@given(HALF, CONFIRMED)
def test_a_half_is_never_different_from_itself(one: dict[str, Any], confirmed: set[Any]) -> None:
    assert DIFFERENT not in compare(one, one, confirmed).values()


def test_a_group_is_named_by_what_other_runs_show_too() -> None:
    one = {**prompts(system=("rendered", "1"), first=("rendered", "9")), **tools(look=("schema", "1"))}
    confirmed = {("prompt_templates", "system", "1")}
    known = shared(one, confirmed)
    assert known == {**prompts(system=("rendered", "1")), **tools(look=("schema", "1"))}
    assert shared(one, ()) == tools(look=("schema", "1"))
    assert name_of(known).startswith(PREFIX)
    assert name_of(known) == name_of(
        shared({**one, **prompts(system=("rendered", "1"), first=("rendered", "8"))}, confirmed)
    )
    assert name_of(known) != name_of(shared(one, ()))
