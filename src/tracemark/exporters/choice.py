"""What an export takes of the traces that passed the strict filter, and whether that is enough.

Invariants:
- the limits of number compare traces that passed, and the smallest id wins, so no order changes anything;
- the counts add up: what was judged is rows and excluded traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tracemark.errors import ExportRefusedError
from tracemark.exporters.select import Judged, Passed, Reason, Terms
from tracemark.ledger.params import Caps, Policy
from tracemark.words import first_few, numbered

UNKNOWN = "unknown"
"""How counts name a model or a grader that nobody names."""


class Rival(NamedTuple):
    """A known harness beside the accepted one."""

    words: str
    """What it is called, for a reader."""
    alike: bool
    """Whether no content tells it apart from the accepted one."""
    spare: bool
    """Whether it is a folder alone: of one that made traces a snapshot is stored, which stays when the folder goes."""


Rivals = Callable[[Collection[str]], Sequence[Rival]]
"""Gives, for fingerprints that fit traces as well, the harnesses, with those that are alike whatever fits."""


def no_rivals(_: Collection[str]) -> Sequence[Rival]:
    """Return none."""
    return ()


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
    missed: Mapping[Reason, int]
    """Of the excluded, those that would be rows but for their first reason, where the limit per task has room; reasons
    that leave out none of these are absent."""
    fitting: frozenset[str]
    """Other harnesses that fit successes left out for `evidence`."""
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
        missed=_missed(judged, caps.per_task),
        fitting=frozenset().union(*(one.fitting for one in judged.missed)),
        models=_counted(trace.model for trace in taken),
        graders=_counted(trace.grader for trace in taken),
    )


def require_enough(selected: Selected, terms: Terms, harness: str, rivals: Rivals = no_rivals) -> None:
    """Stop an export that would be empty or below its minimum.

    Args:
        selected: what it would take.
        terms: under which terms.
        harness: the accepted harness, in the words for a reader.
        rivals: gives the known harnesses that a trace may be of as well; asked only when the export is refused.

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
    hints = list(remedies(selected, terms, harness, rivals).values())
    hints += [f"change params.yaml: {limit}" for limit in _limits(selected, terms, needed)]
    if caps.total is None or caps.total >= needed:
        tasks = "" if caps.per_task is None else f" (at most {caps.per_task} of a task counts)"
        missing = needed - rows
        runs = numbered(missing, "more successful run")
        models = f" with {' or '.join(sorted(terms.models))}" if terms.models else ""
        hints.append(f"record at least {runs} under {harness}{models}{tasks}, then ingest")
    raise ExportRefusedError(
        f"{rows} of {numbered(selected.traces, 'trace')} fit, at least {needed} {'is' if needed == 1 else 'are'} needed"
        + (f"; left out: {left_out}" if left_out else ""),
        where=harness,
        hint="; or ".join(hints),
    )


def remedies(selected: Selected, terms: Terms, harness: str, rivals: Rivals = no_rivals) -> dict[Reason, str]:
    """Return by reason what would make rows of traces that it alone leaves out, as hints; see `require_enough`.

    Where what is contested is not whose the trace is, that makes no row, and it is said all the same.
    """
    found = {}
    settling = list(_settling(selected))
    if settling:
        found[Reason.CONTESTED] = "; or ".join(settling)
    missed, caps = selected.missed, terms.caps
    if missed.get(Reason.EVIDENCE):
        found[Reason.EVIDENCE] = surer(missed[Reason.EVIDENCE], selected.fitting, terms, harness, rivals)
    if count := missed.get(Reason.OTHER_MODEL):
        models = ", ".join(sorted(terms.models))
        found[Reason.OTHER_MODEL] = f"change params.yaml: export.models [{models}] leaves out {count}"
    if (count := missed.get(Reason.TOOL_CALLS)) and caps.tool_calls is not None:
        calls = list(caps.tool_calls)
        found[Reason.TOOL_CALLS] = f"change params.yaml: export.sft.tool_calls {calls} leaves out {count}"
    return found


def _settling(selected: Selected) -> Iterator[str]:
    """Yield what becomes of traces that are contested."""
    settleable = selected.missed.get(Reason.CONTESTED)
    if settleable:
        yield (
            "settle whose the contested traces are: tracemark stamp TRACE --harness NAME|FINGERPRINT|none --reason TEXT"
            f" ({settleable}, flagged in tracemark traces list)"
        )
    unsettled = selected.excluded[Reason.CONTESTED] - selected.settleable
    if unsettled:
        yield (
            f"leave out what is contested for its outcome or run ({unsettled}), which nothing settles:"
            " tracemark retract TRACE --reason TEXT records that, tracemark audit TRACE shows what each source says"
        )


def surer(count: int | None, fitting: Collection[str], terms: Terms, harness: str, rivals: Rivals) -> str:
    """Return what to do about successes of which it is not sure enough that the accepted harness made them, as a hint.

    Args:
        count: how many they are; None where it is of runs to come.
        fitting: other harnesses that fit them.
        terms: the terms of the export.
        harness: the accepted harness, in the words for a reader.
        rivals: see `require_enough`.
    """
    policy = f"change params.yaml: export.evidence {terms.policy} leaves out {'runs' if count is None else count}"
    if terms.policy is Policy.RECORDED:
        return f"{policy} whose run did not record its harness whole, or record runs with tracemark.record"
    known = rivals(fitting)
    if not known:
        return (
            f"{policy} whose content shows no single harness (fits in tracemark audit TRACE), which claimed takes,"
            " or record runs with tracemark.record"
        )
    spare = [one.words for one in known if one.spare]
    # a version that made traces is known by its snapshot whatever becomes of its folder
    ways = [f"take away {first_few(spare)}, which made no trace"] if len(spare) == len(known) else []
    ways.append("record runs with tracemark.record")
    alike = [one.words for one in known if one.alike]
    if not alike:
        names = first_few(one.words for one in known)
        return f"{policy} whose content fits {names} as well, which claimed takes, or {', or '.join(ways)}"
    ways.append(
        "where they do the same, say so by `tracemark harness equivalent A B --reason TEXT`"
        " (siblings-alike in `tracemark harness list`)"
    )
    told = f"which claimed takes, as no content tells {harness} apart from {first_few(alike)}"
    return f"{policy}, {told}, or {', or '.join(ways)}"


def _limits(selected: Selected, terms: Terms, needed: int) -> list[str]:
    """Return the limits of number that stand in the way, in words."""
    caps, found = terms.caps, []
    left_out = selected.excluded[Reason.PER_TASK]
    if left_out:
        found.append(f"export.sft.per_task {caps.per_task} leaves out {left_out}")
    if caps.total is not None and caps.total < needed:
        found.append(f"export.sft.total {caps.total} is less than the {needed} that are needed")
    return found


def _missed(judged: Judged, per_task: int | None) -> dict[Reason, int]:
    rows = Counter(trace.task for trace in judged.passed)
    room = (
        one.reason
        for one in judged.missed
        if one.alone and (per_task is None or one.task is None or rows[one.task] < per_task)
    )
    return dict(Counter(room))


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
