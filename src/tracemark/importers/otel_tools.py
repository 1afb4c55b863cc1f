"""The tools that a span records, and whether they are recorded whole.

The conventions advise against recording description and parameters of a tool, so a definition without them may be half
of what the model was told, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracemark.importers.otel_spans import Span, nested
from tracemark.importers.otel_values import elements, is_null, parsed, plain

DEFINITIONS = "gen_ai.tool.definitions"
"""Name of the attribute that holds them."""


def tools_of(span: Span) -> tuple[list[Any] | None, bool]:
    """Take the tools that a span records, and whether they are whole; None for none."""
    name = DEFINITIONS
    if not is_null(span.raw.get(name)):
        found = elements(span.raw[name], span.notes)
        if found is None:
            return None, False
        del span.raw[name]
        tools = [parsed(one, span.notes) for one in map(plain, found)]
        return tools, are_whole(tools)
    for prefix in ("llm.tools", "llm.request.functions"):
        numbered = nested(span, prefix)
        if numbered:
            tools = [_numbered_tool(one, span.notes) for one in numbered]
            return tools, are_whole(tools, ("parameters",))
    return None, False


def are_whole(tools: Sequence[Any], needs: Sequence[str] = ("description", "parameters")) -> bool:
    """Return whether each definition holds what a model is told.

    Args:
        tools: definitions as they are recorded.
        needs: members that a function's definition must have, since the convention lets them be left out.
    """
    return all(_is_whole(tool, needs) for tool in tools)


def _numbered_tool(one: Any, notes: list[str]) -> Any:
    held = one.get("tool", one) if isinstance(one, dict) else one
    schema = parsed(held.get("json_schema"), notes) if isinstance(held, dict) else None
    if isinstance(schema, dict):
        return schema
    if isinstance(held, dict) and isinstance(held.get("parameters"), str):
        return {**held, "parameters": parsed(held["parameters"], notes)}
    return held


def _is_whole(tool: Any, needs: Sequence[str]) -> bool:
    """Return whether a definition holds what a model is told; a provider's own tool has no more than its name."""
    if not isinstance(tool, dict):
        return False
    if tool.get("type") not in (None, "function"):
        return True
    inner = tool.get("function")
    holder = inner if isinstance(inner, dict) else tool
    return isinstance(holder.get("name"), str) and all(holder.get(name) is not None for name in needs)
