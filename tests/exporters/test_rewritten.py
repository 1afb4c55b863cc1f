"""What an importer wrote is never trained on. Records go through the importers; what they give makes a row or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracemark.exporters import sft
from tracemark.exporters.select import Facts
from tracemark.importers import atif, openai_chat
from tracemark.importers.base import Imported, Record

KNOWN = Facts(id="1" * 64, fingerprint="tm1:" + "a" * 64, status="success", tool_calls=1)
FUNCTION = {"name": "look", "arguments": '{"order":"x"}'}
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


def imported(importer: Any, value: Any) -> dict[str, Any]:
    [item] = importer.read(Record(json.dumps(value).encode(), "a.json", "a.json"))
    assert isinstance(item, Imported), item
    return item.trajectory


def chat(
    user: Any = None, asks: Any = None, call: Any = None, seen: Any = None, end: Any = None
) -> tuple[str | None, list[Any]]:
    """Return why a conversation makes no row, and its messages; arguments replace members, `...` removes one."""

    def changed(base: dict[str, Any], change: Any) -> dict[str, Any]:
        return {name: value for name, value in {**base, **(change or {})}.items() if value is not ...}

    called = {"id": "c", "type": "function", "function": FUNCTION}
    messages = [
        changed({"role": "user", "content": "Q"}, user),
        changed({"role": "assistant", "content": None, "tool_calls": [changed(called, call)]}, asks),
        changed({"role": "tool", "tool_call_id": "c", "content": "paid"}, seen),
        changed({"role": "assistant", "content": "Done."}, end),
    ]
    return rendered(imported(openai_chat.IMPORTER, {"messages": messages, "tools": [TOOL]}))


def document(**changes: Any) -> tuple[str | None, list[Any]]:
    """Return why an ATIF document makes no row, and its messages.

    Arguments `user`, `asks`, `call`, `seen`, `end`, `agent` and `root` change that object, as in `chat`.
    """
    call = {"tool_call_id": "c", "function_name": "look", "arguments": {"order": "x"}}
    seen = {"source_call_id": "c", "content": "paid"}

    def changed(name: str, base: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in {**base, **changes.get(name, {})}.items() if value is not ...}

    observation = {"results": [changed("seen", seen)]}
    asks = {"source": "agent", "message": "", "tool_calls": [changed("call", call)], "observation": observation}
    steps = [
        changed("user", {"source": "user", "message": "Q"}),
        changed("asks", asks),
        changed("end", {"source": "agent", "message": "Done."}),
    ]
    agent = changed("agent", {"name": "a", "version": "1", "tool_definitions": [TOOL]})
    root = {"schema_version": "ATIF-v1.8", "agent": agent}
    root["steps"] = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return rendered(imported(atif.IMPORTER, changed("root", root)))


def rendered(trajectory: dict[str, Any]) -> tuple[str | None, list[Any]]:
    made = sft.render(trajectory, KNOWN)
    return made.untrainable, [] if made.line is None else json.loads(made.line)["messages"]


@pytest.mark.parametrize(
    "changes",
    [
        {"user": {"content": {"a": 1}}},
        {"user": {"content": None}},
        {"user": {"content": ...}},
        {"user": {"content": [{"type": "input_file", "file_id": "f"}]}},
        {"asks": {"content": {"thought": "t"}}},
        {"seen": {"content": {"status": "paid"}}},
        {"seen": {"content": 7}},
        {"seen": {"content": None}},
        {"seen": {"content": ...}},
        {"end": {"content": None}},
        {"end": {"content": ...}},
        {"end": {"content": None, "refusal": "No."}},
        {"call": {"function": "look"}},
        {"call": {"function": {"arguments": "{}"}}},
        {"call": {"function": {"name": 7, "arguments": "{}"}}},
        {"call": {"function": {"name": "look", "arguments": '{"n": NaN}'}}},
        {"call": {"function": {"name": "look", "arguments": '{"n": 1, "n": 2}'}}},
    ],
)
def test_a_chat_record_in_which_something_was_not_said_makes_no_row(changes: dict[str, Any]) -> None:
    assert chat(**changes) == ("rewritten", [])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"asks": {"content": ...}},
        {"asks": {"content": ""}},
        {"user": {"content": [{"type": "text", "text": "Q", "cache_control": {"type": "ephemeral"}}]}},
        {"seen": {"content": ""}},
        {"call": {"id": None}, "seen": {"tool_call_id": None}},
        {"call": {"function": {"name": "look", "arguments": ' { "b" : 1.0, "a": 2 } '}}},
    ],
)
def test_a_chat_record_of_which_all_was_said_makes_one(changes: dict[str, Any]) -> None:
    why, messages = chat(**changes)
    assert (why, len(messages)) == (None, 4)
    assert messages[1]["content"] == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"user": {"message": {"q": "hello"}}},
        {"user": {"message": None}},
        {"user": {"message": ...}},
        {"asks": {"message": {"thought": "t"}}},
        {"asks": {"reasoning_content": {"t": 1}}},
        {"asks": {"observation": {"results": "paid"}}},
        {"asks": {"observation": {"content": "paid"}}},
        {"asks": {"observation": ["paid"]}},
        {"end": {"tool_calls": "look"}},
        {"end": {"is_copied_context": "true"}},
        {"end": {"llm_call_count": "0"}},
        {"seen": {"content": {"status": "paid"}}},
        {"end": {"message": None}},
        {"end": {"message": ...}},
        {"call": {"function_name": 7}},
        {"call": {"function_name": ...}},
        {"call": {"arguments": '{"n": 1, "n": 2}'}},
        {"user": {"extra": {"other_parts": {"1": {"type": "document"}}}}},
        {"asks": {"extra": {"other_parts": {"0": {"type": "tool_use"}}}}},
        {"seen": {"extra": {"other_parts": {"0": {"type": "video"}}}}},
        {"asks": {"extra": {"results_missing": True}}},
    ],
)
def test_an_atif_document_in_which_something_was_not_said_makes_no_row(changes: dict[str, Any]) -> None:
    assert document(**changes) == ("rewritten", [])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"asks": {"message": None}},
        {"asks": {"message": ...}},
        {"asks": {"observation": "paid"}},
        {"asks": {"timestamp": "soon", "metrics": [], "mood": "good"}},
        {"seen": {"content": None}},
        {"seen": {"milliseconds": 3}},
        {"call": {"arguments": '{"order": "x"}'}},
    ],
)
def test_an_atif_document_of_which_all_was_said_makes_one(changes: dict[str, Any]) -> None:
    why, messages = document(**changes)
    assert (why, len(messages)) == (None, 4)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"root": {"continued_trajectory_ref": 7}}, "continued"),
        ({"agent": {"tool_definitions": "look"}}, "tools-unreadable"),
        ({"seen": {"source_call_id": 7}}, "unlinked-results"),
        ({"call": {"arguments": "look x"}}, "unparsed-arguments"),
    ],
)
def test_what_could_not_be_kept_in_its_place_is_not_overlooked(changes: dict[str, Any], expected: str) -> None:
    assert document(**changes) == (expected, [])


def test_members_of_the_same_name_that_are_a_sources_own_are_believed() -> None:
    own = {"arguments": "as it was typed"}
    call = {"tool_call_id": "c", "function_name": "look", "arguments": {}, "extra": own}
    assert document(asks={"tool_calls": [call]})[0] is None
