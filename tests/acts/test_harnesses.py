"""Listing, showing, comparing and checking harness versions."""

from __future__ import annotations

import shutil

import pytest

from tracemark.acts import audit, decisions, harnesses, health, ingest, traces
from tracemark.acts.corpus import Corpus
from tracemark.clock import SystemClock
from tracemark.errors import ManifestError, NothingReadableError, UnknownNameError
from tracemark.findings import Severity

from .conftest import Shop, document, write_version


def test_versions_and_snapshots_are_listed_with_what_the_store_holds_of_them(shop: Shop) -> None:
    shop.accept()
    shutil.rmtree(shop.root / "harness_versions" / "desk_b")
    rows = {row["name"]: row for row in harnesses.list_(shop.root).harnesses}
    assert (rows["desk_a"]["source"], rows["desk_a"]["traces"], rows["desk_a"]["accepted"]) == (
        "harness_versions/desk_a",
        3,
        True,
    )
    assert (rows["desk_b"]["source"], rows["desk_b"]["successes"], rows["desk_b"]["accepted"]) == ("snapshot", 2, False)


def test_an_edited_version_is_another_harness_and_the_old_one_stays_known(shop: Shop) -> None:
    old = shop.fingerprint()
    (shop.root / "harness_versions" / "desk_a" / "system.txt").write_text("Other text.\n")
    rows = [row for row in harnesses.list_(shop.root).harnesses if row["name"] == "desk_a"]
    assert {(row["source"], row["fingerprint"] == old, row["traces"]) for row in rows} == {
        ("harness_versions/desk_a", False, 0),
        ("snapshot", True, 3),
    }


def test_without_a_store_versions_are_listed_too(shop: Shop) -> None:
    shutil.rmtree(shop.root / "traces")
    assert [row["traces"] for row in harnesses.list_(shop.root).harnesses] == [0, 0]


def test_show_gives_digests_by_component_and_part(shop: Shop) -> None:
    shown = harnesses.show(shop.root, "desk_a")
    assert list(shown.parts["tool_bindings"]) == ["look"]
    assert shown.fingerprint == shop.fingerprint()
    assert harnesses.show(shop.root, shown.fingerprint).components == shown.components


def test_one_finding_about_a_version_has_one_place_in_every_report(shop: Shop) -> None:
    shop.accept()
    folder = write_version(shop.root, "desk_x")
    (folder / "tools.py").write_text(
        "import importlib\n\n\ndef look(order):\n    return importlib.import_module(order)\n"
    )
    shown = harnesses.show(shop.root, "desk_x").findings
    checked = harnesses.check(shop.root, ["desk_x"]).findings
    audited = audit.audit(shop.root, "desk_x").findings
    places = {found.where for found in (*shown, *checked, *audited) if found.code == "closure-incomplete"}
    assert places == {"harness_versions/desk_x/tools.py:1"}
    assert [found.code for found in shown] == [found.code for found in checked] == ["closure-incomplete"]


def test_diff_names_component_and_part_and_ends_with_one(shop: Shop) -> None:
    found = harnesses.diff(shop.root, "desk_a", "desk_b")
    assert [(one["component"], one["part"], one["kind"]) for one in found.differences] == [
        ("prompt_templates", "system", "changed")
    ]
    assert "+You answer" in found.differences[0]["diff"]
    assert found.exit_code == 1
    assert harnesses.diff(shop.root, "desk_a", shop.fingerprint()).exit_code == 0


def test_each_of_two_folders_with_one_fingerprint_answers_to_its_name(shop: Shop) -> None:
    versions = shop.root / "harness_versions"
    shutil.copytree(versions / "desk_a", versions / "shop2")
    same = shop.fingerprint()
    assert harnesses.show(shop.root, "shop2").fingerprint == harnesses.show(shop.root, "desk_a").fingerprint == same
    assert harnesses.check(shop.root, ["shop2"]).checked == ("shop2",)
    listed = harnesses.list_(shop.root)
    assert [row["source"] for row in listed.harnesses if row["fingerprint"] == same] == [
        "harness_versions/desk_a",
        "harness_versions/shop2",
    ]
    checked = harnesses.check(shop.root, [])
    assert checked.checked == ("desk_a", "desk_b", "shop2")
    for report in (listed, checked):
        (found,) = [one for one in report.findings if one.code == "harness-twice"]
        assert (found.where, found.severity) == ("harness_versions/desk_a, harness_versions/shop2", Severity.INFO)
    accepted = decisions.accept(shop.root, "shop2", "the copy is meant", SystemClock())
    assert Corpus(shop.root).accepted == same
    assert accepted.exit_code == 0


def test_check_judges_every_version_and_names_its_folder(shop: Shop) -> None:
    write_version(shop.root, "desk_x", extra="Broken.").joinpath("look.json").write_text("{")
    write_version(shop.root, "desk_y", extra="{").joinpath("tools.py").write_text("")
    report = harnesses.check(shop.root, [])
    assert report.checked == ("desk_a", "desk_b", "desk_x", "desk_y")
    errors = {(found.code, found.where.split("/")[1]) for found in report.findings if found.severity is Severity.ERROR}
    assert errors == {("schema-invalid", "desk_x"), ("entry-missing", "desk_y")}
    assert report.exit_code == 1


