"""Jobs run on all cores; results come in the order of the jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tracemark import engine


def square(number: int) -> int:
    if number == 13:
        raise ValueError("thirteen")
    time.sleep(0.002 * (number % 3))
    return number * number


def process(_: int) -> int:
    time.sleep(0.02)
    return os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_come_in_the_order_of_the_jobs(processes):
    assert list(engine.run(square, iter(range(10)), processes=processes)) == [n * n for n in range(10)]


def test_several_processes_take_part():
    assert len(set(engine.run(process, range(8), processes=2))) == 2


KILLED = """
import os, signal
from tracemark import engine

def process(_):
    return os.getpid()

for worker in engine.run(process, range(8), processes=2):
    print(worker, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_the_process_that_they_work_for_also_when_it_is_killed():
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as killed:
        # the workers have the same standard output, which ends when the last of them has ended
        (worker,) = killed.communicate(timeout=10)[0].split()
    assert killed.returncode == -signal.SIGKILL
    assert int(worker) != killed.pid


def test_a_single_job_is_done_in_the_callers_process():
    assert list(engine.run(process, [1], processes=2)) == [os.getpid()]


def test_no_job_gives_no_result():
    assert list(engine.run(square, [], processes=2)) == []


def test_an_error_arrives_at_the_place_of_its_job():
    results = engine.run(square, range(12, 20), processes=2)
    assert next(results) == 144
    with pytest.raises(ValueError, match="thirteen"):
        next(results)


def test_jobs_are_taken_a_few_ahead_only():
    taken = []

    def jobs():
        for number in range(100):
            taken.append(number)
            yield number % 10

    results = engine.run(square, jobs(), processes=2)
    next(results)
    assert len(taken) < 12
    results.close()


def test_a_caller_with_threads_gets_the_same_results():
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        assert list(engine.run(abs, range(-4, 0), processes=2)) == [4, 3, 2, 1]
    finally:
        release.set()
        thread.join()


def test_the_number_of_workers_can_be_set(monkeypatch):
    monkeypatch.setenv("TRACEMARK_WORKERS", "7")
    assert engine.workers() == 7
    monkeypatch.setenv("TRACEMARK_WORKERS", "many")
    assert engine.workers() >= 1
