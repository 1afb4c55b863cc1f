"""Rows of one set are compared in what their files hold whole of handlers and runtime."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.exporters.agreement import Row, Shown, differences, shown_in, worded

A, B = "a" * 64, "b" * 64


def entry(part: str, value: str, form: str = "constant") -> dict[str, str]:
    return {"part": part, "form": form, "digest": value}


def line(observed: dict[str, Any] | None, **more: Any) -> bytes:
    harness = {} if observed is None else {"observed": observed}
    return digest.canonical({"format": "f", "harness": {**harness, **more}, "outcome": {}, "run": {}, "trajectory": {}})


def test_what_a_source_holds_whole_of_handlers_and_runtime_is_taken() -> None:
    observed = {
        "observation_handlers": [entry("observation_template", A)],
        "prompt_templates": [entry("system", A), entry("first", A, "rendered")],
        "runtime": [entry("parallel", B), entry("parser", A, "rendered")],
        "tool_bindings": [entry("bundles", A)],
    }
    assert shown_in(line(observed)) == (
        Shown("observation_handlers", "observation_template", A),
        Shown("runtime", "parallel", B),
    )


@pytest.mark.parametrize("observed", [None, {}, {"runtime": [entry("parallel", A, "rendered")]}])
def test_a_trace_that_holds_nothing_whole_shows_nothing(observed: dict[str, Any] | None) -> None:
    assert shown_in(line(observed)) == ()


def test_a_part_that_is_called_outcome_cuts_nothing_short() -> None:
    observed = {"runtime": [entry("parallel", A)]}
    told = {"declared": {"parts": {"a": 1, "outcome": {"form": "constant"}}}}
    assert shown_in(line(observed, **told)) == (Shown("runtime", "parallel", A),)


def test_rows_that_show_the_same_or_other_parts_agree() -> None:
    shown = [[Shown("runtime", "parallel", A)], [Shown("runtime", "limits", B)], [], [Shown("runtime", "parallel", A)]]
    assert differences(Row(str(number), each, {}) for number, each in enumerate(shown)) == []


def test_rows_are_compared_where_their_harnesses_declare_the_same() -> None:
    shown = [Shown("runtime", "parallel", A)], [Shown("runtime", "parallel", B)]

    def found(one: dict[str, str], other: dict[str, str]) -> list[Any]:
        return differences([Row("1", shown[0], one), Row("2", shown[1], other)])

    assert found({"runtime": "x"}, {"runtime": "y"}) == []
    handlers = [
        Row(str(n), [Shown("observation_handlers", "t", value)], {"runtime": str(n)}) for n, value in enumerate((A, B))
    ]
    assert len(differences(handlers)) == 1
    assert len(found({"runtime": "x"}, {"runtime": "x"})) == 1
    assert len(found({"runtime": "x", "prompt_templates": "p"}, {"runtime": "x", "prompt_templates": "q"})) == 1


def test_a_part_of_which_rows_show_more_than_one_is_named_with_their_number() -> None:
    rows = [("1", A), ("2", B), ("3", B)]
    found = differences(Row(trace * 64, [Shown("runtime", "parallel", value)], {}) for trace, value in rows)
    [one] = found
    assert (one.component, one.part) == ("runtime", "parallel")
    assert one.rows == ((2, "2" * 64), (1, "1" * 64))
    assert worded(found) == (
        "their files show more than one runtime/parallel (2 like 222222222222, 1 like 111111111111)"
    )
    assert worded([*found, *found]).endswith(", and 1 more parts")


@given(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("12")), max_size=8))
def test_there_is_a_difference_exactly_where_a_part_has_two_values(pairs: list[tuple[str, str]]) -> None:
    rows = [Row(str(number), [Shown("runtime", part, value)], {}) for number, (part, value) in enumerate(pairs)]
    values: dict[str, set[str]] = {}
    for part, value in pairs:
        values.setdefault(part, set()).add(value)
    assert [one.part for one in differences(rows)] == sorted(part for part, seen in values.items() if len(seen) > 1)
