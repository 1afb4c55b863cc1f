"""Do the messages in front of an agent's first reply, and system messages anywhere, agree with a harness's templates?

Which message is which template's is told by `pairing`. Messages contradict the harness when no way is left to give each
template its message; a system message contradicts it as well when no template can give it, wherever it stands.

Invariants:
- what a harness sends is never found to contradict it, and messages that are absent contradict nothing;
- a template is corroborated only when every way to give the templates their messages gives it one that proves it;
- messages that were judged before are not judged again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tracemark.harness.pairing import pair
from tracemark.harness.roles import SYSTEM, Message, Role, Template, by_role, messages_of, role_of
from tracemark.harness.templates import EXCERPT

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

_CACHE = 256
_CACHED_TEXT = 65_536
_MESSAGE = 128


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


class Prompts:
    """Compares messages with the prompt templates of one harness.

    Args:
        harness: the harness; only its manifest and the text of its files are used.
    """

    def __init__(self, harness: Harness) -> None:
        self._roles = by_role(harness)
        self._givers = _givers(harness, self._roles)
        self._concerned = {*self._roles, SYSTEM}
        self._judged: dict[tuple[str | None, tuple[Message, ...]], Verdict] = {}

    @property
    def compared(self) -> Hashable:
        """All that messages are compared with: harnesses in which it is equal are contradicted by the same messages."""
        roles = []
        for role, (first, anywhere) in self._roles.items():
            # what may give anything or nothing behind all others changes nothing
            count = max((number for number, template in enumerate(first, 1) if not template.untold), default=0)
            if count:
                ordered = tuple(template.pattern for template in first[:count])
                roles.append((role, ordered, frozenset(template.pattern for template in anywhere)))
        givers = None if self._givers is None else frozenset(template.pattern for template in self._givers)
        return frozenset(roles), givers

    def judge(self, messages: Sequence[Message], separator: str | None, later: Sequence[Message] = ()) -> Verdict:
        """Return which templates the messages corroborate and where they disagree.

        Args:
            messages: every message in front of the first reply, in order.
            separator: text that the format fixes behind the prompt template; None when it fixes none.
            later: the system messages behind the first reply. They corroborate nothing, and their order says nothing;
                of those that no template gives the first is told.
        """
        # most runs of a harness begin alike; a message of any other role is compared with nothing
        concerned = tuple([message for message in messages if role_of(message[0]) in self._concerned])
        known = self._judged.get((separator, concerned))
        if known is None:
            known = self._verdict(concerned, separator)
            if len(self._judged) >= _CACHE:
                self._judged.clear()
            # one without text takes room as well
            if sum(_MESSAGE + len(text) for _, text, _ in concerned) <= _CACHED_TEXT:
                self._judged[separator, concerned] = known
        if later:
            before = len(messages_of(SYSTEM, messages))
            foreign = next(self._foreign(messages_of(SYSTEM, later), set(), separator, before), None)
            if foreign is not None:
                return known._replace(differences=[*known.differences, foreign])
        return known

    def _verdict(self, messages: Sequence[Message], separator: str | None) -> Verdict:
        corroborated: list[str] = []
        differences: list[Difference] = []
        taken: set[int] = set()
        for role, templates in self._roles.items():
            own = messages_of(role, messages)
            found = pair(templates, [text for _, text, _ in own], separator)
            corroborated += found.proved
            for template in templates.first:
                place = found.pairs.get(template.name)
                if place is not None and place.fits is None:
                    _, text, step = own[place.message]
                    differences.append(Difference(template.name, step, template.difference(text, separator)))
            if role == SYSTEM:
                taken = {place.message for place in found.pairs.values()}
        differences += self._foreign(messages_of(SYSTEM, messages), taken, separator)
        return Verdict(frozenset(corroborated), differences)

    def _foreign(
        self, messages: Sequence[Message], taken: set[int], separator: str | None, before: int = 0
    ) -> Iterator[Difference]:
        """Yield each system message that nothing of the harness gives; a user may say what he likes.

        Args:
            messages: system messages.
            taken: the numbers of those that are a template's.
            separator: as `judge` takes it.
            before: how many system messages stand in front of these.
        """
        if self._givers is None:
            return
        for index, (_, text, step) in enumerate(messages, before):
            # one that a template takes has been compared with it
            if index in taken:
                continue
            if all(template.fits(text, separator) is None for template in self._givers):
                part = SYSTEM if index == 0 else f"{SYSTEM}-{index + 1}"
                shown = f"no template gives this message: {text[:EXCERPT]!r}"
                yield Difference(part, step, shown[:EXCERPT])


def _givers(harness: Harness, roles: Mapping[str, Role]) -> tuple[Template, ...] | None:
    """Return the templates that can give a system message; None when something that cannot be compared may give one.

    A harness without any template sends no system message: its prompt component says that there is none.
    """
    declared = harness.manifest.prompt_templates
    system = [template for template in declared if role_of(template.role) == SYSTEM]
    for templates in (declared, system):
        if templates and all(template.agent is not None for template in templates):
            # which of the agents named is the main one is not said
            return None
    found = roles.get(SYSTEM, Role())
    givers = (*found.first, *found.anywhere)
    return None if any(template.pattern is None for template in givers) else givers
