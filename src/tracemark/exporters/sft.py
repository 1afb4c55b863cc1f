r"""Rows for supervised fine-tuning, in the conversational shape that TRL reads: `{messages, tools}`.

A row is the conversation as the model saw it: nothing is summarised, trimmed or repaired. Where a trace does not say
what the model saw, or a usual loader would change it on the way, there is no row but a detail that says why. A text
that an importer had to write (`tracemark.exporters.rewritten`) was seen by no model.

Invariants:
- the same trace, harness and tracemark give the same bytes, one line; members stand as a chat template is to write them
  (`tracemark.exporters.order`), all else is as in canonical JSON;
- a tool that the harness binds is written in the order of its schema file, as the harness sends it; the order in which
  the model wrote its arguments is not kept by the store, so they stand in the order of the tool's properties;
- `content` is always there and always a text, `""` where nothing was said; a list of text parts becomes the text that
  chat templates make of it, the parts one behind the other with nothing between them. Readers that infer a column's
  type from the file (`datasets` before 4.7) cannot read one in which some contents are lists;
- `reasoning_content` only where it was recorded;
- arguments are objects; every tool message names its call and its tool;
- provenance columns begin with `tracemark_`, so that they neither collide with what a trainer looks for nor make the
  file look like a trace format of its own; they are all there, null where nobody knows.

Observations of a step without calls come as a user message: a harness without native calls has no other way to send
them. All tools of the harness stand in for the recorded ones where the trace records none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.exporters import order, rewritten
from tracemark.exporters.select import Facts
from tracemark.harness.tools import ToolSchemaError, reduce_tool
from tracemark.importers.content import is_event, text_of

NAME = "sft"
"""The exporter's name, in manifests and in the kind of its annotations (`exports.sft`)."""

VERSION = "1"
"""Raised when the same trace would give another row."""

FILE = "sft.jsonl"
"""The file of an export that holds its rows."""

COLUMNS = {
    "messages": "list: json",
    "tools": "list: json",
    "tracemark_fingerprint": "dtype: string",
    "tracemark_grader": "dtype: string",
    "tracemark_model": "dtype: string",
    "tracemark_task": "dtype: string",
    "tracemark_trace_id": "dtype: string",
}
"""The columns of a row, each with the feature that the dataset card declares for it."""

DETAILS = {
    "subagent": "a sub-agent's part of another run",
    "continuation": "the later part of another run",
    "continued": "the earlier part of a run that goes on in another document",
    "demonstration": "shown to a model, not made by one",
    "rendered": "the assistant's text is a rendering that the model never wrote",
    "copied-context": "a step is copied from another trace",
    "without-model-call": "an agent step was made without a call of the model",
    "no-assistant-step": "the agent never spoke",
    "no-prompt": "the agent speaks first, so nobody says what it was asked",
    "user-calls": "the user's side called tools",
    "context-rewritten": "the harness rewrote the context during the run, so no single conversation was seen",
    "stray-observation": "an observation belongs to no agent step",
    "event": "what the agent's program did stands among the messages, and what the model saw of it is not known",
    "unlinked-results": "it cannot be told which result answers which call",
    "rewritten": "an importer had to write, or to leave out, a part of what was said or called",
    "media": "an image or a sound is part of the conversation, and the store does not hold its bytes",
    "tools-unknown": "tools are called, and nobody says which were offered",
    "tools-unreadable": "a recorded tool definition is none",
    "unparsed-arguments": "a call's arguments were no JSON object",
    "integer-beyond-64-bit": "a number that common loaders turn into another one",
    "lone-surrogate": "half a character that common loaders cannot read",
}
"""Every detail of `not-trainable`, with its meaning."""

_UNLINKED = frozenset({"original_call_id", "original_source_call_id"})
_ESCAPED = re.compile(rb"(\\+)ud[89a-f]")
_PLAIN = frozenset({str, bool, float, type(None)})
_UNKNOWN = order.Arguments(None)
_CACHE = 64
_CACHED_KEY = 262_144


class Rendered(NamedTuple):
    """What a trace gives: a row, or the reason why there is none. Exactly one of the two is None."""

    line: bytes | None
    """The row, members in order, and a newline."""
    untrainable: str | None
    """A key of `DETAILS`."""


class _Offered(NamedTuple):
    tools: list[JSON]
    arguments: dict[str, order.Arguments]
    """The order of each tool's arguments, by its name."""


class _UntrainableError(Exception):
    """There is no row; the argument is a key of `DETAILS`."""


