"""Failures that recur, counted so that parts can be counted apart and put together.

A cluster is all traces of one harness whose earliest unrecovered failure has the same tool and the same masked line.
Its id is the digest of exactly these three, so it depends on no order of arrival and on nothing else that was seen.

Invariants:
- merging is associative and commutative, and counting in any order and any parts gives equal values (property tests);
- a trace is added once: counts are sums, so adding it twice counts it twice;
- the representatives are the three smallest trace ids, first and last seen the earliest and the latest start;
- memory is bounded. Tasks are kept by the `TASKS` smallest digests of their names: up to so many tasks the number is
  exact, beyond it is the usual estimate from the largest kept digest (standard error about 3 %, and said to be one). Of
  clusters the `CLUSTERS` smallest ids are kept, each complete; traces of the others are counted as `left_out`. So a
  collection holds at most CLUSTERS × (TASKS names + one masked line + three ids), and up to twice that while it
  counts, whatever it is fed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.exporters.evaluation import qualified
from tracemark.failures.route import Routing

TASKS = 1_024
"""Most tasks that one cluster remembers."""

LONGEST_TASK = 500
"""Characters kept of a task's name; of a longer one the beginning, with the digest of the whole."""

CLUSTERS = 65_536
"""Most clusters that one collection remembers."""

REPRESENTATIVES = 3
"""Traces that stand for a cluster."""

_HASHES = 16**16
_CONDITION = re.compile(r"\([^()]+\)")
"""What stands in place of a line for runs in which no call failed, see `incident`."""

Seen = tuple[float, str]
"""An instant in seconds, and the text that said it."""


class Incident(NamedTuple):
    """The earliest unrecovered failure of one trace, as clusters count it."""

    trace: str
    """The trace's id."""
    fingerprint: str | None
    """The harness under which the trace counts; None when nobody knows."""
    tool: str | None
    """The tool that failed; None when no call failed or nobody recorded it."""
    masked: str
    """The masked error line; for a run without one, what its condition says."""
    task: str | None
    """The task as `domain/task`; None when not known."""
    start: str | None
    """When the run started, as its source wrote it."""


def incident(trace: str, fingerprint: str | None, line: Mapping[str, Any], routing: Routing) -> Incident:
    """Return what clusters count of a routed trace.

    Args:
        trace: the trace's id.
        fingerprint: the harness under which it counts now, which later statements may have changed.
        line: the stored line.
        routing: where it goes.
    """
    run, failure = line["run"], routing.failure
    task = qualified(run.get("task") or None, run.get("domain"))
    masked = f"({routing.condition})" if routing.masked is None else routing.masked
    return Incident(trace, fingerprint, failure.tool if failure else None, masked, task, run.get("start"))


def cluster_id(fingerprint: str | None, tool: str | None, masked: str) -> str:
    """Return the id of a cluster: SHA-256 of the canonical JSON of the three, 64 hexadecimal digits."""
    return digest.of([fingerprint, tool, masked])


class Cluster(NamedTuple):
    """What is known of one cluster; a value."""

    fingerprint: str | None
    tool: str | None
    masked: str
    traces: int
    """Traces whose earliest unrecovered failure this is."""
    tasks: tuple[tuple[str, str], ...]
    """Digest and name of the tasks with the smallest digests, in their order; a long name is cut."""
    full: bool
    """Whether more tasks were seen than are remembered."""
    unknown: int
    """Traces whose task nobody knows."""
    first: Seen | None
    """The earliest start; None when no start could be read."""
    last: Seen | None
    """The latest start."""
    representatives: tuple[str, ...]
    """The smallest trace ids, in order."""

    @property
    def id(self) -> str:
        """The cluster's id."""
        return cluster_id(self.fingerprint, self.tool, self.masked)

    @property
    def has_line(self) -> bool:
        """Whether its runs have an error line; without one `masked` is the name of their condition, in parentheses."""
        return self.tool is not None or _CONDITION.fullmatch(self.masked) is None

    @property
    def task_count(self) -> int:
        """The number of tasks: exact unless `full`, else an estimate."""
        if not self.full:
            return len(self.tasks)
        largest = int(self.tasks[-1][0][:16], 16) or 1
        return round((len(self.tasks) - 1) * _HASHES / largest)

    def merge(self, other: Cluster) -> Cluster:
        """Return the two counted together; they must be of one id and share no trace."""
        tasks = dict(self.tasks) | dict(other.tasks)
        return Cluster(
            self.fingerprint,
            self.tool,
            self.masked,
            self.traces + other.traces,
            tuple(sorted(tasks.items())[:TASKS]),
            self.full or other.full or len(tasks) > TASKS,
            self.unknown + other.unknown,
            min((seen for seen in (self.first, other.first) if seen is not None), default=None),
            max((seen for seen in (self.last, other.last) if seen is not None), default=None),
            tuple(sorted({*self.representatives, *other.representatives})[:REPRESENTATIVES]),
        )


