"""One cell: the attempts of one pair, a harness and a model, at the tasks of the evaluation set.

How attempts count, everywhere in the gates:
- `success` and `failure` are *scored*: they are the n and the c of their task, and its score is c/n;
- `error`, an end that the infrastructure caused, has no score. It is *re-run* when the same attempt of the same task is
  there with a score or waits for one, or when its task has all the attempts that are wanted without it. Otherwise it is
  *open*, and stands for the attempt that is still to be made;
- `unknown`, an attempt on which nobody gave a verdict, has no score and waits for one: no later verdict can be guessed
  from it. It was made all the same, so it is not made again, what it made again is no longer open, and beside a whole
  evaluation it is one attempt too many, also under a number that another attempt has: whoever passed it over would let
  a candidate try until verdicts are good. Nothing is compared while there is one. (A reading of a record that a newer
  one supersedes is no attempt; it never comes here.)

Coverage is exact when scored and open attempts together are, for each task, as many as are wanted. Open ones are let
through only up to a limit, which is 0 unless somebody raises it, and then each counts *against the candidate*: as a
failure of the candidate, as a success of the incumbent. So where a policy accepts, it would have accepted whatever a
re-run had shown.

A task is named with its domain (`domain/task`), so that tasks of one name in two domains are two tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tracemark.model.trace import model_label

SCORED = ("success", "failure")
"""Statuses of attempts that have a score."""

_TOLD = (*SCORED, "error")
"""Statuses of attempts of which is known how they ended."""


class Model(NamedTuple):
    """The model half. None means that nobody says."""

    name: str | None = None
    """The name under which it was called."""
    revision: str | None = None
    """Checkpoint or revision."""
    chat_template: str | None = None
    """The chat template of the server, by digest or name."""
    tokenizer: str | None = None
    """The tokenizer, by digest or name."""
    server: str | None = None
    """The serving program and its reply parser."""
    sampling: str | None = None
    """The sampling parameters as canonical JSON text, their seed apart."""

    def __str__(self) -> str:
        """Return `NAME@REVISION`, or as much of it as is known."""
        return str(model_label(self.name or "unknown model", self.revision))


WORDS = {
    "name": "model name",
    "revision": "model revision",
    "chat_template": "chat template",
    "tokenizer": "tokenizer",
    "server": "server parser",
    "sampling": "sampling",
}
"""What each member of a model is called in messages."""


class Pair(NamedTuple):
    """A harness and a model."""

    harness: str
    """The fingerprint."""
    model: Model
    """The model; a member that is None is not claimed, and then must only be the same in all attempts."""


class Shown(NamedTuple):
    """What the steps of runs say of their model, where in each some name another one than is recorded."""

    steps: int
    """Steps that name another model."""
    of: int
    """All steps of these runs in which a model spoke."""
    names: tuple[str, ...]
    """The other names, sorted."""
    traces: int = 1
    """How many runs these are."""


class Attempt(NamedTuple):
    """One evaluation trace, as far as a gate must know it."""

    trace: str
    """The trace's id."""
    task: str
    """The task, with its domain where it has one: `domain/task`."""
    attempt: int | str | None
    """Which try at the task it is; None when nobody says."""
    status: str
    """`success`, `failure`, `error` or `unknown`."""
    grader: tuple[str, str | None] | None = None
    """Name and version of who judged; a version of None was not recorded. None when nobody says who."""
    cost: float | None = None
    """What the agent cost in US dollars; None when it is not known."""
    evidence: str = "unrecorded"
    """How well its harness is known."""
    model: Model = Model()
    """The model that played."""
    fingerprint: str | None = None
    """The harness under which it counts, a declared equivalent already replaced by the pair's; None when none is."""
    shown: Shown | None = None
    """What its steps say, where some of them name another model than the one in `model`; None elsewhere."""
    domain: str | None = None
    """The domain of the task, which stands in `task` as well; None when nobody says."""
    reward: float | None = None
    """The reward of which its status was made, by a threshold; None where a verdict was stated."""
    exhausted: bool = False
    """Whether the run used up a budget of its own, so that it failed, be it that nobody judged it."""

    @property
    def number(self) -> str | None:
        """Which try it is as text, since recorders write 1 as well as "1"; None when nobody says."""
        return None if self.attempt is None else str(self.attempt)


class TaskTally(NamedTuple):
    """What the attempts of one task in one cell come to."""

    scored: int
    """Attempts with a score."""
    successes: int
    """Those of them that succeeded."""
    open: tuple[Attempt, ...]
    """Attempts that the infrastructure ended and nobody has re-run."""
    rerun: int
    """Attempts that the infrastructure ended and that were re-run."""
    unjudged: tuple[Attempt, ...]
    """Attempts without a verdict."""

    @property
    def runs(self) -> int:
        """How many attempts are scored once all have verdicts, and those that the infrastructure ended are re-run."""
        return self.scored + len(self.unjudged) + len(self.open)


