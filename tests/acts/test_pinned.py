"""A clone that has the pins and not the data is told to pull, and nothing is written there.

Where the inbox is complete, an ingest may make the store again, and does if all that is pinned comes out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import health, ingest, pinned
from tracemark.errors import NotPulledError

from .conftest import Shop, document

MD5 = "0123456789abcdef0123456789abcdef"
LOCK = """\
schema: '2.0'
stages:
  harness@desk_a:
    cmd: tracemark harness show desk_a
    outs:
    - {{path: reports/harness/desk_a.json, hash: md5, md5: {md5}, size: 7}}
  ingest:
    cmd: tracemark ingest inbox
    outs:
    - {{path: traces/segments, hash: md5, md5: {md5}.dir, size: 7, nfiles: {count}}}
"""


def pin(root: Path, names: list[str] | None, count: int) -> None:
    """Write a dvc.lock that pins `count` segments; with `names`, DVC's cache holds the list."""
    (root / "dvc.lock").write_text(LOCK.format(md5=MD5, count=count))
    if names is not None:
        listing = root / ".dvc" / "cache" / "files" / "md5" / MD5[:2] / f"{MD5[2:]}.dir"
        listing.parent.mkdir(parents=True, exist_ok=True)
        listing.write_text(json.dumps([{"md5": MD5, "relpath": name} for name in names]))


def segments(root: Path) -> list[str]:
    folder = root / "traces" / "segments"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.zst"))


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("listed", [False, True])
def test_ingest_refuses_in_a_clone_without_the_data_and_writes_nothing(shop: Shop, listed: bool) -> None:
    names = segments(shop.root)
    pin(shop.root, names if listed else None, len(names))
    shutil.rmtree(shop.root / "traces" / "segments")
    (shop.root / "inbox" / "new.jsonl").write_text(json.dumps(document("n-1")) + "\n")
    before = everything(shop.root)
    with pytest.raises(NotPulledError) as refused:
        shop.ingest([document("n-1")], name="new")
    assert (refused.value.exit_code, refused.value.hint) == (10, "dvc pull")
    assert f"{len(names)} of traces/segments" in refused.value.message
    assert everything(shop.root) == before


def test_one_segment_that_is_missing_is_enough(shop: Shop) -> None:
    pin(shop.root, segments(shop.root), len(segments(shop.root)))
    next((shop.root / "traces" / "segments").rglob("*.zst")).unlink()
    shop.root.joinpath("traces/segments/fingerprint=none").mkdir(exist_ok=True)
    with pytest.raises(NotPulledError, match=r"1 of traces/segments"):
        pinned.Pins(shop.root).require_all()


def test_without_pins_nothing_is_missing(shop: Shop) -> None:
    assert (pinned.Pins(shop.root).folders, pinned.Pins(shop.root).missing) == ([], {})
    assert pinned.Pins(shop.root).unpinned_segments is None
    pinned.Pins(shop.root).require_all()


def test_segments_that_are_not_pinned_yet_are_counted(shop: Shop) -> None:
    pin(shop.root, segments(shop.root), len(segments(shop.root)))
    assert pinned.Pins(shop.root).unpinned_segments == 0
    shop.ingest([document("n-1")], name="new")
    assert pinned.Pins(shop.root).unpinned_segments == 1
    found = [found for found in health.check(shop.root).findings if found.code == "not-pinned"]
    assert [(one.severity, one.message.endswith(": 1")) for one in found] == [("info", True)]


def hints(report: Any) -> list[str]:
    return [found.message for found in report.findings if found.code == "not-pinned"]


