"""Looking at stored traces: list, show, find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from sys import maxsize
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.observed import groups, members
from tracemark.acts.provenance import declared_name, labels_of, observed_digests, standing
from tracemark.acts.pulled import not_pulled, resolve
from tracemark.errors import IntegrityError, UsageError
from tracemark.exporters.evaluation import for_evaluation
from tracemark.findings import Finding, Report, finding
from tracemark.harness.names import NO_HARNESS
from tracemark.harness.observed import PREFIX
from tracemark.harness.version import Harness
from tracemark.model.stamp import EVIDENCE, evidence_of, fingerprint_of
from tracemark.model.trace import STATUSES
from tracemark.store.layout import located
from tracemark.store.row import head_of
from tracemark.store.searched import searches_everything
from tracemark.store.segment import Location, read_lines
from tracemark.store.selection import Selection, State, batches
from tracemark.store.store import Store

UNRECORDED = EVIDENCE[-1]
"""Evidence of a trace of which nobody says what made it."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces are wanted; None means that it does not matter."""

    harness: str | None = None
    """Label or fingerprint; `none` for traces without a fingerprint; the name of an observed group, `observed:…`."""
    status: str | None = None
    """`success`, `failure`, `error` or `unknown`."""
    task: str | None = None
    """The task, by its name or as `DOMAIN/TASK`: all that this would mean as an id of the evaluation set."""
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
class TraceFound(Report):
    """Traces in which words were found, the best first."""

    traces: tuple[dict[str, Any], ...]
    """One row each, with the members of a row of `TraceList`."""
    more: bool
    """Whether more were found than the limit lets through."""
    everything: bool
    """Whether the whole text of every trace was searched (`reindex --text`); false: the task, the first user message,
    the last message and the names of the tools."""


@dataclass(frozen=True)
class TraceShown(Report):
    """One trace: what is true of it now, where its first statement said otherwise, and the trajectory."""

    trace_id: str
    """SHA-256 of the trajectory's canonical bytes."""
    fingerprint: str | None
    """The harness under which it counts now; None when it counts under none."""
    harness: str | None
    """Its label; None when it counts under none."""
    evidence: str
    """That of the weakest component; `unrecorded` when nobody names a harness."""
    status: str
    """`success`, `failure`, `error` or `unknown`."""
    flags: list[str]
    """What sets it apart, as in a list of traces: `retracted`, `contested` and so on."""
    conflicts: list[str]
    """What statements about it disagree about; empty unless it is contested."""
    outcome: dict[str, Any]
    """Status, reward, grader and what else is known of how it ended, all statements joined."""
    run: dict[str, Any]
    """Task, model and other facts of the run, all statements joined."""
    source: dict[str, Any]
    """Where it came from."""
    agent: dict[str, Any]
    """`name` and `version` that the document gives for its agent: labels, which no harness is known by."""
    differs_from_first: list[dict[str, Any]]
    """Where what is true now is not what the first statement said: `member` (`harness`, `fingerprint`, `evidence`, or a
    dotted path in `outcome` or `run`), `first` and `now`, null where nothing was or is known."""
    first: dict[str, Any]
    """The first statement, whole: the stamp (`harness`), `outcome` and `run`."""
    trajectory: dict[str, Any]
    """The ATIF document."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Traces as they are read."""

    findings: Callable[[], tuple[Finding, ...]]
    """Gives what keeps the list from being that of the whole corpus; to be asked when the rows have been taken."""
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
        selection, shared = selected(corpus, store, wanted)
        states = store.select(selection, corpus.store_decisions, store.findings)
        rows = _rows(corpus, store, islice(states, _most(wanted.limit)))
        yield Listing(lambda: (*shared, *_findings(corpus, store)), rows)


def selected(corpus: Corpus, store: Store, wanted: TraceFilter) -> tuple[Selection, list[Finding]]:
    """Return what a filter selects, superseded traces too, and the other harnesses that its name may mean.

    Raises:
        UnknownNameError: when no harness, and no observed group, answers to the name given.
        UsageError: when the status is none.
    """
    if wanted.harness is not None and wanted.harness.startswith(PREFIX):
        found = groups(corpus, store)
        members_of = (one.hex() for one in members(corpus, store, found, found.named(wanted.harness)))
        return replace(_selection(store, wanted, None), traces=frozenset(members_of)), []
    chosen = corpus.resolve(wanted.harness) if wanted.harness not in (None, NO_HARNESS) else None
    shared = corpus.namesakes(wanted.harness, chosen) if wanted.harness and chosen else []
    return _selection(store, wanted, chosen), shared


def list_(root: Path, wanted: TraceFilter) -> TraceList:
    """Return the wanted traces all at once, see `listing`."""
    with listing(root, wanted) as found:
        rows = tuple(found.rows)
        return TraceList(found.findings(), rows)


