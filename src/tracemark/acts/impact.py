"""`harness impact`: which stored traces of one harness stop validating under the tool schemas of another.

Looked at is what an SFT export could look at if the old harness were accepted: traces that count under it or a declared
equivalent, that are neither retracted, contested, mixed nor superseded, and that the catalogue does not know to be no
demonstration. Terms of an export (policy, models, evaluation tasks, limits) are left aside: they say nothing of
schemas.

Invariants:
- a trace is *usable* when every one of its calls is valid under the new schemas, and that is all that is meant: what
  changed beside the schemas is said for each part, and nothing is promised of it;
- each call is judged against the definitions of the very harness that made its trace, as they were offered;
- memory grows with the number of tasks, not with that of traces: calls that stopped are given as they are found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from tracemark import digest, engine
from tracemark.acts.corpus import Corpus, open_store, place_of, tools_of
from tracemark.acts.pulled import not_pulled
from tracemark.digest import JSON
from tracemark.exporters.head import Head, head_in, require_same, require_same_conduct
from tracemark.exporters.select import Facts, Reason, Terms, facts, judge
from tracemark.findings import Finding, Report, finding
from tracemark.harness import impact as pure
from tracemark.harness.diff import compare
from tracemark.harness.impact import Schemas, Verdict
from tracemark.harness.version import Harness
from tracemark.ledger.params import Caps, Policy
from tracemark.store.row import trajectory_of
from tracemark.store.segment import Location, read_lines
from tracemark.store.selection import Batch
from tracemark.store.store import Store

SHOWN = 100
"""How many calls that stopped a report holds, unless it is told otherwise."""

SUPERSEDED = "superseded"
"""Why a trace is not looked at for which a newer reading stands."""


@dataclass(frozen=True)
class Impact(Report):
    """What a change of tool schemas does to stored traces; the exit code is 1 when a call stopped or is undecided."""

    successes: int
    """Recorded successes that were looked at."""
    usable: int
    """Those of them whose calls are all valid under the new schemas."""
    tasks_with_success: int
    """Tasks with a success that was looked at."""
    harnesses: tuple[dict[str, str], ...]
    """The two: `side` (`old` or `new`), `name`, `fingerprint`, `source` (the folder, or `snapshot`)."""
    changes: tuple[dict[str, Any], ...]
    """What differs between the two: `component`, `part`, `kind`, `members`, and `means`: what of it a stored trace
    shows, and what no schema proves."""
    counts: dict[str, dict[str, int]]
    """What was looked at (`calls`, `traces`, `successes`, and of these `successes_without_task`) by what becomes of it,
    of a trace by the worst of its calls: `stopped` (valid under the old schemas, not under the new ones), `undecided`
    (a schema is unusable or unknown, or no validator takes the arguments), `invalid-before` (invalid under both),
    `valid` (under the new schemas, whatever it was under the old ones; so is a trace without calls)."""
    left_out: dict[str, int]
    """Traces of the old harness that were not looked at, by reason: no SFT export takes them."""
    fresh_runs: tuple[dict[str, Any], ...]
    """Tasks with a success and no usable one: `task`, `domain`, and their successes by what becomes of them."""
    stopped: tuple[dict[str, Any], ...]
    """Calls that stopped, a row per fault: `trace_id`, `task`, `status`, `step`, `call` (its place in the step, from
    1), `tool`, `argument` (JSON pointer; empty for the arguments as a whole), `rule` (keyword of JSON Schema, or
    `tool-unbound`), `why`. With `--output jsonl` these are the lines, all of them."""
    more: int
    """Rows of `stopped` beyond the limit."""

    @property
    def exit_code(self) -> int:
        """Return 1 when a call stopped being valid or is undecided."""
        calls = self.counts["calls"]
        return super().exit_code or int(bool(calls[Verdict.STOPPED] or calls[Verdict.UNDECIDED]))


@dataclass(frozen=True, slots=True)
class ImpactJob:
    """What a worker needs."""

    segment: Path
    """The file to read."""
    traces: tuple[tuple[Location, Facts, Head], ...]
    """The traces to judge, in the order of their places, and what their lines must say."""
    old: Mapping[str, bytes | None]
    """Tool definitions of each harness that may have made them, as canonical JSON; None for one that nobody knows."""
    new: bytes
    """Those that are to take their place."""


@dataclass(slots=True)
class JobResult:
    """What a worker hands back."""

    calls: Counter[str] = field(default_factory=Counter)
    """Calls by verdict."""
    traces: list[tuple[Facts, Verdict]] = field(default_factory=list)
    """The traces, each with the worst verdict of its calls."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """See `Impact.stopped`."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Calls that stopped, as they are found."""

    rows: Iterator[dict[str, Any]]
    """See `Impact.stopped`; memory does not grow with their number."""
    report: Callable[[], Impact]
    """Gives the report, without rows; to be asked when they have been taken."""


