"""One shape for a tool definition, whatever wrapper a provider put around it.

A tool is what the model is told of it: its name, its description, the JSON Schema of its arguments, and whether the
provider enforces that schema. Everything else in a definition (cache hints, titles, annotations, output schemas) is
packaging. Two definitions are the same tool exactly when their reduced forms have the same canonical bytes.

Invariants:
- Members that are null are dropped at every depth, because table formats pad every row to the union of all rows. The
  one exception is ``const`` directly in a schema object, where null is a constraint; an element of a list is a value,
  not a member, and stays.
- Floats with an integral value become integers; booleans are not numbers.
- The order of members carries nothing, the order of list elements does.
- Reducing a reduced definition changes nothing, and the argument is never altered.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tracemark import digest

__all__ = ["Definitions", "ToolSchemaError", "read_tools", "reduce_tool"]

MAXIMUM_DEPTH: Final = 128
"""Levels of nesting in one definition; deeper ones are refused, so that hostile input cannot exhaust the stack."""

_SCHEMA_MEMBERS: Final = ("parameters", "input_schema", "inputSchema")
_PLAIN_TYPES: Final = (None, "function", "custom")
_ONE_SCHEMA: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LIST_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAP_OF_SCHEMAS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


class ToolSchemaError(ValueError):
    """A definition that cannot be reduced; the message says which member and why."""


def reduce_tool(raw: dict[str, Any]) -> dict[str, Any]:
    """Return ``{name, description, parameters}`` (and ``strict`` when true) of one tool definition.

    ``raw`` may be wrapped as ``{"type": "function", "function": {…}}``, or so as ``custom``, flat as in the Responses
    API, bare, or carry its schema as ``input_schema`` (Anthropic) or ``inputSchema`` (MCP). ``description`` and
    ``parameters`` are absent from the result when the definition has none; an empty description and an empty schema
    are kept as they are.

    Raises ToolSchemaError for anything that is not one tool with a schema of its own: no name, two schemas that
    disagree, a schema that is not an object, a tool built into a provider, or nesting beyond ``MAXIMUM_DEPTH``.
    """
    inner = _unwrap(raw)
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise ToolSchemaError(f"a tool needs a name that is text and not empty, found {_kind(name)}")
    reduced: dict[str, Any] = {"name": name}
    description = inner.get("description")
    if description is not None:
        if not isinstance(description, str):
            raise ToolSchemaError(f"tool {name!r}: the description is {_kind(description)}, not text")
        reduced["description"] = description
    parameters = _parameters(inner, name)
    if parameters is not None:
        reduced["parameters"] = parameters
    if inner.get("strict") is True or raw.get("strict") is True:
        reduced["strict"] = True
    return reduced


class Definitions(NamedTuple):
    """What a recorded list of tool definitions holds, each read by itself."""

    readable: list[dict[str, Any]]
    """The reduced definitions, sorted by name, each once; two of one name are two different ones."""
    unreadable: list[str | None]
    """The tool's name of each definition that cannot be reduced, in their order; None when it does not say."""


def read_tools(raw: Iterable[Any]) -> Definitions:
    """Reduce recorded definitions one by one, so that an odd one hides nothing of the others.

    The name of a tool that is built into a provider is that of the definition, or its type.
    """
    found: dict[bytes, dict[str, Any]] = {}
    unreadable = []
    for definition in raw:
        try:
            reduced = reduce_tool(definition)
            found[digest.canonical(reduced)] = reduced
        except (TypeError, ValueError):
            unreadable.append(_name_of(definition))
    return Definitions([found[key] for key in sorted(found, key=lambda key: (found[key]["name"], key))], unreadable)


def _name_of(raw: Any) -> str | None:
    """Return which tool a definition is about that cannot be reduced; None when it does not say."""
    if not isinstance(raw, dict):
        return None
    kind = raw.get("type")
    inner = raw.get(_wrapper(raw))
    for name in (inner.get("name") if isinstance(inner, dict) else None, raw.get("name")):
        if isinstance(name, str) and name:
            return name
    return kind if isinstance(kind, str) and kind not in _PLAIN_TYPES else None


def _wrapper(raw: dict[str, Any]) -> str:
    """Return the member in which the chat API wraps a definition of this type."""
    return "custom" if raw.get("type") == "custom" and raw.get("function") is None else "function"


def _unwrap(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ToolSchemaError(f"a tool definition is an object, found {_kind(raw)}")
    kind = raw.get("type")
    if kind == "object":
        raise ToolSchemaError(
            "the schema of a tool's arguments alone is no definition; put it into `parameters`, beside `name` and "
            "`description`"
        )
    if kind not in _PLAIN_TYPES:
        raise ToolSchemaError(f"tools of type {kind!r} are built into a provider and hold no schema of their own")
    wrapper = _wrapper(raw)
    inner = raw.get(wrapper)
    if inner is None:
        inner = raw
    if not isinstance(inner, dict):
        raise ToolSchemaError(f"member {wrapper!r} is {_kind(inner)}, not an object")
    if inner.get("format") is not None and all(inner.get(member) is None for member in _SCHEMA_MEMBERS):
        raise ToolSchemaError("a tool with a free-form 'format' in place of a schema cannot be compared")
    return inner


def _parameters(inner: dict[str, Any], name: str) -> dict[str, Any] | None:
    chosen: dict[str, Any] | None = None
    for member in _SCHEMA_MEMBERS:
        value = inner.get(member)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ToolSchemaError(f"tool {name!r}: member {member!r} is {_kind(value)}, not an object")
        schema = _schema(value, 0)
        if chosen is not None and not _same(chosen, schema):
            raise ToolSchemaError(f"tool {name!r} holds two schemas that disagree")
        chosen = schema
    return chosen


def _schema(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """Reduce an object that stands where JSON Schema expects a schema."""
    _check_depth(depth)
    reduced: dict[str, Any] = {}
    for key, value in schema.items():
        if value is None:
            if key == "const":
                reduced[key] = None
        elif key in _MAP_OF_SCHEMAS and isinstance(value, dict):
            reduced[key] = {name: _place(inner, depth + 2) for name, inner in value.items() if inner is not None}
        elif key in _LIST_OF_SCHEMAS and isinstance(value, list):
            reduced[key] = [_place(inner, depth + 2) for inner in value]
        elif key in _ONE_SCHEMA:
            reduced[key] = _place(value, depth + 1)
        else:
            reduced[key] = _value(value, depth + 1)
    return reduced


def _place(value: Any, depth: int) -> Any:
    return _schema(value, depth) if isinstance(value, dict) else _value(value, depth)


def _value(value: Any, depth: int) -> Any:
    """Reduce a plain value: here ``const`` is a member like any other."""
    _check_depth(depth)
    if isinstance(value, dict):
        return {key: _value(inner, depth + 1) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_value(inner, depth + 1) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare as data: Python takes true for 1, JSON does not."""
    try:
        return digest.canonical(one) == digest.canonical(other)
    except (TypeError, ValueError) as problem:
        raise ToolSchemaError(f"the definition is no JSON: {problem}") from None


def _check_depth(depth: int) -> None:
    if depth > MAXIMUM_DEPTH:
        raise ToolSchemaError(f"the schema is nested more than {MAXIMUM_DEPTH} levels deep")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")
