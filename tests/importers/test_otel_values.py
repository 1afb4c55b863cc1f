"""Values of OTLP JSON, typed and plain, and lists that grow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.otel_values import Lists, elements, named, normal, parsed, plain, time_of

from .otel_made import listed, typed

VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_typed_value_is_read_as_it_was(value: Any) -> None:
    assert plain(typed(value)) == value


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_listed_attributes_are_read_as_they_were(attributes: dict[str, Any]) -> None:
    assert {name: plain(value) for name, value in named(listed(attributes)).items()} == attributes


@pytest.mark.parametrize(
    "value", [None, 1, "x", [1], {"a": 1}, {"stringValue": "x", "b": 1}, {"arrayValue": 3}, {"bytesValue": "AA"}]
)
def test_what_is_no_typed_value_is_left_as_it_stands(value: Any) -> None:
    assert plain(value) == value


def test_an_empty_value_is_none() -> None:
    assert plain({}) is None


@given(st.lists(st.lists(VALUES, max_size=4), max_size=4), st.booleans())
def test_a_list_that_grows_is_read_as_if_each_were_read_alone(growth: list[list[Any]], is_compact: bool) -> None:
    separators = (",", ":") if is_compact else (", ", ": ")
    lists, whole = Lists(), list[Any]()
    for more in growth:
        whole = [*whole, *more]
        text = json.dumps(whole, separators=separators)
        assert lists.elements("x", {"stringValue": text}, []) == json.loads(text)


@pytest.mark.parametrize("text", ["[1,]", "[1,2", "[1]]", "[1],", '[1,"a]'])
def test_a_text_that_is_no_list_is_none_though_it_begins_as_one(text: str) -> None:
    lists = Lists()
    assert lists.elements("x", "[1]", []) == [1]
    assert lists.elements("x", text, []) is None


def test_elements_of_a_typed_list_stay_typed() -> None:
    assert elements(typed(["x"]), []) == [{"stringValue": "x"}]
    assert elements({"arrayValue": {}}, []) == []
    assert elements(typed("x"), []) is None


def test_a_text_that_is_no_json_is_left_as_it_stands() -> None:
    assert parsed("{x") == "{x"
    assert parsed(' {"a": 1}') == {"a": 1}


def test_what_json_has_not_is_noted() -> None:
    notes: list[str] = []
    assert elements(typed("[NaN]"), notes) == ["NaN"]
    assert len(notes) == 1


@pytest.mark.parametrize(("text", "one"), [("4BF9", "4bf9"), ("S/lA==", "S/lA==")])
def test_only_hexadecimal_ids_have_no_case(text: str, one: str) -> None:
    assert normal(text) == one


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (1_767_225_600_000_000_000, "2026-01-01T00:00:00.000000Z"),
        (1_767_225_600_000_000_001, "2026-01-01T00:00:00.000000001Z"),
        (2**80, None),
        (None, None),
    ],
)
def test_a_time_has_the_digits_that_it_needs(nanoseconds: int | None, text: str | None) -> None:
    assert time_of(nanoseconds) == text
