"""The records of one Claude Code conversation become the steps of a trajectory.

The program writes a record for each block of a reply, all with the reply's id and its usage: they are one step. Answers
go to the call that they name, wherever they stand behind it. A member of a record that is the same for the whole
conversation is a label of it, and stands in a step only where it is another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.importers.claude_code_messages import (
    OF_CONVERSATION,
    answered,
    blocks_of,
    content_of,
    is_result,
    joined,
    members_of,
    metrics_of,
    spoken,
)
from tracemark.importers.claude_code_tree import COMPACTIONS, role_of, session_of
from tracemark.importers.conversation import SPEAKERS, Conversation, UnknownRoleError
from tracemark.importers.session_lines import Line

LABELS = ("sessionId", "session_id", "version", "cwd", "gitBranch", "userType", "entrypoint", "slug", "agentId")
"""Members of records that say where and by what the conversation was held."""

EVENTS = ("local_command", *COMPACTIONS)
"""Subtypes of system records that the model may have seen something of: each is a step that names an event."""

_TREE = frozenset(
    {"type", "message", "timestamp", "parentUuid", "logicalParentUuid", "isSidechain", "parent_tool_use_id"}
)
_SYNTHETIC = "<synthetic>"


@dataclass(slots=True)
class _Turn:
    """What becomes one step: a message and the answers to its calls, or a record that is kept aside."""

    line: Line
    message: dict[str, Any] | None = None
    rest: dict[str, Any] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    calls: dict[str, int] = field(default_factory=dict)


class Turns:
    """The steps of one conversation, and what stands beside them.

    Args:
        lines: the records, in the order in which they were written.
        repairs: gets a note for what was altered.

    Raises:
        UnknownRoleError: for a role that is not known.
    """

    def __init__(self, lines: Iterable[Line], repairs: list[str]) -> None:
        self._repairs = repairs
        self._turns: list[_Turn] = []
        self._replies: dict[tuple[str, Any], _Turn] = {}
        self._calls: dict[str, deque[_Turn]] = {}
        held = list(lines)
        self.labels = _labels(held)
        """The first value of each of `LABELS` that a record has."""
        self.aside: list[dict[str, Any]] = []
        """Records that are no messages: `after` (the number of steps in front), `line` and `record`."""
        self.mixed: list[str] = []
        """Where another version was at work than before, or other tools were on offer, in words."""
        self.models: list[str] = []
        """The models that replied, each once."""
        self.failed = False
        """Whether the last that was said is an error of the model's server."""
        for line in held:
            self._add(line)
        conversation = Conversation(repairs)
        self.steps = conversation.steps
        """The steps."""
        spoken = (session_of(line.value) for line in reversed(held) if role_of(line.value) is not None)
        self._emit(conversation, next(filter(None, spoken), None))

    def _add(self, line: Line) -> None:
        role, kind = role_of(line.value), line.value.get("type")
        if role is None:
            event = line.value.get("subtype") if kind == "system" else kind
            if event in EVENTS or kind == "attachment":
                self._turns.append(_Turn(line, self._event(line.value, str(event))))
            else:
                self._turns.append(_Turn(line))
        elif role not in SPEAKERS:
            raise UnknownRoleError(f"line {line.number} has the role {role[:40]!r}")
        elif SPEAKERS[role] == "agent":
            self._reply(line, role)
        else:
            self._said(line, role)

    def _event(self, value: dict[str, Any], event: str) -> dict[str, Any]:
        rest = self._rest(value)
        message: dict[str, Any] = {"role": "system", "content": rest.pop("content_", ""), "event_type": event}
        if event in COMPACTIONS:
            message["context_management"] = {"type": COMPACTIONS[event], "boundary": "replace"}
        return {**message, **rest, "timestamp": value.get("timestamp")}

    def _reply(self, line: Line, role: str) -> None:
        said = line.value["message"]
        name = said.get("id")
        asked = line.value.get("requestId")
        key = (name, asked if isinstance(asked, str) else None) if isinstance(name, str) else None
        turn = None if key is None else self._replies.get(key)
        if turn is None:
            rest = self._rest(line.value)
            message = joined({**members_of(said), "role": role, "timestamp": line.value.get("timestamp")}, rest)
            turn = _Turn(line, message, rest=rest)
            self._turns.append(turn)
            if key is not None:
                self._replies[key] = turn
        else:
            self._merge(turn, line)
        if said.get("content") is not None:
            self._add_blocks(turn, blocks_of(said["content"]))

    def _add_blocks(self, turn: _Turn, blocks: list[Any]) -> None:
        """Add the blocks of a record to a reply; what an earlier record of it held is there once, as said last."""
        calls: dict[str, int] = {}
        marks = [digest.canonical(block) for block in blocks] if turn.blocks else [b""] * len(blocks)
        if turn.blocks and not turn.seen:
            turn.seen = {digest.canonical(block) for block in turn.blocks}
        for block, mark in zip(blocks, marks, strict=True):
            name = block.get("id") if isinstance(block, dict) and block.get("type") == "tool_use" else None
            if mark in turn.seen or (isinstance(name, str) and name in turn.calls):
                self._repairs.append("blocks that records of one reply hold twice: the last one counts")
                if isinstance(name, str):
                    turn.blocks[turn.calls[name]] = block
                continue
            turn.blocks.append(block)
            if isinstance(name, str):
                calls[name] = len(turn.blocks) - 1
                self._calls.setdefault(name, deque()).append(turn)
        if turn.seen:
            turn.seen.update(marks)
        turn.calls.update(calls)

    def _merge(self, turn: _Turn, line: Line) -> None:
        """Add a further record of a reply: what it says of the reply counts, and its own members are kept."""
        message, said = turn.message or {}, line.value["message"]
        message |= {name: value for name, value in members_of(said).items() if value is not None}
        own = {name: value for name, value in self._rest(line.value).items() if turn.rest.get(name) != value}
        if line.value.get("timestamp") != turn.line.value.get("timestamp"):
            own["timestamp"] = line.value.get("timestamp")
        if own:
            message.setdefault("further_records", []).append(own)

    def _said(self, line: Line, role: str) -> None:
        """Add the answers and the message in a record of the user's side; answers come first, as they are sent."""
        value, said = line.value, line.value["message"]
        content = said.get("content")
        results = [one for one in content if is_result(one)] if isinstance(content, list) else []
        rest = joined({name: one for name, one in members_of(said).items() if name != "content"}, self._rest(value))
        raw = rest.pop("toolUseResult", None)
        rest["timestamp"] = value.get("timestamp")
        for result in results:
            answer = answered(result, rest)
            if raw is not None:
                answer["raw_output" if len(results) == 1 else "toolUseResult"] = raw
            self._answered(line, result.get("tool_use_id"), answer)
            rest, raw = {}, None
        others = [one for one in content if not is_result(one)] if isinstance(content, list) else content
        if results and not others:
            return
        message: dict[str, Any] = {**rest, "role": role}
        if raw is not None:
            message["toolUseResult"] = raw
        if "content" in said:
            message["content"] = content_of(others)
        last = self._turns[-1].message if self._turns else None
        if value.get("isCompactSummary") and not (last and "context_management" in last):
            message["context_management"] = {"type": "compaction", "boundary": "replace"}
        self._turns.append(_Turn(line, message))

    def _answered(self, line: Line, name: Any, answer: dict[str, Any]) -> None:
        waiting = self._calls.get(name) if isinstance(name, str) else None
        if waiting:
            waiting.popleft().answers.append(answer)
        else:
            self._turns.append(_Turn(line, answer))

    def _rest(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the members of a record that are neither its message nor the conversation's own labels."""
        labels = self.labels
        return {
            f"{name}_" if name in OF_CONVERSATION else name: member
            for name, member in value.items()
            if member is not None and name not in _TREE and (name not in labels or labels[name] != member)
        }

    def _emit(self, conversation: Conversation, session: str | None) -> None:
        versions = _Versions(self.mixed)
        for turn in self._turns:
            value = turn.line.value
            versions.note(value, len(conversation.steps) + 1)
            if turn.message is None:
                entry = {"after": len(conversation.steps), "line": turn.line.number, "record": value}
                self.aside.append(entry)
                continue
            place = f"line {turn.line.number}"
            if turn.message["role"] == "tool":
                conversation.add(turn.message, place)
                continue
            is_reply = SPEAKERS[turn.message["role"]] == "agent"
            step = conversation.add(spoken(turn.message, turn.blocks) if is_reply else turn.message, place)
            if is_reply:
                self._judge(step)
            elif step["source"] == "user":
                self.failed = False
            if session_of(value) not in (None, session) or "forkedFrom" in value:
                step["is_copied_context"] = True
                self._repairs.append("steps of another session, from which this one goes on: marked as copied")
            for answer in turn.answers:
                conversation.add(answer, place)

    def _judge(self, step: dict[str, Any]) -> None:
        """Give a reply its metrics, unless the program wrote it in the model's place."""
        extra = step.get("extra", {})
        usage = extra.get("usage")
        model = step.get("model_name")
        self.failed = extra.get("isApiErrorMessage") is True
        if model == _SYNTHETIC or self.failed:
            step["llm_call_count"] = 0
            reasoning = step.pop("reasoning_content", None)
            if reasoning is not None:
                extra["original_reasoning_content"] = reasoning
            return
        if model is not None and model not in self.models:
            self.models.append(model)
        metrics = metrics_of(usage, extra.get("costUSD"))
        if metrics:
            step["metrics"] = metrics
        if metrics and "extra" in metrics:
            del extra["usage"]
        if "cost_usd" in metrics:
            del extra["costUSD"]
        if not extra:
            step.pop("extra", None)


class _Versions:
    """Notes where the program's version changes, and the tools that it offers."""

    def __init__(self, mixed: list[str]) -> None:
        self._mixed = mixed
        self._version: str | None = None
        self._tools: list[str] | None = None

    def note(self, value: dict[str, Any], step: int) -> None:
        version = value.get("version", value.get("claude_code_version"))
        if isinstance(version, str):
            if self._version not in (None, version):
                self._mixed.append(f"step {step}: version {version[:40]}, before it {str(self._version)[:40]}")
            self._version = version
        tools = value.get("tools") if (value.get("type"), value.get("subtype")) == ("system", "init") else None
        if isinstance(tools, list):
            names = sorted(name for name in tools if isinstance(name, str))
            if self._tools not in (None, names):
                self._mixed.append(f"step {step}: other tools are on offer than before")
            self._tools = names


def _labels(lines: Iterable[Line]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    missing = list(LABELS)
    for line in lines:
        held = [name for name in missing if isinstance(line.value.get(name), str)]
        if held:
            found |= {name: line.value[name] for name in held}
            missing = [name for name in missing if name not in found]
    return found
