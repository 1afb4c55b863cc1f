"""How much memory the clusters of one log take, as the failures and their tasks become more."""

from __future__ import annotations

import argparse
import sys
import tracemalloc

from tracemark import digest
from tracemark.failures.cluster import LONGEST_TASK, Clusters, Incident

NUMBERS = (50_000, 100_000, 200_000, 400_000)


def held(failures: int, lines: int, name: str) -> tuple[int, int, float]:
    """Return how many clusters and tasks are remembered of failures of as many tasks, and the largest MB held."""
    tracemalloc.start()
    found = Clusters()
    for number in range(failures):
        line = f"ModuleNotFoundError: No module named <q>, seen in place {number % lines} of all"
        found.add(Incident(digest.of(number), "tm1:a", "bash", line, f"{name}{number}", None))
    largest = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return len(found), sum(len(cluster.tasks) for cluster in found), largest


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000, help="different error lines")
    lines = parser.parse_args().lines
    print(f"{lines} error lines; Python {sys.version.split()[0]}")
    print(f"{'':22}{'failures':>10}{'clusters':>10}{'tasks':>10}{'MB':>8}")
    for what, name in (("short names", "domain/some-task-"), ("the longest names", "d/" + "x" * (LONGEST_TASK - 9))):
        for failures in NUMBERS:
            clusters, tasks, size = held(failures, lines, name)
            print(f"{what:22}{failures:>10}{clusters:>10}{tasks:>10}{size:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
