"""Where a run that is being recorded disagrees with its harness: its request, its steps, and the process it runs in.

What agrees says nothing here; evidence comes from obtaining a part, not from looking alike.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracemark.harness.match import Content, Contradiction, Matcher, role_of
from tracemark.harness.templates import EXCERPT, differing, shared_beginning
from tracemark.harness.version import Harness
from tracemark.importers.content import text_of
from tracemark.model.harness import PromptTemplate, Runtime


class Renderings(NamedTuple):
    """What became of the templates that were rendered, by name."""

    agreeing: list[str]
    """Those that stand in their place as they were rendered."""
    differing: list[Contradiction]
    """Those in whose place another text stands."""
    missing: list[str]
    """Those in whose place no message stands."""


def request(
    harness: Harness,
    rendered: Sequence[tuple[PromptTemplate, str]],
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
) -> tuple[list[Contradiction], list[str]]:
    """Compare the first request to the model with what the harness gave.

    Args:
        harness: the harness.
        rendered: every prompt template that was rendered so far, with its text.
        messages: as in OpenAI's chat format; an assistant's message in them is a demonstration.
        tools: the definitions sent; None when they are not to be compared.

    Returns:
        Where the two disagree, and the templates that stand in their place as they were rendered.
    """
    texts = texts_of(messages)
    sent = None if tools is None else [dict(tool) for tool in tools]
    found = Matcher(harness).judge(Content(messages=texts, tools=sent)).contradictions
    compared = renderings(harness, rendered, texts)
    found += [each for each in compared.differing if each.part not in {other.part for other in found}]
    absent = "no such message in the request"
    found += [Contradiction("prompt_templates", name, None, absent) for name in compared.missing]
    return found, compared.agreeing


def renderings(
    harness: Harness, rendered: Sequence[tuple[PromptTemplate, str]], messages: Sequence[tuple[str, str, int | None]]
) -> Renderings:
    """Compare rendered templates of position `first`, of the main agent, with the messages in whose place they stand.

    Args:
        harness: the harness.
        rendered: every prompt template that was rendered, with its text; of several of one template any will do.
        messages: (role, text, step id) of each message, in order.
    """
    texts: dict[str, list[str]] = {}
    for template, text in rendered:
        texts.setdefault(template.name, []).append(text)
    templates = [each for each in harness.manifest.prompt_templates if each.agent is None and each.position == "first"]
    roles = {role_of(template.role) for template in templates}
    sent = {role: [each for each in messages if each[1] and role_of(each[0]) == role] for role in roles}
    places: dict[str, int | None] = {}
    for role, of_role in sent.items():
        names = [template.name for template in templates if role_of(template.role) == role]
        taken = _places([texts.get(name) for name in names], [text for _, text, _ in of_role])
        places.update(zip(names, taken, strict=True))
    found = Renderings([], [], [])
    for template in templates:
        name, place, of_role = template.name, places[template.name], sent[role_of(template.role)]
        if name not in texts:
            continue
        if place is None:
            # no text gives no message
            found.agreeing.append(name)
        elif place >= len(of_role):
            found.missing.append(name)
        elif of_role[place][1] in texts[name]:
            found.agreeing.append(name)
        else:
            _, text, step = of_role[place]
            last = [each for each in texts[name] if each][-1]
            found.differing.append(Contradiction("prompt_templates", name, step, _unlike(last, text)))
    return found


def texts_of(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int | None]]:
    """Return (role, text, no step id) of messages in OpenAI's chat format."""
    return [(str(message.get("role")), text_of(message.get("content")), None) for message in messages]


def surroundings(runtime: Runtime) -> tuple[list[Contradiction], list[str]]:
    """Compare the declared environment and packages with this process.

    Returns:
        Where they disagree, and the parts of `runtime` of which something is not known.
    """
    found = []
    for name, value in runtime.environment.items():
        if os.environ.get(name) != value:
            found.append(_runtime("environment", f"{name} is {os.environ.get(name)!r}, declared {value!r}"))
    unknown = []
    for name, version in runtime.packages.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            # an import name need not be a distribution's name
            unknown.append("packages")
            continue
        if installed != version:
            found.append(_runtime("packages", f"{name} is {installed}, declared {version}"))
    return found, unknown


class _Reading(NamedTuple):
    """Which messages some templates of one role stand for; of two readings the greater one is the better one."""

    agreeing: int
    """How many of them stand in their place as they were rendered."""
    missing: int
    """How many were rendered and find no message, counted below nothing."""
    placed: int
    """How many take a place, so that a changed text is not taken for no text."""
    places: tuple[int | None, ...]
    """The place of each; None for one without."""


def _places(texts: Sequence[Sequence[str] | None], sent: Sequence[str]) -> tuple[int | None, ...]:
    """Return in which place each template of one role stands.

    Each takes the place behind the one before, whether it was rendered (`texts`) or not (None). One that gave no text
    takes none. Of one that gave no text once and a text another time, both may be what was sent. That reading counts
    in which more messages agree, then in which fewer templates lack a message, then in which it has its place.
    """
    # by the number of places taken so far, the best reading that takes as many
    best = {0: _Reading(0, 0, 0, ())}
    for given in texts:
        following: dict[int, _Reading] = {}
        for place, reading in best.items():
            options = []
            if given is None or any(given):
                agrees = given is not None and place < len(sent) and sent[place] in given
                lacks = given is not None and place >= len(sent)
                score = reading.agreeing + agrees, reading.missing - lacks, reading.placed + 1
                options.append(_Reading(*score, (*reading.places, place)))
            if given is not None and "" in given:
                options.append(reading._replace(places=(*reading.places, None)))
            for made in options:
                if made.placed not in following or made[:3] > following[made.placed][:3]:
                    following[made.placed] = made
        best = following
    return max(best.values(), key=lambda reading: reading[:3]).places


def _unlike(text: str, sent: str) -> str:
    at = shared_beginning(text, sent)
    return differing(text, at, sent, at)


def _runtime(part: str, text: str) -> Contradiction:
    return Contradiction("runtime", part, None, text[:EXCERPT])
