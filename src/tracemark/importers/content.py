"""One walk over a trajectory: what harnesses are compared with, what its content shows, and whether it is sound.

`walk` reads every step once. On an ordinary document it is also the half of validation that a JSON Schema cannot say
(sequence, links, who may say what, times), so that a document accepted by the fast
schema and found sound here is accepted by the models of `model.trajectory` too: a property test holds the two together.

What a tool gave before any handler has one place in a stored trajectory: `raw_output` in the `extra` of a result, any
JSON but null. An object gives the variables that a handler's template may ask for, by name; anything else is the
variable `output`. An importer puts it there where its source holds it apart from what the agent saw, under the names by
which the producer's own template asks, such as `{"output": {"output": "…", "returncode": 0}}` of mini-swe-agent.

The prompt is every text in front of the agent's first reply; behind it the system still speaks for the harness, so its
messages are kept too. Observed digests group traces whose harness nobody named; they enter no fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.harness.match import Content
from tracemark.harness.observations import Observation, RawOutput
from tracemark.harness.tools import ToolSchemaError, reduce_tool
from tracemark.importers.base import verbatim_digest
from tracemark.model.atif import AGENT_ONLY, are_timestamps

_AGENT_ONLY = frozenset(AGENT_ONLY)
_OF_A_CALL = ("metrics", "reasoning_content")
_CACHE_SIZE = 256
_CACHED_KEY = 262_144
_OPENINGS = (
    "error",
    "exception",
    "traceback",
    "unknown",
    "invalid",
    "unrecognized",
    "unrecognised",
    "unsupported",
    "no such",
    "failed",
)
_OPENHANDS_EVENT = re.compile(r"Retrieving content for: |Added workspace context\Z")
_PUNCTUATION = " \t\r\n[](){}<>*#\"'`:-!"
_RAW = "raw_output"
_OUTPUT = "output"
_REFUSAL = re.compile(r"not (?:found|exist|available|a valid|a known)")

Observed = dict[str, list[dict[str, str]]]
"""Component to `{"part", "form", "digest"}`: the observed half of a stamp."""


class Walk(NamedTuple):
    """What one walk over a trajectory gives."""

    content: Content
    sound: bool
    """Whether nothing was met that the models might reject; False proves nothing, the models decide then."""
    copied: bool
    """Whether a step is context copied from another trajectory."""


def text_of(message: Any) -> str:
    """Return the text of a message or an observation; empty for anything else than text and parts.

    Text parts stand one behind the other with nothing between them, as chat templates write them: what is compared with
    a harness is what the model saw, and what an export holds.
    """
    if message.__class__ is str:
        return message
    if isinstance(message, list):
        return "".join(part["text"] for part in message if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def looks_like_an_error(text: str) -> bool:
    """Return whether an answer reads like an error: it opens with an error word, or soon says "not found"."""
    head = text[:120]
    if head.lstrip(_PUNCTUATION)[:16].lower().startswith(_OPENINGS) or "Error:" in head:
        return True
    return "not " in head and _REFUSAL.search(head) is not None


def walk(trajectory: dict[str, Any], *, prompt_cut: str | None = None, tools_known_empty: bool = False) -> Walk:
    """Read every step of `trajectory` once.

    Args:
        trajectory: a document whose shape the fast schema or the models have accepted.
        prompt_cut: the separator that the format fixes between template and task; None when it fixes none.
        tools_known_empty: whether an empty list of tools is what the model was really sent.
    """
    return _read(trajectory, prompt_cut, tools_known_empty)


def content_of(trajectory: dict[str, Any], *, prompt_cut: str | None = None) -> Content:
    """Return the content of a stored trajectory: what `walk` gives of it, without judging again whether it is sound."""
    return _read(trajectory, prompt_cut, tools_known_empty=False).content


def _read(trajectory: dict[str, Any], prompt_cut: str | None, tools_known_empty: bool) -> Walk:
    """Return what one loop over the steps gives: every trace comes here, and each look at a step is felt."""
    found = _Found()
    sound, waiting, copied, times = True, True, False, []
    for index, step in enumerate(trajectory["steps"], 1):
        get, source = step.get, step["source"]
        time, tool_calls, observation = get("timestamp"), get("tool_calls"), get("observation")
        if time is not None:
            times.append(time)
        is_copy = get("is_copied_context")
        copied = copied or bool(is_copy)
        if step["step_id"] != index:
            sound = False
        if source == "agent":
            if get("llm_call_count") == 0:
                sound = sound and not _has_any(step, _OF_A_CALL)
            else:
                waiting = False
                if (step["message"] or tool_calls) and not is_copy:
                    found.replies.append(index)
        else:
            if not _AGENT_ONLY.isdisjoint(step) and _has_any(step, AGENT_ONLY):
                sound = False
            if (waiting or source == "system") and not is_event(step, trajectory):
                heard = found.messages if waiting else found.later
                heard.append((source, text_of(step["message"]), index))
        if observation:
            sound = found.answer(index, tool_calls or (), observation["results"]) and sound
        elif tool_calls:
            sound = found.answer(index, tool_calls, ()) and sound
        if waiting and source == "agent":
            # what the harness says in the agent's place belongs to the prompt
            found.messages.append((source, text_of(step["message"]), index))
    return Walk(found.content(trajectory, prompt_cut, tools_known_empty), sound and are_timestamps(times), copied)


class _Found:
    """What one walk has found so far."""

    __slots__ = ("calls", "later", "messages", "observations", "raw_outputs", "replies")

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, int]] = []
        self.later: list[tuple[str, str, int]] = []
        self.calls: dict[str, tuple[str, int, str]] = {}
        self.observations: list[Observation] = []
        self.raw_outputs: list[RawOutput] = []
        self.replies: list[int] = []

    def answer(self, index: int, tool_calls: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> bool:
        """Add the calls and the observations of one step; return whether every named call is one of the step's."""
        if len(tool_calls) == 1 == len(results):
            # most steps are one call and its answer, and need no tables
            call, result = tool_calls[0], results[0]
            if result.get("source_call_id") == call["tool_call_id"]:
                content, extra = result.get("content"), result.get("extra")
                if extra or content.__class__ is not str:
                    content, extra = self._seen(index, result)
                else:
                    self.observations.append((index, content))
                known = self.calls.get(call["function_name"])
                if known is None or known[2] != "ok":
                    self._note(index, call["function_name"], (content, extra))
                return True
        answers: dict[str, tuple[str, Any]] = {}
        unnamed: list[tuple[str, Any]] = []
        for result in results:
            name = result.get("source_call_id")
            if name is None:
                unnamed.append(self._seen(index, result))
            else:
                answers.setdefault(name, self._seen(index, result))
        found = 0
        for position, call in enumerate(tool_calls):
            answered = answers.get(call["tool_call_id"])
            if answered is not None:
                found += 1
            elif position < len(unnamed):
                answered = unnamed[position]
            self._note(index, call["function_name"], answered)
        return not answers or (len(answers) == 1 and found > 0) or _all_named(answers, tool_calls)

    def _seen(self, index: int, result: dict[str, Any]) -> tuple[str, Any]:
        """Add an observation, and what the tool gave where that is held apart; return its text and its `extra`."""
        content, extra = result.get("content"), result.get("extra")
        text = content if content.__class__ is str else text_of(content)
        if content is not None:
            self.observations.append((index, text))
        raw = extra.get(_RAW) if extra else None
        if raw is not None and content.__class__ is str:
            self.raw_outputs.append((index, raw if isinstance(raw, dict) else {_OUTPUT: raw}, text))
        return text, extra

    def _note(self, index: int, name: str, answer: tuple[str, Any] | None) -> None:
        """Add a call; reading its answer costs more than the rest of it, and one good answer is all that is asked."""
        known = self.calls.get(name)
        if known is None or known[2] != "ok":
            kind = _kind_of(answer)
            if known is None or kind == "ok":
                self.calls[name] = (name, index, kind)

    def content(self, trajectory: dict[str, Any], prompt_cut: str | None, tools_known_empty: bool) -> Content:
        """Return what was found, with the tools that the trajectory records."""
        tools = trajectory["agent"].get("tool_definitions")
        if not tools:
            tools = [] if tools_known_empty and not self.calls else None
        return Content(
            messages=self.messages,
            later_system=self.later,
            tools=tools,
            tools_key=None if tools is None else digest.canonical(tools, finite=True),
            calls=list(self.calls.values()),
            observations=self.observations,
            raw_outputs=self.raw_outputs,
            replies=self.replies,
            prompt_cut=prompt_cut,
        )


