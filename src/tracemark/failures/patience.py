"""A search with somebody else's regular expression that comes to an end.

Some expressions (`(a+)+$`) try every way to divide a text, and double their time with each character more, so cutting
the text helps little. `re` itself knows no limit, but it looks for signals while it searches: a timer that counts the
time of the processor, not of the clock, ends the search, so a busy machine does not.

Known limit: signals reach the main thread alone; in another one of the caller's a search may take as long as it takes.
The workers of the failure log search in their main threads.
"""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType

SECONDS = 1.0
"""Longest time of the processor for one search; an expression that halts needs a thousandth of it for such texts."""


class ImpatienceError(Exception):
    """A search took longer than `SECONDS`."""


def search(pattern: re.Pattern[str], text: str, seconds: float = SECONDS) -> bool:
    """Return whether `pattern` is found in `text`.

    Raises:
        ImpatienceError: when nobody knows after `seconds`.
    """
    if threading.current_thread() is not threading.main_thread():
        return pattern.search(text) is not None
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return pattern.search(text) is not None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)


def _stop(_: int, __: FrameType | None) -> None:
    raise ImpatienceError
