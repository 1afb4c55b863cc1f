"""Lines and items of Codex rollouts, one by one: what a line is, what an item says, how any kind of call is one."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracemark.importers.response_turn import chat_parts, looked_at, message_of
from tracemark.importers.session_lines import Line

CALLS = {
    "function_call": ("name", "arguments"),
    "custom_tool_call": ("name", "input"),
    "local_shell_call": ("local_shell", "action"),
    "web_search_call": ("web_search", "action"),
    "tool_search_call": ("tool_search", "arguments"),
    "image_generation_call": ("image_generation", "revised_prompt"),
}
"""Type of a call to the tool's name (of the first two the member that holds it) and the member of its arguments."""

OF_SERVER = ("web_search_call", "image_generation_call")
"""Types of calls that the model's server answers itself, with what no item holds."""

OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output")
"""Types of items that answer a call."""

COMPACTIONS = ("compaction", "context_compaction", "compaction_summary")
"""Types of items that stand for a context that was made shorter."""

SNAPSHOTS = ("ghost_snapshot",)
"""Types of items that the model never sees."""

ITEMS = ("message", "reasoning", *CALLS, *OUTPUTS, *COMPACTIONS, *SNAPSHOTS)
"""Types of items that a file without headers may hold bare."""

LINES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
"""Types of the lines of a rollout, which hold a `payload`."""

_INJECTED = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<skill>",
    "<user_shell_command>",
)


class Entry(NamedTuple):
    """One line of a rollout."""

    number: int
    kind: str
    """Its type, such as `response_item`; `state` for a line of another kind in a file without headers."""
    payload: dict[str, Any]
    time: Any
    """Its timestamp as it stands; None when it has none."""
    line: Line


def entry_of(line: Line) -> Entry | None:
    """Return what a line of a rollout is; None for one that is none."""
    value = line.value
    kind, payload, time = value.get("type"), value.get("payload"), value.get("timestamp")
    if isinstance(payload, dict) and isinstance(kind, str):
        return Entry(line.number, kind, payload, time, line)
    if isinstance(kind, str) and kind in ITEMS:
        return Entry(line.number, "response_item", value, time, line)
    if "record_type" in value:
        return Entry(line.number, "state", value, time, line)
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value and "payload" not in value:
        return Entry(line.number, "session_meta", value, time, line)
    return None


def is_terminal_log(value: dict[str, Any]) -> bool:
    """Return whether an object is a line of what the terminal program logs of itself, which is no rollout."""
    return {"ts", "dir", "kind"} <= value.keys() and "type" not in value


def is_injected(payload: dict[str, Any]) -> bool:
    """Return whether a message of the user's role is a text that the program put there, and begins no turn."""
    texts = texts_of(payload.get("content"))
    return bool(texts) and texts[0].lstrip().startswith(_INJECTED)


def texts_of(parts: Any) -> list[str]:
    """Return the texts of a list of parts; of a text itself."""
    if isinstance(parts, str):
        return [parts]
    found = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [text for text in found if isinstance(text, str)]


def spoken(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the user or the developer as a chat message."""
    rest = {name: value for name, value in payload.items() if name not in ("type", "tool_calls", "function_call")}
    content = rest.get("content")
    return {**rest, **_content(content)} if isinstance(content, list) else rest


def answered(payload: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to a call as a tool's chat message; of an output with text and flags the text was seen."""
    rest = {name: value for name, value in payload.items() if name not in ("type", "call_id", "output", "role")}
    message: dict[str, Any] = {**rest, "role": "tool", "tool_call_id": payload.get("call_id")}
    kind = payload.get("type")
    if kind != OUTPUTS[0]:
        message["kind"] = kind
    output = payload.get("output")
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        message["output_facts"] = {name: value for name, value in output.items() if name != "content"}
        message["content"] = output["content"]
    elif isinstance(output, list):
        message |= _content(output)
    elif "output" in payload:
        message["content"] = output
    elif "tools" in payload:
        message["content"] = message.pop("tools")
    return message


def reply_of(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a model gave at once as an assistant's chat message.

    What has no place in it stays in its `output`, item by item, which is left out where nothing is left.
    """
    message = message_of({"output": [_item(item) for item in items]})
    left = message["output"]
    for one, item in zip(left, items, strict=True):
        one["type"] = item["type"]
    if all(map(_is_bare, left)):
        del message["output"]
    if any(item["type"] in OF_SERVER for item in items):
        message["results_missing"] = True
    return message


def _item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as one of the kinds that become a part of a step."""
    kind = item["type"]
    if kind == "message" and isinstance(item.get("content"), str):
        return {**item, "content": [{"type": "output_text", "text": item["content"]}]}
    if kind == "function_call" or kind not in CALLS:
        return item
    name, member = CALLS[kind]
    rest = {key: value for key, value in item.items() if key not in (name, member)}
    arguments = item.get(member)
    if kind == "custom_tool_call":
        # free text, also where it happens to be JSON
        arguments = {"_raw": arguments}
    elif kind == "image_generation_call":
        arguments = {} if arguments is None else {member: arguments}
    called = item.get("name") if name == "name" else name
    return {**rest, "type": "function_call", "name": called, "arguments": arguments}


def _is_bare(left: dict[str, Any]) -> bool:
    """Return whether nothing is left of an item but its kind."""
    if left.get("type") == "function_call":
        return left.keys() == {"type"}
    parts = left.get("content")
    is_empty = isinstance(parts, list) and all(isinstance(part, dict) and part.keys() <= {"type"} for part in parts)
    return left.get("type") == "message" and left.keys() == {"type", "role", "content"} and is_empty


def _content(content: list[Any]) -> dict[str, Any]:
    """Return parts as the content of a chat message, and how closely the images in it were looked at."""
    return {"content": _joined(chat_parts(content)), **looked_at(content)}


def _joined(parts: list[Any]) -> Any:
    """Return a single text as a text, anything else as parts."""
    only = parts[0] if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"} else None
    return only["text"] if only is not None and only["type"] == "text" and isinstance(only["text"], str) else parts
