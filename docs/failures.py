"""Write `docs/reference/failures.md`: where every real trace is routed, and whether a reader agrees.

    python docs/failures.py            write it
    python docs/failures.py --check    end with 1 when it differs

The collection of trace files beside the checkout is ingested by the verb that users run, and every trace in it is
routed by the shipped conditions, as `failures export` does. `failures_read.toml` holds what a reader made of some of
them. Where the collection is absent the script says so and ends with 0.

Invariant:
- a reading of a trace that is not there, or of a condition that there is none of, ends the script: it would be counted
  and speak of nothing.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from identity_truth import DOCS, TRACES, places

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.failure_job import FailureJob, routed
from tracemark.acts.failure_terms import Asking
from tracemark.acts.ingest import IngestOptions, ingest
from tracemark.failures.conditions import UNMATCHED, shipped
from tracemark.failures.route import Routing
from tracemark.store.selection import Selection

PAGE = DOCS / "reference" / "failures.md"
READ = DOCS / "failures_read.toml"

_TEXT = """\
# Failures on real files

<!-- made by docs/failures.py; edit the source instead -->

Where the [router](../concepts/failures.md) sends the public trace files that the project is tested with
([coverage](coverage.md)), and how often a reader of the transcripts agrees. `python docs/failures.py` makes this page;
where the collection is not at hand, nothing is routed.

{count} traces were routed by the shipped conditions (`{digest}`).

## Where they go

| condition | side | destination | traces | with an unrecovered failure | formats |
|---|---|---|---:|---:|---|
"""
_AGREEMENT = """\

## What a reader says

**A reader agrees with {agreed} of {read} routings ({share:.0%})**: {conditions} in the condition, {steps} in the step
of the earliest failure that was not recovered, or that there is none. Without the traces that no condition holds for,
most of them runs that nobody judged, it is {judged_agreed} of {judged}.

Of each format and each condition the traces with the smallest ids were read, one to four of each, so rare conditions
weigh more than in the collection, and most of these files hold no verdict. The reader knew what the router had said,
and in long runs skimmed the steps in which nothing speaks of an error. So this shows that routings can be followed in
the transcript, and is no estimate of how often others are right.

| trace | format | read as | failure in step | the router says | failure in step | agrees |
|---|---|---|---:|---|---:|---|
"""
_WHY = """\

## Where the reader disagrees

"""


class Reading(NamedTuple):
    """What a reader made of one trace."""

    file: str
    """Its file in the collection."""
    number: int
    """Which of the file's traces it is, counted from 0."""
    condition: str
    """The condition that holds first."""
    step: int | None
    """The step of the earliest unrecovered failure; None when there is none."""
    why: str
    """How the reader came to it."""


class Trace(NamedTuple):
    """A trace of the collection."""

    format: str
    routing: Routing


def readings() -> list[Reading]:
    """Return what was read.

    Raises:
        SystemExit: when a reading has a member that it should not have, or names a condition that there is none of.
    """
    stated = tomllib.loads(READ.read_text(encoding="utf-8"))["read"]
    names = {condition.name for condition in shipped().ordered} | {UNMATCHED}
    found = [Reading(**{"step": None, **one}) for one in stated]
    unknown = sorted({one.condition for one in found} - names)
    if unknown:
        raise SystemExit(f"{READ.name}: no such condition: {unknown}")
    return found


def collect() -> dict[tuple[str, int], Trace]:
    """Ingest the collection and return its traces, each under every place in which it stands."""
    where = places()
    found: dict[tuple[str, int], Trace] = {}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        ingest(root, [TRACES], IngestOptions())
        with open_store(root) as store:
            asking = Asking(Corpus(root), store)
            for batch in store.batches(Selection()):
                job = FailureJob(batch.path, tuple(asking.asked(batch.states)), asking.conditions, None)
                for asked, line, routing in routed(job):
                    trace = Trace(line["source"]["format"], routing)
                    found |= dict.fromkeys(where[asked.trace], trace)
    return found


def page(found: dict[tuple[str, int], Trace], read_by_hand: list[Reading]) -> str:
    """Return the page.

    Raises:
        SystemExit: when a trace that was read is not there.
    """
    missing = [(one.file, one.number) for one in read_by_hand if (one.file, one.number) not in found]
    if missing:
        raise SystemExit(f"{READ.name}: no such trace: {missing}")
    traces = list({id(trace): trace for trace in found.values()}.values())
    lines = [_TEXT.format(count=len(traces), digest=shipped().digest[:12]), *_distribution(traces)]
    compared = [(one, found[one.file, one.number]) for one in read_by_hand]
    same = [(_same_condition(*pair), _same_step(*pair)) for pair in compared]
    agreed = sum(map(all, same))
    judged = [
        verdict for (_, trace), verdict in zip(compared, same, strict=True) if trace.routing.condition != UNMATCHED
    ]
    lines.append(
        _AGREEMENT.format(
            agreed=agreed,
            read=len(same),
            share=agreed / len(same),
            conditions=sum(condition for condition, _ in same),
            steps=sum(step for _, step in same),
            judged_agreed=sum(map(all, judged)),
            judged=len(judged),
        )
    )
    for (one, trace), verdict in zip(compared, same, strict=True):
        failure = trace.routing.failure
        cells = [
            _trace(one),
            trace.format,
            one.condition,
            _step(one.step),
            trace.routing.condition,
            _step(None if failure is None else failure.step),
            "yes" if all(verdict) else "no",
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    lines.append(_WHY)
    others = [pair for pair, verdict in zip(compared, same, strict=True) if not all(verdict)]
    lines += [f"- {_trace(one)}, routed as `{trace.routing.condition}`: {one.why}\n" for one, trace in others]
    return "".join(lines if others else lines[:-1])


def _distribution(traces: list[Trace]) -> list[str]:
    order = [condition.name for condition in shipped().ordered] + [UNMATCHED]
    kinds: dict[tuple[str, str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        kinds[trace.routing.condition, trace.routing.side, trace.routing.destination].append(trace)
    rows = []
    for name, side, destination in sorted(kinds, key=lambda kind: (order.index(kind[0]), kind)):
        members = kinds[name, side, destination]
        formats = Counter(trace.format for trace in members)
        failed = sum(trace.routing.failure is not None for trace in members)
        listed = ", ".join(f"{label} {number}" for label, number in sorted(formats.items()))
        rows.append(f"| `{name}` | {side} | {destination} | {len(members)} | {failed} | {listed} |\n")
    never = [f"`{name}`" for name in order if name not in {kind[0] for kind in kinds}]
    return [*rows, *([f"\nNo trace of the collection meets {', '.join(never)}.\n"] if never else [])]


def _same_condition(one: Reading, trace: Trace) -> bool:
    return one.condition == trace.routing.condition


def _same_step(one: Reading, trace: Trace) -> bool:
    failure = trace.routing.failure
    return one.step == (None if failure is None else failure.step)


def _trace(one: Reading) -> str:
    return f"`{one.file}` {one.number}"


def _step(step: int | None) -> str:
    return "–" if step is None else str(step)


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it differs; return 1 when it does."""
    if not TRACES.is_dir():
        print("docs/reference/failures.md: not compared, the collection of trace files is not beside the checkout")
        return 0
    text = page(collect(), readings())
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print("docs/reference/failures.md: not current (python docs/failures.py)")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print("docs/reference/failures.md: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
