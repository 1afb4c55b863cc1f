"""What a freeze should tell of the evaluation set: ids that are not one to one with tasks, and runs made before it.

Nothing here stands against the freeze: gates refuse what they cannot tell apart, and a set may be frozen late for good
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracemark.exporters.evaluation import first_of, qualified
from tracemark.findings import Finding, finding
from tracemark.gates.terms import meanings
from tracemark.ledger.params import NAME


def freeze_notes(
    evaluation: frozenset[str], stored: Iterable[tuple[str | None, str | None]], file: str | None
) -> Iterator[Finding]:
    """Yield what is known of the ids of a set by the tasks that are stored.

    Args:
        evaluation: the ids.
        stored: task and domain of every stored trace, each pair once.
        file: the file that lists the ids; None when `params.yaml` itself does.
    """
    names = {name for task, domain in stored if (name := qualified(task, domain))}
    meant = meanings(evaluation, names)
    where = file or f"{NAME}: evaluation.tasks"
    if said := [*_bare(meant), *_doubled(meant)]:
        message = f"gates refuse an id that means several tasks, and a task of several ids: {'; '.join(said)}"
        yield finding("evaluation-ambiguous", where, message)
    if seen := sorted({task for tasks in meant.values() for task in tasks}):
        number = "runs of one task" if len(seen) == 1 else f"runs of {len(seen)} tasks"
        message = f"{number} of the set are stored already, so their results could be seen: {first_of(map(repr, seen))}"
        yield finding("evaluation-seen", where, message)


def _bare(meant: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield in words which ids mean tasks that have a domain which the id has not, or the other way round."""
    bare = {listed: tasks for listed, tasks in sorted(meant.items()) if any(task != listed for task in tasks)}
    if bare:
        each = (f"{listed!r} means {first_of(map(repr, tasks))}" for listed, tasks in bare.items())
        yield f"{len(bare)} of {len(meant)} ids and their stored tasks have not the same domain ({first_of(each)})"


def _doubled(meant: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield in words which tasks several ids mean."""
    ids: dict[str, list[str]] = {}
    for listed, tasks in sorted(meant.items()):
        for task in tasks:
            ids.setdefault(task, []).append(listed)
    doubled = {task: listed for task, listed in sorted(ids.items()) if len(listed) > 1}
    if doubled:
        each = (f"{task!r} is meant by {first_of(map(repr, listed))}" for task, listed in doubled.items())
        yield f"{len(doubled)} stored task{'' if len(doubled) == 1 else 's'} of several ids ({first_of(each)})"
