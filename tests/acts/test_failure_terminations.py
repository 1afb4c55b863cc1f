"""From a format's file to a file of the failure log: how a run stopped, as its importer reads it, says where it lies.

A row is one run: what its file says, then the status and the end that are stored, the condition, and the file. Words
that say nothing new of routing are tried in `tests/failures/test_terminations.py`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.importers import otel_made
from tests.importers.make_golden import SAMPLES
from tracemark.acts import ingest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.failure_job import work
from tracemark.acts.failure_terms import Asking
from tracemark.importers import nemo_gym as nemo
from tracemark.importers import openai_verdict, verifiers_outcome
from tracemark.importers import tau_bench as tau
from tracemark.store.selection import Selection

from .failed_runs import FILES

LOG, ENVIRONMENT, GRADER, QUARANTINE = FILES
WORDED = (nemo, openai_verdict, tau, verifiers_outcome)
"""The modules that tell an end in the words of an error."""

Json = dict[str, Any]
Case = tuple[Json, str, str | None, str, str]
"""What the file says, status, termination, condition, file."""

OURS = "stopped-early", LOG
BROKE = "environment-fault", ENVIRONMENT
GRADED = "grader-exception", GRADER
LIMIT = "budget-exhausted", QUARANTINE
UNKNOWN = "unmatched", QUARANTINE


def sample(name: str) -> Any:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith("jsonl") else json.loads(text)


def lines(name: str, values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    yield name, "".join(json.dumps(value) + "\n" for value in values)


def harbor(cases: list[Json]) -> Iterator[tuple[str, str]]:
    for number, said in enumerate(cases):
        folder = f"job/trial__{number}"
        steps = [
            {"step_id": 1, "source": "user", "message": f"Go {number}."},
            {"step_id": 2, "source": "agent", "message": "Done."},
        ]
        agent = {"name": "desk", "version": "1"}
        document = {"schema_version": "ATIF-v1.7", "session_id": f"s-{number}", "agent": agent, "steps": steps}
        yield f"{folder}/agent/trajectory.json", json.dumps(document)
        yield f"{folder}/config.json", "{}"
        yield f"{folder}/result.json", json.dumps({"id": f"t-{number}", "task_name": f"t-{number}", **said})


def raised(name: str, reward: float | None = None) -> Json:
    """Return what a trial's result says of an exception."""
    graded = {} if reward is None else {"verifier_result": {"reward": reward}}
    return {"exception_info": {"exception_type": name}, **graded}


def tau2(cases: list[Json]) -> Iterator[tuple[str, str]]:
    results = sample("tau2/results.json")
    one = results["simulations"][0]
    spoken = [message for message in one["messages"] if message["role"] != "tool" and not message.get("tool_calls")]
    made = [
        {
            **copy.deepcopy(one),
            "messages": spoken,
            "id": f"5b1d7c02-0000-4000-8000-{number:012}",
            "trial": number,
            **said,
        }
        for number, said in enumerate(cases)
    ]
    yield "results.json", json.dumps({**results, "simulations": made})


def ended(reason: str, reward: float | None = 0.0) -> Json:
    return {"termination_reason": reason, "reward_info": None if reward is None else {"reward": reward}}


def tau_bench(cases: list[Json]) -> Iterator[tuple[str, str]]:
    made = (
        {
            "task_id": number,
            "trial": 0,
            "reward": 0.0,
            "info": said,
            "traj": [{"role": "user", "content": f"Where is {number}?"}, {"role": "assistant", "content": "Here."}],
        }
        for number, said in enumerate(cases)
    )
    yield "results.json", json.dumps(list(made))


def verifiers(cases: list[Json]) -> Iterator[tuple[str, str]]:
    base = {"completion": [{"role": "assistant", "content": "Twelve."}], "task": "default", "info": {}, "reward": 0.0}
    made = (
        {**base, "example_id": number, "prompt": [{"role": "user", "content": f"And on {number}?"}], **one}
        for number, one in enumerate(cases)
    )
    yield from lines("results.jsonl", made)


