"""What foreign traces show of the harness that made them, and what two of them prove about each other.

Nobody stated the harness of such a trace; its importer took digests of what the content itself shows (the observed half
of a stamp). Digests differ in what they prove (identity of real files was measured for this): a template, a fixed
prefix, a tool's schema or a setting is the part itself, so equal ones are the same part and unequal ones are two. A
rendered text proves sameness when equal, and nothing when not: the task may stand in it. A text out of which values
were taken is as good as a template once a trace of another task gives the same (`confirmed`). A text of a transcript
proves nothing: what was sent may have held more.

Invariants:
- comparison is three-valued, part by part: a difference on a shared part decides, agreement on some parts does not;
- two unknown parts never compare as equal, and a part that one side does not show is unknown, but for tools: a list of
  definitions is shown whole or not at all, and compared with another such list. Settings of tools are not: one that is
  not stated may stand at its default. A runtime never is whole, being code for the most part: two are different or
  unknown;
- nothing here says that two traces have one harness: no foreign file shows a harness whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.harness.declared import Comparison
from tracemark.model.harness import COMPONENTS

PREFIX = "observed:"
"""Begins the name of a group of foreign traces: behind it stand digits of the digest of what they share."""

DECISIVE = ("template", "prefix", "schema", "constant", "known-empty")
"""Forms of which unequal digests prove a difference."""

Half = Mapping[str, Sequence[Mapping[str, str]]]
"""The observed half of a stamp: component to `{"part", "form", "digest"}`."""

Confirmed = Collection[tuple[str, str, str]]
"""Component, part and digest of what traces of more than one task show alike."""

_DIGITS = 12
_LISTED_WHOLE = ("tool_bindings", ("schema", "known-empty"))
"""The component of which a list of entries of these forms is all that there is."""

_NEVER_WHOLE = "runtime"


def shared(half: Half, confirmed: Confirmed) -> dict[str, list[dict[str, str]]]:
    """Return that much of an observed half which other runs of the same harness show too, as far as is known.

    Decisive entries, and those that a second task confirmed; a text that only one task shows is left out.
    """
    kept = {
        component: [
            dict(entry)
            for entry in entries
            if entry["form"] in DECISIVE or (component, entry["part"], entry["digest"]) in confirmed
        ]
        for component, entries in half.items()
    }
    return {component: kept[component] for component in COMPONENTS if kept.get(component)}


def name_of(known: Half) -> str:
    """Return the name of the group of traces that share exactly what `shared` gave of them."""
    # by part, as a trace that is stated twice may hold its entries in another order
    ordered = {
        component: sorted(map(dict, entries), key=lambda entry: (entry["part"], entry["digest"]))
        for component, entries in known.items()
    }
    return PREFIX + digest.of(ordered)[:_DIGITS]


def compare(one: Half, other: Half, confirmed: Confirmed) -> dict[str, Comparison]:
    """Return for each component whether two halves show the same, something else, or leave it open."""
    return {
        name: _compare(
            name, {e["part"]: e for e in one.get(name, ())}, {e["part"]: e for e in other.get(name, ())}, confirmed
        )
        for name in COMPONENTS
    }


def differing(one: Half, other: Half, confirmed: Confirmed) -> list[tuple[str, str]]:
    """Return the parts, each with its component, in which two halves differ for certain; empty where in none."""
    found = []
    for component in COMPONENTS:
        left = {entry["part"]: entry for entry in one.get(component, ())}
        right = {entry["part"]: entry for entry in other.get(component, ())}
        for part in sorted({*left, *right}):
            compared = _part(component, left.get(part), right.get(part), _are_lists(component, left, right), confirmed)
            if compared is Comparison.DIFFERENT:
                found.append((component, part))
    return found


def _compare(component: str, one: Mapping[str, Any], other: Mapping[str, Any], confirmed: Confirmed) -> Comparison:
    lists = _are_lists(component, one, other)
    found = [_part(component, one.get(part), other.get(part), lists, confirmed) for part in {*one, *other}]
    if Comparison.DIFFERENT in found:
        return Comparison.DIFFERENT
    is_whole = bool(one and other) and component != _NEVER_WHOLE
    return Comparison.SAME if is_whole and all(part is Comparison.SAME for part in found) else Comparison.UNKNOWN


def _are_lists(component: str, *halves: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether what is shown of a component is a list on both sides."""
    name, forms = _LISTED_WHOLE
    return component == name and all(any(entry["form"] in forms for entry in half.values()) for half in halves)


def _part(
    component: str,
    one: Mapping[str, str] | None,
    other: Mapping[str, str] | None,
    lists: bool,
    confirmed: Confirmed,
) -> Comparison:
    if one is None or other is None:
        is_listed = any(entry["form"] in _LISTED_WHOLE[1] for entry in (one, other) if entry is not None)
        return Comparison.DIFFERENT if lists and is_listed else Comparison.UNKNOWN
    if one["form"] != other["form"] or one["form"] == "transcript":
        return Comparison.UNKNOWN
    if one["digest"] == other["digest"]:
        return Comparison.SAME
    if one["form"] in DECISIVE:
        return Comparison.DIFFERENT
    if one["form"] == "substituted" and all((component, e["part"], e["digest"]) in confirmed for e in (one, other)):
        return Comparison.DIFFERENT
    return Comparison.UNKNOWN
