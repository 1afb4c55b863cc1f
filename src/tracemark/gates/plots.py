"""What the reports of gates look like in a picture: rows that `dvc plots` draws.

Three plots, each a list of rows with the same members, because that is what DVC can read:

- `pass-all`: pass^k against k, a column for the accepted pair and one for each candidate;
- `cost`: the cost per success against pass^k for the greatest k, a row for each of them and the reliability in a column
  of its own, so that each has its mark;
- `changes`: two rows for each gate, the tasks whose score went up and, below zero, those whose score went down.

Invariants:
- a figure that is withheld, or of a refused comparison, is null and never a number;
- no list is empty: DVC cannot draw one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.errors import UsageError
from tracemark.model.gate import FiguresOf, GateReport, MeasuredOf

ACCEPTED = "accepted"
"""The column of the accepted pair."""

RELIABILITY = "pass-all"
"""Name of the plot of pass^k against k."""

COST = "cost"
"""Name of the plot of cost against reliability."""

CHANGES = "changes"
"""Name of the plot of the tasks that went up and down."""

RESERVED = (ACCEPTED, "k", "cost_per_success", "gate", "tasks")
"""Columns of the plots that are there whatever the candidates are called."""

Rows = list[dict[str, Any]]
"""The rows of one plot."""


class _Measured(NamedTuple):
    name: str
    measured: MeasuredOf


def plots(reports: Mapping[str, GateReport]) -> dict[str, Rows]:
    """Return the rows of every plot, by its name.

    Args:
        reports: the reports by the names of their candidates, which become columns, so none has the name of one that
            is there (`RESERVED`).

    Raises:
        UsageError: when they are not of one accepted pair, so that one column cannot show it; when one has a name that
            is reserved.
    """
    for name in RESERVED:
        if name in reports:
            hint = "give its report another name"
            raise UsageError(f"a candidate cannot be called {name}: that is a column of the plots", hint=hint)
    measured = [_Measured(name, report.measured) for name, report in reports.items() if report.measured is not None]
    incumbents = {report.incumbent.digest for report in reports.values() if report.measured is not None}
    if len(incumbents) > 1:
        raise UsageError(
            f"the reports are of {len(incumbents)} evaluations of the accepted pair",
            hint="let the gates judge every candidate again",
        )
    figures: dict[str, FiguresOf | None] = {ACCEPTED: measured[0].measured.incumbent if measured else None}
    figures |= dict.fromkeys(reports)
    figures |= {one.name: one.measured.candidate for one in measured}
    return {RELIABILITY: _pass_all(figures), COST: _cost(figures), CHANGES: _changes(reports)}


def is_plot(data: bytes) -> bool:
    """Return whether a file holds the rows of a plot, whichever it is."""
    try:
        rows = digest.loads(data).value
    except digest.NotJSONError:
        return False
    # what every row of a plot has
    marks: tuple[set[str], ...] = ({"k", ACCEPTED}, {"cost_per_success", ACCEPTED}, {"gate", "tasks"})
    if not isinstance(rows, list) or not rows:
        return False
    return any(all(isinstance(row, dict) and mark <= row.keys() for row in rows) for mark in marks)


def _pass_all(figures: Mapping[str, FiguresOf | None]) -> Rows:
    columns = {
        name: {} if found is None else {one.k: one.combinations for one in found.reliability}
        for name, found in figures.items()
    }
    ks = sorted({k for column in columns.values() for k in column}) or [1]
    return [{"k": k, **{name: column.get(k) for name, column in columns.items()}} for k in ks]


def _cost(figures: Mapping[str, FiguresOf | None]) -> Rows:
    rows = []
    for name, found in figures.items():
        row: dict[str, Any] = {"cost_per_success": None, **dict.fromkeys(figures)}
        if found is not None and found.cost_per_success.value is not None and found.reliability:
            greatest = max(found.reliability, key=lambda one: one.k)
            row |= {"cost_per_success": found.cost_per_success.value, name: greatest.combinations}
        rows.append(row)
    return rows


def _changes(reports: Mapping[str, GateReport]) -> Rows:
    rows: Rows = []
    for name, report in reports.items():
        up = None if report.measured is None else report.measured.w
        down = None if report.measured is None else -report.measured.l
        rows += [{"gate": f"{name}: up", "tasks": up}, {"gate": f"{name}: down", "tasks": down}]
    return rows or [{"gate": None, "tasks": None}]
