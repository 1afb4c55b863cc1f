"""Tasks of the evaluation set in training exports: those in folders, and those on record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable

import pytest

from tracemark.acts import gating, health
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.leaks import Leaks, leaks
from tracemark.findings import Finding, Severity

from .conftest import document
from .evaluated import TASKS, Bench


def found(bench: Bench) -> Leaks:
    with open_store(bench.root) as store:
        return leaks(Corpus(bench.root), store)


def taken(bench: Bench) -> list[str]:
    """Return the ids of the traces that an export took."""
    return list(json.loads((bench.root / "exports/sft/manifest.json").read_text())["rows"])


def export_before_the_freeze(bench: Bench) -> None:
    """Export while no task is kept for evaluation yet, and keep them then, as it was frozen."""
    ledger = bench.root / "ledger.jsonl"
    decided = ledger.read_text()
    undecided = [line for line in decided.splitlines(keepends=True) if '"kind":"freeze"' not in line]
    ledger.write_text("".join(undecided))
    bench.tasks()
    bench.export()
    ledger.write_text(decided)
    bench.tasks(*TASKS)


@pytest.fixture
def leaky(bench: Bench) -> Bench:
    """A corpus of which an export was made before tasks were kept for evaluation."""
    bench.set(("evidence: unique", "evidence: claimed"))
    export_before_the_freeze(bench)
    return bench


def test_an_export_that_keeps_the_set_out_leaks_nothing(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    bench.export()
    assert found(bench) == Leaks({}, ())
    assert bench.gate().verdict == "accept"


def test_tasks_of_the_set_in_an_export_are_named_with_the_folder(leaky: Bench) -> None:
    assert found(leaky).tasks == {"exports/sft": tuple(f"shop/{task}" for task in TASKS)}
    answer = leaky.gate()
    (refusal,) = answer.report["refusals"]
    assert (answer.exit_code, refusal["reason"]) == (40, "evaluation-leaked")
    assert "exports/sft" in refusal["message"]


def shown(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(one.where, one.message) for one in findings if one.code == "evaluation-leaked"]


def test_freeze_and_check_tell_what_gates_refuse(leaky: Bench) -> None:
    (refusal,) = leaky.gate().report["refusals"]
    assert shown(health.check(leaky.root).findings) == [("exports/sft", refusal["message"])]
    leaky.tasks(*TASKS, "e-another")
    frozen = leaky.freeze()
    assert shown(frozen.findings) == [("exports/sft", refusal["message"])]
    (told,) = (one for one in frozen.findings if one.code == "evaluation-leaked")
    assert (told.severity, told.hint) == (Severity.WARNING, refusal["hint"])


def test_check_tells_of_an_export_on_record_as_well_and_of_rows_that_were_read_anew(leaky: Bench) -> None:
    for trace in taken(leaky):
        leaky.read_anew(trace)
    shutil.rmtree(leaky.root / "exports" / "sft")
    (name,) = found(leaky).tasks
    assert [where for where, _ in shown(health.check(leaky.root).findings)] == [name]


def test_what_leaks_nothing_is_told_by_nobody(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    bench.export()
    assert shown(health.check(bench.root).findings) == []
    bench.tasks()
    assert shown(health.check(bench.root).findings) == []


def test_an_export_on_record_leaks_also_where_its_folder_is_gone_or_was_made_anew(leaky: Bench) -> None:
    shutil.rmtree(leaky.root / "exports" / "sft")
    (name,) = found(leaky).tasks
    assert name.startswith("exports.sft ")
    leaky.export()
    assert list(found(leaky).tasks) == [name]


def test_an_export_that_another_store_recorded_leaks_by_its_manifest(leaky: Bench) -> None:
    shutil.rmtree(leaky.root / "traces" / "annotations" / "exports.sft")
    assert list(found(leaky).tasks) == ["exports/sft"]


def test_rows_leak_also_when_a_newer_importer_read_their_records_anew(leaky: Bench) -> None:
    before = found(leaky)
    for trace in taken(leaky):
        leaky.read_anew(trace)
    assert found(leaky) == before


def test_a_row_leaks_whose_task_only_a_newer_importer_knows(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    bench.ingest([document(None, said="Of which task?")], name="nameless")
    nameless = next(trace for task, trace in bench.ids().items() if not task)
    export_before_the_freeze(bench)
    assert nameless in taken(bench)
    bench.tasks("late")
    assert found(bench).tasks == {}
    bench.read_anew(nameless, task="late", domain="shop")
    assert found(bench) == Leaks({"exports/sft": ("shop/late",)}, ())


def test_a_row_leaks_whose_task_only_the_older_reading_of_its_record_knows(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    bench.ingest([document("early", domain="shop", said="Of which task?")], name="early")
    early = bench.ids()["early"]
    export_before_the_freeze(bench)
    assert early in taken(bench)
    bench.tasks("early")
    bench.read_anew(early, task="another")
    assert found(bench) == Leaks({"exports/sft": ("shop/early",)}, ())


def test_an_export_leaks_from_whatever_folder_below(leaky: Bench) -> None:
    shutil.rmtree(leaky.root / "traces" / "annotations" / "exports.sft")
    (leaky.root / "exports" / "of").mkdir()
    (leaky.root / "exports" / "sft").rename(leaky.root / "exports" / "of" / "june")
    assert list(found(leaky).tasks) == ["exports/of/june"]


def test_what_cannot_be_read_is_told_and_is_no_leak(bench: Bench) -> None:
    folder = bench.root / "exports" / "other"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    told = found(bench)
    assert told.tasks == {}
    assert [(one.code, one.where) for one in told.findings] == [("evaluation-leak-unknown", "exports/other")]
    assert gating.gate_harness(bench.root, "desk_b").verdict == "accept"


def test_a_task_in_another_unicode_form_than_its_id_is_kept_out_and_leaks_where_it_was_not(bench: Bench) -> None:
    listed, stored = "caf\u00e9-1", "cafe\u0301-1"
    bench.set(("evidence: unique", "evidence: claimed"))
    bench.ingest([document(stored, domain="shop")], name="odd")
    bench.tasks(*TASKS, listed)
    bench.freeze()
    bench.export()
    trace = bench.ids()[stored]
    assert trace not in taken(bench)
    bench.tasks(*TASKS)
    bench.freeze()
    bench.export("exports/before")
    bench.tasks(*TASKS, listed)
    assert found(bench).tasks == {"exports/before": (f"shop/{listed}",)}
