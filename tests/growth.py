"""How the time of a function grows with its input: a ratio within one run, so that no machine is too slow for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

S = TypeVar("S", bound=Sequence[Any])

EIGHTH = 8
TICK = 0.002
"""Seconds; what takes less is noise."""


def growth(act: Callable[[S], object], whole: S) -> float:
    """Return the time of `act` on a text or a row of values, divided by eight times its time on an eighth of it.

    In proportion to its length that is about 1, in proportion to its square about 8.
    """
    eighth = whole[: len(whole) // EIGHTH]
    return took(lambda: act(whole)) / (EIGHTH * took(lambda: act(eighth)))


def took(act: Callable[[], object]) -> float:
    """Return the processor's time in seconds for the quickest of three calls, at least `TICK`."""

    def once() -> float:
        began = time.process_time()
        act()
        return time.process_time() - began

    return max(TICK, min(once() for _ in range(3)))
