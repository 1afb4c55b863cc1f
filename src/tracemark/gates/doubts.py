"""What a reader should know of the traces of a report before believing it, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracemark.gates.cell import SCORED
from tracemark.gates.refusal import named
from tracemark.model.gate import Evaluated, FiguresOf
from tracemark.words import numbered

NO_VERSION = "(no version)"
"""The version of a grader of which none is recorded."""

UNRECORDED = "unrecorded"
"""Who judged attempts of which no grader is recorded; one that is has a space after its name."""


def otherwise(whose: str, cell: Evaluated) -> Iterator[str]:
    """Yield what the steps of a cell's traces say of its model, where they name another one.

    Args:
        whose: whose traces they are, as `of the candidate`.
        cell: the cell.
    """
    if (other := cell.other_models) is not None:
        yield (
            f"in {other.traces} of {len(cell.traces)} traces {whose} steps name another model than is recorded, "
            f"{other.steps} of {other.of} steps: {named(other.names)}"
        )


def judges(cells: Mapping[str, Evaluated]) -> Iterator[str]:
    """Yield what is not known of who judged attempts.

    Args:
        cells: the cells, by whose they are, as `of the candidate`.
    """
    if any(name.endswith(f" {NO_VERSION}") for cell in cells.values() for name in cell.graders):
        yield "graders of unrecorded version judged: whether they are the same is not known"
    # reports of earlier versions name nobody where nobody is recorded of any
    nobody = [
        whose
        for whose, cell in cells.items()
        if UNRECORDED in cell.graders or (not cell.graders and any(cell.statuses.get(status) for status in SCORED))
    ]
    if nobody:
        yield (
            f"nobody is recorded to have judged attempts {', '.join(nobody)}: they count as judged by one grader that "
            "nobody knows"
        )


def broken(side: str, figures: FiguresOf) -> Iterator[str]:
    """Yield what a side has of attempts that the infrastructure ended, made again or not.

    Args:
        side: `incumbent` or `candidate`.
        figures: its figures.
    """
    if figures.open_errors:
        yield (
            f"the infrastructure ended {numbered(figures.open_errors, 'attempt')} of the {side}, not re-run: each "
            "counts against the candidate"
        )
    if again := figures.rerun_errors:
        said = f"of the {side} {numbered(again, 'attempt')} that the infrastructure ended were made again"
        warning = (
            f"; warning: that is more than the {figures.attempts} that are, and an agent that ends its own runs so is "
            "tried until it succeeds"
        )
        yield f"{said}, and are not counted{warning if again > figures.attempts else ''}"
