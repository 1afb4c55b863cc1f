"""What a stamp is worth: its weakest component, and all four count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import EVIDENCE, component_stamp, evidence_of, lowered, weakest


def stamp(evidence: Sequence[str]) -> dict[str, Any]:
    """Return a stamp whose components, from the first on, have this evidence; the rest is not declared."""
    parts = {"only": "0" * 64}
    components = {
        name: component_stamp("0" * 64, parts, {"only": value})
        for name, value in zip(COMPONENTS, evidence, strict=False)
    }
    return {"declared": {"components": components}}


@given(st.lists(st.sampled_from(EVIDENCE), min_size=4, max_size=4))
def test_a_whole_stamp_is_worth_its_weakest_component(evidence: list[str]) -> None:
    assert evidence_of(stamp(evidence)) == weakest(evidence)


@pytest.mark.parametrize("count", range(4))
def test_a_component_that_nobody_declared_is_unrecorded_and_so_is_the_stamp(count: int) -> None:
    assert evidence_of(stamp(["recorded"] * count)) == "unrecorded"


@pytest.mark.parametrize("nothing", [{}, {"declared": {}}, {"observed": {}}])
def test_a_stamp_that_declares_nothing_is_unrecorded(nothing: dict[str, Any]) -> None:
    assert evidence_of(nothing) == "unrecorded"


def test_a_component_without_parts_lowers_nothing() -> None:
    vacuous = stamp(["claimed"] * 4)
    vacuous["declared"]["components"]["runtime"] = component_stamp("0" * 64, {}, {})
    assert evidence_of(vacuous) == "claimed"


def test_a_harness_without_any_part_is_claimed_at_most() -> None:
    empty = {name: component_stamp("0" * 64, {}, {}) for name in COMPONENTS}
    assert evidence_of({"declared": {"components": empty}}) == "claimed"
    assert evidence_of({"declared": {"components": dict(list(empty.items())[1:])}}) == "unrecorded"
    some = {**empty, "runtime": component_stamp("0" * 64, {"limits": "0" * 64}, {"limits": "recorded"})}
    assert evidence_of({"declared": {"components": some}}) == "recorded"


@given(st.lists(st.sampled_from(EVIDENCE), max_size=3))
def test_what_is_lowered_is_claimed_at_most_and_keeps_its_digests(evidence: list[str]) -> None:
    names = {f"p{number}": value for number, value in enumerate(evidence)}
    before = {"runtime": component_stamp("0" * 64, dict.fromkeys(names, "1" * 64), names)}
    after = lowered(before)
    expected = {name: value if value == "unrecorded" else "claimed" for name, value in names.items()}
    assert after == {"runtime": component_stamp("0" * 64, dict.fromkeys(names, "1" * 64), expected)}
    assert lowered(after) == after
    assert after["runtime"]["evidence"] == weakest(expected.values())
