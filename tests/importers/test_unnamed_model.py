"""A producer that says of its runs what it says of all, and not which model ran: that is told, once for each record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Inbox
from .make_golden import SAMPLES

SAID = {"role": "assistant", "content": "Twelve."}
ROW = {"example_id": 3, "prompt": [{"role": "user", "content": "How many?"}], "completion": [SAID], "reward": 1.0}
METADATA = {"env_id": "library", "num_examples": 1, "rollouts_per_example": 1}
NODES = [{"parent": None, "message": {"role": "user", "content": "How many?"}}]
NODES += [{"parent": 0, "message": SAID, "sampled": True}]
GRAPH = {
    "version": 1,
    "id": "t1",
    "task": {"key": "a", "data": {"idx": 0}},
    "nodes": NODES,
    "calls": [],
    "rewards": {},
    "ok": True,
}
LOG = {
    "version": 2,
    "status": "success",
    "plan": {"steps": []},
    "samples": [
        {
            "id": 1,
            "epoch": 1,
            "messages": [{"id": "m1", "role": "user", "content": "Who?"}, {"id": "m2", **SAID, "source": "generate"}],
            "scores": {},
        }
    ],
}
RESPONSE = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "No."}]}]}
ROLLOUT = {"responses_create_params": {"input": [{"role": "user", "content": "May I?"}]}, "reward": 1.0}


def golden(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text(encoding="utf-8").splitlines()[0])


def verifiers(inbox: Inbox, model: str | None) -> None:
    inbox.write("results.jsonl", json.dumps(ROW) + "\n" + json.dumps(ROW) + "\n")
    inbox.write("metadata.json", {**METADATA, "model": model})


def verifiers_graph(inbox: Inbox, model: str | None) -> None:
    agent = {"config": {"harness": {"id": "desk"}, **({} if model is None else {"model": model})}}
    inbox.write("traces.jsonl", "".join(json.dumps({**GRAPH, "id": name, "agent": agent}) + "\n" for name in "ab"))


def inspect(inbox: Inbox, model: str | None) -> None:
    spec = {"task": "parcels", "created": "2026-01-31T12:00:00+00:00", "model": model}
    inbox.write("log.json", {**LOG, "eval": spec, "samples": [{**LOG["samples"][0], "id": each} for each in (1, 2)]})


def tau2(inbox: Inbox, model: str | None) -> None:
    results = json.loads((SAMPLES / "tau2" / "results.json").read_text(encoding="utf-8"))
    results["info"]["agent_info"]["llm"] = model
    inbox.write("results.json", results)


def nemo_gym(inbox: Inbox, model: str | None) -> None:
    rows = [{**ROLLOUT, "id": name, "response": {**RESPONSE, "model": model}} for name in "ab"]
    inbox.write("rollouts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def openhands(inbox: Inbox, model: str | None) -> None:
    row = golden("openhands/output.jsonl")
    row["metadata"]["llm_config"] = {"model": model}
    row["history"] = [
        {"id": 0, "source": "user", "action": "message", "message": "Why?", "args": {"content": "Why?"}},
        {"id": 1, "source": "agent", "action": "message", "message": "So.", "args": {"content": "So."}},
    ]
    inbox.write("output.jsonl", "".join(json.dumps({**row, "instance_id": name}) + "\n" for name in "ab"))


FORMATS = [verifiers, verifiers_graph, inspect, tau2, nemo_gym, openhands]


def told(inbox: Inbox) -> list[list[str]]:
    """Return, of each trace, what is said of headers."""
    items = inbox.read().traces
    assert len(items) >= 2
    return [[found.message for found in item.findings if found.code == "header-missing"] for item in items]


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("batch", [None, "model: {revision: r2}\n", "domain: desk\n"])
def test_a_run_whose_model_nobody_names_says_so(
    inbox: Inbox, write: Callable[[Inbox, str | None], None], batch: str | None
) -> None:
    write(inbox, None)
    if batch is not None:
        inbox.write("batch.yaml", batch)
    for messages in told(inbox):
        [message] = messages
        assert message.endswith("unknown: model")
        assert "batch.yaml" in message


@pytest.mark.parametrize("write", FORMATS)
def test_a_run_whose_model_is_named_says_nothing_of_it(
    inbox: Inbox, write: Callable[[Inbox, str | None], None]
) -> None:
    write(inbox, "small-1")
    assert {item.run["model"]["name"] for item in inbox.read().traces} == {"small-1"}
    assert not any(told(inbox))


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("batch", ["model: m\n", "model: {name: m, revision: r2}\n"])
def test_what_the_batch_names_is_not_missed(
    inbox: Inbox, write: Callable[[Inbox, str | None], None], batch: str
) -> None:
    write(inbox, None)
    inbox.write("batch.yaml", batch)
    assert not any(told(inbox))
