"""An export takes no rows that prove to be of more than one harness, whoever claims that they are of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tracemark.acts import audit_export, equivalence
from tracemark.acts.export import ExportReport
from tracemark.errors import ExportRefusedError
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Imported, Record, Refused

from .conftest import CLOCK, Shop, document, write_version


def reading(value_of: Callable[[str], str], component: str = "runtime") -> Any:
    """Return an importer's `read` that finds a setting in each file: what `value_of` gives for its task."""
    read = AtifImporter.read

    def found(self: AtifImporter, record: Record) -> Iterator[Imported | Refused]:
        for item in read(self, record):
            if isinstance(item, Imported):
                value = value_of(str(item.run["task"]))
                shown = [{"part": "parallel_calls", "form": "constant", "digest": value * 64}]
                item = item._replace(observed={**item.observed, component: shown})
            yield item

    return found


@pytest.fixture
def settled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A corpus whose files hold a setting: of the first two runs one value, of the third another one."""
    with monkeypatch.context() as patch:
        patch.setattr(AtifImporter, "read", reading(lambda task: "b" if task == "s-2" else "a"))
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

    decisions.stamp(settled.root, [settled.ids()["s-2"]], "none", "another runtime", CLOCK)
    report: Any = settled.export()
    assert report.rows == 5
    assert "rows-differ" not in {found.code for found in report.findings}


@pytest.fixture
def read_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Read again the files of stored, claimed runs with an importer that finds in them a setting that differs."""
    documents = [document(f"s-{number}") for number in range(3)]
    shop.ingest(documents, name="before")
    shop.accept()

    def again() -> Any:
        with monkeypatch.context() as patch:
            patch.setenv("TRACEMARK_WORKERS", "1")
            patch.setattr(AtifImporter, "version", "99")
            patch.setattr(AtifImporter, "read", reading(lambda task: "b" if task == "s-2" else "a"))
            return shop.ingest(documents, name="again")

    return again


def test_what_a_later_reading_shows_counts(shop: Shop, read_again: Callable[[], Any]) -> None:
    assert shop.export().rows == 6
    read_again()
    with pytest.raises(ExportRefusedError, match="runtime/parallel_calls \\(2 like "):
        shop.export("exports/again")


def test_the_audit_of_an_export_tells_what_was_read_since(shop: Shop, read_again: Callable[[], Any]) -> None:
    shop.export()

    def apart() -> list[str]:
        audited = audit_export.audit_export(shop.root, shop.root / "exports/sft")
        return [found.message for found in audited.findings if found.code == "export-rows-apart"]

    assert apart() == []
    read_again()
    [message] = apart()
    assert "runtime/parallel_calls (2 like " in message
    shop.set(("evidence: unique", "evidence: claimed"))
    shop.export()
    assert apart() == []


@pytest.fixture
def two(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make two harnesses, store runs of each of which every other one has another setting, and make them equivalent."""

    def make(manifest: str, handler: str = "", component: str = "runtime", *, by_harness: bool) -> None:
        folder = write_version(shop.root, "desk_c", handler=handler)
        with (folder / "harness.yaml").open("a") as file:
            file.write(manifest)
        value = (lambda task: task[0]) if by_harness else (lambda task: "ab"[int(task[-1])])
        with monkeypatch.context() as patch:
            patch.setattr(AtifImporter, "read", reading(value, component))
            shop.ingest([document(f"a-{number}") for number in range(2)], name="one")
            shop.ingest([document(f"b-{number}") for number in range(2)], "desk_c", name="other")
        shop.accept()
        equivalence.equivalent(shop.root, "desk_a", "desk_c", "one for training", CLOCK, force=True)

    return make


LIMITED = "runtime:\n  limits: {parallel_calls: 4}\n"


def test_harnesses_that_were_made_equivalent_may_differ_in_what_they_declare(
    shop: Shop, two: Callable[..., None]
) -> None:
    two(LIMITED, by_harness=True)
    report = shop.export()
    assert report.rows == 7
    assert "rows-differ" not in {found.code for found in report.findings}


def test_runs_of_one_of_them_may_not(shop: Shop, two: Callable[..., None]) -> None:
    two(LIMITED, by_harness=False)
    with pytest.raises(ExportRefusedError, match="more than one harness"):
        shop.export()


def test_nor_may_harnesses_that_are_one_program(shop: Shop, two: Callable[..., None]) -> None:
    two("", "  # the same", "observation_handlers", by_harness=True)
    with pytest.raises(ExportRefusedError, match="more than one harness"):
        shop.export()


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
