"""What a prompt template says about every text it can render to: literal pieces, in order, with holes between them.

A `Pattern` is all of a template that can be compared with a finished message. Comparing is linear in the message: the
first and last piece are anchored where the template begins or ends with literal text, the pieces between are looked for
one after the other. Taking the earliest place for each is right, because a hole may hold anything.

Invariants:
- a rendering of a template is never found to disagree with the template's pattern;
- a template whose output depends on a loop, a condition or another file has no pattern (None), rather than a wrong one;
- nothing is rendered and nothing of a template is executed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from tracemark.harness import includes
from tracemark.model.harness import JinjaOptions, PromptTemplate

EXCERPT = 160
"""Characters at most that say where a message disagrees."""

_CONTEXT = 12
_WIDTHS = (44, 32, 20, 10, 4)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The literal pieces of a template, with a hole between each two."""

    literals: tuple[str, ...]
    """Pieces in order, none empty; no pieces at all fit any text."""
    begins: bool
    """Whether the text must begin with the first piece."""
    ends: bool
    """Whether the text must end with the last piece."""
    pieces: tuple[str | None, ...]
    """Literals and holes (None) in order, neighbours merged."""

    @property
    def exact(self) -> bool:
        """Whether there is no hole, so that the text must be the literal text itself."""
        return len(self.pieces) == len(self.literals)

    @property
    def size(self) -> int:
        """Characters of literal text."""
        return sum(map(len, self.literals))

    def before(self, separator: str) -> Pattern:
        """Return the pattern of what stands before the first `separator` in the literal text; itself without one."""
        for index, piece in enumerate(self.pieces):
            place = piece.find(separator) if piece is not None else -1
            if piece is not None and place >= 0:
                return _joined([*self.pieces[:index], piece[:place]])
        return self

    def disagreement(self, text: str) -> int | None:
        """Return the index of the first piece that `text` lacks where the template has it; None when it fits."""
        literals = self.literals
        if self.exact:
            return None if text == "".join(literals) else 0
        first, last = 0, len(literals)
        start, end = 0, len(text)
        if self.begins:
            if not text.startswith(literals[0]):
                return 0
            start, first = len(literals[0]), 1
        if self.ends:
            end -= len(literals[-1])
            if end < start or not text.endswith(literals[-1]):
                return last - 1
            last -= 1
        for index in range(first, last):
            place = text.find(literals[index], start, end)
            if place < 0:
                return index
            start = place + len(literals[index])
        return None

    def followed_by(self, text: str) -> Pattern:
        """Return the pattern of what this one gives with `text` behind it."""
        return _joined([*self.pieces, text])

    def in_front_of(self, separator: str) -> Pattern:
        """Return the pattern of every text that goes on with `separator`, and anything, behind what this one gives."""
        return _joined([*self.pieces, separator, None])

    def difference(self, text: str) -> str:
        """Return in words where `text` first departs from the template, at most `EXCERPT` characters; "" if it fits.

        A piece in the middle may stand anywhere; its place is where most of its beginning is found. Texts that differ
        at their ends are compared from there.
        """
        if self.disagreement(text) is None:
            return ""
        literals = self.literals or ("",)
        if self.exact or (self.begins and not text.startswith(literals[0])):
            at = shared_beginning(literals[0], text)
            return differing(literals[0], at, text, at)
        start = 0
        for literal in literals[:-1] if self.ends else literals:
            place = text.find(literal, start)
            if place < 0:
                same = _found_beginning(literal, text, start)
                return differing(literal, same, text, text.find(literal[:same], start) + same)
            start = place + len(literal)
        last = literals[-1]
        place = text.rfind(last, start)
        if place >= 0:
            return differing(last, len(last), text, place + len(last))
        same = shared_beginning(last[::-1], text[start:][::-1])
        return differing(last, len(last) - same, text, len(text) - same, backwards=True)


