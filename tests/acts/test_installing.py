"""What follows from a verdict: the ledger first, then params.yaml, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import accepted_pair, audit, gating, health, installing
from tracemark.acts.audit_harness import HarnessAudit
from tracemark.acts.corpus import Corpus
from tracemark.acts.failure_terms import rejected
from tracemark.cli.main import run as tracemark
from tracemark.durable import CrashPoint
from tracemark.errors import IrregularFileError, NegativeAnswerError, ParamsError, UsageError
from tracemark.findings import Severity
from tracemark.ledger import chain
from tracemark.ledger.entry import Entry
from tracemark.model.decision import GateEvidence

from .conftest import CLOCK, write_version
from .evaluated import ALL, HALF, Bench


def entries(bench: Bench) -> tuple[Entry, ...]:
    return chain.read(bench.root / chain.NAME).entries


def files(bench: Bench) -> dict[str, bytes]:
    """Return every file of the corpus but what is made again at will."""
    paths = (path for path in bench.root.rglob("*") if path.is_file() and ".tracemark" not in path.parts)
    return {path.relative_to(bench.root).as_posix(): path.read_bytes() for path in paths}


def problems(bench: Bench) -> list[str]:
    return [found.code for found in health.check(bench.root).findings if found.severity is Severity.ERROR]


def test_an_accepted_harness_is_in_the_ledger_with_its_evidence_and_in_params(bench: Bench) -> None:
    judged = bench.gate()
    before = (bench.root / "params.yaml").read_text()
    answer = bench.install(reason="five tasks more")
    assert (answer.verdict, answer.decision, answer.new_entry, answer.exit_code) == ("accept", "install", True, 0)
    entry = entries(bench)[-1]
    assert (entry.digest, entry.decision.kind, entry.decision.reason) == (answer.entry, "install", "five tasks more")
    subject = entry.decision.subject
    assert (subject["half"], subject["harness"]) == ("harness", bench.fingerprint("desk_b"))
    assert (subject["model"]["name"], subject["model"]["revision"]) == ("m", "1")
    evidence = GateEvidence.model_validate(entry.decision.evidence)
    assert evidence.report == judged.digest
    assert evidence.traces.candidate == judged.report["candidate"]["digest"]
    assert evidence.accepted_traces == judged.report["candidate"]["traces"]
    assert (evidence.measured.w, evidence.measured.l, evidence.candidates) == (5, 0, 4)
    after = (bench.root / "params.yaml").read_text()
    assert after == before.replace(bench.fingerprint(), bench.fingerprint("desk_b"))
    assert problems(bench) == []


def test_an_accepted_model_is_installed_with_all_that_is_known_of_it(bench: Bench) -> None:
    answer = bench.install_model()
    assert (answer.decision, answer.half) == ("install", "model")
    corpus = Corpus(bench.root)
    assert corpus.params.accepted.model == "m@2"
    assert corpus.decisions.model is not None
    assert corpus.decisions.model["revision"] == "2"
    assert corpus.accepted == bench.fingerprint()
    assert problems(bench) == []


def test_a_rejected_candidate_changes_nothing_but_the_ledger_and_the_report_that_is_kept(bench: Bench) -> None:
    before = files(bench)
    answer = bench.install("desk_c")
    assert (answer.verdict, answer.decision, answer.exit_code, answer.consequences) == ("reject", "reject", 1, None)
    after = files(bench)
    kept = f"reports/decisions/{answer.digest}.json"
    assert {name for name in before | after if before.get(name) != after.get(name)} == {chain.NAME, kept}
    subject = entries(bench)[-1].decision.subject
    fingerprints = bench.fingerprint("desk_c"), bench.fingerprint()
    assert (subject["half"], subject["candidate"], subject["incumbent"]) == ("harness", *fingerprints)
    assert "accepted_traces" not in (entries(bench)[-1].decision.evidence or {})
    told = audit.audit(bench.root, "desk_c")
    assert isinstance(told, HarnessAudit)
    assert [one["kind"] for one in told.decisions] == ["reject"]


def test_a_rejection_that_stands_gets_no_second_entry(bench: Bench) -> None:
    first = bench.install("desk_c")
    again = bench.install("desk_c")
    assert (again.entry, again.new_entry) == (first.entry, False)
    assert [entry.decision.kind for entry in entries(bench)].count("reject") == 1


@pytest.mark.parametrize("half", ["harness", "model"])
@pytest.mark.parametrize("back", ["roll-back", "accept"])
def test_a_rejection_whose_candidate_was_accepted_since_is_decided_anew(bench: Bench, half: str, back: str) -> None:
    install, candidate = (bench.install, "desk_c") if half == "harness" else (bench.install_model, "m@3")
    if half == "model":
        # what is known of it under one harness, and under any, are two things
        bench.evaluate("desk_a", "m@3", {**HALF, "e-0": 1}, called={"server": "one"})
        bench.evaluate("desk_b", "m@3", ALL, called={"server": "another"})
    first = install(candidate)
    assert (first.decision, first.new_entry) == ("reject", True)
    if half == "harness":
        bench.accept(candidate)
    else:
        accepted_pair.accept_model(bench.root, candidate, "all the same", CLOCK)
    if back == "roll-back":
        accepted_pair.rollback(bench.root, "previous", "worse", CLOCK)
    elif half == "harness":
        bench.accept("desk_a")
    else:
        accepted_pair.accept_model(bench.root, "m@1", "back", CLOCK)
    assert rejected(Corpus(bench.root)) == []
    second = install(candidate)
    assert (second.decision, second.new_entry, second.digest) == ("reject", True, first.digest)
    assert install(candidate).entry == second.entry != first.entry
    assert rejected(Corpus(bench.root)) == ([bench.fingerprint("desk_c")] if half == "harness" else [])


def test_a_candidate_that_is_rejected_by_another_report_is_decided_anew(bench: Bench) -> None:
    first = bench.install("desk_c")
    bench.set(("cost_not_above: false", "cost_not_above: true"))
    second = bench.install("desk_c")
    assert (second.decision, second.new_entry) == ("reject", True)
    assert second.digest != first.digest


def test_how_many_traces_had_installed_the_incumbent_is_in_the_evidence(bench: Bench) -> None:
    bench.install()
    assert bench.install("desk_a").decision == "reject"
    assert [(entry.decision.evidence or {})["reused"] for entry in entries(bench)[-2:]] == [0, 16]


def test_a_refused_comparison_decides_nothing(bench: Bench) -> None:
    bench.tasks("e-0")
    before = files(bench)
    answer = bench.install()
    assert (answer.verdict, answer.decision, answer.entry, answer.exit_code) == ("refused", None, None, 40)
    assert files(bench) == before


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(bench)
    command = ["--root", str(bench.root), "gate", "harness", "--candidate", "desk_b", "--install", "--dry-run"]
    assert tracemark(command) == 0
    said = capsys.readouterr().out
    assert "would be installed; nothing was written to the ledger or params.yaml\n" in said
    assert files(bench) == before


def test_what_an_install_does_to_the_training_set_is_told_and_comes_true(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    told = bench.install(dry_run=True).consequences
    assert told is not None
    assert (told["successes_before"], told["successes_after"], told["kept"]) == (3, 2, 0)
    assert (told["rows_before"], told["rows_after"]) == (3, 2)
    assert bench.export().rows == told["rows_before"]
    assert bench.install().consequences == told
    assert bench.export("exports/after").rows == told["rows_after"]


def test_whoever_installs_what_the_pipeline_judges_is_told_to_take_it_out(bench: Bench) -> None:
    left = "is no candidate then: take it out of params.yaml: gates.candidates"
    assert left not in "\n".join(bench.install(dry_run=True).consequences_said)
    bench.set(("    harness: []", "    harness: [desk_c, desk_b]"), ("    model: []", "    model: [m@2]"))
    said = bench.install(dry_run=True).consequences_said
    assert said[-1].startswith(f"'desk_b' {left}.harness, and run tracemark pipeline dvcfile")
    assert left not in said[-2]
    bench.set(("[desk_c, desk_b]", f"['{bench.fingerprint('desk_b')[:20]}']"), ("[m@2]", "[m]"))
    assert any(left in one for one in bench.install(dry_run=True).consequences_said)
    assert any(one.startswith(f"'m' {left}.model") for one in bench.install_model().consequences_said)


def test_whoever_installs_is_told_which_candidates_then_stop_the_pipeline(bench: Bench) -> None:
    bench.evaluate("desk_a", "m@3", ALL)
    # that nobody has played with m@4, or knows desk_x, stops it before as well
    bench.set(
        ("    harness: []", "    harness: [desk_b, desk_c, desk_x]"), ("    model: []", "    model: [m@3, m@2, m@4]")
    )
    assert gating.gate_model(bench.root, "m@4").verdict == "refused"
    assert "refused" not in (bench.gate("desk_c").verdict, gating.gate_model(bench.root, "m@3").verdict)
    told = bench.install(dry_run=True).consequences_said
    stops = [one for one in told if "refuses then, and dvc repro stops there" in one]
    # desk_c and m@2 were evaluated beside desk_b, and m@3 beside desk_a alone
    assert [one.partition("'")[2].partition("'")[0] for one in stops] == ["m@3"]
    assert stops[0].endswith("; tracemark gate model --candidate m@3 lists what to do")
    assert bench.install().consequences_said == told
    after = gating.gate_model(bench.root, "m@3")
    assert after.report["refusals"][0]["message"] in stops[0]
    assert gating.gate_model(bench.root, "m@2").verdict == "reject"


def test_what_lies_in_place_of_the_report_that_is_kept_is_written_anew(bench: Bench) -> None:
    answer = bench.install(dry_run=True)
    place = bench.root / "reports" / "decisions" / f"{answer.digest}.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"cut":')
    bench.install()
    assert json.loads(place.read_text())["verdict"] == "accept"


def test_options_that_make_no_sense_together_are_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["--root", str(bench.root), "gate", "harness", "--candidate", "desk_b"]
    for options, said in (
        (["--dry-run"], "--dry-run says something about --install only"),
        (["--reason", "x"], "--reason says something about --install only"),
        (["--install"], "a decision needs a reason"),
        (["--install", "--reason", " "], "a decision needs a reason: it is empty"),
    ):
        assert tracemark([*base, *options]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(("policy", "verdict"), [("cotrace", "accept"), ("significant", "reject")])
@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_decided_of_a_harness_that_was_judged_with_another_model(
    bench: Bench, policy: str, verdict: str, dry_run: bool
) -> None:
    bench.set(("policy: significant", f"policy: {policy}"))
    assert bench.gate("desk_b", "m@2").verdict == verdict
    before = files(bench)
    options = installing.InstallOptions("measured", dry_run)
    with pytest.raises(UsageError, match="the accepted model is m@1"):
        installing.install_harness(bench.root, "desk_b", "m@2", options, CLOCK)
    assert files(bench) == before


def test_a_candidate_with_problems_is_not_installed(bench: Bench) -> None:
    folder = write_version(bench.root, "desk_x", extra="Broken.")
    (folder / "tools.py").write_text("def other():\n    return 1\n")
    bench.evaluate("desk_x", "m@1", ALL)
    assert bench.gate("desk_x").verdict == "accept"
    before = files(bench)
    with pytest.raises(NegativeAnswerError, match="problems that must be mended") as caught:
        bench.install("desk_x")
    assert str(caught.value.where).startswith("harness_versions/desk_x/")
    assert files(bench) == before


def test_unusable_parameters_stop_a_decision_before_the_ledger(bench: Bench) -> None:
    bench.set(("gates:", "gate:"))
    before = files(bench)
    with pytest.raises(ParamsError):
        bench.install()
    assert files(bench) == before


def test_params_that_are_a_link_out_of_the_corpus_stop_a_decision_before_the_ledger(
    bench: Bench, tmp_path: Path
) -> None:
    path = bench.root / "params.yaml"
    path.rename(tmp_path / "params.yaml")
    path.symlink_to(tmp_path / "params.yaml")
    before = files(bench)
    with pytest.raises(IrregularFileError):
        bench.install()
    assert files(bench) == before


# --- crashes


COMMAND = """
import sys
from tracemark.cli.main import run
sys.exit(run(["--root", *sys.argv[1:]]))
"""


BEFORE_THE_LEDGER = """
import os, signal
from tracemark.ledger import chain
chain.append = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


