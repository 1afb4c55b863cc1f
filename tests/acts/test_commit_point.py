"""Of what was decided no error is told: whatever can fail is done before the ledger is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracemark.acts import accepted_pair, corpus, decisions, equivalence, evaluation_freeze
from tracemark.acts.corpus import Corpus
from tracemark.errors import ParamsError
from tracemark.ledger import chain
from tracemark.store.store import Store

from .conftest import CLOCK
from .evaluated import TASKS, Bench

Act = Callable[[Bench], Any]


def freeze(bench: Bench) -> Any:
    bench.tasks(*TASKS[1:])
    return bench.freeze()


def withdraw(bench: Bench) -> Any:
    return equivalence.withdraw(bench.root, "desk_a", "desk_b", "a mistake", CLOCK)


def roll_back(bench: Bench) -> Any:
    return accepted_pair.rollback(bench.root, "previous", "worse", CLOCK)


def prepare(bench: Bench, name: str) -> None:
    """Enter what an act undoes."""
    if name == "gate rollback":
        accepted_pair.accept_model(bench.root, "m@2", "better", CLOCK)
    if name == "harness equivalent --withdraw":
        bench.enter("equivalent", {"fingerprints": [bench.fingerprint("desk_a"), bench.fingerprint("desk_b")]})
    if name == "reinstate":
        decisions.retract(bench.root, [bench.traces("desk_b")[0]], "wrong", CLOCK)


ACTS: dict[str, Act] = {
    "harness accept": lambda bench: bench.accept("desk_b"),
    "harness equivalent": lambda bench: equivalence.equivalent(bench.root, "desk_a", "desk_c", "alike", CLOCK),
    "harness equivalent --withdraw": withdraw,
    "model accept": lambda bench: accepted_pair.accept_model(bench.root, "m@2", "better", CLOCK),
    "gate freeze": freeze,
    "gate harness --install": lambda bench: bench.install("desk_b"),
    "gate harness --install, rejected": lambda bench: bench.install("desk_c"),
    "gate model --install": lambda bench: bench.install_model("m@2"),
    "gate rollback": roll_back,
    "retract": lambda bench: decisions.retract(bench.root, [bench.traces("desk_b")[0]], "wrong", CLOCK),
    "reinstate": lambda bench: decisions.reinstate(bench.root, [bench.traces("desk_b")[0]], "right", CLOCK),
    "stamp": lambda bench: decisions.stamp(bench.root, bench.traces("desk_b")[:2], "none", "unknown", CLOCK),
}


@pytest.mark.parametrize("name", ACTS)
def test_nothing_is_looked_at_any_more_once_the_ledger_is_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    written = chain._write

    def failing(*_: Any, **__: Any) -> Any:
        raise AssertionError("this may fail, and the ledger is written")

    def write(*arguments: Any) -> None:
        written(*arguments)
        monkeypatch.setattr(Corpus, "__init__", failing)
        monkeypatch.setattr(corpus, "known_with_findings", failing)
        monkeypatch.setattr(evaluation_freeze, "stored_tasks", failing)
        monkeypatch.setattr(chain, "read", failing)
        for looked in ("open", "select", "get", "statements", "tasks"):
            monkeypatch.setattr(Store, looked, failing)

    prepare(bench, name)
    before = len(chain.read(bench.root / chain.NAME).entries)
    monkeypatch.setattr(chain, "_write", write)
    assert ACTS[name](bench) is not None
    monkeypatch.undo()
    assert len(chain.read(bench.root / chain.NAME).entries) > before


@pytest.mark.parametrize("name", ["harness accept", "model accept", "gate harness --install", "gate rollback"])
def test_parameters_in_which_a_half_cannot_be_changed_alone_stop_a_decision_before_the_ledger(
    bench: Bench, name: str
) -> None:
    prepare(bench, name)
    stated = Corpus(bench.root).params.accepted
    bench.set(
        (f"harness: {stated.harness}", f"harness: &half {stated.harness}"),
        (f"model: {stated.model}", f"model: &other {stated.model}"),
        ("    harness: []", "    harness: [*half]"),
        ("    model: []", "    model: [*other]"),
    )
    before = (bench.root / chain.NAME).read_bytes(), (bench.root / "params.yaml").read_bytes()
    with pytest.raises(ParamsError, match="cannot be changed without changing something else"):
        ACTS[name](bench)
    assert ((bench.root / chain.NAME).read_bytes(), (bench.root / "params.yaml").read_bytes()) == before
