"""A row of `results.jsonl` becomes a trace, with what `metadata.json` beside it says of all rows.

The messages of a row are `prompt`, which the environment made, and `completion`, the rest of the conversation. Rows of
tables hold calls as JSON texts and answers without an id: they are read and linked in order, and that is noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemark.findings import finding
from tracemark.importers import supplied, unspoken
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Context, Document
from tracemark.importers.conversation import Conversation, decoded, time_text
from tracemark.importers.finish import Draft, UnfitError
from tracemark.importers.members import mapping, object_in
from tracemark.importers.rewards import rewarded_in
from tracemark.importers.stated import names_model
from tracemark.importers.verifiers_outcome import stopped
from tracemark.model.atif import VERSION

RESULTS, METADATA = "results.jsonl", "metadata.json"
"""How the names of the two files of an evaluation end."""

_TIMES = ("generation_ms", "scoring_ms", "total_ms")
_SAMPLING = ("max_tokens", "temperature")
_LABELS = ("env_args", "base_url", "version_info", "date")
_NUMBERS = (int, float)
_NOTHING: Mapping[str, Any] = {}


def draft(document: Document, context: Context) -> Draft:
    """Return what a row becomes.

    Raises:
        UnfitError, NotMessagesError, UnknownRoleError: when it has not the shape of the format.
    """
    rest: dict[str, Any] = dict(document.value)
    repairs: list[str] = []
    steps = _steps(rest, repairs)
    known = context.once(("verifiers-metadata", context.folder, context.name), lambda: _metadata(context))
    metadata = known if known is not None else _NOTHING
    tools = _take_tools(rest, repairs)
    run = _run(rest, metadata)
    agent = named_agent(run.get("domain"), mapping(metadata.get("version_info")).get("env_version"), run, tools)
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": steps}
    metrics = _final_metrics(rest.get("token_usage"))
    if metrics:
        trajectory["final_metrics"] = metrics
    outcome, doubt = rewarded_in(context, rest.get("reward"))
    if "reward" in outcome or rest.get("reward") is None:
        rest.pop("reward", None)
    if rest.get("error"):
        outcome |= {"status": "error", "rule": "error"}
    ended = stopped(rest, rest.get("error"))
    if ended is not None:
        outcome["termination"] = ended
    checks = _checks(rest)
    if checks:
        outcome["checks"] = checks
    if rest:
        trajectory["extra"] = {"record": rest}
    made = Draft(trajectory, run, outcome, repairs)
    if doubt is not None and outcome["status"] == "unknown":
        made.findings.append(finding("verdict-unread", document.where, doubt))
    unknown = _unknown(run, context.batch)
    if known is not None:
        made.model_place = f"`model` of {METADATA}"
    elif unknown:
        told = f"there is no {METADATA} beside the results that could be read, nor a batch.yaml that says it"
        message = f"{told}: unknown: {', '.join(unknown)}"
        made.findings.append(finding("header-missing", document.where, message))
    return made


def _unknown(run: Mapping[str, Any], batch: Mapping[str, Any]) -> list[str]:
    """Return what of a run neither its row nor the batch says, in words."""
    is_known = {
        "environment": "domain" in run or "domain" in batch,
        "model": names_model(run) or names_model(batch),
        "sampling settings": "sampling" in run,
    }
    return [name for name, known in is_known.items() if not known]


def _steps(rest: dict[str, Any], repairs: list[str]) -> list[dict[str, Any]]:
    conversation = Conversation(repairs)
    for name in ("prompt", "completion"):
        messages = decoded(rest.pop(name, None), f"{name} written as JSON text: read", repairs)
        if isinstance(messages, str):
            raise UnfitError(f"{name} is a text without roles (text completion), and no list of messages")
        if messages is not None and not isinstance(messages, list):
            raise UnfitError(f"{name} is no list of messages")
        if messages and name == "prompt":
            _supply(conversation, messages)
        else:
            for index, message in enumerate(messages or ()):
                conversation.add(message, f"{name}/{index}")
    return conversation.steps or unspoken.steps(repairs)


def _supply(conversation: Conversation, messages: list[Any]) -> None:
    """Add the messages of a prompt; what trains nobody is marked: the assistant's, and a user's with nothing in it."""
    for index, message in enumerate(messages):
        count = len(conversation.steps)
        step = conversation.add(message, f"prompt/{index}")
        if len(conversation.steps) == count:
            continue
        if step["source"] == "agent":
            supplied.mark(step, conversation.repairs)
        elif step["source"] == "user" and step["message"] in ("", []):
            step.setdefault("extra", {})["message_missing"] = True
            conversation.repairs.append("a user's message with nothing in it, as where an image was not kept: marked")


def _take_tools(rest: dict[str, Any], repairs: list[str]) -> list[Any] | None:
    """Remove the tools from a row and return them; None when it has none, which does not say that none were offered."""
    notes: list[str] = []
    tools = _definitions(rest.get("tool_defs"), notes)
    if tools is not None:
        del rest["tool_defs"]
        repairs += notes
        return tools
    notes = []
    info = decoded(rest.get("info"), "info written as JSON text: read", notes)
    tools = _definitions(info.get("oai_tools"), notes) if isinstance(info, dict) else None
    if tools is not None:
        rest["info"] = {name: member for name, member in info.items() if name != "oai_tools"}
        repairs += notes
    return tools


def _definitions(value: Any, notes: list[str]) -> list[Any] | None:
    note = "tools written as JSON text: read"
    tools = decoded(value, note, notes)
    if not isinstance(tools, list) or not tools:
        return None
    entries = [decoded(tool, note, notes) for tool in tools]
    return entries if all(isinstance(tool, dict) for tool in entries) else None


def _run(rest: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    for name in ("example_id", "id"):
        if type(rest.get(name)) in (int, str) and rest[name] != "":
            run["task"] = str(rest.pop(name))
            break
    domain = next((metadata[name] for name in ("env_id", "env") if isinstance(metadata.get(name), str)), None)
    if domain is not None:
        run["domain"] = domain
    if isinstance(metadata.get("model"), str):
        run["model"] = {"name": metadata["model"]}
    sampling = metadata.get("sampling_args")
    if not isinstance(sampling, dict):
        sampling = {name: metadata[name] for name in _SAMPLING if metadata.get(name) is not None}
    if sampling:
        run["sampling"] = sampling
    labels = {name: metadata[name] for name in _LABELS if metadata.get(name) not in (None, {}, "")}
    if labels:
        run["environment"] = labels
    timing = rest.get("timing")
    start = time_text(timing.get("start_time")) if isinstance(timing, dict) else None
    if start is not None:
        run["start"] = start
    return run


def _final_metrics(usage: Any) -> dict[str, Any]:
    """Return the tokens of a run; they are written as numbers with a fraction, and stay in the record as they are."""
    found: dict[str, Any] = {}
    for place, name in (("total_prompt_tokens", "input_tokens"), ("total_completion_tokens", "output_tokens")):
        value = usage.get(name) if isinstance(usage, dict) else None
        if type(value) is int or (isinstance(value, float) and value.is_integer()):
            found[place] = int(value)
    return found


def _checks(rest: dict[str, Any]) -> dict[str, Any]:
    """Remove the metrics from a row and return them: its numbers, and `metrics` where they stand together."""
    found = {name: value for name, value in rest.items() if type(value) in _NUMBERS and name not in _TIMES}
    if isinstance(rest.get("metrics"), dict) and rest["metrics"]:
        found["metrics"] = rest["metrics"]
    for name in found:
        del rest[name]
    return found


def _metadata(context: Context) -> Mapping[str, Any] | None:
    """Return what stands beside the results; None when it cannot be read."""
    if not context.name.endswith(RESULTS):
        return None
    return object_in(context.sibling(context.name.removesuffix(RESULTS) + METADATA))
