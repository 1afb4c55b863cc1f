"""Files around a record are found by plain names, and searched without being held."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers import beside
from tracemark.importers.beside import occurrences, plain

NUMBER = re.compile(rb"#([0-9]+)")


@given(st.lists(st.integers(0, 99999), max_size=40), st.integers(1, 60), st.integers(12, 30))
def test_a_search_in_pieces_finds_what_a_search_in_the_whole_finds(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], piece: int, overlap: int
) -> None:
    path = tmp_path_factory.mktemp("beside") / "a"
    path.write_text("".join(f"{'x' * (n % 7)}#{n};" for n in numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "_PIECE", piece)
        patch.setattr(beside, "_OVERLAP", overlap)
        assert [int(found) for found in occurrences(path, NUMBER, 1_000_000)] == numbers


def test_what_is_no_regular_file_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("#1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none", "."):
        assert list(occurrences(tmp_path / name, NUMBER, 100)) == []
    assert list(occurrences(tmp_path / "real", NUMBER, 100)) == [b"1"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_a_packed_file_is_searched_as_it_was_before(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pack(b"#1 " * 100 + b"#2"))
    assert list(occurrences(path, NUMBER, 1000)) == [b"1"] * 100 + [b"2"]
    # where it breaks, or expands to too much, the search ends
    path.write_bytes(pack(b"#1 " * 100 + b"#2")[:-6])
    assert set(occurrences(path, NUMBER, 1000)) <= {b"1", b"2"}
    path.write_bytes(pack(b"#1 " * 100 + b"#2"))
    assert b"2" not in list(occurrences(path, NUMBER, 200))


def test_an_archive_is_not_searched(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "#1")
    assert list(occurrences(tmp_path / "a.zip", NUMBER, 1000)) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\\b", "a\0b", "/a"])
def test_a_name_that_leads_elsewhere_is_not_plain(name: str) -> None:
    assert not plain(name)
    assert plain("a.json")
