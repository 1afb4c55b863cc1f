"""What is taken of the traces that pass: limits of number, counts that add up, and enough or nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import ExportRefusedError
from tracemark.exporters.choice import Rival, Selected, choose, require_enough
from tracemark.exporters.evaluation import qualified
from tracemark.exporters.select import Facts, Judged, Reason, Terms, judge
from tracemark.ledger.params import Caps, Policy

A, B = ("tm1:" + letter * 64 for letter in "ab")
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


def under(caps: Caps, policy: Policy = Policy.UNIQUE) -> Terms:
    return Terms(accepted=frozenset({A}), caps=caps, policy=policy)


def hints(
    *known: Facts, policy: Policy = Policy.UNIQUE, rivals: tuple[Rival, ...] = (), terms: Terms | None = None
) -> tuple[str, list[str]]:
    """Return message and hints of an export of such traces that is refused; the content of each fits two harnesses."""
    terms = terms or under(OFF, policy)
    judged = Judged()
    for one in known:
        judged.note(one, judge(one, terms, lambda: [A, B], lambda: None))
    with pytest.raises(ExportRefusedError) as caught:
        require_enough(
            choose(judged, terms.caps), terms, "desk_a", lambda fitting: rivals if B in fitting or not fitting else ()
        )
    return caught.value.message, str(caught.value.hint).split("; or ")


def chosen(*known: Facts, caps: Caps = OFF) -> Selected:
    terms = Terms(accepted=frozenset({A}), caps=caps)
    judged = Judged()
    for one in known:
        judged.note(one, judge(one, terms, lambda: [A], lambda: None))
    return choose(judged, caps)


def trace(number: int, **changes: Any) -> Facts:
    return GOOD._replace(id=f"{number:064x}", **changes)


def test_of_one_task_the_smallest_id_is_taken() -> None:
    selected = chosen(trace(3), trace(1), trace(2), trace(9, task="t-2"), caps=replace(OFF, per_task=1))
    assert [int(name, 16) for name in selected.ids] == [1, 9]
    assert selected.excluded[Reason.PER_TASK] == 2


def test_two_unknown_tasks_are_not_the_same_task() -> None:
    assert len(chosen(trace(1, task=None), trace(2, task=None), caps=replace(OFF, per_task=1)).ids) == 2


def test_the_total_is_taken_after_the_limit_per_task() -> None:
    traces = [trace(number, task=f"t-{number // 2}") for number in range(6)]
    selected = chosen(*traces, caps=replace(OFF, per_task=1, total=2))
    assert [int(name, 16) for name in selected.ids] == [0, 2]
    assert (selected.excluded[Reason.PER_TASK], selected.excluded[Reason.TOTAL]) == (3, 1)


def test_traces_for_which_others_stand_are_counted_beside_the_others() -> None:
    judged, more = Judged(superseded=2), Judged(superseded=1)
    judged.note(trace(1), judge(trace(1), TERMS, list, lambda: None))
    more.note(trace(2, fingerprint=B), judge(trace(2, fingerprint=B), TERMS, list, lambda: None), 4)
    judged.add(more)
    selected = choose(judged, OFF)
    assert (selected.traces, selected.superseded, selected.excluded[Reason.OTHER_HARNESS]) == (5, 3, 4)


def test_models_and_graders_of_the_rows_are_counted() -> None:
    selected = chosen(trace(1), trace(2, model=None, grader=None), trace(3, status="failure"))
    assert selected.models == {"m@1": 1, "unknown": 1}
    assert selected.graders == {"g": 1, "unknown": 1}


def test_too_few_rows_are_refused_with_what_is_needed() -> None:
    selected = chosen(trace(1), trace(2, fingerprint=B), trace(3, status="failure"))
    with pytest.raises(ExportRefusedError) as caught:
        require_enough(selected, under(Caps(minimum=20)), "desk_a")
    assert caught.value.exit_code == 40
    assert "1 of 3 traces fit, at least 20 are needed" in caught.value.message
    assert "other-harness 1, outcome 1" in caught.value.message
    assert "19 more successful runs under desk_a" in str(caught.value.hint)


def test_a_refused_export_names_the_choice_of_models_that_leaves_traces_out() -> None:
    terms = replace(under(OFF), models=frozenset({"zz", "yy@2"}))
    judged = Judged()
    for one in (trace(1, model="xx"), trace(2)):
        judged.note(one, judge(one, terms, lambda: [A], lambda: None))
    with pytest.raises(ExportRefusedError) as caught:
        require_enough(choose(judged, OFF), terms, "desk_a")
    assert str(caught.value.hint).split("; or ") == [
        "change params.yaml: export.models [yy@2, zz] leaves out 2",
        "record at least 1 more successful run under desk_a with yy@2 or zz, then ingest",
    ]


def test_limits_that_leave_out_what_would_fit_are_named_with_their_parameter() -> None:
    caps = Caps(per_task=1, total=100, minimum=20, tool_calls=(2, 60))
    traces = [trace(1, tool_calls=1, task="t-2"), trace(2, tool_calls=5), trace(3, tool_calls=5)]
    with pytest.raises(ExportRefusedError) as caught:
        require_enough(chosen(*traces, caps=caps), under(caps), "desk_a")
    assert str(caught.value.hint).split("; or ") == [
        "change params.yaml: export.sft.tool_calls [2, 60] leaves out 1",
        "change params.yaml: export.sft.per_task 1 leaves out 1",
        "record at least 19 more successful runs under desk_a (at most 1 of a task counts), then ingest",
    ]


RECORD = "record at least 1 more successful run under desk_a, then ingest"


def test_contested_traces_are_to_be_settled_before_more_runs_are_recorded() -> None:
    whose = {"contested": True, "disputed": ("harness.declared.fingerprint",)}
    _, (first, *others) = hints(trace(1, **whose), trace(2, **whose))
    assert first == (
        "settle whose the contested traces are: tracemark stamp TRACE --harness NAME|FINGERPRINT|none --reason TEXT"
        " (2, flagged in tracemark traces list)"
    )
    assert others == [RECORD]


@pytest.mark.parametrize("disputed", [("outcome.status",), ("harness.declared.fingerprint", "run.task")])
def test_of_what_nothing_settles_a_retraction_is_named_and_no_stamp(disputed: tuple[str, ...]) -> None:
    _, (first, *others) = hints(trace(1, contested=True, disputed=disputed))
    assert first == (
        "leave out what is contested for its outcome or run (1), which nothing settles: tracemark retract TRACE"
        " --reason TEXT records that, tracemark audit TRACE shows what each source says"
    )
    assert others == [RECORD]


WEAK = {"evidence": "corroborated"}
EMPTIED = "change params.yaml: export.evidence unique leaves out 1"


@pytest.mark.parametrize("spare", [True, False])
def test_a_sibling_that_empties_the_export_is_named_with_the_policy(spare: bool) -> None:
    _, (first, *others) = hints(trace(1, **WEAK), rivals=(Rival("desk_c", True, spare),))
    # one that made traces is known by its snapshot for good
    away = "take away desk_c, which made no trace, or " if spare else ""
    assert first == (
        f"{EMPTIED}, which claimed takes, as no content tells desk_a apart from desk_c, or {away}record runs with"
        " tracemark.record, or where they do the same, say so by `tracemark harness equivalent A B --reason TEXT`"
        " (siblings-alike in `tracemark harness list`)"
    )
    assert others == [RECORD]


def test_what_fits_as_well_is_to_be_taken_away_only_where_nothing_is_left_of_it_then() -> None:
    spare, stored = Rival("desk_b", False, True), Rival("desk_c", False, False)
    record = "record runs with tracemark.record"
    _, said = hints(trace(1, **WEAK), rivals=(spare,))
    fits = "whose content fits desk_b"
    away = "take away desk_b, which made no trace"
    assert said == [f"{EMPTIED} {fits} as well, which claimed takes, or {away}, or {record}", RECORD]
    for rivals, named in (((stored,), "desk_c"), ((spare, stored), "desk_b, desk_c")):
        _, said = hints(trace(1, **WEAK), rivals=rivals)
        assert said == [f"{EMPTIED} whose content fits {named} as well, which claimed takes, or {record}", RECORD]


def test_evidence_that_is_too_weak_is_named_with_the_policy() -> None:
    _, said = hints(trace(1, evidence="claimed", corroborated=0))
    assert said[0] == (
        f"{EMPTIED} whose content shows no single harness (fits in tracemark audit TRACE), which claimed takes,"
        " or record runs with tracemark.record"
    )
    _, said = hints(trace(1, evidence="claimed"), policy=Policy.RECORDED)
    assert said[0] == (
        "change params.yaml: export.evidence recorded leaves out 1 whose run did not record its harness whole,"
        " or record runs with tracemark.record"
    )
    assert said[1:] == [RECORD]


ELSE = [{"status": "failure"}, {"task": "eval-1"}, {"untrainable": "rendered"}, {"tool_calls": 61}]
"""What leaves a trace out whatever else is done about it."""
FIRST = [WEAK, {"model": "n"}, {"contested": True, "disputed": ("harness.declared.fingerprint",)}]
"""What can be done about."""


@pytest.mark.parametrize("first", FIRST)
def test_a_hint_counts_only_what_would_become_a_row(first: dict[str, Any]) -> None:
    terms = replace(TERMS, caps=replace(OFF, tool_calls=(2, 60)))
    _, said = hints(*(trace(at, **{**first, **more}) for at, more in enumerate(ELSE)), terms=terms)
    assert len(said) == 1
    assert said[0].startswith("record at least 1 more")
    message, said = hints(*(trace(at, **{**first, **more}) for at, more in enumerate([*ELSE, {}])), terms=terms)
    assert "0 of 5 traces fit" in message
    assert len(said) == 2
    assert "out 1" in said[0] or "(1, flagged" in said[0]


def test_a_task_of_which_enough_are_rows_gains_nothing_by_a_hint() -> None:
    caps = Caps(per_task=1, total=None, minimum=2, tool_calls=None)
    _, said = hints(trace(1), trace(2, **WEAK), terms=under(caps))
    assert len(said) == 1
    _, said = hints(trace(1), trace(2, task="t-2", **WEAK), terms=under(caps))
    assert said[0].startswith(EMPTIED)


def test_what_is_not_trainable_is_told_in_detail() -> None:
    message, said = hints(trace(1, untrainable="rendered"), trace(2, untrainable="subagent"))
    assert message.endswith("left out: not-trainable 2 (rendered 1, subagent 1)")
    assert said == [RECORD]


def test_no_runs_are_asked_for_where_the_total_is_below_the_minimum() -> None:
    caps = replace(OFF, total=1, minimum=2)
    with pytest.raises(ExportRefusedError) as caught:
        require_enough(chosen(trace(1), trace(2), caps=caps), under(caps), "desk_a")
    assert caught.value.hint == "change params.yaml: export.sft.total 1 is less than the 2 that are needed"


def test_an_empty_export_is_refused_even_without_a_minimum() -> None:
    with pytest.raises(ExportRefusedError):
        require_enough(chosen(), under(OFF), "desk_a")
    require_enough(chosen(trace(1)), under(OFF), "desk_a")


some_facts = st.builds(
    Facts,
    id=st.integers(0, 2**64).map(lambda number: f"{number:064x}"),
    fingerprint=st.sampled_from([A, A, A, B, None]),
    status=st.sampled_from(["success", "success", "failure", "error", "unknown"]),
    tool_calls=st.integers(0, 70),
    evidence=st.sampled_from(["recorded", "corroborated", "claimed", "unrecorded"]),
    corroborated=st.integers(0, 2),
    task=st.sampled_from(["t-1", "t-2", "t-3", "eval-1", None]),
    model=st.sampled_from(["m@1", "n", None]),
    grader=st.sampled_from(["g", None]),
    retracted=st.sampled_from([False, False, True]),
    contested=st.sampled_from([False, False, True]),
    mixed=st.sampled_from([False, False, True]),
    untrainable=st.sampled_from([None, None, "rendered", "subagent"]),
)
some_caps = st.builds(
    Caps,
    per_task=st.sampled_from([None, 1, 2]),
    total=st.sampled_from([None, 1, 3]),
    minimum=st.just(0),
    tool_calls=st.sampled_from([None, (2, 60)]),
)
some_terms = st.builds(
    Terms,
    accepted=st.sampled_from([frozenset({A}), frozenset({A, B}), frozenset()]),
    policy=st.sampled_from(Policy),
    incomplete=st.sampled_from([frozenset(), frozenset({A})]),
    models=st.sampled_from([frozenset(), frozenset({"m"})]),
    evaluation=st.sampled_from([frozenset(), frozenset({"eval-1"})]),
    caps=some_caps,
)


def fits(one: Facts) -> list[str]:
    """What fits is a property of the trace: here of its id."""
    return [A, B] if int(one.id[-1], 16) % 2 else [A]


def select(known: list[Facts], terms: Terms) -> Selected:
    halves = (Judged(), Judged())
    for number, one in enumerate(known):
        halves[number % 2].note(one, judge(one, terms, partial(fits, one), lambda: None))
    halves[0].add(halves[1])
    return choose(halves[0], terms.caps)


@given(st.lists(some_facts, max_size=30, unique_by=lambda one: one.id), some_terms)
def test_the_counts_add_up_to_the_traces(known: list[Facts], terms: Terms) -> None:
    selected = select(known, terms)
    assert selected.traces == len(known) == len(selected.ids) + sum(selected.excluded.values())
    assert set(selected.excluded) == set(Reason)
    assert selected.excluded[Reason.NOT_TRAINABLE] == sum(selected.not_trainable.values())
    assert sum(selected.models.values()) == sum(selected.graders.values()) == len(selected.ids)


@given(st.lists(some_facts, max_size=30, unique_by=lambda one: one.id), some_terms, st.randoms(use_true_random=False))
def test_the_order_of_traces_changes_nothing(known: list[Facts], terms: Terms, order: random.Random) -> None:
    selected = select(known, terms)
    order.shuffle(known)
    assert select(known, terms) == selected


@given(st.lists(some_facts, max_size=30, unique_by=lambda one: one.id), some_terms)
def test_no_row_breaks_a_rule(known: list[Facts], terms: Terms) -> None:
    by_id = {one.id: one for one in known}
    rows = [by_id[name] for name in select(known, terms).ids]
    assert all(row.fingerprint in terms.accepted and row.status == "success" for row in rows)
    assert not any(row.retracted or row.contested or row.mixed or row.task in terms.evaluation for row in rows)
    assert terms.caps.total is None or len(rows) <= terms.caps.total
    tasks = [qualified(row.task, row.domain) for row in rows if row.task is not None]
    assert terms.caps.per_task is None or all(tasks.count(task) <= terms.caps.per_task for task in tasks)
