"""The page on gates names policies, refusals and parameters as they are."""

from __future__ import annotations

import re
from pathlib import Path

from tracemark.gates.refusal import Reason
from tracemark.gates.terms import Policy
from tracemark.ledger.params import GateParams

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "concepts" / "gates.md").read_text(encoding="utf-8")


def test_every_refusal_is_in_the_table_and_no_other() -> None:
    table = PAGE.partition("## Refusals")[2].partition("## Decisions")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == {reason.value for reason in Reason}


def test_both_policies_are_told() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| w > l", PAGE, re.MULTILINE)) == {policy.value for policy in Policy}


def test_every_condition_of_the_parameters_is_told() -> None:
    named = {name for name in GateParams.__slots__ if name not in ("candidates", "policy")}
    assert {name for name in named if f"`{name}`" not in PAGE} == set()
