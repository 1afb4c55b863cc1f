"""Logs of Inspect AI: one JSON document (`.json`), or an archive with a member for each sample (`.eval`).

Each sample in each epoch is a run. Its messages are the conversation; its events hold the requests that were sent, and
with them the tools. A model call is the agent's own when its reply stands in the messages, so a grader's, a critic's or
a sub-agent's is not (see `inspect_events`).

Keeps: messages, calls, answers and reasoning as steps (see `conversation` and `inspect_messages`); of each reply its
time, tokens and cost, and what else its call says in the step's `extra.model_event`; the tools of the first request as
`agent.tool_definitions`; the plan and the solver's arguments in `agent.extra`; scores in `outcome.checks`; every other
member of a sample in the root's `extra.sample`, of the log's header (`eval`) in `run` and `extra.eval`.
Drops: `attachments`, `events_data`, `message_pool` and `call_pool`, whose texts stand where they are named; `output`
where the last call of the agent gave it, and its `completion`; `input` that stands in the messages; events that are no
reply in the messages (state, store, spans, sandbox, calls of graders and critics), but for those of the kinds named
below; `call` of an event, the provider's form of the same request and reply; the tools, inputs and settings of later
requests where they are those of the first (else in the step's `extra.request` and `extra.tools_offered`);
`traceback_ansi`; `timelines`; of the header `status`, `results`, `stats`, `reductions` and `error`, which are of the
log as a whole and not known while it is written, and `eval.dataset.sample_ids`, `eval.scorers` and `eval.metrics`,
which change when a log is graded again, `task_args_passed` and `solver_args_passed`, which repeat the arguments; null
members, and `detail` of images where it is `auto`.
Invents: `agent.name` and `agent.version` ("unknown") where no solver or package is recorded, a first step from `input`
for a sample without messages, ids of calls without one. Each is named in `source.repairs`.

A sample keeps all of its messages, whatever of them was sent. The first reply whose request lacks a reply or an answer
in front of it, holds one with other text or calls, or asks last for something else than the messages do, or that
follows an event `compaction`, has `extra.context_management`, and no training row is made of the run.

A sub-agent that ran as a tool is embedded with its last request and the reply to it (`inspect_subagents`). Events of
the kinds approval, branch, compaction, error, info, input, interrupt and sample_limit are kept in `extra.events`.

A text that no model wrote trains nobody: a reply whose `source` is not `generate` and that no call of the log gave is
marked `is_copied_context` and counts no model call. A reply that was altered afterwards, as the ReAct agent takes the
call that submits the answer out of its message, is given as the model wrote it, with the altered one in its
`extra.altered`; where a later request was sent the altered one, that is the step, marked `is_copied_context`, with the
other in its `extra.generated`. A run with Inspect's mock model is one of no model (`run.demonstration`).

What the format shows of a harness. Prompt: the template of a `system_message` solver where the message sent is a
rendering of it; else each text in front of the first reply without the sample's input, where the input has 20
characters or more and stands in it once; else the text as it was sent. Tools: those of the request, also when it
offered none. Runtime: limits and settings that the header holds. Handlers: nothing. The code of a solver is no part of
a log: `plan` names it, and the git commit is that of the folder in which the log was made. Where no system message is a
rendering of the plan's template, nothing of the header is used (finding `config-contradicted`). Where the system
messages or the tools of a later call of the agent are others, or the first call was sent another prompt than the
messages hold, the run is mixed.

Known limits: of a sample that is stored in pieces (a folder in the archive, see `inspect_pieces`) the raw digest is
that of its `sample.json`. What a message holds beside text, images and sounds (what a tool of the provider did,
a document, a video) is kept in `extra.other_parts`, and no training row is made of such a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tracemark.findings import finding
from tracemark.importers import inspect_scores
from tracemark.importers.base import Context, Document, Elements, Imported, Importer, Record, Refused, Unit
from tracemark.importers.conversation import Conversation
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.head import Head
from tracemark.importers.inspect_events import Attachments, Calls
from tracemark.importers.inspect_header import agent_of, header_extra, run_of, session_of
from tracemark.importers.inspect_pieces import REFERENCES, put_together
from tracemark.importers.inspect_steps import Reading
from tracemark.importers.inspect_subagents import embed
from tracemark.importers.members import object_in
from tracemark.model.atif import VERSION

SUCCESS = inspect_scores.SUCCESS
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`id`, `epoch` of the sample", "run.task, run.attempt"),
    ("`started_at`, `completed_at` of the sample", "run.start, run.end"),
    ("`uuid` of the sample; else `eval_id` (or `run_id` and `task_id`) with id and epoch", "session_id"),
    ("`eval.task`", "run.domain"),
    ("`model` of the first request, else `eval.model`", "run.model.name"),
    ("`eval.model`; `model` of a reply", "agent.model_name; a step's model_name"),
    ("`config` and `tool_choice` of the first request, else `plan.config`", "run.sampling"),
    ("`eval.config.seed`, else that of the request", "run.seed"),
    ("`packages`, `revision`, `sandbox`, ids and files of `eval`", "run.environment, as labels"),
    ("`eval.solver`, else the solvers of the plan; `eval.packages.inspect_ai`", "agent.name, agent.version"),
    ("`tools` of the first request", "agent.tool_definitions"),
    ("`scores`, `invalidation`", "outcome.status, outcome.reward, outcome.checks, outcome.grader"),
    ("`error`, `limit`, `output.choices[0].stop_reason`", "outcome.termination"),
)
"""What of a sample and of its log's header goes to a place of its own."""

