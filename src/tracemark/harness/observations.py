"""Do the observations of a trace agree with the handlers of a harness?

A handler is code, and code is never run to judge a trace. Two things that its manifest may say can be compared: what
every observation is like (`max_characters`, `prefix`, `suffix`), and what text it makes of a raw output (`template`).

Invariants:
- a pattern or a limit can contradict and never corroborate: the handlers of many harnesses share it;
- a template corroborates its handler when the source holds the raw output of every observation, and each, rendered
  again, is the observation to the letter. One that differs contradicts;
- where the source holds no raw output, or it cannot be rendered (`rerender` says when), nothing is proved;
- what is declared is compared with what the model saw, which in a chain of handlers is what the last one gave: a
  template of another one is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tracemark.harness.includes import TemplateSyntaxFault
from tracemark.harness.rerender import NotRenderedError, Rerendering
from tracemark.harness.templates import EXCERPT, differing, shared_beginning
from tracemark.model.harness import ObservationHandler

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

Observation = tuple[int | None, str]
"""(step id, text)."""

RawOutput = tuple[int | None, Mapping[str, Any], str]
"""(step id, variables, text): what a tool gave, under the names by which a template asks for it, and the observation
that the model saw of it."""


class Difference(NamedTuple):
    """One observation that the harness does not give."""

    part: str
    """The handler."""
    step: int | None
    """Step id of the observation, if it has one."""
    text: str
    """What was expected and what was found; at most `EXCERPT` characters."""


class Handlers:
    """Compares observations with the handlers of one harness.

    Args:
        harness: the harness; only its manifest is used.
    """

    def __init__(self, harness: Harness) -> None:
        declared = harness.manifest.observation_handlers
        self._claiming = [handler for handler in declared if _claims(handler)]
        self._templates = {last.name: last.template for last in declared[-1:] if last.template is not None}
        self._renderings: dict[str, Rerendering | None] = {}

    @property
    def compared(self) -> Hashable:
        """All that observations are compared with: harnesses in which it is equal differ from the same ones."""
        claims = frozenset((one.max_characters, one.prefix or "", one.suffix or "") for one in self._claiming)
        return claims, frozenset(self._templates.values())

    def corroborated(self, observations: Sequence[Observation], raw_outputs: Sequence[RawOutput]) -> frozenset[str]:
        """Return the handlers whose template gives every observation."""
        if not raw_outputs or len(raw_outputs) != len(observations):
            return frozenset()
        return frozenset(name for name in self._templates if self._gives_all(name, raw_outputs))

    def differences(self, observations: Sequence[Observation], raw_outputs: Sequence[RawOutput]) -> list[Difference]:
        """Return of each handler the first observation that it does not give; empty when none contradicts."""
        found = {}
        for handler in self._claiming:
            broken = _broken_claim(handler, observations)
            if broken is not None:
                found[handler.name] = broken
        for name in self._templates.keys() - found.keys() if raw_outputs else ():
            differing_one = self._differing(name, raw_outputs)
            if differing_one is not None:
                found[name] = differing_one
        return [found[name] for name in sorted(found)]

    def _gives_all(self, name: str, raw_outputs: Sequence[RawOutput]) -> bool:
        return all(self._given(name, variables) == text for _, variables, text in raw_outputs)

    def _differing(self, name: str, raw_outputs: Sequence[RawOutput]) -> Difference | None:
        for step, variables, text in raw_outputs:
            given = self._given(name, variables)
            if given is not None and given != text:
                at = shared_beginning(given, text)
                said = "rendered from the raw output, "
                return Difference(name, step, said + differing(given, at, text, at, room=EXCERPT - len(said)))
        return None

    def _given(self, name: str, variables: Mapping[str, Any]) -> str | None:
        """Return what the template of a handler gives; None when it cannot be rendered."""
        if name not in self._renderings:
            try:
                self._renderings[name] = Rerendering(self._templates[name])
            except (NotRenderedError, TemplateSyntaxFault):
                self._renderings[name] = None
        rendering = self._renderings[name]
        if rendering is None:
            return None
        try:
            return rendering.render(variables)
        except NotRenderedError:
            return None


def _claims(handler: ObservationHandler) -> bool:
    return handler.max_characters is not None or bool(handler.prefix) or bool(handler.suffix)


def _broken_claim(handler: ObservationHandler, observations: Sequence[Observation]) -> Difference | None:
    limit, prefix, suffix = handler.max_characters, handler.prefix or "", handler.suffix or ""
    for step, text in observations:
        if limit is not None and len(text) > limit:
            found = f"expected at most {limit} characters found {len(text)}: {text[:60]!r}"
        elif prefix and not text.startswith(prefix):
            found = f"expected to begin with {prefix[:60]!r} found {text[:60]!r}"
        elif suffix and not text.endswith(suffix):
            found = f"expected to end with {suffix[-60:]!r} found {text[-60:]!r}"
        else:
            continue
        return Difference(handler.name, step, found[:EXCERPT])
    return None
