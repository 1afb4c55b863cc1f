"""A recording goes on in the process that opened it, and in no fork of that."""

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark.durable import is_locked
from tracemark.errors import UsageError
from tracemark.importers.base import Context, Imported, Record
from tracemark.importers.journal import IMPORTER
from tracemark.runner.record import Recorder

CALL = {"tool_call_id": "c", "function_name": "get", "arguments": {"key": "a"}}
NAMES = ["prompt", "render", "tools", "tool", "get", "handler", "show", "runtime", "parse", "request", "system", "user"]
NAMES += ["agent", "observation", "outcome", "with"]
FORKING = multiprocessing.get_context("fork")


@pytest.fixture
def rec(make_harness: Any, tmp_path: Path) -> Recorder:
    return tracemark.record(make_harness(), tmp_path / "inbox", {"task": "t"})


def forked(work: Callable[[], object]) -> str:
    """Do some work in a fork; return its error, or `done`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "done"
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent tells
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def begin(rec: Recorder) -> None:
    rec.tools()
    rec.system(rec.prompt("system").render(today="Monday"))
    rec.user(rec.prompt("task").render(request="Read a.", urgent=False))


def work(rec: Recorder, who: str = "parent") -> None:
    rec.agent(rec.runtime("parser")(who), [CALL])
    rec.observation([{"source_call_id": "c", "content": rec.handler("show")(rec.tool("get")("desk", key="a"))}])


def imported(path: Path) -> Imported:
    context = Context(name=path.name, folder=str(path.parent))
    (result,) = IMPORTER.read(Record(path.read_bytes().strip(), path.name, path.name, context))
    assert isinstance(result, Imported), result
    return result


@pytest.mark.parametrize("name", NAMES)
def test_a_fork_may_not_go_on_with_a_recording_and_writes_nothing(rec: Recorder, name: str) -> None:
    with rec:
        begin(rec)
        prompt, get, show, parse = rec.prompt("system"), rec.tool("get"), rec.handler("show"), rec.runtime("parser")
        rec.agent("", [CALL])
        calls: dict[str, Callable[[], object]] = {
            "prompt": lambda: rec.prompt("system"),
            "render": lambda: prompt.render(today="Monday"),
            "tools": rec.tools,
            "tool": lambda: rec.tool("get"),
            "get": lambda: get("desk", key="a"),
            "handler": lambda: rec.handler("show"),
            "show": lambda: show({"row": "alp"}),
            "runtime": lambda: rec.runtime("parser"),
            "parse": lambda: parse("Done."),
            "request": lambda: rec.request([]),
            "system": lambda: rec.system("Other."),
            "user": lambda: rec.user("More."),
            "agent": lambda: rec.agent("Done."),
            "observation": lambda: rec.observation([{"content": "> alp"}]),
            "outcome": lambda: rec.outcome("success"),
            "with": rec.__enter__,
        }
        before = rec.path.read_bytes()
        assert forked(calls[name]).startswith("UsageError: the recording was opened in another process")
        assert rec.path.read_bytes() == before
        assert [path.name for path in rec.path.parent.glob("*.jsonl")] == [rec.path.name]


def test_a_refusal_names_the_call_and_what_to_do(rec: Recorder) -> None:
    def refused() -> None:
        with pytest.raises(UsageError) as caught:
            rec.agent("Done.")
        assert caught.value.where == "t-0.journal.jsonl: agent()"
        assert "a recording of its own" in str(caught.value.hint)

    with rec:
        assert forked(refused) == "done"


def test_parent_and_fork_that_both_go_on_leave_the_run_of_the_parent(rec: Recorder) -> None:
    with rec:
        begin(rec)
        assert forked(lambda: work(rec, "child")).startswith("UsageError")
        work(rec)
        rec.agent("Done.")
        rec.outcome("success")
    trace = imported(rec.path)
    assert [step["message"] for step in trace.trajectory["steps"] if step["source"] == "agent"] == ["parent", "Done."]
    assert trace.outcome["status"] == "success"
    components = trace.stamp["declared"]["components"].values()
    assert {one["evidence"] for one in components} == {"recorded"}


@pytest.mark.parametrize("error", [ValueError("gone wrong"), SystemExit(0), KeyboardInterrupt()])
def test_a_fork_that_leaves_the_block_by_an_exception_leaves_the_journal_alone(
    rec: Recorder, error: BaseException
) -> None:
    with rec:
        begin(rec)
        before = rec.path.read_bytes()
        assert forked(lambda: rec.__exit__(type(error), error, None)) == "done", "the exception goes on"
        assert rec.path.read_bytes() == before
        assert is_locked(rec.path)
        work(rec)
        rec.outcome("success")
    assert imported(rec.path).outcome["status"] == "success"


def test_a_fork_that_comes_to_the_end_of_the_block_is_refused(rec: Recorder) -> None:
    with rec:
        begin(rec)
        before = rec.path.read_bytes()
        assert forked(lambda: rec.__exit__(None, None, None)).startswith("UsageError")
        assert rec.path.read_bytes() == before
    assert [json.loads(line)["event"] for line in rec.path.read_text().splitlines()].count("end") == 1


def test_a_fork_that_lives_longer_than_the_run_holds_no_lock_on_its_journal(rec: Recorder) -> None:
    reading, writing = os.pipe()
    with rec:
        begin(rec)
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        assert is_locked(rec.path), "the parent's"
    assert not is_locked(rec.path)
    os.close(writing)
    os.waitpid(child, 0)
    os.close(reading)


def whole_run(rec: Recorder) -> str:
    with rec:
        begin(rec)
        work(rec)
        rec.outcome("success")
    return str(rec.path)


def of_its_own(place: tuple[Path, Path, int]) -> str:
    harness, inbox, attempt = place
    return whole_run(tracemark.record(harness, inbox, {"task": "t", "attempt": attempt}))


def test_workers_that_open_their_own_recordings_record_as_ever(make_harness: Any, tmp_path: Path) -> None:
    harness, inbox = make_harness(), tmp_path / "inbox"
    with tracemark.record(harness, inbox, {"task": "above"}) as above, FORKING.Pool(2) as pool:
        paths = pool.map(of_its_own, [(harness, inbox, attempt) for attempt in range(4)])
        above.user("Help")
    assert sorted(Path(path).name for path in paths) == [f"t-{attempt}.journal.jsonl" for attempt in range(4)]
    for path in map(Path, paths):
        trace = imported(path)
        assert trace.outcome["status"] == "success"
        assert {one["evidence"] for one in trace.stamp["declared"]["components"].values()} == {"recorded"}
    assert len(imported(above.path).trajectory["steps"]) == 1


def test_a_recording_that_is_made_here_may_be_opened_in_a_worker(rec: Recorder) -> None:
    worker = FORKING.Process(target=whole_run, args=(rec,))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    assert imported(rec.path).outcome["status"] == "success"


def test_a_worker_that_is_given_an_open_recording_fails_and_the_run_goes_on(rec: Recorder) -> None:
    with rec:
        begin(rec)
        worker = FORKING.Process(target=work, args=(rec, "worker"))
        worker.start()
        worker.join()
        assert worker.exitcode == 1
        work(rec)
    assert len(imported(rec.path).trajectory["steps"]) == 3


def test_what_was_handed_out_goes_on_working_behind_the_block(rec: Recorder) -> None:
    with rec:
        get = rec.tool("get")
    assert get("desk", key="a")["row"] == "alp"
    assert forked(lambda: get("desk", key="a")) == "done", "nothing can be recorded any more"
