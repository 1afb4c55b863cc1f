"""Looking at failures: which ones recur, what one of them is, where one trace was routed.

Everything is computed from the store, the conditions and the ledger when it is asked for, and nothing is stored, so no
answer is older than what it is about.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark import engine
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import changed
from tracemark.acts.failure_job import FAILURES, FILES, FailureJob, FailureResult, Spooled, examples, routed, work
from tracemark.acts.failure_terms import ALL, Asking, Left, logs_of
from tracemark.acts.pulled import not_pulled, resolve
from tracemark.errors import UnknownNameError, UsageError
from tracemark.failures.cluster import Cluster, Clusters, cluster_id, incident
from tracemark.failures.log import cluster_value, example
from tracemark.failures.near import fuzz, near
from tracemark.findings import Finding, Report
from tracemark.harness.names import NO_HARNESS
from tracemark.store.reading import SHORTEST_PREFIX
from tracemark.store.selection import Selection
from tracemark.store.store import Store
from tracemark.words import first_few

_ID = re.compile(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}")


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Which clusters are wanted; None means that it does not matter."""

    near: str | None = None
    """The id of a cluster, or its beginning: those whose lines are like its line."""
    harness: str | None = None
    """Label or fingerprint; `none` for traces without a fingerprint."""
    limit: int | None = None
    """At most this many."""


@dataclass(frozen=True)
class FailureList(Report):
    """Clusters of failures that recur, the most frequent first, or the most alike."""

    clusters: tuple[dict[str, Any], ...]
    """`cluster` (its id), `traces`, `share` (of the routed runs of its harness), `tasks` (an estimate where
    `tasks_estimated`), `tool`, `line` (numbers, paths and the like masked), `similarity` (0 to 100, with `near`),
    `harness` (label, null when not known), `fingerprint`, `first_seen`, `last_seen`."""
    more: int
    """Clusters that the limit does not let through."""
    unclustered: int
    """Failed runs whose clusters are not remembered, because there are too many clusters."""
    routed: dict[str, int]
    """Runs that were routed, by condition; successes and those that are in no cluster too."""
    elsewhere: dict[str, int]
    """Failed runs that are in no cluster, by the file of a failure log that would have them: faults of the environment
    or of the grader, and what is not known well enough."""
    left_out: dict[str, int]
    """Traces that were not routed, by first reason."""


@dataclass(frozen=True)
class ClusterShown(Report):
    """One cluster, with full examples."""

    cluster: str
    """Its id: SHA-256 of fingerprint, tool and line as canonical JSON."""
    harness: str | None
    """Label of its harness; None when nobody knows it."""
    fingerprint: str | None
    """Fingerprint of its harness; None when no trace of it has one."""
    tool: str | None
    """The tool that failed; None when no call failed, or nobody recorded which."""
    line: str
    """The error line, with numbers, paths, quoted texts and times masked; for runs without one their condition."""
    traces: int
    """Traces whose earliest unrecovered failure this is."""
    share: float | None
    """Their share of the routed runs of the harness, from 0 to 1."""
    tasks: int
    """How many tasks they are of."""
    tasks_estimated: bool
    """Whether that is an estimate, since there are more tasks than a cluster remembers."""
    task_unknown: int
    """Traces whose task nobody knows."""
    task_names: list[str]
    """The tasks, sorted; a part of them where their number is an estimate."""
    first_seen: str | None
    """The earliest start of a run; None when no start is known."""
    last_seen: str | None
    """The latest start of a run."""
    representatives: list[str]
    """Trace ids that stand for it: the smallest three."""
    examples: list[dict[str, Any]]
    """Of each of them `trace`, `domain`, `task`, `condition`, `destination`, `evidence` (step, call, tool, text),
    `symptoms`, and what was said, called and seen of that call: `message`, `command` (null when not known),
    `observation`, `observed_in` (the step, which is a later one where the answer came late), `raw_output`. Of a run in
    which no call failed its last step: `step`, `message`."""


