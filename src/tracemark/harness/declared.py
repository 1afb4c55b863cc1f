"""In which parts what a stamp declares is a given harness, is another, or cannot be told.

Three values, because silence is no difference: what nobody recorded is unknown, and no agreement makes it the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from tracemark.harness.version import Harness
from tracemark.model.harness import COMPONENTS, ORDERED

ORDER = ""
"""What stands for the order of the parts, where a part's name would."""


class Comparison(StrEnum):
    """What a stamp and a harness say about each other in one part."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


def compare(declared: Mapping[str, Any], harness: Harness) -> dict[str, dict[str, Comparison]]:
    """Compare the declared components of a stored stamp with a harness, part by part.

    Args:
        declared: component to `digest`, `evidence` and `parts`, every part by name; a component that is missing is
            unrecorded.
        harness: the harness.

    Returns:
        Component to part to what is known, for the parts of either side; an unrecorded component, and a part of
        evidence `unrecorded`, is unknown. `ORDER` is among them, as different, where equal parts stand in another
        order.
    """
    return {component: _compare(component, declared.get(component), harness) for component in COMPONENTS}


def _compare(component: str, stated: Mapping[str, Any] | None, harness: Harness) -> dict[str, Comparison]:
    theirs = harness.identity.parts[component]
    if stated is None:
        return dict.fromkeys(theirs, Comparison.UNKNOWN)
    ours = stated["parts"]
    found = {part: _compare_part(ours.get(part), theirs.get(part)) for part in (*theirs, *(ours.keys() - theirs))}
    alike = all(value is Comparison.SAME for value in found.values())
    if component in ORDERED and alike and stated["digest"] != harness.identity.components[component]:
        found[ORDER] = Comparison.DIFFERENT
    return found


def _compare_part(stated: Mapping[str, Any] | None, theirs: str | None) -> Comparison:
    if stated is None:
        # a declared component names every part it has
        return Comparison.DIFFERENT
    if stated["evidence"] == "unrecorded":
        return Comparison.UNKNOWN
    return Comparison.SAME if stated["digest"] == theirs else Comparison.DIFFERENT
