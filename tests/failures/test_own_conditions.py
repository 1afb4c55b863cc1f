"""Whatever conditions a user adds: each failed run has one file, and faults of nobody's never lie in the log itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.failures.runs import Line, bash, line, says
from tests.failures.test_terminations import BUDGET, ENVIRONMENT, GRADER, NOBODY_KNOWS, STOPPED
from tracemark.acts.failure_job import FAILURES, FILES
from tracemark.errors import ParamsError
from tracemark.failures.conditions import Destination, Question, Side, conditions, shipped
from tracemark.failures.route import route
from tracemark.model.trace import STATUSES

WORDS = [".", "error", "no", "sandbox", "exit", "disk|space", "max", "^$", "done"]
FAILED = [status for status in STATUSES if status != "success"]
MADE = bash("make", "make: *** Error 2", 2)
STEPS: list[list[Line]] = [
    [],
    [says("hm")],
    [bash("ls", "a", 0), says("done")],
    [MADE],
    [MADE, MADE],
    [MADE, bash("make", "built", 0)],
    [bash("make", "", 2)],
    [bash("tar x", "tar: Cannot write: No space left on device", 1)],
    [bash("edit a", "Error: unknown tool 'edit'", 1)],
]


def stated(table: dict[str, Any]) -> str:
    return "\n".join(["[[condition]]", *(f"{name} = {json.dumps(value)}" for name, value in table.items())])


@st.composite
def _own(draw: st.DrawFn) -> str:
    """Draw a file of one to four conditions, usable or not."""
    patterns = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)
    members: dict[Question, list[tuple[str, st.SearchStrategy[Any]]]] = {
        Question.GRADER_EXCEPTION: [("patterns", patterns)],
        Question.FAILURES: [("failures", st.sampled_from(["none", "recovered", "unrecovered"]))],
        Question.STOPPED: [("patterns", patterns)],
        Question.FAILURE_MATCHES: [("patterns", patterns), ("terminations", patterns)],
    }
    texts = ["version = 1"]
    for number in range(draw(st.integers(1, 4))):
        test = draw(st.sampled_from(Question))
        table = {
            "name": f"mine-{number}",
            "order": draw(st.integers(-1, 14)),
            "says": "mine",
            "side": draw(st.sampled_from(Side)),
            "confidence": draw(st.sampled_from([0.0, 0.59, 0.6, 1.0])),
            "destination": draw(st.sampled_from(Destination)),
            "test": test,
        }
        if draw(st.booleans()):
            table["statuses"] = draw(st.lists(st.sampled_from(STATUSES), min_size=1, unique=True))
        texts.append(stated(table | {name: draw(values) for name, values in members.get(test, ())}))
    return "\n".join(texts)


def _first(side: str, test: str, **members: Any) -> str:
    """Return a file with one condition that takes all it can into the log, in front of all others."""
    table = {"name": "all", "order": -1, "says": "all", "side": side, "confidence": 1.0, "destination": "harness"}
    return "version = 1\n" + stated({**table, "test": test, **members})


@given(
    own=_own(),
    steps=st.sampled_from(STEPS),
    status=st.sampled_from(FAILED),
    termination=st.sampled_from([None, *ENVIRONMENT, *GRADER, *BUDGET, *STOPPED, *NOBODY_KNOWS]),
    checks=st.sampled_from([None, {"error": "KeyError"}]),
)
@example(_first("tool", "stopped"), STEPS[1], "failure", "sandbox_error", None)
@example(_first("model", "stopped"), STEPS[1], "error", "VerifierTimeoutError", None)
@example(_first("tool", "failure-matches", patterns=["."]), STEPS[7], "failure", None, None)
@example(_first("tool", "failure-visible"), STEPS[3], "failure", None, {"error": "KeyError"})
@example(_first("tool", "no-session"), STEPS[0], "error", "EnvironmentStartTimeoutError", None)
def test_each_failed_run_has_one_file_and_nobodys_fault_is_in_no_log(
    own: str, steps: list[Line], status: str, termination: str | None, checks: Any
) -> None:
    try:
        mine = conditions(own, "own.toml")
    except ParamsError:
        mine = shipped()
    run = line(*steps, status=status, termination=termination, checks=checks)
    found = route(run, mine)
    assert found.destination in FILES
    if route(run, shipped()).side in ("environment", "grader"):
        assert FILES[found.destination] != FAILURES
    if found.side in ("environment", "grader"):
        assert FILES[found.destination] != FAILURES


@pytest.mark.parametrize("destination", Destination)
def test_what_has_no_file_is_trained_on_and_takes_no_failure(destination: Destination) -> None:
    text = _first("model", "failures", failures="none").replace('"harness"', f'"{destination}"')
    if destination in FILES:
        assert conditions(text).ordered
        return
    with pytest.raises(ParamsError, match="only a success"):
        conditions(text)
