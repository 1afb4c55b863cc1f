"""What stands in the holes of constants, where the message leaves no choice; and whether it stays the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.constants import ConstantHoles, Constants, held
from tracemark.harness.loading import load
from tracemark.harness.templates import pattern
from tracemark.model.harness import PromptTemplate

TEXT = "You serve {shop}.\nPolicy: {policy}\nToday is {day}. Be exact."
VARIABLES = {"shop": "constant", "policy": "task", "day": "run"}


def holes(folder: Path, *templates: dict[str, Any]) -> ConstantHoles:
    declared = [{"name": "main", "syntax": "format", **template} for template in templates]
    (folder / "harness.yaml").write_text(json.dumps({"format": "tracemark/harness/1", "prompt_templates": declared}))
    return ConstantHoles(load(folder))


def shown(found: ConstantHoles, *texts: str) -> list[tuple[str, str, str]]:
    return list(found.values([("system", text, number) for number, text in enumerate(texts, 1)]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT.format(shop="North", policy="None.", day="Monday"), [("main", "shop", "North")]),
        (TEXT.format(shop="", policy="", day=""), [("main", "shop", "")]),
        (TEXT.format(shop="N.\nPolicy: x", policy="y", day="z"), []),
        (TEXT.format(shop="N", policy="a.\nPolicy: b", day="z"), []),
        ("Something else.", []),
    ],
    ids=["one place", "nothing", "its end stands in it", "its end stands in another hole", "no rendering"],
)
def test_a_constant_has_the_value_that_the_message_leaves_no_choice_of(
    tmp_path: Path, text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert shown(holes(tmp_path, {"text": TEXT, "variables": VARIABLES}), text) == expected


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        ({"text": "{a}: rules", "variables": {"a": "constant"}}, "x: rules", [("main", "a", "x")]),
        ({"text": "rules: {a}", "variables": {"a": "constant"}}, "rules: x", [("main", "a", "x")]),
        ({"text": "{a}", "variables": {"a": "constant"}}, "x", []),
        ({"text": "<{a}{b}>", "variables": {"a": "constant", "b": "constant"}}, "<xy>", [("main", "a b", "xy")]),
        ({"text": "<{a}{b}>", "variables": {"a": "constant", "b": "task"}}, "<xy>", []),
        ({"text": "<{a!r}>", "variables": {"a": "constant"}}, "<'x'>", []),
        ({"text": "<{{ a }}>", "syntax": "jinja", "variables": {"a": "constant"}}, "<x>", [("main", "a", "x")]),
        ({"text": "<{{ a|upper }}>", "syntax": "jinja", "variables": {"a": "constant"}}, "<X>", []),
        ({"text": "{% if a %}{{ a }}{% endif %}", "syntax": "jinja", "variables": {"a": "constant"}}, "x", []),
        ({"text": "<{a}> {b}", "variables": {"a": "constant", "b": "run"}, "values": {"a": "x"}}, "<x> y", []),
    ],
)
def test_each_hole_that_holds_constants_alone_is_looked_at(
    tmp_path: Path, template: dict[str, Any], text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert shown(holes(tmp_path, template), text) == expected


def test_a_harness_without_such_a_constant_has_nothing_to_look_at(tmp_path: Path) -> None:
    assert not holes(tmp_path, {"text": TEXT, "variables": {**VARIABLES, "shop": "run"}})
    assert not holes(tmp_path, {"text": TEXT, "variables": VARIABLES, "values": {"shop": "North"}})
    assert holes(tmp_path, {"text": TEXT, "variables": VARIABLES})


def test_of_a_message_that_may_be_another_templates_nothing_is_said(tmp_path: Path) -> None:
    text = TEXT.format(shop="North", policy="None.", day="Monday")
    untold = {"name": "hints", "text": "{% if x %}{{ x }}{% endif %}", "syntax": "jinja"}
    assert shown(holes(tmp_path, untold, {"text": TEXT, "variables": VARIABLES}), text) == []


def seen(*values: str, fingerprint: str = "f") -> Constants:
    constants = Constants()
    for number, value in enumerate(values):
        constants.add(fingerprint, f"t{number}", [("main", "shop", value)])
    return constants


def varying(constants: Constants) -> list[tuple[str, ...]]:
    return [(f, t, v, *(f"{one.excerpt}@{one.trace}" for one in values)) for f, t, v, values in constants.varying()]


def test_two_values_of_one_constant_vary_and_equal_ones_do_not() -> None:
    assert varying(seen("North", "North")) == []
    assert varying(seen("North", "North", "South", "East")) == [("f", "main", "shop", "North@t0", "South@t2")]


def test_values_are_told_apart_behind_what_is_shown_of_them() -> None:
    assert len(varying(seen("x" * 50 + "a", "x" * 50 + "b"))) == 1


def test_the_values_of_different_harnesses_are_not_compared() -> None:
    both = seen("North")
    both.merge(seen("South", fingerprint="g"))
    assert varying(both) == []


def test_what_two_processes_saw_is_put_together() -> None:
    one = seen("North")
    one.merge(seen("North", "South"))
    assert varying(one) == [("f", "main", "shop", "North@t0", "South@t1")]


def test_what_is_kept_does_not_grow_with_the_traces() -> None:
    many = seen(*map(str, range(1_000)))
    assert sum(map(len, many._seen.values())) == 2


PIECES = st.lists(st.sampled_from(["ab", "b", "a.", None]), min_size=1, max_size=6)


@given(PIECES, st.lists(st.text("ab.", max_size=5), min_size=6, max_size=6))
def test_a_value_that_is_told_is_the_one_that_stands_there(pieces: list[str | None], values: list[str]) -> None:
    text = "".join("{x}" if piece is None else piece for piece in pieces)
    found = pattern(PromptTemplate(name="p", text=text, syntax="format"), text)
    assert found is not None
    rendered, fillings, number = "", [], -1
    for piece, value in zip(pieces, values, strict=False):
        if piece is not None:
            rendered += piece
            continue
        fillings.append(value)
        rendered += value
    # neighbouring holes are one
    merged, last = [], ""
    filled = iter(fillings)
    for piece in pieces:
        if piece is None and last is None:
            merged[-1] += next(filled)
        elif piece is None:
            merged.append(next(filled))
        last = piece
    numbers = [number for number, piece in enumerate(found.pieces) if piece is None]
    truth = dict(zip(numbers, merged, strict=True))
    for number, value in held(found, rendered, numbers):
        assert truth[number] == value


class Counting(str):
    """A text that counts how often it is searched."""

    __slots__ = ()

    searches = 0

    def find(self, *arguments: Any) -> int:
        Counting.searches += 1
        return super().find(*arguments)

    def rfind(self, *arguments: Any) -> int:
        Counting.searches += 1
        return super().rfind(*arguments)


@pytest.mark.parametrize("holes_", [10, 100, 1_000])
def test_the_places_are_found_in_three_searches_for_each_piece(holes_: int) -> None:
    template = PromptTemplate(name="p", text="a{x}" * holes_, syntax="format")
    found = pattern(template, template.text or "")
    assert found is not None
    Counting.searches = 0
    list(held(found, Counting("ab" * holes_ * 2), [1]))
    assert Counting.searches <= 3 * holes_


def test_a_message_that_the_template_does_not_give_holds_no_value() -> None:
    template = PromptTemplate(name="p", text="{shop} is open on {day}", syntax="format")
    found = pattern(template, template.text or "")
    assert found is not None
    assert list(held(found, "North is open on Monday", [0, 2])) == [(0, "North"), (2, "Monday")]
    assert list(held(found, "North is closed on Monday", [0, 2])) == []
