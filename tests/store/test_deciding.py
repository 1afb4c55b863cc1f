"""Decisions held against what is stored."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.findings import Finding
from tracemark.store.deciding import refuted_by
from tracemark.store.disputes import check_decisions, check_disputes
from tracemark.store.selection import Decisions, Selection
from tracemark.store.state import Statement, harness_named
from tracemark.store.store import Store

PLACE = {"component": "runtime", "part": "only", "text": "another limit"}


def refuted(make, letter: str, evidence: str = "claimed") -> dict[str, Any]:
    """Return a stamp that names a harness, and says that the content refutes it."""
    stamp = make.stamp(letter, evidence)
    del stamp["declared"]["fingerprint"]
    return {**stamp, "contradictions": [PLACE]}


def named(make, letter: str) -> str:
    fingerprint = harness_named(make.stamp(letter))
    assert fingerprint is not None
    return fingerprint


@pytest.mark.parametrize("later", [False, True])
def test_a_decision_for_a_harness_that_a_statement_refutes_is_void(make, root: Path, later: bool) -> None:
    line = make.trace(1) if later else make.trace(1, refuted(make, "a"))
    trace = make.id_of(line)
    with Store.open(root, create=True) as store:
        make.commit(store, line, make.trace(2, make.stamp("b")))
        if later:
            store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": refuted(make, "a")})])
        wrong, right = named(make, "a"), named(make, "b")
        for decided, expected in ((wrong, None), (right, right), (None, None)):
            decisions = Decisions(stamps={trace: decided})
            state = store.state(trace, decisions)
            assert (state.row.fingerprint, state.row.contradicted) == (expected, True)
            applied = store.applied(decisions)
            assert applied.void == ({trace: wrong} if decided == wrong else {})
            assert applied.stamps == ({} if decided == wrong else {trace: decided})
            wanted = Selection(fingerprints=frozenset({wrong}))
            assert list(store.select(wanted, decisions)) == []


def test_a_void_decision_leaves_a_dispute_open(make, root: Path) -> None:
    line = make.trace(1, refuted(make, "a", "recorded"))
    trace = make.id_of(line)
    with Store.open(root, create=True) as store:
        make.commit(store, line)
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("b")})])
        assert store.state(trace, Decisions(stamps={trace: named(make, "a")})).contested
        assert not store.state(trace, Decisions(stamps={trace: named(make, "b")})).contested


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_refuted_claim_in_a_copy_disputes_nothing(make, root: Path, order: tuple[int, int]) -> None:
    copies = [make.trace(1, refuted(make, "a")), make.trace(1, make.stamp("b"))]
    trace = make.id_of(copies[0])
    with Store.open(root, create=True) as store:
        for number in order:
            make.commit(store, copies[number])
        state = store.state(trace)
        assert (state.row.fingerprint, state.conflicts, state.row.contradicted) == (make.fingerprint("b"), (), False)
        assert store.counts()["copies"] == 1


def test_a_decision_about_a_trace_that_is_not_stored_is_left_as_it_is(make, root: Path) -> None:
    decisions = Decisions(stamps={"0" * 64: named(make, "a")})
    with Store.open(root, create=True) as store:
        assert store.applied(decisions) == decisions


def test_only_whole_stamps_that_are_refuted_name_what_the_content_refutes(make) -> None:
    partial = refuted(make, "b")
    del partial["declared"]["components"]["runtime"]
    stamps = [refuted(make, "a"), partial, make.stamp("c"), {}, None]
    assert refuted_by([Statement("", harness=stamp) for stamp in stamps]) == {named(make, "a")}


@pytest.mark.parametrize("excluded", [False, True])
def test_no_decision_is_judged_by_a_stored_line_that_is_not_what_its_id_says(make, root: Path, excluded: bool) -> None:
    judged: list[bytes] = []

    def excludes(fingerprint: str, line: bytes) -> bool:
        judged.append(line)
        return excluded

    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        store.catalogue._db.execute("UPDATE traces SET id = zeroblob(32), key = 0")
        decisions = Decisions(stamps={"0" * 64: named(make, "a")}, excludes=excludes)
        for ask in (store.applied, partial(store.state, "0" * 64)):
            with pytest.raises(IntegrityError, match="not what its id says"):
                ask(decisions)
        # checking goes on: that such a line is there is a finding of its own
        assert check_decisions(store.layout, decisions) == []
    assert judged == []


# --- retraction


def source(raw: str) -> dict[str, Any]:
    return {"source": {"raw": digest.sha256(raw.encode()), "importer": "atif", "importer_version": "1"}}


def test_a_retraction_reaches_every_reading_of_every_record_and_no_other_run(make, root: Path) -> None:
    old, new = make.trace(1), make.trace(1, trajectory={"notes": "2"}, source={"raw": digest.sha256(b"b")})
    newest = make.trace(1, trajectory={"notes": "3"}, source={"raw": digest.sha256(b"c")})
    other, apart = make.trace(2), make.trace(3, source={"raw": ""})
    ids = [make.id_of(line) for line in (old, new, newest, other, apart)]
    with Store.open(root, create=True) as store:
        make.commit(store, old, new, newest, other, apart)

        def retracted(**decided: Any) -> list[bool]:
            return [store.state(trace, Decisions(**decided)).retracted for trace in ids]

        first = frozenset({ids[0]})
        assert retracted(retracted=first) == [True, False, False, False, False]
        store.commit_annotations("sources", [make.annotation("sources", ids[0], source("b"))])
        assert retracted(retracted=first) == [True, True, False, False, False]
        store.commit_annotations("sources", [make.annotation("sources", ids[1], source("c"))])
        assert retracted(retracted=first) == [True, True, True, False, False]
        assert retracted(retracted=frozenset({ids[2]})) == [True, True, True, False, False]
        assert retracted(retracted_records=frozenset({digest.sha256(b"c")})) == [True, True, True, False, False]
        assert retracted(retracted=frozenset({ids[4]})) == [False, False, False, False, True]
        freed = {digest.sha256(b"b"), digest.sha256(b"c")}

        def spared(trace: str, held: Collection[str]) -> set[str]:
            return freed.intersection(held) if trace == ids[0] else set()

        assert retracted(retracted=first, spared=spared) == [True, False, False, False, False]
        records = {digest.sha256(raw) for raw in (b"1", b"b", b"c")}
        assert [store.records_of_run(trace) for trace in ids[:3]] == [records] * 3
        assert store.records_of_run(ids[4]) == set()
        batches, others = store.split([make.fingerprint("a")], Decisions(retracted=first))
        states = [state for batch in batches for state in batch.states]
        assert {(state.trace_id, state.retracted) for state in states} == {(trace, True) for trace in ids[:3]}
        assert sum(plain.traces for plain in others) == 2


def test_of_a_void_decision_alone_the_trace_is_among_those_without_a_harness(make, root: Path) -> None:
    line = make.trace(1, make.stamp("a"))
    trace, harness = make.id_of(line), make.fingerprint("a")
    with Store.open(root, create=True) as store:
        make.commit(store, line, make.trace(2, make.stamp("b")))
        decided = Decisions(stamps={trace: harness}, excludes=lambda *_: True)
        unstamped = Selection(fingerprints=frozenset({None}))
        applied = store.applied(decided)
        assert (applied.void, applied.stamps) == ({trace: harness}, {})
        for decisions in (decided, applied):
            assert [state.trace_id for state in store.select(unstamped, decisions)] == [trace]


def test_only_decisions_about_traces_that_can_be_wanted_are_held_to_the_content(make, root: Path) -> None:
    lines = [make.trace(number, make.stamp("a")) for number in range(4)]
    ids = [make.id_of(line) for line in lines]
    judged: list[str] = []

    def excludes(fingerprint: str, line: bytes) -> bool:
        judged.append(fingerprint)
        return False

    with Store.open(root, create=True) as store:
        make.commit(store, *lines)
        decisions = Decisions(stamps=dict.fromkeys(ids, make.fingerprint("b")), excludes=excludes)
        next(store.select(Selection(), decisions))
        assert len(judged) == 1
        other = Selection(fingerprints=frozenset({make.fingerprint("c"), None}))
        assert (list(store.select(other, decisions)), len(judged)) == ([], 1)
        for letter, expected in (("a", 0), ("b", 4)):
            wanted = Selection(fingerprints=frozenset({make.fingerprint(letter)}))
            assert len(list(store.select(wanted, decisions))) == expected


def test_check_and_those_who_ask_the_store_hold_decisions_to_one_rule(make, root: Path) -> None:
    lines = [make.trace(n, refuted(make, "a") if n == 1 else None) for n in range(1, 6)]
    ids = [make.id_of(line) for line in lines]
    wrong = named(make, "a")
    stamps = {trace: None if trace == ids[4] else wrong for trace in ids}

    def excludes(fingerprint: str, line: bytes) -> bool:
        return fingerprint == wrong and line == lines[2]

    with Store.open(root, create=True) as store:
        make.commit(store, *lines)
        list(store.select(Selection()))
        # the state that the catalogue keeps of the second is that of before
        store.commit_annotations("stamps", [make.annotation("stamps", ids[1], {"harness": refuted(make, "a")})])
        decisions = Decisions(stamps=stamps, excludes=excludes)
        found = check_decisions(store.layout, decisions)
        assert store.catalogue.stale(9) == [bytes.fromhex(ids[1])]
        void = store.applied(decisions).void
        assert void == dict.fromkeys(ids[:3], wrong)
        assert {one.where for one in found} == {f"trace {trace[:12]}" for trace in void}
        states = {state.trace_id: state for state in store.select(Selection(), decisions)}
        assert [states[trace].settled for trace in ids] == [trace not in void for trace in ids]


def test_a_decision_that_a_statement_may_refute_is_left_aside_by_the_name_of_the_file_that_cannot_be_read(
    make, root: Path
) -> None:
    line = make.trace(1)
    trace = make.id_of(line)
    with Store.open(root, create=True) as store:
        make.commit(store, line)
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": refuted(make, "a")})])
        assert store.state(trace).row.contradicted
        [file] = (root / "traces" / "annotations" / "stamps").iterdir()
        file.write_bytes(file.read_bytes()[:20])
        damaged: list[Finding] = []
        [state] = store.select(Selection(), Decisions(stamps={trace: named(make, "a")}), damaged)
        assert not state.settled
        assert [(one.code, one.where) for one in damaged] == [
            ("file-damaged", f"traces/annotations/stamps/{file.name}")
        ]


def test_of_decisions_that_differ_the_one_that_content_leaves_holds(make, root: Path) -> None:
    a, b, c = (named(make, name) for name in "abc")
    line = make.trace(1, refuted(make, "a"))
    trace = make.id_of(line)

    def excludes(fingerprint: str, _: bytes) -> bool:
        return fingerprint == b

    def stand(*said: str | None) -> tuple[str | None, bool, bool]:
        decisions = Decisions(divided={trace: frozenset(said)}, excludes=excludes)
        wanted = Selection(fingerprints=frozenset({None, a, b, c}))
        states = [*store.select(wanted, decisions), store.state(trace, store.applied(decisions))]
        states.append(store.state(trace, store.applied(store.applied(decisions))))
        (found,) = {(state.row.fingerprint, state.settled, state.contested) for state in states}
        assert [one.code for one in check_disputes(store.layout, decisions)] == ["contested"] * found[2]
        only = Selection(fingerprints=frozenset({found[0]}))
        assert [state.trace_id for state in store.select(only, decisions)] == [trace]
        return found

    with Store.open(root, create=True) as store:
        make.commit(store, line)
        assert stand(c, None) == (None, False, True)
        assert stand(a, c) == (c, True, False), "a statement shows that the content refutes it"
        assert stand(b, None) == (None, True, False), "comparing shows it"
        assert stand(a, b, c) == (c, True, False)
        assert stand(a, b) == (None, False, True), "none of them is left"
        assert stand(a, c, None) == (None, False, True)


def test_decisions_that_differ_and_cannot_be_held_to_damaged_content_leave_the_trace_contested(
    make, root: Path
) -> None:
    line = make.trace(1, make.stamp("a"))
    trace = make.id_of(line)
    with Store.open(root, create=True) as store:
        make.commit(store, line)
        (segment,) = root.rglob("traces/segments/**/*.jsonl.zst")
        segment.write_bytes(b"x" * segment.stat().st_size)
        decisions = Decisions(divided={trace: frozenset({named(make, "b"), None})}, excludes=lambda *_: True)
        damaged: list[Finding] = []
        (state,) = store.select(Selection(), decisions, damaged)
        assert (state.contested, [found.code for found in damaged]) == (True, ["file-damaged"])
