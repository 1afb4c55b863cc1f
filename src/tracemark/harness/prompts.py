"""Do the messages in front of an agent's first reply agree with the prompt templates of a harness?

The templates of position `first` are an ordered list for each role: each gives one message, in that order. One whose
output cannot be told (code, a loop, a condition, no text), or that is nothing but a hole, gives one message or none. A
message that a template of position `any` can give may stand between theirs. The messages of a role contradict the
harness when there is no way left to give each template its message.

Invariants:
- what a harness sends is never found to contradict it, and messages that are absent contradict nothing;
- a template is corroborated only when every way to give the templates their messages gives it one that proves it; a
  message that it can give is its own, and not that of a template of position `any`;
- of several ways the one with the fewest differences is told;
- time is the product of templates and messages, not the number of ways.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from tracemark.harness.templates import EXCERPT, Pattern, pattern
from tracemark.model.harness import PromptTemplate

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

MINIMUM_LITERAL = 64
"""Characters of literal text from which on a template that fits corroborates."""

MINIMUM_END = 16
"""Characters, white space not counted, that the first and the last literal piece of such a template hold at least.

A hole swallows whatever stands in it. Behind a hole in front of a single `.` the whole rest of a changed prompt may
stand, as long as it ends with a full stop: an end proves something only when no other text is likely to end so."""

_CACHE = 256
_CACHED_TEXT = 65_536
_SYSTEM = "system"
_ROLES = {"developer": "system", "agent": "assistant"}

Message = tuple[str, str, int | None]
"""(role, text, step id)."""

_Place = tuple[int, int]
"""How many templates and how many messages of a role have been passed: the numbers of those in turn."""

_Fit = Callable[[int, int], bool | None]


class Difference(NamedTuple):
    """One message that is not what the harness gives."""

    part: str
    """The template; a message of no template is called `system`, `system-2` and so on."""
    step: int | None
    """Step id of the message, if it has one."""
    text: str
    """What was expected and what was found; at most `EXCERPT` characters."""


class Verdict(NamedTuple):
    """What messages say of the templates."""

    corroborated: frozenset[str]
    """Names of the templates that the messages corroborate."""
    differences: list[Difference]
    """Where messages and templates disagree."""


class _Template(NamedTuple):
    name: str
    pattern: Pattern | None
    """None when it can be compared with nothing."""

    @property
    def optional(self) -> bool:
        """Whether it may have given no message, and any message may be its own."""
        return self.pattern is None or not self.pattern.literals


class _Role(NamedTuple):
    """The main agent's templates of one role."""

    first: tuple[_Template, ...] = ()
    """Those of position `first`, in order, without those that are empty."""
    anywhere: tuple[_Template, ...] = ()
    """Those of position `any`."""


class _Step(NamedTuple):
    """One way to go on: the template takes the message, or one of the two is left out."""

    to: _Place
    taken: bool
    fit: bool | None
    """As `Prompts._fits` returns it; None as well where nothing is taken."""

    @property
    def cost(self) -> int:
        return int(self.taken and self.fit is None)


class _Pairing(NamedTuple):
    """Which templates of position `first` take which messages of their role."""

    proved: list[int]
    """Numbers of the templates that a message proves, whichever way is gone."""
    differing: list[_Place]
    """Each template and message that are no pair and have to be one."""
    taken: set[int]
    """Numbers of the messages that are taken."""


