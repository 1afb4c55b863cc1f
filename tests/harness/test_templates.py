"""What a template says about every text it can render to."""

from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.templates import EXCERPT, Hole, Pattern, pattern
from tracemark.harness.templates import pieces as named_pieces
from tracemark.model.harness import PromptTemplate

words = st.text(alphabet="ab \n", max_size=6)


def template(text: str, syntax: str, **members: Any) -> PromptTemplate:
    return PromptTemplate.model_validate({"name": "t", "text": text, "syntax": syntax, **members})


def made(text: str, syntax: str, **members: Any) -> Pattern:
    found = pattern(template(text, syntax, **members), text)
    assert found is not None
    return found


def test_a_literal_template_fits_its_own_text_alone() -> None:
    found = made("Hello {x} {{ y }}", "literal")
    assert found.exact
    assert found.disagreement("Hello {x} {{ y }}") is None
    assert found.disagreement("Hello {x} {{ y }} ") == 0


@pytest.mark.parametrize(("text", "syntax"), [("A{x}B{y}C", "format"), ("A{{ x }}B{{ y|upper }}C", "jinja")])
def test_pieces_are_anchored_at_both_ends_and_found_in_order(text: str, syntax: str) -> None:
    found = made(text, syntax)
    assert (found.literals, found.begins, found.ends) == (("A", "B", "C"), True, True)
    assert found.disagreement("A..B..C") is None
    assert found.disagreement("ABC") is None
    assert found.disagreement("x..B..C") == 0
    assert found.disagreement("A..C") == 1
    assert found.disagreement("A..B..") == 2
    assert found.disagreement("A") == 2


def test_overlapping_ends_do_not_share_a_character() -> None:
    assert made("aba{x}aba", "format").disagreement("aba") is not None
    assert made("aba{x}aba", "format").disagreement("ababa") is not None
    assert made("aba{x}aba", "format").disagreement("abaaba") is None


def test_doubled_braces_of_a_format_template_are_single_in_the_message() -> None:
    found = made('Answer as {{"a": {value}}}', "format")
    assert found.literals == ('Answer as {"a": ', "}")


def test_a_declared_value_is_literal_text() -> None:
    members = {"variables": {"x": "constant", "y": "task"}, "values": {"x": "always"}}
    assert made("{x} and {y}", "format", **members).literals == ("always and ",)
    assert made("{{ x }} and {{ y }}", "jinja", **members).literals == ("always and ",)
    assert made("{x!r} and {y}", "format", **members).literals == (" and ",)


@pytest.mark.parametrize(
    "text",
    [
        "{% for x in xs %}{{ x }}{% endfor %}",
        "{% if x %}a{% endif %}",
        "{% include 'other' %}",
        "{% extends 'other' %}",
        "{% macro m() %}{% endmacro %}a",
        "{% set x = 1 %}a",
        "{{ unfinished",
    ],
)
def test_a_template_whose_output_its_text_does_not_show_has_no_pattern(text: str) -> None:
    assert pattern(template(text, "jinja"), text) is None


def test_a_format_template_that_does_not_parse_has_no_pattern() -> None:
    assert pattern(template("{unfinished", "format"), "{unfinished") is None


def test_code_that_makes_a_prompt_has_no_pattern() -> None:
    code = PromptTemplate.model_validate({"name": "t", "entry": "p.py:make"})
    assert pattern(code, "") is None


def test_jinja_comments_and_raw_blocks_are_read_as_jinja_reads_them() -> None:
    assert made("a{# no #}b{% raw %}{{ c }}{% endraw %}\n", "jinja").literals == ("ab{{ c }}",)


def test_a_template_without_literal_text_fits_anything() -> None:
    assert made("{x}", "format").disagreement("whatever") is None


def test_what_stands_before_a_separator_is_compared_by_itself() -> None:
    found = made("Rules {x} end\n\nTask:\n{task}\nTask: no", "format").before("Task:")
    assert (found.literals, found.begins, found.ends) == (("Rules ", " end\n\n"), True, True)
    assert made("{x}Task: a", "format").before("Task:").ends is False
    whole = made("no separator", "format")
    assert whole.before("Task:") is whole


