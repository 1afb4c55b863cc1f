from __future__ import annotations

import io

import pytest

from tracemark.cli.layout import cell, write_report, write_rows

ID = "0123456789abcdef" * 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rows_as_text(rows: list[dict[str, object]], stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    write_rows(rows, stream)
    return stream.getvalue()


def test_a_table_for_a_pipe_has_one_line_per_row_and_digests_that_name_their_object() -> None:
    long_task = "word " * 100
    rows: list[dict[str, object]] = [
        {"trace_id": ID, "fingerprint": f"tm1:{ID}", "task": long_task},
        {"trace_id": ID[::-1]},
    ]
    lines = rows_as_text(rows).splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["trace", "id", "fingerprint", "task"]
    assert lines[1].startswith(f"{ID[:12]}  tm1:{ID[:12]}  {long_task.strip()}")
    assert lines[2] == ID[::-1][:12]


def test_what_only_looks_like_a_digest_stays_whole() -> None:
    assert ID.upper() in rows_as_text([{"task": ID.upper(), "status": "success"}])
    assert f"{ID}0" in rows_as_text([{"task": f"{ID}0", "status": "success"}])


def test_columns_without_any_value_are_left_out() -> None:
    assert "split" not in rows_as_text([{"task": "t-1", "split": None}, {"task": "t-2", "split": ""}])


def test_text_of_a_trace_cannot_break_out_of_its_cell() -> None:
    text = rows_as_text([{"task": "one\x1b[2J\u202e\rtwo", "status": "success"}])
    assert r"one\x1b[2J\u202e\rtwo" in text
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize("columns", ["70", "100", "200"])
def test_on_a_terminal_no_id_is_cut_or_folded(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = rows_as_text([{"trace_id": ID, "task": "a long sentence about the task " * 3}], Terminal())
    assert ID[:12] in text


def test_a_terminal_too_narrow_for_the_table_gets_a_block_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = "order-" * 10
    text = rows_as_text([{"task": name, "status": "success"}, {"task": name, "status": "failure"}], Terminal())
    assert text == f"task    {name}\nstatus  success\n\ntask    {name}\nstatus  failure\n"


def test_the_head_of_a_column_is_neither_cut_nor_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    row: dict[str, object] = {"name": "desk-commented", "source": "harness_versions/desk-commented", "successes": 9}
    for columns in range(40, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = rows_as_text([{**row, "accepted": True}], Terminal())
        assert "successes" in text
        assert "accepted" in text


def test_a_line_break_in_one_row_leaves_the_table_a_table() -> None:
    text = rows_as_text([{"task": "a\nb", "status": "success"}, {"task": "t-2", "status": "failure"}])
    assert text == "task  status\na\\nb  success\nt-2   failure\n"


def test_rows_that_hold_a_text_of_several_lines_become_blocks() -> None:
    text = rows_as_text([{"part": "system", "diff": "--- old\n+++ new\n-a\x07\n+b\n"}])
    assert text == "part  system\n  --- old\n  +++ new\n  -a\\x07\n  +b\n"


def test_a_report_shows_values_then_sections() -> None:
    stream = io.StringIO()
    write_report(
        {
            "name": "desk_a",
            "excluded": {"contested": 1, "other-harness": 12},
            "dry_run": False,
            "components": {
                "runtime": {"digest": "d", "evidence": "claimed"},
                "tool_bindings": {"digest": "e", "evidence": "recorded"},
            },
            "fits": ("tm1:a", "tm1:b"),
        },
        stream,
    )
    assert stream.getvalue() == (
        "name     desk_a\n"
        "dry run  no\n"
        "fits     tm1:a, tm1:b\n"
        "\n"
        "excluded:\n"
        "  contested      1\n"
        "  other-harness  12\n"
        "\n"
        "components:\n"
        "name           digest  evidence\n"
        "runtime        d       claimed\n"
        "tool_bindings  e       recorded\n"
    )


def test_named_members_are_sections_whatever_they_hold() -> None:
    stream = io.StringIO()
    write_report({"fits": [], "notes": ["x" * 70], "run": {}, "name": "a"}, stream, ("fits", "run"))
    assert stream.getvalue() == f"notes  {'x' * 70}\nname   a\n\nfits:\n  none\n\nrun:\n  none\n"


def test_one_object_alone_is_no_table_and_keeps_its_name() -> None:
    stream = io.StringIO()
    write_report({"run": {"model": {"name": "m-1"}}, "runs": {"a": {"name": "x"}, "b": {"name": "y"}}}, stream)
    assert stream.getvalue() == "run:\n  model / name  m-1\n\nruns:\n  a / name  x\n  b / name  y\n"


def test_a_value_that_is_not_there_is_a_dash() -> None:
    stream = io.StringIO()
    write_report({"previous": None, "flags": ()}, stream)
    assert stream.getvalue() == "previous  -\nflags     -\n"


def test_a_list_that_is_too_long_for_a_line_has_an_item_per_line() -> None:
    stream = io.StringIO()
    sentences = ("every digest was derived again from the stored bytes", "every name is the digest of its file")
    write_report({"proved": sentences}, stream)
    assert stream.getvalue() == f"proved:\n  {sentences[0]}\n  {sentences[1]}\n"


def test_a_mapping_of_unlike_mappings_is_shown_flat() -> None:
    stream = io.StringIO()
    write_report({"parts": {"runtime": {"parser": "p"}, "tool_bindings": {"refund": "r"}}}, stream)
    assert stream.getvalue() == "parts:\n  runtime / parser        p\n  tool_bindings / refund  r\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "yes"),
        (0, "0"),
        (0.5, "0.5"),
        ([], ""),
        (["a", "b\n"], r"a, b\n"),
        ({"a": 1}, "a=1"),
        ({"a": {"b": 1}}, '{"a": {"b": 1}}'),
    ],
)
def test_a_value_on_one_line(value: object, shown: str) -> None:
    assert cell(value) == shown
