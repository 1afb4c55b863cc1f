"""The prompt templates of a harness by the role of their messages, each with what can be told of its output.

Invariants:
- only the main agent's templates are held: one of another agent is never in the main agent's messages;
- nothing is rendered here; what a template can give is known by its pattern alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tracemark.harness.templates import Pattern, pattern
from tracemark.model.harness import PromptTemplate

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

SYSTEM = "system"
"""The role in which the harness itself speaks."""

MINIMUM_LITERAL = 64
"""Characters of literal text from which on a template that fits corroborates."""

MINIMUM_END = 16
"""Characters, white space not counted, that the first and the last literal piece of such a template hold at least.

A hole swallows whatever stands in it. Behind a hole in front of a single `.` the whole rest of a changed prompt may
stand, as long as it ends with a full stop: an end proves something only when no other text is likely to end so."""

_ROLES = {"developer": SYSTEM, "agent": "assistant"}

Message = tuple[str, str, int | None]
"""(role, text, step id)."""


class Template(NamedTuple):
    """A prompt template and what can be told of its output."""

    name: str
    """Its name."""
    pattern: Pattern | None
    """None when it can be compared with nothing."""

    @property
    def untold(self) -> bool:
        """Whether it may have given no message, and any message may be its own."""
        return self.pattern is None or not self.pattern.literals

    def fits(self, text: str, separator: str | None) -> bool | None:
        """Return None when the text cannot come from the template, else whether it corroborates it.

        Args:
            text: the text of a message.
            separator: text that the format fixes behind the prompt template; None when it fixes none.
        """
        if self.pattern is None:
            return False
        whole = self.pattern.disagreement(text) is None
        place = text.find(separator) if separator else -1
        if place < 0 or separator is None:
            return _proves(self.pattern) if whole else None
        prefix = _before(self.pattern, separator)
        before = prefix.disagreement(text[:place]) is None
        if prefix == self.pattern:
            # the template stops short of the separator, or is a whole message that happens to hold it
            if before or whole:
                return _proves(prefix)
            whole = prefix.in_front_of(separator).disagreement(text) is None
        if not whole:
            return None
        # the first separator may stand in a hole, and the template's own behind it: not excluded, and not shown either
        return before and (_proves(prefix) or _proves(self.pattern))

    def difference(self, text: str, separator: str | None) -> str:
        """Return in words where the text departs from the template; "" where it does not, or nothing can be told."""
        if self.pattern is None:
            return ""
        place = text.find(separator) if separator else -1
        if separator and place >= 0:
            prefix = _before(self.pattern, separator)
            if prefix.disagreement(text[:place]) is not None:
                return prefix.followed_by(separator).difference(text[: place + len(separator)])
        return self.pattern.difference(text)


class Role(NamedTuple):
    """The templates of one role."""

    first: tuple[Template, ...] = ()
    """Those of position `first`, in order, without those that are empty."""
    anywhere: tuple[Template, ...] = ()
    """Those of position `any`."""


def role_of(name: str) -> str:
    """Return the role under which a message or template is compared: formats have two words for some."""
    return _ROLES.get(name, name)


def messages_of(role: str, messages: Iterable[Message]) -> list[Message]:
    """Return the messages of a role; one without text is none that a harness could have written."""
    return [message for message in messages if message[1] and role_of(message[0]) == role]


def by_role(harness: Harness) -> dict[str, Role]:
    """Return the main agent's templates of each role."""
    found: dict[str, Role] = {}
    for template in [template for template in harness.manifest.prompt_templates if template.agent is None]:
        role = role_of(template.role)
        before = found.get(role, Role())
        comparable = _comparable(harness, template)
        if template.position == "any":
            found[role] = before._replace(anywhere=(*before.anywhere, comparable))
        elif comparable.pattern is None or comparable.pattern.pieces:
            found[role] = before._replace(first=(*before.first, comparable))
    return found


def _comparable(harness: Harness, template: PromptTemplate) -> Template:
    try:
        text = harness.prompt_text(template.name)
    except UnicodeDecodeError:
        # what is no text can be compared with no message
        text = None
    return Template(template.name, None if text is None else pattern(template, text))


@lru_cache(maxsize=256)
def _before(whole: Pattern, separator: str) -> Pattern:
    return whole.before(separator)


@lru_cache(maxsize=1024)
def _proves(fitting: Pattern) -> bool:
    if not (fitting.begins and fitting.ends) or fitting.size < MINIMUM_LITERAL:
        return False
    return all(len("".join(end.split())) >= MINIMUM_END for end in (fitting.literals[0], fitting.literals[-1]))
