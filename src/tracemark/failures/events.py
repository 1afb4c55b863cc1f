"""One walk over a stored trace: each result as an event, and the few facts of the run that routing asks for.

Invariants:
- an event is a result that was really given: a call without one proves nothing, neither failure nor recovery;
- results belong to calls by name, those without a name to the calls of their step without an answer in order, and what
  is left over to no call; where an importer found a name that no call of the step has, it is the last such call before;
- a result that names a call, or lies in a step with calls, is of nothing else that its step may have run: where its
  call is not known, neither is its command, unless it says it itself;
- steps copied from another trajectory tell of that one and give no events here; embedded sub-agents are not entered.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.failures.error_line import Said, error_in
from tracemark.failures.family import attempt_of, is_misnamed, script_of
from tracemark.importers.content import text_of

_FENCE = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)?[ \t]*\n(.*?)\n?```", re.DOTALL)
_NO_ARGUMENTS: dict[str, Any] = {}


class Event(NamedTuple):
    """One result."""

    step: int
    """`step_id` of the step that has the call; of a result without one, of the step that has the result."""
    call: str | None
    """`tool_call_id`; None when the result belongs to no call."""
    tool: str | None
    """The tool's name; None when nobody recorded one."""
    family: str | None
    """What it is an attempt at, see `family`; None when neither tool nor command is known."""
    command: str
    """The command line, else the canonical JSON of the arguments; empty when neither is known."""
    error: str | None
    """The line that says the error; None when the call went well."""
    empty: bool
    """Whether the agent saw nothing: of a call that went well an empty text, of one that failed no word of the failure,
    unless its command asks for silence."""
    operation: str | None = None
    """The family without the object acted on."""
    misnamed: bool = False
    """Whether the error says that what the call names is not there."""
    seen: tuple[int, int] = (0, 0)
    """Where the result is: `step_id` of its step, which may be a later one, and its index among the results there."""


class Story(NamedTuple):
    """What one walk gives."""

    events: tuple[Event, ...]
    """In the order in which the results came: of the steps that have them, and in a step as they stand there. A call
    that was answered late has its event where the answer is, and not where it was made."""
    prompt_tokens: int | None
    """Tokens that were sent to a model; None when nothing was recorded, which is not 0."""
    agent_steps: int
    """Steps of the agent that are this run's own."""
    spoke: bool
    """Whether a model wrote a text or made a call."""


def read(line: Mapping[str, Any]) -> Story:
    """Walk once over the steps of a stored line.

    Args:
        line: a stored trace, parsed; its `trajectory` is ATIF v1.8.
    """
    trajectory = line["trajectory"]
    events: list[Event] = []
    tokens: int | None = None
    agent_steps, spoke = 0, False
    called = _Called(trajectory["steps"])
    for place, step in enumerate(trajectory["steps"]):
        get = step.get
        if get("is_copied_context"):
            continue
        calls, observation = get("tool_calls"), get("observation")
        if step["source"] == "agent":
            agent_steps += 1
            spoke = spoke or bool(calls) or (get("llm_call_count") != 0 and bool(step["message"]))
            metrics = get("metrics")
            sent = metrics.get("prompt_tokens") if metrics else None
            if sent is not None:
                tokens = (tokens or 0) + sent
        if observation and observation["results"]:
            _add(events, step, calls or (), observation["results"], partial(called.before, place))
    final = trajectory.get("final_metrics")
    total = final.get("total_prompt_tokens") if final else None
    if total is not None:
        tokens = max(tokens or 0, total)
    return Story(tuple(events), tokens, agent_steps, spoke)


def _add(
    events: list[Event],
    step: Mapping[str, Any],
    calls: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    called: Callable[[Any], _Made | None],
) -> None:
    """Add the events of one step; `called` gives the call of an earlier one by its name."""
    index = step["step_id"]
    if len(calls) == 1 == len(results) and results[0].get("source_call_id") == calls[0]["tool_call_id"]:
        events.append(_event(_Made(index, calls[0]), results[0], (index, 0)))
        return
    for number, (own, result) in enumerate(_paired(calls, results)):
        made = called(_original_name(result)) if own is None else _Made(index, own)
        seen = index, number
        events.append(_without_call(step, result, seen) if made is None else _event(made, result, seen))


class _Made(NamedTuple):
    """A call, and the `step_id` of the step in which it was made."""

    step: int
    call: Mapping[str, Any]


