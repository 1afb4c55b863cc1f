"""Does a run keep the limits that a harness declares for it?

Only the number of steps can be seen in a finished trace. A limit that is kept proves nothing, so limits contradict and
never corroborate.

Invariants:
- a step is a reply of the model that the trace holds. Messages of the assistant's that the harness itself puts there
  are none, so for each template of that role one is left out, and where it may put any number of them nothing is said;
- of parallel calls and stop strings nothing is said: a call beyond the limit may have been refused, in whatever words,
  and a reply is recorded as the model wrote it or as the harness cut it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracemark.harness.roles import Role, by_role

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

PART = "limits"
"""The part of the runtime that holds the limits."""

_ASSISTANT = "assistant"


class Steps:
    """Compares the number of replies with the limit of steps of one harness.

    Args:
        harness: the harness; only its manifest and the text of its files are used.
    """

    def __init__(self, harness: Harness) -> None:
        self._declared = harness.manifest.runtime.limits.steps
        own = by_role(harness).get(_ASSISTANT, Role())
        self._given: int | None = len(own.first)
        if own.anywhere or any(template.pattern is None for template in own.first):
            # such a template may have given any of the replies
            self._given = None

    @property
    def compared(self) -> tuple[int, int] | None:
        """All that replies are compared with; None when it is nothing."""
        return None if self._declared is None or self._given is None else (self._declared, self._given)

    def excess(self, replies: Sequence[int]) -> tuple[int, str] | None:
        """Return the step id of the first reply beyond the limit, and what is wrong; None when it is kept.

        Args:
            replies: step ids of the replies, in order.
        """
        if self._declared is None or self._given is None or len(replies) <= self._declared + self._given:
            return None
        return replies[self._declared + self._given], too_many_steps(self._declared + 1, self._declared)


def too_many_steps(number: int, declared: int) -> str:
    """Return in words that the agent's step `number` is more than the `declared` ones."""
    return f"this is step {number} of the agent, declared are {declared} at most"
