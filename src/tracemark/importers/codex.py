"""Codex rollouts: a file of JSON lines per session, each with a `type` and a `payload`; older ones hold bare items.

A session with several tasks of the user is one run. Where another `session_meta` begins in the same file, the session
that it names is a trace of its own, unless the first goes on from it: then what was written before the first began is
copied history. What the terminal program logs of itself (`ts`, `dir`, `kind`) is no rollout, and is refused.

Keeps: messages, calls and answers as steps; what of an item has no place there in the step's `extra.output`, encrypted
reasoning too, which stays opaque; the system prompt (`base_instructions`) as the first step; what the program noted of
a call that ended as `raw_output` in the result's `extra`; the tokens of a reply as metrics; a compaction as a step with
`extra.context_management`; turns that were rolled back in the root's `extra.rolled_back`; `session_meta` in
`extra.session_meta`, and every other line in `extra.records`, with the number of steps in front of it.
Drops: lines that are no record, named in `source.repairs` and in a finding `line-unread`; events that repeat a text of
the conversation; repeated lines of `session_meta` and `turn_context`; repeated reports of tokens, and the limits of the
user's account in them; `ordinal`; that a text is one of input or output, and a single one a part; null
members.
Invents: `agent.name`, and where no line names one `agent.version` ("unknown"); ids of calls without one; for an item of
a kind that is not known, a step that names an event. Free text that was given to a tool is `{"_raw": text}`.

Of a harness the file holds `base_instructions` whole (`constant`), messages of the developer (`rendered`), and the
policies of approval, of the sandbox and of truncation as runtime: by them the program asks, refuses or cuts, and the
model sees what comes of it. They count without the folders in them; one that changes within the session makes the trace
mixed, and so do another version and another system prompt. A version alone proves nothing, but a program that was
replaced within one conversation leaves nobody to say that one harness made it. The text in `instructions` may be the
workspace's own (AGENTS.md) and is not used. Schemas of tools are not stored. Originator, version, folder and git commit
are labels.

A summary in place of the reasoning was not written by the model: such a trace counts as `run.rendered`. Known limits: a
history that was copied with new times cannot be told; the session is then a `continuation`. A session that was resumed
under another version may not say so. Of a search or an image tool of the model's server `extra.output` holds what the
item says, and there is no answer to such a call: its step is marked `results_missing`, and makes no training row. A
session that was ingested while it went on is stored as it was, and when it is ingested again the longer one is another
trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import Finding
from tracemark.importers import recovery
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.codex_items import ITEMS, LINES, Entry, entry_of, is_terminal_log
from tracemark.importers.codex_story import POLICIES, Story
from tracemark.importers.content import text_of
from tracemark.importers.finish import UNFIT, Draft, UnfitError, drafted
from tracemark.importers.guard import guarded
from tracemark.importers.head import Head
from tracemark.importers.recovery import Entry as Shown
from tracemark.importers.session_lines import Lines, Unread, heads, read
from tracemark.model.atif import VERSION

SUCCESS = (
    ("an event `error` behind the last item", "error"),
    (
        "`turn_aborted` behind the last item: the user stopped it, and no infrastructure failed",
        "unknown, with its reason",
    ),
    ("a last turn that just ended: nobody graded", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status."""

MEMBERS = (
    ("`session_meta.id`", "session_id; trajectory_id of a sub-agent"),
    ("`turn_context.model`, where it is one", "run.model.name, agent.model_name"),
    ("`turn_context.effort` and `summary`, where they never change", "run.sampling"),
    ("`cli_version`", "agent.version, run.environment"),
    ("`cwd`, `git`, `originator`, `model_provider`, `source` of `session_meta`", "run.environment"),
    ("the first and the last `timestamp`", "run.start, run.end"),
    ("`token_count`: `last_token_usage`", "metrics of the step in front of it"),
    ("`token_count`: `total_token_usage`", "final_metrics"),
)
"""What beside the items goes to a place of its own."""

