"""Messages as OpenAI's chat API sends and receives them, made what a trace holds.

Invariants:
- a text is kept to the letter, and a member that a step has no place for stands in its `extra`;
- two messages that a model is shown alike have one key: null and "" are one there, and so are a text and its parts, and
  arguments that are the same object. What the API gives beside a message (`refusal`, `annotations`, reasoning) and a
  program may leave out when it sends the message again, is no part of the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.errors import UsageError
from tracemark.importers.content import text_of
from tracemark.importers.conversation import REASONING
from tracemark.runner import given

INSTRUCTIONS = ("system", "developer")
"""Roles of the harness's own messages."""

ANSWERS = ("tool", "function")
"""Roles of messages that answer a call."""

_SPEAKERS = {"system": "system", "developer": "system", "user": "user"}
_OF_A_REPLY = frozenset({"role", "content", "tool_calls"})


def key(message: Mapping[str, Any]) -> str:
    """Return what messages share that a model is shown alike."""
    content = message.get("content")
    if content is None:
        content = ""
    elif isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = text_of(content)
    calls = message.get("tool_calls")
    shown = {
        "role": message.get("role"),
        "content": content,
        "calls": [_call_key(call) for call in calls] if isinstance(calls, list) else [],
        "answers": message.get("tool_call_id"),
        "name": message.get("name"),
    }
    return digest.of(shown)


def made(message: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the step of a message that is no reply of the model, though an assistant may speak in it.

    Args:
        message: the message; for one that answers a call, only whether it can be recorded is judged.
        what: its place, for errors.

    Raises:
        UsageError: when its role is unknown, or a trace cannot hold it.
    """
    role = message.get("role")
    if role in ANSWERS:
        results([message])
        return {}
    if role == "assistant":
        step = _reply(message, None)
        reasoning = {"reasoning_content": step.pop("reasoning_content")} if "reasoning_content" in step else {}
        return {**_with_extra(step, reasoning), "llm_call_count": 0}
    if role not in _SPEAKERS:
        raise UsageError(f"{what}: nobody knows who speaks as {str(role)[:40]!r}", hint="system, user, assistant, tool")
    rest = {name: value for name, value in message.items() if name not in ("role", "content") and value is not None}
    if role == "developer":
        rest = {"role": role, **rest}
    return _with_extra(given.said(_SPEAKERS[role], message.get("content")), rest)


def results(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the results that messages hold which answer calls.

    Raises:
        UsageError: when a trace cannot hold one.
    """
    return given.results([{name: each for name, each in message.items() if each is not None} for message in messages])


def unasked(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step of a message that answers a call which no step in front of it made."""
    rest = {name: value for name, value in message.items() if name not in ("content", "tool_call_id")}
    rest["original_call_id"] = message.get("tool_call_id")
    return _with_extra(given.said("user", message.get("content") or ""), rest)


def message_of(completion: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the message of a reply's first choice; None when it has none."""
    choices = completion.get("choices") if completion is not None else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return {"role": "assistant", **message} if isinstance(message, dict) else None


def error_of(error: Any) -> dict[str, Any]:
    """Return type and code of an error; not its words, in which a server may repeat a key."""
    if not isinstance(error, dict):
        return {}
    return {name: error[name] for name in ("type", "code") if isinstance(error.get(name), (str, int))}


def reply_step(message: Mapping[str, Any], completion: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the step of a reply.

    Args:
        message: that of the first choice.
        completion: the whole reply.
        model: the model that was asked; the reply may name it more exactly.

    Raises:
        UsageError: when a trace cannot hold the reply.
    """
    choice = {name: value for name, value in completion["choices"][0].items() if name not in ("message", "index")}
    usage = completion.get("usage")
    metrics = dict(usage) if isinstance(usage, dict) else {}
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if tokens and all(isinstance(token, dict) and isinstance(token.get("logprob"), float) for token in tokens):
        metrics["logprobs"] = [token["logprob"] for token in tokens]
    told = {name: value for name, value in completion.items() if name not in ("choices", "usage", "object", "model")}
    rest = {name: value for name, value in {**choice, "response": told}.items() if value not in (None, {})}
    named = completion.get("model")
    step = _with_extra(_reply(message, metrics or None), plain(rest))
    name = named if isinstance(named, str) and named else model
    return {**step, **({"model_name": name} if name else {})}


def plain(value: Any) -> Any:
    """Return a value as a trace holds it.

    Raises:
        UsageError: when it is nested too deeply.
    """
    return given.plain(value, "call")


def _reply(message: Mapping[str, Any], metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    rest = {name: value for name, value in message.items() if name not in _OF_A_REPLY and value not in (None, [])}
    reasoning = next((rest.pop(name) for name in REASONING if isinstance(rest.get(name), str)), None)
    step = given.reply(message.get("content"), message.get("tool_calls"), reasoning, metrics)
    return _with_extra(step, plain(rest))


def _with_extra(step: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "extra": {**step.get("extra", {}), **more}} if more else step


def _call_key(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(NotJSONError):
            arguments = digest.loads(arguments.encode("utf-8", "surrogatepass")).value
    return [call.get("id"), function.get("name"), arguments]
