"""The exact way to read and write JSON; `test_digest` holds it against the fast one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import exact_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_what_is_written_is_read_back_and_nothing_is_noted(value: object) -> None:
    for sort in (True, False):
        assert exact_json.read(exact_json.write(value, sort=sort)) == (value, ())


def test_members_are_sorted_or_stand_as_they_are_given() -> None:
    value = {"b": 1, "a": {"d": 2, "c": 3}}
    assert exact_json.write(value, sort=True) == b'{"a":{"c":3,"d":2},"b":1}'
    assert exact_json.write(value, sort=False) == b'{"b":1,"a":{"d":2,"c":3}}'


@pytest.mark.parametrize(
    ("text", "value", "noted"),
    [
        (b"18446744073709551616", 2**64, ""),
        (b'"\\ud800"', "\ud800", ""),
        (b'{"a":1,"a":2}', {"a": 2}, "duplicate key 'a': the last value was kept"),
        (b"[NaN]", ["NaN"], "NaN is not JSON: kept as text"),
        (b"1e400", "1e400", "1e400 is beyond a double: kept as text"),
    ],
)
def test_what_cannot_be_kept_is_noted(text: bytes, value: object, noted: str) -> None:
    assert exact_json.read(text) == (value, (noted,) if noted else ())


def test_depth_is_no_limit_to_writing_and_is_told() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    assert exact_json.write(value, sort=True) == b"[" * 5001 + b"]" * 5001
    assert exact_json.is_too_deep(value)
    with pytest.raises(exact_json.NotJSONError, match=exact_json.TOO_DEEP):
        exact_json.read(b"[" * 500_000)


HALVES = st.lists(
    st.sampled_from([b"\xed\xa0\xbd", b"\xed\xb8\x80", b"\\ud83d", b"\\ude00", b"a", b"\xef\xbf\xbf"])
).map(b"".join)


@given(st.lists(st.tuples(HALVES, HALVES)))
def test_what_is_read_is_what_its_own_writing_holds(members: list[tuple[bytes, bytes]]) -> None:
    text = b"{" + b",".join(b'"%s":"%s"' % member for member in members) + b"}"
    value, _ = exact_json.read(text)
    assert exact_json.read(exact_json.write(value, sort=True)) == (value, ())


def test_names_that_are_the_same_once_their_halves_are_joined_are_named() -> None:
    value, notes = exact_json.read(b'{"\xed\xa0\xbd\xed\xb8\x80":1,"\xf0\x9f\x98\x80":2}')
    assert value == {"\U0001f600": 2}
    assert notes == (
        "surrogates encoded as bytes: read as escapes",
        "duplicate key '\\U0001f600': the last value was kept",
    )
