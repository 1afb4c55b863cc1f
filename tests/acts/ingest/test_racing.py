"""Two ingests of one inbox at once come to what one after the other comes to."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracemark.acts.ingest import IngestOptions, ingest

CLAIMS = (None, "desk_a")


def fill(desk) -> None:
    """Write an inbox that names no harness for one batch and desk_b for another, not always rightly."""
    desk.write("plain/runs.jsonl", *(desk.document(f"p-{n}", "desk_b" if n % 3 else "desk_a") for n in range(12)))
    named = [desk.document(f"n-{n}", "desk_b" if n % 3 else "desk_a") for n in range(12)]
    silent = desk.document("n-silent")
    silent["steps"] = [{**step, "step_id": n} for n, step in enumerate(silent["steps"][1:], 1)]
    desk.write("named/runs.jsonl", *named, silent)
    desk.put("named/batch.yaml", b"harness: desk_b\n")


def states(desk) -> dict[str, tuple[Any, ...]]:
    return {
        task: (state.conflicts, state.row.fingerprint, state.row.evidence, state.row.contradicted, state.row.status)
        for task, state in desk.states().items()
    }


def run(root: Path, claim: str | None) -> None:
    ingest(root, [root / "inbox"], IngestOptions(harness=claim))


def sequential(desk, folder: Path, claims: Sequence[str | None]) -> dict[str, tuple[Any, ...]]:
    other = desk.other(folder)
    fill(other)
    for claim in claims:
        run(other.root, claim)
    return states(other)


def test_in_every_order_the_wrong_claim_disputes_only_what_fits_both(desk, tmp_path: Path) -> None:
    first, second = (
        sequential(desk, tmp_path / str(n), order) for n, order in enumerate(itertools.permutations(CLAIMS))
    )
    assert first == second
    assert [task for task, state in first.items() if state[0]] == ["n-silent"]


def test_copies_that_two_writers_stored_at_once_are_one_trace_with_the_same_state(desk, tmp_path: Path) -> None:
    expected = sequential(desk, tmp_path / "sequential", CLAIMS)
    fill(desk)
    for claim in CLAIMS:
        # neither writer sees what the other one stores
        alone = desk.other(tmp_path / f"alone-{claim}")
        fill(alone)
        run(alone.root, claim)
        shutil.copytree(alone.root / "traces", desk.root / "traces", dirs_exist_ok=True)
    assert desk.counts()["copies"] > 0
    assert states(desk) == expected
    desk.check()
    for claim in CLAIMS:
        run(desk.root, claim)
    assert states(desk) == expected


def test_processes_that_ingest_one_inbox_with_different_claims_come_to_the_same_state(desk, tmp_path: Path) -> None:
    expected = sequential(desk, tmp_path / "sequential", CLAIMS)
    fill(desk)
    command = [sys.executable, "-m", "tracemark", "--root", str(desk.root), "ingest", str(desk.root / "inbox")]
    claims = ([] if claim is None else ["--harness", claim] for claim in (None, *CLAIMS))
    processes = [subprocess.Popen([*command, *claim], stdout=subprocess.DEVNULL) for claim in claims]
    # 1 says that something contradicts what is stated for it
    assert {process.wait(120) for process in processes} <= {0, 1}
    assert states(desk) == expected
    desk.check()
