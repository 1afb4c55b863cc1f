"""Is the evaluation set the one that was frozen, and which tasks did any frozen one hold?

A task that somebody took out of the set is one that gates compared on, and nothing keeps it out of what is trained on
any more. So nothing that is learned from, or run, is written while the set is another one than the ledger's; what only
shows says so. To freeze the set anew is to take tasks out with a reason, and is the way on.

Invariants:
- a corpus whose set was never frozen has none of these findings;
- how often a task is attempted is the gates' business alone: another number lets no task out of the set;
- the ids that a freeze names are believed only where they have the digest that it names; one that names none, as
  earlier versions wrote it, still says that the set is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracemark.acts.corpus import Corpus
from tracemark.errors import ExportRefusedError
from tracemark.exporters.evaluation import for_evaluation, outside, qualified
from tracemark.findings import Finding, finding
from tracemark.ledger.entry import Entry
from tracemark.ledger.params import NAME
from tracemark.ledger.state import evaluation_digest, ids_of
from tracemark.model.decision import Kind
from tracemark.words import first_few, numbered

CHANGED = "evaluation-changed"
"""Code of the findings that the set is another one than was frozen."""

_CONFLICT = "ledger-freeze-conflict"
_TASKS = f"{NAME}: evaluation.tasks"
_ATTEMPTS = f"{NAME}: evaluation.attempts"
_ANOTHER = "undo the change, or list another set there and tracemark gate freeze --reason TEXT"


def evidence_of(evaluation: Iterable[str]) -> dict[str, list[str]]:
    """Return what a freeze of these ids names as its evidence: they themselves, so that a change can be named."""
    return {"tasks": sorted(evaluation)}


def changed(corpus: Corpus) -> list[Finding]:
    """Return the finding that the tasks of the evaluation set are not the frozen ones, or that it is open which are.

    Raises:
        ParamsError: when params.yaml, or the file of ids that it names, cannot be read.
        LedgerChainError: when the ledger does not verify.
    """
    freezes, evaluation = corpus.decisions.freezes, corpus.params.evaluation
    if not freezes:
        return []
    digests = {str(entry.decision.subject["tasks"]) for entry in freezes}
    if len(digests) > 1:
        return [one for one in corpus.decisions.conflicts if one.code == _CONFLICT]
    if digests == {evaluation_digest(evaluation)}:
        return []
    now, then = (numbered(count, "task") for count in (len(evaluation), freezes[0].decision.subject["count"]))
    message = f"the set of {now} is not the one of {then} that was frozen last; {_difference(freezes, evaluation)}"
    # an empty set cannot be frozen
    return [finding(CHANGED, _TASKS, message, None if evaluation else _ANOTHER)]


def frozen_attempts(corpus: Corpus) -> int | None:
    """Return with how many attempts the set was frozen, where another number is asked for now; None otherwise.

    Freezes side by side that ask for different numbers are a conflict that is told by itself.
    """
    then = {int(entry.decision.subject["attempts"]) for entry in corpus.decisions.freezes}
    return then.pop() if len(then) == 1 and corpus.params.evaluation_attempts not in then else None


def attempts_changed(corpus: Corpus) -> list[Finding]:
    """Return the finding that other attempts are asked for than the set was frozen with; see `changed`."""
    now, then = corpus.params.evaluation_attempts, frozen_attempts(corpus)
    if then is None:
        return []
    asked = f"{numbered(now, 'attempt')} at each task {'is' if now == 1 else 'are'} asked for"
    message = f"{asked}, and the set was frozen with {then}: gates refuse to judge"
    return [finding(CHANGED, _ATTEMPTS, message)]


def require_unchanged(corpus: Corpus) -> None:
    """Make sure that the evaluation set is the frozen one, where one was frozen.

    Raises:
        ExportRefusedError: when it is another one, or it is open which one was frozen.
    """
    for problem in changed(corpus):
        raise ExportRefusedError(problem.message, where=problem.where, hint=problem.hint)


def released(corpus: Corpus, stored: Iterable[tuple[str | None, str | None]]) -> list[Finding]:
    """Return the finding that ids of the set that was frozen last are in the present one no more, as one freezes it.

    An id is not gone whose every stored task is in the present set: it was listed without its domain before.

    Args:
        corpus: the corpus.
        stored: task and domain of every stored trace, each pair once.
    """
    before = frozenset().union(*map(ids_of, corpus.decisions.freezes))
    evaluation, known = corpus.params.evaluation, [one for one in stored if one[0]]
    free = []
    for one in outside(before, evaluation):
        meant = [task for task in known if for_evaluation(*task, frozenset({one}))]
        if not meant or not all(for_evaluation(*task, evaluation) for task in meant):
            free.append(one)
    if not free:
        return []
    number = f"{numbered(len(free), 'id')} of the set before"
    verb = "keeps" if len(free) == 1 else "keep"
    message = f"{number} {verb} no task out of training from now on: {first_few(map(repr, free))}"
    return [finding("evaluation-released", _TASKS, message)]


def once_held(corpus: Corpus, tasks: Iterable[tuple[str | None, str | None]]) -> dict[str, Entry]:
    """Return those tasks, with their domains, that a frozen set held and the present one does not.

    Each comes with the first freeze that held it. A task that nobody knows is none, and neither is one that only a
    freeze held which names no ids.

    Args:
        corpus: the corpus.
        tasks: task and domain of each.
    """
    evaluation = corpus.params.evaluation
    free = [one for one in set(tasks) if one[0] and not for_evaluation(*one, evaluation)]
    held: dict[str, Entry] = {}
    for entry in _freezes(corpus):
        ids = ids_of(entry)
        for task, domain in free if ids else ():
            if for_evaluation(task, domain, ids):
                held.setdefault(qualified(task, domain) or "", entry)
    return held


def broken_evidence(corpus: Corpus) -> tuple[list[Finding], list[str]]:
    """Return findings on freezes whose list of ids contradicts them, and a sentence on how many lists hold."""
    named = [entry for entry in _freezes(corpus) if entry.decision.evidence is not None]
    wrong = [entry for entry in named if not ids_of(entry)]
    if not named:
        return [], []
    findings = [
        finding(
            "evidence-broken",
            entry.place,
            f"the freeze of {entry.decision.time}: its list of tasks has not the digest that it names",
            "git log ledger.jsonl shows who wrote it",
        )
        for entry in wrong
    ]
    whole = len(named) - len(wrong)
    return findings, [f"freezes whose list of tasks has the digest that they name: {whole} of {len(named)}"]


def _freezes(corpus: Corpus) -> Iterator[Entry]:
    return (entry for entry in corpus.chain.entries if entry.decision.kind == Kind.FREEZE)


def _difference(freezes: Iterable[Entry], evaluation: frozenset[str]) -> str:
    """Return in words what was taken out of a frozen set and what was added to it."""
    ids = next((found for found in map(ids_of, freezes) if found), None)
    if ids is None:
        return "which tasks were taken out is not known, since the freeze names only their number"
    apart = (("taken out", ids - evaluation), ("added", evaluation - ids))
    return "; ".join(f"{len(names)} {verb}: {first_few(map(repr, sorted(names)))}" for verb, names in apart if names)
