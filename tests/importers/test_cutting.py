"""Documents are cut into the elements of an array while they are read."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers import cutting
from tracemark.importers.base import EXCERPT, Elements
from tracemark.importers.cutting import Element, Reader

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[],: \n\u00e9'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='a"{\\]', max_size=3), inner),
    max_leaves=12,
)


class Slow(io.BytesIO):
    """A stream that gives a few bytes at a time, whatever it is asked for."""

    step = 3

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self.step, size if size is not None and size >= 0 else self.step))


def reader(data: bytes, member: str = "runs", *needs: str, limit: int = 1 << 20, slow: bool = False) -> Reader:
    return Reader((Slow if slow else io.BytesIO)(data), Elements(member, needs), limit)


def elements(data: bytes, *arguments: Any, **options: Any) -> list[Element]:
    found = list(reader(data, *arguments, **options))
    assert None not in found
    return [element for element in found if element is not None]


@given(st.lists(_JSON, max_size=6), st.dictionaries(st.sampled_from(["info", "tasks", "z"]), _JSON), st.booleans())
def test_the_elements_are_those_that_a_parser_finds(runs: list[Any], others: dict[str, Any], slow: bool) -> None:
    document = {**others, "runs": runs}
    for text in (json.dumps(document), json.dumps(document, indent=1), json.dumps(document, ensure_ascii=False)):
        read = reader(text.encode(), slow=slow)
        found = [element for element in read if element is not None]
        assert [json.loads(element.raw) for element in found] == runs
        assert all(element.raw in text.encode() and element.whole for element in found)
        assert [element.number for element in found] == list(range(len(runs)))
        assert read.around == others
        assert read.found
        assert read.complete


@given(st.lists(_JSON, max_size=5), st.booleans())
def test_the_root_itself_may_be_the_array(runs: list[Any], slow: bool) -> None:
    found = elements(json.dumps(runs).encode(), "", slow=slow)
    assert [json.loads(element.raw) for element in found] == runs


@pytest.mark.parametrize(
    "text",
    [
        '[\n  {"a": {\n  },\n "b": 1}\n,\n  {"c": 2}]',
        '[\n  {\n"a": {"x": 1}\n},\n  {"c": "\\n  }"\n  }]',
        '[\n\t{"a": [\n\t]\n\t},\n\t{}\n]',
        '[\n  {"a": "\\ud800"\n  },\n  {"b": NaN\n  }]',
        '[\r\n  {\r\n    "a": {\r\n    }\r\n  },\r\n  [\r\n  ]\r\n]',
    ],
)
def test_lines_and_indentation_are_a_hint_and_decide_nothing(text: str) -> None:
    found = [element.raw.decode() for element in elements(text.encode(), "")]
    assert list(map(json.dumps, map(json.loads, found))) == list(map(json.dumps, json.loads(text)))


def test_what_stands_beside_the_array_is_one_object_for_all_elements() -> None:
    first, second = elements(b'{"info": {"a": 1}, "runs": [{}, {}]}')
    assert first.around is second.around
    assert first.around == {"info": {"a": 1}}


def test_what_of_the_document_around_could_not_be_kept_is_told_with_every_element() -> None:
    data = b'\xef\xbb\xbf{"info": {"a": 1, "a": 2}, "info": {"b": 1e999}, "runs": [1], "z": NaN, "runs": [2]}'
    read = reader(data)
    first, second = read
    assert first is not None
    assert second is not None
    assert first.repairs[0] == "byte order mark removed"
    assert [repair.partition(":")[0] for repair in first.repairs[1:]] == [
        "in 'info'",
        "duplicate key 'info'",
        "in 'info'",
    ]
    assert second.repairs[: len(first.repairs)] == first.repairs
    assert "duplicate key 'runs': the elements of each array were read" in second.repairs
    assert (first.number, second.number) == (0, 1)
    assert reader(b'{"runs": [1]}').repairs == []


@pytest.mark.parametrize(("text", "followed"), [("", False), (" \n", False), ("x", True), ('{"runs": [2]}', True)])
@pytest.mark.parametrize("slow", [False, True])
def test_what_stands_behind_the_document_is_noticed(text: str, followed: bool, slow: bool) -> None:
    for data, member in ((b'{"runs": [1]}', "runs"), (b"[1]", "")):
        read = reader(data + text.encode(), member, slow=slow)
        assert len(list(read)) == 1
        assert read.complete
        assert read.followed is followed


def test_an_element_waits_for_what_it_needs_and_the_second_reading_has_it() -> None:
    data = b'{"runs": [{"a": 1}, 2], "info": {"b": 2}}'
    first = reader(data, "runs", "info")
    assert list(first) == [None, None]
    again = Reader(io.BytesIO(data), Elements("runs", ("info",)), 1 << 20, first)
    assert [(e.raw, e.around) for e in again if e] == [(b'{"a": 1}', {"info": {"b": 2}}), (b"2", {"info": {"b": 2}})]


def test_a_second_reading_waits_for_nothing_that_the_document_has_not() -> None:
    first = reader(b'{"runs": [1]}', "runs", "info")
    assert list(first) == [None]
    [element] = Reader(io.BytesIO(b'{"runs": [1]}'), Elements("runs", ("info",)), 99, first)
    assert element is not None
    assert (element.raw, element.around) == (b"1", {})


@pytest.mark.parametrize("slow", [False, True])
def test_an_element_above_the_limit_costs_itself_and_is_known_by_its_digest(slow: bool) -> None:
    large = json.dumps({"text": 'a"\\}' * 900, "more": [{"x": "\\"}] * 40})
    document = f'{{"runs": [{{"a": 1}}, {large}, {{"b": 2}}]}}'.encode()
    one, two, three = elements(document, limit=500, slow=slow)
    assert (one.raw, three.raw) == (b'{"a": 1}', b'{"b": 2}')
    assert two.too_large == hashlib.sha256(large.encode()).hexdigest()
    assert large.encode().startswith(two.raw[:EXCERPT])
    assert (one.too_large, three.too_large, two.whole) == (None, None, True)


@pytest.mark.parametrize("indent", [None, 1])
def test_the_limit_holds_however_a_document_is_written(indent: int | None) -> None:
    runs = [{"a": 1}, {"a": 2}, {"a": "x" * 600}, {"a": 3}]
    found = elements(json.dumps({"runs": runs}, indent=indent).encode(), limit=500)
    assert [element.too_large is not None for element in found] == [False, False, True, False]


def test_no_more_than_a_piece_is_held_of_an_element_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_STEP", 1000)
    document = b'{"runs": [{"text": "' + b"x" * 1_000_000 + b'"}, 1]}'
    read = reader(document, limit=2000)
    held = 0
    for element in read:
        held = max(held, len(read._data), len(element.raw) if element else 0)
    assert held < 10_000


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('{"runs": [{"a": 1}, {"b": "un', [True, False]),
        ('{"runs": [{"a": 1}, ', [True]),
        ('{"runs": [{"a": 1}', [True]),
        ('{"runs": [{"a": 1}], "info": {"b"', [True]),
        ('{"runs": [1, 2', [True, False]),
    ],
)
def test_a_document_that_ends_in_its_middle_says_so_and_gives_what_stands_in_front(
    text: str, whole: list[bool]
) -> None:
    read = reader(text.encode())
    assert [element.whole for element in read if element] == whole
    assert not read.complete


@pytest.mark.parametrize("text", ["{}", "[1]", '{"other": [1]}', '{"runs": {"a": 1}}', "", "1", '"runs"', '{"a": 1'])
def test_a_document_without_the_array_gives_nothing(text: str) -> None:
    read = reader(text.encode())
    assert list(read) == []
    assert not read.found


@given(st.binary(max_size=60))
def test_any_bytes_end(data: bytes) -> None:
    for start in (b"", b'{"runs": [', b"["):
        for member in ("runs", ""):
            assert len(elements(start + data, member, limit=20, slow=True)) <= len(start + data)


def test_a_byte_order_mark_is_no_content() -> None:
    assert [element.raw for element in elements(b'\xef\xbb\xbf{"runs": [1]}')] == [b"1"]


RUNS: list[Any] = [
    {"id": 1, "text": 'a "}, {"id": 2}" in it'},
    {"id": 2, "more": [{"id": 3}, {"id": 4}]},
    {"id": 5, "deep": {"runs": [{"id": 6}, {"id": 7}], "text": '}, {"id": '}},
    {"other": 1},
    [{"id": 8}, {"id": 9}],
    {"id": 10},
    "}, {",
    {"id": 11},
    {"id": 12},
]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}, {"indent": 0}])
def test_where_an_element_ends_is_never_guessed_wrongly(layout: dict[str, Any], slow: bool) -> None:
    for runs in (RUNS, RUNS[::-1], [*RUNS[1:3] * 5, *RUNS]):
        text = json.dumps({"info": {"a": [{"id": 0}, {"id": 1}]}, "runs": runs}, **layout).encode()
        assert [json.loads(element.raw) for element in elements(text, slow=slow)] == runs


def test_most_elements_of_an_array_that_a_program_wrote_are_found_without_looking_at_their_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0
    bracket = cutting._BRACKET

    class Counting:
        def match(self, data: bytes, at: int) -> Any:
            nonlocal looked
            looked += 1
            return bracket.match(data, at)

    monkeypatch.setattr(cutting, "_BRACKET", Counting())
    runs = [{"id": number, "messages": [{"role": "user", "content": "x"}] * 20} for number in range(200)]
    for text in (json.dumps({"info": {}, "runs": runs}), json.dumps(runs)):
        looked = 0
        assert len(elements(text.encode(), "runs" if text.startswith("{") else "")) == 200
        assert looked < 3 * 42
