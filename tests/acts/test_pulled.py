"""A clone without the data is told so by whatever reads; an export of a part of a corpus is not made."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tracemark.acts import audit, decisions, harnesses, health, interchange, traces
from tracemark.acts.corpus import Corpus
from tracemark.acts.pulled import not_pulled, require_pulled
from tracemark.errors import NotPulledError, UnknownNameError

from .conftest import CLOCK, Shop, document
from .test_pinned import pin, segments


def remove_one_segment(root: Path) -> None:
    next((root / "traces" / "segments").rglob("*.zst")).unlink()


def remove_all_segments(root: Path) -> None:
    shutil.rmtree(root / "traces" / "segments")


@pytest.mark.parametrize("inbox", ["partial", "complete"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("remove", [remove_one_segment, remove_all_segments])
def test_an_export_is_refused_while_pinned_segments_are_missing(
    shop: Shop, inbox: str, listed: bool, remove: Callable[[Path], None]
) -> None:
    shop.accept()
    shop.set(("inbox: partial", f"inbox: {inbox}"))
    names = segments(shop.root)
    pin(shop.root, names if listed else None, len(names))
    remove(shop.root)
    with pytest.raises(NotPulledError, match="traces/segments"):
        interchange.atif(shop.root, shop.root / "exports" / "atif", interchange.InterchangeOptions())
    with pytest.raises(NotPulledError, match="traces/segments") as refused:
        shop.export()
    assert refused.value.exit_code == 10
    assert str(refused.value.hint).startswith("dvc pull")
    assert not (shop.root / "exports").exists()


def test_files_that_are_not_pinned_yet_are_in_nobodys_way(shop: Shop) -> None:
    shop.accept()
    pin(shop.root, segments(shop.root), len(segments(shop.root)))
    shop.ingest([document("n-1")], name="new")
    assert shop.export().rows == 4
    assert not_pulled(Corpus(shop.root)) == []


def test_other_segments_in_place_of_pinned_ones_replace_nothing(shop: Shop) -> None:
    shop.accept()
    shop.set(("inbox: partial", "inbox: complete"))
    names = segments(shop.root)
    pin(shop.root, names, len(names))
    shop.ingest([document("n-1"), document("n-2")], name="edited")
    for name in names:
        (shop.root / "traces" / "segments" / name).unlink()
    with pytest.raises(NotPulledError, match=f"{len(names)} of traces/segments"):
        shop.export()
    assert [found.code for found in not_pulled(Corpus(shop.root))] == ["not-pulled"]


def test_check_and_the_readers_say_the_same_of_what_is_missing(shop: Shop) -> None:
    pin(shop.root, None, 9)
    for inbox in ("partial", "complete"):
        shop.set(("inbox: partial", f"inbox: {inbox}"))
        (said,) = not_pulled(Corpus(shop.root))
        assert said in health.check(shop.root).findings
    shop.set(("accepted:", "acepted:"))
    assert {found.code for found in health.check(shop.root).findings} == {"not-pulled", "params-unusable"}


def test_a_link_whose_target_is_gone_is_missing_and_a_file_that_is_no_data_is_not(shop: Shop) -> None:
    folder = shop.root / "traces" / "segments"
    names = segments(shop.root)
    (folder / "notes.txt").write_text("pinned as well")
    for listed in ([*names, "notes.txt"], None):
        pin(shop.root, listed, len(names) + 1)
        assert not_pulled(Corpus(shop.root)) == []
    (folder / names[0]).unlink()
    (folder / names[0]).symlink_to(shop.root / "cache-that-is-gone")
    assert [found.message[-2:] for found in not_pulled(Corpus(shop.root))] == [" 1"]
    shutil.rmtree(shop.root / ".dvc")
    assert [found.message[-2:] for found in not_pulled(Corpus(shop.root))] == [" 1"]


def test_the_records_of_earlier_exports_may_be_missing(shop: Shop) -> None:
    pin(shop.root, None, 9)
    lock = shop.root / "dvc.lock"
    lock.write_text(lock.read_text().replace("traces/segments", "traces/annotations/exports.sft"))
    require_pulled(Corpus(shop.root))
    assert [found.where for found in not_pulled(Corpus(shop.root))] == ["dvc.lock: traces/annotations/exports.sft"]


def test_what_reads_a_corpus_that_is_not_pulled_says_so(shop: Shop) -> None:
    shop.accept()
    shop.export()
    pin(shop.root, None, 9)
    trace = shop.ids()["t-0"]
    with traces.listing(shop.root, traces.TraceFilter()) as streamed:
        findings = [streamed.findings()]
    findings += [
        report.findings
        for report in (
            traces.list_(shop.root, traces.TraceFilter()),
            traces.find(shop.root, "see"),
            harnesses.list_(shop.root),
            audit.audit(shop.root, trace),
            audit.audit(shop.root, "exports/sft"),
            audit.audit(shop.root, "desk_a"),
        )
    ]
    assert [[found.code for found in each] for each in findings] == [["not-pulled"]] * 7


def test_what_reads_says_which_files_of_the_store_it_could_not_read(shop: Shop) -> None:
    trace = shop.ids()["t-0"]
    bad = shop.root / "traces" / "segments" / "fingerprint=none" / f"{'0' * 64}.jsonl.zst"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"nothing that can be read")
    wanted = traces.TraceFilter()
    with traces.listing(shop.root, wanted) as streamed:
        findings = [streamed.findings()]
    readers = (
        lambda: traces.list_(shop.root, wanted),
        lambda: traces.find(shop.root, "see"),
        lambda: traces.show(shop.root, trace),
        lambda: harnesses.list_(shop.root),
        lambda: audit.audit(shop.root, trace),
        lambda: audit.audit(shop.root, "desk_a"),
    )
    findings += [read().findings for read in readers]
    assert [[found.code for found in each] for each in findings] == [["file-damaged", "stored-not-indexed"]] * 7


def test_pins_that_cannot_be_read_are_not_taken_for_none(shop: Shop) -> None:
    shop.accept()
    (shop.root / "dvc.lock").write_text("<<<<<<< ours\nstages: {}\n=======\n")
    assert [found.code for found in traces.list_(shop.root, traces.TraceFilter()).findings] == ["not-pulled"]
    with pytest.raises(NotPulledError):
        shop.export()


def test_every_verb_that_reads_the_store_ends_alike_in_a_clone_without_the_data(shop: Shop) -> None:
    shop.accept()
    trace = shop.ids()["t-0"]
    names = segments(shop.root)
    pin(shop.root, names, len(names))
    remove_all_segments(shop.root)
    reports = [
        traces.list_(shop.root, traces.TraceFilter()),
        traces.find(shop.root, "see"),
        audit.audit(shop.root, "desk_a"),
        harnesses.list_(shop.root),
        health.check(shop.root),
        health.reindex(shop.root),
    ]
    assert [(report.exit_code, report.lacks_data) for report in reports] == [(10, True)] * 6
    for ask in (
        lambda: traces.show(shop.root, trace),
        lambda: traces.raw(shop.root, trace),
        lambda: audit.audit(shop.root, trace),
        lambda: decisions.retract(shop.root, [trace], "r", CLOCK),
        lambda: decisions.stamp(shop.root, [trace], "desk_a", "r", CLOCK),
    ):
        with pytest.raises(NotPulledError) as refused:
            ask()
        assert (refused.value.exit_code, refused.value.hint) == (10, "dvc pull")


def test_a_name_that_nothing_answers_to_is_unknown_where_nothing_is_missing(shop: Shop) -> None:
    pin(shop.root, segments(shop.root), len(segments(shop.root)))
    with pytest.raises(UnknownNameError):
        traces.show(shop.root, "0" * 12)


def test_a_harness_of_which_the_snapshot_is_not_on_disk_is_not_pulled(shop: Shop) -> None:
    gone = shop.fingerprint("desk_b")
    pin(shop.root, None, 2)
    lock = shop.root / "dvc.lock"
    lock.write_text(lock.read_text().replace("traces/segments", "traces/harnesses"))
    shutil.rmtree(shop.root / "harness_versions" / "desk_b")
    assert harnesses.show(shop.root, gone).fingerprint == gone
    (shop.root / "traces" / "harnesses" / f"{gone.removeprefix('tm1:')}.json").unlink()
    for ask in (
        lambda: harnesses.show(shop.root, gone),
        lambda: audit.audit(shop.root, "desk_b"),
        lambda: decisions.accept(shop.root, gone, "r", CLOCK),
    ):
        with pytest.raises(NotPulledError, match="no harness answers to") as refused:
            ask()
        assert (refused.value.exit_code, refused.value.hint) == (10, "dvc pull")
    assert audit.audit(shop.root, shop.ids()["t-0"]).exit_code == 10, "a trace that is there is told of"


@pytest.mark.parametrize("inbox", ["partial", "complete"])
def test_an_export_that_is_pinned_and_not_on_disk_is_not_pulled(shop: Shop, inbox: str) -> None:
    shop.accept()
    shop.export()
    shop.set(("inbox: partial", f"inbox: {inbox}"))
    pin(shop.root, segments(shop.root), len(segments(shop.root)))
    lock = shop.root / "dvc.lock"
    lock.write_text(lock.read_text().replace("reports/harness/desk_a.json", "exports/sft"))
    shutil.rmtree(shop.root / "exports")
    for target in ("exports/sft", "exports/sft/", str(shop.root / "exports" / "sft")):
        with pytest.raises(NotPulledError, match=r"^exports/sft, which dvc\.lock pins, is not on disk") as refused:
            audit.audit(shop.root, target)
        assert str(refused.value.hint).startswith("dvc pull")
    for target in ("exports/other", "../exports/sft"):
        with pytest.raises(UnknownNameError):
            audit.audit(shop.root, target)
