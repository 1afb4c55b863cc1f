"""A run recorded under a harness: what its journal says, and when the recorder refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark.clock import FixedClock
from tracemark.durable import is_locked
from tracemark.errors import HarnessChangedError, UnknownNameError, UsageError
from tracemark.harness import snapshot
from tracemark.harness.loading import load
from tracemark.runner.given import _CALL_SHAPES, OUTCOME_FACTS, RUN_FACTS
from tracemark.runner.record import Recorder

RUN = {"task": "t-1", "attempt": 0, "seed": 7, "model": {"name": "scripted"}}
AGENT = {"name": "desk-agent", "version": "1"}


@pytest.fixture
def start(make_harness: Any, tmp_path: Path) -> Any:
    """Return a function that makes a recorder."""

    def make(harness: Any = None, **members: Any) -> Recorder:
        clock = FixedClock("2026-01-01T00:00:00Z", 1)
        stated = {"run": RUN, "agent": AGENT, "clock": clock, "inbox": tmp_path / "inbox" / "batch", **members}
        return tracemark.record(harness=harness or make_harness(), **stated)

    return make


def play(rec: Recorder) -> None:
    system = rec.prompt("system").render(today="Monday")
    request = rec.prompt("task").render(request="Read a.", urgent=False)
    rec.request([{"role": "system", "content": system}, {"role": "user", "content": request}], rec.tools())
    rec.system(system)
    rec.user(request)
    rec.agent(
        rec.runtime("parser")(" I read. "), [{"tool_call_id": "c1", "function_name": "get", "arguments": {"key": "a"}}]
    )
    raw = rec.tool("get")("desk", key="a")
    rec.observation([{"source_call_id": "c1", "content": rec.handler("show")(raw)}])
    rec.agent("Done.", metrics={"prompt_tokens": 3})
    rec.outcome(status="success", reward=1.0, grader={"name": "exact", "version": "1"}, termination="agent_stop")


def events(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [event for event in found if kind is None or event["event"] == kind]


def evidence(path: Path) -> dict[tuple[str, str], str]:
    return {(event["component"], event["part"]): event["evidence"] for event in events(path, "evidence")}


def test_a_run_is_written_step_by_step_with_time_outcome_and_end(start: Any) -> None:
    with start() as rec:
        play(rec)
    assert rec.path.name == "t-1-0.journal.jsonl"
    steps = [event["step"] for event in events(rec.path, "step")]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent"]
    assert steps[2]["message"] == "I read."
    assert [step["timestamp"] for step in steps] == [f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3, 4)]
    assert events(rec.path, "observation")[0]["results"] == [{"source_call_id": "c1", "content": "> alp"}]
    assert events(rec.path)[-1] == {"event": "end", "time": "2026-01-01T00:00:05Z"}
    assert not is_locked(rec.path)


def test_every_part_that_was_obtained_is_recorded(start: Any) -> None:
    with start() as rec:
        play(rec)
    parts = {(component, part) for component, each in rec.harness.identity.parts.items() for part in each}
    assert evidence(rec.path) == dict.fromkeys(parts, "recorded")
    assert not events(rec.path, "contradiction")


def test_a_part_that_the_run_never_asked_for_is_not_recorded(start: Any) -> None:
    with start() as rec:
        rec.prompt("system")
    assert ("prompt_templates", "system") in evidence(rec.path)
    assert ("prompt_templates", "task") not in evidence(rec.path)
    assert ("runtime", "parser") not in evidence(rec.path)
    assert evidence(rec.path)["runtime", "limits"] == "recorded"


CALL = {"tool_call_id": "c", "function_name": "get", "arguments": {"key": "a"}}


def answered(rec: Recorder, *results: dict[str, Any], runs: int, calls: int = 1, shown: int = 0) -> str:
    """Record calls of the tool `get` and results of them; return the tool's evidence.

    Its code is called `runs` times, and the handler `shown` times.
    """
    rec.tools()
    rec.agent("", [{**CALL, "tool_call_id": f"c{number}"} for number in range(calls)])
    for _ in range(runs):
        rec.tool("get")("desk", key="a")
    for _ in range(shown):
        rec.handler("show")({"row": "alp"})
    rec.observation(results)
    return evidence(rec.path)["tool_bindings", "get"]


@pytest.mark.parametrize("linked", [{"source_call_id": "c0"}, {}, {"source_call_id": None}])
def test_a_tool_whose_code_was_bypassed_is_only_claimed(start: Any, linked: dict[str, Any]) -> None:
    with start() as rec:
        assert answered(rec, {"content": "made up", **linked}, runs=0) == "claimed"
    with start() as rec:
        assert answered(rec, {"content": "alp", **linked}, runs=1) == "recorded"


def test_code_that_was_handed_out_and_not_called_answers_nothing(start: Any) -> None:
    with start() as rec:
        rec.tool("get")
        assert answered(rec, {"content": "made up", "source_call_id": "c0"}, runs=0) == "claimed"


def test_one_call_of_the_code_gives_one_answer(start: Any) -> None:
    with start() as rec:
        assert answered(rec, {"content": "alp"}, runs=1) == "recorded"
        assert answered(rec, {"content": "made up"}, runs=0) == "claimed"
    both = [{"content": "alp", "source_call_id": "c0"}, {"content": "made up", "source_call_id": "c1"}]
    with start() as rec:
        assert answered(rec, *both, runs=1, calls=2) == "claimed"
    with start() as rec:
        assert answered(rec, *both, runs=2, calls=2) == "recorded"


def test_a_result_without_a_call_answers_every_call_that_has_no_answer_yet(start: Any) -> None:
    with start() as rec:
        assert answered(rec, {"content": "one of them"}, runs=1, calls=2) == "claimed"
    with start() as rec:
        assert answered(rec, {"content": "alp"}, {"content": "alp"}, runs=2, calls=2) == "recorded"
    with start() as rec:
        first, rest = {"content": "alp", "source_call_id": "c0"}, {"content": "a note"}
        assert answered(rec, first, rest, runs=1) == "recorded"


def test_a_result_after_a_reply_without_calls_says_nothing_of_a_tool(start: Any) -> None:
    with start() as rec:
        assert answered(rec, {"content": "try again"}, runs=0, calls=0) == "recorded"


def test_a_refused_observation_lowers_nothing(start: Any) -> None:
    with start() as rec, pytest.raises(UsageError):
        answered(rec, {"content": "x", "source_call_id": "c0"}, {"content": "x", "source_call_id": "gone"}, runs=0)
    assert evidence(rec.path)["tool_bindings", "get"] == "recorded"


def handled(rec: Recorder, *results: dict[str, Any], runs: int, calls: int = 1) -> str | None:
    """Record results of calls of the tool `get`, the handler called `runs` times; return the handler's evidence."""
    rec.handler("show")
    answered(rec, *results, runs=calls, calls=calls, shown=runs)
    return evidence(rec.path)["observation_handlers", "show"]


