"""A run in which another harness took over: stored as mixed with the places, told by the audit, taken by no export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemark.acts import audit, failure_log, ingest, interchange, scaffold
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Imported, Record, Refused

from .conftest import Shop, document

CHANGES = ("step 3: other tools than in the call before", "step 4: another system prompt")


@pytest.fixture
def changing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A corpus in which a third run changed its harness twice, as its importer saw."""
    read = AtifImporter.read

    def changed(self: AtifImporter, record: Record) -> Iterator[Imported | Refused]:
        for item in read(self, record):
            yield item._replace(mixed=CHANGES) if isinstance(item, Imported) else item

    with monkeypatch.context() as patch:
        patch.setattr(AtifImporter, "read", changed)
        shop.report = shop.ingest([document("m-1")], name="mixed")  # type: ignore[attr-defined]
    return shop


def test_ingest_names_the_places_and_goes_on(changing: Shop) -> None:
    report: ingest.IngestReport = changing.report  # type: ignore[attr-defined]
    [found] = [found for found in report.findings if found.code == "mixed-harness"]
    assert found.where == "mixed.jsonl"
    assert "; ".join(CHANGES) in found.message
    assert (report.ingested, report.exit_code) == (1, 0)


def test_the_audit_says_where_and_that_no_export_takes_it(changing: Shop) -> None:
    found = audit.audit(changing.root, changing.ids()["m-1"])
    assert isinstance(found, audit.TraceAudit)
    assert found.mixed == list(CHANGES)
    assert found.export.startswith("no: ")
    plain = audit.audit(changing.root, changing.ids()["t-1"])
    assert isinstance(plain, audit.TraceAudit)
    assert plain.mixed is None


def test_no_failure_is_laid_at_the_door_of_either_harness(changing: Shop) -> None:
    found = failure_log.list_(changing.root, failure_log.FailureFilter())
    assert (found.left_out, sum(found.routed.values())) == ({"mixed": 1}, 5)


def test_no_export_takes_it(changing: Shop) -> None:
    changing.accept()
    report = changing.export()
    assert report.excluded["mixed"] == 1
    assert {row["tracemark_trace_id"] for row in changing.rows()} == {
        trace for task, trace in changing.ids().items() if task.startswith("t-")
    }


def test_it_comes_back_from_an_interchange_with_the_places(changing: Shop, tmp_path: Path) -> None:
    trace = changing.ids()["m-1"]
    interchange.atif(changing.root, tmp_path / "out", interchange.InterchangeOptions(traces=[trace]))
    other = tmp_path / "other"
    other.mkdir()
    scaffold.init(other)
    ingest.ingest(other, [tmp_path / "out"], ingest.IngestOptions())
    found = audit.audit(other, trace)
    assert isinstance(found, audit.TraceAudit)
    assert found.mixed == list(CHANGES)


def test_neither_a_reading_that_saw_no_change_nor_a_claim_cleans_it(changing: Shop) -> None:
    changing.ingest([document("m-1")], name="clean")
    changing.ingest([document("m-1")], harness=None, name="unclaimed")
    changing.accept()
    assert changing.export().excluded["mixed"] == 1
