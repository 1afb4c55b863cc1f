"""Which line of an output that tells a failure is its evidence: never one that says that something went well."""

from __future__ import annotations

import pytest

from tests.failures.runs import bash, line
from tests.growth import growth
from tracemark.failures.conditions import shipped
from tracemark.failures.error_line import error_in
from tracemark.failures.evidence import telling_line
from tracemark.failures.route import route
from tracemark.failures.text_form import WINDOW, line_of

PYTEST = """\
============ test session starts ============
collected 3 items

tests/test_a.py::test_error_handling PASSED [ 33%]
tests/test_a.py::test_sum FAILED [ 66%]

=========== FAILURES ===========
___ test_sum ___
    def test_sum():
>       assert f(1) == 2
E       assert 1 == 2
E        +  where 1 = f(1)

tests/test_a.py:5: AssertionError
=========== short test summary info ===========
FAILED tests/test_a.py::test_sum - assert 1 == 2
===== 1 failed, 2 passed in 0.02s ====="""
CMAKE = """\
-- Performing Test HAVE_ERROR - Success
-- Could NOT find ZLIB (missing: ZLIB_LIBRARY ZLIB_INCLUDE_DIR)
CMake Error at CMakeLists.txt:28 (find_package):
  Could not find a package configuration file provided by "GTest" with any of
  the following names:

-- Configuring incomplete, errors occurred!
See also "/a/CMakeFiles/CMakeError.log"."""
COLLECTED = """\
collecting ... collected 471 items / 1 error

==================================== ERRORS ====================================
_______________ ERROR collecting test/dialects/bigquery_test.py ________________
ImportError while importing test module '/a/test/dialects/bigquery_test.py'.
Traceback:
E   ModuleNotFoundError: No module named 'oyaml'
=========================== short test summary info ============================
ERROR test/dialects/bigquery_test.py
!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!
========================= 2 warnings, 1 error in 0.20s ========================="""
CONFIGURE = "checking for strerror... yes\nchecking for error.h... no\nconfigure: error: libfoo is required"
CARGO = "test parse_error ... ok\ntest sum ... FAILED\n\nfailures:\n\ntest result: FAILED. 1 passed; 1 failed"
PANICKED = "test parse_error ... ok\ntest sum ... FAILED\nthread 'sum' panicked at src/lib.rs:9:5:\nassertion failed\n"
GO = "=== RUN   TestError\n--- PASS: TestError (0.00s)\n--- FAIL: TestSum (0.00s)\nFAIL\nexit status 1\nFAIL\tx\t0.002s"
JEST = "> jest --silent\n\nPASS src/error.test.js\nFAIL src/sum.test.js\n  ● sum › adds\n\nTests: 1 failed, 3 passed"
VERBOSE_JEST = "✓ error: connection refused is retried (3 ms)\n✕ adds (2 ms)\nTests: 1 failed, 1 passed"
GCC = "gcc -Wall -Werror -c a.c -o a.o\na.c:3:5: error: expected ';'\nmake: *** [Makefile:4: a.o] Error 1"
NPM = "npm ERR! code ENOENT\nnpm ERR! enoent ENOENT: no such file or directory, open 'package.json'"
TAP = """\
TAP version 13
# Error: connection refused
# Subtest: error: connection refused is retried
ok 1 - error: connection refused is retried
not ok 2 - adds
  ---
  error: |-
    Expected values to be strictly equal:
    1 !== 2
  ...
# fail 1"""
LINKED = """\
/usr/bin/ld: a.c.o: in function `main':
a.c:(.text+0xa): undefined reference to `foo'
collect2: error: ld returned 1 exit status
make: *** [Makefile:101: all] Error 2"""
LINTED = """\
3 |     def test_error(self): print("Error: no such thing")
  |
Found 9 mistakes."""
UNITTEST = "test_error (t.T) ... ok\ntest_sum (t.T) ... FAIL\n\nFAILED (failures=1)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PYTEST, "FAILED tests/test_a.py::test_sum - assert 1 == 2"),
        (PYTEST[: PYTEST.index("=========== short")], "assert 1 == 2"),
        (PYTEST.replace("E   ", "    "), "FAILED tests/test_a.py::test_sum - assert 1 == 2"),
        (COLLECTED, "ModuleNotFoundError: No module named 'oyaml'"),
        (COLLECTED.replace("E   Module", "    X").replace("ImportError while", "while"),
         "ERROR test/dialects/bigquery_test.py"),
        (GCC, "a.c:3:5: error: expected ';'"),
        (CONFIGURE, "configure: error: libfoo is required"),
        (CMAKE, f"CMake Error at CMakeLists.txt:28 (find_package): {CMAKE.splitlines()[3].strip()}"),
        (CARGO, "test sum ... FAILED"),
        (PANICKED, "thread 'sum' panicked at src/lib.rs:9:5: assertion failed"),
        (GO, "--- FAIL: TestSum (0.00s)"),
        (JEST, "FAIL src/sum.test.js"),
        (VERBOSE_JEST, "✕ adds (2 ms)"),
        (PANICKED.replace("'sum'", "'sum' (7332)"), "thread 'sum' (7332) panicked at src/lib.rs:9:5: assertion failed"),
        (TAP, "error: |- Expected values to be strictly equal:"),
        (TAP.partition("  ---")[0], "not ok 2 - adds"),
        (LINKED, "a.c:(.text+0xa): undefined reference to `foo'"),
        ("ld: cannot find -lfoo\ncollect2: error: ld returned 1 exit status", "ld: cannot find -lfoo"),
        (LINTED, "Found 9 mistakes."),
        (UNITTEST, "test_sum (t.T) ... FAIL"),
        (NPM, "npm ERR! enoent ENOENT: no such file or directory, open 'package.json'"),
        ("ok 1 - error is told\nnot ok 2 - adds\n# fail 1", "not ok 2 - adds"),
        ("[       OK ] A.Error (0 ms)\n[  FAILED  ] A.Sum (0 ms)\ndone", "[  FAILED  ] A.Sum (0 ms)"),
        ("1/2 Test #1: fatal ...... Passed 0.01 sec\n2/2 Test #2: sum ...***Failed 0.02 sec\nbye",
         "2/2 Test #2: sum ...***Failed 0.02 sec"),
        ("the table of error codes\ncompiled ok\nsrc/a.c:3:10: fatal error: a.h: No such file\nbye",
         "src/a.c:3:10: fatal error: a.h: No such file"),
        ("W: Failed to fetch http://a  Temporary failure resolving 'a'\nW: Some index files failed to download. They",
         "W: Failed to fetch http://a  Temporary failure resolving 'a'"),
        ("step one failed, again\nstep two failed, too\nbye", "step two failed, too"),
        ("starting\nKeyError: 'a'\nretried\nValueError: bad frame\nbye", "ValueError: bad frame"),
        ("make: *** [Makefile:4: all] Error 1", "make: *** [Makefile:4: all] Error 1"),
    ],
)  # fmt: skip
def test_the_line_that_tells_what_went_wrong_is_the_evidence(text: str, told: str) -> None:
    assert line_of(text) == told
    assert error_in(text, {"raw_output": {"returncode": 1}}, "make").error == told


