"""Token counts as a witness: what a model was sent, and a trace does not show.

A server counts the tokens of all that it is sent. Two first calls of one model with equal messages and equal tools that
count different numbers of tokens were not sent the same: one of the harnesses put something there that its trace hides,
a prompt or tools. Equal counts prove nothing.

Invariants:
- a count can contradict and never corroborate, and nothing of it is part of a stamp;
- counts are compared within one model alone, as it names itself in the trace and in what is known of the run;
- a call is left out where its count may be of something else: of several calls, of a prompt without its cached part, of
  messages with pictures or sounds, behind replies or reasoning of which nobody knows how much was sent again;
- what is kept is one small entry for each distinct beginning of a conversation, of a bounded number of them: those that
  are met when it is full are compared with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tracemark import digest

BEGINNINGS = 100_000
"""Distinct beginnings that are kept, some 500 bytes each."""

_SENT = ("response_format", "tool_choice", "parallel_tool_calls")
"""Parameters of a request that a server puts in front of the model as text."""


class FirstCall(NamedTuple):
    """The first call of a model whose tokens a trace counts."""

    key: bytes
    """Digest of the model, the messages in front of the call, the tools and the parameters that become text: what the
    trace shows of what was sent."""
    model: str
    """The model, by the name in the trace."""
    tokens: int
    """Tokens of the prompt."""


class Count(NamedTuple):
    """A number of tokens that a first call has."""

    tokens: int
    """The number."""
    trace: str
    """Id of the first trace that has it."""


def first_call(trajectory: Mapping[str, Any], run: Mapping[str, Any]) -> FirstCall | None:
    """Return the first call of a trace; None when its tokens were not counted, or the count may be of something else.

    Args:
        trajectory: the trajectory.
        run: what is known of the run: one that goes on from another does not show its beginning.
    """
    if run.get("continues") or run.get("role") == "subagent":
        return None
    before: list[Any] = []
    for step in trajectory["steps"]:
        metrics = step.get("metrics") or {}
        if step["source"] == "agent" and metrics.get("prompt_tokens"):
            return _call(step, metrics, before, trajectory, run)
        if not _is_plain(step):
            return None
        before.append([step["source"], step["message"]])
    return None


class Usage:
    """The token counts of first calls; at most three different ones for each beginning.

    Args:
        beginnings: how many beginnings are kept.
    """

    _KEPT = 3

    def __init__(self, beginnings: int = BEGINNINGS) -> None:
        self._beginnings = beginnings
        self._seen: dict[bytes, tuple[str, tuple[Count, ...]]] = {}

    def add(self, call: FirstCall | None, trace: str) -> None:
        """Take in the first call of a trace."""
        if call is not None:
            self._keep(call.key, call.model, Count(call.tokens, trace))

    def merge(self, other: Usage) -> None:
        """Take in what was seen elsewhere."""
        for key, (model, counts) in other._seen.items():
            for count in counts:
                self._keep(key, model, count)

    def differing(self) -> Iterator[tuple[str, Sequence[Count]]]:
        """Yield the model and the different counts of each beginning that has several, in the order first seen."""
        for model, counts in self._seen.values():
            if len(counts) > 1:
                yield model, counts

    def _keep(self, key: bytes, model: str, count: Count) -> None:
        if key not in self._seen and len(self._seen) >= self._beginnings:
            return
        _, kept = self._seen.get(key, (model, ()))
        if len(kept) < self._KEPT and all(count.tokens != one.tokens for one in kept):
            self._seen[key] = model, (*kept, count)


def _call(
    step: Mapping[str, Any],
    metrics: Mapping[str, Any],
    before: Sequence[Any],
    trajectory: Mapping[str, Any],
    run: Mapping[str, Any],
) -> FirstCall | None:
    agent = trajectory["agent"]
    model, tokens = step.get("model_name") or agent.get("model_name"), metrics["prompt_tokens"]
    several = (step.get("llm_call_count") or 1) != 1
    if model is None or several or step.get("is_copied_context") or (metrics.get("cached_tokens") or 0) > tokens:
        return None
    sampling = run.get("sampling") or {}
    sent = {name: sampling[name] for name in _SENT if name in sampling}
    shown = [model, run.get("model"), sent, step.get("reasoning_effort"), agent.get("tool_definitions") or [], before]
    return FirstCall(bytes.fromhex(digest.of(shown)), model, tokens)


def _is_plain(step: Mapping[str, Any]) -> bool:
    """Return whether all of a step that may be sent again is the text of its message."""
    if any(step.get(name) for name in ("tool_calls", "observation", "reasoning_content")):
        return False
    message = step["message"]
    return isinstance(message, str) or all(part["type"] == "text" for part in message)
