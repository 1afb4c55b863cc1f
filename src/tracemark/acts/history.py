"""What was done since with a trace or a harness: the exports that took it, and what people decided about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracemark.acts.corpus import Corpus
from tracemark.ledger.entry import Entry


def exported(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return of the record of an export what an audit shows: `manifest`, `fingerprint`, `policy`, `rows` (number)."""
    return {
        "manifest": value["manifest"],
        "fingerprint": value["fingerprint"],
        "policy": value["policy"],
        "rows": len(value["traces"]),
    }


def decided(corpus: Corpus, concerns: Callable[[Entry], bool], trace_id: str | None = None) -> list[dict[str, Any]]:
    """Return the entries of the ledger that `concerns` says are wanted: `kind`, `time`, `reason`, `entry`.

    Args:
        corpus: the corpus.
        concerns: tells of an entry whether it is wanted.
        trace_id: the trace that is asked about: an entry about another one has that as `trace`. None asks about none.
    """
    rows = []
    for entry in corpus.chain.entries:
        one, about = entry.decision, entry.decision.subject.get("trace")
        if concerns(entry):
            row = {"kind": one.kind, "time": one.time, "reason": one.reason, "entry": entry.digest}
            rows.append({**row, "trace": about} if trace_id is not None and about not in (None, trace_id) else row)
    return rows