WENT_WELL = (
    "tests/test_net.py::test_connection_refused_error PASSED",
    "tests/test_net.py::test[permission denied-error] PASSED [ 33%]",
    "PASSED tests/test_net.py::test_error - error",
    "[gw0] [ 33%] PASSED tests/test_net.py::test_it[no such error]",
    "tests/a.py::test_b[fatal error] SKIPPED (not here)",
    "test error_connection_refused ... ok",
    "test error (t.T) ... skipped 'could not connect'",
    "=== RUN   Test/connection refused error",
    "--- PASS: Test/error (0.00s)",
    "ok  \ta/error\t0.01s",
    "ok 3 - error: connection refused is retried",
    "PASS src/error test.js",
    "✓ says error when no space left on device (3 ms)",
    "  ✔ error: denied",
    "[ RUN      ] Net/error",
    "[       OK ] Net error (1 ms)",
    "checking for fatal error... no",
    "[INFO] Running Error test",
    "GraderTest > error is told PASSED",
)
OF_NO_ACCOUNT = (
    "-- Looking for error - not found",
    "gcc -Wall -Werror -c a.c",
    "git ls-files --error-unmatch a",
    "cp src/error.c lib/error/a.c",
    "checked strerror, perror and test_error",
    "src/FooError.java read",
    "===== the error of the day =====",
    "0 errors, no failed lints",
    "error: none",
)


