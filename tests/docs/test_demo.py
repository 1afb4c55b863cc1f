"""What the demo says is what the reports and the manifest say, whatever they say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gates.evaluations import NEW, cell
from tracemark.gates.compare import compare
from tracemark.gates.report import stored
from tracemark.gates.terms import Half, Terms

DOCS = Path(__file__).resolve().parents[2] / "docs"
HARNESS, CANDIDATE = ("tm1:" + letter * 64 for letter in "ab")


@pytest.fixture(scope="module")
def demo() -> Any:
    spec = importlib.util.spec_from_file_location("demo", DOCS / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reported(before: dict[str, int], after: dict[str, int], attempts: int) -> dict[str, Any]:
    """Return a gate's report as it lies in its file."""
    terms = Terms(Half.HARNESS, attempts=attempts)
    found = stored(compare(cell(before, attempts), cell(after, attempts, NEW), terms))
    return dict(found.model_dump(mode="json"))


def test_what_a_gate_says_of_the_noise_is_said_as_it_says_it(demo: Any) -> None:
    wavering, settled = {f"desk/{number}": 1 for number in range(6)}, {f"desk/{number}": 0 for number in range(6)}
    six = "6 tasks up, 0 down of 6"
    assert demo.found(reported(wavering, dict.fromkeys(wavering, 2), 2)) == (
        f"{six} × 2, p = 0.016; the difference of 6 is beyond the noise floor of 4"
    )
    assert demo.found(reported(settled, dict.fromkeys(settled, 2), 2)) == (
        f"{six} × 2, p = 0.016; whether the difference of 6 is beyond the noise is not known, since no noise was seen"
    )
    assert demo.found(reported(settled, dict.fromkeys(settled, 1), 1)) == (
        f"{six} × 1, p = 0.016; there is no noise floor: one attempt a task shows no rate between 0 and 1, and so "
        "nothing of the noise"
    )


def test_runs_in_clusters_are_those_of_the_accepted_harness_that_have_a_row_beside_them(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    routed = [
        {"harness": HARNESS, "file": "failures.jsonl", "traces": 4},
        {"harness": HARNESS, "file": "failures.jsonl", "traces": 3},
        {"harness": HARNESS, "file": "environment.jsonl", "traces": 20},
        {"harness": HARNESS, "file": None, "traces": 50},
        {"harness": CANDIDATE, "file": "failures.jsonl", "traces": 100},
    ]
    logs = [{"fingerprint": HARNESS, "clusters": 1, "evidence": {"recorded": 27}}]
    (tmp_path / "clusters").mkdir()
    clusters = [
        {"cluster": "c", "tool": None, "line": "(stopped-early)", "traces": 4, "tasks": 2},
        {"cluster": "d", "tool": "book", "line": "no seat", "traces": 1, "tasks": 1},
    ]
    for cluster in clusters:
        (tmp_path / "clusters" / f"{cluster['cluster']}.json").write_text(json.dumps(cluster))
    (tmp_path / "manifest.json").write_text(json.dumps({"logs": logs, "counts": {"routed": routed}}))
    monkeypatch.setattr(demo, "FAILURES", tmp_path)
    demo.failures("desk")
    first, *shown = capsys.readouterr().out.strip().splitlines()
    assert first == "Failure log failures/: 7 failed runs of desk in 1 cluster, no row among them:"
    assert shown == [
        "     4 runs of 2 tasks: (stopped-early) failed without an unrecovered error, and stopped by itself",
        "     1 run of 1 task: book: no seat",
    ]
