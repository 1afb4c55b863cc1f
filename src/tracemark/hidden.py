r"""Characters that do not show themselves, made visible as escapes, wherever text of a trace is shown.

A trace may hold terminal escapes, bidirectional overrides, invisible letters. Printed as they are, they could move the
cursor, hide a sentence or reverse it, on a terminal as in a Markdown page. Every such character is therefore shown as
an escape such as `\x1b` or `\u202e`; in JSON as a JSON escape, which changes no value.
"""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# fillers that count as letters, a blank pattern, a joiner, and the selectors that can carry hidden bytes; the one that
# asks for the coloured form of a sign is common, and alone carries nothing
_HIDDEN_LETTERS = frozenset(
    [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)]
)


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


def visible_json(text: str) -> str:
    r"""Return a JSON text with every hidden character as a JSON escape, which changes no value; line feeds stay."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON)
