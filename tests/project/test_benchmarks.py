"""The benchmarks run: their scripts are program, and a figure whose script has rotted is a claim."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemark.importers import source
from tracemark.importers.base import Imported

ROOT = Path(__file__).parents[2]
TRACES = 240


@pytest.mark.slow
def test_the_measurement_reports_every_figure_of_its_page(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "measure.py"), "--traces", str(TRACES), "--repeats", "1"]
    ran = subprocess.run([*command, "--folder", str(tmp_path)], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    names = {_name(line) for line in page.split("```")[3].splitlines()[2:] if line.strip()}
    assert {_name(line) for line in ran.stdout.splitlines() if line.startswith(("ingest", "export", "tracemark"))} == {
        name for name in names if name.startswith(("ingest", "export", "tracemark"))
    }
    ratios = re.findall(r"^(?:ingest|export).*?  +(\d+\.\d\d) \(", ran.stdout, re.MULTILINE)
    assert len(ratios) == 5
    assert all(float(ratio) > 0 for ratio in ratios)


@pytest.mark.slow
def test_the_failures_of_generated_traces_are_routed_and_clustered(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "routing.py"), "--traces", "120", "--repeats", "1"]
    ran = subprocess.run([*command, "--folder", str(tmp_path)], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"^failures (?:list|export, h5) +\d+\.\d\d \(", ran.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^memory of failures (?:list|export, h5) +\d+ MB$", ran.stdout, re.MULTILINE)) == 2


@pytest.mark.slow
def test_a_gate_over_generated_evaluations_is_measured(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "gates.py"),
        "--tasks",
        "4",
        "--attempts",
        "2",
        "--others",
        "50",
    ]
    ran = subprocess.run(
        [*command, "--repeats", "1", "--folder", str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    # a comparison that is refused would be measured as well, and says nothing
    assert re.search(r"verdict (?:accept|reject);", ran.stdout)
    assert len(re.findall(r"^(?:bare loop|from the store|comparison alone) +\d+\.\d+ ", ran.stdout, re.MULTILINE)) == 3


def _name(line: str) -> str:
    return re.split(r"  +", line)[0]


@pytest.mark.parametrize("kind", ["claude-code", "otel-genai"])
def test_what_is_written_in_another_format_is_the_same_run(tmp_path: Path, kind: str) -> None:
    for script, *arguments in (
        ("make_traces.py", "6", str(tmp_path / "made")),
        ("make_formats.py", str(tmp_path / "made" / "inbox"), str(tmp_path)),
    ):
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *arguments], check=True, capture_output=True)
    # a session of Claude Code holds no system prompt
    place, hidden = {"claude-code": ("claude-code", "system"), "otel-genai": ("otel-genai.jsonl", "")}[kind]
    said = sorted(_said(tmp_path / "made" / "inbox", "atif", hidden))
    assert len(said) == 6
    assert sorted(_said(tmp_path / place, kind, hidden)) == said


def _said(place: Path, name: str, hidden: str = "") -> Iterator[str]:
    """Yield the steps of each trace: who says what, what is called with what, and what came back."""
    for job in source.plan([place]).jobs:
        for trace in source.read(job):
            assert isinstance(trace, Imported), trace
            assert trace.source["format"] == name
            steps = [step for step in trace.trajectory["steps"] if step["source"] != hidden]
            yield repr(
                [
                    (
                        step["source"],
                        step["message"],
                        step.get("reasoning_content"),
                        [
                            (call["function_name"], sorted(call["arguments"].items()))
                            for call in step.get("tool_calls", ())
                        ],
                        [result["content"] for result in step.get("observation", {"results": ()})["results"]],
                    )
                    for step in steps
                ]
            )
