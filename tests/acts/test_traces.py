"""Listing, finding and showing stored traces."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import audit, decisions, harnesses, traces
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.traces import TraceFilter
from tracemark.errors import IntegrityError, NoStoreError, UnknownNameError, UsageError

from .conftest import CLOCK, Shop, document, write_version


def listed(shop: Shop, **wanted: Any) -> list[str]:
    return [row["task"] for row in traces.list_(shop.root, TraceFilter(**wanted)).traces]


def test_a_row_says_what_a_trace_is(shop: Shop) -> None:
    shop.ingest([document("x-1", model={"name": "m", "revision": "2"}, reward=0.5)], name="more")
    (row,) = traces.list_(shop.root, TraceFilter(task="x-1")).traces
    assert row == {
        "trace_id": shop.ids()["x-1"],
        "fingerprint": shop.fingerprint(),
        "harness": "desk_a",
        "evidence": "claimed",
        "observed": {},
        "task": "x-1",
        "status": "failure",
        "reward": 0.5,
        "model": "m@2",
        "tool_calls": 2,
        "steps": 5,
        "format": "atif",
        "source": "more.jsonl",
        "flags": [],
    }


@pytest.mark.parametrize(
    ("task", "runs"),
    [
        ("x-1", [("x-1", "ops"), ("x-1", "desk"), ("x-1", None)]),
        ("ops/x-1", [("x-1", "ops"), ("x-1", None)]),
        ("desk/x-1", [("x-1", "desk"), ("x-1", None)]),
        ("ops/x-2", []),
        ("other/x-3", []),
        ("ops/x-3", [("x-3", "ops")]),
        ("ops", []),
    ],
)
def test_a_task_is_chosen_by_its_name_or_with_its_domain(shop: Shop, task: str, runs: list[Any]) -> None:
    of = [("x-1", "ops"), ("x-1", "desk"), ("x-1", None), ("x-3", "ops")]
    shop.ingest([document(name, said=f"Of {domain}.", **({"domain": domain} if domain else {})) for name, domain in of])
    corpus = Corpus(shop.root)
    with open_store(shop.root) as store:
        selection, _ = traces.selected(corpus, store, TraceFilter(task=task))
        found = [(state.row.task, state.row.domain) for state in store.select(selection, corpus.store_decisions)]
    assert sorted(found, key=str) == sorted(runs, key=str)
    assert len(listed(shop, task=task)) == len(runs)


def test_traces_are_chosen_by_harness_status_and_task(shop: Shop) -> None:
    shop.ingest([document("n-1"), document("n-2", reward=0.0)], None, "unclaimed")
    assert sorted(listed(shop, harness="desk_a")) == ["t-0", "t-1", "t-2"]
    assert sorted(listed(shop, harness=shop.fingerprint("desk_b")[:16])) == ["u-0", "u-1"]
    assert sorted(listed(shop, harness="none")) == ["n-1", "n-2"]
    assert listed(shop, status="failure") == ["n-2"]
    assert listed(shop, task="u-1", status="success") == ["u-1"]
    assert len(listed(shop, limit=2)) == 2
    assert listed(shop, task="nobody's") == []


def test_of_a_trace_without_a_harness_the_observed_digests_are_shown(shop: Shop) -> None:
    shop.ingest([document("n-1"), document("n-2"), document("n-3", extra="Be brief.")], None, "unclaimed")
    seen = {row["task"]: row["observed"] for row in traces.list_(shop.root, TraceFilter(harness="none")).traces}
    assert set(seen["n-1"]) == {"prompt_templates", "tool_bindings"}
    assert seen["n-1"] == seen["n-2"]
    assert seen["n-1"]["prompt_templates"] != seen["n-3"]["prompt_templates"]
    assert seen["n-1"]["tool_bindings"] == seen["n-3"]["tool_bindings"]


def test_a_group_of_foreign_traces_is_listed_by_its_name(shop: Shop) -> None:
    shop.ingest([document("n-1"), document("n-2"), document("n-3", extra="Be brief.")], None, "unclaimed")
    groups = {group["tasks"]: group["name"] for group in harnesses.list_(shop.root).observed}
    assert sorted(listed(shop, harness=groups[2])) == ["n-1", "n-2"]
    assert listed(shop, harness=groups[2], task="n-2") == ["n-2"]
    assert listed(shop, harness=groups[1]) == ["n-3"]
    with pytest.raises(UnknownNameError, match="no group of traces is called 'observed:zz'"):
        listed(shop, harness="observed:zz")


def test_what_was_decided_shows_in_the_flags(shop: Shop) -> None:
    decisions.retract(shop.root, [shop.ids()["t-0"]], "wrong", CLOCK)
    write_version(shop.root, "desk_c", handler=" + '.'")
    decisions.stamp(shop.root, [shop.ids()["t-1"]], "desk_c", "misnamed", CLOCK)
    rows = {row["task"]: row for row in traces.list_(shop.root, TraceFilter()).traces}
    assert rows["t-0"]["flags"] == ["retracted"]
    assert (rows["t-1"]["harness"], rows["t-1"]["fingerprint"]) == ("desk_c", shop.fingerprint("desk_c"))
    assert "t-1" in listed(shop, harness="desk_c")
    assert "t-1" not in listed(shop, harness="desk_a")


def test_a_trace_that_its_content_refutes_is_listed_under_no_harness(shop: Shop) -> None:
    shop.ingest([document("n-1")], "desk_b", "wrong")
    rows = {row["task"]: row for row in traces.list_(shop.root, TraceFilter(harness="none")).traces}
    assert (rows["n-1"]["harness"], rows["n-1"]["fingerprint"], rows["n-1"]["flags"]) == (None, None, ["contradicted"])


def test_a_stamp_settles_what_the_content_refuted(shop: Shop) -> None:
    shop.ingest([document("n-1"), document("n-2")], "desk_b", "wrong")
    decisions.stamp(shop.root, [shop.ids()["n-1"]], "desk_a", "by its prompt", CLOCK)
    flags = {row["task"]: row["flags"] for row in traces.list_(shop.root, TraceFilter()).traces}
    assert (flags["n-1"], flags["n-2"], flags["t-0"]) == (["settled"], ["contradicted"], [])
    assert [row["flags"] for row in traces.find(shop.root, "n-1").traces] == [["settled"]]


def test_what_is_no_run_of_its_own_is_marked(shop: Shop) -> None:
    shop.ingest([document("s-1", role="subagent"), document("s-2", role="continuation")], None, "parts")
    flags = {row["task"]: row["flags"] for row in traces.list_(shop.root, TraceFilter()).traces}
    assert (flags["s-1"], flags["s-2"]) == (["subagent"], ["continuation"])


@pytest.mark.parametrize("wanted", [{"status": "sucess"}, {"harness": "nobody"}])
def test_a_name_that_means_nothing_is_an_error_and_not_an_empty_list(shop: Shop, wanted: dict[str, str]) -> None:
    with pytest.raises(UsageError) as error:
        listed(shop, **wanted)
    assert error.value.hint


def test_all_words_must_occur(shop: Shop) -> None:
    assert [row["task"] for row in traces.find(shop.root, "see t-1").traces] == ["t-1"]
    assert traces.find(shop.root, "see nobody").traces == ()
    assert len(traces.find(shop.root, "look", limit=2).traces) == 2
    assert len(traces.find(shop.root, "look", limit=None).traces) == 5
    with pytest.raises(UsageError):
        traces.find(shop.root, "  ")


@pytest.mark.parametrize(("limit", "more"), [(1, True), (4, True), (5, False), (6, False), (None, False)])
def test_it_is_known_whether_a_limit_left_traces_out(shop: Shop, limit: int | None, more: bool) -> None:
    found = traces.find(shop.root, "look", limit)
    assert (len(found.traces), found.more) == (min(limit or 5, 5), more)


@pytest.mark.parametrize("query", ['"', "AND", "t-1 OR", "task:t-1", "*", "(", "NEAR(", "-"])
def test_words_are_never_a_query_language(shop: Shop, query: str) -> None:
    assert isinstance(traces.find(shop.root, query).traces, tuple)


def test_bytes_that_are_no_text_are_no_words(shop: Shop) -> None:
    with pytest.raises(UsageError, match="no text"):
        traces.find(shop.root, "\udcff")


def test_a_limit_beyond_every_counter_is_none(shop: Shop) -> None:
    limit = 10**23
    assert len(traces.find(shop.root, "look", limit=limit).traces) == 5
    assert len(traces.list_(shop.root, traces.TraceFilter(limit=limit)).traces) == len(
        traces.list_(shop.root, traces.TraceFilter()).traces
    )


def test_the_raw_bytes_give_the_id(shop: Shop) -> None:
    trace = shop.ids()["t-0"]
    raw = traces.raw(shop.root, trace[:10])
    assert hashlib.sha256(raw).hexdigest() == trace
    assert json.loads(raw) == traces.show(shop.root, trace).trajectory


def test_a_trace_is_shown_with_what_was_first_said_of_it(shop: Shop) -> None:
    shown = traces.show(shop.root, shop.ids()["t-0"])
    assert shown.run == shown.first["run"] == {"task": "t-0"}
    assert shown.outcome == shown.first["outcome"]
    assert (shown.status, shown.harness, shown.fingerprint) == ("success", "desk_a", shop.fingerprint())
    assert shown.first["harness"]["declared"]["fingerprint"] == shop.fingerprint()
    assert shown.source["label"] == "runs.jsonl"
    assert (shown.flags, shown.conflicts, shown.differs_from_first) == ([], [], [])


def test_list_audit_and_show_say_the_same_of_a_trace(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.ingest([document("n-1"), document("n-2"), document("n-3")], "desk_b", "wrong")
    shop.ingest([document("g-1", reward=None)], name="ungraded")
    shop.ingest([document("g-1"), document("t-2", reward=0.0)], name="graded")
    ids = shop.ids()
    decisions.retract(shop.root, [ids["t-0"]], "wrong", CLOCK)
    for task, name in (("t-1", "desk_c"), ("n-1", "desk_a"), ("n-2", "none")):
        decisions.stamp(shop.root, [ids[task]], name, "settled", CLOCK)
    rows = traces.list_(shop.root, TraceFilter()).traces
    assert len(rows) == 9
    for row in rows:
        shown = traces.show(shop.root, row["trace_id"])
        audited = audit.audit(shop.root, row["trace_id"])
        assert isinstance(audited, audit.TraceAudit)
        for name in ("fingerprint", "harness", "evidence", "status", "flags"):
            assert getattr(shown, name) == row[name], (row["task"], name)
        for name in ("fingerprint", "harness", "evidence", "status", "outcome", "run", "source"):
            assert getattr(shown, name) == getattr(audited, name), (row["task"], name)
        members = {"harness" if path.startswith("harness.") else path for path in shown.conflicts}
        assert members == {conflict["member"] for conflict in audited.conflicts}


def test_what_the_first_statement_said_otherwise_is_named(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.ingest([document("n-1")], "desk_b", "wrong")
    shop.ingest([document("g-1", reward=None)], name="ungraded")
    shop.ingest([document("g-1")], name="graded")
    ids = shop.ids()
    decisions.stamp(shop.root, [ids["t-1"]], "desk_c", "misnamed", CLOCK)

    def otherwise(task: str) -> dict[str, tuple[Any, Any]]:
        differences = traces.show(shop.root, ids[task]).differs_from_first
        return {one["member"]: (one["first"], one["now"]) for one in differences}

    assert otherwise("t-1") == {
        "harness": ("desk_a", "desk_c"),
        "fingerprint": (shop.fingerprint("desk_a"), shop.fingerprint("desk_c")),
    }
    assert otherwise("n-1") == {"harness": ("desk_b", None)}
    assert otherwise("g-1")["outcome.status"] == ("unknown", "success")
    assert otherwise("g-1")["outcome.reward"] == (None, 1.0)
    assert otherwise("t-0") == {}


@pytest.mark.parametrize("name", ["ffffffff", "zz", "", "../../etc/passwd", "F" * 64])
def test_what_is_no_id_of_a_stored_trace_is_an_error(shop: Shop, name: str) -> None:
    with pytest.raises((UnknownNameError, UsageError)):
        traces.show(shop.root, name)


def test_damaged_bytes_are_never_shown(shop: Shop) -> None:
    trace = shop.ids()["t-0"]
    for path in (shop.root / "traces" / "segments").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(IntegrityError):
        traces.raw(shop.root, trace)


def test_without_a_store_there_is_nothing_to_list(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError):
        traces.list_(tmp_path, TraceFilter())
