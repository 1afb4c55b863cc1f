"""What an ATIF document carries of an earlier stay in a store: the root's `extra.tracemark`.

It is believed as far as it can be checked: its members must have the shapes that are stored, and a stamp must name the
trajectory that it was made for. What is not understood stays in the document, where it does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from tracemark import digest

_TEXT = {"type": "string"}
_SOME = {"type": ["string", "integer"]}
_HEX = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_EVIDENCE = {"enum": ["recorded", "recovered", "corroborated", "claimed", "unrecorded"]}


def _closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _map(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


_RUN = _closed(
    {
        **dict.fromkeys(
            ("task", "domain", "split", "mode", "start", "end", "continues", "continued_by", "note"), _TEXT
        ),
        **dict.fromkeys(("attempt", "seed"), _SOME),
        "sampling": {"type": "object"},
        "environment": {"type": "object"},
        "rendered": {"type": "boolean"},
        "demonstration": {"type": "boolean"},
        "model": _closed(dict.fromkeys(("name", "revision", "chat_template", "server"), _TEXT)),
        "role": {"enum": ["subagent", "continuation"]},
    }
)
_OUTCOME = _closed(
    {
        "status": {"enum": ["success", "failure", "error", "unknown"]},
        "reward": {"type": "number"},
        "checks": {},
        "grader": _closed({"name": _TEXT, "version": _TEXT}, ("name",)),
        "termination": _TEXT,
        "rule": _TEXT,
    },
    ("status",),
)
_PART = _closed({"digest": _HEX, "evidence": _EVIDENCE}, ("digest", "evidence"))
_COMPONENT = _closed({"digest": _HEX, "evidence": _EVIDENCE, "parts": _map(_PART)}, ("digest", "evidence", "parts"))
_OBSERVED = _closed({"part": _TEXT, "form": _TEXT, "digest": _HEX}, ("part", "form", "digest"))
_CONTRADICTION = _closed(
    {"component": _TEXT, "part": _TEXT, "step": {"type": "integer"}, "text": _TEXT}, ("component", "part", "text")
)
_STAMP = _closed(
    {
        "declared": _closed(
            {
                "name": _TEXT,
                "fingerprint": {"type": "string", "pattern": "^tm1:[0-9a-f]{64}$"},
                "components": _map(_COMPONENT),
            },
            ("components",),
        ),
        "observed": _map({"type": "array", "items": _OBSERVED}),
        "contradictions": {"type": "array", "items": _CONTRADICTION},
        "mixed": {"type": "boolean"},
    }
)
_CARRIED = jsonschema_rs.validator_for(
    _closed({"run": _RUN, "outcome": _OUTCOME, "harness": _STAMP, "trajectory": _HEX, "empty_extra": {"const": True}})
)


@dataclass(frozen=True, slots=True)
class Carried:
    """What was taken out of a document."""

    run: dict[str, Any] | None = None
    """Run facts; None when none were carried."""
    outcome: dict[str, Any] | None = None
    """The outcome; None when none was carried."""
    stamp: dict[str, Any] | None = None
    """The stamp as carried; None when none was."""
    trajectory: str | None = None
    """Id of the trace that the stamp belongs to; None when not named."""
    repairs: tuple[str, ...] = ()
    """Why something was not used."""

    def stamp_for(self, trajectory: bytes, repairs: list[str]) -> dict[str, Any] | None:
        """Return the stamp as far as it holds for the trajectory; None when none was carried.

        Args:
            trajectory: canonical bytes of the trajectory as read now.
            repairs: gets a note when the stamp was made for another trajectory and its evidence fell.
        """
        if not self.stamp or self.trajectory == digest.sha256(trajectory):
            return self.stamp
        repairs.append("the carried stamp was not made for this trajectory: its evidence counts as claimed")
        return _lowered(self.stamp)


def take(document: dict[str, Any]) -> Carried:
    """Remove `extra.tracemark` from `document` and return what it said.

    An `extra` that holds nothing else is removed with it, unless it is marked as empty from the start. Something of
    another shape is left where it is, with a note.
    """
    extra = document.get("extra")
    if not isinstance(extra, dict) or "tracemark" not in extra:
        return Carried()
    carried = extra["tracemark"]
    try:
        known = _CARRIED.is_valid(carried)
    except ValueError:
        known = False
    if not known:
        return Carried(repairs=("extra.tracemark has not the shape of an export: left in place, not used",))
    del extra["tracemark"]
    if not extra and not carried.get("empty_extra"):
        del document["extra"]
    return Carried(carried.get("run"), carried.get("outcome"), carried.get("harness"), carried.get("trajectory"))


def _lowered(stamp: dict[str, Any]) -> dict[str, Any]:
    declared = stamp.get("declared")
    if not declared:
        return stamp
    components = {
        name: {**_fall(component), "parts": {part: _fall(entry) for part, entry in component["parts"].items()}}
        for name, component in declared["components"].items()
    }
    return {**stamp, "declared": {**declared, "components": components}}


def _fall(entry: dict[str, Any]) -> dict[str, Any]:
    return entry if entry["evidence"] == "unrecorded" else {**entry, "evidence": "claimed"}
