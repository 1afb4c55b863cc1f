"""Chat messages in the shape of the OpenAI API: JSON lines, one record, an array of them, or a bare list of messages.

A record is an object with `messages`, and perhaps `tools` (or `tool_defs`, `functions`), sampling parameters and a
`response`: then it is the request itself, as a log holds it, and the response becomes the last agent step. A bare list
is a transcript, and so is a record that has messages alone: nobody says what was sent with them. Its system message is
shown as that of a transcript, which proves nothing of the prompt: an agent may have written its tools into it.

Keeps: messages, calls, answers and reasoning as steps (see `conversation`); tools as `agent.tool_definitions`, also
where they stand in `kwargs` alone; model, sampling, task and reward in `run` and `outcome`; every other member of the
record in the root's `extra.record`, and so what is left of a response without the message that became a step: its other
choices, its id. Where `kwargs` says something else than the record itself, both are kept and `source.repairs` names it.
What may be a verdict and is not read is a finding `verdict-unread`, and a verdict with which another one or the reward
disagrees is a finding `verdict-conflict`.
Drops: members of messages, of calls and of a response's `usage` that are null (padding of tables and serialisers),
apart from `content`; an empty list of calls, the word `function` as the type of a call, tools that are null; what
`kwargs` repeats: the same tools, a parameter of the same value.
Invents: `agent.name` and `agent.version` ("unknown"), ids of calls without one, an empty system step to hold answers in
front of which no agent spoke. Ids and steps so made are named in `source.repairs`.

A row of our own exports is refused (`own-export`): its trace is stored, with more than the row holds.

A log with `raw_messages` is of an agent that writes its tools into the prompt and its calls into the text (`run.mode`
tools-in-prompt): `messages` is what was sent. Its `raw_response` is what the model wrote, and that is the last step,
unless it has calls of its own; `response`, in which the calls were taken out of the text, then stays in `extra.record`.
A log of a request with tools so shows one thing of the runtime: whether calls are the provider's (`function_calling`).

Known limit: a record with a `response` is one request (`run.mode` begins with request), and a log of requests holds
one record for each turn of a conversation. Each becomes a trace of its own, and the earlier ones are beginnings of the
later ones. Nobody puts them together, and in an export each without a task counts as a task of its own, so rows may be
beginnings of one another. Ingest the last request of each conversation alone; or give all its records one `task_id`,
and `export.sft.per_task` 1 takes one of them, not always the longest. That requests of one folder with equal first
messages are one conversation is a rule that could be built; it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.harness.match import Content
from tracemark.importers import openai_verdict, recovery
from tracemark.importers.agent import named_agent
from tracemark.importers.base import (
    Document,
    Imported,
    Importer,
    Record,
    Refused,
    Unit,
    refuse,
    source_of,
)
from tracemark.importers.content import Observed, observed, walk
from tracemark.importers.conversation import (
    ANSWERS,
    SPEAKERS,
    Conversation,
    NotMessagesError,
    UnknownRoleError,
    decoded,
)
from tracemark.importers.documents import each
from tracemark.importers.head import SPACE, Head
from tracemark.importers.openai_response import REQUEST, respond
from tracemark.importers.stated import fill_from_batch
from tracemark.importers.strict import fast, faults, worded
from tracemark.importers.usage import is_number
from tracemark.model.atif import VERSION

SUCCESS = openai_verdict.SUCCESS
"""Which source verdict gives which status, in the order in which they are looked for."""

OF_EXPORT = "tracemark_trace_id"
"""Member of every row that we export: what it was made of is stored, with more than the row holds, or was retracted."""

TOOLS_IN_PROMPT = "tools-in-prompt"
"""`run.mode` of an agent that writes its tools into the prompt."""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_TOOLS = ("tools", "tool_defs", "functions")
_TASKS = ("task_id", "instance_id", "task")
_RUN_KEYS = ("session_id", "conversation_id", "run_id", "id")
_SAMPLING = (
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "temperature",
    "tool_choice",
    "top_k",
    "top_logprobs",
    "top_p",
)
MEMBERS = (
    (f"the first of {_listed(_TASKS)} that is a text or a whole number", "run.task"),
    ("`domain`, `split`", "run.domain, run.split"),
    ("`attempt`, where it is a text or a whole number", "run.attempt"),
    ("`model`, else that of the `response`", "run.model.name"),
    (f"{_listed(_SAMPLING)}; members of `kwargs`", "run.sampling"),
    (f"the first of {_listed(_RUN_KEYS)}", "session_id"),
    (f"the first of {_listed(_TOOLS)} that is a list of objects, else that in `kwargs`", "agent.tool_definitions"),
    (f"{_listed(openai_verdict.REWARDS)}", "outcome.reward"),
    (f"`error`, {_listed((*openai_verdict.VERDICTS, *openai_verdict.WORDS))}", "outcome.status"),
    ("the words of `error`, its kind and message where it is an object; `timeout` as a verdict", "outcome.termination"),
    (
        "`response`, with `raw_response`, `timestamp` and `cost`; without it the first two are not read",
        "the last agent step, its time and metrics",
    ),
    ("`cost` of a record without a `response`, where it is a number", "final_metrics.total_cost_usd"),
)
"""What of a record, beside its messages, goes to a place of its own; all else is kept in `extra.record`."""

_OTHERS = (
    "epoch",
    "history",
    "info",
    "responses_create_params",
    "simulations",
    "steps",
    "trajectory",
    "trajectory_format",
)
"""Members by which records of other formats that hold messages too are told apart."""
_ROLE = re.compile(rb'\s*\[\s*\{[^\[\]]{0,4000}?"role"\s*:\s*"')


class ChatImporter(Importer):
    """Reads chat messages."""

    name = "openai-chat"
    version = "4"
    surest = 80
    shows = ("prompt_templates", "tool_bindings", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 80 for a list of messages or a record with `messages`; 70 when only the beginning of it is there.

        An array of records is what its first record is.
        """
        in_list = head.data.lstrip(SPACE)[:1] == b"["
        if not head.may_hold(b'"messages"') and not (in_list and head.may_hold(b'"role')):
            return 0
        value = head.value
        if _are_messages(value):
            return 80
        if value is None and _ROLE.match(head.data):
            return 70
        if any(name in head.members for name in _OTHERS):
            return 0
        if value is None:
            return 70 if head.members.get("messages") in ("[", '"') else 0
        first = value[0] if _is_array(value) else value
        return 80 if isinstance(first, dict) and _are_messages(decoded(first.get("messages"), "", [])) else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each conversation in the record."""
        yield from each(self.name, record, partial(self._read, record), _is_array)

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        try:
            return self._trace(record, document)
        except UnknownRoleError as error:
            return refuse("unknown-role", document, str(error))
        except NotMessagesError as error:
            return refuse("not-chat", document, str(error))

    def _trace(self, record: Record, document: Document) -> Imported | Refused:
        repairs: list[str] = []
        value = document.value
        if isinstance(value, dict) and OF_EXPORT in value:
            message = f"a row of an export of ours, made of the trace {str(value[OF_EXPORT])[:12]}"
            return refuse("own-export", document, message)
        rest: dict[str, Any] = dict(value) if isinstance(value, dict) else {"messages": value}
        messages = decoded(rest.pop("messages", None), "messages written as JSON text: read", repairs)
        if not isinstance(messages, list) or not messages:
            raise NotMessagesError("messages is no list of messages" if messages != [] else "messages is empty")
        is_request = any(name in rest for name in ("model", "kwargs", "response"))
        tools = _take_tools(rest, repairs)
        run = _run(rest, repairs)
        conversation = Conversation(repairs)
        for index, message in enumerate(messages):
            conversation.add(message, f"messages/{index}")
        respond(rest, conversation, run)
        trajectory = _trajectory(rest, conversation, tools, run)
        if "response" not in rest and is_number(rest.get("cost")):
            trajectory["final_metrics"] = {"total_cost_usd": rest.pop("cost")}
        ending = openai_verdict.take(rest, record.context.limits.success_reward, repairs)
        doubts = [("verdict-unread", f"{text}: not read as a verdict") for text in ending.unread]
        if ending.conflict is not None:
            doubts.append(("verdict-conflict", ending.conflict))
        repairs += [text for _, text in doubts]
        if rest:
            trajectory["extra"] = {"record": rest}
        fill_from_batch(run, record.context.batch)
        walked = walk(trajectory, tools_known_empty=is_request and tools == [])
        if not (walked.sound and fast(trajectory)):
            found = faults(trajectory)
            if found:
                return refuse("not-chat", document, worded(found))
        return Imported(
            trajectory=trajectory,
            trajectory_bytes=digest.canonical(trajectory, finite=True),
            run=run,
            outcome=ending.outcome,
            source=source_of(self, record, document, repairs),
            stamp=None,
            content=walked.content,
            observed=_observed(walked.content, run, is_transcript=tools is None and not is_request),
            where=document.where,
            findings=tuple(finding(code, document.where, text) for code, text in doubts),
        )


def _is_array(value: Any) -> bool:
    """Return whether `value` is an array of records, not of messages."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "messages" in first and "role" not in first


