"""Rows: the conversation as the model saw it, or the reason why there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.acts.corpus import tools_of
from tracemark.exporters import sft
from tracemark.exporters.select import Facts
from tracemark.harness import snapshot
from tracemark.harness.loading import load

A = "tm1:" + "a" * 64
KNOWN = Facts(id="1" * 64, fingerprint=A, status="success", tool_calls=1, task="t-1", model="m@1", grader="g")
TOOL = {"type": "function", "function": {"name": "grep", "description": "Search", "parameters": {"type": "object"}}}
SYSTEM = {"source": "system", "message": "S"}
USER = {"source": "user", "message": "Q"}
END = {"source": "agent", "message": "A"}


def call(name: str = "grep", call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def act(*calls: dict[str, Any], results: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent", "message": "", **more}
    if calls:
        step["tool_calls"] = list(calls)
    if results is not None:
        step["observation"] = {"results": results}
    return step


def result(content: Any = "r", call_id: str | None = "c1", **more: Any) -> dict[str, Any]:
    return {"content": content, **more} | ({} if call_id is None else {"source_call_id": call_id})


def trajectory(*steps: dict[str, Any], tools: Any = (TOOL,), **more: Any) -> dict[str, Any]:
    agent: dict[str, Any] = {"name": "a", "version": "1"}
    if tools is not None:
        agent["tool_definitions"] = list(tools)
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.8", "agent": agent, "steps": numbered, **more}


def row(document: dict[str, Any], known: Facts = KNOWN, bound: Any = None) -> dict[str, Any]:
    rendered = sft.render(document, known, bound)
    assert rendered.untrainable is None
    assert rendered.line is not None
    value: dict[str, Any] = json.loads(rendered.line)
    return value


def messages(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = row(trajectory(*steps))["messages"]
    return found


def detail(*steps: dict[str, Any], **more: Any) -> str | None:
    return sft.render(trajectory(*steps, **more), KNOWN).untrainable


def test_a_run_becomes_the_conversation_that_trl_reads() -> None:
    steps = [SYSTEM, USER, act(call(pattern="TODO"), results=[result()], message="look", reasoning_content="why"), END]
    assert row(trajectory(*steps)) == {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Q"},
            {
                "role": "assistant",
                "content": "look",
                "reasoning_content": "why",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": {"pattern": "TODO"}}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "grep", "content": "r"},
            {"role": "assistant", "content": "A"},
        ],
        "tools": [TOOL],
        "tracemark_fingerprint": A,
        "tracemark_grader": "g",
        "tracemark_model": "m@1",
        "tracemark_task": "t-1",
        "tracemark_trace_id": "1" * 64,
    }


def test_the_columns_are_those_that_the_card_declares() -> None:
    assert list(row(trajectory(USER, END))) == list(sft.COLUMNS)


def test_what_nobody_knows_is_null_and_the_column_is_there() -> None:
    bare = row(trajectory(USER, END), Facts(id="1" * 64, fingerprint=A, status="success", tool_calls=0))
    assert (bare["tracemark_task"], bare["tracemark_model"], bare["tracemark_grader"]) == (None, None, None)


def test_no_column_is_one_that_a_trainer_or_a_loader_takes_for_its_own() -> None:
    taken = {"prompt", "completion", "prompts", "completions", "chosen", "rejected", "label", "input_ids", "text"}
    taken |= {"id", "source", "model", "system_prompt", "type", "message", "payload", "version", "cwd"}
    assert not taken & set(sft.COLUMNS)


def test_reasoning_is_a_member_only_where_it_was_recorded() -> None:
    assert "reasoning_content" not in messages(USER, END)[1]
    assert "reasoning_content" not in messages(USER, {**END, "reasoning_content": None})[1]
    assert messages(USER, {**END, "reasoning_content": ""})[1]["reasoning_content"] == ""


def test_an_observation_without_content_is_an_empty_text() -> None:
    for content in (None, ""):
        assert messages(USER, act(call(), results=[result(content)]), END)[2]["content"] == ""


def test_several_calls_keep_their_results_apart_and_in_order() -> None:
    step = act(call("a", "c1"), call("b", "c2"), results=[result("two", "c2"), result("one", "c1")])
    assert [(m["name"], m["content"]) for m in messages(USER, step, END)[2:4]] == [("b", "two"), ("a", "one")]


def test_a_result_without_a_link_answers_the_only_call() -> None:
    assert messages(USER, act(call(), results=[result(call_id=None)]), END)[2]["tool_call_id"] == "c1"


def test_a_call_may_have_no_result() -> None:
    assert [m["role"] for m in messages(USER, act(call()))] == ["user", "assistant"]


def test_what_a_harness_without_native_calls_shows_is_a_user_message() -> None:
    step = act(results=[result("screen", None)], message='{"commands": []}')
    assert messages(USER, step, END)[2] == {"role": "user", "content": "screen"}


def test_text_parts_become_one_text_as_chat_templates_make_it_so_that_a_column_has_one_type() -> None:
    parts = [{"type": "text", "text": "a\n"}, {"type": "text", "text": "b"}]
    assert messages({"source": "user", "message": parts}, END)[0]["content"] == "a\nb"
    answered = act(call(), results=[result(content=parts)])
    assert messages(USER, answered, END)[2]["content"] == "a\nb"
    assert messages({"source": "user", "message": []}, END)[0]["content"] == ""


@pytest.mark.parametrize(
    ("expected", "steps", "more"),
    [
        ("copied-context", [USER, {**END, "is_copied_context": True}], {}),
        ("copied-context", [{**USER, "is_copied_context": True}, END], {}),
        ("without-model-call", [USER, {**END, "llm_call_count": 0}], {}),
        ("no-assistant-step", [SYSTEM, USER], {}),
        ("no-prompt", [END], {}),
        ("no-prompt", [act(call(pattern="x"), results=[result()]), USER, END], {}),
        ("continued", [USER, END], {"continued_trajectory_ref": "next.json"}),
        ("user-calls", [{**USER, "extra": {"tool_calls": [call()]}}, END], {}),
        ("user-calls", [{**USER, "extra": {"user_tool_calls": [call()]}}, END], {}),
        ("context-rewritten", [USER, {**END, "extra": {"context_management": {"boundary": "replace"}}}], {}),
        ("context-rewritten", [USER, {**END, "extra": {"context_management": "compaction"}}], {}),
        ("stray-observation", [{**SYSTEM, "observation": {"results": [result(call_id=None)]}}, END], {}),
        ("event", [{**SYSTEM, "observation": {"results": []}}, USER, END], {}),
        ("unlinked-results", [USER, act(call("a", "c1"), call("b", "c2"), results=[result(call_id=None)])], {}),
        ("unlinked-results", [USER, act(call(), results=[result(), result()])], {}),
        ("unlinked-results", [USER, act(call(), results=[result(call_id="c9")])], {}),
        ("unlinked-results", [USER, act(call(), results=[result(), result(call_id=None)])], {}),
        ("unlinked-results", [USER, act(call("a"), call("b"), results=[result()])], {}),
        (
            "unlinked-results",
            [USER, act(call(), results=[result(call_id=None, extra={"original_call_id": "c9"})])],
            {},
        ),
        ("unlinked-results", [USER, act(results=[result(call_id=None), result(call_id=None)])], {}),
        ("media", [{**USER, "message": [{"type": "image", "source": {"path": "../../etc/passwd"}}]}, END], {}),
        ("media", [USER, act(call(), results=[result([{"type": "audio", "source": {}}])])], {}),
        ("tools-unknown", [USER, act(call())], {"tools": None}),
        ("tools-unknown", [USER, act(call())], {"tools": []}),
        ("tools-unreadable", [USER, act(call())], {"tools": [{"whatever": 1}]}),
        (
            "tools-unreadable",
            [USER, act(call())],
            {"tools": [TOOL, {"type": "function", "function": {"name": "evil", "parameters": []}}]},
        ),
        ("unparsed-arguments", [USER, act(call(_raw="rm -rf"))], {}),
        ("integer-beyond-64-bit", [USER, act(call(at=[{"n": 2**63}]))], {}),
        ("integer-beyond-64-bit", [USER, act(call(n=-(2**63) - 1))], {}),
        (
            "integer-beyond-64-bit",
            [USER, END],
            {"tools": [{"name": "t", "parameters": {"type": "integer", "maximum": 2**64}}]},
        ),
        ("lone-surrogate", [USER, {**END, "message": "a\ud800"}], {}),
        ("lone-surrogate", [USER, act(call(path="\udfff"))], {}),
    ],
)
def test_what_makes_no_row_says_why(expected: str, steps: list[dict[str, Any]], more: dict[str, Any]) -> None:
    assert detail(*steps, **more) == expected
    assert expected in sft.DETAILS


def test_what_openhands_recalls_is_an_event_and_no_system_message() -> None:
    recalled = {**SYSTEM, "message": "Retrieving content for: deploy"}
    document = {"agent": {"name": "openhands", "version": "1"}, "steps": [recalled, USER, END]}
    facts = Facts(id="1" * 64, fingerprint=A, status="success", tool_calls=0)
    assert sft.render(document, facts).untrainable == "event"
    document["agent"] = {"name": "another", "version": "1"}
    assert sft.render(document, facts).untrainable is None


def test_a_system_step_that_names_an_event_makes_no_row_wherever_it_stands() -> None:
    named = {**SYSTEM, "message": "Subtask failed.", "extra": {"event_type": "subtask_failed"}}
    assert detail(named, USER, END) == detail(USER, END, named) == "event"
    assert detail({**named, "extra": {"event_type": None}}, USER, END) is None


def test_what_the_facts_say_against_a_row_is_repeated() -> None:
    known = Facts(id="1" * 64, fingerprint=A, status="success", tool_calls=0, untrainable="rendered")
    assert sft.render(trajectory(USER, END), known) == (None, "rendered")


def test_numbers_within_64_bits_and_whole_characters_are_kept_exactly() -> None:
    step = act(call(low=-(2**63), high=2**63 - 1, fraction=0.3, float=25.0, flag=True, none=None, text="😀 \\ud800"))
    arguments = messages(USER, step)[1]["tool_calls"][0]["function"]["arguments"]
    assert arguments == {
        "low": -(2**63),
        "high": 2**63 - 1,
        "fraction": 0.3,
        "float": 25.0,
        "flag": True,
        "none": None,
        "text": "😀 \\ud800",
    }


def test_an_injected_context_is_no_rewritten_one() -> None:
    injected = {**USER, "extra": {"context_management": {"type": "injection", "boundary": "append"}}}
    assert detail(injected, END) is None


def test_the_harness_gives_its_tools_where_the_trace_records_none() -> None:
    bound = [{"name": "grep", "description": "Search", "parameters": {"type": "object"}}]
    recorded: Any
    for recorded in (None, []):
        assert row(trajectory(USER, act(call()), tools=recorded), bound=bound)["tools"] == [TOOL]
    assert row(trajectory(USER, END, tools=None), bound=bound)["tools"] == [TOOL]
    assert row(trajectory(USER, END, tools=[]), bound=bound)["tools"] == []
    assert row(trajectory(USER, END, tools=None))["tools"] == []


def test_a_wrapped_definition_is_kept_to_the_letter_and_others_are_wrapped() -> None:
    function = {"name": "x", "parameters": {}, "description": "gives null", "strict": True, "title": "T"}
    strict = {"type": "function", "function": function}
    anthropic = {"name": "grep", "description": "Search", "input_schema": {"type": "object"}}
    assert row(trajectory(USER, END, tools=[strict, anthropic]))["tools"] == [strict, TOOL]


def test_null_padding_of_a_table_format_is_not_trained_on() -> None:
    padded = json.loads(json.dumps(TOOL))
    padded["function"]["parameters"]["properties"] = {"a": {"type": "string"}, "of_another_tool": None}
    (tool,) = row(trajectory(USER, END, tools=[padded]))["tools"]
    assert tool["function"]["parameters"]["properties"] == {"a": {"type": "string"}}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values), st.text())
def test_the_same_trace_gives_the_same_line_and_arguments_come_back_as_they_were(
    arguments: dict[str, Any], said: str
) -> None:
    document = trajectory(USER, act({**call(), "arguments": arguments}, results=[result(said)]))
    rendered = sft.render(document, KNOWN)
    stored = digest.load_canonical(digest.canonical(document))
    assert sft.render(stored, KNOWN) == rendered
    if rendered.line is None:
        assert rendered.untrainable in {"lone-surrogate", "unparsed-arguments"}
        return
    assert rendered.line.endswith(b"\n")
    assert rendered.line.count(b"\n") == 1
    back = json.loads(rendered.line)
    assert back["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments
    assert back["messages"][2]["content"] == said


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_a_line_holds_a_lone_surrogate_exactly_when_the_text_does(said: str) -> None:
    rendered = sft.render(trajectory(USER, {**END, "message": said}), KNOWN)
    joined = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert (rendered.untrainable == "lone-surrogate") is any("\ud800" <= letter <= "\udfff" for letter in joined)


# --- order ------------------------------------------------------------------------------------------------------------

SCHEMA_FILE: dict[str, Any] = {
    "name": "move",
    "description": "Move it",
    "parameters": {
        "type": "object",
        "required": ["to"],
        "properties": {
            "to": {"description": "Where", "type": "string"},
            "by": {"type": "object", "properties": {"y": {"type": "number"}, "x": {"type": "number"}}},
            "at": {"type": ["string", "null"]},
        },
        "additionalProperties": False,
    },
}
SENT = {"type": "function", "function": SCHEMA_FILE}


def members(value: Any) -> Any:
    """Return a value with its members as pairs, so that equality sees their order."""
    if isinstance(value, dict):
        return [(key, members(inner)) for key, inner in value.items()]
    return [members(item) for item in value] if isinstance(value, list) else value


def stored(document: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = digest.load_canonical(digest.canonical(document))
    return value


def to_json(value: Any, indent: int | None = None) -> str:
    """Write JSON as the `tojson` filter of transformers' chat templates does."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


