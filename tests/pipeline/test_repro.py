"""The pipeline as DVC runs it, in a clone of this repository: what is rerun, what is pinned, what is sent."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tracemark.acts import decisions, scaffold
from tracemark.clock import FixedClock
from tracemark.ledger import chain
from tracemark.pipeline import dvcfile

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
IDENTITY = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]


def ran(told: str) -> set[str]:
    """Return the names of the stages that ran, by what DVC told."""
    return set(re.findall(r"Running stage '([^']+)'", told))


class Project:
    """A corpus repository, and the programs that work on it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, code: int = 0, errors: bool = False) -> str:
        """Run a command there; return what it wrote to standard output, or to standard error."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
        }
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if errors else done.stdout

    def ask(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run("tracemark", *words, "--output", "json", code=code))

    def repro(self, *targets: str) -> set[str]:
        """Bring the pipeline up to date; return the names of the stages that ran."""
        return ran(self.run("dvc", "repro", *targets))

    def commit(self, message: str) -> str:
        self.run("git", "add", "--all")
        self.run("git", *IDENTITY, "commit", "--quiet", "--message", message)
        return self.run("git", "rev-parse", "HEAD").strip()


GATES = {
    "gate-harness@desk-advised",
    "gate-harness@desk-commented",
    "gate-harness@desk-plain",
    "gate-model@desk-agent-tuned",
}
"""The gates of this repository's candidates."""

DECIDED = {"export-sft", "failures", *GATES, "plan"}
"""What a decision or a parameter reruns. The pictures stay as they are where no gate says anything else."""

COMMENTED = {("siblings-alike", "warning")}
"""What `check` finds in this repository: one of its harness versions differs from another in a comment alone."""


def found(project: Project) -> set[tuple[str, str]]:
    """Return what `check` finds, as codes with their severities."""
    return {(each["code"], each["severity"]) for each in project.ask("check")["findings"]}


@pytest.fixture
def project(played_clone: Path, tmp_path: Path) -> Project:
    """A copy of a clone in which the pipeline has run once, to be changed."""
    shutil.copytree(played_clone, tmp_path / "tracemark", symlinks=True)
    return Project(tmp_path / "tracemark")


def test_a_second_time_nothing_is_run(project: Project) -> None:
    told = project.run("dvc", "repro")
    assert ran(told) == set()
    assert "up to date" in told
    assert found(project) == COMMENTED


def test_touching_one_file_of_a_harness_reruns_what_depends_on_it(project: Project) -> None:
    with (project.root / "harness_versions/desk-plain/prompts/system.jinja").open("a") as prompt:
        prompt.write("Be brief.\n")
    assert project.repro() == {"harness@desk-plain", "play@desk-plain", "ingest", *DECIDED, "gate-plots"}
    assert project.repro() == set()


def test_a_decision_reruns_what_follows_from_it(project: Project) -> None:
    taken = json.loads((project.root / "exports/sft/manifest.json").read_text())["rows"][0]
    project.run("tracemark", "retract", taken, "--reason", "the order was of another customer")
    assert project.repro() == DECIDED
    assert taken not in json.loads((project.root / "exports/sft/manifest.json").read_text())["rows"]
    assert project.ask("audit", "exports/sft")["findings"] == []


def evaluation(project: Project) -> set[str]:
    return set(YAML(typ="safe").load(project.root / "params.yaml")["evaluation"]["tasks"])


def test_the_gates_judge_and_install_nothing(project: Project) -> None:
    reports = {path.stem: json.loads(path.read_text()) for path in (project.root / "reports/gates").glob("*.json")}
    assert len(reports) == len(GATES)
    assert {report["verdict"] for report in reports.values()} <= {"accept", "reject"}
    assert project.run("git", "status", "--porcelain", "ledger.jsonl", "params.yaml") == ""
    told = json.loads(project.run("dvc", "metrics", "show", "--json"))
    measured = {Path(file).stem: one["data"]["measured"] for file, one in told[""]["data"].items()}
    assert measured.keys() == reports.keys()
    for name, one in measured.items():
        assert (one["w"], one["l"]) == (reports[name]["measured"]["w"], reports[name]["measured"]["l"])


