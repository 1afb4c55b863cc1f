"""What params.yaml says against what the ledger decided, and where defaults come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracemark.clock import FixedClock
from tracemark.importers.base import Limits
from tracemark.ledger import chain
from tracemark.ledger.params import IngestParams, Params, accepted_findings
from tracemark.ledger.params_file import read_params, set_accepted
from tracemark.ledger.state import state

A = "tm1:" + "a" * 64
B = "tm1:" + "b" * 64


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "params.yaml"


def test_ingest_reads_as_much_by_default_as_importers_do() -> None:
    told = IngestParams()
    assert Limits(told.max_record, told.max_expanded, told.success_reward) == Limits()


def decided(file: Path, *fingerprints: str) -> Any:
    ledger = file.parent / "ledger.jsonl"
    for fingerprint in fingerprints:
        chain.append(ledger, chain.read(ledger), chain.Draft("accept", {"harness": fingerprint}, "why"), FixedClock())
    return state(chain.read(ledger))


def test_a_file_that_says_what_the_ledger_decided_has_no_findings(file: Path) -> None:
    assert accepted_findings(Params(), decided(file), "harness") == ()
    set_accepted(file, A)
    assert accepted_findings(read_params(file), decided(file, A), "harness") == ()


def test_an_accept_cut_short_is_found_with_the_command_that_finishes_it(file: Path) -> None:
    (found,) = accepted_findings(read_params(file), decided(file, A), "harness")
    assert found.code == "accepted-differs"
    assert found.hint == f"tracemark harness accept {A} --reason TEXT writes what the ledger decided"


def test_a_harness_accepted_by_hand_in_the_file_alone_is_found(file: Path) -> None:
    set_accepted(file, B)
    (found,) = accepted_findings(read_params(file), decided(file), "harness")
    assert f"accept {B}" in str(found.hint)
    (found,) = accepted_findings(read_params(file), decided(file, A), "harness")
    assert A in str(found.hint)
    assert B in str(found.hint)


def model(name: str, revision: str | None = None) -> dict[str, Any]:
    return {**dict.fromkeys(("chat_template", "tokenizer", "server", "sampling")), "name": name, "revision": revision}


def with_model(file: Path, what: dict[str, Any]) -> Any:
    ledger = file.parent / "ledger.jsonl"
    chain.append(ledger, chain.read(ledger), chain.Draft("accept", {"model": what}, "why"), FixedClock())
    return state(chain.read(ledger))


def test_the_model_of_the_file_is_held_against_the_ledger(file: Path) -> None:
    held = with_model(file, model("qwen 8b", "2"))
    (found,) = accepted_findings(read_params(file), held, "model")
    assert found.code == "accepted-model-differs"
    assert found.hint == "tracemark model accept 'qwen 8b@2' --reason TEXT writes what the ledger decided"
    set_accepted(file, "qwen 8b@2", "model")
    assert accepted_findings(read_params(file), held, "model") == ()
    assert accepted_findings(read_params(file), held, "harness") == ()


def test_a_model_accepted_by_hand_in_the_file_alone_is_found(file: Path) -> None:
    set_accepted(file, "other", "model")
    (found,) = accepted_findings(read_params(file), decided(file), "model")
    assert found.hint == "tracemark model accept other --reason TEXT, or set it to null"
    (found,) = accepted_findings(read_params(file), with_model(file, model("qwen")), "model")
    assert "tracemark model accept qwen " in str(found.hint)
    assert "tracemark model accept other --reason TEXT decides anew" in str(found.hint)
