"""The spans of one trace as runs: which agent made which model call, and which agents are parts of others.

A call or a tool belongs to the nearest agent's span around it. An agent's span without calls of its own is a wrapper:
the agents within it take its place. An agent within one that has calls of its own is its sub-agent.

Invariants:
- every call belongs to at most one run, whatever the order and the files in which spans arrived;
- spans that name each other as parents in a circle are roots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracemark.importers.otel_calls import kind_of
from tracemark.importers.otel_spans import Span, in_order

_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")


@dataclass(slots=True)
class Group:
    """The spans of one agent, or those of a trace without any."""

    agent: Span | None
    """The agent's own span; None where no agent has one."""
    calls: list[Span] = field(default_factory=list)
    """Its own model calls, by time."""
    tools: list[Span] = field(default_factory=list)
    """The tools that it ran, by time."""
    inner: list[Group] = field(default_factory=list)
    """The agents within it, by time."""
    within: Span | None = None
    """The tool's span that it ran in; None when it ran in none of its parent's tools."""


class Tree:
    """Spans under their parents.

    Args:
        spans: those of one trace.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = in_order(spans)
        """By the time at which they began."""
        self._parents = _parents(self.spans)
        self._kinds = {id(span): kind_of(span) for span in self.spans}
        self._around: dict[int, tuple[Span | None, Span | None]] = {}
        self._loose = Group(None)
        self._groups: dict[int, Group] = {}
        self._runs_in: Counter[int] | None = None
        self._fill()

    def runs(self) -> list[Group]:
        """Return the runs of the trace: its outermost agents that called a model, else all calls as one group."""
        found = [run for group in self._loose.inner for run in _outermost(group)]
        return found or ([self._loose] if self._loose.calls else [])

    @property
    def loose(self) -> list[Span]:
        """The calls that no agent made, of a trace that has agents with calls."""
        return self._loose.calls

    def roots(self, agent: Span | None) -> list[Span]:
        """Return the spans that speak for a whole run: the agent's, and those around it up to another agent's.

        A span that is around several runs speaks for none of them.
        """
        if agent is None:
            return [span for span in self.spans if self._parent(span) is None]
        if self._runs_in is None:
            agents = (group.agent for group in self.runs() if group.agent is not None)
            self._runs_in = Counter(id(span) for one in agents for span in self._up_to_agent(one))
        return [span for span in self._up_to_agent(agent) if self._runs_in[id(span)] <= 1]

    def _up_to_agent(self, agent: Span) -> Iterator[Span]:
        """Yield an agent's span and those around it, up to another agent's."""
        yield agent
        at = self._parent(agent)
        while at is not None and self._kinds[id(at)] != "agent":
            yield at
            at = self._parent(at)

    def _fill(self) -> None:
        for span in self.spans:
            if self._kinds[id(span)] == "agent":
                self._groups[id(span)] = Group(span)
        for span in self.spans:
            kind = self._kinds[id(span)]
            if kind == "other":
                continue
            agent, tool = self._holders(span)
            holder = self._loose if agent is None else self._groups[id(agent)]
            if kind == "agent":
                group = self._groups[id(span)]
                group.within = tool
                holder.inner.append(group)
            else:
                (holder.calls if kind == "call" else holder.tools).append(span)
        for group in self._groups.values():
            agent = group.agent
            if agent is not None and not group.calls and not group.inner and any(one in agent.raw for one in _MESSAGES):
                # an agent that runs elsewhere: its span is all that is known of its calls
                group.calls.append(agent)

    def _parent(self, span: Span) -> Span | None:
        return self._parents.get(id(span))

    def _holders(self, span: Span) -> tuple[Span | None, Span | None]:
        """Return the nearest agent's span around one, and the nearest tool's below that; each None for none."""
        path: list[Span] = []
        at = self._parent(span)
        found: tuple[Span | None, Span | None] = (None, None)
        while at is not None:
            if self._kinds[id(at)] == "agent":
                found = (at, None)
                break
            path.append(at)
            if id(at) in self._around:
                found = self._around[id(at)]
                break
            at = self._parent(at)
        for one in reversed(path):
            self._around.setdefault(id(one), found)
            if self._kinds[id(one)] == "tool":
                found = (found[0], one)
        return found


def _parents(spans: Sequence[Span]) -> dict[int, Span]:
    """Return the span around each span, by identity; those in a circle have none."""
    by_id = {span.span_id: span for span in spans if span.span_id is not None}
    found = {id(span): by_id[span.parent_id] for span in spans if span.parent_id in by_id}
    done: set[int] = set()
    for span in spans:
        path: dict[int, None] = {}
        at: Span | None = span
        while at is not None and id(at) not in done and id(at) not in path:
            path[id(at)] = None
            at = found.get(id(at))
        if at is not None and id(at) in path:
            names = list(path)
            for name in names[names.index(id(at)) :]:
                del found[name]
        done.update(path)
    return found


def spans_of(group: Group) -> list[Span]:
    """Return every span of a group, and of those within it."""
    own = [] if group.agent is None or group.agent in group.calls else [group.agent]
    return [*own, *group.calls, *group.tools, *(span for inner in group.inner for span in spans_of(inner))]


def _outermost(group: Group) -> list[Group]:
    found: list[Group] = []
    waiting = [group]
    while waiting:
        one = waiting.pop(0)
        if one.calls:
            found.append(one)
        else:
            waiting = [*one.inner, *waiting]
    return found
