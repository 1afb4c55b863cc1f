"""Whose failures are routed: the accepted harness's, those of rejected candidates apart, and of no evaluation task."""

from __future__ import annotations

import pytest

from tracemark.acts import failure_log
from tracemark.acts.corpus import Corpus
from tracemark.acts.failure_terms import logs_of

from .conftest import Shop, write_version
from .failed_runs import (
    LOCKED,
    added_up,
    clusters,
    ended,
    export,
    failed,
    manifest,
    reject,
    rows,
    tasks,
)


def test_an_empty_task_is_an_unknown_one(failures: Shop) -> None:
    for number, domain in enumerate(("", "shop")):
        nameless = failed(None, domain=domain)
        nameless["extra"]["tracemark"]["run"]["task"] = ""
        failures.ingest([nameless], name=f"empty-{number}")
    export(failures)
    folder = failures.root / "failures"
    locked = next(one for one in clusters(folder) if one["line"] == LOCKED)
    assert (locked["traces"], locked["tasks"], locked["task_unknown"]) == (6, 4, 2)
    failures.set(("tasks: []", "tasks: [f-0]"))
    assert export(failures).left_out["evaluation-task"] == 3
    assert tasks(folder) == {"f-1", "f-2", "f-3", "stopped", "budget", "disk", "grader"}


def test_a_contested_trace_is_left_out(failures: Shop) -> None:
    again = failed("f-1", "Error: order o-1 is locked", reward=1.0)
    failures.ingest([again], name="disagrees")
    report = export(failures)
    assert report.left_out["contested"] == 1
    assert "f-1" not in tasks(failures.root / "failures")


def test_what_was_stated_later_counts_also_where_the_catalogue_shows_nothing_of_it(failures: Shop) -> None:
    folder = failures.root / "failures"
    export(failures)
    assert "stopped" in {row["task"] for row in rows(folder)}
    failures.ingest([ended("stopped", "max_steps")], name="later")
    export(failures)
    assert "stopped" not in {row["task"] for row in rows(folder)}
    assert {row["condition"] for row in rows(folder, "quarantine.jsonl") if row["task"] == "stopped"} == {
        "budget-exhausted"
    }


def test_a_rejected_candidate_has_a_log_of_its_own(failures: Shop) -> None:
    reject(failures, "desk_b")
    report = export(failures)
    folder = failures.root / "failures"
    place = f"candidates/{failures.fingerprint('desk_b')[4:20]}"
    assert [(one["harness"], one["folder"], one["rows"]["failures.jsonl"]) for one in report.candidates] == [
        ("desk_b", place, 2)
    ]
    assert {row["task"] for row in rows(folder / place)} == {"b-0", "b-1"}
    assert {row["harness"] for row in rows(folder / place)} == {failures.fingerprint("desk_b")}
    assert [one["traces"] for one in clusters(folder / place)] == [2]
    assert "a candidate that a gate rejected" in (folder / place / "overview.md").read_text()
    assert not tasks(folder) & {"b-0", "b-1"}
    assert (report.left_out["other-harness"], added_up(manifest(folder))) == (0, report.traces)


def test_a_cluster_of_a_candidates_log_is_the_one_that_list_and_show_tell_of(failures: Shop) -> None:
    write_version(failures.root, "desk_c", extra="Be kind.")
    failures.ingest([failed("c-0", "Error: it burns", extra="Be kind.")], "desk_c", "c")
    for name in ("desk_b", "desk_c"):
        reject(failures, name)
    failures.enter("equivalent", {"fingerprints": [failures.fingerprint("desk_b"), failures.fingerprint("desk_c")]})
    (candidate,) = export(failures).candidates
    written = clusters(failures.root / "failures" / candidate["folder"])
    assert sorted(one["traces"] for one in written) == [1, 2]
    for name in ("desk_b", "desk_c"):
        listed = failure_log.list_(failures.root, failure_log.FailureFilter(harness=name)).clusters
        assert {(one["cluster"], one["traces"], one["share"]) for one in listed} == {
            (one["cluster"], one["traces"], one["share"]) for one in written
        }
    for one in written:
        shown = failure_log.show(failures.root, one["cluster"])
        assert isinstance(shown, failure_log.ClusterShown)
        assert (shown.traces, shown.representatives) == (one["traces"], one["representatives"])
        by_trace = failure_log.show(failures.root, one["representatives"][0])
        assert isinstance(by_trace, failure_log.TraceRouted)
        assert by_trace.cluster == one["cluster"]


