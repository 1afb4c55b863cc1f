"""An export takes no rows that prove to be of more than one harness, whoever claims that they are of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tracemark.acts.export import ExportReport
from tracemark.errors import ExportRefusedError
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Imported, Record, Refused

from .conftest import Shop, document, write_version


@pytest.fixture
def settled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A corpus whose files hold a setting: of the first two runs one value, of the third another one."""
    read = AtifImporter.read

    def reading(self: AtifImporter, record: Record) -> Iterator[Imported | Refused]:
        for item in read(self, record):
            if isinstance(item, Imported):
                value = "b" if item.run["task"] == "s-2" else "a"
                runtime = [{"part": "parallel_calls", "form": "constant", "digest": value * 64}]
                item = item._replace(observed={**item.observed, "runtime": runtime})
            yield item

    with monkeypatch.context() as patch:
        patch.setattr(AtifImporter, "read", reading)
        shop.ingest([document(f"s-{number}") for number in range(3)], name="settings")
    shop.accept()
    return shop


def test_under_unique_they_are_refused_by_the_part_and_the_rows(settled: Shop) -> None:
    with pytest.raises(ExportRefusedError, match="more than one harness") as refused:
        settled.export()
    assert refused.value.exit_code == 40
    ids = settled.ids()
    assert "runtime/parallel_calls (2 like " in refused.value.message
    assert f"1 like {ids['s-2'][:12]}" in refused.value.message
    assert "tracemark harness match TRACE" in str(refused.value.hint)
    assert not (settled.root / "exports" / "sft" / "sft.jsonl").exists()


def test_under_claimed_they_are_taken_and_a_finding_says_so(settled: Shop) -> None:
    settled.set(("evidence: unique", "evidence: claimed"))
    report: ExportReport = settled.export()
    assert report.rows == 6
    assert [found.code for found in report.findings if found.code == "rows-differ"] == ["rows-differ"]


def test_rows_that_agree_are_taken(settled: Shop) -> None:
    from tracemark.acts import decisions

    from .conftest import CLOCK

    decisions.stamp(settled.root, [settled.ids()["s-2"]], "none", "another runtime", CLOCK)
    report: Any = settled.export()
    assert report.rows == 5
    assert "rows-differ" not in {found.code for found in report.findings}


def test_rows_with_calls_that_no_definition_describes_are_named(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_c", extra="In words.")
    manifest = (folder / "harness.yaml").read_text()
    (folder / "harness.yaml").write_text(manifest[: manifest.index("tool_bindings")] + "ignore: ['*.py', look.json]\n")
    bare = [document(f"b-{number}", extra="In words.") for number in range(2)]
    for made in bare:
        del made["agent"]["tool_definitions"]
    shop.ingest(bare, harness="desk_c", name="bare")
    shop.accept("desk_c")
    report = shop.export()
    [found] = [found for found in report.findings if found.code == "calls-undescribed"]
    assert found.message.startswith("2 rows call tools and hold no definition of any")
    assert report.rows == 2


def test_rows_of_a_harness_that_binds_its_tools_are_described(shop: Shop) -> None:
    shop.accept()
    assert "calls-undescribed" not in {found.code for found in shop.export().findings}
