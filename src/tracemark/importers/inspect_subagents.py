"""Sub-agents that ran as tools in an Inspect AI log: their calls, put together as embedded trajectories.

Such an agent has a span of its own within the span of a tool, and nothing of its conversation stands in the sample's
messages. Its last request holds the conversation up to there, and the reply to it is the end. What an agent left out of
its last request, to save room, is not put back.

An agent that took over by a handoff is no sub-agent: its replies stand in the sample's messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracemark.importers.conversation import Conversation, NotMessagesError, UnknownRoleError
from tracemark.importers.inspect_events import Attachments, Call, Calls
from tracemark.importers.inspect_messages import add, event_of
from tracemark.model.atif import VERSION


def embed(
    trajectory: dict[str, Any], calls: Calls, own: Iterable[Call], attachments: Attachments, repairs: list[str]
) -> None:
    """Add the trajectories of sub-agents to that of the sample, and refer to them where their tool answered.

    Args:
        trajectory: altered in place.
        calls: the model calls of the sample.
        own: those of them that are the agent's own.
        attachments: the texts that the sample holds once.
        repairs: gets a note for a sub-agent that cannot be read.
    """
    spans = calls.spans
    if not any(span.get("type") == "agent" for span in spans.values()):
        return
    is_own = {id(call.event) for call in own}
    groups: dict[str, list[Call]] = {}
    for call in calls.replies():
        span = _agent_span(call.event, spans) if id(call.event) not in is_own else None
        if span is not None:
            groups.setdefault(span, []).append(call)
    made = {}
    for span, group in groups.items():
        try:
            made[span] = _trajectory(span, spans[span], group, Conversation(repairs), (calls, attachments))
        except (UnknownRoleError, NotMessagesError) as error:
            repairs.append(f"a sub-agent whose messages cannot be read, left out: {error}")
    if made:
        trajectory["subagent_trajectories"] = list(made.values())
        _refer(trajectory["steps"], calls.events, made)


def _agent_span(event: Mapping[str, Any], spans: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the span of the agent that made a call, where that agent ran within a tool; else None.

    What a tool asked a model by itself is no agent's call.
    """
    found: str | None = None
    for name in _upwards(event.get("span_id"), spans):
        kind = spans[name].get("type")
        if kind == "agent" and found is None:
            found = name
        elif kind == "tool":
            return found
    return None


def _upwards(name: Any, spans: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a span and those around it, each once."""
    seen: set[str] = set()
    while isinstance(name, str) and name in spans and name not in seen:
        seen.add(name)
        yield name
        name = spans[name].get("parent_id")


def _trajectory(
    name: str,
    span: Mapping[str, Any],
    group: Sequence[Call],
    conversation: Conversation,
    log: tuple[Calls, Attachments],
) -> dict[str, Any]:
    last, (calls, attachments) = group[-1], log
    given = {call.message["id"]: call for call in group if isinstance(call.message.get("id"), str)}
    for index, message in enumerate([*attachments.put_back(calls.input_of(last)), last.message]):
        own_id = message.get("id") if isinstance(message, dict) else None
        call = last if message is last.message else given.get(own_id) if isinstance(own_id, str) else None
        event = None if call is None else attachments.put_back(event_of(call.event))
        add(conversation, message, f"the sub-agent's messages/{index}", event)
    agent: dict[str, Any] = {"name": str(span.get("name") or "unknown"), "version": "unknown"}
    agent["extra"] = {"model_calls": len(group)}
    tools = attachments.put_back(last.event.get("tools"))
    if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
        agent["tool_definitions"] = tools
    return {"schema_version": VERSION, "trajectory_id": name, "agent": agent, "steps": conversation.steps}


def _refer(steps: Iterable[dict[str, Any]], events: Iterable[Mapping[str, Any]], made: Mapping[str, Any]) -> None:
    """Let each answer of a tool that ran a sub-agent name its trajectory."""
    answered = {
        event["id"]: event["agent_span_id"]
        for event in events
        if event.get("event") == "tool"
        and isinstance(event.get("id"), str)
        and _is_key(event.get("agent_span_id"), made)
    }
    for step in steps:
        for result in step.get("observation", {"results": ()})["results"]:
            span = answered.pop(result.get("source_call_id"), None)
            if span is not None:
                result["subagent_trajectory_ref"] = [{"trajectory_id": span}]


def _is_key(value: Any, made: Mapping[str, Any]) -> bool:
    return isinstance(value, str) and value in made