@pytest.mark.parametrize("well", [*WENT_WELL, *OF_NO_ACCOUNT])
@pytest.mark.parametrize("failed", ["tests/a.py::test_sum FAILED", "it broke: the build was refused by the host"])
def test_a_line_that_says_no_error_is_no_evidence(well: str, failed: str) -> None:
    for text in (f"{well}\n{failed}", f"{failed}\n{well}", f"{well}\n{failed}\n{well}"):
        assert line_of(text) == failed


@pytest.mark.parametrize("well", WENT_WELL)
def test_where_nothing_says_it_the_last_line_does_that_does_not_say_the_opposite(well: str) -> None:
    assert line_of(f"adding up\ngot 3\n{well}") == "got 3"
    assert line_of(well) == well.strip()


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_net.py::test_connection_refused_error PASSED\ntests/test_a.py::test_sum FAILED\n1 failed in 0.1s",
        "tests/test_a.py::test_permission_denied PASSED\ntests/test_a.py::test_sum FAILED\n",
        "test network::error_connection_refused ... ok\ntest sum ... FAILED\n",
        "✓ says error when no space left on device (3 ms)\n✕ adds (2 ms)\nTests: 1 failed, 1 passed",
        "=== RUN   TestErrorUnknownTool\n--- PASS: TestErrorUnknownTool (0.00s)\n--- FAIL: TestSum (0.00s)",
        VERBOSE_JEST,
    ],
)
def test_what_a_test_that_passed_is_called_moves_no_run(text: str) -> None:
    assert route(line(bash("npm test", text, 1)), shipped()).condition == "not-recovered"


@pytest.mark.parametrize("lines", [900, 2_300, 2_700])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_of_a_text_of_two_windows_all_is_read(lines: int, place: float) -> None:
    printed = ["compiled ok"] * lines
    printed.insert(round(place * lines), "src/main.c:3:10: fatal error: foo.h: No such file or directory")
    text = "\n".join(["step one", *printed, "bye"])
    assert len(text) <= 2 * WINDOW
    assert line_of(text) == "src/main.c:3:10: fatal error: foo.h: No such file or directory"


@pytest.mark.parametrize("lines", [3_000, 5_000, 9_000])
def test_of_a_longer_one_its_beginning_and_its_end(lines: int) -> None:
    filler = "compiled ok\n" * lines
    assert len(filler) > 2 * WINDOW
    assert line_of(f"step one\nValueError: first\n{filler}bye") == "ValueError: first"
    assert line_of(f"step one\n{filler}ValueError: last\nbye") == "ValueError: last"
    half = "compiled ok\n" * (lines // 2)
    assert line_of(f"step one\n{half}ValueError: amid\n{half}bye") == "bye"


@pytest.mark.parametrize(
    "text",
    [
        "error " * 5_000, "x error\n" * 4_000, "FAILED a - " * 3_000, "=" * 32_000, "." * 32_000, "... " * 8_000 + "ok",
        "A" * 32_000 + "Error", "a.B" * 10_000 + "Error", "PASSED [" * 4_000, "- " * 16_000, "E   \n" * 6_000,
        "İerror\n" * 4_000, "error: \n" * 4_000, "CMake Error " * 2_500, "make: *** [" * 3_000,
    ],
)  # fmt: skip
def test_it_takes_no_longer_than_the_text(text: str) -> None:
    assert growth(telling_line, text) < 3
