"""What a report says of earlier attempts: of what installed a pair, and of what was retracted.

An evaluation that installed its pair was chosen for being good, and attempts that were retracted may have been so for
being bad. Both are facts of the ledger with a reason, so neither is refused; the reader is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tracemark import digest
from tracemark.gates.cell import SCORED, Cell
from tracemark.gates.compare import Comparison
from tracemark.model.gate import Evaluated, GateReport, NoiseOf, RepeatedOf, RetractedAttempts
from tracemark.words import numbered

_CALLED = {"success": ("success", "successes"), "failure": ("failure", "failures"), "error": ("error", "errors")}


def retracted_of(cell: Cell, wanted: int) -> RetractedAttempts | None:
    """Return what a report holds of the retracted attempts of a cell; None where there are none.

    Args:
        cell: the cell.
        wanted: how many attempts a task is to have.
    """
    if not cell.retracted:
        return None
    return RetractedAttempts(
        traces=sorted({one.trace for one in cell.retracted}),
        statuses=dict(sorted(Counter(one.status for one in cell.retracted).items())),
        replaced=len(cell.replaced(wanted)),
    )


def repeated_of(comparison: Comparison) -> dict[str, RepeatedOf]:
    """Return the member `repeated` of a report's noise, where it has one.

    Args:
        comparison: the comparison.
    """
    found = None if comparison.measured is None else comparison.measured.repeated
    if found is None or found.differences is None or found.moved is None:
        return {}
    traces = sorted({one.trace for one in comparison.incumbent.installed})
    repeated = RepeatedOf(digest=digest.of(traces), difference=found.differences[0], moved=found.moved[0])
    return {"repeated": repeated}


def repeated_words(noise: NoiseOf) -> Iterator[str]:
    """Yield the sentence on two evaluations of the incumbent, beside the noise floor; nothing where one was made."""
    if (seen := noise.repeated) is not None:
        said = f"the evaluation that installed the incumbent and this one differ by {seen.difference}"
        said += f" ({numbered(seen.moved, 'task')} moved), with the same harness and model"
        if noise.tasks is not None:
            where = "more than" if seen.difference > noise.tasks else "within"
            said += f": {where} the noise floor of {noise.tasks}"
        yield said


def counted(statuses: Mapping[str, int]) -> str:
    """Return `1 success, 2 failures`, or what else attempts ended as."""
    known = [
        f"{number} {_CALLED[status][number != 1]}" for status in _CALLED if (number := statuses.get(status, 0)) > 0
    ]
    rest = sum(number for status, number in statuses.items() if status not in _CALLED)
    return ", ".join([*known, *([f"{rest} without a verdict"] if rest else [])])


def flagged(report: GateReport) -> str:
    """Return what the first line says of sides whose evaluation installed them; nothing where none did."""
    sides = [side for side, reused in (("incumbent", report.reused), ("candidate", report.candidate.reused)) if reused]
    if not sides:
        return ""
    ends = "is one that installed it" if len(sides) == 1 else "are ones that installed them"
    return f"; the evaluation of the {' and that of the '.join(sides)} {ends}"


def earlier_words(whose: str, cell: Evaluated, reused: Sequence[str] | None) -> Iterator[str]:
    """Yield the sentences about what was made before, for one cell.

    Args:
        whose: what the cell is called in a sentence, `of the incumbent`.
        cell: the cell.
        reused: its traces that installed the pair.
    """
    if reused:
        yield (
            f"{len(reused)} of {len(cell.traces)} traces {whose} are those that installed it, chosen because they were "
            "good: evaluate it anew"
        )
    if (gone := cell.retracted) is not None:
        said = f"{numbered(sum(gone.statuses.values()), 'attempt')} {whose} "
        said += f"{'was' if sum(gone.statuses.values()) == 1 else 'were'} retracted ({counted(gone.statuses)})"
        if gone.replaced:
            scored = sum(gone.statuses.get(status, 0) for status in SCORED)
            every = gone.replaced == scored == sum(gone.statuses.values())
            place = "their place" if every else f"the place of {gone.replaced}"
            said += f" and others stand in {place}"
        yield said
