"""Rows of the plots: what is measured is there, what is withheld is null, and no list is empty."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.errors import UsageError
from tracemark.gates.compare import compare
from tracemark.gates.plots import RESERVED, plots
from tracemark.gates.report import stored
from tracemark.gates.terms import Half, Terms
from tracemark.model.gate import GateReport

from .evaluations import NEW, THIRD, cell

BEFORE = {f"t-{n}": 2 for n in range(8)}
AFTER = {f"t-{n}": 4 if n < 6 else 2 for n in range(7)} | {"t-7": 1}


def report(after: dict[str, int], harness: str = NEW, **changes: Any) -> GateReport:
    before = cell(BEFORE, 4)
    return stored(compare(before, cell(after, 4, harness, **changes), Terms(half=Half.HARNESS, attempts=4)))


def test_pass_all_has_a_column_for_each_and_a_row_for_each_k() -> None:
    rows = plots({"better": report(AFTER), "same": report(BEFORE, THIRD)})["pass-all"]
    assert [row["k"] for row in rows] == [1, 2, 3, 4]
    assert rows[0] == {"k": 1, "accepted": 0.5, "better": (6 * 1 + 0.5 + 0.25) / 8, "same": 0.5}
    assert rows[3] == {"k": 4, "accepted": 0.0, "better": 0.75, "same": 0.0}


def test_every_pair_has_a_row_of_its_own_in_cost() -> None:
    # four attempts at half a dollar each; 16 of 32, and 27 of 32, succeeded
    assert plots({"better": report(AFTER)})["cost"] == [
        {"cost_per_success": 1.0, "accepted": 0.0, "better": None},
        {"cost_per_success": pytest.approx(16 / 27), "accepted": None, "better": 0.75},
    ]


def test_changes_go_up_and_down_from_zero() -> None:
    assert plots({"better": report(AFTER)})["changes"] == [
        {"gate": "better: up", "tasks": 6},
        {"gate": "better: down", "tasks": -1},
    ]


def test_a_cost_that_nobody_knows_is_null_and_not_zero() -> None:
    rows = plots({"better": report(AFTER, cost=None)})["cost"]
    assert rows[1] == {"cost_per_success": None, "accepted": None, "better": None}


def test_what_is_refused_is_null_everywhere() -> None:
    refused = report(dict.fromkeys(list(BEFORE)[:5], 2))
    assert refused.verdict == "refused"
    found = plots({"short": refused})
    assert found["pass-all"] == [{"k": 1, "accepted": None, "short": None}]
    assert found["cost"] == [{"cost_per_success": None, "accepted": None, "short": None}] * 2
    assert found["changes"] == [{"gate": "short: up", "tasks": None}, {"gate": "short: down", "tasks": None}]
    both = plots({"short": refused, "better": report(AFTER)})
    assert both["pass-all"][0] == {"k": 1, "accepted": 0.5, "short": None, "better": (6 + 0.75) / 8}


def test_rows_of_one_plot_have_the_same_members_and_there_are_some() -> None:
    for reports in ({}, {"better": report(AFTER)}, {"a": report(AFTER), "b": report(BEFORE, THIRD)}):
        for rows in plots(reports).values():
            assert rows
            assert len({tuple(row) for row in rows}) == 1


def test_reports_of_two_accepted_pairs_are_refused() -> None:
    other = stored(
        compare(cell(AFTER, 4, THIRD), cell(BEFORE, 4, NEW), Terms(half=Half.HARNESS, attempts=4)),
    )
    with pytest.raises(UsageError, match="2 evaluations of the accepted pair"):
        plots({"a": report(AFTER), "b": other})


@pytest.mark.parametrize("name", ["accepted", "k", "cost_per_success", "gate", "tasks"])
def test_no_candidate_takes_a_column_that_is_there(name: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be called {name}: that is a column of the plots") as stopped:
        plots({"better": report(AFTER), name: report(BEFORE, THIRD)})
    assert stopped.value.hint == "give its report another name"


def test_every_column_that_is_no_candidates_is_reserved() -> None:
    columns = {column for rows in plots({"better": report(AFTER)}).values() for row in rows for column in row}
    assert columns - {"better"} == set(RESERVED)
