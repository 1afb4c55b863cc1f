"""Map a pure function over independent jobs, on all cores, in order, in bounded memory.

A heavy verb is a function of one picklable job (a segment, a byte range of a source) that touches nothing shared.
Results come back in the order of the jobs, whatever order they end in, so that a run does not depend on timing. No more
than a few jobs per worker are under way, so memory does not grow with their number.

Workers are forked where the caller has no threads (the quickest way), else started by a fork server. A worker
ends with the process that it works for, however that ends: one that lived on would hold its locks for ever.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Job = TypeVar("Job")
Result = TypeVar("Result")

_AHEAD = 2


def workers() -> int:
    """Return how many workers to use: `TRACEMARK_WORKERS`, else the number of cores this process may run on."""
    wanted = os.environ.get("TRACEMARK_WORKERS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(function: Callable[[Job], Result], jobs: Iterable[Job], *, processes: int | None = None) -> Iterator[Result]:
    """Yield `function(job)` for each job, in the order of the jobs.

    Args:
        function: a picklable function of one picklable job.
        jobs: consumed lazily, a few ahead of the results.
        processes: how many worker processes; None for `workers()`. With one, or for a single job, the caller's own
            process does the work.

    Raises:
        Whatever `function` raises, at the place of its job.
    """
    count = processes if processes is not None else workers()
    source = iter(jobs)
    first = list(islice(source, 2))
    if count <= 1 or len(first) < 2:
        for job in first:
            yield function(job)
        for job in source:
            yield function(job)
        return
    # a pool is slow to import, and most commands have one job
    import multiprocessing  # noqa: PLC0415 - as above
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - as above

    method = "fork" if threading.active_count() == 1 else "forkserver"
    gc.freeze()
    try:
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(count, mp_context=context, initializer=_begin) as pool:
            yield from _in_order(pool, function, first, source, count * _AHEAD)
    finally:
        gc.unfreeze()


def _begin() -> None:
    gc.disable()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing  # noqa: PLC0415 - loaded long since, in a worker

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_order(
    pool: ProcessPoolExecutor,
    function: Callable[[Job], Result],
    first: list[Job],
    source: Iterator[Job],
    ahead: int,
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque(pool.submit(function, job) for job in first)
    try:
        while waiting:
            while len(waiting) < ahead and (job := next(source, None)) is not None:
                waiting.append(pool.submit(function, job))
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
