"""How numbers and lists are put in the words of a message."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

FEW = 5
"""How many of a list a message names, unless it is told otherwise: enough to look one up, on one line."""


def numbered(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`, `2 successes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def first_few(texts: Iterable[str], most: int = FEW) -> str:
    """Return the first few of some texts, and how many more there are: `a, b and 3 more`.

    Args:
        texts: the texts, in the order in which they are to be named.
        most: how many are named.
    """
    left = iter(texts)
    shown = ", ".join(islice(left, most))
    more = sum(1 for _ in left)
    return f"{shown} and {more} more" if more else shown
