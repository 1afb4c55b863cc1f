"""Claude Code sessions: one file of JSON lines per session, and the output of `--output-format stream-json`.

A session is a tree of records: messages of the user and of the model, a record for each block of a reply, and notes of
the program. A session with several tasks of the user is one run. Contexts that saw nothing of one another are traces of
their own: what follows the command `/clear`, another session in the same file, a fresh root under another version of
the program.

Keeps: messages, calls, answers and reasoning as steps; what a tool gave (`toolUseResult`) as `raw_output` in the
result's `extra`; usage as metrics, once for each reply; the labels of the conversation in `run.environment`, and in a
step where it has another one; a boundary of compaction as a step with `extra.context_management`; every other record
in the root's `extra.records`, with the number of steps in front of it; records of branches that the user went back from
in the root's `extra.abandoned`; sub-agents as embedded trajectories, to which the answers of their calls refer. A file
that is a sub-agent's alone is a trace with `run.role` subagent.
Drops: lines that are no record, named in `source.repairs` and in a finding `line-unread`; the places of records in the
tree (`parentUuid`, `isSidechain`); of blocks and records that stand there twice the first; that a single text is a
block; null members.
Invents: `agent.name`, and where no record names one `agent.version` ("unknown"); the empty message of a step for an
`attachment`, of which the model saw something that no record holds.

Holds no harness evidence: neither the system prompt nor a tool's schema is in any file. Names of tools, which the first
record of stream-json holds, prove nothing, for the schemas and prompts under them change. Version, folder, branch and
model are labels.

A version proves nothing of a harness, neither that it is the same nor that it is another. But a program that was
replaced within one conversation leaves nobody to say that one harness made it: such a trace is stored as mixed, with
the step and both versions. So is one in which the names of the tools on offer change.

Steps that came from another session (copied history, `forkedFrom`) are `is_copied_context`. What the program wrote in
the model's place (an error of the API) has `llm_call_count` 0. Known limits: of several models none is the run's, and
each step names its own; of sessions that a plan or `/clear` spread over several files (one `slug`) each is a trace. A
session that was ingested while it went on is stored as it was, and when it is ingested again the longer one is another
trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import Finding
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.claude_code_tree import Context, contexts, is_record, role_of, session_of, text_of_prompt
from tracemark.importers.claude_code_turns import LABELS, Turns
from tracemark.importers.finish import UNFIT, Draft, drafted
from tracemark.importers.guard import guarded
from tracemark.importers.head import Head
from tracemark.importers.session_lines import Lines, Unread, heads, read
from tracemark.importers.usage import is_number
from tracemark.model.atif import VERSION

SUCCESS = (
    ("a `result` record of stream-json with `is_error`, or the subtype `error_during_execution`", "error"),
    ("an error of the API as the last reply", "error, termination `api-error`"),
    ("any other `result`, `success` too: nobody graded", "unknown, its subtype as termination"),
    ("the user interrupted, and no infrastructure failed", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status."""

MEMBERS = (
    ("`sessionId` or `session_id`", "session_id"),
    ("`agentId` of a sub-agent", "trajectory_id"),
    ("`message.model`, where one model gave all replies", "run.model.name, agent.model_name"),
    ("`version`", "agent.version, run.environment"),
    ("`cwd`, `gitBranch`, `userType`, `entrypoint`, `slug`", "run.environment"),
    ("the first and the last `timestamp`", "run.start, run.end"),
    ("`message.usage`, `costUSD`", "metrics of the step"),
    ("`total_cost_usd` and `usage` of a `result`", "final_metrics"),
)
"""What beside the messages goes to a place of its own."""

_TREE = (b'"sessionId"', b'"session_id"', b'"leafUuid"', b'"parentUuid"')
_KINDS = ("user", "assistant", "system", "summary", "result")
_OWN = ("sessionId", "session_id", "agentId")
_FAILED = "error_during_execution"


class ClaudeCodeImporter(Importer):
    """Reads sessions of Claude Code."""

    name = "claude-code"
    version = "1"
    surest = 95
    shows = ()

    def recognise(self, head: Head) -> int:
        """Return 95 for records of a session among the first lines, 60 for a summary alone."""
        if not any(map(head.may_hold, _TREE)):
            return 0
        return max(map(_sure, heads(head)), default=0)

    def unit(self, head: Head) -> Unit:  # noqa: ARG002 - the protocol's signature
        """Return `document`: all lines of a file are one session."""
        return "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield a trace for each context of the session."""
        lines = read(record)
        kept = []
        for line in lines.lines:
            if is_record(line.value):
                kept.append(line)
            else:
                lines.unread.append(Unread(line.number, "no record"))
        found = contexts(kept, lines.repairs)
        if not found:
            yield refuse(UNFIT, record, "it holds no message of a session")
            return
        notes, findings = lines.told(record.where)
        repairs = [*lines.repairs, *notes]
        for number, context in enumerate(found):
            document = _document(record, lines, context, number if len(found) > 1 else None)
            told = findings if number == 0 else []
            yield guarded(self.name, document, partial(self._trace, record, document, context, (repairs, told)))

    def _trace(
        self, record: Record, document: Document, context: Context, told: tuple[list[str], list[Finding]]
    ) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, context, told))


