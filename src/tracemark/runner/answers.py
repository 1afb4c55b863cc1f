"""Which results of a run can come from the code of its tools that the recorder handed out.

Every call of that code between a reply and what is recorded next stands for one answer. An answer beyond that came from
other code, whatever it says; which of several equal calls it was is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from tracemark.errors import UsageError


class Calls:
    """Counts the calls of code that was handed out."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        self._called: set[str] = set()
        # calls of one reply may run side by side
        self._lock = Lock()

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, the code behind `name`, so that each call of it is counted."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                self._left[name] += 1
                self._called.add(name)
            return function(*arguments, **named)

        return call

    def spend(self, name: str) -> bool:
        """Use one call of `name` up; return whether there was one."""
        with self._lock:
            if not self._left[name]:
                return False
            self._left[name] -= 1
        return True

    def forget(self) -> None:
        """Let no call so far stand for an answer."""
        with self._lock:
            self._left.clear()

    def called(self, name: str) -> bool:
        """Return whether `name` was ever called."""
        return name in self._called


class Answers:
    """Follows the tool calls of one run, reply by reply."""

    def __init__(self) -> None:
        self._calls: Mapping[str, str] = {}
        self._unanswered: set[str] = set()
        self._covered: set[str] = set()
        self._ran = Calls()

    @property
    def expected(self) -> bool:
        """Whether the last reply called a tool."""
        return bool(self._calls)

    @property
    def ran(self) -> frozenset[str]:
        """The ids of the last reply's calls that were answered, and for which the code of their tool was called."""
        return frozenset(self._covered)

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, the code of the tool `name`, so that each call of it is counted."""
        return self._ran.counted(name, function)

    def expect(self, calls: Mapping[str, str]) -> None:
        """Take the calls of a new reply, id to tool name; the reply before gets no more answers, this one none yet."""
        self._ran.forget()
        self._calls = calls
        self._unanswered = set(calls)
        self._covered = set()

    def take(self, linked: Sequence[str | None]) -> list[str]:
        """Take results of the last reply's calls; return the tools that answered without a call of their code.

        Args:
            linked: for each result the id of its call. None counts as the answer of every call that has none yet.

        Raises:
            UsageError: when a result names no call of the last reply; nothing is taken then.
        """
        if unknown := [call for call in linked if call is not None and call not in self._calls]:
            ids = ", ".join(map(repr, self._calls))
            raise UsageError(
                f"no call of the last reply has the id {unknown[0]!r}",
                hint=f"the calls of the last reply: {ids}" if ids else "the last reply called no tool",
            )
        bypassed = []
        for call in linked:
            answered = sorted(self._unanswered) if call is None else [call]
            self._unanswered.difference_update(answered)
            for each in answered:
                if self._ran.spend(self._calls[each]):
                    self._covered.add(each)
                else:
                    bypassed.append(self._calls[each])
        return bypassed
