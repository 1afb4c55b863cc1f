"""A streamed reply put together again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.runner.openai_stream import Reply, read

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **members}]}


def sent(*chunks: Any, done: bool = True, end: str = "\n") -> bytes:
    lines = [each if isinstance(each, str) else f"data: {json.dumps(each)}" for each in chunks]
    return "".join(line + end * 2 for line in [*lines, *(["data: [DONE]"] if done else [])]).encode()


def message(reply: Reply) -> dict[str, Any]:
    assert reply.completion is not None
    return reply.completion["choices"][0]["message"]


def part(index: int, **members: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **members}]}


@given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(TEXTS, max_size=4), st.data())
def test_texts_and_calls_come_out_as_they_were_cut(texts: list[str], arguments: list[str], data: Any) -> None:
    calls = [
        {"id": f"call-{number}", "type": "function", "function": {"name": "get", "arguments": text}}
        for number, text in enumerate(arguments)
    ]
    pieces = [{"content": text} for text in texts]
    for number, call in enumerate(calls):
        cut = data.draw(st.integers(0, len(call["function"]["arguments"])))
        first, rest = call["function"]["arguments"][:cut], call["function"]["arguments"][cut:]
        pieces.append(part(number, **{**call, "function": {"name": "get", "arguments": first}}))
        pieces.append(part(number, function={"arguments": rest}))
    reply = read(sent(chunk({"role": "assistant"}), *map(chunk, pieces), chunk({}, "stop")))
    assert reply.is_whole
    assert message(reply)["content"] == "".join(texts)
    assert message(reply).get("tool_calls", []) == calls


@given(st.binary(max_size=60), st.integers(0, 400))
def test_a_stream_that_ends_anywhere_is_read_to_there(noise: bytes, length: int) -> None:
    whole = sent(chunk({"content": "Dö"}), chunk({"content": "ne."}), chunk({}, "stop"))
    reply = read(whole[:length])
    if reply.completion is not None:
        assert "Döne.".startswith(message(reply)["content"])
    assert reply.is_whole <= (length > 200)
    read(whole[:length] + noise)


def test_calls_side_by_side_are_told_apart_by_their_index() -> None:
    pieces = [
        part(0, id="a", type="function", function={"name": "get", "arguments": ""}),
        part(1, id="b", type="function", function={"name": "put", "arguments": ""}),
        part(1, function={"arguments": "{}"}),
        part(0, function={"arguments": '{"x": 1}'}),
    ]
    calls = message(read(sent(*map(chunk, pieces))))["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", '{"x": 1}'), ("b", "{}")]
    assert "index" not in calls[0]


def test_calls_without_an_index_begin_with_a_new_id() -> None:
    pieces: list[dict[str, Any]] = [
        {"tool_calls": [{"id": "a", "function": {"name": "get", "arguments": "{"}}]},
        {"tool_calls": [{"function": {"arguments": "}"}}]},
        {"tool_calls": [{"id": "b", "function": {"name": "get", "arguments": "{}"}}]},
    ]
    calls = message(read(sent(*map(chunk, pieces))))["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]


def test_calls_of_one_index_are_told_apart_by_id_and_name() -> None:
    pieces = [
        part(0, id="a", type="function", function={"name": "get", "arguments": '{"x": 1}'}),
        part(0, id="b", type="function", function={"name": "get", "arguments": "{"}),
        part(0, function={"arguments": "}"}),
    ]
    calls = message(read(sent(*map(chunk, pieces))))["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", '{"x": 1}'), ("b", "{}")]


def test_an_id_and_a_name_that_come_late_begin_no_other_call() -> None:
    pieces = [part(0, function={"arguments": "{"}), part(0, id="a", function={"name": "f", "arguments": "}"})]
    [call] = message(read(sent(*map(chunk, pieces), chunk({}, "tool_calls"))))["tool_calls"]
    assert call == {"id": "a", "function": {"name": "f", "arguments": "{}"}}


def test_an_id_that_changes_with_each_piece_begins_no_call() -> None:
    pieces = [
        part(0, id="a", type="function", function={"name": "get", "arguments": "{"}),
        part(0, id="b", function={"name": None, "arguments": "}"}),
    ]
    (call,) = message(read(sent(*map(chunk, pieces))))["tool_calls"]
    assert (call["id"], call["function"]) == ("a", {"name": "get", "arguments": "{}"})


def test_what_a_server_says_again_with_each_piece_is_said_once() -> None:
    again = {"id": "a", "type": "function"}
    pieces = [part(0, **again, function={"name": "get", "arguments": text}) for text in ("{", "}")]
    (call,) = message(read(sent(*map(chunk, pieces))))["tool_calls"]
    assert call == {**again, "function": {"name": "get", "arguments": "{}"}}


def test_reasoning_refusal_log_probabilities_and_usage_are_kept() -> None:
    tokens = [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]
    reply = read(
        sent(
            chunk({"reasoning_content": "Hm"}, logprobs={"content": [tokens[0]], "refusal": None}),
            chunk({"reasoning_content": "m.", "refusal": "No."}, "stop", logprobs={"content": [tokens[1]]}),
            {**HEAD, "choices": [], "usage": {"prompt_tokens": 3}},
        )
    )
    assert message(reply) == {"reasoning_content": "Hmm.", "refusal": "No."}
    assert reply.completion is not None
    assert reply.completion["choices"][0]["logprobs"] == {"content": tokens, "refusal": None}
    assert (reply.completion["usage"], reply.completion["object"]) == ({"prompt_tokens": 3}, "chat.completion")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_the_format_allows(end: str) -> None:
    assert (
        message(read(sent(": hello", "event: x", chunk({"content": "a"}), chunk({}, "stop"), end=end)))["content"]
        == "a"
    )


def test_a_reply_without_a_mark_of_its_end_is_whole_by_its_reason() -> None:
    assert read(sent(chunk({"content": "a"}), chunk({}, "length"), done=False)).is_whole
    assert not read(sent(chunk({"content": "a"}), done=False)).is_whole
    assert read(b"") == Reply(None, is_whole=False)


def test_an_error_ends_the_reply() -> None:
    reply = read(sent(chunk({"content": "a"}), {"error": {"type": "overloaded"}}, chunk({"content": "b"})))
    assert (message(reply)["content"], reply.is_whole, reply.error) == ("a", False, {"type": "overloaded"})
