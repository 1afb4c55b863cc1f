"""What the ledger's decisions mean together.

A later decision replaces an earlier one only if it descends from it, that is, if whoever made it had seen it. Two
decisions of which neither had seen the other are concurrent: if they agree, both hold; if they disagree, neither does,
the disagreement is reported, and the next decision (which has both as ancestors) settles it. Times decide nothing.

Invariants:
- the state is a function of the set of entries: the order of lines in the file changes nothing;
- a retraction is monotone: only a `reinstate` that descends from it, and that names the same trace or the same raw
  record, lifts it; a retraction made beside a reinstatement stands;
- fingerprints count as one through declarations in force alone, and through any number of them: equivalence is
  symmetric and transitive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from tracemark import digest
from tracemark.findings import Finding
from tracemark.ledger.chain import Chain
from tracemark.ledger.descent import Past, disagreement
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import accepted_pair
from tracemark.model.decision import FreezeEvidence, Kind
from tracemark.words import first_few, numbered

_SHOWN = 5
_DIGITS = 12


class Retractions:
    """The retractions of traces in force, and what reinstatements take out of them.

    Args:
        chain: the verified ledger.
        past: which of its entries descends from which.
    """

    def __init__(self, chain: Chain, past: Past) -> None:
        self.in_force = _in_force(chain, past, _trace)
        """Trace id to the first retraction of it in force."""
        self._past = past
        self._made = _latest(chain, past, Kind.RETRACT, _trace)
        self._lifts = _latest(chain, past, Kind.REINSTATE, records_named)

    def spared(self, trace: str, records: Collection[str]) -> Iterator[str]:
        """Yield those of some raw records that the retraction of a trace does not bar.

        They were reinstated, as those of another reading of the run, by whoever had seen every retraction of the trace.
        A trace that is not retracted, or not any more, spares none.

        Args:
            trace: the trace's id.
            records: digests of raw records that hold it.
        """
        if trace in self.in_force:
            made = self._made[trace]
            for record in records:
                if any(all(self._past.descends(lift, one) for one in made) for lift in self._lifts.get(record, ())):
                    yield record


def _nothing_spared(_trace: str, _records: Collection[str]) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What holds after all entries of a ledger."""

    harness: str | None = None
    """Fingerprint of the accepted harness; None when none was accepted, or when concurrent acceptances disagree."""
    accepted_by: Entry | None = None
    """The entry that made it the accepted one; None when there is no such entry, or several disagree."""
    model: Mapping[str, Any] | None = None
    """The accepted model, with the members of `model.gate.ModelOf`; None when none was accepted, or when concurrent
    decisions disagree."""
    model_by: Entry | None = None
    """The entry that made it the accepted one; None likewise."""
    history: tuple[Entry, ...] = ()
    """Every decision that set a half of the accepted pair, in the order of the chain: who installed it, and with which
    evidence."""
    frozen: Entry | None = None
    """The `freeze` in force; None when the evaluation set was never frozen, or concurrent ones disagree."""
    freezes: tuple[Entry, ...] = ()
    """Every `freeze` that no later one replaced: several where branches froze side by side, agreeing or not."""
    retracted: Mapping[str, Entry] = field(default_factory=dict)
    """Trace id to the first retraction of it in force."""
    retracted_raw: Mapping[str, Entry] = field(default_factory=dict)
    """Digest of a raw record to the first retraction of it in force."""
    spared: Callable[[str, Collection[str]], Iterable[str]] = field(default=_nothing_spared, compare=False)
    """Tells which of the raw records that hold a trace its retraction does not bar, see `Retractions.spared`."""
    stamps: Mapping[str, str | None] = field(default_factory=dict)
    """Trace id to the fingerprint under which it was settled; None settles that it counts under none."""
    divided: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    """Trace id to the fingerprints, None for none, under which branches settled it that disagree; none of these traces
    is in `stamps`."""
    equivalents: tuple[frozenset[str], ...] = ()
    """Sets of fingerprints declared equivalent, directly or through others; disjoint, in a fixed order."""
    equivalences: tuple[Entry, ...] = ()
    """The declarations in force that join them, in the order of the chain."""
    half_withdrawn: tuple[frozenset[str], ...] = ()
    """What one branch declares equivalent and another has taken back; these do not count as one."""
    conflicts: tuple[Finding, ...] = ()
    """Concurrent decisions that disagree."""

    def equivalent_to(self, fingerprint: str) -> frozenset[str]:
        """Return the fingerprints that count as `fingerprint`, itself among them."""
        for group in self.equivalents:
            if fingerprint in group:
                return group
        return frozenset({fingerprint})

    def equivalences_of(self, fingerprint: str) -> list[Entry]:
        """Return the declarations through which others count as `fingerprint`, directly or through one another."""
        group = self.equivalent_to(fingerprint)
        return [entry for entry in self.equivalences if not group.isdisjoint(entry.decision.subject["fingerprints"])]


