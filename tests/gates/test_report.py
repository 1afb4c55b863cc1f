"""The stored report holds all that a decision rests on, and its words put first what matters most."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.gates.evaluations import BASE, NEW, OLD, PARTS, TUNED, attempts, cell, changed, of
from tracemark import digest
from tracemark.gates.attribution import Four, attribute
from tracemark.gates.cell import Attempt, Cell, Pair, Shown
from tracemark.gates.compare import compare
from tracemark.gates.report import attributed, attribution_words, digest_of, stored, words
from tracemark.gates.terms import Conditions, Half, Policy, Terms
from tracemark.model.attribution import AttributionReport
from tracemark.model.gate import GateReport, MeasuredOf
from tracemark.stats.cost import SCOPE

BEFORE = {f"desk/{at:02}": 2 for at in range(12)}
AFTER = {task: 3 if at < 9 else 1 if at < 10 else 2 for at, task in enumerate(BEFORE)}


def report(candidate: Cell | None = None, **terms: Any) -> GateReport:
    told = Terms(**{"half": Half.HARNESS, "attempts": 4, **terms})
    return stored(compare(cell(BEFORE, 4), candidate or cell(AFTER, 4, NEW), told))


def refused() -> GateReport:
    return report(of(changed(attempts(AFTER, 4, NEW), "desk/03", 2, status="error"), NEW))


def test_a_report_holds_what_the_decision_rests_on() -> None:
    found = report(candidates=3)
    assert found.measured is not None
    said = found.measured
    assert (found.verdict, found.half, found.policy, found.candidates) == ("accept", "harness", "significant", 3)
    assert (said.w, said.l, said.ties, said.n, said.attempts) == (9, 1, 2, 12, 4)
    assert [one.task for one in said.ups] == [f"desk/{at:02}" for at in range(9)]
    assert (said.downs[0].task, said.downs[0].before, said.downs[0].after) == ("desk/09", 2, 1)
    assert said.policies["significant"].accepts
    assert said.policies["cotrace"].accepts
    assert (said.incumbent.cost_per_success.value, said.candidate.cost_per_success.value) == (1.0, 0.75)
    assert len(said.candidate.reliability) == 4
    assert found.incumbent.harness == OLD
    assert found.candidate.model.revision == BASE.revision
    assert found.candidate.graders == ["desk-checks 3"]
    assert found.candidate.evidence == {"recorded": 48}
    assert len(found.candidate.traces) == 48
    assert found.candidate.digest == digest.of(found.candidate.traces)


def test_what_costs_cover_stands_beside_them_in_the_stored_report() -> None:
    measured = report().model_dump(mode="json")["measured"]
    assert all(measured[side]["cost_per_success"]["value"] for side in ("incumbent", "candidate"))
    assert measured["cost_scope"] == SCOPE


HAND = {"t/a": 2, "t/b": 1, "t/c": 0}
"""Three tasks, two attempts each."""


def by_hand(after: dict[str, int], **terms: Any) -> MeasuredOf:
    """Return what a report says of three tasks, two attempts each at half a dollar."""
    made = compare(cell(HAND, 2), cell(after, 2, NEW), Terms(Half.HARNESS, 2, **terms))
    found = stored(made).measured
    assert found is not None
    return found


def test_the_numbers_of_a_small_report_are_those_of_paper_and_pencil() -> None:
    said = by_hand({"t/a": 1, "t/b": 2, "t/c": 2})
    # b and c went up, a went down
    assert (said.n, said.w, said.l, said.ties) == (3, 2, 1, 0)
    assert [(one.task, one.before, one.after) for one in said.ups] == [("t/b", 1, 2), ("t/c", 0, 2)]
    assert [(one.task, one.before, one.after) for one in said.downs] == [("t/a", 2, 1)]
    # two or three heads of three: (3 + 1) of 8
    assert said.p == 4 / 8
    # only b is not settled: two draws of two coins differ in 10 of 16 cases, up in 5 of them
    assert (said.noise.tasks, said.noise.promoted, said.inside_noise) == (1, 5 / 16, True)
    before, after = said.incumbent, said.candidate
    assert (before.attempts, before.successes, before.score) == (6, 3, 3 / 2)
    assert (after.attempts, after.successes, after.score) == (6, 5, 5 / 2)
    # pass^1: (2/2 + 1/2 + 0) / 3; pass^2: by pairs (1 + 0 + 0) / 3, by powers (1 + 1/4 + 0) / 3
    assert [(one.k, one.combinations, one.power) for one in before.reliability] == [
        (1, pytest.approx(1 / 2), pytest.approx(1 / 2)),
        (2, pytest.approx(1 / 3), pytest.approx(5 / 12)),
    ]
    # (1/2 + 1 + 1) / 3; (0 + 1 + 1) / 3, (1/4 + 1 + 1) / 3
    assert [(one.k, one.combinations, one.power) for one in after.reliability] == [
        (1, pytest.approx(5 / 6), pytest.approx(5 / 6)),
        (2, pytest.approx(2 / 3), pytest.approx(3 / 4)),
    ]
    assert (before.reliable, after.reliable) == (1, 2)
    # six attempts at half a dollar are three dollars
    assert (before.cost.value, after.cost.value) == (3.0, 3.0)
    assert (before.cost_per_success.value, after.cost_per_success.value) == (3 / 3, 3 / 5)
    assert (before.cost_per_reliable_task.value, after.cost_per_reliable_task.value) == (3 / 1, 3 / 2)
    assert {name: one.accepts for name, one in said.policies.items()} == {"significant": False, "cotrace": True}


def test_all_ties_are_no_evidence_and_a_clean_one_passes_cotrace_alone() -> None:
    said = by_hand(HAND)
    assert (said.w, said.l, said.ties) == (0, 0, 3)
    # nothing moved: any outcome is as good as this
    assert (said.p, said.inside_noise, said.clean) == (1.0, True, True)
    assert {name: one.accepts for name, one in said.policies.items()} == {"significant": False, "cotrace": True}


def test_without_a_success_costs_over_successes_are_withheld_with_the_reason() -> None:
    said = by_hand(dict.fromkeys(HAND, 0), conditions=Conditions(cost=True))
    # a and b went down: at least no head of two
    assert (said.w, said.l, said.ties, said.p) == (0, 2, 1, 1.0)
    figures = said.candidate
    assert (figures.successes, figures.score, figures.reliable) == (0, 0.0, 0)
    assert {(one.combinations, one.power) for one in figures.reliability} == {(0.0, 0.0)}
    assert (figures.cost.value, figures.cost.withheld) == (3.0, None)
    assert figures.cost_per_success.value is figures.cost_per_reliable_task.value is None
    assert figures.cost_per_success.withheld == "no attempt succeeded: the cost per success is undefined"
    assert figures.cost_per_reliable_task.withheld is not None
    assert figures.cost_per_reliable_task.withheld.startswith("no task succeeded in all attempts")
    (condition,) = said.conditions
    assert (condition.name, condition.met) == ("cost", False)
    assert "not defined" in condition.reason


def test_an_attempt_that_waits_for_its_rerun_counts_against_the_candidate_on_either_side() -> None:
    def made(side: str) -> MeasuredOf:
        sides = attempts(HAND, 2), attempts({"t/a": 2, "t/b": 2, "t/c": 0}, 2, NEW)
        old, new = (
            changed(one, "t/b", 1, status="error") if name == side else one
            for name, one in zip(("incumbent", "candidate"), sides, strict=True)
        )
        found = stored(compare(of(old), of(new, NEW), Terms(Half.HARNESS, 2, infrastructure_limit=0.5))).measured
        assert found is not None
        return found

    # b: 1 to 2; the candidate's second attempt as a failure makes it 1 to 1, the incumbent's as a success 2 to 2
    whole, new, old = made("neither"), made("candidate"), made("incumbent")
    assert [(one.w, one.l, one.ties) for one in (whole, new, old)] == [(1, 0, 2), (0, 0, 3), (0, 0, 3)]
    assert (new.candidate.successes, new.candidate.open_errors, new.clean) == (3, 1, False)
    assert (old.incumbent.successes, old.incumbent.open_errors, old.clean) == (4, 1, True)
    # what such an attempt cost is counted too
    assert new.candidate.cost.value == old.incumbent.cost.value == 3.0
    assert [new.policies["cotrace"].accepts, old.policies["cotrace"].accepts] == [False, True]


def test_a_report_read_back_is_the_same() -> None:
    for found in (report(conditions=Conditions(cost=True, reliability=9)), refused()):
        written = digest.canonical(found.model_dump(mode="json"))
        back = TypeAdapter(GateReport).validate_python(digest.load_canonical(written))
        assert back == found
        assert digest_of(back) == digest_of(found) == digest.sha256(written)
        assert words(back) == words(found)


def test_the_order_of_traces_changes_no_report() -> None:
    assert digest_of(report(of(reversed(attempts(AFTER, 4, NEW)), NEW))) == digest_of(report())


def test_the_first_line_says_the_verdict_and_the_noise() -> None:
    assert words(report(), {NEW: "desk-better"})[0] == (
        "accept harness desk-better against tm1:aaaaaaaaaaaa with desk-agent@base: 9 up, 1 down of 12 tasks at 4 "
        "attempts each, p = 0.01074; the difference of 8 is beyond the noise floor of 6"
    )
    same = words(report(cell(BEFORE, 4, NEW)))[0]
    assert same.startswith("reject harness")
    assert same.endswith("the difference of 0 lies inside the noise floor of 6")


def against_noise(before: dict[str, int], after: dict[str, int], number: int) -> str:
    """Return what the first line says of the noise."""
    found = stored(compare(cell(before, number), cell(after, number, NEW), Terms(Half.HARNESS, number)))
    return words(found)[0].partition("; ")[2]


def test_without_a_noise_floor_the_first_line_says_why() -> None:
    one = stored(compare(cell({"a": 0}, 1), cell({"a": 1}, 1, NEW), Terms(Half.HARNESS, 1)))
    why = "there is no noise floor: one attempt a task shows no rate between 0 and 1, and so nothing of the noise"
    assert words(one)[0].endswith(f": 1 up, 0 down of 1 task at 1 attempt each, p = 0.5; {why}")
    assert against_noise({"a": 0, "b": 1}, {"a": 0, "b": 1}, 1) == why


def test_where_no_noise_was_seen_nothing_is_said_to_be_beyond_it() -> None:
    settled = {f"desk/{number}": 4 * (number % 2) for number in range(6)}
    solved = dict.fromkeys(settled, 4)
    unseen = "whether the difference of 3 is beyond the noise is not known, since no noise was seen"
    assert against_noise(settled, solved, 4) == against_noise(solved, settled, 4) == unseen
    assert against_noise(settled, settled, 4) == "there is no difference, and no noise was seen"


def test_a_difference_lies_inside_the_noise_floor_at_its_edge_or_beyond() -> None:
    # of 12 tasks at half their attempts the floor is 6
    six, seven = ({task: 3 if at < up else 2 for at, task in enumerate(BEFORE)} for up in (6, 7))
    assert against_noise(BEFORE, BEFORE, 4) == "the difference of 0 lies inside the noise floor of 6"
    assert against_noise(BEFORE, six, 4) == "the difference of 6 lies inside the noise floor of 6, just at its edge"
    assert against_noise(BEFORE, seven, 4) == "the difference of 7 is beyond the noise floor of 6"


def again(before: dict[str, int], installed: list[Attempt]) -> GateReport:
    """Return the report on an incumbent that was evaluated before, when it was installed."""
    incumbent = Cell.of(Pair(OLD, BASE), attempts(before, 4), PARTS[OLD], installed=installed)
    return stored(compare(incumbent, cell(AFTER, 4, NEW), Terms(Half.HARNESS, attempts=4)))


def first(successes: dict[str, int], number: int = 4, **changes: Any) -> list[Attempt]:
    """Return the evaluation that installed the incumbent."""
    return [one._replace(trace=digest.of([one.trace]), **changes) for one in attempts(successes, number)]


def test_what_two_evaluations_of_the_incumbent_differ_by_stands_beside_the_noise_floor() -> None:
    installed = first({**BEFORE, "desk/00": 3, "desk/01": 3, "desk/02": 1, "desk/03": 4})
    found = again(BEFORE, installed)
    assert found.measured is not None
    seen = found.measured.noise.repeated
    assert seen is not None
    assert (seen.difference, seen.moved) == (2, 4)
    assert seen.digest == digest.of(sorted(one.trace for one in installed))
    said = "the evaluation that installed the incumbent and this one differ by {} ({}), with the same harness and model"
    assert said.format(2, "4 tasks moved") + ": within the noise floor of 6" in words(found)
    every = again(BEFORE, first(dict.fromkeys(BEFORE, 4)))
    assert said.format(12, "12 tasks moved") + ": more than the noise floor of 6" in words(every)
    # nothing of it decides, and reports without it are what they were
    assert found.verdict == every.verdict == report().verdict
    assert "repeated" not in report().model_dump(mode="json")["measured"]["noise"]
    assert GateReport.model_validate(found.model_dump(mode="json")) == found


@pytest.mark.parametrize(
    "installed",
    [
        [],
        first(BEFORE, 3),
        first(BEFORE)[1:],
        first(BEFORE, grader=("desk-checks", "4")),
        first(BEFORE, model=TUNED),
        changed(first(BEFORE), "desk/03", 3, status="error"),
        [*first(BEFORE), first(BEFORE)[0]._replace(trace="f" * 64, attempt=9, status="unknown")],
    ],
    ids=["none", "fewer", "one-lacks", "other-grader", "other-model", "open", "unjudged"],
)
def test_evaluations_that_are_not_whole_or_were_judged_otherwise_show_no_noise(installed: list[Attempt]) -> None:
    found = again(BEFORE, installed)
    assert found.measured is not None
    assert found.measured.noise.repeated is None
    assert words(found) == words(again(BEFORE, []))


def test_how_often_chance_accepts_is_that_of_the_policy_which_decides() -> None:
    def line(found: GateReport) -> str:
        (said,) = (line for line in words(found) if "candidates were evaluated" in line)
        return said.partition("; ")[2]

    # a task at one of two attempts goes up with 5/16, and stays with 6/16: cotrace lets a tie pass as well
    one = cell({"a": 1}, 2), cell({"a": 1}, 2, NEW)
    told = stored(compare(*one, Terms(Half.HARNESS, 2, Policy.COTRACE, candidates=2)))
    assert told.measured is not None
    assert told.measured.noise.promoted == 5 / 16
    chance = f"{1 - (5 / 16) ** 2:.0%}"
    assert line(told) == f"were each no better, one or more would pass in up to {chance} of such series"
    # 1 - 0.95²
    told = stored(compare(*one, Terms(Half.HARNESS, 2, candidates=2)))
    assert line(told) == "were each no better, one or more would pass in up to 10% of such series"
    # nothing was seen of the noise, so nothing is known of chance
    settled = cell({"a": 2}, 2), cell({"a": 2}, 2, NEW)
    assert line(stored(compare(*settled, Terms(Half.HARNESS, 2, Policy.COTRACE, candidates=2)))) == ""
    assert (
        line(
            stored(
                compare(cell({"a": 1}, 1), cell({"a": 1}, 1, NEW), Terms(Half.HARNESS, 1, Policy.COTRACE, candidates=2))
            )
        )
        == ""
    )


def test_a_refusal_is_no_decision_and_names_what_to_run_again() -> None:
    found = refused()
    assert (found.verdict, found.measured) == ("refused", None)
    assert "measured" not in found.model_dump(mode="json")
    assert found.refusals[0].rerun[0].task == "desk/03"
    assert words(found)[0].startswith("no decision on harness tm1:bbbb")
    assert words(found)[0].endswith(": infrastructure-errors")
    assert words(found)[1].startswith(
        "infrastructure-errors: the infrastructure ended 1 attempt of 48 of the candidate"
    )


def test_the_policy_that_decides_is_told_first() -> None:
    for policy in Policy:
        lines = words(report(policy=policy))
        assert lines[1].startswith(f"{policy.value}: ")
        assert "(does not decide)" in lines[2]


def test_words_tell_both_policies_and_every_condition() -> None:
    lines = words(report(policy=Policy.COTRACE, conditions=Conditions(no_regression=("desk/09",))))
    assert lines[0].startswith("reject harness")
    assert "significant (does not decide): accept, 9 up, 1 down: p = 0.01074 is at most 0.05" in lines
    assert "cotrace: accept, 9 up is more than 1 down" in lines
    assert "condition no-regression: not met, the score went down at 'desk/09'" in lines


def test_words_tell_what_weakens_the_answer() -> None:
    used = frozenset(one.trace for one in cell(BEFORE, 4).attempts)
    lines = "\n".join(words(report(used=used, candidates=5, evaluation=frozenset(BEFORE))))
    assert "48 of 48 traces of the incumbent are those that installed it" in lines
    assert "5 candidates were evaluated on this set so far" in lines
    assert "one or more would pass in up to 23% of such series" in lines
    assert "what differs between the pairs: prompt_templates" in lines
    quiet = "\n".join(words(report()))
    assert "candidates were evaluated" not in quiet


def test_the_first_line_and_the_notes_say_which_side_rests_on_what_installed_it() -> None:
    old, new = (frozenset(one.trace for one in side.attempts) for side in (cell(BEFORE, 4), cell(AFTER, 4, NEW)))
    plain = words(report())[0]
    for used, flag in (
        (old, "the evaluation of the incumbent is one that installed it"),
        (new, "the evaluation of the candidate is one that installed it"),
        (old | new, "the evaluation of the incumbent and that of the candidate are ones that installed them"),
    ):
        made = report(used=used)
        assert words(made)[0] == f"{plain}; {flag}"
        assert (made.reused, made.candidate.reused) == (sorted(old & used), sorted(new & used) or None)
        # the incumbent's stand in the report alone, as they always did
        assert "reused" not in made.model_dump(mode="json")["incumbent"]
        assert sum("are those that installed it" in line for line in words(made)) == len(used) // 48
    # an empty list would be another digest than that of a report of before
    assert not {"reused", "retracted"} & report().model_dump(mode="json")["candidate"].keys()


def retracted(*statuses: str, replaced: int = 0) -> list[str]:
    """Return what a report says of retracted attempts, of which so many are at a task that others are at as well."""
    gone = [
        one._replace(status=status, task="desk/00" if at < replaced else "desk/gone", trace=digest.of([status, at]))
        for at, status in enumerate(statuses)
        for one in attempts({"desk/00": 0}, 1, NEW)
    ]
    made = stored(
        compare(
            cell(BEFORE, 4),
            Cell.of(cell(AFTER, 4, NEW).pair, attempts(AFTER, 4, NEW), retracted=gone),
            Terms(Half.HARNESS, 4),
        )
    )
    return [line for line in words(made) if "retracted" in line]


def test_words_say_how_what_was_retracted_had_ended_and_whether_others_stand_in_its_place() -> None:
    assert retracted() == []
    assert retracted("failure") == ["1 attempt of the candidate was retracted (1 failure)"]
    assert retracted("failure", "failure", replaced=2) == [
        "2 attempts of the candidate were retracted (2 failures) and others stand in their place"
    ]
    (said,) = retracted("success", "failure", "error", "unknown", "unknown", replaced=1)
    assert said.endswith("(1 success, 1 failure, 1 error, 2 without a verdict) and others stand in the place of 1")


def test_a_noise_floor_of_none_but_settled_tasks_is_not_told_as_a_fact() -> None:
    settled = {task: 4 * (number % 2) for number, task in enumerate(BEFORE)}
    lines = words(stored(compare(cell(settled, 4), cell(AFTER, 4, NEW), Terms(Half.HARNESS, 4))))
    assert not any("identical candidate" in line for line in lines)
    assert any("too little was seen of the noise" in line for line in lines)
    assert not any("too little was seen" in line for line in words(report()))


def test_attempts_that_wait_for_a_rerun_are_told_with_what_they_count_as() -> None:
    broken = [
        one._replace(status="error") if (one.task, one.attempt) == ("desk/00", 0) else one
        for one in cell(AFTER, 4, NEW).attempts
    ]
    terms = Terms(Half.HARNESS, 4, infrastructure_limit=0.1)
    lines = words(stored(compare(cell(BEFORE, 4), of(broken, NEW), terms)))
    said = "the infrastructure ended 1 attempt of the candidate, not re-run: each counts against the candidate"
    assert said in lines
    assert said not in words(report())


def test_graders_of_unrecorded_version_are_told() -> None:
    grader = ("desk-checks", None)
    made = stored(compare(cell(BEFORE, 4, grader=grader), cell(AFTER, 4, NEW, grader=grader), Terms(Half.HARNESS, 4)))
    assert any("unrecorded version" in line for line in words(made))


def test_what_is_recorded_of_neither_model_is_told() -> None:
    bare = BASE._replace(tokenizer=None, server=None)
    made = stored(compare(cell(BEFORE, 4, OLD, bare), cell(AFTER, 4, NEW, bare), Terms(Half.HARNESS, 4)))
    assert any(line.endswith("is not known: tokenizer, server parser") for line in words(made))
    assert not any("neither model" in line for line in words(report()))


def test_attempts_that_nobody_is_recorded_to_have_judged_are_told_on_either_side() -> None:
    judged = "nobody is recorded to have judged attempts {}: they count as judged by one grader that nobody knows"
    bare = stored(compare(cell(BEFORE, 4, grader=None), cell(AFTER, 4, NEW, grader=None), Terms(Half.HARNESS, 4)))
    assert judged.format("of the incumbent, of the candidate") in words(bare)
    # at one task of each, where the grader of the others is recorded
    both = [
        [one._replace(grader=None) if one.task == "desk/00" else one for one in made]
        for made in (attempts(BEFORE, 4), attempts(AFTER, 4, NEW))
    ]
    assert judged.format("of the incumbent, of the candidate") in words(
        stored(compare(of(both[0]), of(both[1], NEW), Terms(Half.HARNESS, 4)))
    )
    # what has no score was judged by nobody
    broken = changed(attempts(AFTER, 4, NEW), "desk/00", 0, status="error", grader=None)
    made = stored(compare(cell(BEFORE, 4), of(broken, NEW), Terms(Half.HARNESS, 4, infrastructure_limit=0.1)))
    assert not any("nobody is recorded" in line for line in words(made))
    # as a report was stored that names nobody at all
    older = bare.model_dump(mode="json")
    older["incumbent"]["graders"] = older["candidate"]["graders"] = []
    assert judged.format("of the incumbent, of the candidate") in words(GateReport.model_validate(older))


def test_an_attribution_tells_of_whom_nothing_is_recorded_that_judged() -> None:
    cells = four(cell(AFTER, 4, NEW, TUNED))
    assert not any("recorded" in line for line in attribution_words(attributed(attribute(cells, Terms(Half.MODEL, 4)))))
    for grader, said in (
        (None, "nobody is recorded to have judged attempts of the incumbent, with the new harness, with the new model"),
        (("desk-checks", None), "graders of unrecorded version judged: whether they are the same is not known"),
    ):
        bare = Four(*(of([o._replace(grader=grader) for o in c.attempts], *c.pair) for c in cells))
        lines = attribution_words(attributed(attribute(bare, Terms(Half.MODEL, 4))))
        assert any(line.startswith(said) for line in lines), lines


@pytest.mark.parametrize("number", [1, 48, 49])
def test_attempts_that_were_made_again_are_told_and_more_than_there_are_is_a_warning(number: int) -> None:
    every = attempts(AFTER, 4, NEW)
    again = [every[at % len(every)]._replace(trace=f"{at:064}", status="error") for at in range(number)]
    made = report(of([*every, *again], NEW))
    noun = "1 attempt" if number == 1 else f"{number} attempts"
    said = f"of the candidate {noun} that the infrastructure ended were made again, and are not counted"
    (line,) = [line for line in words(made) if "made again" in line]
    assert line.startswith(said)
    assert ("warning" in line) is (number > 48)
    assert not any("made again" in line for line in words(report()))
    older = of([*attempts(BEFORE, 4), *(one._replace(fingerprint=OLD) for one in again)])
    lines = words(stored(compare(older, cell(AFTER, 4, NEW), Terms(Half.HARNESS, 4))))
    assert any(line.startswith(said.replace("candidate", "incumbent")) for line in lines)


def test_traces_that_are_of_a_harness_by_claim_alone_are_told() -> None:
    made = report(cell(AFTER, 4, NEW, evidence="claimed"))
    assert "48 of 48 traces of the candidate are of its harness because somebody says so" in words(made)


def test_steps_that_name_another_model_are_counted_over_the_traces_of_each_side() -> None:
    made = changed(attempts(AFTER, 4, NEW), "desk/00", 1, shown=Shown(1, 3, ("x",)))
    made = changed(made, "desk/01", 0, shown=Shown(2, 2, ("y\x1b", "x")))
    found = report(of(made, NEW))
    other = found.candidate.other_models
    assert other is not None
    assert (other.traces, other.steps, other.of, other.names) == (2, 3, 5, ["x", "y\x1b"])
    said = "in 2 of 48 traces of the candidate steps name another model than is recorded, 3 of 5 steps: 'x', 'y\\x1b'"
    assert said in words(found)
    assert found.incumbent.other_models is None
    assert "other_models" not in found.model_dump(mode="json")["incumbent"]
    written = digest.canonical(found.model_dump(mode="json"))
    assert GateReport.model_validate(digest.load_canonical(written)) == found


def test_a_cost_that_is_not_defined_is_told_as_such() -> None:
    none = dict.fromkeys(BEFORE, 0)
    made = report(cell(none, 4, NEW))
    assert made.measured is not None
    assert made.measured.candidate.cost_per_success.value is None
    assert any("and not defined (no attempt succeeded" in line for line in words(made))


def test_a_report_holds_no_number_that_json_lacks() -> None:
    made = report(cell(dict.fromkeys(BEFORE, 0), 4, NEW, cost=float("nan")))
    assert digest.canonical(made.model_dump(mode="json"))


def test_names_from_outside_are_shown_quoted() -> None:
    evil = "desk/\x1b[2J\n"
    made = stored(compare(cell({evil: 0}, 2), cell({evil: 2}, 2, NEW), Terms(Half.HARNESS, 2)))
    assert all("\n" not in line and "\x1b" not in line for line in words(made))


def four(both: Cell) -> Four:
    return Four(cell(BEFORE, 4), cell(AFTER, 4, NEW), cell(BEFORE, 4, OLD, TUNED), both)


def test_an_attribution_is_told_with_its_intervals_and_read_back() -> None:
    found = attributed(attribute(four(cell(AFTER, 4, NEW, TUNED)), Terms(Half.HARNESS, 4)))
    none = "(no interval: no task's score differs)"
    assert attribution_words(found) == [
        "of 12 tasks an average run solves 6; with the new harness 8, with the new model 6, with both 8",
        "the new harness brings +2 (+0.76 to +3.24) with the old model, +2 (+0.76 to +3.24) with the new one",
        f"the new model brings +0 {none} under the old harness, +0 {none} under the new one",
        f"the interaction is +0 {none}",
        "intervals at 95%: Student's t over the tasks' paired differences of scores, as far as tasks can differ",
    ]
    written = digest.canonical(found.model_dump(mode="json"))
    assert AttributionReport.model_validate(digest.load_canonical(written)) == found
    assert digest_of(found) == digest.sha256(written)


def test_an_attribution_without_an_interval_names_no_method_for_one() -> None:
    same = [cell(BEFORE, 4, harness, model) for model in (BASE, TUNED) for harness in (OLD, NEW)]
    lines = attribution_words(attributed(attribute(Four(*same), Terms(Half.HARNESS, 4))))
    assert len(lines) == 4
    assert not any("intervals at" in line for line in lines)


def test_an_attribution_tells_whose_steps_name_another_model() -> None:
    both = of(changed(attempts(AFTER, 4, NEW, TUNED), "desk/00", 1, shown=Shown(1, 3, ("x",))), NEW, TUNED)
    said = "in 1 of 48 traces with both steps name another model than is recorded, 1 of 3 steps: 'x'"
    assert attribution_words(attributed(attribute(four(both), Terms(Half.HARNESS, 4))))[-1] == said
    refused = attributed(attribute(four(both), Terms(Half.HARNESS, attempts=5)))
    assert attribution_words(refused)[-1] == said


def test_numbers_of_tasks_have_at_most_two_decimals_and_lose_no_zero_of_their_own() -> None:
    thirds = {task: number % 3 for number, task in enumerate(BEFORE)}
    made = stored(compare(cell(thirds, 3), cell(dict.fromkeys(BEFORE, 1), 3, NEW), Terms(Half.HARNESS, 3)))
    assert "tasks solved by an average run: 4 before, 4 after" in words(made)
    ten = dict.fromkeys([f"desk/{number}" for number in range(10)], 3)
    made = stored(compare(cell(ten, 3), cell({**ten, "desk/0": 2}, 3, NEW), Terms(Half.HARNESS, 3)))
    assert "tasks solved by an average run: 10 before, 9.67 after" in words(made)


def test_an_attribution_that_is_refused_says_why() -> None:
    whole = cell(AFTER, 4, NEW, TUNED)
    found = attributed(attribute(four(of(whole.attempts[1:], NEW, TUNED)), Terms(Half.HARNESS, attempts=4)))
    assert "effects" not in found.model_dump(mode="json")
    assert attribution_words(found)[0] == "nothing can be attributed: attempts-missing"
    assert "lacks 1 attempt at 1 task" in attribution_words(found)[1]
