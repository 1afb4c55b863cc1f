"""What is wrong with a value that a model refused, as places and reasons in words of our own.

Every fault that a model finds is worded here, whoever shows it: the validation library speaks of its own types, and of
the branches of a choice that it tried.

Invariants:
- a place names what stands in the value, or what is missing there, and never a branch of a choice;
- what the branches of one choice ask for is one fault, with all of them in its reason; a branch that asks for a value
  of another kind says nothing where another branch found something wrong inside the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Place = tuple[str | int, ...]
"""The way to a member: names and positions."""

_MUST_BE = "must be "
_TYPES = {
    "bool": "true or false",
    "dict": "an object",
    "finite_number": "a finite number",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "string": "a text",
    "tuple": "a list",
}
"""What is asked for, by the name that the validation library gives the type."""
_KINDS = {
    "extra_forbidden": "unknown member",
    "missing": "missing",
    "finite_number": "must be a finite number",
    "int_from_float": "must be a whole number",
    "none_required": "must be null",
    "string_pattern_mismatch": "must be a text of another form",
    "string_too_short": "must not be empty",
    "recursion_loop": "it holds itself",
}
"""Kinds of faults whose reason needs nothing else."""


class Refusal(Protocol):
    """What a model raises: a `ValidationError`, which is not named here since importing it takes its time."""

    def errors(self, *, include_url: bool = True) -> Sequence[Any]:
        """Return each fault with `type`, `loc`, `msg`, `input` and, where there is one, `ctx`."""


def faults(refusal: Refusal, value: object) -> list[tuple[Place, str]]:
    """Return what a model found wrong, as pairs of place and reason, in the order found.

    Args:
        refusal: what the model raised.
        value: what it was given.
    """
    found: dict[Place, list[str]] = {}
    for detail in refusal.errors(include_url=False):
        reasons = found.setdefault(place_of(detail, value), [])
        if (said := reason_of(detail)) not in reasons:
            reasons.append(said)
    return [
        (place, " or ".join(_joined(reasons)))
        for place, reasons in found.items()
        if not (_of_kind(reasons) and any(len(other) > len(place) and other[: len(place)] == place for other in found))
    ]


def first(refusal: Refusal, value: object, *above: str) -> tuple[str, str]:
    """Return place and reason of the first fault, the place as text (`run.model.name`), below the names `above`."""
    place, reason = faults(refusal, value)[0]
    return ".".join([*above, *map(str, place)]), reason


def place_of(detail: Mapping[str, Any], value: object) -> Place:
    """Return the place of one fault: those parts of what the library names that stand in `value`."""
    place: list[str | int] = []
    for part in detail["loc"]:
        if isinstance(value, dict):
            held = part in value
        else:
            held = isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value)
        if held:
            place.append(part)
            value = value[part]  # type: ignore[index]
    return (*place, detail["loc"][-1]) if detail["type"] == "missing" else tuple(place)


def reason_of(detail: Mapping[str, Any]) -> str:
    """Return the reason of one fault in words."""
    kind, context = str(detail["type"]), detail.get("ctx") or {}
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in ("literal_error", "enum"):
        return f"must be one of {str(context['expected']).replace(' or ', ', ')}"
    if kind in ("too_short", "too_long"):
        least, number = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        return f"must hold {least} {context[number]}"
    if kind == "greater_than_equal":
        return f"must be {context['ge']} or more"
    asked = kind.removesuffix("_type").removesuffix("_parsing")
    if kind != asked and asked in _TYPES:
        return f"must be {_TYPES[asked]}"
    text = str(detail["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _of_kind(reasons: Sequence[str]) -> bool:
    return all(reason.startswith(_MUST_BE) for reason in reasons)


def _joined(reasons: Sequence[str]) -> list[str]:
    """Return reasons as they read one after the other with `or` between them."""
    if _of_kind(reasons):
        return [reasons[0], *(reason.removeprefix(_MUST_BE) for reason in reasons[1:])]
    return list(reasons)
