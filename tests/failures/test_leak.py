"""A task of the evaluation set is found wherever a row or a cluster can name one."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.failures.leak import leaked

SET = frozenset({"shop/t-1", "t-2"})


def row(task: str | None, domain: str | None = None) -> dict[str, Any]:
    return {"task": task, "domain": domain, "text": "t-2 shop/t-1"}


def cluster(*names: str, unknown: int = 0, examples: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"task_names": list(names), "task_unknown": unknown, "examples": list(examples)}


@pytest.mark.parametrize(
    ("value", "task"),
    [
        (row("t-1", "shop"), "shop/t-1"),
        (row("t-2", "desk"), "desk/t-2"),
        (row("t-1"), "t-1"),
        (row(None), "a task that nobody knows"),
        (row("", "shop"), "a task that nobody knows"),
        (cluster("t-9", "desk/t-2"), "desk/t-2"),
        (cluster("shop/t-1"), "shop/t-1"),
        (cluster("t-9", unknown=1), "a task that nobody knows"),
        (cluster("t-9", examples=(row("t-9"), row("t-2"))), "t-2"),
    ],
)
def test_what_may_be_of_the_set_is_named(value: dict[str, Any], task: str) -> None:
    assert leaked(value, SET) == task


@pytest.mark.parametrize("value", [row("t-1", "desk"), row("t-3"), cluster("desk/t-1", "t-20", examples=(row("t-3"),))])
def test_other_tasks_and_words_in_texts_are_none(value: dict[str, Any]) -> None:
    assert leaked(value, SET) is None


def test_without_a_set_nothing_can_be_of_it() -> None:
    assert leaked(row(None), frozenset()) is None
    assert leaked(cluster("t-1", unknown=3), frozenset()) is None
