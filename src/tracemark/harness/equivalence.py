"""Are two harnesses one but for what no program does: comments, blank lines, where a line is broken?

The answer is a fingerprint computed again, in which every Python module of an entry's closure is replaced by its syntax
tree. Where these two are equal, every other text, schema, parameter, limit and name is equal byte for byte, and each
module is equal as Python reads it. Nothing is executed.

Invariants:
- a docstring is a part of the tree, and counts: it may be what a model is told of a tool;
- numbers of lines and columns are no part of it. A program that reads its own source or its line numbers (`inspect`, a
  traceback put into an observation) can still tell the two apart; no syntax tree shows that;
- a file counts as a tree only where it is nothing but a module: one that is also a prompt, a schema or an included
  template counts as text, and so does one that no entry imports;
- a module that cannot be parsed, or whose tree cannot be written out, counts as text.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tracemark.harness import diff, source
from tracemark.harness.diff import Difference, Kind
from tracemark.harness.fingerprint import Identity, bare, identify, normal
from tracemark.harness.version import Harness

_TREE = b"\xffast:"
"""What stands in front of a tree; no text in UTF-8 begins so."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How two harnesses compare as programs."""

    differences: tuple[Difference, ...]
    """Parts that differ in more than the text of modules with equal trees; empty exactly when none does."""
    alike: tuple[str, ...]
    """Modules, by path, whose texts differ and whose trees are equal; sorted."""

    @property
    def equal(self) -> bool:
        """Whether nothing but the text of modules with equal trees differs."""
        return not self.differences


def program(harness: Harness) -> str:
    """Return what two harnesses have in common exactly when `compare` finds them equal; no fingerprint."""
    return _identity(harness, _trees(harness)).fingerprint


def components(harness: Harness) -> dict[str, str]:
    """Return the same of each component; no digests of components."""
    return dict(_identity(harness, _trees(harness)).components)


def compare(one: Harness, other: Harness) -> Compared:
    """Compare two harnesses as programs, reading their texts only.

    Args:
        one: the first, as seen from which parts are added or removed.
        other: the second.
    """
    trees = _trees(one), _trees(other)
    identities = _identity(one, trees[0]), _identity(other, trees[1])
    before, after = map(_by_path, trees)
    equal = {path for path, found in before.items() if after.get(path) == found}
    textual = diff.compare(one, other)
    alike = {text.path for found in textual for text in found.texts if text.path in equal}
    kept = tuple(_without(found, equal) for found in textual if _differs(found, identities))
    return Compared(kept, tuple(sorted(alike)))


def _differs(found: Difference, identities: tuple[Identity, Identity]) -> bool:
    if found.kind is Kind.REORDERED:
        return True
    old, new = (identity.parts[found.component].get(found.part) for identity in identities)
    return old != new


def _without(found: Difference, equal: set[str]) -> Difference:
    return replace(found, texts=tuple(text for text in found.texts if text.path not in equal))


def _identity(harness: Harness, trees: Mapping[str, bytes]) -> Identity:
    return identify(harness.manifest, replace(harness.sources, files={**harness.files, **trees}))


def _by_path(trees: Mapping[str, bytes]) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = defaultdict(set)
    for key, tree in trees.items():
        found[bare(key)].add(tree)
    return dict(found)


def _trees(harness: Harness) -> dict[str, bytes]:
    """Return the syntax tree, as text, of every file that is nothing but a Python module of an entry."""
    keys = {key for modules in harness.closures.values() for key in modules.values()} - _texts(harness)
    found = {key: _tree(harness.files[key]) for key in keys if key.endswith(".py")}
    return {key: tree for key, tree in found.items() if tree is not None}


def _texts(harness: Harness) -> set[str]:
    """Return the keys of files that count for their text."""
    described = harness.manifest
    named = [prompt.file for prompt in described.prompt_templates if prompt.file is not None]
    named += [tool.definition for tool in described.tool_bindings.values() if isinstance(tool.definition, str)]
    included = [key for keys in harness.includes.values() for key in keys]
    return {*map(normal, named), *included}


def _tree(raw: bytes) -> bytes | None:
    """Return the tree of a module without its places; None when it cannot be parsed, or not be written out.

    The bytes are parsed, so that a declared encoding counts for what it does to the texts in it.
    """
    try:
        return _TREE + ast.dump(source.parse(raw)).encode("utf-8", "backslashreplace")
    except (source.UnparsableError, RecursionError, MemoryError, ValueError):
        # a ValueError is a number of more digits than Python writes
        return None
