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
from typing import Any, NamedTuple

from identity_truth import DOCS, TRACES, places

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.failure_job import FailureJob, routed
from tracemark.acts.failure_terms import Asking
from tracemark.acts.ingest import IngestOptions, ingest
from tracemark.failures.command_line import code_counts
from tracemark.failures.conditions import UNMATCHED, shipped
from tracemark.failures.error_line import error_in
from tracemark.failures.family import script_of
from tracemark.failures.program import counting
from tracemark.failures.route import Routing
from tracemark.failures.unwrap import unwrap
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
_UNCODED = """\

## Without exit codes

Where the exit code of a command line's own program was recorded, what the text alone tells can be checked against it.
Of {calls} calls with a code {failed} failed by it. With the code taken away the router sees {seen} of these, and takes
{false} of the {well} others for failures. Its wordings were written with these traces at hand; those of other programs
it knows less well.
"""
_AGREEMENT = """\

## What a reader says

**Where a condition holds, a reader agrees with {judged_agreed} of {judged} routings ({share:.0%})**: {conditions} in
the condition, {steps} in the step of the earliest failure that was not recovered, or that there is none. Of {others}
traces that none holds for, most of them runs that nobody judged, which condition it is follows from that; in the step
the reader agrees with {others_agreed}.

Read were, of each format and each condition, the traces with the smallest ids, one to four of each. Where the router
may be wrong all were read: those with a failed call that a condition holds for, those with a failure that was not
recovered, and the failed runs of NeMo Gym. So rare conditions and failed calls weigh more than in the collection. The
reader knew what the router had said, and in long runs skimmed the steps in which nothing speaks of an error. This shows
that routings can be followed in the transcript, and is no estimate of how often others are right; {unmet} of the
{shipped} conditions are met by no trace and were not read at all.

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
    uncoded: Counter[tuple[bool, bool]]
    """Calls whose exit code was recorded: whether they failed by it, and whether they do without it."""


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
                    trace = Trace(line["source"]["format"], routing, _uncoded(line["trajectory"]["steps"]))
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
    lines = [_TEXT.format(count=len(traces), digest=shipped().digest[:12]), *_distribution(traces), _without(traces)]
    compared = [(one, found[one.file, one.number]) for one in read_by_hand]
    same = [(_same_condition(*pair), _same_step(*pair)) for pair in compared]
    holds = [trace.routing.condition != UNMATCHED for _, trace in compared]
    judged = [verdict for verdict, held in zip(same, holds, strict=True) if held]
    others = [verdict for verdict, held in zip(same, holds, strict=True) if not held]
    agreed = sum(map(all, judged))
    lines.append(
        _AGREEMENT.format(
            judged_agreed=agreed,
            judged=len(judged),
            share=agreed / len(judged),
            conditions=sum(condition for condition, _ in judged),
            steps=sum(step for _, step in judged),
            others=len(others),
            others_agreed=sum(map(all, others)),
            unmet=len(_unmet(traces)),
            shipped=len(shipped().ordered),
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
    unlike = [pair for pair, verdict in zip(compared, same, strict=True) if not all(verdict)]
    lines += [f"- {_trace(one)}, routed as `{trace.routing.condition}`: {one.why}\n" for one, trace in unlike]
    return "".join(lines if unlike else lines[:-1])


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
    never = [f"`{name}`" for name in _unmet(traces)]
    return [*rows, *([f"\nNo trace of the collection meets {', '.join(never)}.\n"] if never else [])]


def _unmet(traces: list[Trace]) -> list[str]:
    met = {trace.routing.condition for trace in traces}
    return [condition.name for condition in shipped().ordered if condition.name not in met]


def _without(traces: list[Trace]) -> str:
    calls = sum((trace.uncoded for trace in traces), Counter[tuple[bool, bool]]())
    seen, unseen, false, clean = (calls[key] for key in ((True, True), (True, False), (False, True), (False, False)))
    return _UNCODED.format(calls=calls.total(), failed=seen + unseen, seen=seen, false=false, well=false + clean)


def _uncoded(steps: list[dict[str, Any]]) -> Counter[tuple[bool, bool]]:
    """Read each output of a command line with its exit code, and without."""
    counts = Counter[tuple[bool, bool]]()
    for step in steps:
        calls = {call["tool_call_id"]: call for call in step.get("tool_calls") or ()}
        for result in (step.get("observation") or {}).get("results", ()):
            call, text = calls.get(result.get("source_call_id")), result.get("content")
            script = None if call is None else script_of(call["function_name"], call.get("arguments") or {})
            place = None if script is None else counting(script)
            if script is None or place is None or not isinstance(text, str) or not code_counts(script, place):
                continue
            if (printed := unwrap(text)).code is None:
                continue
            said = (error_in(text, result.get("extra"), script), error_in(printed.text, None, script))
            counts[said[0].error is not None, said[1].error is not None] += 1
    return counts


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
