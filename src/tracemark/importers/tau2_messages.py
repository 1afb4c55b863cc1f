"""The messages of a τ² simulation become steps: what the agent saw and said, and beside it what passed without it.

Invariants:
- a user's turn is one step. Its tool calls and their results go between the user and the environment and the agent
  never sees them, so they stand in the `extra` of the step of the text that the user then sent (`user_tool_calls`,
  `user_tool_results`, `user_messages`: the messages that carried the calls);
- what no model said in this run is marked: the greeting that the program writes, and agent messages without usage or
  response where others have them, have `llm_call_count` 0; the conversation with which a task begins is copied context
  as well;
- the provider's response (`raw_data`) is the witness of what the model wrote: arguments are taken from its text, and a
  message that says something else than the response is no text of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracemark.importers.completion import reply_in, without_reply
from tracemark.importers.conversation import Conversation, NotMessagesError
from tracemark.importers.finish import UnfitError
from tracemark.importers.members import keep, without_null
from tracemark.importers.usage import metrics_of

_DEFAULTS = {"is_audio": False, "is_final_chunk": True, "contains_speech": True}
_REWRITTEN = "agent messages that are not what the provider's response says: the response is kept, the run is rendered"
_UNSENT = "tool calls of the user's side without a message to the agent behind them: under an empty user step"
_PLAIN_CALL = frozenset({"id", "type", "function", "index"})


class Spoken(NamedTuple):
    """What the messages of a simulation gave."""

    steps: list[dict[str, Any]]
    turns: int
    """How many turns were taken in this run: replies of agent and user, and rounds of the environment's answers."""
    rendered: bool
    """Whether an agent message is known not to be what the model wrote."""


def spoken(messages: Sequence[Any], history: Sequence[Any], repairs: list[str]) -> Spoken:
    """Return the steps that messages become.

    Args:
        messages: those of the simulation.
        history: the messages that the task begins with; empty when it has none.
        repairs: gets a note for all that is altered.

    Raises:
        UnfitError, NotMessagesError: when they are no messages, or sound.
        UnknownRoleError: when nobody knows who spoke.
    """
    copied = len(history) if history and _same_messages(messages[: len(history)], history) else 0
    witnessed = any(_has_witness(message) for message in messages)
    talk = _Talk(repairs, witnessed)
    for index, message in enumerate(messages):
        talk.add(message, f"messages/{index}", copied=index < copied)
    talk.flush()
    return Spoken(talk.conversation.steps, talk.turns, talk.rendered)


