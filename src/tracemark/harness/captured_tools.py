"""What a live tool is in a manifest: its schema, and the code behind it where there is some.

A definition in any provider's wrapper, a tool of an MCP server and a pydantic model are schemas; a function or a class
is code, whose schema is made from its signature; a mapping with `schema` and `entry` is both, as in `harness.yaml`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tracemark.errors import UsageError
from tracemark.harness.captured_code import UnrecordedError
from tracemark.model.harness import DERIVED

_MEMBERS = {"schema", "entry", "mutates", "parameters"}


def listed(tools: Any) -> list[tuple[str, Any]]:
    """Return the tools of a mapping, a list or the answer of an MCP server to `tools/list`, with their names.

    Raises:
        UsageError: when they are something else, one has no name, or the answer has further pages.
    """
    if (inner := _of_server(tools)) is not None:
        tools = inner
    if isinstance(tools, Mapping):
        return list(tools.items())
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise UsageError("`tool_bindings` is no mapping, no list, and no answer to `tools/list`")
    return [(_name(tool), tool) for tool in tools]


def members(name: str, value: Any) -> dict[str, Any]:
    """Return the members of the binding of a tool; its `entry`, where there is one, is still live.

    Args:
        name: the tool's name.
        value: what stands for it.

    Raises:
        UnrecordedError: when it cannot be identified.
    """
    if isinstance(value, Mapping) and value.keys() & {"schema", "entry"} and value.keys() <= _MEMBERS:
        made = dict(value)
        if made.get("schema") is not None and made["schema"] != DERIVED:
            made["schema"] = schema(name, made["schema"])
        elif made.get("entry") is None:
            raise UnrecordedError("it has neither a schema nor code to make one from")
        else:
            made["schema"] = DERIVED
        return made
    if isinstance(value, Mapping) or _is_model(value) or hasattr(value, "inputSchema"):
        return {"schema": schema(name, value)}
    if callable(value):
        return {"schema": DERIVED, "entry": value}
    raise UnrecordedError(f"an object of `{type(value).__qualname__}` is no definition of a tool and no code")


def schema(name: str, value: Any) -> dict[str, Any]:
    """Return a tool definition for what stands for one.

    Raises:
        UnrecordedError: when it is none.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if _is_model(value):
        described = inspect.cleandoc(value.__doc__) if value.__doc__ else None
        try:
            parameters = value.model_json_schema()
        except (ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError) as error:
            raise UnrecordedError(f"the model gives no JSON Schema: {type(error).__name__}") from error
        return {"name": name, **({"description": described} if described else {}), "parameters": parameters}
    if hasattr(value, "inputSchema"):
        return {"name": value.name, "description": value.description, "inputSchema": value.inputSchema}
    raise UnrecordedError(f"an object of `{type(value).__qualname__}` is no definition of a tool")


def _is_model(value: object) -> bool:
    return isinstance(value, type) and callable(getattr(value, "model_json_schema", None))


def _of_server(value: Any) -> Any:
    """Return the tools in an answer to `tools/list`; None when it is none."""
    if isinstance(value, Mapping):
        tools, more = value.get("tools"), value.get("nextCursor")
        if not isinstance(tools, list) or not set(value) <= {"tools", "nextCursor", "_meta"}:
            return None
    else:
        tools, more = getattr(value, "tools", None), getattr(value, "nextCursor", None)
        if not isinstance(tools, list):
            return None
    if more:
        raise UsageError("the answer to `tools/list` has further pages", hint="ask for all of them, and give one list")
    return tools


def _name(tool: Any) -> str:
    """Return the name of a tool that stands in a list."""
    found: Any = None
    if isinstance(tool, Mapping):
        inner = tool.get("function")
        found = inner.get("name") if isinstance(inner, Mapping) else tool.get("name")
    elif hasattr(tool, "inputSchema"):
        found = tool.name
    else:
        found = getattr(tool, "__name__", None)
    if not isinstance(found, str) or not found:
        raise UsageError("a tool in the list has no name", hint="give a mapping of names to tools")
    return found
