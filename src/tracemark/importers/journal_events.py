"""Which lines a journal may have: the shape of each event of `tracemark/journal/1`, for who writes and who reads them.

What each event means stands in `importers.journal`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs

from tracemark.model.harness import COMPONENTS

FORMAT = "tracemark/journal/1"
"""The format of a journal's first line."""

_TEXT = {"type": "string"}
_HEX = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_COMPONENT = {"enum": list(COMPONENTS)}
_PAIR = {"type": "array", "prefixItems": [_TEXT, _HEX], "minItems": 2, "maxItems": 2}


def _closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_HARNESS = _closed(
    {
        "name": _TEXT,
        "fingerprint": {"type": "string", "pattern": "^tm1:[0-9a-f]{64}$"},
        "components": _closed(
            dict.fromkeys(COMPONENTS, _closed({"digest": _HEX, "parts": {"type": "array", "items": _PAIR}}))
        ),
    },
    ("name",),
)
_CONTRADICTION = _closed(
    {"component": _COMPONENT, "part": _TEXT, "step": {"type": "integer"}, "text": _TEXT}, ("step",)
)
_EVENTS: dict[str, dict[str, Any]] = {
    "start": {
        "format": {"const": FORMAT},
        "session": _TEXT,
        "harness": _HARNESS,
        "run": {"type": "object"},
        "agent": {"type": "object"},
    },
    "tools": {"definitions": {"type": "array", "items": {"type": "object"}}},
    "facts": {"run": {"type": "object"}},
    "call": {"call": {"type": "object"}},
    "evidence": {"component": _COMPONENT, "part": _TEXT, "evidence": {"enum": ["recorded", "claimed"]}},
    "contradiction": {"contradiction": _CONTRADICTION},
    "step": {"step": {"type": "object", "required": ["source", "message"]}},
    "observation": {"results": {"type": "array", "items": {"type": "object"}}},
    "outcome": {"outcome": {"type": "object"}},
    "end": {"time": _TEXT, "mixed": {"const": True}},
}


def fault(event: Any) -> str | None:
    """Return why a line of a journal is no event of this format; None when it is one.

    That its step, run or outcome is one that a trace can hold is judged by their models.
    """
    kind = event.get("event") if isinstance(event, dict) else None
    if not isinstance(kind, str) or kind not in _EVENTS:
        return f"no event of {FORMAT}"
    try:
        fault = next(_validator(kind).iter_errors(event), None)
    except ValueError as error:
        # a lone surrogate in a member's name
        return str(error)
    return None if fault is None else f"event {kind!r}: {fault.message[:200]}"


@cache
def _validator(kind: str) -> Any:
    members = {"event": {"const": kind}, **_EVENTS[kind]}
    return jsonschema_rs.validator_for(_closed(members, ("mixed",)))
