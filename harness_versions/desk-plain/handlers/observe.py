"""Show a tool's result as plain text: a sentence, then the record line by line."""

from __future__ import annotations

from typing import Any


def observe(raw: dict[str, Any]) -> str:
    """Return the result's message, followed by the record's members when there is one."""
    record = raw.get("record", {})
    return "\n".join([raw["message"], *(f"{name}: {_line(value)}" for name, value in record.items())])


def _line(value: Any) -> str:
    """Return a member on one line; members of a list are separated by commas."""
    if isinstance(value, list):
        return ", ".join(_line(each) for each in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{name} {each}" for name, each in value.items())
    return "none" if value is None else str(value)
