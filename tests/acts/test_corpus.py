"""Names lead to harnesses in one way, whoever asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tracemark.acts import audit, health, traces
from tracemark.acts.corpus import Corpus
from tracemark.errors import IntegrityError, ManifestError, UnknownNameError, UsageError
from tracemark.findings import Severity
from tracemark.harness import snapshot
from tracemark.store.layout import Layout

from .conftest import Shop, document, write_version


def test_a_folder_a_label_a_fingerprint_and_its_beginning_name_a_harness(shop: Shop) -> None:
    manifest = shop.root / "harness_versions" / "desk_a" / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("name: desk_a", "name: The desk"))
    harness = Corpus(shop.root).resolve("desk_a")
    assert harness.name == "The desk"
    digits = harness.fingerprint.removeprefix("tm1:")
    for name in ("The desk", harness.fingerprint, digits, digits[:6], f"tm1:{digits[:8]}"):
        assert Corpus(shop.root).resolve(name) == harness


def test_a_folder_goes_before_a_label_and_both_before_a_snapshot(shop: Shop) -> None:
    manifest = shop.root / "harness_versions" / "desk_b" / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("name: desk_b", "name: desk_a"))
    folder = Corpus(shop.root).resolve("desk_a").folder
    assert folder is not None
    assert folder.name == "desk_a"
    (shop.root / "harness_versions" / "desk_a" / "system.txt").write_text("Edited since.\n")
    assert Corpus(shop.root).resolve("desk_a").folder is not None


def test_a_label_of_two_versions_names_none_of_them(shop: Shop) -> None:
    for number in range(2):
        folder = write_version(shop.root, f"other_{number}", extra=f"Number {number}.")
        manifest = folder / "harness.yaml"
        manifest.write_text(manifest.read_text().replace(f"name: other_{number}", "name: twin"))
    with pytest.raises(UsageError, match="may mean several harnesses"):
        Corpus(shop.root).resolve("twin")


@pytest.mark.parametrize("length", [64, 68])
def test_a_fingerprint_is_taken_by_no_folder_and_by_no_snapshot_that_is_called_so(shop: Shop, length: int) -> None:
    harness, other = Corpus(shop.root).resolve("desk_a"), Corpus(shop.root).resolve("desk_b")
    name = harness.fingerprint[:length] if length == 68 else harness.fingerprint.removeprefix("tm1:")[:length]
    shutil.rmtree(shop.root / "harness_versions" / "desk_b")
    Layout(shop.root).snapshot(other.fingerprint).write_bytes(snapshot.to_bytes(replace(other, name=name)))
    write_version(shop.root, name, extra="Quite different.")
    assert Corpus(shop.root).resolve(name) == harness
    (found,) = Corpus(shop.root).harness_findings
    assert (found.code, found.where) == ("manifest-invalid", f"harness_versions/{name}/harness.yaml")


@pytest.mark.parametrize("length", [6, 8, 63])
def test_what_begins_a_fingerprint_and_is_the_name_of_another_version_means_neither(shop: Shop, length: int) -> None:
    harness = Corpus(shop.root).resolve("desk_a")
    name = harness.fingerprint.removeprefix("tm1:")[:length]
    manifest = write_version(shop.root, name, extra="Quite different.") / "harness.yaml"
    manifest.write_text(manifest.read_text().replace(f"name: {name}", f"name: '{name}'"))
    with pytest.raises(UsageError, match="may mean several harnesses") as refused:
        Corpus(shop.root).resolve(name)
    assert harness.fingerprint[:20] in refused.value.message
    assert Corpus(shop.root).resolve(harness.fingerprint) == harness


def test_a_broken_version_whose_name_begins_a_fingerprint_gives_way_to_nobody(shop: Shop) -> None:
    name = Corpus(shop.root).resolve("desk_a").fingerprint.removeprefix("tm1:")[:8]
    (write_version(shop.root, name) / "harness.yaml").write_text("{")
    with pytest.raises(ManifestError):
        Corpus(shop.root).resolve(name)


@pytest.mark.parametrize("name", ["facade", "20260131"])
def test_a_word_or_a_date_that_is_all_digits_names_its_version(shop: Shop, name: str) -> None:
    folder = write_version(shop.root, name, extra="Quite different.")
    (folder / "harness.yaml").write_text(
        (folder / "harness.yaml").read_text().replace(f"name: {name}", f"name: '{name}'")
    )
    assert Corpus(shop.root).resolve(name).folder == folder
    shop.ingest([document("t-9", extra="Quite different.")], name, "dated")
    assert shop.accept(name).name == name


def test_a_folder_of_a_reserved_name_is_named_with_the_reason(shop: Shop) -> None:
    write_version(shop.root, "f" * 64, extra="Quite different.")
    with pytest.raises(ManifestError, match="of 64 hexadecimal digits"):
        Corpus(shop.root).resolve("f" * 64)


@pytest.mark.parametrize("name", ["", "tm1:", "abcde", "../desk_a", "./desk_a", "desk_a/", "..", "*", "f" * 64])
def test_what_names_nothing_is_unknown(shop: Shop, name: str) -> None:
    with pytest.raises(UnknownNameError):
        Corpus(shop.root).resolve(name)


def test_a_broken_version_is_an_error_even_where_a_snapshot_has_its_name(shop: Shop) -> None:
    (shop.root / "harness_versions" / "desk_a" / "harness.yaml").write_text("nothing: 1\n")
    with pytest.raises(ManifestError):
        Corpus(shop.root).resolve("desk_a")


def test_nothing_is_read_before_it_is_asked_for(shop: Shop) -> None:
    (shop.root / "ledger.jsonl").write_text("no ledger\n")
    (shop.root / "params.yaml").write_text("acepted: 1\n")
    assert Corpus(shop.root).resolve("desk_a").name == "desk_a"


def test_it_is_open_which_harness_is_accepted_while_params_and_ledger_differ(shop: Shop) -> None:
    assert Corpus(shop.root).acceptance_findings() == []
    shop.accept()
    assert Corpus(shop.root).acceptance_findings() == []
    shop.set((shop.fingerprint("desk_a"), shop.fingerprint("desk_b")))
    assert [found.code for found in Corpus(shop.root).acceptance_findings()] == ["accepted-differs"]


# --- a corpus that cannot be written, a disk that is full

SHORT_OF_ROOM = """
import resource, sys
from tracemark.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(run(["--root", *sys.argv[2:]]))
"""


def without_catalogue(shop: Shop) -> None:
    """Put a file where the catalogue's folder would be made, as a corpus that cannot be written has none."""
    shutil.rmtree(shop.root / ".tracemark")
    (shop.root / ".tracemark").write_bytes(b"")


