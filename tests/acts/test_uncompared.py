"""A harness that cannot be read may fit any trace: what rests on the comparison says so and makes no export."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tracemark.acts import audit, health
from tracemark.acts.corpus import Corpus
from tracemark.errors import ExportRefusedError, IntegrityError
from tracemark.findings import Severity
from tracemark.store.layout import Layout

from .conftest import Shop, document, write_version


@pytest.fixture
def siblings(shop: Shop) -> Shop:
    """A corpus with an export of a harness, and a sibling of it, known by its snapshot, that its traces do not fit."""
    write_version(shop.root, "desk_y", extra="Be very brief.")
    shop.ingest([document("y-1", extra="Be very brief.")], "desk_y", "of_y")
    shop.accept()
    shop.export()
    shutil.rmtree(shop.root / "harness_versions" / "desk_y")
    return shop


def snapshot_of(shop: Shop, name: str) -> Path:
    return Layout(shop.root).snapshot(Corpus(shop.root).resolve(name).fingerprint)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def put_a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_a_pipe_in_its_place(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def rename(path: Path) -> None:
    path.rename(path.with_name(path.name.upper()))


DAMAGES = (cut, empty, remove, put_a_folder_in_its_place, put_a_pipe_in_its_place, rename)


def contents(shop: Shop) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (shop.root / "exports" / "sft").iterdir()}


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_export_rests_on_a_comparison_with_a_snapshot_that_is_damaged_or_gone(
    siblings: Shop, damage: Callable[[Path], None]
) -> None:
    path, before = snapshot_of(siblings, "desk_y"), contents(siblings)
    damage(path)
    with pytest.raises(IntegrityError, match="a harness cannot be compared") as caught:
        siblings.export()
    assert caught.value.where == f"traces/harnesses/{path.name}"
    assert "put that harness version into harness_versions/ again" in str(caught.value.hint)
    assert contents(siblings) == before
    report = audit.audit(siblings.root, str(siblings.root / "exports" / "sft"))
    assert [(found.code, found.where) for found in report.findings] == [
        ("harness-uncompared", f"traces/harnesses/{path.name}")
    ]
    assert report.exit_code == 1
    trace = audit.audit(siblings.root, siblings.ids()["t-0"])
    assert isinstance(trace, audit.TraceAudit)
    assert trace.export == f"no: a harness cannot be compared (traces/harnesses/{path.name})"
    assert health.check(siblings.root).exit_code == 1


@pytest.mark.parametrize("damage", [cut, remove])
def test_the_version_itself_stands_in_for_its_snapshot(siblings: Shop, damage: Callable[[Path], None]) -> None:
    damage(snapshot_of(siblings, "desk_y"))
    write_version(siblings.root, "desk_y", extra="Be very brief.")
    assert siblings.export().findings == ()


@pytest.mark.parametrize("policy", ["recorded", "claimed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_where_nothing_rests_on_the_comparison_a_warning_is_enough(
    siblings: Shop, damage: Callable[[Path], None], policy: str
) -> None:
    siblings.record("r-1")
    siblings.set(("evidence: unique", f"evidence: {policy}"), ("tool_calls: [2, 60]", "tool_calls: null"))
    path = snapshot_of(siblings, "desk_y")
    damage(path)
    report = siblings.export()
    assert [(found.code, found.severity, found.where) for found in report.findings] == [
        ("harness-left-out", Severity.WARNING, f"traces/harnesses/{path.name}")
    ]


def break_manifest(root: Path) -> str:
    (write_version(root, "desk_x") / "harness.yaml").write_text("name: [calc\n")
    return "harness_versions/desk_x"


def lose_manifest(root: Path) -> str:
    (write_version(root, "desk_x") / "harness.yaml").unlink()
    return "harness_versions/desk_x"


def link_elsewhere(root: Path) -> str:
    (root / "elsewhere").mkdir()
    (root / "harness_versions" / "desk_x").symlink_to(root / "elsewhere")
    return "harness_versions/desk_x"


def link_nowhere(root: Path) -> str:
    (root / "harness_versions" / "desk_x").symlink_to(root / "nowhere")
    return "harness_versions/desk_x"


@pytest.mark.parametrize("breaks", [break_manifest, lose_manifest, link_elsewhere, link_nowhere])
def test_a_version_that_is_being_edited_is_named_with_what_to_do(shop: Shop, breaks: Callable[[Path], str]) -> None:
    shop.accept()
    shop.export()
    place = breaks(shop.root)
    with pytest.raises(ExportRefusedError, match="a harness cannot be compared") as caught:
        shop.export()
    assert (caught.value.where, caught.value.exit_code) == (place, 40)
    assert caught.value.hint == "mend it (tracemark harness check desk_x), or move it out of harness_versions/"
    report = audit.audit(shop.root, str(shop.root / "exports" / "sft"))
    assert [(found.code, found.where, found.hint) for found in report.findings] == [
        ("harness-uncompared", place, caught.value.hint)
    ]
    (shop.root / place).rename(shop.root / "aside")
    assert shop.export().findings == ()


def test_of_several_the_damaged_one_is_named_first_and_the_others_after_it(siblings: Shop) -> None:
    break_manifest(siblings.root)
    path = snapshot_of(siblings, "desk_y")
    cut(path)
    with pytest.raises(IntegrityError, match=r"so it is with harness_versions/desk_x") as caught:
        siblings.export()
    assert caught.value.where == f"traces/harnesses/{path.name}"


def test_versions_that_cannot_be_listed_may_fit_as_well(siblings: Shop) -> None:
    shutil.move(siblings.root / "harness_versions", siblings.root / "versions")
    (siblings.root / "harness_versions").write_text("")
    with pytest.raises(ExportRefusedError, match="it cannot be listed") as caught:
        siblings.export()
    assert caught.value.where == "harness_versions/"
    assert "move what is in the way" in str(caught.value.hint)


def test_an_export_of_recorded_runs_alone_rests_on_no_comparison(shop: Shop) -> None:
    for path in (shop.root / "traces" / "segments").rglob("*.zst"):
        path.unlink()
    shop.record("r-1")
    shop.set(("tool_calls: [2, 60]", "tool_calls: null"))
    shop.accept()
    place = break_manifest(shop.root)
    report = shop.export()
    audited = audit.audit(shop.root, str(shop.root / "exports" / "sft"))
    for found in (report, audited):
        assert [(one.code, one.where) for one in found.findings] == [("harness-left-out", place)]
        assert found.exit_code == 0
