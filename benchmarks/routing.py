"""Measure how fast traces are routed and their failures clustered, as whole commands.

    routing.py [--traces 20000] [--repeats 3] [--folder DIR]

The traces are those of `make_traces.py`, with one change: in every third run one result of a tool is an error, in one
of 200 wordings with numbers and paths of its own, so that there is something to cluster. `failures list` routes and
clusters every trace; `failures export` does so for the accepted harness (55 % of them) and writes the log. MB are those
of the JSON that was ingested; memory is the largest sum over all processes of a run.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
from measure import HARNESSES, HERE, TRACEMARK, corpus, run

ACCEPTED = "h5"
WORDINGS = 200
_WORDS = ("order", "file", "table", "user", "branch", "port", "module", "lock", "key", "row")


def fail(data: Path) -> dict[str, int]:
    """Put failures into the runs of an inbox; return the bytes of each of its files."""
    sizes = {}
    for harness in HARNESSES:
        path = data / "inbox" / f"{harness}.jsonl"
        lines = [orjson.dumps(_failing(orjson.loads(line), number)) for number, line in enumerate(path.open("rb"))]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        sizes[harness] = path.stat().st_size
    return sizes


def _failing(trace: dict[str, object], number: int) -> object:
    steps = trace["steps"]
    assert isinstance(steps, list)
    results = [step["observation"]["results"][0] for step in steps if step.get("observation")]
    if number % 3 == 0 and results:
        wording = number // 3 % WORDINGS
        one, two = _WORDS[wording % 10], _WORDS[wording // 10 % 10]
        kind = "missing" if wording < WORDINGS // 2 else "locked"
        results[number % len(results)]["content"] = f"Error: {one} {number} of the {two} /srv/{two}/{number} is {kind}"
    return trace


def measured(name: str, command: list[str], size: int, repeats: int) -> str:
    """Return a line with what a command took."""
    runs = [run(command) for _ in range(repeats)]
    walls = [one.wall for one in runs]
    median = statistics.median(walls)
    speeds = f"{size / median / 1e6:.0f} ({size / max(walls) / 1e6:.0f}-{size / min(walls) / 1e6:.0f})"
    cpu = statistics.median(one.cpu for one in runs)
    peak = run(command, watch=True).peak
    return f"{name:22} {size / 1e6:8.0f} {median:8.2f} {cpu:8.2f}   {speeds:16} {peak / 1e6:8.0f}"


def main() -> None:
    """Make the traces, ingest them, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        data, home = folder / "data", folder / "corpus"
        made = [sys.executable, str(HERE / "make_traces.py"), str(options.traces), str(data)]
        subprocess.run(made, check=True, capture_output=True)
        sizes = fail(data)
        ours = [*TRACEMARK, "--root", str(corpus(home, data, "inbox"))]
        subprocess.run([*ours, "ingest", str(home / "inbox")], check=True, capture_output=True)
        accept = [*ours, "harness", "accept", ACCEPTED, "--reason", "benchmark"]
        subprocess.run(accept, check=True, capture_output=True)
        total = sum(sizes.values())
        print(f"{options.traces} traces, {total / 1e6:.0f} MB; Python {platform.python_version()}")
        print(f"{'':22} {'MB':>8} {'seconds':>8} {'cpu':>8}   {'MB/s (min-max)':16} {'memory MB':>9}")
        out = str(home / "failures")
        print(measured("failures list", [*ours, "failures", "list"], total, options.repeats))
        export = [*ours, "failures", "export", "--out", out]
        print(measured("failures export, h5", export, sizes[ACCEPTED], options.repeats))


if __name__ == "__main__":
    main()
