"""Journals of our own recorder, format `tracemark/journal/1`: one run per file, one event per line.

Events, in the order in which a run writes them, with their members besides `event`:

    start          format, session, harness {name?, fingerprint, components}, run, agent; once, in the first line.
                   A component holds its `digest` and its `parts`, a list of [name, digest]
    tools          definitions: the tools that the model was offered; the last list in front of the first reply counts,
                   and another one behind it makes the run mixed
    facts          run: facts that showed while it ran, such as its model; what `start` states counts, then the last
    evidence       component, part, evidence: the run obtained the part from the harness (`recorded`), or went around
                   it (`claimed`)
    contradiction  contradiction: something disagreed with the harness
    step           step: an ATIF step without its number and its observation
    observation    results: they belong to the last step, which is the agent's
    call           call: a call of the model that gave no step; `after` is the number of steps in front of it
    outcome        outcome: the grader's words; the last one counts
    end            time, mixed?: last line of a run that was not interrupted

Keeps: every step as it was recorded, run facts, outcome, offered tools, evidence per part, contradictions; the calls
that gave no step stand in the trajectory's `extra.calls_without_step`.
Drops: nothing but a half-written last line, named in `source.repairs`.
Invents: step numbers; for a run without an end, status `error` and termination `interrupted` in place of recorded ones,
which `source.repairs` names.

Success: the recorded outcome's own status; without one, by reward as everywhere; without both `unknown`.

What a journal says of its harness is believed as far as it can be checked: its fingerprint must be the digest of its
components, and a snapshot of the harness that gives the same identity must lie beside it as `<64 hex>.harness.json`.
Where either fails, the evidence is `claimed`, and `source.repairs` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.errors import TracemarkError
from tracemark.harness import snapshot
from tracemark.harness.fingerprint import ALGORITHM, Identity
from tracemark.importers.base import (
    REWARD_RULES,
    Document,
    Imported,
    Importer,
    Record,
    Refused,
    Unit,
    outcome_of_reward,
    refuse,
    source_of,
)
from tracemark.importers.content import observed, walk
from tracemark.importers.head import Head
from tracemark.importers.journal_events import FORMAT, fault
from tracemark.importers.stated import fill_from_batch
from tracemark.importers.tree import JOURNAL_SUFFIX, SNAPSHOT_SUFFIX
from tracemark.model.faults import first
from tracemark.model.harness import COMPONENTS

_ANY_VERSION = "tracemark/journal/"
_CACHED_SNAPSHOT = 1_048_576

SUFFIX = JOURNAL_SUFFIX
"""How the name of a journal ends."""

INTERRUPTED = {"status": "error", "termination": "interrupted", "rule": "the journal has no end"}
"""What the outcome of a run that did not come to its end says in any case; a grader's other words are kept."""

