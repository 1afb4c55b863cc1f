"""Runs that failed, for the tests of the failure log, and what such a log holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracemark.acts import failure_export
from tracemark.acts.failure_export import FailureExport

from .conftest import Shop, document

FILES = ("failures.jsonl", "environment.jsonl", "grader.jsonl", "quarantine.jsonl")
LOCKED = "Error: order o-<n> is locked"
REFUSED = "Error: order o-0 is locked"


def failed(task: str | None, seen: str = REFUSED, *, reward: float = 0.0, **run: Any) -> dict[str, Any]:
    """Return a run in which the first call was answered with `seen`, and nothing made it good."""
    made = document(task, reward=reward, calls=1, **run)
    made["steps"][2]["observation"]["results"][0]["content"] = seen
    return made


def ended(task: str, termination: str, status: str = "failure", **run: Any) -> dict[str, Any]:
    """Return a run without a failed call that ended so."""
    made = document(task, reward=0.0, **run)
    made["extra"]["tracemark"]["outcome"] = {"status": status, "termination": termination}
    return made


def shop_of_failures(shop: Shop) -> Shop:
    """Store runs of the accepted harness for every file of the log, and some of another harness."""
    runs = [failed(f"f-{number}", f"Error: order o-{number} is locked") for number in range(4)]
    runs += [document("stopped", reward=0.0), ended("budget", "max_steps"), ended("grader", "VerifierError: died")]
    runs += [failed("disk", "Error: no space left on device")]
    runs += [failed("odd", reward=1.0)]
    shop.ingest(runs, name="failures")
    shop.ingest([failed("b-0", extra="Be brief."), failed("b-1", extra="Be brief.")], "desk_b", "failures-b")
    shop.accept()
    return shop


def rows(folder: Path, name: str = "failures.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def clusters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "clusters").iterdir())]


def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def export(shop: Shop, out: str = "failures") -> FailureExport:
    return failure_export.export(shop.root, shop.root / out)


def tasks(folder: Path) -> set[str]:
    return {row["task"] for name in FILES for row in rows(folder, name)}


def reject(shop: Shop, name: str) -> str:
    subject = {"half": "harness", "candidate": shop.fingerprint(name), "incumbent": shop.fingerprint()}
    return shop.enter("reject", subject, "the gate said no")


def added_up(stated: dict[str, Any]) -> int:
    counts = stated["counts"]
    routed = sum(one["traces"] for one in counts["routed"])
    return int(counts["superseded"] + sum(counts["left_out"].values()) + routed)
