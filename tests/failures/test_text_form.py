"""The form of an error: real and made-up answers, each read as what it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.failures.answers import ANSWERS, ERRORS, REAL_ANSWERS, REAL_ERRORS
from tests.growth import growth
from tracemark.failures.error_line import error_in
from tracemark.failures.text_form import LONGEST_LINE, by_form, line_of


@pytest.mark.parametrize("text", [*REAL_ERRORS, *ERRORS])
def test_an_error_is_one(text: str) -> None:
    assert error_in(text, None, None).error is not None


@pytest.mark.parametrize("text", [*REAL_ANSWERS, *ANSWERS])
def test_an_answer_that_speaks_of_errors_is_none(text: str) -> None:
    assert error_in(text, None, None).error is None


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "none", "rows": []}',
        '{"error": "None"}',
        '{"error": "no error"}',
        '{"error": "0"}',
        '{"error": "null", "rows": []}',
        '{"error": {"code": 0, "message": ""}}',
        '{"error": {"code": null, "message": null}}',
        '{"error": null}',
        '{"errors": []}',
    ],
)
def test_a_member_that_says_there_is_no_error_is_none(text: str) -> None:
    assert error_in(text, None, None).error is None


def test_a_broken_traceback_is_not_read_past_its_frames() -> None:
    # two streams of a program mixed: the error stands apart from its frames
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 5, in <module>\n    f()\n'
        "\n=====\nTest: the first\nDescription: should NOT error\n"
        '    raise RuntimeError("no")\nRuntimeError: no\n'
    )
    assert line_of(text) == "RuntimeError: no"


def test_a_traceback_of_which_some_frames_are_left_out_is_one() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 5, in <module>\n    f()\n--\nset.up.Improper: no key\n'
    )
    assert line_of(f"{text}\n----\nRan 0 tests in 0.001s\n") == "set.up.Improper: no key"


def test_the_line_of_a_failure_is_none_that_counts_no_errors() -> None:
    text = "12 passed\n0 errors, no failed lints\nerror: none\nthe build was refused by the host"
    assert line_of(text) == "the build was refused by the host"


HOSTILE = (
    "a" * 1_000_000,
    "Error " + "a " * 500_000,
    "Error" + " a" * 500_000,
    "error: " + " " * 1_000_000,
    "[" * 1_000_000,
    "a." * 500_000 + "Error",
    "x: " * 333_000 + "not found",
    "no " * 333_000,
    "0 errors " * 110_000,
    "\x1b[" * 500_000,
    "= " * 500_000,
    "tool " * 200_000,
    "Traceback (most recent call last):\n  File\n" * 25_000,
    "The command '" + "'" * 1_000_000,
    "<returncode>" * 80_000,
    "[Command finished " * 60_000 + "]",
    "(Open file: a)\n" * 66_000 + "bash-$",
    "\n" * 1_000_000,
    "{" * 1_000_000,
    "Wall time: " + "1" * 1_000_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_line_takes_no_longer_than_its_length(text: str) -> None:
    def read(text: str) -> None:
        for script in (None, "make", "make | tail -1"):
            error_in(text, None, script, "find", {"path": "a"})
            error_in(text, {"is_error": True}, script)

    assert growth(read, text) < 3


WORDS = st.sampled_from(
    [
        "Error",
        "error:",
        "none",
        "0",
        "failed",
        "not found",
        "\n",
        " ",
        "Traceback (most recent call last):\n",
        "  File x",
        "<returncode>1</returncode>",
        "<output>",
        "</output>",
        "Exit code 2\n",
        "Wall time: 1 seconds\n",
        "Output:\n",
        "[Command finished with exit code 3]",
        "(Open file: a)",
        "bash-$",
        "\x1b[31m",
        "\r",
        "{",
        '"output"',
        "Unknown",
        "a",
    ]
)


@given(st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=12).map("".join)), st.booleans())
def test_every_text_has_a_form_or_none(text: str, shows: bool) -> None:
    for line in (by_form(text, shows), line_of(text)):
        assert line is None or (len(line) <= LONGEST_LINE and line.strip())
