"""Each line of a session is read by itself, and none is lost without being counted."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.base import Record
from tracemark.importers.head import Head
from tracemark.importers.session_lines import Lines, Unread, heads, read


def lines_of(raw: bytes) -> Lines:
    return read(Record(raw, "s.jsonl", "s.jsonl", last=True))


def values(found: Lines) -> list[Any]:
    return [line.value for line in found.lines]


def test_blank_lines_count_in_the_numbers_and_are_nothing() -> None:
    found = lines_of(b'{"a":1}\r\n\n \n{"a":2}')
    assert [(line.number, line.value) for line in found.lines] == [(1, {"a": 1}), (4, {"a": 2})]
    assert found.unread == []


def test_what_is_no_object_is_noted() -> None:
    assert lines_of(b'"x"\n42\n{"a":1}\nnull').unread == [Unread(n, "no object") for n in (1, 2, 4)]


def test_several_records_on_one_line_are_read_one_by_one() -> None:
    found = lines_of(b'{"a":1}{"a":2} {"a":3}')
    assert values(found) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [line.raw for line in found.lines] == [b'{"a":1}', b'{"a":2}', b'{"a":3}']


def test_a_record_behind_a_half_written_one_is_read() -> None:
    found = lines_of(b'{"type":"a","text":"hal{"type":"a","text":"half"}')
    assert values(found) == [{"type": "a", "text": "half"}]
    assert found.unread == [Unread(1, "23 bytes that are no JSON")]


def test_the_inside_of_a_broken_record_is_no_record() -> None:
    assert values(lines_of(b'{"type":"a", broken, "inner":{"type":"b"}}')) == []


def test_bytes_that_are_no_utf_8_cost_their_line() -> None:
    found = lines_of(b'{"a":"\xff"}\n{"a":1}')
    assert (values(found), found.unread) == ([{"a": 1}], [Unread(1, "not UTF-8")])


def test_an_array_has_its_elements_for_lines() -> None:
    found = lines_of(json.dumps([{"a": 1}, 7, {"a": 2}], indent=1).encode())
    assert (values(found), found.is_array) == ([{"a": 1}, {"a": 2}], True)
    assert found.unread == [Unread(2, "no object")]


def test_a_line_that_is_an_array_makes_no_array_of_the_file() -> None:
    found = lines_of(b'[1]\n{"a":1}')
    assert (values(found), found.is_array) == ([{"a": 1}], False)


def test_a_few_lines_are_named_and_all_are_counted() -> None:
    notes, [found] = lines_of(b"1\n" * 9 + b'{"a":1}').told("s.jsonl")
    assert found.message.startswith("9 of its lines are no record: 1 (no object), 2 (no object)")
    assert found.message.endswith("5 (no object) and 4 more")
    assert len(notes) == 1
    assert lines_of(b'{"a":1}').told("s.jsonl") == ([], [])


def test_the_first_lines_of_a_file_are_looked_at_though_some_are_broken() -> None:
    head = Head(b'{"a":\n7\n{"a":1}\n{"a":2}\n{"a":', complete=False)
    assert list(heads(head)) == [{"a": 1}, {"a": 2}]
    assert list(heads(Head(b'[{"a":1},\n{"a":2}]', complete=True))) == [{"a": 1}, {"a": 2}]


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.integers(), max_size=3)), st.data())
def test_every_line_is_given_or_counted(objects: list[dict[str, Any]], data: st.DataObject) -> None:
    written = [json.dumps(one).encode() for one in objects]
    cut = {number: data.draw(st.integers(1, len(one))) for number, one in enumerate(written)}
    found = lines_of(b"\n".join(one[: cut[number]] for number, one in enumerate(written)) or b"{}")
    told = {line.number for line in found.lines} | {one.number for one in found.unread}
    assert objects == [] or told == set(range(1, len(objects) + 1))
    whole = [one for number, one in enumerate(objects) if cut[number] == len(written[number])]
    assert all(one in values(found) for one in whole)
