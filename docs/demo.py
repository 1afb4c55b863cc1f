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

from tracemark.failures.conditions import shipped
from tracemark.gates.report import against_noise
from tracemark.model.gate import MeasuredOf
from tracemark.words import numbered

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
MANIFEST = ROOT / "exports" / "sft" / "manifest.json"
FAILURES = ROOT / "failures"
REPORTS = ROOT / "reports" / "gates"
PLAN = ROOT / "reports" / "plan.jsonl"
SHOWN = 4
"""How many clusters of failures are named."""
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
    print(
        "dvc repro … (fingerprint, play, ingest, export, failures, gates, plan; nothing is run that is up to date)",
        file=sys.stderr,
    )
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


def refusal(fingerprint: str) -> str:
    """Return how a refused refund looks under one harness: the observation of the first trace in which it failed."""
    found = tracemark("traces", "list", "--harness", fingerprint)["traces"]
    late = [row for row in found if str(row.get("task")).startswith("late-refund-")]
    for row in sorted(late, key=lambda row: str(row["task"])):
        for step in tracemark("traces", "show", row["trace_id"])["trajectory"]["steps"]:
            for result in (step.get("observation") or {}).get("results", []):
                if "return period" in result["content"]:
                    return str(result["content"])
    return "no such call in the store"


def is_alone(harness: dict[str, Any], harnesses: list[dict[str, Any]]) -> bool:
    """Return whether no other harness has the name of this one, as after an edit of its folder."""
    return [one["name"] for one in harnesses].count(harness["name"]) == 1


def label(harness: dict[str, Any], harnesses: list[dict[str, Any]]) -> str:
    """Return by what a harness is called here: its name, and where others have that too, its fingerprint as well."""
    return f"{harness['name']}{'' if is_alone(harness, harnesses) else ' ' + harness['fingerprint'][4:10]}"


def argument(harness: dict[str, Any], harnesses: list[dict[str, Any]]) -> str:
    """Return by what a command is told of a harness."""
    return str(harness["name"] if is_alone(harness, harnesses) else harness["fingerprint"][4:16])


def described(harness: dict[str, Any], harnesses: list[dict[str, Any]]) -> str:
    """Return in words what a harness is to the corpus: accepted, or in what it differs; and where its texts are."""
    if harness["accepted"]:
        words = "accepted"
    else:
        accepted = next(one["fingerprint"] for one in harnesses if one["accepted"])
        differences = tracemark("harness", "diff", harness["fingerprint"], accepted)["differences"]
        parts = " and ".join(f"{found['component']}/{found['part']}" for found in differences)
        words = f"differs from the accepted one in {parts}"
    if is_alone(harness, harnesses):
        return words
    # an edited folder is another harness; what it was lives on in its snapshot and its traces
    return f"{words} ({'as it was before the edit' if harness['source'] == 'snapshot' else 'as the folder is now'})"


def main() -> int:
    """Run and report."""
    reproduce()
    listed = sorted(tracemark("harness", "list")["harnesses"], key=lambda harness: not harness["accepted"])
    manifest = json.loads(MANIFEST.read_bytes())
    counts, accepted = manifest["counts"], listed[0]
    width = max(len(label(harness, listed)) for harness in listed)

    def row(harness: dict[str, Any], words: str) -> None:
        print(f"  {label(harness, listed):<{width}}  {words}")

    print(f"\nHarness versions: {len(listed)}, told apart by what they are and not by what they are called:")
    for harness in listed:
        row(harness, f"{harness['fingerprint'][:20]}…  {described(harness, listed)}")
    print("\nA scripted agent that stands in for a model, in two strengths, worked on the same tasks, tools executed:")
    for harness in listed:
        successes = numbered(harness["successes"], "recorded success")
        row(harness, f"{numbered(harness['traces'], 'trace')}, {successes}")
    print("\nA refused refund, as each of them shows it to the model:")
    for harness in listed:
        row(harness, f"{refusal(harness['fingerprint'])[:96].splitlines()[0]}…")
    print(f"\nTraining set exports/sft/: {counts['rows']} of {counts['traces']} traces, policy {manifest['policy']}")
    for outcome, rows in manifest["outcomes"].items():
        print(f"  {aligned(rows, 'row')}: {outcome} of {label(accepted, listed)}")
    for reason, number in counts["excluded"].items():
        if number:
            print(f"  {number:>4} left out, {reason}: {WHY.get(reason, '')}")
    failures(label(accepted, listed))
    gates(listed)
    print("\nLook further (commands are in .venv/bin):")
    look_further(
        ("tracemark audit exports/sft", "every row made again from the store and compared"),
        (f"tracemark audit {manifest['rows'][0][:12]}", "which harness made this trace, by what evidence"),
        *(
            (f"tracemark harness diff {argument(one, listed)} {argument(accepted, listed)}", "what differs, as text")
            for one in listed[1:]
        ),
        ("tracemark failures list", "what fails again and again, under every harness"),
        ("tracemark gate log", "who decided what, and on which evidence"),
        ("dvc dag", "the pipeline; dvc repro does nothing the second time"),
    )
    return 0


