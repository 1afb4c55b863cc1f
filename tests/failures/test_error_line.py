"""What an observation says of its call: soundly, and never from words in the middle of a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.error_line import Said, error_in
from tracemark.failures.text_form import LONGEST_LINE

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nValueError: no f'
LISTING = "\n".join(f"{number}\traise ValueError('error: no such file')" for number in range(40))


def error(
    text: str, extra: dict[str, Any] | None = None, script: str | None = None, tool: str | None = None
) -> str | None:
    return error_in(text, extra, script, tool).error


class TestTheToolsOwnWord:
    @pytest.mark.parametrize(
        "extra",
        [
            {"is_error": True},
            {"error": True},
            {"error": {"type": "timeout", "message": "took too long"}},
            {"observation": {"is_error": True}},
            {"observation_kind": "AgentErrorEvent"},
            {"raw_output": {"ok": False, "message": "no"}},
            {"raw_output": {"output": {"output": "no", "returncode": 1, "exception_info": ""}}},
            {"raw_output": {"exception_info": "it timed out", "returncode": -1}},
            {"extras": {"metadata": {"exit_code": 2}}, "event": {"success": False}},
        ],
    )
    def test_a_flag_makes_any_text_an_error(self, extra: dict[str, Any]) -> None:
        assert error("it did not work", extra, "make") is not None

    @pytest.mark.parametrize(
        "extra",
        [{"is_error": False}, {"error": False}, {"raw_output": {"ok": True}}, {"raw_output": {"returncode": 0}}],
    )
    def test_a_tool_that_says_it_succeeded_is_believed(self, extra: dict[str, Any]) -> None:
        assert error("Error: this is what the file holds", extra, "run") is None

    def test_what_says_nothing_decides_nothing(self) -> None:
        assert error("fine", {"timestamp": 1, "status": "completed", "raw_output": {"todos": []}}) is None
        assert error("Error: no", {"timestamp": 1, "status": "completed"}) == "Error: no"

    def test_its_words_are_the_line(self) -> None:
        raw = {"ok": False, "code": "not_found", "message": "There is no order 3."}
        assert error('{"status":"error"}', {"raw_output": raw}) == "not_found: There is no order 3."

    def test_what_kind_a_result_is_of_is_not_the_tools_word(self) -> None:
        assert error("it broke", {"is_error": True, "type": "tool_result", "message": "m", "code": "c"}) == "it broke"


class TestExitCodes:
    @pytest.mark.parametrize(
        "text",
        [
            "<returncode>2</returncode>\n<output>\nmake: *** no rule\n</output>",
            "make: *** no rule\n[The command completed with exit code 2.]\n[Current working directory: /a]",
            "Exit code 2\nmake: *** no rule",
            '{"output":"make: *** no rule","metadata":{"exit_code":2}}',
            '{"stdout": "", "stderr": "make: *** no rule", "exit_code": 2}',
        ],
    )
    def test_stated_in_the_text(self, text: str) -> None:
        assert error(text, script="make") == "make: *** no rule"

    @pytest.mark.parametrize(
        "text", ["<returncode>0</returncode>\nError: as printed", "[Command finished with exit code 0]"]
    )
    def test_zero_is_success(self, text: str) -> None:
        assert error(text, script="make") is None

    @pytest.mark.parametrize("code", [-9, -11, -15, -2, 137, 139, 255])
    @pytest.mark.parametrize("place", ["returncode", "exit_code", "exitCode"])
    def test_a_signal_that_ended_a_program_is_a_failure(self, code: int, place: str) -> None:
        for extra in ({"raw_output": {place: code}}, {"raw_output": {"output": {"output": "", place: code}}}):
            assert error("half of it", extra, "./train") == "half of it"
            assert error("", extra, "./train") == f"exit code {code}"
            assert error("", extra, "make | tail -1") == f"exit code {code}"

    def test_of_the_negative_ones_minus_one_is_not_known(self) -> None:
        assert error("still at it", {"raw_output": {"returncode": -1}}, "make") is None

    def test_an_exit_code_somewhere_in_a_file_is_none(self) -> None:
        assert (
            error("if x:\n    print('[Command finished with exit code 3]')\n" + "pass\n" * 900, script="cat a") is None
        )

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            ("grep x a", 1),
            ("cat a | grep x", 1),
            ("diff a b", 1),
            ("find . -exec grep x {} +", 1),
            ("find . | xargs grep -l x", 123),
            ("test -f a", 1),
        ],
    )
    def test_what_a_matcher_answers_is_no_failure(self, command: str, code: int) -> None:
        assert error("", {"raw_output": {"returncode": code}}, command) is None

    @pytest.mark.parametrize(
        ("command", "text", "code"),
        [
            ("grep x a", "grep: a: No such file or directory", 2),
            ("./test", "", 1),
            ("make", "", 1),
        ],
    )
    def test_nor_does_it_excuse_anything_else(self, command: str, text: str, code: int) -> None:
        assert error(text, {"raw_output": {"returncode": code}}, command) is not None

    def test_the_exit_code_of_a_pipeline_says_nothing_of_its_first_program(self) -> None:
        text = "ERROR: No matching distribution found for x"
        assert error(text, {"raw_output": {"returncode": 0}}, "pip install x 2>&1 | tail -1") == text
        assert error(text, {"raw_output": {"returncode": 0}}, "pip install x") is None

    @pytest.mark.parametrize(
        ("printed", "line"),
        [
            ("ERROR: No matching distribution found for x", "ERROR: No matching distribution found for x"),
            ("ls: cannot access 'a': No such file or directory", "ls: cannot access 'a': No such file or directory"),
            (
                "ImportError while loading conftest '/a/conftest.py'.\nconftest.py:4: in <module>\n    import x",
                "ImportError while loading conftest '/a/conftest.py'.",
            ),
            (
                "collected 3 items\n\nFAILED a.py::test_b - AssertionError: no\n=== 1 failed, 2 passed in 0.03s ===",
                "FAILED a.py::test_b - AssertionError: no",
            ),
        ],
    )
    def test_of_a_pipeline_counts_what_was_printed_whatever_is_written_around_it(self, printed: str, line: str) -> None:
        around = f"<returncode>0</returncode>\n<output>\n{printed}\n</output>"
        for text in (printed, around, f"{printed}\n[The command completed with exit code 0.]"):
            assert error(text, {"raw_output": {"returncode": 0}}, "python -m pytest a 2>&1 | tail -50") == line
            assert error(text, {"raw_output": {"returncode": 0}}, "python -m pytest a") is None

    @pytest.mark.parametrize(
        "printed",
        ["===== 3 passed in 0.03s =====", "== 1 xfailed, 2 passed in 0.1s ==", "=== 4 deselected in 0.1s ==="],
    )
    def test_tests_that_pass_are_no_failure(self, printed: str) -> None:
        assert error(printed, {"raw_output": {"returncode": 0}}, "pytest a | tail -1") is None

    def test_a_script_may_end_well_after_a_traceback(self) -> None:
        assert error(TRACEBACK, {"raw_output": {"returncode": 0}}, "python a.py") == "ValueError: no f"


class TestJSONAnswers:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('{"status": "error", "code": "unknown_order", "message": "no order 3"}', "unknown_order: no order 3"),
            ('{"status":"error","code":"unknown_order"}', "unknown_order"),
            ('{"error": "no order 3"}', "no order 3"),
            ('{"error": {"code": "E1", "message": "no"}}', "E1: no"),
            ('{"success": false, "reason": "not yours"}', "not yours"),
            ('{"ok":false}', '{"ok":false}'),
            ('{"command":"t","output":"\\nerror: script killed\\n","passed":false}', "error: script killed"),
            ('{"status": "failed", "message": "card declined"}', "card declined"),
        ],
    )
    def test_say_it_in_their_own_members(self, text: str, line: str) -> None:
        assert error(text) == line

    @pytest.mark.parametrize(
        "text",
        [
            '{"order": 1, "status": "failed"}',
            '{"auth_status": "failed", "tier": "x"}',
            '{"status": "delivered", "note": "error in address, fixed"}',
            '{"error": null, "rows": []}',
            '{"error": "", "rows": []}',
            '{"success": true, "error": "none"}',
            '{"log": [{"status": "error", "message": "older"}]}',
            '[{"status": "error"}]',
            '{"passed": 3, "failed": 0}',
            '{"errors": 0}',
            "{not json: error}",
        ],
    )
    def test_a_record_that_speaks_of_errors_is_a_record(self, text: str) -> None:
        assert error(text) is None


class TestForm:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("Error: gift card balance is not enough", "Error: gift card balance is not enough"),
            ("ERROR:\nNo replacement was performed", "ERROR: No replacement was performed"),
            ("ValueError: no", "ValueError: no"),
            ("\x1b[31mfatal: not a git repository\x1b[0m", "fatal: not a git repository"),
            (
                "<tool_use_error>String to replace not found in file.\nString: x",
                "<tool_use_error>String to replace not found in file.",
            ),
            (TRACEBACK, "ValueError: no f"),
            (f"starting\n{TRACEBACK}\n(Open file: a.py)\n(Current directory: /a)\nbash-$", "ValueError: no f"),
            ("bash: ponyc: command not found", "bash: ponyc: command not found"),
            ("building\nbash: line 3: ./a: No such file or directory", "bash: line 3: ./a: No such file or directory"),
            (
                "Invalid `path` parameter: a.py. It should be absolute.",
                "Invalid `path` parameter: a.py. It should be absolute.",
            ),
            ("Reservation not found", "Reservation not found"),
            (
                "Your proposed edit has introduced new syntax error(s). Read.\n\nERRORS:\n- E999 SyntaxError: x\n",
                "Your proposed edit has introduced new syntax error(s): E999 SyntaxError: x",
            ),
        ],
    )
    def test_of_an_error(self, text: str, line: str) -> None:
        assert error(text) == line

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "no errors found",
            "0 errors, 0 warnings",
            "Here is the log.\nERROR: disk\nand more",
            "All tests passed: error handling works",
            LISTING,
            "import sys\n\n\ndef f():\n    raise ValueError('Error: no')\n",
            "The documentation of Error: how to raise it",
            f"Example of output:\n\n    {TRACEBACK}\n".replace("\n", "\n    "),
            f"{TRACEBACK}\n" + "and on it went\n" * 10,
            "No results found for error codes in the whole of the documentation that was searched, try other words",
            "Errors were fixed.",
        ],
    )
    def test_not_of_an_error(self, text: str) -> None:
        assert error(text) is None

    @pytest.mark.parametrize("command", ["cat log", "head -5 log | sort", "sed -n 1,9p log", "grep -n Error log"])
    def test_what_a_program_shows_is_the_files(self, command: str) -> None:
        assert error("Error: disk\nError: disk\nError: disk\nError: disk\n", script=command) is None
        assert error(f"ok\n{TRACEBACK}", script=command) is None

    def test_a_program_that_cannot_show_says_so(self) -> None:
        assert error("cat: a: No such file or directory", script="cat a") == "cat: a: No such file or directory"

    def test_a_tool_that_reads_is_one_that_shows(self) -> None:
        assert error(f"ok\n{TRACEBACK}", tool="read_file") is None
        assert error("Error: no such file", tool="read_file") == "Error: no such file"


class TestHidden:
    def test_an_empty_text_hides_a_failure(self) -> None:
        assert error_in("  \n", {"is_error": True}, None) == Said("the tool reported a failure", hidden=True)

    def test_a_text_that_tells_of_it_does_not(self) -> None:
        assert error_in("it broke", {"is_error": True}, None).hidden is False

    def test_a_call_that_went_well_hides_nothing(self) -> None:
        assert error_in("", {"raw_output": {"returncode": 0}}, "true") == Said(None, hidden=False)


MEMBERS = st.sampled_from(
    ["error", "ok", "raw_output", "output", "returncode", "status", "message", "code", "exit_code", "metadata",
     "observation", "extras", "exception_info", "timeout", "type", "original_content", "is_error"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["error", "failed", "Error: no"]),
    lambda inner: st.dictionaries(MEMBERS, inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=12,
)


@given(st.text(max_size=60), st.none() | st.text(max_size=20), st.dictionaries(MEMBERS, VALUES, max_size=4), VALUES)
def test_whatever_a_tool_gives_has_an_answer(text: str, script: str | None, extra: dict[str, Any], value: Any) -> None:
    for seen in (text, json.dumps(value)):
        said = error_in(seen, extra, script)
        assert said.error is None or 0 < len(said.error) <= LONGEST_LINE
        assert said.error is not None or not said.hidden


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    line = error("Error: " + "x" * 5_000 + " timed out", {"is_error": True})
    assert line is not None
    assert len(line) <= LONGEST_LINE
    assert line.startswith("Error: x")
    assert line.endswith(" timed out")
