"""Write the traces of `make_traces.py` as other producers would have, for formats whose public files are very short.

    make_formats.py INBOX OUT_DIR

INBOX                        the folder of JSON lines that make_traces.py wrote
OUT_DIR/claude-code/N.jsonl  a session of Claude Code each: a record for every block, tools' results twice, as it does
OUT_DIR/otel-genai.jsonl     a line of OTLP JSON for each trace: a span for the agent, every call and every tool; each
                             call repeats what was said before it, as the conventions ask
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

Json = dict[str, Any]

_START = 1_790_000_000_000_000_000
_SECOND = 1_000_000_000


def session(trajectory: Json) -> Iterator[Json]:
    """Yield the records of a Claude Code session that holds the steps of `trajectory`."""
    name = trajectory["trajectory_id"]
    common = {"isSidechain": False, "userType": "external", "cwd": "/project", "sessionId": name, "version": "2.0.76"}
    before = None
    for number, (kind, message, more) in enumerate(_records(trajectory)):
        own = f"{name[:24]}-{number:04d}"
        time = f"2026-11-29T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        yield {
            "uuid": own,
            "parentUuid": before,
            **common,
            "gitBranch": "main",
            "type": kind,
            "message": message,
            **more,
            "timestamp": time,
        }
        before = own


def _records(trajectory: Json) -> Iterator[tuple[str, Json, Json]]:
    """Yield type, message and further members of each record."""
    for step in trajectory["steps"]:
        if step["source"] == "system":
            continue
        if step["source"] == "user":
            yield "user", {"role": "user", "content": step["message"]}, {}
            continue
        reply = {"id": f"msg_{step['step_id']:04d}", "model": trajectory["agent"]["model_name"], "type": "message"}
        metrics = step["metrics"]
        usage = {"input_tokens": metrics["prompt_tokens"], "output_tokens": metrics["completion_tokens"]}
        call = step["tool_calls"][0]
        for block in (
            {"type": "thinking", "thinking": step["reasoning_content"], "signature": ""},
            {"type": "text", "text": step["message"]},
            {"type": "tool_use", "id": call["tool_call_id"], "name": call["function_name"], "input": call["arguments"]},
        ):
            yield "assistant", {**reply, "role": "assistant", "content": [block], "usage": usage}, {}
        text = step["observation"]["results"][0]["content"]
        result = {"tool_use_id": call["tool_call_id"], "type": "tool_result", "content": text, "is_error": False}
        given = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        yield "user", {"role": "user", "content": [result]}, {"toolUseResult": given}


def spans(trajectory: Json) -> Json:
    """Return the OTLP JSON export of one run that holds the steps of `trajectory`."""
    trace, agent = trajectory["trajectory_id"], f"{1:016x}"
    system, user, *replies = trajectory["steps"]
    said = [{"role": "user", "parts": [_text(user["message"])]}]
    made = [_span(trace, agent, None, 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bench-agent"})]
    for number, step in enumerate(replies, 1):
        call, text = step["tool_calls"][0], step["observation"]["results"][0]["content"]
        reply = {"role": "assistant", "parts": _parts(step, call), "finish_reason": "tool_call"}
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": trajectory["agent"]["model_name"],
            "gen_ai.usage.input_tokens": step["metrics"]["prompt_tokens"],
            "gen_ai.usage.output_tokens": step["metrics"]["completion_tokens"],
            "gen_ai.system_instructions": orjson.dumps([_text(system["message"])]).decode(),
            "gen_ai.tool.definitions": orjson.dumps(trajectory["agent"]["tool_definitions"]).decode(),
            "gen_ai.input.messages": orjson.dumps(said).decode(),
            "gen_ai.output.messages": orjson.dumps([reply]).decode(),
        }
        made.append(_span(trace, f"{2 * number:016x}", agent, 2 * number, attributes))
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["function_name"],
            "gen_ai.tool.call.id": call["tool_call_id"],
            "gen_ai.tool.call.result": text,
        }
        made.append(_span(trace, f"{2 * number + 1:016x}", agent, 2 * number + 1, tool))
        answer = {"type": "tool_call_response", "id": call["tool_call_id"], "response": text}
        said += [{"role": "assistant", "parts": reply["parts"]}, {"role": "tool", "parts": [answer]}]
    resource = {"attributes": _listed({"service.name": "bench"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "bench"}, "spans": made}]}]}


def _parts(step: Json, call: Json) -> list[Json]:
    called = {"id": call["tool_call_id"], "name": call["function_name"], "arguments": call["arguments"]}
    return [
        {"type": "reasoning", "content": step["reasoning_content"]},
        _text(step["message"]),
        {"type": "tool_call", **called},
    ]


def _text(text: str) -> Json:
    return {"type": "text", "content": text}


def _span(trace: str, own: str, parent: str | None, second: int, attributes: Json) -> Json:
    """Return a span of half a second that begins `second` seconds into the run."""
    start = _START + second * _SECOND
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + _SECOND // 2)}
    above = {} if parent is None else {"parentSpanId": parent}
    return {"traceId": trace, "spanId": own, **above, "name": "span", **times, "attributes": _listed(attributes)}


def _listed(attributes: Json) -> list[Json]:
    """Return attributes as OTLP JSON lists and types them."""
    typed = {str: "stringValue", int: "intValue"}
    return [
        {"key": name, "value": {typed[type(value)]: str(value) if isinstance(value, int) else value}}
        for name, value in attributes.items()
    ]


def main() -> None:
    """Write each trace in every format."""
    inbox, out = Path(sys.argv[1]), Path(sys.argv[2])
    (out / "claude-code").mkdir(parents=True, exist_ok=True)
    with (out / "otel-genai.jsonl").open("wb") as otel:
        for number, line in enumerate(line for file in sorted(inbox.glob("*.jsonl")) for line in file.open("rb")):
            trajectory = orjson.loads(line)
            records = b"".join(orjson.dumps(record) + b"\n" for record in session(trajectory))
            (out / f"claude-code/{number:05d}.jsonl").write_bytes(records)
            otel.write(orjson.dumps(spans(trajectory)) + b"\n")


if __name__ == "__main__":
    main()
