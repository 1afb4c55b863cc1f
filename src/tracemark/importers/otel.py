"""Spans of OpenTelemetry's GenAI conventions, in OTLP JSON: an export, exports in lines, or single spans.

A trace id is a run: its outermost `invoke_agent` span. The spans of one trace may stand in any lines of a file, as they
do where an exporter writes a batch every few seconds; they are put together. Every call of a model holds the whole
history again, and the steps are what each added (`otel_steps`). A span's messages are read in each form that
instrumentations gave them (`otel_calls`): the present attributes, structured or as JSON text, those of OpenInference,
numbered attributes, `gen_ai.prompt` and `gen_ai.completion`, and span events. Of a span whose attributes alone were
written down, these are enough.

Keeps: messages, calls, answers and reasoning as steps (`conversation`, `otel_parts`); of each reply its time, tokens,
model and what else its span says in the step's `extra.span`; what the API's request and reply held beside in
`extra.request` and `extra.response`, other choices in `extra.choices`; what a tool's span says in its call's
`extra.span`, its result beside the answer that the model saw as `raw_output`; the agent's span in the root's
`extra.span`, calls that returned nothing in `extra.calls`, tools that nobody called in `extra.tools`, the trace id in
`extra.traceId`; resource and scopes as labels in `run.environment`; evaluations of the run in `outcome.checks`, of one
call in its step's `extra.evaluations`.
Drops: spans that are no agent, no model call and no tool, such as workflows, requests, retrievals and embeddings, but
for a conversation id and evaluations in them; model calls and tools outside of the agents' spans of a trace that has
such agents (titles, guards), with a repair that counts the calls; the history that each call repeats, and on an agent's
span messages that its calls hold; a second form of the same messages; the same span exported twice; evaluations of a
span around several conversations.
Invents: `agent.name` and `agent.version` ("unknown") where no span names the agent; ids of calls without one; the
observation of a call whose answer no later request holds, from its tool's span (`extra.from` says so).

An agent's own calls are those in its span and in no agent's within it. An agent within it is embedded as a sub-agent;
one that called no model itself is a wrapper, and those within it count in its place. A trace with several outermost
agents gives a run for each. A trace without agents gives one for each conversation: calls that go on from one another.

Where a call of an agent does not go on from the one before (another system prompt, a history that was shortened or
rewritten, the same question again), or offers other tools, the run is mixed. A reply that stands in a history and that
no recorded call returned is marked `is_copied_context` and counts no call, as is one to a request that is not recorded.

What the format shows of a harness. Prompt: each system text, as it was sent (form rendered): instructions are opt-in.
Tools: definitions, where they are recorded with description and parameters. Both are opt-in, and most instrumentations
leave them out; names alone, or an empty list, are not the tools that a model was told of, and stay in `agent.extra`.
Agent, service and scope have names and versions: labels. Of handlers and runtime nothing is held.

Known limits: spans of one trace in several files become a run for each file, with the same session id, so files that a
collector rotated are to be joined first. A file that is still being written gives the runs as far as they are there.
While lines are read, the traces that are not yet complete are held, and the ids of all. One document that is no series
of lines is read whole. Messages in log records (`resourceLogs`) are not read, nor are a framework's own attributes.
Texts within numbered attributes that are JSON of parts stay text, and prompt templates of OpenInference stay
attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.importers import otel_outcome
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.conversation import NotMessagesError, UnknownRoleError
from tracemark.importers.documents import documents
from tracemark.importers.finish import UNFIT, UnfitError, finish
from tracemark.importers.guard import caught, refuse_failed
from tracemark.importers.head import Head
from tracemark.importers.otel_runs import UNREAD, NoContentError, made
from tracemark.importers.otel_spans import Entry, Span, document, entries, trace_id
from tracemark.importers.otel_tree import Tree
from tracemark.importers.otel_values import normal

SUCCESS = otel_outcome.SUCCESS
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`gen_ai.conversation.id`, `session.id`, else the trace id", "session_id"),
    ("`gen_ai.agent.name`, `gen_ai.agent.version`", "agent.name, agent.version"),
    ("`gen_ai.agent.id`, `gen_ai.agent.description`, `gen_ai.prompt.name`", "agent.extra; run.environment, as labels"),
    ("`gen_ai.response.model`, `llm.model_name`", "agent.model_name; a step's model_name"),
    ("`gen_ai.request.model`, else the model that answered", "run.model.name"),
    ("`gen_ai.request.*`, `llm.invocation_parameters` of the first call", "run.sampling, run.seed"),
    ("`gen_ai.system_instructions`, system messages", "system steps"),
    ("`gen_ai.tool.definitions`, `llm.tools.*`, `llm.request.functions.*`", "agent.tool_definitions, if whole"),
    ("`gen_ai.usage.*`, `llm.token_count.*`, `llm.cost.total`", "a step's metrics"),
    ("`startTimeUnixNano`, `endTimeUnixNano`", "a step's timestamp; run.start, run.end"),
    ("resource (`service.name`, `service.version`, …), scope, provider", "run.environment, as labels"),
    ("`gen_ai.evaluation.result` events, `status`, `error.type`", "outcome"),
)
"""Which attributes and members of spans go to a place of their own."""

_NAMES = (b'"traceId"', b'"trace_id"')
_VALUE = re.compile(rb'\s*:\s*"([^"\\]{1,64})"')
_MARKS = (b"gen_ai.", b"llm.", b"openinference.", b"traceloop.")
_TIMES = ("startTimeUnixNano", "start_time_unix_nano", "traceId", "trace_id", "spanId", "span_id", "kind")
_RECORD = (
    "let the instrumentation record message content, which many do only with"
    " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT set, then run the agent again"
)
_OTHERS = {"resourceLogs": "logs", "resourceMetrics": "metrics"}


class OtelImporter(Importer):
    """Reads traces of OpenTelemetry's GenAI conventions."""

    name = "otel-genai"
    version = "1"
    surest = 90
    shows = ("prompt_templates", "tool_bindings")

    def recognise(self, head: Head) -> int:
        """Return 90 for an export of spans, 85 for a span or its attributes alone, 60 for an export of other things."""
        if not any(mark in head.data for mark in (*_MARKS, b'"resource')):
            return 0
        members = head.members
        if "resourceSpans" in members or "resource_spans" in members:
            return 90
        if any(name in members for name in _OTHERS):
            return 60
        if not any(mark in head.data for mark in _MARKS):
            return 0
        if members.get("attributes") in ("[", "{") and any(name in members for name in _TIMES):
            return 85
        return 85 if any(name.encode("utf-8", "replace").startswith(_MARKS) for name in members) else 0

    def unit(self, head: Head) -> Unit:
        """Return `lines` for JSON lines: the spans of a trace may stand in any of them."""
        return "lines" if head.lines else "document"

    def beside(self, name: str, head: Head) -> str | None:  # noqa: ARG002
        """Return why an export of logs or metrics gives no trace."""
        members = head.members
        if "resourceSpans" in members or "resource_spans" in members:
            return None
        kind = next((_OTHERS[one] for one in _OTHERS if one in members), None)
        return None if kind is None else f"an OTLP export of {kind}: it holds no spans"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the runs of every trace whose spans stand in the record."""
        yield from self._all((record,), {})

    def read_lines(self, again: Callable[[], Iterator[Record | Refused]]) -> Iterator[Imported | Refused]:
        """Yield the runs of every trace in the records of a file, each when the last record with a span of it was read.

        The file is read twice: first for the ids alone, which says where each trace is complete.
        """
        last: dict[str, int] = {}
        for number, record in enumerate(again()):
            if isinstance(record, Record):
                for name in _trace_ids(record.raw):
                    last[name] = number
        ends: dict[int, list[str]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        yield from self._all(again(), ends)

    def _all(
        self, records: Iterable[Record | Refused], ends: Mapping[int, Sequence[str]]
    ) -> Iterator[Imported | Refused]:
        """Yield the runs of all traces.

        Args:
            records: the records of a file.
            ends: which traces are complete with which record; all others are with the last one.
        """
        held: dict[str, _Trace] = {}
        others = _Others()
        for number, record in enumerate(records):
            if isinstance(record, Refused):
                yield record
                continue
            yield from self._take(record, number, held, others)
            for name in ends.get(number, ()):
                if name in held:
                    yield from self._runs(held.pop(name), others)
        for trace in held.values():
            yield from self._runs(trace, others)
        yield from others.refusal()

    def _take(
        self, record: Record, number: int, held: dict[str, _Trace], others: _Others
    ) -> Iterator[Imported | Refused]:
        """Put the spans of a record to their traces; yield the runs of those without an id, and what is refused."""
        for part in documents(record):
            if isinstance(part, Refused):
                yield part
                continue
            try:
                found = list(entries(part.value))
            except UnfitError as error:
                yield refuse(UNFIT, part, str(error))
                continue
            names = [trace_id(entry) for entry in found]
            whole = part if len(set(names)) == 1 else None
            for place, (entry, name) in enumerate(zip(found, names, strict=True)):
                if name is not None:
                    held.setdefault(name, _Trace(name, record)).add(entry, number, whole)
                    continue
                alone = part if len(found) == 1 else _alone(part, document([entry]), str(place))
                yield from self._runs(_Trace(None, record, [entry], alone), others)

    def _runs(self, trace: _Trace, others: _Others) -> Iterator[Imported | Refused]:
        part = trace.document()
        runs: list[Imported | Refused] = []
        faults: list[Exception] = []
        with caught(faults):
            runs = self._read(trace, part, others)
        yield from runs
        for fault in faults:
            yield refuse_failed(self.name, part, fault)

    def _read(self, trace: _Trace, part: Document, others: _Others) -> list[Imported | Refused]:
        spans, repairs = trace.spans()
        found: list[Imported | Refused] = []
        tree = Tree(spans)
        groups = tree.runs()
        if not groups:
            others.add(part)
            return found
        try:
            runs = list(made(tree, groups, trace.name, repairs))
        except UnknownRoleError as error:
            return [refuse("unknown-role", part, str(error))]
        except NoContentError as error:
            return [refuse(UNFIT, part, str(error), _RECORD)]
        except (NotMessagesError, UnfitError) as error:
            return [refuse(UNFIT, part, str(error))]
        for run in runs:
            # each run has a digest of its own, so that one can be told from another, and be retracted
            own = _alone(part, document([span.entry for span in run.spans]), run.place) if run.place else part
            if run.unread is not None:
                run.draft.findings.append(finding(UNREAD, own.where, run.unread))
            found.append(finish(self, trace.record, own, run.draft))
        return found


class _Trace:
    """The spans of one trace, as far as they were read.

    Args:
        name: its id; None when it has none.
        record: the first record that holds a span of it.
        found: its spans so far.
        whole: the document that holds exactly these; None when none does.
    """

    def __init__(
        self, name: str | None, record: Record, found: Sequence[Entry] = (), whole: Document | None = None
    ) -> None:
        self.name = name
        self.record = record
        self._entries = list(found)
        self._whole = whole
        self._numbers: set[int] = set()

    def add(self, entry: Entry, number: int, whole: Document | None) -> None:
        """Add a span.

        Args:
            entry: the span.
            number: which of the file's records it was in.
            whole: the document that it was in, when that holds spans of this trace alone.
        """
        self._whole = whole if whole is not None and (not self._entries or self._whole is whole) else None
        self._entries.append(entry)
        self._numbers.add(number)

    def document(self) -> Document:
        """Return the record that the trace is: the one that holds it and nothing else, or an export of it alone."""
        if self._whole is not None:
            return self._whole
        repairs = self.record.repairs
        if len(self._numbers) > 1:
            repairs = (*repairs, f"spans in {len(self._numbers)} records of the file: put together by their trace id")
        part = Document(None, b"", self.record.label, repairs)
        return _alone(part, document(self._entries), str(self.name)[:64])

    def spans(self) -> tuple[list[Span], list[str]]:
        """Return its spans, each once, and what was altered."""
        spans = [Span(entry, number) for number, entry in enumerate(self._entries)]
        known: dict[str, Span] = {}
        found, repairs = [], list[str]()
        for span in spans:
            other = known.setdefault(span.span_id, span) if span.span_id is not None else span
            if other is not span and digest.equal(other.entry.span, span.entry.span):
                repairs = ["spans that were exported twice: read once"]
            else:
                found.append(span)
        return found, repairs


class _Others:
    """Traces in which no model was called, counted and refused as one."""

    def __init__(self) -> None:
        self._count = 0
        self._first: Document | None = None

    def add(self, part: Document) -> None:
        """Count a trace."""
        self._count += 1
        self._first = self._first or part

    def refusal(self) -> Iterator[Refused]:
        """Yield the refusal of all that were counted."""
        if self._first is not None:
            many = f"{self._count} traces hold" if self._count > 1 else "the trace holds"
            yield refuse(UNFIT, self._first, f"{many} no call of a model: no span of GenAI conventions is in it")


def _trace_ids(raw: bytes) -> Iterator[str]:
    """Yield the ids that a record may hold spans of, without parsing it."""
    for name in _NAMES:
        at = raw.find(name)
        while at >= 0:
            at += len(name)
            found = _VALUE.match(raw, at)
            if found is not None:
                yield normal(found[1].decode("utf-8", "replace"))
            at = raw.find(name, at)


def _alone(part: Document, value: Any, place: str) -> Document:
    """Return a document with a part of another, written in its own bytes."""
    return Document(value, digest.ordered(value), f"{part.where}#{place}", part.repairs)


IMPORTER = OtelImporter()
"""The importer, as the registry names it."""
