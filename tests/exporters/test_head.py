"""What the catalogue says of a trace is worth what the line of the trace says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.exporters.head import head_in, require_same, require_same_conduct
from tracemark.exporters.select import Facts
from tracemark.store.row import conduct, project
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


def test_of_a_trace_that_was_stated_again_only_what_nothing_else_can_state_is_compared_with_its_line() -> None:
    again = replace(state(status="success"), restated=True)
    require_same(LINE_BYTES, "1" * 64, head_in(again))
    other = replace(state(raw=b"0" * 32), restated=True)
    with pytest.raises(IntegrityError, match="of its raw"):
        require_same(LINE_BYTES, "1" * 64, head_in(other))


def test_the_head_of_a_line_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    load = digest.load_canonical
    monkeypatch.setattr(digest, "load_canonical", lambda data: parsed.append(data) or load(data))
    require_same(LINE_BYTES, "1" * 64, head_in(state()))
    assert len(parsed) == 1


STEPS = [
    {"step_id": 1, "source": "user", "tool_calls": [{}], "llm_call_count": 0},
    {"step_id": 2, "source": "agent", "tool_calls": [{"function_name": "f"}, {"function_name": "g"}]},
    {"step_id": 3, "source": "agent", "tool_calls": None},
]


def conducted(**changes: Any) -> Facts:
    return Facts("1" * 64, None, "success", **{"tool_calls": 2, **changes})


@pytest.mark.parametrize("more", [{}, {"is_copied_context": True}, {"llm_call_count": 0}, {"tool_calls": [{}]}])
def test_what_a_row_says_of_the_steps_is_what_they_show(more: dict[str, Any]) -> None:
    step = {"step_id": 4, "source": "agent", **more}
    step = {**step, "tool_calls": [{"function_name": "f"}]} if "tool_calls" in more else step
    trajectory = {"steps": [*STEPS, step]}
    row = project({**LINE, "trajectory": trajectory}, "1" * 64).row
    shown = conduct(trajectory)
    assert shown == {name: getattr(row, name) for name in shown}
    if not more:
        require_same_conduct(trajectory, conducted())
        return
    with pytest.raises(IntegrityError, match=r"of its (copied|uncalled|tool_calls)\n"):
        require_same_conduct(trajectory, conducted())


def test_why_a_trace_makes_no_row_is_not_asked_of_its_steps_again() -> None:
    require_same_conduct(
        {"steps": [*STEPS, {"source": "agent", "llm_call_count": 0}]}, conducted(untrainable="rendered")
    )


@pytest.mark.parametrize("line", [b"", b"{}", b'{"a":1,"trajectory":{}}', b'{"harness":[],"trajectory":{}}'])
def test_a_line_that_is_no_trace_is_an_integrity_error(line: bytes) -> None:
    with pytest.raises(IntegrityError):
        require_same(line, "1" * 64, head_in(state()))