def render(trajectory: Mapping[str, JSON], known: Facts, bound: Sequence[dict[str, Any]] | None = None) -> Rendered:
    """Return the row of one trace.

    Args:
        trajectory: the ATIF document of the stored line.
        known: the trace as it stands now; gives the provenance columns, and the details that only a run's facts show.
        bound: definitions of the tools of the harness that made the trace (of one that is declared equivalent to the
            accepted harness: its own), members as its schema files have them; they give the order of equal recorded
            ones, and stand in where the trajectory records none. None when they are unknown.
    """
    try:
        if known.untrainable is not None:
            return Rendered(None, known.untrainable)
        messages = _messages(trajectory)
        offered = _tools(trajectory, messages, bound)
        _arrange(messages, offered.arguments)
        row = {
            "messages": messages,
            "tools": offered.tools,
            "tracemark_fingerprint": known.fingerprint,
            "tracemark_grader": known.grader,
            "tracemark_model": known.model,
            "tracemark_task": known.task,
            "tracemark_trace_id": known.id,
        }
    except _UntrainableError as error:
        return Rendered(None, str(error))
    line = digest.ordered(row, finite=True) + b"\n"
    # a letter is escaped so only when it is half a character; an even number of backslashes is text
    if b"\\ud" in line and any(len(match[1]) % 2 for match in _ESCAPED.finditer(line)):
        return Rendered(None, "lone-surrogate")
    return Rendered(line, None)


def _messages(trajectory: Mapping[str, JSON]) -> list[dict[str, JSON]]:
    extra = trajectory.get("extra") or {}
    if trajectory.get("continued_trajectory_ref") is not None or "original_continued_trajectory_ref" in extra:
        raise _UntrainableError("continued")
    messages: list[dict[str, JSON]] = []
    spoken = False
    for step in trajectory["steps"]:
        results = (step.get("observation") or {}).get("results") or []
        _refuse_unusual(step, results)
        if step["source"] == "agent":
            if not messages:
                raise _UntrainableError("no-prompt")
            spoken = True
            calls = step.get("tool_calls") or []
            messages.append(_assistant(step, calls))
            messages += _answers(calls, results)
        elif results:
            raise _UntrainableError("stray-observation")
        elif is_event(step, trajectory):
            raise _UntrainableError("event")
        else:
            messages.append({"role": step["source"], "content": _content(step.get("message"))})
    if not spoken:
        raise _UntrainableError("no-assistant-step")
    return messages


def _refuse_unusual(step: Mapping[str, JSON], results: list[dict[str, JSON]]) -> None:
    """Raise for a step that is not simply a part of the conversation which the model saw."""
    if step.get("is_copied_context"):
        raise _UntrainableError("copied-context")
    if step["source"] == "agent" and step.get("llm_call_count") == 0:
        raise _UntrainableError("without-model-call")
    extra = step.get("extra")
    if not isinstance(extra, dict):
        return
    if step["source"] != "agent" and (extra.get("tool_calls") or extra.get("user_tool_calls")):
        raise _UntrainableError("user-calls")
    management = extra.get("context_management")
    if management and not (isinstance(management, dict) and management.get("boundary") == "append"):
        raise _UntrainableError("context-rewritten")
    if rewritten.in_step(step, results):
        raise _UntrainableError("rewritten")


def _assistant(step: Mapping[str, JSON], calls: list[dict[str, JSON]]) -> dict[str, JSON]:
    message: dict[str, JSON] = {"role": "assistant", "content": _content(step.get("message"))}
    if step.get("reasoning_content") is not None:
        message["reasoning_content"] = step["reasoning_content"]
    if calls:
        message["tool_calls"] = [
            {
                "id": call["tool_call_id"],
                "type": "function",
                "function": {"name": call["function_name"], "arguments": _arguments(call)},
            }
            for call in calls
        ]
    return message


def _arguments(call: Mapping[str, JSON]) -> dict[str, JSON]:
    value: dict[str, JSON] = call["arguments"]
    if len(value) == 1 and "_raw" in value:
        raise _UntrainableError("unparsed-arguments")
    if rewritten.in_call(call):
        raise _UntrainableError("rewritten")
    if not _PLAIN.issuperset(map(type, value.values())):
        _refuse_inexact(value)
    return value


