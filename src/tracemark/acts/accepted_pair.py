"""The accepted pair by hand: accept a model, roll back to an earlier pair.

Invariants:
- the ledger is written first, and `params.yaml: accepted` after it; running the command again finishes what was cut
  short, without a second entry. Whatever else can fail is done before, so that no error is told of what was decided
  and whoever repeats the command goes no step too far;
- while the two differ, `previous` means no pair that nobody asked for: a roll-back that was cut short is finished, and
  of another decision it is said what finishes it, since the pair before it may be meant, or the one before that;
- nothing is decided twice: what stands already gets no entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.decisions import turn
from tracemark.acts.evaluation import AskedModel, Evaluations, as_half, named_model, why_left_out
from tracemark.clock import Clock
from tracemark.errors import NegativeAnswerError, NoStoreError, TracemarkError, UnknownNameError, UsageError
from tracemark.findings import Finding, Report, finding
from tracemark.gates.cell import Model
from tracemark.gates.refusal import digits
from tracemark.harness.names import SHORTEST
from tracemark.ledger import chain, params
from tracemark.ledger.descent import Past
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import CONFLICTS, HALVES, AcceptedPair, label, pair_after, pair_before
from tracemark.ledger.params_file import require_settable, set_accepted, set_pair
from tracemark.model.decision import Kind

PREVIOUS = "previous"
"""What stands for the pair before the present one."""


@dataclass(frozen=True)
class ModelAccepted(Report):
    """A model was accepted."""

    model: str
    """It, as params.yaml names it: `NAME` or `NAME@REVISION`."""
    members: dict[str, Any]
    """All that is known of it; a member is None where nobody says, or evaluation traces disagree."""
    previous: str | None
    """The model accepted before; None when there was none."""
    entry: str
    """Digest of the ledger entry that holds the decision."""
    new_entry: bool
    """Whether the entry was written now; false when the decision stood already, with the reason given then."""


@dataclass(frozen=True)
class RolledBack(Report):
    """The pair is what it was after an earlier decision."""

    harness: str | None
    """Fingerprint of the accepted harness; None when none is."""
    name: str | None
    """Its label; None when no known harness has the fingerprint."""
    model: str | None
    """The accepted model; None when none is."""
    previous: dict[str, str | None]
    """`harness` and `model` as they were accepted before."""
    to: str
    """Digest of the entry after which the pair was this one."""
    entry: str
    """Digest of the ledger entry that holds the decision."""
    new_entry: bool
    """Whether the entry was written now; false when the ledger had decided it, and params.yaml did not say so yet."""


def accept_model(root: Path, name: str, reason: str, clock: Clock) -> ModelAccepted:
    """Make a model the accepted one: an entry in the ledger, then `params.yaml: accepted.model`.

    What is accepted is, beside the name, all on which its evaluation traces under any harness agree.

    Args:
        root: the corpus.
        name: `NAME` or `NAME@REVISION`.
        reason: why; not empty.
        clock: gives the entry its time.

    Raises:
        ParamsError: when params.yaml cannot be read or changed; then nothing is written.
        IntegrityError: when one of its evaluation traces is damaged; then nothing is written.
        IrregularFileError: when params.yaml or the ledger is a link out of the corpus; then nothing is written.
        UsageError: when the reason or the name is empty, or evaluation traces read the name in two ways.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    if not name.strip() or not name.isprintable():
        raise UsageError("this names no model", where=repr(name), hint="name it NAME or NAME@REVISION")
    with turn(root) as corpus:
        stated = corpus.params.accepted.model
        members, entry = corpus.decisions.model, corpus.decisions.model_by
        previous, found = label(members), None
        # what the ledger decided and params.yaml does not say yet is finished, and not decided again
        standing = entry is not None and previous == name != stated
        if not standing:
            found = _evaluated(corpus, name)
            known = as_half(_agreed(found, name))
            standing = entry is not None and members == known
            members = known
        require_settable(corpus.root / params.NAME, {"model": label(members)})
        if entry is None or not standing:
            draft = chain.Draft(Kind.ACCEPT, {"model": members}, reason)
            entry = chain.append(corpus.root / chain.NAME, corpus.chain, draft, clock)
        if stated != label(members):
            set_accepted(corpus.root / params.NAME, label(members), "model")
        findings = tuple(_named_otherwise(name, members, found))
    return ModelAccepted(findings, str(label(members)), dict(members or {}), previous, entry.digest, not standing)


def _evaluated(corpus: Corpus, name: str) -> set[Model]:
    """Return every model that a name means, as its evaluation traces name it.

    Raises:
        UsageError: when these part the name in two ways: `a@1` is a model's name, and `a` one whose revision is `1`.
    """
    try:
        with open_store(corpus.root) as store, store.unchanging():
            evaluations, asked = Evaluations(corpus, store), AskedModel(name)
            _require_one_reading(evaluations, asked)
            return evaluations.models(asked)
    except NoStoreError:
        return set()


