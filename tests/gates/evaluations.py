"""Cells out of how often each task succeeded, for the tests of the gates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracemark import digest
from tracemark.gates.cell import Attempt, Cell, Model, Pair

OLD, NEW, THIRD = ("tm1:" + letter * 64 for letter in "abc")
BASE = Model("desk-agent", "base", "chatml", "tok-1", "vllm 0.9 hermes", '{"temperature":0.7}')
TUNED = BASE._replace(revision="tuned")
GRADER = ("desk-checks", "3")
PARTS = {
    OLD: {"prompt_templates": "1" * 64, "tool_bindings": "2" * 64},
    NEW: {"prompt_templates": "9" * 64, "tool_bindings": "2" * 64},
}


def attempts(
    successes: Mapping[str, int], number: int, harness: str = OLD, model: Model = BASE, **changes: Any
) -> list[Attempt]:
    """Return `number` attempts at each task, of which the first so many succeeded."""
    return [
        Attempt(
            trace=digest.of([harness, list(model), task, at]),
            task=task,
            attempt=at,
            status="success" if at < count else "failure",
            grader=GRADER,
            cost=0.5,
            evidence="recorded",
            model=model,
            fingerprint=harness,
        )._replace(**changes)
        for task, count in successes.items()
        for at in range(number)
    ]


def cell(successes: Mapping[str, int], number: int, harness: str = OLD, model: Model = BASE, **changes: Any) -> Cell:
    """Return the cell of `attempts`."""
    return of(attempts(successes, number, harness, model, **changes), harness, model)


def of(made: Iterable[Attempt], harness: str = OLD, model: Model = BASE) -> Cell:
    """Return the cell of some attempts that are claimed to be of a pair."""
    return Cell.of(Pair(harness, model), made, PARTS.get(harness))


def changed(made: Iterable[Attempt], task: str, at: int, **changes: Any) -> list[Attempt]:
    """Return attempts of which the one at `task` with number `at` is another."""
    return [one._replace(**changes) if (one.task, one.attempt) == (task, at) else one for one in made]