def verifiers_graph(cases: list[Json]) -> Iterator[tuple[str, str]]:
    nodes = [
        {"parent": None, "message": {"role": "user", "content": "How many?"}, "sampled": False},
        {"parent": 0, "message": {"role": "assistant", "content": "Twelve."}, "sampled": True},
    ]
    base = {
        "version": 1,
        "verifiers": {"version": "1.0.0", "commit": "abc"},
        "task": {"type": "Library", "key": "shelf-a", "data": {"idx": 0}},
        "agent": {"config": {"harness": {"id": "desk"}, "model": "small-1"}},
        "nodes": nodes,
        "calls": [],
        "rewards": {"right": {"score": 0.0, "weight": 1.0}},
        "ok": True,
    }
    yield from lines("traces.jsonl", ({**base, "id": f"t{number}", **one} for number, one in enumerate(cases)))


def nemo_gym(cases: list[Json]) -> Iterator[tuple[str, str]]:
    def row(number: int, said: Json) -> Json:
        user = {"role": "user", "type": "message", "content": f"May I have b{number}?"}
        spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Take it."}]}
        response = {"model": "small-1", "output": [spoken], "created_at": 1768002749, **said.pop("response", {})}
        return {"responses_create_params": {"input": [user]}, "response": response, "reward": 0.0, **said}

    yield from lines("rollouts.jsonl", (row(number, dict(one)) for number, one in enumerate(cases)))


def thinkingbox(cases: list[Json]) -> Iterator[tuple[str, str]]:
    spoken = [
        {"T": "Text", "role": role, "content": text, "metadata": {}}
        for role, text in (("user", "Where is o1?"), ("assistant", "Here."))
    ]
    test = {"result": False, "reward": 0.0, "is_system_error": False}
    base = {"messages": spoken, "test_result": test, "is_system_error": False, "finish_reason": "done"}
    made = ({"uid": f"o-{n}", "metadata": {"repetition": n}, **base, **one} for n, one in enumerate(cases))
    yield from lines("results.jsonl", made)


def inspect(cases: list[Json]) -> Iterator[tuple[str, str]]:
    log = sample("inspect/log.json")
    system = {"id": "m1", "role": "system", "content": "You look up parcels."}
    user = {"id": "m2", "role": "user", "content": "Which?", "source": "input"}
    says = {"id": "m3", "role": "assistant", "content": "One.", "source": "generate", "model": "m"}
    asked = {"event": "model", "model": "m", "input": [system, user], "tools": [], "tool_choice": "auto", "config": {}}
    stopped = {"model": "m", "choices": [{"message": says, "stop_reason": "stop"}]}
    made = [
        {
            "id": number,
            "epoch": 1,
            "input": "Which?",
            "target": "one",
            "messages": [system, user, says],
            "output": stopped,
            "scores": {"match": {"value": "I"}},
            "events": [{**asked, "output": stopped}],
            "uuid": f"u{number}",
            **one,
        }
        for number, one in enumerate(cases)
    ]
    yield "log.json", json.dumps({**log, "samples": made})


def stopping(reason: str) -> Json:
    says = {"id": "m3", "role": "assistant", "content": "One.", "source": "generate", "model": "m"}
    return {"output": {"model": "m", "choices": [{"message": says, "stop_reason": reason}]}}


def swe_agent(cases: list[Json]) -> Iterator[tuple[str, str]]:
    for number, said in enumerate(cases):
        made = sample("swe-agent/text.traj")
        made["history"][1]["content"] += f" ({number})"
        yield f"run-{number}.traj", json.dumps({**made, "info": {**made["info"], **said}})


def mini_swe_agent(cases: list[Json]) -> Iterator[tuple[str, str]]:
    for number, said in enumerate(cases):
        made = sample("mini-swe-agent/text.traj.json")
        yield (
            f"run-{number}.traj.json",
            json.dumps({**made, "instance_id": f"i-{number}", "info": {**made["info"], **said}}),
        )


def openhands(cases: list[Json]) -> Iterator[tuple[str, str]]:
    row = sample("openhands/output.jsonl")[1]
    made = []
    for number, said in enumerate(cases):
        one = {**copy.deepcopy(row), "instance_id": f"i-{number}", "test_result": {}, "error": None, **said}
        asked = next(event for event in one["history"] if event["source"] == "user" and event["action"] == "message")
        asked["args"]["content"] += f" ({number})"
        made.append(one)
    yield from lines("output.jsonl", made)


def openai_chat(cases: list[Json]) -> Iterator[tuple[str, str]]:
    said = {"role": "assistant", "content": "Here."}
    made = (
        {"messages": [{"role": "user", "content": f"Where is {number}?"}, said], "task_id": f"t-{number}", **one}
        for number, one in enumerate(cases)
    )
    yield from lines("records.jsonl", made)


