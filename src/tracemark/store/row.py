"""What the catalogue holds of one stored line, computed from the line alone.

Ingest projects each trace that it writes; opening a store and `reindex` project lines read from segments. Both use this
module, so a catalogue that was rebuilt equals one that grew.

Invariants:
- a row is a projection: whatever it cannot hold exactly (a number beyond 64 bits, a lone surrogate) stays exact in the
  line, and only the line is ever exported;
- the head columns (`HEAD_FIELDS`) depend on stamp, run and outcome only, the others on source and trajectory only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError
from tracemark.importers.content import text_of
from tracemark.model.stamp import corroborated_parts, evidence_of
from tracemark.model.trace import FORMAT, model_label, statement
from tracemark.store.stated import wrong_in_trace

TEXT_LIMIT = 4000
"""How many characters of one message, and of the task, the search text takes."""

_SLICE = b',"trajectory":'
_INT64 = 2**63


class TraceRow(NamedTuple):
    """One trace as the catalogue knows it. Text is None, and flags are false, where the line says nothing."""

    id: bytes
    """SHA-256 of the trajectory, 32 bytes."""
    raw: bytes
    """SHA-256 of the raw record, 32 bytes; empty when the source names none."""
    head: bytes
    """SHA-256 of the canonical JSON of `{harness, outcome, run}`, 32 bytes."""
    fingerprint: str | None
    """The declared fingerprint."""
    harness: str | None
    """The label under which the harness was declared."""
    evidence: str
    """Evidence of the weakest declared component; `unrecorded` when nothing is declared."""
    corroborated: int
    """How many declared parts are corroborated or better."""
    contradicted: bool
    """Whether the content contradicts the declared harness."""
    mixed: bool
    """Whether more than one harness was at work."""
    task: str | None
    """The task's name."""
    domain: str | None
    """Its domain."""
    split: str | None
    """Its split."""
    attempt: int | str | None
    """Which try at the task; as text when it is beyond 64 bits."""
    model: str | None
    """Name of the model that played."""
    revision: str | None
    """Its revision."""
    role: str | None
    """`subagent` or `continuation`; None for a whole run of the agent's own."""
    rendered: bool
    """Whether the assistant's text is a rendering that the model never wrote."""
    demonstration: bool
    """Whether the trajectory was shown to a model."""
    status: str
    """`success`, `failure`, `error` or `unknown`."""
    reward: float | None
    """The reward, as a double."""
    grader: str | None
    """Name of the grader."""
    copied: bool
    """Whether a step is context copied from another trace."""
    uncalled: bool
    """Whether an agent step was made without a call of a model (`llm_call_count: 0`)."""
    tool_calls: int
    """How many tool calls the agent made."""
    steps: int
    """How many steps there are."""
    format: str | None
    """Format of the source."""
    label: str | None
    """File name and place in the source."""
    importer: str | None
    """Name of the importer."""
    importer_version: str | None
    """Its version."""

    @property
    def trace_id(self) -> str:
        """The trace's id as 64 hexadecimal digits."""
        return self.id.hex()

    @property
    def model_label(self) -> str | None:
        """The model as `NAME` or `NAME@REVISION`; None when nobody names it."""
        return model_label(self.model, self.revision)

    @property
    def raw_digest(self) -> str:
        """The raw record's digest as 64 hexadecimal digits; empty when there is none."""
        return self.raw.hex()

    @property
    def head_digest(self) -> str:
        """The digest of the first statement as 64 hexadecimal digits."""
        return self.head.hex()


HEAD_FIELDS = TraceRow._fields[TraceRow._fields.index("fingerprint") : TraceRow._fields.index("grader") + 1]
"""The fields that depend on stamp, run and outcome only."""


class Projection(NamedTuple):
    """Everything that is entered in the catalogue for one line."""

    row: TraceRow
    """The trace's row."""
    supersedes: tuple[str, ...]
    """Ids of traces that this one replaces."""
    text: str
    """What `find` searches: task, first user message, last message, tool names."""
    shown: tuple[str, ...] = ()
    """What the content shows of a harness that nobody names: canonical JSON of an object with one component each, `{}`
    where it shows nothing; empty where one is named."""