SUCCESS = (
    ("no `end` event", "error, termination `interrupted`"),
    ("outcome.status", "as recorded"),
    ("outcome.reward", "by reward: success at ingest.success_reward, else failure"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

_NOT_IN_A_STEP = ("observation", "step_id")


class _DamagedError(ValueError):
    """Why a journal cannot be read."""


@dataclass
class _Reading:
    """What the events of one journal add up to."""

    start: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] | None = None
    replied: bool = False
    mixed: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    evidence: dict[tuple[str, str], str] = field(default_factory=dict)
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event in."""
        kind = event["event"]
        if self.end is not None or (kind == "start") == bool(self.start):
            raise _DamagedError(f"event {kind!r} is out of place")
        if kind == "start":
            self.start = event
        elif kind == "tools":
            self._offer(event["definitions"])
        elif kind == "evidence":
            self.evidence[event["component"], event["part"]] = event["evidence"]
        elif kind == "contradiction":
            self.contradictions.append(event["contradiction"])
        elif kind == "step":
            own = [name for name in _NOT_IN_A_STEP if name in event["step"]]
            if own:
                raise _DamagedError(f"a step brings its own {' and '.join(own)}, which no recorder writes")
            self.steps.append({**event["step"], "step_id": len(self.steps) + 1})
            self.replied = self.replied or event["step"]["source"] == "agent"
        elif kind == "observation":
            if not self.steps or self.steps[-1]["source"] != "agent":
                raise _DamagedError("an observation follows no step of the agent")
            self.steps[-1].setdefault("observation", {"results": []})["results"].extend(event["results"])
        else:
            self._add_fact(kind, event)

    def _add_fact(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "facts":
            self.facts.update(event["run"])
        elif kind == "call":
            self.calls.append(event["call"])
        elif kind == "outcome":
            self.outcome = event["outcome"]
        else:
            self.end = event

    def _offer(self, definitions: list[dict[str, Any]]) -> None:
        if self.replied and self.tools is not None:
            self.mixed = self.mixed or definitions != self.tools
        else:
            self.tools = definitions


class JournalImporter(Importer):
    """Reads journals of `tracemark.record`."""

    name = "journal"
    version = "2"
    surest = 100
    shows = COMPONENTS

    def recognise(self, head: Head) -> int:
        """Return 100 when the first line names the journal format, of any version."""
        if _ANY_VERSION.encode() not in head.first_line:
            return 0
        form = head.value.get("format") if isinstance(head.value, dict) else None
        return 100 if isinstance(form, str) and form.startswith(_ANY_VERSION) else 0

    def unit(self, head: Head) -> Unit:  # noqa: ARG002 - the protocol's signature
        """Return `document`: all lines of a journal are one run."""
        return "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of one journal, or why there is none."""
        repairs: list[str] = []
        version = _other_version(record.raw)
        if version is not None:
            yield refuse("newer-format", record, f"the journal is of format {version!r}, not {FORMAT!r}")
            return
        try:
            reading = _read(record, repairs)
        except _DamagedError as damage:
            yield refuse("journal-damaged", record, str(damage))
            return
        if not reading.steps:
            yield refuse("journal-empty", record, "the run ended before it recorded a step")
            return
        yield self._trace(record, reading, repairs)

    def _trace(self, record: Record, reading: _Reading, repairs: list[str]) -> Imported | Refused:
        # pydantic is slow to import, and an ingest of other formats never comes here
        from tracemark.model.trajectory import problems  # noqa: PLC0415

        trajectory = _trajectory(reading)
        run, outcome = _facts(reading, record.context.limits.success_reward)
        found = problems(trajectory) or _fact_problems(run, outcome)
        if found:
            place, reason = found[0]
            return refuse("journal-damaged", record, f"{place}: {reason}")
        fill_from_batch(run, record.context.batch)
        if reading.end is None:
            repairs.append(_interruption(reading.outcome))
        walked = walk(trajectory, tools_known_empty=reading.tools == [])
        stamp = _stamp(reading, record, repairs)
        document = Document(None, record.raw, record.where, record.repairs)
        return Imported(
            trajectory=trajectory,
            trajectory_bytes=digest.canonical(trajectory, finite=True),
            run=run,
            outcome=outcome,
            source=source_of(self, record, document, repairs),
            stamp=stamp,
            content=walked.content,
            observed=observed(walked.content),
            where=record.where,
        )


def _other_version(raw: bytes) -> str | None:
    """Return the format that the first line names when it is another version than ours; None otherwise."""
    try:
        first = digest.loads(raw.partition(b"\n")[0]).value
    except NotJSONError:
        return None
    said = first.get("format") if isinstance(first, dict) else None
    return said if isinstance(said, str) and said.startswith(_ANY_VERSION) and said != FORMAT else None


def _read(record: Record, repairs: list[str]) -> _Reading:
    lines = record.raw.split(b"\n")
    reading = _Reading()
    for number, line in enumerate(lines, 1):
        try:
            decoded = digest.loads(line)
        except NotJSONError as error:
            if number == len(lines) and number > 1:
                repairs.append(f"the last line was half-written: {len(line)} bytes dropped")
                break
            raise _DamagedError(f"line {number} is no JSON: {error}") from None
        repairs.extend(decoded.repairs)
        event = decoded.value
        reason = fault(event)
        if reason:
            raise _DamagedError(f"line {number}: {reason}")
        try:
            reading.add(event)
        except _DamagedError as damage:
            raise _DamagedError(f"line {number}: {damage}") from None
    return reading


def _trajectory(reading: _Reading) -> dict[str, Any]:
    agent = dict(reading.start["agent"])
    if reading.tools:
        agent["tool_definitions"] = reading.tools
    extra = {"extra": {"calls_without_step": reading.calls}} if reading.calls else {}
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": reading.start["session"],
        "agent": agent,
        "steps": reading.steps,
        **extra,
    }


