"""What the gates say of evaluations in a store, and each refusal by its name; through the real commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import accepted_pair, decisions, equivalence, gating
from tracemark.acts.corpus import Corpus, open_store
from tracemark.cli.main import run as tracemark
from tracemark.errors import ExportRefusedError, LedgerChainError, UsageError
from tracemark.gates.report import digest_of
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Imported, Record, Refused
from tracemark.ledger.params_file import set_accepted
from tracemark.model.gate import GateReport
from tracemark.store.selection import Selection

from .conftest import CLOCK, write_version
from .evaluated import ALL, HALF, TASKS, Bench, run, runs


def answered(bench: Bench, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = tracemark(["--root", str(bench.root), "gate", *arguments, "--output", "json"])
    return code, json.loads(capsys.readouterr().out)


def refusals(bench: Bench, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the refusals of a command that is refused, by name."""
    code, said = answered(bench, capsys, *(arguments or ("harness", "--candidate", "desk_b")))
    assert (code, said["verdict"]) == (40, "refused")
    assert "measured" not in said["report"]
    return {refusal["reason"]: refusal for refusal in said["report"]["refusals"]}


# --- what is compared


def test_a_better_harness_is_accepted_and_the_report_holds_what_it_rests_on(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = answered(bench, capsys, "harness", "--candidate", "desk_b", "--out", "reports/gates/b.json")
    report = said["report"]
    assert (code, said["verdict"], report["policy"]) == (0, "accept", "significant")
    measured = report["measured"]
    assert (measured["w"], measured["l"], measured["n"], measured["attempts"]) == (5, 0, 8, 2)
    assert [one["task"] for one in measured["ups"]] == [f"shop/{task}" for task in TASKS[3:]]
    assert measured["p"] == 1 / 32
    assert report["changed"] == ["prompt_templates"]
    assert (report["incumbent"]["harness"], report["candidate"]["harness"]) == (
        bench.fingerprint(),
        bench.fingerprint("desk_b"),
    )
    assert len(report["incumbent"]["traces"]) == len(report["candidate"]["traces"]) == 16
    assert report["candidate"]["graders"] == ["shop 1"]
    assert report["terms"]["evaluation_digest"] == report["terms"]["frozen_digest"] == digest.of(sorted(TASKS))
    assert measured["incumbent"]["cost_per_success"]["value"] == pytest.approx(0.16 / 6)
    written = (bench.root / "reports" / "gates" / "b.json").read_bytes()
    stored = GateReport.model_validate(digest.load_canonical(written.rstrip(b"\n")))
    assert digest_of(stored) == said["digest"]


def test_the_same_evaluations_give_the_same_report(bench: Bench) -> None:
    assert bench.gate().digest == bench.gate().digest


def test_a_candidate_that_is_no_better_is_rejected_and_both_policies_are_told(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = answered(bench, capsys, "harness", "--candidate", "desk_c")
    assert (code, said["verdict"]) == (1, "reject")
    policies = said["report"]["measured"]["policies"]
    assert {name: one["accepts"] for name, one in policies.items()} == {"significant": False, "cotrace": True}
    bench.set(("policy: significant", "policy: cotrace"))
    assert answered(bench, capsys, "harness", "--candidate", "desk_c")[0] == 0


def test_a_model_is_judged_under_the_accepted_harness(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = answered(bench, capsys, "model", "--candidate", "m@2")
    report = said["report"]
    assert (code, report["half"], report["changed"]) == (0, "model", ["model revision"])
    assert report["incumbent"]["harness"] == report["candidate"]["harness"] == bench.fingerprint()
    assert [report[side]["model"]["revision"] for side in ("incumbent", "candidate")] == ["1", "2"]
    assert report["candidates"] == 4


def test_a_harness_can_be_judged_with_another_model_than_the_accepted_one(bench: Bench) -> None:
    answer = bench.gate("desk_b", "m@2")
    assert answer.verdict == "reject"
    assert (answer.report["measured"]["w"], answer.report["measured"]["ties"]) == (0, 8)
    assert "with m@2" in answer.said[0]


def test_every_pair_but_the_incumbent_that_was_evaluated_on_the_set_is_a_candidate(bench: Bench) -> None:
    # desk_b and desk_c with m@1, m@2 under desk_a and desk_b: whichever half is judged
    assert tried(bench) == (4, 4)
    # seen from another pair the first one is a candidate as well
    assert bench.gate("desk_b", "m@2").report["candidates"] == 4


def test_a_candidate_is_counted_also_when_its_evaluation_was_retracted(bench: Bench) -> None:
    for harness, model in (("desk_c", "m@1"), ("desk_a", "m@2")):
        for trace in bench.traces(harness, model):
            decisions.retract(bench.root, [trace], "it was no better", CLOCK)
    assert bench.gate().report["candidates"] == 4
    bench.evaluate("desk_a", "m@3", ALL)
    assert gating.gate_model(bench.root, "m@3").report["candidates"] == 5


def test_what_is_accepted_since_changes_no_count_but_by_the_incumbent(bench: Bench) -> None:
    bench.set(("policy: significant", "policy: cotrace"))
    assert bench.install("desk_c").decision == "install"
    bench.evaluate("desk_c", "m@3", ALL)
    bench.install_model("m@3")
    answer = bench.gate("desk_b", "m@3")
    # desk_a, desk_b and desk_c with m@1, m@2 under desk_a and desk_b
    assert answer.report["candidates"] == 5


def test_a_candidate_counts_as_often_as_it_was_evaluated(bench: Bench) -> None:
    gone: set[str] = set()
    for draw in range(2):
        for trace in set(bench.traces("desk_c")) - gone:
            decisions.retract(bench.root, [trace], "unlucky", CLOCK)
            gone.add(trace)
        again = [
            run(task, "desk_c", "m@1", at, "success", said=f"Draw {draw}, {at}.") for task in TASKS for at in (0, 1)
        ]
        bench.store("desk_c", again)
    answer = bench.gate("desk_c")
    assert (answer.verdict, answer.report["candidates"]) == ("accept", 6)
    assert (
        "6 candidates were evaluated on this set so far, each counted as often as it was; were each no better, one or "
        "more would pass in up to 26% of such series"
    ) in answer.said


def test_of_one_record_that_was_read_anew_an_attempt_counts_once(bench: Bench) -> None:
    for trace in bench.traces("desk_c"):
        bench.read_anew(trace)
    assert tried(bench) == (4, 4)


def test_a_declared_equivalent_is_no_candidate_of_its_own(bench: Bench) -> None:
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    assert tried(bench) == (3, 3)


def tried(bench: Bench) -> tuple[int, int]:
    """Return how many candidates a gate of either half says were tried on the set."""
    harnesses = bench.gate().report["candidates"]
    models: int = gating.gate_model(bench.root, "m@2").report["candidates"]
    return harnesses, models


def test_runs_of_which_nobody_knows_the_harness_or_the_model_are_of_no_candidate(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(bench) == (4, 4)
    nameless = run("e-0", "desk_a", "m", 5, "success", said="By whom?")
    del nameless["extra"]["tracemark"]["run"]["model"]
    bench.store("desk_a", [nameless])
    assert tried(bench) == (4, 4)
    read = AtifImporter.read

    def mixed(self: AtifImporter, record: Record) -> Iterator[Imported | Refused]:
        for item in read(self, record):
            yield item._replace(mixed=("step 3: another prompt",)) if isinstance(item, Imported) else item

    write_version(bench.root, "desk_d", extra="Be kind.")
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    monkeypatch.setattr(AtifImporter, "read", mixed)
    both = run("e-0", "desk_d", "m@1", 5, "success"), run("e-0", "desk_a", "m@7", 5, "success")
    both[0]["steps"][0]["message"] += " Be kind."
    bench.store("desk_d", both[:1])
    bench.store("desk_a", both[1:])
    assert tried(bench) == (4, 4)
    for trace in (*bench.traces("desk_d", "m@1"), *bench.traces("desk_a", "m@7")):
        decisions.retract(bench.root, [trace], "two harnesses made it", CLOCK)
    assert tried(bench) == (4, 4)


def test_a_candidate_whose_verdicts_are_disputed_was_tried(bench: Bench) -> None:
    for status in ("success", "failure"):
        bench.store("desk_a", [run("e-0", "desk_a", "m@7", 0, status, said="Under two verdicts.")])
    assert tried(bench) == (5, 5)


def test_what_was_retracted_is_counted_also_where_its_bytes_are_damaged(bench: Bench) -> None:
    plain = bench.traces("desk_a", "m@2")
    bench.evaluate("desk_a", "m@7", ALL)
    bench.evaluate("desk_a", "m@2", {"e-0": 1}, said="With other words.", sampling={"temperature": 2})
    for trace in {*bench.traces("desk_a", "m@7"), *bench.traces("desk_a", "m@2")}.difference(plain):
        decisions.retract(bench.root, [trace], "no better", CLOCK)
    assert tried(bench) == (6, 6)
    with open_store(bench.root) as store:
        chosen = Selection(traces=frozenset({bench.traces("desk_a", "m@7")[0]}))
        (state,) = store.select(chosen)
    path = bench.root / "traces" / state.file
    path.write_bytes(path.read_bytes()[:-30])
    assert tried(bench) == (6, 6)


def test_the_four_pairs_say_what_each_half_brings(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = answered(bench, capsys, "attribute", "--harness", "desk_b", "--model", "m@2")
    assert code == 0
    effects = said["report"]["effects"]
    assert {name: one["value"] for name, one in effects.items()} == {
        "harness": 5,
        "harness_under_new": 0,
        "model_under_old": 5,
        "model_under_new": 0,
        "interaction": -5,
    }
    assert said["report"]["scores"] == [3, 8, 8, 8]


def test_the_four_pairs_must_all_be_evaluated(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = answered(bench, capsys, "attribute", "--harness", "desk_c", "--model", "m@2")
    assert code == 40
    assert {one["reason"] for one in said["report"]["refusals"]} == {"nothing-to-compare"}
    assert "effects" not in said["report"]


def test_what_is_asked_for_beside_the_policy_can_reject(bench: Bench) -> None:
    bench.set(("policy: significant", "policy: cotrace"))
    bench.evaluate("desk_a", "m@3", {**ALL, "e-0": 1})
    assert gating.gate_model(bench.root, "m@3").verdict == "accept"
    bench.set(("keep: []", "keep: [e-0]"))
    answer = gating.gate_model(bench.root, "m@3")
    assert answer.verdict == "reject"
    assert [one["met"] for one in answer.report["measured"]["conditions"]] == [False]
    assert answer.exit_code == 1


@pytest.mark.parametrize(
    ("parameter", "facts", "met"),
    [
        ("pass_all_not_lower", {"successes": {**dict.fromkeys(TASKS, 1), "e-0": 0}}, False),
        ("pass_all_not_lower", {"successes": ALL}, True),
        ("cost_not_above", {"successes": ALL, "cost": 0.1}, False),
        ("cost_not_above", {"successes": ALL, "cost": 0.01}, True),
    ],
)
def test_further_conditions_are_those_of_the_parameters(
    bench: Bench, parameter: str, facts: dict[str, Any], met: bool
) -> None:
    bench.evaluate("desk_a", "m@3", **facts)
    assert gating.gate_model(bench.root, "m@3").report["measured"]["conditions"] == []
    bench.set((f"{parameter}: false", f"{parameter}: true"), ("policy: significant", "policy: cotrace"))
    answer = gating.gate_model(bench.root, "m@3")
    assert [one["met"] for one in answer.report["measured"]["conditions"]] == [met]
    assert answer.verdict == ("accept" if met else "reject")


def test_the_words_are_for_people_and_nothing_is_printed_raw(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store("desk_b", [run("e-0", "desk_b", "m@1", 7, "success", grader={"name": "a\x1b[31mb", "version": "2"})])
    assert tracemark(["--root", str(bench.root), "gate", "harness", "--candidate", "desk_b"]) == 40
    said = capsys.readouterr().out
    assert said.startswith("no decision on harness desk_b against desk_a with m@1: attempts-unequal, graders-differ")
    assert "\x1b" not in said


# --- refusals


def test_attempts_that_are_missing_are_listed_to_be_run(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.evaluate("desk_b", "m@3", {**ALL, "e-2": 1}, attempts=1)
    found = refusals(bench, capsys, "harness", "--candidate", "desk_b", "--model", "m@3")
    assert "nothing-to-compare" in found
    bench.evaluate("desk_a", "m@3", ALL)
    found = refusals(bench, capsys, "harness", "--candidate", "desk_b", "--model", "m@3")
    assert list(found) == ["attempts-missing"]
    rerun = found["attempts-missing"]["rerun"]
    assert [(one["side"], one["task"]) for one in rerun] == [("candidate", f"shop/{task}") for task in TASKS]
    assert tracemark(["--root", str(bench.root), "gate", "harness", "--candidate", "desk_b", "--model", "m@3"]) == 40
    assert "run: candidate, shop/e-0\n" in capsys.readouterr().out


def test_a_task_that_one_pair_lacks_is_named(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.evaluate("desk_a", "m@3", dict.fromkeys(TASKS[1:], 2))
    found = refusals(bench, capsys, "model", "--candidate", "m@3")
    assert found["tasks-differ"]["tasks"] == ["shop/e-0"]
    assert "attempts-missing" in found


def test_tasks_of_one_name_in_two_domains_are_two_tasks(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store("desk_b", runs("desk_b", "m@1", {"e-0": 2}, domain="bank", said="In the bank."))
    found = refusals(bench, capsys)
    assert found["tasks-differ"]["tasks"] == ["bank/e-0"]


def test_an_id_without_a_domain_does_not_let_another_domain_into_the_frozen_set(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for harness, solved in (("desk_a", 0), ("desk_b", 2)):
        bench.store(harness, runs(harness, "m@1", {"e-0": solved}, domain="bank", said="In the bank."))
    found = refusals(bench, capsys)
    assert list(found) == ["evaluation-changed"]
    assert found["evaluation-changed"]["tasks"] == ["bank/e-0", "shop/e-0"]
    bench.tasks(*(f"shop/{task}" for task in TASKS))
    bench.freeze()
    assert bench.gate().report["measured"]["n"] == 8


def test_two_tasks_that_one_id_cannot_tell_apart_are_not_taken_for_one(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for harness, status in (("desk_a", "failure"), ("desk_b", "success")):
        named = (("town/inn", "room"), ("town", "inn/room"))
        made = [run(task, harness, "m@1", at, status, domain=domain) for at, (domain, task) in enumerate(named)]
        bench.store(harness, made)
    bench.tasks("town/inn/room")
    bench.freeze()
    found = refusals(bench, capsys)
    assert list(found) == ["evaluation-changed"]
    assert found["evaluation-changed"]["tasks"] == ["town/inn/room"]
    assert "'town/inn/room' in the domains 'town' and 'town/inn'" in found["evaluation-changed"]["message"]
    code, said = answered(bench, capsys, "attribute", "--harness", "desk_b", "--model", "m@2")
    assert code == 40
    assert "evaluation-changed" in {one["reason"] for one in said["report"]["refusals"]}


def test_attempts_without_a_verdict_are_not_passed_over_where_others_fill_the_set(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = [run(task, "desk_a", "m@3", number, "unknown") for task in TASKS for number in (2, 3)]
    bench.store("desk_a", [*runs("desk_a", "m@3", ALL), *beside])
    found = refusals(bench, capsys, "model", "--candidate", "m@3")
    assert list(found) == ["attempts-unequal"]


def test_more_attempts_than_asked_for_are_not_chosen_from(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store("desk_b", [run("e-0", "desk_b", "m@1", 2, "failure")])
    assert refusals(bench, capsys)["attempts-unequal"]["tasks"] == ["shop/e-0"]


def test_one_attempt_made_twice_is_named(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    made = [one for one in runs("desk_a", "m@3", ALL) if one["extra"]["tracemark"]["run"]["attempt"] == 0]
    again = [run(task, "desk_a", "m@3", 0, "success", said="Once more.") for task in TASKS]
    bench.store("desk_a", [*made, *again])
    found = refusals(bench, capsys, "model", "--candidate", "m@3")
    assert found["attempts-duplicate"]["tasks"] == [f"shop/{task}" for task in TASKS]


def test_what_the_infrastructure_ended_is_listed_to_be_run_again(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [run("e-0", "desk_a", "m@3", 1, "error")]
    bench.store("desk_a", [*runs("desk_a", "m@3", ALL)[2:], run("e-0", "desk_a", "m@3", 0, "success"), *broken])
    (rerun,) = refusals(bench, capsys, "model", "--candidate", "m@3")["infrastructure-errors"]["rerun"]
    assert (rerun["side"], rerun["task"], rerun["attempt"]) == ("candidate", "shop/e-0", 1)
    bench.set(("infrastructure_errors: 0", "infrastructure_errors: 0.1"), ("policy: significant", "policy: cotrace"))
    answer = gating.gate_model(bench.root, "m@3")
    assert answer.verdict == "accept"
    assert answer.report["measured"]["candidate"]["open_errors"] == 1


def test_traces_whose_content_contradicts_their_harness_are_not_of_the_pair(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = [run("e-0", "desk_a", "m@1", 5, "success", said="Under whose prompt?")]
    bench.store("desk_b", strange)
    found = refusals(bench, capsys)
    assert found["not-the-pair"]["tasks"] == ["shop/e-0"]
    assert "1 under no harness" in found["not-the-pair"]["message"]


def test_attempts_of_several_revisions_are_no_pair(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    found = refusals(bench, capsys, "harness", "--candidate", "desk_b", "--model", "m")
    assert "model revision differs in 16" in found["not-the-pair"]["message"]


def test_a_model_without_a_revision_is_compared_with_each_that_came_of_it(bench: Bench) -> None:
    bench.evaluate("desk_a", "q", HALF)
    accepted_pair.accept_model(bench.root, "q", "the base", CLOCK)
    bench.evaluate("desk_a", "q@ft1", {**HALF, "e-0": 1})
    first = gating.gate_model(bench.root, "q@ft1")
    assert (first.verdict, len(first.report["incumbent"]["traces"]), first.findings) == ("reject", 16, ())
    bench.evaluate("desk_a", "q@ft2", ALL)
    second = gating.gate_model(bench.root, "q@ft2")
    assert (second.verdict, second.report["incumbent"]["traces"]) == ("accept", first.report["incumbent"]["traces"])
    assert set(second.report["candidate"]["traces"]) == set(bench.traces("desk_a", "q@ft2"))
    # what is neither side's is told, and was a candidate
    (told,) = second.findings
    assert told.code == "evaluation-set-aside"
    assert "of another revision" in told.message
    assert second.report["candidates"] == first.report["candidates"] + 1
    assert gating.gate_model(bench.root, "q@ft3").report["refusals"][0]["reason"] == "nothing-to-compare"
    # and the other way round, without the candidate being warned of for the traces of the incumbent
    accepted_pair.accept_model(bench.root, "q@ft2", "better", CLOCK)
    back = gating.gate_model(bench.root, "q")
    assert (back.verdict, back.report["candidate"]["traces"]) == ("reject", first.report["incumbent"]["traces"])
    assert set(back.report["incumbent"]["traces"]) == set(bench.traces("desk_a", "q@ft2"))
    assert [one.code for one in back.findings] == ["evaluation-set-aside"]


def test_what_became_of_a_model_without_a_revision_stops_no_gate_of_it(bench: Bench) -> None:
    for harness in ("desk_a", "desk_b"):
        bench.evaluate(harness, "q", HALF if harness == "desk_a" else ALL)
    accepted_pair.accept_model(bench.root, "q", "the base", CLOCK)
    before = bench.gate()
    assert (before.verdict, before.findings) == ("accept", ())
    bench.evaluate("desk_a", "q@ft1", {**HALF, "e-0": 1})
    after = bench.gate()
    assert (after.verdict, after.report["incumbent"]) == ("accept", before.report["incumbent"])
    assert after.report["candidates"] == before.report["candidates"] + 1
    assert [(one.code, "of another revision" in one.message) for one in after.findings] == [
        ("evaluation-set-aside", True)
    ]
    # nor of another model
    bench.evaluate("desk_a", "p", ALL)
    assert gating.gate_model(bench.root, "p").verdict == "accept"
    bench.evaluate("desk_b", "p", ALL)
    assert gating.gate_attribute(bench.root, "desk_b", "p").report["refusals"] == []


def test_a_name_alone_means_the_revision_that_the_other_side_does_not_claim(bench: Bench) -> None:
    accepted_pair.accept_model(bench.root, "m", "the base", CLOCK)
    found = gating.gate_model(bench.root, "m@2")
    assert (found.verdict, found.report["incumbent"]["model"]["revision"]) == ("accept", "1")
    assert [one.code for one in found.findings] == []
    attributed = gating.gate_attribute(bench.root, "desk_b", "m@2")
    assert attributed.report["refusals"] == []
    assert [one["model"]["revision"] for one in attributed.report["cells"]] == ["1", "1", "2", "2"]


@pytest.mark.parametrize(
    ("facts", "member"),
    [
        ({"sampling": {"temperature": 1}}, "sampling"),
        ({"called": {"chat_template": "other"}}, "chat template"),
        ({"called": {"tokenizer": "other"}}, "tokenizer"),
        ({"called": {"server": "vllm"}}, "server parser"),
    ],
)
def test_two_things_changed_at_once_are_named(
    bench: Bench, capsys: pytest.CaptureFixture[str], facts: dict[str, Any], member: str
) -> None:
    made = [
        run(task, "desk_c", "m@1", number, "success", said=f"Under other facts, {number}.", **facts)
        for task in TASKS
        for number in range(2)
    ]
    for trace in bench.traces("desk_c"):
        decisions.retract(bench.root, [trace], "made anew", CLOCK)
    bench.store("desk_c", made)
    found = refusals(bench, capsys, "harness", "--candidate", "desk_c")
    assert list(found) == ["confounded"]
    assert member in found["confounded"]["message"]


def test_graders_of_two_versions_are_named(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store("desk_a", runs("desk_a", "m@3", ALL, grader={"name": "shop", "version": "2"}))
    found = refusals(bench, capsys, "model", "--candidate", "m@3")
    assert list(found) == ["graders-differ"]
    assert "'shop' 1, 'shop' 2" in found["graders-differ"]["message"]


def by_reward(model: str, reward: float) -> list[dict[str, Any]]:
    """Return an evaluation as chat logs, of whose rewards a threshold makes the verdicts."""
    return [
        {
            "messages": [
                {"role": "user", "content": f"See to {task}."},
                {"role": "assistant", "content": f"{n}, {model}."},
            ],
            "task": task,
            "domain": "shop",
            "attempt": n,
            "model": model,
            "reward": reward,
        }
        for task in TASKS
        for n in range(2)
    ]


def test_verdicts_that_two_thresholds_made_of_rewards_are_not_compared(bench: Bench) -> None:
    bench.store("desk_a", by_reward("q", 0.5))
    bench.set(("success_reward: 1.0", "success_reward: 0.5"))
    bench.store("desk_a", by_reward("p", 0.5))
    accepted_pair.accept_model(bench.root, "q", "the base", CLOCK)
    found = next(one for one in gating.gate_model(bench.root, "p").report["refusals"] if "reward" in one["message"])
    assert found["reason"] == "graders-differ"
    assert found["message"].startswith("a reward of 0.5 was taken for a success and one of 0.5 for a failure")
    assert (len(found["traces"]), len(found["tasks"])) == (32, 8)
    decisions.retract(bench.root, found["traces"], "judged by two thresholds", CLOCK)
    again = [
        run(task, "desk_a", name, n, "success", said="Again.") for task in TASKS for n in range(2) for name in "pq"
    ]
    bench.store("desk_a", again)
    assert not any("reward" in one["message"] for one in gating.gate_model(bench.root, "p").report["refusals"])


def test_rewards_on_either_side_of_a_threshold_are_compared(bench: Bench) -> None:
    bench.store("desk_a", by_reward("q", 0.5))
    bench.store("desk_a", by_reward("p", 1.0))
    accepted_pair.accept_model(bench.root, "q", "the base", CLOCK)
    assert gating.gate_model(bench.root, "p").report["refusals"] == []


def test_a_set_that_was_changed_since_is_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.tasks(*TASKS[1:])
    message = "the set of 7 tasks is not the one of 8 tasks that was frozen last; 1 taken out: 'e-0'"
    assert refusals(bench, capsys)["evaluation-changed"]["message"] == message
    bench.freeze()
    assert bench.gate().report["measured"]["n"] == 7


@pytest.mark.parametrize("attempts", [1, 3])
def test_other_attempts_than_the_set_was_frozen_with_are_refused(
    bench: Bench, attempts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.tasks(*TASKS, attempts=attempts)
    assert "frozen with 2" in refusals(bench, capsys)["evaluation-changed"]["message"]


def test_a_set_that_was_never_frozen_is_refused_with_the_command(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.root / "ledger.jsonl").write_text("")
    bench.accept()
    accepted_pair.accept_model(bench.root, "m@1", "the first", CLOCK)
    found = refusals(bench, capsys)
    assert found["evaluation-changed"]["hint"] == "tracemark gate freeze --reason TEXT"


def test_sets_that_two_branches_froze_are_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.enter_beside("freeze", *({"tasks": "f" * 64, "count": count, "attempts": 2} for count in (3, 4)))
    assert "side by side" in refusals(bench, capsys)["evaluation-changed"]["message"]
    assert not any("not frozen" in line for line in bench.gate().said)


def test_an_empty_set_is_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.tasks()
    code, answer = answered(bench, capsys, "harness", "--candidate", "desk_b")
    assert code == 40
    found = [refusal for refusal in answer["report"]["refusals"] if refusal["reason"] == "nothing-to-compare"]
    assert any("lists no evaluation task" in refusal["message"] for refusal in found)
    # there is none to run, and its digest is that of nothing
    assert not any(refusal["hint"].startswith("run") for refusal in found)
    (changed,) = (one for one in answer["report"]["refusals"] if one["reason"] == "evaluation-changed")
    assert changed["message"].startswith("the set of 0 tasks is not the one of 8 tasks that was frozen last")
    assert "freeze the set anew" not in changed["hint"]


def test_the_first_line_calls_the_accepted_model_as_it_was_accepted(bench: Bench) -> None:
    for revision in "ab":
        bench.evaluate("desk_a", f"q@{revision}", ALL)
    accepted_pair.accept_model(bench.root, "q", "of any revision", CLOCK)
    said = gating.gate_harness(bench.root, "desk_b").said[0]
    assert "desk_a with q:" in said
    assert "q@" not in said.partition(":")[0]


def test_the_accepted_half_is_no_candidate(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert "one harness" in refusals(bench, capsys, "harness", "--candidate", "desk_a")["nothing-to-compare"]["message"]
    assert "one model" in refusals(bench, capsys, "model", "--candidate", "m@1")["nothing-to-compare"]["message"]


def test_a_harness_that_was_declared_equivalent_is_no_candidate(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    assert "one harness" in refusals(bench, capsys, "harness", "--candidate", "desk_c")["nothing-to-compare"]["message"]


def test_two_evaluated_harnesses_that_were_declared_equivalent_stop_no_gate(bench: Bench) -> None:
    before = bench.gate(), gating.gate_model(bench.root, "m@2")
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    after = bench.gate(), gating.gate_model(bench.root, "m@2")
    assert [one.verdict for one in after] == [one.verdict for one in before] == ["accept", "accept"]
    assert [one.report["incumbent"] for one in after] == [one.report["incumbent"] for one in before]


def test_an_equivalent_brings_nothing_that_could_be_attributed(bench: Bench) -> None:
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    found = gating.gate_attribute(bench.root, "desk_c", "m@2").report["refusals"]
    assert "nothing-to-compare" in {one["reason"] for one in found}
    (told,) = (one for one in found if "one harness" in one["message"] and "incumbent" in one["message"])
    # nothing here is a candidate
    assert told["hint"] == "name another harness"


def test_a_candidate_without_evaluation_is_told_what_to_run(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    found = refusals(bench, capsys, "model", "--candidate", "nobody@7")
    assert "nobody@7" in found["nothing-to-compare"]["message"]
    assert "run the evaluation set" in found["nothing-to-compare"]["hint"]


def test_of_what_was_never_run_only_what_is_claimed_differs(bench: Bench) -> None:
    sampled = runs("desk_a", "m@3", ALL)
    for one in sampled:
        one["extra"]["tracemark"]["run"]["sampling"] = {"temperature": 0.5}
    bench.store("desk_a", sampled)
    accepted_pair.accept_model(bench.root, "m@3", "sampled", CLOCK)
    assert gating.gate_model(bench.root, "m@4").report["changed"] == ["model revision"]
    assert gating.gate_model(bench.root, "m@2").report["changed"] == ["model revision", "sampling"]
    assert gating.gate_harness(bench.root, "desk_b").report["changed"] == ["prompt_templates"]


def test_who_used_up_a_budget_failed_and_is_not_run_again(bench: Bench) -> None:
    made = runs("desk_a", "m@3", ALL)
    for one, termination in zip(made, ("max_steps", "context_length_exceeded", "rate limit exceeded"), strict=False):
        one["extra"]["tracemark"]["outcome"] = {"status": "error", "termination": termination}
    bench.store("desk_a", made)
    answer = gating.gate_model(bench.root, "m@3")
    (refused,) = answer.report["refusals"]
    assert (refused["reason"], refused["message"].partition(" of 16")[0]) == (
        "infrastructure-errors",
        "the infrastructure ended 1 attempt",
    )
    (told,) = (one for one in answer.findings if one.code == "evaluation-exhausted")
    assert told.message.startswith("attempts that ended at a budget of their own")
    bench.store("desk_a", [run("e-1", "desk_a", "m@3", 0, "success", said="Again.")])
    judged = gating.gate_model(bench.root, "m@3").report
    assert judged["candidate"]["graders"] == ["shop 1"]
    assert judged["candidate"]["statuses"] == {"error": 1, "failure": 2, "success": 14}
    assert (judged["measured"]["n"], judged["measured"]["attempts"]) == (8, 2)


def test_who_used_up_a_budget_was_tried_whatever_became_of_the_run(bench: Bench) -> None:
    made = runs("desk_a", "m@3", ALL)
    for one in made[:4]:
        one["extra"]["tracemark"]["outcome"] = {"status": "error", "termination": "max_steps (500)"}
    bench.store("desk_a", made)
    first = gating.gate_model(bench.root, "m@3").report
    assert first["candidate"]["statuses"] == {"failure": 4, "success": 12}
    with open_store(bench.root) as store:
        errors = [one.trace_id for one in store.select(Selection(statuses=frozenset({"error"})))]
    decisions.retract(bench.root, errors, "not liked", CLOCK)
    bench.store("desk_a", [run(f"e-{n // 2}", "desk_a", "m@3", n % 2, "success", said=f"Again {n}.") for n in range(4)])
    again = gating.gate_model(bench.root, "m@3")
    assert again.report["candidates"] == first["candidates"] + 1
    (told,) = (one for one in again.findings if one.code == "evaluation-replaced")
    assert "4 attempts (4 failures)" in told.message


def test_a_harness_that_was_never_run_makes_no_other_model_of_the_accepted_one(bench: Bench) -> None:
    bench.evaluate("desk_a", "q", HALF)
    accepted_pair.accept_model(bench.root, "q", "the base", CLOCK)
    bench.evaluate("desk_a", "q@ft1", ALL)
    report = gating.gate_harness(bench.root, "desk_b").report
    assert [one["reason"] for one in report["refusals"]] == ["nothing-to-compare"]
    assert len(report["incumbent"]["traces"]) == 16


# --- numbers at the edge


def test_without_a_success_the_cost_is_not_defined(bench: Bench) -> None:
    bench.evaluate("desk_a", "m@3", dict.fromkeys(TASKS, 0))
    answer = gating.gate_model(bench.root, "m@3")
    assert answer.verdict == "reject"
    cost = answer.report["measured"]["candidate"]["cost_per_success"]
    assert cost["value"] is None
    assert cost["withheld"]


def test_a_cost_that_one_run_does_not_know_is_withheld(bench: Bench) -> None:
    made = runs("desk_a", "m@3", ALL)
    del made[0]["final_metrics"]["total_cost_usd"]
    bench.store("desk_a", made)
    cost = gating.gate_model(bench.root, "m@3").report["measured"]["candidate"]["cost"]
    assert cost["value"] is None


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("1" + "0" * 400, "is unknown"),
        ("NaN", "is unknown"),
        ("1e999", "is unknown"),
        ("true", "is unknown"),
        ("-0.5", "is no number of 0 or more"),
    ],
)
def test_a_cost_that_is_no_number_of_dollars_is_withheld_and_meets_no_condition(
    bench: Bench, written: str, why: str
) -> None:
    first, *others = (json.dumps(one) for one in runs("desk_a", "m@3", ALL))
    assert '"total_cost_usd": 0.01' in first
    first = first.replace('"total_cost_usd": 0.01', f'"total_cost_usd": {written}')
    bench.store_text("desk_a", "\n".join([first, *others]))
    bench.set(("cost_not_above: false", "cost_not_above: true"))
    answer = gating.gate_model(bench.root, "m@3")
    figures = answer.report["measured"]["candidate"]
    for name in ("cost", "cost_per_success", "cost_per_reliable_task"):
        assert figures[name] == {"value": None, "withheld": f"the cost of 1 of 16 attempts {why}"}
    (condition,) = answer.report["measured"]["conditions"]
    assert (condition["met"], answer.verdict) == (False, "reject")


@pytest.mark.parametrize("attempt", [10**30, "01", "a\nb/../c", -1])
def test_any_number_or_text_tells_an_attempt_from_the_others(bench: Bench, attempt: int | str) -> None:
    made = [run(task, "desk_a", "m@3", at, "success") for task in TASKS for at in (0, attempt)]
    bench.store("desk_a", made)
    answer = gating.gate_model(bench.root, "m@3")
    assert (answer.verdict, answer.report["measured"]["attempts"]) == ("accept", 2)


def test_a_set_of_one_task_is_judged_and_cannot_be_significant(bench: Bench) -> None:
    bench.tasks("e-7")
    bench.freeze()
    answer = bench.gate()
    assert (answer.report["measured"]["n"], answer.report["measured"]["p"]) == (1, 0.5)
    assert answer.verdict == "reject"


# --- the ledger and params.yaml


def test_an_edited_ledger_line_stops_a_gate(bench: Bench) -> None:
    path = bench.root / "ledger.jsonl"
    path.write_text(path.read_text().replace("the first", "the best"))
    with pytest.raises(LedgerChainError):
        bench.gate()


def test_a_half_that_was_set_by_hand_stops_a_gate(bench: Bench) -> None:
    set_accepted(bench.root / "params.yaml", bench.fingerprint("desk_b"))
    with pytest.raises(ExportRefusedError, match="the ledger accepted"):
        bench.gate("desk_c")
    set_accepted(bench.root / "params.yaml", bench.fingerprint())
    set_accepted(bench.root / "params.yaml", "m@2", "model")
    with pytest.raises(ExportRefusedError, match=r"accepted\.model is 'm@2'"):
        gating.gate_model(bench.root, "m@2")


def test_without_an_accepted_half_there_is_nothing_to_compare_with(bench: Bench) -> None:
    (bench.root / "ledger.jsonl").write_text("")
    set_accepted(bench.root / "params.yaml", None)
    set_accepted(bench.root / "params.yaml", None, "model")
    with pytest.raises(ExportRefusedError, match="no harness is accepted"):
        bench.gate()
    bench.accept()
    with pytest.raises(UsageError, match="no model is accepted"):
        bench.gate()
    with pytest.raises(ExportRefusedError, match="no model is accepted"):
        gating.gate_model(bench.root, "m@2")
    bench.freeze()
    assert bench.gate(model="m@1").verdict == "accept"
    assert Corpus(bench.root).decisions.model is None


def test_a_report_is_not_written_where_it_would_be_read_back(bench: Bench) -> None:
    with pytest.raises(UsageError):
        bench.gate(out=bench.root / "inbox" / "report.json")


@pytest.mark.parametrize("name", ["ledger.jsonl", "params.yaml", "reports"])
def test_a_report_overwrites_nothing_but_a_report(bench: Bench, name: str) -> None:
    (bench.root / "reports").mkdir(exist_ok=True)
    path = bench.root / name
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(UsageError, match=r"no report of a gate|cannot take the place of"):
        bench.gate(out=path)
    assert before is None or path.read_bytes() == before


def test_a_report_replaces_an_earlier_one_and_an_empty_file(bench: Bench) -> None:
    out = bench.root / "reports" / "b.json"
    out.parent.mkdir()
    out.write_text("")
    first = bench.gate(out=out).digest
    bench.gate("desk_c", out=out)
    assert bench.gate(out=out).digest == first
    gating.gate_attribute(bench.root, "desk_b", "m@2", out)
    assert bench.gate(out=out).digest == first


def test_names_that_are_no_text_are_shown_and_stop_nothing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store("desk_a", runs("desk_a", "m\ud800@3", ALL, grader={"name": "g\ud801", "version": "1"}))
    assert "graders-differ" in refusals(bench, capsys, "model", "--candidate", "m\\ud800@3")
