"""Looking at stored traces: list, show, find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from sys import maxsize
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import NO_HARNESS, Corpus, open_store
from tracemark.acts.provenance import observed_digests
from tracemark.acts.pulled import not_pulled
from tracemark.errors import UsageError
from tracemark.findings import Finding, Report
from tracemark.model.stamp import EVIDENCE
from tracemark.model.trace import STATUSES
from tracemark.store.row import head_of
from tracemark.store.segment import read_lines
from tracemark.store.selection import Decisions, Selection, State, batches
from tracemark.store.store import Store

UNRECORDED = EVIDENCE[-1]
"""Evidence of a trace of which nobody says what made it."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces are wanted; None means that it does not matter."""

    harness: str | None = None
    """Label or fingerprint; `none` for traces without a fingerprint."""
    status: str | None = None
    """`success`, `failure`, `error` or `unknown`."""
    task: str | None = None
    """The task."""
    limit: int | None = None
    """At most this many."""


@dataclass(frozen=True)
class TraceList(Report):
    """Traces, one row each."""

    traces: tuple[dict[str, Any], ...]
    """`trace_id`, `fingerprint` and `harness` (those under which it counts, null when it counts under none),
    `evidence`, `observed` (component to a digest of its content, where nobody says what made the trace), `task`,
    `status`, `reward`, `model`, `tool_calls`, `steps`, `format`, `source`, and `flags`: `retracted`; `contested`,
    statements disagree; `contradicted`, the content disagrees with a harness that was stated; `settled`, a stamp
    decided under which harness it counts, and no contradiction of another is flagged any more; `mixed`; `superseded`;
    `subagent` or `continuation`, which are no demonstration of their own."""


@dataclass(frozen=True)
class TraceShown(Report):
    """One trace: what was first said of it, and the trajectory."""

    trace_id: str
    """SHA-256 of the trajectory's canonical bytes."""
    harness: dict[str, Any]
    """The stamp as first stated."""
    outcome: dict[str, Any]
    """The outcome as first stated."""
    run: dict[str, Any]
    """The run facts as first stated."""
    source: dict[str, Any]
    """Where it came from."""
    trajectory: dict[str, Any]
    """The ATIF document."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Traces as they are read."""

    findings: tuple[Finding, ...]
    """What keeps the list from being that of the whole corpus."""
    rows: Iterator[dict[str, Any]]
    """A row for each trace, see `TraceList.traces`; memory does not grow with their number."""


