"""Members of foreign objects: read whatever stands there, left out where they say nothing, kept beside what is known.

Nothing of a foreign file is of the type that it should be. And what a step has no place for is kept in its `extra`
under its own name, which something else may have already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemark import digest

LONGEST = 2_000
"""How much is kept of what an error says where how a run stopped is told; the whole text stays with the record."""

_OF_AN_ERROR = ("type", "error", "code", "message")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def object_in(raw: bytes | None) -> dict[str, Any] | None:
    """Return the object that a file beside a record holds; None when there is no file, no JSON or no object in it."""
    if raw is None:
        return None
    try:
        value = digest.loads(raw).value
    except digest.NotJSONError:
        return None
    return value if isinstance(value, dict) else None


def error_words(value: Any) -> str | None:
    """Return in its own words what a member says of an error, cut at `LONGEST`; None where it has none.

    They are a text, or what an object names its kind, with its message; of several errors those of the first.
    """
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = ": ".join(
            dict.fromkeys(said for name in _OF_AN_ERROR if isinstance(said := value.get(name), str) and said)
        )
    return value[:LONGEST] or None if isinstance(value, str) else None


def without_null(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the members of an object that are not null, without those in `names`."""
    return {name: member for name, member in value.items() if member is not None and name not in names}


def fill(extra: dict[str, Any], members: Mapping[str, Any]) -> None:
    """Add members to an `extra`, each under the next free name like its own; null says nothing."""
    for name, value in members.items():
        if value is not None:
            place = name
            while place in extra:
                place += "_"
            extra[place] = value


def keep(holder: dict[str, Any], members: Mapping[str, Any]) -> None:
    """Add members to the `extra` of a step, a call or a result, as `fill` does; it gets none for nothing."""
    said = without_null(members)
    if said:
        fill(holder.setdefault("extra", {}), said)