class _Counting:
    """A cluster while it is counted: what `Cluster` holds, changed in place."""

    __slots__ = ("first", "full", "key", "largest", "last", "representatives", "tasks", "traces", "unknown")

    def __init__(self, fingerprint: str | None, tool: str | None, masked: str) -> None:
        self.key = (fingerprint, tool, masked)
        self.traces = self.unknown = 0
        self.tasks: dict[str, str] = {}
        self.largest = ""
        self.full = False
        self.first: Seen | None = None
        self.last: Seen | None = None
        self.representatives: list[str] = []

    def add(self, seen: Incident) -> None:
        """Count one trace."""
        self.traces += 1
        if seen.task is None:
            self.unknown += 1
        else:
            name = digest.of(seen.task)
            self._add_task(name, _short(seen.task, name))
        instant = _instant(seen.start)
        if instant is not None:
            self.first = instant if self.first is None else min(self.first, instant)
            self.last = instant if self.last is None else max(self.last, instant)
        if len(self.representatives) < REPRESENTATIVES or seen.trace < self.representatives[-1]:
            self.representatives = sorted({*self.representatives, seen.trace})[:REPRESENTATIVES]

    def value(self) -> Cluster:
        """Return what was counted so far."""
        return Cluster(
            *self.key,
            self.traces,
            tuple(sorted(self.tasks.items())),
            self.full,
            self.unknown,
            self.first,
            self.last,
            tuple(self.representatives),
        )

    @classmethod
    def of(cls, cluster: Cluster) -> _Counting:
        """Return a counting that goes on from a value."""
        found = cls(cluster.fingerprint, cluster.tool, cluster.masked)
        found.traces, found.unknown, found.full = cluster.traces, cluster.unknown, cluster.full
        found.tasks = dict(cluster.tasks)
        found.largest = max(found.tasks, default="")
        found.first, found.last = cluster.first, cluster.last
        found.representatives = list(cluster.representatives)
        return found

    def _add_task(self, name: str, task: str) -> None:
        if name in self.tasks:
            return
        if len(self.tasks) < TASKS:
            self.tasks[name] = task
            self.largest = max(self.largest, name)
            return
        self.full = True
        if name < self.largest:
            del self.tasks[self.largest]
            self.tasks[name] = task
            self.largest = max(self.tasks)


class Clusters:
    """Clusters of one kind of failure, such as those of the accepted harness's log.

    Args:
        limit: most clusters to remember.
    """

    def __init__(self, limit: int = CLUSTERS) -> None:
        self._limit = limit
        self._found: dict[str, _Counting] = {}
        self._runs: dict[str | None, int] = {}
        self._incidents = 0
        self._below: str | None = None

    def ran(self, fingerprint: str | None, runs: int = 1) -> None:
        """Count runs of a harness, failed or not: what shares are shares of."""
        self._runs[fingerprint] = self._runs.get(fingerprint, 0) + runs

    def add(self, seen: Incident) -> str:
        """Count one trace; return its cluster's id."""
        self._incidents += 1
        name = cluster_id(seen.fingerprint, seen.tool, seen.masked)
        if self._below is None or name < self._below:
            found = self._found.get(name)
            if found is None:
                found = self._found[name] = _Counting(seen.fingerprint, seen.tool, seen.masked)
            found.add(seen)
            # to look for the largest ids at each new one would take a time that grows with their number
            self._bound(self._limit)
        return name

    def merge(self, other: Clusters) -> Clusters:
        """Return both counted together; they must share no trace."""
        together = Clusters(min(self._limit, other._limit))
        together.take(self)
        together.take(other)
        return together

    def take(self, part: Clusters) -> None:
        """Add all that another collection counted, with which this one shares no trace; `part` stays as it is."""
        part._bound()
        limit, runs, found = part._below, part._runs, part._found
        self._incidents += part._incidents
        if limit is not None and (self._below is None or limit < self._below):
            self._below = limit
            self._found = {name: counting for name, counting in self._found.items() if name < limit}
        for fingerprint, number in runs.items():
            self.ran(fingerprint, number)
        for name, counting in found.items():
            if self._below is None or name < self._below:
                known = self._found.get(name)
                value = counting.value() if known is None else known.value().merge(counting.value())
                self._found[name] = _Counting.of(value)
        self._bound()

    def __iter__(self) -> Iterator[Cluster]:
        """Give the clusters, the most frequent first and those of one count by id."""
        self._bound()
        values = [(name, counting.value()) for name, counting in self._found.items()]
        return iter([value for _, value in sorted(values, key=lambda each: (-each[1].traces, each[0]))])

    def __len__(self) -> int:
        self._bound()
        return len(self._found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Clusters):
            return NotImplemented
        return self._counted() == other._counted()

    __hash__ = None  # type: ignore[assignment]

    @property
    def left_out(self) -> int:
        """Traces whose clusters are not remembered, because there were too many clusters."""
        self._bound()
        return self._incidents - sum(counting.traces for counting in self._found.values())

    def runs(self, fingerprint: str | None) -> int:
        """Return how many runs of a harness were counted."""
        return self._runs.get(fingerprint, 0)

    def share(self, cluster: Cluster) -> float | None:
        """Return which share of its harness's runs a cluster has; None when no runs were counted."""
        runs = self.runs(cluster.fingerprint)
        return cluster.traces / runs if runs else None

    def _counted(self) -> tuple[object, ...]:
        return list(self), self._runs, self._incidents, self._limit, self._below

    def _bound(self, slack: int = 0) -> None:
        """Forget the clusters of the largest ids when there are too many; what is forgotten never comes back."""
        if len(self._found) > self._limit + slack:
            names = sorted(self._found)
            self._below = names[self._limit]
            for name in names[self._limit :]:
                del self._found[name]


def _short(task: str, name: str) -> str:
    return task if len(task) <= LONGEST_TASK else f"{task[:LONGEST_TASK]}… (cut, {name})"


def _instant(text: str | None) -> Seen | None:
    """Return a start as an instant, a text without a zone read as UTC; None when it is no time."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), text)
    except (ValueError, OverflowError):
        return None
