"""In which order the members of a row stand. Chat templates render them as they come, so order is training text.

A stored trace is canonical JSON: its members are sorted, and the order in which the run's own messages held them is not
kept. A row takes orders that can be known:

- a tool definition: that of the harness's own definition of the same tool, which is that of its schema file; beyond it
  the conventional one (`type`, `function`; `name`, `description`, `parameters`, `strict`; in a schema `type`,
  `description`, `enum`, `properties`, `required`, `items`), and whatever is in neither after it, sorted;
- arguments: that in which the tool's definition lists its properties, at every depth that the definition describes, and
  the rest after it, sorted. The order in which the model wrote them is unknown.

Invariants:
- order is all that changes: the canonical JSON of a value stays the same, and lists are left as they are;
- the result depends on values alone, not on the order in which members came;
- neither depth nor a schema that refers to itself exhausts anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tracemark.digest import JSON

_CONVENTION = {
    "tool": ("type", "function"),
    "function": ("name", "description", "parameters", "strict"),
    "schema": ("type", "description", "enum", "properties", "required", "items"),
    "named": (),
    "value": (),
}
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_VALUES = frozenset({"const", "default", "enum", "examples"})
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_CONTAINERS = frozenset({dict, list})
_MOST_PARTS = 64
_MOST_FLAT = 256
_LONGEST_FLAT = 4096


def definition(tool: dict[str, JSON], own: JSON = None) -> dict[str, JSON]:
    """Return a tool definition with its members in order; a copy, equal to `tool`.

    Args:
        tool: `{type, function: {name, description, parameters}}`.
        own: the harness's own definition of that tool, in the same wrapper; None when it binds no such tool.
    """
    result = [tool]
    stack: list[tuple[Any, Any, JSON, str]] = [(result, 0, own, "tool")]
    while stack:
        holder, at, like, place = stack.pop()
        item = holder[at]
        if isinstance(item, dict):
            first = (*like, *_CONVENTION[place]) if isinstance(like, dict) else _CONVENTION[place]
            rank = {key: number for number, key in enumerate(dict.fromkeys(first))}
            copy = {key: item[key] for key in sorted(item, key=lambda key: (rank.get(key, len(rank)), key))}
            holder[at] = copy
            known = like if isinstance(like, dict) else {}
            stack += [(copy, key, known.get(key), _inner(place, key)) for key in copy]
        elif isinstance(item, list):
            holder[at] = listed = list(item)
            same = like if isinstance(like, list) and len(like) == len(listed) else [None] * len(listed)
            stack += [(listed, number, same[number], place) for number in range(len(listed))]
    return result[0]


def _inner(place: str, key: str) -> str:
    if place == "tool":
        return "function" if key == "function" else "value"
    if place == "function":
        return "schema" if key == "parameters" else "value"
    if place == "schema":
        return "named" if key in _NAMED else "value" if key in _VALUES else "schema"
    return "schema" if place == "named" else "value"


class Arguments:
    """The order of one tool's arguments.

    Args:
        schema: the JSON Schema of the arguments, members in order; anything else says nothing.
    """

    def __init__(self, schema: JSON) -> None:
        self._root = schema
        # by identity: every schema in here is a part of `_root`, which stays
        self._known_parts: dict[int, list[dict[str, JSON]]] = {}
        self._known_ranks: dict[int, dict[str, int]] = {}
        self._flat: dict[tuple[str, ...], tuple[str, ...]] = {}

    def arranged(self, arguments: dict[str, JSON]) -> dict[str, JSON]:
        """Return the arguments of one call with their members in order; a copy, equal to `arguments`."""
        if not _CONTAINERS.isdisjoint(map(type, arguments.values())):
            return self._arranged_within(arguments)
        # nearly all calls are flat, and those of a tool name few sets of arguments
        names = tuple(arguments)
        if names not in self._flat:
            if sum(map(len, names)) + len(names) > _LONGEST_FLAT:
                return self._arranged_within(arguments)
            if len(self._flat) >= _MOST_FLAT:
                self._flat.clear()
            self._flat[names] = tuple(self._arranged_within(arguments))
        return {name: arguments[name] for name in self._flat[names]}

    def _arranged_within(self, arguments: dict[str, JSON]) -> dict[str, JSON]:
        result = [arguments]
        stack: list[tuple[Any, Any, JSON]] = [(result, 0, self._root)]
        while stack:
            holder, at, schema = stack.pop()
            item = holder[at]
            parts = self._parts(schema)
            if isinstance(item, list):
                holder[at] = listed = list(item)
                inner = next((part["items"] for part in parts if "items" in part), None)
                stack += [(listed, n, inner) for n, value in enumerate(listed) if isinstance(value, (dict, list))]
                continue
            places = sorted((*self._place(key, parts), key) for key in item)
            holder[at] = copy = {key: item[key] for _, _, key in places}
            for number, _, key in places:
                if isinstance(copy[key], (dict, list)):
                    stack.append((copy, key, _member(parts, number, key)))
        return result[0]

    def _place(self, key: str, parts: list[dict[str, JSON]]) -> tuple[int, int]:
        """Return which part of a schema lists the property, and at which place in it; past the last when none does."""
        for number, part in enumerate(parts):
            rank = self._ranks(part).get(key)
            if rank is not None:
                return number, rank
        return len(parts), 0

    def _ranks(self, part: dict[str, JSON]) -> dict[str, int]:
        known = self._known_ranks.get(id(part))
        if known is None:
            properties = part.get("properties")
            names = properties if isinstance(properties, dict) else ()
            known = self._known_ranks[id(part)] = {name: number for number, name in enumerate(names)}
        return known

    def _parts(self, schema: JSON) -> list[dict[str, JSON]]:
        """Return the schemas that may describe a value: `schema`, what it refers to, its alternatives, in turn."""
        known = self._known_parts.get(id(schema))
        if known is None:
            known = list(islice(self._alternatives(schema), _MOST_PARTS))
            if known:
                self._known_parts[id(schema)] = known
        return known

    def _alternatives(self, schema: JSON) -> Iterator[dict[str, JSON]]:
        seen: set[int] = set()
        stack = [schema]
        while stack:
            item = stack.pop()
            if not isinstance(item, dict) or id(item) in seen:
                continue
            seen.add(id(item))
            yield item
            inner = [self._target(item["$ref"])] if "$ref" in item else []
            for key in _ALTERNATIVES:
                if isinstance(item.get(key), list):
                    inner += item[key][:_MOST_PARTS]
            stack += reversed(inner)

    def _target(self, reference: JSON) -> JSON:
        """Return what a reference within the schema points to; None when it leads elsewhere."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found = self._root
        for name in reference.split("/")[1:]:
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found


def _member(parts: list[dict[str, JSON]], number: int, key: str) -> JSON:
    """Return the schema of a property that part `number` lists; where none does, that of additional ones."""
    if number < len(parts):
        return parts[number]["properties"][key]
    return next((part["additionalProperties"] for part in parts if "additionalProperties" in part), None)