def project(line: Mapping[str, JSON], trace_id: str, head: bytes | None = None) -> Projection:
    """Return what the catalogue holds of a parsed trace line.

    Args:
        line: the members `harness`, `outcome`, `run`, `source` and `trajectory`; only read.
        trace_id: SHA-256 of the trajectory's canonical bytes, 64 hexadecimal digits.
        head: canonical JSON of `{harness, outcome, run}`, where somebody wrote it already; None writes it.
    """
    source = line["source"]
    stated = statement(line)
    calls, copied, uncalled, steps, text = _walk(line["trajectory"], line["run"].get("task"))
    row = TraceRow(
        bytes.fromhex(trace_id),
        bytes.fromhex(source.get("raw", "")),
        bytes.fromhex(digest.of(stated) if head is None else digest.sha256(head)),
        *head_values(**stated),  # type: ignore[arg-type,call-arg]
        copied,
        uncalled,
        calls,
        steps,
        _text(source.get("format")),
        _text(source.get("label")),
        _text(source.get("importer")),
        _text(source.get("importer_version")),
    )
    return Projection(row, tuple(source.get("supersedes") or ()), text, _shown_apart(line["harness"]))


def _shown_apart(harness: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return what `shown_of` does, component by component: most traces of a run have one list of tools."""
    if not shown_of(harness):
        return ()
    shown = harness.get("observed") or {}
    return tuple(shown_of({"observed": {name: shown[name]}}) for name in sorted(shown)) or ("{}",)


def shown_of(harness: Mapping[str, JSON]) -> str:
    """Return the observed half of a stamp without a fingerprint as text; empty for any other stamp."""
    if (harness.get("declared") or {}).get("fingerprint") is not None:
        return ""
    return storable(digest.canonical(harness.get("observed") or {}).decode())


def project_line(line: bytes, *, everything: bool = False, value: JSON = None) -> Projection:
    """Return what the catalogue holds of a stored line, its id recomputed.

    Args:
        line: the canonical line, without its line feed.
        everything: whether the search text is that of all messages, arguments and observations.
        value: what the line says, where somebody parsed it already; None parses it.

    Raises:
        IntegrityError: when it is not a line of a trace.
    """
    try:
        value = digest.load_canonical(line) if value is None else value
        if value["format"] != FORMAT:
            raise IntegrityError(f"a line has format {str(value['format'])[:60]!r}, not {FORMAT}")
        wrong = wrong_in_trace(value)
        if wrong is not None:
            raise IntegrityError(f"a line is not a trace: {wrong}")
        projection = project(value, digest.sha256(trajectory_slice(line)))
        return projection._replace(text=full_text(value)) if everything else projection
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"a line is not a trace: {type(error).__name__}: {error}") from None


def trajectory_slice(line: bytes) -> bytes:
    """Return the canonical bytes of the trajectory in a stored line; its SHA-256 is the trace's id.

    Raises:
        IntegrityError: when the line has no trajectory as its last member.
    """
    return line[_parted(line)[0] + len(_SLICE) : -1]


def trajectory_of(line: bytes, trace_id: str) -> bytes:
    """Return the canonical bytes of the trajectory in a stored line, after proving that they give its id.

    Args:
        line: the stored line.
        trace_id: the trace's id, 64 hexadecimal digits.

    Raises:
        IntegrityError: when the line holds no such trajectory.
    """
    # the digest tells the right member, so the head need not be read to find it
    start = line.find(_SLICE)
    raw = line[start + len(_SLICE) : -1]
    if start < 0 or digest.sha256(raw) != trace_id:
        raw = trajectory_slice(line)
        if digest.sha256(raw) != trace_id:
            raise IntegrityError("a stored trace is not what its id says", where=trace_id, hint="tracemark check")
    return raw


def head_of(line: bytes) -> dict[str, JSON]:
    """Return the members of a stored line but `trajectory`, without parsing the trajectory.

    Raises:
        IntegrityError: when the line has no trajectory as its last member.
    """
    return _parted(line)[1]


def _parted(line: bytes) -> tuple[int, dict[str, JSON]]:
    """Return where the trajectory begins, and the members before it."""
    # A free member of `run` may have a key of the same name; what precedes the right one is an object once closed.
    start = line.find(_SLICE)
    while start >= 0:
        try:
            return start, digest.load_canonical(line[:start] + b"}")
        except digest.NotJSONError:
            start = line.find(_SLICE, start + 1)
    raise IntegrityError("a line has no trajectory as its last member")


def conduct(trajectory: Mapping[str, JSON]) -> dict[str, int | bool]:
    """Return what the row of a trace says of its agent's steps: `copied`, `uncalled`, `tool_calls`."""
    calls, copied, uncalled, _, _ = _walk(trajectory, None)
    return {"copied": copied, "uncalled": uncalled, "tool_calls": calls}


def head_values(
    harness: Mapping[str, JSON], run: Mapping[str, JSON], outcome: Mapping[str, JSON]
) -> tuple[str | int | float | bool | None, ...]:
    """Return the values of `HEAD_FIELDS` for a stamp, run and outcome, in that order."""
    declared = harness.get("declared") or {}
    model = run.get("model") or {}
    grader = outcome.get("grader") or {}
    return (
        declared.get("fingerprint"),
        _text(declared.get("name")),
        evidence_of(harness),
        corroborated_parts(harness),
        bool(harness.get("contradictions")),
        harness.get("mixed") is True,
        _text(run.get("task")),
        _text(run.get("domain")),
        _text(run.get("split")),
        _attempt(run.get("attempt")),
        _text(model.get("name")),
        _text(model.get("revision")),
        _text(run.get("role")),
        run.get("rendered") is True,
        run.get("demonstration") is True,
        outcome.get("status") or "unknown",
        _double(outcome.get("reward")),
        _text(grader.get("name")),
    )


def full_text(line: Mapping[str, JSON]) -> str:
    """Return all text of a parsed trace line: task, messages, reasoning, tool names, arguments, observations."""
    pieces = [str(line["run"].get("task") or "")]
    for step in line["trajectory"].get("steps") or ():
        pieces += [text_of(step.get("message")), step.get("reasoning_content") or ""]
        for call in step.get("tool_calls") or ():
            arguments = digest.canonical(call.get("arguments")).decode()
            pieces += [str(call.get("function_name")), arguments]
        for result in (step.get("observation") or {}).get("results") or ():
            pieces.append(text_of(result.get("content")))
    return storable("\n".join(piece for piece in pieces if piece))


def storable(text: str) -> str:
    r"""Return `text` as SQLite can hold it: a lone surrogate is written as `\udxxx`."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _walk(trajectory: Mapping[str, JSON], task: JSON) -> tuple[int, bool, bool, int, str]:
    """Return the number of tool calls, copied, uncalled, the number of steps and the search text, in one walk."""
    calls, copied, uncalled = 0, False, False
    first_user, last = None, None
    tools: dict[str, None] = {}
    steps = trajectory.get("steps") or ()
    for step in steps:
        if step.get("is_copied_context"):
            copied = True
        message = step.get("message")
        if message:
            last = message
        if step["source"] == "agent":
            if step.get("llm_call_count") == 0:
                uncalled = True
            step_calls = step.get("tool_calls")
            if step_calls:
                calls += len(step_calls)
                for call in step_calls:
                    tools[call["function_name"]] = None
        elif first_user is None and message and step["source"] == "user":
            first_user = message
    pieces = [
        task[:TEXT_LIMIT] if isinstance(task, str) else "",
        text_of(first_user)[:TEXT_LIMIT],
        text_of(last)[-TEXT_LIMIT:] if last is not first_user else "",
        " ".join(tools),
    ]
    return calls, copied, uncalled, len(steps), storable("\n".join(piece for piece in pieces if piece))


def _text(value: JSON) -> str | None:
    if not isinstance(value, str):
        return None
    return value if value.isascii() else storable(value)


def _attempt(value: JSON) -> int | str | None:
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else str(value)
    return _text(value)


def _double(value: JSON) -> float | None:
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