BEFORE_THE_REPORT = """
import os, signal
from pathlib import Path
replace = Path.replace
def die(path, target):
    if path.parent.name == "decisions":
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(path, target)
Path.replace = die
"""


def in_a_child(root: Path, point: CrashPoint | None, *arguments: str, before: str = "") -> int:
    environment = {**os.environ, **({"TRACEMARK_CRASH_AT": point.value} if point else {})}
    command = [sys.executable, "-c", before + COMMAND, str(root), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


INSTALLS = [
    (("gate", "harness", "--candidate", "desk_b"), "harness", "accepted-differs"),
    (("gate", "model", "--candidate", "m@2"), "model", "accepted-model-differs"),
]


@pytest.mark.parametrize(("command", "half", "code"), INSTALLS)
def test_a_crash_between_ledger_and_params_is_named_and_finished_without_a_second_entry(
    bench: Bench, command: tuple[str, ...], half: str, code: str
) -> None:
    told = (*command, "--install", "--reason", "better")
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *told) == -signal.SIGKILL
    number = len(entries(bench))
    assert entries(bench)[-1].decision.kind == "install"
    # what the entry rests on is kept by then, since nothing could make it again
    kept = (entries(bench)[-1].decision.evidence or {})["report"]
    assert (bench.root / "reports" / "decisions" / f"{kept}.json").is_file()
    (found,) = [found for found in health.check(bench.root).findings if found.code == code]
    assert found.hint is not None
    finish = found.hint.partition(" --reason")[0].split()[1:]
    assert finish[:2] == [half, "accept"]
    # a gate judges nothing until that is done
    assert in_a_child(bench.root, None, *told) == 40
    assert in_a_child(bench.root, None, *finish, "--reason", "finish it") == 0
    assert len(entries(bench)) == number
    assert problems(bench) == []
    accepted = Corpus(bench.root).params.accepted
    assert (accepted.harness, accepted.model) == (
        bench.fingerprint("desk_b" if half == "harness" else "desk_a"),
        "m@1" if half == "harness" else "m@2",
    )


