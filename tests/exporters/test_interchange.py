"""A document gives its trace again, whatever stands in the trajectory and whatever is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.exporters import interchange_folder as folders
from tracemark.exporters.interchange import document, standing_as, stated
from tracemark.importers.atif import IMPORTER
from tracemark.importers.base import Imported, Record
from tracemark.model.trajectory import problems

texts = st.text(st.characters(), max_size=6) | st.sampled_from(
    ["", "\ud800", 'x,"schema_version":"ATIF-v1.8"', "schema_version", "tracemark", "original_tracemark", "\0\x1b[1m"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)
maybe = st.none() | texts
nothing = st.just(...)
RUN = st.fixed_dictionaries(
    {}, optional={"task": texts, "attempt": st.integers(-(2**70), 2**70), "environment": objects}
)
OUTCOME = st.fixed_dictionaries(
    {"status": st.sampled_from(["success", "failure", "error", "unknown"])},
    optional={"checks": values, "termination": texts, "reward": st.integers(0, 2**70) | st.floats(0, 1)},
)
PART = {"part": "system", "form": "rendered", "digest": "a" * 64}
STAMP = st.sampled_from([{}, {"mixed": True}, {"observed": {"prompt_templates": [PART]}}])
SAID = st.fixed_dictionaries({"harness": STAMP, "outcome": OUTCOME, "run": RUN})


@st.composite
def trajectories(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid trajectory whose free members hold anything."""
    optional = {
        "session_id": draw(maybe | nothing),
        "notes": draw(maybe | nothing),
        "extra": draw(st.none() | objects | st.builds(lambda value: {"tracemark": value}, values) | nothing),
        "continued_trajectory_ref": draw(maybe | nothing),
    }
    agent = {"name": "a", "version": "", "model_name": draw(maybe), "extra": draw(st.none() | objects)}
    step = {"step_id": 1, "source": "user", "message": draw(texts), "extra": draw(st.none() | objects)}
    made = {"schema_version": "ATIF-v1.8", "agent": agent, "steps": [step]}
    return made | {name: value for name, value in optional.items() if value is not ...}


def read(raw: bytes) -> Imported:
    (found,) = IMPORTER.read(Record(raw, "a.json", "a.json"))
    assert isinstance(found, Imported), found
    return found


def exported(trajectory: Any, *said: dict[str, Any]) -> tuple[bytes, bytes]:
    raw = digest.canonical(trajectory)
    return raw, document(
        raw, said or [{"harness": {}, "outcome": {"status": "unknown"}, "run": {}}], digest.sha256(raw)
    )


@given(trajectories(), SAID)
def test_reading_a_document_gives_trajectory_and_statement_again(
    trajectory: dict[str, Any], said: dict[str, Any]
) -> None:
    if problems(trajectory):
        return
    raw, made = exported(trajectory, said)
    found = read(made)
    assert found.trajectory_bytes == raw
    assert digest.canonical({"harness": found.stamp, "outcome": found.outcome, "run": found.run}) == digest.canonical(
        said
    )
    assert "repairs" not in found.source
    assert found.observed == {}


@given(trajectories(), SAID)
def test_a_document_is_valid_atif_and_canonical(trajectory: dict[str, Any], said: dict[str, Any]) -> None:
    if problems(trajectory):
        return
    _, made = exported(trajectory, said)
    value = digest.loads(made).value
    assert digest.canonical(value) == made
    assert problems(value) == []


def plain(**members: Any) -> dict[str, Any]:
    made = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": []}
    made["steps"] = [{"step_id": 1, "source": "user", "message": "hello"}]
    return made | members


@pytest.mark.parametrize(
    ("members", "extra"),
    [
        ({}, {}),
        ({"extra": {}}, {"empty_extra": True}),
        ({"extra": None}, {"null_extra": True}),
        ({"extra": {"tracemark": None}}, {"original": "original_tracemark"}),
        ({"extra": {"tracemark": {"run": {"task": "forged"}}}}, {"original": "original_tracemark"}),
        ({"extra": {"tracemark": 1, "original_tracemark": 2}}, {"original": "original_tracemark_"}),
    ],
    ids=str,
)
def test_what_stood_in_the_place_of_ours_is_named_and_comes_back(members: Any, extra: dict[str, Any]) -> None:
    raw, made = exported(plain(**members))
    carried = json.loads(made)["extra"]["tracemark"]
    names = ("harness", "outcome", "run", "trajectory")
    assert {name: value for name, value in carried.items() if name not in names} == extra
    Peer.model_validate(json.loads(made))
    found = read(made)
    assert found.trajectory_bytes == raw
    assert found.run == {}


