"""One sample of an Inspect AI log, read: its steps, what was sent for them, and what that shows of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.importers import recovery
from tracemark.importers.completion import reply_in
from tracemark.importers.conversation import Conversation
from tracemark.importers.finish import UnfitError
from tracemark.importers.inspect_events import GENERATED, Attachments, Call, Calls, written
from tracemark.importers.inspect_header import runtime_of
from tracemark.importers.inspect_messages import add, event_of
from tracemark.importers.inspect_prompts import prompts_of
from tracemark.importers.inspect_requests import asked, behind_replies, holds, id_of, is_kept, merged

KEPT_EVENTS = ("approval", "branch", "compaction", "error", "info", "input", "interrupt", "sample_limit")
"""Kinds of events that are kept in the root's `extra.events`."""

_WRITTEN = ("content", "tool_calls")
_SETTINGS = ("config", "model", "tool_choice")


class Reading:
    """The steps of one sample, as they are read.

    Args:
        sample: altered: what is read is taken out of it.
        calls: its model calls.
        attachments: its attachments.
        conversation: gets the steps.
    """

    def __init__(
        self, sample: dict[str, Any], calls: Calls, attachments: Attachments, conversation: Conversation
    ) -> None:
        self._sample = sample
        self._calls = calls
        self._attachments = attachments
        self._input = attachments.put_back(sample.pop("input", None))
        self._output = attachments.put_back(sample.pop("output", None))
        self._own: list[tuple[int, Call, dict[str, Any]]] = []
        self._messages: list[Any] = []
        self._altered: dict[int, Any] = {}
        self._settings: dict[str, Any] | None = None
        self._sent: tuple[Call, list[list[str]]] | None = None
        self._is_other_prompt = False
        self._changed: set[str] = set()
        self.conversation = conversation
        self.tools: list[Any] | None = None
        """The tools that the first request of the agent offered; None when no request is held."""
        self.offered_none = False
        """Whether that request offered no tools."""
        self.mixed: list[str] = []
        """Where another prompt or other tools were at work, in words."""
        self.doubts: list[tuple[str, str]] = []
        """Findings, as pairs of code and words."""

    def add_messages(self) -> None:
        """Add every message of the sample as a step, and compare what was sent for the agent's replies.

        Raises:
            UnfitError: when there is nothing that could be a step.
            UnknownRoleError, NotMessagesError: as `Conversation.add`.
        """
        messages = self._attachments.put_back(self._sample.pop("messages", None))
        if not isinstance(messages, (list, type(None))):
            raise UnfitError("messages is no list")
        self._messages = messages or self._first_messages()
        given = self._calls.of(self._messages)
        self._use_output(given)
        self._add_sent_system(given)
        self._restore(given)
        for index, (message, call) in enumerate(zip(self._messages, given, strict=True)):
            self._add(index, message, call)
        self._compare_requests()

    @property
    def own(self) -> list[Call]:
        """The agent's own calls, in order."""
        return [call for _, call, _ in self._own]

    def first_event(self) -> dict[str, Any] | None:
        """Return the settings of the agent's first model call; None when none is held."""
        return self._settings

    def shown(self, spec: Mapping[str, Any], plan: Any) -> dict[str, list[recovery.Entry]]:
        """Return what the sample and its log's header show of the harness.

        Args:
            spec: the header's `eval`.
            plan: the header's `plan`.
        """
        prompts: list[recovery.Entry] = []
        if not self._is_other_prompt:
            messages = self._input if isinstance(self._input, list) else [{"content": self._input}]
            prompts, is_config_wrong = prompts_of(self.conversation.steps, messages, plan)
            if is_config_wrong:
                self.doubts.append(("config-contradicted", "no system message is a rendering of the plan's template"))
                spec, plan = {}, None
        runtime = runtime_of(spec, plan, self.first_event())
        return {
            "prompt_templates": prompts,
            "runtime": [entry for entry in runtime if entry["part"] not in self._changed],
        }

    def left_over(self) -> dict[str, Any]:
        """Return what has no other place: members of the sample, and events of `KEPT_EVENTS`."""
        sample = self._sample
        sample.pop("timelines", None)
        if self._input is not None and not self._is_in_messages(self._input):
            sample["input"] = self._input
        if self._output is not None:
            sample["output"] = self._output
        for name in ("error", "error_retries"):
            sample[name] = _without_colour(sample.get(name))
        rest = {name: value for name, value in sample.items() if value is not None}
        events = [event for event in self._calls.events if event.get("event") in KEPT_EVENTS]
        found = {"sample": rest, "events": events}
        return {name: self._put_back(value) for name, value in found.items() if value}

    def _first_messages(self) -> list[Any]:
        """Return the input of a sample without messages, as messages."""
        if isinstance(self._input, str) and self._input:
            messages: list[Any] = [{"role": "user", "content": self._input}]
        elif isinstance(self._input, list) and self._input:
            messages = self._input
        else:
            raise UnfitError("a sample has neither messages nor input")
        self.conversation.repairs.append("a sample without messages: its input stands in their place")
        return messages

    def _use_output(self, given: list[Call | None]) -> None:
        """Let go of the sample's output where a reply says the same; link it to the last reply where no call is.

        Solvers make outputs too, of people's answers for instance, so an output alone says of no reply who wrote it.
        """
        last = next((at for at in reversed(range(len(given))) if _is_reply(self._messages[at])), None)
        output = self._output
        reply = reply_in(output)
        if last is None or reply is None or written(reply) != written(self._messages[last]):
            return
        call = given[last]
        if call is None:
            if self._messages[last].get("source") != GENERATED:
                return
            given[last] = Call({"output": output}, reply)
        elif not _same_output(self._put_back(call.event["output"]), output):
            return
        self._output = None

    def _add_sent_system(self, given: list[Call | None]) -> None:
        """Put a system message in front that was sent with the first call, and was none of the sample's own."""
        index = next((at for at, call in enumerate(given) if call is not None), len(given))
        call = given[index] if index < len(given) else None
        sent = self._calls.input_of(call) if call is not None else []
        if call is None or not _system(sent[:1]):
            return
        messages = merged(self._messages[:index])
        if self._merged(call) != messages and messages == merged(self._put_back(sent[1:])):
            self._messages = [self._put_back(sent[0]), *self._messages]
            given.insert(0, None)
            self.conversation.repairs.append("a system message that was sent and is not in messages: put in front")

    def _restore(self, given: Sequence[Call | None]) -> None:
        """Put replies that a solver altered back to what the model wrote, where no later request was sent the other.

        The ReAct agent takes the last call, which submits the answer, out of its message when all is done.
        """
        self._messages = list(self._messages)
        for index, call in enumerate(given):
            message = self._messages[index]
            if call is None or written(call.message) == written(message):
                continue
            later = next((after for after in given[index + 1 :] if after is not None), None)
            sent = [] if later is None else self._calls.input_of(later)
            seen = next((one for one in sent if id_of(one) == id_of(message) is not None), None)
            if not sent or (seen is not None and written(self._put_back(seen)) == written(call.message)):
                bare = {name: member for name, member in message.items() if name not in _WRITTEN}
                self._messages[index] = {**bare, **_reply_of(call.message)}
                self._altered[index] = message

    def _add(self, index: int, message: Any, call: Call | None) -> None:
        event = None if call is None else self._put_back(event_of(call.event))
        step = add(self.conversation, message, f"messages/{index}", event)
        if step["source"] != "agent" or not _is_reply(message):
            return
        if call is None and message.get("source") != GENERATED:
            self._mark(step)
            step["llm_call_count"] = 0
            if "reasoning_content" in step:
                step["extra"]["reasoning_content"] = step.pop("reasoning_content")
        elif index in self._altered:
            step.setdefault("extra", {})["altered"] = _reply_of(self._altered[index])
            self.conversation.repairs.append("replies that were altered after the model wrote them: as it wrote them")
        elif call is not None and written(call.message) != written(message):
            self._mark(step)
            step["extra"]["generated"] = _reply_of(call.message)
            self.conversation.repairs.append("replies that later requests held altered: marked, both kept")
        if call is not None:
            self._own.append((index, call, step))

    def _mark(self, step: dict[str, Any]) -> None:
        step["is_copied_context"] = True
        step.setdefault("extra", {})

    def _compare_requests(self) -> None:
        """Look at what was sent with the agent's own calls: the first prompt and tools, and every change of them."""
        requests = [own for own in self._own if "input" in own[1].event or "tools" in own[1].event]
        if not requests:
            return
        index, first, step = requests[0]
        self._settings = self._put_back({name: first.event.get(name) for name in _SETTINGS})
        self._take_tools(first, step)
        sent = self._calls.input_of(first)
        self._is_other_prompt = bool(sent) and self._merged(first) != merged(self._messages[:index])
        if self._is_other_prompt:
            self.mixed.append(f"step {step['step_id']}: the model was sent other messages than stand in front of it")
        system, tools = _system(sent), first.event.get("tools")
        for _, call, step in requests[1:]:
            other, offered = _system(self._calls.input_of(call)), call.event.get("tools")
            if other != system and self._put_back(other) != self._put_back(system):
                self.mixed.append(f"step {step['step_id']}: another system prompt than in the call before")
                system = other
            if offered != tools and self._key_of(offered) != self._key_of(tools):
                self.mixed.append(f"step {step['step_id']}: other tools than in the call before")
                step.setdefault("extra", {})["tools_offered"] = self._put_back(offered)
                tools = offered
            self._keep_settings(call, first, step)
        self._mark_shortened()

    def _mark_shortened(self) -> None:
        """Mark the first reply whose request left out or changed what stands in front of it, or followed a compaction.

        A sample keeps all of its messages, whatever of them was sent. Providers join messages of the user, so replies
        and answers are looked for by their ids, and what the user said behind the last reply as one text.
        """
        steps = {id(call.event): step for _, call, step in self._own}
        is_compacted = False
        for event in self._calls.events:
            is_compacted = is_compacted or event.get("event") == "compaction"
            if is_compacted and id(event) in steps:
                _rewrite(steps[id(event)], "compaction")
                return
        front: dict[str, Any] = {}
        kept: set[str | None] = set()
        known = 0
        same: set[int] = set()
        for number, (index, call, step) in enumerate(self._own):
            front |= {name: one for one in self._messages[known:index] if (name := id_of(one)) is not None}
            kept |= {id_of(one) for one in self._messages[known:index] if is_kept(one)} - {None}
            known = index
            sent = self._calls.input_of(call)
            names = {id_of(one) for one in sent}
            if names - {None} and not names >= kept:
                _rewrite(step, "pruning")
                return
            # the first request is compared as a whole
            if number and sent and not self._holds(sent, front, self._messages[:index], same):
                _rewrite(step, "rewriting")
                return

    def _holds(self, sent: list[Any], front: Mapping[str, Any], before: list[Any], same: set[int]) -> bool:
        """Return whether a request holds messages as they are, and what the user said last.

        Args:
            sent: the messages of the request.
            front: messages in front of the reply to it, by id.
            before: all messages in front of it.
            same: the messages of requests that are known to be as they are; requests of a pool share them.
        """
        for one in sent:
            name = id_of(one)
            if name is None or name not in front or id(one) in same:
                continue
            if not holds(self._put_back(one), front[name]):
                return False
            same.add(id(one))
        return asked(self._put_back(behind_replies(sent))) == asked(behind_replies(before))

    def _key_of(self, tools: Any) -> bytes:
        return recovery.tools_key(self._put_back(tools))

    def _keep_settings(self, call: Call, first: Call, step: dict[str, Any]) -> None:
        """Keep the settings of a request that are not those of the first."""
        other = {
            name: self._put_back(call.event.get(name))
            for name in _SETTINGS
            if call.event.get(name) != first.event.get(name)
        }
        if not other:
            return
        step.setdefault("extra", {})["request"] = other
        config, before = call.event.get("config"), first.event.get("config")
        if isinstance(config, dict) and isinstance(before, dict):
            self._changed |= {name for name in {*config, *before} if config.get(name) != before.get(name)}

    def _take_tools(self, first: Call, step: dict[str, Any]) -> None:
        tools = self._put_back(first.event.get("tools"))
        if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
            self.tools = tools
            self.offered_none = not tools and not self._has_provider_tools()
        elif tools is not None:
            step.setdefault("extra", {})["tools_offered"] = tools
            self.conversation.repairs.append("tools that are no list of objects: kept in extra.tools_offered")

    def _has_provider_tools(self) -> bool:
        """Return whether a reply holds what a tool of the provider did."""
        return any(
            isinstance(part, dict) and part.get("type") == "tool_use"
            for message in self._messages
            if isinstance(message, dict) and isinstance(message.get("content"), list)
            for part in message["content"]
        )

    def _merged(self, call: Call) -> list[list[str]]:
        """Return what was sent with a call, as `merged` has it; the last one asked for is remembered."""
        if self._sent is None or self._sent[0] is not call:
            self._sent = call, merged(self._put_back(self._calls.input_of(call)))
        return self._sent[1]

    def _is_in_messages(self, value: Any) -> bool:
        """Return whether the input stands in the messages, whole."""
        known = {_said(message)[1] for message in self._messages}
        if isinstance(value, str):
            return _said({"content": value})[1] in known
        return isinstance(value, list) and all(_said(message)[1] in known for message in value)

    def _put_back(self, value: Any) -> Any:
        return self._attachments.put_back(value)


def _rewrite(step: dict[str, Any], kind: str) -> None:
    step.setdefault("extra", {}).setdefault("context_management", {"type": kind, "boundary": "replace"})


def _is_reply(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def _reply_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a message that a model wrote."""
    return {name: message[name] for name in _WRITTEN if name in message}


def _same_output(one: Any, other: Any) -> bool:
    """Return whether two outputs say the same, but for the text that a solver may set."""
    bare = [{name: value for name, value in each.items() if name != "completion"} for each in (one, other)]
    return bare[0] == bare[1]


def _system(messages: Sequence[Any]) -> list[Any]:
    """Return the contents of the system messages in a request."""
    return [
        message.get("content") for message in messages if isinstance(message, dict) and message.get("role") == "system"
    ]


def _said(message: Any) -> tuple[Any, str | bytes]:
    """Return who speaks in a message, and what is said, as something that is equal for equal content."""
    if not isinstance(message, dict):
        return None, digest.canonical(message, finite=True)
    return message.get("role"), written(message)


def _without_colour(value: Any) -> Any:
    """Return an error, or a list of them, without the copy of its traceback that is made for terminals."""
    if isinstance(value, list):
        return [_without_colour(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: member for name, member in value.items() if name not in ("traceback_ansi", "events")}
