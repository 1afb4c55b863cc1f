"""What schemas say of calls: which stop being valid, where and why, and where nothing can be said."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.diff import Difference, Kind
from tracemark.harness.impact import FAULTS, Schemas, Verdict, changes, judge, worst

ORDER = {"type": "string"}


def schemas(parameters: Any, name: str = "look") -> Schemas:
    tool = {"name": name} if parameters is None else {"name": name, "parameters": parameters}
    return Schemas([{"type": "function", "function": tool}])


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def found(parameters: Any, arguments: dict[str, Any]) -> list[tuple[str, str]]:
    faults = schemas(parameters).faults("look", arguments)
    assert faults is not None
    return [(fault.argument, fault.rule) for fault in faults]


def trajectory(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "?"}]
    for name, arguments in calls:
        call = {"tool_call_id": "c", "function_name": name, "arguments": arguments}
        steps.append({"step_id": len(steps) + 1, "source": "agent", "message": "", "tool_calls": [call]})
    return {"steps": steps}


def verdicts(old: Any, new: Any, *calls: tuple[str, dict[str, Any]]) -> list[Verdict]:
    return [one.verdict for one in judge(trajectory(*calls), schemas(old), schemas(new))]


# --- where and why


@pytest.mark.parametrize(
    ("parameters", "arguments", "expected"),
    [
        (closed(order=ORDER), {"order": "o-1"}, []),
        (closed(order=ORDER, by=ORDER), {"order": "o-1"}, [("/by", "required")]),
        (closed(order=ORDER), {"order": "o-1", "a": 1}, [("/a", "additionalProperties")]),
        (closed(), {"a": 1, "b": 2}, [("/a", "additionalProperties"), ("/b", "additionalProperties")]),
        ({"type": "object", "properties": {}}, {"order": "o-1"}, []),
        (closed(order={"type": "integer"}), {"order": "1"}, [("/order", "type")]),
        (closed(order={"type": "integer"}), {"order": 1.0}, []),
        (closed(order={"type": "integer"}), {"order": True}, [("/order", "type")]),
        (closed(order={"enum": ["a", "b"]}), {"order": "c"}, [("/order", "enum")]),
        (closed(order={"const": None}), {"order": "c"}, [("/order", "const")]),
        (closed(order={"anyOf": [ORDER, {"type": "null"}]}), {"order": 1}, [("/order", "anyOf")]),
        (closed(a=closed(b={"items": ORDER})), {"a": {"b": ["x", 1]}}, [("/a/b/1", "type")]),
        (closed(**{"a/b~c": ORDER}), {"a/b~c": 1}, [("/a~1b~0c", "type")]),
        (closed(order={"type": "integer"}), {"order": 2**80}, []),
        (closed(order={"type": "string", "format": "email"}), {"order": "nobody"}, []),
        (None, {"anything": [1]}, []),
        ({"$ref": "#/$defs/o", "$defs": {"o": closed(order=ORDER)}}, {}, [("/order", "required")]),
    ],
)  # fmt: skip
def test_a_fault_names_the_argument_and_the_rule(parameters: Any, arguments: Any, expected: Any) -> None:
    assert found(parameters, arguments) == expected


def test_a_draft_that_a_schema_names_is_the_one_that_judges_it() -> None:
    draft = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"maximum": 5, "exclusiveMaximum": True}},
    }
    assert found(draft, {"n": 5}) == [("/n", "exclusiveMaximum")]


def test_a_tool_that_is_not_bound_is_a_fault_of_the_call() -> None:
    (fault,) = schemas(None).faults("seek", {}) or ()
    assert (fault.argument, fault.rule) == ("", "tool-unbound")


def test_arguments_that_were_no_object_are_a_fault_under_any_schema() -> None:
    assert found(None, {"_raw": "{'order': 1}"}) == [("", "no-object")]
    assert verdicts(None, closed(), ("look", {"_raw": "x"})) == [Verdict.INVALID_BEFORE]
    # a tool may have an argument of that name
    assert found(closed(_raw=ORDER, order=ORDER), {"_raw": "x", "order": "1"}) == []


@pytest.mark.parametrize("reference", ["#/$defs/d{}", "#a{}"])
def test_references_that_multiply_without_end_make_a_schema_unusable(reference: str) -> None:
    defs: dict[str, Any] = {"d0": {"type": "object", "$anchor": "a0"}}
    for level in range(40):
        below = {"$ref": reference.format(level)}
        defs[f"d{level + 1}"] = {"$anchor": f"a{level + 1}", "allOf": [below, below]}
    doubled = schemas({"$defs": defs, "$ref": reference.format(40)})
    assert "100000 schemas" in doubled.unusable["look"]
    assert doubled.faults("look", {}) is None
    few = {f"d{level}": defs[f"d{level}"] for level in range(9)}
    assert schemas({"$defs": few, "$ref": reference.format(8)}).faults("look", {}) == ()


def test_a_schema_that_refers_to_itself_is_usable() -> None:
    tree = {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}]}
    assert (
        found({"$defs": {"tree": tree}, "properties": {"a": {"$ref": "#/$defs/tree"}}}, {"a": {"b": {"c": "d"}}}) == []
    )


def test_faults_of_one_call_and_their_words_are_limited() -> None:
    faults = schemas(closed(a={"items": ORDER})).faults("look", {"a": list(range(10_000)), "b" * 1000: "x" * 10_000})
    assert faults is not None
    assert len(faults) == FAULTS
    long = schemas(closed(a={"enum": ["x" * 5000]})).faults("look", {"a": "y" * 5000})
    assert long is not None
    assert all(len(fault.why) < 200 for fault in long)


# --- what decides nothing


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "strin"},
        {"pattern": "("},
        {"$ref": "#/$defs/gone"},
        {"$ref": "other.json"},
        {"$schema": "http://127.0.0.1:9/unknown", "type": "object"},
        {"properties": {"a": {"type": ["object", 5]}}},
    ],
)
def test_a_schema_that_is_unusable_decides_nothing_and_says_why(parameters: Any) -> None:
    unusable = schemas(parameters)
    assert unusable.faults("look", {}) is None
    assert unusable.unusable["look"]
    assert verdicts(None, parameters, ("look", {})) == [Verdict.UNDECIDED]


def test_no_reference_is_ever_fetched_or_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schema.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for uri in (f"http://127.0.0.1:{port}/s.json", (tmp_path / "schema.json").as_uri()):
            for parameters in ({"$ref": uri}, {"$schema": uri}, {"$id": uri, "$dynamicRef": "x"}):
                assert schemas(parameters).faults("look", {}) is None
        with pytest.raises(TimeoutError):
            server.accept()


def test_arguments_that_no_validator_takes_are_undecided() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert schemas(closed(a={"enum": ["x"]})).faults("look", {"a": "\ud800"}) is None
    assert schemas(closed(a={"enum": ["x"]})).faults("look", {"a": deep}) is None
    endless = closed(a={"pattern": r"(?!x)(?:a|aa|aaa)*(?=c)b"})
    assert schemas(endless).faults("look", {"a": "a" * 2000}) is None


def test_a_schema_that_refers_to_itself_ends() -> None:
    for parameters in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"properties": {"a": {"$ref": "#"}}}):
        assert found(parameters, {"a": {"a": {}}}) == []


# --- verdicts


def test_a_call_stops_when_it_was_valid_and_is_not_any_more() -> None:
    call = ("look", {"order": "o-1"})
    assert verdicts(closed(order=ORDER), closed(order=ORDER), call) == [Verdict.VALID]
    assert verdicts(closed(order=ORDER), closed(order={"type": "integer"}), call) == [Verdict.STOPPED]
    assert verdicts(closed(order={"type": "integer"}), closed(order={"const": 1}), call) == [Verdict.INVALID_BEFORE]
    assert verdicts(closed(order={"type": "integer"}), closed(order=ORDER), call) == [Verdict.VALID]


def test_the_place_of_a_call_is_its_step_and_its_number_in_it() -> None:
    run = trajectory(("look", {"order": "o"}), ("seek", {}))
    run["steps"][1]["tool_calls"] *= 2
    judged = list(judge(run, schemas(None), schemas(closed())))
    assert [(one.step, one.call, one.tool) for one in judged] == [(2, 1, "look"), (2, 2, "look"), (3, 1, "seek")]
    assert [bool(one.faults) for one in judged] == [True, True, False]


def test_without_the_old_schemas_nothing_is_said_to_have_stopped() -> None:
    (valid, undecided) = judge(trajectory(("look", {}), ("gone", {})), None, schemas(None))
    assert (valid.verdict, undecided.verdict) == (Verdict.VALID, Verdict.UNDECIDED)


def test_calls_of_embedded_subagents_are_not_the_agents_own() -> None:
    run = trajectory()
    run["subagent_trajectories"] = [trajectory(("gone", {}))]
    assert list(judge(run, schemas(None), schemas(None))) == []


@given(st.lists(st.sampled_from(list(Verdict))))
def test_a_trace_is_usable_exactly_when_all_its_calls_are_valid(said: list[Verdict]) -> None:
    assert (worst(said) is Verdict.VALID) == all(one is Verdict.VALID for one in said)
    assert (worst(said) is Verdict.STOPPED) == (Verdict.STOPPED in said)


@given(st.dictionaries(st.sampled_from("abc"), st.one_of(st.integers(), st.text(), st.none()), max_size=3))
def test_under_equal_schemas_no_call_stops(arguments: dict[str, Any]) -> None:
    parameters = closed(a={"type": "integer"}, b={"type": ["string", "null"]})
    (one,) = verdicts(parameters, parameters, ("look", arguments))
    assert one in (Verdict.VALID, Verdict.INVALID_BEFORE)


# --- what else changed


def test_each_change_says_what_it_means_and_promises_no_more() -> None:
    told = changes(
        [
            Difference("prompt_templates", "system", Kind.CHANGED, ("text",), ()),
            Difference("tool_bindings", "look", Kind.CHANGED, ("entry", "schema"), ()),
            Difference("tool_bindings", "seek", Kind.CHANGED, ("entry",), ()),
            Difference("tool_bindings", "old", Kind.REMOVED, ("schema",), ()),
            Difference("tool_bindings", "new", Kind.ADDED, ("schema",), ()),
            Difference("observation_handlers", "", Kind.REORDERED, (), ()),
            Difference("runtime", "limits", Kind.CHANGED, ("steps",), ()),
        ]
    )
    means = [one.means for one in told]
    assert "messages of the old prompts" in means[0]
    assert "new schema" in means[1]
    assert "answer now is not known" in means[1]
    assert "schema" not in means[2]
    assert means[3] == "every call of it stops validating"
    assert means[4] == "no trace was offered it"
    assert "observations of the old handlers" in means[5]
    assert "not known" in means[6]