def test_a_handler_is_recorded_as_often_as_it_was_called(start: Any) -> None:
    both = [{"content": "> alp", "source_call_id": "c0"}, {"content": "> alp", "source_call_id": "c1"}]
    with start() as rec:
        rec.handler("show")
        assert evidence(rec.path)["observation_handlers", "show"] == "recorded", "nothing was there to be handled"
        assert handled(rec, *both[:1], runs=1) == "recorded"
        assert handled(rec, *both[:1], runs=0) == "claimed"
    with start() as rec:
        assert handled(rec, *both, runs=1, calls=2) == "claimed"
    with start() as rec:
        assert handled(rec, *both, runs=2, calls=2) == "recorded"
    with start() as rec:
        assert handled(rec, {"content": None, "source_call_id": "c0"}, runs=0) == "recorded", "nothing was shown"
    with start() as rec:
        assert handled(rec, {"content": "try again"}, runs=0, calls=0) == "recorded", "no result of a call"
    with start() as rec:
        answered(rec, *both[:1], runs=1)
        rec.handler("show")
        assert evidence(rec.path)["observation_handlers", "show"] == "claimed", "asked for when it was too late"


@pytest.mark.parametrize(
    "content",
    ["made up", "> alpha", "> alp\n", "", [{"type": "text", "text": "made up"}]],
)
def test_a_handler_whose_text_was_thrown_away_is_only_claimed(start: Any, content: Any) -> None:
    with start() as rec:
        assert handled(rec, {"content": "> alp", "source_call_id": "c0"}, runs=1) == "recorded"
        assert handled(rec, {"content": content, "source_call_id": "c0"}, runs=1) == "claimed"
    assert not events(rec.path, "contradiction"), "who says what the model sees is not known, and nothing disagrees"


