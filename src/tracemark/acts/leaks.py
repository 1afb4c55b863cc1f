"""Tasks of the evaluation set that training exports hold: those that the store records, and those that lie in exports/.

Invariants:
- a recorded export counts for ever, also where its folder was written anew: a model may have been trained on it;
- a row counts by the tasks that its trace, and newer readings of its record, have now. A row whose trace is not stored,
  or whose task nobody knows, proves nothing, and how many there are is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.acts.corpus import Corpus
from tracemark.durable import read_regular, why_unread
from tracemark.errors import IntegrityError, IrregularFileError, NewerFormatError
from tracemark.exporters import manifest as manifests
from tracemark.exporters.evaluation import for_evaluation, qualified
from tracemark.findings import Finding, finding
from tracemark.gates.same_set import leaked
from tracemark.store.exported import recorded, tasks_of_runs
from tracemark.store.layout import Layout
from tracemark.store.selection import Selection
from tracemark.store.store import Store
from tracemark.words import numbered

EXPORTS = "exports"
"""The folder of a corpus in which exports lie, and how the kinds of annotations begin that record them."""


class Export(NamedTuple):
    """One training export."""

    name: str
    """Its folder relative to the corpus; where there is none any more, its kind and the beginning of its digest."""
    traces: frozenset[str]
    """Ids of the traces of its rows."""


class Leaks(NamedTuple):
    """What exports hold of the evaluation set."""

    tasks: dict[str, tuple[str, ...]]
    """Tasks of the evaluation set by the export that holds them; exports without any are left out."""
    findings: tuple[Finding, ...]
    """What could not be read, or says nothing."""


def leaks(corpus: Corpus, store: Store) -> Leaks:
    """Return which tasks of the evaluation set are in a training export.

    Raises:
        IntegrityError: when a record of an export in the store is damaged.
    """
    findings: list[Finding] = []
    kinds = _kinds(store.layout.annotations)
    records = ((kind, note.value["value"]) for kind in kinds for note in store.annotations(kind))
    exports = list(_exports(corpus.root, records, findings))
    rows = frozenset().union(*(export.traces for export in exports))
    if not rows:
        return Leaks({}, tuple(findings))
    evaluation = corpus.params.evaluation
    newer = store.newer_readings(rows)
    wanted = Selection(traces=rows.union(*newer.values()), superseded=True)
    stored = {state.trace_id: state.row for state in store.select(wanted, corpus.store_decisions, findings)}
    found: dict[str, tuple[str, ...]] = {}
    for export in exports:
        tasks: set[str] = set()
        count = 0
        for trace in export.traces:
            rows_of = (stored.get(one) for one in (trace, *newer.get(trace, ())))
            known = [(row.task, row.domain) for row in rows_of if row is not None and row.task]
            tasks.update(qualified(*one) or "" for one in known if for_evaluation(*one, evaluation))
            count += not known
        if tasks:
            found[export.name] = tuple(sorted(tasks))
        if count:
            told = f"{count} of {numbered(len(export.traces), 'row')} {'is' if count == 1 else 'are'}"
            message = f"{told} of traces that are not stored, or of unknown task"
            findings.append(finding("evaluation-leak-unknown", export.name, message))
    return Leaks(found, tuple(findings))


def leaks_shown(corpus: Corpus) -> list[Finding]:
    """Return a finding for each training export that holds tasks of the evaluation set, without opening the store.

    What cannot be read is left out: it is named by whoever checks it, and by gates.

    Raises:
        ParamsError: when params.yaml cannot be read.
    """
    evaluation = corpus.params.evaluation
    if not evaluation:
        return []
    layout = Layout(corpus.root)
    exports = list(_exports(corpus.root, recorded(layout, _kinds(layout.annotations)), []))
    runs = tasks_of_runs(layout, frozenset().union(*(export.traces for export in exports)))
    found = []
    for export in exports:
        known = {run for trace in export.traces for run in runs.get(trace, ())}
        if tasks := {qualified(*run) or "" for run in known if for_evaluation(*run, evaluation)}:
            found.append(finding("evaluation-leaked", export.name, *leaked(export.name, tasks)))
    return found


def _exports(root: Path, records: Iterable[tuple[str, Any]], findings: list[Finding]) -> Iterator[Export]:
    """Yield each export once: by its folder, and those on record that no folder holds any more.

    Args:
        root: the corpus.
        records: what the store records of exports, each with the kind of its annotation.
        findings: takes what cannot be read.
    """
    shown: set[str] = set()
    for path in sorted((root / EXPORTS).glob("**/" + manifests.NAME)):
        place = path.parent.relative_to(root).as_posix()
        try:
            manifest, _ = manifests.decode(read_regular(path))
        except (OSError, IrregularFileError, IntegrityError, NewerFormatError) as error:
            reason = why_unread(error)[0] if isinstance(error, OSError | IrregularFileError) else error.message
            message = f"whether it holds tasks of the evaluation set is not known: {reason}"
            findings.append(finding("evaluation-leak-unknown", place, message))
            continue
        shown.add(digest.of(manifest.model_dump()))
        yield Export(place, frozenset(manifest.rows))
    for kind, record in records:
        name = str(record.get("manifest"))
        if name not in shown:
            yield Export(f"{kind} {name[:12]}", frozenset(record.get("traces") or ()))


def _kinds(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{EXPORTS}.*")) if folder.is_dir() else []
