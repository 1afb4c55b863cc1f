"""A line that is well named and says nonsense is no line, wherever it comes from, and stops nobody who reads others."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.store.annotations import project_annotation
from tracemark.store.row import project_line
from tracemark.store.state import Statement, in_force, join
from tracemark.store.stated import wrong_in_annotation, wrong_in_trace
from tracemark.store.store import Store

TRACE = "a" * 64
DIGEST = "b" * 64
PARTS = {"limits": {"digest": DIGEST, "evidence": "claimed"}}
STAMP: dict[str, Any] = {
    "declared": {
        "name": "desk",
        "fingerprint": "tm1:" + "c" * 64,
        "components": {"runtime": {"digest": DIGEST, "evidence": "claimed", "parts": PARTS}},
    },
    "observed": {"tool_bindings": [{"part": "look", "form": "schema", "digest": DIGEST}]},
    "contradictions": [{"component": "runtime", "part": "limits", "step": 3, "text": "four steps"}],
}
OUTCOME: dict[str, Any] = {"status": "success", "reward": 1.0, "grader": {"name": "shop"}, "rule": "reward"}
RUN: dict[str, Any] = {"task": "t-1", "attempt": 1, "model": {"name": "m"}, "sampling": {"temperature": 0}}
SOURCE: dict[str, Any] = {"raw": DIGEST, "label": "a.json", "supersedes": [DIGEST]}
VALUES = {"stamps": {"harness": STAMP}, "outcomes": {"outcome": OUTCOME, "run": RUN}, "sources": {"source": SOURCE}}


def annotation(kind: str, value: Any, **members: Any) -> dict[str, Any]:
    tool = {"name": "grader", "version": "1"}
    return {"format": "tracemark/annotation/1", "kind": kind, "tool": tool, "trace": TRACE, "value": value, **members}


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("outcomes", {"outcome": "x"}, "value.outcome: must be an object"),
        ("outcomes", {"run": 5}, "value.run: must be an object"),
        ("outcomes", {"run": {"model": "m"}}, "value.run.model: must be an object"),
        ("outcomes", {"run": {"task": {"a": 1}}}, "value.run.task: must be a text"),
        ("outcomes", {"outcome": {"status": ["x"]}}, "value.outcome.status: must be one of"),
        ("outcomes", {"outcome": {"status": 7}}, "value.outcome.status: must be one of"),
        ("stamps", {"harness": {"declared": "x"}}, "value.harness.declared: must be an object"),
        (
            "stamps",
            {"harness": {"declared": {"components": 5}}},
            "value.harness.declared.components: must be an object",
        ),
        ("stamps", {"harness": {"contradictions": 5}}, "value.harness.contradictions: must be a list"),
        ("stamps", {"harness": {"observed": {"a": 5}}}, "value.harness.observed.a: must be a list"),
        ("stamps", {}, "value.harness: missing"),
        ("sources", {"source": {"raw": 5}}, "value.source.raw: must be"),
        ("exports.sft", {"traces": [TRACE]}, "value.fingerprint: missing"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_place(kind: str, value: Any, wrong: str) -> None:
    found = wrong_in_annotation(annotation(kind, value))
    assert found is not None
    assert found.startswith(wrong)
    with pytest.raises(IntegrityError, match="a line is not an annotation"):
        project_annotation(digest.canonical(annotation(kind, value)))


def test_an_evidence_that_nobody_knows_and_parameters_that_are_text_are_no_annotation() -> None:
    stamp = copy.deepcopy(STAMP)
    stamp["declared"]["components"]["runtime"]["evidence"] = "superb"
    assert "evidence: must be one of" in str(wrong_in_annotation(annotation("stamps", {"harness": stamp})))
    tool = {"name": "grader", "version": "1", "parameters": "all"}
    wrong = wrong_in_annotation(annotation("outcomes", {"outcome": OUTCOME}, tool=tool))
    assert wrong == "tool.parameters: must be an object"


def test_a_statement_about_no_trace_is_none() -> None:
    line = annotation("outcomes", {"outcome": OUTCOME})
    del line["trace"]
    assert wrong_in_annotation(line) == "trace: missing"


@pytest.mark.parametrize("kind", [*VALUES, "labels"])
def test_what_is_right_passes_lone_surrogates_and_other_kinds_too(kind: str) -> None:
    value = copy.deepcopy(VALUES.get(kind, {"traces": 5}))
    for stated in value.values():
        if isinstance(stated, dict) and "task" in stated:
            stated["task"] = "half \ud800"
    assert wrong_in_annotation(annotation(kind, value)) is None


@pytest.mark.parametrize("value", [{"outcome": "x"}, {"run": {"model": "m"}}, {"outcome": {"status": ["x"]}}])
def test_a_store_with_such_a_file_names_it_and_lists_its_traces(make, root, value: Any) -> None:
    trace = make.id_of(make.trace(1))
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
    line = digest.canonical(make.annotation("outcomes", trace, value)) + b"\n"
    data = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True).compress(line)
    folder = root / "traces" / "annotations" / "outcomes"
    folder.mkdir(parents=True)
    (folder / f"{digest.sha256(data)}.jsonl.zst").write_bytes(data)
    with Store.open(root) as store:
        assert {found.code for found in store.findings} == {"stored-not-indexed", "file-damaged"}
        assert store.state(trace).trace_id == trace


JUNK = st.sampled_from([None, True, 5, 1.5, "x", [], ["x"], {}, {"a": 5}, [[]], [{}], "a" * 64])


@st.composite
def spoiled(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a value with something else in one place, or without it."""
    found = copy.deepcopy(whole)
    node: Any = found
    while True:
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        inner = node[key]
        if not (isinstance(inner, (dict, list)) and inner and draw(st.booleans())):
            break
        node = inner
    if isinstance(node, dict) and draw(st.booleans()):
        del node[key]
    else:
        node[key] = draw(JUNK)
    return found


def read_all(statement: dict[str, Any]) -> None:
    """Do with a statement what reading verbs do."""
    one = Statement("d" * 64, statement.get("harness"), statement.get("run"), statement.get("outcome"))
    first = Statement("e" * 64, STAMP, {"task": "t-2"}, {"status": "failure"})
    join(in_force(first, [one], {}))
    join(in_force(one, [first], {}))


@given(st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), spoiled(VALUES[kind]))))
def test_whatever_passes_can_be_read(spoilt: tuple[str, dict[str, Any]]) -> None:
    kind, value = spoilt
    try:
        project_annotation(digest.canonical(annotation(kind, value)))
    except IntegrityError:
        return
    if kind != "sources":
        read_all(value)


@given(spoiled({"harness": STAMP, "outcome": OUTCOME, "run": RUN, "source": SOURCE}))
def test_whatever_passes_of_a_trace_can_be_read(spoilt: dict[str, Any]) -> None:
    steps = [{"step_id": 1, "source": "user", "message": "Please."}]
    line = {"format": "tracemark/trace/1", **spoilt, "trajectory": {"steps": steps}}
    try:
        project_line(digest.canonical(line))
    except IntegrityError:
        return
    assert wrong_in_trace(line) is None
    read_all(line)
