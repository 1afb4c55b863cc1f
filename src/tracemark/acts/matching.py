"""`harness match`: which known harnesses can have made a trace, or a group of foreign ones, and what excludes others.

Every known version and snapshot is compared with the content of the traces, part by part. That a harness fits is no
evidence that it made them: content shows little, and a sibling that was never declared may fit as well. A part that
contradicts is certain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store, place_of
from tracemark.acts.observed import Groups, groups, members
from tracemark.acts.provenance import content_in
from tracemark.acts.pulled import not_pulled, resolve
from tracemark.findings import Report
from tracemark.harness.declared import Comparison
from tracemark.harness.match import Contradiction, Judgement
from tracemark.harness.observed import PREFIX, Half, compare, differing
from tracemark.harness.version import Harness
from tracemark.store.selection import Selection
from tracemark.store.state import join
from tracemark.store.store import Store

_CORROBORATED = "corroborated"
_BATCH = 10_000


@dataclass(frozen=True)
class HarnessMatch(Report):
    """Which known harnesses fit; the exit code is 1 when none does."""

    target: str
    """The trace's id, or the name of the group."""
    traces: int
    """How many traces were compared."""
    known: dict[str, Any]
    """Of a group: component to the parts that all of its traces show. Empty for a trace."""
    harnesses: tuple[dict[str, Any], ...]
    """Every known version, those that fit first: `name`, `fingerprint`, `source` (its folder, or `snapshot`), `fits`
    (how many of the traces it fits), `corroborated` (parts that agree with the content of all of those,
    `component/part`), `excluded_by` (a list of `component`, `part`, `traces`, and `trace`, `step`, `text` of the
    first)."""
    groups: tuple[dict[str, Any], ...]
    """The other groups of foreign traces: `name`, `traces`, `comparison` (`different`, or `unknown`: no two foreign
    traces are known to have one harness), `parts` (those that differ, `component/part`). Empty for a trace that has a
    harness, or several."""

    @property
    def exit_code(self) -> int:
        """Return 1 when no known harness fits all of the traces."""
        fitting = any(row["fits"] == self.traces for row in self.harnesses)
        return int(not fitting or super().exit_code)


@dataclass(slots=True)
class _Tally:
    """What the traces say of one harness."""

    harness: Harness
    fits: int = 0
    corroborated: set[str] | None = None
    excluded: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def add(self, trace_id: str, judgement: Judgement) -> None:
        if not judgement.contradictions:
            self.fits += 1
            seen = {
                f"{component}/{part}"
                for component, parts in judgement.evidence.items()
                for part, evidence in parts.items()
                if evidence == _CORROBORATED
            }
            self.corroborated = seen if self.corroborated is None else self.corroborated & seen
        first: dict[tuple[str, str], Contradiction] = {}
        for found in judgement.contradictions:
            first.setdefault((found.component, found.part), found)
        for key, found in first.items():
            told = {"component": found.component, "part": found.part, "traces": 0, "trace": trace_id}
            step = {} if found.step is None else {"step": found.step}
            self.excluded.setdefault(key, {**told, **step, "text": found.text})["traces"] += 1

    def as_row(self) -> dict[str, Any]:
        return {
            "name": self.harness.name,
            "fingerprint": self.harness.fingerprint,
            "source": place_of(self.harness),
            "fits": self.fits,
            "corroborated": sorted(self.corroborated or ()),
            "excluded_by": list(self.excluded.values()),
        }


def match(root: Path, target: str) -> HarnessMatch:
    """Compare every known harness with a trace, or with the traces of an observed group.

    Args:
        root: the corpus.
        target: a trace id or its beginning, or the name of a group as `harness list` gives it, `observed:…`.

    Raises:
        UnknownNameError: when nothing answers to `target`.
        NoStoreError: when there is no store.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        found = groups(corpus, store)
        half: Half | None
        if target.startswith(PREFIX):
            group = found.named(target)
            ids = [one.hex() for one in members(corpus, store, found, group)]
            name, known, half = group.name, group.as_row()["known"], group.known
        else:
            name = resolve(corpus, store, target)
            ids, known, half = [name], {}, _half_of(corpus, store, name)
        tallies = [_Tally(harness) for harness in corpus.harnesses]
        traces = _compare_all(corpus, store, ids, tallies)
        findings = (*not_pulled(corpus), *store.findings, *corpus.left_out())
    tallies.sort(key=lambda tally: (-tally.fits, tally.harness.name, tally.harness.fingerprint))
    others = () if half is None else tuple(_others(found, name, half))
    return HarnessMatch(findings, name, traces, known, tuple(tally.as_row() for tally in tallies), others)


def _half_of(corpus: Corpus, store: Store, trace_id: str) -> Half | None:
    """Return what a trace shows of its harness; None where it counts under one, or where several were at work."""
    row = store.state(trace_id, store.applied(corpus.store_decisions, [trace_id])).row
    if row.fingerprint is not None or row.mixed:
        return None
    return join(store.statements([trace_id])[trace_id]).harness.get("observed") or {}


def _compare_all(corpus: Corpus, store: Store, ids: Sequence[str], tallies: Collection[_Tally]) -> int:
    """Compare the traces `ids` with every harness; return how many there are."""
    count = 0
    for start in range(0, len(ids), _BATCH):
        wanted = Selection(traces=frozenset(ids[start : start + _BATCH]), superseded=True)
        for state, line in store.lines(store.select(wanted, corpus.store_decisions, store.findings)):
            count += 1
            content = content_in(digest.load_canonical(line))
            for tally in tallies:
                tally.add(state.trace_id, corpus.matchers[tally.harness.fingerprint].judge(content))
    return count


def _others(found: Groups, name: str, half: Half) -> Iterator[dict[str, Any]]:
    """Yield what each other group is to one of the traces."""
    for group in found.groups:
        if group.name == name or not group.known:
            continue
        compared = compare(half, group.known, found.confirmed)
        is_other = Comparison.DIFFERENT in compared.values()
        yield {
            "name": group.name,
            "traces": group.traces,
            "comparison": "different" if is_other else "unknown",
            "parts": [f"{component}/{part}" for component, part in differing(half, group.known, found.confirmed)],
        }
