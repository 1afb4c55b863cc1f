"""`failures export`: the log that a harness-search agent reads, of the accepted harness and of each rejected candidate.

Invariants:
- what is no fault of a harness or a model (environment, grader, what nobody can tell) lies in files of its own;
- no trace of a success is in any file, whatever a condition says, so the log and a training set have none in common;
- no task of the evaluation set is in any file: such traces are never routed, and what was written is read again before
  anything is put in its place;
- a log that is refused, or breaks off before it is whole, leaves an earlier one as it was; the earlier one or the new
  one is in place, whole, whatever kills the command (`folder_swap`);
- every stored trace is counted once, and the same store, conditions and decisions give the same bytes.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tracemark import __version__, digest, engine
from tracemark.acts import failure_folder as folders
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import require_unchanged
from tracemark.acts.export import require_accepted, require_whole
from tracemark.acts.export_place import require_elsewhere
from tracemark.acts.failure_job import FAILURES, FailureResult, Kind, Spooled, work
from tracemark.acts.failure_log import read_examples, write_examples
from tracemark.acts.failure_terms import Asking, Left, logs_of
from tracemark.acts.pulled import require_pulled
from tracemark.errors import ExportRefusedError
from tracemark.exporters import manifest as manifests
from tracemark.exporters.evaluation import unmatched
from tracemark.failures.cluster import Clusters
from tracemark.failures.conditions import FORMAT as CONDITIONS
from tracemark.failures.leak import leaked
from tracemark.failures.log import cluster_value, overview, to_json
from tracemark.findings import Report
from tracemark.ledger.state import evaluation_digest
from tracemark.model.export import Exporter, File
from tracemark.model.failure_log import ConditionsUsed, FailureCounts, FailureLog, LogOf, Routed
from tracemark.store.store import Store

VERSION = "1"
"""Version of the exporter; another one may write other rows of the same traces."""

_OPEN = 128
"""How many files of rows are open at once."""


@dataclass(frozen=True)
class FailureExport(Report):
    """What a failure log holds."""

    fingerprint: str
    """The accepted harness, whose log it is."""
    harness: str | None
    """Its label; None when no known harness version has the fingerprint."""
    rows: dict[str, int]
    """Rows of its files, by file: `failures.jsonl` is the log, the others are no fault of harness or model."""
    clusters: int
    """Clusters of its failures."""
    candidates: list[dict[str, Any]]
    """Logs of rejected candidates: `fingerprint`, `harness`, `folder`, `rows` and `clusters` as above."""
    successes: int
    """Traces that were routed and are in no file, as they succeeded or go into training."""
    traces: int
    """Traces in the store; all rows, `successes`, `left_out` and `superseded` together."""
    superseded: int
    """Traces for which others stand, made of the same records by newer importers."""
    left_out: dict[str, int]
    """Traces that were not routed, by first reason, in the order in which the reasons are looked for."""
    manifest: str
    """Path of the manifest, as the folder was given."""


def export(root: Path, out: Path) -> FailureExport:
    """Write the failure log of the accepted harness, and of each candidate that a gate rejected.

    Args:
        root: the corpus.
        out: the folder to write; an earlier failure log in it is replaced.

    Raises:
        ExportRefusedError: when no harness is accepted, when it is open which one is, when the evaluation set is not
            the one that was frozen, or when a task of it would be in the log.
        UsageError: when `out` holds something else than a failure log, or something else comes into it meanwhile; when
            it cannot be replaced, or lies where the corpus keeps what it reads.
        ParamsError: when the conditions are not usable.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged or is not what the catalogue says of it.
    """
    require_elsewhere(root, out, "failures")
    folders.require_own(out)
    corpus = Corpus(root)
    require_pulled(corpus)
    require_accepted(corpus)
    require_unchanged(corpus)
    logs = logs_of(corpus)
    with open_store(root) as store, store.workspace() as folder, store.unchanging():
        require_whole(store)
        asking = Asking(corpus, store, logs)
        result = _routed(corpus, (store, asking), logs, folder / "rows")
        staged = folder / "log"
        shown = _examples(corpus, (store, asking), result, folder / "examples")
        made = [_write(corpus, staged, log, (result, shown)) for log in _in_order(corpus, logs, result)]
        for log in made:
            _require_no_leak(corpus, staged, log.folder)
        manifest = _manifest(corpus, (store, asking), (staged, made), result)
        folders.put(staged, out, manifest)
        beside = unmatched(corpus.params.evaluation, store.tasks(), corpus.params.evaluation_file)
        return _report(out, manifest, (*store.findings, *beside))


def _routed(corpus: Corpus, asked: tuple[Store, Asking], logs: dict[str, str], folder: Path) -> FailureResult:
    """Route every trace of the logs; of all others only counts are asked."""
    store, asking = asked
    folder.mkdir()
    batches, others = store.split(logs, corpus.store_decisions)
    for plain in others:
        if plain.superseded:
            asking.superseded += plain.traces
        else:
            reason = Left.MIXED if plain.mixed else asking.unwanted(plain.fingerprint)
            assert reason is not None, "the traces of a log are looked at one by one"
            asking.left[reason] += plain.traces
    result = FailureResult()
    for part in engine.run(work, asking.jobs(batches, folder)):
        result.add(part)
    store.require_true(asking.restated)
    return result


def _examples(corpus: Corpus, asked: tuple[Store, Asking], result: FailureResult, folder: Path) -> dict[str, Spooled]:
    store, asking = asked
    folder.mkdir()
    ids = {trace for clusters in result.clusters.values() for cluster in clusters for trace in cluster.representatives}
    # it counts what it leaves out, and has counted these already
    again = Asking(corpus, store, asking.logs)
    return write_examples(corpus, (store, again), ids, folder) if ids else {}


def _in_order(corpus: Corpus, logs: dict[str, str], result: FailureResult) -> list[str]:
    """Return whose logs are written: that of the accepted harness, then those of candidates that have traces."""
    accepted = corpus.accepted or ""
    seen = {kind.log for kind in result.routed}
    return [accepted, *sorted(log for log in set(logs.values()) if log != accepted and log in seen)]


def _write(corpus: Corpus, staged: Path, log: str, found: tuple[FailureResult, dict[str, Spooled]]) -> LogOf:
    """Write the files of one log; return what the manifest says of it."""
    result, shown = found
    place = "." if log == corpus.accepted else folders.candidate_folder(log)
    folder = folders.make(staged, place)
    for name in folders.ROWS:
        _merge(result.spools.get((log, name), []), folder / name)
    clusters = result.clusters.get(log, Clusters())
    for cluster in clusters:
        value = cluster_value(cluster, clusters, read_examples(shown, cluster))
        (folder / folders.CLUSTERS / f"{cluster.id}.json").write_bytes(to_json(value))
    counts: Counter[tuple[str, str]] = Counter()
    elsewhere: Counter[str] = Counter()
    for kind, number in result.routed.items():
        if (kind.log, kind.file) == (log, FAILURES):
            counts[kind.condition, kind.destination] += number
        elif kind.log == log and kind.file is not None:
            elsewhere[kind.file] += number
    label = corpus.name_of(log)
    who = f"{label} ({log[:16]}…)" if label else log
    title = f"Failures of {who}" if place == "." else f"Failures of {who}, a candidate that a gate rejected"
    (folder / folders.OVERVIEW).write_text(overview(title, clusters, counts, elsewhere), encoding="utf-8")
    return LogOf(
        fingerprint=log,
        label=label,
        equivalents=sorted(corpus.decisions.equivalent_to(log) - {log}),
        folder=place,
        clusters=len(clusters),
        unclustered=clusters.left_out,
        evidence=dict(sorted(result.evidence.get(log, Counter()).items())),
    )


def _merge(paths: Sequence[Path], target: Path) -> None:
    """Write the lines of sorted files to `target`, sorted; memory does not grow with their number."""
    left = list(paths)
    number = 0
    while len(left) > _OPEN:
        some, left = left[:_OPEN], left[_OPEN:]
        step = target.with_name(f".{target.name}-{number}")
        _merge(some, step)
        left.append(step)
        number += 1
    with ExitStack() as opened, target.open("wb") as file:
        file.writelines(heapq.merge(*(opened.enter_context(path.open("rb")) for path in left)))
    for path in left:
        path.unlink()


def _require_no_leak(corpus: Corpus, staged: Path, folder: str) -> None:
    """Make sure that no task of the evaluation set is in a log that was written.

    Raises:
        ExportRefusedError: when one is.
    """
    for name, value in _values(staged / folder):
        task = leaked(value, corpus.params.evaluation)
        if task is not None:
            raise ExportRefusedError(
                f"a task of the evaluation set would be in the failure log: {task}",
                where=f"{folder}/{name}".removeprefix("./"),
                hint="nothing was written; this is a fault of tracemark: please report it",
            )


def _values(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in folders.ROWS:
        with (folder / name).open("rb") as file:
            for number, line in enumerate(file, 1):
                yield f"{name}:{number}", json.loads(line)
    for path in sorted((folder / folders.CLUSTERS).iterdir()):
        yield f"{folders.CLUSTERS}/{path.name}", json.loads(path.read_bytes())


def _manifest(
    corpus: Corpus, asked: tuple[Store, Asking], written: tuple[Path, Sequence[LogOf]], result: FailureResult
) -> FailureLog:
    store, asking = asked
    staged, made = written
    params = corpus.params
    names = [f"{log.folder}/{name}".removeprefix("./") for log in made for name in (folders.OVERVIEW, *folders.ROWS)]
    return FailureLog(
        exporter=Exporter(name="failures", version=VERSION, tracemark=__version__),
        logs=list(made),
        counts=FailureCounts(
            traces=store.counts()["traces"],
            superseded=asking.superseded,
            left_out={reason.value: asking.left[reason] for reason in Left},
            routed=[_kind(kind, result.routed[kind]) for kind in sorted(result.routed, key=_key)],
        ),
        conditions=ConditionsUsed(version=CONDITIONS, digest=asking.conditions.digest, file=params.failures.conditions),
        evaluation_tasks=len(params.evaluation),
        evaluation_digest=evaluation_digest(params.evaluation),
        corpus=store.corpus_digest(),
        objects=manifests.git_objects(corpus.root),
        files={name: _file(staged / name) for name in sorted(names)},
    )


def _key(kind: Kind) -> tuple[str, ...]:
    return kind.log, kind.condition, kind.destination, kind.file or ""


def _kind(kind: Kind, number: int) -> Routed:
    return Routed(
        harness=kind.log,
        condition=kind.condition,
        side=kind.side,
        destination=kind.destination,
        file=kind.file,
        traces=number,
    )


def _file(path: Path) -> File:
    return File(sha256=digest.sha256_file(path), bytes=path.stat().st_size)


def _report(out: Path, manifest: FailureLog, findings: tuple[Any, ...]) -> FailureExport:
    counts = manifest.counts
    rows = [_rows(manifest, log) for log in manifest.logs]
    own, *others = manifest.logs
    return FailureExport(
        findings=findings,
        fingerprint=own.fingerprint,
        harness=own.label,
        rows=rows[0],
        clusters=own.clusters,
        candidates=[
            {
                "fingerprint": log.fingerprint,
                "harness": log.label,
                "folder": log.folder,
                "rows": counted,
                "clusters": log.clusters,
            }
            for log, counted in zip(others, islice(rows, 1, None), strict=True)
        ],
        successes=sum(one.traces for one in counts.routed if one.file is None),
        traces=counts.traces,
        superseded=counts.superseded,
        left_out=counts.left_out,
        manifest=str(out / folders.NAME),
    )


def _rows(manifest: FailureLog, log: LogOf) -> dict[str, int]:
    counted = Counter[str]()
    for one in manifest.counts.routed:
        if one.harness == log.fingerprint and one.file is not None:
            counted[one.file] += one.traces
    return {name: counted[name] for name in folders.ROWS}
