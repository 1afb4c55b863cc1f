"""Runs of SWE-agent: `.traj` files of all generations, with `history`, `trajectory` and `info`.

A file holds one run, or the `attempts` of an agent that tries again, each of which is a trace of its own. The history
is the conversation; the trajectory says beside it what each command really gave (`swe_agent_history`).

Keeps: messages, calls, answers and reasoning as steps; demonstrations as copied context; what a command gave as
`raw_output` in the result's `extra`, with the state of the shell under the names by which the templates ask for it;
action, thought, state, time and other members of an item in the step's `extra`; where the prompt that was sent is not
the history, what is different in it in `extra.prompt`, and `extra.context_management`, which a reply that was asked for
again has too; items without a reply of their
own in the root's `extra.trajectory`; `info`, the recorded configuration and any other member in the root's `extra`
under their own names; of a file with attempts, what stands beside them, with the chosen one in `extra.retry`.
Drops: what an item repeats of its reply, and a state that stands in `raw_output`; prompts that are the history in front
of them, cache marks in prompts, and the record of the messages behind the last step; the copy of the chosen attempt;
names of the agent that all messages share.
Invents: `agent.name` and, where `info` names none, `agent.version` ("unknown"); that a user's message behind a reply is
its observation (`original_role` user). The last reply of a run whose history ends in front of it is taken from the
trajectory. A run in which no tokens were sent or received is taken as replayed (`run.demonstration`). A reply in which
the agent itself gave up counts as no call of the model. `source.repairs` names the last three.

The recorded configuration is compared with the first messages before any of it is used (`swe_agent_config`), its
templates together with the tools' documentation and the environment variables that it holds. One that they contradict,
as where it was added to the file later, is a finding `config-contradicted`, and only the messages count then, as
`rendered`. Confirmed, it gives the templates, the names of the tool bundles and their documentation, the templates of
observations, and as runtime the parser, limits, filters and history processors (all `constant`). Schemas of tools are
not stored. Model, host, image, paths and versions are labels.

Known limits: a file says how a run stopped and never whether it solved its task. An action that was parsed from text
stays there, and in `extra.action`: the model made no tool call. Whether the history was shortened before it was sent
shows only where prompts are recorded, or a confirmed configuration says so. An `args.yaml` beside old runs is left out:
such files were seen to be of a later version of the program than the runs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.importers import recorded_config, swe_agent_config
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Document, Elements, Imported, Importer, Record, Refused, Unit
from tracemark.importers.conversation import decoded
from tracemark.importers.cutting import Reader
from tracemark.importers.documents import documents
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.guard import guarded
from tracemark.importers.head import SPACE, Head
from tracemark.importers.swe_agent_config import part_of
from tracemark.importers.swe_agent_history import History
from tracemark.importers.usage import totals_of
from tracemark.model.atif import VERSION

SUCCESS = (
    ("`info.exit_status` with exit_api, exit_environment_error or exit_error in it", "error"),
    ("any other `info.exit_status`, `submitted` too: nobody graded", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status."""

MEMBERS = (
    ("`problem_statement.id` of a configuration that nothing contradicts", "run.task"),
    ("`agent.model.name` of it", "run.model.name, agent.model_name"),
    ("`temperature`, `top_p`, `completion_kwargs` of its `agent.model`", "run.sampling"),
    ("`env.deployment.image` of it; `environment`; the hashes and versions in `info`", "run.environment"),
    ("the place of an attempt in `attempts`", "run.attempt"),
    ("`info.swe_agent_version`", "agent.version"),
    ("`info.model_stats`", "final_metrics"),
    ("`info.exit_status`", "outcome.termination"),
)
"""What beside the messages goes to a place of its own."""

_BESIDE = "the settings of runs of SWE-agent; their .traj files are read without them"
_FIRST = rb'"trajectory"\s*:\s*\[\s*\{\s*"(?:action|observation|response|thought|state|query|messages)"\s*:'
_ITEM = re.compile(_FIRST)
_USUAL = re.compile(
    rb'\s*\{\s*(?:"attempts"\s*:\s*\[\s*\{\s*)?(?:"environment"\s*:\s*(?:"[^"\\]*"|null)\s*,\s*)?' + _FIRST
)
_MESSAGE = re.compile(rb'"history"\s*:\s*\[\s*\{[^\[\]{}]*?"role"\s*:')
_SETTINGS = re.compile(rb"^agent:\s*$", re.MULTILINE)
_FAILED = re.compile(r"exit_(?:api|environment_error|error)\b")
_GAVE_UP = re.compile(r"exit_")
_OWN_ACTIONS = ("exit_api", "exit_context", "exit_cost", "exit_error")
"""Actions by which version 0.7 ended a run itself; `exit_format` has the model's text, `exit_forfeit` is a tool."""
_LABELS = ("swe_agent_hash", "swe_agent_version", "swe_rex_hash", "swe_rex_version")
_SAMPLING = ("completion_kwargs", "temperature", "top_p")
_TOTALS = {
    "instance_cost": "total_cost_usd",
    "tokens_sent": "total_prompt_tokens",
    "tokens_received": "total_completion_tokens",
}
_UNSAMPLED = ("human", "human_thought", "instant_empty_submit", "replay")