@pytest.mark.parametrize("candidate", ["desk_b", "desk_c"])
def test_a_crash_between_the_report_that_is_kept_and_the_ledger_leaves_nothing_decided(
    bench: Bench, candidate: str
) -> None:
    told = ("gate", "harness", "--candidate", candidate, "--install", "--reason", "measured")
    before = files(bench)
    assert in_a_child(bench.root, None, *told, before=BEFORE_THE_LEDGER) == -signal.SIGKILL
    (kept,) = (bench.root / "reports" / "decisions").iterdir()
    assert files(bench) == {**before, f"reports/decisions/{kept.name}": kept.read_bytes()}
    assert problems(bench) == []
    answer = bench.install(candidate)
    assert (answer.new_entry, f"{answer.digest}.json") == (True, kept.name)
    assert problems(bench) == []


def test_what_a_crash_left_where_reports_are_kept_is_gone_with_the_next_decision(bench: Bench) -> None:
    told = ("gate", "harness", "--candidate", "desk_c", "--install", "--reason", "measured")
    assert in_a_child(bench.root, None, *told, before=BEFORE_THE_REPORT) == -signal.SIGKILL
    folder = bench.root / "reports" / "decisions"
    (left,) = folder.iterdir()
    others = [folder / ".notes.tmp", folder / f".{'0' * 64}.json.12345678.tmp"]
    others[0].write_text("mine")
    others[1].symlink_to(others[0])
    answer = bench.install("desk_b")
    assert (left.suffix, sorted(folder.iterdir())) == (".tmp", sorted([*others, folder / f"{answer.digest}.json"]))


