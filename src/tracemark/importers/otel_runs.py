"""The runs of one trace: every outermost agent is one; a trace without agents has one for each of its conversations.

Where an agent has a span, all of its calls are one run, and a call that does not go on from the one before makes it
mixed. Where none has, calls that do not go on from one another are conversations of their own, and each is a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracemark.importers.finish import Draft, UnfitError
from tracemark.importers.otel_calls import Call, Reader, plain_all, system_of
from tracemark.importers.otel_facts import ANSWERED, environment, model_of, rest_of
from tracemark.importers.otel_outcome import ending, evaluations
from tracemark.importers.otel_parts import Message, is_system, messages
from tracemark.importers.otel_spans import Span, in_order
from tracemark.importers.otel_steps import Steps, Tools, described, text_of_attribute
from tracemark.importers.otel_tools import tools_of
from tracemark.importers.otel_tree import Group, Tree, spans_of
from tracemark.importers.otel_values import elements, time_of
from tracemark.model.atif import VERSION

UNREAD = "verdict-unread"
"""Code of the finding on evaluations that are no verdict."""

_DEEPEST = 32
_AGENT_NAMES = ("gen_ai.agent.name", "agent.name", "traceloop.entity.name")
_SESSIONS = ("gen_ai.conversation.id", "session.id")
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")


class NoContentError(UnfitError):
    """The calls of a trace are recorded without their messages."""


class Made(NamedTuple):
    """One run."""

    place: str
    """Which one of the trace's it is; empty when it is the only one."""
    draft: Draft
    spans: Sequence[Span]
    """The spans that it was made of, by time."""
    unread: str | None
    """What may be a verdict and is not read, in words; None when nothing is."""


def made(tree: Tree, groups: Sequence[Group], trace: str | None, repairs: Sequence[str]) -> Iterator[Made]:
    """Yield the runs of one trace.

    Args:
        tree: its spans.
        groups: the runs that they are.
        trace: its id; None when it has none.
        repairs: what was altered when they were put together.

    Raises:
        NoContentError: when no call of a run holds messages.
        UnfitError: when messages are recorded in a way that cannot be read.
        UnknownRoleError, NotMessagesError: as `Conversation.add`.
    """
    session = next((one for span in tree.spans if (one := _text(span, *_SESSIONS)) is not None), trace)
    reader = Reader()
    for number, group in enumerate(groups):
        notes = list(repairs)
        if group.agent is not None and tree.loose:
            notes.append(f"{len(tree.loose)} model calls outside of the agents' spans: left out")
        run = _Run(tree, group, notes, reader)
        for index, steps in enumerate(run.conversations):
            parts = [str(one) for one, many in ((number, groups), (index, run.conversations)) if len(many) > 1]
            yield run.draft(steps, session, trace, "/".join(parts))


@dataclass(slots=True)
class _Said:
    """One message of a path through what was said."""

    then: dict[tuple[Any, ...], _Said] = field(default_factory=dict)
    steps: Steps | None = None
    """The conversation that ends here."""