def _answers(calls: list[dict[str, JSON]], results: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Return the messages that carry the results of one agent step to the model."""
    if not calls:
        if len(results) > 1:
            raise _UntrainableError("unlinked-results")
        return [{"role": "user", "content": _seen(result)} for result in results]
    if len(calls) == len(results) == 1:
        return [_answer(calls[0], results[0])]
    by_id = {call["tool_call_id"]: call for call in calls}
    linked = [result.get("source_call_id") for result in results]
    if results and (len(by_id) != len(calls) or len(set(linked)) != len(linked) or not by_id.keys() >= set(linked)):
        raise _UntrainableError("unlinked-results")
    return [_answer(by_id[call_id], result) for call_id, result in zip(linked, results, strict=True)]


def _answer(call: dict[str, JSON], result: dict[str, JSON]) -> dict[str, JSON]:
    linked = result.get("source_call_id")
    if linked is None and not _UNLINKED.isdisjoint(result.get("extra") or ()):
        raise _UntrainableError("unlinked-results")
    if linked not in (None, call["tool_call_id"]):
        raise _UntrainableError("unlinked-results")
    name = call["function_name"]
    return {"role": "tool", "tool_call_id": call["tool_call_id"], "name": name, "content": _seen(result)}


def _seen(result: Mapping[str, JSON]) -> str:
    """Return the content of a result."""
    if "extra" in result and rewritten.in_result(result):
        raise _UntrainableError("rewritten")
    return _content(result.get("content"))


def _content(value: JSON) -> str:
    """Return a message's content: the text, or its text parts put together; null is the empty text."""
    if isinstance(value, list) and any(part.get("type") != "text" for part in value):
        raise _UntrainableError("media")
    return text_of(value)


def _arrange(messages: list[dict[str, JSON]], known: Mapping[str, order.Arguments]) -> None:
    """Put the arguments of all calls in the order of their tools' properties."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            function = call["function"]
            function["arguments"] = known.get(function["name"], _UNKNOWN).arranged(function["arguments"])


def _tools(
    trajectory: Mapping[str, JSON], messages: list[dict[str, JSON]], bound: Sequence[dict[str, Any]] | None
) -> _Offered:
    if "original_tool_definitions" in (trajectory["agent"].get("extra") or ()):
        raise _UntrainableError("tools-unreadable")
    recorded = trajectory["agent"].get("tool_definitions")
    called = any("tool_calls" in message for message in messages)
    if recorded is None or (called and not recorded):
        if bound is None and called:
            raise _UntrainableError("tools-unknown")
        recorded = list(bound or ())
    key = digest.canonical(recorded, finite=True), digest.ordered(list(bound or ()), finite=True)
    offered = _remembered(*key) if sum(map(len, key)) <= _CACHED_KEY else _offered(*key)
    if isinstance(offered, str):
        raise _UntrainableError(offered)
    return offered


def _offered(recorded: bytes, bound: bytes) -> _Offered | str:
    """Return recorded definitions as functions, or the detail that says why not.

    A definition that is wrapped already is kept to the letter, unless null members show that a table padded it.
    """
    own = {}
    for definition in digest.load_canonical(bound):
        reduced = _reduced(definition)
        if reduced is not None:
            own[digest.canonical(reduced)] = {"type": "function", "function": reduced}
    tools = []
    for definition in digest.load_canonical(recorded):
        reduced = _reduced(definition)
        if reduced is None:
            return "tools-unreadable"
        if not _is_function(definition) or _padded(definition):
            definition = {"type": "function", "function": reduced}
        tools.append(order.definition(definition, own.get(digest.canonical(reduced))))
    try:
        _refuse_inexact(tools)
    except _UntrainableError as error:
        return str(error)
    functions = [tool["function"] for tool in tools]
    return _Offered(tools, {tool["name"]: order.Arguments(tool.get("parameters")) for tool in reversed(functions)})


_remembered = lru_cache(maxsize=_CACHE)(_offered)
"""`_offered`, for most traces of a harness share their tools; it is asked for no very long ones."""


def _reduced(definition: JSON) -> dict[str, JSON] | None:
    try:
        return reduce_tool(definition)
    except ToolSchemaError:
        return None


def _is_function(definition: JSON) -> bool:
    function = definition.get("function") if isinstance(definition, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and definition.get("type") == "function"


def _padded(value: JSON) -> bool:
    """Return whether a member at any depth is null."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if None in item.values():
                return True
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def _refuse_inexact(value: JSON) -> None:
    """Raise when a number in `value` is one that common loaders change."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, int) and not -(2**63) <= item < 2**63:
            raise _UntrainableError("integer-beyond-64-bit")
