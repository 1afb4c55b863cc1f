"""Is a task of the evaluation set in a failure log? Asked of what was written, not of what was meant to be written.

A log is read by whoever changes the harness, so a task in it is no measure of the change any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracemark.exporters.evaluation import for_evaluation


def leaked(value: Mapping[str, Any], evaluation: frozenset[str]) -> str | None:
    """Return a task of the evaluation set that a row, or the value of a cluster, names; None when it names none.

    Where there is such a set, a trace whose task nobody knows may be of it as well.

    Args:
        value: what `log.row` or `log.cluster_value` gave.
        evaluation: the ids, `TASK` or `DOMAIN/TASK`.
    """
    if not evaluation:
        return None
    for task, domain in _tasks(value):
        if for_evaluation(task, domain, evaluation):
            return "a task that nobody knows" if task is None else task if domain is None else f"{domain}/{task}"
    return None


def _tasks(value: Mapping[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    """Yield every task with its domain; the tasks of a cluster have theirs in their names."""
    if "task" in value:
        yield value["task"] or None, value["domain"]
    if value.get("task_unknown"):
        yield None, None
    for name in value.get("task_names", ()):
        domain, _, task = name.rpartition("/")
        yield task, domain or None
    for example in value.get("examples", ()):
        yield example["task"] or None, example["domain"]
