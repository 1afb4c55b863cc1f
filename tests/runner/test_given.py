"""What is given to the recorder: held by the trace of the journal, or refused by the call that brought it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import tracemark
from tracemark import digest
from tracemark.acts.ingest import IngestOptions, ingest
from tracemark.clock import FixedClock
from tracemark.errors import UsageError
from tracemark.harness.loading import load
from tracemark.harness.version import Harness
from tracemark.importers.base import Context, Imported, Record
from tracemark.importers.journal import IMPORTER
from tracemark.model.trace import Run
from tracemark.runner.record import Recorder

CALL = {"tool_call_id": "c1", "function_name": "get", "arguments": {"key": "a"}}
OPENAI = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"key":"a"}'}}
TEXT = {"type": "text", "text": "Look."}
URL = "data:image/png;base64,AAAA"
IMAGE = {"type": "image", "source": {"media_type": "image/png", "path": URL}}


class Call(BaseModel):
    """A call as OpenAI's client has it."""

    id: str = "c1"
    function: dict[str, str] = {}
    refusal: str | None = None


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    folder: Path = tmp_path_factory.mktemp("harness")
    (folder / "harness.yaml").write_text("format: tracemark/harness/1\n")
    return load(folder)


def recorder(harness: Harness, inbox: Path, **given: Any) -> Recorder:
    return tracemark.record(harness, inbox, **{"clock": FixedClock("2026-01-01T00:00:00Z", 1), **given})


def imported(path: Path) -> Imported:
    record = Record(path.read_bytes().strip(), path.name, path.name, Context(name=path.name, folder=str(path.parent)))
    (result,) = IMPORTER.read(record)
    assert isinstance(result, Imported), result
    return result


def last_step(harness: Harness, inbox: Path, act: Callable[[Recorder], Any]) -> dict[str, Any]:
    with recorder(harness, inbox) as rec:
        rec.user("Go.")
        act(rec)
    step: dict[str, Any] = imported(rec.path).trajectory["steps"][-1]
    return step


def answer(result: dict[str, Any]) -> Callable[[Recorder], Any]:
    def act(rec: Recorder) -> None:
        rec.agent("", [CALL])
        rec.observation([result])

    return act


