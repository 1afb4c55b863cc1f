"""The promise of the README: a fresh clone runs the demo, and afterwards it is as it was committed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.domains.desk_runs import ACCEPTED, CANDIDATES, compared, successes
from tracemark.words import numbered

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
AUDITS, LISTS = [("audit", 0), ("audit", 0)], [("failures", 0), ("gate", 0)]


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
def test_a_fresh_clone_runs_the_demo_and_is_clean_afterwards(
    played_clone: Path, told_by_demo: str, tmp_path: Path
) -> None:
    clone, told = tmp_path / "tracemark", told_by_demo
    shutil.copytree(played_clone, clone, symlinks=True)
    assert run(clone, "git", "status", "--porcelain") == ""
    manifest = json.loads((clone / "exports" / "sft" / "manifest.json").read_text())
    assert f"{manifest['counts']['rows']} of {manifest['counts']['traces']} traces" in told
    assert manifest["counts"]["excluded"]["other-harness"] > 0
    overview = (clone / "failures" / "overview.md").read_text()
    runs, clusters = re.findall(r"^(\d+ failed runs?) in (\d+ clusters?),", overview, re.MULTILINE)[0]
    assert f"Failure log failures/: {runs} of desk-labelled in {clusters}, " in told
    assert len(told.splitlines()) <= 60
    assert further(clone, told) == [*AUDITS, *[("harness", 1)] * 3, *LISTS]
    assert "up to date" in run(clone, "dvc", "repro")


@pytest.mark.slow
def test_after_an_edit_the_demo_tells_the_accepted_harness_from_the_edited_one_and_from_the_other(
    played_clone: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "tracemark"
    shutil.copytree(played_clone, clone, symlinks=True)
    with (clone / "harness_versions/desk-labelled/prompts/system.jinja").open("a") as prompt:
        prompt.write("Be brief.\n")
    told = run(clone, sys.executable, "docs/demo.py")
    listed = json.loads(run(clone, "tracemark", "harness", "list", "--output", "json"))["harnesses"]
    found = {(row["name"], row["source"] == "snapshot"): row["fingerprint"][4:] for row in listed}
    accepted, edited = found["desk-labelled", True], found["desk-labelled", False]
    advised, commented, plain = (f"  {name:<20}  " for name in ("desk-advised", "desk-commented", "desk-plain"))
    both = [f"  desk-labelled {fingerprint[:6]}  " for fingerprint in (accepted, edited)]
    beginnings = [both[0], advised, commented, both[1], plain]
    versions, runs, calls = (block.splitlines()[1:] for block in told.strip().split("\n\n")[:3])
    for block in (versions, runs, calls):
        assert [line[: len(begin)] for line, begin in zip(block, beginnings, strict=True)] == beginnings
    assert versions[0].endswith("accepted (as it was before the edit)")
    assert versions[3].endswith("differs from the accepted one in prompt_templates/system (as the folder is now)")
    assert all(" 356 traces, " in line for line in runs)
    assert further(clone, told) == [*AUDITS, *[("harness", 1)] * 4, *LISTS]


@pytest.mark.slow
def test_with_another_seed_the_decisions_follow_the_data(tmp_path: Path) -> None:
    seed = 5
    clone = tmp_path / "tracemark"
    run(tmp_path, "git", "clone", "--quiet", str(ROOT), str(clone))
    pipeline = clone / "dvc.yaml"
    pipeline.write_text(pipeline.read_text().replace("play.py ", f"play.py --seed {seed} "))
    # other runs are another corpus than the one that is pinned
    (clone / "dvc.lock").unlink()
    told = run(clone, sys.executable, "docs/demo.py")
    report = json.loads((clone / "reports" / "gates" / "model-desk-agent-tuned.json").read_text())
    assert report["verdict"] == "reject"
    assert json.loads((ROOT / "reports" / "gates" / "model-desk-agent-tuned.json").read_text())["verdict"] == "accept"
    before = successes(ACCEPTED, "base", seed)
    others = {f"harness-{name}": successes(name, "base", seed) for name in CANDIDATES}
    others["model-desk-agent-tuned"] = successes(ACCEPTED, "tuned", seed)
    for name, after in others.items():
        measured = json.loads((clone / "reports" / "gates" / f"{name}.json").read_text())["measured"]
        expected = compared(before, after)
        assert (name, measured["w"], measured["l"]) == (name, expected.ups, expected.downs)
        assert f"{numbered(expected.ups, 'task')} up, {expected.downs} down" in told


def further(clone: Path, told: str) -> list[tuple[str, int]]:
    """Run what the demo tells a reader to run next; return how each command ended."""
    ended = []
    named = told.partition("Look further")[2].splitlines()
    for command in [line.strip() for line in named if line.startswith("  tracemark ")]:
        words = command.split("   ")[0].split()
        done = subprocess.run([PROGRAMS / words[0], *words[1:]], cwd=clone, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        ended.append((words[1], done.returncode))
    return ended
