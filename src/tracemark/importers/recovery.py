"""What of a harness can be recovered from a foreign file, soundly: by a template, by substitution, or whole.

A digest of recovered text is worth what it proves (`model.stamp.Form`). A template is recovered when it stands
unrendered in the file and its constant text is found in the message that was sent, from the first to the last
character; or when values that the same record holds are taken out of the message. It is never recovered by comparing
traces with each other: that both splits one template and merges two.

Each function returns entries of the observed half of a stamp, as lists: an empty list where nothing can be said, so
that an importer adds up what it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from tracemark import digest
from tracemark.harness.templates import pattern
from tracemark.harness.tools import reduce_tool
from tracemark.importers.base import verbatim_digest
from tracemark.model.harness import PromptTemplate

SHORTEST = 20
"""Characters that a value must have to be taken out of a text: a shorter one may stand there by chance."""

_HOLE = "\x00"

Entry = dict[str, str]
"""`part`, `form` and `digest`."""


def template(part: str, text: str, rendered: str, *, syntax: str = "jinja") -> list[Entry]:
    """Return an unrendered template, when its constant text makes up the message from first to last character.

    Args:
        part: the part's name.
        text: the template as the file holds it.
        rendered: the message that was sent.
        syntax: `literal`, `format` or `jinja`.
    """
    shape = pattern(PromptTemplate.model_validate({"name": part, "text": text, "syntax": syntax}), text)
    if shape is None or shape.disagreement(rendered) is not None:
        return []
    return [{"part": part, "form": "template", "digest": verbatim_digest(text)}]


def substituted(part: str, rendered: str, values: Iterable[str]) -> list[Entry]:
    """Return a message without the values of its own record, which stand in it as the task does in a template.

    Args:
        part: the part's name.
        rendered: the message that was sent.
        values: texts of the same record. One that is shorter than `SHORTEST`, or that occurs not exactly once, leaves
            nothing: what remained would be text of the task.
    """
    if _HOLE in rendered:
        return []
    rest = rendered
    for value in sorted(set(values), key=len, reverse=True):
        if len(value) < SHORTEST or rest.count(value) != 1:
            return []
        rest = rest.replace(value, _HOLE)
    return [{"part": part, "form": "substituted", "digest": verbatim_digest(rest)}] if rest != rendered else []


def rendered(part: str, text: str) -> list[Entry]:
    """Return a message as it was sent; empty for no text."""
    return [{"part": part, "form": "rendered", "digest": verbatim_digest(text)}] if text else []


def constant(part: str, value: Any) -> list[Entry]:
    """Return a setting or a text that the file holds whole; empty for None, which is unknown."""
    return [] if value is None else [{"part": part, "form": "constant", "digest": digest.of(value)}]


def settings(values: Mapping[str, Any]) -> list[Entry]:
    """Return `constant` of each setting, in order of name."""
    return [entry for name in sorted(values) for entry in constant(name, values[name])]


def tools_key(tools: Any) -> bytes:
    """Return what is equal for lists of the same tools, in whatever order and wrapper, and padded with null or not.

    A definition that cannot be read counts as it stands, and so does what is no list.
    """
    return _tools_key(digest.canonical(tools, finite=True))


@lru_cache(maxsize=8)
def _tools_key(written: bytes) -> bytes:
    """Return `tools_key` of canonical JSON; the few last ones are kept, as every call of a run offers the same."""
    tools = digest.load_canonical(written)
    return digest.canonical(sorted(map(_tool_key, tools)), finite=True) if isinstance(tools, list) else written


def _tool_key(tool: Any) -> str:
    try:
        return digest.of(reduce_tool(tool))
    except (TypeError, ValueError):
        return digest.of(["unread", tool])
