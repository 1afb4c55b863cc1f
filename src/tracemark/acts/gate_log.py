"""`gate log`: every decision about the accepted pair, with its evidence held against what can be looked at now.

Invariants:
- it is read as `check` reads, without opening the store: nothing is changed;
- numbers are shown of evidence that could be read, and of no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import Corpus
from tracemark.acts.gate_evidence import JUDGED, Held, evidence_held
from tracemark.findings import Report
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import label
from tracemark.model.decision import Kind
from tracemark.words import numbered

_KINDS = (Kind.ACCEPT, Kind.FREEZE, Kind.INSTALL, Kind.REJECT, Kind.ROLL_BACK)


@dataclass(frozen=True)
class GateLog(Report):
    """Every decision about the accepted pair and the evaluation set."""

    decisions: tuple[dict[str, Any], ...]
    """In the order of the chain, parents before children: `entry` (digest), `time`, `kind`, `reason`, `parents`, `half`
    and `what` (in words), `in_force` (whether it makes a half of the present pair, or is the freeze that holds), and of
    a gate's decision `measured` (`w`, `l`, `n`, `p`, `policy`, `candidates`; None when its evidence cannot be read) and
    `evidence`: by `report`, `traces` and `params` what of it could be derived again."""
    heads: tuple[str, ...]
    """Digests of the entries that the next one will name as parents."""


def gate_log(root: Path) -> GateLog:
    """Return every decision about the accepted pair, with what of its evidence holds.

    Raises:
        LedgerChainError: when the ledger does not verify.
    """
    corpus = Corpus(root)
    entries = corpus.chain.entries
    held = evidence_held(corpus)
    state = corpus.decisions
    standing = {one.digest for one in (state.accepted_by, state.model_by, state.frozen) if one is not None}
    rows = [
        _row(corpus, entry, held, in_force=entry.digest in standing)
        for entry in entries
        if entry.decision.kind in _KINDS
    ]
    return GateLog((*corpus.decisions.conflicts, *held.findings), tuple(rows), corpus.chain.heads)


def _row(corpus: Corpus, entry: Entry, held: Held, *, in_force: bool) -> dict[str, Any]:
    one = entry.decision
    row: dict[str, Any] = {
        "entry": entry.digest,
        "time": one.time,
        "kind": one.kind,
        "reason": one.reason,
        "parents": list(one.parents),
        "half": _half(entry),
        "what": _what(corpus, entry),
        "in_force": in_force,
    }
    if entry.digest in held.of:
        evidence = held.read.get(entry.digest)
        row["measured"] = None
        if evidence is not None:
            told = evidence.measured
            row["measured"] = {"w": told.w, "l": told.l, "n": told.n, "p": told.p}
            row["measured"] |= {"policy": evidence.policy, "candidates": evidence.candidates}
        row["evidence"] = dict(held.of[entry.digest])
    return row


def _half(entry: Entry) -> str | None:
    subject = entry.decision.subject
    if entry.decision.kind in JUDGED:
        return str(subject["half"])
    if entry.decision.kind == Kind.ACCEPT:
        return " and ".join(half for half in ("harness", "model") if subject.get(half) is not None)
    return "harness and model" if entry.decision.kind == Kind.ROLL_BACK else None


def _what(corpus: Corpus, entry: Entry) -> str:
    """Return in words what a decision is about."""
    subject, kind = entry.decision.subject, entry.decision.kind
    if kind == Kind.FREEZE:
        return f"{numbered(subject['count'], 'task')}, {numbered(subject['attempts'], 'attempt')} each"
    if kind == Kind.REJECT:
        return f"{_worded(corpus, subject['candidate'])}; {_worded(corpus, subject['incumbent'])} stays"
    if kind == Kind.INSTALL:
        return _worded(corpus, subject[subject["half"]])
    said = [_worded(corpus, subject[half]) for half in ("harness", "model") if half in subject]
    return " with ".join(said)


def _worded(corpus: Corpus, half: Any) -> str:
    if half is None:
        return "none"
    if isinstance(half, str):
        name = corpus.name_of(half)
        return f"{name} ({half[:16]})" if name else half[:16]
    return str(label(half))