def test_two_folders_of_one_name_are_told_apart_and_warned_of(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_c", extra="Be kind.")
    (folder / "harness.yaml").write_text((folder / "harness.yaml").read_text().replace("name: desk_c", "name: desk_a"))
    rows = [row for row in harnesses.list_(shop.root).harnesses if row["name"] == "desk_a"]
    assert {row["source"] for row in rows} == {"harness_versions/desk_a", "harness_versions/desk_c"}
    assert harnesses.check(shop.root, []).checked == ("desk_a", "desk_b", "desk_c")
    for report in (harnesses.list_(shop.root), harnesses.check(shop.root, []), health.check(shop.root)):
        (found,) = report.findings
        assert (found.code, found.severity, report.exit_code) == ("name-shared", Severity.WARNING, 0)
        assert found.where == "harness_versions/desk_a, harness_versions/desk_c"


def test_a_folder_that_is_named_like_the_accepted_snapshot_is_warned_of(shop: Shop) -> None:
    shop.accept()
    accepted = shop.fingerprint()
    write = (shop.root / "harness_versions" / "desk_a" / "system.txt").write_text
    write("Another prompt, which nobody accepted.\n")
    for report in (harnesses.list_(shop.root), harnesses.check(shop.root, []), health.check(shop.root)):
        (found,) = [found for found in report.findings if found.code == "name-shared"]
        assert (found.where, report.exit_code) == ("harness_versions/desk_a", 0)
        assert f"{accepted[:16]} (snapshot, the accepted one)" in found.message
    (found,) = harnesses.show(shop.root, "desk_a").findings
    assert (found.code, harnesses.show(shop.root, accepted).findings) == ("name-shared", ())
    write_version(shop.root, "desk_c", extra="Be kind.")
    shared = (
        audit.audit(shop.root, "desk_a"),
        harnesses.diff(shop.root, accepted, "desk_a"),
        harnesses.diff(shop.root, "desk_a", "desk_c"),
        traces.list_(shop.root, traces.TraceFilter(harness="desk_a")),
    )
    for listed in shared:
        assert [found.code for found in listed.findings].count("name-shared") == 1
    # what a history leaves behind is named only where the name is used
    shop.accept()
    assert [found.code for found in health.check(shop.root).findings] == []


@pytest.mark.parametrize("name", ["desk_x", "desk_y"])
def test_a_version_that_is_named_gets_the_same_findings(shop: Shop, name: str) -> None:
    write_version(shop.root, "desk_x", extra="Broken.").joinpath("look.json").write_text("{")
    write_version(shop.root, "desk_y", extra="{").joinpath("tools.py").write_text("")
    every = [found for found in harnesses.check(shop.root, []).findings if f"/{name}/" in found.where]
    report = harnesses.check(shop.root, [name])
    assert list(report.findings) == every
    assert (report.checked, report.exit_code) == ((name,), 1)
    assert harnesses.check(shop.root, ["desk_a"]).findings == ()


def test_a_version_that_cannot_be_read_has_no_digests_to_show(shop: Shop) -> None:
    write_version(shop.root, "desk_x").joinpath("look.json").write_text("{")
    with pytest.raises(ManifestError) as error:
        harnesses.show(shop.root, "desk_x")
    assert error.value.where == "harness_versions/desk_x/look.json"


def test_an_unknown_name_lists_the_known_ones(shop: Shop) -> None:
    with pytest.raises(UnknownNameError) as error:
        harnesses.check(shop.root, ["nobody"])
    assert "desk_a, desk_b" in str(error.value.hint)


def test_a_version_that_cannot_be_read_is_named_by_whatever_goes_on_without_it(shop: Shop) -> None:
    shop.accept()
    manifest = write_version(shop.root, "desk_x") / "harness.yaml"
    manifest.write_text("name: [calc\n")
    ingested = shop.ingest([document("n-1")], name="new")
    # an export under `unique` is refused
    shop.set(("evidence: unique", "evidence: claimed"))
    exported = shop.export()
    trace = shop.ids()["t-0"]
    audits = [audit.audit(shop.root, target) for target in (trace, "desk_a", str(shop.root / "exports" / "sft"))]
    for report in (ingested, exported, *audits):
        (found,) = report.findings
        assert (found.code, found.severity, found.where) == (
            "harness-left-out",
            Severity.WARNING,
            "harness_versions/desk_x",
        )
        assert found.hint == "tracemark harness check desk_x"
        assert report.exit_code == 0
    assert ingested.finding_counts == {"harness-left-out": 1}
    (shop.root / "inbox" / "empty.jsonl").write_text("")
    with pytest.raises(NothingReadableError, match="nothing in it"):
        ingest.ingest(shop.root, [shop.root / "inbox" / "empty.jsonl"], ingest.IngestOptions())
