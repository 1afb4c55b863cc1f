"""Spans of a small run, in the forms in which instrumentations write them."""

from __future__ import annotations

import json
from typing import Any

START = 1_767_225_600_000_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
AGENT = "00000000000000a1"
TOOL = {"type": "function", "name": "look_up", "description": "Find.", "parameters": {"type": "object"}}
SYSTEM = [{"type": "text", "content": "Be exact."}]
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"order": 7}}]}
ANSWER = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "on its way"}]}
DONE = {"role": "assistant", "parts": [{"type": "text", "content": "On its way."}]}

Json = dict[str, Any]


def typed(value: Any) -> Json:
    """Return a value as OTLP JSON types it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": listed(value)}}
    return {}


def listed(attributes: Json) -> list[Json]:
    """Return attributes as OTLP JSON lists them."""
    return [{"key": name, "value": typed(value)} for name, value in attributes.items()]


def span(number: int, attributes: Json, *, parent: str | None = None, at: int | None = None, **members: Any) -> Json:
    """Return a span that begins `at` milliseconds, else in the order of its number."""
    start = START + (number * 100 if at is None else at) * 1_000_000
    made = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": "span",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 5),
        "attributes": listed(attributes),
    }
    if parent is not None:
        made["parentSpanId"] = parent
    return {**made, **members}


def chat(number: int, sent: list[Any], *returned: Any, parent: str | None = None, **attributes: Any) -> Json:
    """Return the span of a model call; its members beside the attributes are those of `span`."""
    held = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": sent, "gen_ai.output.messages": list(returned)}
    return span(number, {**held, **{name.replace("__", "."): one for name, one in attributes.items()}}, parent=parent)


def agent(number: int = 0xA1, *, parent: str | None = None, name: str = "desk", **members: Any) -> Json:
    """Return the span of an agent, which begins before all others."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **members.pop("held", {})}
    return span(number, attributes, parent=parent, at=members.pop("at", 0), **members)


def tool(number: int, *, parent: str | None = None, said: str | None = "c1", **attributes: Any) -> Json:
    """Return the span of a tool."""
    held: Json = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
    if said is not None:
        held["gen_ai.tool.call.id"] = said
    return span(number, {**held, **{name.replace("__", "."): one for name, one in attributes.items()}}, parent=parent)


def run(**attributes: Any) -> list[Json]:
    """Return the spans of a run: an agent that calls a tool and answers."""
    return [
        agent(),
        chat(1, [ASKED], {**CALL, "finish_reason": "tool_call"}, parent=AGENT, **attributes),
        tool(2, parent=AGENT, gen_ai__tool__call__result={"state": "on its way"}),
        chat(3, [ASKED, CALL, ANSWER], {**DONE, "finish_reason": "stop"}, parent=AGENT, **attributes),
    ]


def export(*spans: Json, **resource: Any) -> Json:
    """Return an export of spans."""
    attributes = listed({"service.name": "desk", **resource})
    scopes = [{"scope": {"name": "made", "version": "1"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scopes}]}


def lines(*exports: Json) -> bytes:
    """Return exports as lines."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in exports)
