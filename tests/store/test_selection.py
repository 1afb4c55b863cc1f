from __future__ import annotations

from pathlib import Path

from tracemark.store.catalogue import Restated, Stored
from tracemark.store.row import project_line
from tracemark.store.segment import Location
from tracemark.store.selection import Decisions, Selection, batches, state_of


def state(make, number: int = 1, restated: Restated | None = None, replaced: tuple[bytes, ...] = (), **decided):
    row = project_line(make.trace(number, make.stamp("a"), outcome={"status": "success"})).row
    stored = Stored(row, f"segments/{number}", Location(0, 1, 0, 1))
    return state_of(stored, restated, replaced, Decisions(**decided))


def test_nothing_in_a_selection_matters_unless_it_is_said(make) -> None:
    assert Selection().matches(state(make))
    one = state(make)
    for chosen, other in (
        (Selection(fingerprints=frozenset({make.fingerprint("a")})), Selection(fingerprints=frozenset({None}))),
        (Selection(statuses=frozenset({"success"})), Selection(statuses=frozenset({"failure"}))),
        (Selection(tasks=frozenset({"t-1"})), Selection(tasks=frozenset())),
        (Selection(named=frozenset({("t-1", None)})), Selection(named=frozenset({("t-1", "desk")}))),
        (Selection(formats=frozenset({"atif"})), Selection(formats=frozenset({"other"}))),
        (Selection(traces=frozenset({one.trace_id})), Selection(traces=frozenset({"0" * 64}))),
    ):
        assert chosen.matches(one)
        assert not other.matches(one)


def test_superseded_traces_are_wanted_only_when_asked_for_and_retracted_ones_unless_not(make) -> None:
    old = state(make, replaced=(b"x" * 32,))
    assert not Selection().matches(old)
    assert Selection(superseded=True).matches(old)
    gone = state(make, retracted=frozenset({old.trace_id}))
    assert Selection().matches(gone)
    assert not Selection(retracted=False).matches(gone)


def test_a_decision_leaves_a_dispute_about_the_outcome_open(make) -> None:
    restated = Restated(
        {"fingerprint": None, "status": "unknown"}, ("harness.declared.fingerprint", "outcome.status"), {}, None
    )
    trace = state(make).trace_id
    decided = state(make, restated=restated, stamps={trace: make.fingerprint("b")})
    assert decided.conflicts == ("outcome.status",)
    assert (decided.row.fingerprint, decided.row.evidence) == (make.fingerprint("b"), "claimed")


def test_batches_cut_by_file_and_keep_the_order(make) -> None:
    states = [state(make, number) for number in (1, 1, 2, 3, 3)]
    cut = list(batches(Path("root"), states))
    assert [(batch.path.as_posix(), len(batch.states)) for batch in cut] == [
        ("root/segments/1", 2), ("root/segments/2", 1), ("root/segments/3", 2),
    ]  # fmt: skip