def _require_one_reading(evaluations: Evaluations, asked: AskedModel) -> None:
    readings: dict[str, tuple[str, list[str]]] = {}
    for state in evaluations.states:
        if why_left_out(state) is None and asked.means(state.row):
            revision = f"revision {state.row.revision!r}" if state.row.revision else "no revision"
            readings.setdefault(str(state.row.model), (revision, []))[1].append(state.trace_id)
    if len(readings) > 1:
        said = "; ".join(
            f"name {model!r}, {revision} ({digits(traces)})" for model, (revision, traces) in sorted(readings.items())
        )
        raise UsageError(
            f"evaluation traces read this as {len(readings)} models: {said}",
            where=asked.label,
            hint="retract the runs whose record names the model wrongly (tracemark retract TRACE --reason TEXT), and "
            "accept it again; a record whose model has `name` and `revision` apart is read in one way",
        )


def _agreed(models: set[Model], name: str) -> Model:
    """Return what all evaluation traces of a model agree about; only its name and revision where there are none."""
    if not models:
        return named_model(name)
    members = zip(*models, strict=True)
    return Model(*(said[0] if len(set(said)) == 1 else None for said in members))


def _named_otherwise(name: str, members: Any, models: set[Model] | None) -> list[Finding]:
    """Return what whoever accepts a model should know of its name.

    Args:
        name: what it was called.
        members: what was accepted.
        models: what its evaluation traces name; None where nobody looked, since it was accepted already.
    """
    if models is not None and not models:
        return [finding("model-unevaluated", name, "no evaluation trace that counts is of this model")]
    revisions = sorted({str(one) for one in models or ()})
    if len(revisions) > 1:
        message = f"its evaluation traces are of several revisions: {', '.join(revisions)}"
        return [finding("model-revisions", name, message)]
    if label(members) == name:
        return []
    return [finding("model-revision", name, f"all its evaluation traces are of {label(members)}, and that is accepted")]


