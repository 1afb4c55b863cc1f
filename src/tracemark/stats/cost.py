"""What success costs: per success, and per task that is solved reliably.

Invariants:
- the cost of failed attempts is included, since a success cannot be bought without them;
- without a success the cost per success is undefined: withheld, neither 0 nor infinite;
- one unknown cost withholds the figure: a sum over the known ones would make the recorder that forgets look cheap.

Source: ThinkingBox (arXiv 2608.19741), which divides the agent's cost of the whole campaign in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracemark.errors import UsageError
from tracemark.stats.counts import NOTHING, Counts, withheld
from tracemark.stats.passing import Figure

SCOPE = (
    "the agent's own cost of all attempts, failed ones included; "
    "training, simulated users, judges and infrastructure not included"
)
"""What costs cover, in the words that stand beside the figures of a stored report."""


def total_cost(costs: Sequence[float | None]) -> Figure:
    """Return the cost of all attempts.

    Args:
        costs: of every attempt, failed ones too, in one currency; None where the cost was not recorded.

    Returns:
        A cost in the same currency, the sum rounded once; withheld where nothing was measured, and where a cost is
        unknown or no number of 0 or more.
    """
    return _over(costs, 1, NOTHING)


def cost_per_success(costs: Sequence[float | None], successes: int) -> Figure:
    """Return the cost of all attempts over the number of successes.

    Args:
        costs: of every attempt, failed ones too, in one currency; None where the cost was not recorded.
        successes: how many of these attempts solved their task.

    Returns:
        A cost in the same currency, the sum rounded once; withheld where nothing was measured, nothing succeeded, or a
        cost is unknown or no number of 0 or more.

    Raises:
        UsageError: when there cannot be as many successes.
    """
    if not 0 <= successes <= len(costs):
        raise UsageError(
            f"{successes} successes of {len(costs)} attempts cannot be",
            hint="give the cost of every attempt, None where it is unknown",
        )
    return _over(costs, successes, "no attempt succeeded: the cost per success is undefined")


def cost_per_reliable_task(costs: Sequence[float | None], per_task: Mapping[str, Counts]) -> Figure:
    """Return the cost of all attempts over the number of reliable tasks, those of which every attempt succeeded.

    Args:
        costs: of every attempt at every task, failed ones too, in one currency; None where it was not recorded.
        per_task: counts of each task, by its name; `costs` has one member for each of their attempts.

    Returns:
        A cost in the same currency, the sum rounded once; withheld where run counts differ between tasks (all of two is
        less than all of four), where nothing was measured, where no task is reliable, and where a cost is unknown or no
        number of 0 or more.

    Raises:
        UsageError: when a task's counts cannot be, or the costs are not as many as the attempts.
    """
    reason = withheld(per_task)
    attempts = sum(counts.attempts for counts in per_task.values())
    if len(costs) != attempts:
        raise UsageError(
            f"{len(costs)} costs of {attempts} attempts cannot be",
            hint="give the cost of every attempt, None where it is unknown",
        )
    if reason is not None:
        return Figure(None, reason)
    reliable = sum(counts.successes == counts.attempts for counts in per_task.values())
    return _over(costs, reliable, "no task succeeded in all attempts: the cost per reliable task is undefined")


def _over(costs: Sequence[float | None], bought: int, undefined: str) -> Figure:
    if not costs:
        return Figure(None, NOTHING)
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known)
    if unknown:
        return Figure(None, f"the cost of {unknown} of {len(costs)} attempts is unknown")
    unusable = sum(not (math.isfinite(cost) and cost >= 0) for cost in known)
    if unusable:
        return Figure(None, f"the cost of {unusable} of {len(costs)} attempts is no number of 0 or more")
    if not bought:
        return Figure(None, undefined)
    try:
        return Figure(math.fsum(known) / bought, None)
    except OverflowError:
        return Figure(None, "the costs add up to more than a number can hold")
