"""What differs between two harnesses: component, part, member and text.

Digests decide whether something differs; the texts are only shown. So two harnesses have no difference exactly when
their fingerprints are equal, and every part that differs is named even where its text is not readable. Control
characters in the texts are left to whoever prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from tracemark import digest
from tracemark.harness.fingerprint import Sources, bare, members, normal, plain, schema
from tracemark.harness.version import Harness
from tracemark.model.harness import COMPONENTS, ORDERED


class Kind(StrEnum):
    """How a part differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class TextDifference:
    """One text that differs."""

    path: str
    """The file, or what the text is called: `members`, `schema`, `text`, `order`."""
    diff: str
    """Unified diff, three lines of context, without a final line feed; a note for bytes that are no text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One part that differs, or one component whose order does."""

    component: str
    """The component."""
    part: str
    """The part; empty for a change of order, which concerns the whole component."""
    kind: Kind
    """Added, removed and changed as seen from the first harness to the second."""
    members: tuple[str, ...]
    """Members of the part that differ, sorted; empty for a change of order."""
    texts: tuple[TextDifference, ...]
    """The texts concerned. A file shared by several parts is shown with each."""

    @property
    def text(self) -> str:
        """All unified diffs of the part, one after the other."""
        return "\n".join(text.diff for text in self.texts)

    def as_json(self) -> dict[str, Any]:
        """Return the difference as JSON members `component, part, kind, members, texts[{path, diff}]`."""
        return {
            "component": self.component,
            "part": self.part,
            "kind": self.kind.value,
            "members": list(self.members),
            "texts": [{"path": text.path, "diff": text.diff} for text in self.texts],
        }


def compare(old: Harness, new: Harness) -> list[Difference]:
    """Return every part in which two harnesses differ, in the order of the components and parts.

    Args:
        old: the first harness.
        new: the second harness.

    Returns:
        An empty list exactly when the fingerprints are equal.
    """
    found: list[Difference] = []
    sides = (_Side(old), _Side(new))
    for component in COMPONENTS:
        if old.identity.components[component] == new.identity.components[component]:
            continue
        before, after = old.identity.parts[component], new.identity.parts[component]
        differing = [part for part in dict.fromkeys((*before, *after)) if before.get(part) != after.get(part)]
        found += [_part(component, part, sides) for part in differing]
        shared_before = [part for part in before if part in after]
        shared_after = [part for part in after if part in before]
        if component in ORDERED and shared_before != shared_after:
            order = _unified("order", *("".join(f"{part}\n" for part in parts) for parts in (before, after)))
            found.append(Difference(component, "", Kind.REORDERED, (), (order,) if order else ()))
    return found


class _Side:
    """One harness with the members that were hashed."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.sources: Sources = harness.sources
        self.members = members(harness.manifest, self.sources)

    def said(self, component: str, part: str) -> dict[str, Any]:
        """Return a part's hashed members; a part that is one value is called `value`."""
        value = self.members[component].get(part)
        if value is None:
            return {}
        return dict(value) if isinstance(value, dict) else {"value": value}

    def texts(self, component: str, part: str) -> dict[str, bytes]:
        """Return the texts that a part consists of, by path or by what they are called."""
        files = self.sources.files
        keys = [*self.sources.includes.get((component, part), ())]
        entry = self.harness.manifest.entries().get((component, part))
        if entry is not None:
            keys += self.sources.closures[entry].values()
        found: dict[str, bytes] = {}
        if component == "prompt_templates":
            for prompt in self.harness.manifest.prompt_templates:
                if prompt.name == part and prompt.file is not None:
                    found[prompt.file] = files[normal(prompt.file)]
                elif prompt.name == part and prompt.text is not None:
                    found["text"] = prompt.text.encode()
        elif component == "observation_handlers":
            for handler in self.harness.manifest.observation_handlers:
                if handler.name == part and handler.template is not None:
                    found["template"] = handler.template.encode()
        elif component == "tool_bindings" and part in self.harness.manifest.tool_bindings:
            found["schema"] = _pretty(schema(self.harness.manifest.tool_bindings[part], files))
        elif part == "unassigned":
            keys += self.sources.unassigned
        return found | {bare(key): files[key] for key in sorted(set(keys))}


# what stands as digests among the members is shown as texts instead
_SHOWN_AS_TEXT = {"text", "schema", "entry", "template", "includes"}


def _part(component: str, part: str, sides: tuple[_Side, _Side]) -> Difference:
    old, new = (side.said(component, part) for side in sides)
    kind = Kind.CHANGED if old and new else Kind.ADDED if new else Kind.REMOVED
    differing = tuple(sorted(member for member in {*old, *new} if old.get(member) != new.get(member)))
    before, after = (side.texts(component, part) for side in sides)
    shown = [{} if part == "unassigned" else _without_texts(side) for side in (old, new)]
    for side, described in zip(sides, shown, strict=True):
        if entry := side.harness.manifest.entries().get((component, part)):
            described["entry"] = entry
    texts = [_unified("members", *(_pretty(described).decode() if described else "" for described in shown))]
    texts += [_file(path, before.get(path), after.get(path)) for path in dict.fromkeys((*before, *after))]
    return Difference(component, part, kind, differing, tuple(text for text in texts if text is not None))


def _without_texts(said: dict[str, Any]) -> dict[str, Any]:
    return {member: value for member, value in said.items() if member not in _SHOWN_AS_TEXT}


def _pretty(value: Any) -> bytes:
    """Return JSON a person can compare: one member a line, sorted."""
    return "\n".join([*_lines(value, ""), ""]).encode("utf-8", "surrogatepass")


def _lines(value: Any, indent: str) -> list[str]:
    if not isinstance(value, dict | list) or not value:
        return [indent + digest.canonical(value).decode("utf-8")]
    inner = indent + "  "
    if isinstance(value, list):
        return [indent + "[", *(line for item in value for line in _lines(item, inner)), indent + "]"]
    lines = [indent + "{"]
    for key in sorted(value):
        first, *rest = _lines(value[key], inner)
        lines += [f"{inner}{digest.canonical(key).decode('utf-8')}: {first.removeprefix(inner)}", *rest]
    return [*lines, indent + "}"]


def _file(path: str, before: bytes | None, after: bytes | None) -> TextDifference | None:
    if before == after:
        return None
    try:
        old, new = ((raw or b"").decode("utf-8") for raw in (before, after))
    except UnicodeDecodeError:
        return TextDifference(path, f"--- a/{path}\n+++ b/{path}\n(not UTF-8: the bytes differ)")
    return _unified(path, plain(old), plain(new))


def _unified(path: str, old: str, new: str) -> TextDifference | None:
    if old == new:
        return None
    lines = unified_diff(_split(old), _split(new), f"a/{path}", f"b/{path}", lineterm="")
    return TextDifference(path, "\n".join(lines))


def _split(text: str) -> list[str]:
    """Return the lines of a text, the last one marked when no line feed ends it, as `diff` does."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], lines[-1] + "\n\\ no line feed at the end"]
