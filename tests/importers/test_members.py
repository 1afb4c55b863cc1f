"""Members of foreign objects: read whatever stands there, and kept beside what has their name already."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.members import fill, keep, mapping, object_in, without_null


@pytest.mark.parametrize("value", [None, [], "a", 7, [("a", 1)]])
def test_what_is_no_object_has_no_members(value: Any) -> None:
    assert mapping(value) == {}
    held = {"a": None}
    assert mapping(held) is held


@pytest.mark.parametrize("raw", [None, b"", b"[1]", b'"a"', b'{"a": 1', b"\xff"])
def test_a_file_that_holds_no_object_is_none(raw: bytes | None) -> None:
    assert object_in(raw) is None
    assert object_in(b' {"a": 1} ') == {"a": 1}


def test_null_says_nothing_and_an_empty_text_does() -> None:
    assert without_null({"a": None, "b": "", "c": 0, "d": 1}, "d", "e") == {"b": "", "c": 0}


def test_a_member_whose_name_is_taken_gets_the_next_free_one() -> None:
    extra = {"a": 1, "a_": 2}
    fill(extra, {"a": 3, "b": 4, "c": None})
    assert extra == {"a": 1, "a_": 2, "a__": 3, "b": 4}


def test_for_nothing_there_is_no_extra() -> None:
    step: dict[str, Any] = {}
    keep(step, {"a": None})
    assert step == {}
    keep(step, {"a": 1, "b": None})
    keep(step, {"a": 2})
    assert step == {"extra": {"a": 1, "a_": 2}}
