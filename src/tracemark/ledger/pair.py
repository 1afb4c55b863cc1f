"""The accepted pair, half by half: what the ledger's decisions make the accepted harness and the accepted model.

Invariants:
- each half is what the latest decision about it says; decisions about one half say nothing of the other, but for a
  `roll-back`, which sets both;
- concurrent decisions that disagree about a half accept neither, until the next decision about it;
- halves that two gates installed side by side both hold, since they do not disagree, and that no gate has judged them
  together is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tracemark import digest
from tracemark.findings import Finding, finding
from tracemark.ledger.chain import Chain
from tracemark.ledger.descent import Past, disagreement
from tracemark.ledger.entry import Entry
from tracemark.model.decision import Kind
from tracemark.model.trace import model_label

HALVES = ("harness", "model")
"""The two halves of the pair, as decisions name them."""

CONFLICTS = {"harness": "ledger-accept-conflict", "model": "ledger-model-conflict"}
"""Codes of the findings that decisions about a half disagree."""

_HINTS = {
    "harness": "tracemark harness accept NAME --reason TEXT",
    "model": "tracemark model accept NAME[@REVISION] --reason TEXT",
}


@dataclass(frozen=True, slots=True)
class AcceptedHalf:
    """One half of the accepted pair."""

    value: Any = None
    """A fingerprint, or a model with the members of `model.gate.ModelOf`; None when none is accepted, and while
    concurrent decisions disagree."""
    by: Entry | None = None
    """The decision that made it so; None when nobody has decided, and while decisions disagree."""


@dataclass(frozen=True, slots=True)
class AcceptedPair:
    """Both halves."""

    harness: AcceptedHalf
    """The accepted harness."""
    model: AcceptedHalf
    """The accepted model."""
    history: tuple[Entry, ...]
    """Every decision that set a half, in the order of the chain; a gate's name as `evidence` what it rests on."""
    conflicts: tuple[Finding, ...]
    """Where decisions disagree, or were never judged together."""


def accepted_pair(entries: Iterable[Entry], past: Past) -> AcceptedPair:
    """Return the accepted pair after some entries of a verified chain.

    Args:
        entries: all of a chain, or all from which one of its entries descends; in its order.
        past: which entry of that chain descends from which.
    """
    history = tuple(entry for entry in entries if any(sets(entry, half) for half in HALVES))
    halves: dict[str, AcceptedHalf] = {}
    conflicts = []
    for half in HALVES:
        latest = past.latest(entry for entry in history if sets(entry, half))
        if len({digest.canonical(entry.decision.subject.get(half)) for entry in latest}) > 1:
            halves[half] = AcceptedHalf()
            said = [(entry, _worded(entry.decision.subject.get(half))) for entry in latest]
            conflicts.append(disagreement(CONFLICTS[half], "ledger.jsonl", said, _HINTS[half]))
        elif latest:
            value = latest[0].decision.subject.get(half)
            halves[half] = AcceptedHalf(value, latest[0])
        else:
            halves[half] = AcceptedHalf()
    return AcceptedPair(halves["harness"], halves["model"], history, (*conflicts, *_unjudged(halves, past)))


def sets(entry: Entry, half: str) -> bool:
    """Return whether a decision says what a half of the accepted pair is."""
    kind, subject = entry.decision.kind, entry.decision.subject
    if kind == Kind.ACCEPT:
        return subject.get(half) is not None
    return (kind == Kind.INSTALL and subject["half"] == half) or kind == Kind.ROLL_BACK


def pair_after(chain: Chain, entry: Entry) -> AcceptedPair:
    """Return the accepted pair as it was right after an entry, for whoever had made it."""
    past = Past(chain)
    return accepted_pair([*past.before(entry), entry], past)


def pair_before(chain: Chain, entry: Entry) -> AcceptedPair:
    """Return the accepted pair as it was right before an entry, for whoever made it."""
    past = Past(chain)
    return accepted_pair(past.before(entry), past)


def installed_with(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the ids of the traces on which those of some entries rest that installed a candidate."""
    found: set[str] = set()
    for entry in entries:
        if entry.decision.kind == Kind.INSTALL:
            # whatever somebody wrote there: that it is no list of ids is a finding of whoever looks at evidence
            named = (entry.decision.evidence or {}).get("accepted_traces")
            found.update(one for one in (named if isinstance(named, list) else ()) if isinstance(one, str))
    return frozenset(found)


def label(model: Mapping[str, Any] | None) -> str | None:
    """Return a model as `params.yaml` names it, `NAME` or `NAME@REVISION`; None when there is none."""
    if model is None:
        return None
    return model_label(model.get("name") or "unknown", model.get("revision"))


def rejections(chain: Chain) -> list[Entry]:
    """Return the rejections that stand, in the order of the chain: those after which nobody accepted their candidate.

    A model is accepted by its label: of the rest the decisions about it may have known more or less.
    """
    past = Past(chain)
    taken: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in chain.entries:
        for half in HALVES:
            if sets(entry, half):
                taken[half, _named(entry.decision.subject.get(half))].append(entry)
    standing = []
    for entry in chain.entries:
        subject = entry.decision.subject
        if entry.decision.kind == Kind.REJECT:
            since = taken[subject["half"], _named(subject["candidate"])]
            if not any(past.descends(later, entry) for later in since):
                standing.append(entry)
    return standing


def _named(value: Any) -> str:
    return str(label(value) if isinstance(value, Mapping) else value)


def _worded(value: Any) -> str:
    """Return a half in words: all that is known of a model, since two may differ in what has no place in a label."""
    if not isinstance(value, Mapping):
        return str(value) if value is not None else "none"
    known = ", ".join(f"{name} {member}" for name, member in value.items() if member is not None)
    return f"model ({known or 'nothing known'})"


def _unjudged(halves: Mapping[str, AcceptedHalf], past: Past) -> list[Finding]:
    """Return the finding that gates installed the two halves side by side."""
    one, other = halves["harness"].by, halves["model"].by
    if one is None or other is None or not {one.decision.kind, other.decision.kind} <= {Kind.INSTALL}:
        return []
    if one is other or past.descends(one, other) or past.descends(other, one):
        return []
    message = (
        f"{one.digest[:12]} installed the harness and {other.digest[:12]} the model side by side, so no gate has "
        "judged the two together"
    )
    return [finding("ledger-pair-unjudged", "ledger.jsonl", message)]
