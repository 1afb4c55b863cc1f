"""Where a run that is being recorded disagrees with its harness: its request, its steps, and the process it runs in.

What agrees says nothing here; evidence comes from obtaining a part, not from looking alike. Which message is which
template's is told by `harness.pairing`, as it is for a finished trace.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracemark.harness.match import Content, Contradiction, Matcher
from tracemark.harness.pairing import pair
from tracemark.harness.roles import Message, by_role, messages_of
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
    harness: Harness, rendered: Sequence[tuple[PromptTemplate, str]], messages: Sequence[Message]
) -> Renderings:
    """Compare rendered templates of position `first`, of the main agent, with the messages that are theirs.

    Args:
        harness: the harness.
        rendered: every prompt template that was rendered, with its text; of several of one template any will do.
        messages: (role, text, step id) of each message, in order.
    """
    texts: dict[str, list[str]] = {}
    for template, text in rendered:
        texts.setdefault(template.name, []).append(text)
    stands: dict[str, tuple[Message, bool]] = {}
    for role, templates in by_role(harness).items():
        sent = messages_of(role, messages)
        pairs = pair(templates, [text for _, text, _ in sent], renderings=texts).pairs
        stands.update({name: (sent[place.message], place.fits is not None) for name, place in pairs.items()})
    found = Renderings([], [], [])
    for template in harness.manifest.prompt_templates:
        name = template.name
        if name not in texts or template.agent is not None or template.position != "first":
            continue
        if name in stands:
            (_, text, step), fits = stands[name]
            if fits:
                found.agreeing.append(name)
                continue
            last = [each for each in texts[name] if each][-1]
            found.differing.append(Contradiction("prompt_templates", name, step, _unlike(last, text)))
        elif "" in texts[name]:
            # no text gives no message
            found.agreeing.append(name)
        else:
            found.missing.append(name)
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


def _unlike(text: str, sent: str) -> str:
    at = shared_beginning(text, sent)
    return differing(text, at, sent, at)


def _runtime(part: str, text: str) -> Contradiction:
    return Contradiction("runtime", part, None, text[:EXCERPT])
