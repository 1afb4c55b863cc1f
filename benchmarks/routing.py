"""Measure how fast traces are routed and their failures clustered, as whole commands.

    routing.py [--traces 20000] [--repeats 3] [--folder DIR]

The traces are those of `make_traces.py`, with one change: in every third run one result of a tool is an error, in one
of 200 wordings with numbers and paths of its own, so that there is something to cluster. `failures list` routes and
clusters every trace; `failures export` does so for the accepted harness (55 % of them) and writes the log. Beside each,
in turn, `bare_loop.py read` reads and parses the same traces; a ratio is its time over ours. MB are those of the JSON
that was ingested; memory is the largest sum over all processes of a run.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
from measure import HARNESSES, HERE, TRACEMARK, compare, corpus, line, run

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
        bare, read = folder / "bare", [sys.executable, str(HERE / "bare_loop.py"), "read", str(folder / "bare")]
        subprocess.run([*read[:2], "ingest", str(data / "inbox"), str(bare)], check=True, capture_output=True)
        total = sum(sizes.values())
        print(f"{options.traces} traces, {total / 1e6:.0f} MB; Python {platform.python_version()}")
        print(f"{'':<34} {'ratio (min-max)':<19} cpu     MB/s     bare MB/s")
        export = [*ours, "failures", "export", "--out", str(home / "failures")]
        listed = [*ours, "failures", "list"]
        print(line("failures list", total, *compare(read, listed, [], options.repeats)))
        print(line("failures export, h5", sizes[ACCEPTED], *compare([*read, ACCEPTED], export, [], options.repeats)))
        for name, command in {"failures list": listed, "failures export, h5": export}.items():
            print(f"{f'memory of {name}':<34} {run(command, watch=True).peak / 1e6:5.0f} MB")


if __name__ == "__main__":
    main()
