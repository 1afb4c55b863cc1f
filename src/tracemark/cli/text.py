r"""Text from traces, made safe to look at.

A trace may hold terminal escapes, bidirectional overrides, invisible letters. Printed as they are, they could move the
cursor, hide a sentence or reverse it. Every character that does not show itself is therefore printed as an escape such
as `\x1b` or `\u202e`. In JSON the same characters are written as JSON escapes, which changes no value.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict, is_dataclass
from typing import Any

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# fillers that count as letters, a blank pattern, a joiner, and the selectors that can carry hidden bytes
_HIDDEN_LETTERS = frozenset([0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0xE0100, 0xE01F0)])


def _hidden(point: int) -> bool:
    return unicodedata.category(chr(point)) in _HIDDEN_CATEGORIES or point in _HIDDEN_LETTERS


class _Escapes(dict[int, str]):
    """A translation table that fills itself; bounded by the number of characters there are."""

    def __init__(self, kept: str = "") -> None:
        super().__init__((ord(character), character) for character in kept)

    def __missing__(self, point: int) -> str:
        self[point] = self.escape(point) if _hidden(point) else chr(point)
        return self[point]

    def escape(self, point: int) -> str:
        if point < 0x100:
            return {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r"}.get(point, rf"\x{point:02x}")
        return rf"\u{point:04x}" if point < 0x10000 else rf"\U{point:08x}"


class _JSONEscapes(_Escapes):
    def escape(self, point: int) -> str:
        if point < 0x10000:
            return rf"\u{point:04x}"
        high, low = divmod(point - 0x10000, 0x400)
        return rf"\u{0xD800 + high:04x}\u{0xDC00 + low:04x}"


_LINE = _Escapes()
_BLOCK = _Escapes(kept="\n\t")
_JSON = _JSONEscapes(kept="\n")


def visible(text: str) -> str:
    r"""Return `text` on one line, with every character that does not show itself as an escape (`\n`, `\x1b`)."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_LINE)


def visible_block(text: str) -> str:
    """Return `text` with its line ends and tabs kept, and every other hidden character as an escape."""
    return text.translate(_BLOCK)


def to_json(value: object, *, indent: int | None = None) -> bytes:
    r"""Return `value` as UTF-8 JSON in the order of its members, hidden characters as `\u` escapes.

    Args:
        value: JSON values, tuples and dataclasses.
        indent: spaces per level; None for one line.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
    return (text if text.isascii() and "\x7f" not in text else text.translate(_JSON)).encode()


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
