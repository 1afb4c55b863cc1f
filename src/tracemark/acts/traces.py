"""Looking at stored traces: list, show, find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.errors import UsageError
from tracemark.findings import Report
from tracemark.model.trace import STATUSES
from tracemark.store.selection import Selection, State

NO_HARNESS = "none"
"""What `--harness` takes for traces under no harness."""


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
    """`trace_id`, `fingerprint`, `harness`, `evidence`, `task`, `status`, `reward`, `model`, `tool_calls`, `steps`,
    `format`, `source`, and `flags` (`retracted`, `contested`, `mixed`, `contradicted`, `superseded`)."""


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


def rows(root: Path, wanted: TraceFilter) -> Iterator[dict[str, Any]]:
    """Yield a row for each wanted trace, in the order of the store; memory does not grow with their number.

    Raises:
        NoStoreError: when there is no store.
        UnknownNameError: when no harness answers to the name given.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        states = store.select(_selection(corpus, wanted), corpus.store_decisions)
        for state in islice(states, wanted.limit):
            yield _row(corpus, state)


def list_(root: Path, wanted: TraceFilter) -> TraceList:
    """Return the wanted traces, see `rows`."""
    return TraceList((), tuple(rows(root, wanted)))


def find(root: Path, query: str, limit: int | None = 20) -> TraceList:
    """Return traces in whose task, first user message, last message or tool names all words of `query` occur.

    Raises:
        NoStoreError: when there is no store.
        UsageError: when `query` holds no word.
    """
    if not query.strip():
        raise UsageError("no words to find", hint="tracemark traces find WORDS")
    corpus = Corpus(root)
    with open_store(root) as store:
        ids = store.find(query, limit if limit is not None else -1)
        wanted = Selection(traces=frozenset(ids), superseded=True)
        found = {state.trace_id: state for state in store.select(wanted, corpus.store_decisions)}
        return TraceList(tuple(store.findings), tuple(_row(corpus, found[name]) for name in ids if name in found))


def show(root: Path, trace: str) -> TraceShown:
    """Return one trace.

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
    members = ("harness", "outcome", "run", "source", "trajectory")
    return TraceShown((), trace_id, **{name: line[name] for name in members})


def raw(root: Path, trace: str) -> bytes:
    """Return the very bytes whose SHA-256 is the trace's id.

    Raises:
        UnknownNameError: when no trace has such an id.
        IntegrityError: when the stored bytes are not those of the id.
    """
    with open_store(root) as store:
        return store.raw(store.resolve(trace))


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


def _row(corpus: Corpus, state: State) -> dict[str, Any]:
    row = state.row
    flags = {
        "retracted": state.retracted,
        "contested": state.contested,
        "mixed": row.mixed,
        "contradicted": row.contradicted,
        "superseded": bool(state.superseded_by),
    }
    return {
        "trace_id": row.trace_id,
        "fingerprint": row.fingerprint,
        "harness": row.harness or corpus.name_of(row.fingerprint),
        "evidence": row.evidence,
        "task": row.task,
        "status": row.status,
        "reward": row.reward,
        "model": f"{row.model}@{row.revision}" if row.model and row.revision else row.model,
        "tool_calls": row.tool_calls,
        "steps": row.steps,
        "format": row.format,
        "source": row.label,
        "flags": [name for name, holds in flags.items() if holds],
    }
