"""The schema that the text of a signature gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.signature import SignatureError, schema_of

HEAD = (
    "import typing as t\nfrom collections.abc import Mapping, Sequence\n"
    "from typing import Annotated, Any, Dict, List, Literal, Optional, Union\n\n\n"
)


def schema(text: str, attribute: str = "f", bound: tuple[str, ...] = ()) -> dict:
    return schema_of((HEAD + text).encode(), attribute, "tool", bound)


def parameter(annotation: str) -> dict:
    return schema(f"def f(x: {annotation}): ...\n")["parameters"]["properties"]["x"]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("Any", {}),
        ("object", {}),
        ("list", {"type": "array"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("t.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("Sequence[Any]", {"type": "array"}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("set[str]", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        ("dict", {"type": "object"}),
        ("Dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Mapping[str, Any]", {"type": "object"}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal[1, 'b']", {"enum": [1, "b"]}),
        ("str | None", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("Optional[str]", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("Union[int, str, int]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("int | str | None", {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("int | Any", {}),
        ("Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
        ("'list[int]'", {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_an_annotation_gives_a_schema(annotation, expected):
    assert parameter(annotation) == expected


@pytest.mark.parametrize(
    "annotation",
    [
        "Order",
        "tuple[int, str]",
        "dict[int, str]",
        "list[int, str]",
        "'not python ('",
        "int & str",
        "Literal[f()]",
        "t",
    ],
)
def test_an_annotation_that_says_more_than_its_text_gives_none(annotation):
    with pytest.raises(SignatureError, match="`x`"):
        parameter(annotation)


@pytest.mark.parametrize(
    "before",
    ["class str: ...", "def str(): ...", "from texts import str", "from texts import Text as str",
     "import texts as str", "str = bytes", "str: type = bytes"],
)  # fmt: skip
def test_what_the_file_gives_a_plain_name_is_not_the_plain_type(before):
    with pytest.raises(SignatureError, match="`str` of `x`"):
        schema(f"{before}\n\n\ndef f(x: str): ...\n")


def test_a_name_of_typing_that_is_given_something_else_is_none_of_it():
    with pytest.raises(SignatureError, match="`Any` of `x`"):
        schema("from typing import Any\nfrom texts import Any\n\n\ndef f(x: Any): ...\n")
    assert schema("from texts import Any\nfrom typing import Any\n\n\ndef f(x: Any): ...\n")


def test_what_has_no_default_is_required_and_literal_defaults_are_told():
    made = schema("def f(a, b: int = 3, *, c, d=None, e=[1], g=LIMIT, h=(1,)): ...\n")["parameters"]
    assert made == {
        "type": "object",
        "properties": {"a": {}, "b": {"type": "integer", "default": 3}, "c": {}, "d": {}}
        | {"e": {"default": [1]}, "g": {}, "h": {}},
        "required": ["a", "c"],
    }


def test_without_parameters_nothing_is_required():
    assert schema("def f(): ...\n") == {"name": "tool", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("parameters", "named"), [("*ids", "*ids"), ("**more", "**more"), ("a, /, b", "`a`"), ("a, b=1, /", "`a`")]
)
def test_parameters_that_a_call_by_name_cannot_give_give_no_schema(parameters, named):
    with pytest.raises(SignatureError) as raised:
        schema(f"def f({parameters}): ...\n")
    assert named in str(raised.value)


def test_bound_parameters_are_not_shown():
    assert schema("def f(a, limit, /, b): ...\n", bound=("a", "limit"))["parameters"]["required"] == ["b"]


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("class C:\n    def m(self, a): ...\n", "C.m"),
        ("class C:\n    @staticmethod\n    def m(a): ...\n", "C.m"),
        ("class C:\n    @classmethod\n    def m(cls, a): ...\n", "C.m"),
        ("class C:\n    def __init__(self, a): ...\n", "C"),
        ("class C:\n    class D:\n        async def m(self, a): ...\n", "C.D.m"),
        ("if True:\n    def f(a): ...\n", "f"),
        ("from typing import overload\n@overload\ndef f(a: int): ...\ndef f(a): ...\n", "f"),
    ],
)
def test_the_definition_is_found_wherever_the_entry_leads(text, attribute):
    assert schema(text, attribute)["parameters"]["required"] == ["a"]


@pytest.mark.parametrize(
    ("text", "attribute", "reason"),
    [
        ("def f(): ...\ndef f(a): ...\n", "f", "more than once"),
        ("f = 3\n", "f", "no `def` or `class`"),
        ("def g():\n    def f(): ...\n", "f", "no `def` or `class`"),
        ("def f(): ...\n", "f.g", "`f` is no class"),
        ("class C: ...\n", "C", "no `__init__`"),
        ("def f(:\n", "f", "does not parse"),
    ],
)
def test_where_no_one_definition_is_meant_there_is_no_schema(text, attribute, reason):
    with pytest.raises(SignatureError, match=reason):
        schema(text, attribute)


GOOGLE = '''def f(order, days=3):
    """Find an order.

    Looks in all shops.

    Args:
        order (str): its number,
            with dashes
        days: how old it may be

    Returns:
        order: never read
    """
'''
SPHINX = '''def f(order, days=3):
    """Find an order.

    Looks in all shops.

    :param str order: its number,
        with dashes
    :param days: how old it may be
    :returns: the order
    """
'''
UNDERLINED = '''def f(order):
    """Find an order.

    Looks in all shops.

    Returns
    -------
    dict
    """
'''


@pytest.mark.parametrize("text", [GOOGLE, SPHINX])
def test_the_docstring_describes_the_tool_and_its_parameters(text):
    made = schema(text)
    assert made["description"] == "Find an order.\n\nLooks in all shops."
    described = {name: inner["description"] for name, inner in made["parameters"]["properties"].items()}
    assert described == {"order": "its number, with dashes", "days": "how old it may be"}


def test_a_section_with_a_line_below_its_heading_is_no_description():
    assert schema(UNDERLINED)["description"] == "Find an order.\n\nLooks in all shops."


def test_a_class_is_described_by_its_own_docstring_and_its_parameters_by_either():
    inner = '        """Begin.\n\n        Args:\n            a: what\n        """\n'
    text = f'class C:\n    """Finds."""\n    def __init__(self, a):\n{inner}'
    made = schema(text, "C")
    assert (made["description"], made["parameters"]["properties"]["a"]) == ("Finds.", {"description": "what"})


LEAVES = st.sampled_from(["str", "int", "bool", "Any", "None", "Literal['a', 2]"])
ANNOTATIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map("list[{}]".format),
        inner.map("dict[str, {}]".format),
        inner.map("Optional[{}]".format),
        st.tuples(inner, inner).map(" | ".join),
    ),
    max_leaves=6,
)


@given(st.lists(ANNOTATIONS, max_size=4))
def test_spacing_comments_and_quotes_around_a_signature_change_no_schema(annotations):
    plain = ", ".join(f"p{n}: {a}" for n, a in enumerate(annotations))
    spaced = "".join(f"\n    p{n}: {json.dumps(a)},  # {n}" for n, a in enumerate(annotations))
    assert schema(f"def f({plain}): ...\n") == schema(f"def f({spaced}\n): ...\n")


def test_a_folder_that_leaves_the_schema_to_the_entry_is_the_one_that_writes_it_out(desk, other):
    for folder in (desk, other):
        folder.write(
            "logic/tools.py", '"""Tools."""\n\n\ndef look_up(id: str):\n    """Find."""\n\n\ndef refund(): ...\n'
        )
    desk.replace("harness.yaml", "schema: tools/look_up.json, ", "")
    desk.remove("tools/look_up.json")
    written = schema_of((other.path / "logic/tools.py").read_bytes(), "look_up", "look_up")
    other.write("tools/look_up.json", json.dumps({"type": "function", "function": written}))
    assert desk.fingerprint() == other.fingerprint()
    assert desk.load().tool_schema("look_up") == other.load().tool_schema("look_up")
    # a schema made from a signature changes with it
    desk.replace("logic/tools.py", "id: str", "id: int")
    assert desk.fingerprint() != other.fingerprint()


def test_bound_parameters_of_a_binding_are_left_out_of_its_schema(desk):
    desk.write("logic/tools.py", "def look_up(id): ...\n\n\ndef refund(order: str, limit: int): ...\n")
    desk.replace("harness.yaml", "schema: tools/refund.json", "schema: entry")
    desk.remove("tools/refund.json")
    assert list(desk.load().tool_schema("refund")["parameters"]["properties"]) == ["order"]
