"""What a tool is, whatever wrapper it arrives in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.tools import Definitions, ToolSchemaError, read_tools, reduce_tool

PARAMETERS = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
BARE = {"name": "refund", "description": "Give it back.", "parameters": PARAMETERS}

words = st.sampled_from(
    ["type", "const", "default", "enum", "properties", "items", "anyOf", "$defs", "not", "minimum", "description"]
)
scalars = st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, 1.0, -0.0, 1e30]) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)
schemas = st.dictionaries(words, values, max_size=4)


def wrap(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "t", "parameters": schema, **more}


def pad(value: Any) -> Any:
    """Add a null member to every object, as a table format does that unifies its rows."""
    if isinstance(value, dict):
        return {**{key: pad(inner) for key, inner in value.items()}, "padding\x00": None}
    return [pad(inner) for inner in value] if isinstance(value, list) else value


def turn(value: Any) -> Any:
    """Reverse the order of members everywhere."""
    if isinstance(value, dict):
        return {key: turn(value[key]) for key in reversed(list(value))}
    return [turn(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "raw",
    [
        BARE,
        {"type": "function", "function": BARE},
        {"type": "function", **BARE},
        {"type": "function", **BARE, "strict": None, "defer_loading": None},
        {"name": "refund", "description": "Give it back.", "input_schema": PARAMETERS},
        {"name": "refund", "description": "Give it back.", "input_schema": PARAMETERS, "type": "custom"},
        {"name": "refund", "description": "Give it back.", "inputSchema": PARAMETERS, "annotations": {"title": "x"}},
        {**BARE, "input_schema": PARAMETERS, "cache_control": {"type": "ephemeral"}, "strict": False},
        {"type": "function", "function": {**BARE, "strict": False}, "extra": 1},
    ],
)
def test_every_wrapper_of_one_tool_reduces_to_the_same_definition(raw: dict[str, Any]) -> None:
    assert reduce_tool(raw) == BARE


@pytest.mark.parametrize("raw", [{**BARE, "strict": True}, {"type": "function", "function": {**BARE, "strict": True}}])
def test_strict_is_kept_only_when_true(raw: dict[str, Any]) -> None:
    assert reduce_tool(raw) == {**BARE, "strict": True}


def test_absent_and_empty_stay_apart() -> None:
    assert reduce_tool({"name": "t"}) == {"name": "t"}
    assert reduce_tool({"name": "t", "description": "", "parameters": {}}) == {
        "name": "t",
        "description": "",
        "parameters": {},
    }


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"const": None}, {"const": None}),
        ({"default": None}, {}),
        ({"properties": {"const": None, "a": None}}, {"properties": {}}),
        ({"properties": {"const": {"const": None, "title": None}}}, {"properties": {"const": {"const": None}}}),
        ({"properties": {"properties": {"const": None}}}, {"properties": {"properties": {"const": None}}}),
        ({"enum": [None, 1.0, {"a": None}]}, {"enum": [None, 1, {}]}),
        ({"default": {"const": None, "a": [None]}}, {"default": {"a": [None]}}),
        ({"anyOf": [{"const": None}, None]}, {"anyOf": [{"const": None}, None]}),
        ({"items": {"not": {"const": None}}}, {"items": {"not": {"const": None}}}),
        ({"$defs": {"x": {"const": None}, "y": None}}, {"$defs": {"x": {"const": None}}}),
        ({"additionalProperties": False, "x-note": {"const": None}}, {"additionalProperties": False, "x-note": {}}),
    ],
)
def test_null_is_a_constraint_only_in_const_of_a_schema(schema: dict[str, Any], reduced: dict[str, Any]) -> None:
    assert reduce_tool(wrap(schema))["parameters"] == reduced


def test_integral_floats_are_integers_and_booleans_are_not_numbers() -> None:
    parameters = reduce_tool(wrap({"maximum": 25.0, "minimum": 0.5, "default": True, "enum": [1e3]}))["parameters"]
    assert [type(parameters[key]) for key in ("maximum", "minimum", "default")] == [int, float, bool]
    assert parameters == {"maximum": 25, "minimum": 0.5, "default": True, "enum": [1000]}


@given(schemas)
def test_reducing_twice_changes_nothing(schema: dict[str, Any]) -> None:
    once = reduce_tool(wrap(schema))
    assert reduce_tool(once) == once


@given(schemas)
def test_null_padding_changes_nothing(schema: dict[str, Any]) -> None:
    assert reduce_tool(pad(wrap(schema))) == reduce_tool(wrap(schema))


@given(schemas)
def test_the_order_of_members_changes_nothing(schema: dict[str, Any]) -> None:
    assert reduce_tool(turn(wrap(schema))) == reduce_tool(wrap(schema))


@given(values)
def test_junk_never_crashes_and_gives_no_member_of_its_own(raw: Any) -> None:
    try:
        reduced = reduce_tool(raw)
    except ToolSchemaError:
        reduced = {}
    assert set(reduced) <= {"name", "description", "parameters", "strict"}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "object"),
        ([], "object"),
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": 3}, "name"),
        ({"type": "function", "function": "refund"}, "function"),
        ({"name": "t", "description": 1}, "description"),
        ({"name": "t", "parameters": "{}"}, "parameters"),
        ({"name": "t", "parameters": {}, "inputSchema": {"type": "object"}}, "disagree"),
        ({"type": "bash_20250124", "name": "bash"}, "built into"),
        ({"type": "object", "properties": {"city": {"type": "string"}}}, "put it into `parameters`"),
        ({"type": "custom", "name": "t", "format": {"type": "grammar"}}, "format"),
        ({"type": "custom", "custom": {"name": "t", "format": {"type": "grammar"}}}, "format"),
        ({"type": "custom", "custom": "t"}, "custom"),
    ],
)
def test_each_kind_of_junk_names_what_is_wrong(raw: Any, reason: str) -> None:
    with pytest.raises(ToolSchemaError, match=reason):
        reduce_tool(raw)


def test_nesting_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"not": schema}
    with pytest.raises(ToolSchemaError, match="nested"):
        reduce_tool(wrap(schema))


def test_a_list_of_tools_is_sorted_by_name_and_repetitions_count_once() -> None:
    assert read_tools([wrap({}), BARE, {"type": "function", "function": BARE}]) == Definitions([BARE, wrap({})], [])
    assert read_tools([]) == Definitions([], [])


def test_two_definitions_of_one_name_are_both_kept() -> None:
    assert read_tools([wrap({}), wrap({"type": "object"})]).readable == [wrap({"type": "object"}), wrap({})]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"name": "t", "parameters": []}, "t"),
        ({"type": "function", "function": {"name": "t", "parameters": []}}, "t"),
        ({"name": "t", "parameters": {"maximum": float("nan")}}, "t"),
        ({"type": "bash_20250124", "name": "bash"}, "bash"),
        ({"type": "web_search_preview"}, "web_search_preview"),
        ({"type": "function", "function": {"description": "d"}}, None),
        ({"whatever": 1}, None),
        ({"name": ""}, None),
        ("t", None),
        (None, None),
    ],
)
def test_a_definition_that_cannot_be_read_hides_no_other_and_is_named_where_it_says(raw: Any, name: str | None) -> None:
    assert read_tools([raw, BARE]) == Definitions([BARE], [name])
