"""What a gate is told: which half is judged, by which policy, over which set, under which further conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LEVEL = 0.05
"""The largest p at which the policy `significant` accepts, as it is shipped."""


class Half(StrEnum):
    """The half of the pair that is judged; the other one is the same in both cells."""

    HARNESS = "harness"
    MODEL = "model"


class Policy(StrEnum):
    """When a candidate takes the incumbent's place; w tasks have a score that went up, l one that went down."""

    SIGNIFICANT = "significant"
    """w > l, and the one-sided exact sign test gives at most the level (0.05). The shipped default."""
    COTRACE = "cotrace"
    """w > l; a tie passes only if it is clean: no result of the candidate is missing, and none of its attempts was
    ended by the infrastructure and not re-run. It promotes an identical candidate about as often as not."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is asked for beside the policy; nothing by default."""

    no_regression: tuple[str, ...] = ()
    """Tasks whose score must not go down, each `DOMAIN/TASK`, or `TASK` for the one of that name in any domain."""
    reliability: int | None = None
    """The k for which pass^k (combinations) must not be lower than the incumbent's; None when it may be."""
    cost: bool = False
    """Whether the cost per success must not be above the incumbent's."""
    fresh: bool = False
    """Whether the incumbent's traces must be other ones than those that installed it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a comparison is made under."""

    half: Half
    """The half that is judged."""
    attempts: int
    """Scored attempts that each task must have."""
    policy: Policy = Policy.SIGNIFICANT
    """The policy that decides; the other one is told as well."""
    level: float = LEVEL
    """The largest p at which `significant` accepts."""
    infrastructure_limit: float = 0.0
    """Largest share of a cell's attempts that the infrastructure may have ended and nobody re-run."""
    conditions: Conditions = field(default_factory=Conditions)
    """What is asked for beside the policy."""
    evaluation: frozenset[str] = frozenset()
    """Ids of the evaluation set, as they are listed; empty when the cells' tasks are the set."""
    evaluation_digest: str | None = None
    """Digest of the evaluation set as it is now; None when it was not frozen."""
    frozen_digest: str | None = None
    """Digest of the evaluation set as it was frozen; None when it was not frozen."""
    changed: str = ""
    """In what it is another than the frozen one, in words that name tasks; empty when nobody can say more than that."""
    leaked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tasks of the evaluation set that were found in a training export, by the export's name."""
    used: frozenset[str] = frozenset()
    """Ids of the traces on which decisions rest that installed a pair."""
    candidates: int = 1
    """How many candidates were evaluated on this set so far, this one included, each as often as it was evaluated."""