@pytest.mark.parametrize(
    ("text", "message", "expected"),
    [
        ("Rules.\n\n\nTask", "Rules.\n\nTask", r"at character 9: expected 'Rules.\n\n\nTask' found 'Rules.\n\nTask'"),
        ("Rules.", "Rules. More.", "at character 7: expected 'Rules.' found 'Rules. More.'"),
        ("", "More", "at character 1: expected '' found 'More'"),
        ("You are {x} now.", "I am C now.", "at character 1: expected 'You are ' found 'I am C now.'"),
        ("It is {x}, then {y}!", "It is A, than B!", "at character 12: expected ', then ' found 'It is A, than B!'"),
        (
            "It is {x}. Go on.",
            "It is A. Go on. Or not.",
            "at character 16: expected '. Go on.' found '…is A. Go on. Or not.'",
        ),
        ("It is {x}. Go on.", "It is A. Go in.", "at character 13: expected '. Go on.' found 'It is A. Go in.'"),
        ("{x}aa{y}", "bbbb", "at character 1: expected 'aa' found 'bbbb'"),
        ("aba{x}aba", "aba", "at character 3: expected 'aba' found 'aba'"),
    ],
)
def test_a_difference_shows_both_sides_around_its_place(text: str, message: str, expected: str) -> None:
    assert made(text, "format").difference(message) == expected


def test_a_difference_deep_in_a_text_is_shown_and_not_what_agrees() -> None:
    found = made("x" * 500 + "{a}" + "y" * 300, "format")
    text = "x" * 400 + "HERE" + "x" * 400
    assert found.difference(text).startswith("at character 401: expected '…xxx")
    assert "HERE" in found.difference(text)
    assert found.difference("x" * 500 + "y" * 300) == ""


def test_what_stands_behind_a_separator_is_part_of_the_difference() -> None:
    prefix = made("Rules.\n\n\nTask: {x}", "format").before("Task:").followed_by("Task:")
    assert prefix.difference("Rules.\n\nTask:").endswith(r"expected 'Rules.\n\n\nTask:' found 'Rules.\n\nTask:'")


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=30)), max_size=5), st.text(max_size=200))
def test_a_difference_is_short_and_empty_exactly_for_what_fits(parts: list[tuple[bool, str]], text: str) -> None:
    source = "".join("{x}" if hole else word.replace("{", "").replace("}", "") for hole, word in parts)
    found = made(source, "format")
    assert (found.difference(text) == "") is (found.disagreement(text) is None)
    assert len(found.difference(text)) <= EXCERPT


pieces = st.lists(st.tuples(st.booleans(), words), max_size=6)


@given(pieces, st.lists(words, min_size=6, max_size=6))
def test_a_rendering_never_disagrees_with_its_format_template(parts: list[tuple[bool, str]], values: list[str]) -> None:
    text = "".join(f"{{v{index}}}" if hole else word for index, (hole, word) in enumerate(parts))
    rendered = text.format(**{f"v{index}": value for index, value in enumerate(values)})
    assert made(text, "format").disagreement(rendered) is None


@given(pieces, st.lists(words, min_size=6, max_size=6))
def test_a_rendering_never_disagrees_with_its_jinja_template(parts: list[tuple[bool, str]], values: list[str]) -> None:
    text = "".join(f"{{{{ v{index} }}}}" if hole else word for index, (hole, word) in enumerate(parts))
    rendered = jinja2.Template(text).render(**{f"v{index}": value for index, value in enumerate(values)})
    assert made(text, "jinja").disagreement(rendered) is None


class Searched(str):
    """A text that counts the characters which a search goes through."""

    __slots__ = ()
    characters = 0

    def find(self, part: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        stop = len(self) if end is None else end
        place = super().find(part, start, stop)
        Searched.characters += stop - start if place < 0 else place + len(part) - start
        return place


@given(pieces, st.text(alphabet="ab \n", max_size=60))
def test_no_character_of_a_message_is_searched_twice(parts: list[tuple[bool, str]], text: str) -> None:
    found = made("".join("{x}" if hole else word for hole, word in parts), "format")
    Searched.characters = 0
    assert found.disagreement(Searched(text)) == found.disagreement(text)
    assert Searched.characters <= len(text)


@pytest.mark.parametrize("size", [10, 100, 1_000])
def test_searching_grows_with_the_message_and_not_with_the_number_of_pieces(size: int) -> None:
    found = made("{x}" + "ab{x}" * size + "c", "format")
    Searched.characters = 0
    assert found.disagreement(Searched("ab" * size + "c")) is None
    assert Searched.characters == 2 * size


@given(pieces, words)
def test_named_pieces_are_those_of_the_pattern(parts: list[tuple[bool, str]], value: str) -> None:
    text = "".join(f"{{v{index}}}" if hole else word for index, (hole, word) in enumerate(parts))
    declared = template(text, "format", variables={"v0": "constant"}, values={"v0": value})
    named = named_pieces(declared, text)
    assert named is not None
    literal = "".join("\0" if isinstance(piece, Hole) else piece for piece in named)
    found = pattern(declared, text)
    assert found is not None
    whole = "".join("\0" if piece is None else piece for piece in found.pieces)
    while "\0\0" in literal:
        literal = literal.replace("\0\0", "\0")
    assert literal == whole
    expected = [f"v{index}" for index, (hole, _) in enumerate(parts) if hole and index]
    assert [piece.variable for piece in named if isinstance(piece, Hole)] == expected