_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json")
_PIECES = re.compile(r"samples/.+_epoch_\d+/sample\.json")
_SPECIFIC = ("plan", "results", "stats", "status")
_MOCK = "mockllm/"
"""How the name of a model begins that plays texts which it was given."""


class InspectImporter(Importer):
    """Reads samples of Inspect AI logs."""

    name = "inspect"
    version = "1"
    surest = 90
    shows = ("prompt_templates", "tool_bindings", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 90 for a document whose root has `eval` beside what only a log has."""
        if head.lines or not head.may_hold(b'"eval"') or isinstance(head.value, list):
            return 0
        members = head.members
        is_log = members.get("eval") == "{" and "version" in members and any(name in members for name in _SPECIFIC)
        return self.surest if is_log else 0

    def unit(self, head: Head) -> Unit:  # noqa: ARG002
        """Return the array of samples: a log is never held whole."""
        return Elements("samples", needs=("version", "eval", "plan"))

    def members(self, names: Sequence[str]) -> Sequence[str] | None:
        """Return the samples of an archive; None where it has no header of a log."""
        if not any(name in names for name in _HEADERS):
            return None
        return [name for name in names if _SAMPLE.fullmatch(name) or _PIECES.fullmatch(name)]

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the run of a sample."""
        yield from each(self.name, record, partial(self._read, record), lambda _: False)

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(self._draft, record, document))

    def _draft(self, record: Record, document: Document) -> Draft:
        sample = _sample(document)
        header = record.around or _header(record.context)
        spec = header.get("eval")
        if not isinstance(spec, dict):
            raise UnfitError("its log has no readable header, which says what was run (`eval`)")
        if REFERENCES in sample:
            sample = put_together(sample, record)
        repairs: list[str] = []
        plan = header.get("plan")
        attachments = Attachments(sample, document.raw)
        ending = inspect_scores.take(sample, record.context.limits.success_reward)
        calls = Calls(sample, attachments)
        reading = Reading(sample, calls, attachments, Conversation(repairs))
        reading.add_messages()
        session = session_of(sample, spec)
        run = run_of(sample, spec, plan, reading.first_event())
        if str(run.get("model", {}).get("name")).startswith(_MOCK):
            run["demonstration"] = True
            repairs.append("replies of a provider that plays what it was given: taken as made by no model")
        agent, extra = _of_log(record.context, spec, plan, repairs)
        shown = reading.shown(spec, plan)
        if reading.tools is not None:
            agent["tool_definitions"] = reading.tools
        trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": reading.conversation.steps}
        if session is not None:
            trajectory["session_id"] = session
        embed(trajectory, calls, reading.own, attachments, repairs)
        extra = extra | reading.left_over()
        if extra:
            trajectory["extra"] = extra
        if attachments.missing:
            repairs.append("texts that the sample names and does not hold (attachments): left as they are named")
        doubts = [*ending.doubts, *reading.doubts]
        return Draft(
            trajectory=trajectory,
            run=run,
            outcome=attachments.put_back(ending.outcome),
            repairs=repairs,
            observed=shown,
            tools_known_empty=reading.offered_none,
            findings=[finding(code, document.where, words) for code, words in doubts],
            model_place="`eval.model` of the log's header or a model call of the sample",
            mixed=reading.mixed,
        )


def _sample(document: Document) -> dict[str, Any]:
    """Return the sample, in the form that logs have now; a copy that may be altered."""
    if not isinstance(document.value, dict):
        raise UnfitError("a sample is no object")
    sample = dict(document.value)
    if "id" not in sample or "epoch" not in sample:
        raise UnfitError("a sample has no `id` or no `epoch`")
    transcript = sample.pop("transcript", None)
    if isinstance(transcript, dict):
        sample.setdefault("events", transcript.get("events"))
        sample.setdefault("attachments", transcript.get("content"))
    return sample


def _header(context: Context) -> Mapping[str, Any]:
    """Return the header of the archive that a sample is in; of a run that broke off, what was written at its start."""
    return context.once((__name__, context.archive), partial(_read_header, context))


def _read_header(context: Context) -> Mapping[str, Any]:
    for name in _HEADERS:
        value = object_in(context.member(name))
        if value is not None and isinstance(value.get("eval"), dict):
            return value
    return {}


def _of_log(
    context: Context, spec: Mapping[str, Any], plan: Any, repairs: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the agent, as a copy, and what of the header is kept in `extra`: the same for all samples of a log."""

    def made() -> tuple[Any, Any, dict[str, Any], dict[str, Any], list[str]]:
        # what is kept holds the values that its key is made of, so no others get that key
        notes: list[str] = []
        return spec, plan, agent_of(spec, plan, notes), header_extra(spec), notes

    _, _, agent, extra, notes = context.once((__name__, id(spec), id(plan)), made)
    repairs += notes
    return dict(agent), extra


IMPORTER = InspectImporter()
"""The importer, as the registry names it."""
