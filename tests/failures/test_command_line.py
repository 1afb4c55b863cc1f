"""Command lines taken apart: what joins their commands, and whose exit code the whole has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.failures.runs import bash, line
from tests.growth import growth
from tracemark.failures.command_line import code_counts, echoed, pipelines, without_redirections
from tracemark.failures.conditions import shipped
from tracemark.failures.program import counting, programs_of
from tracemark.failures.route import route


def joined(script: str) -> list[tuple[str, str]]:
    return [(one.before, " | ".join(" ".join(words) for words in one.commands)) for one in pipelines(script)]


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("a b; c && d || e", [("", "a b"), (";", "c"), ("&&", "d"), ("||", "e")]),
        ("a |\n b &&\n c", [("", "a | b"), ("&&", "c")]),
        ("a & b\nc", [("", "a"), ("&", "b"), ("\n", "c")]),
        ("(a; b) || c", [("(", "a"), (";", "b"), ("||", "c")]),
        ("a $(b; c) d", [("", "a $(b; c) d")]),
        ("a $(b $(c; d)) e; f", [("", "a $(b $(c; d)) e"), (";", "f")]),
        ("a $(b)c; d", [("", "a $(b)c"), (";", "d")]),
        ("a `b; c`; d", [("", "a `b; c`"), (";", "d")]),
        ("a $(b; c", [("", "a $")]),
        ("[[ a && b ]] && c", [("", "[[ a && b ]]"), ("&&", "c")]),
        ("[[ a && b\nc", [("", "[[ a && b"), ("\n", "c")]),
        ("if a; then b; else c; fi", [("", "a"), (";", "b"), (";", "c"), (";", "")]),
        ("case x in a) b;; *) c;; esac", [(")", "b"), (")", "c"), (";", "")]),
        ("a # b; c", [("", "a")]),
        ("a <<E\nb; c\nE\nd", [("", "a <<E"), ("\n", "d")]),
    ],
)
def test_a_line_falls_into_pipelines(script: str, parts: list[tuple[str, str]]) -> None:
    assert joined(script) == parts


@pytest.mark.parametrize(
    ("words", "kept", "given"),
    [
        ("a > b c", "a c", False),
        ("a >b 2>&1 c", "a c", False),
        ("a < b", "a", True),
        ("a <<< b c", "a c", True),
        ("a &> b", "a", False),
        ("a 2>/dev/null", "a", False),
        ("a 2> /dev/null b", "a b", False),
        ("a x>y", "a x>y", False),
    ],
)
def test_a_redirection_is_no_word_of_a_command(words: str, kept: str, given: bool) -> None:
    assert without_redirections(tuple(words.split())) == (tuple(kept.split()), given)


def counts(script: str) -> bool:
    place = counting(script)
    assert place is not None
    return code_counts(script, place)


@pytest.mark.parametrize(
    "script",
    [
        "make",
        "cd a && make",
        "cd a; make",
        "make && echo ok",
        "(cd a; make)",
        "{ make; }",
        "for d in a b; do make -C $d; done",
        "make || exit 1",
        "make || { echo no; exit 1; }",
        "make || false",
        "make; exit $?",
        "make; rc=$?; echo $rc; exit $rc",
        "make; exit",
        "set -e; make; echo done",
        "set -euo pipefail\nmake | tail\necho done",
        "ls; make",
        "cat a | cat",
        "sleep 1 & make",
    ],
)
def test_exit_code_0_says_that_the_program_went_well(script: str) -> None:
    assert counts(script)


@pytest.mark.parametrize(
    "script",
    [
        "make || true",
        "make || :",
        "make 2>&1 || echo failed",
        "make && echo ok || echo no",
        "make; echo EXIT=$?",
        "make; echo done",
        "make\necho done",
        "make; true",
        "make; exit 0",
        "make; echo done; exit",
        "make | tail",
        "make | tail; exit $?",
        "make &",
        "make & sleep 5",
        "! make",
        "if make; then echo ok; fi",
        "make || { echo no; }",
        "set -e; make || true",
        "(make; echo done)",
        "make; cd b",
    ],
)
def test_exit_code_0_may_be_somebody_elses(script: str) -> None:
    assert not counts(script)


@pytest.mark.parametrize(
    ("script", "printed", "left", "code"),
    [
        ("make; echo EXIT=$?", "a\nEXIT=2", "a\n", 2),
        ('make; echo "exit code: $?"', "a\nexit code: 0\n", "a\n", 0),
        ("make; echo $?", "2\n", "", 2),
        ("make\necho -e '\\n' $?", "a\n\n 2\n", "a\n\n", 2),
        ("make; echo done", "a\ndone", "a\n", None),
        ("make; echo $?; echo done", "a\n2\ndone", "a\n", 2),
        ("make; echo in $PWD", "a\nin /x", "a\n", None),
        ("make; ls; echo $?", "a\n0", "a\n", 0),
        ("make | tail; echo $?", "a\n0", "a\n", None),
        ("make | tail; echo ${PIPESTATUS[0]}", "a\n2", "a\n", 2),
        ("make && echo done", "a\n", "a\n", None),
        ("make; echo EXIT=$?", "a\nEXIT=two", "a\nEXIT=two", None),
        ("make", "a", "a", None),
    ],
)
def test_what_an_echo_adds_is_known(script: str, printed: str, left: str, code: int | None) -> None:
    place = counting(script)
    assert place is not None
    assert echoed(script, place, printed) == (left, code)


@pytest.mark.parametrize(
    ("script", "printed", "error"),
    [
        ("make || true", "a.c:3:1: error: x\nmake: *** [all] Error 1", "a.c:3:1: error: x"),
        ("make; echo EXIT=$?", "a.c:3:1: error: x\nmake: *** [all] Error 1\nEXIT=2", "a.c:3:1: error: x"),
        ("./run; echo EXIT=$?", "it went wrong\nEXIT=2", "it went wrong"),
        ("./run; echo EXIT=$?", "EXIT=2", "EXIT=2"),
        ("npm test; echo done", "npm ERR! code 1\ndone", "npm ERR! code 1"),
        ("make 2>&1 || echo failed", "make: *** [all] Error 1\nfailed", "make: *** [all] Error 1"),
        (
            "python a.py; echo $?",
            'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n1',
            "ValueError: x",
        ),
    ],
)
@pytest.mark.parametrize("code", [0, None])
def test_a_failure_behind_somebody_elses_code_is_one(script: str, printed: str, error: str, code: int | None) -> None:
    program = script.partition(" ||")[0].partition(";")[0].removesuffix(" 2>&1")
    seen = route(line(bash(program, error, 2), bash(script, printed, code)), shipped())
    assert seen.failure is not None
    assert seen.recovered == ()
    alone = route(line(bash(script, printed, code)), shipped())
    assert alone.failure is not None
    assert alone.failure.text == error


@pytest.mark.parametrize(
    ("script", "printed"),
    [("make; echo EXIT=$?", "error: 0\nEXIT=0"), ("make || true", "all fine"), ("make && echo done", "Error: x\ndone")],
)
def test_what_went_well_recovers(script: str, printed: str) -> None:
    seen = route(line(bash("make", "make: *** [all] Error 1", 2), bash(script, printed, 0)), shipped())
    assert len(seen.recovered) == 1


@pytest.mark.parametrize(
    ("script", "programs"),
    [
        ("cat a | grep b", ("cat", "grep")),
        ("cat a; echo done", ("cat", "cat")),
        ("make; sudo -u x cat a | head", ("cat", "head")),
        ("echo a", ("echo", "echo")),
        ("", ("", "")),
        ("if grep -q a b; then echo yes; fi", ("grep", "grep")),
    ],
)
def test_the_programs_of_the_pipeline_that_counts(script: str, programs: tuple[str, str]) -> None:
    assert programs_of(script) == programs


@given(st.text(alphabet="abe'\"\\|&;<>(){}[]`!\n #$=-?", max_size=80), st.text(alphabet="ab\n 0", max_size=20))
def test_any_line_is_read(script: str, printed: str) -> None:
    for place in range(len(pipelines(script))):
        assert code_counts(script, place) in (False, True)
        left, _ = echoed(script, place, printed)
        assert printed.startswith(left)


@pytest.mark.parametrize(
    "part", ["a;", "a||", "(", "$(a", "echo $?;", "[[ a ", "a|", "f() {", "a>b ", "`", "exit 1||", "echo $a$b$c;"]
)
def test_the_time_grows_with_the_length(part: str) -> None:
    def read(script: str) -> None:
        for place in range(min(3, len(pipelines(script)))):
            code_counts(script, place)
            echoed(script, place, "a\n" * len(script))

    assert growth(read, "x;" + part * (20_000 // len(part))) < 3