def rollback(root: Path, to: str, reason: str, clock: Clock) -> RolledBack:
    """Make the accepted pair what it was right after an earlier decision.

    It is done also where evaluation traces of the model that is brought back are damaged; that is told.

    Args:
        root: the corpus.
        to: the entry, by the beginning of its digest; or `previous` for the pair before the present one, or for that of
            a roll-back that params.yaml does not say yet.
        reason: why; not empty.
        clock: gives the entry its time.

    Raises:
        UnknownNameError: when no entry has a digest that begins so.
        NegativeAnswerError: when the pair was the present one then, or there is none before it.
        UsageError: when the reason is empty, several decisions made the present pair side by side, or params.yaml does
            not say yet what was decided last, which is no roll-back.
        ParamsError: when params.yaml cannot be read or changed; then nothing is written.
        IrregularFileError: when params.yaml or the ledger is a link out of the corpus; then nothing is written.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    with turn(root) as corpus:
        stated, now = corpus.params.accepted, corpus.decisions
        target, pair = _target(corpus, to)
        harness, model = pair.harness.value, pair.model.value
        halves = {"harness": harness, "model": label(model)}
        for problem in pair.conflicts:
            if problem.code in CONFLICTS.values():
                message = f"no pair was accepted then: {problem.message}"
                raise UsageError(message, where=target.digest[:12], hint=_LOG)
        written = {"harness": stated.harness, "model": stated.model} == halves
        entry = next(iter(_made_by(corpus)), None)
        standing = (harness, model) == (now.harness, now.model) and not _undecided(corpus)
        if standing and written:
            raise NegativeAnswerError("the pair is the same as it was then", where=target.digest[:12], hint=_LOG)
        # whatever can fail comes before the ledger: an error would have it repeated, and `previous` go one pair too far
        require_settable(root / params.NAME, halves)
        before = {"harness": now.harness, "model": label(now.model)}
        told = _told_back(corpus, model) if halves["model"] not in (None, before["model"]) else []
        # of a roll-back that is finished, the pair before it stands in params.yaml alone
        had = {"harness": before["harness"] or stated.harness, "model": before["model"] or stated.model}
        told += _emptied(corpus, {half: had[half] for half in HALVES if halves[half] is None}, standing=standing)
        name = corpus.name_of(harness)
        if entry is None or not standing:
            subject = {"harness": harness, "model": model, "to": target.digest}
            entry = chain.append(root / chain.NAME, corpus.chain, chain.Draft(Kind.ROLL_BACK, subject, reason), clock)
        if not written:
            set_pair(root / params.NAME, halves)
    return RolledBack(
        findings=tuple(told),
        harness=harness,
        name=name,
        model=halves["model"],
        previous=before,
        to=target.digest,
        entry=entry.digest,
        new_entry=not standing,
    )


def _told_back(corpus: Corpus, model: Any) -> list[Finding]:
    """Return of a model that is brought back what whoever accepts it is told, as far as its traces can be read."""
    name = str(label(model))
    try:
        return _named_otherwise(name, model, _evaluated(corpus, name))
    except TracemarkError as error:
        # a pair that fails in use is gone back from at once, and not when the store is mended
        message = f"what its evaluation traces name cannot be told: {error.message}"
        return [finding("model-unread", name, message, error.hint)]


def _emptied(corpus: Corpus, had: dict[str, str | None], *, standing: bool) -> list[Finding]:
    """Return the warnings that a half of the pair is accepted no more, since none was accepted yet then.

    Args:
        corpus: the corpus.
        had: by half of which none is accepted from now on, what was accepted before.
        standing: whether the ledger has decided it already.
    """
    made = _made_by(corpus)
    to = made[0].digest[:12] if len(made) == 1 and not standing else "ENTRY"
    found = []
    for half, was in had.items():
        if was is not None:
            name = corpus.name_of(was) or was if half == "harness" else was
            back = f"tracemark gate rollback --to {to} --reason TEXT"
            hint = f"{back}, or tracemark {half} accept NAME --reason TEXT; {_LOG}"
            message = f"no {half} is accepted from now on, as none was then; {name} was"
            found.append(finding("half-unaccepted", f"params.yaml: accepted.{half}", message, hint))
    return found


_LOG = "tracemark gate log shows the decisions"


def _target(corpus: Corpus, to: str) -> tuple[Entry, AcceptedPair]:
    """Return the entry that is meant, and the pair right after it."""
    if to != PREVIOUS:
        entry = find_entry(corpus, to)
        return entry, pair_after(corpus.chain, entry)
    for problem in _undecided(corpus):
        raise UsageError(problem.message, where=problem.where, hint=f"name an entry; {_LOG}")
    latest = _made_by(corpus)
    if not latest:
        raise NegativeAnswerError("no pair was accepted yet, so there is none before it", hint=_LOG)
    if len(latest) > 1:
        named = ", ".join(one.digest[:12] for one in latest)
        raise UsageError(
            f"two decisions made the present pair side by side: {named}", where="--to", hint=f"name an entry; {_LOG}"
        )
    if open_ends := _open_ends(corpus):
        if latest[0].decision.kind == Kind.ROLL_BACK:
            return _gone_back_to(corpus, latest[0]) or latest[0], pair_after(corpus.chain, latest[0])
        message = f"the last decision was cut short, or params.yaml was edited: {open_ends[0].message}"
        raise UsageError(message, where=open_ends[0].where, hint=f"{open_ends[0].hint}; or name an entry, {_LOG}")
    last = _origin(corpus, latest[0])
    before = pair_before(corpus.chain, last)
    if not before.history:
        raise NegativeAnswerError("there is no pair before the present one", where=last.digest[:12], hint=_LOG)
    return before.history[-1], before


def _made_by(corpus: Corpus) -> list[Entry]:
    """Return the decision that made the present pair what it is: the latest of its halves', or both made side by side.

    Empty when no half was decided on.
    """
    made = [one for one in (corpus.decisions.accepted_by, corpus.decisions.model_by) if one is not None]
    return list({one.digest: one for one in Past(corpus.chain).latest(made)}.values())


def _open_ends(corpus: Corpus) -> list[Finding]:
    """Return where params.yaml does not say what the ledger decided."""
    return [*corpus.acceptance_findings(), *corpus.model_findings()]


def _undecided(corpus: Corpus) -> list[Finding]:
    return [one for one in corpus.decisions.conflicts if one.code in CONFLICTS.values()]


def _origin(corpus: Corpus, entry: Entry) -> Entry:
    """Return the entry that made a pair, where one rolled back to it: going back twice goes on and not to and fro."""
    while (earlier := _gone_back_to(corpus, entry)) is not None:
        entry = earlier
    return entry


def _gone_back_to(corpus: Corpus, entry: Entry) -> Entry | None:
    """Return the entry to whose pair one rolled back; None for another decision, or where that entry is not there."""
    to = entry.decision.subject["to"] if entry.decision.kind == Kind.ROLL_BACK else None
    return next((one for one in corpus.chain.entries if one.digest == to), None)


def find_entry(corpus: Corpus, prefix: str) -> Entry:
    """Return the one ledger entry whose digest begins with `prefix`.

    Raises:
        UnknownNameError: when none does.
        UsageError: when several do, or it is too short to name one.
    """
    if len(prefix) < SHORTEST:
        raise UsageError(f"{prefix!r} is too short: at least {SHORTEST} digits are needed", where="--to", hint=_LOG)
    found = [entry for entry in corpus.chain.entries if entry.digest.startswith(prefix)]
    if len(found) > 1:
        raise UsageError(f"{prefix!r} may mean {len(found)} entries", where="--to", hint="name more digits")
    if not found:
        raise UnknownNameError(f"no ledger entry has a digest that begins with {prefix!r}", where="--to", hint=_LOG)
    return found[0]
