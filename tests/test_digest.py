"""Canonical JSON has one form, and reading loses nothing without saying so."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest, exact_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WITH_SURROGATES = st.text(st.characters())
SMALL = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
ORDINARY = st.recursive(SMALL | TEXT, lambda leaf: st.lists(leaf) | st.dictionaries(TEXT, leaf), max_leaves=20)
UNUSUAL = st.recursive(
    SMALL | st.integers() | WITH_SURROGATES,
    lambda leaf: st.lists(leaf) | st.dictionaries(WITH_SURROGATES, leaf),
    max_leaves=20,
)


class TestCanonical:
    @given(ORDINARY)
    def test_fast_and_exact_path_write_the_same_bytes(self, value):
        assert exact_json.write(value, sort=True) == orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        assert digest.canonical(value) == exact_json.write(value, sort=True)

    @given(UNUSUAL)
    def test_what_is_written_reads_back_and_writes_the_same_again(self, value):
        line = digest.canonical(value)
        again = digest.load_canonical(line)
        assert digest.canonical(again) == line
        assert digest.loads(line).repairs == ()
        assert digest.canonical(digest.loads(line).value) == line

    def test_integers_and_floats_stay_apart(self):
        assert digest.canonical([25, 25.0]) == b"[25,25.0]"

    @pytest.mark.parametrize(("one", "other"), [(1, True), (25, 25.0), ([{"n": 0}], [{"n": False}])])
    def test_what_python_takes_for_equal_is_not_the_same_json(self, one, other):
        assert one == other
        assert not digest.equal(one, other)

    def test_the_order_of_members_is_nothing(self):
        assert digest.equal({"a": [1], "b": None}, {"b": None, "a": [1]})

    def test_integers_beyond_64_bits_keep_all_digits(self):
        assert digest.canonical({"n": 2**64}) == b'{"n":18446744073709551616}'
        assert digest.canonical(-(2**63) - 1) == b"-9223372036854775809"

    def test_a_lone_surrogate_is_an_escape_in_lower_case(self):
        assert digest.canonical(["\ud83dX"]) == b'["\\ud83dX"]'

    def test_two_halves_of_a_pair_are_the_character(self):
        assert digest.canonical("\ud83d\ude00") == '"😀"'.encode()

    def test_keys_are_sorted_by_code_point_also_beside_a_surrogate(self):
        assert digest.canonical({"é": 1, "z": 2, "\udfff": 3}) == '{"z":2,"é":1,"\\udfff":3}'.encode()

    def test_depth_is_no_limit(self):
        value: list = []
        for _ in range(5000):
            value = [value]
        assert digest.canonical(value) == b"[" * 5001 + b"]" * 5001

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, [None, math.nan], {"a": {"b": math.inf}}])
    def test_what_is_no_number_is_refused(self, bad):
        with pytest.raises(ValueError, match="not a JSON number"):
            digest.canonical(bad)
        with pytest.raises(ValueError, match="not a JSON number"):
            exact_json.write(bad, sort=True)

    @pytest.mark.parametrize("bad", [{1: 2}, {1, 2}, b"x", object()])
    def test_what_is_no_json_type_is_refused(self, bad):
        with pytest.raises(TypeError):
            digest.canonical(bad)

    def test_a_fragment_is_written_as_it_is_on_both_paths(self):
        fragment = orjson.Fragment(b'{"a":1}')
        assert digest.canonical({"f": fragment}) == b'{"f":{"a":1}}'
        assert digest.canonical({"f": fragment, "n": 2**70}) == b'{"f":{"a":1},"n":%d}' % 2**70


def with_sorted_members(value):
    if isinstance(value, dict):
        return {key: with_sorted_members(value[key]) for key in sorted(value)}
    return [with_sorted_members(item) for item in value] if isinstance(value, list) else value


class TestOrdered:
    @given(UNUSUAL)
    def test_sorting_the_members_first_gives_canonical_json(self, value):
        assert digest.ordered(with_sorted_members(value)) == digest.canonical(value)

    @given(UNUSUAL)
    def test_what_is_written_reads_back_as_the_same_value(self, value):
        line = digest.ordered(value)
        assert digest.canonical(digest.loads(line).value) == digest.canonical(value)
        assert digest.canonical(digest.load_canonical(line)) == digest.canonical(value)

    @given(ORDINARY, st.sampled_from([2**70, "\udc00"]))
    def test_members_keep_their_order_on_both_paths(self, value, unusual):
        line = digest.ordered(value)
        assert line == orjson.dumps(value)
        assert digest.ordered({"z": value, "a": unusual}).startswith(b'{"z":' + line + b',"a":')
        assert digest.ordered(digest.load_canonical(line)) == line

    @pytest.mark.parametrize("bad", [math.nan, [None, math.inf], {"b": 2**70, "a": -math.inf}])
    def test_what_is_no_number_is_refused(self, bad):
        with pytest.raises(ValueError, match="not a JSON number"):
            digest.ordered(bad)

    @pytest.mark.parametrize("bad", [{1: 2}, {1, 2}, b"x"])
    def test_what_is_no_json_type_is_refused(self, bad):
        with pytest.raises(TypeError):
            digest.ordered(bad)


class TestReading:
    @given(UNUSUAL, st.sampled_from([None, 1]), st.booleans())
    def test_every_writing_style_reads_to_the_same_value(self, value, indent, ascii_only):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        raw = text.encode("utf-8", "surrogatepass")
        read = digest.loads(raw)
        assert digest.canonical(read.value) == digest.canonical(value)

    @given(ORDINARY)
    def test_ordinary_values_are_read_without_repairs(self, value):
        assert digest.loads(json.dumps(value).encode()).repairs == ()

    def test_a_repeated_key_is_named_and_the_last_value_kept(self):
        read = digest.loads(b'{"a": 1, "b": {"a": 2, "a": 3}}')
        assert read.value == {"a": 1, "b": {"a": 3}}
        assert read.repairs == ("duplicate key 'a': the last value was kept",)

    def test_a_repeated_key_hidden_behind_an_escaped_quote_is_named(self):
        read = digest.loads(rb'{"a": "\u0022\u0022", "a": "\u0022\u0022"}')
        assert read.repairs == ("duplicate key 'a': the last value was kept",)

    @given(st.dictionaries(TEXT, TEXT, min_size=1), st.sampled_from([None, 1]))
    def test_any_repeated_key_is_named(self, members, indent):
        text = json.dumps(members, indent=indent)
        key = next(iter(members))
        doubled = "{" + json.dumps(key) + ":" + json.dumps(members[key]) + "," + text[1:]
        assert any(repair.startswith("duplicate key") for repair in digest.loads(doubled.encode()).repairs)

    @pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**40])
    def test_large_integers_are_exact(self, number):
        assert digest.loads(f'{{ "n": {number} }}'.encode()) == ({"n": number}, ())
        assert digest.load_canonical(b'{"n":%d}' % number) == {"n": number}

    @pytest.mark.parametrize(
        "text",
        ["%d", "-%d", " %d", "[%d]", "[1,%d]", "[1, %d]", '{"a":%d}', '{"a": %d}', "[\n%d]", "[\t-%d]", "[\r%d]"],
    )
    def test_a_large_integer_is_exact_wherever_it_stands(self, text):
        number = 12345678901234567890123
        expected = json.loads(text % number)
        assert digest.loads((text % number).encode()).value == expected
        assert digest.load_canonical(digest.canonical(expected)) == expected

    def test_a_hash_is_no_large_integer(self):
        line = b'{"sha":"a12345678901234567890123b","t":"x 1234567890"}'
        assert digest.load_canonical(line) == json.loads(line)

    @pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
    def test_a_number_that_is_none_is_kept_as_text_and_named(self, word):
        read = digest.loads(f'{{"cost": {word}}}'.encode())
        assert read.value == {"cost": word}
        assert read.repairs == (f"{word} is not JSON: kept as text",)

    def test_a_number_beyond_a_double_is_kept_as_text_and_named(self):
        assert digest.loads(b"[1e400]") == (["1e400"], ("1e400 is beyond a double: kept as text",))

    def test_an_escaped_lone_surrogate_is_kept(self):
        assert digest.loads(b'["\\ud800"]') == (["\ud800"], ())

    def test_a_surrogate_encoded_as_bytes_is_kept_and_named(self):
        read = digest.loads(b'["\xed\xa0\x80"]')
        assert read.value == ["\ud800"]
        assert read.repairs == ("surrogates encoded as bytes: read as escapes",)

    @pytest.mark.parametrize(
        ("raw", "position"),
        [(b'{"a": 1', 7), (b'{"a": 1} {"b": 2}', 9), (b'\xef\xbb\xbf{"a": 1}', 0), (b'["\xff"]', 2), (b"", 0)],
    )
    def test_what_is_no_json_is_an_error_with_a_position(self, raw, position):
        with pytest.raises(digest.NotJSONError) as caught:
            digest.loads(raw)
        assert caught.value.position == position

    def test_nesting_beyond_the_interpreter_is_an_error_and_no_crash(self):
        with pytest.raises(digest.NotJSONError, match="nested too deeply"):
            digest.loads(b"[" * 100_000 + b"]" * 100_000)

    @pytest.mark.parametrize(("opening", "inner", "closing"), [("[", "", "]"), ("[", "1", "]"), ('{"a":', "{}", "}")])
    def test_the_depth_that_is_read_is_the_same_everywhere(self, opening, inner, closing):
        levels = digest.MAX_DEPTH - (inner == "{}")
        raw = (opening * levels + inner + closing * levels).encode()
        assert digest.canonical(digest.loads(raw).value) == raw
        for more in (1, 300, 3000):
            with pytest.raises(digest.NotJSONError, match="nested too deeply"):
                digest.loads(opening.encode() * more + raw + closing.encode() * more)

    @pytest.mark.parametrize("inner", [b"1", b"18446744073709551616", b'"\\ud800"'])
    def test_what_was_just_not_too_deep_is_read_back_from_what_it_is_stored_in(self, inner):
        value = digest.loads(b"[" * digest.MAX_DEPTH + inner + b"]" * digest.MAX_DEPTH).value
        stored = digest.canonical({"trajectory": {"steps": [{"extra": value}]}})
        assert digest.canonical(digest.load_canonical(stored)["trajectory"]["steps"][0]["extra"])[-4:] == b"]]]]"
        assert digest.canonical(digest.load_canonical(stored)) == stored

    def test_a_number_of_very_many_digits_is_an_error_and_no_stall(self):
        with pytest.raises(digest.NotJSONError, match="5000 digits"):
            digest.loads(b"9" * 5000)

    def test_notes_are_bounded(self):
        raw = b"[" + b",".join(b'{"k%d":1,"k%d":2}' % (i, i) for i in range(100)) + b"]"
        repairs = digest.loads(raw).repairs
        assert len(repairs) == 21
        assert repairs[-1] == "and 80 more"

    @given(st.text())
    def test_a_text_that_no_one_wrote_gives_a_value_or_an_error(self, text):
        try:
            value = digest.loads(text.encode("utf-8", "surrogatepass")).value
        except digest.NotJSONError:
            return
        assert digest.load_canonical(digest.canonical(value)) == value


class TestHashing:
    def test_the_digest_of_a_value_is_that_of_its_canonical_bytes(self):
        assert digest.of({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()

    def test_pieces_and_files_give_the_same_digest(self, tmp_path):
        data = b"x" * 3_000_000
        (tmp_path / "f").write_bytes(data)
        hasher = digest.Hasher()
        hasher.update(data[:10])
        hasher.update(data[10:])
        assert hasher.hexdigest() == digest.sha256(data) == digest.sha256_file(tmp_path / "f")

    def test_a_git_object_id_is_what_git_says(self, tmp_path):
        (tmp_path / "f").write_bytes(b"hello\n")
        said = subprocess.run(["git", "hash-object", tmp_path / "f"], capture_output=True, text=True, check=True)
        assert digest.git_object_id("blob", b"hello\n") == said.stdout.strip()

    def test_a_fingerprint_has_one_form(self):
        assert digest.is_fingerprint("tm1:" + "0f" * 32)
        assert not digest.is_fingerprint("tm1:" + "0F" * 32)
        assert not digest.is_fingerprint("0f" * 32)


def test_the_md5_of_a_file_is_that_of_its_bytes_which_dvc_names_them_by(tmp_path):
    (tmp_path / "list").write_bytes(b"[]")
    assert digest.md5_file(tmp_path / "list") == digest.md5(b"[]") == "d751713988987e9331980363e24189ce"
