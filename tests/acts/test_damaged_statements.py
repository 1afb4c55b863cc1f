"""A file of statements that cannot be read costs the answers about its traces, and no others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import audit, decisions, export, harnesses, health, traces
from tracemark.acts.corpus import open_store
from tracemark.errors import IntegrityError
from tracemark.findings import Finding
from tracemark.model.decision import Kind

from .conftest import CLOCK, Shop, document


def outcome(trace: str, reward: float, note: str) -> dict[str, Any]:
    """Return a statement about the outcome of a trace; `note` makes it another one."""
    return {
        "format": "tracemark/annotation/1",
        "kind": "outcomes",
        "tool": {"name": "grader", "version": note},
        "trace": trace,
        "value": {"outcome": {"status": "success" if reward == 1 else "failure", "reward": reward}},
    }


def state(shop: Shop, *annotations: dict[str, Any]) -> Path:
    """Store statements, and return the file in which they lie."""
    folder = shop.root / "traces" / "annotations" / "outcomes"
    before = set(folder.glob("*"))
    with open_store(shop.root) as store:
        store.commit_annotations("outcomes", annotations)
    (file,) = set(folder.glob("*")) - before
    return file


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def flip(path: Path) -> None:
    """Change a byte of the compressed data."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.fixture(params=[cut, flip, Path.unlink, pipe, loop], ids=["cut", "flipped", "gone", "pipe", "link to itself"])
def damaged(shop: Shop, request: pytest.FixtureRequest) -> tuple[Shop, str]:
    """A corpus in which what was stated of t-1 is damaged, and more was stated since of t-1 and t-2; and the file."""
    ids = shop.ids()
    shop.accept()
    file = state(shop, outcome(ids["t-1"], 1.0, "1"))
    traces.list_(shop.root, traces.TraceFilter())
    damage: Callable[[Path], None] = request.param
    if damage is Path.unlink:
        # a file that is gone takes its statements along; one that is a link to nothing does not
        file.unlink()
        file.symlink_to("nowhere")
    else:
        damage(file)
    state(shop, outcome(ids["t-1"], 0.5, "2"), outcome(ids["t-2"], 0.0, "2"))
    return shop, file.relative_to(shop.root).as_posix()


def listed(shop: Shop) -> dict[str, str]:
    """Return trace ids by task, as a list gives them."""
    return {row["task"]: row["trace_id"] for row in traces.list_(shop.root, traces.TraceFilter()).traces}


def about(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.code, one.where) for one in findings]


def test_lists_go_on_and_name_the_file(damaged: tuple[Shop, str]) -> None:
    shop, file = damaged
    rows = {row["task"]: row for row in traces.list_(shop.root, traces.TraceFilter()).traces}
    assert len(rows) == 5
    assert (rows["t-1"]["flags"], rows["t-2"]["flags"]) == ([], ["contested"])
    for report in (
        traces.list_(shop.root, traces.TraceFilter()),
        traces.find(shop.root, "customers"),
        harnesses.list_(shop.root),
        audit.audit(shop.root, "desk_a"),
    ):
        assert about(report.findings) == [("file-damaged", file)]
        assert "what was stated since of trace" in report.findings[0].message
        assert report.exit_code == 1


def test_another_trace_is_shown_and_audited(damaged: tuple[Shop, str]) -> None:
    shop, file = damaged
    other = listed(shop)["t-2"]
    shown = traces.show(shop.root, other)
    assert shown.conflicts == ["outcome.reward", "outcome.status"]
    assert about(shown.findings) == [("file-damaged", file)]
    audited = audit.audit(shop.root, other)
    assert isinstance(audited, audit.TraceAudit)
    assert {row["member"] for row in audited.conflicts} == {"outcome.reward", "outcome.status"}
    assert ("file-damaged", file) in about(audited.findings)
    decisions.retract(shop.root, [other], "wrong", CLOCK)
    assert traces.show(shop.root, other).flags[0] == "retracted"


