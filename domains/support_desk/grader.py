"""Whether a run left the desk as it should be, and told the customer so.

The reference calls of the task are executed on a fresh desk, and every row of the two databases is compared: a missing
change, an extra one and a change to the wrong row all count. Free text that an agent words itself (why an order was
closed, why a card was issued) is left out. The last message must mention what the task names.
"""

from __future__ import annotations

from dataclasses import dataclass

from support_desk import tools
from support_desk.environment import Environment, State
from support_desk.tasks import Task
from tracemark.clock import FixedClock

NAME = "support-desk-state"
VERSION = "1"

_FREE_TEXT = {"orders": "closed_reason", "gift_cards": "reason"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grader's judgement of one run.

    Attributes:
        state: the database is as the reference leaves it.
        answer: the last message mentions all that the task asks for.
        differences: the tables whose rows differ, in the order of the schema; empty when `state` holds.
    """

    state: bool
    answer: bool
    differences: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Both halves hold."""
        return self.state and self.answer


def grade(task: Task, environment: Environment, answer: str) -> Verdict:
    """Judge the final state of `environment` and the last message `answer` (empty when the run ended without one)."""
    reached, wanted = environment.state(), _wanted(task, environment.today())
    differences = tuple(table for table in wanted if _comparable(environment, table, reached) != wanted[table])
    return Verdict(not differences, all(piece in answer for piece in task.answer), differences)


def _wanted(task: Task, today: str) -> State:
    """Return the comparable rows after the reference calls, on the same day as the run."""
    environment = Environment(FixedClock(f"{today}T00:00:00Z"))
    try:
        for call in task.reference:
            result = getattr(tools, call.tool)(environment, **call.arguments)
            if not result["ok"]:
                message = f"the reference of {task.task_id} is refused by {call.tool}: {result['code']}"
                raise ValueError(message)
        state = environment.state()
        return {table: _comparable(environment, table, state) for table in state}
    finally:
        environment.close()


def _comparable(environment: Environment, table: str, state: State) -> list[tuple[str | int | None, ...]]:
    """Return a table's rows without its free text column."""
    if table not in _FREE_TEXT:
        return state[table]
    columns = [row[1] for row in environment.connection.execute(f"pragma table_info({table})")]
    left_out = columns.index(_FREE_TEXT[table])
    return [row[:left_out] + row[left_out + 1 :] for row in state[table]]
