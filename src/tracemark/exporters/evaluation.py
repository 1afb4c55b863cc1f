"""Which tasks are kept out of training sets, and whether the list of them means what somebody hopes.

A name without a domain, on either side, means the task of that name in any domain. An id that is misspelt keeps its
task in, without a word; so an id that no stored trace has is worth a warning, though its runs may only be to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from tracemark.findings import Finding, finding

_SHOWN = 5


def qualified(task: str | None, domain: str | None) -> str | None:
    """Return the task with its domain, since domains number their tasks each for themselves."""
    return task if task is None or domain is None else f"{domain}/{task}"


def for_evaluation(task: str | None, domain: str | None, evaluation: frozenset[str]) -> bool:
    """Return whether a task is, or may be, in the evaluation set; an unknown one may be in any that is not empty."""
    if not evaluation:
        return False
    name = qualified(task, domain)
    if name is None or task in evaluation:
        return True
    return not _endings(name).isdisjoint(evaluation) or (domain is None and name in _all_endings(evaluation))


def unmatched(evaluation: frozenset[str], tasks: Iterable[tuple[str, str | None]]) -> list[Finding]:
    """Return the finding that ids of the evaluation set keep no stored trace out; none when each keeps one out.

    Args:
        evaluation: the ids.
        tasks: task and domain of every stored trace, each pair once.
    """
    known = list(tasks)
    if not evaluation or not known:
        return []
    everywhere = frozenset().union(*(_endings(f"{domain}/{task}" if domain else task) for task, domain in known))
    anywhere = {task for task, domain in known if domain is None}
    lost = sorted(one for one in evaluation if one not in everywhere and anywhere.isdisjoint(_endings(one)))
    if not lost:
        return []
    near = {_folded(name): name for name in sorted(everywhere)}
    shown = ", ".join(_described(lost, near)) + (", …" if len(lost) > _SHOWN else "")
    message = f"{len(lost)} of {len(evaluation)} ids are the task of no stored trace: {shown}"
    return [finding("evaluation-unmatched", "params.yaml: evaluation.tasks", message)]


def _described(lost: list[str], near: dict[str, str]) -> Iterator[str]:
    """Yield the first of the ids, those first that are nearly a task that is stored."""
    for one in sorted(lost, key=lambda one: _folded(one) not in near)[:_SHOWN]:
        meant = near.get(_folded(one))
        yield repr(one) if meant is None else f"{one!r} (stored is {meant!r})"


def _folded(name: str) -> str:
    """Return what stays of a name where case, white space and the kind of dash are nothing."""
    return "".join(name.casefold().split()).replace("_", "-")


def _endings(name: str) -> set[str]:
    pieces = name.split("/")
    return {"/".join(pieces[start:]) for start in range(len(pieces))}


@lru_cache(maxsize=8)
def _all_endings(names: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*map(_endings, names))