def differing(expected: str, inside: int, found: str, at: int, *, backwards: bool = False, room: int = EXCERPT) -> str:
    """Return `at character N: expected '…' found '…'`, both sides cut around the place.

    Args:
        expected: the text that should have stood there.
        inside: the place in it, an index.
        found: the text that stands there.
        at: the place in it, an index; shown counting from 1.
        backwards: whether the two agree behind the place, and not in front of it.
        room: characters that may be used.
    """
    shown = ""
    for width in _WIDTHS:
        before, behind = (width, _CONTEXT) if backwards else (_CONTEXT, width)
        sides = [_around(text, place, before, behind) for text, place in ((expected, inside), (found, at))]
        shown = f"at character {max(at, 1) if backwards else at + 1}: expected {sides[0]!r} found {sides[1]!r}"
        if len(shown) <= room:
            break
    return shown[:room]


def shared_beginning(one: str, other: str) -> int:
    """Return how many characters two texts share at their beginning, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if other.startswith(one[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


class Hole(NamedTuple):
    """A place of a template of which its text does not say what it holds."""

    variable: str | None
    """The variable that stands there as it is; None where something is made of one."""


def pattern(template: PromptTemplate, text: str) -> Pattern | None:
    """Return the pattern of a template whose text is `text`, or None when its output cannot be told from its text.

    Variables with a declared value count as literal text. None is returned for code that makes the text, for loops,
    conditions, macros, inheritance and includes, and for a template that does not parse.
    """
    found = pieces(template, text)
    return None if found is None else _joined(None if isinstance(piece, Hole) else piece for piece in found)


def pieces(template: PromptTemplate, text: str) -> list[str | Hole] | None:
    """Return the literal pieces and the holes of a template as they stand in it; None where `pattern` is None."""
    if template.entry is not None:
        return None
    if template.syntax == "literal":
        return [text]
    if template.syntax == "format":
        return _format(text, template.values)
    return _jinja(text, template)


def _joined(pieces: Iterable[str | None]) -> Pattern:
    """Merge neighbouring pieces; None is a hole."""
    merged: list[str | None] = []
    for piece in pieces:
        if piece == "":
            continue
        if merged and piece is None and merged[-1] is None:
            continue
        last = merged[-1] if merged else None
        if last is not None and piece is not None:
            merged[-1] = last + piece
        else:
            merged.append(piece)
    literals = tuple(piece for piece in merged if piece is not None)
    begins = bool(merged) and merged[0] is not None
    ends = bool(merged) and merged[-1] is not None
    return Pattern(literals, begins, ends, tuple(merged))


def _format(text: str, values: Mapping[str, str]) -> list[str | Hole] | None:
    found: list[str | Hole] = []
    try:
        for literal, field, specification, conversion in Formatter().parse(text):
            found.append(literal)
            if field is not None:
                plain = not specification and not conversion
                found.append(values.get(field, Hole(field)) if plain else Hole(None))
    except ValueError:
        return None
    return found


def _jinja(text: str, template: PromptTemplate) -> list[str | Hole] | None:
    parsed = _parsed(text, template.options)
    if parsed is None:
        return None
    escaped = template.options is not None and template.options.autoescape
    values = {} if escaped else template.values
    return [
        values.get(piece.variable, piece) if isinstance(piece, Hole) and piece.variable is not None else piece
        for piece in parsed
    ]


# every run of a harness asks for its few templates several times, and jinja2 takes a millisecond or two for one
@lru_cache(maxsize=64)
def _parsed(text: str, options: JinjaOptions | None) -> tuple[str | Hole, ...] | None:
    # jinja2 is slow to import, and most harnesses have no template in it
    from jinja2 import nodes  # noqa: PLC0415

    def piece(node: nodes.Node) -> str | Hole:
        if isinstance(node, nodes.TemplateData):
            return str(node.data)
        return Hole(node.name if isinstance(node, nodes.Name) else None)

    try:
        body = includes.parse(text, options).body
    except includes.TemplateSyntaxFault:
        return None
    found: list[str | Hole] = []
    for statement in body:
        if not isinstance(statement, nodes.Output):
            return None
        found.extend(map(piece, statement.nodes))
    return tuple(found)


def _found_beginning(literal: str, text: str, start: int) -> int:
    """Return how many characters of a literal's beginning are found somewhere in `text` from `start`, by halving."""
    low, high = 0, len(literal)
    while low < high:
        middle = (low + high + 1) // 2
        if text.find(literal[:middle], start) >= 0:
            low = middle
        else:
            high = middle - 1
    return low


def _around(text: str, place: int, before: int, behind: int) -> str:
    first, last = max(0, place - before), place + behind
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