class SweAgentImporter(Importer):
    """Reads runs of SWE-agent."""

    name = "swe-agent"
    version = "1"
    surest = 95
    shows = ("prompt_templates", "tool_bindings", "observation_handlers", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 95 for a document with the members of a run, 80 for the settings of such runs in YAML."""
        if not head.data.lstrip(SPACE).startswith(b"{"):
            return 80 if _is_yaml(head) and _are_settings(head.data) else 0
        if not any(map(head.may_hold, (b'"history"', b'"trajectory"'))):
            return 0
        if _USUAL.match(head.data):
            # what every version writes first: neither parsed nor scanned
            return 95
        value = head.value
        if isinstance(value, dict):
            attempts = value.get("attempts")
            first_run = attempts[0] if isinstance(attempts, list) and attempts else value
            return 95 if isinstance(first_run, dict) and _is_run(first_run) else 0
        members = head.members
        if "[" in (members.get("attempts"), members.get("trajectory")) and _ITEM.search(head.data):
            return 95
        return 95 if members.get("history") == "[" and _MESSAGE.search(head.data) else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def beside(self, name: str, head: Head) -> str | None:  # noqa: ARG002
        """Return why settings in YAML hold no trace."""
        return _BESIDE if _is_yaml(head) and _are_settings(head.data) else None

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each run in the record."""
        for document in documents(record):
            if isinstance(document, Refused):
                yield document
                continue
            for part, beside in _runs(record, document):
                yield guarded(self.name, part, partial(self._read, record, part, beside))

    def _read(self, record: Record, document: Document, beside: Mapping[str, Any] | None) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, beside))


def _is_yaml(head: Head) -> bool:
    return head.data.lstrip(SPACE)[:1] not in (b"{", b"[", b"")


def _are_settings(data: bytes) -> bool:
    return _SETTINGS.search(data) is not None and all(word in data for word in (b"config:", b"actions:", b"_commands:"))


def _is_run(value: Mapping[str, Any]) -> bool:
    history, trajectory = value.get("history"), value.get("trajectory")
    if isinstance(trajectory, list) and trajectory:
        first = trajectory[0]
        return isinstance(first, dict) and "action" in first and "observation" in first
    if not isinstance(history, list):
        return False
    first = history[0] if history else None
    if isinstance(trajectory, list):
        return first is None or (isinstance(first, dict) and "role" in first)
    return isinstance(first, dict) and "role" in first and ("agent" in first or "message_type" in first)


def _runs(record: Record, document: Document) -> Iterator[tuple[Document, Mapping[str, Any] | None]]:
    """Yield each run of a document, with what stands beside it where it is one of several attempts."""
    value = document.value
    attempts = value.get("attempts") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(attempts, list) or not attempts:
        yield document, None
        return
    reader = Reader(io.BytesIO(document.raw), Elements("attempts"), record.context.limits.max_record)
    cut = [element.raw for element in reader if element is not None]
    raws = cut if len(cut) == len(attempts) else [digest.canonical(attempt) for attempt in attempts]
    info = value.get("info")
    chosen = info.get("best_attempt_idx") if isinstance(info, dict) else None
    copied = ("attempts", "trajectory", "history", "replay_config", "environment")
    around = {name: member for name, member in value.items() if name not in copied}
    for number, (attempt, raw) in enumerate(zip(attempts, raws, strict=True)):
        beside: dict[str, Any] = {"attempt": number, "attempts": len(attempts)}
        if number == (chosen if type(chosen) is int and 0 <= chosen < len(attempts) else len(attempts) - 1):
            beside |= around
        yield Document(attempt, raw, f"{document.where}#{number}", document.repairs), beside