class Prompts:
    """Compares messages with the prompt templates of one harness.

    Args:
        harness: the harness; only its manifest and the text of its files are used.
    """

    def __init__(self, harness: Harness) -> None:
        self._roles = _by_role(harness)
        self._givers = _givers(harness, self._roles)
        self._cut: dict[tuple[str, str], Pattern] = {}
        self._concerned = {*self._roles, _SYSTEM}
        self._judged: dict[tuple[str | None, tuple[Message, ...]], Verdict] = {}

    @property
    def compared(self) -> Hashable:
        """All that messages are compared with: harnesses in which it is equal are contradicted by the same messages."""
        roles = []
        for role, (first, anywhere) in self._roles.items():
            # what may give anything or nothing behind all others changes nothing
            count = max((number for number, template in enumerate(first, 1) if not template.optional), default=0)
            if count:
                ordered = tuple(template.pattern for template in first[:count])
                roles.append((role, ordered, frozenset(template.pattern for template in anywhere)))
        givers = None if self._givers is None else frozenset(template.pattern for template in self._givers)
        return frozenset(roles), givers

    def judge(self, messages: Sequence[Message], separator: str | None) -> Verdict:
        """Return which templates the messages corroborate and where they disagree.

        Args:
            messages: every message in front of the first reply, in order.
            separator: text that the format fixes behind the prompt template; None when it fixes none.
        """
        # most runs of a harness begin alike; a message of any other role is compared with nothing
        concerned = tuple([message for message in messages if role_of(message[0]) in self._concerned])
        known = self._judged.get((separator, concerned))
        if known is None:
            known = self._verdict(concerned, separator)
            if len(self._judged) >= _CACHE:
                self._judged.clear()
            if sum(len(text) for _, text, _ in concerned) <= _CACHED_TEXT:
                self._judged[separator, concerned] = known
        return known

    def _verdict(self, messages: Sequence[Message], separator: str | None) -> Verdict:
        corroborated: list[str] = []
        differences: list[Difference] = []
        passed: set[int] = set()
        for role, templates in self._roles.items():
            taken = self._judge_role(templates, _of_role(messages, role), separator, corroborated, differences)
            passed = taken if role == _SYSTEM else passed
        differences += self._foreign(_of_role(messages, _SYSTEM), passed, separator)
        return Verdict(frozenset(corroborated), differences)

    def _judge_role(
        self,
        templates: _Role,
        messages: Sequence[Message],
        separator: str | None,
        corroborated: list[str],
        differences: list[Difference],
    ) -> set[int]:
        """Judge the messages of one role; return the indices of those that a template of position `first` takes."""
        first, anywhere = templates

        def fit(number: int, index: int) -> bool | None:
            return self._fits(first[number], messages[index][1], separator)

        fitted = [
            [self._fits(template, text, separator) for _, text, _ in messages] if template.pattern else []
            for template in anywhere
        ]
        unknown = any(template.pattern is None for template in anywhere)
        given = [any(fits[index] is not None for fits in fitted if fits) for index in range(len(messages))]

        pairing = _pairing(first, fit, given, unknown)
        corroborated += [first[number].name for number in pairing.proved]
        # those of position `any` may come after the first reply, or not at all
        corroborated += [template.name for template, fits in zip(anywhere, fitted, strict=True) if any(fits)]
        for number, index in pairing.differing:
            _, text, step = messages[index]
            difference = self._difference(first[number], text, separator)
            differences.append(Difference(first[number].name, step, difference))
        return pairing.taken

    def _foreign(self, messages: Sequence[Message], taken: set[int], separator: str | None) -> Iterator[Difference]:
        """Yield each system message that nothing of the harness gives; a user may say what he likes."""
        if self._givers is None:
            return
        for index, (_, text, step) in enumerate(messages):
            # one that a template takes has been compared with it
            if index in taken:
                continue
            if all(self._fits(template, text, separator) is None for template in self._givers):
                part = _SYSTEM if index == 0 else f"{_SYSTEM}-{index + 1}"
                shown = f"no template gives this message: {text[:EXCERPT]!r}"
                yield Difference(part, step, shown[:EXCERPT])

    def _fits(self, template: _Template, text: str, separator: str | None) -> bool | None:
        """Return None when the text cannot come from the template, else whether it corroborates it."""
        if template.pattern is None:
            return False
        whole = template.pattern.disagreement(text) is None
        place = text.find(separator) if separator else -1
        if place < 0 or separator is None:
            return _proves(template.pattern) if whole else None
        prefix = self._prefix(template.name, template.pattern, separator)
        before = prefix.disagreement(text[:place]) is None
        if prefix is template.pattern:
            # the template stops short of the separator, or is a whole message that happens to hold it
            if before or whole:
                return _proves(prefix)
            whole = prefix.in_front_of(separator).disagreement(text) is None
        if not whole:
            return None
        # the first separator may stand in a hole, and the template's own behind it: not excluded, and not shown either
        return before and (_proves(prefix) or _proves(template.pattern))

    def _prefix(self, name: str, whole: Pattern, separator: str) -> Pattern:
        known = self._cut.get((name, separator))
        if known is None:
            known = whole.before(separator)
            if len(self._cut) < _CACHE:
                self._cut[name, separator] = known
        return known

    def _difference(self, template: _Template, text: str, separator: str | None) -> str:
        if template.pattern is None:
            return ""
        place = text.find(separator) if separator else -1
        if separator and place >= 0:
            prefix = self._prefix(template.name, template.pattern, separator)
            if prefix.disagreement(text[:place]) is not None:
                return prefix.followed_by(separator).difference(text[: place + len(separator)])
        return template.pattern.difference(text)


def role_of(name: str) -> str:
    """Return the role under which a message or template is compared: formats have two words for some."""
    return _ROLES.get(name, name)


def _pairing(first: Sequence[_Template], fit: _Fit, given: Sequence[bool], unknown: bool) -> _Pairing:
    """Pair templates with messages.

    Args:
        first: the templates that give one message each, in order.
        fit: says of a template and a message, by their numbers, what `Prompts._fits` says.
        given: for each message whether a template of position `any` can give it.
        unknown: whether a template of position `any` cannot be told, and may give anything.
    """
    if unknown or any(given) or any(template.optional for template in first):
        ways = _ways(first, cache(fit), given, unknown)
        told = list(_told(ways))
        differing = [place for place, step in told if step.cost]
        return _Pairing(list(_proved(first, ways)), differing, {place[1] for place, step in told if step.taken})
    # there is one way
    fits = [fit(number, number) for number in range(min(len(first), len(given)))]
    return _Pairing(
        [number for number, found in enumerate(fits) if found],
        [(number, number) for number, found in enumerate(fits) if found is None],
        set(range(len(fits))),
    )


