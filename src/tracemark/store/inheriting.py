"""What was decided of superseded traces, and holds for those that stand for them.

A trace that supersedes others is another reading of the same run, so what people decided of the run holds for it. That
is found when decisions are read: a decision may come after the reading, and by a merge.

Invariants:
- a trace's own decision beats what it inherits, and that of a nearer reading beats that of one further back;
- where decisions that are equally near differ, the trace inherits none of them: it is contested until somebody decides,
  and so is what supersedes a trace about which decisions differ;
- what is inherited is a decision like any other: held to the content of the trace that inherits it, and void where that
  excludes the harness.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracemark.store.catalogue import Reader
from tracemark.store.selection import Decisions


def inheriting(catalogues: Sequence[Reader], decisions: Decisions) -> Decisions:
    """Return the decisions with what the traces inherit that supersede settled ones.

    Args:
        catalogues: those that are asked which trace supersedes which, together.
        decisions: the ledger's, or those that this function returned.
    """
    decided = {bytes.fromhex(trace): frozenset({fingerprint}) for trace, fingerprint in decisions.stamps.items()}
    decided |= {bytes.fromhex(trace): fingerprints for trace, fingerprints in decisions.divided.items()}
    newer = _replacing(catalogues, decided) if decided else {}
    if not newer:
        return decisions
    # a decision that is void is one all the same: nothing that is further back takes its place
    own = decided.keys() | set(map(bytes.fromhex, decisions.void))
    stamps, divided = dict(decisions.stamps), dict(decisions.divided)
    for trace, nearest in _nearest(newer, own).items():
        values = frozenset[str | None]().union(*(decided[old] for old in nearest if old in decided))
        if trace in own or not values:
            continue
        if len(values) == 1:
            (stamps[trace.hex()],) = values
        else:
            divided[trace.hex()] = values
    return replace(decisions, stamps=stamps, divided=divided)


def inherited_from(catalogue: Reader, decided: Iterable[str], trace_id: str) -> set[str]:
    """Return those of the traces `decided` that a trace supersedes, directly or through others."""
    ids = {bytes.fromhex(trace) for trace in decided}
    newer = _replacing([catalogue], ids)
    return {old.hex() for old in ids & newer.keys() if bytes.fromhex(trace_id) in _after(newer, old)}


def decided_for(catalogue: Reader, decided: Iterable[str], trace_id: str) -> set[str]:
    """Return the readings that stand for a superseded trace, where a decision about it reaches none of them.

    So it is when each of them, or a reading between, was decided itself. Empty when a decision has an effect.

    Args:
        catalogue: the catalogue.
        decided: ids of the traces about which there are decisions.
        trace_id: the trace.
    """
    after = superseding([catalogue], [trace_id]).get(trace_id, set())
    replaced = superseding([catalogue], after)
    nearer = after.intersection(decided)
    apart = nearer.union(*(replaced.get(one, ()) for one in nearer))
    standing = after - replaced.keys()
    return standing if standing <= apart else set()


def superseding(catalogues: Sequence[Reader], ids: Iterable[str]) -> dict[str, set[str]]:
    """Return for each of `ids` that is superseded the ids of what supersedes it, directly or through others."""
    wanted = [bytes.fromhex(trace) for trace in ids]
    newer = _replacing(catalogues, wanted)
    return {old.hex(): {new.hex() for new in _after(newer, old)} for old in wanted if old in newer}


def _replacing(catalogues: Sequence[Reader], ids: Iterable[bytes]) -> dict[bytes, set[bytes]]:
    """Return for each of `ids` that is superseded, and for those that supersede it, and so on, what supersedes it."""
    found: dict[bytes, set[bytes]] = {}
    seen = waiting = set(ids)
    while waiting:
        reached: set[bytes] = set()
        for old, new in (pair for one in catalogues for pair in one.replacing(waiting)):
            found.setdefault(old, set()).add(new)
            reached.add(new)
        waiting = reached - seen
        seen = seen | reached
    return found


def _nearest(newer: dict[bytes, set[bytes]], own: Iterable[bytes]) -> dict[bytes, set[bytes]]:
    """Return, for each trace that supersedes some of `own`, those of them behind which no other of them stands."""
    after = {old: _after(newer, old) for old in own if old in newer}
    older: dict[bytes, set[bytes]] = {}
    for old, traces in after.items():
        for trace in traces:
            older.setdefault(trace, set()).add(old)
    return {
        trace: {old for old in olds if not any(other in after[old] and old not in after[other] for other in olds)}
        for trace, olds in older.items()
    }


def _after(newer: dict[bytes, set[bytes]], trace: bytes) -> set[bytes]:
    found: set[bytes] = set()
    waiting = deque(newer.get(trace, ()))
    while waiting:
        one = waiting.popleft()
        if one not in found:
            found.add(one)
            waiting.extend(newer.get(one, ()))
    return found - {trace}
