from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.store.segment import FRAME_BYTES, FRAME_LINES, Packer, iterate, read_line, read_lines


def pack(path: Path, lines: list[bytes]):
    packer = Packer(path)
    for line in lines:
        packer.add(line)
    return packer.close()


LINES = [b'{"n":%d,"text":"%s"}' % (n, b"x" * (n % 97)) for n in range(2 * FRAME_LINES + 5)]


def test_a_segment_is_named_by_its_own_bytes(tmp_path: Path) -> None:
    packed = pack(tmp_path / "a", LINES)
    assert packed is not None
    assert packed.name == digest.sha256((tmp_path / "a").read_bytes())
    assert packed.size == (tmp_path / "a").stat().st_size


class FullDisk(io.FileIO):
    def write(self, _data: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")


def test_a_file_that_cannot_be_written_is_closed(tmp_path: Path) -> None:
    packer = Packer(tmp_path / "a")
    packer._file.close()
    packer._file = FullDisk(tmp_path / "a", "wb")
    with pytest.raises(OSError, match="no space"):
        packer.add(b"x" * FRAME_BYTES)
    assert packer._file.closed


def test_a_file_is_synced_whole_and_once_also_where_that_fails(tmp_path: Path, disk) -> None:
    packed = pack(tmp_path / "a", LINES)
    assert packed is not None
    assert disk.synced == {str(tmp_path / "a"): packed.size}
    disk.failing["b"] = 1
    with pytest.raises(OSError, match="the sync failed"):
        pack(tmp_path / "b", LINES)
    assert disk.asked[str(tmp_path / "b")] == 1


def test_a_file_that_cannot_be_synced_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packer = Packer(tmp_path / "a")
    packer.add(b"{}")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "cannot sync")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="cannot sync"):
        packer.close()
    assert packer._file.closed


def test_the_same_lines_make_the_same_file(tmp_path: Path) -> None:
    assert pack(tmp_path / "a", LINES).name == pack(tmp_path / "b", LINES).name


def test_a_stream_reader_reads_across_frames(tmp_path: Path) -> None:
    pack(tmp_path / "a", LINES)
    with (tmp_path / "a").open("rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    assert data == b"".join(line + b"\n" for line in LINES)


def test_the_zstd_program_reads_a_segment_where_it_is_installed(tmp_path: Path) -> None:
    pack(tmp_path / "a", LINES)
    program = shutil.which("zstd")
    expected = b"".join(line + b"\n" for line in LINES)
    if program is None:
        data = zstandard.ZstdDecompressor().stream_reader((tmp_path / "a").read_bytes(), read_across_frames=True).read()
    else:
        data = subprocess.run([program, "-dc", str(tmp_path / "a")], capture_output=True, check=True).stdout
    assert data == expected


def test_every_frame_has_a_checksum_its_content_size_and_no_dictionary(tmp_path: Path) -> None:
    packed = pack(tmp_path / "a", LINES)
    data = (tmp_path / "a").read_bytes()
    starts = {location.frame_offset for location in packed.locations}
    assert len(starts) == 3
    for start in starts:
        parameters = zstandard.get_frame_parameters(data[start:])
        assert (parameters.has_checksum, parameters.dict_id) == (True, 0)
        assert parameters.content_size > 0


def test_a_large_line_closes_its_frame(tmp_path: Path) -> None:
    packed = pack(tmp_path / "a", [b"s", b"x" * FRAME_BYTES, b"t"])
    assert [location.frame_offset > 0 for location in packed.locations] == [False, False, True]


@given(lines=st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")), min_size=1, max_size=200))
def test_every_line_is_read_back_by_its_location_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("segment") / "a"
    packed = pack(path, lines)
    assert [read_line(path, location) for location in packed.locations] == lines
    assert list(read_lines(path, packed.locations)) == lines
    assert list(iterate(path)) == list(zip(packed.locations, lines, strict=True))


def test_no_lines_make_no_file(tmp_path: Path) -> None:
    assert pack(tmp_path / "a", []) is None
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("kept", [1, 10, 100, -1])
def test_a_segment_cut_short_is_an_integrity_error(tmp_path: Path, kept: int) -> None:
    pack(tmp_path / "a", LINES)
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data[:kept])
    with pytest.raises(IntegrityError):
        list(iterate(tmp_path / "a"))


def test_a_line_that_was_cut_off_is_an_integrity_error(tmp_path: Path) -> None:
    packed = pack(tmp_path / "a", LINES)
    last = packed.locations[-1]
    for kept in (0, 10, last.frame_offset, last.frame_offset + 20):
        (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:kept])
        with pytest.raises(IntegrityError):
            read_line(tmp_path / "b", last)


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_never_gives_other_lines_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, place: float, bit: int
) -> None:
    path = tmp_path_factory.mktemp("segment") / "a"
    pack(path, LINES)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    path.write_bytes(data)
    try:
        lines = [line for _, line in iterate(path)]
    except IntegrityError:
        return
    assert lines == LINES


def test_a_missing_segment_is_an_integrity_error(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="missing"):
        list(iterate(tmp_path / "gone"))


def loop(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink()
    path.symlink_to(path.name)


def fail_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk refuse to read a file that can be opened."""

    def refuse(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return refuse()

        def fileno(self) -> int:
            return -1

    monkeypatch.setattr(os, "pread", refuse)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Broken())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(loop, os.strerror(errno.ELOOP)), (fail_at_once, os.strerror(errno.EIO))],
    ids=["link to itself", "disk"],
)
@pytest.mark.parametrize("below", ["segments/fingerprint=none", "annotations/stamps", "refused"])
def test_what_the_system_does_not_let_us_read_is_an_integrity_error_that_names_the_place_in_the_store(
    tmp_path: Path, below: str, spoil, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "traces" / below / "a"
    path.parent.mkdir(parents=True)
    packed = pack(path, LINES)
    with monkeypatch.context() as then:
        spoil(path, then)
        for read in (
            lambda: list(iterate(path)),
            lambda: list(read_lines(path, packed.locations)),
            lambda: read_line(path, packed.locations[-1]),
        ):
            with pytest.raises(IntegrityError) as caught:
                read()
            assert (caught.value.message, caught.value.where) == (
                f"a stored file cannot be read: {reason}",
                f"traces/{below}/a",
            )