def test_dvc_draws_what_the_gates_measured(project: Project) -> None:
    drawn = json.loads(project.run("dvc", "plots", "show", "--json"))
    assert "errors" not in drawn
    values = {
        name: [point for plot in plots for point in plot["content"]["data"]["values"]]
        for name, plots in drawn["data"].items()
    }
    assert values.keys() == {
        "pass^k against k: harness",
        "cost against reliability: harness",
        "pass^k against k: model",
        "cost against reliability: model",
        "fixes and breaks",
    }
    assert {point["field"] for point in values["pass^k against k: harness"]} == {
        "accepted",
        "harness-desk-advised",
        "harness-desk-commented",
        "harness-desk-plain",
    }
    assert {point["k"] for point in values["pass^k against k: model"]} == {1, 2, 3, 4}
    report = json.loads((project.root / "reports/gates/harness-desk-advised.json").read_text())["measured"]
    changes = {point["gate"]: point["tasks"] for point in values["fixes and breaks"]}
    assert changes["harness-desk-advised: up"] == report["w"]
    assert changes["harness-desk-advised: down"] == -report["l"]
    costs = [point for point in values["cost against reliability: harness"] if point.get("harness-desk-advised")]
    assert {point["cost_per_success"] for point in costs} == {report["candidate"]["cost_per_success"]["value"]}
    project.run("dvc", "plots", "show")
    assert "harness-desk-advised" in (project.root / "dvc_plots" / "index.html").read_text()


def test_nothing_that_is_planned_or_learned_from_is_for_evaluation(project: Project) -> None:
    planned = [json.loads(line) for line in (project.root / "reports/plan.jsonl").read_text().splitlines()]
    assert planned
    assert not {row["task"] for row in planned} & evaluation(project)
    taken = set(json.loads((project.root / "exports/sft/manifest.json").read_text())["rows"])
    listed = {row["trace_id"]: row["task"] for row in project.ask("traces", "list")["traces"]}
    assert not {row["task"] for row in planned} & {listed[trace] for trace in taken}
    failed = [json.loads(line) for line in (project.root / "failures/failures.jsonl").read_text().splitlines()]
    assert failed
    assert not {row["trace"] for row in failed} & taken
    assert not {listed[row["trace"]] for row in failed} & evaluation(project)


def test_a_candidate_less_is_a_gate_less(project: Project) -> None:
    params = project.root / "params.yaml"
    params.write_text(params.read_text().replace("      - desk-commented\n", ""))
    project.run("tracemark", "pipeline", "dvcfile", "--check", code=1)
    (project.root / "dvc.yaml").write_text(project.run("tracemark", "pipeline", "dvcfile"))
    assert project.repro() == {*DECIDED - {"gate-harness@desk-commented"}, "gate-plots"}
    drawn = json.loads((project.root / "reports/gates/plots/pass-all.json").read_text())
    assert "harness-desk-commented" not in drawn[0]


def test_a_comparison_that_is_refused_stops_the_pipeline_and_says_why(project: Project) -> None:
    params = project.root / "params.yaml"
    params.write_text(params.read_text().replace("  attempts: 4              # attempts at", "  attempts: 5   # at"))
    # as DVC ends when a stage fails
    told = project.run("dvc", "repro", "gate-harness@desk-advised", code=255, errors=True)
    assert "exited with 40" in told
    report = json.loads((project.root / "reports/gates/harness-desk-advised.json").read_text())
    assert report["verdict"] == "refused"
    assert "evaluation-changed" in {refusal["reason"] for refusal in report["refusals"]}
    # what the gate needed was brought up to date before it, and the plan needs no gate
    assert project.repro("plan") == {"plan"}


def test_an_older_revision_and_back(project: Project) -> None:
    first = project.run("git", "rev-parse", "HEAD").strip()
    project.run("dvc", "commit", "--force", "--quiet")
    with (project.root / "harness_versions/desk-plain/prompts/system.jinja").open("a") as prompt:
        prompt.write("Be brief.\n")
    project.repro()
    project.run("tracemark", "pipeline", "dvcfile", "--check")
    second = project.commit("A prompt that asks for brevity")
    counts = {}
    for revision in (first, second, first, second):
        project.run("git", "checkout", "--quiet", revision)
        project.run("dvc", "checkout", "--quiet")
        listed = len(project.ask("traces", "list")["traces"])
        assert counts.setdefault(revision, listed) == listed
        assert (found(project), project.ask("check")["traces"]) == (COMMENTED, listed)
    assert counts[first] < counts[second]


def test_records_that_are_refused_keep_nothing_else_out_of_the_pipeline(project: Project) -> None:
    params = project.root / "params.yaml"
    params.write_text(params.read_text().replace("inbox: complete", "inbox: partial "))
    (project.root / "inbox" / "others").mkdir()
    (project.root / "inbox" / "others" / "broken.json").write_text('{"schema_version": "ATIF-v1.8", "steps": [')
    assert project.repro() == {"ingest", *DECIDED}
    assert list((project.root / "traces" / "refused").iterdir())
    assert project.repro() == set()