@pytest.fixture
def harness_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "harness_versions" / "mover"
    folder.mkdir(parents=True)
    (folder / "move.json").write_text(json.dumps(SCHEMA_FILE, indent=2), encoding="utf-8")
    (folder / "harness.yaml").write_text(
        "format: tracemark/harness/1\ntool_bindings:\n  move: {schema: move.json}\n", encoding="utf-8"
    )
    return folder


def test_a_chat_template_writes_the_tools_as_the_harness_sends_them(harness_folder: Path) -> None:
    environment = jinja2.Environment(autoescape=False)
    environment.filters["tojson"] = to_json
    template = environment.from_string("{% for tool in tools %}{{ tool | tojson }}{% endfor %}")
    harness = load(harness_folder)
    sent = tools_of(harness)
    from_file = {"type": "function", "function": json.loads((harness_folder / "move.json").read_text())}
    for bound in (sent, tools_of(snapshot.from_bytes(snapshot.to_bytes(harness)))):
        for recorded in (sent, None):
            made = row(stored(trajectory(USER, act(call("move", to="b")), tools=recorded)), bound=bound)
            assert template.render(tools=made["tools"]) == json.dumps(from_file) == template.render(tools=sent)


def test_a_recorded_tool_that_the_harness_does_not_bind_has_the_conventional_order() -> None:
    inner = {"type": "object", "properties": {"type": {"enum": ["a"], "type": "string"}}, "minProperties": 1}
    other = {"strict": True, "parameters": inner, "name": "other", "description": "d"}
    (made,) = row(trajectory(USER, END, tools=[other]), bound=[SCHEMA_FILE])["tools"]
    assert list(made) == ["type", "function"]
    assert list(made["function"]) == ["name", "description", "parameters", "strict"]
    assert list(made["function"]["parameters"]) == ["type", "properties", "minProperties"]
    assert list(made["function"]["parameters"]["properties"]["type"]) == ["type", "enum"]


