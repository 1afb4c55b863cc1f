"""Which traces are in dispute, and which decisions cannot hold: the part of checking that is about what people said.

Like `check`, it opens no store and changes nothing; where the catalogue cannot be asked, that is the finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack

from tracemark.errors import IntegrityError
from tracemark.findings import Finding, finding
from tracemark.store.asked import Asked
from tracemark.store.catalogue import Reader
from tracemark.store.deciding import refuted, settling, undivided
from tracemark.store.inheriting import inheriting
from tracemark.store.layout import Layout
from tracemark.store.selection import DIVIDED, Decisions, Excludes
from tracemark.store.state import of_harness
from tracemark.store.statements import restated_apart
from tracemark.words import first_few

_BATCH = 256


def check_decisions(layout: Layout, decisions: Decisions) -> list[Finding]:
    """Return a finding for each decision that puts a trace under a harness which its content excludes.

    So it is too of a trace that inherits the decision. Where the catalogue cannot be asked, that is the finding.

    Args:
        layout: the corpus.
        decisions: the ledger's; those that differ, so that none of them holds, are left out.
    """

    def refuted_in(reader: Reader) -> dict[str, str]:
        held = inheriting([reader], decisions).stamps
        return _refuted_as_read(reader, layout, held, decisions.excludes)

    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        void: dict[str, str] = catalogue.ask(refuted_in, {})
    return [*catalogue.findings, *(decision_refuted(trace, excluded) for trace, excluded in sorted(void.items()))]


def stored_tasks(layout: Layout) -> tuple[set[tuple[str, str | None]], list[Finding]]:
    """Return task and domain of every trace of the catalogue that has a task, and why the catalogue cannot say."""
    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        tasks: set[tuple[str, str | None]] = catalogue.ask(Reader.tasks, set())
        return tasks, catalogue.findings


def stored_records(layout: Layout, traces: Collection[str]) -> tuple[dict[str, str], list[Finding]]:
    """Return the digest of the raw record of each of some traces that is stored, and why the catalogue cannot say.

    Args:
        layout: the corpus.
        traces: ids, 64 hexadecimal digits each.
    """

    def records(reader: Reader) -> dict[str, str]:
        return {one.row.trace_id: one.row.raw_digest for one in reader.lookup(map(bytes.fromhex, traces))}

    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        return catalogue.ask(records, {}), catalogue.findings


def check_disputes(layout: Layout, decisions: Decisions) -> list[Finding]:
    """Return the finding that there are traces about which statements disagree and nobody has decided.

    Where the catalogue cannot be asked, that is the finding.

    Args:
        layout: the corpus.
        decisions: the ledger's; retracted traces are out of every export anyway.
    """
    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        found: list[tuple[str, list[str]]] = catalogue.ask(lambda reader: _undecided(reader, layout, decisions), [])
    if not found:
        return catalogue.findings
    number, first = len(found), found[0][0]
    disputed_by_any = {path for _, open_ones in found for path in open_ones}
    counted = "statements about 1 trace disagree" if number == 1 else f"statements about {number} traces disagree"
    message = f"{counted} and nobody has decided: no export takes what is contested"
    if number == 1:
        return [finding("contested", f"trace {first[:12]}", message, settling(first[:12], disputed_by_any))]
    hint = f"tracemark traces list flags each; {settling('TRACE', disputed_by_any)}"
    where = first_few((trace[:12] for trace, _ in found), 1)
    return [finding("contested", f"trace {where}", message, hint)]


def _undecided(catalogue: Reader, layout: Layout, decisions: Decisions) -> list[tuple[str, list[str]]]:
    """Return each trace that is contested, with what statements dispute and nobody has decided."""
    excludes = decisions.excludes
    decisions = undivided(
        inheriting([catalogue], decisions), lambda stamps: _refuted_as_read(catalogue, layout, stamps, excludes)
    )
    disputes = dict(_disputes(catalogue, layout))
    for trace in sorted(decisions.divided):
        disputes[trace] = tuple(sorted({*disputes.get(trace, ()), DIVIDED}))
    # what is disputed of the newer reading too, or was settled for it, is open there and not here
    for old, new in list(catalogue.replacing([bytes.fromhex(trace) for trace in disputes])):
        conflicts = disputes.get(old.hex(), ())
        if new.hex() in disputes or (new.hex() in decisions.stamps and all(map(of_harness, conflicts))):
            disputes.pop(old.hex(), None)
    disputed = {trace: decisions.stamps[trace] for trace in disputes if trace in decisions.stamps}
    void = _refuted_as_read(catalogue, layout, disputed, excludes)
    found = []
    for trace, conflicts in disputes.items():
        settled = trace in disputed and trace not in void
        open_ones = [path for path in conflicts if not settled or not of_harness(path)]
        if open_ones and trace not in decisions.retracted:
            found.append((trace, open_ones))
    return found


def _disputes(catalogue: Reader, layout: Layout) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each trace about which statements disagree, with what they dispute; the catalogue may lag behind."""
    stale = catalogue.stale(-1)
    lagging = set(stale)
    for identity, conflicts in catalogue.contested():
        if identity not in lagging:
            yield identity.hex(), conflicts
    for start in range(0, len(stale), _BATCH):
        for identity, now in restated_apart(catalogue, layout, stale[start : start + _BATCH])[0].items():
            if now.conflicts:
                yield identity.hex(), now.conflicts


def _refuted_as_read(
    catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None], excludes: Excludes | None
) -> dict[str, str]:
    """Return those of the decisions `stamps` that `refuted` names, as far as what they are held to can be read."""
    if not stamps:
        return {}
    try:
        return refuted(catalogue, layout, stamps, excludes, lagging=True)
    except IntegrityError:
        # what is damaged, or cannot be read, is a finding already
        if len(stamps) == 1:
            return {}
    ordered = list(stamps.items())
    parts = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    first, second = (_refuted_as_read(catalogue, layout, dict(part), excludes) for part in parts)
    return first | second


def decision_refuted(trace_id: str, fingerprint: str) -> Finding:
    """Return the finding that a trace is settled under a harness which its content excludes."""
    short = trace_id[:12]
    hint = f"tracemark audit {short}, then tracemark stamp {short} --harness NAME|FINGERPRINT|none --reason TEXT"
    return finding("decision-refuted", f"trace {short}", f"its content excludes {fingerprint}", hint)