def test_reading_says_how_to_keep_the_catalogue_elsewhere(shop: Shop) -> None:
    without_catalogue(shop)
    with pytest.raises(UsageError) as stopped:
        traces.list_(shop.root, traces.TraceFilter())
    assert "TRACEMARK_CATALOGUE=FILE" in (stopped.value.hint or "")


def test_a_corpus_that_cannot_be_written_is_read_with_a_catalogue_elsewhere(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = shop.ids()["t-0"]
    before = traces.list_(shop.root, traces.TraceFilter()).traces
    without_catalogue(shop)
    place = tmp_path / "elsewhere" / "catalogue.db"
    monkeypatch.setenv("TRACEMARK_CATALOGUE", str(place))
    assert traces.list_(shop.root, traces.TraceFilter()).traces == before
    assert traces.find(shop.root, "see").traces
    assert traces.show(shop.root, trace).trace_id == audit.audit(shop.root, trace).trace_id == trace
    assert health.reindex(shop.root).traces == len(before)
    assert health.check(shop.root).traces == len(before)
    assert place.is_file()
    assert (shop.root / ".tracemark").read_bytes() == b""


@pytest.mark.parametrize(("room", "command"), [(8192, "reindex"), (90_000, "reindex"), (8192, "traces list")])
def test_a_full_disk_is_no_bug_and_no_success(shop: Shop, room: int, command: str) -> None:
    shutil.rmtree(shop.root / ".tracemark")
    process = subprocess.run(
        [sys.executable, "-c", SHORT_OF_ROOM, str(room), str(shop.root), *command.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == UsageError.exit_code, process.stderr
    assert "TRACEMARK_CATALOGUE=FILE" in process.stderr
    assert health.reindex(shop.root).traces == len(shop.ids())


@pytest.mark.parametrize("folder", ["segments/fingerprint=none", "annotations/stamps", "annotations/sources"])
def test_a_damaged_file_that_decides_exports_stops_them_and_is_an_error_of_every_audit(shop: Shop, folder: str) -> None:
    shop.accept()
    path = shop.root / "traces" / folder / f"{'0' * 64}.jsonl.zst"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(next((shop.root / "traces" / "segments").rglob("*.zst")).read_bytes())
    with pytest.raises(IntegrityError):
        shop.export()
    report = audit.audit(shop.root, shop.ids()["t-0"])
    assert [(found.code, found.where) for found in report.findings if found.severity is Severity.ERROR] == [
        ("file-damaged", f"traces/{folder}/{path.name}")
    ]
    assert report.exit_code == 1
