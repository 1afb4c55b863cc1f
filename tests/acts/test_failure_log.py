"""Which failures recur, what one of them is, and where one trace goes."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.acts import decisions, failure_log
from tracemark.acts.failure_log import FailureFilter, FailureList
from tracemark.errors import ParamsError, UnknownNameError, UsageError

from .conftest import CLOCK, Shop, document
from .failed_runs import failed


def listed(shop: Shop, **wanted: Any) -> FailureList:
    return failure_log.list_(shop.root, FailureFilter(**wanted))


def lines(found: FailureList) -> list[tuple[str, int]]:
    return [(row["line"], row["traces"]) for row in found.clusters]


LOCKED = "Error: order o-<n> is locked"


def test_runs_that_failed_alike_are_one_cluster_of_their_harness(failures: Shop) -> None:
    found = listed(failures)
    assert lines(found) == [(LOCKED, 4), (LOCKED, 2), ("(stopped-early)", 1)]
    first, second, _ = found.clusters
    assert (first["harness"], second["harness"]) == ("desk_a", "desk_b")
    assert first["cluster"] != second["cluster"]
    # twelve runs of desk_a were routed: three successes of the pattern, nine more
    assert first["share"] == pytest.approx(4 / 12)
    assert second["share"] == pytest.approx(2 / 4)
    assert (found.more, found.left_out) == (0, {})
    assert sum(found.routed.values()) == 16
    # no failure is lost of which no cluster tells
    assert found.elsewhere == {"environment.jsonl": 1, "grader.jsonl": 1, "quarantine.jsonl": 1}


def test_a_harness_a_limit_and_those_of_none(failures: Shop) -> None:
    failures.ingest([failed("n-0", "Error: nobody home")], None, "nameless")
    assert lines(listed(failures, harness="desk_b")) == [(LOCKED, 2)]
    cut = listed(failures, limit=1)
    assert (lines(cut), cut.more) == ([(LOCKED, 4)], 3)
    assert lines(listed(failures, harness="none")) == [("Error: nobody home", 1)]
    with pytest.raises(UnknownNameError):
        listed(failures, harness="desk_z")


def test_a_cluster_without_a_line_has_nothing_to_compare_and_is_told_so(failures: Shop) -> None:
    pytest.importorskip("rapidfuzz")
    asked = next(row for row in listed(failures).clusters if row["line"] == "(stopped-early)")
    with pytest.raises(UsageError, match=r"no line to compare: \(stopped-early\)") as stopped:
        listed(failures, near=asked["cluster"])
    assert stopped.value.hint == f"tracemark failures show {asked['cluster'][:12]}"


def test_near_finds_the_same_trouble_in_other_words_and_under_another_harness(failures: Shop) -> None:
    pytest.importorskip("rapidfuzz")
    failures.ingest([failed("w", "Error: the order o-7 is locked now")], name="wording")
    asked = listed(failures).clusters[0]["cluster"]
    found = listed(failures, near=asked[:12])
    assert [row["similarity"] for row in found.clusters] == [100.0, pytest.approx(86, abs=8)]
    assert [row["harness"] for row in found.clusters] == ["desk_b", "desk_a"]
    assert lines(listed(failures, near=asked, harness="desk_b")) == [(LOCKED, 2)]
    # what is told of the list is told of the harness whose clusters are in it, wherever the one asked about is from
    failures.ingest([failed("held", extra="Be brief."), failed("out")], "desk_b", "more-b")
    failures.set(("tasks: []", "tasks: [held, f-0]"))
    shown, alone = listed(failures, near=asked, harness="desk_b"), listed(failures, harness="desk_b")
    assert (shown.routed, shown.left_out) == (alone.routed, alone.left_out)
    assert shown.routed != listed(failures, near=asked).routed
    with pytest.raises(UnknownNameError):
        listed(failures, near="0" * 64)
    with pytest.raises(UsageError, match="is no id"):
        listed(failures, near="locked")


def test_a_task_of_the_evaluation_set_is_in_no_cluster(failures: Shop) -> None:
    failures.set(("tasks: []", "tasks: [f-0, f-1]"))
    found = listed(failures)
    assert (lines(found)[0], found.left_out) == ((LOCKED, 2), {"evaluation-task": 2})


def test_a_trace_whose_task_nobody_knows_may_be_one_of_the_evaluation_set(failures: Shop) -> None:
    failures.ingest([failed(None)], name="unknown")
    assert lines(listed(failures))[0] == (LOCKED, 5)
    failures.set(("tasks: []", "tasks: [f-0]"))
    found = listed(failures)
    assert (lines(found)[0], found.left_out) == ((LOCKED, 3), {"evaluation-task": 2})


def test_retracted_contested_and_superseded_traces_are_left_out(failures: Shop) -> None:
    ids = failures.ids()
    decisions.retract(failures.root, [ids["f-0"]], "wrong", CLOCK)
    again = failed("f-1", "Error: order o-1 is locked")
    again["extra"]["tracemark"]["outcome"] = {"status": "success", "reward": 1.0}
    failures.ingest([again], name="disagrees")
    newer = failures.read_anew(ids["f-2"])
    found = listed(failures)
    assert found.left_out == {"retracted": 1, "contested": 1}
    assert lines(found)[0] == (LOCKED, 2)
    assert sum(found.routed.values()) == 14
    gone = failure_log.show(failures.root, ids["f-2"])
    assert isinstance(gone, failure_log.TraceRouted)
    assert gone.left_out == "superseded"
    assert failure_log.show(failures.root, newer).left_out is None  # type: ignore[union-attr]


def test_an_outcome_that_was_stated_later_counts(failures: Shop) -> None:
    open_ = document("later", reward=None, calls=1)
    failures.ingest([open_], name="open")
    trace = failures.ids()["later"]
    before = failure_log.show(failures.root, trace)
    closed = document("later", reward=0.0, calls=1)
    failures.ingest([closed], name="closed")
    after = failure_log.show(failures.root, trace)
    assert isinstance(before, failure_log.TraceRouted)
    assert isinstance(after, failure_log.TraceRouted)
    assert (before.status, before.condition, before.file) == ("unknown", "unmatched", "quarantine.jsonl")
    assert (after.status, after.condition, after.file) == ("failure", "stopped-early", "failures.jsonl")


def test_one_cluster_with_what_was_called_and_seen(failures: Shop) -> None:
    row = listed(failures).clusters[0]
    shown = failure_log.show(failures.root, row["cluster"][:16])
    assert isinstance(shown, failure_log.ClusterShown)
    assert (shown.harness, shown.tool, shown.line, shown.traces) == ("desk_a", "look", LOCKED, 4)
    assert shown.task_names == ["f-0", "f-1", "f-2", "f-3"]
    ids = failures.ids()
    assert shown.representatives == sorted(ids[f"f-{number}"] for number in range(4))[:3]
    for trace, example in zip(shown.representatives, shown.examples, strict=True):
        number = next(task for task, known in ids.items() if known == trace).removeprefix("f-")
        assert example["trace"] == trace
        assert example["observation"] == f"Error: order o-{number} is locked"
        assert example["evidence"] == {"step": 3, "call": "c0", "tool": "look", "text": example["observation"]}
        assert example["command"] == '{"order":"o-0"}'


def test_one_trace_with_what_routed_it(failures: Shop) -> None:
    ids = failures.ids()
    shown = failure_log.show(failures.root, ids["disk"])
    assert isinstance(shown, failure_log.TraceRouted)
    assert (shown.condition, shown.side, shown.file) == ("environment-fault", "environment", "environment.jsonl")
    assert (shown.cluster, shown.failure) == (
        None,
        {"step": 3, "call": "c0", "tool": "look", "text": "Error: no space left on device"},
    )
    one = failure_log.show(failures.root, ids["f-3"])
    assert isinstance(one, failure_log.TraceRouted)
    assert one.cluster == listed(failures).clusters[0]["cluster"]


def test_what_is_neither_a_trace_nor_a_cluster(failures: Shop) -> None:
    with pytest.raises(UnknownNameError, match="no cluster"):
        failure_log.show(failures.root, "0" * 64)
    with pytest.raises(UsageError):
        failure_log.show(failures.root, "zz")


OWN = """\
version = 1
[[condition]]
name = "locked"
order = 0.5
says = "the order was locked"
side = "tool"
confidence = 0.9
destination = "harness"
test = "failure-matches"
patterns = ["is locked"]
"""


def test_conditions_of_ones_own_are_tried_among_the_shipped_ones(failures: Shop) -> None:
    (failures.root / "own.toml").write_text(OWN)
    failures.set(("conditions: null", "conditions: own.toml"))
    found = listed(failures)
    assert found.routed["locked"] == 7
    # a success is in no cluster, whatever a condition says of it
    assert lines(found)[0] == (LOCKED, 4)
    odd = failure_log.show(failures.root, failures.ids()["odd"])
    assert isinstance(odd, failure_log.TraceRouted)
    assert (odd.condition, odd.destination, odd.file, odd.cluster) == ("locked", "harness", None, None)


@pytest.mark.parametrize(
    ("text", "where"), [(None, "params.yaml: failures.conditions"), (b"\xff", "own.toml"), (b"version = 2", "own.toml")]
)
def test_conditions_that_cannot_be_used(failures: Shop, text: bytes | None, where: str) -> None:
    if text is not None:
        (failures.root / "own.toml").write_bytes(text)
    failures.set(("conditions: null", "conditions: own.toml"))
    with pytest.raises(ParamsError) as stopped:
        listed(failures)
    assert str(stopped.value.where).startswith(where)
    if text is None:
        assert stopped.value.message == "own.toml cannot be read: there is no such file"
        assert str(stopped.value.hint).startswith("write it, name another file")


def test_the_answer_does_not_depend_on_how_the_traces_lie(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(failures)
    failures.ingest([failed("f-0", "Error: order o-0 is locked")], name="known-already")
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    assert listed(failures) == before
