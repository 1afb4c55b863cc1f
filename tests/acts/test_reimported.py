"""A newer importer version reads a run again: what was decided and stated of the run holds for the new trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracemark.acts import audit, decisions, harnesses, health, traces
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.errors import NegativeAnswerError
from tracemark.importers import atif, atif_repair
from tracemark.ledger import chain
from tracemark.model.annotation import build
from tracemark.model.decision import Kind
from tracemark.store.selection import Selection, State

from .conftest import CLOCK, Shop, document, write_version

Newer = Callable[..., None]


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
    shown = audit.audit(desk.root, new)
    assert (shown.fingerprint, shown.export) == (None, "no: no-fingerprint")
    assert [(one["kind"], one["trace"]) for one in shown.decisions] == [("stamp", old)]
    assert "trace" not in audit.audit(desk.root, old).decisions[0]
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
    decisions.retract(desk.root, [newest(desk, "t-0")], "holds an address", CLOCK)
    for version in ("90", "91"):
        newer(version)
        again(desk)
    assert taken(desk) == {"t-1", "t-2"}


# --- what branches decide differently


def decided_beside(shop: Shop, trace: str, *fingerprints: str | None) -> None:
    """Enter decisions about a trace, none of which had seen another, as a merge of branches brings them in."""
    path = shop.root / chain.NAME
    seen = chain.read(path)
    for fingerprint in fingerprints:
        draft = chain.Draft(Kind.STAMP, {"trace": trace, "fingerprint": fingerprint}, "merged")
        chain.append(path, seen, draft, CLOCK)


def test_a_trace_that_branches_settle_differently_is_contested_everywhere(desk: Shop) -> None:
    trace = newest(desk, "t-0")
    decided_beside(desk, trace, None, desk.fingerprint("desk_d"))
    report = desk.export()
    assert (report.rows, report.excluded["contested"]) == (2, 1)
    assert taken(desk) == {"t-1", "t-2"}
    shown = audit.audit(desk.root, trace)
    assert (shown.fingerprint, shown.export) == (None, "no: contested")
    assert [one["kind"] for one in shown.decisions] == ["stamp", "stamp"]
    listed = {row["trace_id"]: row["flags"] for row in traces.list_(desk.root, traces.TraceFilter()).traces}
    assert [row for row, flags in listed.items() if "contested" in flags] == [trace]
    assert {row["name"]: row["traces"] for row in harnesses.list_(desk.root).harnesses}["desk_a"] == 2
    assert codes(desk) == {"ledger-stamp-conflict", "contested"}
    stamp(desk, trace, "desk_a")
    assert (taken(desk), codes(desk)) == ({"t-0", "t-1", "t-2"}, set())


def test_an_export_that_took_a_trace_says_when_branches_settle_it_differently(desk: Shop) -> None:
    desk.export()
    decided_beside(desk, newest(desk, "t-0"), None, desk.fingerprint("desk_d"))
    audited = audit.audit(desk.root, str(desk.root / "exports" / "sft"))
    assert "export-trace-contested" in {found.code for found in audited.findings}


def test_where_content_leaves_one_of_the_decisions_it_holds_and_can_be_decided(desk: Shop) -> None:
    trace = newest(desk, "t-0")
    decided_beside(desk, trace, desk.fingerprint("desk_b"), desk.fingerprint("desk_a"))
    assert taken(desk) == {"t-0", "t-1", "t-2"}
    assert codes(desk) == {"ledger-stamp-conflict"}
    stamp(desk, trace, "desk_a")
    assert codes(desk) == set()


def test_a_newer_reading_of_what_branches_settle_differently_is_contested_until_it_is_settled(
    desk: Shop, newer: Newer
) -> None:
    old = newest(desk, "t-0")
    decided_beside(desk, old, None, desk.fingerprint("desk_d"))
    newer("90")
    again(desk)
    new = newest(desk, "t-0")
    assert audit.audit(desk.root, new).export == "no: contested"
    assert {one["trace"] for one in audit.audit(desk.root, new).decisions} == {old}
    stamp(desk, new, "desk_a")
    assert taken(desk) == {"t-0", "t-1", "t-2"}
    assert codes(desk) == {"ledger-stamp-conflict"}
    stamp(desk, old, "desk_a")
    assert codes(desk) == set()


@pytest.mark.parametrize("name", ["desk_a", "desk_d", "none"])
def test_what_was_decided_of_an_older_reading_is_not_inherited_where_branches_disagree(
    desk: Shop, newer: Newer, name: str
) -> None:
    old, other = newest(desk, "t-0"), desk.fingerprint("desk_d")
    newer("90")
    again(desk)
    new = newest(desk, "t-0")
    desk.enter(Kind.STAMP, {"trace": old, "fingerprint": other})
    decided_beside(desk, new, None, other)
    assert audit.audit(desk.root, new).export == "no: contested"
    stamp(desk, new, name)
    assert codes(desk) == set()
    with open_store(desk.root) as store:
        state = store.state(new, Corpus(desk.root).store_decisions)
    assert (state.row.fingerprint, state.settled) == (None if name == "none" else desk.fingerprint(name), True)


def test_a_stamp_that_would_have_no_effect_is_refused_and_names_the_newer_reading(desk: Shop, newer: Newer) -> None:
    old = newest(desk, "t-0")
    newer("90")
    again(desk)
    new = newest(desk, "t-0")
    stamp(desk, new, "desk_a")
    with pytest.raises(NegativeAnswerError, match=new) as refused:
        stamp(desk, old, "none")
    assert refused.value.where == old
    assert (refused.value.hint or "").startswith(f"tracemark stamp {new[:12]} ")
    assert taken(desk) == {"t-0", "t-1", "t-2"}
    stamp(desk, new, "none")
    assert taken(desk) == {"t-1", "t-2"}


@pytest.mark.parametrize("void", [True, False])
def test_what_check_names_of_an_older_reading_can_be_decided_though_the_newer_was(
    desk: Shop, newer: Newer, void: bool
) -> None:
    old = newest(desk, "t-0")
    newer("90")
    again(desk)
    stamp(desk, newest(desk, "t-0"), "desk_a")
    decided_beside(desk, old, *[desk.fingerprint("desk_b")] if void else [None, desk.fingerprint("desk_d")])
    assert codes(desk) == ({"decision-refuted"} if void else {"ledger-stamp-conflict"})
    stamp(desk, old, "desk_a")
    assert codes(desk) == set()


# --- what was stated


def outcomes(shop: Shop, task: str) -> tuple[str, bool]:
    """Return status of the newest trace of a task, and whether it is contested."""
    with open_store(shop.root) as store:
        state = store.state(newest(shop, task))
        return state.row.status, state.contested


def inherited(report: IngestReport) -> list[str]:
    return [found.message for found in report.findings if found.code == "reading-inherits"]


@pytest.mark.parametrize("versions", [["90"], ["90", "91"]])
def test_the_harness_that_was_claimed_holds_when_nobody_claims_one_now(
    desk: Shop, newer: Newer, versions: list[str]
) -> None:
    old = newest(desk, "t-0")
    for version in versions:
        newer(version)
        report = again(desk, None)
        assert (report.reimported, report.harnesses) == (3, {"desk_a": 3})
        assert inherited(report) == ["newer readings of known records inherit 3 statements of the harness"]
    assert taken(desk) == {"t-0", "t-1", "t-2"}
    shown = audit.audit(desk.root, newest(desk, "t-0"))
    assert shown.inherited == [{"of": "harness", "trace": old, "source": "runs.jsonl"}]
    assert audit.audit(desk.root, old).inherited == []
    assert codes(desk) == set()


def test_a_claim_that_is_made_again_is_not_inherited_beside_itself(desk: Shop, newer: Newer) -> None:
    newer("90")
    report = again(desk)
    assert (report.reimported, inherited(report)) == (3, [])


def test_another_claim_now_disputes_the_one_that_was_made(desk: Shop, newer: Newer) -> None:
    newer("90")
    report = again(desk, "desk_d")
    assert (report.reimported, report.contested) == (3, 3)


def test_a_dispute_about_the_harness_stays_until_somebody_decides(desk: Shop, newer: Newer) -> None:
    desk.ingest([document("s-1")], name="single")
    again(desk, "desk_d", "single")
    newer("90")
    report = again(desk, name="single")
    assert (report.contested, outcomes(desk, "s-1")[1]) == (1, True)
    assert taken(desk) == {"t-0", "t-1", "t-2"}
    stamp(desk, newest(desk, "s-1"), "desk_a")
    assert "s-1" in taken(desk)


def test_a_claim_that_the_newer_reading_refutes_is_refuted(desk: Shop, newer: Newer, monkeypatch) -> None:
    newer("90")
    reading = atif_repair.raise_version

    def mended(read: dict[str, Any], repairs: list[str]) -> Any:
        result = reading(read, repairs)
        read["steps"][0]["message"] = "Quite different, whatever the older version made of it."
        return result

    monkeypatch.setattr(atif_repair, "raise_version", mended)
    report = again(desk, None)
    assert (report.contradicted, report.exit_code) == (3, 1)
    shown = audit.audit(desk.root, newest(desk, "t-0"))
    assert (shown.fingerprint, [one["harness"] for one in shown.contradictions]) == (None, ["desk_a"])


def test_a_claim_that_was_refuted_says_nothing_of_the_newer_reading(desk: Shop, newer: Newer) -> None:
    desk.ingest([document("s-1", extra="Be brief.")], "desk_a", "single")
    newer("90")
    report = again(desk, None, "single")
    assert (report.reimported, inherited(report)) == (1, [])
    assert again(desk, "desk_b", "single").strengthened == 1


@pytest.fixture
def disputed(desk: Shop) -> Shop:
    """The corpus with a run of which two records say different outcomes."""
    desk.ingest([document("s-1")], name="one")
    report = desk.ingest([document("s-1", reward=0.0)], name="two")
    assert (report.disputing, outcomes(desk, "s-1")) == (1, ("unknown", True))
    return desk


@pytest.mark.parametrize("names", [["one"], ["two"], ["one", "two"], ["two", "one"]])
def test_a_dispute_about_the_outcome_stays_whichever_of_the_records_is_read_again(
    disputed: Shop, newer: Newer, names: list[str]
) -> None:
    for version in ("90", "91"):
        newer(version)
        assert again(disputed, name=names[0]).reimported == 1
        for name in names[1:]:
            again(disputed, name=name)
        assert outcomes(disputed, "s-1") == ("unknown", True)
    assert taken(disputed) == {"t-0", "t-1", "t-2"}
    assert again(disputed, name=names[-1]).duplicates == 1


def test_what_a_record_says_now_replaces_what_an_older_version_made_of_it(
    disputed: Shop, newer: Newer, monkeypatch
) -> None:
    newer("90")
    again(disputed, name="one")
    facts = atif._facts

    def mended(*arguments: Any) -> Any:
        run, _, doubts = facts(*arguments)
        return run, {"status": "success", "reward": 1.0}, doubts

    monkeypatch.setattr(atif, "_facts", mended)
    report = again(disputed, name="two")
    assert (report.contested, outcomes(disputed, "s-1")) == (0, ("success", False))
    assert again(disputed, name="two").duplicates == 1


def test_what_settled_a_disputed_outcome_settles_it_for_the_newer_reading(disputed: Shop, newer: Newer) -> None:
    trace = newest(disputed, "s-1")
    with open_store(disputed.root) as store:
        head, other = store.statements([trace])[trace]
        note = build(
            "outcomes", {"outcome": {"status": "failure", "reward": 0.5}}, {"name": "g", "version": "1"}, trace
        )
        store.commit_annotations("outcomes", [{**note, "supersedes": sorted([head.digest, other.digest])}])
    assert outcomes(disputed, "s-1") == ("failure", False)
    newer("90")
    again(disputed, name="one")
    assert outcomes(disputed, "s-1") == ("failure", False)


# --- readings that part, and that meet


def ingest_both(desk: Shop, harness: str | None, together: bool, reward: float = 0.0) -> list[IngestReport]:
    """Ingest two records that differ in their notes, and `reward` of the second, in one file or in two."""
    both = [{**document("s-1"), "notes": "one"}, {**document("s-1", reward=reward), "notes": "two"}]
    if together:
        return [desk.ingest(both, harness, "both")]
    return [desk.ingest([one], harness, name) for one, name in zip(both, ("one", "two"), strict=True)]


def total(reports: list[IngestReport], member: str) -> int:
    return sum(getattr(report, member) for report in reports)


def of_task(shop: Shop, task: str) -> list[State]:
    """Return the traces of a task that nothing supersedes, as decided."""
    wanted = Selection(tasks=frozenset({task}))
    with open_store(shop.root) as store:
        return list(store.select(wanted, Corpus(shop.root).store_decisions))


@pytest.mark.parametrize("together", [True, False])
def test_two_readings_that_become_one_are_both_superseded_by_it(desk: Shop, newer: Newer, together: bool) -> None:
    newer("90", notes=True)
    assert total(ingest_both(desk, "desk_a", together), "ingested") == 2
    olds = {state.trace_id for state in of_task(desk, "s-1")}
    assert len(olds) == 2
    newer("91")
    reports = ingest_both(desk, None, together)
    assert [total(reports, name) for name in ("reimported", "duplicates", "contested")] == [2, 0, 1]
    assert sum(report.harnesses["desk_a"] for report in reports) == 2
    (state,) = of_task(desk, "s-1")
    assert state.contested
    with open_store(desk.root) as store:
        assert {old for old in olds if store.state(old).superseded_by == (state.trace_id,)} == olds
    before = desk.ids()
    reports = ingest_both(desk, None, together)
    assert [total(reports, name) for name in ("reimported", "duplicates")] == [0, 2]
    assert desk.ids() == before
    assert codes(desk) == {"contested"}


def test_two_readings_that_become_one_and_were_decided_differently_leave_it_contested(desk: Shop, newer: Newer) -> None:
    newer("90", notes=True)
    ingest_both(desk, "desk_a", True)
    for state, name in zip(of_task(desk, "s-1"), ("desk_a", "none"), strict=True):
        stamp(desk, state.trace_id, name)
    newer("91")
    ingest_both(desk, "desk_a", True)
    (state,) = of_task(desk, "s-1")
    assert ("harness.declared.fingerprint" in state.conflicts, state.row.fingerprint) == (True, None)


def test_a_reading_that_becomes_two_is_superseded_by_both(desk: Shop, newer: Newer) -> None:
    newer("90")
    ingest_both(desk, "desk_a", True, reward=1.0)
    (old,) = of_task(desk, "s-1")
    stamp(desk, old.trace_id, "none")
    newer("91", notes=True)
    reports = ingest_both(desk, None, True, reward=1.0)
    assert [total(reports, name) for name in ("reimported", "contested")] == [2, 0]
    states = of_task(desk, "s-1")
    assert [(state.settled, state.row.fingerprint) for state in states] == [(True, None)] * 2
    assert inherited(reports[0])[0].startswith("newer readings of known records inherit 2 decisions, ")
    assert taken(desk) == {"t-0", "t-1", "t-2"}


def test_where_a_disputed_reading_becomes_two_the_dispute_is_of_both(desk: Shop, newer: Newer) -> None:
    newer("90")
    ingest_both(desk, "desk_a", True)
    newer("91", notes=True)
    assert total(ingest_both(desk, None, True), "contested") == 2
    assert [state.contested for state in of_task(desk, "s-1")] == [True, True]


# --- a name that means another harness by now, a run that only tries, a catalogue that is made again


def test_a_name_means_what_it_meant_when_the_run_was_read_first(desk: Shop, newer: Newer) -> None:
    meant = desk.fingerprint("desk_a")
    folder = desk.root / "harness_versions" / "desk_a"
    (folder / "observe.py").write_text((folder / "observe.py").read_text() + "\n\nADDED = 1\n")
    assert desk.fingerprint("desk_a") != meant
    newer("90")
    report = again(desk)
    assert (report.reimported, report.contested, report.claims_dropped) == (3, 0, 3)
    assert {state.row.fingerprint for state in of_task(desk, "t-0")} == {meant}


def test_a_dry_run_says_what_the_run_will_say(disputed: Shop, newer: Newer) -> None:
    stamp(disputed, newest(disputed, "t-0"), "none")
    newer("90")
    sources = [disputed.root / "inbox" / f"{name}.jsonl" for name in ("one", "runs", "two")]
    tried = ingest(disputed.root, sources, IngestOptions(dry_run=True))
    done = ingest(disputed.root, sources, IngestOptions())
    assert (tried.as_json() | {"dry_run": False}) == done.as_json()
    assert (done.reimported, done.contested) == (4, 1)


def test_what_is_inherited_is_in_the_files(disputed: Shop, newer: Newer) -> None:
    stamp(disputed, newest(disputed, "t-0"), "none")
    newer("90")
    again(disputed, None, "one")
    again(disputed, None)
    before = [of_task(disputed, task) for task in ("s-1", "t-0", "t-1")]
    health.reindex(disputed.root)
    assert [of_task(disputed, task) for task in ("s-1", "t-0", "t-1")] == before
    assert codes(disputed) == {"contested"}
