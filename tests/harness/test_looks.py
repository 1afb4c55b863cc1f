"""How often a validator would look at one value is counted before it does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracemark.harness.impact import Schemas
from tracemark.harness.looks import Looks

MOST = 1000


def nested(opening: str, closing: str, levels: int) -> Any:
    return json.loads(opening * levels + "1" + closing * levels)


def chain(below: Any, *, levels: int = 25, **more: Any) -> dict[str, Any]:
    """Return a schema of which each definition holds what `below` gives of the next one."""
    made: dict[str, Any] = {f"d{level}": below(level) for level in range(levels)}
    return {"$defs": {**made, f"d{levels}": {}}, "properties": {"a": {"$ref": "#/$defs/d0"}}, **more}


ENDLESS = {
    "at one level": (chain(lambda n: {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}), {"a": 1}),
    "from level to level": (
        chain(lambda n: {"items": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}),
        {"a": nested("[", "]", 26)},
    ),
    "by a whole address": (
        chain(lambda n: {"allOf": [{"$ref": f"http://x/#/$defs/d{n + 1}"}] * 2}, **{"$id": "http://x/"}),
        {"a": 1},
    ),
    "by addresses of their own": (
        chain(lambda n: {"$id": f"http://x/d{n}", "anyOf": [{"$ref": f"d{n + 1}"}] * 2})
        | {"properties": {"a": {"$ref": "http://x/d0"}}},
        {"a": 1},
    ),
    "of itself": (
        {
            "properties": {
                "a": {"anyOf": [{"properties": {"a": {"$ref": "#/properties/a"}}, "required": [n]} for n in "xy"]}
            }
        },
        nested('{"a":', "}", 60),
    ),
    "of itself in an older draft": (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "properties": {"a": {"anyOf": [{"$recursiveRef": "#"}] * 2, "required": ["q"]}},
        },
        nested('{"a":', "}", 60),
    ),
    "in a list by place": (
        {
            "$defs": {"t": {"prefixItems": [{"anyOf": [{"$ref": "#/$defs/t"}] * 2}]}},
            "properties": {"a": {"$ref": "#/$defs/t"}},
        },
        {"a": nested("[", "]", 40)},
    ),
    "by dependencies": (
        {"$defs": {"t": {"dependentSchemas": {n: {"additionalProperties": {"$ref": "#/$defs/t"}} for n in "ab"}}}}
        | {"$ref": "#/$defs/t"},
        nested('{"a":', "}", 40),
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_ways_that_multiply_are_counted(name: str) -> None:
    schema, arguments = ENDLESS[name]
    assert Looks(schema, MOST).exceed(arguments)
    assert not Looks(schema, MOST).exceed({}) or name in (
        "at one level",
        "by a whole address",
        "by addresses of their own",
    )
    tools = Schemas([{"type": "function", "function": {"name": "look", "parameters": schema}}])
    assert tools.faults("look", arguments) is None


USUAL = {
    "any JSON": (
        {
            "$defs": {
                "any": {
                    "anyOf": [
                        {"type": ["string", "number", "boolean", "null"]},
                        {"type": "array", "items": {"$ref": "#/$defs/any"}},
                        {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
                    ]
                }
            },
            "additionalProperties": {"$ref": "#/$defs/any"},
        },
        {"x": [nested('{"a":', "}", 60), nested("[", "]", 60)]},
    ),
    "a tree": (
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}}},
        {"left": nested('{"left":{"right":', "}}", 40)},
    ),
    "many members": (
        {"properties": {f"m{number}": {"anyOf": [{"type": "integer"}, {"type": "null"}]} for number in range(2000)}},
        {f"m{number}": number for number in range(2000)},
    ),
    "alternatives that go on, a few levels deep": (
        {
            "oneOf": [
                {"properties": {"op": {"const": op}, "args": {"items": {"$ref": "#"}}}, "required": ["op"]}
                for op in ("and", "or", "not")
            ]
        },
        {"op": "and", "args": [{"op": "or", "args": [{"op": "not", "args": [{"op": "and", "args": []}]}]}]},
    ),
    "a schema that applies to its own value": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, {"a": 1}),
    "no mapping": (True, {"a": nested("[", "]", 9)}),
}


@pytest.mark.parametrize("name", USUAL)
def test_schemas_as_people_write_them_are_judged(name: str) -> None:
    schema, arguments = USUAL[name]
    assert not Looks(schema, MOST).exceed(arguments)


@pytest.mark.parametrize("place", ["items", "contains", "additionalItems", "unevaluatedItems"])
def test_each_keyword_that_leads_on_in_a_list_is_one_way(place: str) -> None:
    schema = {"$defs": {"t": {place: {"anyOf": [{"$ref": "#/$defs/t"}] * 2}}}, "$ref": "#/$defs/t"}
    assert Looks(schema, MOST).exceed(nested("[", "]", 20))
    assert not Looks(schema, MOST).exceed(nested("[", "]", 3))
    assert not Looks(schema, MOST).exceed(nested('{"a":', "}", 1))


@pytest.mark.parametrize(
    "place", ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"]
)
def test_each_keyword_that_applies_to_the_same_value_is_one_way(place: str) -> None:
    def holding(reference: str) -> Any:
        below = {"$ref": reference}
        return {"depend": {"n": below}, "allOf": [below], "anyOf": [below], "oneOf": [below]}.get(place[:6], below)

    def chained(reference: Any) -> dict[str, Any]:
        made: dict[str, Any] = {
            f"d~/{n}": {place: holding(reference(n + 1)), "additionalProperties": {"$ref": reference(n + 1)}}
            for n in range(14)
        }
        return {"$ref": reference(0), "$defs": {**made, "d~/14": {}}}

    looks = Looks(chained(lambda n: f"#/$defs/d~0~1{n}"), MOST)
    assert not looks.exceed({})
    assert looks.exceed(nested('{"a":', "}", 7))


def test_names_of_members_are_looked_at_too() -> None:
    chained = chain(lambda n: {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2})
    assert Looks({"$defs": chained["$defs"], "propertyNames": {"$ref": "#/$defs/d0"}}, MOST).exceed({"a": 1})


def test_an_address_of_an_older_draft_is_one() -> None:
    below = {"allOf": [{"$ref": "other"}] * 40}
    schema = {"definitions": {"a": {"id": "http://x/other", "allOf": [below["allOf"][0] | {"$ref": "last"}] * 40}}}
    schema["definitions"]["b"] = {"id": "http://x/last", "type": "object"}
    assert Looks({**schema, **below, "id": "http://x/"}, MOST).exceed({})


@pytest.mark.parametrize("place", ["additionalProperties", "unevaluatedProperties", "patternProperties"])
def test_each_keyword_that_leads_on_in_an_object_is_one_way(place: str) -> None:
    below: Any = {"anyOf": [{"$ref": "#/$defs/t"}] * 2}
    schema = {"$defs": {"t": {place: {"": below} if place == "patternProperties" else below}}, "$ref": "#/$defs/t"}
    assert Looks(schema, MOST).exceed(nested('{"a":', "}", 20))
    assert not Looks(schema, MOST).exceed(nested('{"a":', "}", 3))
