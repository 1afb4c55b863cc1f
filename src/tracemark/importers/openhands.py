"""Sessions of OpenHands: events of its first generation, rows of its evaluations, and conversations of its SDK.

A session is a list of events, an object that holds it (`items`, `events`, `trajectory`), JSON lines, or a folder with a
file for each event, which are one record then. A row of an evaluation (`output.jsonl`) holds the events as `history`,
with task, configuration and result. An SDK conversation lies beside a `base_state.json`, which is read with it.

Keeps: prompts, messages, replies, calls and what they gave as steps, each with the id of its event; a reply as the
model's own response holds it, once, with usage as metrics and the rest of the response in `extra.response`; what else
an event says of a call or an answer in the `extra` of that (`action_args`, `observation`, `extras`, `event`); the
tools that the agent was given as `agent.tool_definitions`, or in the prompt's `extra.tools` where they hold no schemas;
a context of the conversation in `extra.system_event`, out of the prompt; condensed history as `context_management`;
an agent that was delegated to as an embedded trajectory; what a user ran in `extra.user_tool_calls`; events that no
model saw in the root's `extra.events`, with the number of steps in front of them; of a row and of a state all else in
`extra.record` and `extra.state`.
Drops: the text for the screen (`message`) beside what an event does; responses that an event repeats; arguments of an
action that its call says; running totals but for the last; members that are null; a system event that says the same
again; hints for caching in texts; of a state its secrets.
Invents: `agent.version` ("unknown") where no event names one; ids of calls without one; roles of messages that name
none, by their source; an empty system step for an answer without its call. Named in `source.repairs`: so made ids, and
calls known only as actions that were made of them (`run.rendered`).

What a tool gave is not what the agent saw of it: OpenHands adds exit codes, folders and headers, and cuts long output,
and no event holds the result. Such answers are marked `content_missing` in their `extra`; recalled knowledge, errors
and commands of others, which the agent saw as texts that no event holds, are events (`event_type`); and a prompt is
marked that was sent with a context of the conversation behind it. No training row is made of a run with any of them,
which is nearly every run of the first generation.

The prompt of the `system` event is kept as `rendered`: it is made of a template and settings, and the template is in no
file. A model without calls of its own is sent another one, with the tools in it, and then the event shows no prompt.
The schemas are the tools. Runtime settings (`condenser`, `max_iterations`, `max_message_chars`, `function_calling`) are
those of a row or a state, unless the session contradicts it: then nothing of that configuration is used, which is a
finding `config-contradicted`. Calls that OpenHands took out of a text bear ids of its own (`toolu_01`): they show by
themselves that the model was not asked for calls, and the text that it wrote is not held (`run.rendered`). Another
system event with other content makes the run mixed. Of handlers nothing is held. Agent class, versions and commits are
labels.

Known limits: sub-conversations of the SDK are files of their own and are not put together; files of single events are
one record only in a plain folder, and are refused in an archive; tools that are held without schemas stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tracemark.findings import finding
from tracemark.importers import openhands_facts as facts
from tracemark.importers import openhands_sdk, openhands_session, openhands_v0
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Context, Document, Imported, Importer, Record, Refused, Unit
from tracemark.importers.documents import elements
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.guard import guarded
from tracemark.importers.head import Head
from tracemark.importers.members import mapping, object_in, without_null
from tracemark.importers.openhands_session import Session
from tracemark.importers.openhands_story import Told
from tracemark.importers.recorded_config import CONTRADICTED
from tracemark.importers.recovery import Entry
from tracemark.importers.usage import metrics_of
from tracemark.model.atif import VERSION

SUCCESS = (
    ("`resolved`, `success`, `passed`, `result` of `report` or `test_result`; `resolved`, `success` of a row", "by it"),
    ("`reward` or `score` in the same places", "by reward: success at ingest.success_reward, else failure"),
    ("one beyond ingest.success_reward, which is of another scale", "unknown, with a finding"),
    ("no success, and an `error`, or the state `error`, that is no limit of the harness", "error"),
    ("a limit of steps or cost, or a loop", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`instance_id`; `metadata.dataset`, `metadata.data_split`", "run.task, run.domain, run.split"),
    ("`id` of the state", "session_id"),
    ("`llm_config.model` or `agent.llm.model`, else that of the first response", "run.model.name, agent.model_name"),
    (f"of the same: {', '.join(f'`{name}`' for name in facts.SAMPLING)}", "run.sampling"),
    ("`openhands_version` of the system event", "agent.version"),
    ("`agent_class`, `git_commit`", "run.environment"),
    ("first and last `timestamp` of an event", "run.start, run.end"),
    ("`llm_metrics`, `metrics`, `stats`: accumulated usage and cost", "final_metrics"),
    ("`error`, the last state of agent or conversation with its reason", "outcome.termination"),
)
"""What beside the events goes to a place of its own."""

_STATE = "base_state.json"
_PAGE = re.compile(r"\d+-\d+\.json")
_WORDS = (b'"observation"', b'"action"', b'"kind"', b'"execution_status"')
_SECRET = ("id", "secret_registry", "stats")


class OpenHandsImporter(Importer):
    """Reads sessions of OpenHands."""

    name = "openhands"
    version = "1"
    surest = 95
    shows = ("prompt_templates", "tool_bindings", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 95 for events, what holds them, and the state of a conversation."""
        if not any(map(head.may_hold, _WORDS)):
            return 0
        return 95 if openhands_session.sure(head) or openhands_session.is_state(head) else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for rows; events that are lines are one document."""
        return "line" if head.lines and not openhands_session.is_event(head.value) else "document"

    def beside(self, name: str, head: Head) -> str | None:
        """Return why the state of a conversation, or a page of a session's cache, is no record."""
        if openhands_session.is_state(head) and not openhands_session.is_event(head.value):
            return "the state of an OpenHands conversation, read with its events"
        if _PAGE.fullmatch(name) and isinstance(head.value, list):
            return "a page of an OpenHands session's cache, which repeats the files of its events"
        return None

    def gathers(self, name: str, head: Head) -> str | None:
        """Return the session that a file of one event is part of."""
        return openhands_session.gathered(name, head)

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each session in the record."""
        for document in openhands_session.read(record):
            parts: Iterator[Document | Refused] = iter((document,))
            if isinstance(document, Document) and _are_rows(document.value):
                parts = elements(record, document)
            for part in parts:
                if isinstance(part, Refused):
                    yield part
                else:
                    yield guarded(self.name, part, partial(self._read, record, part))

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, record.context))


def _draft(document: Document, context: Context) -> Draft:
    if context.archive is not None and openhands_session.is_event(document.value):
        raise UnfitError("one event of a session: unpack the archive, in a folder its files are one record")
    session = openhands_session.session_of(document.value)
    if session is None:
        raise UnfitError("it holds no event of OpenHands")
    draft, contradicted = _of_sdk(session, context) if session.of_sdk else _of_old(session, context)
    if contradicted is not None:
        draft.findings.append(finding(CONTRADICTED, document.where, contradicted))
    doubt = facts.doubt(draft.outcome, context.limits.success_reward)
    if doubt is not None:
        draft.findings.append(finding("verdict-unread", document.where, doubt))
    return draft


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and openhands_session.is_row(value[0])


def _of_old(session: Session, context: Context) -> tuple[Draft, str | None]:
    """Return the draft of a session of the first generation, and what contradicts its configuration."""
    repairs: list[str] = []
    events = openhands_v0.Events(repairs, openhands_v0.delegations(session.events))
    for event in session.events:
        events.add(event)
    told, known, rest = events.story.told(), events.facts, session.rest
    metadata = mapping(rest.get("metadata"))
    model, converted = mapping(metadata.get("llm_config")), known.converted
    system = known.system or {}
    contradicted = facts.contradiction(model, converted) or _other_class(metadata, system)
    config = {} if contradicted is not None else metadata
    run = _run(session, rest, config)
    _add_model(run, mapping(config.get("llm_config")), known.models)
    labels = {"agent_class": system.get("agent_class") or config.get("agent_class")}
    labels["git_commit"] = config.get("git_commit")
    labels = {name: value for name, value in labels.items() if isinstance(value, str)}
    if labels:
        run["environment"] = labels
    if known.made or known.converted:
        run["rendered"] = True
    trajectory = _trajectory(told, run, system.get("openhands_version"), system.get("tools"))
    _embed(trajectory, events, run)
    end = facts.ending(rest.get("error"), [(known.state.get("agent_state"), known.state.get("reason"))])
    totals = facts.totals(mapping(rest.get("metrics")) or known.metrics)
    if totals:
        trajectory["final_metrics"] = totals
    _add_extra(trajectory, {"record": rest, "events": told.notes})
    settings = facts.of_row(config, converted)
    outcome = facts.outcome(rest, end, context.limits.success_reward)
    shown = _observed(told, settings, facts.asked_for_calls(model, known))
    # a configuration that is not there, or not believed, could not name it
    place = "`llm_config.model` of the metadata or a response" if config else None
    return Draft(trajectory, run, outcome, repairs, shown, model_place=place, mixed=told.mixed), contradicted


def _of_sdk(session: Session, context: Context) -> tuple[Draft, str | None]:
    """Return the draft of a conversation of the SDK, and what contradicts its state."""
    repairs: list[str] = []
    events = openhands_sdk.Events(repairs)
    for event in session.events:
        events.add(event)
    known, rest = events.facts, session.rest
    held = object_in(context.above(_STATE) or context.sibling(_STATE))
    state = held if held is not None else mapping(known.totals.get("full_state"))
    llm = mapping(mapping(state.get("agent")).get("llm"))
    contradicted = facts.contradiction(llm, known.converted) or _other_events(state, known)
    if contradicted is not None:
        state = {}
    agent = mapping(state.get("agent"))
    metrics = _own_metrics(state, agent, known)
    _add_metrics(known, metrics)
    told = events.story.told()
    run = _run(session, rest, mapping(rest.get("metadata")))
    _add_model(run, mapping(agent.get("llm")), [])
    if isinstance(agent.get("kind"), str):
        run["environment"] = {"agent_class": agent["kind"]}
    if known.made or known.converted:
        run["rendered"] = True
    trajectory = _trajectory(told, run, None, known.schemas)
    if isinstance(state.get("id"), str) and state["id"]:
        trajectory["session_id"] = state["id"]
    totals = facts.totals(metrics)
    if totals:
        trajectory["final_metrics"] = totals
    left = without_null(state, *_SECRET)
    _add_extra(trajectory, {"record": rest, "state": left, "events": told.notes})
    status = state.get("execution_status", known.status)
    failed = [("error", _said(known.error))] if known.error else []
    end = facts.ending(rest.get("error"), [*failed, (status, None)])
    settings = facts.of_state(state, known.converted)
    outcome = facts.outcome(rest, end, context.limits.success_reward)
    shown = _observed(told, settings, facts.asked_for_calls(llm, known))
    place = "`agent.llm.model` of the conversation's state" if state else None
    return Draft(trajectory, run, outcome, repairs, shown, model_place=place, mixed=told.mixed), contradicted


def _run(session: Session, rest: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a run that are not its model's; a task is taken out of the row."""
    run: dict[str, Any] = {}
    task = rest.get("instance_id")
    if isinstance(task, (str, int)) and not isinstance(task, bool):
        run["task"] = str(task)
        if isinstance(task, str):
            del rest["instance_id"]
    for name, place in (("dataset", "domain"), ("data_split", "split")):
        if isinstance(metadata.get(name), str):
            run[place] = metadata[name]
    times = [event.get("timestamp") for event in session.events if isinstance(event, dict)]
    times = [time for time in times if isinstance(time, str)]
    if times:
        run["start"], run["end"] = times[0], times[-1]
    return run