@contextmanager
def listing(root: Path, wanted: TraceFilter) -> Iterator[Listing]:
    """Give the wanted traces, in the order of the store, for the time of a `with` block.

    Raises:
        NoStoreError: when there is no store.
        UnknownNameError: when no harness answers to the name given.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        decisions = store.applied(corpus.store_decisions)
        states = islice(store.select(_selection(corpus, wanted), decisions), _most(wanted.limit))
        yield Listing(_findings(corpus, store), _rows(corpus, store, states, decisions))


def list_(root: Path, wanted: TraceFilter) -> TraceList:
    """Return the wanted traces all at once, see `listing`."""
    with listing(root, wanted) as found:
        return TraceList(found.findings, tuple(found.rows))


def find(root: Path, query: str, limit: int | None = 20) -> TraceList:
    """Return traces in whose task, first user message, last message or tool names all words of `query` occur.

    Raises:
        NoStoreError: when there is no store.
        UsageError: when `query` holds no word, or bytes that are no text.
    """
    if not query.strip():
        raise UsageError("no words to find", hint="tracemark traces find WORDS")
    try:
        query.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{query!r} is no text", hint="write the words in UTF-8") from None
    corpus = Corpus(root)
    with open_store(root) as store:
        ids = store.find(query, _most(limit))
        wanted = Selection(traces=frozenset(ids), superseded=True)
        decisions = store.applied(corpus.store_decisions, ids)
        found = store.select(wanted, decisions)
        listed = {row["trace_id"]: row for row in _rows(corpus, store, found, decisions)}
        return TraceList(_findings(corpus, store), tuple(listed[name] for name in ids if name in listed))


def show(root: Path, trace: str) -> TraceShown:
    """Return one trace as it was stored; `audit` tells what was said of it later.

    Args:
        root: the corpus.
        trace: its id or the beginning of it.

    Raises:
        UnknownNameError: when no trace has such an id.
        IntegrityError: when the stored bytes are not those of the id.
    """
    with open_store(root) as store:
        trace_id = store.resolve(trace)
        line = digest.load_canonical(store.get(trace_id))
        findings = tuple(store.findings)
    members = ("harness", "outcome", "run", "source", "trajectory")
    return TraceShown(findings, trace_id, **{name: line[name] for name in members})


def raw(root: Path, trace: str) -> bytes:
    """Return the very bytes whose SHA-256 is the trace's id.

    Raises:
        UnknownNameError: when no trace has such an id.
        IntegrityError: when the stored bytes are not those of the id.
    """
    with open_store(root) as store:
        return store.raw(store.resolve(trace))


def _most(limit: int | None) -> int:
    """Return the limit as counters hold it; the greatest number for None, for there are never so many."""
    return maxsize if limit is None else min(limit, maxsize)


def _findings(corpus: Corpus, store: Store) -> tuple[Finding, ...]:
    return (*not_pulled(corpus), *store.findings)


def _selection(corpus: Corpus, wanted: TraceFilter) -> Selection:
    if wanted.status is not None and wanted.status not in STATUSES:
        raise UsageError(f"{wanted.status!r} is no status", hint="one of: " + ", ".join(STATUSES))
    fingerprints: frozenset[str | None] | None = None
    if wanted.harness == NO_HARNESS:
        fingerprints = frozenset({None})
    elif wanted.harness is not None:
        fingerprints = frozenset({corpus.resolve(wanted.harness).fingerprint})
    return Selection(
        fingerprints=fingerprints,
        statuses=frozenset({wanted.status}) if wanted.status is not None else None,
        tasks=frozenset({wanted.task}) if wanted.task is not None else None,
        superseded=True,
    )


def _rows(corpus: Corpus, store: Store, states: Iterable[State], decisions: Decisions) -> Iterator[dict[str, Any]]:
    """Yield a row for each state, in their order, which is that of the store; segments are read only where they must.

    What the content shows of its harness stands in the line alone, and is shown where nothing better is known. Of
    `decisions` those hold that are given: `Reading.applied` has been asked.
    """
    for batch in batches(store.layout.traces, states):
        unknown = [state.location for state in batch.states if state.row.evidence == UNRECORDED]
        heads = map(head_of, read_lines(batch.path, unknown))
        for state in batch.states:
            stamp = next(heads)["harness"] if state.row.evidence == UNRECORDED else {}
            yield _row(corpus, state, stamp, _flags(state, decisions))


def _flags(state: State, decisions: Decisions) -> list[str]:
    """Return what sets a trace apart, see `TraceList.traces`."""
    row, settled = state.row, state.trace_id in decisions.stamps
    flags = {
        "retracted": state.retracted,
        "contested": state.contested,
        "contradicted": row.contradicted and not settled,
        "settled": settled,
        "mixed": row.mixed,
        "superseded": bool(state.superseded_by),
    }
    return [*(name for name, holds in flags.items() if holds), *([row.role] if row.role else [])]


def _row(corpus: Corpus, state: State, stamp: Mapping[str, Any], flags: list[str]) -> dict[str, Any]:
    row = state.row
    return {
        "trace_id": row.trace_id,
        "fingerprint": row.fingerprint,
        "harness": (corpus.name_of(row.fingerprint) or row.harness) if row.fingerprint else None,
        "evidence": row.evidence,
        "observed": observed_digests(stamp),
        "task": row.task,
        "status": row.status,
        "reward": row.reward,
        "model": f"{row.model}@{row.revision}" if row.model and row.revision else row.model,
        "tool_calls": row.tool_calls,
        "steps": row.steps,
        "format": row.format,
        "source": row.label,
        "flags": flags,
    }
