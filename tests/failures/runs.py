"""Stored lines for the tests of `failures`, as short as what they say."""

from __future__ import annotations

from typing import Any

Line = dict[str, Any]

USER = ("user", "please")


def call(
    tool: str, arguments: dict[str, Any], seen: Any = None, *, extra: dict[str, Any] | None = None, name: str = "c"
) -> Line:
    """Return an agent's step with one call and, unless `seen` is None, its answer."""
    step: Line = {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": name, "function_name": tool, "arguments": arguments}],
    }
    if seen is not None:
        result: Line = {"source_call_id": name, "content": seen}
        step["observation"] = {"results": [result if extra is None else result | {"extra": extra}]}
    return step


def bash(command: str, seen: str = "", code: int | None = None) -> Line:
    """Return a step with a command line, what it printed, and its exit code where one was recorded."""
    extra = None if code is None else {"raw_output": {"output": {"output": seen, "returncode": code}}}
    return call("bash", {"command": command}, seen, extra=extra)


def says(text: str, **members: Any) -> Line:
    """Return a step in which the agent writes a text."""
    return {"source": "agent", "message": text, **members}


def line(*steps: Line, status: str = "failure", **outcome: Any) -> Line:
    """Return a stored line with these steps behind a user's message."""
    run = {"task": "t", "domain": "d"}
    numbered = [
        {"step_id": number, **step} for number, step in enumerate([{"source": "user", "message": "please"}, *steps], 1)
    ]
    return {
        "format": "tracemark/trace/1",
        "harness": {},
        "outcome": {"status": status, **outcome},
        "run": run,
        "source": {},
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "", "version": ""}, "steps": numbered},
    }
