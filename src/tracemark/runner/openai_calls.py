"""The calls of a client of OpenAI's chat API become the steps of the run that is being recorded.

Each request holds a whole conversation. A recording follows one: what a request adds to it and the reply become steps.

Invariants:
- a step is written when the model has replied to it, so what was sent in vain and sent anew is recorded once;
- a request that does not continue the conversation is the same agent's when it begins with the same instructions or
  holds one of the recorded replies: then the context was rewritten, which is told, and marks the step. Any other is
  another agent's: it is kept beside the steps, and so is a call that failed;
- a message of the assistant that no recorded call gave was written by the program: its step has `llm_call_count` 0;
- a reply ends, however much of it is still unread, where a later request goes on from it, or with the recording;
- what cannot be recorded is refused before it is sent. What turns out so afterwards is a contradiction, and raised by
  the next request or by the end of the block, never in the middle of the program's own call;
- of a request the body is read, and nothing else: no header, so no key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby, takewhile
from threading import RLock
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.errors import TracemarkError, UsageError
from tracemark.harness.match import Contradiction
from tracemark.harness.templates import EXCERPT
from tracemark.runner import openai_messages as chat
from tracemark.runner.answers import Calls
from tracemark.runner.evidence import Evidence, Write
from tracemark.runner.openai_stream import Reply
from tracemark.runner.turns import Turns

_NO_SAMPLING = frozenset(
    {"messages", "tools", "model", "stream", "stream_options", "metadata", "user", "store", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention"}
)
"""Members of a request that are no parameter of the model's reply."""


class Call(NamedTuple):
    """One request, as its body was sent."""

    body: dict[str, Any]
    messages: list[dict[str, Any]]
    keys: list[str]
    """What equal messages share."""
    tools: list[dict[str, Any]]


