"""What counts as a time in a trajectory: ISO 8601 with or without a zone, kept as written.

One rule for the models and for the walk that replaces them on ordinary documents, independent of the interpreter.
"""

from __future__ import annotations

from datetime import datetime


def is_timestamp(text: str) -> bool:
    """Return whether `text` is an ISO 8601 time as strict readers of ATIF read it; a zone is not required."""
    if "T24" in text or " 24" in text or "Z" in text[:-1]:
        # newer interpreters read 24:00 as the next day, and any character as the separator
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