def test_an_error_that_the_run_words_itself_is_no_handlers_and_one_that_passed_the_handler_is(start: Any) -> None:
    with start() as rec:
        failed = {"content": "KeyError: 'c'", "source_call_id": "c0", "is_error": True}
        assert handled(rec, failed, runs=0) == "claimed"
    with start() as rec:
        rec.tools()
        rec.agent("", [{**CALL, "tool_call_id": "c0"}])
        with pytest.raises(KeyError) as caught:
            rec.tool("get")("desk", key="c")
        shown = rec.handler("show")({"row": f"KeyError: {caught.value}"})
        rec.observation([{"content": shown, "source_call_id": "c0", "is_error": True}])
        assert evidence(rec.path)["observation_handlers", "show"] == "recorded"


def test_a_handler_that_raised_gave_nothing(start: Any) -> None:
    with start() as rec:
        rec.handler("show")
        rec.agent("", [{**CALL, "tool_call_id": "c0"}])
        with pytest.raises(KeyError):
            rec.handler("show")({})
        rec.observation([{"content": "no row", "source_call_id": "c0"}])
    assert evidence(rec.path)["observation_handlers", "show"] == "claimed"


@pytest.mark.parametrize("part", [("observation_handlers", "show"), ("tool_bindings", "get")])
@pytest.mark.parametrize("early", [False, True])
def test_a_call_that_no_result_came_of_pays_for_no_later_one(start: Any, part: tuple[str, str], early: bool) -> None:
    seen = {"content": "> alp", "source_call_id": "c0"}
    with start() as rec:
        show, get = rec.handler("show"), rec.tool("get")
        if early:
            show({"row": "alp"})
            get("desk", key="a")
        else:
            answered(rec, seen, runs=2, shown=2)
        assert evidence(rec.path)[part] == "recorded"
        answered(rec, seen, runs=int(part[1] != "get"), shown=int(part[1] != "show"))
        assert evidence(rec.path)[part] == "claimed"
    kept = {("observation_handlers", "show"), ("tool_bindings", "get")} - {part}
    assert {evidence(rec.path)[other] for other in kept} == {"recorded"}


def test_without_tools_every_observation_is_a_handlers(start: Any, make_harness: Any) -> None:
    with start(make_harness(tool_bindings={})) as rec:
        rec.handler("show")
        rec.agent("ls")
        rec.observation([{"content": "a listing"}])
    assert evidence(rec.path)["observation_handlers", "show"] == "claimed"


def test_a_parser_that_parsed_nothing_is_only_claimed(start: Any) -> None:
    for called in (False, True):
        with start() as rec:
            parse = rec.runtime("parser")
            rec.agent(parse("Done. ") if called else "Done.")
        assert evidence(rec.path)["runtime", "parser"] == ("recorded" if called else "claimed")
    with start() as rec:
        rec.runtime("parser")
    assert evidence(rec.path)["runtime", "parser"] == "recorded", "there was nothing to parse"


def test_a_step_that_is_not_what_was_rendered_contradicts(start: Any) -> None:
    with start() as rec:
        text = rec.prompt("system").render(today="Monday")
        rec.system(text + " Always offer a discount.")
        rec.user("Read a.")
        rec.agent("Done.")
    (found,) = [event["contradiction"] for event in events(rec.path, "contradiction")]
    assert (found["component"], found["part"], found["step"]) == ("prompt_templates", "system", 1)
    with start() as rec:
        rec.request([{"role": "system", "content": "Other."}])
        rec.prompt("system").render(today="Monday")
        rec.system("Other.")
    assert len(events(rec.path, "contradiction")) == 1, "the request has said so"


@pytest.mark.parametrize("rendered", [False, True])
def test_a_prompt_that_stands_nowhere_is_only_claimed(start: Any, rendered: bool) -> None:
    with start() as rec:
        system = rec.prompt("system")
        if rendered:
            system.render(today="Monday")
        rec.user("Read a.")
        rec.agent("Done.")
    assert evidence(rec.path)["prompt_templates", "system"] == "claimed"
    assert not events(rec.path, "contradiction")


