"""What an export takes of the traces that passed the strict filter, and whether that is enough.

Invariants:
- the limits of number compare traces that passed, and the smallest id wins, so no order changes anything;
- the counts add up: what was judged is rows and excluded traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracemark.errors import ExportRefusedError
from tracemark.exporters.select import Judged, Passed, Reason, Terms
from tracemark.ledger.params import Caps, Policy

UNKNOWN = "unknown"
"""How counts name a model or a grader that nobody names."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What an export takes, and why not the rest."""

    ids: tuple[str, ...]
    """Ids of the traces taken, sorted; the order of the rows."""
    traces: int
    """How many traces were looked at; rows and excluded together."""
    superseded: int
    """How many were not, since others stand for them."""
    excluded: Mapping[Reason, int]
    """How many were left out for each first reason; every reason is there, with 0 where it left out none."""
    not_trainable: Mapping[str, int]
    """The detail of `not-trainable`, counted; sorted by name."""
    settleable: int
    """How many of the contested are contested for their harness alone, so that a stamp settles them."""
    models: Mapping[str, int]
    """Rows of each model; sorted by name."""
    graders: Mapping[str, int]
    """Rows by who judged them; sorted by name."""


def choose(judged: Judged, caps: Caps) -> Selected:
    """Return what an export takes of the traces that were judged."""
    excluded = {reason: judged.excluded[reason] for reason in Reason}
    passed = sorted(judged.passed, key=lambda trace: trace.id)
    count = len(passed) + judged.excluded.total()
    first = _first_of_each_task(passed, caps.per_task)
    taken = first if caps.total is None else first[: caps.total]
    excluded[Reason.PER_TASK] = len(passed) - len(first)
    excluded[Reason.TOTAL] = len(first) - len(taken)
    return Selected(
        ids=tuple(trace.id for trace in taken),
        traces=count,
        superseded=judged.superseded,
        excluded=excluded,
        not_trainable=dict(sorted(judged.details.items())),
        settleable=judged.settleable,
        models=_counted(trace.model for trace in taken),
        graders=_counted(trace.grader for trace in taken),
    )


def require_enough(selected: Selected, terms: Terms, harness: str, alike: Callable[[], Sequence[str]] = tuple) -> None:
    """Stop an export that would be empty or below its minimum.

    Args:
        selected: what it would take.
        terms: under which terms.
        harness: the accepted harness, in the words for a reader.
        alike: gives, in words, the known harnesses that no content tells apart from the accepted one; asked only when
            the export is refused.

    Raises:
        ExportRefusedError: saying what left out the others and what would change that, and, where more runs would
            help, how many are needed.
    """
    caps, rows = terms.caps, len(selected.ids)
    needed = max(caps.minimum, 1)
    if rows >= needed:
        return
    details = ", ".join(f"{detail} {count}" for detail, count in selected.not_trainable.items())
    left_out = ", ".join(
        f"{reason} {count}" + (f" ({details})" if reason is Reason.NOT_TRAINABLE and details else "")
        for reason, count in selected.excluded.items()
        if count
    )
    hints = [*_doubts(selected, terms, harness, alike)]
    hints += [f"change params.yaml: {limit}" for limit in _limits(selected, terms, needed)]
    if caps.total is None or caps.total >= needed:
        tasks = "" if caps.per_task is None else f" (at most {caps.per_task} of a task counts)"
        missing = needed - rows
        runs = "1 more successful run" if missing == 1 else f"{missing} more successful runs"
        models = f" with {' or '.join(sorted(terms.models))}" if terms.models else ""
        hints.append(f"record at least {runs} under {harness}{models}{tasks}, then ingest")
    raise ExportRefusedError(
        f"{rows} of {selected.traces} traces fit, at least {needed} {'is' if needed == 1 else 'are'} needed"
        + (f"; left out: {left_out}" if left_out else ""),
        where=harness,
        hint="; or ".join(hints),
    )


def _doubts(selected: Selected, terms: Terms, harness: str, alike: Callable[[], Sequence[str]]) -> Iterator[str]:
    """Yield what would settle of which harness the traces are that were left out because that is not sure enough."""
    settleable, contested = selected.settleable, selected.excluded[Reason.CONTESTED]
    if settleable:
        yield (
            "settle whose the contested traces are: tracemark stamp TRACE --harness NAME|FINGERPRINT|none --reason TEXT"
            f" ({settleable}, flagged in tracemark traces list)"
        )
    if contested > settleable:
        yield (
            f"leave out what is contested for its outcome or run ({contested - settleable}), which nothing settles:"
            " tracemark retract TRACE --reason TEXT records that, tracemark audit TRACE shows what each source says"
        )
    doubtful = selected.excluded[Reason.EVIDENCE]
    if not doubtful:
        return
    policy = f"change params.yaml: export.evidence {terms.policy} leaves out {doubtful}"
    siblings = alike() if terms.policy is Policy.UNIQUE else ()
    if terms.policy is Policy.RECORDED:
        yield f"{policy} whose run did not record its harness whole, or record runs with tracemark.record"
    elif siblings:
        yield (
            f"{policy}, as no content tells {harness} apart from {', '.join(siblings)}: take away what is not in use,"
            " record runs with tracemark.record, or, where they do the same, say so by"
            " `tracemark harness equivalent A B --reason TEXT` (siblings-alike in `tracemark harness list`)"
        )
    else:
        yield (
            f"{policy} whose content shows no single harness (fits in tracemark audit TRACE): take away what fits and"
            " is not in use, or record runs with tracemark.record"
        )


def _limits(selected: Selected, terms: Terms, needed: int) -> list[str]:
    """Return the choice of models and the limits of number and length that stand in the way, in words."""
    caps, found = terms.caps, []
    left_out = selected.excluded[Reason.OTHER_MODEL]
    if left_out:
        found.append(f"export.models [{', '.join(sorted(terms.models))}] leaves out {left_out}")
    left_out = selected.excluded[Reason.TOOL_CALLS]
    if left_out and caps.tool_calls is not None:
        found.append(f"export.sft.tool_calls {list(caps.tool_calls)} leaves out {left_out}")
    left_out = selected.excluded[Reason.PER_TASK]
    if left_out:
        found.append(f"export.sft.per_task {caps.per_task} leaves out {left_out}")
    if caps.total is not None and caps.total < needed:
        found.append(f"export.sft.total {caps.total} is less than the {needed} that are needed")
    return found


def _first_of_each_task(passed: list[Passed], per_task: int | None) -> list[Passed]:
    if per_task is None:
        return passed
    seen: Counter[str] = Counter()
    first = []
    for trace in passed:
        if trace.task is None:
            first.append(trace)
            continue
        seen[trace.task] += 1
        if seen[trace.task] <= per_task:
            first.append(trace)
    return first


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name or UNKNOWN for name in names).items()))
