"""Decisions of people: what they write, in which order, and what a crash between leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tracemark.acts import audit, decisions, harnesses, health, traces
from tracemark.acts.corpus import Corpus, open_store
from tracemark.durable import CrashPoint
from tracemark.errors import (
    LedgerChainError,
    NegativeAnswerError,
    ParamsError,
    UnknownNameError,
    UsageError,
)
from tracemark.findings import Severity
from tracemark.ledger import chain
from tracemark.model.annotation import build
from tracemark.model.decision import Kind

from .conftest import CLOCK, Shop, document, write_version


def kinds(shop: Shop) -> list[str]:
    return [entry.decision.kind for entry in chain.read(shop.root / chain.NAME).entries]


def problems(shop: Shop) -> list[str]:
    return [found.code for found in health.check(shop.root).findings if found.severity is Severity.ERROR]


# --- accept


def test_an_acceptance_is_in_the_ledger_and_in_params_with_comments_kept(shop: Shop) -> None:
    before = (shop.root / "params.yaml").read_text()
    accepted = shop.accept()
    assert (accepted.previous, accepted.new_entry) == (None, True)
    after = (shop.root / "params.yaml").read_text()
    assert after == before.replace("harness: null", f"harness: {shop.fingerprint()}")
    (entry,) = chain.read(shop.root / chain.NAME).entries
    assert entry.digest == accepted.entry
    assert entry.decision.subject == {"harness": shop.fingerprint(), "label": "desk_a"}
    assert shop.accept("desk_b").previous == shop.fingerprint()


def test_what_is_accepted_already_gets_no_second_entry(shop: Shop) -> None:
    first = shop.accept()
    again = shop.accept(reason="again")
    assert (again.entry, again.new_entry) == (first.entry, False)
    assert kinds(shop) == ["accept"]


def test_a_harness_that_was_accepted_before_can_be_accepted_again(shop: Shop) -> None:
    for name in ("desk_a", "desk_b", "desk_a"):
        assert shop.accept(name).new_entry
    assert kinds(shop) == ["accept"] * 3
    assert Corpus(shop.root).accepted == shop.fingerprint()


def test_two_that_accept_at_once_leave_ledger_and_params_saying_the_same(shop: Shop) -> None:
    shop.accept()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4):
            list(pool.map(shop.accept, ["desk_a", "desk_b"] * 4))
            corpus = Corpus(shop.root)
            assert corpus.accepted == corpus.decisions.harness
    assert problems(shop) == []


ACCEPT = """
import sys
from tracemark.cli.main import run
sys.exit(run(["--root", sys.argv[1], "harness", "accept", "desk_a", "--reason", "better"]))
"""


def accept_in_a_child(shop: Shop, point: CrashPoint | None) -> int:
    environment = {**os.environ, **({"TRACEMARK_CRASH_AT": point.value} if point else {})}
    command = [sys.executable, "-c", ACCEPT, str(shop.root)]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def test_a_crash_between_ledger_and_params_is_named_and_finished_by_the_same_command(shop: Shop) -> None:
    assert accept_in_a_child(shop, CrashPoint.LEDGER_WRITTEN) == -signal.SIGKILL
    assert kinds(shop) == ["accept"]
    assert Corpus(shop.root).accepted is None
    (found,) = [found for found in health.check(shop.root).findings if found.code == "accepted-differs"]
    assert f"tracemark harness accept {shop.fingerprint()} --reason" in str(found.hint)
    assert accept_in_a_child(shop, None) == 0
    assert kinds(shop) == ["accept"]
    assert Corpus(shop.root).accepted == shop.fingerprint()
    assert problems(shop) == []


def test_a_crash_after_params_leaves_nothing_to_do(shop: Shop) -> None:
    assert accept_in_a_child(shop, CrashPoint.PARAMS_WRITTEN) == -signal.SIGKILL
    assert problems(shop) == []
    assert accept_in_a_child(shop, None) == 0
    assert kinds(shop) == ["accept"]


def test_a_harness_with_problems_is_not_accepted(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_x", extra="Broken.")
    (folder / "tools.py").write_text("def other():\n    return 1\n")
    with pytest.raises(NegativeAnswerError, match="problems that must be mended") as error:
        shop.accept("desk_x")
    assert str(error.value.where).startswith("harness_versions/desk_x/")
    assert kinds(shop) == []


def test_a_version_that_cannot_be_read_does_not_give_way_to_its_snapshot(shop: Shop) -> None:
    (shop.root / "harness_versions" / "desk_a" / "harness.yaml").write_text("format: tracemark/harness/1\npromt: 1\n")
    with pytest.raises(UsageError) as error:
        shop.accept("desk_a")
    assert "harness_versions/desk_a/" in str(error.value.where)
    assert kinds(shop) == []


def test_unusable_parameters_stop_an_acceptance_before_the_ledger(shop: Shop) -> None:
    shop.set(("accepted:", "acepted:"))
    with pytest.raises(ParamsError):
        shop.accept()
    assert kinds(shop) == []


def test_nothing_is_added_to_a_ledger_that_does_not_verify(shop: Shop) -> None:
    shop.accept()
    ledger = shop.root / chain.NAME
    ledger.write_text(ledger.read_text().replace("better", "worse"))
    before = ledger.read_bytes()
    for decide in (
        lambda: shop.accept("desk_b"),
        lambda: decisions.retract(shop.root, [shop.ids()["t-0"]], "wrong", CLOCK),
        lambda: decisions.stamp(shop.root, [shop.ids()["t-0"]], "desk_b", "wrong", CLOCK),
    ):
        with pytest.raises(LedgerChainError):
            decide()
    assert ledger.read_bytes() == before


@pytest.mark.parametrize("reason", ["", "  ", "\t\n"])
def test_a_decision_has_a_reason_and_without_one_nothing_is_touched(shop: Shop, reason: str) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    trace = shop.ids()["t-0"]
    for decide in (
        lambda: shop.accept(reason=reason),
        lambda: decisions.retract(shop.root, [trace], reason, CLOCK),
        lambda: decisions.reinstate(shop.root, [trace], reason, CLOCK),
        lambda: decisions.stamp(shop.root, [trace], "desk_c", reason, CLOCK),
    ):
        with pytest.raises(UsageError, match="a decision needs a reason: it is empty"):
            decide()
    assert Corpus(shop.root).accepted is None
    assert kinds(shop) == []
    with open_store(shop.root) as store:
        assert shop.fingerprint("desk_c") not in store.layout.snapshots()


def test_after_a_merge_of_two_acceptances_the_next_one_settles(shop: Shop) -> None:
    ledger = shop.root / chain.NAME
    shop.accept("desk_b")
    theirs = ledger.read_text()
    ledger.write_text("")
    shop.accept("desk_a")
    ledger.write_text(ledger.read_text() + theirs)
    assert problems(shop) == ["ledger-accept-conflict"]
    listed = harnesses.list_(shop.root)
    assert [row["name"] for row in listed.harnesses if row["accepted"]] == []
    shown = [audit.audit(shop.root, target) for target in ("desk_a", shop.ids()["t-0"])]
    assert [one.accepted for one in shown] == [False, False]  # type: ignore[union-attr]
    for report in (listed, *shown):
        assert "ledger-accept-conflict" in {found.code for found in report.findings}
        assert report.exit_code == 1
    assert shop.accept("desk_a").new_entry
    assert problems(shop) == []
    assert [row["name"] for row in harnesses.list_(shop.root).harnesses if row["accepted"]] == ["desk_a"]


# --- retract and reinstate


def test_a_retracted_trace_is_in_no_later_export_and_audit_says_so_of_earlier_ones(shop: Shop) -> None:
    shop.accept()
    shop.export("earlier")
    trace = shop.ids()["t-1"]
    decisions.retract(shop.root, [trace[:12]], "the order was of another customer", CLOCK)
    report = shop.export()
    assert (report.rows, report.excluded["retracted"]) == (2, 1)
    assert audit.audit(shop.root, trace).retracted
    codes = {found.code for found in audit.audit(shop.root, str(shop.root / "earlier")).findings}
    assert codes == {"export-trace-retracted"}


def test_reading_the_same_record_again_does_not_bring_a_retracted_trace_back(shop: Shop) -> None:
    shop.accept()
    decisions.retract(shop.root, [shop.ids()["t-1"]], "wrong", CLOCK)
    again = shop.ingest([document(f"t-{number}") for number in range(3)])
    assert (again.ingested, again.duplicates) == (0, 3)
    assert shop.export().rows == 2


def test_several_traces_are_retracted_at_once_each_by_an_entry_of_its_own(shop: Shop) -> None:
    shop.accept()
    ids = shop.ids()
    decisions.retract(shop.root, [ids["t-0"]], "wrong", CLOCK)
    with pytest.raises(UnknownNameError):
        decisions.retract(shop.root, [ids["t-1"], "f" * 64], "wrong", CLOCK)
    made = decisions.retract(shop.root, [ids["t-0"], ids["t-1"][:12], ids["t-1"], ids["t-2"]], "all wrong", CLOCK)
    assert (made.standing, set(made.entries)) == (1, {ids["t-1"], ids["t-2"]})
    assert kinds(shop) == ["accept", "retract", "retract", "retract"]
    assert all(audit.audit(shop.root, ids[task]).retracted for task in ("t-0", "t-1", "t-2"))
    back = decisions.reinstate(shop.root, list(ids.values()), "all right", CLOCK)
    assert (back.standing, set(back.entries)) == (len(ids) - 3, {ids["t-0"], ids["t-1"], ids["t-2"]})
    with pytest.raises(NegativeAnswerError, match=f"the {len(ids)} traces are not retracted"):
        decisions.reinstate(shop.root, list(ids.values()), "again", CLOCK)


def test_a_reinstated_trace_is_back(shop: Shop) -> None:
    shop.accept()
    trace = shop.ids()["t-1"]
    decisions.retract(shop.root, [trace], "wrong", CLOCK)
    decisions.reinstate(shop.root, [trace], "it was right", CLOCK)
    assert shop.export().rows == 3
    assert not audit.audit(shop.root, trace).retracted
    assert kinds(shop) == ["accept", "retract", "reinstate"]


def test_what_stands_is_not_decided_twice(shop: Shop) -> None:
    trace = shop.ids()["t-1"]
    with pytest.raises(NegativeAnswerError, match="not retracted"):
        decisions.reinstate(shop.root, [trace], "why not", CLOCK)
    decisions.retract(shop.root, [trace], "wrong", CLOCK)
    with pytest.raises(NegativeAnswerError, match="already"):
        decisions.retract(shop.root, [trace], "wrong", CLOCK)
    assert kinds(shop) == ["retract"]


def test_a_trace_that_is_not_stored_cannot_be_decided_about(shop: Shop) -> None:
    with pytest.raises(UnknownNameError):
        decisions.retract(shop.root, ["f" * 64], "wrong", CLOCK)
    assert kinds(shop) == []


# --- stamp


def contested(shop: Shop) -> str:
    """Store one trace that two harnesses are claimed for, both of which its content fits; return its id."""
    write_version(shop.root, "desk_c", handler=" + '.'")
    run = [document("c-1")]
    shop.ingest(run, "desk_a", "contested")
    assert shop.ingest(run, "desk_c", "contested").contested == 1
    return shop.ids()["c-1"]


def test_a_contested_trace_is_in_no_export_until_it_is_settled(shop: Shop) -> None:
    trace = contested(shop)
    shop.set(("evidence: unique", "evidence: claimed"))
    shop.accept("desk_c")
    shop.set(("minimum: 1 ", "minimum: 0 "))
    shown = audit.audit(shop.root, trace)
    assert (shown.fingerprint, bool(shown.conflicts)) == (None, True)
    decisions.stamp(shop.root, [trace], "desk_c", "the launcher's log names it", CLOCK)
    report = shop.export()
    assert (report.rows, report.excluded["contested"]) == (1, 0)
    assert [row["tracemark_trace_id"] for row in shop.rows()] == [trace]


def test_an_audit_after_a_stamp_shows_the_parts_of_the_harness_that_was_settled(shop: Shop) -> None:
    trace = contested(shop)
    for name in ("desk_c", "desk_a"):
        decisions.stamp(shop.root, [trace], name, "the log names it", CLOCK)
        shown = audit.audit(shop.root, trace)
        identity = Corpus(shop.root).resolve(name).identity
        assert (shown.fingerprint, shown.conflicts) == (identity.fingerprint, [])
        assert {c: value["digest"] for c, value in shown.components.items()} == dict(identity.components)


@pytest.mark.parametrize("harness", ["desk_a", "desk_c", "none"])
def test_a_stamp_does_not_pretend_to_settle_what_is_disputed_about_the_outcome(shop: Shop, harness: str) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    assert shop.ingest([document("t-0", reward=0.0)], name="again").contested == 1
    trace = shop.ids()["t-0"]
    with pytest.raises(NegativeAnswerError, match=r"disputed is outcome\.reward, outcome\.status") as refused:
        decisions.stamp(shop.root, [trace], harness, "it was a success", CLOCK)
    assert (refused.value.where, kinds(shop)) == (trace, [])
    assert f"tracemark retract {trace[:12]} --reason TEXT" in str(refused.value.hint)


def test_a_statement_that_names_the_wrong_one_settles_a_dispute_about_the_outcome(shop: Shop) -> None:
    shop.ingest([document("t-0", reward=0.0)], name="again")
    trace = shop.ids()["t-0"]
    with open_store(shop.root) as store:
        (wrong,) = store.annotations("outcomes", trace)
        right = build("outcomes", {"outcome": {"status": "success"}}, {"name": "by hand", "version": "1"}, trace)
        store.commit_annotations("outcomes", [{**right, "supersedes": [wrong.digest]}])
    assert audit.audit(shop.root, trace).conflicts == []
    shop.accept()
    assert shop.export().rows == 3


def test_a_harness_and_an_outcome_in_dispute_are_settled_one_by_one(shop: Shop) -> None:
    trace = contested(shop)
    shop.ingest([document("c-1", reward=0.0)], "desk_a", "contested")
    for name in ("desk_c", "desk_a"):
        decisions.stamp(shop.root, [trace], name, "the log names it", CLOCK)
        shown = audit.audit(shop.root, trace)
        assert shown.fingerprint == shop.fingerprint(name)
        assert {row["member"] for row in shown.conflicts} == {"outcome.reward", "outcome.status"}


def test_many_traces_are_settled_at_once_each_by_an_entry_of_its_own(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    traces = [shop.ids()[f"t-{number}"] for number in range(3)]
    decisions.stamp(shop.root, traces[:1], "desk_c", "the folder was misnamed", CLOCK)
    report = decisions.stamp(shop.root, [*traces, traces[1][:12]], "desk_c", "the folder was misnamed", CLOCK)
    assert (report.name, report.fingerprint) == ("desk_c", shop.fingerprint("desk_c"))
    assert (report.source, report.standing) == ("harness_versions/desk_c", 1)
    entries = {entry.digest: entry.decision.subject["trace"] for entry in Corpus(shop.root).chain.entries}
    assert [entries[entry] for entry in report.entries.values()] == list(report.entries) == traces[1:]
    assert len(entries) == 3
    with pytest.raises(NegativeAnswerError, match="the 3 traces are settled so already"):
        decisions.stamp(shop.root, traces, "desk_c", "the folder was misnamed", CLOCK)
    none = decisions.stamp(shop.root, traces, "none", "nobody knows", CLOCK)
    assert (none.name, none.fingerprint, none.source, len(none.entries)) == (None, None, None, 3)


def test_where_one_of_many_cannot_be_settled_so_none_is(shop: Shop) -> None:
    with pytest.raises(NegativeAnswerError, match="the content excludes desk_a"):
        decisions.stamp(shop.root, [shop.ids()["t-0"], shop.ids()["u-0"]], "desk_a", "all of them", CLOCK)
    assert kinds(shop) == []


def test_a_name_that_means_a_folder_and_a_snapshot_is_warned_of_where_it_is_used(shop: Shop) -> None:
    stored, trace = shop.fingerprint(), shop.ids()["t-0"]
    (shop.root / "harness_versions" / "desk_a" / "observe.py").write_text("def observe(raw):\n    return repr(raw)\n")
    settled = decisions.stamp(shop.root, [trace], "desk_a", "the log names it", CLOCK)
    accepted = shop.accept()
    assert (settled.source, accepted.source) == ("harness_versions/desk_a", "harness_versions/desk_a")
    for report in (settled, accepted):
        (found,) = report.findings
        assert (found.code, found.where, report.exit_code) == ("name-shared", "harness_versions/desk_a", 0)
        assert f"{stored[:16]} (snapshot" in found.message
    by_fingerprint = decisions.accept(shop.root, stored, "the one in use", CLOCK)
    assert (by_fingerprint.source, by_fingerprint.findings) == ("snapshot", ())


def test_a_stamp_can_name_a_harness_that_nobody_claimed_or_none(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    trace = shop.ids()["t-0"]
    decisions.stamp(shop.root, [trace], "desk_c", "the folder was misnamed", CLOCK)
    shown = audit.audit(shop.root, trace)
    identity = Corpus(shop.root).resolve("desk_c").identity
    assert shown.components["observation_handlers"]["digest"] == identity.components["observation_handlers"]
    assert shown.evidence == "claimed"
    decisions.stamp(shop.root, [trace], "none", "nobody knows", CLOCK)
    shown = audit.audit(shop.root, trace)
    assert (shown.fingerprint, shown.harness, shown.stated, shown.evidence) == (None, None, ["desk_a"], "unrecorded")
    with pytest.raises(NegativeAnswerError, match="settled so already"):
        decisions.stamp(shop.root, [trace], "none", "nobody knows", CLOCK)


def test_a_stamp_stores_the_harness_before_the_decision_that_names_it(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    fingerprint = shop.fingerprint("desk_c")
    decisions.stamp(shop.root, [shop.ids()["t-0"]], "desk_c", "the log names it", CLOCK)
    assert (shop.root / "traces" / "harnesses" / f"{fingerprint.removeprefix('tm1:')}.json").is_file()
    assert problems(shop) == []


def other_prompt(shop: Shop) -> str:
    return "prompt_templates system, step 1: at character "


def other_tool(shop: Shop) -> str:
    folder = shop.root / "harness_versions" / "desk_c"
    (folder / "system.txt").write_text((shop.root / "harness_versions" / "desk_a" / "system.txt").read_text())
    schema = json.loads((folder / "look.json").read_text())
    (folder / "look.json").write_text(json.dumps({**schema, "description": "Look another order up."}))
    return "tool_bindings look: another definition, at character "


def shorter_observations(shop: Shop) -> str:
    folder = shop.root / "harness_versions" / "desk_c"
    (folder / "system.txt").write_text((shop.root / "harness_versions" / "desk_a" / "system.txt").read_text())
    manifest = (folder / "harness.yaml").read_text()
    (folder / "harness.yaml").write_text(manifest.replace("observe.py:observe'}", "observe.py:observe', prefix: seen}"))
    return "observation_handlers observe, step 3: expected to begin with 'seen' found "


@pytest.mark.parametrize("exclude", [other_prompt, other_tool, shorter_observations])
@pytest.mark.parametrize("claimed", ["desk_a", None])
def test_no_stamp_puts_a_trace_under_a_harness_that_its_content_excludes(
    shop: Shop, exclude: Callable[[Shop], str], claimed: str | None
) -> None:
    write_version(shop.root, "desk_c", extra="Never run.")
    expected = exclude(shop)
    shop.ingest([document("n-1")], claimed, "new")
    trace = shop.ids()["n-1"]
    with pytest.raises(NegativeAnswerError) as refused:
        decisions.stamp(shop.root, [trace[:12]], "desk_c", "the log names it", CLOCK)
    assert "the content excludes desk_c: " + expected in refused.value.message
    assert (refused.value.where, refused.value.hint) == (trace, f"tracemark audit {trace[:12]}")
    assert kinds(shop) == []
    assert not (shop.root / "traces" / "harnesses" / f"{shop.fingerprint('desk_c').removeprefix('tm1:')}.json").exists()


def test_no_stamp_puts_a_recorded_run_under_a_harness_of_which_another_part_was_at_work(shop: Shop) -> None:
    shop.record("r-1")
    write_version(shop.root, "desk_c", handler=" + '.'")
    trace = shop.ids()["r-1"]
    with pytest.raises(NegativeAnswerError) as refused:
        decisions.stamp(shop.root, [trace], "desk_c", "it looks alike", CLOCK)
    assert "the content excludes desk_c: observation_handlers observe: recorded was " in refused.value.message
    assert kinds(shop) == []
    fits = audit.audit(shop.root, trace).fits  # type: ignore[union-attr]
    assert fits == [shop.fingerprint("desk_a")]


def test_a_decision_that_puts_a_recorded_run_under_another_harness_is_void_however_it_came(shop: Shop) -> None:
    shop.record("r-1")
    write_version(shop.root, "desk_c", handler=" + '.'")
    trace = shop.ids()["r-1"]
    shop.enter(Kind.STAMP, {"trace": trace, "fingerprint": shop.fingerprint("desk_c")})
    assert "decision-refuted" in problems(shop)
    assert audit.audit(shop.root, trace).harness == "desk_a"  # type: ignore[union-attr]


def test_what_an_importer_saw_and_no_trajectory_keeps_excludes_a_harness_too(shop: Shop) -> None:
    place = {"component": "runtime", "part": "limits", "text": "another limit"}
    components = Corpus(shop.root).resolve("desk_b").identity.components
    declared = {
        "name": "b",
        "components": {n: {"digest": d, "evidence": "claimed", "parts": {}} for n, d in components.items()},
    }
    run = document("n-1", extra="Be brief.")
    run["extra"]["tracemark"]["harness"] = {"declared": declared, "contradictions": [place]}
    shop.ingest([run], None, "carried")
    with pytest.raises(NegativeAnswerError, match="runtime limits: another limit"):
        decisions.stamp(shop.root, [shop.ids()["n-1"]], "desk_b", "the log names it", CLOCK)
    assert kinds(shop) == []


def test_a_sub_agents_document_is_excluded_by_nothing(shop: Shop) -> None:
    shop.ingest([document("n-1", extra="Another prompt.", role="subagent")], None, "sub")
    trace = shop.ids()["n-1"]
    decisions.stamp(shop.root, [trace], "desk_a", "the parent's log names it", CLOCK)
    shown = audit.audit(shop.root, trace)
    assert shown.fingerprint == shop.fingerprint()
    assert shown.fingerprint in shown.fits


def test_a_trace_that_was_settled_keeps_the_places_where_an_earlier_statement_was_wrong(shop: Shop) -> None:
    shop.ingest([document("n-1")], "desk_b", "wrong")
    trace = shop.ids()["n-1"]
    decisions.stamp(shop.root, [trace], "desk_a", "the log names it", CLOCK)
    shown = audit.audit(shop.root, trace)
    assert (shown.harness, shown.stated) == ("desk_a", ["desk_b"])
    assert [(place["harness"], place["part"]) for place in shown.contradictions] == [("desk_b", "system")]
    (row,) = [row for row in traces.list_(shop.root, traces.TraceFilter()).traces if row["trace_id"] == trace]
    assert (row["harness"], row["flags"]) == ("desk_a", ["settled"])


# --- decisions that came in by another way than the verbs


def decide_by_hand(shop: Shop, trace: str, name: str) -> None:
    """Append a decision to the ledger as a merge of branches does."""
    shop.enter(Kind.STAMP, {"trace": trace, "fingerprint": shop.fingerprint(name)}, "merged from an older branch")


@pytest.mark.parametrize("claimed", ["desk_a", None])
def test_a_decision_that_the_content_excludes_is_named_by_check_and_audit(shop: Shop, claimed: str | None) -> None:
    shop.ingest([document("z-1", extra="Quite different.")], claimed, "different")
    trace = shop.ids()["z-1"]
    decide_by_hand(shop, trace, "desk_a")
    (found,) = [found for found in health.check(shop.root).findings if found.severity is Severity.ERROR]
    assert (found.code, found.where) == ("decision-refuted", f"trace {trace[:12]}")
    assert shop.fingerprint() in found.message
    shown = audit.audit(shop.root, trace)
    assert [found.code for found in shown.findings] == ["decision-refuted"]
    decisions.stamp(shop.root, [trace], "none", "it was another harness", CLOCK)
    assert problems(shop) == []
    assert audit.audit(shop.root, trace).findings == ()


def test_a_decision_does_not_bring_a_trace_that_refutes_its_harness_into_an_export(shop: Shop) -> None:
    shop.ingest([document("z-1", extra="Quite different.")], "desk_a", "different")
    trace = shop.ids()["z-1"]
    shop.accept()
    shop.set(("evidence: unique", "evidence: claimed"))
    decide_by_hand(shop, trace, "desk_a")
    report = shop.export()
    assert (report.rows, report.excluded["no-fingerprint"]) == (3, 1)
    shown = audit.audit(shop.root, trace)
    assert (shown.fingerprint, shown.harness, shown.evidence) == (None, None, "claimed")
    # and it is still an error to claim so
    assert shop.ingest([document("z-1", extra="Quite different.")], "desk_a", "different").contradicted == 1


def test_a_void_decision_does_not_hide_what_a_damaged_store_is_told_of(shop: Shop) -> None:
    shop.ingest([document("z-1", extra="Quite different.")], "desk_a", "different")
    decide_by_hand(shop, shop.ids()["z-1"], "desk_a")
    for path in (shop.root / "traces" / "segments").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-9])
    assert set(problems(shop)) == {"file-damaged"}
    (shop.root / ".tracemark" / "catalogue.db").unlink()
    assert set(problems(shop)) == {"file-damaged"}


def test_parameters_that_lie_outside_the_corpus_are_named_and_nothing_is_decided(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("shared") / "params.yaml"
    (shop.root / "params.yaml").rename(target)
    (shop.root / "params.yaml").symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(UsageError, match="a link that leads out of the corpus") as caught:
        shop.accept()
    assert (caught.value.exit_code, caught.value.where) == (2, "params.yaml")
    assert str(target) not in str(caught.value)
    assert (target.read_bytes(), (shop.root / "ledger.jsonl").read_bytes()) == (before, b"")
    assert (shop.root / "params.yaml").is_symlink()
