"""A newer importer version reads a run again: what was decided and stated of the run holds for the new trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tracemark.acts import decisions, health
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.model.decision import Kind
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document, write_version

Newer = Callable[[str], None]


@pytest.fixture
def desk(shop: Shop) -> Shop:
    """The corpus, desk_a accepted under the policy `claimed`; no content tells desk_d, a handler apart, from it."""
    write_version(shop.root, "desk_d", handler="[:9]")
    shop.accept()
    shop.set(("evidence: unique", "evidence: claimed"))
    return shop


def again(shop: Shop, harness: str | None = "desk_a", name: str = "runs") -> IngestReport:
    """Ingest one file of the inbox again."""
    return ingest(shop.root, [shop.root / "inbox" / f"{name}.jsonl"], IngestOptions(harness=harness))


def newest(shop: Shop, task: str) -> str:
    """Return the id of the one trace of a task that nothing supersedes."""
    with open_store(shop.root) as store:
        (found,) = [state.trace_id for state in store.select(Selection(tasks=frozenset({task})))]
        return found


def stamp(shop: Shop, trace: str, harness: str) -> None:
    decisions.stamp(shop.root, [trace], harness, "looked at it", CLOCK)


def taken(shop: Shop) -> set[str]:
    """Return the tasks of the runs that an export takes."""
    shop.export()
    with open_store(shop.root) as store:
        by_id = {state.trace_id: state.row.task or "" for state in store.select(Selection())}
    return {by_id[row["tracemark_trace_id"]] for row in shop.rows()}


def codes(shop: Shop) -> set[str]:
    """Return the codes of what `check` finds, siblings aside."""
    return {found.code for found in health.check(shop.root).findings} - {"siblings-alike"}


# --- what was decided


@pytest.mark.parametrize("versions", [["90"], ["90", "91"]])
def test_a_run_that_was_settled_under_no_harness_stays_so(desk: Shop, newer: Newer, versions: list[str]) -> None:
    old = newest(desk, "t-0")
    stamp(desk, old, "none")
    assert taken(desk) == {"t-1", "t-2"}
    for version in versions:
        newer(version)
        assert again(desk).reimported == 3
    new = newest(desk, "t-0")
    assert new != old
    assert taken(desk) == {"t-1", "t-2"}
    assert codes(desk) == set()


def test_a_decision_about_the_older_reading_holds_also_when_it_is_made_later(desk: Shop, newer: Newer) -> None:
    old = newest(desk, "t-0")
    newer("90")
    again(desk)
    desk.enter(Kind.STAMP, {"trace": old, "fingerprint": None})
    assert taken(desk) == {"t-1", "t-2"}


def test_the_new_trace_can_be_settled_by_itself(desk: Shop, newer: Newer) -> None:
    stamp(desk, newest(desk, "t-0"), "none")
    newer("90")
    again(desk)
    stamp(desk, newest(desk, "t-0"), "desk_a")
    assert taken(desk) == {"t-0", "t-1", "t-2"}


def test_a_contested_run_that_was_settled_under_another_harness_stays_so(desk: Shop, newer: Newer) -> None:
    desk.ingest([document("s-1")], name="single")
    again(desk, "desk_d", "single")
    stamp(desk, newest(desk, "s-1"), "desk_d")
    newer("90")
    assert again(desk, name="single").reimported == 1
    with open_store(desk.root) as store:
        state = store.state(newest(desk, "s-1"), Corpus(desk.root).store_decisions)
    assert state.row.fingerprint == desk.fingerprint("desk_d")
    assert taken(desk) == {"t-0", "t-1", "t-2"}


def test_a_retraction_bars_every_reading(desk: Shop, newer: Newer) -> None:
    decisions.retract(desk.root, newest(desk, "t-0"), "holds an address", CLOCK)
    for version in ("90", "91"):
        newer(version)
        again(desk)
    assert taken(desk) == {"t-1", "t-2"}