def is_event(step: Mapping[str, Any], trajectory: Mapping[str, Any]) -> bool:
    """Return whether a system step tells what the producer did, and is no message that the model was sent.

    A step with an observation is an operation of the system, and one that names an event (`event_type` in its `extra`)
    is that event. OpenHands writes what it recalls as system steps.
    """
    if step["source"] != "system":
        return False
    extra = step.get("extra")
    if step.get("observation") is not None or (extra and extra.get("event_type").__class__ is str):
        return True
    openhands = trajectory["agent"]["name"].lower() == "openhands"
    return openhands and _OPENHANDS_EVENT.match(text_of(step["message"])) is not None


def observed(content: Content, *, main_agent: bool = True) -> Observed:
    """Return what the content itself shows of its harness.

    The prompt: the text in front of the format's separator (form `prefix`), else each system text (form `rendered`);
    nothing for a sub-agent's document, whose prompt is not the agent's. The tools: each recorded definition, reduced
    (form `schema`), or the empty list where it is known to be what was sent (`known-empty`).
    """
    found: Observed = {}
    prompts = _prompts(content) if main_agent else []
    if prompts:
        found["prompt_templates"] = prompts
    if content.tools is not None and content.tools_key is not None:
        tools = _observed_tools(content.tools, content.tools_key)
        if tools:
            found["tool_bindings"] = tools
    return found


