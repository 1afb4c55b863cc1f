"""Lists of items of the Responses API as the steps of a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.conversation import Conversation, NotMessagesError, UnknownRoleError
from tracemark.importers.responses_items import add_items
from tracemark.model.trajectory import problems

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def said(text: Any, role: str = "assistant", **members: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}] if role == "assistant" else text
    return {"type": "message", "role": role, "content": content, **members}


def thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text}]}


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "find", "arguments": "{}"}


def output(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": f"found {number}"}


def steps(*items: Any) -> list[dict[str, Any]]:
    conversation = Conversation([])
    replies = add_items(conversation, list(items), "output")
    assert replies == [step for step in conversation.steps if step["source"] == "agent"]
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": conversation.steps}
    assert problems(document) == []
    return conversation.steps


def test_what_the_model_gave_between_two_things_that_it_was_told_is_one_reply() -> None:
    found = steps(said("Go.", "user"), call(1), thought("One."), output(1), thought("Two."), said("Done."))
    assert [step["source"] for step in found] == ["user", "agent", "agent"]
    assert (found[1]["reasoning_content"], found[2]["reasoning_content"]) == ("One.", "Two.")
    [result] = found[1]["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("c1", "found 1")


def test_calls_made_at_once_are_of_one_reply() -> None:
    [step] = steps(said("Both."), call(1), call(2), output(2), output(1))
    assert [one["tool_call_id"] for one in step["tool_calls"]] == ["c1", "c2"]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["c2", "c1"]


def test_calls_with_an_output_between_them_are_of_two_replies() -> None:
    assert len(steps(call(1), output(1), call(2), output(2))) == 2


def test_a_second_text_begins_another_reply() -> None:
    assert [step["message"] for step in steps(said("One."), said("Two."))] == ["One.", "Two."]


def test_nothing_of_an_item_is_lost() -> None:
    [step] = steps({**thought("Hm."), "encrypted_content": "A"}, said("One.", status="completed"), call(1))
    kinds = [item["type"] for item in step["extra"]["output"]]
    assert kinds == ["reasoning", "message", "function_call"]
    assert step["extra"]["output"][0]["encrypted_content"] == "A"
    assert step["extra"]["output"][1]["status"] == "completed"
    assert step["extra"]["output"][2]["id"] == "f1"


def test_a_message_needs_no_type_and_its_content_may_be_a_text() -> None:
    found = steps({"role": "developer", "content": "Be exact."}, {"role": "assistant", "content": "Yes."})
    assert [(step["source"], step["message"]) for step in found] == [("system", "Be exact."), ("agent", "Yes.")]


def test_a_text_alone_is_a_message_of_the_user() -> None:
    conversation = Conversation([])
    assert add_items(conversation, "Go.", "input") == []
    assert conversation.steps == [{"step_id": 1, "source": "user", "message": "Go."}]


def test_an_image_in_the_record_stays_an_image() -> None:
    parts = [{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": PIXEL, "detail": "low"}]
    [step] = steps(said(parts, "user"))
    image = {"type": "image", "source": {"media_type": "image/png", "path": PIXEL}}
    assert step["message"] == [{"type": "text", "text": "What?"}, image]
    assert step["extra"] == {"image_detail": ["low"]}


def test_an_image_that_a_tool_gave_is_an_image_too() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    parts = [{"type": "input_text", "text": "Here."}, {"type": "input_image", "image_url": PIXEL, "detail": "low"}]
    [step] = steps(call, {"type": "function_call_output", "call_id": "c1", "output": parts})
    [result] = step["observation"]["results"]
    image = {"type": "image", "source": {"media_type": "image/png", "path": PIXEL}}
    assert result["content"] == [{"type": "text", "text": "Here."}, image]
    assert result["extra"] == {"image_detail": ["low"]}


def test_an_image_with_more_to_it_is_kept_whole() -> None:
    part = {"type": "input_image", "image_url": PIXEL, "file_id": "f1"}
    conversation = Conversation([])
    add_items(conversation, [{"type": "message", "role": "user", "content": [part]}], "input")
    assert conversation.steps[0]["extra"]["original_content"] == [part]


def test_an_image_elsewhere_is_no_image_of_the_trace() -> None:
    parts = [{"type": "input_image", "image_url": "https://pictures.example/1.png"}]
    [step] = steps(said(parts, "user"))
    assert isinstance(step["message"], str)
    assert step["extra"]["original_content"]


def test_an_output_without_its_call_stands_where_it_stood() -> None:
    [step] = steps(output(1))
    [result] = step["observation"]["results"]
    assert (step["source"], result["extra"]["original_call_id"]) == ("system", "c1")


@pytest.mark.parametrize("item", [None, 3, {}, {"type": "web_search_call"}, {"type": None}, {"type": ["message"]}])
def test_an_item_that_is_not_known_is_refused(item: Any) -> None:
    with pytest.raises(NotMessagesError, match="output/1"):
        steps(said("One."), item)


@pytest.mark.parametrize("items", [None, {}, 3])
def test_something_that_is_no_list_is_refused(items: Any) -> None:
    with pytest.raises(NotMessagesError, match="no list"):
        add_items(Conversation([]), items, "input")


def test_a_role_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownRoleError):
        steps(said("One.", "critic"))
