"""Which stored traces are evaluations, of which pair, and what is left out of them by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tracemark.acts import attempts, decisions, equivalence, gating
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation import AskedModel, Evaluations, claimed, named_model
from tracemark.acts.gating import GateAnswer
from tracemark.errors import IntegrityError
from tracemark.findings import Severity
from tracemark.gates.cell import Attempt, Cell, Model
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Imported, Record, Refused
from tracemark.store.selection import Selection

from .conftest import CLOCK, write_version
from .evaluated import ALL, TASKS, Bench, run, runs


def cell(bench: Bench, harness: str = "desk_b", model: str = "m@1") -> tuple[Cell, dict[str, str]]:
    with open_store(bench.root) as store, store.unchanging():
        found = Evaluations(Corpus(bench.root), store)
        made = found.cell(bench.fingerprint(harness), AskedModel(model))
    return made, {one.message.partition(":")[0].rpartition(" are ")[2]: one.code for one in found.findings}


def test_a_cell_holds_every_evaluation_trace_of_its_pair_and_no_other(bench: Bench) -> None:
    made, left = cell(bench)
    assert {one.trace for one in made.attempts} == set(bench.traces("desk_b"))
    assert {one.task for one in made.attempts} == {f"shop/{task}" for task in TASKS}
    assert {one.model for one in made.attempts} == {Model("m", "1")}
    assert {one.cost for one in made.attempts} == {0.01}
    assert {one.grader for one in made.attempts} == {("shop", "1")}
    assert {one.evidence for one in made.attempts} == {"claimed"}
    assert set(made.components) == {"prompt_templates", "tool_bindings", "observation_handlers", "runtime"}
    assert left == {}


def test_retracted_traces_do_not_count_and_are_named(bench: Bench) -> None:
    trace = bench.traces("desk_b")[0]
    decisions.retract(bench.root, [trace], "a wrong grader", CLOCK)
    made, left = cell(bench)
    assert (len(made.attempts), left) == (15, {"retracted": "evaluation-set-aside"})


def test_attempts_that_were_retracted_one_by_one_and_made_again_are_told_with_how_they_ended(bench: Bench) -> None:
    with open_store(bench.root) as store:
        chosen = Selection(traces=frozenset(bench.traces("desk_c")), statuses=frozenset({"failure"}))
        bad = [(one.trace_id, str(one.row.task), one.row.attempt) for one in store.select(chosen)]
    for trace, *_ in bad:
        decisions.retract(bench.root, [trace], "flaky", CLOCK)
    told = {"traces": sorted(trace for trace, *_ in bad), "statuses": {"failure": len(bad)}}
    lacks = bench.gate("desk_c")
    assert lacks.report["candidate"]["retracted"] == {**told, "replaced": 0}
    assert f"{len(bad)} attempts of the candidate were retracted ({len(bad)} failures)" in lacks.said
    assert "evaluation-replaced" not in {one.code for one in lacks.findings}
    bench.store("desk_c", [run(task, "desk_c", "m@1", at, "success", said=f"Again, {at}.") for _, task, at in bad])
    answer = bench.install("desk_c")
    assert answer.decision == "install"
    assert answer.report["candidate"]["retracted"] == {**told, "replaced": len(bad)}
    assert "retracted" not in answer.report["incumbent"]
    said = f"{len(bad)} attempts of the candidate were retracted ({len(bad)} failures) and others stand in their place"
    assert said in answer.said
    (found,) = [one for one in answer.findings if one.code == "evaluation-replaced"]
    assert (found.severity, found.where) == (Severity.WARNING, "desk_c with m@1")
    assert f"stand: {len(bad)} attempts ({len(bad)} failures), " in found.message
    four = gating.gate_attribute(bench.root, "desk_c", "m@2")
    assert four.report["cells"][1]["retracted"]["statuses"] == {"failure": len(bad)}
    assert any("attempts with the new harness were retracted" in line for line in four.said)


def test_superseded_traces_do_not_count_and_what_stands_for_them_does(bench: Bench) -> None:
    old = bench.traces("desk_b")[0]
    new = bench.read_anew(old)
    made, left = cell(bench)
    assert left == {"superseded": "evaluation-set-aside"}
    assert new in {one.trace for one in made.attempts}
    assert old not in {one.trace for one in made.attempts}


def test_contested_traces_do_not_count_and_are_named(bench: Bench) -> None:
    said = "Under two verdicts."
    bench.store("desk_b", [run("e-0", "desk_b", "m@1", 5, "success", said=said)])
    bench.store("desk_b", [run("e-0", "desk_b", "m@1", 5, "failure", said=said)])
    made, left = cell(bench)
    assert (len(made.attempts), left) == (16, {"contested": "evaluation-left-out"})


def test_runs_that_are_no_whole_run_of_the_agent_do_not_count(bench: Bench) -> None:
    for number, facts in enumerate([{"role": "continuation"}, {"demonstration": True}]):
        bench.store("desk_b", [run("e-0", "desk_b", "m@1", 5 + number, "success", **facts)])
        made, left = cell(bench)
        assert (len(made.attempts), left) == (16, {"no whole run": "evaluation-left-out"})
    assert not {one.attempt for one in made.attempts} & {5, 6}


def test_mixed_runs_do_not_count_and_are_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    read = AtifImporter.read

    def changed(self: AtifImporter, record: Record) -> Iterator[Imported | Refused]:
        for item in read(self, record):
            yield item._replace(mixed=("step 3: another system prompt",)) if isinstance(item, Imported) else item

    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    monkeypatch.setattr(AtifImporter, "read", changed)
    bench.store("desk_b", [run("e-0", "desk_b", "m@1", 5, "success")])
    made, left = cell(bench)
    assert (len(made.attempts), left) == (16, {"mixed": "evaluation-left-out"})


def test_runs_of_other_tasks_are_no_evaluation(bench: Bench) -> None:
    bench.store("desk_b", [run("t-9", "desk_b", "m@1", 0, "success"), run("", "desk_b", "m@1", 0, "success")])
    assert len(cell(bench)[0].attempts) == 16


def test_what_is_stated_later_counts(bench: Bench) -> None:
    said = "The model came later."
    plain = run("e-0", "desk_b", "q@1", 0, "success", said=said, grader=None)
    del plain["extra"]["tracemark"]["run"]["model"]["revision"]
    bench.store("desk_b", [plain])
    assert cell(bench, model="q@1")[0].attempts == ()
    bench.store("desk_b", [run("e-0", "desk_b", "q@1", 0, "success", said=said, called={"server": "vllm"})])
    (attempt,) = cell(bench, model="q@1")[0].attempts
    assert attempt.model == Model("q", "1", server="vllm")
    assert attempt.grader == ("shop", "1")


def test_traces_of_a_declared_equivalent_count_under_the_harness(bench: Bench) -> None:
    bench.evaluate("desk_c", "m@3", ALL)
    assert cell(bench, "desk_a", "m@3")[0].attempts == ()
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    made, left = cell(bench, "desk_a", "m@3")
    assert ({one.trace for one in made.attempts}, left) == (set(bench.traces("desk_c", "m@3")), {})
    assert {one.fingerprint for one in made.attempts} == {bench.fingerprint()}


def test_where_a_harness_has_runs_of_its_own_those_of_equivalents_are_set_aside(bench: Bench) -> None:
    equivalence.equivalent(bench.root, "desk_a", "desk_c", "a comment", CLOCK)
    for harness, other in (("desk_a", "desk_c"), ("desk_c", "desk_a")):
        made, left = cell(bench, harness)
        assert {one.trace for one in made.attempts} == set(bench.traces(harness))
        assert left == {"of a declared equivalent, and the harness has runs of its own": "evaluation-set-aside"}
        assert set(bench.traces(other)).isdisjoint(one.trace for one in made.attempts)


def test_fresh_runs_of_an_equivalent_count_beside_the_own_that_installed_the_harness(bench: Bench) -> None:
    bench.install("desk_b")
    write_version(bench.root, "desk_d", extra="Be brief.", handler="  # the same")
    bench.evaluate("desk_d", "m@1", ALL)
    equivalence.equivalent(bench.root, "desk_b", "desk_d", "a comment", CLOCK)
    made, left = cell(bench, "desk_b")
    assert {one.trace for one in made.attempts} == set(bench.traces("desk_d"))
    assert left == {"those that installed the pair, and it has other runs of the set's tasks": "evaluation-set-aside"}


def test_runs_of_the_harness_that_may_be_of_the_model_are_named(bench: Bench) -> None:
    nameless = run("e-0", "desk_b", "m", 5, "failure", said="By whom?")
    del nameless["extra"]["tracemark"]["run"]["model"]
    bench.store("desk_b", [nameless, run("e-0", "desk_b", "m", 6, "failure"), run("e-0", "desk_b", "q", 7, "failure")])
    made, left = cell(bench)
    assert (len(made.attempts), left) == (16, {"of no named model or revision": "evaluation-left-out"})
    with open_store(bench.root) as store, store.unchanging():
        found = Evaluations(Corpus(bench.root), store)
        found.cell(bench.fingerprint("desk_b"), AskedModel("m@1"))
    (told,) = found.findings
    assert "or revision: 2 (" in told.message


def test_a_stored_line_that_is_no_trajectory_is_refused_by_name(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trajectory: Mapping[str, Any]) -> float:
        return float(trajectory["agent"]["name"])

    monkeypatch.setattr(attempts, "cost_of", broken)
    with pytest.raises(IntegrityError, match="a line is not a trace: ValueError") as caught:
        cell(bench)
    assert caught.value.where in bench.traces("desk_b")


def test_a_task_without_a_name_is_no_task_of_the_set(bench: Bench) -> None:
    with open_store(bench.root) as store, store.unchanging():
        found = Evaluations(Corpus(bench.root), store)
        (first, *_) = store.select(Selection())
        nameless = replace(first, row=first.row._replace(task=""))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "select", lambda *_: iter([nameless]))
            assert found.states == ()


def test_what_a_label_claims_rests_on_most_attempts_and_not_on_the_first() -> None:
    whole, parted = Model("m@1", "2"), Model("m", "1")
    made = [Attempt(str(number), "t", number, "success", model=parted) for number in range(3)]
    for number in range(4):
        mixed = [*made[:number], Attempt("9", "t", 9, "success", model=whole), *made[number:]]
        assert claimed("m@1", mixed) == parted
    assert claimed("m@1", [Attempt("9", "t", 9, "success", model=whole)]) == Model("m@1")


def test_a_trace_of_which_nobody_says_the_attempt_is_still_an_attempt(bench: Bench) -> None:
    bench.store("desk_b", [run("e-0", "desk_b", "q", None, "success")])
    (attempt,) = cell(bench, model="q")[0].attempts
    assert (attempt.attempt, attempt.model) == (None, Model("q"))


def test_an_empty_text_says_nothing_of_attempt_and_grader(bench: Bench) -> None:
    graders = ({"name": "", "version": "1"}, {"name": "shop", "version": ""})
    bench.store("desk_b", [run("e-0", "desk_b", "q", "", "success", said=f"By {one}.", grader=one) for one in graders])
    found = cell(bench, model="q")[0].attempts
    assert {(one.attempt, one.grader) for one in found} == {(None, None), (None, ("shop", None))}


def test_a_cell_of_nothing_claims_what_the_label_says(bench: Bench) -> None:
    made, _ = cell(bench, model="who@7")
    assert made.pair.model == named_model("who@7") == Model("who", "7")
    assert [named_model(one) for one in ("who", "who@", "@7")] == [Model("who"), Model("who@"), Model("@7")]


def test_attempts_with_a_seed_of_their_own_are_of_one_model(bench: Bench) -> None:
    status = ("failure", "success")
    made = [
        run(task, "desk_a", "m@9", number, status[number], sampling={"temperature": 1, "seed": number})
        for task in TASKS
        for number in range(2)
    ]
    bench.store("desk_a", made)
    found, _ = cell(bench, "desk_a", "m@9")
    assert found.models == (Model("m", "9", sampling='{"temperature":1}'),)


def evaluated_as(bench: Bench, model: str, said: str | None, steps: slice) -> GateAnswer:
    """Judge a model whose runs name another one in some of their three steps of the agent."""
    made = runs("desk_a", model, ALL)
    for one in made:
        for step in [step for step in one["steps"] if step["source"] == "agent"][steps] if said else ():
            step["model_name"] = said
    bench.store("desk_a", made)
    return gating.gate_model(bench.root, model)


@pytest.mark.parametrize("said", ["openai/M", "m-2026-01-31", "m@3", None])
def test_a_model_that_the_steps_name_as_it_is_recorded_is_no_finding(bench: Bench, said: str | None) -> None:
    answer = evaluated_as(bench, "m@3", said, slice(None))
    assert "evaluation-model-unlike" not in {one.code for one in answer.findings}
    assert not {"other_models"} & (answer.report["incumbent"].keys() | answer.report["candidate"].keys())
    assert not any("another model" in line for line in answer.said)


@pytest.mark.parametrize(("steps", "count"), [(slice(None), 48), (slice(1), 16), (slice(2, None), 16)])
def test_steps_of_another_model_are_told_with_their_number_and_stand_in_the_report(
    bench: Bench, steps: slice, count: int
) -> None:
    answer = evaluated_as(bench, "m@3", "other", steps)
    messages = [one.message for one in answer.findings if one.code == "evaluation-model-unlike"]
    assert messages == [
        f"{count} of 48 steps of 16 evaluation traces name another model than is recorded: 'other'",
    ]
    told = {"traces": 16, "steps": count, "of": 48, "names": ["other"]}
    assert answer.report["candidate"]["other_models"] == told
    assert (
        f"in 16 of 16 traces of the candidate steps name another model than is recorded, {count} of 48 steps: 'other'"
    ) in answer.said
    installed = bench.install_model("m@3")
    assert installed.report["candidate"]["other_models"] == told
    attributed = gating.gate_attribute(bench.root, "desk_b", "m@3")
    assert any("with the new model steps name another model" in line for line in attributed.said)


def test_a_task_is_one_in_every_unicode_form(bench: Bench) -> None:
    listed, stored = "caf\u00e9-1", "cafe\u0301-1"
    bench.tasks(*TASKS, stored)
    bench.freeze()
    bench.evaluate("desk_a", "m@1", {listed: 0})
    bench.evaluate("desk_b", "m@1", {stored: 2})
    answer = bench.gate()
    assert answer.verdict == "accept"
    assert answer.report["measured"]["n"] == len(TASKS) + 1


def test_a_candidate_whose_traces_are_settled_as_of_another_harness_or_none_was_tried(bench: Bench) -> None:
    assert bench.gate().report["candidates"] == 4
    tried = bench.traces("desk_c")
    decisions.stamp(bench.root, tried[:8], "none", "a slip", CLOCK)
    assert bench.gate().report["candidates"] == 4
    decisions.stamp(bench.root, tried, "none", "a slip", CLOCK)
    assert bench.gate().report["candidates"] == 4
    decisions.stamp(bench.root, tried, "desk_a", "a slip", CLOCK)
    assert bench.gate().report["candidates"] == 4
    decisions.stamp(bench.root, tried, "none", "a slip", CLOCK)
    # what is of no harness any more is in no cell
    assert bench.traces("desk_c") == tried
    assert cell(bench, "desk_c")[0].attempts == ()


@pytest.mark.parametrize(("status", "more"), [("error", 0), ("unknown", 0), ("failure", 1)])
def test_attempts_without_a_score_are_no_further_draw_of_a_candidate(bench: Bench, status: str, more: int) -> None:
    before = bench.gate().report["candidates"]
    bench.store("desk_c", [run("e-0", "desk_c", "m@1", number, status) for number in (2, 3)])
    assert bench.gate().report["candidates"] == before + more


def test_a_contested_try_that_is_settled_as_of_none_was_one_of_the_harness_stated_first(bench: Bench) -> None:
    made = [run("e-0", "desk_c", "m@3", 0, "failure")]
    bench.store("desk_c", made)
    before = bench.gate().report["candidates"]
    (trace,) = bench.traces("desk_c", "m@3")
    bench.store("desk_a", made)
    assert bench.gate().report["candidates"] == before - 1
    decisions.stamp(bench.root, [trace], "none", "nobody knows", CLOCK)
    assert bench.gate().report["candidates"] == before
