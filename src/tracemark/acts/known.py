"""What ingest does with a trace that the store knows already.

Invariants:
- nothing is stored twice: a draft that holds known traces is packed again without them;
- nothing that is known is changed: what a copy adds becomes an annotation, and what it disputes makes the trace
  contested until somebody decides;
- a claim that the content refutes says nothing about a trace that has its harness already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemark import __version__
from tracemark.acts.ingest_job import line_of
from tracemark.model.annotation import build
from tracemark.store.annotations import OUTCOMES, STAMPS
from tracemark.store.catalogue import Stored
from tracemark.store.draft import DraftWriter, SegmentDraft
from tracemark.store.row import TraceRow, head_of, project_line, trajectory_slice
from tracemark.store.segment import iterate
from tracemark.store.state import Statement, join, relation
from tracemark.store.store import Store

TOOL = {"name": "ingest", "version": __version__}
"""Who makes the annotations of this module."""


@dataclass(slots=True)
class Settled:
    """What became of one draft."""

    drafts: list[SegmentDraft] = field(default_factory=list)
    """What is left to commit; empty when everything was known."""
    annotations: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {STAMPS: [], OUTCOMES: []})
    """New statements about known traces, by kind."""
    count: Counter[str] = field(default_factory=Counter)
    """`ingested`, `duplicates`, `strengthened`, `contested`, `reimported`."""


class Known:
    """Tells known traces from new ones over one ingest run.

    Args:
        store: the store; None for a dry run where there is none yet.
        folder: for drafts that must be packed again.
    """

    def __init__(self, store: Store | None, folder: Path) -> None:
        self._store = store
        self._folder = folder

    def settle(self, draft: SegmentDraft) -> Settled:
        """Return what of a draft is new, and what its known traces add.

        Raises:
            IntegrityError: when a stored statement that must be compared is damaged.
        """
        rows = [projection.row for projection in draft.projections]
        known = self._store.lookup(row.trace_id for row in rows) if self._store is not None else {}
        older = self._older([row for row in rows if row.trace_id not in known])
        if not known and not older and len({row.id for row in rows}) == len(rows):
            return Settled([draft], count=Counter(ingested=len(rows)))
        if len(known) == len(rows) and all(known[row.trace_id].row.head == row.head for row in rows):
            draft.temporary.unlink(missing_ok=True)
            return Settled(count=Counter(duplicates=len(rows)))
        return self._pack_again(draft, known, older)

    def contest(self, trace_id: str, stamp: dict[str, Any], settled: Settled) -> None:
        """Add to `settled` a second stamp of a trace that is stored, unless the content refutes it."""
        statements = self._statements(trace_id)
        new = Statement("", harness=stamp)
        if not _is_refuted(statements, new) and relation(statements, new) != "nothing":
            settled.annotations[STAMPS].append(build(STAMPS, {"harness": stamp}, TOOL, trace_id))
            settled.count["contested"] += 1

    def _pack_again(self, draft: SegmentDraft, known: Mapping[str, Stored], older: Mapping[str, list[str]]) -> Settled:
        settled = Settled()
        writer = DraftWriter(self._folder, draft.temporary.name + ".new")
        here: dict[str, list[Statement]] = {}
        for (_, line), projection in zip(iterate(draft.temporary), draft.projections, strict=True):
            row = projection.row
            stored = known.get(row.trace_id)
            if stored is not None and stored.row.head == row.head:
                settled.count["duplicates"] += 1
            elif stored is not None or row.trace_id in here:
                if row.trace_id not in here:
                    here[row.trace_id] = self._statements(row.trace_id)
                _repeat(line, row, here[row.trace_id], settled)
            else:
                here[row.trace_id] = [_statement(line, row)]
                if row.raw_digest in older:
                    line = _superseding(line, older[row.raw_digest])
                    projection = project_line(line)
                    settled.count["reimported"] += 1
                else:
                    settled.count["ingested"] += 1
                writer.add(line, projection)
        draft.temporary.unlink(missing_ok=True)
        settled.drafts = writer.close()
        return settled

    def _older(self, rows: Sequence[TraceRow]) -> dict[str, list[str]]:
        """Return, by raw digest, the traces that another version of the same importer made of the same record."""
        wanted = {row.raw_digest: row for row in rows if row.raw}
        if self._store is None or not wanted:
            return {}
        found: dict[str, list[str]] = {}
        for raw, stored in self._store.lookup_raw(wanted).items():
            new = wanted[raw]
            ids = [
                other.row.trace_id
                for other in stored
                if other.row.importer == new.importer and other.row.importer_version != new.importer_version
            ]
            if ids:
                found[raw] = sorted(ids)
        return found

    def _statements(self, trace_id: str) -> list[Statement]:
        return list(self._store.statements([trace_id]).get(trace_id, [])) if self._store is not None else []


def _repeat(line: bytes, row: TraceRow, said: list[Statement], settled: Settled) -> None:
    """Judge one more copy of a trace by what was said of it, and remember what the copy says."""
    statement = _statement(line, row)
    did = set()
    for kind, half in (
        (STAMPS, statement._replace(run=None, outcome=None)),
        (OUTCOMES, statement._replace(harness=None)),
    ):
        effect = "nothing" if kind == STAMPS and _is_refuted(said, half) else relation(said, half)
        did.add(effect)
        if effect != "nothing":
            value = {k: v for k, v in (("harness", half.harness), ("run", half.run), ("outcome", half.outcome)) if v}
            settled.annotations[kind].append(build(kind, value, TOOL, row.trace_id))
            said.append(half)
    settled.count["contested" if "contests" in did else "strengthened" if "strengthens" in did else "duplicates"] += 1


def _statement(line: bytes, row: TraceRow) -> Statement:
    head = head_of(line)
    return Statement(row.head_digest, head["harness"], head["run"], head["outcome"])


def _is_refuted(said: Sequence[Statement], new: Statement) -> bool:
    """Return whether `new` claims another harness than the one known, and the content itself speaks against it."""
    stamp = new.harness or {}
    if not stamp.get("contradictions"):
        return False
    standing = join(said).harness.get("declared") or {}
    claimed = (stamp.get("declared") or {}).get("components") or {}
    return bool(standing.get("fingerprint")) and any(
        claimed.get(name, {}).get("digest") != component["digest"] for name, component in standing["components"].items()
    )


def _superseding(line: bytes, ids: list[str]) -> bytes:
    """Return the line, its source naming the traces that it replaces."""
    head = head_of(line)
    source = {**head["source"], "supersedes": ids}
    statement = {name: head[name] for name in ("harness", "outcome", "run")}
    return line_of(statement, source, trajectory_slice(line))
