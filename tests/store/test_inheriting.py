"""What was decided of a superseded trace holds for the one that stands for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.store.disputes import check_decisions, check_disputes
from tracemark.store.inheriting import inheriting
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store


class Readings:
    """A store of one run, read by several versions: version number to the numbers of those that it supersedes."""

    def __init__(self, make: Any, root: Path, supersedes: dict[int, list[int]]) -> None:
        self.ids: dict[int, str] = {}
        self.store = Store.open(root, create=True)
        for number, olds in supersedes.items():
            named = {"supersedes": sorted(self.ids[old] for old in olds)} if olds else {}
            line = make.trace(1, make.stamp("a"), trajectory={"notes": f"as version {number} read it"}, source=named)
            self.ids[number] = make.id_of(line)
            make.commit(self.store, line)

    def stand(self, stamps: dict[int, str | None], **decided: Any) -> list[tuple[str | None, bool, bool]]:
        """Return of each trace the harness under which it counts, and whether it is settled, and contested."""
        decisions = Decisions(stamps={self.ids[number]: value for number, value in stamps.items()}, **decided)
        found = []
        for decisions_now in (decisions, self.store.applied(decisions)):
            states = [self.store.state(trace, decisions_now) for trace in self.ids.values()]
            found.append([(state.row.fingerprint, state.settled, state.contested) for state in states])
        assert found[0] == found[1], "decisions that were applied are applied again to no effect"
        return found[0]


@pytest.fixture
def readings(make, root: Path):
    opened: list[Store] = []

    def read(supersedes: dict[int, list[int]]) -> Readings:
        made = Readings(make, root, supersedes)
        opened.append(made.store)
        return made

    yield read
    for store in opened:
        store.close()


CHAIN = {1: [], 2: [1], 3: [1, 2]}


def test_a_decision_holds_for_every_newer_reading(make, readings) -> None:
    a = make.fingerprint("a")
    chain = readings(CHAIN)
    assert chain.stand({1: None}) == [(None, True, False)] * 3
    assert chain.stand({2: None}) == [(a, False, False), (None, True, False), (None, True, False)]
    wanted = Selection(fingerprints=frozenset({a}))
    assert list(chain.store.select(wanted, Decisions(stamps={chain.ids[1]: None}))) == []


def test_the_decision_about_the_nearest_reading_holds(make, readings) -> None:
    a, b = make.fingerprint("a"), make.fingerprint("b")
    chain = readings(CHAIN)
    assert [one[0] for one in chain.stand({1: None, 2: b})] == [None, b, b]
    assert [one[0] for one in chain.stand({1: None, 3: a})] == [None, None, a]


def test_one_reading_that_became_two_settles_both(readings) -> None:
    assert [one[:2] for one in readings({1: [], 2: [1], 3: [1]}).stand({1: None})] == [(None, True)] * 3


def test_of_two_readings_that_became_one_decisions_that_differ_leave_it_contested(make, readings) -> None:
    a, b = make.fingerprint("a"), make.fingerprint("b")
    merged = readings({1: [], 2: [], 3: [1, 2], 4: [3]})
    assert merged.stand({1: b, 2: b})[2:] == [(b, True, False)] * 2
    assert merged.stand({1: b})[2:] == [(b, True, False)] * 2
    assert merged.stand({1: a, 2: None})[2:] == [(None, False, True)] * 2
    assert merged.stand({1: a, 2: None, 3: a})[2:] == [(a, True, False)] * 2
    decided = Decisions(stamps={merged.ids[1]: a, merged.ids[2]: None})
    (found,) = check_disputes(merged.store.layout, decided)
    assert (found.code, found.where) == ("contested", f"trace {merged.ids[4][:12]}"), "it is open there and not here"
    batches, _ = merged.store.split([a], decided)
    assert {state.trace_id for batch in batches for state in batch.states if state.contested} == {
        merged.ids[3],
        merged.ids[4],
    }


def test_what_supersedes_a_trace_about_which_decisions_differ_inherits_that_they_do(make, readings) -> None:
    a, b = make.fingerprint("a"), make.fingerprint("b")
    chain = readings({1: [], 2: [1], 3: [2], 4: [3]})
    differ = {chain.ids[2]: frozenset({b, None})}
    assert chain.stand({}, divided=differ) == [(a, False, False)] + [(None, False, True)] * 3
    assert chain.stand({1: b}, divided=differ) == [(b, True, False)] + [(None, False, True)] * 3
    assert chain.stand({4: a}, divided=differ)[2:] == [(None, False, True), (a, True, False)]

    def excludes(fingerprint: str, line: bytes) -> bool:
        return fingerprint == b and b"as version 3" in line

    assert chain.stand({}, divided=differ, excludes=excludes)[1:] == [
        (None, False, True),
        (None, True, False),
        (None, False, True),
    ]


def test_a_decision_reaches_no_reading_that_stands_where_each_was_decided_or_one_between(readings) -> None:
    parted = readings({1: [], 2: [1], 3: [2], 4: [1]})
    ids = parted.ids

    def reached_by_none(*decided: int) -> set[int]:
        found = parted.store.decided_for({ids[number] for number in decided}, ids[1])
        return {number for number, trace in ids.items() if trace in found}

    assert reached_by_none() == reached_by_none(1, 2) == reached_by_none(3) == reached_by_none(4) == set()
    assert reached_by_none(2, 4) == reached_by_none(3, 4) == {3, 4}
    assert parted.store.decided_for({ids[3]}, ids[3]) == set()


def test_an_inherited_decision_that_the_newer_content_excludes_is_void(make, readings) -> None:
    b = make.fingerprint("b")
    chain = readings(CHAIN)

    def excludes(fingerprint: str, line: bytes) -> bool:
        return fingerprint == b and b"as version 2" in line

    assert [one[0] for one in chain.stand({1: b}, excludes=excludes)] == [b, make.fingerprint("a"), b]
    (found,) = check_decisions(chain.store.layout, Decisions(stamps={chain.ids[1]: b}, excludes=excludes))
    assert (found.code, found.where) == ("decision-refuted", f"trace {chain.ids[2][:12]}")
    assert [one[0] for one in chain.stand({1: None, 2: b}, excludes=excludes)][1:] == [make.fingerprint("a"), b], (
        "a void decision is no absent one"
    )


def test_traces_that_supersede_each_other_inherit_nothing_without_end(make, root: Path) -> None:
    ids = [make.id_of(make.trace(number)) for number in (1, 2)]
    lines = [make.trace(1, source={"supersedes": [ids[1]]}), make.trace(2, source={"supersedes": [ids[0], ids[1]]})]
    with Store.open(root, create=True) as store:
        make.commit(store, *lines)
        decided = Decisions(stamps={ids[0]: make.fingerprint("b")})
        assert store.state(ids[1], decided).row.fingerprint == make.fingerprint("b")


class Drawn:
    """A catalogue of which only what supersedes what is asked."""

    def __init__(self, pairs: set[tuple[int, int]]) -> None:
        self.pairs = pairs

    def replacing(self, ids) -> list[tuple[bytes, bytes]]:
        return [(bytes([old]), bytes([new])) for old, new in self.pairs if bytes([old]) in ids]


@given(
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1])),
    st.dictionaries(st.integers(0, 7), st.sampled_from([{"x"}, {"y"}, {None}, {"x", None}])),
)
def test_a_trace_has_its_own_decision_or_that_of_the_nearest_settled_readings(pairs, said) -> None:
    def settled_before(trace: int) -> set[int]:
        """Return the settled readings that are reached without passing a settled one."""
        found: set[int] = set()
        for old in {old for old, new in pairs if new == trace}:
            found |= {old} if old in said else settled_before(old)
        return found

    def behind(trace: int) -> set[int]:
        return {old for old, new in pairs if new == trace}.union(
            *(behind(old) for old, new in pairs if new == trace), set()
        )

    stamps = {f"{k:02x}": next(iter(v)) for k, v in said.items() if len(v) == 1}
    differ = {f"{k:02x}": frozenset(v) for k, v in said.items() if len(v) > 1}
    decided = inheriting([Drawn(pairs)], Decisions(stamps=stamps, divided=differ))
    for trace in range(8):
        near = settled_before(trace)
        near -= {old for old in near if any(old in behind(other) for other in near)}
        expected = said[trace] if trace in said else set().union(*(said[old] for old in near))
        name = f"{trace:02x}"
        assert decided.divided.get(name, set()) == (expected if len(expected) > 1 else set())
        assert ({decided.stamps[name]} if name in decided.stamps else set()) == (
            expected if len(expected) == 1 else set()
        )