def _has_any(step: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(step.get(name) is not None for name in names)


def _kind_of(answer: tuple[str, Any] | None) -> str:
    if answer is None:
        return "none"
    text, extra = answer
    return "error" if looks_like_an_error(text) or _said_error(extra) else "ok"


def _said_error(extra: dict[str, Any] | None) -> bool:
    return extra is not None and bool(extra.get("is_error") or extra.get("error"))


def _all_named(answers: dict[str, Any], tool_calls: Any) -> bool:
    return {call["tool_call_id"] for call in tool_calls}.issuperset(answers)


def _prompts(content: Content) -> list[dict[str, str]]:
    if content.prompt_cut is not None:
        for role, text, _ in content.messages:
            head, cut, _ = text.partition(content.prompt_cut)
            if cut:
                return [{"part": f"first-{role}", "form": "prefix", "digest": verbatim_digest(head)}]
    found: list[dict[str, str]] = []
    for role, text, _ in content.messages:
        if role == "system" and text:
            part = "system" if not found else f"system-{len(found) + 1}"
            found.append({"part": part, "form": "rendered", "digest": verbatim_digest(text)})
    return found


_tools_seen: dict[bytes, list[dict[str, str]]] = {}


def _observed_tools(tools: Sequence[Any], key: bytes) -> list[dict[str, str]]:
    known = _tools_seen.get(key)
    if known is None:
        known = _reduce(tools)
        if len(key) <= _CACHED_KEY:
            if len(_tools_seen) >= _CACHE_SIZE:
                _tools_seen.clear()
            _tools_seen[key] = known
    return known


def _reduce(tools: Sequence[Any]) -> list[dict[str, str]]:
    if not tools:
        return [{"part": "tools", "form": "known-empty", "digest": digest.of([])}]
    found: dict[str, str] = {}
    for tool in tools:
        try:
            reduced = reduce_tool(tool)
        except ToolSchemaError:
            # one definition that nobody can read makes the list incomplete, and an incomplete list proves nothing
            return []
        if found.setdefault(reduced["name"], schema := digest.of(reduced)) != schema:
            # parts are compared by name, and of two definitions of one name nobody knows which one is the tool's
            return []
    return [{"part": name, "form": "schema", "digest": value} for name, value in sorted(found.items())]