ACCEPTED: dict[str, tuple[Callable[[Recorder], Any], dict[str, Any]]] = {
    "a message that is null": (
        lambda rec: rec.agent(None, [OPENAI]),
        {"message": "", "extra": {"original_content": None}, "tool_calls": [CALL]},
    ),
    "no calls": (lambda rec: rec.agent("x", None), {"message": "x"}),
    "text parts": (lambda rec: rec.agent((TEXT,)), {"message": [TEXT]}),
    "another kind of text part": (
        lambda rec: rec.agent([{**TEXT, "type": "output_text", "annotations": []}]),
        {"message": [TEXT], "extra": {"original_content": [{**TEXT, "type": "output_text", "annotations": []}]}},
    ),
    "an image": (
        lambda rec: rec.user([TEXT, {"type": "image_url", "image_url": {"url": URL}}]),
        {"source": "user", "message": [TEXT, IMAGE]},
    ),
    "an image of ATIF": (lambda rec: rec.system([IMAGE]), {"source": "system", "message": [IMAGE]}),
    "metrics of one's own": (
        lambda rec: rec.agent("", metrics={"latency_ms": 12, "cost_usd": 1, "extra": {"a": 1}}),
        {"metrics": {"cost_usd": 1, "extra": {"a": 1, "latency_ms": 12}}},
    ),
    "usage": (
        lambda rec: rec.agent("", metrics={"total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}),
        {"metrics": {"cached_tokens": 4, "extra": {"total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}},
    ),
    "a type beside a call": (
        lambda rec: rec.agent("", [{**CALL, "type": "function"}]),
        {"tool_calls": [{**CALL, "extra": {"type": "function"}}]},
    ),
    "arguments in other words": (
        lambda rec: rec.agent("", [{**OPENAI, "function": {"name": "get", "arguments": '{"key": "a"}'}}]),
        {"tool_calls": [{**CALL, "extra": {"arguments": '{"key": "a"}'}}]},
    ),
    "arguments that are no object": (
        lambda rec: rec.agent("", [{**OPENAI, "function": {"name": "get", "arguments": '{"key": '}}]),
        {"tool_calls": [{**CALL, "arguments": {"_raw": '{"key": '}, "extra": {"arguments": '{"key": '}}]},
    ),
    "a call of OpenAI's client": (
        lambda rec: rec.agent("", [Call(function={"name": "get", "arguments": '{"key":"a"}'})]),
        {"tool_calls": [CALL]},
    ),
    "an error": (
        answer({"source_call_id": "c1", "content": "no", "is_error": True}),
        {"observation": {"results": [{"source_call_id": "c1", "content": "no", "extra": {"is_error": True}}]}},
    ),
    "a message that answers a call": (
        answer({"role": "tool", "tool_call_id": "c1", "content": [TEXT]}),
        {"observation": {"results": [{"source_call_id": "c1", "content": [TEXT]}]}},
    ),
    "an answer with other parts": (
        answer({"content": [{**TEXT, "cache": 1}], "extra": {"a": 1}}),
        {
            "observation": {
                "results": [{"content": [TEXT], "extra": {"a": 1, "original_content": [{**TEXT, "cache": 1}]}}]
            }
        },
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_an_agent_has_at_hand_is_recorded(harness: Harness, tmp_path: Path, name: str) -> None:
    act, expected = ACCEPTED[name]
    step = last_step(harness, tmp_path, act)
    assert {member: step[member] for member in expected} == expected


def itself() -> list[Any]:
    endless: list[Any] = []
    endless += [endless, endless]
    return endless


REFUSED: dict[str, tuple[Callable[[Recorder], Any], str]] = {
    "null of a user": (lambda rec: rec.user(None), "text"),
    "an image without a type": (
        lambda rec: rec.user([TEXT, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]),
        r"text\.1",
    ),
    "a part of another kind": (lambda rec: rec.agent([{"type": "refusal", "refusal": "No."}]), r"message\.0"),
    "a part that ATIF does not know": (
        lambda rec: rec.agent([{"type": "audio", "source": {"path": ""}}]),
        r"message\.",
    ),
    "an object as message": (lambda rec: rec.agent({"text": "x"}), "message"),
    "metrics of another type": (lambda rec: rec.agent("", metrics={"prompt_tokens": 1.0}), r"metrics\.prompt_tokens"),
    "a price beyond a double": (lambda rec: rec.agent("", metrics={"cost_usd": 10**400}), r"metrics\.cost_usd"),
    "metrics that are a text": (lambda rec: rec.agent("", metrics="1"), "metrics"),
    "a member that is there twice": (
        lambda rec: rec.agent("", metrics={"a": 1, "extra": {"a": 2}}),
        r"metrics\.a: another value",
    ),
    "an extra that is none": (lambda rec: rec.agent("", metrics={"a": 1, "extra": 2}), r"metrics\.extra"),
    "reasoning in pieces": (lambda rec: rec.agent("", reasoning_content=["hm"]), "reasoning_content"),
    "a call without its id": (lambda rec: rec.agent("", [{**OPENAI, "id": None}]), r"tool_calls\.0"),
    "a call that is no object": (lambda rec: rec.agent("", ["get"]), r"tool_calls\.0"),
    "calls that are no list": (lambda rec: rec.agent("", {"get": {}}), "tool_calls"),
    "ids twice": (lambda rec: rec.agent("", [CALL, OPENAI]), "tool_calls: .* share"),
    "an endless value": (lambda rec: rec.agent("", [{**CALL, "arguments": {"a": itself()}}]), r"tool_calls\.0"),
    "a text that holds too much": (
        lambda rec: rec.agent(
            "", [{**OPENAI, "function": {"name": "get", "arguments": '{"a":' * 499 + "1" + "}" * 499}}]
        ),
        r"tool_calls\.0",
    ),
    "an object as content": (answer({"content": {"row": 1}}), r"results\.0\.content"),
    "an id of another type": (answer({"source_call_id": ["c1"], "content": ""}), r"results\.0\.source_call_id"),
    "two ids": (answer({"source_call_id": "c1", "tool_call_id": "c2"}), r"results\.0\.tool_call_id"),
    "results that are no list": (lambda rec: (rec.agent(""), rec.observation("x")), "results"),
    "a reward that is no number": (lambda rec: rec.outcome(reward=float("nan")), r"outcome\.reward"),
    "checks that are no JSON": (lambda rec: rec.outcome(checks=[object()]), r"outcome\.checks"),
    "messages that are no list": (lambda rec: rec.request("Go."), "messages"),
    "a definition that is none": (lambda rec: rec.request([], ["get"]), r"tools\.0"),
    "names in one text": (lambda rec: rec.tools("get"), "names"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_trace_can_hold_is_refused_by_the_call_and_the_run_goes_on(
    harness: Harness, tmp_path: Path, name: str
) -> None:
    act, place = REFUSED[name]
    with recorder(harness, tmp_path) as rec:
        rec.user("Go.")
        with pytest.raises(UsageError, match=f"^{place}"):
            act(rec)
        rec.agent("Done.")
        rec.outcome("success")
    trace = imported(rec.path)
    assert trace.trajectory["steps"][-1]["message"] == "Done."
    assert trace.outcome["status"] == "success"
    assert "repairs" not in trace.source


@pytest.mark.parametrize(
    ("stated", "place"),
    [
        ({"agent": {"version": 1}}, r"agent\.version"),
        ({"agent": ["a"]}, "agent"),
        ({"agent": {"tool_definitions": []}}, r"agent\.tool_definitions"),
        ({"run": {"sampling": {"temperature": float("inf")}}}, r"run\.sampling"),
        ({"run": {"seed": None}}, r"run\.seed"),
        ({"run": {"end": "2026-01-01"}}, r"run\.end"),
        ({"run": "t"}, "run"),
    ],
)
def test_labels_and_facts_are_refused_before_there_is_a_journal(
    harness: Harness, tmp_path: Path, stated: dict[str, Any], place: str
) -> None:
    with pytest.raises(UsageError, match=f"^{place}"):
        recorder(harness, tmp_path, **stated)
    assert not list(tmp_path.iterdir())


def test_what_is_written_is_what_stood_there_when_the_call_was_made(harness: Harness, tmp_path: Path) -> None:
    arguments = {"key": "a"}
    with recorder(harness, tmp_path) as rec:
        rec.agent("", [{**CALL, "arguments": arguments}])
        arguments["key"] = "b"
        assert imported(rec.path).trajectory["steps"][0]["tool_calls"] == [CALL]


def test_all_that_is_accepted_comes_into_the_store(harness: Harness, tmp_path: Path) -> None:
    odd = "\ud800 \0 \u2028"
    for number, (act, _) in enumerate(ACCEPTED.values()):
        with recorder(harness, tmp_path / "inbox", run={"task": str(number)}) as rec:
            rec.user("Go.")
            act(rec)
    call = {"tool_call_id": odd, "function_name": odd, "arguments": {odd: odd}, odd: odd}
    facts = {"task": odd, "seed": 10**40, "sampling": {odd: odd}, "model": {"name": odd}}
    with recorder(harness, tmp_path / "inbox", run=facts, agent={"name": odd, odd: 1}, name="odd") as rec:
        rec.user(odd)
        rec.agent(odd, [call], odd, {odd: odd})
        rec.observation([{"source_call_id": odd, "content": odd, odd: odd}])
        rec.outcome("failure", termination=odd, checks={odd: odd}, grader={"name": odd})
    report = ingest(tmp_path, [tmp_path / "inbox"], IngestOptions())
    assert report.ingested == len(ACCEPTED) + 1
    assert [each for each in report.findings if each.severity == "error"] == []


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=()), max_size=4),
    st.just(object()),
    st.binary(max_size=1),
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=2),
    max_leaves=4,
)


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Give objects with some of the members, most of them as stated and some of any kind, and others beside."""
    named = st.fixed_dictionaries({}, optional={name: value | value | value | ANY for name, value in members.items()})
    others = st.dictionaries(st.sampled_from(["x", "type", "is_error", "extra", "index"]), ANY, max_size=2)
    return st.builds(lambda one, two: {**two, **one}, named, others)


TEXTS = st.text(st.characters(exclude_categories=()), max_size=6)
COUNTS = st.integers(0, 9)
IDS = st.sampled_from(["c1", "c2"])
EXTRAS = st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)
PARTS = st.one_of(
    objects(type=st.sampled_from(["text", "output_text", "image", "refusal"]), text=TEXTS),
    st.sampled_from([TEXT, IMAGE, {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}]),
)
CONTENTS = st.one_of(TEXTS, st.none(), st.lists(PARTS, max_size=2), ANY)
FUNCTIONS = objects(name=TEXTS, arguments=st.sampled_from(['{"a":1}', '{"a": 1}', "{", "[1]", "", '{"a":1,"a":2}']))
CALLS = st.one_of(
    st.builds(
        lambda call, rest: {**rest, **call},
        st.fixed_dictionaries({"tool_call_id": IDS, "function_name": TEXTS, "arguments": EXTRAS}),
        objects(extra=EXTRAS),
    ),
    st.builds(
        lambda call, rest: {**rest, **call}, st.fixed_dictionaries({"id": IDS, "function": FUNCTIONS}), objects()
    ),
    ANY,
)
METRICS = st.none() | objects(
    prompt_tokens=COUNTS, cost_usd=st.floats(0, 1), logprobs=st.lists(st.floats(-1, 0), max_size=2), extra=EXTRAS
)
RESULTS = objects(source_call_id=IDS, tool_call_id=IDS, content=CONTENTS, extra=EXTRAS) | ANY
AGENTS = st.none() | objects(name=TEXTS, version=TEXTS, model_name=TEXTS, extra=EXTRAS)
RUNS = st.fixed_dictionaries(
    {}, optional={name: TEXTS | COUNTS | ANY for name in (*Run.model_fields, "tsak") if name not in ("start", "end")}
)
OUTCOMES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["success", "failure", "fine", None]),
        "reward": st.floats() | ANY,
        "checks": ANY,
        "grader": objects(name=TEXTS, version=TEXTS),
        "termination": TEXTS | ANY,
        "other": ANY,
    },
)


def same(one: Any, other: Any) -> bool:
    return digest.canonical(one) == digest.canonical(other)


def held(members: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    """Return whether each member stands in its place, or in the `extra` of it."""
    beside = place.get("extra") or {}
    return all(
        same(value, place[name]) if name in place and name != "extra" else same(value, beside.get(name, ...))
        for name, value in members.items()
        if name != "extra" and not (name in ("message", "content") and place.get(name) != value)
    ) and all(same(value, beside[name]) for name, value in (members.get("extra") or {}).items())


def content_held(value: Any, owner: Mapping[str, Any], member: str) -> bool:
    extra = owner.get("extra") or {}
    return (
        same(value, owner.get(member))
        or ("original_content" in extra and same(value, extra["original_content"]))
        or (
            # OpenAI's form of what ATIF has too
            isinstance(value, list)
            and [part.get("text") for part in value] == [part.get("text") for part in owner[member]]
        )
    )


def call_held(call: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    if "function_name" in call:
        return held(call, stored)
    function, extra = call["function"], stored.get("extra") or {}
    arguments = function.get("arguments")
    said = extra.get("arguments", stored["arguments"].get("_raw", stored["arguments"]))
    if isinstance(arguments, str) and not isinstance(said, str):
        said = digest.canonical(said).decode()
    kept = arguments is None or same(arguments, said)
    return kept and stored["tool_call_id"] == call["id"] and same(function["name"], stored["function_name"])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_call_raises_or_the_finished_journal_holds_what_it_was_given(
    harness: Harness, tmp_path: Path, data: st.DataObject
) -> None:
    """Whatever cannot be stored raises at the call; nothing that cannot be read back is ever written."""
    agent, facts, outcome = data.draw(AGENTS), data.draw(RUNS), data.draw(OUTCOMES)
    try:
        rec = recorder(harness, tmp_path, run=facts, agent=agent)
    except UsageError:
        agent, facts = {}, {}
        rec = recorder(harness, tmp_path)
    expected: list[Callable[[Mapping[str, Any]], bool]] = []
    with rec:
        rec.user("Go.")
        for _ in range(data.draw(st.integers(1, 3))):
            expected += said_or_refused(rec, data)
        try:
            rec.outcome(**outcome)
        except UsageError:
            outcome = {}
    trace = imported(rec.path)
    assert digest.loads(trace.trajectory_bytes).value == trace.trajectory
    steps = trace.trajectory["steps"][1:]
    assert len(steps) == len(expected)
    assert all(holds(step) for holds, step in zip(expected, steps, strict=True))
    assert held(agent or {}, trace.trajectory["agent"])
    assert all(same(value, trace.run[name]) for name, value in facts.items())
    assert all(same(value, trace.outcome[name]) for name, value in outcome.items() if value is not None)
    rec.path.unlink()


def said_or_refused(rec: Recorder, data: st.DataObject) -> Iterator[Callable[[Mapping[str, Any]], bool]]:
    """Record a message, or a reply with its results; yield what its step is to hold, unless it was refused."""
    text = data.draw(CONTENTS)
    if data.draw(st.booleans()):
        try:
            rec.user(text)
        except UsageError:
            return
        yield lambda step: content_held(text, step, "message")
        return
    calls, why, metrics = (
        data.draw(st.none() | st.lists(CALLS, max_size=2) | ANY),
        data.draw(TEXTS | ANY),
        data.draw(METRICS),
    )
    try:
        rec.agent(text, calls, why, metrics)
    except UsageError:
        return
    results = data.draw(st.lists(RESULTS, max_size=2) | ANY)
    try:
        rec.observation(results)
    except UsageError:
        results = []

    def holds(step: Mapping[str, Any]) -> bool:
        stored = step.get("observation", {"results": []})["results"]
        return (
            content_held(text, step, "message")
            and same(why, step.get("reasoning_content"))
            and held(metrics or {}, step.get("metrics", {}))
            and all(map(call_held, calls or (), step.get("tool_calls", ())))
            and len(stored) == len(results)
            and all(map(result_held, results, stored))
        )

    yield holds


def result_held(result: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    link = result.get("tool_call_id", result.get("source_call_id"))
    rest = {name: value for name, value in result.items() if name not in ("tool_call_id", "source_call_id", "content")}
    if "tool_call_id" in result and rest.get("role") == "tool":
        del rest["role"]
    content = result.get("content")
    return same(link, stored.get("source_call_id")) and held(rest, stored) and content_held(content, stored, "content")
