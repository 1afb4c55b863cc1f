"""The promise of the README: a fresh clone runs the demo, and afterwards it is as it was committed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent


def run(folder: Path, *command: str) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_fresh_clone_runs_the_demo_and_is_clean_afterwards(tmp_path: Path) -> None:
    clone = tmp_path / "tracemark"
    run(tmp_path, "git", "clone", "--quiet", str(ROOT), str(clone))
    told = run(clone, sys.executable, "docs/demo.py")
    assert run(clone, "git", "status", "--porcelain") == ""
    manifest = json.loads((clone / "exports" / "sft" / "manifest.json").read_text())
    assert f"{manifest['counts']['rows']} of {manifest['counts']['traces']} traces" in told
    assert manifest["counts"]["excluded"]["other-harness"] > 0
    assert len(told.splitlines()) <= 32
    # what the demo tells a reader to run next
    ended = []
    for command in [line.strip() for line in told.splitlines() if line.startswith("  tracemark ")]:
        words = command.split("   ")[0].split()
        done = subprocess.run([PROGRAMS / words[0], *words[1:]], cwd=clone, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        ended.append((words[1], done.returncode))
    assert ended == [("audit", 0), ("audit", 0), ("harness", 1)]
    assert "up to date" in run(clone, "dvc", "repro")
