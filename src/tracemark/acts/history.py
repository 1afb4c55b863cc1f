"""What was done since with a trace or a harness: the exports that took it, and what people decided about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracemark.acts.corpus import Corpus


def exported(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return of the record of an export what an audit shows: `manifest`, `fingerprint`, `policy`, `rows` (number)."""
    return {
        "manifest": value["manifest"],
        "fingerprint": value["fingerprint"],
        "policy": value["policy"],
        "rows": len(value["traces"]),
    }


def decided(corpus: Corpus, concerns: Callable[[Mapping[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the entries of the ledger whose subject is one that `concerns`: `kind`, `time`, `reason`, `entry`."""
    made = [(entry.decision, entry.digest) for entry in corpus.chain.entries if concerns(entry.decision.subject)]
    return [{"kind": one.kind, "time": one.time, "reason": one.reason, "entry": name} for one, name in made]
