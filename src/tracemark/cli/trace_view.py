"""A trace as a reader sees it: what is known of it now, then its steps one after the other, whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tracemark.cli.layout import agent_in_words, write_report
from tracemark.cli.text import to_json
from tracemark.findings import Report
from tracemark.hidden import visible, visible_block

_MARGIN = "  "


def write_trace(report: Report, stream: TextIO) -> None:
    """Write a trace with its trajectory (members as `traces show` documents them) to `stream`."""
    members = {name: value for name, value in report.as_json().items() if name not in ("findings", "first")}
    trajectory = _mapping(members.pop("trajectory"))
    members["agent"] = agent_in_words(_mapping(members["agent"]))
    # what is true now stands first; where the first statement said otherwise, that is said and not left to be noticed
    otherwise = [{name: _known(said[name]) for name in said} for said in _list(members.pop("differs_from_first"))]
    write_report({**members, **({"the_first_statement_said_otherwise": otherwise} if otherwise else {})}, stream)
    for step in _list(trajectory.get("steps")):
        _write_step(_mapping(step), stream)


def _known(value: Any) -> Any:
    return "-" if value is None else value


def _write_step(step: Mapping[str, Any], stream: TextIO) -> None:
    stream.write(f"\n{step.get('step_id', '?')} {visible(str(step.get('source', '?')))}\n")
    if step.get("reasoning_content"):
        _write_text(f"(thinks) {step['reasoning_content']}", stream)
    _write_text(_words(step.get("message")), stream)
    for call in map(_mapping, _list(step.get("tool_calls"))):
        _write_text(f"→ {call.get('function_name')} {to_json(call.get('arguments')).decode()}", stream)
    for result in map(_mapping, _list(_mapping(step.get("observation")).get("results"))):
        _write_text(f"← {_words(result.get('content'))}", stream)


def _write_text(text: str, stream: TextIO) -> None:
    if text:
        stream.writelines(f"{_MARGIN}{line}".rstrip() + "\n" for line in visible_block(text).rstrip("\n").split("\n"))


def _words(content: Any) -> str:
    """Return the text of a message or observation; a part that is no text is named by its type."""
    if isinstance(content, str):
        return content
    parts = [_mapping(part) for part in _list(content)]
    return "\n".join(str(part["text"]) if "text" in part else f"[{part.get('type', 'part')}]" for part in parts)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
