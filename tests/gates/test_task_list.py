"""Lists of tasks as people and tools write them, and what they mean beside the tasks that are stored."""

from __future__ import annotations

import json

import pytest

from tracemark.errors import UsageError
from tracemark.gates.task_list import Listed, known, parse


def test_ids_and_objects_may_be_mixed() -> None:
    text = (
        '# more tasks\n\nrefund-01\r\n  desk/refund-02 \n{"task": "a b", "domain": "shop", "class": "shop/x", "k": 1}\n'
    )
    assert parse(text.encode(), "more.txt") == [
        Listed("refund-01", line=True),
        Listed("desk/refund-02", line=True),
        Listed("a b", "shop", "shop/x"),
    ]


def test_a_byte_order_mark_is_no_part_of_a_name_and_what_only_python_takes_for_a_line_end_is() -> None:
    assert parse("\ufeffa\u2028b\n".encode(), "more.txt") == [Listed("a\u2028b", line=True)]


def test_null_says_nothing() -> None:
    assert parse(b'{"task": "a", "domain": null, "class": null}', "x") == [Listed("a")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('["a"]', "expected the id"),
        ('"a"', "expected the id"),
        ('{"task": "a"', "not a JSON value"),
        ("{}", "`task` must be a text"),
        ('{"task": 7}', "`task` must be a text"),
        ('{"task": "  "}', "`task` must be a text"),
        ('{"task": "a", "domain": 7}', "`domain` must be a text"),
        ('{"task": "a", "class": ["x"]}', "`class` must be a text"),
        ("a\x1b[2Jb", "the id must be a text"),
        ("a\x7fb", "the id must be a text"),
        ("a\x80b", "the id must be a text"),
        ("a\x9b2Jb", "the id must be a text"),
        ("a\x9fb", "the id must be a text"),
        (json.dumps({"task": "a\nb"}), "`task` must be a text"),
        (json.dumps({"task": "a\x9b2J"}), "`task` must be a text"),
        (json.dumps({"task": "a", "domain": "\x7f"}), "`domain` must be a text"),
    ],
)
def test_a_line_that_is_no_task_is_an_error_that_names_it(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        parse(f"first\n{line}\n".encode(), "more.txt")
    assert refused.value.where == "more.txt:2"


def test_bytes_that_are_no_text_are_an_error() -> None:
    with pytest.raises(UsageError, match="not UTF-8 at byte 1"):
        parse(b"a\xff\n", "more.txt")


def test_letters_beyond_the_control_characters_are_a_name() -> None:
    names = ["a\u00a0b", "~", "\u00e9", "\u4efb\u52a1-1"]
    assert parse("\n".join(names).encode(), "more.txt") == [Listed(one, line=True) for one in names]


STORED = [("a", "desk"), ("a", "shop"), ("b", None)]


def test_every_stored_task_is_known_and_its_domain_is_its_class() -> None:
    assert known([], STORED) == {("a", "desk"): "desk", ("a", "shop"): "shop", ("b", None): ""}


def test_an_id_means_the_stored_tasks_of_that_name_and_else_a_new_one() -> None:
    assert known([Listed("a"), Listed("desk/a"), Listed("b"), Listed("c")], STORED) == {
        **known([], STORED),
        ("c", None): "",
    }


def test_a_task_with_its_domain_is_that_one_and_no_other() -> None:
    found = known([Listed("a", "trains"), Listed("b", "desk")], STORED)
    assert {("a", "trains"), ("b", "desk"), ("b", None)} <= found.keys()
    assert len(found) == 5


def test_a_class_is_taken_from_the_list() -> None:
    assert known([Listed("a", None, "late"), Listed("a", "desk", "late")], STORED)["a", "desk"] == "late"
    assert known([Listed("a", "desk", "late")], STORED)["a", "shop"] == "shop"
    assert known([Listed("new", "desk")], STORED)["new", "desk"] == "desk"


def test_two_classes_of_one_task_are_refused() -> None:
    with pytest.raises(UsageError, match="'a' is given two classes, 'x' and 'y'"):
        known([Listed("a", None, "x"), Listed("a", "desk", "y")], STORED)


def test_a_line_tells_the_domain_of_a_task_that_is_not_stored() -> None:
    assert known([Listed("desk/d0", line=True)], []) == {("d0", "desk"): "desk"}
    assert known([Listed("desk/late/d0", line=True)], []) == {("late/d0", "desk"): "desk"}
    # the id of an object is the task as whoever wrote it calls it; and no domain is empty
    assert known([Listed("desk/d0"), Listed("/d1", line=True), Listed("d2/", line=True)], []) == {
        ("desk/d0", None): "",
        ("/d1", None): "",
        ("d2/", None): "",
    }


@pytest.mark.parametrize("stored", [("desk/d0", None), ("d0", "desk"), ("d0", "shop/desk"), ("desk/d0", "shop")])
def test_a_line_means_the_stored_task_of_that_name_before_another(stored: tuple[str, str | None]) -> None:
    found = known([Listed("desk/d0", line=True), Listed("desk/d0")], [stored])
    assert (found.keys() == {stored}) == (stored != ("d0", "shop/desk"))


@pytest.mark.parametrize(
    "listed",
    [
        [Listed("desk/d0", line=True), Listed("d0", "desk")],
        [Listed("desk/d0"), Listed("d0", "desk")],
        [Listed("d0", line=True), Listed("d0", "desk")],
        [Listed("desk/d0"), Listed("desk/d0", line=True), Listed("d0", "desk", "desk/late"), Listed("d0")],
        [Listed("d0", line=True), Listed("desk/d0", line=True), Listed("desk/d0")],
    ],
)
def test_one_task_that_a_list_names_in_several_ways_is_one_task(listed: list[Listed]) -> None:
    found = known(listed, [])
    assert found.keys() == {("d0", "desk")}
    assert known(listed[::-1], []) == found


def test_an_id_means_every_listed_task_of_that_name() -> None:
    found = known([Listed("d0", None, "late"), Listed("d0", "desk"), Listed("d0", "shop")], [])
    assert found == {("d0", "desk"): "late", ("d0", "shop"): "late"}
