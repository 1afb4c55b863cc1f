"""The lines of one Codex rollout add up to a run: steps, and what stands beside them.

What the model gave at once are the items between two things that it was told; a second text begins another step, and
so does what follows the report of a reply's tokens. A turn that was rolled back is no part of what the model saw later:
its steps are taken out again.
"""

from __future__ import annotations

from typing import Any

from tracemark.importers.codex_items import (
    CALLS,
    COMPACTIONS,
    OUTPUTS,
    SNAPSHOTS,
    Entry,
    answered,
    is_injected,
    reply_of,
    spoken,
    texts_of,
)
from tracemark.importers.conversation import Conversation
from tracemark.importers.response_turn import is_summary
from tracemark.importers.usage import metrics_of

POLICIES = ("approval_policy", "sandbox_policy", "truncation_policy")
"""Members of a turn's context by which the program treats a call and its output: settings of the runtime."""

_SETTINGS = ("effort", "summary")
_OF_REPLY = ("message", "reasoning", *CALLS)
_ECHOES = {
    "user_message": "message",
    "agent_message": "message",
    "agent_reasoning": "text",
    "agent_reasoning_raw_content": "text",
}
_IMAGES = ("images", "local_images")


class Story:
    """One run as it grows, line by line.

    Args:
        entries: the lines of one session.
        repairs: gets a note for what was altered.

    Raises:
        UnknownRoleError: for a role that is not known.
        NotMessagesError: for something that should be a message and is none.
    """

    def __init__(self, entries: list[Entry], repairs: list[str]) -> None:
        self._repairs = repairs
        self._conversation = Conversation(repairs)
        self._items: list[dict[str, Any]] = []
        self._first: Entry | None = None
        self._turns: list[int] = []
        self._texts: set[str] = set()
        self._raw: dict[str, dict[str, Any]] = {}
        self._total: Any = None
        self._is_stale = False
        self._replied = False
        self._mark = ""
        self._version: str | None = None
        self._prompt: str | None = None
        self.meta: dict[str, Any] = {}
        """The first `session_meta`."""
        self.aside: list[dict[str, Any]] = []
        """Lines that are no part of the conversation: `after` (the number of steps in front), `line` and `record`."""
        self.rolled_back: list[dict[str, Any]] = []
        """Turns that were taken back: `after`, their `steps`, and the `records` beside them."""
        self.context: dict[str, Any] = {}
        """The last `turn_context`."""
        self.settings: dict[str, Any] = {}
        """Policies and settings of the model that never changed, by name."""
        self.models: list[str] = []
        """The models that replied, each once."""
        self.mixed: list[str] = []
        """Where another harness was at work than before, in words."""
        self.termination: str | None = None
        """How the last turn ended, where that is said; None when it just ended."""
        self.is_failed = False
        """Whether the last that happened is an error."""
        self.is_fork = False
        """Whether it begins with the history of another session."""
        self.copied = 0
        """How many steps are such history."""
        self.is_summarised = False
        """Whether a reply shows a summary where the model thought."""
        self.base_instructions: str | None = None
        """The system prompt; None when the file does not hold it."""
        self.totals: dict[str, Any] = {}
        """The last report of all tokens of the session."""
        for entry in entries:
            self._add(entry)
        self._flush()
        self._settle()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps."""
        return self._conversation.steps

    def _add(self, entry: Entry) -> None:
        kind = entry.payload.get("type")
        if entry.kind == "session_meta":
            self._begin(entry)
        elif entry.kind == "turn_context":
            self._turn(entry)
        elif entry.kind == "response_item" and isinstance(kind, str):
            self._item(entry, kind)
        elif entry.kind == "compacted":
            self._compact(entry, "compacted", entry.payload.get("message"))
        elif entry.kind == "event_msg":
            self._event(entry, str(kind))
        else:
            self._put_aside(entry)

    def _put_aside(self, entry: Entry) -> None:
        after = len(self.steps) + bool(self._items)
        self.aside.append({"after": after, "line": entry.number, "record": entry.line.value})

    def _begin(self, entry: Entry) -> None:
        payload = entry.payload
        if not self.meta:
            self.meta = payload
            self._mark = str(payload.get("timestamp", entry.time))
            self._version, self._prompt = _text(payload.get("cli_version")), _instructions(payload)
            self.base_instructions = self._prompt
            if self.base_instructions:
                said = {"role": "system", "content": self.base_instructions, "origin": "session_meta.base_instructions"}
                self._conversation.add({**said, "timestamp": entry.time}, f"line {entry.number}")
            return
        other = payload.get("id") != self.meta.get("id")
        self.is_fork = self.is_fork or other
        version, prompt = _text(payload.get("cli_version")), _instructions(payload)
        if None not in (version, self._version) and version != self._version:
            self._mix(f"version {str(version)[:40]}, before it {str(self._version)[:40]}")
        if prompt not in (None, self._prompt):
            self._mix("another system prompt than before")
        self._version, self._prompt = version or self._version, prompt or self._prompt
        if other or payload != self.meta:
            self._put_aside(entry)

    def _mix(self, words: str) -> None:
        said = f"step {len(self.steps) + bool(self._items) + 1}: {words}"
        if said not in self.mixed[-1:]:
            self.mixed.append(said)

    def _turn(self, entry: Entry) -> None:
        self._flush()
        payload = entry.payload
        for name in (*POLICIES, *_SETTINGS):
            value = _without_paths(payload.get(name))
            if name in self.settings and self._replied and self.settings[name] != value:
                if name in POLICIES and self.settings[name] is not None and value is not None:
                    self._mix(f"another {name} than before")
                self.settings[name] = None
            elif name not in self.settings or not self._replied:
                self.settings[name] = value
        if payload != self.context:
            self._put_aside(entry)
        self.context = payload

    def _item(self, entry: Entry, kind: str) -> None:
        payload = entry.payload
        self.termination, self.is_failed = None, False
        if kind in SNAPSHOTS:
            self._put_aside(entry)
        elif kind in OUTPUTS:
            self._flush()
            if self._is_stale:
                self._put_aside(entry)
            else:
                self._conversation.add({**answered(payload), "timestamp": entry.time}, f"line {entry.number}")
        elif kind in COMPACTIONS:
            self._compact(entry, kind, None)
        elif kind in _OF_REPLY and (kind != "message" or payload.get("role") == "assistant"):
            if kind == "message" and any(item.get("type") == "message" for item in self._items):
                self._flush()
            self._first = self._first or entry
            self._items.append(payload)
            self._texts.update(texts_of(payload.get("content")) + texts_of(payload.get("summary")))
            self.is_summarised = self.is_summarised or is_summary(payload)
        elif kind == "message":
            self._said(entry)
        else:
            self._say(entry, {"role": "system", "content": "", "event_type": kind, "item": payload})

    def _said(self, entry: Entry) -> None:
        self._flush()
        payload = entry.payload
        if payload.get("role") == "user" and not is_injected(payload):
            self._turns.append(len(self.steps))
        self._texts.update(texts_of(payload.get("content")))
        self._say(entry, spoken(payload))

    def _say(self, entry: Entry, message: dict[str, Any]) -> None:
        self._flush()
        step = self._conversation.add({**message, "timestamp": entry.time}, f"line {entry.number}")
        self._judge_copy(step, entry)

    def _compact(self, entry: Entry, event: str, text: Any) -> None:
        rest = {name: value for name, value in entry.payload.items() if name not in ("type", "message")}
        message = {"role": "system", "content": text if isinstance(text, str) else "", "event_type": event}
        self._say(entry, {**message, "context_management": {"type": "compaction", "boundary": "replace"}, "item": rest})

    def _flush(self) -> None:
        """Make a step of what the model gave since it was told something."""
        if not self._items or self._first is None:
            return
        entry, self._first = self._first, None
        message = {**reply_of(self._items), "timestamp": entry.time}
        self._items = []
        step = self._conversation.add(message, f"line {entry.number}")
        self._replied, self._is_stale = True, False
        model, effort = self.context.get("model"), self.context.get("effort")
        if isinstance(model, str):
            step["model_name"] = model
            if model not in self.models:
                self.models.append(model)
        if isinstance(effort, str):
            step["reasoning_effort"] = effort
        self._judge_copy(step, entry)

    def _judge_copy(self, step: dict[str, Any], entry: Entry) -> None:
        """Mark a step that was written before the session began: it is history of the session that it goes on from."""
        times = (entry.time, self._mark)
        if self.is_fork and all(isinstance(time, str) and time.endswith("Z") for time in times) and times[0] < times[1]:
            step["is_copied_context"] = True
            self.copied += 1

    def _event(self, entry: Entry, kind: str) -> None:
        payload = entry.payload
        if kind == "token_count":
            self._count(entry)
        elif kind == "thread_rolled_back":
            self._roll_back(entry)
        elif kind.endswith("_end") and isinstance(payload.get("call_id"), str) and payload["call_id"] not in self._raw:
            self._raw[payload["call_id"]] = {"entry": entry, "after": len(self.steps) + bool(self._items)}
        else:
            self._put_aside(entry)
            if kind == "turn_aborted":
                self._flush()
                reason = payload.get("reason")
                self.termination = f"aborted: {reason}" if isinstance(reason, str) else "aborted"
            self.is_failed = self.is_failed or kind == "error"

    def _count(self, entry: Entry) -> None:
        """Give the last reply its tokens; a report that is repeated says nothing new."""
        info = entry.payload.get("info")
        if not isinstance(info, dict):
            return
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        self._flush()
        if total is not None and total == self._total:
            return
        self._total = total
        if isinstance(total, dict):
            self.totals = {**total, "model_context_window": info.get("model_context_window")}
        step = self.steps[-1] if self.steps else {}
        metrics = _metrics(last)
        if metrics and step.get("source") == "agent" and "metrics" not in step:
            step["metrics"] = metrics
        else:
            self._put_aside(entry)

    def _roll_back(self, entry: Entry) -> None:
        """Take the last turns out."""
        self._flush()
        number = entry.payload.get("num_turns")
        self._put_aside(entry)
        if type(number) is not int or number < 1 or not self._turns:
            return
        start = self._turns[max(0, len(self._turns) - number)]
        gone = self.steps[start:]
        told, beside = self.aside.pop(), []
        # the numbers never fall along the list, so what is beside the turns stands at its end
        while self.aside and self.aside[-1]["after"] > start:
            beside.append(self.aside.pop())
        self.aside.append({**told, "after": start})
        self.rolled_back.append({"after": start, "steps": gone, "records": beside[::-1]})
        self._repairs.append("turns that were rolled back: put aside")
        del self.steps[start:]
        del self._turns[max(0, len(self._turns) - number) :]
        self._is_stale = True

    def _settle(self) -> None:
        """Give raw outputs to the answers of their calls, and let go of events that repeat what was said."""
        for step in self.steps:
            for result in step.get("observation", {}).get("results", ()):
                held = self._raw.pop(result.get("source_call_id"), None)
                if held is not None:
                    payload = held["entry"].payload
                    raw = {name: value for name, value in payload.items() if name not in ("type", "call_id")}
                    result.setdefault("extra", {})["raw_output"] = raw
        for held in self._raw.values():
            entry = held["entry"]
            self.aside.append({"after": held["after"], "line": entry.number, "record": entry.line.value})
        self.aside = [one for one in self.aside if not self._is_echo(one["record"])]
        self.aside.sort(key=lambda one: int(one["line"]))

    def _is_echo(self, record: dict[str, Any]) -> bool:
        payload = record.get("payload")
        if record.get("type") != "event_msg" or not isinstance(payload, dict):
            return False
        member = _ECHOES.get(payload["type"]) if isinstance(payload.get("type"), str) else None
        return member is not None and _text(payload.get(member)) in self._texts and not any(map(payload.get, _IMAGES))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _instructions(meta: dict[str, Any]) -> str | None:
    """Return the system prompt that a session names; what stands in `instructions` may be the workspace's own text."""
    held = meta.get("base_instructions")
    return _text(held.get("text") if isinstance(held, dict) else held)


def _metrics(usage: Any) -> dict[str, Any]:
    metrics = metrics_of(usage)
    if metrics and type(usage.get("cached_input_tokens")) is int:
        metrics["cached_tokens"] = usage["cached_input_tokens"]
    return metrics


def _without_paths(value: Any) -> Any:
    """Return a policy without the folders of the machine in it, at any depth."""
    if not isinstance(value, dict):
        return value
    return {name: _without_paths(one) for name, one in value.items() if not name.endswith("_roots")}