def failures(accepted: str) -> None:
    """Say what the failure log of the accepted harness holds: the clusters of its failures, the largest first."""
    manifest = json.loads((FAILURES / "manifest.json").read_bytes())
    clusters = [json.loads(path.read_bytes()) for path in (FAILURES / "clusters").iterdir()]
    log = manifest["logs"][0]
    many = f"{numbered(clustered(manifest), 'failed run')} of {accepted} in {numbered(log['clusters'], 'cluster')}"
    print(f"\nFailure log failures/: {many}, no row among them:")
    for found in sorted(clusters, key=lambda one: (-one["traces"], one["cluster"]))[:SHOWN]:
        print(f"  {aligned(found['traces'], 'run')} of {numbered(found['tasks'], 'task')}: {failed(found)[:100]}")
    if len(clusters) > SHOWN:
        print(f"       and {len(clusters) - SHOWN} more: tracemark failures list --harness {accepted}")


def failed(cluster: dict[str, Any]) -> str:
    """Return what the runs of a cluster have in common: the tool and the line of its error, or what their name means.

    Runs in which no call failed have the name of their condition for a line, in parentheses.
    """
    line = str(cluster["line"])
    means = {f"({condition.name})": condition.says for condition in shipped().ordered}
    if line in means:
        return f"{line} {means[line]}"
    return f"{cluster['tool']}: {line}" if cluster["tool"] else line


def aligned(number: int, noun: str) -> str:
    """Return `numbered`, with the number below those of other lines."""
    return f"{number:>4}{numbered(number, noun).removeprefix(str(number))}"


def clustered(manifest: dict[str, Any]) -> int:
    """Return how many runs of the accepted harness the clusters are of: those that are no fault of somebody else."""
    accepted = manifest["logs"][0]["fingerprint"]
    routed = manifest["counts"]["routed"]
    return sum(one["traces"] for one in routed if (one["harness"], one["file"]) == (accepted, "failures.jsonl"))


def gates(listed: list[dict[str, Any]]) -> None:
    """Say what the gates found, and what installing each accepted harness would do; nothing is installed."""
    reports = [json.loads(path.read_bytes()) for path in sorted(REPORTS.glob("*.json"))]
    print("\nThe gates, each candidate against the accepted half with the other half the same (reports/gates/):")
    names = [candidate(report, listed) for report in reports]
    for name, report in zip(names, reports, strict=True):
        print(f"  {report['verdict']:<6}  {name:<{max(map(len, names))}}  {found(report)}")
    for name, report in zip(names, reports, strict=True):
        if report["verdict"] == "accept":
            print(f"\nNothing was installed. With `--install`, {report['half']} {name}:")
            answer = tracemark(
                "gate", report["half"], "--candidate", name, "--install", "--dry-run", "--reason", "demo"
            )
            for said in answer["consequences_said"]:
                print(f"  {said}")
    tasks = [json.loads(line) for line in PLAN.read_text(encoding="utf-8").splitlines()]
    runs = numbered(sum(task["attempts"] for task in tasks), "run")
    print(f"\nTo be run next under the accepted pair (reports/plan.jsonl): {numbered(len(tasks), 'task')}, {runs}")


def candidate(report: dict[str, Any], listed: list[dict[str, Any]]) -> str:
    """Return by what a command is told of the candidate of a gate's report."""
    half = report["candidate"]
    if report["half"] == "model":
        return "@".join(filter(None, (half["model"]["name"], half["model"]["revision"])))
    return argument(next(one for one in listed if one["fingerprint"] == half["harness"]), listed)


def found(report: dict[str, Any]) -> str:
    """Return in words what a gate measured, or why it refused to compare."""
    if report["verdict"] == "refused":
        return "; ".join(refusal["message"] for refusal in report["refusals"])
    measured = report["measured"]
    tasks = f"{numbered(measured['w'], 'task')} up, {measured['l']} down of {measured['n']} × {measured['attempts']}"
    return f"{tasks}, p = {measured['p']:.2g}; {against_noise(MeasuredOf.model_validate(measured))}"


def look_further(*commands: tuple[str, str]) -> None:
    """Print commands with what each shows."""
    width = max(len(command) for command, _ in commands)
    for command, shows in commands:
        print(f"  {command:<{width}}   {shows}")


if __name__ == "__main__":
    sys.exit(main())
