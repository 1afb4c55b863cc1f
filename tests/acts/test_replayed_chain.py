"""The public chain of `tests/gates/test_replayed_chain.py` through a store: evaluated, judged, installed, on record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.gates.test_replayed_chain import ATTEMPTS, CHAIN, anchor, moved
from tracemark.acts import accepted_pair, gate_log, health
from tracemark.acts.corpus import Corpus
from tracemark.acts.installing import InstallAnswer
from tracemark.findings import Severity
from tracemark.gates.terms import Half

from .conftest import CLOCK, Shop, write_version
from .evaluated import EXTRA, Bench, runs


def by_task(scores: Mapping[str, int]) -> dict[str, int]:
    return {"t" + task.rpartition("/")[2]: solved for task, solved in scores.items()}


@pytest.mark.slow
def test_the_chain_is_decided_as_it_was_and_each_decision_says_on_what(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(shop.root)
    scores = anchor()
    bench.tasks(*by_task(scores), attempts=ATTEMPTS)
    bench.set(("policy: significant", "policy: cotrace"))
    bench.accept()
    accepted_pair.accept_model(bench.root, "m@E0", "the anchor", CLOCK)
    bench.freeze()
    harness, model = "desk_a", "m@E0"
    bench.store(harness, runs(harness, model, by_task(scores), ATTEMPTS, domain="tmax"))
    answers: dict[str, InstallAnswer] = {}
    for step in CHAIN:
        after = moved(scores, step, step.name)
        of_harness = step.half is Half.HARNESS
        pair = (f"desk_{step.name}", model) if of_harness else (harness, f"m@{step.name}")
        if of_harness:
            monkeypatch.setitem(EXTRA, pair[0], f"Remember {step.name}.")
            write_version(bench.root, pair[0], extra=EXTRA[pair[0]])
        bench.store(pair[0], runs(*pair, by_task(after), ATTEMPTS, domain="tmax"))
        answers[step.name] = bench.install(pair[0]) if of_harness else bench.install_model(pair[1])
        if answers[step.name].verdict == "accept":
            (harness, model), scores = pair, after
    assert {name: answer.verdict == "accept" for name, answer in answers.items()} == {
        step.name: step.accepted for step in CHAIN
    }
    assert [round(answer.report["measured"]["candidate"]["score"]) for answer in answers.values()] == [
        step.total for step in CHAIN
    ]
    others = {name: answer.report["measured"]["policies"]["significant"]["accepts"] for name, answer in answers.items()}
    assert [name for name, accepts in others.items() if accepts] == ["B2"]
    reused = {name: len(answer.report["reused"]) for name, answer in answers.items()}
    assert reused == {"B1": 0, "E1": 0} | dict.fromkeys(["B2", "E2", "B3", "E3", "B4", "E4", "B5"], 102 * ATTEMPTS)
    kinds = [row["kind"] for row in gate_log.gate_log(bench.root).decisions[3:]]
    assert kinds == ["install" if step.accepted else "reject" for step in CHAIN]
    corpus = Corpus(bench.root)
    assert (corpus.name_of(corpus.accepted), corpus.params.accepted.model) == ("desk_B2", "m@E1")
    assert [found for found in health.check(bench.root).findings if found.severity is Severity.ERROR] == []
