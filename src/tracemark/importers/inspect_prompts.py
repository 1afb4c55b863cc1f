"""What a sample of an Inspect AI log shows of the prompt: each text in front of the agent's first reply.

A text is the plan's template where it is a rendering of it; else what is left of it without the sample's input, where
that can be taken out soundly; else the text as it was sent (`recovery` says what each is worth).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import Any

from tracemark.importers import recovery
from tracemark.importers.content import text_of

_SYSTEM_MESSAGE = "system_message"
"""The solver whose template stands in the plan."""


def prompts_of(
    steps: Sequence[Mapping[str, Any]], given: Sequence[Any], plan: Any
) -> tuple[list[recovery.Entry], bool]:
    """Return what is known of each text in front of the first reply, and whether the plan's template disagrees.

    Without a reply nothing is known: it may be that not all of the prompt was written.

    Args:
        steps: the steps of the run.
        given: the sample's input, as messages.
        plan: the header's `plan`.
    """
    reply = next((at for at, step in enumerate(steps) if _is_called(step)), None)
    if reply is None:
        return [], False
    found: list[recovery.Entry] = []
    values, templates = _values(given), _templates(plan)
    counts = {"system": 0, "user": 0}
    used: set[str] = set()
    for step in steps[:reply]:
        role, text = step["source"], text_of(step["message"])
        if role == "agent" or not text:
            continue
        counts[role] += 1
        part = _name(role, counts[role])
        template = next((one for one in templates if role == "system" and _renders(one, text)), None)
        if template is not None:
            used.add(template)
            found += recovery.template(part, template, text, syntax="literal" if template == text else "format")
        else:
            held = [value for value in values if value in text]
            found += recovery.substituted(part, text, held) or recovery.rendered(part, text)
    return found, any(_is_text(template) for template in templates if template not in used)


def texts_of(message: Any) -> Iterator[str]:
    """Yield the texts of a message."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _is_called(step: Mapping[str, Any]) -> bool:
    """Return whether a model spoke in a step."""
    return step["source"] == "agent" and step.get("llm_call_count") != 0


def _name(role: str, number: int) -> str:
    if role == "user":
        return "first-user" if number == 1 else f"user-{number}"
    return role if number == 1 else f"{role}-{number}"


def _values(given: Sequence[Any]) -> list[str]:
    """Return the texts of the sample's input, of which none is a piece of another."""
    texts = {text for message in given for text in texts_of(message) if text}
    return [text for text in texts if not any(text in other for other in texts if other != text)]


def _templates(plan: Any) -> list[str]:
    """Return the templates of the plan's `system_message` solvers."""
    steps = plan.get("steps") if isinstance(plan, dict) else None
    found = []
    for step in steps if isinstance(steps, list) else ():
        solver = step.get("solver") if isinstance(step, dict) else None
        if isinstance(solver, str) and solver.rpartition("/")[2] == _SYSTEM_MESSAGE:
            params = step.get("params")
            template = params.get("template") if isinstance(params, dict) else None
            if isinstance(template, str):
                found.append(template)
    return found


def _is_text(template: str) -> bool:
    """Return whether a template is surely a text: it may also be given by the name of its file."""
    return len(template) >= recovery.SHORTEST and " " in template


@lru_cache(maxsize=64)
def _renders(template: str, text: str) -> bool:
    """Return whether a text is a rendering of a template that has enough text of its own to tell."""
    if template == text:
        return True
    try:
        own = sum(len(literal) for literal, *_ in Formatter().parse(template))
    except ValueError:
        return False
    return own >= recovery.SHORTEST and bool(recovery.template("system", template, text, syntax="format"))