class _Talk:
    """Steps as they grow message by message."""

    def __init__(self, repairs: list[str], witnessed: bool) -> None:
        self.conversation = Conversation(repairs)
        self.turns = 0
        self.rendered = False
        self._repairs = repairs
        self._witnessed = witnessed
        self._unseen: dict[str, list[Any]] = {}
        self._was_answer = False

    def add(self, message: Any, place: str, *, copied: bool) -> None:
        """Add one message; `copied` when it belongs to the conversation that the task begins with."""
        if not isinstance(message, dict):
            raise NotMessagesError(f"{place} is no message")
        if message.get("is_audio"):
            raise UnfitError(f"{place} is sound, and only text is read")
        role = message.get("role")
        is_answer = role == "tool"
        if not (copied or (is_answer and self._was_answer)):
            self.turns += 1
        self._was_answer = is_answer
        first = len(self.conversation.steps)
        if is_answer and isinstance(message.get("tool_messages"), list):
            self._answers(message, place)
        elif is_answer:
            self._answer(message, place)
        elif role == "user":
            self._user(message, place)
        elif role == "assistant":
            self.flush()
            self._agent(message, place, copied=copied)
        else:
            self.flush()
            self.conversation.add(message, place)
        if copied:
            for step in self.conversation.steps[first:]:
                step["is_copied_context"] = True

    def flush(self) -> None:
        """Put what the user's side called and got under a step, when no text of the user came behind it."""
        if self._unseen:
            self._repairs.append(_UNSENT)
            self._attach(self.conversation.add({"role": "user", "content": ""}, ""))

    def _attach(self, step: dict[str, Any]) -> None:
        for name, value in self._unseen.items():
            keep(step, {name: value})
        self._unseen = {}

    def _answers(self, message: dict[str, Any], place: str) -> None:
        for number, single in enumerate(message["tool_messages"]):
            self._answer(single, f"{place}/tool_messages/{number}")
        rest = {name: value for name, value in message.items() if name not in ("role", "tool_messages")}
        if any(value is not None for value in rest.values()) and self.conversation.steps:
            keep(self.conversation.steps[-1], {"tool_messages": rest})

    def _answer(self, message: Any, place: str) -> None:
        if not isinstance(message, dict):
            raise NotMessagesError(f"{place} is no message")
        rest = dict(message)
        if rest.get("requestor") == "user":
            kept = {name: value for name, value in message.items() if name != "role"}
            self._unseen.setdefault("user_tool_results", []).append(kept)
            return
        if rest.get("requestor") == "assistant":
            del rest["requestor"]
        if "tool_call_id" not in rest:
            rest["tool_call_id"] = rest.pop("id", None)
        self.conversation.add({**rest, "role": "tool"}, place)

    def _user(self, message: dict[str, Any], place: str) -> None:
        rest = _plain(message)
        if isinstance(rest.get("raw_data"), dict):
            rest["raw_data"] = _response(rest["raw_data"], message.get("content"), message.get("tool_calls")).left
        calls = rest.pop("tool_calls", None)
        if not calls:
            self._attach(self.conversation.add(rest, place))
            return
        del rest["role"]
        self._unseen.setdefault("user_tool_calls", []).extend(calls if isinstance(calls, list) else [calls])
        self._unseen.setdefault("user_messages", []).append(
            {name: value for name, value in rest.items() if value is not None or name == "content"}
        )

    def _agent(self, message: dict[str, Any], place: str, *, copied: bool) -> None:
        rest = _plain(message)
        called = not copied and self._was_called(message)
        calls: Any = message.get("tool_calls")
        raw = rest.pop("raw_data", None)
        response = _response(raw, message.get("content"), calls) if called and isinstance(raw, dict) else None
        metrics: dict[str, Any] = {}
        if response is not None:
            metrics = _metrics(rest, response.left)
            _move(response.left, "model", rest)
            if response.reasoning is not None:
                rest.setdefault("reasoning_content", response.reasoning)
            if response.texts:
                rest["tool_calls"] = [
                    call if text is None else {**call, "arguments": text}
                    for call, text in zip(calls, response.texts, strict=True)
                ]
            raw = response.left
        elif called:
            metrics = _metrics(rest, {})
        if isinstance(rest.get("tool_calls"), list):
            rest["tool_calls"] = [_own(call) for call in rest["tool_calls"]]
        if raw not in (None, {}):
            rest["raw_data"] = raw
        step = self.conversation.add(rest, place)
        if metrics:
            step["metrics"] = metrics
        if not called:
            step["llm_call_count"] = 0
            if "reasoning_content" in step:
                keep(step, {"reasoning_content": step.pop("reasoning_content")})
        if response is not None and (_restore(step, calls, response.texts) or not response.agrees):
            self.rendered = True
            self._repairs.append(_REWRITTEN)

    def _was_called(self, message: dict[str, Any]) -> bool:
        """Return whether a model said it, as far as the file tells: see the module's invariants."""
        if _has_witness(message):
            return True
        is_greeting = not self.conversation.steps and not message.get("tool_calls")
        return not (self._witnessed or is_greeting)


class _Response(NamedTuple):
    """What a provider's response says beside the message that was made of it."""

    left: dict[str, Any]
    """The response without what the message repeats."""
    agrees: bool
    """Whether the message says what the response says, or the response says nothing that can be read."""
    texts: list[str | None]
    """Arguments of each call of the message as the model wrote them, None where they are no text; empty where the
    response has other calls."""
    reasoning: str | None