def _add_model(run: dict[str, Any], config: Mapping[str, Any], replied: list[str]) -> None:
    named = config.get("model")
    name = named if isinstance(named, str) else replied[0] if replied else None
    if name is not None:
        run["model"] = {"name": name}
    asked = facts.sampling(config)
    if asked:
        run["sampling"] = asked


def _trajectory(told: Told, run: Mapping[str, Any], version: Any, tools: Any) -> dict[str, Any]:
    if not told.steps:
        raise UnfitError("it holds no message of a conversation")
    agent = named_agent("openhands", version, run)
    if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
        agent["tool_definitions"] = tools
    elif tools is not None:
        told.steps[0].setdefault("extra", {})["tools"] = tools
    return {"schema_version": VERSION, "agent": agent, "steps": told.steps}


def _embed(trajectory: dict[str, Any], events: openhands_v0.Events, run: Mapping[str, Any]) -> None:
    """Embed the agents that were delegated to, and refer to them where they answered."""
    made = {}
    for child in events.facts.children:
        told, system = child.story.told(), child.facts.system or {}
        if not told.steps or child.name is None:
            continue
        own = _trajectory(told, run, system.get("openhands_version"), system.get("tools"))
        name, own["agent"]["extra"] = child.name[0], {"agent_class": child.name[1]}
        _embed(own, child, run)
        _add_extra(own, {"events": told.notes})
        made[name] = {**own, "trajectory_id": name}
    if made:
        trajectory["subagent_trajectories"] = list(made.values())
    for step in trajectory["steps"]:
        for result in step.get("observation", {"results": ()})["results"]:
            name = result.get("extra", {}).get(openhands_v0.DELEGATED)
            if isinstance(name, str) and name in made:
                result["subagent_trajectory_ref"] = [{"trajectory_id": name}]
                del result["extra"][openhands_v0.DELEGATED]


