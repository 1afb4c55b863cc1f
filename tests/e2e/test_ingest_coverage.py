"""The page on coverage says what ingesting the real trace files gives now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "coverage.md"


@pytest.mark.shared_data
def test_the_page_on_coverage_is_current() -> None:
    command = [sys.executable, ROOT / "docs" / "coverage.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.shared_data
def test_the_page_has_a_row_for_every_group_of_files(shared_traces: Path) -> None:
    folders = [folder for folder in shared_traces.iterdir() if folder.is_dir()]
    groups = {f"{folder.name}/{path.name.partition('__')[0]}" for folder in folders for path in folder.iterdir()}
    listed = re.findall(r"^\| `([^`]+)` \| \d", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == groups
