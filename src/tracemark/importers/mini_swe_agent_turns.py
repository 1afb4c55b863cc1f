"""The messages of a mini-swe-agent run become steps: what stands in their `extra` finds its place beside them.

Every message may carry an `extra`: of a reply the provider's response, its cost and the actions read out of it; of an
observation what the command really gave. The message itself is what the model saw or wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemark.importers import supplied
from tracemark.importers.completion import reply_in, without_reply
from tracemark.importers.conversation import Conversation, NotMessagesError
from tracemark.importers.members import keep, without_null
from tracemark.importers.response_turn import answer_of, is_summary, message_of
from tracemark.importers.usage import is_number, metrics_of

_RAW = "raw_output"


class Turns:
    """Steps as they grow message by message.

    Args:
        repairs: gets what is altered on the way.
        info: `info` of the document, of which an exit message may repeat something.
    """

    def __init__(self, repairs: list[str], info: Mapping[str, Any]) -> None:
        self._conversation = Conversation(repairs)
        self._info = info
        self._has_calls = False
        self._has_response = False
        self._unwitnessed: list[dict[str, Any]] = []
        self.steps = self._conversation.steps
        """The steps so far."""
        self.exits: list[dict[str, Any]] = []
        """What exit messages say that `info` does not, each with the number of steps in front of it."""
        self.ending: Mapping[str, Any] = {}
        """The `extra` of the last exit message; empty when there is none."""
        self.is_summarised = False
        """Whether a reply shows a summary where the model thought."""

    def add(self, message: Any, index: int) -> None:
        """Add one message.

        Raises:
            UnknownRoleError: for a role that is not known.
            NotMessagesError: when it is no message.
        """
        if not isinstance(message, dict):
            raise NotMessagesError(f"messages/{index} is no message")
        place = f"messages/{index}"
        rest = dict(message)
        extra = rest.pop("extra", None)
        if not isinstance(extra, dict):
            if extra is not None:
                rest["extra"] = extra
            extra = {}
        if rest.get("role") == "exit":
            self._exit(rest, extra)
        elif "role" not in rest and rest.get("object") == "response":
            items = rest.get("output")
            self.is_summarised |= isinstance(items, list) and any(map(is_summary, items))
            self._reply(message_of(rest), extra, rest, place)
        elif "role" not in rest and rest.get("type") == "function_call_output":
            self._observation(answer_of(rest), extra, place)
        elif rest.get("role") == "assistant":
            self._reply(rest, extra, extra.get("response"), place)
        elif self._is_observation(rest, extra):
            self._observation(rest, extra, place)
        else:
            self._conversation.add({**rest, **_apart(extra, rest)}, place)

    def end(self) -> None:
        """Mark replies without a response where others have one: people may act in the model's place."""
        for step in self._unwitnessed if self._has_response else ():
            supplied.mark(step, self._conversation.repairs)

    def _is_observation(self, message: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
        if message.get("role") == "tool":
            return True
        behind_reply = bool(self.steps) and self.steps[-1]["source"] == "agent" and "observation" not in self.steps[-1]
        if message.get("role") != "user" or not behind_reply:
            return False
        return _RAW in extra or not (self._has_calls or "interrupt_type" in extra)

    def _reply(self, message: dict[str, Any], extra: Mapping[str, Any], response: Any, place: str) -> None:
        left = {name: value for name, value in extra.items() if name not in ("response", "cost", "timestamp")}
        if "timestamp" in extra:
            message = {"timestamp": extra["timestamp"], **message}
        step = self._conversation.add(message, place)
        self._has_calls = self._has_calls or "tool_calls" in step
        if response is None:
            self._unwitnessed.append(step)
        else:
            self._has_response = True
        if "actions" in left and _repeats(left["actions"], step):
            del left["actions"]
        if "cost" in extra and not is_number(extra["cost"]):
            left["cost"] = extra["cost"]
        if isinstance(response, dict):
            metrics = metrics_of(response.get("usage"), extra.get("cost"))
            response = _without(response, message)
            if isinstance(response.get("model"), str):
                step.setdefault("model_name", response.pop("model"))
        else:
            metrics = metrics_of(None, extra.get("cost"))
        if metrics:
            step["metrics"] = metrics
        if response not in (None, {}):
            left["response"] = response
        keep(step, left)

    def _observation(self, message: dict[str, Any], extra: Mapping[str, Any], place: str) -> None:
        role = message.pop("role")
        if role != "tool":
            message["original_role"] = role
        left = dict(extra)
        raw = left.pop(_RAW, None)
        if raw is not None:
            moment = {"timestamp": left.pop("timestamp")} if "timestamp" in left else {}
            left = {_RAW: {"output": {**left, "output": raw}}, **moment}
        step = self._conversation.add({"role": "tool", **message}, place)
        keep(step["observation"]["results"][-1], left)

    def _exit(self, message: dict[str, Any], extra: Mapping[str, Any]) -> None:
        self.ending = extra
        del message["role"]
        if message.get("content", "") in (self._info.get("submission", ""), extra.get("submission", "")):
            message.pop("content", None)
        new = {name: value for name, value in extra.items() if name not in self._info or self._info[name] != value}
        if new:
            message["extra"] = new
        if message:
            self.exits.append({**message, "behind_steps": len(self.steps)})


def _apart(extra: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an `extra` for a message that has none of these names; the others stay together."""
    if not extra:
        return {}
    twice = {name: value for name, value in extra.items() if name in message}
    return {
        **{name: value for name, value in extra.items() if name not in message},
        **({"extra": twice} if twice else {}),
    }


def _repeats(actions: Any, step: Mapping[str, Any]) -> bool:
    """Return whether the actions are the calls of the step, in order, with nothing else said of them."""
    calls = step.get("tool_calls", [])
    if not isinstance(actions, list) or len(actions) != len(calls):
        return False
    return all(
        action == {**call["arguments"], "tool_call_id": call.get("extra", {}).get("original_id", call["tool_call_id"])}
        for action, call in zip(actions, calls, strict=True)
    )


def _without(response: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a response says beside the message, its usage, and the output items that the message keeps."""
    dropped = ("usage", "output") if "output" in message else ("usage",)
    left = without_null(response, *dropped)
    said = reply_in(left)
    if said is None:
        return left
    new = {name: value for name, value in without_null(said).items() if message.get(name) != value}
    return without_reply(left, new)