def _sure(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind == "summary" and isinstance(value.get("leafUuid"), str):
        return 60
    if kind is not None and kind not in _KINDS:
        return 0
    if kind == "system":
        is_init = value.get("subtype") == "init" and isinstance(value.get("tools"), list)
        return 95 if session_of(value) is not None and (is_init or "parentUuid" in value) else 0
    return 95 if role_of(value) is not None and session_of(value) is not None else 0


def _document(record: Record, lines: Lines, context: Context, number: int | None) -> Document:
    """Return what a context was read from: the whole session, or of several contexts in one file its own lines."""
    if number is None:
        return Document(None, record.raw, record.where, record.repairs)
    own = [*context.lines, *context.abandoned, *(line for side in context.sidechains.values() for line in side)]
    own.sort(key=lambda line: line.number)
    whole = digest.canonical([line.value for line in own]) if lines.is_array else b"\n".join(line.raw for line in own)
    return Document(None, whole, f"{record.where}#{number}", record.repairs)


def _draft(context: Context, told: tuple[list[str], list[Finding]]) -> Draft:
    repairs = list(told[0])
    turns = Turns(context.lines, repairs)
    trajectory = _trajectory(turns)
    if context.abandoned:
        trajectory.setdefault("extra", {})["abandoned"] = [line.value for line in context.abandoned]
        repairs.append("records of branches that the user went back from: put aside")
    for name in ("sessionId", "session_id"):
        if name in turns.labels:
            trajectory["session_id"] = context.session or turns.labels[name]
    if context.sidechains:
        _embed(trajectory, context, repairs)
    run = _run(context, turns)
    if context.is_sidechain:
        run["role"] = "subagent"
        if "agentId" in turns.labels:
            trajectory["trajectory_id"] = turns.labels["agentId"]
    outcome = _outcome(turns, trajectory)
    # a message of the role system would be shown, but it is nothing that the program's own prompt is known to be
    shown: dict[str, list[dict[str, str]]] = {"prompt_templates": []}
    return Draft(trajectory, run, outcome, repairs, shown, findings=list(told[1]), mixed=turns.mixed)


def _trajectory(turns: Turns) -> dict[str, Any]:
    agent = {"name": "claude-code", "version": turns.labels.get("version", "unknown")}
    if turns.models:
        agent["model_name"] = turns.models[0]
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": turns.steps}
    if turns.aside:
        trajectory["extra"] = {"records": turns.aside}
    return trajectory


def _run(context: Context, turns: Turns) -> dict[str, Any]:
    labels = {name: turns.labels[name] for name in LABELS if name in turns.labels and name not in _OWN}
    run: dict[str, Any] = {"environment": labels} if labels else {}
    if len(turns.models) == 1:
        run["model"] = {"name": turns.models[0]}
    times = [time for line in context.lines if isinstance(time := line.value.get("timestamp"), str)]
    if times:
        run |= {"start": times[0], "end": times[-1]}
    return run


def _outcome(turns: Turns, trajectory: dict[str, Any]) -> dict[str, Any]:
    """Return how the session ended, by its last `result`; its totals become the trajectory's."""
    results = [one["record"] for one in turns.aside if one["record"].get("type") == "result"]
    if not results:
        return {"status": "error", "termination": "api-error"} if turns.failed else {"status": "unknown"}
    last = results[-1]
    metrics: dict[str, Any] = {}
    if is_number(last.get("total_cost_usd")):
        metrics["total_cost_usd"] = last["total_cost_usd"]
    if isinstance(last.get("usage"), dict):
        metrics["extra"] = {"usage": last["usage"]}
    if metrics:
        trajectory["final_metrics"] = metrics
    subtype = last.get("subtype")
    outcome = {"status": "error" if last.get("is_error") is True or subtype == _FAILED else "unknown"}
    if isinstance(subtype, str):
        outcome["termination"] = subtype
    return outcome


def _embed(trajectory: dict[str, Any], context: Context, repairs: list[str]) -> None:
    """Add the trajectories of sub-agents, and refer to them where their call was answered."""
    made: dict[str, dict[str, Any]] = {}
    prompts: dict[str, str] = {}
    for name, lines in context.sidechains.items():
        turns = Turns(lines, repairs)
        if turns.steps:
            made[name] = {**_trajectory(turns), "trajectory_id": name}
            prompt = next((text for line in lines if (text := text_of_prompt(line.value)) is not None), None)
            if prompt is not None:
                prompts.setdefault(prompt, name)
        else:
            trajectory.setdefault("extra", {}).setdefault("records", []).extend(turns.aside)
    if not made:
        return
    trajectory["subagent_trajectories"] = list(made.values())
    for step in trajectory["steps"]:
        calls = {call["tool_call_id"]: call for call in step.get("tool_calls", ())}
        for result in step.get("observation", {}).get("results", ()):
            call = calls.get(result.get("source_call_id"), {})
            raw = result.get("extra", {}).get("raw_output")
            named = raw.get("agentId") if isinstance(raw, dict) else None
            asked = call.get("arguments", {}).get("prompt")
            said = call.get("extra", {}).get("original_id", call.get("tool_call_id"))
            keys = (named, said, prompts.get(asked) if isinstance(asked, str) else None)
            key = next((key for key in keys if isinstance(key, str) and key in made), None)
            if key is not None:
                result["subagent_trajectory_ref"] = [{"trajectory_id": key}]


IMPORTER = ClaudeCodeImporter()
"""The importer, as the registry names it."""