def test_a_tool_of_the_same_name_and_another_definition_is_another_tool() -> None:
    changed = json.loads(json.dumps(SENT))
    changed["function"]["parameters"]["properties"]["to"]["type"] = "integer"
    (made,) = row(trajectory(USER, END, tools=[changed]), bound=[SCHEMA_FILE])["tools"]
    assert made == changed
    assert list(made["function"]["parameters"]["properties"]) == ["at", "by", "to"]


def test_packaging_of_a_recorded_tool_is_kept_and_the_rest_has_the_order_of_the_harness() -> None:
    packed = {"type": "function", "function": {**SCHEMA_FILE, "strict": False, "title": "T"}, "cache_control": {"t": 1}}
    (made,) = row(stored(trajectory(USER, END, tools=[packed])), bound=[SENT])["tools"]
    assert members(made) == members(packed)


def test_the_tools_stand_in_the_order_of_the_record() -> None:
    bound = [{"name": "a"}, {"name": "b"}]
    made = row(trajectory(USER, END, tools=[{"name": "b"}, {"name": "a"}]), bound=bound)["tools"]
    assert [tool["function"]["name"] for tool in made] == ["b", "a"]


def test_arguments_stand_in_the_order_of_the_tools_properties_and_unknown_ones_after() -> None:
    given = {"zz": 1, "by": {"x": 1, "y": 2, "a": 3}, "aa": {"d": 1, "c": 2}, "to": "b"}
    made = row(trajectory(USER, act({**call("move"), "arguments": given}), tools=[SENT]), bound=[SENT])
    arguments = made["messages"][1]["tool_calls"][0]["function"]["arguments"]
    wanted = {"to": "b", "by": {"y": 2, "x": 1, "a": 3}, "aa": {"c": 2, "d": 1}, "zz": 1}
    assert members(arguments) == members(wanted)


