"""What people decide: accept a harness, retract a trace, take that back, settle whose a contested trace is.

Invariants:
- a decision is written to the ledger first, and what follows from it (`params.yaml: accepted`) after that. When a crash
  comes between the two, `check` names the command, and running it again completes the decision without a second entry;
- whatever can fail is done before the ledger is written, so that no error is told of what was decided;
- of two that decide at once in one corpus the second waits for the first: what is read to decide, and what is written,
  is under one lock. What comes into the ledger by another way meanwhile stands beside the decision, see `ledger.chain`;
- nothing is decided twice: what stands already gets no entry;
- no decision puts a trace under a harness that its content excludes: people settle what content leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store, place_of
from tracemark.acts.harnesses import placed
from tracemark.acts.provenance import content_in, worded
from tracemark.acts.pulled import resolve
from tracemark.clock import Clock
from tracemark.durable import lock, make_folder
from tracemark.errors import NegativeAnswerError
from tracemark.findings import Finding, Report, Severity, finding
from tracemark.harness import snapshot
from tracemark.harness.check import check
from tracemark.harness.equivalence import program
from tracemark.harness.match import Matcher
from tracemark.harness.names import NO_HARNESS
from tracemark.harness.version import Harness
from tracemark.ledger import chain, params
from tracemark.ledger.params_file import require_settable, set_accepted
from tracemark.model.decision import Kind
from tracemark.store.deciding import settling
from tracemark.store.layout import Layout
from tracemark.store.selection import State
from tracemark.store.state import of_harness
from tracemark.store.store import Store


@dataclass(frozen=True)
class Accepted(Report):
    """A harness was accepted."""

    name: str
    """Its label."""
    fingerprint: str
    """Its fingerprint."""
    source: str
    """Where its texts were read: its folder, relative to the corpus, or `snapshot`."""
    previous: str | None
    """Fingerprint of the harness accepted before; None when there was none."""
    entry: str
    """Digest of the ledger entry that holds the decision."""
    new_entry: bool
    """Whether the entry was written now; false when the decision stood already, with the reason given then."""


@dataclass(frozen=True)
class Decided(Report):
    """Traces were retracted, or reinstated."""

    kind: str
    """`retract` or `reinstate`."""
    standing: int
    """Traces named of which that was decided already; they get no second entry."""
    entries: dict[str, str]
    """Id of each trace of which it was decided now to the digest of its entry in the ledger."""


@dataclass(frozen=True)
class Settled(Report):
    """Under which harness traces count was decided."""

    kind: str
    """`stamp`."""
    name: str | None
    """Label of the harness under which they count now; None when it was settled that they count under none."""
    fingerprint: str | None
    """Its fingerprint; None likewise."""
    source: str | None
    """Where its texts were read: its folder, relative to the corpus, or `snapshot`; None likewise."""
    standing: int
    """Traces named that were settled so already; they get no second entry."""
    entries: dict[str, str]
    """Id of each trace that was settled now to the digest of its entry in the ledger."""


def accept(root: Path, name: str, reason: str, clock: Clock) -> Accepted:
    """Make a harness the accepted one: an entry in the ledger, then `params.yaml: accepted.harness`.

    Args:
        root: the corpus.
        name: label, fingerprint or the beginning of one.
        reason: why; not empty.
        clock: gives the entry its time.

    Raises:
        UnknownNameError: when nothing answers to `name`.
        NegativeAnswerError: when the harness has findings of severity error.
        ParamsError: when params.yaml cannot be read or changed; then nothing is written.
        IrregularFileError: when params.yaml or the ledger is a link out of the corpus; then nothing is written.
        UsageError: when the reason is empty.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    corpus = Corpus(root)
    harness = corpus.resolve(name)
    findings = (*(placed(found, harness) for found in check(harness)), *corpus.namesakes(name, harness))
    for found in findings:
        if found.severity is Severity.ERROR:
            raise NegativeAnswerError(
                f"{harness.name} has problems that must be mended first: {found.message}",
                where=found.where,
                hint=f"tracemark harness check {name}",
            )
    with turn(root) as corpus:
        return _accept(corpus, harness, findings, reason, clock)


@contextmanager
def turn(root: Path) -> Iterator[Corpus]:
    """Wait until nobody else decides; give the corpus as it stands then, for the time of a `with` block."""
    place = Layout(root).private / "decisions.lock"
    make_folder(place.parent)
    with lock(place, blocking=True):
        yield Corpus(root)


