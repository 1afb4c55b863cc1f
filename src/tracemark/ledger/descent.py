"""Which entries of a ledger descend from which, and which of some are the latest."""

from __future__ import annotations

from collections.abc import Iterable

from tracemark.ledger.chain import Chain
from tracemark.ledger.entry import Entry


class Past:
    """Which entry descends from which.

    Args:
        chain: the verified ledger.
    """

    def __init__(self, chain: Chain) -> None:
        self._entries = chain.entries
        self._position = {entry.digest: index for index, entry in enumerate(chain.entries)}
        self._ancestors = chain.ancestors()

    def descends(self, entry: Entry, other: Entry) -> bool:
        """Return whether `other` is an ancestor of `entry`."""
        return bool(self._ancestors[entry.digest] >> self._position[other.digest] & 1)

    def latest(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return those of `entries` from which no other of them descends."""
        candidates = list(entries)
        seen = 0
        for entry in candidates:
            seen |= self._ancestors[entry.digest]
        return [entry for entry in candidates if not seen >> self._position[entry.digest] & 1]

    def before(self, entry: Entry) -> list[Entry]:
        """Return the ancestors of an entry, parents before children."""
        bits = self._ancestors[entry.digest]
        return [one for position, one in enumerate(self._entries) if bits >> position & 1]
