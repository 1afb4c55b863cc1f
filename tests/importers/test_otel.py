"""Spans of GenAI conventions: whatever lines they stand in, and in whatever form, a trace is one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import Imported, Record, Refused
from tracemark.importers.otel import IMPORTER, SUCCESS

from .conftest import Inbox, record_of, repairs_of, require_valid
from .otel_made import (
    AGENT,
    ANSWER,
    ASKED,
    CALL,
    DONE,
    SYSTEM,
    TOOL,
    TRACE,
    agent,
    chat,
    export,
    lines,
    listed,
    run,
    span,
    tool,
    typed,
)

Json = dict[str, Any]


def read(value: Any) -> list[Imported | Refused]:
    return list(IMPORTER.read(record_of(value, "a.json")))


def traces(value: Any) -> list[Imported]:
    items = read(value)
    found = [item for item in items if isinstance(item, Imported)]
    assert len(found) == len(items), items
    for item in found:
        require_valid(item)
    return found


def trace(*spans: Json) -> Imported:
    [item] = traces(export(*spans))
    return item


def refusal(value: Any) -> Refused:
    [item] = read(value)
    assert isinstance(item, Refused), item
    return item


def told(item: Imported) -> list[tuple[str, Any]]:
    return [(step["source"], step["message"]) for step in item.trajectory["steps"]]


# steps


def test_a_history_that_every_call_repeats_becomes_the_steps_of_one_conversation() -> None:
    item = trace(*run(gen_ai__system_instructions=SYSTEM))
    assert told(item) == [
        ("system", "Be exact."),
        ("user", "Where is it?"),
        ("agent", ""),
        ("agent", "On its way."),
    ]
    step = item.trajectory["steps"][2]
    [call] = step["tool_calls"]
    assert (call["tool_call_id"], call["function_name"], call["arguments"]) == ("c1", "look_up", {"order": 7})
    [result] = step["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("c1", "on its way")
    assert (item.mixed, item.findings, item.source.get("repairs")) == ((), (), None)


def test_calls_are_told_in_the_order_in_which_they_began() -> None:
    assert told(trace(*reversed(run()))) == told(trace(*run()))


def numbered(prefix: str, *messages: Json) -> Json:
    return {f"{prefix}.{n}.{name}": value for n, one in enumerate(messages) for name, value in one.items()}


CALLED = {"tool_calls.0.id": "c1", "tool_calls.0.name": "look_up", "tool_calls.0.arguments": '{"order":7}'}
SAID = {"message.tool_calls.0.tool_call.id": "c1", "message.tool_calls.0.tool_call.function.name": "look_up"}
WITH = {"message.tool_calls.0.tool_call.function.arguments": '{"order":7}'}
HISTORY = [ASKED, CALL, ANSWER]
FORMS: dict[str, Json] = {
    "structured": {"gen_ai.input.messages": HISTORY, "gen_ai.output.messages": [DONE]},
    "json text": {"gen_ai.input.messages": json.dumps(HISTORY), "gen_ai.output.messages": json.dumps([DONE])},
    "deprecated": {"gen_ai.prompt": json.dumps(HISTORY), "gen_ai.completion": json.dumps({"text": "On its way."})},
    "numbered": {
        **numbered(
            "gen_ai.prompt",
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", **CALLED},
            {"role": "tool", "tool_call_id": "c1", "content": "on its way"},
        ),
        **numbered("gen_ai.completion", {"role": "assistant", "content": "On its way."}),
    },
    "openinference": {
        **numbered(
            "llm.input_messages",
            {"message.role": "user", "message.content": "Where is it?"},
            {"message.role": "assistant", **SAID, **WITH},
            {"message.role": "tool", "message.tool_call_id": "c1", "message.content": "on its way"},
        ),
        **numbered("llm.output_messages", {"message.role": "assistant", "message.content": "On its way."}),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_messages_gives_the_same_steps(form: str) -> None:
    item = trace(span(1, {"gen_ai.operation.name": "chat", **FORMS[form]}))
    assert told(item) == [("user", "Where is it?"), ("agent", ""), ("agent", "On its way.")]
    [call] = item.trajectory["steps"][1]["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("look_up", {"order": 7})
    assert item.trajectory["steps"][1]["observation"]["results"][0]["content"] == "on its way"


def event(name: str, **attributes: Any) -> Json:
    return {"name": name, "timeUnixNano": "1", "attributes": listed(attributes)}


def test_messages_that_are_events_are_read() -> None:
    call = json.dumps([{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}])
    item = trace(
        span(
            1,
            {"gen_ai.operation.name": "chat"},
            events=[
                event("gen_ai.system.message", content="Be exact."),
                event("gen_ai.user.message", content="Where is it?"),
                event("gen_ai.assistant.message", tool_calls=call),
                event("gen_ai.tool.message", id="c1", content="on its way"),
                event("gen_ai.choice", index=0, finish_reason="stop", message=json.dumps({"content": "On its way."})),
            ],
        )
    )
    assert [source for source, _ in told(item)] == ["system", "user", "agent", "agent"]
    assert item.trajectory["steps"][2]["observation"]["results"][0]["source_call_id"] == "c1"


def test_the_details_of_an_operation_may_be_an_event() -> None:
    details = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [DONE]}
    held = {"name": "gen_ai.client.inference.operation.details", "attributes": listed(details)}
    item = trace(span(1, {"gen_ai.operation.name": "chat"}, events=[held]))
    assert told(item) == [("user", "Where is it?"), ("agent", "On its way.")]


def test_a_second_form_that_says_the_same_is_let_go_of_and_one_that_differs_is_kept() -> None:
    same = {"gen_ai.operation.name": "chat", **FORMS["structured"], **FORMS["numbered"]}
    [*_, step] = trace(span(1, same)).trajectory["steps"]
    assert "attributes" not in step["extra"]["span"]
    [*_, step] = trace(span(1, {**same, "gen_ai.prompt.0.content": "Other."})).trajectory["steps"]
    [(name, kept)] = step["extra"]["span"]["attributes"].items()
    assert name == "gen_ai.prompt (other messages)"
    assert kept[0] == {"role": "user", "content": "Other."}


def test_request_and_reply_of_the_api_are_read_where_they_hold_the_same_messages() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    request = {"model": "m", "user": "u", "messages": [{"role": "user", "content": [sound]}]}
    reply = {"id": "r", "choices": [{"index": 0, "message": {"role": "assistant", "content": None}}], "usage": {"a": 1}}
    item = trace(
        span(
            1,
            {
                "openinference.span.kind": "LLM",
                "input.value": json.dumps(request),
                "output.value": json.dumps(reply),
                "llm.invocation_parameters": '{"model": "m"}',
                "llm.input_messages.0.message.role": "user",
                "llm.output_messages.0.message.role": "assistant",
            },
        )
    )
    user, last = item.trajectory["steps"]
    assert user["message"] == [
        {"type": "audio", "source": {"media_type": "audio/wav", "path": "data:audio/wav;base64,AAAA"}}
    ]
    assert last["extra"]["original_content"] is None
    assert last["extra"]["request"] == {"user": "u"}
    assert last["extra"]["response"] == {"id": "r", "choices": [{"index": 0}]}


def test_parts_that_atif_has_not_are_kept_beside_the_message() -> None:
    parts = [{"type": "file", "file_id": "f"}, {"type": "text", "content": "See."}]
    item = trace(chat(1, [{"role": "user", "parts": parts}], DONE))
    [user, _] = item.trajectory["steps"]
    assert (user["message"], user["extra"]) == ("See.", {"other_parts": {"0": parts[0]}})


def test_reasoning_goes_to_its_own_place() -> None:
    parts = [{"type": "reasoning", "content": "why"}, {"type": "text", "content": "that"}]
    [_, step] = trace(chat(1, [ASKED], {"role": "assistant", "parts": parts})).trajectory["steps"]
    assert (step["reasoning_content"], step["message"]) == ("why", "that")


def test_other_choices_are_kept_and_are_no_steps() -> None:
    other = {"role": "assistant", "parts": [{"type": "text", "content": "Soon."}]}
    [_, step] = trace(chat(1, [ASKED], DONE, other)).trajectory["steps"]
    assert step["extra"]["choices"] == [{"role": "assistant", "content": "Soon."}]


def test_what_stands_in_a_history_and_no_call_returned_trains_nobody() -> None:
    [_, copied, own] = trace(chat(1, HISTORY, DONE)).trajectory["steps"]
    assert (copied["is_copied_context"], copied["llm_call_count"]) == (True, 0)
    assert "is_copied_context" not in own


def test_a_reply_to_a_request_that_is_not_recorded_trains_nobody() -> None:
    [step] = trace(chat(1, [], DONE)).trajectory["steps"]
    assert step["is_copied_context"] is True


def test_what_a_span_says_beside_its_messages_is_kept() -> None:
    item = trace(
        chat(
            1,
            [ASKED],
            DONE,
            gen_ai__request__model="m",
            gen_ai__request__temperature=0.5,
            gen_ai__request__seed=7,
            gen_ai__response__model="m-2",
            gen_ai__usage__input_tokens=12,
            gen_ai__usage__output_tokens=3,
            gen_ai__usage__cache_read__input_tokens=4,
            gen_ai__usage__cache_creation__input_tokens=2,
            gen_ai__provider__name="p",
            custom="x",
        )
    )
    assert item.run["model"] == {"name": "m"}
    assert (item.run["sampling"], item.run["seed"]) == ({"temperature": 0.5, "seed": 7}, 7)
    assert item.run["environment"]["service.name"] == "desk"
    assert item.run["environment"]["gen_ai.provider.name"] == "p"
    assert item.run["environment"]["scopes"] == [{"name": "made", "version": "1"}]
    [_, step] = item.trajectory["steps"]
    assert step["model_name"] == item.trajectory["agent"]["model_name"] == "m-2"
    assert step["metrics"] == {
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "cached_tokens": 4,
        "extra": {"gen_ai.usage.cache_creation.input_tokens": 2},
    }
    assert step["extra"]["span"]["attributes"] == {"custom": "x"}


def test_parameters_that_change_between_calls_are_kept_with_the_step() -> None:
    first, second = run(gen_ai__request__temperature=0)[1::2]
    second["attributes"].append({"key": "gen_ai.request.top_p", "value": {"doubleValue": 0.5}})
    item = trace(agent(), first, second)
    assert item.run["sampling"] == {"temperature": 0}
    assert item.trajectory["steps"][-1]["extra"]["sampling"] == {"top_p": 0.5}


def test_nanoseconds_survive() -> None:
    [_, step] = trace({**chat(1, [ASKED], DONE), "startTimeUnixNano": "1767225600123456789"}).trajectory["steps"]
    assert step["timestamp"] == "2026-01-01T00:00:00.123456789Z"
    assert step["extra"]["span"]["startTimeUnixNano"] == "1767225600123456789"


# tools


def test_a_tool_is_what_a_model_was_told_of_it() -> None:
    item = trace(chat(1, [ASKED], DONE, gen_ai__tool__definitions=[TOOL]))
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]
    assert [entry["part"] for entry in item.observed["tool_bindings"]] == ["look_up"]


@pytest.mark.parametrize("left_out", ["description", "parameters"])
def test_a_definition_that_was_cut_down_proves_nothing(left_out: str) -> None:
    cut = {name: value for name, value in TOOL.items() if name != left_out}
    item = trace(chat(1, [ASKED], DONE, gen_ai__tool__definitions=[cut, TOOL]))
    assert "tool_definitions" not in item.trajectory["agent"]
    assert item.trajectory["agent"]["extra"]["tool_definitions"] == [cut, TOOL]
    assert "tool_bindings" not in item.observed
    assert item.content.tools is None
    assert "without description or parameters" in repairs_of(item)


def test_an_empty_list_of_tools_is_not_known_to_be_what_was_sent() -> None:
    assert "tool_bindings" not in trace(chat(1, [ASKED], DONE, gen_ai__tool__definitions=[])).observed


@pytest.mark.parametrize(
    "attributes",
    [
        {"llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": TOOL})},
        {
            "llm.request.functions.0.name": "look_up",
            "llm.request.functions.0.description": "Find.",
            "llm.request.functions.0.parameters": '{"type": "object"}',
        },
        {"gen_ai.tool.definitions": json.dumps([TOOL])},
    ],
)
def test_tools_are_equal_in_whatever_form_they_are_recorded(attributes: Json) -> None:
    one, other = (
        trace(chat(1, [ASKED], DONE, **held)).observed for held in (attributes, {"gen_ai.tool.definitions": [TOOL]})
    )
    assert one["tool_bindings"] == other["tool_bindings"]


def test_tools_among_the_parameters_of_a_request_are_its_tools() -> None:
    held = {"llm.invocation_parameters": json.dumps({"model": "m", "temperature": 0, "tools": [TOOL]})}
    item = trace(chat(1, [ASKED], DONE, **held))
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]
    assert (item.run["sampling"], item.run["model"]) == ({"temperature": 0}, {"name": "m"})


def test_a_tools_span_is_not_that_of_a_call_in_a_copied_history() -> None:
    item = trace(
        agent(),
        chat(1, HISTORY, CALL, parent=AGENT),
        tool(2, parent=AGENT, gen_ai__tool__call__result="own"),
        chat(3, [*HISTORY, CALL, ANSWER], DONE, parent=AGENT),
    )
    assert [(step, raw["output"]) for step, raw, _ in item.content.raw_outputs] == [(3, "own")]


def test_what_a_tool_gave_stands_beside_what_the_model_saw() -> None:
    [result] = trace(*run()).trajectory["steps"][1]["observation"]["results"]
    assert (result["content"], result["extra"]) == ("on its way", {"raw_output": {"state": "on its way"}})


def test_a_result_that_no_request_holds_comes_from_the_span_of_its_tool() -> None:
    item = trace(*run()[:3])
    [result] = item.trajectory["steps"][1]["observation"]["results"]
    assert (result["content"], result["extra"]) == ('{"state":"on its way"}', {"from": "the tool's span"})
    assert item.content.raw_outputs == []


def test_tools_without_call_ids_are_found_by_name_and_order() -> None:
    twice = {"role": "assistant", "parts": [{**CALL["parts"][0], "id": f"c{n}"} for n in (1, 2)]}
    made = [tool(n, said=None, parent=AGENT, gen_ai__tool__call__result=f"r{n}") for n in (2, 3)]
    item = trace(agent(), chat(1, [ASKED], twice, parent=AGENT), *made)
    results = item.trajectory["steps"][1]["observation"]["results"]
    assert [(one["source_call_id"], one["content"]) for one in results] == [("c1", "r2"), ("c2", "r3")]


def test_a_tool_that_failed_is_an_error() -> None:
    failed = {**tool(2, parent=AGENT), "status": {"code": 2, "message": "no such order"}}
    spans = [failed if one["spanId"] == failed["spanId"] else one for one in run()]
    [result] = trace(*spans).trajectory["steps"][1]["observation"]["results"]
    assert result["extra"]["is_error"] is True
    assert trace(*spans).content.calls == [("look_up", 2, "error")]


def test_a_tool_that_nobody_called_is_kept() -> None:
    item = trace(*run(), tool(9, said="other", parent=AGENT))
    [kept] = item.trajectory["extra"]["tools"]
    assert kept["attributes"]["gen_ai.tool.call.id"] == "other"


# one harness


def test_a_prompt_is_shown_as_it_was_sent() -> None:
    observed = trace(*run(gen_ai__system_instructions=SYSTEM)).observed
    assert [entry["form"] for entry in observed["prompt_templates"]] == ["rendered"]


def test_instructions_and_tools_on_the_agents_span_count_for_its_calls() -> None:
    held = {"gen_ai.system_instructions": SYSTEM, "gen_ai.tool.definitions": [TOOL]}
    item = trace(agent(held=held), *run()[1:])
    assert told(item)[0] == ("system", "Be exact.")
    assert set(item.observed) == {"prompt_templates", "tool_bindings"}


def test_another_system_prompt_in_a_later_call_makes_the_run_mixed() -> None:
    first, second = run(gen_ai__system_instructions=SYSTEM)[1], run(gen_ai__system_instructions=SYSTEM[:1] * 2)[3]
    item = trace(agent(), first, second)
    assert item.mixed == ("step 4: another system prompt than in the call before",)


def test_the_same_tools_in_another_order_make_no_run_mixed() -> None:
    other = {**TOOL, "name": "find"}
    first, second = run(gen_ai__tool__definitions=[TOOL, other])[1], run(gen_ai__tool__definitions=[other, TOOL])[3]
    assert trace(agent(), first, second).mixed == ()


def test_other_tools_in_a_later_call_make_the_run_mixed() -> None:
    first = run(gen_ai__tool__definitions=[TOOL])[1]
    other = {**TOOL, "name": "find"}
    item = trace(agent(), first, run(gen_ai__tool__definitions=[other])[3])
    assert item.mixed == ("step 3: other tools than in the call before",)
    assert item.trajectory["agent"]["tool_definitions"] == [TOOL]
    assert item.trajectory["steps"][-1]["extra"]["tools_offered"] == [other]


def test_tools_that_one_call_does_not_record_are_not_other_tools() -> None:
    assert trace(agent(), run(gen_ai__tool__definitions=[TOOL])[1], run()[3]).mixed == ()


@pytest.mark.parametrize("sent", [[ANSWER], [ASKED], [ASKED, DONE, ANSWER]], ids=["shortened", "again", "rewritten"])
def test_a_history_that_does_not_go_on_makes_the_run_mixed(sent: list[Any]) -> None:
    item = trace(agent(), run()[1], chat(3, sent, DONE, parent=AGENT))
    [words] = item.mixed
    assert words.endswith("the model was sent other messages than stand in front of it")
    assert told(item).count(("user", "Where is it?")) == 1


def test_what_was_told_is_not_told_again_when_a_history_is_shortened() -> None:
    item = trace(*run(), chat(4, [ANSWER, DONE, ASKED], text("assistant", "So."), parent=AGENT))
    assert [said for _, said in told(item)] == ["Where is it?", "", "On its way.", "So."]
    results = [one for step in item.trajectory["steps"] for one in step.get("observation", {}).get("results", [])]
    assert len(results) == len(item.mixed) == 1


def test_a_reply_is_known_again_in_another_form() -> None:
    function = {"name": "look_up", "arguments": '{"order": 7}'}
    called = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    halves = [{"type": "text", "content": "On its "}, {"type": "text", "content": "way."}]
    item = trace(
        agent(),
        chat(1, [ASKED], called, parent=AGENT),
        chat(2, [ASKED, CALL, ANSWER], {"role": "assistant", "parts": halves}, parent=AGENT),
        chat(3, [ASKED, called, ANSWER, DONE, text("user", "When?")], text("assistant", "Soon."), parent=AGENT),
    )
    assert (item.mixed, len(item.trajectory["steps"])) == ((), 5)


def test_a_message_may_answer_and_ask() -> None:
    both = {"role": "user", "parts": [*ANSWER["parts"], {"type": "text", "content": "When?"}]}
    item = trace(agent(), run()[1], chat(3, [ASKED, CALL, both], DONE, parent=AGENT))
    assert [source for source, _ in told(item)] == ["user", "agent", "user", "agent"]
    assert item.trajectory["steps"][1]["observation"]["results"][0]["content"] == "on its way"


def test_an_attribute_that_is_a_value_and_has_members_is_left_as_it_stands() -> None:
    for names in (("x.0.b", "x.0.b.c"), ("x.0.b.c", "x.0.b")):
        held = {name.replace("x", "gen_ai.prompt"): "v" for name in names}
        item = trace(chat(1, [ASKED], DONE, **held))
        assert item.trajectory["steps"][-1]["extra"]["span"]["attributes"] == held


# which spans are a run


def test_the_agents_name_version_and_id_are_labels() -> None:
    held = {"gen_ai.agent.version": "2", "gen_ai.agent.id": "x"}
    item = trace(agent(held=held), *run()[1:])
    assert item.trajectory["agent"]["name"] == "desk"
    assert item.trajectory["agent"]["version"] == "2"
    assert item.run["environment"]["gen_ai.agent.id"] == "x"


@pytest.mark.parametrize(
    ("held", "session"), [({}, TRACE), ({"gen_ai.conversation.id": "t"}, "t"), ({"session.id": "s"}, "s")]
)
def test_the_conversation_is_the_session_else_the_trace(held: Json, session: str) -> None:
    item = trace(agent(held=held), *run()[1:])
    assert item.trajectory["session_id"] == session
    assert item.trajectory["extra"]["traceId"] == TRACE


def test_ids_are_the_same_in_either_case() -> None:
    spans = run()
    for one in spans[1:]:
        one["parentSpanId"] = one["parentSpanId"].upper()
        one["traceId"] = TRACE.upper()
    assert told(trace(*spans)) == told(trace(*run()))


def test_an_agent_within_a_tool_is_embedded_and_its_calls_are_its_own() -> None:
    inner = agent(0xC1, parent=f"{2:016x}", name="courier", at=250)
    item = trace(*run(), inner, chat(0xC2, [{**ASKED, "name": "n"}], DONE, parent=f"{0xC1:016x}"))
    [part] = item.trajectory["subagent_trajectories"]
    assert (part["agent"]["name"], part["trajectory_id"]) == ("courier", f"{0xC1:016x}")
    [result] = item.trajectory["steps"][1]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": part["trajectory_id"]}]
    assert (len(item.trajectory["steps"]), item.mixed) == (3, ())


def test_an_agent_without_calls_of_its_own_is_a_wrapper() -> None:
    outer = agent(0xA0, name="outer")
    item = trace(outer, {**run()[0], "parentSpanId": f"{0xA0:016x}"}, *run()[1:])
    assert item.trajectory["agent"]["name"] == "desk"
    assert "subagent_trajectories" not in item.trajectory


def test_an_agent_that_runs_elsewhere_is_its_own_call() -> None:
    held = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [DONE]}
    assert told(trace(agent(held=held))) == [("user", "Where is it?"), ("agent", "On its way.")]


def test_outermost_agents_are_runs_of_their_own_each_with_its_own_digest() -> None:
    other = [agent(0xB1, name="other", at=400), chat(5, [ASKED], DONE, parent=f"{0xB1:016x}")]
    items = traces(export(*run(), *other))
    assert [item.trajectory["agent"]["name"] for item in items] == ["desk", "other"]
    assert len({item.source["raw"] for item in items}) == 2
    assert [item.where for item in items] == ["a.json#0", "a.json#1"]


def test_a_call_outside_of_the_agents_is_not_theirs() -> None:
    item = trace(*run(), chat(7, [{**ASKED, "parts": [{"type": "text", "content": "A title?"}]}], DONE))
    assert "A title?" not in item.trajectory_bytes.decode()
    assert "1 model calls outside of the agents' spans: left out" in repairs_of(item)


def test_without_agents_each_conversation_is_a_run() -> None:
    bare = [{name: value for name, value in one.items() if name != "parentSpanId"} for one in run()[1:]]
    other = chat(4, [{"role": "user", "parts": [{"type": "text", "content": "Hello"}]}], DONE)
    items = traces(export(*bare, other))
    assert [len(item.trajectory["steps"]) for item in items] == [3, 2]
    assert told(items[1]) == [("user", "Hello"), ("agent", "On its way.")]
    assert all(item.mixed == () for item in items)


def text(role: str, said: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def test_a_conversation_that_branches_without_an_agent_is_two() -> None:
    first, other = [ASKED, DONE, text("user", "When?")], [ASKED, DONE, text("user", "Why?")]
    items = traces(
        export(
            chat(1, [ASKED], DONE),
            chat(2, first, text("assistant", "Soon.")),
            chat(3, other, text("assistant", "So.")),
        )
    )
    assert [told(item)[-1][1] for item in items] == ["Soon.", "So."]
    assert [step.get("is_copied_context") for step in items[1].trajectory["steps"]] == [None, True, None, None]


def test_the_same_question_twice_without_an_agent_is_two_conversations() -> None:
    items = traces(export(chat(1, [ASKED], DONE), chat(2, [ASKED], DONE)))
    assert [len(item.trajectory["steps"]) for item in items] == [2, 2]


def test_what_an_agents_span_repeats_of_its_calls_is_let_go_of() -> None:
    held = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [DONE], "other": 1}
    item = trace(agent(held=held), *run()[1:])
    assert set(item.trajectory["extra"]["span"]["attributes"]) == {"gen_ai.operation.name", "other"}
    assert len(item.trajectory["steps"]) == 3


def test_a_call_that_returned_nothing_is_kept() -> None:
    failed = {**chat(1, [ASKED], parent=AGENT), "status": {"code": 2, "message": "overloaded"}}
    item = trace(agent(), failed, chat(2, [ASKED], DONE, parent=AGENT))
    assert item.mixed == ()
    [call] = item.trajectory["extra"]["calls"]
    assert call["status"]["message"] == "overloaded"


def test_a_span_that_was_exported_twice_is_read_once() -> None:
    item = trace(*run(), run()[1])
    assert told(item) == told(trace(*run()))
    assert "exported twice" in repairs_of(item)


def test_parents_in_a_circle_are_no_agents_of_each_other() -> None:
    one, other = agent(0xA1, parent=f"{0xB1:016x}"), agent(0xB1, parent=AGENT)
    assert told(trace(one, other, *run()[1:])) == told(trace(*run()))
    assert told(trace(agent(parent=AGENT), *run()[1:])) == told(trace(*run()))


# outcome


def judged(*labels: str, **members: Any) -> Imported:
    events = [event("gen_ai.evaluation.result", **{"gen_ai.evaluation.score.label": label}) for label in labels]
    return trace(agent(events=events, **members), *run()[1:])


@pytest.mark.parametrize(
    ("labels", "status"),
    [
        (("pass",), "success"),
        (("Passed", "relevant"), "success"),
        (("pass", "fail"), "failure"),
        (("relevant",), "unknown"),
        ((), "unknown"),
    ],
)
def test_labels_that_say_pass_or_fail_are_the_verdict(labels: tuple[str, ...], status: str) -> None:
    item = judged(*labels)
    assert item.outcome["status"] == status
    assert [one["score.label"] for one in item.outcome.get("checks", [])] == list(labels)
    unread = [found.code for found in item.findings]
    assert unread == (["verdict-unread"] if labels and status == "unknown" else [])


def test_a_run_whose_span_failed_is_an_error_whatever_was_said_of_it() -> None:
    item = judged("pass", status={"code": "STATUS_CODE_ERROR", "message": "timed out"})
    assert (item.outcome["status"], item.outcome["termination"]) == ("error", "timed out")


def test_an_evaluation_of_one_call_is_no_verdict_on_the_run() -> None:
    spans = run()
    spans[3]["events"] = [event("gen_ai.evaluation.result", **{"gen_ai.evaluation.score.label": "pass"})]
    item = trace(*spans)
    assert item.outcome == {"status": "unknown"}
    assert item.trajectory["steps"][-1]["extra"]["evaluations"] == [{"score.label": "pass"}]


def test_an_evaluation_of_the_only_call_is_the_verdict() -> None:
    passed = event("gen_ai.evaluation.result", **{"gen_ai.evaluation.score.label": "pass"})
    assert trace({**chat(1, [ASKED], DONE), "events": [passed]}).outcome["status"] == "success"


def test_an_evaluation_around_several_conversations_is_the_verdict_of_none() -> None:
    passed = event("gen_ai.evaluation.result", **{"gen_ai.evaluation.score.label": "pass"})
    around = span(9, {"http.route": "/"}, events=[passed])
    items = traces(export(around, *(chat(n, [ASKED], DONE, parent=around["spanId"]) for n in (1, 2))))
    assert [item.outcome["status"] for item in items] == ["unknown", "unknown"]


def test_the_table_of_verdicts_names_every_status() -> None:
    assert {status for _, status in SUCCESS} == {"success", "failure", "error", "unknown"}


# lines


def test_spans_of_one_trace_in_several_lines_are_one_run(inbox: Inbox) -> None:
    first, second, third, fourth = run()
    inbox.write("a.jsonl", lines(export(second), export(third), export(fourth), export(first)))
    found = inbox.read()
    assert told(found.only) == told(trace(*run()))
    assert found.only.where == f"a.jsonl#{TRACE}"
    assert "spans in 4 records of the file" in repairs_of(found.only)


@given(order=st.permutations(range(4)), cuts=st.sets(st.integers(1, 3)))
def test_how_spans_are_spread_over_lines_changes_no_trace(order: list[int], cuts: set[int]) -> None:
    spans = [run()[number] for number in order]
    ends = [0, *sorted(cuts), 4]
    records = [
        Record(json.dumps(export(*spans[start:end])).encode(), "a.jsonl", "a.jsonl:1") for start, end in pairwise(ends)
    ]
    [item] = IMPORTER.read_lines(lambda: iter(records))
    assert isinstance(item, Imported)
    assert item.trajectory == trace(*run()).trajectory


def test_a_trace_is_given_as_soon_as_its_last_line_was_read() -> None:
    met: list[int] = []

    def again() -> Iterator[Record]:
        met.clear()
        for number in range(5):
            met.append(number)
            made = [{**one, "traceId": f"{number + 1:032x}"} for one in run()]
            yield Record(json.dumps(export(*made)).encode(), "a.jsonl", f"a.jsonl:{number + 1}")

    found = IMPORTER.read_lines(again)
    assert isinstance(next(found), Imported)
    assert met == [0]
    assert len(list(found)) == 4


def test_a_broken_line_costs_itself(inbox: Inbox) -> None:
    first, *others = run()
    inbox.write("a.jsonl", lines(export(*others)) + b'{"resourceSpans": [{\n' + lines(export(first)))
    found = inbox.read()
    assert found.codes == ["record-not-json"]
    assert told(found.traces[0]) == told(trace(*run()))


def test_lines_of_single_spans_are_put_together(inbox: Inbox) -> None:
    inbox.write("a.jsonl", lines(*run()))
    assert told(inbox.read().only) == told(trace(*run()))


def test_each_trace_of_a_document_has_a_digest_of_its_own() -> None:
    other = [{**one, "traceId": "0" * 31 + "1"} for one in run()]
    items = traces(export(*run(), *other))
    assert [item.where for item in items] == [f"a.json#{TRACE}", f"a.json#{'0' * 31}1"]
    assert len({item.source["raw"] for item in items}) == 2
    assert [told(item) for item in items] == [told(trace(*run()))] * 2


def test_a_trace_alone_in_its_document_is_that_document(inbox: Inbox) -> None:
    path = inbox.write("a.json", export(*run()))
    item = inbox.read().only
    assert (item.where, item.source["raw"]) == ("a.json", digest.sha256(path.read_bytes()))


def test_spans_without_a_trace_id_are_runs_of_their_own() -> None:
    made = [{name: one for name, one in chat(n, [ASKED], DONE).items() if name != "traceId"} for n in (1, 2)]
    items = traces(export(*made))
    assert [item.where for item in items] == ["a.json#0", "a.json#1"]
    assert all("session_id" not in item.trajectory for item in items)


# refusals


def test_traces_without_a_model_call_are_refused_as_one() -> None:
    made = [{**span(n, {"http.route": "/"}), "traceId": f"{n:032x}"} for n in (1, 2, 3)]
    item = refusal(export(*made))
    assert (item.code, item.message.split(":")[0]) == ("record-unfit", "3 traces hold no call of a model")


def test_a_trace_whose_content_was_not_recorded_says_so() -> None:
    item = refusal(export(span(1, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5})))
    assert (item.code, item.message) == (
        "record-unfit",
        "its model calls hold no messages in any form that the conventions have",
    )
    assert item.hint is not None
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in item.hint


@pytest.mark.parametrize("text", ["Hello", '{"question": "Where?"}'])
def test_a_prompt_may_be_a_text(text: str) -> None:
    item = trace(span(1, {"gen_ai.operation.name": "chat", "gen_ai.prompt": text, "gen_ai.completion": "Here."}))
    assert told(item) == [("user", text), ("agent", "Here.")]


def test_messages_that_an_exporter_cut_are_refused_and_not_taken_for_a_text() -> None:
    cut = json.dumps([ASKED])[:-9]
    item = refusal(export(span(1, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": cut})))
    assert item.code == "record-unfit"
    assert "it was cut" in item.message


def test_a_history_that_goes_on_badly_is_refused_though_its_beginning_was_read() -> None:
    held = json.dumps([ASKED])
    made = [chat(n, [], DONE, parent=AGENT) for n in (1, 2)]
    for one, sent in zip(made, (held, held[:-1] + ",]"), strict=True):
        one["attributes"][1]["value"] = {"stringValue": sent}
    assert "it was cut" in refusal(export(agent(), *made)).message


@pytest.mark.parametrize("role", ["narrator", 7, None, ["user"]])
def test_an_unknown_role_is_refused(role: Any) -> None:
    assert refusal(export(chat(1, [{**ASKED, "role": role}], DONE))).code == "unknown-role"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"resourceSpans": {}}, "resourceSpans is no list"),
        ({"resourceSpans": [1]}, "resourceSpans/0 is no object"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": ["x"]}]}]}, "scopeSpans/0/spans/0 is no object"),
        ({"a": 1}, "neither a span nor an export"),
        ([1], "element 0 is neither"),
    ],
)
def test_what_is_no_span_is_refused_with_its_place(value: Any, words: str) -> None:
    item = refusal(value)
    assert item.code == "record-unfit"
    assert words in item.message


@pytest.mark.parametrize("kind", ["Logs", "Metrics"])
def test_exports_of_other_things_stand_beside(inbox: Inbox, kind: str) -> None:
    inbox.write("other.json", {f"resource{kind}": []})
    found = inbox.read()
    assert found.refused == []
    [note] = found.plan.findings
    assert note.code == "file-beside"
    assert kind.lower() in note.message


# bad input


def test_text_survives_as_it_stands() -> None:
    noise = "\x1b[31m\x00\r\n\ud83d \u202e"
    item = trace(chat(1, [{"role": "user", "parts": [{"type": "text", "content": noise}]}], DONE))
    assert told(item)[0] == ("user", noise)


def test_numbers_survive_exactly() -> None:
    raw = json.dumps(export(chat(1, [ASKED], DONE, a="A", b="B"))).encode()
    raw = raw.replace(b'{"stringValue": "A"}', b'{"intValue": "1180591620717411303424"}')
    raw = raw.replace(b'{"stringValue": "B"}', b'{"doubleValue": NaN}')
    [item] = traces(raw)
    attributes = item.trajectory["steps"][-1]["extra"]["span"]["attributes"]
    assert attributes["a"] == 1180591620717411303424
    assert "NaN" in repairs_of(item)


def test_what_a_json_text_holds_and_json_has_not_is_named() -> None:
    sent = json.dumps([{**ASKED, "weight": float("nan")}])
    item = trace(span(1, {"gen_ai.input.messages": sent, "gen_ai.output.messages": [DONE]}))
    assert "NaN" in repairs_of(item)


def test_a_repeated_attribute_is_kept_under_another_name() -> None:
    made = chat(1, [ASKED], DONE, a=1)
    made["attributes"].append({"key": "a", "value": {"intValue": "2"}})
    assert trace(made).trajectory["steps"][-1]["extra"]["span"]["attributes"] == {"a": 1, "a_": 2}


def test_a_member_that_is_there_twice_is_named() -> None:
    raw = json.dumps(export(*run())).encode().replace(b'"name": "span"', b'"name": "one", "name": "span"', 1)
    assert repairs_of(traces(raw)[0])


def test_nesting_beyond_reason_is_refused() -> None:
    raw = json.dumps(export(*run())).encode().replace(b'"name": "span"', b'"name": ' + b"[" * 10_000 + b"]" * 10_000, 1)
    assert [item.code for item in read(raw) if isinstance(item, Refused)] == ["record-not-json"]
    dots = {"gen_ai.prompt.0." + "a." * 10_000: "x"}
    assert told(trace(chat(1, [ASKED], DONE, **dots)))[0] == ("user", "Where is it?")


def test_call_ids_that_are_used_again_are_made_unique_and_each_tool_finds_its_call() -> None:
    history = [ASKED, CALL, ANSWER]
    item = trace(
        agent(),
        chat(1, history[:1], CALL, parent=AGENT),
        tool(2, parent=AGENT, gen_ai__tool__call__result="first"),
        chat(3, history, CALL, parent=AGENT),
        tool(4, parent=AGENT, gen_ai__tool__call__result="second"),
        chat(5, [*history, CALL, ANSWER], DONE, parent=AGENT),
    )
    ids = [one["tool_call_id"] for step in item.trajectory["steps"] for one in step.get("tool_calls", [])]
    assert ids == ["c1", "c1#2"]
    assert [raw for _, raw, _ in item.content.raw_outputs] == [{"output": "first"}, {"output": "second"}]


@pytest.mark.parametrize("sent", [[ASKED, ANSWER], [ANSWER, ASKED, CALL]], ids=["orphan", "before its call"])
def test_an_answer_to_no_call_stays_unlinked(sent: list[Any]) -> None:
    item = trace(chat(1, sent, DONE))
    results = [one for step in item.trajectory["steps"] for one in step.get("observation", {"results": []})["results"]]
    assert [("source_call_id" in one, one["extra"]["original_call_id"]) for one in results] == [(False, "c1")]


@pytest.mark.parametrize(
    ("arguments", "read_as"),
    [('{"order":7}', {"order": 7}), ("not json", {"_raw": "not json"}), ([1], {"_raw": [1]}), (None, {})],
)
def test_arguments_are_read_where_they_are_an_object(arguments: Any, read_as: Any) -> None:
    called = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look_up", "arguments": arguments}]}
    [item] = traces({"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [called]})
    [_, step] = item.trajectory["steps"]
    assert step["tool_calls"][0]["arguments"] == read_as


def test_calls_that_are_json_texts_are_read() -> None:
    call = json.dumps({"id": "c1", "function": {"name": "look_up", "arguments": "{}"}})
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    [_, step] = trace(chat(1, [ASKED], message)).trajectory["steps"]
    assert step["tool_calls"][0]["function_name"] == "look_up"


def test_a_file_that_ends_in_its_middle_is_refused(inbox: Inbox) -> None:
    inbox.write("a.json", json.dumps(export(*run()), indent=1)[:-40])
    found = inbox.read()
    assert (found.codes, found.traces) == (["record-truncated"], [])


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, "", "x", "[", "{}", [], {}, [1], {"a": 1}, 2**70, "\ud800", [[[]]]]
)
VALID = json.dumps(
    export(
        *run(gen_ai__system_instructions=SYSTEM, gen_ai__tool__definitions=[TOOL], gen_ai__usage__input_tokens=4),
        agent(0xC1, parent=f"{2:016x}", at=250, events=[event("gen_ai.evaluation.result", a=1)]),
        chat(0xC2, [ASKED], DONE, parent=f"{0xC1:016x}"),
        span(5, {**FORMS["openinference"], "input.value": '{"messages": [{"role": "user"}]}'}, parent=AGENT),
        span(6, {**FORMS["numbered"]}, parent=AGENT),
    )
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in members:
        yield (*at, name)
        yield from places(one, (*at, name))


PLACES = list(places(json.loads(VALID)))


@given(place=st.sampled_from(PLACES), odd=ODD)
def test_a_value_of_a_wrong_kind_anywhere_gives_traces_or_refusals(place: tuple[Any, ...], odd: Any) -> None:
    value = json.loads(VALID)
    at = value
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = odd
    for item in read(value):
        if isinstance(item, Imported):
            require_valid(item)
        else:
            assert item.code in ("record-unfit", "unknown-role"), item


# recognition


@pytest.mark.parametrize("value", [export(*run()), run()[1], {"gen_ai.prompt": "x", "gen_ai.system": "p"}])
def test_files_are_told_by_their_content(inbox: Inbox, value: Any) -> None:
    inbox.write("x.bin", value)
    assert inbox.read().traces[0].source["format"] == "otel-genai"


def test_typed_values_of_every_kind_are_read() -> None:
    held = {"a": [1, "x", {"b": 0.5}], "t": True, "n": None}
    made = chat(1, [ASKED], DONE, **held)
    made["attributes"].append({"key": "raw", "value": {"bytesValue": "AAAA"}})
    attributes = trace(made).trajectory["steps"][-1]["extra"]["span"]["attributes"]
    assert attributes == {**held, "raw": {"bytesValue": "AAAA"}}
    assert typed(None) == {}


@pytest.mark.parametrize(("depth", "is_read"), [(32, True), (33, False)])
def test_agents_are_embedded_up_to_a_depth(depth: int, is_read: bool) -> None:
    made = [agent(0x1000), chat(0x2000, [ASKED], DONE, parent=f"{0x1000:016x}")]
    for n in range(1, depth + 1):
        parent = f"{0x1000 + n:016x}"
        made += [agent(0x1000 + n, parent=f"{0xFFF + n:016x}", at=n), chat(n, [ASKED], DONE, parent=parent)]
    if is_read:
        item = trace(*made)
        assert digest.load_canonical(item.trajectory_bytes) == item.trajectory
    else:
        assert "nested more than 32 levels deep" in refusal(export(*made)).message
