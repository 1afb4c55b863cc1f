from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tracemark.cli.text import cut, to_json, width
from tracemark.hidden import visible, visible_block

ANY_TEXT = st.text(st.characters(codec=None, categories=None))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def hidden(text: str) -> list[str]:
    return [letter for letter in text if unicodedata.category(letter) in HIDDEN]


@given(ANY_TEXT)
def test_nothing_that_hides_itself_is_left_on_a_line(text: str) -> None:
    assert hidden(visible(text)) == []


@given(ANY_TEXT)
def test_a_block_keeps_line_ends_and_tabs_and_nothing_else_that_hides_itself(text: str) -> None:
    shown = visible_block(text)
    assert set(hidden(shown)) <= {"\n", "\t"}
    assert shown.count("\n") == text.count("\n")


@given(st.text(st.characters(categories=["L", "N", "P"], exclude_characters="\u115f\u1160\u3164\uffa0")))
def test_letters_digits_and_punctuation_of_any_language_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


def test_escapes_have_the_form_that_programmers_know() -> None:
    assert visible("\x1b[31mred\x1b[0m") == r"\x1b[31mred\x1b[0m"
    assert visible("a\u202eb") == r"a\u202eb"
    assert visible("tag\U000e0041") == r"tag\U000e0041"
    assert visible("one\r\ntwo\tthree\x00") == r"one\r\ntwo\tthree\x00"
    assert visible("c1 \x9b31m") == r"c1 \x9b31m"
    assert visible("half \ud800") == r"half \ud800"


def test_letters_without_ink_are_shown_as_escapes() -> None:
    assert visible("a\u3164b\u2800c\U000e0101") == r"a\u3164b\u2800c\U000e0101"
    assert visible("a\ufe00b\ufe0ec") == r"a\ufe00b\ufe0ec"
    assert visible("\u26a0\ufe0f") == "\u26a0\ufe0f"


@given(JSON_VALUES)
def test_json_is_utf8_and_reads_back_as_the_same_value(value: object) -> None:
    assert json.loads(to_json(value).decode("utf-8")) == value
    assert json.loads(to_json(value, indent=2)) == value


@given(ANY_TEXT)
def test_json_is_safe_to_look_at_as_well(text: str) -> None:
    assert hidden(to_json([text]).decode()) == []


def test_json_keeps_other_scripts_readable() -> None:
    assert to_json({"task": "日本語"}) == '{"task": "日本語"}'.encode()


def test_width_counts_columns() -> None:
    assert width("abc") == 3
    assert width("日本") == 4
    assert width("e\u0301") == 1


def test_a_cut_text_takes_no_more_columns_than_it_may() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("注文注文", 6) == "注文…"
    assert cut("a/b/c.jsonl:12", 9, end=True) == "…jsonl:12"
    assert cut("注文注文", 6, end=True) == "…注文"
    assert cut("abc", 1) == cut("abc", 1, end=True) == "…"
    assert cut("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