def test_a_clone_without_the_data_is_told_to_pull(project: Project, tmp_path: Path) -> None:
    params = project.root / "params.yaml"
    params.write_text(params.read_text().replace("inbox: complete", "inbox: partial "))
    project.repro()
    project.commit("The inbox is no longer kept")
    project.run("dvc", "remote", "add", "--default", "store", str(tmp_path / "remote"))
    project.commit("A remote")
    project.run("dvc", "push", "--quiet")
    subprocess.run(["git", "clone", "--quiet", str(project.root), str(tmp_path / "fresh")], check=True)
    fresh = Project(tmp_path / "fresh")
    shutil.copytree(project.root / "inbox" / "desk-plain", fresh.root / "inbox" / "desk-plain")
    refused = fresh.ask("ingest", "inbox", code=10)
    assert (refused["error"], refused["hint"]) == ("NotPulledError", "dvc pull")
    assert not (fresh.root / "traces" / "segments").exists()
    assert fresh.run("git", "status", "--porcelain") == ""
    fresh.run("dvc", "pull", "--quiet")
    assert fresh.ask("ingest", "inbox")["ingested"] == 0
    assert found(fresh) == COMMENTED


def test_a_clone_in_which_the_inbox_gives_less_than_is_pinned_is_told_to_pull(project: Project, tmp_path: Path) -> None:
    with (project.root / "harness_versions/desk-labelled/prompts/system.jinja").open("a") as prompt:
        prompt.write("Be brief.\n")
    project.repro()
    stored = len(project.ask("traces", "list")["traces"])
    project.run("dvc", "remote", "add", "--default", "store", str(tmp_path / "remote"))
    project.commit("A prompt that asks for brevity")
    project.run("dvc", "push", "--quiet")
    subprocess.run(["git", "clone", "--quiet", str(project.root), str(tmp_path / "fresh")], check=True)
    fresh = Project(tmp_path / "fresh")
    assert fresh.ask("audit", "exports/sft", code=10)["error"] == "NotPulledError"
    for _ in range(2):
        # as DVC ends when a stage fails
        fresh.run("dvc", "repro", code=255)
        assert fresh.run("git", "status", "--porcelain") == ""
        assert not (fresh.root / "traces" / "segments").exists()
    refused = fresh.ask("ingest", "inbox", code=10)
    assert "5 of traces/segments; ingesting now would begin another corpus" in refused["message"]
    fresh.run("dvc", "pull", "--quiet")
    assert len(fresh.ask("traces", "list")["traces"]) == stored
    assert fresh.repro() == set()
    assert fresh.ask("audit", "exports/sft")["findings"] == []
    # one whose data the inbox still gives is made again
    kept = json.loads((fresh.root / "reports/harness/desk-labelled.json").read_text())["fingerprint"][4:20]
    shutil.rmtree(fresh.root / ".dvc" / "cache")
    shutil.rmtree(fresh.root / "traces" / "segments" / f"fingerprint={kept}")
    assert "ingest" in fresh.repro()
    assert len(fresh.ask("traces", "list")["traces"]) == stored
    assert fresh.run("git", "status", "--porcelain") == ""


def test_a_candidate_is_told_to_its_gate_as_it_is_called(tmp_path: Path) -> None:
    named = ["m@1", "a b", "it's", "x${y}", "$(touch x)", "a; touch x", r"a\b", "123", "null", "é", "org/m:1"]
    root = tmp_path / "corpus"
    scaffold.init(root)
    (root / "harness_versions" / "a").mkdir()
    (root / "harness_versions" / "a" / "harness.yaml").write_text("format: tracemark/harness/1\nname: a\n")
    params = root / "params.yaml"
    text = params.read_text()
    assert "    model: []\n" in text
    params.write_text(text.replace("    model: []\n", f"    model: {json.dumps(named)}\n"))
    (root / "dvc.yaml").write_text(dvcfile.render(root))
    for place in YAML(typ="safe").load(root / "dvc.yaml")["stages"]["gate-model"]["do"]["deps"]:
        if not (root / place).exists():
            (root / place).mkdir(parents=True)
    project = Project(root)
    told = []
    for stage in project.run("dvc", "stage", "list", "--name-only").split():
        if stage.startswith("gate-model@"):
            ran = project.run("dvc", "repro", "--dry", "--single-item", stage)
            words = shlex.split(next(line for line in ran.splitlines() if line.startswith("> ")))
            told.append(words[words.index("--candidate") + 1])
    assert sorted(told) == sorted(named)


PROMPT = "You answer for a small shop. Write one sentence, in the language of the customer."
HARNESS = f"""\
format: tracemark/harness/1
name: lamps
prompt_templates: [{{name: system, syntax: format, text: "{PROMPT}"}}]
runtime: {{limits: {{turns: 1}}}}
"""