class Following:
    """Follows the conversation that the clients of one recording hold.

    Args:
        turns: writes the steps.
        evidence: compares what is sent with what the harness gave.
        runtime: counts the calls of the harness's context manager and recovery.
        write: writes one event.
        require: raises where the recording cannot go on here.
        stated: facts of the run that somebody stated; they stand, and what differs from them is told.
    """

    def __init__(
        self,
        turns: Turns,
        evidence: Evidence,
        runtime: Calls,
        write: Write,
        require: Callable[[], None],
        stated: Mapping[str, Any],
    ) -> None:
        self._turns = turns
        self._evidence = evidence
        self._runtime = runtime
        self._write = write
        self._require = require
        self._stated = stated
        self._lock = RLock()
        self._keys: list[str] = []
        self._head: list[str] = []
        self._instructed = False
        self._replies: set[str] = set()
        self._known: set[str] = set()
        self._tools: bytes | None = None
        self._sampling: Any = stated.get("sampling")
        self._models: list[str] = []
        self._broken: tuple[Call, dict[str, Any]] | None = None
        self._unanswered: Call | None = None
        self._arriving: list[tuple[Call, Callable[[], None]]] = []
        self._failure: Exception | None = None

    def require(self, raw: bytes) -> None:
        """Do nothing when a request can be recorded, before it is sent.

        Args:
            raw: the body.

        Raises:
            UsageError: when it cannot, or an earlier call could not be recorded.
        """
        self._require()
        self.raise_failure()
        call = read(raw)
        with self._lock:
            if not self._is_own(call):
                # it is kept as it is, and no step of this trace
                return
        if call.body.get("n") not in (None, 1):
            raise UsageError(f"n={call.body['n']}: nobody sees with which reply the run goes on", hint="ask for one")
        if call.body.get("functions") is not None:
            raise UsageError("functions: the form before tools cannot be recorded", hint="give tools=")
        for number, (message, key) in enumerate(zip(call.messages, call.keys, strict=True)):
            if key not in self._known:
                chat.made(message, f"messages.{number}")

    def arriving(self, call: Call, end: Callable[[], None]) -> None:
        """Note a reply of which the program has still to read a part.

        Args:
            call: the request.
            end: tells `replied` what was read until then; called where the run goes on without the rest.
        """
        with self._lock:
            self._arriving.append((call, end))

    def replied(self, call: Call, read_reply: Callable[[], Reply]) -> None:
        """Record what the model replied; a reply that cannot be read or recorded is told later.

        Args:
            call: the request.
            read_reply: reads the reply.
        """
        with self._lock, self._told():
            self._arrived(call)
            self._end_before(call)
            reply = read_reply()
            message = chat.message_of(reply.completion)
            if message is None or reply.completion is None:
                self._failed(call, {"error": chat.error_of(reply.error) or {"type": "no reply"}})
            elif reply.is_whole:
                self._record(call, message, reply.completion)
            else:
                self._settle_broken(call)
                self._broken = (call, reply.completion)

    def failed(self, call: Call, problem: Mapping[str, Any]) -> None:
        """Record that a call gave no reply.

        Args:
            call: the request.
            problem: `status`, the HTTP status, or `error`, an object with its `type`.
        """
        with self._lock, self._told():
            self._arrived(call)
            self._failed(call, problem)

    def settle(self) -> None:
        """Record at the end what waited for another request: a reply that was broken off, and what got no reply."""
        with self._lock:
            with self._told():
                self._end_before(None)
                self._settle_broken(None, at_the_end=True)
            waiting, self._unanswered = self._unanswered, None
            if waiting is not None and self._is_own(waiting):
                with self._told():
                    self._take_in(waiting)

    def raise_failure(self) -> None:
        """Raise what could not be recorded, if anything could not.

        Raises:
            UsageError: then.
        """
        if self._failure is not None:
            raise UsageError(
                f"a call could not be recorded: {self._failure}",
                hint="the trace is marked as contradicted; record such calls by hand, or keep them out of the run",
            ) from self._failure

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Keep an error of the block for later: the program's own call is not to fail by it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told by `raise_failure`
            self._failure = self._failure or error
            text = f"a call of the model could not be recorded: {error}"
            # the journal itself may be what failed
            with suppress(TracemarkError, OSError):
                self._evidence.contradict(Contradiction("runtime", "recording", None, text[:EXCERPT]))

    def _arrived(self, call: Call) -> None:
        self._arriving = [each for each in self._arriving if each[0] is not call]

    def _end_before(self, call: Call | None) -> None:
        """End the replies that the program has left unread and `call` may go on from; None ends all of them."""
        for earlier, end in list(self._arriving):
            if call is None or (len(call.keys) > len(earlier.keys) == _shared(call.keys, earlier.keys)):
                end()

    def _record(self, call: Call, message: dict[str, Any], completion: dict[str, Any], **more: Any) -> None:
        self._settle_broken(call)
        if not self._is_own(call):
            self._evidence.beside(call.messages)
            self._beside("another-agent", call, request=call.body, response=completion)
            return
        self._unanswered = None
        mark = self._take_in(call)
        self._evidence.stops(call.body.get("stop"))
        step = chat.reply_step(message, completion, str(call.body.get("model", "")))
        sampling = self._tell_facts(call, completion)
        extra = {**step.get("extra", {}), **sampling, **mark, **more}
        self._turns.replied({**step, **({"extra": extra} if extra else {})})
        key = chat.key(message)
        self._keys = [*call.keys, key]
        # what rewrites the context is called between two replies
        self._runtime.forget()
        self._known.add(key)
        self._replies.add(key)

    def _failed(self, call: Call, problem: Mapping[str, Any]) -> None:
        if self._is_own(call):
            self._unanswered = call
        self._beside("failed", call, **problem)

    def _settle_broken(self, call: Call | None, *, at_the_end: bool = False) -> None:
        """Record the reply that was broken off as a step, when `call` goes on from it or the run ends with it."""
        if self._broken is None:
            return
        (earlier, completion), self._broken = self._broken, None
        message = chat.message_of(completion) or {}
        held = [*earlier.keys, chat.key(message)]
        # one that was left for another reply is not what the run ends with
        is_last = at_the_end and earlier.keys[: len(self._keys)] == self._keys
        if is_last or (call is not None and call.keys[: len(held)] == held):
            broken = {"boundary": "broken-off"}
            self._record(earlier, message, completion, broken_off=True, context_management=broken)
        else:
            self._beside("broken-off", earlier, response=completion)

    def _is_own(self, call: Call) -> bool:
        if not self._keys or call.keys[: len(self._keys)] == self._keys:
            return True
        return _head(call) == self._head or not self._replies.isdisjoint(call.keys)

    def _take_in(self, call: Call) -> dict[str, Any]:
        """Write what a request adds to the conversation; return what marks the step of its reply."""
        mark: dict[str, Any] = {}
        if not self._keys:
            self._head, self._instructed = _head(call), _is_instructed(call)
            self._evidence.sent(call.messages, call.tools)
            added = call.messages
        elif call.keys[: len(self._keys)] == self._keys:
            added = call.messages[len(self._keys) :]
        else:
            mark = {"context_management": {"boundary": "replace"}}
            self._tell_rewritten(call)
            added = [each for each, key in zip(call.messages, call.keys, strict=True) if key not in self._known]
        offered = digest.canonical(sorted(call.tools, key=digest.canonical))
        if self._tools not in (None, offered):
            self._evidence.offered_anew(call.tools)
        self._tools = offered
        self._write_messages(added)
        self._keys = list(call.keys)
        self._known.update(call.keys)
        return mark

    def _tell_rewritten(self, call: Call) -> None:
        before, self._head, step = self._head, _head(call), self._turns.steps + 1
        was_instructed, self._instructed = self._instructed, _is_instructed(call)
        if self._head != before and (was_instructed or self._instructed):
            if not self._instructed or self._known.issuperset(self._head):
                said = "instructions of an earlier request were left out of a later one"
                self._evidence.contradict(Contradiction("prompt_templates", "system", step, said))
            # what is new in them is written, and compared as every later message of the system is
            return
        at = _shared(self._keys, call.keys)
        part = "recovery" if at == len(self._keys) - 1 else "context_manager"
        if self._runtime.spend(part) or self._runtime.spend("context_manager"):
            return
        said = f"message {at} of the request is not the conversation's, and no {part} of the harness was called"
        self._evidence.contradict(Contradiction("runtime", part, step, said))

    def _write_messages(self, messages: list[dict[str, Any]]) -> None:
        for is_answer, group in groupby(messages, lambda message: message.get("role") in chat.ANSWERS):
            if not is_answer:
                for message in group:
                    self._turns.said(chat.made(message, "messages"))
                continue
            answers = list(group)
            if not self._turns.answer(chat.results(answers)):
                for message in answers:
                    self._turns.said(chat.unasked(message))

    def _tell_facts(self, call: Call, completion: dict[str, Any]) -> dict[str, Any]:
        """Write model and parameters as facts of the run; return parameters that are others than the run's."""
        facts: dict[str, Any] = {}
        name, answered = call.body.get("model"), completion.get("model")
        sampling = {member: value for member, value in call.body.items() if member not in _NO_SAMPLING}
        if self._sampling is None:
            self._sampling = sampling
            facts = {"sampling": sampling} if sampling else {}
        if isinstance(name, str) and name not in self._models:
            self._models.append(name)
            revision = {"revision": answered} if isinstance(answered, str) and answered != name else {}
            # a reader that asks for one model's traces is given none of two
            only = len(self._models) == 1
            facts["model"] = {"name": name, **revision} if only else {"name": " + ".join(self._models)}
        facts = {fact: value for fact, value in facts.items() if fact not in self._stated}
        if facts:
            self._write("facts", {"run": facts})
        return {} if sampling == self._sampling else {"sampling": sampling}

    def _beside(self, kind: str, call: Call, **members: Any) -> None:
        """Write a call that gave no step."""
        model = {"model": call.body["model"]} if isinstance(call.body.get("model"), str) else {}
        self._write("call", {"call": chat.plain({"after": self._turns.steps, "kind": kind, **model, **members})})


def read(raw: bytes) -> Call:
    """Return the request of a body.

    Raises:
        UsageError: when it is none of the chat API.
    """
    try:
        body = digest.loads(raw).value
    except NotJSONError as problem:
        raise UsageError(f"the request is no JSON: {problem}") from None
    if not isinstance(body, dict):
        raise UsageError("the request is no object")
    messages, tools = body.get("messages"), body.get("tools")
    for what, listed in (("messages", messages), ("tools", [] if tools is None else tools)):
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise UsageError(f"{what}: a list of objects is needed")
    listed = list(messages or ())
    return Call(body, listed, [chat.key(message) for message in listed], tools or [])


def _shared(one: list[str], other: list[str]) -> int:
    """Return how many keys two conversations share at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _headed(call: Call) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the messages in front of the first that is no instruction; without instructions, the first message."""
    pairs = list(zip(call.messages, call.keys, strict=True))
    yield from list(takewhile(lambda pair: pair[0].get("role") in chat.INSTRUCTIONS, pairs)) or pairs[:1]


def _head(call: Call) -> list[str]:
    return [key for _, key in _headed(call)]


def _is_instructed(call: Call) -> bool:
    return bool(call.messages) and call.messages[0].get("role") in chat.INSTRUCTIONS
