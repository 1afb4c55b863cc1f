"""`export sft`: the recorded successes of the accepted harness, as rows that a trainer reads, and a manifest.

A row of a harness that was declared equivalent holds that harness's own tool definitions, as the model was shown them.

The catalogue decides what it can; segments are opened only of fingerprints that are accepted or declared equivalent.

Invariants:
- a refused export writes nothing: an earlier export in the folder stays whole;
- the manifest is taken away before the first row is replaced and written after the last, so an export that was cut
  short has none; the store records it last of all (`docs/format/store.md` has what each crash leaves).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from tracemark import __version__, digest, engine
from tracemark.acts.agreement import Taken, disagreement
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import require_unchanged
from tracemark.acts.export_job import ExportJob, Row, work
from tracemark.acts.export_place import require_elsewhere
from tracemark.acts.pulled import require_pulled
from tracemark.acts.rivals import rivals
from tracemark.acts.uncompared import left_out, require_compared
from tracemark.durable import make_folder, sync_folder, write_atomic
from tracemark.errors import ExportRefusedError, IntegrityError, UsageError
from tracemark.exporters import folder as folders
from tracemark.exporters import manifest as manifests
from tracemark.exporters import sft as sft_rows
from tracemark.exporters.agreement import worded
from tracemark.exporters.choice import Selected, choose, require_enough
from tracemark.exporters.evaluation import unmatched
from tracemark.exporters.head import Head, head_in
from tracemark.exporters.select import ContentNeededError, Facts, Judged, Terms, facts, judge, rests_on_fits
from tracemark.findings import Finding, Report, finding
from tracemark.ledger.entry import Entry
from tracemark.ledger.params import Policy
from tracemark.model.annotation import build
from tracemark.model.export import Equivalence, File, Manifest
from tracemark.store.segment import Location
from tracemark.store.selection import Batch
from tracemark.store.store import Store
from tracemark.words import first_few

KIND = f"exports.{sft_rows.NAME}"
"""Kind of the annotation that records an export in the store."""

INCOMPLETE = "closure-incomplete"
"""Code of the findings that every manifest repeats."""

_LEFT_OUT = "stored-not-indexed"
_OPEN = 256
"""How many spool files are open at once; a process may have no more than about a thousand."""


@dataclass(frozen=True)
class ExportReport(Report):
    """What an export holds."""

    rows: int
    """Rows written."""
    fingerprint: str
    """The harness whose traces they are."""
    harness: str | None
    """Its label; None when no known harness version has the fingerprint."""
    policy: str
    """How well the harness of each row is known: `recorded`, `unique` or `claimed`."""
    outcomes: dict[str, int]
    """What is known of the rows' success, with the number of rows."""
    traces: int
    """Traces looked at; rows and excluded together."""
    superseded: int
    """Traces not looked at, since a newer importer has read their records again; with `traces` the whole store."""
    excluded: dict[str, int]
    """Traces left out by first reason, in the order in which the reasons are looked for."""
    not_trainable: dict[str, int]
    """The reason `not-trainable` in detail."""
    manifest: str
    """Path of the manifest, as the folder was given."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the strict filter says of all stored traces."""

    judged: Judged = field(default_factory=Judged)
    """Those that passed, and counts of the others."""
    restated: set[str] = field(default_factory=set)
    """Ids of those read of which more is said than their line says."""
    compared: set[str] = field(default_factory=set)
    """Ids of those read that can pass only where no other harness fits them."""
    rows: dict[str, Row] = field(default_factory=dict)
    """The rows of those that passed, by trace id."""


def sft(root: Path, out: Path) -> ExportReport:
    """Write a supervised fine-tuning set under the terms of params.yaml.

    Args:
        root: the corpus.
        out: the folder to write; an earlier export in it is replaced.

    Raises:
        ExportRefusedError: when no harness is accepted, when it is open which one is, when the evaluation set is not
            the one that was frozen, when fewer traces fit than the minimum, when a row is taken because no other
            harness fits and one cannot be compared, or when rows prove to be of more than one harness.
        UsageError: when `out` holds something else than an export, or lies where the corpus keeps what it reads.
        NotPulledError: when data that dvc.lock pins is not on disk.
        IntegrityError: when a trace that must be read is damaged or is not what the catalogue says of it, or a file of
            the store cannot be read at all.
    """
    require_elsewhere(root, out, "exports/sft")
    _require_export_folder(out)
    corpus = Corpus(root)
    require_pulled(corpus)
    terms, harness = terms_of(corpus), require_accepted(corpus)
    require_unchanged(corpus)
    with open_store(root) as store, store.workspace() as folder:
        require_whole(store)
        with store.unchanging():
            # what is counted and what the manifest says it was counted in are of one moment
            content = store.corpus_digest()
            seen = look(store, corpus, terms, folder)
            selected = choose(seen.judged, terms.caps)
            store.require_true(seen.restated.intersection(selected.ids))
        if seen.compared.intersection(selected.ids):
            require_compared(corpus, store)
        require_enough(selected, terms, harness, partial(rivals, corpus))
        apart = [*_require_agreement(corpus, store, selected, terms, seen.rows), *_undescribed(selected, seen.rows)]
        manifest = _write(corpus, content, out, selected, terms, seen.rows)
        store.commit_annotations(KIND, [build(KIND, manifests.statement(manifest), _tool())])
        return _report(out, manifest, [*apart, *store.findings, *_beside(corpus, store)])


