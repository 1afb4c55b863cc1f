"""Measure tracemark beside the bare loop, in the same run, and print ratios.

    measure.py [--traces 20000] [--repeats 3] [--folder DIR]

Whole processes, one after the other: bare, ours, bare, ours, …; a ratio is the bare loop's time over ours (the median),
above 1 where ours is faster. Memory is the largest sum over all processes of a run (proportional set size, sampled).
The machine should do nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

HERE = Path(__file__).parent
TRACEMARK = [str(Path(sys.executable).parent / "tracemark")]
HARNESSES = [f"h{number}" for number in range(6)]
NO_CAPS = "export:\n  sft: {per_task: null, total: null, minimum: 0, tool_calls: null}\n"


@dataclass
class Run:
    """One measured process."""

    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of processor time, children included."""
    peak: int
    """Largest sum of memory over its processes, in bytes."""


def family(root: int) -> list[int]:
    """Return the process `root` and all below it."""
    found, todo = [], [root]
    while todo:
        process = todo.pop()
        found.append(process)
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def memory(root: int) -> int:
    """Return the memory of a process and all below it, shared pages counted once."""
    total = 0
    for process in family(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def run(command: list[str], *, watch: bool = False) -> Run:
    """Run a command to its end and measure it.

    Raises:
        SystemExit: when it fails.
    """
    before = os.times()
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        peak = 0
        stop = threading.Event()

        def sample() -> None:
            nonlocal peak
            while not stop.wait(0.05):
                peak = max(peak, memory(child.pid))

        thread = threading.Thread(target=sample)
        if watch:
            thread.start()
        _, words = child.communicate()
        wall = time.perf_counter() - began
        stop.set()
        if watch:
            thread.join()
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}: {words.decode()[-2000:]}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall, cpu, peak)


def corpus(folder: Path, data: Path, inbox: str) -> Path:
    """Make a corpus whose batches are hard links to the generated files, each batch naming its harness."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*TRACEMARK, "init", str(folder)], check=True, capture_output=True)
    shutil.copytree(data / "harness_versions", folder / "harness_versions", dirs_exist_ok=True)
    for harness in HARNESSES:
        batch = folder / "inbox" / harness
        if inbox == "files":
            shutil.copytree(data / inbox / harness, batch, copy_function=os.link)
        else:
            batch.mkdir(parents=True)
            (batch / f"{harness}.jsonl").hardlink_to(data / inbox / f"{harness}.jsonl")
        (batch / "batch.yaml").write_text(f"harness: {harness}\n")
    return folder


def rewrite(data: Path) -> None:
    """Write the inbox again as most producers do, everything but ASCII as escapes: spaced lines, and indented files."""
    (data / "spaced").mkdir(exist_ok=True)
    for harness in HARNESSES:
        target, files = data / "spaced" / f"{harness}.jsonl", data / "files" / harness
        files.mkdir(parents=True)
        with (data / "inbox" / f"{harness}.jsonl").open("rb") as source, target.open("w") as sink:
            for number, line in enumerate(source):
                trace = orjson.loads(line)
                sink.write(json.dumps(trace) + "\n")
                (files / f"{number:06d}.json").write_text(json.dumps(trace, indent=2))


def compare(bare: list[str], ours: list[str], prepare: list[object], repeats: int) -> tuple[list[Run], list[Run]]:
    """Run both commands in turn; `prepare` holds functions to call before each pair."""
    theirs: list[Run] = []
    mine: list[Run] = []
    for _ in range(repeats):
        for function in prepare:
            function()  # type: ignore[operator]
        theirs.append(run(bare))
        mine.append(run(ours))
    return theirs, mine


def line(name: str, size: int, bare: list[Run], ours: list[Run]) -> str:
    """Return one line of the report."""
    ratios = sorted(b.wall / o.wall for b, o in zip(bare, ours, strict=True))
    cpu = statistics.median(b.cpu / o.cpu for b, o in zip(bare, ours, strict=True))
    speed = size / 1e6 / statistics.median(o.wall for o in ours)
    bare_speed = size / 1e6 / statistics.median(b.wall for b in bare)
    return (
        f"{name:<34} {statistics.median(ratios):5.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})   {cpu:5.2f}"
        f"   {speed:6.0f}   {bare_speed:6.0f}"
    )


def ingests(folder: Path, data: Path, inbox: str, repeats: int) -> tuple[list[Run], list[Run]]:
    """Measure ingest of one inbox against the bare loop on the same bytes."""
    out = folder / "bare"
    bare = [sys.executable, str(HERE / "bare_loop.py"), "ingest", str(data / inbox), str(out)]
    home = folder / "corpus"
    ours = [*TRACEMARK, "--root", str(home), "ingest", str(home / "inbox")]
    clean = [lambda: shutil.rmtree(out, ignore_errors=True), lambda: corpus(home, data, inbox)]
    return compare(bare, ours, list(clean), repeats)


def exports(folder: Path, harness: str, repeats: int) -> tuple[list[Run], list[Run]]:
    """Measure the export of one harness, caps off, against the bare loop's."""
    home, out = folder / "corpus", folder / "export"
    (home / "params.yaml").write_text("accepted: {harness: null, model: null}\n" + NO_CAPS)
    accept = [*TRACEMARK, "--root", str(home), "harness", "accept", harness, "--reason", "benchmark"]
    subprocess.run(accept, check=True, capture_output=True)
    bare = [sys.executable, str(HERE / "bare_loop.py"), "export", str(folder / "bare"), harness]
    ours = [*TRACEMARK, "--root", str(home), "export", "sft", "--out", str(out)]
    return compare(bare, ours, [lambda: shutil.rmtree(out, ignore_errors=True)], repeats)


