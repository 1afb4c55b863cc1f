"""Evaluations in the store: the traces of the evaluation set's tasks, as cells that gates compare.

Invariants:
- retracted, superseded, contested and mixed traces, and those that are no whole run of the agent, are never counted;
  those of a pair that is asked for are named;
- a trace belongs to a pair by the fingerprint under which it counts (that of a declared equivalent too). One that
  carries the harness's name and counts under none, because its content contradicts that, is kept as an attempt, so that
  the gate refuses it by name and nobody wonders where it went;
- each trace is read once, however many cells it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from tracemark.acts.attempts import attempts_of
from tracemark.acts.corpus import Corpus
from tracemark.errors import IntegrityError
from tracemark.exporters.evaluation import for_evaluation, qualified
from tracemark.findings import Finding, finding
from tracemark.gates.cell import (
    SCORED,
    Attempt,
    Cell,
    Model,
    Pair,
    draws,
    freshest,
    shown_in,
)
from tracemark.gates.earlier import counted
from tracemark.gates.refusal import digits
from tracemark.ledger.pair import installed_with
from tracemark.store.row import TraceRow
from tracemark.store.selection import Selection, State
from tracemark.store.state import harness_named, of_harness
from tracemark.store.store import Store
from tracemark.words import first_few, numbered

_UNNAMED = "of no named model or revision"
_REVISED = "of another revision, and the name alone means those of none here"
_EQUIVALENT = "of a declared equivalent, and the harness has runs of its own"
_SPENT = "those that installed the pair, and it has other runs of the set's tasks"

LEFT_OUT = {
    "retracted": "evaluation-set-aside",
    "superseded": "evaluation-set-aside",
    "contested": "evaluation-left-out",
    "mixed": "evaluation-left-out",
    "no whole run": "evaluation-left-out",
    _UNNAMED: "evaluation-left-out",
    _REVISED: "evaluation-set-aside",
    _SPENT: "evaluation-set-aside",
    _EQUIVALENT: "evaluation-set-aside",
}
"""Why a trace is not counted, in the order in which reasons are looked for, with the code of the finding."""


class AskedModel(NamedTuple):
    """A model as it was asked for."""

    label: str
    """`NAME` or `NAME@REVISION`."""
    claimed: Model | None = None
    """What is known of it, where the ledger accepted it; None when only the label says which is meant."""

    beside: str | None = None
    """The label of the model that it is compared with; None when there is none."""
    plain: bool = False
    """Whether the label, a name alone, means the traces that name no revision, and no others."""

    def means(self, row: TraceRow) -> bool:
        """Return whether a trace was made by this model, by name and, where the label has one, by revision.

        What the other side of the comparison claims by its revision is not of a name alone.
        """
        if row.model_label == self.label:
            return True
        return row.model == self.label and not self.plain and row.model_label != self.beside

    def may_mean(self, row: TraceRow) -> bool:
        """Return whether a trace may be of this model, and does not say so: it names none, or not its revision."""
        name = self.claimed.name if self.claimed is not None else named_model(self.label).name
        return row.model is None or (row.model == name and row.model_label == name != self.beside)

    def passes_over(self, row: TraceRow) -> bool:
        """Return whether a trace is of a revision of this name that neither side of the comparison claims."""
        return row.model == self.label and not self.means(row) and row.model_label != self.beside


def accepted_model(corpus: Corpus) -> AskedModel | None:
    """Return the accepted model as the ledger has it; None when none is accepted."""
    label, model = corpus.params.accepted.model, corpus.decisions.model
    return None if label is None or model is None else AskedModel(label, Model(**model))


class Evaluations:
    """All evaluation traces of a corpus.

    Args:
        corpus: the corpus.
        store: its open store, which must not change meanwhile (`Store.unchanging`).
    """

    def __init__(self, corpus: Corpus, store: Store) -> None:
        self.findings: list[Finding] = []
        """What was left out of the cells that were asked for."""
        self._corpus = corpus
        self._store = store
        self._known: dict[str, Attempt] = {}
        self._domains: dict[str, set[str]] = {}

    @cached_property
    def states(self) -> tuple[State, ...]:
        """Every trace whose task is in the evaluation set, as it stands."""
        evaluation = self._corpus.params.evaluation
        known = (pair for pair in self._store.tasks() if pair[0])
        listed = frozenset(pair for pair in known if for_evaluation(*pair, evaluation))
        wanted = Selection(tasks=frozenset(task for task, _ in listed), superseded=True)
        states = self._store.select(wanted, self._corpus.store_decisions)
        return tuple(state for state in states if (state.row.task, state.row.domain) in listed)

    @cached_property
    def used(self) -> frozenset[str]:
        """Ids of the traces on which decisions rest that installed a candidate: they were chosen for being good.

        What a newer importer made of the same records is the same runs, and none of it is fresh.
        """
        used = installed_with(self._corpus.decisions.history)
        return used.union(*self._store.newer_readings(used).values())

    def cell(self, fingerprint: str, model: AskedModel) -> Cell:
        """Return the evaluation of a pair; what is left out of it is a finding.

        Traces on which a decision rests that installed the pair give way to any that were made beside them, and then
        those of declared equivalents to the harness's own: two evaluations are not one.

        Args:
            fingerprint: the harness.
            model: the model.
        """
        states, gone = [], []
        left: dict[str, list[str]] = {}
        for state in self.states:
            if not self._belongs(state.row, fingerprint):
                continue
            reason = why_left_out(state)
            if model.means(state.row):
                if reason is None:
                    states.append(state)
                else:
                    left.setdefault(reason, []).append(state.trace_id)
                    gone += [state] if state.retracted and was_tried(state) else []
            elif reason is None and (model.may_mean(state.row) or model.passes_over(state.row)):
                why = _UNNAMED if model.may_mean(state.row) else _REVISED
                left.setdefault(why, []).append(state.trace_id)
        for row in (state.row for state in states):
            self._domains.setdefault(str(qualified(row.task, row.domain)), set()).add(row.domain or "")
        made = tuple(self._attempts(states, fingerprint))
        fresh = freshest(made, self.used)
        attempts = _own(fresh, {state.trace_id: state.row.fingerprint for state in states}, fingerprint)
        for reason, before, after in ((_SPENT, made, fresh), (_EQUIVALENT, fresh, attempts)):
            if len(after) < len(before):
                left[reason] = sorted({one.trace for one in before}.difference(one.trace for one in after))
        self._note(left, fingerprint, model)
        self._note_shown(attempts, fingerprint, model)
        self._note_exhausted(attempts, fingerprint, model)
        harness = self._corpus.by_fingerprint.get(fingerprint)
        components = dict(harness.identity.components) if harness is not None else None
        pair = Pair(fingerprint, model.claimed or claimed(model.label, attempts))
        counted_now = {one.trace for one in attempts}
        installed = (one for one in made if one.trace in self.used and one.trace not in counted_now)
        cell = Cell.of(pair, attempts, components, map(self._retracted, gone), installed)
        self._note_replaced(cell, f"{self._corpus.name_of(fingerprint) or fingerprint} with {model.label}")
        return cell

    def meant(self, model: AskedModel, harnesses: Collection[str], other: str | None = None) -> AskedModel:
        """Return a model as it is meant in a comparison: each trace is of the more specific claim.

        A name alone means whatever revision traces name. Where traces of each harness that was run with it name none,
        it means these alone: else a model without a revision, which is one that was not trained further, could not be
        evaluated any more once something that became of it was. Beside a revision of that name it does not mean that
        one, and traces of any harness do.

        Args:
            model: the model.
            harnesses: those under which it is compared.
            other: the label of the model that it is compared with; None when all cells are of one model.
        """
        named = [one.row for one in self.states if one.row.model == model.label and why_left_out(one) is None]
        unrevised = [row for row in named if row.model_label == model.label]
        # one that was not run yet with any of them says nothing
        run = [harness for harness in harnesses if any(self._belongs(row, harness) for row in named)]
        plain = bool(run) and all(any(self._belongs(row, harness) for row in unrevised) for harness in run)
        if other is not None and other.startswith(f"{model.label}@"):
            plain = bool(unrevised)
        return model._replace(beside=other, plain=plain)

    @property
    def collided(self) -> dict[str, list[str]]:
        """The tasks of the cells that were asked for whose name with its domain is that of several, with the domains.

        A name without a domain means the task of any, so that alone makes no two tasks.
        """
        domains = {task: sorted(found - {""}) for task, found in self._domains.items()}
        return {task: found for task, found in sorted(domains.items()) if len(found) > 1}

    def candidates(self, incumbent: str, model: AskedModel) -> int:
        """Return how many evaluations of other pairs than the incumbent's the set has seen, by either half.

        A pair that was evaluated several times counts as often (`draws`), whatever became of its traces: retracted
        ones were tried, and what was accepted and replaced since was a candidate. What a newer importer made of a
        record is the same run, and what nobody knows the pair of is of none; see `was_tried`. A run whose harness
        people settled, be it as none, was a run of the one that was stated first as well.

        Args:
            incumbent: the harness of the incumbent pair.
            model: its model.
        """
        same = self._corpus.decisions.equivalent_to
        known: dict[str, str] = {}
        pairs: dict[tuple[str, str, str | None], Counter[str]] = {}
        for state in self.states:
            row = state.row
            if row.model is None or not was_tried(state):
                continue
            harnesses = {row.fingerprint, self._stated_first.get(state.trace_id)} - {None}
            for one in sorted(map(str, harnesses)):
                if one not in known:
                    known[one] = incumbent if one in same(incumbent) else min(same(one))
                if known[one] == incumbent and model.means(row):
                    continue
                scored = pairs.setdefault((known[one], row.model, row.revision), Counter())
                scored[str(qualified(row.task, row.domain))] += self._status(state) in SCORED
        return sum(draws(scored, self._corpus.params.evaluation_attempts) for scored in pairs.values())

    @cached_property
    def _stated_first(self) -> Mapping[str, str]:
        """The harness that was stated first of each trace whose harness people settled, where its content allows it."""
        settled = frozenset(state.trace_id for state in self.states if state.settled)
        if not settled:
            return {}
        undecided = replace(self._corpus.store_decisions, stamps={}, divided={})
        states = self._store.select(Selection(traces=settled, superseded=True), undecided)
        found = {state.trace_id: state.row.fingerprint for state in states}
        # of what was contested before, the catalogue knows no harness
        contested = [trace for trace, fingerprint in found.items() if fingerprint is None]
        for trace, said in self._store.statements(contested).items():
            stamps = (one.harness for one in said if one.harness and not one.harness.get("contradictions"))
            found[trace] = next(filter(None, map(harness_named, stamps)), None)
        return {trace: fingerprint for trace, fingerprint in found.items() if fingerprint is not None}

    def models(self, model: AskedModel) -> set[Model]:
        """Return every model that a name means, as its evaluation traces that count name it, under any harness."""
        states = [one for one in self.states if why_left_out(one) is None and model.means(one.row)]
        return {attempt.model for attempt in self._attempts(states, "")}

    def _belongs(self, row: TraceRow, fingerprint: str) -> bool:
        if row.fingerprint is not None:
            return row.fingerprint in self._corpus.decisions.equivalent_to(fingerprint)
        return row.harness is not None and row.harness == self._corpus.name_of(fingerprint)

    def _same(self, fingerprint: str) -> Mapping[str, str]:
        return dict.fromkeys(self._corpus.decisions.equivalent_to(fingerprint), fingerprint)

    def _attempts(self, states: Iterable[State], fingerprint: str) -> Iterator[Attempt]:
        chosen = list(states)
        unread = [state for state in chosen if state.trace_id not in self._known]
        self._known.update((one.trace, one) for one in attempts_of(self._store, unread, {}))
        same = self._same(fingerprint)
        for state in chosen:
            one = self._known[state.trace_id]
            yield one._replace(fingerprint=same.get(one.fingerprint or "", one.fingerprint))

    def _retracted(self, state: State) -> Attempt:
        """Return a retracted trace as an attempt: its task, its number and its status."""
        row = state.row
        task, number = str(qualified(row.task, row.domain)), None if row.attempt == "" else row.attempt
        return Attempt(state.trace_id, task, number, self._status(state))

    def _status(self, state: State) -> str:
        """Return the status with which a run counts, be it retracted: of an error the words of its end decide.

        What cannot be read any more, as retracted runs need not be, says no more than the catalogue does.
        """
        if state.row.status != "error":
            return state.row.status
        with suppress(IntegrityError, OSError):
            return next(self._attempts([state], "")).status
        return "error"

    def _note_shown(self, made: Iterable[Attempt], fingerprint: str, model: AskedModel) -> None:
        """Note the attempts whose steps name another model than was recorded; who is right, nobody here can tell."""
        shown = shown_in(made)
        if shown is not None:
            names = first_few(map(repr, shown.names))
            name = self._corpus.name_of(fingerprint) or fingerprint
            message = (
                f"{shown.steps} of {shown.of} steps of {numbered(shown.traces, 'evaluation trace')} name another model "
                f"than is recorded: {names}"
            )
            self.findings.append(finding("evaluation-model-unlike", f"{name} with {model.label}", message))

    def _note_exhausted(self, made: Iterable[Attempt], fingerprint: str, model: AskedModel) -> None:
        """Note the attempts that a recorder calls an error and that ended at a budget of their own."""
        if ended := [one.trace for one in made if one.exhausted]:
            name = self._corpus.name_of(fingerprint) or fingerprint
            message = f"attempts that ended at a budget of their own, and so failed: {digits(ended)}"
            self.findings.append(finding("evaluation-exhausted", f"{name} with {model.label}", message))

    def _note_replaced(self, cell: Cell, where: str) -> None:
        """Note the retracted attempts with a score in whose place others stand: whose were not liked was made again."""
        if replaced := cell.replaced(self._corpus.params.evaluation_attempts):
            said = f"{numbered(len(replaced), 'attempt')} ({counted(Counter(one.status for one in replaced))})"
            traces = digits([one.trace for one in replaced])
            message = f"retracted attempts with a score in whose place others stand: {said}, {traces}"
            self.findings.append(finding("evaluation-replaced", where, message))

    def _note(self, left: Mapping[str, list[str]], fingerprint: str, model: AskedModel) -> None:
        name = self._corpus.name_of(fingerprint) or fingerprint
        for reason, code in LEFT_OUT.items():
            if traces := left.get(reason):
                shown = first_few(trace[:12] for trace in traces)
                message = f"evaluation traces that are not counted, since they are {reason}: {len(traces)} ({shown})"
                hint = f"tracemark audit {traces[0][:12]} shows why"
                self.findings.append(finding(code, f"{name} with {model.label}", message, hint))


def _own(attempts: tuple[Attempt, ...], made_under: Mapping[str, str | None], fingerprint: str) -> tuple[Attempt, ...]:
    """Return the attempts without those of equivalents, where the harness has some of its own.

    Args:
        attempts: of the pair.
        made_under: the fingerprint under which each trace counts itself; None for one that counts under none.
        fingerprint: the harness.
    """
    if fingerprint not in (made_under[one.trace] for one in attempts):
        return attempts
    return tuple(one for one in attempts if made_under[one.trace] in (fingerprint, None))


def why_left_out(state: State) -> str | None:
    """Return the first reason not to count a trace, one of `LEFT_OUT`; None when it counts."""
    return next((name for name, holds in _reasons(state).items() if holds), None)


def was_tried(state: State) -> bool:
    """Return whether a trace shows that its harness and its model were tried on the set.

    That it was retracted, or that its verdict is disputed, undoes no try: else whoever retracts what was no better
    could draw again. What is mixed, no whole run, or disputed as to its harness or its model was a try of nobody known.
    """
    reasons = _reasons(state)
    if any(holds for name, holds in reasons.items() if name not in ("retracted", "contested")):
        return False
    return not any(of_harness(one) or one.startswith("run.model") for one in state.conflicts)


def _reasons(state: State) -> dict[str, bool]:
    row = state.row
    return {
        "retracted": state.retracted,
        "superseded": bool(state.superseded_by),
        "contested": state.contested,
        "mixed": row.mixed,
        "no whole run": row.role is not None or row.demonstration,
    }


def claimed(label: str, attempts: Iterable[Attempt]) -> Model:
    """Return what a label claims of a model: its name and, where attempts prove it to have one, its revision.

    Args:
        label: `NAME` or `NAME@REVISION`.
        attempts: those that it means; where they part it in two ways, the one of most of them is taken.
    """
    means = Counter(
        Model(one.model.name) if one.model.name == label else Model(one.model.name, one.model.revision)
        for one in attempts
    )
    return min(means, key=lambda model: (-means[model], str(tuple(model)))) if means else named_model(label)


def named_model(label: str) -> Model:
    """Return the model that a label names where no trace tells where its revision begins: after the last `@`."""
    name, _, revision = label.rpartition("@")
    return Model(name, revision) if name and revision else Model(label)


def as_half(model: Model) -> dict[str, Any]:
    """Return a model as decisions hold it."""
    return model._asdict()
