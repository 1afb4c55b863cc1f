"""Runs of mini-swe-agent: one JSON document per run, in version 1, in version 2, or as a bare list of messages.

A document holds `info` (configuration, exit status, submission), `messages`, and `trajectory_format`; programs around
the agent merge sections of their own into it. Version 1 speaks in text: an action stands in the reply, and the user's
next message is what the shell gave. Version 2 calls tools, in the shape of the Chat Completions or the Responses API.

Keeps: messages, calls, answers and reasoning as steps (`conversation`, `response_turn`); what a command gave as
`raw_output` in the result's `extra`, under the names by which the observation template asks for it; usage and cost as
metrics, the replying model as the step's; `info` in the root's `extra.info`, with its whole configuration, and any
other member of the document under its own name; what is left of a provider's response in the step's `extra.response`;
an exit message in the root's `extra.exit`, with the number of steps in front of it.
Drops: of a provider's response the message that the step is; `extra.actions` that repeat the step's calls; of an exit
message what `info` says too; members of messages, of their `extra` and of responses that are null.
Invents: `agent.name` and, where `info` names none, `agent.version` ("unknown"); ids of calls without one. In a text
conversation, that the user's message behind a reply is its observation (`original_role` user).

The configuration holds the prompt templates, and they are compared with the first messages (`recorded_config`). A
configuration that they contradict is not used, not even for the facts of the run, and that is a finding
`config-contradicted`. From one that they confirm come the templates of observations and format errors (`constant`), and
as runtime the agent's settings, the limit of a command's time and its environment variables, `parallel_tool_calls`,
patterns for actions, and whether a stage `patch_repair` ran. A template with conditions gives its message as
`rendered`. The shell tool's schema is not stored, so of the tools nothing is known; a bare list shows its prompt alone.
Image, paths, class paths, versions and the model are labels.

In version 1 people may write a command in the model's place. So a reply without a provider's response, in a run where
others have one, is marked `is_copied_context`, and no export takes the run. A summary in place of the reasoning was not
written by the model either: such a trace counts as `run.rendered`.

Known limits: a document says how a run stopped and never whether it solved its task, so the status is unknown unless an
exception ended it. Commands of a version 1 run stay in the text of the reply, where the model wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tracemark.findings import finding
from tracemark.importers import recorded_config, recovery
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit
from tracemark.importers.content import text_of
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, NewerError, UnfitError, drafted
from tracemark.importers.head import SPACE, Head
from tracemark.importers.members import mapping
from tracemark.importers.mini_swe_agent_turns import Turns
from tracemark.importers.recorded_config import Judgement, Prompt
from tracemark.importers.recovery import Entry
from tracemark.importers.usage import totals_of
from tracemark.model.atif import VERSION

SUCCESS = (
    ("an exception in `info` or in the exit message: `traceback` or `exception_str`", "error"),
    ("any `exit_status` without one, `Submitted` too: nobody graded", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status."""

MEMBERS = (
    ("`instance_id`", "run.task"),
    ("`info.config.model.model_name`", "run.model.name, agent.model_name"),
    ("`info.config.model.model_kwargs`", "run.sampling"),
    ("`image` of `info.config.environment`; `agent_type`, `model_type`, `environment_type`", "run.environment"),
    ("`info.mini_version`", "agent.version"),
    ("`info.model_stats`", "final_metrics"),
    ("`info.exit_status`, else that of the exit message", "outcome.termination"),
)
"""What beside the messages goes to a place of its own."""

_FORMAT = "mini-swe-agent-"
_WORDS = (b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", b"MINI_SWE_AGENT_FINAL_OUTPUT")
_USUAL = re.compile(rb'\s*\{\s*"info"\s*:\s*\{\s*"(?:model_stats|exit_status)"\s*:')
_BARE = re.compile(rb'\s*\[\s*\{[^\[\]{}]*?"role"\s*:\s*"')
_PROMPTS = {"system": "system_template", "instance": "instance_template"}
_TYPES = ("agent_type", "model_type", "environment_type")
_FAULTS = ("traceback", "exception_str")
_TOTALS = {"instance_cost": "total_cost_usd"}
_PATHS = ("output_path",)
_OF_MODEL = ("action_regex", "multimodal_regex")
_OF_REQUESTS = ("parallel_tool_calls", "stop", "tool_choice")


class MiniSweAgentImporter(Importer):
    """Reads runs of mini-swe-agent."""

    name = "mini-swe-agent"
    version = "1"
    surest = 100
    shows = ("prompt_templates", "observation_handlers", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 100 for a document that names the format, 95 for one of its shape, 90 for a list of its messages.

        A bare list is one of mini-swe-agent when one of its first two messages tells how the agent submits.
        """
        if head.data.lstrip(SPACE)[:1] == b"[":
            return 90 if any(map(head.may_hold, _WORDS)) and _is_bare(head) else 0
        if not (head.may_hold(b'"mini_version"') or head.may_hold(b'"trajectory_format"')):
            return 0
        if not head.complete and _USUAL.match(head.data) and head.may_hold(b'"mini_version"'):
            # what every version writes first: neither parsed nor scanned
            return 95
        value, members = head.value, head.members
        if isinstance(value, dict):
            if str(value.get("trajectory_format")).startswith(_FORMAT):
                return 100
            info = value.get("info")
            return 95 if isinstance(info, dict) and "mini_version" in info and "messages" in value else 0
        return 95 if members.get("info") == "{" and members.get("messages") == "[" else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each run in the record."""
        yield from each(self.name, record, partial(self._read, record), _is_array)

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document))


