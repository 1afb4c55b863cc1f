"""An exit code that answers is no failure, and silence that the agent asked for is nobody's fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.failures.runs import bash, line
from tests.growth import growth
from tracemark.failures.answers import is_answer, is_silenced
from tracemark.failures.conditions import shipped
from tracemark.failures.error_line import error_in
from tracemark.failures.events import read
from tracemark.failures.route import route

ANSWERS = (
    "command -v node",
    "git diff --quiet",
    "git diff --exit-code",
    "git -C repo diff --quiet HEAD",
    "git merge-base --is-ancestor a b",
    "git grep x",
    "git config --get user.name",
    "git check-ignore a",
    "git show-ref --verify --quiet refs/heads/a",
    "git rev-parse --verify -q a",
    "lsof -i :8080",
    "sudo lsof -ti:8080",
    "pidof nginx",
    "pgrep -f a",
    "hash node",
    "which node",
    "kill -0 123",
    "fuser 80/tcp",
    "mountpoint -q /a",
    "expr 1 - 1",
    "cmp a b",
    "[ -f a ]",
    "[[ -f a ]]",
    "! grep x a",
    "cd a && grep -q x b",
    "cd a && grep -q x b && echo found",
    "grep -q x a && ./run_tests.sh",
    "grep -q x a || exit 1",
    "for f in a b; do grep x $f; done",
    "set -o pipefail; cat a | grep x | head -5",
    "cat a | xargs grep -l x",
    "find . -name a -exec grep x {} +",
    "timeout 5 grep x a",
    "bash -c 'grep x a'",
    "docker exec c grep x /a",
    "./check.sh; grep x a",
)


@pytest.mark.parametrize("command", ANSWERS)
def test_a_program_that_answers_with_its_exit_code_has_not_failed(command: str) -> None:
    assert error_in("", {"raw_output": {"returncode": 1}}, command) == (None, False)


@pytest.mark.parametrize(
    ("command", "printed", "code"),
    [
        ("grep -c foo a; ./check.sh", "3\nresult: mismatch", 1),
        ("grep -q foo a && ./run_tests.sh", "2 tests did not pass", 1),
        ("grep foo a | ./check", "mismatch", 1),
        ("diff a b; ./check.sh", "mismatch", 1),
        ("grep x a || ./check.sh", "mismatch", 1),
        ("pytest -q | grep -v warn; make", "oops", 1),
        ("python grep.py", "mismatch", 1),
        ("./test", "mismatch", 1),
        ("make test", "mismatch", 1),
        ("find . -name grep", "mismatch", 1),
        ("git diff", "mismatch", 1),
        ("git commit -m grep", "mismatch", 1),
        ("docker run test", "mismatch", 1),
        ("echo 'grep x' > a; ./check", "mismatch", 1),
        ("kill 123", "mismatch", 1),
        ("systemctl start a", "mismatch", 3),
        ("git diff --quiet", "usage", 129),
        ("grep x a", "grep: a: No such file or directory", 1),
        ("systemctl is-active a", "", 2),
    ],
)
def test_nothing_else_has_answered(command: str, printed: str, code: int) -> None:
    assert error_in(printed, {"raw_output": {"returncode": code}}, command).error is not None


@pytest.mark.parametrize(
    ("command", "printed", "code"),
    [
        ("git diff --no-index a b", "diff --git a/a b/b\n-x\n+raise ValueError('error')", 1),
        ("diff a b", "< error: no\n---\n> fine", 1),
        ("systemctl is-active nginx", "inactive", 3),
        ("getent passwd a", "", 2),
    ],
)
def test_what_an_answer_shows_and_its_own_codes_are_part_of_it(command: str, printed: str, code: int) -> None:
    assert error_in(printed, {"raw_output": {"returncode": code}}, command).error is None


SILENCED = (
    "make > build.log 2>&1",
    "make >build.log",
    "make &> build.log",
    "cat x 2>/dev/null",
    "python -c 'import x' 2>/dev/null",
    "cd a && make > log",
    "make > log && ls",
    "(cd a; make) > log 2>&1",
    "{ make; } >> log",
    "for a in b; do make; done > log",
    "bash -c 'make > log 2>&1'",
    "pip install -q x",
    "npm install --silent",
    "wget --quiet http://a",
    "curl -sf http://a",
)


@pytest.mark.parametrize("command", SILENCED)
def test_silence_that_the_agent_asked_for_is_hidden_by_nobody(command: str) -> None:
    found = route(line(bash(command, "", 2)), shipped())
    assert found.condition == "not-recovered"
    assert error_in("", {"raw_output": {"returncode": 2}}, command) == ("exit code 2", False)


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "make 2>&1",
        "make >&2",
        "echo > a; make",
        "awk '$1 > 3' a",
        "make < a",
        "curl -fsS http://a",
        "echo '-q'; make",
        "python -c 'print(1 > 2)'",
        "grep a b > c; make",
    ],
)
def test_any_other_silence_hides_the_failure(command: str) -> None:
    assert error_in("", {"raw_output": {"returncode": 2}}, command) == ("exit code 2", True)
    assert route(line(bash(command, "", 2)), shipped()).condition == "error-hidden"


def test_what_the_harness_knew_and_did_not_say_is_hidden_whatever_was_asked_for() -> None:
    extra = {"raw_output": {"returncode": 2, "exception_info": "the sandbox went away"}}
    assert error_in("", extra, "make > log") == ("the sandbox went away", True)


def test_an_event_is_empty_where_something_was_to_be_seen() -> None:
    for command, empty in (("make", True), ("make > log", False)):
        (event,) = read(line(bash(command, "", 2))).events
        assert event.error is not None
        assert event.empty == empty
    (event,) = read(line(bash("true > log", "", 0))).events
    assert event.empty


WORDS = st.sampled_from(
    ["grep", "git", "diff", "--quiet", "&&", "||", ";", "|", "(", ")", "{", "}", "done", ">", "2>&1", "bash", "-c", "'",
     '"', "\n", "command", "-v", "find", "-exec", "xargs", "-q", "exit", "1", "$(", "<<E", "kill", "-0"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map(" ".join)), st.integers(-20, 256))
def test_every_command_line_has_an_answer(script: str, code: int) -> None:
    assert is_answer(script, code, "") in (True, False)
    assert is_silenced(script) in (True, False)
    assert not is_answer(script, 0, "")


@pytest.mark.parametrize(
    "script",
    [
        "grep x && " * 20_000,
        "bash -c '" * 20_000,
        "> " * 100_000,
        ") " * 100_000,
        "find -exec " * 20_000,
        "a>" * 90_000,
    ],
)
def test_a_long_one_takes_no_longer_than_its_length(script: str) -> None:
    assert growth(lambda text: (is_answer(text, 1, ""), is_silenced(text)), script) < 3
