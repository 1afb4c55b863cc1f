"""`gate freeze`: keep the evaluation set as it is, and tell what stored runs show of it.

Ids that are not one to one with tasks, tasks in a training export, and runs made before it, are told and stand not
against the freeze: gates refuse what they cannot tell apart or what was trained on, and a set may be frozen late for
good reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tracemark.acts.decisions import turn
from tracemark.acts.evaluation_set import evidence_of, released
from tracemark.acts.leaks import leaks_shown
from tracemark.clock import Clock
from tracemark.errors import NegativeAnswerError, UsageError
from tracemark.exporters.evaluation import composed, meanings, qualified, unmatched
from tracemark.findings import Finding, Report, finding
from tracemark.gates.same_set import not_one_to_one
from tracemark.ledger import chain
from tracemark.ledger.params import NAME
from tracemark.ledger.state import evaluation_digest
from tracemark.model.decision import Kind
from tracemark.store.disputes import stored_tasks
from tracemark.store.layout import Layout
from tracemark.words import first_few, numbered


@dataclass(frozen=True)
class Frozen(Report):
    """The evaluation set is frozen."""

    tasks: int
    """How many ids it has."""
    digest: str
    """Its digest: SHA-256 of the canonical JSON of its ids, sorted."""
    attempts: int
    """Attempts at each task that gates ask for."""
    previous: str | None
    """Digest of the set that was frozen before; None when none was."""
    entry: str
    """Digest of the ledger entry that holds the decision."""


def freeze(root: Path, reason: str, clock: Clock) -> Frozen:
    """Keep the evaluation set as it is: gates refuse to judge on another one.

    What stored runs show of it is told, such as that results at its tasks could be seen; nothing of it refuses.

    Args:
        root: the corpus.
        reason: why; not empty.
        clock: gives the entry its time.

    Raises:
        UsageError: when the reason is empty, or params.yaml lists no evaluation task.
        NegativeAnswerError: when this very set is frozen already.
        ParamsError: when params.yaml cannot be read.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    with turn(root) as corpus:
        read = corpus.params
        if not read.evaluation:
            hint = "list the tasks under evaluation.tasks"
            raise UsageError("there is no evaluation set to freeze", where="params.yaml: evaluation.tasks", hint=hint)
        subject = {
            "tasks": evaluation_digest(corpus.params.evaluation),
            "count": len(read.evaluation),
            "attempts": read.evaluation_attempts,
        }
        before = corpus.decisions.frozen
        if before is not None and before.decision.subject == subject:
            raise NegativeAnswerError(
                "this set is frozen already", where=before.digest[:12], hint="tracemark gate log shows it"
            )
        layout = Layout(root)
        # before anything is stored there is no catalogue either, and nobody need be told
        tasks, findings = stored_tasks(layout) if any(layout.segments.glob("*")) else (set(), [])
        notes = [*released(corpus, tasks), *findings, *unmatched(read.evaluation, tasks, read.evaluation_file)]
        notes += freeze_notes(read.evaluation, tasks, read.evaluation_file)
        notes += leaks_shown(corpus)
        # the last step, so that no error is told of what was decided
        evidence = evidence_of(read.evaluation)
        draft = chain.Draft(Kind.FREEZE, subject, reason, evidence)
        entry = chain.append(root / chain.NAME, corpus.chain, draft, clock)
    previous = before.decision.subject["tasks"] if before is not None else None
    return Frozen(
        findings=tuple(notes),
        tasks=len(read.evaluation),
        digest=evaluation_digest(corpus.params.evaluation),
        attempts=read.evaluation_attempts,
        previous=previous,
        entry=entry.digest,
    )


def freeze_notes(
    evaluation: frozenset[str], stored: Iterable[tuple[str | None, str | None]], file: str | None
) -> Iterator[Finding]:
    """Yield what is known of the ids of a set by the tasks that are stored.

    Args:
        evaluation: the ids.
        stored: task and domain of every stored trace, each pair once.
        file: the file that lists the ids; None when `params.yaml` itself does.
    """
    meant = meanings(evaluation, {(name, domain) for task, domain in stored if (name := qualified(task, domain))})
    where = file or f"{NAME}: evaluation.tasks"
    bare = {listed: tasks for listed, tasks in sorted(meant.items()) if any(task != composed(listed) for task in tasks)}
    wide, doubled = not_one_to_one(meant)
    if said := [*_apart(wide, len(meant)), *_doubled(doubled)]:
        message = f"gates refuse an id that means several tasks, and a task of several ids: {'; '.join(said)}"
        yield finding("evaluation-ambiguous", where, message)
    elif bare:
        # each of these means one task as yet
        yield finding("evaluation-domain", where, f"{''.join(_apart(bare, len(meant)))}; gates refuse none of them")
    if seen := sorted({task for tasks in meant.values() for task in tasks}):
        number = "runs of one task" if len(seen) == 1 else f"runs of {len(seen)} tasks"
        message = (
            f"{number} of the set are stored already, so their results could be seen: {first_few(map(repr, seen))}"
        )
        yield finding("evaluation-seen", where, message)


def _apart(bare: Mapping[str, tuple[str, ...]], of: int) -> Iterator[str]:
    """Yield in words which ids mean tasks that have a domain which the id has not, or the other way round."""
    if bare:
        each = (f"{listed!r} means {first_few(map(repr, tasks))}" for listed, tasks in bare.items())
        yield f"{len(bare)} of {of} ids and their stored tasks have not the same domain ({first_few(each)})"


def _doubled(doubled: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield in words which tasks several ids mean."""
    if doubled:
        each = (f"{task!r} is meant by {first_few(map(repr, listed))}" for task, listed in doubled.items())
        yield f"{numbered(len(doubled), 'stored task')} of several ids ({first_few(each)})"
