from __future__ import annotations

from pathlib import Path

import pytest

from tracemark.errors import IntegrityError, NewerFormatError, NoStoreError, UsageError
from tracemark.store.layout import Layout, partition_of


def test_a_folder_without_a_store_file_is_no_store_and_is_the_one_to_make_one_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hints = {}
    for root in (Path(), tmp_path, Path("other one"), tmp_path.parent):
        with pytest.raises(NoStoreError) as caught:
            Layout(root).require()
        hints[root] = caught.value.hint
    assert list(hints.values()) == [
        "tracemark init",
        "tracemark init",
        "tracemark init 'other one'",
        f"tracemark init {tmp_path.parent}",
    ]


def test_a_created_store_is_accepted_and_created_once(layout: Layout) -> None:
    layout.create()
    before = layout.store_file.stat()
    layout.create()
    layout.require()
    assert layout.store_file.read_bytes() == b'{"format":"tracemark/store/1"}\n'
    assert layout.store_file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_newer_format_is_not_touched(layout: Layout) -> None:
    layout.create()
    layout.store_file.write_text('{"format":"tracemark/store/2"}\n')
    with pytest.raises(NewerFormatError):
        layout.require()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format":"other"}', '{"format":1}'])
def test_a_store_file_that_names_no_format_is_an_integrity_error(layout: Layout, text: str) -> None:
    layout.create()
    layout.store_file.write_text(text)
    with pytest.raises(IntegrityError):
        layout.require()


def test_a_partition_is_the_beginning_of_the_fingerprint() -> None:
    assert partition_of("tm1:" + "0123456789abcdef" * 4) == "0123456789abcdef"
    assert partition_of(None) == "none"


@pytest.mark.parametrize("kind", ["", "../up", "a/b", ".hidden", "Up", "a..b", "a."])
def test_a_kind_never_leaves_its_folder(layout: Layout, kind: str) -> None:
    with pytest.raises(UsageError):
        layout.annotation(kind, "0" * 64)


def test_only_content_names_in_known_folders_are_data_files(layout: Layout) -> None:
    name = "0" * 64 + ".jsonl.zst"
    right = [f"annotations/exports.sft/{name}", f"refused/{name}", f"segments/fingerprint=none/{name}"]
    wrong = [f"segments/{name}", f"segments/fingerprint=up/{name}", "refused/a.jsonl.zst", f"annotations/A/{name}"]
    for item in [*right, *wrong]:
        layout.path(item).parent.mkdir(parents=True, exist_ok=True)
        layout.path(item).touch()
    assert layout.data_files() == right
    assert layout.strangers() == sorted(wrong)


def test_what_git_and_dvc_keep_is_no_stranger(layout: Layout) -> None:
    layout.create()
    (layout.traces / ".gitignore").touch()
    (layout.traces / "segments.dvc").touch()
    assert layout.strangers() == []


def test_folders_in_one_another_without_end_are_one_stranger(layout: Layout) -> None:
    layout.create()
    (layout.traces / "deep" / "/".join("d" * 150)).mkdir(parents=True)
    (layout.traces / "deep" / "/".join("d" * 150) / "file").touch()
    assert layout.strangers() == ["deep/"]
