"""Which message is which template's: the one rule for judging finished traces and for comparing runs being recorded.

The templates of position `first` and the messages of one role are two lists, gone through side by side. At each place

- the template in turn takes the message in turn; or
- the template in turn is passed over, if it may have given no message; or
- the message in turn is passed over, if a template of position `any` can have given it. Where one of those cannot be
  told, that is any message in front of one that the template in turn can give.

What a template can give is known by what it was rendered to, where that is known, and else by its pattern. Without its
renderings a template may have given no message, and any message may be its own, if its output cannot be told (code, a
loop, a condition, no text) or if it is nothing but a hole; any other gives one message. With them it may have given no
message if one of them is no text, and it takes no turn at all if all of them are.

A way through both lists ends where one of them ends. The way that is told is the one with the fewest

1. messages that the template taking them cannot have given;
2. templates that give a message in any case and are without one;
3. messages of which nobody knows whose they are: those taken by a template whose output cannot be told, and those that
   are passed over, or left over at the end, although no template of position `any` is known to give them.

A message that is left over may be what a user said behind the prompt. Where renderings are known, it counts as one of
the first kind: what was sent is known so well then that it is rather a changed text, unless a template of position
`any` that cannot be told may have given it. Of equal ways the one is told on which the earliest template takes the
earliest message.

Invariants:
- messages that are exactly what templates gave, in order, leave a way without a fault of the first two kinds, with
  renderings and without: so neither caller finds that what a harness sends contradicts it;
- where moreover no message of one template can be another's, each template whose output can be told has the same
  message with renderings as without;
- a message that the template in turn can give is its own, and not that of a template of position `any`;
- messages that are absent at the end are no fault of the first kind;
- time is the product of templates and messages, not the number of ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, product
from typing import NamedTuple

from tracemark.harness.roles import Role, Template

_Place = tuple[int, int]
"""How many templates and how many messages of a role have been passed: the numbers of those in turn."""

_Faults = tuple[int, int, int]
"""How many there are of each kind; the first kind counts before the second, and that before the third."""

_NONE = (0, 0, 0)


class Pair(NamedTuple):
    """The message that a template takes."""

    message: int
    """The number of the message among those of its role."""
    fits: bool | None
    """Whether the message proves the template; None when the template cannot have given it."""


class Pairing(NamedTuple):
    """Which templates of a role have which messages."""

    pairs: dict[str, Pair]
    """Name and message of each template of position `first` that takes one, on the way that is told."""
    proved: list[str]
    """Names of the templates that a message proves, whichever way without more faults of the first kind is gone; ways
    on which a template does not take the message in turn, although it can have given it, are not asked."""


class _Turn(NamedTuple):
    """A template of position `first`, and what it was rendered to; None when that is not known."""

    template: Template
    renderings: Collection[str] | None

    @property
    def untold(self) -> bool:
        """Whether any message may be its own."""
        return self.renderings is None and self.template.untold

    @property
    def optional(self) -> bool:
        """Whether it may have given no message."""
        return self.template.untold if self.renderings is None else "" in self.renderings

    def fits(self, text: str, separator: str | None) -> bool | None:
        """Return None when it cannot have given the text, else whether that proves it."""
        if self.renderings is None:
            return self.template.fits(text, separator)
        return True if text in self.renderings else None


class _Step(NamedTuple):
    """One way to go on: the template takes the message, or one of the two is passed over."""

    to: _Place
    taken: bool
    fit: bool | None
    """Whether the message that is taken proves the template; None as well where none is taken."""
    faults: _Faults = _NONE


class _Lists:
    """The two lists of one role, and what is known of them.

    Args:
        first: the templates.
        texts: the messages.
        separator: as `pair` takes it.
        given: for each message whether a template of position `any` can have given it.
        unknown: whether a template of position `any` cannot be told, and may give anything.
        charged: whether a message that is left over is a fault of the first kind.
    """

    def __init__(
        self,
        first: Sequence[_Turn],
        texts: Sequence[str],
        separator: str | None,
        given: Sequence[bool],
        unknown: bool,
        charged: bool,
    ) -> None:
        self.first, self.given = first, given
        self._unknown, self._charged = unknown, charged
        self._over = _counted(not one for one in reversed(given))
        self._without = _counted(not turn.optional for turn in reversed(first))
        self.fit = cache(lambda number, index: first[number].fits(texts[index], separator))
        self._last = cache(self._find_last)

    def _find_last(self, number: int) -> int:
        """Return the number of the last message that a template can give; -1 when there is none."""
        places = reversed(range(len(self.given)))
        return next((index for index in places if self.fit(number, index) is not None), -1)

    def steps(self, number: int, index: int) -> Iterator[_Step]:
        """Yield the steps from a place, in the order in which they are preferred."""
        turn, fit = self.first[number], self.fit(number, index)
        if fit is not None or not self.given[index]:
            yield _Step((number + 1, index + 1), True, fit, (int(fit is None), 0, int(turn.untold)))
        if turn.optional:
            yield _Step((number + 1, index), False, None)
        if self.given[index]:
            yield _Step((number, index + 1), False, None)
        elif self._unknown and not turn.untold and index < self._last(number):
            yield _Step((number, index + 1), False, None, (0, 0, 1))

    def at_the_end(self, place: _Place) -> _Faults:
        """Return the faults of a way that ends at a place."""
        number, index = place
        over, without = self._over[-1 - index], self._without[-1 - number]
        return (over, without, 0) if self._charged else (0, without, over)


def pair(
    role: Role,
    texts: Sequence[str],
    separator: str | None = None,
    renderings: Mapping[str, Collection[str]] | None = None,
) -> Pairing:
    """Pair the templates of one role with its messages.

    Args:
        role: the templates.
        texts: the texts of the messages in front of the first reply, in order, none of them empty.
        separator: text that the format fixes behind the prompt template; None when it fixes none.
        renderings: by the name of a template all that it was rendered to, "" for no text; of a template that is not
            named nothing is known. None when nobody watched.
    """
    known = {} if renderings is None else renderings
    turns = [_Turn(template, known.get(template.name)) for template in role.first]
    first = [turn for turn in turns if turn.renderings is None or any(turn.renderings)]
    comparable = [template for template in role.anywhere if template.pattern is not None]
    shown = [(template.name, [template.fits(text, separator) for text in texts]) for template in comparable]
    said = {text for template in role.anywhere for text in known.get(template.name, ())}
    given = [text in said or any(fits[i] is not None for _, fits in shown) for i, text in enumerate(texts)]
    unknown = len(comparable) < len(role.anywhere)

    if unknown or any(given) or any(turn.optional for turn in first):
        charged = renderings is not None and not unknown
        pairs, proved = _best(_Lists(first, texts, separator, given, unknown, charged))
    else:
        # there is one way
        ones = enumerate(zip(first, texts, strict=False))
        pairs = {number: Pair(number, turn.fits(text, separator)) for number, (turn, text) in ones}
        proved = [number for number, found in pairs.items() if found.fits]
    names = [turn.template.name for turn in first]
    # those of position `any` may come after the first reply, or not at all
    anywhere = [name for name, fits in shown if any(fits)]
    return Pairing({names[n]: found for n, found in pairs.items()}, [*(names[n] for n in proved), *anywhere])


def _best(lists: _Lists) -> tuple[dict[int, Pair], list[int]]:
    """Return the messages of the templates on the way that is told, and the templates that are proved."""
    ways: dict[_Place, list[_Step]] = {}
    reached = {(0, 0)}
    for place in product(range(len(lists.first)), range(len(lists.given))):
        if place in reached:
            ways[place] = list(lists.steps(*place))
            reached.update(step.to for step in ways[place])
    # the faults of the best way on from each place; places are in rising order
    left = {place: lists.at_the_end(place) for place in reached if place not in ways}
    for place in reversed(ways):
        left[place] = min(_sum(step.faults, left[step.to]) for step in ways[place])
    return dict(_told(ways, left)), list(_proved(lists.first, ways, left))


def _told(ways: Mapping[_Place, Sequence[_Step]], left: Mapping[_Place, _Faults]) -> Iterator[tuple[int, Pair]]:
    """Yield each template that takes a message on the first of the best ways, by its number."""
    place = (0, 0)
    while place in ways:
        step = next(step for step in ways[place] if _sum(step.faults, left[step.to]) == left[place])
        if step.taken:
            yield place[0], Pair(place[1], step.fit)
        place = step.to


def _proved(
    first: Sequence[_Turn], ways: Mapping[_Place, Sequence[_Step]], left: Mapping[_Place, _Faults]
) -> Iterator[int]:
    """Yield the number of each template that takes a message which proves it, whichever way is gone."""
    outcomes: list[set[bool | None]] = [set() for _ in first]
    reached, open_places = {(0, 0)}, [(0, 0)]
    while open_places:
        place = open_places.pop()
        number = place[0]
        if place not in ways:
            # no message is left for these
            for outcome in outcomes[number:]:
                outcome.add(None)
            continue
        best = [step for step in ways[place] if step.faults[0] + left[step.to][0] == left[place][0]]
        own = best[0].taken and best[0].fit is not None and not first[number].untold
        for step in best[:1] if own else best:
            if step.to[0] > number:
                outcomes[number].add(step.fit)
            if step.to not in reached:
                reached.add(step.to)
                open_places.append(step.to)
    for number, outcome in enumerate(outcomes):
        if outcome == {True}:
            yield number


def _counted(flags: Iterable[bool]) -> list[int]:
    """Return how many are set among none of them, the first, the first two, and so on."""
    return [0, *accumulate(map(int, flags))]


def _sum(some: _Faults, more: _Faults) -> _Faults:
    return some[0] + more[0], some[1] + more[1], some[2] + more[2]
