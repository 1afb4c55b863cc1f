"""`export atif`: stored traces as ATIF documents, for other tools and for other stores; no training set.

Every trace that was selected is written, whatever its harness or its end. What is true of it now goes along: the stamp,
run and outcome of all its statements joined and of the decisions that hold. Ingested again, by this store or another,
it is the same trace.

Invariants:
- a trace never comes back looking better than it stands: a retracted one is left out and counted, a contested one
  carries the statements that disagree, and one that counts under no harness names none;
- the harnesses under which traces count lie beside the documents, so that a store which has never met them can check
  what the stamps say;
- while documents are written the manifest says so, and that they are complete is written last.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from tracemark import __version__, digest, engine
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.export_place import require_elsewhere
from tracemark.acts.interchange_job import InterchangeJob, InterchangeResult, Wanted, work
from tracemark.acts.provenance import standing
from tracemark.acts.pulled import require_pulled, resolve
from tracemark.acts.traces import TraceFilter, selected
from tracemark.durable import make_folder, sync_folder, write_atomic
from tracemark.errors import ExportRefusedError, UsageError
from tracemark.exporters import interchange, manifest
from tracemark.exporters import interchange_folder as folders
from tracemark.findings import Finding, Report
from tracemark.harness import snapshot
from tracemark.model.export import Exporter, File
from tracemark.model.interchange import FORMS, Counted, Interchange, Left, Selected
from tracemark.store.selection import Batch, Decisions, Selection, State, batches
from tracemark.store.state import Statement, of_harness
from tracemark.store.store import Store
from tracemark.words import first_few

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class InterchangeOptions:
    """What to export, and how."""

    wanted: TraceFilter = field(default_factory=TraceFilter)
    """Which traces, by what is true of them."""
    traces: Sequence[str] = ()
    """Ids, or their beginnings, of the only traces to export; empty for all."""
    form: str = "lines"
    """`lines`: one file with a document a line; `files`: a file for each document."""


@dataclass(frozen=True)
class InterchangeReport(Report):
    """What an interchange export holds."""

    documents: int
    """Documents written, one for each trace."""
    traces: int
    """Traces in the store; the documents and all that was left out."""
    contested: int
    """Documents that carry statements which disagree."""
    excluded: dict[str, int]
    """Traces left out, each under the first reason that holds: `not_selected`, `superseded`, `retracted`."""
    harnesses: int
    """Harnesses that lie beside the documents."""
    form: str
    """`lines` or `files`."""
    manifest: str
    """Path of the manifest, as the folder was given."""


@dataclass(slots=True)
class _Tally:
    """What has been seen while traces are selected."""

    superseded: int = 0
    retracted: int = 0
    contested: int = 0
    documents: int = 0
    fingerprints: set[str] = field(default_factory=set)


def atif(root: Path, out: Path, options: InterchangeOptions) -> InterchangeReport:
    """Write stored traces as ATIF documents.

    Args:
        root: the corpus.
        out: the folder to write; an earlier interchange export in it is replaced.
        options: what, and how.

    Raises:
        ExportRefusedError: when there is no trace to write.
        UsageError: when `out` holds something else than an interchange export, or lies where the corpus keeps what it
            reads; when the form, or the status of the filter, is none.
        UnknownNameError: when no trace or harness answers to a name given.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged.
    """
    if options.form not in FORMS:
        raise UsageError(f"{options.form!r} is no form", hint="one of: " + ", ".join(FORMS))
    require_elsewhere(root, out, "exports/atif")
    _require_folder(out)
    corpus = Corpus(root)
    require_pulled(corpus)
    tally = _Tally()
    with open_store(root) as store, store.workspace() as folder, store.unchanging():
        selection, shared = selected(corpus, store, options.wanted)
        if options.traces:
            ids = frozenset(resolve(corpus, store, trace) for trace in options.traces)
            selection = replace(selection, traces=ids if selection.traces is None else ids & selection.traces)
        jobs = _jobs(store, corpus, (selection, options), _target(out, folder, options.form), tally)
        first = next(jobs, None)
        if first is None:
            raise _nothing(store, tally)
        begun = _begin(store, corpus, out, (selection, options))
        written = _write(out, engine.run(work, chain([first], jobs)), options.form, tally)
        files = {**_write_harnesses(corpus, out, tally), **written}
        made = _finish(out, begun, files, _counted(store, tally))
        return _report(out, made, [*shared, *store.findings])


def _target(out: Path, folder: Path, form: str) -> Path:
    """Return the folder in which jobs write."""
    return _unfinished(out, folders.FILES) if form == "files" else folder


def _unfinished(out: Path, name: str) -> Path:
    return out / f".{name}{folders.TEMPORARY}"


def _jobs(
    store: Store, corpus: Corpus, asked: tuple[Selection, InterchangeOptions], target: Path, tally: _Tally
) -> Iterator[InterchangeJob]:
    """Yield a job for each segment that holds a selected trace."""
    selection, options = asked
    decisions = store.applied(corpus.store_decisions)
    states = _present(store.select(selection, decisions), tally, options.wanted.limit)
    apart = options.form == "files"
    for number, batch in enumerate(batches(store.layout.traces, states)):
        traces = tuple(_wanted(store, corpus, batch, decisions))
        yield InterchangeJob(batch.path, traces, target if apart else target / f"lines-{number:06d}", apart)


def _present(states: Iterable[State], tally: _Tally, limit: int | None) -> Iterator[State]:
    """Yield the states of which a document is written, and count the others."""
    for state in states:
        if state.superseded_by:
            tally.superseded += 1
        elif state.retracted:
            tally.retracted += 1
        elif limit is None or tally.documents < limit:
            tally.documents += 1
            tally.contested += state.contested
            yield state


def _wanted(store: Store, corpus: Corpus, batch: Batch, decisions: Decisions) -> Iterator[Wanted]:
    ids = [state.trace_id for state in batch.states]
    changed = store.annotated(ids).union(state.trace_id for state in batch.states if state.restated)
    said = store.statements(changed)
    for state in batch.states:
        trace_id = state.trace_id
        now = _said(said[trace_id], state, corpus, decisions) if trace_id in said else None
        yield Wanted(trace_id, state.location, now)


def _said(
    said: Sequence[Statement], state: State, corpus: Corpus, decisions: Decisions
) -> tuple[Mapping[str, Any], ...]:
    """Return what is true of a trace now, or the statements about it where they disagree."""
    joined = standing(said, state, decisions, corpus.by_fingerprint.get(state.row.fingerprint or ""))
    now = interchange.standing_as(joined.content(), state.row.fingerprint)
    decided = state.settled or state.trace_id in decisions.divided
    now = {**now, "decided": True} if decided else now
    if all(decided and of_harness(path) for path in state.conflicts):
        return (now,)
    first, *others = said
    whole = {**now, "harness": now["harness"] if decided else first.harness or {}}
    whole |= {"outcome": first.outcome or {"status": "unknown"}, "run": first.run or {}}
    return (whole, *(rest for one in others if (rest := _stated(one, harness=not decided))))


def _stated(statement: Statement, *, harness: bool) -> dict[str, Any]:
    members = {"harness": statement.harness if harness else None, "outcome": statement.outcome, "run": statement.run}
    return {name: value for name, value in members.items() if value}


def _write(out: Path, results: Iterable[InterchangeResult], form: str, tally: _Tally) -> dict[str, File]:
    """Put the documents in their place, those of an earlier export out of it; return digest and size of the file."""
    if form == "files":
        for result in results:
            tally.fingerprints |= result.fingerprints
        # ten thousands of syncs would take most of the time
        os.sync()
        _remove(out / folders.LINES)
        _remove(out / folders.FILES)
        _unfinished(out, folders.FILES).rename(out / folders.FILES)
        sync_folder(out)
        return {}
    hasher, size = digest.Hasher(), 0
    with _unfinished(out, folders.LINES).open("wb") as target:
        for result in results:
            tally.fingerprints |= result.fingerprints
            with result.target.open("rb") as lines:
                while chunk := lines.read(_CHUNK):
                    hasher.update(chunk)
                    size += target.write(chunk)
            result.target.unlink()
        target.flush()
        os.fsync(target.fileno())
    _remove(out / folders.FILES)
    _unfinished(out, folders.LINES).replace(out / folders.LINES)
    sync_folder(out)
    return {folders.LINES: File(sha256=hasher.hexdigest(), bytes=size)}


def _write_harnesses(corpus: Corpus, out: Path, tally: _Tally) -> dict[str, File]:
    """Write the known harnesses under which traces count; return digest and size of each file."""
    files = {}
    for fingerprint in sorted(tally.fingerprints):
        harness = corpus.by_fingerprint.get(fingerprint)
        if harness is not None:
            data = snapshot.to_bytes(harness)
            name = folders.snapshot_name(fingerprint)
            write_atomic(out / name, data)
            files[name] = File(sha256=digest.sha256(data), bytes=len(data))
    return files


def _begin(store: Store, corpus: Corpus, out: Path, asked: tuple[Selection, InterchangeOptions]) -> Interchange:
    """Write the manifest of an export that is not complete, and take away what earlier ones left; return it."""
    selection, options = asked
    wanted = options.wanted
    harness = wanted.harness
    if selection.fingerprints is not None:
        harness = next(iter(selection.fingerprints)) or "none"
    begun = Interchange(
        complete=False,
        exporter=Exporter(name=interchange.NAME, version=interchange.VERSION, tracemark=__version__),
        form="files" if options.form == "files" else "lines",
        selected=Selected(
            harness=harness,
            status=wanted.status,
            task=wanted.task,
            limit=wanted.limit,
            traces=None if selection.traces is None else sorted(selection.traces),
        ),
        counts=_counted(store, _Tally()),
        corpus=store.corpus_digest(),
        objects=manifest.git_objects(corpus.root),
        files={},
    )
    make_folder(out)
    write_atomic(out / folders.NAME, folders.encode(begun))
    for path in list(out.iterdir()):
        if folders.is_own(path.name):
            _remove(path)
    if options.form == "files":
        _unfinished(out, folders.FILES).mkdir()
    return begun


def _finish(out: Path, begun: Interchange, files: dict[str, File], counts: Counted) -> Interchange:
    done = begun.model_copy(update={"complete": True, "files": dict(sorted(files.items())), "counts": counts})
    write_atomic(out / folders.NAME, folders.encode(done))
    return done


def _counted(store: Store, tally: _Tally) -> Counted:
    total = store.counts()["traces"]
    seen = tally.documents + tally.superseded + tally.retracted
    left = Left(not_selected=total - seen, superseded=tally.superseded, retracted=tally.retracted)
    return Counted(traces=total, documents=tally.documents, contested=tally.contested, excluded=left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            path.unlink()


def _require_folder(out: Path) -> None:
    """Make sure that writing an export to `out` overwrites nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError("not a folder", where=str(out), hint="name a new folder")
    others = folders.strangers(out)
    if others:
        message = f"the folder holds what is no part of an interchange export: {first_few(others)}"
        raise UsageError(message, where=str(out), hint="name a new folder")


def _nothing(store: Store, tally: _Tally) -> ExportRefusedError:
    left = _counted(store, tally).excluded.model_dump()
    why = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in left.items() if count)
    return ExportRefusedError(
        f"there is no trace to export: {why or 'the store is empty'}", hint="tracemark traces list"
    )


def _report(out: Path, made: Interchange, findings: Sequence[Finding]) -> InterchangeReport:
    counts = made.counts
    return InterchangeReport(
        findings=tuple(findings),
        documents=counts.documents,
        traces=counts.traces,
        contested=counts.contested,
        excluded=counts.excluded.model_dump(),
        harnesses=sum(name != folders.LINES for name in made.files),
        form=made.form,
        manifest=str(out / folders.NAME),
    )
