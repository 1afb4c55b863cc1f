"""An annotation: a later statement about a trace, by a tool that says who it is.

Annotations are added and never changed. One replaces another only by naming its digest, never by being newer; so two
statements that nobody has settled are both there to be seen. An annotation holds no time: what was decided when is the
ledger's business, and the same inputs give the same annotation.
"""

from __future__ import annotations

from typing import Any, Literal

from tracemark.model.value import Digest, Maybe, Value

FORMAT = "tracemark/annotation/1"
"""The value of an annotation's `format`."""


class Tool(Value):
    """Who states it."""

    name: str
    """Verb or tool, such as `ingest`."""
    version: str
    """Its version."""
    parameters: Maybe[dict[str, Any]] = None
    """What it was run with; None when that cannot matter."""


class Annotation(Value):
    """One later statement."""

    format: Literal["tracemark/annotation/1"]
    """Always `tracemark/annotation/1`."""
    kind: str
    """Which sort of statement: `stamps`, `outcomes`, `sources`, `exports.sft`, …; also the name of its folder."""
    trace: Maybe[Digest] = None
    """The trace's id; None for a statement about many, whose `value` names them."""
    tool: Tool
    """Who states it."""
    value: dict[str, Any]
    """The statement; its members depend on the kind."""
    supersedes: Maybe[list[Digest]] = None
    """Digests of the annotations that this one replaces; None when it replaces none."""


def build(kind: str, value: dict[str, Any], tool: dict[str, Any], trace: str | None = None) -> dict[str, Any]:
    """Return the stored form of an annotation that supersedes nothing."""
    annotation = {"format": FORMAT, "kind": kind, "tool": tool, "value": value}
    if trace is not None:
        annotation["trace"] = trace
    return annotation
