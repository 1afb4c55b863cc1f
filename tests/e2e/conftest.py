"""The program as a user runs it: a real process on a corpus of real files."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import health
from tracemark.acts.corpus import open_store
from tracemark.store.selection import Selection

PROGRAM = Path(sys.executable).parent / "tracemark"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: bytes
    words: str

    @property
    def data(self) -> Any:
        """What it said as data."""
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        return [found["code"] for found in self.data["findings"]]


class Tracemark:
    """Commands on one corpus."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inbox = root / "inbox"
        self.inbox.mkdir(parents=True)

    def run(self, *arguments: str | Path) -> Done:
        command = [str(PROGRAM), "--root", str(self.root), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        words = done.stderr.decode()
        assert "Traceback" not in words
        return Done(done.returncode, done.stdout, words)

    def ingest(self, *arguments: str | Path) -> Done:
        return self.run("ingest", *(arguments or (self.inbox,)), "--output", "json")

    def traces(self) -> list[dict[str, Any]]:
        """Return the rows of `traces list`, in order of the source's label."""
        rows = [json.loads(line) for line in self.run("traces", "list", "--output", "jsonl").out.splitlines()]
        return sorted(rows, key=lambda row: str(row["source"]))

    def labels(self) -> list[str | None]:
        """Return the source's label of every trace."""
        with open_store(self.root) as store:
            return [state.row.label for state in store.select(Selection())]

    def line(self, trace_id: str) -> dict[str, Any]:
        """Return the stored line of a trace."""
        with open_store(self.root) as store:
            return json.loads(store.get(trace_id))

    def check(self) -> None:
        assert health.check(self.root).findings == ()


@pytest.fixture
def tracemark(tmp_path: Path) -> Tracemark:
    """An empty corpus."""
    return Tracemark(tmp_path / "corpus")
