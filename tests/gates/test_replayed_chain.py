"""A public chain of gate decisions, replayed: 78, 76 rejected, 82 accepted, 86 accepted, then six rejected in a row.

Public ledgers of that chain hold totals of 102 tasks and nothing of single tasks, so the tasks here are made: four
attempts each, with scores that add up to the totals. Which tasks changed is chosen so that the two acceptances, four
tasks each, are of two kinds: one that could be noise and one that could not. From totals nobody can tell them apart.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from tests.gates.evaluations import BASE, attempts
from tracemark.gates.cell import Cell, Model, Pair
from tracemark.gates.compare import Comparison, compare
from tracemark.gates.report import stored, words
from tracemark.gates.terms import Half, Policy, Terms

ATTEMPTS = 4


class Step(NamedTuple):
    name: str
    half: Half
    total: int
    accepted: bool
    ups: list[int]
    """By how many attempts each task goes up."""
    downs: list[int]
    """By how many attempts each task goes down."""


CHAIN = [
    Step("B1", Half.HARNESS, 76, False, [1] * 6, [1] * 14),
    Step("E1", Half.MODEL, 82, True, [4] * 4 + [1] * 6, [1] * 6),
    Step("B2", Half.HARNESS, 86, True, [1] * 20, [1] * 4),
    Step("E2", Half.MODEL, 84, False, [1] * 4, [1] * 12),
    Step("B3", Half.HARNESS, 82, False, [1] * 4, [1] * 20),
    Step("E3", Half.MODEL, 85, False, [1] * 5, [1] * 9),
    Step("B4", Half.HARNESS, 80, False, [1] * 3, [2] * 11 + [1] * 5),
    Step("E4", Half.MODEL, 83, False, [1] * 6, [2] * 6 + [1] * 6),
    Step("B5", Half.HARNESS, 82, False, [1] * 5, [3] * 5 + [1] * 6),
]


def anchor() -> dict[str, int]:
    """Return successes of 102 tasks that average runs solve 78 of."""
    each = [4] * 56 + [3] * 22 + [2] * 8 + [1] * 6 + [0] * 10
    scores = {f"tmax/{at:03}": count for at, count in enumerate(each)}
    assert (len(scores), sum(scores.values())) == (102, 78 * ATTEMPTS)
    return scores


def moved(scores: dict[str, int], step: Step, seed: str) -> dict[str, int]:
    """Return scores of which some tasks, drawn by `seed`, went up or down as the step says."""
    found, free = dict(scores), sorted(scores)
    random.Random(seed).shuffle(free)
    for change in [*step.ups, *(-down for down in step.downs)]:
        task = next(one for one in free if 0 <= found[one] + change <= ATTEMPTS)
        found[task] += change
        free.remove(task)
    assert sum(found.values()) == step.total * ATTEMPTS
    return found


def cell(pair: Pair, scores: dict[str, int]) -> Cell:
    return Cell.of(pair, attempts(scores, ATTEMPTS, *pair))


def replay(policy: Policy) -> list[tuple[Step, Comparison]]:
    """Return each step with its comparison; each accepted candidate is the next incumbent, with the same traces."""
    pair, scores, found = Pair("tm1:" + "0" * 64, BASE), anchor(), []
    incumbent = cell(pair, scores)
    installed: frozenset[str] = frozenset()
    for number, step in enumerate(CHAIN, start=1):
        other = (
            pair._replace(harness=f"tm1:{number}{0:063}")
            if step.half is Half.HARNESS
            else pair._replace(model=Model(BASE.name, step.name, *BASE[2:]))
        )
        after = moved(scores, step, step.name)
        candidate = cell(other, after)
        terms = Terms(step.half, ATTEMPTS, policy, used=installed, candidates=number)
        comparison = compare(incumbent, candidate, terms)
        found.append((step, comparison))
        # the chain goes on as it went, whatever this policy says
        if step.accepted:
            pair, scores, incumbent = other, after, candidate
            installed = frozenset(one.trace for one in candidate.attempts)
    return found


@pytest.fixture(scope="module")
def cotrace() -> list[tuple[Step, Comparison]]:
    return replay(Policy.COTRACE)


def test_cotrace_decides_as_the_chain_did(cotrace: list[tuple[Step, Comparison]]) -> None:
    assert [(step.name, comparison.accepted) for step, comparison in cotrace] == [
        (step.name, step.accepted) for step in CHAIN
    ]


def test_the_totals_are_those_of_the_chain(cotrace: list[tuple[Step, Comparison]]) -> None:
    assert [(found.incumbent.score, found.candidate.score) for _, one in cotrace if (found := one.measured)] == [
        (78, 76), (78, 82), (82, 86), (86, 84), (86, 82), (86, 85), (86, 80), (86, 83), (86, 82),
    ]  # fmt: skip


def test_significant_would_have_made_one_of_the_two_changes() -> None:
    found = replay(Policy.SIGNIFICANT)
    assert [step.name for step, comparison in found if comparison.accepted] == ["B2"]
    assert [step.name for step, comparison in found if comparison.accepted is not step.accepted] == ["E1"]


def test_the_first_line_of_each_report_says_which_lie_inside_the_noise(cotrace: list[tuple[Step, Comparison]]) -> None:
    first = {step.name: words(stored(comparison))[0] for step, comparison in cotrace}
    inside = [name for name, line in first.items() if "inside the noise floor" in line]
    assert inside == ["B1", "E1", "E2", "E3", "E4", "B5"]
    assert [name for name, line in first.items() if "beyond the noise floor" in line] == ["B2", "B3", "B4"]
    assert first["E1"].startswith("accept model desk-agent@E1 against desk-agent@base under ")


def test_each_report_says_what_the_other_policy_would_have_done(cotrace: list[tuple[Step, Comparison]]) -> None:
    for step, comparison in cotrace:
        (other,) = [line for line in words(stored(comparison)) if line.startswith("significant (does not decide)")]
        assert other.startswith(f"significant (does not decide): {'accept' if step.name == 'B2' else 'reject'}, ")


def test_the_rounds_against_one_measured_incumbent_are_flagged(cotrace: list[tuple[Step, Comparison]]) -> None:
    reused = {step.name: len(comparison.reused) for step, comparison in cotrace}
    assert reused == {"B1": 0, "E1": 0} | dict.fromkeys(["B2", "E2", "B3", "E3", "B4", "E4", "B5"], 408)
    assert any("evaluate it anew" in line for line in words(stored(cotrace[-1][1])))
