"""What a verb acknowledges is durable: files before they get their names, folders after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Shop, document

OUT = ("sft.jsonl", "README.md", "manifest.json")


def named(disk, folder: Path) -> list[str]:
    """Return the names given and taken in `folder`, and its syncs as an empty name, in order."""
    seen = []
    for word, *paths in disk.calls:
        path = Path(paths[-1])
        if path.parent == folder and word in ("rename", "remove"):
            seen.append(f"-{path.name}" if word == "remove" else path.name)
        elif path == folder and word == "sync":
            seen.append("")
    return seen


def test_an_export_is_written_in_the_order_of_the_page(shop: Shop, disk) -> None:
    shop.accept()
    out = shop.root / "exports" / "sft"
    for again in (False, True):
        if again:
            (out / ".sft.jsonl.tmp").write_bytes(b"half a row")
        disk.calls.clear()
        shop.export()
        cleared = ["-.sft.jsonl.tmp", "-manifest.json"] if again else []
        assert named(disk, out) == [*cleared, "", "sft.jsonl", "", "README.md", "", "manifest.json", ""]
        assert disk.synced[str(out / ".sft.jsonl.tmp")] == (out / "sft.jsonl").stat().st_size
        disk.require_durable(shop.root)


@pytest.mark.parametrize("nth", [1, 2])
def test_an_export_whose_rows_cannot_be_synced_is_none(shop: Shop, disk, nth: int) -> None:
    shop.accept()
    out = shop.root / "exports" / "sft"
    shop.export()
    disk.asked.clear()
    failing = ".sft.jsonl.tmp" if nth == 1 else "sft"
    disk.failing[failing] = 1
    with pytest.raises(OSError, match="the sync failed"):
        shop.export()
    assert disk.asked[str(out / failing if nth == 1 else out)] == 1
    assert not (out / "manifest.json").exists()


def test_an_ingest_and_a_decision_are_durable(shop: Shop, disk) -> None:
    shop.ingest([document("t-9"), document("u-9", extra="Be brief.")], name="more")
    disk.require_durable(shop.root / "traces")
    disk.calls.clear()
    shop.accept()
    disk.require_durable(shop.root)
    ledger = str(shop.root / "ledger.jsonl")
    assert disk.synced[ledger] == os.path.getsize(ledger)
