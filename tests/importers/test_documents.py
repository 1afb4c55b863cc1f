"""The values in records: one, several behind one another, the elements of an array."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Document, Record, Refused
from tracemark.importers.documents import documents, elements


def read(raw: bytes, *, last: bool = False) -> list[Document | Refused]:
    return list(documents(Record(raw, "a.jsonl", "a.jsonl:1", last=last)))


def test_one_value_is_one_document_with_its_bytes() -> None:
    assert read(b'{"a": 1}') == [Document({"a": 1}, b'{"a": 1}', "a.jsonl:1", ())]


def test_values_written_one_behind_the_other_are_read_one_by_one_and_named() -> None:
    first, second = read(b'{"a":1} {"a":2}')
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (first.value, second.value) == ({"a": 1}, {"a": 2})
    assert (first.where, second.where) == ("a.jsonl:1#0", "a.jsonl:1#1")
    assert second.raw == b'{"a":2}'
    assert "several JSON values" in second.repairs[0]


def test_values_before_a_fault_are_kept_and_the_rest_is_refused_with_its_bytes() -> None:
    first, rest = read(b'{"a":1}{"a": tru}')
    assert isinstance(first, Document)
    assert isinstance(rest, Refused)
    assert (rest.code, rest.excerpt, rest.where) == ("record-not-json", b'{"a": tru}', "a.jsonl:1#1")
    assert rest.raw_digest == digest.sha256(b'{"a": tru}')


@pytest.mark.parametrize("raw", [b"\x0b", b"\xc2\xa0", b"\xe2\x80\xa8", b'{"a": 1}\x0c'])
def test_white_space_that_json_does_not_allow_is_refused_not_passed_over(raw: bytes) -> None:
    refused = read(raw)[-1]
    assert isinstance(refused, Refused)
    assert raw.endswith(refused.excerpt)


@pytest.mark.parametrize("raw", [b'{"a": [1, 2', b'{"a": "text', b'{"a": "\\"', b'[{"a": 1},'])
def test_an_open_text_at_the_end_of_a_file_is_half_written(raw: bytes) -> None:
    [refused] = read(raw, last=True)
    assert isinstance(refused, Refused)
    assert refused.code == "record-truncated"
    [within] = read(raw)
    assert isinstance(within, Refused)
    assert within.code == "record-not-json"


def test_bytes_that_are_not_utf8_are_named_with_their_place() -> None:
    [refused] = read(b'{"a": "\xff"}')
    assert isinstance(refused, Refused)
    assert refused.code == "invalid-utf8"
    assert "byte 7" in refused.message


@pytest.mark.parametrize(
    ("raw", "repair"),
    [
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1, "a": 2}', "duplicate key"),
        (b'{"a": 1e400}', "beyond a double"),
    ],
)
def test_what_json_cannot_keep_is_named(raw: bytes, repair: str) -> None:
    [document] = read(raw)
    assert isinstance(document, Document)
    assert repair in document.repairs[0]


@pytest.mark.parametrize(("raw", "value"), [(b"18446744073709551616", 2**64), (b'"\\ud800"', "\ud800")])
def test_big_integers_and_lone_surrogates_survive_without_a_repair(raw: bytes, value: object) -> None:
    [document] = read(raw)
    assert isinstance(document, Document)
    assert (document.value, document.repairs) == (value, ())


@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    assert all(isinstance(item, (Document, Refused)) for item in read(raw, last=True))


# arrays


def split(raw: bytes) -> list[Document | Refused]:
    record = Record(raw, "a.json", "a.json", repairs=("byte order mark removed",))
    [array] = documents(record)
    assert isinstance(array, Document)
    return list(elements(record, array))


def test_an_element_has_its_own_bytes_place_and_repairs() -> None:
    first, second, third = split(b'[ {"a" : 1},\n {"a": NaN}, {"a": 1, "a": 2} ]')
    assert first == Document({"a": 1}, b'{"a" : 1}', "a.json#0", ("byte order mark removed",))
    assert isinstance(second, Document)
    assert isinstance(third, Document)
    assert (second.raw, second.where) == (b'{"a": NaN}', "a.json#1")
    assert [note.partition(" ")[0] for note in second.repairs] == ["byte", "NaN"]
    assert [note.partition(" ")[0] for note in third.repairs] == ["byte", "duplicate"]


INNER = st.recursive(
    st.integers() | st.floats(allow_nan=False) | st.text(st.characters()) | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(), max_size=3), inner),
)
WRITTEN = st.builds(
    lambda values, indent, ascii_only, separators: json.dumps(
        values, indent=indent, ensure_ascii=ascii_only, separators=separators
    ).encode("utf-8", "surrogatepass"),
    st.lists(INNER | st.dictionaries(st.text(st.characters(), max_size=3), INNER), min_size=1, max_size=8),
    st.sampled_from([None, None, 0, 2]),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)


@given(WRITTEN)
def test_an_element_is_read_as_it_would_be_alone(raw: bytes) -> None:
    position = 0
    for found in split(raw):
        assert isinstance(found, Document)
        [alone] = documents(Record(found.raw, "", "", repairs=("byte order mark removed",)))
        assert isinstance(alone, Document)
        assert (found.value, found.repairs) == (alone.value, alone.repairs)
        position = raw.index(found.raw, position) + len(found.raw)


def test_an_element_of_a_compact_array_ends_where_it_does_also_beside_others() -> None:
    parts = [
        b'{"a":1}',
        b'{"a":1.50}',
        b"1.50",
        b'{"a":1,"a":2}',
        b'{"a":[{}]}',
        b'{"a": 1}',
        b'{"b":NaN}',
        b'{"c":"]"}',
    ]
    found = split(b"[" + b",".join(parts) + b"]")
    assert [getattr(item, "raw", None) for item in found] == parts
    assert [len(getattr(item, "repairs", ())) for item in found] == [1, 1, 1, 2, 1, 1, 2, 1]


def test_a_compact_array_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    real = json.JSONDecoder.raw_decode
    monkeypatch.setattr(json.JSONDecoder, "raw_decode", lambda *a, **k: decoded.append("again") or real(*a, **k))
    values = [{"a": number, "b": [{"c": None}, "]"]} for number in range(9)]
    for separators, times in (((",", ":"), 0), ((", ", ": "), 9)):
        decoded.clear()
        found = split(json.dumps(values, separators=separators).encode())
        assert [getattr(item, "value", None) for item in found] == values
        assert len(decoded) == times


@pytest.mark.parametrize("depth", [200, 300, *range(900, 1030, 10)])
def test_an_array_of_deep_elements_is_read_or_refused(depth: int) -> None:
    raw = b'[{"a": 1}, ' + b"[" * depth + b"]" * depth + b"]"
    record = Record(raw, "a.json", "a.json")
    [array] = documents(record)
    found = list(elements(record, array)) if isinstance(array, Document) else [array]
    assert {item.code for item in found if isinstance(item, Refused)} <= {"too-deep", "record-not-json"}
    assert len(found) == (2 if isinstance(array, Document) else 1)