def single(folder: Path, data: Path) -> list[str]:
    """Return lines about single commands on the corpus that was ingested last."""
    home = folder / "corpus"
    listed = subprocess.run(
        [*TRACEMARK, "--root", str(home), "traces", "list", "--harness", "h5", "--limit", "1", "--output", "jsonl"],
        check=True,
        capture_output=True,
    )
    trace = orjson.loads(listed.stdout.splitlines()[0])["trace_id"]
    one = folder / "one.jsonl"
    with (data / "inbox" / "h5.jsonl").open("rb") as source:
        one.write_bytes(source.readline())
    small = folder / "small"
    subprocess.run([*TRACEMARK, "init", str(small)], check=True, capture_output=True)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "tracemark --help": [*TRACEMARK, "--help"],
        "ingest one file of 30 KB": [*TRACEMARK, "--root", str(small), "ingest", str(one)],
        "audit TRACE": [*TRACEMARK, "--root", str(home), "audit", trace],
    }
    lines = []
    for name, command in commands.items():
        times = [run(command).wall for _ in range(5)]
        lines.append(f"{name:<34} {statistics.median(times) * 1e3:5.0f} ms")
    inside = subprocess.run(
        [sys.executable, str(HERE / "inside.py"), str(home)], check=True, capture_output=True, text=True
    )
    return lines + inside.stdout.splitlines()


def main() -> None:
    """Measure everything and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tracemark-benchmark")
    options = parser.parse_args()
    folder: Path = options.folder
    data = folder / f"data-{options.traces}"
    if not data.exists():
        subprocess.run([sys.executable, str(HERE / "make_traces.py"), str(options.traces), str(data)], check=True)
        rewrite(data)
    size, spaced, files = (
        sum(file.stat().st_size for file in (data / name).rglob("*.json*")) for name in ("inbox", "spaced", "files")
    )
    print(f"{options.traces} traces, {size / 1e6:.0f} MB; {os.cpu_count()} cores; Python {platform.python_version()}")
    print(f"{'':<34} {'ratio (min-max)':<19} cpu     MB/s     bare MB/s")
    print(line("ingest, indented, a file a trace", files, *ingests(folder, data, "files", options.repeats)))
    print(line("ingest, spaces and escapes", spaced, *ingests(folder, data, "spaced", options.repeats)))
    print(line("ingest, compact", size, *ingests(folder, data, "inbox", options.repeats)))
    shares = {"h4": 0.30, "h5": 0.55}
    for harness, share in shares.items():
        print(line(f"export sft, {harness}", int(size * share), *exports(folder, harness, options.repeats)))
    home = folder / "corpus"
    peak = run([*TRACEMARK, "--root", str(home), "export", "sft", "--out", str(folder / "export")], watch=True).peak
    print(f"{'export sft, h5: memory':<34} {peak / 1e6:5.0f} MB")
    corpus(home, data, "inbox")
    peak = run([*TRACEMARK, "--root", str(home), "ingest", str(home / "inbox")], watch=True).peak
    print(f"{'ingest: memory':<34} {peak / 1e6:5.0f} MB")
    for words in single(folder, data):
        print(words)


if __name__ == "__main__":
    main()
