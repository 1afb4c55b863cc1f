"""What ingesting does with a trace that is stored already: duplicate, strengthened, contested, re-imported, barred."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark import digest
from tracemark.acts import decisions
from tracemark.acts.corpus import Corpus
from tracemark.acts.ingest import IngestReport
from tracemark.clock import FixedClock
from tracemark.errors import NegativeAnswerError
from tracemark.findings import Severity
from tracemark.harness import snapshot
from tracemark.importers import source
from tracemark.importers.atif import IMPORTER, AtifImporter
from tracemark.store.draft import DraftWriter
from tracemark.store.row import project_line
from tracemark.store.selection import Selection
from tracemark.store.store import Store

CLOCK = FixedClock("2026-01-31T12:00:00Z", 1)


def counts(report: IngestReport) -> dict[str, int]:
    """Return what became of the records and their traces, without zeros."""
    names = (
        "ingested",
        "duplicates",
        "strengthened",
        "disputing",
        "contested",
        "reimported",
        "refused",
        "contradicted",
        "claims_dropped",
    )
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def outcome(status: str, **members: Any) -> dict[str, Any]:
    return {"outcome": {"status": status, **members}}


# --- duplicates


def test_the_same_file_again_stores_nothing(desk) -> None:
    path = desk.write("runs.jsonl", *(desk.document(f"t-{n}") for n in range(3)))
    assert counts(desk.ingest(path, harness="desk_a")) == {"ingested": 3}
    before = desk.everything()
    again = desk.ingest(path, harness="desk_a")
    assert counts(again) == {"duplicates": 3}
    assert again.exit_code == 0
    assert desk.everything() == before


def test_one_trace_twice_in_a_file_is_stored_once(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"), desk.document("t-2"), desk.document("t-1"))
    assert counts(desk.ingest(path)) == {"ingested": 2, "duplicates": 1}
    desk.check()


def test_a_known_trace_among_new_ones_is_left_out_of_their_segment(desk) -> None:
    desk.ingest(desk.write("first.jsonl", desk.document("t-1")))
    report = desk.ingest(desk.write("more.jsonl", desk.document("t-1"), desk.document("t-2")))
    assert counts(report) == {"ingested": 1, "duplicates": 1}
    with Store.open(desk.root) as store:
        assert store.counts()["copies"] == 0
    desk.check()


def test_a_trace_under_another_file_name_is_the_same_trace(desk) -> None:
    desk.ingest(desk.write("first.jsonl", desk.document("t-1")))
    assert counts(desk.ingest(desk.write("second.jsonl", desk.document("t-1")))) == {"duplicates": 1}


@pytest.mark.parametrize("named", [None, "tiny", "tiny@1"])
def test_a_model_that_a_batch_names_in_one_text_is_the_one_that_it_always_named(desk, named: str | None) -> None:
    made = desk.document("t-1")
    if named is not None:
        made["agent"]["model_name"] = named
    desk.write("runs.jsonl", made)
    desk.put("batch.yaml", b"model: {name: tiny@1}\n")
    desk.ingest()
    desk.put("batch.yaml", b"model: tiny@1\n")
    assert counts(desk.ingest()) == {"duplicates": 1}
    assert (desk.state("t-1").row.model, desk.state("t-1").row.revision) == (named or "tiny@1", None)


# --- further records of a known trace


def pretty(desk, name: str, document: dict[str, Any]) -> Path:
    """Write a document in other bytes."""
    return desk.put(name, json.dumps(document, indent=1).encode())


def records(desk, task: str = "t-1") -> set[str]:
    with Store.open(desk.root) as store:
        return store.records([desk.state(task).trace_id])[desk.state(task).trace_id]


def sha(path: Path) -> str:
    return digest.sha256(path.read_bytes().strip())


def test_each_record_that_holds_a_trace_is_remembered_once(desk) -> None:
    document = desk.document("t-1")
    one = desk.write("one.jsonl", document)
    two = pretty(desk, "two.json", document)
    assert counts(desk.ingest(one)) == {"ingested": 1}
    for _ in range(2):
        assert counts(desk.ingest(two)) == {"duplicates": 1}
        assert counts(desk.ingest()) == {"duplicates": 2}
    (note,) = desk.annotations("sources")
    assert note["value"]["source"]["label"] == "two.json"
    assert note["value"]["source"]["raw"] == sha(two)
    assert records(desk) == {sha(one), sha(two)}
    desk.check()


def test_records_are_remembered_also_within_one_file_and_where_they_say_more(desk) -> None:
    document = desk.document("t-1")
    graded = desk.carrying("t-1", **outcome("success"))
    again = {**document, "steps": document["steps"]}
    path = desk.write("runs.jsonl", document, graded, dict(reversed(again.items())), document)
    assert counts(desk.ingest(path, harness="desk_a")) == {"ingested": 1, "strengthened": 1, "duplicates": 2}
    assert len(records(desk)) == 3
    assert counts(desk.ingest(path, harness="desk_a")) == {"duplicates": 4}
    assert len(desk.annotations("sources")) == 2
    desk.check()


def test_records_of_one_trace_in_two_partitions_of_a_job_are_remembered(desk) -> None:
    path = desk.write("runs.jsonl", desk.recorded("t-1", "desk_a"), desk.document("t-1"))
    desk.sibling("desk_d", 20)
    assert counts(desk.ingest(path, harness="desk_d")) == {"ingested": 1, "disputing": 1, "contested": 1}
    assert len(records(desk)) == 2
    desk.check()


def test_many_records_of_known_traces_are_stated_in_one_file(desk) -> None:
    documents = [desk.document(f"t-{n}") for n in range(600)]
    desk.ingest(desk.write("runs.jsonl", *documents))
    again = desk.write("again.jsonl", *(dict(reversed(document.items())) for document in documents))
    assert counts(desk.ingest(again)) == {"duplicates": 600}
    assert len(list((desk.root / "traces" / "annotations" / "sources").iterdir())) == 1
    assert len(desk.annotations("sources")) == 600


def test_a_dry_run_remembers_no_record(desk) -> None:
    document = desk.document("t-1")
    desk.ingest(desk.write("one.jsonl", document))
    two = pretty(desk, "two.json", document)
    assert counts(desk.ingest(two, dry_run=True)) == {"duplicates": 1}
    assert desk.annotations("sources") == []


def test_a_dry_run_knows_what_it_tried_to_remember(desk, monkeypatch: pytest.MonkeyPatch) -> None:
    document = desk.document("t-1")
    desk.ingest(desk.write("one.jsonl", document))
    # two jobs, of which the second sees what the first one has stored
    again = json.dumps(dict(reversed(document.items()))).encode()
    monkeypatch.setattr(source, "RANGE", len(again))
    paths = [desk.put(f"again-{number}.jsonl", again + b"\n") for number in range(2)]
    stated: list[int] = []
    commit = Store.commit_annotations

    def counting(store: Store, kind: str, values: Any) -> Any:
        stated.append(len(values))
        return commit(store, kind, values)

    monkeypatch.setattr(Store, "commit_annotations", counting)
    assert counts(desk.ingest(*paths, dry_run=True)) == {"duplicates": 2}
    assert stated == [1]


# --- strengthened


def test_an_outcome_that_comes_later_strengthens(desk) -> None:
    desk.ingest(desk.write("bare.jsonl", desk.document("t-1")))
    known = desk.write("graded.jsonl", desk.carrying("t-1", **outcome("success", reward=1.0)))
    assert counts(desk.ingest(known)) == {"strengthened": 1}
    assert desk.state("t-1").row.status == "success"
    assert counts(desk.ingest(known)) == {"duplicates": 1}
    desk.check()


def test_a_claim_that_comes_later_strengthens_and_its_snapshot_is_stored_first(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path)
    assert counts(desk.ingest(path, harness="desk_a")) == {"strengthened": 1}
    state = desk.state("t-1")
    assert state.row.fingerprint == desk.fingerprint("desk_a")
    assert "fingerprint=none" in state.file, "the folder is that of the first statement"
    with Store.open(desk.root) as store:
        assert store.layout.snapshots() == [desk.fingerprint("desk_a")]
    assert counts(desk.ingest(path, harness="desk_a")) == {"duplicates": 1}
    desk.check()


def test_many_known_traces_are_strengthened_in_one_file_of_annotations(desk) -> None:
    path = desk.write("runs.jsonl", *(desk.document(f"t-{n}") for n in range(600)))
    desk.ingest(path)
    assert counts(desk.ingest(path, harness="desk_a")) == {"strengthened": 600}
    assert len(list((desk.root / "traces" / "annotations" / "stamps").iterdir())) == 1
    assert {state.row.fingerprint for state in desk.states().values()} == {desk.fingerprint("desk_a")}


def test_what_a_second_copy_in_the_same_file_adds_is_kept(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"), desk.carrying("t-1", **outcome("failure")))
    assert counts(desk.ingest(path)) == {"ingested": 1, "strengthened": 1}
    assert desk.state("t-1").row.status == "failure"
    assert counts(desk.ingest(path)) == {"duplicates": 2}


# --- contested


def test_two_verdicts_that_differ_contest_the_trace(desk) -> None:
    desk.ingest(desk.write("one.jsonl", desk.carrying("t-1", **outcome("success"))))
    report = desk.ingest(desk.write("two.jsonl", desk.carrying("t-1", **outcome("failure"))))
    assert counts(report) == {"disputing": 1, "contested": 1}
    assert report.exit_code == 0
    state = desk.state("t-1")
    assert state.conflicts == ("outcome.status",)
    assert state.row.status == "unknown"


def test_what_two_statements_say_of_a_run_is_named_and_what_is_settled_is_not(desk) -> None:
    desk.sibling("desk_d", 20)
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    trace = desk.state("t-1").trace_id
    decisions.stamp(desk.root, [trace], "desk_a", "the log names it", CLOCK)
    assert desk.ingest(path, harness="desk_d").findings == ()
    desk.ingest(desk.write("one.jsonl", desk.carrying("t-1", **outcome("success"))))
    (found,) = desk.ingest(desk.write("two.jsonl", desk.carrying("t-1", **outcome("failure")))).findings
    assert found.message.startswith("statements disagree about outcome.status (success or failure);")
    assert f"tracemark retract {trace[:12]} --reason TEXT records that" in str(found.hint)
    assert "tracemark stamp" not in str(found.hint)


def test_what_is_strengthened_is_shown_with_harness_and_evidence(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"), desk.document("t-2", by="desk_b"))
    assert desk.ingest(path).harnesses == {"-": 2}
    for dry_run in (True, False):
        report = desk.ingest(path, harness="desk_a", dry_run=dry_run)
        assert (report.harnesses, report.evidence) == ({"desk_a": 1}, {"corroborated": 1})
        # what the content refutes makes nothing better known
        assert counts(report) == {"strengthened": 1, "duplicates": 1, "contradicted": 1}


def chat(desk, *rewards: float, **members: Any) -> Path:
    """Write a chat log of runs whose only verdict is a reward."""
    said = [{"role": "user", "content": "Please see to it."}, {"role": "assistant", "content": "Done."}]
    records = [{"id": f"run-{n}", "messages": said, "reward": r, **members} for n, r in enumerate(rewards)]
    return desk.write("chat.jsonl", *records)


def test_a_status_that_another_parameter_made_of_the_same_reward_disputes_nothing(desk) -> None:
    path = chat(desk, 1.0, 0.5, 0.0)
    assert counts(desk.ingest(path)) == {"ingested": 3}
    before = desk.everything()
    params = desk.root / "params.yaml"
    params.write_text("ingest:\n  success_reward: 0.5\n")
    dry = desk.ingest(path, dry_run=True)
    report = desk.ingest(path)
    assert dry.findings == report.findings
    assert counts(report) == {"duplicates": 3}
    assert [(one.code, one.severity) for one in report.findings] == [("reward-rule-changed", Severity.WARNING)]
    assert report.findings[0].message.startswith("the traces of 2 records keep")
    assert report.exit_code == 0
    params.write_text("ingest:\n  success_reward: 1.0\n")
    again = desk.ingest(path)
    assert (counts(again), again.findings) == ({"duplicates": 3}, ())
    assert desk.everything() == before


def test_what_else_such_a_copy_says_is_kept_and_what_it_disputes_is_disputed(desk) -> None:
    desk.ingest(chat(desk, 1.0))
    (desk.root / "params.yaml").write_text("ingest:\n  success_reward: 0.5\n")
    assert counts(desk.ingest(chat(desk, 1.0, task="t-0"))) == {"strengthened": 1}
    assert desk.annotations("outcomes")[0]["value"]["run"]["task"] == "t-0"
    # another reward, and a verdict of the source's own, are statements
    assert counts(desk.ingest(chat(desk, 0.5))) == {"disputing": 1, "contested": 1}
    assert counts(desk.ingest(chat(desk, 1.0, success=False))) == {"disputing": 1, "contested": 1}


def test_a_third_verdict_is_kept_as_well(desk) -> None:
    for number, status in enumerate(("success", "failure", "error")):
        report = desk.ingest(desk.write(f"{number}.jsonl", desk.carrying("t-1", **outcome(status))))
    assert counts(report) == {"disputing": 1, "contested": 1}
    assert {note["value"]["outcome"]["status"] for note in desk.annotations("outcomes")} == {"failure", "error"}
    assert counts(desk.ingest()) == {"duplicates": 3}


def test_claims_of_two_harnesses_that_both_fit_contest_the_trace_until_somebody_decides(desk) -> None:
    desk.sibling("desk_d", 20)
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    report = desk.ingest(path, harness="desk_d")
    assert (counts(report), report.exit_code) == ({"disputing": 1, "contested": 1}, 0)
    state = desk.state("t-1")
    assert state.contested
    (found,) = report.findings
    short, one, other = state.trace_id[:12], desk.fingerprint("desk_a")[:16], desk.fingerprint("desk_d")[:16]
    assert (found.code, found.severity, found.where) == ("contested", Severity.WARNING, f"trace {short}")
    assert f"the harness (desk_a, {one} or desk_d, {other})" in found.message
    settles = f"tracemark stamp {short} --harness NAME|FINGERPRINT|none --reason TEXT settles the harness"
    assert found.hint == f"tracemark audit {short} shows what each source says; {settles}"
    assert state.row.fingerprint is None
    decisions.stamp(desk.root, [state.trace_id], "desk_d", "the launcher's log says so", CLOCK)
    settled = desk.states(Corpus(desk.root).store_decisions)["t-1"]
    assert not settled.contested
    assert settled.row.fingerprint == desk.fingerprint("desk_d")


def test_every_claim_about_a_contested_trace_is_kept(desk) -> None:
    desk.sibling("desk_d", 20)
    desk.sibling("desk_e", 30)
    path = desk.write("runs.jsonl", desk.document("t-1"))
    for name in ("desk_a", "desk_d", "desk_e"):
        desk.ingest(path, harness=name)
    named = [note["value"]["harness"]["declared"]["name"] for note in desk.annotations("stamps")]
    assert sorted(named) == ["desk_d", "desk_e"]
    with Store.open(desk.root) as store:
        assert len(store.layout.snapshots()) == 3
    desk.check()


def test_a_recorded_run_that_its_batch_claims_for_another_harness_is_contested_at_once(desk) -> None:
    desk.sibling("desk_d", 20)
    path = desk.write("runs.jsonl", desk.recorded("t-1", "desk_a"))
    report = desk.ingest(path, harness="desk_d")
    assert counts(report) == {"ingested": 1, "contested": 1}
    state = desk.state("t-1")
    assert state.conflicts
    assert desk.line(state.trace_id)["harness"]["declared"]["fingerprint"] == desk.fingerprint("desk_a")
    assert counts(desk.ingest(path, harness="desk_d")) == {"duplicates": 1}
    desk.check()


# --- claims that the content refutes


def test_a_refuted_claim_says_nothing_about_a_trace_that_has_its_harness(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    report = desk.ingest(path, harness="desk_b")
    assert counts(report) == {"duplicates": 1, "claims_dropped": 1}
    (found,) = report.findings
    assert (found.code, found.severity) == ("claim-dropped", Severity.INFO)
    assert found.message == "1 trace keeps its harness: the content refutes the one stated now"
    assert report.exit_code == 0
    state = desk.state("t-1")
    assert state.row.fingerprint == desk.fingerprint("desk_a")
    assert not state.contested


def test_a_refuted_claim_is_replaced_by_one_that_fits(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    wrong = desk.ingest(path, harness="desk_b")
    assert counts(wrong) == {"ingested": 1, "contradicted": 1}
    assert wrong.exit_code == 1
    assert desk.state("t-1").row.fingerprint is None
    assert counts(desk.ingest(path, harness="desk_a")) == {"strengthened": 1}
    state = desk.state("t-1")
    assert state.row.fingerprint == desk.fingerprint("desk_a")
    assert not state.row.contradicted
    assert not state.contested
    assert counts(desk.ingest(path, harness="desk_a")) == {"duplicates": 1}
    desk.check()


def test_correcting_a_wrong_claim_for_some_traces_of_a_file_says_nothing_against_the_others(desk) -> None:
    path = desk.write(
        "runs.jsonl", *(desk.document(f"t-{n}", by) for n, by in enumerate(["desk_a", "desk_a", "desk_b"]))
    )
    first = desk.ingest(path, harness="desk_a")
    assert (counts(first), first.exit_code) == ({"ingested": 3, "contradicted": 1}, 1)
    assert first.harnesses == {"-": 1, "desk_a": 2}
    second = desk.ingest(path, harness="desk_b")
    assert counts(second) == {"duplicates": 2, "strengthened": 1, "claims_dropped": 2}
    assert ([found.code for found in second.findings], second.exit_code) == (["claim-dropped"], 0)
    for name in ("desk_a", "desk_b"):
        again = desk.ingest(path, harness=name)
        assert again.exit_code == 0, "also a wrong claim that was there first has been corrected"
        assert again.contradicted == 0
    assert {state.row.fingerprint for state in desk.states().values()} == {
        desk.fingerprint("desk_a"),
        desk.fingerprint("desk_b"),
    }


def test_a_wrong_claim_that_nothing_corrected_is_reported_each_time(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    for name in ("desk_b", "desk_b", "desk_c"):
        report = desk.ingest(path, harness=name)
        assert (report.contradicted, report.exit_code) == (1, 1)
        (found,) = report.findings
        assert found.hint == f"tracemark audit {desk.state('t-1').trace_id[:12]}"


@pytest.mark.parametrize("settled", ["desk_a", "none"])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_wrong_claim_about_a_trace_that_the_ledger_settles_is_left_out(desk, settled: str, rebuilt: bool) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    assert desk.ingest(path, harness="desk_b").exit_code == 1
    decisions.stamp(desk.root, [desk.state("t-1").trace_id], settled, "the log names it", CLOCK)
    if rebuilt:
        shutil.rmtree(desk.root / "traces")
    report = desk.ingest(path, harness="desk_b")
    assert (report.contradicted, report.claims_dropped, report.exit_code) == (0, 1, 0)


def edit(desk, name: str = "desk_a") -> None:
    """Edit a version where no content shows it."""
    path = desk.root / "harness_versions" / name / "harness.yaml"
    path.write_text(path.read_text() + "runtime: {limits: {steps: 99}}\n")


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_a_name_given_again_after_its_folder_was_edited_says_nothing_new_about_known_traces(
    desk, recorded: bool, batch: bool
) -> None:
    run = desk.recorded("t-1", "desk_a") if recorded else desk.document("t-1")
    path = desk.write("b/runs.jsonl", run)
    claim = {} if batch else {"harness": "desk_a"}
    if batch:
        desk.put("b/batch.yaml", b"harness: desk_a\n")
    assert desk.ingest(**claim).ingested == 1
    before, fingerprint = desk.everything(), desk.fingerprint("desk_a")
    edit(desk)
    assert desk.fingerprint("desk_a") != fingerprint
    for _ in range(2):
        report = desk.ingest(**claim)
        assert counts(report) == {"duplicates": 1, "claims_dropped": 1}
        found, shared = report.findings
        assert (found.code, shared.code, report.exit_code) == ("claim-dropped", "name-shared", 0)
        assert found.where == f"trace {desk.state('t-1').trace_id[:12]}"
        assert "by its fingerprint" in str(found.hint)
    assert desk.everything()["rows"] == before["rows"]
    # what a fingerprint says is meant
    assert desk.ingest(path, harness=desk.fingerprint("desk_a")[:20]).contested == 1


def relabel(desk, folder: str, label: str) -> None:
    path = desk.root / "harness_versions" / folder / "harness.yaml"
    path.write_text(path.read_text().replace(f"name: {folder}", f"name: {label}"))


def test_a_version_that_bears_the_label_of_another_one_is_another_harness(desk) -> None:
    desk.sibling("desk_d", 20)
    relabel(desk, "desk_d", "desk_a")
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    assert counts(desk.ingest(path, harness="desk_d")) == {"disputing": 1, "contested": 1}
    assert desk.state("t-1").row.fingerprint is None


def test_a_name_that_moved_to_another_folder_is_another_harness_while_the_first_still_has_one(desk) -> None:
    desk.sibling("desk_d", 20)
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    versions = desk.root / "harness_versions"
    (versions / "desk_a").rename(versions / "desk_old")
    (versions / "desk_d").rename(versions / "desk_a")
    assert counts(desk.ingest(path, harness="desk_a")) == {"disputing": 1, "contested": 1}


def test_two_copies_of_a_run_in_one_file_leave_out_one_claim_by_an_outdated_name(desk) -> None:
    recorded = desk.recorded("t-1", "desk_a")
    path = desk.write("runs.jsonl", recorded)
    assert counts(desk.ingest(path, harness="desk_a")) == {"ingested": 1}
    edit(desk)
    desk.write("runs.jsonl", recorded, desk.document("t-1"))
    report = desk.ingest(path, harness="desk_a")
    assert (report.contested, report.duplicates, report.exit_code) == (0, 2, 0)
    assert desk.state("t-1").row.evidence == "recorded"


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_trace_of_which_a_claim_by_an_outdated_name_is_left_out_is_counted_once(desk, partitions: int) -> None:
    recorded = desk.recorded("t-1", "desk_a")
    path = desk.write("runs.jsonl", recorded)
    desk.ingest(path, harness="desk_a")
    edit(desk)
    desk.write("runs.jsonl", recorded, recorded if partitions == 1 else desk.document("t-1"))
    assert counts(desk.ingest(path, harness="desk_a")) == {"duplicates": 2, "claims_dropped": 1}


def test_what_comes_with_a_name_that_means_another_harness_now_is_kept(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    edit(desk)
    desk.write("runs.jsonl", desk.carrying("t-1", outcome={"status": "success"}), desk.document("t-2"))
    report = desk.ingest(path, harness="desk_a")
    assert counts(report) == {"ingested": 1, "strengthened": 1, "claims_dropped": 1}
    assert desk.state("t-1").row.status == "success"
    assert desk.state("t-2").row.fingerprint == desk.fingerprint("desk_a")


def test_a_name_that_was_refuted_before_its_folder_was_edited_states_the_new_harness(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1", "desk_b"))
    assert desk.ingest(path, harness="desk_a").contradicted == 1
    texts = [desk.root / "harness_versions" / name / "system.txt" for name in ("desk_a", "desk_b")]
    texts[0].write_text(texts[1].read_text())
    edit(desk)
    assert counts(desk.ingest(path, harness="desk_a")) == {"strengthened": 1}
    assert desk.state("t-1").row.fingerprint == desk.fingerprint("desk_a")


def test_a_batch_that_names_the_wrong_harness_for_a_recorded_run_is_left_out(desk) -> None:
    path = desk.write("runs.jsonl", desk.recorded("t-1", "desk_a"))
    report = desk.ingest(path, harness="desk_b")
    assert counts(report) == {"ingested": 1, "claims_dropped": 1}
    assert report.harnesses == {"desk_a": 1}
    assert desk.state("t-1").row.fingerprint == desk.fingerprint("desk_a")


def test_runs_are_stored_also_where_the_ledger_does_not_verify(desk) -> None:
    (desk.root / "ledger.jsonl").write_text("nothing that is an entry\n")
    path = desk.write("runs.jsonl", desk.document("t-1"))
    report = desk.ingest(path, harness="desk_b")
    assert counts(report) == {"ingested": 1, "contradicted": 1}


def test_runs_are_stored_also_where_the_ledger_is_no_file(desk) -> None:
    (desk.root / "ledger.jsonl").unlink(missing_ok=True)
    (desk.root / "ledger.jsonl").mkdir()
    path = desk.write("runs.jsonl", desk.document("t-1"))
    report = desk.ingest(path, harness="desk_b")
    assert counts(report) == {"ingested": 1, "contradicted": 1}


@pytest.mark.parametrize("order", list(itertools.permutations(["desk_a", "desk_b", "desk_c"])))
def test_wrong_claims_and_the_right_one_end_alike_in_every_order(desk, order: tuple[str, ...]) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    for name in order:
        desk.ingest(path, harness=name)
    row, conflicts = desk.state("t-1").row, desk.state("t-1").conflicts
    assert (row.fingerprint, row.harness, row.contradicted) == (desk.fingerprint("desk_a"), "desk_a", False)
    assert conflicts == ()


def test_what_a_recorder_stated_is_never_replaced_by_a_claim(desk) -> None:
    path = desk.write("runs.jsonl", desk.recorded("t-1", "desk_b", by="desk_a"))
    assert counts(desk.ingest(path)) == {"ingested": 1, "contradicted": 1}
    bare = desk.write("bare.jsonl", desk.document("t-1"))
    assert counts(desk.ingest(bare, harness="desk_a")) == {"disputing": 1, "contested": 1}
    assert desk.state("t-1").row.fingerprint is None


# --- another version of the importer


def store_as_version(desk, document: dict[str, Any], version: str, raw: bytes | None = None) -> str:
    """Store what another version of the importer would have made of a document: another trajectory."""
    raw = raw or json.dumps(document).encode()
    trajectory = {**document, "notes": f"as version {version} read it"}
    trajectory.pop("extra", None)
    line = digest.canonical(
        {
            "format": "tracemark/trace/1",
            "harness": {},
            "outcome": {"status": "unknown"},
            "run": {},
            "source": {
                "format": "atif",
                "label": "runs.jsonl",
                "raw": digest.sha256(raw),
                "importer": "atif",
                "importer_version": version,
            },
            "trajectory": trajectory,
        }
    )
    with Store.open(desk.root, create=True) as store, store.workspace() as folder:
        writer = DraftWriter(folder, "old")
        writer.add(line, project_line(line))
        for draft in writer.close():
            store.commit_segment(draft)
    return project_line(line).row.trace_id


def test_a_record_that_an_older_importer_read_is_imported_again_and_replaces_what_that_made(desk) -> None:
    document = desk.document("t-1")
    old = store_as_version(desk, document, "0.9")
    report = desk.ingest(desk.write("runs.jsonl", document, desk.document("t-2")))
    assert counts(report) == {"ingested": 1, "reimported": 1}
    with Store.open(desk.root) as store:
        (new,) = store.state(old).superseded_by
    assert desk.line(new)["source"]["supersedes"] == [old]
    assert counts(desk.ingest()) == {"duplicates": 2}
    desk.check()


def test_a_record_that_a_newer_importer_read_is_not_read_back(desk) -> None:
    document = desk.document("t-1")
    store_as_version(desk, document, f"{IMPORTER.version}.1")
    assert counts(desk.ingest(desk.write("runs.jsonl", document))) == {"duplicates": 1}
    with Store.open(desk.root) as store:
        assert store.counts()["traces"] == 1


def trial(desk, name: str) -> bytes:
    """Write a Harbor trial whose transcript names no session; return the transcript, which is that of every trial."""
    document = desk.document("t-1")
    del document["session_id"]
    raw = json.dumps(document).encode()
    desk.put(f"job/{name}/agent/trajectory.json", raw)
    desk.put(f"job/{name}/result.json", json.dumps({"id": f"trial-{name}", "task_name": f"task-{name}"}).encode())
    desk.put(f"job/{name}/config.json", b"{}")
    return raw


def superseded_by(desk, trace_id: str) -> tuple[str, ...]:
    with Store.open(desk.root) as store:
        return store.state(trace_id).superseded_by


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_a_new_reading_of_one_run_does_not_replace_another_run_with_the_same_bytes(desk, names: list[str]) -> None:
    raw = trial(desk, "one")
    old = {
        name: store_as_version(desk, {**json.loads(raw), "session_id": f"trial-{name}"}, "0.9", raw)
        for name in ("one", "two")
    }
    for name in names:
        trial(desk, name)
    assert counts(desk.ingest()) == {"reimported": len(names)}
    for name, trace_id in old.items():
        new = superseded_by(desk, trace_id)
        assert len(new) == (name in names)
        for one in new:
            assert desk.line(one)["trajectory"]["session_id"] == f"trial-{name}"
            assert desk.line(one)["source"]["supersedes"] == [trace_id]
    desk.check()


def test_a_newer_reading_of_another_run_with_the_same_bytes_keeps_no_run_out(desk) -> None:
    raw = trial(desk, "one")
    store_as_version(desk, {**json.loads(raw), "session_id": "trial-two"}, f"{IMPORTER.version}.1", raw)
    assert counts(desk.ingest()) == {"ingested": 1}


@pytest.mark.parametrize("version", ["0.9", f"{IMPORTER.version}.1"])
def test_a_reading_that_did_not_name_the_run_may_be_of_it(desk, version: str) -> None:
    raw = trial(desk, "one")
    other = store_as_version(desk, json.loads(raw), version, raw)
    older = version == "0.9"
    assert counts(desk.ingest()) == ({"reimported": 1} if older else {"duplicates": 1})
    assert len(superseded_by(desk, other)) == older


@pytest.mark.parametrize(("stored", "now"), [("9", "10"), ("1.9", "1.10"), ("9.9", "10.1")])
def test_version_ten_comes_after_version_nine(
    desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stored: str, now: str
) -> None:
    document = desk.document("t-1")
    for there, reading, expected in ((stored, now, "reimported"), (now, stored, "duplicates")):
        corpus = desk.other(tmp_path / reading / "corpus")
        store_as_version(corpus, document, there)
        monkeypatch.setattr(AtifImporter, "version", reading)
        assert counts(corpus.ingest(corpus.write("runs.jsonl", document))) == {expected: 1}


# --- retracted


def test_a_retracted_record_that_is_ingested_again_stays_barred(desk) -> None:
    document = desk.document("t-1")
    path = desk.write("runs.jsonl", document)
    desk.ingest(path)
    decisions.retract(desk.root, [desk.state("t-1").trace_id], "holds an address", CLOCK)
    (desk.inbox / "copy.json").write_text(json.dumps(document))
    assert counts(desk.ingest()) == {"duplicates": 2}
    assert desk.states(Corpus(desk.root).store_decisions)["t-1"].retracted


def present(desk) -> list[bool]:
    """Return of each trace that is not superseded whether it is retracted."""
    decided = Corpus(desk.root).store_decisions
    with Store.open(desk.root) as store:
        return [state.retracted for state in store.select(Selection(), decided)]


@pytest.mark.parametrize("later", [False, True])
def test_no_other_record_of_a_retracted_trace_brings_the_run_back(
    desk, newer: Callable[[str], None], later: bool
) -> None:
    document = desk.document("t-1")
    desk.ingest(desk.write("b.jsonl", document))
    trace = desk.state("t-1").trace_id
    if later:
        decisions.retract(desk.root, [trace], "leaked answer", CLOCK)
    other = pretty(desk, "a.json", document)
    assert counts(desk.ingest(other)) == {"duplicates": 1}
    if not later:
        decisions.retract(desk.root, [trace], "leaked answer", CLOCK)
    newer("90")
    assert counts(desk.ingest(other)) == {"reimported": 1}
    assert present(desk) == [True]
    # and so on: a third record of what the newer version made of the second
    third = desk.put("c.json", json.dumps(document, indent=3).encode())
    assert counts(desk.ingest(third)) == {"duplicates": 1}
    newer("91")
    assert counts(desk.ingest(third)) == {"reimported": 1}
    assert present(desk) == [True]
    with pytest.raises(NegativeAnswerError, match="retracted already"):
        decisions.retract(desk.root, [desk.ids(superseded=False)[0]], "leaked answer", CLOCK)


def test_the_newer_reading_can_be_reinstated_alone_and_stays_so_whatever_is_read_again(
    desk, newer: Callable[[str], None]
) -> None:
    document = desk.document("t-1")
    one, two = desk.write("b.jsonl", document), pretty(desk, "a.json", document)
    desk.ingest()
    old = desk.state("t-1").trace_id
    decisions.retract(desk.root, [old], "read wrongly", CLOCK)
    newer("90")
    desk.ingest(two)
    (new,) = desk.ids(superseded=False)
    assert present(desk) == [True]
    decisions.reinstate(desk.root, [new], "this reading is right", CLOCK)
    assert present(desk) == [False]
    assert counts(desk.ingest(one)) == {"duplicates": 1}
    assert present(desk) == [False]
    decided = Corpus(desk.root).store_decisions
    with Store.open(desk.root) as store:
        assert store.state(old, decided).retracted, "nobody reinstated the old reading"
    decisions.reinstate(desk.root, [old], "that one too", CLOCK)
    assert Corpus(desk.root).decisions.retracted == {}


def test_a_retraction_names_every_record_of_the_run(desk, newer: Callable[[str], None]) -> None:
    document = desk.document("t-1")
    one, two = desk.write("b.jsonl", document), pretty(desk, "a.json", document)
    desk.ingest()
    newer("90")
    desk.ingest(two)
    (new,) = desk.ids(superseded=False)
    decisions.retract(desk.root, [new], "leaked answer", CLOCK)
    (entry,) = Corpus(desk.root).chain.entries
    assert entry.decision.subject == {"trace": new, "raw": sha(two), "also": [sha(one)]}
    newer("91")
    desk.ingest(one)
    assert present(desk) == [True, True], "no record is in both readings, so neither replaces the other"


def test_a_retracted_record_that_another_importer_reads_is_barred_under_its_new_id_too(desk) -> None:
    document = desk.document("t-1")
    old = store_as_version(desk, document, "0.9")
    decisions.retract(desk.root, [old], "holds an address", CLOCK)
    desk.ingest(desk.write("runs.jsonl", document))
    states = desk.states(Corpus(desk.root).store_decisions).values()
    assert [state.retracted for state in states] == [True]
    with Store.open(desk.root) as store:
        new = store.state(old).superseded_by[0]
        assert store.state(new, Corpus(desk.root).store_decisions).retracted


# --- one run, whatever the order


STATEMENTS = [
    ("t-1", {}, None),
    ("t-1", outcome("success", reward=1.0), None),
    ("t-1", outcome("failure"), "desk_a"),
    ("t-1", {"run": {"task": "one", "seed": 3}}, "desk_b"),
    ("t-2", {}, "desk_a"),
    ("t-2", {"run": {"task": "two"}}, "desk_c"),
    ("t-3", outcome("error", termination="timeout"), None),
]


def test_ids_and_what_is_known_do_not_depend_on_the_order_of_files_or_batches(
    desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def known(batches: list[list[Any]]) -> dict[str, Any]:
        corpus = desk.other(tmp_path_factory.mktemp("order") / "corpus")
        for number, batch in enumerate(batches):
            for claim in (None, "desk_a", "desk_b", "desk_c"):
                said = [(task, carried) for task, carried, name in batch if name == claim]
                documents = [corpus.carrying(t, **more) if more else corpus.document(t) for t, more in said]
                if documents:
                    corpus.ingest(corpus.write(f"{number}-{claim}.jsonl", *documents), harness=claim)
        hidden = ("head", "raw", "label")
        return {
            task: ({n: v for n, v in state.row._asdict().items() if n not in hidden}, state.conflicts)
            for task, state in corpus.states().items()
        }

    expected = known([STATEMENTS])

    @settings(max_examples=8)
    @given(order=st.permutations(STATEMENTS), cut=st.integers(0, len(STATEMENTS)))
    def holds(order: list[Any], cut: int) -> None:
        assert known([order[:cut], order[cut:]]) == expected

    holds()


def test_a_snapshot_says_what_the_fingerprint_was_made_of(desk) -> None:
    desk.ingest(desk.write("runs.jsonl", desk.document("t-1")), harness="desk_a")
    (path,) = Path(desk.root / "traces" / "harnesses").iterdir()
    assert snapshot.from_bytes(path.read_bytes()).fingerprint == desk.fingerprint("desk_a")
