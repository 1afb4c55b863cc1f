from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.store.row import head_of, project, project_line, trajectory_of, trajectory_slice

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("\ud800") | st.integers(2**63, 2**80),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.just("trajectory"), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_the_id_is_the_sha256_of_the_trajectory_in_the_line(make) -> None:
    line = make.trace(1)
    value = digest.load_canonical(line)
    assert trajectory_slice(line) == digest.canonical(value["trajectory"])
    assert project_line(line).row.trace_id == digest.of(value["trajectory"])


@given(environment=st.dictionaries(st.text(max_size=8) | st.just("trajectory"), VALUES, max_size=4))
def test_the_trajectory_is_found_whatever_the_head_holds(make, environment) -> None:
    line = make.trace(1, run={"environment": environment})
    value = digest.load_canonical(line)
    raw = digest.canonical(value.pop("trajectory"))
    assert trajectory_slice(line) == raw == trajectory_of(line, digest.sha256(raw))
    with pytest.raises(IntegrityError):
        trajectory_of(line, "0" * 64)
    assert head_of(line) == value


@given(extra=VALUES)
def test_a_line_projects_as_its_parsed_value_does(make, extra) -> None:
    line = make.trace(1, run={"task": "t\ud800", "attempt": 2**70}, trajectory={"extra": extra})
    value = digest.load_canonical(line)
    assert project_line(line) == project(value, digest.of(value["trajectory"]))


def test_the_head_digest_depends_on_stamp_run_and_outcome_alone(make) -> None:
    rows = [
        project_line(line).row
        for line in (
            make.trace(1),
            make.trace(2, run={"task": "t-1"}, source={"label": "other"}),
            make.trace(1, outcome={"status": "success"}),
            make.trace(1, make.stamp("a")),
            make.trace(1, run={"seed": 1}),
        )
    ]
    assert rows[0].head == rows[1].head
    assert len({row.head for row in rows}) == 4


def test_evidence_is_that_of_the_weakest_part_and_a_vacuous_component_lowers_nothing(make) -> None:
    stamp = make.stamp("a", "recorded")
    components = stamp["declared"]["components"]
    components["runtime"] = {"digest": "b" * 64, "evidence": "recorded", "parts": {}}
    assert project_line(make.trace(1, stamp)).row.evidence == "recorded"
    components["tool_bindings"] = make.stamp("a", "claimed")["declared"]["components"]["tool_bindings"]
    row = project_line(make.trace(1, stamp)).row
    assert (row.evidence, row.corroborated, row.fingerprint, row.harness) == (
        "claimed", 2, make.fingerprint("a"), "h-a",
    )  # fmt: skip


def test_an_empty_stamp_is_unrecorded_and_flags_come_from_the_line(make) -> None:
    plain = project_line(make.trace(1)).row
    assert (plain.evidence, plain.fingerprint, plain.contradicted, plain.mixed) == ("unrecorded", None, False, False)
    stamp = {"contradictions": [{"component": "runtime", "part": "x", "text": "y"}], "mixed": True}
    row = project_line(make.trace(1, stamp, run={"rendered": True, "demonstration": True, "role": "subagent"})).row
    assert (row.contradicted, row.mixed, row.rendered, row.demonstration, row.role) == (
        True,
        True,
        True,
        True,
        "subagent",
    )


def test_blockers_and_counts_come_from_the_steps(make) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "copied", "is_copied_context": True},
        {"step_id": 2, "source": "agent", "message": "no call", "llm_call_count": 0},
    ]
    row = project_line(make.trace(1, trajectory={"steps": steps})).row
    assert (row.copied, row.uncalled, row.tool_calls, row.steps) == (True, True, 0, 2)
    row = project_line(make.trace(1)).row
    assert (row.copied, row.uncalled, row.tool_calls, row.steps) == (False, False, 1, 3)


def test_the_search_text_is_task_first_user_message_last_message_and_tool_names(make) -> None:
    assert project_line(make.trace(7)).text == "t-7\nWhere is order 7?\nOrder 7 is on its way.\nlook_up"


def test_all_text_includes_arguments_and_observations(make) -> None:
    steps = [
        {
            "step_id": 1,
            "source": "agent",
            "message": [{"type": "text", "text": "parts"}, {"type": "image"}],
            "reasoning_content": "thought",
            "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"k": "argument"}}],
            "observation": {"results": [{"source_call_id": "c", "content": "seen"}]},
        }
    ]
    text = project_line(make.trace(1, trajectory={"steps": steps}), everything=True).text
    assert [word in text for word in ("parts", "thought", "f", "argument", "seen")] == [True] * 5


@pytest.mark.parametrize("everything", [False, True])
def test_text_parts_are_searched_as_they_are_compared_and_exported(make, everything) -> None:
    parts = [{"type": "text", "text": "Where is or"}, {"type": "image"}, {"type": "text", "text": "der 7?"}]
    steps = [{"step_id": 1, "source": "user", "message": parts}, {"step_id": 2, "source": "agent", "message": "Here."}]
    line = make.trace(1, trajectory={"steps": steps})
    assert project_line(line, everything=everything).text == "t-1\nWhere is order 7?\nHere."


def test_numbers_that_sqlite_cannot_hold_do_not_stop_a_projection(make) -> None:
    line = make.trace(1, run={"attempt": 2**64}, outcome={"status": "failure", "reward": 10**400})
    row = project_line(line).row
    assert row.attempt == str(2**64)
    assert row.reward is not None
    assert row.reward > 1e300
    assert str(10**400).encode() in line


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b"null", b"{", b'{"format":"tracemark/trace/2"}', b'{"format":"tracemark/trace/1"}']
)
def test_a_line_that_is_no_trace_is_an_integrity_error(line: bytes) -> None:
    with pytest.raises(IntegrityError):
        project_line(line)