def _are_messages(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = decoded(value[0], "", [])
    role = first.get("role") if isinstance(first, dict) else None
    return isinstance(role, str) and (role in SPEAKERS or role in ANSWERS or "content" in first)


def _observed(content: Content, run: dict[str, Any], *, is_transcript: bool) -> Observed:
    """Return what the content shows of its harness, and a request of how tools are called."""
    found = observed(content)
    mode = run.get("mode", "")
    if mode.startswith(REQUEST) and content.tools:
        found["runtime"] = recovery.constant("function_calling", TOOLS_IN_PROMPT not in mode)
    if is_transcript and "prompt_templates" in found:
        found["prompt_templates"] = [{**entry, "form": "transcript"} for entry in found["prompt_templates"]]
    return found


def _take_tools(rest: dict[str, Any], repairs: list[str]) -> list[Any] | None:
    """Remove the tool definitions from the record and return them; None when it records none.

    The first of the names that holds a list of objects counts, in the record, else in its `kwargs`; anything else stays
    where it is, but for an equal list in `kwargs`.
    """
    found: list[Any] | None = None
    for name in _TOOLS:
        tools = _definitions(rest.get(name), name, repairs) if found is None else None
        if tools is not None:
            found = tools
        if tools is not None or (name in rest and rest[name] is None):
            del rest[name]
    if isinstance(rest.get("kwargs"), dict) and rest["kwargs"]:
        kwargs = dict(rest.pop("kwargs"))
        for name in (name for name in _TOOLS if name in kwargs):
            notes: list[str] = []
            tools = _definitions(kwargs[name], f"kwargs.{name}", notes)
            if tools is not None and (found is None or digest.equal(tools, found)):
                found = tools
                repairs += notes
                del kwargs[name]
            elif tools is not None:
                repairs.append(f"kwargs.{name} differs from the tools that were read: kept in extra.record")
            elif kwargs[name] is None:
                del kwargs[name]
        if kwargs:
            rest["kwargs"] = kwargs
    return found


def _definitions(value: Any, name: str, repairs: list[str]) -> list[Any] | None:
    """Return a list of tool definitions, which may be written as JSON text; None for anything else."""
    notes: list[str] = []
    tools = decoded(value, f"{name} written as JSON text: read", notes)
    if not isinstance(tools, list):
        return None
    entries = [decoded(tool, f"{name} written as JSON text: read", notes) for tool in tools]
    if not all(isinstance(tool, dict) for tool in entries):
        return None
    repairs += notes
    return entries


def _run(rest: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Remove the run facts from the record and return them."""
    run: dict[str, Any] = {}
    for name in _TASKS:
        if isinstance(rest.get(name), (str, int)) and not isinstance(rest[name], bool):
            run["task"] = str(rest.pop(name))
            break
    for name in ("domain", "split"):
        if isinstance(rest.get(name), str):
            run[name] = rest.pop(name)
    if isinstance(rest.get("attempt"), (str, int)) and not isinstance(rest["attempt"], bool):
        run["attempt"] = rest.pop("attempt")
    model = rest.get("model")
    if isinstance(model, str):
        run["model"] = {"name": rest.pop("model")}
    sampling = _sampling(rest, repairs)
    if sampling:
        run["sampling"] = sampling
    if "raw_messages" in rest:
        run["mode"] = TOOLS_IN_PROMPT
    return run


def _sampling(rest: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Remove the sampling parameters from the record and from its `kwargs`, and return them."""
    sampling = {name: rest.pop(name) for name in _SAMPLING if rest.get(name) is not None}
    kwargs = rest.get("kwargs")
    if not isinstance(kwargs, dict):
        return sampling
    left: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name in (*_TOOLS, "extra_body", "model") or (value is None and name in sampling):
            left[name] = value
            continue
        if name in sampling and not digest.equal(sampling[name], value):
            rest[name] = sampling[name]
            repairs.append(f"kwargs.{name} differs from {name}: the latter is kept in extra.record")
        sampling[name] = value
    if left or not kwargs:
        rest["kwargs"] = left
    else:
        del rest["kwargs"]
    return sampling


def _trajectory(
    rest: dict[str, Any], conversation: Conversation, tools: list[Any] | None, run: dict[str, Any]
) -> dict[str, Any]:
    agent = named_agent(None, None, run, tools)
    trajectory = {"schema_version": VERSION, "agent": agent, "steps": conversation.steps}
    for name in _RUN_KEYS:
        key = rest.get(name)
        if isinstance(key, (str, int)) and not isinstance(key, bool) and key != "":
            trajectory["session_id"] = str(key)
            if isinstance(key, str):
                del rest[name]
            break
    return trajectory


IMPORTER = ChatImporter()
"""The importer, as the registry names it."""