def corpus(root: Path, told: str) -> Project:
    """Return a new corpus with a harness version, two runs of it and a `params.yaml`."""
    (root / "harness_versions" / "lamps").mkdir(parents=True)
    (root / "harness_versions" / "lamps" / "harness.yaml").write_text(HARNESS)
    (root / "params.yaml").write_text(told)
    project = Project(root)
    project.run("tracemark", "init")
    for task in ("hours", "returns"):
        said = [("system", PROMPT), ("user", f"{task}?"), ("assistant", "Yes.")]
        run = {"task": task, "reward": 1, "messages": [{"role": role, "content": text} for role, text in said]}
        (root / "inbox" / f"{task}.json").write_text(json.dumps(run))
    (root / "inbox" / "batch.yaml").write_text("harness: lamps\n")
    return project


def test_a_section_that_params_yaml_does_not_state_has_its_defaults_in_the_pipeline_too(tmp_path: Path) -> None:
    project = corpus(tmp_path / "lamps", "export: {sft: {minimum: 2, tool_calls: [0, 60]}}\n")
    project.run("tracemark", "harness", "accept", "lamps", "--reason", "in use")
    project.run("tracemark", "pipeline", "dvcfile", "--check")
    assert project.repro() == {"harness@lamps", "ingest", "export-sft", "failures", "plan"}
    assert json.loads((project.root / "exports/sft/manifest.json").read_text())["counts"]["rows"] == 2
    assert project.repro() == set()


def test_a_params_yaml_in_which_nothing_stands_lets_the_pipeline_ingest(tmp_path: Path) -> None:
    project = corpus(tmp_path / "lamps", "# nothing yet\n")
    assert project.repro("ingest") == {"ingest"}
    assert len(project.ask("traces", "list")["traces"]) == 2
    with (project.root / "params.yaml").open("a") as params:
        params.write("ingest: {success_reward: 2}\n")
    # what the file says of the section now is read from now on
    assert project.repro("ingest") == {"ingest"}
    project.run("tracemark", "pipeline", "dvcfile", "--check", code=1)


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_said_of_segments_that_are_not_pinned_can_be_done_to_the_letter(tmp_path: Path, number: int) -> None:
    project = corpus(tmp_path / "lamps", "# nothing yet\n")
    project.repro("ingest")
    assert ("not-pinned", "info") not in found(project)
    run = project.root / "inbox" / "hours.json"
    run.write_text(run.read_text().replace("Yes.", "No."))
    project.run("tracemark", "ingest", "inbox")
    (told,) = (one for one in project.ask("check")["findings"] if one["code"] == "not-pinned")
    command = told["hint"].split(", or ")[number]
    project.run(*command.split(), *(["ingest"] if command == "dvc repro" else []))
    assert "not-pinned" not in {code for code, _ in found(project)}


def generate(folder: Path, number: int) -> Path:
    command = [sys.executable, str(ROOT / "benchmarks" / "make_traces.py"), str(number), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def fill(root: Path, batch: str, generated: Path, part: slice) -> None:
    """Put a part of each harness's generated runs into the inbox, as a batch for each harness."""
    for path in sorted((generated / "inbox").glob("*.jsonl")):
        folder = root / "inbox" / f"{batch}-{path.stem}"
        folder.mkdir()
        (folder / "runs.jsonl").write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[part]))
        (folder / "batch.yaml").write_text(f"harness: {path.stem}\n")


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_after_one_percent_more_traces_a_push_sends_little_more_than_the_new_segments(tmp_path: Path) -> None:
    root, remote = tmp_path / "corpus", tmp_path / "remote"
    made = generate(tmp_path / "made", 600)
    shutil.copytree(made / "harness_versions", root / "harness_versions")
    scaffold.init(root)
    decisions.accept(root, "h5", "the most runs", FixedClock("2026-01-31T12:00:00Z", 1))
    (root / "dvc.yaml").write_text(dvcfile.render(root))
    fill(root, "first", made, slice(None, -1))
    project = Project(root)
    assert project.repro() == {
        *(f"harness@h{number}" for number in range(6)),
        "ingest",
        "export-sft",
        "failures",
        "plan",
    }
    assert project.ask("audit", "exports/sft")["findings"] == []
    project.run("dvc", "remote", "add", "--default", "store", str(remote))
    project.run("dvc", "push", "--quiet")
    before, stored = size(remote), size(root / "traces" / "segments")
    fill(root, "more", made, slice(-1, None))
    assert project.repro("ingest") == {"ingest"}
    project.run("dvc", "push", "--quiet", "ingest")
    added = size(root / "traces" / "segments") - stored
    assert 0 < size(remote) - before <= 1.5 * added
    assert len(chain.read(root / chain.NAME).entries) == 1
