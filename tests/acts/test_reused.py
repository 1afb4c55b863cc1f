"""Evaluations that installed their pair: which side rests on one, what counts beside it, and what is to be run anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tracemark.acts import accepted_pair, decisions, gating
from tracemark.acts.gating import GateAnswer

from .conftest import CLOCK
from .evaluated import ALL, HALF, TASKS, Bench, run, runs

EACH = Counter({f"shop/{task}": 2 for task in TASKS})


def follow(bench: Bench, ask: Callable[[], GateAnswer], pairs: dict[str, tuple[str, str]], mark: str) -> GateAnswer:
    """Ask a gate, run what its re-run lists name, each under its number, and ask again."""
    made: dict[str, list[dict[str, object]]] = {}
    for refusal in ask().report["refusals"]:
        for place, one in enumerate(refusal["rerun"]):
            harness, model = pairs[one["side"]]
            task = one["task"].partition("/")[2]
            again = run(task, harness, model, one["attempt"], "success", said=f"{mark} {place}")
            made.setdefault(harness, []).append(again)
    for harness, again_made in made.items():
        bench.store(harness, again_made)
    return ask()


def listed(answer: GateAnswer, side: str = "incumbent") -> Counter[str]:
    """Return how often the re-run lists of a refused comparison name each task, for one side."""
    return Counter(
        one["task"] for refusal in answer.report["refusals"] for one in refusal["rerun"] if one["side"] == side
    )


PAIRS = {"incumbent": ("desk_b", "m@1"), "candidate": ("desk_c", "m@1")}


def test_after_a_task_was_added_what_installed_the_pair_is_run_anew_as_a_whole(bench: Bench) -> None:
    bench.install()
    bench.tasks(*TASKS, "e-8")
    bench.freeze()
    bench.evaluate("desk_c", "m@1", {"e-8": 0})
    answer = bench.gate("desk_c")
    assert listed(answer) == EACH + Counter({"shop/e-8": 2})
    assert any("is the one that installed it, and as the set is now it has less" in line for line in answer.said)
    done = follow(bench, lambda: bench.gate("desk_c"), PAIRS, "With nine.")
    assert (done.verdict, done.report["reused"], len(done.report["incumbent"]["traces"])) == ("reject", [], 18)


def test_after_attempts_were_raised_what_installed_the_pair_is_run_anew_as_a_whole(bench: Bench) -> None:
    bench.install()
    bench.tasks(*TASKS, attempts=3)
    bench.freeze()
    bench.store("desk_c", [run(task, "desk_c", "m@1", 2, "failure") for task in TASKS])
    assert listed(bench.gate("desk_c")) == Counter(dict.fromkeys(EACH, 3))
    done = follow(bench, lambda: bench.gate("desk_c"), PAIRS, "Three times.")
    assert (done.verdict, done.report["reused"], len(done.report["incumbent"]["traces"])) == ("reject", [], 24)


@pytest.mark.parametrize("broken", [7, -1], ids=["middle", "last"])
def test_after_the_limit_was_lowered_what_installed_the_pair_is_run_anew_as_a_whole(bench: Bench, broken: int) -> None:
    bench.set(("infrastructure_errors: 0", "infrastructure_errors: 0.1"))
    made = runs("desk_a", "m@3", ALL)
    facts = made[broken]["extra"]["tracemark"]["run"]
    made[broken] = run(facts["task"], "desk_a", "m@3", facts["attempt"], "error")
    bench.store("desk_a", made)
    bench.store("desk_a", runs("desk_a", "m@4", HALF))
    assert bench.install_model("m@3").decision is not None

    def ask() -> GateAnswer:
        return gating.gate_model(bench.root, "m@4")

    assert ask().verdict == "reject"
    bench.set(("infrastructure_errors: 0.1", "infrastructure_errors: 0"))
    assert listed(ask()) == EACH
    done = follow(bench, ask, {"incumbent": ("desk_a", "m@3")}, "Again.")
    assert (done.verdict, done.report["reused"]) == ("reject", [])


def anew(status: str, last: str) -> list[dict[str, object]]:
    """Return a second evaluation of desk_b, of which the last attempt ended otherwise."""
    made = [run(task, "desk_b", "m@1", number, status, said=f"Anew {number}.") for task in TASKS for number in (10, 11)]
    return [*made[:-1], run("e-7", "desk_b", "m@1", 11, last, said="Anew 11.")]


@pytest.mark.parametrize("last", ["unknown", "error"])
def test_a_second_evaluation_that_is_not_whole_is_not_passed_over(bench: Bench, last: str) -> None:
    bench.install()
    bench.store("desk_b", anew("failure", last))
    answer = bench.gate("desk_c")
    assert (answer.verdict, answer.report["incumbent"]["statuses"]) == ("refused", {"failure": 15, last: 1})
    reasons = {refusal["reason"] for refusal in answer.report["refusals"]}
    assert reasons == {"attempts-missing" if last == "unknown" else "infrastructure-errors"}


def test_a_second_evaluation_of_a_few_tasks_lacks_the_others(bench: Bench) -> None:
    bench.install()
    bench.set(("fresh: false", "fresh: true"))
    bench.store("desk_b", anew("failure", "failure")[:-2])
    answer = bench.gate("desk_c")
    assert listed(answer) == Counter({"shop/e-7": 2})
    assert "evaluation-set-aside" in {one.code for one in answer.findings}
    done = follow(bench, lambda: bench.gate("desk_c"), PAIRS, "The last.")
    assert [(one["name"], one["met"]) for one in done.report["measured"]["conditions"]] == [("fresh", True)]
    # what was begun by mistake is retracted, and what installed the pair counts again
    for trace in done.report["incumbent"]["traces"]:
        decisions.retract(bench.root, [trace], "begun by mistake", CLOCK)
    assert len(bench.gate("desk_c").report["reused"]) == 16


def test_what_an_evaluation_and_the_one_that_installed_the_pair_differ_by_is_told(bench: Bench) -> None:
    bench.install()
    first = bench.gate("desk_a")
    assert "repeated" not in first.report["measured"]["noise"]
    bench.evaluate("desk_b", "m@1", {**ALL, "e-0": 1, "e-1": 0}, said="Evaluated anew.", note="again")
    answer = bench.gate("desk_a")
    seen = answer.report["measured"]["noise"]["repeated"]
    assert seen == {"digest": first.report["incumbent"]["digest"], "difference": 2, "moved": 2}
    said = "the evaluation that installed the incumbent and this one differ by 2 (2 tasks moved)"
    assert any(line.startswith(said) for line in answer.said)


def test_a_candidate_that_was_installed_before_is_flagged_too(bench: Bench) -> None:
    bench.install()
    accepted_pair.rollback(bench.root, "previous", "worse in use", CLOCK)
    answer = bench.gate()
    assert (answer.verdict, answer.report["reused"]) == ("accept", [])
    assert answer.report["candidate"]["reused"] == sorted(bench.traces("desk_b"))
    assert answer.said[0].endswith("; the evaluation of the candidate is one that installed it")
    assert any(line.startswith("16 of 16 traces of the candidate are those that installed") for line in answer.said)
    bench.store("desk_b", anew("failure", "unknown"))
    assert bench.gate().verdict == "refused"
    assert bench.install().decision is None


def test_an_attribution_says_which_cells_installed_their_pair(bench: Bench) -> None:
    bench.install_model("m@2")
    for harness in ("desk_a", "desk_b"):
        bench.evaluate(harness, "m@5", ALL)
    answer = gating.gate_attribute(bench.root, "desk_b", "m@5")
    cells = answer.report["cells"]
    assert cells[0]["reused"] == sorted(bench.traces("desk_a", "m@2"))
    assert not any("reused" in one for one in cells[1:])
    told = [line for line in answer.said if "installed it" in line]
    assert told == [
        "16 of 16 traces of the incumbent are those that installed it, chosen because they were good: evaluate it anew"
    ]
