"""How often each task was run under the accepted pair, how often with success, and what became of the successes.

Invariants:
- a success counts only where an SFT export that is made now would take it, by the very filter of the export;
- it is *harvested* when a recorded SFT export took that very trace, or an older reading of its record, not when
  another of its task was taken;
- an attempt counts against a task only where the accepted model made it (where none is accepted, a model whose traces
  an export takes): what one model cannot do another may. An accepted name without a revision means any, and where runs
  name none it means these alone, as it does for a gate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from tracemark.acts.corpus import Corpus
from tracemark.acts.export import KIND, look, require_accepted, require_whole, terms_of
from tracemark.acts.rivals import rivals
from tracemark.acts.uncompared import require_compared
from tracemark.exporters.choice import choose, remedies
from tracemark.exporters.select import Reason, of_models
from tracemark.gates.plan import TaskState
from tracemark.store.selection import Selection, State
from tracemark.store.store import Store

Task: TypeAlias = tuple[str, str | None]
"""A task's name and domain."""
_Reasons: TypeAlias = defaultdict[Task, Counter[Reason]]


def _reasons() -> _Reasons:
    return defaultdict(Counter)


@dataclass(slots=True)
class TaskCounts:
    """How often each task was run, how often with a success that counts, and how many of those became rows."""

    remedies: Mapping[Reason, str]
    """What would make rows of successes that no export takes, as hints by reason."""
    attempts: Counter[Task] = field(default_factory=Counter)
    """Attempts that count."""
    solved: Counter[Task] = field(default_factory=Counter)
    """Those of them that an export would take."""
    harvested: Counter[Task] = field(default_factory=Counter)
    """Those of these that one took."""
    untaken: _Reasons = field(default_factory=_reasons)
    """Attempts that are successes which no export would take, by the first reason why not."""
    unnamed: list[TaskState] = field(default_factory=list)
    """Runs of which nobody knows the task."""

    def state(self, task: Task, group: str) -> TaskState:
        """Return what a plan must know of a task; `group` is the class that quotas count it to."""
        # looking a task up must not make it one that has some
        untaken = self.untaken.get(task, Counter())
        return TaskState(*task, group, self.attempts[task], self.solved[task], self.harvested[task], untaken.total())

    def without_row(self) -> dict[Task, Counter[Reason]]:
        """Return `untaken` of the tasks that have no other success."""
        return {task: reasons for task, reasons in self.untaken.items() if not self.solved[task]}


def counted(corpus: Corpus, store: Store) -> TaskCounts:
    """Count the runs under the accepted harness and its declared equivalents.

    Raises:
        ExportRefusedError: when it rests on a harness that cannot be compared whether a success counts.
        IntegrityError: when a trace that must be read is damaged, or a file of the store cannot be read at all.
    """
    terms = terms_of(corpus)
    require_whole(store)
    with store.workspace() as folder, store.unchanging():
        seen = look(store, corpus, terms, folder)
        taken = {trace for note in store.annotations(KIND) for trace in note.value["value"]["traces"]}
        taken.update(*store.newer_readings(taken).values())
        passed = {trace.id for trace in seen.judged.passed}
        store.require_true(seen.restated & passed)
        told = remedies(choose(seen.judged, terms.caps), terms, require_accepted(corpus), partial(rivals, corpus))
        missed = {one.id: one.reason for one in seen.judged.missed}
        count = _Count(
            TaskCounts(told), passed, taken, missed, partial(_by, corpus.params.accepted.model, terms.models)
        )
        # what is retracted or superseded was no attempt at the task that others should pay for
        runs = Selection(fingerprints=frozenset(terms.accepted), retracted=False)
        for state in store.select(runs, corpus.store_decisions):
            count.add(state)
    if seen.compared & passed:
        require_compared(corpus, store)
    return count.finished()


@dataclass(slots=True)
class _Count:
    """Counts as runs are seen, and what is known of the runs."""

    counts: TaskCounts
    passed: set[str]
    """Traces that an export would take."""
    taken: set[str]
    """Those that one took."""
    missed: Mapping[str, Reason]
    """Successes that none would take."""
    by: Callable[[str | None], tuple[bool, bool]]
    """See `_by`."""
    revised: Counter[Task] = field(default_factory=Counter)
    """Attempts by revisions of the accepted model, where that is a name alone; the others are in `counts`."""
    revised_untaken: _Reasons = field(default_factory=_reasons)
    """The same of successes that no export would take."""
    plain: bool = False
    """Whether a run is of the accepted model in so many words."""

    def add(self, state: State) -> None:
        """Count one run."""
        row, trace, counts = state.row, state.trace_id, self.counts
        if row.role is not None or row.demonstration or row.mixed:
            return
        passed = trace in self.passed
        if not row.task:
            counts.unnamed.append(TaskState("", row.domain, "", 1, int(passed), 0))
            return
        task = row.task, row.domain or None
        ours, revised = self.by(row.model_label)
        self.plain = self.plain or (ours and not revised)
        if passed:
            # a success counts whoever made it, as it does in an export; so it is an attempt as well
            counts.attempts[task] += 1
            counts.solved[task] += 1
            counts.harvested[task] += trace in self.taken
        elif row.status != "error" and ours:
            (self.revised if revised else counts.attempts)[task] += 1
            if trace in self.missed:
                (self.revised_untaken if revised else counts.untaken)[task][self.missed[trace]] += 1

    def finished(self) -> TaskCounts:
        """Return the counts of all runs."""
        if not self.plain:
            self.counts.attempts.update(self.revised)
            for task, reasons in self.revised_untaken.items():
                self.counts.untaken[task].update(reasons)
        return self.counts


def _by(accepted: str | None, exported: frozenset[str], model: str | None) -> tuple[bool, bool]:
    """Return whether attempts of a model may count, and whether it is a revision of an accepted name without one.

    They are those of the accepted model; where none is accepted, of a model whose traces an export takes.
    """
    ours = of_models(model, frozenset({accepted}) if accepted else exported)
    return ours, ours and accepted is not None and model != accepted