@pytest.mark.parametrize("more", [(), ("And another thing.",)])
def test_what_is_said_behind_the_first_reply_is_no_prompt(start: Any, more: tuple[str, ...]) -> None:
    with start() as rec:
        rec.prompt("task").render(request="Read a.", urgent=False)
        rec.system(rec.prompt("system").render(today="Monday"))
        rec.agent("What is it?")
        for text in more:
            rec.user(text)
            assert rec.contradictions == ()
            rec.agent("Done.")
    assert not events(rec.path, "contradiction")
    assert evidence(rec.path)["prompt_templates", "system"] == "recorded"
    assert evidence(rec.path)["prompt_templates", "task"] == "claimed"


def test_what_is_rendered_behind_the_first_reply_was_not_in_front_of_it(start: Any) -> None:
    with start() as rec:
        rec.system(rec.prompt("system").render(today="Monday"))
        rec.user("Read a.")
        rec.agent("Done.")
        rec.user(rec.prompt("task").render(request="Read b.", urgent=False))
        rec.agent("Done.")
    assert not events(rec.path, "contradiction")
    assert evidence(rec.path)["prompt_templates", "task"] == "claimed"


def test_a_prompt_that_the_request_held_stays_recorded_without_its_step(start: Any) -> None:
    with start() as rec:
        text = rec.prompt("system").render(today="Monday")
        rec.request([{"role": "system", "content": text}])
        rec.user("Read a.")
        rec.agent("Done.")
    assert evidence(rec.path)["prompt_templates", "system"] == "recorded"


def test_the_same_run_gives_the_same_bytes(start: Any, make_harness: Any, tmp_path: Path) -> None:
    contents = set()
    for inbox in ("one", "two"):
        clock = FixedClock("2026-01-01T00:00:00Z", 1)
        with tracemark.record(make_harness(), tmp_path / inbox, RUN, AGENT, clock=clock) as rec:
            play(rec)
        contents.add(rec.path.read_bytes())
    assert len(contents) == 1


def test_equal_transcripts_of_distinct_runs_have_distinct_sessions(start: Any) -> None:
    sessions = set()
    for attempt in (0, 1):
        with start(run={**RUN, "attempt": attempt}) as rec:
            play(rec)
        sessions.add(events(rec.path)[0]["session"])
    assert len(sessions) == 2


def test_equal_runs_of_one_moment_have_distinct_sessions(start: Any) -> None:
    sessions = set()
    for _ in range(2):
        with start(clock=FixedClock("2026-01-01T00:00:00Z", 0)) as rec:
            play(rec)
        sessions.add(events(rec.path)[0]["session"])
    assert len(sessions) == 2


def test_the_harness_lies_beside_the_journal_whole(start: Any) -> None:
    with start() as rec:
        play(rec)
    (beside,) = rec.path.parent.glob("*.harness.json")
    assert beside.name == rec.harness.fingerprint.removeprefix("tm1:") + ".harness.json"
    assert snapshot.from_bytes(beside.read_bytes()).identity == rec.harness.identity


def test_a_harness_that_changed_after_it_was_loaded_is_refused(start: Any, make_harness: Any) -> None:
    folder: Path = make_harness()
    harness = load(folder)
    (folder / "reply.py").write_text("def parse(text):\n    return text\n")
    with pytest.raises(HarnessChangedError) as caught, start(harness):
        pass
    assert caught.value.exit_code == 2
    assert caught.value.where
    assert caught.value.hint


def test_a_refused_run_leaves_no_journal(start: Any, make_harness: Any, tmp_path: Path) -> None:
    folder: Path = make_harness()
    harness = load(folder)
    (folder / "harness.yaml").unlink()
    with pytest.raises(HarnessChangedError), start(harness):
        pass
    assert not list(tmp_path.rglob("*.journal.jsonl"))


def test_an_edit_while_a_run_goes_on_marks_it_mixed_and_changes_nothing_that_runs(
    start: Any, make_harness: Any
) -> None:
    folder: Path = make_harness()
    with start(folder) as rec:
        (folder / "code/store.py").write_text("ROWS = {'a': 'edited'}\n")
        play(rec)
    assert events(rec.path)[-1]["mixed"] is True
    assert events(rec.path, "observation")[0]["results"][0]["content"] == "> alp"


