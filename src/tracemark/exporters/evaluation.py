"""Which tasks are kept out of training sets, and whether the list of them means what somebody hopes.

A name without a domain, on either side, means the task of that name in any domain. An id that is misspelt keeps its
task in, without a word; so an id that is nearly the task of a stored trace is worth a warning. Of one that is like none
the runs may only be to come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tracemark.findings import Finding, finding

_SHOWN = 5
_SHORTEST = 4


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


def unmatched(
    evaluation: frozenset[str], tasks: Iterable[tuple[str, str | None]], file: str | None = None
) -> list[Finding]:
    """Return the finding that ids of the evaluation set keep no stored trace out; none when each keeps one out.

    Args:
        evaluation: the ids.
        tasks: task and domain of every stored trace, each pair once.
        file: the file that lists the ids; None when `params.yaml` itself does.
    """
    known = list(tasks)
    if not evaluation or not known:
        return []
    everywhere = frozenset().union(*(_endings(f"{domain}/{task}" if domain else task) for task, domain in known))
    anywhere = {task for task, domain in known if domain is None}
    lost = sorted(one for one in evaluation if one not in everywhere and anywhere.isdisjoint(_endings(one)))
    if not lost:
        return []
    near = _near(lost, everywhere)
    code = "evaluation-misspelt" if near else "evaluation-unmatched"
    shown = ", ".join(_described(lost, near)) + (", …" if len(lost) > _SHOWN else "")
    message = f"{len(lost)} of {len(evaluation)} ids are the task of no stored trace: {shown}"
    return [finding(code, file or "params.yaml: evaluation.tasks", message)]


def _near(lost: Iterable[str], stored: Iterable[str]) -> dict[str, str]:
    """Return those of the ids that are nearly a task that is stored, with the name of that task."""
    names: dict[tuple[str, ...], str] = {}
    for name in sorted(stored):
        names |= dict.fromkeys(_likenesses(name), name)
    found = {}
    for one in lost:
        # the first likeness is the nearest
        meant = next((names[key] for key in _likenesses(one) if key in names), None)
        if meant is not None:
            found[one] = meant
    return found


def _likenesses(name: str) -> Iterator[tuple[str, ...]]:
    """Yield what two names have in common of which one is the other with one character more, less, another or moved.

    Two numbers name two tasks, and of a short name one character is too much.
    """
    folded = _folded(name)
    numbers = (number.lstrip("0") for number in re.findall("[0-9]+", folded))
    yield (folded,)
    if len(folded) >= _SHORTEST:
        key = tuple(numbers)
        yield (folded, *key)
        yield from ((folded[:at] + folded[at + 1 :], *key) for at in range(len(folded)))


def _described(lost: list[str], near: dict[str, str]) -> Iterator[str]:
    """Yield the first of the ids, those first that are nearly a task that is stored."""
    for one in sorted(lost, key=lambda one: one not in near)[:_SHOWN]:
        meant = near.get(one)
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
