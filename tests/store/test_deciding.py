"""Decisions held against what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracemark.store.deciding import refuted_by
from tracemark.store.selection import Decisions, Selection
from tracemark.store.state import Statement, harness_named
from tracemark.store.store import Store

PLACE = {"component": "runtime", "part": "only", "text": "another limit"}


def refuted(make, letter: str) -> dict[str, Any]:
    """Return a stamp that names a harness, and says that the content refutes it."""
    stamp = make.stamp(letter, "claimed")
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
    line = make.trace(1, refuted(make, "a"))
    trace = make.id_of(line)
    with Store.open(root, create=True) as store:
        make.commit(store, line)
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("b")})])
        assert store.state(trace, Decisions(stamps={trace: named(make, "a")})).contested
        assert not store.state(trace, Decisions(stamps={trace: named(make, "b")})).contested


def test_a_decision_about_a_trace_that_is_not_stored_is_left_as_it_is(make, root: Path) -> None:
    decisions = Decisions(stamps={"0" * 64: named(make, "a")})
    with Store.open(root, create=True) as store:
        assert store.applied(decisions) == decisions


def test_only_whole_stamps_that_are_refuted_name_what_the_content_refutes(make) -> None:
    partial = refuted(make, "b")
    del partial["declared"]["components"]["runtime"]
    stamps = [refuted(make, "a"), partial, make.stamp("c"), {}, None]
    assert refuted_by([Statement("", harness=stamp) for stamp in stamps]) == {named(make, "a")}