def _is_bare(head: Head) -> bool:
    value = head.value
    if value is None:
        return _BARE.match(head.data) is not None
    if not isinstance(value, list) or not all(isinstance(message, dict) and "role" in message for message in value[:2]):
        return False
    texts = [text_of(message.get("content")) for message in value[:2]]
    return any(word.decode() in text for text in texts for word in _WORDS)


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "messages" in value[0]


def _draft(document: Document) -> Draft:
    value = document.value
    rest: dict[str, Any] = dict(value) if isinstance(value, dict) else {"messages": value}
    said = rest.get("trajectory_format")
    if isinstance(said, str) and said.startswith(_FORMAT) and said.removeprefix(_FORMAT).split(".")[0] != "1":
        raise NewerError(f"the format {said[:40]!r} is newer than the ones that are read")
    messages = rest.pop("messages", None)
    if not isinstance(messages, list) or not messages:
        raise UnfitError("messages is no list of messages" if messages != [] else "messages is empty")
    info = mapping(rest.get("info"))
    repairs: list[str] = []
    turns = Turns(repairs, info)
    for index, message in enumerate(messages):
        turns.add(message, index)
    turns.end()
    if not turns.steps:
        raise UnfitError("messages holds no message of a conversation")
    config = mapping(info.get("config"))
    judged = _judged(config, turns.steps)
    run = _run(rest, config if judged.contradiction is None else {})
    if turns.is_summarised:
        run["rendered"] = True
        repairs.append("reasoning of which only a summary is there: the trace counts as rendered")
    agent = named_agent("mini-swe-agent", info.get("mini_version"), run)
    trajectory = {"schema_version": VERSION, "agent": agent, "steps": turns.steps}
    metrics = totals_of(mapping(info.get("model_stats")), _TOTALS)
    if metrics:
        trajectory["final_metrics"] = metrics
    if turns.exits:
        rest["exit"] = [*rest["exit"], *turns.exits] if isinstance(rest.get("exit"), list) else turns.exits
    if rest:
        trajectory["extra"] = rest
    shown = {"prompt_templates": judged.entries}
    if judged.confirmed:
        shown |= _components(config, "patch_repair" in info)
    draft = Draft(trajectory, run, _outcome(info, turns.ending), repairs, shown)
    if judged.contradiction is not None:
        draft.findings.append(finding(recorded_config.CONTRADICTED, document.where, judged.contradiction))
    return draft


def _run(rest: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    if isinstance(rest.get("instance_id"), str):
        run["task"] = rest.pop("instance_id")
    model, environment = mapping(config.get("model")), mapping(config.get("environment"))
    if isinstance(model.get("model_name"), str):
        run["model"] = {"name": model["model_name"]}
    if isinstance(model.get("model_kwargs"), dict) and model["model_kwargs"]:
        run["sampling"] = model["model_kwargs"]
    labels = {name: config[name] for name in _TYPES if isinstance(config.get(name), str)}
    if isinstance(environment.get("image"), str):
        labels["image"] = environment["image"]
    if labels:
        run["environment"] = labels
    return run


def _outcome(info: Mapping[str, Any], ending: Mapping[str, Any]) -> dict[str, Any]:
    failed = any(isinstance(one.get(name), str) and one[name] for one in (info, ending) for name in _FAULTS)
    outcome: dict[str, Any] = {"status": "error" if failed else "unknown"}
    status = info.get("exit_status") or ending.get("exit_status")
    if isinstance(status, str):
        outcome["termination"] = status
    return outcome


def _judged(config: Mapping[str, Any], steps: list[dict[str, Any]]) -> Judgement:
    """Compare the prompt templates of the configuration with the first messages."""
    agent, sent = mapping(config.get("agent")), _first_messages(steps)
    return recorded_config.judge(Prompt(part, agent.get(name), sent.get(part)) for part, name in _PROMPTS.items())


def _components(config: Mapping[str, Any], has_repair: bool) -> dict[str, list[Entry]]:
    """Return what a confirmed configuration says of handlers and runtime, by component."""
    held = {**mapping(config.get("agent")), **mapping(config.get("model"))}
    handlers = [name for name in held if name.endswith("_template") and name not in _PROMPTS.values()]
    return {
        "observation_handlers": recovery.settings({name: held[name] for name in handlers}),
        "runtime": recovery.settings(_runtime(config, has_repair)),
    }


def _first_messages(steps: list[dict[str, Any]]) -> dict[str, str]:
    """Return the first system and the first user message in front of the first reply."""
    found: dict[str, str] = {}
    for step in steps:
        if step["source"] == "agent":
            break
        found.setdefault("system" if step["source"] == "system" else "instance", text_of(step["message"]))
    return found


def _runtime(config: Mapping[str, Any], has_repair: bool) -> dict[str, Any]:
    agent, model, environment = (mapping(config.get(name)) for name in ("agent", "model", "environment"))
    requests = mapping(model.get("model_kwargs"))
    found = {name: value for name, value in agent.items() if not name.endswith("_template") and name not in _PATHS}
    found |= {name: model.get(name) for name in _OF_MODEL}
    found |= {name: requests.get(name) for name in _OF_REQUESTS}
    found |= {"command_timeout": environment.get("timeout"), "environment": environment.get("env")}
    if has_repair:
        found["patch_repair"] = True
    return {name: _exact(value) for name, value in found.items()}


def _exact(value: Any) -> Any:
    """Return a number as an integer where it is one: versions of the program write limits either way."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


IMPORTER = MiniSweAgentImporter()
"""The importer, as the registry names it."""