def _add_extra(trajectory: dict[str, Any], members: Mapping[str, Any]) -> None:
    held = {name: value for name, value in members.items() if value}
    if held:
        trajectory["extra"] = held


def _observed(told: Told, settings: list[Entry], asked: bool | None) -> dict[str, list[Entry]]:
    """Return what was recovered.

    A model that writes its calls as text is sent another prompt than the event holds, one with the tools in it: then
    the event is no message. Where it is not known how the model was asked, nothing is said of the prompt.
    """
    for step in told.steps if asked is False else ():
        if step["source"] == "system":
            step.setdefault("extra", {}).setdefault("event_type", "system")
    return {"runtime": settings, **({} if asked else {"prompt_templates": []})}


def _other_class(metadata: Mapping[str, Any], system: Mapping[str, Any]) -> str | None:
    said, seen = metadata.get("agent_class"), system.get("agent_class")
    if isinstance(said, str) and isinstance(seen, str) and said != seen:
        return f"metadata.agent_class is {said[:60]!r}, and the agent introduced itself as {seen[:60]!r}"
    return None


def _other_events(state: Mapping[str, Any], known: openhands_sdk.Facts) -> str | None:
    last = state.get("last_user_message_id")
    if isinstance(last, str) and known.ids and last not in known.ids:
        return "the state names a message of the user that is none of the events"
    return None


