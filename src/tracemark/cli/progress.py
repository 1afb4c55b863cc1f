"""A sign of life for work that takes more than a second.

It shows on standard error, only when that is a terminal, and vanishes when the work ends. A timer signal drives it: no
thread, which would keep `engine` from forking its workers, and no clock; ticks are counted. What is logged meanwhile,
such as that a lock is waited for, gets a line of its own.
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
    # slow to import, and without a terminal it writes plain lines by itself
    import logging  # noqa: PLC0415

    ticks = 0

    def tick(_signal: int, _frame: FrameType | None) -> None:
        nonlocal ticks
        sys.stderr.write(f"{_CLEAR}{label} … {_FIRST + _TICK * ticks:.0f} s")
        sys.stderr.flush()
        ticks += 1

    above = logging.StreamHandler(sys.stderr)
    above.setFormatter(logging.Formatter(f"{_CLEAR}%(message)s"))
    logger = logging.getLogger("tracemark")
    logger.addHandler(above)
    previous = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, _FIRST, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        logger.removeHandler(above)
        if ticks:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
