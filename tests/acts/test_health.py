"""What `check` finds and proves, and that it changes nothing; `reindex`."""

from __future__ import annotations

import shutil

import pytest

from tracemark.acts import decisions, harnesses, health, traces
from tracemark.errors import NewerFormatError, NoStoreError
from tracemark.findings import Severity

from .conftest import CLOCK, Shop, document, write_version


def codes(shop: Shop) -> set[str]:
    return {found.code for found in health.check(shop.root).findings}


def test_a_sound_corpus_has_no_findings_and_says_what_was_proved(shop: Shop) -> None:
    shop.accept()
    report = health.check(shop.root)
    assert (report.findings, report.exit_code) == ((), 0)
    assert (report.traces, report.harnesses, report.decisions) == (5, 2, 1)
    assert any("ledger" in sentence for sentence in report.proved)


def test_check_changes_nothing(shop: Shop) -> None:
    shop.accept()

    def look() -> dict[str, tuple[int, bytes]]:
        # a reader of the catalogue makes SQLite's own two files beside it
        files = [path for path in shop.root.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm"))]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = look()
    health.check(shop.root)
    assert look() == before


def test_a_ledger_that_was_edited_is_found_and_proves_nothing(shop: Shop) -> None:
    shop.accept()
    ledger = shop.root / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace("better", "worse"))
    report = health.check(shop.root)
    assert "ledger-line-edited" in {found.code for found in report.findings}
    assert report.decisions == 0
    assert not any("ledger" in sentence for sentence in report.proved)


@pytest.mark.parametrize("spoil", ["params", "harness", "siblings", "accepted"])
def test_a_ledger_that_does_not_verify_hides_nothing_that_needs_no_decision(shop: Shop, spoil: str) -> None:
    shop.accept()
    ledger = shop.root / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace("better", "worse"))
    if spoil == "params":
        shop.set(("accepted:", "acepted:"))
    elif spoil == "harness":
        write_version(shop.root, "desk_x").joinpath("look.json").unlink()
    elif spoil == "siblings":
        write_version(shop.root, "desk_c", handler=" + '.'")
    else:
        shop.set((shop.fingerprint(), "tm1:" + "0" * 64))
    expected = {
        "params": "params-unusable",
        "harness": "manifest-file-missing",
        "siblings": "siblings-alike",
        "accepted": "accepted-unknown",
    }
    assert codes(shop) == {"ledger-line-edited", expected[spoil]}


def test_unusable_parameters_are_a_finding(shop: Shop) -> None:
    shop.set(("accepted:", "acepted:"))
    assert codes(shop) == {"params-unusable"}


def test_conditions_that_cannot_be_used_are_a_finding_at_their_line(shop: Shop) -> None:
    (shop.root / "own.toml").write_text('version = 1\n\n[[condition]]\nname = "Loud"\n')
    shop.set(("conditions: null", "conditions: own.toml"))
    [found] = health.check(shop.root).findings
    assert (found.code, found.where) == ("params-unusable", "own.toml:3")
    (shop.root / "own.toml").unlink()
    [found] = health.check(shop.root).findings
    assert (found.code, found.where) == ("params-unusable", "params.yaml: failures.conditions")


def test_siblings_that_content_cannot_tell_apart_are_a_warning(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    found = health.check(shop.root).findings
    assert {(one.code, one.severity) for one in found} == {("siblings-alike", Severity.WARNING)}


def test_a_harness_that_several_folders_hold_is_named_as_the_list_names_it(shop: Shop) -> None:
    shutil.copytree(shop.root / "harness_versions" / "desk_a", shop.root / "harness_versions" / "desk_again")
    report = health.check(shop.root)
    assert [found.code for found in report.findings] == ["harness-twice"]
    assert report.findings == harnesses.list_(shop.root).findings
    assert report.exit_code == 0


def test_an_accepted_harness_that_was_edited_before_it_ran_is_a_warning(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_c", extra="Never run.")
    shop.accept("desk_c")
    (folder / "system.txt").write_text("Edited.\n")
    report = health.check(shop.root)
    assert [found.code for found in report.findings] == ["accepted-unknown"]
    assert report.exit_code == 0


def test_a_version_that_cannot_be_read_is_found(shop: Shop) -> None:
    write_version(shop.root, "desk_x").joinpath("look.json").unlink()
    assert codes(shop) == {"manifest-file-missing"}


def test_a_damaged_segment_is_found(shop: Shop) -> None:
    path = next((shop.root / "traces" / "segments").rglob("*.zst"))
    path.write_bytes(path.read_bytes()[:-9])
    assert "file-damaged" in codes(shop)


def test_without_a_store_there_is_nothing_to_check(shop: Shop) -> None:
    shutil.rmtree(shop.root / "traces")
    with pytest.raises(NoStoreError):
        health.check(shop.root)


def test_a_store_of_a_newer_program_is_not_judged(shop: Shop) -> None:
    (shop.root / "traces" / "STORE").write_text('{"format": "tracemark/store/9"}\n')
    with pytest.raises(NewerFormatError):
        health.check(shop.root)


def test_a_catalogue_that_is_gone_is_made_again(shop: Shop) -> None:
    before = traces.list_(shop.root, traces.TraceFilter()).traces
    shutil.rmtree(shop.root / ".tracemark")
    report = health.reindex(shop.root)
    assert (report.traces, report.segments, report.everything) == (5, 2, False)
    assert traces.list_(shop.root, traces.TraceFilter()).traces == before
    assert codes(shop) == set()


def test_with_text_the_whole_of_each_trace_is_searched(shop: Shop) -> None:
    assert traces.find(shop.root, "paid").traces == ()
    assert health.reindex(shop.root, text=True).everything
    assert len(traces.find(shop.root, "paid").traces) == 5


def test_what_is_searched_stays_unless_it_is_said(shop: Shop) -> None:
    health.reindex(shop.root, text=True)
    assert health.reindex(shop.root).everything
    assert len(traces.find(shop.root, "paid").traces) == 5
    assert not health.reindex(shop.root, text=False).everything
    assert traces.find(shop.root, "paid").traces == ()
    assert not health.reindex(shop.root).everything


def test_contested_traces_are_counted_until_somebody_decides(shop: Shop) -> None:
    assert shop.ingest([document(f"t-{number}", reward=0.0) for number in range(2)], name="again").contested == 2
    report = health.check(shop.root)
    (found,) = report.findings
    assert (found.code, found.severity, report.exit_code) == ("contested", Severity.WARNING, 0)
    assert found.message.startswith("statements about 2 traces disagree")
    decisions.retract(shop.root, [shop.ids()["t-0"]], "two verdicts", CLOCK)
    (found,) = health.check(shop.root).findings
    assert found.where == f"trace {shop.ids()['t-1'][:12]}"
    assert found.message.startswith("statements about 1 trace disagree")
    decisions.retract(shop.root, [shop.ids()["t-1"]], "two verdicts", CLOCK)
    assert health.check(shop.root).findings == ()


def test_a_harness_that_was_settled_is_contested_no_more(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.ingest([document("t-0")], "desk_c", "again")
    assert "contested" in {found.code for found in health.check(shop.root).findings}
    decisions.stamp(shop.root, [shop.ids()["t-0"]], "desk_c", "the log names it", CLOCK)
    assert "contested" not in {found.code for found in health.check(shop.root).findings}
