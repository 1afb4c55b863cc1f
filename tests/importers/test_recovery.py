"""What is recovered of a harness, and when nothing is: of a value that is short, stands there twice, or is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark import digest
from tracemark.importers.recovery import constant, rendered, settings, substituted, template, tools_key

POLICY = "Lend one book to a reader at a time, never more."
TEMPLATE = "You lend books.\n<policy>{{ policy }}</policy>"
SENT = f"You lend books.\n<policy>{POLICY}</policy>"
TOOL = {"name": "lend", "description": "Lend.", "parameters": {"type": "object"}}


def test_a_template_counts_where_it_makes_up_the_message_from_first_to_last_character() -> None:
    [entry] = template("system", TEMPLATE, SENT)
    assert (entry["part"], entry["form"]) == ("system", "template")
    assert entry["digest"] == digest.sha256(TEMPLATE.encode())
    for other in (SENT + "!", "!" + SENT, SENT.replace("books", "b")):
        assert template("system", TEMPLATE, other) == []
    assert template("system", TEMPLATE + "{% if x %}y{% endif %}", SENT) == []


def test_a_message_without_the_values_of_its_record_is_the_same_for_other_values() -> None:
    [one] = substituted("system", SENT, [POLICY])
    other = POLICY.replace("one book", "two books")
    assert substituted("system", SENT.replace(POLICY, other), [other]) == [one]
    assert (one["part"], one["form"]) == ("system", "substituted")


@pytest.mark.parametrize(
    ("sent", "values"),
    [
        (SENT, []),
        (SENT, ["lend"]),
        (SENT, [POLICY, "lend"]),
        (SENT, [POLICY.upper()]),
        (SENT + POLICY, [POLICY]),
        (SENT + "\0", [POLICY]),
    ],
)
def test_a_value_that_is_short_missing_or_there_twice_leaves_nothing(sent: str, values: list[str]) -> None:
    assert substituted("system", sent, values) == []


def test_a_text_a_setting_and_what_is_unknown() -> None:
    assert rendered("system", "") == []
    assert rendered("system", "a")[0]["form"] == "rendered"
    assert constant("limit", None) == []
    assert constant("limit", 0) == [{"part": "limit", "form": "constant", "digest": digest.of(0)}]
    assert [entry["part"] for entry in settings({"b": 1, "a": "", "c": None})] == ["a", "b"]


@pytest.mark.parametrize(
    "same",
    [
        [{"type": "function", "function": TOOL}, {"name": "find"}],
        [{"name": "find", "description": None}, TOOL],
        [{**TOOL, "strict": None}, {"name": "find", "parameters": None}],
    ],
)
def test_order_wrapper_and_padding_make_no_other_tools(same: Any) -> None:
    assert tools_key(same) == tools_key([TOOL, {"name": "find"}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([TOOL], [{**TOOL, "description": "Lend it."}]),
        ([TOOL], [TOOL, TOOL]),
        ([TOOL], []),
        ([], None),
        # what cannot be read is compared as it stands, not by its name
        ([{"name": "x", "parameters": 7}], [{"name": "x", "parameters": 8}]),
        (["x"], ["y"]),
        ("x", ["x"]),
    ],
)
def test_other_tools_are_others(one: Any, other: Any) -> None:
    assert tools_key(one) != tools_key(other)
