"""What decisions mean together: descent decides, never time or the order of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tracemark import digest
from tracemark.ledger import chain
from tracemark.ledger.descent import Past
from tracemark.ledger.entry import Entry, seal
from tracemark.ledger.state import LedgerState, state
from tracemark.model.decision import Decision

A, B, C, D = ("tm1:" + letter * 64 for letter in "abcd")
T, U = "1" * 64, "2" * 64
RAW = "e" * 64


def entry(kind: str, subject: dict[str, Any], *parents: Entry, reason: str = "why") -> Entry:
    return seal(
        Decision(
            kind=kind,
            time="2026-01-01T00:00:00Z",
            reason=reason,
            parents=sorted(parent.digest for parent in parents),
            subject=subject,
        )
    )


def after(*entries: Entry) -> LedgerState:
    return state(chain.of(entries))


def is_retracted(held: LedgerState, trace: str, raw: str | None = None) -> bool:
    return trace in held.retracted or raw in held.retracted_raw


def test_an_empty_ledger_accepts_and_bars_nothing() -> None:
    assert after() == LedgerState()
    assert after().harness is None


def test_the_accept_that_descends_from_the_others_counts() -> None:
    first = entry("accept", {"harness": A, "label": "one"})
    second = entry("accept", {"harness": B}, first)
    assert after(first).harness == A
    assert after(second, first).harness == B
    assert after(first, second).accepted_by == second


def test_an_accept_far_back_holds_through_other_decisions() -> None:
    first = entry("accept", {"harness": A})
    second = entry("retract", {"trace": T}, first)
    assert after(first, second).harness == A


def test_two_concurrent_accepts_that_disagree_are_a_conflict_and_neither_counts() -> None:
    base = entry("accept", {"harness": C})
    ours, theirs = entry("accept", {"harness": A}, base), entry("accept", {"harness": B}, base)
    both = after(base, ours, theirs)
    assert both.harness is None
    assert both.accepted_by is None
    assert [conflict.code for conflict in both.conflicts] == ["ledger-accept-conflict"]
    assert A in both.conflicts[0].message
    assert B in both.conflicts[0].message


def test_two_concurrent_accepts_that_agree_are_none() -> None:
    ours, theirs = entry("accept", {"harness": A}), entry("accept", {"harness": A}, reason="so do we")
    assert after(ours, theirs).harness == A
    assert after(ours, theirs).conflicts == ()


def test_the_next_accept_settles_a_conflict() -> None:
    ours, theirs = entry("accept", {"harness": A}), entry("accept", {"harness": B})
    settled = entry("accept", {"harness": B}, ours, theirs, reason="after talking")
    assert after(ours, theirs, settled).harness == B
    assert after(ours, theirs, settled).conflicts == ()


def test_a_retraction_bars_the_trace_and_its_raw_record() -> None:
    retract = entry("retract", {"trace": T, "raw": RAW})
    held = after(retract)
    assert is_retracted(held, T)
    assert is_retracted(held, U, RAW), "read again from the same record, by a newer importer"
    assert not is_retracted(held, U, "f" * 64)
    assert held.retracted[T] == retract


def test_a_trace_without_a_raw_digest_is_not_barred_by_a_retraction_without_one() -> None:
    assert not is_retracted(after(entry("retract", {"trace": T})), U, None)


def test_only_a_reinstatement_that_descends_from_it_lifts_a_retraction() -> None:
    retract = entry("retract", {"trace": T, "raw": RAW})
    lift = entry("reinstate", {"trace": T, "raw": RAW}, retract)
    assert not is_retracted(after(retract, lift), T, RAW)
    beside = entry("reinstate", {"trace": T, "raw": RAW})
    assert is_retracted(after(retract, beside), T, RAW)


def test_a_retraction_made_beside_a_reinstatement_stands() -> None:
    retract = entry("retract", {"trace": T})
    lift = entry("reinstate", {"trace": T}, retract)
    again = entry("retract", {"trace": T}, retract, reason="on the other branch")
    assert after(retract, lift, again).retracted[T] == again


def test_a_trace_can_be_retracted_again() -> None:
    retract = entry("retract", {"trace": T})
    lift = entry("reinstate", {"trace": T}, retract)
    again = entry("retract", {"trace": T}, lift)
    assert is_retracted(after(retract, lift, again), T)


def test_reinstating_another_trace_of_the_same_record_frees_the_record_and_not_the_first_trace() -> None:
    retract = entry("retract", {"trace": T, "raw": RAW})
    lift = entry("reinstate", {"trace": U, "raw": RAW}, retract)
    held = after(retract, lift)
    assert is_retracted(held, T, RAW)
    assert not is_retracted(held, U, RAW)


def test_a_stamp_settles_a_trace_and_a_later_one_settles_it_anew() -> None:
    first = entry("stamp", {"trace": T, "fingerprint": A})
    second = entry("stamp", {"trace": T, "fingerprint": None}, first)
    assert after(first).stamps == {T: A}
    assert after(first).divided == {}
    assert after(first, second).stamps == {T: None}


def test_concurrent_stamps_that_disagree_leave_the_trace_contested() -> None:
    ours, theirs = (entry("stamp", {"trace": T, "fingerprint": value}) for value in (A, None))
    both = after(ours, theirs)
    assert both.stamps == {}
    assert both.divided == {T: {A, None}}
    assert [conflict.code for conflict in both.conflicts] == ["ledger-stamp-conflict"]


def test_equivalence_is_symmetric_and_carries_through() -> None:
    entries = [entry("equivalent", {"fingerprints": [A, B]}), entry("equivalent", {"fingerprints": [C, B]})]
    held = after(entry("accept", {"harness": C}), *entries)
    assert held.equivalents == (frozenset({A, B, C}),)
    assert held.equivalent_to(held.harness or "") == {A, B, C}
    assert held.equivalent_to(D) == {D}


def test_a_kind_that_is_not_known_changes_nothing() -> None:
    assert after(entry("promote", {"trace": T, "harness": A})) == LedgerState()


steps = st.lists(
    st.tuples(
        st.sampled_from(["accept", "retract", "reinstate", "stamp", "equivalent", "distinct"]),
        st.integers(0, 2),
        st.sets(st.integers(0, 9), max_size=2),
    ),
    max_size=10,
)


def grow(plan: list[tuple[str, int, set[int]]]) -> list[Entry]:
    subjects: dict[str, list[dict[str, Any]]] = {
        "accept": [{"harness": fingerprint} for fingerprint in (A, B, C)],
        "retract": [{"trace": T}, {"trace": T, "raw": RAW}, {"trace": U, "raw": RAW}],
        "reinstate": [{"trace": T}, {"trace": T, "raw": RAW}, {"trace": U, "raw": RAW}],
        "stamp": [{"trace": T, "fingerprint": A}, {"trace": T, "fingerprint": None}, {"trace": U, "fingerprint": B}],
        "equivalent": [{"fingerprints": pair} for pair in ([A, B], [B, C], [C, D])],
        "distinct": [{"fingerprints": pair} for pair in ([B, A], [B, C], [C, D])],
    }
    entries: list[Entry] = []
    for number, (kind, which, parents) in enumerate(plan):
        named = {entries[parent].digest: entries[parent] for parent in parents if parent < len(entries)}
        entries.append(entry(kind, subjects[kind][which], *named.values(), reason=f"step {number}"))
    return entries


@given(steps, st.randoms(use_true_random=False))
def test_the_state_is_a_function_of_the_set_of_entries(plan: list[tuple[str, int, set[int]]], order: Any) -> None:
    entries = grow(plan)
    held = after(*entries)
    order.shuffle(entries)
    again = after(*entries, *entries[:2])
    assert again == held
    assert [set(again.spared(trace, [RAW])) for trace in (T, U)] == [set(held.spared(trace, [RAW])) for trace in (T, U)]


@given(steps)
def test_a_retraction_stays_until_a_descendant_lifts_it(plan: list[tuple[str, int, set[int]]]) -> None:
    entries = [step for step in grow(plan) if step.decision.kind != "reinstate"]
    kept = {step.digest for step in entries}
    entries = [step for step in entries if set(step.decision.parents) <= kept]
    held = after(*chain_closed(entries))
    for step in chain_closed(entries):
        if step.decision.kind == "retract":
            assert is_retracted(held, step.decision.subject["trace"])


def chain_closed(entries: list[Entry]) -> list[Entry]:
    """Drop the entries one of whose ancestors is not there."""
    known: set[str] = set()
    closed = []
    for step in entries:
        if set(step.decision.parents) <= known:
            known.add(step.digest)
            closed.append(step)
    return closed


def name(number: int) -> str:
    return digest.of(number)


LONG: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "each about another trace": lambda at: ("retract", {"trace": name(at), "raw": name(-at)}),
    "retracted and reinstated, and every third not": lambda at: (
        "reinstate" if at % 3 == 1 else "retract",
        {"trace": name(at // 3 * 3 + at % 3 // 2), "raw": name(-(at // 3 * 3 + at % 3 // 2))},
    ),
    "about one trace, to and fro": lambda at: ("reinstate" if at % 2 else "retract", {"trace": T, "raw": RAW}),
    "stamps": lambda at: ("stamp", {"trace": name(at), "fingerprint": A}),
    "equivalences of pairs": lambda at: ("equivalent", {"fingerprints": [f"tm1:{name(2 * at + n)}" for n in (0, 1)]}),
    "equivalences in a row": lambda at: ("equivalent", {"fingerprints": [f"tm1:{name(at + n)}" for n in (0, 1)]}),
}


@pytest.mark.parametrize("made", LONG.values(), ids=LONG)
def test_a_long_ledger_takes_no_longer_than_it_is(made: Callable[[int], tuple[str, dict[str, Any]]]) -> None:
    entries: list[Entry] = []
    for at in range(2400):
        entries.append(entry(*made(at), *entries[-1:]))

    def ask(part: Sequence[Entry]) -> None:
        held = state(chain.Chain(tuple(part)))
        assert not any(any(held.spared(trace, [RAW])) for trace in held.retracted)

    assert growth(ask, entries) < 3


# --- further records of a run


MORE, OTHER = "d" * 64, "c" * 64


def test_a_retraction_bars_every_record_that_it_names_and_a_reinstatement_lifts_those_that_it_names() -> None:
    retract = entry("retract", {"trace": T, "raw": RAW, "also": [OTHER, MORE]})
    assert set(after(retract).retracted_raw) == {RAW, MORE, OTHER}
    lift = entry("reinstate", {"trace": U, "raw": MORE, "also": [RAW]}, retract)
    held = after(retract, lift)
    assert (set(held.retracted), set(held.retracted_raw)) == ({T}, {OTHER})
    beside = entry("reinstate", {"trace": U, "raw": MORE})
    assert set(after(retract, beside).retracted_raw) == {RAW, MORE, OTHER}


def test_what_was_reinstated_of_another_reading_is_spared_by_the_retraction_that_it_had_seen() -> None:
    retract = entry("retract", {"trace": T, "raw": RAW})
    lift = entry("reinstate", {"trace": U, "raw": MORE, "also": [RAW]}, retract)

    def spared(*entries: Entry) -> set[str]:
        held = after(*entries)
        assert not set(held.spared(U, (RAW, MORE, OTHER))), "which was never retracted"
        return set(held.spared(T, (RAW, MORE, OTHER)))

    assert spared(retract) == set()
    assert spared(retract, lift) == {MORE, RAW}
    beside = entry("reinstate", {"trace": U, "raw": MORE})
    assert spared(retract, beside) == set()
    again = entry("retract", {"trace": T, "raw": RAW}, lift, reason="once more")
    assert spared(retract, lift, again) == set()
    itself = entry("reinstate", {"trace": T, "raw": RAW}, lift)
    assert spared(retract, lift, itself) == set(), "nothing is spared by a retraction that was lifted"


@given(steps)
def test_a_retraction_spares_what_one_reinstatement_names_that_had_seen_all_of_them(
    plan: list[tuple[str, int, set[int]]],
) -> None:
    ledger = chain.of(grow(plan))
    held, past = state(ledger), Past(ledger)

    def made(kind: str, concerns: Callable[[dict[str, Any]], bool]) -> list[Entry]:
        return [one for one in ledger.entries if one.decision.kind == kind and concerns(one.decision.subject)]

    for trace in (T, U):
        barring = made("retract", lambda subject, trace=trace: subject["trace"] == trace)
        lifts = made("reinstate", lambda subject: subject.get("raw") == RAW)
        seen = any(all(past.descends(lift, one) for one in barring) for lift in lifts)
        assert set(held.spared(trace, [RAW, MORE])) == ({RAW} if trace in held.retracted and seen else set())


# --- equivalence, declared and taken back


def test_a_declaration_holds_until_a_descendant_takes_it_back() -> None:
    first = entry("equivalent", {"fingerprints": [A, B]})
    back = entry("distinct", {"fingerprints": [B, A]}, first)
    again = entry("equivalent", {"fingerprints": [A, B]}, back)
    assert after(first).equivalences == (first,)
    assert after(first, back) == LedgerState()
    assert after(first, back, again).equivalences == (again,)


def test_taking_back_one_pair_leaves_what_others_join() -> None:
    first, second = (entry("equivalent", {"fingerprints": pair}) for pair in ([A, B], [B, C]))
    back = entry("distinct", {"fingerprints": [A, B]}, first, second)
    held = after(first, second, back)
    assert held.equivalents == (frozenset({B, C}),)
    assert held.equivalences_of(C) == [second]
    assert held.equivalences_of(A) == []


def test_declared_on_one_branch_and_taken_back_on_another_it_does_not_hold() -> None:
    first = entry("equivalent", {"fingerprints": [A, B]})
    back = entry("distinct", {"fingerprints": [A, B]}, first)
    again = entry("equivalent", {"fingerprints": [A, B]}, back)
    beside = entry("distinct", {"fingerprints": [A, B]}, first, reason="there too")
    held = after(first, back, again, beside)
    assert held.equivalents == ()
    assert held.half_withdrawn == (frozenset({A, B}),)
    assert [conflict.code for conflict in held.conflicts] == ["ledger-equivalent-conflict"]
    settled = entry("equivalent", {"fingerprints": [A, B]}, again, beside)
    assert after(first, back, again, beside, settled).equivalents == (frozenset({A, B}),)


@given(steps)
def test_fingerprints_count_as_one_by_declarations_in_force_alone(plan: list[tuple[str, int, set[int]]]) -> None:
    held = after(*chain_closed(grow(plan)))
    joined = [frozenset(one.decision.subject["fingerprints"]) for one in held.equivalences]
    assert all(any(pair <= group for group in held.equivalents) for pair in joined)
    assert frozenset().union(*joined) == frozenset().union(*held.equivalents)
    assert not set(joined) & set(held.half_withdrawn)
