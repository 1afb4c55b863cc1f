"""Packed files as streams: members of archives that are packed with zstd."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import zstandard

from tracemark.importers.compression import BrokenError, TooMuchError, expanded, members

LIMIT = 1 << 20
TEXT = b'{"id": 1, "words": "' + b"the same again " * 4000 + b'"}'


def frames(data: bytes, count: int = 1) -> bytes:
    """Return `data` as `count` zstd frames one behind the other."""
    size = -(-len(data) // count)
    packer = zstandard.ZstdCompressor()
    return b"".join(packer.compress(data[at : at + size]) for at in range(0, len(data), size))


def zstd_archive(path: Path, files: Mapping[str, bytes], *, count: int = 1, plain: Sequence[str] = ()) -> Path:
    """Write a zip archive whose members are packed with zstd, but for those in `plain`; return its path."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data if name in plain else frames(data, count))
    written = bytearray(path.read_bytes())
    for info in zipfile.ZipFile(path).infolist():
        if info.filename in plain:
            continue
        # the standard library cannot write the method, so the stored members are said to be packed by it
        data = files[info.filename]
        facts = struct.pack("<III", zlib.crc32(data), info.compress_size, len(data))
        central = written.index(info.filename.encode(), written.index(b"PK\x01\x02")) - 46
        for method, at in ((info.header_offset + 8, info.header_offset + 14), (central + 10, central + 16)):
            written[method : method + 2] = struct.pack("<H", 93)
            written[at : at + 12] = facts
    path.write_bytes(written)
    return path


def read(path: Path, name: str, limit: int = LIMIT) -> bytes:
    with expanded(str(path), "zip", name, limit) as stream:
        return stream.read()


@pytest.mark.parametrize("count", [1, 3])
def test_members_packed_with_zstd_are_read_in_one_frame_or_several(tmp_path: Path, count: int) -> None:
    files = {"a.json": TEXT, "folder/b.json": b"{}", "c.json": b"plain"}
    path = zstd_archive(tmp_path / "log.eval", files, count=count, plain=["c.json"])
    assert {name: read(path, name) for name, _ in members(str(path), LIMIT)} == files


def test_a_member_packed_with_zstd_expands_to_no_more_than_the_limit(tmp_path: Path) -> None:
    path = zstd_archive(tmp_path / "log.eval", {"a.json": TEXT})
    with pytest.raises(TooMuchError):
        read(path, "a.json", 1000)


def test_a_damaged_member_is_broken(tmp_path: Path) -> None:
    path = zstd_archive(tmp_path / "log.eval", {"a.json": b"the words of a log"})
    whole = path.read_bytes()
    at = whole.index(b"words")
    path.write_bytes(whole[:at] + b"lords" + whole[at + 5 :])
    with pytest.raises(BrokenError, match="CRC"):
        read(path, "a.json")
    path.write_bytes(whole.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\x00"))
    with pytest.raises(BrokenError):
        read(path, "a.json")


def test_a_member_that_says_to_be_longer_than_the_archive_is_broken(tmp_path: Path) -> None:
    path = zstd_archive(tmp_path / "log.eval", {"a.json": TEXT})
    whole = bytearray(path.read_bytes())
    central = whole.index(b"PK\x01\x02")
    whole[central + 20 : central + 24] = struct.pack("<I", 1 << 30)
    path.write_bytes(whole)
    with pytest.raises(BrokenError):
        read(path, "a.json")


def test_an_encrypted_member_is_broken(tmp_path: Path) -> None:
    path = zstd_archive(tmp_path / "log.eval", {"a.json": TEXT})
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)
    with pytest.raises(BrokenError, match="encrypted"):
        read(path, "a.json")


def test_a_member_that_is_not_there_is_broken(tmp_path: Path) -> None:
    path = zstd_archive(tmp_path / "log.eval", {"a.json": TEXT})
    with pytest.raises(BrokenError):
        read(path, "b.json")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_one_member_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", b"first")
        archive.writestr("a.json", b"second")
    assert [name for name, _ in members(str(path), LIMIT)] == ["a.json"]
    assert read(path, "a.json") == b"second"
