"""The configuration that a program recorded of its own run, checked before anything of it is believed.

A recorded configuration need not be that of the run: tools graft newer ones into older files. So its prompt templates
are compared with the messages that were sent, and only one that makes up a message shows that the rest may be used.

Invariants:
- one template that cannot give its message, with the values that the configuration holds for its variables,
  contradicts the configuration as a whole: then no part of it is used;
- one whose text cannot be told from its template (loops, conditions), or that is hardly more than a hole, neither
  confirms nor contradicts, and its message is kept as `rendered`;
- nothing is rendered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tracemark.harness.templates import Pattern, pattern
from tracemark.importers import recovery
from tracemark.importers.base import verbatim_digest
from tracemark.importers.recovery import SHORTEST, Entry
from tracemark.model.harness import PromptTemplate

_CACHED = 65_536

_Values = tuple[tuple[str, str], ...]

CONTRADICTED = "config-contradicted"
"""Code of the finding about a configuration that its own messages contradict."""


class Prompt(NamedTuple):
    """One prompt of a run."""

    part: str
    """The part's name."""
    template: Any
    """What the configuration holds as its template; no text when there is none."""
    sent: str | None
    """The message; None when none was seen, which proves nothing."""


class Judgement(NamedTuple):
    """What a configuration is worth."""

    entries: list[Entry]
    """The prompts, as the observed half of a stamp has them."""
    confirmed: bool
    """Whether a template makes up its message, and none contradicts."""
    contradiction: str | None
    """Which template gives another message, in words; None when none does."""


def judge(
    prompts: Iterable[Prompt], syntaxes: Sequence[str] = ("jinja",), values: Mapping[str, str] | None = None
) -> Judgement:
    """Compare the prompt templates of a configuration with the messages that were sent.

    Args:
        prompts: templates and messages; one that was not sent gives nothing.
        syntaxes: what templates of the format may be written in. One fits when it fits in any of them, and contradicts
            when it can be read in one and fits in none.
        values: what the configuration says of the templates' variables, by name: it must stand in the messages too.
    """
    known = tuple(sorted((name, value) for name, value in (values or {}).items() if name.isidentifier()))
    seen = [prompt for prompt in prompts if prompt.sent]
    entries: list[Entry] = []
    confirmed, contradiction = False, None
    for part, template, sent in seen:
        text = sent or ""
        shapes = _patterns(template, syntaxes, known) if isinstance(template, str) else []
        fitting = [shape for shape in shapes if shape.disagreement(text) is None]
        if any(shape.size >= SHORTEST for shape in fitting):
            confirmed = True
            entries.append({"part": part, "form": "template", "digest": verbatim_digest(template)})
            continue
        entries += recovery.rendered(part, text)
        if shapes and not fitting and contradiction is None:
            closest = min(shapes, key=lambda shape: (shape.exact, -shape.size))
            contradiction = f"the recorded template of {part} does not give its message: {closest.difference(text)}"
    if contradiction is not None:
        return Judgement(rendered_prompts(seen), False, contradiction)
    return Judgement(entries, confirmed, None)


def rendered_prompts(prompts: Iterable[Prompt]) -> list[Entry]:
    """Return the messages as they were sent, where no configuration may be used."""
    return [entry for prompt in prompts for entry in recovery.rendered(prompt.part, prompt.sent or "")]


def _patterns(text: str, syntaxes: Sequence[str], values: _Values) -> list[Pattern]:
    """Return the pattern of a template in each syntax; none where its output cannot be told in the first of them."""
    read = _known_pattern if len(text) + sum(len(value) for _, value in values) <= _CACHED else _pattern
    found = [read(text, syntax, values) for syntax in syntaxes]
    return [shape for shape in found if shape is not None] if found[0] is not None else []


def _pattern(text: str, syntax: str, values: _Values) -> Pattern | None:
    members = {"values": dict(values), "variables": {name: "constant" for name, _ in values}}
    return pattern(PromptTemplate.model_validate({"name": "recorded", "text": text, "syntax": syntax, **members}), text)


# the runs of a benchmark share their templates, and reading one costs more than comparing it
_known_pattern = lru_cache(maxsize=64)(_pattern)