def test_the_arguments_of_a_tool_that_nobody_describes_are_sorted() -> None:
    made = row(trajectory(USER, act(call("unknown", b=1, a=2))))
    assert list(made["messages"][1]["tool_calls"][0]["function"]["arguments"]) == ["a", "b"]


def test_messages_and_calls_have_the_conventional_order() -> None:
    step = act(call(pattern="x"), results=[result()], message="m", reasoning_content="r")
    _, assistant, tool = messages(USER, step)
    assert list(assistant) == ["role", "content", "reasoning_content", "tool_calls"]
    assert list(assistant["tool_calls"][0]) == ["id", "type", "function"]
    assert list(assistant["tool_calls"][0]["function"]) == ["name", "arguments"]
    assert list(tool) == ["role", "tool_call_id", "name", "content"]


@given(st.dictionaries(st.sampled_from(["to", "by", "at", "x"]), json_values), st.permutations(["to", "by", "at", "x"]))
def test_the_order_in_which_a_document_came_changes_nothing(given_: dict[str, Any], keys: list[str]) -> None:
    lines = set()
    for arguments in (given_, {key: given_[key] for key in keys if key in given_}):
        document = trajectory(USER, act({**call("move"), "arguments": arguments}), tools=[SENT])
        lines |= {sft.render(document, KNOWN, [SENT]).line, sft.render(stored(document), KNOWN, [SENT]).line}
    assert len(lines) == 1


@pytest.mark.parametrize(("length", "kept"), [(100, 1), (300_000, 0)])
def test_long_definitions_of_tools_give_the_same_rows_and_are_not_remembered(length: int, kept: int) -> None:
    described = {**TOOL["function"], "description": "x" * length}  # type: ignore[dict-item]
    tools = [{"type": "function", "function": described}]
    sft._remembered.cache_clear()
    for _ in range(2):
        assert row(trajectory(USER, END, tools=tools))["tools"] == tools
    assert sft._remembered.cache_info().currsize == kept