@dataclass(frozen=True)
class TraceRouted(Report):
    """Where one trace goes, and why."""

    trace: str
    """Its id."""
    condition: str
    """The first condition that holds for it, or `unmatched`."""
    side: str
    """Whose fault it is: `environment`, `grader`, `tool`, `model` or `ambiguous`."""
    confidence: float
    """The condition's confidence; below 0.6 the trace goes into quarantine."""
    destination: str
    """Where it goes."""
    file: str | None
    """The file of a failure log that would have its row; None when it is in none."""
    left_out: str | None
    """Why no log has it all the same; None when nothing speaks against it."""
    status: str
    """How the run ended, as it stands now."""
    cluster: str | None
    """The id of its cluster; None for a trace that is in none."""
    symptoms: int
    """Failed calls behind the earliest unrecovered failure, which may only follow from it."""
    failure: dict[str, Any] | None
    """The earliest failure that was not recovered: `step`, `call`, `tool`, `text`; None when there is none."""
    recovered: list[dict[str, Any]]
    """Failures that a later call of their family made good, in order."""
    example: dict[str, Any]
    """What was said, called and seen there, as in `ClusterShown`."""


def list_(root: Path, wanted: FailureFilter) -> FailureList:
    """Return the clusters of failures in a corpus.

    Raises:
        NoStoreError: when there is no store.
        UnknownNameError: when no harness or no cluster answers to a name given.
        UsageError: when a name may mean several, the cluster that is asked about has no line, or rapidfuzz is not
            installed.
        IntegrityError: when a trace that must be read is damaged.
        ParamsError: when the conditions are not usable.
    """
    if wanted.near is not None:
        fuzz()
    corpus = Corpus(root)
    only = None if wanted.harness is None else _named(corpus, wanted.harness)
    with open_store(root) as store, store.unchanging():
        asking, result = count(corpus, store, only)
        clusters = result.clusters.get(ALL, Clusters())
        listed: list[tuple[Cluster, float | None]] = [(cluster, None) for cluster in clusters]
        if wanted.near is not None:
            # a cluster of any harness may be the one that is asked about; what is told of the list is of those in it
            others = clusters if only is None else count(corpus, store)[1].clusters.get(ALL, Clusters())
            one = find(others, wanted.near)
            if not one.has_line:
                raise UsageError(
                    f"no call of its runs failed, so there is no line to compare: {one.masked}",
                    where=one.id,
                    hint=f"tracemark failures show {one.id[:12]}",
                )
            listed = [(found.cluster, found.similarity) for found in near(clusters, one.masked, one.id)]
        shown = listed[: wanted.limit]
        conditions: Counter[str] = Counter()
        elsewhere: Counter[str] = Counter()
        for kind, number in result.routed.items():
            conditions[kind.condition] += number
            if kind.file not in (None, FAILURES):
                elsewhere[str(kind.file)] += number
        return FailureList(
            findings=_findings(corpus, store),
            clusters=tuple(_row(corpus, clusters, cluster, alike) for cluster, alike in shown),
            more=len(listed) - len(shown),
            unclustered=clusters.left_out,
            routed=dict(sorted(conditions.items())),
            elsewhere=dict(sorted(elsewhere.items())),
            left_out={reason.value: asking.left[reason] for reason in Left if asking.left[reason]},
        )


def show(root: Path, name: str) -> ClusterShown | TraceRouted:
    """Return one cluster with its examples, or where one trace goes.

    Args:
        root: the corpus.
        name: the id of a trace or of a cluster, or enough of its beginning.

    Raises:
        NoStoreError: when there is no store.
        UnknownNameError: when neither a trace nor a cluster has such an id.
        UsageError: when it is no id, or several have one that begins so.
        IntegrityError: when a trace that must be read is damaged.
        ParamsError: when the conditions are not usable.
    """
    corpus = Corpus(root)
    with open_store(root) as store, store.workspace() as folder, store.unchanging():
        try:
            trace = resolve(corpus, store, name)
        except UnknownNameError:
            asking, result = count(corpus, store)
            clusters = result.clusters.get(ALL, Clusters())
            return _cluster(corpus, (store, asking), clusters, find(clusters, name), folder)
        return _trace(corpus, store, trace)


def count(corpus: Corpus, store: Store, only: frozenset[str | None] | None = None) -> tuple[Asking, FailureResult]:
    """Route every trace of a store and count what came out.

    Args:
        corpus: the corpus.
        store: its store, unchanging.
        only: the fingerprints whose traces are wanted, None among them for those without; None for all.
    """
    asking, result = Asking(corpus, store), FailureResult()
    found = store.batches(Selection(fingerprints=only), corpus.store_decisions)
    for part in engine.run(work, asking.jobs(found)):
        result.add(part)
    store.require_true(asking.restated)
    return asking, result


