"""Nothing of a chat record is lost in silence: each value is in the trace, or named in its repairs."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Imported, Record
from tracemark.importers.openai_chat import IMPORTER

USER = {"role": "user", "content": "Where is it?"}
DONE = {"role": "assistant", "content": "Done."}


def read(value: Any) -> Any:
    [item] = IMPORTER.read(Record(json.dumps(value).encode(), "a.jsonl", "a.jsonl:1"))
    return item


def trace(value: Any) -> Imported:
    item = read(value)
    assert isinstance(item, Imported), item
    return item


def kept(item: Imported) -> Any:
    return item.trajectory.get("extra", {}).get("record")


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


# the tools of a request


@pytest.mark.parametrize("name", ["tools", "tool_defs", "functions"])
@pytest.mark.parametrize("as_text", [False, True])
def test_tools_that_stand_in_kwargs_alone_are_the_tools(name: str, as_text: bool) -> None:
    tools = [tool("a"), tool("b")]
    item = trace({"messages": [USER, DONE], "kwargs": {name: json.dumps(tools) if as_text else tools, "top_p": 1}})
    assert item.trajectory["agent"]["tool_definitions"] == tools
    assert [entry["part"] for entry in item.observed["tool_bindings"]] == ["a", "b"]
    assert kept(item) is None
    assert ("repairs" in item.source) == as_text


def test_no_tools_in_kwargs_are_known_empty() -> None:
    item = trace({"messages": [USER, DONE], "kwargs": {"tools": []}})
    assert item.content.tools == []


def test_a_second_copy_of_the_tools_is_dropped_and_another_list_is_kept_and_named() -> None:
    one, other = [tool("a")], [tool("b")]
    item = trace({"messages": [USER, DONE], "tools": one, "kwargs": {"tools": one}})
    assert (kept(item), item.source.get("repairs")) == (None, None)
    item = trace({"messages": [USER, DONE], "tools": one, "kwargs": {"tools": other, "functions": "none"}})
    assert item.trajectory["agent"]["tool_definitions"] == one
    assert kept(item) == {"kwargs": {"tools": other, "functions": "none"}}
    assert item.source["repairs"] == ["kwargs.tools differs from the tools that were read: kept in extra.record"]


def test_a_parameter_that_is_stated_twice_and_differs_is_kept_and_named() -> None:
    stated = {"temperature": 0.5, "top_p": 1, "n": 1}
    item = trace({"messages": [USER], **stated, "kwargs": {"temperature": 0.7, "top_p": 1, "n": None, "user": "u"}})
    assert item.run["sampling"] == {"temperature": 0.7, "top_p": 1, "n": 1, "user": "u"}
    assert kept(item) == {"temperature": 0.5, "kwargs": {"n": None}}
    assert item.source["repairs"] == ["kwargs.temperature differs from temperature: the latter is kept in extra.record"]


# the response


def choice(text: str, **members: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, **members}


def test_the_other_choices_of_a_response_are_kept() -> None:
    items = [
        trace({"messages": [USER], "response": {"choices": [choice("one", index=0), choice(text, index=1)]}})
        for text in ("two", "three")
    ]
    assert [item.trajectory["steps"][-1]["message"] for item in items] == ["one", "one"]
    assert kept(items[0])["response"] == {"choices": [{"index": 0}, choice("two", index=1)]}
    assert items[0].trajectory_bytes != items[1].trajectory_bytes


def test_of_a_raw_response_all_but_its_message_is_kept() -> None:
    raw = {"id": "r", "usage": {"total": 3}, "choices": [choice("<f>", finish_reason="stop"), choice("other")]}
    response = {"choices": [choice("")]}
    item = trace({"messages": [USER], "raw_messages": [USER], "raw_response": raw, "response": response})
    assert item.trajectory["steps"][-1]["message"] == "<f>"
    assert kept(item) == {
        "raw_messages": [USER],
        "raw_response": {**raw, "choices": [{"finish_reason": "stop"}, choice("other")]},
        "response": response,
    }


@pytest.mark.parametrize("usage", ["none", [1], {}, 7])
def test_usage_and_model_of_another_kind_stay_in_the_response(usage: Any) -> None:
    item = trace({"messages": [USER], "response": {"choices": [choice("x")], "usage": usage, "model": ["m"]}})
    assert kept(item)["response"] == {"choices": [{}], "usage": usage, "model": ["m"]}


def test_a_model_that_the_message_names_itself_does_not_hide_that_of_the_response() -> None:
    said = {"role": "assistant", "content": "x", "model": "own"}
    item = trace({"messages": [USER], "response": {"choices": [{"message": said}], "model": "other"}})
    assert item.trajectory["steps"][-1]["model_name"] == "own"
    assert kept(item)["response"]["model"] == "other"


# verdicts, messages, calls


def test_a_reward_that_another_verdict_overrules_stays_in_the_record() -> None:
    item = trace({"messages": [USER, DONE], "reward": True, "success": False})
    assert item.outcome == {"status": "failure", "rule": "success"}
    assert kept(item) == {"reward": True}
    item = trace({"messages": [USER, DONE], "score": False, "error": "timeout"})
    assert item.outcome == {"status": "error", "rule": "error", "termination": "timeout"}
    assert kept(item) == {"score": False, "error": "timeout"}


def test_the_kind_of_a_text_part_that_atif_has_not_is_kept() -> None:
    content = [{"type": "input_text", "text": "a"}]
    [step] = trace([{"role": "user", "content": content}]).trajectory["steps"]
    assert (step["message"], step["extra"]) == ([{"type": "text", "text": "a"}], {"original_content": content})


def test_a_member_never_takes_the_place_of_what_an_importer_notes() -> None:
    call = {"id": 5, "original_id": "mine", "name": "outer", "function": {"name": "f", "arguments": "bad", "x": 1}}
    message = {"role": "ai", "content": None, "original_content": "y", "tool_calls": [call]}
    [step] = trace([message]).trajectory["steps"]
    assert step["extra"] == {"role": "ai", "original_content": None, "original_content_": "y"}
    assert step["tool_calls"][0]["extra"] == {
        "beside_function": {"name": "outer"},
        "arguments": "bad",
        "original_id": 5,
        "original_id_": "mine",
        "x": 1,
    }


# any record

ANY = st.recursive(
    st.sampled_from(["@text", "@text", "@number", "@json", "@words"]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "name", "type", "original_id", "x"]), inner, min_size=1, max_size=2)
    ),
    max_leaves=3,
)


def holding(required: dict[str, Any], *names: str, **strategies: Any) -> Any:
    """Return a strategy for objects: some members always, others perhaps, of any kind where no strategy is given."""
    fixed = {name: st.just(value) if isinstance(value, str) else value for name, value in required.items()}
    return st.fixed_dictionaries(fixed, optional={**dict.fromkeys(names, ANY), **strategies})


FUNCTION = holding({"name": "@text"}, "arguments", "id", "type", "x", "original_name")
CALL = holding({}, "name", "arguments", "type", "original_id", "x", id=ANY | st.just("c"), function=FUNCTION | ANY)
PART = ANY | st.sampled_from([{"type": kind, "text": "@text"} for kind in ("text", "input_text", "other")])
CONTENT = ANY | st.lists(PART, min_size=1, max_size=2)
SAID = ("reasoning", "reasoning_content", "model", "timestamp", "name", "observation", "original_content", "x")
REPLY = holding(
    {"role": "assistant"},
    *SAID,
    content=CONTENT,
    tool_calls=st.lists(CALL, min_size=1) | ANY,
    function_call=FUNCTION | ANY,
)
MESSAGE = st.one_of(
    holding({"role": st.sampled_from(["system", "developer", "user", "human"])}, *SAID, "tool_calls", content=CONTENT),
    REPLY,
    holding(
        {"role": st.sampled_from(["tool", "function"])},
        "name",
        "link",
        "x",
        content=CONTENT,
        tool_call_id=ANY | st.just("c"),
    ),
)
TOOLS = st.lists(holding({"type": "function", "function": FUNCTION}, "x"), max_size=2) | ANY
TOKENS = st.sampled_from([{"prompt_tokens": "@number", "prompt_tokens_details": {"cached_tokens": "@number"}}])
RESPONSE = ANY | holding(
    {"choices": st.lists(holding({"message": REPLY | ANY}, "finish_reason", "index"), min_size=1, max_size=3)},
    "id",
    "model",
    "created",
    usage=ANY | TOKENS | st.just({}),
)
SAMPLED = ("temperature", "top_p", "n", "stop", "model", "extra_body", "x")
FACTS = (
    "model",
    "temperature",
    "top_p",
    "n",
    "domain",
    "split",
    "task_id",
    "task",
    "session_id",
    "id",
    "reward",
    "score",
)
RECORD = holding(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=4)},
    *FACTS,
    *("error", "success", "status", "outcome", "timestamp", "cost", "raw_messages", "x"),
    **dict.fromkeys(("tools", "tool_defs", "functions"), TOOLS),
    kwargs=ANY | st.just({}) | holding({}, *SAMPLED, tools=TOOLS, functions=TOOLS),
    response=RESPONSE,
    raw_response=RESPONSE,
)


def told_apart(value: Any, number: Any, made: list[str]) -> Any:
    """Return a value in which every placeholder is another text or number; what they are is added to `made`."""
    if isinstance(value, dict):
        return {name: told_apart(inner, number, made) for name, inner in value.items()}
    if isinstance(value, list):
        return [told_apart(inner, number, made) for inner in value]
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    digits = f"7{next(number):05d}"
    if value == "@number":
        made.append(digits)
        return int(digits)
    made.append(f"t{digits}")
    return {"@text": made[-1], "@words": f'say "{made[-1]}".'}.get(value, json.dumps({"k": made[-1]}))


@given(RECORD)
def test_every_value_of_a_record_is_somewhere_in_its_trace(value: Any) -> None:
    made: list[str] = []
    record = told_apart(value, count(1), made)
    item = read(record)
    if isinstance(item, Imported):
        stored = digest.canonical([item.trajectory, item.run, item.outcome]).decode()
        assert [one for one in made if one not in stored] == []
