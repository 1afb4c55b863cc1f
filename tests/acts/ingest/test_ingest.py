"""The act of ingesting: names, batches, reports, dry runs, crashes, two writers at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark.acts.corpus import Corpus
from tracemark.clock import FixedClock
from tracemark.durable import CrashPoint
from tracemark.errors import NothingReadableError, NotPulledError, UnknownNameError, UsageError
from tracemark.harness import snapshot
from tracemark.importers import source
from tracemark.importers.base import EXCERPT
from tracemark.store.store import Store

OF_THE_LEDGER = {CrashPoint.LEDGER_WRITTEN, CrashPoint.PARAMS_WRITTEN}
OF_A_COMMIT = [point for point in CrashPoint if point not in OF_THE_LEDGER]

INGEST = """
import json, sys
from pathlib import Path
from tracemark.acts.ingest import IngestOptions, ingest

report = ingest(Path(sys.argv[1]), [Path(sys.argv[2])], IngestOptions(harness=sys.argv[3] or None))
print(json.dumps(report.as_json()))
"""


def start(root: Path, inbox: Path, harness: str = "", crash_at: CrashPoint | None = None) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if crash_at is not None:
        environment["TRACEMARK_CRASH_AT"] = crash_at.value
    command = [sys.executable, "-c", INGEST, str(root), str(inbox), harness]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def codes(report: Any) -> list[str]:
    return [found.code for found in report.findings]


# --- what is claimed


def test_a_name_that_nothing_answers_to_ends_before_anything_is_read(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    with pytest.raises(UnknownNameError, match="desk_z"):
        desk.ingest(path, harness="desk_z")
    with pytest.raises(UnknownNameError):
        desk.ingest(path, format="no-such-format")
    with pytest.raises(UsageError, match="no such file"):
        desk.ingest(desk.inbox / "missing.jsonl")
    assert not (desk.root / "traces").exists()


def test_a_harness_is_named_by_folder_or_by_fingerprint(desk) -> None:
    for number, name in enumerate(("desk_a", desk.fingerprint("desk_a"), desk.fingerprint("desk_a")[:20])):
        report = desk.ingest(desk.write(f"{number}.jsonl", desk.document(f"t-{number}")), harness=name)
        assert report.harnesses == {"desk_a": 1}


def test_a_batch_names_its_harness_model_domain_and_split(desk) -> None:
    desk.write("first/runs.jsonl", desk.document("t-1"))
    desk.put("first/batch.yaml", b"harness: desk_a\nmodel: scripted\ndomain: shop\nsplit: train\n")
    desk.write("second/runs.jsonl", desk.document("t-2", by="desk_b"))
    desk.put("second/batch.yaml", b"harness: desk_b\n")
    desk.write("third/runs.jsonl", desk.document("t-3"))
    report = desk.ingest()
    assert report.harnesses == {"-": 1, "desk_a": 1, "desk_b": 1}
    row = desk.state("t-1").row
    assert (row.fingerprint, row.model, row.domain, row.split) == (
        desk.fingerprint("desk_a"), "scripted", "shop", "train",
    )  # fmt: skip
    assert report.exit_code == 0


@pytest.mark.parametrize("cut", [1, source.RANGE])
def test_what_records_say_otherwise_than_their_batch_counts_and_is_told_once(desk, monkeypatch, cut) -> None:
    monkeypatch.setattr(source, "RANGE", cut)
    for number in range(3):
        made = desk.document(f"t-{number}")
        made["agent"]["model_name"] = "tiny"
        desk.write(f"first/{number}.jsonl", made)
    desk.put("first/batch.yaml", b"model: {name: large, revision: '7'}\ndomain: shop\n")
    report = desk.ingest()
    assert {(state.row.model, state.row.revision) for state in desk.states().values()} == {("tiny", None)}
    (found,) = report.findings
    assert (found.code, found.where) == ("batch-overruled", "first/0.jsonl (batch.yaml)")
    assert found.message.startswith("model 'large@7' is stated, and 3 records say otherwise ('tiny')")
    assert (report.finding_counts, report.exit_code) == ({"batch-overruled": 3}, 0)
    # what the hint says is done to the letter
    desk.put("first/batch.yaml", b"model: {name: tiny, revision: '7'}\ndomain: shop\n")
    again = desk.ingest()
    assert (again.strengthened, again.contested, codes(again)) == (3, 0, [])
    assert {(state.row.model, state.row.revision) for state in desk.states().values()} == {("tiny", "7")}


def test_a_harness_named_by_the_caller_stands_above_that_of_the_batch(desk) -> None:
    desk.write("first/runs.jsonl", desk.document("t-1", by="desk_b"))
    desk.put("first/batch.yaml", b"harness: nobody\n")
    report = desk.ingest(harness="desk_b")
    assert report.harnesses == {"desk_b": 1}
    assert codes(report) == []


def test_a_batch_of_an_unknown_harness_is_stored_without_the_claim_and_gets_it_when_the_name_is_corrected(desk) -> None:
    desk.write("first/runs.jsonl", desk.document("t-1"))
    desk.put("first/batch.yaml", b"harness: desk_z\n")
    desk.put("third/batch.yaml", b"harness: desk_z\n")
    desk.write("third/runs.jsonl", desk.document("t-3"))
    desk.write("second/runs.jsonl", desk.document("t-2"))
    report = desk.ingest()
    assert report.ingested == 3
    assert codes(report) == ["batch-harness-unknown"], "once for each name"
    assert report.findings[0].where == "first/runs.jsonl (batch.yaml)"
    assert report.exit_code == 1
    desk.put("first/batch.yaml", b"harness: desk_a\n")
    again = desk.ingest()
    assert (again.strengthened, again.duplicates, codes(again)) == (1, 2, ["batch-harness-unknown"])
    assert desk.state("t-1").row.fingerprint == desk.fingerprint("desk_a")


def test_a_batch_that_cannot_be_understood_states_nothing_and_its_traces_are_stored(desk) -> None:
    desk.write("first/runs.jsonl", desk.document("t-1"))
    desk.put("first/batch.yaml", b"harnes: desk_a\n")
    report = desk.ingest()
    assert (report.ingested, report.harnesses, codes(report), report.exit_code) == (
        1, {"-": 1}, ["batch-invalid"], 1,
    )  # fmt: skip


def test_a_version_that_got_another_name_keeps_its_snapshot_and_its_traces(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    fingerprint = desk.fingerprint("desk_a")
    folder = desk.root / "harness_versions" / "desk_a"
    manifest = folder / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("name: desk_a", "name: front_desk"))
    folder.rename(folder.with_name("front_desk"))
    report = desk.ingest(path, desk.write("more.jsonl", desk.document("t-2")), harness="front_desk")
    assert (report.duplicates, report.ingested, report.contested) == (1, 1, 0)
    assert {state.row.fingerprint for state in desk.states().values()} == {fingerprint}
    desk.check()


def test_a_harness_edited_after_ingest_changes_nothing_about_its_traces(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    desk.ingest(path, harness="desk_a")
    before = desk.everything()
    (desk.root / "harness_versions" / "desk_a" / "system.txt").write_text("Something else altogether.\n")
    assert desk.everything() == before
    desk.check()
    # the name means the edited version now
    report = desk.ingest(path, harness="desk_a")
    assert (report.duplicates, report.contradicted, report.claims_dropped) == (1, 0, 1), (
        "the name means the edited version now"
    )
    assert desk.everything() == before


def take_prompt(desk, name: str, of: str) -> None:
    """Edit a version: it has the prompt of another one."""
    versions = desk.root / "harness_versions"
    (versions / name / "system.txt").write_bytes((versions / of / "system.txt").read_bytes())


@pytest.mark.parametrize("stated", ["by the caller", "by a batch"])
def test_a_name_to_which_other_harnesses_answer_is_a_finding_wherever_it_is_stated(desk, stated: str) -> None:
    former = desk.fingerprint("desk_a")
    desk.ingest(desk.write("first/runs.jsonl", desk.document("t-1")), harness=former)
    take_prompt(desk, "desk_a", of="desk_c")
    desk.write("second/runs.jsonl", desk.document("t-2", by="desk_c"))
    desk.write("third/runs.jsonl", desk.document("t-3", by="desk_c"))

    def ingest(name: str, **options: Any) -> Any:
        if stated == "by the caller":
            return desk.ingest(*(desk.inbox / folder for folder in ("second", "third")), harness=name, **options)
        for folder in ("second", "third"):
            desk.put(f"{folder}/batch.yaml", f"harness: {name}\n".encode())
        return desk.ingest(**options)

    report = ingest("desk_a", dry_run=True)
    assert (codes(report), report.exit_code) == (["name-shared"], 0), "once for each name"
    assert f"{former[:16]} (snapshot)" in report.findings[0].message
    assert codes(ingest(desk.fingerprint("desk_a"))) == []
    assert codes(ingest("desk_b")) == ["claim-dropped"], "a name of one harness"


def test_where_nothing_can_be_read_a_name_is_not_the_reason(desk) -> None:
    desk.ingest(desk.write("runs.jsonl", desk.document("t-1")), harness="desk_a")
    take_prompt(desk, "desk_a", of="desk_c")
    junk = desk.put("junk/a.jsonl", b'{"schema_version": "ATIF-v1.8", "steps": 3}\n')
    with pytest.raises(NothingReadableError, match="steps"):
        desk.ingest(junk, harness="desk_a")
    desk.put("junk/batch.yaml", b"harness: nobody\n")
    with pytest.raises(NothingReadableError, match="steps"):
        desk.ingest(junk)


def test_a_harness_that_the_content_refutes_is_stored_whole_too(desk) -> None:
    fingerprint = desk.fingerprint("desk_a")
    path = desk.write("runs.jsonl", desk.document("t-1", by="desk_b"), desk.document("t-2", by="desk_b"))
    assert desk.ingest(path, harness="desk_a").contradicted == 2
    with Store.open(desk.root) as store:
        assert store.layout.snapshots() == [fingerprint]
    (desk.root / "harness_versions" / "desk_a" / "system.txt").write_text("Something else altogether.\n")
    assert desk.fingerprint("desk_a") != fingerprint
    assert Corpus(desk.root).name_of(fingerprint) == "desk_a"
    desk.check()


def test_a_recorder_that_the_content_refutes_has_its_harness_stored_as_well(desk) -> None:
    path = desk.write("runs.jsonl", desk.recorded("t-1", "desk_b"))
    assert desk.ingest(path).contradicted == 1
    with Store.open(desk.root) as store:
        assert store.layout.snapshots() == [desk.fingerprint("desk_b")]
    # a claim that says nothing, since it is refuted too, leaves nothing behind
    desk.ingest(path, harness="desk_c")
    desk.ingest(path, harness="desk_a")
    with Store.open(desk.root) as store:
        assert store.layout.snapshots() == sorted(desk.fingerprint(name) for name in ("desk_a", "desk_b"))
    desk.check()


# --- recorded runs


def record(desk, task: str, *, name: str = "desk_a", said: str | None = None) -> Path:
    """Record one run under a harness version; `said` stands in for the prompt that was rendered."""
    inbox = desk.inbox / "recorded"
    with tracemark.record(
        harness=desk.root / "harness_versions" / name,
        inbox=inbox,
        run={"task": task, "attempt": 0},
        agent={"name": "desk", "version": "1"},
        clock=FixedClock("2026-01-31T12:00:00Z", 1),
    ) as rec:
        prompt = rec.prompt("system").render()
        rec.system(said or prompt)
        rec.user(f"Please see to {task}.")
        rec.agent("Done.")
        rec.outcome(status="success", reward=1.0)
    return inbox


def test_a_recorded_run_is_recorded_also_when_its_version_is_gone(desk) -> None:
    fingerprint = desk.fingerprint("desk_a")
    inbox = record(desk, "t-1")
    (desk.root / "harness_versions" / "desk_a").rename(desk.root / "elsewhere")
    report = desk.ingest(inbox)
    assert (report.ingested, report.evidence, report.exit_code) == (1, {"recorded": 1}, 0)
    assert desk.state("t-1").row.fingerprint == fingerprint
    desk.check()


def test_a_recorded_run_whose_snapshot_and_version_are_gone_has_no_fingerprint(desk) -> None:
    inbox = record(desk, "t-1")
    (desk.root / "harness_versions" / "desk_a").rename(desk.root / "elsewhere")
    for path in inbox.glob("*.harness.json"):
        path.unlink()
    report = desk.ingest(inbox)
    assert (report.ingested, codes(report), report.exit_code) == (1, ["harness-unknown"], 0)
    assert desk.state("t-1").row.fingerprint is None
    desk.check()


def test_a_snapshot_beside_runs_that_is_a_link_or_no_snapshot_is_not_believed(desk, tmp_path: Path) -> None:
    inbox = record(desk, "t-1")
    (snapshot,) = inbox.glob("*.harness.json")
    snapshot.rename(tmp_path / "elsewhere.json")
    snapshot.symlink_to(tmp_path / "elsewhere.json")
    (inbox / "other.harness.json").write_bytes(b"[1, 2")
    (desk.root / "harness_versions" / "desk_a").rename(desk.root / "elsewhere")
    assert codes(desk.ingest(inbox)) == ["harness-unknown"]


def test_a_prompt_that_the_harness_did_not_render_contradicts_the_recorder(desk) -> None:
    report = desk.ingest(record(desk, "t-1", said="Something else altogether."))
    assert (report.ingested, report.contradicted, report.exit_code) == (1, 1, 1)
    assert desk.state("t-1").row.fingerprint is None
    assert "stamp-contradicted" in codes(report)


def test_a_run_that_never_began_is_skipped_every_time(desk) -> None:
    desk.write("batch/runs.jsonl", desk.document("t-1"))
    desk.put("batch/killed.journal.jsonl", b"")
    for ingested in (1, 0):
        report = desk.ingest()
        assert (report.ingested, report.refused, report.skipped, report.exit_code) == (ingested, 0, 1, 0)
        assert codes(report) == ["journal-empty"]


# --- sub-agents


def test_a_sub_agents_document_alone_does_not_refute_the_harness_of_its_batch(desk) -> None:
    child = desk.document("a part", by="desk_c")
    child["agent"]["extra"] = {"parent_session_id": "s-1"}
    report = desk.ingest(desk.write("runs.jsonl", desk.document("t-1"), child), harness="desk_a")
    assert (report.ingested, report.contradicted, report.exit_code) == (2, 0, 0)
    row = desk.state("a part").row
    assert (row.role, row.evidence) == ("subagent", "claimed")


# --- findings


def test_findings_are_bounded_per_code_and_their_true_number_is_told(desk) -> None:
    wrong = [desk.document(f"t-{number}", by="desk_b") for number in range(130)]
    path = desk.write("runs.jsonl", *wrong)
    path.write_bytes(path.read_bytes() + b"[1]\n" * 250)
    report = desk.ingest(path, harness="desk_a")
    assert report.finding_counts == {"record-not-object": 250, "stamp-contradicted": 130}
    assert (report.refused, report.contradicted) == (250, 130)
    assert codes(report).count("record-not-object") == codes(report).count("stamp-contradicted") == 100


def test_findings_of_several_files_are_counted_together(desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "RANGE", 4096)
    for number in range(3):
        path = desk.write(f"{number}.jsonl", desk.document(f"t-{number}"))
        path.write_bytes(path.read_bytes() + b"[%d]\n" % number * 60 + b" " * 4096)
    report = desk.ingest()
    assert report.finding_counts == {"record-not-object": 180}
    assert len(report.findings) == 100


# --- refused


def test_what_cannot_be_read_is_kept_with_its_bytes_its_place_and_the_reason(desk) -> None:
    desk.write("runs.jsonl", desk.document("t-1"))
    desk.put("notes.txt", b"not a trace\n")
    desk.put("broken.jsonl", json.dumps(desk.document("t-2")).encode() + b'\n{"steps": [1, \n')
    report = desk.ingest()
    assert (report.ingested, report.refused, report.exit_code) == (2, 2, 1)
    kept = {record["where"]: record for record in desk.refused()}
    import base64

    assert {where: record["code"] for where, record in kept.items()} == {
        "notes.txt": "format-unknown",
        "broken.jsonl:2": "record-truncated",
    }
    assert base64.b64decode(kept["notes.txt"]["excerpt"]) == b"not a trace\n"
    assert base64.b64decode(kept["broken.jsonl:2"]["excerpt"]) == b'{"steps": [1,'
    again = desk.ingest()
    assert (again.refused, again.exit_code, desk.counts()["refused"]) == (2, 1, 2)
    desk.check()


def test_thousands_of_refused_records_are_stored_in_files_of_bounded_size(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    path.write_bytes(path.read_bytes() + b"".join(b"[%d]\n" % number for number in range(9000)))
    assert desk.ingest(path).refused == 9000
    assert desk.counts()["refused"] == 9000
    assert len(list((desk.root / "traces" / "refused").iterdir())) == 3
    desk.check()


def test_refused_files_are_looked_at_when_their_turn_comes(desk) -> None:
    paths = [desk.put(name, b"not a trace\n") for name in ("a.txt", "b.txt")]
    planned = source.plan(paths)
    assert len(planned.refused) == 2
    paths[1].write_bytes(b"nor is this\n")
    assert [refused.excerpt for refused in planned.refused] == [b"not a trace\n", b"nor is this\n"]


def test_of_a_large_refused_file_the_beginning_is_kept(desk) -> None:
    desk.write("runs.jsonl", desk.document("t-1"))
    desk.put("large.bin", b"x" * (EXCERPT + 1000))
    desk.ingest()
    (record,) = desk.refused()
    assert len(record["excerpt"]) * 3 // 4 == pytest.approx(EXCERPT, abs=3)


def test_a_record_on_which_an_importer_fails_is_kept_and_the_rest_is_stored(desk, monkeypatch) -> None:
    from tracemark.importers.atif import AtifImporter

    real = AtifImporter._trace

    def trace(self, record, document, *rest):
        if document.value["session_id"] == "session-t-2":
            raise TypeError("unhashable type: 'list'")
        return real(self, record, document, *rest)

    monkeypatch.setattr(AtifImporter, "_trace", trace)
    desk.write("runs.jsonl", *(desk.document(f"t-{number}") for number in (1, 2, 3)))
    report = desk.ingest()
    assert (report.ingested, report.refused, report.exit_code) == (2, 1, 1)
    assert codes(report) == ["importer-failed"]
    [kept] = desk.refused()
    assert (kept["code"], kept["where"]) == ("importer-failed", "runs.jsonl:2")
    monkeypatch.undo()
    again = desk.ingest()
    assert (again.ingested, again.duplicates, again.refused) == (1, 2, 0)


def test_a_malformed_snapshot_beside_journals_is_data(desk) -> None:
    sound = snapshot.write(desk.harness("desk_a"))
    colliding = {**sound, "files": {**sound["files"], "x.py": {"text": "1"}, "root:x.py": {"text": "2"}}}
    malformed = [
        {**colliding, "unassigned": ["root:x.py", "x.py"]},
        {**sound, "files": []},
        {**sound, "manifest": {}},
        {**sound, "findings": [{"code": 1}]},
        {**sound, "format": "tracemark/harness-snapshot/9"},
        {"format": sound["format"]},
        [],
    ]
    for number, value in enumerate(malformed):
        desk.put(f"batch/{number:064d}.harness.json", json.dumps(value).encode())
    desk.put(f"batch/{99:064d}.harness.json", b"\xff{")
    desk.write("batch/runs.jsonl", desk.document("t-1"))
    report = desk.ingest()
    assert (report.ingested, report.refused, report.exit_code) == (1, 0, 0)


# --- nothing readable


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.jsonl", b"", "nothing in it"),
        ("notes.txt", b"hello\n", "no known format"),
        ("lines.jsonl", b'{"schema_version": "ATIF-v1.8", "steps": 3, "agent": {}}\n', "steps"),
    ],
)
def test_where_nothing_can_be_read_the_first_reason_is_told(desk, name: str, data: bytes, said: str) -> None:
    path = desk.put(name, data)
    with pytest.raises(NothingReadableError) as raised:
        desk.ingest(path)
    assert raised.value.exit_code == 20
    assert said in raised.value.message
    assert (raised.value.where or "").startswith(name)
    assert desk.counts()["refused"] == 1, "what was refused is kept all the same"


def test_an_empty_folder_is_nothing_readable(desk, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingReadableError, match="nothing in empty could be read: there is nothing in it"):
        desk.ingest(tmp_path / "empty")


def test_the_inbox_of_a_new_corpus_may_be_empty(desk) -> None:
    report = desk.ingest()
    assert (report.ingested, codes(report), report.exit_code) == (0, ["inbox-empty"], 0)
    assert report.finding_counts == {"inbox-empty": 1}


def test_the_first_reason_is_that_of_a_record_not_of_a_batch_file(desk) -> None:
    desk.put("first/batch.yaml", b"harnes: desk_a\n")
    desk.put("first/notes.txt", b"hello\n")
    with pytest.raises(NothingReadableError, match="no known format"):
        desk.ingest()


def test_a_corpus_whose_pinned_data_is_not_there_gets_no_other_one(desk) -> None:
    (desk.root / "dvc.lock").write_text(
        "schema: '2.0'\nstages:\n  ingest:\n    cmd: tracemark ingest inbox\n    outs:\n"
        "    - {path: traces/segments, md5: 0123456789abcdef0123456789abcdef.dir, nfiles: 9}\n"
    )
    path = desk.write("runs.jsonl", desk.document("t-1"))
    for inbox in ("partial", "complete"):
        (desk.root / "params.yaml").write_text(f"ingest: {{inbox: {inbox}}}\n")
        with pytest.raises(NotPulledError, match="9 of traces/segments; ingesting now would begin another corpus"):
            desk.ingest(path)


# --- dry run


def plain(report: Any) -> dict[str, Any]:
    return {name: value for name, value in report.as_json().items() if name != "dry_run"}


def test_a_dry_run_reports_what_the_run_will_and_stores_nothing(desk) -> None:
    desk.sibling("desk_d", 20)
    desk.write("known.jsonl", desk.document("t-1"), desk.document("t-2"))
    desk.ingest(harness="desk_a")
    desk.write("known.jsonl", desk.document("t-1"), desk.carrying("t-2", outcome={"status": "success"}))
    desk.write("new.jsonl", desk.document("t-3"), desk.document("t-3"), desk.document("t-4", by="desk_b"))
    desk.write("twice.jsonl", desk.carrying("t-3", outcome={"status": "failure"}), desk.recorded("t-5", "desk_d"))
    desk.put("notes.txt", b"hello\n")
    before = desk.everything()
    tried = desk.ingest(dry_run=True, harness="desk_a")
    assert tried.dry_run
    assert desk.everything() == before
    assert desk.counts()["refused"] == 0
    done = desk.ingest(harness="desk_a")
    assert plain(tried) == plain(done)
    assert {name: n for name, n in plain(done).items() if isinstance(n, int)} == {
        "ingested": 3, "duplicates": 2, "strengthened": 2, "disputing": 0, "reimported": 0, "refused": 1,
        "skipped": 0, "contested": 1, "contradicted": 1, "claims_dropped": 0,
    }  # fmt: skip


def test_a_dry_run_where_there_is_no_store_makes_none(desk) -> None:
    path = desk.write("runs.jsonl", desk.document("t-1"))
    assert desk.ingest(path, dry_run=True).ingested == 1
    assert not (desk.root / "traces").exists()
    assert not (desk.root / ".tracemark").exists()


# --- crashes and races


def mixed_inbox(desk) -> None:
    """Fill the inbox with two partitions, repeats, a second opinion, a contested stamp and something refused."""
    desk.sibling("desk_d", 20)
    desk.write("a/runs.jsonl", *(desk.document(f"t-{n}") for n in range(3)), desk.document("t-1"))
    desk.put("a/batch.yaml", b"harness: desk_a\n")
    desk.write("b/runs.jsonl", desk.carrying("t-2", outcome={"status": "success"}), desk.document("t-4", by="desk_b"))
    desk.write("c/runs.jsonl", desk.recorded("t-5", "desk_d"))
    desk.put("c/batch.yaml", b"harness: desk_a\n")
    desk.put("c/notes.txt", b"hello\n")


@pytest.mark.parametrize("point", OF_A_COMMIT)
def test_an_ingest_killed_anywhere_and_repeated_gives_the_same_store(desk, point: CrashPoint) -> None:
    mixed_inbox(desk)
    whole = desk.other(desk.root.parent / "whole")
    whole.sibling("desk_d", 20)
    whole.ingest(desk.inbox)
    assert start(desk.root, desk.inbox, crash_at=point).wait(timeout=60) == -signal.SIGKILL
    assert start(desk.root, desk.inbox).wait(timeout=60) == 0
    assert desk.everything() == whole.everything()
    assert {note["trace"] for note in desk.annotations("stamps")} == {desk.state("t-5").trace_id}
    assert list((desk.root / ".tracemark" / "tmp").iterdir()) == []
    desk.check()


def disputed_inbox(desk) -> None:
    """Fill the inbox with one trace that its batch disputes, one that its copy does, and one that nobody does."""
    desk.sibling("desk_d", 20)
    desk.write("c/runs.jsonl", desk.recorded("t-1", "desk_d"))
    desk.write("c/more.jsonl", desk.recorded("t-2", "desk_d"), desk.document("t-2"), desk.document("t-3"))
    desk.write("c/graded.jsonl", desk.carrying("t-4", outcome={"status": "success"}))
    desk.write("c/graded_twice.jsonl", desk.carrying("t-4", outcome={"status": "failure"}))
    desk.put("c/batch.yaml", b"harness: desk_a\n")


def test_the_traces_of_a_job_are_stored_before_what_it_refused(desk) -> None:
    desk.put("runs.jsonl", json.dumps(desk.document("t-1")).encode() + b"\n{broken\n")
    assert start(desk.root, desk.inbox, crash_at=CrashPoint.RENAMED).wait(timeout=60) == -signal.SIGKILL
    assert list((desk.root / "traces" / "refused").iterdir()) == []
    assert desk.counts()["traces"] == 1
    assert start(desk.root, desk.inbox).wait(timeout=60) == 0
    assert [record["where"] for record in desk.refused()] == ["runs.jsonl:2"]


@pytest.mark.parametrize("point", OF_A_COMMIT)
def test_no_crash_of_an_ingest_leaves_a_disputed_trace_that_counts_under_a_harness(desk, point: CrashPoint) -> None:
    disputed_inbox(desk)
    seen = []
    # where the kill comes after the rename, each run commits one file more
    for _ in range(9):
        code = start(desk.root, desk.inbox, crash_at=point).wait(timeout=60)
        states = desk.states()
        seen.append(sorted(states))
        for task in states.keys() - {"t-3"}:
            assert states[task].contested, f"{task} is undisputed after {len(seen)} kills"
            assert states[task].row.fingerprint is None or task == "t-4"
        desk.check()
        if code == 0:
            break
        assert code == -signal.SIGKILL
    committed = point not in {CrashPoint.TEMPORARY_WRITTEN, CrashPoint.TEMPORARY_SYNCED}
    assert (code == 0) == committed, "a kill before the rename stores nothing, however often"
    assert len(seen) > 4
    assert start(desk.root, desk.inbox).wait(timeout=60) == 0
    assert sorted(desk.states()) == ["t-1", "t-2", "t-3", "t-4"]
    assert desk.state("t-3").row.fingerprint == desk.fingerprint("desk_a")


def test_a_statement_whose_trace_came_only_after_a_crash_is_counted_as_if_nothing_had_happened(desk) -> None:
    disputed_inbox(desk)
    whole = desk.other(desk.root.parent / "whole")
    whole.sibling("desk_d", 20)
    expected = plain(whole.ingest(desk.inbox))
    assert start(desk.root, desk.inbox, crash_at=CrashPoint.PROJECTED).wait(timeout=60) == -signal.SIGKILL
    assert desk.counts()["annotations"] > 0
    assert desk.counts()["traces"] == 0
    assert plain(desk.ingest()) == expected
    assert desk.everything() == whole.everything()


def test_an_ingest_killed_again_and_again_ends_with_the_same_store(desk) -> None:
    mixed_inbox(desk)
    whole = desk.other(desk.root.parent / "whole")
    whole.sibling("desk_d", 20)
    whole.ingest(desk.inbox)
    codes = [start(desk.root, desk.inbox, crash_at=CrashPoint.PROJECTED).wait(timeout=60) for _ in range(8)]
    # one commit more each time: three segments, three files of statements, one of refused files, then nothing
    assert codes == [-signal.SIGKILL] * 7 + [0]
    assert list((desk.root / ".tracemark" / "tmp").iterdir()) == [], "no worker outlives its ingest and holds a lock"
    assert desk.everything() == whole.everything()
    desk.check()


def test_two_ingests_of_one_inbox_at_once_end_with_the_same_traces(desk) -> None:
    for number in range(4):
        desk.write(f"{number}/runs.jsonl", *(desk.document(f"t-{n}") for n in range(number * 30, number * 30 + 60)))
        desk.put(f"{number}/batch.yaml", b"harness: desk_a\n")
    whole = desk.other(desk.root.parent / "whole")
    whole.ingest(desk.inbox)
    running = [start(desk.root, desk.inbox) for _ in range(2)]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    mine, theirs = desk.states(), whole.states()
    assert {task: state.trace_id for task, state in mine.items()} == {t: s.trace_id for t, s in theirs.items()}
    assert not any(state.contested or state.restated for state in mine.values())
    desk.check()


def test_segments_do_not_depend_on_how_many_workers_made_them(desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        desk.write(f"{number}/runs.jsonl", *(desk.document(f"t-{n}") for n in range(number * 10, number * 10 + 15)))
        desk.put(f"{number}/batch.yaml", b"note: a batch of its own\n")
    stores = []
    for workers in ("1", "3"):
        monkeypatch.setenv("TRACEMARK_WORKERS", workers)
        corpus = desk.other(desk.root.parent / f"with-{workers}")
        corpus.ingest(desk.inbox)
        stores.append(corpus.everything())
    assert stores[0] == stores[1]


# --- what was seen and not understood


def test_what_was_not_understood_is_said_once_for_a_file_and_counted(desk) -> None:
    chat = [{"role": "user", "content": "Please."}, {"role": "assistant", "content": "Done."}]
    runs = [{"id": str(number), "messages": chat, "metadata": {"reward": number / 7}} for number in range(300)]
    report = desk.ingest(desk.write("a.jsonl", *runs), desk.write("b.jsonl", {**runs[0], "id": "b", "status": "won"}))
    assert report.ingested == 301
    said = [(found.where, found.message) for found in report.findings]
    assert said == [
        ("a.jsonl:1", "metadata.reward (a number): not read as a verdict"),
        ("b.jsonl", 'status "won": not read as a verdict'),
        ("b.jsonl", "metadata.reward (a number): not read as a verdict"),
    ]
    assert report.finding_counts == {"verdict-unread": 302}
    assert report.exit_code == 0


def test_carried_facts_that_are_wrong_are_a_warning_that_names_the_member(desk) -> None:
    report = desk.ingest(desk.write("a.jsonl", desk.carrying("t-1", outcome={"status": "succes"})))
    assert codes(report) == ["carried-invalid"]
    assert "outcome/status" in report.findings[0].message
    assert (report.ingested, report.exit_code) == (1, 0)
    assert desk.state("t-1").row.status == "unknown"