def _response(raw: dict[str, Any], content: Any, calls: Any) -> _Response:
    left = without_null(raw)
    said = reply_in(left)
    if said is None:
        return _Response(left, True, [], None)
    rest = without_null(said)
    same_text = (said.get("content") or "") == (content or "")
    if same_text:
        rest.pop("content", None)
    texts = _texts(said.get("tool_calls"), calls)
    made = rest.get("tool_calls")
    if texts is not None and isinstance(made, list) and all(map(_PLAIN_CALL.issuperset, made)):
        del rest["tool_calls"]
    if rest.get("role") == "assistant":
        del rest["role"]
    reasoning = rest.pop("reasoning_content") if isinstance(rest.get("reasoning_content"), str) else None
    first, *others = left["choices"]
    left["choices"] = [without_null(first), *others]
    left = without_reply(left, rest)
    return _Response(left, same_text and texts is not None, texts or [], reasoning)


def _texts(said: Any, calls: Any) -> list[str | None] | None:
    """Return the arguments' texts of a response whose calls are those of the message; None when they are others."""
    said, calls = said or [], calls or []
    if not (isinstance(said, list) and isinstance(calls, list)) or len(said) != len(calls):
        return None
    texts: list[str | None] = []
    for one, call in zip(said, calls, strict=True):
        function = one.get("function") if isinstance(one, dict) else None
        if not isinstance(function, dict) or not isinstance(call, dict):
            return None
        if one.get("id") != call.get("id") or function.get("name") != call.get("name"):
            return None
        text = function.get("arguments")
        if not isinstance(text, str) and text != call.get("arguments"):
            return None
        texts.append(text if isinstance(text, str) else None)
    return texts


def _restore(step: dict[str, Any], calls: Any, texts: list[str | None]) -> bool:
    """Give calls the arguments of the message where a text holds others; return whether one did."""
    found = False
    if not texts:
        return found
    for entry, call, text in zip(step["tool_calls"], calls, texts, strict=True):
        wanted = call.get("arguments")
        if text is not None and isinstance(wanted, dict) and entry["arguments"] != wanted:
            entry["arguments"] = wanted
            entry.setdefault("extra", {}).pop("arguments", None)
            keep(entry, {"response_arguments": text})
            found = True
    return found


def _metrics(rest: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Take usage and cost out of a message and its response, and return what they say; the message's usage counts."""
    usage, more = rest.get("usage"), response.get("usage")
    told: dict[str, Any] = {}
    if isinstance(usage, dict):
        told |= rest.pop("usage")
    if isinstance(more, dict) and all(more.get(name) == told[name] for name in told):
        told |= response.pop("usage")
    metrics = metrics_of(told, rest.get("cost"))
    if "cost_usd" in metrics:
        del rest["cost"]
    return metrics


def _same_messages(messages: Sequence[Any], history: Sequence[Any]) -> bool:
    """Return whether messages say what the history says; only when they were said differs."""
    if len(messages) != len(history) or not all(isinstance(one, dict) for one in (*messages, *history)):
        return False
    names = ("role", "content", "tool_calls", "id", "requestor", "tool_messages")
    return all(one.get(name) == other.get(name) for one, other in zip(messages, history, strict=True) for name in names)


def _has_witness(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return False
    return any(isinstance(message.get(name), dict) and message[name] for name in ("usage", "raw_data"))


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the members of sound, where they say what they say of every text."""
    return {name: value for name, value in message.items() if name not in _DEFAULTS or value is not _DEFAULTS[name]}


def _own(call: Any) -> Any:
    """Return a call of the agent without `requestor`, which says what its place says."""
    if isinstance(call, dict) and call.get("requestor") == "assistant":
        return {name: value for name, value in call.items() if name != "requestor"}
    return call


def _move(source: dict[str, Any], name: str, target: dict[str, Any]) -> None:
    if isinstance(source.get(name), str) and target.get(name) is None:
        target[name] = source.pop(name)