@contextmanager
def judging(root: Path, old: str, new: str) -> Iterator[Judging]:
    """Give the calls of one harness's traces that stop validating under another, for the time of a `with` block.

    Args:
        root: the corpus.
        old: label, fingerprint or the beginning of one: the harness that made the traces.
        new: likewise: the one whose tool schemas are to judge them.

    Raises:
        UnknownNameError: when nothing answers to one of the names.
        NoStoreError: when there is no store.
        IntegrityError: when a trace that must be read is damaged or is not what the catalogue says of it.
    """
    corpus = Corpus(root)
    first, second = corpus.resolve(old), corpus.resolve(new)
    with open_store(root) as store, store.unchanging():
        asked = _Asked(corpus, store, first, second)
        shared = (*corpus.namesakes(old, first), *corpus.namesakes(new, second))
        yield Judging(asked.rows(), lambda: asked.report(shared))


def impact(root: Path, old: str, new: str, limit: int | None = SHOWN) -> Impact:
    """Return what `judging` gives, with at most `limit` of the calls that stopped; None for all.

    Raises:
        UnknownNameError: when nothing answers to one of the names.
    """
    with judging(root, old, new) as found:
        shown = tuple(islice(found.rows, limit))
        more = sum(1 for _ in found.rows)
        report = found.report()
    members = {name: getattr(report, name) for name in report.as_json()}
    return Impact(**{**members, "stopped": shown, "more": more})