def _accept(corpus: Corpus, harness: Harness, findings: tuple[Finding, ...], reason: str, clock: Clock) -> Accepted:
    # read before anything is written, so that an unusable file stops the decision and not its second half
    stated = corpus.accepted
    fingerprint, previous = harness.fingerprint, corpus.decisions.harness
    require_settable(corpus.root / params.NAME, {"harness": fingerprint})
    findings += tuple(_same_program(corpus, harness, previous))
    entry = corpus.decisions.accepted_by
    new_entry = entry is None or previous != fingerprint
    if entry is None or new_entry:
        subject = {"harness": fingerprint, "label": harness.name}
        draft = chain.Draft(Kind.ACCEPT, subject, reason, {"components": dict(harness.identity.components)})
        entry = chain.append(corpus.root / chain.NAME, corpus.chain, draft, clock)
    if stated != fingerprint:
        set_accepted(corpus.root / params.NAME, fingerprint)
    return Accepted(findings, harness.name, fingerprint, place_of(harness), previous, entry.digest, new_entry)


def _same_program(corpus: Corpus, harness: Harness, previous: str | None) -> Iterator[Finding]:
    """Yield the finding that exports leave out traces of the harness accepted before, which is the same program."""
    before = corpus.by_fingerprint.get(previous or "")
    if before is None or previous in corpus.decisions.equivalent_to(harness.fingerprint):
        return
    if program(before) == program(harness):
        pair = f"{before.fingerprint[:16]} {harness.fingerprint[:16]}"
        message = (
            "it differs from the harness accepted before in comments and layout alone; exports take its traces only"
        )
        hint = f"tracemark harness equivalent {pair} --reason TEXT lets them take those of both"
        yield finding("accepted-alike", place_of(harness), message, hint)


def retract(root: Path, traces: Sequence[str], reason: str, clock: Clock) -> Decided:
    """Bar traces, and the raw records that hold them, from every export, each by an entry of its own.

    Args:
        root: the corpus.
        traces: ids or their beginnings; not empty.
        reason: why; not empty.
        clock: gives the entries their times.

    Raises:
        UnknownNameError: when no trace has an id that begins so; then none is retracted.
        NegativeAnswerError: when all are retracted already.
        UsageError: when the reason is empty.
    """
    return _decide(root, Kind.RETRACT, traces, reason, clock)


def reinstate(root: Path, traces: Sequence[str], reason: str, clock: Clock) -> Decided:
    """Lift the retraction of traces, each by an entry of its own; see `retract`.

    Raises:
        UnknownNameError: when no trace has an id that begins so; then none is reinstated.
        NegativeAnswerError: when none is retracted.
        UsageError: when the reason is empty.
    """
    return _decide(root, Kind.REINSTATE, traces, reason, clock)


def stamp(root: Path, traces: Sequence[str], harness: str, reason: str, clock: Clock) -> Settled:
    """Settle under which harness traces count, each by an entry of its own.

    Nothing is written unless all of them can be settled so.

    Args:
        root: the corpus.
        traces: ids or their beginnings; not empty.
        harness: label or fingerprint, or `none` for no harness.
        reason: why; not empty.
        clock: gives the entries their times.

    Raises:
        UnknownNameError: when one of the traces or the harness is not known.
        NegativeAnswerError: when all are settled so already, when the content of one excludes the harness, or when
            settling one would settle nothing: what statements dispute of it is not the harness, or the reading that
            stands for it was settled itself.
        IntegrityError: when the stored bytes of one are not those of the id.
        UsageError: when the reason is empty.
    """
    chain.require_reason(reason)
    Layout(root).require()
    with turn(root) as corpus, open_store(root) as store:
        chosen = None if harness == NO_HARNESS else corpus.resolve(harness)
        fingerprint = chosen.fingerprint if chosen is not None else None
        named = list(dict.fromkeys(resolve(corpus, store, trace) for trace in traces))
        # a decision that the content refutes settles nothing, and is refused for that when it is made again
        held = store.applied(corpus.store_decisions, named)
        # what branches disagree about is decided also where content leaves one of their decisions
        open_ones = corpus.decisions.divided.keys() | held.divided.keys()
        wanted = [one for one in named if one in open_ones or held.stamps.get(one, "") != fingerprint]
        if not wanted:
            what = "the trace is" if len(named) == 1 else f"the {len(named)} traces are"
            raise NegativeAnswerError(f"{what} settled so already", where=named[0], hint=_audit(named[0]))
        for trace_id in wanted:
            if trace_id not in open_ones:
                _require_disputed_harness(store, trace_id)
            # a decision that takes the place of what `check` names has that effect
            if trace_id not in corpus.decisions.divided and trace_id not in held.void:
                _require_effect(corpus, store, trace_id)
            if chosen is not None:
                _require_possible(store, trace_id, chosen)
        if chosen is not None:
            # its texts must be stored before anything counts under it
            store.commit_harness(chosen.fingerprint, snapshot.write(chosen))
        shared = tuple(corpus.namesakes(harness, chosen)) if chosen is not None else ()
        subjects = [{"trace": trace_id, "fingerprint": fingerprint} for trace_id in wanted]
        drafts = [chain.Draft(Kind.STAMP, subject, reason) for subject in subjects]
        entries = chain.append_all(root / chain.NAME, corpus.chain, drafts, clock)
    return Settled(
        findings=shared,
        kind=Kind.STAMP.value,
        name=chosen.name if chosen is not None else None,
        fingerprint=fingerprint,
        source=place_of(chosen) if chosen is not None else None,
        standing=len(named) - len(wanted),
        entries={trace_id: entry.digest for trace_id, entry in zip(wanted, entries, strict=True)},
    )


