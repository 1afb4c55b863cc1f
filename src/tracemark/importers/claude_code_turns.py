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
from tracemark.importers.claude_code_tree import COMPACTIONS, role_of, session_of
from tracemark.importers.conversation import SPEAKERS, Conversation, UnknownRoleError
from tracemark.importers.session_lines import Line
from tracemark.importers.usage import is_number

LABELS = ("sessionId", "session_id", "version", "cwd", "gitBranch", "userType", "entrypoint", "slug", "agentId")
"""Members of records that say where and by what the conversation was held."""

EVENTS = ("local_command", *COMPACTIONS)
"""Subtypes of system records that the model may have seen something of: each is a step that names an event."""

_TREE = frozenset(
    {"type", "message", "timestamp", "parentUuid", "logicalParentUuid", "isSidechain", "parent_tool_use_id"}
)
_OF_CONVERSATION = frozenset(
    {
        "role",
        "content",
        "timestamp",
        "tool_calls",
        "function_call",
        "tool_call_id",
        "reasoning_content",
        "reasoning",
        "thinking",
        "model",
        "name",
        "event_type",
        "context_management",
        "raw_output",
    }
)
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
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
            message = _joined({**_others(said), "role": role, "timestamp": line.value.get("timestamp")}, rest)
            turn = _Turn(line, message, rest=rest)
            self._turns.append(turn)
            if key is not None:
                self._replies[key] = turn
        else:
            self._merge(turn, line)
        if said.get("content") is not None:
            self._add_blocks(turn, _blocks(said["content"]))

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
        message |= {name: value for name, value in _others(said).items() if value is not None}
        own = {name: value for name, value in self._rest(line.value).items() if turn.rest.get(name) != value}
        if line.value.get("timestamp") != turn.line.value.get("timestamp"):
            own["timestamp"] = line.value.get("timestamp")
        if own:
            message.setdefault("further_records", []).append(own)

    def _said(self, line: Line, role: str) -> None:
        """Add the answers and the message in a record of the user's side; answers come first, as they are sent."""
        value, said = line.value, line.value["message"]
        content = said.get("content")
        results = [one for one in content if _is_result(one)] if isinstance(content, list) else []
        rest = _joined({name: one for name, one in _others(said).items() if name != "content"}, self._rest(value))
        raw = rest.pop("toolUseResult", None)
        rest["timestamp"] = value.get("timestamp")
        for result in results:
            answer = _answer(result, rest)
            if raw is not None:
                answer["raw_output" if len(results) == 1 else "toolUseResult"] = raw
            self._answered(line, result.get("tool_use_id"), answer)
            rest, raw = {}, None
        others = [one for one in content if not _is_result(one)] if isinstance(content, list) else content
        if results and not others:
            return
        message: dict[str, Any] = {**rest, "role": role}
        if raw is not None:
            message["toolUseResult"] = raw
        if "content" in said:
            message["content"] = _content(others)
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
            f"{name}_" if name in _OF_CONVERSATION else name: member
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
            step = conversation.add(_spoken(turn.message, turn.blocks) if is_reply else turn.message, place)
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


def metrics_of(usage: Any, cost: Any) -> dict[str, Any]:
    """Return the metrics of one reply; the prompt's tokens are those read from a cache, put into it, and the others.

    Args:
        usage: as the Messages API reports it; kept whole in `extra.usage`.
        cost: US dollars; anything but a number gives nothing.
    """
    metrics: dict[str, Any] = {}
    if isinstance(usage, dict) and usage:
        parts = [usage.get(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
        if type(parts[0]) is int:
            metrics["prompt_tokens"] = sum(part for part in parts if type(part) is int)
        if type(usage.get("output_tokens")) is int:
            metrics["completion_tokens"] = usage["output_tokens"]
        if type(parts[2]) is int:
            metrics["cached_tokens"] = parts[2]
        metrics["extra"] = {"usage": usage}
    if is_number(cost):
        metrics["cost_usd"] = cost
    return metrics


def _blocks(content: Any) -> list[Any]:
    """Return the blocks of a reply, whose content may be a text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else [content]


def _spoken(message: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
    """Return a reply as a chat message: its texts, its reasoning, its calls."""
    if message.get("content") is None:
        return message
    texts: list[Any] = []
    reasoning: list[str] = []
    thinking: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    others = False
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block)
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            reasoning += [block["thinking"]] if block["thinking"] else []
            thinking.append({name: value for name, value in block.items() if name != "thinking"})
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind == "redacted_thinking":
            thinking.append(block)
        else:
            others = True
    plain = len(texts) == 1 and len(texts[0]) == 2
    made = {**message, "content": texts[0]["text"] if plain else texts or ""}
    if reasoning:
        made["reasoning_content"] = "\n".join(reasoning)
    if any(len(block) > 1 for block in thinking):
        made["thinking_blocks"] = thinking
    if calls:
        made["tool_calls"] = calls
    if others:
        # what has no place in a step was said all the same: nobody is to learn the rest as if it were the whole reply
        made["content"] = "".join(block["text"] for block in texts)
        made["original_content"] = blocks
    return made


def _call(block: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in block.items() if name not in ("type", "name", "input", "function")}
    return {**rest, "function": {"name": block.get("name"), "arguments": block.get("input")}}


def _answer(result: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    own = {name: value for name, value in result.items() if name not in ("type", "tool_use_id", "content")}
    answer = _joined(_others(own), rest)
    answer |= {"role": "tool", "tool_call_id": result.get("tool_use_id")}
    if "content" in result:
        answer["content"] = _content(content)
    return answer


def _others(said: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a message without its role; one that a conversation reads as its own gets another name."""
    return {
        f"{name}_" if name in _OF_CONVERSATION and name not in ("content", "model") else name: member
        for name, member in said.items()
        if name != "role" and not (name == "type" and member == "message")
    }


def _joined(own: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """Return members of a message and of its record; of two with one name that of the record gets another one."""
    return {**own, **{f"{name}_" if name in own else name: member for name, member in rest.items()}}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _content(content: Any) -> Any:
    """Return the content of a message: a text where it is one, else its blocks as parts of a chat message."""
    if not isinstance(content, list):
        return content
    only = content[0] if len(content) == 1 and isinstance(content[0], dict) else {}
    if only.keys() == {"type", "text"} and only["type"] == "text" and isinstance(only["text"], str):
        return only["text"]
    return [_part(one) for one in content]


def _part(block: Any) -> Any:
    """Return a block as a part of a chat message; one that is neither text nor an image stays as it is."""
    source = block.get("source") if isinstance(block, dict) and block.get("type") == "image" else None
    if not isinstance(source, dict) or set(block) != {"type", "source"}:
        return block
    if set(source) == {"type", "media_type", "data"} and source["type"] == "base64" and source["media_type"] in _IMAGES:
        data = source["data"]
        if isinstance(data, str):
            return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{data}"}}
    return block


def _labels(lines: Iterable[Line]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    missing = list(LABELS)
    for line in lines:
        held = [name for name in missing if isinstance(line.value.get(name), str)]
        if held:
            found |= {name: line.value[name] for name in held}
            missing = [name for name in missing if name not in found]
    return found
