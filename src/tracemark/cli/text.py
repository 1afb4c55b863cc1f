"""Text for a terminal: what JSON is printed, how wide a line is, and what of it fits."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict, is_dataclass
from typing import Any

from tracemark.hidden import visible_json


def to_json(value: object, *, indent: int | None = None) -> bytes:
    r"""Return `value` as UTF-8 JSON in the order of its members, hidden characters as `\u` escapes.

    Args:
        value: JSON values, tuples and dataclasses.
        indent: spaces per level; None for one line.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
    return visible_json(text).encode()


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"a report holds a {type(value).__name__}, which is not JSON")


def width(text: str) -> int:
    """Return how many columns `text` (already visible) takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def cut(text: str, columns: int, *, end: bool = False) -> str:
    """Return `text` (already visible) in at most so many columns, `…` for what is cut off.

    Args:
        text: one line.
        columns: at least one.
        end: whether the end is kept, as of a path, and not the beginning.
    """
    if width(text) <= columns:
        return text
    kept, left = 0, columns - 1
    for letter in reversed(text) if end else text:
        left -= width(letter)
        if left < 0:
            break
        kept += 1
    return "…" + text[len(text) - kept :] if end else text[:kept] + "…"
