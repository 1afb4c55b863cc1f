"""What an exported document carries of its stay in a store: the member `tracemark` of its root's `extra`.

The JSON Schema beside this module (`carried.schema.json`, made by `fast_schema`) answers for documents that carry run
and outcome alone.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from tracemark.model.fast_schema import made_of
from tracemark.model.faults import faults
from tracemark.model.stamp import Stamp
from tracemark.model.trace import Outcome, Run
from tracemark.model.trajectory import without_surrogates
from tracemark.model.value import Digest, Maybe, Value


class CarriedStatement(Value):
    """One more statement about a contested trace; what it says nothing of is absent."""

    run: Maybe[Run] = None
    """Facts of the run."""
    outcome: Maybe[Outcome] = None
    """How it ended."""
    harness: Maybe[Stamp] = None
    """What it says of the harness."""


class CarriedFacts(Value):
    """The member `extra.tracemark`."""

    run: Maybe[Run] = None
    """Facts of the run. Without `trajectory`, what the document shows by itself adds to them."""
    outcome: Maybe[Outcome] = None
    """How it ended."""
    harness: Maybe[Stamp] = None
    """The stamp; it holds for the trajectory named below alone."""
    trajectory: Maybe[Digest] = None
    """Id of the trace that the stamp was made for."""
    empty_extra: Maybe[Literal[True]] = None
    """True when the document had an `extra` before the export, and nothing in it."""
    null_extra: Maybe[Literal[True]] = None
    """True when its `extra` was null."""
    original: Maybe[str] = None
    """Name of the member of `extra` that held this place, was no export's, and goes back; None when there is none."""
    decided: Maybe[Literal[True]] = None
    """True when the stamp is what people decided, and no statement: where the trace is known it says nothing."""
    further: Maybe[list[CarriedStatement]] = None
    """Of a contested trace: the other statements in force, which disagree with the members above."""


def problems(carried: object) -> list[tuple[str, str]]:
    """Return what keeps `carried` from being what an export writes: pairs of place and reason; empty means nothing."""
    try:
        CarriedFacts.model_validate(carried)
    except ValidationError:
        try:
            # a lone surrogate is no fault: JSON can carry it, and so does the store
            CarriedFacts.model_validate(without_surrogates(carried))
        except ValidationError as error:
            return [("/".join(map(str, place)) or "a name", reason) for place, reason in faults(error, carried)]
    return []


def fast_schema() -> dict[str, Any]:
    """Return the JSON Schema of a run and an outcome, without a stamp or further statements."""
    schema = CarriedFacts.model_json_schema()
    for name in ("harness", "trajectory", "further"):
        del schema["properties"][name]
    return made_of(schema, "carried.py")
