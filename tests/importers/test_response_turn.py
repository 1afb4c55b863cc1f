"""Turns of the Responses API as chat messages."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.response_turn import answer_of, chat_parts, is_summary, looked_at, message_of

CALL = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "bash", "arguments": '{"a": 1}', "status": "done"}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def test_items_become_text_reasoning_and_calls_and_nothing_of_them_is_lost() -> None:
    thought = {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": "Look."}],
        "encrypted_content": "A",
    }
    message = message_of({"output": [thought, said("One. "), said("Two."), CALL]})
    assert (message["role"], message["content"], message["reasoning_content"]) == ("assistant", "One. Two.", "Look.")
    assert message["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"a": 1}'}}
    ]
    assert message["output"] == [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text"}], "encrypted_content": "A"},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "annotations": []}]},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "annotations": []}]},
        {"type": "function_call", "id": "fc", "status": "done"},
    ]


def test_a_summary_stands_in_for_thoughts_only_where_there_are_none() -> None:
    summary, content = [{"type": "summary_text", "text": "Short."}], [{"type": "reasoning_text", "text": "Long."}]
    alone, both = (
        {"type": "reasoning", "summary": summary},
        {"type": "reasoning", "summary": summary, "content": content},
    )
    assert (is_summary(alone), is_summary(both)) == (True, False)
    assert not any(map(is_summary, ({"type": "reasoning", "summary": []}, {"type": "message", "summary": summary}, 7)))
    message = message_of({"output": [both]})
    assert message["reasoning_content"] == "Long."
    assert message["output"][0]["summary"] == summary


def test_a_reply_without_text_has_none_and_not_an_empty_one() -> None:
    assert message_of({"output": [CALL]})["content"] is None
    assert message_of({"output": [said("")]})["content"] == ""


@pytest.mark.parametrize(
    "output", [None, [], 7, "text", [None], [7], [{"type": "message", "content": 3}], [{"type": 1}]]
)
def test_what_is_no_item_is_kept_as_it_is(output: Any) -> None:
    message = message_of({"output": output})
    assert message["output"] == output
    assert message["content"] is None


def test_an_item_of_an_unknown_kind_is_kept_whole() -> None:
    item = {"type": "web_search_call", "id": "w", "action": {"query": "x"}}
    assert message_of({"output": [item]})["output"] == [item]


def test_an_answer_names_its_call() -> None:
    item = {"type": "function_call_output", "call_id": "c1", "output": "text", "status": "done"}
    assert answer_of(item) == {"role": "tool", "tool_call_id": "c1", "content": "text", "status": "done"}


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}


def test_texts_and_images_of_an_item_are_parts_of_a_chat_message() -> None:
    parts = [{"type": "input_text", "text": "See."}, {"type": "output_text", "text": "Seen."}, IMAGE]
    assert chat_parts(parts) == [
        {"type": "text", "text": "See."},
        {"type": "text", "text": "Seen."},
        {"type": "image_url", "image_url": {"url": IMAGE["image_url"]}},
    ]
    assert looked_at(parts) == {"image_detail": ["low"]}


@pytest.mark.parametrize(
    "part", [{**IMAGE, "file_id": "f1"}, {**IMAGE, "image_url": None}, {"type": "input_text"}, {"type": "x"}, "See."]
)
def test_a_part_with_more_or_less_to_it_stays_as_it_is(part: Any) -> None:
    assert chat_parts([part]) == [part]
    assert looked_at([part]) == {}
