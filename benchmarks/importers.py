"""How fast each importer reads, beside `orjson.loads` of the same bytes in the same process.

    python benchmarks/importers.py PATH… [--seconds 2] [--only FORMAT]

PATH are files and folders of traces of any formats. Of every format that is found in them, the records are read once
for their bytes; then parsing these bytes alone and the importer over the same files are timed in turn, each again and
again for `--seconds`, and the fastest round of each counts. An importer parses, makes a trajectory of it, checks it
against the schema, walks it, and writes its canonical bytes; the ratio says how much of the speed of parsing is left.

Files are read from the page cache; planning (recognising files) is not counted, opening them is. The garbage collector
is off on both sides, as it is in the processes of `tracemark ingest`.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from tracemark.importers import source
from tracemark.importers.base import Imported, Record
from tracemark.importers.compression import expanded
from tracemark.importers.records import Piece, records


class Format:
    """The pieces of one format, and the bytes in them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[Piece] = []
        self.values: list[bytes] = []
        self.size = 0

    def add(self, piece: Piece) -> None:
        """Add a piece, and its bytes as values that parse by themselves: a file, a line, the member of an archive."""
        self.pieces.append(piece)
        if piece.unit not in ("line", "lines", "document"):
            with expanded(piece.path, piece.packed, piece.member, piece.context.limits.max_expanded) as stream:
                self.values.append(stream.read())
            self.size += len(self.values[-1])
            return
        for record in records(piece):
            if isinstance(record, Record):
                self.size += len(record.raw)
                self.values += _values(record.raw)

    def parse(self) -> int:
        """Parse every value and nothing else."""
        for value in self.values:
            orjson.loads(value)
        return len(self.values)

    def read(self) -> int:
        """Return how many traces the importer makes of the pieces."""
        job = source.Job(tuple(self.pieces), self.size)
        return sum(isinstance(item, Imported) for item in source.read(job))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each side is repeated")
    parser.add_argument("--only", help="the one format to measure")
    options = parser.parse_args()
    gc.disable()
    formats: dict[str, Format] = {}
    for job in source.plan(options.paths, format=None).jobs:
        for piece in job.pieces:
            if options.only in (None, piece.format):
                formats.setdefault(piece.format, Format(piece.format)).add(piece)
    print(f"{'format':16} {'files':>6} {'traces':>7} {'MB':>7} {'orjson MB/s':>12} {'MB/s':>7} {'ratio':>6}")
    for found in sorted(formats.values(), key=lambda one: one.name):
        parsing, reading = _fastest(found.parse, found.read, options.seconds)
        size = found.size / 1e6
        print(
            f"{found.name:16} {len(found.pieces):6} {found.read():7} {size:7.2f} {size / parsing:12.0f}"
            f" {size / reading:7.1f} {parsing / reading:6.2f}"
        )


def _fastest(one: Callable[[], int], other: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Return the shortest time of each, in seconds; they take turns, so that both meet the same machine."""
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or best[0] == float("inf"):
        for index, run in enumerate((one, other)):
            begin = time.perf_counter()
            run()
            best[index] = min(best[index], time.perf_counter() - begin)
    return best[0], best[1]


def _values(raw: bytes) -> list[bytes]:
    """Return a record as values that orjson parses: itself, or its lines; what it does not parse is left out."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return [line for line in raw.split(b"\n") if _parses(line)]
    return [raw]


def _parses(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


if __name__ == "__main__":
    main()