@pytest.mark.parametrize(("command", "half", "code"), INSTALLS)
def test_a_crash_after_params_leaves_nothing_to_do(
    bench: Bench, command: tuple[str, ...], half: str, code: str
) -> None:
    told = (*command, "--install", "--reason", "better")
    assert in_a_child(bench.root, CrashPoint.PARAMS_WRITTEN, *told) == -signal.SIGKILL
    assert problems(bench) == []
    assert [found.code for found in health.check(bench.root).findings if found.code == code] == []
    assert entries(bench)[-1].decision.subject["half"] == half


def test_of_two_that_install_at_once_the_second_judges_what_the_first_left(bench: Bench) -> None:
    with ThreadPoolExecutor(4) as pool:
        verdicts = [answer.verdict for answer in pool.map(bench.install, ["desk_b"] * 4)]
    assert sorted(verdicts) == ["accept", "refused", "refused", "refused"]
    assert [entry.decision.kind for entry in entries(bench)].count("install") == 1
    assert problems(bench) == []


# --- reused evaluations


def test_traces_that_installed_the_incumbent_are_flagged_until_it_is_evaluated_anew(bench: Bench) -> None:
    bench.install()
    answer = bench.gate("desk_a")
    assert answer.verdict == "reject"
    assert answer.report["reused"] == sorted(bench.traces("desk_b"))
    assert any("are those that installed it" in line for line in answer.said)
    bench.set(("fresh: false", "fresh: true"))
    assert [one["met"] for one in bench.gate("desk_a").report["measured"]["conditions"]] == [False]
    bench.store("desk_b", anew())
    fresh = bench.gate("desk_a")
    assert fresh.report["reused"] == []
    assert len(fresh.report["incumbent"]["traces"]) == 16
    assert [one["met"] for one in fresh.report["measured"]["conditions"]] == [True]
    accepted_pair.rollback(bench.root, "previous", "as it was", CLOCK)
    assert bench.gate("desk_b").report["candidate"]["traces"] == fresh.report["incumbent"]["traces"]


