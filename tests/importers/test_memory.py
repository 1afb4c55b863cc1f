"""Memory is bounded by the largest trace: neither a file of more runs nor a folder of more files takes more of it.

Every importer, read as `ingest` reads, from plain files and from packed ones; and a run of a million steps takes
memory in proportion to its bytes. Files that are one trace together (a folder of events) are one run here.
"""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard

from tracemark.importers import head, source
from tracemark.importers.base import Imported

from .hostile_formats import FORMATS, Files

FEW, MANY = 25, 250
TEXT = 60_000
HEAD = 100_000
ROOM = 3_000_000
"""Bytes that buffers of a fixed size take, and a plan of many files; the files of many runs have fifteen million."""
MILLION = 1_000_000
LONG = {"atif": MILLION, "openai-chat": MILLION}
"""How many steps a long run has; a twentieth of a million in other formats, most of which read messages as a chat's."""


def files(name: str, count: int) -> Files:
    """Return the files of some runs, each of the same size, which no packing makes much smaller."""
    form = FORMATS[name]
    texts = (random.Random(number).randbytes(TEXT // 2).hex() for number in range(count))
    return form.files([form.run(number, [form.said(f'"{text}"')]) for number, text in enumerate(texts)])


def write(folder: Path, content: Files, packing: str) -> None:
    folder.mkdir()
    if packing == "zip":
        with zipfile.ZipFile(folder / "runs.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        return
    for name, data in content.items():
        path = folder / (f"{name}.zst" if packing == "zstd" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress(data, 1) if packing == "zstd" else data)


def peak(folder: Path, runs: int) -> int:
    """Read a folder; return the most bytes that were held at a time, and make sure that all runs were read."""
    gc.collect()
    tracemalloc.start()
    try:
        plan = source.plan([folder])
        found = sum(isinstance(item, Imported) for job in plan.jobs for item in source.read(job))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert (found, len(plan.refused)) == (runs, 0)


PACKED = [(name, packing) for name in ("openai-chat", "tau2", "mini-swe-agent") for packing in ("zstd", "zip")]
"""Lines, an array and documents: what is packed is expanded in front of every importer."""


@pytest.mark.parametrize(("name", "packing"), [*((name, "plain") for name in FORMATS), *PACKED])
def test_ten_times_the_runs_take_no_more_memory(
    name: str, packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a file is recognised by its first 8 MiB at most: the same for all, and more than these files have
    monkeypatch.setattr(head, "_PARSED", HEAD)
    monkeypatch.setattr(head, "_SCANNED", HEAD)
    peaks = {}
    # the first reading is there for what is imported and remembered once
    for runs in (1, FEW, MANY):
        write(tmp_path / str(runs), files(name, runs), packing)
        peaks[runs] = peak(tmp_path / str(runs), runs)
    assert peaks[MANY] < peaks[FEW] + ROOM, peaks


CHILD = """
import sys
from pathlib import Path
from tracemark.importers import head, source
from tracemark.importers.base import Limits

def held():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

folder = Path(sys.argv[1])
before = held()
for job in source.plan([folder], limits=Limits(max_record=2**30)).jobs:
    for item in source.read(job):
        print(len(item.trajectory["steps"]), held() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel tells how much a process held")
@pytest.mark.parametrize("name", FORMATS)
def test_a_long_run_is_one_trace_and_takes_memory_in_proportion(name: str, tmp_path: Path) -> None:
    form, count = FORMATS[name], LONG.get(name, MILLION // 20)
    content = form.files([form.run(0, [form.said('"Done."')] * count)])
    size = sum(map(len, content.values()))
    write(tmp_path / "runs", content, "plain")
    del content
    child = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path / "runs"], capture_output=True, text=True, check=True, timeout=300
    )
    steps, held = map(int, child.stdout.split())
    assert steps == count + 1
    # a step of fifty bytes is a dozen objects of Python
    assert held < 40 * size + 20_000_000