def test_of_the_trace_itself_no_answer_is_given(damaged: tuple[Shop, str]) -> None:
    shop, file = damaged
    trace = listed(shop)["t-1"]
    for ask in (
        lambda: traces.show(shop.root, trace),
        lambda: audit.audit(shop.root, trace),
        lambda: decisions.retract(shop.root, [trace], "wrong", CLOCK),
    ):
        with pytest.raises(IntegrityError) as caught:
            ask()
        assert caught.value.where == file
        assert str(shop.root) not in str(caught.value)


def test_an_export_is_refused(damaged: tuple[Shop, str]) -> None:
    shop, file = damaged
    with pytest.raises(IntegrityError) as caught:
        export.sft(shop.root, shop.root / "exports" / "sft")
    assert caught.value.where == file


def test_check_still_finds_what_is_contested(damaged: tuple[Shop, str]) -> None:
    shop, file = damaged
    codes = {one.code: one.where for one in health.check(shop.root).findings}
    assert codes["file-damaged"] == file
    assert "contested" in codes


def test_the_state_is_made_again_once_the_file_is_back(shop: Shop) -> None:
    ids = shop.ids()
    file = state(shop, outcome(ids["t-1"], 1.0, "1"))
    kept = file.read_bytes()
    cut(file)
    state(shop, outcome(ids["t-1"], 0.5, "2"))
    assert traces.list_(shop.root, traces.TraceFilter()).exit_code == 1
    file.write_bytes(kept)
    report = traces.list_(shop.root, traces.TraceFilter())
    assert report.findings == ()
    assert [row["flags"] for row in report.traces if row["task"] == "t-1"] == [["contested"]]


def test_many_traces_of_one_file_are_one_finding(shop: Shop) -> None:
    ids = shop.ids()
    file = state(shop, *[outcome(trace, 1.0, "1") for trace in ids.values()])
    cut(file)
    state(shop, *[outcome(trace, 0.5, "2") for trace in ids.values()])
    (found,) = traces.list_(shop.root, traces.TraceFilter()).findings
    assert " and 4 more) is not applied" in found.message


def test_an_audit_names_a_record_of_an_export_that_cannot_be_read(shop: Shop) -> None:
    shop.accept()
    shop.export()
    (record,) = (shop.root / "traces" / "annotations" / "exports.sft").glob("*")
    cut(record)
    where = record.relative_to(shop.root).as_posix()
    for target in (shop.ids()["t-1"], "desk_a"):
        report = audit.audit(shop.root, target)
        assert about(report.findings) == [("file-damaged", where)]
        assert report.exports == []
    report = audit.audit(shop.root, str(shop.root / "exports" / "sft"))
    assert ("file-damaged", where) in about(report.findings)
    assert report.rows == 3


def test_a_statement_whose_bytes_changed_is_never_taken_for_what_was_stated(shop: Shop) -> None:
    trace = shop.ids()["t-1"]
    state(shop, outcome(trace, 0.5, "1"))
    with open_store(shop.root) as store:
        store.catalogue._db.execute("UPDATE annotations SET digest = zeroblob(32)")
        with pytest.raises(IntegrityError, match="not what its digest says"):
            store.statements([trace])


def test_decisions_that_can_be_judged_are_judged_beside_one_that_cannot(shop: Shop) -> None:
    shop.ingest([document("z-1", extra="Quite different."), document("z-2")], None, "plain")
    shop.ingest([document("z-3", extra="Quite different.")], None, "more")
    ids = shop.ids()
    with open_store(shop.root) as store:
        where = {task: store.state(ids[task]).file for task in ("z-1", "z-3")}
    for task in ("z-1", "z-3"):
        shop.enter(Kind.STAMP, {"trace": ids[task], "fingerprint": shop.fingerprint()})
    assert [one.code for one in health.check(shop.root).findings].count("decision-refuted") == 2
    cut(shop.root / "traces" / where["z-1"])
    found = [one.where for one in health.check(shop.root).findings if one.code == "decision-refuted"]
    assert found == [f"trace {ids['z-3'][:12]}"]
