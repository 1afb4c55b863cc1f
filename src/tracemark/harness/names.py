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

_WHOLE = re.compile("[0-9a-f]{64}")
_ABBREVIATION = re.compile(f"(?:{FINGERPRINT_PREFIX})?[0-9a-f]{{{SHORTEST},64}}")


def reserved(name: str) -> str | None:
    """Return why a harness version cannot be called so; None when it can."""
    if name.startswith(FINGERPRINT_PREFIX):
        return f"begins with {FINGERPRINT_PREFIX}, as fingerprints do"
    if _WHOLE.fullmatch(name):
        return "is of 64 hexadecimal digits, as fingerprints are"
    if name == NO_HARNESS:
        return "stands for no harness where one is named"
    if name.startswith("-"):
        return "begins with -, as options do"
    return None


def begins(fingerprint: str, name: str) -> bool:
    """Return whether a name is a fingerprint or the beginning of it, with or without `tm1:`."""
    if _ABBREVIATION.fullmatch(name) is None:
        return False
    return fingerprint.removeprefix(FINGERPRINT_PREFIX).startswith(name.removeprefix(FINGERPRINT_PREFIX))
