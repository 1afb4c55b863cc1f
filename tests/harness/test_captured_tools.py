"""What live tools are: definitions, models, answers of servers, code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tracemark.errors import UsageError
from tracemark.harness.capture import capture
from tracemark.harness.captured_tools import listed

PARAMETERS = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
BARE = {"name": "look", "description": "Find an order.", "parameters": PARAMETERS}


class Look(BaseModel):
    """Find an order."""

    order: str = Field(description="its number")
    days: int = 3


class Plain(BaseModel):
    order: str


def of_server(**more: Any) -> Any:
    """What the `mcp` package makes of a server's answer."""
    tool = SimpleNamespace(name="look", description="Find an order.", inputSchema=PARAMETERS, annotations=None, **more)
    return SimpleNamespace(tools=[tool], nextCursor=None)


WRAPPED = [
    BARE,
    {"type": "function", "function": BARE},
    {"type": "function", **BARE},
    {"name": "look", "description": "Find an order.", "input_schema": PARAMETERS},
    {"name": "look", "description": "Find an order.", "inputSchema": PARAMETERS, "annotations": {"title": "Look"}},
]


def fingerprint(tools: Any) -> str | None:
    captured = capture(tool_bindings=tools)
    assert captured.unrecorded == {}
    return captured.fingerprint


def test_a_tool_is_one_in_whatever_wrapper_list_or_answer_it_comes(lab):
    wants = lab.declare(tool_bindings={"look": {"schema": BARE}}).fingerprint
    for wrapped in WRAPPED:
        assert fingerprint([wrapped]) == fingerprint({"look": wrapped}) == wants
        assert fingerprint({"look": {"schema": wrapped}}) == wants
    for answer in (of_server(), of_server(title="Look"), {"tools": [WRAPPED[-1]]}, {"tools": WRAPPED[:1], "_meta": {}}):
        assert fingerprint(answer) == wants


@pytest.mark.parametrize("answer", [of_server(), {"tools": [BARE]}])
def test_an_answer_with_further_pages_is_not_all_tools(answer):
    if isinstance(answer, dict):
        answer = {**answer, "nextCursor": "2"}
    else:
        answer.nextCursor = "2"
    with pytest.raises(UsageError, match="further pages"):
        listed(answer)


def test_a_tool_that_is_called_tools_is_no_answer_of_a_server():
    assert listed({"tools": BARE, "other": BARE}) == [("tools", BARE), ("other", BARE)]


def test_a_pydantic_model_is_the_schema_that_it_gives(lab):
    definition = {"name": "look", "description": "Find an order.", "parameters": Look.model_json_schema()}
    wants = lab.declare(tool_bindings={"look": {"schema": definition, "mutates": True}})
    assert fingerprint({"look": {"schema": Look, "mutates": True}}) == wants.fingerprint
    assert capture(tool_bindings={"look": Look}).require().tool_schema("look") == wants.tool_schema("look")
    assert "description" not in capture(tool_bindings=[Plain]).require().tool_schema("Plain")


def test_a_model_that_gives_no_schema_is_unrecorded():
    class Odd(BaseModel):
        inner: Any

        @classmethod
        def model_json_schema(cls, *_arguments: Any, **_named: Any) -> Any:
            raise ValueError("never")

    assert list(capture(tool_bindings={"odd": Odd}).unrecorded.values()) == [
        "the model gives no JSON Schema: ValueError"
    ]


def test_code_is_bound_with_the_schema_of_its_signature_or_a_given_one(lab):
    module = lab.load("tools.py", "def look(order: str, limit: int):\n    return order\n")
    for live, declared in (
        (module.look, {"entry": "tools:look"}),
        ({"entry": module.look, "parameters": {"limit": 3}}, {"entry": "tools:look", "parameters": {"limit": 3}}),
        ({"entry": module.look, "schema": "entry"}, {"entry": "tools:look"}),
        ({"entry": module.look, "schema": BARE, "mutates": False}, {"entry": "tools:look", "schema": BARE}),
        (
            {"entry": "tools:look", "schema": Plain},
            {"entry": "tools:look", "schema": {"name": "look", "parameters": Plain.model_json_schema()}},
        ),
    ):
        assert fingerprint({"look": live}) == lab.declare(tool_bindings={"look": declared}).fingerprint


def test_a_signature_that_gives_no_schema_leaves_the_tool_unrecorded(lab):
    module = lab.load("tools.py", "def look(order: 'Order'):\n    return order\n")
    (said,) = capture(tool_bindings=[module.look]).unrecorded.values()
    assert "no schema follows from the annotation `Order`" in said


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"schema": {"name": "other"}}, "the schema names the tool 'other'"),
        ({"name": "look", "parameters": 3}, "not an object"),
        ({"type": "web_search"}, "built into a provider"),
        ({"mutates": True, "schema": None}, "neither a schema nor code"),
        ({"name": "look", "parameters": {"default": object()}}, "holds an object of `object`"),
        ({"schema": 3}, "no definition of a tool"),
        (3, "no definition of a tool and no code"),
        (lambda order: order, "a lambda has no name"),
    ],
)
def test_what_is_no_tool_is_unrecorded_with_the_reason(tool, said):
    captured = capture(tool_bindings={"look": tool, "other": {"name": "other"}})
    assert list(captured.unrecorded) == [("tool_bindings", "look")]
    assert said in captured.unrecorded["tool_bindings", "look"]
