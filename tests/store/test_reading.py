"""What is asked of an open store: here, which traces must be looked at one by one and which need only be counted."""

from __future__ import annotations

from collections import Counter

import pytest

from tracemark.store.annotations import STAMPS
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store


def mixed(make, letter: str):
    return {**make.stamp(letter), "mixed": True}


@pytest.fixture
def filled(make, root):
    """A store with traces of three harnesses and of none; of some, something was said later."""
    with Store.open(root, create=True) as store:
        lines = [make.trace(number, make.stamp("aabbcc"[number])) for number in range(6)]
        lines += [make.trace(6), make.trace(7), make.trace(8, mixed(make, "b"))]
        old = make.id_of(lines[4])
        lines.append(make.trace(9, make.stamp("c"), source={"supersedes": [old]}))
        make.commit(store, *lines)
        later = make.annotation(STAMPS, make.id_of(lines[7]), {"harness": make.stamp("a")})
        store.commit_annotations(STAMPS, [later])
        yield store


def ids(make, *numbers: int) -> list[str]:
    return [make.id_of(make.trace(number)) for number in numbers]


def looked_at(store: Store, fingerprints, decisions=Decisions()) -> tuple[set[str], list]:  # noqa: B008
    batches, others = store.split(fingerprints, decisions)
    return {state.trace_id for batch in batches for state in batch.states}, others


def test_only_what_may_count_under_a_wanted_fingerprint_is_looked_at(make, filled) -> None:
    found, others = looked_at(filled, {make.fingerprint("a")})
    assert found == set(ids(make, 0, 1, 7))
    counted = {(plain.fingerprint, plain.mixed, plain.superseded): plain.traces for plain in others}
    assert counted == {
        (None, False, False): 1,
        (make.fingerprint("b"), False, False): 2,
        (make.fingerprint("b"), True, False): 1,
        (make.fingerprint("c"), False, False): 2,
        (make.fingerprint("c"), False, True): 1,
    }


def test_a_trace_about_which_somebody_decided_is_looked_at(make, filled) -> None:
    stamped, retracted, by_record = ids(make, 2, 3, 5)
    record = filled.lookup([by_record])[by_record].row.raw_digest
    decisions = Decisions(frozenset({retracted}), frozenset({record}), stamps={stamped: make.fingerprint("a")})
    found, others = looked_at(filled, {make.fingerprint("a")}, decisions)
    assert found == set(ids(make, 0, 1, 7)) | {stamped, retracted, by_record}
    assert sum(plain.traces for plain in others) == 4


@pytest.mark.parametrize("letters", ["", "a", "ab", "abc", "d"])
def test_both_sides_together_are_the_store(make, filled, letters: str) -> None:
    wanted = {make.fingerprint(letter) for letter in letters}
    batches, others = filled.split(wanted)
    counted = Counter(
        (state.row.fingerprint, state.row.mixed, bool(state.superseded_by))
        for batch in batches
        for state in batch.states
    )
    for plain in others:
        assert plain.fingerprint not in wanted
        counted[plain.fingerprint, plain.mixed, plain.superseded] += plain.traces
    every = filled.select(Selection(superseded=True))
    assert counted == Counter((state.row.fingerprint, state.row.mixed, bool(state.superseded_by)) for state in every)


def test_the_tasks_are_those_that_traces_have_now(make, root) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1), make.trace(2), make.trace(3, run={"domain": "air"}))
        said = make.annotation("outcomes", make.id_of(make.trace(1)), {"run": {"domain": "rail"}})
        store.commit_annotations("outcomes", [said])
        next(store.select(Selection()))
        assert {("t-1", "rail"), ("t-2", None), ("t-3", "air")} <= store.tasks()


def test_a_task_with_a_nul_is_found_by_name(make, root) -> None:
    named = [make.trace(n, run={"task": task}) for n, task in enumerate(("a", "a\x00b", "a\x00c"))]
    with Store.open(root, create=True) as store:
        make.commit(store, *named)
        for wanted in ({"a"}, {"a\x00b"}, {"a", "a\x00c"}, {"b"}):
            found = {state.row.task for state in store.select(Selection(tasks=frozenset(wanted)))}
            assert found == wanted - {"b"}