def _ways(first: Sequence[_Template], fit: _Fit, given: Sequence[bool], unknown: bool) -> dict[_Place, list[_Step]]:
    """Return the best steps from each place that is reached; a place without any is an end of a way."""

    @cache
    def last(number: int) -> int:
        return next((index for index in reversed(range(len(given))) if fit(number, index) is not None), -1)

    def steps(number: int, index: int) -> Iterator[_Step]:
        if fit(number, index) is not None or not given[index]:
            yield _Step((number + 1, index + 1), True, fit(number, index))
        if first[number].optional:
            yield _Step((number + 1, index), False, None)
        # what cannot be told may stand in front of the message in turn, and not for it
        if given[index] or (unknown and not first[number].optional and index < last(number)):
            yield _Step((number, index + 1), False, None)

    ways = {}
    reached = {(0, 0)}
    for place in product(range(len(first)), range(len(given))):
        if place in reached:
            ways[place] = list(steps(*place))
            reached.update(step.to for step in ways[place])
    _keep_the_best(ways)
    return ways


def _keep_the_best(ways: dict[_Place, list[_Step]]) -> None:
    """Keep of the steps from each place those that lead to the fewest differences; places are in rising order."""
    left: dict[_Place, int] = {}
    for place in reversed(ways):
        costs = [step.cost + left.get(step.to, 0) for step in ways[place]]
        left[place] = min(costs)
        ways[place] = [step for step, cost in zip(ways[place], costs, strict=True) if cost == left[place]]


def _told(ways: Mapping[_Place, Sequence[_Step]]) -> Iterator[tuple[_Place, _Step]]:
    """Yield the steps of the first way; at each place the template's taking the message comes first."""
    place = (0, 0)
    while place in ways:
        yield place, ways[place][0]
        place = ways[place][0].to


def _proved(first: Sequence[_Template], ways: Mapping[_Place, Sequence[_Step]]) -> Iterator[int]:
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
        best = ways[place]
        own = best[0].taken and best[0].fit is not None and not first[number].optional
        for step in best[:1] if own else best:
            if step.to[0] > number:
                outcomes[number].add(step.fit)
            if step.to not in reached:
                reached.add(step.to)
                open_places.append(step.to)
    for number, outcome in enumerate(outcomes):
        if outcome == {True}:
            yield number


def _by_role(harness: Harness) -> dict[str, _Role]:
    """Return the templates of each role."""
    found: dict[str, _Role] = {}
    # a template of another agent of the harness is never in the main agent's messages
    for template in [template for template in harness.manifest.prompt_templates if template.agent is None]:
        role = role_of(template.role)
        before = found.get(role, _Role())
        comparable = _comparable(harness, template)
        if template.position == "any":
            found[role] = before._replace(anywhere=(*before.anywhere, comparable))
        elif comparable.pattern is None or comparable.pattern.pieces:
            found[role] = before._replace(first=(*before.first, comparable))
    return found


def _givers(harness: Harness, roles: Mapping[str, _Role]) -> tuple[_Template, ...] | None:
    """Return the templates that can give a system message; None when something that cannot be compared may give one.

    A harness without any template sends no system message: its prompt component says that there is none.
    """
    declared = harness.manifest.prompt_templates
    system = [template for template in declared if role_of(template.role) == _SYSTEM]
    for templates in (declared, system):
        if templates and all(template.agent is not None for template in templates):
            # which of the agents named is the main one is not said
            return None
    found = roles.get(_SYSTEM, _Role())
    givers = (*found.first, *found.anywhere)
    return None if any(template.pattern is None for template in givers) else givers


def _of_role(messages: Sequence[Message], role: str) -> list[Message]:
    # a message without text is none that a harness could have written
    return [message for message in messages if message[1] and role_of(message[0]) == role]


def _comparable(harness: Harness, template: PromptTemplate) -> _Template:
    try:
        text = harness.prompt_text(template.name)
    except UnicodeDecodeError:
        # what is no text can be compared with no message
        text = None
    return _Template(template.name, None if text is None else pattern(template, text))


@lru_cache(maxsize=1024)
def _proves(fitting: Pattern) -> bool:
    if not (fitting.begins and fitting.ends) or fitting.size < MINIMUM_LITERAL:
        return False
    return all(len("".join(end.split())) >= MINIMUM_END for end in (fitting.literals[0], fitting.literals[-1]))