def test_a_candidate_that_was_accepted_after_all_is_no_rejected_one(failures: Shop) -> None:
    reject(failures, "desk_b")
    failures.accept("desk_b")
    report = export(failures)
    assert (report.harness, report.candidates) == ("desk_b", [])
    assert tasks(failures.root / "failures") == {"b-0", "b-1"}


def test_a_candidate_that_was_accepted_before_it_was_rejected_is_a_rejected_one(failures: Shop) -> None:
    failures.accept("desk_b")
    failures.accept()
    assert export(failures).candidates == []
    reject(failures, "desk_b")
    assert [one["harness"] for one in export(failures).candidates] == ["desk_b"]


@pytest.mark.parametrize("kind", ["install", "roll-back"])
def test_a_candidate_that_was_installed_or_gone_back_to_is_no_rejected_one(failures: Shop, kind: str) -> None:
    entry = reject(failures, "desk_b")
    decided = {"harness": failures.fingerprint("desk_b"), "model": None}
    failures.enter(kind, decided | ({"half": "harness"} if kind == "install" else {"to": entry}))
    # the accepted harness is another one by now
    failures.enter("accept", {"harness": failures.fingerprint("desk_a"), "label": "desk_a"})
    assert export(failures).candidates == []


def test_a_rejected_model_is_no_rejected_harness(failures: Shop) -> None:
    model = dict.fromkeys(("revision", "chat_template", "tokenizer", "server", "sampling"))
    halves = {"candidate": {"name": "m-2", **model}, "incumbent": {"name": "m-1", **model}}
    failures.enter("reject", {"half": "model", **halves})
    report = export(failures)
    assert (report.candidates, report.rows["failures.jsonl"]) == ([], 5)


def test_failures_of_an_equivalent_harness_count_as_those_of_the_accepted_one(failures: Shop) -> None:
    reject(failures, "desk_b")
    failures.enter("equivalent", {"fingerprints": [failures.fingerprint(), failures.fingerprint("desk_b")]})
    report = export(failures)
    folder = failures.root / "failures"
    assert report.candidates == []
    assert {"b-0", "b-1"} <= tasks(folder)
    locked = next(one for one in clusters(folder) if one["line"] == LOCKED)
    assert (locked["traces"], locked["harness"]) == (6, failures.fingerprint())
    assert {row["harness"] for row in rows(folder)} == {failures.fingerprint(), failures.fingerprint("desk_b")}
    assert manifest(folder)["logs"][0]["equivalents"] == [failures.fingerprint("desk_b")]


def test_what_counts_as_the_accepted_harness_or_as_one_candidate_is_in_one_log(failures: Shop) -> None:
    for name, extra in (("desk_c", "Be kind."), ("desk_d", "Be quick.")):
        write_version(failures.root, name, extra=extra)
    a, b, c, d = (failures.fingerprint(f"desk_{letter}") for letter in "abcd")
    for name in ("desk_b", "desk_c", "desk_d"):
        reject(failures, name)
    failures.enter("equivalent", {"fingerprints": [a, b]})
    failures.enter("equivalent", {"fingerprints": [c, d]})
    first = min(c, d)
    assert logs_of(Corpus(failures.root)) == {a: a, b: a, c: first, d: first}
    failures.accept("desk_c")
    # those that count as what is accepted now, and the harness that was accepted before, whose candidate stays one
    assert logs_of(Corpus(failures.root)) == {c: c, d: c, b: b, a: b}


def test_a_version_that_was_never_met_has_no_candidate_log(failures: Shop) -> None:
    write_version(failures.root, "desk_c", extra="Be kind.")
    reject(failures, "desk_c")
    assert export(failures).candidates == []
    assert not (failures.root / "failures" / "candidates").exists()
