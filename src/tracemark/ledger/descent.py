"""Which entries of a ledger descend from which, which of some are the latest, and how it is said that they disagree."""

from __future__ import annotations

from collections.abc import Iterable

from tracemark.findings import Finding, finding
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

    def before(self, entry: Entry, among: Iterable[Entry] | None = None) -> list[Entry]:
        """Return the ancestors of an entry, parents before children, or those of some entries that are, in their order.

        Args:
            entry: the entry.
            among: the only entries that are asked about; None for the whole chain.
        """
        bits = self._ancestors[entry.digest]
        asked = self._entries if among is None else among
        return [one for one in asked if bits >> self._position[one.digest] & 1]


def disagreement(
    code: str, where: str, said: Iterable[tuple[Entry, str]], hint: str | None = None, so: str = ""
) -> Finding:
    """Return the finding that entries of which neither had seen the other say different things.

    Args:
        code: the finding's code.
        where: what they are about.
        said: each entry with what it says, in words in which they differ.
        hint: the command that settles it; None for the usual one.
        so: what follows until it is settled; empty when the code says it.
    """
    told = ", ".join(f"{entry.digest[:12]} says {what}" for entry, what in said)
    return finding(code, where, f"decisions made side by side disagree{so and f', so {so}'}: {told}", hint)
