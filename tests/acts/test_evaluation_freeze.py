"""Whoever freezes the evaluation set is told which of its ids gates would refuse, and that results could be seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gates.evaluations import NEW, cell
from tracemark.acts import evaluation_freeze, gate_log
from tracemark.acts.evaluation_freeze import freeze_notes
from tracemark.cli.main import run as tracemark
from tracemark.errors import UsageError
from tracemark.exporters.evaluation import qualified
from tracemark.findings import Finding, Severity
from tracemark.gates.refusal import Reason
from tracemark.gates.same_set import set_refusals
from tracemark.gates.terms import Half, Terms

from .conftest import CLOCK, Shop
from .evaluated import ALL, TASKS, Bench, measured

Stored = set[tuple[str, str | None]]


def notes(stored: Stored, *ids: str) -> dict[str, Finding]:
    return {one.code: one for one in freeze_notes(frozenset(ids), sorted(stored, key=str), None)}


@pytest.mark.parametrize(
    ("ids", "stored", "said"),
    [
        ("e-0", {("e-0", "shop"), ("e-0", "bank")}, "('e-0' means 'bank/e-0', 'shop/e-0')"),
        (
            "shop/e-0 bank/e-0",
            {("e-0", None)},
            "1 stored task of several ids ('e-0' is meant by 'bank/e-0', 'shop/e-0')",
        ),
        ("e-0 shop/e-0", {("e-0", "shop")}, "1 stored task of several ids ('shop/e-0' is meant by 'e-0', 'shop/e-0')"),
    ],
)
def test_ids_that_gates_would_refuse_are_a_warning(ids: str, stored: Stored, said: str) -> None:
    found = notes(stored, *ids.split())["evaluation-ambiguous"]
    assert (found.severity, found.where) == (Severity.WARNING, "params.yaml: evaluation.tasks")
    assert said in found.message
    assert "DOMAIN/TASK" in (found.hint or "")


@pytest.mark.parametrize(
    ("listed", "stored", "said"),
    [("e-0", ("e-0", "shop"), "'e-0' means 'shop/e-0'"), ("shop/e-0", ("e-0", None), "'shop/e-0' means 'e-0'")],
)
def test_an_id_that_means_one_task_is_refused_by_nobody_and_told_so(
    listed: str, stored: tuple[str, str | None], said: str
) -> None:
    found = notes({stored}, listed)
    assert "evaluation-ambiguous" not in found
    assert found["evaluation-domain"].severity is Severity.INFO
    assert found["evaluation-domain"].message == (
        f"1 of 1 ids and their stored tasks have not the same domain ({said}); gates refuse none of them"
    )


@pytest.mark.parametrize("stored", [{("e-0", "shop"), ("e-1", None)}, {("e-9", "shop")}, set()])
def test_ids_that_are_named_as_their_tasks_are_no_warning(stored: Stored) -> None:
    assert "evaluation-ambiguous" not in notes(stored, "shop/e-0", "e-1", "bank/e-2")


@given(
    st.sets(st.sampled_from(["e", "f", "shop/e", "bank/e", "bank/f"]), min_size=1),
    st.sets(st.tuples(st.sampled_from(["e", "f"]), st.sampled_from(["shop", "bank", None]))),
)
def test_a_freeze_warns_of_the_ids_that_a_gate_refuses_and_of_no_others(ids: set[str], stored: Stored) -> None:
    names = {str(qualified(*one)): 1 for one in stored}
    cells = {"incumbent": cell(names, 1), "candidate": cell(names, 1, NEW)}
    terms = Terms(Half.HARNESS, attempts=1, evaluation=frozenset(ids))
    refused = [one for one in set_refusals(cells, terms) if one.reason is Reason.EVALUATION_CHANGED]
    assert ("evaluation-ambiguous" in notes(stored, *ids)) is bool(refused)


def test_runs_that_are_stored_already_are_told() -> None:
    found = notes({("e-0", "shop"), ("e-1", None), ("t-0", "shop")}, "shop/e-0", "e-1", "e-2")["evaluation-seen"]
    assert found.severity is Severity.INFO
    assert "runs of 2 tasks of the set are stored already" in found.message
    assert "'e-1', 'shop/e-0'" in found.message
    assert notes({("t-0", "shop")}, "e-0") == {}


def test_a_set_that_was_evaluated_is_frozen_all_the_same(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    bench = measured(shop.root)
    bench.tasks(*TASKS[:4])
    code = tracemark(["--root", str(bench.root), "gate", "freeze", "--reason", "four", "--output", "json"])
    said = json.loads(capsys.readouterr().out)
    assert (code, said["tasks"]) == (0, 4)
    assert {"evaluation-domain", "evaluation-seen"} <= {one["code"] for one in said["findings"]}
    # to name the domain, as is told, takes no task out of the set, and nothing is told any more
    bench.tasks(*(f"shop/{task}" for task in TASKS[:4]))
    assert {one.code for one in bench.freeze().findings} == {"evaluation-seen"}
    bench.tasks(*(f"shop/{task}" for task in TASKS[:3]))
    (gone,) = (one for one in bench.freeze().findings if one.code == "evaluation-released")
    assert f"shop/{TASKS[3]}" in gone.message


def test_a_set_that_nobody_has_run_is_frozen_without_a_word(shop: Shop) -> None:
    bench = Bench(shop.root)
    bench.tasks("shop/e-0", "shop/e-1")
    frozen = bench.freeze()
    assert {one.code for one in frozen.findings} <= {"evaluation-unmatched"}
    bench.evaluate("desk_a", "m@1", ALL)
    bench.tasks("shop/e-0")
    assert "evaluation-seen" in {one.code for one in bench.freeze().findings}


def test_before_anything_is_stored_a_catalogue_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("evaluation: {tasks: [e-0], attempts: 2}\n")
    assert evaluation_freeze.freeze(tmp_path, "the set", CLOCK).findings == ()


def test_the_evaluation_set_is_frozen_by_its_digest(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.tasks(*TASKS[:4], attempts=3)
    command = ["--root", str(bench.root), "gate", "freeze", "--reason", "smaller", "--output", "json"]
    assert tracemark(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tasks"], said["attempts"]) == (4, 3)
    assert said["previous"] is not None
    assert tracemark(command) == 1
    freezes = [one for one in gate_log.gate_log(bench.root).decisions if one["kind"] == "freeze"]
    assert len(freezes) == 2


def test_without_tasks_there_is_nothing_to_freeze(shop: Shop) -> None:
    with pytest.raises(UsageError, match="no evaluation set"):
        evaluation_freeze.freeze(shop.root, "why", CLOCK)
