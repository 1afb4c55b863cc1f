"""Each row of what a killed export leaves (`docs/format/store.md`): what `audit` says; it can be made again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tracemark.acts import audit, health

from .conftest import Shop, document

EXPORT = """
import os, signal, sys
from pathlib import Path
from tracemark.acts import export

def killing(step, name):
    def done(*given, **named):
        result = step(*given, **named)
        if name is None or Path(given[0]).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return done

root, step, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None
if step:
    setattr(export, step, killing(getattr(export, step), name))
export.sft(root, root / "exports" / "sft")
"""
FILES = ("README.md", "manifest.json", "sft.jsonl")


def killed(shop: Shop, step: str, name: str = "", point: str = "") -> None:
    """Export in a process of its own, which dies after `step` for the file `name`, or at a crash point."""
    command = [sys.executable, "-c", EXPORT, str(shop.root), step, name]
    done = subprocess.run(command, env={**os.environ, "TRACEMARK_CRASH_AT": point}, check=False)
    assert done.returncode == -signal.SIGKILL


def files(shop: Shop) -> dict[str, bytes]:
    folder = shop.root / "exports" / "sft"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("step", "name", "point", "new", "said"),
    [
        ("sync_folder", "", "", (), "export-manifest-unreadable"),
        ("_write_rows", "sft.jsonl", "", ("sft.jsonl",), "export-manifest-unreadable"),
        ("write_atomic", "README.md", "", ("sft.jsonl", "README.md"), "export-manifest-unreadable"),
        ("write_atomic", "manifest.json", "", FILES, "export-not-recorded"),
        ("", "", "temporary-synced", FILES, "export-not-recorded"),
        ("", "", "renamed", FILES, None),
        ("", "", "projected", FILES, None),
    ],
)
def test_an_export_killed(shop: Shop, step: str, name: str, point: str, new: tuple[str, ...], said: str | None) -> None:
    shop.accept()
    shop.export()
    old = files(shop)
    (shop.root / "exports" / "sft" / "README.md").write_text("an older card")
    shop.ingest([document("t-9")], name="more")
    killed(shop, step, name, point)
    left = files(shop)
    assert ("manifest.json" in left) == ("manifest.json" in new)
    assert (left["sft.jsonl"] != old["sft.jsonl"]) == ("sft.jsonl" in new)
    assert (left["README.md"] != b"an older card") == ("README.md" in new)
    report = audit.audit(shop.root, str(shop.root / "exports" / "sft"))
    assert [found.code for found in report.findings] == ([said] if said else [])
    assert not [found for found in health.check(shop.root).findings if found.code != "stranger-file"]
    assert shop.export().rows == 4
    again = files(shop)
    assert {again[name] == left[name] for name in new} <= {True}
    assert not audit.audit(shop.root, str(shop.root / "exports" / "sft")).findings


def test_an_export_killed_before_anything_was_written_leaves_the_earlier_one(shop: Shop) -> None:
    shop.accept()
    shop.export()
    old = files(shop)
    shop.ingest([document("t-9")], name="more")
    killed(shop, "require_enough")
    assert files(shop) == old
    assert not audit.audit(shop.root, str(shop.root / "exports" / "sft")).findings
