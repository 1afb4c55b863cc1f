"""The strict filter: one first reason for each trace left out, whatever the order of traces."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from tracemark.exporters.select import Facts, Reason, Terms, facts, judge
from tracemark.ledger.params import Caps, Policy
from tracemark.store.row import TraceRow, project
from tracemark.store.segment import Location
from tracemark.store.selection import State

A, B, C = ("tm1:" + letter * 64 for letter in "abc")
OFF = Caps(per_task=None, total=None, minimum=0, tool_calls=None)

GOOD = Facts(
    id="1" * 64,
    fingerprint=A,
    status="success",
    tool_calls=5,
    evidence="recorded",
    corroborated=3,
    task="t-1",
    model="m@1",
    grader="g",
)
TERMS = Terms(accepted=frozenset({A}), evaluation=frozenset({"eval-1"}), models=frozenset({"m"}))


def reason(known: Facts, terms: Terms = TERMS, fits: Collection[str] = (A,), content: str | None = None) -> Any:
    return judge(known, terms, lambda: fits, lambda: content).reason


def test_a_recorded_success_of_the_accepted_harness_is_taken() -> None:
    assert reason(GOOD) is None


WORSE: dict[Reason, dict[str, Any]] = {
    Reason.RETRACTED: {"retracted": True},
    Reason.CONTESTED: {"contested": True},
    Reason.MIXED: {"mixed": True},
    Reason.NO_FINGERPRINT: {"fingerprint": None},
    Reason.OTHER_HARNESS: {"fingerprint": B},
    Reason.OTHER_MODEL: {"model": "n"},
    Reason.EVIDENCE: {"evidence": "claimed", "corroborated": 0},
    Reason.OUTCOME: {"status": "failure"},
    Reason.EVALUATION_TASK: {"task": "eval-1"},
    Reason.NOT_TRAINABLE: {"untrainable": "rendered"},
    Reason.TOOL_CALLS: {"tool_calls": 61},
}


@pytest.mark.parametrize("expected", WORSE)
def test_each_reason_is_found_by_itself(expected: Reason) -> None:
    assert reason(GOOD._replace(**WORSE[expected])) is expected


def test_the_first_of_several_reasons_is_given_in_the_order_of_the_enumeration() -> None:
    changes: dict[str, Any] = {}
    for expected in reversed(WORSE):
        changes |= WORSE[expected]
        if expected is Reason.OTHER_HARNESS:
            changes["fingerprint"] = B
        assert reason(GOOD._replace(**changes)) is expected


def test_every_reason_but_the_last_two_is_tried_here() -> None:
    assert [*WORSE, Reason.PER_TASK, Reason.TOTAL] == list(Reason)


@pytest.mark.parametrize("status", ["failure", "error", "unknown"])
def test_only_a_recorded_success_counts(status: str) -> None:
    assert reason(GOOD._replace(status=status)) is Reason.OUTCOME


def test_a_fingerprint_declared_equivalent_counts_as_the_accepted_one() -> None:
    both = replace(TERMS, accepted=frozenset({A, B}))
    seen = GOOD._replace(fingerprint=B, evidence="claimed")
    assert reason(seen, both, fits=[A, B]) is None
    assert reason(seen, both, fits=[A, B, C]) is Reason.EVIDENCE


@pytest.mark.parametrize(
    ("policy", "evidence", "corroborated", "fits", "taken"),
    [
        ("recorded", "recorded", 3, [], True),
        ("recorded", "corroborated", 3, [A], False),
        ("unique", "recorded", 3, [A, B], True),
        ("unique", "corroborated", 3, [A], True),
        ("unique", "claimed", 1, [A], True),
        ("unique", "claimed", 0, [A], False),
        ("unique", "claimed", 1, [A, B], False),
        ("unique", "claimed", 1, [], False),
        ("unique", "claimed", 1, [B], False),
        ("claimed", "claimed", 0, [A, B], True),
    ],
)
def test_a_policy_asks_how_well_the_harness_is_known(
    policy: str, evidence: str, corroborated: int, fits: list[str], taken: bool
) -> None:
    known = GOOD._replace(evidence=evidence, corroborated=corroborated)
    assert (reason(known, replace(TERMS, policy=Policy(policy)), fits) is None) is taken


def test_an_incomplete_closure_counts_as_claimed_under_the_policy_recorded_alone() -> None:
    incomplete = replace(TERMS, incomplete=frozenset({A}))
    assert reason(GOOD, replace(incomplete, policy=Policy.RECORDED)) is Reason.EVIDENCE
    assert reason(GOOD, replace(incomplete, policy=Policy.UNIQUE)) is None


def test_a_trace_without_a_task_is_left_out_as_soon_as_there_is_an_evaluation_set() -> None:
    unknown = GOOD._replace(task=None)
    assert reason(unknown) is Reason.EVALUATION_TASK
    assert reason(unknown, replace(TERMS, evaluation=frozenset())) is None


def test_models_are_named_with_or_without_a_revision() -> None:
    assert reason(GOOD, replace(TERMS, models=frozenset({"m@1"}))) is None
    assert reason(GOOD, replace(TERMS, models=frozenset({"m@2"}))) is Reason.OTHER_MODEL
    assert reason(GOOD._replace(model=None)) is Reason.OTHER_MODEL
    assert reason(GOOD._replace(model=None), replace(TERMS, models=frozenset())) is None


def test_the_content_is_asked_for_its_reason_and_the_reason_is_told() -> None:
    verdict = judge(GOOD, TERMS, list, lambda: "media")
    assert (verdict.reason, verdict.detail) == (Reason.NOT_TRAINABLE, "media")


def test_what_costs_work_is_asked_for_only_when_it_decides() -> None:
    def never() -> Any:
        raise AssertionError("asked in vain")

    assert judge(GOOD._replace(fingerprint=B), TERMS, never, never).reason is Reason.OTHER_HARNESS
    assert judge(GOOD._replace(status="failure"), TERMS, never, never).reason is Reason.OUTCOME
    assert judge(GOOD._replace(untrainable="rendered"), TERMS, never, never).reason is Reason.NOT_TRAINABLE


@pytest.mark.parametrize(("calls", "taken"), [(1, False), (2, True), (60, True), (61, False)])
def test_the_limits_of_tool_calls_are_both_allowed(calls: int, taken: bool) -> None:
    assert (reason(GOOD._replace(tool_calls=calls)) is None) is taken


def state(line: dict[str, Any], **changes: Any) -> State:
    row: TraceRow = project(line, "5" * 64).row
    return State(row, "segments/none/x.jsonl.zst", Location(0, 0, 0, 0), **changes)


def line(**changes: Any) -> dict[str, Any]:
    return {
        "format": "tracemark/trace/1",
        "harness": {},
        "outcome": {"status": "success", "grader": {"name": "g", "version": "2"}},
        "run": {"task": "t-1", "model": {"name": "m", "revision": "1"}},
        "source": {"raw": "f" * 64, "format": "atif", "label": "x", "importer": "atif", "importer_version": "1"},
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": []},
        **changes,
    }


def test_facts_are_those_of_the_catalogue_and_the_decisions() -> None:
    known = facts(state(line(), retracted=True, conflicts=("run.task",)))
    assert known == Facts(
        id="5" * 64,
        fingerprint=None,
        status="success",
        tool_calls=0,
        task="t-1",
        model="m@1",
        grader="g",
        retracted=True,
        contested=True,
        disputed=("run.task",),
    )


@pytest.mark.parametrize(
    ("run", "detail"),
    [
        ({"role": "subagent"}, "subagent"),
        ({"role": "continuation"}, "continuation"),
        ({"demonstration": True}, "demonstration"),
        ({"rendered": True}, "rendered"),
    ],
)
def test_what_the_run_says_against_a_row_is_among_the_facts(run: dict[str, Any], detail: str) -> None:
    assert facts(state(line(run=run))).untrainable == detail
