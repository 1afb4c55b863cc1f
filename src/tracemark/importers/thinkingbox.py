"""Attempts of ThinkingBox: JSON lines of `DecodeResult`, one for each repetition of a test case.

A row holds the conversation (`messages`: texts, calls, calls made at once, responses of tools), what the test of the
final state said (`test_result`), and why the attempt ended (`finish_reason`).

Keeps: messages as steps (see `thinkingbox_messages`); `tools` as `agent.tool_definitions`; the test's result in
`outcome`; test case and repetition in `run`; every other member in the root's `extra.record`, the state's changes
(`test_context.effects`) among them.
Drops: members that are null; `T` of a message, which is its kind; the messages of `test_context` where they are those
of the row.
Invents: `agent.name` ("thinkingbox") and `agent.version` ("unknown"); ids of calls without one; an empty system step
for an attempt without messages, such as one that was skipped.

An answer that the program made out of a tool's response (tag `direct`) was written by no model and trains nobody. A row
says once for each call of the model what it cost: where these are as many as the replies, each gets its own, and where
they are fewer, some text was given and not written in this attempt, which is then marked (`run.rendered`).

What the format shows of a harness. Prompt: system messages as they were sent, where they are stored. Tools: `tools`,
where the run was told to store them; an empty list does not say that none were offered. Handlers and runtime: nothing;
commit, configuration and model stand nowhere in a row (state the model in `batch.yaml`).

Known limits: a history with which a test case begins cannot be told from what the agent said. A row with a message of
another kind is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.importers import thinkingbox_messages, unspoken
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Context, Document, Imported, Importer, Record, Refused, Unit
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.head import Head
from tracemark.importers.rewards import rewarded_in
from tracemark.importers.usage import is_number, metrics_of
from tracemark.model.atif import VERSION

SUCCESS = (
    ("`is_system_error` of the row or of its `test_result`: true", "error, whatever the result"),
    ("`test_result.result`: true or false", "success or failure"),
    ("`test_result.reward` without a result, where one of the file goes beyond full reward", "unknown, with a finding"),
    ("`test_result.reward` without a result", "by reward: success at ingest.success_reward, else failure"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`uid`", "run.task"),
    ("`metadata.repetition`", "run.attempt"),
    ("`test_tags.domain`", "run.domain"),
    ("`test_context.session_id`, else uid and repetition", "session_id"),
    ("`tools`", "agent.tool_definitions"),
    ("`usage`, where it is one for each reply", "the steps' metrics"),
    ("`test_result`", "outcome.checks, outcome.reward"),
    ("`finish_reason`", "outcome.termination"),
)
"""What goes to a place of its own; all else is kept in `extra.record`."""

_NO_SESSION = "00000000-0000-0000-0000-000000000000"


class ThinkingBoxImporter(Importer):
    """Reads attempts of ThinkingBox."""

    name = "thinkingbox"
    version = "1"
    surest = 95
    shows = ("prompt_templates", "tool_bindings")

    def recognise(self, head: Head) -> int:
        """Return 95 for a row with the members of a `DecodeResult`."""
        if not (head.may_hold(b'"uid"') and head.may_hold(b'"is_system_error"')):
            return 0
        members = head.members
        is_row = members.get("uid") == '"' and members.get("messages") == "[" and "is_system_error" in members
        return 95 if is_row and ("finish_reason" in members or "test_result" in members) else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each attempt in the record."""
        yield from each(self.name, record, partial(self._read, record))

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, record.context))


def _draft(document: Document, context: Context) -> Draft:
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise UnfitError("an attempt is an object with a list of messages, and this is none")
    rest: dict[str, Any] = {name: member for name, member in value.items() if member is not None}
    messages, repairs = rest.pop("messages"), list[str]()
    steps = thinkingbox_messages.steps(messages, repairs)
    run = _run(rest)
    replies = [step for step in steps if step["source"] == "agent" and "llm_call_count" not in step]
    usage = _objects(rest.get("usage"))
    if usage and len(usage) == len(replies):
        _measure(replies, usage)
        del rest["usage"]
    elif usage and len(usage) < len(replies):
        run["rendered"] = True
        repairs.append("fewer calls of the model than replies: some text was given, and not written in this attempt")
    tools = _objects(rest.get("tools")) or None
    if tools is not None:
        del rest["tools"]
    outcome, doubt = _outcome(rest, context)
    trajectory: dict[str, Any] = {
        "schema_version": VERSION,
        "agent": named_agent("thinkingbox", None, run, tools),
        "steps": steps or unspoken.steps(repairs),
    }
    session = _session(rest, run)
    if session is not None:
        trajectory["session_id"] = session
    tested = rest.get("test_context")
    if isinstance(tested, dict) and "messages" in tested and digest.equal(tested["messages"], messages):
        rest["test_context"] = {name: member for name, member in tested.items() if name != "messages"}
    if rest:
        trajectory["extra"] = {"record": rest}
    made = Draft(trajectory, run, outcome, repairs)
    if doubt is not None:
        code = "verdict-unread" if outcome["status"] == "unknown" else "verdict-conflict"
        made.findings.append(finding(code, document.where, doubt))
    return made


def _run(rest: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    if isinstance(rest.get("uid"), str) and rest["uid"]:
        run["task"] = rest.pop("uid")
    metadata, tags = rest.get("metadata"), rest.get("test_tags")
    if isinstance(metadata, dict) and type(metadata.get("repetition")) is int:
        run["attempt"] = metadata["repetition"]
    if isinstance(tags, dict) and isinstance(tags.get("domain"), str):
        run["domain"] = tags["domain"]
    return run


def _session(rest: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    context = rest.get("test_context")
    said = context.get("session_id") if isinstance(context, dict) else None
    if isinstance(said, str) and said not in ("", _NO_SESSION):
        return said
    return f"{run['task']}-repetition-{run['attempt']}" if "task" in run and "attempt" in run else None


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects, or an empty one for anything else."""
    return value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else []


def _measure(replies: Iterable[dict[str, Any]], usage: Iterable[dict[str, Any]]) -> None:
    """Give each reply what its call cost."""
    for step, one in zip(replies, usage, strict=True):
        metrics = metrics_of(one)
        if metrics:
            step["metrics"] = metrics


def _outcome(rest: dict[str, Any], context: Context) -> tuple[dict[str, Any], str | None]:
    """Return the outcome, and what of it is in doubt; remove from the row what became a part of it."""
    test = rest.get("test_result")
    outcome: dict[str, Any] = {"status": "unknown"}
    doubt = None
    if isinstance(test, dict):
        result, reward = test.get("result"), test.get("reward")
        by_reward, doubt = rewarded_in(context, reward)
        if isinstance(result, bool):
            outcome = {"status": "success" if result else "failure", "rule": "test_result.result"}
            if is_number(reward):
                outcome["reward"] = reward
            disagrees = by_reward["status"] not in ("unknown", outcome["status"])
            told = f"result says {outcome['status']}, and the reward {by_reward['status']}: the result counts"
            doubt = told if disagrees else None
        else:
            outcome = by_reward
        outcome["checks"] = rest.pop("test_result")
    if rest.get("is_system_error") is True:
        outcome |= {"status": "error", "rule": "is_system_error"}
    elif isinstance(test, dict) and test.get("is_system_error") is True:
        outcome |= {"status": "error", "rule": "test_result.is_system_error"}
    if isinstance(rest.get("finish_reason"), str):
        outcome["termination"] = rest.pop("finish_reason")
    return outcome, None if outcome["status"] == "error" else doubt


IMPORTER = ThinkingBoxImporter()
"""The importer, as the registry names it."""
