"""Whoever does what refusals say, to the letter, has evaluations that are compared."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.gates.evaluations import GRADER, NEW, OLD, attempts, of
from tracemark import digest
from tracemark.gates.against import refusals
from tracemark.gates.cell import SCORED, Attempt, Cell, freshest
from tracemark.gates.compare import compare
from tracemark.gates.refusal import Reason, Refusal
from tracemark.gates.terms import Half, Terms

TASKS = ("desk/a", "desk/b", "shop/a")
WANTED = 3
TERMS = Terms(Half.HARNESS, attempts=WANTED, evaluation=frozenset(TASKS))
HARNESS = {"incumbent": OLD, "candidate": NEW}
WORDS = {"s": "success", "f": "failure", "e": "error", "u": "unknown"}


class Bench(NamedTuple):
    """Both evaluations as somebody has them who works on them."""

    incumbent: tuple[Attempt, ...]
    candidate: tuple[Attempt, ...]
    terms: Terms

    def cell(self, side: str) -> Cell:
        return of(freshest(getattr(self, side), self.terms.used), HARNESS[side])

    def against(self) -> tuple[Refusal, ...]:
        return refusals(self.cell("incumbent"), self.cell("candidate"), self.terms)

    def reasons(self) -> list[Reason]:
        return [refusal.reason for refusal in self.against()]

    def changed(self, change: Callable[[str, tuple[Attempt, ...]], Iterable[Attempt]]) -> Bench:
        return self._replace(**{side: tuple(change(side, getattr(self, side))) for side in HARNESS})


def judged(bench: Bench, refusal: Refusal) -> Bench:
    """Return the evaluations when all that waits for a verdict, by a refusal, has one."""

    def judge(_: str, made: tuple[Attempt, ...]) -> Iterable[Attempt]:
        waits = [one.trace in refusal.traces and one.status == "unknown" for one in made]
        return (
            one._replace(status="failure", grader=GRADER) if wait else one
            for one, wait in zip(made, waits, strict=True)
        )

    return bench.changed(judge)


def rerun(bench: Bench, refusal: Refusal) -> Bench:
    """Return the evaluations when what a re-run list names has been run and judged."""

    def run(side: str, made: tuple[Attempt, ...]) -> Iterable[Attempt]:
        yield from made
        for at, one in enumerate(one for one in refusal.rerun if one.side == side):
            (new,) = attempts({one.task: 1}, 1, HARNESS[side])
            yield new._replace(
                attempt=one.attempt, trace=digest.of([side, refusal.reason, *(old.trace for old in made), at])
            )

    return bench.changed(run)


def without_copies(bench: Bench, refusal: Refusal) -> Bench:
    """Return the evaluations with one alone of each attempt that is there more than once, by a refusal."""
    seen: set[tuple[str, str, str | None]] = set()

    def first(side: str, made: tuple[Attempt, ...]) -> Iterable[Attempt]:
        for one in made:
            known = (side, one.task, one.number) in seen
            if one.trace in refusal.traces:
                seen.add((side, one.task, one.number))
            if not (one.trace in refusal.traces and known):
                yield one

    return bench.changed(first)


def raised(bench: Bench, refusal: Refusal) -> Bench:
    """Return the evaluations under the number of attempts that a refusal names."""
    numbers = re.findall("set evaluation.attempts to ([0-9]+), freeze", refusal.hint)
    return bench._replace(terms=replace(bench.terms, attempts=int(numbers[0]))) if numbers else bench


def followed(bench: Bench) -> Bench:
    """Return the evaluations after everything that the refusals say; runs are kept where they may be."""
    for refusal in bench.against():
        if refusal.reason is Reason.ATTEMPTS_DUPLICATE:
            bench = without_copies(bench, refusal)
        else:
            bench = raised(rerun(judged(bench, refusal), refusal), refusal)
    return bench


def installed(bench: Bench, *sides: str) -> Bench:
    """Return evaluations of which all that there is of some sides installed their pair."""
    used = {one.trace for side in sides for one in getattr(bench, side)}
    return bench._replace(terms=replace(bench.terms, used=bench.terms.used | used))


def bench_of(candidate: Iterable[Attempt], terms: Terms = TERMS) -> Bench:
    return Bench(tuple(attempts(dict.fromkeys(TASKS, 1), WANTED)), tuple(candidate), terms)


def made(task: str, statuses: str, *, numbers: bool = True, first: int = 0, harness: str = NEW) -> list[Attempt]:
    """Return attempts by the first letters of their statuses; `-` is one that is missing."""
    return [
        one._replace(
            status=WORDS[letter],
            attempt=at if numbers else None,
            trace=digest.of([harness, task, at, letter, first]),
            grader=GRADER if WORDS[letter] in SCORED else None,
        )
        for at, letter in enumerate(statuses, start=first)
        if letter != "-"
        for one in attempts({task: 0}, 1, harness)
    ]


WHOLE = [*made("desk/b", "sfs"), *made("shop/a", "fff")]
NUMBERS = pytest.mark.parametrize("numbers", [True, False], ids=["numbered", "unnumbered"])


@NUMBERS
@pytest.mark.parametrize("statuses", ["uss", "u-s", "ues", "-es", "u-e", "uuu", "eee", "---", "u--", "e--"])
def test_what_is_missing_waits_or_broke_is_compared_once_all_was_done_as_told(statuses: str, numbers: bool) -> None:
    bench = bench_of([*made("desk/a", statuses, numbers=numbers), *WHOLE])
    assert bench.against()
    assert followed(bench).against() == ()


@pytest.mark.parametrize("again", ["s", "u"])
def test_what_broke_and_was_run_again_is_on_no_list(again: str) -> None:
    bench = bench_of([*made("desk/a", "sse"), *made("desk/a", again, first=2), *WHOLE])
    assert not any(refusal.rerun for refusal in bench.against())
    assert followed(bench).against() == ()


@NUMBERS
@pytest.mark.parametrize("statuses", ["ssss", "sssu", "suuu", "ssssu", "ssseu", "sssue"])
def test_what_is_more_than_asked_for_is_compared_once_every_task_has_as_much(statuses: str, numbers: bool) -> None:
    bench = bench_of([*made("desk/a", statuses, numbers=numbers), *made("desk/b", "su-"), *made("shop/a", "fef")])
    assert Reason.ATTEMPTS_UNEQUAL in bench.reasons()
    assert followed(bench).against() == ()


def test_what_was_no_attempt_is_compared_once_it_is_retracted() -> None:
    bench = bench_of([*made("desk/a", "ssfuu"), *WHOLE])
    (refusal,) = bench.against()
    assert "tracemark retract TRACE" in refusal.hint
    assert len(refusal.traces) == 2
    rest = bench.changed(lambda _, made: (one for one in made if one.trace not in refusal.traces))
    assert rest.against() == ()


@pytest.mark.parametrize("copy", ["s", "f", "u"])
def test_copies_are_compared_once_they_are_retracted(copy: str) -> None:
    more = [one._replace(trace="f" * 64) for one in made("desk/a", copy)]
    bench = bench_of([*made("desk/a", "sff"), *more, *WHOLE])
    assert bench.reasons() == [Reason.ATTEMPTS_DUPLICATE]
    assert bench.against()[0].hint.startswith("retract all but one of each")
    assert followed(bench).against() == ()
    # a run of its own under the number of another: what is missing then is named when it is compared again
    bench = bench_of([*made("desk/a", "sf"), *more, *WHOLE])
    assert bench.reasons() == [Reason.ATTEMPTS_DUPLICATE]
    assert followed(followed(bench)).against() == ()


@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_two_graders_judged_is_compared_once_it_was_retracted_and_made_again_for_one(most: int) -> None:
    other = ("shop", "another")
    first = [one._replace(grader=other if at < most else GRADER) for at, one in enumerate(WHOLE)]
    bench = bench_of([*made("desk/a", "sfs"), *first])
    (refusal,) = bench.against()
    assert refusal.reason is Reason.GRADERS_DIFFER
    assert refusal.hint.startswith("a stored verdict keeps its grader: retract these")
    bench = bench.changed(lambda _, made: (one for one in made if one.trace not in refusal.traces))
    assert followed(bench).against() == ()


def test_nobody_is_told_to_run_what_is_no_task_of_the_set() -> None:
    bench = bench_of([*made("desk/a", "sfs"), *WHOLE, *made("hotel/a", "sfs")])
    assert set(bench.reasons()) == {Reason.TASKS_DIFFER}
    assert not any(refusal.rerun for refusal in bench.against())


@NUMBERS
@pytest.mark.parametrize("statuses", ["ss-", "---", "ssss", "sse", "ssu", "sssu"])
@pytest.mark.parametrize("limit", [0.0, 0.01])
def test_what_installed_a_pair_and_is_not_whole_any_more_is_run_anew_as_a_whole(
    statuses: str, numbers: bool, limit: float
) -> None:
    terms = replace(TERMS, infrastructure_limit=limit)
    bench = installed(bench_of([*made("desk/a", statuses, numbers=numbers), *WHOLE], terms), "candidate")
    refusal = next(one for one in bench.against() if one.reason is Reason.ATTEMPTS_MISSING)
    assert "is the one that installed it" in refusal.message
    assert Counter(one.task for one in refusal.rerun) == dict.fromkeys(TASKS, WANTED)
    # under numbers that no attempt has, so that none is taken for one of the first evaluation
    assert not {(one.task, one.number) for one in bench.candidate} & {
        (one.task, str(one.attempt)) for one in refusal.rerun if one.attempt is not None
    }
    done = followed(bench)
    assert done.against() == ()
    assert not {one.trace for one in done.cell("candidate").attempts} & done.terms.used


def test_what_installed_a_pair_is_compared_while_it_is_whole_and_run_anew_where_more_is_asked_for() -> None:
    bench = installed(bench_of([*made("desk/a", "sss"), *WHOLE]), "candidate", "incumbent")
    assert bench.against() == ()
    more = bench._replace(terms=replace(bench.terms, attempts=WANTED + 1))
    assert [one.reason for one in more.against()] == [Reason.ATTEMPTS_MISSING] * 2
    assert followed(more).against() == ()


def test_what_installed_a_pair_is_never_filled_up_where_the_other_side_has_more() -> None:
    bench = bench_of([*made("desk/a", "ssss"), *WHOLE])
    bench = installed(bench, "incumbent")
    assert bench.reasons() == [Reason.ATTEMPTS_UNEQUAL]
    (refusal,) = bench.against()
    assert Counter(one.side for one in refusal.rerun) == {"incumbent": len(TASKS) * (WANTED + 1), "candidate": 2}
    assert followed(bench).against() == ()


@pytest.mark.parametrize("status", ["success", "error", "unknown"])
def test_one_attempt_beside_what_installed_the_pair_sets_that_aside(status: str) -> None:
    bench = installed(bench_of([*made("desk/a", "sss"), *WHOLE]), "candidate")
    (more,) = drawn(NEW, [("desk/a", 7, status)], "more")
    bench = bench._replace(candidate=(*bench.candidate, more))
    assert bench.against()
    done = followed(bench)
    assert done.against() == ()
    assert not {one.trace for one in done.cell("candidate").attempts} & done.terms.used


# --- whatever the evaluations are

STATUSES = st.sampled_from(list(WORDS.values()))
ONE = st.tuples(st.sampled_from(TASKS), st.one_of(st.none(), st.integers(0, 3)), STATUSES)


def drawn(harness: str, said: Iterable[tuple[str, int | None, str]], mark: str = "") -> Iterable[Attempt]:
    for at, (task, number, status) in enumerate(said):
        (one,) = attempts({task: 0}, 1, harness)
        grader = GRADER if status in SCORED else None
        yield one._replace(attempt=number, status=status, trace=digest.of([harness, at, mark]), grader=grader)


@st.composite
def benches(draw: st.DrawFn) -> Bench:
    """Draw evaluations that are whole but for a few attempts, so that some are compared and some are not."""
    sides = []
    odd = draw(st.integers(0, 4))
    for harness in (OLD, NEW):
        whole = [(task, at, "success") for task in TASKS for at in range(WANTED)]
        for _ in range(draw(st.integers(0, odd))):
            at = draw(st.integers(0, len(whole) - 1))
            whole[at] = whole[at][0], draw(st.sampled_from([None, whole[at][1]])), draw(STATUSES)
        gone = draw(st.sets(st.integers(0, len(whole) - 1), max_size=odd))
        kept = [one for at, one in enumerate(whole) if at not in gone]
        sides.append(tuple(drawn(harness, [*kept, *draw(st.lists(ONE, max_size=odd))])))
    used = {
        one.trace
        for side in sides
        # none of a side, all of it, or all but a few that were made since
        for one in side[: draw(st.sampled_from([0, 0, len(side), max(0, len(side) - 2)]))]
    }
    limit = draw(st.sampled_from([0.0, 0.2]))
    return Bench(sides[0], sides[1], replace(TERMS, infrastructure_limit=limit, used=frozenset(used)))


def compared(bench: Bench) -> Bench:
    """Return the evaluations when all was done that refusals say; after copies were retracted, they are asked again."""
    for _ in range(4):
        found = compare(bench.cell("incumbent"), bench.cell("candidate"), bench.terms)
        if found.measured is not None:
            return bench
        bench = followed(bench)
    raise AssertionError(bench.against())


@given(benches())
def test_what_is_compared_counts_every_task_as_often_in_each_cell(bench: Bench) -> None:
    bench = compared(bench)
    number = bench.terms.attempts
    assert number is not None
    for cell in map(bench.cell, HARNESS):
        assert all(one.status != "unknown" for one in cell.attempts)
        scored = Counter(one.task for one in cell.attempts if one.status in SCORED)
        tally = cell.tally(number)
        assert {task: scored[task] + len(tally[task].open) for task in TASKS} == dict.fromkeys(TASKS, number)
        numbers = [(one.task, one.number) for one in cell.attempts if one.status in SCORED and one.number is not None]
        assert len(set(numbers)) == len(numbers)
        # one evaluation, never filled up from another
        assert len({one.trace in bench.terms.used for one in cell.attempts}) == 1


@given(benches())
def test_without_copies_what_refusals_say_is_done_at_once(bench: Bench) -> None:
    assume(Reason.ATTEMPTS_DUPLICATE not in bench.reasons())
    assert followed(bench).against() == ()


@given(benches(), st.sampled_from(TASKS), st.one_of(st.none(), st.integers(0, 5)))
def test_one_attempt_more_without_a_verdict_is_never_passed_over(bench: Bench, task: str, number: int | None) -> None:
    more = tuple(drawn(NEW, [(task, number, "unknown")], "more"))
    found = bench._replace(candidate=(*bench.candidate, *more)).against()
    assert any(more[0].trace in refusal.traces for refusal in found)


@given(benches(), st.data())
def test_a_comparison_is_refused_without_one_of_its_attempts(bench: Bench, data: st.DataObject) -> None:
    bench = compared(bench)
    gone = data.draw(st.sampled_from([one for one in bench.cell("candidate").attempts if one.status in SCORED]))
    less = bench._replace(candidate=tuple(one for one in bench.candidate if one is not gone))
    # an error that was made again stands for it, and a few of these may be let through
    stands = any(one.status == "error" and one.task == gone.task for one in bench.cell("candidate").attempts)
    assert less.against() or (stands and bench.terms.infrastructure_limit)


@given(benches())
def test_a_stricter_limit_lets_nothing_through_that_a_laxer_one_refuses(bench: Bench) -> None:
    strict, lax = (bench._replace(terms=replace(bench.terms, infrastructure_limit=limit)) for limit in (0.0, 1.0))
    assert set(lax.reasons()) <= set(strict.reasons())


@given(benches(), st.integers())
def test_the_order_of_attempts_changes_no_refusal(bench: Bench, seed: int) -> None:
    mixed = list(bench.candidate)
    random.Random(seed).shuffle(mixed)
    assert bench._replace(candidate=tuple(mixed)).against() == bench.against()