_LABELS = ("cli_version", "cwd", "git", "originator", "model_provider", "source")
_WORDS = (b'"payload"', b'"role"', b'"call_id"', b'"dir"', b'"instructions"')
_SAMPLING = {"effort": "reasoning_effort", "summary": "reasoning_summary"}
_TOTALS = {
    "input_tokens": "total_prompt_tokens",
    "output_tokens": "total_completion_tokens",
    "cached_input_tokens": "total_cached_tokens",
}


class CodexImporter(Importer):
    """Reads rollouts of Codex."""

    name = "codex"
    version = "1"
    surest = 95
    shows = ("prompt_templates", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 95 for lines with a payload, 90 for a log of the terminal program, 60 for bare items."""
        if not any(map(head.may_hold, _WORDS)):
            return 0
        return max(map(_sure, heads(head)), default=0)

    def unit(self, head: Head) -> Unit:  # noqa: ARG002 - the protocol's signature
        """Return `document`: all lines of a file are one session."""
        return "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield a trace for each session in the file."""
        lines = read(record)
        if any(is_terminal_log(line.value) for line in lines.lines[:1]):
            message = "what the terminal program logs of itself (ts, dir, kind) is no rollout"
            hint = "give the rollout of the session: sessions/YEAR/MONTH/DAY/rollout-*.jsonl in the folder of Codex"
            yield refuse(UNFIT, record, message, hint)
            return
        entries = []
        for line in lines.lines:
            entry = entry_of(line)
            if entry is None:
                lines.unread.append(Unread(line.number, "no record"))
            else:
                entries.append(entry)
        notes, findings = lines.told(record.where)
        sessions = [one for one in _sessions(entries) if any(entry.kind == "response_item" for entry in one)]
        if not sessions:
            yield refuse(UNFIT, record, "it holds no item of a conversation")
        for number, session in enumerate(sessions):
            document = _document(record, lines, session, number if len(sessions) > 1 else None)
            told = ([*lines.repairs, *notes], findings if number == 0 else [])
            yield guarded(self.name, document, partial(self._trace, record, document, session, told))

    def _trace(
        self, record: Record, document: Document, session: list[Entry], told: tuple[list[str], list[Finding]]
    ) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, session, told))


