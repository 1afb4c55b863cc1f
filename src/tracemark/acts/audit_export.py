"""The audit of an export: every row made again from the store, and every difference named."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tracemark.acts.agreement import Taken, disagreement
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.evaluation_set import changed, once_held
from tracemark.acts.export import KIND, terms_of
from tracemark.acts.provenance import content_in
from tracemark.acts.pulled import not_pulled
from tracemark.acts.uncompared import in_doubt, left_out
from tracemark.durable import read_regular
from tracemark.errors import IntegrityError, IrregularFileError, UnknownNameError
from tracemark.exporters import audit as exports
from tracemark.exporters import manifest as manifests
from tracemark.exporters.agreement import shown_in, worded
from tracemark.exporters.head import head_in, require_same
from tracemark.exporters.select import facts
from tracemark.findings import Finding, Report, finding
from tracemark.harness.match import fits
from tracemark.ledger.params import Policy
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store
from tracemark.words import first_few, numbered


@dataclass(frozen=True)
class ExportAudit(Report):
    """Whether an export is what the store would give now."""

    export: str
    """The folder, as it was named."""
    fingerprint: str | None
    """The harness that its manifest names; None when there is no readable manifest."""
    policy: str | None
    """The policy that its manifest states."""
    rows: int
    """Rows that its manifest counts; 0 without one."""
    outcomes: dict[str, int]
    """What its manifest says of the rows' success."""
    differences: int
    """How many differences from what the store would give now were found; each is a finding."""
    proved: tuple[str, ...]
    """What was derived again and found to be so, one sentence each."""


def audit_export(root: Path, folder: Path) -> ExportAudit:
    """Audit an export: every row is made again from the store, and every difference named.

    Raises:
        IntegrityError: when a stored trace is damaged, or is not what the catalogue says of it.
        NoStoreError: when there is no store.
    """
    corpus = Corpus(root)
    with open_store(root) as store:
        records = store.annotations(KIND, damaged=store.findings)
        recorded = frozenset(str(note.value["value"]["manifest"]) for note in records)
        asked: list[bool] = []

        def fitting(line: dict[str, Any]) -> list[str]:
            asked.append(True)
            return fits(corpus.matchers.values(), content_in(line))

        fetch = _Fetch(store, corpus.store_decisions, _named_rows(folder))
        present = exports.Present(
            terms=terms_of(corpus),
            fetch=fetch,
            tools=cache(corpus.offered),
            fits=fitting,
            recorded=recorded,
        )
        audited = exports.audit(folder, present)
        if audited.manifest is not None and audited.manifest.policy != Policy.CLAIMED.value:
            audited.differences += _apart(corpus, store, fetch)
        findings = [
            *not_pulled(corpus),
            *store.findings,
            *corpus.acceptance_findings(),
            *changed(corpus),
            *audited.differences,
            *audited.notes,
            *_once_held(corpus, fetch),
            *(in_doubt if asked else left_out)(corpus, store),
        ]
    manifest = audited.manifest
    return ExportAudit(
        findings=tuple(findings),
        export=str(folder),
        fingerprint=manifest.harness.fingerprint if manifest else None,
        policy=manifest.policy if manifest else None,
        rows=manifest.counts.rows if manifest else 0,
        outcomes=manifest.outcomes if manifest else {},
        differences=len(audited.differences),
        proved=audited.proved(),
    )


def _apart(corpus: Corpus, store: Store, fetch: _Fetch) -> list[Finding]:
    """Return the finding that rows prove to be of more than one harness, by all that was stated of them until now."""
    found = disagreement(corpus, store, fetch.taken.values())
    return (
        [finding("export-rows-apart", manifests.NAME, f"the rows are of more than one harness: {worded(found)}")]
        if found
        else []
    )


def _once_held(corpus: Corpus, fetch: _Fetch) -> list[Finding]:
    """Return the finding that rows are of tasks that a frozen set held, and the present one does not."""
    held = once_held(corpus, fetch.tasks())
    if not held:
        return []
    said = first_few(f"{task!r} ({held[task].digest[:12]})" for task in sorted(held))
    number = numbered(len(held), "task")
    message = f"{number} of its rows {'was' if len(held) == 1 else 'were'} in a set that was frozen before: {said}"
    return [finding("export-once-evaluation", manifests.NAME, message)]


class _Fetch:
    """Gives a stored trace as it stands now.

    Args:
        store: the store.
        decisions: the ledger's.
        expected: ids that will be asked for; what they stand for is read at once.
    """

    def __init__(self, store: Store, decisions: Decisions, expected: Collection[str]) -> None:
        self._store = store
        self._decisions = decisions
        wanted = Selection(traces=frozenset(filter(_is_id, expected)), superseded=True)
        self._states = {state.trace_id: state for state in store.select(wanted, decisions)}
        self.taken: dict[str, Taken] = {}
        store.require_true([trace for trace, state in self._states.items() if state.restated])

    def tasks(self) -> list[tuple[str | None, str | None]]:
        """Return task and domain of every trace that was expected and is stored."""
        return [(state.row.task, state.row.domain) for state in self._states.values()]

    def __call__(self, trace_id: str) -> exports.Found | None:
        if not _is_id(trace_id):
            # an export may be edited, and then says anything
            return None
        try:
            state = self._states.get(trace_id)
            if state is None:
                state = self._store.state(trace_id, self._decisions)
                self._store.require_true([trace_id] if state.restated else [])
            line = self._store.get(trace_id)
            require_same(line, trace_id, head_in(state))
            known = facts(state)
            self.taken[trace_id] = Taken(trace_id, known.fingerprint, known.evidence, shown_in(line))
            return exports.Found(line, known)
        except UnknownNameError:
            return None


def _named_rows(folder: Path) -> list[str]:
    """Return the ids that the manifest of an export names; none where the audit will say that it cannot be read."""
    try:
        return manifests.decode(read_regular(folder / manifests.NAME))[0].rows
    except (OSError, IrregularFileError, IntegrityError):
        return []


def _is_id(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None
