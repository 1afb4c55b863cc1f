"""The only clock.

Whatever needs the time takes a `Clock`; nothing else in the package reads one. A run with a `FixedClock` gives the same
bytes each time, which is how the example corpus stays reproducible.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Something that tells the time."""

    def now(self) -> str:
        """Return the present as RFC 3339 in UTC with whole seconds, such as `2026-01-31T12:00:00Z`."""


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class SystemClock:
    """The machine's clock."""

    def now(self) -> str:
        """Return the machine's time in UTC."""
        return _text(datetime.now(UTC))


class FixedClock:
    """A clock that starts at a given moment and advances by a fixed step each time it is read.

    Args:
        start: the first answer, RFC 3339 in UTC.
        step_seconds: seconds between two answers; 0 means that time stands still.
    """

    def __init__(self, start: str = "2026-01-01T00:00:00Z", step_seconds: int = 0) -> None:
        self._next = datetime.fromisoformat(start).astimezone(UTC)
        self._step = timedelta(seconds=step_seconds)

    def now(self) -> str:
        """Return the present moment, then advance."""
        moment = self._next
        self._next = moment + self._step
        return _text(moment)


def pause(seconds: float) -> None:
    """Do nothing for so long; a signal that is handled meanwhile makes it no shorter."""
    time.sleep(seconds)
