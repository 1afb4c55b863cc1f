"""Values of OTLP JSON: typed ones become plain, lists may be JSON text, ids and times are read as exporters write them.

Protobuf's JSON puts every value of an attribute into an object that names its type, and writes 64-bit integers as
texts. What is no typed value is returned as it is, so plain values may stand in any place.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from tracemark import digest

_TYPED = ("stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")
_INTEGER = re.compile(r"-?[0-9]{1,64}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_LATEST = 253_402_300_800


def is_null(value: Any) -> bool:
    """Return whether a value, typed or not, is none."""
    return value is None or value == {}


def plain(value: Any) -> Any:
    """Return a typed value without its types; any other value as it is."""
    if value.__class__ is not dict:
        return value
    if "stringValue" in value and len(value) == 1:
        return value["stringValue"]
    if len(value) != 1:
        return value or None
    [(kind, inner)] = value.items()
    if kind not in _TYPED:
        return value
    if kind == "intValue":
        return int(inner) if isinstance(inner, str) and _INTEGER.fullmatch(inner) else inner
    held = inner.get("values") if isinstance(inner, dict) else None
    if kind == "arrayValue" and isinstance(inner, dict) and isinstance(held, (list, type(None))):
        return [plain(one) for one in held or ()]
    if kind == "kvlistValue" and isinstance(inner, dict) and isinstance(held, (list, type(None))):
        found = named(held)
        for name, one in found.items():
            found[name] = plain(one)
        return found
    return value if kind in ("bytesValue", "arrayValue", "kvlistValue") else inner


class Lists:
    """Reads lists that are longer each time, as a history is: what stood in the one before is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, list[Any]]] = {}

    def elements(self, name: str, value: Any, notes: list[str]) -> list[Any] | None:
        """Return the elements of a list that is typed, plain, or written as JSON text; None for anything else.

        Elements of a typed list are left typed, for `plain` costs more than comparing them.

        Args:
            name: the list that it goes on from has the same.
            value: an attribute's value as it stands.
            notes: gets what could not be kept as it stands, as do those of `parsed`.
        """
        if isinstance(value, dict):
            inner = value.get("arrayValue") if len(value) == 1 else None
            if isinstance(inner, dict):
                return listed(inner.get("values"))
            value = plain(value)
        if isinstance(value, str):
            value = self._parsed(name, value, notes)
        return value if isinstance(value, list) else None

    def _parsed(self, name: str, text: str, notes: list[str]) -> Any:
        before, known = self._known.get(name, ("", []))
        if text == before:
            return known
        found: Any = None
        if known and text.startswith(before[:-1]) and (rest := text[len(before) - 1 :].lstrip())[:1] == ",":
            # the one before ended with a bracket where this one goes on with a comma
            more = parsed(f"[{rest[1:]}", notes)
            found = [*known, *more] if isinstance(more, list) and more else None
        if found is None:
            found = parsed(text, notes)
        if isinstance(found, list) and text.endswith("]"):
            self._known[name] = text, found
        return found


def elements(value: Any, notes: list[str]) -> list[Any] | None:
    """Return what `Lists.elements` does, of one list."""
    return Lists().elements("", value, notes)


def parsed(text: Any, notes: list[str] | None = None) -> Any:
    """Return the value that a JSON text holds; anything else, and a text that is none, as it is.

    Args:
        text: any value.
        notes: gets a note of what could not be kept as it stands, such as a number that JSON has not; None where the
            value is only compared.
    """
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        decoded = digest.loads(text.encode("utf-8", "surrogatepass"))
    except digest.NotJSONError:
        return text
    if notes is not None:
        notes += decoded.repairs
    return decoded.value


def time_of(nanoseconds: int | None) -> str | None:
    """Return a time as ISO 8601 in UTC, with as many digits as it needs; None for none, or one beyond the calendar."""
    if nanoseconds is None:
        return None
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    if not 0 < seconds < _LATEST:
        return None
    digits = f"{rest:09d}" if rest % 1000 else f"{rest // 1000:06d}"
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{digits}Z"


def normal(text: str) -> str:
    """Return an id in lower case where it is hexadecimal, and as it stands where it is not."""
    return text.lower() if _HEX.fullmatch(text) else text


def named(value: Any) -> dict[str, Any]:
    """Return attributes by name, their values as they stand; a name that is used again gets an underscore."""
    if isinstance(value, dict):
        return dict(value)
    found: dict[str, Any] = {}
    for one in listed(value):
        is_pair = one.__class__ is dict and one.get("key").__class__ is str
        name = one["key"] if is_pair else "unnamed"
        while name in found:
            name += "_"
        found[name] = one.get("value") if is_pair else one
    return found


def listed(value: Any) -> list[Any]:
    """Return a list; an empty one in place of anything else."""
    return value if isinstance(value, list) else []
