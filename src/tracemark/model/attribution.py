"""The report of an attribution: the four cells of two harnesses and two models, and which half brought what.

Like that of a gate it states content and nothing else, and holds the ids of all traces that it rests on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tracemark.model.gate import Evaluated, RefusalOf
from tracemark.model.value import Maybe, Value

ATTRIBUTION_FORMAT: Literal["tracemark/attribution/1"] = "tracemark/attribution/1"
"""The value of an attribution's `format`."""


class EffectOf(Value):
    """One effect, in tasks that an average run solves."""

    value: float
    """How many more."""
    low: float | None
    """Lower end of its interval; None when there is none."""
    high: float | None
    """Upper end of its interval; None when there is none."""
    withheld: str | None
    """Why there is no interval; None when there is one."""


class EffectsOf(Value):
    """Every effect of the four cells."""

    harness: EffectOf
    """The new harness under the old model."""
    harness_under_new: EffectOf
    """The new harness under the new model."""
    model_under_old: EffectOf
    """The new model under the old harness."""
    model_under_new: EffectOf
    """The new model under the new harness."""
    interaction: EffectOf
    """The model's effect under the new harness less that under the old one."""


class AttributionReport(Value):
    """Which half brought what, out of the four cells of two harnesses and two models."""

    format: Literal["tracemark/attribution/1"] = "tracemark/attribution/1"
    """Always `tracemark/attribution/1`."""
    cells: Annotated[list[Evaluated], Field(min_length=4, max_length=4)]
    """The old pair, then with the new harness, then with the new model, then with both."""
    tasks: int
    """How many tasks there are; 0 when it is refused."""
    attempts: int
    """How many attempts each has in each cell; 0 when it is refused."""
    scores: list[float]
    """How many tasks an average run of each cell solves; empty when it is refused."""
    level: float
    """The level of the intervals."""
    method: str
    """How the intervals are computed."""
    refusals: list[RefusalOf]
    """Everything that stands against it."""
    effects: Maybe[EffectsOf] = None
    """The effects; absent when it is refused."""

    @model_validator(mode="after")
    def _refused_or_told(self) -> AttributionReport:
        if bool(self.refusals) is not (self.effects is None):
            raise ValueError("an attribution has either refusals or `effects`")
        return self

    @model_serializer(mode="wrap")
    def _absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = dump(self)
        if self.effects is None:
            del members["effects"]
        return members
