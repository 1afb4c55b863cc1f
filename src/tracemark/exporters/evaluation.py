"""Which tasks are kept out of training sets, and whether the list of them means what somebody hopes.

A name without a domain, on either side, means the task of that name in any domain, and names that are the same text in
another Unicode form (NFC) are one. An id that is misspelt keeps its task in, without a word; so an id that is nearly
the task of a stored trace is worth a warning. Of one that is like none the runs may only be to come.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from tracemark.findings import Finding, finding
from tracemark.words import first_few

_SHORTEST = 4
_LONGEST = 200
_DASHES = frozenset("_\N{MINUS SIGN}")
"""What is a dash to a reader and, unlike category Pd, none to Unicode."""
_INVISIBLE = frozenset(map(chr, (0x034F, *range(0xFE00, 0xFE10))))
"""What shows nothing of itself and, unlike category Cf, is a mark to Unicode."""


class _Listed:
    """The ids of an evaluation set, by what they are the name of.

    This is the one place that says which task an id means: the one that has its name, or a longer one of which it is
    the end, so that a name without a domain is that of the task in any; and where nobody knows the domain of a task,
    also each that is the end of the id.
    """

    def __init__(self, ids: frozenset[str]) -> None:
        self._named: dict[str, list[str]] = {}
        self._ending: dict[str, list[str]] = {}
        for one in ids:
            self._named.setdefault(composed(one), []).append(one)
            for ending in _endings(composed(one)):
                self._ending.setdefault(ending, []).append(one)

    def meaning(self, name: str, domain: str | None) -> list[str]:
        """Return the ids that mean a task, given its `qualified` name; one may be there twice."""
        found = [one for ending in _endings(name) for one in self._named.get(ending, ())]
        return found if domain else [*found, *self._ending.get(name, ())]


def composed(name: str) -> str:
    """Return a name in the one form (NFC) of all texts that Unicode calls canonically equivalent."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def qualified(task: str | None, domain: str | None) -> str | None:
    """Return the task with its domain, since domains number their tasks each for themselves; None for no task.

    An empty text names no domain and no task. The name is `composed`, so that one task has one name.
    """
    if not task:
        return None
    return composed(f"{domain}/{task}" if domain else task)


def for_evaluation(task: str | None, domain: str | None, evaluation: frozenset[str]) -> bool:
    """Return whether a task is, or may be, in the evaluation set; an unknown one may be in any that is not empty."""
    if not evaluation:
        return False
    name = qualified(task, domain)
    return name is None or bool(_listed(evaluation).meaning(name, domain))


def meanings(listed: Collection[str], tasks: Iterable[tuple[str, str | None]]) -> dict[str, tuple[str, ...]]:
    """Return for each id of an evaluation set those of some tasks that it means, sorted.

    Args:
        listed: the ids.
        tasks: the tasks as `qualified` names them, each with its domain, or None where nobody knows that.
    """
    ids = _listed(frozenset(listed))
    found: dict[str, set[str]] = {one: set() for one in listed}
    for name, domain in tasks:
        for one in ids.meaning(composed(name), domain):
            found[one].add(name)
    return {one: tuple(sorted(meant)) for one, meant in found.items()}


def outside(ids: Iterable[str], evaluation: frozenset[str]) -> list[str]:
    """Return those of some ids, sorted, of which the set does not hold every task that they mean."""
    listed = _all_composed(evaluation)
    return sorted(one for one in ids if _endings(composed(one)).isdisjoint(listed))


