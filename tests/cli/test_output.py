from __future__ import annotations

import io
import json
from dataclasses import dataclass

import pytest

from tracemark.cli.arguments import Output
from tracemark.cli.output import paint, show, write_error, write_findings
from tracemark.errors import ExportRefusedError, ManifestError, NoStoreError
from tracemark.findings import Finding, Report, finding


@dataclass(frozen=True)
class Answer(Report):
    name: str
    traces: tuple[dict[str, object], ...] = ()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


BAD = finding("stamp-contradicted", "run.jsonl:3", "not made by desk_a \x1b[31m")
ROWS = ({"trace_id": "a" * 64, "task": "t-1"}, {"trace_id": "b" * 64, "task": "t-2"})


def test_table_puts_data_on_stdout_and_findings_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = show(Answer((BAD,), "desk_a"), Output.TABLE)
    out, err = capsys.readouterr()
    assert code == 1
    assert out == "name    desk_a\ntraces  -\n"
    assert err.startswith(r"error stamp-contradicted run.jsonl:3: not made by desk_a \x1b[31m")


def test_json_holds_everything_and_writes_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    code = show(Answer((BAD,), "desk_a", ROWS), Output.JSON, rows="traces")
    out, err = capsys.readouterr()
    assert code == 1
    assert json.loads(out) == {"name": "desk_a", "traces": list(ROWS), "findings": [BAD.as_json()]}
    assert err == ""


def test_jsonl_of_a_list_is_a_line_per_row_with_findings_as_words(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer((BAD,), "desk_a", ROWS), Output.JSONL, rows="traces")
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == list(ROWS)
    assert "stamp-contradicted" in err


def test_jsonl_of_any_other_report_is_the_whole_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer((BAD,), "desk_a"), Output.JSONL)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert json.loads(out)["findings"] == [BAD.as_json()]
    assert err == ""


def test_an_empty_list_is_said_in_words_and_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(Answer((), "desk_a"), Output.TABLE, rows="traces") == 0
    assert capsys.readouterr() == ("", "no traces\n")


@pytest.mark.parametrize("output", [Output.TABLE, Output.JSONL])
def test_words_about_a_list_are_no_data(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer((), "desk_a", ROWS), output, rows="traces", note="2 shown")
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (3 if output is Output.TABLE else 2, "2 shown\n")
    show(Answer((), "desk_a"), output, rows="traces", note="searched: everything")
    assert capsys.readouterr() == ("", "searched: everything\n")


def test_with_json_nothing_is_said_beside_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer((), "desk_a"), Output.JSON, rows="traces", note="searched: everything")
    assert capsys.readouterr().err == ""


def test_many_findings_of_one_code_are_counted_after_twenty() -> None:
    stream = io.StringIO()
    write_findings([finding("closure-incomplete", f"a.py:{line}", "dynamic import") for line in range(25)], stream)
    lines = stream.getvalue().splitlines()
    assert sum(line.startswith("warning closure-incomplete") for line in lines) == 20
    assert sum(line.startswith("  hint:") for line in lines) == 1
    assert lines[-1] == "  … and 5 more of closure-incomplete; --output json lists all"


def test_findings_that_a_report_only_counts_are_counted_in_words_too() -> None:
    stream = io.StringIO()
    found = [finding("record-not-json", f"runs.jsonl:{line}", "no JSON") for line in range(100)]
    write_findings(found, stream, {"record-not-json": 1000})
    assert stream.getvalue().endswith("  … and 980 more of record-not-json; --output json lists the first 100\n")


def test_findings_that_a_file_repeats_are_said_to_be_counted_and_not_listed_elsewhere() -> None:
    stream = io.StringIO()
    write_findings([finding("header-missing", "a.jsonl:1", "no header")], stream, {"header-missing": 31})
    assert stream.getvalue().endswith(
        "  … and 30 more of header-missing; what is said of a file again is only counted\n"
    )


def test_findings_are_grouped_by_code_with_errors_first() -> None:
    warning = finding("closure-incomplete", "a.py:1", "dynamic import")
    stream = io.StringIO()
    write_findings([warning, BAD, warning, BAD], stream)
    codes = [line.split()[1] for line in stream.getvalue().splitlines() if not line.startswith(" ")]
    assert codes == ["stamp-contradicted"] * 2 + ["closure-incomplete"] * 2


def test_hints_that_differ_stand_below_their_own_finding() -> None:
    first = Finding("closure-incomplete", BAD.severity, "a", "x", "do this")
    second = Finding("closure-incomplete", BAD.severity, "b", "y", "do that")
    stream = io.StringIO()
    write_findings([first, second], stream)
    assert [line for line in stream.getvalue().splitlines() if "hint" in line] == ["  hint: do this", "  hint: do that"]


def test_an_error_says_what_where_and_what_next(capsys: pytest.CaptureFixture[str]) -> None:
    error = NoStoreError("there is no store\x07", where="traces/STORE", hint="tracemark init")
    assert write_error(error, Output.TABLE) == 10
    assert capsys.readouterr() == (
        "",
        "error: there is no store\\x07\n  at: traces/STORE\nhint: tracemark init\n",
    )


def test_faults_that_an_error_lists_have_a_line_each_and_none_can_pass_for_a_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_error(ManifestError("2 problems\n  first\x07\n  second\nhint: rm", hint="mend it"), Output.TABLE)
    assert capsys.readouterr().err == "error: 2 problems\n  first\\x07\n  second\\nhint: rm\nhint: mend it\n"


@pytest.mark.parametrize("output", [Output.JSON, Output.JSONL])
def test_an_error_is_data_where_data_was_asked_for(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_error(ExportRefusedError("too few traces", hint="run more"), output) == 40
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "error": "ExportRefusedError",
        "exit_code": 40,
        "message": "too few traces",
        "hint": "run more",
    }
    assert "too few traces" in err


def test_colour_needs_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paint("error", Terminal()) == "\x1b[31merror\x1b[0m"
    assert paint("error", io.StringIO()) == "error"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("error", Terminal()) == "error"
