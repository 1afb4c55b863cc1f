"""Wrappers of command output: read at their place, and as text anywhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.error_line import error_in
from tracemark.failures.unwrap import unwrap

PRINTED = "make: *** no rule"
CODEX = (
    "Chunk ID: 6e6db0\nWall time: 1.0024 seconds\nProcess exited with code {code}\nOriginal token count: 9\n"
    "Output:\n{out}"
)
OPENHANDS = (
    "{out}\n[The command completed with exit code {code}.]\n[Current working directory: /workspace]\n"
    "[Python interpreter: /openhands/poetry/bin/python]\n[Command finished with exit code {code}]"
)
LONG = (
    "<returncode>{code}</returncode>\n<warning>\nThe output of your last command was too long.\n</warning>"
    "<output_head>\n{out}\n</output_head>\n<elided_chars>\n9 characters elided\n</elided_chars>\n"
    "<output_tail>\n</output_tail>"
)
TIMED_OUT = (
    "a\nEXECUTION TIMED OUT BECAUSE NO OUTPUT WAS PRODUCED.\nPLEASE REFINE YOUR RUNNING COMMAND SO IT WILL.\n"
    "(Open file: n/a)\n(Current directory: /)\nbash-$"
)
RUNNING = (
    "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOriginal token count: 0\nOutput:\nok\n"
)
WRAPPERS = (
    # mini-swe-agent, and what it shows of a long output
    "<returncode>{code}</returncode>\n<output>\n{out}\n</output>",
    LONG,
    # Codex: a unified exec, one without a chunk, the freeform shell
    CODEX,
    "Wall time: 0.2 seconds\nProcess exited with code {code}\nOutput:\n{out}",
    "Exit code: {code}\nWall time: 0.2 seconds\nOutput:\n{out}",
    "Exit code: {code}\nWall time: 0.2 seconds\nTotal output lines: 900\nOutput:\n{out}",
    # OpenHands, now, in its chats, and of old
    OPENHANDS,
    "EXECUTION RESULT of [execute_bash]:\n" + OPENHANDS,
    "[Below is the output of the previous command.]\n" + OPENHANDS,
    "{out}\n[Command -1 finished with exit code {code}]",
    # Claude Code
    "Exit code {code}\n{out}",
    # a result of Inspect as a tool that returns it shows it
    "ExecResult(success=False, returncode={code}, stdout='{out}', stderr='')",
    "Command failed with exit code {code}:\n{out}",
)
OBJECTS = (
    {"output": PRINTED, "metadata": {"exit_code": 0, "duration_seconds": 0.1}},
    {"returncode": 0, "output": PRINTED, "exception_info": ""},
    {"success": True, "returncode": 0, "stdout": "", "stderr": PRINTED},
    {"stdout": PRINTED, "stderr": "", "exit_code": 0},
)


@pytest.mark.parametrize("code", [0, 2, 127, 137, -2, -9, -11])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_gives_its_code_and_what_was_printed(wrapper: str, code: int) -> None:
    found = unwrap(wrapper.format(code=code, out=PRINTED))
    assert (found.code, found.failed) == (code, False)
    assert found.text.strip().partition("'")[0] == PRINTED


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_signal_that_ended_a_program_is_a_failure_in_all_of_them(wrapper: str) -> None:
    for code in (-9, -11, 139):
        assert error_in(wrapper.format(code=code, out="half"), None, "./train").error is not None
        assert error_in(wrapper.format(code=code, out=""), None, "./train").error is not None


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_minus_one_is_not_known_but_where_only_a_failure_has_a_code(wrapper: str) -> None:
    # Claude Code writes a code of what failed alone, and a result of Inspect has one when the program has ended
    known = wrapper.startswith(("Exit code {code}\n", "Command failed", "ExecResult"))
    assert (error_in(wrapper.format(code=-1, out="ok"), None, "make").error is not None) == known


@pytest.mark.parametrize("value", OBJECTS, ids=json.dumps)
def test_an_object_that_wraps_an_output_does_so_too(value: dict[str, object]) -> None:
    assert unwrap(json.dumps(value))[:2] == (PRINTED, 0)
    assert error_in(json.dumps(value), None, "make").error is None
    assert error_in(json.dumps(value), None, "make | tail -1").error == PRINTED


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_one_rule_holds_for_all_of_them(wrapper: str) -> None:
    for script in ("make", "make | tail -1"):
        line = error_in(wrapper.format(code=2, out=PRINTED), None, script).error
        assert line is not None
        assert line.startswith(PRINTED)
        assert error_in(wrapper.format(code=0, out="fine"), None, script).error is None
    assert error_in(wrapper.format(code=0, out="Error: as printed"), None, "make").error is None
    assert error_in(wrapper.format(code=0, out="Error: no host"), None, "curl a | head -1").error is not None
    assert error_in(wrapper.format(code=1, out=""), None, "grep x a").error is None
    assert error_in(wrapper.format(code=2, out=""), None, "make").error is not None


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_that_is_quoted_is_a_text(wrapper: str) -> None:
    quoted = wrapper.format(code=3, out="a")
    for text in (f"the log says:\n{quoted}\nand so on", f"| {quoted}\n| b", f"1:{quoted}\n2:b"):
        assert unwrap(text).code is None
        assert error_in(text, None, "python show.py").error is None


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_inside_another_wrapper_it_is_what_was_printed(wrapper: str) -> None:
    quoted = wrapper.format(code=3, out="a")
    assert unwrap(WRAPPERS[0].format(code=0, out=quoted)).code == 0
    for outer in (CODEX, OPENHANDS, WRAPPERS[-3]):
        text = outer.format(code=0, out=quoted)
        # one at each end: which of them a program printed cannot be told
        assert unwrap(text).code in (0, None)
        assert error_in(text, None, "python show.py").error is None


def test_the_code_that_was_recorded_counts_before_one_that_is_printed() -> None:
    printed = "Exit code 3\na"
    assert error_in(printed, {"raw_output": {"returncode": 0}}, "cat log").error is None
    assert error_in(printed, {"raw_output": {"returncode": 3}}, "make").error == "a"


def test_what_a_tool_reads_from_a_file_is_no_wrapper() -> None:
    for wrapper in WRAPPERS[:-1]:
        assert error_in(wrapper.format(code=3, out="a"), None, None, "read_file").error is None
    assert error_in("<tool_use_error>no such file</tool_use_error>", None, None, "Read").error is not None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[An error occurred during execution.]\nno such tool", "no such tool"),
        (TIMED_OUT, "EXECUTION TIMED OUT BECAUSE NO OUTPUT WAS PRODUCED."),
        ("New Terminal Output:\n\nroot@c:/app# cat a\ncat: a: No such file or directory\nroot@c:/app# \n\n",
         "cat: a: No such file or directory"),
        ("OBSERVATION:\nFailed to open\n(Open file: n/a)\n(Current directory: /)\nbash-$", "Failed to open"),
        ("<error>disk</error>", "<error>disk</error>"),
    ],
)  # fmt: skip
def test_a_wrapper_without_a_code_is_taken_off_too(text: str, line: str) -> None:
    assert error_in(text, None, "make").error == line


@pytest.mark.parametrize(
    "text",
    [
        "<error></error>",
        "<error>none</error>\n<rows>3</rows>",
        "Exit code 3 means that the disk is full",
        "Wall time: 3 seconds\nall done",
        "[The command has no new output after 10 seconds. You may wait longer.]\n[Current working directory: /a]",
        RUNNING,
        "<returncode>-1</returncode>\n<output>\nok\n</output>",
        "New Terminal Output:\n\nroot@c:/app# mkdir a\n\n",
    ],
)
def test_what_tells_no_code_tells_no_failure(text: str) -> None:
    assert error_in(text, None, "make").error is None


@given(st.sampled_from(WRAPPERS), st.text(max_size=40), st.text(max_size=10), st.text(max_size=10))
def test_every_text_can_be_unwrapped(wrapper: str, out: str, before: str, behind: str) -> None:
    text = before + wrapper.replace("{out}", out).replace("{code}", "1") + behind
    found = unwrap(text)
    assert len(found.text) <= len(text)
    assert not before.strip() or not behind.strip() or found.code is None or found.wrapped
