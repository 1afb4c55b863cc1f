"""What stands where a template has a variable that is declared constant, and whether it stays the same.

A variable that is called constant and has no declared value is a promise about all traces of a harness, which no single
message can break. So the values that traces show are compared with each other.

Invariants:
- a value counts only where the message leaves no choice: where the literal pieces beside the hole can stand in one
  place alone. Finding that is linear, one search from each end;
- a trace that contradicts the template, and a message that may be another template's, shows no value;
- what is kept is a few digests per variable, whatever the number of traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tracemark import digest
from tracemark.harness.pairing import pair
from tracemark.harness.roles import Message, by_role, messages_of
from tracemark.harness.templates import Hole, Pattern, pattern, pieces

if TYPE_CHECKING:
    from tracemark.harness.version import Harness
    from tracemark.model.harness import PromptTemplate

_EXCERPT = 40


class Value(NamedTuple):
    """One value that a trace shows for a variable."""

    digest: str
    """SHA-256 of the text."""
    excerpt: str
    """Its beginning."""
    trace: str
    """Id of the first trace that shows it."""


class _Template(NamedTuple):
    pattern: Pattern
    constants: dict[int, str]
    """Number among the pattern's pieces of each hole that holds constants alone, and their names."""


class ConstantHoles:
    """Finds the values of the constants of one harness in messages.

    Args:
        harness: the harness; only its manifest and the text of its files are used.
    """

    def __init__(self, harness: Harness) -> None:
        self._templates: dict[str, _Template] = {}
        self._roles = {}
        for role, templates in by_role(harness).items():
            own = {each.name for each in templates.first}
            for template in harness.manifest.prompt_templates:
                if template.name in own and (found := _template(harness, template)) is not None:
                    self._templates[template.name] = found
                    self._roles[role] = templates

    def __bool__(self) -> bool:
        """Return whether there is any constant without a declared value."""
        return bool(self._templates)

    def values(self, messages: Sequence[Message], separator: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield (template, variable, value) of each constant of which the messages leave no choice.

        Args:
            messages: every message in front of the first reply, in order.
            separator: text that the format fixes behind the prompt template; None when it fixes none.
        """
        for role, templates in self._roles.items():
            texts = [text for _, text, _ in messages_of(role, messages)]
            found = pair(templates, texts, separator)
            one_way = not templates.anywhere and not any(each.untold for each in templates.first)
            for name, place in found.pairs.items():
                template = self._templates.get(name)
                if template is None or not (one_way or name in found.proved):
                    continue
                for number, value in held(template.pattern, texts[place.message], template.constants):
                    yield name, template.constants[number], value


class Constants:
    """The values that traces show for constants, by harness; values of equal digest are one."""

    _KEPT = 2

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], list[Value]] = {}

    def add(self, fingerprint: str, trace: str, values: Iterable[tuple[str, str, str]]) -> None:
        """Take in what one trace of a harness shows: (template, variable, value) each."""
        for template, variable, value in values:
            shown = Value(digest.sha256(value.encode("utf-8", "surrogatepass")), value[:_EXCERPT], trace)
            self._keep((fingerprint, template, variable), shown)

    def merge(self, other: Constants) -> None:
        """Take in what was seen elsewhere."""
        for key, values in other._seen.items():
            for value in values:
                self._keep(key, value)

    def varying(self) -> Iterator[tuple[str, str, str, tuple[Value, Value]]]:
        """Yield (fingerprint, template, variable, two values) of each constant that has more than one, sorted."""
        for (fingerprint, template, variable), values in sorted(self._seen.items()):
            if len(values) > 1:
                yield fingerprint, template, variable, (values[0], values[1])

    def _keep(self, key: tuple[str, str, str], value: Value) -> None:
        kept = self._seen.setdefault(key, [])
        if len(kept) < self._KEPT and all(value.digest != one.digest for one in kept):
            kept.append(value)


def held(template: Pattern, text: str, holes: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yield the number of each of some holes that can hold one text alone, and that text; nothing if `text` differs.

    Args:
        template: the pattern.
        text: a message.
        holes: numbers of holes among the pattern's pieces.
    """
    if template.disagreement(text) is not None:
        return
    places = _places(template, text)
    for number in holes:
        before, behind = places.get(number - 1, (0, 0, 0)), places.get(number + 1, (len(text), len(text), 0))
        if before[0] == before[1] and behind[0] == behind[1]:
            yield number, text[before[0] + before[2] : behind[0]]


def _places(template: Pattern, text: str) -> dict[int, tuple[int, int, int]]:
    """Return of each literal, by its number among the pieces, its first and its last possible place, and its size.

    Pieces in front are put as far to the left as they go, and those behind as far to the right.
    """
    literals = [(number, piece) for number, piece in enumerate(template.pieces) if piece is not None]
    first: dict[int, int] = {}
    start = 0
    for number, piece in literals:
        is_last = template.ends and number == len(template.pieces) - 1
        first[number] = len(text) - len(piece) if is_last else text.find(piece, start)
        start = first[number] + len(piece)
    found = {}
    end = len(text)
    for number, piece in reversed(literals):
        last = 0 if template.begins and number == 0 else text.rfind(piece, 0, end)
        found[number] = first[number], last, len(piece)
        end = last
    return found


def _template(harness: Harness, template: PromptTemplate) -> _Template | None:
    """Return what of a template is looked at; None when no constant of it is without a value, or it has no pattern."""
    try:
        text = harness.prompt_text(template.name) or ""
    except UnicodeDecodeError:
        return None
    whole, parts = pattern(template, text), pieces(template, text)
    if whole is None or parts is None:
        return None
    constants = {}
    # neighbours are one piece of the pattern, so a hole may hold several variables
    runs = groupby((piece for piece in parts if piece != ""), key=lambda piece: isinstance(piece, Hole))
    for number, (is_hole, run) in enumerate(runs):
        names = [piece.variable for piece in run if isinstance(piece, Hole)] if is_hole else []
        if names and all(template.variables.get(name or "") == "constant" for name in names):
            constants[number] = " ".join(name for name in names if name)
    return _Template(whole, constants) if constants else None
