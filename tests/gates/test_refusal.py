"""Everything that stands against a comparison is listed by name, with the tasks, and what to run again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.gates.evaluations import BASE, GRADER, NEW, OLD, TUNED, attempts, cell, changed, of
from tracemark.gates.against import refusals
from tracemark.gates.cell import Cell, Model, Pair
from tracemark.gates.coverage import coverage_refusals
from tracemark.gates.refusal import Reason, Refusal, Rerun, digits, named
from tracemark.gates.terms import Half, Terms

EACH = {"desk/a": 1, "desk/b": 2, "shop/a": 3}
INCUMBENT = cell(EACH, 4)
CANDIDATE = cell(EACH, 4, NEW)


def found(incumbent: Cell = INCUMBENT, candidate: Cell = CANDIDATE, **terms: Any) -> tuple[Refusal, ...]:
    return refusals(incumbent, candidate, Terms(**{"half": Half.HARNESS, "attempts": 4, **terms}))


def reasons(*cells: Cell, **terms: Any) -> list[str]:
    return [refusal.reason.value for refusal in found(*cells, **terms)]


def new(made: list[Any]) -> Cell:
    return of(made, NEW)


MADE = attempts(EACH, 4, NEW)


def test_two_whole_evaluations_are_compared() -> None:
    assert found() == ()
    assert found(attempts=4, evaluation=frozenset({"desk/a", "b", "shop/a"})) == ()


def test_without_attempts_there_is_nothing_to_compare() -> None:
    assert reasons(INCUMBENT, of([], NEW)) == ["nothing-to-compare"]
    assert reasons(of([]), of([], NEW)) == ["nothing-to-compare", "nothing-to-compare"]
    # what to run is known by the set, or by the attempts of the other side
    assert [one.hint for one in found(of([]), of([], NEW))] == ["list an evaluation set first"] * 2
    run = "run the evaluation set under it and ingest the traces"
    assert [one.hint for one in found(of([]), of([], NEW), evaluation=frozenset(EACH))] == [run] * 2
    assert [one.hint for one in found(INCUMBENT, of([], NEW))] == [run]
    # what is only claimed of an empty cell confounds nothing
    assert reasons(INCUMBENT, Cell.of(Pair(NEW, Model("desk-agent")), [])) == ["nothing-to-compare"]


@pytest.mark.parametrize(
    ("listed", "tasks", "concerned", "said"),
    [
        ("b", "desk/b shop/b", "desk/b shop/b", "the id 'b' means 'desk/b', 'shop/b'"),
        ("desk/b", "b desk/b", "b desk/b", "the id 'desk/b' means 'b', 'desk/b'"),
        ("desk/b shop/b", "b", "b", "the task 'b' is meant by 'desk/b', 'shop/b'"),
        ("b shop/b", "shop/b", "shop/b", "the task 'shop/b' is meant by 'b', 'shop/b'"),
        ("b shop/b", "desk/b shop/b", "desk/b shop/b", "the task 'shop/b' is meant by 'b', 'shop/b'"),
        ("b shop/b", "b", "b", "the task 'b' is meant by 'b', 'shop/b'"),
        ("t/b desk/t/b", "desk/t/b", "desk/t/b", "the task 'desk/t/b' is meant by 'desk/t/b', 't/b'"),
    ],
)
def test_ids_and_tasks_that_are_not_one_to_one_are_refused(listed: str, tasks: str, concerned: str, said: str) -> None:
    each = {"desk/a": 1, **dict.fromkeys(tasks.split(), 2)}
    (refusal,) = found(cell(each, 4), cell(each, 4, NEW), evaluation=frozenset({"desk/a", *listed.split()}), attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.EVALUATION_CHANGED, tuple(concerned.split()))
    assert said in refusal.message
    assert "runs without a domain" in refusal.hint


def test_a_set_of_two_domains_is_not_judged_on_half_as_many_tasks_without_one() -> None:
    listed = frozenset(f"{domain}/e-{at}" for domain in ("airline", "retail") for at in range(8))
    bare = dict.fromkeys((f"e-{at}" for at in range(8)), 2)
    (refusal,) = found(cell(bare, 4), cell(bare, 4, NEW), evaluation=listed, attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.EVALUATION_CHANGED, tuple(sorted(bare)))
    assert "8 tasks of several ids" in refusal.message
    each = dict.fromkeys(listed, 2)
    assert found(cell(each, 4), cell(each, 4, NEW), evaluation=listed, attempts=4) == ()


def test_attempts_without_a_verdict_beside_a_whole_evaluation_are_not_passed_over() -> None:
    (beside,) = (one._replace(status="unknown") for one in attempts({"desk/a": 0}, 5, NEW)[4:])
    (refusal,) = found(INCUMBENT, new([*MADE, beside]), attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.ATTEMPTS_UNEQUAL, ("desk/a",))
    assert (
        "more than the 4 attempts asked for at 1 task ('desk/a'), 1 attempt without a verdict among" in refusal.message
    )
    assert f"tracemark retract TRACES --reason TEXT for what was no attempt ({beside.trace[:12]})" in refusal.hint
    assert refusal.traces == (beside.trace,)


def test_an_attempt_without_a_verdict_is_not_excused_by_another_run_of_its_number() -> None:
    again = MADE[0]._replace(status="unknown", trace="f" * 64)
    (refusal,) = found(INCUMBENT, new([*MADE, again]), attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.ATTEMPTS_DUPLICATE, (MADE[0].task,))
    assert "1 attempt without a verdict among them" in refusal.message
    assert refusal.traces == tuple(sorted((MADE[0].trace, again.trace)))
    assert again.trace[:12] in refusal.hint


def test_a_number_is_the_same_attempt_as_a_text_of_it() -> None:
    twice = new(changed(MADE, "desk/a", 1, attempt="0"))
    assert [(one.reason, one.tasks) for one in found(INCUMBENT, twice, attempts=4)] == [
        (Reason.ATTEMPTS_DUPLICATE, ("desk/a",))
    ]
    broken = MADE[0]._replace(status="error", attempt="0", trace="f" * 64)
    assert found(INCUMBENT, new([*MADE, broken]), attempts=4) == ()
    again = new([*changed(MADE, "desk/a", 0, status="error", attempt="0"), MADE[0]._replace(trace="f" * 64)])
    assert found(INCUMBENT, again, attempts=4) == ()


def test_attempts_that_agree_with_one_another_and_not_with_what_is_claimed_are_no_pair() -> None:
    claimed = BASE._replace(sampling="{}")
    both = (of(attempts(EACH, 4), OLD, claimed), of(MADE, NEW, claimed))
    assert reasons(*both) == ["not-the-pair", "not-the-pair"]


def test_a_task_that_the_candidate_alone_lacks_is_listed_to_be_run() -> None:
    less = new([one for one in MADE if one.task != "desk/b"])
    refused = {one.reason: one for one in found(INCUMBENT, less, attempts=4)}
    assert refused[Reason.ATTEMPTS_MISSING].rerun == tuple(Rerun("candidate", "desk/b", at, None) for at in range(4))


def test_a_half_is_not_compared_with_itself() -> None:
    # what it shares with itself, and lacks as it does, is no reason beside that
    assert reasons(INCUMBENT, INCUMBENT) == ["nothing-to-compare"]
    assert reasons(INCUMBENT, INCUMBENT, attempts=9, half=Half.MODEL) == ["nothing-to-compare"]
    assert "one model, desk-agent@base" in found(INCUMBENT, CANDIDATE, half=Half.MODEL)[0].message


def test_an_attempt_of_another_harness_is_named() -> None:
    strange = changed(MADE, "desk/b", 0, fingerprint=OLD)
    refusal, missing = found(INCUMBENT, new(changed(strange, "desk/b", 1, fingerprint=None)), attempts=4)
    assert refusal.reason is Reason.NOT_THE_PAIR
    assert refusal.tasks == ("desk/b",)
    assert f"1 under {OLD}" in refusal.message
    assert "1 under no harness" in refusal.message
    assert refusal.traces == tuple(sorted(MADE[at].trace for at in (4, 5)))
    assert refusal.traces[0][:12] in refusal.hint
    # they make up for nothing that is missing
    assert missing.rerun == tuple(Rerun("candidate", "desk/b", at, None) for at in (0, 1))


def test_an_attempt_of_another_model_is_named_by_what_differs() -> None:
    other = BASE._replace(sampling='{"temperature":0}', revision="b2")
    refusal, *_ = found(INCUMBENT, new(changed(MADE, "shop/a", 3, model=other)))
    assert refusal.reason is Reason.NOT_THE_PAIR
    assert "model revision differs in 1; sampling differs in 1" in refusal.message
    assert refusal.traces == (MADE[-1].trace,)
    assert MADE[-1].trace[:12] in refusal.hint


def test_what_the_pair_does_not_claim_must_be_one_in_all_attempts() -> None:
    claim = Pair(NEW, Model("desk-agent", "base"))
    assert reasons(INCUMBENT, Cell.of(claim, MADE)) == []
    mixed = changed(MADE, "shop/a", 3, model=BASE._replace(tokenizer="tok-2"))
    refusal, *_ = found(INCUMBENT, Cell.of(claim, mixed))
    assert "tokenizer differs in 1" in refusal.message


@pytest.mark.parametrize(
    "stray",
    [
        {"fingerprint": OLD},
        {"fingerprint": None},
        {"model": TUNED},
        {"model": TUNED, "fingerprint": OLD, "grader": ("other", "1")},
        {"model": TUNED, "status": "error"},
        {"model": TUNED, "status": "unknown", "attempt": 0},
        {"fingerprint": None, "task": "shop/z"},
    ],
)
def test_attempts_of_another_pair_beside_a_whole_evaluation_stand_against_nothing_else(stray: dict[str, Any]) -> None:
    beside = [MADE[at]._replace(**{"trace": f"{at:064}", "attempt": 9, **stray}) for at in (0, 5)]
    refusals = found(INCUMBENT, new([*MADE, *beside]))
    assert {refusal.reason for refusal in refusals} == {Reason.NOT_THE_PAIR}
    assert {trace for refusal in refusals for trace in refusal.traces} == {f"{at:064}" for at in (0, 5)}
    assert not any(refusal.rerun for refusal in refusals)


def test_attempts_of_the_other_pair_of_a_comparison_are_no_copies_of_it() -> None:
    # a name alone means the revision of the other side as well
    old, tuned = attempts(EACH, 4), attempts(EACH, 4, OLD, TUNED)
    cells = Cell.of(Pair(OLD, BASE), [*old, *tuned]), Cell.of(Pair(OLD, TUNED), tuned)
    assert reasons(*cells, half=Half.MODEL) == ["not-the-pair"]


def test_where_a_name_alone_means_two_revisions_the_way_out_is_to_name_one() -> None:
    several = changed(MADE, "shop/a", 3, model=BASE._replace(revision="b2"))
    refusal, *_ = found(INCUMBENT, Cell.of(Pair(NEW, Model("desk-agent")), several))
    assert refusal.hint.startswith("name the revision that is meant, desk-agent@REVISION; or leave these traces out")
    refusal, *_ = found(INCUMBENT, Cell.of(Pair(NEW, Model("desk-agent", "base")), several))
    assert refusal.hint.startswith("leave these traces out")


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("name", "model name"),
        ("revision", "model revision"),
        ("chat_template", "chat template"),
        ("tokenizer", "tokenizer"),
        ("server", "server parser"),
        ("sampling", "sampling"),
    ],
)
def test_a_harness_is_not_judged_under_two_models(member: str, said: str) -> None:
    other = BASE._replace(**{member: "x"})
    (refusal,) = found(INCUMBENT, cell(EACH, 4, NEW, other))
    assert refusal.reason is Reason.CONFOUNDED
    assert refusal.message.endswith(f"{said} {getattr(BASE, member)!r} against 'x'")


def test_what_only_one_model_states_differs() -> None:
    (refusal,) = found(INCUMBENT, cell(EACH, 4, NEW, BASE._replace(tokenizer=None)))
    assert refusal.message.endswith("tokenizer 'tok-1' against unrecorded")


def test_a_model_is_not_judged_under_two_harnesses() -> None:
    (refusal,) = found(INCUMBENT, cell(EACH, 4, NEW, TUNED), half=Half.MODEL)
    assert refusal.reason is Reason.CONFOUNDED
    assert refusal.message.endswith("differ: prompt_templates")
    # one of the two is not at hand, or neither
    unknown = Cell.of(Pair(NEW, TUNED), attempts(EACH, 4, NEW, TUNED))
    bare = Cell.of(Pair(OLD, BASE), attempts(EACH, 4))
    assert found(bare, unknown, half=Half.MODEL)[0].message.endswith("which components is not known")
    assert found(INCUMBENT, unknown, half=Half.MODEL)[0].message.endswith("which components is not known")


def test_a_model_may_differ_in_several_members() -> None:
    assert reasons(INCUMBENT, cell(EACH, 4, OLD, TUNED._replace(sampling="{}")), half=Half.MODEL) == []


def test_a_task_of_the_same_name_in_another_domain_is_another_task() -> None:
    moved = cell({"desk/a": 1, "desk/b": 2, "hotel/a": 3}, 4, NEW)
    refused = {refusal.reason: refusal for refusal in found(INCUMBENT, moved)}
    assert list(refused) == [Reason.TASKS_DIFFER, Reason.ATTEMPTS_MISSING]
    assert refused[Reason.TASKS_DIFFER].tasks == ("hotel/a", "shop/a")
    assert refused[Reason.TASKS_DIFFER].message.endswith(
        "not in the incumbent's 1 task: 'hotel/a'; not in the candidate's 1 task: 'shop/a'"
    )


def test_a_task_outside_the_evaluation_set_is_named() -> None:
    (refusal,) = found(evaluation=frozenset({"desk/a", "shop/a"}), attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.TASKS_DIFFER, ("desk/b",))


def test_an_id_of_the_evaluation_set_that_nobody_attempted_is_missing_in_both() -> None:
    refused = found(evaluation=frozenset({"desk/a", "shop/a", "desk/b", "desk/c"}), attempts=4)
    assert [(one.reason, one.tasks) for one in refused] == [(Reason.ATTEMPTS_MISSING, ("desk/c",))] * 2
    assert refused[1].rerun == tuple(Rerun("candidate", "desk/c", at, None) for at in range(4))


def test_missing_attempts_are_listed_by_number() -> None:
    gone = [one for one in MADE if (one.task, one.attempt) not in {("desk/a", 1), ("desk/a", 3)}]
    (refusal,) = found(INCUMBENT, new(gone), attempts=4)
    assert refusal.reason is Reason.ATTEMPTS_MISSING
    assert refusal.rerun == (Rerun("candidate", "desk/a", 1, None), Rerun("candidate", "desk/a", 3, None))
    assert "lacks 2 attempts at 1 task ('desk/a'), where each task must have 4" in refusal.message


def test_an_attempt_without_a_verdict_waits_for_it_and_is_not_run_again() -> None:
    made = changed(MADE, "desk/a", 2, status="unknown")
    (trace,) = (one.trace for one in made if one.status == "unknown")
    (refusal,) = found(INCUMBENT, new(made), attempts=4)
    assert (refusal.reason, refusal.tasks) == (Reason.ATTEMPTS_MISSING, ("desk/a",))
    assert "has no verdict on 1 attempt at 1 task ('desk/a'), where each task must have 4" in refusal.message
    assert refusal.hint == f"have judged what has no verdict ({trace[:12]})"
    assert (refusal.rerun, refusal.traces) == ((), (trace,))
    less = [one for one in made if (one.task, one.attempt) != ("desk/b", 1)]
    (refusal,) = found(INCUMBENT, new(less), attempts=4)
    assert refusal.tasks == ("desk/a", "desk/b")
    assert refusal.hint.endswith("and run what the re-run list names")
    assert refusal.rerun == (Rerun("candidate", "desk/b", 1, None),)


def test_unequal_attempts_are_refused_and_never_cut_to_the_fewest() -> None:
    gone = [one for one in MADE if (one.task, one.attempt) != ("desk/a", 1)]
    assert reasons(INCUMBENT, new(gone)) == ["attempts-missing"]
    assert reasons(INCUMBENT, cell(EACH, 8, NEW)) == ["attempts-unequal"]
    assert reasons(INCUMBENT, cell(EACH, 8, NEW), attempts=8) == ["attempts-missing"]


def test_one_attempt_twice_is_refused() -> None:
    copy = MADE[0]._replace(trace="e" * 64)
    assert reasons(INCUMBENT, new([*MADE, copy]), attempts=4) == ["attempts-duplicate"]
    # in the place of another one, too, so that numbers alone look right
    swapped = changed(MADE, "desk/a", 1, attempt=0)
    (refusal,) = found(INCUMBENT, new(swapped))
    assert (refusal.reason, refusal.tasks) == (Reason.ATTEMPTS_DUPLICATE, ("desk/a",))


def test_one_trace_in_both_cells_is_refused() -> None:
    shared = INCUMBENT.attempts[0]
    both = [shared._replace(fingerprint=NEW), *MADE[1:]]
    (refusal,) = found(INCUMBENT, new(both))
    assert (refusal.reason, refusal.tasks) == (Reason.ATTEMPTS_DUPLICATE, ("desk/a",))


def test_one_trace_twice_in_a_cell_is_refused() -> None:
    made = [one._replace(attempt=None) for one in MADE]
    (refusal,) = found(INCUMBENT, new([*made[1:], made[1]]))
    assert refusal.reason is Reason.ATTEMPTS_DUPLICATE


def test_errors_above_the_limit_are_refused_with_what_to_run_again() -> None:
    broken = changed(MADE, "desk/a", 3, status="error")
    (refusal,) = found(INCUMBENT, new(broken))
    assert refusal.reason is Reason.INFRASTRUCTURE_ERRORS
    (trace,) = [one.trace for one in broken if one.status == "error"]
    assert refusal.rerun == (Rerun("candidate", "desk/a", 3, trace),)
    assert "ended 1 attempt of 12 of the candidate, not re-run, where 0.0% may be so" in refusal.message
    assert reasons(INCUMBENT, new(broken), infrastructure_limit=0.05) == ["infrastructure-errors"]
    assert reasons(INCUMBENT, new(broken), infrastructure_limit=0.1) == []
    three = [one._replace(status="error") if one.attempt == 0 else one for one in MADE]
    assert reasons(INCUMBENT, new(three), infrastructure_limit=0.25) == []
    assert reasons(INCUMBENT, new(three), infrastructure_limit=0.24) == ["infrastructure-errors"]


@pytest.mark.parametrize(("tasks", "number"), [(50, 1), (25, 4), (100, 3), (100, 1)])
def test_as_many_errors_as_the_limit_says_in_writing_are_let_through_and_no_more(tasks: int, number: int) -> None:
    each = dict.fromkeys((f"desk/{at:03}" for at in range(tasks)), number)
    made, every = attempts(each, number, NEW), tasks * number
    for count in (*range(1, every, 7), every - 1, 29):
        broken = new([one._replace(status="error") if at < count else one for at, one in enumerate(made)])
        cells = {"incumbent": cell(each, number), "candidate": broken}
        limit = count / every
        if Decimal(str(limit)) * every != count:
            continue
        for told, refused in ((limit, []), (limit - 0.001, ["infrastructure-errors"])):
            terms = Terms(Half.HARNESS, attempts=number, infrastructure_limit=told)
            assert [one.reason for one in coverage_refusals(cells, terms)] == refused, (count, told)


def test_an_error_that_was_run_again_is_no_refusal() -> None:
    again = [*MADE, MADE[0]._replace(trace="e" * 64, status="error")]
    assert reasons(INCUMBENT, new(again)) == []


def test_one_error_at_every_task_is_not_taken_for_fewer_attempts() -> None:
    broken = [one._replace(status="error") if one.attempt == 0 else one for one in MADE]
    older = [one._replace(status="error") if one.attempt == 0 else one for one in attempts(EACH, 4)]
    assert reasons(of(older), new(broken)) == ["infrastructure-errors", "infrastructure-errors"]
    assert reasons(of(older), new([one._replace(status="error") for one in MADE]))[-1] == "infrastructure-errors"


def test_graders_are_compared_by_name_and_version_task_by_task() -> None:
    judged = changed(MADE, "desk/a", 0, grader=("desk-checks", "4"))
    (refusal,) = found(INCUMBENT, new(judged))
    assert (refusal.reason, refusal.tasks) == (Reason.GRADERS_DIFFER, ("desk/a",))
    assert "'desk-checks' 3, 'desk-checks' 4" in refusal.message
    assert refusal.traces == (judged[0].trace,)
    assert "retract those alone that 'desk-checks' 3 did not judge" in refusal.hint
    assert refusal.hint.endswith(f"({judged[0].trace[:12]})")
    half = [one._replace(grader=("desk-checks", "4")) for one in MADE]
    (refusal,) = found(INCUMBENT, new(half))
    assert refusal.traces == tuple(sorted(one.trace for one in (*INCUMBENT.attempts, *half)))
    assert "did not judge" not in refusal.hint
    assert reasons(INCUMBENT, new(changed(MADE, "desk/a", 0, grader=None))) == ["graders-differ"]
    assert reasons(INCUMBENT, new(changed(MADE, "desk/a", 0, grader=(GRADER[0], None)))) == ["graders-differ"]
    # what has no score was judged by nobody
    broken = changed(MADE, "desk/a", 0, grader=None, status="error")
    assert reasons(INCUMBENT, new(broken), infrastructure_limit=0.1) == []
    # each task may have a grader of its own
    both = [[one._replace(grader=(one.task, "1")) for one in made] for made in (attempts(EACH, 4), MADE)]
    assert reasons(of(both[0]), new(both[1])) == []


def test_a_changed_evaluation_set_and_a_leak_are_refused() -> None:
    assert reasons(evaluation_digest="1" * 64, frozen_digest="2" * 64) == ["evaluation-changed"]
    assert reasons(evaluation_digest="1" * 64, frozen_digest="1" * 64) == []
    assert reasons(evaluation_digest="1" * 64) == []
    (refusal,) = found(evaluation_digest="1" * 64, frozen_digest="2" * 64)
    assert refusal.message == f"the evaluation set has digest {'1' * 12}, and was frozen as {'2' * 12}"
    (refusal,) = found(evaluation_digest="1" * 64, frozen_digest="2" * 64, changed="1 taken out: 'desk/c'")
    assert refusal.message == "1 taken out: 'desk/c'"
    (refusal,) = found(frozen_digest="2" * 64)
    assert refusal.message == f"the evaluation set is empty, and was frozen as {'2' * 12}"
    assert refusal.hint.startswith("undo the change, or list another set and freeze that")
    (refusal,) = found(leaked={"exports/sft": ("desk/b", "desk/a")})
    assert (refusal.reason, refusal.tasks) == (Reason.EVALUATION_LEAKED, ("desk/a", "desk/b"))
    assert refusal.message.startswith("the training export 'exports/sft' holds 2 tasks")
    # an export on record counts for ever, so making it anew is no way out
    assert refusal.hint.startswith("take them out of the set and freeze it anew")


def test_everything_that_applies_is_listed_in_the_order_of_the_reasons() -> None:
    made = changed(attempts({"desk/a": 1, "desk/c": 1}, 4, NEW, TUNED), "desk/a", 0, status="error")
    made = changed(made, "desk/a", 1, attempt=2, grader=None)
    made = changed(made, "desk/c", 3, fingerprint=OLD)
    refused = reasons(
        INCUMBENT, of(made, NEW, TUNED), attempts=5, evaluation_digest="1" * 64, frozen_digest="2" * 64,
        leaked={"exports/sft": ("desk/a",)},
    )  # fmt: skip
    assert list(dict.fromkeys(refused)) == [
        reason.value for reason in Reason if reason not in {Reason.NOTHING_TO_COMPARE, Reason.ATTEMPTS_UNEQUAL}
    ]


def test_every_refusal_says_what_next() -> None:
    for refusal in found(INCUMBENT, new(MADE[:-1]), leaked={"x": ("desk/a",)}):
        assert refusal.hint
        assert "\n" not in refusal.message


def test_names_from_outside_are_quoted_and_few() -> None:
    assert named([f"t{number}" for number in range(8)]) == "'t0', 't1', 't2', 't3', 't4' and 3 more"
    assert named(["a\x1b[2J\n"]) == r"'a\x1b[2J\n'"


def test_tasks_and_traces_are_named_in_order_and_by_their_first_few() -> None:
    assert named(["c", "a", "b"]) == "'a', 'b', 'c'"
    assert named([f"t-{number}" for number in reversed(range(7))]) == "'t-0', 't-1', 't-2', 't-3', 't-4' and 2 more"
    ids = [character * 64 for character in "fedcba9"]
    assert digits(ids[:2]) == f"{'e' * 12}, {'f' * 12}"
    assert digits(ids) == f"{', '.join(one * 12 for one in '9abcd')} and 2 more"
