"""What gates say, as text for people."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from tracemark.acts.gating import AttributeAnswer, GateAnswer
from tracemark.acts.installing import InstallAnswer
from tracemark.cli.gate_view import table_log, view_gate
from tracemark.findings import Report


def shown(report: Report) -> list[str]:
    stream = StringIO()
    view_gate(report, stream)
    return stream.getvalue().splitlines()


def members(**changes: Any) -> dict[str, Any]:
    said = {"findings": (), "verdict": "accept", "half": "harness", "said": ("accept it",), "digest": "d" * 64}
    return {**said, "report": {"refusals": []}, "out": None, **changes}


def decided(**changes: Any) -> InstallAnswer:
    said = {"decision": "install", "dry_run": False, "entry": "e" * 64, "new_entry": True}
    return InstallAnswer(**members(), **{**said, "consequences": None, "consequences_said": ("rows: 3",), **changes})


def test_the_verdict_comes_first_and_the_report_last() -> None:
    assert shown(GateAnswer(**members(out="x.json"))) == ["accept it", f"report {'d' * 12} in x.json"]


def test_what_was_decided_and_what_it_does_is_told() -> None:
    assert shown(decided())[1:3] == [f"installed: ledger entry {'e' * 12}", "rows: 3"]
    assert shown(decided(dry_run=True, entry=None))[1].startswith("would be installed; nothing was written")
    said = shown(decided(decision="reject", new_entry=False, consequences_said=()))
    assert said[1] == f"rejected: ledger entry {'e' * 12}, which stood already"


def test_of_a_refusal_it_is_told_that_nothing_was_installed() -> None:
    said = shown(decided(decision=None, entry=None, new_entry=False, consequences_said=()))
    assert said == ["accept it", "nothing was installed", f"report {'d' * 12}"]
    assert "nothing was installed" not in shown(GateAnswer(**members(verdict="refused")))


def test_runs_to_make_are_listed_and_control_characters_made_visible() -> None:
    rerun = [
        {"side": "candidate", "task": "a\x1bb", "attempt": 1, "trace": "f" * 64},
        {"side": "incumbent", "task": "c", "attempt": None, "trace": None},
    ]
    said = shown(
        GateAnswer(**members(verdict="refused", report={"refusals": [{"reason": "r", "rerun": rerun, "traces": []}]}))
    )
    assert said[1].startswith("run: candidate, a")
    assert "\x1b" not in said[1]
    assert said[1].endswith(f"attempt 1 (the infrastructure ended {'f' * 12})")
    assert said[2] == "run: incumbent, c"


def test_an_attribution_lists_what_to_run_as_a_gate_does() -> None:
    rerun = [{"side": "new pair", "task": "shop/e-0", "attempt": 1, "trace": None}]
    report = {"refusals": [{"reason": "attempts-missing", "rerun": rerun, "traces": []}]}
    said = shown(AttributeAnswer((), ("nothing can be attributed",), "d" * 64, report, None))
    assert said == ["nothing can be attributed", "run: new pair, shop/e-0, attempt 1", f"report {'d' * 12}"]


@pytest.mark.parametrize(("number", "more"), [(1, None), (20, None), (21, 1), (500, 480)])
def test_traces_of_which_something_is_to_be_done_are_shown_whole_up_to_a_bound(number: int, more: int | None) -> None:
    ids = [f"{at:064x}" for at in range(number)]
    refusals = [
        {"reason": "not-the-pair", "rerun": [], "traces": ids},
        {"reason": "graders-differ", "rerun": [], "traces": ["e" * 64]},
    ]
    said = shown(GateAnswer(**members(verdict="refused", report={"refusals": refusals})))
    assert said[1 : 1 + min(number, 20)] == [f"trace: not-the-pair, {trace}" for trace in ids[:20]]
    assert said[-2] == f"trace: graders-differ, {'e' * 64}"
    told = [line for line in said if "more" in line]
    assert told == ([] if more is None else [f"trace: not-the-pair, {more} more; --output json has them all"])


def test_no_other_report_is_taken_for_a_gates() -> None:
    with pytest.raises(TypeError):
        view_gate(Report(()), StringIO())


def test_the_log_marks_what_is_in_force() -> None:
    row = {"entry": "a" * 64, "time": "t", "kind": "accept", "reason": "why", "half": "model", "what": "m@1"}
    stream = StringIO()
    table_log([{**row, "in_force": True}, {**row, "in_force": False}], stream)
    assert stream.getvalue().count("accept *") == 1


@pytest.mark.parametrize("terminal", [False, True])
def test_a_log_without_decisions_is_empty(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    stream = StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    table_log([], stream)
    assert stream.getvalue() == ""


def logged(**changes: Any) -> dict[str, Any]:
    row = {"entry": "e" * 64, "time": "2026-01-31T12:00:03Z", "kind": "install", "reason": "x" * 80, "in_force": True}
    what = "desk_c (tm1:dcdcb10bd281); desk_a (tm1:831446b3c3e2) stays"
    return {**row, "half": "harness", "what": what, "measured": {"w": 5, "l": 0, "n": 8}, **changes}


def test_a_log_that_goes_into_a_pipe_has_a_line_per_decision_that_fits() -> None:
    evidence = {"report": "at hand, and its digest is the one named", "traces": "32 of 32 stored"}
    rows = [logged(evidence=evidence), logged(kind="roll-back", half="harness and model", measured=None)]
    stream = StringIO()
    table_log(rows, stream)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 120
    assert lines[0].split() == ["entry", "time", "kind", "half", "what", "measured", "reason"]
    assert lines[1].startswith(f"{'e' * 12}  2026-01-31T12:00:03Z  install *")
    assert "5 up, 0 down of 8" in lines[1]
    assert "  both  " in lines[2]
