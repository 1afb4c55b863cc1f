"""Measure single questions inside one process: one trace by id, and the audit of one trace.

inside.py CORPUS
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tracemark.acts.audit_trace import audit_trace
from tracemark.acts.corpus import Corpus, open_store
from tracemark.store.selection import Selection

QUESTIONS = 200


def measure(ask: Callable[[str], object], ids: list[str]) -> str:
    """Return the median and the 99th percentile of the time that `ask` takes, in milliseconds."""
    times = []
    for trace in ids:
        began = time.perf_counter()
        ask(trace)
        times.append((time.perf_counter() - began) * 1e3)
    times.sort()
    return f"{statistics.median(times):5.2f} ms (99 %: {times[int(len(times) * 0.99)]:.2f})"


def main() -> None:
    """Ask and print."""
    corpus = Corpus(Path(sys.argv[1]))
    with open_store(corpus.root) as store:
        ids = [state.trace_id for state in store.select(Selection())]
        chosen = random.Random(7).sample(ids, min(QUESTIONS, len(ids)))
        audit_trace(corpus, store, chosen[0])
        print(f"{f'one trace by id, of {len(ids)}':<34} {measure(store.get, chosen)}")
        words = measure(lambda trace: audit_trace(corpus, store, trace), chosen)
        print(f"{'audit of one trace, in process':<34} {words}")


if __name__ == "__main__":
    main()
