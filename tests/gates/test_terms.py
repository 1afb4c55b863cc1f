"""Which task an id of the evaluation set means."""

from __future__ import annotations

import pytest

from tracemark.gates.terms import Conditions, Half, Policy, Terms, covers, meanings


@pytest.mark.parametrize(
    ("listed", "task", "means"),
    [
        ("refund-07", "refund-07", True),
        ("refund-07", "desk/refund-07", True),
        ("refund-07", "shop/refund-07", True),
        ("desk/refund-07", "desk/refund-07", True),
        ("desk/refund-07", "shop/refund-07", False),
        ("desk/refund-07", "refund-07", True),
        ("refund-07", "desk/late-refund-07", False),
        ("und-07", "desk/refund-07", False),
        ("a/b", "desk/a/b", True),
        ("desk/refund-07", "desk/refund-070", False),
        ("caf\u00e9", "desk/cafe\u0301", True),
        ("desk/cafe\u0301", "caf\u00e9", True),
        ("cafe", "desk/caf\u00e9", False),
    ],
)
def test_a_name_without_a_domain_means_the_task_in_any(listed: str, task: str, means: bool) -> None:
    assert covers(listed, task) is means
    assert meanings([listed], [task]) == {listed: (task,) if means else ()}


def test_what_is_shipped() -> None:
    terms = Terms(Half.HARNESS)
    assert (terms.policy, terms.level, terms.infrastructure_limit) == (Policy.SIGNIFICANT, 0.05, 0.0)
    assert terms.conditions == Conditions((), None, cost=False, fresh=False)
