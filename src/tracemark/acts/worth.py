"""What a further statement about a known trace is worth beside those that are known.

Invariants:
- what the content refutes is worth nothing beside another harness, and only a claim is replaced: what a recorder stated
  never is;
- a status that a rule made of a reward is no statement of the source: made of the same reward under another
  `ingest.success_reward` it disputes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracemark.importers.base import REWARD_RULES
from tracemark.store.state import Statement, is_refuted, names_another


def replaced(said: Sequence[Statement], new: Statement) -> list[str]:
    """Return the digests of refuted claims that `new`, which names another harness and is not refuted, replaces."""
    if (new.harness or {}).get("contradictions") or not ((new.harness or {}).get("declared") or {}).get("components"):
        return []
    return sorted(other.digest for other in said if is_refuted(other) and names_another(other, new))


def without_rederived_status(statement: Statement, said: Sequence[Statement]) -> Statement | None:
    """Return a statement without its status, where a known one made another status of the same reward; else None.

    It is so where both statuses come from a reward and a rule alone: then `ingest.success_reward` was another.
    """
    made = _made_of_reward(statement)
    others = [known for one in said if (known := _made_of_reward(one)) is not None]
    if made is None or not any(made[0] == reward and made[1] != status for reward, status in others):
        return None
    outcome = {name: value for name, value in (statement.outcome or {}).items() if name != "rule"}
    return statement._replace(outcome={**outcome, "status": "unknown"})


def _made_of_reward(statement: Statement) -> tuple[Any, Any] | None:
    """Return reward and status, where the status is what a rule made of the reward; None where it is not."""
    outcome = statement.outcome or {}
    if outcome.get("rule") not in REWARD_RULES or outcome.get("reward") is None:
        return None
    return outcome["reward"], outcome.get("status")