def unmatched(
    evaluation: frozenset[str], tasks: Iterable[tuple[str, str | None]], file: str | None = None
) -> list[Finding]:
    """Return the findings that ids of the evaluation set keep no stored trace out, or not all that they seem to mean.

    Args:
        evaluation: the ids.
        tasks: task and domain of every stored trace, each pair once.
        file: the file that lists the ids; None when `params.yaml` itself does.
    """
    known = [(composed(task), domain and composed(domain)) for task, domain in tasks]
    if not evaluation or not known:
        return []
    evaluation = _all_composed(evaluation)
    where = file or "params.yaml: evaluation.tasks"
    meant = meanings(evaluation, ((qualified(task, domain) or "", domain) for task, domain in known))
    lost = sorted(one for one, tasks_meant in meant.items() if not tasks_meant)
    found = []
    if lost:
        near = _near(lost, frozenset().union(*(_endings(qualified(*one) or "") for one in known)))
        code = "evaluation-misspelt" if near else "evaluation-unmatched"
        message = (
            f"{len(lost)} of {len(evaluation)} ids are the task of no stored trace: {first_few(_described(lost, near))}"
        )
        found.append(finding(code, where, message))
    alike = sorted(_let_through(evaluation, known, evaluation.difference(lost)))
    if alike:
        message = f"stored tasks are nearly one of the ids and are not kept out: {first_few(map(repr, alike))}"
        found.append(finding("evaluation-misspelt", where, message))
    return found


def _let_through(
    evaluation: frozenset[str], known: Iterable[tuple[str, str | None]], heard: Collection[str]
) -> set[str]:
    """Return the stored tasks that are no task of the set, and are one of `heard` where both are folded.

    A name without a domain, on either side, is nearly that of any domain, as it means the task of any.
    """
    ids = {_folded(one) for one in heard}
    ends = {_folded(ending) for one in heard for ending in _endings(one)}
    return {
        name
        for task, domain in known
        for name in [qualified(task, domain) or ""]
        if any(_folded(ending) in ids for ending in _endings(name)) or (not domain and _folded(name) in ends)
        # asked last, as few are nearly one
        if not for_evaluation(task, domain, evaluation)
    }


def _near(lost: Iterable[str], stored: Iterable[str]) -> dict[str, str]:
    """Return those of the ids that are nearly a task that is stored, with the name of that task."""
    ids: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for one in lost:
        for rank, key in enumerate(_likenesses(one)):
            ids.setdefault(key, []).append((rank, one))
    nearest: dict[str, tuple[int, str]] = {}
    for name in sorted(stored):
        for key in _likenesses(name):
            for rank, one in ids.get(key, ()):
                # the first likeness is the nearest
                if one not in nearest or rank <= nearest[one][0]:
                    nearest[one] = rank, name
    return {one: name for one, (_, name) in nearest.items()}


def _likenesses(name: str) -> Iterator[tuple[str, ...]]:
    """Yield what two names have in common of which one is the other with one character more, less, another or moved.

    Two numbers name two tasks, and of a short name one character is too much.
    """
    folded = _folded(name)
    numbers = (number.lstrip("0") for number in re.findall("[0-9]+", folded))
    yield (folded,)
    if _SHORTEST <= len(folded) <= _LONGEST:
        key = tuple(numbers)
        yield (folded, *key)
        yield from ((folded[:at] + folded[at + 1 :], *key) for at in range(len(folded)))


def _described(lost: list[str], near: dict[str, str]) -> Iterator[str]:
    """Yield the ids, those first that are nearly a task that is stored."""
    for one in sorted(lost, key=lambda one: one not in near):
        meant = near.get(one)
        yield repr(one) if meant is None else f"{one!r} (stored is {meant!r})"


def _folded(name: str) -> str:
    """Return what stays of a name where case, white space and the kind of dash are nothing.

    Neither is what only a computer tells apart: compatibility forms (NFKC), such as wide letters, and what shows
    nothing of itself, such as a zero-width space.
    """
    if not name.isascii():
        # small letters of compatibility forms may be such forms again
        name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        name = "".join(map(_shown_as, name))
    return "".join(name.casefold().split()).replace("_", "-")


def _shown_as(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Pd" or character in _DASHES:
        return "-"
    return "" if category == "Cf" or character in _INVISIBLE else character


def _endings(name: str) -> set[str]:
    pieces = name.split("/")
    return {"/".join(pieces[start:]) for start in range(len(pieces))}


@lru_cache(maxsize=8)
def _all_composed(names: frozenset[str]) -> frozenset[str]:
    return frozenset(map(composed, names))


@lru_cache(maxsize=8)
def _listed(ids: frozenset[str]) -> _Listed:
    return _Listed(ids)
