"""Rules of ATIF v1.8 that the models share with the readers that replace them on ordinary documents.

What counts as a time is one of them: ISO 8601 with or without a zone, kept as written, independent of the interpreter.
This module loads no model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

VERSION = "ATIF-v1.8"
"""The version that every stored document says."""

AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
"""Members that only a step of source `agent` may have."""


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


def are_timestamps(texts: Sequence[str]) -> bool:
    """Return whether `is_timestamp` holds for each of `texts`; a third of the time for the many of a long run."""
    joined = "\n".join(texts)
    if "T24" in joined or " 24" in joined or joined.count("Z") != joined.count("Z\n") + joined.endswith("Z"):
        return all(map(is_timestamp, texts))
    try:
        deque(map(datetime.fromisoformat, texts), maxlen=0)
    except ValueError:
        return False
    return True