def find(root: Path, query: str, limit: int | None = 20) -> TraceFound:
    """Return traces in whose search text all words of `query` occur, see `TraceFound.everything`.

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
        # one beyond the limit tells whether there are more
        most = min(_most(limit), maxsize - 1)
        ids = store.find(query, most + 1)
        more, ids = len(ids) > most, ids[:most]
        wanted = Selection(traces=frozenset(ids), superseded=True)
        found = store.select(wanted, corpus.store_decisions, store.findings)
        listed = {row["trace_id"]: row for row in _rows(corpus, store, found)}
        rows = tuple(listed[name] for name in ids if name in listed)
        return TraceFound(_findings(corpus, store), rows, more, searches_everything(store.catalogue))


def show(root: Path, trace: str) -> TraceShown:
    """Return one trace as it stands now, with what was first said of it.

    Args:
        root: the corpus.
        trace: its id or the beginning of it.

    Raises:
        UnknownNameError: when no trace has such an id.
        IntegrityError: when the stored bytes are not those of the id.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        trace_id = resolve(corpus, store, trace)
        decisions = store.applied(corpus.store_decisions, [trace_id])
        state = store.state(trace_id, decisions)
        line = digest.load_canonical(store.get(trace_id))
        said = store.statements([trace_id])[trace_id]
        findings = _findings(corpus, store)
    joined = standing(said, state, decisions, corpus.by_fingerprint.get(state.row.fingerprint or ""))
    row = _row(corpus, state, {}, _flags(state))
    now = {name: row[name] for name in ("fingerprint", "harness", "evidence", "status", "flags")}
    first = {name: line[name] for name in ("harness", "outcome", "run")}
    return TraceShown(
        findings,
        trace_id,
        **now,
        conflicts=list(state.conflicts),
        outcome=joined.outcome,
        run=joined.run,
        source=line["source"],
        agent=labels_of(line["trajectory"]),
        differs_from_first=list(_differences(first, {**now, "outcome": joined.outcome, "run": joined.run})),
        first=first,
        trajectory=line["trajectory"],
    )


def raw(root: Path, trace: str) -> bytes:
    """Return the very bytes whose SHA-256 is the trace's id.

    Raises:
        UnknownNameError: when no trace has such an id.
        IntegrityError: when the stored bytes are not those of the id.
    """
    with open_store(root) as store:
        return store.raw(resolve(Corpus(root), store, trace))


def _differences(first: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each member of which something else is true now than the first statement said, see `TraceShown`.

    A label is no identity: it is compared only where the fingerprint changed, or the content refuted what it names.
    """
    stamp = first["harness"]
    named, fingerprint = declared_name(stamp), fingerprint_of(stamp)
    apart = fingerprint != now["fingerprint"] or bool(stamp.get("contradictions"))
    said = {"harness": named if apart else now["harness"], "fingerprint": fingerprint, "evidence": evidence_of(stamp)}
    true = {name: now[name] for name in said}
    for name in ("outcome", "run"):
        said |= _flat(first[name], name)
        true |= _flat(now[name], name)
    for member in dict.fromkeys([*said, *true]):
        before, after = said.get(member), true.get(member)
        if digest.canonical(before) != digest.canonical(after):
            yield {"member": member, "first": before, "now": after}


def _flat(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the values within `value` by their dotted paths."""
    found: dict[str, Any] = {}
    for name, item in value.items():
        found |= _flat(item, f"{path}.{name}") if isinstance(item, dict) else {f"{path}.{name}": item}
    return found


def _most(limit: int | None) -> int:
    """Return the limit as counters hold it; the greatest number for None, for there are never so many."""
    return maxsize if limit is None else min(limit, maxsize)


def _findings(corpus: Corpus, store: Store) -> tuple[Finding, ...]:
    return (*not_pulled(corpus), *store.findings)


def _selection(store: Store, wanted: TraceFilter, chosen: Harness | None) -> Selection:
    """Return what is wanted; `chosen` is the harness that the filter names, None where it names none."""
    if wanted.status is not None and wanted.status not in STATUSES:
        raise UsageError(f"{wanted.status!r} is no status", hint="one of: " + ", ".join(STATUSES))
    fingerprints: frozenset[str | None] | None = None
    if wanted.harness == NO_HARNESS:
        fingerprints = frozenset({None})
    elif chosen is not None:
        fingerprints = frozenset({chosen.fingerprint})
    statuses = frozenset({wanted.status}) if wanted.status is not None else None
    selection = Selection(fingerprints=fingerprints, statuses=statuses, superseded=True)
    if wanted.task is None:
        return selection
    asked = frozenset({wanted.task})
    meant = frozenset((task, domain) for task, domain in store.tasks() if task and for_evaluation(task, domain, asked))
    return replace(selection, tasks=frozenset(task for task, _ in meant), named=meant)


def _rows(corpus: Corpus, store: Store, states: Iterable[State]) -> Iterator[dict[str, Any]]:
    """Yield a row for each state, in their order, which is that of the store; segments are read only where they must.

    What the content shows of its harness stands in the line alone, and is shown where nothing better is known; a line
    that cannot be read shows nothing, and of its file there is a finding of the store then.
    """
    for batch in batches(store.layout.traces, states):
        unknown = [state.location for state in batch.states if state.row.evidence == UNRECORDED]
        stamps = _stamps(batch.path, unknown, store.findings)
        for state in batch.states:
            stamp = next(stamps) if state.row.evidence == UNRECORDED else {}
            yield _row(corpus, state, stamp, _flags(state))


def _stamps(path: Path, locations: Sequence[Location], damaged: list[Finding]) -> Iterator[Mapping[str, Any]]:
    """Yield what the lines at `locations` say of their harness; nothing where one cannot be read, with a finding."""
    read = 0
    while read < len(locations):
        try:
            for line in read_lines(path, locations[read:]):
                yield head_of(line)["harness"]
                read += 1
        except IntegrityError as error:
            where = located("/".join(path.parts[-3:]))
            if not any((one.code, one.where) == ("file-damaged", where) for one in damaged):
                damaged.append(finding("file-damaged", where, error.message))
            yield {}
            read += 1


def _flags(state: State) -> list[str]:
    """Return what sets a trace apart, see `TraceList.traces`."""
    row, settled = state.row, state.settled
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
        "model": row.model_label,
        "tool_calls": row.tool_calls,
        "steps": row.steps,
        "format": row.format,
        "source": row.label,
        "flags": flags,
    }
