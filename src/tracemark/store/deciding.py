"""What decisions come to, given what is stored.

The ledger says what people decided; here that meets the store, and a decision that came in by another way than the
verbs (a merge of branches, an edit) is held to the rules that these keep.

Invariants:
- no decision puts a trace under a harness that the content refutes, be it that a statement in force says so or that
  comparing the stored content shows it: such a decision is void, and the trace stands as its statements have it, but
  never under that harness;
- of decisions about one trace that differ none holds, unless what the content refutes leaves one;
- a decision about a trace that another one supersedes holds for that as well, see `inheriting`;
- a retraction bars a run, however often it was read: every record that holds the trace, and every trace that any
  importer version made of one of these, also where that came to be known later. What was reinstated since is spared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from tracemark.store.catalogue import Reader, Restated, Stored
from tracemark.store.inheriting import inheriting
from tracemark.store.layout import Layout
from tracemark.store.row import trajectory_of
from tracemark.store.segment import read_lines
from tracemark.store.selection import Decisions, Excludes, Spared
from tracemark.store.state import Statement, harness_named, of_harness
from tracemark.store.statements import statements


def settling(trace: str, conflicts: Collection[str]) -> str:
    """Return in words what can be done about a contested trace.

    Args:
        trace: its id, cut short, or what stands for the ids of several.
        conflicts: what statements dispute and nobody has decided.
    """
    steps = [f"tracemark audit {trace} shows what each source says"]
    if any(map(of_harness, conflicts)):
        steps.append(f"tracemark stamp {trace} --harness NAME|FINGERPRINT|none --reason TEXT settles the harness")
    if not all(map(of_harness, conflicts)):
        steps.append(
            "nothing settles a disputed outcome or run, so such a trace stays out of every export;"
            f" tracemark retract {trace} --reason TEXT records that"
        )
    return "; ".join(steps)


def applied(catalogue: Reader, layout: Layout, decisions: Decisions, about: Collection[str] | None = None) -> Decisions:
    """Return the decisions as far as they hold; to be called while no restated row is stale.

    Args:
        catalogue: the catalogue.
        layout: the corpus.
        decisions: the ledger's, or those that this function returned.
        about: ids of the only traces about which anybody will ask; what settles others is left out. None for all.

    Raises:
        IntegrityError: when a file that holds a statement, or a line, which must be read is damaged.
    """
    decisions = inheriting([catalogue], barring(catalogue, decisions))
    if about is not None:
        settled = {trace: decisions.stamps[trace] for trace in about if trace in decisions.stamps}
        open_ones = {trace: decisions.divided[trace] for trace in about if trace in decisions.divided}
        decisions = replace(decisions, stamps=settled, divided=open_ones)
    decisions = undivided(decisions, lambda stamps: refuted(catalogue, layout, stamps, decisions.excludes))
    stamps = decisions.stamps
    void = {**decisions.void, **refuted(catalogue, layout, stamps, decisions.excludes)}
    stamps = {k: v for k, v in stamps.items() if k not in void} if void else stamps
    # what is left of the stamps was held against the content, and need not be again
    return replace(decisions, stamps=stamps, void=void, excludes=None)


def undivided(decisions: Decisions, refuting: Callable[[Mapping[str, str | None]], Iterable[str]]) -> Decisions:
    """Return the decisions without those that differ and that the content refutes; where one is left, it holds.

    Args:
        decisions: the ledger's, with what is inherited.
        refuting: returns of some decisions (trace id to fingerprint) the traces whose content refutes them.
    """
    left = {trace: set(fingerprints) for trace, fingerprints in decisions.divided.items()}
    for fingerprint in {one for said in decisions.divided.values() for one in said if one is not None}:
        for trace in refuting({k: fingerprint for k, said in decisions.divided.items() if fingerprint in said}):
            left[trace].discard(fingerprint)
    settled = {trace: said.pop() for trace, said in left.items() if len(said) == 1}
    open_ones = {trace: frozenset(said) for trace, said in left.items() if trace not in settled}
    return replace(decisions, stamps={**decisions.stamps, **settled}, divided=open_ones) if left else decisions


def holds(
    catalogue: Reader,
    layout: Layout,
    found: tuple[Stored, Restated | None],
    fingerprint: str | None,
    excludes: Excludes | None,
) -> bool:
    """Return whether the content leaves room for the decision that puts one trace under a harness.

    Args:
        catalogue: the catalogue, in which no restated row is stale.
        layout: the corpus.
        found: the trace's first statement, and how later ones changed it.
        fingerprint: that of the harness; None for a trace that is to have none.
        excludes: what compares content with a harness; None leaves it to what statements say.

    Raises:
        IntegrityError: when a file that holds a statement, or the line of the trace, is damaged.
    """
    if fingerprint is None:
        return True
    stored, restated = found
    suspects = [stored.row.id] if _contradicted(stored, restated) else []
    return not _refuted(catalogue, layout, {stored.row.trace_id: fingerprint}, excludes, suspects)


def records_of_run(catalogue: Reader, trace: bytes) -> set[bytes]:
    """Return the digests of all records that are known to hold the run of a trace.

    They are those that hold it, and those that hold a trace that an importer version made of one of them.
    """
    return _reached(catalogue, {trace}, set())[1]


def refuted_by(said: Sequence[Statement]) -> set[str]:
    """Return the fingerprints of the harnesses that `said` names and the content refutes."""
    stamps = [statement.harness for statement in said if statement.harness]
    named = {harness_named(stamp) for stamp in stamps if stamp.get("contradictions")}
    return {fingerprint for fingerprint in named if fingerprint is not None}


def refuted(
    catalogue: Reader,
    layout: Layout,
    stamps: Mapping[str, str | None],
    excludes: Excludes | None,
    *,
    lagging: bool = False,
) -> dict[str, str]:
    """Return those of the decisions `stamps` (trace id to fingerprint) whose harness the content refutes.

    Args:
        catalogue: the catalogue.
        layout: the corpus.
        stamps: the decisions.
        excludes: what compares content with a harness; None leaves it to what statements say.
        lagging: whether restated rows may be stale, so that nothing but the statements tells what is refuted.

    Raises:
        IntegrityError: when a file that holds a statement, or a line, which must be read is damaged.
    """
    ids = [bytes.fromhex(trace) for trace, fingerprint in stamps.items() if fingerprint is not None]
    if lagging or not ids:
        return _refuted(catalogue, layout, stamps, excludes, ids)
    # few traces are settled, and of fewer does anybody say that the content refutes something
    suspects = [s.row.id for s, restated, _ in catalogue.select(None, ids) if _contradicted(s, restated)]
    return _refuted(catalogue, layout, stamps, excludes, suspects)


def _refuted(
    catalogue: Reader,
    layout: Layout,
    stamps: Mapping[str, str | None],
    excludes: Excludes | None,
    suspects: Collection[bytes],
) -> dict[str, str]:
    """Return those of `stamps` that a statement about one of the traces `suspects` refutes, or else comparing does."""
    found = _refuted_by_statement(catalogue, layout, stamps, suspects)
    if excludes is None:
        return found
    others = {trace: fingerprint for trace, fingerprint in stamps.items() if trace not in found}
    return found | _refuted_by_content(catalogue, layout, others, excludes)


def _refuted_by_content(
    catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None], excludes: Excludes
) -> dict[str, str]:
    found = {}
    decided = [bytes.fromhex(trace) for trace, fingerprint in stamps.items() if fingerprint is not None]
    ordered = sorted(catalogue.lookup(decided), key=lambda one: one[1:]) if decided else []
    for file, group in groupby(ordered, key=lambda one: one.file):
        places = list(group)
        lines = read_lines(layout.path(file), [one.location for one in places])
        for stored, line in zip(places, lines, strict=True):
            trace, fingerprint = stored.row.trace_id, stamps[stored.row.trace_id] or ""
            trajectory_of(line, trace)
            if excludes(fingerprint, line):
                found[trace] = fingerprint
    return found


def _refuted_by_statement(
    catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None], ids: Collection[bytes]
) -> dict[str, str]:
    found = {}
    for identity, said in statements(catalogue, layout, ids).items():
        fingerprint = stamps[identity.hex()]
        if fingerprint is not None and fingerprint in refuted_by(said):
            found[identity.hex()] = fingerprint
    return found


def barring(catalogue: Reader, decisions: Decisions) -> Decisions:
    """Return the decisions with every trace and record that a retraction reaches."""
    if not decisions.retracted and not decisions.retracted_records:
        return decisions
    traces = {bytes.fromhex(trace) for trace in decisions.retracted}
    records = {bytes.fromhex(raw) for raw in decisions.retracted_records}
    reached = _reached(catalogue, traces, records, decisions.spared)
    barred, raws = (frozenset(one.hex() for one in found) for found in reached)
    return replace(decisions, retracted=barred, retracted_records=raws)


def _reached(
    catalogue: Reader, traces: set[bytes], records: set[bytes], spared: Spared | None = None
) -> tuple[set[bytes], set[bytes]]:
    """Return the traces and records that are reached from those given: from a trace to its records, and back."""
    new_traces, new_records = traces, records
    while new_traces or new_records:
        held = catalogue.records(new_traces)
        new_records = new_records.union(*(_barred(trace, raws, spared) for trace, raws in held.items()))
        made = {stored.row.id for stored in catalogue.lookup_raw(new_records)}
        records = records | new_records
        new_traces, new_records = made - traces, set()
        traces = traces | new_traces
    return traces, records


def _barred(trace: bytes, raws: set[bytes], spared: Spared | None) -> set[bytes]:
    """Return those of the records that hold a trace that are retracted with it."""
    if spared is None:
        return raws
    return raws.difference(map(bytes.fromhex, spared(trace.hex(), [raw.hex() for raw in raws])))


def _contradicted(stored: Stored, restated: Restated | None) -> bool:
    return bool((restated.fields if restated else {}).get("contradicted", stored.row.contradicted))
