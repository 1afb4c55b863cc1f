"""Who is above whom, where things may be above one another in a circle.

A graph is given by what is directly below each of its nodes. What stands in a circle that nothing outside of it leads
to has nothing above it: each of the circle would be above itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

Node = TypeVar("Node")


class Ranks(NamedTuple):
    """What of a graph has nothing above it, and an order of the whole."""

    circular: frozenset[object]
    """The nodes of every circle that nothing outside of it leads to."""
    order: Mapping[object, int]
    """The place of each node, which is behind all above it; in a circle, behind one at least that leads to it. The
    first of a circle that nothing leads to is the one exception."""


def ranked(below: Mapping[Node, Collection[Node]]) -> Ranks:
    """Return the ranks of a graph, in time proportional to its size.

    Args:
        below: every node that has others below it, with these.
    """
    above: dict[Node, list[Node]] = {}
    for node, under in below.items():
        for one in under:
            above.setdefault(one, []).append(node)
    # what the first pass starts from and a later start reaches is below that one; the last start is below none
    heads = list(_starts(reversed(list(_starts(below, below))), below))
    circular: set[object] = set()
    for head in heads:
        # nothing leads to a head but its own circle
        circle: set[Node] = set()
        _spread(head, above, circle)
        if len(circle) > 1:
            circular |= circle
    return Ranks(frozenset(circular), _ordered(heads, below))


def _starts(nodes: Iterable[Node], below: Mapping[Node, Collection[Node]]) -> Iterator[Node]:
    """Yield, in order, the nodes that none of those before them reaches."""
    reached: set[Node] = set()
    for node in nodes:
        if node not in reached:
            _spread(node, below, reached)
            yield node


def _spread(start: Node, edges: Mapping[Node, Collection[Node]], reached: set[Node]) -> None:
    """Add to `reached` what a node leads to, and itself."""
    todo = [start]
    while todo:
        node = todo.pop()
        if node not in reached:
            reached.add(node)
            todo += edges.get(node, ())


def _ordered(heads: Iterable[Node], below: Mapping[Node, Collection[Node]]) -> dict[object, int]:
    """Return the places of the nodes: a node is left when all below it were, and the last one left comes first."""
    left: list[Node] = []
    seen: set[Node] = set()
    for head in heads:
        seen.add(head)
        way = [(head, iter(below.get(head, ())))]
        while way:
            node, rest = way[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                way.pop()
                left.append(node)
            else:
                seen.add(following)
                way.append((following, iter(below.get(following, ()))))
    return {node: place for place, node in enumerate(reversed(left))}