class _Asked:
    """One question, and what was counted for it so far."""

    def __init__(self, corpus: Corpus, store: Store, old: Harness, new: Harness) -> None:
        self.corpus, self.store, self.old, self.new = corpus, store, old, new
        self.one = corpus.decisions.equivalent_to(old.fingerprint)
        self.terms = Terms(self.one, policy=Policy.CLAIMED, caps=Caps(None, None, 0, None))
        self.calls: Counter[str] = Counter()
        self.traces: Counter[str] = Counter()
        self.successes: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tasks: defaultdict[tuple[str | None, str | None], Counter[str]] = defaultdict(Counter)

    def rows(self) -> Iterator[dict[str, Any]]:
        for result in engine.run(work, self._jobs()):
            self.calls.update(result.calls)
            for known, verdict in result.traces:
                self.traces[verdict] += 1
                if known.status == "success":
                    self.successes[verdict] += 1
                    self.tasks[known.task and known.domain, known.task][verdict] += 1
            yield from result.rows

    def report(self, shared: tuple[Finding, ...]) -> Impact:
        named = {place: counts for place, counts in self.tasks.items() if place[1] is not None}
        fresh = [
            {"task": task, "domain": domain, **_counted(counts)}
            for (domain, task), counts in sorted(named.items(), key=lambda item: (item[0][0] or "", item[0][1] or ""))
            if not counts[Verdict.VALID]
        ]
        return Impact(
            findings=(*not_pulled(self.corpus), *shared, *self._unusable(), *self.store.findings),
            successes=self.successes.total(),
            usable=self.successes[Verdict.VALID],
            tasks_with_success=len(named),
            harnesses=(_told("old", self.old), _told("new", self.new)),
            changes=tuple(
                {"component": c.component, "part": c.part, "kind": c.kind, "members": list(c.members), "means": c.means}
                for c in pure.changes(compare(self.old, self.new))
            ),
            counts={
                "calls": _counted(self.calls),
                "traces": _counted(self.traces),
                "successes": _counted(self.successes),
                "successes_without_task": _counted(self.tasks.get((None, None), Counter())),
            },
            left_out=dict(sorted(self.left_out.items())),
            fresh_runs=tuple(fresh),
            stopped=(),
            more=0,
        )

    def _unusable(self) -> Iterator[Finding]:
        """Yield a finding for each tool schema of the two harnesses that decides nothing."""
        for harness in (self.old, self.new):
            for tool, why in Schemas(tools_of(harness)).unusable.items():
                where = f"{place_of(harness)} {harness.fingerprint[:16]}"
                message = f"tool {tool!r}: its schema judges nothing, so its calls are undecided: {why}"
                yield finding("schema-invalid", where, message, "tracemark harness check says more of a folder")

    def _jobs(self) -> Iterator[ImpactJob]:
        batches, _ = self.store.split(self.one, self.corpus.store_decisions)
        old = {one: _encoded(self.corpus.offered(one)) for one in sorted(self.one)}
        new = digest.canonical(tools_of(self.new))
        for batch in batches:
            traces = tuple(self._wanted(batch))
            if traces:
                yield ImpactJob(batch.path, traces, old, new)

    def _wanted(self, batch: Batch) -> Iterator[tuple[Location, Facts, Head]]:
        restated = []
        for state in batch.states:
            known = facts(state)
            if known.fingerprint not in self.one:
                continue
            reason = SUPERSEDED if state.superseded_by else self._left_out(known)
            if reason is not None:
                self.left_out[reason] += 1
                continue
            if state.restated:
                restated.append(state.trace_id)
            yield state.location, known, head_in(state)
        self.store.require_true(restated)

    def _left_out(self, known: Facts) -> str | None:
        """Return why no export takes a trace, its outcome aside; None when one may."""
        reason = judge(known, self.terms, untrainable=lambda: None).reason
        if reason is Reason.OUTCOME:
            return Reason.NOT_TRAINABLE.value if known.untrainable else None
        return reason.value if reason is not None else None


def work(job: ImpactJob) -> JobResult:
    """Judge the calls of the traces of one job.

    Raises:
        IntegrityError: when a stored trace is not what its id, or the catalogue, says.
    """
    result = JobResult()
    new = _schemas(job.new)
    lines = read_lines(job.segment, (location for location, _, _ in job.traces))
    for (_, known, head), line in zip(job.traces, lines, strict=True):
        require_same(line, known.id, head)
        trajectory: dict[str, JSON] = digest.load_canonical(trajectory_of(line, known.id))
        require_same_conduct(trajectory, known)
        definitions = job.old.get(known.fingerprint or "")
        verdicts = set()
        for call in pure.judge(trajectory, _schemas(definitions) if definitions is not None else None, new):
            result.calls[call.verdict] += 1
            verdicts.add(call.verdict)
            result.rows += _rows(known, call)
        result.traces.append((known, pure.worst(verdicts)))
    return result


@lru_cache(maxsize=64)
def _schemas(definitions: bytes) -> Schemas:
    return Schemas(digest.load_canonical(definitions))


def _rows(known: Facts, call: pure.Judged) -> Iterator[dict[str, Any]]:
    for fault in call.faults:
        yield {
            "trace_id": known.id,
            "task": known.task,
            "status": known.status,
            "step": call.step,
            "call": call.call,
            "tool": call.tool,
            "argument": fault.argument,
            "rule": fault.rule,
            "why": fault.why,
        }


def _encoded(definitions: list[dict[str, Any]] | None) -> bytes | None:
    return None if definitions is None else digest.canonical(definitions)


def _told(side: str, harness: Harness) -> dict[str, str]:
    return {"side": side, "name": harness.name, "fingerprint": harness.fingerprint, "source": place_of(harness)}


def _counted(counts: Counter[str]) -> dict[str, int]:
    return {verdict.value: counts[verdict] for verdict in Verdict}
