"""Small seeded dice: the same text gives the same throw on every machine and Python.

A throw depends on the seed and on its own label alone, never on how many throws came before it. A decision added to a
procedure therefore changes no other decision, and two harnesses meet the same luck wherever they ask the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_FNV_START = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def _mix(text: str) -> int:
    """Return 64 well mixed bits of a text: FNV-1a over its UTF-8, then the finaliser of splitmix64."""
    value = _FNV_START
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Dice:
    """Throws that depend on a seed text and a label.

    Args:
        seed: any text; equal seeds throw alike.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def chance(self, label: str, share: float) -> bool:
        """Return True in about `share` (0 to 1) of all seeds, always the same for one seed and label."""
        return _mix(f"{self._seed}\x00{label}") < share * (_MASK + 1)

    def between(self, label: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + _mix(f"{self._seed}\x00{label}") % (high - low + 1)

    def pick(self, label: str, choices: Sequence[T]) -> T:
        """Return one of `choices`, which must not be empty."""
        return choices[self.between(label, 0, len(choices) - 1)]
