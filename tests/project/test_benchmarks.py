"""The benchmarks run: their scripts are program, and a figure whose script has rotted is a claim."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def _name(line: str) -> str:
    return re.split(r"  +", line)[0]
