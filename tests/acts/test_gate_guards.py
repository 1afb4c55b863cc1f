"""What a gate asks of a corpus before it judges, and what it tells beside its verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tracemark.acts import gating
from tracemark.errors import IntegrityError, NotPulledError
from tracemark.findings import Report

from .evaluated import TASKS, Bench
from .test_pinned import pin, segments

GATES: dict[str, Callable[[Bench], Report]] = {
    "harness": lambda bench: bench.gate(),
    "model": lambda bench: gating.gate_model(bench.root, "m@2"),
    "attribute": lambda bench: gating.gate_attribute(bench.root, "desk_b", "m@2"),
    "harness --install": lambda bench: bench.install(),
    "model --install": lambda bench: bench.install_model(),
}


@pytest.mark.parametrize("name", GATES)
def test_nothing_is_judged_while_pinned_traces_are_not_on_disk(bench: Bench, name: str) -> None:
    # what is missing may be of the evaluation
    names = segments(bench.root)
    pin(bench.root, None, len(names) + 1)
    with pytest.raises(NotPulledError, match="traces/segments"):
        GATES[name](bench)


@pytest.mark.parametrize("name", GATES)
def test_nothing_is_judged_while_a_stored_file_cannot_be_read(bench: Bench, name: str) -> None:
    for path in (bench.root / ".tracemark").glob("catalogue.db*"):
        path.unlink()
    segment = next((bench.root / "traces" / "segments").rglob("*.zst"))
    segment.write_bytes(segment.read_bytes()[:-40])
    with pytest.raises(IntegrityError, match="would be left out"):
        GATES[name](bench)


def test_a_name_that_several_harnesses_have_is_told_of(bench: Bench) -> None:
    prompt = bench.root / "harness_versions" / "desk_b" / "system.txt"
    prompt.write_text(prompt.read_text() + "Be quick.\n")
    for name in ("harness", "attribute"):
        assert "name-shared" in [found.code for found in GATES[name](bench).findings]


@pytest.mark.parametrize("name", GATES)
def test_an_export_of_which_it_is_not_known_whether_it_leaks_is_told_of(bench: Bench, name: str) -> None:
    folder = bench.root / "exports" / "other"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    told = [found.where for found in GATES[name](bench).findings if found.code == "evaluation-leak-unknown"]
    assert told == ["exports/other"]


@pytest.mark.parametrize(
    ("tasks", "attempts", "said"),
    [(TASKS[:2], 2, "not the one of 8 tasks"), (TASKS, 1, "was frozen with 2"), (TASKS, 3, "was frozen with 2")],
)
def test_what_each_half_brings_is_told_on_the_frozen_set_alone(
    bench: Bench, tasks: list[str], attempts: int, said: str
) -> None:
    bench.tasks(*tasks, attempts=attempts)
    answer = GATES["attribute"](bench)
    assert answer.exit_code == 40
    assert isinstance(answer, gating.AttributeAnswer)
    changed = [one["message"] for one in answer.report["refusals"] if one["reason"] == "evaluation-changed"]
    assert any(said in message for message in changed)
