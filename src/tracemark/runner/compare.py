"""Where a run that is being recorded disagrees with its harness: its first request, and the process it runs in.

What agrees says nothing here; evidence comes from obtaining a part, not from looking alike.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tracemark.harness.match import Content, Contradiction, Matcher, role_of
from tracemark.harness.templates import EXCERPT, differing, shared_beginning
from tracemark.harness.version import Harness
from tracemark.importers.content import text_of
from tracemark.model.harness import PromptTemplate, Runtime


def request(
    harness: Harness,
    rendered: Sequence[tuple[PromptTemplate, str]],
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
) -> list[Contradiction]:
    """Return where the first request to the model is not what the harness gave.

    Args:
        harness: the harness.
        rendered: every prompt template that was rendered so far, with its text.
        messages: as in OpenAI's chat format; an assistant's message in them is a demonstration.
        tools: the definitions sent; None when they are not to be compared.
    """
    texts = [(str(message.get("role")), text_of(message.get("content")), None) for message in messages]
    sent = None if tools is None else [dict(tool) for tool in tools]
    found = Matcher(harness).judge(Content(messages=texts, tools=sent)).contradictions
    named = {contradiction.part for contradiction in found}
    return found + [each for each in _unlike_rendering(harness, rendered, texts) if each.part not in named]


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


def _unlike_rendering(
    harness: Harness, rendered: Sequence[tuple[PromptTemplate, str]], messages: Sequence[tuple[str, str, int | None]]
) -> list[Contradiction]:
    found = []
    for template, text in rendered:
        if template.agent is not None or template.position == "any":
            continue
        sent = [content for role, content, _ in messages if role_of(role) == role_of(template.role)]
        place = _place(harness, template)
        compared = sent[place : place + 1]
        if text not in compared:
            found.append(Contradiction("prompt_templates", template.name, None, _unlike(text, compared)))
    return found


def _place(harness: Harness, template: PromptTemplate) -> int:
    """Return which message of its role a template of position `first` is, counting from 0."""
    alike = [
        each.name
        for each in harness.manifest.prompt_templates
        if each.agent is None and each.position == "first" and role_of(each.role) == role_of(template.role)
    ]
    return alike.index(template.name)


def _unlike(text: str, compared: Sequence[str]) -> str:
    if not compared:
        return "no such message in the request"
    at = shared_beginning(text, compared[0])
    return differing(text, at, compared[0], at)


def _runtime(part: str, text: str) -> Contradiction:
    return Contradiction("runtime", part, None, text[:EXCERPT])
