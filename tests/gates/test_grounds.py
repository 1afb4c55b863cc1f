"""What decisions rest on: honest ledgers say nothing, and whatever was decided against something else is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.growth import growth
from tracemark import digest
from tracemark.gates.cell import Cell, Model, Pair
from tracemark.gates.compare import compare
from tracemark.gates.grounds import astray, in_force, misplaced, read, unfounded, unlike_told
from tracemark.gates.report import digest_of, stored
from tracemark.gates.terms import Half, Policy, Terms
from tracemark.ledger import chain
from tracemark.ledger.entry import Entry, seal
from tracemark.ledger.pair import CONFLICTS, installed_with, pair_after
from tracemark.ledger.params import GateParams, Params
from tracemark.ledger.state import LedgerState, state
from tracemark.model.decision import Decision, GateEvidence
from tracemark.model.gate import ConditionOf, GateReport

from .evaluations import BASE, NEW, OLD, THIRD, TUNED, attempts

TASKS = tuple(f"shop/e-{number}" for number in range(8))
OTHERS = (*TASKS[1:], "shop/z")
SET, OTHER_SET = (digest.of(sorted(tasks)) for tasks in (TASKS, OTHERS))
NUMBER = 2
NAMED = Model(BASE.name, BASE.revision)
"""What a label claims of a model: its name and its revision."""


def entry(kind: str, subject: dict[str, Any], *parents: Entry, evidence: Any = None) -> Entry:
    names = sorted(parent.digest for parent in parents)
    members = {"kind": kind, "time": "2026-01-01T00:00:00Z", "reason": "why", "parents": names, "subject": subject}
    return seal(Decision.model_validate({**members, "evidence": evidence}))


def frozen(*parents: Entry, tasks: tuple[str, ...] = TASKS, number: int = NUMBER) -> Entry:
    subject = {"tasks": digest.of(sorted(tasks)), "count": len(tasks), "attempts": number}
    return entry("freeze", subject, *parents)


def side(harness: str, model: Model, solved: int, claimed: Model | None = None, number: int = NUMBER) -> Cell:
    made = attempts({task: number if at < solved else 0 for at, task in enumerate(TASKS)}, number, harness, model)
    return Cell.of(Pair(harness, claimed or model), made)


def judge(half: str, old: Cell, new: Cell, **terms: Any) -> GateReport:
    told = Terms(Half(half), evaluation_digest=SET, frozen_digest=SET, evaluation=frozenset(TASKS), attempts=NUMBER)
    made = stored(compare(old, new, Terms(**{**{name: getattr(told, name) for name in Terms.__slots__}, **terms})))
    assert made.verdict != "refused", made.refusals
    return made


def decided(report: GateReport, *parents: Entry, **changes: Any) -> Entry:
    """Return what a gate enters of its report; `changes` are members of the subject or of the evidence."""
    installs = report.verdict == "accept"
    old, new = (
        {"harness": one.harness, "model": one.model.model_dump(mode="json")}
        for one in (report.incumbent, report.candidate)
    )
    subject: dict[str, Any] = {"half": report.half, **new}
    if not installs:
        subject = {"half": report.half, "candidate": new[report.half], "incumbent": old[report.half]}
    assert report.measured is not None
    evidence: dict[str, Any] = {
        "report": digest_of(report),
        "traces": {"incumbent": report.incumbent.digest, "candidate": report.candidate.digest},
        "params": "d" * 64,
        "evaluation": report.terms.evaluation_digest,
        "policy": report.policy,
        "candidates": report.candidates,
        "reused": len(report.reused),
        "measured": report.measured.model_dump(mode="json"),
        **({"accepted_traces": list(report.candidate.traces)} if installs else {}),
    }
    for name, value in changes.items():
        (subject if name in subject else evidence)[name] = value
    return entry("install" if installs else "reject", subject, *parents, evidence=evidence)


def said(known: list[Entry], last: Entry, report: GateReport | None) -> list[str]:
    """Return everything that stands against the last of some entries."""
    one = read(GateEvidence, last.decision.evidence).value
    assert one is not None
    then = in_force(chain.of([*known, last]), [last])[last.digest]
    return [*unfounded(last, one, report), *misplaced(last, one, report, then)]


@pytest.fixture
def base() -> list[Entry]:
    """A ledger that accepted a harness and a model of which the label alone is claimed, and froze the set."""
    first = entry("accept", {"harness": OLD})
    second = entry("accept", {"model": NAMED._asdict()}, first)
    return [first, second, frozen(second)]


def test_an_honest_decision_has_nothing_against_it_with_its_report_and_without(base: list[Entry]) -> None:
    better = judge("harness", side(OLD, BASE, 2, NAMED), side(NEW, BASE, 8, NAMED))
    same = judge("harness", side(OLD, BASE, 2, NAMED), side(NEW, BASE, 2, NAMED))
    model = judge("model", side(OLD, BASE, 2, NAMED), side(OLD, TUNED, 8))
    assert (better.verdict, same.verdict, model.verdict) == ("accept", "reject", "accept")
    for report in (better, same, model):
        made = decided(report, base[-1])
        assert said(base, made, report) == said(base, made, None) == []


@pytest.mark.parametrize("solved", [2, 8])
def test_where_no_model_is_accepted_a_harness_is_judged_with_any(base: list[Entry], solved: int) -> None:
    known = [base[0], frozen(base[0])]
    report = judge("harness", side(OLD, TUNED, 2), side(NEW, TUNED, solved))
    assert said(known, decided(report, known[-1]), report) == []


def test_an_install_against_another_harness_than_the_accepted_one_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(THIRD, BASE, 2), side(NEW, BASE, 8))
    against = f"it was judged against another harness than the accepted one: {THIRD[:16]} and not {OLD[:16]}"
    made = decided(report, base[-1])
    assert said(base, made, report) == [against]
    # the entry itself does not name it
    assert said(base, made, None) == []


def test_a_reject_against_another_harness_than_the_accepted_one_is_named_without_its_report(base: list[Entry]) -> None:
    report = judge("harness", side(THIRD, BASE, 2), side(NEW, BASE, 2))
    against = f"it was judged against another harness than the accepted one: {THIRD[:16]} and not {OLD[:16]}"
    made = decided(report, base[-1])
    assert said(base, made, report) == said(base, made, None) == [against]


def test_a_model_judged_against_another_than_the_accepted_one_is_named_with_what_differs(base: list[Entry]) -> None:
    report = judge("model", side(OLD, TUNED, 2), side(OLD, TUNED._replace(server="other"), 2))
    against = "it was judged against another model than the accepted one: model revision 'tuned' and not 'base'"
    made = decided(report, base[-1])
    assert said(base, made, report) == said(base, made, None) == [against]


@pytest.mark.parametrize("solved", [2, 8])
def test_a_model_judged_under_another_harness_than_the_accepted_one_is_named(base: list[Entry], solved: int) -> None:
    report = judge("model", side(THIRD, BASE, 2), side(THIRD, TUNED, solved))
    under = f"it was judged under another harness than the accepted one: {THIRD[:16]} and not {OLD[:16]}"
    made = decided(report, base[-1])
    assert said(base, made, report) == [under]
    # an install names the harness under which it was judged, a reject does not
    assert said(base, made, None) == ([under] if solved == 8 else [])


def test_a_harness_installed_with_another_model_than_the_accepted_one_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, TUNED, 2), side(NEW, TUNED, 8))
    against = "it was judged with another model than the accepted one: model revision 'tuned' and not 'base'"
    made = decided(report, base[-1])
    assert said(base, made, report) == said(base, made, None) == [against]


def test_a_rejection_that_a_ledger_holds_may_be_of_a_harness_with_another_model_than_the_accepted_one(
    base: list[Entry],
) -> None:
    report = judge("harness", side(OLD, TUNED, 2), side(NEW, TUNED, 2))
    made = decided(report, base[-1])
    assert said(base, made, report) == said(base, made, None) == []


def test_an_install_that_does_not_say_with_which_model_it_was_judged_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2, NAMED), side(NEW, BASE, 8, NAMED))
    nobody = decided(report, base[-1], model=None)
    assert "it does not say with which model it was judged, and one was accepted" in said(base, nobody, None)


def test_what_was_decided_before_anything_was_accepted_is_named() -> None:
    first = frozen()
    report = judge("model", side(OLD, BASE, 2), side(OLD, TUNED, 8))
    assert said([first], decided(report, first), report) == [
        "no model was accepted when it was decided, so there was none to judge it against",
        "no harness was accepted when it was decided",
    ]


def test_what_was_decided_while_branches_disagreed_is_named(base: list[Entry]) -> None:
    ours, theirs = entry("accept", {"harness": OLD}, base[-1]), entry("accept", {"harness": NEW}, base[-1])
    report = judge("harness", side(OLD, BASE, 2), side(THIRD, BASE, 2))
    made = decided(report, ours, theirs)
    assert said([*base, ours, theirs], made, report) == ["which harness was accepted was open when it was decided"]
    # on a branch that had not seen the other nothing was open
    assert said([*base, ours, theirs], decided(report, ours), report) == []


def test_a_pair_that_was_rolled_back_to_is_the_one_in_force(base: list[Entry]) -> None:
    up = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    installed = decided(up, base[-1])
    back = entry("roll-back", {"harness": OLD, "model": NAMED._asdict(), "to": base[1].digest}, installed)
    again = judge("harness", side(OLD, BASE, 2), side(THIRD, BASE, 8))
    assert said([*base, installed, back], decided(again, back), again) == []
    against = f"it was judged against another harness than the accepted one: {OLD[:16]} and not {NEW[:16]}"
    assert said([*base, installed], decided(again, installed), again) == [against]


def test_a_roll_back_to_another_pair_than_the_one_that_was_accepted_then_is_named(base: list[Entry]) -> None:
    later = entry("accept", {"harness": NEW}, base[-1])
    right = {"harness": OLD, "model": NAMED._asdict(), "to": base[1].digest}
    for changes, message in (
        ({}, None),
        ({"harness": THIRD}, f"in the harness, {THIRD[:16]} and not {OLD[:16]}"),
        ({"model": TUNED._asdict()}, "in the model, model revision 'tuned' and not 'base', chat template"),
        ({"model": None}, "in the model, none and not a model"),
        ({"to": later.digest}, f"accepted after {later.digest[:12]}: in the harness, {OLD[:16]} and not {NEW[:16]}"),
        ({"to": "0" * 64}, "it goes back to 000000000000, which was not decided before it"),
    ):
        back = entry("roll-back", {**right, **changes}, later)
        wrong = astray(chain.of([*base, later, back]), [back])
        assert set(wrong) == (set() if message is None else {back.digest})
        assert (message or "") in wrong.get(back.digest, "")
    beside = entry("accept", {"harness": THIRD}, base[-1])
    back = entry("roll-back", {**right, "harness": THIRD, "to": beside.digest}, later)
    assert "was not decided before it" in astray(chain.of([*base, later, beside, back]), [back])[back.digest]


def test_what_does_not_follow_from_the_parameters_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    one = read(GateEvidence, decided(report, base[-1]).decision.evidence).value
    assert one is not None
    told = Params(evaluation=frozenset(TASKS), evaluation_attempts=NUMBER)
    assert list(unlike_told(one, told)) == []
    report = report.model_copy(update={"terms": report.terms.model_copy(update={"infrastructure_limit": 0.5})})
    assert list(unlike_told(one, told, report)) == [
        "its report lets 0.5 of the attempts be ended by the infrastructure, and its parameters 0"
    ]
    asked = GateParams(policy="cotrace", keep=("e-1",), pass_all_not_lower=True, cost_not_above=True, fresh=True)
    assert list(unlike_told(one, Params(evaluation=frozenset(OTHERS), evaluation_attempts=3, gates=asked))) == [
        "it names the policy significant, and its parameters say cotrace",
        f"it names the evaluation set {SET[:12]}, and its parameters list another",
        "it rests on 2 attempts at each task, and its parameters ask for 3",
        "its parameters ask for a condition of which it tells nothing: cost, fresh, no-regression, reliability",
    ]
    more = one.measured.model_copy(update={"conditions": [ConditionOf(name="cost", met=True, reason="cheaper")]})
    assert list(unlike_told(one.model_copy(update={"measured": more}), told)) == [
        "it tells of a condition for which its parameters do not ask: cost"
    ]


@pytest.mark.parametrize(
    ("freeze", "message"),
    [
        (lambda _: [], "no evaluation set was frozen when it was decided"),
        (
            lambda last: [frozen(last), frozen(last, number=3)],
            "which evaluation set was frozen was open when it was decided",
        ),
        (lambda last: [frozen(last, number=3)], "it rests on 2 attempts at each task, and the set was frozen with 3"),
        (
            lambda last: [frozen(last, tasks=OTHERS)],
            f"it was judged on the evaluation set {SET[:12]}, and {OTHER_SET[:12]} was frozen",
        ),
    ],
)
def test_a_decision_on_another_set_than_the_frozen_one_is_named_without_its_report(
    base: list[Entry], freeze: Callable[[Entry], list[Entry]], message: str
) -> None:
    known = base[:2]
    freezes = freeze(known[-1])
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    made = decided(report, *(freezes or [known[-1]]))
    assert said([*known, *freezes], made, None) == [message]
    assert message in said([*known, *freezes], made, report)


def test_the_freeze_that_holds_is_the_latest_before_the_decision(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    smaller = frozen(base[-1], tasks=TASKS[:3])
    again = frozen(smaller)
    assert said([*base, smaller, again], decided(report, again), report) == []
    assert len(said([*base, smaller], decided(report, smaller), report)) == 2
    # what was frozen later says nothing of it
    made = decided(report, base[-1])
    assert said([*base, frozen(base[-1], tasks=TASKS[:3])], made, report) == []


def test_traces_that_had_installed_the_incumbent_must_be_counted_as_reused(base: list[Entry]) -> None:
    up = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    installed = decided(up, base[-1])
    hidden = judge("harness", side(NEW, BASE, 8), side(THIRD, BASE, 2))
    told = judge("harness", side(NEW, BASE, 8), side(THIRD, BASE, 2), used=installed_with([installed]))
    assert said([*base, installed], decided(told, installed), told) == []
    assert said([*base, installed], decided(hidden, installed), hidden) == [
        "its report does not say that 16 traces of the incumbent had installed a candidate"
    ]
    strange = told.model_copy(update={"reused": ["0" * 64]})
    assert "its report counts 1 trace as reused, not of the incumbent" in said(
        [*base, installed], decided(strange, installed), strange
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"half": "model"}, "its report judges a harness, and it is about a model"),
        ({"harness": THIRD}, f"its report judges another candidate: {NEW[:16]} and not {THIRD[:16]}"),
        (
            {"model": TUNED._asdict()},
            "its report judges it with another model than it names: model revision 'base' and not 'tuned'",
        ),
        ({"policy": "cotrace"}, "its report was made by the policy significant, and it names cotrace"),
        ({"candidates": 4}, "its report counts 1 candidate, and it names 4"),
        ({"reused": 4}, "its report counts 0 reused traces, and it names 4"),
        ({"accepted_traces": ["1" * 64]}, "its list of traces is not that of the candidate in its report"),
        (
            {"traces": {"incumbent": "1" * 64, "candidate": "2" * 64}},
            "its report compares other traces of the incumbent than it names",
        ),
        (
            {"evaluation": "e" * 64},
            f"its report is of the evaluation set {SET[:12]}, and it names eeeeeeeeeeee",
        ),
    ],
)
def test_each_difference_from_the_report_is_said_as_what_it_is(
    base: list[Entry], changes: dict[str, Any], message: str
) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    assert message in said(base, decided(report, base[-1], **changes), report)


def test_an_incumbent_that_a_reject_names_must_be_the_one_of_its_report(base: list[Entry]) -> None:
    report = judge("harness", side(THIRD, BASE, 2), side(NEW, BASE, 2))
    assert said(base, decided(report, base[-1], incumbent=OLD), report) == [
        f"its report judges against another incumbent: {THIRD[:16]} and not {OLD[:16]}"
    ]


def test_traces_that_a_reject_names_as_installed_are_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 2))
    made = decided(report, base[-1], accepted_traces=list(report.candidate.traces))
    assert said(base, made, report) == ["it names traces as installed, and it is a reject"]


def test_a_report_that_contradicts_itself_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 2))
    itself = report.model_copy(update={"candidate": report.incumbent})
    assert "its report compares a harness with itself" in said(base, decided(itself, base[-1]), itself)
    other = report.candidate.model_copy(update={"model": judge_model(TUNED)})
    both = report.model_copy(update={"candidate": other})
    assert (
        "its report judges the harness, and its two sides differ in the model as well: "
        "model revision 'tuned' and not 'base'"
    ) in said(base, decided(both, base[-1]), both)
    cut = report.candidate.model_copy(update={"traces": report.candidate.traces[1:]})
    less = report.model_copy(update={"candidate": cut})
    assert "its report's list of the candidate's traces has not the digest that stands beside it" in said(
        base, decided(less, base[-1]), less
    )


def judge_model(model: Model) -> Any:
    return judge("model", side(OLD, BASE, 2), side(OLD, model, 2)).candidate.model


def test_tasks_that_did_not_move_as_they_are_counted_are_named_without_the_report(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    assert report.measured is not None
    measured = report.measured.model_dump(mode="json")
    measured["ups"][0] |= {"before": 2, "after": 2}
    made = decided(report, base[-1], measured=measured)
    assert said(base, made, None) == [
        f"it counts as up what did not go up: {measured['ups'][0]['task']!r}, from 2 to 2 of 2 successes"
    ]
    measured["ups"][0] |= {"before": 0, "after": 3}
    measured["ups"][1] |= {"before": 2, "after": 0}
    (message,) = said(base, decided(report, base[-1], measured=measured), None)
    assert message.endswith("from 0 to 3 of 2 successes and 1 more")
    less = report.measured.model_dump(mode="json")
    less["ups"][0] |= {"before": -1, "after": 1}
    (message,) = said(base, decided(report, base[-1], measured=less), None)
    assert message.endswith("from -1 to 1 of 2 successes")
    twice = report.measured.model_dump(mode="json")
    twice["ups"][1] = twice["ups"][0]
    assert said(base, decided(report, base[-1], measured=twice), None) == ["it counts a task twice"]


@pytest.mark.parametrize(("level", "solved"), [(0.5, 4), (0.01, 8)])
def test_a_report_made_at_another_level_than_gates_judge_at_is_named(
    base: list[Entry], level: float, solved: int
) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, solved), level=level)
    assert report.verdict == ("accept" if level == 0.5 else "reject")
    made = decided(report, base[-1])
    follows = "what a policy says does not follow from w, l and p"
    assert said(base, made, report) == [follows, f"its report was made at the level {level:g}, and gates judge at 0.05"]
    assert said(base, made, None) == [follows]


def test_a_report_whose_level_was_edited_alone_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    other = report.model_copy(update={"terms": report.terms.model_copy(update={"level": 0.5})})
    assert said(base, decided(other, base[-1]), other) == [
        "its report was made at the level 0.5, and gates judge at 0.05"
    ]


def test_a_policy_of_which_nothing_is_told_is_named(base: list[Entry]) -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    assert report.measured is not None
    measured = report.measured.model_dump(mode="json")
    del measured["policies"]["significant"]
    assert said(base, decided(report, base[-1], measured=measured), None) == ["what significant says is not told"]


def test_members_of_another_version_are_passed_over_and_named() -> None:
    report = judge("harness", side(OLD, BASE, 2), side(NEW, BASE, 8))
    evidence = decided(report).decision.evidence or {}
    whole = read(GateEvidence, evidence)
    assert whole.problem is None
    more = read(GateEvidence, {**evidence, "level": 0.1, "measured": {**evidence["measured"], "more": {}}})
    assert more.value == whole.value
    assert more.problem is not None
    assert more.problem.endswith("unknown member")
    less = read(GateEvidence, {name: value for name, value in evidence.items() if name != "reused"})
    assert (less.value, less.problem) == (None, "reused: missing")
    both = read(GateEvidence, {**evidence, "level": 0.1, "policy": "by feel"})
    assert both.value is None
    assert "policy" in str(both.problem)


@pytest.mark.parametrize("value", [None, [], "x", 5, {}, {"measured": []}, {"measured": {"p": 10**400}}])
def test_evidence_of_any_shape_is_read_or_named(value: Any) -> None:
    found = read(GateEvidence, value)
    assert found.value is None
    assert found.problem


@pytest.mark.parametrize("named", [5, "abc", {"a": 1}, [1, None, {}], None])
def test_what_is_no_list_of_ids_installed_nothing(named: Any) -> None:
    subject = {"half": "harness", "harness": NEW, "model": None}
    made = entry("install", subject, evidence={"accepted_traces": named})
    assert installed_with([made]) == frozenset()


# --- honest ledgers


ACTORS = st.sampled_from(["one", "other"])
FULL = [BASE, TUNED, Model("other", "1", server="vllm")]
CLAIMED = [*FULL, NAMED, Model("other"), Model("other", "1")]


class HonestLedger(RuleBasedStateMachine):
    """Two people who decide as the gates let them, each on what they had read, and a report for each verdict."""

    @initialize()
    def begin(self) -> None:
        first = entry("accept", {"harness": OLD})
        second = entry("accept", {"model": NAMED._asdict()}, first)
        known = {one.digest: one for one in (first, second, frozen(second))}
        self.known = {"one": dict(known), "other": dict(known)}
        self.reports: dict[str, GateReport] = {}
        self.time = 0

    def chain_of(self, actor: str) -> chain.Chain:
        return chain.of(self.known[actor].values())

    def add(self, actor: str, kind: str, subject: dict[str, Any], evidence: Any = None) -> None:
        self.time += 1
        members = {"kind": kind, "time": "2026-01-01T00:00:00Z", "reason": f"{self.time}", "subject": subject}
        parents = list(self.chain_of(actor).heads)
        made = seal(Decision.model_validate({**members, "parents": parents, "evidence": evidence}))
        self.known[actor][made.digest] = made

    @rule(actor=ACTORS)
    def reads(self, actor: str) -> None:
        self.known[actor] |= self.known["other" if actor == "one" else "one"]

    @rule(actor=ACTORS, harness=st.sampled_from([OLD, NEW, THIRD]))
    def accepts_a_harness(self, actor: str, harness: str) -> None:
        self.add(actor, "accept", {"harness": harness})

    @rule(actor=ACTORS, model=st.sampled_from(CLAIMED))
    def accepts_a_model(self, actor: str, model: Model) -> None:
        self.add(actor, "accept", {"model": model._asdict()})

    @rule(actor=ACTORS)
    def declares_equivalents(self, actor: str) -> None:
        self.add(actor, "equivalent", {"fingerprints": [OLD, NEW]})

    @rule(actor=ACTORS, number=st.sampled_from([NUMBER, 3]))
    def freezes(self, actor: str, number: int) -> None:
        self.add(actor, "freeze", frozen(number=number).decision.subject)

    @rule(actor=ACTORS, which=st.integers(0, 30))
    def rolls_back(self, actor: str, which: int) -> None:
        held = self.chain_of(actor)
        target = held.entries[which % len(held.entries)]
        pair = pair_after(held, target)
        if not any(one.code in CONFLICTS.values() for one in pair.conflicts):
            subject = {"harness": pair.harness.value, "model": pair.model.value, "to": target.digest}
            self.add(actor, "roll-back", subject)

    def open(self, held: LedgerState) -> bool:
        codes = {one.code for one in held.conflicts}
        return not codes.isdisjoint(CONFLICTS.values()) or held.harness is None or held.frozen is None

    @precondition(lambda self: any(not self.open(state(self.chain_of(actor))) for actor in self.known))
    @rule(
        actor=ACTORS,
        half=st.sampled_from(["harness", "model"]),
        candidate=st.integers(0, 2),
        full=st.integers(0, 2),
        solved=st.sampled_from([(2, 8), (2, 4), (5, 5), (8, 2)]),
        policy=st.sampled_from(Policy),
    )
    def judges(self, actor: str, half: str, candidate: int, full: int, solved: Any, policy: Policy) -> None:
        held = state(self.chain_of(actor))
        if self.open(held) or (half == "model" and held.model is None):
            return
        assert held.harness is not None
        assert held.frozen is not None
        claimed = None if held.model is None else Model(**held.model)
        fits = [
            one for one in FULL if claimed is None or all(a in (None, b) for a, b in zip(claimed, one, strict=True))
        ]
        played = fits[full % len(fits)]
        pair = (held.harness, FULL[candidate]) if half == "model" else ([OLD, NEW, THIRD][candidate], played)
        if pair in ((held.harness, played), (held.harness, claimed)):
            return
        if half == "harness" and pair[0] in held.equivalent_to(held.harness):
            return
        number = held.frozen.decision.subject["attempts"]
        old = side(held.harness, played, solved[0], claimed, number)
        new = side(*pair, solved[1], number=number)
        used = installed_with(self.chain_of(actor).entries)
        report = judge(half, old, new, policy=policy, used=used, attempts=number)
        made = decided(report)
        self.add(actor, made.decision.kind, made.decision.subject, made.decision.evidence)
        self.reports[digest_of(report)] = report

    @invariant()
    def nothing_stands_against_a_decision(self) -> None:
        held = chain.of({**self.known["one"], **self.known["other"]}.values())
        made = [one for one in held.entries if one.decision.kind in ("install", "reject")]
        then = in_force(held, made)
        assert astray(held, [one for one in held.entries if one.decision.kind == "roll-back"]) == {}
        for one in made:
            found = read(GateEvidence, one.decision.evidence)
            assert found.problem is None
            assert found.value is not None
            for report in (self.reports[found.value.report], None):
                assert unfounded(one, found.value, report) == []
                assert misplaced(one, found.value, report, then[one.digest]) == []


TestHonestLedger = HonestLedger.TestCase
TestHonestLedger.settings = settings(max_examples=25, stateful_step_count=14, deadline=None)


def test_decisions_about_traces_make_looking_at_the_others_no_slower() -> None:
    entries = [entry("accept", {"harness": OLD})]
    back = {"harness": OLD, "model": None, "to": entries[0].digest}
    for at in range(1, 3200):
        told = ("retract", {"trace": digest.of(at)}) if at % 40 else ("roll-back", back)
        entries.append(entry(*told, entries[-1]))

    def ask(part: list[Entry]) -> None:
        ledger, gone_back = chain.Chain(tuple(part)), [one for one in part if one.decision.kind == "roll-back"]
        assert astray(ledger, gone_back) == {}
        assert {then.pair.harness.value for then in in_force(ledger, gone_back).values()} == {OLD}

    assert growth(ask, entries) < 3