class _Called:
    """The calls of a trajectory by name, asked for only where a result lies in another step than its call."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._steps = steps

    def before(self, place: int, name: str | None) -> _Made | None:
        """Return the last call of a name in a step before the one at `place`; None when there is none."""
        places, calls = self._named.get(name, ((), ())) if name is not None else ((), ())
        found = bisect_left(places, place)
        return calls[found - 1] if found else None

    @cached_property
    def _named(self) -> dict[str, tuple[list[int], list[_Made]]]:
        named: dict[str, tuple[list[int], list[_Made]]] = {}
        for place, step in enumerate(self._steps):
            for call in step.get("tool_calls") or ():
                places, calls = named.setdefault(call["tool_call_id"], ([], []))
                places.append(place)
                calls.append(_Made(step["step_id"], call))
        return named


def _paired(
    calls: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> Iterable[tuple[Mapping[str, Any] | None, Mapping[str, Any]]]:
    """Give each result with its call, in the order of the results."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        waiting.setdefault(call["tool_call_id"], []).append(call)
    named = {result.get("source_call_id") for result in results}
    unnamed = iter([call for call in calls if call["tool_call_id"] not in named])
    last: dict[str, Mapping[str, Any]] = {}
    for result in results:
        name = result.get("source_call_id")
        if name is None:
            yield None if _names_a_call(result) else next(unnamed, None), result
            continue
        if waiting.get(name):
            # several calls of one name are answered in order, and what is left over belongs to the last of them
            last[name] = waiting[name].pop(0)
        yield last.get(name), result


def _event(made: _Made, result: Mapping[str, Any], seen: tuple[int, int]) -> Event:
    step, call = made
    tool, arguments = call["function_name"] or None, call.get("arguments") or _NO_ARGUMENTS
    script = script_of(tool, arguments)
    said, empty = _said(result, script, tool, arguments)
    command = script if script is not None else digest.canonical(arguments, finite=True).decode()
    family, operation = attempt_of(tool, arguments, script)
    misnamed = said.error is not None and is_misnamed(said.error, tool, arguments, script)
    return Event(step, call["tool_call_id"], tool, family, command, said.error, empty, operation, misnamed, seen)


def _without_call(step: Mapping[str, Any], result: Mapping[str, Any], seen: tuple[int, int]) -> Event:
    """Return the event of a result without a call; its command may stand beside it, or in its step.

    What a step did without calls stands in its `extra`, or in an agent's text. A result that names a call is of that
    one, known or not, and a step with calls did what they say; neither is of anything else in the step.
    """
    script = _recorded(result)
    if script is None and not step.get("tool_calls") and not _names_a_call(result):
        script = _done_in(step)
    said, empty = _said(result, script, None, _NO_ARGUMENTS)
    family, _ = attempt_of(None, _NO_ARGUMENTS, script)
    return Event(step["step_id"], None, None, family, script or "", said.error, empty, family, seen=seen)


def _done_in(step: Mapping[str, Any]) -> str | None:
    """Return the command of a step that makes no calls; None when it says none."""
    extra = step.get("extra")
    action = extra.get("action") if isinstance(extra, dict) else None
    if isinstance(action, str):
        return action
    message = text_of(step["message"]) if step["source"] == "agent" else ""
    found = _FENCE.search(message) if "```" in message else None
    return None if found is None else found[1]


def _names_a_call(result: Mapping[str, Any]) -> bool:
    """Return whether a result says which call it answers, be it one that is not known."""
    extra = result.get("extra")
    original = extra.get("original_call_id") if isinstance(extra, dict) else None
    return result.get("source_call_id") is not None or (original is not None and original != "")


def _original_name(result: Mapping[str, Any]) -> str | None:
    """Return the name of a call of another step that a result was recorded to answer; None when there is none."""
    extra = result.get("extra")
    name = extra.get("original_call_id") if isinstance(extra, dict) else None
    return name if isinstance(name, str) else None


def _recorded(result: Mapping[str, Any]) -> str | None:
    """Return the command that a result of a check says it comes from; None when it says none."""
    extra = result.get("extra")
    original = extra.get("original_content") if isinstance(extra, dict) else None
    command = original.get("command") if isinstance(original, dict) else None
    return command if isinstance(command, str) else None


def _said(
    result: Mapping[str, Any], script: str | None, tool: str | None, arguments: Mapping[str, Any]
) -> tuple[Said, bool]:
    """Return what a result says of its call, and whether the agent saw nothing of what there was to see."""
    content = result.get("content")
    text = content if content.__class__ is str else text_of(content)
    said = error_in(text, result.get("extra"), script, tool, arguments)
    return said, said.hidden if said.error is not None else not text.strip()
