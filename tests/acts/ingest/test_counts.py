"""The numbers of an ingest: records add up, traces count once, and neither depends on how a source is cut."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark.acts.ingest import IngestReport
from tracemark.importers import source

READ = ("ingested", "duplicates", "strengthened", "disputing", "reimported", "refused", "skipped")


def numbers(report: IngestReport) -> dict[str, Any]:
    """Return all that is counted, and the exit code."""
    found = {name: value for name, value in report.as_json().items() if isinstance(value, (int, dict))}
    return {**found, "exit_code": report.exit_code, "dry_run": None}


def add_up(report: IngestReport, records: int) -> None:
    assert sum(getattr(report, name) for name in READ) == records
    stored = report.ingested + report.strengthened + report.reimported
    assert sum(report.harnesses.values()) == sum(report.evidence.values()) == stored


def outcome(reward: float) -> dict[str, Any]:
    return {"outcome": {"status": "failure", "reward": reward}}


def batch(desk: Any, name: str, harness: str | None, *documents: Any) -> Path:
    """Write a batch of documents, a file each, with a note that makes it another one than its neighbours."""
    said = f"harness: {harness}\n" if harness else ""
    desk.put(f"{name}/batch.yaml", f"{said}note: {name}\n".encode())
    for number, document in enumerate(documents):
        desk.put(f"{name}/{number}.json", json.dumps(document).encode())
    return desk.inbox / name


@pytest.mark.parametrize("cut", ["in two batches", "in one"])
def test_a_contradicted_trace_is_counted_once_and_its_findings_for_each_record(desk: Any, cut: str) -> None:
    wrong = desk.document("t-1", by="desk_b")
    cuts = [[wrong], [wrong]] if cut == "in two batches" else [[wrong, wrong]]
    report = desk.ingest(*(batch(desk, f"b-{n}", "desk_a", *some) for n, some in enumerate(cuts)))
    assert (report.ingested, report.contradicted, report.contested) == (1, 1, 0)
    # two batches have two notes, and the second one adds nothing that a harness is known by
    assert report.duplicates + report.strengthened == 1
    assert report.finding_counts == {"stamp-contradicted": 2}
    add_up(report, 2)


def test_a_trace_that_three_records_dispute_is_contested_once_and_its_finding_names_all_values(desk: Any) -> None:
    desk.ingest(desk.write("first.jsonl", desk.carrying("t-1", **outcome(1.0))))
    paths = [
        batch(desk, f"b-{n}", None, desk.carrying("t-1", **outcome(reward))) for n, reward in enumerate([0.5, 0.6])
    ]
    paths.append(desk.write("last.jsonl", desk.carrying("t-1", **outcome(0.7))))
    tried = desk.ingest(*paths, dry_run=True)
    report = desk.ingest(*paths)
    assert (report.disputing, report.contested, report.finding_counts) == (3, 1, {"contested": 1})
    (found,) = report.findings
    assert all(f"{reward}" in found.message for reward in (1.0, 0.5, 0.6, 0.7))
    assert (numbers(tried), tried.findings) == (numbers(report), report.findings)
    add_up(report, 3)


@pytest.mark.parametrize("first", ["the right one", "the wrong one"])
def test_a_wrong_claim_that_the_run_corrects_itself_is_left_out_whichever_comes_first(desk: Any, first: str) -> None:
    names = ["desk_a", "desk_b"] if first == "the right one" else ["desk_b", "desk_a"]
    paths = [batch(desk, f"b-{n}", name, desk.document("t-1")) for n, name in enumerate(names)]
    report = desk.ingest(*paths)
    assert (report.contradicted, report.claims_dropped, report.exit_code) == (0, 1, 0)
    assert report.finding_counts == {"claim-dropped": 1}
    assert desk.state("t-1").row.fingerprint == desk.fingerprint("desk_a")


def test_more_wrong_claims_than_are_shown_are_told_by_those_that_stay(desk: Any) -> None:
    documents = [desk.document(f"t-{number}") for number in range(130)]
    wrong = desk.put("1/runs.jsonl", b"".join(json.dumps(one).encode() + b"\n" for one in documents))
    desk.put("1/batch.yaml", b"harness: desk_b\n")
    right = desk.put("2/runs.jsonl", b"".join(json.dumps(one).encode() + b"\n" for one in documents[:110]))
    desk.put("2/batch.yaml", b"harness: desk_a\n")
    report = desk.ingest(wrong.parent, right.parent)
    assert (report.contradicted, report.claims_dropped, report.exit_code) == (20, 110, 1)
    assert report.finding_counts == {"claim-dropped": 1, "stamp-contradicted": 20}
    told = [found for found in report.findings if found.code == "stamp-contradicted"]
    assert told
    assert all(found.hint and found.hint.startswith("tracemark audit ") for found in told)
    add_up(report, 240)


RECORD = st.tuples(
    st.sampled_from(["t-1", "t-1", "t-2", "t-3"]),
    st.sampled_from(["silent", "silent", "task", "1.0", "0.5", "0.7", "recorded", "recorded by a sibling", "broken"]),
)


def test_the_numbers_do_not_depend_on_files_batches_jobs_and_tries(
    desk: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.sibling("desk_d", 20)
    # of the format that it says, so that a file which holds nothing else is read line by line as well
    made = {"broken": '{"schema_version": "ATIF-v1.8", "steps": [], "agent": 1}'}
    for task in ("t-1", "t-2", "t-3"):
        by = "desk_b" if task == "t-3" else "desk_a"
        said = {"silent": {}, "task": {"run": {"task": "one"}}, **{str(r): outcome(r) for r in (1.0, 0.5, 0.7)}}
        for how, carried in said.items():
            made[f"{task} {how}"] = json.dumps(
                desk.carrying(task, by, **carried) if carried else desk.document(task, by)
            )
        made[f"{task} recorded"] = json.dumps(desk.recorded(task, "desk_a", by))
        made[f"{task} recorded by a sibling"] = json.dumps(desk.recorded(task, "desk_d", by))
    known = desk.write("known.jsonl", desk.carrying("t-2", "desk_a", **outcome(1.0)))
    desk.ingest(known)
    work = tmp_path_factory.mktemp("cut")

    def counted(records: list[Any], cuts: set[int], span: int, claim: str) -> dict[str, Any]:
        root = work / "corpus"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(desk.root, root)
        shutil.rmtree(root / "inbox")
        places = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
        for number, (start, end) in enumerate(itertools.pairwise(places)):
            folder = root / "inbox" / f"{number:02d}"
            folder.mkdir(parents=True)
            (folder / "batch.yaml").write_text(f"harness: {claim}\n")
            lines = [made["broken" if how == "broken" else f"{task} {how}"] for task, how in records[start:end]]
            (folder / "runs.jsonl").write_text("".join(line + "\n" for line in lines))
        other = object.__new__(type(desk))
        other.root, other.inbox = root, root / "inbox"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "RANGE", span)
            patch.setenv("TRACEMARK_WORKERS", "1")
            tried = other.ingest(dry_run=True)
            report = other.ingest()
        assert numbers(tried) == numbers(report)
        add_up(report, len(records))
        again = other.ingest()
        assert (again.ingested, again.strengthened) == (0, 0)
        return numbers(report)

    @settings(max_examples=25)
    @given(
        records=st.lists(RECORD, min_size=1, max_size=7),
        cuts=st.sets(st.integers(1, 6)),
        span=st.sampled_from([1, 600, source.RANGE]),
        claim=st.sampled_from(["desk_a", "desk_b", "desk_d"]),
    )
    def holds(records: list[Any], cuts: set[int], span: int, claim: str) -> None:
        if all(how == "broken" for _, how in records):
            return
        assert counted(records, cuts, span, claim) == counted(records, set(), source.RANGE, claim)

    holds()
