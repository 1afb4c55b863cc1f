"""Fuzz the importers: damaged copies of the samples are read until the time is over, and laws of reading are checked.

    make fuzz
    python -m tests.fuzz --minutes 10 --format tau2 --seed 7 --keep

An input is a sample, or an input that was kept before, with one to four changes (`changes`). What it was answered with,
a note in `source.repairs` or a refusal whose words nobody saw before, makes it worth changing further; with `--keep` it
is cut down to what the answer needs and becomes part of `corpus/`, which `test_corpus` reads again.

Ends with 1 when a law is broken (`laws`); the input is written whole to the folder that is named.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from tracemark.importers import detect

from .loop import fuzz


def main() -> None:
    """Fuzz, say what was found, and end with 1 when a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the importers.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--format", action="append", choices=detect.IMPORTERS.names(), help="one format (repeatable)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="what the numbers are drawn from")
    parser.add_argument("--keep", action="store_true", help="add inputs with new answers to the corpus")
    parser.add_argument("--out", type=Path, default=Path(".tracemark/fuzz"), help="where inputs go that break a law")
    options = parser.parse_args()
    say(f"numbers drawn from {options.seed}")
    names = options.format or detect.IMPORTERS.names()
    made = fuzz(names, options.minutes, random.Random(options.seed), keep=options.keep)
    for one in made:
        say(f"{one.name:16} {one.inputs:8} inputs, {len(one.broken)} laws broken, {one.kept} kept")
        for number, (fault, seed, data) in enumerate(one.broken):
            path = options.out / f"{one.name}-{options.seed}-{number}{seed.path.suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            say(f"    {fault}\n    {path} (from {seed.name})")
    total = sum(len(one.broken) for one in made)
    say(f"{sum(one.inputs for one in made)} inputs, {total} laws broken")
    sys.exit(1 if total else 0)


def say(words: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
