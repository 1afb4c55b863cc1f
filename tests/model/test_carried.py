"""What a document carries, and the fast schema that stands in for the models."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.strict import carried_faults
from tracemark.model.carried import fast_schema, problems

PART = {"digest": "a" * 64, "evidence": "recorded"}
WHOLE: dict[str, Any] = {
    "run": {
        "task": "t-1",
        "domain": "desk",
        "split": "train",
        "attempt": 0,
        "seed": "7",
        "mode": "self-play",
        "model": {"name": "m", "revision": "r", "chat_template": "c", "tokenizer": "o", "server": "s"},
        "sampling": {"temperature": None},
        "environment": {"image": "i"},
        "start": "2026-01-31",
        "end": "later",
        "role": "subagent",
        "continues": "a.json",
        "continued_by": "c.json",
        "rendered": True,
        "demonstration": False,
        "note": "first try",
    },
    "outcome": {
        "status": "success",
        "reward": 0.5,
        "checks": {"paid": True},
        "grader": {"name": "g", "version": "1"},
        "termination": "done",
        "rule": "reward",
    },
    "harness": {
        "declared": {
            "name": "desk_a",
            "fingerprint": "tm1:" + "b" * 64,
            "components": {"runtime": {"digest": "c" * 64, "evidence": "claimed", "parts": {"limits": PART}}},
        },
        "observed": {"prompt_templates": [{"part": "system", "form": "rendered", "digest": "d" * 64}]},
        "contradictions": [{"component": "tool_bindings", "part": "pay", "step": 3, "text": "unknown"}],
        "mixed": True,
    },
    "trajectory": "e" * 64,
    "empty_extra": True,
}


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything in a value."""
    found = [above]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in members:
        found += places(item, (*above, name))
    return found


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**63),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, 1.0, 3.0, "", "success", "claimed", "f" * 64, "F" * 64, "f" * 64 + "\n", "\ud800"]),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=1),
    st.dictionaries(st.sampled_from(["name", "other", "\ud800"]), st.text(max_size=2), max_size=2),
)


def test_what_an_export_writes_is_taken() -> None:
    assert carried_faults(WHOLE) == []
    assert carried_faults({}) == []


@given(st.sets(st.sampled_from(["run", "outcome", "harness", "trajectory", "empty_extra"])), st.data())
def test_the_fast_answer_is_that_of_the_models(kept: set[str], data: st.DataObject) -> None:
    made = {name: copy.deepcopy(WHOLE[name]) for name in sorted(kept)}
    for place in data.draw(st.lists(st.sampled_from(places(made)), max_size=2)):
        value = data.draw(ODD)
        try:
            if not place:
                made["other"] = value
            elif data.draw(st.booleans()):
                at(made, place[:-1])[place[-1]] = value
            else:
                del at(made, place[:-1])[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue
    assert carried_faults(made) == problems(made)


@pytest.mark.parametrize("place", [place for place in places(WHOLE) if place and "sampling" not in place], ids=str)
def test_null_is_nowhere_a_value(place: tuple[Any, ...]) -> None:
    made = copy.deepcopy(WHOLE)
    at(made, place[:-1])[place[-1]] = None
    # what a grader found is kept as it was said
    assert (carried_faults(made) == []) == ("checks" in place or "environment" in place[1:-1])


@pytest.mark.parametrize("value", [1.0, True, None, [1]])
def test_an_attempt_is_a_whole_number_or_a_text(value: Any) -> None:
    assert carried_faults({"run": {"attempt": value}})
    assert carried_faults({"run": {"seed": value}})


def test_the_fast_schema_leaves_stamps_to_the_models() -> None:
    schema = fast_schema()
    assert set(schema["properties"]) == {"run", "outcome", "empty_extra", "null_extra", "original", "decided"}
    assert set(schema["$defs"]) == {"Run", "Model", "Outcome", "Grader"}