def test_a_comment_edit_marks_a_run_mixed_and_python_caches_do_not(start: Any, make_harness: Any) -> None:
    folder: Path = make_harness()
    with start(folder) as rec:
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__/reply.cpython-311.pyc").write_bytes(b"x")
    assert "mixed" not in events(rec.path)[-1]
    with start(folder) as rec:
        (folder / "reply.py").write_text("# a comment\n" + (folder / "reply.py").read_text())
    assert events(rec.path)[-1]["mixed"] is True


def test_a_run_that_changes_its_working_directory_is_not_mixed(
    start: Any, make_harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_harness()
    monkeypatch.chdir(tmp_path)
    with start(Path("harness_versions/small"), inbox=Path("here")) as rec:
        (tmp_path / "elsewhere").mkdir()
        os.chdir(tmp_path / "elsewhere")
        rec.user("Help")
    assert "mixed" not in events(rec.path)[-1]
    assert rec.path.parent == tmp_path / "here"


def test_a_harness_from_a_snapshot_has_no_folder_to_compare(start: Any, make_harness: Any) -> None:
    harness = snapshot.from_bytes(snapshot.to_bytes(load(make_harness())))
    with start(harness) as rec:
        play(rec)
    assert "mixed" not in events(rec.path)[-1]


def test_a_first_request_that_is_not_what_was_rendered_contradicts(start: Any) -> None:
    with start() as rec:
        rec.prompt("task").render(request="Help", urgent=True)
        system = rec.prompt("system").render(today="Monday")
        rec.request([{"role": "system", "content": system}, {"role": "user", "content": "Help"}])
        rec.request([{"role": "system", "content": "a later request is not looked at"}])
    (found,) = events(rec.path, "contradiction")
    text = "at character 2: expected 'Hurry. Help' found 'Help'"
    assert found["contradiction"] == {"component": "prompt_templates", "part": "task", "text": text}


def test_tools_of_the_request_that_are_not_the_bound_ones_contradict(start: Any) -> None:
    with start() as rec:
        rec.request([], [{"name": "get", "description": "Read!", "parameters": {}}, {"name": "more"}])
    found = [event["contradiction"]["part"] for event in events(rec.path, "contradiction")]
    assert found == ["get", "more"]


def test_a_request_tells_what_was_offered(start: Any) -> None:
    with start() as rec:
        offered = rec.tools()
        rec.request([], offered)
    assert [event["definitions"] for event in events(rec.path, "tools")] == [offered]
    assert offered[0]["type"] == "function"


def test_leaving_tools_out_needs_a_harness_that_offers_subsets(start: Any, make_harness: Any) -> None:
    with start() as rec, pytest.raises(UsageError, match="all tools"):
        rec.tools([])
    with start(make_harness("subset", runtime={"offered": "subset"})) as rec:
        assert rec.tools([]) == []
        with pytest.raises(UsageError, match="not bound"):
            rec.tools(["gone"])


def test_a_process_that_is_not_as_declared_contradicts(start: Any, make_harness: Any) -> None:
    runtime = {"environment": {"NO_SUCH_VARIABLE": "1"}, "packages": {"no_such_package": "1"}}
    with start(make_harness("declared", runtime=runtime)) as rec:
        pass
    assert events(rec.path, "contradiction")[0]["contradiction"]["part"] == "environment"
    assert evidence(rec.path)["runtime", "packages"] == "claimed"


def test_an_exception_ends_the_run_as_an_error_and_goes_on(start: Any) -> None:
    rec = start()
    with pytest.raises(ZeroDivisionError), rec:
        raise ZeroDivisionError
    assert events(rec.path, "outcome")[0]["outcome"] == {"status": "error", "termination": "exception"}
    assert events(rec.path)[-1]["event"] == "end"


def test_an_exception_after_the_outcome_leaves_it(start: Any) -> None:
    def run(rec: Recorder) -> None:
        with rec:
            rec.outcome(status="failure")
            raise KeyboardInterrupt

    rec = start()
    with pytest.raises(KeyboardInterrupt):
        run(rec)
    assert [event["outcome"] for event in events(rec.path, "outcome")] == [{"status": "failure"}]


def test_the_journal_is_locked_while_it_is_written_and_readable_at_any_time(start: Any) -> None:
    with start() as rec:
        assert is_locked(rec.path)
        rec.user("Help")
        assert events(rec.path)[-1]["step"]["message"] == "Help"


def test_a_killed_run_leaves_what_it_recorded(make_harness: Any, tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, signal, sys, tracemark
        from pathlib import Path
        with tracemark.record(Path(sys.argv[1]), Path(sys.argv[2]), {"task": "t"}) as rec:
            rec.user("Help")
            rec.agent("I go.")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    run = subprocess.run([sys.executable, "-c", program, str(make_harness()), str(tmp_path / "inbox")], check=False)
    assert run.returncode == -signal.SIGKILL
    path = tmp_path / "inbox" / "t-0.journal.jsonl"
    assert not is_locked(path)
    assert [event["step"]["message"] for event in events(path, "step")] == ["Help", "I go."]
    assert not events(path, "end")


def test_the_name_of_a_journal_is_made_of_safe_characters_and_never_taken_twice(start: Any) -> None:
    names = []
    for task in ("a/../b c", "a/../b c", "a_.._b_c", "../../etc"):
        with start(run={"task": task}) as rec:
            pass
        names.append(rec.path.name)
    stems = ["a_.._b_c-0", "a_.._b_c-0-2", "a_.._b_c-0-3", "etc-0"]
    assert names == [f"{stem}.journal.jsonl" for stem in stems]
    assert len({rec.path.parent for _ in names}) == 1


def test_recorders_of_one_task_and_attempt_that_run_side_by_side_count_on(start: Any) -> None:
    one, two, three = start(), start(), start(name="t-1-0-2")
    with three, one, two:
        names = [rec.path.name.removesuffix(".journal.jsonl") for rec in (one, two, three)]
        assert names == ["t-1-0", "t-1-0-3", "t-1-0-2"]
    with pytest.raises(UsageError, match="a journal of this name exists"), start(name="t-1-0"):
        pass


def test_a_given_name_is_used_as_it_is_or_refused(start: Any) -> None:
    with start(name="run.7") as rec:
        pass
    assert rec.path.name == "run.7.journal.jsonl"
    with pytest.raises(UsageError, match="exists"), start(name="run.7"):
        pass
    for name in ("../x", "a b", "", ".hidden"):
        with pytest.raises(UsageError, match="file name") as caught:
            start(name=name)
        assert (caught.value.where, caught.value.hint) == (
            "tracemark.record()",
            "use letters, digits, '.', '_' and '-'",
        )


def test_facts_that_nobody_knows_are_refused_before_anything_is_written(start: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"run\.tsak") as caught:
        start(run={"tsak": "t"})
    assert "task" in str(caught.value.hint)
    with start() as rec, pytest.raises(UsageError, match="status"):
        rec.outcome(status="fine")


@pytest.mark.parametrize(
    ("misuse", "reason"),
    [
        (lambda rec: rec.agent("", [{"tool_call_id": "c", "function_name": "f"}]), "arguments"),
        (lambda rec: rec.agent("", [{"tool_call_id": "c", "function_name": "f", "arguments": "{}"}]), "arguments"),
        (lambda rec: rec.agent("", [{"tool_call_id": "c", "function_name": "f", "arguments": {}}] * 2), "share"),
        (lambda rec: rec.user(object()), "no JSON"),
        (lambda rec: rec.agent("", metrics={"cost_usd": float("nan")}), "no JSON"),
        (lambda rec: rec.observation([{"content": "x"}]), "no reply"),
    ],
)
def test_misuse_is_refused_with_a_reason_and_writes_nothing(start: Any, misuse: Any, reason: str) -> None:
    with start() as rec:
        before = rec.path.read_bytes()
        with pytest.raises(UsageError, match=reason):
            misuse(rec)
        assert rec.path.read_bytes() == before


def test_a_result_that_answers_no_call_of_the_last_reply_is_refused(start: Any) -> None:
    with start() as rec:
        rec.agent("", [{"tool_call_id": "c1", "function_name": "get", "arguments": {}}])
        rec.agent("", [{"tool_call_id": "c2", "function_name": "get", "arguments": {}}])
        with pytest.raises(UsageError, match="c1"):
            rec.observation([{"source_call_id": "c1", "content": ""}])
    assert not events(rec.path, "observation")


CALL = {"tool_call_id": "c1", "function_name": "get", "arguments": {}}


@pytest.mark.parametrize(
    ("misuse", "message", "hint"),
    [
        (
            lambda rec: rec.observation([{"content": "x"}]),
            "there is no reply that the observation could belong to",
            "record the model's reply first: recorder.agent(…)",
        ),
        (
            lambda rec: rec.agent("", [CALL, CALL]),
            "tool_calls: two calls of one reply share the id 'c1'",
            "give each call an id of its own, and its result the same one",
        ),
        (
            lambda rec: (rec.agent("", [CALL]), rec.observation([{"source_call_id": "c2", "content": ""}])),
            "no call of the last reply has the id 'c2'",
            "the calls of the last reply: 'c1'",
        ),
        (
            lambda rec: rec.agent("", [{"function_name": "get", "arguments": {}}]),
            "tool_calls.0: a tool call needs tool_call_id (or OpenAI's id, beside a function), a text",
            _CALL_SHAPES,
        ),
        (
            lambda rec: rec.outcome(reward=float("nan")),
            "outcome.reward is no JSON: nan is not a JSON number",
            "give texts, finite numbers, true, false, None, lists, and objects whose members are named by texts",
        ),
        (
            lambda rec: rec.outcome(verdict="fine"),
            "outcome.verdict: unknown member",
            "known of outcome: status, reward, checks, grader, termination, rule",
        ),
        (
            lambda rec: rec.agent("", metrics={"prompt_tokens": "2"}),
            "metrics.prompt_tokens: must be a whole number",
            "help(recorder.agent) says what it takes",
        ),
    ],
)
def test_a_refused_call_says_where_it_was_and_what_to_do(start: Any, misuse: Any, message: str, hint: str) -> None:
    with start() as rec, pytest.raises(UsageError) as caught:
        misuse(rec)
    method = {"there": "observation", "no": "observation", "outcome": "outcome"}
    name = next((called for word, called in method.items() if message.startswith(word)), "agent")
    assert caught.value.as_json() == {
        "error": "UsageError",
        "exit_code": 2,
        "message": message,
        "where": f"t-1-0.journal.jsonl: {name}()",
        "hint": hint,
    }


def test_a_fact_that_is_refused_lists_what_the_help_of_record_lists(start: Any) -> None:
    with pytest.raises(UsageError) as caught:
        start(run={"tsak": "t"})
    text = " ".join(str(tracemark.record.__doc__).split())
    listed = text.partition("run: facts of the run: ")[2].partition(";")[0]
    assert (caught.value.message, caught.value.where) == ("run.tsak: unknown member", "tracemark.record()")
    assert caught.value.hint == f"known of run: {listed}"
    assert listed.split(", ") == list(RUN_FACTS)


def test_an_outcome_takes_what_its_help_lists() -> None:
    assert {"status", *re.findall(r"`(\w+)`", str(Recorder.outcome.__doc__).partition("facts: ")[2])} == set(
        OUTCOME_FACTS
    )


def test_the_package_shows_the_recorder_before_it_is_loaded() -> None:
    program = "import tracemark; print('record' in dir(tracemark)); help(tracemark)"
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert shown.startswith("True\n")
    # later interpreters write each argument on a line of its own
    assert re.search(r"^    record\(\s*harness: ", shown, re.MULTILINE)


def test_an_unknown_part_lists_the_known_ones(start: Any) -> None:
    for ask, name in ((Recorder.handler, "gone"), (Recorder.prompt, ["system"]), (Recorder.runtime, {})):
        with start() as rec, pytest.raises(UnknownNameError) as caught:
            ask(rec, name)
        assert caught.value.hint.startswith("one of: ")


def test_recording_outside_the_with_block_is_refused(start: Any) -> None:
    rec = start()
    with pytest.raises(UsageError, match="not open"):
        rec.user("Help")


def test_importing_tracemark_does_not_load_the_recorder() -> None:
    program = "import sys, tracemark; sys.exit('tracemark.runner.record' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ}).returncode == 0