def find(clusters: Iterable[Cluster], name: str) -> Cluster:
    """Return the cluster whose id begins with `name`.

    Raises:
        UsageError: when `name` is no id, or several begin so.
        UnknownNameError: when none does.
    """
    hint = "tracemark failures list"
    if _ID.fullmatch(name) is None:
        message = f"{name!r} is no id: {SHORTEST_PREFIX} to 64 hexadecimal digits are needed, in lower case"
        raise UsageError(message, hint=hint)
    found = [cluster for cluster in clusters if cluster.id.startswith(name)]
    if not found:
        raise UnknownNameError(f"no cluster has an id that begins with {name}", hint=hint)
    if len(found) > 1:
        listed = first_few(cluster.id[:20] for cluster in found)
        raise UsageError(f"more than one cluster id begins with {name}: {listed}", hint="give more digits")
    return found[0]


def write_examples(corpus: Corpus, asked: tuple[Store, Asking], ids: Iterable[str], folder: Path) -> dict[str, Spooled]:
    """Write traces as examples of their clusters; return where each is.

    Args:
        corpus: the corpus.
        asked: its store, unchanging, and what chose the traces.
        ids: the traces.
        folder: where workers may write.
    """
    store, asking = asked
    found: dict[str, Spooled] = {}
    states = store.batches(Selection(traces=frozenset(ids)), corpus.store_decisions)
    for part in engine.run(examples, asking.jobs(states, folder)):
        found |= part
    return found


def read_examples(spooled: Mapping[str, Spooled], cluster: Cluster) -> list[dict[str, Any]]:
    """Return the examples of a cluster that were written."""
    values = []
    for place in (spooled[trace] for trace in cluster.representatives):
        with place.spool.open("rb", buffering=0) as file:
            values.append(json.loads(os.pread(file.fileno(), place.length, place.offset)))
    return values


def _named(corpus: Corpus, name: str) -> frozenset[str | None]:
    """Return the fingerprints that a name means: all that are in one log with it."""
    if name == NO_HARNESS:
        return frozenset({None})
    fingerprint = corpus.resolve(name).fingerprint
    logs = logs_of(corpus)
    return frozenset({fingerprint, *(other for other in logs if logs[other] == logs.get(fingerprint))})


def _row(corpus: Corpus, clusters: Clusters, cluster: Cluster, alike: float | None) -> dict[str, Any]:
    value = cluster_value(cluster, clusters, ())
    members = ("cluster", "traces", "share", "tasks", "tasks_estimated", "tool", "line")
    return {
        **{name: value[name] for name in members},
        **({} if alike is None else {"similarity": alike}),
        "harness": corpus.name_of(cluster.fingerprint),
        "fingerprint": cluster.fingerprint,
        "first_seen": value["first_seen"],
        "last_seen": value["last_seen"],
    }


def _cluster(
    corpus: Corpus, found_in: tuple[Store, Asking], clusters: Clusters, cluster: Cluster, folder: Path
) -> ClusterShown:
    store, _ = found_in
    spooled = write_examples(corpus, found_in, cluster.representatives, folder)
    value = cluster_value(cluster, clusters, read_examples(spooled, cluster))
    for other in ("format", "runs"):
        del value[other]
    value["fingerprint"] = value.pop("harness")
    return ClusterShown(_findings(corpus, store), harness=corpus.name_of(cluster.fingerprint), **value)


def _trace(corpus: Corpus, store: Store, trace: str) -> TraceRouted:
    asking = Asking(corpus, store)
    wanted = Selection(traces=frozenset({trace}), superseded=True)
    [batch] = store.batches(wanted, corpus.store_decisions)
    [state] = batch.states
    [(asked, line, routing)] = routed(FailureJob(batch.path, tuple(asking.asked([state])), asking.conditions, None))
    store.require_true(asking.restated)
    status = line["outcome"]["status"]
    file = None if status == "success" else FILES.get(routing.destination)
    reason = "superseded" if state.superseded_by else asking.reason(state)
    seen = incident(trace, asked.counted, line, routing)
    return TraceRouted(
        findings=_findings(corpus, store),
        trace=trace,
        condition=routing.condition,
        side=routing.side,
        confidence=routing.confidence,
        destination=routing.destination,
        file=file,
        left_out=None if reason is None else str(reason),
        status=status,
        cluster=cluster_id(seen.fingerprint, seen.tool, seen.masked) if file == FAILURES else None,
        symptoms=routing.symptoms,
        failure=None if routing.failure is None else routing.failure._asdict(),
        recovered=[span._asdict() for span in routing.recovered],
        example=example(trace, line, routing),
    )


def _findings(corpus: Corpus, store: Store) -> tuple[Finding, ...]:
    return (*store.findings, *not_pulled(corpus), *changed(corpus))