def atif(cases: list[Json]) -> Iterator[tuple[str, str]]:
    steps = [
        {"step_id": 1, "source": "user", "message": "Go."},
        {"step_id": 2, "source": "agent", "message": "Done."},
    ]
    base = {"schema_version": "ATIF-v1.7", "agent": {"name": "desk", "version": "1"}, "steps": steps}
    made = (
        {**base, "session_id": f"s-{number}", "extra": {"tracemark": {"run": {"task": f"t-{number}"}, "outcome": one}}}
        for number, one in enumerate(cases)
    )
    yield from lines("runs.jsonl", made)


def claude_code(cases: list[Json]) -> Iterator[tuple[str, str]]:
    for number, said in enumerate(cases):
        made = [dict(one) | {"session_id": f"s-{number}"} for one in sample("claude-code/stream.json")]
        made[-1] |= said
        yield f"stream-{number}.json", json.dumps(made)


def otel(cases: list[Json]) -> Iterator[tuple[str, str]]:
    for number, said in enumerate(cases):
        spans = otel_made.run()
        spans[0] |= {"status": {"code": 2}, "attributes": [*spans[0]["attributes"], *otel_made.listed(said)]}
        made = otel_made.export(*({**one, "traceId": f"{number + 1:032x}"} for one in spans))
        yield f"spans-{number}.json", json.dumps(made)