def _own_metrics(state: Mapping[str, Any], agent: Mapping[str, Any], known: openhands_sdk.Facts) -> Mapping[str, Any]:
    """Return the metrics of the agent's own model: the condenser's calls are not its own."""
    stats = mapping(state.get("stats")) or mapping(known.totals.get("stats"))
    by_usage = mapping(stats.get("usage_to_metrics")) or mapping(
        mapping(known.totals.get("stats")).get("usage_to_metrics")
    )
    own = mapping(agent.get("llm")).get("usage_id")
    for name in (own, "agent", "default"):
        if isinstance(name, str) and isinstance(by_usage.get(name), dict):
            return mapping(by_usage[name])
    return {}


def _add_metrics(known: openhands_sdk.Facts, metrics: Mapping[str, Any]) -> None:
    """Give each reply the usage that is reported for its response."""
    usages = metrics.get("token_usages")
    for usage in usages if isinstance(usages, list) else ():
        said = mapping(usage).get("response_id")
        entry = known.responses.get(said) if isinstance(said, str) else None
        if entry is not None:
            entry.metrics = metrics_of(without_null(usage, "response_id"))
            if type(usage.get("cache_read_tokens")) is int:
                entry.metrics["cached_tokens"] = usage["cache_read_tokens"]


def _said(error: Mapping[str, Any]) -> str | None:
    words = [error[name] for name in ("code", "detail") if isinstance(error.get(name), str)]
    return " ".join(words) or None


IMPORTER = OpenHandsImporter()
"""The importer, as the registry names it."""
