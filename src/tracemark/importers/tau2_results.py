"""What a τ² result file says once, of all its runs: `info`, `tasks`.

It was true of the runs with which the file began. A file that is resumed keeps it whatever has changed since (commit,
agent, prompt, limits; the producer only warns), so it is a label of each run and evidence of none. Where a run itself
says otherwise, the file was resumed under another harness: `contradictions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracemark.importers.base import Context, Record
from tracemark.importers.members import object_in

FILE = "results.json"
"""Name of the file beside the folder that holds runs one by one."""

_BEYOND = 2
"""A run ends at the limit, or with the environment's answers behind it; one more leaves room for other countings."""


class Results(NamedTuple):
    """What is said of all runs of a file."""

    info: Mapping[str, Any]
    """The settings; empty when nothing is said."""
    tasks: Mapping[str, Any]
    """Each task by its id."""

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a part of the settings, such as `agent_info`; empty when there is none."""
        found = self.info.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def policy(self) -> str | None:
        """The policy that the environment hands to the agent; None when it is not recorded."""
        found = self.part("environment_info").get("policy")
        return found if isinstance(found, str) else None

    def history(self, task: str) -> list[Any]:
        """Return the messages with which a task begins; empty when it begins with none."""
        state = self.tasks[task].get("initial_state") if task in self.tasks else None
        found = state.get("message_history") if isinstance(state, dict) else None
        return found if isinstance(found, list) else []

    def contradictions(self, simulation: Mapping[str, Any], turns: int, last_step: int) -> list[str]:
        """Return what of this a run proves to be untrue of it, in words with the step; empty for nothing.

        A policy that is made for each run (of a domain that retrieves knowledge) contradicts nothing.

        Args:
            simulation: the run.
            turns: how many it took.
            last_step: the number of its last step.
        """
        found, policy, limit = [], simulation.get("policy"), self.info.get("max_steps")
        is_made = self.info.get("retrieval_config") is not None
        if self.policy is not None and isinstance(policy, str) and policy != self.policy and not is_made:
            found.append("step 1: the run had another policy than its file states: the file was resumed after a change")
        if type(limit) is int and turns > limit + _BEYOND:
            told = f"step {last_step}: the run took {turns} turns, and its file allows {limit}"
            found.append(f"{told}: the file was resumed after a change")
        return found


def results_of(record: Record) -> Results | None:
    """Return what is said of the runs of the file, or beside the folder, that a record is in; None for nothing."""
    around, context = record.around, record.context
    if around:
        # the value holds the members that its key is made of, so no others get that key while it is kept
        return context.once(("tau2", id(around)), lambda: (around, _results(around)))[1]
    return context.once(("tau2", context.folder), lambda: _above(context))


def _above(context: Context) -> Results | None:
    value = object_in(context.above(FILE))
    return _results(value) if value is not None and isinstance(value.get("info"), dict) else None


def _results(members: Mapping[str, Any]) -> Results:
    info, tasks = members.get("info"), members.get("tasks")
    found = {
        str(task["id"]): task
        for task in (tasks if isinstance(tasks, list) else ())
        if isinstance(task, dict) and isinstance(task.get("id"), (str, int))
    }
    return Results(info if isinstance(info, dict) else {}, found)