@dataclass(frozen=True)
class Cell:
    """The evaluation of one pair."""

    pair: Pair
    """The pair that the attempts are claimed to be of."""
    attempts: tuple[Attempt, ...]
    """Every evaluation trace of the pair, sorted by task, attempt and trace."""
    components: Mapping[str, str] = field(default_factory=dict)
    """Digest of each component of the harness; empty when the harness is not at hand."""
    retracted: tuple[Attempt, ...] = ()
    """Attempts of the pair that were retracted, sorted likewise; they count for nothing."""
    installed: tuple[Attempt, ...] = ()
    """Attempts that installed the pair and gave way to these, sorted likewise; they count for nothing."""

    @classmethod
    def of(
        cls,
        pair: Pair,
        attempts: Iterable[Attempt],
        components: Mapping[str, str] | None = None,
        retracted: Iterable[Attempt] = (),
        installed: Iterable[Attempt] = (),
    ) -> Cell:
        """Return the cell of some attempts, whose order means nothing.

        Args:
            pair: the pair that they are claimed to be of.
            attempts: the attempts; whether they are the pair's is looked at when cells are compared.
            components: digest of each component of the harness, by name; None when it is not at hand.
            retracted: attempts that were made and retracted.
            installed: attempts that installed the pair, where others are its evaluation now.
        """
        ordered, gone, before = (
            tuple(sorted(some, key=lambda one: (one.task, str(one.attempt), one.trace)))
            for some in (attempts, retracted, installed)
        )
        return cls(pair, ordered, dict(components or {}), gone, before)

    @cached_property
    def by_task(self) -> dict[str, tuple[Attempt, ...]]:
        """The attempts of each task, tasks sorted."""
        found: dict[str, list[Attempt]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.task, []).append(attempt)
        return {task: tuple(attempts) for task, attempts in found.items()}

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """Every model that attempts name, the most frequent first."""
        counted = Counter(attempt.model for attempt in self.attempts)
        return tuple(sorted(counted, key=lambda model: (-counted[model], str(tuple(model)))))

    def replaced(self, wanted: int) -> tuple[Attempt, ...]:
        """Return the retracted attempts with a score in whose place others stand.

        Args:
            wanted: how many attempts a task is to have, all of which take the place of whatever was before.
        """
        standing = [one for one in self.attempts if one.status != "error"]
        numbers = {(one.task, one.number) for one in standing if one.number is not None}
        counted = Counter(one.task for one in standing)
        return tuple(
            one
            for one in self.retracted
            if one.status in SCORED and ((one.task, one.number) in numbers or counted[one.task] >= wanted)
        )

    @property
    def model(self) -> Model:
        """The model as attempts name it; what is claimed where there are none."""
        return self.models[0] if self.models else self.pair.model

    def tally(self, wanted: int) -> dict[str, TaskTally]:
        """Return what the attempts of each task come to.

        Args:
            wanted: how many scored attempts a task is to have.
        """
        return {task: self.tally_of(task, wanted) for task in self.by_task}

    def tally_of(self, task: str, wanted: int) -> TaskTally:
        """Return what the attempts at one task come to; a task without any is one of which nothing is there.

        Args:
            task: the task.
            wanted: how many scored attempts it is to have.
        """
        return _tally(self.by_task.get(task, ()), wanted)


def _tally(attempts: Collection[Attempt], wanted: int) -> TaskTally:
    statuses = Counter(one.status for one in attempts)
    scored, errors = sum(statuses[status] for status in SCORED), statuses["error"]
    waiting = _waiting(attempts)[: max(0, wanted - (len(attempts) - errors))] if errors else ()
    unjudged = tuple(one for one in attempts if one.status not in _TOLD) if len(attempts) > scored + errors else ()
    return TaskTally(scored, statuses["success"], waiting, errors - len(waiting), unjudged)


def _waiting(attempts: Collection[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts at one task that the infrastructure ended, without those that were made again by number.

    An attempt that ended so twice is one attempt to make again; of those without a number each is one.
    """
    made = {one.number for one in attempts if one.status != "error" and one.number is not None}
    waiting: dict[object, Attempt] = {}
    for one in attempts:
        if one.status == "error" and one.number not in made:
            waiting.setdefault(one.trace if one.number is None else (one.number,), one)
    return tuple(waiting.values())


def shown_in(attempts: Iterable[Attempt]) -> Shown | None:
    """Return what the steps of some attempts say of other models, all together; None where none says so."""
    found = [one.shown for one in attempts if one.shown is not None]
    if not found:
        return None
    names = {name for one in found for name in one.names}
    steps, of, traces = (
        sum(numbers) for numbers in zip(*((one.steps, one.of, one.traces) for one in found), strict=True)
    )
    return Shown(steps, of, tuple(sorted(names)), traces)


def differing(old: Model, new: Model) -> tuple[str, ...]:
    """Return the members in which two models differ; one that only one of them states differs."""
    return tuple(name for name, before, after in zip(Model._fields, old, new, strict=True) if before != after)


def freshest(attempts: Iterable[Attempt], used: Collection[str]) -> tuple[Attempt, ...]:
    """Return those of a pair's attempts that are its evaluation: the ones on which no earlier decision rests, if any.

    An evaluation that installed its pair was chosen because it was good, so a second one is fairer to whatever is
    compared with it. The two are never mixed, and as soon as the second one is begun it alone counts, whole or not:
    whoever could go on with the first one until the second is to their liking would choose between the two.

    Args:
        attempts: every attempt of the pair.
        used: ids of the traces on which decisions rest that installed a pair.
    """
    every = tuple(attempts)
    return tuple(one for one in every if one.trace not in used) or every


def draws(scored: Mapping[str, int], wanted: int) -> int:
    """Return how many evaluations the attempts of a pair come to: each was a draw that could have been a lucky one.

    Args:
        scored: how many attempts with a score were ever made at each task, retracted ones included.
        wanted: how many a task is to have in one evaluation.
    """
    return max(1, max((-(-number // wanted) for number in scored.values()), default=0))