def _draft(document: Document, beside: Mapping[str, Any] | None) -> Draft:
    value = document.value
    if not isinstance(value, dict):
        raise UnfitError("a run is an object with history and trajectory")
    rest = dict(value)
    messages, items = rest.pop("history", None), rest.pop("trajectory", None)
    if not isinstance(messages, list) or not messages:
        raise UnfitError("history is empty" if messages == [] else "history is no list of messages")
    if not isinstance(items, list):
        if items is not None:
            rest["trajectory"] = items
        items = []
    repairs: list[str] = []
    history = History(messages, items, repairs)
    if not history.steps:
        raise UnfitError("history holds no message of a conversation")
    config = decoded(rest.get("replay_config"), "replay_config written as JSON text: read", repairs)
    if config is not None:
        rest["replay_config"] = config
    info = part_of(rest, "info")
    recorded = part_of({"config": config}, "config")
    judged = swe_agent_config.judged(recorded, messages)
    known = recorded if judged.contradiction is None else {}
    run = _run(rest, info, known)
    if beside is not None:
        run["attempt"] = beside["attempt"]
        rest["retry"] = {name: member for name, member in beside.items() if name != "attempt"}
    rest |= {"trajectory": history.left} if history.left else {}
    rest |= {} if history.agent is None else {"agent": history.agent}
    agent = named_agent("swe-agent", info.get("swe_agent_version"), run)
    trajectory = {"schema_version": VERSION, "agent": agent, "steps": history.steps}
    metrics = totals_of(part_of(info, "model_stats"), _TOTALS)
    trajectory |= {name: value for name, value in (("final_metrics", metrics), ("extra", rest)) if value}
    shown = {"prompt_templates": judged.entries, **(swe_agent_config.components(known) if judged.confirmed else {})}
    draft = Draft(trajectory, run, _outcome(info), repairs, shown, mixed=history.others)
    if judged.contradiction is not None:
        draft.findings.append(finding(recorded_config.CONTRADICTED, document.where, judged.contradiction))
    _mark_unsampled(draft, info, known)
    _mark_shortened(history.steps, swe_agent_config.observations_kept(known))
    return draft


def _run(rest: dict[str, Any], info: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    task, model = part_of(config, "problem_statement").get("id"), part_of(config, "agent", "model")
    if isinstance(task, str):
        run["task"] = task
    if isinstance(model.get("name"), str):
        run["model"] = {"name": model["name"]}
    sampling = {name: model[name] for name in _SAMPLING if model.get(name) not in (None, {})}
    if sampling:
        run["sampling"] = sampling
    labels = {name: info[name] for name in _LABELS if isinstance(info.get(name), str)}
    image = part_of(config, "env", "deployment").get("image")
    if isinstance(image, str):
        labels["image"] = image
    if isinstance(rest.get("environment"), str):
        labels["environment"] = rest.pop("environment")
    if labels:
        run["environment"] = labels
    return run


def _outcome(info: Mapping[str, Any]) -> dict[str, Any]:
    status = info.get("exit_status")
    if not isinstance(status, str):
        return {"status": "unknown"}
    return {"status": "error" if _FAILED.search(status) else "unknown", "termination": status}


def _mark_unsampled(draft: Draft, info: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Mark a run that no model made, and a last reply that is the agent's own."""
    replies = [step for step in draft.trajectory["steps"] if step["source"] == "agent" and "llm_call_count" not in step]
    stats = part_of(info, "model_stats")
    counted = [stats.get(name) for name in ("tokens_sent", "tokens_received")]
    if replies and (counted == [0, 0] or part_of(config, "agent", "model").get("name") in _UNSAMPLED):
        draft.run["demonstration"] = True
        draft.repairs.append("no tokens were sent or received, or the model is a replay: taken as made by no model")
    last = replies[-1] if replies else {}
    status, action = info.get("exit_status"), last.get("extra", {}).get("action")
    gave_up = action == "" and isinstance(status, str) and _GAVE_UP.search(status) is not None
    if (gave_up or action in _OWN_ACTIONS) and not ("tool_calls" in last or "reasoning_content" in last):
        last["llm_call_count"] = 0
        draft.repairs.append("a last reply in which the agent gave up, and not the model: no call of the model")


def _mark_shortened(steps: list[dict[str, Any]], kept: int | None) -> None:
    """Mark the first step in front of which more observations stand than were sent, as the configuration says."""
    if kept is None or any("context_management" in step.get("extra", {}) for step in steps):
        return
    seen = 0
    for step in steps:
        if step["source"] == "agent" and seen > kept:
            management = {"type": "last_n_observations", "boundary": "replace"}
            step.setdefault("extra", {})["context_management"] = management
            return
        seen += len(step.get("observation", {}).get("results", ()))


IMPORTER = SweAgentImporter()
"""The importer, as the registry names it."""