@pytest.mark.parametrize("listed", [True, False])
def test_an_ingest_outside_the_pipeline_ends_with_the_hint_that_segments_are_not_pinned(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.delenv("DVC_STAGE", raising=False)
    assert hints(shop.ingest([document("m-1")], name="unpinned")) == [], "nothing is pinned here"
    pin(shop.root, segments(shop.root)[1:] if listed else None, len(segments(shop.root)) - 1)
    path = shop.root / "inbox" / "new.jsonl"
    path.write_text(json.dumps(document("n-1")) + "\n")
    tried = ingest.ingest(shop.root, [path], ingest.IngestOptions(harness="desk_a", dry_run=True))
    report = shop.ingest([document("n-1")], name="new")
    count = 2 if listed else 1
    assert hints(report) == [f"segments that are not pinned yet: {count}"]
    assert (report.exit_code, report.finding_counts["not-pinned"]) == (0, 1)
    assert hints(tried) == hints(report)
    assert hints(shop.ingest([document("n-1")], name="new")) == [], "nothing new was stored"
    monkeypatch.setenv("DVC_STAGE", "ingest")
    assert hints(shop.ingest([document("n-2")], name="more")) == []


def test_check_names_what_is_not_pulled(shop: Shop) -> None:
    pin(shop.root, None, 9)
    report = health.check(shop.root)
    assert report.exit_code == 10
    assert [found.hint for found in report.findings if found.code == "not-pulled"] == ["dvc pull"]


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< ours\nstages: {}\n=======\n",
        "stages: [1]\n",
        "- 1\n",
        "stages:\n  ingest:\n    outs: [{md5: x}]\n",
        *(LOCK.format(md5=MD5, count=count) for count in ("many", "null", "[1]", ".inf", "9" * 5000)),
        pytest.param("[" * 5_000, id="deep"),
    ],
)
def test_pins_that_cannot_be_read_are_not_taken_for_none(shop: Shop, text: str) -> None:
    (shop.root / "dvc.lock").write_text(text)
    with pytest.raises(NotPulledError, match="cannot be read"):
        shop.ingest([document("n-1")], name="new")
    shop.set(("inbox: partial", "inbox: complete"))
    with pytest.raises(NotPulledError, match="cannot be read"):
        shop.ingest([document("n-1")], name="new")
    assert "not-pulled" in {found.code for found in health.check(shop.root).findings}


def test_a_damaged_list_in_the_cache_is_like_none(shop: Shop) -> None:
    names = segments(shop.root)
    pin(shop.root, names, len(names))
    next((shop.root / ".dvc").rglob("*.dir")).write_text("[")
    assert pinned.Pins(shop.root).missing == {}


# --- a complete inbox


FOLDERS = ("segments", "harnesses", "refused", "annotations/stamps", "annotations/outcomes", "annotations/sources")


def dvc_list(folder: Path) -> tuple[str, list[dict[str, str]]]:
    """Return what DVC keeps of a folder: the digest of its list, and the list."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = [
        {"md5": hashlib.md5(path.read_bytes()).hexdigest(), "relpath": path.relative_to(folder).as_posix()}
        for path in files
    ]
    listed.sort(key=lambda entry: entry["relpath"])
    return hashlib.md5(json.dumps(listed, sort_keys=True).encode()).hexdigest(), listed


def pin_all(root: Path, listed: bool) -> None:
    """Write the dvc.lock of an ingest that made what is on disk; with `listed`, DVC's cache holds the lists."""
    outs = ""
    for name in FOLDERS:
        (root / "traces" / name).mkdir(exist_ok=True, parents=True)
        md5, files = dvc_list(root / "traces" / name)
        outs += f"    - path: traces/{name}\n      md5: {md5}.dir\n      nfiles: {len(files)}\n"
        if listed:
            listing = root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / f"{md5[2:]}.dir"
            listing.parent.mkdir(parents=True, exist_ok=True)
            listing.write_text(json.dumps(files))
    (root / "dvc.lock").write_text(f"schema: '2.0'\nstages:\n  ingest:\n    cmd: x\n    outs:\n{outs}")