def state(chain: Chain) -> LedgerState:
    """Return what the entries of a verified chain mean together."""
    past = Past(chain)
    pair = accepted_pair(chain.entries, past)
    set_by = freezes_in_force(chain.entries, past)
    stamps, divided, disagreements = _stamps(chain, past)
    equivalences, disputed = _equivalences(chain, past)
    retractions = Retractions(chain, past)
    return LedgerState(
        harness=pair.harness.value,
        accepted_by=pair.harness.by,
        model=pair.model.value,
        model_by=pair.model.by,
        history=pair.history,
        frozen=set_by.frozen,
        freezes=set_by.latest,
        retracted=retractions.in_force,
        retracted_raw=_in_force(chain, past, records_named),
        spared=retractions.spared,
        stamps=stamps,
        divided=divided,
        equivalents=_joined(equivalences),
        equivalences=tuple(equivalences),
        half_withdrawn=tuple(disputed),
        conflicts=(*pair.conflicts, *set_by.conflicts, *disagreements, *map(_half_withdrawn, disputed.values())),
    )


class Freezes(NamedTuple):
    """Which freezes of the evaluation set hold."""

    frozen: Entry | None
    """The one in force; None when the set was never frozen, or concurrent ones disagree."""
    latest: tuple[Entry, ...]
    """All from which no other descends."""
    conflicts: tuple[Finding, ...]
    """The finding that they disagree; empty when they do not."""


def freezes_in_force(entries: Iterable[Entry], past: Past) -> Freezes:
    """Return which freezes hold after some entries of a chain; the arguments are those of `accepted_pair`."""
    latest = tuple(past.latest(entry for entry in entries if entry.decision.kind == Kind.FREEZE))
    subjects = [entry.decision.subject for entry in latest]
    if len(set(map(digest.canonical, subjects))) < 2:
        return Freezes(latest[0] if latest else None, latest, ())
    member = next(name for name in ("tasks", "attempts", "count") if len({one[name] for one in subjects}) > 1)
    said = [(entry, str(entry.decision.subject[member])) for entry in latest]
    if member == "tasks":
        named = {entry.digest: ids_of(entry) for entry in latest}
        shared = frozenset.intersection(*named.values())
        # where one names no ids, what the others have beside it is not known
        apart = {entry: ids - shared if all(named.values()) else frozenset() for entry, ids in named.items()}
        said = [(entry, _set(entry, sorted(apart[entry.digest]))) for entry in latest]
    return Freezes(None, latest, (disagreement("ledger-freeze-conflict", "ledger.jsonl", said),))


def evaluation_digest(evaluation: Iterable[str]) -> str:
    """Return the digest of an evaluation set: SHA-256 of the canonical JSON of its ids, sorted."""
    return digest.of(sorted(evaluation))


def ids_of(freeze: Entry) -> frozenset[str]:
    """Return the ids that a freeze names; none when it names none, or others than those of its digest."""
    try:
        named = FreezeEvidence.model_validate(freeze.decision.evidence).tasks
    except ValidationError:
        return frozenset()
    return frozenset(named) if evaluation_digest(named) == freeze.decision.subject["tasks"] else frozenset()


def _set(freeze: Entry, apart: list[str]) -> str:
    """Return what a freeze says of the set, with some of those ids that not every freeze has beside it."""
    subject = freeze.decision.subject
    count = subject["count"]
    said = f"{numbered(count, 'task')} ({subject['tasks'][:_DIGITS]})"
    return f"{said}, {first_few(map(repr, apart), _SHOWN)} among them" if apart else said


