"""Where a run that is being recorded disagrees with its harness: its request, its steps, its limits and its process.

What agrees says nothing here; evidence comes from obtaining a part, not from looking alike. Which message is which
template's is told by `harness.pairing`, as it is for a finished trace.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracemark.harness.limits import PART, too_many_steps
from tracemark.harness.match import Content, Contradiction, Matcher
from tracemark.harness.pairing import pair
from tracemark.harness.roles import SYSTEM, Message, Role, by_role, messages_of
from tracemark.harness.templates import EXCERPT, differing, shared_beginning
from tracemark.harness.version import Harness
from tracemark.importers.content import text_of
from tracemark.model.harness import Limits, PromptTemplate, Runtime, ToolBinding


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


def foreign(
    harness: Harness,
    rendered: Sequence[tuple[PromptTemplate, str]],
    before: Sequence[Message],
    later: Sequence[Message],
) -> list[Contradiction]:
    """Compare the system messages behind the first reply with what system templates were rendered to.

    One that was rendered, of position `first`, gives no other text than it gave; any other template is known by its
    pattern. Where none was rendered, patterns alone tell, and `Matcher` compares them.

    Args:
        harness: the harness.
        rendered: every prompt template that was rendered, with its text.
        before: (role, text, step id) of each message in front of the first reply.
        later: the same of each behind it.

    Returns:
        The first message that no template gives; nothing when there is none.
    """
    role = by_role(harness).get(SYSTEM, Role())
    own = {template.name for template in (*role.first, *role.anywhere)}
    texts = {text for template, text in rendered if template.name in own}
    names = {template.name for template, _ in rendered}
    if not names & own:
        return []
    others = [*role.anywhere, *(template for template in role.first if template.name not in names)]
    for number, (_, text, step) in enumerate(messages_of(SYSTEM, later), len(messages_of(SYSTEM, before)) + 1):
        if text not in texts and all(template.fits(text, None) is None for template in others):
            part = SYSTEM if number == 1 else f"{SYSTEM}-{number}"
            return [Contradiction("prompt_templates", part, step, f"no template gave this message: {text!r}"[:EXCERPT])]
    return []


def steps(limits: Limits, replies: int, step: int) -> Contradiction | None:
    """Compare the number of the agent's steps with the limit; None when they agree, or no limit is declared."""
    if limits.steps is None or replies <= limits.steps:
        return None
    return _runtime(PART, too_many_steps(replies, limits.steps), step)


def parallel_calls(limits: Limits, calls: int, step: int) -> Contradiction | None:
    """Compare the number of calls that were made for one reply with the limit; None as above."""
    if limits.parallel_calls is None or calls <= limits.parallel_calls:
        return None
    text = f"{calls} calls of one reply were made, declared are {limits.parallel_calls} at most"
    return _runtime(PART, text, step)


def stop_strings(limits: Limits, sent: Any, step: int) -> Contradiction | None:
    """Compare the texts at which the model is asked to stop with the declared ones.

    Args:
        limits: the declared limits.
        sent: `stop` of a request: a text, a list of texts, or None.
        step: id of the step of the reply.

    Returns:
        The first text that is not declared; None when all are, when none are sent, since the harness may cut replies
        itself, and when no stop strings are declared.
    """
    asked = [sent] if isinstance(sent, str) else sent if isinstance(sent, list) else []
    foreign = [text for text in asked if text not in (limits.stop_strings or ())]
    if limits.stop_strings is None or not foreign:
        return None
    return _runtime(PART, f"the model was asked to stop at {foreign[0]!r}, which is not declared", step)


def perhaps_made(bindings: Mapping[str, ToolBinding], step: Mapping[str, Any]) -> set[str]:
    """Return the ids of a step's calls of which nobody sees whether they were made.

    Their tool has no code here, and a result names the call. What the harness answers to a call that it refuses may
    read as it likes, so the text of the result does not tell. A tool that a harness with tools does not bind is none of
    its own, and what is answered is judged as in a finished trace.
    """
    answered = {result.get("source_call_id") for result in step["observation"]["results"]}
    calls = [call for call in step.get("tool_calls", ()) if call["tool_call_id"] in answered]
    return {call["tool_call_id"] for call in calls if _lacks_code(bindings, call["function_name"])}


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


def _runtime(part: str, text: str, step: int | None = None) -> Contradiction:
    return Contradiction("runtime", part, step, text[:EXCERPT])


def _lacks_code(bindings: Mapping[str, ToolBinding], tool: str) -> bool:
    return bindings[tool].entry is None if tool in bindings else not bindings
