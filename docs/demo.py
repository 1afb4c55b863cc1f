"""Run the repository's pipeline and say in a few lines what went in, what was left out, and why.

    make demo

Everything printed is read from what the pipeline made; nothing here knows a number.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
MANIFEST = ROOT / "exports" / "sft" / "manifest.json"
WHY = {
    "other-harness": "made by another harness: its procedure cannot be performed under the accepted one",
    "outcome": "no recorded success; kept in the store, never trained on",
    "evaluation-task": "a task kept for evaluation (params.yaml: evaluation.tasks), so never trained on",
    "per-task": "another success of the same task was taken (params.yaml: export.sft.per_task)",
}


def tracemark(*words: str) -> Any:
    """Run a tracemark command and return what it says as data."""
    command = [str(PROGRAMS / "tracemark"), *words, "--output", "json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def reproduce() -> None:
    """Bring the pipeline up to date; show its words only when it fails."""
    print("dvc repro … (fingerprint, play, ingest, export; nothing is run that is up to date)", file=sys.stderr)
    done = subprocess.run(
        [str(PROGRAMS / "dvc"), "repro"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        sys.exit(done.returncode)


def refusal(harness: str) -> str | None:
    """Return how a refused tool call looks under one harness: the first observation of a trace in which it failed."""
    for row in tracemark("traces", "list", "--harness", harness, "--task", "late-refund-01", "--limit", "1")["traces"]:
        steps = tracemark("traces", "show", row["trace_id"])["trajectory"]["steps"]
        for step in steps:
            for result in (step.get("observation") or {}).get("results", []):
                if "return period" in result["content"]:
                    return str(result["content"])
    return None


def main() -> int:
    """Run and report."""
    reproduce()
    listed = tracemark("harness", "list")["harnesses"]
    manifest = json.loads(MANIFEST.read_bytes())
    accepted = next(h for h in listed if h["accepted"])
    other = next(h for h in listed if not h["accepted"])
    counts = manifest["counts"]
    differences = tracemark("harness", "diff", other["name"], accepted["name"])["differences"]
    parts = " and ".join(f"{d['component']}/{d['part']}" for d in differences)
    trace = manifest["rows"][0]

    print("\nTwo harness versions, told apart by what they are and not by what they are called:")
    for harness in listed:
        mark = "accepted" if harness["accepted"] else ""
        print(f"  {harness['name']:<14} {harness['fingerprint'][:20]}…  {mark}".rstrip())
    print(f"  they differ in {parts}")
    print("\nThe same scripted agent (it stands in for a model) worked on the same tasks under both, tools executed:")
    for harness in listed:
        print(f"  {harness['name']:<14} {harness['traces']} traces, {harness['successes']} recorded successes")
    print("\nThe same refused call, as each of them shows it to the model:")
    for harness in listed:
        print(f"  {harness['name']:<14} {(refusal(harness['name']) or '')[:96].splitlines()[0]}…")
    print(f"\nTraining set exports/sft/: {counts['rows']} of {counts['traces']} traces, policy {manifest['policy']}")
    for outcome, rows in manifest["outcomes"].items():
        print(f"  {rows:>4} rows: {outcome} of {accepted['name']}")
    for reason, number in counts["excluded"].items():
        if number:
            print(f"  {number:>4} left out, {reason}: {WHY.get(reason, '')}")
    print("\nLook further (commands are in .venv/bin):")
    print("  tracemark audit exports/sft                       every row made again from the store and compared")
    print(f"  tracemark audit {trace[:12]}                      which harness made this trace, by what evidence")
    print(f"  tracemark harness diff {other['name']} {accepted['name']}   what differs, as text")
    print("  dvc dag                                           the pipeline; dvc repro does nothing the second time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
