"""What a training set holds, what it leaves out, and what it does to the folder that it is written to."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import audit, decisions, export, health, traces
from tracemark.acts.corpus import Corpus
from tracemark.errors import ExportRefusedError, IntegrityError, UsageError
from tracemark.exporters.select import Reason
from tracemark.ledger import chain

from .conftest import CLOCK, Shop, document, write_version


def left_out(report: export.ExportReport) -> dict[str, int]:
    return {reason: count for reason, count in report.excluded.items() if count}


def tasks(shop: Shop) -> list[str]:
    return sorted(row["tracemark_task"] for row in shop.rows())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def equivalent(shop: Shop, *names: str) -> None:
    shop.enter("equivalent", {"fingerprints": [shop.fingerprint(name) for name in names]}, "the same in effect")


# --- what is in it


def test_it_holds_the_successes_of_the_accepted_harness(shop: Shop) -> None:
    shop.ingest([document("f-1", reward=0.5), document("f-2", reward=None)], name="more")
    shop.accept()
    report = shop.export()
    assert tasks(shop) == ["t-0", "t-1", "t-2"]
    assert left_out(report) == {"other-harness": 2, "outcome": 2}
    assert report.fingerprint == shop.fingerprint("desk_a")


def test_the_counts_add_up_to_the_store_and_every_reason_is_named(shop: Shop) -> None:
    shop.ingest([document(f"t-{n}", attempt=n, calls=n) for n in range(8)], name="more")
    shop.ingest([document("v", extra="Be brief."), document("w")], None, "unclaimed")
    decisions.retract(shop.root, [shop.ids()["t-1"]], "wrong order", CLOCK)
    shop.accept()
    report = shop.export()
    assert report.traces == 15
    assert report.rows + sum(report.excluded.values()) == report.traces
    assert list(report.excluded) == [reason.value for reason in Reason]


def test_superseded_traces_are_counted_beside_those_that_were_looked_at(shop: Shop) -> None:
    old = shop.ids()["t-0"]
    shop.read_anew(old)
    shop.accept()
    report = shop.export()
    assert (report.rows, report.traces, report.superseded) == (3, 5, 1)
    assert report.traces + report.superseded == len(traces.list_(shop.root, traces.TraceFilter()).traces)
    counts = json.loads(Path(report.manifest).read_text())["counts"]
    assert (counts["traces"], counts["superseded"]) == (5, 1)
    assert old not in {row["tracemark_trace_id"] for row in shop.rows()}


def test_the_same_corpus_gives_the_same_bytes_and_one_record_of_it(shop: Shop) -> None:
    shop.accept()
    shop.export()
    first = contents(shop.root / "exports" / "sft")
    shop.export()
    assert contents(shop.root / "exports" / "sft") == first
    shop.export("elsewhere")
    assert contents(shop.root / "elsewhere") == first
    assert len(audit.audit(shop.root, shop.ids()["t-0"]).exports) == 1


def test_a_trace_whose_harness_became_known_later_is_read_where_it_lies(shop: Shop) -> None:
    late = [document("late-1"), document("late-2")]
    shop.ingest(late, None, "late")
    shop.ingest(late, "desk_a", "late")
    assert list((shop.root / "traces" / "segments" / "fingerprint=none").iterdir())
    shop.accept()
    shop.export()
    assert tasks(shop) == ["late-1", "late-2", "t-0", "t-1", "t-2"]


def test_harnesses_that_are_declared_equivalent_count_as_one(shop: Shop) -> None:
    equivalent(shop, "desk_a", "desk_b")
    shop.accept()
    shop.export()
    assert tasks(shop) == ["t-0", "t-1", "t-2", "u-0", "u-1"]
    manifest = json.loads((shop.root / "exports/sft/manifest.json").read_text())
    assert manifest["harness"]["equivalents"] == [shop.fingerprint("desk_b")]


@pytest.mark.parametrize(
    ("models", "expected"), [("[small]", ["m-1", "m-2"]), ("[small@1]", ["m-1"]), ("[large]", ["m-3"])]
)
def test_models_can_be_named_with_or_without_revision(shop: Shop, models: str, expected: list[str]) -> None:
    small, other, large = {"name": "small", "revision": "1"}, {"name": "small", "revision": "2"}, {"name": "large"}
    shop.ingest([document(f"m-{n}", model=model) for n, model in enumerate((small, other, large), 1)], name="models")
    shop.set(("models: []", f"models: {models}"))
    shop.accept()
    shop.export()
    assert tasks(shop) == expected


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ("[t-0]", ["air/t-0x", "n-1", "t-1", "t-2"]),
        ("[air/n-1]", ["air/t-0x", "t-0", "t-1", "t-2"]),
        ("[rail/t-0x, rail/n-1]", ["air/t-0x", "n-1", "t-0", "t-1", "t-2"]),
        ("[t-0x, n-1]", ["t-0", "t-1", "t-2"]),
        ("[air/t-1]", ["air/t-0x", "n-1", "t-0", "t-2"]),
    ],
)
def test_evaluation_tasks_are_never_in_it_with_or_without_their_domain(shop: Shop, named: str, kept: list[str]) -> None:
    shop.ingest([document("n-1", domain="air"), document("air/t-0x")], name="domains")
    shop.set(("tasks: []", f"tasks: {named}"))
    shop.accept()
    shop.export()
    assert tasks(shop) == kept


def test_an_evaluation_id_that_no_trace_has_is_named_by_the_export_and_by_check(shop: Shop) -> None:
    shop.accept()
    shop.set(("tasks: []", "tasks: [T-1, t-2]"))
    report = shop.export()
    (found,) = report.findings
    assert (found.code, report.exit_code) == ("evaluation-misspelt", 0)
    assert "1 of 2 ids" in found.message
    assert "'T-1' (stored is 't-1')" in found.message
    assert health.check(shop.root).findings == (found,)


def test_an_evaluation_id_in_a_file_is_found_there(shop: Shop) -> None:
    (shop.root / "held-out.txt").write_text("nothing-like-it\n")
    shop.accept()
    shop.set(("tasks: []", "tasks: {file: held-out.txt}"))
    (found,) = shop.export().findings
    assert (found.code, found.where) == ("evaluation-unmatched", "held-out.txt")
    assert health.check(shop.root).findings == (found,)


def test_a_task_of_unknown_name_may_be_an_evaluation_task(shop: Shop) -> None:
    shop.ingest([document(None)], name="nameless")
    shop.set(("tasks: []", "tasks: [other]"))
    shop.accept()
    assert left_out(shop.export()) == {"other-harness": 2, "evaluation-task": 1}


def test_tasks_of_two_domains_that_share_a_name_are_two_tasks(shop: Shop) -> None:
    shop.ingest([document("7", domain=domain, attempt=n) for domain in ("air", "rail") for n in (0, 1)], name="domains")
    shop.accept()
    assert left_out(shop.export()) == {"other-harness": 2, "per-task": 2}


def test_without_caps_every_trace_that_fits_is_taken(shop: Shop) -> None:
    shop.ingest([document("t-0", attempt=n, calls=n) for n in range(1, 5)], name="again")
    shop.set(
        ("per_task: 1 ", "per_task: null"), ("total: 100", "total: null"), ("tool_calls: [2, 60]", "tool_calls: null")
    )
    shop.accept()
    assert shop.export().rows == 7


def test_more_segments_than_files_may_be_open(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        shop.ingest([document(f"s-{number}")], name=f"s-{number}")
    monkeypatch.setattr(export, "_OPEN", 2)
    shop.accept()
    assert shop.export().rows == 7
    assert not audit.audit(shop.root, str(shop.root / "exports/sft")).findings


# --- evidence


def test_a_sibling_that_differs_only_in_a_handler_leaves_recorded_runs_alone(shop: Shop) -> None:
    shop.record("r-1")
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.accept()
    assert left_out(shop.export()) == {"other-harness": 2, "evidence": 3}
    assert tasks(shop) == ["r-1"]


def test_a_run_of_which_a_part_was_not_recorded_is_told_from_siblings_by_the_parts_that_were(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_n", extra="Be kind.")
    nudge = "  - {name: nudge, text: Please go on., role: user, position: any}\n"
    manifest = (folder / "harness.yaml").read_text().replace("tool_bindings:", nudge + "tool_bindings:")
    (folder / "harness.yaml").write_text(manifest)
    # nobody asked for the nudge, so it is only claimed, and the run with it
    shop.record("r-1", "desk_n")
    sibling = write_version(shop.root, "desk_c", extra="Be kind.", handler=" + '.'")
    (sibling / "harness.yaml").write_text(manifest)
    shop.ingest([document("t-9", extra="Be kind.")], "desk_n", "more")
    shop.accept("desk_n")
    assert left_out(shop.export()) == {"other-harness": 5, "evidence": 1}
    assert tasks(shop) == ["r-1"]
    assert not audit.audit(shop.root, str(shop.root / "exports/sft")).findings


def test_a_sibling_that_is_declared_equivalent_takes_nothing_away(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    equivalent(shop, "desk_c", "desk_a")
    shop.accept()
    assert shop.export().rows == 3


@pytest.mark.parametrize(("policy", "expected"), [("recorded", ["r-1"]), ("claimed", ["r-1", "t-0", "t-1", "t-2"])])
def test_the_policy_stands_first_in_the_manifest(shop: Shop, policy: str, expected: list[str]) -> None:
    shop.record("r-1")
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.set(("evidence: unique", f"evidence: {policy}"))
    shop.accept()
    assert shop.export().policy == policy
    assert tasks(shop) == expected
    assert (shop.root / "exports/sft/manifest.json").read_text().startswith(f'{{\n  "policy": "{policy}"')


def test_what_weakens_the_fingerprint_is_repeated_in_the_manifest(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_d", extra="Read the file.")
    (folder / "observe.py").write_text("def observe(raw):\n    return raw + open('notes.txt').read()\n")
    shop.ingest([document("d-1", extra="Read the file.")], "desk_d", "files")
    shop.accept("desk_d")
    shop.export()
    findings = json.loads((shop.root / "exports/sft/manifest.json").read_text())["findings"]
    assert {found["code"] for found in findings} == {"closure-incomplete"}


# --- what it reads


def test_no_segment_of_another_harness_is_opened(shop: Shop) -> None:
    shop.accept()
    folder = shop.root / "traces" / "segments"
    mine = f"fingerprint={shop.fingerprint('desk_a').removeprefix('tm1:')[:16]}"
    for path in folder.rglob("*.zst"):
        if path.parent.name != mine:
            path.write_bytes(b"nothing that can be read")
    assert shop.export().rows == 3


def test_a_damaged_trace_stops_it_and_the_earlier_export_stays(shop: Shop) -> None:
    shop.accept()
    shop.export()
    before = contents(shop.root / "exports" / "sft")
    for path in (shop.root / "traces" / "segments").rglob("*.zst"):
        data = path.read_bytes()
        path.write_bytes(data[:20] + bytes(byte ^ 0xFF for byte in data[20:]))
    with pytest.raises(IntegrityError):
        shop.export()
    assert contents(shop.root / "exports" / "sft") == before


@pytest.mark.parametrize("change", ["status = 'success'", "task = 't-9'", "raw = x'00'", "tool_calls = 3"])
def test_a_catalogue_that_says_what_the_line_of_a_trace_does_not_stops_it_and_its_audit(
    shop: Shop, change: str
) -> None:
    shop.ingest([document("f-1", reward=0.5)], name="failed")
    shop.accept()
    shop.export()
    with closing(sqlite3.connect(shop.root / ".tracemark" / "catalogue.db")) as catalogue:
        catalogue.execute(f"UPDATE traces SET {change}")
        catalogue.commit()
    before = contents(shop.root / "exports" / "sft")
    with pytest.raises(IntegrityError) as stopped:
        shop.export()
    assert (stopped.value.exit_code, "tracemark reindex" in str(stopped.value.hint)) == (30, True)
    assert contents(shop.root / "exports" / "sft") == before
    if change.startswith(("task", "raw")):
        # the rows of the export are successes anyway, and as many calls are allowed
        with pytest.raises(IntegrityError):
            audit.audit(shop.root, str(shop.root / "exports" / "sft"))
    health.reindex(shop.root)
    assert shop.export().rows == 3
    assert not audit.audit(shop.root, str(shop.root / "exports" / "sft")).findings


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE restated SET fields = json_set(fields, '$.status', 'success')",
        "UPDATE traces SET status = 'success', raw = x'00' WHERE task = 'f-1'",
        "UPDATE traces SET status = 'success' WHERE task = 'f-1'",
    ],
)
def test_a_catalogue_that_says_of_a_trace_what_its_statements_do_not_stops_it(shop: Shop, change: str) -> None:
    for harness in (None, "desk_a"):
        shop.ingest([document("f-1", reward=0.5)], harness, "failed")
    shop.accept()
    shop.set(("evidence: unique", "evidence: claimed"))
    assert shop.export().rows == 3
    with closing(sqlite3.connect(shop.root / ".tracemark" / "catalogue.db")) as catalogue:
        assert catalogue.execute(change).rowcount == 1
        catalogue.commit()
    with pytest.raises(IntegrityError) as stopped:
        shop.export()
    assert (stopped.value.exit_code, "tracemark reindex" in str(stopped.value.hint)) == (30, True)
    health.reindex(shop.root)
    assert shop.export().rows == 3


def test_an_audit_holds_what_was_stated_again_against_the_statements(shop: Shop) -> None:
    for harness in (None, "desk_a"):
        shop.ingest([document("t-9")], harness, "again")
    shop.accept()
    assert shop.export().rows == 4
    folder = str(shop.root / "exports" / "sft")
    assert not audit.audit(shop.root, folder).findings
    with closing(sqlite3.connect(shop.root / ".tracemark" / "catalogue.db")) as catalogue:
        assert catalogue.execute("UPDATE restated SET fields = json_set(fields, '$.task', 't-8')").rowcount == 1
        catalogue.commit()
    with pytest.raises(IntegrityError, match="statements about the trace"):
        audit.audit(shop.root, folder)


@pytest.mark.parametrize("name", ["desk_a", "desk_b"])
def test_a_segment_that_the_catalogue_cannot_take_in_stops_it(shop: Shop, name: str) -> None:
    shop.accept()
    mine = f"fingerprint={shop.fingerprint(name).removeprefix('tm1:')[:16]}"
    (path,) = (shop.root / "traces" / "segments" / mine).iterdir()
    path.write_bytes(path.read_bytes()[:-30])
    shutil.rmtree(shop.root / ".tracemark")
    with pytest.raises(IntegrityError) as stopped:
        shop.export()
    assert (stopped.value.exit_code, stopped.value.where) == (30, f"traces/segments/{mine}/{path.name}")
    assert not (shop.root / "exports").exists()


def test_records_that_could_not_be_read_and_earlier_exports_are_not_asked_for(shop: Shop) -> None:
    shop.accept()
    shop.export()
    for folder in ("refused", "annotations/exports.sft"):
        path = shop.root / "traces" / folder / f"{'0' * 64}.jsonl.zst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"nothing that can be read")
    report = shop.export("elsewhere")
    assert (report.rows, [found.code for found in report.findings]) == (3, ["stored-not-indexed"] * 2)


# --- refused


def no_harness(shop: Shop) -> None:
    pass


def too_few(shop: Shop) -> None:
    shop.accept()
    shop.set(("minimum: 1 ", "minimum: 4 "))


def nothing_fits(shop: Shop) -> None:
    write_version(shop.root, "desk_c", extra="Nobody ever ran this.")
    shop.accept("desk_c")
    shop.set(("minimum: 1 ", "minimum: 0 "))


def edited_by_hand(shop: Shop) -> None:
    shop.accept()
    shop.set((shop.fingerprint("desk_a"), shop.fingerprint("desk_b")))


def stated_without_a_decision(shop: Shop) -> None:
    shop.set(("harness: null", f"harness: {shop.fingerprint('desk_a')}"))


def two_branches(shop: Shop) -> None:
    ledger = shop.root / chain.NAME
    shop.accept("desk_b")
    theirs = ledger.read_text()
    ledger.write_text("")
    shop.accept("desk_a")
    ledger.write_text(ledger.read_text() + theirs)


@pytest.mark.parametrize(
    "spoil", [no_harness, too_few, nothing_fits, edited_by_hand, stated_without_a_decision, two_branches]
)
def test_it_is_refused_and_writes_nothing(shop: Shop, spoil: Any) -> None:
    spoil(shop)
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert refused.value.exit_code == 40
    assert refused.value.hint
    assert not (shop.root / "exports").exists()
    assert not (shop.root / "traces" / "annotations" / "exports.sft").exists()


def test_a_refusal_says_how_many_more_runs_under_which_harness_are_needed(shop: Shop) -> None:
    too_few(shop)
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert "3 of 5 traces fit, at least 4 are needed" in refused.value.message
    assert "other-harness 2" in refused.value.message
    assert "at least 1 more successful run under desk_a" in str(refused.value.hint)


def test_a_refusal_names_the_limit_that_leaves_out_what_would_fit(shop: Shop) -> None:
    too_few(shop)
    shop.set(("tool_calls: [2, 60]", "tool_calls: [3, 60]"))
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert "at least 4 more successful runs under desk_a" in str(refused.value.hint)
    assert "change params.yaml: export.sft.tool_calls [3, 60] leaves out 3" in str(refused.value.hint)


def test_a_refusal_leaves_an_earlier_export_whole(shop: Shop) -> None:
    shop.accept()
    shop.export()
    before = contents(shop.root / "exports" / "sft")
    shop.set(("minimum: 1 ", "minimum: 9 "))
    with pytest.raises(ExportRefusedError):
        shop.export()
    assert contents(shop.root / "exports" / "sft") == before


# --- the folder


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(shop: Shop) -> None:
    shop.accept()
    (shop.root / "notes").mkdir()
    (shop.root / "notes" / "todo.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"todo\.txt"):
        shop.export("notes")
    assert contents(shop.root / "notes") == {"todo.txt": b"mine"}


@pytest.mark.parametrize(
    "text", ['{"format": "x/1", "made_from": "tracemark/export/1"}', '["tracemark/export/1"]', '"tracemark/export/1']
)
def test_a_manifest_that_only_mentions_the_format_of_exports_is_none(shop: Shop, text: str) -> None:
    shop.accept()
    (shop.root / "notes").mkdir()
    (shop.root / "notes" / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=r"no part of an export: manifest\.json"):
        shop.export("notes")
    assert contents(shop.root / "notes") == {"manifest.json": text.encode()}


@pytest.mark.parametrize("name", ["README.md", "manifest.json", "sft.jsonl"])
def test_a_file_of_an_exports_name_that_is_none_of_it_is_refused_and_left_as_it_is(shop: Shop, name: str) -> None:
    shop.accept()
    (shop.root / "notes").mkdir()
    (shop.root / "notes" / name).write_text('{"name": "mine"}\n')
    with pytest.raises(UsageError, match=f"no part of an export: {name}"):
        shop.export("notes")
    assert contents(shop.root / "notes") == {name: b'{"name": "mine"}\n'}


@pytest.mark.parametrize(
    "left", [["README.md"], ["manifest.json"], ["sft.jsonl"], ["sft.jsonl", ".README.md.x.tmp"], []]
)
def test_whatever_an_export_that_was_cut_short_left_is_replaced(shop: Shop, left: list[str]) -> None:
    shop.accept()
    shop.export()
    folder = shop.root / "exports" / "sft"
    whole = contents(folder)
    (folder / ".README.md.x.tmp").touch()
    for path in folder.iterdir():
        if path.name not in left:
            path.unlink()
    shop.export()
    assert contents(folder) == whole


def test_a_file_of_an_export_that_is_damaged_is_replaced(shop: Shop) -> None:
    shop.accept()
    shop.export()
    folder = shop.root / "exports" / "sft"
    whole = contents(folder)
    for name in whole:
        (folder / name).write_bytes(whole[name][:20] if name == "manifest.json" else b"")
        shop.export()
        assert contents(folder) == whole


def test_a_file_is_no_folder(shop: Shop) -> None:
    shop.accept()
    (shop.root / "out").write_text("mine")
    with pytest.raises(UsageError):
        shop.export("out")


CUT_SHORT = """
import resource, sys
from pathlib import Path
from tracemark.acts import export
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
export.sft(Path(sys.argv[1]), Path(sys.argv[1]) / "exports" / "sft")
"""


def test_an_export_that_was_cut_short_has_no_manifest_and_can_be_made_again(shop: Shop) -> None:
    shop.accept()
    shop.export()
    for number in range(4):
        # each spool is below the limit, all rows together are above
        shop.ingest([document(f"long-{number}", said="word " * 100_000)], name=f"long-{number}")
    command = [sys.executable, "-c", CUT_SHORT, str(shop.root), "1500000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    folder = shop.root / "exports" / "sft"
    assert not (folder / "manifest.json").exists()
    assert {found.code for found in audit.audit(shop.root, str(folder)).findings} == {"export-manifest-unreadable"}
    assert shop.export().rows == 7
    assert set(contents(folder)) == {"manifest.json", "README.md", "sft.jsonl"}
    assert not audit.audit(shop.root, str(folder)).findings


def test_the_export_changes_neither_ledger_nor_corpus_digest(shop: Shop) -> None:
    shop.accept()
    before = (shop.root / chain.NAME).read_bytes()
    first = shop.export()
    again = shop.export("elsewhere")
    assert (shop.root / chain.NAME).read_bytes() == before
    digests = [json.loads(Path(report.manifest).read_text())["corpus"] for report in (first, again)]
    assert digests[0] == digests[1]
    assert Corpus(shop.root).accepted == shop.fingerprint("desk_a")


@pytest.mark.parametrize("out", ["inbox/x", "traces/x", "traces", ".tracemark/x", "harness_versions/x", "way/x"])
def test_an_export_is_not_written_where_it_would_be_read_back(shop: Shop, out: str) -> None:
    shop.accept()
    (shop.root / "way").symlink_to("inbox")
    with pytest.raises(UsageError, match="exports and reports cannot lie in") as caught:
        export.sft(shop.root, Path(out))
    assert caught.value.hint
    assert not (shop.root / out / "manifest.json").exists()
    export.sft(shop.root, Path("inboxes/x"))
