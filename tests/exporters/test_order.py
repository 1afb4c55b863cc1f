"""Order of members: as the harness has it, else as is usual, and never more than order."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.exporters import order

NAMES = st.sampled_from(["type", "name", "function", "parameters", "properties", "items", "anyOf", "$ref", "a", "b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(NAMES, VALUES)


def text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def sorted_members(value: Any) -> Any:
    return json.loads(digest.canonical(value))


@given(OBJECTS, VALUES)
def test_a_definition_changes_in_order_alone_and_does_not_depend_on_the_one_it_came_in(tool: Any, own: Any) -> None:
    before = text(tool)
    made = order.definition(tool, own)
    assert digest.canonical(made) == digest.canonical(tool)
    assert text(order.definition(sorted_members(tool), own)) == text(made)
    assert text(tool) == before


@given(OBJECTS)
def test_a_definition_equal_to_that_of_the_harness_is_written_as_the_harness_has_it(own: Any) -> None:
    assert text(order.definition(sorted_members(own), own)) == text(own)


@given(OBJECTS, VALUES)
def test_arguments_change_in_order_alone_and_do_not_depend_on_the_one_they_came_in(given_: Any, schema: Any) -> None:
    before = text(given_)
    known = order.Arguments(schema)
    made = known.arranged(given_)
    assert digest.canonical(made) == digest.canonical(given_)
    assert text(known.arranged(sorted_members(given_))) == text(made)
    assert text(given_) == before


@given(OBJECTS)
def test_arguments_of_a_schema_that_says_nothing_are_sorted_at_every_depth(arguments: Any) -> None:
    silent: list[Any] = [None, True, [], {}, {"properties": []}, {"$ref": 5, "anyOf": {}}]
    for schema in silent:
        assert digest.ordered(order.Arguments(schema).arranged(arguments)) == digest.canonical(arguments)


def test_names_of_properties_are_no_keywords() -> None:
    properties = {"items": {}, "type": {"enum": ["z"], "type": "string"}, "enum": {"default": {"type": 1, "enum": 2}}}
    tool = {"function": {"name": "t", "parameters": {"properties": properties}}}
    made = order.definition(tool)["function"]["parameters"]["properties"]
    assert text(made) == text(
        {"enum": {"default": {"enum": 2, "type": 1}}, "items": {}, "type": {"type": "string", "enum": ["z"]}}
    )


POINT = {"type": "object", "properties": {"y": {}, "x": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"p": POINT}},
        {"properties": {"p": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": POINT}},
        {"properties": {"p": {"anyOf": [{"type": "null"}, POINT]}}},
        {"properties": {"p": {"allOf": [{"$ref": "#/$defs/p"}]}}, "$defs": {"p": POINT}},
        {"additionalProperties": POINT},
        {"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"p": POINT}}}},
    ],
)
def test_nested_arguments_have_the_order_that_the_schema_gives_them(schema: Any) -> None:
    assert text(order.Arguments(schema).arranged({"p": {"x": 1, "y": 2}})) == text({"p": {"y": 2, "x": 1}})
    lists = {"properties": {"p": {"items": {"items": POINT}}}}
    given_ = {"p": [[{"x": 1, "y": 2}], 3]}
    assert text(order.Arguments(lists).arranged(given_)) == text({"p": [[{"y": 2, "x": 1}], 3]})


def test_what_the_schema_itself_lists_stands_before_what_its_alternatives_list() -> None:
    schema = {"anyOf": [{"properties": {"b": {}, "a": {}}}], "properties": {"z": {}}}
    assert list(order.Arguments(schema).arranged({"a": 1, "b": 2, "c": 3, "z": 4})) == ["z", "b", "a", "c"]


def test_a_schema_that_refers_to_itself_orders_every_depth() -> None:
    schema: Any = {"properties": {"next": {"$ref": "#"}, "at": {}}, "anyOf": [{"$ref": "#"}]}
    arguments: Any = {"at": 0}
    for depth in range(3000):
        arguments = {"at": depth, "next": arguments}
    made = order.Arguments(schema).arranged(arguments)
    for _ in range(3000):
        assert list(made) == ["next", "at"]
        made = made["next"]


def test_a_deep_definition_does_not_exhaust_the_stack() -> None:
    tool: Any = {}
    for _ in range(5000):
        tool = {"a": [tool]}
    assert digest.canonical(order.definition(tool, tool)) == digest.canonical(tool)


def test_many_sets_of_arguments_are_ordered_alike() -> None:
    known = order.Arguments({"properties": {"z": {}}})
    for number in range(1000):
        assert list(known.arranged({f"a{number}": 1, "z": 2})) == ["z", f"a{number}"]


@pytest.mark.parametrize(("length", "kept"), [(10, True), (5000, False)])
def test_arguments_with_long_names_are_arranged_like_others_and_not_remembered(length: int, kept: bool) -> None:
    known = order.Arguments({"properties": {"b": {}, "a": {}}})
    name = "c" * length
    before = sys.getrefcount(name)
    assert list(known.arranged({"a": 1, name: 3, "b": 2})) == ["b", "a", name]
    assert (sys.getrefcount(name) > before) is kept