def _require_disputed_harness(store: Store, trace_id: str) -> None:
    """Make sure that statements about a contested trace dispute its harness, which is all that a stamp settles."""
    disputed = store.state(trace_id).conflicts
    if disputed and not any(map(of_harness, disputed)):
        raise NegativeAnswerError(
            f"a stamp settles whose the trace is, and nobody disputes that; disputed is {', '.join(disputed)}",
            where=trace_id,
            hint=settling(trace_id[:12], disputed),
        )


def _require_effect(corpus: Corpus, store: Store, trace_id: str) -> None:
    """Make sure that a decision about a superseded trace holds for one that stands for it."""
    newer = sorted(store.decided_for(corpus.decisions.stamps.keys() | corpus.decisions.divided.keys(), trace_id))
    if newer:
        raise NegativeAnswerError(
            f"a newer reading stands for the trace, and what was decided of that holds: {', '.join(newer)}",
            where=trace_id,
            hint=f"tracemark stamp {newer[0][:12]} --harness NAME|FINGERPRINT|none --reason TEXT",
        )


def _require_possible(store: Store, trace_id: str, harness: Harness) -> None:
    """Make sure that neither the content of a trace nor an earlier comparison with it excludes a harness."""
    content = content_in(digest.load_canonical(store.get(trace_id)))
    places: list[Mapping[str, Any]] = [place.as_json() for place in Matcher(harness).judge(content).contradictions]
    for said in store.statements([trace_id])[trace_id]:
        stamp = said.harness or {}
        declared = (stamp.get("declared") or {}).get("components") or {}
        if {name: part["digest"] for name, part in declared.items()} == dict(harness.identity.components):
            # an importer sees more of its source than the trajectory keeps
            places += stamp.get("contradictions") or []
    if places:
        raise NegativeAnswerError(
            f"the content excludes {harness.name}: {worded(places)}", where=trace_id, hint=_audit(trace_id)
        )


def _audit(trace_id: str) -> str:
    return f"tracemark audit {trace_id[:12]}"


def _decide(root: Path, kind: Kind, traces: Sequence[str], reason: str, clock: Clock) -> Decided:
    chain.require_reason(reason)
    Layout(root).require()
    with turn(root) as corpus, open_store(root) as store:
        named = list(dict.fromkeys(resolve(corpus, store, trace) for trace in traces))
        states = [store.state(trace_id, corpus.store_decisions) for trace_id in named]
        wanted = [state for state in states if state.retracted is not (kind is Kind.RETRACT)]
        if not wanted:
            what = "the trace is" if len(named) == 1 else f"the {len(named)} traces are"
            said = "retracted already" if kind is Kind.RETRACT else "not retracted"
            raise NegativeAnswerError(f"{what} {said}", where=named[0], hint=_audit(named[0]))
        drafts = [chain.Draft(kind, _with_records(store, state), reason) for state in wanted]
        entries = chain.append_all(root / chain.NAME, corpus.chain, drafts, clock)
    decided = {state.trace_id: entry.digest for state, entry in zip(wanted, entries, strict=True)}
    return Decided((), kind.value, len(named) - len(wanted), decided)


def _with_records(store: Store, state: State) -> dict[str, Any]:
    """Return a trace with the raw records that hold it, as the subject of a decision."""
    raw = state.row.raw_digest
    also = sorted(store.records_of_run(state.trace_id) - {raw})
    return {"trace": state.trace_id, **({"raw": raw} if raw else {}), **({"also": also} if also else {})}