def _facts(reading: _Reading, success_reward: float) -> tuple[dict[str, Any], dict[str, Any]]:
    run = {**reading.facts, **reading.start["run"]}
    if reading.end is None:
        return run, {**reading.outcome, **INTERRUPTED}
    run["end"] = reading.end["time"]
    outcome = dict(reading.outcome)
    if "status" not in outcome:
        judged = outcome_of_reward(outcome.get("reward"), success_reward)
        rule = {} if judged["status"] == "unknown" else {"rule": REWARD_RULES[0]}
        outcome = {**judged, **rule, **outcome}
    return run, outcome


def _interruption(recorded: dict[str, Any]) -> str:
    overruled = [f"{name} {recorded[name]!r}" for name in INTERRUPTED if name in recorded]
    words = f"; recorded before, and overruled: {', '.join(overruled)}" if overruled else ""
    return "the journal has no end: the run was interrupted" + words


def _fact_problems(run: dict[str, Any], outcome: dict[str, Any]) -> list[tuple[str, str]]:
    from pydantic import ValidationError  # noqa: PLC0415 - heavy, see `_trace`

    from tracemark.model.trace import Outcome, Run  # noqa: PLC0415 - as above

    for model, value in ((Run, run), (Outcome, outcome)):
        try:
            model.model_validate(value)
        except ValidationError as error:
            return [first(error, value, model.__name__.lower())]
    return []


def _stamp(reading: _Reading, record: Record, repairs: list[str]) -> dict[str, Any]:
    from tracemark.model.stamp import component_stamp, lowered  # noqa: PLC0415 - heavy, see `_trace`

    harness = reading.start["harness"]
    components = harness["components"]
    digests = {name: component["digest"] for name, component in components.items()}
    fingerprint = digest.FINGERPRINT_PREFIX + digest.of({"algorithm": ALGORITHM, "components": digests})
    doubt = _doubt(harness, fingerprint, record)
    if doubt:
        repairs.append(f"{doubt}: the evidence counts as claimed")
    made = {}
    for name, component in components.items():
        parts = dict(component["parts"])
        evidence = {part: reading.evidence.get((name, part), "claimed") for part in parts}
        made[name] = component_stamp(component["digest"], parts, evidence)
    declared: dict[str, Any] = {"components": lowered(made) if doubt else made}
    if "name" in harness:
        declared["name"] = harness["name"]
    if not reading.contradictions:
        declared["fingerprint"] = fingerprint
    stamp: dict[str, Any] = {"declared": declared}
    if reading.contradictions:
        stamp["contradictions"] = reading.contradictions
    if reading.mixed or (reading.end is not None and "mixed" in reading.end):
        stamp["mixed"] = True
    return stamp


def _doubt(harness: Mapping[str, Any], fingerprint: str, record: Record) -> str | None:
    """Return why what the journal says of its harness is not believed; None when everything agrees."""
    if harness["fingerprint"] != fingerprint:
        return "the journal's fingerprint is not the digest of its components"
    name = fingerprint.removeprefix(digest.FINGERPRINT_PREFIX) + SNAPSHOT_SUFFIX
    raw = record.context.sibling(name)
    if raw is None:
        return f"no snapshot {name} lies beside the journal"
    identity = _remembered(raw) if len(raw) <= _CACHED_SNAPSHOT else _identity(raw)
    if identity is None:
        return f"{name} is no sound snapshot"
    stated = {component: dict(value["parts"]) for component, value in harness["components"].items()}
    if identity.fingerprint != fingerprint or identity.parts != stated:
        return f"{name} is the snapshot of another harness"
    return None


def _identity(raw: bytes) -> Identity | None:
    """Return the identity that a snapshot's own texts give; None when it is not sound."""
    try:
        return snapshot.from_bytes(raw).identity
    except TracemarkError:
        return None


_remembered = lru_cache(maxsize=32)(_identity)
"""`_identity`, for the journals of an inbox share few snapshots; it is asked for no very long one."""

IMPORTER = JournalImporter()
"""The importer, as the registry names it."""
