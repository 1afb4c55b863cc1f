"""Everything that stands against a comparison: every reason that applies is listed, and not only the first."""

from __future__ import annotations

from collections.abc import Iterable

from tracemark.gates.cell import Cell
from tracemark.gates.coverage import coverage_refusals
from tracemark.gates.halves import alike, half_refusals, own, pair_refusals
from tracemark.gates.refusal import Cells, Reason, Refusal, Sides
from tracemark.gates.same_set import set_refusals
from tracemark.gates.terms import Half, Terms


def refusals(incumbent: Cell, candidate: Cell, terms: Terms) -> tuple[Refusal, ...]:
    """Return everything that stands against comparing two cells, in the order of `Reason`; nothing when nothing does.

    Args:
        incumbent: the evaluation of the accepted pair.
        candidate: the evaluation of the pair with one half replaced.
        terms: what the comparison is made under.
    """
    sides = Sides(incumbent, candidate)
    return refusals_of(sides._asdict(), terms, [(terms.half, *Sides._fields)])


def refusals_of(cells: Cells, terms: Terms, judged: Iterable[tuple[Half, str, str]]) -> tuple[Refusal, ...]:
    """Return everything that stands against comparing some cells, in the order of `Reason`, each once.

    All are looked at together: so what is to be run is listed once, however many comparisons wait for it.

    Args:
        cells: the cells, by what each is called.
        terms: what the comparison is made under; its half does not matter.
        judged: the half by which two cells are compared, and what the two are called; that to judge is the second.
    """
    # a stray attempt of another pair neither makes up for one that is missing nor is one too many
    counted = {side: own(cell) for side, cell in cells.items()}
    # what is compared with itself shares every trace: that and all else follows from it
    if same := [one for half, *sides in judged for one in alike({name: counted[name] for name in sides}, half)]:
        return tuple(same)
    found = [*pair_refusals(cells, terms), *set_refusals(counted, terms), *coverage_refusals(counted, terms)]
    for half, before, after in judged:
        found += half_refusals({before: counted[before], after: counted[after]}, half)
    ranks = list(Reason)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: ranks.index(one.reason)))
