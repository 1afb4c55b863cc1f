"""Journals of recorded runs, read back as traces."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracemark
from tracemark import digest
from tracemark.clock import FixedClock
from tracemark.findings import CODES
from tracemark.harness.loading import load
from tracemark.importers import journal as importer
from tracemark.importers.base import Context, Imported, Limits, Record, Refused
from tracemark.importers.journal import IMPORTER, INTERRUPTED
from tracemark.importers.source import plan, read
from tracemark.model.stamp import Stamp
from tracemark.model.trace import Outcome, Run, Source
from tracemark.model.trajectory import problems

TOOL = {"name": "get", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
MANIFEST = {
    "format": "tracemark/harness/1",
    "prompt_templates": [
        {"name": "system", "text": "Look things up."},
        {"name": "begin", "text": "Begin with {task}", "syntax": "format", "role": "user"},
    ],
    "tool_bindings": {"get": {"schema": TOOL, "entry": "code.py:get"}},
    "observation_handlers": [{"name": "show", "entry": "code.py:show"}],
}


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    folder = tmp_path / "harness_versions" / "small"
    folder.mkdir(parents=True)
    (folder / "harness.yaml").write_text(json.dumps(MANIFEST))
    (folder / "code.py").write_text("def get(key):\n    return key\n\ndef show(raw):\n    return raw\n")
    return folder


@pytest.fixture
def journal(harness: Path, tmp_path: Path) -> Path:
    """A finished journal."""
    run = {"task": "t-1", "attempt": 0, "model": {"name": "scripted", "revision": "1"}}
    agent = {"name": "desk-agent", "version": "1"}
    clock = FixedClock("2026-01-01T00:00:00Z", 1)
    with tracemark.record(harness, tmp_path / "inbox", run, agent, clock=clock) as rec:
        rec.tools()
        rec.system(rec.prompt("system").render())
        rec.user(rec.prompt("begin").render(task="a"))
        rec.agent("I read.", [{"tool_call_id": "c1", "function_name": "get", "arguments": {"key": "a"}}], "hm")
        rec.observation([{"source_call_id": "c1", "content": rec.handler("show")(rec.tool("get")("a"))}])
        rec.agent("Done.", metrics={"prompt_tokens": 3})
        rec.outcome(status="success", reward=1.0, grader={"name": "exact", "version": "1"})
    return rec.path


def results(path: Path, raw: bytes | None = None, **context: Any) -> Iterator[Imported | Refused]:
    around = Context(name=path.name, folder=str(path.parent), **context)
    yield from IMPORTER.read(Record((raw or path.read_bytes()).strip(), path.name, path.name, around))


def imported(path: Path, raw: bytes | None = None, **context: Any) -> Imported:
    (result,) = results(path, raw, **context)
    assert isinstance(result, Imported), result
    return result


def refused(path: Path, raw: bytes) -> Refused:
    (result,) = results(path, raw)
    assert isinstance(result, Refused)
    return result


def changed(path: Path, change: Any) -> bytes:
    """Return the journal with one event changed: `change` gets each and returns it, or None to drop it."""
    events = [change(json.loads(line)) for line in path.read_bytes().splitlines()]
    return b"".join(digest.canonical(event) + b"\n" for event in events if event is not None)


def evidence(stamp: Any) -> dict[str, str]:
    return {name: component["evidence"] for name, component in stamp["declared"]["components"].items()}


def test_a_finished_journal_is_a_valid_trace_with_every_step(journal: Path) -> None:
    trace = imported(journal)
    assert problems(trace.trajectory) == []
    assert trace.trajectory["agent"] == {
        "name": "desk-agent",
        "version": "1",
        "tool_definitions": [{"type": "function", "function": TOOL}],
    }
    steps = trace.trajectory["steps"]
    assert [(step["step_id"], step["source"]) for step in steps] == [
        (1, "system"),
        (2, "user"),
        (3, "agent"),
        (4, "agent"),
    ]
    assert steps[2]["observation"] == {"results": [{"source_call_id": "c1", "content": "a"}]}
    assert steps[2]["reasoning_content"] == "hm"
    assert trace.trajectory_bytes == digest.canonical(trace.trajectory)


def test_run_outcome_and_source_are_as_stored(journal: Path) -> None:
    trace = imported(journal)
    Run.model_validate(trace.run)
    Outcome.model_validate(trace.outcome)
    Source.model_validate(trace.source)
    assert trace.run["task"] == "t-1"
    assert (trace.run["start"], trace.run["end"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z")
    assert trace.outcome == {"status": "success", "reward": 1.0, "grader": {"name": "exact", "version": "1"}}
    assert trace.source["raw"] == digest.sha256(journal.read_bytes().strip())
    assert "repairs" not in trace.source


def test_the_stamp_is_recorded_and_names_the_harness(journal: Path, harness: Path) -> None:
    trace = imported(journal)
    Stamp.model_validate(trace.stamp)
    assert trace.stamp is not None
    identity = load(harness).identity
    assert trace.stamp["declared"]["fingerprint"] == identity.fingerprint
    assert trace.stamp["declared"]["name"] == "small"
    assert evidence(trace.stamp) == dict.fromkeys(identity.components, "recorded")


def test_the_weakest_part_decides_a_component(journal: Path) -> None:
    raw = changed(journal, lambda event: None if event.get("part") == "begin" else event)
    stamp = imported(journal, raw).stamp
    assert stamp is not None
    assert evidence(stamp)["prompt_templates"] == "claimed"
    assert stamp["declared"]["components"]["prompt_templates"]["parts"]["system"]["evidence"] == "recorded"


def test_an_unfinished_journal_is_an_interrupted_trace(journal: Path) -> None:
    raw = changed(journal, lambda event: None if event["event"] in ("outcome", "end") else event)
    trace = imported(journal, raw)
    assert trace.outcome == INTERRUPTED
    assert len(trace.trajectory["steps"]) == 4
    assert "end" not in trace.run
    assert any("interrupted" in repair for repair in trace.source["repairs"])
    assert trace.stamp is not None
    assert evidence(trace.stamp)["tool_bindings"] == "recorded"


def test_of_an_outcome_without_an_end_only_status_and_termination_are_overruled(journal: Path) -> None:
    def cut(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["event"] == "outcome":
            return {"event": "outcome", "outcome": {**event["outcome"], "termination": "stop", "checks": {"a": True}}}
        return None if event["event"] == "end" else event

    trace = imported(journal, changed(journal, cut))
    kept = {"reward": 1.0, "checks": {"a": True}, "grader": {"name": "exact", "version": "1"}}
    assert trace.outcome == {**kept, **INTERRUPTED}
    (repair,) = trace.source["repairs"]
    assert repair.startswith("the journal has no end: the run was interrupted")
    assert repair.endswith("overruled: status 'success', termination 'stop'")


def test_at_every_byte_a_cut_journal_is_a_trace_or_refused_with_a_reason(journal: Path) -> None:
    raw = journal.read_bytes()
    steps = []
    for length in range(1, len(raw), 41):
        (result,) = results(journal, raw[:length])
        if isinstance(result, Imported):
            steps.append(len(result.trajectory["steps"]))
            assert problems(result.trajectory) == []
        else:
            assert result.code in ("journal-damaged", "journal-empty")
            assert not steps
    assert steps == sorted(steps)
    assert set(steps) == {1, 2, 3, 4}


def test_a_half_written_last_line_is_dropped_and_named(journal: Path) -> None:
    trace = imported(journal, journal.read_bytes().rstrip()[:-5])
    assert any("half-written" in repair for repair in trace.source["repairs"])
    assert trace.outcome == {"reward": 1.0, "grader": {"name": "exact", "version": "1"}, **INTERRUPTED}


def test_a_mixed_run_says_so(journal: Path) -> None:
    raw = changed(journal, lambda event: {**event, "mixed": True} if event["event"] == "end" else event)
    stamp = imported(journal, raw).stamp
    assert stamp is not None
    assert stamp["mixed"] is True


def with_events(journal: Path, before: str, *events: dict[str, Any]) -> bytes:
    """Return the journal with events in front of the first of the kind `before`."""
    lines = journal.read_bytes().splitlines()
    at = next(number for number, line in enumerate(lines) if json.loads(line)["event"] == before)
    return b"\n".join([*lines[:at], *map(digest.canonical, events), *lines[at:]]) + b"\n"


def test_other_tools_behind_the_first_reply_make_a_run_mixed(journal: Path) -> None:
    other = {"event": "tools", "definitions": []}
    mixed = imported(journal, with_events(journal, "outcome", other))
    assert mixed.stamp["mixed"] is True
    assert mixed.trajectory["agent"]["tool_definitions"] == imported(journal).trajectory["agent"]["tool_definitions"]
    same = {"event": "tools", "definitions": mixed.trajectory["agent"]["tool_definitions"]}
    assert "mixed" not in imported(journal, with_events(journal, "outcome", same)).stamp


def test_of_several_tool_lists_in_front_of_the_first_reply_the_last_counts(journal: Path) -> None:
    sent = {"event": "tools", "definitions": [{"type": "function", "function": {**TOOL, "description": "Sent."}}]}
    read_back = imported(journal, with_events(journal, "step", sent))
    assert read_back.trajectory["agent"]["tool_definitions"] == sent["definitions"]
    assert "mixed" not in read_back.stamp


def test_facts_that_showed_later_fill_what_the_start_does_not_state(journal: Path) -> None:
    facts = [{"event": "facts", "run": {"sampling": {"top_p": each}, "model": {"name": "other"}}} for each in (0, 1)]
    run = imported(journal, with_events(journal, "outcome", *facts)).run
    assert run["sampling"] == {"top_p": 1}
    assert run["model"] == {"name": "scripted", "revision": "1"}


def test_calls_that_gave_no_step_stand_beside_the_steps(journal: Path) -> None:
    call = {"after": 3, "kind": "failed", "status": 500}
    trajectory = imported(journal, with_events(journal, "outcome", {"event": "call", "call": call})).trajectory
    assert trajectory["extra"] == {"calls_without_step": [call]}
    assert problems(trajectory) == []
    assert "extra" not in imported(journal).trajectory


def test_a_contradicted_run_has_no_fingerprint(journal: Path) -> None:
    found = {"component": "prompt_templates", "part": "system", "text": "Something else."}

    def contradict(event: dict[str, Any]) -> dict[str, Any]:
        return {"event": "contradiction", "contradiction": found} if event["event"] == "outcome" else event

    stamp = imported(journal, changed(journal, contradict)).stamp
    Stamp.model_validate(stamp)
    assert stamp is not None
    assert stamp["contradictions"] == [found]
    assert "fingerprint" not in stamp["declared"]


def test_without_its_snapshot_a_journal_is_only_a_claim(journal: Path) -> None:
    for snapshot in journal.parent.glob("*.harness.json"):
        snapshot.unlink()
    trace = imported(journal)
    assert trace.stamp is not None
    assert set(evidence(trace.stamp).values()) == {"claimed", "recorded"}
    assert evidence(trace.stamp)["runtime"] == "recorded"
    assert trace.stamp["declared"]["components"]["runtime"]["parts"] == {}
    assert any("snapshot" in repair for repair in trace.source["repairs"])


@pytest.mark.parametrize("damage", [b"{}", b"[", b'{"format":"tracemark/harness-snapshot/1"}'])
def test_a_damaged_snapshot_proves_nothing(journal: Path, damage: bytes) -> None:
    (snapshot,) = journal.parent.glob("*.harness.json")
    snapshot.write_bytes(damage)
    trace = imported(journal)
    assert trace.stamp is not None
    assert evidence(trace.stamp)["tool_bindings"] == "claimed"
    assert any("no sound snapshot" in repair for repair in trace.source["repairs"])


@pytest.mark.parametrize(("length", "kept"), [(10, 1), (1_100_000, 0)])
def test_long_snapshots_are_judged_like_others_and_not_remembered(journal: Path, length: int, kept: int) -> None:
    (snapshot,) = journal.parent.glob("*.harness.json")
    snapshot.write_bytes(b" " * length)
    importer._remembered.cache_clear()
    for _ in range(2):
        assert any("no sound snapshot" in repair for repair in imported(journal).source["repairs"])
    assert importer._remembered.cache_info().currsize == kept


def test_an_edited_snapshot_proves_nothing(journal: Path) -> None:
    (snapshot,) = journal.parent.glob("*.harness.json")
    snapshot.write_bytes(snapshot.read_bytes().replace(b"Look things up.", b"Make things up."))
    trace = imported(journal)
    assert trace.stamp is not None
    assert evidence(trace.stamp)["prompt_templates"] == "claimed"


def test_a_fingerprint_that_is_not_the_digest_of_its_components_is_not_believed(journal: Path) -> None:
    wrong = "tm1:" + "0" * 64

    def forge(event: dict[str, Any]) -> dict[str, Any]:
        if event["event"] == "start":
            event["harness"]["fingerprint"] = wrong
        return event

    trace = imported(journal, changed(journal, forge))
    assert trace.stamp is not None
    assert trace.stamp["declared"]["fingerprint"] != wrong
    assert evidence(trace.stamp)["tool_bindings"] == "claimed"
    assert any("digest of its components" in repair for repair in trace.source["repairs"])


def test_part_digests_that_the_snapshot_does_not_give_are_not_believed(journal: Path) -> None:
    def forge(event: dict[str, Any]) -> dict[str, Any]:
        if event["event"] == "start":
            event["harness"]["components"]["tool_bindings"]["parts"][0][1] = "0" * 64
        return event

    trace = imported(journal, changed(journal, forge))
    assert trace.stamp is not None
    assert evidence(trace.stamp)["tool_bindings"] == "claimed"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ({}, "unknown"),
        ({"reward": 1}, "success"),
        ({"reward": 0.5}, "failure"),
        ({"status": "failure", "reward": 1}, "failure"),
    ],
)
def test_the_status_is_the_graders_word_else_the_reward(journal: Path, outcome: dict[str, Any], status: str) -> None:
    raw = changed(journal, lambda event: {**event, "outcome": outcome} if event["event"] == "outcome" else event)
    assert imported(journal, raw).outcome["status"] == status


def test_the_reward_that_counts_as_success_is_a_parameter(journal: Path) -> None:
    raw = changed(
        journal, lambda event: {**event, "outcome": {"reward": 0.5}} if event["event"] == "outcome" else event
    )
    outcome = imported(journal, raw, limits=Limits(success_reward=0.5)).outcome
    assert outcome == {"status": "success", "reward": 0.5, "rule": "reward"}


def test_the_batch_fills_what_the_run_does_not_say(journal: Path) -> None:
    run = imported(journal, batch={"domain": "desk", "model": {"name": "other"}}).run
    assert run["domain"] == "desk"
    assert run["model"] == {"name": "scripted", "revision": "1"}


def damage(journal: Path, kind: str) -> bytes:
    lines = journal.read_bytes().splitlines(keepends=True)
    start = json.loads(lines[0])
    return {
        "no start": b"".join(lines[1:]),
        "two starts": lines[0] + b"".join(lines),
        "half a start": lines[0][:-5],
        "anything else": b"these are notes",
        "broken line": lines[0] + b'{"event":"st\n' + b"".join(lines[1:]),
        "unknown event": lines[0] + b'{"event":"dance"}\n',
        "unknown member": lines[0] + b'{"event":"end","time":"x","more":1}\n',
        "no object": lines[0] + b"[]\n",
        "after the end": b"".join(lines) + lines[-2],
        "lost observation": lines[0] + b'{"event":"observation","results":[]}\n',
        "odd step": lines[0] + b'{"event":"step","step":{"source":"agent","message":7}}\n',
        "wrong run": digest.canonical({**start, "run": {"tsak": 1}}) + b"\n" + b"".join(lines[1:]),
        "wrong agent": digest.canonical({**start, "agent": {"name": "x"}}) + b"\n" + b"".join(lines[1:]),
        "surrogate": lines[0] + b'{"event":"step","step":{"source":"user","message":"","\\ud800":1}}\n',
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "no start",
        "two starts",
        "half a start",
        "anything else",
        "broken line",
        "unknown event",
        "unknown member",
        "no object",
        "after the end",
        "lost observation",
        "odd step",
        "wrong run",
        "wrong agent",
        "surrogate",
    ],
)
def test_a_damaged_journal_is_refused_with_a_reason(journal: Path, kind: str) -> None:
    result = refused(journal, damage(journal, kind))
    assert result.code == "journal-damaged"
    assert result.code in CODES
    assert result.message
    assert result.excerpt


def test_a_journal_of_another_version_is_refused_as_newer(journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    start = {**json.loads(lines[0]), "format": "tracemark/journal/2"}
    result = refused(journal, digest.canonical(start) + b"\n" + b"".join(lines[1:]))
    assert (result.code, "tracemark/journal/2" in result.message) == ("newer-format", True)


def test_a_run_that_recorded_no_step_is_refused_by_name(journal: Path) -> None:
    assert refused(journal, journal.read_bytes().splitlines()[0]).code == "journal-empty"


def test_lone_surrogates_and_large_integers_survive(harness: Path, tmp_path: Path) -> None:
    with tracemark.record(harness, tmp_path / "inbox", {"task": "odd"}) as rec:
        rec.user("half \ud83d here")
        rec.agent("", [{"tool_call_id": "c", "function_name": "get", "arguments": {"key": 2**70}}])
    steps = imported(rec.path).trajectory["steps"]
    assert steps[0]["message"] == "half \ud83d here"
    assert steps[1]["tool_calls"][0]["arguments"] == {"key": 2**70}


def test_a_journal_whose_first_line_holds_half_a_character_is_read(harness: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    with tracemark.record(harness, inbox, {"task": "half \ud83d here", "note": "\udc00"}) as rec:
        rec.user("Begin.")
    planned = plan([inbox])
    assert list(planned.refused) == []
    (trace,) = [item for job in planned.jobs for item in read(job)]
    assert isinstance(trace, Imported)
    assert trace.run["task"] == "half \ud83d here"


def test_the_format_is_recognised_by_content_and_an_open_journal_is_skipped_and_named(
    journal: Path, harness: Path
) -> None:
    with tracemark.record(harness, journal.parent, {"task": "open"}) as rec:
        rec.user("Help")
        planned = plan([journal.parent])
    assert [(each.code, each.where) for each in planned.findings] == [("journal-open", rec.path.name)]
    assert not planned.refused
    traces = [result for job in planned.jobs for result in read(job)]
    assert [trace.source["label"] for trace in traces if isinstance(trace, Imported)] == [journal.name]
    assert len(traces) == 1


@pytest.mark.parametrize("member", ["observation", "step_id"])
@pytest.mark.parametrize("value", [{}, None, {"results": {}}, {"results": []}, "x", 3])
def test_a_step_that_brings_what_no_recorder_writes_is_damage(journal: Path, member: str, value: Any) -> None:
    def change(event: dict[str, Any]) -> dict[str, Any]:
        if event["event"] == "step" and event["step"]["source"] == "agent":
            event["step"][member] = value
        return event

    item = refused(journal, changed(journal, change))
    assert (item.code, item.where) == ("journal-damaged", journal.name)
    assert item.message == f"line 8: a step brings its own {member}, which no recorder writes"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "agent", "user", "success", "runtime", "a" * 64]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["results", "observation", "source", "parts", "digest"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every object and list within a value with each of its keys."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value) if isinstance(value, list) else ())
    )
    return [(value, key) for key, _ in inner] + [place for _, item in inner for place in places(item)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_journal_raises_and_what_is_taken_is_valid(journal: Path, data: st.DataObject) -> None:
    events = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(events) - 1))
        how = data.draw(st.sampled_from(["change", "change", "change", "add", "drop", "repeat"]))
        if how == "drop":
            del events[index]
            if not events:
                return
        elif how == "repeat":
            events.insert(data.draw(st.integers(0, len(events))), json.loads(json.dumps(events[index])))
        else:
            value, key = data.draw(st.sampled_from(places(events[index])))
            inner = value[key]
            if how == "add" and isinstance(inner, dict):
                inner[data.draw(st.sampled_from(["observation", "results", "extra", "status", "model"]))] = data.draw(
                    ODD
                )
            else:
                value[key] = data.draw(ODD)
    for item in results(journal, b"".join(json.dumps(event).encode() + b"\n" for event in events)):
        if isinstance(item, Imported):
            assert problems(item.trajectory) == []
            Run.model_validate(item.run)
            Outcome.model_validate(item.outcome)
            Source.model_validate(item.source)
            Stamp.model_validate(item.stamp)
