"""A clone that has the pins and not the data is told to pull, and nothing is written there."""

from __future__ import annotations

import json
import shutil
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
        pinned.require_pulled(shop.root)


def test_a_corpus_whose_inbox_is_complete_is_made_again_instead(shop: Shop) -> None:
    pin(shop.root, None, 9)
    shop.set(("inbox: partial", "inbox: complete"))
    assert shop.ingest([document("n-1")], name="new").ingested == 1


def test_without_pins_nothing_is_missing(shop: Shop) -> None:
    assert (pinned.Pins(shop.root).folders, pinned.Pins(shop.root).missing) == ([], {})
    assert pinned.Pins(shop.root).unpinned_segments is None
    pinned.require_pulled(shop.root)


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


def test_an_ingest_into_a_corpus_whose_pins_cannot_be_read_is_no_crash(shop: Shop) -> None:
    shop.set(("inbox: partial", "inbox: complete"))
    (shop.root / "dvc.lock").write_text("stages: [1]\n")
    report = shop.ingest([document("n-1")], name="new")
    assert (report.ingested, hints(report)) == (1, [])


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
    assert "not-pulled" in {found.code for found in health.check(shop.root).findings}


def test_a_damaged_list_in_the_cache_is_like_none(shop: Shop) -> None:
    names = segments(shop.root)
    pin(shop.root, names, len(names))
    next((shop.root / ".dvc").rglob("*.dir")).write_text("[")
    assert pinned.Pins(shop.root).missing == {}