def look(store: Store, corpus: Corpus, terms: Terms, folder: Path) -> Seen:
    """Judge every stored trace by the strict filter, limits of number aside.

    Args:
        store: the open store, which must not change meanwhile (`Store.unchanging`).
        corpus: the corpus.
        terms: the terms of the export.
        folder: a folder for the rows, which must outlast their use.

    Raises:
        IntegrityError: when a trace that must be read is damaged or is not what the catalogue says of it.
    """
    seen = Seen()
    for result in engine.run(work, _jobs(store, corpus, terms, folder, seen)):
        seen.judged.add(result.judged)
        seen.rows.update(result.rows)
    return seen


def _require_agreement(
    corpus: Corpus, store: Store, selected: Selected, terms: Terms, rows: Mapping[str, Row]
) -> list[Finding]:
    """Return the finding that rows prove to be of several harnesses, where only claims say that they are of one.

    Raises:
        ExportRefusedError: when they do, and claims are not enough.
    """
    chosen = [(trace, rows[trace]) for trace in selected.ids]
    taken = [Taken(trace, row.fingerprint, row.evidence, row.shown) for trace, row in chosen]
    found = disagreement(corpus, store, taken)
    if not found:
        return []
    hint = "tracemark harness match TRACE tells them apart; state a harness of their own for some of them"
    if terms.policy is Policy.CLAIMED:
        return [finding("rows-differ", "export", f"the rows are of more than one harness: {worded(found)}", hint)]
    raise ExportRefusedError(f"the rows are of more than one harness: {worded(found)}", hint=hint)


def _undescribed(selected: Selected, rows: Mapping[str, Row]) -> list[Finding]:
    """Return the finding that rows call tools of which they hold no definition."""
    found = [trace for trace in selected.ids if rows[trace].undescribed]
    if not found:
        return []
    told = "1 row calls tools and holds" if len(found) == 1 else f"{len(found)} rows call tools and hold"
    message = f"{told} no definition of any, such as that of {found[0][:12]}"
    return [finding("calls-undescribed", "export", message)]


def _beside(corpus: Corpus, store: Store) -> list[Finding]:
    """Return what an export does not stumble over, and may be meant otherwise."""
    params = corpus.params
    return [*unmatched(params.evaluation, store.tasks(), params.evaluation_file), *left_out(corpus, store)]


def require_accepted(corpus: Corpus) -> str:
    """Return the accepted harness in words.

    Raises:
        ExportRefusedError: when there is none, or it is open which one is.
    """
    for problem in corpus.acceptance_findings():
        raise ExportRefusedError(problem.message, where=problem.where, hint=problem.hint)
    if corpus.accepted is None:
        raise ExportRefusedError(
            "no harness is accepted yet, so no trace can fit",
            where="params.yaml: accepted.harness",
            hint="tracemark harness accept NAME --reason TEXT",
        )
    name = corpus.name_of(corpus.accepted)
    return f"{name} ({corpus.accepted[:16]}…)" if name else corpus.accepted


def terms_of(corpus: Corpus) -> Terms:
    """Return the terms of an SFT export that is made now; nothing is accepted under them when no harness is."""
    params, accepted = corpus.params, corpus.equivalents()
    return Terms(
        accepted=accepted,
        policy=params.export.evidence,
        incomplete=frozenset(name for name in accepted if _weakening(corpus, name)),
        models=frozenset(params.export.models),
        evaluation=params.evaluation,
        caps=params.export.sft,
    )


def _weakening(corpus: Corpus, fingerprint: str) -> list[Finding]:
    """Return the findings that weaken what a fingerprint says; empty for a harness that is not known."""
    harness = corpus.by_fingerprint.get(fingerprint)
    return [found for found in harness.findings if found.code == INCOMPLETE] if harness is not None else []


def _jobs(store: Store, corpus: Corpus, terms: Terms, folder: Path, seen: Seen) -> Iterator[ExportJob]:
    """Yield a job for each segment of which a line must be read; what is known without is noted in `seen`."""
    judged = seen.judged
    batches, others = store.split(terms.accepted, corpus.store_decisions)
    for plain in others:
        if plain.superseded:
            judged.superseded += plain.traces
        else:
            known = Facts("", plain.fingerprint, "unknown", 0, mixed=plain.mixed)
            judged.note(known, judge(known, terms), plain.traces)
    harnesses = tuple(corpus.harnesses)
    bound = {fingerprint: corpus.offered(fingerprint) for fingerprint in sorted(terms.accepted)}
    for number, batch in enumerate(batches):
        traces = tuple(_undecided(batch, terms, seen))
        if traces:
            yield ExportJob(batch.path, traces, terms, harnesses, bound, folder / f"rows-{number:06d}")


