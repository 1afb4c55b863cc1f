"""What an ingest run says at its end: findings about many traces at once, and about those that became contested.

Each is bounded, whatever the size of the batch: a finding per reason, per prompt, or per trace where the caller bounds
their number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.acts.provenance import HARNESS, disputed
from tracemark.acts.stamping import TRACE_DIGITS, contradicted
from tracemark.findings import Finding, finding
from tracemark.harness.roles import role_of
from tracemark.harness.version import Harness
from tracemark.ledger import params
from tracemark.store.annotations import OUTCOMES, STAMPS
from tracemark.store.deciding import settling
from tracemark.store.state import Statement, join, of_harness
from tracemark.words import numbered

OVERRULED = "batch-overruled"
"""Code of the finding that records say otherwise than their batch."""

_LONGEST = 40


@dataclass(slots=True)
class Seen:
    """What the traces show for which one harness was claimed."""

    traces: int = 0
    """How many there were; sub-agents, of which nothing is compared, are not counted."""
    roles: set[str] = field(default_factory=set)
    """Roles of messages before the agent's first reply, in any of them."""

    def add(self, traces: int, roles: Collection[str]) -> None:
        """Take in further traces."""
        self.traces += traces
        self.roles.update(roles)


@dataclass(slots=True)
class Overruled:
    """What a `batch.yaml` states and records say otherwise."""

    where: str
    """The first file whose batch states it."""
    said: str
    """What the first of the records says."""
    records: int = 0
    """How many say otherwise."""


def overruled(found: Mapping[tuple[str, str], Overruled]) -> Iterator[Finding]:
    """Yield a finding for each member and value that a `batch.yaml` states and records say otherwise.

    Args:
        found: by member and value.
    """
    for (member, stated), one in found.items():
        who = f"{numbered(one.records, 'record')} {'says' if one.records == 1 else 'say'} otherwise"
        message = f"{member} {_short(stated)!r} is stated, and {who} ({_short(one.said)!r}): what a record says counts"
        yield finding(OVERRULED, f"{one.where} (batch.yaml)", message)


def unseen(harness: Harness, seen: Seen) -> Iterator[Finding]:
    """Yield a finding for each role of which the harness has a prompt and no trace has a message."""
    prompts: dict[str, list[str]] = {}
    for prompt in harness.manifest.prompt_templates:
        if prompt.agent is None and role_of(prompt.role) not in seen.roles:
            prompts.setdefault(role_of(prompt.role), []).append(prompt.name)
    for role, names in prompts.items() if seen.traces else ():
        traces = "the trace has no" if seen.traces == 1 else f"none of {seen.traces} traces has a"
        message = f"{harness.name} declares a {role} prompt ({', '.join(names)}); {traces} {role} message"
        yield finding("prompt-unseen", f"harness {harness.name}", message)


def contested(trace_id: str, said: Sequence[Statement], settled: bool) -> Iterator[Finding]:
    """Yield the finding that statements about a trace disagree; nothing when what they dispute is settled.

    Args:
        trace_id: the trace.
        said: the statements in force about it.
        settled: whether the ledger says under which harness it counts.
    """
    conflicts = [path for path in join(said).conflicts if not (settled and of_harness(path))]
    if not conflicts:
        return
    short = trace_id[:TRACE_DIGITS]
    message = (
        f"statements disagree about {'; '.join(_worded(said, conflicts))}; no export takes it until that is settled"
    )
    yield finding("contested", f"trace {short}", message, settling(short, conflicts))


def refuted(trace_id: str, said: Sequence[Statement]) -> Finding:
    """Return the finding that the content of a stored trace refutes the harness that is stated for it.

    Args:
        trace_id: the trace.
        said: the statements in force about it, one of which is refuted.
    """
    stamp = next(one.harness for one in said if one.harness and one.harness.get("contradictions"))
    return contradicted(f"trace {trace_id[:TRACE_DIGITS]}", trace_id, stamp)


def dropped(reasons: Mapping[str, tuple[int, str | None]]) -> Iterator[Finding]:
    """Yield a finding for each reason for which claims were left out.

    Args:
        reasons: how many claims were `refuted` and how many `outdated`, and the place or the trace of the first.
    """
    number, where = reasons["refuted"]
    if number:
        message = f"{_keep(number)}: the content refutes the one stated now"
        yield finding("claim-dropped", where or "", message)
    outdated, trace = reasons["outdated"]
    if outdated:
        message = f"{_keep(outdated)}: the name stated now meant it when they were stored"
        hint = "to state the harness that the name means now, name it by its fingerprint"
        yield finding("claim-dropped", f"trace {(trace or '')[:TRACE_DIGITS]}", message, hint)


def inherited(counts: Mapping[str, int], trace_id: str | None) -> Iterator[Finding]:
    """Yield the finding that traces inherit what was decided and stated of those that they supersede.

    Args:
        counts: how many statements there are of each kind, and how many `decisions` of one trace each.
        trace_id: the first that inherits anything; None when none does.
    """
    if trace_id is None:
        return
    kinds = {
        "decisions": ("decision", "decisions"),
        STAMPS: ("statement of the harness", "statements of the harness"),
        OUTCOMES: ("statement of outcome or run", "statements of outcome or run"),
    }
    parts = [f"{counts[kind]} {words[counts[kind] != 1]}" for kind, words in kinds.items() if counts.get(kind)]
    message = f"newer readings of known records inherit {', '.join(parts)}"
    short = trace_id[:TRACE_DIGITS]
    yield finding("reading-inherits", f"trace {short}", message, f"tracemark audit {short}")


def rederived(number: int) -> Iterator[Finding]:
    """Yield the finding that known traces keep a status which another `ingest.success_reward` gave them.

    Args:
        number: how many records would give them another one.
    """
    if number:
        each = "the trace of 1 record keeps" if number == 1 else f"the traces of {number} records keep"
        message = f"{each} the status that another value of it gave"
        yield finding("reward-rule-changed", f"{params.NAME}: ingest.success_reward", message)


def _keep(number: int) -> str:
    return "1 trace keeps its harness" if number == 1 else f"{number} traces keep their harness"


def _worded(said: Sequence[Statement], conflicts: Sequence[str]) -> Iterator[str]:
    """Yield in words what is disputed: the harness once, and each fact of run and outcome with its values."""
    values: dict[str, dict[str, None]] = {}
    for row in disputed(said, conflicts):
        values.setdefault(row["member"], {})[_short(row["value"])] = None
    for member, found in values.items():
        yield f"{'the harness' if member == HARNESS else member} ({' or '.join(found)})"


def _short(value: Any) -> str:
    """Return a value on one short line."""
    text = value if isinstance(value, str) else digest.canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
