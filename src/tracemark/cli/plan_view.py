"""A plan in words: what is listed, what is there, and what became of the other tasks."""

from __future__ import annotations

from tracemark.acts.planning import PlanReport
from tracemark.hidden import visible
from tracemark.words import numbered

_ROUNDED = 0.001
"""To what expected rows are rounded."""


def about(report: PlanReport) -> str:
    """Return what is said of a plan beside its list, on a few lines."""
    under = visible(report.harness or report.fingerprint)
    model = f" with {visible(report.model)}" if report.model else ""
    wanted = "no total is set" if report.wanted is None else f"{report.wanted} are wanted"
    if report.wanted is not None and report.lacking != max(0, report.wanted - report.rows):
        # what a class has above its share
        wanted += f", {report.lacking} of their classes lack"
    lines = [
        (
            f"{numbered(len(report.tasks), 'task')}, {numbered(report.runs, 'run')} under {under}{model}:"
            f" {report.expected:g} more {'row' if report.expected == 1 else 'rows'} to be expected"
        ),
        f"{numbered(report.rows, 'row')} there now, {wanted}",
    ]
    # rows that tasks could give and the list leaves out: its runs are fewer than it takes
    cut = report.lacking is None or report.expected + report.unfilled < report.lacking - _ROUNDED
    rest = {
        "solved and harvested": len(report.retired),
        "solved, waiting for an export": len(report.waiting),
        "given up": len(report.given_up),
        "beyond --runs" if cut else "not needed now": len(report.not_needed),
        "of the evaluation set": report.evaluation,
    }
    told = ", ".join(f"{count} {what}" for what, count in rest.items() if count)
    if told:
        lines.append(f"tasks not listed: {told}")
    if report.unnamed:
        lines.append(f"{numbered(report.unnamed, 'run')} whose task nobody knows")
    return "\n".join(lines)
