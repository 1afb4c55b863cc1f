"""A sign of life for work that takes more than a second.

It shows on standard error, only when that is a terminal, and vanishes when the work ends. A timer signal drives it: no
thread, which would keep `engine` from forking its workers, and no clock; ticks are counted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_FIRST = 1.0
_TICK = 0.5
_CLEAR = "\r\x1b[K"


@contextmanager
def working(label: str) -> Iterator[None]:
    """Show `label` and the seconds that have passed while a `with` block takes longer than a second.

    Args:
        label: what is going on, in a word or two.
    """
    if not sys.stderr.isatty():
        yield
        return
    ticks = 0

    def tick(_signal: int, _frame: FrameType | None) -> None:
        nonlocal ticks
        sys.stderr.write(f"{_CLEAR}{label} … {_FIRST + _TICK * ticks:.0f} s")
        sys.stderr.flush()
        ticks += 1

    previous = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, _FIRST, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if ticks:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
