"""What a harness version may be called: whatever leaves fingerprints, and words that mean something else, alone.

A harness is named by its label, its folder, its fingerprint or the beginning of that. A label that looks like a
fingerprint would take another harness's place.
"""

from __future__ import annotations

import re

from tracemark.digest import FINGERPRINT_PREFIX

NO_HARNESS = "none"
"""What stands for *no harness* where a harness is named: `traces list --harness none`, `stamp --harness none`."""

SHORTEST = 6
"""How many digits of a fingerprint name it at least."""

RENAME = "call it something else, such as desk-2"
"""What helps where a name is reserved."""

_ABBREVIATION = re.compile(f"(?:{FINGERPRINT_PREFIX})?[0-9a-f]{{{SHORTEST},64}}")


def reserved(name: str) -> str | None:
    """Return why a harness version cannot be called so; None when it can."""
    if name.startswith(FINGERPRINT_PREFIX):
        return f"begins with {FINGERPRINT_PREFIX}, as fingerprints do"
    if is_abbreviation(name):
        return "is of hexadecimal digits alone, as the beginning of a fingerprint is"
    if name == NO_HARNESS:
        return "stands for no harness where one is named"
    if name.startswith("-"):
        return "begins with -, as options do"
    return None


def is_abbreviation(name: str) -> bool:
    """Return whether a name may be a fingerprint or the beginning of one, with or without `tm1:`."""
    return _ABBREVIATION.fullmatch(name) is not None