def _undecided(batch: Batch, terms: Terms, seen: Seen) -> Iterator[tuple[Location, Facts, Head]]:
    for state in batch.states:
        if state.superseded_by:
            seen.judged.superseded += 1
            continue
        known = facts(state)
        try:
            seen.judged.note(known, judge(known, terms))
        except ContentNeededError:
            if state.restated:
                seen.restated.add(state.trace_id)
            if rests_on_fits(known, terms):
                seen.compared.add(state.trace_id)
            yield state.location, known, head_in(state)


def _write(corpus: Corpus, content: str, out: Path, selected: Selected, terms: Terms, rows: dict[str, Row]) -> Manifest:
    """Write the export's files, the manifest last; `content` is the digest of the corpus that was looked at."""
    make_folder(out)
    for leftover in [path for path in out.iterdir() if folders.is_temporary(path.name)]:
        leftover.unlink()
    (out / manifests.NAME).unlink(missing_ok=True)
    sync_folder(out)
    written = _write_rows(out / sft_rows.FILE, [rows[trace] for trace in selected.ids])
    card = manifests.card(written.sha256)
    write_atomic(out / manifests.CARD, card)
    files = {sft_rows.FILE: written, manifests.CARD: File(sha256=digest.sha256(card), bytes=len(card))}
    accepted = corpus.accepted or ""
    harness = corpus.by_fingerprint.get(accepted)
    origin = manifests.Origin(
        fingerprint=accepted,
        label=harness.name if harness is not None else None,
        components=harness.identity.components if harness is not None else {},
        corpus=content,
        objects=manifests.git_objects(corpus.root),
        equivalences=[_stated(entry) for entry in corpus.decisions.equivalences_of(accepted)],
        findings=[found for fingerprint in sorted(terms.accepted) for found in _weakening(corpus, fingerprint)],
    )
    manifest = manifests.build(selected, terms, origin, files)
    write_atomic(out / manifests.NAME, manifests.encode(manifest))
    return manifest


def _stated(entry: Entry) -> Equivalence:
    """Return what a manifest states of a declaration of equivalence."""
    said = entry.decision
    rule = (said.evidence or {}).get("rule")
    fingerprints = sorted(said.subject["fingerprints"])
    return Equivalence(
        fingerprints=fingerprints, rule=rule if isinstance(rule, str) else None, reason=said.reason, entry=entry.digest
    )


def _write_rows(path: Path, rows: list[Row]) -> File:
    """Write the chosen rows to `path`, in the order given, and return the file's digest and size."""
    hasher, size = digest.Hasher(), 0
    temporary = path.with_name(f".{path.name}.tmp")
    spools: dict[Path, BinaryIO] = {}
    try:
        with temporary.open("wb") as target:
            for row in rows:
                if row.spool not in spools:
                    if len(spools) == _OPEN:
                        _close(spools)
                    spools[row.spool] = row.spool.open("rb", buffering=0)
                data = os.pread(spools[row.spool].fileno(), row.length, row.offset)
                hasher.update(data)
                size += target.write(data)
            target.flush()
            os.fsync(target.fileno())
    finally:
        _close(spools)
    temporary.replace(path)
    sync_folder(path.parent)
    return File(sha256=hasher.hexdigest(), bytes=size)


def _close(spools: dict[Path, BinaryIO]) -> None:
    for spool in spools.values():
        spool.close()
    spools.clear()


def _require_export_folder(out: Path) -> None:
    """Make sure that writing an export to `out` overwrites nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError("not a folder", where=str(out), hint="name a new folder")
    others = folders.strangers(out)
    if others:
        raise UsageError(
            f"the folder holds what is no part of an export: {first_few(others)}",
            where=str(out),
            hint="name a new folder",
        )


def require_whole(store: Store) -> None:
    """Make sure that the catalogue knows every file whose content decides what an export holds."""
    found = [problem for problem in store.findings if problem.code == _LEFT_OUT and not _is_beside(problem.where)]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise IntegrityError(
            f"what a stored file holds would be left out: {found[0].message}{more}",
            where=found[0].where,
            hint="tracemark check",
        )


def _is_beside(place: str) -> bool:
    """Return whether a file of the store, as findings name it, says nothing of what an export holds."""
    return place.startswith(("traces/refused/", "traces/annotations/exports."))


def _tool() -> dict[str, str]:
    return {"name": f"export {sft_rows.NAME}", "version": __version__}


def _report(out: Path, manifest: Manifest, findings: list[Finding]) -> ExportReport:
    return ExportReport(
        findings=tuple(findings),
        rows=manifest.counts.rows,
        fingerprint=manifest.harness.fingerprint,
        harness=manifest.harness.label,
        policy=manifest.policy,
        outcomes=manifest.outcomes,
        traces=manifest.counts.traces,
        superseded=manifest.counts.superseded,
        excluded=manifest.counts.excluded,
        not_trainable=manifest.counts.not_trainable,
        manifest=str(out / manifests.NAME),
    )
