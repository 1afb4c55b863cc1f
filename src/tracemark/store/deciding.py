"""What decisions come to, given what is stored.

The ledger says what people decided; here that meets the store, and a decision that came in by another way than the
verbs (a merge of branches, an edit) is held to the rules that these keep.

Invariants:
- no decision puts a trace under a harness of which a statement in force says that the content refutes it: such a
  decision is void, and the trace stands as its statements have it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tracemark.store.catalogue import Reader
from tracemark.store.layout import Layout
from tracemark.store.selection import Decisions
from tracemark.store.state import Statement, harness_named
from tracemark.store.statements import statements


def applied(catalogue: Reader, layout: Layout, decisions: Decisions) -> Decisions:
    """Return the decisions as far as they hold; to be called while no restated row is stale.

    Raises:
        IntegrityError: when a file that holds a statement which must be read is damaged.
    """
    void = _void(catalogue, layout, decisions.stamps)
    if not void:
        return decisions
    return replace(decisions, stamps={k: v for k, v in decisions.stamps.items() if k not in void}, void=void)


def refuted_by(said: Sequence[Statement]) -> set[str]:
    """Return the fingerprints of the harnesses that `said` names and the content refutes."""
    stamps = [statement.harness for statement in said if statement.harness]
    named = {harness_named(stamp) for stamp in stamps if stamp.get("contradictions")}
    return {fingerprint for fingerprint in named if fingerprint is not None}


def void_among(
    catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None], ids: Collection[bytes]
) -> dict[str, str]:
    """Return those of the decisions `stamps` (trace id to fingerprint) about the traces `ids` that cannot hold.

    Raises:
        IntegrityError: when a file that holds a statement is damaged.
    """
    found = {}
    for identity, said in statements(catalogue, layout, ids).items():
        fingerprint = stamps[identity.hex()]
        if fingerprint is not None and fingerprint in refuted_by(said):
            found[identity.hex()] = fingerprint
    return found


def _void(catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None]) -> dict[str, str]:
    ids = [bytes.fromhex(trace) for trace, fingerprint in stamps.items() if fingerprint is not None]
    # few traces are settled, and of fewer does anybody say that the content refutes something
    suspects = [
        stored.row.id
        for stored, restated, _ in (catalogue.select(None, ids) if ids else ())
        if (restated.fields if restated else {}).get("contradicted", stored.row.contradicted)
    ]
    return void_among(catalogue, layout, stamps, suspects)