RAN_OUT = "RuntimeError: Agent reached maximum iteration in headless mode."
FORMATS: dict[str, tuple[Callable[[list[Json]], Iterator[tuple[str, str]]], list[Case]]] = {
    "harbor": (
        harbor,
        [
            ({"verifier_result": {"reward": 0}}, "failure", None, *OURS),
            (raised("AgentTimeoutError", 0), "failure", "AgentTimeoutError", *LIMIT),
            (raised("AgentTimeoutError"), "error", "AgentTimeoutError", *LIMIT),
            (raised("ContextWindowExceededError", 0), "error", "ContextWindowExceededError", *LIMIT),
            (raised("EnvironmentStartTimeoutError"), "error", "EnvironmentStartTimeoutError", *BROKE),
            (raised("AddTestsDirError"), "error", "AddTestsDirError", *BROKE),
            (raised("DownloadVerifierDirError", 0), "error", "DownloadVerifierDirError", *BROKE),
            (raised("ApiRateLimitError", 0), "error", "ApiRateLimitError", *BROKE),
            (raised("VerifierTimeoutError"), "error", "VerifierTimeoutError", *GRADED),
            (raised("RewardFileNotFoundError"), "error", "RewardFileNotFoundError", *GRADED),
            (raised("CancelledError"), "error", "CancelledError", *UNKNOWN),
            (raised("NonZeroAgentExitCodeError", 0), "error", "NonZeroAgentExitCodeError", *UNKNOWN),
        ],
    ),
    "atif": (
        atif,
        [
            ({"status": "failure", "termination": "sandbox_error"}, "failure", "sandbox_error", *BROKE),
            ({"status": "failure", "termination": "verifier_timeout"}, "failure", "verifier_timeout", *GRADED),
            ({"status": "failure", "termination": "user_stop"}, "failure", "user_stop", *OURS),
            ({"status": "failure", "termination": "cost limit"}, "failure", "cost limit", *LIMIT),
            ({"status": "failure", "termination": "KeyError"}, "failure", "KeyError", *UNKNOWN),
        ],
    ),
    "tau2": (
        tau2,
        [
            (ended("user_stop"), "failure", "user_stop", *OURS),
            (ended("agent_stop"), "failure", "agent_stop", *OURS),
            (ended("agent_error"), "failure", "agent_error", *OURS),
            (ended("max_steps"), "failure", "max_steps", *LIMIT),
            (ended("timeout"), "failure", "timeout", *LIMIT),
            (ended("context_window_exceeded"), "failure", "context_window_exceeded", *LIMIT),
            (ended("user_error"), "failure", "user_error", *BROKE),
            (ended("user_error", None), "error", "user_error", *BROKE),
            (ended("infrastructure_error"), "error", "infrastructure_error", *BROKE),
            (ended("unexpected_error"), "error", "unexpected_error", *UNKNOWN),
        ],
    ),
    "tau-bench": (
        tau_bench,
        [
            ({}, "failure", None, *OURS),
            ({"error": "RateLimitError: 429", "traceback": "…"}, "error", "RateLimitError: 429", *BROKE),
            ({"error": "KeyError: 'a'", "traceback": "…"}, "error", "KeyError: 'a'", *UNKNOWN),
        ],
    ),
    "verifiers": (
        verifiers,
        [
            ({"stop_condition": "no_tools_called"}, "failure", "no_tools_called", *OURS),
            ({"stop_condition": "max_turns_reached"}, "failure", "max_turns_reached", *LIMIT),
            ({"stop_condition": "prompt_too_long"}, "failure", "prompt_too_long", *LIMIT),
            ({"stop_condition": "sandbox_error"}, "failure", "sandbox_error", *BROKE),
            ({"stop_condition": "has_error"}, "failure", "has_error", *UNKNOWN),
            ({"stop_condition": "", "error": "SandboxError"}, "error", "", *UNKNOWN),
            ({"stop_condition": "has_error", "error": "SandboxError"}, "error", "has_error", *UNKNOWN),
            ({"error": "SandboxError"}, "error", "SandboxError", *BROKE),
        ],
    ),
    "verifiers-graph": (
        verifiers_graph,
        [
            ({"stop_condition": "agent_completed"}, "failure", "agent_completed", *OURS),
            ({"stop_condition": "max_total_tokens"}, "failure", "max_total_tokens", *LIMIT),
            ({"stop_condition": "error"}, "failure", "error", *UNKNOWN),
            (
                {"ok": False, "stop_condition": "error", "errors": [{"type": "SandboxError"}]},
                "error",
                "error",
                *UNKNOWN,
            ),
            (
                {"ok": False, "errors": [{"type": "SandboxError", "message": "gone"}]},
                "error",
                "SandboxError: gone",
                *BROKE,
            ),
        ],
    ),
    "nemo-gym": (
        nemo_gym,
        [
            ({"terminal_state": "complete"}, "failure", "complete", *OURS),
            ({"terminal_state": "incomplete"}, "failure", "incomplete", *UNKNOWN),
            (
                {"response": {"incomplete_details": {"reason": "max_output_tokens"}}},
                "failure",
                "max_output_tokens",
                *LIMIT,
            ),
            ({"error_kind": "sandbox"}, "error", "sandbox", *BROKE),
            ({"error_kind": "eval_timeout"}, "error", "eval_timeout", *GRADED),
            ({"mask_sample": True}, "error", None, *UNKNOWN),
            (
                {"response": {"error": {"code": "sandbox_error", "message": "gone"}}},
                "error",
                "sandbox_error: gone",
                *BROKE,
            ),
            ({"_ng_failure_class": "judge_failed"}, "error", "judge_failed", *GRADED),
        ],
    ),
    "thinkingbox": (
        thinkingbox,
        [
            ({}, "failure", "done", *OURS),
            ({"finish_reason": "agent_limit"}, "failure", "agent_limit", *LIMIT),
            ({"finish_reason": "user_limit"}, "failure", "user_limit", *LIMIT),
            ({"finish_reason": "agent_error"}, "failure", "agent_error", *OURS),
            ({"test_result": {"result": False, "is_system_error": True}}, "error", "done", *GRADED),
            ({"is_system_error": True}, "error", "done", *UNKNOWN),
        ],
    ),
    "inspect": (
        inspect,
        [
            ({}, "failure", "stop", *OURS),
            (stopping("content_filter"), "failure", "content_filter", *OURS),
            (stopping("model_length"), "failure", "model_length", *LIMIT),
            *(
                ({"limit": {"type": kind, "limit": 3}}, "failure", kind, *LIMIT)
                for kind in ("context", "time", "working", "message", "token", "turn", "cost", "operator", "custom")
            ),
            ({"error": {"message": "died", "traceback": "", "traceback_ansi": ""}}, "error", "error", *UNKNOWN),
        ],
    ),
    "swe-agent": (
        swe_agent,
        [
            ({"exit_status": "submitted"}, "unknown", "submitted", *UNKNOWN),
            ({"exit_status": "submitted (exit_cost)"}, "unknown", "submitted (exit_cost)", *UNKNOWN),
            ({"exit_status": "exit_environment_error"}, "error", "exit_environment_error", *BROKE),
            ({"exit_status": "submitted (exit_api)"}, "error", "submitted (exit_api)", *BROKE),
            ({"exit_status": "exit_error"}, "error", "exit_error", *UNKNOWN),
        ],
    ),
    "mini-swe-agent": (
        mini_swe_agent,
        [
            ({"exit_status": "Submitted"}, "unknown", "Submitted", *UNKNOWN),
            ({"exit_status": "LimitsExceeded"}, "unknown", "LimitsExceeded", *UNKNOWN),
            ({"exit_status": "DockerError", "exception_str": "no daemon"}, "error", "DockerError", *BROKE),
            ({"exit_status": "KeyError", "exception_str": "'a'"}, "error", "KeyError", *UNKNOWN),
        ],
    ),
    "openhands": (
        openhands,
        [
            ({"report": {"resolved": False}}, "failure", None, *OURS),
            ({"report": {"resolved": False}, "error": RAN_OUT}, "failure", RAN_OUT, *LIMIT),
            ({"report": {"resolved": False, "error_eval": True}}, "failure", None, *GRADED),
            ({"error": "container 3f9c is not running"}, "error", "container 3f9c is not running", *BROKE),
            (
                {"report": {"resolved": False}, "error": "AgentRuntimeDisconnectedError: gone"},
                "error",
                "AgentRuntimeDisconnectedError: gone",
                *BROKE,
            ),
        ],
    ),
    "openai-chat": (
        openai_chat,
        [
            ({"status": "failure"}, "failure", None, *OURS),
            ({"status": "timeout"}, "error", "timeout", *LIMIT),
            ({"error": True}, "error", None, *UNKNOWN),
            ({"error": "died"}, "error", "died", *UNKNOWN),
            ({"error": "max_steps"}, "error", "max_steps", *LIMIT),
            ({"error": "context_length_exceeded"}, "error", "context_length_exceeded", *LIMIT),
            ({"error": "TimeoutError"}, "error", "TimeoutError", *LIMIT),
            ({"error": "sandbox_error: gone"}, "error", "sandbox_error: gone", *BROKE),
            ({"error": "RateLimitError: 429"}, "error", "RateLimitError: 429", *BROKE),
            (
                {"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "Too long."}},
                "error",
                "invalid_request_error: context_length_exceeded: Too long.",
                *LIMIT,
            ),
        ],
    ),
    "claude-code": (
        claude_code,
        [
            ({"subtype": "success"}, "unknown", "success", *UNKNOWN),
            ({"subtype": "error_max_turns", "is_error": True}, "error", "error_max_turns", *LIMIT),
            ({"subtype": "error_during_execution"}, "error", "error_during_execution", *UNKNOWN),
        ],
    ),
    "otel-genai": (
        otel,
        [
            ({"error.type": "SandboxError"}, "error", "SandboxError", *BROKE),
            ({"error.type": "KeyError"}, "error", "KeyError", *UNKNOWN),
        ],
    ),
}


def put(root: Path, files: Iterable[tuple[str, str]]) -> ingest.IngestReport:
    """Write files to the inbox, and ingest it."""
    for place, text in files:
        path = root / "inbox" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ingest.ingest(root, [root / "inbox"], ingest.IngestOptions())


def logged(root: Path) -> list[tuple[str, str | None, str, str]]:
    """Return the rows of the failure log, each as a case without what its file says."""
    found = []
    with open_store(root) as store:
        for job in Asking(Corpus(root), store).jobs(store.batches(Selection()), root):
            for (_, file), spools in work(job).spools.items():
                written = [json.loads(line) for spool in spools for line in spool.read_text().splitlines()]
                found += [(row["status"], row["termination"], row["condition"], file) for row in written]
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_lies_in_the_file_of_whose_fault_its_end_is(name: str, tmp_path: Path) -> None:
    write, cases = FORMATS[name]
    put(tmp_path, write([case[0] for case in cases]))
    assert logged(tmp_path) == sorted((case[1:] for case in cases), key=repr)


@pytest.mark.parametrize("name", FORMATS)
def test_words_of_an_error_dispute_nothing_that_was_stored_without_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, cases = FORMATS[name]
    files = list(write([case[0] for case in cases]))
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    with monkeypatch.context() as older:
        for module in WORDED:
            older.setattr(module, "error_words", lambda _: None)
        made = put(tmp_path, files).ingested
    again = put(tmp_path, files)
    assert (again.ingested, again.disputing, again.contested) == (0, 0, 0)
    assert again.duplicates + again.strengthened == made
    assert logged(tmp_path) == sorted((case[1:] for case in cases), key=repr)
