"""What a gate's decision rests on, held against the decision, its report, and what was in force where it was made.

A gate judges a candidate against the accepted half, under the accepted other half, on the set that is frozen, as its
maker reads them in the ledger. So what its entry says must follow from its own numbers, be what its report says, and
name the pair and the set that the entries before it make the accepted and the frozen ones.

Invariants:
- what is not at hand is not held: without a report it is not known against what an `install` was judged;
- a member of an accepted model that is None claims nothing, so every model fits it there;
- a sentence says what differs, with both values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from tracemark import digest
from tracemark.gates.cell import WORDS
from tracemark.gates.compare import decide
from tracemark.gates.reckoning import miscounted, misreported
from tracemark.gates.terms import LEVEL
from tracemark.ledger.chain import Chain
from tracemark.ledger.descent import Past
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import CONFLICTS, HALVES, AcceptedPair, accepted_pair, installed_with
from tracemark.ledger.params import Params
from tracemark.ledger.state import Freezes, evaluation_digest, freezes_in_force
from tracemark.model.decision import GateEvidence, Kind
from tracemark.model.faults import faults, first
from tracemark.model.gate import GateReport
from tracemark.model.value import Value
from tracemark.stats.compare import sign_test
from tracemark.words import numbered

_SHOWN = 16
_DIGITS = 12
_VERDICTS = {Kind.INSTALL: "accept", Kind.REJECT: "reject"}

_SETTING = frozenset((Kind.ACCEPT, Kind.FREEZE, Kind.INSTALL, Kind.ROLL_BACK))
"""Kinds of decisions that say what the accepted pair, the frozen set, or the traces of an installed candidate are."""

V = TypeVar("V", bound=Value)


@dataclass(frozen=True, slots=True)
class Read(Generic[V]):
    """A stored value, as far as this version knows it."""

    value: V | None
    """It, without what is not known; None when it cannot be read."""
    problem: str | None
    """Why it cannot be read, or which member is not known; None when all of it was read."""


def read(kind: type[V], value: object) -> Read[V]:
    """Read what a version of tracemark stored: members that this one does not know are passed over, and named.

    Args:
        kind: what it should be.
        value: the JSON value.
    """
    try:
        return Read(kind.model_validate(value), None)
    except ValidationError as error:
        place, reason = first(error, value)
        problem = f"{place}: {reason}" if place else reason
        if any(reason != "unknown member" for _, reason in faults(error, value)):
            return Read(None, problem)
        return Read(kind.model_validate(value, extra="ignore"), problem)


@dataclass(frozen=True, slots=True)
class InForce:
    """What held for whoever made an entry: what follows from all entries from which it descends."""

    pair: AcceptedPair
    """The accepted pair."""
    freezes: Freezes
    """The frozen evaluation set."""
    used: Collection[str]
    """Ids of the traces on which the decisions rest that had installed a candidate."""


def in_force(chain: Chain, entries: Iterable[Entry]) -> dict[str, InForce]:
    """Return for some entries of a chain, by digest, what was in force for whoever made them."""
    past, setting = Past(chain), _setting(chain)
    found = {}
    for entry in entries:
        earlier = past.before(entry, setting)
        pair, freezes = accepted_pair(earlier, past), freezes_in_force(earlier, past)
        found[entry.digest] = InForce(pair, freezes, installed_with(earlier))
    return found


def _setting(chain: Chain) -> list[Entry]:
    """Return the entries that say what is in force, a few among all that are about traces."""
    return [entry for entry in chain.entries if entry.decision.kind in _SETTING]


def astray(chain: Chain, back: Iterable[Entry]) -> dict[str, str]:
    """Return what is wrong with those of some roll-backs that do not make the pair what it was, by their digests."""
    past, by_digest = Past(chain), {entry.digest: entry for entry in chain.entries}
    setting, wrong = _setting(chain), {}
    for entry in back:
        subject = entry.decision.subject
        target = by_digest.get(subject["to"])
        if target is None or not past.descends(entry, target):
            wrong[entry.digest] = f"it goes back to {subject['to'][:_DIGITS]}, which was not decided before it"
            continue
        pair = accepted_pair([*past.before(target, setting), target], past)
        differs = [
            f"in the {half}, {said}"
            for half in HALVES
            if (said := _apart(half, subject[half], getattr(pair, half).value))
        ]
        if differs:
            wrong[entry.digest] = f"it is not the pair that was accepted after {target.digest[:_DIGITS]}: " + "; ".join(
                differs
            )
    return wrong


def unlike_told(one: GateEvidence, told: Params, report: GateReport | None = None) -> Iterator[str]:
    """Yield in what a decision does not follow from the parameters under which it was made.

    Args:
        one: its evidence.
        told: the parameters, which have the digest that it names.
        report: its report; None when it is not at hand.
    """
    if one.policy != told.gates.policy:
        yield f"it names the policy {one.policy}, and its parameters say {told.gates.policy}"
    if one.evaluation != evaluation_digest(told.evaluation):
        yield f"it names the evaluation set {_set(one.evaluation)}, and its parameters list another"
    if one.measured.attempts != told.evaluation_attempts:
        said = f"it rests on {numbered(one.measured.attempts, 'attempt')} at each task"
        yield f"{said}, and its parameters ask for {told.evaluation_attempts}"
    gates = told.gates
    asked = {
        "no-regression": bool(gates.keep),
        "reliability": gates.pass_all_not_lower,
        "cost": gates.cost_not_above,
        "fresh": gates.fresh,
    }
    wanted, told_of = {name for name in asked if asked[name]}, {met.name for met in one.measured.conditions}
    if lacking := wanted - told_of:
        yield f"its parameters ask for a condition of which it tells nothing: {', '.join(sorted(lacking))}"
    if unasked := told_of - wanted:
        yield f"it tells of a condition for which its parameters do not ask: {', '.join(sorted(unasked))}"
    if report is not None and report.terms.infrastructure_limit != gates.infrastructure_errors:
        said = f"its report lets {report.terms.infrastructure_limit:g} of the attempts be ended by the infrastructure"
        yield f"{said}, and its parameters {gates.infrastructure_errors:g}"


def unfounded(entry: Entry, one: GateEvidence, report: GateReport | None) -> list[str]:
    """Return in what a decision contradicts its own evidence, or its report where that is at hand."""
    wrong = [*_of_traces(entry, one), *_of_numbers(one)]
    says = one.measured.policies.get(one.policy)
    if says is None:
        wrong.append(f"what {one.policy} says is not told")
    else:
        told = "accept" if says.accepts and all(condition.met for condition in one.measured.conditions) else "reject"
        if told != _VERDICTS[Kind(entry.decision.kind)]:
            wrong.append(f"what it measured is {'an' if told == 'accept' else 'a'} {told} by {one.policy}")
    if report is not None:
        wrong += [*_within(report), *misreported(report), *_unlike_report(entry, one, report)]
    return wrong


def misplaced(entry: Entry, one: GateEvidence, report: GateReport | None, then: InForce) -> list[str]:
    """Return in what a decision was not made against the pair, or not on the set, that was in force where it was made.

    Args:
        entry: the decision.
        one: its evidence.
        report: its report; None when it is not at hand.
        then: what was in force.
    """
    wrong = [*_other_pair(entry, report, then.pair), *_other_set(one, report, then.freezes)]
    if report is not None:
        used, compared = set(then.used), set(report.incumbent.traces)
        if hidden := (used & compared) - set(report.reused):
            traces = numbered(len(hidden), "trace")
            wrong.append(f"its report does not say that {traces} of the incumbent had installed a candidate")
        if strange := set(report.reused) - compared:
            wrong.append(f"its report counts {numbered(len(strange), 'trace')} as reused, not of the incumbent")
    return wrong


def _of_traces(entry: Entry, one: GateEvidence) -> Iterator[str]:
    installs = entry.decision.kind == Kind.INSTALL
    if one.accepted_traces is None and installs:
        yield "it does not name the traces that it rests on"
    if one.accepted_traces is not None and not installs:
        yield "it names traces as installed, and it is a reject"
    if one.accepted_traces is not None and digest.of(one.accepted_traces) != one.traces.candidate:
        yield "its list of traces has not the digest that it names"


def _of_numbers(one: GateEvidence) -> Iterator[str]:
    told = one.measured
    if not math.isclose(told.p, sign_test(told.w, told.l), rel_tol=1e-9):
        yield "its p does not follow from w and l"
    follows = decide(told.w, told.l, told.p, LEVEL, clean=told.clean)
    if any(told.policies[name].accepts is not made.accepted for name, made in follows.items() if name in told.policies):
        yield "what a policy says does not follow from w, l and p"
    fresh = [condition.met for condition in told.conditions if condition.name == "fresh"]
    if any(met is not (one.reused == 0) for met in fresh):
        yield "whether its condition on fresh traces is met does not follow from those that are reused"
    yield from miscounted(told)


def _within(report: GateReport) -> Iterator[str]:
    """Yield in what a report contradicts itself."""
    sides = {"incumbent": report.incumbent, "candidate": report.candidate}
    for name, side in sides.items():
        if digest.of(side.traces) != side.digest:
            yield f"its report's list of the {name}'s traces has not the digest that stands beside it"
    old, new = _halves(report, "incumbent"), _halves(report, "candidate")
    other = _other(report.half)
    if not _apart(report.half, old[report.half], new[report.half]):
        yield f"its report compares a {report.half} with itself"
    if differs := _apart(other, new[other], old[other]):
        yield f"its report judges the {report.half}, and its two sides differ in the {other} as well: {differs}"


def _unlike_report(entry: Entry, one: GateEvidence, report: GateReport) -> Iterator[str]:
    """Yield in what a decision is not the one that follows from its report."""
    yield from _about_another(entry, report)
    if report.verdict != _VERDICTS[Kind(entry.decision.kind)]:
        yield f"its report says {report.verdict}"
    if report.policy != one.policy:
        yield f"its report was made by the policy {report.policy}, and it names {one.policy}"
    if report.measured != one.measured:
        yield "its report measured something else"
    if one.accepted_traces is not None and one.accepted_traces != report.candidate.traces:
        yield "its list of traces is not that of the candidate in its report"
    for side, compared, named in (
        ("incumbent", report.incumbent.digest, one.traces.incumbent),
        ("candidate", report.candidate.digest, one.traces.candidate),
    ):
        if compared != named:
            yield f"its report compares other traces of the {side} than it names"
    if report.terms.evaluation_digest != one.evaluation:
        found = _set(report.terms.evaluation_digest)
        yield f"its report is of the evaluation set {found}, and it names {_set(one.evaluation)}"
    if report.candidates != one.candidates:
        yield f"its report counts {numbered(report.candidates, 'candidate')}, and it names {one.candidates}"
    if len(report.reused) != one.reused:
        yield f"its report counts {numbered(len(report.reused), 'reused trace')}, and it names {one.reused}"


def _about_another(entry: Entry, report: GateReport) -> Iterator[str]:
    """Yield in what the report judges something else than a decision is about."""
    subject, half = entry.decision.subject, report.half
    if subject["half"] != half:
        yield f"its report judges a {half}, and it is about a {subject['half']}"
        return
    other = _other(half)
    installs = entry.decision.kind == Kind.INSTALL
    old, new = _halves(report, "incumbent"), _halves(report, "candidate")
    if differs := _apart(half, new[half], subject[half] if installs else subject["candidate"]):
        yield f"its report judges another candidate: {differs}"
    if installs and (differs := _apart(other, new[other], subject[other])):
        yield f"its report judges it {_WITH[other]} another {other} than it names: {differs}"
    if not installs and (differs := _apart(half, old[half], subject["incumbent"])):
        yield f"its report judges against another incumbent: {differs}"


_WITH = {"harness": "under", "model": "with"}


def _other_pair(entry: Entry, report: GateReport | None, pair: AcceptedPair) -> Iterator[str]:
    """Yield where the incumbent, or the half that stays, is not the accepted one."""
    subject = entry.decision.subject
    half, installs = subject["half"], entry.decision.kind == Kind.INSTALL
    other = _other(half)
    incumbent = _halves(report, "incumbent") if report is not None and report.half == half else {}
    judged = incumbent.get(half) if installs else subject["incumbent"]
    stays = subject[other] if installs else incumbent.get(other)
    accepted = {name: getattr(pair, name).value for name in HALVES}
    undecided = [name for name in HALVES if _open(pair, name)]
    for name in undecided:
        yield f"which {name} was accepted was open when it was decided"
    if half not in undecided:
        if accepted[half] is None:
            yield f"no {half} was accepted when it was decided, so there was none to judge it against"
        elif judged is not None and (differs := _unfit(half, judged, accepted[half])):
            yield f"it was judged against another {half} than the accepted one: {differs}"
    # a harness may be judged with any model where none is accepted; of rejections with another model than the accepted
    # one none is entered any more, but a ledger may hold some
    free = other == "model" and (accepted[other] is None or not installs)
    if other not in undecided and not free:
        if accepted[other] is None:
            yield f"no {other} was accepted when it was decided"
        elif stays is not None and (differs := _unfit(other, stays, accepted[other])):
            yield f"it was judged {_WITH[other]} another {other} than the accepted one: {differs}"
        elif stays is None and installs:
            yield f"it does not say {_WITH[other]} which {other} it was judged, and one was accepted"


def _open(pair: AcceptedPair, half: str) -> bool:
    """Return whether decisions side by side disagreed about a half."""
    return any(conflict.code == CONFLICTS[half] for conflict in pair.conflicts)


def _other_set(one: GateEvidence, report: GateReport | None, freezes: Freezes) -> Iterator[str]:
    """Yield where the evaluation set is not the frozen one."""
    if freezes.frozen is None:
        yield (
            "which evaluation set was frozen was open when it was decided"
            if freezes.latest
            else "no evaluation set was frozen when it was decided"
        )
        return
    subject, told = freezes.frozen.decision.subject, one.measured
    if one.evaluation != subject["tasks"]:
        yield f"it was judged on the evaluation set {_set(one.evaluation)}, and {_set(subject['tasks'])} was frozen"
    elif report is not None and report.terms.frozen_digest != subject["tasks"]:
        yield f"its report takes {_set(report.terms.frozen_digest)} for frozen, and {_set(subject['tasks'])} was"
    if told.n != subject["count"]:
        yield f"it compares {numbered(told.n, 'task')}, and the set was frozen with {subject['count']}"
    if told.attempts != subject["attempts"]:
        attempts = numbered(told.attempts, "attempt")
        yield f"it rests on {attempts} at each task, and the set was frozen with {subject['attempts']}"


def _set(of: str | None) -> str:
    return "none" if of is None else of[:_DIGITS]


def _other(half: str) -> str:
    return "model" if half == "harness" else "harness"


def _halves(report: GateReport, side: str) -> dict[str, Any]:
    cell = getattr(report, side)
    return {"harness": cell.harness, "model": cell.model.model_dump(mode="json")}


def _unfit(half: str, found: Any, accepted: Any) -> str:
    """Return in what a half is not the accepted one: a model may be anything where that claims nothing."""
    if half == "harness":
        return _apart(half, found, accepted)
    claimed = {name: member for name, member in accepted.items() if member is not None}
    return _apart(half, {name: found.get(name) for name in claimed}, claimed)


def _apart(half: str, one: Any, other: Any) -> str:
    """Return in words in what one half is another than it should be; empty when it is the same."""
    if one == other:
        return ""
    if half == "harness" or not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return f"{_said(one)} and not {_said(other)}"
    return ", ".join(
        f"{WORDS[name]} {_member(one.get(name))} and not {_member(other.get(name))}"
        for name in WORDS
        if one.get(name) != other.get(name)
    )


def _said(value: Any) -> str:
    return str(value)[:_SHOWN] if isinstance(value, str) else "none" if value is None else "a model"


def _member(value: Any) -> str:
    return "unrecorded" if value is None else repr(value)
