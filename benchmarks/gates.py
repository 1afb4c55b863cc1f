"""Measure how long a gate takes inside one process, over evaluations in a store and over values alone.

    gates.py [--tasks 102] [--attempts 20] [--others 20000] [--repeats 5] [--folder DIR]

The traces are those of `make_traces.py`, about 30 KB each: of two of its harnesses so many are kept that each task of
an evaluation set has so many attempts under both. Others in the store, each of a task of its own, are copies of one,
cut short. "From the store" is `gate harness` without the process around it: catalogue, traces, their digests, costs,
leaks, both policies and the noise floor. "Comparison alone" is what is left when both evaluations are values. "Bare
loop" reads and parses the evaluation traces, in two processes, and does nothing else.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from bare_loop import ingest, read
from measure import HARNESSES, HERE, TRACEMARK, corpus

from tracemark.acts.corpus import Corpus
from tracemark.acts.gating import gate_harness, judge_harness, judging
from tracemark.gates.cell import Cell
from tracemark.gates.compare import compare

INCUMBENT, CANDIDATE, MODEL = "h4", "h5", "bench@1"
_SHARE = 0.3
_PARAMS = """\
evaluation: {{tasks: {{file: evaluation.txt}}, attempts: {attempts}}}
"""


def evaluation(data: Path, tasks: int, attempts: int) -> int:
    """Make an inbox one of two whole evaluations; return its bytes."""
    size = 0
    for harness in HARNESSES:
        path = data / "inbox" / f"{harness}.jsonl"
        lines = []
        if harness in (INCUMBENT, CANDIDATE):
            with path.open("rb") as source:
                for number, line in zip(range(tasks * attempts), source, strict=False):
                    trace = orjson.loads(line)
                    run = trace["extra"]["tracemark"]["run"]
                    name, revision = MODEL.split("@")
                    run |= {"task": f"e-{number % tasks:04d}", "attempt": number // tasks}
                    run["model"] = {"name": name, "revision": revision}
                    trace["final_metrics"] = {"total_cost_usd": 0.01}
                    lines.append(orjson.dumps(trace) + b"\n")
            assert len(lines) == tasks * attempts, f"too few traces of {harness}"
        path.write_bytes(b"".join(lines))
        size += path.stat().st_size
    return size


def strangers(data: Path, number: int) -> None:
    """Add traces of other tasks to an inbox, cut short: a gate does not read them."""
    path = data / "inbox" / f"{INCUMBENT}.jsonl"
    with path.open("rb") as source:
        trace = orjson.loads(source.readline())
    steps, mark = trace["steps"][:2], trace["extra"]["tracemark"]
    with path.open("ab") as sink:
        for one in range(number):
            run = mark["run"] | {"task": f"o-{one:05d}", "attempt": 0}
            told = {**trace, "session_id": f"other-{one}", "steps": steps, "extra": {"tracemark": {**mark, "run": run}}}
            sink.write(orjson.dumps(told) + b"\n")


def timed(name: str, ask: Callable[[], object], repeats: int) -> str:
    """Return a line with the seconds that a question takes; the first answer is not counted."""
    ask()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    return f"{name:20} {statistics.median(times):8.3f} ({min(times):.3f}-{max(times):.3f})"


def main() -> None:
    """Make the traces, ingest them, judge and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=102)
    parser.add_argument("--attempts", type=int, default=20)
    parser.add_argument("--others", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        data, home = Path(place) / "data", Path(place) / "corpus"
        # a little more than the share, as it is drawn
        number = math.ceil(options.tasks * options.attempts / _SHARE * 1.2) + 50
        made = [sys.executable, str(HERE / "make_traces.py"), str(number), str(data)]
        subprocess.run(made, check=True, capture_output=True)
        size = evaluation(data, options.tasks, options.attempts)
        ingest(data / "inbox", Path(place) / "bare")
        strangers(data, options.others)
        corpus(home, data, "inbox")
        (home / "params.yaml").write_text(_PARAMS.format(attempts=options.attempts))
        (home / "evaluation.txt").write_text("".join(f"e-{task:04d}\n" for task in range(options.tasks)))
        ours = [*TRACEMARK, "--root", str(home)]
        for command in (
            ["ingest", str(home / "inbox" / INCUMBENT), str(home / "inbox" / CANDIDATE)],
            ["harness", "accept", INCUMBENT, "--reason", "benchmark"],
            ["model", "accept", MODEL, "--reason", "benchmark"],
            ["gate", "freeze", "--reason", "benchmark"],
        ):
            subprocess.run([*ours, *command], check=True, capture_output=True)
        verdict = gate_harness(home, CANDIDATE)
        asked = Corpus(home)
        with judging(asked, None) as store:
            comparison = judge_harness(asked, store, CANDIDATE, None).comparison
        print(
            f"{options.tasks} tasks, {options.attempts} attempts, two harnesses: {size / 1e6:.0f} MB, "
            f"{options.others} other traces; verdict {verdict.verdict}; Python {platform.python_version()}"
        )
        print(f"{'':20} {'seconds':>8} (min-max)")
        print(timed("bare loop", lambda: read(Path(place) / "bare", ""), options.repeats))
        print(timed("from the store", lambda: gate_harness(home, CANDIDATE), options.repeats))
        sides, terms = (comparison.incumbent, comparison.candidate), comparison.terms

        def alone() -> object:
            # a cell keeps what it counted once
            cells = (Cell.of(side.pair, side.attempts, side.components) for side in sides)
            return compare(next(cells), next(cells), terms)

        print(timed("comparison alone", alone, options.repeats))


if __name__ == "__main__":
    main()