def _sure(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if isinstance(value.get("payload"), dict) and kind in LINES and "timestamp" in value:
        return 95
    if is_terminal_log(value):
        return 90
    if value.keys() >= {"id", "timestamp", "instructions"} and kind is None:
        return 60
    if "role" in value and kind == "message":
        content = value.get("content")
        parts = content if isinstance(content, list) else []
        return 60 if parts and all(_is_item_part(part) for part in parts) else 0
    return 60 if isinstance(kind, str) and kind in ITEMS and "call_id" in value else 0


def _is_item_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("input_text", "output_text", "input_image")


def _sessions(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield the lines of each session: another one begins with a `session_meta` that the first does not go on from."""
    held: list[Entry] = []
    meta: dict[str, Any] | None = None
    for entry in entries:
        if entry.kind == "session_meta":
            payload = entry.payload
            if meta is not None and payload.get("id") != meta.get("id") and not _goes_on_from(meta, payload):
                yield held
                held, meta = [], None
            meta = meta or payload
        held.append(entry)
    yield held


def _goes_on_from(meta: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a session began with the history of another one: it says so, or the other one is the older."""
    if meta.get("forked_from_id") is not None:
        return True
    times = (other.get("timestamp"), meta.get("timestamp"))
    return all(isinstance(time, str) and time.endswith("Z") for time in times) and str(times[0]) < str(times[1])


def _document(record: Record, lines: Lines, session: list[Entry], number: int | None) -> Document:
    """Return what a session was read from: the whole file, or of several in one file its own lines."""
    if number is None:
        return Document(None, record.raw, record.where, record.repairs)
    own = [entry.line for entry in session]
    whole = digest.canonical([line.value for line in own]) if lines.is_array else b"\n".join(line.raw for line in own)
    return Document(None, whole, f"{record.where}#{number}", record.repairs)


def _draft(session: list[Entry], told: tuple[list[str], list[Finding]]) -> Draft:
    repairs = list(told[0])
    story = Story(session, repairs)
    if not story.steps:
        raise UnfitError("it holds no item that the model saw")
    meta = {name: value for name, value in story.meta.items() if name != "base_instructions" and value is not None}
    if story.base_instructions is None and story.meta.get("base_instructions") is not None:
        meta["base_instructions"] = story.meta["base_instructions"]
    trajectory = _trajectory(story, meta)
    run = _run(story, session)
    source = meta.get("source")
    if isinstance(source, dict) and "subagent" in source:
        run["role"] = "subagent"
        if "session_id" in trajectory:
            trajectory["trajectory_id"] = trajectory["session_id"]
    elif story.is_fork and not story.copied:
        run["role"] = "continuation"
    if story.copied:
        repairs.append("steps of another session, from which this one goes on: marked as copied")
    if story.is_summarised:
        run["rendered"] = True
        repairs.append("reasoning of which only a summary is there: the trace counts as rendered")
    outcome: dict[str, Any] = {"status": "error" if story.is_failed else "unknown"}
    if story.termination is not None or story.is_failed:
        outcome["termination"] = story.termination or "error"
    return Draft(trajectory, run, outcome, repairs, _shown(story, run), findings=list(told[1]), mixed=story.mixed)


def _trajectory(story: Story, meta: dict[str, Any]) -> dict[str, Any]:
    version = meta.get("cli_version")
    agent = {"name": "codex", "version": version if isinstance(version, str) else "unknown"}
    if story.models:
        agent["model_name"] = story.models[0]
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": story.steps}
    if isinstance(meta.get("id"), str):
        trajectory["session_id"] = meta["id"]
    if story.totals:
        left = {name: value for name, value in story.totals.items() if value is not None}
        counts = {place: left.pop(name) for name, place in _TOTALS.items() if type(left.get(name)) is int}
        trajectory["final_metrics"] = {**counts, **({"extra": {"usage": left}} if left else {})}
    beside = {"session_meta": meta, "records": story.aside, "rolled_back": story.rolled_back}
    extra = {name: value for name, value in beside.items() if value}
    return {**trajectory, "extra": extra} if extra else trajectory


def _run(story: Story, session: list[Entry]) -> dict[str, Any]:
    labels = {name: story.meta[name] for name in _LABELS if story.meta.get(name) is not None}
    run: dict[str, Any] = {"environment": labels} if labels else {}
    if len(story.models) == 1:
        run["model"] = {"name": story.models[0]}
    sampling = {place: value for name, place in _SAMPLING.items() if (value := story.settings.get(name)) is not None}
    if sampling:
        run["sampling"] = sampling
    times = [entry.time for entry in session if isinstance(entry.time, str)]
    if times:
        run |= {"start": times[0], "end": times[-1]}
    return run


def _shown(story: Story, run: dict[str, Any]) -> dict[str, list[Shown]]:
    """Return what the file holds of the harness; a sub-agent's prompt is not the agent's."""
    runtime = recovery.settings({name: story.settings.get(name) for name in POLICIES})
    prompts: list[Shown] = []
    if run.get("role") != "subagent":
        prompts += recovery.constant("base_instructions", story.base_instructions)
        said = []
        for step in story.steps:
            extra = step.get("extra", {})
            if step["source"] == "agent":
                break
            if step["source"] == "system" and "origin" not in extra and "event_type" not in extra:
                said.append(text_of(step["message"]))
        for number, text in enumerate(filter(None, said), 1):
            prompts += recovery.rendered("developer" if number == 1 else f"developer-{number}", text)
    return {"prompt_templates": prompts, "runtime": runtime}


IMPORTER = CodexImporter()
"""The importer, as the registry names it."""
