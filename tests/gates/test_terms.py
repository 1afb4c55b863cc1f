"""What a gate is told where nobody says otherwise."""

from __future__ import annotations

from tracemark.gates.terms import Conditions, Half, Policy, Terms


def test_what_is_shipped() -> None:
    terms = Terms(Half.HARNESS, attempts=4)
    assert (terms.policy, terms.level, terms.infrastructure_limit) == (Policy.SIGNIFICANT, 0.05, 0.0)
    assert terms.conditions == Conditions((), None, cost=False, fresh=False)
