"""How an output ends tells a failure without an exit code, and what stands in its middle or in a file does not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.failures.runs import bash, line
from tests.growth import growth
from tracemark.failures.conditions import shipped
from tracemark.failures.error_line import error_in
from tracemark.failures.route import route

OUTPUTS = tomllib.loads(Path(__file__).with_name("outputs.toml").read_text(encoding="utf-8"))
FAILED = [(one["command"], one["text"]) for one in OUTPUTS["failed"]]
WELL = [(command, one["text"]) for one in OUTPUTS["well"] for command in one["commands"]]
SHOWERS = (
    "cat log.txt", "tail -50 log.txt", "sed -n 1,40p log.txt", "head log.txt", "cat log.txt | tail -3", "tac log.txt",
    "sudo cat log.txt", "zcat log.gz", "jq . log.json", "./run.sh > log.txt 2>&1; tail log.txt", "grep -A 9 x log.txt",
    "git show HEAD:log.txt", "git log -p", "git diff", "git blame log.txt", "docker logs web", "kubectl logs web",
    "docker compose logs web", "kubectl -n a logs web", "journalctl -u web", "dmesg", "tmux capture-pane -p",
    "gh run view 3 --log",
)  # fmt: skip


@pytest.mark.parametrize(("command", "text"), FAILED)
def test_an_output_that_ends_in_a_failure_is_one_without_a_code_as_with_one(command: str, text: str) -> None:
    unsaid, said = (route(line(bash(command, text, code), bash(command, text, code)), shipped()) for code in (None, 1))
    assert unsaid.failure is not None
    assert unsaid == said


def test_a_daemon_that_is_not_there_is_a_fault_of_the_environment() -> None:
    text = next(text for command, text in FAILED if "docker.sock" in text)
    assert route(line(bash("docker run x", text)), shipped()).condition == "environment-fault"


@pytest.mark.parametrize(("command", "text"), WELL)
def test_an_output_that_speaks_of_failures_is_none(command: str, text: str) -> None:
    assert error_in(text, None, command).error is None


@pytest.mark.parametrize("command", SHOWERS)
def test_what_a_program_shows_of_an_earlier_failure_is_none_of_its_own(command: str) -> None:
    for failed, text in FAILED:
        assert error_in(f"$ {failed}\n{text}", None, command).error is None


@pytest.mark.parametrize("shower", ["cat a.log && ./run", "cat a.log; ./run", "./run | grep -v x", "git show x; ./run"])
def test_where_any_part_shows_something_no_end_is_believed(shower: str) -> None:
    shown = "--- FAIL: TestSum (0.00s)\nFAIL\nFAIL\texample.com/a\t0.003s\nFAIL"
    assert error_in(shown, None, shower).error is None
    assert error_in(shown, None, "./run").error is not None
    assert error_in(shown, None, "cat > a.go <<'E'\nx\nE\n./run").error is not None


@pytest.mark.parametrize(
    ("part", "edits"),
    [
        ("sed -i s/a/b/ a.go", True),
        ("sed -i.bak s/a/b/ a.go", True),
        ("sed -ni /a/p a.go", True),
        ("sed -Ei.old s/a/b/ a.go", True),
        ("sed -e s/a/b/ --in-place a.go", True),
        ("sed --in-place=.bak s/a/b/ a.go", True),
        ("sudo sed -i s/a/b/ a.go", True),
        ("ls | xargs sed -i s/a/b/", True),
        ("find . -name a.go -exec sed -i s/a/b/ {} +", True),
        ("perl -pi.bak -e s/a/b/ a.go", True),
        ("yq -i .a=1 a.yaml", True),
        ("yq -yi .a=1 a.yaml", True),
        ("gawk -i inplace 1 a.go", True),
        ("sed -n /i/p a.go", False),
        ("sed -es/i/j/ a.go", False),
        ("sed -n --expression=/i/p a.go", False),
        ("find . -iname a.go", False),
        ("grep -i FAIL a.log", False),
        ("curl -s http://ci/log | grep -i FAIL", False),
        ("curl -s http://ci/log | rg -i fail", False),
        ("curl -s http://ci/log | uniq -i", False),
        ("less -i a.log", False),
    ],
)
def test_what_changes_files_in_place_shows_none_of_them(part: str, edits: bool) -> None:
    assert (error_in("job 17\nFAIL", None, f"{part} && ./run | tail -5").error is not None) == edits
    assert edits or error_in("job 17\nFAIL", None, part).error is None


@pytest.mark.parametrize(
    ("command", "text", "own"),
    [
        ("cat log.txt", "Error: disk full\nretrying", False),
        ("cat log.txt", "bash: x: command not found\ndone", True),
        ("cat log.txt", "make: *** [Makefile:3: all] Error 2\nagain", False),
        ("cat a b", "cat: a: No such file or directory\ncat: b: No such file or directory", True),
        ("sudo /bin/cat a", "/bin/cat: a: Permission denied", True),
        ("grep -rn error .", "a.py:3: error: x", False),
        ("git show x", "fatal: ambiguous argument 'x': unknown revision\nUse '--' to separate paths", True),
        ("docker logs web", "fatal: no such order\nerror: no such order", False),
        ("docker logs web", "Error response from daemon: No such container: web", True),
    ],
)
def test_a_short_answer_of_what_shows_files_is_its_own_where_it_says_so(command: str, text: str, own: bool) -> None:
    assert (error_in(text, None, command).error is not None) == own


@pytest.mark.parametrize(("command", "text"), FAILED)
def test_what_stands_in_the_middle_is_what_the_program_went_on_after(command: str, text: str) -> None:
    went_on = "".join(f"served request {number}\n" for number in range(200))
    assert error_in(f"started\n{text}\n{went_on}", None, command).error is None


def test_what_a_text_begins_with_is_no_failure_where_it_ends_well() -> None:
    text = "error: could not read the cache\nbuilding anew\n"
    assert error_in(f"{text}3 passed in 0.02s", None, "make test").error is None
    assert error_in(f"{text}1 failed in 0.02s", None, "make test").error is not None
    assert error_in(text, None, "make test").error is not None


LINES = st.sampled_from([line for _, text in (*FAILED, *WELL) for line in text.split("\n")])
COMMANDS = st.sampled_from([command for command, _ in (*FAILED, *WELL)] + list(SHOWERS))


@given(COMMANDS, st.lists(LINES, max_size=12).map("\n".join))
def test_every_output_fails_or_does_not(command: str, text: str) -> None:
    error = error_in(text, None, command).error
    assert error is None or error.strip()


@pytest.mark.parametrize(
    "text",
    [
        "error " * 50_000, "FAIL\t" * 60_000, "a.go:1:1: " * 30_000, "hint: x error\n" * 20_000, "at " * 100_000,
        "(" * 300_000 + "error", "a, " * 100_000 + "failed", "line 1: 1 " * 30_000 + "error", "x: " * 100_000 + "error",
        "error\n" * 50_000, "Tests: " + " " * 300_000 + "1 failed", "\n" * 300_000 + "error", "thrown in " * 30_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["make", "git pull", "go build", "docker run x"])
def test_a_hostile_end_takes_no_longer_than_its_length(command: str, text: str) -> None:
    assert growth(lambda text: error_in(f"started\n{text}", None, command), text) < 3
