"""The process that a recording belongs to: a fork has all of it, and would write a second run into the same journal.

Nothing is asked before a recording is opened, so that one may be made here and opened in a worker, nor once it is
closed, when nothing can be written any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tracemark.errors import UsageError


class Owner:
    """The process in which a recording was opened; nobody before it is opened, and when it is closed."""

    def __init__(self) -> None:
        self._process: int | None = None

    @property
    def is_another(self) -> bool:
        """Whether the recording is open, and this is not the process in which it was opened."""
        return self._process is not None and self._process != os.getpid()

    def begin(self) -> None:
        """Let the recording belong to this process."""
        self._process = os.getpid()

    def end(self) -> None:
        """Let it belong to nobody."""
        self._process = None

    def require(self, where: str) -> None:
        """Do nothing in the process of the recording.

        Args:
            where: what is refused elsewhere.

        Raises:
            UsageError: in another process.
        """
        if self.is_another:
            raise UsageError(
                "the recording was opened in another process, which alone can go on with it",
                where=where,
                hint="record in the process that entered the block, or open a recording of its own in each worker:"
                " with tracemark.record(…) as recorder",
            )

    def bound(self, function: Callable[..., Any], where: str) -> Callable[..., Any]:
        """Return `function`, each call of which is refused in another process, see `require`."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.require(where)
            return function(*arguments, **named)

        return call