def fill_inbox(root: Path, **batches: list[dict[str, Any]]) -> None:
    """Make the inbox hold these batches, each claimed for the harness version that it is named after."""
    shutil.rmtree(root / "inbox", ignore_errors=True)
    for name, documents in batches.items():
        (root / "inbox" / name).mkdir(parents=True)
        (root / "inbox" / name / "batch.yaml").write_text(f"harness: {name}\n")
        (root / "inbox" / name / "runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))


def ingest_inbox(root: Path, *, dry_run: bool = False) -> Any:
    return ingest.ingest(root, [root / "inbox"], ingest.IngestOptions(dry_run=dry_run))


def drop_data(root: Path, *folders: str) -> None:
    """Leave of the store what git keeps, or drop some of its folders."""
    for name in folders or ("segments", "harnesses", "refused", "annotations"):
        shutil.rmtree(root / "traces" / name)
    shutil.rmtree(root / ".tracemark")


DESK_A = [document(f"t-{number}") for number in range(3)]
DESK_B = [document(f"u-{number}", extra="Be brief.") for number in range(2)]


@pytest.fixture(params=[False, True], ids=["digest of the list", "list"])
def complete(shop: Shop, request: pytest.FixtureRequest) -> Shop:
    """A corpus with a complete inbox: a batch of each harness version, a run told twice, and a record of nothing."""
    shop.set(("inbox: partial", "inbox: complete"))
    drop_data(shop.root)
    again = {**document("t-0"), "extra": {"tracemark": {"run": {"task": "t-0", "split": "train"}}}}
    fill_inbox(shop.root, desk_a=[*DESK_A, again], desk_b=DESK_B)
    (shop.root / "inbox" / "desk_b" / "broken.json").write_text('{"steps": [')
    ingest_inbox(shop.root)
    counts = {name: len(dvc_list(shop.root / "traces" / name)[1]) for name in FOLDERS}
    assert (counts["segments"], counts["harnesses"], counts["refused"], counts["annotations/stamps"]) == (2, 2, 1, 0)
    assert counts["annotations/outcomes"] == 1
    pin_all(shop.root, request.param)
    return shop


def test_a_complete_inbox_makes_again_what_is_pinned(complete: Shop) -> None:
    before = [dvc_list(complete.root / "traces" / name) for name in FOLDERS]
    drop_data(complete.root)
    assert ingest_inbox(complete.root, dry_run=True).ingested == 5
    assert not (complete.root / "traces" / "segments").exists()
    assert ingest_inbox(complete.root).ingested == 5
    assert [dvc_list(complete.root / "traces" / name) for name in FOLDERS] == before
    assert health.check(complete.root).findings == ()


def fewer_runs(root: Path) -> None:
    fill_inbox(root, desk_b=DESK_B)


def an_empty_inbox(root: Path) -> None:
    fill_inbox(root)
    (root / "inbox").mkdir()


def as_many_other_runs(root: Path) -> None:
    for path in (root / "inbox").glob("*/runs.jsonl"):
        path.write_text(path.read_text().replace("Done.", "Finished."))


def an_edited_harness(root: Path) -> None:
    with (root / "harness_versions" / "desk_b" / "tools.py").open("a") as file:
        file.write("# a word\n")


def nothing_refused(root: Path) -> None:
    (root / "inbox" / "desk_b" / "broken.json").unlink()


def nothing_told_twice(root: Path) -> None:
    path = root / "inbox" / "desk_a" / "runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize(
    ("edit", "lacking"),
    [
        (fewer_runs, "traces/segments"),
        (an_empty_inbox, "traces/segments"),
        (as_many_other_runs, "traces/segments"),
        (an_edited_harness, "traces/harnesses"),
        (nothing_refused, "traces/refused"),
        (nothing_told_twice, "traces/annotations/outcomes"),
    ],
)
def test_an_inbox_that_gives_less_than_is_pinned_replaces_nothing(
    complete: Shop, edit: Callable[[Path], None], lacking: str
) -> None:
    edit(complete.root)
    drop_data(complete.root)
    before = everything(complete.root / "traces")
    for dry_run in (False, True, False):
        with pytest.raises(NotPulledError, match="begin another corpus") as refused:
            ingest_inbox(complete.root, dry_run=dry_run)
        assert refused.value.exit_code == 10
        assert "2 of traces/harnesses, 1 of traces/refused, 2 of traces/segments;" in refused.value.message
        assert lacking in refused.value.message.partition("which lacks")[2]
        assert str(refused.value.hint).startswith("dvc pull; ")
    assert everything(complete.root / "traces") == before


