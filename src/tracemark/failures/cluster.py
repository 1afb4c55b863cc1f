"""Failures that recur, counted so that parts can be counted apart and put together.

A cluster is all traces of one harness whose earliest unrecovered failure has the same tool and the same masked line.
Its id is the digest of exactly these three, so it depends on no order of arrival and on nothing else that was seen.

Invariants:
- merging is associative and commutative, and counting in any order and any parts gives equal values (property tests);
- a trace is added once: counts are sums, so adding it twice counts it twice;
- the representatives are the three smallest trace ids, first and last seen the earliest and the latest start;
- memory is bounded. Of clusters the `CLUSTERS` smallest ids are kept; traces of the others are counted as `left_out`.
  Of the tasks of a cluster those are kept whose names have the smallest digests: `TASKS` of them in the clusters of the
  smallest ids, in as many of these as have together at most `NAMES`, and `FEW` in each other one. Up to so many tasks
  the number is exact; beyond it is the usual estimate from the largest kept digest, and said to be one (standard error
  about 3 % from TASKS names, 40 % from FEW). So a collection holds at most NAMES + FEW × CLUSTERS names (262,144), and
  a masked line and three ids for each of CLUSTERS clusters, whatever it is fed; while it counts a quarter more;
- what is forgotten follows from all that was counted, and not from its order: whether there is room for an id or a
  digest depends on what has smaller ones alone, and of that there is only ever more.
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

NAMES = 131_072
"""Most tasks that those clusters remember together that may remember `TASKS` each."""

FEW = 8
"""Most tasks that each other cluster remembers."""

LONGEST_TASK = 200
"""Characters kept of a task's name; of a longer one the beginning, with the digest of the whole."""

CLUSTERS = 16_384
"""Most clusters that one collection remembers."""

REPRESENTATIVES = 3
"""Traces that stand for a cluster."""

_HASHES = 16**16
_SLACK = 4
"""While it counts, a collection may hold this part more than it remembers."""
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
        return max(len(self.tasks) + 1, round((len(self.tasks) - 1) * _HASHES / largest))

    def merge(self, other: Cluster) -> Cluster:
        """Return the two counted together; they must be of one id and share no trace."""
        tasks = dict(self.tasks) | dict(other.tasks)
        # beyond the largest that a full one remembers nobody knows which it has seen
        known = min((one.tasks[-1][0] for one in (self, other) if one.full), default=None)
        kept = sorted(task for task in tasks.items() if known is None or task[0] <= known)[:TASKS]
        return Cluster(
            self.fingerprint,
            self.tool,
            self.masked,
            self.traces + other.traces,
            tuple(kept),
            len(tasks) > len(kept) or self.full or other.full,
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

    def add(self, seen: Incident, most: int) -> None:
        """Count one trace, and remember at most so many tasks."""
        self.traces += 1
        if seen.task is None:
            self.unknown += 1
        else:
            name = digest.of(seen.task)
            self._add_task(name, _short(seen.task, name), most)
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

    def forget(self, most: int) -> None:
        """Remember at most so many tasks from now on."""
        if len(self.tasks) > most:
            self.tasks = dict(sorted(self.tasks.items())[:most])
            self.largest = max(self.tasks)
            self.full = True

    def _add_task(self, name: str, task: str, most: int) -> None:
        if name in self.tasks:
            return
        if len(self.tasks) < most:
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
        names: most tasks to remember in those that may remember `TASKS` each.
    """

    def __init__(self, limit: int = CLUSTERS, names: int = NAMES) -> None:
        self._limit, self._most = limit, names
        self._found: dict[str, _Counting] = {}
        self._runs: dict[str | None, int] = {}
        self._incidents = 0
        self._below: str | None = None
        """The smallest id that is not remembered; None while all are."""
        self._few: str | None = None
        """The smallest id whose cluster remembers `FEW` tasks; None while none does."""
        self._names = 0
        """Tasks remembered in clusters of smaller ids, or more than that."""

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
            before, few = len(found.tasks), self._has_few(name)
            found.add(seen, FEW if few else TASKS)
            self._names += 0 if few else len(found.tasks) - before
            # to look for the largest ids at each new one would take a time that grows with their number
            self._bound(slack=True)
        return name

    def merge(self, other: Clusters) -> Clusters:
        """Return both counted together; they must share no trace."""
        together = Clusters(min(self._limit, other._limit), min(self._most, other._most))
        together.take(self)
        together.take(other)
        return together

    def take(self, part: Clusters) -> None:
        """Add all that another collection counted, with which this one shares no trace; `part` stays as it is."""
        part._bound()
        self._incidents += part._incidents
        self._leave_out(part._below)
        self._shorten(part._few)
        for fingerprint, number in part._runs.items():
            self.ran(fingerprint, number)
        for name, counting in part._found.items():
            if self._below is None or name < self._below:
                known = self._found.get(name)
                value = counting.value() if known is None else known.value().merge(counting.value())
                taken = self._found[name] = _Counting.of(value)
                if self._has_few(name):
                    taken.forget(FEW)
                else:
                    self._names += len(taken.tasks) - (len(known.tasks) if known is not None else 0)
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
        return list(self), self._runs, self._incidents, self._limit, self._most, self._below, self._few

    def _has_few(self, name: str) -> bool:
        return self._few is not None and name >= self._few

    def _bound(self, *, slack: bool = False) -> None:
        """Forget what is too much; what is forgotten never comes back."""
        if len(self._found) > self._limit + (self._limit // _SLACK if slack else 0):
            self._leave_out(sorted(self._found)[self._limit])
        if self._names > self._most + (self._most // _SLACK if slack else 0):
            self._names = 0
            for name in sorted(self._found):
                if self._has_few(name):
                    break
                self._names += len(self._found[name].tasks)
                if self._names > self._most:
                    self._names -= len(self._found[name].tasks)
                    self._shorten(name)
                    break

    def _leave_out(self, below: str | None) -> None:
        """Forget the clusters of an id and all larger ones."""
        if below is not None and (self._below is None or below < self._below):
            self._below = below
            self._found = {name: counting for name, counting in self._found.items() if name < below}
            if self._few is not None and self._few >= below:
                self._few = None

    def _shorten(self, few: str | None) -> None:
        """Let the clusters of an id and all larger ones remember few tasks."""
        if few is None or (self._below is not None and few >= self._below):
            return
        if self._few is None or few < self._few:
            self._few = few
            for name, counting in self._found.items():
                if name >= few:
                    counting.forget(FEW)


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
