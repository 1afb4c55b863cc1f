from __future__ import annotations

import io
from typing import Any

import pytest

from tracemark.cli.text import width
from tracemark.cli.trace_table import write_traces

ID = "0123456789abcdef" * 4
SEEN = {"prompt_templates": "a" * 64, "tool_bindings": "b" * 64}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(**members: Any) -> dict[str, Any]:
    return {
        "trace_id": ID,
        "fingerprint": None,
        "harness": None,
        "evidence": "unrecorded",
        "observed": {},
        "task": "t-1",
        "status": "success",
        "reward": 1.0,
        "model": None,
        "tool_calls": 2,
        "steps": 5,
        "format": "atif",
        "source": "runs.jsonl",
        "flags": [],
        **members,
    }


def table(*rows: dict[str, Any], stream: io.StringIO | None = None) -> list[str]:
    stream = stream or io.StringIO()
    write_traces(rows, stream)
    return stream.getvalue().splitlines()


LONG = [
    row(observed=SEEN, task="word " * 50, model="a-model-with-a-name-" * 3, source="a/folder/" * 9, flags=["mixed"]),
    row(harness="h" * 40, fingerprint=f"tm1:{ID}", evidence="corroborated", task="注文" * 50, flags=["contradicted"]),
]


def test_real_data_fits_with_its_status_in_sight() -> None:
    lines = table(*LONG)
    assert len(lines) == 3
    assert max(map(width, lines)) <= 120
    assert lines[0].split()[:3] == ["trace", "id", "status"]
    assert lines[1].startswith(f"{ID[:12]}  success")
    assert "mixed" in lines[1]
    assert "word word word w…" in lines[1]
    assert "contradicted" in lines[2]


def test_digests_of_the_content_are_twelve_digits_in_columns_of_their_own() -> None:
    head, first = table(row(observed=SEEN))
    assert "prompts seen  tools seen" in head
    assert f"{'a' * 12}  {'b' * 12}" in first
    assert "a" * 13 not in first


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_a_terminal_is_never_too_narrow(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = table(*LONG, stream=Terminal())
    assert len(lines) == 3
    assert max(map(width, lines)) <= columns
    assert lines[1].startswith(f"{ID[:12]}  success")


def test_what_fits_is_shown_whole_and_unused_columns_are_left_out() -> None:
    assert table(row()) == [
        "trace id      status   evidence    task  reward  tool calls  steps  format  source",
        f"{ID[:12]}  success  unrecorded  t-1   1.0     2           5      atif    runs.jsonl",
    ]


def test_of_a_source_the_end_is_kept() -> None:
    _, first = table(row(source="a/folder/" * 20 + "runs.jsonl:12", task="word " * 30))
    assert first.startswith(f"{ID[:12]}  success")
    assert first.endswith("/runs.jsonl:12")
    assert len(first) <= 120


def test_text_of_a_trace_stays_in_its_line() -> None:
    lines = table(row(task="one\x1b[2J\ntwo"))
    assert len(lines) == 2
    assert r"one\x1b[2J\ntwo" in lines[1]
