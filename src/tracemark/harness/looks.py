"""How often a validator looks at one and the same value, before it is asked to.

It looks once for every way that leads from the schema to the value. References and alternatives multiply these ways: at
one level where they name each other, and from level to level where two of them lead on to the same member. What a
validator does cannot be cut short, so the ways are counted first.

Invariants:
- never too few, but for a schema that applies to its own value again, which counts once, and for what lies outside the
  schema. Too many where alternatives exclude each other;
- counting costs the size of the schema for each level of nesting, and ends where a further level adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_IN_PLACE_BY_NAME = ("dependentSchemas", "dependencies")
_ONE_OF = {"object": ("properties",), "array": ("prefixItems", "items")}
_EACH_OF = {
    "object": ("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
    "array": ("additionalItems", "unevaluatedItems", "contains"),
}
_KINDS = tuple(_ONE_OF)
_DEEPEST = 255


class Looks:
    """Counts the ways from one schema to the values of arguments.

    Args:
        schema: the schema; a boolean has none.
        most: where counting ends.
    """

    def __init__(self, schema: Any, most: int) -> None:
        self._most = most
        self._nodes: list[dict[str, Any]] = []
        self._bases: dict[int, str] = {}
        self._named: dict[str, list[dict[str, Any]]] = {}
        self._root = schema
        self._index(schema)
        self._levels: list[dict[tuple[int, str], int]] = []
        self._ended = False

    def exceed(self, value: Any) -> bool:
        """Return whether a value, or one within it, may be looked at more often than `most`."""
        depth = min(_nesting(value), _DEEPEST)
        while len(self._levels) <= depth and not self._ended:
            self._add_level()
        return self._of(self._root, min(depth, len(self._levels) - 1)) > self._most

    def _index(self, schema: Any) -> None:
        pending = [(schema, "")]
        while pending:
            value, base = pending.pop()
            if isinstance(value, dict):
                own = next((value[name] for name in ("$id", "id") if isinstance(value.get(name), str)), None)
                if own is not None:
                    base = _joined(base, own)
                if own is not None or value is schema:
                    self._named.setdefault(urldefrag(base)[0], []).append(value)
                for name in ("$anchor", "$dynamicAnchor"):
                    self._named.setdefault(f"{urldefrag(base)[0]}#{value.get(name)}", []).append(value)
                self._nodes.append(value)
                self._bases[id(value)] = base
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            pending += [(one, base) for one in inner]

    def _add_level(self) -> None:
        level: dict[tuple[int, str], int] = {}
        before = self._levels[-1] if self._levels else None
        self._levels.append(level)
        for node in self._nodes:
            for kind in _KINDS:
                self._count(node, kind)
        self._ended = level == before

    def _count(self, node: dict[str, Any], kind: str) -> int:
        level, key = self._levels[-1], (id(node), kind)
        if key not in level:
            level[key] = 1
            ways = 1 + sum(self._in_place(node, kind))
            if len(self._levels) > 1:
                ways += sum(self._below(node, kind))
            level[key] = min(ways, self._most + 1)
        return level[key]

    def _in_place(self, node: dict[str, Any], kind: str) -> Iterator[int]:
        for name in _REFERENCES:
            if isinstance(node.get(name), str):
                targets = self._targets(node, node[name])
                yield max((self._count(one, kind) for one in targets if isinstance(one, dict)), default=0)
        for name in (*_IN_PLACE, *_IN_PLACE_BY_NAME):
            yield from (self._count(one, kind) for one in _schemas(node.get(name), named=name in _IN_PLACE_BY_NAME))

    def _below(self, node: dict[str, Any], kind: str) -> Iterator[int]:
        depth = len(self._levels) - 2
        for name in _ONE_OF[kind]:
            inner = _schemas(node.get(name), named=name == "properties")
            yield max((self._of(one, depth) for one in inner), default=0)
        for name in _EACH_OF[kind]:
            yield from (self._of(one, depth) for one in _schemas(node.get(name), named=name == "patternProperties"))

    def _of(self, schema: Any, depth: int) -> int:
        return max((self._levels[depth].get((id(schema), kind), 1) for kind in _KINDS), default=1)

    def _targets(self, node: Mapping[str, Any], reference: str) -> list[Any]:
        place, fragment = urldefrag(_joined(self._bases[id(node)], reference))
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"{place}#{fragment}", [])
        return [_at(one, fragment) for one in self._named.get(place, [])]


def _schemas(value: Any, *, named: bool) -> list[dict[str, Any]]:
    """Return the schemas that a keyword holds: one, a list of them, or those of names."""
    inner = value.values() if named and isinstance(value, dict) else value if isinstance(value, list) else [value]
    return [one for one in inner if isinstance(one, dict)]


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def _at(schema: Any, pointer: str) -> Any:
    """Return what a pointer leads to; None where it leads nowhere."""
    found = schema
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return found


def _nesting(value: Any) -> int:
    """Return how many levels lie within a value."""
    depth, level = 0, [value]
    while True:
        level = [
            one
            for outer in level
            for one in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(one, dict | list)
        ]
        if not level:
            return depth + 1
        depth += 1