def _stamps(chain: Chain, past: Past) -> tuple[dict[str, str | None], dict[str, frozenset[str | None]], list[Finding]]:
    """Return what traces are settled under, under what branches settle the others, and findings about these."""
    by_trace: dict[str, list[Entry]] = defaultdict(list)
    for entry in chain.entries:
        if entry.decision.kind == Kind.STAMP:
            by_trace[entry.decision.subject["trace"]].append(entry)
    settled: dict[str, str | None] = {}
    divided: dict[str, frozenset[str | None]] = {}
    conflicts = []
    for trace, entries in by_trace.items():
        latest = past.latest(entries)
        values = {entry.decision.subject["fingerprint"] for entry in latest}
        if len(values) == 1:
            settled[trace] = values.pop()
        else:
            divided[trace] = frozenset(values)
            hint = f"tracemark stamp {trace[:12]} --harness NAME|FINGERPRINT|none --reason TEXT"
            said = [(entry, entry.decision.subject["fingerprint"] or "none") for entry in latest]
            conflicts.append(disagreement("ledger-stamp-conflict", f"trace {trace[:12]}", said, hint))
    return settled, divided, conflicts


def records_named(subject: Mapping[str, Any]) -> list[str]:
    """Return the digests of the raw records that the subject of a `retract` or a `reinstate` names."""
    raw = subject.get("raw")
    return [*([] if raw is None else [raw]), *(subject.get("also") or ())]


def _trace(subject: Mapping[str, Any]) -> list[str]:
    return [subject["trace"]]


def _in_force(chain: Chain, past: Past, named: Callable[[Mapping[str, Any]], list[str]]) -> dict[str, Entry]:
    """Return what the subjects of retractions name and no reinstatement lifted, each with its first retraction."""
    lifts = _latest(chain, past, Kind.REINSTATE, named)
    barred: dict[str, Entry] = {}
    for entry in chain.entries:
        if entry.decision.kind == Kind.RETRACT:
            for name in named(entry.decision.subject):
                if name not in barred and not any(past.descends(lift, entry) for lift in lifts.get(name, ())):
                    barred[name] = entry
    return barred


def _latest(
    chain: Chain, past: Past, kind: Kind, named: Callable[[Mapping[str, Any]], list[str]]
) -> dict[str, list[Entry]]:
    """Return for what the subjects of one kind of entries name the latest of these.

    What descends from these descends from all of them, and if one of them descends from an entry, so does one of these.
    """
    about: dict[str, list[Entry]] = defaultdict(list)
    for entry in chain.entries:
        if entry.decision.kind == kind:
            for name in named(entry.decision.subject):
                about[name].append(entry)
    return {name: past.latest(entries) for name, entries in about.items()}


def _equivalences(chain: Chain, past: Past) -> tuple[list[Entry], dict[frozenset[str], list[Entry]]]:
    """Return the declarations of equivalence in force, and what branches disagree about with their newest entries."""
    about: dict[frozenset[str], list[Entry]] = defaultdict(list)
    for entry in chain.entries:
        if entry.decision.kind in (Kind.EQUIVALENT, Kind.DISTINCT):
            about[frozenset(entry.decision.subject["fingerprints"])].append(entry)
    held: set[str] = set()
    disputed = {}
    for fingerprints, entries in about.items():
        latest = past.latest(entries)
        kinds = {entry.decision.kind for entry in latest}
        if kinds == {Kind.EQUIVALENT}:
            held.update(entry.digest for entry in latest)
        elif len(kinds) > 1:
            disputed[fingerprints] = latest
    return [entry for entry in chain.entries if entry.digest in held], disputed


def _half_withdrawn(latest: list[Entry]) -> Finding:
    fingerprints = sorted(latest[0].decision.subject["fingerprints"])
    said = [(entry, entry.decision.kind) for entry in latest]
    hint = f"tracemark harness equivalent {fingerprints[0][:16]} {fingerprints[1][:16]} --reason TEXT [--withdraw]"
    where = " ".join(name[:16] for name in fingerprints)
    return disagreement("ledger-equivalent-conflict", where, said, hint, "these do not count as one")


def _joined(equivalences: Iterable[Entry]) -> tuple[frozenset[str], ...]:
    group_of: dict[str, set[str]] = {}
    for entry in equivalences:
        groups = [group_of.setdefault(one, {one}) for one in entry.decision.subject["fingerprints"]]
        # the smaller ones join the largest, so that no long row of declarations is walked once for each
        largest = max(groups, key=len)
        for group in groups:
            if group is not largest:
                largest |= group
                group_of.update(dict.fromkeys(group, largest))
    apart = {id(group): group for group in group_of.values()}
    return tuple(sorted(map(frozenset, apart.values()), key=sorted))