class _Run:
    """One group of spans, read."""

    def __init__(self, tree: Tree, group: Group, repairs: list[str], reader: Reader, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise UnfitError(f"its agents are nested more than {_DEEPEST} levels deep")
        self._depth = depth
        self._tree = tree
        self._group = group
        self._repairs = repairs
        is_one = group.agent is None and len(group.calls) == 1
        own = () if is_one else [span for span in group.calls if span is not group.agent]
        # of a run with several calls, an evaluation of one is no verdict on the run
        self._checks = {id(span): evaluations(span) for span in own}
        calls = [reader.call(span) for span in group.calls]
        instructions, self._tools = _of_agent(group.agent, calls)
        if group.agent is not None:
            repairs += group.agent.notes
        self.conversations: list[Steps] = []
        if group.agent is not None:
            one = Steps(repairs, instructions)
            for call in calls:
                one.add(call)
            self.conversations.append(one)
        else:
            self._split(calls)
        self.conversations = [steps for steps in self.conversations if steps.conversation.steps]
        if not self.conversations:
            raise NoContentError("its model calls hold no messages in any form that the conventions have")
        self._unplaced = self._add_tools()

    def _split(self, calls: Sequence[Call]) -> None:
        """Add each call to the longest conversation that it goes on from, else to a new one.

        What was said so far is a path in `begun`, and a conversation stands where its path ends.
        """
        begun = _Said()
        for call in calls:
            at, known = begun, None
            for one in [*(call.system or ()), *call.sent]:
                if one.key not in at.then:
                    break
                at = at.then[one.key]
                known = at if at.steps is not None else known
            steps = known.steps if known is not None else None
            if steps is None or known is None:
                steps = Steps(list(self._repairs))
                self.conversations.append(steps)
            else:
                known.steps = None
            steps.add(call)
            at = begun
            for key in steps.keys:
                at = at.then.setdefault(key, _Said())
            at.steps = at.steps or steps

    def _add_tools(self) -> list[Span]:
        """Add what tools' spans hold, and sub-agents; return the spans of tools that no reply called."""
        tools = Tools(step for steps in self.conversations for step in steps.conversation.steps)
        results = {id(span): tools.add(span) for span in self._group.tools}
        self.embedded: list[dict[str, Any]] = []
        for group in self._group.inner:
            self._embed(group, results)
        return [span for span in self._group.tools if results[id(span)] is None]

    def _embed(self, group: Group, results: dict[int, dict[str, Any] | None]) -> None:
        span = group.agent
        if span is None or not (group.calls or group.inner):
            return
        if not group.calls:
            for inner in group.inner:
                inner.within = inner.within or group.within
                self._embed(inner, results)
            return
        try:
            run = _Run(self._tree, group, self._repairs, Reader(), self._depth + 1)
        except NoContentError:
            self._repairs.append("sub-agents whose messages are not recorded: left out")
            return
        trajectory = run.trajectory(run.conversations[0])
        name = span.span_id or f"agent-{span.number}"
        while any(one["trajectory_id"] == name for one in self.embedded):
            name += "#2"
        trajectory["trajectory_id"] = name
        self.embedded.append(trajectory)
        result = results.get(id(group.within)) if group.within is not None else None
        if result is not None:
            result.setdefault("subagent_trajectory_ref", []).append({"trajectory_id": name})

    def trajectory(self, steps: Steps) -> dict[str, Any]:
        """Return the trajectory of one conversation."""
        for call in steps.calls:
            for check in self._checks.get(id(call.span), ()):
                self._keep_check(steps, call, check)
        agent = self._agent(steps)
        found: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": steps.conversation.steps}
        extra: dict[str, Any] = {}
        span = self._group.agent
        if span is not None and span not in self._group.calls:
            for name in _MESSAGES:
                listed = elements(span.raw.get(name), [])
                if listed is not None and all(one.key in steps.seen for one in messages(plain_all(listed))):
                    del span.raw[name]
            extra["span"] = described(span)
        if steps.silent:
            extra["calls"] = [rest_of(call, steps.calls[0]) for call in steps.silent]
        if steps is self.conversations[0]:
            if self._unplaced:
                extra["tools"] = [described(span) for span in self._unplaced]
            if self.embedded:
                found["subagent_trajectories"] = self.embedded
        if extra:
            found["extra"] = extra
        return found

    def draft(self, steps: Steps, session: str | None, trace: str | None, place: str) -> Made:
        """Return one conversation as a run."""
        agent, last = self._group.agent, steps.calls[-1].span
        roots = self._tree.roots(agent)
        if agent is None:
            # a span around several conversations speaks for none of them
            roots = [] if len(self.conversations) > 1 else [span for span in roots if id(span) not in self._checks]
        end = ending(roots, agent or last)
        spans = [call.span for call in steps.calls] if agent is None else [agent, *(call.span for call in steps.calls)]
        labels, resources = environment(spans)
        run: dict[str, Any] = {}
        first = steps.calls[0]
        model = model_of(first)
        if model is not None:
            run["model"] = {"name": model}
        asked = first.asked
        if asked:
            run["sampling"] = asked
            if type(asked.get("seed")) in (int, str):
                run["seed"] = asked["seed"]
        times = time_of((agent or first.span).start), time_of((agent or last).end)
        run |= {name: one for name, one in zip(("start", "end"), times, strict=True) if one is not None}
        trajectory = self.trajectory(steps)
        identity = trajectory["agent"].get("extra", {})
        labels |= {name: value for name, value in identity.items() if name.startswith("gen_ai.")}
        if labels:
            run["environment"] = labels
        if session is not None:
            trajectory["session_id"] = session
        beside = {"traceId": trace, "resources": resources}
        extra = {name: value for name, value in beside.items() if value} | trajectory.get("extra", {})
        if extra:
            trajectory["extra"] = extra
        draft = Draft(trajectory, run, end.outcome, steps.conversation.repairs, mixed=steps.mixed)
        own = [call.span for call in steps.calls] if agent is None else spans_of(self._group)
        return Made(place, draft, in_order([*own, *self._group.tools] if agent is None else own), end.unread)

    def _agent(self, steps: Steps) -> dict[str, Any]:
        spans = [span for span in (self._group.agent, steps.calls[0].span) if span is not None]
        names = [text_of_attribute(span, *_AGENT_NAMES) for span in spans]
        versions = [text_of_attribute(span, "gen_ai.agent.version") for span in spans]
        agent: dict[str, Any] = {
            "name": next(filter(None, names), "unknown"),
            "version": next(filter(None, versions), "unknown"),
        }
        model = next((step["model_name"] for step in steps.conversation.steps if "model_name" in step), None)
        model = model or next((one for call in steps.calls if (one := _text(call.span, *ANSWERED))), None)
        if model is not None:
            agent["model_name"] = model
        extra: dict[str, Any] = {}
        for name in ("gen_ai.agent.id", "gen_ai.agent.description", "gen_ai.prompt.name"):
            value = next((one for span in spans if (one := _text(span, name)) is not None), None)
            if value is not None:
                extra[name] = value
        tools, is_whole = (steps.tools, steps.is_whole) if steps.tools is not None else self._tools
        if tools and is_whole:
            agent["tool_definitions"] = tools
        elif tools is not None:
            extra["tool_definitions"] = tools
            if tools:
                steps.conversation.repairs.append(
                    "tools that are recorded without description or parameters: kept in agent.extra, not as definitions"
                )
        if extra:
            agent["extra"] = extra
        return agent

    def _keep_check(self, steps: Steps, call: Call, check: dict[str, Any]) -> None:
        """Keep an evaluation of one call where its reply is."""
        step = steps.replied.get(id(call.span))
        holder = call.span.raw if step is None else step.setdefault("extra", {})
        holder.setdefault("evaluations", []).append(check)


def _of_agent(agent: Span | None, calls: Sequence[Call]) -> tuple[Sequence[Message], tuple[list[Any] | None, bool]]:
    """Return the instructions and the tools that an agent's span records for calls that record none."""
    if agent is None or any(call.span is agent for call in calls):
        return (), (None, False)
    has_prompt = any(call.system is not None or any(is_system(one.chat) for one in call.sent) for call in calls)
    instructions = () if has_prompt else system_of(agent) or ()
    tools = (None, False) if any(call.tools is not None for call in calls) else tools_of(agent)
    return instructions, tools


def _text(span: Span, *names: str) -> str | None:
    value = span.get(*names)
    return value if isinstance(value, str) and value else None
