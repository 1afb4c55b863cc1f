"""What the catalogue says of a trace is worth what the line of the trace says."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.exporters.head import head_in, require_same
from tracemark.store.row import project
from tracemark.store.segment import Location
from tracemark.store.selection import State

LINE: dict[str, Any] = {
    "format": "tracemark/trace/1",
    "harness": {},
    "outcome": {"status": "failure", "reward": 0.1, "grader": {"name": "g"}},
    "run": {"task": "t", "domain": "d", "attempt": 2**70, "model": {"name": "m", "revision": "1"}, "role": "subagent"},
    "source": {"raw": "f" * 64},
    "trajectory": {"steps": []},
}
LINE_BYTES = digest.canonical(LINE)


def state(**changes: Any) -> State:
    row = project(LINE, digest.of(LINE["trajectory"])).row
    return State(row._replace(**changes), "segments/x", Location(0, 0, 0, 0))


def test_a_catalogue_that_says_what_the_line_says_is_believed() -> None:
    require_same(LINE_BYTES, "1" * 64, head_in(state()))


@pytest.mark.parametrize(
    "change",
    [
        {"raw": b"0" * 32},
        {"fingerprint": "tm1:" + "a" * 64},
        {"evidence": "recorded"},
        {"corroborated": 1},
        {"mixed": True},
        {"task": None},
        {"domain": "e"},
        {"model": "n"},
        {"revision": "2"},
        {"role": None},
        {"rendered": True},
        {"demonstration": True},
        {"status": "success"},
        {"grader": None},
    ],
)
def test_a_catalogue_that_says_something_else_of_what_the_filter_reads_is_an_integrity_error(
    change: dict[str, Any],
) -> None:
    with pytest.raises(IntegrityError) as caught:
        require_same(LINE_BYTES, "1" * 64, head_in(state(**change)))
    assert caught.value.message.endswith(f" {next(iter(change))}")
    assert (caught.value.where, caught.value.exit_code) == ("1" * 64, 30)
    assert "tracemark reindex" in str(caught.value.hint)


def test_of_a_trace_that_was_stated_again_the_line_alone_does_not_decide() -> None:
    again = state(status="success")
    assert head_in(State(again.row, again.file, again.location, restated=True)) is None
    require_same(LINE_BYTES, "1" * 64, None)


@pytest.mark.parametrize("line", [b"", b"{}", b'{"a":1,"trajectory":{}}', b'{"harness":[],"trajectory":{}}'])
def test_a_line_that_is_no_trace_is_an_integrity_error(line: bytes) -> None:
    with pytest.raises(IntegrityError):
        require_same(line, "1" * 64, head_in(state()))
