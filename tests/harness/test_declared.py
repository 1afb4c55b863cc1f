"""A stored stamp beside a harness: the same, different, or not known, part by part."""

import pytest

from tracemark import digest
from tracemark.harness.declared import ORDER, Comparison, compare
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import component_stamp


def stamp(harness, evidence="claimed"):
    identity = harness.identity
    return {
        name: component_stamp(identity.components[name], parts, dict.fromkeys(parts, evidence))
        for name, parts in identity.parts.items()
    }


def differing(declared, harness):
    return [
        (component, part)
        for component, parts in compare(declared, harness).items()
        for part, said in parts.items()
        if said is Comparison.DIFFERENT
    ]


def test_a_stamp_of_the_harness_is_the_same_in_every_part(desk):
    harness = desk.load()
    found = compare(stamp(harness), harness)
    assert {component: list(parts) for component, parts in found.items()} == {
        component: list(harness.identity.parts[component]) for component in COMPONENTS
    }
    assert {said for parts in found.values() for said in parts.values()} == {Comparison.SAME}


@pytest.mark.parametrize("component", COMPONENTS)
def test_an_unrecorded_component_is_unknown_and_not_different(desk, component):
    harness = desk.load()
    declared = stamp(harness)
    del declared[component]
    assert set(compare(declared, harness)[component].values()) == {Comparison.UNKNOWN}
    assert differing(declared, harness) == []
    assert differing({}, harness) == []


def test_a_part_of_evidence_unrecorded_is_unknown_whatever_digest_stands_there(desk):
    harness = desk.load()
    for value in ("0" * 64, harness.identity.parts["tool_bindings"]["refund"]):
        declared = stamp(harness)
        declared["tool_bindings"]["parts"]["refund"] = {"digest": value, "evidence": "unrecorded"}
        assert compare(declared, harness)["tool_bindings"] == {
            "look_up": Comparison.SAME,
            "refund": Comparison.UNKNOWN,
        }


def test_a_difference_on_a_shared_part_and_a_part_of_one_side_are_different(desk, other):
    other.replace("logic/tools.py", "return 1", "return 2")
    other.replace("harness.yaml", "  - {name: style, text: Be brief., role: user, position: any}\n", "")
    expected = [("prompt_templates", "style"), ("tool_bindings", "look_up"), ("tool_bindings", "refund")]
    assert differing(stamp(desk.load()), other.load()) == expected
    assert differing(stamp(other.load()), desk.load()) == expected


def test_equal_parts_in_another_order_differ_where_order_counts(desk, other):
    text = (other.path / "harness.yaml").read_text()
    cut, redact = (line for line in text.splitlines(keepends=True) if "logic/handlers.py" in line)
    other.replace("harness.yaml", cut + redact, redact + cut)
    assert differing(stamp(desk.load()), other.load()) == [("observation_handlers", ORDER)]


def test_a_mapping_has_no_order_and_a_stored_stamp_keeps_none(desk):
    harness = desk.load()
    declared = stamp(harness)
    for component in ("tool_bindings", "runtime"):
        declared[component]["digest"] = "0" * 64
    stored = digest.load_canonical(digest.canonical(declared))
    assert differing(stored, harness) == []


def test_a_component_without_parts_is_the_same_only_where_there_are_none(desk):
    harness = desk.load()
    declared = stamp(harness)
    declared["tool_bindings"] = component_stamp(digest.of({}), {}, {})
    assert differing(declared, harness) == [("tool_bindings", "look_up"), ("tool_bindings", "refund")]