def test_what_a_newer_importer_makes_of_traces_that_installed_the_incumbent_is_not_fresh(bench: Bench) -> None:
    bench.install()
    again = [bench.read_anew(trace) for trace in bench.traces("desk_b")[:9]]
    reused = bench.gate("desk_a").report["reused"]
    assert set(again) < set(reused)
    assert len(reused) == 16


def test_the_audit_of_a_trace_shows_the_gates_decisions_that_rest_on_it(bench: Bench) -> None:
    def shown(trace: str) -> list[tuple[str, str]]:
        found = audit.audit(bench.root, trace)
        assert isinstance(found, audit.TraceAudit)
        return [(one["kind"], one["entry"]) for one in found.decisions]

    old, new, other = (bench.traces(name)[0] for name in ("desk_a", "desk_b", "desk_c"))
    entry = str(bench.install().entry)
    # the incumbent's traces are named by the report alone
    assert shown(old) == shown(new) == [("install", entry)]
    assert shown(other) == []
    bench.store("desk_b", anew())
    told = next(one for one in bench.gate("desk_a").findings if one.code == "evaluation-set-aside")
    aside = str(told.hint).split()[2]
    assert shown(aside) == [("install", entry)]
    again = bench.read_anew(new)
    assert shown(again) == [("install", entry)]
    reject = str(bench.install("desk_a").entry)
    assert ("reject", reject) in shown(old)
    for report in (bench.root / "reports").glob("**/*.json"):
        report.unlink()
    assert (shown(old), shown(new)) == ([], [("install", entry)])


def anew() -> list[Any]:
    from .evaluated import runs

    return runs("desk_b", "m@1", ALL, said="Evaluated anew.", note="again")


def test_a_model_that_was_installed_is_judged_under_the_harness_that_is_accepted_then(bench: Bench) -> None:
    bench.install()
    answer = gating.gate_model(bench.root, "m@2")
    assert answer.report["incumbent"]["harness"] == bench.fingerprint("desk_b")
    assert answer.verdict == "reject"
    accepted_pair.rollback(bench.root, "previous", "as it was", CLOCK)
    assert gating.gate_model(bench.root, "m@2").verdict == "accept"