@pytest.mark.parametrize("name", ["tracemark", "deep"])
def test_what_is_as_deep_as_can_be_read_comes_back(name: str) -> None:
    # the root and its `extra` are two of the levels
    nested: Any = []
    for _ in range(digest.MAX_DEPTH - 3):
        nested = [nested]
    raw, made = exported(plain(extra={name: nested}))
    assert digest.loads(raw).value["extra"].keys() == {name}
    assert read(made).trajectory_bytes == raw


def test_members_that_look_like_the_roots_are_passed_over() -> None:
    inner = {"schema_version": "ATIF-v1.8", "z": 'x,"schema_version":"ATIF-v1.8"'}
    for nested in (inner, [inner] * 20):
        raw, made = exported(plain(agent={"name": "a", "version": "1", "extra": {"a": 0, "b": nested}}))
        assert read(made).trajectory_bytes == raw


def test_the_steps_are_the_very_bytes_of_the_store() -> None:
    raw, made = exported(plain(notes="n"))
    at = raw.index(b',"schema_version"')
    assert made.endswith(raw[at:])


def test_a_document_that_was_edited_is_another_trace_and_its_stamp_a_claim() -> None:
    part = {"digest": "a" * 64, "evidence": "recorded"}
    component = {"digest": "b" * 64, "evidence": "recorded", "parts": {"system": part}}
    stamp = {"declared": {"components": {"prompt_templates": component}}}
    further = {"harness": stamp}
    said = {"harness": stamp, "outcome": {"status": "success"}, "run": {}}
    raw, made = exported(plain(), said, further)
    assert read(made).stamp == stamp
    assert read(made).further == (further,)
    edited = read(made.replace(b"hello", b"hullo"))
    assert edited.trajectory_bytes != raw
    for one in (edited.stamp, edited.further[0]["harness"]):
        assert one is not None
        assert one["declared"]["components"]["prompt_templates"]["evidence"] == "claimed"


def test_what_lies_beside_a_document_and_what_it_shows_adds_nothing() -> None:
    trajectory = plain(agent={"name": "a", "version": "1", "model_name": "m"}, continued_trajectory_ref="b.json")
    raw, made = exported(trajectory)
    found = read(made)
    assert (found.run, found.outcome, found.stamp, found.observed) == ({}, {"status": "unknown"}, {}, {})
    assert read(raw).run == {"model": {"name": "m"}, "continued_by": "b.json"}


def test_a_line_says_what_it_says() -> None:
    line = b'{"format":"tracemark/trace/1","harness":{},"outcome":{"status":"unknown"},"run":{"task":"t"},"source":{},'
    line += b'"trajectory":{}}'
    assert stated(line) == [{"harness": {}, "outcome": {"status": "unknown"}, "run": {"task": "t"}}]


@pytest.mark.parametrize("fingerprint", [None, "tm1:" + "1" * 64])
def test_a_stamp_names_no_harness_under_which_the_trace_does_not_count(fingerprint: str | None) -> None:
    named = {"harness": {"declared": {"fingerprint": "tm1:" + "1" * 64, "components": {}}}, "outcome": {}, "run": {}}
    declared = standing_as(named, fingerprint)["harness"]["declared"]
    assert declared.get("fingerprint") == fingerprint


def test_names_that_look_like_an_exports_are_its_own_and_no_others() -> None:
    snapshot = folders.snapshot_name("tm1:" + "a" * 64)
    own = [snapshot, f".{snapshot}.x1.tmp", ".trajectories.jsonl.tmp", ".trajectories.tmp", f".{folders.NAME}.x.tmp"]
    assert all(map(folders.is_own, own))
    assert not any(map(folders.is_own, ["a.harness.json", ".git", ".tmp", "trajectories.tmp", "notes.tmp", ".x.tmp"]))


def test_only_a_folder_with_a_manifest_is_an_exports(tmp_path: Path) -> None:
    (tmp_path / folders.LINES).write_text("{}")
    assert folders.strangers(tmp_path) == [folders.LINES]
    (tmp_path / folders.NAME).write_text('{"format": "tracemark/interchange/9"}')
    assert folders.strangers(tmp_path) == []
    (tmp_path / folders.NAME).write_text('{"format": "tracemark/export/1"}')
    assert folders.strangers(tmp_path) == [folders.NAME, folders.LINES]