def test_who_means_another_corpus_removes_the_pins(complete: Shop) -> None:
    fewer_runs(complete.root)
    drop_data(complete.root)
    (complete.root / "dvc.lock").unlink()
    assert ingest_inbox(complete.root).ingested == 2


def test_what_is_there_and_what_the_inbox_gives_make_a_store_together(complete: Shop) -> None:
    fewer_runs(complete.root)
    nothing = next((complete.root / "traces" / "segments").glob(f"*{complete.fingerprint('desk_b')[4:20]}/*"))
    nothing.unlink()
    assert ingest_inbox(complete.root).ingested == 2
    assert health.check(complete.root).findings == ()
    nothing_of_a = next((complete.root / "traces" / "segments").glob(f"*{complete.fingerprint('desk_a')[4:20]}/*"))
    nothing_of_a.unlink()
    with pytest.raises(NotPulledError, match=r"which lacks (at least )?1 of traces/segments\b"):
        ingest_inbox(complete.root)


def test_more_than_what_is_pinned_is_no_loss(complete: Shop) -> None:
    fill = complete.root / "inbox" / "later"
    fill.mkdir()
    (fill / "runs.jsonl").write_text(json.dumps(document("n-1", extra="Be long.")) + "\n")
    drop_data(complete.root)
    assert ingest_inbox(complete.root).ingested == 6
    assert [found.severity for found in health.check(complete.root).findings if found.code == "not-pinned"] != ["error"]
    assert "not-pulled" not in {found.code for found in health.check(complete.root).findings}


@pytest.mark.parametrize(
    ("first", "extra", "said"),
    [
        (0, 6, None),
        (6, 6, "nobody can tell"),
        (1, 1, None),
        (None, 0, "which lacks at least 1 of traces/segments"),
        (None, 1, "which lacks at least 1 of traces/segments"),
    ],
)
def test_among_more_files_than_can_be_told_apart_nobody_knows_whether_the_pinned_ones_are(
    tmp_path: Path, first: int | None, extra: int, said: str | None
) -> None:
    root, made = tmp_path / "clone", tmp_path / "made"
    folder = made / "traces" / "segments"
    folder.mkdir(parents=True)
    names = [f"{number:02}" for number in range(12 + extra)]
    for name in names:
        (folder / name).write_text(name)
    listed = [{"md5": hashlib.md5(name.encode()).hexdigest(), "relpath": name} for name in names]
    md5 = MD5 if first is None else hashlib.md5(json.dumps(listed[first : first + 12]).encode()).hexdigest()
    root.mkdir()
    out = f"    - path: traces/segments\n      md5: {md5}.dir\n      nfiles: 12\n"
    (root / "dvc.lock").write_text(f"schema: '2.0'\nstages:\n  ingest:\n    cmd: x\n    outs:\n{out}")
    pins = pinned.Pins(root, lambda: True)
    if said is None:
        pins.require_made(made)
        return
    with pytest.raises(NotPulledError, match=said) as refused:
        pins.require_made(made)
    assert "12 of traces/segments; " in refused.value.message
    assert (refused.value.hint == "dvc pull", "lacks" in refused.value.message) == (first is not None, first is None)


def test_records_of_exports_are_no_business_of_ingest(complete: Shop) -> None:
    lock = complete.root / "dvc.lock"
    record = f"    - path: traces/annotations/exports.sft\n      md5: {MD5}.dir\n      nfiles: 3\n"
    lock.write_text(lock.read_text() + f"  export-sft:\n    cmd: x\n    outs:\n{record}")
    drop_data(complete.root)
    assert ingest_inbox(complete.root).ingested == 5


def test_a_batch_of_a_harness_that_nobody_knows_is_made_again_as_it_was(shop: Shop) -> None:
    shop.set(("inbox: partial", "inbox: complete"))
    drop_data(shop.root)
    fill_inbox(shop.root, desk_z=DESK_A, desk_b=DESK_B)
    codes = ingest_inbox(shop.root).finding_counts
    assert codes["batch-harness-unknown"] == 1
    pin_all(shop.root, listed=False)
    drop_data(shop.root)
    assert ingest_inbox(shop.root).finding_counts == codes
