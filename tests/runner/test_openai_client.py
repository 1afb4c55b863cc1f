"""A run whose client is listened to: what its journal holds, what it proves, and what the program itself notices.

Every test drives the real SDK against a server of its own, over HTTP.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark.clock import FixedClock
from tracemark.errors import UsageError
from tracemark.harness.match import Contradiction
from tracemark.runner.record import Recorder

sys.path.insert(0, str(Path(__file__).parent))
import openai
import openai_server as says
from openai import AsyncOpenAI, OpenAI

KEY = "sk-not-to-be-written"
NO_PARSER = {"limits": {"steps": 5}}
OPENED: list[OpenAI] = []
CALLS = {"content": None, "tool_calls": [says.call("get", '{"key": "a"}')]}


@pytest.fixture
def server() -> Iterator[says.Server]:
    with says.serving() as running:
        yield running
        for client in OPENED:
            client.close()
        OPENED.clear()
    assert running.answers == []


@pytest.fixture
def start(make_harness: Any, tmp_path: Path) -> Any:
    """Return a function that makes a recorder of a harness without a parser."""

    def make(**members: Any) -> Recorder:
        harness = make_harness(**{"runtime": NO_PARSER, **members})
        clock = FixedClock("2026-01-01T00:00:00Z", 1)
        return tracemark.record(harness, tmp_path / "inbox", run={"task": "t-1"}, clock=clock)

    return make


def client_of(rec: Recorder, server: says.Server, **options: Any) -> OpenAI:
    OPENED.append(OpenAI(**{"base_url": server.url, "api_key": KEY, "max_retries": 0, **options}))
    return rec.openai(OPENED[-1])


def opening(rec: Recorder) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": rec.prompt("system").render(today="Monday")},
        {"role": "user", "content": rec.prompt("task").render(request="Read a.", urgent=False)},
    ]


def loop(rec: Recorder, client: OpenAI, messages: list[dict[str, Any]], stream: bool = False) -> list[dict[str, Any]]:
    """The user's own loop: it knows nothing of the recording but the harness's parts."""
    tools = rec.tools()
    while True:
        if stream:
            with client.chat.completions.stream(model=says.MODEL, messages=messages, tools=tools) as pieces:
                message = pieces.get_final_completion().choices[0].message
        else:
            message = (
                client.chat.completions.create(model=says.MODEL, messages=messages, tools=tools).choices[0].message
            )
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return messages
        for each in message.tool_calls:
            raw = rec.tool(each.function.name)("desk", **json.loads(each.function.arguments))
            messages.append({"role": "tool", "tool_call_id": each.id, "content": rec.handler("show")(raw)})


def events(rec: Recorder, kind: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in rec.path.read_bytes().splitlines()]
    return [event for event in found if kind is None or event["event"] == kind]


def steps(rec: Recorder) -> list[dict[str, Any]]:
    return [event["step"] for event in events(rec, "step")]


def evidence(rec: Recorder) -> set[str]:
    return {event["evidence"] for event in events(rec, "evidence")}


@pytest.mark.parametrize("stream", [False, True])
def test_a_loop_is_recorded_with_every_part_of_its_harness(start: Any, server: says.Server, stream: bool) -> None:
    if stream:
        first = says.stream(
            {"role": "assistant", "content": None},
            {"tool_calls": [{"index": 0, **says.call("get", "")}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"key"'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ': "a"}'}}]},
            finish_reason="tool_calls",
        )
        server.says(first, says.stream({"content": "Dö"}, {"content": "ne."}))
    else:
        server.says(says.completion(CALLS, "tool_calls"), says.completion({"content": "Döne."}))
    with start() as rec:
        messages = loop(rec, client_of(rec, server), opening(rec), stream)
    assert rec.contradictions == ()
    parts = {(name, part) for name, each in rec.harness.identity.parts.items() for part in each}
    assert {(event["component"], event["part"]) for event in events(rec, "evidence")} == parts
    assert evidence(rec) == {"recorded"}
    made = steps(rec)
    assert [step["source"] for step in made] == ["system", "user", "agent", "agent"]
    assert [step["message"] for step in made] == [messages[0]["content"], messages[1]["content"], "", "Döne."]
    (call,) = made[2]["tool_calls"]
    assert (call["arguments"], call["extra"]) == ({"key": "a"}, {"arguments": '{"key": "a"}'})
    assert made[3]["metrics"]["prompt_tokens"] == (7 if stream else 11)
    assert made[3]["model_name"] == says.ANSWERED
    assert made[3]["extra"]["finish_reason"] == "stop"
    assert events(rec, "observation")[0]["results"] == [{"source_call_id": "call-1", "content": "> alp"}]
    assert KEY not in rec.path.read_text()


def test_the_program_sees_what_it_would_have_seen_without_the_recording(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}), says.completion({"content": "Yes."}))
    asked: dict[str, Any] = {"model": says.MODEL, "temperature": 0.5, "extra_body": {"top_k": 3}}
    with start() as rec:
        listened = client_of(rec, server)
        plain = OPENED[-1]
        asked["messages"] = opening(rec)
        ours = listened.chat.completions.create(**asked)
        theirs = plain.chat.completions.create(**asked)
    assert ours == theirs
    assert type(listened) is OpenAI
    assert server.requests[0] == server.requests[1]
    assert len(steps(rec)) == 3


def test_an_asynchronous_client_is_recorded_too(start: Any, server: says.Server) -> None:
    server.says(says.completion(CALLS, "tool_calls"), says.stream({"content": "Do"}, {"content": "ne."}))

    async def play(rec: Recorder) -> str:
        async with rec.openai(AsyncOpenAI(base_url=server.url, api_key=KEY)) as client:
            messages, tools = opening(rec), rec.tools()
            create = client.chat.completions.create
            reply = (await create(model=says.MODEL, messages=messages, tools=tools)).choices[0].message
            content = rec.handler("show")(rec.tool("get")("desk", key="a"))
            messages += [reply, {"role": "tool", "tool_call_id": "call-1", "content": content}]
            pieces = await create(model=says.MODEL, messages=messages, tools=tools, stream=True)
            return "".join([piece.choices[0].delta.content or "" async for piece in pieces if piece.choices])

    with start() as rec:
        assert asyncio.run(play(rec)) == "Done."
    assert steps(rec)[-1]["message"] == "Done."
    assert evidence(rec) == {"recorded"}


@pytest.mark.parametrize("way", ["raw", "streamed", "parse", "options"])
def test_no_way_of_the_sdk_leads_around_the_recording(start: Any, server: says.Server, way: str) -> None:
    server.says(says.completion({"content": '{"answer": 1}'}))
    with start() as rec:
        client = client_of(rec, server)
        asked: dict[str, Any] = {"model": says.MODEL, "messages": opening(rec), "tools": rec.tools()}
        if way == "raw":
            client.chat.completions.with_raw_response.create(**asked).parse()
        elif way == "streamed":
            with client.chat.completions.with_streaming_response.create(**asked) as response:
                response.parse()
        elif way == "parse":
            asked["tools"] = [{**tool, "function": {**tool["function"], "strict": True}} for tool in asked["tools"]]
            client.chat.completions.parse(**asked)
        else:
            client.with_options(timeout=5).chat.completions.create(**asked)
    assert steps(rec)[-1]["message"] == '{"answer": 1}'


def test_a_compressed_reply_is_read(start: Any, server: says.Server) -> None:
    answer = says.completion({"content": "Yes."})
    answer.zipped = True
    server.says(answer)
    with start() as rec:
        create = client_of(rec, server).chat.completions.with_streaming_response.create
        asked = create(model=says.MODEL, messages=opening(rec))
        with asked as response:
            response.read()
    assert steps(rec)[-1]["message"] == "Yes."


def test_what_a_reply_says_beside_its_text_is_kept(start: Any, server: says.Server) -> None:
    token = {"token": "No", "logprob": -0.25, "bytes": None, "top_logprobs": []}
    answer = says.completion({"content": None, "refusal": "No.", "reasoning_content": "Hm."}, system_fingerprint="fp")
    answer.body["choices"][0]["logprobs"] = {"content": [token]}
    server.says(answer)
    with start() as rec:
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec), seed=7)
    step = steps(rec)[-1]
    assert step["reasoning_content"] == "Hm."
    assert step["extra"]["refusal"] == "No."
    assert step["extra"]["response"] == {"id": "chatcmpl-1", "created": 1, "system_fingerprint": "fp"}
    assert step["extra"]["logprobs"]["content"] == [token]
    assert step["metrics"]["logprobs"] == [-0.25]
    (facts,) = events(rec, "facts")
    assert facts["run"] == {"model": {"name": says.MODEL, "revision": says.ANSWERED}, "sampling": {"seed": 7}}


def test_parameters_and_models_that_change_are_told(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "One."}), says.completion({"content": "Two."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        create(model=says.MODEL, messages=messages, temperature=0)
        more = [*messages, {"role": "assistant", "content": "One."}, {"role": "user", "content": "Go on."}]
        create(model="other", messages=more, temperature=1)
    assert steps(rec)[-1]["extra"]["sampling"] == {"temperature": 1}
    first = {"model": {"name": says.MODEL, "revision": says.ANSWERED}, "sampling": {"temperature": 0}}
    later = {"model": {"name": f"{says.MODEL} + other"}}
    assert [event["run"] for event in events(rec, "facts")] == [first, later]


def test_what_the_run_states_stands_and_what_was_sent_is_told_at_the_step(make_harness: Any, tmp_path: Path) -> None:
    run = {"task": "t", "model": {"name": "ours"}, "sampling": {"temperature": 1}}
    with (
        says.serving(says.completion({"content": "Yes."})) as server,
        OpenAI(base_url=server.url, api_key=KEY) as plain,
        tracemark.record(make_harness(), tmp_path / "inbox", run) as rec,
    ):
        rec.openai(plain).chat.completions.create(model=says.MODEL, messages=opening(rec), temperature=0)
    assert events(rec, "facts") == []
    assert steps(rec)[-1]["extra"]["sampling"] == {"temperature": 0}
    assert steps(rec)[-1]["model_name"] == says.ANSWERED


def test_another_system_prompt_than_the_harness_gave_is_a_contradiction(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}))
    with start() as rec:
        messages = opening(rec)
        messages[0]["content"] += " Be brief."
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=messages, tools=rec.tools())
    assert [(each.component, each.part) for each in rec.contradictions] == [("prompt_templates", "system")]
    assert steps(rec)[0]["message"].endswith("Be brief.")


def test_a_system_prompt_that_changes_during_the_run_is_a_contradiction(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "One."}), says.completion({"content": "Two."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        create(model=says.MODEL, messages=messages, tools=rec.tools())
        messages += [{"role": "assistant", "content": "One."}, {"role": "user", "content": "Go on."}]
        messages[0] = {"role": "system", "content": "Be brief."}
        create(model=says.MODEL, messages=messages, tools=rec.tools())
    assert [(each.component, each.part) for each in rec.contradictions] == [("prompt_templates", "system-2")]
    assert steps(rec)[-1]["extra"]["context_management"] == {"boundary": "replace"}


def test_a_developer_speaks_for_the_harness_as_the_system_does(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}))
    with start() as rec:
        system, task = opening(rec)
        messages = [{**system, "role": "developer"}, task]
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=messages)
    first = steps(rec)[0]
    assert (first["source"], first["extra"]) == ("system", {"role": "developer"})
    assert {event["evidence"] for event in events(rec, "evidence") if event["part"] == "system"} == {"recorded"}
    assert rec.contradictions == ()


def test_tools_that_the_harness_does_not_bind_are_a_contradiction(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}))
    other = {"type": "function", "function": {"name": "drop", "parameters": {"type": "object", "properties": {}}}}
    with start() as rec:
        client_of(rec, server).chat.completions.create(
            model=says.MODEL, messages=opening(rec), tools=[*rec.tools(), other]
        )
    assert [(each.component, each.part) for each in rec.contradictions] == [("tool_bindings", "drop")]


@pytest.mark.parametrize(
    ("declared", "stop", "contradicted"),
    [
        (["END"], ["END", "STOP"], True),
        (["END"], "STOP", True),
        ([], "STOP", True),
        (["END", "STOP"], "STOP", False),
        (["END"], None, False),
        (None, "STOP", False),
    ],
)
def test_the_model_is_asked_to_stop_where_the_harness_says(
    start: Any, server: says.Server, declared: Any, stop: Any, contradicted: bool
) -> None:
    server.says(says.completion({"content": "Yes."}))
    with start(runtime={"limits": {"steps": 5, "stop_strings": declared}}) as rec:
        client_of(rec, server).chat.completions.create(
            model=says.MODEL, messages=opening(rec), tools=rec.tools(), stop=stop
        )
    text = "the model was asked to stop at 'STOP', which is not declared"
    assert rec.contradictions == ((Contradiction("runtime", "limits", 3, text),) if contradicted else ())


def test_tools_that_were_asked_for_and_not_sent_are_claimed(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}))
    with start() as rec:
        rec.tools()
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec))
    assert events(rec, "evidence")[-1] == {
        "event": "evidence", "component": "tool_bindings", "part": "get", "evidence": "claimed",
    }  # fmt: skip


def test_tools_answered_by_other_code_are_claimed(start: Any, server: says.Server) -> None:
    server.says(says.completion(CALLS, "tool_calls"), says.completion({"content": "Done."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages, tools = opening(rec), rec.tools()
        create(model=says.MODEL, messages=messages, tools=tools)
        messages += [{"role": "assistant", **CALLS}, {"role": "tool", "tool_call_id": "call-1", "content": "made up"}]
        create(model=says.MODEL, messages=messages, tools=tools)
    assert {"component": "tool_bindings", "part": "get", "evidence": "claimed", "event": "evidence"} in events(rec)
    assert rec.contradictions == ()


def test_a_failed_call_is_told_and_sent_anew_recorded_once(start: Any, server: says.Server) -> None:
    failed = says.Answer({"error": {"message": f"bad key {KEY}", "type": "server_error", "code": None}}, status=500)
    server.says(failed, says.completion({"content": "Yes."}))
    with start() as rec:
        client_of(rec, server, max_retries=1).chat.completions.create(model=says.MODEL, messages=opening(rec))
    (told,) = events(rec, "call")
    assert told["call"] == {
        "after": 0, "kind": "failed", "status": 500, "error": {"type": "server_error"}, "model": says.MODEL,
    }  # fmt: skip
    assert [step["source"] for step in steps(rec)] == ["system", "user", "agent"]
    assert KEY not in rec.path.read_text()


def test_an_error_reaches_the_program_and_what_was_sent_in_vain_is_kept(start: Any, server: says.Server) -> None:
    server.says(says.Answer({"error": {"type": "invalid", "message": "no"}}, status=400))
    with pytest.raises(openai.BadRequestError), start() as rec:
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec))
    assert [step["source"] for step in steps(rec)] == ["system", "user"]
    assert events(rec, "outcome")[0]["outcome"]["status"] == "error"


def test_a_server_that_is_not_there_is_told(start: Any, server: says.Server) -> None:
    with start() as rec:
        client, messages = client_of(rec, server, base_url="http://127.0.0.1:9/v1"), opening(rec)
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model=says.MODEL, messages=messages)
    assert events(rec, "call")[0]["call"]["error"] == {"type": "ConnectError"}


def test_a_stream_that_breaks_off_is_told_beside_the_steps(start: Any, server: says.Server) -> None:
    cut = says.stream({"content": "Ye"}, finish_reason=None, done=False, cut=True)
    server.says(cut, says.completion({"content": "Yes."}))
    with start() as rec:
        client = client_of(rec, server)
        messages = opening(rec)
        with pytest.raises(openai.APIConnectionError):
            for _ in client.chat.completions.create(model=says.MODEL, messages=messages, stream=True):
                pass
        client.chat.completions.create(model=says.MODEL, messages=messages)
    assert [step["message"] for step in steps(rec)][2:] == ["Yes."]
    assert events(rec, "call")[0]["call"]["response"]["choices"][0]["message"] == {"content": "Ye"}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stream_that_the_program_leaves_is_a_marked_step_where_the_run_goes_on_from_it(
    start: Any, server: says.Server, at_once: bool
) -> None:
    server.says(
        says.stream({"content": "Ye"}, {"content": "s."}, at_once=at_once),
        says.stream({"content": "All"}, {"content": " on."}, at_once=at_once),
    )
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        with create(model=says.MODEL, messages=messages, stream=True) as pieces:
            first = next(iter(pieces)).choices[0].delta.content
        messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "And?"}]
        with create(model=says.MODEL, messages=messages, stream=True) as pieces:
            next(iter(pieces))
    left = [step for step in steps(rec) if step["source"] == "agent"]
    assert [step["message"] for step in left] == ["Ye", "All"]
    assert all(step["extra"]["broken_off"] for step in left)
    assert rec.contradictions == ()


@pytest.mark.parametrize("read", [1, 2, 3])
def test_a_stream_that_the_program_leaves_open_is_in_its_place(start: Any, server: says.Server, read: int) -> None:
    server.says(says.stream({"content": "Ye"}, {"content": "s."}), says.completion({"content": "All on."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        left = create(model=says.MODEL, messages=messages, stream=True)
        seen = "".join(piece.choices[0].delta.content or "" for piece in itertools.islice(left, read))
        messages += [{"role": "assistant", "content": seen}, {"role": "user", "content": "And?"}]
        create(model=says.MODEL, messages=messages)
        left.close()
    assert [step["message"] for step in steps(rec)][2:] == [seen, "And?", "All on."]
    assert steps(rec)[2].get("extra", {}).get("broken_off") is (None if read == 3 else True)
    assert "llm_call_count" not in steps(rec)[2]
    assert (rec.contradictions, events(rec, "call")) == ((), [])


@pytest.mark.parametrize("read", [1, 2])
def test_a_stream_that_is_left_open_for_the_same_request_again_is_no_step(
    start: Any, server: says.Server, read: int
) -> None:
    server.says(says.stream({"content": "Ye"}, {"content": "s."}), says.completion({"content": "No."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        left = create(model=says.MODEL, messages=messages, stream=True)
        assert len(list(itertools.islice(left, read))) == read
        create(model=says.MODEL, messages=messages)
    left.close()
    assert rec.contradictions == ()
    assert [step["message"] for step in steps(rec)][2:] == ["No."]
    [told] = events(rec, "call")
    assert told["call"]["kind"] == "broken-off"


@pytest.mark.parametrize(("read", "expected"), [(0, []), (1, ["Ye"]), (2, ["Yes."])])
def test_a_stream_that_is_open_at_the_end_is_recorded_as_far_as_it_was_read(
    start: Any, server: says.Server, read: int, expected: list[str]
) -> None:
    server.says(says.stream({"content": "Ye"}, {"content": "s."}))
    with start() as rec:
        left = client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec), stream=True)
        assert len(list(itertools.islice(left, read))) == read
    left.close()
    assert [step["message"] for step in steps(rec)][2:] == expected
    assert [each["call"]["kind"] for each in events(rec, "call")] == ([] if expected else ["failed"])


@pytest.mark.parametrize(
    "again",
    [
        {"content": ""},
        {"content": [{"type": "text", "text": ""}]},
        {"refusal": None, "tool_calls": [says.call("get", '{"key":"a"}')]},
    ],
)
def test_a_reply_that_is_sent_again_in_other_words_of_the_same_meaning_is_the_reply(
    start: Any, server: says.Server, again: dict[str, Any]
) -> None:
    server.says(says.completion(CALLS, "tool_calls"), says.completion({"content": "Done."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        create(model=says.MODEL, messages=messages)
        answer = {"role": "tool", "tool_call_id": "call-1", "content": "> alp"}
        create(model=says.MODEL, messages=[*messages, {"role": "assistant", **CALLS, **again}, answer])
    assert rec.contradictions == ()
    assert [step["source"] for step in steps(rec)] == ["system", "user", "agent", "agent"]
    assert events(rec, "observation")[0]["results"] == [{"source_call_id": "call-1", "content": "> alp"}]


def test_an_answer_to_no_call_of_the_reply_is_kept_without_its_link(start: Any, server: says.Server) -> None:
    server.says(says.completion(CALLS, "tool_calls"), says.completion({"content": "Done."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        create(model=says.MODEL, messages=messages)
        answer = {"role": "tool", "tool_call_id": "another", "content": "> alp"}
        create(model=says.MODEL, messages=[*messages, {"role": "assistant", **CALLS}, answer])
    assert events(rec, "observation")[0]["results"] == [{"content": "> alp", "extra": {"original_call_id": "another"}}]


def test_a_stream_that_nobody_reads_leaves_the_run_readable(start: Any, server: says.Server) -> None:
    server.says(says.stream({"content": "Yes."}))
    with start() as rec:
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec), stream=True).close()
    assert events(rec, "call")[0]["call"]["kind"] == "failed"
    assert [step["source"] for step in steps(rec)] == ["system", "user"]


def test_an_error_inside_a_stream_reaches_the_program_and_is_told(start: Any, server: says.Server) -> None:
    server.says(says.Answer(chunks=[{"error": {"type": "overloaded", "message": KEY}}]))
    with start() as rec, pytest.raises(openai.APIError):
        list(client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec), stream=True))
    assert events(rec, "call")[0]["call"]["error"] == {"type": "overloaded"}
    assert KEY not in rec.path.read_text()


def test_a_call_of_another_agent_is_kept_beside_the_steps(start: Any, server: says.Server) -> None:
    server.says(*(says.completion({"content": text}) for text in ("One.", "A title", "Two.")))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec)
        create(model=says.MODEL, messages=messages, tools=rec.tools())
        title = [{"role": "system", "content": "Name this chat."}, {"role": "user", "content": "Read a."}]
        create(model="small", messages=title)
        messages += [{"role": "assistant", "content": "One."}, {"role": "user", "content": "Go on."}]
        create(model=says.MODEL, messages=messages, tools=rec.tools())
    assert [step["message"] for step in steps(rec)][2:] == ["One.", "Go on.", "Two."]
    (told,) = events(rec, "call")
    assert (told["call"]["kind"], told["call"]["after"]) == ("another-agent", 3)
    assert told["call"]["request"] == {"model": "small", "messages": title}
    assert told["call"]["response"]["choices"][0]["message"]["content"] == "A title"
    assert rec.contradictions == ()


@pytest.mark.parametrize("rendered_before", [False, True])
def test_a_call_of_another_agent_in_front_of_the_agents_own_is_a_contradiction(
    start: Any, server: says.Server, rendered_before: bool
) -> None:
    server.says(says.completion({"content": "A title"}), says.completion({"content": "One."}))
    with start() as rec:
        create = client_of(rec, server).chat.completions.create
        messages = opening(rec) if rendered_before else None
        create(model="small", messages=[{"role": "user", "content": "Name this chat."}])
        create(model=says.MODEL, messages=messages or opening(rec), tools=rec.tools())
    assert [(each.component, each.part) for each in rec.contradictions][-1] == ("runtime", "recording")


def cut_history(rec: Recorder, server: says.Server, manage: Any) -> None:
    server.says(says.completion({"content": "One."}), says.completion({"content": "Two."}))
    create = client_of(rec, server).chat.completions.create
    messages = opening(rec)
    create(model=says.MODEL, messages=messages, tools=rec.tools())
    create(model=says.MODEL, messages=manage([*messages, {"role": "assistant", "content": "One."}]), tools=rec.tools())


def test_a_context_that_the_program_rewrites_is_a_contradiction_and_marks_the_step(
    start: Any, server: says.Server
) -> None:
    with start() as rec:
        cut_history(rec, server, lambda messages: [messages[0], {"role": "user", "content": "So far: One."}])
    assert [(each.component, each.part) for each in rec.contradictions] == [("runtime", "context_manager")]
    made = steps(rec)
    assert [step["message"] for step in made][3:] == ["So far: One.", "Two."]
    assert made[-1]["extra"]["context_management"] == {"boundary": "replace"}


def test_a_context_that_the_harness_rewrites_only_marks_the_step(start: Any, server: says.Server) -> None:
    code = {"cutting.py": "def cut(messages):\n    return [messages[0], {'role': 'user', 'content': 'So far: One.'}]\n"}
    runtime = {**NO_PARSER, "context_manager": "cutting.py:cut"}
    with start(files=code, runtime=runtime) as rec:
        cut_history(rec, server, rec.runtime("context_manager"))
    assert rec.contradictions == ()
    assert steps(rec)[-1]["extra"]["context_management"] == {"boundary": "replace"}


def test_a_context_manager_that_changed_nothing_stands_for_no_later_rewriting(start: Any, server: says.Server) -> None:
    code = {"keeping.py": "def keep(messages):\n    return messages\n"}
    with start(files=code, runtime={**NO_PARSER, "context_manager": "keeping.py:keep"}) as rec:
        rec.runtime("context_manager")([])
        cut_history(rec, server, lambda messages: [messages[0], {"role": "user", "content": "So far: One."}])
    assert [(each.component, each.part) for each in rec.contradictions] == [("runtime", "context_manager")]


def test_a_reply_that_is_thrown_away_is_recovery(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "??"}), says.completion({"content": "Two."}))
    with start() as rec:
        for _ in range(2):
            client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec))
    assert [(each.component, each.part) for each in rec.contradictions] == [("runtime", "recovery")]
    assert [step["message"] for step in steps(rec)][2:] == ["??", "Two."]


def test_an_assistant_that_the_program_speaks_for_is_no_reply_of_the_model(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "Yes."}))
    with start() as rec:
        system, task = opening(rec)
        shown = [{"role": "assistant", **CALLS}, {"role": "tool", "tool_call_id": "call-1", "content": "> alp"}]
        messages = [system, {"role": "user", "content": "Read b."}, *shown, task]
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=messages)
    made = steps(rec)
    assert [step.get("llm_call_count") for step in made] == [None, None, 0, None, None]
    assert events(rec, "observation")[0]["results"][0]["content"] == "> alp"


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, _: client.responses.create(model=says.MODEL, input="Hi."),
        lambda client, _: client.completions.create(model=says.MODEL, prompt="Hi."),
        lambda client, messages: client.chat.completions.create(model=says.MODEL, messages=messages, n=2),
        lambda client, messages: client.chat.completions.create(model=says.MODEL, messages=messages, functions=[]),
        lambda client, _: client.chat.completions.create(
            model=says.MODEL, messages=[{"role": "stranger", "content": ""}]
        ),
        lambda client, _: client.post("/something/new", cast_to=object, body={}),
    ],
    ids=["responses", "completions", "two-replies", "functions", "role", "unknown"],
)
def test_what_cannot_be_recorded_is_refused_before_it_is_sent(start: Any, server: says.Server, ask: Any) -> None:
    with start() as rec:
        messages = opening(rec)
        with pytest.raises(UsageError):
            ask(client_of(rec, server), messages)
    assert server.requests == []


@pytest.mark.parametrize("place", ["/models/small", "/files", "/images/v1", "/vector_stores/v1", "/audio"])
def test_the_address_of_a_server_lets_nothing_pass(start: Any, server: says.Server, place: str) -> None:
    with start() as rec:
        client = client_of(rec, server, base_url=server.url + place)
        with pytest.raises(UsageError, match="cannot be recorded"):
            client.responses.create(model=says.MODEL, input="Hi.")
        with pytest.raises(UsageError, match="cannot be recorded"):
            client.completions.create(model=says.MODEL, prompt="Hi.")
    assert server.requests == []


@pytest.mark.parametrize("path", ["/images/generations", "/vector_stores/vs-1/files", "/uploads/up-1/parts", "/files"])
def test_what_gives_no_reply_of_a_model_passes_wherever_the_server_is(
    start: Any, server: says.Server, path: str
) -> None:
    server.says(says.Answer({}))
    with start() as rec:
        client_of(rec, server, base_url=server.url + "/models/small").post(path, cast_to=object, body={})
    assert steps(rec) == []


def test_what_gives_no_reply_of_a_model_passes(start: Any, server: says.Server) -> None:
    server.says(says.Answer({"object": "list", "data": [], "model": "e", "usage": {}}))
    with start() as rec:
        client_of(rec, server).embeddings.create(model="e", input="Hi.", encoding_format="float")
    assert steps(rec) == []


def test_a_reply_that_a_trace_cannot_hold_is_raised_at_the_end_and_contradicts(start: Any, server: says.Server) -> None:
    twice = {"content": None, "tool_calls": [says.call("get", "{}"), says.call("get", "{}")]}
    server.says(says.completion(twice))
    rec = start()
    with pytest.raises(UsageError, match="share the id"):
        ask_once(rec, server)
    assert [(each.component, each.part) for each in rec.contradictions] == [("runtime", "recording")]


@pytest.mark.parametrize(
    "piece",
    [{"index": [0], "delta": {"content": "Yes."}}, {"index": 0, "delta": {"tool_calls": [{"index": 0}, {"id": "a"}]}}],
)
def test_a_stream_that_cannot_be_put_together_reaches_the_program_whole(
    start: Any, server: says.Server, piece: dict[str, Any]
) -> None:
    server.says(says.Answer(chunks=[{"choices": [piece]}, {"choices": [{**piece, "index": "0"}]}, "data: [DONE]"]))
    rec = start()
    with pytest.raises(UsageError, match="a call could not be recorded"):
        stream_once(rec, server)
    assert [(each.component, each.part) for each in rec.contradictions] == [("runtime", "recording")]


def stream_once(rec: Recorder, server: says.Server) -> None:
    with rec:
        pieces = client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec), stream=True)
        assert len(list(pieces)) == 2


def ask_once(rec: Recorder, server: says.Server) -> None:
    with rec:
        reply = client_of(rec, server).chat.completions.create(model=says.MODEL, messages=opening(rec))
        assert len(reply.choices[0].message.tool_calls or ()) == 2


def test_behind_the_end_of_its_block_a_client_sends_nothing(start: Any, server: says.Server) -> None:
    with start() as rec:
        client, messages = client_of(rec, server), opening(rec)
    with pytest.raises(UsageError, match="not open"):
        client.chat.completions.create(model=says.MODEL, messages=messages)
    assert server.requests == []


def test_requests_side_by_side_leave_a_journal_that_can_be_read(start: Any, server: says.Server) -> None:
    server.says(*(says.completion({"content": f"{number}."}) for number in range(4)))
    with start() as rec:
        client, messages = client_of(rec, server), opening(rec)
        ask = lambda: client.chat.completions.create(model=says.MODEL, messages=messages)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(step["message"] for step in steps(rec) if step["source"] == "agent") == ["0.", "1.", "2.", "3."]
    assert [(each.component, each.part) for each in rec.contradictions][:1] == [("runtime", "recovery")]


def test_two_clients_of_one_recording_hold_one_conversation(start: Any, server: says.Server) -> None:
    server.says(says.completion({"content": "One."}), says.completion({"content": "Two."}))
    with start() as rec:
        messages = opening(rec)
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=messages)
        messages += [{"role": "assistant", "content": "One."}, {"role": "user", "content": "Go on."}]
        client_of(rec, server).chat.completions.create(model=says.MODEL, messages=messages)
    assert [step["message"] for step in steps(rec)][2:] == ["One.", "Go on.", "Two."]


def test_instructions_that_are_left_out_later_are_a_contradiction(start: Any, server: says.Server) -> None:
    with start() as rec:
        cut_history(rec, server, lambda messages: messages[1:])
    assert [(each.component, each.part) for each in rec.contradictions] == [("prompt_templates", "system")]


def test_what_the_client_records_is_not_recorded_by_hand_as_well(start: Any, server: says.Server) -> None:
    with start() as rec:
        client_of(rec, server)
        with pytest.raises(UsageError, match="a client is listened to"):
            rec.user("Read a.")


@pytest.mark.parametrize("thing", [None, object(), "client"])
def test_what_is_no_client_is_refused(start: Any, thing: Any) -> None:
    with start() as rec, pytest.raises(UsageError, match="OpenAI client is needed"):
        rec.openai(thing)


def test_importing_tracemark_and_its_recorder_loads_no_sdk() -> None:
    program = (
        "import sys, tracemark, tracemark.runner.record;"
        "sys.exit(any(name.partition('.')[0] in ('openai', 'httpx', 'httpx2') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
